"""Tail bounds for Toeplitz encoders, by age: how likely a past participation looks, at worst.

Column j of a Toeplitz encoder has age a = i - j when row i is released; what the past
says about it depends on inner products of columns, and these on ages only. With cyclic Poisson sampling in b groups
rows are taken in blocks of b and every b-th column is kept; ages then count blocks.

Old ages 1 .. N - 1 stand in groups (m_{g-1}, m_g], single ages first, longer ones later.
`Ages.upper` holds, for two groups, the largest inner product of members over sigma^2, so that
every bound is a function of a few hundred groups, whatever the number of rounds.

Needs non-increasing coefficients (`Ages` replaces others by their least non-increasing
majorant, which dominates [M-B]). All results are upper bounds.
"""

from __future__ import annotations

import math
from functools import cached_property
from itertools import combinations

import numpy as np

from .._base import checkpoints
from .._base.lazy_scipy import optimize
from . import tails
from .tails import binomial_quantile, posterior, published_exponents

_UP = 1 + 1e-11  # covers the rounding of inner products of up to 10^6 terms
_WIDEST = 30.0  # log odds beyond which the quadratic bound is hopeless
_SINGLE = 30  # ages up to here stand alone
_RATIOS = (4096, 1.02), (math.inf, 1.04)  # growth of the groups beyond, for up to so many ages


class Ages:
    """Entries and inner products of a non-increasing Toeplitz encoder in groups of ages."""

    def __init__(self, coefficients, noise_multiplier, separation=1):
        majorant = np.maximum.accumulate(np.asarray(coefficients, float)[::-1])[::-1]
        n, b = len(majorant), int(separation)
        self.coefficients, self.noise, self.separation = majorant, float(noise_multiplier), b
        self.count = -(-n // b)  # blocks of rows, and kept columns
        # Norm of a column inside a block of rows; with b = 1 the entry itself.
        squares = np.add.reduceat(majorant**2, np.arange(0, n, b))
        self.entries = majorant if b == 1 else np.sqrt(squares) * _UP
        # Ages 1 .. active have entries above 0: these need bounds.
        self.active = int(np.flatnonzero(self.entries)[-1])

    @property
    def pairs(self):
        """(row, column) pairs in which the column has been seen before."""
        return self.active * self.count - self.active * (self.active + 1) // 2

    @cached_property
    def edges(self):
        """m_0 = 0 < m_1 < ... < m_G: group g holds the ages m_{g-1} + 1 .. m_g; `active` is an edge.

        Beyond `active` there are the ages whose inner product with an active one is not 0.
        """
        last = min(self.count - 1, 2 * self.active + 1)
        growth = next(ratio for most, ratio in _RATIOS if self.count <= most) - 1
        edges = [0]
        while edges[-1] < last:
            step = 1 if edges[-1] < _SINGLE else max(1, int(edges[-1] * growth))
            limit = self.active if edges[-1] < self.active else last
            edges.append(min(edges[-1] + step, limit))
        return np.array(edges)

    @property
    def sizes(self):
        return np.diff(self.edges)

    @property
    def old(self):
        """How many groups are active."""
        return int(np.searchsorted(self.edges, self.active))

    @property
    def multiplicities(self):
        """For each active group g the number of rows whose oldest active column is in it."""
        result = self.sizes[: self.old].copy()
        result[-1] += self.count - 1 - self.active
        return result

    def squared_norms(self, ages):
        """<v_a, v_a> / sigma^2 for old ages, v_a = what of a column of age a has been released."""
        sums = np.concatenate([[0.0], np.cumsum(self.coefficients**2)])
        return sums[np.minimum(np.asarray(ages) * self.separation, len(self.coefficients))] / self.noise**2

    def inner(self, young, lag):
        """<v_young, v_{young + lag}> / sigma^2, lag counted in ages."""
        f, b = self.coefficients, self.separation
        shift = lag * b
        length = max(min(young * b, len(f) - shift), 0)
        return float(f[:length] @ f[shift : shift + length]) / self.noise**2

    @cached_property
    def upper(self):
        """Largest inner product over sigma^2 between members of two groups, shape (G, G)."""
        tops, bottoms = self.edges[1:], self.edges[:-1] + 1
        result = np.diag(self.squared_norms(tops))
        # Largest for the oldest of the younger group and the shortest lag.
        return (result + self._off_diagonal(bottoms)) * _UP

    def _off_diagonal(self, others):
        """Inner products of each group's oldest member with others[h] of every older group h; zeros on the diagonal."""
        tops = self.edges[1:]
        result = np.zeros((len(tops),) * 2)
        for young, old in combinations(range(len(tops)), 2):
            result[young, old] = result[old, young] = self.inner(tops[young], others[old] - tops[young])
        return result

    @cached_property
    def covariance(self):
        """A covariance matrix at least `upper` in every entry, as Kahane's inequality needs.

        `upper` itself is almost one: it exceeds the Gram matrix of the groups' oldest members by
        little, off the diagonal. The row sums D of that excess on the diagonal would surely do
        (diagonal dominance); the smallest eigenvalue of D^-1/2 upper D^-1/2 says what share does.
        """
        scale = float(self.upper.max())
        excess = self.upper - self._off_diagonal(self.edges[1:])
        np.fill_diagonal(excess, 0.0)
        repair = np.maximum(excess, 0.0).sum(axis=1) + 1e-6 * scale
        root = np.sqrt(repair)
        lowest = float(np.linalg.eigvalsh(self.upper / (root[:, None] * root))[0])
        share = min(max(-1.01 * lowest, 0.0), 1.0)
        # The last term covers the rounding of the eigenvalue.
        return self.upper + np.diag(share * repair + 1e-10 * scale)


# ------------------------------------------------------------------ as published


def published(ages, probability, delta_1):
    """Probabilities for each row and age, shape (N, active + 1), by Algorithm 2 of the source [M-Alg2].

    The sum of participations is bounded through the quantile of their number. Exactly
    `probability` at age 0; zero where a row has no column of that age. Cost: N^2 times the quantile.
    """
    result = np.zeros((ages.count, ages.active + 1))
    result[:, 0] = probability
    tail = delta_1 / max(2 * ages.pairs, 1)
    rows = np.arange(ages.count)
    most = binomial_quantile(rows, probability, tail)
    norms = ages.squared_norms(np.arange(1, ages.active + 1))
    windows = _windows(ages, most)
    for row in checkpoints.bar(rows[1:], "tail bounds"):
        seen = min(row, ages.active)
        exponent = published_exponents(norms[:seen], windows(row), tail)
        result[row, 1 : seen + 1] = posterior(probability, exponent)
    return result


def published_groups(ages, probability, delta_1):
    """Probabilities for each active group: those of `published`, rounded up over its ages and rows."""
    tail = delta_1 / (2 * ages.pairs)
    most = int(binomial_quantile(ages.count - 1, probability, tail)[0])
    upper = ages.upper[: ages.old]
    norms, smallest = np.diag(upper), ages.squared_norms(ages.edges[: ages.old] + 1)
    exponent = published_exponents(norms, _largest_sums(upper, ages.sizes, most), tail)
    return posterior(probability, exponent + (norms - smallest) / 2)


def _windows(ages, most):
    """For a row: sums of the `most[row]` largest inner products of each of its old ages, over sigma^2.

    For non-increasing coefficients the inner products of one age with the others rise up to
    that age itself and fall beyond, so the largest ones are neighbours.
    """
    n, widest = ages.count, int(most.max())
    # products[lag, m] = <v_m, v_{m + lag}>
    f, b = ages.coefficients, ages.separation
    products = np.zeros((widest + 1, n))
    for lag in range(min(widest, n - 1) + 1):
        sums = np.concatenate([[0.0], np.cumsum(f[: len(f) - lag * b] * f[lag * b :])])
        products[lag] = sums[np.minimum(np.arange(n) * b, len(sums) - 1)]
    products /= ages.noise**2

    def row_sums(row):
        taken = int(min(most[row], row))
        own = np.arange(1, min(row, ages.active) + 1)
        if taken == 0:
            return np.zeros(len(own))
        offset = np.arange(1 - taken, taken)[:, None]
        other = own + offset
        inside = (other >= 1) & (other <= row)
        values = np.where(inside, products[np.abs(offset), np.where(inside, np.minimum(own, other), 0)], 0.0)
        sums = np.concatenate([np.zeros((1, len(own))), np.cumsum(values, axis=0)])
        return (sums[taken:] - sums[:-taken]).max(axis=0)

    return row_sums


# ------------------------------------------------------------------- joint tail


def joint_exponents(ages, probability, tail):
    """R_g for each active group: Pr[w_a > R_g] <= tail for each age a of it, under either argument.

    w_a is the log odds' increase of a past participation: a Gaussian plus independent
    participations times inner products. Chernoff, over orders lambda >= 1.
    """
    upper, sizes = ages.upper[: ages.old], ages.sizes

    def log_moment(orders):
        return np.log1p(probability * np.expm1(orders[:, None] * upper)) @ sizes

    return tails.joint_exponents(np.diag(upper), upper.max(axis=1), tail, log_moment)


def joint(ages, probability, delta_1):
    """Probabilities for each active group, from the joint tail of participations and noise [A-11]."""
    return posterior(probability, joint_exponents(ages, probability, delta_1 / ages.pairs))


# ---------------------------------------------------------- aggregated intensity


def aggregated_intensities(ages, probability, delta_1):
    """Cumulative intensities Lambda_1 <= ... <= Lambda_G over the groups [A-12].

    Off an event of probability delta_1, in every row the posterior law of the old
    participations is dominated by a compound Poisson law whose intensity on the ages up to
    m_g is at most Lambda_g.
    """
    sizes, groups = ages.sizes, ages.old
    odds = probability / (1 - probability)
    share_sup, share_count = 0.02 * delta_1, 0.02 * delta_1
    sup = joint_exponents(ages, probability, share_sup / ages.pairs)
    most = int(binomial_quantile(ages.count - 1, probability, share_count)[0])
    # A row whose oldest active column is in group g has an event at m_1, ..., m_g.
    events = float(ages.multiplicities @ np.arange(1, groups + 1))
    tail = (delta_1 - share_sup - share_count) / events
    result, before = np.empty(groups), 0.0
    for g in checkpoints.bar(range(groups), "tail bounds"):
        m, y = ages.edges[g + 1], _SumBound(ages, probability, tail, most, g + 1).best()
        by_terms = before + sizes[g] * float(np.logaddexp(0.0, math.log(odds) + sup[g]))
        by_sum = m * math.log1p(odds * y / m) if math.isfinite(y) else math.inf
        before = result[g] = min(by_terms, by_sum) * _UP
    return np.minimum.accumulate(result[::-1])[::-1]


class _SumBound:
    """Chernoff bound on Z = sum_a e^{w_a} over the first groups [A-12].

    By Kahane's inequality, groups may be taken as perfectly correlated. On {w <= R}
    e^w lies below the quadratic q(w) = e^c (1 + t + kappa t^2 / 2), t = w - c, whose
    exponential moment is a Gaussian integral; beyond R a linear continuation of
    e^{lambda z} is used, at the price of a share of `tail`.
    """

    _SHARE = 0.02  # of the probability, for {some w > R}

    def __init__(self, ages, probability, tail, most, groups):
        self.p, self.sizes_all = probability, ages.sizes
        self.sizes = ages.sizes[:groups].astype(float)
        self.upper = ages.upper[:groups]  # against all participations
        self.covariance = ages.covariance[:groups, :groups]
        self.need = -math.log(tail * (1 - self._SHARE))
        self.need_rest = -math.log(tail * self._SHARE)
        self.shift = _largest_sums(self.upper, ages.sizes, most)
        root = np.sqrt(self.sizes)
        self.root = root
        self.eigenvalues, self.vectors = np.linalg.eigh(root[:, None] * self.covariance * root)
        self.top = self.eigenvalues[-1] * _UP
        self.range = self._range()

    def _range(self):
        """R such that the part beyond it, with any lambda < 1 / top, is below its share."""
        diagonal = np.diag(self.covariance)
        best = math.inf
        centre = math.sqrt(2 * self.need_rest / diagonal.max())
        full = self.upper.max(axis=0)
        for factor in np.geomspace(0.5, 3.0, 24):
            order = max(factor * centre, 1.0)
            if order * max(self.upper.max(), self.covariance.max()) > 600:
                continue
            alone = np.log1p(self.p * np.expm1(order * self.upper)) @ self.sizes_all
            with np.errstate(over="ignore"):  # infinite: this order is of no use, and loses below
                joint = np.log1p(self.p * np.expm1(order * self.upper + full)) @ self.sizes_all
            pairs = np.log(np.exp(order * self.covariance) @ self.sizes)
            # E e^{order w_A} (1 + lambda Z), group by group.
            terms = order * (order - 1) / 2 * diagonal + np.logaddexp(alone, joint + pairs - math.log(self.top))
            best = min(best, (float(np.logaddexp.reduce(terms)) + self.need_rest) / order)
        return best + 1e-9 * abs(best)

    def best(self):
        """The smallest y found over lambda and the centre c of the quadratic."""
        result, centre = math.inf, 0.0
        if not self.range < _WIDEST:
            return result
        for _ in range(3):
            found = self._best_at(centre)
            if not found < result * (1 - 1e-5):
                break
            result = found
            centre = max(0.8 * math.log(result / self.sizes.sum()), 0.0)
            if centre >= self.range:
                break
        return result * (1 + 1e-9)

    def _best_at(self, centre):
        """The smallest bound over lambda; whichever is found is valid."""
        kappa = _curvature(self.range - centre)
        limit = 1 / (kappa * math.exp(centre) * self.top)
        with np.errstate(all="ignore"):
            found = optimize.minimize_scalar(
                lambda x: self._bound(limit * x, centre, kappa),
                bounds=(1e-4, 0.999),
                method="bounded",
                options={"xatol": 1e-3, "maxiter": 40},
            )
        return float(found.fun)

    def _bound(self, order, centre, kappa):
        """(log moment of lambda sum q(w) + need) / lambda: an upper bound on the quantile of Z."""
        scale = math.exp(centre)
        eta = order * kappa * scale
        gain = 1 / (1 - eta * self.eigenvalues)
        if not np.all(gain > 0):
            return math.inf
        mean = -np.diag(self.covariance) / 2 - centre
        tilt = 1 + kappa * mean
        turned = self.vectors.T @ (self.root * tilt)
        value = order * scale * float(self.sizes @ (1 + mean + kappa / 2 * mean**2))
        value += (order * scale) ** 2 / 2 * float(turned**2 @ (self.eigenvalues * gain))
        value -= 0.5 * float(np.log1p(-eta * self.eigenvalues).sum())
        # Participations: linear in them once their sums are bounded by `shift`.
        push = np.maximum(tilt + kappa / 2 * self.shift, 0.0)
        pull = order * scale * self.root * (self.vectors @ (gain * (self.vectors.T @ (self.root * push))))
        exponent = np.maximum(pull, 0.0) @ self.upper
        if exponent.max() > 600:
            return math.inf
        value += float(np.log1p(self.p * np.expm1(exponent)) @ self.sizes_all)
        return (value + self.need) / order


def _largest_sums(upper, sizes, most):
    """For each row of `upper` the sum of the `most` largest entries, column L counted sizes[L] times."""
    result = np.empty(len(upper))
    for i, row in enumerate(upper):
        order = np.argsort(-row)
        taken = np.minimum(np.cumsum(sizes[order]), most)
        result[i] = row[order] @ np.diff(taken, prepend=0)
    return result


def _curvature(reach):
    """kappa with e^t <= 1 + t + kappa t^2 / 2 for t <= reach; rounded up."""
    if reach < 1e-3:
        return 1 + max(reach, 0.0)
    return 2 * (math.expm1(reach) - reach) / reach**2 * (1 + 1e-9)
