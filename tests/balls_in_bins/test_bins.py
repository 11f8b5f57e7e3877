"""Gram matrices of the modes of balls in bins: every route against the modes themselves, and bad input."""

import re
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from dplib import MatrixMechanism, matrices, sensitivity, utility
from dplib.balls_in_bins import gram as _bins

RNG = np.random.default_rng(20240510)
LOWER = np.tril(RNG.random((24, 24)) + 0.1)
TALL = np.array([[1.0, 0, 0, 0], [1, 2, 0, 0], [0, 0.5, 0, 0], [1, 1, 1, 0], [0, 0, 3, 1]])
SIGNED = np.array([[1.0, 0, 0, 0], [-0.3, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])

ENCODERS = {
    "identity": matrices.identity(24),
    "random": matrices.toeplitz(RNG.random(24)),
    "banded": matrices.optimal_counting(24, bands=5),
    "counting": matrices.optimal_counting(24),
    "buffers": matrices.buffered_linear_toeplitz(24, [0.3, 0.2, 0.1], [0.9, 0.9, 0.2]),
    "restarts": matrices.tree_restarts(24, 8),
    "dense": matrices.dense(LOWER),
}
TREES = {"tree": matrices.binary_tree(32), "restarts": matrices.tree_restarts(48, 16), "leaf": matrices.binary_tree(1)}


def direct(encoder, b, absolute=True):
    """Inner products of the modes, from the dense matrix."""
    C = np.abs(encoder.entries()) if absolute else encoder.entries()
    modes = C.reshape(len(C), -1, b).sum(axis=1)
    return modes.T @ modes


@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())
@pytest.mark.parametrize("b", [1, 2, 3, 8, 24])
def test_gram_is_that_of_the_modes(encoder, b):
    """[N-3.2] m_i = sum_j |C|[:, b j + i], for every kind of encoder."""
    assert _bins.gram(encoder, b, 24 // b) == pytest.approx(direct(encoder, b), rel=1e-13)


@pytest.mark.parametrize("encoder", TREES.values(), ids=TREES.keys())
def test_gram_of_trees_with_every_number_of_batches(encoder):
    for b in range(1, encoder.columns + 1):
        if encoder.columns % b == 0:
            assert _bins.gram(encoder, b, encoder.columns // b) == pytest.approx(direct(encoder, b), rel=1e-13)


def test_gram_of_a_tall_encoder():
    encoder = matrices.dense(TALL, row_rounds=[0, 1, 1, 2, 3])
    assert _bins.gram(encoder, 2, 2) == pytest.approx(direct(encoder, 2), rel=1e-14)


def test_identity_has_independent_modes():
    """[N-3.2] (ii) For C = I the modes are orthogonal with squared norm E."""
    assert np.array_equal(_bins.gram(matrices.identity(128 * 16), 128, 16), 16 * np.eye(128))


def test_error_of_long_encoders_is_that_of_sums_of_positive_terms():
    """The first entry and the last against exact arithmetic; the upper version is above both."""
    encoder = matrices.optimal_counting(600)
    exact_modes = []
    for i in (0, 11):
        column = [Fraction(0)] * 600
        for j in range(50):
            for t in range(12 * j + i, 600):
                column[t] += Fraction(float(encoder.coefficients[t - 12 * j - i]))
        exact_modes.append(column)
    gram, upper = _bins.gram(encoder, 12, 50), _bins.gram_upper(encoder, 12, 50)
    for i, column in zip((0, 11), exact_modes):
        exact = sum(x * x for x in column)
        assert abs(Fraction(gram[i, i]) - exact) < exact * Fraction(4 * 612, 2**53)
        assert exact <= Fraction(upper[i, i]) < exact * (1 + Fraction(10 * 612, 2**53))
    mixed = sum(x * y for x, y in zip(*exact_modes))
    assert abs(Fraction(gram[0, 11]) - mixed) < mixed * Fraction(4 * 612, 2**53) and Fraction(upper[0, 11]) >= mixed


def test_upper_version_is_above_by_rounding_alone():
    encoder = matrices.optimal_counting(2048, bands=64)
    gram, upper = _bins.gram(encoder, 128, 16), _bins.gram_upper(encoder, 128, 16)
    assert np.all(upper[gram > 0] > gram[gram > 0]) and np.all(upper <= gram * (1 + 1e-11))


def test_long_encoders_need_no_table_of_rounds_and_batches():
    """131072 rounds in 1024 batches: a full table would take 1 GiB."""
    encoder = matrices.optimal_counting(131072)
    tracemalloc.start()
    gram = _bins.gram(encoder, 1024, 128)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20
    assert gram[0, 0] == pytest.approx(sensitivity.round_robin(encoder, 1024) ** 2, rel=1e-11)


# --- entries of both signs ---------------------------------------------------------------------------------


def test_signs_count_only_for_contributions_fixed_in_advance():
    """[N-K] |C| by default; C itself where contributions do not depend on the releases."""
    encoder = matrices.dense(SIGNED, signed=True)
    assert np.all(SIGNED.T @ SIGNED >= 0)
    assert _bins.gram(encoder, 2, 2) == pytest.approx(direct(encoder, 2), rel=1e-13)
    own = _bins.gram(encoder, 2, 2, non_adaptive=True)
    assert own == pytest.approx(direct(encoder, 2, absolute=False), rel=1e-13)
    assert np.all(own <= direct(encoder, 2)) and np.any(own < direct(encoder, 2) - 0.1)
    upper = _bins.gram_upper(encoder, 2, 2, non_adaptive=True)
    assert np.all(upper > own) and np.all(upper < own + 1e-12)


def test_negative_inner_products_of_columns_are_refused():
    """[N-A] The example of the paper: equal contributions are not the worst there."""
    encoder = matrices.toeplitz([1.0, -1.0], signed=True)
    assert _bins.gram(encoder, 2, 1).tolist() == [[2.0, 1.0], [1.0, 1.0]]
    with pytest.raises(ValueError, match="inner products of at least 0 for non_adaptive=True; columns 0 and 1 have -1"):
        _bins.gram(encoder, 2, 1, non_adaptive=True)


def test_toeplitz_encoders_with_a_negative_coefficient_never_qualify():
    """[N-K] The last column holds the first coefficient alone: its inner products have the coefficients' signs."""
    encoder = matrices.toeplitz([1.0, 0.9, -0.001, 0.5, 0.4, 0.3], signed=True)
    with pytest.raises(ValueError, match="columns 3 and 5 have -0.001"):
        _bins.gram(encoder, 3, 2, non_adaptive=True)
    assert _bins.gram(encoder, 3, 2) == pytest.approx(direct(encoder, 3), rel=1e-13)


def test_without_negative_entries_the_flag_changes_nothing():
    encoder = matrices.optimal_counting(24)
    assert np.array_equal(_bins.gram(encoder, 4, 6, non_adaptive=True), _bins.gram(encoder, 4, 6))
    assert np.array_equal(_bins.gram_upper(encoder, 4, 6, non_adaptive=True), _bins.gram_upper(encoder, 4, 6))


def test_signed_encoders_multiply_solve_and_have_a_utility():
    for encoder in (matrices.toeplitz([1.0, -0.4, 0.2, 0.1], signed=True), matrices.dense(SIGNED, signed=True)):
        C, x = encoder.entries(), RNG.normal(size=4)
        assert encoder.signed
        assert encoder.multiply(x) == pytest.approx(C @ x) and encoder.solve(C @ x) == pytest.approx(x)
        wanted = np.linalg.norm(np.tri(4) @ np.linalg.inv(C)) / 2
        assert utility.rmse(encoder) == pytest.approx(wanted, rel=1e-12)
        assert matrices.noise_stream(encoder, (), 1.0, 0) is not None
    assert not matrices.identity(2).signed


# --- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: _bins.gram(matrices.identity(8), 3, 2), ValueError, r"encoder must have one column for each round, .* 3 \* 2 = 6; got 8"),
        (lambda: _bins.gram(matrices.identity(8), 0, 2), ValueError, "batches_per_epoch must be a whole number at least 1"),
        (lambda: _bins.gram(matrices.identity(8), 2, 0), ValueError, "epochs must be a whole number at least 1"),
        (lambda: _bins.gram(matrices.identity(8), 10**6, 1), ValueError, "batches_per_epoch must be .* at most 8192"),
        (lambda: _bins.gram(np.eye(8), 2, 4), TypeError, "encoder must be an encoder"),
        (lambda: _bins.gram(matrices.identity(8), 2, 4, 1), TypeError, "non_adaptive must be True or False; got 1"),
        (lambda: matrices.toeplitz([1.0, -0.5]), ValueError, "coefficients must be at least 0.0; got -0.5"),
        (lambda: matrices.toeplitz([-1.0, 0.5], signed=True), ValueError, "coefficients must start with a number above 0"),
        (lambda: matrices.toeplitz([1.0, 0.5], signed="yes"), TypeError, "signed must be True or False; got 'yes'"),
        (lambda: matrices.dense([[1.0, 0], [-1, 1]]), ValueError, "array must have entries at least 0; got -1.0"),
        (lambda: matrices.dense([[1.0, -1], [0, 1]], signed=True), ValueError, "array must be lower-triangular; got -1.0"),
        (lambda: matrices.dense([[1.0, 0], [1, -1]], signed=True), ValueError, "array must have a diagonal above 0; got -1.0 in row 1"),
        (lambda: matrices.dense([[1.0, 0]], [1], signed=True), ValueError, "array must have an entry other than 0 in every column"),
        (lambda: sensitivity.single(matrices.toeplitz([1.0, -0.5], signed=True)), ValueError, "encoder must have no entries below 0"),
        (lambda: MatrixMechanism(matrices.toeplitz([1.0, -0.5], signed=True), 1.0, 0.1).delta(1.0), ValueError, "encoder must have no entries below 0"),
        (lambda: _bins.check_gram("gram", [[1.0, 0, 0], [0, 1, 0]]), ValueError, "gram must be square"),
        (lambda: _bins.check_gram("gram", [[1.0, 0.5], [0.4, 1]]), ValueError, "gram must be symmetric; it differs from its transpose by 0.1"),
        (lambda: _bins.check_gram("gram", [[1.0, -0.5], [-0.5, 1]]), ValueError, "gram must have entries at least 0; got -0.5"),
        (lambda: _bins.check_gram("gram", [[0.0, 0], [0, 1]]), ValueError, "gram must have entries above 0 .* on its diagonal; got 0.0"),
        (lambda: _bins.check_gram("gram", [[1.0, 2], [2, 1]]), ValueError, "gram must be positive semidefinite within rounding; .* eigenvalue -1"),
        (lambda: _bins.check_gram("gram", [[1e101]]), ValueError, "gram must have entries .* at most 1e.100 on its diagonal"),
        (lambda: _bins.check_gram("gram", [[1.0, np.nan], [0, 1]]), ValueError, "gram must hold finite numbers"),
        (lambda: _bins.check_gram("gram", np.broadcast_to(1.0, (8193, 8193))), ValueError, "gram must have at most 8192 rows"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_reason(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert re.search(words, str(caught.value)), str(caught.value)


def test_nearly_singular_gram_matrices_are_accepted():
    """All modes equal, and a matrix that is positive semidefinite up to rounding alone."""
    ones = np.full((5, 5), 0.3)
    assert np.array_equal(_bins.check_gram("gram", ones), ones)
    rough = ones + 1e-16 * RNG.normal(size=(5, 5))
    checked = _bins.check_gram("gram", np.maximum(rough, 0))
    assert np.array_equal(checked, checked.T)
