"""E2: how the characteristic function of one factor of the contour integral decays.

Integration by parts bounds it at all frequencies, cut sums over the nodes bound it to two digits at those that are asked for.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from .contour_nodes import BLOCK
from .contour_quadrature import NEGLIGIBLE

# Where the parts begin and end over which the decay of phi is bounded, as shares of the mass.
_LEVELS = np.array([1e-8, 1e-5, 1e-3, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1 - 1e-4, 1 - 1e-7])
_FROM, _TO = np.triu_indices(len(_LEVELS), 1)
_CUTS = np.array([1e-8, 1e-5, 1e-4, 1e-3, 0.01, 0.05])  # masses beyond the cuts of `modulus_bound`


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
