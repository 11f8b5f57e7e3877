"""k random rounds of t: likelihood ratio, tuples, bounds by blocks; against enumeration, closed forms, balls in bins and independent values."""

import itertools
import math

import numpy as np
import pytest
from oracle_cases import load

import dplib
from dplib import (
    BallsInBins,
    Bracket,
    Certificate,
    Estimate,
    NoBracketError,
    RandomAllocation,
    gaussian,
    matrices,
)
from dplib.mechanisms import allocation_blocks, allocation_tuples

VALUES = load("allocation")
SEVERAL = [value for value in VALUES if value["participations"] > 1]
BLOCKS = [value for value in SEVERAL if value["rounds"] < 32][::2]
DELTA = {"remove": lambda ratio, epsilon: np.maximum(1 - np.exp(epsilon) / ratio, 0.0), "add": lambda ratio, epsilon: np.maximum(1 - np.exp(epsilon) * ratio, 0.0)}


def subsets(rounds, participations):
    return [list(s) for s in itertools.combinations(range(rounds), participations)]


def name(value):
    return value["id"]


# --- the likelihood ratio and the tuples, by enumeration -----------------------------------------------------


@pytest.mark.parametrize("rounds, participations", [(1, 1), (4, 2), (7, 1), (7, 3), (8, 4), (8, 7), (8, 8)])
def test_the_ratio_is_the_mean_over_subsets(rounds, participations):
    logs = 8 * np.random.default_rng(rounds).standard_normal((40, rounds))
    terms = np.stack([logs[:, s].sum(axis=1) for s in subsets(rounds, participations)])
    expected = np.logaddexp.reduce(terms) - math.log(len(terms))
    assert allocation_tuples.log_ratio(logs, participations) == pytest.approx(expected, rel=1e-13, abs=1e-12)


def test_the_ratio_keeps_its_range_and_says_where_it_ends():
    logs = np.full((3, 500), 2.0)
    assert allocation_tuples.log_ratio(logs, 200) == pytest.approx(400.0, rel=1e-12)
    far = np.zeros((1, 60))
    far[0, 0] = 1e5
    with pytest.raises(NoBracketError, match="double precision"):
        allocation_tuples.log_ratio(far, 40)


@pytest.mark.parametrize("rounds, participations, noise, size", [(4, 2, 0.8, 3), (5, 3, 1.0, 2), (4, 1, 0.7, 4), (3, 3, 1.3, 2), (6, 2, 1.0, 1)])
def test_tuples_have_the_stated_law(rounds, participations, noise, size):
    """Total weight, and the law of how often one round occurs, against all tuples."""
    weight = np.zeros(size + 1)
    for chosen in itertools.product(subsets(rounds, participations), repeat=size):
        shared = sum(len(set(one) & set(two)) for one, two in itertools.combinations(chosen, 2))
        weight[sum(0 in one for one in chosen)] += math.exp(shared / noise**2)
    law = allocation_tuples.TupleLaw(rounds, participations, noise, size)
    total = weight.sum() / len(subsets(rounds, participations)) ** size
    assert math.exp(law.log_total) == pytest.approx(total, rel=1e-12)
    drawn = law.draw(np.random.default_rng(1), 40_000)
    assert (drawn.sum(axis=1) == size * participations).all()
    for i in (0, rounds - 1):  # all rounds alike
        for times, share in enumerate(weight / weight.sum()):
            error = math.sqrt(share * (1 - share) / len(drawn)) + 1e-9
            assert abs((drawn[:, i] == times).mean() - share) < 5 * error


@pytest.mark.parametrize("order, slope, epsilon", [(2.0, 0.1, 1.0), (3.0, 0.6, 0.5), (5.0, 1.5, 4.0), (1.5, 0.05, 2.0)])
def test_the_bound_on_a_draw_is_its_highest_value(order, slope, epsilon):
    """Not above the Renyi bound, not below any value on a grid, and close to the largest of them."""
    sampler = allocation_tuples.RemoveSampler(20, 2, 1, 1.0, 2)
    sampler.slope, sampler.order = slope, order
    value = lambda x: sampler._log_call(x) - order * x
    peak = allocation_tuples._highest(value, slope)
    grid = value(np.linspace(-40 * slope - 5, 40 * slope + 5, 400_001))
    assert grid.max() <= peak < grid.max() + 1e-5
    renyi = (order - 1) * math.log1p(-1 / order) - math.log(order)
    assert peak - (order * slope) ** 2 / 2 <= renyi + 1e-9


# --- unbiased, inside its range ------------------------------------------------------------------------------


def samplers(side, scheme):
    if side == "add":
        return [allocation_tuples.AddSampler(*scheme, step) for step in (0.0, 1.0, 2.0)]
    return [allocation_tuples.RemoveSampler(*scheme, size, spread) for size, spread in ((1, False), (2, False), (3, False), (2 * scheme[1], True))]


@pytest.mark.parametrize("side", ["remove", "add"])
@pytest.mark.parametrize("rounds, participations, epochs, noise, epsilon", [(5, 2, 1, 1.0, 1.0), (4, 3, 1, 1.2, 0.8), (4, 1, 2, 1.0, 0.7), (5, 2, 2, 1.5, 1.2)])
def test_every_sampler_has_the_mean_of_plain_sampling(rounds, participations, epochs, noise, epsilon, side):
    """Plain Monte Carlo with the ratio by enumeration: it shares no line with the samplers."""
    rng, count = np.random.default_rng(7), 60_000
    log_ratio = np.zeros(count)
    for _ in range(epochs):
        z = rng.standard_normal((count, rounds))
        if side == "remove":
            z[:, :participations] += 1 / noise
        w = np.exp(z / noise - 0.5 / noise**2)
        log_ratio += np.log(np.mean([w[:, s].prod(axis=1) for s in subsets(rounds, participations)], axis=0))
    plain = DELTA[side](np.exp(log_ratio), epsilon)
    for sampler in samplers(side, (rounds, participations, epochs, noise)):
        counts = sampler.payoffs(sampler.lines(np.random.default_rng(3), count), epsilon)
        assert 0 <= counts.min() and counts.max() <= 1
        bound = math.exp(sampler.log_bound(epsilon))
        error = math.hypot(plain.std(), bound * counts.std()) / math.sqrt(count)
        assert abs(bound * counts.mean() - plain.mean()) < 4.5 * error


# --- independent values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", SEVERAL, ids=name)
def test_answers_agree_with_independent_values(value):
    mechanism = RandomAllocation(value["noise_multiplier"], value["rounds"], value["participations"])
    found = mechanism.delta(value["epsilon"], value["direction"], "estimate", samples=2**16)
    assert isinstance(found, Estimate)
    assert abs(found.value - value["delta"]) < 4 * math.hypot(found.standard_error, value["error"])
    assert found.standard_error < 0.01 * found.value
    proved = mechanism.delta(value["epsilon"], value["direction"], "certificate", samples=2**15, failure_probability=1e-6)
    assert isinstance(proved, Certificate)
    assert value["delta"] - 4 * value["error"] < proved.upper < 1.05 * value["delta"]
    if value in BLOCKS:
        blocks = mechanism.delta(value["epsilon"], value["direction"])
        assert isinstance(blocks, Bracket) and blocks.method == "blocks"
        assert value["direction"] == "add" or mechanism.delta(value["epsilon"]).upper == blocks.upper
        assert blocks.lower < value["delta"] + 4 * value["error"] and value["delta"] - 4 * value["error"] < blocks.upper < 1.7 * value["delta"]


# --- laws of blocks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds, participations", [(16, 2), (17, 5), (7, 4), (9, 9), (5, 1)])
def test_blocks_are_of_nearly_equal_sizes(rounds, participations):
    parts = allocation_blocks.sizes(rounds, participations)
    assert sum(size * count for size, count in parts) == rounds and sum(count for _, count in parts) == participations
    assert max(size for size, _ in parts) - min(size for size, _ in parts) <= 1


# --- closed forms and balls in bins ----------------------------------------------------------------------------


@pytest.mark.parametrize("rounds, epochs", [(1, 1), (4, 1), (9, 3)])
def test_all_rounds_are_a_gaussian(rounds, epochs):
    mechanism, mu = RandomAllocation(2.0, rounds, rounds, epochs), math.sqrt(rounds * epochs) / 2
    for side in ("remove", "add", "both"):
        assert gaussian.delta(mu, 1.0) in mechanism.delta(1.0, side) and mechanism.delta(1.0, side).relative_width < 1e-9
        assert gaussian.epsilon(mu, 1e-5) in mechanism.epsilon(1e-5, side, "exact")
    assert mechanism.delta(1.0, method="bound").upper == pytest.approx(gaussian.delta(mu, 1.0), rel=1e-9)
    found = mechanism.delta(1.0, method="estimate", samples=100)
    assert found.value == pytest.approx(gaussian.delta(mu, 1.0), rel=1e-9)  # along the lines it is the closed form


def test_one_participation_is_balls_in_bins():
    mechanism, bins = RandomAllocation(0.9, 20, 1), BallsInBins(matrices.identity(20), 0.9, 20, 1)
    for side in ("remove", "add"):
        assert mechanism.delta(1.0, side) == bins.delta(1.0, side, "exact") and mechanism.epsilon(1e-6, side) == bins.epsilon(1e-6, side)
        assert mechanism.delta(1.0, side, "bound").upper == bins.delta(1.0, side).upper
        assert mechanism.delta(1.0, side, "estimate", seed=3) == bins.delta(1.0, side, "estimate", seed=3)
    assert mechanism.delta(1.0, method="certificate", samples=2**12) == bins.delta(1.0, method="certificate", samples=2**12)


# --- certificates and epsilon --------------------------------------------------------------------------------


@pytest.mark.parametrize("side, epsilon", [("remove", 2.0), pytest.param("add", 1.2, marks=pytest.mark.trust)])
def test_certificates_cover_the_truth_on_repeated_seeds(side, epsilon):
    """At a failure probability of a tenth: 60 seeds, of which more than 14 miss with probability 4e-4 at most; the truth to 0.05%."""
    mechanism = RandomAllocation(0.8, 16, 2)
    truth = mechanism.delta(epsilon, side, "estimate", samples=2**20, seed=99)
    found = [mechanism.delta(epsilon, side, "certificate", samples=2000, failure_probability=0.1, seed=seed).upper for seed in range(60)]
    assert sum(upper < truth.value - 3 * truth.standard_error for upper in found) <= 14
    assert np.median(found) < 1.2 * truth.value


@pytest.mark.parametrize("side", ["remove", "add"])
def test_epsilon_and_delta_agree(side):
    mechanism = RandomAllocation(0.8, 16, 2)
    guess, proof = mechanism.epsilon(1e-5, side, "estimate"), mechanism.epsilon(1e-5, side, "certificate", failure_probability=1e-7)
    back = mechanism.delta(guess.value, side, "estimate", seed=5)
    assert abs(math.log(back.value / 1e-5)) < 0.06
    bracket = mechanism.epsilon(1e-5, side)
    assert bracket.lower < guess.value < proof.upper < guess.value * 1.03 and guess.value - 4 * guess.standard_error < bracket.upper
    assert mechanism.delta(bracket.upper, side, "bound").upper == pytest.approx(1e-5, rel=5e-3)
    assert mechanism.epsilon(1e-5, side, "bound").upper == bracket.upper
    assert guess.value < proof.upper and mechanism.delta(proof.upper, side, "estimate", seed=8).value < 1e-5


def test_many_participations_are_sampled_by_single_rounds():
    mechanism = RandomAllocation(3.0, 60, 30)
    found = mechanism.delta(3.0, method="estimate", samples=2**14)
    bracket = mechanism.delta(3.0)
    assert bracket.lower * 0.97 < found.value < bracket.upper * 1.03


def test_where_few_draws_decide_the_upper_end_is_that_of_bounded_draws():
    """A standard error of 8%: above the normal law's end. Lines through the 66 modes [A-17] have 5.79e-24, to 1%."""
    rare, truth = RandomAllocation(3.0, 12, 2), 5.79e-24
    found = rare.delta(2.0, "remove", "estimate", samples=4096)
    assert abs(found.value - truth) < 4 * found.standard_error < 0.5 * truth
    assert found.value + 3 * found.standard_error < found.upper < 2 * truth
    found = rare.epsilon(truth, "remove", "estimate", samples=4096)
    assert abs(found.value - 2.0) < 4 * found.standard_error
    assert found.value + 3 * found.standard_error < found.upper < 2.05


# --- arguments ------------------------------------------------------------------------------------------------


def test_wrong_questions_are_refused():
    mechanism = RandomAllocation(1.0, 8, 2)
    for options, message in (
        ({"method": "exact"}, "exact accountant exists only"),
        ({"samples": 5, "method": "certificate"}, "samples"),
        ({"failure_probability": 0.1}, "failure_probability goes with"),
    ):
        with pytest.raises(ValueError, match=message):
            mechanism.delta(1.0, **options)
        with pytest.raises(ValueError, match=message):
            mechanism.epsilon(1e-5, **options)
    with pytest.raises(ValueError, match="failure_probability"):
        mechanism.epsilon(1e-9, method="certificate", failure_probability=1e-8)
    with pytest.raises(ValueError, match="samples must be"):
        RandomAllocation(1.0, 100, 5, 4).epsilon(1e-6, "add", "certificate", samples=1000)


def test_what_cannot_be_sampled_is_refused():
    with pytest.raises(NoBracketError, match="too small to sample"):
        RandomAllocation(0.01, 8, 2).delta(1.0, method="estimate")
    with pytest.raises(NoBracketError, match="too large to sample"):
        RandomAllocation(1e9, 8, 2).delta(1.0, method="certificate")
    with pytest.raises(NoBracketError, match="too many to sample"):
        RandomAllocation(60.0, 1500, 800).delta(1.0, method="estimate")


def test_among_other_phases():
    """A draw of all losses lies between the ends that blocks and subsets give, and one phase alone is as the mechanism says."""
    rounds, participations, epochs, sigma, steps, q, epsilon = 4, 2, 1, 1.5, 20, 0.1, 1.5
    mechanism = RandomAllocation(sigma, rounds, participations, epochs)
    rng, draws, losses = np.random.default_rng(0), 200_000, 0.0
    for _ in range(epochs):
        taken = rng.permuted(np.tile(np.arange(rounds), (draws, 1)), axis=1)[:, :participations]
        u = rng.standard_normal((draws, rounds))
        np.put_along_axis(u, taken, np.take_along_axis(u, taken, 1) + 1 / sigma, 1)
        w = np.exp(u / sigma - 1 / (2 * sigma**2))
        losses = losses + np.log((w.sum(1) ** 2 - (w**2).sum(1)) / 2 / math.comb(rounds, participations))
    u = rng.standard_normal((draws, steps)) + (rng.random((draws, steps)) < q) / sigma
    losses = losses + np.log1p(q * np.expm1(u / sigma - 1 / (2 * sigma**2))).sum(1)
    counts = -np.expm1(np.minimum(epsilon - losses, 0.0))
    room = 4 * counts.std() / math.sqrt(draws)
    found = dplib.compose([mechanism, dplib.PoissonDPSGD(sigma, q, steps)]).delta(epsilon, "remove")
    assert found.lower - room < counts.mean() < found.upper + room and found.lower > 0.2 * counts.mean() > 0.1 * found.upper
    alone, itself = dplib.compose([mechanism]).delta(epsilon, "remove"), mechanism.delta(epsilon, "remove")
    assert alone.upper == pytest.approx(itself.upper, rel=1e-12) and alone.lower < mechanism.delta(epsilon, "remove", "estimate").value
    with pytest.raises(TypeError, match="a phase of RandomAllocation is no event"):
        dplib.compose([mechanism]).event()


def test_calibration_meets_the_target_with_the_bound():
    found = dplib.calibrate(RandomAllocation(1.0, 4, 2), epsilon=2.0, delta=1e-4)
    assert 0.995 * 2.0 < found.epsilon(1e-4, method="bound").upper <= 2.0
