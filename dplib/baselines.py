"""What a practitioner had before the mixture analysis: black-box routes to group privacy."""

from __future__ import annotations

import math

from . import _validate as check
from . import accounting


def group_lemma(mechanism, delta, group_size, sharpened=False) -> float:
    """Upper bound on a group's epsilon from the one-record guarantee alone [G-1.1].

    If one record has (e, delta_1(e)), then k records have (k e, k e^{ke} delta_1(e));
    sharpened: (k e, delta_1(e) (e^{ke} - 1) / (e^e - 1)). Returns k e for the least e
    that meets `delta`. Works with log delta_1, so it never overflows to infinity
    where the required delta_1 (1e-110 and below) underflows.

    mechanism : any mechanism with group_size 1. delta : in (0, 1). group_size : k >= 1.
    An upper bound (the upper end of each bracket is used), often a very loose one.
    """
    delta = check.delta(delta)
    k = check.whole("group_size", group_size, at_least=1)
    if getattr(mechanism, "group_size", 1) != 1:
        raise ValueError(f"mechanism must have group_size 1; got {mechanism.group_size!r}")
    composition, target = mechanism.composition(), math.log(delta)
    if not accounting.merged(composition):
        return 0.0

    def excess(e):
        if sharpened:
            # log((e^{ke} - 1) / (e^e - 1)), exact for small and large e.
            growth = (k - 1) * e + math.log(math.expm1(-k * e) / math.expm1(-e))
        else:
            growth = math.log(k) + k * e
        return growth + accounting.log_delta(composition, e).upper - target

    low = accounting.epsilon(composition, delta).lower
    if k == 1:
        return accounting.epsilon(composition, delta).upper
    low = max(low, 1e-6)
    if excess(low) <= 0:
        return k * low
    high = low
    while excess(high) > 0:
        high *= 1.6
        if high > 1e12:
            return math.inf
    from scipy import optimize  # here, because it doubles the time of `import dplib`

    root = optimize.brentq(excess, high / 1.6, high, rtol=1e-12)
    # Step to the safe side of the root.
    while excess(root) > 0:
        root *= 1 + 1e-12
    return k * root


def linear_extrapolation(mechanism, delta, group_size) -> float:
    """k * epsilon_1(delta): a rule of thumb, not a bound in either direction [G-4L]."""
    k = check.whole("group_size", group_size, at_least=1)
    return k * mechanism.epsilon(check.delta(delta)).upper
