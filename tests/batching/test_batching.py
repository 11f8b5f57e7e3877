"""The samplers, all batches at once and as streams: laws of sizes and memberships, structure, reproducibility, the static shape.

Tests of randomness are chi-square or z tests on fixed seeds. Each threshold is a
probability of about 1e-4 for a correct sampler; wrong samplers are rejected too.
"""

import itertools
import math

import numpy as np
import pytest
from patterns import enumerated
from scipy import stats

from dplib import batching
from dplib.balls_in_bins.pattern_law import Patterns
from dplib.batching.streams import Batches, Padded, subset

LIKELY = 1e-4


def rng(seed=7):
    return np.random.default_rng(seed)


def chi_square(observed, expected):
    """p value of the counts, bins of small expectation joined from both ends."""
    observed, expected = list(map(float, observed)), list(np.asarray(expected) * (np.sum(observed) / np.sum(expected)))
    for end in (0, -1):
        while len(expected) > 2 and expected[end] < 8:
            e, o = expected.pop(end), observed.pop(end)
            expected[end] += e
            observed[end] += o
    return stats.chisquare(observed, expected).pvalue


def drawn(form, scheme, *arguments, seed=7, **options):
    """The batches of a scheme, all at once or as a stream."""
    if form == "list":
        source = () if scheme == "round_robin" else (rng(seed),)
        return getattr(batching, scheme)(*arguments, *source, **options)
    seeded = {} if scheme == "round_robin" else {"seed": seed}
    return getattr(batching, f"{scheme}_stream")(*arguments, **seeded, **options)


each_form = pytest.mark.parametrize("form", ["list", "stream"])
SCHEMES = {
    "poisson": lambda form, seed: drawn(form, "poisson", 40, 12, 0.2, seed=seed),
    "fixed_batch": lambda form, seed: drawn(form, "fixed_batch", 40, 12, 8, seed=seed),
    "shuffling": lambda form, seed: drawn(form, "shuffling", 40, 4, 3, seed=seed),
    "shuffling anew": lambda form, seed: drawn(form, "shuffling", 40, 4, 3, seed=seed, reshuffle=True),
    "cyclic_poisson": lambda form, seed: drawn(form, "cyclic_poisson", 40, 12, 4, 0.1, seed=seed),
    "min_separation": lambda form, seed: drawn(form, "min_separation", 40, 12, 4, 0.3, seed=seed),
    "min_separation cold": lambda form, seed: drawn(form, "min_separation", 40, 12, 4, 0.3, seed=seed, warm_start=False),
    "balls_in_bins": lambda form, seed: drawn(form, "balls_in_bins", 40, 4, 3, seed=seed),
    "round_robin": lambda form, seed: drawn(form, "round_robin", 40, 4, 3),
}
ONCE_AN_EPOCH = ["shuffling", "shuffling anew", "balls_in_bins", "round_robin"]


@each_form
@pytest.mark.parametrize("name", SCHEMES)
def test_batches_are_increasing_read_only_and_repeatable(name, form):
    first, again, other = (SCHEMES[name](form, seed) for seed in (3, 3, 4))
    assert len(first) == 12 and isinstance(first, list) == (form == "list")
    for batch in first:
        assert batch.dtype == np.int64 and batch.ndim == 1 and not batch.flags.writeable
        assert np.all(np.diff(batch) > 0) and (not len(batch) or (batch[0] >= 0 and batch[-1] < 40))
    assert all(np.array_equal(a, b) for a, b in zip(first, again))
    differs = any(not np.array_equal(a, b) for a, b in zip(first, other))
    assert differs == (name != "round_robin")


# ---------------------------------------------------------------------- Poisson


@each_form
@pytest.mark.parametrize("q", [0.35, 0.7])
def test_poisson_coins_are_independent_between_records_and_rounds(q, form):
    """All 2^6 patterns of 3 records in 2 rounds have their product probability."""
    trials = 8000
    matrix = batching.participation(drawn(form, "poisson", 3, 2 * trials, q), 3).reshape(trials, 6)
    counts = np.bincount(matrix @ (1 << np.arange(6)), minlength=64)
    heads = np.array([code.bit_count() for code in range(64)])
    assert chi_square(counts, trials * q**heads * (1 - q) ** (6 - heads)) > LIKELY
    assert chi_square(counts, trials * (q + 0.04) ** heads * (0.96 - q) ** (6 - heads)) < LIKELY


@each_form
def test_poisson_at_the_ends_of_its_range(form):
    assert all(len(batch) == 0 for batch in drawn(form, "poisson", 5, 3, 0))
    assert all(np.array_equal(batch, np.arange(5)) for batch in drawn(form, "poisson", 5, 3, 1))
    assert sum(map(len, drawn(form, "poisson", 2**31 - 1, 1000, 1e-300))) == 0
    rare = drawn(form, "poisson", 2**31 - 1, 10**4, 1e-11)
    assert 120 < sum(map(len, rare)) < 320


# ------------------------------------------------------------------ fixed sizes


@each_form
def test_fixed_batches_of_different_rounds_are_independent(form):
    """All 36 pairs of two batches of 2 of 4 records are equally likely."""
    places = {subset: i for i, subset in enumerate(itertools.combinations(range(4), 2))}
    codes = np.array([places[tuple(batch.tolist())] for batch in drawn(form, "fixed_batch", 4, 14_000, 2)])
    pairs = np.bincount(6 * codes[0::2] + codes[1::2], minlength=36)
    assert chi_square(pairs, np.full(36, 7000 / 36)) > LIKELY


# -------------------------------------------------------------- once an epoch


@each_form
@pytest.mark.parametrize("name", ONCE_AN_EPOCH)
def test_every_record_takes_part_exactly_once_an_epoch(name, form):
    for seed in range(20):
        matrix = batching.participation(SCHEMES[name](form, seed), 40)
        assert np.all(matrix.reshape(3, 4, 40).sum(axis=1) == 1)
        kept = np.array_equal(matrix[:4], matrix[4:8]) and np.array_equal(matrix[:4], matrix[8:])
        assert kept == (name != "shuffling anew")


def co_membership(sampler, records, trials):
    """Frequencies: records 0 and 1 in the same batch; record 0 in each batch."""
    together, first = 0, np.zeros(4)
    for _ in range(trials):
        matrix = batching.participation(sampler(), records)[:4].astype(int)
        together += int(np.any(matrix[:, 0] & matrix[:, 1]))
        first += matrix[:, 0]
    return together / trials, first


@pytest.mark.parametrize("streaming", [False, True])
def test_balls_meet_with_probability_one_over_the_number_of_bins(streaming):
    """[N-3.1] Co-membership 1/b, and each bin equally likely for a given ball."""
    generator, trials = rng(), 6000
    sampler = lambda: batching.balls_in_bins(8, 4, 1, generator, streaming=streaming)
    together, first = co_membership(sampler, 8, trials)
    assert abs(together - 1 / 4) < 4 * math.sqrt(0.25 * 0.75 / trials)
    assert chi_square(first, np.full(4, trials / 4)) > LIKELY


@pytest.mark.parametrize("form", ["list", "streaming", "stream"])
def test_assignments_of_balls_are_jointly_uniform(form):
    """[N-3.1] All forms give every one of the b^n assignments probability b^-n."""
    generator, n, b, trials = rng(), 4, 3, 4050
    counts = np.zeros(b**n)
    weights = b ** np.arange(n)
    for _ in range(trials):
        if form == "stream":
            batches = batching.balls_in_bins_stream(n, b, 1, seed=int(generator.integers(2**32)))
        else:
            batches = batching.balls_in_bins(n, b, 1, generator, streaming=form == "streaming")
        bins = np.argmax(batching.participation(batches, n), axis=0)
        counts[bins @ weights] += 1
    assert chi_square(counts, np.full(b**n, trials / b**n)) > LIKELY


@pytest.mark.parametrize("streaming", [False, True])
def test_sizes_of_bins_are_multinomial(streaming):
    """[N-3.1] The joint law of the sizes of three bins of five balls."""
    generator, trials = rng(), 5000
    law = {s: stats.multinomial.pmf(s, 5, [1 / 3] * 3) for s in itertools.product(range(6), repeat=3)}
    law = {s: p for s, p in law.items() if sum(s) == 5}
    counts = dict.fromkeys(law, 0)
    for _ in range(trials):
        counts[tuple(map(len, batching.balls_in_bins(5, 3, 1, generator, streaming=streaming)))] += 1
    order = sorted(law, key=law.get)
    assert chi_square([counts[s] for s in order], [trials * law[s] for s in order]) > LIKELY


# ------------------------------------------------------------- cyclic Poisson


@each_form
@pytest.mark.parametrize("rounds", [1, 3, 12, 14])
def test_participations_are_separated_and_in_turn(rounds, form):
    """[M-D] Record d only in rounds congruent to d mod b, so b rounds apart."""
    b = 4
    for seed in range(10):
        matrix = batching.participation(drawn(form, "cyclic_poisson", 30, rounds, b, 0.2, seed=seed), 30)
        i, d = np.nonzero(matrix)
        assert np.all(i % b == d % b)
        for record in range(30):
            assert np.all(np.diff(np.flatnonzero(matrix[:, record])) >= b)


@each_form
def test_rate_inside_the_part_is_b_times_the_average_rate(form):
    """[M-D] Sizes of the rounds of a part are Binomial(part, b p)."""
    n, b, p, T = 50, 5, 0.06, 20000
    sizes = np.array([len(batch) for batch in drawn(form, "cyclic_poisson", n, T, b, p)])
    for part in (0, 4):
        counts = np.bincount(sizes[part::b], minlength=11)
        assert chi_square(counts, T / b * stats.binom.pmf(np.arange(11), 10, b * p)) > LIKELY


# ------------------------------------------------------------- minimal separation


def patterns(form, b, p, warm, rounds, records):
    """How often each set of rounds occurs, by its number in binary."""
    batches = drawn(form, "min_separation", records, rounds, b, p, warm_start=warm)
    matrix = batching.participation(batches, records).astype(np.int64)
    return np.bincount((1 << np.arange(rounds)) @ matrix, minlength=2**rounds)


def pattern_law(b, p, warm, rounds):
    """The probability of each set of rounds, by its number in binary."""
    law = np.zeros(2**rounds)
    for taken, probability in enumerated(Patterns(rounds, p, b, warm)).items():
        law[sum(1 << i for i in taken)] = probability
    return law


@each_form
@pytest.mark.parametrize("b, p, warm", [(3, 0.4, True), (3, 0.4, False), (2, 0.7, True), (1, 0.3, True), (4, 1.0, True)])
def test_rounds_of_a_record_have_the_law_of_coins_with_a_pause(form, b, p, warm):
    """The joint law of six rounds, by chi-square; the law of the other start is rejected where it differs."""
    counts, law = patterns(form, b, p, warm, 6, 20_000), pattern_law(b, p, warm, 6)
    assert counts[law == 0].sum() == 0
    possible = law > 0
    assert chi_square(counts[possible], counts.sum() * law[possible]) > LIKELY
    if b > 1:
        other = pattern_law(b, p, not warm, 6)
        assert counts[other == 0].sum() > 0 or chi_square(counts[other > 0], counts.sum() * other[other > 0]) < LIKELY


@each_form
def test_a_warm_start_has_the_same_rate_in_every_round(form):
    """p / (1 + (b - 1) p), by chi-square: each round is counted on records of its own, so that the counts are independent."""
    n, rounds, b, p = 12_000, 30, 5, 0.3
    matrix = batching.participation(drawn(form, "min_separation", n, rounds, b, p), n)
    rate, own = p / (1 + (b - 1) * p), matrix.reshape(rounds, rounds, n // rounds)
    counts = own[np.arange(rounds), np.arange(rounds)].sum(axis=1)
    statistic = lambda q: ((counts - n / rounds * q) ** 2 / (n / rounds * q * (1 - q))).sum()
    assert stats.chi2.sf(statistic(rate), rounds) > LIKELY > stats.chi2.sf(statistic(1.2 * rate), rounds)
    # As soon as it is eligible again, a record joins with probability p; before, never.
    assert all(not np.any(matrix[lag:] & matrix[:-lag]) for lag in range(1, b))
    early, again = int(matrix[0].sum()), int((matrix[0] & matrix[b]).sum())
    assert abs(again - p * early) < 4 * math.sqrt(early * p * (1 - p))


def test_a_mean_size_is_that_of_the_rates():
    stream = batching.min_separation_stream(1000, 50, 4, 0.3, warm_start=False, seed=1)
    law = pattern_law(4, 0.3, False, 8)
    first = [law[(np.arange(256) >> i) & 1 == 1].sum() for i in range(8)]
    assert batching.min_separation_stream(1000, 8, 4, 0.3, warm_start=False, seed=1).expected_size == pytest.approx(1000 * np.mean(first))
    assert batching.min_separation_stream(1000, 8, 4, 0.3, seed=1).expected_size == pytest.approx(300 / 1.9)
    assert len(stream[0]) > len(stream[1])  # a cold start
    assert all(len(batch) == 0 for batch in batching.min_separation(10, 5, 3, 0.0, rng()))
    assert 50 * stats.binom.sf(stream.padded().size, 1000, 0.3) <= 1e-10


# --------------------------------------------------------------- participation


def test_participation_matrix():
    matrix = batching.participation([np.array([0, 2]), np.array([], int), [1]], 3)
    assert matrix.dtype == np.uint8
    assert matrix.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


# ------------------------------------------------------------------------- streams


@pytest.mark.parametrize("name", SCHEMES)
def test_rounds_come_in_any_order(name):
    """Round t does not depend on the rounds before it."""
    first, again = SCHEMES[name]("stream", 3), SCHEMES[name]("stream", 3)
    batches = list(first)
    assert isinstance(first, Batches) and len(batches) == first.rounds == 12
    assert all(np.array_equal(again[t], batches[t]) for t in (7, 2, 11, 0))
    assert f"{first.expected_size:g} expected" in repr(first)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_fresh_seed_is_new_and_known_afterwards(name):
    if name == "round_robin":
        return
    a, b = SCHEMES[name]("stream", None), SCHEMES[name]("stream", None)
    assert a.fresh and a.seed != b.seed and a.seed.bit_length() > 64 and not SCHEMES[name]("stream", 1).fresh
    assert all(np.array_equal(x, y) for x, y in zip(a, SCHEMES[name]("stream", a.seed)))


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


@pytest.mark.parametrize("name", SCHEMES)
def test_padded_batches_hold_the_same_records(name):
    stream = SCHEMES[name]("stream", 9)
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


# ---------------------------------------------------------------------------------- bad input
