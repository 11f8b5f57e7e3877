"""Logarithms of sampling weights: binomials with their rounding errors, and walks along ratios."""

from __future__ import annotations

import math

import numpy as np

from ._log_sums import EPS


def log_choose(k):
    """log C(k, j) for j = 0..k, each from the exact integer."""
    row, value = [], 1
    for j in range(k // 2 + 1):
        row.append(math.log(value))
        value = value * (k - j) // (j + 1)
    return np.array(row + row[(k - 1) // 2 :: -1] if k else row)


def large_binomial(k, q):
    """Support, log-weights and their error for many trials, by ratios from the mode.

    Weights below e^-1500 of the mode, together far below the smallest delta that
    a float can hold, are left out.
    """
    mode = min(int((k + 1) * q), k)
    reach = 60 + int(math.sqrt(3200 * k * q * (1 - q)) + 3200 / 3)
    j = np.arange(max(0, mode - reach), min(k, mode + reach))
    odds = math.log(q) - math.log1p(-q)
    logs, error = walk(np.log((k - j) / (j + 1.0)) + odds, abs(math.log(q)) + abs(math.log1p(-q)))
    support = np.arange(j[0], j[-1] + 2)
    keep = logs > -1500
    return support[keep], logs[keep], error


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
