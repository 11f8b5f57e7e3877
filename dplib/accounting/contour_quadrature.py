"""E3 for one factor of the contour integral: what the trapezoid rule misses, on the real axis and on a line beside it.

On the axis the bound grows with the frequency, on the line it does not: the better one counts. The integral of
f(u) = base(u) e^{(c + iy) loss(u)} along u + ia is the one along u, as f is analytic in between. There the loss has the imaginary
part arg R(u + ia) >= 0, so that |f| falls as e^{-y arg R}: the trapezoid rule on the line v = a misses at most
(N(0) + N(2a)) / (e^{2 pi a / h} - 1), and no frequency makes N(v) larger than it is at frequency 0, so that the same nodes serve all
frequencies.

The argument of R increases in the height as long as no shift turns by more than a right angle: the largest shift times the height
of the upper line stays below 1.5. For losses that fall in u everything is mirrored: the lines are below the axis.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import EPS, log_sum_exp

NEGLIGIBLE = 46.0  # e^-46 = 1e-20: what may be left out before it is bounded
STRIP_CAP = 8.0  # widest strip used; e^{a^2/2} makes wider ones useless
# Half-widths at which the integrand is bounded, over the widest; fewer where there are many rows.
_STRIPS = np.array([1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08, 0.04])[:, None]
_FEW_STRIPS = np.array([1.0, 0.6, 0.35, 0.15])[:, None]
_ENOUGH = 1e-14  # of M(c)^T, what a rule may miss
_MOST_TURN = 1.5  # of the largest shift on the upper line, below pi / 2
_MILD = 2.0  # sqrt of twice the exponent by which a power may raise the integrand there
_ALONE = 16  # so many frequencies are summed one by one


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


def upper_line(family, c, strip):
    """The height 2a up to which no frequency makes the integrand larger, and the ratio's power not much, shape (rows, 1)."""
    mild = _MILD / np.sqrt(np.maximum(family.fall(c), 1e-12))
    return np.minimum(strip, np.minimum(_MOST_TURN / family.shift, mild)[:, None])


class Quadrature:
    """E3 on the nodes of one family: bounds on what the trapezoid rule misses, inside and outside of their window."""

    def __init__(self, nodes):
        self.nodes, self.family, self.c, self.step = nodes, nodes.family, nodes.c, nodes.step
        strips = _FEW_STRIPS if len(nodes.base) > 1 else _STRIPS
        self._strips = strips * np.minimum(1 / np.sqrt(self.family.variance), STRIP_CAP)
        self.upper_line = upper_line(self.family, self.c, self._strips[0][:, None])
        self._lines, self._errors = {}, {}

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
            return self.line_error
        return self.axis_error(frequency, self.c if c is None else c)

    def axis_error(self, frequency, c):
        """As `error`, for sums on the axis."""
        if (frequency, c) not in self._errors:
            _, lines, turn, decay, log_tail, log_moment = self._line_parts(c)
            lines = log_sum_exp(lines + frequency * turn if frequency else lines)
            error = np.logaddexp(math.log(2) + np.min(lines - decay, axis=0), log_tail)
            # The nodes dropped from the sums weigh less than 1e-19 of the whole.
            self._errors[frequency, c] = np.exp(np.minimum(error - log_moment, 700.0)) + 1e-19
        return self._errors[frequency, c]

    def on_axis(self, frequency):
        """Whether the rule on the axis is good enough up to this frequency, all rounds together, or better than the one beside it."""
        if frequency == 0:  # of the moment
            return True
        missed = self._missed(self.axis_error(frequency, self.c))
        return missed < _ENOUGH or missed <= self._missed(self.line_error)

    def _missed(self, error):
        with np.errstate(over="ignore"):  # far from good enough
            return float(self.nodes.rounds @ (error - 1e-17))

    @cached_property
    def _line_excess(self):
        """(log of what the rule misses on a line before the step's gain, log of what lies outside), over M(c), shape (rows,) each."""
        more = self.family.lines(self.c, self.upper_line[None], self.nodes.means)[0][0]
        mass, *_, log_tail, log_moment = self._line_parts(self.c)
        both = np.logaddexp(log_sum_exp(mass), log_sum_exp(mass + more))
        return both - log_moment, log_tail + more[:, -1] - log_moment

    @cached_property
    def line_error(self):
        """As `error`, on the line beside the axis: at all frequencies."""
        excess, outside = self._line_excess
        exponent = math.pi * self.upper_line[:, 0] / self.step
        error = np.logaddexp(excess - exponent - np.log(-np.expm1(-exponent)), outside)
        return np.exp(np.minimum(error, 700.0)) + 1e-19

    def serves(self, frequency):
        """Whether the quadrature is good enough up to this frequency, all rounds together."""
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
        return float(self.nodes.rounds @ (self._line_parts(c)[-1] - np.log1p(-error) + self.nodes.rounding(c)))

    def share_outside(self):
        """Bound on the share of the mass outside the window."""
        log_tail = self._line_parts(self.c)[4]
        return 1e-15 + np.exp(np.minimum(log_tail - self.nodes.log_moment, 700.0))


# ------------------------------------------------------- on the line beside the axis


def line_of(nodes, halvings=0):
    """The line that serves all frequencies, or one nearer to the axis by so many halvings of its height."""
    return Line(nodes, nodes.quadrature.upper_line / 2 ** (1 + halvings))


class Line:
    """The nodes of a family at the height `a`, shape (rows, 1): complex weights over M(c), and losses over their mean."""

    def __init__(self, nodes, a):
        self.nodes, self.a = nodes, a
        more, rise = nodes.family.turned(nodes.c, nodes.u, a)
        log_size = nodes.log_weights + a * a / 2 + more.real
        # Nodes that carry nothing are dropped, as on the axis.
        self.alive = (log_size > math.log(1e-19 / len(nodes.u))).any(axis=0)
        phase = more.imag - nodes.family.sign * a * nodes.u
        self.size = np.exp(log_size[:, self.alive])
        self.weights = self.size * np.exp(1j * phase[:, self.alive])
        self.loss = (nodes.loss - nodes.mean[:, None] + rise)[:, self.alive]

    @cached_property
    def _rounding_sums(self):
        """Weighted sums: what a small phase lets a weight's error do, what it does at most, the error of the loss."""
        nodes, a, keep = self.nodes, self.a, self.alive
        family, u, loss = nodes.family, nodes.u[keep], nodes.loss[:, keep]
        means = tuple(mean[:, keep] for mean in nodes.means)
        base, error = family.rounding(u, nodes.base[:, keep], loss, means)
        log_error, shift = family.log_error[:, None], family.shift[:, None]
        # A posterior weight that is off by a factor 1 + e moves the logarithm of the turned ratio by e a E|J| / (1 - k), about.
        terms = 8 + family.terms + shift * (np.abs(u) + shift)
        turned = 2 * a * sum(means) * (EPS * terms + log_error)
        size = base + log_error + abs(nodes.c) * (error + EPS * np.abs(loss)) + family.bend(nodes.c) * turned + EPS * (8 + np.abs(a * u))
        size, spread = self.size * size, np.abs(self.loss)
        each = self.size * (error + turned + 2 * EPS * spread)
        return (size * spread).sum(axis=1)[:, None], 2 * size.sum(axis=1)[:, None], each.sum(axis=1)[:, None]

    def rounding(self, y):
        """Bound on the rounding error of phi(y), shape (rows, n)."""
        near, far, each = self._rounding_sums
        return np.minimum(y * near, far) + y * each

    def integral(self, y):
        """The integral of |f| along the line as the rule finds it, shape (rows, n)."""
        return np.stack([np.exp(-y[:, None] * turn) @ size for size, turn in zip(self.size, self.loss.imag)])


def turned_sums(weights, loss, y):
    """sum w (e^{iy loss} - 1) at evenly spaced frequencies, shape (rows, n), with the digits of what is small.

    With y = s + t, e^{iyx} - 1 = (e^{isx} - 1)(e^{itx} - 1) + (e^{isx} - 1) + (e^{itx} - 1): few exponentials, and one matrix product.
    """
    return np.stack([_row(w, x, y) for w, x in zip(weights, loss)])


def _row(weights, loss, y):
    if len(y) <= _ALONE:
        return _turns(y, loss) @ weights
    count = math.isqrt(len(y))
    first, second = _turns(y[::count], loss) * weights, _turns(y[:count] - y[0], loss)
    sums = first @ second.T + first.sum(axis=1)[:, None] + second @ weights
    return sums.ravel()[: len(y)]


def _turns(y, loss):
    """e^{iy loss} - 1, shape (n, nodes), with the relative accuracy of both parts of the exponent: e^r cos x - 1 = (e^r - 1) - 2 e^r sin^2(x/2)."""
    half = 0.5 * y[:, None] * loss.real
    out = np.empty(half.shape, complex)
    sine = np.sin(half)
    np.cos(half, out=half)
    out.real, out.imag = -2 * sine * sine, 2 * sine * half
    if np.iscomplexobj(loss):
        fall = -y[:, None] * loss.imag
        out *= np.exp(fall)
        out.real += np.expm1(fall)
    return out
