"""Where the contour integral is taken: any tilt is exact, and some ask for fewer frequencies than others.

The saddle loses no digits. But where large losses are rare, the law that is tilted there has much of its weight on them: it is spread
widely, while loss 0 stays sharp, and that asks for many frequencies. A smaller tilt keeps to the small losses, at the cost of some digits.
"""

from __future__ import annotations

import math

from ..results import NoBracketError

_SHARES = (1.0, 0.97, 0.93, 0.85, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1)  # of the saddle
_HARDLY = 6.0  # times the least variance
_LOST = (14.0, 9.0, 5.0)  # log of the sum over delta: what a tilt may lose at first, and where this was too much
_NARROW = 1e-7


def by_tilts(moments, saddle, epsilon, log_delta, integrate, ask):
    """The first narrow answer, else the narrowest, by tilts that lose fewer and fewer digits.

    moments : function of a tilt, (K, K', K'') to a few digits. log_delta : as far as it is known, or None. integrate(tilt, epsilon) :
    an integral. ask(integral) : (bracket, its relative width, epsilon and log delta as far as they are known now), or NoBracketError.
    """
    spreads = [(share * saddle, k, max(variance, 1e-300)) for share in _SHARES for k, _, variance in [moments(share * saddle)]]
    if log_delta is None:
        log_delta = min(_log_size(spread, epsilon) for spread in spreads) - 0.5 * math.log(2 * math.pi)
    found, tilt, reason = [], None, NoBracketError("the contour has no tilt to try")
    for most_lost in (*_LOST, None):  # last, the saddle itself
        before, tilt = tilt, saddle if most_lost is None else _calm(spreads, epsilon, log_delta, most_lost)
        if tilt == before:
            continue
        try:
            bracket, width, epsilon, log_delta = ask(integrate(tilt, epsilon))
        except NoBracketError as error:
            reason = error
            continue
        found.append((width, bracket))
        if width <= _NARROW:
            break
    if not found:
        raise reason
    return min(found, key=lambda each: each[0])[1]


def _calm(spreads, epsilon, log_delta, most_lost):
    """The largest tilt at which the loss hardly spreads more than at any smaller one that loses no more digits than this.

    spreads : (tilt, K, K'') of the tilts to choose from, decreasing. most_lost : log of the sum's size over delta.
    """
    lost = [_log_size(spread, epsilon) - log_delta for spread in spreads]
    allowed = [spread for spread, log in zip(spreads, lost) if log <= most_lost] or [spreads[lost.index(min(lost))]]
    least = min(variance for *_, variance in allowed)
    return next(tilt for tilt, _, variance in allowed if variance <= _HARDLY * least)


def _log_size(spread, epsilon):
    """log of the size of the sum over frequencies, about."""
    tilt, moment, variance = spread
    return moment - tilt * epsilon - math.log(tilt * (1 + tilt) * math.sqrt(variance))
