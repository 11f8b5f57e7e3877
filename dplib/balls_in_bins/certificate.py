"""Certified upper bounds on delta by sampling, from the Gram matrix of the modes alone [A-15].

`certify` draws tuples (`tuple_sampler`) and bounds their mean (`confidence_bounds`): the result is at least delta
with probability at least 1 - failure_probability over the draws, rounding included, and
the number of draws that it takes does not grow as delta falls. `certified` looks for the noise, or the epsilon,
that just passes. Everything that is chosen by looking at samples is chosen from other samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from .._base import random_blocks
from . import confidence_bounds, tuple_sampler
from .tuple_law import Shares, fit

# Names of the random streams; pilot samples are never used again.
_PILOT, _FINAL = 4, 5  # 1 to 3 and 6 belong to other uses of a seed: `montecarlo`, `importance_sampling`
_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 28, 33, 40, 50, 64, 80, 100, 128, 160, 200)
_MANY, _LARGEST_OF_MANY = 256, 40  # beyond so many bins longer tuples take too much memory
_PILOT_BLOCKS = 4  # of the last pilot
_LOOSEST = 2.0  # a bound more than this times the mean is refused
_MOST_SAMPLES = 2**40


@dataclass(frozen=True)
class Plan:
    """A sampler and the samples of its pilot, both in units of the sampler's bound."""

    sampler: object
    pilot: np.ndarray

    @property
    def estimate(self):
        return float(self.pilot.mean()) * self.sampler.bound

    def predicted(self, samples, failure_probability):
        """About the upper bound that so many samples would give."""
        return min(1.0, self.estimate + self.excess(samples, failure_probability))

    def excess(self, samples, failure_probability):
        """About what that bound has above the mean, of which a pilot knows less; not cut off at 1."""
        _, value = confidence_bounds.choose_bet(self.pilot, samples, failure_probability)
        return self.sampler.bound * (value - float(self.pilot.mean()) + self.sampler.extra)


def certify(gram, epsilon, side, samples, failure_probability, seed):
    """An upper bound on delta(epsilon) that holds with probability at least 1 - failure_probability [A-15].

    Parameters
    ----------
    gram : shape (b, b), upper bounds of the inner products of the modes in units of the noise, entries >= 0
        (`gram.gram_upper` divided by sigma squared).
    epsilon : at least 0. side : "remove" or "add".
    samples : how many. failure_probability : in (0, 1); for a guarantee at delta no larger than delta.

    Raises ValueError when the budget is too small for an upper bound within twice the
    mean; it says how many samples would do, about. `tuple_sampler.OutOfRange`, a ValueError, where the modes are too large.
    Cost: b = 128: 15 to 20 microseconds a sample, and 1 to 3 s for the choice of k.
    """
    plan = prepare(gram, epsilon, side, samples, failure_probability, seed)
    overshoot(plan, samples, failure_probability)
    return run(plan, samples, failure_probability, seed, ())


def prepare(gram, epsilon, side, samples, failure_probability, seed, size=None):
    """The sampler, for the remove direction with the best tuple size unless one is given, and its pilot."""
    factor = tuple_sampler.factor(np.asarray(gram, dtype=float))
    if side == "add":
        return _pilot(tuple_sampler.add_sampler(factor, epsilon), seed, (0,), _PILOT_BLOCKS)
    sizes = [size for size in _SIZES if len(factor.gram) <= _MANY or size <= _LARGEST_OF_MANY]
    shares = Shares(factor.gram, size or sizes[-1])
    law = cache(partial(fit, shares))  # the best size comes up again with a longer pilot
    cost = lambda plan: plan.excess(samples, failure_probability)

    def make(size, blocks):
        """The better of the two kinds of lines, for one tuple size."""
        if size == 1:
            return _pilot(tuple_sampler.plain_sampler(factor, epsilon), seed, (1, 0), blocks)
        samplers = [tuple_sampler.remove_sampler(factor, epsilon, law(size), common) for common in (False, True)]
        return min((_pilot(one, seed, (size, i), blocks) for i, one in enumerate(samplers)), key=cost)

    def attempt(size, blocks):
        try:
            plan = make(size, blocks)
        except tuple_sampler.OutOfRange:  # entries too large for tuples of this size
            return math.inf, None
        return cost(plan), plan

    if size is not None:
        return make(size, _PILOT_BLOCKS)
    best = _best_size(sizes, lambda size: attempt(size, 1)[0])
    # Short tuples have rare large samples, which a short pilot misses: look up with longer ones.
    plan = make(best, _PILOT_BLOCKS)
    for size in sizes[sizes.index(best) + 1 :]:
        value, longer = attempt(size, _PILOT_BLOCKS)
        if value >= cost(plan):
            break
        plan = longer
    return plan


def overshoot(plan, samples, failure_probability):
    """By which factor the certified bound will exceed delta, about; ValueError where that is useless."""
    _refuse_drowned(plan)
    estimate = max(plan.estimate, 1e-300)
    factor = plan.predicted(samples, failure_probability) / estimate
    if factor > _LOOSEST:
        needed = samples
        while needed < _MOST_SAMPLES and plan.predicted(needed, failure_probability) > _LOOSEST * estimate:
            needed *= 2
        many = f"about {needed:.2g}" if needed < _MOST_SAMPLES else f"more than {_MOST_SAMPLES:.2g}"
        raise ValueError(
            f"samples must be {many} for an upper bound within {_LOOSEST:g} times delta "
            f"(delta is about {plan.estimate:.3g}); got {samples}"
        )
    return factor


def run(plan, samples, failure_probability, seed, key):
    """The upper bound from fresh samples of a plan's sampler; key tells several runs of one seed apart."""
    _refuse_drowned(plan)
    sampler = plan.sampler
    count = -(-samples // tuple_sampler.BLOCK)
    blocks = random_blocks.run(sampler, count, seed=seed, key=(_FINAL, *key), description="certificate")
    bet, _ = confidence_bounds.choose_bet(plan.pilot, samples, failure_probability)
    upper = confidence_bounds.betting(np.concatenate(blocks)[:samples], 1.0, failure_probability, bet)
    return float(min(1.0, sampler.bound * (upper + sampler.extra) * (1 + 1e-12)))


# ----------------------------------------------------------------------------- helpers


def _refuse_drowned(plan):
    """ValueError where what rounding may have changed is more than the mean of the pilot: no samples help there.

    The bound that would come out is valid and useless; but the mean of the samples can be far too small.
    """
    mean, sampler = float(plan.pilot.mean()), plan.sampler
    if sampler.extra > mean:
        raise ValueError(
            f"no number of samples gives an upper bound within {_LOOSEST:g} times delta with tuples of "
            f"{sampler.size}: rounding alone may add {sampler.extra * sampler.bound:.2g}, and the mean of the samples is "
            f"{mean * sampler.bound:.2g}"
        )


def _pilot(sampler, seed, key, blocks):
    return Plan(sampler, np.concatenate(random_blocks.run(sampler, blocks, seed=seed, key=(_PILOT, *key))))


def _best_size(sizes, excess):
    """The tuple size with the least excess(size): three probes, then downhill; 1 where none of them is possible."""
    cost = cache(lambda i: excess(sizes[i]))
    best = min((3, 8, 12), key=cost)
    if cost(best) == math.inf:
        return sizes[0]
    return sizes[downhill(cost, best, len(sizes))]


def downhill(cost, best, count):
    """From one of the places 0 .. count - 1 on to one where cost(place) falls to neither side; it is asked again and again."""
    while True:
        better = min((place for place in (best - 1, best + 1) if 0 <= place < count), key=cost)
        if cost(better) >= cost(best):
            return best
        best = better
