"""What the optimisers minimise: errors of prefix sums, or a function of one's own of (C, noise multiplier).

Every objective has

    value(table, noise_multiplier)         the number to report
    noise_slope(table, noise_multiplier)   its derivative by log noise_multiplier
    minimised(table, log_sigma)            (a number to minimise, its gradient by the table, its slope by log_sigma,
                                            the number to report, or one close to it)
"""

from __future__ import annotations

import math

import numpy as np

from .._base import lazy_jax
from .._base import validate as check
from .._base.user_functions import Compiled
from . import slopes

NAMES = ("rmse", "largest_error")


def make(objective):
    """The objective of a name or a function."""
    if callable(objective):
        return Custom(objective)
    if not isinstance(objective, str):
        raise TypeError(f"objective must be one of {NAMES} or a function; got {objective!r}")
    return Error(check.choice("objective", objective, NAMES) == "largest_error")


class Error:
    """sigma times an error of prefix sums at noise 1 [N-RMSE]; its logarithm is minimised."""

    def __init__(self, largest):
        self.largest = largest

    def value(self, table, noise_multiplier):
        return noise_multiplier * math.exp(slopes.log_error(table, self.largest)[0])

    noise_slope = value

    def minimised(self, table, log_sigma):
        log_error, slope = slopes.log_error(table, self.largest)
        return log_error + log_sigma, slope, 1.0, float(np.exp(min(log_error + log_sigma, 700.0)))


class Custom:
    """f(C, noise_multiplier), written with jax.numpy; minimised over its size at the start."""

    def __init__(self, function):
        self.function, self.unit = function, None
        self._evaluated = Compiled("objective", self._with_gradient)

    def value(self, table, noise_multiplier):
        return self._all(table, noise_multiplier)[0]

    def noise_slope(self, table, noise_multiplier):
        return self._all(table, noise_multiplier)[2] * noise_multiplier

    def minimised(self, table, log_sigma):
        sigma = math.exp(log_sigma)
        value, slope, by_sigma = self._all(table, sigma)
        if self.unit is None:
            self.unit = abs(value) or 1.0
        return value / self.unit, slope / self.unit, by_sigma * sigma / self.unit, value

    def _with_gradient(self, table, sigma):
        return lazy_jax.load().value_and_grad(self.function, argnums=(0, 1))(table, sigma)

    def _all(self, table, sigma):
        """(value, gradient by the table, derivative by the noise multiplier)."""
        value, (slope, by_sigma) = self._evaluated(table, float(sigma))
        value, slope, by_sigma = float(value), np.array(slope, float), float(by_sigma)
        if not (math.isfinite(value) and math.isfinite(by_sigma) and np.all(np.isfinite(slope))):
            raise ValueError(f"objective must be finite, with a finite gradient; got {value!r}")
        return value, slope, by_sigma
