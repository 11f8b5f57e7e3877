"""The Rényi bound of Schuchardt and Kalinin (arXiv 2601.21636, Lemma 3.2) for balls in bins. Imported by _child.py only.

P = (1/b) sum of N(m_i, sigma^2 I) and Q = N(0, sigma^2 I), G the Gram matrix of the m_i. Order a, a whole number:

    E_Q (P/Q)^a = b^-a sum over (r_1, ..., r_a) of exp(sum over j < k of G[r_j, r_k] / sigma^2)

With c_i balls in bin i this is a sum over counts, and, where bins farther apart than the bands do not meet, one bin after the other. The
other order is bounded through the means of logarithms: R_a(Q, P) <= (mean of G_ii + (a - 1) mean of all G) / (2 sigma^2).
Only NumPy: written from the statement, and of the part of the paper that is a Rényi bound.
"""

import math

import numpy as np

_MOST_STATES = 120_000


def _gram(rounds, batches, bands):
    """Of the sums of columns one epoch apart; the encoder is the square root of the prefix sums, cut to so many bands."""
    column = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, bands))])
    encoder = sum(np.diag(np.full(rounds - k, value), -k) for k, value in enumerate(column))
    means = encoder.reshape(rounds, rounds // batches, batches).sum(axis=1)
    return means.T @ means


def _log_moment(gram, sigma, order):
    """log of E_Q (P/Q)^order. A state: balls so far, and the counts of the first and of the last bins that others still meet."""
    gram, bins = gram / sigma**2, len(gram)
    apart = np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))
    reach = int(np.minimum(apart, bins - apart)[gram > 0].max(initial=0))
    if math.comb(order + 2 * reach, order) > _MOST_STATES:
        raise NotImplementedError("too many bands for the order")
    digits = (order + 1) ** np.arange(1 + 2 * reach, dtype=np.int64)
    states, logs = np.zeros((1, 1 + 2 * reach), np.int8), np.zeros(1)  # balls, first counts, last counts
    for i in range(bins):
        grown = []
        for count in range(order + 1):
            fits = states[:, 0] + count <= order
            old, new = states[fits], states[fits].copy()
            gain = count * (count - 1) / 2 * gram[i, i] - math.lgamma(count + 1)
            for back in range(1, min(reach, i) + 1):
                gain = gain + count * gram[i, i - back] * old[:, 1 + 2 * reach - back]
            for first in range(max(0, i + reach - bins + 1)):  # round the end
                gain = gain + count * gram[i, first] * old[:, 1 + first]
            new[:, 0] += count
            if reach:
                new[:, 1 + reach : -1], new[:, -1] = old[:, 2 + reach :], count
                if i < reach:
                    new[:, 1 + i] = count
            grown.append((new, logs[fits] + gain))
        states = np.concatenate([new for new, _ in grown])
        gained = np.concatenate([value for _, value in grown])
        _, kept, place = np.unique(states @ digits, return_index=True, return_inverse=True)
        states, logs = states[kept], np.full(len(kept), -np.inf)
        np.logaddexp.at(logs, place, gained)
    total = logs[states[:, 0] == order]
    return np.logaddexp.reduce(total) + math.lgamma(order + 1) - order * math.log(bins)


def _log_delta(divergence, order, epsilon):
    """From a Rényi divergence, by the usual conversion (Canonne, Kamath and Steinke 2020)."""
    return (order - 1) * (divergence - epsilon + math.log1p(-1 / order)) - math.log(order)


def renyi_unsampled(sigma, rounds, batches, bands, epsilon):
    gram = _gram(rounds, batches, bands)
    best = {"remove": 0.0, "add": 0.0}
    for order in range(2, 41):
        try:
            moment = _log_moment(gram, sigma, order)
        except NotImplementedError:
            break
        best["remove"] = min(best["remove"], _log_delta(moment / (order - 1), order, epsilon))
    for order in np.linspace(1.01, 200, 2000):
        bound = (np.trace(gram) / batches + (order - 1) * gram.mean()) / (2 * sigma**2)
        best["add"] = min(best["add"], _log_delta(bound, order, epsilon))
    return {"direction": "upper", "value": math.exp(max(best.values()))}
