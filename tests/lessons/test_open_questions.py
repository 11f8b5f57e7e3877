"""The page of open questions: every row has a verdict and a place; what it proves about the identity is tried."""

import math

import numpy as np
import pytest
from scipy import optimize

from dplib import matrices, utility
from dplib.lessons import truth


def poisson_noise(diagonal, p, epsilon, delta):
    """Smallest noise of two sampled rounds with these sensitivities, by quadrature."""
    pair = lambda sigma: truth.two_rounds(np.diag(diagonal), sigma, p)
    return optimize.brentq(lambda s: pair(s).epsilon(delta, "remove").value - epsilon, 0.35, 12, xtol=1e-12)


@pytest.mark.parametrize("p, epsilon", [(0.1, 1.0), (0.3, 0.5)])
def test_identity_is_not_stationary_among_all_triangular_encoders(p, epsilon):
    """Slopes of ln sigma by the two diagonal entries are 1/2 each, that of ln RMSE by the first is -1/6."""
    noise, h, slopes = lambda diagonal: poisson_noise(diagonal, p, epsilon, 1e-3), 1e-2, []
    for t in range(2):
        step = np.eye(2)[t] * h
        slopes.append(math.log(noise(1 + step) / noise(1 - step)) / (2 * h))
    assert np.allclose(slopes, 0.5, atol=1e-3)
    up, down = (utility.rmse(matrices.dense(np.diag([1 + s, 1.0]))) for s in (h, -h))
    assert slopes[0] + math.log(up / down) / (2 * h) == pytest.approx(-1 / 6, abs=1e-3)


@pytest.mark.parametrize("epsilon, slope", [(0.02, 0.1655), (1.0, -0.080)])
def test_identity_among_toeplitz_encoders_of_two_poisson_rounds(epsilon, slope):
    """One-sided slope of ln RMSE by c_1 at p = .1, delta = 1e-5: above 0 at small epsilon, below at 1."""

    def log_rmse(c):
        encoder = matrices.toeplitz([1.0, c])
        gap = lambda s: truth.two_rounds(encoder, s, 0.1).epsilon(1e-5, "remove").value - epsilon
        return math.log(optimize.brentq(gap, 0.5, 100, xtol=1e-12) * utility.rmse(encoder))

    step = 2e-3
    forward = (4 * log_rmse(step) - log_rmse(2 * step) - 3 * log_rmse(0.0)) / (2 * step)
    assert forward == pytest.approx(slope, abs=5e-3)
