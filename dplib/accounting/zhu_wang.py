"""The Renyi bound for subsampling any mechanism, at an integer order [ZW-1], [ZW-3]."""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import EPS, log_choose, log_sum_exp


def integer_moment(n: int, epsilons: np.ndarray, gamma: float, constant: float) -> float:
    """(n - 1) F_c(n) for an integer n >= 2; epsilons : the curve at 2, ..., n or beyond."""
    if gamma == 0:
        return 0.0
    l = np.arange(2.0, n + 1)
    exponent = (l - 1) * epsilons[: n - 1]
    log_c = np.where(l > 2, math.log(constant), 0.0)
    # log(c e^x - 1) = x + log c + log(1 - e^{-x - log c})
    with np.errstate(divide="ignore"):
        term = exponent + log_c + np.log(-np.expm1(-exponent - log_c))
    size = exponent + log_c
    if gamma == 1:
        terms = np.where(l == n, term, -np.inf)
    else:
        hits, misses = l * math.log(gamma), (n - l) * math.log1p(-gamma)
        choose, choose_size = _log_choose(n)
        terms = choose[2:] + hits + misses + term
        size = size + choose_size[2:] - hits - misses
    value = float(log_sum_exp(terms))
    if value == -math.inf:
        return 0.0
    # Rounded upwards, with every part that was rounded: an upper bound stays one.
    pad = EPS * (8 + 4 * float(np.max(size, where=terms > value - 40, initial=abs(value))))
    return float(np.logaddexp(0.0, value + pad))


def _log_choose(n):
    """(log C(n, j) for j = 0..n, the size of what was rounded)."""
    if n <= 1000:
        exact = log_choose(n)
        return exact, exact
    j = np.arange(n + 1.0)
    parts = special.gammaln(j + 1) + special.gammaln(n - j + 1)
    return special.gammaln(n + 1) - parts, special.gammaln(n + 1) + parts
