"""Line estimates of balls in bins [A-17]: against references, quadrature, closed forms, plain sampling; honest errors."""

import math

import numpy as np
import pytest
from domination_cases import modes_value, planar

from dplib import gaussian, matrices
from dplib.balls_in_bins import gram as _bins
from dplib.balls_in_bins.importance_sampling import (
    Estimator,
    estimate,
    run,
)

SIDES = ("remove", "add")


FEW_BANDS = _bins.gram(matrices.optimal_counting(2048, bands=8), 128, 16) / 3.918**2


def quadrature(gram, epsilon, side):
    """Delta for two modes: an even grid across one of them, the exact integral along it."""
    return modes_value(planar(gram), [0.5, 0.5], epsilon, side).midpoint


# --- against other routes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("gram", [np.eye(2), [[2.0, 0.5], [0.5, 0.3]], [[8.0, 6.0], [6.0, 5.0]]])
@pytest.mark.parametrize("side", SIDES)
def test_two_modes_against_quadrature(gram, side):
    """[A-17] Delta and both derivatives, at epsilons from 0 to 4."""
    gram = np.array(gram)
    for epsilon in (0.0, 0.5, 4.0):
        found = estimate(gram, epsilon, side, samples=8192)
        exact = quadrature(gram, epsilon, side)
        assert found.log_value == pytest.approx(math.log(exact), abs=max(5 * found.relative_error, 1e-4))
        h = 1e-3
        by_sigma = math.log(quadrature(gram * math.exp(-2 * h), epsilon, side) / quadrature(gram * math.exp(2 * h), epsilon, side)) / (2 * h)
        assert found.d_log_sigma == pytest.approx(by_sigma, rel=0.02)
        by_epsilon = math.log(quadrature(gram, epsilon + h, side) / quadrature(gram, epsilon + h * 2, side)) / -h
        assert found.d_epsilon == pytest.approx(by_epsilon, rel=0.03)


@pytest.mark.parametrize("side", SIDES)
def test_equal_modes_are_one_gaussian(side):
    """[N-3.2] (i) Only the places on the line are random: a thousandth of an error, down to e^-4000."""
    for b, epsilon in ((1, 1.0), (4, 0.0), (4, 2.0), (16, 64.0)):
        found = estimate(np.full((b, b), 0.5), epsilon, side, samples=1024)
        exact = gaussian.log_delta(math.sqrt(0.5), epsilon)
        assert found.relative_error < 1e-3
        assert found.log_value == pytest.approx(exact, abs=5 * found.relative_error)


# --- errors that are honest --------------------------------------------------------------------------------


def test_the_stated_error_of_an_estimate_is_that_of_repetitions():
    """Other seeds scatter by what each of them states."""
    gram = 3.0 * np.array([[1.0, 0.3], [0.3, 1.0]])
    exact = math.log(quadrature(gram, 3.0, "remove"))
    found = [estimate(gram, 3.0, "remove", seed=seed, samples=1024) for seed in range(40)]
    scores = [(one.log_value - exact) / one.relative_error for one in found]
    assert 0.7 < np.sqrt(np.mean(np.square(scores))) < 1.4


# --- where the integrand is largest ------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_add_near_one_has_an_honest_error(epsilon):
    """[N-3.2] 1 - delta = E_Q min(1, e^epsilon w), from draws of (P + Q) / 2, for which that is bounded."""
    bins, square, count = 16, 40.0, 200_000
    rng = np.random.default_rng(1)
    y = rng.standard_normal((count, bins)) * math.sqrt(square)
    half = rng.random(count) < 0.5
    y[np.nonzero(half)[0], rng.integers(bins, size=half.sum())] += square
    log_w = np.log(np.mean(np.exp(y - square / 2), axis=1))
    missing = np.exp(np.minimum(0.0, epsilon + log_w) - np.logaddexp(0, log_w) + math.log(2))
    for seed in range(6):
        found = estimate(square * np.eye(bins), epsilon, "add", seed=seed)
        error = math.hypot(found.relative_error, missing.std() / math.sqrt(count))
        assert abs(-math.expm1(found.log_value) - missing.mean()) < 4 * error
        assert found.relative_error < 0.01


# --- streams, and bad input --------------------------------------------------------------------------------


def test_more_lines_until_the_error_is_reached():
    """A pilot that promises too much: the run goes on until the measured error is small enough."""
    estimator = Estimator(FEW_BANDS, 2.0, "remove")
    estimator.relative_variance = 1e-9
    found = run(estimator, relative_error=0.01)
    assert found.relative_error <= 0.01 and found.samples > 32 * 32
