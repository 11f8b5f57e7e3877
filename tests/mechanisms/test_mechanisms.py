"""Mechanisms: the pair behind each, and the plain Gaussian where everything is sampled."""

import math
from decimal import Decimal

import numpy as np
import pytest

from dplib import FixedBatchDPSGD, LastIterate, PoissonDPSGD, gaussian, mixtures

DIRECTIONS = ("remove", "add", "both")
POISSON = PoissonDPSGD(1.0, 0.02, 500, 2)
FIXED = FixedBatchDPSGD(2.0, 20, 1000, 500, 2)
LAST = LastIterate(1.0, 0.02, 500)
ALL = [POISSON, FIXED, LAST]
IDS = [type(m).__name__ for m in ALL]


def same_law(pair, other):
    return (
        np.array_equal(pair.sensitivities, other.sensitivities)
        and np.array_equal(pair.log_probabilities, other.log_probabilities)
        and pair.noise_multiplier == other.noise_multiplier
    )


@pytest.mark.parametrize(
    "mechanism, pair, rounds",
    [
        (POISSON, mixtures.binomial(2, 0.02, 1.0), 500),
        (FIXED, mixtures.hypergeometric(20, 1000, 2, 2.0), 500),
        (LAST, mixtures.binomial(500, 0.02, math.sqrt(500)), 1),
    ],
    ids=IDS,
)
def test_composition_is_the_dominating_pair(mechanism, pair, rounds):
    """[G-3.1], [G-3.3], [M-F5]"""
    ((mixture, count),) = mechanism.composition()
    assert same_law(mixture, pair) and count == rounds and type(count) is int


def test_method_is_passed_on():
    for method in ("contour", "lattice"):
        assert POISSON.epsilon(1e-5, "remove", method=method).method == method
    assert POISSON.delta(1.0, "remove", method="lattice").method == "lattice"


# --- degenerate cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism, mu",
    [
        (PoissonDPSGD(2.0, 1.0, 16, 3), 6.0),
        (PoissonDPSGD(50.0, 1, 400), 0.4),
        (LastIterate(2.0, 1, 16), 2.0),
        (PoissonDPSGD(30.0, 1, 1_000_000), 1000 / 30),
    ],
)
def test_sampling_everything_is_the_plain_gaussian(mechanism, mu):
    """q = 1: mu = k sqrt(T) / sigma, in both directions, at any number of rounds."""
    for direction in DIRECTIONS:
        epsilon = mechanism.epsilon(1e-7, direction)
        assert gaussian.epsilon(mu, 1e-7) == pytest.approx(epsilon.midpoint, rel=1e-11)
        assert epsilon.relative_width < 1e-11 and epsilon.method == "closed form"
        delta = mechanism.delta(1.0, direction)
        assert delta.lower * (1 - 1e-11) <= gaussian.delta(mu, 1.0) <= delta.upper * (1 + 1e-11)


# --- order in every parameter ---------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.array(0.01), Decimal("0.01")], ids=["array", "decimal"])
def test_scalars_of_other_kinds_say_what_to_write(value):
    """Arrays of no dimensions (also JAX's and PyTorch's), and decimals."""
    with pytest.raises(TypeError, match=r"sampling_probability must be .* write float\(...\) around it"):
        PoissonDPSGD(1.0, value, 100)
    assert PoissonDPSGD(1.0, float(value), 100) == PoissonDPSGD(1.0, 0.01, 100)
    with pytest.raises(TypeError) as error:
        PoissonDPSGD(1.0, np.array([0.01]), 100)
    assert "float(...)" not in str(error.value)
