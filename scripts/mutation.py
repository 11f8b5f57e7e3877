"""Mutation testing of the accounting core: does some test fail when a formula is wrong?

    python scripts/mutation.py dangerous                 the list of scripts/mutants.py, each against its tests
    python scripts/mutation.py index                     which tests run which line, and how long they take; about eight minutes
    python scripts/mutation.py sampled --budget 600      random mutants of each module, within so many CPU seconds
    python scripts/mutation.py again                     survivors without an explanation, against more tests
    python scripts/mutation.py control                   whether every test that killed passes on the unchanged module
    python scripts/mutation.py report                    benchmarks/results/mutation.txt from what is known

Every mutant is a copy of one module with one place changed. It is put in the place of that module
inside a forked process of its own, which then runs tests until the first failure. A mutant
that no test notices *survives*. Results are kept in benchmarks/results/mutation.json
after every mutant, so that an interrupted run goes on where it stopped; mutants of a changed
function are tested anew.

mutmut and cosmic-ray were considered and left out: neither samples within a budget, neither has
operators for the direction of rounding (floor for ceil, the sign of an allowance), and cosmic-ray
starts an interpreter and imports SciPy for each mutant, which takes longer than most tests here.
"""

import argparse
import ast
import fcntl
import importlib.machinery
import importlib.util
import json
import math
import os
import random
import sys
import tempfile
from pathlib import Path

import forked_tests
import library_files
import mutation_index
import one_move
from mutation_index import digest, file_of
from mutation_operators import functions, mutated, node_at, nodes_without_names, places

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "mutation.json"
SECONDS = 60  # CPU time after which a mutant is stopped: five times what its tests take otherwise, or more
SEED = 1

# The modules that mutants are drawn from, and the files whose tests are asked first for survivors.
PROPERTIES, BINS = "test_properties.py", "test_properties_bins.py"
CORE = {
    "gaussian": ["test_gaussian.py"],
    "mixtures": ["test_mixtures.py", PROPERTIES],
    "accounting": ["test_accounting.py", PROPERTIES],
    "contour": ["test_contour.py", PROPERTIES],
    "_families": ["test_contour.py", PROPERTIES],
    "rare": ["test_rare.py", PROPERTIES],
    "_lines": ["test_rare.py", PROPERTIES],
    "lattice": ["test_lattice.py", PROPERTIES],
    "_lattice_law": ["test_lattice.py", PROPERTIES],
    "_lattice_sum": ["test_lattice.py", PROPERTIES],
    "renyi": ["test_renyi.py", PROPERTIES],
    "_moments": ["test_renyi.py", PROPERTIES],
    "one_step": ["test_one_step.py"],
    "calibrate": ["test_calibrate.py"],
    "mechanisms": ["test_mechanisms.py", PROPERTIES],
    "_matrix_bounds": ["test_matrix_mechanism.py", BINS],
    "_few": ["test_few_participations.py", BINS],
    "_composed_rows": ["test_matrix_mechanism.py", BINS],
    "_row_sum": ["test_row_sum.py", BINS],
    "conditional": ["test_conditional.py", BINS],
    "_tails": ["test_conditional.py", BINS],
    "_row_law": ["test_row_law.py", BINS],
    "_tuples": ["test_tuples.py", BINS],
    "_betting": ["test_betting.py", BINS],
    "_certificate": ["test_tuples.py", BINS],
    "_lognormal": ["test_lognormal.py", BINS],
}

# The test files whose tests a random mutant may meet.
INDEXED = sorted(
    {file for files in CORE.values() for file in files}
    | {"test_statements.py", "test_stated_errors.py", "test_families.py", "test_accountant_theorems.py", "test_renyi_statements.py"}
    | {"test_mmcc_statements.py", "test_monte_carlo_statements.py", "test_subsampling_statements.py", "test_bins.py", "test_bin_statements.py"}
    | {"test_balls_in_bins.py", "test_montecarlo.py", "test_accounting_inputs.py", "test_truth_table.py", "test_points.py", "test_range.py"}
)

# ------------------------------------------------------------------ one mutant


class _Mutated(importlib.machinery.SourceFileLoader):
    """Loads a module of dplib from the mutated source."""

    def __init__(self, name, path, source):
        super().__init__(name, str(path))
        self.source = source

    def get_code(self, fullname):
        return compile(self.source, self.path, "exec")


class _Planter(forked_tests.Planter):
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
            self.failed = report.nodeid.removeprefix("tests/unit/")

    def pytest_collectreport(self, report):
        if report.failed and self.failed is None:
            self.failed = f"{report.nodeid.removeprefix('tests/unit/')} (import)"

    def outcome(self, status):
        return self.failed or ("" if status == 0 else f"{_NO_VERDICT} {status}")


_NO_VERDICT = "pytest ended with status"
_MEMORY = 6 << 30


class NoSuchTest(Exception):
    """pytest found no test of one of the names."""


def run_mutant(module, source, tests, seconds=SECONDS, function=""):
    """(verdict, CPU seconds): the first test that fails, "time", or None for a survivor."""
    planter = _Planter(file_of(module, function), source)
    text, spent = forked_tests.run(planter, [f"tests/unit/{test}" for test in tests], seconds, _MEMORY)
    if text.startswith((_NO_VERDICT, forked_tests.NOT_RUN)):
        raise NoSuchTest(f"{text} for {module}: is there a test in the list or in the index that is gone?")
    return text or None, spent


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
        one_move.write_text(RESULTS, json.dumps(results, indent=1, sort_keys=True) + "\n")


def source_of(module, function=""):
    return file_of(module, function).read_text(encoding="utf-8")


def dangerous(part, parts, fresh, only):
    """Plant every mutant of the list whose result is not known; how many survive."""
    from mutants import DANGEROUS, apply

    names = {mutant.name for mutant in DANGEROUS}
    for name in load()["dangerous"].keys() - names:
        record("dangerous", name, None)
    for mutant in [mutant for mutant in DANGEROUS if not only or mutant.name in only][part::parts]:
        before = source_of(mutant.module, mutant.function)
        source = apply(mutant, before)
        key = digest(_what_changed(before, source) + " ".join(mutant.tests))
        old = load()["dangerous"].get(mutant.name)
        if old and old["digest"] == key and is_killed(old) and not fresh:
            continue
        killed_by, spent = run_mutant(mutant.module, source, mutant.tests, function=mutant.function)
        found = {"module": mutant.module, "killed_by": killed_by, "cpu_seconds": spent, "digest": key}
        found["replaced"] = what_is_replaced(mutant)
        record("dangerous", mutant.name, found)
        tell(killed_by, spent, f"{mutant.module}: {mutant.name}")
    return sum(not is_killed(found) for found in load()["dangerous"].values())


def what_is_replaced(mutant):
    """{place: what stands there}, without names of variables and modules: does the place hold what it held?"""
    tree = ast.parse(source_of(mutant.module, mutant.function))
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


def tell(killed_by, spent, what):
    print(f"{'killed  ' if killed_by else 'SURVIVED'} {spent:5.1f} s  {what}  [{killed_by}]", flush=True)


def sample(module):
    """All mutants of a module in a random order that is always the same, with names: a prefix of it is a fair sample."""
    source = source_of(module)
    nodes = dict(functions(ast.parse(source)).values())
    keys = {function: digest(ast.unparse(node)) for function, node in nodes.items()}
    found = places(source)
    random.Random(f"{SEED} {module}").shuffle(found)
    return [(f"{module}.{place.function}:{place.number}:{place.change}", keys[place.function], place) for place in found]


def sampled(part, parts, budget, each):
    """Run the first `each` mutants of every module's sample, one module after the other in turn."""
    used, index = 0.0, mutation_index.load()
    samples = {module: sample(module) for module in CORE}
    known = {name: key for found in samples.values() for name, key, _ in found}
    for name, found in load()["sampled"].items():
        if known.get(name) != found["digest"]:
            record("sampled", name, None)
    # Changes that make no difference are no mutants.
    turns = [(module, *found[rank]) for rank in range(each) for module, found in samples.items() if rank < len(found)]
    done = load()["sampled"]
    for module, name, key, place in turns[part::parts]:
        if name in done:
            continue
        if used > budget:
            break
        used += _one_sampled(index, module, name, key, place)


def _one_sampled(index, module, name, key, place, more=()):
    """Plant one mutant and record what happens; the CPU seconds that it took."""
    source = source_of(module)
    changed = mutated(source, place)
    if changed is None:
        return 0.0
    node = dict(functions(ast.parse(source)).values())[place.function]
    tests = more or mutation_index.tests_for(index, module, place.function, node, place.lines)
    try:
        # Whole files may take minutes without the mutant too: that is no verdict.
        seconds = 10 * SECONDS if more else SECONDS
        killed_by, spent = run_mutant(module, changed, tests, seconds) if tests else (None, 0.0)
    except NoSuchTest:
        # The index knows cases that have other names now: all cases of these tests.
        tests = list(dict.fromkeys(test.partition("[")[0] for test in tests))
        killed_by, spent = run_mutant(module, changed, tests)
    found = {"line": place.line, "text": source.splitlines()[place.line - 1].strip(), "tests": len(tests)}
    record("sampled", name, {**found, "killed_by": killed_by, "cpu_seconds": spent, "digest": key})
    tell(killed_by, spent, f"{name} (line {place.line})")
    return spent


def again(part, parts, budget):
    """Survivors that nothing explains, against the whole test files of their module."""
    from mutants import SURVIVORS

    used, alive = 0.0, []
    for module in CORE:
        alive += [(module, *one) for one in sample(module) if one[0] in load()["sampled"]]
    for module, name, key, place in alive[part::parts]:
        if load()["sampled"][name]["killed_by"] is None and not explained(name, SURVIVORS) and used <= budget:
            used += _one_sampled({}, module, name, key, place, more=CORE[module])


def control():
    """Run all tests that killed a mutant of a module on the unchanged module; how many modules fail."""
    wrong, results = 0, load()
    rows = [(found["module"], found["killed_by"]) for found in results["dangerous"].values()]
    rows += [(name.partition(".")[0], found["killed_by"]) for name, found in results["sampled"].items()]
    for module in sorted({module for module, _ in rows}):
        tests = sorted({test.partition("[")[0] for other, test in rows if other == module and test and "::" in test})
        if tests:
            killed_by, spent = run_mutant(module, ast.unparse(ast.parse(source_of(module))), tests, seconds=600)
            wrong += killed_by is not None
            print(f"{module}: {len(tests)} tests, {spent} s: {killed_by or 'all pass'}", flush=True)
    return wrong


def explained(name, survivors):
    """The reason given for a survivor: its own, or that of the function it stands in."""
    return survivors.get(name) or survivors.get(name.partition(":")[0])


def interval(killed, run):
    """Clopper and Pearson's 95% interval of a share."""
    from scipy.stats import beta

    low = beta.ppf(0.025, killed, run - killed + 1) if killed else 0.0
    high = beta.ppf(0.975, killed + 1, run - killed) if killed < run else 1.0
    return f"{100 * low:.0f}-{100 * high:.0f}%"


def score(rows):
    """{what: number} for a dict of results: run, killed by a test, stopped by time, survivors, those explained."""
    from mutants import SURVIVORS

    alive = [name for name, found in rows.items() if found["killed_by"] is None]
    reasons = sum(explained(name, SURVIVORS) is not None for name in alive)
    stopped = sum(found["killed_by"] == "time" for found in rows.values())
    killed = len(rows) - len(alive)
    return {"run": len(rows), "killed": killed, "stopped": stopped, "explained": reasons, "open": len(alive) - reasons}


def report(results):
    """The tables of benchmarks/results/mutation.txt."""
    from mutants import DANGEROUS, SURVIVORS

    known = [(mutant, results["dangerous"].get(mutant.name)) for mutant in DANGEROUS]
    killed = sum(is_killed(found) for _, found in known if found)
    run = sum(found is not None for _, found in known)
    lines = [f"Dangerous mutants (scripts/mutants.py): {len(known)}, of which {run} were run and {killed} killed by the tests named for them.", ""]
    for mutant, found in known:
        by = (found["killed_by"] or "SURVIVED") if found else "not run"
        lines.append(f"{mutant.module:14} {mutant.name:62} {by}")
    lines += ["", *_sampled_table(results["sampled"]), ""]
    alive = {name: found for name, found in results["sampled"].items() if found["killed_by"] is None}
    groups = {}
    for name in sorted(alive):
        groups.setdefault(explained(name, SURVIVORS) or "Not explained.", []).append(name)
    lines += ["Survivors, by the reason why each is harmless:", ""]
    for reason, names in sorted(groups.items()):
        lines.append(reason)
        lines += [f"    {name}  line {alive[name]['line']}: {alive[name]['text']}" for name in names]
    return "\n".join(lines) + "\n"


def _sampled_table(rows):
    """One line for each module, and the whole: scores with intervals."""
    lines = [
        f"Random mutants, drawn from each module with seed {SEED}. `killed` counts those that were stopped after {SECONDS} s of",
        f"CPU time, although their tests take about {mutation_index.PATIENCE:.0f} s or less; `score` is killed over run, with its 95% interval.",
        "Survivors for which a test was written are among the killed. `equivalent` are survivors with an explanation below,",
        "`without` is the score over the others.",
        "",
        f"{'module':14} {'possible':>8} {'run':>5} {'killed':>6} {'by time':>7} {'equivalent':>10} {'open':>5}  {'score':>5}  {'interval':9} without",
    ]
    total, weighted, variance, everything = {}, 0.0, 0.0, 0
    for module in CORE:
        mine = {name: found for name, found in rows.items() if name.startswith(module + ".")}
        found, size = score(mine), len(places(source_of(module)))
        total = {what: total.get(what, 0) + number for what, number in found.items()}
        if found["run"]:
            lines.append(_row(module, size, found))
            share = found["killed"] / found["run"]
            weighted, everything = weighted + size * share, everything + size
            variance += size**2 * share * (1 - share) / found["run"]
    if total.get("run"):
        error = 1.96 * math.sqrt(variance) / everything
        lines.append(_row("all", everything, total))
        lines.append(f"weighted by what is possible in each module: {100 * weighted / everything:.1f}% +- {100 * error:.1f}%")
    return lines


def _row(name, size, found):
    run, killed = found["run"], found["killed"]
    without = killed / max(run - found["explained"], 1)
    return (
        f"{name:14} {size:8} {run:5} {killed:6} {found['stopped']:7} {found['explained']:10} {found['open']:5}"
        f"  {100 * killed / run:4.0f}%  {interval(killed, run):9} {100 * without:4.0f}%"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["dangerous", "index", "sampled", "again", "control", "report"])
    parser.add_argument("names", nargs="*", help="dangerous: only these mutants; index: only these test files")
    parser.add_argument("--budget", type=float, default=600, help="CPU seconds of a sampled run")
    parser.add_argument("--each", type=int, default=40, help="sampled: so many mutants of each module")
    parser.add_argument("--fresh", action="store_true", help="test again what was killed before")
    parser.add_argument("--part", default="1/1", help="2/4: the second quarter, so that four runs share the work")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    for path in ("scripts", "_ext", "tests", "tests/book"):
        sys.path.insert(0, str(ROOT / path))
    sys.path.insert(0, str(ROOT))
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # half a second for each mutant, and none is needed
    if arguments.what == "report":
        one_move.write_text(RESULTS.with_suffix(".txt"), report(load()))
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
    if arguments.what == "dangerous":
        survivors = dangerous(part - 1, parts, arguments.fresh, arguments.names)
        print(f"dangerous: {len(load()['dangerous'])} mutants, {survivors} not killed by their tests")
        return 1 if survivors else 0
    if arguments.what == "index" or arguments.what == "sampled" and not mutation_index.INDEX.exists():
        for file in arguments.names or INDEXED:
            mutation_index.build([file])
    if arguments.what == "index":
        return 0
    if arguments.what == "control":
        return control()
    if arguments.what == "sampled":
        sampled(part - 1, parts, arguments.budget, arguments.each)
    else:
        again(part - 1, parts, arguments.budget)
    print(f"sampled: {score(load()['sampled'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
