"""Gradients by the entries of an encoder: of Gram matrices of modes, and of errors of prefix sums.

An encoder is given by its table: Toeplitz coefficients, shape (n,), a lower-triangular array, shape (n, n), or a
scaled encoder itself, whose gradients have the shape (3, n): by coefficients, scales of rows, scales of columns.
Each kind has a module: `coefficients`, `arrays`, `scaled`.
"""

from __future__ import annotations

import numpy as np

from .. import balls_in_bins
from . import arrays, coefficients, scaled


def encoder(table):
    """The encoder of `dplib.matrices` that a table describes."""
    return _kind(table).encoder(table)


def table(encoder):
    """What describes an encoder: the inverse of `encoder`."""
    return getattr(encoder, "coefficients", getattr(encoder, "array", encoder))


def gram(table, batches):
    """Inner products of the modes, shape (b, b), for entries of at least 0 [N-3.2]."""
    made = encoder(table)
    return balls_in_bins.gram.gram(made, batches, made.columns // batches)


def gram_slope(table, weights):
    """Gradient of <weights, G> by the table, G the Gram matrix of the modes; weights symmetric, shape (b, b)."""
    return _kind(table).gram_slope(table, weights)


def log_error(table, largest=False, smooth=False):
    """(log of an error of prefix sums at noise 1, its gradient by the table) [N-RMSE].

    largest : False for the root mean square over rounds, ||A C^-1||_F / sqrt(n); True for the largest one.
    smooth : a smooth function close to the largest one instead, but for coefficients, which need none.
    """
    return _kind(table).log_error(table, largest, smooth)


def _kind(table):
    if not isinstance(table, np.ndarray):
        return scaled
    return coefficients if table.ndim == 1 else arrays
