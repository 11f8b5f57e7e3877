"""Random allocation from above and from below, without sampling: blocks of rounds, one participation in each.

Lemma (blocks). Let a record take part in a uniformly random k-subset S of t rounds. Cut the rounds at random into k blocks whose sizes
differ by at most one, all such partitions equally likely, and then pick one round of every block: with sizes that fix the law of the
pick, S is uniform, because a permutation of the rounds changes neither step. So P is the mean over partitions of
P_B = (1 of the first block) x ... x (1 of the last block), and Q, where nobody takes part, is the same for all of them. Hockey-stick
divergences are jointly convex, in both orders: H(P || Q) <= mean of H(P_B || Q), and every term is the divergence of the same
composition, of 1 of ceil(t/k) and 1 of floor(t/k) rounds. Blocks that differ in size need no rounds to be left out: the published
bound, k times 1 of floor(t/k), has them all of the smaller size.

Blocks compose: `loss_laws` has a law above the loss of one block.

From below: data processing, and Kahane's inequality [M-K] for modes that overlap no more than those of the allocation.
"""

from __future__ import annotations

import math

import numpy as np

from .. import accounting, gaussian
from ..balls_in_bins import lognormal_sum, loss_laws
from ..mixtures import DisjointUnion, Mixture
from ..results import Bracket, NoBracketError

_MOST_BINS = 4096  # of a lower bound
_LEAST_NOISE = 0.03  # below it the mean alone is the lower bound
_USUAL_DELTA = 1e-6  # at which one law from below is chosen


def sizes(rounds, participations):
    """[(size of a block, how many blocks of it)]: sizes that add up to `rounds` and differ by at most one."""
    small, more = divmod(rounds, participations)
    return [(size, count) for size, count in ((small + 1, more), (small, participations - more)) if count]


def pairs_above(scheme):
    """[(pair, how many)] that dominate the allocation together: the blocks of all epochs [A-26]."""
    rounds, participations, epochs, noise = scheme
    return [(_block(size, noise), count * epochs) for size, count in sizes(rounds, participations)]


def _block(size, noise):
    """A pair that dominates 1 of `size` rounds."""
    if size == 1:
        return _one_mode(1.0, noise)
    above, _ = loss_laws.atoms(size, noise**-2, noise)
    return DisjointUnion([(1.0, above)])


def _one_mode(sensitivity, noise):
    return Mixture(np.array([sensitivity]), np.ones(1), noise)


def pairs_below(scheme):
    """[(pair, how many)] that the allocation dominates: the mean of all rounds, or subsets that overlap nowhere, in each epoch."""
    rounds, participations, epochs, noise = scheme
    mean = participations * math.sqrt(epochs / rounds)
    bins = math.comb(rounds, participations)
    if 1 < bins <= _MOST_BINS and noise > _LEAST_NOISE:
        _, below = loss_laws.atoms(bins, participations * noise**-2, noise)
        subsets = [(DisjointUnion([(1.0, below)]), epochs)]
        if accounting.epsilon(subsets, _USUAL_DELTA, "remove").lower > gaussian.epsilon(mean / noise, _USUAL_DELTA):
            return subsets
    return [(_one_mode(mean * (1 - 1e-12), noise), 1)]


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
        if lognormal_sum.log_ceiling(norm_squared, epsilon) > math.log(max(best, lognormal_sum.FLOOR)):
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
            upper = min(upper, accounting.delta(pairs_above(scheme), epsilon, side).upper)
        except NoBracketError:
            pass
    return Bracket(min(lower, upper), upper, "blocks")


def epsilon(scheme, delta, side) -> float:
    """Upper bound of epsilon at `delta`, by blocks."""
    rounds, participations, epochs, noise = scheme
    ceiling = gaussian.epsilon(math.sqrt(participations * epochs) / noise * (1 + 1e-12), delta) * (1 + 1e-12)
    try:
        return min(ceiling, accounting.epsilon(pairs_above(scheme), delta, side).upper)
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
