"""delta and epsilon from independent draws that count no more than a known bound: estimates, and certificates [A-15].

A `Sampler` draws; the mean of what its draws count is delta. It serves every epsilon at once, so that the epsilon that meets a delta
is a root for one set of draws. An `Account` chooses samplers, by pilots whose draws are not used again; its subclasses know the
mechanism: `pattern_account` for b-min-sep sampling, `mechanisms.allocation_sampling` for random allocation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from .._base import random_blocks
from .._base.checkpoints import bar
from .._base.lazy_scipy import optimize
from ..results import Certificate, Estimate
from . import CONFIDENCE, FLOOR, NORMAL, QUANTILE, certificate, tuple_sampler
from .certified import MARGINS, certified_level, falls, first_certified
from .confidence_bounds import highest_mean, named

SAMPLES = 2**16  # of a certificate
ERROR = 0.01  # relative standard error that an estimate goes for
_PILOT, _FINAL = 1, 2  # names of the random streams
_MOST_BLOCKS, _MOST_ENTRIES = 16, 2**25  # of an estimate that chooses its number of draws
_GROWTH = 4.0  # of their number at once, at most: a large draw may be all that the error is of
_PASSES, _NEAR = 4, 0.02  # of a search for epsilon, and when it ends: a relative change
_STEP = 1e-4  # in epsilon, for the slope of log delta
_LEAST_POSITIVE = 20  # samples above 0, below which a pilot says nothing


class Sampler:
    """Draws for one mechanism in one direction; subclasses have, beside `log_bound`,

    key : whole numbers that tell the samplers of an account apart. order : the Rényi order of which the bound is.
    extra : in units of the bound, what rounding may take off the mean, at most.
    draw(rng) : BLOCK independent draws, a tuple of arrays.
    payoffs(drawn, epsilon) : what they count, in [0, 1] in units of the bound at this epsilon.
    """

    order = 1.0
    least = 0.0  # the epsilon below which the draws say nothing

    def log_bound(self, epsilon):
        """log of the most that a draw counts: of an upper bound on delta, rounded up."""
        raise NotImplementedError

    def rounded(self, drawn, epsilon):
        """The payoffs, none of them below the exact one but for `extra`."""
        return self.payoffs(drawn, epsilon)

    def epsilon_bound(self, delta):
        """The epsilon at which the bound is `delta`."""
        return (self.log_bound(0.0) - math.log(delta)) / (self.order - 1) if self.order > 1 else math.inf


@dataclass(frozen=True)
class At:
    """A sampler at one epsilon, as `certificate` takes it."""

    draws: Sampler
    epsilon: float

    @property
    def size(self):
        return self.draws.order

    @property
    def extra(self):
        return self.draws.extra

    @property
    def bound(self):
        return math.exp(self.draws.log_bound(self.epsilon))

    def __call__(self, rng, index=0):
        return self.draws.rounded(self.draws.draw(rng), self.epsilon)


class Account:
    """One mechanism in one direction, "remove" or "add". Subclasses have

    method : the name in answers. stream : of the random numbers. rounds : of the mechanism, for the number of draws.
    log_ceiling(epsilon) : log of an upper bound on delta without sampling.
    highest_epsilon(delta) : an epsilon at which delta is at most `delta`, without sampling.
    plan(epsilon, seed, samples, failure_probability) : the `pilot` of the sampler to take there.
    """

    def __init__(self, side):
        self.side = side
        self._pilot = cache(lambda draws, seed: draws.draw(random_blocks.generator(seed, (self.stream, _PILOT, *draws.key), 0)))

    def pilot(self, draws, epsilon, seed):
        """The `certificate.Plan` of a sampler, from one block of draws."""
        return certificate.Plan(At(draws, epsilon), draws.rounded(self._pilot(draws, seed), epsilon))

    # --- estimates --------------------------------------------------------------------------------------------

    def estimate(self, epsilon, seed, samples=None):
        """delta at `epsilon`, an Estimate. samples : None: until the standard error is 1%."""
        ceiling = self.log_ceiling(epsilon)
        if ceiling < math.log(FLOOR):
            return Estimate(FLOOR, 0.0, FLOOR, CONFIDENCE, f"{self.method}; below {FLOOR:g}")
        draws = self.plan(epsilon, seed).sampler.draws
        payoffs = lambda drawn: draws.payoffs(drawn, epsilon)
        found = payoffs(self._draws(draws, seed, samples, lambda drawn: _error(payoffs(drawn))))
        top, bound, error = math.exp(ceiling), math.exp(draws.log_bound(epsilon)), _error(found)
        value = min(max(float(found.mean()) * bound, FLOOR), top)
        upper = value * (1 + QUANTILE * error) if error <= NORMAL else bound * highest_mean(found, 1 - CONFIDENCE)
        upper = max(value, min(upper, top))
        return Estimate(value, value * error if found.any() else upper - value, upper, CONFIDENCE, self._named(samples, error))

    def solve(self, delta, seed, samples=None):
        """(An Estimate of the epsilon at `delta`, minus the slope of log delta there, log delta there).

        The same draws serve every epsilon. It is 0 where delta is less already there. The slope is 0 where no draw was of use.
        """
        highest = place = self.highest_epsilon(delta)
        if highest == 0:
            return Estimate(0.0, 0.0, 0.0, CONFIDENCE, self.method), math.inf, -math.inf
        # The first sampler is made for an epsilon that is too large, and knows little of a smaller one.
        for _ in range(_PASSES):
            before, (draws, place) = place, self.refined(delta, place, seed)
            if abs(before - place) < _NEAR * place:
                break
        at = lambda drawn: self.root(draws, drawn, delta)
        drawn = self._draws(draws, seed, samples, lambda drawn: _error(draws.payoffs(drawn, at(drawn))))
        epsilon = at(drawn)
        error = _error(draws.payoffs(drawn, epsilon))
        log_value, further = (_log_mean(draws, drawn, place) for place in (epsilon, epsilon + _STEP))
        slope = (log_value - further) / _STEP if further > -math.inf else 0.0
        off = error / slope if epsilon > 0 and slope > 0 else 0.0
        if slope > 0 and error <= NORMAL:
            upper = epsilon + QUANTILE * off
        else:
            upper = self.root(draws, drawn, delta, lambda payoffs: highest_mean(payoffs, 1 - CONFIDENCE))
        method = self._named(samples, error if slope > 0 else math.inf, NORMAL, " in delta")
        upper = max(epsilon, min(upper, highest))
        found = Estimate(epsilon, off if slope > 0 else upper - epsilon, upper, CONFIDENCE, method)
        return found, slope, log_value if slope > 0 else -math.inf

    def refined(self, delta, place, seed):
        """(the sampler for the epsilon `place`, a better guess of where delta is `delta`)."""
        draws = self.plan(place, seed).sampler.draws
        return draws, self.root(draws, self._pilot(draws, seed), delta)

    def root(self, draws, drawn, delta, mean=np.mean):
        """The epsilon at which the mean of these draws is `delta`, between the ends that are known without them."""
        excess = lambda epsilon: _log_mean(draws, drawn, epsilon, mean) - math.log(delta)
        low = draws.least
        high = max(self.highest_epsilon(delta), low)
        if excess(low) <= 0:
            return low
        if excess(high) >= 0:
            return high
        return float(optimize.brentq(lambda epsilon: max(excess(epsilon), -1e6), low, high, rtol=1e-10))

    def _draws(self, draws, seed, samples, error_of):
        """Draws of blocks, joined: a fixed number, or until error_of(drawn) is at most `ERROR`."""
        block = tuple_sampler.BLOCK
        most = samples or block * min(_MOST_BLOCKS, max(2, _MOST_ENTRIES // (block * self.rounds)))
        make = lambda index: draws.draw(random_blocks.generator(seed, (self.stream, _FINAL, *draws.key), index))
        wanted, blocks = samples or block, []
        while True:
            more = range(len(blocks), -(-wanted // block))
            blocks += [make(index) for index in bar(more, "draws")]
            joined = tuple(np.concatenate(part)[:wanted] for part in zip(*blocks))
            if wanted == most or (error := error_of(joined)) <= ERROR:
                return joined
            growth = min(1.1 * (error / ERROR) ** 2, _GROWTH)
            wanted = min(most, block * max(len(blocks) + 1, math.ceil(len(blocks) * growth)))

    def _named(self, samples, error, wanted=ERROR, place=""):
        if error == math.inf:
            return f"{self.method}; too few: no sample is above 0 there"
        found = named(self.method, samples, error, wanted)
        return found if found == self.method else found + place

    # --- certificates -----------------------------------------------------------------------------------------

    def certify(self, epsilon, samples, failure_probability, seed):
        """delta at `epsilon`, a Certificate: fails with at most this probability over the draws [A-15].

        Raises ValueError where so few samples give no bound within twice delta; the message says about how many would.
        """
        ceiling = self.log_ceiling(epsilon)
        top = math.exp(ceiling)
        if ceiling > math.log(FLOOR):
            plan = self.plan(epsilon, seed, samples, failure_probability)
            try:
                self._check(plan, samples, failure_probability)
                top = min(top, certificate.run(plan, samples, failure_probability, seed, (self.stream, int(self.side == "add"))))
            except ValueError:
                if plan.estimate == 0 and self.side == "remove":
                    raise ValueError(
                        f"epsilon must be smaller for a certificate: no sample of a pilot counts at {epsilon!r}; without samples delta is at most {top:.3g}"
                    ) from None
                # The bound without samples may serve; otherwise the message says how many would do.
                if not plan.estimate > top / 2:
                    raise
        return Certificate(max(top, FLOOR), failure_probability, samples, self.method)

    def certify_epsilon(self, delta, samples, failure_probability, seed):
        """The smallest of three candidates at which `delta` less the failure probability was certified [N-2.1s]."""
        level, share = certified_level(delta, failure_probability), failure_probability / len(MARGINS)
        if self.highest_epsilon(level) == 0:
            return Certificate(0.0, failure_probability, samples, self.method)
        found, slope, log_value = self.solve(level, seed)
        plan = self.plan(found.value, seed, samples, share)
        excess = self._check(plan, samples, share)
        if slope == 0:
            raise ValueError(f"samples must be more to certify epsilon at delta={delta!r}: no draw counts in the search for it; got {samples}")
        doubt = math.hypot(found.standard_error * slope, _spread(plan.pilot) / math.sqrt(samples))
        places = [max(0.0, found.value + fall / slope) for fall in falls(excess, doubt, log_value, level)]

        def certify(epsilon, number):
            fresh = self.pilot(self.at(plan.sampler.draws, epsilon), epsilon, seed)
            return certificate.run(fresh, samples, share, seed, (self.stream, 2 + number, int(self.side == "add")))

        epsilon, _ = first_certified(places, certify, level, samples)
        return Certificate(epsilon, failure_probability, samples, self.method)

    def at(self, draws, epsilon):
        """The sampler for an epsilon close to the one that `draws` was chosen for."""
        return draws

    def _check(self, plan, samples, failure_probability):
        """By which factor the certified bound will exceed delta, about; ValueError where that is useless."""
        if self.side == "add" and np.count_nonzero(plan.pilot) < _LEAST_POSITIVE:
            raise ValueError(
                "direction must be 'both' or 'remove' for a certificate here, which bounds 'add' as well [C-9m]: hardly any sample "
                "of the large losses of 'add' has one; got 'add'"
            )
        return certificate.overshoot(plan, samples, failure_probability)


# --- helpers --------------------------------------------------------------------------------------------------


def _log_mean(draws, drawn, epsilon, mean=np.mean):
    """log of the mean of the draws at an epsilon, -inf where none counts."""
    value = float(mean(draws.payoffs(drawn, epsilon)))
    return math.log(value) + draws.log_bound(epsilon) if value > 0 else -math.inf


def _spread(payoffs):
    """Standard deviation over mean."""
    mean = float(payoffs.mean())
    return float((payoffs / mean).std()) if mean > 1e-290 else math.inf


def _error(payoffs):
    """The relative standard error of the mean."""
    return _spread(payoffs) / math.sqrt(len(payoffs))
