"""Pairs with mixtures on both sides: records that only P holds, and records that only Q holds [A-21]."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from .._base.log_space import EPS
from .._base.validate import Direction
from ..results import NoBracketError
from .likelihood import log_tails_of
from .pair import Mixture, _like

_KNOTS = 1500  # of the table that starts an inverse
_BEYOND, _NOTHING = 40.0, 60.0  # the last shift, where less than e^-800 of P is left; minus the log of a term that counts for nothing


class TwoSided:
    """P = sum_i p_i N(s_i, sigma^2) against Q = sum_j q_j N(-t_j, sigma^2), sensitivities s_i, t_j >= 0.

    Parameters
    ----------
    gained, lost : Mixtures of equal noise, neither of them trivial: the sensitivities of the records that only the first
        dataset holds, and of those that only the second one holds, in opposite directions.

    *Remove* means (P, Q), *add* (Q, P), which is the mirror image: the pair with both exchanged. Use `two_sided`, which
    also takes trivial mixtures. The loss log(P/Q) increases in the outcome from -inf to inf. Raises ValueError or
    TypeError on anything else.
    """

    is_trivial = False
    is_gaussian = False
    one_sided = False
    log_floor = -math.inf  # of the loss

    def __init__(self, gained: Mixture, lost: Mixture):
        for name, value in (("gained", gained), ("lost", lost)):
            if not isinstance(value, Mixture):
                raise TypeError(f"{name} must be a Mixture; got {value!r}")
            if value.is_trivial:
                raise ValueError(f"{name} must have a sensitivity above 0, else the pair is one-sided; got {value!r}")
        if gained.noise_multiplier != lost.noise_multiplier:
            raise ValueError(
                f"noise_multiplier must be equal on both sides; got {gained.noise_multiplier!r} and {lost.noise_multiplier!r}"
            )
        self.gained, self.lost, self.noise_multiplier = gained, lost, gained.noise_multiplier
        # Of P, as of a Mixture.
        self.sensitivities, self.shifts = gained.sensitivities, gained.shifts
        self.probabilities, self.log_probabilities = gained.probabilities, gained.log_probabilities
        self.log_probability_error = gained.log_probability_error + lost.log_probability_error

    def __repr__(self):
        return f"TwoSided(gained={self.gained!r}, lost={self.lost!r})"

    @property
    def is_symmetric(self) -> bool:
        """Whether both directions cost the same: one is the mirror image of the other."""
        return self.gained is self.lost or (
            np.array_equal(self.gained.shifts, self.lost.shifts)
            and np.array_equal(self.gained.log_probabilities, self.lost.log_probabilities)
        )

    @cached_property
    def swapped(self) -> TwoSided:
        """The pair (Q, P), mirrored, so that its loss increases as well."""
        return TwoSided(self.lost, self.gained)

    def facing(self, direction: Direction) -> TwoSided:
        """The pair whose *remove* is this direction, with the components that it sees: as `Mixture.facing`.

        Raises NoBracketError where what is left out of groups above 20,000 records decides the loss.
        """
        pair = self if direction == "remove" else self.swapped
        reference = pair.lost.facing("add")
        if reference.cut_below:
            # The least sensitivities of Q, where P is furthest from them: the terms are concave in the sensitivity.
            terms = reference.log_probabilities - reference.shifts * (pair.gained.shifts[-1] + _BEYOND + reference.shifts / 2)
            if terms[0] > terms.max() - _NOTHING:
                raise NoBracketError(
                    f"no bracket with noise {self.noise_multiplier:g}: a loss of one round above 1000, from sensitivities with "
                    "probabilities below e^-1500, which are left out of groups above 20,000 records"
                )
        return pair if reference is pair.lost else TwoSided(pair.gained, reference)

    def orientation(self, direction: Direction) -> int:
        """1: P is the first law of a pair that faces its direction."""
        return 1

    def unmoved(self, direction: Direction) -> tuple[float, float]:
        """(log of the probability of sensitivity 0 under P, under Q)."""
        first, second = self.gained.log_floor, self.lost.log_floor
        return (first, second) if direction == "remove" else (second, first)

    @property
    def variance_bound(self) -> float:
        """Upper bound on the posterior variance of either side's shift."""
        return max(self.gained.variance_bound, self.lost.variance_bound)

    @property
    def participation(self) -> float:
        """Probability of a sensitivity above 0, both sides together."""
        return self.gained.participation + self.lost.participation

    # -- standardised: u = x / sigma

    def log_ratio(self, u: np.ndarray) -> np.ndarray:
        """log(P/Q) at standardised u, shape (n,)."""
        return self.gained.log_ratio(u) - self.lost.log_ratio(-u)

    def posterior_means(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean of the shift under P, which increases in u, and of minus that under Q, which decreases."""
        return self.gained.log_ratio_and_slope(u)[1], self.lost.log_ratio_and_slope(-u)[1]

    def log_ratio_and_slope(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(log(P/Q), its derivative) at u, shape (n,)."""
        up, up_slope = self.gained.log_ratio_and_slope(u)
        down, down_slope = self.lost.log_ratio_and_slope(-u)
        return up - down, up_slope + down_slope

    def steepest(self, u: np.ndarray) -> np.ndarray:
        """Bounds on the derivative of log(P/Q) between each place and the one before it, u increasing."""
        up, down = self.posterior_means(u)
        return up + np.append(down[:1], down[:-1])

    def log_ratio_error(self, log_ratio: np.ndarray, slope: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Bound on the rounding error of log(P/Q) as computed, elementwise."""
        error = EPS * np.abs(log_ratio)
        for side, place in ((self.gained, u), (self.lost, -u)):
            value, mean = side.log_ratio_and_slope(place)
            error = error + side.log_ratio_error(value, mean, place)
        return error

    def log_density(self, u: np.ndarray) -> np.ndarray:
        """log of the standardised density of P."""
        return self.gained.log_density(u)

    def log_tails(self, u: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
        """log of the masses of P and of Q above u (side 1) or below (-1), shape (n,)."""
        return log_tails_of(self.gained, u, side), log_tails_of(self.lost, -u, -side)

    def _log_delta_at(self, u, direction):
        """log delta of one round at the epsilon whose threshold is u: the difference of two tails, -inf where it is lost."""
        first, second = self.log_tails(u, 1)
        gap = second + self.log_ratio(u) - first
        with np.errstate(divide="ignore"):
            return first + np.log(np.maximum(-np.expm1(np.minimum(gap, 0.0)), 0.0))

    def laws(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """(shifts, probabilities) of P and of Q."""
        return (self.gained.shifts, self.gained.probabilities), (-self.lost.shifts, self.lost.probabilities)

    def inverse_log_ratio(self, y: np.ndarray) -> np.ndarray:
        """Standardised u with log_ratio(u) = y, shape (n,): Newton's method from a table, kept between two of its knots."""
        y = np.asarray(y, float)
        if not len(y):
            return y.copy()
        low, high = -1.0, 1.0
        while self.log_ratio(np.array([low]))[0] > y.min():
            low *= 2
        while self.log_ratio(np.array([high]))[0] < y.max():
            high *= 2
        knots = np.linspace(low, high, min(len(y), _KNOTS) + 16)
        values, slopes = self.log_ratio_and_slope(knots)
        i = np.clip(np.searchsorted(values, y) - 1, 0, len(knots) - 2)
        left, right = knots[i], knots[i + 1]
        gap = np.maximum(values[i + 1] - values[i], 1e-300)
        share = np.clip((y - values[i]) / gap, 0.0, 1.0)
        # Cubic, with both places and both slopes of the inverse, and kept between the knots.
        rise, slopes = right - left, np.maximum(slopes, 1e-300)
        bend = (1 - share) * (gap / slopes[i] - rise) + share * (rise - gap / slopes[i + 1])
        u = np.clip(left + share * rise + share * (1 - share) * bend, left, right)
        curvature = self.gained.variance_bound + self.lost.variance_bound
        active = np.arange(len(y))
        for _ in range(100):
            at = u[active]
            value, slope = self.log_ratio_and_slope(at)
            slope = np.maximum(slope, 1e-300)
            miss = value - y[active]
            left[active] = np.where(miss < 0, at, left[active])
            right[active] = np.where(miss > 0, at, right[active])
            new = at - miss / slope
            outside = (new < left[active]) | (new > right[active])
            new = np.where(outside, (left[active] + right[active]) / 2, new)
            u[active] = new
            step = np.abs(new - at)
            # After a step of size d about curvature d^2 / (2 slope) is left at most; eight times that is asked for.
            step = np.where(outside, step, np.minimum(step, 4 * curvature / slope * step * step))
            active = active[step > 4 * EPS * (np.abs(at) + np.abs(y[active]) / slope + 1e-300)]
            if not len(active):
                break
        return u

    # -- public functions of the observed value x (in the units of the noise)

    def loss(self, x: ArrayLike) -> float | np.ndarray:
        """Privacy loss log(P/Q)(x) in the remove orientation; increasing in x."""
        x, scalar = check.grid("x", x)
        return _like(self.log_ratio(x.ravel() / self.noise_multiplier).reshape(x.shape), scalar)

    def inverse_loss(self, loss: ArrayLike) -> float | np.ndarray:
        """The x at which the loss is `loss`."""
        loss, scalar = check.grid("loss", loss)
        return _like(self.inverse_log_ratio(loss.ravel()).reshape(loss.shape) * self.noise_multiplier, scalar)


def two_sided(gained: Mixture, lost: Mixture) -> TwoSided | Mixture:
    """The pair of k inserted and m deleted records, or of records replaced by others [A-22].

    gained, lost : Mixtures of equal noise: the sensitivities of the records that only the first dataset holds, and of
    those that only the second one does. Where `lost` is trivial the pair is `gained`; two plain Gaussians are one.
    Raises ValueError or TypeError on anything else, and where `gained` alone is trivial: exchange both.

    >>> from dplib import accounting, mixtures
    >>> one = mixtures.binomial(trials=1, probability=0.02, noise_multiplier=1.0)
    >>> replaced = mixtures.two_sided(one, one)
    >>> print(f"{accounting.delta([(replaced, 100)], epsilon=1.55).upper:.4g}")
    7.754e-05
    """
    for name, value in (("gained", gained), ("lost", lost)):
        if not isinstance(value, Mixture):
            raise TypeError(f"{name} must be a Mixture; got {value!r}")
    if lost.is_trivial and gained.noise_multiplier == lost.noise_multiplier:
        return gained
    if gained.is_gaussian and lost.is_gaussian and not gained.is_trivial and gained.noise_multiplier == lost.noise_multiplier:
        return Mixture(gained.sensitivities + lost.sensitivities, np.ones(1), gained.noise_multiplier)
    return TwoSided(gained, lost)
