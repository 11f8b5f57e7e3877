"""Random allocation by sampling: which draws of `allocation_tuples` answer a question (`balls_in_bins.bounded_draws`)."""

from __future__ import annotations

import math
from functools import cache

from .. import gaussian
from ..balls_in_bins import CONFIDENCE, bounded_draws
from ..balls_in_bins.lognormal_sum import log_ceiling
from ..results import NoBracketError
from .allocation_tuples import AddSampler, RemoveSampler

_STEPS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # of the proposal in direction add
_ORDERS = (1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 22, 25, 28, 32, 36, 40, 45, 50, 56, 64, 72, 80, 90, 100)
_LARGEST_TUPLE = 100


class Account(bounded_draws.Account):
    """One allocation and one direction: k of t rounds, `epochs` times, at this noise multiplier."""

    method, stream = "tuples", 19

    def __init__(self, rounds, participations, epochs, noise, side):
        super().__init__(side)
        self.scheme, self.rounds = (rounds, participations, epochs, noise), rounds
        self.norm = math.sqrt(participations * epochs) / noise
        self.tuples = cache(lambda size, spread: RemoveSampler(*self.scheme, size, spread))
        steps = _STEPS if rounds > participations else (0.0,)
        self.others = [AddSampler(*self.scheme, step) for step in steps] if side == "add" else []

    def log_ceiling(self, epsilon):
        """log of delta where everybody's rounds are known: never less, by joint convexity."""
        return log_ceiling(self.norm**2, epsilon)

    def highest_epsilon(self, delta):
        """The epsilon where everybody's rounds are known."""
        return gaussian.epsilon(self.norm, delta) * (1 + 1e-9)

    def plan(self, epsilon, seed, samples=bounded_draws.SAMPLES, failure_probability=1 - CONFIDENCE):
        """The `pilot` of the tuples with the least bound; for "add" the one with the least excess of a certified bound."""
        if self.side == "remove":
            return self.pilot(self._least_bound(epsilon), epsilon, seed)
        plans = [self.pilot(draws, epsilon, seed) for draws in self.others]
        return min(plans, key=lambda plan: plan.excess(samples, failure_probability))

    def _least_bound(self, epsilon):
        """The tuples of subsets, or of single rounds where k makes the others too large a table, with the least bound."""
        k = self.scheme[1]
        found = list(_falling(lambda size: self.tuples(size, False), [order for order in _ORDERS if order == int(order)], epsilon))
        if k > 2:
            sizes = [math.ceil(k * order) for order in _ORDERS if 1 < order <= _LARGEST_TUPLE / k]
            found += _falling(lambda size: self.tuples(size, True), sizes, epsilon)
        if not found:
            raise NoBracketError(f"participations = {k} are too many to sample; method='bound' needs no draws")
        return min(found, key=lambda draws: draws.log_bound(epsilon))


def _falling(make, sizes, epsilon):
    """Samplers of these sizes, until the bound rises or one is refused."""
    least = math.inf
    for size in sizes:
        try:
            draws = make(size)
        except NoBracketError:
            return
        if draws.log_bound(epsilon) > least:
            return
        least = draws.log_bound(epsilon)
        yield draws
