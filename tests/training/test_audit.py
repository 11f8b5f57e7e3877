"""Audits: the bound stays below the truth as often as it says, and sees a claim that is far too low."""

import math

import numpy as np
import pytest
from scipy import stats

from dplib import BallsInBins, PoissonDPSGD, batching, matrices
from dplib.audit import epsilon_lower_bound, transcripts


def test_coverage_where_the_truth_is_attained():
    """Randomised response: the event is the answer itself. Below the truth in 80% to 98% of 1,000 audits."""
    truth, rng = math.log((0.75 - 0.05) / 0.25), np.random.default_rng(8)
    answers = lambda p: (rng.random(400) < p).astype(float)
    below = [
        epsilon_lower_bound(answers(0.75), answers(0.25), 0.05, confidence=0.8).lower <= truth
        for _ in range(1000)
    ]
    assert 0.8 <= np.mean(below) < 0.98


def test_rates_and_interval_of_a_known_case():
    """1,000 runs a side, counted half: hits 400 of 500, alarms 5 of 500, against scipy's beta quantiles."""
    present = np.where(np.arange(1000) // 2 % 5 < 4, 1.0, 0.0)
    absent = np.where(np.arange(1000) // 2 % 100 == 0, 1.0, 0.0)
    found = epsilon_lower_bound(present, absent, 1e-3, confidence=0.9, direction="remove")
    low, high = stats.beta.ppf(0.05, 400, 101), stats.beta.ppf(0.95, 6, 495)
    assert found.hits == 0.8 and found.false_alarms == 0.01 and 0 < found.threshold <= 1
    assert found.lower == pytest.approx(math.log((low - 1e-3) / high), rel=1e-9)
    assert "epsilon at least 3.602" in str(found) and "confidence 0.9" in str(found)  # 3.6026, rounded down
    assert f"{found.lower:.3f}" == "3.602"
    # The same counts the other way round are the other direction.
    other = epsilon_lower_bound(-absent, -present, 1e-3, confidence=0.9, direction="add")
    assert other.lower == found.lower and other.direction == "add"
    assert epsilon_lower_bound(-absent, -present, 1e-3, confidence=0.9).direction == "add"


def test_no_difference_gives_no_bound():
    rng = np.random.default_rng(1)
    same = [epsilon_lower_bound(rng.normal(size=500), rng.normal(size=500), 1e-3).lower for _ in range(50)]
    assert np.mean(np.array(same) == 0) >= 0.95 and min(same) == 0
    assert epsilon_lower_bound(np.zeros(20), np.zeros(20), 0.0).lower == 0


def loss_of_bins(sums, encoder, sigma, b):
    """Privacy loss of the pair of balls in bins, from what is observed."""
    modes = np.stack([encoder.entries()[:, j::b].sum(axis=1) for j in range(b)])
    released = encoder.multiply(sums)
    return np.logaddexp.reduce(
        modes @ released / sigma**2 - (modes**2).sum(axis=1)[:, None] / (2 * sigma**2)
    ) - math.log(b)


@pytest.mark.slow
def test_balls_in_bins_audited_through_sampler_and_noise():
    """Above the epsilon for noise twice as large, below the true one."""
    b, epochs, sigma, delta = 4, 3, 2.0, 1e-2
    encoder = matrices.optimal_counting(b * epochs)
    present, absent = transcripts(
        batching.balls_in_bins_stream(20_000, b, epochs, seed=1), encoder, sigma, seed=2
    )
    assert present.shape == absent.shape == (12, 20_000)
    scores = [loss_of_bins(sums, encoder, sigma, b) for sums in (present, absent)]
    found = epsilon_lower_bound(*scores, delta)
    truth = BallsInBins(encoder, sigma, b, epochs).epsilon(delta)
    assert BallsInBins(encoder, 2 * sigma, b, epochs).epsilon(delta).value < found.lower < truth.value
    assert found.lower > 0.7 * truth.value


def test_poisson_audited_through_sampler_and_noise():
    q, rounds, sigma, delta = 0.25, 8, 1.0, 1e-2
    stream = batching.poisson_stream(20_000, rounds, q, seed=3)
    pair = transcripts(stream, matrices.identity(rounds), sigma, seed=4)
    scores = [np.log(1 - q + q * np.exp((2 * y - 1) / (2 * sigma**2))).sum(axis=0) for y in pair]
    found = epsilon_lower_bound(*scores, delta)
    assert 0.7 < found.lower / PoissonDPSGD(sigma, q, rounds).epsilon(delta).upper < 1
    # Noise and participation as stated, and the two sides independent.
    assert abs(pair[1].std() / sigma - 1) < 0.01
    assert abs(pair[0].mean() - q) < 5 * math.sqrt((q + sigma**2) / pair[0].size)
    assert abs(np.corrcoef(pair[0].ravel(), pair[1].ravel())[0, 1]) < 5 / math.sqrt(pair[0].size)


BAD_TRANSCRIPTS = [
    ({"batches": [np.arange(3)]}, "batches must be a stream"),
    ({"batches": batching.poisson_stream(3, 9, 0.5)}, "encoder must have a column"),
    ({"batches": batching.poisson_stream(2**27, 8, 0.5)}, r"at most 2\*\*28"),
    ({"noise_multiplier": 1e20}, "noise_multiplier must be .* got 1e"),
]


@pytest.mark.parametrize("changed, text", BAD_TRANSCRIPTS)
def test_transcripts_that_do_not_fit_are_refused(changed, text):
    valid = {"batches": batching.poisson_stream(3, 8, 0.5), "encoder": matrices.identity(8), "noise_multiplier": 1.0}
    with pytest.raises((TypeError, ValueError), match=text):
        transcripts(**valid | changed)
