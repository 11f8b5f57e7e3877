"""Gradients by the coefficients of a Toeplitz encoder: of Gram matrices of modes, and of errors of prefix sums.

All take time O(n log n) or O(n b) for n rounds and b batches, and store nothing of n times b.
"""

from __future__ import annotations

import math

import numpy as np

from .. import balls_in_bins, matrices
from .._base.lazy_scipy import fft
from ..matrices.toeplitz_encoders import convolve, reciprocal

_WORST = 1e3  # log of an error beyond the range of floats


def mode(coefficients, batches):
    """Mode 0 of balls in bins, m_0[t] = c[t] + m_0[t - b]; mode i is the same, delayed by i rounds [N-3.2]."""
    return np.cumsum(coefficients.reshape(-1, batches), axis=0).ravel()


def gram(coefficients, batches):
    """Inner products of the modes, shape (b, b), for coefficients of at least 0 [N-3.2]."""
    return balls_in_bins.gram.gram(matrices.toeplitz(coefficients), batches, len(coefficients) // batches)


def gram_slope(coefficients, weights):
    """Gradient of <weights, G> by the coefficients, G the Gram matrix of the modes; weights symmetric, shape (b, b).

    G[i, l] is the sum of m_0[t - i] m_0[t - l] over the rounds t. What is cut off at the end only concerns the last b
    entries of m_0.
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


def log_error(coefficients, largest=False):
    """(log of an error of prefix sums at noise 1, its gradient by the coefficients) [N-RMSE].

    largest : False for the root mean square over rounds, ||A C^-1||_F / sqrt(n); True for the largest one. Row t of
    A C^-1 has the entries s_0 .. s_t, s the power series 1 / ((1 - x) c): the last row is the largest.
    """
    n = len(coefficients)
    with np.errstate(over="ignore", invalid="ignore"):  # an inverse that grows: a line search went too far
        inverse = reciprocal(coefficients, 1 / coefficients[:1])
        sums = np.cumsum(inverse)
        top = np.max(np.abs(sums))
    if not np.isfinite(top) or top > 1e200:
        return _WORST, np.zeros(n)
    sums = sums / top
    share = np.ones(n) if largest else 1 - np.arange(n) / n
    weighted = share * sums
    square = float(weighted @ sums)
    # ds = -s (1 / c) dc.
    pulled = convolve(weighted[::-1], convolve(sums, inverse))
    return 0.5 * math.log(square) + math.log(top), -pulled[::-1] / square
