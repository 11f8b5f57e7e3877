"""Gradients by the coefficients of an encoder, against differences."""

import numpy as np
import pytest

from dplib import _bins, _slopes, matrices, utility


def difference(function, x, step=1e-6):
    return np.array([(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))])


@pytest.mark.parametrize("batches, epochs", [(1, 5), (3, 4), (8, 3), (5, 1), (16, 2)])
def test_gram_slope(batches, epochs):
    """The gradient of a weighted sum of the entries of the modes' Gram matrix."""
    rng = np.random.default_rng(batches)
    c = rng.uniform(0.1, 1, batches * epochs)
    weights = rng.normal(size=(batches, batches))
    weights += weights.T
    numeric = difference(lambda c: np.sum(weights * _bins.gram(matrices.toeplitz(c), batches, epochs)), c)
    assert np.allclose(_slopes.gram_slope(c, weights), numeric, rtol=1e-6, atol=1e-6 * np.abs(numeric).max())


@pytest.mark.parametrize("largest", (False, True))
@pytest.mark.parametrize("n", (1, 2, 7, 40))
def test_log_error(n, largest):
    """[N-RMSE] The errors are those of `utility`; their gradients are those of differences."""
    c = np.cumprod(np.append(1.0, 1 - 0.6 / np.arange(1, n)))
    value, slope = _slopes.log_error(c, largest)
    error = utility.largest_error if largest else utility.rmse
    assert np.exp(value) == pytest.approx(error(matrices.toeplitz(c)), rel=1e-12)
    numeric = difference(lambda c: _slopes.log_error(c, largest)[0], c)
    assert np.allclose(slope, numeric, rtol=1e-6, atol=1e-8)


def test_long_encoders():
    encoder = matrices.optimal_counting(5000)
    assert np.exp(_slopes.log_error(encoder.coefficients)[0]) == pytest.approx(utility.rmse(encoder), rel=1e-11)
