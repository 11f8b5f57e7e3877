"""Argument checks shared by every public function.

Each check returns the cleaned value or raises TypeError (wrong kind) or
ValueError (wrong range) with the argument's name, its value and what is
allowed. Checks run before any computation starts.
"""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Integral, Real
from typing import Literal

import numpy as np

Direction = Literal["remove", "add", "both"]
DIRECTIONS = ("remove", "add", "both")
# Beyond this the square of a number, or of its inverse, may leave the range of a float.
_LARGEST = 1e100


def _advice(value):
    """What to write instead, for a number in another form (an array of no dimensions, a Decimal)."""
    scalar = isinstance(value, Decimal) or (getattr(value, "ndim", None) == 0 and hasattr(value, "item"))
    return "; write float(...) around it" if scalar and not isinstance(value, np.bool_) else ""


def real(name, value, *, above=None, below=None, at_least=None, at_most=None):
    """A finite real number inside the stated range."""
    allowed = _range_text("a finite real number", above, below, at_least, at_most)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {allowed}; got {value!r}{_advice(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if (
        not math.isfinite(number)
        or (above is not None and not number > above)
        or (below is not None and not number < below)
        or (at_least is not None and not number >= at_least)
        or (at_most is not None and not number <= at_most)
    ):
        raise ValueError(f"{name} must be {allowed}; got {value!r}")
    return number


def whole(name, value, *, at_least, at_most=2**53):
    """A whole number; floats are accepted when they are exactly whole."""
    allowed = _range_text("a whole number", None, None, at_least, at_most)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {allowed}; got {value!r}{_advice(value)}")
    if not isinstance(value, Integral):
        number = float(value)
        if not math.isfinite(number) or number != math.floor(number):
            raise ValueError(f"{name} must be {allowed}; got {value!r}")
    number = int(value)
    if number < at_least or (at_most is not None and number > at_most):
        raise ValueError(f"{name} must be {allowed}; got {value!r}")
    return number


def mu(value):
    return real("mu", value, at_least=0, at_most=_LARGEST)


def direction(value, *, both=True):
    allowed = DIRECTIONS if both else DIRECTIONS[:2]
    if not isinstance(value, str):
        raise TypeError(f"direction must be one of {allowed}; got {value!r}")
    if value not in allowed:
        raise ValueError(f"direction must be one of {allowed}; got {value!r}")
    return value


def side(value):
    """The direction to compute: of "both", remove is the larger for every mixture of Gaussians [C-9m]."""
    return "remove" if direction(value) == "both" else value


def choice(name, value, allowed):
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {tuple(allowed)}; got {value!r}")
    if value not in allowed:
        raise ValueError(f"{name} must be one of {tuple(allowed)}; got {value!r}")
    return value


def mechanism(value, *, question="composition"):
    """Anything with a noise multiplier that answers the question (a mechanism of `dplib`)."""
    if not hasattr(value, "noise_multiplier") or not callable(getattr(value, question, None)):
        raise TypeError(f"mechanism must be a mechanism such as dplib.PoissonDPSGD; got {value!r}")
    return value


def encoder(value, *, signed=False):
    """A matrix of the mechanisms that release C x + z (made by `dplib.matrices`).

    signed : whether entries below 0 are allowed, which amplification by Poisson sampling and the
    sensitivities exclude.
    """
    if isinstance(value, type) or not hasattr(value, "row_rounds") or not hasattr(value, "gram_diagonal"):
        raise TypeError(f"encoder must be an encoder such as dplib.matrices.identity(8); got {value!r}")
    if getattr(value, "signed", False) and not signed:
        raise ValueError(f"encoder must have no entries below 0, made without signed=True; got {value!r}")
    return value


def flag(name, value):
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False; got {value!r}")
    return bool(value)


def shape(name, value):
    """A shape: a whole number at least 1, or a tuple of them (() for a scalar)."""
    parts = value if isinstance(value, tuple) else (value,)
    return tuple(whole(name, part, at_least=1) for part in parts)


def delta(value):
    return real("delta", value, above=0, below=1)


def epsilon(value):
    return real("epsilon", value, at_least=0, at_most=_LARGEST)


def target_epsilon(value):
    """An epsilon to find the noise for."""
    return real("epsilon", value, at_least=0, at_most=1e6)


def noise_multiplier(value):
    return real("noise_multiplier", value, at_least=1 / _LARGEST, at_most=_LARGEST)


def probability(name, value):
    return real(name, value, at_least=0, at_most=1)


def vector(name, values, *, at_least=None, at_most=None):
    """A one-dimensional, non-empty array of finite reals in a range."""
    array = _array(name, values, 1)
    if at_least is not None and np.any(array < at_least):
        raise ValueError(f"{name} must be at least {at_least}; got {float(array[array < at_least][0])!r}")
    if at_most is not None and np.any(array > at_most):
        raise ValueError(f"{name} must be at most {at_most}; got {float(array[array > at_most][0])!r}")
    return array


def matrix(name, values):
    """A two-dimensional, non-empty array of finite reals."""
    return _array(name, values, 2)


def probabilities(name, values, length):
    """Non-negative weights, one per component, that sum to one within 1e-12."""
    array = vector(name, values, at_least=0, at_most=1)
    if len(array) != length:
        raise ValueError(f"{name} must have one entry per component ({length}); got {len(array)}")
    total = math.fsum(array)
    if abs(total - 1) > 1e-12:
        raise ValueError(f"{name} must sum to 1 within 1e-12; got a sum of {total!r}")
    return array


def grid(name, values):
    """A scalar or an array of finite reals; returns (float array, was a scalar)."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be a number or a regular array; got {values!r}") from error
    if array.dtype == bool or not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
        raise TypeError(f"{name} must hold real numbers; got {values!r}")
    array = array.astype(float)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must hold finite numbers; got {values!r}")
    return array, array.ndim == 0


def _array(name, values, dimensions):
    kind = {1: "a flat list", 2: "a rectangular table"}[dimensions]
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be {kind} of real numbers; got ragged rows") from error
    if array.dtype == object or array.dtype == bool or not np.issubdtype(array.dtype, np.number):
        if array.size == 0:
            raise ValueError(f"{name} must not be empty")
        raise TypeError(f"{name} must be {kind} of real numbers; got {values!r}")
    if np.iscomplexobj(array):
        raise TypeError(f"{name} must be {kind} of real numbers; got {values!r}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty")
    if array.ndim != dimensions:
        raise ValueError(f"{name} must be {kind}; got shape {array.shape}")
    array = array.astype(float)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must hold finite numbers; got {float(array[~np.isfinite(array)][0])!r}")
    return array


def _range_text(kind, above, below, at_least, at_most):
    bounds = [
        f"{words} {bound:g}"
        for words, bound in (
            ("above", above),
            ("at least", at_least),
            ("below", below),
            ("at most", at_most),
        )
        if bound is not None
    ]
    return " ".join([kind, " and ".join(bounds)]).strip()
