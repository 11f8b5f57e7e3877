"""Tail bounds of MMCC: reference values, domination by enumeration, moments, simulated bad events."""

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import stats

from dplib import accounting, conditional, matrices
from dplib.conditional import tails as _tails
from dplib.conditional import tails_dense, tails_toeplitz, tails_tree

DATA = Path(__file__).resolve().parents[1] / "data" / "mmcc.json"
SPOTS = json.loads(DATA.read_text(encoding="utf-8"))["spot"]


def decreasing(rng, n):
    return np.sort(np.append(1.0, rng.uniform(0, 1, n - 1) ** rng.integers(1, 4)))[::-1]


# ------------------------------------------------------------------ as published


@pytest.mark.parametrize("spot", [s for s in SPOTS if s["n"] <= 512], ids=lambda s: f"n{s['n']}")
def test_published_probabilities(spot):
    """[M-Alg2] Values of the last row by other code."""
    n = spot["n"]
    found = conditional.published_tail(matrices.optimal_counting(n), spot["sigma"], spot["p"], spot["delta1"])
    columns = {"1": 0, "nminus1": n - 2}
    for name, column in columns.items():
        assert found[-1, column] == pytest.approx(spot[f"p_tilde_row_n_col_{name}"], rel=1e-9)
    middle = found[-1, max(n // 2 - 2, 0) : n // 2 + 2]
    assert np.abs(middle / spot["p_tilde_row_n_col_mid"] - 1).min() < 1e-9
    assert np.allclose(np.diag(found), spot["p"]) and np.all(found[0, 1:] == 1)


@pytest.mark.parametrize("separation", (1, 2, 3))
def test_structure_and_pairs_give_the_same_probabilities(separation):
    """[M-Alg2] Ages of a Toeplitz encoder, and all pairs of a dense matrix."""
    toeplitz = matrices.toeplitz(decreasing(np.random.default_rng(separation), 12))
    dense = matrices.dense(toeplitz.entries())
    one, two = (conditional.published_tail(e, 3.0, 0.1, 0.01, separation) for e in (toeplitz, dense))
    assert np.allclose(one, two, rtol=1e-9)


def test_a_joint_bound_is_never_worse_than_markov():
    """[A-11] e^w has mean 1 without participations: Pr[w > log(1/tail)] <= tail, however large the norm."""
    nobody = lambda orders: np.zeros(len(orders))
    found = _tails.joint_exponents(np.array([0.01, 1.0, 100.0, 1e4]), np.zeros(4), 1e-3, nobody)
    assert np.all(found <= math.log(1e3) * (1 + 1e-10)) and found[0] < found[1] < found[2]


# ------------------------------------------------------------------ inner products and moments


def make_groups_wide(monkeypatch):
    """Groups of several ages from the third age on, as otherwise only thousands of rounds have."""
    monkeypatch.setattr(tails_toeplitz, "_SINGLE", 2)
    monkeypatch.setattr(tails_toeplitz, "_RATIOS", ((math.inf, 1.6),))


@pytest.mark.parametrize("wide", (False, True), ids=("single ages", "wide groups"))
@pytest.mark.parametrize("n, separation", [(60, 1), (60, 3), (50, 7)])
def test_groups_bound_all_inner_products(n, separation, wide, monkeypatch):
    """[A-12] covariance >= upper >= every true inner product, and it is a covariance."""
    if wide:
        make_groups_wide(monkeypatch)
    ages = tails_toeplitz.Ages(decreasing(np.random.default_rng(n), n), 2.0, separation)
    # Column of age a: what was released of it, aligned at the present; its start lies a blocks back.
    length = ages.count * separation
    column = np.append(ages.coefficients, np.zeros(length))
    released = np.array([np.append(np.zeros(length - a * separation), column[: a * separation]) for a in range(1, ages.count)])
    gram = released @ released.T / 4
    group = np.searchsorted(ages.edges, np.arange(1, ages.count))
    covered = group <= len(ages.upper)
    upper = ages.upper[np.ix_(group[covered] - 1, group[covered] - 1)]
    assert np.all(upper >= gram[np.ix_(covered, covered)])
    assert np.all(ages.covariance >= ages.upper) and np.linalg.eigvalsh(ages.covariance)[0] > 0
    assert ages.sizes[: ages.old].sum() == ages.active and ages.multiplicities.sum() == ages.count - 1
    assert ages.pairs == sum(min(row, ages.active) for row in range(ages.count))


def gauss_hermite(bound, order, centre, kappa, shift):
    """log E exp(order * sum of the quadratic) by quadrature over two groups, participations fixed."""
    x, weight = np.polynomial.hermite_e.hermegauss(80)
    root = np.linalg.cholesky(bound.covariance)
    grid = np.stack(np.meshgrid(x, x, indexing="ij")).reshape(2, -1)
    w = root @ grid - np.diag(bound.covariance)[:, None] / 2 + shift[:, None]
    t = w - centre
    quadratic = math.exp(centre) * (1 + t + kappa / 2 * t**2)
    return math.log(np.outer(weight, weight).ravel() @ np.exp(order * (bound.sizes @ quadratic)) / (2 * math.pi))


def test_moment_of_the_quadratic_bound():
    """[A-12] Against Gauss-Hermite: equal without participations, and above for any fixed ones."""
    ages = tails_toeplitz.Ages([1.0, 0.6, 0.3], 2.5)
    for centre, share in ((0.0, 0.3), (0.2, 0.5)):
        none = tails_toeplitz._SumBound(ages, 0.0, 1e-3, 0, 2)
        kappa = tails_toeplitz._curvature(none.range - centre)
        order = share / (kappa * math.exp(centre) * none.top)
        moment = none._bound(order, centre, kappa) * order - none.need
        assert moment == pytest.approx(gauss_hermite(none, order, centre, kappa, np.zeros(2)), rel=1e-9)
        # p = 1: the participations are fixed, all of them.
        full = tails_toeplitz._SumBound(ages, 1.0, 1e-3, 2, 2)
        moment = full._bound(order, centre, kappa) * order - full.need
        shift = ages.upper @ ages.sizes
        exact = gauss_hermite(full, order, centre, kappa, shift)
        assert exact <= moment <= exact + 0.5


def test_the_quadratic_is_above_the_exponential():
    """[A-12] e^t <= 1 + t + kappa t^2 / 2 up to the reach."""
    for reach in (-0.5, 0.0, 1e-4, 0.1, 1.0, 8.0):
        t = np.linspace(-40, reach, 500)
        kappa = tails_toeplitz._curvature(reach)
        assert np.all(np.exp(t) <= (1 + t + kappa * t**2 / 2) * (1 + 1e-12)) and kappa >= 1


# ------------------------------------------------------------------ budgets and simulated bad events


def test_every_event_is_paid_for(monkeypatch):
    """[A-12] All events listed one by one: their probabilities add up to at most delta_1."""
    tails, joint = [], []
    init, exponents = tails_toeplitz._SumBound.__init__, tails_toeplitz.joint_exponents

    def counted(self, ages, probability, tail, most, groups):
        tails.append((groups, tail))
        init(self, ages, probability, tail, most, groups)

    def listed(ages, probability, tail):
        joint.append(tail)
        return exponents(ages, probability, tail)

    monkeypatch.setattr(tails_toeplitz._SumBound, "__init__", counted)
    monkeypatch.setattr(tails_toeplitz, "joint_exponents", listed)
    for coefficients in (matrices.optimal_counting(64).coefficients, [1.0, 0.8, 0.5, 0.2] + [0.0] * 36):
        tails.clear(), joint.clear()
        norm = np.linalg.norm(coefficients)
        ages = tails_toeplitz.Ages(coefficients, norm)
        tails_toeplitz.aggregated_intensities(ages, 1 / 16, 0.05)
        total = 0.02 * 0.05  # more participations than assumed
        for row in range(1, ages.count):
            oldest = min(row, ages.active)
            total += joint[0] * oldest
            total += sum(tail for groups, tail in tails if ages.edges[groups - 1] < oldest)
        assert 0.9 * 0.05 < total <= 0.05 * (1 + 1e-12)


@pytest.mark.parametrize("present", (True, False), ids=("P", "Q"))
@pytest.mark.parametrize("delta_1", (0.05, 0.2))
@pytest.mark.parametrize("noise", (1.0, 3.0))
def test_simulated_sums_keep_their_budget(noise, delta_1, present):
    """[A-12] Runs in which some row's intensity exceeds its bound, n = 64, both laws, also at low noise."""
    n, p, runs, rng = 64, 1 / 16, 400, np.random.default_rng(6)
    array = matrices.optimal_counting(n).entries()
    sigma = noise * np.linalg.norm(array[:, 0])
    ages = tails_toeplitz.Ages(array[:, 0], sigma)
    bounds = tails_toeplitz.aggregated_intensities(ages, p, delta_1)
    theta = sigma * rng.normal(size=(runs, n))
    if present:
        theta += (rng.uniform(size=(runs, n)) < p) @ array.T
    bad = np.zeros(runs, bool)
    w = np.zeros((runs, n))
    for row in range(1, n):
        w += (theta[:, [row - 1]] * array[row - 1] - 0.5 * array[row - 1] ** 2) / sigma**2
        cumulative = np.cumsum(np.log1p(p / (1 - p) * np.exp(w[:, row - 1 :: -1][:, :row])), axis=1)
        tops = ages.edges[1 : 1 + np.searchsorted(ages.edges, row)]
        bad |= np.any(cumulative[:, np.minimum(tops, row) - 1] > bounds[: len(tops)], axis=1)
    assert stats.binom.cdf(bad.sum() - 1, runs, delta_1) < 0.999  # no evidence of more than delta_1


def simulated_means(tree, p, sigma, runs, rng, present=True):
    """For each height the means of e^w under each node before it is released, shape (runs, nodes)."""
    number = (rng.uniform(size=(runs, tree.leaves)) < p) if present else np.zeros((runs, tree.leaves))
    number, mean, found = number.astype(float), np.ones((runs, tree.leaves)), []
    for _ in range(tree.height):
        # The nodes one below are released.
        theta = number + sigma * rng.normal(size=number.shape)
        mean = mean * np.exp((theta - 0.5) / sigma**2)
        mean, number = (mean[:, ::2] + mean[:, 1::2]) / 2, number[:, ::2] + number[:, 1::2]
        found.append(mean)
    return found


@pytest.mark.parametrize("present", (True, False), ids=("P", "Q"))
@pytest.mark.parametrize("bound", ("aggregated", "pooled"))
def test_simulated_trees_keep_their_budget(bound, present):
    """[A-12, A-13] Runs in which some node has no bound that holds, both laws."""
    tree, p, sigma, delta_1, runs = matrices.binary_tree(32), 1 / 16, 5.0, 0.2, 3000
    chances = getattr(tails_tree, bound)(tails_tree.Branches(32, 1, sigma), p, delta_1)
    bad = np.zeros(runs, bool)
    means = simulated_means(tree, p, sigma, runs, np.random.default_rng(9), present)
    for found, chance in zip(means, chances[1:]):
        odds = p / (1 - p) * found
        needed = np.sort(odds / (1 + odds), axis=1)[:, ::-1]
        pool = chance if isinstance(chance, list) else [(found.shape[1], chance)]
        given = np.repeat([c for _, c in pool], [number for number, _ in pool])
        assert len(given) == found.shape[1] and np.all(np.diff(given) <= 0)
        # Sorted against sorted: then each node can be given a member of the pool that dominates it.
        bad |= np.any(needed > given, axis=1)
    assert stats.binom.cdf(bad.sum() - 1, runs, delta_1) < 0.999


def test_the_law_of_a_subtree_is_tight():
    """[A-12] Frequencies over nominal probabilities near 1 with the record, below without."""
    tree, p, sigma = matrices.binary_tree(16), 0.1, 6.0
    laws = tails_tree._subtree_laws(tails_tree.Branches(16, 1, sigma), p, [1e-3] * 4)
    rng = np.random.default_rng(8)
    with_record, without = (simulated_means(tree, p, sigma, 20_000, rng, present) for present in (True, False))
    for (points, survival), first, second in zip(laws, with_record, without):
        for nominal in (0.1, 0.01):
            place = np.argmax(survival <= nominal)
            ratio = np.mean(first[:, -1] > points[place]) / survival[place]
            error = 1 / math.sqrt(20_000 * nominal)
            assert 0.85 - 4 * error < ratio < 1 + 4 * error
            assert np.mean(second[:, -1] > points[place]) < np.mean(first[:, -1] > points[place])


def test_coarse_laws_of_a_subtree_lie_above_fine_ones(monkeypatch):
    """[A-12] Every rounding goes up, and what falls off a short grid counts as beyond its last point."""

    def at(law, points):
        """Survival at the next point of the grid, from below."""
        means, survival = law
        return survival[np.minimum(np.searchsorted(means, points), len(means) - 1)]

    tree, p = tails_tree.Branches(16, 1, 6.0), 0.1
    fine = tails_tree._subtree_laws(tree, p, [1e-3] * 4)
    short = tails_tree._laws_within(tree, p, [0.5] * 4, 0.7)
    for law, (means, survival) in zip(fine, short):
        assert survival[-1] >= at(law, means[-1:])[0] > 1e-9
    for points in (128, 1024):
        monkeypatch.setattr(tails_tree, "_POINTS", points)
        for law, (means, survival) in zip(fine, tails_tree._subtree_laws(tree, p, [1e-3] * 4)):
            assert np.all(survival >= at(law, means) - 1e-10)


def test_no_mean_of_a_subtree_is_rounded_down(monkeypatch):
    """[A-12] Without noise the laws can be listed: each mean lies at most one rounding below its place on the grid."""
    monkeypatch.setattr(tails_tree, "_noise_kernel", lambda deviation, step: (np.ones(1), 0, 0.0))
    monkeypatch.setattr(tails_tree, "_POINTS", 64)
    sigma, p = 5.0, 0.3
    laws = tails_tree._laws_within(tails_tree.Branches(8, 1, sigma), p, [0.5] * 3, 0.445)
    number, mean, chance = np.array([0, 1]), np.ones(2), np.array([1 - p, p])
    for points, survival in laws:
        mean = mean * np.exp((number - 0.5) / sigma**2)
        number = np.add.outer(number, number).ravel()
        mean, chance = np.add.outer(mean, mean).ravel() / 2, np.outer(chance, chance).ravel()
        for level in np.unique(mean):
            below = np.searchsorted(points, level * (1 - 1e-6)) - 1
            assert survival[below] >= chance[mean >= level].sum() - 1e-9


# ------------------------------------------------------------------ rows


@pytest.mark.parametrize("encoder", (matrices.optimal_counting(40), matrices.binary_tree(32)), ids=("ages", "tree"))
@pytest.mark.parametrize("tail_bound", ("published", "joint", "aggregated"))
def test_rows_say_what_they_spend(tail_bound, encoder):
    [found] = conditional.rows(encoder, 8.0, 0.05, 1e-6, tail_bound, slack=1e-9)
    assert sum(count for _, count in found.pairs) == encoder.rows
    assert found.delta_1 == 1e-6 and 0 < found.slack <= 1e-9 and found.tail_bound == tail_bound


def epsilon_of_rows(encoder, p, delta_1, tail_bound):
    [rows] = conditional.rows(encoder, 12.0, p, delta_1, tail_bound)
    return accounting.epsilon(rows.pairs, delta_1).upper


def test_groups_of_rows_are_close_to_single_rows(monkeypatch):
    """[M-Alg2] Beyond 2,048 rounds the published bound is taken over groups of ages: a little larger."""
    one = epsilon_of_rows(matrices.optimal_counting(64), 1 / 64, 5e-7, "published")
    monkeypatch.setattr(conditional, "_EXACT_ROWS", 10)
    two = epsilon_of_rows(matrices.optimal_counting(64), 1 / 64, 5e-7, "published")
    assert one <= two <= 1.02 * one


@pytest.mark.parametrize("tail_bound", ("joint", "aggregated"))
def test_wide_groups_of_ages_cost_more(tail_bound, monkeypatch):
    """[A-12] A group counts as so many columns like its youngest, with the bound of its worst."""
    monkeypatch.setattr(conditional, "_EXACT_ROWS", 10)
    one = epsilon_of_rows(matrices.optimal_counting(40), 1 / 20, 1e-6, tail_bound)
    make_groups_wide(monkeypatch)
    two = epsilon_of_rows(matrices.optimal_counting(40), 1 / 20, 1e-6, tail_bound)
    assert 1.001 * one <= two <= 2 * one


def test_a_group_of_ages_has_the_entry_of_its_youngest(monkeypatch):
    """[A-11] The mean sensitivity of the last row is above the sum over all ages, each with its own entry."""
    monkeypatch.setattr(conditional, "_EXACT_ROWS", 10)
    make_groups_wide(monkeypatch)
    encoder, p, sigma = matrices.optimal_counting(40), 1 / 20, 12.0
    ages = tails_toeplitz.Ages(encoder.coefficients, sigma)
    exponents = tails_toeplitz.joint_exponents(ages, p, 1e-6 / ages.pairs)
    chances = np.repeat(_tails.posterior(p, exponents), ages.sizes[: ages.old])
    least = p * ages.entries[0] + float(chances @ ages.entries[1 : ages.active + 1])
    rows = conditional.rows(encoder, sigma, p, 1e-6, "joint")[0]
    largest = max(float(mixture.probabilities @ mixture.sensitivities) for mixture, _ in rows.pairs)
    assert least <= largest <= 1.5 * least


def test_published_bounds_take_the_largest_products_of_each_column():
    """[M-Alg2] Columns that meet few others beside columns that meet many."""
    rng, p, tail = np.random.default_rng(12), 0.2, 1e-3
    products = rng.uniform(0.1, 1, (6, 12)) * (np.arange(12) < np.array([[1], [2], [4], [7], [10], [12]]))
    norms = products.max(axis=1)
    for row, norm, found in zip(products, norms, tails_dense.published_rule(p, tail)(products, norms)):
        met = np.sort(row[row > 0])[::-1]
        most = int(stats.binom.isf(tail / 2, len(met), p))
        assert found == pytest.approx(stats.norm.isf(tail / 2) * math.sqrt(norm) + met[:most].sum() - norm / 2)


def test_joint_bounds_of_all_pairs_count_every_column():
    """[A-11] The chord's bound on the moment is above the product of the columns' own moments."""
    rng, p, tail = np.random.default_rng(13), 0.2, 1e-3
    products = rng.uniform(0.0, 1, (6, 12)) ** 2
    norms = products.max(axis=1) * 1.2
    found = tails_dense.joint_rule(p, tail)(products, norms)
    for row, norm, bound in zip(products, norms, found):
        moment = lambda orders, row=row: np.log1p(p * np.expm1(np.multiply.outer(orders, row))).sum(axis=-1)
        [exact] = _tails.joint_exponents(np.array([norm]), np.array([row.max()]), tail, moment)
        assert exact <= bound <= 1.5 * exact


def test_a_large_encoder_that_is_not_monotone_is_dominated_by_its_majorant(monkeypatch):
    """[M-B] Larger entries dominate."""
    monkeypatch.setattr(conditional, "_EXACT_ROWS", 10)
    wavy = conditional.rows(matrices.toeplitz([1.0, 0.2, 0.5] + [0.1] * 17), 6.0, 0.1, 1e-4, "joint")[0]
    smooth = conditional.rows(matrices.toeplitz([1.0, 0.5, 0.5] + [0.1] * 17), 6.0, 0.1, 1e-4, "joint")[0]
    assert [m.sensitivities.tolist() for m, _ in wavy.pairs] == [m.sensitivities.tolist() for m, _ in smooth.pairs]


def test_sampling_and_separation_must_fit():
    with pytest.raises(ValueError, match="sampling_probability .*1 / min_separation"):
        conditional.rows(matrices.optimal_counting(8), 3.0, 0.6, 1e-3, "joint", min_separation=2)


@pytest.mark.parametrize("encoder", [matrices.identity(4), matrices.optimal_counting(4)])
def test_participations_may_be_rarer_than_the_slack(encoder):
    """The first row has nothing but its own participation, however improbable."""
    [found] = conditional.rows(encoder, 2.0, 1e-14, 1e-6, "joint", slack=1e-12)
    first, _ = found.pairs[0]
    assert found.slack <= 1e-12
    assert first.sensitivities == pytest.approx([0.0, 1.0], rel=1e-14, abs=0) and first.probabilities[1] == pytest.approx(1e-14, rel=1e-6)


def test_a_posterior_below_the_smallest_normal_float_is_rounded_up():
    """expit returns 0 for the true 2.3e-309."""
    exact = mpmath.mpf(4.597474422069297e-297) * mpmath.exp(-28.307444847068652)
    assert float(_tails.posterior(4.597474422069297e-297, -28.307444847068652)) >= exact > 0
