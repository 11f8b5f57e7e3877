"""What a practitioner had before the mixture analysis: black-box routes to group privacy."""

from __future__ import annotations

import math

from . import _validate as check
from . import accounting, contour
from ._scipy import optimize
from .results import UpperEnd


def group_lemma(mechanism, delta, group_size, sharpened=False) -> UpperEnd:
    """Upper bound on a group's epsilon from the one-record guarantee alone [G-1.1].

    If one record has (e, delta_1(e)), then k records have (k e, k e^{ke} delta_1(e));
    sharpened: (k e, delta_1(e) (e^{ke} - 1) / (e^e - 1)). Returns k e for the least e
    that meets `delta`. Works with log delta_1, so it never overflows to infinity
    where the required delta_1 (1e-110 and below) underflows.

    mechanism : any mechanism with group_size 1. delta : in (0, 1). group_size : k >= 1.
    An upper bound (the upper end of each bracket is used), often a very loose one.
    Raises ValueError or TypeError on bad input. Cost: a few accountant calls.

    >>> from dplib import PoissonDPSGD, baselines
    >>> alone = PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000)
    >>> print(f"{baselines.group_lemma(alone, delta=1e-6, group_size=4):.1f}")
    28.4
    >>> print(f"{PoissonDPSGD(1.0, 0.01, 2000, group_size=4).epsilon(1e-6).upper:.1f}")
    14.6
    """
    delta, k, composition = _request(mechanism, delta, group_size)
    sharpened = check.flag("sharpened", sharpened)
    target = math.log(delta)
    if not accounting.merged(composition):
        return UpperEnd(0.0)
    first = accounting.epsilon(composition, delta).upper
    if first == 0 or (k == 1 and sharpened):
        return first

    def growth(e):
        if sharpened:  # log((e^{ke} - 1) / (e^e - 1)), exact for small and large e
            return (k - 1) * e + math.log(math.expm1(-k * e) / math.expm1(-e))
        return math.log(k) + k * e

    def excess(e):
        return growth(e) + accounting.log_delta(composition, e).upper - target

    e = _chernoff_root(composition, growth, first, target)
    # The excess is nearly concave and falls there: the secant needs a few evaluations.
    old, step = None, math.inf
    for _ in range(20):
        value = excess(e)
        slope = (value - old[1]) / (e - old[0]) if old and e != old[0] else -math.inf
        if not math.isfinite(slope):
            near = e * (1 + 1e-4)
            slope = (excess(near) - value) / (near - e)
        step = value / slope if slope < 0 else -0.1 * e
        # The root is at least `first`, because the growth is at least 1: a step never leads below it.
        old, e = (e, value), max(e - step, (e + first) / 2)
        if abs(step) <= 1e-10 * e:
            break
    nudge = 1e-12
    while excess(e) > 0:  # to the safe side of the root
        e *= 1 + nudge
        nudge *= 4
    return UpperEnd(k * e)


def linear_extrapolation(mechanism, delta, group_size) -> float:
    """k * epsilon_1(delta): a rule of thumb, not a bound in either direction [G-4L].

    Arguments and errors as for `group_lemma`.
    """
    delta, k, composition = _request(mechanism, delta, group_size)
    return k * accounting.epsilon(composition, delta).upper


def _request(mechanism, delta, group_size):
    delta = check.delta(delta)
    k = check.whole("group_size", group_size, at_least=1)
    check.mechanism(mechanism)
    if getattr(mechanism, "group_size", 1) != 1:
        raise ValueError(f"mechanism must have group_size 1; got {mechanism.group_size!r}")
    return delta, k, mechanism.composition()


def _chernoff_root(composition, growth, low, target):
    """Where the lemma's delta, with Chernoff's bound for delta_1, meets the target: a start."""
    side = contour.Chernoff(accounting.merged(composition), "remove")
    rough = lambda e: growth(e) - target + side.log_delta(e)
    high = low
    while rough(high) > 0:
        low, high = high, 1.6 * high
    return optimize.brentq(rough, low, high, rtol=1e-6) if high > low else high
