"""Answers that no exercise asks for: a hint, never a traceback, a hang or a full memory."""

import itertools
import math
import sys

import pytest
from fuzz_answers import NONSENSE, TOO_LARGE, Unprintable

from dplib.lessons import course
from dplib.lessons.course import verdicts

STORED, FUNCTION, PROPERTY = "group-3", "hockey-3", "hockey-5"


def endless(*arguments):
    while True:
        pass


HOSTILE = [*NONSENSE, *TOO_LARGE, itertools.count(), range(10**12), 10**5000, [[Unprintable()] * 2]]
MOST_CALLS = 1_500_000  # and returns, of Python's and C's functions: nothing looks at each part of a huge answer


@pytest.mark.parametrize("identifier", [STORED, FUNCTION, PROPERTY])
@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_any_answer_earns_a_hint(identifier, number, capsys):
    calls = 0

    def count(*_):
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        course.check(identifier, HOSTILE[number])
    finally:
        sys.setprofile(None)
    assert capsys.readouterr().out.startswith(f"{identifier}: not yet. ")
    assert calls < MOST_CALLS  # however large the answer is


@pytest.mark.parametrize(
    "answer",
    [
        (math.inf, 1.9e-4, 347),
        (1.5, 0.2, math.inf),
        (8.0, 0.5, 1e308),
        (1 + 1e-12, 0.5, 1e300),
        (1.0001, 0.3, 1e17),
        (300.0, 0.5, 1e5),
        (2.0, 1e-300, 1e308),
    ],
)
def test_rounding_and_overflow_prove_nothing(answer):
    """Where a difference is lost in rounding, or is no number, no comparison may call the answer correct."""
    assert not course.passes("renyi-5", answer)


def test_a_function_that_never_ends(monkeypatch):
    monkeypatch.setattr(verdicts, "_PATIENCE", 0.2)
    right, hint = course.verdict(course._exercise(FUNCTION), FUNCTION, endless)
    assert not right and "ended after 0.2 s" in hint
