"""The Gram matrix of the modes of balls in bins: all that its accounting needs [N-3.2], [M-K].

With b batches per epoch and E epochs, a record of batch i takes part in the rounds i, b + i,
2b + i, ...: it moves C x by the mode m_i = sum_j |C|[:, b j + i]. Delta depends on the modes only
through their inner products G[i, l] = <m_i, m_l>, a (b, b) matrix. Nothing of the size of the
noise, and nothing with one row per round and one column per batch, is stored at once.
"""

from __future__ import annotations

import numpy as np

from .._base import validate as check

_UNIT = 2.0**-53
_CHUNK = 2**20  # entries of a temporary table, 8 MiB
_MOST_BATCHES = 2**13  # a Gram matrix of 512 MiB


def gram(encoder, batches_per_epoch, epochs, non_adaptive=False):
    """Inner products of the modes m_0 .. m_{b-1}, in units where the noise multiplier is 1 [N-3.2].

    Parameters
    ----------
    encoder : made by `dplib.matrices`, with batches_per_epoch * epochs columns.
    batches_per_epoch : b, from 1 to 8192. epochs : E, at least 1.
    non_adaptive : False for the modes of |C|, valid for contributions that depend on what was
        released before. True for the modes of C itself: valid only where contributions do not, and
        only if no entry of C^T C is below 0 [N-K].

    Returns an array of shape (b, b), symmetric, entries at least 0. Relative error of an entry at
    most 4 (n + b) 2^-53 for encoders without negative entries, n the number of columns.
    Cost: Toeplitz O(n b), trees O(log(n) b^3), scaled O(n (n + b^2)), others O(n * rows); check of C^T C for encoders with
    negative entries O(n^2 * rows). (A Toeplitz encoder with a negative coefficient never passes it: the last
    column holds its first coefficient alone.)
    Raises ValueError or TypeError on anything else.
    """
    encoder, b, epochs = _scheme(encoder, batches_per_epoch, epochs)
    if check.flag("non_adaptive", non_adaptive) and encoder.signed:
        _check_inner_products(encoder)
        return np.maximum(_gram(encoder, b, signed=True), 0.0)
    return _gram(encoder, b, signed=False)


def gram_upper(encoder, batches_per_epoch, epochs, non_adaptive=False):
    """No entry is below that of the exact Gram matrix: rounding upwards, for certificates.

    Arguments as for `gram`. The bound also covers a division by sigma^2 afterwards, and for
    `non_adaptive` the entries of C^T C that are negative by rounding alone: it is monotone in
    the Gram matrix that makes a larger one safe [M-K].
    """
    result = gram(encoder, batches_per_epoch, epochs, non_adaptive)
    slack = 4 * (encoder.columns + len(result)) * _UNIT
    if non_adaptive and encoder.signed:
        # Terms of both signs: the error is relative to the sum of their sizes.
        return result + 6 * slack * _gram(encoder, len(result), signed=False)
    return result * (1 + slack)


def check_gram(name, values):
    """A Gram matrix of modes: square, symmetric, positive semidefinite and >= 0 entrywise, within rounding.

    Returns it as an array of shape (b, b), made exactly symmetric; the error names the argument.
    """
    if isinstance(values, np.ndarray) and values.ndim == 2 and len(values) > _MOST_BATCHES:
        raise ValueError(f"{name} must have at most {_MOST_BATCHES} rows; got {len(values)}")
    array = check.matrix(name, values)
    if array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} must be square; got shape {array.shape}")
    largest = float(np.max(array))
    if not np.all(np.diag(array) > 0) or largest > 1e100:
        worst = float(np.min(np.diag(array))) if largest <= 1e100 else largest
        raise ValueError(f"{name} must have entries above 0 and at most 1e+100 on its diagonal; got {worst!r}")
    if np.any(array < 0):
        raise ValueError(f"{name} must have entries at least 0; got {float(np.min(array))!r}")
    if np.max(np.abs(array - array.T)) > 1e-9 * largest:
        gap = np.max(np.abs(array - array.T))
        raise ValueError(f"{name} must be symmetric; it differs from its transpose by {gap:.3g}")
    array = (array + array.T) / 2
    scale = np.sqrt(np.diag(array))
    lowest = float(np.linalg.eigvalsh(array / scale / scale[:, None])[0])
    if lowest < -1e-9 * len(array):
        raise ValueError(
            f"{name} must be positive semidefinite within rounding; with its diagonal scaled to 1 "
            f"it has the eigenvalue {lowest:.3g}"
        )
    return array


# --- helpers -------------------------------------------------------------------------------------------


def _scheme(encoder, batches_per_epoch, epochs):
    encoder = check.encoder(encoder, signed=True)
    b = check.whole("batches_per_epoch", batches_per_epoch, at_least=1, at_most=_MOST_BATCHES)
    epochs = check.whole("epochs", epochs, at_least=1)
    if encoder.columns != b * epochs:
        raise ValueError(
            "encoder must have one column for each round, batches_per_epoch * epochs = "
            f"{b} * {epochs} = {b * epochs}; got {encoder.columns}"
        )
    return encoder, b, epochs


def _gram(encoder, b, signed):
    if hasattr(encoder, "coefficients"):
        return _toeplitz(encoder.coefficients if signed else np.abs(encoder.coefficients), b)
    if hasattr(encoder, "row_heights"):
        return _tree(encoder, b)
    if hasattr(encoder, "row_scale"):
        table = modes(encoder, b) * encoder.row_scale
        product = table @ table.T
        return (product + product.T) / 2
    return _table(encoder.array, b, signed)


def modes(encoder, b):
    """The modes of a scaled encoder before its rows are scaled, shape (b, n): row i holds mode i [N-3.2]."""
    c, n = encoder.base.coefficients, encoder.columns
    result = np.zeros((b, n))
    for j, scale in enumerate(encoder.column_scale):
        reach = min(encoder.bands, n - j)
        result[j % b, j : j + reach] += scale * c[:reach]
    return result


def _toeplitz(c, b):
    """Mode i is mode 0, delayed by i rounds: the last row directly, the others by adding what was cut off."""
    n = len(c)
    first = np.cumsum(c.reshape(-1, b), axis=0).ravel()  # m_0[t] = c[t] + m_0[t - b]
    windows = np.lib.stride_tricks.sliding_window_view(np.append(first, np.zeros(b)), b)
    last = np.zeros(b)  # <m_{b-1}, m_{b-1-lag}> by lag
    step = max(1, _CHUNK // b)
    for start in range(0, n - b + 1, step):
        stop = min(start + step, n - b + 1)
        last += first[start:stop] @ windows[start:stop]
    result = np.empty((b, b))
    result[-1] = last[::-1]
    ends = first[n - b :][::-1]  # ends[i] = m_0[n - 1 - i]
    for i in range(b - 2, -1, -1):
        result[i, : i + 1] = result[i + 1, 1 : i + 2] + ends[i] * ends[: i + 1]
    lower = np.tril(result)
    return lower + np.tril(result, -1).T


def _tree(tree, b):
    """Each node adds the outer product of how often it contains each batch; nodes of one kind together."""
    starts = tree.row_rounds + 1 - (1 << tree.row_heights)
    kinds, counts = np.unique(np.stack([tree.row_heights, starts % b]), axis=1, return_counts=True)
    result = np.zeros((b, b))
    step = max(1, _CHUNK // b)
    for begin in range(0, len(counts), step):
        heights, residues = kinds[:, begin : begin + step]
        length = (1 << heights)[:, None]
        inside = (np.arange(b) - residues[:, None]) % b < length % b
        contains = (length // b + inside).astype(float)
        result += (contains * counts[begin : begin + step, None]).T @ contains
    return (result + result.T) / 2


def _table(array, b, signed):
    result = np.zeros((b, b))
    step = max(1, _CHUNK // array.shape[1])
    for start in range(0, len(array), step):
        rows = array[start : start + step]
        modes = (rows if signed else np.abs(rows)).reshape(len(rows), -1, b).sum(axis=1)
        result += modes.T @ modes
    return (result + result.T) / 2


def _check_inner_products(encoder):
    """No two columns of C may have a negative inner product, within rounding [N-K]."""
    n = encoder.columns
    scale = encoder.column_norms()
    for lag in range(1, n):
        inner = encoder.gram_diagonal(lag)
        allowance = 4 * encoder.rows * _UNIT * scale[: n - lag] * scale[lag:]
        if np.any(inner < -allowance):
            i = int(np.argmin(inner + allowance))
            raise ValueError(
                "encoder must have columns with inner products of at least 0 for non_adaptive=True; "
                f"columns {i} and {i + lag} have {inner[i]:.6g}"
            )
