"""The published method in JAX: estimator, root, implicit gradient, gradient descent, devices, bad input."""

import json
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from dplib import matrices, montecarlo, optimize, published, utility
from dplib.balls_in_bins import gram as _bins
from dplib.optimize import jax_draws

jax = pytest.importorskip("jax")

COEFFICIENTS = np.array([1.0, 0.5, 0.35, 0.3, 0.2, 0.15, 0.1, 0.05])  # b = 4, E = 2
GRAM = _bins.gram(matrices.toeplitz(COEFFICIENTS), 4, 2)
SMALL = {"epsilon": 1.0, "delta": 1e-2, "batches_per_epoch": 4}
MANY = 2**13  # one number of draws for most tests: each takes a compilation of its own
TARGET = {"epsilon": 1.0, "delta": 1e-3, "batches_per_epoch": 8, "epochs": 4}


# --- the estimator ------------------------------------------------------------------------------------------


def payoffs(gram, sigma, epsilon, bins, normals):
    """The payoffs of draws as JAX computes them."""
    with published.double():
        factor = jax_draws.factor_at(gram)
        return np.asarray(jax_draws.payoffs(factor, gram, sigma, bins, normals, epsilon))


def test_delta_of_two_modes():
    """[N-MC] b = 2, E = 1, C = I, sigma = 1, epsilon = 0.5, against quadrature [N-3.2]."""
    gram = np.kron(np.eye(2), np.ones((2, 2)))  # each mode twice
    found = payoffs(gram, 1.0, 0.5, *published.draws(2**17, 4))
    error = found.std(ddof=1) / np.sqrt(2**17)
    assert abs(found.mean() - 0.149178) < 4 * error < 0.02 * 0.149178
    assert error == pytest.approx(montecarlo.plain(gram, 0.5, samples=2**17).standard_error, rel=0.01)


def noise(**options):
    return published.noise_slope(COEFFICIENTS, **{**SMALL, "samples": MANY, **options})[0]


def test_noise_is_the_root():
    """[N-MC] With the same draws the mean payoff is delta, and lines find the same noise within the sampling error."""
    sigma = noise(samples=2**17, seed=3)
    assert payoffs(GRAM, sigma, 1.0, *published.draws(2**17, 4, seed=3)).mean() == pytest.approx(1e-2, rel=1e-9)
    truth = montecarlo.estimate_noise(GRAM, 1.0, 1e-2, relative_error=0.002)
    assert sigma == pytest.approx(truth.value, rel=0.01)


# --- precision and memory -----------------------------------------------------------------------------------


def test_draws_with_32_bits_are_those_with_64_rounded():
    """[N-MC] The same bins; normals to the resolution of 2^-32 in probability, in the tails as well."""
    bins, normals = published.draws(2**16, 4, seed=7)
    same, rounded = published.draws(2**16, 4, seed=7, dtype="float32")
    assert np.array_equal(bins, same)
    assert normals.dtype == "float64" and rounded.dtype == "float32"
    assert np.abs(normals).max() > 4.5
    density = np.exp(-(normals**2) / 2) / np.sqrt(2 * np.pi)
    assert np.all(np.abs(rounded - normals) < 2e-6 + 2.0**-32 / density)


@pytest.mark.parametrize("epsilon", [1.0, 16.0])
def test_32_bits_and_64(epsilon):
    """[N-grad] The same draws: the noise multiplier is that of 64 bits, the slope has five digits."""
    sigma, slope = published.noise_slope(COEFFICIENTS, **SMALL | {"epsilon": epsilon}, samples=MANY)
    same, rounded = published.noise_slope(COEFFICIENTS, **SMALL | {"epsilon": epsilon}, samples=MANY, dtype="float32")
    assert same == pytest.approx(sigma, rel=1e-10) and same != float(np.float32(same))
    assert rounded == pytest.approx(slope, rel=2e-5)


WIDE = np.concatenate([[1.0], 0.5 / np.arange(1.0, 128) ** 0.5])  # b = 64, E = 2


@pytest.mark.slow
@pytest.mark.parametrize("dtype, close", [("float64", 1e-9), pytest.param("float32", 2e-5, marks=pytest.mark.trust)])
def test_the_chunk_changes_nothing_but_rounding(dtype, close, monkeypatch):
    """[N-grad] b = 64, kept or drawn anew in each pass, in five blocks of which the last is not full."""
    options = {"epsilon": 1.0, "delta": 1e-2, "batches_per_epoch": 64, "samples": 2**12 - 3, "dtype": dtype}
    sigma, slope = published.noise_slope(WIDE, **options)
    monkeypatch.setattr(jax_draws, "_KEPT", 0)
    found, its_slope = published.noise_slope(WIDE, **options, chunk=900)
    assert found == pytest.approx(sigma, rel=1e-10)
    assert np.linalg.norm(its_slope - slope) < close * np.linalg.norm(slope)


@pytest.mark.slow
@pytest.mark.parametrize("dtype, most", [pytest.param("float64", 80, marks=pytest.mark.trust), ("float32", 50)])
def test_memory_does_not_grow_with_the_draws(dtype, most):
    """b = 512 with 2^20 draws, compiled and not run: what a pass needs beside its arguments is that of 2^17 draws."""
    b, needed = 512, []
    with published.double():
        for samples in (2**17, 2**20):
            stream = jax_draws.Draws(jax_draws.key_of(1), samples, b, jax.local_devices()[:1], dtype)
            assert "kept" not in stream.parts  # too many for that: drawn anew in each pass
            compiled = stream.passes["slopes"].lower(stream.parts, np.eye(b), np.eye(b), 1.0, 1.0).compile()
            needed.append(compiled.memory_analysis().temp_size_in_bytes)
    at_once = jax_draws.block_size(2**20, b) * b
    assert max(needed) < most * (at_once + b * b) <= 120 * 2**20
    assert abs(needed[1] - needed[0]) < 2**16


# --- the implicit gradient ----------------------------------------------------------------------------------


def by_hand(gram, sigma, epsilon, bins, normals):
    """Derivatives of the mean payoff (remove) by (Cholesky factor, gram, sigma), without automatic differentiation."""
    b, m = len(gram), len(bins)
    factor = np.linalg.cholesky(gram)
    inner = normals @ factor.T / sigma
    y = inner + gram[bins] / sigma**2 - np.diag(gram) / (2 * sigma**2)
    weights = np.exp(y - y.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    loss = y.max(axis=1) + np.log(np.exp(y - y.max(axis=1, keepdims=True)).mean(axis=1))
    # The payoff grows with the loss at e^(epsilon - loss) beyond epsilon; the loss with y_l at the posterior of l.
    weights *= np.where(loss > epsilon, np.exp(epsilon - loss), 0.0)[:, None] / m
    by_factor = weights.T @ normals / sigma
    by_gram = np.zeros((b, b))
    np.add.at(by_gram, bins, weights / sigma**2)
    by_gram -= np.diag(weights.sum(axis=0)) / (2 * sigma**2)
    by_sigma = np.sum(weights * (-inner - 2 * gram[bins] / sigma**2 + np.diag(gram) / sigma**2)) / sigma
    return by_factor, by_gram, by_sigma


def change_of_factor(gram, change):
    """The derivative of the Cholesky factor along a symmetric change."""
    factor = np.linalg.cholesky(gram)
    inside = np.linalg.solve(factor, np.linalg.solve(factor, change).T)
    return factor @ (np.tril(inside) - np.diag(np.diag(inside)) / 2)


def gram_change(c, direction, step=1e-6):
    ahead, behind = (_bins.gram(matrices.toeplitz(c + s * step * direction), 4, 2) for s in (1, -1))
    return (ahead - behind) / (2 * step)


def test_implicit_gradient_three_ways():
    """[N-grad] Same draws: automatic differentiation, finite differences of the root, and derivatives by hand."""
    arguments = {**SMALL, "samples": 2**17, "seed": 5}
    sigma, slope = published.noise_slope(COEFFICIENTS, **arguments)
    bins, normals = map(np.asarray, published.draws(2**17, 4, seed=5))
    by_factor, by_gram, by_sigma = by_hand(GRAM, sigma, 1.0, bins, normals)
    for k in (0, 2, 7):
        direction, step = np.eye(8)[k], 1e-6
        ahead, behind = (
            published.noise_slope(COEFFICIENTS + s * step * direction, **arguments)[0] for s in (1, -1)
        )
        assert slope[k] == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-7)
        change = gram_change(COEFFICIENTS, direction)
        by_c = np.sum(by_factor * change_of_factor(GRAM, change)) + np.sum(by_gram * change)
        assert slope[k] == pytest.approx(-by_c / by_sigma, rel=1e-7, abs=1e-9)


def test_implicit_gradient_and_the_analytic_one():
    """[N-grad] Plain draws, differentiated automatically, against d log sigma = <S, dG> / (2 <S, G>) by lines."""
    analytic_sigma, analytic = optimize.noise_slope(COEFFICIENTS, **SMALL, lines=2**13)
    runs = [published.noise_slope(COEFFICIENTS, **SMALL, samples=2**17, seed=seed) for seed in range(8)]
    sigmas, slopes = np.array([run[0] for run in runs]), np.array([run[1] for run in runs])
    assert abs(sigmas.mean() - analytic_sigma) < 4 * sigmas.std(ddof=1) / np.sqrt(8)
    errors = slopes.std(axis=0, ddof=1) / np.sqrt(8)
    assert np.all(np.abs(slopes.mean(axis=0) - analytic) < 5 * errors)
    assert np.all(errors < 0.02 * np.abs(analytic))


def test_gram_and_errors_for_jax():
    """[N-3.2], [N-RMSE] The functions that JAX differentiates agree with those of the library."""
    n, b = 21, 7
    encoder = matrices.toeplitz(np.random.default_rng(n).uniform(0.01, 1.0, n) / np.arange(1, n + 1) ** 2)
    of_table = jax.jit(
        lambda table: (published.gram_of(table, b), *map(partial(published.error_of, table), (0, 1)))
    )
    for table in (encoder.coefficients, encoder.entries()):
        with published.double():
            gram, error, worst = map(np.asarray, of_table(table))
        assert gram == pytest.approx(_bins.gram(encoder, b, n // b), rel=1e-12)
        assert float(error) == pytest.approx(utility.rmse(encoder, 1.0), rel=1e-10)
        assert float(worst) == pytest.approx(utility.largest_error(encoder, 1.0), rel=1e-10)


def lower(x):
    """A family of one's own: unit diagonal, exp(x) below it."""
    rows, columns = np.tril_indices(8, -1)
    return jax.numpy.eye(8, dtype=x.dtype).at[rows, columns].set(jax.numpy.exp(x))


def penalised(c, sigma):
    """An objective of one's own."""
    return sigma**2 * (1 + jax.numpy.sum(c**2)) / (1 + jax.numpy.sum(jax.numpy.abs(c[-1])))


@pytest.mark.parametrize(
    "family, objective",
    [("toeplitz", "largest_error"), ("buffered_linear_toeplitz", "rmse"), (lower, penalised)],
)
def test_gradient_of_the_objective(family, objective, monkeypatch):
    """[N-grad] Chain rule through family, encoder, modes, root and objective: finite differences, same draws."""
    from dplib.optimize import families

    monkeypatch.setattr(published, "_ROOT", 1e-11)
    start = np.random.default_rng(1).normal(-2, 0.3, 28) if callable(family) else None
    made = families.make(family, 8, 4, None, 2, start)
    x = np.array(made.start) + 0.01
    with published.double():
        descent = published._Descent(made, objective, 4, 1.0, 1e-2)
        stream = jax_draws.Draws(jax_draws.key_of(5), MANY, 4, jax.local_devices())
        _, _, gradient = descent.slope(x, stream)
        rng = np.random.default_rng(3)
        for _ in range(2):
            move = rng.normal(size=len(x)) * 1e-6
            values = [descent.slope(x + s * move, stream)[0] for s in (1, -1)]
            assert gradient @ move == pytest.approx((values[0] - values[1]) / 2, rel=1e-5, abs=1e-11)


# --- gradient descent ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def best():
    return optimize.optimize(**TARGET, lines=256)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fresh": False},
        pytest.param({"encoder_family": "banded_toeplitz", "bands": 16}, marks=pytest.mark.trust),
    ],
)
def test_descent_comes_close_to_the_optimum(best, options):
    """[N-grad] The published method and `dplib.optimize` agree within 1%, both validated on fresh lines."""
    found = published.optimize(**TARGET, **options, samples=MANY, steps=60, seed=2)
    assert isinstance(found, optimize.Optimized) and found.history.shape == (60, 2)
    assert 0.998 * best.objective < float(found.objective) < 1.01 * best.objective
    assert utility.rmse(found.encoder, found.noise_multiplier) == pytest.approx(
        float(found.objective), rel=1e-9
    )
    assert np.all(found.encoder.coefficients >= 0)


# --- devices, precision, quiet -------------------------------------------------------------------------------

CHILD = """
import json, jax, numpy as np
from dplib import published
assert len(jax.local_devices()) == 8
target = {"epsilon": 1.0, "delta": 1e-2, "batches_per_epoch": 4, "samples": 5000}
sigma, slope = published.noise_slope(np.array([1.0, 0.5, 0.35, 0.3, 0.2, 0.15, 0.1, 0.05]), **target)
from dplib.optimize import jax_draws as _published
with published.double():
    kept = _published.Draws(_published.key_of(1), 5000, 4, jax.local_devices()).parts["kept"]
assert len(kept[1].sharding.device_set) == 8 and not kept[1].sharding.is_fully_replicated
print(json.dumps([sigma, *slope]))
"""


def child(code, **environment):
    """Standard output of a new interpreter that writes nothing else."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_same_numbers_on_one_and_on_eight_devices():
    """Chunks have their own keys, so that devices only share out the work: equal to 1e-12, not just in law.

    Ten chunks of 512 draws on eight devices: six of sixteen places are empty, and the last chunk is not full.
    """
    flags = "--xla_force_host_platform_device_count=8"
    answers = json.loads(child(CHILD, XLA_FLAGS=flags, JAX_PLATFORMS="cpu"))
    options = {**SMALL, "samples": 5000, "devices": jax.local_devices()[:1]}
    sigma, slope = published.noise_slope(COEFFICIENTS, **options)
    assert answers == pytest.approx([sigma, *slope], rel=1e-12)


QUIET = """
import warnings
warnings.simplefilter("error")
import sys, dplib
from dplib import published, optimize
assert "jax" not in sys.modules and "optax" not in sys.modules
import joblib, numpy as np
before = published.draws(100, 2)[1]
import jax, optax
assert jax.numpy.ones(2).dtype == "float32" and not jax.config.jax_enable_x64
again = joblib.Parallel(n_jobs=2)(joblib.delayed(np.copy)(part) for part in (before, before))
assert np.array_equal(again[1], before) and before.dtype == "float64"
assert jax.numpy.ones(2).dtype == "float32"
"""


def test_jax_is_lazy_quiet_and_left_as_it_was():
    """Warnings are errors, stderr stays empty, the caller keeps 32 bits, processes of joblib may start."""
    assert child(QUIET, JAX_PLATFORMS="cpu") == ""


# --- bad input ----------------------------------------------------------------------------------------------

SLOPE = {"table": COEFFICIENTS, **SMALL}
BAD = {
    published.draws: [{"samples": 1}, {"samples": 10**400}, {"seed": -1}, {"batches": 0}, {"dtype": "float16"}],
    published.noise_slope: [
        *({"table": table} for table in (np.ones(6), -np.ones(8), np.ones((8, 8)), "C")),
        *({"batches_per_epoch": 0}, {"delta": 1.0}, {"samples": 1}, {"devices": ["cpu"]}),
        *({"dtype": dtype} for dtype in ("double", np.float32, None)),
        *({"chunk": chunk} for chunk in (0, -1, 2.5, True, 2**29)),
    ],
    published.optimize: [
        *({"encoder_family": family} for family in ("dense", lambda x: x)),
        *({"objective": objective} for objective in ("mse", lambda c, sigma: c)),
        *({"epochs": 0}, {"steps": 0}, {"fresh": 1}, {"epsilon": 0.0}, {"dtype": 32}, {"chunk": 0}, {"callback": 1}),
    ],
}
VALID = {
    published.draws: {"samples": 10, "batches": 2},
    published.noise_slope: SLOPE,
    published.optimize: TARGET,
}


@pytest.mark.parametrize("function", BAD, ids=lambda function: function.__name__)
def test_bad_input_is_refused_before_any_work(function, monkeypatch):
    def work(*_args, **_options):
        raise ArithmeticError("work began before the arguments were checked")

    for name in ("Draws", "draw_block"):
        monkeypatch.setattr(jax_draws, name, work)
    for changes in BAD[function]:
        [name] = ["start" if callable(value) and name == "encoder_family" else name for name, value in changes.items()]
        with pytest.raises((ValueError, TypeError), match=f"{name} must"):
            function(**VALID[function] | changes)


def test_more_rounds_than_fit_are_refused():
    with pytest.raises(ValueError, match="rounds .* must be"):
        published.noise_slope(np.ones(8192 * 8), epsilon=1.0, delta=1e-2, batches_per_epoch=8192)
