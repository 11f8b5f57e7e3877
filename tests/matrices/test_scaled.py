"""Encoders with scales for rows and columns: against the dense matrix of the same entries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dplib
from dplib import matrices, sensitivity, training, utility
from dplib.balls_in_bins import gram

N, B = 24, 4


def pair(seed=0, n=N, bands=None, columns=True, buffers=False):
    """(a scaled encoder, the dense one of the same entries)."""
    rng = np.random.default_rng(seed)
    if buffers:
        base = matrices.buffered_linear_toeplitz(n, [0.3, 0.1], [0.5, 0.9])
    else:
        coefficients = np.append(1.0, rng.uniform(0, 0.5, n - 1) * 0.8 ** np.arange(n - 1))
        coefficients[bands or n :] = 0
        base = matrices.toeplitz(coefficients)
    rows, scales = rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n) if columns else None
    encoder = matrices.scaled(base, rows, scales)
    return encoder, matrices.dense(rows[:, None] * base.entries() * (1 if scales is None else scales))


@pytest.mark.parametrize("bands", [1, 3, None])
@pytest.mark.parametrize("columns", [False, True])
def test_everything_is_that_of_the_matrix(bands, columns):
    encoder, dense = pair(bands=bands, columns=columns)
    x = np.random.default_rng(1).standard_normal((N, 2))
    assert np.allclose(encoder.entries(), dense.entries(), rtol=1e-15)
    assert np.allclose(encoder.multiply(x), dense.multiply(x), rtol=1e-12, atol=1e-14)
    assert np.allclose(encoder.solve(encoder.multiply(x)), x, atol=1e-12)
    assert np.allclose(encoder.gram(), dense.gram(), rtol=1e-13)
    for lag in range(N):
        assert np.allclose(encoder.gram_diagonal(lag), dense.gram_diagonal(lag), rtol=1e-12, atol=1e-15)
    assert np.allclose(encoder.column_norms(), dense.column_norms(), rtol=1e-13)
    assert np.allclose(gram.gram(encoder, B, N // B), gram.gram(dense, B, N // B), rtol=1e-13)
    assert np.allclose(utility.deviations(encoder), utility.deviations(dense), rtol=1e-12)
    assert np.isclose(sensitivity.round_robin(encoder, B), sensitivity.round_robin(dense, B), rtol=1e-12)
    assert np.isclose(sensitivity.min_separation(encoder, 3).upper, sensitivity.min_separation(dense, 3).upper, rtol=1e-12)


@given(seed=st.integers(0, 10**6), epochs=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_the_gram_matrix_for_certificates_is_an_upper_bound(seed, epochs):
    encoder, _ = pair(seed, n=B * epochs)
    exact = np.array(encoder.entries(), np.longdouble).reshape(B * epochs, epochs, B).sum(axis=1)
    assert np.all(gram.gram_upper(encoder, B, epochs) >= exact.T @ exact)


@pytest.mark.parametrize("options", [{}, {"bands": 4}, {"bands": 1}, {"buffers": True}])
def test_noise_round_by_round(options):
    encoder, dense = pair(**options)
    stream = matrices.noise_stream(encoder, (3,), 2.0, seed=5)
    z = 2.0 * np.random.default_rng(5).standard_normal((N, 3))
    half = [next(stream) for _ in range(N // 2)]
    again = matrices.noise_stream(encoder, (3,), 2.0, seed=5)
    again.restore(stream.state())
    made = np.array([*half, *again])
    assert np.allclose(made, dense.solve(z), atol=1e-12) and np.allclose(made, encoder.solve(z), atol=1e-12)
    assert stream.memory_rows == matrices.noise_stream(encoder.base, (3,), 2.0, seed=5).memory_rows
    with pytest.raises(ValueError, match="another|belong"):
        matrices.noise_stream(encoder.base, (3,), 2.0, seed=5).restore(stream.state())


def test_noise_in_jax_is_that_of_the_matrix():
    import jax.numpy as jnp

    encoder, dense = pair(bands=4)

    def made(of):
        transform = training.correlated_noise(of, 1.0, seed=3)
        state, rounds = transform.init(jnp.zeros(2)), []
        for _ in range(N):
            w, state = transform.update(jnp.zeros(2), state)
            rounds.append(np.asarray(w))
        return np.array(rounds)

    with pytest.warns(training.SeededNoiseWarning):
        assert np.allclose(made(encoder), made(dense), atol=1e-4)  # 32 bits
    assert training.memory_rows(encoder) == training.memory_rows(encoder.base) == 3 < training.memory_rows(dense)


def test_mechanisms_take_them():
    encoder, dense = pair(n=16)
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
