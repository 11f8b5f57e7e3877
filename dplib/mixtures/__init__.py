"""Scalar and vector mixture-of-Gaussians pairs [G-2.8], [M-4.2].

A mixture pair is P = sum_j p_j N(s_j, sigma^2) against Q = N(0, sigma^2) with
sensitivities s_j >= 0. It dominates one round of every sampled Gaussian
mechanism in this book. *Remove* means (P, Q): the record is in the first
dataset. *Add* means (Q, P).

    binomial, hypergeometric, product    the pairs of sampling schemes
    two_sided                            a pair with mixtures on both sides: substitution, insertions with deletions
    truncated_poisson, replaced_in_batch pairs in pieces: batches that are cut, a replaced record in a batch of fixed size
    dominates                            whether one pair is worse than another at every epsilon
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from .._base.log_space import EPS, log_choose
from .._base.weights import cut, is_one_sided, large_binomial, stride, walk
from .disjoint_union import MOST_RECORDS, Atoms, DisjointUnion, Folded, replaced_in_batch, truncated_poisson
from .pair import Mixture
from .two_sided import TwoSided, two_sided
from .vector import VectorMixture

__all__ = [
    "MOST_RECORDS",
    "Atoms",
    "DisjointUnion",
    "Folded",
    "Mixture",
    "TwoSided",
    "VectorMixture",
    "binomial",
    "dominates",
    "hypergeometric",
    "product",
    "replaced_in_batch",
    "truncated_poisson",
    "two_sided",
]

_THIN_FROM = 2000  # components


def binomial(trials: int, probability: float, noise_multiplier: float) -> Mixture:
    """Sensitivity Binomial(trials, probability): k records, Poisson rate q [G-3.1].

    trials : k >= 0. probability : q in [0, 1]. noise_multiplier : sigma > 0.
    k = 0 or q = 0 gives the trivial pair, q = 1 the plain Gaussian. Of more than 2000
    components, one may stand for many neighbours, where the noise hides them: what that
    changes, below 1e-16 of P/Q, is part of the rounding error. Beyond k = 20,000 weights below
    e^-1500 are left out: no delta that a float can hold sees them in direction remove, and
    `facing` adds those that direction add sees.
    Cost: at most some tenths of a second and 100 MB, at k = 1e8.

    >>> from dplib import mixtures
    >>> pair = mixtures.binomial(trials=2, probability=0.5, noise_multiplier=1.0)
    >>> print(f"{pair.hockey_stick(0.28093, 'remove'):.4f}")
    0.2899
    """
    k = check.whole("trials", trials, at_least=0, at_most=10**8)
    q = check.probability("probability", probability)
    sigma = check.noise_multiplier(noise_multiplier)
    if k == 0 or q == 0:
        return Mixture._from_logs(sigma, [0.0], np.zeros(1), 0.0)
    if q == 1:
        return Mixture._from_logs(sigma, [float(k)], np.zeros(1), 0.0)
    if k > 1000:
        return _thinned(partial(large_binomial, k, q), 1.0, sigma)
    j = np.arange(k + 1.0)
    choose = log_choose(k)
    hits, misses = j * math.log(q), (k - j) * math.log1p(-q)
    log_p = choose + hits + misses
    # Each term is rounded once; far components (below e^-100) never dominate a sum.
    relevant = log_p > log_p.max() - 100
    error = EPS * float(np.max((choose + np.abs(hits) + np.abs(misses))[relevant]) + 4)
    return Mixture._from_logs(sigma, j, log_p, error)


def hypergeometric(batch_size: int, dataset_size: int, group_size: int, noise_multiplier: float) -> Mixture:
    """Sensitivity 2 * Hypergeometric(B, n + k, k): fixed batch size [G-3.3].

    batch_size : B, 1 <= B <= n. dataset_size : n >= 1, a lower bound on the
    number of records of the smaller dataset. group_size : k >= 0.
    The factor 2 is there because an inserted record displaces another one. Large groups
    are thinned as in `binomial`.
    """
    n = check.whole("dataset_size", dataset_size, at_least=1)
    b = check.whole("batch_size", batch_size, at_least=1, at_most=n)
    k = check.whole("group_size", group_size, at_least=0, at_most=10**6)
    sigma = check.noise_multiplier(noise_multiplier)
    top = min(b, k)
    if top == 0:
        return Mixture._from_logs(sigma, [0.0], np.zeros(1), 0.0)
    # P(m) is proportional to C(b, m) * C(n + k - b, k - m): the b drawn places
    # hold m of the k marked records. Walk by ratios from the mode outwards.
    j = np.arange(float(top))  # floats: products of counts outgrow integers
    ratios = np.log((k - j) * (b - j) / ((j + 1.0) * (n - b + j + 1.0)))
    logs, error = walk(ratios, 1.0)
    return _thinned(partial(cut, np.arange(top + 1), logs, ratios, error, top), 2.0, sigma)


def _thinned(weights, unit, sigma, long=False):
    """The mixture with sensitivities unit * support, with no more components than make a difference.

    weights : function that returns support, logs, ratios, error; given the gap of the shifts, those that the reference sees too.
    """
    gap = unit / sigma
    support, logs, ratios, error = weights(gap) if long else weights()
    m, thinning = stride(ratios, gap) if len(support) > _THIN_FROM else (1, 0.0)
    kept = slice(int(np.argmax(logs)) % m, None, m)
    one_sided = is_one_sided(support, logs, gap)
    longer = partial(_thinned, weights, unit, sigma, long=True) if one_sided and not long else None
    cut_below = bool(support[0] > 0)
    return Mixture._from_logs(sigma, unit * support[kept], logs[kept], error + 2 * thinning, one_sided, longer, cut_below)


def product(
    probabilities: ArrayLike, sensitivities: ArrayLike, noise_multiplier: float, *,
    limit: int = 1_000_000,
) -> Mixture:
    """Sensitivity sum_j c_j Bernoulli(p_j), independent [M-4.2].

    probabilities, sensitivities : shape (n,), entries in [0, 1] and >= 0.
    Equal sums are merged while convolving, so equal sensitivities cost n + 1
    support points; more than `limit` points raise ValueError.
    """
    c = check.vector("sensitivities", sensitivities, at_least=0)
    p = check.vector("probabilities", probabilities, at_least=0, at_most=1)
    sigma = check.noise_multiplier(noise_multiplier)
    limit = check.whole("limit", limit, at_least=1)
    if len(c) != len(p):
        raise ValueError(
            f"sensitivities must have one entry per probability ({len(p)}); got {len(c)}"
        )
    support, weights = np.zeros(1), np.ones(1)
    for size, chance in zip(c, p):
        if size == 0 or chance == 0:
            continue
        values = np.concatenate([support, support + size])
        masses = np.concatenate([weights * (1 - chance), weights * chance])
        # Sums that differ by rounding only are one point; the larger one is kept,
        # which can only raise the privacy loss.
        order = np.argsort(values)
        values, masses = values[order], masses[order]
        last = np.append(np.diff(values) > 1e-12 * values[-1], True)
        group = np.concatenate([[0], np.cumsum(last)[:-1]])
        support, weights = values[last], np.bincount(group, masses)
        if len(support) > limit:
            raise ValueError(
                f"sensitivities must have at most {limit} distinct sums; round them up to a grid"
            )
    return Mixture(support, weights / math.fsum(weights), sigma)


def dominates(upper: Mixture, lower: Mixture) -> bool:
    """First-order stochastic dominance of the sensitivity laws, at equal noise [M-B: B.3].

    True means that `upper`'s pair dominates `lower`'s in both directions.
    """
    for name, value in (("upper", upper), ("lower", lower)):
        if not isinstance(value, Mixture):
            raise TypeError(f"{name} must be a Mixture; got {value!r}")
    if upper.noise_multiplier != lower.noise_multiplier:
        raise ValueError(
            "noise_multiplier must be equal in both mixtures; got "
            f"{upper.noise_multiplier!r} and {lower.noise_multiplier!r}"
        )
    points = np.union1d(upper.sensitivities, lower.sensitivities)
    tail = lambda m: np.array([math.fsum(m.probabilities[m.sensitivities >= t]) for t in points])
    return bool(np.all(tail(upper) >= tail(lower) - 1e-14))
