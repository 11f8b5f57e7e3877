"""What the sum over frequencies of the contour integral leaves out: its aliases (E1), and the frequencies beyond its last one (E2).

|phi(y)| is at most the integral of |f| along any line (`contour_quadrature`), and that falls in y: what bounds one frequency bounds all
above it. The rule finds this integral, too. |f(u + ia)| is e^F for a function F that is analytic, and F at u + ib is the mean of log f
at heights a + b and a - b, of which the upper one turns the ratio by more: no frequency makes it larger. Where that is not enough,
integration by parts bounds |phi| at all frequencies, and cut sums over the nodes bound it to two digits at those that are asked for.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from .._base.log_space import EPS, log_kernel
from .contour_nodes import BLOCK
from .contour_quadrature import NEGLIGIBLE, line_of

_ALIASED = -34.0  # log of the aliases over delta, about
_MOST_LINES = 24
# Where the parts begin and end over which the decay of phi is bounded, as shares of the mass.
_LEVELS = np.array([1e-8, 1e-5, 1e-3, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1 - 1e-4, 1 - 1e-7])
_FROM, _TO = np.triu_indices(len(_LEVELS), 1)
_CUTS = np.array([1e-8, 1e-5, 1e-4, 1e-3, 0.01, 0.05])  # masses beyond the cuts of `modulus_bound`


class Aliases:
    """E1 at one tilt: the period of the sum, and moments at other tilts that bound the aliases that come with it."""

    def __init__(self, c, tilts, nodes, log_moment, s, epsilon):
        """The shortest period whose aliases do not matter, and certified moments that bound them."""
        self.c = c
        moments = sum(n.log_moments_at(tilts) for n in nodes)
        self._others = [(other, k, log_kernel(other)) for other, k in zip(tilts, moments.tolist())]
        aim = _ALIASED - math.log(abs(c * (1 + c)) * s)
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


class LineDecay:
    """Bounds on |phi| from some frequency on, from the best of some lines."""

    def __init__(self, nodes):
        self.nodes, self._lines = nodes, {}

    def beyond(self, y):
        """Upper bounds on |phi| at all frequencies from y on, shape (rows, n); y increasing."""
        nodes = self.nodes
        # For a Gaussian loss the best height is y times its deviation.
        steps = float(nodes.quadrature.upper_line.max()) / 2 / max(float(y[0]) * float(nodes.deviation.max()), 1e-300)
        bound = np.ones((len(nodes.weights), len(y)))
        for halvings in range(1 + min(max(math.ceil(math.log2(steps)), 0), _MOST_LINES)):
            if halvings not in self._lines:
                self._lines[halvings] = line_of(nodes, halvings)
            bound = np.minimum(bound, self._lines[halvings].integral(y))
        # The rule for |f| has the upper line on both sides.
        error = 2 * nodes.quadrature.line_error
        return np.minimum(bound * (1 + 64 * EPS) + error[:, None], 1.0)

    modulus_bound = beyond

    def between(self, bounds, lengths):
        """Upper bounds on |phi| between each frequency and the next one, from those at all."""
        return bounds[:, :-1]


def _running(cells):
    """Sums of the cells before each node, along the last axis: zero at the first node."""
    out = np.zeros((*cells.shape[:-1], cells.shape[-1] + 1))
    np.cumsum(cells, axis=-1, out=out[..., 1:])
    return out


class Between:
    """Bounds on |phi| between frequencies and beyond one, from `modulus_bound` and `constants`."""

    @cached_property
    def _constants(self):
        """`constants` for |phi|^T below e^-46, about."""
        return self.constants(math.exp(-NEGLIGIBLE / float(self.nodes.rounds.sum())))

    def beyond(self, y):
        """Upper bounds on |phi| at all frequencies from y on, shape (rows, n)."""
        variation, rest, _ = self._constants
        return np.minimum(rest[:, None] + variation[:, None] / y, 1.0)

    def between(self, bounds, lengths):
        """Upper bounds on |phi| on intervals from those at their ends: |phi|^2 exceeds its ends by length^2 / 8 max|f''|."""
        squares, excess = bounds**2, (lengths * self.nodes.deviation[:, None]) ** 2 / 3.99
        return np.sqrt(np.maximum(squares[:, :-1], squares[:, 1:]) + excess)


class Decay(Between):
    """Bounds on |phi| from the nodes of one family."""

    def __init__(self, nodes):
        self.nodes, self.family, self.c, self.step = nodes, nodes.family, nodes.c, nodes.step

    def constants(self, aim):
        """(V, rest, far): |phi(y)| <= rest + V / y for every y > 0, at most `aim` from y = far on.

        Integration by parts on an interval S of nodes: |int_S w e^{iy loss} du| <=
        (boundary values + total variation on S of g = w / loss') / y, and what lies
        outside S counts in full. |g'| <= g * rate on each cell, rate = |w'/w| + |loss''| / loss', the last of which is
        at most the largest shift; where the nodes are dense, a cell's variation is also at most
        |difference of g| + step^2 / 2 sup|g''|, and the third derivative of the loss at most the largest shift times |loss''|.
        """
        h, family = self.step, self.family
        shift, bound = family.shift[:, None], family.spread[:, None]
        part = np.flatnonzero(self.nodes.alive)
        part = slice(part[0], part[-1] + 1)
        means, (w, bend) = self._means(part), self._weights_from(part)
        m, (least, _, spread) = sum(means), family.on_cells(means)
        larger = np.maximum(w[:, :-1], w[:, 1:]) * bend
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            g = w / m
            sup = larger / least
            ratio = np.minimum(shift, bound / least)
            rate = self._drift(part) + ratio
            second = rate**2 + 1 + family.bend(self.c) * spread + 2 * shift * ratio
            cells = np.minimum(h * sup * rate, np.abs(np.diff(g)) + h * h / 2 * sup * second)
            variation = _running(cells)
        share = _running(h * np.minimum(w[:, :-1], w[:, 1:]) / bend)
        share /= share[:, -1:]
        picks = (share[:, None, :] < _LEVELS[:, None]).sum(axis=2)
        picks = np.minimum(picks, w.shape[1] - 1)
        i, j = picks[:, _FROM], picks[:, _TO]
        at = lambda array, place: np.take_along_axis(array, place, axis=1)
        # The trapezoid mass of the cells outside S, each by its larger end.
        upper = _running(h * larger)
        rest = at(upper, i) + upper[:, -1:] - at(upper, j) + self.nodes.quadrature.share_outside()[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            total = at(variation, j) - at(variation, i) + at(g, i) + at(g, j)
            good = (i < j) & (rest < 0.95 * aim) & np.isfinite(total)
            far = np.where(good, total / (aim - rest), np.inf)
        best = np.argmin(far, axis=1)[:, None]
        total, rest, far = (at(array, best)[:, 0] for array in (total, rest, far))
        found = np.isfinite(far)
        return np.where(found, total, 0.0), np.where(found, rest, 1.0), far

    def modulus_bound(self, y):
        """Upper bounds on |phi(y)|, y increasing: good to two digits far beyond E3's range.

        The smaller of the full sum with E3, and the sum over u <= u_r plus the mass r
        beyond. The cut trapezoid rule misses its integral by at most step^3 / 12 |f''|
        a cell, |f''| <= w ((|w'/w| + y loss')^2 + |(log w)''| + y |loss''|), which is mild
        because the loss is steep only beyond the cut.
        """
        weights, loss, (constant, linear, square, rest) = self._cut_sums
        bound = np.empty((len(loss), len(y)))
        start = 0
        while start < len(y):
            # Chunks in which y at most doubles share one E3; their size bounds the memory.
            stop = int(np.searchsorted(y, 2 * y[start], side="right"))
            stop = min(stop, start + max(1, BLOCK // loss.size))
            part = y[start:stop, None]
            phase = part * loss[:, None, :]
            sums = np.hypot(np.cos(phase) @ weights, np.sin(phase) @ weights)
            full = sums[..., 0] + self.nodes.quadrature.axis_error(float(y[stop - 1]), self.c)[:, None]
            error = constant[:, None] + part * (linear[:, None] + part * square[:, None])
            cut = (sums[..., 1:] + rest[:, None] + error).min(axis=2)
            bound[:, start:stop] = np.minimum(full, cut) + self.nodes.axis_rounding(y[start:stop], 2.0)
            start = stop
        return np.minimum(bound, 1.0)

    @cached_property
    def _cut_sums(self):
        """Columns of weights for the bounds of `modulus_bound`: the full sum's, then each cut's.

        With them the losses, and for each cut its three error coefficients and the mass
        that it leaves out, shapes (rows, n, cuts + 1), (rows, n), (4, rows, cuts).
        """
        h, family, power = self.step, self.family, self.family.bend(self.c)
        part = slice(int(np.argmax(self.nodes.alive)), None)
        _, m_end, variance = family.on_cells(self._means(part))
        w, bend = self._weights_from(part)
        sup = h * bend * np.maximum(w[:, :-1], w[:, 1:])
        size = self._drift(part)
        total = _running(sup[:, ::-1])[:, ::-1]  # mass beyond each node
        cuts = np.maximum((total[:, None, :] >= _CUTS[:, None]).sum(axis=2), 2)
        node, cut = np.arange(w.shape[1])[:, None], cuts[:, None, :]
        kept = np.where(node < cut, 1.0, np.where(node == cut, 0.5, 0.0))
        weights = h * w[..., None] * np.concatenate([np.ones((*w.shape, 1)), kept], axis=2)
        cells = sup * h * h / 12
        coefficients = [
            np.take_along_axis(_running(cells * rate), cuts, axis=1)
            for rate in (size**2 + 1 + power * variance, 2 * size * m_end + variance, m_end**2)
        ]
        rest = np.take_along_axis(total, cuts, axis=1) + self.nodes.quadrature.share_outside()[:, None]
        return weights, self.nodes.loss[:, part] - self.nodes.mean[:, None], np.stack([*coefficients, rest])

    def _drift(self, part):
        """Bound on the derivative of log w on each cell, in size: its ends, plus half its change."""
        ends = np.abs(self.family.drift(self.c, self.nodes.u[part], self._means(part)))
        change = 1 + self.family.bend(self.c) * self.family.spread[:, None]
        return np.maximum(ends[:, :-1], ends[:, 1:]) + self.step / 2 * change

    def _means(self, part):
        return tuple(mean[:, part] for mean in self.nodes.means)

    def _weights_from(self, part):
        """(w, factor by which w may exceed the larger end of a cell) for the normalised weights."""
        w = np.exp(self.nodes.base[:, part] + self.c * self.nodes.loss[:, part] - self.nodes.log_moment[:, None])
        return w, np.exp(self.step**2 / 8 * (1 + self.family.fall(self.c)))[:, None]
