"""Value functions of tuples of patterns: bounds on the moments E_Q w^k under b-min-sep sampling, round by round [A-28].

tau is drawn from round by round, with a value function V_i = exp(A_i + sum_l g_{i,l} n_{i-l}) for what is to come: n_i with
probability proportional to its factor times V_{i+1}. If V_i is at least the sum of these for *every* past, the importance ratio of
every tuple is at most V_0. Let F_i(e, h) = log sum_n Binom(n; e, p) exp(n (n - 1) G_ii / 2 + n (h + g_{i+1,1})). It suffices that

    F_i(k - M, G_{i,i-l} M) <= A_i - A_{i+1} + M (g_{i,l} - g_{i+1,l+1})    for all lags l and M = 0 .. k:

for a fixed sum M of the past F_i is convex in h, and h and the right side are linear in the past, so that the worst past has all M
at one lag. The least A and g that do, from the last round backwards, are taken.

More than b bands. A pattern's own rounds at lags l >= b add nothing for it: its push is h less their sum o, and which pattern
has which round matters (`pattern_tuples` draws them). By Maclaurin's inequality k patterns with pushes h - o count for no more
than k with the push h + log mean e^-o, and e^-o is below its chord: 1 - c o. So F_i stays, with far pushes (1 - c / k) G_il
that pause nobody and near ones that are raised by what is not taken off for those who pause (`_Pushes`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import log_sum_exp
from .pattern_pair import Pair

_MARGIN = 1e-12  # by which a value function is raised in every round
_STEPS = 40  # binary digits to which inner products and slopes are rounded up


@dataclass(frozen=True)
class Values:
    """The value functions of tuples of one size. It does not depend on epsilon.

    gains : shape (T,), g_{i+1,1}. steps : shape (T,), A_i - A_{i+1}. slopes : shape (T, w), g_{i,l} - g_{i+1,l+1} at lag l for
    l = 1 .. w - 1, and at index 0 for a lag below b without a push. first : log probabilities of the first eligible round.
    log_total : log V_0, at least log of E_Q w^k.
    """

    size: int
    gains: np.ndarray
    steps: np.ndarray
    slopes: np.ndarray
    first: np.ndarray
    log_total: float


def values(pair: Pair, size: int) -> Values:
    """The least value functions for tuples of `size` patterns.

    Time: O(T w size^2); where many rounds in turn have the same inner products, as with Toeplitz encoders, mostly a few w of them are worked on.
    """
    patterns = pair.patterns
    unit = 2.0 ** (math.frexp(float(pair.band.squares.max()))[1] - _STEPS)
    gram = _raised(pair.band.gram, unit)
    rounds, b, width = patterns.rounds, patterns.b, len(gram)
    near, reach = min(b, width), max(b, width)
    numbers = np.arange(size + 1)
    logs = log_binomials(size, patterns.p)
    pairs = numbers * (numbers - 1) / 2
    reversed_logs = logs[::-1]  # row M: k - M eligible
    pushes = _Pushes(gram, _raised(pair.own, unit), pair.overlap, b, size)
    gains, steps, slopes = np.empty(rounds), np.empty(rounds), np.zeros((rounds, width))
    ahead = np.zeros(reach + 1)  # g_{i+1,l} at l = 1 .. reach - 1; ahead[reach] = 0
    news = np.append(0, 1 + np.flatnonzero(np.any(gram[:, 1:] != gram[:, :-1], axis=0)))  # rounds unlike the one before
    known, i = {}, rounds - 1
    while i >= 0:
        gains[i] = ahead[1]
        key = gram[:, i].tobytes(), gains[i]
        if key not in known:
            base = reversed_logs + pairs * gram[0, i] + numbers * gains[i]
            towards = pushes.near[:, i, None] * numbers  # (near, k + 1): lag 0 stands for a round that pauses without a push
            step, slope, rise = _least(base, numbers, towards, size * pushes.most[i])
            known[key] = step, np.append(_raised(slope, unit), _raised(rise * pushes.far[:, i], unit))
        steps[i], slopes[i] = known[key]
        before = ahead.copy()
        ahead[1:reach] = ahead[2 : reach + 1]
        ahead[near:b] += slopes[i, 0]
        ahead[1:near] += slopes[i, 1:near]
        ahead[b:width] += slopes[i, near:]
        if np.array_equal(ahead, before):  # the rounds before this one that are like it have its values
            alike = slice(news[np.searchsorted(news, i, side="right") - 1], i)
            gains[alike], steps[alike], slopes[alike] = gains[i], steps[i], slopes[i]
            i = alike.start
        i -= 1
    with np.errstate(divide="ignore"):
        first = np.log(patterns.waits)
    if patterns.warm:
        # Eligible first in round j: as if it had taken part in round j - b.
        first[1:] += ahead[b - 1 : 0 : -1]
    start = float(log_sum_exp(first[None])[0])
    total = math.fsum(steps) + size * start + 1e-12 * (1 + size * abs(start))
    return Values(size, gains, steps, slopes, first - start, total)


class _Pushes:
    """What a round of the past adds to the push h of the eligible patterns, at most, for tuples of one size.

    near : shape (min(b, w), T), at lags below b (at 0: nothing). far : shape (w - b, T), at lags b .. w - 1. most : shape (T,), the sum
    over the far rounds of one pattern, at most.
    """

    def __init__(self, gram, own, overlap, b, size):
        self.near = gram[:b].copy()
        self.near[0] = 0.0
        largest = float(own.max())
        chord = -math.expm1(-largest) / largest if largest > 0 else 1.0
        kept = 1 - chord * (1 - 1e-12) / size if size > 1 else 0.0  # a single pattern does not push itself
        self.far, self.most = kept * gram[b:], kept * own[-1]
        if overlap:
            self.near[1:] += (1 - kept) * own[1:b]


def _least(base, numbers, near, far):
    """(step, slopes at the near lags, slope in the far push): the least that no past exceeds, corners of the past by corners.

    base : shape (M, n), log weights with M of the past paused and n joining. near : shape (lags, M), pushes. far : the largest far push.
    """
    table = log_sum_exp(base + near[:, :, None] * numbers)
    step = table[0, 0] + _MARGIN
    rise = 0.0
    if far > 0:
        above = log_sum_exp(base + (near + far)[:, :, None] * numbers)
        rise = max(above[0, 0] - step, 0.0) / far * (1 + _MARGIN)
        table = np.maximum(table, above - rise * far)
    return step, ((table[:, 1:] - step) / numbers[1:]).max(axis=1), rise


# --- helpers -----------------------------------------------------------------------------------------------


def _raised(x, unit):
    """x rounded up: with few digits the recurrence mostly comes to a stand, where rounding would let it tremble."""
    return np.ceil(x / unit) * unit


def log_coins(size, p):
    """log of p^n (1 - p)^(e - n) for e, n = 0 .. size, -inf for n > e: shape (size + 1, size + 1)."""
    e, n = np.arange(size + 1.0)[:, None], np.arange(size + 1.0)
    return np.where(n <= e, special.xlogy(n, p) + special.xlog1py(np.maximum(e - n, 0.0), -p), -np.inf)


def log_binomials(size, p):
    """log Pr[Binomial(e, p) = n] for e, n = 0 .. size: shape (size + 1, size + 1)."""
    e, n = np.arange(size + 1.0)[:, None], np.arange(size + 1.0)
    return log_coins(size, p) + special.gammaln(e + 1) - special.gammaln(n + 1) - special.gammaln(np.maximum(e - n, 0.0) + 1)
