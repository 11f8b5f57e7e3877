"""Assignments for nbgrader: a course folder with source and release of every chapter.

Runs in .venv-course. nbgrader keeps the source, the students' version, the gradebook and, later, what the
students hand in, all in one folder; that folder is never emptied here.
"""

import logging
import os
import sys
from pathlib import Path

import course_notebooks as course
import notebook_tools as tools
from tqdm import tqdm

CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "privacy-amplification"
c.Execute.timeout = 120  # seconds for one cell of a submission
c.NbGrader.logfile = ""
"""


def graded_check(exercise):
    """The check that students see, followed by the tests that they do not see."""
    hidden = [f'assert course.passes("{exercise.identifier}", {exercise.answer})']
    hidden += [tools.source(cell).strip() for cell in exercise.hidden_tests]
    lines = [tools.source(exercise.check).strip(), "### BEGIN HIDDEN TESTS", *hidden, "### END HIDDEN TESTS"]
    return "\n".join(lines)


def source_notebook(solutions):
    """nbgrader's source: solutions between its markers, checks as tests with points."""
    cells = [course.marked(cell, f"head-{number}") for number, cell in enumerate(solutions.head, start=1)]
    for exercise in solutions.exercises:
        name = exercise.identifier
        cells.append(course.marked(exercise.statement, f"{name}-statement"))
        cells.append(course.marked(exercise.solution, name, solution=True))
        cells.append(course.marked(exercise.check, f"{name}-check", graded_check(exercise), points=exercise.rules["points"]))
    return tools.made(cells)


def gradebook(folder):
    """nbgrader's programming interface on a course folder."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import PyFileConfigLoader

    # nbgrader calls its helpers by name.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    config = PyFileConfigLoader("nbgrader_config.py", path=str(folder)).load_config()
    config.CourseDirectory.root = str(folder)
    api = NbGraderAPI(config=config)
    api.log.setLevel(logging.ERROR)
    return api


def make(all_solutions, folder):
    """Write source and release of every assignment. Raises CourseError with what nbgrader says if it refuses."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    api = gradebook(folder)
    for solutions in tqdm(all_solutions, unit="assignment", disable=None):
        name = solutions.path.stem
        source = folder / "source" / name / f"{name}.ipynb"
        source.parent.mkdir(parents=True, exist_ok=True)
        tools.write(source_notebook(solutions), source)
        done = api.generate_assignment(name, force=True, create=True)
        if not done["success"]:
            raise course.CourseError(f"{name}: {done['log']}")
    return len(all_solutions)
