"""Balls in bins as one phase among others: laws above and below, against other programs and quadrature."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_cases import load
from property_cases import examples

from dplib import BallsInBins, MatrixMechanism, PoissonDPSGD, accounting, compose, gaussian, matrices
from dplib.balls_in_bins import lognormal_sum, loss_laws
from dplib.mechanisms import FixedBatchDPSGD, LastIterate
from dplib.results import Bracket

VALUES = load("phases")
# Laws take seconds: `make test` has bins of two epochs, and three phases of one law in both directions; `make trust` all.
SLOW = ("E-poisson_30_0.05_1.0+bnb_16_1.0_1+bnb_16_1.2_1-add", "E-poisson_50_0.05_1.5+bnb_32_0.8_1-remove", "E-bnb_16_1.0_1+bnb_16_0.7_1-add")
slow = functools.partial(pytest.param, marks=pytest.mark.trust)


def bins(batches, sigma, epochs=1):
    return BallsInBins(matrices.identity(batches * epochs), sigma, batches, epochs)


def run(value):
    made = {"poisson": lambda steps, q, sigma: PoissonDPSGD(sigma, q, steps), "bnb": bins}
    return compose([made[kind](*numbers) for kind, *numbers in value["phases"]])


@pytest.mark.parametrize("value", [slow(v) if v["id"] in SLOW else v for v in VALUES], ids=lambda value: value["id"])
def test_values_of_another_computation_are_met(value):
    """[A-25] Within four standard errors of the draws; the bracket is narrow, and epsilon comes back."""
    mechanism, room = run(value), 4 * value["standard_error"]
    found = mechanism.delta(value["epsilon"], value["direction"])
    assert found.lower - room <= value["delta"] <= found.upper + room
    assert found.relative_width < 0.03
    back = mechanism.epsilon(found.upper, value["direction"])
    assert back.lower <= value["epsilon"] * (1 + 1e-6) and back.upper == pytest.approx(value["epsilon"], rel=1e-3)


def truth(sigma, mu, epsilon, direction):
    """delta of 1 of 2 bins and then a Gaussian mechanism, by a sum over a grid of both outcomes of the first."""
    u = np.linspace(-9.0, 12.0, 701)
    a = 1 / sigma
    first, second = (np.exp(-((u - shift) ** 2) / 2) / math.sqrt(2 * math.pi) for shift in (a, 0.0))
    q = np.outer(second, second)
    p = (np.outer(first, second) + np.outer(second, first)) / 2
    weight, loss = (p, np.log(p / q)) if direction == "remove" else (q, np.log(q / p))
    left = epsilon - loss
    # delta of the Gaussian mechanism at any real epsilon.
    phi = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))
    rest = phi(mu / 2 - left / mu) - np.exp(left) * phi(-mu / 2 - left / mu)
    return float((weight * rest).sum() * (u[1] - u[0]) ** 2)


@pytest.mark.parametrize("sigma, mu, epsilon", [(1.0, 0.5, 0.7), slow(2.0, 1.0, 1.5), (0.7, 0.3, 2.0)])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_two_bins_and_a_gaussian_by_quadrature(sigma, mu, epsilon, direction):
    found = compose([bins(2, sigma), PoissonDPSGD(1 / mu, 1.0, 1)]).delta(epsilon, direction)
    assert found.lower <= truth(sigma, mu, epsilon, direction) * (1 + 1e-7) <= found.upper * (1 + 2e-7)
    assert found.relative_width < 0.02


KEYS = [(2, 1.0), (16, 0.8)]


def laws(key):
    return loss_laws.atoms(key[0], key[1] ** -2, key[1])


def curve(law, epsilon):
    losses, masses, infinite = law
    return float(masses @ -np.expm1(np.minimum(epsilon - losses, 0.0))) + infinite


@given(key=st.sampled_from(KEYS), epsilon=st.floats(-5.0, 5.0), direction=st.sampled_from(["remove", "add"]))
@examples(40)
def test_laws_lie_above_and_below_the_curve(key, epsilon, direction):
    """[A-25] At any epsilon the curve of the atoms above is at least the lower end of the bins' own bracket, that of the atoms below at most its upper end."""
    other = {"remove": "add", "add": "remove"}[direction]
    found = lognormal_sum.bracket(key[0], key[1] ** -2, abs(epsilon), direction if epsilon >= 0 else other)
    low, high = found.lower, found.upper
    if epsilon < 0:  # H_a(P || Q) = 1 - a + a H_{1/a}(Q || P)
        low, high = (-math.expm1(epsilon) + math.exp(epsilon) * end for end in (low, high))
    ends = [curve(pair.law(direction), epsilon) for pair in laws(key)]
    assert ends[0] >= low * (1 - 1e-12) and ends[1] <= high * (1 + 1e-12)
    assert ends[0] - ends[1] < 0.05 * max(high, 1e-4)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_the_last_losses_lie_above_and_below_the_curve_too(key, direction):
    """[A-25] Beyond the last place but one a lower law may fall no slower than the true curve."""
    above, below = (pair.law(direction) for pair in laws(key))
    last = below[0][-3:]
    for epsilon in np.concatenate([np.linspace(last[0], last[-1], 9), last[-1] * np.linspace(1.0, 1.01, 3)]):
        found = lognormal_sum._widest(key[0], key[1] ** -2, float(epsilon), direction, 1e-4)
        assert curve(above, epsilon) >= found.lower and curve(below, epsilon) <= found.upper


def test_limits():
    """One phase of bins is itself; one batch is a Gaussian mechanism; more phases cost more."""
    alone = bins(8, 1.0)
    for direction in ("remove", "add"):
        exact, found = alone.delta(0.8, direction), compose([alone]).delta(0.8, direction)
        assert isinstance(found, Bracket) and found.lower <= exact.upper and exact.lower <= found.upper
        assert found.relative_width < 0.02
    one = compose([bins(1, 2.0, 3), PoissonDPSGD(2.0, 1.0, 1)])
    assert one.epsilon(1e-5).upper == pytest.approx(gaussian.epsilon(1.0, 1e-5), rel=1e-6)
    twice = compose([alone, bins(8, 1.0)])
    assert twice.delta(0.8).lower > compose([alone]).delta(0.8).upper
    nested = compose([compose([alone, PoissonDPSGD(2.0, 0.1, 5)]), LastIterate(3.0, 0.1, 10)])
    flat = compose([alone, PoissonDPSGD(2.0, 0.1, 5), LastIterate(3.0, 0.1, 10)])
    assert nested.delta(0.8) == flat.delta(0.8) and nested.delta(0.8).adjacency == "add-remove"


def test_refusals():
    correlated = BallsInBins(matrices.optimal_counting(8, bands=4), 1.0, 4, 2)
    with pytest.raises(ValueError, match="balls in bins with an exact accountant"):
        compose([correlated])
    with pytest.raises(TypeError, match="a pair for every round"):
        compose([MatrixMechanism(matrices.identity(4), 1.0, 0.1)])
    with pytest.raises(ValueError, match="same neighbours"):
        compose([bins(8, 1.0), PoissonDPSGD(1.0, 0.1, 5, adjacency="substitution")])
    mixed = compose([bins(8, 1.0), FixedBatchDPSGD(2.0, 5, 50, 5, adjacency="zero-out")])
    with pytest.raises(ValueError, match="method must be 'auto' or 'lattice'"):
        mixed.epsilon(1e-5, method="contour")
    one_batch = compose([BallsInBins(matrices.identity(4), 1.0, 1, 4)])
    assert one_batch.epsilon(1e-6, method="renyi").upper > one_batch.epsilon(1e-6).upper
    with pytest.raises(TypeError, match="no event of dp_accounting"):
        mixed.event()
    with pytest.raises(ValueError, match="method must be 'auto' or 'lattice'"):
        accounting.delta(mixed.composition(), 1.0, method="renyi")
