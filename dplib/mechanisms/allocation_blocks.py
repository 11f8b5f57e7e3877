"""Random allocation from above and from below, without sampling: blocks of rounds, one participation in each.

Lemma (blocks). Let a record take part in a uniformly random k-subset S of t rounds. Cut the rounds at random into k blocks whose sizes
differ by at most one, all such partitions equally likely, and then pick one round of every block: with sizes that fix the law of the
pick, S is uniform, because a permutation of the rounds changes neither step. So P is the mean over partitions of
P_B = (1 of the first block) x ... x (1 of the last block), and Q, where nobody takes part, is the same for all of them. Hockey-stick
divergences are jointly convex, in both orders: H(P || Q) <= mean of H(P_B || Q), and every term is the divergence of the same
composition, of 1 of ceil(t/k) and 1 of floor(t/k) rounds. Blocks that differ in size need no rounds to be left out: the published
bound, k times 1 of floor(t/k), has them all of the smaller size.

The loss of one block has no density in closed form, but its hockey-stick curve has an upper bound at every epsilon [A-16]: `loss_laws` makes
a law of it, and curves that lie above stay above when composed, also where masses add up to more than one.

From below: data processing, and Kahane's inequality [M-K] for modes that overlap no more than those of the allocation.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .. import gaussian
from ..balls_in_bins import lognormal_sum, loss_laws
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


class Law:
    """A law of finitely many losses whose hockey-stick curve lies above that of 1 of `size` rounds [A-25].

    noise : noise multiplier. side : "remove" or "add". cut : delta may grow by so much from losses beyond the last place.
    `losses`, `masses` (under the first law), shape (n,), and `infinite`, the mass of an infinite loss. Masses are rounded up: they
    add up to at most `growth`.
    """

    def __init__(self, size, noise, side, cut):
        if (farthest := gaussian.epsilon(1 / noise, cut)) > _LARGEST_LOSS:
            raise NoBracketError(f"losses of {farthest:.3g} in one round leave the range of floats")
        other = "add" if side == "remove" else "remove"
        above = _places(size, noise, side, cut, _PLACES)
        below = _places(size, noise, other, _LOWEST, _PLACES // 2)
        places = np.concatenate([-below[:0:-1], above])
        upper = np.array([_curve(size, noise, float(place), side) for place in places])
        self.losses, self.masses, self.infinite, self.growth = loss_laws.law_above(np.exp(places), upper)


def _curve(size, noise, epsilon, side):
    """Upper bound of delta of 1 of `size` rounds at any real epsilon."""
    return loss_laws.curve(size, noise**-2, epsilon, side, _TOLERANCE)[1]


def _places(size, noise, side, cut, count):
    """`count` places from 0 to where delta is about `cut`: dense near 0, where most of the mass is, and where the curve falls fast."""
    reach = loss_laws.reach(size, noise**-2, side, cut, _TOLERANCE)
    middle = max(_curve(size, noise, 0.0, side), 1e-6 * reach)  # losses are about as large as that
    rough = middle * np.sinh(np.linspace(0.0, math.asinh(reach / middle), _ROUGH))
    fall = -np.log([max(_curve(size, noise, float(place), side), _FLOOR) for place in rough])
    metric = np.linspace(0.0, 1.0, _ROUGH) + _FALL * (fall - fall[0]) / max(fall[-1] - fall[0], 1e-9)
    metric = np.maximum.accumulate(metric)
    return np.interp(np.linspace(0.0, metric[-1], count), metric, rough)


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
