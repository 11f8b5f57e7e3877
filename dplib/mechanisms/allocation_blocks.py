"""Random allocation from above and from below, without sampling: blocks of rounds, one participation in each.

Lemma (blocks). Let a record take part in a uniformly random k-subset S of t rounds. Cut the rounds at random into k blocks whose sizes
differ by at most one, all such partitions equally likely, and then pick one round of every block: with sizes that fix the law of the
pick, S is uniform, because a permutation of the rounds changes neither step. So P is the mean over partitions of
P_B = (1 of the first block) x ... x (1 of the last block), and Q, where nobody takes part, is the same for all of them. Hockey-stick
divergences are jointly convex, in both orders: H(P || Q) <= mean of H(P_B || Q), and every term is the divergence of the same
composition, of 1 of ceil(t/k) and 1 of floor(t/k) rounds. Blocks that differ in size need no rounds to be left out: the published
bound, k times 1 of floor(t/k), has them all of the smaller size.

The loss of one block has no density in closed form, but its hockey-stick curve has an upper bound at every epsilon [A-16]. `Law` turns
such values at finitely many places into a law: the lower convex hull of points on or above a convex curve lies on or above the
curve, it is linear between them, and such a curve belongs to atoms at the places. Curves that lie above stay above when composed, also
where masses add up to more than one.

From below: data processing, and Kahane's inequality [M-K] for modes that overlap no more than those of the allocation.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .. import gaussian
from .._base.log_space import EPS
from ..balls_in_bins import lognormal_sum
from ..conditional.row_sums import RowSum
from ..results import Bracket, NoBracketError

_PLACES = 160  # at which the curve of one block is evaluated, above 0; half as many below
_ROUGH, _FALL = 30, 2.0  # places at which they are chosen, and how much the fall of the curve counts beside the distance to 0
_TOLERANCE = 1e-4  # relative, of its values there
_CUT = 1e-5  # of the delta that matters: what losses beyond the last place may cost
_LOWEST = 1e-12  # mass below the first place, about
_MOST_BINS = 4096  # of a lower bound
_POINTS = 2**16  # of the lattice on which the blocks are composed
_FLOOR = 1e-290
_LARGEST_LOSS = 600.0  # of one round
_LEAST_NOISE = 0.03  # below it the mean alone is the lower bound


def sizes(rounds, participations):
    """[(size of a block, how many blocks of it)]: sizes that add up to `rounds` and differ by at most one."""
    small, more = divmod(rounds, participations)
    return [(size, count) for size, count in ((small + 1, more), (small, participations - more)) if count]


def other(side):
    return "add" if side == "remove" else "remove"


def curve(size, noise, epsilon, side):
    """Upper bound of delta of 1 of `size` rounds at any real epsilon."""
    if epsilon < 0:  # H_a(P || Q) = 1 - a + a H_{1/a}(Q || P)
        return -math.expm1(epsilon) + math.exp(epsilon) * curve(size, noise, -epsilon, other(side))
    if size == 1:
        return math.exp(lognormal_sum.log_ceiling(noise**-2, epsilon))
    return lognormal_sum._widest(size, noise**-2, epsilon, side, _TOLERANCE).upper


class Law:
    """A law of finitely many losses whose hockey-stick curve lies above that of 1 of `size` rounds.

    noise : noise multiplier. side : "remove" or "add". cut : delta may grow by so much from losses beyond the last place.
    `losses`, `masses` (under the first law), shape (n,), and `infinite`, the mass of an infinite loss. Masses are rounded up: they may
    add up to a little more than 1.
    """

    def __init__(self, size, noise, side, cut):
        if (reach := gaussian.epsilon(1 / noise, max(cut, _FLOOR))) > _LARGEST_LOSS:
            raise NoBracketError(f"losses of {reach:.3g} in one round leave the range of floats")
        high, low = (self._reach(size, noise, way, target) for way, target in ((side, cut), (other(side), _LOWEST)))
        above = self._places(size, noise, side, high, _PLACES)
        below = self._places(size, noise, other(side), low, _PLACES // 2)
        places = np.concatenate([-below[:0:-1], above])
        values = np.array([curve(size, noise, float(place), side) for place in places])
        ratios = np.exp(places)
        kept = _hull(ratios, values)
        self.losses, ratios, values = places[kept], ratios[kept], values[kept]
        slopes = -np.diff(np.concatenate([[1.0], values, values[-1:]])) / np.diff(np.concatenate([[0.0], ratios, [math.inf]]))
        masses, self.infinite = ratios * np.maximum(-np.diff(slopes), 0.0), float(values[-1])
        # The curve of these masses, in positive terms, against the values: what rounding took is given back.
        share = 1 - np.minimum(ratios[:, None] / ratios, 1.0)
        ends = np.concatenate([[masses.sum()], share @ masses]) + self.infinite
        missing = max(float(np.max(np.concatenate([[1.0], values]) / ends)) - 1, 0.0)
        growth = 1 + missing * (1 + 1e-9) + 16 * EPS * len(masses)
        self.masses, self.infinite, self.growth = masses * growth, self.infinite * growth, growth

    @staticmethod
    def _places(size, noise, side, reach, count):
        """`count` places from 0 to `reach`: dense near 0, where most of the mass is, and where the curve falls fast."""
        middle = max(curve(size, noise, 0.0, side), 1e-6 * reach)  # losses are about as large as that
        rough = middle * np.sinh(np.linspace(0.0, math.asinh(reach / middle), _ROUGH))
        fall = -np.log([max(curve(size, noise, float(place), side), _FLOOR) for place in rough])
        metric = np.linspace(0.0, 1.0, _ROUGH) + _FALL * (fall - fall[0]) / max(fall[-1] - fall[0], 1e-9)
        metric = np.maximum.accumulate(metric)
        return np.interp(np.linspace(0.0, metric[-1], count), metric, rough)

    @staticmethod
    def _reach(size, noise, side, target):
        """An epsilon at which the curve is at most `target`; a little more than the smallest one."""
        reach = gaussian.epsilon(1 / noise, max(target, _FLOOR))  # of one round, which is above
        for _ in range(60):
            if reach < 1e-9 or curve(size, noise, 0.8 * reach, side) > target:
                break
            reach *= 0.8
        return max(reach, 1e-9)


def _hull(x, y):
    """Indices of the points that span the lower convex hull of (0, 1), (x, y) and what is to the right of the last point."""
    points, kept = [(0.0, 1.0, -1)], []
    for i in range(len(x)):
        while len(points) > 1:
            (x0, y0, _), (x1, y1, _) = points[-2:]
            if (y1 - y0) * (x[i] - x1) < (y[i] - y1) * (x1 - x0):
                break
            points.pop()
        points.append((float(x[i]), float(y[i]), i))
    kept = [i for _, _, i in points[1:]]
    while len(kept) > 1 and y[kept[-1]] >= y[kept[-2]]:  # the curve does not rise
        kept.pop()
    return kept


@lru_cache(maxsize=64)
def _law(size, noise, side, cut):
    return Law(size, noise, side, cut)


class Blocks(RowSum):
    """The composition of laws of blocks on one lattice: `delta` and `epsilon` are upper bounds.

    parts : list of (size, count). Arguments as for `Law`; least : the delta beside which others are nothing.
    """

    def __init__(self, parts, noise, side, least):
        self.counts = np.array([float(count) for _, count in parts])
        self.rounds = float(self.counts.sum())
        cut = 10.0 ** math.floor(math.log10(max(_CUT * least / self.rounds, _FLOOR)))
        laws = [_law(size, noise, side, cut) for size, _ in parts]
        length = max(len(law.losses) for law in laws)
        # Shorter laws are filled up with empty cells.
        self.loss = np.array([np.pad(law.losses, (0, length - len(law.losses)), mode="edge") for law in laws])
        self.first = np.array([np.pad(law.masses, (0, length - len(law.masses))) for law in laws])
        growth = math.exp(self.rounds * math.log(max(law.growth for law in laws)))
        self.infinite = min(float(self.counts @ [law.infinite for law in laws]) * growth, 1.0)
        self.points = _POINTS
        self._measure()
        self._coarse = self.log_first, self.loss  # few cells, and wide ones: none may be taken together


def parts_of(rounds, participations, epochs):
    """[(size, count)] of all blocks of all epochs."""
    return [(size, count * epochs) for size, count in sizes(rounds, participations)]


def lower_delta(scheme, epsilon, side):
    """A proved lower bound of delta at `epsilon`: the best of three.

    Mean: the sum of all releases is a Gaussian mechanism of sensitivity k E / sqrt(t E) (data processing).
    Marks: choose j of the k rounds of each of e epochs at random and forget the others. Modes that are orthogonal unless all
    choices agree, of squared norm j e, overlap at most as much as the k-subsets themselves do, weights the same, so that delta is at
    least that of balls in C(t, j)^e bins [M-K].
    """
    rounds, participations, epochs, noise = scheme
    best = gaussian.log_delta(participations * math.sqrt(epochs / rounds) / noise * (1 - 1e-12), epsilon)
    best = math.exp(best - gaussian.TAIL_ERROR * (1 + abs(best))) * (1 - 1e-12)
    for bins, norm_squared in _marked(*scheme):
        if lognormal_sum.log_ceiling(norm_squared, epsilon) > math.log(max(best, _FLOOR)):
            best = max(best, lognormal_sum._widest(bins, norm_squared, epsilon, side, 1e-3).lower)
    return best


def _marked(rounds, participations, epochs, noise):
    """(bins, squared norm in units of the noise) of the balls in bins that the allocation is at least as bad as."""
    for marks in range(1, participations + 1) if noise > _LEAST_NOISE else ():
        for used in range(1, epochs + 1):
            bins = math.comb(rounds, marks) ** used
            if bins > _MOST_BINS:
                break
            if bins > 1:
                yield bins, marks * used * noise**-2 * (1 - 1e-12)


def delta(scheme, epsilon, side) -> Bracket:
    """Bracket of delta; both ends proved, the upper one by blocks. scheme : (rounds, participations, epochs, noise multiplier)."""
    rounds, participations, epochs, noise = scheme
    lower = lower_delta(scheme, epsilon, side)
    # Without any random choice: everybody takes part in k known rounds of each epoch.
    ceiling = math.exp(lognormal_sum.log_ceiling(participations * epochs * noise**-2, epsilon))
    upper = max(ceiling, lognormal_sum.FLOOR)
    if upper > lognormal_sum.FLOOR:
        try:
            upper = min(upper, Blocks(parts_of(rounds, participations, epochs), noise, side, max(lower, 1e-12 * ceiling)).delta(epsilon))
        except NoBracketError:
            pass
    return Bracket(min(lower, upper), upper, "blocks")


def epsilon(scheme, delta, side) -> float:
    """Upper bound of epsilon at `delta`, by blocks."""
    rounds, participations, epochs, noise = scheme
    ceiling = gaussian.epsilon(math.sqrt(participations * epochs) / noise * (1 + 1e-12), delta) * (1 + 1e-12)
    try:
        return min(ceiling, Blocks(parts_of(rounds, participations, epochs), noise, side, delta).epsilon(delta))
    except NoBracketError:
        return ceiling


def lower_epsilon(scheme, delta, side) -> float:
    """A proved lower bound of epsilon at `delta`, from the same pairs as `lower_delta`."""
    rounds, participations, epochs, noise = scheme
    mean = participations * math.sqrt(epochs / rounds) / noise
    best = gaussian.epsilon(mean * (1 - 1e-12), delta) * (1 - 1e-11)
    for bins, norm_squared in _marked(*scheme):
        if delta < 1e-290 or gaussian.epsilon(math.sqrt(norm_squared), delta) <= best:
            continue
        try:
            best = max(best, lognormal_sum.epsilon_bracket(bins, norm_squared, delta, side, 1e-3).lower)
        except (NoBracketError, ValueError):
            continue
    return best
