"""Answers as numbers and arrays: `arrays` and `array` return None for an answer of another form."""

import functools

import numpy as np


class Refused(Exception):
    """An answer lacks something; the message is the hint."""


def refuse(lacking, hint):
    """End the check with this hint where the answer is lacking."""
    if lacking:
        raise Refused(hint)


def parts_of(form, *dimensions):
    """For a check of so many parts: it gets them one by one, and answers of another form get the hint `form`."""

    def decorate(check):
        @functools.wraps(check)
        def checked(answer):
            parts = arrays(answer, *dimensions)
            refuse(parts is None, form)
            return check(*parts)

        return checked

    return decorate


def one_array(form, dimensions):
    """The same for a check of one array."""

    def decorate(check):
        checked = parts_of(form, dimensions)(check)
        return functools.wraps(check)(lambda answer: checked([answer]))

    return decorate


def arrays(answer, *dimensions):
    """The parts of an answer as arrays of finite floats with these numbers of dimensions.

    0 for a number: one of NumPy's, whose overflow the verdict notices.
    """
    if isinstance(answer, str):  # "123" is no list of three numbers
        return None
    try:
        parts = [np.asarray(part, dtype=float)[()] for part in answer]
    except (TypeError, ValueError, OverflowError):
        return None
    if [part.ndim for part in parts] != list(dimensions) or not all(np.isfinite(part).all() for part in parts):
        return None
    return parts


def array(answer, dimensions=1):
    """An answer as one array of floats."""
    parts = arrays([answer], dimensions)
    return None if parts is None else parts[0]


def like(reference, value, kind):
    """What a function of the reader's returned for a vector, as a vector of its length: looked at before it is copied."""
    if isinstance(value, (list, tuple)):
        fits = len(value) == len(reference) and not any(isinstance(part, (list, tuple, np.ndarray)) for part in value)
    else:
        fits = getattr(value, "shape", None) == reference.shape
    return np.asarray(value, dtype=kind) if fits else None
