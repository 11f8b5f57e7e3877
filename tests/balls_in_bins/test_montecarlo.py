"""Monte Carlo accounting from a Gram matrix: plain sampling, certificates, Estimate-Verify-Release."""

import math

import numpy as np
import pytest

from dplib import gaussian, montecarlo
from dplib.results import Estimate, NoBracketError

# Two orthogonal modes of norm 1 at epsilon = 0.5: delta by quadrature.
TWO = np.eye(2)
TWO_DELTA = {"remove": 0.149178, "add": 0.142687}
# One mode: the Gaussian mechanism.
MU = 1.5
ONE = np.array([[MU**2]])
CORRELATED = np.array([[1.0, 0.7, 0.4], [0.7, 1.2, 0.6], [0.4, 0.6, 0.9]])


def within(estimate, truth, errors=4.0):
    return abs(estimate.value - truth) <= errors * estimate.standard_error


# --- plain sampling --------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["remove", "add"])
def test_plain_sampling_agrees_with_quadrature_and_closed_form(side):
    """[N-MC] The mean of (1 - e^(eps - loss))_+ over the pair, in each direction."""
    found = montecarlo.plain(TWO, 0.5, side, samples=200_000, seed=1)
    assert within(found, TWO_DELTA[side]) and found.standard_error < 1e-3
    truth = gaussian.delta(MU, 1.0)
    assert within(montecarlo.plain(ONE, 1.0, side, samples=100_000), truth)
    # Equal modes are one mode.
    assert within(montecarlo.plain(np.full((3, 3), MU**2), 1.0, side, samples=100_000), truth)


def test_upper_ends_of_plain_sampling_cover():
    """The Chernoff-Hoeffding end is below the truth in at most 2.5% of the runs."""
    truth = gaussian.delta(MU, 3.0)
    uppers = [montecarlo.plain(ONE, 3.0, "remove", samples=300, seed=seed).upper for seed in range(300)]
    assert np.mean(np.array(uppers) < truth) <= 0.025
    # No large loss at all was seen: the rule of three.
    none = montecarlo.plain(ONE * 1e-4, 5.0, "remove", samples=300)
    assert none.value == 0 and none.upper == pytest.approx(-math.expm1(math.log(0.025) / 300), rel=1e-6)


# --- lines and certificates ------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["remove", "add"])
def test_lines_agree_with_quadrature_and_plain_sampling(side):
    """[A-17] Unbiased: three routes to the same number."""
    found = montecarlo.estimate(TWO, 0.5, side, seed=2)
    assert isinstance(found, Estimate) and found.method == "lines" and found.upper > found.value
    assert within(found, TWO_DELTA[side]) and found.standard_error < 0.01 * found.value
    plain = montecarlo.plain(CORRELATED, 0.7, side, samples=200_000)
    lines = montecarlo.estimate(CORRELATED, 0.7, side)
    assert abs(plain.value - lines.value) <= 4 * math.hypot(plain.standard_error, lines.standard_error)


def test_values_below_the_floor_are_reported_as_such():
    found = montecarlo.estimate(CORRELATED, 60.0)
    assert found.value == montecarlo.FLOOR and "below 1e-300" in found.method
    proved = montecarlo.certify(CORRELATED, 60.0)
    assert proved.upper == montecarlo.FLOOR
    # Small, but above the floor: right in magnitude.
    small = montecarlo.estimate(CORRELATED * 0.03, 5.0, "remove")
    bound = gaussian.delta(math.sqrt(1.2 * 0.03), 5.0)
    assert 1e-250 < small.value < bound < 1e-150


@pytest.mark.parametrize("side", ["remove", "add"])
def test_hardly_any_loss_at_all_is_sampled_as_well(side):
    """Modes of norm 1e-10 and epsilon 0: delta is nearly that of their mean, and never less, by data processing."""
    mean = gaussian.delta(math.sqrt(CORRELATED.mean()) * 1e-10, 0.0)
    found = montecarlo.estimate(CORRELATED * 1e-20, 0.0, side)
    assert within(found, mean) and found.standard_error < 1e-3 * mean
    with pytest.raises(NoBracketError, match="noise is too large to sample"):
        montecarlo.estimate(CORRELATED * 1e-26, 0.0, side)
    assert montecarlo.estimate_epsilon(CORRELATED * 1e-200, 1e-12, side).upper == 0


def test_a_certificate_is_never_worse_than_no_random_bins_at_all():
    """Where the modes are nearly equal the Gaussian bound is all but exact, and needs no samples."""
    gram = np.full((4, 4), MU**2)
    for side in ("remove", "add"):
        truth = gaussian.delta(MU, 3.0)
        assert truth <= montecarlo.certify(gram, 3.0, side, samples=1000).upper <= truth * (1 + 1e-9)
    gram[0, 0] *= 1 + 1e-9
    assert montecarlo.certify(gram, 1.0, samples=1000).upper <= gaussian.delta(MU, 1.0) * (1 + 1e-8)


# --- Estimate-Verify-Release -----------------------------------------------------------------------------


def test_true_claims_with_room_are_accepted_and_false_ones_refused():
    found = montecarlo.release(ONE, gaussian.epsilon(MU, 0.007), 0.01, seed=3)
    assert found and found.accepted and "accepted" in str(found)
    assert found.threshold == 0.008 and found.samples == montecarlo.verification_samples(0.008, 0.01)
    assert within(found.estimate, 0.007, 5) and found.delta == 0.01
    found = montecarlo.release(ONE, gaussian.epsilon(MU, 0.02), 0.01)
    assert not found and not found.accepted and "refused" in str(found)


def test_a_large_claim_is_verified_by_two_samples():
    found = montecarlo.release(TWO * 1e-4, 2.0, 0.9, threshold=0.4)
    assert found.accepted and found.samples == 2


def test_the_larger_direction_decides():
    """[C-9m] Orthogonal modes: add alone would have passed."""
    gram = np.eye(8) * 2.0
    sides = {side: montecarlo.plain(gram, 1.0, side, samples=50_000).value for side in ("remove", "add")}
    assert sides["remove"] > 1.3 * sides["add"]
    between = (sides["remove"] + sides["add"]) / 2
    assert not montecarlo.release(gram, 1.0, min(0.9, 1.1 * between), threshold=between)


# --- bad input -------------------------------------------------------------------------------------------
