"""How the tuple sampler draws its tuples, and a bound on every importance ratio [A-15].

A tuple J of k indices with shares p has the ratio

    rho(J) = 1 / sum_theta weight_theta / A_theta sum_j exp(theta k s_j - k^2 q / 2),     s = gram p,  q = p' s.

`fit` chooses the weights of the levels theta by a linear programme and returns them
with a number that rho never exceeds, whatever the tuple. The bound looks at a tuple
only through its largest share f and through q, and so has finitely many cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.lazy_scipy import optimize
from .._base.log_space import log_sum_exp

# Levels offered to the programme, in units of k. It keeps the few that it needs.
_LEVELS = (0.0, 0.2, 0.3, 0.4, 0.45, 0.5, 0.525, 0.55, 0.575, 0.6, 0.65, 0.7, 0.85, 1.0)
_CUTS = (0.1, 0.3, 0.5, 0.7, 0.9)
_COARSE, _FINE = 48, 768  # cells of q per share: for the programme, and for the bound
_LARGEST_EXPONENT = 120.0  # of kappa: its fifth power must not underflow
_LARGE = 256  # bins beyond which fewer levels and groups of shares are enough
_LONG = 40  # tuples beyond which groups of shares are enough
_ALLOWANCE = 1e-9  # relative, far above the rounding of the logarithms below


@dataclass(frozen=True)
class TupleLaw:
    """The law of the tuples: component (level, j) draws `size` indices independently.

    levels, weights : shape (levels,); the weights sum to 1.
    log_means : shape (levels, b), log zeta = log mean_l exp(level gram[j, l] - gram[l, l] / 2).
    log_totals : shape (levels,), log sum_j zeta^size.
    log_ratio : upper bound on log rho for every tuple, rounding included.
    """

    size: int
    levels: np.ndarray
    weights: np.ndarray
    log_means: np.ndarray
    log_totals: np.ndarray
    log_ratio: float

    @property
    def ratio(self):
        return math.exp(self.log_ratio)


class Shares:
    """What the bound needs of a Gram matrix, for all tuple sizes up to `largest`."""

    def __init__(self, gram, largest):
        self.gram, self.largest = gram, largest
        bins = len(gram)
        keep = min(bins, largest)
        # gaps[n - 1, j, l]: the sum of the n largest gram[j, i] - gram[l, i] over i.
        self.gaps = np.empty((keep, bins, bins))
        for j in range(bins):
            self.gaps[:, j, :] = _largest_sums(gram[j] - gram, keep)
        self.row_sums = _largest_sums(gram, keep).max(axis=1)
        totals = gram.sum(axis=1)
        self.least_mean = totals.min() / bins  # of s_j over j, for the worst shares
        self.least_form = 2 * self.least_mean - totals.sum() / bins**2
        self.least, self.most = gram.diagonal().min(), gram.diagonal().max()

    def capped(self, sums, size, count):
        """The maximum of a linear form over shares of at most count / size each."""
        full, rest = divmod(size, count)
        value = sums[full - 1] * (count / size)
        return value + (sums[full] - sums[full - 1]) * (rest / size) if rest else value

    def forms(self, size, fewest, most):
        """The range of q = p' gram p when the largest share is fewest / size to most / size."""
        # The other indices add at least what they do when all are different.
        squares = (fewest**2 + size - fewest) / size**2
        low = max(squares * self.least, self.least_form)
        high = min(self.most, self.capped(self.row_sums, size, most))
        slack = 1e-12 * self.most
        return max(0.0, min(low, high) - slack), high + slack


def fit(shares, size):
    """The tuple law of this size with the smallest bound that the programme finds.

    Cost: about 0.05 to 0.5 s for 128 bins, a second or two for 512.
    """
    gram, bins = shares.gram, len(shares.gram)
    levels = size * np.array(_LEVELS if bins <= _LARGE else _LEVELS[::2])
    exponents = levels[:, None, None] * gram - gram.diagonal() / 2
    top = exponents.max(axis=2, keepdims=True)
    log_means = np.log(np.exp(exponents - top).mean(axis=2)) + top[:, :, 0]
    log_totals = log_sum_exp(size * log_means)

    groups = _groups(size, bins)
    clusters = np.array([_log_clusters(shares, size, most, levels) for _, most in groups])
    tops = np.array([_log_tops(gram, size, fewest, levels) for fewest, _ in groups])
    ranges = [shares.forms(size, fewest, most) for fewest, most in groups]
    coarse = _log_terms(shares, size, levels, clusters, tops, log_totals, ranges, _COARSE)
    base = coarse.min(axis=0).max()  # the best single level
    table = np.exp(np.clip(coarse - base, -50, 15))
    columns = len(levels)
    answer = optimize.linprog(
        np.append(np.zeros(columns), -1.0),
        A_ub=np.column_stack([-table, np.ones(len(table))]),
        b_ub=np.zeros(len(table)),
        A_eq=np.append(np.ones(columns), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, 1)] * columns + [(None, None)],
        method="highs",
    )
    if answer.x is None:
        weights = (np.arange(columns) == coarse.min(axis=0).argmax()).astype(float)
    else:
        weights = np.where(answer.x[:columns] > 1e-3, answer.x[:columns], 0.0)
    weights /= weights.sum()
    kept = weights > 0
    fine = _log_terms(
        shares, size, levels[kept], clusters[:, kept], tops[:, kept], log_totals[kept], ranges, _FINE
    )
    least = np.logaddexp.reduce(fine + np.log(weights[kept]), axis=1).min()
    return TupleLaw(
        size,
        levels[kept],
        weights[kept],
        log_means[kept],
        log_totals[kept],
        _ALLOWANCE - float(least),
    )


def _log_terms(shares, size, levels, clusters, tops, log_totals, ranges, cells):
    """Lower bounds of log( exp(-k^2 q / 2) sum_j exp(level k s_j) / A ), shape (cells, levels)."""
    bins = len(shares.gram)
    rows = []
    slopes = levels * size - size**2 / 2
    for cluster, top, (low, high) in zip(clusters, tops, ranges):
        ends = np.linspace(low, high, cells + 1)
        below, above = ends[:-1, None], ends[1:, None]
        by_share = cluster + np.minimum(slopes * below, slopes * above)
        by_mean = np.maximum(top, math.log(bins) + levels * size * shares.least_mean)
        rows.append(np.maximum(by_share, by_mean - size**2 / 2 * above) - log_totals)
    return np.concatenate(rows)


def _groups(size, bins):
    """The possible largest counts, 1 .. size, in groups (fewest, most): each alone unless there are too many."""
    counts = list(range(-(-size // bins), size + 1))
    if bins <= _LARGE and size <= _LONG:
        return [(count, count) for count in counts]
    groups = []
    while counts:
        width = 1 + counts[0] // 6
        groups.append((counts[0], counts[:width][-1]))
        counts = counts[width:]
    return groups


def _log_tops(gram, size, count, levels):
    """log V with sum_l exp(a s_l) >= V, a = level size, where some index j has a share of at least f = count / size.

    s_l = f gram_jl + r_l, with r the part of all that remains, shares of sum 1 - f. By Jensen's inequality with
    weights proportional to exp(a f gram_jl) the sum is at least sum_l exp(a f gram_jl) times
    exp(a (1 - f) min_i of the mean of gram_il under those weights).
    """
    share, largest = count / size, gram.max(axis=1)
    tops = []
    for level in levels:
        spread = np.exp(level * count * (gram - largest[:, None]))
        totals = spread.sum(axis=1)
        others = ((spread / totals[:, None]) @ gram).min(axis=1)
        tops.append((np.log(totals) + level * count * largest + level * size * (1 - share) * others).min())
    return tops


def _log_clusters(shares, size, count, levels):
    """log U with sum_l exp(a s_l) >= U exp(a q), a = level size, for largest shares up to count / size."""
    gaps = np.maximum(shares.capped(shares.gaps, size, count), 0.0)
    full, rest = divmod(size, count)
    keep = min(full + (rest > 0), len(gaps))
    nearest = np.sort(np.partition(gaps, keep - 1, axis=0)[:keep], axis=0)
    parts = np.full(keep, count / size)
    if rest:
        parts[-1] = rest / size
    return [
        math.log(_cluster(gaps * (level * size), nearest * (level * size), parts) if level else len(gaps))
        for level in levels
    ]


def _cluster(costs, nearest, parts):
    """max over the matrices h tried of min_j sum_l h_jl kappa_jl / m_l, with kappa = exp(-costs).

    nearest : the smallest costs of each column. parts : the shares that make a linear form largest.
    """
    # Nothing may underflow in the powers below. A kappa that is raised to e^-120 raises the sums, which
    # are at least 1, by less than the allowance.
    root = np.exp(-np.minimum(costs, _LARGEST_EXPONENT) / 4)
    near = np.exp(-np.minimum(nearest, _LARGEST_EXPONENT) / 4)
    kappa = (root**2) ** 2
    best = max(1 / parts[0], kappa.sum(axis=1).min())  # h = I and h = 1
    for _ in range(5):  # h = kappa^(1/4), kappa^(1/2), ..., kappa^4
        best = max(best, (kappa * root @ (1 / (parts @ near))).min())
        root, near = root**2, near**2  # squares are quicker than other powers
    for cut in _CUTS:
        close = kappa >= cut
        most = np.minimum(1.0, close.sum(axis=0) * parts[0])
        best = max(best, (kappa * close @ (1 / most)).min())
    return best


def _largest_sums(table, count):
    """Sums of the 1 .. count largest entries of each row; shape (count, rows)."""
    top = -np.sort(np.partition(-table, count - 1, axis=1)[:, :count], axis=1)
    return np.cumsum(top, axis=1).T
