"""The noise multiplier at which a sampled delta is the one that was asked for, with fixed random numbers."""

from __future__ import annotations

import math

from ..results import NoBracketError

_MOST = 200


def root(at, x, log_delta, close):
    """(x, what `at` gave there), x = log sigma, with log delta within `close` of `log_delta`.

    at : x -> (log delta, its derivative, ...). Newton's method for sqrt(-log delta), nearly a straight line, inside a
    bracket whose ends lie on both sides; its middle where a step leads out of it.
    """
    goal, low, high, reach = math.sqrt(-log_delta), -math.inf, math.inf, 0.25
    for _ in range(_MOST):
        found = at(x)
        value, slope = found[:2]
        if abs(value - log_delta) < close:
            return x, found
        low, high = (x, high) if value > log_delta else (low, x)
        is_open = math.isinf(low) or math.isinf(high)
        height = math.sqrt(max(-value, 1e-9))
        move = (height - goal) * 2 * height / slope if math.isfinite(value) and slope < 0 else math.nan
        if not (low < x + move < high and (abs(move) < reach or not is_open)):
            move = math.copysign(reach, value - log_delta) if is_open else (low + high) / 2 - x
        x, reach = x + move, 2 * reach if is_open else reach
        if high - low < 1e-15 * max(abs(x), 1.0):
            return x, found
    raise NoBracketError("the noise multiplier for the target was not found; more samples may help")
