"""Which tests run which line of dplib, and how long each takes: so that a mutant meets few and quick ones first.

`build` runs the test files once under coverage. Lines are kept relative to the function they stand in: a function
that was changed since is looked up as a whole. An index that is out of date costs time or spares a mutant, nothing worse.
"""

import ast
import hashlib
import json
import os
import sys
import time
from pathlib import Path

import library_files
import one_move
from mutation_operators import functions

ROOT = Path(__file__).resolve().parent.parent
INDEX = ROOT / "_build" / "mutation_index.json"
LONGEST = 6.0  # seconds; a test that takes longer is not asked
PATIENCE = 12.0  # seconds that the tests for one mutant may take together, without the mutant


def file_of(module, function=""):
    """The file of a module, "gaussian" or "room/gaussian"; one that was moved is found by its name or by a function."""
    files = library_files.python_files()
    folder = library_files.ROOT / library_files.PACKAGE
    named = [folder / f"{module}.py", folder / module / "__init__.py"]
    found = [path for path in named if path in files]
    if not found:
        name = module.rpartition("/")[2]
        found = [path for path in files if library_files.module_name(path).rpartition(".")[2] == name]
    if not found and function:
        found = [path for path in files if function in dict(functions(ast.parse(path.read_text())).values())]
    if len(found) != 1:
        raise LookupError(f"{len(found)} modules {module!r} with {function!r}: say which in scripts/mutants.py")
    return found[0]


def module_of(path):
    """As `file_of` takes it."""
    parts = library_files.module_name(path).split(".")
    return "/".join(parts[1:]) or "__init__"


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _first_line(node):
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


class _Recorder:
    """Remembers for each test its CPU time, and switches coverage to its name."""

    def __init__(self, coverage):
        self.coverage, self.seconds, self.failed = coverage, {}, set()

    def pytest_runtest_logstart(self, nodeid, location):
        self.start = time.process_time()
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report):
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid, location):
        self.coverage.switch_context("")
        self.seconds[nodeid] = round(time.process_time() - self.start, 3)


def build(files):
    """Run these test files in a process of their own, and add what they run to the index."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    import coverage
    import pytest

    cover = coverage.Coverage(data_file=None, config_file=False, include=[str(path) for path in library_files.python_files()])
    recorder = _Recorder(cover)
    cover.start()
    pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:cov", "-p", "no:xdist", *(f"tests/unit/{file}" for file in files)], plugins=[recorder])
    cover.stop()
    sys.stdout.flush()
    tests = {test: seconds for test, seconds in recorder.seconds.items() if test not in recorder.failed}
    _store(files, tests, cover.get_data())
    os._exit(0)


def _store(files, tests, data):
    """One entry for each function: its digest, and for each line from its first on the tests that run it."""
    index = load()
    ours = {f"tests/unit/{file}" for file in files}
    stale = {test for test in index["tests"] if test.partition("::")[0] in ours}
    index["tests"] = {test: seconds for test, seconds in index["tests"].items() if test not in stale} | tests
    for path in data.measured_files():
        module = module_of(Path(path))
        contexts = data.contexts_by_lineno(path)
        entries = index["functions"].setdefault(module, {})
        for name, node in functions(ast.parse(Path(path).read_text())).values():
            if not isinstance(node, ast.FunctionDef):
                continue
            first, key = _first_line(node), digest(ast.unparse(node))
            old = entries.get(name, {"digest": key, "lines": {}})
            lines = old["lines"] if old["digest"] == key else {}
            lines = {line: [test for test in found if test not in stale] for line, found in lines.items()}
            for line in range(first, node.end_lineno + 1):
                new = [test for test in contexts.get(line, []) if test in tests]
                if new:
                    lines[str(line - first)] = sorted({*lines.get(str(line - first), []), *new})
            entries[name] = {"digest": key, "lines": lines}
    INDEX.parent.mkdir(exist_ok=True)
    one_move.write_text(INDEX, json.dumps(index))


def load():
    return json.loads(INDEX.read_text()) if INDEX.exists() else {"tests": {}, "functions": {}}


def tests_for(index, module, name, node, lines):
    """The tests that run one of these lines of the function, quickest first, as many as PATIENCE allows.

    Those of the whole function where it was changed or no test is known for the lines; those of all functions
    whose name begins so for a class, or for the module itself.
    """
    entries = index["functions"].get(module, {})
    found = set()
    entry = entries.get(name)
    if entry and entry["digest"] == digest(ast.unparse(node)):
        first = _first_line(node)
        for line in lines:
            found.update(entry["lines"].get(str(line - first), []))
    if not found:
        for other, entry in entries.items():
            if other == name or not name or other.startswith(name + "."):
                found.update(*entry["lines"].values())
    chosen, total = [], 0.0
    for seconds, test in sorted((index["tests"][test], test) for test in found if test in index["tests"]):
        total += seconds
        if seconds > LONGEST or total > PATIENCE:
            break
        chosen.append(test.removeprefix("tests/unit/"))
    return chosen
