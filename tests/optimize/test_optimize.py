"""The encoder with the smallest error under amplification: gradients, optimality, families, bad input."""

import math

import numpy as np
import pytest

import dplib
from dplib import gaussian, matrices, optimize, utility
from dplib._base import random_blocks
from dplib.balls_in_bins import gram as _bins
from dplib.optimize.moving_lines import MovingLines

TARGET = {"epsilon": 1.0, "delta": 1e-4, "batches_per_epoch": 8, "epochs": 4}


@pytest.fixture(scope="module")
def found():
    return optimize.optimize(**TARGET, lines=256)


def moving(gram, sigma, epsilon=1.0, count=512):
    rng = random_blocks.generator(5, (9,), 0)
    return MovingLines(gram / sigma**2, epsilon, rng, count)


def test_moved_lines_estimate_delta_and_its_derivatives():
    """[A-17] At another Gram matrix: delta of an independent estimate, and the slope of the very same lines."""
    first, second = (_bins.gram(matrices.optimal_counting(64, bands), 16, 4) for bands in (4, 8))
    lines = moving(first, 4.0, count=4096)
    lines.moved(second)
    log_delta, slope, weights = lines.scaled(4.3)
    truth = dplib.montecarlo.estimate(second / 4.3**2, 1.0, samples=2**15, seed=3)
    assert math.exp(log_delta) == pytest.approx(truth.value, rel=0.02)
    step = 1e-4
    ahead, behind = (lines.scaled(4.3 * math.exp(sign * step))[0] for sign in (1, -1))
    assert slope == pytest.approx((ahead - behind) / (2 * step), rel=0.03)
    # S is the derivative by the entries: a change of the matrix changes delta by its inner product with S.
    change = first - second
    values = []
    for sign in (1, -1):
        lines.moved(second + sign * 1e-4 * change)
        values.append(lines.scaled(4.3)[0])
    expected = -slope * np.sum(weights * change) / (2 * np.sum(weights * second))
    assert (values[0] - values[1]) / 2e-4 == pytest.approx(expected, rel=0.05)


def test_the_optimum_beats_what_it_started_from_and_its_neighbours(found):
    """Fresh samples; random changes of the coefficients raise the error, within the sampling error."""
    assert isinstance(found.encoder, matrices.Toeplitz) and float(found.objective) > 0
    again = dplib.calibrate(
        dplib.BallsInBins(found.encoder, 1.0, 8, 4), epsilon=1.0, delta=1e-4, method="estimate", seed=9
    )
    assert again.noise_multiplier == pytest.approx(found.noise_multiplier, rel=2e-3)
    error = utility.rmse(found.encoder, found.noise_multiplier)
    assert error == pytest.approx(float(found.objective), rel=1e-9)

    def objective(c):
        encoder = matrices.toeplitz(c)
        mechanism = dplib.calibrate(
            dplib.BallsInBins(encoder, again.noise_multiplier, 8, 4),
            epsilon=1.0, delta=1e-4, method="estimate", seed=9,
        )  # fmt: skip
        return utility.rmse(encoder, mechanism.noise_multiplier)

    best = objective(found.encoder.coefficients)
    assert best < 0.97 * objective(matrices.optimal_counting(32, 2).coefficients)
    rng = np.random.default_rng(2)
    for _ in range(4):
        c = found.encoder.coefficients * np.append(1.0, np.exp(rng.normal(0, 0.3, 31)))
        assert objective(c) > best * (1 - 1e-3)


def test_a_result_makes_its_mechanism(found):
    """Its estimated noise and a certified one, which is larger and a guarantee."""
    mechanism = found.mechanism()
    assert mechanism == dplib.BallsInBins(found.encoder, found.noise_multiplier, 8, 4)
    safe = dplib.calibrate(mechanism, epsilon=1.0, delta=1e-4, method="certificate", samples=2**16)
    assert found.noise_multiplier < safe.noise_multiplier < 1.05 * found.noise_multiplier


# --- the implicit gradient -----------------------------------------------------------------------------


def test_the_implicit_gradient_of_an_array():
    """[N-grad] Moving a coefficient moves a diagonal: the same noise, and sums along diagonals. b = 4, E = 2."""
    c = np.array([1.0, 0.5, 0.3, 0.2, 0.15, 0.1, 0.08, 0.05])
    target = {"epsilon": 1.0, "delta": 1e-2, "batches_per_epoch": 4}
    sigma, slope = optimize.noise_slope(c, **target)
    same, table = optimize.noise_slope(matrices.toeplitz(c).entries(), **target)
    assert same == pytest.approx(sigma, rel=1e-12)
    assert [np.trace(table, -lag) for lag in range(8)] == pytest.approx(slope, rel=1e-9)
    assert not np.any(np.triu(table, 1))


# --- families and objectives of one's own --------------------------------------------------------------


def test_a_function_as_family_finds_the_same_optimum(found):
    jnp = pytest.importorskip("jax.numpy")
    nn = pytest.importorskip("jax.nn")

    def softened(x):
        return jnp.concatenate([jnp.ones(1), nn.softplus(x)])

    first = np.log(np.expm1(np.maximum(matrices.optimal_counting(32).coefficients[1:], 1e-2)))
    other = optimize.optimize(softened, start=first, **TARGET, lines=256)
    assert isinstance(other.encoder, matrices.Toeplitz) and other.parameters.shape == (31,)
    assert float(other.objective) == pytest.approx(float(found.objective), rel=2e-3)
    assert jnp.asarray(1.0).dtype == np.float32  # nobody's settings were changed


def dense_family(n):
    jnp = pytest.importorskip("jax.numpy")
    rows, columns = np.tril_indices(n)

    def family(x):
        return jnp.zeros((n, n)).at[rows, columns].set(jnp.exp(x))

    return family, np.log(matrices.optimal_counting(n).entries()[rows, columns])


@pytest.mark.parametrize("objective", ["rmse", pytest.param("largest_error", marks=pytest.mark.trust)])
def test_dense_encoders_are_better_still(objective):
    """A triangular array with all entries free: at most the error of Toeplitz encoders."""
    small = {**TARGET, "batches_per_epoch": 4}
    family, start = dense_family(16)
    toeplitz = optimize.optimize(objective=objective, **small, lines=128)
    dense = optimize.optimize(family, start=start, objective=objective, **small, lines=128)
    assert isinstance(dense.encoder, matrices.Dense)
    assert float(dense.objective) < 0.995 * float(toeplitz.objective)
    error = utility.rmse if objective == "rmse" else utility.largest_error
    assert error(dense.encoder, dense.noise_multiplier) == pytest.approx(float(dense.objective), rel=1e-9)


def test_an_objective_of_ones_own():
    """The RMSE written with jax.numpy finds what the built-in one finds; noise alone leads to the identity."""
    jnp = pytest.importorskip("jax.numpy")
    small = {**TARGET, "batches_per_epoch": 4, "epochs": 2}

    def rmse(c, sigma):
        array = jnp.stack([jnp.concatenate([jnp.zeros(i), c[: 8 - i]]) for i in range(8)], axis=1)
        return sigma * jnp.sqrt(jnp.mean(jnp.sum(jnp.cumsum(jnp.linalg.inv(array), axis=0) ** 2, axis=1)))

    built_in = optimize.optimize(**small, lines=128)
    other = optimize.optimize(objective=rmse, **small, lines=128)
    assert float(other.objective) == pytest.approx(float(built_in.objective), rel=1e-3)
    assert other.objective.standard_error == pytest.approx(built_in.objective.standard_error, rel=0.2)
    least = optimize.optimize(objective=lambda c, sigma: sigma + 0.0 * c[0], **small, lines=128)
    assert np.max(least.encoder.coefficients[1:]) < 1e-3


BAD_FUNCTIONS = [
    ({"encoder_family": lambda x: x - 1.0}, "encoder_family must give entries of at least 0"),
    ({"encoder_family": lambda x: x[:3]}, "encoder_family must give Toeplitz"),
    ({"encoder_family": lambda x: 0.0 * x}, "encoder_family must give a first coefficient"),
    ({"encoder_family": lambda x: x[:, None] * x}, "encoder_family must give a lower-triangular"),
    ({"encoder_family": lambda x: np.exp(x)}, "encoder_family must be a function that JAX"),
    ({"objective": lambda c, sigma: c}, "objective must be a function that JAX"),
    ({"objective": lambda c, sigma: sigma / (c[0] - 1)}, "objective must be finite"),
]


@pytest.mark.parametrize("changes, message", BAD_FUNCTIONS)
def test_functions_that_give_no_encoder_or_no_error(changes, message):
    pytest.importorskip("jax")
    start = {"start": np.full(8, 0.5)} if "encoder_family" in changes else {}
    with pytest.raises((ValueError, TypeError), match=message):
        optimize.optimize(epsilon=1.0, delta=1e-2, batches_per_epoch=4, epochs=2, lines=64, **start, **changes)


# --- limits --------------------------------------------------------------------------------------------


def test_one_batch_is_the_gaussian_mechanism():
    """b = 1: no choice of batches, one Gaussian of mean ||C 1||."""
    result = optimize.optimize(epsilon=1.0, delta=1e-5, batches_per_epoch=1, epochs=6)
    norm = np.linalg.norm(np.cumsum(result.encoder.coefficients))
    assert result.noise_multiplier == pytest.approx(norm / gaussian.calibrate(1.0, 1e-5), rel=1e-3)


def test_largest_error_is_another_objective(found):
    other = optimize.optimize(**TARGET, objective="largest_error", lines=256)
    worst = utility.largest_error(other.encoder, other.noise_multiplier)
    assert worst == pytest.approx(float(other.objective), rel=1e-9)
    assert worst < utility.largest_error(found.encoder, found.noise_multiplier) * 1.002


BUFFERED = {"encoder_family": "buffered_linear_toeplitz"}
BAD = [
    ({"encoder_family": "dense"}, "encoder_family must be"),
    ({"encoder_family": lambda x: x}, "start must be the first parameters"),
    ({"encoder_family": lambda x: x, "start": [1.0], "bands": 2}, "bands must be None"),
    ({"encoder_family": "banded_toeplitz", "bands": 33}, "bands must be"),
    ({**BUFFERED, "buffers": 9}, "buffers must be"),
    ({**BUFFERED, "start": matrices.identity(32)}, "start must be None"),
    ({"start": matrices.identity(31)}, "start must be a Toeplitz"),
    ({"start": matrices.toeplitz([1.0, -0.5] + [0.0] * 30, signed=True)}, "start must be a Toeplitz"),
]
SCALED = {"encoder_family": "scaled_toeplitz"}
BAD += [
    ({**SCALED, "scaling": "columns"}, "scaling must be one of"),
    ({**SCALED, "objective": lambda table, sigma: sigma}, "objective must be one of"),
    ({**SCALED, "bands": 3}, "bands must be None"),
]
OUTSIDE = {"objective": "mse", "epsilon": 0.0, "delta": 1.0, "batches_per_epoch": 0, "epochs": 0}
OUTSIDE |= {"lines": 10, "seed": -1, "most_steps": 0}
BAD += [({name: value}, f"{name} must be") for name, value in OUTSIDE.items()]


@pytest.mark.parametrize("changes, message", BAD)
def test_bad_input(changes, message):
    with pytest.raises(ValueError, match=message):
        optimize.optimize(**{"encoder_family": "toeplitz", **TARGET, **changes})


SLOPE = {"table": [1.0, 0.5], "epsilon": 1.0, "delta": 1e-2, "batches_per_epoch": 2}
BAD_SLOPES = [
    ({"table": [1.0, 0.5, 0.2]}, "table must have a multiple"),
    ({"table": [1.0, -0.5]}, "table must have entries"),
    ({"table": [0.0, 0.5]}, "table must start"),
    ({"table": [[1.0, 0.5], [0.0, 1.0]]}, "table must be flat, or square"),
    *(({name: -1}, f"{name} must be") for name in ("epsilon", "delta", "batches_per_epoch", "lines", "seed")),
]


@pytest.mark.parametrize("changes, message", BAD_SLOPES)
def test_bad_input_of_the_slope(changes, message):
    with pytest.raises(ValueError, match=message):
        optimize.noise_slope(**SLOPE | changes)


SMALL = {"epsilon": 1.0, "delta": 1e-5, "batches_per_epoch": 4, "epochs": 8}


@pytest.fixture(scope="module")
def scaled():
    """By name: the best Toeplitz encoder of a small setting, with scaled rows, and with scaled rows and columns."""
    run = lambda family, **options: optimize.optimize(family, **SMALL, lines=2048, **options)
    return {"toeplitz": run("toeplitz"), "rows": run("scaled_toeplitz"), "both": run("scaled_toeplitz", scaling="both")}


def test_scales_lower_the_error(scaled):
    """[N-gradI] By 4.8% for rows and by 5.2% for both, as was found by other code."""
    base = float(scaled["toeplitz"].objective)
    gains = {name: float(run.objective) / base - 1 for name, run in scaled.items()}
    assert gains["rows"] == pytest.approx(-0.0482, abs=0.002) and gains["both"] == pytest.approx(-0.0518, abs=0.002)


@pytest.mark.trust
def test_scales_are_as_good_as_any_encoder(scaled):
    """[N-gradI] No structure at all lowers the error no further: 528 free entries."""
    start = np.log(np.maximum(scaled["both"].encoder.entries()[np.tril_indices(32)], 1e-3))
    best = optimize.optimize(dense_family(32)[0], **SMALL, start=start, lines=2048)
    assert float(best.objective) == pytest.approx(float(scaled["both"].objective), rel=2e-3)


def test_scaled_rows_are_stationary(scaled):
    """[N-gradI] d_t^4 is proportional to q_t / (m_t^T Pi m_t), with Pi from lines of another number and seed."""
    encoder = scaled["rows"].encoder
    table = encoder.entries()
    _, slope = optimize.noise_slope(table, epsilon=1.0, delta=1e-5, batches_per_epoch=4, lines=2**14, seed=5)
    in_noise = np.sum(slope * table, axis=1)  # the slope of sigma by log d_t
    decoder = np.cumsum(np.linalg.inv(table), axis=0)
    in_error = np.sum(decoder**2, axis=0)
    assert np.allclose(in_noise / in_noise.sum(), in_error / in_error.sum(), rtol=0.05)
    assert np.all(np.diff(encoder.row_scale) < 0.02)  # the later rounds get more noise


@pytest.mark.parametrize("epsilon", [pytest.param(0.5, marks=pytest.mark.trust), 4.0])
def test_dp_sgd_with_scaled_rounds(epsilon):
    """[N-gradI] d constant in epochs, Q_j^(1/4): the ratio .94413 at 16 epochs of 128 batches; exactly, at any target: test_encoder_statements.py."""
    sums = np.arange(2048, 0, -1).reshape(16, 128).sum(axis=1)
    encoders = matrices.scaled(matrices.identity(2048), np.repeat(sums**0.25, 128)), matrices.identity(2048)
    runs = [dplib.calibrate(dplib.BallsInBins(encoder, 1.0, 128, 16), epsilon=epsilon, delta=1e-5) for encoder in encoders]
    rising, plain = (utility.rmse(run.encoder, run.noise_multiplier) for run in runs)
    assert rising / plain == pytest.approx(0.94413, abs=2e-5)
    assert np.sqrt(sums).sum() / math.sqrt(16 * sums.sum()) == pytest.approx(0.94413, abs=5e-6)


def test_scaled_families(scaled):
    """Buffers too, the largest error too; a certificate holds for the result."""
    buffered = optimize.optimize("scaled_buffered", **SMALL, buffers=2)
    assert isinstance(buffered.encoder.base, matrices.BufferedToeplitz)
    assert float(buffered.objective) < 0.99 * float(scaled["toeplitz"].objective)
    worst = optimize.optimize("scaled_toeplitz", **SMALL, objective="largest_error")
    plain = optimize.optimize("toeplitz", **SMALL, objective="largest_error")
    assert float(worst.objective) < float(plain.objective) * (1 + 2e-3)
    run = scaled["both"]
    safe, _ = run.mechanism().certified(1.0, 1e-5, samples=2**15)
    assert run.noise_multiplier < safe.noise_multiplier < 1.1 * run.noise_multiplier
    assert np.all(np.isfinite(run.history)) and run.epochs == 8
