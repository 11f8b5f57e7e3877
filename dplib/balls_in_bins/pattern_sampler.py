"""Bounded, unbiased samples of delta under b-min-sep sampling: tuples of patterns [A-15], drawn round by round.

Remove. With w = dP/dQ, delta = E_Q (w - alpha)_+ = E_Q[w^k (w - alpha)_+ / w^k]. Expand w^k into tuples of k patterns. Only their
multiplicities matter: n_i, how many of the k patterns have round i. Of the k, e_i = k - (n_{i-1} + .. + n_{i-b+1}) are eligible
in round i, whatever the tuple, so that w^k = sum over n of c(n) e^{sum n_i y_i} with c(n) = prod_i Binom(n_i; e_i, p), and

    delta = sum over n of tau(n) E[(w - alpha)_+ / w^k],  u ~ N(sum_i n_i a_i, I),
    tau(n) = prod_i Binom(n_i; e_i, p) exp(n_i (n_i - 1) G_ii / 2 + n_i h_i),   h_i = sum_{l<b} G_{i,i-l} n_{i-l}.

`pattern_values` bounds every ratio of tau to the probability of its tuple by one number V_0, and `pattern_tuples` draws tuples. The
payoff (w - alpha)_+ / w^k is at most (1/k) (1 - 1/k)^(k-1) alpha^(1-k); so V_0 times this is an upper bound on delta without
sampling, too (that of order k).

Add. Any other law of patterns gives log w >= sum_i r_i y_i - KL, r_i its rates: the region w < 1/alpha lies in a half-space.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import special
from . import tuple_sampler
from .bounded_draws import Sampler
from .pattern_law import Patterns
from .pattern_pair import Pair
from .pattern_tuples import draw_counts, draw_tuples
from .pattern_values import Values

_UNIT = 2.0**-53
_ROWS = 512  # draws worked on at once
_RATES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.03, 0.01)  # of the half-space's pattern law, times p


def log_payoff(size):
    """log of (1/k) (1 - 1/k)^(k-1), the largest (w - 1)_+ / w^k; 0 for k = 1."""
    return -math.log(size) + (size - 1) * math.log1p(-1 / size) if size > 1 else 0.0


class TupleSampler(Sampler):
    """Samples of the remove direction; as `tuple_sampler.RemoveSampler`."""

    def __init__(self, pair: Pair, law: Values):
        self.pair, self.law = pair, law
        self.order, self.key = law.size, (law.size,)
        self.slack = _slack(pair, law.size)
        # What tuples and normals that are drawn in floating-point numbers are off in total variation.
        choices = law.size + 4 if pair.overlap else 1
        self.extra = (pair.patterns.rounds + 2) * (law.size + 4) * choices * 16 * _UNIT

    def log_bound(self, epsilon):
        return self.law.log_total + log_payoff(self.order) - (self.order - 1) * epsilon

    def draw(self, rng):
        """(log w, log of importance ratio over V_0 (at most 0), whether all normals are resolved), each of shape (BLOCK,)."""
        draw = draw_tuples if self.pair.overlap else draw_counts
        counts, log_rho = draw(rng, self.pair, self.law, tuple_sampler.BLOCK)
        normals, valid = tuple_sampler._normals(rng, counts.shape)
        band = self.pair.band
        log_w = np.empty(len(counts))
        for start in range(0, len(counts), _ROWS):
            part = slice(start, start + _ROWS)
            y = band.times(counts[part].astype(float)) + band.noise(normals[part]) - band.squares / 2
            log_w[part] = self.pair.log_ratio(y)
            valid[part] &= self.pair.resolved(y)
        return log_w, log_rho, valid

    def payoffs(self, drawn, epsilon, slack=0.0):
        """slack : by which logarithms may be off, all upwards."""
        log_w, log_rho, _ = drawn
        gain = np.minimum(epsilon - log_w - slack, 0.0)
        rest = log_rho - (self.order - 1) * (log_w - epsilon) - log_payoff(self.order) + self.order * slack
        inside = gain < 0
        return np.where(inside, -np.expm1(gain) * np.exp(np.where(inside, np.clip(rest, -700.0, 600.0), 0.0)), 0.0)

    def rounded(self, drawn, epsilon):
        return np.where(drawn[-1], np.minimum(self.payoffs(drawn, epsilon, self.slack), 1.0), 1.0)


class HalfSpaceSampler(Sampler):
    """Samples of the add direction, drawn from Q in a half-space outside which the loss is at most `least`."""

    key = (1,)

    def __init__(self, pair: Pair, least: float):
        self.pair, self.least = pair, least
        self.threshold, rates = max((_half_space(pair, least, share) for share in _RATES), key=lambda found: found[0])
        self.pull = pair.band.times(rates[None])[0]
        self.rates, self.length = rates, math.sqrt(float(rates @ self.pull)) or 1.0
        self.slack = _slack(pair, 1)
        self.extra = (pair.patterns.rounds + 8) * 16 * _UNIT

    def log_bound(self, epsilon):
        return float(special.log_ndtr(-self.threshold)) + 1e-12

    def draw(self, rng):
        """(log w, whether all normals are resolved), shape (BLOCK,) each."""
        normals, valid = tuple_sampler._normals(rng, (tuple_sampler.BLOCK, self.pair.patterns.rounds))
        depth = np.log(rng.random(len(normals)) + 2.0**-54)
        along = special.ndtri_exp(np.minimum(float(special.log_ndtr(-self.threshold)) + depth, -1e-300))
        log_w, band = np.empty(len(normals)), self.pair.band
        for start in range(0, len(normals), _ROWS):
            part = slice(start, start + _ROWS)
            noise = band.noise(normals[part])
            change = along[part] - noise @ self.rates / self.length
            noise += change[:, None] * (self.pull / self.length)
            y = noise - band.squares / 2
            log_w[part] = self.pair.log_ratio(y)
            valid[part] &= self.pair.resolved(y)
        return log_w, valid

    def payoffs(self, drawn, epsilon, slack=0.0):
        return -np.expm1(np.minimum(epsilon + drawn[0] - slack, 0.0))

    def rounded(self, drawn, epsilon):
        return np.where(drawn[-1], self.payoffs(drawn, epsilon, self.slack), 1.0)


# --- helpers -----------------------------------------------------------------------------------------------


def _slack(pair, size):
    """By how much rounding may change log w or log rho."""
    patterns, band = pair.patterns, pair.band
    sums = band.gram.sum(axis=0).max() * 2
    normals = np.abs(band.factor).sum(axis=0).max() * 6.5
    exponent = (len(band.gram) + 8) * (size * sums + normals) * 8
    turns = patterns.rounds / patterns.b + 1
    size += 2 * size if pair.overlap else 0  # own rounds are summed up as well, and sums run over the patterns of a tuple
    return _UNIT * (turns * exponent * (1 + size) + 16 * patterns.rounds * (4 + abs(math.log(max(patterns.p, 1e-300))) + exponent))


def _half_space(pair, epsilon, share):
    """(threshold r, rates): w < e^-epsilon only where <sum_i rates_i a_i, u> < -r times the length of that vector."""
    patterns, band = pair.patterns, pair.band
    other = Patterns(patterns.rounds, patterns.p * share, patterns.b, patterns.warm)
    rates = other.rates()
    length = math.sqrt(float(rates @ band.times(rates[None])[0]))
    if not length > 0:
        return -math.inf, rates
    cost = rates @ band.squares / 2
    if pair.overlap:
        together = other.together(len(band.gram))
        cost += sum(together[lag] * (rates[:-lag] @ band.gram[lag, lag:]) for lag in range(patterns.b, len(band.gram)))
    threshold = (epsilon - cost - other.divergence(patterns)) / length
    doubt = 1 + (epsilon + 2 * cost + 1) / length
    return threshold - (1e-12 + 1e-15 * patterns.rounds) * doubt, rates
