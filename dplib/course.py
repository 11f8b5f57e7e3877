"""Check answers to the exercises of the book: each is correct, or earns a hint.

>>> from dplib import course
>>> course.check("hockey-1", None)
hockey-1: not yet. There is no answer yet (None).

The right answers are stored as stretched hashes and the hints
are encrypted with the wrong answers they belong to (`dplib._course_seal`), so that nobody reads them by
accident; they come with the package, and no network is needed.
"""

from __future__ import annotations

import difflib
import json
from functools import lru_cache
from importlib import resources

from . import _course_properties, _course_seal

_GENERAL = (
    "It is none of the usual mistakes. Read again what the statement asks for (kind, unit, direction, precision), "
    "and try the smallest case that you can do by hand."
)


def check(identifier: str, answer) -> None:
    """Print whether an answer is correct; if it is not, print a hint.

    Parameters
    ----------
    identifier : the name of the exercise, such as "group-2".
    answer : what the statement asks for: a number, True or False, a text, an exact fraction, a sequence
        of those, or a function.

    Raises TypeError or ValueError for an identifier that no exercise has; the message names similar ones.

    Notes
    -----
    Numbers are accepted within the tolerance that the statement gives, whole numbers and fractions only
    exactly, texts without regard to case. The hint depends on the wrong answer. About 0.1 s.
    """
    right, hint = verdict(_exercise(identifier), identifier, answer)
    print(f"{identifier}: correct." if right else f"{identifier}: not yet. {hint}")


def passes(identifier: str, answer) -> bool:
    """Whether an answer is correct: what graded notebooks assert. Arguments and errors as for `check`."""
    return verdict(_exercise(identifier), identifier, answer)[0]


def identifiers() -> tuple[str, ...]:
    """The names of all exercises that can be checked, in the order of the chapters."""
    return tuple(_exercises())


@lru_cache(maxsize=1)
def _exercises():
    """{identifier: record} from the package's data."""
    found = {}
    folder = resources.files(__package__) / "course_answers"
    for file in sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name):
        found |= json.loads(file.read_text(encoding="utf-8"))["exercises"]
    return found


def _exercise(identifier):
    if not isinstance(identifier, str):
        raise TypeError(f'identifier must be the name of an exercise such as "group-2"; got {identifier!r}')
    known = _exercises()
    if identifier not in known:
        near = difflib.get_close_matches(identifier.casefold(), known, n=4, cutoff=0.5)
        allowed = f"similar ones are {', '.join(near)}" if near else "see dplib.course.identifiers()"
        raise ValueError(f"identifier must be the name of an exercise; got {identifier!r}; {allowed}")
    return known[identifier]


def verdict(exercise: dict, identifier: str, answer) -> tuple[bool, str]:
    """(whether the answer is correct, hint) by the record of an exercise. `check` in words; for tools."""
    if answer is None:
        return False, "There is no answer yet (None)."
    if "property" in exercise:
        return _property_verdict(identifier, answer)
    try:
        if "arguments" in exercise:
            answer = _results(answer, exercise["arguments"])
        for number, record in enumerate([exercise["right"], *exercise["mistakes"]]):
            hint = _course_seal.unseal(record, exercise["form"], answer, f"{identifier}/{number}")
            if hint is not None:
                return number == 0, hint
    except _course_seal.WrongKind as error:
        return False, str(error)
    return False, _GENERAL


def _property_verdict(identifier, answer):
    try:
        hint = _course_properties.find(identifier)(answer)
    except Exception as error:  # an answer of any kind may come in; the reader needs the reason, not a traceback
        hint = f"The check cannot use this answer: {type(error).__name__}: {error}"
    if hint is None:
        return True, ""
    return False, hint[:1].upper() + hint[1:] + ("" if hint.endswith((".", "?", "!")) else ".")


def _results(function, arguments):
    """What the reader's function returns for each tuple of arguments."""
    if not callable(function):
        raise _course_seal.WrongKind(f"The answer must be a function; this is {function!r}.")
    results = []
    for given in arguments:
        call = f"With the arguments {', '.join(map(repr, given))} the function"
        try:
            result = function(*given)
        except NotImplementedError:
            raise _course_seal.WrongKind("The function is not written yet.") from None
        except Exception as error:
            raise _course_seal.WrongKind(f"{call} raises {type(error).__name__}: {error}") from None
        if result is None:
            raise _course_seal.WrongKind(f"{call} returns None: does it end in a return statement?")
        results.append(result)
    return results
