"""Whether an answer is correct by the record of its exercise, and what to say if it is not."""

from __future__ import annotations

import traceback
from numbers import Number

from . import compare, properties
from .time_limit import TooLong, time_limit

_PATIENCE = 9  # seconds for one check; those of the book take under 2
_ANY = (Exception, SystemExit)  # a reader's code may raise anything; Ctrl+C still interrupts

_CLOSE = "Close: give more digits. {digits} are asked for, and fewer agree."
_GENERAL = (
    "It is none of the usual mistakes. Read again what the statement asks for (kind, unit, direction, precision), "
    "and try the smallest case that you can do by hand."
)


def verdict(exercise: dict, identifier: str, answer) -> tuple[bool, str]:
    """(whether the answer is correct, hint). `compare` says what a record holds."""
    if answer is None:
        return False, "There is no answer yet (None)."
    judge = _property_verdict if "property" in exercise else _stored_verdict
    try:
        with time_limit(_PATIENCE):
            return judge(exercise, identifier, answer)
    except compare.WrongKind as error:
        return False, str(error)
    except TooLong:
        return False, f"The check ended after {_PATIENCE} s: does a loop never end?"
    except _ANY as error:
        return False, f"The check cannot use this answer: {_named(error)}"


def _stored_verdict(exercise, identifier, answer):
    if "arguments" in exercise:
        answer = _results(answer, exercise["arguments"])
    right, mistakes = exercise["right"], exercise["mistakes"]
    values = compare.fitting(right, compare.plain(answer))
    if compare.agree(exercise, right, values):
        return True, ""
    for mistake in mistakes:
        if compare.agree(exercise, mistake["wrong"], values):
            return False, mistake["hint"]
    if "digits" not in exercise:
        return False, _GENERAL
    digits = exercise["digits"]
    if compare.close(right, values, *exercise["close"]):
        return False, _CLOSE.format(digits=digits)
    hints = [mistake["hint"] for mistake in mistakes if compare.close(mistake["wrong"], values, 2, digits - 1)]
    return False, " Or: ".join(hints) or _GENERAL


def _property_verdict(exercise, identifier, answer):
    for part in compare.flat(compare.plain(answer)):
        if not (isinstance(part, (Number, str)) or callable(part)):
            shown = compare.shown(part)
            raise compare.WrongKind(f"The answer must be made of numbers, lists and functions; here is {shown}.")
    import numpy as np

    # Comparisons with what is not a number would all be false, and no hint be given.
    with np.errstate(over="raise", invalid="raise"):
        hint = properties.find(identifier)(answer)
    if hint is None:
        return True, ""
    return False, hint[:1].upper() + hint[1:] + ("" if hint.endswith((".", "?", "!")) else ".")


def _named(error):
    """Kind and message of an exception, whatever class the reader's code raised."""
    return traceback.format_exception_only(error)[-1].strip()


def _results(function, arguments):
    """What the reader's function returns for each tuple of arguments."""
    if not callable(function):
        shown = compare.shown(compare.plain(function))
        raise compare.WrongKind(f"The answer must be a function; this is {shown}.")
    results = []
    for given in arguments:
        call = f"With the arguments {', '.join(map(repr, given))} the function"
        try:
            result = function(*given)
        except NotImplementedError:
            raise compare.WrongKind("The function is not written yet.") from None
        except _ANY as error:
            raise compare.WrongKind(f"{call} raises {_named(error)}") from None
        if result is None:
            raise compare.WrongKind(f"{call} returns None: does it end in a return statement?")
        results.append(result)
    return results
