"""Moments of the ratio of a mixture pair, with relative accuracy: the integrals behind `renyi`.

With the order written lambda, s = lambda - 1 and L the privacy loss under the
first argument,

    e^{s D_lambda} - 1 = E[ E2(s L) + s E2(-L) ],     E2(x) = e^x - 1 - x >= 0,

because E e^{-L} = 1. Both terms are non-negative, so a divergence of 1e-20 keeps
its digits, at every order above 1. With R = P/Q the right-hand side is
J = E_Q[R^w - 1 - w (R - 1)], w = lambda (remove) or 1 - lambda (add): a Gaussian
integral of an analytic function, which the trapezoid rule finds in a few hundred
nodes. Every bracket contains

  strip error: R(u + iv) has no zero for v^2 sup_u Var(a_J | u) < 2, because
     |R(u + iv)| >= R(u) (1 - v^2 Var(a_J | u) / 2). So with step h the rule misses
     int phi R^w by at most 2 N(a) / (e^{2 pi a / h} - 1), N(a) = int |phi R^w|(u + ia) du,
     which is at most e^{a^2/2} int phi R^w for w > 0. For w < 0 it is summed over
     the nodes. The terms 1 and R are Gaussians: 2 e^{-2 pi^2 / h^2} each.
  truncation: the nodes left out, bounded by the Gaussians that sum_j p_j^w ... gives
     (w > 0) or by log-concavity (w < 0). They are non-negative and only raise the upper end.
  rounding: an explicit allowance per node; tested against 30 digits.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import EPS, log_sum_exp
from ..gaussian import LOG_SQRT_2PI
from ..mixtures import DisjointUnion, TwoSided
from ..results import Bracket, NoBracketError
from .contour_pieces import PiecesMoments
from .two_sided_nodes import TwoSidedMoments

_AIM = 32.0  # strip error and truncation are pushed below e^-32 = 1e-14 of the integral
_WORK_CAP = 20_000_000  # nodes times components that matter: about half a second
_ROUNDING_SAFETY = 2.0  # errors seen against 30 digits stay below a tenth of the allowance
_SMALL = 0.3  # below, e^x - 1 - x is a series
_SERIES = [2 / math.factorial(n) for n in range(2, 15)]


class Moments:
    """The divergences of one mixture pair, both directions; nodes are shared between orders."""

    def __init__(self, mixture):
        self.mixture, self.shifts = mixture, mixture.shifts
        self.variance = max(mixture.variance_bound, 1e-12)
        self.top, self.bottom = float(self.shifts[-1]), float(self.shifts[0])
        self.mean_shift = float(mixture.probabilities @ self.shifts)
        self._grids, self._scan = {}, None

    def __call__(self, order, sign):
        if self.mixture.is_trivial:
            return Bracket(0.0, 0.0, "closed form")
        if self.mixture.is_gaussian:
            value = order * self.top * self.top / 2
            if not value < 1e300:
                raise NoBracketError(f"the Renyi divergence leaves the range of floats at order {order:g}")
            return Bracket(value * (1 - 4 * EPS), value * (1 + 4 * EPS), "closed form")
        s = order - 1
        if sign > 0:
            bracket = self._one_component(order, s)
            if bracket is not None:
                return bracket
        low, high = _Integral(self, s, sign).log_bounds()
        low, high = (_log1p_exp(x, s) for x in (low, high))
        if not high < math.inf:
            raise NoBracketError(f"the Renyi divergence leaves the range of floats at order {order:g}")
        # One float further: among the smallest ones the relative allowance is less than that.
        low, high = math.nextafter(low * (1 - 4 * EPS), 0.0), math.nextafter(high * (1 + 4 * EPS), math.inf)
        return Bracket(low, high, "quadrature")

    def _one_component(self, order, s):
        """The bracket for remove where one component outweighs all others, else None.

        R >= p_j R_j for each component, and Minkowski's inequality in L^order(Q) gives
        order / s * log of max_j and of sum_j p_j e^{s a_j^2 / 2} as bounds of the divergence.
        """
        half = self.shifts * self.shifts / 2
        terms = self.mixture.log_probabilities + s * half
        top = float(terms.max())
        excess = float(log_sum_exp(terms)) - top
        if not (top > 1 and excess <= 1e-14 * top):
            return None
        rounding = 16 * EPS * (s * float(half[-1]) - float(self.mixture.log_probabilities[np.argmax(terms)]))
        rounding += self.mixture.log_probability_error
        low, high = ((order / s) * x for x in (top - rounding, top + excess + rounding))
        if not high < 1e300:
            raise NoBracketError(f"the Renyi divergence leaves the range of floats at order {order:g}")
        return Bracket(low, high, "closed form")

    def grid(self, level, low, high):
        """(u, log R, posterior mean of the shift) at the multiples of 2^(-level/2) that cover [low, high]."""
        step = 2.0 ** (-level / 2)
        first, last = math.floor(low / step), math.ceil(high / step)
        if (last - first) * min(len(self.shifts), 64) > _WORK_CAP:
            raise NoBracketError(f"the Renyi divergence needs {last - first} nodes")
        if max(-first, last) > 2**52:
            raise NoBracketError(f"the Renyi divergence needs nodes at {max(-low, high):g}, between which floats have no room")
        start, columns = self._grids.get(level, (first, None))
        if columns is not None:
            stop = start + columns.shape[1] - 1
            if last < start - 1000 or first > stop + 1000:
                columns = None  # too far away to be joined
        if columns is None:
            start, columns = first, self._evaluate(first, last, step)
        else:
            if first < start:
                columns = np.concatenate([self._evaluate(first, start - 1, step), columns], axis=1)
                start = first
            if last > stop:
                columns = np.concatenate([columns, self._evaluate(stop + 1, last, step)], axis=1)
        self._grids[level] = start, columns
        return columns[:, first - start : last - start + 1]

    def _evaluate(self, first, last, step):
        u = step * np.arange(first, last + 1)
        return np.stack([u, *self.mixture.log_ratio_and_slope(u)])

    def scan(self):
        if self._scan is None:
            self._scan = self.grid(2, -8.0, 8.0)
        return self._scan


class _Integral:
    """log J of one order and direction, J = E_Q[R^w - 1 - w (R - 1)]: where it lives, value and bounds."""

    def __init__(self, side, s, sign):
        self.side, self.s, self.sign = side, s, sign
        self.w = 1 + s if sign > 0 else -s
        a, log_p = side.shifts, side.mixture.log_probabilities
        if sign > 0:
            # (sum of m terms)^w <= m^(w-1) * sum of w-th powers: Gaussians above phi R^w.
            self.centres = np.append(self.w * a, 0.0)
            heights = self.w * log_p + self.w * s * a * a / 2
            self.heights = np.append(heights + s * math.log(len(a)), math.log(s))
            largest = float(heights.max())
        else:
            # R^w - 1 - w (R - 1) <= R^w - w R; R^w is log-concave, the other term a mixture.
            self.centres, self.heights = a, math.log(s) + log_p
            # A concave exponent with second derivative above -(1 + s Var): a wide enough peak.
            self.mode, self.peak = self._mode()
            largest = self.peak - 0.5 * math.log(1 + s * side.variance) - 0.5
        # A rough value: it only chooses window and step.
        u, t, _ = side.scan()
        self.rough = float(log_sum_exp(self.log_terms(u, t))) - math.log(2)
        if largest > 1:
            self.rough = max(self.rough, largest - 0.5)
        if not math.isfinite(self.rough):
            raise NoBracketError(f"the Renyi divergence leaves the range of floats at order {1 + s:g}")

    def log_terms(self, u, t):
        """log of phi (R^w - 1 - w (R - 1)) at nodes u with log-ratio t."""
        terms = log_convex(self.sign * t, self.s) - u * u / 2 - LOG_SQRT_2PI
        return terms + t if self.sign > 0 else terms

    def log_bounds(self):
        extra, level = 2.0, None
        for _ in range(10):
            low, high = self._window(_AIM + extra)
            level = max(level or 0, self._level())
            rule = _Quadrature(self, level, low, high)
            log_sum = rule.log_sum
            if not math.isfinite(log_sum):
                break
            outside = rule.log_outside() - log_sum
            strip, needed = rule.log_strip()
            strip -= log_sum
            if max(outside, strip) < -_AIM + 2:
                rounding = rule.rounding()
                low = log_sum + math.log1p(-math.exp(strip)) - rounding
                return low, log_sum + math.log1p(math.exp(strip) + math.exp(outside)) + rounding
            self.rough = log_sum
            if outside >= -_AIM + 2:
                extra += 1 + min(outside + _AIM, 60.0)
            if strip >= -_AIM + 2:
                # Finer nodes also sharpen the bound: not more than four times as many at once.
                level = min(max(level + 1, needed), level + 4)
        raise NoBracketError(f"the Renyi divergence's error bound does not close at order {1 + self.s:g}")

    # -- where

    def _window(self, aim):
        """Ends beyond which the terms are below e^-aim of the rough value."""
        room = self.heights + math.log(len(self.heights)) - self.rough + aim
        alive = room > 0
        reach = np.sqrt(2 * room[alive])
        ends = [*(self.centres[alive] - reach), *(self.centres[alive] + reach)]
        if self.sign < 0:
            reach = math.sqrt(2 * max(self.peak - self.rough + aim, 1.0))
            ends += [self.mode - reach, self.mode + reach]
        return min(ends), max(ends)

    def _mode(self):
        """Mode of the log-concave phi R^w, w < 0 (u = w * posterior mean), and log R^w phi there."""
        u, t, m = self.side.scan()
        low, high = self.w * self.side.top, 0.0
        for _ in range(60):
            rising = np.flatnonzero(u < self.w * m)
            i = int(rising[-1]) if len(rising) else 0
            if len(rising) and i + 1 < len(u):
                low, high = u[i], u[i + 1]
            elif not len(rising):
                high = u[0]
            else:
                low = u[-1]
            if high - low <= 0.5:
                break
            u = np.linspace(low, high, 17)
            t, m = self.side.mixture.log_ratio_and_slope(u)
        i = int(np.argmax(self.w * t - u * u / 2))
        # Within half a unit of the mode the concave exponent exceeds this little.
        return float(u[i]), float(self.w * t[i] - u[i] ** 2 / 2) + 0.5

    def _level(self):
        """The level whose step should do."""
        need = _AIM + 1 + float(np.logaddexp(0.0, -self.rough))
        gauss = _AIM + math.log(2.1 * (2 * abs(self.w) + 1)) - self.rough
        limit = 0.99 * math.sqrt(2 / self.side.variance)
        curvature = 1.0
        if self.sign < 0:
            # At the mode u = w m. The bound on the variance grows to the right of it: take more.
            m = min(-self.mode / self.s, self.side.top)
            local = max((self.side.top - m) * (m - self.side.bottom), 0.0)
            curvature += 4 * self.s * min(self.side.variance, local)
        a = min(limit, math.sqrt(2 * need / curvature))
        step = min(2 * math.pi * a / (curvature * a * a / 2 + need), math.pi * math.sqrt(2 / max(gauss, 1.0)), 1.0)
        return _level_of(step)

class _Quadrature:
    """The trapezoid rule for one `_Integral` on the grid of one level: its sum, and how far that is off."""

    def __init__(self, integral, level, low, high):
        self.integral, self.side = integral, integral.side
        self.s, self.w, self.sign = integral.s, integral.w, integral.sign
        self.u, self.t, self.m = self.side.grid(level, low, high)
        self.step = 2.0 ** (-level / 2)
        self.log_terms = integral.log_terms(self.u, self.t)
        self.log_sum = float(log_sum_exp(self.log_terms)) + math.log(self.step)

    def log_outside(self):
        """log of a bound on the terms at the nodes left out; they are positive."""
        low, high = self.u[0], self.u[-1]
        tails = np.logaddexp(special.log_ndtr(low - self.integral.centres), special.log_ndtr(self.integral.centres - high))
        # A Gaussian's nodes on one side: at most its tail, and 0.4 step where its centre is there.
        parts = [float(log_sum_exp(self.integral.heights + tails)) + math.log1p(0.8 * self.step)]
        if self.sign < 0:
            parts += self._log_tails()
        return float(np.logaddexp.reduce(parts))

    def _log_tails(self):
        """log of bounds on int phi R^w, w < 0, left and right of the nodes: log-concave."""
        u, t, m = self.u, self.t, self.m
        drift = self.w * m - u
        logs = self.w * t - u * u / 2 - LOG_SQRT_2PI
        return [
            float(logs[i]) - math.log(slope) if slope > 0 else math.inf
            for i, slope in ((0, drift[0]), (-1, -drift[-1]))
        ]

    def log_strip(self):
        """(log of the bound on the trapezoid rule's error, a level that should do)."""
        h, w, side, log_sum = self.step, self.w, self.side, self.log_sum
        gauss = math.log(2.1 * (2 * abs(w) + 1)) - 2 * (math.pi / h) ** 2
        limit = 0.99 * math.sqrt(2 / side.variance)
        if w > 0:
            a = np.array([min(limit, 2 * math.pi / h)])
            lines = a * a / 2 + float(np.logaddexp(0.0, log_sum)) + 0.01
        else:
            a = min(limit, 12.0) * 2.0 ** (-0.5 * np.arange(4 + math.ceil(math.log2(1 + self.s))))
            lines = self._log_lines(a)
        exponent = 2 * math.pi * a / h
        error = math.log(2) + lines - exponent - np.log(-np.expm1(-exponent))
        # exponent >= lines - target would be enough.
        target = log_sum - _AIM - 1
        need = np.maximum(lines - target, 1.0)
        step = float(np.max(2 * math.pi * a / need))
        step = min(step, math.pi * math.sqrt(2 / max(gauss + 2 * (math.pi / h) ** 2 - target, 1.0)))
        return float(np.logaddexp(error.min(), gauss)), _level_of(step)

    def _log_lines(self, a):
        """log of bounds on int |phi R^w|(u + ia) du, w < 0, for each a.

        |R(u+ia)| >= R(u) (1 - k), k = a^2 / 2 Var(a_J | u). The posterior variance is at
        most (top - m) (m - bottom); it is m', and |Var'| <= span * Var, so on a cell it is at
        most e^(span * step) times the mean slope of m. On a cell the log of the concave real
        weight exceeds the larger end by at most step^2 / 8 times its largest second derivative.
        """
        h, s, side, u, t, m = self.step, self.s, self.side, self.u, self.t, self.m
        span, spare = side.top - side.bottom, 16 * EPS * side.top
        local = np.minimum(side.variance, (side.top - m[:-1]) * (m[1:] - side.bottom) + spare * side.top)
        if span * h < 3:
            local = np.minimum(local, (np.diff(m) + spare) / h * math.exp(span * h))
        weights = self.w * t - u * u / 2 - LOG_SQRT_2PI
        cells = np.maximum(weights[:-1], weights[1:]) + h * h / 8 * (1 + s * local) + math.log(h)
        first = min(side.variance, span * (m[0] - side.bottom) + spare * side.top)
        local = np.concatenate([[first], local, [side.variance]])
        left, right = self._log_tails()
        cells = np.concatenate([[left], cells, [right]])
        together = max(1, 100_000 // len(cells))  # lines held at once
        sums = []
        for start in range(0, len(a), together):
            k = a[start : start + together, None] ** 2 / 2 * local
            sums.append(log_sum_exp(cells - s * np.log1p(-k)))
        return a * a / 2 + np.concatenate(sums)

    def rounding(self):
        """Allowance for the rounding error of log J."""
        side, u, t, m = self.side, self.u, self.t, self.m
        log_terms, log_sum, size = self.log_terms, self.log_sum, np.abs(t)
        mixture = side.mixture
        weights = np.exp(log_terms - log_sum) * self.step
        positive = float(mixture.probabilities[side.shifts > 0].sum())
        # log R = log1p(sum p_j expm1(x_j)): its error scales with sum p_j |expm1(x_j)|,
        # at most |R - 1| + 2 P(a_J > 0), and 2 E[a_J] (|u| + top) where every x_j is small.
        terms = np.where(size < 0.3, np.minimum(1 + size, 2 * size + 2 * positive), 1 + size)
        far = np.abs(u) + side.top
        terms = np.where(far * side.top < 0.5, np.minimum(terms, 2 * side.mean_shift * far), terms)
        error = (4 * EPS + mixture.log_probability_error) * terms + 4 * EPS * m * (np.abs(u) + m)
        # |E2'(x)| / E2(x) is at most 2 / |x| for x < 0 and 1 + 2 / x for x > 0: so far the
        # terms move with log R (the last 1 is the factor R itself, in the remove direction).
        rate = np.where(self.sign * t > 0, self.s, 1.0) + 1
        # 0 where there is no error, also at x = 0.
        bent = 2 * np.divide(error, np.maximum(size, error), out=np.zeros_like(error), where=error > 0)
        own = EPS * (10 + 2 * u * u + 2 * size * rate + np.minimum(np.abs(log_terms), 800.0))
        total = float(weights @ (own + rate * error + bent))
        return _ROUNDING_SAFETY * (total + EPS * (8 + abs(log_sum)))


def moments_of(pair, side):
    """What knows the divergences of a pair that faces this direction: a function of order and sign."""
    if isinstance(pair, DisjointUnion):
        return PiecesMoments(pair, side)
    return TwoSidedMoments(pair) if isinstance(pair, TwoSided) else Moments(pair)


def _log1p_exp(x, s):
    """log(1 + e^x) / s; only the last product may leave the normal floats."""
    if x > -600:
        return float(np.logaddexp(0.0, x)) / s
    return math.exp(x + 500) / s * math.exp(-500)


def _level_of(step):
    return math.ceil(-2 * math.log2(step) - 1e-9)


def log_convex(loss, s):
    """log(E2(s L) + s E2(-L)): the integrand of e^{s D} - 1 at loss L."""
    first, second = log_e2(np.stack([s * loss, -loss + np.zeros_like(s)]))
    return np.logaddexp(first, np.log(s) + second)


def log_e2(x):
    """log(e^x - 1 - x), accurate for every real x; -inf at 0."""
    x = np.asarray(x, float)
    small = np.abs(x) < _SMALL
    y = np.where(small, x, 0.0)
    series = np.zeros(x.shape)
    for coefficient in reversed(_SERIES):
        series = series * y + coefficient
    size = np.where(small, 1.0, np.abs(x))
    decay = np.expm1(-size)  # e^-|x| - 1
    # x > 0: e^x (1 - (1 + x) e^-x); x < 0: |x| - 1 + e^-|x|.
    rest = np.where(x > 0, -decay - size * (1 + decay), size + decay)
    with np.errstate(divide="ignore"):
        near = 2 * np.log(np.abs(y)) + np.log(series / 2)
    return np.where(small, near, np.log(rest) + np.maximum(x, 0.0))
