"""The saddle of exp(K(c) - c eps): where both accountants place their tilt."""

from __future__ import annotations

import math


def log_kernel(c):
    """log sup_{t>0} (1 - e^{-t}) e^{-ct} = log(c^c / (1+c)^(1+c)): Chernoff for hockey sticks."""
    return -c * math.log1p(1 / c) - math.log1p(c)


def saddle(moments, start=1.0, *, log_delta=None, epsilon=None):
    """The tilt c that minimises the Chernoff epsilon (or delta), kept above 1 / deviation.

    moments : function of a tilt, (K, K', K'') of the summed loss to a few digits.
    Any c > 0 gives exact bounds; the saddle only saves digits.
    """

    def condition(c):
        k, mean, variance = moments(c)
        if epsilon is None:
            return c * mean - k + log_delta + math.log1p(c), c * variance + 1 / (1 + c)
        return mean - epsilon - math.log1p(1 / c), variance + 1 / (c * (1 + c))

    low, high, c = 0.0, math.inf, start
    for _ in range(80):
        value, derivative = condition(c)
        if value < 0:
            low = c
        else:
            high = c
        new = c - value / derivative
        if not low < new < high or not math.isfinite(new):
            new = 4 * c if math.isinf(high) else (low * high) ** 0.5 if low else c / 4
        # Fast growth overshoots into the exploding part of K: at most a factor 4 up.
        new = min(max(new, c / 16), 4 * c)
        if abs(new - c) < 1e-3 * c:
            c = new
            break
        c = new
        if not 1e-14 < c < 1e30:
            break
    return float(max(c, 0.7 / math.sqrt(max(moments(c)[2], 1e-300))))
