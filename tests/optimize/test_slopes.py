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


def scaled(n, seed=4):
    """(coefficients, scales of rows, scales of columns), and the encoder of three such rows."""
    rng = np.random.default_rng(seed)
    rows = np.array([np.append(1.0, rng.uniform(0, 0.5, n - 1)), *rng.uniform(0.5, 2, (2, n))])
    return rows, lambda x: matrices.scaled(matrices.toeplitz(x[:n]), x[n : 2 * n], x[2 * n :])


def test_gram_slope_of_scaled_encoders():
    rows, made = scaled(12)
    weights = np.random.default_rng(1).normal(size=(3, 3))
    weights += weights.T
    slope = slopes.gram_slope(made(rows.ravel()), weights)
    numeric = difference(lambda x: np.sum(weights * slopes.gram(made(x), 3)), rows.ravel())
    assert np.allclose(slope, numeric.reshape(3, 12), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", (1, 7, 40))
@pytest.mark.parametrize("largest", (False, True))
def test_log_error_of_scaled_encoders(n, largest):
    """[N-RMSE] Values are those of the dense matrix, gradients those of differences; 40 rounds are two blocks."""
    rows, made = scaled(n)
    encoder = made(rows.ravel())
    for smooth in (False, True):
        dense, _ = slopes.log_error(encoder.entries(), largest, smooth)
        assert slopes.log_error(encoder, largest, smooth)[0] == pytest.approx(dense, abs=1e-12)
    numeric = difference(lambda x: slopes.log_error(made(x), largest, True)[0], rows.ravel())
    assert np.allclose(slopes.log_error(encoder, largest, True)[1], numeric.reshape(3, n), rtol=1e-6, atol=1e-7)
