"""Gradients by the coefficients of an encoder, against differences."""

import numpy as np
import pytest

from dplib import matrices, utility
from dplib.balls_in_bins import gram
from dplib.optimize import slopes


def difference(function, x, step=1e-6):
    return np.array([(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))])


@pytest.mark.parametrize("batches, epochs", [(1, 5), (3, 4), (8, 3), (5, 1), (16, 2)])
def test_gram_slope(batches, epochs):
    """The gradient of a weighted sum of the entries of the modes' Gram matrix."""
    rng = np.random.default_rng(batches)
    c = rng.uniform(0.1, 1, batches * epochs)
    weights = rng.normal(size=(batches, batches))
    weights += weights.T
    numeric = difference(lambda c: np.sum(weights * gram.gram(matrices.toeplitz(c), batches, epochs)), c)
    assert np.allclose(slopes.gram_slope(c, weights), numeric, rtol=1e-6, atol=1e-6 * np.abs(numeric).max())


@pytest.mark.parametrize("largest", (False, True))
@pytest.mark.parametrize("n", (1, 2, 7, 40))
def test_log_error(n, largest):
    """[N-RMSE] The errors are those of `utility`; their gradients are those of differences."""
    c = np.cumprod(np.append(1.0, 1 - 0.6 / np.arange(1, n)))
    value, slope = slopes.log_error(c, largest)
    error = utility.largest_error if largest else utility.rmse
    assert np.exp(value) == pytest.approx(error(matrices.toeplitz(c)), rel=1e-12)
    numeric = difference(lambda c: slopes.log_error(c, largest)[0], c)
    assert np.allclose(slope, numeric, rtol=1e-6, atol=1e-8)


def test_an_error_beyond_the_range_of_floats_is_a_large_number():
    value, slope = slopes.log_error(np.append(1.0, np.full(3000, 1e9)))
    assert value > 500 and not np.any(slope)
