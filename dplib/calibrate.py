"""The smallest noise multiplier for a privacy target."""

from __future__ import annotations

import dataclasses
import math
from functools import partial

from . import _validate as check
from . import accounting

_TOLERANCE = 3e-9


def calibrate(mechanism, *, epsilon, delta, direction="both"):
    """The same mechanism with the smallest noise multiplier that meets the target.

    Parameters
    ----------
    mechanism : any mechanism of `dplib`; its own noise multiplier is the first guess.
    epsilon : at least 0. delta : in (0, 1). direction : "remove", "add" or "both".

    The *upper* bound of delta at `epsilon` meets `delta`; a noise multiplier smaller
    by 1e-8 (relative) would not. Raises ValueError when every noise multiplier
    meets the target, and on bad input. Cost: about six accountant calls.
    """
    epsilon, delta, direction = check.epsilon(epsilon), check.delta(delta), check.direction(direction)
    if not dataclasses.is_dataclass(mechanism) or not hasattr(mechanism, "noise_multiplier"):
        raise TypeError(f"mechanism must be a dplib mechanism; got {mechanism!r}")
    target, sides = math.log(delta), ("remove", "add") if direction == "both" else (direction,)

    def excess(log_noise, side):
        """log delta's upper bound, over the target: decreasing in the noise."""
        noisy = dataclasses.replace(mechanism, noise_multiplier=math.exp(log_noise))
        parts = accounting.merged(noisy.composition())
        bracket = accounting._side_log_delta(parts, epsilon, side, "auto")
        return -math.inf if bracket is None else bracket.upper - target

    solution = -math.inf
    for side in sides:
        # The second direction is only solved if the first one's noise does not do.
        if math.isfinite(solution) and excess(solution, side) <= 0:
            continue
        solution = _smallest(partial(excess, side=side), math.log(mechanism.noise_multiplier))
    return dataclasses.replace(mechanism, noise_multiplier=math.exp(solution))


def _smallest(excess, guess):
    """Least x (within the tolerance, on the safe side) with excess(x) <= 0, excess decreasing."""
    x, value = guess, excess(guess)
    low, high = (x, math.inf) if value > 0 else (-math.inf, x)
    low_value, high_value = (value, None) if value > 0 else (None, value)
    step = 0.5
    for _ in range(200):
        if low_value is not None and high_value is not None:
            if high - low <= _TOLERANCE:
                return high
            x = _between(low, low_value, high, high_value)
        else:
            x = low + step if high_value is None else high - step
            step *= 2
            if x < -14:
                raise ValueError("epsilon and delta are met by every noise multiplier: none is smallest")
        value = excess(x)
        if value > 0:
            low, low_value = x, value
        else:
            high, high_value = x, value
    return high


def _between(low, low_value, high, high_value):
    """A point inside (low, high), from the secant, kept where the bracket is sure to shrink."""
    width = high - low
    if math.isfinite(high_value):
        x = low + width * low_value / (low_value - high_value)
    else:
        x = low + width / 2
    return min(max(x, low + 0.02 * width), high - 0.02 * width)
