"""Typed answers: what a number is, and in which direction it may be trusted.

`Bracket` holds a certified lower and upper bound, `UpperBound` a certified
upper bound alone, `Certificate` an upper bound that random samples prove with a stated
probability of failure, `Estimate` a sampled value with its confidence bound. None turns
into a bare float by itself: the reader of a number has to say which end is meant.

The answers of a mechanism say which datasets are told apart: `adjacency`, which is printed where it is not the default.

An end is a float that knows its direction: with any number of digits, `UpperEnd` is printed
rounded up, `LowerEnd` rounded down.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import numpy as np

from ._base import validate as check

__all__ = ["Bracket", "Certificate", "Estimate", "LowerEnd", "NoBracketError", "UpperBound", "UpperEnd"]


class NoBracketError(ArithmeticError):
    """No useful certified bracket could be computed; the message says why.

    >>> from dplib import NoBracketError, PoissonDPSGD
    >>> try:
    ...     PoissonDPSGD(noise_multiplier=1e-9, sampling_probability=0.5, steps=10).epsilon(1e-6, method="contour")
    ... except NoBracketError:
    ...     print("more noise, or another method")
    more noise, or another method
    """


@contextlib.contextmanager
def _inside_floats():
    """Overflow, and what has no value, end in NoBracketError; where they do no harm the code says so itself."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            yield
    except NoBracketError:
        raise
    except (ArithmeticError, MemoryError) as error:
        raise NoBracketError(f"a number left the range of floats ({type(error).__name__}: {error})") from error


def _outward_exp(lower, upper):
    """exp of both ends, stepped outwards (it rounds to the nearest float); a positive delta never prints as 0."""
    low = max(math.nextafter(math.exp(lower), 0.0), 0.0)
    return low, min(max(math.nextafter(math.exp(upper), 2.0), 5e-324), 1.0)


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


_Question = TypeVar("_Question", bound=Callable)


def _says_adjacency(question: _Question) -> _Question:
    """A method whose answers say which datasets are told apart: the `_adjacency` of its mechanism."""

    @functools.wraps(question)
    def asked(self, *arguments, **options):
        return replace(question(self, *arguments, **options), adjacency=self._adjacency)

    return cast(_Question, asked)


def _check_adjacency(adjacency):
    if not isinstance(adjacency, str):
        raise TypeError(f"adjacency must be a string; got {adjacency!r}")


_USUAL = ("", "add-remove", "add-remove or zero-out")  # not printed


def _said(before, adjacency):
    """An adjacency as it is printed."""
    return "" if adjacency in _USUAL else before + adjacency


@dataclass(frozen=True)
class Bracket:
    """A certified pair: lower <= truth <= upper.

    Parameters
    ----------
    lower, upper : finite floats with lower <= upper. For an epsilon or a delta
        the *upper* end is the privacy guarantee; the lower end shows how much
        the accountant could still gain.
    method : which accountant produced it ("closed form", "contour", "lattice").
    adjacency : which datasets are told apart ("add-remove", "substitution", ...), "" where nobody has said; no part of a comparison.

    Raises ValueError when the ends are not finite or are in the wrong order.

    >>> from dplib import Bracket
    >>> spent = Bracket(lower=1.99, upper=2.0, method="closed form")
    >>> spent.upper
    2.0
    >>> print(f"{spent.relative_width:.4f}")
    0.0050
    """

    lower: float
    upper: float
    method: str = ""
    adjacency: str = field(default="", compare=False, repr=False)

    def __post_init__(self):
        _check_adjacency(self.adjacency)
        lower, upper = check.real("lower", self.lower), check.real("upper", self.upper)
        if lower > upper:
            raise ValueError(f"lower must be at most upper; got {lower!r} > {upper!r}")
        object.__setattr__(self, "lower", LowerEnd(lower))
        object.__setattr__(self, "upper", UpperEnd(upper))

    @property
    def width(self) -> float:
        return self.upper - self.lower

    @property
    def relative_width(self) -> float:
        """(upper - lower) / |upper|; zero for the bracket [0, 0]."""
        return self.width / abs(self.upper) if self.upper else self.width

    @property
    def midpoint(self) -> float:
        return self.lower + self.width / 2

    def __contains__(self, value) -> bool:
        return self.lower <= value <= self.upper

    def __float__(self):
        raise TypeError(
            "a Bracket is not a single number: use .upper for a guarantee, .lower for the bound below"
        )

    def __format__(self, spec: str) -> str:
        """Formats the upper end, which is the guarantee: its digits are rounded up."""
        return format(self.upper, spec) if spec else str(self)

    def __str__(self) -> str:
        method = (f", {self.method}" if self.method else "") + _said(", ", self.adjacency)
        upper = f"{self.upper:.6g}"
        if self.lower == self.upper:
            return f"{upper} (exact{method})"
        if self.relative_width <= 1e-5:
            return f"{upper} (certified to {UpperEnd(self.relative_width):.0e}{method})"
        return f"[{self.lower:.6g}, {upper}] (certified{method})"


@dataclass(frozen=True)
class UpperBound:
    """A certified upper bound without a matching lower one.

    Parameters
    ----------
    upper : finite, at least 0: an epsilon or a delta that is a valid guarantee.
    method : which bound it is ("Renyi", ...).
    order : the Renyi order that attains it, above 1, or None.

    Raises ValueError or TypeError on anything else.

    >>> from dplib import UpperBound
    >>> print(UpperBound(upper=3.25, method="Renyi", order=7.5).upper)
    3.25
    """

    upper: float
    method: str = ""
    order: float | None = None
    adjacency: str = field(default="", compare=False, repr=False)

    def __post_init__(self):
        _check_adjacency(self.adjacency)
        object.__setattr__(self, "upper", UpperEnd(check.real("upper", self.upper, at_least=0)))
        if self.order is not None:
            object.__setattr__(self, "order", check.real("order", self.order, above=1))

    def __float__(self):
        raise TypeError("an UpperBound is one-sided: use .upper, and say that it is an upper bound")

    def __format__(self, spec: str) -> str:
        """Formats the upper end, which is the guarantee: its digits are rounded up."""
        return format(self.upper, spec) if spec else str(self)

    def __str__(self) -> str:
        how = f", {self.method}" if self.method else ""
        if self.order is not None:
            # Three digits of 1.0004 would read as an order of 1, which is none.
            order = f"{self.order:.3g}" if self.order >= 1.1 else f"1 + {self.order - 1:.3g}"
            how += f"{' ' if self.method else ', '}order {order}"
        return f"<= {self.upper:.6g} (upper bound{how}{_said(', ', self.adjacency)})"


@dataclass(frozen=True)
class Certificate:
    """An upper bound proved by random samples: it is at least the truth except with a stated probability.

    Parameters
    ----------
    upper : finite, at least 0: an epsilon or a delta.
    failure_probability : in (0, 1). The draws make `upper` too small with at most this probability, whatever
        the truth is. It stands beside the bound; it is not part of it. One claim of (epsilon, delta)-privacy that was
        fixed before the draws needs it to be at most delta [N-2.1]; a search pays it out of delta [N-2.1s].
    samples : how many independent samples it rests on, at least 1.
    method : which bound it is.

    Raises ValueError or TypeError on anything else.

    >>> from dplib import Certificate
    >>> proof = Certificate(upper=1e-6, failure_probability=1e-9, samples=100_000, method="lines")
    >>> proof.upper, proof.failure_probability
    (1e-06, 1e-09)
    """

    upper: float
    failure_probability: float
    samples: int
    method: str = ""
    adjacency: str = field(default="", compare=False, repr=False)

    def __post_init__(self):
        _check_adjacency(self.adjacency)
        object.__setattr__(self, "upper", UpperEnd(check.real("upper", self.upper, at_least=0)))
        failure = check.real("failure_probability", self.failure_probability, above=0, below=1)
        object.__setattr__(self, "failure_probability", failure)
        object.__setattr__(self, "samples", check.whole("samples", self.samples, at_least=1))

    def __float__(self):
        raise TypeError(
            "a Certificate is one-sided: use .upper, and say with which failure_probability it holds"
        )

    def __format__(self, spec: str) -> str:
        """Formats the upper end, which is the guarantee: its digits are rounded up."""
        return format(self.upper, spec) if spec else str(self)

    def __str__(self) -> str:
        method = (f"; {self.method}" if self.method else "") + _said("; ", self.adjacency)
        return (
            f"<= {self.upper:.6g} (certificate from {self.samples} samples, wrong with probability "
            f"<= {UpperEnd(self.failure_probability):g}{method})"
        )


@dataclass(frozen=True)
class Estimate:
    """A sampled number: never a guarantee by itself.

    Parameters
    ----------
    value : the estimate.
    standard_error : its standard error, at least 0.
    upper : upper confidence bound, at least `value`.
    confidence : probability with which `upper` is at least the truth, in (0, 1).
    method : how it was sampled.

    >>> from dplib import Estimate
    >>> guess = Estimate(value=1.5, standard_error=0.01, upper=1.53, confidence=0.999, method="lines")
    >>> guess.value + 2 * guess.standard_error < guess.upper
    True
    """

    value: float
    standard_error: float
    upper: float
    confidence: float
    method: str = ""
    adjacency: str = field(default="", compare=False, repr=False)

    def __post_init__(self):
        _check_adjacency(self.adjacency)
        value = check.real("value", self.value)
        error = check.real("standard_error", self.standard_error, at_least=0)
        upper = check.real("upper", self.upper)
        confidence = check.real("confidence", self.confidence, above=0, below=1)
        if upper < value:
            raise ValueError(f"upper must be at least value; got {upper!r} < {value!r}")
        for name, number in zip(
            ("value", "standard_error", "upper", "confidence"), (value, error, UpperEnd(upper), confidence)
        ):
            object.__setattr__(self, name, number)

    def __float__(self):
        raise TypeError("an Estimate is not a guarantee: use .value, or .upper with its .confidence")

    def __format__(self, spec: str) -> str:
        """Formats the value, to nearest: it is no guarantee."""
        return format(self.value, spec) if spec else str(self)

    def __str__(self) -> str:
        how = (f"estimate, {self.method}" if self.method else "estimate") + _said(", ", self.adjacency)
        sure = f"with confidence {LowerEnd(self.confidence):g}"
        if not self.standard_error:
            return f"{self.value:.6g} ({how}; <= {self.upper:.2g} {sure})" if self.upper > self.value else f"{self.value:.6g} ({how})"
        # One digit more than the standard error supports would be noise.
        decimals = 1 - math.floor(math.log10(self.standard_error))
        if 0 < abs(self.value) < 1e-3:
            digits = max(0, decimals + math.floor(math.log10(abs(self.value))))
            value, error, upper = (
                f"{self.value:.{digits}e}",
                f"{self.standard_error:.1e}",
                f"{self.upper:.{digits}e}",
            )
        else:
            decimals = max(0, decimals)
            value, error = (f"{number:.{decimals}f}" for number in (self.value, self.standard_error))
            upper = f"{self.upper:.{decimals}f}"
        return f"{value} +- {error} ({how}; <= {upper} {sure})"
