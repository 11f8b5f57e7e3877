"""Buffers with weights below 0 and conjugate pairs: never below 0, the right slopes, the right noise."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplib import matrices, optimize
from dplib.optimize import signed_buffers
from dplib.training import correlated_noise_jax

FORMS = [signed_buffers.Dipped, signed_buffers.Waved]
ROUNDS = 200
PAIR = 0.05 * np.exp(3j), np.exp(-1 / 40 + 0.06j)


def damped_wave(n=ROUNDS):
    (scale, decay), plain = PAIR, abs(PAIR[1])
    return matrices.buffered_linear_toeplitz(
        n, [0.3, 0.12, scale, scale.conjugate()], [0.9, plain, decay, decay.conjugate()]
    )


@cache
def fitted(form, buffers):
    family = form(ROUNDS, buffers, matrices.optimal_counting(ROUNDS, 50).coefficients)
    family.rescale(family.start)
    return family


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("buffers", [3, 5])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_coefficient_is_below_zero_and_slopes_are_those_of_differences(form, buffers, seed):
    family = fitted(form, buffers)
    rng = np.random.default_rng(seed)
    x, slope = rng.normal(size=len(family.start)), rng.normal(size=ROUNDS)
    table = family.table(x)
    assert table[0] == 1 and table.min() >= 0
    assert np.allclose(family.encoder(x).coefficients, table, rtol=0, atol=1e-12 * np.abs(table).max())
    value = lambda point: float(family.table(point) @ slope)
    step = 1e-6
    differences = [
        (value(x + step * way) - value(x - step * way)) / (2 * step) for way in np.eye(len(x))
    ]
    inside = family.origin + family.turn @ x
    if np.all((inside > family.lowest + 1e-3) & (inside < family.highest - 1e-3)):
        scale = np.abs(differences).max() + np.abs(table).max()
        assert np.allclose(family.pull(x, slope), differences, rtol=1e-4, atol=1e-6 * scale)


def test_the_smallest_floats_do_not_fall_below_zero():
    """Fast decays end in denormal numbers, whose rounding has no sign."""
    for form in FORMS:
        family = form(4096, 3, matrices.optimal_counting(4096, 9).coefficients)
        family.origin = np.clip(np.where(family.lowest == -14, 0.5, 1.0), family.lowest, family.highest)
        assert family.table(family.start).min() >= 0


def test_a_conjugate_pair_is_a_damped_wave():
    encoder, k = damped_wave(), np.arange(ROUNDS - 1.0)
    scale, decay = PAIR
    wave = 2 * abs(scale) * abs(decay) ** k * np.cos(k * np.angle(decay) + np.angle(scale))
    expected = np.append(1.0, 0.3 * 0.9**k + 0.12 * abs(decay) ** k + wave)
    assert np.allclose(encoder.coefficients, expected, rtol=0, atol=1e-15)
    plain = matrices.toeplitz(expected)
    assert np.allclose(encoder.inverse_coefficients, plain.inverse_coefficients, rtol=0, atol=1e-13)
    closed = (encoder.inverse_scale @ encoder.inverse_decay[:, None] ** k).real
    assert np.allclose(encoder.inverse_coefficients[1:], closed, rtol=0, atol=1e-13)
    x = np.random.default_rng(1).normal(size=(ROUNDS, 2))
    assert np.allclose(encoder.multiply(x), plain.multiply(x), rtol=0, atol=1e-12)
    assert np.allclose(encoder.solve(encoder.multiply(x)), x, rtol=0, atol=1e-11)


def test_the_noise_of_a_conjugate_pair_is_streamed_with_one_real_row_for_each_buffer():
    import jax.numpy as jnp

    encoder = damped_wave()
    z = np.random.default_rng(2).normal(size=(ROUNDS, 3))
    recursion = encoder._recursion((3,), None)
    streamed = np.array([recursion.step(t, z[t : t + 1]) for t in range(ROUNDS)])
    assert recursion.arrays()["buffers"].shape == (4, 3)
    assert np.allclose(streamed, encoder.solve(z), rtol=0, atol=1e-12)

    kind, arrays = correlated_noise_jax.plan(encoder)
    assert (kind.form, kind.rows) == ("waves", 4)
    memory, rows = jnp.zeros((kind.rows, 3), jnp.float32), []
    for t in range(ROUNDS):
        w, memory = correlated_noise_jax.push(kind, arrays, memory, t, jnp.asarray(z[t], jnp.float32))
        rows.append(np.asarray(w))
    assert np.allclose(rows, streamed, rtol=0, atol=2e-5)


def test_a_stream_of_a_conjugate_pair_goes_on_where_it_was_left():
    encoder = damped_wave()
    make = lambda: matrices.noise_stream(encoder, (2,), 1.0, seed=5)
    whole = make()
    expected = [next(whole) for _ in range(20)]
    first = make()
    for _ in range(7):
        next(first)
    second = make()
    second.restore(first.state())
    assert np.array_equal([next(second) for _ in range(13)], expected[7:])


@pytest.mark.parametrize(
    "scale, decay, message",
    [
        ([1j], [0.5], "output_scale must be real where buffer_decay is; got 1j at 0"),
        ([0.1, 0.1], [0.5 + 0.1j, 0.5 + 0.1j], "buffer_decay must hold the conjugate right after"),
        ([0.1], [0.5 + 0.1j], "buffer_decay must hold the conjugate right after"),
        ([0.1 + 0.1j, 0.1 + 0.1j], [0.5 + 0.1j, 0.5 - 0.1j], "output_scale must hold the conjugate"),
        ([0.1, 0.1], [1.5 + 0.1j, 1.5 - 0.1j], "moduli of buffer_decay must be at most 1; got 1.50"),
        ([1e101j, -1e101j], [0.5 + 0.1j, 0.5 - 0.1j], "moduli of output_scale must be at most"),
        ([0.1, 0.1], [0.5 + 0.1j, complex(0.5, math.nan)], "imaginary part of buffer_decay must hold finite"),
        ([0.5, 0.5], [0.5 + 0.5j, 0.5 - 0.5j], "output_scale must give coefficients of at least 0"),
    ],
)
def test_bad_pairs_are_refused(scale, decay, message):
    with pytest.raises(ValueError, match=message):
        matrices.buffered_linear_toeplitz(5, scale, decay)


def test_weak_amplification_is_served_best_by_a_pair():
    """[N-BLT] At large epsilon the best coefficients end within an epoch; a damped wave follows them best."""
    target = dict(epsilon=16.0, delta=1e-5, batches_per_epoch=16, epochs=8)
    free = optimize.optimize("toeplitz", **target)
    found = optimize.optimize("buffered_linear_toeplitz", buffers=4, **target)
    plain = optimize.optimize("buffered_linear_toeplitz", buffers=4, signed=False, **target)
    assert np.iscomplexobj(found.encoder.buffer_decay) and found.encoder.coefficients.min() >= 0
    assert free.objective < found.objective < plain.objective
    assert found.objective / free.objective - 1 < 0.5 * (plain.objective / free.objective - 1)
