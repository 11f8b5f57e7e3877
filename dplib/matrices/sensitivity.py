"""How far one record can move C x: sensitivities of an encoder by participation.

A record contributes a vector of norm at most 1 to each round in which it takes
part, and nothing to the others; neighbours differ by that record (zero-out, or add
and remove). Since the entries of C are at least 0, so are the inner products of its
columns, and for a given set of rounds the worst contributions are all equal: the
sensitivity of the set is the norm of the sum of its columns [M-0s]. What remains is the
worst set that the participation scheme allows.

    pattern            one given set of rounds
    single             any one round
    round_robin        every b-th round, from any start
    min_separation     any set with gaps of at least b, and at most k rounds

Without sampling the release is a Gaussian mechanism with mu = sensitivity / sigma,
for adaptive contributions too, because no row uses a later round [M-0].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from ..results import Bracket
from . import Encoder, Toeplitz

_MOST_PAIRWISE = 4096


def pattern(encoder: Encoder, rounds: ArrayLike) -> float:
    """Sensitivity of a record that takes part in exactly these rounds: the norm of the sum of the columns.

    rounds : shape (k,), different whole numbers from 0 to columns - 1.
    """
    encoder = check.encoder(encoder)
    chosen = check.vector("rounds", rounds, at_least=0, at_most=encoder.columns - 1)
    if np.any(chosen != np.floor(chosen)) or len(np.unique(chosen)) < len(chosen):
        raise ValueError(f"rounds must be different whole numbers; got {rounds!r}")
    takes_part = np.zeros(encoder.columns)
    takes_part[chosen.astype(int)] = 1.0
    return float(np.linalg.norm(encoder.multiply(takes_part)))


def single(encoder: Encoder) -> float:
    """Sensitivity when a record takes part once: the largest column norm. Cost: as `column_norms`."""
    return float(np.max(check.encoder(encoder).column_norms()))


def round_robin(encoder: Encoder, period: int, participations: int | None = None) -> float:
    """Sensitivity when a record takes part in every `period`-th round, from any first round on.

    Parameters
    ----------
    period : whole number at least 1. participations : how often at most; None for as often as fits.

    Exact. For a Toeplitz encoder the record that starts in the first round is the worst: a later
    start gives the same sum of columns, shifted and cut off. Cost: one product for Toeplitz
    encoders; else one diagonal of the Gram matrix for each participation, or one product for
    each first round, whichever are fewer.

    >>> from dplib import matrices, sensitivity
    >>> encoder = matrices.optimal_counting(64)
    >>> print(f"once: {sensitivity.single(encoder):.4f}   every 16 rounds: {sensitivity.round_robin(encoder, 16):.4f}")
    once: 1.5456   every 16 rounds: 3.9606
    """
    encoder, period, most = _scheme(encoder, period, participations, "period")
    if isinstance(encoder, Toeplitz):
        return pattern(encoder, period * np.arange(most))
    if most > period and most * period >= encoder.columns:
        return max(pattern(encoder, np.arange(first, encoder.columns, period)) for first in range(period))
    squares = _windows(encoder.gram_diagonal(0), period, most)
    for apart in range(1, most):
        pairs = _windows(encoder.gram_diagonal(apart * period), period, most - apart)
        squares[: len(pairs)] += 2 * pairs
    return math.sqrt(np.max(squares))


def min_separation(encoder: Encoder, separation: int, participations: int | None = None) -> Bracket:
    """Sensitivity when two participations of a record are at least `separation` rounds apart.

    Parameters
    ----------
    separation : b >= 1. participations : k >= 1, how often at most; None for as often as fits.

    Returns a Bracket; `upper` is the one to use. Its ends agree where the worst set is known:

    * b = 1 without a limit: all rounds;
    * Toeplitz encoders whose coefficients never increase, or with at most b bands: every b-th
      round from the first on (Kalinin and Lampert 2024). For the first kind: the inner product
      of two columns falls when both move to later rounds or the two move apart, so that the
      pair in places a and b of any set has at most the inner product that it has in that one.

    Else `upper` bounds, for each round of the set, its inner products with the others separately, one from each b rounds
    in a row, so that it may be up to twice the truth (quadratic in the rounds; refused above 4096), and `lower` is that
    of round robin.
    Rounding errors, about 1e-13, are not in the bracket.
    """
    encoder, b, k = _scheme(encoder, separation, participations, "separation")
    every_other = k >= -(-encoder.columns // b)
    if isinstance(encoder, Toeplitz):
        falls = not np.any(np.diff(encoder.coefficients) > 0)
        known = falls or encoder.bands <= b or (b == 1 and every_other)
    else:
        known = b == 1 and every_other
    if known:
        value = round_robin(encoder, b, k)
        return Bracket(value, value, "round robin from the first round")
    if encoder.columns > _MOST_PAIRWISE:
        raise ValueError(
            f"encoder must have at most {_MOST_PAIRWISE} columns for the bound by pairs; got {encoder.columns}"
        )
    gram = encoder.gram()
    apart = np.abs(np.subtract.outer(np.arange(len(gram)), np.arange(len(gram))))
    gram[(apart > 0) & (apart < b)] = 0.0  # never in one set
    upper = math.sqrt(_largest_sums(_largest_sums(gram, b, k), b, k))
    lower = round_robin(encoder, b, k)
    return Bracket(lower, max(lower, upper), "inner products bounded by rows")


def _largest_sums(terms, b, k):
    """At least the sum over any set with gaps of at least b and at most k members, along the last axis."""
    padded = np.pad(terms, [(0, 0)] * (terms.ndim - 1) + [(0, -terms.shape[-1] % b)])
    best = padded.reshape(*terms.shape[:-1], -1, b).max(axis=-1)
    return np.sort(best, axis=-1)[..., -k:].sum(axis=-1)


def _scheme(encoder, period, participations, name):
    encoder = check.encoder(encoder)
    period = min(check.whole(name, period, at_least=1), encoder.columns)  # beyond that, one participation
    fits = -(-encoder.columns // period)
    if participations is not None:
        fits = min(fits, check.whole("participations", participations, at_least=1))
    return encoder, period, fits


def _windows(values, period, count):
    """Sums of the `count` terms values[r], values[r + period], ... (fewer at the end), for each r."""
    terms = -(-len(values) // period)
    table = np.zeros((terms + count + 1, period))
    table[1 : terms + 1].flat[: len(values)] = values
    table = np.cumsum(table, axis=0)
    return (table[count : count + terms] - table[:terms]).ravel()[: len(values)]
