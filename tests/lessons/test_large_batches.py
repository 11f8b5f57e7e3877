"""Statements of chapter 8: effective noise, its limit for many rounds, and how fast it is reached.

Two routes throughout: the accountants of the library, and closed forms, quadrature or moments of our own.
"""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from property_cases import answer, examples, logs
from scipy import stats

import dplib
import dplib.lessons.one_step
from dplib import accounting, gaussian, mixtures

DELTA = 1e-5
DIRECTIONS = ("remove", "add")


def without_sampling(epsilon, rounds, delta=DELTA):
    """sigma(1, T): T Gaussian rounds are one with mu sqrt(T)."""
    return math.sqrt(rounds) / gaussian.calibrate(epsilon, delta)


def excess(q, rounds, epsilon, delta=DELTA, direction="both"):
    """sigma(q, T) / (q sigma(1, T)) - 1."""
    run = dplib.PoissonDPSGD(1.0, q, rounds)
    sigma = dplib.calibrate(run, epsilon=epsilon, delta=delta, direction=direction).noise_multiplier
    return sigma / (q * without_sampling(epsilon, rounds, delta)) - 1


def chi_square(q, sigma):
    """Chi-square divergence of the mixture from N(q, sigma^2), in closed form."""
    a2 = sigma**-2
    return (
        q**2 * math.expm1((1 - q) ** 2 * a2)
        + 2 * q * (1 - q) * math.expm1(-q * (1 - q) * a2)
        + (1 - q) ** 2 * math.expm1(q**2 * a2)
    )


def test_oracle_depends_on_noise_over_clip_norm_and_falls_with_noise():
    """[R-0] Lemma 3.3; the oracle is the closed form at q = 1; no noise multiplier where q <= delta."""
    for clip in (0.2, 7.0):
        pair = mixtures.Mixture([0.0, clip], [0.7, 0.3], 1.4 * clip)
        same = mixtures.binomial(1, 0.3, 1.4)
        for direction in DIRECTIONS:
            assert pair.hockey_stick(0.4, direction) == pytest.approx(
                same.hockey_stick(0.4, direction), rel=1e-9
            )
            scaled, plain = (accounting.delta([(law, 50)], 0.4, direction) for law in (pair, same))
            assert max(scaled.lower, plain.lower) <= min(scaled.upper, plain.upper)
            assert scaled.upper == pytest.approx(plain.upper, rel=1e-6)
    values = [dplib.PoissonDPSGD(s, 0.2, 50).delta(1.0) for s in (2.0, 2.5, 3.0)]
    assert values[0].lower > values[1].upper and values[1].lower > values[2].upper
    assert gaussian.delta(math.sqrt(50) / 20, 1.0) in dplib.PoissonDPSGD(20.0, 1.0, 50).delta(1.0)
    with pytest.raises(ValueError, match="no noise is needed"):
        dplib.calibrate(dplib.PoissonDPSGD(1.0, DELTA, 1), epsilon=1.0, delta=DELTA)


@pytest.mark.parametrize("q", [0.1, 0.5, 1.0])
def test_variance_split(q):
    """[R-4] Sampling variance (1-q)/q sum g^2 plus noise variance sigma^2/q^2, by simulation to 2%."""
    rng, sigma, draws = np.random.default_rng(4), 0.7, 100_000
    gradients = rng.uniform(-1, 1, (10, 2)) / math.sqrt(2)
    coins = rng.random((draws, 10)) < q
    estimate = (coins @ gradients + sigma * rng.standard_normal((draws, 2))) / q
    predicted = (1 - q) / q * (gradients**2).sum(axis=0) + sigma**2 / q**2
    assert np.allclose(estimate.var(axis=0), predicted, rtol=0.02)
    assert np.all(np.abs(estimate.mean(axis=0) - gradients.sum(axis=0)) < 5 * np.sqrt(predicted / draws))


def loss_moments(q, sigma):
    x = np.linspace(-12 * sigma, 1 + 12 * sigma, 20_001)
    pair = mixtures.binomial(1, q, sigma)
    loss, weight = pair.loss(x), pair.density(x) * (x[1] - x[0])
    return (weight * loss).sum(), (weight * loss**2).sum()


GRID = [(q, s) for q in (0.001, 0.01, 0.1, 0.3, 0.7, 1.0) for s in (0.2, 0.5, 1.0, 3.0, 10.0)]


@pytest.mark.parametrize("q, sigma", GRID)
def test_first_moment_of_the_loss(q, sigma):
    """[R-A9] E L >= q^2 / 2 sigma^2, with equality at q = 1."""
    first, bound = loss_moments(q, sigma)[0], q**2 / (2 * sigma**2)
    assert first >= bound * (1 - 1e-9)
    assert (first == pytest.approx(bound, rel=1e-9)) == (q == 1)


@pytest.mark.parametrize("q, sigma", GRID)
def test_second_moment_of_the_loss(q, sigma):
    """[R-A10] E L^2 <= 1/sigma^2 + 1/4 sigma^4, with equality at q = 1."""
    second, bound = loss_moments(q, sigma)[1], 1 / sigma**2 + 1 / (4 * sigma**4)
    assert second <= bound * (1 + 1e-9)
    assert (second == pytest.approx(bound, rel=1e-9)) == (q == 1)


def delta_floor(q, sigma, rounds, epsilon):
    """One-sided Chebyshev with the two moment bounds: a lower bound on delta."""
    mean = rounds * q**2 / (2 * sigma**2)
    variance = rounds * (1 / sigma**2 + 1 / (4 * sigma**4))
    t = np.linspace(epsilon, max(mean, epsilon), 2001)
    return (-np.expm1(epsilon - t) * (mean - t) ** 2 / (variance + (mean - t) ** 2)).max()


@pytest.mark.parametrize(
    "q, sigma, rounds", [(0.1, 0.3, 1), (0.1, 0.5, 100), (0.5, 5.0, 400), (1.0, 3.0, 50)]
)
def test_moments_bound_delta_from_below(q, sigma, rounds):
    """[R-A11] The inequality of the source's route holds, and forces delta to 1 when T / sigma^2 grows."""
    floor = delta_floor(q, sigma, rounds, 1.0)
    assert floor <= dplib.PoissonDPSGD(sigma, q, rounds).delta(1.0, "remove").upper
    assert delta_floor(q, sigma, 10**7, 1.0) > 0.99
    assert delta_floor(q, 10**-3.0, 10**7, 1.0) > 0.99


@pytest.mark.parametrize("q, sigma, rounds", [(1.0, 2.0, 100), (0.5, 1.0, 600), (0.2, 0.5, 12_000)])
def test_many_tails_at_once(q, sigma, rounds):
    """[R-A11] Half the bound on the mean is rarely missed: exact tail at q = 1, 400 simulated sums below."""
    level, bound = rounds * q**2 / (4 * sigma**2), (16 * sigma**2 / rounds + 4 / rounds) / q**4
    variance = rounds * (1 / sigma**2 + 1 / (4 * sigma**4))
    assert bound == pytest.approx(variance / level**2, rel=1e-12)
    rng, loss = np.random.default_rng(6), mixtures.binomial(1, q, sigma).loss
    sums = np.array(
        [loss((rng.random(rounds) < q) + sigma * rng.standard_normal(rounds)).sum() for _ in range(400)]
    )
    assert np.mean(sums <= level) <= bound < 1
    # What Chebyshev's inequality needs: the level is at most half the mean, and the variance is not larger.
    assert sums.mean() - 2 * level > -4 * sums.std() / 20
    assert sums.var() < variance * 1.3
    if q == 1:
        assert sums.mean() == pytest.approx(2 * level, abs=4 * sums.std() / 20)
        assert sums.var() > variance / 1.4


def first_round(q, delta):
    return next(rounds for rounds in range(1, 10**6) if 1 - (1 - q) ** rounds > delta)


def one_step_floor(q, rounds, epsilon, delta):
    """The best bound of [R-5.1](ii) on sigma, over all k."""
    k = np.arange(1, rounds + 1)
    p = stats.binom.sf(k - 1, rounds, q)
    k, p = k[p > delta], p[p > delta]
    return (k / math.sqrt(rounds) * dplib.lessons.one_step.noise_multiplier(epsilon, delta, p)).max()


def growth(q, epsilon, delta):
    """T_0, T_1, C_0 of [R-5.1], and the constant from T_1 on."""
    first = first_round(q, delta)
    later = max(first, 8 / q * math.log(2 / (1 - delta)))
    half = q / 2 * dplib.lessons.one_step.noise_multiplier(epsilon, delta, (1 + delta) / 2)
    once = dplib.lessons.one_step.noise_multiplier(epsilon, delta, 1 - (1 - q) ** first) / later
    return first, later, min(half, once) ** 2, half**2


@pytest.mark.parametrize("q, delta, first", [(0.01, 0.05, 6), (0.1, 0.3, 4), (0.5, 0.7, 2), (0.9, 1e-5, 1)])
def test_before_the_first_round_no_noise_is_needed(q, delta, first):
    """[R-5.1](i) Before T_0 hardly any noise meets the budget, in both directions; at T_0 it does not."""
    assert first_round(q, delta) == first
    for rounds in {1, first - 1, first} - {0}:
        run = dplib.PoissonDPSGD(0.2, q, rounds)
        assert run.delta(1.0, "remove").lower <= 1 - (1 - q) ** rounds
        assert (run.delta(1.0, "remove").upper <= delta) == (rounds < first)
        if rounds < first:
            assert 1 - (1 - q) ** rounds <= delta
    assert run.delta(1.0, "remove").lower > delta


@pytest.mark.parametrize("epsilon", [0.125, 1.0, 4.0])
@pytest.mark.parametrize("q, delta", [(0.1, 1e-5), (0.5, 0.05), (0.5, 0.5), (0.9, 1e-5)])
def test_one_step_bounds_the_noise_of_many(q, delta, epsilon):
    """[R-5.1](ii), (iii) With 1% less variance than the bound, delta is above the budget; C_0 is below it."""
    first, later, least, half = growth(q, epsilon, delta)
    for rounds in {first, 3 * first, 2 * math.ceil(later)}:
        floor = one_step_floor(q, rounds, epsilon, delta)
        run = dplib.PoissonDPSGD(floor * math.sqrt(0.99), q, rounds)
        assert run.delta(epsilon, "remove").lower > delta
        assert 0 < least <= floor**2 / rounds
        assert rounds < later or half <= floor**2 / rounds


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.floats(0.02, 1.0), st.floats(0.5, 8.0), st.integers(1, 60), st.floats(0.0, 3.0), st.floats(0.0, 1.0))
def test_a_sum_of_rounds_is_at_least_one_step(q, sigma, rounds, epsilon, place):
    """[R-5.1] delta of T rounds is at least that of one step of sensitivity k that is taken with p_k."""
    k = 1 + int(place * (rounds - 1))
    p = float(stats.binom.sf(k - 1, rounds, q))
    if p < 1e-12:
        return
    one = dplib.lessons.one_step.delta(epsilon, sigma * math.sqrt(rounds) / k, p)
    if one > 1e-200:
        assert one <= dplib.PoissonDPSGD(sigma, q, rounds).delta(epsilon, "remove").upper * (1 + 1e-9)


def divergence(p, q):
    return (p * np.log(p / q)).sum(axis=-1)


def test_divergence_adds_and_ignores_bijections():
    """[R-A1] Products of random laws; one round of sampling, and its image under arcsinh."""
    rng = np.random.default_rng(11)
    p, q, r, s = rng.dirichlet(np.ones(4), size=(4, 500)) * (1 - 4e-9) + 1e-9
    products = [(x[:, :, None] * y[:, None, :]).reshape(500, 16) for x, y in ((p, r), (q, s))]
    assert np.allclose(divergence(*products), divergence(p, q) + divergence(r, s), rtol=1e-9)
    x = np.linspace(-15, 16, 60_001)
    plain, mixture = stats.norm.pdf(x, 0.3, 1.2), mixtures.binomial(1, 0.3, 1.2).density(x)
    slope = 1 / np.sqrt(1 + x * x)
    direct = np.trapezoid(plain * np.log(plain / mixture), x)
    image = np.trapezoid(plain / slope * np.log((plain / slope) / (mixture / slope)), np.arcsinh(x))
    assert direct > 1e-5 and image == pytest.approx(direct, rel=1e-5)


def test_pinsker():
    """[R-2.10] On random laws; nearly fair coins show that the factor 1/2 cannot be smaller."""
    rng = np.random.default_rng(12)
    p, q = rng.dirichlet(np.full(5, 0.5), size=(2, 3000)) * (1 - 5e-9) + 1e-9
    assert np.all(np.abs(p - q).sum(axis=1) / 2 <= np.sqrt(divergence(p, q) / 2))
    coin = np.array([0.501, 0.499])
    assert 0.002 / math.sqrt(divergence(coin, coin[::-1]) / 2) == pytest.approx(1, abs=1e-5)


def test_derivatives_of_the_log_ratio_are_dominated():
    """[R-A7] By Cauchy's integral formula on a grid; the first bound is used up to three quarters."""
    turn = np.exp(2j * np.pi * np.arange(32) / 32)
    q = np.array([0.02, 0.1, 0.3, 0.5, 0.9])[:, None, None, None]
    a, xi = np.linspace(-1, 1, 21)[:, None, None], np.linspace(-8, 8, 161)[:, None]
    radius = 0.2 / (1 + np.abs(xi))
    z = a + radius * turn
    up, down = (1 - q) * z, -q * z
    values = -np.log(q * np.exp(up * xi - up**2 / 2) + (1 - q) * np.exp(down * xi - down**2 / 2))
    used = []
    for k, constant in enumerate((1, 3, 12, 68, 500), start=1):
        slopes = np.abs((values * turn**-k).mean(axis=-1)) * math.factorial(k) / radius[:, 0] ** k
        used.append((slopes / (constant * (1 + np.abs(xi[:, 0])) ** k)).max())
    assert max(used) <= 1 and used[0] > 0.7 and used[1] > 0.08


@pytest.mark.parametrize("rounds, stated", [(1, 1.58), (10, 0.303), (100, 0.155), (1000, 0.141)])
def test_noise_grows_like_the_square_root_of_the_rounds(rounds, stated):
    """[R-5.1] sigma(q, T)^2 / T at q = .1, epsilon = 1, stays bounded below (remove)."""
    sigma = 0.1 * without_sampling(1.0, rounds) * (1 + excess(0.1, rounds, 1.0))
    assert sigma**2 / rounds == pytest.approx(stated, rel=0.004)
    assert sigma**2 / rounds > (0.1 * without_sampling(1.0, 1)) ** 2
    assert delta_floor(0.1, 0.04 * math.sqrt(rounds), rounds, 1.0) > DELTA  # a much smaller one fails


def log_ratio(q, a, xi):
    """ln of N(q, sigma^2) over the mixture, at q + sigma xi, with a = 1 / sigma."""
    excess_ratio = q * np.expm1((1 - q) * a * xi - ((1 - q) * a) ** 2 / 2)
    excess_ratio += (1 - q) * np.expm1(-q * a * xi - (q * a) ** 2 / 2)
    return -np.log1p(excess_ratio)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.8])
def test_taylor_expansion_pointwise(q):
    """[R-A2] The printed coefficients leave an error of order a^5."""
    w, errors = q * (1 - q), []
    xi = np.array([-2.3, -1.0, -0.2, 0.0, 0.7, 1.9])
    for a in (0.04, 0.02):
        terms = -w / 2 * (xi**2 - 1) * a**2 + w * (2 * q - 1) / 6 * xi * (xi**2 - 3) * a**3
        fourth = (xi**4 - 6 * xi**2 + 3) - 6 * w * (xi**4 - 4 * xi**2 + 2)
        errors.append(np.abs(log_ratio(q, a, xi) - (terms - w / 24 * fourth * a**4)).max())
    assert errors[0] < 10 * 0.04**5 and errors[1] < errors[0] / 25


@pytest.mark.parametrize("q, a, ratio", [(0.1, 0.1, 1.0009), (0.5, 0.1, 0.9967)])
def test_mean_of_the_expansion(q, a, ratio):
    """[R-A2] The Kullback-Leibler divergence over its leading term q^2 (1-q)^2 a^4 / 4."""
    xi = np.linspace(-12, 12, 48_001)
    divergence = (stats.norm.pdf(xi) * log_ratio(q, a, xi)).sum() * (xi[1] - xi[0])
    assert divergence / (q**2 * (1 - q) ** 2 * a**4 / 4) == pytest.approx(ratio, abs=1e-4)


@pytest.mark.parametrize("q, sigma", [(0.1, 0.6), (0.3, 1.0), (0.5, 2.0), (0.8, 5.0)])
def test_second_moment_of_the_density_ratio(q, sigma):
    """[R-5.2] The closed form of chi^2 is the integral; one round's distance obeys the bound."""
    x = np.linspace(-14 * sigma, 1 + 14 * sigma, 60_001)
    step = x[1] - x[0]
    mixture = (1 - q) * stats.norm.pdf(x, 0, sigma) + q * stats.norm.pdf(x, 1, sigma)
    shifted = stats.norm.pdf(x, q, sigma)
    integral = ((mixture - shifted) ** 2 / shifted).sum() * step
    assert integral == pytest.approx(chi_square(q, sigma), rel=1e-7)
    distance = np.abs(mixture - shifted).sum() * step / 2
    assert distance <= math.sqrt(chi_square(q, sigma)) / 2
    # Pinsker with the exact divergence is a bound of the same leading order.
    divergence = (shifted * np.log(shifted / mixture)).sum() * step
    assert distance <= math.sqrt(divergence / 2)


@example(1000, 0.1, 0.27, 1.0, "remove")
@example(1000, 0.5, 0.27, 1.0, "add")
@examples(10)
@given(st.integers(1, 1000), logs(1e-3, 1), logs(0.05, 5), st.floats(0, 3), st.sampled_from(DIRECTIONS))
def test_gaussian_approximation_of_delta(rounds, q, mu, epsilon, direction):
    """[R-5.2], [R-A11] |delta_S - delta_G| <= d (remove), e^epsilon d (add), d = sqrt((1+chi^2)^T - 1) / 2; and the lower bound by two moments."""
    sigma = max(q * math.sqrt(rounds) / mu, 0.4)
    found = answer(dplib.PoissonDPSGD(sigma, q, rounds).delta, epsilon, direction)
    assert direction == "add" or delta_floor(q, sigma, rounds, epsilon) <= found.upper
    bound = math.sqrt(math.expm1(min(rounds * math.log1p(max(chi_square(q, sigma), 0.0)), 700))) / 2
    plain = gaussian.delta(q * math.sqrt(rounds) / sigma, epsilon)
    room = bound * (1 + 1e-9) * (1.0 if direction == "remove" else math.exp(epsilon)) + 1e-9 * plain
    assert found.lower - room <= plain <= found.upper + room


def test_size_of_the_distance_bound():
    """[R-5.2] q = .1, epsilon = 1, T = 1000: a difference of 1e-6 against a bound of .027; leading term."""
    sigma = 0.1 * without_sampling(1.0, 1000)
    bound = math.sqrt(math.expm1(1000 * math.log1p(chi_square(0.1, sigma)))) / 2
    leading = math.sqrt(1000) * 0.1 * 0.9 / (2 * math.sqrt(2) * sigma**2)
    assert (1 + math.e) * bound == pytest.approx(0.027, abs=5e-4)
    assert bound == pytest.approx(leading, rel=2e-3)
    difference = dplib.PoissonDPSGD(sigma, 0.1, 1000).delta(1.0).upper - DELTA
    assert difference == pytest.approx(1.0e-6, rel=0.02)


@pytest.mark.parametrize(
    "q, stated",
    [
        (0.1, {1: 4.617e-2, 10: 1.742e-3, 100: 2.44e-5, 1000: 1.10e-5}),
        (0.5, {1: 4.47e-4, 10: 2.09e-5, 100: 1.085e-5, 1000: 1.008e-5}),
    ],
)
def test_delta_of_the_scaled_noise(q, stated):
    """[R-5.3] delta_S at sigma = q sigma(1, T) tends to delta_G = 1e-5 (remove)."""
    for rounds, value in stated.items():
        run = dplib.PoissonDPSGD(q * without_sampling(1.0, rounds), q, rounds)
        assert run.delta(1.0).upper == pytest.approx(value, rel=2e-3)


def test_two_sampling_probabilities_approach_each_other():
    """[R-5.3] The difference of two oracles with noise in proportion to q falls to zero."""
    gaps = []
    for rounds in (100, 1000, 10_000):
        first, second = (
            dplib.PoissonDPSGD(q * math.sqrt(rounds) / 0.5, q, rounds).delta(0.5).upper for q in (0.1, 0.4)
        )
        gaps.append(abs(first - second))
    assert gaps[1] < gaps[0] / 8 and gaps[2] < gaps[1] / 8


@pytest.mark.parametrize(
    "epsilon, rounds, plain, stated",
    [
        (0.25, 1, 13.29, (7.088, 1.846, 1.111)),
        (0.25, 1000, 420.1, (1.026, 1.001, 1.000)),
        (1.0, 1, 3.731, (18.06, 3.375, 1.338)),
        (1.0, 1000, 118.0, (1.199, 1.006, 1.000)),
    ],
)
def test_effective_noise_table(epsilon, rounds, plain, stated):
    """[R-5.4] sigma(1, T), and sigma(q, T) over q sigma(1, T) at q = .01, .1, .5."""
    assert without_sampling(epsilon, rounds) == pytest.approx(plain, rel=5e-4)
    assert without_sampling(epsilon, rounds) == pytest.approx(
        math.sqrt(rounds) * without_sampling(epsilon, 1)
    )
    for q, value in zip((0.01, 0.1, 0.5), stated):
        assert 1 + excess(q, rounds, epsilon) == pytest.approx(value, abs=6e-4 * value)


def rate(q, epsilon, delta, sign):
    mu = gaussian.calibrate(epsilon, delta)
    return (1 - q) / (4 * q) * (sign * 2 * epsilon + mu**2 * (1 / q - 2))


@pytest.mark.parametrize("sign, direction", [(1, "remove"), (-1, "add")])
@pytest.mark.parametrize("seed", range(4))
def test_rate_of_convergence(sign, direction, seed):
    """[R-5.4r] T (ratio - 1), extrapolated from T and 4 T, is the stated coefficient."""
    rng = np.random.default_rng(seed)
    q, epsilon = np.exp(rng.uniform(np.log([0.05, 0.02]), np.log([0.9, 3.0])))
    delta = 10 ** rng.uniform(-9, -1)
    rounds = int(max(400, 100 * abs(rate(q, epsilon, delta, 1))))
    near, far = (t * excess(q, t, epsilon, delta, direction) for t in (rounds, 4 * rounds))
    stated = rate(q, epsilon, delta, sign)
    assert (4 * far - near) / 3 == pytest.approx(stated, rel=1e-3, abs=5e-5)


@pytest.mark.parametrize("sign, direction", [(1, "remove"), (-1, "add")])
@pytest.mark.parametrize("q, epsilon, mu", [(0.2, 0.5, 0.8), (0.6, 0.0, 2.0), (0.4, 1.5, 0.6)])
def test_first_order_of_delta(sign, direction, q, epsilon, mu):
    """[R-5.4r] T (delta_S - delta_mu) tends to the stated coefficient, in each direction."""
    stated = (1 / q - 1) * mu / 4 * (sign * 2 * epsilon + mu**2 * (1 / q - 2))
    stated *= stats.norm.pdf(epsilon / mu - mu / 2)
    gap = []
    for rounds in (4000, 16_000):
        run = dplib.PoissonDPSGD(q * math.sqrt(rounds) / mu, q, rounds).delta(epsilon, direction)
        gap.append(rounds * (run.upper - gaussian.delta(mu, epsilon)))
    assert (4 * gap[1] - gap[0]) / 3 == pytest.approx(stated, rel=2e-4)


def test_sampling_can_help_where_the_budget_is_useless():
    """[R-5.4r] 2 epsilon < mu^2 makes the coefficient negative near q = 1: epsilon = 0, delta = 1/2."""
    ratios = {q: excess(q, 100, 0.0, 0.5) for q in (0.4, 0.5, 2 / 3, 0.9)}
    assert min(ratios, key=ratios.get) == 2 / 3
    assert ratios[2 / 3] == pytest.approx(rate(2 / 3, 0.0, 0.5, 1) / 100, rel=0.01) and ratios[2 / 3] < 0
    assert ratios[0.4] > 0
    # The condition in terms of delta.
    for epsilon in (0.01, 1.0, 4.0):
        limit = gaussian.delta(math.sqrt(2 * epsilon), epsilon)
        assert gaussian.calibrate(epsilon, 0.99 * limit) ** 2 < 2 * epsilon
        assert gaussian.calibrate(epsilon, min(1.01 * limit, 0.99)) ** 2 > 2 * epsilon


def test_one_step_falls_where_two_rise():
    """At epsilon = 0.1, delta = 0.2 [R-6.2x, R-5.4r]; two steps by quadrature over the plane as well."""
    assert excess(0.9, 1, 0.1, 0.2) > 1e-3 and excess(0.9, 2, 0.1, 0.2) < -1e-4
    x = np.linspace(-14, 16, 3001)
    for q in (0.9, 1.0):
        run = dplib.calibrate(dplib.PoissonDPSGD(1.0, q, 2), epsilon=0.1, delta=0.2)
        with_record, without = (
            rate * stats.norm.pdf(x, 1, run.noise_multiplier) + (1 - rate) * stats.norm.pdf(x, 0, run.noise_multiplier) for rate in (q, 0.0)
        )
        over = np.outer(with_record, with_record) - math.exp(0.1) * np.outer(without, without)
        assert np.maximum(over, 0).sum() * (x[1] - x[0]) ** 2 == pytest.approx(0.2, rel=1e-5)
