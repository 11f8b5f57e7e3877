"""The Gaussian mechanism against 50-digit arithmetic, and its two inverses."""

import math
import warnings

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplib import PoissonDPSGD, gaussian

EPS = np.finfo(float).eps
MUS = [1e-6, 1e-5, 1e-3, 0.03, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0, 1e4]
# Thresholds x = epsilon / mu - mu / 2, in standard deviations: delta from nearly 1 to 1e-300.
THRESHOLDS = [-35.0, -8.0, -3.01, -2.99, -1.0, 0.0, 0.3, 2.0, 5.0, 9.0, 20.0, 36.0]


def exact_log_delta(mu, epsilon):
    """log of Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu); the difference loses at most 40 of 140 digits."""
    with mp.workdps(140):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        tail = lambda x: mp.erfc(x / mp.sqrt(2)) / 2
        return mp.log(tail(epsilon / mu - mu / 2) - mp.exp(epsilon) * tail(epsilon / mu + mu / 2))


def room(mu, epsilon, log_delta):
    """Relative rounding of delta: the kernel's own, and that of the threshold epsilon / mu - mu / 2."""
    size = abs(epsilon) / mu + mu
    x = max(epsilon / mu - mu / 2, 0.0)
    return gaussian.TAIL_ERROR * (1 + abs(float(log_delta))) + 4 * EPS * size * (x + 2)


@pytest.mark.parametrize("mu", [1e-8, 1e-4, 0.01, 0.05])
@pytest.mark.parametrize("epsilon", [-1e-9, -1e-3, -0.3, -1.0, -5.0, -60.0])
def test_far_below_zero_a_small_shift_counts_over_its_whole_width(mu, epsilon):
    """The threshold lies thousands of deviations to the left, and the loss still moves across one shift."""
    assert gaussian.log_delta(mu, epsilon) == pytest.approx(float(exact_log_delta(mu, epsilon)), rel=1e-13, abs=2e-14)


@pytest.mark.parametrize("mu", MUS)
def test_delta_against_fifty_digits(mu):
    """[C-6] For every delta from nearly 1 to 1e-300, and negative epsilon too."""
    seen = []
    for x in THRESHOLDS:
        epsilon = mu * (x + mu / 2)
        exact = exact_log_delta(mu, epsilon)
        assert abs(gaussian.log_delta(mu, epsilon) - exact) <= room(mu, epsilon, exact)
        if exact > -700:
            assert gaussian.delta(mu, epsilon) == pytest.approx(float(mp.exp(exact)), rel=2e-12 + room(mu, epsilon, exact))
        seen.append(float(exact))
    assert max(seen) > min(math.log(mu), 0) - 2 and min(seen) < -640


@settings(max_examples=150)
@given(st.floats(-38, 1000), st.floats(math.log(1e-9), math.log(1e5)))
def test_kernel_stays_within_its_allowance(x, log_shift):
    """The brackets rely on TAIL_ERROR: no more than this is lost for any threshold and shift."""
    shift = math.exp(log_shift)
    with mp.workdps(60):
        mills = lambda t: mp.erfc(t / mp.sqrt(2)) * mp.exp(t * t / 2)
        # phi(x) (M(x) - M(x + a)), with digits to spare for the difference
        with mp.workdps(60 + int(0.9 * min(x, 0) ** 2) + 40):
            t, a = mp.mpf(x), mp.mpf(shift)
            exact = mp.log(mp.exp(-t * t / 2) * (mills(t) - mills(t + a)) / 2)
    error = abs(gaussian.log_tail_difference(x, shift) - exact)
    assert error <= gaussian.TAIL_ERROR * (1 + abs(exact))
    assert error <= gaussian._KERNEL_ERROR + 4 * EPS * abs(exact)  # what `calibrate` relies on


# --- inverses -----------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(st.floats(math.log(0.1), math.log(1e3)), st.floats(math.log(1e-15), math.log(0.5)))
def test_epsilon_where_delta_is_near_one(log_mu, log_miss):
    mu, delta = math.exp(log_mu), 1 - math.exp(log_miss)
    bracket = PoissonDPSGD(1 / mu, 1.0, 1).epsilon(delta)
    with mp.workdps(60):
        left = lambda e: mp.ncdf(e / mp.mpf(mu) - mp.mpf(mu) / 2) + mp.exp(e) * mp.ncdf(-e / mp.mpf(mu) - mp.mpf(mu) / 2)
        if bracket.lower > 0:
            assert left(mp.mpf(bracket.lower)) <= 1 - mp.mpf(delta) <= left(mp.mpf(bracket.upper))
        else:
            assert left(mp.mpf(bracket.upper)) >= 1 - mp.mpf(delta)
    assert bracket.width <= 3e-12 * bracket.upper + 1e-11 * mu * (1 + mu)


@settings(max_examples=150)
@given(st.floats(math.log(1e-12), math.log(1e24)), st.floats(math.log(1e-300), math.log(0.99)))
def test_calibrate_errs_to_the_safe_side(log_epsilon, log_delta):
    """Of more than half of all settings the nearest float would miss the target; mu up to 1e12."""
    epsilon, delta = math.exp(log_epsilon), math.exp(log_delta)
    mu, target = gaussian.calibrate(epsilon, delta), mp.log(mp.mpf(delta))
    assert exact_log_delta(mu, epsilon) <= target
    assert exact_log_delta(mu * (1 + 1e-12), epsilon) >= target


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1.0, 1e6, 1e24])
@pytest.mark.parametrize("delta", [5e-324, 0.9999, 1 - 1e-9, 1 - 2**-53])
def test_calibrate_is_safe_at_the_ends_of_delta(epsilon, delta):
    with mp.workdps(60):
        assert exact_log_delta(gaussian.calibrate(epsilon, delta), epsilon) <= mp.log(mp.mpf(delta))


@settings(max_examples=150)
@given(
    st.floats(-12, 12), st.integers(0, 8), st.integers(0, 9), st.floats(math.log(1e-300), math.log(0.999)), st.floats(-38, 38)
)  # fmt: skip
def test_brackets_of_any_size_contain_the_truth(exponent, group, steps, log_delta, x):
    """Certain participation: noise 1e-12 to 1e12, groups to 1e8, steps to 1e9."""
    run, delta = PoissonDPSGD(10**exponent, 1.0, 10**steps, 10**group), math.exp(log_delta)
    with mp.workdps(60):
        mu, target = mp.mpf(10**group) * mp.sqrt(10**steps) / mp.mpf(run.noise_multiplier), mp.log(mp.mpf(delta))
        found, epsilon = run.epsilon(delta), float(max(mu * (x + mu / 2), 0))
    assert exact_log_delta(mu, found.upper) <= target
    assert found.lower == 0 or exact_log_delta(mu, found.lower) >= target
    assert found.upper == 0 or found.lower > 0 or found.upper < 1e-9 * mu
    truth, found = mp.exp(exact_log_delta(mu, epsilon)), run.delta(epsilon)
    assert found.lower <= truth <= found.upper


# --- ends of the range --------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-300, 1e-155, 1e-9, 0.3, 50.0])
@pytest.mark.parametrize("x", [9e7, 1.1e8, 1e20, 1e90, 1e149])
def test_thresholds_far_out(mu, x):
    """Against the asymptotic series of the Mills ratio in many digits; nothing underflows on the way."""
    with mp.workdps(1200):
        y, a = mp.mpf(x), mp.mpf(mu)
        mills = lambda t: sum((-1) ** k * mp.fac2(2 * k - 1) * t ** (-2 * k - 1) for k in range(6))
        exact = mp.log(mills(y) - mills(y + a)) - y * y / 2 - mp.log(2 * mp.pi) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = float(gaussian.log_tail_difference(x, mu))
        assert gaussian.delta(mu, min(mu * (x + mu / 2), 1e100)) == 0
    assert abs(found - exact) <= gaussian.TAIL_ERROR * (1 + abs(exact))


@pytest.mark.parametrize("x", [1e120, 9e149])
def test_the_logarithm_of_delta_is_a_number_far_beyond_where_delta_is_zero(x):
    """-inf is kept for what is exactly zero, as long as x^2 is far from the largest float."""
    mu = 9e99 / x
    assert gaussian.log_delta(mu, 9e99) == pytest.approx(-x * x / 2, rel=1e-13)


@pytest.mark.parametrize("mu, epsilon, value", [(1e-310, 1.0, 0.0), (1e-5, 1e100, 0.0), (1e100, 1.0, 1.0), (1e100, 1e100, 1.0)])
def test_extreme_arguments_give_the_limit_never_nan(mu, epsilon, value):
    assert gaussian.delta(mu, epsilon) == value


def test_the_smallest_shifts_do_not_underflow():
    """delta(0) = 2 Phi(mu / 2) - 1 is mu / sqrt(2 pi) there."""
    for mu in (5e-324, 1e-300, 1e-280):
        assert gaussian.log_delta(mu, 0.0) == pytest.approx(math.log(mu) - 0.5 * math.log(2 * math.pi), abs=1e-12)
        assert gaussian.epsilon(mu, 1e-8) == 0.0


@pytest.mark.parametrize("mu", [1e-150, 1e-154, 1e-300, 0.0])
def test_where_there_is_no_shift_to_speak_of(mu):
    for epsilon in (-1.0, -1e-3):
        assert gaussian.delta(mu, epsilon) == pytest.approx(-math.expm1(epsilon), rel=1e-12)
    assert gaussian.delta(mu, 1e-5) == 0
