"""Properties of balls in bins, its certificates, MMCC and its row laws, on random instances."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from property_cases import DIRECTIONS, answer, at_most, examples, logs
from scipy import special, stats

from dplib import BallsInBins, MatrixMechanism, PoissonDPSGD, conditional, gaussian, matrices
from dplib.balls_in_bins import certificate
from dplib.balls_in_bins import confidence_bounds as betting
from dplib.balls_in_bins import exact as exact_bins
from dplib.balls_in_bins import lognormal_sum as lognormal
from dplib.balls_in_bins import tuple_sampler as tuples
from dplib.conditional import row_laws as row_law
from dplib.conditional import tails
from dplib.mixtures import Mixture

directions = st.sampled_from(DIRECTIONS)
seeds = st.integers(0, 2**32)


def delta(bins, norm, epsilon, side, tolerance=1e-3):
    return answer(lognormal.bracket, bins, norm, epsilon, side, tolerance)


# ------------------------------------------------------------ orthogonal modes


@examples(24)
@given(st.integers(2, 300), logs(0.01, 30), st.floats(0, 6), directions, st.floats(1.02, 1.5))
def test_sums_of_lognormals(bins, norm, epsilon, side, factor):
    """[A-16] Falls in epsilon and in the bins, rises with the modes; between Jensen's bound and one bin's."""
    base = delta(bins, norm, epsilon, side)
    assert 0 <= base.lower <= base.upper <= 1
    assert at_most(delta(bins, norm, epsilon + factor - 1, side), base)
    assert at_most(delta(bins + 1, norm, epsilon, side), base)
    assert at_most(base, delta(bins, norm * factor, epsilon, side))
    assert base.lower <= gaussian.delta(math.sqrt(norm), epsilon) * (1 + 1e-9)
    # Whoever knows the other bins is left with one coin: convexity.
    jensen = Mixture([0.0, 1.0], [1 - 1 / bins, 1 / bins], 1 / math.sqrt(norm)).hockey_stick(epsilon, side)
    assert jensen <= base.upper * (1 + 1e-9)
    remove = delta(bins, norm, epsilon, "remove")
    assert at_most(delta(bins, norm, epsilon, "add"), remove)


@examples(24)
@given(st.integers(2, 60), logs(0.05, 20), st.floats(0, 4), directions)
def test_coarse_grids_of_lognormals_contain_the_truth(bins, norm, epsilon, side):
    exact = delta(bins, norm, epsilon, side)
    if exact.upper < 1e-30:
        return
    plan = lognormal._Plan(bins, norm, epsilon, side, lognormal.log_ceiling(norm, epsilon))
    for cells in (2, 5, 16, 50, 200):
        low, high, _ = answer(lognormal._evaluate, plan, cells)
        assert low <= exact.upper and exact.lower <= high


@examples(10)
@given(st.integers(2, 60), logs(0.05, 10), logs(1e-60, 0.5), directions)
def test_epsilon_of_lognormals_is_the_inverse(bins, norm, target, side):
    found = answer(lognormal.epsilon_bracket, bins, norm, target, side, 1e-2)
    assert delta(bins, norm, found.upper, side).lower <= target
    assert found.lower == 0 or delta(bins, norm, found.lower, side).upper >= target


# ------------------------------------------------------------ certificates


def gram(rng, bins, size):
    modes = np.abs(rng.normal(size=(bins, 3))) ** 2 * size
    return modes @ modes.T


@examples(16)
@given(st.integers(2, 8), logs(0.3, 6), st.floats(0.0, 4.0), directions, st.integers(0, 2**32))
def test_certificates_are_above_the_truth(bins, norm, epsilon, side, seed):
    """[A-15] Independent modes: against the exact bracket; wrong with probability 1e-9 at most."""
    try:
        plan = certificate.prepare(norm * np.eye(bins), epsilon, side, 8192, 1e-9, seed, 3 if side == "remove" else None)
        upper = certificate.run(plan, 8192, 1e-9, seed, ())
    except ValueError:
        return
    assert delta(bins, norm, epsilon, side).lower <= upper <= 1


@examples(20)
@given(st.integers(2, 8), logs(0.2, 2), st.floats(0.0, 4.0), directions, seeds)
def test_samples_average_to_delta_and_stay_below_their_bound(bins, size, epsilon, side, seed):
    """[A-15] The mean of one sampler against plain sampling of the same modes."""
    rng = np.random.default_rng(seed)
    table = gram(rng, bins, size / 4)
    factor = tuples.factor(table)
    make = tuples.plain_sampler if side == "remove" else tuples.add_sampler
    try:
        sampler = make(factor, epsilon)
    except tuples.OutOfRange:
        return
    samples = sampler(np.random.default_rng([seed, 1])) * sampler.bound
    noise = rng.normal(size=(40_000, factor.rows.shape[1])) @ factor.rows.T
    ratio = np.exp(noise - factor.gram.diagonal() / 2)
    if side == "remove":
        chosen = rng.integers(bins, size=len(noise))
        noise += factor.gram[chosen]
        ratio = np.exp(noise - factor.gram.diagonal() / 2).mean(axis=1)
        plain = np.maximum(0.0, 1 - math.exp(epsilon) / ratio)
    else:
        plain = np.maximum(0.0, 1 - math.exp(epsilon) * ratio.mean(axis=1))
    error = math.sqrt(samples.var() / len(samples) + plain.var() / len(plain)) + 1e-3
    assert abs(samples.mean() - plain.mean()) < 6 * error
    assert samples.min() >= 0


@examples(50)
@given(st.integers(50, 400), logs(1e-4, 0.5), logs(1e-12, 1e-3), st.sampled_from([0.05, 0.3, 0.9]), seeds)
def test_confidence_bounds(count, chance, failure, bet, seed):
    """[A-15] (iv): never below the average, never above the largest value; looser for less failure or fewer samples."""
    samples = 2.0 * (np.random.default_rng(seed).random(count) < chance)
    found = betting.betting(samples, 2.0, failure, bet)
    assert samples.mean() <= found <= 2.0
    assert found <= betting.betting(samples, 2.0, failure / 10, bet)
    # The capital at the bound has reached 1 / failure: the definition, in plain arithmetic.
    if found < 2.0:
        assert np.log1p(bet * (found - samples) / 2.0).sum() >= math.log(1 / failure)
    # A coin that gives this average so rarely: the exact binomial bound is never above all of them.
    hits = int(samples.sum() / 2)
    exact = 2 * stats.beta.isf(failure, hits + 1, count - hits) if hits < count else 2.0
    assert betting.chernoff_hoeffding(samples.mean() / 2, count, failure) * 2 >= exact * (1 - 1e-6)
    assert betting.maurer_pontil(samples, 2.0, failure) >= samples.mean()


def test_confidence_bounds_hold_as_often_as_they_say():
    """[A-15] (iv) 2,000 repetitions at a failure probability of 0.05: at most 5% and six errors fail."""
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(2000):
        samples = (rng.random(60) < 0.1).astype(float)
        wrong += betting.betting(samples, 1.0, 0.05, 0.6) < 0.1
    assert 0 < wrong <= 2000 * 0.05 + 6 * math.sqrt(2000 * 0.05 * 0.95)


@examples(16)
@given(st.integers(1, 40), logs(0.5, 10), logs(1e-9, 0.1), directions)
def test_one_batch_and_any_noise(epochs, sigma, target, direction):
    """One batch: a Gaussian mechanism. Less noise never costs less."""
    one = BallsInBins(matrices.identity(epochs), sigma, batches_per_epoch=1, epochs=epochs)
    found = one.epsilon(target, direction)
    truth = gaussian.epsilon(math.sqrt(epochs) / sigma, target)
    assert found.lower <= truth * (1 + 1e-12) and truth <= found.upper * (1 + 1e-12)
    table = np.eye(5) * epochs / sigma**2
    base, louder = (exact_bins.bracket(x, 1.0, direction) for x in (table, table / 1.1))
    assert at_most(louder, base)


# ------------------------------------------------------------ MMCC


@examples(6)
@given(st.integers(2, 7), logs(1.0, 6.0), logs(0.01, 0.5), logs(1e-6, 1e-2), directions, seeds)
def test_mmcc_is_above_what_a_line_shows(n, sigma, p, target, direction, seed):
    """[M-4.3] The sum of the outputs along a line is a scalar mixture that can be enumerated: a lower bound."""
    rng = np.random.default_rng(seed)
    encoder = matrices.toeplitz(np.sort(np.append(rng.random(n - 1), 1.0))[::-1])
    bound = answer(MatrixMechanism(encoder, sigma, p).epsilon, target, direction)
    rows = encoder.entries() if hasattr(encoder, "entries") else encoder.multiply(np.eye(n))
    taken = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    chances = np.prod(np.where(taken, p, 1 - p), axis=1)
    line = rows.sum(axis=1)
    seen = Mixture(taken @ (rows.T @ line), chances / chances.sum(), sigma * float(np.linalg.norm(line)))
    assert seen.hockey_stick(bound.upper, direction) <= target * (1 + 1e-9)


@examples(4)
@given(st.integers(2, 40), logs(1.0, 6.0), logs(0.01, 0.5), logs(1e-8, 1e-2), directions)
def test_mmcc_of_independent_noise_is_dpsgd(n, sigma, p, target, direction):
    """C = I: the past says nothing, and MMCC costs what Poisson sampling costs; with p = 1 the Gaussian mechanism."""
    exact = answer(PoissonDPSGD(sigma, p, n).epsilon, target, direction)
    found = answer(MatrixMechanism(matrices.identity(n), sigma, p).epsilon, target, direction).upper
    assert exact.lower <= found <= exact.upper * 1.01 + 1e-6
    everybody = answer(MatrixMechanism(matrices.identity(n), sigma, 1.0).epsilon, target, direction).upper
    truth = gaussian.epsilon(math.sqrt(n) / sigma, target)
    assert truth * (1 - 1e-9) <= everybody <= truth * 1.01 + 1e-9


@examples(12)
@given(st.integers(2, 12), logs(1.0, 6.0), logs(0.01, 0.4), logs(1e-12, 1e-2), st.floats(1.05, 2))
def test_published_bounds_are_monotone(n, sigma, p, delta_1, factor):
    """[M-Alg2] Never below p; more noise or a larger delta_1 lowers them, more sampling raises them."""
    encoder = matrices.optimal_counting(n)
    base = conditional.published_tail(encoder, sigma, p, delta_1)
    assert np.all(base >= p * (1 - 1e-12)) and np.all(base <= 1)
    assert np.all(conditional.published_tail(encoder, sigma * factor, p, delta_1) <= base * (1 + 1e-12))
    assert np.all(conditional.published_tail(encoder, sigma, p, min(delta_1 * factor, 0.5)) <= base * (1 + 1e-12))
    assert np.all(conditional.published_tail(encoder, sigma, min(p * factor, 1.0), delta_1) >= base * (1 - 1e-12))


@examples(40)
@given(logs(0.01, 20), st.lists(st.floats(0.05, 2.0), min_size=1, max_size=6), logs(0.001, 0.5), logs(1e-9, 0.1))
def test_tail_exponents_are_exceeded_as_rarely_as_they_say(norm, products, p, tail):
    """[M-Alg2], [A-11] The law of the rise of the log odds, enumerated over the participations."""
    products = np.array(products)
    taken = (np.arange(2 ** len(products))[:, None] >> np.arange(len(products))) & 1
    chances = np.prod(np.where(taken, p, 1 - p), axis=1)
    sums = taken @ products
    exceeds = lambda w: float(chances @ special.ndtr(-(w - sums + norm / 2) / math.sqrt(norm)))

    def log_moment(order):
        return np.log1p(p * np.expm1(np.outer(order, products))).sum(axis=1)

    joint = tails.joint_exponents(np.array([norm]), np.array([products.max()]), tail, log_moment)
    assert exceeds(float(joint[0])) <= tail * (1 + 1e-9)
    published = float(tails.published_exponents(np.array([norm]), products.sum(), tail)[0])
    assert exceeds(published) <= tail * (1 + 1e-9)
    raised = float(tails.posterior(p, published))
    assert raised >= special.expit(special.logit(p) + published)
    number = int(tails.binomial_quantile(len(products), p, tail)[0])
    assert stats.binom.sf(number, len(products), p) <= tail


@examples(30)
@given(st.integers(1, 4), logs(0.5, 4.0), st.integers(4, 40), logs(1e-9, 1e-4), directions, seeds)
def test_row_laws_dominate(entries, sigma, size, slack, direction, seed):
    """[A-10] Rounding to a grid never lowers delta by more than what it sets aside."""
    rng = np.random.default_rng(seed)
    values, chances = rng.uniform(0.05, 1.0, entries), rng.uniform(0.001, 0.5, entries)
    laws = row_law.RowLaws(1, values.sum() / size, size, sigma, row_law.threshold_for(slack))
    for value, chance in zip(values, chances):
        laws.add(value, row_law.bernoulli_numbers([chance]))
    [rounded] = laws.mixtures()
    taken = (np.arange(2**entries)[:, None] >> np.arange(entries)) & 1
    truth = Mixture(taken @ values, np.prod(np.where(taken, chances, 1 - chances), axis=1), sigma)
    lost = float(laws.overflow[0] + laws.shortfall[0])
    epsilon = np.linspace(0, 4, 9)
    paid = lost * (np.exp(epsilon) if direction == "add" else 1.0)
    gap = rounded.hockey_stick(epsilon, direction) + paid - truth.hockey_stick(epsilon, direction)
    assert np.all(gap >= -1e-15)
