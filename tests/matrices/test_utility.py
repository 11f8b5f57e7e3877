"""Errors of prefix sums, against B = A C^+ built densely, and by simulation."""

import math

import numpy as np
import pytest

from dplib import matrices, sensitivity, utility

RNG = np.random.default_rng(3)
LOWER = np.tril(RNG.random((7, 7)) + 0.3)
ENCODERS = {
    "identity": matrices.identity(8),
    "gaps": matrices.toeplitz([2.0, 0.5, 0.0, 1.0, 0.0, 0.0]),
    "counting": matrices.optimal_counting(10),
    "banded": matrices.optimal_counting(10, bands=3),
    "long": matrices.toeplitz(matrices.optimal_counting(2100).coefficients),
    "buffers": matrices.buffered_linear_toeplitz(10, [0.3, 0.2, 0.4], [0.9, 0.9, 0.2]),
    "leaf": matrices.binary_tree(1),
    "tree": matrices.binary_tree(32),
    "restarts": matrices.tree_restarts(24, 8),
    "dense": matrices.dense(LOWER),
    "tall": matrices.dense(np.vstack([np.eye(3), np.ones((1, 3))]), row_rounds=[0, 1, 2, 2]),
}
each = pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())


@each
def test_errors_are_row_norms_of_the_decoder(encoder):
    """[N-RMSE] sigma ||A C^+||_F / sqrt(n), and sigma times the largest row norm."""
    n = encoder.columns
    B = np.linalg.solve(encoder.entries().T, np.tri(n).T).T if encoder.rows == n else np.tri(n) @ np.linalg.pinv(encoder.entries())
    norms = np.linalg.norm(B, axis=1)
    assert utility.deviations(encoder, 2.5) == pytest.approx(2.5 * norms, rel=1e-11)
    assert utility.rmse(encoder, 2.5) == pytest.approx(2.5 * np.linalg.norm(B) / math.sqrt(n), rel=1e-11)
    assert utility.largest_error(encoder, 2.5) == pytest.approx(2.5 * np.max(norms), rel=1e-11)


def test_the_error_is_the_one_that_a_simulation_finds():
    """[N-RMSE] 20,000 runs of the noise of each prefix sum, 4 standard errors."""
    runs = 20_000
    for encoder, decoder in [(ENCODERS["buffers"], "pseudo-inverse"), (ENCODERS["tree"], "dyadic")]:
        sums = np.cumsum(list(matrices.noise_stream(encoder, (runs,), 0.8, 1)), axis=0)
        wanted = utility.deviations(encoder, 0.8, decoder)
        assert np.all(np.abs(np.std(sums, axis=1) / wanted - 1) < 4 / math.sqrt(2 * runs))


@pytest.mark.parametrize("encoder", [ENCODERS["tree"], ENCODERS["restarts"], ENCODERS["leaf"]])
def test_decoders_of_a_tree_by_definition(encoder):
    """[M-tree] Dyadic nodes count the digits of t; causal and full least squares from the rows they use."""
    C, n = encoder.entries(), encoder.columns
    rounds = np.arange(n) % encoder.leaves + 1
    digits = np.bitwise_count(rounds) + np.arange(n) // encoder.leaves
    assert utility.deviations(encoder, decoder="dyadic") ** 2 == pytest.approx(digits, rel=1e-13)
    causal = []
    for t in range(n):
        released = C[encoder.row_rounds <= t][:, : t + 1]
        causal.append(np.linalg.norm(np.ones(t + 1) @ np.linalg.pinv(released)))
    assert utility.deviations(encoder, decoder="causal") == pytest.approx(causal, rel=1e-12)
    best, online, plain = (utility.deviations(encoder, 1.0, name) for name in utility._DECODERS)
    assert np.all(best <= online * (1 + 1e-12)) and np.all(online <= plain * (1 + 1e-12))


def test_the_frobenius_norm_of_the_decoder_and_two_numbers_that_are_not_it():
    """[N-RMSE] Counting encoder, 8 rounds: ||A C^-1||_F = 3.422, ||A^-1 C||_F = 3.142, ||A C^-1||_2 = 2.384."""
    encoder = matrices.optimal_counting(8)
    A, C = np.tri(8), encoder.entries()
    assert utility.rmse(encoder) * math.sqrt(8) == pytest.approx(3.422, abs=5e-4)
    assert np.linalg.norm(np.linalg.inv(A) @ C) == pytest.approx(3.142, abs=5e-4)
    assert np.linalg.norm(A @ np.linalg.inv(C), 2) == pytest.approx(2.384, abs=5e-4)


def test_correlated_noise_beats_independent_noise_at_equal_privacy():
    """One participation, 2048 rounds: sensitivity times error, per unit of mu."""
    cost = {
        name: sensitivity.single(encoder) * utility.rmse(encoder)
        for name, encoder in {
            "independent": matrices.identity(2048),
            "tree": matrices.binary_tree(2048),
            "counting": matrices.optimal_counting(2048),
        }.items()
    }
    assert cost["independent"] == pytest.approx(math.sqrt(2049 / 2), rel=1e-12)
    assert cost["counting"] < 0.9 * cost["tree"] < 0.15 * cost["independent"]


def test_large_encoders():
    for encoder in (matrices.optimal_counting(131_072), matrices.binary_tree(131_072), matrices.tree_restarts(131_072, 64)):
        errors = utility.deviations(encoder)
        assert errors.shape == (131_072,) and np.all(np.isfinite(errors)) and np.all(errors > 0)


def test_errors_whose_squares_leave_the_range_of_floats():
    """C^-1 of 1 + 2 v has entries up to 2^599; its prefix sums have the closed form (1 - (-2)^t) / 3."""
    growing = matrices.toeplitz(np.concatenate([[1.0, 2.0], np.zeros(598)]))
    shrunk = [(1 - (-2) ** t) // 3 / 2**600 for t in range(1, 601)]
    wanted = math.ldexp(math.sqrt(math.fsum((600 - t) * v * v for t, v in enumerate(shrunk)) / 600), 600)
    for encoder in (growing, matrices.dense(growing.entries())):
        assert utility.rmse(encoder) == pytest.approx(wanted, rel=1e-12)
        assert utility.largest_error(encoder) > wanted
    beyond = matrices.toeplitz(np.concatenate([[1.0, 2.0], np.zeros(1098)]))
    for encoder in (beyond, matrices.dense(beyond.entries())):
        with pytest.raises(ValueError, match="encoder must have an inverse within the range of floats"):
            utility.rmse(encoder)


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"encoder": np.eye(3)}, TypeError, "encoder must be an encoder"),
        ({"noise_multiplier": 0.0}, ValueError, "noise_multiplier must be"),
        ({"noise_multiplier": "1"}, TypeError, "noise_multiplier must be"),
        ({"decoder": "plain"}, ValueError, "decoder must be one of"),
        ({"decoder": None}, TypeError, "decoder must be one of"),
        ({"decoder": "dyadic"}, ValueError, "decoder must be 'pseudo-inverse' for this encoder, which is no tree; got 'dyadic'"),
        ({"encoder": ENCODERS["tall"], "decoder": "causal"}, ValueError, "decoder must be 'pseudo-inverse' for this encoder"),
        ({"encoder": matrices.dense(np.triu(np.ones((2, 2))), [1, 1]), "decoder": "causal"}, ValueError, "decoder must be 'pseudo-inverse' for"),
        ({"encoder": matrices.dense(np.ones((1, 2)), [1])}, ValueError, "array must have full column rank"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_by_name(arguments, error, words):
    for function in (utility.deviations, utility.rmse, utility.largest_error):
        with pytest.raises(error, match=words):
            function(**{"encoder": ENCODERS["identity"]} | arguments)
