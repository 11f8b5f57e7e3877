"""What counting the participations alone proves about a matrix mechanism: no tail bound, closed forms.

A record takes part in a set S of the rounds, and the pair is dominated by sum_S P[S] N(C 1_S, sigma^2) against
N(0, sigma^2) [M-B.4]. Two bounds on it, of which the smaller counts:

    counted   [M-few] The modes may be replaced by numbers at least as large as their norms: r_k for k
              participations. One scalar mixture, in closed form, both directions.
    once      [M-once] Sets of one round are kept as they are: moments of their likelihood ratio are sums
              over pairs, triples and quadruples of rounds. The rest is counted as above. Remove, and so add [C-9m].

Both cost milliseconds, at any noise and any sampling probability, and find their way into `best` by a minimum.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from .. import accounting
from ..matrices import Toeplitz, Tree
from ..mixtures import Mixture, binomial
from ..results import NoBracketError
from . import compose
from .row_sums import least

_LARGEST_COUNT = 64  # participations up to which norms are bounded one by one
_UP = 1 + 1e-11  # covers the rounding of inner products
_MOST_PAIRS, _MOST_TRIPLES, _MOST_QUADRUPLES = 512, 512, 96  # rounds up to which the moments are summed
_GROUPS = 64  # of cyclic Poisson sampling, for which that is done one by one
_LARGEST_EXPONENT = 600.0
_SHARES = (0.0, 0.1, 0.3, 0.6)  # of the threshold, for sets of several rounds
_CLOSE, _ROOM = 1e-7, 1e-9  # of an epsilon that is sharp enough; left in a delta, so that its epsilon is found again
_LARGEST_EPSILON = 500.0  # up to which the moments are asked: the norms alone are as good beyond


class Few:
    """The two bounds for one mechanism.

    encoder : C >= 0. noise : sigma > 0. p : in [0, 1]. b : number of groups that take turns.
    """

    def __init__(self, encoder, noise, p, b):
        self.counts = Counts(encoder, noise, p, b)
        self.once = Once(self.counts)

    def delta(self, epsilon, direction):
        """(upper bound on delta, which one it is)."""
        counted = min(self._counted("delta", epsilon, direction) * (1 + _ROOM), 1.0)
        return min((counted, "participations counted"), (self.once.delta(epsilon), "one participation by moments"))

    def epsilon(self, delta, direction):
        """(upper bound on epsilon, which one it is)."""
        counted = self._smallest(delta, direction), "participations counted"
        high = min(counted[0], _LARGEST_EPSILON)
        if high == 0 or not self.once.delta(high) < delta:
            return counted
        return least(self.once.delta, delta, 0.0, high), "one participation by moments"

    def _smallest(self, delta, direction):
        """The epsilon of the mixture; by its delta where the curve is so flat that rounding hides where it meets `delta`."""
        at = lambda epsilon: self._counted("delta", epsilon, direction)
        high = self._counted("epsilon", delta, direction)
        return high if high == 0 or at(high * (1 - _CLOSE)) > delta else least(at, delta, 0.0, high)

    def _counted(self, question, target, direction):
        """The closed form of the mixture; where a number in it leaves the floats, its largest norm alone."""
        mixture = self.counts.mixture
        largest = compose.Accounted([(mixture, 1)], direction, asked=False)
        for ask in (
            lambda: getattr(accounting, question)(mixture, target, direction, "contour").upper,  # of one round: its closed form
            lambda: getattr(largest, question)(target),
        ):
            try:
                if math.isfinite(upper := ask()):
                    return upper
            except (NoBracketError, ValueError):  # a bracket with an infinite end is refused by its type
                pass
        raise NoBracketError("so little noise, or so rare sampling, that a number left the range of floats")


class Counts:
    """How often a record takes part, and the norms and inner products of the columns that it may meet [M-few]."""

    def __init__(self, encoder, noise, p, b):
        self.columns = -(-encoder.columns // b)
        self.p, self.noise, self.encoder, self.b = b * p, noise, encoder, b

    @cached_property
    def number(self):
        """The number of participations N."""
        return binomial(self.columns, self.p, self.noise)

    @cached_property
    def mixture(self):
        """The scalar mixture of r_N [M-few]."""
        counts = self.number
        return Mixture._from_logs(
            self.noise, self.norms(counts.sensitivities), counts.log_probabilities, counts.log_probability_error
        )

    def norms(self, counts):
        """r_k for whole numbers k: at least the norm of the sum of any k columns."""
        most, k = len(self.first_norms) - 1, counts.astype(int)
        # The norm of a sum is at most the sum of the norms of its parts.
        return np.where(k <= most, self.first_norms[np.minimum(k, most)], np.ceil(k / most) * self.first_norms[most])

    @cached_property
    def first_norms(self):
        """r_0 .. r_K."""
        most = min(self.columns, _LARGEST_COUNT)
        if self._by_lags:
            gains = self._lags(most)
            k = np.arange(most + 1.0)
            squares = k * gains[0]
            for lag in range(1, most):
                squares[lag + 1 :] += 2 * (k[lag + 1 :] - lag) * gains[lag]
        else:
            squares = np.max([_largest_sums(gram, most) for gram in self.grams], axis=0)
        return np.sqrt(np.maximum.accumulate(squares)) * _UP

    @property
    def _by_lags(self):
        """Whether the distance of two columns bounds their inner product, and the first group of records is the worst."""
        return isinstance(self.encoder, Toeplitz) or (isinstance(self.encoder, Tree) and self.b & (self.b - 1) == 0)

    def _lags(self, most):
        """The largest inner product of two kept columns that are so far apart or farther, for 0 .. most - 1.

        k different columns, in their order, are at least as far apart as k neighbours.
        """
        if isinstance(self.encoder, Tree):
            lags = self.b * np.arange(most)
            heights = np.frexp(lags.astype(float))[1]  # bit length: the least common height
            return np.maximum(self.encoder.height + 1.0 - heights, 0.0)
        column = np.maximum.accumulate(self.encoder.coefficients[::-1])[::-1]  # dominates [M-B]
        n = len(column)
        return np.array([float(column[: n - lag] @ column[lag:]) for lag in range(0, self.b * most, self.b) if lag < n])

    @cached_property
    def grams(self):
        """Inner products of the kept columns, for each group of records that may be the worst."""
        gram = self.encoder.gram() * _UP
        grams = [gram[group :: self.b, group :: self.b] for group in range(1 if self._by_lags else self.b)]
        return [np.pad(kept, (0, self.columns - len(kept))) for kept in grams]  # a column of zeros changes nothing


class Once:
    """One participation by its moments [M-once]: the upper bound on delta, remove direction."""

    def __init__(self, counts):
        self.counts = counts

    def delta(self, epsilon):
        """Upper bound on delta, remove direction [M-once]; at most 1."""
        if epsilon > _LARGEST_EPSILON or not 0 < self.counts.p < 1 or not self._moments:
            return 1.0
        rounds, miss = self.counts.columns, math.log1p(-self.counts.p)
        # delta = E(R_1 + R_2 - t)_+ under Q, R_1 from single rounds and R_2 from larger sets.
        threshold = math.expm1(epsilon) - math.expm1(rounds * miss)
        log_weight = math.log(self.counts.p) + (rounds - 1) * miss
        best = 1.0
        for share in _SHARES if self._log_several > -math.inf else (0.0,):
            several, left = self._several(share * threshold), threshold * (1 - share) * (1 - 1e-12)
            if not several < best or left <= 0:
                continue
            for order, log_sum in self._moments:
                # (x - t)_+ <= x^k (k - 1)^(k - 1) / k^k / t^(k - 1)
                log_single = order * log_weight + log_sum - (order - 1) * math.log(left * order / (order - 1)) - math.log(order)
                if log_single < 0:
                    best = min(best, (several + math.exp(log_single)) * (1 + 1e-10))
        return best

    @cached_property
    def _rest(self):
        """The mixture given that there are at least two participations."""
        known = self.counts.number
        logs = np.where(known.sensitivities >= 2, known.log_probabilities, -np.inf)
        return Mixture._from_logs(self.counts.noise, self.counts.norms(known.sensitivities), logs, 2 * known.log_probability_error)

    @cached_property
    def _log_several(self):
        """log P[N >= 2]."""
        known = self.counts.number
        logs = known.log_probabilities[known.sensitivities >= 2]
        return float(np.logaddexp.reduce(logs)) + known.log_probability_error + 1e-12 if len(logs) else -math.inf

    def _several(self, threshold):
        """Upper bound on E(R_2 - threshold)_+ under Q."""
        chance = math.exp(self._log_several)
        level = math.log(threshold) - self._log_several if threshold > 0 < chance else -1.0
        if level < 0:
            return chance
        try:
            return chance * accounting.delta(self._rest, level, "remove", "contour").upper * (1 + 1e-10)
        except NoBracketError:
            return chance

    @cached_property
    def _moments(self):
        """List of (order k, log sum of e^{inner products} over k-tuples of rounds); empty for many rounds."""
        counts = self.counts
        if counts.columns > _MOST_PAIRS or counts.encoder.columns > 8 * _MOST_PAIRS or len(counts.grams) > _GROUPS:
            return []
        found = {}
        for gram in self.counts.grams:
            for order, log_sum in _tuple_sums(gram / self.counts.noise**2):
                found.setdefault(order, []).append(log_sum)
        return [(order, max(sums)) for order, sums in found.items() if len(sums) == len(self.counts.grams)]


def _largest_sums(gram, most):
    """For k = 0 .. most at least the largest sum of inner products over k columns."""
    diagonal = np.diag(gram).copy()
    others = gram.copy()
    np.fill_diagonal(others, 0.0)
    if len(gram) > most:
        others = -np.partition(-others, most, axis=1)[:, :most]
    others = -np.sort(-others, axis=1)
    # Row j of k columns holds its own and at most the k - 1 largest others.
    sums = diagonal[:, None] + np.cumsum(np.pad(others, ((0, 0), (1, 0)))[:, :most], axis=1)
    rows = -np.sort(-sums, axis=0)
    return np.append(0.0, [float(rows[:k, k - 1].sum()) for k in range(1, most + 1)])


def _tuple_sums(gram):
    """Yield (k, log of the sum over all k-tuples of e^{sum of inner products of pairs}), k = 2, 3, 4.

    The k-th moment of the sum of likelihood ratios under Q is that sum.
    """
    n, largest = len(gram), float(gram.max(initial=0.0))
    if largest > _LARGEST_EXPONENT:
        return
    table = np.exp(gram)
    yield 2, math.log(float(table.sum())) + 1e-10
    if n <= _MOST_TRIPLES and 3 * largest < _LARGEST_EXPONENT:
        yield 3, math.log(float((table * (table @ table)).sum())) + 1e-10
    if n <= _MOST_QUADRUPLES and 6 * largest < _LARGEST_EXPONENT:
        total = 0.0
        for row in table:
            pairs = row * table  # those of the second round with all others, times those of the first
            total += float(row @ ((pairs @ table) * pairs).sum(axis=1))
        yield 4, math.log(total) + 1e-10
