"""What the source of MMCC says beside its theorems: sentences on tightness, error, cost, parts and partitions."""

import json
import math
from fractions import Fraction
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from library_files import python_files
from scipy import stats

from dplib import MatrixMechanism, accounting, conditional, matrices
from dplib.lessons import truth

ROOT = Path(__file__).resolve().parents[2]
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


def exact_coins(C, q, sigma, share):
    """p~ with the exact quantile of the sum of inner products, for every entry above 0."""
    n = len(C)
    sets = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(float)
    law = q ** sets.sum(axis=1) * (1 - q) ** (n - sets.sum(axis=1))
    z, result = stats.norm.isf(share), np.full(C.shape, np.nan)
    for r, j in zip(*np.nonzero(C)):
        inner = C[:r].T @ C[:r, j]
        values = sets @ inner
        order = np.argsort(values)
        s = values[order][np.argmax(1 - np.cumsum(law[order]) <= share)]
        evidence = z * math.sqrt(inner[j]) / sigma + (2 * s - inner[j]) / (2 * sigma**2)
        result[r, j] = 1 / (1 + (1 - q) / q * math.exp(-evidence))
    return result


def test_rows_of_a_banded_toeplitz_encoder_share_a_law():
    """[M-Alg2] With exact quantiles the rows 2b - 1 to n have the same coins, earlier ones have not."""
    bands, rounds = 3, 10
    C = matrices.optimal_counting(rounds, bands=bands).entries()
    coins = exact_coins(C, 0.2, 2.0, 1e-3)
    rows = [coins[r, r - bands + 1 : r + 1] for r in range(bands - 1, rounds)]
    for row in rows[bands - 1 :]:  # row 2b - 1, counted from 1, is the (b - 1)-th of this list
        assert np.allclose(row, rows[-1], atol=1e-12)
    assert not np.allclose(rows[0], rows[-1], atol=1e-6)


def test_rounding_entries_up_leaves_few_components():
    """[M-Alg1] A row rounded up to multiples of a step has at most its sum over the step, plus n, values above 0."""
    encoder, step = matrices.optimal_counting(12), 1 / 16
    sigma = 3 * encoder.column_norms()[0]
    [rows] = conditional.rows(encoder, sigma, 0.5, 0.1, "published", round_entries_to=step, slack=1e-300)
    for (mixture, count), row in zip(rows.pairs, encoder.entries()):
        used = np.count_nonzero(mixture.probabilities > 0) - 1  # without the value 0
        entries = row[row > 0]
        largest = np.ceil(entries / step).sum()
        assert count == 1 and used <= largest <= entries.sum() / step + len(entries)
        top = mixture.shifts[mixture.probabilities > 0][-1] * sigma
        assert abs(top - largest * step) < 1e-9  # all entries at once: nothing was cut off


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


def test_no_page_says_that_an_account_rests_on_published_theorems_alone():
    """tail_bound="published" uses statements of this book as well; the pages list them."""
    pages = [*ROOT.glob("book/*.md"), *ROOT.glob("notebooks/**/*.ipynb"), *python_files(), ROOT / "README.md"]
    for page in pages:
        text = " ".join(page.read_text(encoding="utf-8").split())
        for phrase in ("published theorems alone", "published tail bound alone", "published theorem alone"):
            assert phrase not in text, f"{page.name}: {phrase}"
    assert "published" in conditional.TAIL_BOUNDS


def test_papers_after_the_sources_are_described_by_what_they_contain():
    """Two papers of 2026: near-exact by Monte Carlo for a sampling scheme; without Monte Carlo for every matrix."""
    cells = json.loads((ROOT / "notebooks" / "14_balls_in_bins.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    [dong] = [line for line in text.splitlines() if "2602.09338" in line]
    [schuchardt] = [line for line in text.splitlines() if "2601.21636" in line]
    assert "by Monte Carlo" in dong and "sampling scheme" in dong and "without" not in dong
    assert "no Monte Carlo" in schuchardt and "arbitrary matrices" in schuchardt
