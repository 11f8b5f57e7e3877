"""What the source of MMCC says beside its theorems: sentences on tightness, error, cost, parts and partitions."""

import math
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

from dplib import MatrixMechanism, accounting, conditional, matrices
from dplib.lessons import truth

DELTA = 1e-6


def bound_of_rows(encoder, sigma, q, delta, direction="remove"):
    """Epsilon of the published rows at delta_2 = delta / 2, with delta / 2 spent on bad pasts."""
    [rows] = conditional.rows(encoder, sigma, q, delta / 2, "published")
    return accounting.epsilon(rows.pairs, delta / 2, direction).upper


@pytest.mark.parametrize("rounds, direction", [(8, "remove"), (8, "add"), (12, "remove")])
def test_much_noise_is_tight_for_the_rows_and_not_for_the_guarantee(rounds, direction):
    """[M-4.3] Against all modes: over the truth at delta_2 the bound falls towards 1, over that at delta it does not."""
    encoder, at_part, at_all = matrices.optimal_counting(rounds), [], []
    for c in (20, 300):
        sigma = c * encoder.column_norms()[0]
        bound = bound_of_rows(encoder, sigma, 1 / rounds, 1e-4, direction)
        pair = truth.all_modes(encoder, sigma, 1 / rounds, samples=1024)
        at_part.append(bound / pair.epsilon(5e-5, direction).value)
        at_all.append(bound / pair.epsilon(1e-4, direction).value)
    assert at_part[0] > 1.05 and 1 < at_part[1] < 1.02
    assert min(at_all) > 1.15


def test_largest_coin_does_not_bound_what_is_lost():
    """[M-Alg2] Largest p~ / p against reported over true epsilon, a tree of 64 leaves: above at c = 10, below at 40."""
    tree = matrices.binary_tree(64)
    for c, holds in ((10, True), (40, False)):
        sigma = c * tree.column_norms()[0]
        chances = conditional.published_tail(tree, sigma, 1 / 64, DELTA / 2)
        largest = 64 * chances[tree.entries() > 0].max()
        exact = truth.tree(tree, sigma, 1 / 64, samples=1024)
        bound = bound_of_rows(tree, sigma, 1 / 64, DELTA)
        assert (bound / exact.epsilon(DELTA).value < largest) == holds
        assert bound / exact.epsilon(DELTA / 2).value < largest


@pytest.mark.parametrize("leaves, seen", [(16, (0.385, 0.417)), (64, (0.374, 0.392))])
def test_efficient_tree_has_a_guarantee_for_adaptive_inputs(leaves, seen):
    """[M-treeL] MMCC on the lower-triangular factor: above the truth, below MMCC on the tree."""
    tree = matrices.binary_tree(leaves)
    factor = np.linalg.cholesky(tree.gram()[::-1, ::-1])[::-1, ::-1].T
    factor = np.where(factor > 1e-12, factor, 0.0)
    assert np.allclose(factor.T @ factor, tree.gram()) and np.array_equal(factor, np.tril(factor))
    sigma = 10 * tree.column_norms()[0]
    found = [
        MatrixMechanism(encoder, sigma, 1 / leaves, tail_bound="published").epsilon(DELTA).upper
        for encoder in (matrices.dense(factor), tree)
    ]
    exact = truth.tree(tree, sigma, 1 / leaves, samples=1024).epsilon(DELTA).value
    assert exact < found[0] < found[1] and np.allclose(found, seen, atol=1e-3)


@pytest.mark.parametrize("direction", ("remove", "add"))
def test_first_part_of_a_toeplitz_encoder_is_the_worst(direction):
    """[M-D] Later parts are the first rows of part 1: the truth of each, by all sets, is not larger."""
    rng = np.random.default_rng(7)
    for _ in range(3):
        coefficients = rng.exponential(size=9)  # of any shape: the argument needs no order
        encoder = matrices.toeplitz(coefficients).entries()
        sigma = 3 * np.linalg.norm(coefficients)
        values = [
            truth.all_modes(encoder[i:, i::3], sigma, 0.3, samples=1024).epsilon(1e-3, direction).value
            for i in range(3)
        ]
        assert values[0] >= values[1] * (1 - 2e-3) and values[1] >= values[2] * (1 - 2e-3)


def even(order):
    return sum(a > b for a, b in combinations(order, 2)) % 2 == 0


@pytest.mark.parametrize("k, free", [(3, 2), (4, 2), (4, 3)])
def test_a_law_on_permutations_is_not_an_average_of_shuffles(k, free):
    """[E-21] Components that fix k - n' records and shuffle n' are as often even as odd; an allowed law is not."""
    orders = list(permutations(range(k)))
    for fixed in combinations(range(1, k), k - free):
        for slots in permutations(range(k), k - free):
            part = [o for o in orders if all(o[s] == f for s, f in zip(slots, fixed))]
            assert len(part) == math.factorial(free)
            assert Fraction(sum(map(even, part)), len(part)) == Fraction(1, 2)
    c = Fraction(k, free)
    law = {o: c if even(o) else 1 for o in orders}
    assert max(law.values()) / min(law.values()) == c
    assert Fraction(sum(law[o] for o in orders if even(o))) / sum(law.values()) == c / (c + 1) > Fraction(1, 2)
