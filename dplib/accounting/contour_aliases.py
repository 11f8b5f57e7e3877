"""E1: the period of the sum over frequencies, and a bound on the aliases that come with it."""

from __future__ import annotations

import math

import numpy as np

from .chernoff import log_kernel

_AIM = -34.0  # log of the aliases over delta, about


class Aliases:
    """E1 at one tilt: the period, and moments at other tilts that bound the aliases."""

    def __init__(self, c, tilts, nodes, log_moment, s, epsilon):
        """The shortest period whose aliases do not matter, and certified moments that bound them."""
        self.c = c
        moments = sum(n.log_moments_at(tilts) for n in nodes)
        self._others = [(other, k, log_kernel(other)) for other, k in zip(tilts, moments.tolist())]
        aim = _AIM - math.log(abs(c * (1 + c)) * s)
        best = math.inf, 8 * s
        for multiple in (8, 9, 10, 12, 15, 20, 30, 50, 100, 200, 400, 1000, 3000):
            self.period = multiple * s
            value = self.log_bound(epsilon, log_moment)
            if value < best[0] - 0.5:
                best = value, multiple * s
            if value < aim:
                break
        self.period = best[1]
        self._certify(nodes, log_moment, epsilon)

    def log_bound(self, epsilon, log_moment):
        """log of a bound on the aliasing E1 over M(c) e^{-c eps}; log_moment : log M(c)."""
        c, period = self.c, self.period
        # Delta <= 1 below, or the miss <= 1 above; Chernoff at smaller tilts below, at larger ones above.
        gap = abs(c) * period
        below = c * epsilon - log_moment - gap - math.log(-math.expm1(-gap))
        above = math.inf
        if c < 0:
            below, above = above, below
        for other, k, kernel in self._others:
            value = self._at(other, k, kernel, epsilon, log_moment)
            if other < c:
                below = min(below, value)
            else:
                above = min(above, value)
        return float(np.logaddexp(below, above))

    def _at(self, other, k, kernel, epsilon, log_moment):
        """log of the Chernoff bound at another tilt on one side of the aliasing sum."""
        gap = abs(other - self.c) * self.period
        value = k - log_moment - (other - self.c) * epsilon + kernel
        return value - gap - math.log(-math.expm1(-gap))

    def _certify(self, nodes, log_moment, epsilon):
        """Of the tilts on each side keep the one that bounds best, with its certified moment."""
        ranked = sorted(self._others, key=lambda found: self._at(*found, epsilon, log_moment))
        self._others = []
        for side in (True, False):
            for other, _, kernel in ranked:
                if (other < self.c) is side:
                    moment = sum(n.quadrature.log_moment_bound(other) for n in nodes)
                    if math.isfinite(moment):
                        self._others.append((other, moment, kernel))
                        break
