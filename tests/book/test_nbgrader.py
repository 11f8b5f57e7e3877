"""An assignment goes through nbgrader: handed out without solutions, graded, and returned."""

import json
import os
import subprocess
import sys

import course
import notebook_tools as tools
import pytest
from environment import COURSE_VENV

STEM = "01_hockey_stick"


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """(course folder, {student: {exercise: [points, of]}}). About 25 CPU seconds; the environment 15 more, the first time."""
    environment = os.environ | tools.kernel_environment()
    setup = [sys.executable, str(tools.ROOT / "tools" / "environment.py"), "course"]
    done = subprocess.run(setup, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path_factory.mktemp("course")
    script = tools.ROOT / "tests" / "book" / "graded_course.py"
    command = [str(COURSE_VENV / "bin" / "python"), str(script), STEM, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_points(graded):
    exercises = course.load(tools.ROOT, STEM).exercises
    functions = {exercise.identifier for exercise in exercises if "arguments" in exercise.rules}
    full = {exercise.identifier: exercise.rules["points"] for exercise in exercises}
    points = graded[1]
    assert functions and functions < set(full)
    assert points["own"] == {name: [value, value] for name, value in full.items()}
    assert points["wrong"] == {name: [0, value] for name, value in full.items()}
    assert points["copied"] == {name: [0 if name in functions else value, value] for name, value in full.items()}


@pytest.mark.slow
def test_what_students_get_holds_no_solution(graded):
    folder, _ = graded
    released = tools.read(folder / "release" / STEM / f"{STEM}.ipynb")
    text = "\n".join(tools.source(cell) for cell in released["cells"])
    assert "HIDDEN TESTS" not in text and "SOLUTION" not in text and "course.passes" not in text
    for exercise in course.load(tools.ROOT, STEM).exercises:
        assert tools.source(exercise.check) in text
        for cell in [*exercise.explanation, *exercise.mistakes, *exercise.hidden_tests]:
            assert tools.source(cell) not in text


@pytest.mark.slow
def test_feedback_is_a_page_with_the_hint(graded):
    page = (graded[0] / "feedback" / "wrong" / STEM / f"{STEM}.html").read_text(encoding="utf-8")
    assert "not yet." in page and "hockey-" in page
