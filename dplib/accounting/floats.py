"""Numbers that leave the range of floats: a refusal, never an answer."""

from __future__ import annotations

import contextlib

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
