"""Does the test that the theorem index names fail when its statement is false?

    python scripts/statement_mutation.py               every mutation whose result is not known
    python scripts/statement_mutation.py C-7 M-B.4     only those of these tags (--fresh: also what is known)
    python scripts/statement_mutation.py --report      benchmarks/results/statements.txt from what is known

For each test in the last column of book/theorems.md, scripts/statement_mutants.py says how the statement is
made false: a direction is swapped, a factor or a term is dropped, a value moves by 1%, an average becomes a minimum. The text
of one function is changed (of the test, of a helper beside it, or of the library), compiled, and put in the
place of its code before the test runs in a process of its own. The mutation is *killed* if an assertion of the test
fails; a test that stops with another error says nothing, and counts as a survivor.

Results are kept in benchmarks/results/statements.json with a digest of what was changed and of the test, so
that an interrupted run goes on where it stopped, and what has changed since is run again.
"""

import argparse
import ast
import fcntl
import functools
import hashlib
import importlib
import inspect
import json
import os
import sys
import tempfile
from pathlib import Path

import forked_tests
import library_files
import one_move

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "statements.json"
SECONDS = 60  # CPU time after which a test is stopped: no verdict


def named_tests(text=None):
    """{test: tags} of the index, in its order; a test is written as in the table."""
    import index_checks

    text = (ROOT / "book" / "theorems.md").read_text(encoding="utf-8") if text is None else text
    found = {}
    for row in index_checks.rows(text):
        for test in index_checks.CODE.findall(row.test):
            found.setdefault(test, []).append(row.tag)
    return found


# ------------------------------------------------------------------ one mutation


def _node(tree, name):
    """The definition of a function or of Class.method in a module."""
    body = tree.body
    for part in name.split("."):
        found = [node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == part]
        if not found:
            raise LookupError(f"no function {name}")
        node, body = found[-1], found[-1].body
    return node


@functools.cache
def _parsed(source):
    return ast.parse(source), source.splitlines()


def _segment(source, name):
    tree, lines = _parsed(source)
    node = _node(tree, name)
    return "\n".join(lines[node.lineno - 1 : node.end_lineno])


def where(test, mutation):
    """(file, name in the file) of the function that a mutation changes."""
    path, _, name = test.partition("::")
    place = mutation[3] if len(mutation) > 3 else name
    if place.startswith("dplib."):
        parts = place.split(".")
        for depth in range(len(parts) - 1, 0, -1):
            folder = ROOT.joinpath(*parts[:depth])
            for file in (folder.with_suffix(".py"), folder / "__init__.py"):
                if file.is_file():
                    return file, ".".join(parts[depth:])
    return ROOT / path, place


def changed(test, mutation):
    """(source of the file, changed text of the function); LookupError if the old text is not there."""
    file, name = where(test, mutation)
    source = file.read_text(encoding="utf-8")
    before = _segment(source, name)
    if mutation[1] not in before:
        raise LookupError(f"{test}: {name} does not contain {mutation[1]!r}")
    return source, before, before.replace(mutation[1], mutation[2])


def digest(test, mutation):
    """Changes with the text of the mutation, of the function that it changes, and of the test."""
    _, _, after = changed(test, mutation)
    path, _, name = test.partition("::")
    text = _segment((ROOT / path).read_text(encoding="utf-8"), name) + after
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _code(source, before, after, name, file):
    """The code object of the changed function."""
    code = compile(source.replace(before, after, 1), str(file), "exec")
    for part in name.split("."):
        inner = [item for item in code.co_consts if inspect.iscode(item) and item.co_name == part]
        code = inner[-1]
    return code


def _plain(found):
    """The function under decorators: of hypothesis, of pytest's fixtures, of functools."""
    if hasattr(found, "hypothesis"):
        return found.hypothesis.inner_test
    for name in ("_fixture_function", "__wrapped__", "__pytest_wrapped__"):
        inner = getattr(found, name, None)
        if inner is not None and not inspect.isfunction(found):
            return _plain(inner)
    found = inspect.unwrap(found)
    return getattr(found, "__func__", found)


class _Planter(forked_tests.Planter):
    """Puts the changed code in its place after collection, and remembers how the test ended."""

    def __init__(self, test, mutation):
        self.test, self.mutation, self.verdict = test, mutation, "no test ran"

    def pytest_collection_finish(self, session):
        file, name = where(self.test, self.mutation)
        source, before, after = changed(self.test, self.mutation)
        if library_files.PACKAGE in file.relative_to(ROOT).parts[:1]:
            holder = importlib.import_module(library_files.module_name(file))
        else:
            holder = session.items[0].module
        for part in name.split("."):
            holder = vars(holder)[part]
        _plain(holder).__code__ = _code(source, before, after, name, file)

    def pytest_runtest_makereport(self, item, call):
        if call.excinfo is not None:
            kinds = [call.excinfo.type.__name__]
            error = call.excinfo.value
            if isinstance(error, BaseExceptionGroup):
                kinds = [type(one).__name__ for one in error.exceptions]
            assertion = call.when == "call" and any(kind in ("AssertionError", "Failed") for kind in kinds)
            if self.verdict in ("no test ran", "survived"):
                self.verdict = "killed" if assertion else f"{call.when}: {kinds[0]}"
        elif call.when == "call" and self.verdict == "no test ran":
            self.verdict = "survived"

    def outcome(self, status):
        return self.verdict


def run(test, mutation, seconds=SECONDS):
    """How the test ends when the statement is changed: killed, survived, or what else happened."""
    return forked_tests.run(_Planter(test, mutation), [test], seconds, options=["--assert=plain"])[0]


# ------------------------------------------------------------------ all of them


def load():
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def record(found, index, table):
    """Add the results of some tests to the file, which several runs may share; what is in no table any more goes."""
    with open(Path(tempfile.gettempdir()) / "dplib-statements.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = {test: old for test, old in (load() | found).items() if test in index and test in table}
        one_move.write_text(RESULTS, json.dumps(results, indent=1, sort_keys=True) + "\n")
        one_move.write_text(RESULTS.with_suffix(".txt"), report(results, index))
    return results


def problems(index=None, table=None, results=None):
    """What the record does not show: tests without a mutation, results out of date, survivors."""
    if table is None:
        from statement_mutants import MUTANTS as table
    index = named_tests() if index is None else index
    results = load() if results is None else results
    found = [f"{test}: in the table, but not in the index" for test in table if test not in index]
    for test, tags in index.items():
        if not table.get(test):
            found.append(f"{test} ({', '.join(tags)}): no mutation in scripts/statement_mutants.py")
        for mutation in table.get(test, ()):
            try:
                key = digest(test, mutation)
            except (LookupError, SyntaxError) as error:
                found.append(str(error))
                continue
            old = results.get(test, {}).get(mutation[0])
            if old is None or old["digest"] != key:
                found.append(f"{test}: {mutation[0]!r} was not run; python scripts/statement_mutation.py")
            elif old["verdict"] != "killed":
                found.append(f"{test}: {mutation[0]!r} {old['verdict']}")
    return found


def report(results, index=None):
    """One line for each tag, test and mutation."""
    index = named_tests() if index is None else index
    tags = {}
    for test, those in index.items():
        for tag in those:
            tags.setdefault(tag, []).append(test)
    verdicts = [found["verdict"] for test in index for found in results.get(test, {}).values()]
    lines = [
        "Tests of the theorem index against false statements (scripts/statement_mutation.py, scripts/statement_mutants.py).",
        f"{len(tags)} statements, {len(index)} tests, {len(verdicts)} mutations, of which {verdicts.count('killed')} were killed by the test itself.",
    ]
    for tag, tests in tags.items():
        lines += ["", tag]
        for test in tests:
            lines.append(f"  {test.removeprefix('tests/unit/')}")
            lines += [f"    {found['verdict']:9} {what}" for what, found in sorted(results.get(test, {}).items())]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tags", nargs="*", help="only the tests of these tags, or those whose name contains this")
    parser.add_argument("--fresh", action="store_true", help="run again what is known")
    parser.add_argument("--report", action="store_true", help="write the table, run nothing")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    for path in ("scripts", "_ext", "tests", "tests/book", "."):
        sys.path.insert(0, str(ROOT / path))
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    from statement_mutants import MUTANTS

    index, results = named_tests(), load()
    if not arguments.report:
        # Imported once, inherited by every fork.
        import hypothesis  # noqa: F401
        import pytest  # noqa: F401
        import scipy.integrate  # noqa: F401
        import scipy.optimize  # noqa: F401
        import scipy.special  # noqa: F401
        import scipy.stats  # noqa: F401

        import dplib  # noqa: F401

        for test, tags in index.items():
            named = not arguments.tags or any(word in tags or word in test for word in arguments.tags)
            if not named or not MUTANTS.get(test):
                continue
            known, found = results.get(test, {}), {}
            for mutation in MUTANTS[test]:
                try:
                    key = digest(test, mutation)
                except (LookupError, SyntaxError) as error:
                    print(f"NOT RUN   {error}", flush=True)
                    continue
                old = known.get(mutation[0])
                if old and old["digest"] == key and old["verdict"] == "killed" and not arguments.fresh:
                    found[mutation[0]] = old
                    continue
                verdict = run(test, mutation)
                found[mutation[0]] = {"verdict": verdict, "digest": key}
                print(f"{verdict:9} {test.removeprefix('tests/unit/')}: {mutation[0]}", flush=True)
            if found != known:
                record({test: found}, index, MUTANTS)
    left = problems(index, MUTANTS, record({}, index, MUTANTS))
    if arguments.tags and not arguments.report:
        asked = [test for test, tags in index.items() if any(word in tags or word in test for word in arguments.tags)]
        left = [problem for problem in left if problem.startswith(tuple(asked))]
    print("\n".join(left) if left else "every mutation was killed by the test that the index names")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
