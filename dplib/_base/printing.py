"""Floats that know on which side of the truth they lie: their digits never move to the other one."""

from __future__ import annotations

import math
import re

from . import validate as check

# Precision and kind: what decides the digits. Fill, width, sign and grouping stand before them.
_DIGITS = re.compile(r"(\.\d+)?[,_]?([a-zA-Z%]?)$")


class _End(float):
    """A finite float whose digits are rounded to one side."""

    __slots__ = ()
    _SIGN = 0  # of the side

    def __new__(cls, value):
        return super().__new__(cls, check.real("value", value))

    def __format__(self, spec: str) -> str:
        return _outward(float(self), spec, self._SIGN)

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        """For NumPy it is a plain float, next to which an array of float32 stays one."""
        return getattr(ufunc, method)(*(float(x) if isinstance(x, _End) else x for x in inputs), **keywords)


class UpperEnd(_End):
    """A float that is an upper bound: its digits are rounded up.

    Parameters
    ----------
    value : finite.

    `format(end, spec)` is the text of the float, or, where rounding would print less than it, the next number with
    as many digits. Digits that name this very float are not moved: 0.1 is printed as 0.1. In all else it is a float:
    what is computed from it is a plain one, and becomes an end again by `UpperEnd(...)`. Python's own `round(end, 2)`
    and `"%.2f" % end`, and the entries of arrays, are rounded to nearest. Raises ValueError or TypeError on anything else.

    >>> from dplib import Bracket
    >>> from dplib.results import UpperEnd
    >>> spent = Bracket(lower=1.2344, upper=1.2346)
    >>> print(f"{spent.upper:.2f}, {spent:.2f}, twice {UpperEnd(2 * spent.upper):.2f}")
    1.24, 1.24, twice 2.47
    """

    __slots__ = ()
    _SIGN = 1


class LowerEnd(_End):
    """A float that is a lower bound: its digits are rounded down; else as `UpperEnd`.

    >>> from dplib import Bracket
    >>> print(f"{Bracket(lower=1.2349, upper=1.5).lower:.2f}")
    1.23
    """

    __slots__ = ()
    _SIGN = -1


def _outward(value, spec, sign):
    """`format(value, spec)`, or of the nearest float whose digits read as at least (sign 1), at most (-1) `value`."""
    format(value, spec)  # raises where the specification is none for floats
    precision, kind = _DIGITS.search(spec).groups()
    digits = (precision or "") + ("g" if kind == "n" else kind)
    # The digits change half a unit away. Doubling the step from one float on never passes over the next number.
    shown, step = value, math.ulp(value)
    while sign * (_read(format(shown, digits)) - value) < 0:
        shown, step = shown + sign * step, 2 * step
    return format(shown, spec)


def _read(text):
    """The float nearest to the number that a text shows, exact for percentages as well."""
    number = text.removesuffix("%")
    return float(number if number == text or number.endswith("f") else f"{number}e-2")
