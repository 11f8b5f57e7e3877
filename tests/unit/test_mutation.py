"""The list of dangerous mutants fits the code, none on record survived, and the driver tells killed from survived."""

import ast
import json
import sys
from pathlib import Path

import mutants
import mutation
import pytest

RECORD = json.loads(mutation.RESULTS.read_text())


@pytest.mark.parametrize("mutant", mutants.DANGEROUS, ids=lambda mutant: mutant.name)
def test_dangerous_mutants_apply_and_none_survived(mutant):
    """Each stands in the code exactly once, changes it, names tests that exist, and was killed by one if it was run."""
    source = mutation.source_of(mutant.module)
    changed = mutants.apply(mutant, source)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    for test in mutant.tests:
        file, _, name = test.partition("[")[0].partition("::")
        assert f"def {name}" in (Path(__file__).parent / file).read_text()
    found = RECORD["dangerous"].get(mutant.name)
    assert found is None or mutation.is_killed(found)


def test_names_are_unique_and_the_record_has_no_others():
    names = [mutant.name for mutant in mutants.DANGEROUS]
    assert len(set(names)) == len(names) and set(RECORD["dangerous"]) <= set(names)


def test_operators_change_what_they_say():
    source = "def f(x):\n    return max(x + 1.5, 2) if x < 3 else -x\n"
    changed = {what: mutation.mutated(source, index, change) for _, what, index, change in mutation.mutants_of(source)}
    assert "max(x - 1.5, 2)" in changed["Add to Sub"]
    assert "min(x + 1.5, 2)" in changed["max to min"]
    assert "x >= 3" in changed["comparison turned round"]
    assert "else +x" in changed["sign dropped"]
    assert len(changed) == 6 and all(text != ast.unparse(ast.parse(source)) for text in changed.values())


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_run_tells_killed_from_survived(tmp_path):
    """In a fresh interpreter, where dplib has not been imported before the fork."""
    import subprocess

    code = (
        "import sys; sys.path.insert(0, 'scripts'); import mutation; source = mutation.source_of('_betting')\n"
        "tests = ['test_properties_bins.py::test_confidence_bounds']\n"
        "bad = source.replace('needed = (math.log(1 / failure_probability) +', 'needed = 0 * (1 +')\n"
        "print(mutation.run_mutant('_betting', bad, tests)[0], mutation.run_mutant('_betting', source, tests)[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=mutation.ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["test_properties_bins.py::test_confidence_bounds", "None"], done.stderr
