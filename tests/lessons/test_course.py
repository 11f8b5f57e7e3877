"""Checking answers: right ones are accepted, those with too few digits are called close, wrong ones earn a hint."""

import decimal
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from course_answers import stored
from hypothesis import assume, given
from hypothesis import strategies as st

from dplib import Bracket
from dplib.lessons import course
from dplib.lessons.course import compare, properties
from dplib.lessons.course.verdicts import verdict

HINT = "This is the other direction; ε belongs to the remove direction."


def record(answer, *mistakes, **rules):
    """An exercise as the generator writes it, through JSON and back. Rules: digits, close, tolerance, arguments."""
    made = {"right": stored(answer), "mistakes": []} | rules
    for wrong, hint in mistakes:
        parts = compare.fitting(made["right"], compare.plain(wrong))
        made["mistakes"].append({"wrong": stored(parts), "hint": hint})
    if "digits" in made:
        made.setdefault("close", [2, 3])
    return json.loads(json.dumps(made))


@pytest.fixture
def exercises(monkeypatch):
    """Made-up exercises in place of those of the book."""
    made = {
        "area-1": record(0.25, (0.5, HINT), (2.5, "A factor of ten is missing here."), digits=5),
        "area-2": record([2.0, 3.0], ([4.0, 3.0], HINT), digits=5, arguments=[[1.0, "a"], [2.0, "b"]]),
        "area-3": {"property": True},
    }
    monkeypatch.setattr(course, "_exercises", lambda: made)
    return made


def said(capsys, identifier, answer):
    assert course.check(identifier, answer) is None
    text = capsys.readouterr().out
    assert course.passes(identifier, answer) is text.endswith(": correct.\n")
    return text.strip()


# --- what the reader sees -------------------------------------------------------------------------


def test_right_wrong_and_unknown_answers(exercises, capsys):
    assert said(capsys, "area-1", 0.25001) == "area-1: correct."
    assert said(capsys, "area-1", np.float64(0.25)) == "area-1: correct."
    assert said(capsys, "area-1", 0.50001) == f"area-1: not yet. {HINT}"
    assert said(capsys, "area-1", 2.5) == "area-1: not yet. A factor of ten is missing here."
    assert said(capsys, "area-1", 0.26).startswith("area-1: not yet. It is none of the usual mistakes.")
    assert said(capsys, "area-1", -0.25).startswith("area-1: not yet. It is none")


WRONG_KINDS = [
    (None, "There is no answer yet (None)."),
    ("0.25", "must be a number; this is '0.25' (str)"),
    (True, "must be a number; this is True"),
    (math.nan, "nan: some step has no defined value"),
    (max, "a function: call it"),
    (Bracket(0.24, 0.25), "take one end, .upper or .lower"),
]


@pytest.mark.parametrize("answer, message", WRONG_KINDS)
def test_answers_of_the_wrong_kind(exercises, capsys, answer, message):
    text = said(capsys, "area-1", answer)
    assert text.startswith("area-1: not yet. ") and message in text


def test_functions(exercises, capsys):
    assert said(capsys, "area-2", lambda number, text: number + 1) == "area-2: correct."
    assert said(capsys, "area-2", lambda number, text: 4.0 if text == "a" else 3.0) == f"area-2: not yet. {HINT}"

    def stub(number, text):
        raise NotImplementedError("your code here")

    def broken(number, text):
        raise KeyError("x")

    assert said(capsys, "area-2", stub) == "area-2: not yet. The function is not written yet."
    assert "With the arguments 1.0, 'a' the function raises KeyError: 'x'" in said(capsys, "area-2", broken)
    assert "returns None" in said(capsys, "area-2", lambda number, text: None)
    assert "must be a function; this is 3" in said(capsys, "area-2", 3)
    assert "Part 1 of the answer must be a number" in said(capsys, "area-2", lambda number, text: "x")


def test_properties(exercises, capsys, monkeypatch):
    def even(answer):
        return None if answer % 2 == 0 else "the number must be even"

    monkeypatch.setattr(properties, "find", {"area-3": even}.__getitem__)
    assert said(capsys, "area-3", 8) == "area-3: correct."
    assert said(capsys, "area-3", 7) == "area-3: not yet. The number must be even."
    assert "cannot use this answer: TypeError" in said(capsys, "area-3", "seven")
    assert "no answer yet" in said(capsys, "area-3", None)


@pytest.mark.parametrize("call", [course.check, course.passes])
def test_unknown_identifiers(exercises, call):
    with pytest.raises(ValueError, match="identifier must be the name of an exercise; got 'area-9'; similar ones are area-"):
        call("area-9", 1.0)
    with pytest.raises(ValueError, match="got 'zzz'; see dplib.lessons.course.identifiers"):
        call("zzz", 1.0)
    with pytest.raises(TypeError, match="identifier must be the name of an exercise such as"):
        call(3, 1.0)


# --- kinds ----------------------------------------------------------------------------------------


def accepts(answer, other, **rules):
    return verdict(record(answer, **rules), "x-1", other)[0]


@pytest.mark.parametrize(
    "answer, same, others",
    [
        (True, [True, np.True_], [False]),
        ("Remove", ["remove", "  REMOVE "], ["add", "remove it"]),
        ("two words", ["Two  words"], ["twowords"]),
        (Fraction(1, 3), [Fraction(2, 6)], [Fraction(1, 4), 3]),
        (Fraction(4, 2), [2, Fraction(2)], [4]),
        (120, [120, 120.0, np.int64(120)], [121, -120]),
        (0, [0, 0.0], [1]),
        ((1, "a", True, 0.5), [(1, "A", True, 0.5), [1, "a", True, 0.5]], [(1, "b", True, 0.5), (1, "a", True, 0.6)]),
        (np.array([[1.5, 2.5], [3.5, 4.5]]), [[[1.5, 2.5], [3.5, 4.5]]], [[[1.5, 3.5], [2.5, 4.5]]]),
    ],
)
def test_kinds(answer, same, others):
    assert all(accepts(answer, other, digits=4) for other in [answer, *same])
    assert not any(accepts(answer, other, digits=4) for other in others)


# --- digits ---------------------------------------------------------------------------------------

SIZES = st.floats(min_value=1e-280, max_value=1e280)
SIGNED = st.one_of(SIZES, SIZES.map(lambda size: -size))
DIGITS = st.integers(min_value=3, max_value=6)
ROUNDINGS = [decimal.ROUND_HALF_EVEN, decimal.ROUND_UP, decimal.ROUND_DOWN, decimal.ROUND_CEILING, decimal.ROUND_FLOOR]


def rounded(value, digits, rounding=decimal.ROUND_HALF_EVEN):
    return float(decimal.Context(prec=digits, rounding=rounding).create_decimal(repr(value)))


@given(value=SIGNED, digits=DIGITS, rounding=st.sampled_from(ROUNDINGS))
def test_every_rounding_to_the_digits_is_accepted(value, digits, rounding):
    assert accepts(value, rounded(value, digits, rounding), digits=digits)


@given(value=SIGNED, digits=DIGITS, units=st.floats(min_value=1.01, max_value=50.0), up=st.booleans())
def test_beyond_one_unit_of_the_last_digit_is_not(value, digits, units, up):
    step = units * compare.unit(value, digits)
    assert not accepts(value, value + step if up else value - step, digits=digits)


@given(value=SIGNED, digits=DIGITS, fewer=st.integers(min_value=1, max_value=3), rounding=st.sampled_from(ROUNDINGS))
def test_fewer_digits_are_close(value, digits, fewer, rounding):
    given = rounded(value, max(digits - fewer, 2), rounding)
    assume(abs(given - value) < 0.99999 * compare.unit(value, max(digits - fewer, 2)))
    right, hint = verdict(record(value, digits=digits), "x-1", given)
    assert right or hint == f"Close: give more digits. {digits} are asked for, and fewer agree."
    assert right == (abs(given - value) <= compare.unit(value, digits) * (1 + 1e-6))


@given(value=SIGNED, share=st.floats(min_value=-3.0, max_value=3.0))
def test_a_tolerance_is_relative_and_nothing_is_close(value, share):
    assume(abs(abs(share) - 1) > 1e-3)
    right, hint = verdict(record(value, tolerance=0.1), "x-1", value * (1 + 0.1 * share))
    assert right == (abs(share) < 1) and "Close" not in hint


@given(value=SIGNED, last_bits=st.integers(min_value=-8, max_value=8))
def test_the_last_bits_of_an_answer_do_not_matter(value, last_bits):
    """Another machine may compute another last bit: the answer stored there is accepted here."""
    assert accepts(value * (1 + last_bits * 2.0**-52), value, digits=6)


# --- what the package carries ---------------------------------------------------------------------


def test_the_exercises_of_the_book_have_answers():
    course._exercises.cache_clear()
    names = course.identifiers()
    assert len(names) == len(set(names)) > 0
    for name in names:
        exercise = course._exercise(name)
        if exercise.get("property"):
            assert callable(properties.find(name)), name
        else:
            assert {"right", "mistakes"} <= set(exercise), name
        assert verdict(exercise, name, None) == (False, "There is no answer yet (None).")
