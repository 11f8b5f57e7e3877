"""Black-box routes to group privacy: the lemma in log space, and k times epsilon."""

import dataclasses
import math

import mpmath as mp
import numpy as np
import pytest

from dplib import PoissonDPSGD, accounting, gaussian
from dplib.lessons import baselines
from dplib.results import NoBracketError

ONE = PoissonDPSGD(1.0, 0.01, 2000)
DELTA = 1e-6


@pytest.mark.parametrize("k, value", [(2, 8.556), (4, 28.32)])
def test_true_values_of_the_lemma(k, value):
    """[G-1.1] sigma = 1, T = 2000, q = .01, where a transform with absolute errors goes wrong."""
    assert baselines.group_lemma(ONE, DELTA, k) == pytest.approx(value, rel=2e-4)


@pytest.mark.parametrize("function", [baselines.group_lemma, baselines.linear_extrapolation])
def test_the_mechanism_must_be_that_of_one_record(function):
    """k times a group's epsilon would be taken for k times one record's."""
    with pytest.raises(ValueError, match="group_size.* 9"):
        function(dataclasses.replace(ONE, group_size=9), DELTA, 3)


def exact_one_round(sigma, q, e):
    """delta_1(e) of one round of Poisson sampling with one record, in 60 digits."""
    with mp.workdps(60):
        s, q, e = mp.mpf(sigma), mp.mpf(q), mp.mpf(e)
        rest = mp.expm1(e) + q
        x = s**2 * mp.log(rest / q) + mp.mpf(1) / 2 if rest > 0 else -mp.inf
        tail = lambda t: mp.erfc(t / s / mp.sqrt(2)) / 2
        return q * tail(x - 1) - rest * tail(x)


def lemma_delta(sigma, q, k, e, sharpened):
    powers = mp.fsum(mp.exp(j * mp.mpf(e)) for j in range(k)) if sharpened else k * mp.exp(k * mp.mpf(e))
    return powers * exact_one_round(sigma, q, e)


@pytest.mark.parametrize("sharpened", [False, True])
def test_the_lemma_of_one_round_against_sixty_digits(sharpened):
    """200 random settings, rare sampling and certain participation among them: never below 0, never refused, and just enough."""
    rng = np.random.default_rng(17)
    zeros = 0
    for number in range(100):
        sigma, delta, k = 10 ** rng.uniform(-1.3, 3), 10 ** rng.uniform(-12, -0.05), int(10 ** rng.uniform(0, 3))
        q = 1.0 if number % 10 == 0 else 10 ** rng.uniform(-7, 0)
        bound = baselines.group_lemma(PoissonDPSGD(sigma, q, 1), delta, k, sharpened)
        assert math.isfinite(bound)
        cost = lambda e, run=(sigma, q, k): lemma_delta(*run, e, sharpened)
        e = bound / k
        assert e >= 0 and cost(e) <= delta * (1 + mp.mpf(10) ** -9), (sigma, q, delta, k)
        assert e == 0 or cost(e * (1 - 1e-7) - 1e-12 * min(1 / sigma, 1)) > delta, (sigma, q, delta, k)
        zeros += e == 0
    assert 10 < zeros < 90


def test_a_group_may_cost_where_one_record_costs_nothing():
    """delta_1(0) is below delta, k delta_1(0) is not: 0 would be false."""
    one, k, delta = PoissonDPSGD(1.0, 1e-5, 1), 9, 1e-5
    assert one.epsilon(delta).upper == 0
    assert dataclasses.replace(one, group_size=k).epsilon(delta).lower > 0
    for sharpened in (False, True):
        assert baselines.group_lemma(one, delta, k, sharpened) >= dataclasses.replace(one, group_size=k).epsilon(delta).upper


def test_the_lemma_where_no_accountant_closes():
    """The bounds that always exist answer, no worse than without sampling; the lemma is above the truth."""
    one, delta, k, e = PoissonDPSGD(7.458912707380874, 5.1348820043101034e-05, 1275), 3.68e-8, 50, 0.1426
    with pytest.raises(NoBracketError):
        accounting.side_log_delta(one.composition(), e, "remove")
    found = accounting.log_delta(one.composition(), e)
    mu = math.sqrt(one.steps) / one.noise_multiplier
    bound = baselines._log_delta(accounting.merged(one.composition()), e)
    assert found.method == "Chernoff"
    assert found.lower <= bound <= gaussian.log_delta(mu, e) * (1 - 1e-8)
    assert baselines.group_lemma(one, delta, k) > dataclasses.replace(one, group_size=k).epsilon(delta).upper
