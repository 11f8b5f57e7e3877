"""Gram matrices of the modes of balls in bins: every route against the modes themselves, and bad input."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from encoders import ENCODERS, each

from dplib import matrices, sensitivity
from dplib.balls_in_bins import gram as _bins

SIGNED = np.array([[1.0, 0, 0, 0], [-0.3, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]])

def direct(encoder, b, absolute=True):
    """Inner products of the modes, from the dense matrix."""
    C = np.abs(encoder.entries()) if absolute else encoder.entries()
    modes = C.reshape(len(C), -1, b).sum(axis=1)
    return modes.T @ modes


@each(ENCODERS | {"long": matrices.optimal_counting(24, bands=5)})
def test_gram_is_that_of_the_modes(encoder):
    """[N-3.2] m_i = sum_j |C|[:, b j + i], for every kind of encoder and every number of batches."""
    for b in range(1, encoder.columns + 1):
        if encoder.columns % b == 0:
            assert _bins.gram(encoder, b, encoder.columns // b) == pytest.approx(direct(encoder, b), rel=1e-13)


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


# --- bad input ---------------------------------------------------------------------------------------------


GRAMS = [
    ([[1.0, 0, 0], [0, 1, 0]], "gram must be square"),
    ([[1.0, 0.5], [0.4, 1]], "gram must be symmetric; it differs from its transpose by 0.1"),
    ([[1.0, -0.5], [-0.5, 1]], "gram must have entries at least 0; got -0.5"),
    ([[0.0, 0], [0, 1]], "gram must have entries above 0 .* on its diagonal; got 0.0"),
    ([[1.0, 2], [2, 1]], "gram must be positive semidefinite within rounding; .* eigenvalue -1"),
    ([[1e101]], "gram must have entries .* at most 1e.100 on its diagonal"),
    (np.broadcast_to(1.0, (8193, 8193)), "gram must have at most 8192 rows"),
]


@pytest.mark.parametrize("gram, words", GRAMS)
def test_what_is_no_gram_matrix_is_refused_with_the_reason(gram, words):
    with pytest.raises(ValueError, match=words):
        _bins.check_gram("gram", gram)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"encoder must have one column for each round, .* 3 \* 2 = 6; got 8"):
        _bins.gram(matrices.identity(8), 3, 2)
    with pytest.raises(ValueError, match="batches_per_epoch must be .* at most 8192"):
        _bins.gram(matrices.identity(8), 10**6, 1)
