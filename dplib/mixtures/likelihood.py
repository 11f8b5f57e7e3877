"""The likelihood ratio of a scalar mixture, standardised: u = x / sigma, shifts a_j = s_j / sigma.

The loss log(P/Q) = log sum_j p_j exp(a_j u - a_j^2 / 2) is increasing and convex-ish in u; its derivative is the
posterior mean of a_J.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import EPS, blocks, complex_log1p, inverse_log_sum, log_sum, log_sum_exp, turn_less_one
from .._base.validate import Direction
from ..gaussian import LOG_SQRT_2PI, log_tail_difference

_LARGE = 600.0  # of an exponent


class Likelihood:
    """What a mixture pair computes at standardised places: `Mixture` holds the shifts a_j and the probabilities p_j."""

    sensitivities: np.ndarray
    shifts: np.ndarray
    probabilities: np.ndarray
    log_probabilities: np.ndarray
    log_probability_error: float
    one_sided: bool
    cut_below: bool

    @property
    def is_trivial(self) -> bool:
        """All sensitivities are 0: the two sides are equal and epsilon is 0."""
        return self.sensitivities[-1] == 0

    @cached_property
    def log_floor(self) -> float:
        """Infimum of the log-ratio: log p_0 when some sensitivity is 0, else -inf."""
        if self.sensitivities[0] > 0:
            return -math.inf
        positive = math.fsum(self.probabilities[1:])
        return math.log1p(-positive) if positive < 0.5 else float(self.log_probabilities[0])

    @property
    def participation(self) -> float:
        """Probability of a sensitivity above 0."""
        return float(self.probabilities[self.shifts > 0].sum())

    def orientation(self, direction: Direction) -> int:
        """1 where P is the first law of the direction, -1 where the centred Gaussian is."""
        return 1 if direction == "remove" else -1

    def unmoved(self, direction: Direction) -> tuple[float, float]:
        """(log of the probability of sensitivity 0 under the first law of the direction, under the second)."""
        return (self.log_floor, 0.0) if direction == "remove" else (0.0, self.log_floor)

    @cached_property
    def variance_bound(self) -> float:
        """Upper bound on sup_u Var(a_J | u), the posterior variance of the shift."""
        return variance_bound(self.shifts, self.log_probabilities)

    def log_ratio(self, u: np.ndarray) -> np.ndarray:
        """log(P/Q) at standardised u, shape (n,)."""
        return self._posterior(u, moments=0)[0]

    def log_ratio_and_slope(self, u: np.ndarray) -> tuple[np.ndarray, ...]:
        """(log(P/Q), its derivative = posterior mean of the shift) at u, shape (n,)."""
        return self._posterior(u, moments=1)

    def turned(self, u: np.ndarray, v: float) -> np.ndarray:
        """What log(P/Q) gains from u to u + iv, shape (n,), complex: the log of the posterior mean of e^{iv a_J}."""
        a, log_p = self.shifts, self.log_probabilities
        mean = log_sum(a, log_p, u, turn_less_one(v * a))[1]
        return complex_log1p(mean.real, mean.imag)

    def steepest(self, u: np.ndarray) -> np.ndarray:
        """Bounds on the derivative of log(P/Q) between each place and the one before it, u increasing."""
        return self.log_ratio_and_slope(u)[1]

    def log_ratio_error(self, log_ratio: np.ndarray, slope: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Bound on the rounding error of log(P/Q) as computed, elementwise (`log_ratio` of either sign)."""
        positive = float(self.probabilities[self.shifts > 0].sum())
        size = np.abs(log_ratio)
        # A small loss is summed as log1p(sum p_j expm1(.)): its error scales with
        # sum p_j |expm1| <= |R - 1| + 2 P(a_J > 0).
        size = np.where(size < 0.3, np.minimum(1 + size, 2 * size + 2 * positive), 1 + size)
        error = (4 * EPS + self.log_probability_error) * size
        return error + 4 * EPS * slope * (np.abs(u) + slope)

    def log_density(self, u: np.ndarray) -> np.ndarray:
        """log of the standardised density of P, without the cancellation of loss - u^2/2."""
        a, log_p = self.shifts, self.log_probabilities
        if self._rare:
            return np.logaddexp(log_p[0] - u * u / 2, log_p[1] - (u - a[1]) ** 2 / 2) - LOG_SQRT_2PI
        out = np.empty(len(u))
        for rows, parts in blocks(a, log_p, u):
            terms = log_p[parts, None] - (u[rows] - a[parts, None]) ** 2 / 2
            top = terms.max(axis=0)
            terms -= top
            out[rows] = top + np.log(np.exp(terms, out=terms).sum(axis=0))
        return out - LOG_SQRT_2PI

    def log_tails(self, u: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
        """log of the masses of P and of Q above u (side 1) or below (-1), shape (n,)."""
        return log_tails_of(self, u, side), special.log_ndtr(-side * u)

    def laws(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """(shifts, probabilities) of P and of Q."""
        return (self.shifts, self.probabilities), (np.zeros(1), np.ones(1))

    def inverse_log_ratio(self, y: np.ndarray) -> np.ndarray:
        """Standardised u with log_ratio(u) = y, shape (n,); -inf where y <= log_floor."""
        y = np.asarray(y, float)
        u = np.full(y.shape, -np.inf)
        if self.is_trivial:
            return u
        inside = y > self.log_floor
        target = y[inside]
        if self.sensitivities[0] == 0:
            # Solve for the components with a positive shift: log(e^y - p_0).
            positive = math.fsum(self.probabilities[1:])
            small = np.abs(target) < 0.5
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                near = np.log(np.expm1(target) + positive)
                away = target + np.log1p(-np.exp(self.log_floor - target))
            target = np.where(small, near, away)
            a, log_p = self.shifts[1:], self.log_probabilities[1:]
        else:
            a, log_p = self.shifts, self.log_probabilities
        finite = np.isfinite(target)
        result = np.full(target.shape, -np.inf)
        result[finite] = inverse_log_sum(a, log_p, target[finite], self.variance_bound)
        # Where all terms are near their weights, their sum has lost the digits of a small loss: log1p has them.
        top = self.shifts[-1]
        near = np.flatnonzero((np.abs(y[inside]) < 0.3) & (top * (np.abs(result) + top) < 0.5))
        for _ in range(3 if len(near) else 0):
            value, slope = self._near_parts(result[near])
            result[near] -= (value - y[inside][near]) / slope
        u[inside] = result
        return u

    def log_hockey_stick(self, epsilon: np.ndarray, direction: Direction) -> np.ndarray:
        """log of the one-step delta, shape (n,), any real epsilon.

        remove: u* solves loss = eps; delta = sum_j p_j G(u* - a_j, a_j);
        add: u* solves loss = -eps; delta = sum_j w_j G(-u*, a_j), w the posterior
        at u*; G(x, a) = phi(x) (M(x) - M(x + a)) is the Gaussian delta.
        """
        epsilon = np.asarray(epsilon, float)
        u = self.inverse_log_ratio(epsilon if direction == "remove" else -epsilon)
        out = np.empty(len(epsilon))
        outside = np.isneginf(u)
        # Below its floor the loss is exceeded surely (remove) or never (add).
        with np.errstate(divide="ignore"):
            low = np.log(-np.expm1(np.minimum(epsilon[outside], 0.0)))
        out[outside] = low
        inside = ~outside
        if inside.any():
            out[inside] = self._log_delta_at(u[inside], direction)
        return out

    def _log_delta_at(self, u, direction):
        """log delta at the epsilon whose threshold is u (finite)."""
        self.check_direction(direction)
        positive = self.shifts > 0
        a, log_p = self.shifts[positive], self.log_probabilities[positive]
        if direction == "remove":
            x, log_weights = u[:, None] - a, np.broadcast_to(log_p, (len(u), len(a)))
        else:
            x = np.broadcast_to(-u[:, None], (len(u), len(a)))
            log_weights = log_p + a * (u[:, None] - a / 2) - self.log_ratio(u)[:, None]
        return log_sum_exp(log_weights + log_tail_difference(x, a))

    @cached_property
    def _near_one(self):
        """Ends of the interval of u on which |log(P/Q)| is at most 0.3."""
        return self.inverse_log_ratio(np.array([-0.3, 0.3]))

    @cached_property
    def _rare(self):
        """Whether there are two shifts, one of them 0, and the other one is no more likely than not."""
        return len(self.shifts) == 2 and self.shifts[0] == 0 and self.probabilities[1] <= 0.5

    def _posterior(self, u, moments):
        u = np.asarray(u, float)
        a, log_p = self.shifts, self.log_probabilities
        if self._rare:
            return rare_parts(a[1], log_p, self.probabilities[1], u, moments)
        low, high = self._near_one if log_p[-1] < 0 else (math.inf, -math.inf)
        near = (u >= low) & (u <= high)
        some, far = near.any(), ~near
        value, slope = np.empty(len(u)), np.empty(len(u) if moments else 0)
        parts = [(near, self._near_parts), (far, lambda x: log_sum(a, log_p, x, a if moments else None))]
        for chosen, evaluate in parts if some else parts[1:]:
            found = evaluate(u[chosen] if some else u)
            value[chosen] = found[0]
            if moments:
                slope[chosen] = found[1]
        return (value, slope) if moments else (value,)

    def _near_parts(self, u):
        return near_parts(self.shifts, self.log_probabilities, self.probabilities, u)


def log_tails_of(mixture, u, side):
    """log of the masses of P above u (side 1) or below (-1), shape (n,); place by place, as the components may be many."""
    return np.array([log_sum_exp(mixture.log_probabilities + special.log_ndtr(side * (mixture.shifts - x))) for x in u])


def variance_bound(a, log_p) -> float:
    """Upper bound on sup_u Var(a_J | u), the posterior variance of the shift.

    Popoviciu: at most (range / 2)^2. For equally spaced shifts d * (0..m) with
    log-concave weights the posterior ratios p_{j+1}/p_j fall at least by e^{-t},
    t = d^2, from one j to the next; |J - mode| is then dominated, in likelihood
    ratio, by the weights 1, 2 e^{-t i(i-1)/2} (i >= 1), whose second moment bounds
    the variance. The bound tends to 1 as d -> 0, for any number of components.
    """
    bound = ((a[-1] - a[0]) / 2) ** 2
    if len(a) > 2:
        gaps = np.diff(a)
        even = np.ptp(gaps) <= 1e-9 * gaps[0] and np.all(np.diff(log_p, 2) <= 0)
        if even and gaps[0] > 1e-3:
            t = gaps[0] ** 2
            i = np.arange(1.0, 4 + math.ceil(10 / gaps[0]))
            weights = 2 * np.exp(-t * i * (i - 1) / 2)
            bound = min(bound, t * (i * i @ weights) / (1 + weights.sum()) * (1 + 1e-9))
    return float(bound)


def rare_parts(a, log_p, p, u, moments):
    """(log(P/Q), with `moments` also the posterior mean of the shift) of two shifts, 0 and a, for p <= 1/2, at all u.

    log R = log1p(p expm1(a u - a^2/2)), whose argument is at least -1/2: both functions keep the relative accuracy of what they are given.
    """
    exponent = a * (u - a / 2)
    value = np.log1p(p * np.expm1(np.minimum(exponent, _LARGE)))
    large = exponent > _LARGE
    if large.any():  # 1 + p expm1(x) is 1 + p e^x there; p may be tiny
        product = log_p[1] + exponent[large]
        value[large] = np.logaddexp(0.0, product)
    return (value, a * special.expit(exponent + (log_p[1] - log_p[0]))) if moments else (value,)


def near_parts(a, log_p, p, u):
    """(log(P/Q), posterior mean of the shift) where the ratio is near 1.

    There the logarithm would lose the relative accuracy of a small loss:
    log R = log1p(sum_j p_j expm1(a_j u - a_j^2/2)) keeps it.
    """
    value, slope = np.empty(len(u)), np.empty(len(u))
    for rows, parts in blocks(a, log_p, u):
        exponent = a[parts, None] * (u[rows] - a[parts, None] / 2)
        share = p[parts, None]
        if exponent.max() < 600:
            terms = share * np.expm1(exponent, out=exponent)
        else:
            # A tiny probability times a huge ratio overflows only if taken apart.
            log_share = log_p[parts, None]
            terms = np.where(
                exponent < 1,
                share * np.expm1(np.minimum(exponent, 1.0)),
                np.exp(np.minimum(exponent + log_share, 2.0)) - share,
            )
        # A component that was left out still contributes expm1(-large) = -1.
        left_out = p[: parts.start or 0].sum() + p[parts.stop :].sum() if parts.stop else 0.0
        excess = terms.sum(axis=0) - left_out
        value[rows] = np.log1p(excess)
        terms += share
        slope[rows] = (a[parts] @ terms) / (1 + excess)
    return value, slope
