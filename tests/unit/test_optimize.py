"""The encoder with the smallest error under amplification: gradients, optimality, families, bad input."""

import math

import numpy as np
import pytest

import dplib
from dplib import _bins, _streams, matrices, optimize, utility
from dplib._moving import MovingLines

TARGET = {"epsilon": 1.0, "delta": 1e-4, "batches_per_epoch": 8, "epochs": 4}


@pytest.fixture(scope="module")
def found():
    return optimize.optimize(**TARGET, lines=256)


def moving(gram, sigma, epsilon=1.0, count=512):
    rng = _streams.generator(5, (9,), 0)
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


def test_history_and_text(found):
    assert found.history.shape[1] == 2 and len(found.history) >= 3
    assert found.history[-1, 0] == pytest.approx(float(found.objective), rel=0.02)
    assert found.history[-1, 0] < found.history[0, 0]
    assert "steps" in repr(found) and "+-" in str(found.objective)
    assert 0 < found.objective.standard_error < 0.01 * found.objective


def test_bands_and_buffers_come_close(found):
    """Fewer parameters: never better than all coefficients, within the sampling error, and not much worse."""
    banded = optimize.optimize("banded_toeplitz", **TARGET, bands=8, lines=256)
    assert banded.encoder.bands <= 8
    buffered = optimize.optimize("buffered_linear_toeplitz", **TARGET, buffers=2, lines=256)
    assert isinstance(buffered.encoder, matrices.BufferedToeplitz)
    for other in (banded, buffered):
        assert 0.998 * found.objective < float(other.objective) < 1.06 * found.objective


def test_largest_error_is_another_objective(found):
    other = optimize.optimize(**TARGET, objective="largest_error", lines=256)
    worst = utility.largest_error(other.encoder, other.noise_multiplier)
    assert worst == pytest.approx(float(other.objective), rel=1e-9)
    assert worst < utility.largest_error(found.encoder, found.noise_multiplier) * 1.002


def test_the_same_seed_gives_the_same_encoder(found):
    again = optimize.optimize(**TARGET, lines=256)
    assert np.array_equal(again.encoder.coefficients, found.encoder.coefficients)
    assert float(again.objective) == float(found.objective)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"encoder_family": "dense"}, "encoder_family must be"),
        ({"objective": "mse"}, "objective must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"batches_per_epoch": 0}, "batches_per_epoch must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"lines": 10}, "lines must be"),
        ({"seed": -1}, "seed must be"),
        ({"most_steps": 0}, "most_steps must be"),
        ({"bands": 3}, "bands must be None"),
        ({"encoder_family": "banded_toeplitz", "bands": 33}, "bands must be"),
        ({"encoder_family": "buffered_linear_toeplitz", "buffers": 9}, "buffers must be"),
        ({"encoder_family": "buffered_linear_toeplitz", "start": matrices.identity(32)}, "start must be None"),
        ({"start": matrices.identity(31)}, "start must be a Toeplitz"),
        ({"start": matrices.binary_tree(32)}, "start must be a Toeplitz"),
    ],
)
def test_bad_input(changes, message):
    arguments = {"encoder_family": "toeplitz", **TARGET, **changes}
    with pytest.raises((ValueError, TypeError), match=message):
        optimize.optimize(**arguments)
