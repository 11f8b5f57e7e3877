"""Random allocation by sampling: estimates of delta and epsilon, and certified upper bounds, from the draws of `allocation_tuples`.

Draws count between 0 and a bound that is known beforehand, near delta itself: their mean is unbiased, and `confidence_bounds.betting`
makes an upper bound of it that holds with a stated probability, without any normal approximation.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from .. import gaussian
from .._base import random_blocks
from .._base.lazy_scipy import optimize
from .._base.log_space import log_sum_exp
from ..balls_in_bins import CONFIDENCE, FLOOR, NORMAL, QUANTILE, TUPLES, confidence_bounds
from ..balls_in_bins.certified import MARGINS, certified_level, first_certified
from ..balls_in_bins.lognormal_sum import log_ceiling
from ..results import Certificate, Estimate, NoBracketError
from .allocation_tuples import AddSampler, RemoveSampler
from .sampling_request import FAILURE

_PILOT, _RUN, _FINAL = 1, 2, 3  # streams of one seed
_BLOCK = 2**12  # draws, or fewer where rounds are many
_BLOCK_ENTRIES = 2**22
_MOST = 2**17  # draws of an estimate, unless a number of them is asked for
_ERROR = 0.01  # relative standard error of an estimate
_STEPS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # of the proposal in direction add
_LARGEST_TUPLE = 100
_FEWEST_HITS = 20
_LEAST_DOUBT = 1e-4
_NOTHING = -1e5  # log of a mean without any draw that counts
_LOOSEST = 2.0  # a certificate more than this times the estimate is refused


class Problem:
    """One allocation and one direction: k of t rounds, `epochs` times, at this noise multiplier."""

    def __init__(self, rounds, participations, epochs, noise, side, seed):
        self.scheme = rounds, participations, epochs, noise
        self.side, self.seed = side, seed
        self.block = max(1, min(_BLOCK, _BLOCK_ENTRIES // rounds))
        self.norm = math.sqrt(participations * epochs) / noise

    def ceiling(self, epsilon):
        """delta where everybody's rounds are known: never less, by joint convexity."""
        return math.exp(log_ceiling(self.norm**2, epsilon))

    def draws(self, sampler, count, key):
        """Draws of a sampler, the same for the same key."""
        blocks = random_blocks.run(partial(_draw, sampler, self.block), -(-count // self.block), seed=self.seed, key=key)
        return np.concatenate(blocks, axis=1)[:, :count]

    def sampler(self, epsilon=None, delta=None):
        """The sampler for one epsilon, or for where delta meets `delta`."""
        if self.side == "add":
            return self._add_sampler(epsilon, delta)
        cost = (lambda s: s.log_bound(epsilon)) if delta is None else (lambda s: s.epsilon_bound(delta))
        k = self.scheme[1]
        whole = _best(lambda size: RemoveSampler(*self.scheme, size), range(1, _LARGEST_TUPLE), cost)
        # Tuples of single rounds, where k makes the others too large a table.
        sizes = [size for size in range(k + 1, _LARGEST_TUPLE) if size % max(1, k // 2) == 0]
        single = _best(lambda size: RemoveSampler(*self.scheme, size, True), sizes, cost) if k > 2 and sizes else None
        possible = [sampler for sampler in (whole, single) if sampler is not None]
        if not possible:
            raise NoBracketError(f"participations = {k} are too many to sample; method='bound' needs no draws")
        return min(possible, key=cost)

    def _add_sampler(self, epsilon, delta):
        if self.scheme[0] == self.scheme[1]:
            return AddSampler(*self.scheme, 0.0)
        samplers = [AddSampler(*self.scheme, step) for step in _STEPS]
        pilots = [self.draws(sampler, self.block, (_PILOT, i)) for i, sampler in enumerate(samplers)]
        if epsilon is None:
            epsilon = self.root(samplers[2], pilots[2], delta)
        errors = [_spread(sampler.counts(found, epsilon)) for sampler, found in zip(samplers, pilots)]
        return samplers[int(np.argmin(errors))]

    # ------------------------------------------------------------------ estimates

    def mean(self, sampler, found, epsilon):
        """(mean of what the draws count, its standard error, how many count at all)."""
        counts = sampler.counts(found, epsilon)
        scale = math.exp(min(sampler.log_bound(epsilon), 700.0))
        return scale * float(counts.mean()), scale * float(counts.std()) / math.sqrt(len(counts)), int(np.count_nonzero(counts))

    def highest(self, sampler, found, epsilon):
        """Upper end with CONFIDENCE of that mean, however few draws decide: of draws that are bounded."""
        share = confidence_bounds.highest_mean(sampler.counts(found, epsilon), 1 - CONFIDENCE)
        return math.exp(min(sampler.log_bound(epsilon), 700.0)) * share

    def log_mean(self, sampler, found, epsilon):
        """log of that mean, wherever it lies."""
        return float(log_sum_exp(sampler.log_counts(found, epsilon)[None])[0]) - math.log(found.shape[1]) + sampler.log_bound(epsilon)

    def enough(self, sampler, epsilon, samples, delta=None):
        """Draws until the mean is good to 1%, or so many as asked for; the epsilon goes along with `delta`."""
        if samples is not None:
            return self.draws(sampler, samples, (_RUN, 0))
        found, count = [], 0
        while count < _MOST:
            more = max(self.block, count)
            found.append(self.draws(sampler, more, (_RUN, len(found))))
            count += more
            at = epsilon if delta is None else self.root(sampler, np.concatenate(found, axis=1), delta)
            value, error, hits = self.mean(sampler, np.concatenate(found, axis=1), at)
            if hits > 100 and error <= _ERROR * value:
                break
        return np.concatenate(found, axis=1)

    def root(self, sampler, found, delta):
        """The epsilon at which the mean of these draws is `delta`; 0 where it is below delta there."""
        gap = lambda epsilon: max(self.log_mean(sampler, found, epsilon), _NOTHING) - math.log(delta)
        if gap(0.0) <= 0:
            return 0.0
        high = gaussian.epsilon(self.norm, delta) + 1e-9
        while gap(high) > 0:
            high *= 1.5
        return float(optimize.brentq(gap, 0.0, high, xtol=1e-12, rtol=1e-9))

    def delta(self, epsilon, samples) -> Estimate:
        """Estimate of delta."""
        ceiling = self.ceiling(epsilon)
        sampler = self.sampler(epsilon) if ceiling >= FLOOR else None
        if sampler is None or sampler.log_bound(epsilon) < math.log(FLOOR):
            return Estimate(FLOOR, 0.0, FLOOR, CONFIDENCE, f"tuples; below {FLOOR:g}")
        found = self.enough(sampler, epsilon, samples)
        value, error, hits = self.mean(sampler, found, epsilon)
        self._seen(hits, f"epsilon = {epsilon:g}")
        upper = value + QUANTILE * error if error <= NORMAL * value else self.highest(sampler, found, epsilon)
        method = confidence_bounds.named("tuples", samples, error / max(value, FLOOR), _ERROR)
        value = min(value, ceiling)
        return Estimate(value, error, max(value, min(upper, ceiling)), CONFIDENCE, method)

    def epsilon(self, delta, samples) -> Estimate:
        """Estimate of epsilon at `delta`, with the same draws for every epsilon."""
        sampler = self.sampler(delta=delta)
        found = self.enough(sampler, None, samples, delta)
        epsilon = self.root(sampler, found, delta)
        value, error, hits = self.mean(sampler, found, epsilon)
        self._seen(hits, f"delta = {delta:g}")
        slope = self.slope(sampler, found, epsilon)
        moved = error / value / slope
        upper = epsilon + QUANTILE * moved
        if error > NORMAL * value:
            upper = max(epsilon, gaussian.epsilon(self.norm, delta) * (1 + 1e-9))  # of everybody's rounds known
            excess = lambda place: self.highest(sampler, found, place) - delta
            if excess(upper) < 0 < excess(epsilon):
                upper = float(optimize.brentq(excess, epsilon, upper, rtol=1e-9))
        return Estimate(epsilon, moved, upper, CONFIDENCE, confidence_bounds.named("tuples", samples, error / value, _ERROR))

    def slope(self, sampler, found, epsilon):
        """By how much log delta falls for a little epsilon, about."""
        step = 1e-4 * (1 + epsilon)
        ends = [max(self.log_mean(sampler, found, x), _NOTHING) for x in (epsilon, epsilon + step)]
        return max((ends[0] - ends[1]) / step, 1e-6)

    def _seen(self, hits, where):
        if hits < _FEWEST_HITS:
            raise NoBracketError(
                f"too few draws reach the losses that matter at {where}: {hits} do, and no estimate can be made of them; "
                "method='bound' needs none"
            )

    # ------------------------------------------------------------------ certificates

    def certified_delta(self, epsilon, samples, failure_probability) -> Certificate:
        """Certificate of delta at one epsilon."""
        samples, ceiling = samples or TUPLES, self.ceiling(epsilon)
        if ceiling < FLOOR:
            return Certificate(FLOOR, failure_probability or FAILURE, samples, "tuples")
        sampler = self.sampler(epsilon)
        bet, factor = self._plan(sampler, epsilon, samples, failure_probability or FAILURE)
        if failure_probability is None:
            rough = self.mean(sampler, self.draws(sampler, 4 * self.block, (_PILOT, 90)), epsilon)[0]
            failure_probability = min(FAILURE, max(rough, FLOOR) / 10)
            bet, factor = self._plan(sampler, epsilon, samples, failure_probability)
        if factor > _LOOSEST:
            raise ValueError(
                f"samples must be more for an upper bound within {_LOOSEST:g} times delta (with these the factor is about {factor:.3g}); "
                f"got {samples}"
            )
        upper = self._certify(sampler, epsilon, samples, failure_probability, bet, 0)
        return Certificate(max(min(upper, ceiling), FLOOR), failure_probability, samples, "tuples")

    def certified_epsilon(self, delta, samples, failure_probability) -> Certificate:
        """Certificate of an epsilon: the first of three candidates, fixed beforehand, that passes at delta less the failures [N-2.1s]."""
        samples, level = samples or TUPLES, certified_level(delta, failure_probability)
        share = failure_probability / len(MARGINS)
        sampler = self.sampler(delta=level)
        found = self.draws(sampler, 4 * self.block, (_PILOT, 91))
        start = self.root(sampler, found, level)
        value, error, hits = self.mean(sampler, found, start)
        self._seen(hits, f"delta = {delta:g}")
        bet, factor = self._plan(sampler, start, samples, share)
        if factor > _LOOSEST:
            raise ValueError(
                f"samples must be more to certify epsilon at delta = {delta:g} (with these delta is overstated by a factor {factor:.3g}); got {samples}"
            )
        slope = self.slope(sampler, found, start)
        doubt = max(math.hypot(error / value, _spread(sampler.counts(found, start)) / math.sqrt(samples)), _LEAST_DOUBT)
        places = [start + math.log(factor * (1 + margin * doubt) * max(value / level, 1e-300)) / slope for margin in MARGINS]
        certify = lambda place, number: self._certify(sampler, place, samples, share, bet, number)
        place, _ = first_certified([max(place, 0.0) for place in places], certify, level, samples)
        return Certificate(place, failure_probability, samples, "tuples")

    def _plan(self, sampler, epsilon, samples, failure_probability):
        """(the bet, by which factor the bound will exceed delta, about), from draws that are not used again."""
        pilot = sampler.counts(self.draws(sampler, 4 * self.block, (_PILOT, 92)), epsilon)
        bet, value = confidence_bounds.choose_bet(pilot, samples, failure_probability)
        return bet, (value + sampler.extra) / max(float(pilot.mean()), 1e-300)

    def _certify(self, sampler, epsilon, samples, failure_probability, bet, attempt):
        found = self.draws(sampler, samples, (_FINAL, attempt, int(self.side == "add")))
        upper = confidence_bounds.betting(sampler.counts(found, epsilon), 1.0, failure_probability, bet)
        return min(1.0, math.exp(sampler.log_bound(epsilon)) * (upper + sampler.extra) * (1 + 1e-9))


def _draw(sampler, count, rng, index):
    return sampler.draw(rng, count)


def _best(make, sizes, cost):
    """The sampler of the least cost, sizes tried upwards until it rises or one is refused; None where none is possible."""
    best = None
    for size in sizes:
        try:
            found = make(size)
        except NoBracketError:
            break
        if best is not None and cost(found) > cost(best):
            break
        best = found
    return best


def _spread(counts):
    """Standard deviation over mean."""
    return float(counts.std()) / max(float(counts.mean()), 1e-300)
