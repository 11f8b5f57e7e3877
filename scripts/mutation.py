"""Mutation testing of the accounting core: does some test fail when a formula is wrong?

    python scripts/mutation.py dangerous                 the list of scripts/mutants.py, each against its tests
    python scripts/mutation.py sampled --budget 600      as many random mutants as fit into so many CPU seconds
    python scripts/mutation.py report                    benchmarks/results/mutation.txt from what is known

Every mutant is a copy of one module with one place changed. It is put in the place of that module
inside a forked process of its own, which then runs tests until the first failure. A mutant
that no test notices *survives*. Results are kept in benchmarks/results/mutation.json
after every mutant, so that an interrupted run goes on where it stopped; a changed
module is tested anew.

mutmut and cosmic-ray were considered and left out: neither samples within a budget, neither has
operators for the direction of rounding (floor for ceil, the sign of an allowance), and cosmic-ray
starts an interpreter and imports SciPy for each mutant, which takes longer than most tests here.
"""

import argparse
import ast
import fcntl
import hashlib
import importlib.abc
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "mutation.json"
SECONDS = 60  # CPU time after which a mutant is left undecided: it counts as not killed
SEED = 1

# Test files that are asked for a random mutant of a module, the quickest and most telling first.
PROPERTIES, BINS = "test_properties.py", "test_properties_bins.py"
CORE = {
    "gaussian": ["test_gaussian.py"],
    "mixtures": ["test_mixtures.py", PROPERTIES],
    "accounting": ["test_accounting.py", PROPERTIES],
    "contour": ["test_contour.py", PROPERTIES],
    "rare": ["test_rare.py", PROPERTIES],
    "lattice": ["test_lattice.py", PROPERTIES],
    "_lattice_law": ["test_lattice.py", PROPERTIES],
    "_lattice_sum": ["test_lattice.py", PROPERTIES],
    "renyi": ["test_renyi.py", PROPERTIES],
    "conditional": ["test_conditional.py", BINS],
    "_tuples": ["test_tuples.py", BINS],
    "_betting": ["test_betting.py", BINS],
    "_certificate": ["test_tuples.py", BINS],
    "_lognormal": ["test_lognormal.py", BINS],
}

# ------------------------------------------------------------------ operators

_SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt,
}  # fmt: skip
_NAMES = {
    "floor": "ceil", "ceil": "floor", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
    "log1p": "expm1", "logaddexp": "maximum", "upper": "lower", "lower": "upper",
}  # fmt: skip
_WORDS = {"remove": "add", "add": "remove", "upper": "lower", "lower": "upper"}


def mutants_of(source):
    """[(line, what changes, mutated source)] of every place at which an operator applies."""
    tree = ast.parse(source)
    places = [(i, node) for i, node in enumerate(ast.walk(tree)) if _changes(node)]
    skipped = _lines_without_meaning(tree)
    return [
        (node.lineno, name, i, name)
        for i, node in places
        for name in _changes(node)
        if node.lineno not in skipped
    ]


def mutated(source, index, change):
    """The source with `change` applied to the node at `index` of the walk."""
    tree = ast.parse(source)
    node = next(node for i, node in enumerate(ast.walk(tree)) if i == index)
    _apply(node, change)
    return ast.unparse(ast.fix_missing_locations(tree))


def _changes(node):
    if isinstance(node, ast.BinOp) and type(node.op) in _SWAPS:
        return [f"{type(node.op).__name__} to {_SWAPS[type(node.op)].__name__}"]
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        return ["comparison turned round"]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return ["sign dropped"]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value != 0:
        return ["constant doubled", "constant halved"]
    if isinstance(node, ast.Constant) and node.value in _WORDS and isinstance(node.value, str):
        return [f"{node.value} to {_WORDS[node.value]}"]
    if isinstance(node, ast.Attribute) and node.attr in _NAMES and isinstance(node.ctx, ast.Load):
        return [f"{node.attr} to {_NAMES[node.attr]}"]
    if isinstance(node, ast.Name) and node.id in ("min", "max") and isinstance(node.ctx, ast.Load):
        return [f"{node.id} to {_NAMES[node.id]}"]
    if isinstance(node, ast.AugAssign) and type(node.op) in _SWAPS:
        return ["term dropped"]
    return []


def _apply(node, change):
    if isinstance(node, ast.BinOp):
        node.op = _SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = _SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        node.value = _WORDS[node.value]
    elif isinstance(node, ast.Constant):
        value = node.value * 2 if change.endswith("doubled") else node.value / 2
        node.value = max(int(value), 0) if isinstance(node.value, int) else value
    elif isinstance(node, ast.Attribute):
        node.attr = _NAMES[node.attr]
    elif isinstance(node, ast.Name):
        node.id = _NAMES[node.id]
    elif isinstance(node, ast.AugAssign):
        neutral = 0.0 if isinstance(node.op, (ast.Add, ast.Sub)) else 1.0
        node.value = ast.Constant(neutral)


def _lines_without_meaning(tree):
    """Lines of raised errors and docstrings: their words are no part of a number."""
    lines = set()
    for node in ast.walk(tree):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Raise) or text or isinstance(node, ast.JoinedStr):
            lines.update(range(node.lineno, node.end_lineno + 1))
    return lines


# ------------------------------------------------------------------ one mutant


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module of dplib from the mutated source, all others from this checkout."""

    def __init__(self, module, source):
        self.name, self.source = f"dplib.{module}", source

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name == self.name else None

    def exec_module(self, module):
        module.__file__ = str(ROOT / "dplib" / (self.name.split(".")[1] + ".py"))
        exec(compile(self.source, module.__file__, "exec"), module.__dict__)


class _Verdict:
    """Remembers the first test that fails."""

    def __init__(self):
        self.failed = None

    def pytest_sessionstart(self, session):
        # The first example that fails is enough: none is made smaller.
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings.get_profile("book"), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report):
        if report.failed and self.failed is None:
            self.failed = report.nodeid.removeprefix("tests/unit/")

    def pytest_collectreport(self, report):
        if report.failed and self.failed is None:
            self.failed = f"{report.nodeid.removeprefix('tests/unit/')} (import)"


def run_mutant(module, source, tests, seconds=SECONDS):
    """(verdict, CPU seconds): the first test that fails, "time", or None for a survivor."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1), os.dup2(silence, 2)
        import pytest

        sys.meta_path.insert(0, _Finder(module, source))
        verdict = _Verdict()
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:cov", "-p", "no:xdist"]
        status = pytest.main([*options, *(f"tests/unit/{test}" for test in tests)], plugins=[verdict])
        text = verdict.failed or ("" if status == 0 else f"pytest ended with status {int(status)}")
        os.write(into, text.encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        text = pipe.read().decode()
    _, status, used = os.wait4(child, 0)
    spent = used.ru_utime + used.ru_stime
    if os.WIFSIGNALED(status):
        stopped = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        text = "time" if stopped else f"signal {os.WTERMSIG(status)}"
    return text or None, round(spent, 1)


# ------------------------------------------------------------------ runs


def load():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"dangerous": {}, "sampled": {}}


def is_killed(found):
    """Whether a test failed; one that ran into the time limit says nothing."""
    return found["killed_by"] not in (None, "time")


def record(section, name, found):
    """Add one result to the file; several runs may share it."""
    with open(Path(tempfile.gettempdir()) / "dplib-mutation.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = load()
        if found is None:
            results[section].pop(name, None)
        else:
            results[section][name] = found
        temporary = RESULTS.with_suffix(".part")
        temporary.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        temporary.replace(RESULTS)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def source_of(module):
    return (ROOT / "dplib" / f"{module}.py").read_text()


def dangerous(part, parts, fresh, only):
    """Plant every mutant of the list whose result is not known; how many survive."""
    from mutants import DANGEROUS, apply

    names = {mutant.name for mutant in DANGEROUS}
    for name in load()["dangerous"].keys() - names:
        record("dangerous", name, None)
    for mutant in [mutant for mutant in DANGEROUS if not only or mutant.name in only][part::parts]:
        source = apply(mutant, source_of(mutant.module))
        key = digest(source + " ".join(mutant.tests))
        old = load()["dangerous"].get(mutant.name)
        if old and old["digest"] == key and is_killed(old) and not fresh:
            continue
        killed_by, spent = run_mutant(mutant.module, source, mutant.tests)
        found = {"module": mutant.module, "killed_by": killed_by, "cpu_seconds": spent, "digest": key}
        record("dangerous", mutant.name, found)
        tell(killed_by, spent, f"{mutant.module}: {mutant.name}")
    return sum(not is_killed(found) for found in load()["dangerous"].values())


def tell(killed_by, spent, what):
    print(f"{'killed  ' if killed_by else 'SURVIVED'} {spent:5.1f} s  {what}  [{killed_by}]", flush=True)


def sample():
    """All mutants of the core in a random order that is always the same: a prefix of it is a fair sample."""
    everything = []
    for module in CORE:
        source = source_of(module)
        for line, what, index, change in mutants_of(source):
            everything.append((module, line, what, index, change))
    random.Random(SEED).shuffle(everything)
    return everything


def sampled(part, parts, budget):
    used = 0.0
    for module, line, what, index, change in sample()[part::parts]:
        source = source_of(module)
        name = f"{module}:{index}:{what}"
        old = load()["sampled"].get(name)
        if old and old["digest"] == digest(source):
            continue
        if used > budget:
            break
        changed = mutated(source, index, change)
        if ast.unparse(ast.parse(source)) == changed:
            continue
        killed_by, spent = run_mutant(module, changed, CORE[module])
        used += spent
        found = {"line": line, "text": source.splitlines()[line - 1].strip(), "killed_by": killed_by}
        record("sampled", name, {**found, "cpu_seconds": spent, "digest": digest(source)})
        tell(killed_by, spent, f"{module}:{line} {what}")


def report(results):
    """The tables of benchmarks/results/mutation.txt."""
    from mutants import DANGEROUS, SURVIVORS

    known = [(mutant, results["dangerous"].get(mutant.name)) for mutant in DANGEROUS]
    killed = sum(is_killed(found) for _, found in known if found)
    run = sum(found is not None for _, found in known)
    lines = [f"Dangerous mutants (scripts/mutants.py): {len(known)}, of which {run} were run and {killed} killed by the tests named for them.", ""]
    for mutant, found in known:
        by = (found["killed_by"] or "SURVIVED") if found else "not run"
        lines.append(f"{mutant.module:14} {mutant.name:58} {by}")
    rows = results["sampled"]
    lines += ["", f"Random mutants: {len(rows)} of {len(sample())} places x changes, drawn with seed {SEED}.", ""]
    for module in CORE:
        mine = [found for name, found in rows.items() if name.split(":")[0] == module]
        lines.append(f"{module:14} {sum(map(is_killed, mine)):4} of {len(mine):4} killed")
    alive = {name: found for name, found in rows.items() if not is_killed(found)}
    total = len(rows) - len(alive)
    lines += [f"{'all':14} {total:4} of {len(rows):4} killed", "", "Survivors:", ""]
    for name, found in sorted(alive.items()):
        why = SURVIVORS.get(name, "not explained yet")
        lines += [f"{name} (line {found['line']}): {found['text']}", f"    {why}"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["dangerous", "sampled", "report"])
    parser.add_argument("names", nargs="*", help="dangerous: only these mutants")
    parser.add_argument("--budget", type=float, default=600, help="CPU seconds of a sampled run")
    parser.add_argument("--fresh", action="store_true", help="test again what was killed before")
    parser.add_argument("--part", default="1/1", help="2/4: the second quarter, so that four runs share the work")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    for path in ("scripts", "_ext", "tests", "tests/book"):
        sys.path.insert(0, str(ROOT / path))
    sys.path.insert(0, str(ROOT))
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    if arguments.what == "report":
        RESULTS.with_suffix(".txt").write_text(report(load()))
        return 0
    # Imported once, inherited by every fork: dplib is not among them.
    import hypothesis  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import scipy.integrate  # noqa: F401
    import scipy.optimize  # noqa: F401
    import scipy.special  # noqa: F401
    import scipy.stats  # noqa: F401

    part, parts = (int(number) for number in arguments.part.split("/"))
    survivors = 0
    if arguments.what == "dangerous":
        survivors = dangerous(part - 1, parts, arguments.fresh, arguments.names)
    else:
        sampled(part - 1, parts, arguments.budget)
    results = load()
    found = results["sampled"].values()
    print(f"dangerous: {len(results['dangerous'])} mutants, {survivors} not killed by their tests")
    print(f"sampled: {len(found)} of {len(sample())}, {sum(map(is_killed, found))} killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
