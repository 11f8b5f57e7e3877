"""Run a solutions notebook and seal its answers; run a student's notebook against them.

The cells are run as plain Python in this process, one after another.
"""

import contextlib
import io
import math
import os
import re
import traceback

import course_notebooks as course
import notebook_tools as tools

from dplib import _course_seal as seal
from dplib._course_verdict import verdict


def _run(cell, names, where):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(tools.source(cell), where, "exec"), names)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise course.CourseError(f"{where}: {type(error).__name__}: {error} (line {last.lineno} of {last.name})") from error


@contextlib.contextmanager
def _folder(path):
    """The kernel of a notebook works in the notebook's folder."""
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        yield
    finally:
        os.chdir(before)


def sealed(solutions):
    """{identifier: record} of a solutions notebook: every answer sealed, every mistake with its hint.

    Raises CourseError if a cell fails, if a solution does not pass its own check, if a mistake equals the
    solution or another mistake, or if a hint contains the answer.
    """
    import matplotlib

    matplotlib.use("agg")
    names, records = {"__name__": "__main__"}, {}
    with _folder(solutions.path):
        for number, cell in enumerate(solutions.head, start=1):
            if cell["cell_type"] == "code":
                _run(cell, names, f"{solutions.path.name}, cell {number}")
        for exercise in solutions.exercises:
            records[exercise.identifier] = _sealed_exercise(exercise, names)
    return records


def _sealed_exercise(exercise, names):
    name, rules = exercise.identifier, exercise.rules
    _run(exercise.solution, names, f"{name}, solution")
    answer = names[exercise.answer]
    if rules.get("property"):
        record = {"property": True}
    else:
        try:
            record = _record(exercise, answer)
        except (seal.WrongKind, ValueError) as error:
            raise course.CourseError(f"{name}: {error}") from None
    right, hint = verdict(record, name, answer)
    if not right:
        raise course.CourseError(f"{name}: the solution does not pass its check: {hint}")
    for cell in exercise.hidden_tests:
        _run(cell, names, f"{name}, hidden test")
    for cell in exercise.mistakes:
        _add_mistake(record, exercise, cell, names)
    kinds = {"bool", "text"}
    if "property" not in record and not exercise.mistakes and record["form"]["kind"] not in kinds:
        raise course.CourseError(f"{name}: no mistake; give the usual wrong answer and its hint")
    return record


def _record(exercise, answer):
    rules = exercise.rules
    record = {"arguments": rules["arguments"]} if "arguments" in rules else {}
    if callable(answer) and not record:
        raise ValueError("a function needs arguments in its metadata")
    values = [answer(*given) for given in rules["arguments"]] if record else answer
    record["form"] = seal.form(values, rules.get("tolerance"), rules.get("absolute"))
    record["right"] = seal.seal(record["form"], values, f"{exercise.identifier}/0")
    record["mistakes"] = []
    for hint in (cell["metadata"]["course"]["mistake"] for cell in exercise.mistakes):
        told = _told(hint, values)
        if told:
            raise ValueError(f"the hint contains the answer: {told}: {hint}")
    return record


def _add_mistake(record, exercise, cell, names):
    name = exercise.identifier
    number = len(record["mistakes"]) + 1
    _run(cell, names, f"{name}, mistake {number}")
    wrong, hint = names.pop(f"wrong_{exercise.number}"), cell["metadata"]["course"]["mistake"]
    right, said = verdict(record, name, wrong)
    if right:
        raise course.CourseError(f"{name}: mistake {number} passes the check")
    earlier = [other["metadata"]["course"]["mistake"] for other in exercise.mistakes[: number - 1]]
    if said in earlier:
        raise course.CourseError(f"{name}: mistake {number} gives the same answer as another mistake")
    values = [wrong(*given) for given in record["arguments"]] if "arguments" in record else wrong
    try:
        record["mistakes"].append(seal.seal(record["form"], values, f"{name}/{number}", hint))
    except seal.WrongKind as error:
        raise course.CourseError(f"{name}: mistake {number}: {error}") from None
    if verdict(record, name, wrong)[1] != hint:
        raise course.CourseError(f"{name}: mistake {number} does not give its hint")


def _told(hint, values):
    """The part of the answer that a hint gives away, or ""."""
    values = seal.plain(values)
    if isinstance(values, list):
        return next(filter(None, (_told(hint, value) for value in values)), "")
    if isinstance(values, bool):
        return ""
    if isinstance(values, str):
        words = re.search(rf"\b{re.escape(values)}\b", hint, re.IGNORECASE)
        return values if words else ""
    size = abs(float(values))
    for text in re.findall(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", hint):
        number, digits = float(text), len(re.sub(r"e.*|\.|^[0.]+", "", text))
        # One digit, such as a factor 2, gives away only an answer that is no longer itself.
        unit = 10.0 ** (math.floor(math.log10(number)) + 1 - digits) if digits > 1 else 0
        if abs(number - size) <= 0.5001 * unit:
            return text
    return ""


def stub_problems(notebook, records, path):
    """What is wrong with a student's notebook as it is handed out: every check must say "not yet"."""
    found, names = [], {"__name__": "__main__"}
    with _folder(path):
        for cell in tools.code_cells(notebook):
            text = tools.source(cell)
            match = re.fullmatch(r'course\.check\("([\w-]+)", (answer_\d+)\)', text.strip())
            try:
                if match is None:
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(text, path.name, "exec"), names)
                elif verdict(records[match.group(1)], match.group(1), names.get(match.group(2)))[0]:
                    found.append(f"{match.group(1)}: the stub passes its check")
            except NotImplementedError:
                pass
            except Exception as error:
                first = text.strip().splitlines()[0]
                found.append(f"{path.name}: the student's cell {first!r} raises {type(error).__name__}: {error}")
    return found
