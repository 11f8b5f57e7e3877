"""Statements of chapter 16 on encoders under amplification, by quadrature where two bins allow it, else by lines.

Tags: [N-grad] how the noise follows the encoder, [N-gradI] when independent noise is best, [N-RMSE] the objective.
"""

import math

import numpy as np
import pytest
from scipy import special, stats
from scipy.optimize import brentq

import dplib
from dplib import accounting, gaussian, matrices, optimize, utility
from dplib.mixtures import Mixture

NODES, WEIGHTS = np.polynomial.legendre.leggauss(400)


def delta_of(gram, epsilon):
    """delta of two modes, remove direction: one coordinate by Gauss quadrature, the other in closed form."""
    root, alpha = np.linalg.cholesky(gram), math.exp(epsilon)
    s, cut = root[1, 1], (epsilon + math.log(2) + gram[0, 0] / 2) / root[0, 0]
    ends = np.array([min(-9, cut - 18), cut, cut + 18])
    half, middle = np.diff(ends)[:, None] / 2, (ends[1:] + ends[:-1])[:, None] / 2
    z, mass = (middle + half * NODES).ravel(), (half * WEIGHTS).ravel()
    gap = alpha - np.exp(root[0, 0] * z - gram[0, 0] / 2) / 2
    log_second = root[1, 0] * z - root[1, 0] ** 2 / 2 - math.log(2)
    d = (log_second - np.log(np.where(gap > 0, gap, alpha * 1e-200))) / s + s / 2
    value = np.exp(log_second) * special.ndtr(d) - gap * special.ndtr(d - s)
    return mass @ (stats.norm.pdf(z) * value)


def border(gram, epsilon):
    """(density of Y at epsilon under Q, Pi) of two modes: the normal density summed along the border."""
    reach = min(150, 40 * math.sqrt(gram[0, 0] + gram[1, 1] - 2 * gram[0, 1]))
    logit, width = np.linspace(-reach, reach, 6001, retstep=True)
    log_pi = special.log_expit(np.stack([logit, -logit]))
    weight = stats.multivariate_normal(-np.diag(gram) / 2, gram).pdf((epsilon + math.log(2) + log_pi).T) * width
    return weight.sum(), (np.exp(log_pi) * weight) @ np.exp(log_pi).T / weight.sum()


def noise_of(gram, epsilon, delta):
    top = math.log(math.sqrt(gram.max()) / gaussian.calibrate(epsilon, delta))
    return math.exp(brentq(lambda x: math.log(delta_of(gram * math.exp(-2 * x), epsilon) / delta), top - 0.8, top + 0.01))


def table(c):
    return np.array([[1 + c**2, c], [c, 1.0]])


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
def test_slope_of_delta_by_every_entry(epsilon):
    """[N-grad] (i): d delta = alpha f_Y(epsilon) <Pi, d Gamma> / 2."""
    rng = np.random.default_rng(int(10 * epsilon))
    for _ in range(5):
        factor = np.tril(rng.uniform(0.5, 1.5, (2, 2)))
        gram = factor @ factor.T
        density, pi = border(gram, epsilon)
        for change in (np.diag([1.0, 0.0]), np.diag([0.0, 1.0]), np.array([[0.0, 1.0], [1.0, 0.0]])):
            rise = (delta_of(gram + 1e-4 * change, epsilon) - delta_of(gram - 1e-4 * change, epsilon)) / 2e-4
            assert rise == pytest.approx(math.exp(epsilon) * density * np.sum(pi * change) / 2, rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0, 16.0])
def test_slope_of_the_noise(epsilon):
    """[N-grad] (ii): d ln sigma = <Pi, d Gamma> / (2 <Pi, Gamma>), against the noise solved for again."""
    gram, turn = table(0.4), np.array([[0.8, 1.0], [1.0, 0.0]])
    pi = border(gram / noise_of(gram, epsilon, 1e-5) ** 2, epsilon)[1]
    slope = math.log(noise_of(table(0.4 + 1e-4), epsilon, 1e-5) / noise_of(table(0.4 - 1e-4), epsilon, 1e-5)) / 2e-4
    assert slope == pytest.approx(np.sum(pi * turn) / (2 * np.sum(pi * gram)), rel=2e-5)


def test_table_of_posteriors():
    """[N-grad] (iii): symmetric, non-negative, positive semidefinite, sum 1, trace from 1/b to 1."""
    traces = []
    for epsilon in (0.01, 0.5, 2.0, 8.0, 64.0):
        pi = border(np.eye(2) / noise_of(np.eye(2), epsilon, 1e-5) ** 2, epsilon)[1]
        assert np.allclose(pi, pi.T) and pi.min() >= 0 and np.linalg.eigvalsh(pi).min() > -1e-15
        assert pi.sum() == pytest.approx(1)
        traces.append(np.trace(pi))
    assert 0.5 <= traces[0] < 0.5001 and np.all(np.diff(traces) > 0) and 0.999 < traces[-1] <= 1


@pytest.mark.parametrize("batches, epochs", [(2, 1), (3, 2), (4, 4), (8, 8)])
def test_slopes_at_independent_noise(batches, epochs):
    """[N-gradI] The closed form, with p from the slope at lag 1, for every lag; and its sign."""
    n = batches * epochs
    identity, lag = np.eye(1, n)[0], np.arange(1, n)
    for epsilon in (0.05, 1.0, 6.0):
        arguments = {"epsilon": epsilon, "delta": 1e-5, "batches_per_epoch": batches}
        sigma, slope = optimize.noise_slope(identity, **arguments)
        step = 1e-5
        errors = [utility.rmse(matrices.toeplitz(identity + step * row)) for row in np.eye(n)[1:]]
        found = slope[1:] / sigma + (np.array(errors) / utility.rmse(matrices.identity(n)) - 1) / step
        first = slope[1] / sigma * n / (n - 1)  # (1 - p) / ((b - 1) p)
        stated = (n - lag) / n * np.where(lag % batches, first - (n - lag + 1) / (n + 1), lag / (n + 1))
        assert np.allclose(found, stated, atol=0.02)
        p = 1 / (1 + (batches - 1) * first)
        assert 1 / batches - 0.01 < p < 1
        if abs(p * (batches * n + 1) / (n + 1) - 1) > 0.02:
            assert (found[0] > 0) == (p < (n + 1) / (batches * n + 1))


def test_threshold_of_independent_noise():
    """[N-gradI] Two rounds: c = 0 is best exactly while Pi has a trace below 3/5."""

    def trace(epsilon):
        return np.trace(border(np.eye(2) / noise_of(np.eye(2), epsilon, 1e-5) ** 2, epsilon)[1])

    def rmse(c, epsilon):
        return noise_of(table(c), epsilon, 1e-5) * math.sqrt((2 + (1 - c) ** 2) / 2)

    turn = brentq(lambda epsilon: trace(epsilon) - 0.6, 0.3, 3, xtol=1e-6)
    assert rmse(0.0, turn - 0.05) < min(rmse(c, turn - 0.05) for c in (1e-3, 0.05, 0.2, 0.5))
    assert rmse(1e-2, turn + 0.05) < rmse(0.0, turn + 0.05)


def test_optimiser_finds_independent_noise_below_the_threshold():
    """[N-gradI] Eight batches and epochs: the identity at epsilon 0.1, not at 0.25."""
    target = {"delta": 1e-5, "batches_per_epoch": 8, "epochs": 8}
    below, above = (optimize.optimize("toeplitz", epsilon=epsilon, **target) for epsilon in (0.1, 0.25))
    assert below.encoder.coefficients[1:].max() < 1e-3 and above.encoder.coefficients[1] > 0.05


@pytest.mark.parametrize("epsilon", [0.1, 1.0, pytest.param(6.0, marks=pytest.mark.trust)])
def test_independent_noise_is_never_stationary(epsilon):
    """[N-gradI] Among all lower-triangular encoders: the slope of ln RMSE by ln C_11 at I is 1/T - 2/(T + 1)."""
    step = 1e-4

    def slope(noise, rounds):
        high, low = (math.log(noise(np.array([math.exp(x)] + [1.0] * (rounds - 1)))) for x in (step, -step))
        errors = [utility.rmse(matrices.dense(np.diag([math.exp(x)] + [1.0] * (rounds - 1)))) for x in (step, -step)]
        return (high - low + math.log(errors[0] / errors[1])) / (2 * step)

    def bins(d):  # two batches, one epoch, by quadrature
        return noise_of(np.diag(d**2), epsilon, 1e-5)

    def poisson(d):
        mixtures = lambda x: [(Mixture([0.0, s], [0.75, 0.25], math.exp(x)), 1) for s in d]
        excess = lambda x: math.log(accounting.delta(mixtures(x), epsilon, "remove").upper / 1e-5)
        top = math.log(math.sqrt(d @ d) / gaussian.calibrate(epsilon, 1e-5))
        return math.exp(brentq(excess, top - 2.0, top + 0.01, xtol=1e-11))

    assert slope(bins, 2) == pytest.approx(-1 / 6, abs=1e-5)
    assert slope(poisson, 2) == pytest.approx(-1 / 6, abs=1e-5)
    assert slope(poisson, 3) == pytest.approx(1 / 3 - 2 / 4, abs=1e-5)


@pytest.mark.parametrize("batches, epochs", [(2, 2), (8, 8), pytest.param(5, 3, marks=pytest.mark.trust)])
def test_noise_that_grows_by_epochs_beats_one_size(batches, epochs):
    """[N-gradI] d_t = Q_j^(1/4) has exactly the stated ratio at every epsilon, and no other d by epochs a smaller one."""
    rounds = batches * epochs
    sums = np.arange(rounds, 0, -1).reshape(epochs, batches).sum(axis=1)

    def error(by_epoch, epsilon):
        encoder = matrices.dense(np.diag(np.repeat(by_epoch, batches)))
        mechanism = dplib.BallsInBins(encoder, 1.0, batches, epochs)
        found = dplib.calibrate(mechanism, epsilon=epsilon, delta=1e-6, method="exact")
        return utility.rmse(encoder, found.noise_multiplier)

    stated = np.sqrt(sums).sum() / math.sqrt(epochs * sums.sum())
    assert stated < 1
    for epsilon in (0.1, 4.0):
        one_size = error(np.ones(epochs), epsilon)
        assert error(sums**0.25, epsilon) / one_size == pytest.approx(stated, rel=1e-6)
        others = np.random.default_rng(16).uniform(0.8, 1.25, (5, epochs)) * sums**0.25
        assert min(error(d, epsilon) for d in others) / one_size > stated


def test_scaled_rows_beat_the_best_toeplitz_encoder():
    """[N-gradI] Not only at I: T = 64, b = 8, epsilon = 1, certified, from the library's own optimum."""
    run = optimize.optimize("toeplitz", epsilon=1.0, delta=1e-5, batches_per_epoch=8, epochs=8)
    c, rounds = run.encoder.coefficients, 64
    h = np.cumsum(np.linalg.solve(matrices.toeplitz(c).entries(), np.eye(rounds)[0]))
    columns = np.cumsum(h**2)[::-1]
    d = columns**0.25 / (columns**0.25)[0]  # the formula with r_t = 1: good enough for four per cent
    encoder = matrices.dense(d[:, None] * matrices.toeplitz(c).entries())
    mechanism = dplib.BallsInBins(encoder, 1.0, 8, 8)
    proved, _ = mechanism.certified(1.0, 1e-5, samples=2**14)
    assert utility.rmse(encoder, proved.noise_multiplier) < 0.96 * run.objective
