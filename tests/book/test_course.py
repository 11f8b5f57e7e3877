"""Exercises are what the solutions make; stubs fail their checks, solutions pass; the notebooks give nothing away."""

import json
import re
from pathlib import Path

import course
import course_answers
import course_example
import course_notebooks
import notebook_tools as tools
import pytest
import yaml

STEMS = course.stems(tools.ROOT)


def test_every_chapter_has_solutions():
    """Numbered from 1 on; the tour at the front and the symptoms have none, and a companion shares those of its chapter."""
    toc = yaml.safe_load((tools.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    pages = {Path(page["file"]) for part in toc["parts"] for page in part["chapters"]}
    chapters = {page.stem for page in pages if page.parent.name == "notebooks"} - {"00_tour", "20_symptoms"}
    assert {stem for stem in chapters if not stem.endswith("_in_depth")} == set(STEMS)


def test_no_two_chapters_name_their_exercises_alike():
    names = [exercise.identifier for stem in STEMS for exercise in course.load(tools.ROOT, stem).exercises]
    assert len(set(names)) == len(names)


def test_all_that_is_handed_out_is_what_the_solutions_make(capsys):
    """Exercises, answers, labs and the page that lists them; and nothing without solutions."""
    assert course.main(["exercises", "--check"]) == 0, capsys.readouterr().out


def test_the_list_of_the_example(tmp_path):
    course_example.write(tmp_path)
    assert course.disagreement(tmp_path, course_example.STEM) == "not made yet"
    assert made(tmp_path) == 2
    text = course.page(tmp_path).read_text()
    assert text.startswith("# Exercises\n") and text.endswith("The end.\n")
    assert "### 1. Coins" in text and "| `hockey-2` | Area | code | 2 |" in text
    assert "3 points · about 9 min" in text and "blob/main/notebooks/exercises/01_coins.ipynb" in text


@pytest.mark.parametrize("stem", STEMS)
def test_four_exercises_of_all_kinds(stem):
    solutions = course.load(tools.ROOT, stem)
    kinds = {exercise.rules["kind"] for exercise in solutions.exercises}
    assert len(solutions.exercises) >= 4 and kinds == set(course_notebooks.KINDS)


@pytest.mark.parametrize("stem", STEMS)
def test_header(stem):
    """Title, times, and the way back to the chapter."""
    title = tools.source(tools.read(tools.ROOT / "notebooks" / f"{stem}.ipynb")["cells"][0]).splitlines()[0]
    number, name = title.removeprefix("# ").split(". ", 1)
    head = tools.source(course.load(tools.ROOT, stem).head[0])
    assert head.startswith(f"# Exercises to chapter {number}: {name.strip()}\n")
    assert re.search(r"\*\*Working time\*\* \d+ min", head) and "**Run time** under 30 s" in head
    assert f"(../{stem}.ipynb)" in head


@pytest.mark.parametrize("stem", STEMS)
def test_each_stub_fails_its_check(stem):
    path = course.files(tools.ROOT, stem)[1]
    records = json.loads(course.files(tools.ROOT, stem)[2].read_text(encoding="utf-8"))["exercises"]
    assert course_answers.stub_problems(tools.read(path), records, path) == []


@pytest.mark.parametrize("stem", STEMS)
def test_exercises_give_nothing_away(stem):
    solutions, path = course.load(tools.ROOT, stem), course.files(tools.ROOT, stem)[1]
    text = "\n".join(tools.source(cell) for cell in tools.read(path)["cells"])
    metadata = json.dumps([cell["metadata"] for cell in tools.read(path)["cells"]])
    for exercise in solutions.exercises:
        for cell in [*exercise.explanation, *exercise.mistakes, *exercise.hidden_tests]:
            assert tools.source(cell) not in text
        for region in course_notebooks.REGION.finditer(tools.source(exercise.solution)):
            assert region.group(2).strip() not in text
        for cell in exercise.mistakes:
            assert cell["metadata"]["course"]["mistake"] not in text + metadata
    assert all(set(cell["metadata"]) <= {"nbgrader", "tags"} for cell in tools.read(path)["cells"])


@pytest.mark.parametrize("stem", STEMS)
def test_answers_have_the_accuracy_of_the_solutions(stem):
    """`dplib` takes it from the metadata, to which `course_notebooks` holds the statement."""
    stored = json.loads(course.files(tools.ROOT, stem)[2].read_text(encoding="utf-8"))["exercises"]
    for exercise in course.load(tools.ROOT, stem).exercises:
        for rule in ("digits", "tolerance", "arguments", "property"):
            assert stored[exercise.identifier].get(rule) == exercise.rules.get(rule), exercise.identifier


# --- the generator, on a made-up chapter -------------------------------------------------------------


def made(root):
    count = course.make(root, course_example.STEM)
    course.page(root).write_text(course.listed([course.load(root, course_example.STEM)], root))
    return count


def edit_exercises(root):
    path = course.files(root, course_example.STEM)[1]
    path.write_text(path.read_text().replace("your code here", "your answer"))


def edit_solution(root):
    made_cells = course_example.cells()
    made_cells["solution-1"]["source"] = made_cells["solution-1"]["source"].replace("1 / 8", "0.125")
    course_example.write(root, made_cells)


def edit_the_list(root):
    page = course.page(root)
    page.write_text(page.read_text().replace("| by hand | 1 |", "| by hand | 2 |"))


def remove_an_answer(root):
    path = course.files(root, course_example.STEM)[2]
    stored = json.loads(path.read_text())
    del stored["exercises"]["hockey-2"]
    path.write_text(json.dumps(stored))


@pytest.mark.parametrize("fault", [edit_exercises, edit_solution, edit_the_list, remove_an_answer])
def test_a_disagreement_is_noticed_and_mended(tmp_path, fault, capsys):
    course_example.write(tmp_path)
    made(tmp_path)
    assert course.main(["exercises", "--check", "--root", str(tmp_path)]) == 0
    fault(tmp_path)
    before = [path.read_bytes() for path in course.files(tmp_path, course_example.STEM)[1:]]
    assert course.main(["exercises", "--check", "--root", str(tmp_path)]) == 1
    assert [path.read_bytes() for path in course.files(tmp_path, course_example.STEM)[1:]] == before
    made(tmp_path)
    assert course.main(["exercises", "--check", "--root", str(tmp_path)]) == 0


# How the exercises of the made-up chapter may be wrong: [cell, what is changed in it, the message].
REFUSED = json.loads(Path(__file__).with_name("refused_exercises.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name, change, message", REFUSED)
def test_the_generator_refuses(tmp_path, name, change, message):
    made_cells = course_example.cells()
    cell = made_cells[name]
    for key, value in change.items():
        if key == "drop":
            del made_cells[name]
        elif key == "rules":
            rules = cell["metadata"]["course"] | value
            cell["metadata"]["course"] = {name: rule for name, rule in rules.items() if rule is not None}
        else:
            cell[key] = value
    course_example.write(tmp_path, made_cells)
    with pytest.raises(course_notebooks.CourseError, match=message):
        made(tmp_path)
    assert not course.files(tmp_path, course_example.STEM)[2].exists()


@pytest.mark.parametrize("said, problems", [("hockey-1: correct.\n", 0), ("hockey-1: not yet. No.\n", 1), ("", 1)])
def test_outputs_of_a_failing_solution_are_not_stored(said, problems):
    cell = course_example.cells()["check-1"]
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": said}] if said else []
    found = tools.output_problems({"cells": [cell]})
    assert len(found) == problems and all("the solution does not pass" in problem for problem in found)
