"""The lists of faults fit the code and the tests, none on record survived, and the runner tells killed from survived."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import mutants
import mutation
import pytest
from mutants import FILES

ROOT = Path(__file__).resolve().parents[2]
RECORD = mutation.load(mutation.RESULTS)["dangerous"]


@functools.cache
def plain(module):
    """The module without comments."""
    return ast.unparse(ast.parse(mutation.source_of(module)))


@functools.cache
def text_of(file):
    return (ROOT / FILES[file]).read_text(encoding="utf-8")


@pytest.mark.parametrize("mutant", mutants.DANGEROUS, ids=lambda mutant: mutant.name)
def test_dangerous_mutants_apply_and_none_survived(mutant):
    """Each has its place, changes it, names tests that exist, and was killed by one if it was run."""
    changed = mutants.apply(mutant, mutation.source_of(mutant.module))
    assert changed != plain(mutant.module)
    for test in mutant.tests:
        file, _, name = test.partition("[")[0].partition("::")
        assert f"def {name}" in text_of(file)
    found = RECORD.get(mutant.name)
    assert found is None or mutation.is_killed(found)
    # Another node is in this place now: look whether it is still this mutant, and run it again.
    assert found is None or mutation.what_is_replaced(mutant) == found["replaced"]


def test_names_are_unique_and_the_record_has_no_others():
    names = [mutant.name for mutant in mutants.DANGEROUS]
    assert len(set(names)) == len(names) and set(RECORD) <= set(names)


@pytest.mark.trust
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_run_tells_killed_from_survived(tmp_path):
    """In a fresh interpreter, where dplib has not been imported before the fork."""
    code = (
        "import sys; sys.path.insert(0, 'tests/mutants'); import mutation; source = mutation.source_of('balls_in_bins/confidence_bounds')\n"
        "tests = ['test_properties_bins.py::test_confidence_bounds']\n"
        "bad = source.replace('needed = (-math.log(failure_probability) +', 'needed = 0 * (1 +')\n"
        "print(mutation.run_mutant('balls_in_bins/confidence_bounds', bad, tests)[0], mutation.run_mutant('balls_in_bins/confidence_bounds', source, tests)[0])\n"
        "source, tests = mutation.source_of('lessons/studies'), ['test_studies.py::test_tables_and_columns']  # a package\n"
        "bad = source.replace('return json.loads(', 'return dict.fromkeys(')\n"
        "print(mutation.run_mutant('lessons/studies', bad, tests)[0], mutation.run_mutant('lessons/studies', source, tests)[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=mutation.ROOT, capture_output=True, text=True)
    killed = ["test_properties_bins.py::test_confidence_bounds", "test_studies.py::test_tables_and_columns"]
    assert done.stdout.split() == [killed[0], "None", killed[1], "None"], done.stderr


# --- false statements of the theorem index --------------------------------------------------------------

def test_every_named_test_was_killed_by_every_mutation():
    """No test of the index without a mutation, none that survived, no record of another text."""
    assert mutation.problems() == []
