"""Factors of the contour integral with mixtures on both sides: P = phi S, Q = phi S', where S grows and S' falls in u.

At tilt c > 0 the integrand is phi S^A S'^-c, A = 1 + c, and the loss log S - log S'. Both logarithms are convex: their second
derivatives are the posterior variances of the two shifts, and the derivative of the loss is the sum of the two posterior means.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.log_space import EPS, log_sum_exp
from ..mixtures import TwoSided
from ..results import Bracket, NoBracketError, _inside_floats
from .contour_nodes import Family, nodes_for, variance_at, with_end
from .contour_quadrature import NEGLIGIBLE

_MARGIN, _MOST_ROUGH = 14.0, 100_000  # around the modes, and nodes of the grid that finds the window
_MOST_HUMPS = 4_000_000


class TwoSidedFamily(Family):
    """One pair, `rounds` times, in the direction (P, Q), with what `Family` says about one-sided ones. Tilts are positive."""

    negative_tilts = False

    def __init__(self, pair: TwoSided, rounds: int):
        self.pair, self.mixtures, self.sign = pair, [pair], 1
        self.rounds = np.array([float(rounds)])
        tops = [float(side.shifts[-1]) for side in (pair.gained, pair.lost)]
        self.tops, self.shift = tops, np.array([max(tops)])
        self.variances = [max(side.variance_bound, 1e-12) for side in (pair.gained, pair.lost)]
        self.variance, self.spread = np.array([max(self.variances)]), np.array([sum(self.variances)])
        self.log_error = np.array([pair.log_probability_error])
        self.terms = max(len(side.shifts) for side in (pair.gained, pair.lost))
        self._coarse_reach, self._rough = -1.0, None

    def log_ratio_and_slope(self, u):
        value, slope = self.pair.log_ratio_and_slope(u)
        return value[None], slope[None]

    def evaluate(self, u):
        """(log density of P, loss, (posterior mean of the shift under P, of minus the shift under Q)), arrays of shape (1, n)."""
        up, up_mean = self.pair.gained.log_ratio_and_slope(u)
        down, down_mean = self.pair.lost.log_ratio_and_slope(-u)
        return self.pair.log_density(u)[None], (up - down)[None], (up_mean[None], down_mean[None])

    def lift(self, u, loss):
        return self.pair.gained.log_ratio(u)[None]

    def rounding(self, u, base, loss, means):
        """Bounds on the rounding errors of (log density of P, loss) at nodes u."""
        return EPS * (8 + np.abs(base)), self.pair.log_ratio_error(loss[0], sum(means)[0], u)[None]

    # -- bounds between the nodes; the mean under P increases, the one under Q decreases

    def drift(self, c, u, means):
        return (1 + c) * means[0] + c * means[1] - u

    def bend(self, c):
        return 1 + c

    def fall(self, c):
        return np.array([c * self.variances[1]])

    def steepest(self, c):
        return np.array([(1 + c) * self.tops[0] + c * self.tops[1]])

    def on_cells(self, means):
        (up, down), (first, second) = means, self.variances
        least = up[:, :-1] + down[:, 1:]
        most = up[:, 1:] + down[:, :-1]
        bend = np.minimum(first, self.tops[0] * up[:, 1:]) + np.minimum(second, self.tops[1] * down[:, :-1])
        return least, most, bend

    def rates(self, c, low, high, means):
        up, down = means
        right = high - (1 + c) * self.tops[0] - c * down[:, -1]
        if (1 + c) * self.variances[0] <= 1:  # log-concave
            right = np.maximum(right, high - (1 + c) * up[:, -1] - c * down[:, -1])
        return c * down[:, 0] - low, right

    def lines(self, c, a, means):
        (up, down), (first, second) = means, self.tops
        highest = with_end(up[:, 1:], np.array([first])), with_end(down[:, :-1], np.array([second]))
        return self.off_axis(c, a, highest, self.variances_on(highest))

    def off_axis(self, c, a, highest, variances):
        """As `Family.off_axis`: |S'|^-c is at most (1 - k')^-c times its real value, and both arguments add up."""
        first, second = (a * a / 2 * variance for variance in variances)
        return a * a / 2 - c * np.log1p(-second), a * sum(highest) + math.pi / 2 * (first + second)

    def turned(self, c, u, a):
        up, down = self.pair.gained.turned(u, float(a[0, 0])), self.pair.lost.turned(-u, float(a[0, 0])).conj()
        return ((1 + c) * up - c * down)[None], (up - down)[None]

    def between(self, left, right):
        return (left[0], right[1]), (right[0], left[1])

    def variances_on(self, highest, lowest=(0.0, 0.0)):
        return tuple(map(variance_at, self.variances, self.tops, lowest, highest))

    def rise(self, c, variances):
        return (1 + c) * variances[0]

    # -- where the integrand lives

    def humps(self, c):
        """Heights and centres of Gaussians above the integrand, and the log of a factor on them.

        S^A <= m^c sum of A-th powers of its terms, and S' is at least its term of least shift.
        """
        gained, lost, w = self.pair.gained, self.pair.lost, 1 + c
        a, b = gained.shifts, float(lost.shifts[0])
        centres = w * a + c * b
        heights = w * (gained.log_probabilities - a * a / 2) + c * (b * b / 2 - float(lost.log_probabilities[0])) + centres**2 / 2
        return heights[None], centres, c * math.log(len(a))

    def window(self, c_low, c_high):
        """An interval outside of which the weights at tilts in [c_low, c_high] are negligible, about: bounds come later."""
        ends = []
        for c in (max(c_high, 0.0), max(c_low, 0.0)):
            u, base, loss = self._rough_up_to(float(self.steepest(c)[0]) + _MARGIN)
            logs = (base + c * loss)[0]
            alive = np.flatnonzero(logs > float(log_sum_exp(logs)) - NEGLIGIBLE - 6)
            ends += [u[max(alive[0] - 1, 0)], u[min(alive[-1] + 1, len(u) - 1)]]
            # The humps have to be small as well.
            heights, centres, slack = self.humps(c)
            room = NEGLIGIBLE + 4 + slack + heights[0] - float(log_sum_exp(logs)) - math.log(u[1] - u[0])
            reach = np.sqrt(2 * room.clip(0.0))
            ends += [*(centres - reach)[room > 0], *(centres + reach)[room > 0]]
        return float(min(ends)), float(max(ends))

    def _rough_up_to(self, high):
        """(u, log density, loss) on a grid from the margin below 0 to `high` or beyond."""
        if self._rough is None or self._rough[0][-1] < high:
            count = int((high + _MARGIN) * 4) + 2
            if count > _MOST_ROUGH:
                raise NoBracketError(f"the contour needs {count} coarse nodes")
            u = np.linspace(-_MARGIN, high, count)
            self._rough = u, *self.evaluate(u)[:2]
        return self._rough


class TwoSidedMoments:
    """The Renyi divergences of a pair in the direction (P, Q): the moment of the contour integral at tilt order - 1."""

    family: object  # as `Family`

    def __init__(self, pair: TwoSided):
        self.family = TwoSidedFamily(pair, 1)

    def _nodes(self, c):
        return nodes_for(self.family, c, c, c, 0.0)

    def __call__(self, order: float, sign: int = 1) -> Bracket:
        """Bracket at a real order above 1; sign : of no use, as the pair faces its direction."""
        c = order - 1
        with _inside_floats():
            nodes = self._nodes(c)
            [error] = nodes.quadrature.error(0.0)
            [log_moment], [rounding] = nodes.log_moment, nodes.rounding(c)
        if not error < 0.5:
            raise NoBracketError(f"the Renyi divergence's error bound does not close at order {order:g}")
        low, high = log_moment + math.log1p(-error) - rounding, log_moment - math.log1p(-error) + rounding
        if not high / c < 1e300:
            raise NoBracketError(f"the Renyi divergence leaves the range of floats at order {order:g}")
        return Bracket(max(low / c * (1 - 4 * EPS), 0.0), max(high / c, 0.0) * (1 + 4 * EPS), "quadrature")
