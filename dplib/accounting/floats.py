"""The ends of the floats: numbers that leave their range are refused, and what is rounded is stepped outwards."""

from __future__ import annotations

import contextlib
import math

import numpy as np

from ..results import NoBracketError


@contextlib.contextmanager
def inside_floats():
    """Overflow, and what has no value, end in NoBracketError; where they do no harm the code says so itself."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            yield
    except NoBracketError:
        raise
    except (ArithmeticError, MemoryError) as error:
        raise NoBracketError(f"a number left the range of floats ({type(error).__name__}: {error})") from error


def outward_exp(lower, upper):
    """exp of both ends, stepped outwards (it rounds to the nearest float); a positive delta never prints as 0."""
    low = max(math.nextafter(math.exp(lower), 0.0), 0.0)
    return low, min(max(math.nextafter(math.exp(upper), 2.0), 5e-324), 1.0)
