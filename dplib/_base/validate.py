"""Argument checks shared by every public function.

Each check returns the cleaned value or raises TypeError (wrong kind) or
ValueError (wrong range) with the argument's name, its value and what is
allowed. Checks run before any computation starts.
"""

from __future__ import annotations

import math
import operator
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


def real(name, value, **bounds):
    """A finite real number inside the stated range: above=, at_least=, below=, at_most=."""
    kind = "a finite real number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(_refusal(name, kind, bounds, value) + _advice(value))
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or not _inside(number, bounds):
        raise ValueError(_refusal(name, kind, bounds, value))
    return number


def whole(name, value, *, at_least, at_most=2**53):
    """A whole number; floats are accepted when they are exactly whole."""
    kind, bounds = "a whole number", {"at_least": at_least, "at_most": at_most}
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(_refusal(name, kind, bounds, value) + _advice(value))
    if not (isinstance(value, Integral) or float(value).is_integer()) or not _inside(int(value), bounds):
        raise ValueError(_refusal(name, kind, bounds, value))
    return int(value)


def mu(value):
    return real("mu", value, at_least=0, at_most=_LARGEST)


def direction(value, *, both=True):
    return choice("direction", value, DIRECTIONS if both else DIRECTIONS[:2])


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
    array = _array(name, values, "a flat list", 1)
    if at_least is not None and np.any(array < at_least):
        raise ValueError(f"{name} must be at least {at_least}; got {float(array[array < at_least][0])!r}")
    if at_most is not None and np.any(array > at_most):
        raise ValueError(f"{name} must be at most {at_most}; got {float(array[array > at_most][0])!r}")
    return array


def matrix(name, values):
    """A two-dimensional, non-empty array of finite reals."""
    return _array(name, values, "a rectangular table", 2)


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
    array = _reals(name, values, "a number or a regular array")
    return array, array.ndim == 0


def _array(name, values, kind, dimensions):
    if isinstance(values, (list, tuple)) and not values:
        raise ValueError(f"{name} must not be empty")
    array = _reals(name, values, kind)
    if array.size == 0:
        raise ValueError(f"{name} must not be empty")
    if array.ndim != dimensions:
        raise ValueError(f"{name} must be {kind}; got shape {array.shape}")
    return array


def _reals(name, values, kind):
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be {kind} of real numbers; got ragged rows") from error
    if array.dtype == bool or not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
        raise TypeError(f"{name} must be {kind} of real numbers; got {values!r}")
    array = array.astype(float)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must hold finite numbers; got {float(array[~np.isfinite(array)].flat[0])!r}")
    return array


_HOLDS = {"above": operator.gt, "at_least": operator.ge, "below": operator.lt, "at_most": operator.le}


def _inside(number, bounds):
    return all(_HOLDS[name](number, bound) for name, bound in bounds.items() if bound is not None)


def _refusal(name, kind, bounds, value):
    given = [(words, bounds[words]) for words in _HOLDS if bounds.get(words) is not None]
    text = " and ".join(f"{words.replace('_', ' ')} {bound:g}" for words, bound in given)
    return f"{name} must be {f'{kind} {text}'.strip()}; got {value!r}"
