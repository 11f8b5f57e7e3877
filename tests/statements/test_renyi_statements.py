"""Statements of chapter 7: Renyi divergence under Poisson sampling [ZW-0] to [ZW-7].

Laws are (number of pairs, outcomes) arrays; y = P1/Q is the unsampled ratio and
P = (1 - q) Q + q P1 the sampled law. Values of `dplib.renyi` against other routes
are in test_renyi.py.
"""

import math
from functools import cache, partial
from itertools import product

import mpmath as mp
import numpy as np
import pytest

from dplib import PoissonDPSGD, renyi
from dplib.lessons import studies


def random_pairs(seed, count, outcomes=4, nearest=1e-2):
    """Two laws on a few points, from close to far apart."""
    rng = np.random.default_rng(seed)
    q_law, other = rng.dirichlet(np.full(outcomes, 0.5), size=(2, count)) + 1e-9
    distance = 10 ** rng.uniform(math.log10(nearest), 0, size=(count, 1))
    p_law = (1 - distance) * q_law + distance * other
    return p_law / p_law.sum(axis=1, keepdims=True), q_law / q_law.sum(axis=1, keepdims=True)


def log_moment(first, second, order):
    """(order - 1) D_order(first || second) along the last axis."""
    return np.log((first**order * second ** (1 - order)).sum(axis=-1))


def weight(order, q):
    return 3 * (1 - q) / (3 * (1 - q) + (2 * order - 1) * q)


def above_tangent(y, order, q):
    """zeta(y) - zeta'(1) (y - 1), the function that the proof of [ZW-3] shows to be non-negative."""
    rho = weight(order, q)
    omega, omega_star = 1 - q + q * y, q + (1 - q) * y
    slope = rho * order * q + (1 - rho) * (1 - order * q) + (order - 1) * q
    zeta = rho * omega**order + (1 - rho) * y ** (1 - order) * omega_star**order - omega ** (1 - order)
    return zeta - slope * (y - 1)


# [ZW-0]


# [ZW-1], [ZW-2]


@pytest.mark.parametrize("order", [2, 3, 7])
def test_binomial_expansion_of_the_remove_direction(order):
    """[ZW-2] On any pair F_1 with its own one-sided curve is the remove direction itself."""
    p_law, q_law = random_pairs(5, 20)
    for one, two in zip(p_law, q_law):
        curve = lambda n: log_moment(one, two, n) / (n - 1)  # noqa: B023
        sampled = log_moment(0.7 * two + 0.3 * one, two, order) / (order - 1)
        assert renyi.zhu_wang(order, curve, 0.3) == pytest.approx(sampled, rel=1e-10)


# [ZW-3]


def test_pointwise_inequality():
    """[ZW-3] zeta lies above its tangent at 1: 60 digits, 20 powers of ten, orders above and below 2."""
    with mp.workdps(60):
        grid = [mp.mpf(10) ** (mp.mpf(n) / 2 + mp.mpf("0.001")) for n in range(-20, 21)]
        orders, rates = ("1.05", "1.5", "2", "2.5", "3", "9", "40"), ("1e-6", "0.1", "0.5", "0.75")
        for order, q in product(map(mp.mpf, orders), map(mp.mpf, rates)):
            least = min(above_tangent(y, order, q) * (1 + y) ** 3 / (q**3 * (y - 1) ** 4) for y in grid)
            assert least > 0.01, (order, q)


@pytest.mark.parametrize("q", ["0.001", "0.3", "0.75", "0.9", "0.9999"])
def test_curvature_rises_with_the_order_from_a_square(q):
    """[ZW-3] Steps 3 and 4: the curvature has the sign of kappa, which rises with the order; at order 1 it is a square times a positive quadratic."""
    with mp.workdps(60):
        q, orders = mp.mpf(q), [mp.mpf(n) for n in ("1", "1.01", "1.5", "2", "3.7", "12")]
        p = 1 - q
        for y in (mp.mpf(10) ** (mp.mpf(n) / 4 + mp.mpf("0.001")) for n in range(-32, 33)):
            omega, omega_star, z = 1 - q + q * y, q + (1 - q) * y, y - 1
            kappas = []
            for order in orders:
                rho, r = weight(order, q), order - mp.mpf(1) / 2
                kappa = 3 * p * (omega ** (2 * r) - 1) / (2 * r) - q
                kappa += q * (omega * omega_star / y) ** r * (omega / (y * omega_star)) ** mp.mpf("1.5")
                curvature = rho * omega ** (order - 2) - omega ** (-order - 1)
                curvature += (1 - rho) * y ** (-order - 1) * omega_star ** (order - 2)
                scaled = curvature * omega ** (order + 1) * (3 * p + 2 * r * q) / (2 * r)
                assert abs(scaled - kappa) <= mp.mpf(10) ** -40 * (1 + abs(kappa))
                kappas.append(kappa)
            assert all(low < high for low, high in zip(kappas, kappas[1:]))
            quadratic = 2 + 4 * p + (2 + 6 * p) * z + 3 * p * z**2
            assert quadratic > 0 and kappas[0] > 0
            assert abs(kappas[0] * y**2 * omega_star / q - p * z**2 * quadratic) < mp.mpf(10) ** -30 * (1 + y**4)


def test_one_sided_curve_is_not_enough():
    """[ZW-3] With the curve of removals alone the add direction is more than eight times the 'bound'."""
    one, two = np.array([0.001, 0.999]), np.array([0.1, 0.9])
    curve = lambda n: log_moment(one, two, n) / (n - 1)
    add = log_moment(two, 0.5 * (one + two), 10) / 9
    assert add > 8 * renyi.zhu_wang(10, curve, 0.5)
    assert add > 2 * renyi.zhu_wang(10, curve, 0.5, constant=3)


# [ZW-4m]


# [ZW-5]


@pytest.mark.parametrize("order", [2, 5, 10])
def test_leading_term_for_small_rates(order):
    """[ZW-5] order/2 q^2 (e^{eps(2)} - 1), up to a relative error of order q."""
    for curve in (partial(renyi.gaussian, noise_multiplier=1.0), partial(renyi.laplace, scale=0.7)):
        leading = order / 2 * 1e-12 * math.expm1(curve(2))
        assert renyi.zhu_wang(order, curve, 1e-6) == pytest.approx(leading, rel=1e-3, abs=0)


@pytest.mark.parametrize("order", [2, 5, 10, 20])
def test_the_slides_rate_is_asymptotic(order):
    """[ZW-5] Truth over order q^2 eps(2) tends to (e^eps(2) - 1) / (2 eps(2)): the rate holds, from some q on."""
    gaussian, laplace = partial(renyi.gaussian, noise_multiplier=1.0), partial(renyi.laplace, scale=0.5)
    for curve in (gaussian, laplace):
        limit = math.expm1(curve(2)) / (2 * curve(2))
        quotients = [renyi.zhu_wang(order, curve, q) / (order * q**2 * curve(2)) for q in (1e-5, 1e-6, 1e-7)]
        errors = [abs(quotient / limit - 1) for quotient in quotients]
        assert errors[1] < 1e-3 and (errors[2] < errors[1] or errors[1] < 1e-6)
    truth = renyi.subsampled_gaussian(order, 1.0, 1e-6)
    assert truth.upper / (order * 1e-12) == pytest.approx((math.e - 1) / 2, rel=1e-3)


def test_phase_transition():
    """[ZW-5] Above it the last term rules: at q = 0.1 and order 10 the truth is 24 times order q^2 eps(2)."""
    curve = partial(renyi.gaussian, noise_multiplier=1.0)
    for order in (2, 5, 8, 10, 30):
        assert renyi.zhu_wang(order, curve, 0.1) >= curve(order) - order / (order - 1) * math.log(10)
    truth = renyi.subsampled_gaussian(10, 1.0, 0.1)
    assert truth.upper == pytest.approx(2.44, abs=0.005)
    assert truth.upper / (10 * 0.1**2 * curve(2)) == pytest.approx(24.4, abs=0.1)
    assert truth.upper == pytest.approx(curve(10) - 10 / 9 * math.log(10), rel=1e-3)


# [ZW-6]


@cache
def sampled(sigma, order):
    return renyi.subsampled_gaussian(order, sigma, 1e-3)


@pytest.mark.parametrize("conversion", ["classic", "improved"])
@pytest.mark.parametrize("rounds", [1, 1000, 60_000])
def test_search_finds_the_minimum_over_orders(conversion, rounds):
    """[ZW-6] The objective falls, then rises; no order of a fine grid is better than the one found."""
    curve = partial(sampled, 5.0)
    orders = list(1 + np.exp(np.linspace(-1, 6.5, 120)))
    values = [
        renyi.to_epsilon(curve, 1e-8, rounds=rounds, conversion=conversion, orders=[order]).upper
        for order in orders
    ]
    signs = np.sign(np.diff(values))
    assert np.sum(signs[1:] != signs[:-1]) <= 1
    found = renyi.to_epsilon(curve, 1e-8, rounds=rounds, conversion=conversion)
    assert found.upper <= min(values) * (1 + 1e-9)


# [ZW-7]


@pytest.mark.parametrize(
    "sigma, rounds, classic, improved, truth",
    [
        (5.0, 60_000, 0.3023, 0.2519, 0.2365),
        (1.0, 60_000, 2.267, 1.973, 1.723),
        (1.0, 1, 1.417, 1.140, 0.0757),
    ],
)
def test_points_of_both_figures(sigma, rounds, classic, improved, truth):
    """[ZW-7] Reference values at integer orders, within one per mille; truth by the certified accountant."""
    curve = partial(sampled, sigma)
    integers = list(range(2, 200))
    for conversion, known in (("classic", classic), ("improved", improved)):
        ours = renyi.to_epsilon(curve, 1e-8, rounds=rounds, conversion=conversion, orders=integers)
        assert ours.upper == pytest.approx(known, rel=1e-3)
    exact = PoissonDPSGD(sigma, 1e-3, rounds).epsilon(1e-8)
    assert exact.upper == pytest.approx(truth, rel=1e-3)
    assert exact.upper < renyi.to_epsilon(curve, 1e-8, rounds=rounds).upper


def test_curves_of_autodp():
    """[ZW-7] autodp's stored curves: its exact accountants are ours at integer orders, its general bound is above."""
    stored = studies.load("autodp_curves")
    assert set(stored["versions"]) == {"autodp", "numpy", "scipy"} and len(stored["curves"]) == 2 * 17 * 3
    integers = list(range(2, 420))
    for sigma in stored["settings"]["noise_multipliers"]:
        brackets = dict(zip(integers, renyi.subsampled_gaussian(integers, sigma, 1e-3)))
        for rounds in (1, 1024, 60_000):
            rows = studies.find(stored["curves"], sigma=sigma, rounds=rounds)
            theirs = {row["curve"]: row["epsilon"] for row in rows}
            for how in ("classic", "improved"):
                ours = renyi.to_epsilon(brackets.__getitem__, 1e-8, rounds=rounds, conversion=how, orders=integers)
                assert theirs[f"exact, {how}"] == pytest.approx(ours.upper, rel=2e-3)
            assert theirs["general, classic"] >= theirs["exact, classic"] >= theirs["exact, improved"]
