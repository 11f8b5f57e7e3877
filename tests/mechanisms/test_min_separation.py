"""MinSeparation: enumeration of all patterns, reference values, special cases, certificates; each answer says what it is."""

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_cases import load
from patterns import enumerated

import dplib
from dplib import (
    BallsInBins,
    Certificate,
    Estimate,
    MinSeparation,
    NoBracketError,
    PoissonDPSGD,
    gaussian,
    matrices,
)
from dplib._base import random_blocks
from dplib.balls_in_bins import pattern_law, pattern_sampler, pattern_tuples, pattern_values
from dplib.balls_in_bins.bounded_draws import At
from dplib.balls_in_bins.pattern_pair import Pair

TABLE = load("min_separation")
BANDED = matrices.optimal_counting(12, bands=3)
SMALL = MinSeparation(BANDED, 2.0, 0.3, 3)


def toeplitz(rounds, coefficients):
    return matrices.toeplitz(np.append(coefficients, np.zeros(rounds - len(coefficients))))


def made(rounds, p, b, warm, coefficients, noise):
    """(Patterns, Band) of a Toeplitz encoder."""
    columns = pattern_law.columns_of(toeplitz(rounds, coefficients), b)
    return pattern_law.Patterns(rounds, p, b, warm), pattern_law.band(columns, noise)


def dense(band):
    """The Gram matrix of a Band as a square array."""
    width, rounds = band.gram.shape
    table = np.zeros((rounds, rounds))
    for lag in range(width):
        for i in range(lag, rounds):
            table[i, i - lag] = table[i - lag, i] = band.gram[lag, i]
    return table


settings_of_patterns = st.tuples(
    st.integers(1, 9), st.sampled_from([0.0, 1e-9, 0.1, 0.5, 0.9, 1.0]), st.integers(1, 5), st.booleans()
).filter(lambda drawn: drawn[2] <= drawn[0])


# --- law and likelihood ratio ------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(settings_of_patterns, st.floats(0.1, 5), st.integers(0, 2**32 - 1))
def test_likelihood_ratio_rates_and_longest_pattern_against_enumeration(drawn, spread, seed):
    """The recursion, to 1e-12 of the sum over all patterns."""
    patterns = pattern_law.Patterns(*drawn)
    law = enumerated(patterns)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-13)
    y = spread * np.random.default_rng(seed).standard_normal((4, patterns.rounds))
    ratio = sum(probability * np.exp(y[:, list(taken)].sum(axis=1)) for taken, probability in law.items())
    assert np.exp(patterns.log_ratio(y)) == pytest.approx(ratio, rel=1e-12)
    rates = [math.fsum(w for taken, w in law.items() if i in taken) for i in range(patterns.rounds)]
    assert patterns.rates() == pytest.approx(rates, rel=1e-11, abs=1e-15)
    squares = np.random.default_rng(seed).random(patterns.rounds)
    assert patterns.longest(squares) == pytest.approx(max(squares[list(taken)].sum() for taken in law), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(settings_of_patterns, st.integers(1, 9), st.floats(0.1, 3), st.integers(0, 2**32 - 1))
def test_likelihood_ratio_of_columns_that_overlap_against_enumeration(drawn, bands, spread, seed):
    """More bands than b: the recursion over histories, the rounds of one record that overlap, and its longest pattern."""
    patterns, rng = pattern_law.Patterns(*drawn), np.random.default_rng(seed)
    table = np.triu(np.tril(rng.random((patterns.rounds, patterns.rounds))), 1 - bands) + np.eye(patterns.rounds)
    band = pattern_law.band(pattern_law.columns_of(matrices.dense(table), patterns.b), 1.5)
    pair, gram, law = Pair(patterns, band), dense(band), enumerated(patterns)
    y = spread * rng.standard_normal((4, patterns.rounds))
    overlaps = lambda taken: sum(gram[i, j] for i, j in itertools.combinations(taken, 2))
    ratio = sum(weight * np.exp(y[:, list(taken)].sum(axis=1) - overlaps(taken)) for taken, weight in law.items())
    assert np.exp(pair.log_ratio(y)) == pytest.approx(ratio, rel=1e-11)
    assert pair.resolved(y).all()
    assert not pair.overlap or pair._log_ratio_by_logs(y) == pytest.approx(np.log(ratio), rel=1e-11, abs=1e-11)
    longest = max(gram.diagonal()[list(taken)].sum() + 2 * overlaps(taken) for taken in law)
    assert pair.longest >= longest * (1 - 1e-12)
    for taken in law:
        for place, i in enumerate(taken):
            assert gram[i, list(taken[:place])].sum() <= pair.own[-1, i] + 1e-12
    together = patterns.together(patterns.rounds)
    for lag in range(1, patterns.rounds):
        pairs = math.fsum(weight for taken, weight in law.items() if {0, lag} <= set(taken))
        assert together[lag] * patterns.rates()[0] == pytest.approx(pairs, rel=1e-10, abs=1e-15)


@settings(max_examples=25, deadline=None)
@given(settings_of_patterns.filter(lambda drawn: 0 < drawn[1] < 1), st.floats(0.05, 1))
def test_divergence_of_two_pattern_laws_against_enumeration(drawn, share):
    rounds, p, b, warm = drawn
    first, second = pattern_law.Patterns(rounds, p * share, b, warm), pattern_law.Patterns(rounds, p, b, warm)
    law, other = enumerated(first), enumerated(second)
    sets = math.fsum(w * math.log(w / other[taken]) for taken, w in law.items())
    # Which coins a record has tossed is seen in its rounds, but for the start.
    assert first.divergence(second) >= sets - 1e-12
    if not warm:
        assert first.divergence(second) == pytest.approx(sets, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("encoder", [BANDED, matrices.tree_restarts(12, 4), matrices.dense(np.eye(5) + 0.3 * np.eye(5, k=-1))])
def test_gram_matrix_and_its_factor(encoder):
    """No entry below the exact one, at most 1e-10 above it, and nothing outside the band."""
    band = pattern_law.band(pattern_law.columns_of(encoder, 4), 1.7)
    exact = encoder.gram() / 1.7**2
    assert np.all(dense(band) >= exact) and dense(band) == pytest.approx(exact, abs=1e-10)
    assert not np.any(np.triu(dense(band), 4))
    eye = np.eye(encoder.columns)
    assert band.times(eye) == pytest.approx(dense(band), abs=1e-14)
    assert band.noise(eye).T @ band.noise(eye) == pytest.approx(dense(band), abs=1e-13)


# --- tuples ---------------------------------------------------------------------------------------------------

TUPLES = [
    (5, 0.4, 2, True, [1.0, 0.6], 1.2, 3),
    (5, 0.4, 2, False, [1.0, 0.6], 1.2, 3),
    (4, 0.7, 3, True, [1.0, 0.5, 0.3], 1.0, 4),
    (6, 0.2, 1, True, [1.0], 0.8, 3),
    (4, 1.0, 3, True, [1.0, 0.9, 0.8], 1.5, 3),
    (5, 0.4, 2, True, [1.0, 0.6, 0.5, 0.3], 1.2, 3),  # from here on more bands than b
    (6, 0.4, 2, False, [1.0, 0.6, 0.5, 0.3, 0.2, 0.1], 1.2, 2),
    (4, 0.5, 1, True, [1.0, 0.8, 0.6, 0.3], 1.0, 3),
    (5, 1.0, 2, True, [1.0, 0.9, 0.8, 0.7], 1.5, 4),
]


@pytest.mark.parametrize("rounds, p, b, warm, coefficients, noise, size", TUPLES)
def test_value_functions_bound_the_moment_and_tuples_have_it_as_mean(rounds, p, b, warm, coefficients, noise, size):
    """V_0 >= E_Q w^k, by enumeration of all k-tuples of patterns; the mean importance ratio is their quotient, and none exceeds 1."""
    patterns, band = made(rounds, p, b, warm, coefficients, noise)
    gram, law = dense(band), enumerated(patterns)
    sums = np.array([[float(i in taken) for i in range(rounds)] for taken in law])
    weights, squares = np.array(list(law.values())), np.einsum("si,ij,sj->s", sums, gram, sums)
    moment = 0.0
    for chosen in itertools.combinations_with_replacement(range(len(law)), size):
        counts = sums[list(chosen)].sum(axis=0)
        exponent = (counts @ gram @ counts - squares[list(chosen)].sum()) / 2
        orders = math.factorial(size) / math.prod(math.factorial(chosen.count(one)) for one in set(chosen))
        moment += orders * math.prod(weights[list(chosen)]) * math.exp(exponent)
    values = pattern_values.values(Pair(patterns, band), size)
    assert math.log(moment) <= values.log_total
    draw = pattern_tuples.draw_tuples if Pair(patterns, band).overlap else pattern_tuples.draw_counts
    counts, log_ratios = draw(np.random.default_rng(5), Pair(patterns, band), values, 40_000)
    assert log_ratios.max() <= 0
    ratios = np.exp(log_ratios)
    quotient = moment / math.exp(values.log_total)
    assert abs(ratios.mean() - quotient) < 4 * ratios.std() / 200 + 1e-9
    assert np.all(counts.sum(axis=1) <= size * math.ceil(rounds / b))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 1.0), st.integers(1, 3), st.integers(1, 6), st.integers(1, 3))
def test_no_past_leaves_more_than_the_value_functions_say(seed, p, b, bands, size):
    """The inequality of the proof of [A-28] in each round, for the pasts of all tuples of patterns."""
    rounds, rng = 6, np.random.default_rng(seed)
    table = np.triu(np.tril(rng.random((rounds, rounds))), 1 - bands) + np.eye(rounds)
    patterns = pattern_law.Patterns(rounds, p, b, warm=False)
    band = pattern_law.band(pattern_law.columns_of(matrices.dense(table), b), rng.uniform(0.7, 2.0))
    law, gram = pattern_values.values(Pair(patterns, band), size), dense(band)
    width = len(band.gram)
    for i in range(rounds):
        slopes = [law.slopes[i, lag] for lag in range(width)] + [law.slopes[i, 0]] * b  # beyond the band: of those who pause
        pasts = {tuple(j for j in taken if j < i) for taken in enumerated(patterns)}
        for tuple_of_pasts in itertools.combinations_with_replacement(sorted(pasts), size):
            free = [past for past in tuple_of_pasts if not past or i - past[-1] >= b]
            earlier = [j for past in tuple_of_pasts for j in past]
            weights = 0.0
            for number in range(len(free) + 1):
                for chosen in itertools.combinations(free, number):
                    push = number * (gram[i, earlier].sum() + law.gains[i]) - sum(gram[i, list(past)].sum() for past in chosen)
                    push += number * (number - 1) / 2 * gram[i, i]
                    weights += p**number * (1 - p) ** (len(free) - number) * math.exp(push)
            allowed = law.steps[i] + sum(slopes[i - j] for j in earlier if i - j < max(b, width))
            assert weights == 0 or math.log(weights) <= allowed + 1e-12


@pytest.mark.parametrize("p, b, size", [(0.1, 1, 6), (0.3, 1, 2), (0.2, 3, 4), (0.2, 9, 3)])
def test_rounds_that_are_alike_have_the_values_of_one(p, b, size):
    """Against inner products that differ a little from round to round, so that every round is worked on."""
    encoder = toeplitz(150, [1.0, 0.6, 0.4, 0.3, 0.2])
    columns = pattern_law.columns_of(encoder, b)
    found, slow = (
        pattern_values.values(Pair(pattern_law.Patterns(150, p, b, True), pattern_law.band(table, 3.0)), size)
        for table in (columns, columns * (1 + 1e-9 * np.random.default_rng(3).random(150)))
    )
    assert found.log_total == pytest.approx(slow.log_total, rel=1e-7)
    for one, other in ((found.gains, slow.gains), (found.steps, slow.steps), (found.slopes, slow.slopes)):
        assert np.allclose(one, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("p, b, coefficients", [(0.3, 2, [1.0, 0.7]), (0.6, 1, [1.0]), (0.6, 1, [1.0, 0.7]), (1.0, 2, [1.0, 0.4])])
def test_every_sampler_has_delta_as_its_mean(p, b, coefficients, warm):
    """All tuple sizes, and the half-space, against a fine lattice of outcomes of two rounds."""
    patterns, band = made(2, p, b, warm, coefficients, 0.9)
    grid = np.linspace(-8.5, 8.5, 681)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = np.exp(-(points**2).sum(axis=1) / 2)
    mass /= mass.sum()
    pair = Pair(patterns, band)
    inner = points @ np.linalg.cholesky(dense(band)).T
    log_w = pair.log_ratio(inner - band.squares / 2)
    for epsilon in (0.3, 1.0):
        remove = mass @ np.maximum(np.exp(log_w) - math.exp(epsilon), 0)
        add = mass @ np.maximum(1 - np.exp(epsilon + log_w), 0)
        samplers = [
            (pattern_sampler.TupleSampler(pair, pattern_values.values(pair, size)), remove) for size in (1, 2, 3)
        ]
        half_space = pattern_sampler.HalfSpaceSampler(pair, epsilon)
        assert (inner[log_w < -epsilon] @ half_space.rates).max(initial=-math.inf) < -half_space.threshold * half_space.length
        samplers.append((half_space, add))
        for place, (draws, truth) in enumerate(samplers):
            sampler = At(draws, epsilon)
            drawn = np.concatenate([sampler(random_blocks.generator(3, (place,), i)) for i in range(8)])
            assert 0 <= drawn.min() and drawn.max() <= 1
            error = drawn.std() / math.sqrt(len(drawn)) * sampler.bound
            assert abs(drawn.mean() * sampler.bound - truth) < 4 * error + 2e-5


# --- reference values and special cases --------------------------------------------------------------------


@functools.cache
def mechanism(place):
    row = TABLE[place]
    encoder = toeplitz(row["rounds"], row["coefficients"])
    return MinSeparation(encoder, row["noise_multiplier"], row["sampling_probability"], row["separation"], row["warm_start"])


@pytest.mark.parametrize("place", range(len(TABLE)))
def test_reference_values(place):
    row = TABLE[place]
    found = mechanism(place).delta(row["epsilon"], row["direction"], samples=65_536, seed=1)
    assert type(found) is Estimate
    assert abs(found.value - row["delta"]) < 4 * math.hypot(found.standard_error, row["standard_error"])
    proved = mechanism(place).delta(row["epsilon"], row["direction"], "certificate", samples=32_768, seed=2)
    assert type(proved) is Certificate and proved.failure_probability <= 1e-9
    assert row["delta"] - 4 * row["standard_error"] < proved.upper < 1.15 * row["delta"]


@pytest.mark.parametrize("direction, epsilon", [pytest.param("remove", 1.0, marks=pytest.mark.trust), ("remove", 3.5), ("add", 0.5)])
def test_without_a_pause_it_is_poisson_sampling(direction, epsilon):
    """C = I and b = 1: the certified brackets of DP-SGD, down to delta = 1e-6."""
    exact = PoissonDPSGD(1.0, 0.05, 64).delta(epsilon, direction)
    for warm in (True, False):
        ours = MinSeparation(matrices.identity(64), 1.0, 0.05, 1, warm)
        found = ours.delta(epsilon, direction)
        assert abs(found.value - exact.upper) < 4 * found.standard_error < 0.05 * found.value
        assert exact.upper <= ours.delta(epsilon, direction, "certificate").upper < 1.2 * exact.upper
    at = PoissonDPSGD(1.0, 0.05, 64).epsilon(exact.upper, direction)
    found = ours.epsilon(exact.upper, direction)
    assert abs(found.value - at.upper) < 4 * found.standard_error


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.trust) for seed in (2, 3))])
def test_where_few_draws_count_the_upper_end_is_that_of_bounded_draws(seed):
    """Sizes of tuples whose pilots never show their large samples have small variances, and are not taken for that."""
    exact = PoissonDPSGD(1.287, 0.00914, 150).delta(0.559, "remove")
    rare = MinSeparation(matrices.identity(150), 1.287, 0.00914, 1, False)
    found = rare.delta(0.559, seed=seed)
    assert abs(found.value - exact.upper) < 5 * found.standard_error < exact.upper
    assert exact.upper < found.upper < 2 * exact.upper
    at = rare.epsilon(exact.upper, seed=seed)
    assert abs(at.value - 0.559) < 5 * at.standard_error and 0.559 < at.upper < 0.7
    assert "too few" in found.method and "too few" in at.method
    nothing = MinSeparation(matrices.identity(33), 2.021, 1.0, 33)  # delta is 6e-14
    unseen = nothing.delta(0.769, seed=seed)
    assert unseen.value == 1e-300 and 1e-13 < unseen.upper < 1e-5 and "no sample" in unseen.method and "<= " in str(unseen)
    assert nothing.epsilon(1e-14, seed=seed).upper > 0.769


def test_where_products_leave_the_range_logarithms_are_added():
    """Two participations of a squared norm of 595: the ratio is near e^1500."""
    mechanism = MinSeparation(matrices.toeplitz([1, 0.9, 0.8, 0.7, 0.6, 0.5]), 0.05, 1.0, 3)
    for side in ("remove", "add"):
        assert mechanism.delta(300.0, side, "estimate", samples=4096).value > 0.999


@pytest.mark.parametrize("bands, noise", [(4, 3.0), pytest.param(16, 6.0, marks=pytest.mark.trust)])
def test_certain_participation_is_balls_in_bins(bands, noise):
    """p = 1, warm start, whole epochs: one of b patterns, uniformly; the rounds of a pattern may overlap."""
    encoder = matrices.optimal_counting(32, bands=bands)
    ours, bins = MinSeparation(encoder, noise, 1.0, 4), BallsInBins(encoder, noise, 4, 8)
    for direction, epsilon in (("remove", 3.0), ("add", 2.0)):
        found, known = ours.delta(epsilon, direction), bins.delta(epsilon, direction)
        assert abs(found.value - known.value) < 4 * math.hypot(found.standard_error, known.standard_error)
    found, known = ours.epsilon(1e-4), bins.epsilon(1e-4)
    assert abs(found.value - known.value) < 4 * math.hypot(found.standard_error, known.standard_error)


def test_never_sampled_and_never_again():
    nothing = MinSeparation(BANDED, 2.0, 0.0, 3)
    assert nothing.delta(0.0).upper <= 1e-300 and nothing.epsilon(1e-9).upper == 0
    assert nothing.delta(0.0, method="certificate").upper <= 1.001e-300
    once = MinSeparation(BANDED, 2.0, 1.0, 12)  # one participation in all, in a uniform round
    assert abs(once.delta(0.5).value - BallsInBins(BANDED, 2.0, 12, 1).delta(0.5).value) < 4 * math.hypot(
        once.delta(0.5).standard_error, BallsInBins(BANDED, 2.0, 12, 1).delta(0.5).standard_error
    )


# --- certificates, directions, bounds ------------------------------------------------------------------------


def test_certified_epsilon_is_a_little_above_the_estimate():
    proved, guess = SMALL.epsilon(1e-5, method="certificate", seed=4), SMALL.epsilon(1e-5)
    assert type(proved) is Certificate and proved.failure_probability == 1e-9
    assert guess.value < proved.upper < 1.05 * guess.value
    again = SMALL.delta(proved.upper, method="certificate", seed=5)
    assert again.upper < 1.1e-5


def test_certificates_cover_an_exact_value():
    """Failure probability one half: of forty bounds few lie below the truth."""
    exact = PoissonDPSGD(1.5, 0.2, 8).delta(1.0).lower
    ours = MinSeparation(matrices.identity(8), 1.5, 0.2, 1)
    uppers = [ours.delta(1.0, method="certificate", samples=4096, failure_probability=0.5, seed=seed).upper for seed in range(40)]
    assert sum(upper < exact for upper in uppers) <= 29  # P[Binomial(40, 1/2) > 29] < 1e-3
    assert min(uppers) > 0.8 * exact


@pytest.mark.parametrize("separation", [3, 2])
def test_noise_for_a_target_by_the_bound_without_sampling(separation):
    draft = MinSeparation(BANDED, 1.0, 0.3, separation)
    found = dplib.calibrate(draft, epsilon=1.0, delta=1e-5)
    assert found.epsilon(1e-5, method="renyi").upper <= 1.0
    less = dataclasses.replace(found, noise_multiplier=0.998 * found.noise_multiplier)
    assert less.epsilon(1e-5, method="renyi").upper > 1.0
    assert found.epsilon(1e-5, method="certificate", samples=2**14).upper < 1.0


def test_remove_is_the_larger_direction():
    for epsilon in (0.5, 1.5):
        add, remove, both = (SMALL.delta(epsilon, direction) for direction in ("add", "remove", "both"))
        assert add.value + 4 * add.standard_error < remove.value == both.value


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.95), st.integers(1, 3), st.booleans())
def test_fewer_rounds_of_the_same_coins_cost_less(seed, p, b, warm):
    """Order-two divergences of b-min-sep and Poisson sampling, of any encoder C >= 0: all patterns enumerated."""
    rng = np.random.default_rng(seed)
    made = matrices.dense(np.tril(rng.random((5, 5))) + np.eye(5))
    gram = made.gram()

    def moment(patterns):
        law = enumerated(patterns)
        sums = np.array([[float(i in taken) for i in range(5)] for taken in law])
        weights = np.array(list(law.values()))
        return float(weights @ np.exp(sums @ gram @ sums.T / 9) @ weights)

    assert moment(pattern_law.Patterns(5, p, b, warm)) <= moment(pattern_law.Patterns(5, p, 1, True)) * (1 + 1e-12)


# --- what is refused -------------------------------------------------------------------------------------------


def test_refusals_say_what_would_do():
    with pytest.raises(ValueError, match="samples must be about .* for an upper bound within 2 times delta"):
        SMALL.delta(2.0, method="certificate", samples=1000, failure_probability=1e-300)
    with pytest.raises(ValueError, match="direction must be 'both' or 'remove' for a certificate"):
        MinSeparation(matrices.identity(64), 1.0, 0.05, 1).delta(2.0, "add", "certificate")
    with pytest.raises(ValueError, match="failure_probability"):
        SMALL.epsilon(1e-5, method="certificate", failure_probability=1e-4)
    with pytest.raises(ValueError, match="method must be one of"):
        dplib.calibrate(SMALL, epsilon=1.0, delta=1e-5, method="certificate")
    with pytest.raises(NoBracketError, match="too small for this account"):
        MinSeparation(BANDED, 1e-3, 0.3, 3).delta(1.0)
    wide = MinSeparation(matrices.optimal_counting(24), 12.0, 0.1, 1)
    with pytest.raises(ValueError, match="encoder must have fewer bands.*got min_separation=1.*poisson"):
        wide.delta(1.0)
    assert 0 < wide.delta(1.0, method="renyi").upper < dataclasses.replace(wide.poisson(), tail_bound="aggregated").delta(1.0).upper


def test_epsilon_by_renyi_falls_to_nothing_with_the_noise():
    """No order beyond 64 is tried: where the noise is large the longest pattern alone is the better bound, and then that of taking part."""
    encoder, noises = matrices.optimal_counting(32, bands=4), (40.0, 300.0, 1000.0)
    found = [MinSeparation(encoder, noise, 0.2, 4).epsilon(1e-5, method="renyi").upper for noise in noises]
    alone = [gaussian.epsilon(math.sqrt(8) * float(encoder.column_norms().max()) / noise, 1e-5) for noise in noises]
    assert found[0] < alone[0] and found[1:] == pytest.approx(alone[1:], rel=1e-6)
    assert MinSeparation(encoder, 4.0, 1e-8, 4).epsilon(1e-5, method="renyi").upper == 0
    run = dplib.calibrate(MinSeparation(encoder, 4.0, 0.2, 4), epsilon=0.01, delta=1e-5)
    assert run.epsilon(1e-5, method="renyi").upper <= 0.01
