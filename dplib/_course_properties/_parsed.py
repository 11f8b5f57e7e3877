"""Answers as numbers and arrays: each function returns None for an answer of another form."""


def arrays(answer, *dimensions):
    """The parts of an answer as arrays of floats with these numbers of dimensions (0 for a number)."""
    import numpy as np

    if isinstance(answer, str):  # "123" is no list of three numbers
        return None
    try:
        parts = [np.asarray(part, dtype=float) for part in answer]
    except (TypeError, ValueError, OverflowError):
        return None
    if [part.ndim for part in parts] != list(dimensions) or any(np.isnan(part).any() for part in parts):
        return None
    return parts


def array(answer, dimensions=1):
    """An answer as one array of floats."""
    parts = arrays([answer], dimensions)
    return None if parts is None else parts[0]


def numbers(answer, count):
    """An answer as so many floats."""
    parts = arrays(answer, *[0] * count)
    return None if parts is None else [float(part) for part in parts]
