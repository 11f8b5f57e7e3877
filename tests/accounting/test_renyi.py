"""Renyi divergences, sampling bounds and conversions: against 25 digits and closed forms."""

import math
from functools import partial

import numpy as np
import pytest
from mpmath import mp, mpf
from oracle_cases import load, pair

from dplib import Bracket, NoBracketError, mixtures, renyi
from dplib._base.log_space import log_sum_exp
from dplib.accounting import renyi_moments

VALUES = load("renyi")
NAMES = [v["id"] for v in VALUES]
SIDES = ("remove", "add")


def curve_of(sigma):
    return partial(renyi.gaussian, noise_multiplier=sigma)


# ------------------------------------------------------------- divergences


@pytest.mark.parametrize("value", VALUES, ids=NAMES)
def test_divergence_against_25_digits(value):
    """Every truth inside its bracket, the bracket below 1e-12, rounding a tenth of its allowance."""
    bracket = renyi.divergence(pair(value["params"]), float(value["order"]), value["direction"])
    truth = mpf(value["divergence"])
    assert mpf(bracket.lower) <= truth <= mpf(bracket.upper)
    assert bracket.relative_width < 1e-12
    assert abs(mpf(bracket.midpoint) / truth - 1) < 1e-14
    # Strip error and truncation are below 1e-13: what is left is the rounding, ten times inside.
    assert abs(mpf(bracket.midpoint) - truth) < mpf(bracket.width) / 10


def test_quadrature_bounds_are_not_vacuous(monkeypatch):
    """Too coarse a step: the true error is visible, and the strip bound covers it."""
    truth = renyi.subsampled_gaussian(6.5, 0.5, 0.2, "remove").midpoint
    seen = 0
    for sign, exact in ((1, truth), (-1, renyi.subsampled_gaussian(6.5, 0.5, 0.2, "add").midpoint)):
        side = renyi_moments.Moments(mixtures.binomial(1, 0.2, 0.5))
        for level in (-3, -2, -1, 0, 1, 2, 3):
            integral = renyi_moments._Integral(side, 5.5, sign)
            rule = renyi_moments._Quadrature(integral, level, *integral._window(40.0))
            error = abs(math.exp(rule.log_sum) - math.expm1(5.5 * exact))
            assert math.log(error + 1e-300) <= np.logaddexp(rule.log_strip()[0], rule.log_sum - 30)
            seen += error > 1e-6
    assert seen >= 4


def test_truncation_bound_covers_what_is_left_out():
    """Narrow windows: the missing part is below `log_outside`, in both directions."""
    for sign in (1, -1):
        side = renyi_moments.Moments(mixtures.binomial(3, 0.3, 0.8))
        integral = renyi_moments._Integral(side, 2.5, sign)
        whole = renyi_moments._Quadrature(integral, 8, -40.0, 60.0)
        checked = 0
        for low, high in ((-1.0, 20.0), (-3.0, 14.0), (-9.0, 16.0), (-12.0, 8.0)):
            rule = renyi_moments._Quadrature(integral, 8, low, high)
            outside = (whole.u < rule.u[0]) | (whole.u > rule.u[-1])
            bound = rule.log_outside()
            missing = float(log_sum_exp(whole.log_terms[outside])) + math.log(rule.step)
            assert missing <= bound
            checked += bound < math.inf
        assert checked >= 2


@pytest.mark.parametrize("sigma, q", [(2.0, 0.01), (1.0, 0.1), (5.0, 1e-3), (0.5, 0.3)])
def test_zw_2_the_sum_is_the_remove_divergence_at_integer_orders(sigma, q):
    """[ZW-2] F_1 equals D(P||Q): two routes, quadrature and the binomial expansion, to 1e-12."""
    orders = [2, 3, 5, 10, 33, 100, 256, 512, 1200]
    exact = renyi.subsampled_gaussian(orders, sigma, q, "remove")
    expansion = renyi.zhu_wang(orders, curve_of(sigma), q)
    for bracket, value in zip(exact, expansion):
        assert abs(value / bracket.midpoint - 1) < 1e-12
        assert value >= bracket.lower


def test_zw_4_published_check():
    """[ZW-4] sigma = 1, gamma = 1e-3, order 10; [ZW-1] sigma = 1, gamma = 0.1, order 2."""
    sides = [renyi.subsampled_gaussian(10, 1.0, 1e-3, side) for side in SIDES]
    assert [f"{float(side.upper):.4e}" for side in sides] == ["8.7853e-06", "8.3520e-06"]
    both = renyi.subsampled_gaussian(10, 1.0, 1e-3)
    assert both == sides[0]
    two = renyi.subsampled_gaussian(2, 1.0, 0.1)
    assert f"{float(two.upper):.6f}" == "0.017037"
    # With the prefactor 1 / order in place of 1 / (order - 1) the "bound" is below the truth.
    assert f"{two.upper / 2:.6f}" == "0.008518" and two.lower > 0.0086


@pytest.mark.parametrize("q", [5e-324, 1e-310, 1e-200, 1e-162, 1e-160, 1e-100])
@pytest.mark.parametrize("sigma", [0.024, 0.05, 1.0, 30.0])
def test_the_smallest_sampling_probabilities(q, sigma):
    """Among the smallest floats, too, the truth lies inside, and no divergence that is not 0 is bounded by 0."""
    with mp.workdps(700):
        for order in (2, 3):
            far = [mp.exp(mpf(j * (j - 1)) / (2 * mpf(sigma) ** 2)) for j in range(order + 1)]
            total = mp.fsum(mp.binomial(order, j) * (1 - mpf(q)) ** (order - j) * mpf(q) ** j * far[j] for j in range(order + 1))
            truth = mp.log(total) / (order - 1)
            try:
                bracket = renyi.subsampled_gaussian(order, sigma, q, "remove")
            except NoBracketError as error:
                assert q < 1e-323 and sigma == 30.0 and "range of floats" in str(error)
                continue
            assert 0 <= mpf(bracket.lower) <= truth <= mpf(bracket.upper)


def test_trivial_and_plain_gaussian_pairs_are_closed_forms():
    assert renyi.subsampled_gaussian(5, 1.0, 0.0) == Bracket(0.0, 0.0, "closed form")
    for order in (1.01, 2.0, 300.5):
        bracket = renyi.subsampled_gaussian(order, 0.7, 1.0)
        assert renyi.gaussian(order, 0.7) in bracket and bracket.relative_width < 1e-14
        assert bracket.method == "closed form"


# -------------------------------------------------------------- closed forms


def test_laplace_and_randomized_response_against_40_digits():
    with mp.workdps(60):
        for order, b in [(1.0001, 1.0), (2.0, 0.3), (7.5, 2.0), (100.0, 50.0), (1.5, 1e4)]:
            a, c = mpf(order), mpf(b)
            moment = a / (2 * a - 1) * mp.exp((a - 1) / c) + (a - 1) / (2 * a - 1) * mp.exp(-a / c)
            assert renyi.laplace(order, b) == pytest.approx(float(mp.log(moment) / (a - 1)), rel=1e-13)
        for order, p in [(1.0001, 0.75), (2.0, 0.5001), (30.0, 0.9), (4.5, 0.2)]:
            a, c = mpf(order), mpf(p)
            moment = c**a * (1 - c) ** (1 - a) + (1 - c) ** a * c ** (1 - a)
            got = renyi.randomized_response(order, p)
            assert got == pytest.approx(float(mp.log(moment) / (a - 1)), rel=1e-12)
    assert renyi.randomized_response(3.0, 0.5) == 0.0


# ---------------------------------------------------------------- sampling


@pytest.mark.parametrize("order", [2, 3, 7, 40])
def test_zw_1_the_sum_written_out(order):
    """[ZW-1] against the formula itself, in 50 digits, for c = 1, 2.5 and 3."""
    gamma, epsilon = 0.013, lambda l: 0.02 * l + 0.1
    with mp.workdps(50):
        g = mpf(gamma)
        for c in (1, 2.5, 3):
            total = (1 - g) ** (order - 1) * (order * g - g + 1)
            for l in range(2, order + 1):
                factor = 1 if l == 2 else mpf(c)
                term = mp.binomial(order, l) * g**l * (1 - g) ** (order - l)
                total += factor * term * mp.exp((l - 1) * mpf(epsilon(l)))
            truth = float(mp.log(total) / (order - 1))
            got = renyi.zhu_wang(order, epsilon, gamma, c)
            assert got == pytest.approx(truth, rel=1e-13) and got >= truth * (1 - 1e-16)


def test_zw_1_and_zw_3_bound_both_directions():
    """[ZW-1], [ZW-3] c = 1 is enough: above both directions, at integers and between; c = 3 is above c = 1."""
    for sigma, gamma in [(5.0, 1e-3), (1.0, 1e-3), (1.0, 0.1), (0.6, 0.4)]:
        orders = [1.5, 2, 2.5, 3, 5, 7.3, 10]
        one, three = (renyi.zhu_wang(orders, curve_of(sigma), gamma, c) for c in (1, 3))
        assert np.all(three >= one) and three[4] > one[4]
        for side in SIDES:
            exact = renyi.subsampled_gaussian(orders, sigma, gamma, side)
            assert all(bound >= bracket.lower for bound, bracket in zip(one, exact))


def test_zhu_wang_at_the_ends():
    assert renyi.zhu_wang(7, curve_of(1.0), 0.0) == 0.0
    for order in (2, 5, 40):
        assert renyi.zhu_wang(order, curve_of(1.0), 1.0) == pytest.approx(order / 2, rel=1e-14)
    assert renyi.zhu_wang(5, curve_of(1.0), 1.0, 3) == pytest.approx(2.5 + math.log(3) / 4, rel=1e-14)
    # Below order 2 the chord from (1, 0) gives the value at 2; in between the chord of neighbours.
    two, three = np.array([1, 2]) * renyi.zhu_wang([2, 3], curve_of(1.0), 0.1)
    assert renyi.zhu_wang(1.3, curve_of(1.0), 0.1) == two
    assert renyi.zhu_wang(2.25, curve_of(1.0), 0.1) == pytest.approx((0.75 * two + 0.25 * three) / 1.25)
    # Nothing cancels at tiny rates, nothing overflows at large orders.
    tiny = renyi.zhu_wang(3, curve_of(2.0), 1e-9)
    assert tiny == pytest.approx(1.5e-18 * math.expm1(0.25), rel=1e-8, abs=0)
    assert renyi.zhu_wang(1500, curve_of(0.3), 0.5) < 1500 / (2 * 0.09)
    assert renyi.zhu_wang(3, lambda order: 0.0, 0.3) == 0.0
    # A Bracket counts with its upper end.
    bracket = lambda order: Bracket(0.0, order / 2)
    assert renyi.zhu_wang(6, bracket, 0.1) == renyi.zhu_wang(6, curve_of(1.0), 0.1)


# -------------------------------------------------------------- conversions


def test_zw_6_conversion_formulas():
    """[ZW-6] at one order, both conversions and both ways, written out."""
    order, delta, value = 9.0, 1e-5, 0.35
    curve, one = (lambda _: value), [order]
    classic = renyi.to_epsilon(curve, delta, conversion="classic", orders=one)
    assert classic.upper == pytest.approx(value + math.log(1 / delta) / 8, rel=1e-14)
    improved = renyi.to_epsilon(curve, delta, orders=one)
    want = value + math.log(8 / 9) - (math.log(delta) + math.log(9)) / 8
    assert improved.upper == pytest.approx(want, rel=1e-14) and improved.order == 9.0
    epsilon = 2.0
    assert renyi.to_delta(curve, epsilon, conversion="classic", orders=one).upper == pytest.approx(
        math.exp(8 * (value - epsilon)), rel=1e-13
    )
    assert renyi.to_delta(curve, epsilon, orders=one).upper == pytest.approx(
        math.exp(8 * (value - epsilon)) / 8 * (1 - 1 / 9) ** 9, rel=1e-13
    )
    # The two ways are inverse to each other.
    for conversion in renyi.CONVERSIONS:
        there = renyi.to_epsilon(curve, delta, conversion=conversion, orders=one).upper
        assert renyi.to_delta(curve, there, conversion=conversion, orders=one).upper == pytest.approx(delta)


def test_search_over_awkward_curves():
    # Infinite beyond some order, or where the curve refuses.
    cut = renyi.to_epsilon(lambda order: order / 2 if order < 3 else math.inf, 1e-6)
    assert cut.order < 3

    def refuses(order):
        if order > 1.5:
            raise NoBracketError("too hard")
        return order

    assert 1 < renyi.to_epsilon(refuses, 1e-3).order <= 1.5
    # Pure differential privacy: large orders, towards the pure value.
    pure = renyi.to_epsilon(lambda order: 0.7, 1e-6)
    assert 0.6999 < pure.upper < 0.7001 and pure.order > 1e5
    with pytest.raises(NoBracketError, match="infinite at every order"):
        renyi.to_epsilon(lambda order: math.inf, 1e-6)
    # Far too little noise: orders next to 1.
    loud = renyi.to_epsilon(lambda order: 1e9 * order, 1e-6)
    assert 1 < loud.order < 1.001 and 1e9 < loud.upper < 1.0003e9
    assert renyi.to_delta(lambda order: 1e9 * order, 1.0).upper == 1.0
    assert renyi.to_delta(lambda order: order, 1e4).upper == 5e-324
    value, order = renyi.log_delta(lambda order: order, 1e4)
    assert value < -2e7 and order > 1000


# ------------------------------------------------------------ bad input


def test_bad_values_of_a_curve_are_named_with_their_order():
    with pytest.raises(ValueError, match=r"curve must return a value of at least 0; got -3.0 at order 2.5"):
        renyi.to_epsilon(lambda order: -3.0, 0.1, orders=[2.5])
    with pytest.raises(ValueError, match=r"epsilon_of_order must not decrease .* at 2 and .* at 3"):
        renyi.zhu_wang(3, lambda order: 3 - order / 2, 0.1)
    with pytest.raises(ValueError, match="curve"):
        renyi.compose([(lambda order: -1.0, 1)])(2.0)
