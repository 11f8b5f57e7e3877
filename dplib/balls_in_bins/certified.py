"""The smallest noise, or epsilon, that a certificate proves: candidates near the estimated one [A-15], [N-2.1s].

A certificate is for one noise and one epsilon. Here a line estimate finds where delta meets the target, a
pilot predicts by how much the certified bound will exceed it, and a few candidates beyond are tried on fresh
samples. All candidates are fixed before the first is tried; each has its part of the failure probability beta.

In a search the failures of some candidates and the delta of a later one add up. So candidates are certified at
delta - beta, not at delta: then running the first one that passes, search included, is (epsilon, delta)-DP.
"""

from __future__ import annotations

import math

from ..results import Certificate
from . import certificate, importance_sampling

METHOD = "tuples"
MARGINS = (1.0, 3.0, 10.0)  # of the candidates, in units of the doubt about the prediction
_START_ERROR = 3e-3  # relative, of the estimated delta at the start


def certified_level(delta, failure_probability):
    """The level at which a search certifies to be (epsilon, delta)-DP: delta less the failures, rounded down [N-2.1s]."""
    return math.nextafter(delta - failure_probability, 0.0)


def falls(excess, doubt, log_value, level):
    """By how much log delta has to fall from `log_value` to each candidate, whose certified bound will be `excess` times delta, about."""
    return [math.log(excess * (1 + margin * doubt)) + log_value - math.log(level) for margin in MARGINS]


def first_certified(places, certify, level, samples):
    """The first of the places whose certified bound is at most `level`, and that bound; certify(place, number) -> bound.

    The places are fixed before any is tried on fresh samples, and each has its part of the failure probability: one
    that does not satisfy `level` is returned with at most the sum of these.
    """
    for number, place in enumerate(places):
        upper = certify(place, number)
        if upper <= level:
            return place, upper
    raise ValueError(
        f"samples must be more to certify delta <= {level:.6g}: no candidate up to {places[-1]:.6g} passed; got {samples!r}"
    )


def smallest_noise(gram, epsilon, delta, side, *, samples, failure_probability, seed):
    """(noise multiplier, Certificate of delta at `epsilon` there); gram at noise multiplier 1.

    The certificate's upper end plus its failure probability is at most `delta`.
    """
    delta = certified_level(delta, failure_probability)
    start, _ = importance_sampling.solve_scale(gram, epsilon, delta, side, seed=seed)
    found = importance_sampling.estimate(gram / start**2, epsilon, side, seed=seed, relative_error=_START_ERROR)

    at = lambda fall: start * math.exp(fall / -found.d_log_sigma)
    problem = lambda noise: (gram / noise**2, epsilon)
    noise, upper = _certified(at, problem, found, delta, side, samples, failure_probability, seed)
    return float(noise), Certificate(upper, failure_probability, samples, METHOD)


def smallest_epsilon(gram, delta, side, *, samples, failure_probability, seed) -> Certificate:
    """Certificate of an epsilon, a little above the smallest at which delta is at most `delta`; gram over sigma^2.

    There delta is at most `delta` less the failure probability, except with that probability.
    """
    delta = certified_level(delta, failure_probability)
    start, _ = importance_sampling.solve_epsilon(gram, delta, side, seed=seed)
    found = importance_sampling.estimate(gram, start, side, seed=seed, relative_error=_START_ERROR)

    at = lambda fall: max(start + fall / -found.d_epsilon, 0.0)
    epsilon, _ = _certified(at, lambda epsilon: (gram, epsilon), found, delta, side, samples, failure_probability, seed)
    return Certificate(epsilon, failure_probability, samples, METHOD)


def _certified(at, problem, found, delta, side, samples, failure_probability, seed):
    """The first candidate that passes: (what was looked for, the certified upper bound on delta there).

    at(fall) : what is looked for, where log delta is less by `fall`, about, than at the start. problem : of that, (gram, epsilon).
    found : the line estimate at the start.
    """
    share = failure_probability / len(MARGINS)
    plan = certificate.prepare(*problem(at(0.0)), side, samples, share, seed)
    excess = certificate.overshoot(plan, samples, share)
    spread = float(plan.pilot.std()) / math.sqrt(samples) / float(plan.pilot.mean())
    doubt = math.hypot(spread, found.relative_error)
    size = getattr(plan.sampler, "size", None)  # a problem so close by would get the same

    def certify(place, number):
        plan = certificate.prepare(*problem(place), side, samples, share, seed, size)
        return certificate.run(plan, samples, share, seed, (number, int(side == "add")))

    return first_certified([at(fall) for fall in falls(excess, doubt, found.log_value, delta)], certify, delta, samples)
