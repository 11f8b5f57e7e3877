"""The bound on the importance ratio of every tuple [A-15]: checked by enumerating all of them."""

import itertools
import math

import numpy as np
import pytest

from dplib._base import lazy_scipy
from dplib.balls_in_bins.tuple_law import Shares, _groups, fit


def compositions(total, parts):
    """All vectors of `parts` counts with sum `total`."""
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        ends = (-1, *bars, total + parts - 1)
        yield [ends[i + 1] - ends[i] - 1 for i in range(parts)]


def log_mixture(counts, gram, law):
    """log of the mixture of levels at each vector of counts, up to what all tuples share."""
    forces = counts @ gram
    levels = zip(law.levels, law.weights, law.log_totals)
    return np.logaddexp.reduce([math.log(w) - a + np.logaddexp.reduce(t * forces, axis=1) for t, w, a in levels], axis=0)


def log_ratios(counts, gram, law):
    return np.einsum("ij,ij->i", counts, counts @ gram) / 2 - log_mixture(counts, gram, law)


def ratios(gram, law):
    """log probability of each ordered tuple, log of the number of orders, and log rho; one row per composition."""
    bins, k = len(gram), law.size
    counts = np.array(list(compositions(k, bins)), float)
    log_probability = -k * math.log(bins) - counts @ gram.diagonal() / 2 + log_mixture(counts, gram, law)
    orders = np.array([math.lgamma(k + 1) - sum(math.lgamma(c + 1) for c in row) for row in counts])
    return log_probability, orders, log_ratios(counts, gram, law)


def test_random_matrices():
    """[A-15] Nothing exceeds the bound on random matrices of all kinds, singular ones among them; the probabilities of all tuples sum to 1."""
    rng = np.random.default_rng(6)
    for _ in range(60):
        bins, size = rng.integers(2, 6), int(rng.integers(2, 8))
        rows = rng.random((bins, rng.integers(1, bins + 2))) ** rng.integers(1, 9) * 10 ** rng.uniform(
            -1, 0.5
        )
        gram = rows @ rows.T + 1e-9 * np.eye(bins)
        law = fit(Shares(gram, size), size)
        log_probability, orders, log_ratio = ratios(gram, law)
        assert np.exp(log_ratio.max()) <= law.ratio
        assert math.fsum(np.exp(log_probability + orders)) == pytest.approx(1, abs=1e-10)
        assert law.weights.sum() == pytest.approx(1, abs=1e-14)


def test_large_entries_of_very_different_size():
    """[A-15] Exponentials of small rows underflow against those of large ones: the bound still holds."""
    for gram in (np.diag([200.0, 3.0, 0.05]), np.diag([40.0, 1.0, 30.0]) + 0.01):
        for size in (2, 5, 8):
            law = fit(Shares(gram, size), size)
            _, _, log_ratio = ratios(gram, law)
            assert log_ratio.max() <= law.log_ratio


def test_random_tuples_of_a_large_matrix():
    """[A-15] 128 bins cannot be enumerated: concentrated and spread tuples."""
    rng = np.random.default_rng(7)
    lag = np.abs(np.subtract.outer(np.arange(128), np.arange(128)))
    for gram, size in ((np.maximum(0, 1 - lag / 40) * 0.5, 8), (np.eye(128) * 2.125, 5), (0.3 / np.sqrt(1 + lag), 12)):
        law = fit(Shares(gram, size), size)
        spreads = rng.integers(1, 128, 600)
        counts = np.array([np.bincount(rng.integers(0, spread, size), minlength=128) for spread in spreads], float)
        assert np.exp(log_ratios(counts, gram, law).max()) <= law.ratio


def test_groups_cover_every_count():
    """Large matrices: the counts are taken in groups, none is left out, and the bound only grows."""
    for size in (2, 7, 24, 40):
        covered = [count for fewest, most in _groups(size, 512) for count in range(fewest, most + 1)]
        assert covered == list(range(1, size + 1))
        assert _groups(size, 5)[0][0] == -(-size // 5)
    gram = np.eye(6) + 0.1
    single = fit(Shares(gram, 12), 12).ratio
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dplib.balls_in_bins.tuple_law._groups", lambda size, bins: [(2, 4), (5, 8), (9, 12)])
        assert fit(Shares(gram, 12), 12).ratio >= single * (1 - 1e-9)


def test_fallback_without_the_programme(monkeypatch):
    """[A-15] Where the programme fails, the best single level is taken: the bound stays valid."""

    class Failed:
        x = None

    monkeypatch.setattr(lazy_scipy.optimize, "linprog", lambda *args, **kwargs: Failed())
    gram = np.eye(4) + 0.2
    law = fit(Shares(gram, 5), 5)
    assert len(law.levels) == 1
    assert np.exp(ratios(gram, law)[2].max()) <= law.ratio
