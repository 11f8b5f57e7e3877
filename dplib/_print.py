"""Printed bounds: rounded to the digits that were asked for, and never to the wrong side."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[-+]?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?")


def at_least(value: float, spec: str) -> str:
    """`format(value, spec)`, or the next number with these digits above it where rounding made it too small.

    0.1 is printed as 0.1: the text that names this very float is neither above nor below it.
    """
    text, gap = format(value, spec), None
    while (short := value - _read(text, spec)) > 0:
        # What is missing is below half a unit of the last digit; doubling it never passes over the next number.
        gap = short if gap is None else 2 * gap
        text = format(value + gap, spec)
    return text


def at_most(value: float, spec: str) -> str:
    """The same with a lower bound: never above `value`."""
    text, gap = format(value, spec), None
    while (excess := _read(text, spec) - value) > 0:
        gap = excess if gap is None else 2 * gap
        text = format(value - gap, spec)
    return text


def _read(text: str, spec: str) -> float:
    """The number that a text shows; what fills it up, groups its digits or marks a percentage is left out."""
    number = float(_NUMBER.search(text.replace(",", "").replace("_", ""))[0])
    return number / 100 if spec.endswith("%") else number
