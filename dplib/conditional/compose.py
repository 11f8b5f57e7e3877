"""Upper bounds on the composed rows of a matrix mechanism.

Different rows that are not too many, or hardly ever hold a participation, are summed on one lattice, in a fixed
amount of work (`row_sums`). Others, and those that are all alike and hold some, go to the accountants. Where the noise is
too small for the one, or the others refuse, convexity is enough: the rows are a mixture over who takes part
where. Without any participation both laws agree; with some, the Gaussian pair of the largest sensitivities
dominates [M-B]; and the hockey-stick divergence is convex in the pair. So

    delta(epsilon) <= P(any participation) * delta of that Gaussian pair.
"""

from __future__ import annotations

import math
from functools import cached_property

from .. import accounting, mixtures
from .._base import validate as check
from ..results import NoBracketError
from .row_sums import RowSum

_TOLERANCE = 1e-4  # width of the accountants' brackets that is good enough next to the tail bounds
_NO_TAIL = 1e-7  # and of rows that are all alike, which need none
# Up to so many different rows, and rows, or expected participations, one lattice is quick, and close enough.
_DIFFERENT, _ROUNDS, _RARE = 160, 1000, 8.0
_HARDLY_ANY = 0.1  # expected participations below which rows that are all alike go there, too


def composed(pairs, direction, least, among=1):
    """An object with the methods delta(epsilon) and epsilon(delta), both upper bounds, guess(epsilon) of log delta,
    and is_hopeless(epsilon, delta).

    pairs : list of (Mixture, count). least : the delta beside which others are nothing. among : how many such
    compositions share one budget.
    """
    different, rounds = len(accounting.merged(pairs)), sum(count for _, count in pairs)
    few = different <= _DIFFERENT and rounds <= _ROUNDS
    taken = _participations(pairs)
    if (different <= 1 and taken > _HARDLY_ANY) or not (few or taken <= _RARE):
        return Accounted(pairs, direction)
    try:
        return RowSum(pairs, direction, least, among)
    except NoBracketError:
        return Accounted(pairs, direction, asked=False)


class Accounted:
    """Rows by convexity, and by the accountants where they are `asked` and do not refuse."""

    def __init__(self, pairs, direction, asked=True):
        self.pairs, self.side, self.asked = pairs, check.side(direction), asked
        self.tolerance = _NO_TAIL if len(accounting.merged(pairs)) == 1 else _TOLERANCE

    def guess(self, epsilon):
        """About the log of delta at `epsilon`."""
        return math.log(max(self.delta(epsilon), 1e-320))

    def is_hopeless(self, epsilon, delta):
        """Not known before the accountants are asked."""
        return False

    def delta(self, epsilon):
        """Upper bound of delta at `epsilon`."""
        return self._least(accounting.delta, epsilon, math.exp(self._log_delta(epsilon)))

    def epsilon(self, delta):
        """Upper bound of epsilon at `delta`."""
        return self._least(accounting.epsilon, delta, self._epsilon(delta))

    def _least(self, ask, target, by_convexity):
        if by_convexity == 0 or not self.asked:
            return by_convexity
        try:
            return min(ask(self.pairs, target, self.side, tolerance=self.tolerance).upper, by_convexity)
        except NoBracketError:
            return by_convexity

    @cached_property
    def _sure(self):
        """(log P(any participation), the Gaussian pair of the largest sensitivities)."""
        log_none = math.fsum(count * mixture.log_floor for mixture, count in self.pairs)
        log_taken = math.log(-math.expm1(log_none)) if log_none < 0 else -math.inf
        mu = math.sqrt(math.fsum(count * float(mixture.shifts[-1]) ** 2 for mixture, count in self.pairs))
        return log_taken + 1e-12, mixtures.Mixture([mu], [1.0], 1.0)

    def _log_delta(self, epsilon):
        log_taken, sure = self._sure
        if log_taken == -math.inf or sure.is_trivial:
            return -math.inf
        return min(log_taken + accounting.log_delta(sure, epsilon).upper, 0.0)

    def _epsilon(self, delta):
        log_taken, sure = self._sure
        log_delta = math.log(delta) - log_taken
        return accounting.epsilon(sure, math.exp(log_delta) * (1 - 1e-12), self.side).upper if log_delta < 0 else 0.0


def mean_loss(pairs):
    """Lower bound on the mean privacy loss of a composition, remove direction."""
    return sum(count * float(m.probabilities @ m.shifts) ** 2 / 2 for m, count in pairs)


def _participations(pairs):
    return sum(count * float(m.probabilities[m.shifts > 0].sum()) for m, count in pairs)
