"""Attack terms: the Gaussian in closed form, random mixtures by the best test itself, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_cases import examples
from scipy import special, stats

from dplib import (
    Bracket,
    MatrixMechanism,
    MinSeparation,
    PoissonDPSGD,
    accounting,
    gaussian,
    matrices,
    mixtures,
)
from dplib.bridges import attack

RATES = (1e-6, 1e-3, 0.1, 0.5, 0.99)


class Rounds:
    """A mechanism of one pair."""

    def __init__(self, pair, steps=1):
        self.parts = [(pair, steps)]

    def delta(self, epsilon, direction="both"):
        return accounting.delta(self.parts, epsilon, direction)

    def epsilon(self, delta, direction="both"):
        return accounting.epsilon(self.parts, delta, direction)


@pytest.mark.parametrize("mu", [0.02, 0.5, 1.0, 3.0])
def test_gaussian(mu):
    mechanism = PoissonDPSGD(1 / mu * 3, 1.0, steps=9)
    for level, found in zip(RATES, attack.true_positive_rates(mechanism, RATES)):
        exact = special.ndtr(special.ndtri(level) + mu)
        assert found.lower <= exact <= found.upper and found.relative_width < 0.15
    found = attack.gaussian_mu(mechanism, 1e-6)
    assert found.lower <= mu <= found.upper < 1.02 * found.lower


@examples(20)
@given(st.floats(0.3, 5), st.lists(st.floats(0.01, 3), min_size=1, max_size=3), st.floats(0.05, 1), st.sampled_from([3, 9, 30]))
def test_mixtures_by_their_best_test(sigma, shifts, away, points):
    """The ratio rises, so the best test of one round is a threshold; whatever the grid, it lies between the ends."""
    pair = mixtures.Mixture([0.0, *shifts], [1 - away, *([away / len(shifts)] * len(shifts))], sigma)
    for level, found in zip(RATES, attack.true_positive_rates(Rounds(pair), RATES, points)):
        exact = pair.survival(sigma * stats.norm.isf(level))
        assert found.lower <= exact * (1 + 1e-9) and exact <= found.upper * (1 + 1e-9)


@pytest.mark.parametrize("sigma, q, steps, least", [(1.0, 0.05, 20, 1e-5), (0.6, 0.5, 2, 1e-9), (4.0, 1.0, 30, 1e-3)])
def test_mu_covers_the_curve_and_no_smaller_one_does(sigma, q, steps, least):
    mechanism = PoissonDPSGD(sigma, q, steps)
    found = attack.gaussian_mu(mechanism, least, points=12)
    last = mechanism.epsilon(least).upper
    for epsilon in np.linspace(0, last, 17):
        for direction in ("remove", "add"):
            assert mechanism.delta(epsilon, direction).lower <= gaussian.delta(found.upper, epsilon) * (1 + 1e-9)
    smaller = found.lower * (1 - 1e-6)
    assert any(mechanism.delta(e).upper > gaussian.delta(smaller, e) for e in np.linspace(0, last, 12))


def test_an_upper_bound_alone_still_bounds():
    class Loose(Rounds):
        def delta(self, epsilon, direction="both"):
            return Bracket(0.0, super().delta(epsilon, direction).upper)

    pair = mixtures.binomial(1, 0.3, 1.0)
    [loose], [tight] = (attack.true_positive_rates(kind(pair), [0.01]) for kind in (Loose, Rounds))
    assert loose.upper == tight.upper and loose.lower == 0.01
    assert attack.gaussian_mu(Loose(pair), 1e-6).lower == 0


@pytest.mark.parametrize("rates", [[], np.array(0.1), 0.1])
def test_false_positive_rates_are_a_list(rates):
    with pytest.raises((TypeError, ValueError), match="false_positive_rates must"):
        attack.true_positive_rates(PoissonDPSGD(1.0, 0.1, 10), rates)


def test_no_sampling_is_no_attack():
    silent = PoissonDPSGD(1.0, 0.0, 10)
    assert attack.gaussian_mu(silent, 1e-6) == Bracket(0.0, 0.0, "trade-off function")
    [found] = attack.true_positive_rates(silent, [0.2])
    assert 0.2 <= found.lower <= found.upper <= 0.2 * (1 + 1e-12)


def test_what_has_no_bracket_is_refused_at_the_first_answer():
    for kind in (MatrixMechanism(matrices.identity(2), 1.0, 0.1), MinSeparation(matrices.identity(4), 1.0, 0.1, 2)):
        for question in (attack.true_positive_rates, attack.gaussian_mu):
            with pytest.raises(TypeError, match="mechanism must answer with a Bracket"):
                question(kind, [0.1] if question is attack.true_positive_rates else 0.1)
    with pytest.raises(TypeError, match="false_positive_rates must be a sequence"):
        attack.true_positive_rates(PoissonDPSGD(1.0, 0.1, 10), 0.1)
