"""The list of dangerous mutants fits the code, none on record survived, and the driver tells killed from survived."""

import ast
import functools
import json
import sys
from pathlib import Path

import library_files
import mutants
import mutation
import mutation_index
import mutation_operators
import pytest

RECORD = json.loads(mutation.RESULTS.read_text())


@functools.cache
def plain(module, function):
    """The module without comments."""
    return ast.unparse(ast.parse(mutation.source_of(module, function)))


@functools.cache
def text_of(file):
    return (Path(__file__).parent / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("mutant", mutants.DANGEROUS, ids=lambda mutant: mutant.name)
def test_dangerous_mutants_apply_and_none_survived(mutant):
    """Each has its place, changes it, names tests that exist, and was killed by one if it was run."""
    changed = mutants.apply(mutant, mutation.source_of(mutant.module, mutant.function))
    assert changed != plain(mutant.module, mutant.function)
    for test in mutant.tests:
        file, _, name = test.partition("[")[0].partition("::")
        assert f"def {name}" in text_of(file)
    found = RECORD["dangerous"].get(mutant.name)
    assert found is None or mutation.is_killed(found)
    # Another node is in this place now: look whether it is still this mutant, and run it again.
    assert found is None or mutation.what_is_replaced(mutant) == found["replaced"]


def test_names_are_unique_and_the_record_has_no_others():
    names = [mutant.name for mutant in mutants.DANGEROUS]
    assert len(set(names)) == len(names) and set(RECORD["dangerous"]) <= set(names)


def test_explanations_are_those_of_survivors():
    """Each reason belongs to a mutant, or to a function with one, that no test noticed."""
    alive = [name for name, found in RECORD["sampled"].items() if found["killed_by"] is None]
    for key in mutants.SURVIVORS:
        assert any(name == key or name.startswith(key + ":") for name in alive), key


SOURCE = '''
LIMIT = 4


class Half:
    """2 * x is no code."""

    def of(self, x):
        return max(x + 1.5, 2) if x < 3 else -x
'''


def test_a_place_is_a_node_of_the_tree():
    """Whatever is before it in the file, and however it is written."""
    changes = {"Call max": "_.args[1] + _.args[0].left", "UnaryOp USub": "_.operand ** 2"}
    changed = mutation_operators.replaced(SOURCE, "Half.of", changes)
    assert "return 2 + x if x < 3 else x ** 2" in changed
    again = SOURCE.replace("LIMIT = 4", "def first(x):\n    return max(-x, 1)\n\n").replace("x + 1.5, 2", "(x\n + 1.50), 2")
    assert "return 2 + x if x < 3 else x ** 2" in mutation_operators.replaced(again, "Half.of", changes)
    assert "max(-x, 1)" in mutation_operators.replaced(again, "Half.of", changes)
    assert "LIMIT = 4 + 1" in mutation_operators.replaced(SOURCE, "", {"Constant 4": "_ + 1"})
    assert "LIMIT" not in mutation_operators.replaced(SOURCE, "", {"Assign": ""})
    assert "x < 3" in mutation_operators.replaced(SOURCE, "Half.of", {"Name x#3": "x"})
    for function, place in (("Half.of", "Name x"), ("Half.of", "Name x#9"), ("Half", "Call max"), ("Half.off", "Call max")):
        with pytest.raises(LookupError, match=place.partition("#")[0]):
            mutation_operators.replaced(SOURCE, function, {place: "0"})


def test_what_stood_in_a_place_is_told_without_names():
    tree = ast.parse(SOURCE)
    shown = {place: mutation_operators.nodes_without_names(mutation_operators.node_at(tree, "Half.of", place)) for place in ("BinOp Add", "Call max")}
    assert shown == {"BinOp Add": "_ + 1.5", "Call max": "_(_ + 1.5, 2)"}
    assert "Half" in ast.unparse(tree) and "max(x + 1.5, 2)" in ast.unparse(tree)


def test_a_module_that_was_moved_is_found(tmp_path, monkeypatch):
    library = tmp_path / "dplib"
    (library / "room").mkdir(parents=True)
    monkeypatch.setattr(library_files, "ROOT", tmp_path)
    (library / "contour.py").write_text(SOURCE)
    assert mutation.file_of("contour") == library / "contour.py"
    (library / "contour.py").rename(library / "room" / "contour.py")
    assert mutation.file_of("contour") == mutation.file_of("room/contour") == library / "room" / "contour.py"
    (library / "room" / "contour.py").rename(library / "room" / "lines.py")
    assert mutation.file_of("contour", "Half.of") == library / "room" / "lines.py"
    assert mutation_index.module_of(library / "room" / "lines.py") == "room/lines"
    with pytest.raises(LookupError, match="0 modules 'contour'"):
        mutation.file_of("contour", "Half.off")
    (library / "room" / "lines.py").rename(library / "room" / "__init__.py")
    assert mutation.file_of("room") == library / "room" / "__init__.py"
    (library / "half.py").write_text(SOURCE)
    with pytest.raises(LookupError, match="2 modules"):
        mutation.file_of("contour", "Half.of")


def test_operators_change_what_they_say():
    found = {place.change: place for place in mutation_operators.places(SOURCE)}
    changed = {change: mutation_operators.mutated(SOURCE, place) for change, place in found.items()}
    assert "max(x - 1.5, 2)" in changed["Add to Sub"]
    assert "min(x + 1.5, 2)" in changed["max to min"]
    assert "x >= 3" in changed["comparison turned round"]
    assert "else +x" in changed["sign dropped"]
    assert len(changed) == 6 and all(text != ast.unparse(ast.parse(SOURCE)) for text in changed.values())
    names = [(place.function, place.line) for place in mutation_operators.places(SOURCE)]
    assert set(names) == {("", 2), ("Half.of", 9)}


def test_a_mutant_meets_the_tests_that_run_its_line_quickest_first():
    nodes = dict(mutation_operators.functions(ast.parse(SOURCE)).values())
    node, key = nodes["Half.of"], mutation_index.digest(ast.unparse(nodes["Half.of"]))
    seconds = {"tests/unit/test_a.py::slow": 3.0, "tests/unit/test_a.py::quick": 0.1, "tests/unit/test_a.py::far": 0.2}
    lines = {"1": ["tests/unit/test_a.py::slow", "tests/unit/test_a.py::quick"], "0": ["tests/unit/test_a.py::far"]}
    index = {"tests": seconds, "functions": {"module": {"Half.of": {"digest": key, "lines": lines}}}}
    asked = lambda name, node, lines: mutation_index.tests_for(index, "module", name, node, lines)
    assert asked("Half.of", node, range(9, 10)) == ["test_a.py::quick", "test_a.py::slow"]
    # All tests of the class for a line of it, and of a function that is no longer the one that was indexed.
    everything = ["test_a.py::quick", "test_a.py::far", "test_a.py::slow"]
    assert asked("Half", nodes["Half"], range(5, 6)) == everything
    index["functions"]["module"]["Half.of"]["digest"] = "old"
    assert asked("Half.of", node, range(9, 10)) == everything


def test_scores_and_their_intervals():
    rows = {"gaussian.f:1:x": {"killed_by": "a test"}, "gaussian.f:2:x": {"killed_by": "time"}, "gaussian.g:1:x": {"killed_by": None}}
    assert mutation.score(rows) == {"run": 3, "killed": 2, "stopped": 1, "explained": 0, "open": 1}
    assert mutation.interval(38, 40) == "83-99%" and mutation.interval(40, 40) == "91-100%"


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_run_tells_killed_from_survived(tmp_path):
    """In a fresh interpreter, where dplib has not been imported before the fork."""
    import subprocess

    code = (
        "import sys; sys.path.insert(0, 'scripts'); import mutation; source = mutation.source_of('_betting')\n"
        "tests = ['test_properties_bins.py::test_confidence_bounds']\n"
        "bad = source.replace('needed = (math.log(1 / failure_probability) +', 'needed = 0 * (1 +')\n"
        "print(mutation.run_mutant('_betting', bad, tests)[0], mutation.run_mutant('_betting', source, tests)[0])\n"
        "source, tests = mutation.source_of('studies'), ['test_studies.py::test_tables_and_columns']  # a package\n"
        "bad = source.replace('return json.loads(', 'return dict.fromkeys(')\n"
        "print(mutation.run_mutant('studies', bad, tests)[0], mutation.run_mutant('studies', source, tests)[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=mutation.ROOT, capture_output=True, text=True)
    killed = ["test_properties_bins.py::test_confidence_bounds", "test_studies.py::test_tables_and_columns"]
    assert done.stdout.split() == [killed[0], "None", killed[1], "None"], done.stderr
