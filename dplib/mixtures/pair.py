"""The scalar mixture-of-Gaussians pair [G-2.8]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from .._base.lazy_scipy import special
from .._base.log_space import EPS, log_sum_exp
from .._base.validate import Direction
from ..gaussian import LOG_SQRT_2PI
from ..results import NoBracketError
from .likelihood import Likelihood


@dataclass(frozen=True, eq=False)
class Mixture(Likelihood):
    """A scalar mixture-of-Gaussians pair.

    Parameters
    ----------
    sensitivities : shape (m,), each 0 or at least 1e-300 noise multipliers, in the units of the clip norm.
    probabilities : shape (m,), non-negative, summing to 1 within 1e-12.
    noise_multiplier : sigma > 0, the standard deviation of the noise.

    Equal sensitivities are merged, zero-probability ones dropped, the rest sorted.
    Raises ValueError or TypeError on anything else.
    """

    sensitivities: np.ndarray
    probabilities: np.ndarray
    noise_multiplier: float

    def __post_init__(self):
        sigma = check.noise_multiplier(self.noise_multiplier)
        s = check.vector("sensitivities", self.sensitivities, at_least=0)
        p = check.probabilities("probabilities", self.probabilities, len(s))
        least = s.min(where=s > 0, initial=math.inf)
        if least / sigma < 1e-300:
            raise ValueError(f"sensitivities must be 0 or at least 1e-300 noise multipliers; got {float(least)!r} with {sigma!r}")
        with np.errstate(divide="ignore"):
            self._set(sigma, s, np.log(p), log_probability_error=4 * EPS)

    @classmethod
    def _from_logs(cls, sigma, sensitivities, log_probabilities, error, one_sided=False, longer=None, cut_below=False):
        """Constructor for weights known in logs (a binomial tail can underflow)."""
        mixture = object.__new__(cls)
        mixture._set(sigma, np.asarray(sensitivities, float), log_probabilities, error, one_sided, longer, cut_below)
        return mixture

    def _set(self, sigma, s, log_p, log_probability_error, one_sided=False, longer=None, cut_below=False):
        values, merged = _merged(s, log_p)
        for name, value in (
            ("sensitivities", values),
            ("probabilities", np.exp(merged)),
            ("noise_multiplier", sigma),
            ("shifts", values / sigma),
            ("log_probabilities", merged),
            # Bound on the rounding error of each log-probability that matters.
            ("log_probability_error", log_probability_error),
            # Whether small sensitivities are left out that only the reference sees: see `check_direction`.
            ("one_sided", one_sided),
            # Makes the mixture with them.
            ("_longer", longer),
            # Whether there are smaller sensitivities, with probabilities below e^-1500, which are left out.
            ("cut_below", cut_below),
        ):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)
        if not np.all(np.isfinite(self.shifts * self.shifts)):
            raise ValueError(
                "noise_multiplier must not be so small that (sensitivity / noise_multiplier)^2 "
                f"overflows; got {sigma!r}"
            )

    def facing(self, direction: Direction) -> Mixture:
        """The mixture to compute with in this direction: this one, or for "add" the one with the components that it sees.

        Of more than 20,000 trials the weights below e^-1500 are left out. If the reference lies so far below the rest,
        one round's loss in direction "add" is above 1000, and these weights decide it. Raises NoBracketError where the
        reference is more than a million trials below the rest.
        """
        found = self._for_add if direction == "add" and self.one_sided else self
        found.check_direction(direction)
        return found

    @cached_property
    def _for_add(self):
        return self._longer() if self._longer else self

    def check_direction(self, direction: Direction) -> None:
        """Raises NoBracketError for "add" where components that this mixture has left out decide it: see `facing`."""
        if direction == "add" and self.one_sided:
            raise NoBracketError(
                f"no bracket in direction 'add': a loss of one round above 1000, from sensitivities below {self.sensitivities[0]:g} "
                "with probabilities below e^-1500, which are left out; direction 'remove' is the larger one"
            )

    def __repr__(self):
        return (
            f"Mixture({len(self.sensitivities)} sensitivities in "
            f"[{self.sensitivities[0]:g}, {self.sensitivities[-1]:g}], "
            f"noise_multiplier={self.noise_multiplier:g})"
        )

    @property
    def is_gaussian(self) -> bool:
        """A single sensitivity: the plain Gaussian mechanism."""
        return len(self.sensitivities) == 1

    @property
    def is_symmetric(self) -> bool:
        """Whether both directions cost the same."""
        return self.is_gaussian

    # -- public functions of the observed value x (in the units of the noise) --

    def loss(self, x: ArrayLike) -> float | np.ndarray:
        """Privacy loss log(P/Q)(x) in the remove orientation; increasing in x."""
        x, scalar = check.grid("x", x)
        return _like(self.log_ratio(x.ravel() / self.noise_multiplier).reshape(x.shape), scalar)

    def inverse_loss(self, loss: ArrayLike) -> float | np.ndarray:
        """The x at which the loss is `loss`; -inf at or below the loss's infimum."""
        loss, scalar = check.grid("loss", loss)
        u = self.inverse_log_ratio(loss.ravel()).reshape(loss.shape)
        return _like(u * self.noise_multiplier, scalar)

    def density(self, x: ArrayLike) -> float | np.ndarray:
        """Density of P at x."""
        x, scalar = check.grid("x", x)
        u = np.clip(x.ravel() / self.noise_multiplier, -1e150, 1e150)
        log_density = self.log_density(u).reshape(x.shape)
        return _like(np.exp(log_density) / self.noise_multiplier, scalar)

    def reference_density(self, x: ArrayLike) -> float | np.ndarray:
        """Density of Q at x."""
        x, scalar = check.grid("x", x)
        u = np.clip(x / self.noise_multiplier, -1e150, 1e150)
        return _like(np.exp(-u * u / 2 - LOG_SQRT_2PI) / self.noise_multiplier, scalar)

    def survival(self, x: ArrayLike) -> float | np.ndarray:
        """P(X > x)."""
        x, scalar = check.grid("x", x)
        u = x.reshape(-1, 1) / self.noise_multiplier
        tail = special.ndtr(self.shifts - u) @ self.probabilities
        return _like(tail.reshape(x.shape), scalar)

    def reference_survival(self, x: ArrayLike) -> float | np.ndarray:
        """Q(X > x)."""
        x, scalar = check.grid("x", x)
        return _like(special.ndtr(-x / self.noise_multiplier), scalar)

    def hockey_stick(self, epsilon: ArrayLike, direction: Direction = "remove") -> float | np.ndarray:
        """One-step delta in closed form, for every real epsilon (array in, array out).

        A positive sum of Gaussian deltas (no cancellation); relative accuracy
        about 1e-12, limited by the rounding of epsilon itself. direction:
        "remove" or "add". Raises ValueError or TypeError on bad input, NoBracketError
        as `facing`.
        """
        epsilon, scalar = check.grid("epsilon", epsilon)
        mixture = self.facing(check.direction(direction, both=False))
        values = np.exp(mixture.log_hockey_stick(epsilon.ravel(), direction))
        return _like(values.reshape(epsilon.shape), scalar)


def _merged(values, log_p):
    # Different values, sorted, with the logs of their probabilities; those without any are dropped.
    values, group = np.unique(values, return_inverse=True)
    merged = np.full(len(values), -np.inf)
    np.logaddexp.at(merged, group, log_p)
    keep = merged > -np.inf
    values, merged = values[keep], merged[keep]
    merged -= log_sum_exp(merged)
    if len(values) == 1:
        merged[:] = 0.0
    return values, merged


def _like(array, scalar):
    return float(array) if scalar else array
