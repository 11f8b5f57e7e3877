"""Run a solutions notebook and record its answers; run a student's notebook against them.

The cells are run as plain Python in this process, one after another.
"""

import contextlib
import io
import math
import re
import traceback
from fractions import Fraction
from numbers import Integral, Real

import course_notebooks as course
import notebook_tools as tools

from dplib.lessons.course import compare
from dplib.lessons.course.verdicts import verdict


def stored(answer):
    """An answer as JSON holds it. Real numbers keep 12 digits, so that last bits do not change the files.

    Raises WrongKind for what no exercise can ask for, ValueError for a number that is not finite.
    """
    answer = compare.plain(answer)
    if isinstance(answer, list):
        return [stored(part) for part in answer]
    if isinstance(answer, (bool, str)):
        return answer
    if isinstance(answer, Integral):
        return int(answer)
    if isinstance(answer, Fraction):
        return {"fraction": str(answer)}
    if not isinstance(answer, Real):
        raise compare.WrongKind(f"an answer must be a number, a text, True or False, or a sequence of those; got {answer!r}")
    if not math.isfinite(answer):
        raise ValueError(f"an answer must be finite; got {answer!r}")
    return float(f"{float(answer):.12g}")


def _run(cell, names, where):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(tools.source(cell), where, "exec"), names)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise course.CourseError(f"{where}: {type(error).__name__}: {error} (line {last.lineno} of {last.name})") from error


def records(solutions):
    """{identifier: record} of a solutions notebook: every answer, every mistake with its hint.

    Raises CourseError if a cell fails, if a solution does not pass its own check, if a mistake is near the
    solution or equals another mistake, or if a hint contains the answer.
    """
    import matplotlib

    matplotlib.use("agg")
    names, found = {"__name__": "__main__"}, {}
    with contextlib.chdir(solutions.path.parent):  # where the kernel of a notebook works
        for number, cell in enumerate(solutions.head, start=1):
            if cell["cell_type"] == "code":
                _run(cell, names, f"{solutions.path.name}, cell {number}")
        for exercise in solutions.exercises:
            found[exercise.identifier] = _exercise(exercise, names)
    return found


def _exercise(exercise, names):
    name, rules = exercise.identifier, exercise.rules
    _run(exercise.solution, names, f"{name}, solution")
    answer = names[exercise.answer]
    if rules.get("property"):
        record = {"property": True}
    else:
        try:
            record = _record(exercise, answer)
        except (compare.WrongKind, ValueError) as error:
            raise course.CourseError(f"{name}: {error}") from None
    right, hint = verdict(record, name, answer)
    if not right:
        raise course.CourseError(f"{name}: the solution does not pass its check: {hint}")
    for cell in exercise.hidden_tests:
        _run(cell, names, f"{name}, hidden test")
    for cell in exercise.mistakes:
        _add_mistake(record, exercise, cell, names)
    if "property" in record:
        return record
    if not exercise.mistakes and not isinstance(record["right"], (bool, str)):
        raise course.CourseError(f"{name}: no mistake; give the usual wrong answer and its hint")
    if "digits" in record:
        record["close"] = _close(record, name)
    return record


def _close(record, name):
    """The fewest digits, at least two, and the fewest for values that have more, at which no mistake looks right."""
    digits, wrong = record["digits"], [compare.leaves(mistake["wrong"]) for mistake in record["mistakes"]]
    for least in range(2, digits):
        for most in range(max(least, 3), max(digits, 4)):
            if not any(compare.close(record["right"], values, least, most) for values in wrong):
                return [least, most]
    raise course.CourseError(f"{name}: a mistake cannot be told from the answer with a digit less; ask for more digits")


def _record(exercise, answer):
    rules = exercise.rules
    record = {"arguments": rules["arguments"]} if "arguments" in rules else {}
    if callable(answer) and not record:
        raise ValueError("a function needs arguments in its metadata")
    values = [answer(*given) for given in rules["arguments"]] if record else answer
    record["right"] = stored(values)
    accuracy = {key: rules[key] for key in ("digits", "tolerance") if key in rules}
    real = any(isinstance(part, float) for part in compare.leaves(record["right"]))
    if real != bool(accuracy):
        raise ValueError("digits (or a tolerance) must be in the metadata if, and only if, a part is a real number")
    record |= accuracy | ({"close": [2, 2]} if "digits" in rules else {})
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
    try:
        values = [wrong(*given) for given in record["arguments"]] if "arguments" in record else wrong
        parts = compare.fitting(record["right"], compare.plain(values))
        kept = stored(parts)
    except (compare.WrongKind, ValueError) as error:
        raise course.CourseError(f"{name}: mistake {number}: {error}") from None
    if compare.agree(record, record["right"], parts):
        raise course.CourseError(f"{name}: mistake {number} passes the check")
    if any(compare.agree(record, earlier["wrong"], parts) for earlier in record["mistakes"]):
        raise course.CourseError(f"{name}: mistake {number} gives the same answer as another mistake")
    record["mistakes"].append({"wrong": kept, "hint": hint})
    if verdict(record, name, wrong) != (False, hint):
        raise course.CourseError(f"{name}: mistake {number} does not give its hint")


def _told(hint, values):
    """The part of the answer that a hint gives away, or ""."""
    values = compare.plain(values)
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
    with contextlib.chdir(path.parent):
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
