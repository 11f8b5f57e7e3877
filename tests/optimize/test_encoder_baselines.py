"""Encoders without amplification and their noise: optimal, as published, by two routes, and refused bad input."""


import numpy as np
import pytest

import dplib
from dplib import gaussian, matrices, sensitivity, utility
from dplib.encoder_baselines import banded_balls_in_bins, banded_poisson, unamplified, without_amplification

PAPER = {"delta": 1e-5, "batches_per_epoch": 128, "epochs": 16}
SMALL = {"epsilon": 1.0, "delta": 1e-4, "batches_per_epoch": 8, "epochs": 4}


def cost(encoder, b, largest=False):
    """Error times sensitivity, from the public functions of other modules."""
    error = utility.largest_error(encoder) if largest else utility.rmse(encoder)
    return error * sensitivity.round_robin(encoder, b)


# ------------------------------------------------------------------------- the encoder


@pytest.mark.parametrize("bands", [2, 5, 32])
@pytest.mark.parametrize("objective", ["rmse", "largest_error"])
def test_no_nearby_encoder_is_better(bands, objective):
    largest = objective == "largest_error"
    found = without_amplification(32, bands=bands, batches_per_epoch=8, objective=objective)
    assert found.bands <= bands and found.coefficients[0] == 1 and found.coefficients.min() >= 0
    best = cost(found, 8, largest)
    assert best <= cost(matrices.optimal_counting(32, bands), 8, largest) * (1 - 1e-4)
    rng = np.random.default_rng(3)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(20):
            c = found.coefficients.copy()
            c[1:bands] = np.abs(c[1:bands] + size * rng.standard_normal(bands - 1))
            assert cost(matrices.toeplitz(c), 8, largest) >= best * (1 - 1e-9)


def test_one_participation_is_near_the_bound_for_all_matrices():
    """No factorisation has a smaller error than the nuclear norm of A over n; here Toeplitz costs up to 10%."""
    n = 64
    bound = np.linalg.svd(np.tri(n), compute_uv=False).sum() / n
    found = cost(without_amplification(n), n)
    assert bound <= found <= 1.1 * bound
    assert found < cost(matrices.optimal_counting(n), n)


# ------------------------------------------------------------------------- the noise


@pytest.mark.parametrize("epsilon", [0.25, 4.0])
def test_unamplified_noise_by_another_accountant(epsilon):
    """The Gaussian mechanism in closed form against dp_accounting; and error times sensitivity over mu."""
    accountant = pytest.importorskip("dp_accounting.pld").privacy_loss_distribution
    found = unamplified(**SMALL | {"epsilon": epsilon})
    reach = sensitivity.round_robin(found.encoder, 8)
    peer = accountant.from_gaussian_mechanism(found.noise_multiplier / reach, value_discretization_interval=1e-4)
    assert peer.get_delta_for_epsilon(epsilon) == pytest.approx(1e-4, rel=1e-3)
    assert found.objective == pytest.approx(cost(found.encoder, 8) / gaussian.calibrate(epsilon, 1e-4), rel=1e-12)
    assert found.objective == pytest.approx(utility.rmse(found.encoder, found.noise_multiplier), rel=1e-10)
    assert found.mechanism().delta(epsilon).upper == pytest.approx(1e-4, rel=1e-6)


@pytest.mark.parametrize("bands", [1, 4])
def test_poisson_noise_by_another_accountant(bands):
    accountant = pytest.importorskip("dp_accounting.pld").privacy_loss_distribution
    found = banded_poisson(**PAPER, epsilon=1.0, bands=bands)
    one = found.noise_multiplier / sensitivity.single(found.encoder)
    assert found.mechanism() == dplib.PoissonDPSGD(found.mechanism().noise_multiplier, bands / 128, 2048 // bands)
    assert found.mechanism().noise_multiplier == pytest.approx(one, rel=1e-12)
    peer = accountant.from_gaussian_mechanism(
        one, value_discretization_interval=1e-4, sampling_prob=bands / 128
    ).self_compose(2048 // bands)
    assert peer.get_delta_for_epsilon(1.0) == pytest.approx(1e-5, rel=5e-3)


def test_dp_sgd_by_all_three():
    """[N-5] C = I: every noise is smaller with sampling, Poisson's the least; bins are exact there."""
    ask = PAPER | {"epsilon": 1.0, "bands": 1}
    fixed, poisson, bins = unamplified(**ask), banded_poisson(**ask), banded_balls_in_bins(**ask)
    assert [r.kind for r in (fixed, poisson, bins)] == ["exact", "certified", "exact"]
    assert fixed.noise_multiplier == pytest.approx(4 / gaussian.calibrate(1.0, 1e-5), rel=1e-12)
    gains = [1 - r.objective / fixed.objective for r in (bins, poisson)]
    assert gains == pytest.approx([0.775, 0.898], abs=5e-4)  # measured once before with other code
    assert bins.mechanism().delta(1.0, method="exact").upper <= 1e-5


def test_bins_against_the_mechanism():
    found = banded_balls_in_bins(**SMALL, bands=8, seed=4)
    again = found.mechanism().delta(1.0, method="estimate", seed=77)
    assert abs(again.value - 1e-4) < 5 * 1.5e-2 * 1e-4
    assert found.noise_multiplier == found.mechanism().noise_multiplier
    assert "bands=8" in repr(found) and "estimate" in repr(found)
    # Random bins never hurt.
    assert found.noise_multiplier < unamplified(**SMALL, bands=8).noise_multiplier


# ------------------------------------------------------------------------- bad input
