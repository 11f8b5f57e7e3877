"""How epsilon and the noise follow encoder, sampling and target for any finite mixture; where no correlation is best.

Tags: [N-gradP] a differentiable epsilon, [N-gradS] small targets want independent noise. The truth is quadrature for
two and three rounds: along the mean mode in closed form, across it by the trapezoid rule, which is exact to rounding.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_cases import examples
from scipy import special, stats
from scipy.optimize import brentq, minimize

import dplib
from dplib import gaussian
from dplib.lessons import truth


class Border(NamedTuple):
    delta: float  # remove
    add: float
    density: float  # f_Y(epsilon)
    moments: np.ndarray  # R
    tail: float  # Q(Y > epsilon)
    patterns: np.ndarray  # P_j(Y > epsilon)


def border(encoder, patterns, weights, sigma, epsilon, width=None, reach=None):
    """What [N-gradP] speaks of, for modes whose inner products with their mean are not negative."""
    modes = patterns @ encoder.T / sigma
    n = modes.shape[1]
    mean = weights @ modes
    v = mean / np.linalg.norm(mean)
    across = np.linalg.qr(np.column_stack([v, np.eye(n)]))[0][:, 1:n]
    reach = reach or 7 + np.abs(modes @ across).max()
    width = width or 0.5 / max(1.5, np.linalg.norm(modes, axis=1).max())
    nodes, width = np.linspace(-reach, reach, 2 * math.ceil(reach / width) + 1, retstep=True)
    grid = np.stack(np.meshgrid(*[nodes] * (n - 1), indexing="ij"), axis=-1).reshape(-1, n - 1)
    log_mass = np.sum(stats.norm.logpdf(grid) + math.log(width), axis=1)
    mass = np.exp(log_mass)
    slopes, flat = (
        np.maximum(modes @ v, 0.0),
        grid @ (modes @ across).T - np.sum(modes**2, axis=1) / 2 + np.log(weights),
    )
    rising = slopes > 0
    t, last = np.min((epsilon - flat[:, rising]) / slopes[rising], axis=1), math.inf
    for _ in range(100):  # Newton from the right: Y is convex along the line
        y = flat + t[:, None] * slopes
        top = y.max(axis=1)
        posterior = np.exp(y - top[:, None])
        total = posterior.sum(axis=1)
        posterior /= total[:, None]
        step = (top + np.log(total) - epsilon) / (posterior @ slopes)
        t = t - step
        size = np.max(np.abs(step) / (1 + np.abs(t)))
        if size < 1e-13 or last < 1e-9 and size > last / 2:  # or rounding lets them fall no further
            break
        last = size
    above = np.exp(flat + slopes**2 / 2) * special.ndtr(slopes - t[:, None])
    below = np.exp(flat + slopes**2 / 2) * special.ndtr(t[:, None] - slopes)
    log_line, shares = log_mass + stats.norm.logpdf(t) - np.log(posterior @ slopes), posterior @ patterns
    largest = log_line.max()
    per_line = np.exp(log_line - largest)
    tail = mass @ special.ndtr(-t)
    return Border(
        mass @ (above.sum(axis=1) - math.exp(epsilon) * special.ndtr(-t)),
        mass @ (special.ndtr(t) - math.exp(-epsilon) * below.sum(axis=1)),  # at -epsilon, the border of add
        math.exp(largest) * per_line.sum(),
        (shares * per_line[:, None]).T @ shares / per_line.sum(),
        tail,
        mass @ above / weights,
    )


def coins(rounds, q):
    patterns = np.array(list(itertools.product([0.0, 1.0], repeat=rounds)))
    return patterns, np.prod(np.where(patterns > 0, q, 1 - q), axis=1)


def noise(encoder, patterns, weights, epsilon, delta, **grid):
    """The sigma at which delta is met: Newton's method for ln delta in ln sigma, kept between two ends."""
    length = np.linalg.norm(encoder.sum(axis=1))
    high = x = math.log(length / gaussian.calibrate(epsilon, delta)) + 0.01
    low = min(math.log(length / 30), high - 3)
    while True:
        found = border(encoder, patterns, weights, math.exp(x), epsilon, **grid)
        if found.delta > delta:
            low = x
        else:
            high = x
        fall = math.exp(epsilon - 2 * x) * found.density * np.sum(found.moments * (encoder.T @ encoder))
        step = (
            found.delta * math.log(found.delta / delta) / fall if found.delta > 0 and fall > 0 else math.inf
        )
        step = step if low < x + step < high else (low + high) / 2 - x
        x += step
        if abs(step) < 1e-13 * (1 + abs(x)):
            return math.exp(x)


def log_rmse(encoder, patterns, weights, epsilon, delta, **grid):
    """(ln RMSE, its gradient by the entries of the encoder)."""
    sigma = noise(encoder, patterns, weights, epsilon, delta, **grid)
    moments = border(encoder, patterns, weights, sigma, epsilon, **grid).moments
    inverse = np.linalg.inv(encoder)
    sums = np.cumsum(inverse, axis=0)
    gradient = encoder @ moments / np.sum(
        moments * (encoder.T @ encoder)
    ) - sums.T @ sums @ inverse.T / np.sum(sums**2)
    return math.log(sigma * np.linalg.norm(sums)), gradient


@st.composite
def mixtures(draw):
    """(encoder, patterns, weights, sigma, epsilon): Poisson sampling of two or three rounds, or any law of patterns."""
    n = draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    encoder = np.tril(rng.uniform(0, 1, (n, n))) + np.diag(rng.uniform(0.2, 1, n))
    patterns, weights = coins(n, draw(st.floats(0.05, 0.9)))
    if draw(st.booleans()):
        kept = rng.permutation(len(patterns))[: draw(st.integers(2, len(patterns)))]
        patterns, weights = patterns[kept], rng.dirichlet(np.ones(len(kept)))
    return encoder, patterns, weights, draw(st.floats(0.5, 3.0)), draw(st.floats(0.0, 3.0))


def slope(function, step=1e-4):
    """Central differences of fourth order."""
    return (8 * (function(step) - function(-step)) - function(2 * step) + function(-2 * step)) / (12 * step)


@examples(8, 400)
@given(mixtures(), st.integers(0, 2**32 - 1))
def test_slopes_of_delta(instance, seed):
    """[N-gradP] (i): by the encoder, the noise, epsilon and the weights, for random finite mixtures."""
    encoder, patterns, weights, sigma, epsilon = instance
    rng, alpha = np.random.default_rng(seed), math.exp(epsilon)
    turn, shift = np.tril(rng.normal(size=encoder.shape)), rng.normal(size=len(weights)) * weights
    found = border(encoder, patterns, weights, sigma, epsilon)
    delta = lambda c=encoder, w=weights, s=sigma, e=epsilon: border(c, patterns, w, s, e).delta
    rate, power = alpha * found.density / sigma**2, np.sum(found.moments * (encoder.T @ encoder))
    near = lambda stated, size: pytest.approx(stated, abs=1e-7 * size + 1e-11)
    by_encoder = slope(lambda h: delta(c=encoder + h * turn))
    assert by_encoder == near(rate * np.sum((encoder @ found.moments) * turn), rate * power)
    assert slope(lambda h: delta(s=sigma * math.exp(h))) == near(-rate * power, rate * power)
    assert slope(lambda h: delta(e=epsilon + h)) == near(-alpha * found.tail, alpha * found.tail)
    assert slope(lambda h: delta(w=weights + h * shift)) == near(found.patterns @ shift, 1.0)
    assert 0 < found.density < math.inf and power > 0


@examples(8, 400)
@given(mixtures(), st.integers(0, 2**32 - 1))
def test_slopes_in_direction_add(instance, seed):
    """[N-gradP] (iii): direction add has its border at -epsilon, where that is in the range of Y."""
    encoder, patterns, weights, sigma, epsilon = instance
    turn = np.tril(np.random.default_rng(seed).normal(size=encoder.shape))
    if not patterns.any(axis=1).all():  # a zero mode: Y is above the logarithm of its weight
        epsilon = min(epsilon, -0.9 * math.log(weights[~patterns.any(axis=1)].sum()))
    epsilon = -epsilon
    found = border(encoder, patterns, weights, sigma, epsilon)
    stated = found.density / sigma**2 * np.sum((encoder @ found.moments) * turn)
    size = found.density / sigma**2 * np.sum(found.moments * (encoder.T @ encoder))
    by_encoder = slope(lambda h: border(encoder + h * turn, patterns, weights, sigma, epsilon).add)
    assert by_encoder == pytest.approx(stated, abs=1e-6 * size + 1e-11)


@pytest.mark.parametrize("q, epsilon, delta", [(0.1, 0.5, 1e-5), (0.4, 2.0, 1e-3), (0.02, 1.0, 1e-6)])
def test_slopes_of_epsilon_and_of_the_noise(q, epsilon, delta):
    """[N-gradP] (ii) under Poisson sampling of two rounds: by C, q and sigma, against roots solved for again."""
    encoder = np.array([[1.0, 0.0], [0.3, 0.8]])
    patterns, weights = coins(2, q)
    sigma = noise(encoder, patterns, weights, epsilon, delta)
    found = border(encoder, patterns, weights, sigma, epsilon)
    power, hazard = np.sum(found.moments * (encoder.T @ encoder)), found.density / found.tail

    def epsilon_of(c=encoder, rate=q, s=sigma):
        return brentq(
            lambda e: border(c, patterns, coins(2, rate)[1], s, e).delta / delta - 1,
            epsilon - 0.3,
            epsilon + 0.3,
            xtol=1e-14,
        )

    for i, j in ((0, 0), (1, 0), (1, 1)):
        moved = lambda h, i=i, j=j: encoder + h * np.outer(np.eye(2)[i], np.eye(2)[j])
        by_entry = (encoder @ found.moments)[i, j]
        by_noise = slope(lambda h, moved=moved: math.log(noise(moved(h), patterns, weights, epsilon, delta)))
        assert by_noise == pytest.approx(by_entry / power, rel=1e-6)
        by_epsilon = slope(lambda h, moved=moved: epsilon_of(c=moved(h)))
        assert by_epsilon == pytest.approx(hazard * by_entry / sigma**2, rel=1e-6)
    assert slope(lambda h: epsilon_of(s=sigma * math.exp(h))) == pytest.approx(
        -hazard * power / sigma**2, rel=1e-6
    )
    counted = np.sum(weights * found.patterns * (patterns.sum(axis=1) - 2 * q)) / (q * (1 - q))
    assert slope(lambda h: epsilon_of(rate=q + h * q)) / q == pytest.approx(
        counted / (math.exp(epsilon) * found.tail), rel=1e-6
    )


@pytest.mark.parametrize("rounds", [2, 3])
def test_quadrature_agrees_with_the_library(rounds):
    """[N-gradP] The delta that is differentiated is that of the library, and a finer grid changes no digit that counts."""
    patterns, weights = coins(rounds, 0.2)
    for sigma, epsilon in ((3.0, 0.1), (1.0, 1.0), (0.6, 4.0)):
        found = border(np.eye(rounds), patterns, weights, sigma, epsilon)
        bracket = dplib.PoissonDPSGD(sigma, 0.2, rounds).delta(epsilon, "remove")
        assert bracket.lower * (1 - 1e-9) < found.delta < bracket.upper * (1 + 1e-9)
        finer = border(np.eye(rounds), patterns, weights, sigma, epsilon, width=0.1)
        assert np.allclose(found.moments, finer.moments, rtol=1e-9)
    encoder = np.array([[1.0, 0.0], [0.5, 0.7]])
    pair = truth.two_rounds(encoder, 1.2, 0.2).delta(0.5, "remove").value
    assert border(encoder, *coins(2, 0.2), 1.2, 0.5).delta == pytest.approx(pair, rel=1e-8)


@given(st.integers(2, 8), st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.5, 2.0]))
def test_noise_of_the_mean_mode_wants_no_correlation(n, seed, size):
    """[N-gradS] (i): |C 1| |A C^-1| is least at the fourth roots; among Toeplitz encoders at the identity."""
    rng, counts = np.random.default_rng(seed), np.arange(n, 0, -1)
    product = lambda c: np.linalg.norm(c.sum(axis=1)) * np.linalg.norm(np.cumsum(np.linalg.inv(c), axis=0))
    floor = np.sum(np.sqrt(counts))
    best = np.diag(counts**0.25)
    assert product(best) == pytest.approx(floor, rel=1e-12)
    encoder = best @ (
        np.eye(n) + size * np.tril(rng.exponential(size=(n, n)) * rng.integers(0, 2, (n, n)), -1)
    )
    assert product(encoder * np.exp(rng.normal(0, 0.3, (n, 1)))) >= floor * (1 - 1e-12)
    coefficients = np.append(1.0, size * rng.exponential(size=n - 1) * rng.integers(0, 2, n - 1))
    toeplitz = np.array([[coefficients[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])
    assert product(toeplitz) >= n * math.sqrt((n + 1) / 2) * (1 - 1e-12)


def search(rounds, weights_of, epsilon, delta, start):
    """Least RMSE over lower-triangular encoders >= 0 with C_11 = 1 from a start, by the gradient of [N-gradP]."""
    below = np.tril_indices(rounds, -1)

    def encoder_of(x):
        encoder = np.diag(np.exp(np.append(0.0, x[: rounds - 1])))
        encoder[below] = x[rounds - 1 :]
        return encoder

    def value(x):
        encoder = encoder_of(x)
        found, gradient = log_rmse(encoder, *weights_of, epsilon, delta, width=0.5, reach=6.5)
        return found, np.append((np.diag(gradient) * np.diag(encoder))[1:], gradient[below])

    bounds = [(-2, 2)] * (rounds - 1) + [(0, 2)] * len(below[0])
    end = minimize(
        value, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-13, "gtol": 1e-7}
    )
    return encoder_of(end.x), end.fun


@pytest.mark.parametrize("rounds", [2, 3])
def test_best_encoder_at_small_targets(rounds):
    """[N-gradS] (ii) Searches end at a diagonal encoder at epsilon = .05, and not at 1; its limit is the stated one."""
    counts, cases = np.arange(rounds, 0, -1), coins(rounds, 0.1)
    start = np.append(np.zeros(rounds - 1), np.full(rounds * (rounds - 1) // 2, 0.3))
    best, value = search(rounds, cases, 0.05, 1e-5, start)
    assert np.all(best[np.tril_indices(rounds, -1)] == 0)
    assert value < log_rmse(np.eye(rounds), *cases, 0.05, 1e-5)[0] - 0.01
    correlated, value = search(rounds, cases, 1.0, 1e-5, start)
    assert correlated[1, 0] > 0.05
    limit, value = search(rounds, cases, 1e-4, 1e-9, start)
    assert np.allclose(np.diag(limit), (counts / rounds) ** 0.25, atol=2e-3)
    ratio = math.exp(value - log_rmse(np.eye(rounds), *cases, 1e-4, 1e-9)[0])
    assert ratio == pytest.approx(np.sum(np.sqrt(counts)) / (rounds * math.sqrt((rounds + 1) / 2)), abs=2e-4)
    far = border(np.eye(rounds), *cases, noise(np.eye(rounds), *cases, 1e-4, 1e-9), 1e-4).moments
    assert np.allclose(far, 0.01, rtol=5e-3)


@pytest.mark.parametrize("rounds", [2, 3])
def test_best_encoder_in_bins(rounds):
    """[N-gradS] (ii) for balls in bins with one epoch: diagonal at epsilon = .05, correlated at 4, and the stated limit."""
    bins = np.eye(rounds), np.full(rounds, 1 / rounds)
    start = np.append(np.zeros(rounds - 1), np.full(rounds * (rounds - 1) // 2, 0.3))
    below, counts = np.tril_indices(rounds, -1), np.arange(rounds, 0, -1)
    assert np.all(search(rounds, bins, 0.05, 1e-5, start)[0][below] == 0)
    assert search(rounds, bins, 4.0, 1e-5, start)[0][1, 0] > 0.05
    limit, _ = search(rounds, bins, 1e-4, 1e-9, start)
    assert np.allclose(np.diag(limit), (counts / rounds) ** 0.25, atol=2e-3)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_no_correlation_at_any_epsilon_with_half_of_the_records(epsilon):
    """[N-gradS] (iii) Two rounds, q = 1/2, delta = 1e-5: searches from two starts end at a diagonal encoder."""
    for start in ([0.0, 0.5], [-0.5, 0.1]):
        best, _ = search(2, coins(2, 0.5), epsilon, 1e-5, start)
        assert best[1, 0] == 0
        slopes = log_rmse(best, *coins(2, 0.5), epsilon, 1e-5)[1]
        assert abs(slopes[1, 1]) < 1e-4 and slopes[1, 0] > 0.01


@pytest.mark.parametrize("epsilon, sign", [(0.02, 1), (0.3, 1), (1.0, -1), (2.0, -1), (8.0, 1)])
def test_best_toeplitz_encoder_of_two_rounds(epsilon, sign):
    """[N-gradS] (ii), (iv) At q = .1 a scan finds the identity best exactly where the slope at it is positive."""
    cases = coins(2, 0.1)
    lags = (0.0, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5)
    scan = [log_rmse(np.array([[1.0, 0.0], [c, 1.0]]), *cases, epsilon, 1e-5)[0] for c in lags]
    assert (np.argmin(scan) == 0) == (sign > 0)


@pytest.mark.parametrize("rounds, epsilon", [(2, 0.1), (2, 1.0), (3, 0.1), (3, 2.0)])
def test_slopes_at_the_identity_under_poisson_sampling(rounds, epsilon):
    """[N-gradS] (iv): (T - k)/T (rho - (T - k + 1)/(T + 1)), against RMSE solved for again."""
    cases = coins(rounds, 0.1)
    sigma = noise(np.eye(rounds), *cases, epsilon, 1e-5)
    moments = border(np.eye(rounds), *cases, sigma, epsilon).moments
    rho = moments[0, 1] / moments[0, 0]
    for k in range(1, rounds):
        stated = (rounds - k) / rounds * (rho - (rounds - k + 1) / (rounds + 1))
        found = slope(
            lambda h, k=k: log_rmse(np.eye(rounds) + h * np.eye(rounds, k=-k), *cases, epsilon, 1e-5)[0], 1e-3
        )
        assert found == pytest.approx(stated, abs=1e-7)


def test_numbers_at_the_identity():
    """[N-gradS] (iv) Two rounds, q = .1, delta = 1e-5: the slope by c_1 is positive, negative and positive again."""
    for epsilon, stated in ((0.02, 0.16553), (1.0, -0.07976), (8.0, 0.08316)):
        sigma = noise(np.eye(2), *coins(2, 0.1), epsilon, 1e-5)
        moments = border(np.eye(2), *coins(2, 0.1), sigma, epsilon).moments
        assert (moments[0, 1] / moments[0, 0] - 2 / 3) / 2 == pytest.approx(stated, abs=1e-5)


def nearest(q, epsilon):
    """Place y_1 of the points nearest to the origin on the limit of the border of two rounds, y_1 + y_2 = epsilon."""
    cost = lambda y: math.log1p(math.expm1(y) / q) ** 2 + math.log1p(math.expm1(epsilon - y) / q) ** 2
    low = math.log1p(-q) + 1e-9
    grid = np.linspace(epsilon / 2, epsilon - low, 20_001)[:-1]
    return grid[np.argmin([cost(y) for y in grid])]


@pytest.mark.parametrize(
    "q, epsilon", [(0.1, 0.15), (0.1, 1.5), (0.13, 1.5), (0.13, 4.0), (0.5, 6.0), (0.03, 1.0)]
)
def test_fixed_epsilon_and_small_delta(q, epsilon):
    """[N-gradS] (iii): as the noise grows the border gathers at its nearest points, at one with y_1 = y_2 if q > 1/(1 + e^2)."""
    y = nearest(q, epsilon)
    one, two = (1 - (1 - q) * math.exp(-x) for x in (y, epsilon - y))
    limit, distance = 2 * one * two / (one**2 + two**2), []
    if q >= 1 / (1 + math.exp(2)) or math.sqrt(2) * math.log1p(math.expm1(epsilon / 2) / q) <= 1:
        assert limit > 1 - 1e-6
    for sigma in (5.0, 20.0, 80.0):
        moments = border(np.eye(2), *coins(2, q), sigma, epsilon, width=0.3, reach=8 * sigma).moments
        distance.append(abs(moments[0, 1] / moments[0, 0] - limit))
    assert distance[2] < 0.02 and distance[2] < distance[0]


def test_convexity_behind_the_rate():
    """[N-gradS] (iii): z (1 - pi(z)) < 1 for every z exactly above 1/(1 + e^2), and h'' is what the proof says."""
    z, bound = np.linspace(-5, 10, 30_001), 1 / (1 + math.exp(2))
    steepest = lambda q: np.max(z * (1 - q) / (1 - q + q * np.exp(z)))
    assert steepest(bound * 1.001) < 1 < steepest(bound * 0.999)
    h = lambda y, q: math.log1p(math.expm1(y) / q) ** 2
    for y, q in ((0.5, 0.1), (-0.05, 0.1), (2.0, 0.3)):
        pi, z = 1 - (1 - q) * math.exp(-y), math.log1p(math.expm1(y) / q)
        assert (h(y + 1e-4, q) - 2 * h(y, q) + h(y - 1e-4, q)) / 1e-8 == pytest.approx(
            2 / pi**2 * (1 - z * (1 - pi)), rel=1e-5
        )


@pytest.mark.parametrize("rounds", [2, 3])
def test_rounds_apart_as_the_noise_vanishes(rounds):
    """[N-gradS] (iv): towards the largest delta there is, a release on the border betrays one round."""
    cases, rho = coins(rounds, 0.1), []
    for sigma in (1.0, 0.5, 0.125):
        found = border(np.eye(rounds), *cases, sigma, 0.5, width=0.04 if rounds == 2 else 0.12)
        rho.append(found.moments[0, 1] / found.moments[0, 0])
    assert rho[0] > rho[1] > rho[2] and rho[2] < 1e-4
    assert found.delta == pytest.approx(1 - 0.9**rounds, rel=1e-3)
