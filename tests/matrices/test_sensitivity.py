"""Sensitivities by participation, against enumeration of every allowed set of rounds."""

import itertools
import math

import numpy as np
import pytest

from dplib import matrices, sensitivity

RNG = np.random.default_rng(8)
BAND = np.tril(np.triu(RNG.random((9, 9)) + 0.1, -1))
ENCODERS = {
    "identity": matrices.identity(8),
    "gaps": matrices.toeplitz([2.0, 0.5, 0.0, 1.0, 0.0, 0.0]),
    "rising": matrices.toeplitz([1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    "counting": matrices.optimal_counting(10),
    "banded": matrices.optimal_counting(10, bands=3),
    "buffers": matrices.buffered_linear_toeplitz(10, [0.3, 0.2, 0.8], [0.9, 0.9, 0.2]),
    "tree": matrices.binary_tree(8),
    "restarts": matrices.tree_restarts(8, 4),
    "leaf": matrices.binary_tree(1),
    "dense": matrices.dense(np.tril(RNG.random((9, 9)) + 0.1)),
    "two bands": matrices.dense(BAND),
    "tall": matrices.dense([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]], row_rounds=[0, 1, 1]),
}
each = pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())


def largest(encoder, most, allowed):
    """Largest norm of a sum of columns, over every set of at most `most` rounds with allowed gaps."""
    C, best = encoder.entries(), 0.0
    for size in range(1, min(most, encoder.columns) + 1):
        for rounds in itertools.combinations(range(encoder.columns), size):
            if all(allowed(gap) for gap in np.diff(rounds)):
                best = max(best, float(np.linalg.norm(C[:, list(rounds)].sum(axis=1))))
    return best


@each
def test_single_participation_is_the_largest_column_norm(encoder):
    assert sensitivity.single(encoder) == pytest.approx(largest(encoder, 1, bool), rel=1e-13)


@each
@pytest.mark.parametrize("most", [None, 1, 2, 3])
def test_round_robin_is_exact(encoder, most):
    for period in range(1, encoder.columns + 2):
        wanted = largest(encoder, most or encoder.columns, lambda gap: gap == period)  # noqa: B023
        assert sensitivity.round_robin(encoder, period, most) == pytest.approx(wanted, rel=1e-12)


@each
@pytest.mark.parametrize("most", [None, 1, 2, 3])
def test_min_separation_brackets_the_worst_set(encoder, most):
    for gap in range(1, encoder.columns + 2):
        wanted = largest(encoder, most or encoder.columns, lambda apart: apart >= gap)  # noqa: B023
        found = sensitivity.min_separation(encoder, gap, most)
        assert found.lower <= wanted * (1 + 1e-12) and wanted <= found.upper * (1 + 1e-12)
        assert found.upper <= 1.09 * wanted


@pytest.mark.parametrize("seed", range(8))
def test_for_falling_coefficients_the_worst_schedule_is_round_robin_from_the_start(seed):
    """[M-0s] Every other set has smaller inner products, pair by pair."""
    rng = np.random.default_rng(seed)
    encoder = matrices.toeplitz(np.sort(rng.random(9) ** 3)[::-1] + (seed % 2) * 0.1)
    gram = encoder.gram()
    for gap, most in itertools.product((1, 2, 3, 4), (2, 3, 9)):
        found = sensitivity.min_separation(encoder, gap, most)
        assert found.lower == found.upper == sensitivity.round_robin(encoder, gap, most)
        assert found.upper == pytest.approx(largest(encoder, most, lambda apart: apart >= gap), rel=1e-12)  # noqa: B023
        for rounds in itertools.combinations(range(9), 3):
            if min(np.diff(rounds)) >= gap and 2 * gap < 9:
                first = np.arange(3) * gap
                assert np.all(gram[np.ix_(rounds, rounds)] <= gram[np.ix_(first, first)] + 1e-15)


def test_for_rising_coefficients_it_is_not():
    """[M-0s] Without the monotone coefficients another set can be worse: here by the factor sqrt(6/4)."""
    encoder = matrices.toeplitz([1.0, 0, 0, 1, 0, 0, 0, 0, 0])
    schedule = sensitivity.round_robin(encoder, 2, 2)
    worst = largest(encoder, 2, lambda gap: gap >= 2)
    found = sensitivity.min_separation(encoder, 2, 2)
    assert schedule == pytest.approx(2.0) and worst == pytest.approx(math.sqrt(6))
    assert found.lower <= worst <= found.upper * (1 + 1e-13)


def test_columns_without_common_rows_give_sums_of_squares():
    found = sensitivity.min_separation(matrices.dense(BAND), 2)
    assert found.lower == found.upper and found.method == "columns without common rows"
    norms = np.linalg.norm(BAND, axis=0) ** 2
    best = max(
        sum(norms[list(rounds)])
        for size in range(1, 6)
        for rounds in itertools.combinations(range(9), size)
        if size == 1 or min(np.diff(rounds)) >= 2
    )
    assert found.upper == pytest.approx(math.sqrt(best), rel=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_equal_contributions_are_the_worst(seed):
    """[M-0s] No contributions of norm at most 1, in any dimension, move C x further than equal ones."""
    rng = np.random.default_rng(seed)
    encoder = matrices.dense(np.tril(rng.random((6, 6)) + 0.05))
    rounds = [0, 2, 5]
    bound = sensitivity.pattern(encoder, rounds)
    for _ in range(200):
        x = np.zeros((6, 3))
        x[rounds] = rng.normal(size=(3, 3))
        x[rounds] /= np.linalg.norm(x[rounds], axis=1, keepdims=True)
        assert np.linalg.norm(encoder.multiply(x)) <= bound * (1 + 1e-12)


def test_a_period_beyond_the_last_round_means_one_participation():
    for encoder in (matrices.binary_tree(8), matrices.optimal_counting(8), matrices.dense(np.tri(5))):
        for period in (encoder.columns, 10**12):
            assert sensitivity.round_robin(encoder, period) == pytest.approx(sensitivity.single(encoder), rel=1e-12)
            assert sensitivity.min_separation(encoder, period).upper == pytest.approx(sensitivity.single(encoder), rel=1e-12)


def test_large_encoders():
    """At 131,072 rounds a product replaces the dense matrix; banded columns add their squares."""
    banded = matrices.optimal_counting(131_072, bands=64)
    found = sensitivity.min_separation(banded, 64)
    assert found.lower == found.upper == pytest.approx(sensitivity.single(banded) * math.sqrt(2048), rel=1e-12)
    assert sensitivity.round_robin(matrices.binary_tree(65_536), 4096, 4) == pytest.approx(math.sqrt(108))
    with pytest.raises(ValueError, match="encoder must have at most 4096 columns for the bound by pairs; got 65536"):
        sensitivity.min_separation(matrices.binary_tree(65_536), 64)


ENCODER = ENCODERS["tree"]
COUNTS = [(0, ValueError), (-2, ValueError), (1.5, ValueError), (math.nan, ValueError), ("2", TypeError), (True, TypeError)]


@pytest.mark.parametrize("function", [sensitivity.round_robin, sensitivity.min_separation])
def test_bad_schemes_are_refused_by_name(function):
    name = "period" if function is sensitivity.round_robin else "separation"
    for value, error in [*COUNTS, (None, TypeError)]:
        with pytest.raises(error, match=f"^{name} must be a whole number at least 1"):
            function(ENCODER, value)
    for value, error in COUNTS:
        with pytest.raises(error, match="^participations must be a whole number at least 1"):
            function(ENCODER, 2, value)


@pytest.mark.parametrize("encoder", [None, np.eye(3), "identity", 3.0, matrices.Tree])
def test_bad_encoders_are_refused_by_name(encoder):
    for call in (
        sensitivity.single,
        lambda e: sensitivity.pattern(e, [0]),
        lambda e: sensitivity.round_robin(e, 1),
        lambda e: sensitivity.min_separation(e, 1),
    ):
        with pytest.raises(TypeError, match="^encoder must be an encoder such as"):
            call(encoder)


@pytest.mark.parametrize("rounds", [[], [8], [-1], [0.5], [1, 1], 3, [[0, 1]]])
def test_bad_rounds_are_refused_by_name(rounds):
    with pytest.raises(ValueError, match="^rounds must"):
        sensitivity.pattern(ENCODER, rounds)
