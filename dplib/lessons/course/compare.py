"""Answers as plain values, and whether two of them agree.

The record of an exercise is JSON: `{"right": …, "mistakes": [{"wrong": […], "hint": "…"}]}`, where needed with
`"arguments"` on which a function is tried. A right value says by itself of which kind the answer must be: a list
stands for a sequence, a number with a point for a real number, one without for a whole number, `{"fraction": "1/3"}`
for an exact fraction. A wrong one is the list of its parts. Real numbers have an accuracy, one for the exercise:

`digits` : the significant digits that the statement asks for. A value agrees if it is within one unit of the last
    of them, so rounding to nearest, outward and cutting off are all accepted.
`close` : a pair of numbers of digits. Another value is close if it is within one unit of the last digit that it has
    itself, counted as the first number if it has fewer and as the second if it has more. The pair is [2, 3] unless a
    mistake would be close then.
`tolerance` : relative, for estimates by simulation, of which no digits can be asked for. Nothing is close.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real

_ZERO = 1e-12  # a zero has no digits: it is met within this much
_SHARE = 1e-6  # of a unit, for the rounding of a difference
_MOST_PARTS, _DEEPEST = 10**5, 10  # of an answer: more is a mistake, and would fill the memory

_KINDS = {bool: "bool", str: "text", dict: "fraction", int: "whole", float: "number"}  # of stored parts
_WORDS = {
    "bool": "True or False",
    "text": "a text",
    "fraction": "an exact fraction (fractions.Fraction)",
    "whole": "a whole number",
    "number": "a number",
}


class WrongKind(TypeError):
    """An answer is not of the kind that the exercise asks for; the message says what is."""


def plain(answer):
    """Arrays and array scalars as Python's own lists and numbers; tuples as lists. WrongKind if it is too large."""
    parts = 0

    def convert(value, depth):
        nonlocal parts
        array = hasattr(value, "tolist") and not isinstance(value, (str, bytes, type))
        parts += getattr(value, "size", 1) if array else len(value) if isinstance(value, (list, tuple)) else 0
        if parts > _MOST_PARTS or depth > _DEEPEST:
            raise WrongKind(f"The answer has more than {_MOST_PARTS:,} parts, or is nested more than {_DEEPEST} deep.")
        if array:
            value = value.tolist()
        return [convert(part, depth + 1) for part in value] if isinstance(value, (list, tuple)) else value

    return convert(answer, 0)


def flat(value):
    """The parts of an answer that are not lists, in order."""
    return [inner for part in value for inner in flat(part)] if isinstance(value, list) else [value]


def leaves(value):
    """The same of a stored answer; fractions as such."""
    return [Fraction(part["fraction"]) if isinstance(part, dict) else part for part in flat(value)]


def fitting(right, answer, name="The answer"):
    """The parts of a plain answer as `leaves` gives them for `right`. WrongKind where its form or a kind is another."""
    if not isinstance(right, list):
        return [_fitting(right, answer, name)]
    wanted = f"{name} must be a sequence of {len(right)} parts"
    if not isinstance(answer, list):
        raise WrongKind(f"{wanted}; this is {shown(answer)}.")
    if len(answer) != len(right):
        raise WrongKind(f"{wanted}; this one has {len(answer)}.")
    of = name[0].lower() + name[1:]
    pairs = enumerate(zip(right, answer), start=1)
    return [leaf for number, (part, value) in pairs for leaf in fitting(part, value, f"Part {number} of {of}")]


def shown(value):
    """An unfit answer in words."""
    if callable(value):
        return "a function: call it"
    if hasattr(value, "upper") and hasattr(value, "lower") and not isinstance(value, str):
        return "a bracket: take one end, .upper or .lower, as the statement says"
    try:
        text = repr(value)
    except Exception:  # whole numbers of thousands of digits have none, nor have broken classes
        text = ""
    return f"{text} ({type(value).__name__})" if 0 < len(text) < 60 else f"a {type(value).__name__}"


def _fitting(right, value, name):
    """A part of an answer so that it can be compared with `right`."""
    kind, flag = _KINDS[type(right)], isinstance(value, bool)
    fits = {
        "bool": flag,
        "text": isinstance(value, str),
        "fraction": isinstance(value, Rational) and not flag,
        "whole": isinstance(value, Real) and not flag and (isinstance(value, Integral) or float(value).is_integer()),
        "number": isinstance(value, Real) and not flag,
    }[kind]
    if not fits:
        raise WrongKind(f"{name} must be {_WORDS[kind]}; this is {shown(value)}.")
    if kind == "whole":
        return int(value)
    if kind == "fraction":
        return Fraction(value)
    if kind == "number":
        try:
            value = float(value)
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
        if math.isnan(value):
            raise WrongKind(f"{name} must be a number; this is nan: some step has no defined value.")
    return value


def _same(right, value):
    """Whether a part without an accuracy is the right one."""
    if isinstance(right, str):
        return right.casefold().split() == value.casefold().split()
    return right == value


def unit(right, digits):
    """One unit in the last of so many significant digits of a number other than 0."""
    return 10.0 ** (math.floor(math.log10(abs(right))) + 1 - digits)


def _given(value):
    """With how many significant digits a number is given, closing zeros not counted."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


def _match(right, values, allowed):
    """Whether all values are right; allowed(part, value) is how far a real number may be off."""
    return all(
        abs(value - part) <= (allowed(part, value) if part else _ZERO) if isinstance(part, float) else _same(part, value)
        for part, value in zip(leaves(right), values)
    )


def agree(exercise, right, values):
    """Whether the values are those of a stored answer, right or wrong, to the accuracy of the exercise."""
    if "tolerance" in exercise:
        return _match(right, values, lambda part, _: exercise["tolerance"] * abs(part))
    return _match(right, values, lambda part, _: unit(part, exercise["digits"]) * (1 + _SHARE))


def close(right, values, least, most):
    """Whether the values are those of a stored answer, taken with the digits they have, of which so many count."""
    # A full unit away from 0.25, 0.26 is not close.
    return _match(right, values, lambda part, value: unit(part, min(max(_given(value), least), most)) * (1 - _SHARE))
