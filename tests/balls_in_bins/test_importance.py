"""Line estimates of balls in bins [A-17]: against references, quadrature, closed forms, plain sampling; honest errors."""

import math

import numpy as np
import pytest
from domination_cases import modes_value, planar

from dplib import gaussian, matrices
from dplib.balls_in_bins import gram as _bins
from dplib.balls_in_bins import lognormal_sum
from dplib.balls_in_bins.importance_sampling import (
    Estimator,
    estimate,
    run,
)
from dplib.balls_in_bins.line_integral import LOWEST, crossing, loss_beyond
from dplib.balls_in_bins.proposal_remove import condenses

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


@pytest.mark.parametrize("bins, norm_squared, epsilon, seeds", [
    (300, 0.812, 0.931, (18, 19, 20)), (268, 0.783, 1.52, (76, 77, 78)), (217, 0.9815, 1.07636, (0, 4, 10)), (239, 1.152, 1.612, (92,)), (60, 8.01, 0.867, (72,)), (187, 11.284, 0.662, (62,)),
])  # fmt: skip
def test_tuples_that_condense_are_left_out(bins, norm_squared, epsilon, seeds):
    """Tuples of 12 to 32 modes whose draws look alike, while nearly all of the mean of w^k lies on those with most modes in one bin."""
    exact = lognormal_sum.bracket(bins, norm_squared, epsilon, "remove", 1e-5)
    for seed in seeds:
        found = estimate(norm_squared * np.eye(bins), epsilon, "remove", seed=seed)
        assert found.relative_error < 0.01 and abs(found.log_value - math.log(exact.upper)) < 5 * found.relative_error


def test_tuples_condense_where_few_modes_weigh_most():
    """One bin of b = 300 with all k modes has (1 - k) log b + d k (k - 1) / 2 of log E w^k: above -4 from k = 14 on."""
    clusters = (0.0, np.full(300, -math.log(300)), np.full(300, 0.812))
    assert [condenses(k, 0.0, 5.0, *clusters) for k in (3, 12, 14, 15, 16)] == [False, False, True, True, True]
    assert not condenses(15, 0.0, 90.0, *clusters)  # a draw got there
    assert not condenses(32, 0.0, 5.0, 0.0, clusters[1], np.full(300, 0.05))  # a few modes in one bin weigh little, and more of them less


def test_a_mode_that_hardly_grows_may_exceed_the_level_alone():
    """On such a line all of the loss is large, and what the other modes add is not lost: seed 40 takes lines of that kind."""
    rest, beta = np.array([[2.0, 0.0]]), np.array([[1e-4, 3.0]])
    place, shares, _, excess = crossing(rest, beta, 1.0, 3.0, LOWEST)
    for t in (-1.0, 0.0, 3.0):
        [gain] = loss_beyond(beta, shares, excess, t - place)
        assert gain == pytest.approx(np.logaddexp.reduce(rest[0] + beta[0] * t) - 1.0, rel=1e-12)
    exact = lognormal_sum.bracket(22, 9.45, 1.078, "remove").midpoint
    found = estimate(9.45 * np.eye(22), 1.078, "remove", seed=40)
    assert abs(math.exp(found.log_value) / exact - 1) < 4 * found.relative_error < 0.02


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
