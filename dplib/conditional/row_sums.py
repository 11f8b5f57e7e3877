"""The sum of the rows' losses from above, in a fixed amount of work.

Where the contour closes late, as with rows that hardly ever hold a participation, one lattice is enough for
an upper bound. All rows share one partition of the axis. A cell keeps its exact masses under both laws, and they
are moved to the losses at its two ends (chords), and from there to the two lattice points beside each: the
hockey-stick curve becomes a chord of itself twice, which lies above. One product of discrete Fourier transforms
of the tilted masses composes the rows.

Direction: what lies beyond the window counts as an infinite loss if it is large, and as the window's end if
it is small. What wraps around the period only adds; what is above it is bounded by Chernoff and
added, as is the rounding of the transforms.
Cost: (cells x shifts + rows x lattice points), both capped: a tenth of a second for 64 rows.
"""

from __future__ import annotations

import math

import numpy as np

from .._base import validate as check
from .._base.lazy_scipy import optimize, special
from .._base.log_space import EPS, log_kernel, log_sum_exp
from ..accounting.chernoff import saddle
from ..results import NoBracketError, _inside_floats

_LARGEST_EXPONENT = 680.0  # of a likelihood ratio
_CELLS, _POINTS = (3000, 12_000), (2**16, 2**18)  # of the partition and of the lattice: at least, and where that is cheap
_WORK = 2**19  # entries of a table that is cheap
_MOST_WORK = 40_000_000  # and that may be asked for at all
_NARROWEST = 1e-8  # of the largest loss: a period that is shorter, or a larger tilt, would be lost in rounding
_BLOCK = 8  # cells taken together to steer by
_CUT = 1e-7  # of the delta that matters: what is cut may cost so much
_LOW = -10.0  # below it P has mass 1e-23 at most, and nothing is lost if that is moved up
_NEGLIGIBLE = math.log(1e-13)  # of the tilted law: what may lie outside the period
_CLOSE = 3e-8  # relative, of an epsilon that is searched for
_FAR_ABOVE = 6.0  # in log delta


class Cells:
    """The losses of all rows on one partition, one direction.

    pairs : list of (Mixture, count), of one noise multiplier. least : the delta beside which others are nothing.
    among : how many such sums share one budget of cells and points.
    Raises NoBracketError where the shifts are too large, or the tables would be.
    """

    def __init__(self, pairs, direction, least, among=1):
        pairs = [(mixture, count) for mixture, count in pairs if not mixture.is_trivial]
        self.rounds = float(sum(count for _, count in pairs))
        self.counts = np.array([float(count) for _, count in pairs])
        if not pairs:
            return
        shifts, weights = _common(pairs)
        cells, points = max(len(shifts), len(pairs)), len(pairs)
        if cells * _CELLS[0] > _MOST_WORK or points * _POINTS[0] > _MOST_WORK:
            raise NoBracketError("the rows are too many, or too different, for one lattice")
        self.cells = min(max(_WORK // (cells * among), _CELLS[0]), _CELLS[1])
        self.points = _POINTS[0] if points * among * _POINTS[1] > 4 * _WORK else _POINTS[1]
        self.remove = check.side(direction) == "remove"
        self._partition(shifts, weights, max(least * _CUT / self.rounds, 1e-300))

    def _partition(self, shifts, weights, cut):
        """Losses at the ends of cells, the first law's masses there, and what is cut off above."""
        far = -float(special.ndtri_exp(math.log(cut)))
        low, high = (_LOW if self.remove else -far), shifts[-1] + far
        if float((shifts * (high - shifts / 2)).max()) > _LARGEST_EXPONENT:
            raise NoBracketError("the rows' sensitivities are too large for one lattice")
        u = np.linspace(low, high, self.cells + 1)
        exponent = shifts * (u[:, None] - shifts / 2)
        grown = np.expm1(exponent) @ weights  # R - 1
        ratio = np.exp(exponent) @ weights
        if not self.remove and not ratio.min() > 1e-290:
            raise NoBracketError("the rows' losses are too large for one lattice")
        # A small loss has its digits in R - 1, one far below 0 in R; a smaller one may be raised in P.
        loss = np.where(grown > -0.5, np.log1p(np.maximum(grown, -0.5)), np.log(np.maximum(ratio, 1e-290))).T
        tail = special.ndtr(-np.abs(u[:, None] - shifts))
        above = u[:, None] > shifts
        mass = np.abs(np.diff(tail, axis=0))
        astride = above[1:] & ~above[:-1]
        mass[astride] = (1 - tail[1:] - tail[:-1])[astride]
        q = np.repeat(mass[:, :1], weights.shape[1], axis=1).T
        excess = ((mass - mass[:, :1]) @ weights).T  # P - Q
        at = np.expm1(loss)
        # Q-mass that goes to the right end; both masses of the cell are kept.
        with np.errstate(divide="ignore", invalid="ignore"):
            right = np.where(at[:, 1:] > at[:, :-1], (excess - q * at[:, :-1]) / (at[:, 1:] - at[:, :-1]), 0.5 * q)
        right = np.clip(right, 0.0, q)
        second = np.zeros_like(loss)  # Q-mass at the ends
        second[:, 1:] += right
        second[:, :-1] += q - right
        if self.remove:
            first, self.loss = second * np.exp(loss), loss
            first[:, 0] += special.ndtr(low - shifts) @ weights
            tails = special.ndtr(shifts - high) @ weights
        else:
            first, self.loss = second[:, ::-1], -loss[:, ::-1]
            first[:, 0] += special.ndtr(-high)
            tails = np.full(len(loss), special.ndtr(low))
        self.first, self.infinite = first, float(self.counts @ tails)
        self._measure()

    def _measure(self):
        """What follows from the losses and masses of all rows: how far sums reach, what rounding may move, blocks to steer by."""
        self.most = float(self.counts @ self.loss.max(axis=1))  # no sum exceeds it
        self.reach = reach = max(float(np.abs(self.loss).max()), 1e-290)
        self.shift = 64 * EPS * self.rounds * min(reach, 1.0) + 8 * EPS * reach * self.rounds  # rounding of the losses
        with np.errstate(divide="ignore"):
            self.log_first = np.log(self.first)
        # In blocks, to steer by: no bound rests on them.
        blocks = np.arange(0, self.loss.shape[1], _BLOCK)
        coarse = np.add.reduceat(self.first, blocks, axis=1)
        means = np.add.reduceat(self.first * self.loss, blocks, axis=1) / np.maximum(coarse, 1e-300)
        with np.errstate(divide="ignore"):
            self._coarse = np.log(coarse), np.where(coarse > 1e-290, means, self.loss[:, blocks])

    def _moments(self, c):
        """(K, K', K'') of the sum at tilt c, to a few digits."""
        log_mass, loss = self._coarse
        logs = log_mass + c * loss
        top = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - top)
        total = weights.sum(axis=1)
        mean = (weights * loss).sum(axis=1) / total
        variance = (weights * (loss - mean[:, None]) ** 2).sum(axis=1) / total
        parts = top[:, 0] + np.log(total), mean, variance
        return [float(self.counts @ part) for part in parts]


class RowSum(Cells):
    """The composed rows, one direction; a bound at every epsilon. Made like its cells."""

    def guess(self, epsilon):
        """About the log of delta at `epsilon`, without what is cut: to steer a search, no bound."""
        if not self.rounds or epsilon >= self.most:
            return -math.inf
        with np.errstate(over="ignore", invalid="ignore"):
            c = saddle(self._moments, epsilon=epsilon)
            return self._moments(c)[0] - c * epsilon + log_kernel(c)

    def is_hopeless(self, epsilon, delta):
        """Whether delta at `epsilon` is above `delta`; looked at only where it seems to be, by far."""
        return self.guess(epsilon) > math.log(delta) + _FAR_ABOVE and self.delta(epsilon) > delta

    @_inside_floats()
    def delta(self, epsilon):
        """Upper bound of delta at `epsilon`."""
        if not self.rounds:
            return 0.0
        at = epsilon - self.shift
        if at >= self.most:
            return self.infinite * (1 + 1e-9)
        return self._composed(saddle(self._moments, epsilon=at))(epsilon)

    @_inside_floats()
    def epsilon(self, delta):
        """Upper bound of epsilon at `delta`; what `delta` answers there is the same to 1e-6, by another tilt."""
        if not self.rounds:
            return 0.0
        if not self.infinite * (1 + 1e-9) < delta:
            raise NoBracketError("what is cut is more than delta")
        c = saddle(self._moments, log_delta=math.log(delta))
        bound = self._composed(c)
        if bound(0.0) <= delta:
            return 0.0
        low, high = 0.0, max((self._moments(c)[0] - math.log(delta) + log_kernel(c)) / c, 1e-12)
        if not bound(high) <= delta:
            low, high = high, (self.most + self.shift) * (1 + 1e-12)  # no sum exceeds it
        if not low < high:
            raise NoBracketError("one lattice finds no epsilon")
        return least(bound, delta, low, high)

    def _composed(self, c):
        """The function epsilon -> upper bound of delta, sharp near the saddle of c."""
        c = min(c, 1 / (_NARROWEST * self.reach))
        log_moment, mean, variance = self._moments(c)
        (below, _), (above, order) = (self._outside(c, log_moment, mean, variance, side) for side in (-1, 1))
        points, width = self.points, max(above - below, _NARROWEST * self.reach) / self.points
        # The tilted lattice laws, each with sum one; the logs of their moments add up to `scale`, at c + order to `far`.
        place = self.loss / width
        index = np.floor(place)
        share = np.clip(np.expm1((index - place) * width) / math.expm1(-width), 0.0, 1.0)  # of the P-mass, that goes up
        logs = self.log_first + c * self.loss
        top = logs.max(axis=1, keepdims=True)
        masses = np.exp(logs - top)
        down = masses * (1 - share) * np.exp(c * width * (index - place))
        up = masses * share * np.exp(c * width * (index + 1 - place))
        total = (down + up).sum(axis=1)
        scale = float(self.counts @ (top[:, 0] + np.log(total)))
        with np.errstate(divide="ignore"):
            raised = order * width * index + np.logaddexp(np.log(down), np.log(up) + order * width)
        far = float(self.counts @ (log_sum_exp(raised) - np.log(total)))
        cell = index.astype(np.int64) % points
        spectrum = None
        for row in range(len(masses)):
            law = np.bincount(cell[row], down[row], points) + np.bincount((cell[row] + 1) % points, up[row], points)
            part = np.fft.rfft(law / total[row]) ** self.counts[row]
            spectrum = part if spectrum is None else spectrum * part
        law = np.maximum(np.fft.irfft(spectrum, points), 0.0)
        start = math.floor(below / width)
        law = np.roll(law, -(start % points))
        sums = width * (start + np.arange(points))
        # Rounding of the transforms, in each point; and the mass above the period.
        error = 4 * EPS * (2 * self.rounds + 8 * math.log2(points) + 8 * len(masses))
        lost = math.exp(min(far - order * above + 1e-9 * (1 + abs(far)), 0.0))

        def bound(epsilon):
            epsilon = epsilon - self.shift
            if epsilon >= self.most:
                return self.infinite * (1 + 1e-9)
            used = slice(int(np.searchsorted(sums, epsilon, "right")), None)
            gap = sums[used] - epsilon
            kernel = np.exp(-c * gap) * -np.expm1(-gap)
            value = float((kernel * law[used]).sum() + error * kernel.sum()) + lost
            exponent = scale - c * epsilon + math.log(max(value, 1e-300)) + 4 * EPS * (abs(scale) + c * abs(epsilon)) + 1e-10
            return min(math.exp(min(exponent, 0.0)) + self.infinite * (1 + 1e-9), 1.0)

        return bound

    def _outside(self, c, log_moment, mean, variance, side):
        """(a sum beyond which the tilted law has next to nothing, on one side, by Chernoff; at which order)."""
        spread, found = math.sqrt(max(variance, 1e-300)), []
        for order in (np.geomspace(0.5, 30, 7) / spread).tolist():
            log_far = self._moments(c + side * order)[0] - log_moment
            # P[side * S > x] <= e^(log_far - order * x)
            found.append(((log_far - _NEGLIGIBLE) / order, order))
        place, order = min(found)
        return side * max(place, side * mean + 1e-12 * spread), order


def least(bound, delta, low, high):
    """About the smallest number up to `high` at which `bound`, which decreases, is at most delta, as it is at `high`."""
    gap = lambda x: math.log(max(bound(x), 1e-320) / delta)
    if gap(low) <= 0:
        return low
    high = min(high, float(optimize.brentq(gap, low, high, xtol=1e-300, rtol=_CLOSE)))
    while bound(high) > delta:  # at most a step or two: the root is as close
        high *= 1 + _CLOSE
    return high


def _common(pairs):
    """(all shifts that occur, with 0 first; weights, shape (shifts, rows))."""
    shifts = np.unique(np.concatenate([[0.0], *(mixture.shifts for mixture, _ in pairs)]))
    weights = np.zeros((len(shifts), len(pairs)))
    for row, (mixture, _) in enumerate(pairs):
        weights[np.searchsorted(shifts, mixture.shifts), row] = mixture.probabilities
    return shifts, weights
