"""Encoders with scales for rows and columns: what the table of encoders (tests/encoders.py) does not show."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dplib
from dplib import matrices
from dplib.balls_in_bins import gram

B = 4


def scaled(seed, n):
    rng = np.random.default_rng(seed)
    coefficients = np.append(1.0, rng.uniform(0, 0.5, n - 1) * 0.8 ** np.arange(n - 1))
    return matrices.scaled(matrices.toeplitz(coefficients), *rng.uniform(0.5, 2, (2, n)))


@given(seed=st.integers(0, 10**6), epochs=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_the_gram_matrix_for_certificates_is_an_upper_bound(seed, epochs):
    encoder = scaled(seed, B * epochs)
    exact = np.array(encoder.entries(), np.longdouble).reshape(B * epochs, epochs, B).sum(axis=1)
    assert np.all(gram.gram_upper(encoder, B, epochs) >= exact.T @ exact)


def test_mechanisms_take_them():
    encoder = scaled(0, 16)
    dense = matrices.dense(encoder.entries())
    for make in (
        lambda e: dplib.BallsInBins(e, 6.0, B, 4).delta(1.0, method="estimate", seed=3).value,
        lambda e: dplib.BallsInBins(e, 6.0, B, 4).delta(1.0, method="certificate", samples=2**13, seed=3).upper,
        lambda e: dplib.MatrixMechanism(e, 20.0, 0.1).epsilon(1e-5).upper,
    ):
        assert make(encoder) == pytest.approx(make(dense), rel=1e-6)


@pytest.mark.parametrize(
    "base, rows, columns, error, message",
    [
        (matrices.binary_tree(4), None, None, TypeError, "base must be a Toeplitz encoder"),
        (matrices.toeplitz([1.0, -0.5], signed=True), None, None, TypeError, "base must be"),
        (np.eye(3), None, None, TypeError, "base must be"),
        (matrices.identity(3), [1, 2], None, ValueError, r"rows must have one scale for each round \(3\); got 2"),
        (matrices.identity(3), None, [1, 2, 0], ValueError, r"columns must be above 0 .*; got 0.0"),
        (matrices.identity(3), [1, 2, -1], None, ValueError, "rows must be above 0"),
        (matrices.identity(3), [1, 2, 1e31], None, ValueError, "rows must be at most 1e"),
        (matrices.identity(3), [1, 2, np.nan], None, ValueError, "rows must hold finite numbers"),
        (matrices.toeplitz([1e90, 1e90]), [1e30, 1], None, ValueError, "products of at most 1e"),
    ],
)
def test_bad_input(base, rows, columns, error, message):
    with pytest.raises(error, match=message):
        matrices.scaled(base, rows, columns)
