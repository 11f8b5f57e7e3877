"""Gradients by the coefficients of an encoder, against differences."""

import numpy as np
import pytest

from dplib import matrices, utility
from dplib.balls_in_bins import gram
from dplib.optimize import slopes


def difference(function, x, step=1e-6):
    return np.array([(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))])


def scaled(n):
    """Parameters of an encoder with scales of rows and of columns, and how it is made of them."""
    rng = np.random.default_rng(4)
    rows = np.array([np.append(1.0, rng.uniform(0, 0.5, n - 1)), *rng.uniform(0.5, 2, (2, n))])
    make = lambda x: matrices.scaled(matrices.toeplitz(x[:n]), x[n : 2 * n], x[2 * n :])
    return rows.ravel(), make, make


def array(n):
    square = np.tril(np.random.default_rng(n).uniform(0.1, 1, (n, n))) + np.eye(n)
    return square.ravel(), lambda x: np.tril(x.reshape(n, n)), lambda x: matrices.dense(np.tril(x.reshape(n, n)))


def toeplitz(n):
    return np.cumprod(np.append(1.0, 1 - 0.6 / np.arange(1, n))), lambda c: c, matrices.toeplitz


@pytest.mark.parametrize("family, batches, epochs", [
    *((toeplitz, *sizes) for sizes in ((1, 5), (3, 4), (8, 3), (5, 1), (16, 2))), (array, 3, 2), (scaled, 3, 4),
])  # fmt: skip
def test_gram_slope(family, batches, epochs):
    """The gradient of a weighted sum of the entries of the modes' Gram matrix."""
    start, made, encoder = family(batches * epochs)
    weights = np.random.default_rng(1).normal(size=(batches, batches))
    weights += weights.T
    numeric = difference(lambda x: np.sum(weights * gram.gram(encoder(x), batches, epochs)), start)
    found = slopes.gram_slope(made(start), weights)
    assert np.allclose(found.ravel(), numeric, rtol=1e-6, atol=1e-6 * max(1, np.abs(numeric).max()))


@pytest.mark.parametrize("largest", (False, True))
@pytest.mark.parametrize("family, n", [*((toeplitz, n) for n in (1, 2, 7, 40)), (array, 5), *((scaled, n) for n in (1, 7, 40))])
def test_log_error(family, n, largest):
    """[N-RMSE] Errors are those of `utility`, the smooth largest one a little above; gradients are those of differences; 40 scaled rounds are two blocks."""
    start, made, encoder = family(n)
    error = utility.largest_error if largest else utility.rmse
    value, _ = slopes.log_error(made(start), largest)
    assert np.exp(value) == pytest.approx(error(encoder(start)), rel=1e-11)
    options = {} if family is toeplitz else {"smooth": True}
    smooth, slope = slopes.log_error(made(start), largest, **options)
    assert value <= smooth * (1 + 1e-12) + 1e-12 and smooth <= value + largest * np.log(n + 1) / 400 + 1e-12
    numeric = difference(lambda x: slopes.log_error(made(x), largest, **options)[0], start)
    assert np.allclose(slope.ravel(), numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("table", [np.append(1.0, np.full(3000, 1e9)), np.eye(40) + 1e9 * np.eye(40, k=-1)])
def test_an_error_beyond_the_range_of_floats_is_a_large_number(table):
    value, slope = slopes.log_error(table)
    assert value > 500 and not np.any(slope)
