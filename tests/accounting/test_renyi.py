"""Renyi divergences, sampling bounds and conversions: against 25 digits, closed forms and the peer."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from oracle_cases import load, pair
from scipy import integrate, stats

import dplib
from dplib import Bracket, NoBracketError, UpperBound, accounting, gaussian, mixtures, renyi
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


@pytest.mark.parametrize("value", VALUES[:24], ids=NAMES[:24])
def test_rounding_allowance_holds_without_the_other_terms(value):
    side = renyi_moments.Moments(pair(value["params"]))
    s = float(value["order"]) - 1
    integral = renyi_moments._Quadrature(side, s, 1 if value["direction"] == "remove" else -1)
    recorded = []
    allowance = integral._rounding
    integral._rounding = lambda *arguments: recorded.append((arguments[-1], allowance(*arguments))) or 0.0
    integral.log_bounds()
    [(log_sum, allowed)] = recorded
    with mp.workdps(40):
        truth = mp.log(mp.expm1(mpf(value["divergence"]) * mpf(s)))
        assert abs(mpf(float(log_sum)) - truth) <= 0.2 * allowed


def test_quadrature_bounds_are_not_vacuous(monkeypatch):
    """Too coarse a step: the true error is visible, and the strip bound covers it."""
    truth = renyi.subsampled_gaussian(6.5, 0.5, 0.2, "remove").midpoint
    seen = 0
    for sign, exact in ((1, truth), (-1, renyi.subsampled_gaussian(6.5, 0.5, 0.2, "add").midpoint)):
        side = renyi_moments.Moments(mixtures.binomial(1, 0.2, 0.5))
        for level in (-3, -2, -1, 0, 1, 2, 3):
            integral = renyi_moments._Quadrature(side, 5.5, sign)
            low, high = integral._window(40.0)
            u, t, m = side.grid(level, low, high)
            integral.step = 2.0 ** (-level / 2)
            terms = integral._log_terms(u, t)
            log_sum = float(mixtures.log_sum_exp(terms)) + math.log(integral.step)
            error = abs(math.exp(log_sum) - math.expm1(5.5 * exact))
            bound = integral._log_strip(u, t, m, log_sum)[0]
            assert math.log(error + 1e-300) <= np.logaddexp(bound, log_sum - 30)
            seen += error > 1e-6
    assert seen >= 4


def test_the_integral_on_a_shifted_line_is_bounded():
    """int |phi R^w|(u + ia) du, w < 0, by a sum over complex numbers; for small shifts it is nearly e^(a^2 / 2) int phi R^w."""
    for sigma, s in ((20.0, 2.0), (1.0, 4.5), (0.5, 1.5)):
        side = renyi_moments.Moments(mixtures.binomial(1, 0.2, sigma))
        integral = renyi_moments._Quadrature(side, s, -1)
        integral.step = 2.0**-4
        u, t, m = side.grid(8, *integral._window(40.0))
        lines = min(1.2 / math.sqrt(side.variance), 12.0) * np.array([0.25, 0.5, 1.0])
        for a, bound in zip(lines, integral._log_lines(u, t, m, lines)):
            z = u + 1j * a
            ratio = 0.8 + 0.2 * np.exp(side.top * z - side.top**2 / 2)
            logs = (a * a - u * u) / 2 - s * np.log(np.abs(ratio)) - math.log(2 * math.pi) / 2
            assert float(mixtures.log_sum_exp(logs)) + math.log(integral.step) <= bound + 1e-12


def test_truncation_bound_covers_what_is_left_out():
    """Narrow windows: the missing part is below `_log_outside`, in both directions."""
    for sign in (1, -1):
        side = renyi_moments.Moments(mixtures.binomial(3, 0.3, 0.8))
        integral = renyi_moments._Quadrature(side, 2.5, sign)
        integral.step = 2.0 ** (-4)
        u, t, m = side.grid(8, -40.0, 60.0)
        whole = integral._log_terms(u, t)
        checked = 0
        for low, high in ((-1.0, 20.0), (-3.0, 14.0), (-9.0, 16.0), (-12.0, 8.0)):
            inside = (u >= low) & (u <= high)
            bound = integral._log_outside(u[inside], t[inside], m[inside])
            missing = float(mixtures.log_sum_exp(whole[~inside])) + math.log(integral.step)
            assert missing <= bound
            checked += bound < math.inf
        assert checked >= 2


@pytest.mark.parametrize("direction", SIDES)
def test_divergence_by_another_quadrature(direction):
    """SciPy's adaptive rule on the definition, at mixtures that the table lacks."""
    for mixture in (mixtures.hypergeometric(20, 100, 3, 2.0), mixtures.product([0.2, 0.5], [1.0, 0.3], 1.0)):
        for order in (1.3, 2.0, 5.5):
            power = order if direction == "remove" else 1 - order
            integrand = lambda x, m=mixture, w=power: m.reference_density(x) * math.exp(w * m.loss(x))
            moment = integrate.quad(integrand, -30, 60, epsabs=0, epsrel=1e-12, limit=400, points=[0, 5])[0]
            value = math.log(moment) / (order - 1)
            bracket = renyi.divergence(mixture, order, direction)
            assert bracket.midpoint == pytest.approx(value, rel=1e-8)


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


def test_zw_5_rate_and_phase_transition():
    """[ZW-5] leading term (order / 2) gamma^2 (e^{eps(2)} - 1), until gamma^order e^{...} takes over."""
    gamma, sigma = 1e-4, 2.0
    for order in (2, 4, 8):
        lead = order / 2 * gamma**2 * math.expm1(renyi.gaussian(2.0, sigma))
        assert renyi.zhu_wang(order, curve_of(sigma), gamma) == pytest.approx(lead, rel=2e-3, abs=0)
    truth = renyi.subsampled_gaussian(10, 1.0, 0.1).midpoint
    lead = 5 * 0.01 * math.expm1(1.0)
    assert f"{truth:.2f}" == "2.44" and 0.08 < lead < 0.11


def test_divergence_grows_with_the_order_and_tends_to_kl():
    """(order - 1) D is convex, D increases; near order 1 it is the Kullback-Leibler divergence."""
    mixture = mixtures.binomial(2, 0.2, 0.9)
    orders = [1 + 1e-9, 1.001, 1.01, 1.2, 2.0, 3.5, 10.0, 77.7, 500.0]
    for direction in SIDES:
        brackets = renyi.divergence(mixture, orders, direction)
        values = [b.midpoint for b in brackets]
        assert values == sorted(values)
        x, y = np.array(orders) - 1, (np.array(orders) - 1) * values
        slopes = np.diff(y) / np.diff(x)
        assert np.all(np.diff(slopes) > -1e-9 * slopes[1:])
        sign = 1 if direction == "remove" else -1
        law = mixture.density if direction == "remove" else mixture.reference_density
        kl = integrate.quad(lambda x, s=sign, f=law: s * mixture.loss(x) * f(x), -15, 20, epsabs=1e-13)[0]
        assert values[0] == pytest.approx(kl, rel=1e-7)
        # One call with all orders and single calls give the same numbers up to their allowance.
        for order, bracket in zip(orders, brackets):
            alone = renyi.divergence(mixture, order, direction)
            assert alone.lower <= bracket.upper and bracket.lower <= alone.upper


def test_both_is_the_larger_direction():
    mixture = mixtures.binomial(1, 0.3, 1.0)
    remove, add = (renyi.divergence(mixture, 3.0, side) for side in SIDES)
    assert renyi.divergence(mixture, 3.0) == remove and remove.lower > add.upper
    mixture = mixtures.Mixture([0.0, 1e-3, 3.0], [0.5, 0.1, 0.4], 0.5)
    both = renyi.divergence(mixture, 1.5)
    assert both.upper == max(renyi.divergence(mixture, 1.5, side).upper for side in SIDES)


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


FAR = [
    (1, 1e-8, 1000.0, 1.0001), (1, 1e-8, 0.05, 1.0001), (1, 0.5, 0.05, 1e6), (1000, 0.01, 0.05, 3.0),
    (1000, 0.3, 50.0, 1e4), (30, 1e-3, 0.1, 512.0), (2, 0.9, 1000.0, 1e6), (64, 0.01, 1.0, 1.01),
]  # fmt: skip


@pytest.mark.parametrize("k, q, sigma, order", FAR)
@pytest.mark.parametrize("direction", SIDES)
def test_far_outside_the_stated_range_it_still_answers(k, q, sigma, order, direction):
    bracket = renyi.divergence(mixtures.binomial(k, q, sigma), order, direction)
    assert 0 < bracket.lower and bracket.relative_width < 1e-7
    # A plain Gaussian with every record in is larger; data processing.
    assert bracket.lower <= order * (k / sigma) ** 2 / 2


def test_limit_of_large_orders():
    """remove: order a^2 / 2 + order / (order - 1) log q; add: log 1 / (1 - q), the largest loss."""
    q, sigma, order = 0.3, 0.8, 1e7
    remove = renyi.subsampled_gaussian(order, sigma, q, "remove").midpoint
    assert remove == pytest.approx(order / (2 * sigma**2) + math.log(q), rel=1e-6)
    add = renyi.subsampled_gaussian(order, sigma, q, "add")
    assert add.upper < -math.log1p(-q) < add.upper * 1.001


@pytest.mark.parametrize("k, q, sigma, order", [(1, 0.1, 0.3, 64.5), (3, 0.4, 0.7, 40.0), (5, 0.02, 1.0, 20.0), (8, 0.2, 0.5, 1e4)])
def test_one_component_bracket_agrees_with_the_quadrature(k, q, sigma, order):
    """Minkowski's inequality in one line against the integral; both certified, both narrow."""
    side = renyi_moments.Moments(mixtures.binomial(k, q, sigma))
    bracket = side._one_component(order, order - 1)
    low, high = renyi_moments._Quadrature(side, order - 1, 1).log_bounds()
    assert bracket.relative_width < 1e-13
    assert bracket.lower <= high / (order - 1) * (1 + 1e-15) and low / (order - 1) <= bracket.upper * (1 + 1e-15)


@pytest.mark.parametrize("order", [1.01, 1.7, 3.0, 9.5])
def test_minkowski_bounds_hold_where_they_are_wide(order):
    mixture, s = mixtures.product([0.3, 0.6, 0.1], [0.4, 1.0, 2.2], 0.9), order - 1
    terms = mixture.log_probabilities + s * mixture.shifts**2 / 2
    exact = renyi.divergence(mixture, order, "remove")
    assert order / s * terms.max() <= exact.upper
    assert exact.lower <= order / s * float(mixtures.log_sum_exp(terms))
    assert renyi_moments.Moments(mixture)._one_component(order, s) is None


def test_refusals_say_why():
    wide = mixtures.Mixture([0.0, 7.0, 1e6], [0.4, 0.3, 0.3], 0.01)
    with pytest.raises(NoBracketError, match="nodes"):
        renyi.divergence(wide, 2.5, "add")
    with pytest.raises(NoBracketError, match="leaves the range of floats"):
        renyi.divergence(mixtures.Mixture([1e149], [1.0], 1.0), 1e6)
    hard = renyi_moments._Quadrature(renyi_moments.Moments(mixtures.binomial(1, 0.1, 1.0)), 1.0, 1)
    hard._log_terms = lambda u, t: np.full(u.shape, np.inf)
    with pytest.raises(NoBracketError, match="does not close"):
        hard.log_bounds()


def test_distant_windows_do_not_share_a_grid():
    side = renyi_moments.Moments(mixtures.binomial(1, 0.1, 1.0))
    first = side.grid(4, -3.0, 3.0)
    assert side.grid(4, 5000.0, 5001.0)[0][0] == 5000.0
    assert np.array_equal(side.grid(4, -3.0, 3.0), first)
    wider = side.grid(4, -5.0, 6.0)
    assert wider.shape == (3, 45) and np.array_equal(wider[:, 8:33], first)


@given(st.floats(-700, 700))
def test_e2_keeps_its_digits(x):
    with mp.workdps(60):
        truth = mp.expm1(mpf(x)) - mpf(x) if abs(x) > 1e-20 else mpf(x) ** 2 / 2
        want = float(mp.log(truth)) if x else -math.inf
    got = float(renyi_moments.log_e2(np.array(x)))
    assert got == pytest.approx(want, rel=1e-14, abs=1e-14)


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


def test_closed_forms_take_arrays():
    orders = np.array([[1.5, 2.0], [3.0, 64.0]])
    for curve in (
        curve_of(2.0), partial(renyi.laplace, scale=1.5), partial(renyi.randomized_response, probability=0.8),
    ):  # fmt: skip
        values = curve(orders)
        assert values.shape == (2, 2) and isinstance(curve(2.0), float)
        assert values[0, 1] == curve(2.0) and np.all(np.diff(values.ravel()) > 0)
    # Pure differential privacy bounds every order.
    assert renyi.laplace(1e6, 2.0) < 0.5 and renyi.randomized_response(1e6, 0.8) < math.log(4)


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


def test_zw_3_discrete_pairs():
    """[ZW-3] c = 1 bounds the add direction of random laws on 2 to 4 points, eps(l) of both orderings."""
    generator = np.random.default_rng(7)
    divergence = lambda p, q, o: max(math.log(float(np.sum(p**o * q ** (1 - o)))) / (o - 1), 0.0)
    for _ in range(200):
        p0, p1 = (generator.dirichlet(np.ones(generator.integers(2, 5))) for _ in range(2))
        size = min(len(p0), len(p1))
        p0, p1 = p0[:size] / p0[:size].sum(), p1[:size] / p1[:size].sum()
        gamma, order = generator.uniform(0.01, 0.99), int(generator.integers(2, 10))
        both = lambda l, p=p0, q=p1: max(divergence(p, q, l), divergence(q, p, l))
        mixed = (1 - gamma) * p0 + gamma * p1
        bound = renyi.zhu_wang(order, both, gamma)
        truth = max(divergence(p0, mixed, order), divergence(mixed, p0, order))
        assert truth <= bound * (1 + 1e-10) + 1e-12


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


REFERENCE = [
    (5.0, 60_000, "0.3023", "0.2519"), (1.0, 60_000, "2.267", "1.973"), (1.0, 1, "1.417", "1.140"),
]  # fmt: skip


@pytest.mark.parametrize("sigma, rounds, classic, improved", REFERENCE)
def test_zw_7_reference_values(sigma, rounds, classic, improved):
    """[ZW-7] gamma = 1e-3, delta = 1e-8: integer orders as published; real orders are at most that."""
    curve = renyi.mixture_curve(mixtures.binomial(1, 1e-3, sigma), "remove")
    for conversion, want in (("classic", classic), ("improved", improved)):
        whole = renyi.to_epsilon(curve, 1e-8, rounds=rounds, conversion=conversion, orders=range(2, 160))
        assert f"{float(whole.upper):.{len(want) - 2}f}" == want
        free = renyi.to_epsilon(curve, 1e-8, rounds=rounds, conversion=conversion)
        assert free.upper <= whole.upper
        same = renyi.to_epsilon(
            partial(renyi.zhu_wang, epsilon_of_order=curve_of(sigma), sampling_probability=1e-3),
            1e-8, rounds=rounds, conversion=conversion,
        )  # fmt: skip
        assert same.upper == pytest.approx(whole.upper, rel=1e-10) and same.order == whole.order


@pytest.mark.parametrize("conversion", renyi.CONVERSIONS)
@pytest.mark.parametrize("mu", [0.03, 1.0, 40.0])
@pytest.mark.parametrize("delta", [0.4, 1e-6, 1e-40])
def test_search_finds_the_best_order(mu, delta, conversion):
    """Against a fine grid of orders, and never below the Gaussian truth."""
    curve = lambda order: order * mu * mu / 2
    bound = renyi.to_epsilon(curve, delta, conversion=conversion)
    grid = 1 + np.exp(np.linspace(-12, 13, 4001))
    extra = grid * np.log1p(-1 / grid) - np.log(grid - 1) if conversion == "improved" else 0.0
    best = np.min(curve(grid) + (extra - math.log(delta)) / (grid - 1))
    assert bound.upper <= max(best, 0.0) * (1 + 1e-12)
    assert bound.upper >= max(best * (1 - 1e-4), gaussian.epsilon(mu, delta) * (1 - 1e-12))
    if conversion == "classic":
        closed = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))
        assert bound.upper == pytest.approx(closed, rel=1e-10)
    back = renyi.to_delta(curve, bound.upper, conversion=conversion)
    assert back.upper <= delta * (1 + 1e-9)


def test_search_over_awkward_curves():
    # Infinite beyond some order, or where the curve refuses.
    cut = renyi.to_epsilon(lambda order: order / 2 if order < 3 else math.inf, 1e-6)
    assert cut.order < 3 and cut.upper == pytest.approx(
        renyi.to_epsilon(lambda o: o / 2, 1e-6, orders=[2.9999]).upper, rel=1e-3
    )

    def refuses(order):
        if order > 1.5:
            raise NoBracketError("too hard")
        return order

    assert 1 < renyi.to_epsilon(refuses, 1e-3).order <= 1.5
    # Pure differential privacy: large orders, towards the pure value.
    pure = renyi.to_epsilon(lambda order: 0.7, 1e-6)
    assert 0.6999 < pure.upper < 0.7001 and pure.order > 1e5
    assert renyi.to_epsilon(lambda order: 0.0, 1e-6).upper < 1e-4
    with pytest.raises(NoBracketError, match="infinite at every order"):
        renyi.to_epsilon(lambda order: math.inf, 1e-6)
    # Far too little noise: orders next to 1.
    loud = renyi.to_epsilon(lambda order: 1e9 * order, 1e-6)
    assert 1 < loud.order < 1.001 and 1e9 < loud.upper < 1.0003e9
    assert renyi.to_delta(lambda order: 1e9 * order, 1.0).upper == 1.0
    assert renyi.to_delta(lambda order: order, 1e4).upper == 5e-324
    value, order = renyi.log_delta(lambda order: order, 1e4)
    assert value < -2e7 and order > 1000


def test_compose_adds():
    one, two = curve_of(1.0), curve_of(2.0)
    curve = renyi.compose([(one, 3), (two, 5)])
    assert curve(4.0) == 3 * one(4.0) + 5 * two(4.0)
    pair_a, pair_b = mixtures.binomial(1, 0.1, 1.0), mixtures.binomial(2, 0.2, 3.0)
    brackets = renyi.compose([(renyi.mixture_curve(pair_a, "add"), 7), (renyi.mixture_curve(pair_b, "add"), 2)])
    joint = renyi.composition_curve([(pair_a, 7), (pair_b, 2)], "add")
    assert isinstance(brackets(5.0), Bracket)
    assert brackets(5.0).upper == pytest.approx(joint(5.0).upper, rel=1e-15)
    mixed = renyi.compose([(renyi.mixture_curve(pair_a), 1), (one, 1)])
    assert mixed(2.0) == pytest.approx(renyi.divergence(pair_a, 2.0).upper + 1.0, rel=1e-15)
    assert renyi.composition_curve([(pair_a, 1), (mixtures.binomial(1, 1.0, 2.0), 1)])(3.0).method == "quadrature"
    # One direction at a time: not the sum of the larger divergences of the parts.
    skewed = mixtures.Mixture([0.0, 1e-3, 3.0], [0.5, 0.1, 0.4], 0.5)
    total = renyi.composition_curve([(skewed, 1), (pair_a, 40)])(1.4)
    sides = [renyi.composition_curve([(skewed, 1), (pair_a, 40)], side)(1.4).upper for side in SIDES]
    assert total.upper == max(sides)


# ---------------------------------------------------- accounting, mechanisms


COMPOSITIONS = [
    [(mixtures.binomial(1, 0.01, 1.0), 2000)],
    [(mixtures.binomial(8, 0.01, 1.0), 2000)],
    [(mixtures.hypergeometric(50, 1000, 2, 2.0), 300)],
    [(mixtures.binomial(1, 0.05, 0.8), 100), (mixtures.binomial(1, 1.0, 20.0), 10)],
]


@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("direction", [*SIDES, "both"])
def test_renyi_bounds_lie_above_the_certified_bracket(composition, direction):
    bound = accounting.epsilon(composition, 1e-6, direction, method="renyi")
    assert isinstance(bound, UpperBound) and bound.method == "Renyi" and bound.order > 1
    exact = accounting.epsilon(composition, 1e-6, direction)
    assert exact.upper <= bound.upper <= 2 * exact.upper
    epsilon = bound.upper
    delta = accounting.delta(composition, epsilon, direction, method="renyi")
    assert delta.upper == pytest.approx(1e-6, rel=1e-6)
    assert accounting.delta(composition, epsilon, direction).upper <= delta.upper


def test_both_is_the_larger_bound_and_never_above_the_joint_curve():
    composition = COMPOSITIONS[0]
    sides = [accounting.epsilon(composition, 1e-6, side, method="renyi") for side in SIDES]
    both = accounting.epsilon(composition, 1e-6, method="renyi")
    assert both == max(sides, key=lambda bound: bound.upper)
    joint = renyi.to_epsilon(renyi.composition_curve(composition), 1e-6)
    assert both.upper <= joint.upper * (1 + 1e-9)


def test_auto_never_answers_with_renyi():
    assert isinstance(accounting.epsilon(COMPOSITIONS[0], 1e-6), Bracket)
    with pytest.raises(ValueError, match="method must be one of"):
        accounting.log_delta(COMPOSITIONS[0], 1.0, method="renyi")


def test_trivial_composition_costs_nothing():
    trivial = mixtures.binomial(3, 0.0, 1.0)
    assert accounting.epsilon([(trivial, 5)], 1e-6, method="renyi") == UpperBound(0.0, "Renyi")
    assert accounting.delta(trivial, 0.0, method="renyi") == UpperBound(0.0, "Renyi")


def test_mechanisms_take_the_method():
    dpsgd = dplib.PoissonDPSGD(1.0, 0.01, 2000)
    bound = dpsgd.epsilon(1e-6, method="renyi")
    assert f"{bound:.5f}" == "3.24639" and str(bound).startswith("<= 3.24639 (upper bound, Renyi order 7.")
    assert dpsgd.delta(bound.upper, "remove", method="renyi").upper == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("direction", [*SIDES, "both"])
def test_calibration_by_renyi(direction):
    mechanism = dplib.PoissonDPSGD(1.0, 0.02, 500)
    target = {"epsilon": 1.5, "delta": 1e-6, "direction": direction}
    noisy = dplib.calibrate(mechanism, **target, method="renyi")
    at = lambda factor: dplib.PoissonDPSGD(noisy.noise_multiplier * factor, 0.02, 500).delta(
        1.5, direction, method="renyi"
    )
    assert at(1.0).upper <= 1e-6 < at(1 - 1e-8).upper
    assert noisy.noise_multiplier > dplib.calibrate(mechanism, **target).noise_multiplier


def test_calibration_by_renyi_where_no_noise_is_needed():
    """The add direction's loss is bounded by -T log(1 - q); Renyi accounting needs a little more room."""
    mechanism = dplib.PoissonDPSGD(1.0, 0.01, 20)
    limit = -20 * math.log1p(-0.01)
    with pytest.raises(ValueError, match="no noise is needed"):
        dplib.calibrate(mechanism, epsilon=1.1 * limit, delta=1e-6, direction="add", method="renyi")
    with pytest.raises(ValueError, match="no noise is needed"):
        dplib.calibrate(dplib.PoissonDPSGD(1.0, 0.0, 20), epsilon=1.0, delta=1e-6, method="renyi")
    noisy = dplib.calibrate(mechanism, epsilon=1.1 * limit, delta=1e-6, method="renyi")
    assert noisy.noise_multiplier > 0.5
    # The accountant needs no noise for delta above 1 - (1 - q)^T; the Renyi bound still does.
    assert dplib.calibrate(mechanism, epsilon=1.0, delta=0.3, method="renyi").noise_multiplier > 0.1
    with pytest.raises(ValueError, match="method"):
        dplib.calibrate(mechanism, epsilon=1.0, delta=1e-6, method="lattice")


# ----------------------------------------------------------- the peer


@pytest.mark.parametrize("sigma, q, order", [(2.0, 0.1, 2), (1.0, 0.01, 17), (0.7, 0.3, 64)])
def test_integer_orders_agree_with_dp_accounting(sigma, q, order):
    """dp_accounting's integer orders are the remove direction; it rounds at 1e-10."""
    from dp_accounting.rdp import rdp_privacy_accountant as peer

    theirs = peer._compute_rdp_poisson_subsampled_gaussian(q, sigma, [order])[0]
    mine = renyi.subsampled_gaussian(order, sigma, q, "remove")
    assert mine.midpoint == pytest.approx(float(theirs), rel=1e-9)


def test_divergence_by_sampling():
    """A fourth route: E_Q[R^order] by Monte Carlo, five standard errors."""
    mixture = mixtures.binomial(1, 0.2, 2.0)
    x = stats.norm(scale=2.0).rvs(400_000, random_state=5)
    for order, direction in ((2.5, "remove"), (2.5, "add")):
        power = order if direction == "remove" else 1 - order
        sample = np.exp(power * mixture.loss(x))
        error = sample.std() / math.sqrt(len(x)) / sample.mean()
        value = math.log(sample.mean()) / (order - 1)
        exact = renyi.divergence(mixture, order, direction).midpoint
        assert abs(value - exact) < 5 * error / (order - 1)


# ------------------------------------------------------------ bad input


PAIR = mixtures.binomial(1, 0.1, 1.0)
ORDERS = [
    1, 1.0, 0.5, -2, math.inf, -math.inf, math.nan, 1e300, True, "2", None, [], [1.0, 2.0], [3.0, 2.0],
    [2.0, 2.0], [2.0, math.nan], [2.0, math.inf], [[2.0, 3.0]], [2.0, "3"],
    [[2.0], [2.0, 3.0]], [2.0, [3.0]],
]  # fmt: skip
SIGMAS = [0, -1.0, math.nan, math.inf, "1", None]
RATES = [-0.1, 1.1, math.nan, "0.1", None]
CURVES = [3, None, "curve"]
BAD_VALUES = [lambda order: -1.0, lambda order: math.nan, lambda order: "x", lambda order: None]


def fail(*_arguments, **_keywords):
    raise ArithmeticError("work began before the arguments were checked")


BAD = [
    (renyi.divergence, {"mixture": PAIR, "order": 2.0}, {"order": ORDERS, "mixture": [3, None], "direction": ["x", 1]}),
    (
        renyi.subsampled_gaussian,
        {"order": 2.0, "noise_multiplier": 1.0, "sampling_probability": 0.1},
        {"order": ORDERS, "noise_multiplier": SIGMAS, "sampling_probability": RATES, "direction": ["x", None]},
    ),
    (
        renyi.gaussian, {"order": 2.0, "noise_multiplier": 1.0},
        {"order": [1.0, math.nan, "2", None, [0.5]], "noise_multiplier": SIGMAS},
    ),
    (renyi.laplace, {"order": 2.0, "scale": 1.0}, {"order": [1.0, math.inf], "scale": [0.0, -1.0, math.nan, "1"]}),
    (
        renyi.randomized_response, {"order": 2.0, "probability": 0.7},
        {"order": [0.9, [2.0, 1.0]], "probability": [0.0, 1.0, -0.1, math.nan, "p"]},
    ),
    (
        renyi.zhu_wang, {"order": 4, "epsilon_of_order": fail, "sampling_probability": 0.1},
        {
            "order": [*ORDERS, 1e7],
            "epsilon_of_order": [*CURVES, *BAD_VALUES, lambda order: math.inf, lambda order: 1 / order],
            "sampling_probability": RATES,
            "constant": [0.9, -1, math.nan, math.inf, "3", None],
        },
    ),
    (renyi.mixture_curve, {"mixture": PAIR}, {"mixture": [3, None], "direction": ["x"]}),
    (
        renyi.composition_curve, {"parts": [(PAIR, 1)]},
        {"parts": [[], 3, None, [PAIR], [(1, 1)], [(fail, 1)]], "direction": ["x"]},
    ),
    (renyi.compose, {"parts": [(fail, 1)]}, {"parts": [[], 3, None, [fail], [(1, 1)]]}),
    (
        renyi.to_epsilon, {"curve": fail, "delta": 0.1},
        {
            "curve": [*CURVES, *BAD_VALUES], "delta": [0, 1, -1, math.nan, "x"], "rounds": [0, 1.5, "2"],
            "conversion": ["best", None, 1], "orders": [x for x in ORDERS if x is not None],
        },
    ),
    (
        renyi.to_delta, {"curve": fail, "epsilon": 0.1},
        {"curve": CURVES, "epsilon": [-1, math.nan, math.inf], "rounds": [0], "conversion": ["best"], "orders": [[1.0]]},
    ),
    (renyi.log_delta, {"curve": fail, "epsilon": 0.1}, {"curve": CURVES, "epsilon": [-1, math.nan]}),
]  # fmt: skip
BAD_CASES = [
    pytest.param(function, valid, name, value, id=f"{function.__name__}-{name}-{i}")
    for function, valid, kinds in BAD
    for name, values in kinds.items()
    for i, value in enumerate(values)
]


@pytest.mark.parametrize("function, valid, name, value", BAD_CASES)
def test_bad_input_is_refused_by_name_before_any_work(function, valid, name, value, monkeypatch):
    monkeypatch.setattr(mixtures.Mixture, "log_ratio_and_slope", fail)
    monkeypatch.setattr(mixtures.Mixture, "_set", fail)
    with pytest.raises((ValueError, TypeError), match=name) as caught:
        function(**{**valid, name: value})
    assert type(caught.value) in (ValueError, TypeError)


@pytest.mark.parametrize("rounds", [0, -1, 1.5, "3", None])
def test_bad_rounds_are_named(rounds):
    for function, part in ((renyi.compose, curve_of(1.0)), (renyi.composition_curve, PAIR)):
        with pytest.raises((ValueError, TypeError), match="rounds"):
            function([(part, rounds)])


@pytest.mark.parametrize("order", [1.0, 0.0, math.inf, math.nan, "2", None])
def test_curves_check_their_order(order):
    for curve in (renyi.mixture_curve(PAIR), renyi.compose([(curve_of(1.0), 1)])):
        with pytest.raises((ValueError, TypeError), match="order"):
            curve(order)


def test_bad_values_of_a_curve_are_named_with_their_order():
    with pytest.raises(ValueError, match=r"curve must return a value of at least 0; got -3.0 at order 2.5"):
        renyi.to_epsilon(lambda order: -3.0, 0.1, orders=[2.5])
    with pytest.raises(ValueError, match=r"epsilon_of_order must not decrease .* at 2 and .* at 3"):
        renyi.zhu_wang(3, lambda order: 3 - order / 2, 0.1)
    with pytest.raises(ValueError, match="curve"):
        renyi.compose([(lambda order: -1.0, 1)])(2.0)
