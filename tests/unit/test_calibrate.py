"""The smallest noise multiplier: its upper bound meets the target, and slightly less noise does not."""

import dataclasses
import math

import pytest

import dplib
from dplib import FixedBatchDPSGD, LastIterate, PoissonDPSGD, calibrate, gaussian

CASES = [
    (PoissonDPSGD(1.0, 0.01, 2000), 1.0, 1e-6, "both"),
    (PoissonDPSGD(1.0, 0.01, 2000), 1.0, 1e-6, "add"),
    (PoissonDPSGD(5.0, 0.1, 500, 4), 3.0, 1e-8, "both"),
    (FixedBatchDPSGD(1.0, 50, 2000, 1000), 2.0, 1e-5, "both"),
    (FixedBatchDPSGD(1.0, 50, 2000, 1000, 3), 2.0, 1e-5, "remove"),
    (LastIterate(1.0, 0.01, 2000), 0.5, 1e-6, "both"),
    (PoissonDPSGD(1.0, 0.2, 1), 1.0, 1e-6, "both"),
    (PoissonDPSGD(3.0, 1.0, 100, 2), 1.0, 1e-6, "both"),
    (PoissonDPSGD(1.0, 0.01, 1000), 1.0, 1e-30, "both"),
]


@pytest.mark.parametrize("mechanism, epsilon, delta, direction", CASES)
def test_the_upper_bound_meets_the_target_and_less_noise_does_not(mechanism, epsilon, delta, direction):
    found = calibrate(mechanism, epsilon=epsilon, delta=delta, direction=direction)
    assert found.delta(epsilon, direction).upper <= delta
    quieter = dataclasses.replace(found, noise_multiplier=found.noise_multiplier * (1 - 1e-8))
    assert quieter.delta(epsilon, direction).upper > delta
    # Everything else is as it was, and so is the caller's mechanism.
    assert dataclasses.replace(found, noise_multiplier=mechanism.noise_multiplier) == mechanism
    assert type(found) is type(mechanism) and type(found.noise_multiplier) is float


@pytest.mark.parametrize("steps, k", [(1, 1), (100, 3)])
@pytest.mark.parametrize("epsilon, delta", [(0.0, 0.01), (0.5, 1e-6), (8.0, 1e-100)])
def test_without_sampling_the_gaussian_formula_gives_the_same(steps, k, epsilon, delta):
    """[C-6] sigma = k sqrt(T) / mu."""
    found = calibrate(PoissonDPSGD(1.0, 1.0, steps, k), epsilon=epsilon, delta=delta)
    exact = k * math.sqrt(steps) / gaussian.calibrate(epsilon, delta)
    assert exact * (1 - 1e-11) <= found.noise_multiplier <= exact * (1 + 1e-8)


@pytest.mark.parametrize("guess", [0.05, 0.6, 7.0, 300.0])
def test_the_first_guess_does_not_matter(guess):
    expected = calibrate(LastIterate(1.0, 0.1, 300), epsilon=1.0, delta=1e-6).noise_multiplier
    found = calibrate(LastIterate(guess, 0.1, 300), epsilon=1.0, delta=1e-6).noise_multiplier
    assert found == pytest.approx(expected, rel=1.1e-8)


def test_known_noise_is_found_again():
    """Calibrating to what a mechanism has returns its own noise."""
    run = PoissonDPSGD(0.8, 0.02, 1000, 2)
    epsilon = run.epsilon(1e-6).upper
    found = calibrate(dataclasses.replace(run, noise_multiplier=3.0), epsilon=epsilon, delta=1e-6)
    assert found.noise_multiplier == pytest.approx(0.8, rel=2e-8)


def test_both_directions_need_the_larger_noise():
    run = PoissonDPSGD(1.0, 0.02, 500)
    noise = {
        d: calibrate(run, epsilon=1.0, delta=1e-6, direction=d).noise_multiplier for d in ("remove", "add", "both")
    }
    assert noise["both"] == pytest.approx(max(noise["remove"], noise["add"]), rel=1e-8)
    assert abs(noise["remove"] - noise["add"]) > 1e-3


def test_harder_targets_need_more_noise():
    run = LastIterate(1.0, 0.05, 200)
    noise = lambda epsilon, delta: calibrate(run, epsilon=epsilon, delta=delta).noise_multiplier
    assert noise(2.0, 1e-6) < noise(1.0, 1e-6) < noise(1.0, 1e-7) < noise(0.0, 1e-7)


@pytest.mark.parametrize(
    "mechanism, delta",
    [
        (PoissonDPSGD(1.0, 0.0, 100), 1e-6),  # never sampled
        (PoissonDPSGD(1.0, 1e-7, 1), 1e-6),  # sampled with a probability below delta
        (LastIterate(1.0, 1e-9, 100), 1e-6),
        (PoissonDPSGD(1.0, 1e-7, 5), 1e-6),
    ],
    ids=["q = 0", "q < delta", "T q < delta, last", "T q < delta"],
)
def test_a_target_that_every_noise_meets_has_no_smallest_noise(mechanism, delta):
    with pytest.raises(ValueError, match="met by every noise multiplier"):
        calibrate(mechanism, epsilon=1.0, delta=delta)


def test_targets_are_given_by_name_only():
    with pytest.raises(TypeError):
        calibrate(CASES[0][0], 1.0, 1e-6)
    with pytest.raises(TypeError):
        calibrate(CASES[0][0], epsilon=1.0)
    assert dplib.calibrate is calibrate
