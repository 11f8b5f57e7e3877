"""delta and epsilon of b-min-sep sampling: bounds without sampling, and the samplers of `pattern_sampler` for all else.

The number of patterns in a tuple plays the part of a Rényi order: the sampler's bound is the upper bound on delta of that order.
A plan starts from the order of the least bound and goes downhill in what a pilot says of the excess of a certified bound: the
variance alone would lead astray, since the pilot of a bad order hardly ever shows how large its samples may be.
"""

from __future__ import annotations

import math
from functools import cache

from .. import gaussian
from .._base.lazy_scipy import optimize
from ..results import NoBracketError, UpperBound
from . import CONFIDENCE, FLOOR, bounded_draws, certificate
from .lognormal_sum import log_ceiling
from .pattern_law import Patterns, band
from .pattern_pair import Pair
from .pattern_sampler import HalfSpaceSampler, TupleSampler
from .pattern_values import values

_SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)
_WORST = 30.0  # a sampler whose bound has a larger logarithm is not tried
_NEAR = 0.98  # of the guess, for the half-space: draws in it serve what is a little smaller
# The most that a record may move in all rounds that it can take part in, in units of the noise: for draws, and for bounds without them.
MOST_SAMPLED, MOST_BOUNDED = 100.0, 1e6


def dominating_pair(columns, noise_multiplier, sampling_probability, separation=1, warm=True, most=MOST_BOUNDED):
    """The `Pair` of an encoder with these `pattern_law.columns_of`. Raises NoBracketError where a record can move more than `most`."""
    patterns = Patterns(columns.shape[1], float(sampling_probability), int(separation), bool(warm))
    pair = Pair(patterns, band(columns, noise_multiplier))
    if not math.sqrt(pair.longest) <= most:
        raise NoBracketError(
            f"noise_multiplier = {noise_multiplier!r} is too small for this account: what a record can move has "
            f"the norm {math.sqrt(pair.longest):.3g} in units of the noise"
        )
    return pair


class Account(bounded_draws.Account):
    """A `pattern_pair.Pair` in one direction: "remove" or "add"."""

    method, stream = "tuples of patterns", 18

    def __init__(self, pair, side):
        super().__init__(side)
        self.pair, self.rounds = pair, pair.patterns.rounds
        self.tuples = cache(lambda size: TupleSampler(pair, values(pair, size)))

    # --- bounds without sampling -------------------------------------------------------------------------------

    def _least(self, cost):
        """Place in `_SIZES` of the least cost(sampler): sizes are tried from below until it rises twice."""
        best, found, risen = 0, math.inf, 0
        for place, size in enumerate(_SIZES):
            value = cost(self.tuples(size))
            if value < found:
                best, found, risen = place, value, 0
            else:
                risen += 1
            if risen == 2:
                break
        return best

    def bound(self, epsilon):
        """(log of the least upper bound on delta without sampling, its order or None)."""
        if self.pair.longest == 0:
            return -math.inf, None
        best = _SIZES[self._least(lambda draws: draws.log_bound(epsilon))]
        plain = min(0.0, self._log_taking_part(), log_ceiling(self.pair.longest, epsilon))
        return min((self.tuples(best).log_bound(epsilon), best), (plain, None), key=lambda found: found[0])

    def log_ceiling(self, epsilon):
        """log of an upper bound on delta: of the longest pattern alone, of the best order, or of taking part at all."""
        return self.bound(epsilon)[0]

    def highest_epsilon(self, delta):
        return self.upper_epsilon(delta).upper

    def upper_delta(self, epsilon):
        """delta at `epsilon`, an UpperBound without sampling."""
        log_value, order = self.bound(epsilon)
        value = math.exp(min(0.0, max(log_value, math.log(FLOOR)) + 1e-12))
        return UpperBound(value, "Renyi" if order and order > 1 else "one pattern alone", order if order and order > 1 else None)

    def upper_epsilon(self, delta):
        """epsilon at which delta is at most `delta`, an UpperBound without sampling."""
        if self.pair.longest == 0 or self._log_taking_part() <= math.log(delta):
            return UpperBound(0.0, "one pattern alone", None)
        best = self.tuples(_SIZES[self._least(lambda draws: draws.epsilon_bound(delta))])
        found = max(0.0, best.epsilon_bound(delta)) * (1 + 1e-12)
        plain = gaussian.epsilon(math.sqrt(self.pair.longest), delta) * (1 + 1e-9)
        return UpperBound(found, "Renyi", best.order) if found <= plain else UpperBound(plain, "one pattern alone", None)

    def _log_taking_part(self):
        """log of an upper bound on the probability of taking part, which is one on delta."""
        return math.log(self.pair.patterns.rates().sum()) + 1e-9

    # --- samplers ---------------------------------------------------------------------------------------------

    def plan(self, epsilon, seed, samples=bounded_draws.SAMPLES, failure_probability=1 - CONFIDENCE):
        """The `pilot` with the least excess of a certified bound, near the order of the least bound; for "add" the only one."""
        if self.side == "add":
            return self.pilot(HalfSpaceSampler(self.pair, epsilon), epsilon, seed)

        @cache
        def attempt(place):
            draws = self.tuples(_SIZES[place])
            if draws.log_bound(epsilon) > _WORST:
                return math.inf, None
            plan = self.pilot(draws, epsilon, seed)
            return plan.excess(samples, failure_probability), plan

        start = self._least(lambda draws: draws.log_bound(epsilon))
        return attempt(certificate.downhill(lambda place: attempt(place)[0], start, len(_SIZES)))[1]

    def at(self, draws, epsilon):
        return HalfSpaceSampler(self.pair, epsilon) if self.side == "add" else draws

    def refined(self, delta, place, seed):
        if self.side == "remove":
            return super().refined(delta, place, seed)

        def excess(epsilon):
            plan = self.pilot(HalfSpaceSampler(self.pair, epsilon), epsilon, seed)
            return math.log(max(plan.estimate, FLOOR)) - math.log(delta)

        if place == 0 or excess(0.0) <= 0:
            place = 0.0
        elif excess(place) < 0:
            place = optimize.brentq(excess, 0.0, place, xtol=1e-4 * place)
        return HalfSpaceSampler(self.pair, _NEAR * place), place
