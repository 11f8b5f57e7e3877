"""One step of the Poisson-subsampled Gaussian: closed forms against multiple precision, and its theorems."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import special, stats

from dplib import mixtures
from dplib.lessons import one_step

DELTA = 1e-5


def exact_delta(epsilon, sigma, q):
    """The two-term form of the source in 60 digits, from the exact values of the floats."""
    with mp.workdps(60):
        epsilon, sigma, q = mpf(epsilon), mpf(sigma), mpf(q)
        middle = sigma * mp.log(1 + mp.expm1(epsilon) / q) / mp.sqrt(2)
        half = 1 / (2 * mp.sqrt(2) * sigma)
        return (q * mp.erfc(middle - half) - (mp.expm1(epsilon) + q) * mp.erfc(middle + half)) / 2


def exact_noise(epsilon, delta, q):
    """sigma(q) by bisection in 60 digits."""
    with mp.workdps(60):
        low, high = mp.log(mpf("1e-3")), mp.log(mpf("1e8"))
        for _ in range(120):
            middle = (low + high) / 2
            if exact_delta(epsilon, mp.exp(middle), q) > delta:
                low = middle
            else:
                high = middle
        return mp.exp(high)


def exact_elasticity(sigma, bar):
    """The integral over the threshold's two distances, in 60 digits."""
    with mp.workdps(60):
        sigma, bar = mpf(sigma), mpf(bar)
        minus, plus = (sigma * (bar + sign / (2 * sigma**2)) / mp.sqrt(2) for sign in (-1, 1))
        gap = mp.erfc(minus) - mp.erfc(plus)
        return mp.sqrt(mp.pi / 2) * sigma * gap * mp.exp(minus**2)


def random_steps(seed, count, largest=1.0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield 10 ** rng.uniform(-6, largest), 10 ** rng.uniform(-0.7, 2), 10 ** rng.uniform(-6, 0)


# ------------------------------------------------------------------- one step


def test_delta_against_multiple_precision():
    """[R-6] Relative error below 1e-12 where the value is a normal float, however small."""
    smallest = 1.0
    for epsilon, sigma, q in random_steps(1, 300):
        truth = exact_delta(epsilon, sigma, q)
        if truth < 1e-300:
            continue
        smallest = min(smallest, truth)
        assert abs(one_step.delta(epsilon, sigma, q) / truth - 1) < 1e-12
    assert smallest < 1e-100


def test_delta_is_the_mixture_closed_form_and_the_larger_direction():
    """[R-6], [C-9] Two routes through the library agree, and add is never larger than remove."""
    epsilon = np.array([0.0, 1e-3, 0.2, 1.0, 4.0])
    for _, sigma, q in random_steps(2, 40):
        pair = mixtures.binomial(1, q, sigma)
        remove, add = (pair.hockey_stick(epsilon, d) for d in ("remove", "add"))
        value = one_step.delta(epsilon, sigma, q)
        assert np.allclose(value, remove, rtol=1e-12, atol=1e-300)
        assert np.all(add <= value * (1 + 1e-12))


def test_delta_by_quadrature():
    """[R-6] The integral of the positive part, over the one interval where it is positive."""
    epsilon, sigma, q = 0.3, 0.8, 0.2
    x = np.linspace(one_step.threshold(epsilon, sigma, q), 12, 200001)
    with_record = q * stats.norm.pdf(x, 1, sigma) + (1 - q) * stats.norm.pdf(x, 0, sigma)
    positive = with_record - math.exp(epsilon) * stats.norm.pdf(x, 0, sigma)
    assert abs(positive[0]) < 1e-15 and np.all(positive[1:] > 0)
    integral = np.trapezoid(positive, x)
    assert one_step.delta(epsilon, sigma, q) == pytest.approx(integral, rel=1e-8)


def test_distances_are_those_of_the_threshold():
    """[R-6] r_minus and r_plus rebuild delta, and b = (r_plus + r_minus) / 2 is never negative."""
    for epsilon, sigma, q in random_steps(3, 50):
        minus, plus = one_step.threshold_distances(epsilon, sigma, q)
        threshold = one_step.threshold(epsilon, sigma, q)
        scale = math.sqrt(2) * sigma
        assert minus == pytest.approx((threshold - 1) / scale, rel=1e-9, abs=1e-12)
        assert plus == pytest.approx(threshold / scale, rel=1e-12)
        assert plus + minus >= 0
        value = (q * special.erfc(minus) - (math.expm1(epsilon) + q) * special.erfc(plus)) / 2
        assert one_step.delta(epsilon, sigma, q) == pytest.approx(value, rel=1e-6, abs=1e-15)


# ------------------------------------------------------- noise for a target


def test_reference_values_of_noise_and_slope():
    """[R-6.1] epsilon = 1, q = 0.1, delta = 1e-5."""
    assert f"{one_step.noise_multiplier(1.0, DELTA, 0.1):.5f}" == "1.25891"
    assert f"{one_step.noise_slope(1.0, DELTA, 0.1):.5f}" == "4.29789"


@pytest.mark.parametrize(
    "epsilon, delta, q",
    [(1.0, 1e-5, 0.1), (0.0, 1e-5, 0.5), (1e-9, 1e-9, 1e-4), (4.0, 1e-30, 1.0), (50.0, 1e-6, 0.9)],
)
def test_noise_against_multiple_precision(epsilon, delta, q):
    sigma, truth = one_step.noise_multiplier(epsilon, delta, q), exact_noise(epsilon, delta, q)
    assert 0 <= sigma / truth - 1 < 1e-11
    assert exact_delta(epsilon, sigma, q) <= delta


def test_noise_is_smallest_and_safe_over_a_wide_range():
    rng = np.random.default_rng(4)
    epsilon = np.where(rng.random(2000) < 0.1, 0.0, 10 ** rng.uniform(-9, 2, 2000))
    q = 10 ** rng.uniform(-12, 0, 2000)
    delta = q * 10 ** -rng.uniform(0.0044, 40, 2000)
    sigma = one_step.noise_multiplier(epsilon, delta, q)
    assert np.all(one_step.delta(epsilon, sigma, q) <= delta)
    assert np.all(one_step.delta(epsilon, sigma * (1 - 1e-10), q) > delta)


def test_slope_against_finite_differences():
    """[R-6.1] Relative 1e-8, by a fourth-order difference of sigma(q) in 60 digits."""
    for epsilon, delta, q in [(1.0, 1e-5, 0.1), (0.1, 1e-6, 0.9), (1e-4, 1e-5, 3e-5), (3.0, 1e-9, 1e-4)]:
        with mp.workdps(60):
            h = mpf(q) * mpf("1e-4")
            near, far = ([exact_noise(epsilon, delta, q + s * k * h) for s in (1, -1)] for k in (1, 2))
            slope = (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * h)
        assert one_step.noise_slope(epsilon, delta, q) == pytest.approx(float(slope), rel=1e-8)


def test_slope_is_the_formula_of_the_source():
    """[R-6.1] sigma' = sigma/q (erf(a - b) + erf(a + b)) / (2 a erf'(a - b)), with a = (r+ - r-)/2."""
    for epsilon, q in [(1.0, 0.1), (0.1, 0.5), (4e-5, 6e-5), (2.0, 1e-3)]:
        sigma = one_step.noise_multiplier(epsilon, DELTA, q)
        minus, plus = one_step.threshold_distances(epsilon, sigma, q)
        derivative = 2 / math.sqrt(math.pi) * math.exp(-(minus**2))
        formula = sigma / q * (special.erf(plus) - special.erf(minus)) / ((plus - minus) * derivative)
        assert one_step.noise_slope(epsilon, DELTA, q) == pytest.approx(formula, rel=1e-7)


def test_elasticity_against_multiple_precision():
    """[R-6.2x] Over all branches of the code; the integral over [0, 1] agrees where it is tame."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        sigma, epsilon = 10 ** rng.uniform(-1.4, 3), 10 ** rng.uniform(-6, 2)
        bar = one_step.unsampled_epsilon(epsilon, 0.5)
        truth = exact_elasticity(sigma, bar)
        assert abs(one_step.elasticity(epsilon, sigma, 0.5) / truth - 1) < 1e-11
    for sigma, bar in [(0.5, 0.01), (1.0, 3.0), (30.0, 0.2)]:
        integral = mp.quad(lambda v, m=0.5 / sigma**2, e=bar: mp.exp(m * v * (1 - v) - e * v), [0, 1])
        assert abs(exact_elasticity(sigma, bar) / integral - 1) < 1e-14


# ------------------------------------- where the effective noise falls


def grid_of_targets():
    epsilon, q = np.meshgrid(np.geomspace(1e-6, 4, 60), np.geomspace(1.05e-5, 1, 60), indexing="ij")
    return epsilon, q


def test_threshold_above_the_mean_is_sufficient():
    """[R-6.2] a < b gives sigma' < sigma / q; the converse fails, so it is not necessary."""
    epsilon, q = grid_of_targets()
    sigma = one_step.noise_multiplier(epsilon, DELTA, q)
    minus, _ = one_step.threshold_distances(epsilon, sigma, q)
    falls = one_step.noise_slope(epsilon, DELTA, q) < sigma / q
    assert np.all(falls[minus > 0]) and np.any(falls[minus < 0])
    assert np.all((minus > 0) == (one_step.threshold(epsilon, sigma, q) > 1))


def test_both_criteria_are_exact():
    """[R-6.3], [R-6.2x] delta below the edge agrees with the condition itself at every point of a 60 x 60 grid."""
    epsilon, q = grid_of_targets()
    sigma = one_step.noise_multiplier(epsilon, DELTA, q)
    minus, _ = one_step.threshold_distances(epsilon, sigma, q)
    by_threshold = one_step.effective_noise_falls(epsilon, DELTA, q, "threshold")
    assert np.array_equal(by_threshold, minus > 0) and 0 < by_threshold.mean() < 1
    falls = one_step.noise_slope(epsilon, DELTA, q) < sigma / q
    exact = one_step.effective_noise_falls(epsilon, DELTA, q)
    assert np.array_equal(exact, falls) and np.all(exact[by_threshold])


def test_boundary_in_multiple_precision():
    """[R-6.3] At sigma^2 = 1 / (2 epsilon_bar) the closed form of delta is the edge of the region."""
    for epsilon, q in [(1.0, 0.1), (1e-7, 0.3), (4e-5, 4e-5), (1e-3, 1.0)]:
        with mp.workdps(60):
            bar = mp.log1p(mp.expm1(mpf(epsilon)) / mpf(q))
            truth = exact_delta(epsilon, 1 / mp.sqrt(2 * bar), q)
            closed = mpf(q) / 2 * (1 - mp.exp(bar) * mp.erfc(mp.sqrt(bar)))
            assert abs(closed / truth - 1) < 1e-40
        assert one_step.boundary_delta(epsilon, q, "threshold") == pytest.approx(float(truth), rel=1e-12)


def test_steps_of_the_proof_of_monotonicity():
    """[R-6.3] slope in q: (erf s - (1 - e^{-s^2}) / (sqrt(pi) s)) / 2 > 0, s^2 = epsilon_bar, against a difference quotient."""
    for epsilon, q in [(1.0, 0.1), (1e-3, 0.5), (4e-5, 4e-5)]:
        s = math.sqrt(one_step.unsampled_epsilon(epsilon, q))
        formula = (math.erf(s) + math.expm1(-s * s) / (math.sqrt(math.pi) * s)) / 2
        h = 1e-4 * q
        ends = one_step.boundary_delta(epsilon, np.array([q + h, q - h]), "threshold")
        assert formula > 0 and formula == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)


def test_steps_of_the_exact_proof():
    """[R-6.2x] Bounds on m = 1 / (2 sigma^2) at elasticity 1, its slope, and m' <= 2 m / bar."""
    for bar in (1e-3, 0.05, math.log(2), 2.0, 9.0):
        critical = lambda e: 0.5 / (1 / float(one_step._critical_mu(np.array(e)))) ** 2
        m, eta = critical(bar), -math.expm1(-bar)
        assert bar + eta < m < 3 * bar
        slope = (critical(bar * 1.0001) - critical(bar * 0.9999)) / (2e-4 * bar)
        mean = 0.5 - (bar - eta) / (2 * m)
        assert slope == pytest.approx(2 * m * mean / ((m + bar) * mean - eta), rel=1e-5)
        assert 2 * m / (m + bar) < slope < 2 * m / bar


@pytest.mark.parametrize("condition", one_step.CONDITIONS)
def test_constants_are_sharp(condition):
    """[R-6.3], [R-6.2x] Just above the constant the square is safe; below it fails for small delta."""
    kappa = one_step.sharp_constant(condition)
    for delta in (1e-12, 1e-6, 1e-2, 0.2):
        corner = kappa * delta * (1 + 1e-6)
        if corner <= 1:
            side = np.geomspace(corner, 1, 60)
            epsilon, q = np.meshgrid(np.append(side, 20.0), side, indexing="ij")
            assert np.all(one_step.effective_noise_falls(epsilon, delta, q, condition))
    corner = kappa * 1e-9 * (1 - 1e-6)
    assert not one_step.effective_noise_falls(corner, 1e-9, corner, condition)


def test_corner_values_of_the_conjecture():
    """[R-6.3] a - b at q = epsilon = kappa delta, delta = 1e-5, for kappa = 3.83, 3.84, 4."""
    expected = {3.83: (2.3e-4, 0.1e-4), 3.84: (-9.8e-4, 0.1e-4), 4.0: (-0.01968, 1e-5)}
    for kappa, (value, tolerance) in expected.items():
        corner = kappa * DELTA
        sigma = one_step.noise_multiplier(corner, DELTA, corner)
        minus, _ = one_step.threshold_distances(corner, sigma, corner)
        assert -minus == pytest.approx(value, abs=tolerance)


def test_a_lower_bound_on_the_sampling_probability_is_needed():
    """[R-6.3] a >= b whenever q <= 2 delta, whatever epsilon is."""
    for epsilon in (1e-5, 0.1, 4.0, 100.0):
        assert not one_step.effective_noise_falls(epsilon, DELTA, 2 * DELTA, "threshold")


@pytest.mark.parametrize(
    "epsilon, peak, tolerance",
    [
        (4e-5, 1.526, 5e-4),
        (0.1, 1.135, 5e-4),
        (1.0, 1.113, 5e-4),
        (4.0, 1.097, 5e-4),
        (1e-5, 2.245, 5e-4),
        (1e-6, 11.54, 5e-3),
        (1e-7, 105.8, 5e-2),
    ],
)
def test_place_of_the_peak(epsilon, peak, tolerance):
    """[R-6.3], [R-6.2x] q / delta at the largest effective noise; a direct search agrees."""
    q = one_step.peak_probability(epsilon, DELTA)
    assert q / DELTA == pytest.approx(peak, abs=tolerance)
    near = q * np.array([0.99, 1, 1.01])
    effective = one_step.noise_multiplier(epsilon, DELTA, near) / near
    assert effective[1] > effective[0] and effective[1] > effective[2]


def test_effective_noise_has_a_single_peak():
    """[R-6.2x] Rising before, falling after, on a fine grid; rising throughout at epsilon = 0."""
    for epsilon in (1e-7, 1e-5, 0.01, 2.0):
        q = np.geomspace(1.001 * DELTA, 1, 4000)
        effective = one_step.noise_multiplier(epsilon, DELTA, q) / q
        rising = np.diff(effective) > 0
        assert np.count_nonzero(rising[1:] != rising[:-1]) == 1 and rising[0]
    effective = one_step.noise_multiplier(0.0, DELTA, q) / q
    assert np.all(np.diff(effective) > 0)
    assert one_step.peak_probability(0.0, DELTA) == 1.0


# ------------------------------------------------------------------ arguments


def test_a_budget_that_needs_no_noise_is_refused():
    for function in (one_step.noise_multiplier, one_step.noise_slope, one_step.effective_noise_falls):
        with pytest.raises(ValueError, match="no noise is needed.*got 1e-06"):
            function(1, 1e-5, [0.1, 1e-6])
