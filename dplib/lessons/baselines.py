"""What a practitioner had before the mixture analysis: black-box routes to group privacy."""

from __future__ import annotations

import math

from .. import accounting, gaussian
from .._base import validate as check
from ..accounting import wide
from ..mechanisms.search import smallest
from ..results import NoBracketError, UpperEnd

_SLOPE = -10.0  # of the log of the lemma's delta, against log epsilon: where a search begins
_WIDE = 1e-3  # of log delta_1, relative: a wider bracket is compared with the bounds that always exist


def group_lemma(mechanism: object, delta: float, group_size: int, sharpened: bool = False) -> UpperEnd:
    """Upper bound on a group's epsilon from the one-record guarantee alone [G-1.1].

    If one record has (e, delta_1(e)), then k records have (k e, k exp(k e) delta_1(e));
    sharpened: (k e, delta_1(e) (exp(k e) - 1) / (exp(e) - 1)). Returns k e for the least e
    that meets `delta`. Works with log delta_1, so it never overflows to infinity
    where the required delta_1 (1e-110 and below) underflows.

    mechanism : any mechanism with group_size 1. delta : in (0, 1). group_size : k >= 1.
    An upper bound (the upper end of each bracket is used), often a very loose one.
    Raises ValueError or TypeError on bad input. Cost: a few accountant calls.

    >>> from dplib import PoissonDPSGD
    >>> from dplib.lessons import baselines
    >>> alone = PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000)
    >>> print(f"{baselines.group_lemma(alone, delta=1e-6, group_size=4):.1f}")
    28.4
    >>> print(f"{PoissonDPSGD(1.0, 0.01, 2000, group_size=4).epsilon(1e-6).upper:.1f}")
    14.6
    """
    delta, k, composition = _request(mechanism, delta, group_size)
    sharpened = check.flag("sharpened", sharpened)
    parts, target = accounting.merged(composition), math.log(delta)
    if not parts:
        return UpperEnd(0.0)
    if k == 1 and sharpened:
        return UpperEnd(accounting.epsilon(composition, delta).upper)

    def growth(e):
        if sharpened and e > 0:  # log((e^{ke} - 1) / (e^e - 1)), exact for small and large e
            return (k - 1) * e + math.log(math.expm1(-k * e) / math.expm1(-e))
        return math.log(k) + (0 if sharpened else k * e)

    excess = lambda e: growth(e) + _log_delta(parts, e) - target
    # The growth is at least k, so that the root is no smaller than this; 0 says that k delta_1(0) is small enough.
    share = math.nextafter(delta / k, 0.0)
    first = accounting.epsilon(composition, max(share, 5e-324)).upper
    if (first == 0 and share > 0) or excess(first) <= 0:
        return UpperEnd(k * first)
    x, _ = smallest(lambda x: excess(math.exp(x)), math.log(max(first, 1e-6)), _SLOPE, 1e-8)
    return UpperEnd(k * math.exp(x))


def _log_delta(parts, e):
    """Upper bound of log delta_1(e): the accountants', or those that always exist; every e has one."""
    try:
        # A search asks often: each within the work of a plain question.
        found = accounting.side_log_delta(parts, e, "remove")
        if found is None:
            return -math.inf
        if found.width <= _WIDE * (1 + abs(found.upper)):
            return found.upper
        bounds = [found.upper]
    except NoBracketError:
        bounds = []
    # Without sampling the pair is a Gaussian one, and dominates.
    mu = math.sqrt(math.fsum(rounds * float(m.shifts[-1]) ** 2 for m, rounds in parts)) * (1 + 1e-12)
    unsampled = gaussian.log_delta(mu, e)
    bounds.append(unsampled + 1e-9 * (1 + abs(unsampled)))
    return min(*bounds, wide.log_upper(parts, e, "remove"))


def linear_extrapolation(mechanism: object, delta: float, group_size: int) -> float:
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
