"""Answers of every kind for the exercises' checkers, as strategies: right shapes, nonsense, and what is too large.

An answer is (answer, whether it is nonsense). Nonsense holds a part that no right answer has: not a number, infinite, another type,
too large, a function that raises. The others are finite numbers in the shape that the exercise asks for; they may be right.
"""

import itertools
import json
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from property_cases import logs

import dplib
from dplib.lessons import course


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no text")


class Endless:
    def __iter__(self):
        return itertools.count()


def nested(depth):
    answer = [0.5]
    for _ in range(depth):
        answer = [answer]
    return answer


CYCLE = [0.5]
CYCLE.append(CYCLE)
NONSENSE = (
    np.nan, np.inf, -np.inf, 1j, "x", "", "\ud800", "1e400", b"x", None, object(), float, np.float64, {}, {1.0}, (), [],
    Decimal("NaN"), np.datetime64("NaT"), dplib.Bracket(0.1, 0.2), dplib.PoissonDPSGD(1.0, 0.1, 10), Unprintable(), Endless(),
    np.array([]), np.full((2, 2), np.nan), np.array(["a"]), np.array([object()]), np.zeros((2, 0, 3)), np.array(np.inf),
)  # fmt: skip
TOO_LARGE = (
    np.broadcast_to(0.5, 10**10), np.broadcast_to(0.5, (3, 10**9)), [0.5] * 10**6, [[[0.5] * 10**3] * 10**3] * 10**3, CYCLE,
    nested(10**4), range(10**12), "x" * 10**6,
)  # fmt: skip
EXTREMES = (
    0.0, -0.0, -1.0, 5e-324, 1e-300, 1e308, -1e308, 2**63, 10**400, 10**5000, Fraction(1, 10**400), np.float32(0.1),
)  # fmt: skip
ERRORS = (ValueError("x"), KeyError(3), RecursionError(), SystemExit(1), MemoryError(), NotImplementedError())

# A number n stands for n numbers, "x" for one, "p" for probabilities and "v" for numbers, of one length in an answer.
PROPERTY_SHAPES = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))

NUMBERS = st.one_of(st.sampled_from(EXTREMES), st.integers(-2, 1000), logs(6e-6, 1e3), st.floats(0, 1))


def _shape_of(right):
    return tuple(map(_shape_of, right)) if isinstance(right, list) else "x"


def _filled(shape, length):
    if shape == "x":
        return NUMBERS
    if shape == "p":
        return st.lists(logs(1e-6, 1.0), min_size=length, max_size=length).map(lambda weights: np.array(weights) / np.sum(weights))
    if shape == "v":  # most coefficients begin with 1
        return st.lists(NUMBERS, min_size=length - 1, max_size=length - 1).map(lambda rest: [1.0, *rest])
    return st.tuples(*(_filled(part, length) for part in (["x"] * shape if isinstance(shape, int) else shape))).map(list)


@st.composite
def _spoiled(draw, answer):
    """One part of a list, however deep, becomes nonsense."""
    if not isinstance(answer, (list, np.ndarray)) or len(answer) == 0:
        return draw(st.sampled_from(NONSENSE))
    spoiled, place = list(answer), draw(st.integers(0, len(answer) - 1))
    spoiled[place] = draw(_spoiled(spoiled[place]))
    return spoiled


def _always(result):
    return lambda *arguments: result


def _raises(error):
    def function(*arguments):
        raise error

    return function


@st.composite
def _functions(draw, result):
    """(function, whether what it does is nonsense). Those that never end: tests/lessons/test_course_hostile.py."""
    return draw(
        st.one_of(
            st.sampled_from(ERRORS).map(lambda error: (_raises(error), True)),
            st.sampled_from([sys.exit, len, np.linalg.inv, float, lambda: 1.0]).map(lambda function: (function, False)),
            _spoiled(result).map(lambda spoiled: (_always(spoiled), True)),
            st.sampled_from(TOO_LARGE).map(lambda large: (_always(large), True)),
            st.just((_always(result), False)),
        )
    )


@st.composite
def answers(draw, identifier):
    """(answer, nonsense) for an exercise."""
    exercise = course._exercise(identifier)
    shape = _shape_of(exercise["right"]) if "right" in exercise else PROPERTY_SHAPES.get(identifier, draw(st.integers(1, 4)))
    plausible = draw(_filled(shape, draw(st.integers(1, 8))))
    kind = draw(st.integers(0, 5))
    if kind < 4 and ("arguments" in exercise or identifier == "matrix-5"):
        result = plausible[0] if isinstance(plausible, list) and plausible else plausible
        one, nonsense = draw(_functions(result))
        return ((one, draw(_functions(result))[0]), nonsense) if identifier == "matrix-5" else (one, nonsense)
    if kind == 0:
        return draw(st.sampled_from(NONSENSE)), True
    if kind == 1:
        return draw(st.sampled_from(TOO_LARGE)), True
    if kind == 2:
        return draw(_spoiled(plausible)), True
    if kind == 3:  # too many parts
        return [plausible] * draw(st.integers(2, 4)), False
    return plausible, False
