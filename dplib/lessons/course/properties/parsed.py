"""Answers as numbers and arrays, and how a check refuses one."""

import numpy as np


class Refused(Exception):
    """An answer lacks something; the message is the hint."""


def refuse(lacking, hint):
    """End the check with this hint where the answer is lacking."""
    if lacking:
        raise Refused(hint)


def arrays(answer, form, *dimensions):
    """The parts of an answer as arrays of finite floats with these numbers of dimensions; another form gets the hint `form`.

    0 for a number: one of NumPy's, whose overflow the verdict notices.
    """
    refuse(isinstance(answer, str), form)  # "123" is no list of three numbers
    try:
        parts = [np.asarray(part, dtype=float)[()] for part in answer]
    except (TypeError, ValueError, OverflowError):
        raise Refused(form) from None
    fits = [part.ndim for part in parts] == list(dimensions) and all(np.isfinite(part).all() for part in parts)
    refuse(not fits, form)
    return parts


def array(answer, form, dimensions=1):
    """An answer as one array of finite floats."""
    return arrays([answer], form, dimensions)[0]


def like(reference, value, kind):
    """What a function of the reader's returned for a vector, as a vector of its length: looked at before it is copied."""
    if isinstance(value, (list, tuple)):
        fits = len(value) == len(reference) and not any(isinstance(part, (list, tuple, np.ndarray)) for part in value)
    else:
        fits = getattr(value, "shape", None) == reference.shape
    return np.asarray(value, dtype=kind) if fits else None
