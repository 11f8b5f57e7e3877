"""Line estimates of balls in bins [A-17]: against references, quadrature, closed forms, plain sampling; honest errors."""

import json
import math
import pickle
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from dplib import gaussian, matrices
from dplib._base import random_blocks
from dplib.balls_in_bins import gram as _bins
from dplib.balls_in_bins import importance_sampling, line_integral, proposal_lines, proposal_remove, saddles
from dplib.balls_in_bins.importance_sampling import (
    Estimator,
    block_task,
    estimate,
    run,
    solve_epsilon,
    solve_scale,
)

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "bnb.json").read_text())["values"]
SIDES = ("remove", "add")
RNG = np.random.default_rng(20240607)


def coefficients(kind, n):
    root = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, n)]))
    lags = np.arange(n)
    if kind["kind"] == "identity":
        return (lags == 0).astype(float)
    if kind["kind"] == "geometric":
        return kind["lam"] ** lags.astype(float)
    if kind["kind"] == "blt":
        tail = sum(scale * decay ** (lags[1:] - 1.0) for scale, decay in zip(kind["omega"], kind["lam"]))
        return np.append(1.0, tail)
    return np.where(lags < kind.get("h", n), root, 0.0)


@cache
def reference_gram(i):
    row = REFERENCE[i]
    encoder = matrices.toeplitz(coefficients(row["C"], row["n"]))
    return _bins.gram(encoder, row["b"], row["E"]) / row["sigma"] ** 2


def quadrature(gram, epsilon, side):
    """Delta for two modes: an even grid across the sum of the modes, the exact integral along it."""
    (a, c), (_, d) = gram
    sum_norm = math.sqrt(a + 2 * c + d)
    first, second = (a + c) / sum_norm, (c + d) / sum_norm  # parts along the sum of the modes
    across = math.sqrt(max(a - first**2, 0.0))
    z = np.linspace(-12, 12, 2001)
    weights = 0.012 * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    rest = np.stack([across * z - a / 2, -across * z - d / 2], axis=1)
    beta = np.broadcast_to([first, second], rest.shape)
    level = math.log(2) + (epsilon if side == "remove" else -epsilon)
    t, *_ = line_integral.crossing(rest, beta, level, np.inf)
    sign = 1 if side == "remove" else -1
    from scipy.special import ndtr

    scale = 1.0 if side == "remove" else math.exp(epsilon)
    threshold = math.exp(epsilon) if side == "remove" else 1.0
    terms = np.mean(np.exp(rest + beta**2 / 2) * ndtr(sign * (beta - t[:, None])), axis=1)
    return float(np.sum(weights * sign * (scale * terms - threshold * ndtr(-sign * t))))


# --- against other routes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("i", (0, 1, 3, 5, 8, 9, 11, 15, 18, 19))
def test_reference_values(i):
    """[A-17] Both directions of stored values of every kind, within 4 combined standard errors."""
    row = REFERENCE[i]
    for side in SIDES:
        found = estimate(reference_gram(i), row["eps"], side, seed=i, samples=256)
        known, error = row[f"delta_{side}"], row[f"se_{side}"]
        ratio = math.exp(found.log_value) / known
        if side == "remove" or row["add_ok"]:
            assert abs(ratio - 1) < 4 * math.hypot(found.relative_error * ratio, error / known)
        else:
            assert 0.2 < ratio < 5  # the reference itself is that uncertain


@pytest.mark.parametrize("gram", [np.eye(2), [[2.0, 0.5], [0.5, 0.3]], [[8.0, 6.0], [6.0, 5.0]]])
@pytest.mark.parametrize("side", SIDES)
def test_two_modes_against_quadrature(gram, side):
    """[A-17] Delta and both derivatives, at epsilons from 0 to 4."""
    gram = np.array(gram)
    for epsilon in (0.0, 0.5, 4.0):
        found = estimate(gram, epsilon, side, samples=8192)
        exact = quadrature(gram, epsilon, side)
        assert found.log_value == pytest.approx(math.log(exact), abs=max(5 * found.relative_error, 1e-4))
        h = 1e-3
        by_sigma = math.log(quadrature(gram * math.exp(-2 * h), epsilon, side) / quadrature(gram * math.exp(2 * h), epsilon, side)) / (2 * h)
        assert found.d_log_sigma == pytest.approx(by_sigma, rel=0.02)
        by_epsilon = math.log(quadrature(gram, epsilon + h, side) / quadrature(gram, epsilon + h * 2, side)) / -h
        assert found.d_epsilon == pytest.approx(by_epsilon, rel=0.03)


def test_known_values_of_two_orthogonal_modes():
    """[N-3.2] (iv) b = 2, E = 1, C = I, sigma = 1, epsilon = 0.5."""
    assert quadrature(np.eye(2), 0.5, "remove") == pytest.approx(0.149178, abs=1e-6)
    assert quadrature(np.eye(2), 0.5, "add") == pytest.approx(0.142687, abs=1e-6)


@pytest.mark.parametrize("side", SIDES)
def test_equal_modes_are_one_gaussian(side):
    """[N-3.2] (i) Only the places on the line are random: a thousandth of an error, down to e^-4000."""
    for b, epsilon in ((1, 1.0), (4, 0.0), (4, 2.0), (16, 64.0)):
        found = estimate(np.full((b, b), 0.5), epsilon, side, samples=1024)
        exact = gaussian.log_delta(math.sqrt(0.5), epsilon)
        assert found.relative_error < 1e-3
        assert found.log_value == pytest.approx(exact, abs=5 * found.relative_error)


@pytest.mark.parametrize("side", SIDES)
def test_against_plain_sampling(side):
    """[N-MC] The published estimator, where delta is large enough for it."""
    gram = _bins.gram(matrices.optimal_counting(48, bands=4), 8, 6) / 9
    u = RNG.normal(size=(200_000, 8)) @ np.linalg.cholesky(gram).T
    w = np.mean(np.exp(u - np.diag(gram) / 2), axis=1)
    draws = np.maximum(w - math.e, 0) if side == "remove" else np.maximum(1 - math.e * w, 0)
    found = estimate(gram, 1.0, side, relative_error=0.005)
    error = np.std(draws) / math.sqrt(len(draws))
    assert math.exp(found.log_value) == pytest.approx(np.mean(draws), abs=4 * math.hypot(error, 0.005 * np.mean(draws)))


def test_gradient_is_the_derivative_by_the_gram_matrix():
    """[M-K] Against differences of quadratures; and <gram, gradient> is the derivative by log sigma."""
    gram = np.array([[1.5, 0.6], [0.6, 0.9]])
    for side in SIDES:
        estimator = Estimator(gram, 0.7, side)
        slope = estimator.gradient(random_blocks.generator(0, (9,), 0), 16384) * math.exp(estimator.log_scale)
        for i, j in ((0, 0), (0, 1), (1, 1)):
            step = np.zeros((2, 2))
            step[i, j] = step[j, i] = 1e-4
            exact = (quadrature(gram + step, 0.7, side) - quadrature(gram - step, 0.7, side)) / 2e-4
            assert slope[i, j] * (2 if i != j else 1) == pytest.approx(exact, rel=0.03)
        assert np.all(slope >= 0)
        by_sigma = run(estimator, samples=8192).d_log_sigma * math.exp(run(estimator, samples=8192).log_value)
        assert -2 * np.sum(gram * slope) == pytest.approx(by_sigma, rel=0.02)


# --- errors that are honest --------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "epsilon", "side", "repeats"), [(3.0, 3.0, "remove", 200), (1.0, 1.0, "add", 100)])
def test_standard_errors_cover(scale, epsilon, side, repeats):
    """Repetitions at a setting with a known value: the deviations follow Student's law."""
    gram = scale * np.array([[1.0, 0.3], [0.3, 1.0]])
    exact = math.log(quadrature(gram, epsilon, side))
    estimator = Estimator(gram, epsilon, side)
    scores = []
    for repeat in range(repeats):
        blocks = np.array([estimator.block(random_blocks.generator(repeat, (8,), i), 128)[0] for i in range(8)])
        error = np.std(blocks, ddof=1) / math.sqrt(8)
        scores.append((np.mean(blocks) - math.exp(exact - estimator.log_scale)) / error)
    scores = np.array(scores)
    assert abs(np.mean(scores)) < 0.3 and 0.95 < np.std(scores) < 1.45  # Student, 7 degrees: 1.18
    assert np.mean(np.abs(scores) > 2.36) < 0.11 and np.max(np.abs(scores)) < 8


def test_the_stated_error_of_an_estimate_is_that_of_repetitions():
    """Other seeds scatter by what each of them states."""
    gram = 3.0 * np.array([[1.0, 0.3], [0.3, 1.0]])
    exact = math.log(quadrature(gram, 3.0, "remove"))
    found = [estimate(gram, 3.0, "remove", seed=seed, samples=1024) for seed in range(40)]
    scores = [(one.log_value - exact) / one.relative_error for one in found]
    assert 0.7 < np.sqrt(np.mean(np.square(scores))) < 1.4


def test_far_fewer_samples_than_plain_sampling():
    """64 bands at delta = 1e-5, 1e-8, 1e-10; relative variances of plain samples 1.1e4, 6.6e6, 5.2e8."""
    for sigma, plain, wanted in ((11.9, 1.1e4, 4e4), (16.2, 6.6e6, 1e7), (18.62, 5.2e8, 1e9)):
        gram = _bins.gram(matrices.optimal_counting(2048, bands=64), 128, 16) / sigma**2
        found = estimate(gram, 1.0, "remove", samples=4096)
        assert plain / (found.relative_error**2 * found.samples) > wanted


def test_one_per_cent_takes_few_lines_where_several_bins_matter_together():
    for i in (5, 9):  # 64 bands at epsilon = 4, 16 bands at 1
        found = estimate(reference_gram(i), REFERENCE[i]["eps"], "remove")
        assert found.relative_error <= 0.01 and found.samples <= 2**16


# --- where the integrand is largest ------------------------------------------------------------------------


def test_saddles_are_the_nearest_points_of_the_region():
    """[A-17] x = sum of the modes in proportion to the shares of the bins in w there: stationary on w = e^epsilon."""
    gram = _bins.gram(matrices.optimal_counting(128, bands=8), 128, 1) / 9
    level = 1.0 + math.log(128)
    profile = saddles.settled(gram, level, 128)
    rest = np.broadcast_to(-gram.diagonal() / 2, profile.shape)
    distance, shares, _, _ = line_integral.crossing(rest, profile @ gram, level, np.inf)
    inner = slice(20, 108)
    assert np.abs(shares - profile)[inner].max() < 2e-3
    # From single bins the same points are found as from clusters.
    assert np.abs(profile[:128] - profile[128:])[inner].max() < 0.01
    combination = profile[inner] * distance[inner, None]
    axes, stretches = saddles.axes(gram, combination, np.random.default_rng(0))
    for point, directions in zip(combination[::20], axes[::20]):
        assert directions @ gram @ directions.T == pytest.approx(np.eye(len(directions)), abs=1e-6)
        assert np.abs(directions @ gram @ point).max() < 1e-6
    # The curvatures against an eigenvalue problem of full size; the first one, of moving the cluster, counts as 0.75.
    p, tilt = profile[64], distance[64]
    root = np.linalg.cholesky(gram + 1e-12 * np.eye(128))
    hessian = root.T @ (np.diag(p) - np.outer(p, p)) @ root
    normal = root.T @ p / np.linalg.norm(root.T @ p)
    across = np.eye(128) - np.outer(normal, normal)
    curvature = np.linalg.eigvalsh(across @ hessian @ across)[::-1] * tilt
    assert curvature[0] == pytest.approx(1.0, abs=0.05)
    assert 1 - stretches[44, :6] ** -2.0 == pytest.approx(np.clip(curvature[:6], 0, 0.75), abs=0.03)


@pytest.mark.parametrize(("sigma", "known"), [(4.0, -95.086), (3.0, -54.588)])
def test_far_tails_of_few_bands(sigma, known):
    """[A-17] 8 bands, one epoch, delta = 5e-42 and 2e-24: some ten thousand lines; from other seeds and more lines."""
    gram = _bins.gram(matrices.optimal_counting(128, bands=8), 128, 1) / sigma**2
    found = estimate(gram, 1.0, "remove", samples=4096)
    assert found.log_value == pytest.approx(known, abs=4 * found.relative_error + 0.01)
    assert found.relative_error < 0.06


def test_saddles_take_part_only_where_memory_allows(monkeypatch):
    gram = reference_gram(8)
    with_them = Estimator(gram, 2.0, "remove")
    monkeypatch.setattr(proposal_remove, "_MANY", 1)
    without = Estimator(gram, 2.0, "remove")
    assert proposal_remove.SADDLES in with_them.proposal.kinds
    assert proposal_remove.SADDLES not in without.proposal.kinds
    values = [run(each, samples=4096) for each in (with_them, without)]
    assert values[0].log_value == pytest.approx(
        values[1].log_value, abs=4 * math.hypot(values[0].relative_error, values[1].relative_error)
    )


def test_tuples_that_look_ahead_have_the_same_mean_weight_and_less_spread():
    """[A-17] E_Q w^12 of 16 bands by both ways to draw, and for 3 modes of two bins from its formula."""
    gram = _bins.gram(matrices.optimal_counting(2048, bands=16), 128, 16) / 6.66**2
    proposal = proposal_remove.RemoveProposal(gram, 1.0, np.random.default_rng(0))
    assert proposal.ahead is not None and 12 in proposal.kinds
    means, spreads = [], []
    for ahead in (None, proposal.ahead):
        first = np.random.default_rng(2).random(4096)
        logs = proposal_lines.draw_tuples(gram, np.random.default_rng(1), 10, first, ahead)[1][-1]
        weights = np.exp(logs)
        means.append(weights.mean())
        spreads.append(weights.std() / weights.mean())
    assert means[0] == pytest.approx(means[1], rel=4 * math.hypot(*spreads) / math.sqrt(4096))
    assert spreads[1] < spreads[0] / 2
    small = np.array([[0.6, 0.2], [0.2, 0.9]])
    first = np.random.default_rng(2).random(8192)
    logs = proposal_lines.draw_tuples(small, np.random.default_rng(1), 3, first, np.exp(small))[1][-1]
    exact = np.mean([np.exp(small[i, j] + small[i, k] + small[j, k]) for i, j, k in np.ndindex(2, 2, 2)])
    error = np.std(np.exp(logs)) / math.sqrt(8192)
    assert np.mean(np.exp(logs)) == pytest.approx(exact, abs=4 * error + 1e-12) and error < 0.01


def test_few_bands_need_few_lines():
    """[A-17] 16 bands at delta = 1e-5, 12,300 plain samples to a relative variance of 1: four repetitions."""
    gram = _bins.gram(matrices.optimal_counting(2048, bands=16), 128, 16) / 6.66**2
    scatter = []
    for seed in range(4):
        estimator = Estimator(gram, 1.0, "remove", seed)
        blocks = np.array([estimator.block(np.random.default_rng([seed, i]), 64)[0] for i in range(64)])
        scatter.append(64 * blocks.var(ddof=1) / blocks.mean() ** 2)
    assert np.mean(scatter) < 12_300 / 4e4


def test_lines_are_limited(monkeypatch):
    """Where the lines do not suffice for the error that is asked for, the result has the error that it has."""
    monkeypatch.setattr(importance_sampling, "_MOST", 2**11)
    estimator = Estimator(reference_gram(9), REFERENCE[9]["eps"], "remove")
    found = run(estimator, relative_error=1e-5)
    assert found.samples <= importance_sampling._MOST and found.relative_error > 1e-5


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_add_near_one_has_an_honest_error(epsilon):
    """[N-3.2] 1 - delta = E_Q min(1, e^epsilon w), from draws of (P + Q) / 2, for which that is bounded."""
    bins, square, count = 16, 40.0, 200_000
    rng = np.random.default_rng(1)
    y = rng.standard_normal((count, bins)) * math.sqrt(square)
    half = rng.random(count) < 0.5
    y[np.nonzero(half)[0], rng.integers(bins, size=half.sum())] += square
    log_w = np.log(np.mean(np.exp(y - square / 2), axis=1))
    missing = np.exp(np.minimum(0.0, epsilon + log_w) - np.logaddexp(0, log_w) + math.log(2))
    for seed in range(6):
        found = estimate(square * np.eye(bins), epsilon, "add", seed=seed)
        error = math.hypot(found.relative_error, missing.std() / math.sqrt(count))
        assert abs(-math.expm1(found.log_value) - missing.mean()) < 4 * error
        assert found.relative_error < 0.01


def test_small_deltas_keep_their_magnitude():
    """Add for C = I: far below the smallest remove value, between the half-space bound and 1 / 1e4 of it."""
    gram = np.eye(64) * 1.5
    found = estimate(gram, 2.5, "add", samples=4096)
    distance = (2.5 - 0.75) / math.sqrt(1.5 / 64)
    assert found.relative_error < 0.3
    assert found.log_value < gaussian_tail(distance)
    assert found.log_value > 3 * gaussian_tail(distance)


def gaussian_tail(x):
    from scipy.special import log_ndtr

    return float(log_ndtr(-x))


# --- extremes ----------------------------------------------------------------------------------------------

BLOCKS = np.kron(np.eye(3), [[2.0, 1.0], [1.0, 2.0]])
GRAMS = {
    "blocks": BLOCKS,
    "one large, one tiny": np.diag([0.01, 1.0, 30.0]),
    "nearly equal": np.full((4, 4), 0.5) + 1e-13 * np.eye(4),
    "large": BLOCKS * 1e4,
    "small": BLOCKS * 3e-4,
    "uneven": _bins.gram(matrices.dense(np.tril(RNG.random((24, 24)) ** 8 + 1e-6)), 6, 4),
}


@pytest.mark.parametrize("gram", GRAMS.values(), ids=GRAMS.keys())
@pytest.mark.parametrize("side", SIDES)
def test_extremes_stay_finite_and_below_the_largest_mode(gram, side):
    """[N-3.2] (iii) Convexity: delta is at most that of the largest mode alone, at every epsilon."""
    for epsilon in (0.0, 1.0, 16.0):
        limit = gaussian.log_delta(math.sqrt(np.max(gram)), epsilon)
        if limit < -1e4:
            continue
        found = estimate(gram, epsilon, side, samples=512)
        assert np.isfinite([found.log_value, found.relative_error, found.d_log_sigma, found.d_epsilon]).all()
        assert found.log_value <= limit + 5 * found.relative_error + 1e-3
        assert found.d_log_sigma <= 0 and found.d_epsilon <= 0


def test_directions_agree_at_epsilon_zero():
    for gram in GRAMS.values():
        remove, add = (estimate(gram, 0.0, side, samples=4096) for side in SIDES)
        assert remove.log_value == pytest.approx(add.log_value, abs=5 * (remove.relative_error + add.relative_error) + 1e-6)


def test_many_batches():
    gram = _bins.gram(matrices.optimal_counting(512), 256, 2) / 4
    found = estimate(gram, 2.0, "remove", samples=256)
    assert found.relative_error < 0.2 and -100 < found.log_value < 0


# --- inversion ---------------------------------------------------------------------------------------------


def test_sigma_and_epsilon_come_back():
    """Reference rows: sigma to 0.1% and the epsilon that belongs to it."""
    for i in (4,):
        row, gram = REFERENCE[i], reference_gram(i) * REFERENCE[i]["sigma"] ** 2
        sigma, error = solve_scale(gram, row["eps"], row["delta_remove"], "remove")
        assert error < 1e-3 * sigma and sigma == pytest.approx(row["sigma"], abs=5 * error)
        epsilon, error = solve_epsilon(gram / row["sigma"] ** 2, row["delta_remove"], "remove", relative_error=0.02)
        assert epsilon == pytest.approx(row["eps"], abs=5 * error)


def test_epsilon_is_zero_where_delta_is_reached_at_zero():
    assert solve_epsilon(np.eye(3) * 1e-4, 0.1, "remove") == (0.0, 0.0)


@pytest.mark.parametrize("side", SIDES)
def test_inversion_of_a_gaussian(side):
    gram = np.full((2, 2), 1.0)
    for epsilon, delta in ((0.0, 0.3), (1.0, 1e-6), (20.0, 1e-12), (1.0, 0.5)):
        sigma, error = solve_scale(gram, epsilon, delta, side)
        assert sigma == pytest.approx(1 / gaussian.calibrate(epsilon, delta), rel=1e-3)
        back, error = solve_epsilon(gram / sigma**2, delta, side)
        assert back == pytest.approx(epsilon, abs=2e-3 * max(1, epsilon))


# --- streams, and bad input --------------------------------------------------------------------------------


def test_results_depend_on_the_seed_alone():
    gram = np.array([[1.0, 0.3], [0.3, 1.0]])
    assert estimate(gram, 1.0, "remove", seed=3) == estimate(gram, 1.0, "remove", seed=3)
    assert estimate(gram, 1.0, "remove", seed=3) != estimate(gram, 1.0, "remove", seed=4)
    estimator = Estimator(gram, 1.0, "remove")
    task = pickle.loads(pickle.dumps(partial(block_task, estimator, 64)))
    first, second = (call(random_blocks.generator(0, (3,), 5), 5) for call in (task, partial(block_task, estimator, 64)))
    assert np.array_equal(first, second)


def test_more_lines_until_the_error_is_reached():
    """A pilot that promises too much: the run goes on until the measured error is small enough."""
    estimator = Estimator(reference_gram(8), 2.0, "remove")
    estimator.relative_variance = 1e-9
    found = run(estimator, relative_error=0.01)
    assert found.relative_error <= 0.01 and found.samples > 32 * 32


def test_a_delta_that_is_too_small_is_refused():
    with pytest.raises(ValueError, match="epsilon must be smaller for this noise"):
        estimate(np.eye(2) * 1e-8, 16.0, "add")


def test_lines_cross_once():
    """[A-17] Roots to 1e-8 in the loss; terms that do not grow; what lies beyond is exact at small distances."""
    rest, beta = RNG.normal(size=(50, 6)), RNG.random((50, 6))
    t, shares, slope, excess = line_integral.crossing(rest, beta, 2.0, RNG.normal(size=50) * 5)
    sums = np.log(np.sum(np.exp(rest + beta * t[:, None]), axis=1))
    assert np.all(np.abs(sums - 2.0) < 2e-8) and np.all(excess < 2e-8)
    assert np.sum(shares, axis=1) == pytest.approx(1) and slope == pytest.approx(np.sum(shares * beta, axis=1))
    tiny = line_integral.loss_beyond(beta, shares, np.zeros(50), np.full(50, 1e-12))
    assert tiny == pytest.approx(1e-12 * slope, rel=1e-10, abs=0)
    flat = np.array([[0.0, 1.0]])
    t, _, _, excess = line_integral.crossing(np.array([[3.0, -5.0]]), flat, 2.0, np.zeros(1), line_integral.LOWEST)
    assert t[0] < -50 and excess[0] == pytest.approx(1.0)
    far = line_integral.loss_beyond(np.array([[40.0, 1.0]]), np.array([[1e-30, 1.0]]), np.zeros(1), np.ones(1) * 3)
    assert far[0] == pytest.approx(np.log(1e-30 * np.exp(120.0) + np.exp(3.0)))


def test_places_beyond_the_crossing_integrate_the_normal_law():
    """Sums over the shifted places are unbiased: averaged over the shift they give the tail mass, everywhere."""
    from scipy.special import ndtr

    shifts = (np.arange(2000) + 0.5) / 2000
    for crossed in (-6.0, -1.0, 0.0, 2.0, 5.0):
        low = np.full(2000, crossed)
        distances, logs = line_integral.nodes(shifts, low, np.zeros(2000), low - 0.5, np.full(2000, 0.5))
        assert np.all(distances >= 0)
        assert np.mean(np.sum(np.exp(logs), axis=0)) == pytest.approx(ndtr(-crossed), rel=1e-3)


def test_blocks_are_what_the_estimate_averages():
    assert importance_sampling.BLOCKS == 32
    gram = np.array([[1.0, 0.3], [0.3, 1.0]])
    assert run(Estimator(gram, 1.0, "add"), samples=100).samples == 128
