"""Bounded, unbiased samples of delta under b-min-sep sampling: tuples of patterns [A-15], drawn round by round.

Remove. With w = dP/dQ, delta = E_Q (w - alpha)_+ = E_Q[w^k (w - alpha)_+ / w^k]. Expand w^k into tuples of k patterns. Only their
multiplicities matter: n_i, how many of the k patterns have round i. Of the k, e_i = k - (n_{i-1} + .. + n_{i-b+1}) are eligible
in round i, whatever the tuple, so that w^k = sum over n of c(n) e^{sum n_i y_i} with c(n) = prod_i Binom(n_i; e_i, p), and

    delta = sum over n of tau(n) E[(w - alpha)_+ / w^k],  u ~ N(sum_i n_i a_i, I),
    tau(n) = prod_i Binom(n_i; e_i, p) exp(n_i (n_i - 1) G_ii / 2 + n_i h_i),   h_i = sum_{l<b} G_{i,i-l} n_{i-l}.

tau is drawn from round by round, with a value function V_i = exp(A_i + sum_l g_{i,l} n_{i-l}) for what is to come: n_i with
probability proportional to its factor times V_{i+1}. If V_i is at least the sum of these for *every* past, the importance ratio of
every tuple is at most V_0. Let F_i(e, h) = log sum_n Binom(n; e, p) exp(n (n - 1) G_ii / 2 + n (h + g_{i+1,1})). It suffices that

    F_i(k - M, G_{i,i-l} M) <= A_i - A_{i+1} + M (g_{i,l} - g_{i+1,l+1})    for all lags l and M = 0 .. k:

for a fixed sum M of the past F_i is convex in h, and h and the right side are linear in the past, so that the worst past has all M
at one lag. The least A and g that do, from the last round backwards, are taken. The payoff (w - alpha)_+ / w^k is at most
(1/k) (1 - 1/k)^(k-1) alpha^(1-k); so V_0 times this is an upper bound on delta without sampling, too (that of order k).

Add. Any other law of patterns gives log w >= sum_i r_i y_i - KL, r_i its rates: the region w < 1/alpha lies in a half-space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.lazy_scipy import special
from . import tuple_sampler
from .pattern_law import Band, Patterns

_UNIT = 2.0**-53
_ROWS = 512  # draws worked on at once
_MARGIN = 1e-12  # by which a value function is raised in every round
_RATES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.03, 0.01)  # of the half-space's pattern law, times p
_LARGEST_KEY = 2**62


def log_payoff(size):
    """log of (1/k) (1 - 1/k)^(k-1), the largest (w - 1)_+ / w^k; 0 for k = 1."""
    return -math.log(size) + (size - 1) * math.log1p(-1 / size) if size > 1 else 0.0


@dataclass(frozen=True)
class Values:
    """The value functions of tuples of one size. It does not depend on epsilon.

    gains : shape (T,), g_{i+1,1}. steps : shape (T,), A_i - A_{i+1}. slopes : shape (T, w), g_{i,l} - g_{i+1,l+1} at lag l for
    l = 1 .. w - 1, and at index 0 for all lags from w on. first : log probabilities of the first eligible round.
    log_total : log V_0, at least log of E_Q w^k.
    """

    size: int
    gains: np.ndarray
    steps: np.ndarray
    slopes: np.ndarray
    first: np.ndarray
    log_total: float


def values(patterns: Patterns, band: Band, size: int) -> Values:
    """The least value functions for tuples of `size` patterns. Time: O(T w size^2)."""
    rounds, b, width = patterns.rounds, patterns.b, len(band.gram)
    numbers = np.arange(size + 1)
    logs = _log_binomials(size, patterns.p)
    pairs = numbers * (numbers - 1) / 2
    reversed_logs = logs[::-1]  # row M: k - M eligible
    gains, steps, slopes = np.empty(rounds), np.empty(rounds), np.zeros((rounds, width))
    ahead = np.zeros(b + 1)  # g_{i+1,l} at l = 1 .. b - 1; ahead[b] = 0
    seen = None
    for i in range(rounds - 1, -1, -1):
        gains[i] = ahead[1] if b > 1 else 0.0
        here = band.gram[:, i].tobytes(), gains[i]
        if here != seen:
            seen = here
            base = reversed_logs + pairs * band.gram[0, i] + numbers * gains[i]
            pushes = band.gram[1:, i, None, None] * numbers[:, None] * numbers
            table = _log_sums(np.concatenate([base[None], base + pushes]))  # (w, k + 1): lag 0 stands for all from w on
            step = table[0, 0] + _MARGIN
            slope = ((table[:, 1:] - step) / numbers[1:]).max(axis=1)
        steps[i], slopes[i] = step, slope
        if b > 1:
            ahead[1:b] = ahead[2 : b + 1] + slope[0]
            ahead[1:width] += slope[1:] - slope[0]
    with np.errstate(divide="ignore"):
        first = np.log(patterns.waits)
    if patterns.warm:
        # Eligible first in round j: as if it had taken part in round j - b.
        first[1:] += ahead[b - 1 : 0 : -1]
    start = float(_log_sums(first[None])[0])
    total = math.fsum(steps) + size * start + 1e-12 * (1 + size * abs(start))
    return Values(size, gains, steps, slopes, first - start, total)


class _Sampler:
    """What draws have in common: `bound`, and BLOCK independent samples in [0, 1] in units of it, rounded up."""

    @property
    def bound(self):
        return math.exp(self.log_bound)

    def __call__(self, rng, index=0):
        return self.rounded(self.draw(rng))


class TupleSampler(_Sampler):
    """Samples of the remove direction in units of `bound`, for one epsilon; as `tuple_sampler.RemoveSampler`."""

    def __init__(self, patterns: Patterns, band: Band, law: Values, epsilon: float):
        self.patterns, self.band, self.law, self.epsilon = patterns, band, law, epsilon
        self.size = law.size
        self.log_bound = law.log_total + log_payoff(self.size) - (self.size - 1) * epsilon
        self.slack = _slack(patterns, band, self.size)
        # What tuples and normals that are drawn in floating-point numbers are off in total variation.
        self.extra = (patterns.rounds + 2) * (self.size + 4) * 16 * _UNIT

    def rounded(self, drawn):
        log_w, log_rho, valid = drawn
        return np.where(valid, np.minimum(self.payoffs(log_w, log_rho, slack=self.slack), 1.0), 1.0)

    def draw(self, rng):
        """(log w, log of importance ratio over V_0 (at most 0), whether all normals are resolved), each of shape (BLOCK,)."""
        counts, log_rho = draw_counts(rng, self.patterns, self.band, self.law, tuple_sampler.BLOCK)
        normals, valid = tuple_sampler._normals(rng, counts.shape)
        log_w = np.empty(len(counts))
        for start in range(0, len(counts), _ROWS):
            part = slice(start, start + _ROWS)
            y = self.band.times(counts[part].astype(float)) + self.band.noise(normals[part]) - self.band.squares / 2
            log_w[part] = self.patterns.log_ratio(y)
        return log_w, log_rho, valid

    def payoffs(self, log_w, log_rho, epsilon=None, slack=0.0):
        """Samples in units of the bound, also for another epsilon. slack : by which logarithms may be off, all upwards."""
        gain = np.minimum((self.epsilon if epsilon is None else epsilon) - log_w - slack, 0.0)
        rest = log_rho - (self.size - 1) * (log_w - self.epsilon) - log_payoff(self.size) + self.size * slack
        inside = gain < 0
        return np.where(inside, -np.expm1(gain) * np.exp(np.where(inside, np.clip(rest, -700.0, 600.0), 0.0)), 0.0)


class HalfSpaceSampler(_Sampler):
    """Samples of the add direction in units of `bound`, drawn from Q in a half-space outside which the loss is small."""

    size = 1

    def __init__(self, patterns: Patterns, band: Band, epsilon: float):
        self.patterns, self.band, self.epsilon = patterns, band, epsilon
        self.threshold, rates = max((_half_space(patterns, band, epsilon, share) for share in _RATES), key=lambda found: found[0])
        self.pull = band.times(rates[None])[0]
        self.rates, self.length = rates, math.sqrt(float(rates @ self.pull)) or 1.0
        self.log_bound = float(special.log_ndtr(-self.threshold)) + 1e-12
        self.slack = _slack(patterns, band, 1)
        self.extra = (patterns.rounds + 8) * 16 * _UNIT

    def rounded(self, drawn):
        log_w, valid = drawn
        return np.where(valid, -np.expm1(np.minimum(self.epsilon + log_w - self.slack, 0.0)), 1.0)

    def draw(self, rng):
        """(log w, whether all normals are resolved), shape (BLOCK,) each."""
        normals, valid = tuple_sampler._normals(rng, (tuple_sampler.BLOCK, self.patterns.rounds))
        depth = np.log(rng.random(len(normals)) + 2.0**-54)
        along = special.ndtri_exp(np.minimum(float(special.log_ndtr(-self.threshold)) + depth, -1e-300))
        log_w = np.empty(len(normals))
        for start in range(0, len(normals), _ROWS):
            part = slice(start, start + _ROWS)
            noise = self.band.noise(normals[part])
            change = along[part] - noise @ self.rates / self.length
            noise += change[:, None] * (self.pull / self.length)
            log_w[part] = self.patterns.log_ratio(noise - self.band.squares / 2)
        return log_w, valid


def draw_counts(rng, patterns: Patterns, band: Band, law: Values, draws: int):
    """Multiplicities n, shape (draws, T), and log of tau(n) / (their probability V_0), at most 0, shape (draws,)."""
    size, b, width, rounds = law.size, patterns.b, len(band.gram), patterns.rounds
    logs = _log_binomials(size, patterns.p)
    numbers = np.arange(size + 1)
    pairs = numbers * (numbers - 1) / 2
    pad = b if patterns.warm else max(b, width)  # rounds before the first: of those who wait
    counts = np.zeros((rounds + pad, draws), np.int64)
    if patterns.warm and b > 1:
        waiting = rng.multinomial(size, _shares(law.first), size=draws)
        counts[pad - b + 1 : pad] = waiting[:, 1:].T  # eligible first in round j: round j - b
    paused = counts[pad - b + 1 : pad].sum(axis=0)
    log_rho = np.zeros(draws)
    for i in range(rounds):
        place = i + pad
        reach = min(width - 1, i)
        near = counts[place - reach : place][::-1]  # row l - 1: lag l
        key = size - paused
        for row in near:
            key = key * (size + 1) + row
        if (size + 1) ** (reach + 1) < _LARGEST_KEY:
            _, chosen, kind = np.unique(key, return_index=True, return_inverse=True)
        else:
            chosen = kind = np.arange(draws)
        eligible, past = size - paused[chosen], near[:, chosen]
        push = band.gram[1 : reach + 1, i] @ past + law.gains[i] if reach else np.full(len(chosen), law.gains[i])
        table = logs[eligible] + pairs * band.gram[0, i] + numbers * push[:, None]
        total = _log_sums(table)
        allowed = law.steps[i] + law.slopes[i, 0] * paused[chosen]
        if reach:
            allowed = allowed + (law.slopes[i, 1 : reach + 1] - law.slopes[i, 0]) @ past
        log_rho += np.minimum(total - allowed, 0.0)[kind]
        edges = np.cumsum(np.exp(table - total[:, None]), axis=1)
        edges[:, -1] = 1.0
        uniforms = rng.random(draws)
        if size == 1:
            counts[place] = uniforms >= edges[kind, 0]
        else:
            counts[place] = np.minimum((edges[kind] <= uniforms[:, None]).sum(axis=1), eligible[kind])
        if b > 1:
            paused += counts[place] - counts[place - b + 1]
    return counts[pad:].T, log_rho


# --- helpers -----------------------------------------------------------------------------------------------


def _log_binomials(size, p):
    """log Pr[Binomial(e, p) = n] for e, n = 0 .. size: shape (size + 1, size + 1)."""
    e, n = np.arange(size + 1.0)[:, None], np.arange(size + 1.0)
    missed = np.maximum(e - n, 0.0)
    factor = special.gammaln(e + 1) - special.gammaln(n + 1) - special.gammaln(missed + 1)
    return np.where(n <= e, factor + special.xlogy(n, p) + special.xlog1py(missed, -p), -np.inf)


def _log_sums(table):
    """log sum exp over the last axis, at least one term of which is finite."""
    top = table.max(axis=-1)
    return top + np.log(np.exp(table - top[..., None]).sum(axis=-1))


def _shares(logs):
    shares = np.exp(logs)
    return shares / shares.sum()


def _slack(patterns, band, size):
    """By how much rounding may change log w or log rho."""
    sums = band.gram.sum(axis=0).max() * 2
    normals = np.abs(band.factor).sum(axis=0).max() * 6.5
    exponent = (len(band.gram) + 8) * (size * sums + normals) * 8
    turns = patterns.rounds / patterns.b + 1
    return _UNIT * (turns * exponent * (1 + size) + 16 * patterns.rounds * (4 + abs(math.log(max(patterns.p, 1e-300))) + exponent))


def _half_space(patterns, band, epsilon, share):
    """(threshold r, rates): w < e^-epsilon only where <sum_i rates_i a_i, u> < -r times the length of that vector."""
    other = Patterns(patterns.rounds, patterns.p * share, patterns.b, patterns.warm)
    rates = other.rates()
    length = math.sqrt(float(rates @ band.times(rates[None])[0]))
    if not length > 0:
        return -math.inf, rates
    threshold = (epsilon - rates @ band.squares / 2 - other.divergence(patterns)) / length
    doubt = 1 + (epsilon + rates @ band.squares + 1) / length
    return threshold - (1e-12 + 1e-15 * patterns.rounds) * doubt, rates
