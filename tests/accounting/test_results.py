"""Typed answers: ends in order, readable, and never a bare float."""

import copy
import dataclasses
import json
import math
import pickle
import sys
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dplib
from dplib import Bracket, Certificate, Estimate, UpperBound, encoder_baselines
from dplib.lessons import baselines
from dplib.results import LowerEnd, UpperEnd

ENDS = st.tuples(*[st.floats(-1e100, 1e100, allow_subnormal=False)] * 2).map(sorted)


@given(ENDS)
def test_bracket_properties(ends):
    lower, upper = ends
    bracket = Bracket(lower, upper)
    assert bracket.width == upper - lower >= 0
    assert lower in bracket and upper in bracket
    assert lower <= bracket.midpoint <= upper and bracket.midpoint in bracket
    assert math.nextafter(upper, math.inf) not in bracket
    assert math.nextafter(lower, -math.inf) not in bracket
    assert bracket == Bracket(lower, upper) and hash(bracket) == hash(Bracket(lower, upper))


def test_relative_width_is_over_the_upper_end():
    assert Bracket(1.0, 4.0).relative_width == 0.75
    assert Bracket(-4.0, -2.0).relative_width == 1.0
    assert Bracket(0.0, 0.0).relative_width == 0.0
    assert Bracket(-1.0, 0.0).relative_width > 0


@pytest.mark.parametrize("ends", [(1.0, 0.0), (0.0, -1e-300), (math.nextafter(1, 2), 1.0)])
def test_bracket_refuses_ends_in_the_wrong_order(ends):
    with pytest.raises(ValueError, match=f"lower must be at most upper; got {ends[0]!r} > {ends[1]!r}"):
        Bracket(*ends)


@pytest.mark.parametrize(
    "result, text",
    [
        (Bracket(2.0, 2.0), "2 (exact)"),
        (Bracket(0.0, 0.0, "closed form"), "0 (exact, closed form)"),
        (Bracket(40.80104, 40.80104 * (1 + 3e-12), "contour"), "40.8011 (certified to 4e-12, contour)"),
        (Bracket(1.0000019, 1.1), "[1, 1.1] (certified)"),
        (Bracket(1.0, 1.5, "lattice"), "[1, 1.5] (certified, lattice)"),
        (UpperBound(2.267118, "Renyi", 14.3), "<= 2.26712 (upper bound, Renyi order 14.3)"),
        (UpperBound(0.5), "<= 0.5 (upper bound)"),
        (UpperBound(0.5, order=1.00042), "<= 0.5 (upper bound, order 1 + 0.00042)"),
        (
            Certificate(1.2345678e-8, 1e-9, 2**17, "tuples"),
            "<= 1.23457e-08 (certificate from 131072 samples, wrong with probability <= 1e-09; tuples)",
        ),
        (Estimate(0.123456, 0.00123, 0.1259, 0.95), "0.1235 +- 0.0012 (estimate; <= 0.1259 with confidence 0.95)"),
        (Estimate(2.0, 0.0, 2.0, 0.9, "lines"), "2 (estimate, lines)"),
        (Estimate(3e-87, 2e-87, 7e-87, 0.9), "3.0e-87 +- 2.0e-87 (estimate; <= 7.0e-87 with confidence 0.9)"),
        (Estimate(0.0, 1e-3, 2e-3, 0.9), "0.0000 +- 0.0010 (estimate; <= 0.0020 with confidence 0.9)"),
        # Guarantees are rounded up, lower ends down.
        (Bracket(1.9999999, 2.0000001), "2.00001 (certified to 1e-07)"),
        (Bracket(1.9999999, 2.1), "[1.99999, 2.1] (certified)"),
        (UpperBound(2.0000001), "<= 2.00001 (upper bound)"),
        (Certificate(2.0000001, 1.0000001e-9, 100), "<= 2.00001 (certificate from 100 samples, wrong with probability <= 1.00001e-09)"),
        (Estimate(1.0, 0.1, 1.2101, 0.9999999), "1.00 +- 0.10 (estimate; <= 1.22 with confidence 0.999999)"),
    ],
)
def test_results_as_text(result, text):
    """No more digits than the answer has."""
    assert str(result) == text == f"{result}"


FLOATS = st.one_of(
    st.floats(-1e100, 1e100),
    st.floats(1e-12, 1e12),
    st.integers(-(10**7), 10**7).flatmap(lambda n: st.integers(0, 9).map(lambda k: n / 10**k)),  # few digits
    st.tuples(st.integers(-30, 30), st.integers(-2, 2)).map(lambda kn: 10.0 ** kn[0] * (1 + kn[1] * 2.0**-52)),
)
KINDS = ["e", "E", "f", "F", "g", "G", "n", "%", ""]
DIGITS = st.tuples(st.sampled_from(["", *(f".{n}" for n in range(18))]), st.sampled_from(KINDS)).map("".join)
PADS = st.tuples(st.sampled_from(["", "*", " ", "-", "+", "9", "0", ".", "e", "%", "_"]), st.sampled_from("<>^"), st.sampled_from(["1", "12", "40"]))


def number_in(text):
    """Exactly the number that a text shows."""
    plain = Fraction(text.removesuffix("%").replace(",", "").replace("_", ""))
    return plain / 100 if text.endswith("%") else plain


@settings(max_examples=1000)
@given(FLOATS, st.sampled_from(["", "+", " ", "-"]), st.sampled_from(["", "z"]), st.sampled_from(["", "#"]), st.sampled_from(["", ",", "_"]), DIGITS)
def test_ends_are_printed_outward_in_every_form(value, sign, zero, alternate, group, digits):
    """The text above, the text below, and nothing with as many digits between them."""
    spec = f"{sign}{zero}{alternate}{'' if digits.endswith('n') else group}{digits}"
    up, down, plain = format(UpperEnd(value), spec), format(LowerEnd(value), spec), format(value, spec)
    high, low, exact = number_in(up), number_in(down), Fraction(value)
    # Digits that name this very float stay as they are, although most decimals are beside it.
    assert high >= exact or (up == plain and float(high) == value)
    assert low <= exact or (down == plain and float(low) == value)
    assert plain in (up, down)
    if len(digits) <= 3:  # up to nine digits, far fewer than a float has
        assert low == high or format(float((low + high) / 2), spec) in (up, down)
    if float(number_in(plain)) == value:
        assert up == down == plain


@given(FLOATS, PADS, st.sampled_from(["", "+", " "]), st.sampled_from(["", ",", "_"]), DIGITS)
def test_padding_does_not_change_the_number(value, pad, sign, group, digits):
    """Also with a fill that looks like a part of one."""
    body, (fill, align, width) = f"{'' if digits.endswith('n') else group}{digits}", pad
    for end in (UpperEnd(value), LowerEnd(value)):
        bare = format(end, sign + body)
        assert format(end, f"{fill}{align}{sign}{width}{body}") == format(bare, f"{fill}{align}{width}")
        if not group:
            zeros = format(end, f"{sign}0{width}{body}")
            assert len(zeros) == max(int(width), len(bare)) and number_in(zeros) == number_in(bare)


@pytest.mark.parametrize("kind", [UpperEnd, LowerEnd])
def test_an_end_is_a_float_in_all_else(kind):
    value = 1.23456
    end = kind(value)
    assert isinstance(end, float) and isinstance(end, kind)
    assert end == value and hash(end) == hash(value) and {end: 1}[value] == 1 and not end < value
    assert repr(end) == str(end) == f"{end}" == "1.23456"
    assert json.dumps({"end": [end]}) == json.dumps({"end": [value]})
    assert Fraction(end) == Fraction(value) and Decimal(end) == Decimal(value)
    for plain in (end + 1, 2 * end, end / end, -end, +end, abs(end), end**2, end % 1, round(end, 2), float(end), math.exp(end)):
        assert type(plain) is float
    for again in (max(end, 1.0), min(2.0, end), kind(end)):
        assert type(again) is kind and again == value


RESULTS = {
    Bracket(1.2344, 1.2346, "m"): (LowerEnd, UpperEnd),
    UpperBound(1.2346, "m", 2.0): (UpperEnd,),
    Certificate(0.12346, 1e-9, 5): (UpperEnd,),
    Estimate(1.0, 0.1, 1.2346, 0.9): (UpperEnd,),
}


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_the_ends_of_every_copy_know_their_direction(result):
    for again in (
        result, copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result)), dataclasses.replace(result),
        type(result)(**dataclasses.asdict(result)), type(result)(*map(_plain, dataclasses.astuple(result))),
    ):  # fmt: skip
        assert again == result and hash(again) == hash(result) and repr(again) == repr(result)
        kinds = [type(getattr(again, name)) for name in ("lower", "upper") if hasattr(again, name)]
        assert tuple(kinds) == RESULTS[result]
    assert f"{dataclasses.asdict(result)['upper']:.1g}" == f"{result.upper:.1g}" > f"{float(result.upper):.1g}"
    assert "End" not in repr(result)


def _plain(value):
    return float(value) if isinstance(value, float) else value


def test_every_guarantee_is_printed_rounded_up():
    """With digits on demand; where no float is above, as infinite."""
    assert format(UpperEnd(sys.float_info.max), ".7g") == "inf" and format(LowerEnd(sys.float_info.max), ".7g") == "1.797693e+308"
    for bound in (Bracket(1.0, 2.344), UpperBound(2.344), Certificate(2.344, 1e-9, 100)):
        assert f"{bound:.3g}" == f"{bound.upper:.3g}" == "2.35" and f"{bound:.2f}" == "2.35"
    assert f"{Bracket(1.237, 2.0).lower:.2f}" == "1.23"
    estimate = Estimate(1.237, 0.1, 1.311, 0.9)
    assert f"{estimate:.2f}" == f"{estimate.value:.2f}" == "1.24" and f"{estimate.upper:.2f}" == "1.32"


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_a_result_is_frozen_and_no_float(result):
    for use in (float, math.exp, lambda x: x + 1, lambda x: x < 3):
        with pytest.raises(TypeError):
            use(result)
    with pytest.raises(TypeError, match=r"use \.upper|\.upper for a guarantee|not a guarantee|failure_probability"):
        float(result)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.upper = 0.0


def test_what_is_certified_to_be_enough_is_printed_rounded_up():
    """Noise found by calibration, and the lemma for groups, as the ends of results."""
    mechanism = dplib.PoissonDPSGD(1.0, 0.01, 100)
    exact = dplib.BallsInBins(dplib.matrices.identity(4), 1.0, 4, 1)
    for found in (
        dplib.calibrate(mechanism, epsilon=1.0, delta=1e-5).noise_multiplier,
        dplib.calibrate(exact, epsilon=1.0, delta=1e-5, method="exact").noise_multiplier,
        encoder_baselines.unamplified(epsilon=1.0, delta=1e-5, batches_per_epoch=2, epochs=1).noise_multiplier,
        baselines.group_lemma(mechanism, 1e-5, 2),
    ):
        assert all(number_in(f"{found:.{digits}f}") >= Fraction(found) for digits in range(8))
        assert type(found) is UpperEnd
    guess = dplib.BallsInBins(dplib.matrices.optimal_counting(4), 1.0, 4, 1)
    assert type(dplib.calibrate(guess, epsilon=1.0, delta=1e-2, method="estimate", samples=64).noise_multiplier) is float


def test_estimate_refuses_an_upper_bound_below_the_value():
    with pytest.raises(ValueError, match=r"upper must be at least value; got 0.5 < 1.0"):
        Estimate(1.0, 0.1, 0.5, 0.9)
