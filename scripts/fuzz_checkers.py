"""What scripts/fuzz.py asks the exercises' checkers: answers of every kind that no exercise asks for.

A case is a pair (answer, nonsense). Nonsense holds a part that no right answer has (not a number, infinite, another
type, too large, a function that raises): it must not be accepted. The others are finite numbers in the shape that the
exercise asks for; they reach further into a check, and may be right.
"""

from __future__ import annotations

import itertools
import sys
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np

import dplib
from dplib import course


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text")


class Endless:
    def __iter__(self):
        return itertools.count()


def _cycle():
    answer = [0.5]
    answer.append(answer)
    return answer


def nested(depth):
    answer = [0.5]
    for _ in range(depth):
        answer = [answer]
    return answer


NONSENSE = (
    np.nan, np.inf, -np.inf, 1j, "x", "", "\ud800", "1e400", b"x", None, object(), float, np.float64, {}, {1.0}, (), [],
    Decimal("NaN"), np.datetime64("NaT"), dplib.Bracket(0.1, 0.2), dplib.PoissonDPSGD(1.0, 0.1, 10), Unprintable(), Endless(),
    np.array([]), np.full((2, 2), np.nan), np.array(["a"]), np.array([object()]), np.zeros((2, 0, 3)), np.array(np.inf),
)  # fmt: skip
TOO_LARGE = (
    np.broadcast_to(0.5, 10**10), np.broadcast_to(0.5, (3, 10**9)), [0.5] * 10**6, [[[0.5] * 10**3] * 10**3] * 10**3, _cycle(),
    nested(10**4), range(10**12), "x" * 10**6,
)  # fmt: skip
EXTREMES = (
    0.0,
    -0.0,
    -1.0,
    5e-324,
    1e-300,
    1e308,
    -1e308,
    2**63,
    10**400,
    10**5000,
    Fraction(1, 10**400),
    np.float32(0.1),
)
SLOW_SHARE = 0.003  # of the functions: these do not end, and a check gives them up after 9 s


# --- shapes ------------------------------------------------------------------------------------------------
# A number n stands for n numbers, "x" for one, "p" for probabilities and "v" for numbers, of one length in an answer.

PROPERTY_SHAPES = {
    "hockey-5": ("p", "p"), "hockey-6": ("p", "p", "p", "p"), "accounting-5": 3, "accounting-6": (("p", "p"), ("p", "p")),
    "subsampling-6": "p", "mixtures-6": ((2, 2, 2), (2, 2, 2)), "mixtures-7": (("v", "p"), ("v", "p")), "group-6": ("v", "x"),
    "last-iterate-6": 3, "last-iterate-7": 12, "renyi-5": 3, "renyi-6": ("p", "p"), "large-batches-6": 4, "one-step-7": 3,
    "matrix-6": (4, 4, 4, 4), "conditional-5": ("x", 3, 3), "conditional-6": 11, "mmcc-6": 3, "tree-4": 4,
    "tree-6": ("p", "p", "x"), "bins-4": 2, "bins-6": (3, 3, 3, 3), "monte-carlo-5": ((2, 2), (2, 2)), "monte-carlo-6": ("p", "p"),
    "encoder-4": (8, 8), "encoder-6": "v", "training-6": "v",
}  # fmt: skip


def _shape(identifier, rng):
    """Of a right answer where it is known, else anything."""
    exercise = course._exercise(identifier)
    if "right" in exercise:
        return _of(exercise["right"])
    return PROPERTY_SHAPES.get(identifier, int(rng.integers(1, 5)))


def _of(right):
    return tuple(map(_of, right)) if isinstance(right, list) else "x"


def _number(rng):
    kind = rng.integers(5)
    if kind == 0:
        return EXTREMES[rng.integers(len(EXTREMES))]
    if kind == 1:
        return int(rng.integers(-2, 1000))
    return float(np.exp(rng.uniform(-12, 7))) if kind == 2 else float(rng.random())


def _filled(shape, rng, length):
    if shape == "x":
        return _number(rng)
    if shape == "p":
        return rng.dirichlet(np.full(length, 0.5))
    if shape == "v":
        return [1.0, *(_number(rng) for _ in range(length - 1))]  # most coefficients begin with 1
    parts = ["x"] * shape if isinstance(shape, int) else shape
    return [_filled(part, rng, length) for part in parts]


def _spoiled(answer, rng):
    """One part of a list, however deep, becomes nonsense."""
    if not isinstance(answer, (list, np.ndarray)) or len(answer) == 0:
        return NONSENSE[rng.integers(len(NONSENSE))]
    spoiled = list(answer)
    place = rng.integers(len(spoiled))
    spoiled[place] = _spoiled(spoiled[place], rng)
    return spoiled


def _function(rng, result):
    if rng.random() < SLOW_SHARE:
        return [_endless, _asleep][rng.integers(2)], True
    kind = rng.integers(5)
    if kind == 0:
        errors = (
            ValueError("x"),
            KeyError(3),
            RecursionError(),
            SystemExit(1),
            MemoryError(),
            NotImplementedError(),
        )
        error = errors[rng.integers(len(errors))]
        return lambda *arguments: _raise(error), True
    if kind == 1:
        return [sys.exit, len, np.linalg.inv, float, lambda: 1.0][rng.integers(5)], False
    if kind == 2:
        spoiled = _spoiled(result, rng)
        return lambda *arguments: spoiled, True
    if kind == 3:
        large = TOO_LARGE[rng.integers(len(TOO_LARGE))]
        return lambda *arguments: large, True
    return lambda *arguments: result, False


def _raise(error):
    raise error


def _endless(*arguments):
    while True:
        pass


def _asleep(*arguments):
    time.sleep(3600)


# --- cases -------------------------------------------------------------------------------------------------


def case_of(identifier):
    """Generator of (answer, nonsense) for an exercise."""

    def draw(rng):
        shape = _shape(identifier, rng)
        takes_functions = "arguments" in course._exercise(identifier) or identifier == "matrix-5"
        plausible = _filled(shape, rng, int(rng.integers(1, 9)))
        kind = rng.integers(6)
        if takes_functions and kind < 4:
            result = plausible[0] if isinstance(plausible, list) and plausible else plausible
            one, nonsense = _function(rng, result)
            return (
                ((one, _function(rng, result)[0]), nonsense) if identifier == "matrix-5" else (one, nonsense)
            )
        if kind == 0:
            return NONSENSE[rng.integers(len(NONSENSE))], True
        if kind == 1:
            return TOO_LARGE[rng.integers(len(TOO_LARGE))], True
        if kind == 2:
            return _spoiled(plausible, rng), True
        if kind == 3:  # too many or too few parts
            return [plausible] * int(rng.integers(2, 5)), False
        return plausible, False

    return draw


def judged(identifier):
    """The check of a case; the answer is a complaint, or whether the case was accepted."""

    def call(case):
        answer, nonsense = case
        accepted = course.passes(identifier, answer)
        if accepted and nonsense:
            raise AssertionError("nonsense is accepted")
        return accepted

    return call
