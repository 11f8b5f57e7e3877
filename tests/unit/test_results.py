"""Typed answers: ends in order, readable, and never a bare float."""

import dataclasses
import math
import pickle
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dplib
from dplib import Bracket, Certificate, Estimate, NoBracketError, UpperBound
from dplib._print import at_least, at_most

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


def test_nothing_but_a_number_is_in_a_bracket():
    assert math.nan not in Bracket(0.0, 1.0)
    with pytest.raises(TypeError):
        "0.5" in Bracket(0.0, 1.0)  # noqa: B015


def test_bracket_is_no_float():
    bracket = Bracket(1.0, 2.0)
    with pytest.raises(TypeError, match=r"\.upper for a guarantee"):
        float(bracket)
    with pytest.raises(TypeError):
        bracket + 1
    with pytest.raises(TypeError):
        bracket < 3  # noqa: B015
    with pytest.raises(TypeError):
        math.exp(bracket)


@pytest.mark.parametrize(
    "bracket, text",
    [
        (Bracket(2.0, 2.0), "2 (exact)"),
        (Bracket(0.0, 0.0, "closed form"), "0 (exact, closed form)"),
        (Bracket(40.80104, 40.80104 * (1 + 3e-12), "contour"), "40.8011 (certified to 4e-12, contour)"),
        (Bracket(1.0000019, 1.1), "[1, 1.1] (certified)"),
        (Bracket(1.0, 1.5, "lattice"), "[1, 1.5] (certified, lattice)"),
        (Bracket(1.0, 1.5), "[1, 1.5] (certified)"),
    ],
)
def test_bracket_as_text(bracket, text):
    assert str(bracket) == text == f"{bracket}"


def test_a_wide_bracket_prints_both_ends():
    """Six digits of the upper end alone would hide a difference that they show."""
    text = str(Bracket(1.0, 1.0001))
    assert "1," in text and "1.0001" in text


def test_format_gives_the_upper_end():
    bracket = Bracket(1.23, 4.56789)
    assert f"{bracket:.2f}" == "4.57" and f"{bracket:8.1f}" == "     4.6"


SPECS = st.builds(
    "{}{}{}.{}{}".format,
    st.sampled_from(["", ">", "<", "*^", "+", "#"]),
    st.sampled_from(["", "12"]),
    st.sampled_from(["", ","]),
    st.integers(0, 8),
    st.sampled_from("efg"),
)


@given(st.floats(-1e100, 1e100, allow_subnormal=False), SPECS)
def test_printed_ends_are_rounded_outwards(value, spec):
    """The text above, the text below, and nothing with as many digits between them."""
    up, down = at_least(value, spec), at_most(value, spec)
    high, low = (Decimal(text.strip(" *").replace(",", "")) for text in (up, down))
    assert float(low) <= value <= float(high)
    assert format(value, spec) in (up, down) and format(float((low + high) / 2), spec) in (up, down)


def test_every_guarantee_is_printed_rounded_up():
    """As text, that is; with digits on demand it is formatted like any float."""
    assert str(Bracket(1.9999999, 2.0000001)) == "2.00001 (certified to 1e-07)"
    assert str(Bracket(1.9999999, 2.1)) == "[1.99999, 2.1] (certified)"
    assert str(UpperBound(2.0000001)) == "<= 2.00001 (upper bound)"
    assert "<= 2.00001 (certificate" in str(Certificate(2.0000001, 1e-9, 100))
    assert "<= 1.22 with" in str(Estimate(1.0, 0.1, 1.2101, 0.9))
    for bound in (Bracket(1.0, 2.344), UpperBound(2.344), Certificate(2.344, 1e-9, 100)):
        assert f"{bound:.3g}" == "2.34"


def test_bracket_is_frozen_and_survives_pickling():
    bracket = Bracket(1, 2, "lattice")
    assert type(bracket.lower) is float and type(bracket.upper) is float
    with pytest.raises(dataclasses.FrozenInstanceError):
        bracket.upper = 3.0
    assert pickle.loads(pickle.dumps(bracket)) == bracket


def test_method_is_on_the_result():
    bracket = dplib.PoissonDPSGD(1.0, 0.01, 2000).epsilon(1e-6)
    assert bracket.method == "contour" and "contour" in str(bracket)


def test_estimate_keeps_its_parts():
    estimate = Estimate(1, 0, 1, 0.95)
    assert (estimate.value, estimate.standard_error, estimate.upper, estimate.confidence) == (1, 0, 1, 0.95)
    assert all(type(x) is float for x in dataclasses.astuple(estimate)[:4])
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.value = 0.0


def test_estimate_refuses_an_upper_bound_below_the_value():
    with pytest.raises(ValueError, match=r"upper must be at least value; got 0.5 < 1.0"):
        Estimate(1.0, 0.1, 0.5, 0.9)


def test_estimate_is_no_float():
    with pytest.raises(TypeError, match="not a guarantee"):
        float(Estimate(1.0, 0.1, 1.2, 0.95))


@pytest.mark.parametrize(
    "estimate, text",
    [
        (
            Estimate(0.123456, 0.00123, 0.1259, 0.95),
            "0.1235 +- 0.0012 (estimate; <= 0.1259 with confidence 0.95)",
        ),
        (Estimate(1234.56, 12.3, 1259.0, 0.99), "1235 +- 12 (estimate; <= 1259 with confidence 0.99)"),
        (Estimate(2.0, 0.0, 2.0, 0.9), "2 (estimate)"),
        (Estimate(2.0, 0.0, 2.0, 0.9, "lines"), "2 (estimate, lines)"),
        (
            Estimate(1.2346e-9, 2.3e-11, 1.28e-9, 0.975, "lines"),
            "1.235e-09 +- 2.3e-11 (estimate, lines; <= 1.280e-09 with confidence 0.975)",
        ),
        (Estimate(3e-87, 2e-87, 7e-87, 0.9), "3.0e-87 +- 2.0e-87 (estimate; <= 7.0e-87 with confidence 0.9)"),
        (Estimate(0.0, 1e-3, 2e-3, 0.9), "0.0000 +- 0.0010 (estimate; <= 0.0020 with confidence 0.9)"),
    ],
)
def test_estimate_prints_no_more_digits_than_it_has(estimate, text):
    assert str(estimate) == text == f"{estimate}"
    assert f"{estimate:.1f}" == f"{estimate.value:.1f}"


def test_no_bracket_is_an_error_of_its_own():
    assert issubclass(NoBracketError, ArithmeticError) and not issubclass(NoBracketError, ValueError)


def test_upper_bound_is_one_sided_and_says_so():
    bound = UpperBound(2.267118, "Renyi", 14.3)
    assert str(bound) == "<= 2.26712 (upper bound, Renyi order 14.3)"
    assert f"{bound:.3f}" == "2.267" and f"{bound}" == str(bound)
    assert str(UpperBound(0.5)) == "<= 0.5 (upper bound)"
    assert str(UpperBound(0.5, "")) == "<= 0.5 (upper bound)"
    assert str(UpperBound(0.5, order=2)) == "<= 0.5 (upper bound, order 2)"
    assert str(UpperBound(0.5, order=1.00042)) == "<= 0.5 (upper bound, order 1 + 0.00042)"
    assert str(UpperBound(0.5, "tail bound")) == "<= 0.5 (upper bound, tail bound)"
    with pytest.raises(TypeError, match=r"use \.upper"):
        float(bound)
    with pytest.raises(dataclasses.FrozenInstanceError):
        bound.upper = 1.0
    assert pickle.loads(pickle.dumps(bound)) == bound


@pytest.mark.parametrize("upper", [-1e-300, math.nan, math.inf, "1", None, True])
def test_upper_bound_refuses_what_is_no_guarantee(upper):
    with pytest.raises((ValueError, TypeError), match="upper must be"):
        UpperBound(upper)


@pytest.mark.parametrize("order", [1.0, 0, math.inf, math.nan, "2"])
def test_upper_bound_refuses_what_is_no_order(order):
    with pytest.raises((ValueError, TypeError), match="order must be"):
        UpperBound(1.0, "Renyi", order)


def test_certificate_is_one_sided_and_says_how_it_may_fail():
    certificate = Certificate(1.2345678e-8, 1e-9, 2**17, "tuples")
    assert (
        str(certificate)
        == f"{certificate}"
        == ("<= 1.23457e-08 (certificate from 131072 samples, wrong with probability <= 1e-09; tuples)")
    )
    assert str(Certificate(0.5, 0.01, 10)).endswith("wrong with probability <= 0.01)")
    assert f"{certificate:.2e}" == "1.23e-08"
    with pytest.raises(TypeError, match="failure_probability"):
        float(certificate)
    with pytest.raises(TypeError):
        certificate < 1  # noqa: B015
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.upper = 0.0
    assert pickle.loads(pickle.dumps(certificate)) == certificate
