"""Statements of chapter 12: MMCC, the splitting lemma, tail bounds on sums, pools."""

import math

import numpy as np
import pytest
from scipy import special, stats

from dplib import MatrixMechanism, PoissonDPSGD, accounting, conditional, matrices, mixtures
from dplib.lessons import truth

DIRECTIONS = ("remove", "add")


# ------------------------------------------------------------------ the algorithm


def test_the_algorithm_is_bounds_rows_and_composition():
    """[M-Alg1] MatrixMechanism is: published bounds, product mixtures, composition at delta - delta_1."""
    encoder = matrices.binary_tree(4)
    sigma, q, delta = 6.0, 0.2, 2e-3
    bounds = conditional.published_tail(encoder, sigma, q, delta / 2)
    entries = encoder.entries()
    by_hand = [
        (mixtures.product(chances[row > 0], row[row > 0], sigma), 1) for row, chances in zip(entries, bounds)
    ]
    for direction in DIRECTIONS:
        expected = accounting.epsilon(by_hand, delta / 2, direction, "lattice", tolerance=1e-7).lower
        found = MatrixMechanism(encoder, sigma, q, tail_bound="published").epsilon(delta, direction).upper
        assert 0 <= found / expected - 1 < 1e-4


@pytest.mark.parametrize("sigma, expected", [(5.0, (0.1513, 0.2289, 0.0840, 0.1443))])
def test_two_rounds(sigma, expected):
    """[M-4.3] Truth by quadrature and MMCC for the encoder ((1, 0), (1, 1)), q = .1, delta = 1e-4."""
    encoder = matrices.toeplitz([1.0, 1.0])
    found = []
    for direction in DIRECTIONS:
        found.append(truth.two_rounds(encoder, sigma, 0.1).epsilon(1e-4, direction).value)
        mechanism = MatrixMechanism(encoder, sigma, 0.1, tail_bound="published")
        found.append(mechanism.epsilon(1e-4, direction).upper)
    assert np.allclose(found, expected, atol=1e-4)


def test_independent_rows_are_no_lower_bound():
    """[M-low] Rows with the unconditional probabilities exceed the truth, in both directions at delta = 3/4."""
    rows = [(mixtures.binomial(k, 0.5, 0.3), 1) for k in (1, 2)]
    pair = truth.two_rounds(matrices.toeplitz([1.0, 1.0]), 0.3, 0.5)
    for direction in DIRECTIONS:
        assert pair.epsilon(0.75, direction).value == 0
        assert accounting.epsilon(rows, 0.75, direction, "lattice").lower > 0.2
    assert pair.epsilon(1e-3, "add").value == pytest.approx(1.383, abs=1e-3)
    assert accounting.epsilon(rows, 1e-3, "add", "lattice").lower == pytest.approx(2.073, abs=1e-3)


def test_inner_products_of_a_tree():
    """[M-tree] Leaves below a node of height h: norms h, inner products h minus the height of the lowest common node."""
    entries = matrices.binary_tree(16).entries()
    heights = np.log2(entries.sum(axis=1)).astype(int)
    for h in range(1, 5):
        r = int(np.argmax(heights == h))
        leaves = np.flatnonzero(entries[r])
        xor = np.bitwise_xor.outer(leaves, leaves)
        lowest = np.where(xor > 0, np.floor(np.log2(np.maximum(xor, 1))) + 1, 0)
        assert np.array_equal(entries[:r, leaves].T @ entries[:r, leaves], h - lowest)


def test_min_separation_of_a_banded_encoder_is_dp_sgd():
    """[M-D] With b bands nothing is revealed: T / b rounds with probability b q, noise over the column norm."""
    encoder = matrices.optimal_counting(64, bands=8)
    mechanism = MatrixMechanism(encoder, 10 * encoder.column_norms()[0], 1 / 64, min_separation=8)
    expected = PoissonDPSGD(10.0, 8 / 64, 8).epsilon(1e-6).upper
    assert mechanism.epsilon(1e-6).upper == pytest.approx(expected, rel=1e-6)


def test_budget_of_min_separation_counts_the_pairs_that_are_used():
    """[M-D] A sparse encoder in which all pairs are used: the rule b delta_1 overdraws its budget three times."""
    pairs, rate, sigma, delta_1 = 63, 1e-4, 20.0, 0.05
    entries, kept = np.eye(512), np.arange(0, 504, 8)
    entries[kept + 8, kept] = 1.0
    bound = conditional.published_tail(matrices.dense(entries), sigma, rate / 8, delta_1, 8)[1, 0]
    z = sigma * (special.logit(bound) - special.logit(rate) + 1 / (2 * sigma**2))
    assert stats.norm.sf(z) == pytest.approx(delta_1 / (2 * pairs), rel=1e-6)

    def bad(share):
        z = stats.norm.isf(share)
        return 1 - (1 - (1 - rate) * share - rate * stats.norm.sf(z - 1 / sigma)) ** pairs

    assert bad(delta_1 / (2 * pairs)) < delta_1 < bad(8 * delta_1 / (2 * pairs)) / 3


# ------------------------------------------------------------------ splitting, joint tail


def test_splitting_lemma():
    """[A-10] No shortfall above -z sigma, at most Phi(-z) below; both terms of the rate are needed."""
    rng, n, z = np.random.default_rng(1), 20_000, 3.0
    low, s, high = np.sort(rng.exponential(1, (3, n)), axis=0)

    def shortfall(rate, t):
        up = np.expm1(-rate * (s - low)) / np.expm1(-rate * (high - low))
        return stats.norm.sf(t - s) - up * stats.norm.sf(t - high) - (1 - up) * stats.norm.sf(t - low)

    for t in (rng.uniform(-z, 6, n), np.full(n, -z)):
        assert shortfall(z + high, t).max() < 1e-12
        assert shortfall(z + 0 * high, np.full(n, -z)).max() > 1e-3 * stats.norm.cdf(-z)
    assert shortfall(z + high, -z - rng.exponential(1, n)).max() <= stats.norm.cdf(-z)


# ------------------------------------------------------------------ sums instead of terms


def test_binomials_in_groups_are_false_with_cumulative_bounds():
    """[A-12] Entries 1, .9, .9, intensities 0, 1/2, 1/2, cumulative bounds 1, 1: Poisson holds, one coin does not."""
    both = (1 - math.exp(-0.5)) ** 2
    assert 0.15 < both < stats.poisson.sf(1, 1.0)


# ------------------------------------------------------------------ pools


def test_smallest_unused_member_never_runs_out():
    """[A-13] The greedy rule serves the values, in whatever order they come, exactly when sorted values fit the sorted pool."""
    rng, tried = np.random.default_rng(6), [0, 0]
    for _ in range(600):
        pool = np.sort(rng.integers(0, 9, 8))
        values = rng.permutation(pool - np.where(rng.random(8) < 0.1, -1, rng.integers(0, 4, 8)))
        fits = np.all(np.sort(values) <= pool)
        left, served = list(pool), True
        for value in values:
            place = int(np.searchsorted(left, value))
            served = served and place < len(left) and left[place] >= value
            if served:
                left.pop(place)
        assert served == fits
        tried[int(fits)] += 1
    assert min(tried) > 50
