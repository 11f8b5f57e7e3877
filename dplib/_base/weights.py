"""Logarithms of sampling weights of many trials, with their rounding errors: walks along ratios."""

from __future__ import annotations

import math

import numpy as np

from .log_space import EPS

_THINNING = 1e-16  # of a ratio P/Q: what thinning may change
_MANY = 20_000  # up to so many trials all weights are kept
_LONGEST = 1_000_000  # weights walked through in search of those that the reference sees


def large_binomial(k, q, gap=None):
    """(support, log-weights, their ratios, their error) for many trials, by ratios from the mode.

    Beyond 20,000 trials the weights below e^-1500 of the mode, together far below the smallest delta that
    a float can hold, are left out, unless gap is given: see `cut`.
    """
    mode, reach = min(int((k + 1) * q), k), 60 + int(math.sqrt(3200 * k * q * (1 - q)) + 3200 / 3)
    low, high = (0, k) if k <= _MANY else (max(0, mode - reach), min(k, mode + reach))
    if gap is not None:
        low = max(0, min(low, high - _LONGEST))
    j = np.arange(low, high)
    ratios = np.log((k - j) / (j + 1.0)) + math.log(q) - math.log1p(-q)
    logs, error = walk(ratios, abs(math.log(q)) + abs(math.log1p(-q)))
    return cut(np.arange(low, high + 1), logs, ratios, error, k, gap)


def cut(support, logs, ratios, error, trials, gap=None):
    """The same without the weights below e^-1500 of the mode, beyond 20,000 trials.

    gap : distance of the standardised shifts, where the smaller weights that the reference sees, at u from -60 on, are
    to be kept.
    """
    if trials <= _MANY:
        # Far from the mode the steps have errors of their own, next to a loss that is as large as the logarithm.
        return support, logs, ratios, error + 2 * EPS * len(support)
    kept = logs > -1500
    if gap is not None:
        terms = _terms(support, logs, gap)
        seen = terms > terms.max() - 60
        kept[max(int(seen.argmax()) - 1, 0)] = True  # the first one that is not seen
        error += 4 * EPS * len(support)  # as above, for longer walks
    first, last = np.flatnonzero(kept)[[0, -1]].tolist()
    return support[first : last + 1], logs[first : last + 1], ratios[first:last], error


def _terms(support, logs, gap):
    """log p_j + a_j u - a_j^2 / 2 at u = -60."""
    shifts = gap * support
    return logs - shifts * (60 + shifts / 2)


def is_one_sided(support, logs, gap):
    """Whether components that were left out below the first one matter to the reference, at u from -60 on.

    gap : distance of the standardised shifts. The terms log p_j + a_j u - a_j^2 / 2 are concave in j.
    """
    if support[0] == 0:
        return False
    terms = _terms(support, logs, gap)
    return bool(terms[0] > terms.max() - 60)


def stride(ratios, gap):
    """(m, error): of m neighbours one component is enough, with m times its weight; `error` is relative, in P/Q.

    ratios : logs of the ratios of neighbouring weights. gap : distance of the standardised shifts.

    The weights are those of a sum of independent Bernoulli variables (their generating polynomial has real zeros only),
    and so are, at every u, the terms p_j e^{a_j u - a_j^2 / 2}: the factors e^{-a_j^2 / 2} keep the zeros real
    (Laguerre). Such a law with variance V has |E e^{itJ}| <= exp(-2 V sin^2(t/2)), and the sum over every m-th term, times
    m, differs from the whole sum by the share sum_{l=1}^{m-1} |E e^{2 pi i l J / m}| at most. The logs of the terms bend
    by at most `bend`, so none of them has a share above 1 / mass, and V >= (mass^2 - 1) / 12. All this holds for the u
    whose largest term lies within the support.
    """
    bend = float(np.max(-np.diff(ratios), initial=0.0)) * (1 + 1e-9) + 8 * EPS * float(np.abs(ratios).max()) + gap * gap
    i = np.arange(min(len(ratios) // 2, math.ceil(9 / math.sqrt(bend))))
    variance = (float(np.exp(-bend * i * (i + 1) / 2).sum()) ** 2 - 1) / 12
    missed = lambda m: float(np.exp(-2 * variance * np.sin(math.pi * np.arange(1, m) / m) ** 2).sum())
    m = int(math.sqrt(max(0.54 * variance, 1.0)))
    while missed(m) > _THINNING:
        m -= 1
    return m, missed(m)


def walk(log_ratios, size):
    """(log-weights up to a constant, their error) from the ratios of neighbours, from the mode outwards.

    size : the size of the terms that each log ratio is a difference of. Each step
    rounds with them and with the sum so far; steps below e^-100 do not count.
    """
    mode = int(np.sum(log_ratios > 0))  # the ratios decrease
    up = np.cumsum(log_ratios[mode:])
    down = np.cumsum(-log_ratios[:mode][::-1])
    logs = np.concatenate([down[::-1], [0.0], up])
    relevant = logs > -100
    steps = int(relevant.sum())
    return logs, EPS * float(8 + steps * (2 * size + 4) + np.abs(logs[relevant]).sum())
