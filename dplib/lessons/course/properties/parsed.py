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
    if [part.ndim for part in parts] != list(dimensions) or not all(np.isfinite(part).all() for part in parts):
        return None
    return parts


def array(answer, dimensions=1):
    """An answer as one array of floats."""
    parts = arrays([answer], dimensions)
    return None if parts is None else parts[0]


def numbers(answer, count):
    """An answer as so many floats: NumPy's, whose overflow the verdict notices."""
    import numpy as np

    parts = arrays(answer, *[0] * count)
    return None if parts is None else [np.float64(part) for part in parts]


def like(reference, value, kind):
    """What a function of the reader's returned for a vector, as a vector of its length: looked at before it is copied."""
    import numpy as np

    if isinstance(value, (list, tuple)):
        fits = len(value) == len(reference) and not any(isinstance(part, (list, tuple, np.ndarray)) for part in value)
    else:
        fits = getattr(value, "shape", None) == reference.shape
    return np.asarray(value, dtype=kind) if fits else None
