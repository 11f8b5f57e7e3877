"""Gradients for scaled encoders [N-gradI].

C = diag(d) T diag(e): with M the modes of T diag(e), the Gram matrix is M diag(d)^2 M^T, and column s of A C^-1 is
column s of A diag(e)^-1 T^-1 over d_s. Gradients have the shape (3, n): by the coefficients of T, by d, by e. The
interface is that of `slopes`.
"""

from __future__ import annotations

import math

import numpy as np

from .. import balls_in_bins
from . import arrays

_BLOCK = 32  # columns of A C^-1 at once


def encoder(table):
    return table


def gram_slope(encoder, weights):
    """Gradient of <weights, G>, G the Gram matrix of the modes; weights symmetric, shape (b, b)."""
    b, n, c = len(weights), encoder.columns, encoder.base.coefficients
    modes = balls_in_bins.gram.modes(encoder, b)
    pulled = 2 * (weights @ modes) * encoder.row_scale  # gradient by the scaled modes
    by_rows = np.einsum("it,it->t", pulled, modes)
    pulled *= encoder.row_scale
    by_coefficients, by_columns = np.zeros(n), np.empty(n)
    for j, scale in enumerate(encoder.column_scale):
        seen = pulled[j % b, j:]
        by_coefficients[: n - j] += scale * seen
        by_columns[j] = seen @ c[: n - j]
    return np.array([by_coefficients, by_rows, by_columns])


def log_error(encoder, largest=False, smooth=False):
    """(log of the root mean square, or of the largest deviation, of prefix sums at noise 1, its gradient) [N-RMSE]."""
    n, inverse = encoder.columns, encoder.base.inverse_coefficients
    top = np.max(np.abs(np.cumsum(inverse)))
    errors = _Columns(encoder, inverse / top)
    share = None  # of each row in what is minimised; None: all alike
    if largest:
        squares = np.zeros(n)
        for start, block, _ in errors.blocks():
            for s in range(block.shape[1]):
                squares[start + s :] += block[: n - start - s, s] ** 2
        log_square, share = arrays.log_largest(squares, smooth)
    by_inverse, by_rows, by_columns = np.zeros(n), np.empty(n), np.zeros(n)
    for start, block, later in errors.blocks():
        weighted = block if share is None else block * errors.rows_of(share, start)
        place = slice(start, start + block.shape[1])
        by_rows[place] = -np.einsum("ms,ms->s", weighted, block) / encoder.row_scale[place]
        errors.pull(start, weighted, later, by_inverse, by_columns)
    total = -float(by_rows @ encoder.row_scale)
    if not largest:
        log_square = math.log(total / n)
    # d(1 / c) = -(1 / c)^2 dc.
    by_coefficients = -np.convolve(by_inverse[::-1], np.convolve(inverse, inverse)[:n])[:n][::-1] / top
    return 0.5 * log_square + math.log(top), np.array([by_coefficients, by_rows, by_columns]) / total


class _Columns:
    """A C^-1 by blocks of columns, each from its diagonal down: entry [m, s] of a block stands in row s + m."""

    def __init__(self, encoder, inverse):
        self.n, self.inverse = encoder.columns, inverse
        self.d, self.e = encoder.row_scale, encoder.column_scale
        self.windows = np.lib.stride_tricks.sliding_window_view(np.append(1 / self.e, np.zeros(self.n)), self.n)

    def blocks(self):
        """(first column, block, 1 / e of the rows of T^-1 that each entry adds)."""
        for start in range(0, self.n, _BLOCK):
            stop, depth = min(start + _BLOCK, self.n), self.n - start
            later = np.ascontiguousarray(self.windows[start:stop, :depth].T)
            block = np.cumsum(self.inverse[:depth, None] * later, axis=0)
            block /= self.d[start:stop]
            for s in range(1, stop - start):
                block[depth - s :, s] = 0.0  # beyond the last round
            yield start, block, later

    def rows_of(self, values, start):
        """values by row, laid out as the block that begins at this column."""
        padded, width = np.append(values, np.zeros(_BLOCK)), min(_BLOCK, self.n - start)
        return np.lib.stride_tricks.sliding_window_view(padded[start:], self.n - start)[:width].T

    def pull(self, start, weighted, later, by_inverse, by_columns):
        """Add half the gradient of the weighted squares by the inverse coefficients and by the scales of columns."""
        depth, width = weighted.shape
        below = np.cumsum(weighted[::-1], axis=0)[::-1] / self.d[start : start + width]  # all rows from this one down
        by_inverse[:depth] += np.einsum("ms,ms->m", below, later)
        below *= self.inverse[:depth, None]
        for s in range(width):
            rows = slice(start + s, self.n)
            by_columns[rows] -= below[: depth - s, s] / self.e[rows] ** 2
