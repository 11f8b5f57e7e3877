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


def triangle(n):
    return np.tril(np.random.default_rng(n).uniform(0.1, 1, (n, n))) + np.eye(n)


def test_gram_slope_of_arrays():
    array, weights = triangle(6), np.random.default_rng(1).normal(size=(3, 3))
    weights += weights.T
    slope = slopes.gram_slope(array, weights)
    numeric = difference(lambda x: np.sum(weights * slopes.gram(np.tril(x.reshape(6, 6)), 3)), array.ravel())
    assert np.allclose(slope, numeric.reshape(6, 6), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("largest", (False, True))
def test_log_error_of_arrays(largest):
    """[N-RMSE] The smooth largest error is a little above the largest one; gradients are those of differences."""
    array = triangle(5)
    value, _ = slopes.log_error(array, largest)
    error = utility.largest_error if largest else utility.rmse
    assert np.exp(value) == pytest.approx(error(matrices.dense(array)), rel=1e-12)
    smooth, slope = slopes.log_error(array, largest, smooth=True)
    assert value <= smooth <= value + largest * np.log(5) / 400
    numeric = difference(lambda x: slopes.log_error(np.tril(x.reshape(5, 5)), largest, True)[0], array.ravel())
    assert np.allclose(slope, numeric.reshape(5, 5), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("table", [np.append(1.0, np.full(3000, 1e9)), np.eye(40) + 1e9 * np.eye(40, k=-1)])
def test_an_error_beyond_the_range_of_floats_is_a_large_number(table):
    value, slope = slopes.log_error(table)
    assert value > 500 and not np.any(slope)
