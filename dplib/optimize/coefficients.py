"""Gradients by Toeplitz coefficients, shape (n,), in time O(n log n) or O(n b) for n rounds and b batches.

Nothing of n times b is stored. The interface is that of `slopes`.
"""

from __future__ import annotations

import math

import numpy as np

from .. import matrices
from .._base.lazy_scipy import fft

LARGEST_LOG = 1e3  # of an error beyond the range of floats

encoder = matrices.toeplitz


def mode(coefficients, batches):
    """Mode 0 of balls in bins, m_0[t] = c[t] + m_0[t - b]; mode i is the same, delayed by i rounds [N-3.2]."""
    return np.cumsum(coefficients.reshape(-1, batches), axis=0).ravel()


def gram_slope(coefficients, weights):
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


def log_error(coefficients, largest=False, smooth=False):
    """Row t of A C^-1 has the entries s_0 .. s_t, s the power series 1 / ((1 - x) c): the last row is the largest.

    It is so at all coefficients, so that the largest error is smooth by itself.
    """
    n = len(coefficients)
    with np.errstate(over="ignore", invalid="ignore"):  # an inverse that grows: a line search went too far
        inverse = _reciprocal(coefficients)
        sums = np.cumsum(inverse)
        top = np.max(np.abs(sums))
    if not np.isfinite(top) or top > 1e200:
        return LARGEST_LOG, np.zeros(n)
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
