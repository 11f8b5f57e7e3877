"""The least argument at which something that falls is at most 0, on the safe side: every smallest noise, or delta."""

from __future__ import annotations

import math

_BLURRED = 0.2  # share of what is uncertain about the excess, nearer than which no search goes
FARTHEST = 5e-4  # and the most that this may be


def smallest(excess, x, slope, tolerance, blur=lambda: 0.0, reach=1.0, enough=0.0):
    """(least x to `tolerance`, on the safe side, with excess(x) <= 0; last slope); excess decreases.

    blur : function without arguments, how uncertain the last excess was: nearer than that no search need go.
    reach : the longest step. enough : an excess of at least minus this, and at most 0, ends the search.
    """
    low, high = -math.inf, math.inf
    last_x = last_value = math.nan
    for _ in range(200):
        value = excess(x)
        if value > 0:
            low = x
        else:
            high = x
        if -enough < value <= 0 or high - low <= max(tolerance, min(_BLURRED * blur() / -slope, FARTHEST)):
            break
        # Closer than this, rounding of the bracket would spoil the secant's slope.
        if abs(x - last_x) > min(30 * tolerance, 3e-3) and math.isfinite(value - last_value):
            secant = (value - last_value) / (x - last_x)
            slope = secant if secant < 0 else slope
        last_x, last_value = x, value
        move = min(max(-value / slope, -reach), reach)
        # Beyond the root, so that both sides close in.
        new = x + move + math.copysign(0.4 * tolerance, move)
        if not low < new < high:
            # 0.45 rather than a half: the safe side is the one that is kept.
            new = low + 0.45 * (high - low) if math.isfinite(high - low) else x + math.copysign(reach, move)
        x = new
    return high, slope
