"""delta and epsilon of b-min-sep sampling: estimates and certificates from tuples of patterns (`pattern_sampler`).

The number of patterns in a tuple plays the part of a Rényi order: the sampler's bound is the upper bound on delta of that order.
`Account` starts from the order of the least bound and goes downhill in what a pilot says of the excess of a certified bound: the
variance alone would lead astray, since the pilot of a bad order hardly ever shows how large its samples may be. Nothing that a
pilot drew is used again.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from .._base import random_blocks
from .._base.lazy_scipy import optimize
from ..results import Certificate, Estimate, UpperBound
from . import CONFIDENCE, FLOOR, NORMAL, QUANTILE, certificate, tuple_sampler
from .certified import MARGINS, certified_level, first_certified
from .confidence_bounds import highest_mean, named
from .lognormal_sum import log_ceiling
from .pattern_sampler import HalfSpaceSampler, TupleSampler, log_payoff
from .pattern_values import values

METHOD = "tuples of patterns"
SAMPLES = 2**16  # of a certificate
ERROR = 0.01  # relative standard error that an estimate goes for
_SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)
_WORST = 30.0  # a sampler whose bound has a larger logarithm is not tried
_STREAM, _PILOT, _FINAL, _SEARCH = 18, 1, 2, 3  # names of the random streams
_MOST_BLOCKS, _MOST_ENTRIES = 16, 2**25  # of an estimate that chooses its number of samples
_PASSES, _NEAR = 4, 0.02  # of a search for epsilon, and when it ends: a relative change
_STEP = 1e-4  # in epsilon, for the slope of log delta
_LEAST_POSITIVE = 20  # samples above 0, below which a pilot says nothing


class Account:
    """A `pattern_pair.Pair` in one direction: "remove" or "add"."""

    def __init__(self, pair, side):
        self.pair, self.side = pair, side
        self.longest = pair.longest
        self.values = cache(lambda size: values(pair, size))

    # --- bounds without sampling -------------------------------------------------------------------------------

    def log_bound(self, size, epsilon):
        """log of the upper bound on delta of one order, rounded up."""
        return self.values(size).log_total + log_payoff(size) - (size - 1) * epsilon

    def order(self, cost):
        """Place in `_SIZES` of the least cost(size): sizes are tried from below until it rises twice."""
        best, found, risen = 0, math.inf, 0
        for place, size in enumerate(_SIZES):
            value = cost(size)
            if value < found:
                best, found, risen = place, value, 0
            else:
                risen += 1
            if risen == 2:
                break
        return best

    def log_ceiling(self, epsilon):
        """log of an upper bound on delta: of the longest pattern alone, of the best order, or of taking part at all."""
        return self.bound(epsilon)[0]

    def bound(self, epsilon):
        """(log of the least upper bound on delta without sampling, its order or None)."""
        if self.longest == 0:
            return -math.inf, None
        best = _SIZES[self.order(lambda size: self.log_bound(size, epsilon))]
        taking_part = math.log(self.pair.patterns.rates().sum()) + 1e-9  # delta is at most the probability of that
        plain = min(0.0, taking_part, log_ceiling(self.longest, epsilon))
        return min((self.log_bound(best, epsilon), best), (plain, None), key=lambda found: found[0])

    def highest_epsilon(self, delta):
        """(An epsilon at which delta is at most `delta`, its order: the best above 1)."""
        if self.longest == 0:
            return 0.0, None

        def bound(size):
            if size == 1:
                return math.inf
            return (self.values(size).log_total + log_payoff(size) - math.log(delta)) / (size - 1)

        best = _SIZES[self.order(bound)]
        return max(0.0, bound(best)) * (1 + 1e-12), best

    # --- samplers ---------------------------------------------------------------------------------------------

    def sampler(self, size, epsilon):
        if self.side == "add":
            return HalfSpaceSampler(self.pair, epsilon)
        return TupleSampler(self.pair, self.values(size), epsilon)

    def pilot(self, size, epsilon, seed):
        """(`certificate.Plan`, the block of draws that its pilot is) for one size."""
        sampler = self.sampler(size, epsilon)
        drawn = sampler.draw(random_blocks.generator(seed, (_STREAM, _PILOT, size), 0))
        return certificate.Plan(sampler, sampler.rounded(drawn)), drawn

    def plan(self, epsilon, seed, samples=SAMPLES, failure_probability=1 - CONFIDENCE):
        """The `pilot` with the least excess of a certified bound, near the order of the least bound; for "add" the only one."""
        if self.side == "add":
            return self.pilot(1, epsilon, seed)

        @cache
        def attempt(place):
            size = _SIZES[place]
            if self.log_bound(size, epsilon) > _WORST:
                return math.inf, None
            found = self.pilot(size, epsilon, seed)
            return found[0].excess(samples, failure_probability), found

        start = self.order(lambda size: self.log_bound(size, epsilon))
        return attempt(certificate.downhill(lambda place: attempt(place)[0], start, len(_SIZES)))[1]

    # --- estimates --------------------------------------------------------------------------------------------

    def estimate(self, epsilon, seed, samples=None):
        """delta at `epsilon`, an Estimate."""
        ceiling = self.log_ceiling(epsilon)
        if ceiling < math.log(FLOOR):
            return Estimate(FLOOR, 0.0, FLOOR, CONFIDENCE, f"{METHOD}; below {FLOOR:g}")
        sampler = self.plan(epsilon, seed)[0].sampler
        payoffs = lambda joined: _payoffs(sampler, joined, epsilon)
        found = payoffs(_draws(sampler, seed, _FINAL, samples, lambda joined: _error(payoffs(joined)) <= ERROR))
        top, error = math.exp(ceiling), _error(found)
        value = min(max(float(found.mean()) * sampler.bound, FLOOR), top)
        upper = value * (1 + QUANTILE * error) if error <= NORMAL else sampler.bound * highest_mean(found, 1 - CONFIDENCE)
        off = value * error if found.any() else 0.0
        return Estimate(value, off, max(value, min(upper, top)), CONFIDENCE, _method(samples, error, ERROR))

    def solve(self, delta, seed, samples=None):
        """(An Estimate of the epsilon at `delta`, minus the slope of log delta there, log delta there).

        The same draws serve every epsilon. It is 0 where delta is less already there. The slope is 0 where no draw was of use.
        """
        if self.longest == 0:
            return Estimate(0.0, 0.0, 0.0, CONFIDENCE, METHOD), math.inf, -math.inf
        place, _ = self.highest_epsilon(delta)
        # The first sampler is made for an epsilon that is too large, and knows little of a smaller one.
        for _ in range(_PASSES):
            before, (sampler, place) = place, self._refined(delta, place, seed)
            if abs(before - place) < _NEAR * place:
                break
        at = lambda one: _root(sampler, one, delta)
        joined = _draws(sampler, seed, _FINAL, samples, lambda one: _error(_payoffs(sampler, one, at(one))) <= ERROR)
        epsilon = at(joined)
        means = [_payoffs(sampler, joined, place).mean() for place in (epsilon, epsilon + _STEP)]
        slope = math.log(means[0] / means[1]) / _STEP if min(means) > 0 else 0.0
        error = _error(_payoffs(sampler, joined, epsilon))
        off = error / slope if epsilon > 0 and slope > 0 else 0.0
        if error <= NORMAL:
            upper = epsilon + QUANTILE * off
        else:
            highest = _root(sampler, joined, delta, lambda payoffs: highest_mean(payoffs, 1 - CONFIDENCE))
            upper = max(epsilon, min(highest, self.highest_epsilon(delta)[0]))
        method = _method(samples, error if slope > 0 else math.inf, NORMAL, " in delta")
        found = Estimate(epsilon, off, upper, CONFIDENCE, method)
        return found, slope, math.log(means[0]) + sampler.log_bound if slope > 0 else -math.inf

    def _refined(self, delta, place, seed):
        """(sampler, a better guess of epsilon), from one block of draws for the guess `place`."""
        if self.side == "remove":
            plan, drawn = self.plan(place, seed)
            return plan.sampler, _root(plan.sampler, drawn, delta)

        def excess(epsilon):
            sampler = self.sampler(1, epsilon)
            joined = _draws(sampler, seed, _SEARCH, tuple_sampler.BLOCK, None)
            return math.log(max(_payoffs(sampler, joined, epsilon).mean() * sampler.bound, FLOOR)) - math.log(delta)

        if place == 0 or excess(0.0) <= 0:
            place = 0.0
        elif excess(place) < 0:
            place = optimize.brentq(excess, 0.0, place, xtol=1e-4 * place)
        return self.sampler(1, (1 - _NEAR) * place), place


# --- bounds --------------------------------------------------------------------------------------------------


def upper_delta(account, epsilon):
    """delta at `epsilon`, an UpperBound without sampling."""
    log_value, order = account.bound(epsilon)
    value = math.exp(min(0.0, max(log_value, math.log(FLOOR)) + 1e-12))
    return UpperBound(value, "Renyi" if order and order > 1 else "one pattern alone", order if order and order > 1 else None)


def upper_epsilon(account, delta):
    """epsilon at which delta is at most `delta`, an UpperBound without sampling."""
    value, order = account.highest_epsilon(delta)
    return UpperBound(value, "Renyi", order)


# --- certificates ---------------------------------------------------------------------------------------------


def certify(account, epsilon, samples, failure_probability, seed):
    """delta at `epsilon`, a Certificate: fails with at most this probability over the draws [A-15].

    Raises ValueError where so few samples give no bound within twice delta; the message says about how many would.
    """
    top = math.exp(max(account.log_ceiling(epsilon), math.log(FLOOR)))
    if top > FLOOR:
        plan, _ = account.plan(epsilon, seed, samples, failure_probability)
        try:
            _check(account, plan, samples, failure_probability)
            top = min(top, certificate.run(plan, samples, failure_probability, seed, (_STREAM, int(account.side == "add"))))
        except ValueError:
            # The bound without samples may serve; otherwise the message says how many would do.
            if not plan.estimate > top / 2:
                raise
    return Certificate(max(top, FLOOR), failure_probability, samples, METHOD)


def certify_epsilon(account, delta, samples, failure_probability, seed):
    """The smallest of three candidates at which `delta` less the failure probability was certified [N-2.1s]."""
    if account.longest == 0:
        return Certificate(0.0, failure_probability, samples, METHOD)
    level, share = certified_level(delta, failure_probability), failure_probability / len(MARGINS)
    found, slope, log_value = account.solve(level, seed)
    plan, _ = account.plan(found.value, seed, samples, share)
    excess = _check(account, plan, samples, share)
    doubt = math.hypot(found.standard_error * slope, math.sqrt(_relative_variance(plan) / samples))
    falls = [math.log(excess * (1 + margin * doubt)) + log_value - math.log(level) for margin in MARGINS]

    def certify(epsilon, number):
        fresh, _ = account.pilot(plan.sampler.size, epsilon, seed)
        return certificate.run(fresh, samples, share, seed, (_STREAM, 2 + number, int(account.side == "add")))

    epsilon, _ = first_certified([max(0.0, found.value + fall / slope) for fall in falls], certify, level, samples)
    return Certificate(epsilon, failure_probability, samples, METHOD)


def _check(account, plan, samples, failure_probability):
    """By which factor the certified bound will exceed delta, about; ValueError where that is useless."""
    if account.side == "add" and np.count_nonzero(plan.pilot) < _LEAST_POSITIVE:
        raise ValueError(
            "direction must be 'both' or 'remove' for a certificate here, which bounds 'add' as well [C-9m]: hardly any sample of "
            "the half-space that contains the large losses of 'add' has one; got 'add'"
        )
    return certificate.overshoot(plan, samples, failure_probability)


# --- helpers --------------------------------------------------------------------------------------------------


def _draws(sampler, seed, name, samples, enough):
    """Arrays of blocks that `sampler.draw` made, joined: a fixed number, or until enough(arrays) holds."""
    block = tuple_sampler.BLOCK
    most = samples or block * min(_MOST_BLOCKS, max(2, _MOST_ENTRIES // (block * sampler.pair.patterns.rounds)))
    blocks = []
    for index in range(-(-most // block)):
        blocks.append(sampler.draw(random_blocks.generator(seed, (_STREAM, name, sampler.size), index)))
        joined = tuple(np.concatenate(part)[:most] for part in zip(*blocks))
        if samples is None and enough(joined):
            break
    return joined


def _relative_variance(plan):
    mean = float(plan.pilot.mean())
    return (float((plan.pilot / mean).std())) ** 2 if mean > 1e-290 else math.inf


def _payoffs(sampler, joined, epsilon):
    """Payoffs of draws at any epsilon (for "add" at least that of the sampler), in units of the sampler's bound."""
    if len(joined) == 2:
        return -np.expm1(np.minimum(epsilon + joined[0], 0.0))
    log_w, log_rho, _ = joined
    return sampler.payoffs(log_w, log_rho, epsilon)


def _error(payoffs):
    """The relative standard error of the mean."""
    mean = float(payoffs.mean())
    return float(payoffs.std()) / math.sqrt(len(payoffs)) / mean if mean > 0 else math.inf


def _method(samples, error, wanted, place=""):
    if error == math.inf:
        return f"{METHOD}; too few: no sample is above 0 there"
    found = named(METHOD, samples, error, wanted)
    return found if found == METHOD else found + place


def _root(sampler, joined, delta, mean=np.mean):
    """The epsilon at which the mean of these draws is `delta`, or inf; for "add" at least that of the sampler."""
    excess = lambda epsilon: float(mean(_payoffs(sampler, joined, epsilon))) * sampler.bound - delta
    low = sampler.epsilon if len(joined) == 2 else 0.0
    high = float((-joined[0] if len(joined) == 2 else joined[0]).max())
    if high <= low or excess(low) <= 0:
        return low
    if excess(high) > 0:
        return math.inf
    return float(optimize.brentq(excess, low, high, rtol=1e-10))
