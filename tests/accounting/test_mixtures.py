"""Scalar mixture pairs: exact weights, losses and one-round deltas against long arithmetic, and their order."""

import math
import warnings
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, special

import dplib
from dplib import accounting, gaussian, mixtures
from dplib.mixtures import Mixture
from dplib.results import NoBracketError

EPS = np.finfo(float).eps
DIRECTIONS = ("remove", "add")
GRID = np.array([-3.0, -1.0, -0.2, 0.0, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0])


@st.composite
def pairs(draw, most=4, zero=None):
    """Mixtures with 1 to `most` components; `zero`: whether some sensitivity is 0."""
    size = draw(st.integers(1 if zero is None else 2, most))
    sensitivities = draw(st.lists(st.floats(0.05, 4), min_size=size, max_size=size))
    if draw(st.booleans()) if zero is None else zero:
        sensitivities[0] = 0.0
    weights = np.array(draw(st.lists(st.floats(1e-4, 1), min_size=size, max_size=size)))
    return Mixture(sensitivities, weights / weights.sum(), draw(st.floats(0.3, 5)))


class Exact:
    """A mixture pair in long arithmetic, from its exact doubles."""

    def __init__(self, pair, digits=60):
        self.digits = digits
        with mp.workdps(digits):
            self.sigma = mp.mpf(pair.noise_multiplier)
            self.atoms = [(mp.mpf(s), mp.exp(mp.mpf(w))) for s, w in zip(pair.sensitivities, pair.log_probabilities)]
            # The smaller weights are known best; the largest is what they leave of 1.
            top = max(range(len(self.atoms)), key=lambda j: self.atoms[j][1])
            rest = mp.fsum(p for j, (_, p) in enumerate(self.atoms) if j != top)
            self.atoms[top] = (self.atoms[top][0], 1 - rest)

    def ratio(self, x):
        return mp.fsum(p * mp.exp((s * x - s * s / 2) / self.sigma**2) for s, p in self.atoms)

    def loss(self, x):
        with mp.workdps(self.digits):
            return mp.log(self.ratio(mp.mpf(x)))

    def hockey_stick(self, epsilon, direction):
        """delta through the threshold, found by bisection and Newton's method."""
        with mp.workdps(self.digits):
            if all(s == 0 for s, _ in self.atoms):
                return max(mp.mpf(0), 1 - mp.exp(mp.mpf(epsilon)))
            level = mp.mpf(epsilon if direction == "remove" else -epsilon)
            floor = sum(p for s, p in self.atoms if s == 0)
            if mp.exp(level) <= floor:  # the loss never falls to the level
                return mp.mpf(0) if direction == "add" else 1 - mp.exp(level)
            x = mp.mpf(1)
            while self.ratio(x) < mp.exp(level):
                x *= 2
            for _ in range(2000):  # the loss is convex: Newton's method from above never overshoots
                terms = [(s, p * mp.exp((s * x - s * s / 2) / self.sigma**2)) for s, p in self.atoms]
                ratio = mp.fsum(t for _, t in terms)
                slope = mp.fsum(s * t for s, t in terms) / ratio / self.sigma**2
                step = (mp.log(ratio) - level) / slope
                x -= step
                if abs(step) < mp.mpf(10) ** (20 - self.digits) * (1 + abs(x)) * max(1, self.sigma**2):
                    break
            else:
                raise ArithmeticError("the threshold was not found")
            tail = lambda y: mp.erfc(y / self.sigma / mp.sqrt(2)) / 2
            if direction == "remove":
                return mp.fsum(p * tail(x - s) for s, p in self.atoms) - mp.exp(level) * tail(x)
            return tail(-x) - mp.exp(-level) * mp.fsum(p * tail(s - x) for s, p in self.atoms)


# --- weights of the constructors against exact fractions ------------------------------------------------


def weights_agree(pair, exact, scale):
    """Every log-weight within the error that the pair itself claims, down to e^-100 of the largest."""
    exact = {scale * j: weight for j, weight in exact.items() if weight}
    with mp.workdps(40):
        logs = {s: mp.log(mp.mpf(w.numerator) / w.denominator) for s, w in exact.items()}
        top = max(logs.values())
        assert set(pair.sensitivities) <= set(logs)
        for s, log_p in zip(pair.sensitivities, pair.log_probabilities):
            if logs[s] > top - 100:
                assert abs(log_p - logs[s]) <= pair.log_probability_error
        missing = set(logs) - set(pair.sensitivities)
        assert all(logs[s] < top - 700 for s in missing)
    assert math.fsum(pair.probabilities) == pytest.approx(1, abs=1e-12)
    assert 0 < pair.log_probability_error < 1e-11


@settings(max_examples=40)
@given(st.integers(1, 60), st.floats(1e-12, 1 - 1e-9))
def test_binomial_weights_against_fractions(k, q):
    """[G-3.1]"""
    rate = Fraction(q)
    exact = {j: math.comb(k, j) * rate**j * (1 - rate) ** (k - j) for j in range(k + 1)}
    weights_agree(mixtures.binomial(k, q, 1.0), exact, 1.0)


@pytest.mark.parametrize("k, q", [(1000, 0.01), (1000, 0.5), (1001, 0.01), (1500, 1e-4), (3000, 0.3)])
def test_large_binomial_weights_against_fractions(k, q):
    """Beyond 1000 trials the weights come from ratios instead."""
    rate = Fraction(q)
    near = range(max(0, int(k * q) - 200), min(k, int(k * q) + 300) + 1)
    pair = mixtures.binomial(k, q, 1.0)
    with mp.workdps(40):
        r = mp.mpf(rate.numerator) / rate.denominator
        exact = {j: mp.log(mp.mpf(math.comb(k, j))) + j * mp.log(r) + (k - j) * mp.log(1 - r) for j in near}
    top, compared = max(exact.values()), 0
    for s, log_p in zip(pair.sensitivities, pair.log_probabilities):
        if s in exact and exact[s] > top - 100:
            compared += 1
            assert abs(log_p - exact[s]) <= pair.log_probability_error
    assert compared > 5 and pair.log_probability_error < 1e-10


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(0, 300), st.integers(1, 30))
def test_hypergeometric_weights_against_fractions(batch, spare, k):
    """[G-3.3] 2 * Hypergeometric(B, n + k, k), n records in the smaller dataset."""
    n = batch + spare
    total = math.comb(n + k, k)
    exact = {m: Fraction(math.comb(batch, m) * math.comb(n + k - batch, k - m), total) for m in range(k + 1)}
    weights_agree(mixtures.hypergeometric(batch, n, k, 1.0), exact, 2.0)


@pytest.mark.parametrize("batch, n, k", [(500, 50_000, 1000), (500, 500, 1000), (2000, 4000, 1000), (1, 10**6, 1000)])
def test_large_hypergeometric_weights_against_fractions(batch, n, k):
    ways = lambda m: math.comb(batch, m) * math.comb(n + k - batch, k - m)
    exact = {m: Fraction(ways(m), math.comb(n + k, k)) for m in range(min(batch, k) + 1)}
    weights_agree(mixtures.hypergeometric(batch, n, k, 1.0), exact, 2.0)


def test_hypergeometric_of_one_record_by_hand():
    """[G-3.3] One record out of n + 1, five drawn: it moves the sum by 2 with probability 5 / 101."""
    pair = mixtures.hypergeometric(5, 100, 1, 3.0)
    assert pair.sensitivities.tolist() == [0.0, 2.0]
    assert pair.probabilities == pytest.approx([96 / 101, 5 / 101], rel=1e-14)


@settings(max_examples=40)
@given(st.integers(1, 30), st.floats(1e-6, 1), st.floats(0.1, 3), st.floats(0.3, 3))
def test_product_of_equal_parts_is_binomial(n, q, size, sigma):
    """[M-4.2] equal sensitivities, equal probabilities."""
    product = mixtures.product([q] * n, [size] * n, sigma * size)
    binomial = mixtures.binomial(n, q, sigma)
    assert product.sensitivities == pytest.approx(size * binomial.sensitivities, rel=1e-11)
    assert product.probabilities == pytest.approx(binomial.probabilities, rel=1e-11, abs=1e-300)
    for direction in DIRECTIONS:
        assert product.hockey_stick(GRID, direction) == pytest.approx(
            binomial.hockey_stick(GRID, direction), rel=1e-9, abs=1e-14
        )


def test_product_ignores_order_and_empty_parts():
    plain = mixtures.product([0.3, 0.6, 0.2], [1.0, 2.0, 0.5], 1.0)
    padded = mixtures.product([0.2, 0.9, 0.6, 0.0, 0.3], [0.5, 0.0, 2.0, 7.0, 1.0], 1.0)
    assert padded.sensitivities.tolist() == plain.sensitivities.tolist()
    assert padded.probabilities == pytest.approx(plain.probabilities, rel=1e-14)
    certain = mixtures.product([1.0, 1.0], [1.5, 2.0], 1.0)
    assert certain.is_gaussian and certain.sensitivities.tolist() == [3.5]
    assert mixtures.product([0.0, 0.5], [1.0, 0.0], 1.0).is_trivial


def test_product_merges_sums_that_differ_by_rounding_only():
    pair = mixtures.product([0.5, 0.5, 0.5], [0.1, 0.2, 0.3], 1.0)
    assert len(pair.sensitivities) == 7  # 0.1 + 0.2 and 0.3 are one point
    assert max(0.1 + 0.2, 0.3) in pair.sensitivities  # the larger one, on the safe side


def test_product_refuses_too_many_points():
    chances, sizes = [0.5] * 12, [2.0**-j for j in range(12)]
    assert len(mixtures.product(chances, sizes, 1.0).sensitivities) == 4096
    with pytest.raises(ValueError, match="sensitivities must have at most 1000 distinct sums"):
        mixtures.product(chances, sizes, 1.0, limit=1000)


# --- what a mixture keeps ---------------------------------------------------------------------------------


def test_components_are_sorted_merged_and_dropped():
    pair = Mixture([2.0, 0.0, 1.0, 2.0, 5.0], [0.1, 0.5, 0.2, 0.2, 0.0], 1.5)
    assert pair.sensitivities.tolist() == [0.0, 1.0, 2.0]
    assert pair.probabilities == pytest.approx([0.5, 0.2, 0.3], rel=1e-15)
    assert pair.shifts.tolist() == [0.0, 1 / 1.5, 2 / 1.5]
    assert not pair.is_trivial and not pair.is_gaussian
    assert "3 sensitivities" in repr(pair) and "1.5" in repr(pair)


@given(pairs(), st.randoms(use_true_random=False))
def test_redundant_components_change_nothing(pair, random):
    """[G-2.8] Split, shuffled and zero-probability components give the same pair."""
    atoms = []
    for s, p in zip(pair.sensitivities.tolist(), pair.probabilities.tolist()):
        atoms += [(s, p / 4), (s, 3 * p / 4)]
    atoms += [(9.0, 0.0), (0.0, 0.0)]
    random.shuffle(atoms)
    padded = Mixture([s for s, _ in atoms], [p for _, p in atoms], pair.noise_multiplier)
    assert padded.sensitivities.tolist() == pair.sensitivities.tolist()
    assert padded.log_probabilities == pytest.approx(pair.log_probabilities, rel=1e-13, abs=1e-15)
    for direction in DIRECTIONS:
        assert padded.hockey_stick(GRID, direction) == pytest.approx(
            pair.hockey_stick(GRID, direction), rel=1e-11, abs=1e-15
        )


@given(pairs(), st.integers(-40, 40))
def test_scale_invariance_is_exact_for_powers_of_two(pair, power):
    """[C-5] Sensitivities and noise scaled together change no digit."""
    scale, (s, p, sigma) = 2.0**power, (pair.sensitivities, pair.probabilities, pair.noise_multiplier)
    pair, scaled = Mixture(s, p, sigma), Mixture(scale * s, p, scale * sigma)
    x = np.linspace(-5, 9, 15)
    assert np.array_equal(scaled.loss(scale * x), pair.loss(x))
    assert np.array_equal(scaled.survival(scale * x), pair.survival(x))
    assert np.array_equal(scaled.density(scale * x) * scale, pair.density(x))
    assert np.array_equal(scaled.inverse_loss(GRID), scale * pair.inverse_loss(GRID))
    for direction in DIRECTIONS:
        assert np.array_equal(scaled.hockey_stick(GRID, direction), pair.hockey_stick(GRID, direction))


def test_a_mixture_is_a_frozen_value_with_an_identity():
    pair = mixtures.binomial(2, 0.1, 1.0)
    with pytest.raises(AttributeError):
        pair.noise_multiplier = 2.0
    for array in (pair.sensitivities, pair.probabilities, pair.shifts, pair.log_probabilities):
        with pytest.raises(ValueError):
            array[0] = 7.0
    assert pair != mixtures.binomial(2, 0.1, 1.0) and len({pair, pair}) == 1


@pytest.mark.parametrize("noise", [1e-200, 5e-324])
def test_noise_too_small_for_floats_is_refused(noise):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=f"noise_multiplier .*; got {noise!r}"):
        Mixture([1.0, 2.0], [0.5, 0.5], noise)


@pytest.mark.parametrize("sensitivity, noise", [(5e-324, 1.0), (1e-290, 1e20)])
def test_sensitivities_too_small_for_floats_are_refused(sensitivity, noise):
    with pytest.raises(ValueError, match=f"sensitivities must be 0 or at least 1e-300 noise multipliers; got {sensitivity!r}"):
        Mixture([0.0, sensitivity], [0.5, 0.5], noise)
    assert Mixture([0.0, 1e-200], [0.5, 0.5], 1e100).hockey_stick(0.0, "add") > 0


# --- densities, tails, loss ---------------------------------------------------------------------------------


@given(pairs(), st.floats(-8, 8), st.floats(0.1, 4))
def test_density_and_survival_belong_together(pair, start, width):
    sigma = pair.noise_multiplier
    nodes, weights = np.polynomial.legendre.leggauss(60)
    low, high = start * sigma, (start + width) * sigma
    x = low + (high - low) * (nodes + 1) / 2
    for density, survival in [
        (pair.density, pair.survival),
        (pair.reference_density, pair.reference_survival),
    ]:
        mass = density(x) @ weights * (high - low) / 2
        assert mass == pytest.approx(survival(low) - survival(high), rel=1e-10, abs=1e-15)
        assert survival(-50 * sigma) == pytest.approx(1, rel=1e-15) and survival(60.0 * sigma) < 1e-300


@given(pairs(), st.floats(-6, 12))
def test_loss_is_the_log_ratio_of_the_densities(pair, u):
    x = u * pair.noise_multiplier
    assert pair.loss(x) == pytest.approx(
        math.log(pair.density(x)) - math.log(pair.reference_density(x)), rel=1e-11, abs=1e-11
    )


@settings(max_examples=60)
@given(pairs(), st.floats(-20, 40))
def test_loss_against_long_arithmetic(pair, u):
    """Relative accuracy holds near zero too, where the log-ratio would lose its digits."""
    x = u * pair.noise_multiplier
    exact, shift = Exact(pair).loss(x), float(pair.shifts[-1])
    size = min(1 + abs(exact), 2 * abs(exact) + 2 * shift * (abs(u) + shift))
    assert abs(pair.loss(x) - exact) <= 30 * EPS * (size + shift * (abs(u) + shift))


@pytest.mark.parametrize("u", [-5.0, 0.0, 0.5, 3.0, 8.0, 30.0])
def test_loss_of_many_components(u):
    """Components that do not matter are left out: nothing may be lost by it."""
    pair = mixtures.binomial(400, 0.01, 2.0)
    exact = Exact(pair).loss(u * 2.0)
    assert abs(pair.loss(u * 2.0) - exact) <= 1e-13 * (1 + abs(exact))
    around = np.linspace(u - 20, u + 20, 700) * 2.0  # several blocks at once
    one_by_one = np.array([pair.loss(x) for x in around])
    assert pair.loss(around) == pytest.approx(one_by_one, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("share", [1e-2, 1e-6])
def test_weights_off_by_their_error_move_the_loss_by_no_more_than_its_own(share):
    """Near R = 1 both what lifts the ratio (one weight too large) and what lowers it (the other too small) count."""
    error, shifts, u = 1e-8, np.array([0.0, 3.0, 20.0]), 3.0
    lifted = share / math.expm1(3 * u - 4.5)  # R(u) = 1 - share + lifted * e^4.5 = 1
    logs = np.log([1 - share - lifted, lifted, share])
    pair = Mixture._from_logs(1.0, shifts, logs, error)
    wrong = Mixture._from_logs(1.0, shifts, logs + np.array([0.0, error, -error]), error)
    value, slope = pair.log_ratio_and_slope(np.array([u]))
    assert abs(value[0]) < 1e-6 * share
    moved = abs(wrong.log_ratio(np.array([u])) - value)[0]
    assert moved > 1.9 * share * error
    assert moved <= pair.log_ratio_error(value, slope, np.array([u]))[0]


@pytest.mark.parametrize("sigma", [0.5, 3.0, 30.0, 300.0])
def test_the_variance_bound_sums_the_whole_series(sigma):
    """The second moment of the weights 1, 2 e^{-t i (i - 1) / 2} in many more terms: at most 2e-9 below the bound."""
    pair = mixtures.binomial(1000, 0.4, sigma)
    t = (pair.shifts[1] - pair.shifts[0]) ** 2
    i = np.arange(1.0, 20 + 40 / math.sqrt(t))
    weights = 2 * np.exp(-t * i * (i - 1) / 2)
    exact = t * math.fsum(i * i * weights) / (1 + math.fsum(weights))
    assert exact <= pair.variance_bound <= exact * (1 + 2e-9)


@pytest.mark.parametrize("q", [1e-3, 1e-9, 1e-15])
def test_a_tiny_loss_keeps_its_digits(q):
    pair = mixtures.binomial(1, q, 1.0)
    for x in (-3.0, 0.2, 0.7, 2.0):
        assert pair.loss(x) == pytest.approx(float(Exact(pair).loss(x)), rel=1e-13)


@given(pairs(), st.floats(-6, 6), st.floats(1e-3, 4))
def test_loss_increases(pair, u, step):
    x = np.array([u, u + step]) * pair.noise_multiplier
    low, high = pair.loss(x)
    assert low <= high and (low < high or low - pair.log_floor < 1e-9)


@given(pairs(), st.floats(-4, 15))
def test_inverse_loss_undoes_loss(pair, u):
    x = u * pair.noise_multiplier
    loss, slope = (float(v[0]) for v in pair.log_ratio_and_slope(np.array([u])))
    assume(slope > 1e-8)
    back = pair.inverse_loss(pair.loss(x)) / pair.noise_multiplier
    assert abs(back - u) <= 40 * EPS * ((1 + abs(loss)) / slope + abs(u) + pair.shifts[-1])


@given(pairs(), st.floats(-10, 200))
def test_loss_undoes_inverse_loss(pair, level):
    assume(level > pair.log_floor + 1e-3 and not pair.is_trivial)
    x = pair.inverse_loss(level)
    u = x / pair.noise_multiplier
    slack = 40 * EPS * (1 + abs(level) + pair.shifts[-1] * (abs(u) + pair.shifts[-1]))
    assert abs(pair.loss(x) - level) <= slack


def test_inverse_loss_below_the_floor_is_minus_infinity():
    pair = mixtures.binomial(1, 0.5, 1.0)
    assert pair.log_floor == pytest.approx(math.log(0.5), rel=1e-15)
    values = pair.inverse_loss([-5.0, pair.log_floor, pair.log_floor + 1e-6, 0.0])
    assert values[0] == values[1] == -math.inf and -math.inf < values[2] < values[3]
    assert pair.loss(-1e3) == pytest.approx(pair.log_floor, rel=1e-15)
    assert mixtures.binomial(1, 1e-12, 1.0).log_floor == pytest.approx(-1e-12, rel=1e-11)
    assert Mixture([1.0, 2.0], [0.5, 0.5], 1.0).log_floor == -math.inf


@pytest.mark.parametrize("sigma", [1e5, 1e9, 1e20, 1e100])
@pytest.mark.parametrize("zero", [0.0, 0.25])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_tiny_delta_keeps_its_digits(sigma, zero, direction):
    """Also where every sensitivity is positive, so that the densities' ratio is a sum of weights near 1."""
    pair = Mixture([zero, 0.5, 1.0], [0.25, 0.25, 0.5], sigma)
    for epsilon in (0.0, 0.3 / sigma):
        exact = Exact(pair, digits=420).hockey_stick(epsilon, direction)
        assert pair.hockey_stick(epsilon, direction) == pytest.approx(float(exact), rel=1e-11, abs=0)


def test_far_below_the_smallest_float_a_delta_is_zero():
    with warnings.catch_warnings(action="error"):
        assert Mixture([1.0, 0.5], [1.0, 0.0], 1e-100).hockey_stick(1e308, "remove") == 0.0


# --- one round ------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(pairs(), st.floats(-2, 60), st.sampled_from(DIRECTIONS))
def test_one_round_against_long_arithmetic(pair, epsilon, direction):
    """[G-2.8] The closed form, down to deltas of 1e-300, for every real epsilon."""
    exact = Exact(pair, digits=120).hockey_stick(epsilon, direction)
    value = pair.hockey_stick(epsilon, direction)
    if exact < 1e-290:
        assert value < 2e-290
        return
    # Rounding of the threshold moves delta by its slope in epsilon.
    u = float(pair.inverse_log_ratio(np.array([epsilon if direction == "remove" else -epsilon]))[0])
    if not math.isfinite(u):
        assert value == pytest.approx(float(exact), rel=1e-12)
        return
    size = (1 + abs(u) + pair.shifts[-1]) ** 2
    assert value == pytest.approx(float(exact), rel=4e-13 + 100 * EPS * size * (1 + abs(u)))


@given(pairs(), st.floats(-5, 5))
def test_parity(pair, epsilon):
    """[C-1] H_alpha(P, Q) = 1 - alpha + alpha H_{1/alpha}(Q, P)."""
    ratio = math.exp(epsilon)
    for first, second in (DIRECTIONS, DIRECTIONS[::-1]):
        left = pair.hockey_stick(epsilon, first)
        right = 1 - ratio + ratio * pair.hockey_stick(-epsilon, second)
        assert left == pytest.approx(right, abs=1e-12 * (1 + ratio))


@given(pairs(), st.floats(0, 4), st.floats(1e-3, 2))
def test_delta_falls_with_epsilon_and_with_the_noise(pair, epsilon, step):
    louder = Mixture(pair.sensitivities, pair.probabilities, pair.noise_multiplier * (1 + step))
    for direction in DIRECTIONS:
        here, beyond = pair.hockey_stick([epsilon, epsilon + step], direction)
        assert here > beyond or here == 0
        assert here > louder.hockey_stick(epsilon, direction) or here == 0


@given(st.integers(1, 40), st.floats(0.001, 0.9), st.floats(0.3, 4), st.floats(0, 3))
def test_delta_grows_with_the_group_and_the_rate(k, q, sigma, epsilon):
    """[G-3.1], [M-B: B.3] The laws are ordered, and so are the deltas."""
    pair = mixtures.binomial(k, q, sigma)
    for larger in (mixtures.binomial(k + 1, q, sigma), mixtures.binomial(k, q + 0.05, sigma)):
        assert mixtures.dominates(larger, pair)
        assert not mixtures.dominates(pair, larger)
        for direction in DIRECTIONS:
            here, more = pair.hockey_stick(epsilon, direction), larger.hockey_stick(epsilon, direction)
            assert here < more * (1 + 1e-12) or more < 1e-290


@given(st.integers(1, 20), st.integers(1, 100), st.integers(1, 8), st.floats(0.5, 4), st.floats(0, 3))
def test_delta_grows_with_the_batch_and_falls_with_the_dataset(batch, spare, k, sigma, epsilon):
    """[G-3.3], [M-B: B.3]"""
    n = batch + spare
    pair = mixtures.hypergeometric(batch, n, k, sigma)
    for larger in (
        mixtures.hypergeometric(batch + 1, n, k, sigma),
        mixtures.hypergeometric(batch, n - 1, k, sigma),
        mixtures.hypergeometric(batch, n, k + 1, sigma),
    ):
        assert mixtures.dominates(larger, pair)
        for direction in DIRECTIONS:
            here, more = pair.hockey_stick(epsilon, direction), larger.hockey_stick(epsilon, direction)
            assert here <= more * (1 + 1e-12) or more < 1e-290


def test_dominance_is_an_order_of_laws_not_of_means():
    even, spread = Mixture([1.0], [1.0], 1.0), Mixture([0.0, 3.0], [0.5, 0.5], 1.0)
    assert mixtures.dominates(even, even) and mixtures.dominates(spread, spread)
    assert not mixtures.dominates(spread, even) and not mixtures.dominates(even, spread)
    assert mixtures.dominates(Mixture([1.0, 3.0], [0.5, 0.5], 1.0), spread)


def test_one_round_poisson_by_hand():
    """One record at rate q: q times the Gaussian's delta at log(1 + (e^eps - 1) / q)."""
    q, sigma = 0.05, 0.8
    pair = mixtures.binomial(1, q, sigma)
    for epsilon in (0.0, 0.3, 1.0, 4.0):
        inner = math.log1p(math.expm1(epsilon) / q)
        assert pair.hockey_stick(epsilon) == pytest.approx(q * gaussian.delta(1 / sigma, inner), rel=1e-12)


# --- degenerate pairs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pair",
    [
        mixtures.binomial(5, 0.0, 1.0),
        mixtures.binomial(0, 0.3, 1.0),
        mixtures.hypergeometric(5, 100, 0, 1.0),
        mixtures.product([0.0], [1.0], 1.0),
        Mixture([0.0], [1.0], 1.0),
        Mixture([0.0, 2.0], [1.0, 0.0], 1.0),
    ],
    ids=["q = 0", "k = 0", "fixed, k = 0", "p = 0", "s = 0", "p_1 = 0"],
)
def test_trivial_pairs_lose_nothing(pair):
    assert pair.is_trivial
    assert pair.loss([-3.0, 0.0, 3.0]).tolist() == [0.0, 0.0, 0.0]
    for direction in DIRECTIONS:
        assert pair.hockey_stick([0.0, 1.0], direction).tolist() == [0.0, 0.0]
        assert pair.hockey_stick(-1.0, direction) == pytest.approx(1 - math.exp(-1), rel=1e-15)


@pytest.mark.parametrize("k", [1, 3, 2000])
def test_sampling_everything_is_the_plain_gaussian(k):
    pair = mixtures.binomial(k, 1, 2.0 * k)
    assert pair.is_gaussian and pair.sensitivities.tolist() == [k]
    for direction in DIRECTIONS:
        for epsilon in GRID:
            assert pair.hockey_stick(epsilon, direction) == pytest.approx(gaussian.delta(0.5, epsilon), rel=1e-12)


def test_shapes_and_types():
    pair = mixtures.binomial(2, 0.3, 1.0)
    table = np.array([[0.0, 0.5, 1.0], [1.5, 2.0, 3.0]])
    functions = (
        pair.loss, pair.inverse_loss, pair.density, pair.reference_density,
        pair.survival, pair.reference_survival, pair.hockey_stick,
    )  # fmt: skip
    for function in functions:
        assert type(function(1)) is float
        values = function(table)
        assert values.shape == (2, 3)
        assert values[1, 2] == pytest.approx(function(3.0), rel=1e-14)
        assert function([]).shape == (0,)


@pytest.mark.parametrize("x", [1e200, -1e200])
def test_far_away_nothing_is_nan(x):
    pair = mixtures.binomial(1, 0.5, 1.0)
    assert pair.density(x) == pair.reference_density(x) == 0.0
    assert pair.survival(x) == pair.reference_survival(x) == (0.0 if x > 0 else 1.0)
    assert pair.loss(x) == pytest.approx(x if x > 0 else math.log(0.5), rel=1e-12)


# --- large groups -------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(-3, 0.5), st.floats(-30, 40))
def test_a_sum_of_bernoullis_with_gaussian_factors_is_still_one(seed, log_gap, u):
    """What thinning rests on: |E e^{itJ}| <= exp(-2 V sin^2(t/2)) for the terms p_j e^{a_j u - a_j^2 / 2}."""
    rng = np.random.default_rng(seed)
    law = np.ones(1)
    for chance in rng.beta(*rng.uniform(0.2, 3, 2), rng.integers(1, 40)):
        law = np.convolve(law, [1 - chance, chance])
    j, gap = np.arange(len(law)), 10**log_gap
    with np.errstate(divide="ignore"):
        terms = np.log(law) + gap * j * (u - gap * j / 2)
    terms = np.exp(terms - terms.max())
    terms /= terms.sum()
    variance, t = terms @ (j - terms @ j) ** 2, np.linspace(0, math.pi, 50)
    assert np.all(np.abs(np.exp(1j * t[:, None] * j) @ terms) <= np.exp(-2 * variance * np.sin(t / 2) ** 2) + 1e-14)


def log_binomial(k, q, j):
    """Logs of binomial probabilities far from 0 and k, by Stirling's series and the deviance."""
    deviance = lambda x, mean: mean * ((x / mean) * np.log1p((x - mean) / mean) - (x - mean) / mean)
    series = lambda x: 1 / (12 * x) - 1 / (360 * x**3)
    rest = series(float(k)) - series(j) - series(k - j) - 0.5 * np.log(2 * math.pi * j * (k - j) / k)
    return rest - deviance(j, k * q) - deviance(k - j, k * (1 - q))


@pytest.mark.parametrize("k, q, sigma", [(10**8, 0.5, 1e5), (10**8, 0.01, 3e3), (10**6, 0.3, 200.0), (40_000, 0.5, 1000.0)])
def test_thinned_components_give_the_same_loss(k, q, sigma):
    """Against all of them, over 100 deviations wide: one in twenty remains, and the loss stays within its allowance."""
    pair, deviation = mixtures.binomial(k, q, sigma), math.sqrt(k * q * (1 - q))
    assert len(pair.shifts) < 5 * deviation
    j = np.arange(int(k * q - 50 * deviation), int(k * q + 50 * deviation) + 1.0)
    j = j[(j > 500) & (j < k - 500)]
    logs, a = log_binomial(k, q, j), j / sigma
    u = k * q / sigma + math.hypot(1, deviation / sigma) * np.linspace(-9, 30, 14)
    truth = [float(special.logsumexp(logs + a * (x - a / 2))) for x in u]
    found, slope = pair.log_ratio_and_slope(u)
    assert np.all(np.abs(found - truth) <= pair.log_ratio_error(found, slope, u) + 1e-13 * np.abs(a * u[:, None]).max())


@pytest.mark.parametrize("sigma", [1.0, 5.0, 8.0, 10.0, 13.0, 16.0, 30.0])
def test_thinning_costs_no_digits_where_few_neighbours_are_joined(sigma):
    """At two or three neighbours the bound is poor: then fewer are joined."""
    thin, full = mixtures.binomial(10**5, 0.3, sigma), mixtures.binomial(10**5, 0.3, 1.0)
    assert thin.log_probability_error <= full.log_probability_error + 3e-16
    assert len(thin.shifts) < 8 / sigma * len(full.shifts) or sigma < 13


def test_a_group_of_a_hundred_million_costs_what_its_normal_law_says():
    """s = J / sigma is nearly N(500, .05^2): the loss is a quadratic of normal variables, far from 0 on its own scale."""
    run = dplib.PoissonDPSGD(1e5, 0.5, 1000, 10**8)
    [(pair, _)] = run.composition()
    assert len(pair.shifts) < 1000
    found, mean, variance = run.epsilon(1e-6), 500.0, 1 + 0.05**2
    centre = 1000 * (mean**2 / 2 + (variance - 1) / 2 - math.log(variance) / 2)
    spread = math.sqrt(1000 * (mean**2 * variance + (variance - 1) ** 2 / 2))
    assert found.upper == pytest.approx(centre - special.ndtri(1e-6) * spread, rel=1e-7)
    assert found.relative_width < 1e-6


def test_fixed_batches_of_large_groups_are_thinned():
    pair = mixtures.hypergeometric(10**6, 10**7, 10**6, 1e4)
    assert len(pair.shifts) < 1000
    # Mean and variance of twice a hypergeometric number, over sigma.
    n, b, k = 11 * 10**6, 10**6, 10**6
    mean, variance = b * k / n, b * (k / n) * (1 - k / n) * (n - b) / (n - 1)
    found = pair.probabilities @ pair.shifts
    assert found == pytest.approx(2 * mean / 1e4, rel=1e-9)
    assert pair.probabilities @ (pair.shifts - found) ** 2 == pytest.approx(4 * variance / 1e8, rel=1e-7)


@pytest.mark.parametrize("k", [2000, 5000, 30_000])
def test_direction_add_sees_the_smallest_sensitivities(k):
    """Their probabilities, e^-1386 and below, decide it: the loss is at most -log p_0. Of 30,000 they are added."""
    pair, log_delta = mixtures.binomial(k, 0.5, 10.0), math.log(1e-6)
    found = accounting.epsilon(pair, 1e-6, "add")
    assert found.upper <= k * math.log(2) and found.relative_width < 1e-8
    j = np.arange(k + 1)
    logs = special.gammaln(k + 1) - special.gammaln(j + 1) - special.gammaln(k - j + 1) - k * math.log(2)
    # The threshold where P/Q is e^-eps; there delta = Phi(u) - e^eps P(X <= u), and both terms are of a size.
    ratio = lambda u: special.logsumexp(logs + j / 10 * (u - j / 20))
    for end, sign in ((found.lower, 1), (found.upper, -1)):
        u = optimize.brentq(lambda u: ratio(u) + end, -40, 40, xtol=1e-13)  # noqa: B023
        miss = math.exp(end + special.logsumexp(logs + special.log_ndtr(u - j / 10)))
        assert sign * (math.log(special.ndtr(u) - miss) - log_delta) > -1e-5


def test_components_that_direction_add_sees_are_added():
    """Sensitivities below 41,000 are left out, and the reference sees the 200 at most that are likeliest there."""
    pair = mixtures.binomial(10**5, 0.5, 10.0)
    with pytest.raises(NoBracketError, match="direction 'add'.* above 1000"):
        pair.check_direction("add")
    longer = pair.facing("add")
    assert pair.sensitivities[0] > 40_000 and longer.sensitivities[0] < 100 and pair.facing("remove") is pair
    one_round = dplib.PoissonDPSGD(10.0, 0.5, 1, 10**5)
    spent = one_round.epsilon(1e-6, "add")
    assert spent.relative_width < 1e-6 and one_round.delta(spent.upper, "add").lower <= 1e-6
    remove, add = (dplib.PoissonDPSGD(10.0, 0.5, 100, 10**5).epsilon(1e-6, side) for side in ("remove", "add"))
    assert remove.relative_width < 1e-6 and add.lower <= add.upper <= remove.upper
    assert dplib.PoissonDPSGD(1e6, 1e-3, 100, 10**8).epsilon(1e-6, "add").relative_width < 1e-6


@pytest.mark.parametrize(
    "mechanism, question, value",
    [
        (dplib.LastIterate(0.4059058993062729, 0.13464303778348935, 27436), "delta", 0.43406443264652145),
        (dplib.LastIterate(0.5314853609889375, 0.22649489730683212, 21243), "epsilon", 6.643066028988048e-05),
        (dplib.LastIterate(0.7568502175232639, 0.17424647100354154, 96500), "epsilon", 0.05746035799163597),
        (dplib.LastIterate(0.07616689164368627, 0.008742439679400511, 10**8), "epsilon", 8.321258250159518e-87),
        (dplib.PoissonDPSGD(212.9909011958455, 0.09653479683693039, 2512, 374745), "epsilon", 1.2467485007456573e-248),
    ],
    ids=str,
)
def test_settings_of_direction_add_that_were_refused(mechanism, question, value):
    bracket = getattr(mechanism, question)(value, "add")
    assert bracket.relative_width < 1e-6 and bracket.upper <= getattr(mechanism, question)(value, "remove").upper


def test_direction_add_costs_at_most_what_remove_costs():
    """Where the reference is more than a million trials away, the upper end is that of remove [C-9m]."""
    mechanism = dplib.LastIterate(1e-4, 0.9999, 10**8)
    with pytest.raises(NoBracketError, match="direction 'add'"):
        mechanism.epsilon(1e-6, "add", method="contour")
    add, remove = (mechanism.epsilon(1e-6, side) for side in ("add", "remove"))
    assert add.lower == 0 and add.upper == remove.upper
