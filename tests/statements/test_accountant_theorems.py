"""The theorems of book/accountants.md on numbers, without the accountants: formulas as printed there.

Each test evaluates both sides of one statement by elementary means (fine trapezoid
sums, direct enumeration, 40-digit arithmetic); none of them calls dplib.contour or dplib.lattice.
"""

import functools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, special

from dplib import gaussian, mixtures

PAIRS = {
    "binomial": mixtures.binomial(3, 0.2, 1.5),
    "hypergeometric": mixtures.hypergeometric(5, 20, 3, 4.0),
    "uneven": mixtures.Mixture([0.0, 0.7, 2.0], [0.5, 0.4, 0.1], 1.2),
}
DIRECTIONS = ("remove", "add")
GRID = np.linspace(-16.0, 22.0, 3801)  # step 0.01: the trapezoid rule is exact to rounding here


@pytest.fixture(params=PAIRS)
def pair(request):
    return PAIRS[request.param]


def log_phi(u):
    return -u * u / 2 - 0.5 * math.log(2 * math.pi)


def posterior(pair, u):
    """(log R, posterior mean, posterior variance) at u."""
    with np.errstate(divide="ignore"):
        exponents = np.log(pair.probabilities) + np.outer(u, pair.shifts) - pair.shifts**2 / 2
    top = exponents.max(axis=1, keepdims=True)
    weights = np.exp(exponents - top)
    total = weights.sum(axis=1)
    mean = weights @ pair.shifts / total
    return top[:, 0] + np.log(total), mean, weights @ pair.shifts**2 / total - mean**2


def power(direction, z):
    return 1 + z if direction == "remove" else -z


@functools.lru_cache(maxsize=2)
def moment(pair, direction, z):
    """M(z) of one round for a tuple of complex z."""
    log_ratio, z = posterior(pair, GRID)[0], np.array(z)
    values = [
        np.exp(np.outer(power(direction, part), log_ratio) + log_phi(GRID)).sum(axis=1)
        for part in np.array_split(z, max(1, len(z) // 200))
    ]
    return np.concatenate(values) * (GRID[1] - GRID[0])


def integrand(pair, direction, c, y, epsilon):
    z = c + 1j * np.atleast_1d(y)
    return moment(pair, direction, tuple(z)) * np.exp(-z * epsilon) / (z * (z + 1))


@pytest.mark.parametrize("epsilon", [-0.4, 0.0, 0.15])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("c", [0.8, pytest.param(2.5, marks=pytest.mark.trust), -0.3, pytest.param(-0.7, marks=pytest.mark.trust)])
def test_inversion_formula(pair, direction, c, epsilon):
    """[A-1], [A-20] The contour integral is the closed form of one round, less 1 at a negative tilt, for every real epsilon."""
    reach = 100.0
    y = np.linspace(0.0, reach, 2001)
    values = integrand(pair, direction, c, y, epsilon)
    value = integrate.simpson(values.real, x=y) / math.pi
    # Beyond `reach` the modulus keeps falling: the rest is at most its last values times `reach`.
    rest = 3 * np.abs(values[-200:]).max() * reach / math.pi
    assert abs(value + (c < 0) - float(pair.hockey_stick(epsilon, direction))) < rest + 1e-9
    assert rest < 2e-3


def test_inversion_formula_for_a_gaussian_to_rounding():
    """[A-1] With M(z) = exp(mu^2 z (z + 1) / 2) nothing is left beyond the last node."""
    mu, c, epsilon = 1.3, 1.7, 0.9
    y = np.linspace(0.0, 12.0, 4001)
    z = c + 1j * y
    values = np.exp(mu * mu * z * (z + 1) / 2 - z * epsilon) / (z * (z + 1))
    assert integrate.simpson(values.real, x=y) / math.pi == pytest.approx(
        gaussian.delta(mu, epsilon), rel=1e-11
    )


@pytest.mark.parametrize("period", [1.5, 3.0, 6.0])
def test_aliasing_identity(period):
    """[A-2] The trapezoid sum is the sum over all shifts by the period, each delta with its weight."""
    mu, c, epsilon = 1.1, 0.9, 0.6
    y = 2 * math.pi / period * np.arange(400)
    z = c + 1j * y
    terms = (np.exp(mu * mu * z * (z + 1) / 2 - z * epsilon) / (z * (z + 1))).real
    terms[0] /= 2
    total = 2 / period * terms.sum()
    shifts = np.arange(-60, 61)
    series = sum(math.exp(c * m * period) * gaussian.delta(mu, epsilon + m * period) for m in shifts)
    assert total == pytest.approx(series, rel=1e-12)
    excess = total - gaussian.delta(mu, epsilon)
    chernoff = lambda t: math.exp(
        t * math.log(t) - (1 + t) * math.log1p(t) + mu * mu * t * (t + 1) / 2 - t * epsilon
    )
    above = min(chernoff(t) / math.expm1((t - c) * period) for t in np.linspace(1.0, 6.0, 40))
    below = min(
        [1 / math.expm1(c * period)] + [chernoff(t) / math.expm1((c - t) * period) for t in (0.2, 0.5, 0.7)]
    )
    assert 0 < excess <= above + below


@pytest.mark.parametrize("period", [4.0, 9.0])
def test_aliasing_of_the_miss(period):
    """[A-20] The same sum at a negative tilt, and the bounds on what it adds to 1 - delta."""
    mu, c, epsilon = 3.0, -0.45, 0.6
    miss = lambda x: special.ndtr(x / mu - mu / 2) + math.exp(x) * special.ndtr(-x / mu - mu / 2)  # no difference
    y = 2 * math.pi / period * np.arange(400)
    z = c + 1j * y
    terms = -(np.exp(mu * mu * z * (z + 1) / 2 - z * epsilon) / (z * (z + 1))).real
    terms[0] /= 2
    total = 2 / period * terms.sum()
    series = sum(math.exp(c * m * period) * miss(epsilon + m * period) for m in range(-12, 60))
    assert total == pytest.approx(series, rel=1e-10)
    chi = lambda t: math.exp(mu * mu * t * (t + 1) / 2 - t * epsilon)
    below = min(chi(t) / math.expm1((c - t) * period) for t in (-0.6, -0.8, -1.0))
    above = min([1 / math.expm1(-c * period)] + [chi(t) / math.expm1((t - c) * period) for t in (-0.3, -0.1, 0.0)])
    assert 0 < total - miss(epsilon) <= above + below


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_strip(pair, direction):
    """[A-3] Off the line R keeps its size and its argument within the stated bounds."""
    u = np.linspace(-6, 8, 600)
    log_ratio, mean, _ = posterior(pair, u)
    bound = pair.variance_bound
    for share in (1.0, 0.6, 0.2):
        tau = share / math.sqrt(bound)
        kappa = tau * tau / 2 * np.minimum(bound, pair.shifts[-1] * mean)
        path = np.exp(
            np.multiply.outer(u, pair.shifts)[:, None, :]
            + 1j * np.linspace(0, tau, 60)[:, None] * pair.shifts
            - pair.shifts**2 / 2
        )
        values = path @ pair.probabilities
        argument = np.unwrap(np.angle(values), axis=1)[:, -1]
        size = np.abs(values[:, -1]) / np.exp(log_ratio)
        assert np.all(size >= 1 - kappa - 1e-12) and np.all(size <= 1 + 1e-12)
        assert np.all(np.abs(argument) <= tau * mean + np.arcsin(kappa) + 1e-9)


# -- the lattice: measures of loss values as (loss, mass) arrays


@pytest.mark.parametrize("points", [8, 13, 20])
@pytest.mark.parametrize("c", [0.4, 1.5])
def test_wrap_around(points, c):
    """[A-7] The cyclic convolution of tilted masses, tilted back, sums delta over all shifts of the period."""
    rng, step, rounds = np.random.default_rng(points), 0.25, 3
    masses = rng.dirichlet(np.ones(6))
    first = -2
    tilted = masses * np.exp(c * step * (first + np.arange(6)))
    wrapped = np.bincount((first + np.arange(6)) % points, tilted, points)
    cyclic = np.fft.ifft(np.fft.fft(wrapped) ** rounds).real
    exact = masses
    for _ in range(rounds - 1):
        exact = np.convolve(exact, masses)
    support = step * (rounds * first + np.arange(len(exact)))
    delta = lambda e: float(np.maximum(1 - np.exp(e - support), 0) @ exact)
    for epsilon in (-0.3, 0.1, 0.55):
        k = np.arange(math.floor(epsilon / step) + 1, math.floor(epsilon / step) + 2000)
        computed = (cyclic[k % points] * np.exp(-c * step * k) * -np.expm1(epsilon - step * k)).sum()
        series = sum(
            math.exp(c * m * points * step) * delta(epsilon + m * points * step) for m in range(-60, 61)
        )
        assert computed == pytest.approx(series, rel=1e-9)
        assert computed >= delta(epsilon) - 1e-12


# -- rare rounds: the bulk is taken out


def chernoff(t, losses, masses, epsilon):
    """Chernoff's bound on delta at tilt t, for a measure of losses."""
    return math.exp(t * math.log(t) - (1 + t) * math.log1p(t) - t * epsilon) * float(np.exp(t * losses) @ masses)


@pytest.mark.parametrize("seed", range(40))
def test_errors_of_the_two_parts(seed):
    """[A-8] The difference of the two products, for up to three kinds of rounds, in 50 digits."""
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(1, 4))
    rounds = (10 ** rng.uniform(0.3, 3, kinds)).astype(int)
    flat, sharp = 10 ** rng.uniform(-0.2, 0.2, kinds), 10 ** rng.uniform(-9, 1, kinds)
    off_flat, off_sharp = (10 ** rng.uniform(-9, -2, kinds) / rounds * size for size in (flat, sharp))
    with mpmath.workdps(50):
        product = lambda factors: mpmath.fprod(mpmath.mpmathify(f) ** int(t) for f, t in zip(factors, rounds))
        left = lambda b, x: product([mpmath.mpmathify(i) + mpmath.mpmathify(j) for i, j in zip(b, x)]) - product(b)
        most = flat + sharp + off_flat + off_sharp
        share = min(1.0, float(rounds @ ((sharp + off_sharp) / (flat + sharp))))
        bound = product(most) * (float(rounds @ (off_sharp / most)) + share * float(rounds @ (off_flat / most)))
        worst = 0
        for _ in range(20):
            turns = np.exp(1j * rng.normal(0, 0.02, (4, kinds)))
            b, x = flat * turns[0], sharp * turns[1]
            worst = max(worst, abs(left(b + off_flat * turns[2], x + off_sharp * turns[3]) - left(b, x)))
        both = [[mpmath.mpf(float(i)) + mpmath.mpf(float(j)) for i, j in pairs] for pairs in (zip(flat, off_flat), zip(sharp, off_sharp))]
        straight = left(*both) - left(flat, sharp)
    assert worst <= bound * (1 + 1e-12) and straight <= bound * (1 + 1e-12)
    # Not idle: errors of one sign on the real line come within a factor of ten.
    assert straight >= 0.1 * bound
