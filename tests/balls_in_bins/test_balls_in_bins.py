"""BallsInBins: against reference values, closed forms and quadrature; each answer says what it is."""

import dataclasses
import math

import numpy as np
import pytest
from oracle_cases import load

import dplib
from dplib import Bracket, Estimate, NoBracketError, matrices, montecarlo

ROWS = load("bnb")
MAKERS = {
    "identity": lambda n: matrices.identity(n),
    "sqrt_banded": lambda n, h: matrices.optimal_counting(n, h),
    "sqrt": lambda n: matrices.optimal_counting(n),
    "geometric": lambda n, lam: matrices.toeplitz(lam ** np.arange(n)),
    "blt": lambda n, omega, lam: matrices.buffered_linear_toeplitz(n, omega, lam),
}


def mechanism(row):
    kind, *numbers = row["C"].values()
    return dplib.BallsInBins(MAKERS[kind](row["n"], *numbers), row["sigma"], row["b"], row["E"])


def label(row):
    return f"{row['C']['kind']}{row['C'].get('h', '')}-{row['n']}-{row['sigma']}"


SMALL = dplib.BallsInBins(matrices.optimal_counting(32, 8), 1.5, 8, 4)
IDENTITY = dplib.BallsInBins(matrices.identity(32), 1.5, 8, 4)

# --- reference values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=label)
def test_reference_values(row):
    """[N-3.2], [A-17] Both directions within four standard errors; where the reference has no digits, its magnitude."""
    training = mechanism(row)
    gram = training.gram()
    assert gram[0, 0] == pytest.approx(row["mode_norm2_first"], rel=1e-12)
    assert gram[-1, -1] == pytest.approx(row["mode_norm2_last"], rel=1e-12)
    assert gram[0, 1] == pytest.approx(row["gram_01"], rel=1e-12)
    for side in ("remove", "add"):
        found = training.delta(row["eps"], side, "estimate", samples=1024, seed=4)
        truth = row[f"delta_{side}"]
        if row[f"{side}_ok"]:
            assert abs(found.value - truth) <= 4 * math.hypot(found.standard_error, row[f"se_{side}"])
            assert found.standard_error < 0.08 * found.value
        else:
            assert 0.1 < found.value / truth < 10


# --- where the answer is known ---------------------------------------------------------------------------


def test_delta_and_epsilon_invert_each_other():
    for training, method in ((SMALL, "estimate"), (IDENTITY, "exact")):
        epsilon = training.epsilon(1e-4, method=method)
        at = epsilon.value if method == "estimate" else epsilon.upper
        delta = training.delta(at, method=method)
        assert (delta.value if method == "estimate" else delta.upper) == pytest.approx(1e-4, rel=0.02)
    assert isinstance(IDENTITY.epsilon(1e-4), Bracket)
    assert IDENTITY.epsilon(1e-4).lower <= IDENTITY.epsilon(1e-4).upper
    assert IDENTITY.epsilon(0.999).upper == 0 and SMALL.epsilon(0.999).value == 0


# --- which answer ----------------------------------------------------------------------------------------


def test_an_estimate_never_stands_for_a_guarantee():
    for call in (
        lambda: SMALL.delta(1.0, method="exact"),
        lambda: SMALL.epsilon(1e-3, method="exact"),
        lambda: dplib.calibrate(SMALL, epsilon=1.0, delta=1e-3, method="exact"),
    ):
        with pytest.raises(ValueError, match="method must be 'auto', 'estimate' or 'certificate'"):
            call()
    # Whoever names a failure probability wants a certificate.
    for method in ("auto", "exact", "estimate"):
        with pytest.raises(ValueError, match="failure_probability goes with method='certificate'"):
            IDENTITY.delta(1.0, method=method, failure_probability=1e-6)


def test_the_failure_probability_is_below_delta():
    assert SMALL.delta(1.0, method="certificate", samples=2**13).failure_probability == 1e-9
    tiny = dataclasses.replace(SMALL, noise_multiplier=7.0).delta(2.0, "remove", "certificate", samples=2**14)
    assert tiny.upper < 1e-9 and tiny.failure_probability <= tiny.upper / 5
    for failure in (0.01, 1e-3):
        with pytest.raises(ValueError, match="failure_probability must be .* below 0.001"):
            SMALL.epsilon(1e-3, method="certificate", failure_probability=failure)
        with pytest.raises(ValueError, match="failure_probability must be .* below 0.001"):
            SMALL.certified(1.0, 1e-3, failure_probability=failure)


def test_where_an_exact_bracket_fails_auto_estimates(monkeypatch):
    def fails(*_):
        raise NoBracketError("no")

    monkeypatch.setattr(dplib.balls_in_bins.exact.lognormal_sum, "bracket", fails)
    assert isinstance(IDENTITY.delta(1.0), Estimate)
    with pytest.raises(NoBracketError):
        IDENTITY.delta(1.0, method="exact")


# --- calibration -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["remove", "add", "both"])
@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-4), (0.5, 1e-8), (0.5, 0.6)])
def test_exact_noise_is_the_smallest(epsilon, delta, direction):
    found = dplib.calibrate(IDENTITY, epsilon=epsilon, delta=delta, direction=direction)
    assert found.delta(epsilon, direction).upper <= delta
    less = dataclasses.replace(found, noise_multiplier=found.noise_multiplier * (1 - 2e-5))
    assert less.delta(epsilon, direction).upper > delta


def test_the_search_for_noise_walks_past_places_without_a_bracket(monkeypatch):
    """At some noises between the one without random bins and the smallest there is no bracket."""
    known, bracket = dplib.calibrate(IDENTITY, epsilon=1.0, delta=1e-4).noise_multiplier, dplib.balls_in_bins.exact.bracket
    worst = [1.05]

    def refuses(gram, epsilon, side):
        if math.sqrt(IDENTITY.gram().max() / gram.max()) > worst[0] * known:
            raise NoBracketError("too far")
        return bracket(gram, epsilon, side)

    monkeypatch.setattr(dplib.balls_in_bins.exact, "bracket", refuses)
    assert dplib.calibrate(IDENTITY, epsilon=1.0, delta=1e-4).noise_multiplier == pytest.approx(known, rel=2e-6)
    worst[0] = 0.0
    with pytest.raises(NoBracketError, match="no bracket of delta near"):
        dplib.calibrate(IDENTITY, epsilon=1.0, delta=1e-4)


@pytest.mark.parametrize("epsilon, delta, samples, failure", [(1.0, 1e-5, 2**14, 1e-9), (2.0, 1e-10, 2**15, 1e-13)])
def test_certified_noise_comes_with_its_certificate(epsilon, delta, samples, failure):
    """[N-2.1s] The failure probability, of a delta below 1e-6 a thousandth, is taken off delta."""
    found, proved = SMALL.certified(epsilon, delta, samples=samples)
    estimate = dplib.calibrate(SMALL, epsilon=epsilon, delta=delta, method="estimate")
    assert proved.upper + proved.failure_probability <= delta and proved.failure_probability == failure
    assert 1 <= found.noise_multiplier / estimate.noise_multiplier <= 1.02
    assert dplib.calibrate(SMALL, epsilon=epsilon, delta=delta, method="certificate", samples=samples) == found


def test_release_verifies_the_mechanism():
    """[N-2.1]"""
    room = dplib.calibrate(SMALL, epsilon=2.0, delta=5e-3)
    assert room.release(2.0, 1e-2, threshold=8e-3)
    assert not room.release(2.0, 4.5e-3, threshold=4e-3)
    with pytest.raises(ValueError, match="most_samples"):
        room.release(2.0, 1e-9)


# --- bad input -------------------------------------------------------------------------------------------


def test_hardly_any_privacy_loss_is_below_the_floor():
    """Never 0: an upper end of 0 would be wrong."""
    one_batch = dplib.BallsInBins(matrices.identity(3), 2.0, 1, 3)
    assert one_batch.delta(300.0).upper == montecarlo.FLOOR
    for training in (SMALL, IDENTITY, one_batch):
        quiet = dataclasses.replace(training, noise_multiplier=1e4)
        for method in ("auto", "certificate"):
            assert quiet.delta(1.0, method=method).upper == montecarlo.FLOOR


def test_hardly_any_noise_is_named_as_such():
    """Modes too long for a certificate in double precision are refused by the noise multiplier, not by the Gram matrix."""
    uneven = matrices.dense(np.diag([30.0, 1.0, 1.0, 1.0]))
    training = dplib.BallsInBins(uneven, 1.0, 4, 1)
    with pytest.raises(ValueError, match=r"noise_multiplier must be larger for a certificate .*; got 1.0"):
        training.delta(3.0, method="certificate")
    # Where delta is nearly 1 that is the answer.
    even = dplib.BallsInBins(matrices.dense(np.diag([30.0, 29.0, 31.0, 30.0])), 1.0, 4, 1)
    assert even.delta(3.0, method="certificate").upper == pytest.approx(1.0)
