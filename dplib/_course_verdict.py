"""Whether an answer is correct by the record of its exercise, and what to say if it is not."""

from __future__ import annotations

from . import _course_properties, _course_seal

_GENERAL = (
    "It is none of the usual mistakes. Read again what the statement asks for (kind, unit, direction, precision), "
    "and try the smallest case that you can do by hand."
)


def verdict(exercise: dict, identifier: str, answer) -> tuple[bool, str]:
    """(whether the answer is correct, hint). The record is made by `_course_seal`; the name salts its hashes."""
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
