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

from .._base.lazy_scipy import special
from .._base.log_space import EPS, complex_log1p, log_sum_exp
from ..gaussian import LOG_SQRT_2PI
from ..results import NoBracketError
from .contour_line import line_of, turned_sums, upper_line

NEGLIGIBLE = 46.0  # e^-46 = 1e-20: what may be left out before it is bounded
BLOCK = 1_000_000  # entries held at once
STRIP_CAP = 8.0  # widest strip used; e^{a^2/2} makes wider ones useless
# Half-widths at which the integrand is bounded, over the widest; fewer where there are many rows.
_STRIPS = np.array([1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08, 0.04])[:, None]
_FEW_STRIPS = np.array([1.0, 0.6, 0.35, 0.15])[:, None]
_ALL = 10.0  # all but 1e-23 of a Gaussian lies within
_ENOUGH = 1e-14  # of M(c)^T, what a quadrature may miss
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

    def log_ratio_and_slope(self, u):
        """(log R, its derivative = posterior mean of the shift), shape (rows, n)."""
        if len(self.mixtures) == 1:
            value, slope = self.mixtures[0].log_ratio_and_slope(u)
            return value[None], slope[None]
        if not self._tabulates(u):
            parts = [m.log_ratio_and_slope(u) for m in self.mixtures]
            return tuple(np.stack(part) for part in zip(*parts))
        exponent = self.shifts[:, None] * (u - self.shifts[:, None] / 2)
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
        count = len(self.shifts)
        size = np.where(self._p > 0, count + 8 - self.log_p, 0.0)
        weights = self._p * (EPS * size + self.log_error[:, None])
        exponent = self.shifts[:, None] * (u - self.shifts[:, None] / 2)
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
        return a * a / 2 - (fall * np.log1p(-k) if fall else 0.0), a * highest[0] + math.pi / 2 * k

    def turned(self, c, u, a):
        """What log f and the loss gain from u to u + ia, or to u - ia where the loss falls, without the Gaussian's part: complex, shape (rows, n).

        a : shape (rows, 1).
        """
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


def log_tails(family, c, ends, weights, means, enough):
    """[logs of bounds on the masses of the integrand left of an interval, right of it], shape (rows,) each.

    ends : of the interval, first and last, as are the columns of weights (their logs) and posterior means. Each side takes the
    smallest of: first log-derivative bound, log-concavity (w * variance <= 1), and, where one of these exceeds `enough`, the
    sum of Gaussian humps.
    """
    low, high = float(ends[0]), float(ends[-1])
    steep = family.rates(c, low, high, means)
    with np.errstate(divide="ignore", invalid="ignore"):
        sides = [np.where(rate > 0, weights[:, end] - np.log(rate), np.inf) for end, rate in zip((0, -1), steep)]
    if family.power(c) > 0 and (np.maximum(*sides) > enough).any():
        heights, centres, slack = family.humps(c)
        for i, x in enumerate((low - centres, centres - high)):
            sides[i] = np.minimum(sides[i], slack + log_sum_exp(heights + special.log_ndtr(x)))
    return sides


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
        base, error, loss, centred = self._rounding_sums
        scale = base + EPS * abs(self.c) * loss + self.family.log_error
        spread = error + EPS * centred
        return _ROUNDING_SAFETY * (scale[:, None] * np.minimum(distance + EPS, 2.0) + y * spread[:, None])


class Quadrature:
    """E3 on the nodes of one family: bounds on what the trapezoid rule misses, inside and outside of their window."""

    def __init__(self, nodes):
        self.nodes, self.family, self.c, self.step = nodes, nodes.family, nodes.c, nodes.step
        strips = _FEW_STRIPS if len(nodes.base) > 1 else _STRIPS
        self._strips = strips * np.minimum(1 / np.sqrt(self.family.variance), STRIP_CAP)
        self.upper_line = upper_line(self.family, self.c, self._strips[0][:, None])
        self._lines, self._serves = {}, {}

    def _log_tail(self, c, log_moment):
        """log of a bound on the mass of the integrand, and of its nodes, outside the window."""
        u, family = self.nodes.u, self.family
        low, high, weights = float(u[0]), float(u[-1]), self.nodes.base[:, [0, -1]] + c * self.nodes.loss[:, [0, -1]]
        sides = log_tails(family, c, u, weights, self.nodes.means, log_moment - NEGLIGIBLE)
        # The dropped nodes sum to at most the integral plus one node at the edge.
        lead = np.log(2 + self.step * (abs(low) + abs(high) + family.steepest(c)))
        return np.minimum(lead + np.logaddexp(*sides), 1e300)

    def _line_parts(self, c):
        """What the bound on shifted lines needs at tilt c, whatever the frequency.

        On a cell the log of the real weight exceeds the larger end by at most step^2 / 8 * max(-second derivative);
        on the line v = +-a the integrand exceeds it by what `Family.lines` says.
        The last column stands for all that lies outside the window.
        """
        if c not in self._lines:
            family, h = self.family, self.step
            weights = self.nodes.base + c * self.nodes.loss
            log_moment = log_sum_exp(weights) + math.log(h)
            log_tail = self._log_tail(c, log_moment)
            mass = np.empty(weights.shape)
            bend = h * h / 8 * (1 + family.fall(c)) + math.log(h)
            mass[:, :-1] = np.maximum(weights[:, :-1], weights[:, 1:]) + bend[:, None]
            mass[:, -1] = log_tail
            a = self._strips
            more, turn = family.lines(c, a[..., None], self.nodes.means)
            exponent = 2 * math.pi * a / h
            decay = exponent + np.log(-np.expm1(-exponent))
            # Those at other tilts are asked for once each: only the last of them is kept.
            self._lines = {tilt: parts for tilt, parts in self._lines.items() if tilt == self.c}
            self._lines[c] = mass, mass + more, turn, decay, log_tail, log_moment
        return self._lines[c]

    def error(self, frequency, c=None):
        """Bound on |computed - true| of M(c + iy) for 0 <= y <= frequency, over M(c), shape (rows,)."""
        if c is None and not self.on_axis(frequency):
            return self.line_error()
        return self._axis_error(frequency, self.c if c is None else c)

    def _axis_error(self, frequency, c):
        _, lines, turn, decay, log_tail, log_moment = self._line_parts(c)
        lines = log_sum_exp(lines + frequency * turn if frequency else lines)
        error = np.logaddexp(math.log(2) + np.min(lines - decay, axis=0), log_tail)
        # The nodes dropped from the sums weigh less than 1e-19 of the whole.
        return np.exp(np.minimum(error - log_moment, 700.0)) + 1e-19

    def on_axis(self, frequency):
        """Whether the rule on the axis is good enough up to this frequency, all rounds together, or better than the one beside it."""
        if frequency not in self._serves:
            with np.errstate(over="ignore"):  # far from good enough
                missed = self._missed(self._axis_error(frequency, self.c))
            self._serves[frequency] = missed < _ENOUGH or missed <= self._missed(self.line_error())
        return self._serves[frequency]

    def _missed(self, error):
        return float(self.nodes.rounds @ (error - 1e-17))

    @cached_property
    def _line_excess(self):
        """(log of what the rule misses on a line before the step's gain, log of what lies outside), over M(c), shape (rows,) each."""
        more = self.family.lines(self.c, self.upper_line[None], self.nodes.means)[0][0]
        mass, *_, log_tail, log_moment = self._line_parts(self.c)
        both = np.logaddexp(log_sum_exp(mass), log_sum_exp(mass + more))
        return both - log_moment, log_tail + more[:, -1] - log_moment

    def line_error(self):
        """As `error`, on the line beside the axis: at all frequencies."""
        excess, outside = self._line_excess
        exponent = math.pi * self.upper_line[:, 0] / self.step
        error = np.logaddexp(excess - exponent - np.log(-np.expm1(-exponent)), outside)
        return np.exp(np.minimum(error, 700.0)) + 1e-19

    def serves(self, frequency):
        """Whether the quadrature is good enough up to this frequency, all rounds together."""
        with np.errstate(over="ignore"):
            return self._missed(self.error(frequency)) < _ENOUGH

    def finer_step(self, frequency):
        """The step at which the bounds on the lines, as they are here, would serve."""
        _, lines, turn, *_, log_moment = self._line_parts(self.c)
        enough = math.log(4 / _ENOUGH * self.nodes.rounds.sum())
        excess = log_sum_exp(lines + frequency * turn) - log_moment + enough
        steps = 2 * math.pi * self._strips / np.maximum(excess, 1.0)
        beside = math.pi * self.upper_line[:, 0] / np.maximum(self._line_excess[0] + enough, 1.0)
        return float(max(steps.max(axis=0).min(), beside.min()))

    def log_moment_bound(self, c):
        """Upper bound on log E exp(c L) of all rounds for another tilt c."""
        error = self.error(0.0, c)
        if not np.all(error < 0.5):
            return math.inf
        return float(self.nodes.rounds @ (self._lines[c][-1] - np.log1p(-error) + self.nodes.rounding(c)))

    def share_outside(self):
        """Bound on the share of the mass outside the window."""
        log_tail = self._line_parts(self.c)[4]
        return 1e-15 + np.exp(np.minimum(log_tail - self.nodes.log_moment, 700.0))
