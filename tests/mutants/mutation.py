"""Planted faults: does the test that should notice a wrong formula, or a false statement, fail?

    python -m tools mutation                        all whose result is not known
    python -m tools mutation dangerous [NAME …]     the list of tests/mutants/dangerous_mutants.json, each against its tests
    python -m tools mutation statements [TAG …]     the table of tests/mutants/statement_mutants.json; tags, or words in names of tests

A dangerous mutant is one module of dplib with one place changed; it takes the place of that module. A false statement is the
text of one function changed (of the test that the theorem index names, of a helper beside it, or of the library), put in the place
of its code: a direction is swapped, a factor dropped, a value moved by 1%. Each meets its tests in a forked process of its own. A
mutant is killed by the first test that fails; a statement only by an assertion of its own test.

Results are kept in benchmarks/results/mutation.json and statements.json with a digest of what was changed, so that an interrupted run
goes on where it stopped, and what has changed since is run again (--fresh: everything).
"""

import argparse
import ast
import fcntl
import functools
import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))

import library_files  # noqa: E402
import one_move  # noqa: E402
from mutants import FILES  # noqa: E402
from mutation_operators import functions, node_at, nodes_without_names  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "mutation.json"
STATEMENTS = ROOT / "benchmarks" / "results" / "statements.json"
SECONDS = 60  # CPU time after which a fault is given up: no verdict
_MEMORY = 6 << 30


@functools.cache
def file_of(module):
    """The file of a module, such as "accounting/contour" or a package, "accounting"."""
    folder = library_files.ROOT / library_files.PACKAGE / module
    [found] = {folder.with_suffix(".py"), folder / "__init__.py"} & set(library_files.python_files())
    return found


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def record(file, change):
    """Change the results in a file, which several runs may share; what they are then."""
    with open(Path(tempfile.gettempdir()) / f"dplib-{file.stem}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = load(file)
        change(results)
        one_move.write_text(file, json.dumps(results, indent=1, sort_keys=True) + "\n")
    return results


def load(file):
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


# ------------------------------------------------------------------ tests in a process of their own

_OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:cov", "-p", "no:xdist"]
NOT_RUN = "pytest did not run"


class Planter:
    """A plugin of pytest that plants a fault; `outcome(status)` says in words how the tests ended."""

    def pytest_sessionstart(self, session):
        # The first example that fails is enough: none is made smaller.
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings.get_profile("book"), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")


def run_forked(planter, tests, seconds, memory=None, options=()):
    """(outcome, CPU seconds). The outcome is "time" after so many CPU seconds, "signal N" where the process was ended.

    memory : bytes of address space that it may have.
    """
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1), os.dup2(silence, 2)
        text = NOT_RUN
        try:
            import pytest

            status = pytest.main([*_OPTIONS, *options, *tests], plugins=[planter])
            text = planter.outcome(int(status))
        finally:
            os.write(into, text.encode())
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        text = pipe.read().decode()
    _, status, used = os.wait4(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        text = "time" if number in (signal.SIGXCPU, signal.SIGKILL) else f"signal {number}"
    return text, round(used.ru_utime + used.ru_stime, 1)


# ------------------------------------------------------------------ dangerous mutants


class _Mutated(importlib.machinery.SourceFileLoader):
    """Loads a module of dplib from the mutated source."""

    def __init__(self, name, path, source):
        super().__init__(name, str(path))
        self.source = source

    def get_code(self, fullname):
        return compile(self.source, self.path, "exec")


class _ModulePlanter(Planter):
    """Gives one module of dplib from the mutated source, all others from this checkout; remembers the first failure."""

    def __init__(self, path, source):
        self.name, self.path, self.source = library_files.module_name(path), path, source
        self.failed = None

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=_Mutated(name, self.path, self.source))

    def pytest_sessionstart(self, session):
        super().pytest_sessionstart(session)
        sys.meta_path.insert(0, self)

    def pytest_runtest_logreport(self, report):
        if report.failed and self.failed is None:
            self.failed = report.nodeid.rpartition("/")[2]

    def pytest_collectreport(self, report):
        if report.failed and self.failed is None:
            self.failed = f"{report.nodeid.rpartition('/')[2]} (import)"

    def outcome(self, status):
        return self.failed or ("" if status == 0 else f"{_NO_VERDICT} {status}")


_NO_VERDICT = "pytest ended with status"


class NoSuchTest(Exception):
    """pytest found no test of one of the names."""


def run_mutant(module, source, tests, seconds=SECONDS):
    """(verdict, CPU seconds): the first test that fails, "time", or None for a survivor."""
    planter = _ModulePlanter(file_of(module), source)
    text, spent = run_forked(planter, [f"{FILES[test.partition('::')[0]]}{''.join(test.partition('::')[1:])}" for test in tests], seconds, _MEMORY)
    if text.startswith((_NO_VERDICT, NOT_RUN)):
        raise NoSuchTest(f"{text} for {module}: is there a test in the list that is gone?")
    return text or None, spent


def is_killed(found):
    """Whether a test failed; one that ran into the time limit says nothing."""
    return found["killed_by"] not in (None, "time")


def source_of(module):
    return file_of(module).read_text(encoding="utf-8")


def dangerous(names, fresh):
    """Plant every mutant of the list whose result is not known; those that survive."""
    from mutants import DANGEROUS, apply

    listed = {mutant.name for mutant in DANGEROUS}
    known = record(RESULTS, lambda results: [results["dangerous"].pop(name) for name in results["dangerous"].keys() - listed])["dangerous"]
    for mutant in DANGEROUS:
        if names and mutant.name not in names:
            continue
        before = source_of(mutant.module)
        source = apply(mutant, before)
        key = digest(_what_changed(before, source) + " ".join(mutant.tests))
        old = known.get(mutant.name)
        if old and old["digest"] == key and is_killed(old) and not fresh:
            continue
        killed_by, spent = run_mutant(mutant.module, source, mutant.tests)
        found = {"module": mutant.module, "killed_by": killed_by, "cpu_seconds": spent, "digest": key, "replaced": what_is_replaced(mutant)}
        known = record(RESULTS, lambda results: results["dangerous"].update({mutant.name: found}))["dangerous"]  # noqa: B023
        print(f"{'killed  ' if is_killed(found) else 'SURVIVED'} {spent:5.1f} s  {mutant.module}: {mutant.name}  [{killed_by}]", flush=True)
    return [f"{name}: {found['killed_by'] or 'survived'}" for name, found in known.items() if not is_killed(found)]


def what_is_replaced(mutant):
    """{place: what stands there}, without names of variables and modules: does the place hold what it held?"""
    tree, _ = _parsed(source_of(mutant.module))
    return {place: nodes_without_names(node_at(tree, mutant.function, place)) for place in mutant.changes}


def _what_changed(before, after):
    """The functions that differ, as they are after the change; the statements of the module where none does."""
    old, new = ast.parse(before), ast.parse(after)
    for parts in (_functions, lambda tree: tree.body):
        known = {ast.unparse(node) for node in parts(old)}
        if text := "".join(text for text in map(ast.unparse, parts(new)) if text not in known):
            return text
    return ""


def _functions(tree):
    return [node for _, node in functions(tree).values() if isinstance(node, ast.FunctionDef)]


# ------------------------------------------------------------------ false statements


def named_tests():
    """{test: tags} of the index, in its order; a test is written as in the table."""
    import index_checks

    text = (ROOT / "book" / "theorems.md").read_text(encoding="utf-8")
    found = {}
    for row in index_checks.rows(text):
        for test in index_checks.CODE.findall(row.test):
            found.setdefault(test, []).append(row.tag)
    return found


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


def statement_digest(test, mutation):
    """Changes with the text of the mutation, of the function that it changes, and of the test."""
    _, _, after = changed(test, mutation)
    path, _, name = test.partition("::")
    return digest(_segment((ROOT / path).read_text(encoding="utf-8"), name) + after)


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


class _StatementPlanter(Planter):
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


def run_statement(test, mutation, seconds=SECONDS):
    """How the test ends when the statement is changed: killed, survived, or what else happened."""
    return run_forked(_StatementPlanter(test, mutation), [test], seconds, options=["--assert=plain"])[0]


def mutations(tests):
    """(test, mutation, digest, what is on record) of each that can be planted; the reason in place of the digest of one that cannot."""
    from statement_mutants import MUTANTS

    results = load(STATEMENTS)
    for test in tests:
        for mutation in MUTANTS.get(test, ()):
            try:
                key = statement_digest(test, mutation)
            except (LookupError, SyntaxError) as error:
                yield test, mutation, error, None
            else:
                yield test, mutation, key, results.get(test, {}).get(mutation[0])


def is_known(key, old):
    return old is not None and old["digest"] == key and old["verdict"] == "killed"


def problems():
    """What the record does not show: tests without a mutation, results out of date, survivors."""
    from statement_mutants import MUTANTS

    index = named_tests()
    found = [f"{test}: in the table, but not in the index" for test in MUTANTS if test not in index]
    found += [f"{test} ({', '.join(index[test])}): no mutation in tests/mutants/statement_mutants.json" for test in index if not MUTANTS.get(test)]
    for test, mutation, key, old in mutations(index):
        if isinstance(key, Exception):
            found.append(str(key))
        elif old is None or old["digest"] != key:
            found.append(f"{test}: {mutation[0]!r} was not run; python -m tools mutation statements")
        elif not is_known(key, old):
            found.append(f"{test}: {mutation[0]!r} {old['verdict']}")
    return found


def statements(words, fresh):
    """Make every statement false whose result is not known; what the record does not show then."""
    import dplib  # noqa: F401  (inherited by every fork; the mutants, which replace parts of it, are through)

    index = named_tests()
    asked = [test for test, tags in index.items() if not words or any(word in tags or word in test for word in words)]
    for test, mutation, key, old in mutations(asked):
        if isinstance(key, Exception):
            print(f"NOT RUN   {key}", flush=True)
        elif fresh or not is_known(key, old):
            verdict = run_statement(test, mutation)
            print(f"{verdict:9} {test.rpartition('/')[2]}: {mutation[0]}", flush=True)
            found = {mutation[0]: {"verdict": verdict, "digest": key}}
            record(STATEMENTS, lambda results: results.setdefault(test, {}).update(found))  # noqa: B023
    record(STATEMENTS, lambda results: forget(results, index))
    return [problem for problem in problems() if problem.startswith(tuple(asked))]


def forget(results, index):
    """Take off the record what is no mutation any more."""
    from statement_mutants import MUTANTS

    for test, found in list(results.items()):
        names = {mutation[0] for mutation in MUTANTS.get(test, ())} if test in index else set()
        results[test] = {name: kept for name, kept in found.items() if name in names}
        if not results[test]:
            del results[test]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["dangerous", "statements"])
    parser.add_argument("names", nargs="*", help="mutants; tags, or words in the names of tests")
    parser.add_argument("--fresh", action="store_true", help="run again what is known")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / path) for path in (".", "tests/book", "tests/mutants", "tests", "book/_ext", "tools")]
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    # Imported once, inherited by every fork.
    for name in ("hypothesis", "pytest", "scipy.integrate", "scipy.optimize", "scipy.special", "scipy.stats"):
        importlib.import_module(name)
    left = []
    for what, run in (("dangerous", dangerous), ("statements", statements)):
        if arguments.what in (None, what):
            left += run(arguments.names, arguments.fresh)
    print("\n".join(left) if left else "every fault was noticed")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
