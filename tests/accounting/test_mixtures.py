"""Scalar mixture pairs: weights, losses and tiny deltas against long arithmetic; large groups."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from exact_pairs import Exact
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import optimize, special

import dplib
from dplib import accounting, mixtures
from dplib.mixtures import Mixture
from dplib.results import NoBracketError

EPS = np.finfo(float).eps
DIRECTIONS = ("remove", "add")


@st.composite
def pairs(draw, most=4, zero=None):
    """Mixtures with 1 to `most` components; `zero`: whether some sensitivity is 0."""
    size = draw(st.integers(1 if zero is None else 2, most))
    sensitivities = draw(st.lists(st.floats(0.05, 4), min_size=size, max_size=size))
    if draw(st.booleans()) if zero is None else zero:
        sensitivities[0] = 0.0
    weights = np.array(draw(st.lists(st.floats(1e-4, 1), min_size=size, max_size=size)))
    return Mixture(sensitivities, weights / weights.sum(), draw(st.floats(0.3, 5)))


# --- weights of the constructors against exact fractions ------------------------------------------------


def weights_agree(pair, exact, scale):
    """Every log-weight within the error that the pair itself claims, down to e^-100 of the largest."""
    exact = {scale * j: weight for j, weight in exact.items() if weight}
    with mp.workdps(40):
        logs = {s: mp.log(mp.mpf(w.numerator) / w.denominator) for s, w in exact.items()}
        top = max(logs.values())
        assert set(pair.sensitivities) <= set(logs)
        for s, log_p in zip(pair.sensitivities, pair.log_probabilities):
            if logs[s] > top - 100:
                assert abs(log_p - logs[s]) <= pair.log_probability_error
        missing = set(logs) - set(pair.sensitivities)
        assert all(logs[s] < top - 700 for s in missing)
    assert math.fsum(pair.probabilities) == pytest.approx(1, abs=1e-12)
    assert 0 < pair.log_probability_error < 1e-11


@settings(max_examples=40)
@given(st.integers(1, 60), st.floats(1e-12, 1 - 1e-9))
def test_binomial_weights_against_fractions(k, q):
    """[G-3.1]"""
    rate = Fraction(q)
    exact = {j: math.comb(k, j) * rate**j * (1 - rate) ** (k - j) for j in range(k + 1)}
    weights_agree(mixtures.binomial(k, q, 1.0), exact, 1.0)


@pytest.mark.parametrize("k, q", [(1000, 0.01), (1000, 0.5), (1001, 0.01), (1500, 1e-4), (3000, 0.3)])
def test_large_binomial_weights_against_fractions(k, q):
    """Beyond 1000 trials the weights come from ratios instead."""
    rate = Fraction(q)
    near = range(max(0, int(k * q) - 200), min(k, int(k * q) + 300) + 1)
    pair = mixtures.binomial(k, q, 1.0)
    with mp.workdps(40):
        r = mp.mpf(rate.numerator) / rate.denominator
        exact = {j: mp.log(mp.mpf(math.comb(k, j))) + j * mp.log(r) + (k - j) * mp.log(1 - r) for j in near}
    top, compared = max(exact.values()), 0
    for s, log_p in zip(pair.sensitivities, pair.log_probabilities):
        if s in exact and exact[s] > top - 100:
            compared += 1
            assert abs(log_p - exact[s]) <= pair.log_probability_error
    assert compared > 5 and pair.log_probability_error < 1e-10


@example(500, 49_500, 1000)
@example(500, 0, 1000)
@example(2000, 2000, 1000)
@example(1, 999_999, 1000)
@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(0, 300), st.integers(1, 30))
def test_hypergeometric_weights_against_fractions(batch, spare, k):
    """[G-3.3] 2 * Hypergeometric(B, n + k, k), n records in the smaller dataset."""
    n = batch + spare
    total = math.comb(n + k, k)
    exact = {m: Fraction(math.comb(batch, m) * math.comb(n + k - batch, k - m), total) for m in range(min(batch, k) + 1)}
    weights_agree(mixtures.hypergeometric(batch, n, k, 1.0), exact, 2.0)


def test_product_merges_sums_that_differ_by_rounding_only():
    pair = mixtures.product([0.5, 0.5, 0.5], [0.1, 0.2, 0.3], 1.0)
    assert len(pair.sensitivities) == 7  # 0.1 + 0.2 and 0.3 are one point
    assert max(0.1 + 0.2, 0.3) in pair.sensitivities  # the larger one, on the safe side


# --- what a mixture keeps ---------------------------------------------------------------------------------


# --- densities, tails, loss ---------------------------------------------------------------------------------


@settings(max_examples=60)
@given(pairs(), st.floats(-20, 40))
def test_loss_against_long_arithmetic(pair, u):
    """Relative accuracy holds near zero too, where the log-ratio would lose its digits."""
    x = u * pair.noise_multiplier
    exact, shift = Exact(pair).loss(x), float(pair.shifts[-1])
    size = min(1 + abs(exact), 2 * abs(exact) + 2 * shift * (abs(u) + shift))
    assert abs(pair.loss(x) - exact) <= 30 * EPS * (size + shift * (abs(u) + shift))


@pytest.mark.parametrize("share", [1e-2, 1e-6])
def test_weights_off_by_their_error_move_the_loss_by_no_more_than_its_own(share):
    """Near R = 1 both what lifts the ratio (one weight too large) and what lowers it (the other too small) count."""
    error, shifts, u = 1e-8, np.array([0.0, 3.0, 20.0]), 3.0
    lifted = share / math.expm1(3 * u - 4.5)  # R(u) = 1 - share + lifted * e^4.5 = 1
    logs = np.log([1 - share - lifted, lifted, share])
    pair = Mixture._from_logs(1.0, shifts, logs, error)
    wrong = Mixture._from_logs(1.0, shifts, logs + np.array([0.0, error, -error]), error)
    value, slope = pair.log_ratio_and_slope(np.array([u]))
    assert abs(value[0]) < 1e-6 * share
    moved = abs(wrong.log_ratio(np.array([u])) - value)[0]
    assert moved > 1.9 * share * error
    assert moved <= pair.log_ratio_error(value, slope, np.array([u]))[0]


@given(pairs(), st.floats(-4, 15))
def test_inverse_loss_undoes_loss(pair, u):
    x = u * pair.noise_multiplier
    loss, slope = (float(v[0]) for v in pair.log_ratio_and_slope(np.array([u])))
    assume(slope > 1e-8)
    back = pair.inverse_loss(pair.loss(x)) / pair.noise_multiplier
    assert abs(back - u) <= 40 * EPS * ((1 + abs(loss)) / slope + abs(u) + pair.shifts[-1])


@pytest.mark.parametrize("sigma", [1e5, 1e9, 1e20, 1e100])
@pytest.mark.parametrize("zero", [0.0, 0.25])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_tiny_delta_keeps_its_digits(sigma, zero, direction):
    """Also where every sensitivity is positive, so that the densities' ratio is a sum of weights near 1."""
    pair = Mixture([zero, 0.5, 1.0], [0.25, 0.25, 0.5], sigma)
    for epsilon in (0.0, 0.3 / sigma):
        exact = Exact(pair, digits=420).hockey_stick(epsilon, direction)
        assert pair.hockey_stick(epsilon, direction) == pytest.approx(float(exact), rel=1e-11, abs=0)


# --- large groups -------------------------------------------------------------------------------------


def log_binomial(k, q, j):
    """Logs of binomial probabilities far from 0 and k, by Stirling's series and the deviance."""
    deviance = lambda x, mean: mean * ((x / mean) * np.log1p((x - mean) / mean) - (x - mean) / mean)
    series = lambda x: 1 / (12 * x) - 1 / (360 * x**3)
    rest = series(float(k)) - series(j) - series(k - j) - 0.5 * np.log(2 * math.pi * j * (k - j) / k)
    return rest - deviance(j, k * q) - deviance(k - j, k * (1 - q))


@pytest.mark.parametrize("k, q, sigma", [(10**8, 0.5, 1e5), (10**8, 0.01, 3e3), (10**6, 0.3, 200.0), (40_000, 0.5, 1000.0)])
def test_thinned_components_give_the_same_loss(k, q, sigma):
    """Against all of them, over 100 deviations wide: one in twenty remains, and the loss stays within its allowance."""
    pair, deviation = mixtures.binomial(k, q, sigma), math.sqrt(k * q * (1 - q))
    assert len(pair.shifts) < 5 * deviation
    j = np.arange(int(k * q - 50 * deviation), int(k * q + 50 * deviation) + 1.0)
    j = j[(j > 500) & (j < k - 500)]
    logs, a = log_binomial(k, q, j), j / sigma
    u = k * q / sigma + math.hypot(1, deviation / sigma) * np.linspace(-9, 30, 14)
    truth = [float(special.logsumexp(logs + a * (x - a / 2))) for x in u]
    found, slope = pair.log_ratio_and_slope(u)
    assert np.all(np.abs(found - truth) <= pair.log_ratio_error(found, slope, u) + 1e-13 * np.abs(a * u[:, None]).max())


def test_a_group_of_a_hundred_million_costs_what_its_normal_law_says():
    """s = J / sigma is nearly N(500, .05^2): the loss is a quadratic of normal variables, far from 0 on its own scale."""
    run = dplib.PoissonDPSGD(1e5, 0.5, 1000, 10**8)
    [(pair, _)] = run.composition()
    assert len(pair.shifts) < 1000
    found, mean, variance = run.epsilon(1e-6), 500.0, 1 + 0.05**2
    centre = 1000 * (mean**2 / 2 + (variance - 1) / 2 - math.log(variance) / 2)
    spread = math.sqrt(1000 * (mean**2 * variance + (variance - 1) ** 2 / 2))
    assert found.upper == pytest.approx(centre - special.ndtri(1e-6) * spread, rel=1e-7)
    assert found.relative_width < 1e-6


@pytest.mark.parametrize("k", [2000, 5000, 30_000])
def test_direction_add_sees_the_smallest_sensitivities(k):
    """Their probabilities, e^-1386 and below, decide it: the loss is at most -log p_0. Of 30,000 they are added."""
    pair, log_delta = mixtures.binomial(k, 0.5, 10.0), math.log(1e-6)
    found = accounting.epsilon(pair, 1e-6, "add")
    assert found.upper <= k * math.log(2) and found.relative_width < 1e-8
    j = np.arange(k + 1)
    logs = special.gammaln(k + 1) - special.gammaln(j + 1) - special.gammaln(k - j + 1) - k * math.log(2)
    # The threshold where P/Q is e^-eps; there delta = Phi(u) - e^eps P(X <= u), and both terms are of a size.
    ratio = lambda u: special.logsumexp(logs + j / 10 * (u - j / 20))
    for end, sign in ((found.lower, 1), (found.upper, -1)):
        u = optimize.brentq(lambda u: ratio(u) + end, -40, 40, xtol=1e-13)  # noqa: B023
        miss = math.exp(end + special.logsumexp(logs + special.log_ndtr(u - j / 10)))
        assert sign * (math.log(special.ndtr(u) - miss) - log_delta) > -1e-5


def test_direction_add_costs_at_most_what_remove_costs():
    """Where the reference is more than a million trials away, the upper end is that of remove [C-9m]."""
    mechanism = dplib.LastIterate(1e-4, 0.9999, 10**8)
    with pytest.raises(NoBracketError, match="direction 'add'"):
        mechanism.epsilon(1e-6, "add", method="contour")
    add, remove = (mechanism.epsilon(1e-6, side) for side in ("add", "remove"))
    assert add.lower == 0 and add.upper == remove.upper
