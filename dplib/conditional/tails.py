"""What every tail bound shares: exponents of the log odds of a past participation, and quantiles.

What the past says about a participation is a rise w of its log odds: a Gaussian with variance
|v|^2 / sigma^2 and mean -|v|^2 / (2 sigma^2), plus the inner products with the participations that
took place. A bound on w gives one on the probability. `norms` below is |v|^2 / sigma^2.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import special

_FACTORS = np.geomspace(0.15, 2.5, 60)  # orders tried, over the best one without participations
_MOST_EXPONENT = 690.0  # e to it is a float


def published_exponents(norms, taken, tail):
    """Pr[w > exponent] <= tail, given inner products of at most `taken` [M-Alg2]."""
    return -special.ndtri(tail) * np.sqrt(norms) + taken - norms / 2


def joint_exponents(norms, largest, tail, log_moment):
    """Pr[w > exponent] <= tail, participations and noise in one Chernoff bound [A-11]; inf where none is found.

    norms, largest : shape (m,); the largest single inner product. log_moment(orders) : for orders of shape (m,)
    the logs of E e^{order * sum of inner products}, or upper bounds on them.
    """
    need = -math.log(tail)
    best = np.full(np.shape(norms), math.inf)
    for factor in _FACTORS:
        order = np.maximum(factor * np.sqrt(2 * need / norms), 1.0)
        # An order whose exponentials leave the range of floats is skipped, never clipped.
        fits = order * largest < _MOST_EXPONENT
        if not fits.any():
            continue
        order = np.where(fits, order, _MOST_EXPONENT / np.maximum(largest, _MOST_EXPONENT))
        with np.errstate(over="ignore"):  # infinite: this order is of no use
            value = (order * (order - 1) / 2 * norms + log_moment(order) + need) / order
        best = np.where(fits, np.minimum(best, value), best)
    return best + 1e-11 * np.abs(best)


def binomial_quantile(trials, probability, tail):
    """Smallest t with Pr[Binomial(trials, probability) > t] <= tail, for each number of trials, in increasing order."""
    result = []
    t = 0
    for number in np.atleast_1d(trials):
        while t < number and special.bdtrc(t, int(number), probability) > tail:
            t += 1
        result.append(min(t, int(number)))
    return np.array(result)


def posterior(probability, exponent):
    """Probability of participation, in (0, 1), after the log odds rose by at most `exponent`; rounded up."""
    raised = special.logit(probability) + exponent + 1e-11 * (1 + np.abs(exponent))
    # expit may return 0 for every value below the smallest normal float.
    return np.clip(special.expit(raised) * (1 + 1e-13), np.finfo(float).tiny, 1.0)
