"""The smallest noise multiplier: its upper bound meets the target, and slightly less noise does not."""

import dataclasses
import math

import numpy as np
import pytest

import dplib
from dplib import Bracket, FixedBatchDPSGD, LastIterate, PoissonDPSGD, accounting, calibrate
from dplib.calibration import effective_noise
from dplib.results import UpperEnd

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
    assert type(found) is type(mechanism) and type(found.noise_multiplier) is UpperEnd


@pytest.mark.parametrize("q, steps", [(0.0, 100), (1e-7, 1), (1e-7, 5)])
def test_a_target_that_every_noise_meets_has_no_smallest_noise(q, steps):
    """A record that is never sampled, or with a probability below delta."""
    for make in (PoissonDPSGD, LastIterate):
        with pytest.raises(ValueError, match="met by every noise multiplier"):
            calibrate(make(1.0, q, steps), epsilon=1.0, delta=1e-6)
    if q > 0:
        with pytest.raises(ValueError, match="no noise is needed"):
            effective_noise([0.1, q], steps, 1.0, 1e-6)


# --- few rounds, rare sampling --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "q, steps, epsilon, expected",
    [(0.001, 10, 0.125, 0.701845429), (0.001, 1000, 1.0, 0.640945438), pytest.param(0.001, 2, 4.0, None, marks=pytest.mark.trust), pytest.param(1e-4, 100, 0.25, None, marks=pytest.mark.trust)],
)
def test_few_rounds_and_rare_sampling(q, steps, epsilon, expected):
    """Certified at delta = 1e-5, larger of both directions; the stated values are from another program's grid."""
    found = calibrate(PoissonDPSGD(1.0, q, steps), epsilon=epsilon, delta=1e-5)
    assert found.delta(epsilon).upper <= 1e-5
    assert dataclasses.replace(found, noise_multiplier=found.noise_multiplier * (1 - 1e-3)).delta(epsilon).upper > 1e-5
    if expected:
        # From above, by what the width of a bracket from the lattice asks for.
        assert expected * (1 - 2e-9) <= found.noise_multiplier <= expected * (1 + 1e-6)


# --- effective noise ------------------------------------------------------------------------------------

RATES = np.array([0.3, 0.004, 1.0, 0.05, 0.05])


def test_an_array_is_solved_like_its_entries():
    """In any order and shape, with repeats; every entry to the tolerance, on the safe side."""
    together = effective_noise(RATES, 100, 1.0, 1e-5)
    alone = [effective_noise(float(q), 100, 1.0, 1e-5) for q in RATES]
    assert all(type(value) is float for value in alone) and together.shape == RATES.shape
    assert np.allclose(together, alone, rtol=1.1e-8, atol=0)
    shuffled = np.random.default_rng(0).permutation(len(RATES))
    assert np.allclose(effective_noise(RATES[shuffled], 100, 1.0, 1e-5), together[shuffled], rtol=1.1e-8, atol=0)
    assert np.allclose(effective_noise(RATES[:2].reshape(2, 1), 100, 1.0, 1e-5).ravel(), together[:2], rtol=1.1e-8, atol=0)
    for q, value in zip(RATES, together):
        exact = calibrate(PoissonDPSGD(1.0, float(q), 100), epsilon=1.0, delta=1e-5).noise_multiplier / q
        # At the smallest rate the lattice answers: each search ends within the width of its bracket.
        assert value == pytest.approx(exact, rel=3e-7 if q == 0.004 else 1.5e-8)


@pytest.mark.parametrize("direction", ["remove", "add", "both"])
@pytest.mark.parametrize("tolerance", [1e-8, 1e-4, 1e-2])
def test_effective_noise_meets_the_target_and_less_does_not(direction, tolerance):
    rates, epsilon = np.array([0.01, 0.1, 0.6]), 0.25
    for q, value in zip(rates, effective_noise(rates, 30, epsilon, 1e-6, direction=direction, tolerance=tolerance)):
        run = PoissonDPSGD(value * q, float(q), 30)
        quieter = PoissonDPSGD(value * q * (1 - 2 * tolerance), float(q), 30)
        assert run.delta(epsilon, direction).upper <= 1e-6 < quieter.delta(epsilon, direction).upper


@pytest.mark.parametrize("q, steps, delta", [(0.01, 30, 1e-6), (0.3, 2, 1e-3), (0.01, 101, 0.02)])
def test_adding_without_noise_costs_the_loss_of_never_being_sampled(q, steps, delta):
    """As sigma -> 0, delta tends to max(0, 1 - e^epsilon (1 - q)^T): beyond that no noise is needed."""
    epsilon = steps * -math.log1p(-q) + math.log1p(-delta)
    limit = lambda epsilon: max(0.0, -math.expm1(epsilon + steps * math.log1p(-q)))
    for above in (1e-3, 0.5):
        assert limit(epsilon + above) < delta
        target = {"epsilon": epsilon + above, "delta": delta, "direction": "add"}
        with pytest.raises(ValueError, match="no noise is needed"):
            calibrate(PoissonDPSGD(1.0, q, steps), **target)
        with pytest.raises(ValueError, match="no noise is needed"):
            effective_noise(q, steps, **target)
    assert limit(epsilon * 0.7) > delta
    found = calibrate(PoissonDPSGD(1.0, q, steps), epsilon=epsilon * 0.7, delta=delta, direction="add")
    assert found.delta(epsilon * 0.7, "add").upper <= delta and found.noise_multiplier > 0.05


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_a_wide_bracket_costs_noise(direction, monkeypatch):
    """The upper end meets the target, also where the bracket is wide."""
    answer = accounting.side_log_delta

    def wide(*arguments, **options):
        bracket = answer(*arguments, **options)
        return Bracket(bracket.lower - 1, bracket.upper + 1, bracket.method)

    mechanism = PoissonDPSGD(1.0, 0.1, 50)
    narrow = calibrate(mechanism, epsilon=0.5, delta=1e-5, direction=direction)
    monkeypatch.setattr(accounting, "side_log_delta", wide)
    found = calibrate(mechanism, epsilon=0.5, delta=1e-5, direction=direction)
    assert found.noise_multiplier > narrow.noise_multiplier * 1.01
    monkeypatch.undo()
    assert found.delta(0.5, direction).upper == pytest.approx(1e-5 / math.e, rel=1e-6)


def test_phases_have_no_one_noise_and_bounds_one_method():
    phases = dplib.compose([dplib.PoissonDPSGD(1.0, 0.1, 10), dplib.PoissonDPSGD(2.0, 0.1, 10)])
    with pytest.raises(TypeError, match="mechanism must have one noise multiplier"):
        dplib.calibrate(phases, epsilon=2.0, delta=1e-6)
    for mechanism, allowed in ((dplib.RandomAllocation(1.0, 8, 2), "'auto', 'bound'"), (dplib.MatrixMechanism(dplib.matrices.identity(8), 1.0, 0.1), "'auto',")):
        with pytest.raises(ValueError, match=f"method must be one of .{allowed}"):
            dplib.calibrate(mechanism, epsilon=2.0, delta=1e-6, method="estimate")
