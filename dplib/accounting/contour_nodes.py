"""Factors of the contour integral: mixtures on one set of shifts, evaluated together.

A family holds mixtures whose shifts lie on one grid (often a single mixture), in one
direction. All of them share the nodes u of one trapezoid rule, so that their ratios
R = P/Q are matrix products, and every bound of `contour` is computed for all rows at
once. Arrays have one row for each mixture, one column for each node or frequency.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from .._base.log_space import EPS, complex_log1p, log_sum_exp, turn_less_one
from ..gaussian import LOG_SQRT_2PI
from ..results import NoBracketError
from .contour_quadrature import NEGLIGIBLE, STRIP_CAP, Quadrature, line_of, turned_sums

BLOCK = 1_000_000  # entries held at once
_ALL = 10.0  # all but 1e-23 of a Gaussian lies within
_ROUNDING_SAFETY = 2.0  # errors seen against 40 digits stay below 1/20 of the allowance
_LARGEST_EXPONENT = 300.0  # of a ratio that a family sums as a plain matrix product


class Family:
    """Mixtures in one direction, with their rounds: weights, losses and their bounds."""

    negative_tilts = True

    def __init__(self, mixtures, rounds, sign):
        self.mixtures, self.sign = mixtures, sign  # +1 remove (base density P, loss log R), -1 add
        self.rounds = np.array(rounds, float)
        self.shift = np.array([float(m.shifts[-1]) for m in mixtures])
        # A plain Gaussian factor has no variance; any strip would do.
        self.variance = np.array([max(m.variance_bound, 1e-12) for m in mixtures])
        self.spread = self.variance  # bound on the second derivative of the loss
        self.log_error = np.array([m.log_probability_error for m in mixtures])
        if len(mixtures) == 1:
            self.shifts, self.log_p = mixtures[0].shifts, mixtures[0].log_probabilities[None]
        else:
            self.shifts = np.unique(np.concatenate([m.shifts for m in mixtures]))
            self.log_p = np.full((len(mixtures), len(self.shifts)), -np.inf)
            for row, mixture in zip(self.log_p, mixtures):
                row[np.searchsorted(self.shifts, mixture.shifts)] = mixture.log_probabilities
        self.terms = len(self.shifts)  # of a sum, at most
        self._coarse_reach = -1.0

    def power(self, c):
        """The exponent of R in the integrand phi R^power at tilt c."""
        return 1 + c if self.sign > 0 else -c

    # -- the integrand at nodes

    @cached_property
    def _p(self):
        return np.exp(self.log_p)

    def _tabulates(self, u):
        """Whether the ratios at u are plain matrix products: many rows, moderate exponents."""
        reach = float(self.shifts[-1]) * (float(np.abs(u).max()) + float(self.shifts[-1]))
        return len(self.mixtures) > 1 and reach <= _LARGEST_EXPONENT

    def _exponents(self, u):
        """log of what the shifts multiply the standard Gaussian's density by, shape (shifts, n)."""
        return self.shifts[:, None] * (u - self.shifts[:, None] / 2)

    def log_ratio_and_slope(self, u):
        """(log R, its derivative = posterior mean of the shift), shape (rows, n)."""
        if len(self.mixtures) == 1:
            value, slope = self.mixtures[0].log_ratio_and_slope(u)
            return value[None], slope[None]
        if not self._tabulates(u):
            parts = [m.log_ratio_and_slope(u) for m in self.mixtures]
            return tuple(np.stack(part) for part in zip(*parts))
        exponent = self._exponents(u)
        powers = np.exp(exponent)
        ratio = self._p @ powers
        slope = ((self._p * self.shifts) @ powers) / ratio
        # Near R = 1 the logarithm keeps its digits only as log1p(sum p_j expm1(.)).
        with np.errstate(divide="ignore", invalid="ignore"):
            near = np.log1p(self._p @ np.expm1(exponent))
        return np.where(ratio > 0.5, near, np.log(ratio)), slope

    def evaluate(self, u):
        """(log base density, loss, (posterior mean of the shift,)) at nodes u, arrays of shape (rows, n)."""
        log_ratio, slope = self.log_ratio_and_slope(u)
        if self.sign < 0:
            base = np.broadcast_to(-u * u / 2 - LOG_SQRT_2PI, log_ratio.shape)
        elif self._tabulates(u):
            base = log_ratio - u * u / 2 - LOG_SQRT_2PI
        else:
            base = np.stack([m.log_density(u) for m in self.mixtures])
        return base, self.sign * log_ratio, (slope,)

    def lift(self, u, loss):
        """log of the base density over the standard Gaussian's at nodes u, shape (rows, n); its error is at most that of the loss."""
        return loss if self.sign > 0 else np.zeros_like(loss)

    def rounding(self, u, base, loss, means):
        """Bounds on the rounding errors of (log base density, loss) at nodes u."""
        [slope] = means
        if not self._tabulates(u):
            rows = zip(self.mixtures, loss, slope)
            error = np.stack([m.log_ratio_error(row, mean, u) for m, row, mean in rows])
            return EPS * (8 + np.abs(base)), error
        # A product of J terms, each with the error of its weight; then the logarithm and exponents.
        size = np.where(self._p > 0, self.terms + 8 - self.log_p, 0.0)
        weights = self._p * (EPS * size + self.log_error[:, None])
        exponent = self._exponents(u)
        far = loss * self.sign < math.log(0.5) + 1e-9
        error = np.where(far, weights @ np.exp(exponent), weights @ np.abs(np.expm1(exponent)))
        error *= np.exp(-self.sign * loss)
        error += 4 * EPS * (np.abs(loss) + slope * (np.abs(u) + self.shifts[-1]))
        size = EPS * (8 + u * u + np.abs(loss))
        return size + (error if self.sign > 0 else 0.0), error

    # -- bounds between the nodes on the weight w = base density * e^{c loss}, from the posterior means at the nodes

    def drift(self, c, u, means):
        """The derivative of log w at the nodes."""
        return self.power(c) * means[0] - u

    def bend(self, c):
        """The second derivative of log w is at most 1 plus this times the bound on that of the loss, in size."""
        return abs(self.power(c))

    def fall(self, c):
        """How far the second derivative of log w may lie below -1."""
        return max(-self.power(c), 0.0) * self.variance

    def steepest(self, c):
        """Bound on the derivative of log w, plus u, in size."""
        return abs(self.power(c)) * self.shift

    def on_cells(self, means):
        """On each cell: the loss is as steep as this at least and at most (as the posterior mean, which increases), and bends by at most this."""
        least, most = means[0][:, :-1], means[0][:, 1:]
        return least, most, np.minimum(self.variance[:, None], self.shift[:, None] * most)

    def rates(self, c, low, high, means):
        """Rates at which w falls, at least, to the left of `low` and to the right of `high`; negative ones say nothing."""
        w, (m,) = self.power(c), means
        # The log-derivative of the integrand is -u + w m(u), 0 <= m <= shift, m increasing.
        if w <= 0:
            return w * m[:, 0] - low, high - w * m[:, -1]
        right, concave = high - w * self.shift, w * self.variance <= 1
        right[concave] = np.maximum(right, high - w * m[:, -1])[concave]
        return np.full(len(right), -low), right

    def lines(self, c, a, means):
        """`off_axis` on the lines v = a, shapes (lines, rows, n): a column for each cell, and the last one for all that lies outside.

        a : shape (lines, rows, 1).
        """
        highest = (with_end(means[0][:, 1:], self.shift),)
        return self.off_axis(c, a, highest, self.variances_on(highest))

    def off_axis(self, c, a, highest, variances):
        """(log of the factor by which the integrand at u + ia may exceed its real weight, argument of the ratio there).

        highest : the largest posterior mean m where u may be, variances : the largest variance. |R(u+ia)| lies in [1 - k, 1] R(u), and
        |arg R(u+ia)| is at most a m(u) + arcsin k, k = a^2 Var(a_J | u) / 2.
        """
        k = a * a / 2 * variances[0]
        fall = max(-self.power(c), 0.0)
        return a * a / 2 - fall * np.log1p(-k), a * highest[0] + math.pi / 2 * k

    def turned(self, c, u, a):
        """What log f and the loss gain from u to u + ia, or to u - ia where the loss falls, without the Gaussian's part: complex, shape (rows, n).

        a : shape (rows, 1).
        """
        if self._tabulates(u):
            turns, powers = turn_less_one(a * self.shifts), np.exp(self._exponents(u))
            gain = complex_log1p(*((self._p * part) @ powers / (self._p @ powers) for part in (turns.real, turns.imag)))
        else:
            gain = np.stack([m.turned(u, height) for m, height in zip(self.mixtures, a[:, 0].tolist())])
        gain = gain if self.sign > 0 else gain.conj()
        return self.power(c) * gain, self.sign * gain

    def between(self, left, right):
        """(least, largest) posterior means between two places, from those at both: they increase in u."""
        return left, right

    def variances_on(self, highest, lowest=(0.0,)):
        """(bound on the posterior variance,) where the posterior mean m is at most `highest`: (a_max - m) m, and at most the bound everywhere."""
        return (variance_at(self.variance[:, None], self.shift[:, None], lowest[0], highest[0]),)

    def rise(self, c, variances):
        """Bound on the second derivative of log w, plus 1."""
        return max(self.power(c), 0.0) * variances[0]

    # -- where the integrand lives

    def humps(self, c):
        """Heights and centres of the terms of sum_j p_j^w phi e^{w(a_j u - a_j^2/2)}, w > 0.

        (sum of m terms)^w <= m^{max(w-1,0)} * sum of w-th powers, so these Gaussians
        bound the integrand from above, up to the returned log factor.
        """
        a, w = self.shifts, self.power(c)
        heights = w * self.log_p + w * (w - 1) * a * a / 2
        return heights, w * a, max(w - 1, 0.0) * math.log(len(a))

    def window(self, c_low, c_high):
        """An interval outside of which the weights at tilts in [c_low, c_high] are negligible."""
        ends = []
        for c in (c_low, c_high):
            if self.power(c) > 0:
                heights, centres, slack = self.humps(c)
                # The largest hump is a lower bound of the integral (w >= 1).
                room = NEGLIGIBLE + 4 + slack + heights - heights.max(axis=1, keepdims=True)
                reach = np.sqrt(2 * room.max(axis=0).clip(0.0))
                alive = reach > 0
                ends += [(centres - reach)[alive].min(), (centres + reach)[alive].max()]
            else:
                low, high = self._modes(-self.power(c))
                reach = math.sqrt(2 * (NEGLIGIBLE + 4))
                ends += [low - reach, high + reach]
        return float(min(ends)), float(max(ends))

    def _modes(self, c):
        """Range of the modes of the log-concave weights phi R^{-c}: u = -c * (posterior mean at u)."""
        modes = []
        for extreme in (np.max, np.min) if len(self.mixtures) > 1 else (np.max,):
            low, high = -c * float(self.shift.max()), 0.0
            for _ in range(60):
                if high - low < 0.5:
                    break
                u = np.linspace(low, high, 17)
                slope = extreme(self.log_ratio_and_slope(u)[1], axis=0)
                positive = np.flatnonzero(u + c * slope > 0)
                first = positive[0] if len(positive) else 16
                low, high = u[max(first - 1, 0)], u[first]
            modes.append((low + high) / 2)
        return modes[0], modes[-1]

    def coarse(self, c):
        """(K, K', K'') of the family at tilt c on a coarse grid, good to a few digits: for choosing c."""
        if c > self._coarse_reach:
            self._coarse_reach = 4 * c if c > 1 else max(2 * c, 0.0)
            low, high = self.window(-1.0 if c < 0 else 0.0, self._coarse_reach)
            step = min(0.5, 0.6 / math.sqrt(float(self.variance.max()) + 1e-9))
            count = int(math.ceil((high - low) / step)) + 1
            if count > 400_000:
                raise NoBracketError(f"the contour needs {count} coarse nodes")
            u = np.linspace(low, high, count)
            base, loss, _ = self.evaluate(u)
            self._coarse = base + math.log(u[1] - u[0]), loss
        base, loss = self._coarse
        weights = base + c * loss
        top = weights.max(axis=1)
        weights = np.exp(weights - top[:, None])
        total = weights.sum(axis=1)
        weights /= total[:, None]
        mean = np.einsum("fu,fu->f", weights, loss)
        spread = loss - mean[:, None]
        variance = np.einsum("fu,fu,fu->f", weights, spread, spread)
        parts = np.stack([top + np.log(total), mean, variance])
        return tuple((parts @ self.rounds).tolist())


def variance_at(bound, top, lowest, highest):
    """Bound on the variance of a shift between 0 and `top` with a mean between `lowest` and `highest`."""
    return np.minimum(bound, (top * (1 + 8 * EPS) - lowest) * highest)


def with_end(means, shift):
    """Posterior means of the cells, and the largest shift in a last column."""
    return np.append(means, np.broadcast_to(shift[:, None], (len(means), 1)), axis=1)


def nodes_for(family, c, c_low, c_high, frequency):
    """Nodes of a family, fine enough for tilt c and frequencies up to about `frequency`; their window serves tilts from c_low to c_high."""
    low, high = family.window(c_low, c_high)
    strip = min(1 / math.sqrt(float(family.variance.max())), STRIP_CAP)
    step = 2 * math.pi * strip / (NEGLIGIBLE + strip * strip / 2)
    for _ in range(14):
        count = int(math.ceil((high - low) / step)) + 1
        if count > 200_000:
            break
        grid = Nodes(family, c, low, step, count)
        if grid.quadrature.serves(frequency):
            return grid
        step = min(step / 1.2, grid.quadrature.finer_step(frequency))
    raise NoBracketError(f"the contour needs more than {count} nodes in u")


class Nodes:
    """Trapezoid nodes of one family: weights at tilt c, moments, the transform, and how both round."""

    log_floor = -math.inf  # log of what the transform of all rounds tends to
    _excess = None  # of a moment that was summed with the digits of M - 1

    def __init__(self, family, c, low, step, count):
        self.family, self.c, self.step = family, c, step
        self.rounds = family.rounds
        self.u = low + step * np.arange(count)
        self.base, self.loss, self.means = family.evaluate(self.u)
        self._weigh()
        if low < -_ALL and self.u[-1] > _ALL and step < 0.5:
            self._sum_excess()
        self.quadrature = Quadrature(self)

    def _sum_excess(self):
        """The log-moment again, with the digits of M - 1: the Gaussian's own mass on these nodes is 1 within 1e-22."""
        exponent = self.family.lift(self.u, self.loss) + self.c * self.loss
        terms = self.step * np.expm1(np.minimum(exponent, 700.0)) * np.exp(-self.u * self.u / 2 - LOG_SQRT_2PI)
        if exponent.max() < 700:
            self.log_moment = np.log1p(terms.sum(axis=1))
            self._excess = np.abs(terms) * np.exp(-self.log_moment)[:, None], np.abs(exponent)

    def _weigh(self):
        """Weights of the nodes at the tilt, and what follows from them."""
        log_weights = self.base + self.c * self.loss
        top = log_weights.max(axis=1)
        weights = np.exp(log_weights - top[:, None])
        total = weights.sum(axis=1)
        self.log_weights = log_weights - top[:, None] - np.log(total)[:, None]
        self.log_moment = top + np.log(total * self.step)
        weights /= total[:, None]
        # Nodes that carry nothing are dropped from the sums (less than 1e-19 together).
        self.alive = (weights > 1e-19 / len(self.u)).any(axis=0)
        self.weights = weights[:, self.alive]
        loss = self.loss[:, self.alive]
        self.mean = np.einsum("fu,fu->f", self.weights, loss)
        self.centred = loss - self.mean[:, None]
        self.deviation = np.sqrt(np.einsum("fu,fu,fu->f", self.weights, self.centred, self.centred))

    def log_characteristic(self, y):
        """log phi(y) and |phi(y) - 1| of the tilted loss centred at its mean, at evenly spaced frequencies, shape (rows, n).

        phi - 1 is summed as it is, so that log1p keeps the digits that a power of 10^6 needs.
        """
        if self.quadrature.on_axis(float(y[-1])):
            distance = turned_sums(self.weights, self.centred, y)
        else:
            distance = turned_sums(self.line.weights, self.line.loss, y)
        return complex_log1p(distance.real, distance.imag), np.abs(distance)

    @cached_property
    def line(self):
        """The nodes beside the axis, for high frequencies."""
        return line_of(self)

    def log_moments_at(self, tilts):
        """log E exp(c L) of all rounds for several tilts c on the same nodes, as computed."""
        rows = [log_sum_exp(self.base + c * self.loss) + math.log(self.step) for c in tilts]
        return np.array(rows) @ self.rounds

    # -- rounding

    @cached_property
    def _rounding_sums(self):
        """Weighted means of: errors of the log density and of the loss, |loss|, |loss - mean|."""
        terms = (*self._errors(), np.abs(self.loss[:, self.alive]), np.abs(self.centred))
        return [np.einsum("fu,fu->f", self.weights, term) for term in terms]

    def _errors(self):
        """Bounds on the rounding errors of (log density, loss) at the nodes that count."""
        keep = self.alive
        return self.family.rounding(self.u[keep], self.base[:, keep], self.loss[:, keep], tuple(mean[:, keep] for mean in self.means))

    def rounding(self, c):
        """Allowance for the rounding error of each log-moment at tilt c."""
        if c == self.c and self._excess is not None:
            return self._excess_rounding
        base, error, _, _ = self._rounding_sums
        return _ROUNDING_SAFETY * (base + abs(c) * error) + (
            self.family.log_error if self.family.sign > 0 else 0.0
        )

    @cached_property
    def _excess_rounding(self):
        """Allowance for the rounding error of the log-moment that `_sum_excess` finds."""
        size, exponent = self._excess
        each = EPS * (10 + self.u * self.u + math.log2(len(self.u)))
        _, error = self.family.rounding(self.u, self.base, self.loss, self.means)
        weights = np.exp(self.log_weights)
        return _ROUNDING_SAFETY * ((size * each).sum(axis=1) + (weights * ((1 + abs(self.c)) * error + 4 * EPS * exponent)).sum(axis=1))

    def characteristic_rounding(self, y, distance):
        """Allowance for the rounding error of phi(y), given |phi(y) - 1|, shape (rows, n)."""
        if not self.quadrature.on_axis(float(y[-1])):
            return _ROUNDING_SAFETY * self.line.rounding(y)
        return self.axis_rounding(y, distance)

    def axis_rounding(self, y, distance):
        """As `characteristic_rounding`, for sums on the axis."""
        base, error, loss, centred = self._rounding_sums
        scale = base + EPS * abs(self.c) * loss + self.family.log_error
        spread = error + EPS * centred
        return _ROUNDING_SAFETY * (scale[:, None] * np.minimum(distance + EPS, 2.0) + y * spread[:, None])
