"""What counting participations proves: norms, moments of one participation, less sampling; against brute force."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from domination_cases import coins, epsilons, modes_value, seeds
from domination_cases import setting as any_setting
from hypothesis import given
from hypothesis import strategies as st
from property_cases import examples, logs
from scipy import stats

from dplib import MatrixMechanism, accounting, gaussian, matrices, mixtures
from dplib.conditional.few import Few, _largest_sums, _tuple_sums
from dplib.lessons import truth

DIRECTIONS = ("remove", "add")


def random_encoder(rng, number):
    n = int(rng.integers(2, 6))
    if number % 4 == 0:
        return matrices.optimal_counting(n)
    if number % 4 == 1:
        return matrices.tree_restarts(4, int(rng.choice([2, 4])))
    if number % 4 == 2:  # not monotone
        return matrices.toeplitz(np.append(1.0, rng.uniform(0, 1.5, n - 1) * (rng.uniform(size=n - 1) < 0.7)))
    mask = rng.uniform(size=(n, n)) < 0.7
    return matrices.dense(np.tril(rng.uniform(0, 1, (n, n)) * mask, -1) + np.diag(rng.uniform(0.3, 2, n)))


def setting(number):
    rng = np.random.default_rng(4000 + number)
    encoder = random_encoder(rng, number)
    sigma = float(encoder.column_norms().max()) * 10 ** rng.uniform(-0.3, 1)
    return encoder, sigma, 10 ** rng.uniform(-4, -0.1), 10 ** rng.uniform(-2, 0.7)


@pytest.mark.parametrize("number", range(24))
def test_counting_participations_bounds_the_truth(number):
    """[M-few] The mixture of norms, both directions, against all modes."""
    encoder, sigma, p, epsilon = setting(number)
    few, exact = Few(encoder, sigma, p, 1), truth.all_modes(encoder, sigma, p, samples=1024)
    for direction in DIRECTIONS:
        found = exact.delta(epsilon, direction)
        least = found.value - 5 * found.standard_error
        assert few.counts.mixture.hockey_stick(epsilon, direction) >= least * (1 - 1e-9)
        assert few.delta(epsilon, direction)[0] >= least * (1 - 1e-9)


@pytest.mark.parametrize("number", range(24))
def test_norms_bound_every_set_of_columns(number):
    """[M-few] r_k against all subsets, with and without min-separation."""
    encoder, sigma, p, _ = setting(number)
    for b in (1, 2):
        few, C = Few(encoder, sigma, 0.1 * p, b), encoder.entries()
        for group in range(min(b, encoder.columns)):
            kept = C[:, group::b]
            for k in range(1, kept.shape[1] + 1):
                largest = max(np.linalg.norm(kept[:, list(s)].sum(axis=1)) for s in combinations(range(kept.shape[1]), k))
                assert few.counts.norms(np.array([float(k)]))[0] >= largest * (1 - 1e-12)


def test_norms_are_close_and_go_on_beyond_the_largest_count():
    """[M-few] For the first columns of a Toeplitz encoder nearly exact; beyond 64 participations the norm of a sum of parts."""
    encoder = matrices.optimal_counting(200)
    few, C = Few(encoder, 1.0, 0.1, 1), encoder.entries()
    for k in (1, 2, 5, 64):
        assert few.counts.norms(np.array([float(k)]))[0] == pytest.approx(np.linalg.norm(C[:, :k].sum(axis=1)), rel=0.03)
    for k in (65, 128, 200):
        assert few.counts.norms(np.array([float(k)]))[0] >= np.linalg.norm(C[:, :k].sum(axis=1))
    sums = _largest_sums(C.T @ C, 5)
    assert np.all(sums[1:] >= [np.linalg.norm(C[:, :k].sum(axis=1)) ** 2 * (1 - 1e-12) for k in range(1, 6)])


@pytest.mark.parametrize("number", range(24))
def test_one_participation_by_moments_bounds_the_truth(number):
    """[M-once] At every sampling probability, remove and so add."""
    encoder, sigma, p, epsilon = setting(number)
    if number % 2:
        p = min(p, 0.03)
    exact = truth.all_modes(encoder, sigma, p, samples=1024).delta(epsilon, "remove")
    assert Few(encoder, sigma, p, 1).once.delta(epsilon) >= (exact.value - 5 * exact.standard_error) * (1 - 1e-9)


def test_moments_are_sums_over_tuples():
    """[M-once] E_Q of the k-th power of a sum of likelihood ratios, by listing all k-tuples."""
    rng = np.random.default_rng(5)
    C = rng.uniform(0, 1, (4, 3))
    gram = C.T @ C
    found = dict(_tuple_sums(gram))
    for k in (2, 3, 4):
        listed = math.fsum(
            math.exp(sum(gram[a, b] for a, b in combinations(rounds, 2))) for rounds in product(range(3), repeat=k)
        )
        assert found[k] == pytest.approx(math.log(listed), abs=1e-9)
    # By sampling, k = 2: E (sum_j L_j)^2.
    y = rng.standard_normal((400_000, 4))
    ratios = np.exp(y @ C - np.diag(gram) / 2).sum(axis=1)
    assert np.mean(ratios**2) == pytest.approx(math.exp(found[2]), rel=0.03)
    assert list(_tuple_sums(np.full((2, 2), 1e4))) == []


@pytest.mark.parametrize(
    "encoder, p, exact",
    [
        (matrices.binary_tree(8), 1e-4, 0.217),
        (matrices.binary_tree(8), 1e-5, 0.0054),
        (matrices.binary_tree(4), 1e-5, 0.001),
        (matrices.optimal_counting(16), 3e-5, 0.0055),
    ],
    ids=("tree 8, 1e-4", "tree 8, 1e-5", "tree 4", "counting 16"),
)
def test_rare_sampling_with_little_noise(encoder, p, exact):
    """[M-few, M-once] Within five times the truth (sampled by other code), at sigma = 1 and delta = 1e-6."""
    found = MatrixMechanism(encoder, 1.0, p).epsilon(1e-6, "remove").upper
    assert exact < found < 5 * exact


@pytest.mark.parametrize("number", [*range(6), *(pytest.param(n, marks=pytest.mark.trust) for n in range(6, 12))])
def test_never_above_the_simple_bound(number):
    """[M-few] P[N > m] + P[N >= 1] delta of one Gaussian of norm r_m, for every m; the least of all is reported."""
    encoder, sigma, p, epsilon = setting(number)
    found = MatrixMechanism(encoder, sigma, p).delta(epsilon).upper
    C, n = encoder.entries(), encoder.columns
    some = 1 - (1 - p) ** n
    for m in range(n + 1):
        # Any bound on the norms will do for the page's bound: m times the longest column.
        norm = m * float(np.linalg.norm(C, axis=0).max())
        rest = some * gaussian.delta(norm / sigma, math.log1p(math.expm1(epsilon) / some)) if m else 0.0
        assert found <= (stats.binom.sf(m, n, p) + rest) * (1 + 1e-6)


@examples(25)
@given(st.integers(2, 3), logs(1e-3, 0.9), st.floats(0.05, 0.95), logs(0.4, 6), epsilons, st.sampled_from(DIRECTIONS), seeds)
def test_less_sampling_is_never_worse(rounds, more, share, sigma, epsilon, direction, seed):
    """[M-p] The pair of equal inputs at two rates, by quadrature, whatever the order."""
    _, encoder, _, _ = any_setting(seed, rounds, sigma)
    values = []
    for q in (share * more, more):
        chances = coins(rounds, q)
        modes = np.array(list(chances)) @ encoder.T / sigma
        values.append(modes_value(modes, list(chances.values()), epsilon, direction))
    assert values[0].lower <= values[1].upper


def test_a_longer_separation_is_counted_in_its_groups():
    """Independent columns of norms 1 and 2, b = 2: participations of the second group, as in Poisson sampling."""
    few = Few(matrices.dense(np.diag([1.0, 2.0, 1.0, 2.0])), 2.0, 0.1, 2)
    assert few.counts.columns == 2 and few.counts.p == 0.2
    assert few.counts.norms(np.array([0.0, 1.0, 2.0])) == pytest.approx([0.0, 2.0, math.sqrt(8.0)], rel=1e-9)
    exact = accounting.delta([(mixtures.binomial(1, 0.2, 1.0), 2)], 0.5, "remove").lower
    assert exact <= few.delta(0.5, "remove")[0] <= 3 * exact


def test_the_candidate_by_itself():
    """tail_bound="few" is what "best" has beside the tail bounds; the two questions belong together."""
    run = MatrixMechanism(matrices.binary_tree(8), 1.0, 1e-5, tail_bound="few")
    best = MatrixMechanism(matrices.binary_tree(8), 1.0, 1e-5)
    epsilon = run.epsilon(1e-6).upper
    assert best.epsilon(1e-6).upper == epsilon
    assert run.delta(epsilon).upper == pytest.approx(1e-6, rel=1e-6)
    assert best.with_best_tail(1e-6) == run
