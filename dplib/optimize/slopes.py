"""Gradients by the entries of an encoder: of Gram matrices of modes, and of errors of prefix sums.

An encoder is given by its table: Toeplitz coefficients, shape (n,), a lower-triangular array, shape (n, n), or a
scaled encoder itself, whose gradients have the shape (3, n): by coefficients, scales of rows, scales of columns.
For coefficients all take time O(n log n) or O(n b) for n rounds and b batches, and store nothing of n times b.
"""

from __future__ import annotations

import math

import numpy as np

from .. import balls_in_bins, matrices
from .._base.lazy_scipy import fft, linalg
from . import scaled

_WORST = 1e3  # log of an error beyond the range of floats
_SHARPNESS = 200  # of the smooth largest row: at most log(n) / 400 above the largest one


def encoder(table):
    """The encoder of `dplib.matrices` that a table describes."""
    if isinstance(table, matrices.Scaled):
        return table
    return matrices.toeplitz(table) if table.ndim == 1 else matrices.dense(table)


def table(encoder):
    """What describes an encoder: the inverse of `encoder`."""
    if isinstance(encoder, matrices.Scaled):
        return encoder
    return encoder.coefficients if hasattr(encoder, "coefficients") else encoder.array


def mode(coefficients, batches):
    """Mode 0 of balls in bins, m_0[t] = c[t] + m_0[t - b]; mode i is the same, delayed by i rounds [N-3.2]."""
    return np.cumsum(coefficients.reshape(-1, batches), axis=0).ravel()


def gram(table, batches):
    """Inner products of the modes, shape (b, b), for entries of at least 0 [N-3.2]."""
    made = encoder(table)
    return balls_in_bins.gram.gram(made, batches, made.columns // batches)


def gram_slope(table, weights):
    """Gradient of <weights, G> by the table, G the Gram matrix of the modes; weights symmetric, shape (b, b)."""
    if isinstance(table, matrices.Scaled):
        return scaled.gram_slope(table, weights)
    return _toeplitz_gram_slope(table, weights) if table.ndim == 1 else _dense_gram_slope(table, weights)


def log_error(table, largest=False, smooth=False):
    """(log of an error of prefix sums at noise 1, its gradient by the table) [N-RMSE].

    largest : False for the root mean square over rounds, ||A C^-1||_F / sqrt(n); True for the largest one.
    smooth : a smooth function close to the largest one instead, for arrays; coefficients need none.
    """
    if isinstance(table, matrices.Scaled):
        return scaled.log_error(table, largest, smooth)
    if table.ndim == 1:
        return _toeplitz_log_error(table, largest)
    return _dense_log_error(table, largest, smooth)


# --- coefficients --------------------------------------------------------------------------------------


def _toeplitz_gram_slope(coefficients, weights):
    """G[i, l] is the sum of m_0[t - i] m_0[t - l] over the rounds t.

    What is cut off at the end only concerns the last b entries of m_0.
    """
    n, b = len(coefficients), len(weights)
    first = mode(coefficients, b)
    # running[b - 1 + d, i] : sum of weights[l, l + d] over l up to i, d from 1 - b to b - 1.
    running = np.zeros((2 * b - 1, b))
    for d in range(1 - b, b):
        running[b - 1 + d, max(0, -d) : b - max(0, d)] = np.diagonal(weights, d)
    running = np.cumsum(running, axis=1)
    # Entry s meets s + l - i, for delays l <= n - 1 - s of its own mode.
    padded = np.concatenate([np.zeros(b - 1), first, np.zeros(b - 1)])
    size = fft.next_fast_len(len(padded) + 2 * b, real=True)
    full = fft.irfft(fft.rfft(padded, size) * fft.rfft(running[:, -1], size), size)
    slope = full[2 * b - 2 : 2 * b - 2 + n].copy()
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * b - 1)
    for s in range(max(0, n - b), n):
        slope[s] = windows[s, ::-1] @ running[:, n - 1 - s]
    by_epoch = 2 * slope.reshape(-1, b)
    return np.cumsum(by_epoch[::-1], axis=0)[::-1].ravel()


def _toeplitz_log_error(coefficients, largest):
    """Row t of A C^-1 has the entries s_0 .. s_t, s the power series 1 / ((1 - x) c): the last row is the largest."""
    n = len(coefficients)
    with np.errstate(over="ignore", invalid="ignore"):  # an inverse that grows: a line search went too far
        inverse = _reciprocal(coefficients)
        sums = np.cumsum(inverse)
        top = np.max(np.abs(sums))
    if not np.isfinite(top) or top > 1e200:
        return _WORST, np.zeros(n)
    sums = sums / top
    share = np.ones(n) if largest else 1 - np.arange(n) / n
    weighted = share * sums
    square = float(weighted @ sums)
    # ds = -s (1 / c) dc.
    pulled = _product(weighted[::-1], _product(sums, inverse))
    return 0.5 * math.log(square) + math.log(top), -pulled[::-1] / square


def _product(first, second):
    """The first n coefficients of a product of power series."""
    n = len(first)
    size = fft.next_fast_len(2 * n, real=True)
    return fft.irfft(fft.rfft(first, size) * fft.rfft(second, size), size)[:n]


def _reciprocal(series):
    """The first n coefficients of 1 / series: Newton steps, each of which doubles their number."""
    inverse = np.array([1 / series[0]])
    while len(inverse) < len(series):
        known, wanted = len(inverse), min(2 * len(inverse), len(series))
        inverse = np.append(inverse, np.zeros(wanted - known))
        excess = _product(series[:wanted], inverse)
        excess[0] -= 1
        inverse -= _product(inverse, excess)
    return inverse


# --- arrays --------------------------------------------------------------------------------------------


def _dense_gram_slope(array, weights):
    """Column b j + i of C is a part of mode i."""
    n, b = len(array), len(weights)
    modes = array.reshape(n, -1, b).sum(axis=1)
    return np.tril(np.tile(2 * modes @ weights, n // b))


def _dense_log_error(array, largest, smooth):
    """B = A C^-1 changes by -B dC C^-1."""
    n = len(array)
    with np.errstate(over="ignore", invalid="ignore"):  # as above
        inverse = linalg.solve_triangular(array, np.eye(n), lower=True, check_finite=False)
        decoder = np.cumsum(inverse, axis=0)
        top = np.max(np.abs(decoder))
    if not np.isfinite(top) or top > 1e150:
        return _WORST, np.zeros((n, n))
    decoder /= top
    squares = np.einsum("ij,ij->i", decoder, decoder)
    if not largest:
        share, log_square = np.full(n, 1 / n), math.log(np.mean(squares))
        share /= np.mean(squares)
    else:
        log_square = math.log(np.max(squares))
        powers = (squares / np.max(squares)) ** (_SHARPNESS if smooth else np.inf)
        share = powers / np.sum(powers) / squares
        if smooth:
            log_square += math.log(np.sum(powers)) / _SHARPNESS
    pulled = (decoder * share[:, None]).T @ decoder @ inverse.T
    return 0.5 * log_square + math.log(top), -np.tril(pulled)
