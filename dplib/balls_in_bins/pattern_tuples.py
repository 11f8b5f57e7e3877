"""Tuples of patterns, drawn round by round with the value functions of `pattern_values`."""

from __future__ import annotations

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import log_sum_exp
from .pattern_pair import Pair
from .pattern_values import Values, log_binomials, log_coins

_LARGEST_KEY = 2**62
_ENTRIES = 2**18  # numbers in one table


def draw_counts(rng, pair: Pair, law: Values, draws: int):
    """Multiplicities n, shape (draws, T), and log of tau(n) / (their probability V_0), at most 0, shape (draws,); at most b bands."""
    patterns, band = pair.patterns, pair.band
    size, b, width, rounds = law.size, patterns.b, len(band.gram), patterns.rounds
    logs = log_binomials(size, patterns.p)
    numbers = np.arange(size + 1)
    pairs = numbers * (numbers - 1) / 2
    pad = b if patterns.warm else max(b, width)  # rounds before the first: of those who wait
    counts = np.zeros((rounds + pad, draws), np.int64)
    if patterns.warm and b > 1:
        waiting = rng.multinomial(size, special.softmax(law.first), size=draws)
        counts[pad - b + 1 : pad] = waiting[:, 1:].T  # eligible first in round j: round j - b
    paused = counts[pad - b + 1 : pad].sum(axis=0)
    log_rho = np.zeros(draws)
    for i in range(rounds):
        place = i + pad
        reach = min(width - 1, i)
        near = counts[place - reach : place][::-1]  # row l - 1: lag l
        key = size - paused
        for row in near:
            key = key * (size + 1) + row
        if (size + 1) ** (reach + 1) < _LARGEST_KEY:
            _, chosen, kind = np.unique(key, return_index=True, return_inverse=True)
        else:
            chosen = kind = np.arange(draws)
        eligible, past = size - paused[chosen], near[:, chosen]
        push = band.gram[1 : reach + 1, i] @ past + law.gains[i] if reach else np.full(len(chosen), law.gains[i])
        table = logs[eligible] + pairs * band.gram[0, i] + numbers * push[:, None]
        total = log_sum_exp(table)
        allowed = law.steps[i] + law.slopes[i, 0] * paused[chosen]
        if reach:
            allowed = allowed + (law.slopes[i, 1 : reach + 1] - law.slopes[i, 0]) @ past
        log_rho += np.minimum(total - allowed, 0.0)[kind]
        edges = np.cumsum(np.exp(table - total[:, None]), axis=1)
        edges[:, -1] = 1.0
        uniforms = rng.random(draws)
        if size == 1:
            counts[place] = uniforms >= edges[kind, 0]
        else:
            counts[place] = np.minimum((edges[kind] <= uniforms[:, None]).sum(axis=1), eligible[kind])
        if b > 1:
            paused += counts[place] - counts[place - b + 1]
    return counts[pad:].T, log_rho


def draw_tuples(rng, pair: Pair, law: Values, draws: int):
    """As `draw_counts`, for any number of bands: every pattern of a tuple is drawn, with what its own rounds do not add."""
    rows = max(64, min(1024, _ENTRIES // (law.size + 1) ** 2))
    parts = [_drawn_tuples(rng, pair, law, min(rows, draws - start)) for start in range(0, draws, rows)]
    return tuple(np.concatenate(part) for part in zip(*parts))


def _drawn_tuples(rng, pair, law, draws):
    gram, b = pair.band.gram, pair.patterns.b
    (width, rounds), size = gram.shape, law.size
    numbers = np.arange(size + 1)[:, None]
    logs, pairs = log_coins(size, pair.patterns.p).T, numbers * (numbers - 1) / 2
    # The next round in which a pattern may join.
    free_at = rng.choice(len(law.first), p=special.softmax(law.first), size=(size, draws))
    pushes = np.zeros((width, size, draws))  # at i modulo w: what the earlier rounds of a pattern add to a push in round i
    counts = np.zeros((rounds, draws), np.int64)
    log_rho = np.zeros(draws)
    for i in range(rounds):
        own, eligible = pushes[i % width], free_at <= i
        free = eligible.sum(axis=0)
        sums = _symmetric_sums(np.where(eligible, np.exp(-own), 0.0))
        with np.errstate(divide="ignore"):
            table = logs[:, free] + pairs * gram[0, i] + numbers * (own.sum(axis=0) + law.gains[i]) + np.log(sums[-1])
        top = table.max(axis=0)
        weights = np.exp(table - top)
        edges = np.cumsum(weights, axis=0)
        log_rho += np.minimum(top + np.log(edges[-1]) - _allowed(law, counts[:i], size - free, b), 0.0)
        counts[i] = np.minimum((edges <= rng.random(draws) * edges[-1]).sum(axis=0), free)
        draw = np.nonzero(counts[i])[0]
        pattern, place = np.nonzero(_chosen(rng, sums[:, :, draw], counts[i, draw]))
        draw = draw[place]
        free_at[pattern, draw] = i + b
        own[:] = 0.0
        lags = np.arange(1, min(width, rounds - i))[:, None]
        pushes[(i + lags) % width, pattern, draw] += gram[lags, i + lags]
    return counts.T, log_rho


def _allowed(law, counts, paused, b):
    """What one step may leave by the value functions, at the counts of the rounds before; shape (draws,)."""
    i = len(counts)
    reach = min(law.slopes.shape[1] - 1, i)
    slopes = law.slopes[i, 1 : reach + 1].copy()
    slopes[: b - 1] -= law.slopes[i, 0]
    return law.steps[i] + law.slopes[i, 0] * paused + slopes @ counts[i - reach :][::-1]


def _symmetric_sums(values):
    """Elementary symmetric sums of order n of the first j of k values: shape (k + 1 [j], k + 1 [n], draws) for values (k, draws)."""
    size, draws = values.shape
    sums = np.zeros((size + 1, size + 1, draws))
    sums[:, 0] = 1.0
    for j, value in enumerate(values):
        sums[j + 1, 1 : j + 2] = sums[j, 1 : j + 2] + value * sums[j, : j + 1]
    return sums


def _chosen(rng, sums, number):
    """Subsets of given sizes, drawn in proportion to the products of their values: booleans, shape (k, draws)."""
    size, columns = len(sums) - 1, np.arange(len(number))
    chosen, left = np.zeros((size, len(number)), dtype=bool), number.copy()
    for j in range(size - 1, -1, -1):
        # The sums of order `left` with value j and without it.
        chosen[j] = rng.random(len(number)) * sums[j + 1, left, columns] >= sums[j, left, columns]
        left -= chosen[j]
    return chosen
