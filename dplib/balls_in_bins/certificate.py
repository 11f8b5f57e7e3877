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
class Certified:
    """What a certificate run found: delta <= upper with probability at least 1 - failure_probability.

    mean, standard_error : the estimate from the same samples; a plan whose rounding alone may be more than its mean,
    where both would mislead, is refused. bound : the largest value that a sample can have. size : indices in a
    tuple (0 in the add direction).
    """

    upper: float
    mean: float
    standard_error: float
    bound: float
    size: int
    samples: int
    failure_probability: float


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


def certify(
    gram,
    epsilon,
    side,
    samples=2**20,
    failure_probability=1e-9,
    seed=0,
    tuple_size=None,
):
    """An upper bound on delta(epsilon) that holds with probability at least 1 - failure_probability [A-15].

    Parameters
    ----------
    gram : shape (b, b), upper bounds of the inner products of the modes in units of the noise, entries >= 0
        (`gram.gram_upper` divided by sigma squared).
    epsilon : at least 0. side : "remove" or "add".
    samples : how many. failure_probability : in (0, 1); for a guarantee at delta no larger than delta.
    tuple_size : k of the remove direction, or None to choose it by a pilot.

    Returns a `Certified`. Raises ValueError when the budget is too small for an upper bound within twice the
    mean; it says how many samples would do, about. `tuple_sampler.OutOfRange`, a ValueError, where the modes are too large.
    Cost: b = 128: 15 to 20 microseconds a sample, and 1 to 3 s for the choice of k.
    """
    plan = prepare(gram, epsilon, side, samples, failure_probability, seed, tuple_size)
    overshoot(plan, samples, failure_probability)
    return run(plan, samples, failure_probability, seed, ())


def prepare(gram, epsilon, side, samples, failure_probability, seed, tuple_size=None):
    """The sampler, for the remove direction with the best tuple size, and its pilot."""
    factor = tuple_sampler.factor(np.asarray(gram, dtype=float))
    if side == "add":
        return _pilot(tuple_sampler.add_sampler(factor, epsilon), seed, (0,), _PILOT_BLOCKS)
    sizes = [size for size in _SIZES if len(factor.gram) <= _MANY or size <= _LARGEST_OF_MANY]
    shares = Shares(factor.gram, sizes[-1] if tuple_size is None else tuple_size)
    law = cache(partial(fit, shares))  # the best size comes up again with a longer pilot
    make = partial(_remove_plan, factor, epsilon, law, samples, failure_probability, seed)
    if tuple_size is not None:
        return make(tuple_size, _PILOT_BLOCKS)
    best = _best_size(sizes, lambda size: make(size, 1).excess(samples, failure_probability))
    # Short tuples have rare large samples, which a short pilot misses: look up with longer ones.
    plan = make(best, _PILOT_BLOCKS)
    for size in sizes[sizes.index(best) + 1 :]:
        try:
            longer = make(size, _PILOT_BLOCKS)
        except tuple_sampler.OutOfRange:  # entries too large for tuples of this size
            break
        if longer.excess(samples, failure_probability) >= plan.excess(samples, failure_probability):
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
    """The certificate from fresh samples of a plan's sampler; key tells several runs of one seed apart."""
    _refuse_drowned(plan)
    sampler = plan.sampler
    blocks = random_blocks.run(
        sampler,
        -(-samples // tuple_sampler.BLOCK),
        seed=seed,
        key=(_FINAL, *key),
        description="certificate",
    )
    values = np.concatenate(blocks)[:samples]
    bet, _ = confidence_bounds.choose_bet(plan.pilot, samples, failure_probability)
    upper = confidence_bounds.betting(values, 1.0, failure_probability, bet)
    return Certified(
        upper=float(min(1.0, sampler.bound * (upper + sampler.extra) * (1 + 1e-12))),
        mean=float(values.mean()) * sampler.bound,
        standard_error=float(values.std(ddof=1)) / math.sqrt(samples) * sampler.bound,
        bound=float(sampler.bound),
        size=getattr(sampler, "size", 0),
        samples=samples,
        failure_probability=failure_probability,
    )


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


def _remove_plan(factor, epsilon, law, samples, failure_probability, seed, size, blocks):
    """The better of the two kinds of lines, for one tuple size; law(size) : its tuple law."""
    if size == 1:
        return _pilot(tuple_sampler.plain_sampler(factor, epsilon), seed, (1, 0), blocks)
    plans = [
        _pilot(tuple_sampler.remove_sampler(factor, epsilon, law(size), common), seed, (size, int(common)), blocks)
        for common in (False, True)
    ]
    return min(plans, key=lambda plan: plan.excess(samples, failure_probability))


def _pilot(sampler, seed, key, blocks):
    return Plan(sampler, np.concatenate(random_blocks.run(sampler, blocks, seed=seed, key=(_PILOT, *key))))


def _best_size(sizes, excess):
    """The tuple size with the least excess(size): three probes, then downhill; 1 where none of them is possible."""
    costs = {}

    def cost(i):
        if i not in costs:
            try:
                costs[i] = excess(sizes[i])
            except tuple_sampler.OutOfRange:  # entries too large for tuples of this size
                costs[i] = math.inf
        return costs[i]

    best = min((3, 8, 12), key=cost)
    if costs[best] == math.inf:
        return sizes[0]
    while True:
        near = [i for i in (best - 1, best + 1) if 0 <= i < len(sizes)]
        better = min(near, key=cost)
        if cost(better) >= cost(best):
            return sizes[best]
        best = better
