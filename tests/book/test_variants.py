"""Exercises with other numbers: the same exercises as in the book, keys apart, marks without running what came back."""

import contextlib
import io
import json
import math

import course
import course_notebooks
import course_variants as variants
import notebook_tools as tools
import pytest
import variant_exercises
from nbformat.v4 import new_output

from dplib.lessons.course import compare

CASES = [pytest.param(exercise, id=exercise.name) for exercise in variant_exercises.EXERCISES]
FAST = ("group-1", "last-iterate-4", "matrix-4", "bins-1", "group-3")


def recorded():
    """{exercise: record} of all answers of the book."""
    found = {}
    for stem in course.stems(tools.ROOT):
        found |= json.loads(course.files(tools.ROOT, stem)[2].read_text(encoding="utf-8"))["exercises"]
    return found


@pytest.mark.parametrize("exercise", CASES)
def test_with_the_numbers_of_the_book_the_key_is_the_answer_of_the_book(exercise):
    """The key and the solutions notebook are two programs. Where a variant asks for a part, that part is compared."""
    stored = recorded()[exercise.name]
    right = [part for part in compare.leaves(stored["right"]) if isinstance(part, float)]
    key = variants.record(exercise, exercise.original)
    assert key["digits"] == stored["digits"] == exercise.digits
    place = {"subsampling-4": slice(4), "which-accountant-5": slice(1, 2)}.get(exercise.name, slice(None))
    assert len(key["right"]) == len(right[place])
    for mine, book in zip(key["right"], right[place]):
        assert math.isclose(mine, book, rel_tol=1e-6)


@pytest.mark.parametrize("exercise", CASES)
def test_statements(exercise):
    """Each number has its place, each choice its type, and the digits are said; no number of the key's is typed in."""
    assert set(exercise.original) == set(exercise.choices)
    for name, choices in exercise.choices.items():
        assert len(set(choices)) == len(choices) and {type(choice) for choice in choices} == {type(exercise.original[name])}
    assert math.prod(map(len, exercise.choices.values())) >= 6
    for numbers in (exercise.original, variants.drawn(exercise, "anna", "2026")):
        text = variants.statement(exercise, numbers)
        assert "<<" not in text and ">>" not in text
        assert f"{course_notebooks.DIGITS[exercise.digits]} digits" in text
        for name, value in numbers.items():
            assert variants.in_words(value) in text or str(value) in text, name


@pytest.mark.parametrize("name", FAST)
def test_other_numbers_have_another_key(name):
    """And a finite, positive one that does not agree with that of the book to the digits that are asked for."""
    [exercise] = variants.known([name])
    original = variants.record(exercise, exercise.original)
    seen = []
    for student in ("anna", "ben", "chen", "dora", "emil"):
        numbers = variants.drawn(exercise, student, "2026")
        key = variants.record(exercise, numbers)
        assert all(math.isfinite(value) and value > 0 for value in key["right"])
        assert not variants.is_right(original, key["right"]), numbers
        seen.append(tuple(key["right"]))
    assert len(set(seen)) >= 3


def test_the_same_seed_draws_the_same_numbers():
    for exercise in variant_exercises.EXERCISES:
        assert variants.drawn(exercise, "anna", "2026") == variants.drawn(exercise, "anna", "2026") != exercise.original
    first, second = ([variants.drawn(e, "anna", seed) for e in variant_exercises.EXERCISES] for seed in ("2026", "2027"))
    assert first != second


def handed_in(folder, student, keys, change=lambda name, right: right):
    """A submitted notebook that printed the right answers, changed."""
    key = json.loads((keys / f"{student}.json").read_text())
    sheet = {name: change(name, part["right"]) for name, part in key["exercises"].items()}
    notebook = tools.read(folder / f"{student}.ipynb")
    notebook["cells"][-1]["outputs"] = [new_output("stream", name="stdout", text=f"ANSWERS {json.dumps(sheet)}\n")]
    tools.write(notebook, folder / f"{student}.ipynb")


@pytest.fixture
def made(tmp_path):
    students, out, keys = tmp_path / "students.txt", tmp_path / "out", tmp_path / "keys"
    students.write_text("anna\nben\n")
    command = ["variants", "--students", str(students), "--seed", "secret", "--keys", str(keys), "--output", str(out)]
    assert course.main([*command, "group-1", "bins-1"]) == 0
    return out, keys


def test_nothing_of_the_key_is_handed_out(made):
    out, keys = made
    for student in ("anna", "ben"):
        text = (out / f"{student}.ipynb").read_text()
        key = json.loads((keys / f"{student}.json").read_text())
        assert list(key["exercises"]) == ["group-1", "bins-1"]
        for part in key["exercises"].values():
            assert not any(f"{value:.4g}" in text for value in part["right"])
        assert "secret" not in text
    assert sorted(path.name for path in out.iterdir()) == ["anna.ipynb", "ben.ipynb"]


def test_a_notebook_runs_and_prints_its_line(made):
    """With the answers of a student who calls the library, and without any."""
    out, _ = made
    cells = tools.code_cells(tools.read(out / "anna.ipynb"))
    for answer, expected in (("None", None), ("(0.5, 0.25)", [0.5, 0.25])):
        names, printed = {}, io.StringIO()
        with contextlib.redirect_stdout(printed):
            for cell in cells:
                exec(compile(tools.source(cell).replace("answer_1 = None", f"answer_1 = {answer}"), "cell", "exec"), names)
        assert json.loads(printed.getvalue().removeprefix("ANSWERS ")) == {"group-1": expected, "bins-1": None}


def test_marks(made, capsys):
    out, keys = made
    handed_in(out, "anna", keys, lambda name, right: [float(f"{value:.4g}") for value in right])
    handed_in(out, "ben", keys, lambda name, right: [value * 1.01 for value in right] if name == "bins-1" else None)
    capsys.readouterr()
    assert course.main(["mark", "--keys", str(keys), "--submitted", str(out)]) == 0
    assert capsys.readouterr().out.splitlines() == ["student,group-1,bins-1,right", "anna,1,1,2", "ben,0,0,0"]
