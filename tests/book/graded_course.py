"""Run by .venv-course: three submissions of one chapter through nbgrader; prints what each was given.

    .venv-course/bin/python tests/book/graded_course.py STEM FOLDER

"wrong" holds the usual mistakes, "copied" right values but, in place of functions, tables
of the results that the visible check asks for; "own" the solutions in the notebook that readers have.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import course  # noqa: E402
import course_assignments  # noqa: E402
import notebook_tools as tools  # noqa: E402

TABLE = """\
_results = {{repr(tuple(given)): {name}(*given) for given in {arguments}}}
{name} = lambda *given: _results[repr(given)]"""


def right(exercise):
    return tools.source(exercise.solution)


def wrong(exercise):
    if not exercise.mistakes:
        return f"{exercise.answer} = 'no idea'"
    mistake = tools.source(exercise.mistakes[0])
    return f"{right(exercise)}\n{mistake}\n{exercise.answer} = wrong_{exercise.number}"


def copied(exercise):
    if "arguments" not in exercise.rules:
        return right(exercise)
    table = TABLE.format(name=exercise.answer, arguments=exercise.rules["arguments"])
    return f"{right(exercise)}\n{table}"


def submit(folder, solutions, student, answer):
    """The released notebook, or that of readers, with a student's work in its answer cells."""
    name = solutions.path.stem
    released = folder / "release" / name / f"{name}.ipynb"
    notebook = tools.read(ROOT / "notebooks" / "exercises" / f"{name}.ipynb" if student == "own" else released)
    answers = {exercise.identifier: answer(exercise) for exercise in solutions.exercises}
    for cell in notebook["cells"]:
        identifier = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if identifier in answers:
            cell["source"] = answers[identifier]
    target = folder / "submitted" / student / name / f"{name}.ipynb"
    target.parent.mkdir(parents=True)
    tools.write(notebook, target)


def main(stem, folder):
    solutions = course.load(ROOT, stem)
    course_assignments.make([solutions], folder)
    api, points = course_assignments.gradebook(folder), {}
    for student, answer in {"wrong": wrong, "copied": copied, "own": right}.items():
        submit(folder, solutions, student, answer)
        done = api.autograde(stem, student, create=True)
        assert done["success"], done["log"]
        with api.gradebook as book:
            notebook = book.find_submission_notebook(stem, stem, student)
            points[student] = {
                grade.name.removesuffix("-check"): [grade.auto_score, grade.max_score] for grade in notebook.grades
            }
    done = api.generate_feedback(stem, "wrong")
    assert done["success"], done["log"]
    print(json.dumps(points))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
