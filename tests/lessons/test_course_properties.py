"""Checks by property accept the example of the solutions notebook, and answer everything else with a sentence."""

import contextlib
import io

import course_notebooks
import notebook_tools as tools
import pytest

from dplib.lessons.course import properties
from dplib.lessons.course.verdicts import verdict

FOUND = [
    (solutions, exercise)
    for solutions in map(course_notebooks.read, tools.solutions())
    for exercise in solutions.exercises
    if exercise.rules.get("property")
]
IDS = [exercise.identifier for _, exercise in FOUND]


def example(solutions, exercise):
    """The answer of the solutions notebook; its cell needs nothing but the imports."""
    names = {"__name__": "__main__"}
    for cell in [*solutions.head, exercise.solution]:
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(tools.source(cell), exercise.identifier, "exec"), names)
    return names[exercise.answer]


@pytest.mark.parametrize("solutions, exercise", FOUND, ids=IDS)
def test_the_example_has_the_property(solutions, exercise):
    assert verdict({"property": True}, exercise.identifier, example(solutions, exercise)) == (True, "")


def test_an_exercise_without_a_function_is_named():
    with pytest.raises(LookupError, match="no function coins_9 for the exercise coins-9"):
        properties.find("coins-9")
