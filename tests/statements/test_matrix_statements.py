"""The statements of chapter 10: encoders, sensitivities, errors, each against a second route."""

import math

import numpy as np
import pytest
from scipy import linalg, optimize, stats

from dplib import gaussian, matrices, sensitivity, utility

RNG = np.random.default_rng


def triangular(gram):
    """The lower-triangular L with L^T L = gram."""
    return np.linalg.cholesky(gram[::-1, ::-1])[::-1, ::-1].T


def lower_bound(rounds):
    """[N-RMSEl] The least error at equal privacy, from the singular values of the workload."""
    return np.mean(0.5 / np.sin((2 * np.arange(1, rounds + 1) - 1) * np.pi / (4 * rounds + 2)))


@pytest.mark.parametrize("swapped", (False, True))
def test_fixed_inputs_are_one_gaussian(swapped):
    """[M-0] The two-dimensional hockey stick is that of N(mu, 1) against N(0, 1), mu = ||C g|| / sigma."""
    encoder, contribution, sigma = matrices.toeplitz([1.0, 0.6]), np.array([0.8, -1.0]), 1.3
    shift = encoder.multiply(contribution)
    grid, step = np.linspace(-10, 10, 1601, retstep=True)
    with_record = np.outer(stats.norm.pdf(grid, shift[0], sigma), stats.norm.pdf(grid, shift[1], sigma))
    without = np.outer(stats.norm.pdf(grid, 0, sigma), stats.norm.pdf(grid, 0, sigma))
    first, second = (without, with_record) if swapped else (with_record, without)
    for epsilon in (0.0, 0.5, 2.0):
        integral = np.maximum(first - math.exp(epsilon) * second, 0).sum() * step**2
        exact = gaussian.delta(np.linalg.norm(shift) / sigma, epsilon)
        assert abs(integral - exact) < 2e-5


def test_three_forms_of_the_release_are_functions_of_each_other():
    """[M-0] C x + z, x + C^-1 z and A x + A C^-1 z."""
    rng, n = RNG(1), 20
    encoder = matrices.dense(np.tril(rng.uniform(size=(n, n)), -1) + 2 * np.eye(n))
    x, z = rng.normal(size=(2, n, 3))
    released = encoder.multiply(x) + z
    assert np.allclose(encoder.solve(released), x + encoder.solve(z))
    decoder = np.tri(n) @ np.linalg.inv(encoder.entries())
    assert np.allclose(decoder @ released, np.cumsum(x + encoder.solve(z), axis=0))


def test_budget_on_average_is_not_enough():
    """[M-0a] A second shift that depends on the first output, with the same mean square."""
    y, step = np.linspace(-9, 11, 4001, retstep=True)

    def delta(second_shift):
        left = [gaussian.delta(second_shift(v), 4.0 - (v - 0.5)) for v in y]
        return np.sum(stats.norm.pdf(y, 1) * np.array(left)) * step

    assert math.isclose(delta(lambda v: math.sqrt(3)), gaussian.delta(2.0, 4.0), rel_tol=1e-5)
    assert delta(lambda v: math.sqrt(6) if v > 1 else 0.0) > 2 * gaussian.delta(2.0, 4.0)


def test_every_encoder_has_a_triangular_twin():
    """[M-0r] Same sensitivities, causal decoder, and the error of the best linear decoder."""
    rng = RNG(2)
    for _ in range(20):
        tall = rng.normal(size=(11, 7))
        twin = triangular(tall.T @ tall)
        g = rng.normal(size=(7, 2))
        assert np.allclose(twin, np.tril(twin)) and np.all(np.diag(twin) > 0)
        assert math.isclose(np.linalg.norm(twin @ g), np.linalg.norm(tall @ g), rel_tol=1e-9)
        causal, best = np.tri(7) @ np.linalg.inv(twin), np.tri(7) @ np.linalg.pinv(tall)
        assert np.allclose(causal, np.tril(causal)) and np.allclose(causal @ causal.T, best @ best.T)
        other = best + rng.normal(size=(7, 4)) @ linalg.null_space(tall.T).T
        assert np.allclose(other @ tall, np.tri(7))
        assert np.all(np.linalg.norm(other, axis=1) >= np.linalg.norm(causal, axis=1) - 1e-9)


def test_opposite_contributions_are_worse_for_a_negative_entry():
    """[M-0s] Part 1 without its hypothesis: the length is 1 instead of sqrt 5."""
    encoder = np.array([[1.0, 0.0], [-1.0, 1.0]])
    assert math.isclose(np.linalg.norm(encoder @ [1, 1]), 1)
    opposite = np.linalg.norm(encoder @ [1, -1])
    assert math.isclose(opposite, math.sqrt(5)) and math.isclose(
        opposite, math.sqrt(np.abs(encoder.T @ encoder).sum())
    )


def test_bands_make_separated_participations_orthogonal():
    """[M-0s] Part 2: with at most b bands and gaps of b the squares add up."""
    encoder = matrices.optimal_counting(60, bands=12)
    norms = encoder.column_norms()
    for rounds in ([0, 12, 24], [3, 15, 40, 59], [5, 30]):
        expected = math.sqrt(np.sum(norms[rounds] ** 2))
        assert math.isclose(sensitivity.pattern(encoder, rounds), expected, rel_tol=1e-12)
    assert sensitivity.pattern(encoder, [0, 11]) > math.sqrt(np.sum(norms[[0, 11]] ** 2)) * 1.001


def separated(rounds, separation):
    sets = [()]
    for t in range(rounds):
        sets += [s + (t,) for s in sets if not s or t - s[-1] >= separation]
    return sets[1:]


def test_falling_toeplitz_is_worst_from_the_first_round_on():
    """[M-0s] Part 3, by enumeration; with rising coefficients it can fail."""
    rng = RNG(4)
    for separation in (1, 2, 3):
        sets = separated(9, separation)
        for _ in range(20):
            encoder = matrices.toeplitz(np.sort(rng.exponential(size=9))[::-1])
            for most in (2, 3, 9):
                worst = max(sensitivity.pattern(encoder, s) for s in sets if len(s) <= most)
                first = list(range(0, 9, separation))[:most]
                assert math.isclose(sensitivity.pattern(encoder, first), worst, rel_tol=1e-12)
                value = sensitivity.min_separation(encoder, separation, most).upper
                assert math.isclose(value, worst, rel_tol=1e-12)
    rising = matrices.toeplitz([1.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0])
    assert sensitivity.pattern(rising, (0, 3)) > sensitivity.pattern(rising, (0, 2)) + 0.1


def test_error_of_prefix_sums():
    """[N-RMSE] Simulated, and against the two formulas that are wrong [E-16]."""
    encoder = matrices.optimal_counting(8)
    values = [3.422, 3.142, 2.384]
    workload, entries = np.tri(8), encoder.entries()
    right = np.linalg.norm(workload @ np.linalg.inv(entries))
    inverted = np.linalg.norm(np.linalg.inv(workload) @ entries)
    spectral = np.linalg.norm(workload @ np.linalg.inv(entries), 2)
    assert np.allclose([right, inverted, spectral], values, atol=5e-4)
    assert math.isclose(utility.rmse(encoder), right / math.sqrt(8), rel_tol=1e-12)
    errors = np.cumsum(encoder.solve(RNG(6).normal(size=(8, 100_000))), axis=0)
    squares = np.sum(errors**2, axis=0)
    standard_error = squares.std() / math.sqrt(100_000)
    assert abs(squares.mean() - right**2) < 4 * standard_error
    assert min(abs(squares.mean() - wrong**2) for wrong in (inverted, spectral)) > 20 * standard_error


def test_no_encoder_is_below_the_lower_bound():
    """[N-RMSEl] Random, optimised and structured encoders; its closed form; its asymptotic form."""
    rng = RNG(7)
    for n in (1, 2, 7, 40):
        assert math.isclose(
            lower_bound(n), np.linalg.svd(np.tri(n), compute_uv=False).sum() / n, rel_tol=1e-12
        )
    for n in (2, 5, 16):
        for _ in range(50):
            encoder = matrices.dense(np.tril(rng.exponential(size=(n, n))) + 0.05 * np.eye(n))
            assert sensitivity.single(encoder) * utility.rmse(encoder) >= lower_bound(n)
    for encoder in (matrices.binary_tree(64), matrices.optimal_counting(64), matrices.identity(64)):
        assert sensitivity.single(encoder) * utility.rmse(encoder) > lower_bound(64)
    asymptotic = (math.log(2**20) + np.euler_gamma + math.log(16 / math.pi)) / math.pi
    assert abs(lower_bound(2**20) - asymptotic) < 1e-5


def test_square_root_of_the_workload():
    """[M-E] C C = A; the bound on the column, at every round to 10^5; the distance to the lower bound."""
    entries = matrices.optimal_counting(100).entries()
    assert np.allclose(entries @ entries, np.tri(100), atol=1e-13)
    encoder = matrices.optimal_counting(100_000)
    squares = np.cumsum(encoder.coefficients**2)
    bound = (np.log(np.arange(1, 100_001)) + np.euler_gamma + 4 * math.log(2)) / math.pi
    assert np.all(squares < bound) and np.all(np.diff(bound - squares) < 0)
    k = np.arange(1, 100_000)
    assert np.all(np.log1p(1 / k) < np.pi * encoder.coefficients[1:] ** 2)
    assert math.isclose(sensitivity.single(encoder) ** 2, squares[-1], rel_tol=1e-9)
    for n in (10, 1000, 100_000):
        gap = math.sqrt(squares[n - 1] * squares[:n].mean()) - lower_bound(n)
        assert 0 < gap < (math.log(math.pi) - 0.5) / math.pi


def test_variances_of_a_tree():
    """[M-tree] Column norm, and the two estimates, by least squares on the nodes complete at each round."""
    tree = matrices.binary_tree(32)
    entries = tree.entries()
    assert np.allclose(tree.column_norms(), math.sqrt(6)) and tree.rows == 63
    causal = utility.deviations(tree, decoder="causal") ** 2
    added = utility.deviations(tree, decoder="dyadic") ** 2
    for t in range(1, 33):
        done = entries[tree.row_rounds < t][:, :t]
        total = np.ones(t)
        formula = sum(2**i / (2 ** (i + 1) - 1) for i in range(6) if t >> i & 1)
        assert math.isclose(total @ np.linalg.solve(done.T @ done, total), formula, rel_tol=1e-9)
        assert math.isclose(causal[t - 1], formula, rel_tol=1e-12)
        assert math.isclose(added[t - 1], t.bit_count(), rel_tol=1e-12)


def test_factor_of_a_tree_with_any_noise_is_not_negative():
    """[M-treeL] The noise of a node may be its own: random weights for all nodes, trees of up to 128 leaves."""
    rng = RNG(31)
    for level in range(8):
        C = matrices.binary_tree(2**level).entries()
        for spread in (0.3, 1.0, 3.0):
            weights = np.exp(spread * rng.normal(size=len(C)))
            gram = C.T @ (weights[:, None] * C)
            factor = np.linalg.cholesky(gram[::-1, ::-1])[::-1, ::-1].T
            assert np.min(factor) > -1e-13 * np.max(factor)  # rounding of the Cholesky factor


def test_factor_of_a_tree_is_not_negative():
    """[M-treeL] No negative entry; the recursion of the proof; the error that the tree reaches in hindsight."""

    def factor(level, weight):
        if level == 0:
            return np.array([[math.sqrt(1 + weight)]])
        half, inner = 2 ** (level - 1), 1 + weight
        total = np.sum(np.linalg.inv(matrices.binary_tree(half).gram()))
        below = factor(level - 1, inner)
        corner = inner * np.outer(np.linalg.solve(below.T, np.ones(half)), np.ones(half))
        above = factor(level - 1, inner / (1 + inner * total))
        return np.block([[above, np.zeros((half, half))], [corner, below]])

    for level in range(9):
        tree = matrices.binary_tree(2**level)
        twin = triangular(tree.gram())
        assert twin.min() >= 0
        if level < 6:
            assert np.allclose(twin, factor(level, 0.0))
        errors = np.linalg.norm(np.tri(2**level) @ np.linalg.inv(twin), axis=1)
        assert np.allclose(errors, utility.deviations(tree, decoder="pseudo-inverse"))


def test_inverse_of_buffers():
    """[N-BLT] Decays interlace, scales are negative, and the inverse falls exactly under the condition."""
    rng = RNG(8)
    for _ in range(30):
        decay = np.sort(rng.uniform(0.05, 0.95, size=3))
        if np.min(np.diff(decay)) < 0.01:
            continue
        scale = rng.exponential(0.3, size=3)
        equation = lambda v: 1 + np.sum(scale / (v - decay))  # noqa: B023, E731
        left = -1 - scale.sum()
        zeros = [
            optimize.brentq(equation, low + 1e-13, high - 1e-13)
            for low, high in zip([left, *decay], decay, strict=False)
        ]
        weights = -1 / np.sum(scale / (np.array(zeros)[:, None] - decay) ** 2, axis=1)
        encoder = matrices.buffered_linear_toeplitz(30, scale, decay)
        assert np.allclose(encoder.inverse_decay, zeros, atol=1e-9)
        assert np.allclose(encoder.inverse_scale, weights, atol=1e-8)
        inverse = np.linalg.inv(encoder.entries())[:, 0]
        powers = np.array(zeros) ** np.arange(29)[:, None]
        size = np.max(np.abs(inverse))
        assert np.allclose(inverse[1:], powers @ weights, atol=1e-8 * size)
        assert (zeros[0] > -1) == (np.sum(scale / (1 + decay)) < 1)
