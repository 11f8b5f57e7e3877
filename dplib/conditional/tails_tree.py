"""Tail bounds for binary trees, by height: how likely past participations look, at worst.

When the node of height h is released, each of its 2^h leaves has h released nodes above it.
All nodes of one height are alike, so a whole tree needs log2(leaves) + 1 laws [M-tree].
With cyclic Poisson sampling in b = 2^g groups rows are taken in blocks of b rounds: a block is a leaf of a
coarser tree, whose own column has g + 1 nodes inside it.

All results are upper bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.lazy_scipy import fft, special
from .._base.log_space import EPS
from .tails import binomial_quantile, joint_exponents, posterior, published_exponents

_POINTS = 8192  # grid points of a subtree's sum
_MOST_PARTICIPATIONS = 250  # under one root; beyond, the law in two dimensions is too large
_POOL_RATIO = 0.6  # by which the probability set aside for a height falls from the root down
# Covers at most 50 roundings that may go down by 1e-9 of a grid step, which is below one half.
_UP = 1 + 1e-7


@dataclass(frozen=True)
class Branches:
    """`trees` binary trees; the rows of one kind of block are described by `kinds`.

    base = log2(min_separation), or None for row-by-row conditioning (one group).
    """

    leaves: int
    trees: int
    noise: float
    base: int | None = None

    @property
    def height(self):
        """Height of the tree of blocks (of the tree itself where there is one group)."""
        return self.leaves.bit_length() - 1 - (self.base or 0)

    def nodes(self, h):
        """How many nodes have height h, for one group."""
        return self.trees << (self.height - h)

    @property
    def pairs(self):
        """(row, column) pairs in which the column has been seen before."""
        if self.base is None:
            return self.trees * self.leaves * self.height
        return sum(number * ((1 << tau) - 1) for tau, number in self._blocks())

    def _blocks(self):
        """(tau, how many): blocks that end with nodes of block heights 1 .. tau."""
        top = self.height
        for tau in range(top + 1):
            yield tau, self.trees * (1 << (top - tau - 1) if tau < top else 1)

    def rows(self, chances):
        """[(how many rows, [(entry, number of columns, probability)])], one for each kind of row.

        chances[a] is the probability bound at height a, or a pool [(how many nodes, bound)] of them;
        chances[0] is the sampling probability.
        """
        if self.base is None:
            return [
                (number, [(1.0, 1 << h, chance)])
                for h in range(self.height + 1)
                for number, chance in (
                    chances[h] if isinstance(chances[h], list) else [(self.nodes(h), chances[h])]
                )
            ]
        result = []
        for tau, number in self._blocks():
            entries = [(math.sqrt(self.base + 1 + tau), 1, chances[0])]
            entries += [
                (math.sqrt(tau - a + 1), 1 << (a - 1), chances[a]) for a in range(1, tau + 1)
            ]
            result.append((number, entries))
        return result

    def products(self):
        """(values, multiplicities) of a seen column's inner products, itself first, over sigma^2: a line for each height.

        Row by row: a column under a node of height a. In blocks: a column whose block
        meets the present one at height a. Either way it has `depth` released nodes, and shares with
        2^(i-1) others the nodes from height i on.
        """
        a, i = np.arange(1, self.height + 1)[:, None], np.arange(max(self.height, 1))
        values = np.where(i == 0, a + (self.base or 0), np.maximum(a - i, 0)) / self.noise**2
        return values, np.where(i < a, np.maximum(1 << i >> 1, 1), 0)


def published(tree, probability, delta_1):
    """Probability bounds at heights 0 .. height, by Algorithm 2 of the source [M-Alg2]."""
    values, counts = tree.products()
    tail = delta_1 / max(2 * tree.pairs, 1)
    columns = counts.sum(axis=1) if tree.base is not None else np.full(tree.height, tree.leaves)
    most = binomial_quantile(columns, probability, tail)
    taken = np.diff(np.minimum(np.cumsum(counts, axis=1), most[:, None]), prepend=0, axis=1)
    exponents = published_exponents(values[:, 0], (values * taken).sum(axis=1), tail)
    return [probability, *posterior(probability, exponents).tolist()]


def joint(tree, probability, delta_1):
    """Probability bounds at heights 0 .. height, from the joint tail of participations and noise [A-11]."""
    values, counts = tree.products()

    def log_moment(orders):
        return (np.log1p(probability * np.expm1(orders[:, None] * values)) * counts).sum(axis=1)

    exponents = joint_exponents(values[:, 0], values[:, 0], delta_1 / max(tree.pairs, 1), log_moment)
    return [probability, *posterior(probability, exponents).tolist()]


# ---------------------------------------------------------- aggregated intensity


def aggregated(tree, probability, delta_1):
    """For heights 0 .. height a pool of one bound [A-12]; None if none is found.

    Off an event of probability delta_1 the number of participations under a node of height h
    is dominated by Binomial(2^h, that bound). Row-by-row conditioning only.
    """
    return _pools(tree, probability, [(delta_1 / tree.height, [0, tree.nodes(h)]) for h in range(1, tree.height + 1)])


def pooled(tree, probability, delta_1):
    """For heights 0 .. height a pool [(how many nodes, probability bound)] [A-13]; None if none is found.

    The nodes of one height see disjoint parts of the output, so their sums are independent: how
    many exceed a level is binomial. Off an event of probability delta_1 at most m of them
    exceed level t_m, for each m of a list, and each node can be given, when it is released, an
    unused member of the pool that dominates it. Row-by-row conditioning only.
    """
    # Few large nodes matter most: their event gets the largest share.
    share = lambda h: delta_1 * (1 - _POOL_RATIO) * _POOL_RATIO ** (tree.height - h)
    return _pools(tree, probability, [(share(h), _counts(tree.nodes(h))) for h in range(1, tree.height + 1)])


def _pools(tree, probability, events):
    """The pools for events of each height: (probability, 0 = m_0 < m_1 < ... < m_J = nodes that may exceed each level)."""
    # The rarest thing asked for at a height: that a single node exceeds its top level.
    laws = _subtree_laws(tree, probability, [share / len(m) / m[-1] for share, m in events])
    if laws is None:
        return None
    pools = [[(tree.nodes(0), probability)]]
    for (share, m), law in zip(events, laws):
        # The largest chance of one node with which more than `few` of all have it with probability `tail`:
        # Pr[Binomial(nodes, x) > few] is an incomplete beta function of x.
        tail = share / (len(m) - 1)
        chances = [special.betaincinv(few + 1, m[-1] - few, tail) * (1 - 1e-9) for few in m[:-1]]
        levels = [_chance(probability, law, chance) for chance in chances]
        pools.append([(int(more - few), level) for few, more, level in zip(m[:-1], m[1:], levels)])
    return pools


def _chance(probability, law, tail):
    """Probability bound of one participation under a node whose mean of e^w exceeds y with probability `tail`."""
    means, survival = law
    y = float(means[np.argmax(survival <= tail)]) * _UP
    odds = probability / (1 - probability) * y
    return odds / (1 + odds)


def _counts(nodes):
    """0 = m_0 < m_1 < ... < m_J = nodes: how many nodes may exceed each level of a pool."""
    counts = [0]
    while counts[-1] < nodes:
        counts.append(min(max(counts[-1] + 1, int(1.5 * counts[-1])), nodes))
    return counts


def _subtree_laws(tree, probability, tails):
    """For heights 1 .. height the law (points, survival function) of the mean of e^w; None if none is found."""
    participations = probability * tree.leaves
    if participations + 10 * math.sqrt(participations) > _MOST_PARTICIPATIONS:
        return None
    # Wide enough for ten deviations; wider until what falls off the grid is negligible.
    reach = max(15 / tree.noise + 20 / tree.noise**2, 1e-6)  # less would be lost in the rounding of 1
    while reach < 8:
        laws = _laws_within(tree, probability, tails, reach)
        if laws is not None:
            return laws
        reach *= 1.7
    return None


def _laws_within(tree, probability, tails, reach):
    """`_subtree_laws` on a grid that reaches e^reach, or None where that is too short.

    Law of (mean of e^w, participations K) of a subtree before its root is released: a leaf has mean
    1; the mean over two children is half the sum of mean * e^{(K - 1/2) / sigma^2 + xi / sigma}.
    Every rounding goes up (but for 1e-9 of a step, which `_UP` covers), and all missing mass counts
    as beyond every level.
    """
    variance = 1 / tree.noise**2
    # Where the noise is not very large, the shifts (K - 1/2) / sigma^2 are whole steps of log(mean).
    log_step = 2 * reach / _POINTS
    if variance / 2 > log_step / 2:
        log_step = variance / 2 / round(variance / 2 / log_step)
    half = math.ceil(reach / log_step)
    logs = log_step * np.arange(-half, half + 1)
    low, high = math.exp(logs[0]), math.exp(logs[-1])
    step = (high - low) / (_POINTS - 1)
    means = low + step * np.arange(_POINTS)
    # Where a point of one grid goes in the other: up, but for rounding.
    to_means = np.minimum(np.ceil((np.exp(logs) - low) / step - 1e-9).astype(int), _POINTS - 1)
    to_logs = np.clip(np.ceil(np.log(means) / log_step - 1e-9).astype(int) + half, 0, 2 * half)
    kernel, width, kernel_lost = _noise_kernel(math.sqrt(variance), log_step)
    law = np.zeros((2, 2 * half + 1))
    law[:, half] = 1 - probability, probability
    lost, laws = 0.0, []
    for tail in tails:
        noisy = _convolution(law, kernel[None], log_step, tail)
        released = np.zeros_like(law)
        for k, row in enumerate(noisy):
            place = np.arange(len(row)) - width + math.ceil((k - 0.5) * variance / log_step - 1e-9)
            lost += float(row[place > 2 * half].sum())
            place, row = place[place <= 2 * half], row[place <= 2 * half]
            np.add.at(released[k], np.maximum(place, 0), row)
        lost += kernel_lost
        children = np.zeros((len(law), _POINTS))
        np.add.at(children, (slice(None), to_means), released)
        pair = _convolution(children, children, step, tail)
        # The index of a pair counts half steps of the mean of both; odd ones go up.
        mean = pair[:, ::2].copy()
        mean[:, 1:] += pair[:, 1::2]
        lost *= 2
        # Numbers of participations that hardly ever occur are dropped, and counted as lost.
        beyond = np.append(np.cumsum(mean.sum(axis=1)[::-1])[::-1], 0.0)
        keep = max(int(np.argmax(beyond <= 1e-4 * tail)), 1)
        lost += float(beyond[keep])
        mean = mean[:keep]
        survival = np.append(np.cumsum(mean.sum(axis=0)[::-1])[::-1][1:], 0.0) + lost
        if lost > 0.02 * tail or survival[-2] > tail:
            return None
        laws.append((means, survival))
        law = np.zeros((keep, 2 * half + 1))
        np.add.at(law, (slice(None), to_logs), mean)
    return laws


def _noise_kernel(deviation, step):
    """(masses of N(0, deviation^2) rounded up to the grid, half its length, mass beyond)."""
    width = math.ceil(13 * deviation / step)
    ends = np.arange(-width, width + 1) * step / deviation
    # Differences of the distribution function lose digits near 1: there by symmetry.
    left, right = special.ndtr(ends), special.ndtr(-ends)
    masses = np.where(ends > 0.5, np.append(0.0, -np.diff(right)), np.diff(left, prepend=0.0))
    return masses, width, float(right[-1])


def _convolution(first, second, step, tail):
    """Upper bound on the convolution of masses over (K, grid), by two FFTs, shape (K, points).

    The bound on rounding is added to every entry. Plain, it is absolute; tilted by e^{tau x}, which
    centres the product where its tail is about `tail`, it is relative there. The smaller sum counts.
    """
    x, y = step * np.arange(first.shape[1]), step * np.arange(second.shape[1])
    spread = _variance(first.sum(axis=0), x) + _variance(second.sum(axis=0), y) + step**2
    # e^150 on either side keeps the squares of all sums inside the range of floats.
    tau = min(math.sqrt(-2 * math.log(tail) / spread), 150 / max(x[-1], y[-1]))
    plain = _fft_bound(first, second)
    tilted = _fft_bound(first * np.exp(tau * x), second * np.exp(tau * y))
    return np.minimum(plain, tilted * np.exp(-tau * step * np.arange(plain.shape[1])))


def _fft_bound(first, second):
    """The convolution, each pair of numbers of participations by itself, plus a bound on its rounding."""
    length = first.shape[1] + second.shape[1] - 1
    size = fft.next_fast_len(length, real=True)
    left, right = fft.rfft(first, size), fft.rfft(second, size)
    left_norm, right_norm = (np.sqrt((part**2).sum(axis=1)) for part in (first, second))
    spectrum = np.zeros((len(first) + len(second) - 1, left.shape[1]), complex)
    error = np.zeros(len(spectrum))
    for k in range(len(second)):
        spectrum[k : k + len(first)] += left * right[k]
        error[k : k + len(first)] += left_norm * right_norm[k]
    result = np.maximum(fft.irfft(spectrum, size)[:, :length], 0.0)
    return result + 40 * EPS * error[:, None]


def _variance(mass, places):
    total = mass.sum()
    mean = mass @ places / total
    return float(mass @ (places - mean) ** 2 / total)
