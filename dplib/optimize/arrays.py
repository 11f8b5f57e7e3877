"""Gradients by the entries of a lower-triangular array, shape (n, n); the interface is that of `slopes`."""

from __future__ import annotations

import math

import numpy as np

from .. import matrices
from .._base.lazy_scipy import linalg
from . import coefficients

_SHARPNESS = 200  # of the smooth largest row: at most log(n) / 400 above the largest one

encoder = matrices.dense


def gram_slope(array, weights):
    """Column b j + i of C is a part of mode i."""
    n, b = len(array), len(weights)
    modes = array.reshape(n, -1, b).sum(axis=1)
    return np.tril(np.tile(2 * modes @ weights, n // b))


def log_error(array, largest=False, smooth=False):
    """B = A C^-1 changes by -B dC C^-1."""
    n = len(array)
    with np.errstate(over="ignore", invalid="ignore"):  # an inverse that grows, as for coefficients
        inverse = linalg.solve_triangular(array, np.eye(n), lower=True, check_finite=False)
        decoder = np.cumsum(inverse, axis=0)
        top = np.max(np.abs(decoder))
    if not np.isfinite(top) or top > 1e150:
        return coefficients.LARGEST_LOG, np.zeros((n, n))
    decoder /= top
    squares = np.einsum("ij,ij->i", decoder, decoder)
    if largest:
        log_square, share = log_largest(squares, smooth)
    else:
        log_square, share = math.log(np.mean(squares)), np.full(n, 1 / n) / np.mean(squares)
    pulled = (decoder * share[:, None]).T @ decoder @ inverse.T
    return 0.5 * log_square + math.log(top), -np.tril(pulled)


def log_largest(squares, smooth):
    """(log of the largest of squares, or of a smooth function close to it, its gradient by the squares)."""
    powers = (squares / np.max(squares)) ** (_SHARPNESS if smooth else np.inf)
    above = math.log(np.sum(powers)) / _SHARPNESS if smooth else 0.0
    return math.log(np.max(squares)) + above, powers / np.sum(powers) / squares
