"""b-min-sep sampling of a banded encoder: the law of a record's rounds, and the likelihood ratio of what they move.

A record that is eligible in a round joins with probability p and then sits out b - 1 rounds. Its rounds are a random
set S (a *pattern*). With a_i column i of C in units of the noise and y_i = <a_i, u> - <a_i, a_i> / 2 the dominating pair is

    P = sum over S of Pr(S) N(sum_{i in S} a_i, I)  against  Q = N(0, I).

Where columns b or more rounds apart are orthogonal (at most b bands), dP/dQ = sum over S of Pr(S) prod_{i in S} e^{y_i}, and
with f(i) the part of it from round i on, given that the record is eligible in round i,

    f(i) = (1 - p) f(i + 1) + p e^{y_i} f(i + b),     f = 1 from the last round on.

A cold start has dP/dQ = f(0). In the stationary start a record is eligible at once with probability pi0 = 1/(1 + (b - 1) p), and from
round j on with probability p pi0 for j = 1 .. b - 1: dP/dQ = pi0 (f(0) + p (f(1) + ... + f(b - 1))). For more bands see `pattern_pair`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._base import validate as check
from .._base.lazy_scipy import linalg, special
from ..batching.streams import cold_rates

MOST_ROUNDS, MOST_ENTRIES = 2**16, 2**24
_UNIT = 2.0**-53
_RAISED = 1e-12  # of the entries of the Gram matrix, relative to the norms: far above the rounding of its factor


@dataclass(frozen=True)
class Patterns:
    """The law of a record's rounds: T rounds, eligible records join with probability p and then pause for b - 1."""

    rounds: int
    p: float
    b: int
    warm: bool

    @property
    def waits(self):
        """Probabilities of being eligible first in round 0, 1, .., b - 1; shape (b,), or (1,) for a cold start."""
        if not self.warm:
            return np.ones(1)
        free = 1 / (1 + (self.b - 1) * self.p)
        return np.append(free, np.full(self.b - 1, self.p * free))

    def rates(self):
        """The probability of taking part in each round, shape (rounds,)."""
        if self.warm:
            return np.full(self.rounds, self.p / (1 + (self.b - 1) * self.p))
        return cold_rates(self.rounds, self.b, self.p)

    def together(self, lags):
        """The probability of taking part l rounds after a round in which the record took part, for l = 0 .. lags - 1."""
        found, paused = np.zeros(lags), 0.0
        found[0] = 1.0
        for lag in range(1, lags):
            paused += found[lag - 1] - (found[lag - self.b] if lag >= self.b else 0.0)
            found[lag] = self.p * (1 - paused)
        return found

    def log_ratio(self, y):
        """log dP/dQ for at most b bands, at exponents y, shape (draws, rounds); shape (draws,). Sums of positive terms: nothing cancels."""
        with np.errstate(divide="ignore"):
            stay, join, first = np.log1p(-self.p), np.log(self.p), np.log(self.waits)
        after = np.zeros((self.rounds + self.b, len(y)))
        columns = np.ascontiguousarray(y.T)
        for i in range(self.rounds - 1, -1, -1):
            after[i] = np.logaddexp(stay + after[i + 1], join + columns[i] + after[i + self.b])
        total = first[0] + after[0]
        for wait in range(1, len(first)):
            total = np.logaddexp(total, first[wait] + after[wait])
        return total

    def longest(self, squares):
        """The largest squared norm of what a pattern moves, for squared norms of the columns, shape (rounds,)."""
        if self.p == 0:
            return 0.0
        after = np.zeros(self.rounds + self.b)
        for i in range(self.rounds - 1, -1, -1):
            after[i] = squares[i] + after[i + self.b]
            if self.p < 1:
                after[i] = max(after[i], after[i + 1])
        return float(after[: len(self.waits)].max())

    def divergence(self, other):
        """KL(self, other) of start and coins, for laws with the same pause and self.p <= other.p: at least that of the rounds."""
        eligible = self.rates().sum() / self.p
        coin = special.rel_entr(self.p, other.p) + special.rel_entr(1 - self.p, 1 - other.p)
        return float(eligible * coin + special.rel_entr(self.waits, other.waits).sum())


# --- Gram matrix -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Band:
    """The Gram matrix of the columns in units of the noise, and its factor.

    gram : shape (w, T), gram[l, i] = <a_i, a_{i-l}>, 0 for i < l. factor : shape (w, T), factor[l, i] = L[i, i - l], L lower triangular
    with L L' = gram.
    """

    gram: np.ndarray
    factor: np.ndarray

    @property
    def squares(self):
        return self.gram[0]

    def times(self, counts):
        """gram @ counts for counts of shape (draws, T)."""
        result = counts * self.gram[0]
        for lag in range(1, len(self.gram)):
            result[:, lag:] += counts[:, :-lag] * self.gram[lag, lag:]
            result[:, :-lag] += counts[:, lag:] * self.gram[lag, lag:]
        return result

    def noise(self, normals):
        """L @ normals: Gaussian with the Gram matrix as covariance, for normals of shape (draws, T)."""
        result = normals * self.factor[0]
        for lag in range(1, len(self.factor)):
            result[:, lag:] += normals[:, :-lag] * self.factor[lag, lag:]
        return result


def reach(encoder):
    """At least the number of columns in turn that overlap; that of a dense encoder is its rounds."""
    return min(encoder.columns, getattr(encoder, "bands", getattr(encoder, "leaves", encoder.columns)))


def columns_of(encoder, separation):
    """Inner products of the columns of C, shape (w, T) as in `Band`, at noise multiplier 1.

    Raises ValueError for entries below 0, for more than MOST_ROUNDS rounds or MOST_ENTRIES bands times rounds, and for a separation
    beyond the rounds. Time: O(T) a band for Toeplitz encoders and trees; T^2 rows for dense ones.
    """
    encoder = check.encoder(encoder)
    rounds = encoder.columns
    if rounds > MOST_ROUNDS:
        raise ValueError(f"encoder must have at most {MOST_ROUNDS} columns (rounds); got {rounds}")
    check.whole("min_separation", separation, at_least=1, at_most=rounds)
    width = reach(encoder)
    if width * rounds > MOST_ENTRIES:
        raise ValueError(f"encoder must have at most {MOST_ENTRIES} bands times rounds; got {width} times {rounds}")
    diagonals = []
    for lag in range(width):
        diagonal = np.zeros(rounds)
        diagonal[lag:] = encoder.gram_diagonal(lag)
        diagonals.append(diagonal)
    while len(diagonals) > 1 and not np.any(diagonals[-1]):
        diagonals.pop()
    return np.array(diagonals)


def band(columns, noise_multiplier):
    """The `Band` in units of the noise. No entry is below the exact one, rounding included: that is safe [M-K]."""
    scaled = columns / noise_multiplier / noise_multiplier
    width, rounds = scaled.shape
    # Adding a multiple of D (ones in the band + 2 w I) D, D the norms, raises every entry and keeps it a Gram matrix.
    norms = np.sqrt(scaled[0])
    table = scaled * (1 + _RAISED)
    for lag in range(width):
        table[lag, lag:] += _RAISED * (2 * width + 1 if lag == 0 else 1) * norms[lag:] * norms[: rounds - lag]
    lower = np.zeros_like(table)
    for lag in range(width):
        lower[lag, : rounds - lag] = table[lag, lag:]
    found = linalg.cholesky_banded(lower, lower=True)
    factor = np.zeros_like(table)
    for lag in range(width):
        factor[lag, lag:] = found[lag, : rounds - lag]
    gram = _square(factor)
    doubt = 8 * (width + 4) * _UNIT
    for lag in range(width):
        missing = scaled[lag, lag:] * (1 + doubt) + doubt * norms[lag:] * norms[: rounds - lag] - gram[lag, lag:]
        if missing.max(initial=0.0) > 0:
            raise ArithmeticError("the factor of the Gram matrix is too far off for a certificate")
    return Band(gram, factor)


def _square(factor):
    """L L' in the layout of `Band`."""
    width, rounds = factor.shape
    gram = np.zeros_like(factor)
    for lag in range(width):
        for inner in range(width - lag):
            # L[i, k] L[i - lag, k] with k = i - lag - inner
            start = lag + inner
            gram[lag, start:] += factor[start, start:] * factor[inner, inner : rounds - lag]
    return gram

