"""One round of the split contour: a part of its law, on lines in the complex plane [A-9].

`_Part` is a smooth share of the law, `_Side` a mixture in one direction, `_Cells` bounds
integrals along a line at height v by sums over cells, and `_Nodes` evaluates the transform
by the trapezoid rule on such a line, with the bound on its error. `rare` puts them together.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import special
from ..gaussian import LOG_SQRT_2PI
from ..mixtures import EPS, complex_log1p, log_sum_exp
from ..results import NoBracketError

_SAFETY = 2.0  # on every rounding allowance, as in `contour`
_TAIL = 42.0  # e^-42: shares and weights below this are not worth a node
_CHUNK = 2_000_000
_TABLE_CAP = 30_000_000  # components times nodes


class _Part:
    """A smooth share of the law of one round: the tail, the bulk, or all of it."""

    def __init__(self, kind, centre=0.0, width=1.0):
        self.kind, self.centre, self.width = kind, centre, width
        self.sign = -1.0 if kind == "bulk" else 1.0

    def log_share(self, u, v=0.0):
        """log of the share at u; for v > 0 a bound on |share(u + iv)|.

        |Phi(x + iy)| <= Phi(x) + phi(x) int_0^y e^{r^2/2} dr.
        """
        if self.kind == "all":
            return np.zeros(np.shape(u))
        x = self.sign * (u - self.centre) / self.width
        return np.logaddexp(special.log_ndtr(x), self._growth(v) - x * x / 2)

    def log_largest(self, u, v):
        """Bounds on log |share(u + iv)| over the cells between the nodes u."""
        if self.kind == "all":
            return np.zeros(len(u) - 1)
        x = self.sign * (u - self.centre) / self.width
        top = special.log_ndtr(np.maximum(x[:-1], x[1:]))
        return np.logaddexp(top, self._growth(v) - _nearest_to_zero(x) ** 2 / 2)

    def log_bound_below(self, low, v):
        """log of a bound on |share(u + iv)| for all u <= low."""
        return float(self.log_share(low, v)) if self.kind == "tail" else self._log_whole(v)

    def log_bound_above(self, high, v):
        """log of a bound on |share(u + iv)| over its value at `high`, or over 1, for u >= high."""
        return float(self.log_share(high, v)) if self.kind == "bulk" else self._log_whole(v)

    def _log_whole(self, v):
        return 0.0 if self.kind == "all" else math.log1p(math.exp(self._growth(v)))

    def complex_log_share(self, u):
        """log of the share at complex u."""
        if self.kind == "all":
            return np.zeros(len(u), complex)
        x = -self.sign * (u - self.centre) / self.width / math.sqrt(2)
        # erfc x = e^{-x^2} w(ix), and 2 - erfc(-x) where the real part is negative.
        right = x.real > 0
        z = np.where(right, x, -x)
        log_tail = np.log(special.wofz(1j * z) / 2) - z * z
        return np.where(right, log_tail, np.log1p(-np.exp(np.where(right, -800.0, log_tail))))

    def steepness(self, u):
        """|d log share / du| at real u."""
        if self.kind == "all":
            return np.zeros(np.shape(u))
        x = self.sign * (u - self.centre) / self.width
        return np.exp(-x * x / 2 - LOG_SQRT_2PI - special.log_ndtr(x)) / self.width

    def _growth(self, v):
        y = v / self.width
        if y == 0:
            return -math.inf
        return math.log(math.sqrt(2) * special.dawsn(y / math.sqrt(2))) + y * y / 2 - LOG_SQRT_2PI


def _nearest_to_zero(x):
    """The smallest |x| on each cell between neighbouring nodes."""
    ends = np.abs(x)
    return np.where(x[:-1] * x[1:] <= 0, 0.0, np.minimum(ends[:-1], ends[1:]))


class _Side:
    """One mixture in one direction, `rounds` times."""

    def __init__(self, mixture, rounds, direction):
        self.mixture, self.rounds = mixture, rounds
        self.sign = 1 if direction == "remove" else -1
        self.largest = float(mixture.shifts[-1])
        if self.sign < 0 and not math.isfinite(mixture.log_floor):
            raise NoBracketError("the split contour needs a sensitivity of 0 in the add direction")

    def evaluate(self, u):
        """(log base density, loss, posterior mean of the shift)."""
        ratio, slope = self.mixture.log_ratio_and_slope(u)
        base = self.mixture.log_density(u) if self.sign > 0 else -u * u / 2 - LOG_SQRT_2PI
        return base, self.sign * ratio, slope

    def window(self, c):
        """Ends beyond which the weight at tilt c is negligible."""
        reach = math.sqrt(2 * _TAIL)
        if self.sign > 0:
            return -reach, (1 + c) * self.largest + reach
        return -math.sqrt(2 * (_TAIL - c * self.mixture.log_floor)), reach

    def highest(self, part):
        """Height of the highest line that is used."""
        top = (0.98 if self.sign > 0 else 0.49) * math.pi / self.largest
        return min(top, 6.0 if part.kind == "all" else 5 * part.width)

    def log_ratio(self, u, v, with_error=False):
        """log R(u + iv) for 0 <= v < pi / a_max; its imaginary part is arg R in [0, pi).

        With `with_error` also a bound on the rounding error beyond that of log R(u).
        """
        a, log_p = self.mixture.shifts[:, None], self.mixture.log_probabilities[:, None]
        if len(a) * len(u) > _TABLE_CAP:
            raise NoBracketError(f"the split contour needs {len(u)} nodes of {len(a)} components")
        ratio = self.mixture.log_ratio(u)
        posterior = np.exp(log_p + a * (u - a / 2) - ratio)
        half = a[:, 0] * v / 2
        real, imaginary = -2 * (np.sin(half) ** 2) @ posterior, np.sin(2 * half) @ posterior
        result = ratio + complex_log1p(real, imaginary)
        if not with_error:
            return result
        # Each exponent rounds; |R(u + iv)| < R(u) makes that larger in relative terms.
        a, log_p, moved = a[:, 0], log_p[:, 0], (a[:, 0] > 0) * 1.0
        error = (moved * (4 - log_p + a * a)) @ posterior + (a @ posterior) * np.abs(u)
        error = EPS * (error + (moved @ posterior) * np.abs(ratio))
        error += self.mixture.log_probability_error * (moved @ posterior)
        return result, 4 * error * np.exp(ratio - result.real)


class _Cells:
    """Bounds for one part of the law of one round, from sums over the cells of a coarse grid."""

    def __init__(self, side, part, low, high, step):
        count = int(math.ceil((high - low) / step)) + 1
        if not count < 50_000:
            raise NoBracketError(f"the split contour needs {count} coarse nodes")
        self.side, self.part, self.step = side, part, (high - low) / (count - 1)
        self.u = np.linspace(low, high, count)
        self.base, self.loss, self.slope = side.evaluate(self.u)
        self.share = part.log_share(self.u)
        self._heights, self._lines = {}, {}

    def log_moment(self, c):
        return log_sum_exp(self.base + self.share + c * self.loss) + math.log(self.step)

    def log_moments(self, tilts):
        """`log_moment` at an array of tilts."""
        exponents = self.base + self.share + tilts[:, None] * self.loss
        return log_sum_exp(exponents) + math.log(self.step)

    def log_line(self, c, frequency, v):
        """log of a bound on int |integrand(u + iv)| e^{frequency * arg R(u + iv)} du.

        frequency < 0 is the decaying side, frequency > 0 the growing one. Every factor
        is monotone on a cell, so that one of its ends bounds it: remove |R(u + iv)| <=
        R(u); add |R(u + iv)| increases in u for v a_max <= pi / 2.
        """
        if v not in self._heights:
            # What does not depend on the tilt. A millionth covers the rounding of the exponents.
            u = self.u
            cells = self.part.log_largest(u, v) - _nearest_to_zero(u) ** 2 / 2 - LOG_SQRT_2PI
            cells += v * v / 2 + math.log(self.step) + 1e-6
            self._heights[v] = cells, self.side.log_ratio(u, v)
        if (c, v) not in self._lines:
            cells, ratio = self._heights[v]
            power = (1 + c) * self.loss[1:] if self.side.sign > 0 else -c * ratio.real[:-1]
            self._lines[c, v] = cells + power, self.log_outside(c, v), ratio.imag
        cells, outside, argument = self._lines[c, v]
        edge = argument[1:] if frequency > 0 else argument[:-1] * (1 - 1e-9)
        outside += max(frequency, 0.0) * min(self.side.largest * v, math.pi)
        return float(np.logaddexp(log_sum_exp(cells + frequency * edge), outside))

    def log_outside(self, c, v=0.0):
        """log of a bound on the mass outside the grid, on the line at height v.

        Left: phi, the share and R at the end (remove), or |R| >= p_0 (add). Right: the
        value at the end over its log-derivative (lemma after [A-9]).
        """
        low, high, side, part = self.u[0], self.u[-1], self.side, self.part
        # The rule's nodes left of a positive end may exceed the integral by half a step's mass.
        log_left = float(special.log_ndtr(low)) if low < 0 else 0.1
        if side.sign < 0:
            left = log_left - c * side.mixture.log_floor
            right, rate = -high * high / 2 - LOG_SQRT_2PI + c * self.loss[-1], high
            right -= c * float((side.log_ratio(self.u[-1:], v).real + self.loss[-1])[0])
        else:
            left = log_left + (1 + c) * self.loss[0] + part.log_bound_below(low, v)
            right = self.base[-1] + c * self.loss[-1] + part.log_bound_above(high, v)
            rate = high - (1 + c) * side.largest
            if part.kind == "bulk":
                rate += (high - part.centre) / part.width**2
        if not rate > 0:
            return math.inf
        return float(np.logaddexp(left, right - math.log(rate))) + v * v / 2 + 1e-6


class _Nodes:
    """Trapezoid nodes on the line of height v, for frequencies from `bottom` to `top`."""

    def __init__(self, cells, c, bottom, top, log_aim, largest_step):
        self.cells, self.c = cells, c
        side, part = cells.side, cells.part
        highest = side.highest(part)
        if bottom == 0:
            lines = [(0.0, highest * x) for x in (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08)]
        else:
            lines = [(highest * x, highest * x * y) for x in (0.5, 0.35, 0.25, 0.15) for y in (1, 0.7)]
        # Each line with the step that it needs; the largest step wins.
        self.step, self.v, self._log_lines, self._strip = max(
            self._needed(v, strip, bottom, top, log_aim) for v, strip in lines
        )
        self.step = min(self.step, largest_step)
        low, high = cells.u[[0, -1]]
        count = int(math.ceil((high - low) / self.step)) + 1
        if not count < 200_000:
            raise NoBracketError(f"the split contour needs {count} nodes in u")
        self.u = np.linspace(low, high, count)
        self.step = (high - low) / (count - 1)
        self.base, self.loss, self.slope = side.evaluate(self.u)
        self.share = part.log_share(self.u)
        self.bottom, self._line = bottom, None

    def _needed(self, v, strip, bottom, top, log_aim):
        cells, c = self.cells, self.c
        if v == 0:
            line = cells.log_line(c, top, strip)
        else:
            # At a height the integrand shrinks with the frequency: the lowest is the worst.
            ends = [cells.log_line(c, -bottom, v + strip)]
            ends.append(cells.log_line(c, -bottom, v - strip) if v > strip else cells.log_line(c, 0.0, 0.0))
            line = float(np.logaddexp(*ends)) - math.log(2)
        return 2 * math.pi * strip / max(line - log_aim, 1.0), v, line, strip

    def log_weights(self, c):
        return self.base + self.share + c * self.loss

    def log_moment(self, c):
        return log_sum_exp(self.log_weights(c)) + math.log(self.step)

    def error(self, log_scale):
        """Bound on |computed - true| of the transform at own tilt and frequencies, over e^log_scale."""
        return self._error(self.c, [(self._log_lines, self._strip)], log_scale)

    def moment_error(self, c):
        """Relative error of the moment at any tilt."""
        cells = self.cells
        highest = cells.side.highest(cells.part)
        lines = [(cells.log_line(c, 0.0, v), v) for v in (0.7 * highest, 0.35 * highest)]
        return self._error(c, lines, self.log_moment(c))

    def _error(self, c, lines, log_scale):
        decay = lambda strip: 2 * math.pi * strip / self.step
        log_error = min(x - decay(a) - math.log(-math.expm1(-decay(a))) for x, a in lines)
        # Two lines; and what lies outside is missing from the nodes and counted by the rule.
        total = np.logaddexp(log_error, self.cells.log_outside(c, self.v)) + math.log(2)
        return math.exp(min(total - log_scale, 50.0))

    def rounding(self, c, log_scale):
        """(constant, per unit of frequency): rounding of the transform over e^log_scale.

        At a height v > 0 for the nodes' own tilt and frequencies only.
        """
        mixture, sign = self.cells.side.mixture, self.cells.side.sign
        loss_error = mixture.log_ratio_error(self.loss, self.slope, self.u)
        part, u = self.cells.part, np.abs(self.u)
        if self.v:
            exponent, loss, ratio_error = self._on_line()
            log_weights = exponent.real - self.bottom * loss.imag + math.log(self.step) - log_scale
            loss_error = loss_error + ratio_error
            # The complex error function is good to 1e-13.
            size = 1e-13 + EPS * (16 + (u + self.v) ** 2) + (c + (sign > 0)) * loss_error
        else:
            loss, log_weights = self.loss, self.log_weights(c) + math.log(self.step) - log_scale
            size = EPS * (16 + np.abs(self.base)) + abs(c) * loss_error
            if sign > 0:
                size = size + mixture.log_probability_error
        # The nodes are rounded, too, which a steep share feels.
        size = size + EPS * (4 * np.abs(self.share) + u * part.steepness(self.u))
        weights = np.exp(log_weights)
        slope = float(weights @ (loss_error + 4 * EPS * np.abs(loss)))
        return _SAFETY * float(weights @ size), _SAFETY * slope

    def _on_line(self):
        """(log of the integrand at y = 0, complex loss, error of log R beyond that of the real line)."""
        if self._line is None:
            side, c = self.cells.side, self.c
            ratio, error = side.log_ratio(self.u, self.v, with_error=True)
            u = self.u + 1j * self.v
            exponent = -u * u / 2 - LOG_SQRT_2PI + self.cells.part.complex_log_share(u)
            if side.sign > 0:
                self._line = exponent + (1 + c) * ratio, ratio, error
            else:
                # R^{-z} decays below the real line, not above it.
                self._line = np.conj(exponent - c * ratio), -np.conj(ratio), error
        return self._line

    def transform(self, spacing, first, count, log_scale):
        """phi(k * spacing), first <= k < first + count, over e^log_scale: a product of two tables."""
        exponent, loss = self._on_line()[:2] if self.v else (self.log_weights(self.c), self.loss)
        exponent = exponent + (math.log(self.step) - log_scale)
        size = exponent.real - first * spacing * loss.imag
        alive = size > size.max() - 48
        loss, exponent = loss[alive], exponent[alive]
        inner = int(math.ceil(math.sqrt(count)))
        fine = np.exp(1j * spacing * np.outer(loss, np.arange(inner)))
        starts, rows = np.arange(first, first + count, inner), max(1, _CHUNK // len(loss))
        blocks = []
        for k in range(0, len(starts), rows):
            coarse = np.exp(1j * spacing * np.outer(starts[k : k + rows], loss) + exponent)
            blocks.append((coarse @ fine).ravel())
        return np.concatenate(blocks)[:count]
