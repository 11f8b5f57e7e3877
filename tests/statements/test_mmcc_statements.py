"""Statements of chapter 12: MMCC, the splitting lemma, tail bounds on sums, pools."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import special, stats

from dplib import MatrixMechanism, PoissonDPSGD, accounting, conditional, matrices, mixtures
from dplib.lessons import truth

DIRECTIONS = ("remove", "add")


def subsets(n):
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(float)


def intensities(above, past, q, sigma):
    """-ln(1 - probability) of each column if no other took part."""
    evidence = (past @ above - np.sum(above**2, axis=0) / 2) / sigma**2
    return np.logaddexp(0, special.logit(q) + evidence)


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


def test_split_row_dominates_the_listed_one():
    """[A-10] The library's law of a row against all sets of coins: never below, less than a per mille above."""
    encoder = matrices.optimal_counting(8)
    sigma, q = 3 * encoder.column_norms()[0], 1 / 8
    chances = conditional.published_tail(encoder, sigma, q, 1e-3)[-1]
    sets = subsets(8)
    weights = np.prod(np.where(sets == 1, chances, 1 - chances), axis=1)
    listed = mixtures.Mixture(sets @ encoder.entries()[-1], weights, sigma)
    [rows] = conditional.rows(encoder, sigma, q, 1e-3, "published")
    for epsilon, direction in product((0.1, 0.5), DIRECTIONS):
        ratio = rows.pairs[-1][0].hockey_stick(epsilon, direction) / listed.hockey_stick(epsilon, direction)
        assert -1e-9 <= ratio - 1 < 1e-3


@pytest.mark.parametrize("c", [0.7, 3.0])
def test_joint_tail_keeps_its_share(c):
    """[A-11] The exact tail of the evidence, over all sets of coins, is below its share for each pair."""
    T, q, delta_1 = 8, 1 / 8, 1e-2
    encoder = matrices.optimal_counting(T)
    entries, sigma = encoder.entries(), c * encoder.column_norms()[0]
    sets = subsets(T)
    law = q ** sets.sum(axis=1) * (1 - q) ** (T - sets.sum(axis=1))
    tail = delta_1 / (T * (T - 1) // 2)
    xi = np.geomspace(0.05, 100, 2000)
    for r, j in zip(*np.nonzero(np.tri(T, k=-1))):
        inner = entries[:r].T @ entries[:r] / sigma**2
        coins = np.log1p(q * np.expm1(np.minimum(xi[:, None] * inner[j], 600))).sum(axis=1)
        bound = ((xi * (xi - 1) / 2 * inner[j, j] + coins - math.log(tail)) / xi).min()
        mean = sets @ inner[j] - inner[j, j] / 2
        assert law @ stats.norm.sf((bound - mean) / math.sqrt(inner[j, j])) < tail


# ------------------------------------------------------------------ sums instead of terms


def test_binomials_in_groups_are_false_with_cumulative_bounds():
    """[A-12] Entries 1, .9, .9, intensities 0, 1/2, 1/2, cumulative bounds 1, 1: Poisson holds, one coin does not."""
    both = (1 - math.exp(-0.5)) ** 2
    assert 0.15 < both < stats.poisson.sf(1, 1.0)


@pytest.mark.parametrize("c, present", list(product((1.0, 3.0), (True, False))))
def test_toeplitz_sums_keep_their_budget(c, present):
    """[A-12] Simulated runs: the library's bounds on cumulative intensities fail less often than allowed."""
    T, q, delta_1, runs = 16, 1 / 8, 0.2, 2000
    encoder, rng = matrices.optimal_counting(T), np.random.default_rng(4)
    entries, sigma = encoder.entries(), c * encoder.column_norms()[0]
    [rows] = conditional.rows(encoder, sigma, q, delta_1, "aggregated")
    none = np.array([float(m.probabilities[m.shifts == 0].sum()) for m, _ in rows.pairs])
    limit = -np.log(none / (1 - q))
    coins = (rng.random((runs, T)) < q) & present
    y = coins @ entries.T + sigma * rng.standard_normal((runs, T))
    bad, evidence = np.zeros(runs, bool), np.zeros((runs, T))
    for r in range(1, T):
        evidence += (2 * y[:, [r - 1]] * entries[r - 1] - entries[r - 1] ** 2) / (2 * sigma**2)
        rates = np.logaddexp(0, special.logit(q) + evidence[:, r - 1 :: -1])
        bad |= np.any(np.cumsum(rates, axis=1) > limit[1 : r + 1] + 1e-9, axis=1)
    assert bad.mean() < delta_1


# ------------------------------------------------------------------ pools


def tree_sums(T, q, sigma, runs, rng, present):
    """For each height the sums of intensities before its nodes are released, shape (runs, nodes)."""
    number = ((rng.random((runs, T)) < q) & present).astype(float)
    evidence, found = np.zeros((runs, T)), []
    while number.shape[1] > 1:
        y = number + sigma * rng.standard_normal(number.shape)
        evidence += np.repeat((2 * y - 1) / (2 * sigma**2), T // number.shape[1], axis=1)
        number = number[:, ::2] + number[:, 1::2]
        rates = np.logaddexp(0, special.logit(q) + evidence)
        found.append(rates.reshape(runs, number.shape[1], -1).sum(axis=2))
    return found


def levels(encoder, sigma, q, delta_1, tail):
    """For each height above the leaves the bounds on the sums of intensities, sorted."""
    [rows] = conditional.rows(encoder, sigma, q, delta_1, tail)
    each = [-math.log(float(m.probabilities[0])) for m, count in rows.pairs for _ in range(int(count))]
    sizes = [encoder.columns >> h for h in range(encoder.columns.bit_length())]
    return [np.sort(part) for part in np.split(np.array(each), np.cumsum(sizes)[:-1])][1:]


@pytest.mark.parametrize("tail, tag", [("aggregated", "A-12"), ("pooled", "A-13")])
def test_levels_of_a_tree_keep_their_budget(tail, tag):
    """[A-12], [A-13] Sorted sums of intensities lie below the sorted levels in all but delta_1 of the runs."""
    T, q, sigma, delta_1 = 32, 1 / 8, 2 * math.sqrt(6), 0.2
    bounds = levels(matrices.binary_tree(T), sigma, q, delta_1, tail)
    for present in (True, False):
        sums = tree_sums(T, q, sigma, 4000, np.random.default_rng(5), present)
        bad = [np.any(np.sort(s, axis=1) > b, axis=1) for s, b in zip(sums, bounds)]
        share = np.any(bad, axis=0).mean()
        assert share < delta_1
        if present:
            assert share > delta_1 / 10, "so loose a bound would not be noticed if it were wrong"


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


def test_bad_pasts_of_a_pool_cost_their_mass():
    """[A-13] Members in an order that follows the past, wild rounds after bad pasts: product and mass of the bad pasts."""
    rng, charged = np.random.default_rng(8), 0

    def run(members, alpha, past, u, v, used, bad):
        """(hockey stick, mass of the pasts at which it goes bad) from here on."""
        if len(past) == 3:
            return max(u - alpha * v, 0.0), 0.0
        goes_bad = not bad and bool(past) and rng.random() < 0.25
        i = rng.choice([i for i in range(3) if i not in used])
        p, q = rng.dirichlet(np.full(3, 0.2), size=2) if bad or goes_bad else members[i]
        parts = [run(members, alpha, (*past, x), u * p[x], v * q[x], (*used, i), bad or goes_bad) for x in range(3)]
        return sum(h for h, _ in parts), (u if goes_bad else 0.0) + sum(m for _, m in parts)

    for _ in range(150):
        members, alpha = rng.dirichlet(np.full(3, 0.5), size=(3, 2)), math.exp(rng.uniform(-1, 2))
        P, Q = (np.einsum("i,j,k->ijk", *members[:, side]) for side in (0, 1))
        whole = np.maximum(P - alpha * Q, 0).sum()
        value, bad_mass = run(members, alpha, (), 1.0, 1.0, (), False)
        assert value <= whole + bad_mass + 1e-12
        charged += value > whole + 0.1 * bad_mass
    assert charged > 30


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("leaves, c, q", [(4, 6.0, 0.25), (8, 10.0, 0.125), (16, 20.0, 0.0625), (64, 10.0, 1 / 64)])
def test_pooled_bounds_against_the_truth(leaves, c, q, direction):
    """[A-13] At the epsilon of the pooled bound the true delta, by the recursion over nodes, is at most delta."""
    encoder = matrices.binary_tree(leaves)
    sigma = c * math.sqrt(math.log2(leaves) + 1)
    exact = truth.tree(encoder, sigma, q, samples=1024)
    for delta in (1e-3, 1e-5):
        bound = MatrixMechanism(encoder, sigma, q, tail_bound="pooled", tail_share=0.1).epsilon(delta, direction).upper
        found = exact.delta(bound, direction)
        assert found.value - 4 * found.standard_error <= delta
        # Not idle: for sixteen leaves most of delta is there.
        assert found.value > 0.4 * delta or leaves != 16 or direction == "add"


def test_bounds_of_a_tree_in_order():
    """[A-12], [A-13] Truth below pooled below aggregated below published; within 1.2 of the truth at 256 leaves."""
    encoder = matrices.binary_tree(256)
    found = [
        MatrixMechanism(encoder, 30.0, 1 / 256, tail_bound=tail, tail_share=share).epsilon(1e-6, "remove").upper
        for tail, share in (("pooled", 0.1), ("aggregated", 0.1), ("published", 0.5))
    ]
    exact = truth.tree(encoder, 30.0, 1 / 256, samples=1024).epsilon(1e-6, "remove").value
    assert exact < found[0] < found[1] < 0.7 * found[2]
    assert found[0] < 1.2 * exact
