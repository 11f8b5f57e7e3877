"""Statements of chapters 3 and 6 (subsampling, last iterate), each checked by a route of its own."""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

import dplib
from dplib import accounting, batching, gaussian, mixtures

DIRECTIONS = ("remove", "add")
X = np.linspace(-12.0, 14.0, 20001)
STEP = X[1] - X[0]


def density(places, weights, sigma=1.0):
    return sum(w * stats.norm.pdf(X, m, sigma) for m, w in zip(places, weights))


def divergence(first, second, epsilon):
    return np.maximum(first - math.exp(epsilon) * second, 0).sum() * STEP


def batch_sums(gradients, size):
    return [sum(batch) for batch in itertools.combinations(gradients, size)]


# --------------------------------------------------------------------- adjacency


def test_zeroed_and_absent_agree_under_poisson_sampling():
    """[C-4] The law of the sum is the same with the record zeroed as with it absent."""

    def law(gradients, q):
        found = {}
        for coins in itertools.product((0, 1), repeat=len(gradients)):
            total = round(float(np.dot(coins, gradients)), 12)
            probability = q ** sum(coins) * (1 - q) ** (len(coins) - sum(coins))
            found[total] = found.get(total, 0.0) + probability
        return found

    absent, zeroed = law([-1, 0.5, 0.3], 0.3), law([-1, 0.5, 0.3, 0], 0.3)
    assert absent.keys() == zeroed.keys()
    assert all(math.isclose(absent[t], zeroed[t]) for t in absent)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_add_or_remove_doubles_the_sensitivity_of_a_fixed_batch(epsilon):
    """[C-4] By enumeration of all batches: shift 2 with probability B / (n + 1)."""
    uniform = lambda sums: density(sums, [1 / len(sums)] * len(sums))
    present, absent = uniform(batch_sums([-1] * 5 + [1], 2)), uniform(batch_sums([-1] * 5, 2))
    pair = mixtures.hypergeometric(2, 5, 1, 1.0)
    for direction, worlds in (("remove", (present, absent)), ("add", (absent, present))):
        expected = pair.hockey_stick(epsilon, direction)
        assert divergence(*worlds, epsilon) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_zero_out_does_not_save_a_fixed_batch(epsilon):
    """[C-4] Zero-out exceeds the pair with shift 1 by far, and stays below the pair with shift 2."""
    p = 0.01
    present, zeroed = density([0, 2], [1 - p, p]), density([0, 1], [1 - p, p])
    one, two = (mixtures.Mixture([0.0, s], [1 - p, p], 1.0).hockey_stick(epsilon) for s in (1.0, 2.0))
    value = divergence(present, zeroed, epsilon)
    assert 20 * one < value < two
    if epsilon == 1.0:
        assert value > 5e4 * one and value > 0.5 * two


# ------------------------------------------------------------- the Poisson identity


def test_poisson_identity_in_closed_form():
    """[C-8] Closed forms of both sides agree to 1e-12, at all orders alpha >= 1."""
    rng = np.random.default_rng(8)
    for _ in range(1500):
        q, sigma = np.exp(rng.uniform(np.log([1e-5, 0.3]), np.log([1, 30])))
        alpha = math.exp(rng.uniform(0, 3))
        right = q * gaussian.delta(1 / sigma, math.log(alpha))
        left = mixtures.binomial(1, q, sigma).hockey_stick(math.log1p(q * (alpha - 1)), "remove")
        if right > 1e-290:
            assert abs(left / right - 1) < 1e-12 * (1 + abs(math.log(right)))


# ------------------------------------------------------------------ remove and add


def test_both_directions_as_scaled_gaussians():
    """[C-9] remove = q H_{alpha'}, add = c H_beta, with the orders of the proof."""
    for q, sigma, epsilon in ((0.3, 1.0, 0.2), (0.9, 0.7, 1.0), (0.05, 2.0, 0.03)):
        alpha = math.exp(epsilon)
        pair, c = mixtures.binomial(1, q, sigma), 1 - alpha * (1 - q)
        order = (q + alpha - 1) / q
        assert pair.hockey_stick(epsilon, "remove") == pytest.approx(
            q * gaussian.delta(1 / sigma, math.log(order)), rel=1e-11
        )
        beta = alpha * q / c
        assert c <= q and beta >= order
        assert q * c * (beta - order) == pytest.approx((alpha - 1) ** 2 * (1 - q), rel=1e-9)
        assert pair.hockey_stick(epsilon, "add") == pytest.approx(
            c * gaussian.delta(1 / sigma, math.log(beta)), rel=1e-10
        )


def test_one_sided_noise_reverses_the_order():
    """[C-9] Without symmetry the proposition fails: exponential noise, q = 1/2, alpha = 1.9."""
    x = np.linspace(0, 40, 400_001)
    Q, P = np.exp(-x), np.where(x >= 1, np.exp(1 - x), 0.0)
    mixed, step = (Q + P) / 2, x[1] - x[0]
    assert np.maximum(mixed - 1.9 * Q, 0).sum() == 0
    assert np.maximum(Q - 1.9 * mixed, 0).sum() * step == pytest.approx(0.05 * (1 - math.exp(-1)), abs=1e-4)


# ----------------------------------------------------------------- separated batches


def test_minimal_separation_with_independent_noise_is_poisson_of_every_bth_round():
    """[M-D] Given the parts, a record's coins are independent Bernoulli(b p) in its own rounds only."""
    b, p, T, trials = 3, 0.2, 6, 6000
    rng = np.random.default_rng(11)
    runs = np.array(
        [batching.participation(batching.cyclic_poisson(4, T, b, p, rng), 4)[:, 1] for _ in range(trials)]
    )
    assert np.all(runs[:, [0, 2, 3, 5]] == 0)
    counts = np.bincount(runs[:, 1] + 2 * runs[:, 4], minlength=4)
    expected = trials * np.array([0.4**2, 0.6 * 0.4, 0.4 * 0.6, 0.6**2])
    assert stats.chisquare(counts, expected).pvalue > 1e-4


# --------------------------------------------------------------------- last iterate


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_final_iterate_of_a_step_function_loss_approaches_all_iterates(direction):
    """[M-F5] Fails for other losses: storing 64 cells of the first round recovers 99% of its delta."""
    q, sigma, epsilon = 0.5, 1.0, 0.5
    exact = accounting.delta([(mixtures.binomial(1, q, sigma), 2)], epsilon, direction).lower
    linear = dplib.LastIterate(sigma, q, 2).delta(epsilon, direction).upper
    stored = stored_cells(q, sigma, epsilon, direction, 64)
    assert linear < 0.97 * exact < 0.99 * exact < stored <= exact * (1 + 1e-4)


def stored_cells(q, sigma, epsilon, direction, cells):
    """delta of (cell of x_1, x_1 + x_2): given x_1 in a cell, integrate the sum exactly in closed form."""
    edges = np.concatenate([[-np.inf], 6 * np.arange(1, cells) / cells - 2.5, [np.inf]])
    y = np.linspace(-10, 12, 2201)[:, None]

    def cell_masses(m1, m2):
        # x_1 given the sum y is N(m1 + (y - m1 - m2) / 2, sigma^2 / 2).
        center, scale = m1 + (y - m1 - m2) / 2, sigma / math.sqrt(2)
        cdf = special.ndtr((edges - center) / scale)
        return stats.norm.pdf(y, m1 + m2, sigma * math.sqrt(2)) * np.diff(cdf, axis=1)

    with_record = sum(
        (q if a else 1 - q) * (q if b else 1 - q) * cell_masses(a, b)
        for a, b in itertools.product((0, 1), repeat=2)
    )
    without = cell_masses(0, 0)
    first, second = (with_record, without) if direction == "remove" else (without, with_record)
    return np.maximum(first - math.exp(epsilon) * second, 0).sum() * (y[1, 0] - y[0, 0])
