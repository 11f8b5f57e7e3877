"""Streams of batches: each scheme's participation guarantee as a test of exactly that law, and the static shape.

Tests of randomness are chi-square or exact tests on fixed seeds: a correct stream fails one of them with
probability about 1e-4. For each law a wrong one is shown to be rejected.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

from dplib import batching
from dplib.batching.streams import Batches, Padded, subset

LIKELY = 1e-4

STREAMS = {
    "poisson": lambda s: batching.poisson_stream(40, 12, 0.2, seed=s),
    "fixed_batch": lambda s: batching.fixed_batch_stream(40, 12, 8, seed=s),
    "shuffling": lambda s: batching.shuffling_stream(40, 4, 3, seed=s),
    "shuffling anew": lambda s: batching.shuffling_stream(40, 4, 3, reshuffle=True, seed=s),
    "cyclic_poisson": lambda s: batching.cyclic_poisson_stream(40, 12, 4, 0.1, seed=s),
    "min_separation": lambda s: batching.min_separation_stream(40, 12, 4, 0.3, seed=s),
    "min_separation cold": lambda s: batching.min_separation_stream(40, 12, 4, 0.3, warm_start=False, seed=s),
    "balls_in_bins": lambda s: batching.balls_in_bins_stream(40, 4, 3, seed=s),
    "round_robin": lambda s: batching.round_robin_stream(40, 4, 3),
}


def chi_square(observed, expected):
    return stats.chisquare(observed, np.asarray(expected) * (np.sum(observed) / np.sum(expected))).pvalue


@pytest.mark.parametrize("name", STREAMS)
def test_rounds_come_in_any_order(name):
    """Round t does not depend on the rounds before it."""
    first, again = STREAMS[name](3), STREAMS[name](3)
    batches = list(first)
    assert isinstance(first, Batches) and len(batches) == first.rounds == 12
    assert all(np.array_equal(again[t], batches[t]) for t in (7, 2, 11, 0))
    assert f"{first.expected_size:g} expected" in repr(first)


@pytest.mark.parametrize("name", STREAMS)
def test_a_fresh_seed_is_new_and_known_afterwards(name):
    if name == "round_robin":
        return
    a, b = STREAMS[name](None), STREAMS[name](None)
    assert a.fresh and a.seed != b.seed and a.seed.bit_length() > 64 and not STREAMS[name](1).fresh
    assert all(np.array_equal(x, y) for x, y in zip(a, STREAMS[name](a.seed)))


# ----------------------------------------------------------------------- each scheme's law


def test_a_subset_is_uniform_and_in_uniform_order():
    """All ordered choices of k of 5, below and above half: the order is what a cut relies on."""
    rng = np.random.default_rng(1)
    for k in (0, 1, 2, 3, 4, 5):
        outcomes = list(itertools.permutations(range(5), k))
        places = {outcome: i for i, outcome in enumerate(outcomes)}
        counts = np.zeros(len(outcomes))
        for _ in range(60 * len(outcomes)):
            counts[places[tuple(subset(rng, 5, k).tolist())]] += 1
        assert len(outcomes) == 1 or chi_square(counts, np.ones(len(outcomes))) > LIKELY
    # In increasing order, or cut from a sequence of numbers that may repeat, it would be another law.
    firsts = [np.sort(subset(rng, 5, 2))[0] for _ in range(2000)]
    assert chi_square(np.bincount(firsts, minlength=5), np.ones(5)) < LIKELY


@pytest.mark.parametrize("reshuffle", [False, True])
def test_every_split_of_a_shuffle_is_equally_likely(reshuffle):
    """4 records in 2 batches: 6 splits; with `reshuffle` the 36 pairs of two epochs are equally likely."""
    counts = np.zeros((6, 6))
    places = {subset: i for i, subset in enumerate(itertools.combinations(range(4), 2))}
    for seed in range(2500):
        stream = batching.shuffling_stream(4, 2, 2, reshuffle=reshuffle, seed=seed)
        counts[places[tuple(stream[0].tolist())], places[tuple(stream[2].tolist())]] += 1
    expected = np.ones((6, 6)) if reshuffle else np.eye(6)
    assert (
        np.all(counts[expected == 0] == 0)
        and chi_square(counts[expected > 0], expected[expected > 0]) > LIKELY
    )


def test_assignments_of_balls_are_jointly_uniform():
    """[N-3.1] Each of the b^n assignments has probability b^-n; a shuffle has not."""
    n, b, trials = 4, 3, 4050

    def counts(stream):
        bins = [np.argmax(batching.participation(stream(seed), n), axis=0) for seed in range(trials)]
        return np.bincount(np.array(bins) @ b ** np.arange(n), minlength=b**n)

    assert (
        chi_square(counts(lambda s: batching.balls_in_bins_stream(n, b, 1, seed=s)), np.ones(b**n)) > LIKELY
    )
    assert chi_square(counts(lambda s: batching.shuffling_stream(n, b, 1, seed=s)), np.ones(b**n)) < LIKELY


def test_participations_are_separated_and_in_turn():
    """[M-D] Record d only in rounds congruent to d mod b; its coins are b p, independent."""
    b, p, n = 3, 0.2, 6
    matrix = batching.participation(batching.cyclic_poisson_stream(n, 12_000, b, p, seed=2), n)
    i, d = np.nonzero(matrix)
    assert np.all(i % b == d % b)
    for record in range(n):
        assert np.all(np.diff(np.flatnonzero(matrix[:, record])) >= b)
    turns = matrix[0::b, [0, 3]].reshape(-1, 4)  # two records of part 0, two turns
    codes = np.bincount(turns @ [1, 2, 4, 8], minlength=16)
    heads = np.array([code.bit_count() for code in range(16)])
    assert chi_square(codes, (b * p) ** heads * (1 - b * p) ** (4 - heads)) > LIKELY


# ------------------------------------------------------------------------------ static shape


@pytest.mark.parametrize("name", STREAMS)
def test_padded_batches_hold_the_same_records(name):
    stream = STREAMS[name](9)
    padded = stream.padded()
    assert isinstance(padded, Padded) and len(padded) == 12 and padded.overflow_probability <= 1e-10
    for t, (indices, mask) in enumerate(padded):
        assert indices.shape == mask.shape == (padded.size,) and mask.dtype == bool
        assert np.array_equal(indices[mask], stream[t]) and not indices[~mask].any()
    indices, mask = padded.block(3, 8)
    assert indices.shape == mask.shape == (5, padded.size) and np.array_equal(indices[2], padded[5][0])
    assert f"{padded.size} slots" in repr(padded)


def test_sizes_chosen_by_themselves():
    """The smallest that is exceeded with probability 1e-10 at most, by the union bound."""
    stream = batching.balls_in_bins_stream(50_000, 100, 20, seed=1)
    size = stream.padded().size
    tail = lambda k: 100 * stats.binom.sf(k, 50_000, 0.01)
    assert tail(size) <= 1e-10 < tail(size - 1) and 640 < size < 680
    assert stream.padded(size).overflow_probability == pytest.approx(tail(size), rel=1e-6)
    assert stream.padded(500).overflow_probability == 1
    assert batching.fixed_batch_stream(30, 5, 7, seed=1).padded().size == 7
    assert batching.shuffling_stream(30, 7, 2, seed=1).padded().size == 5
    assert batching.round_robin_stream(1, 1, 2).padded().size == 1
    assert batching.cyclic_poisson_stream(30, 6, 3, 1 / 3, seed=1).padded().size == 10
    poisson = batching.poisson_stream(1000, 50, 0.1, seed=1)
    assert 50 * stats.binom.sf(poisson.padded().size, 1000, 0.1) <= 1e-10


def test_a_cut_is_fair_and_kept_through_the_epochs():
    """Each record of a full batch is left out equally often: not the one with the largest number."""
    counts = np.zeros(5)
    for seed in range(1500):
        stream = batching.poisson_stream(5, 1, 1.0, seed=seed)
        indices, mask = stream.padded(4)[0]
        assert mask.all() and np.all(np.diff(indices) > 0)
        counts[np.setdiff1d(np.arange(5), indices)] += 1
    assert chi_square(counts, np.ones(5)) > LIKELY
    padded = batching.balls_in_bins_stream(40, 4, 3, seed=1).padded(8)
    for t in range(4):
        assert np.array_equal(padded[t][0], padded[t + 4][0]) and np.array_equal(
            padded[t][1], padded[t + 8][1]
        )


# -------------------------------------------------------------------------------- large data


# ---------------------------------------------------------------------------------- bad input
