"""Errors of prefix sums: what the correlated noise of an encoder costs [N-RMSE].

With C x + z released, the prefix sums A x are estimated as B (C x + z), B C = A: the
error is B z, whatever the data are. Everything here is for one coordinate and for
a given noise multiplier sigma, the standard deviation of the entries of z. To
compare encoders at equal privacy without sampling, take sigma proportional to the
sensitivity (`dplib.sensitivity`); with sampling, calibrate it.

    deviations       standard deviation of the error of each prefix sum
    rmse             root of their mean square, sigma ||B||_F / sqrt(n)
    largest_error    the largest of them, sigma times the largest row norm of B

For a square encoder B = A C^-1 is the only decoder. For trees there are three:

    "pseudo-inverse"   B = A C^+, least squares from all rows: the smallest error. Prefix t
                       also uses rows that are released after round t. A training loop gets
                       the same error at the same privacy when its encoder is the
                       lower-triangular factor of the Gram matrix
    "causal"           least squares from the rows released so far (Honaker 2015)
    "dyadic"           the sum of the dyadic nodes that make up the prefix
"""

from __future__ import annotations

import numpy as np

from .._base import validate as check
from . import Dense, Encoder, Scaled, Toeplitz, Tree
from .encoders import check_size

_DECODERS = ("pseudo-inverse", "causal", "dyadic")


def deviations(
    encoder: Encoder, noise_multiplier: float = 1.0, decoder: str = "pseudo-inverse"
) -> np.ndarray:
    """Standard deviation of the error of each prefix sum, shape (columns,).

    Parameters
    ----------
    encoder : an encoder. noise_multiplier : sigma > 0.
    decoder : "pseudo-inverse", "causal" (differs for trees only) or "dyadic" (trees only).

    Cost: O(n) for Toeplitz encoders (n log n for the inverse), O(n log n) for trees, O(n^2) with scaled rows, else dense.
    Raises ValueError or TypeError on bad input, and where the encoder cannot be inverted.
    """
    encoder = check.encoder(encoder, signed=True)
    sigma = check.noise_multiplier(noise_multiplier)
    check.choice("decoder", decoder, _DECODERS)
    if isinstance(encoder, Tree):
        return sigma * np.sqrt(_tree_variances(encoder, decoder))
    if decoder == "dyadic" or (decoder == "causal" and isinstance(encoder, Dense) and not encoder.is_triangular):
        raise ValueError(f"decoder must be 'pseudo-inverse' for this encoder, which is no tree; got {decoder!r}")
    if isinstance(encoder, Toeplitz):
        column = encoder.prefix_coefficients
        largest = np.max(np.abs(column))  # as in `rmse`
        return sigma * largest * np.sqrt(np.cumsum((column / largest) ** 2))
    if isinstance(encoder, Scaled) and np.ptp(encoder.column_scale) == 0:
        column = encoder.base.prefix_coefficients / encoder.column_scale[0]
        largest = np.max(np.abs(column)) / np.min(encoder.row_scale)
        return sigma * largest * np.sqrt(np.convolve((column / largest) ** 2, encoder.row_scale**-2.0)[: encoder.columns])
    return sigma * _dense_norms(encoder)


def rmse(encoder: Encoder, noise_multiplier: float = 1.0, decoder: str = "pseudo-inverse") -> float:
    """Root mean square error of a prefix sum, per round and coordinate: sigma ||B||_F / sqrt(n) [N-RMSE].

    Arguments and errors as for `deviations`.

    >>> from dplib import matrices, utility
    >>> print(f"{utility.rmse(matrices.identity(64)):.4f} {utility.rmse(matrices.optimal_counting(64)):.4f}")
    5.7009 1.4426
    """
    errors = deviations(encoder, noise_multiplier, decoder)
    largest = np.max(errors)  # squares of large errors would leave the range of floats
    return float(largest * np.sqrt(np.mean((errors / largest) ** 2)))


def largest_error(encoder: Encoder, noise_multiplier: float = 1.0, decoder: str = "pseudo-inverse") -> float:
    """Largest standard deviation of a prefix sum: sigma times the largest row norm of B.

    Arguments and errors as for `deviations`.
    """
    return float(np.max(deviations(encoder, noise_multiplier, decoder)))


def _dense_norms(encoder):
    """Row norms of A C^+."""
    check_size("encoder", encoder.rows, encoder.rows)
    decoder = np.cumsum(encoder.solve(np.eye(encoder.rows)), axis=0)
    largest = np.max(np.abs(decoder))  # as in `rmse`
    return largest * np.linalg.norm(decoder / largest, axis=1)


def _tree_variances(encoder, decoder):
    """Variances at sigma = 1: those of one tree, plus that of a root for every finished tree."""
    ends = np.arange(1, encoder.leaves + 1)
    heights = np.arange(encoder.height + 1)
    if decoder == "pseudo-inverse":
        one_tree = _least_squares_variances(encoder.height)
    else:
        # A node together with all below it has variance 2^h / (2^(h+1) - 1); alone it has 1.
        nodes = np.ones(len(heights)) if decoder == "dyadic" else 2.0**heights / (2.0 ** (heights + 1) - 1)
        one_tree = ((ends[:, None] >> heights) & 1) @ nodes
    finished = np.repeat(np.arange(encoder.trees), encoder.leaves)
    return finished * one_tree[-1] + np.tile(one_tree, encoder.trees)


def _least_squares_variances(height):
    """Variance of each prefix sum when all nodes of one tree are used.

    Level by level, for the node above each leaf: `prefix` is the variance of the part of the
    prefix inside the node, `total` that of the whole node, `joint` their covariance, given the
    measurements at or below the node. Merging the two children, then measuring the sum:
    """
    leaf = np.arange(1 << height)
    prefix = np.ones(1 << height)
    joint, total = prefix.copy(), 1.0
    for level in range(height):
        from_right = (leaf >> level) & 1
        prefix = prefix + from_right * total
        joint = joint + from_right * total
        prefix -= joint**2 / (2 * total + 1)
        joint /= 2 * total + 1
        total = 2 * total / (2 * total + 1)
    return prefix
