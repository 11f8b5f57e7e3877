"""Batches: which records take part in which round, one function for each scheme.

Every sampler returns a list with one array of record numbers (int64, increasing,
read-only) for each round; records are numbered 0 to records - 1. Randomness
comes only from the `numpy.random.Generator` that is passed in: the same
generator state gives the same batches. Whether a batch stays secret, and so
whether it amplifies anything, is not decided here.

    poisson            each record by its own coin, each round anew
    fixed_batch        exactly B records without replacement, each round anew
    shuffling          one permutation cut into slices, kept or drawn anew each epoch
    round_robin        the same fixed slices in every epoch: nothing is random
    cyclic_poisson     fixed parts take turns, coins inside the part      [M-D]
    min_separation     coins, and a pause after each participation
    balls_in_bins      each record in one uniform batch of the epoch      [N-3.1]

For long runs and large data every scheme has a stream, `poisson_stream` and so on: the same law,
drawn round by round from a seed, for up to 2^31 - 1 records. A stream is a sequence (`stream[t]`, `len`,
iteration) in which round t depends on the seed and t alone, so that a run can stop and go on; `stream.padded()`
has the static shape that compiled code needs. Their generator is NumPy's Philox: reproducible from
`seed`, not cryptographic. For a release leave `seed` out: it is then drawn from the operating system.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._base import validate as check
from . import streams

_MOST_RECORDS = 2**31 - 1
_MOST_ROUNDS = 10**9
# Coins are numbered by int64; a sum of a few clipped gaps must stay in range too.
_MOST_COINS = 2**53


def poisson(records: int, rounds: int, sampling_probability: float, rng: np.random.Generator) -> list:
    """Poisson sampling: every record joins every round by its own coin.

    Parameters
    ----------
    records : n >= 1. rounds : T >= 1. sampling_probability : q in [0, 1].
    rng : numpy.random.Generator.

    Returns a list of T arrays; the sizes are independent Binomial(n, q).
    Cost: proportional to the number of records drawn, n * T * q, not to n * T:
    the gaps between successes are drawn instead of the coins.
    Raises ValueError or TypeError on bad input.

    >>> import numpy as np
    >>> from dplib import batching
    >>> rounds = batching.poisson(records=1000, rounds=20, sampling_probability=0.1, rng=np.random.default_rng(0))
    >>> len(rounds), min(map(len, rounds)) < 100 < max(map(len, rounds))
    (20, True)
    """
    n, T = _size(records, rounds)
    q = check.probability("sampling_probability", sampling_probability)
    rng = _generator(rng)
    return [_locked(batch) for batch in _coins(n, T, q, rng)]


def fixed_batch(records: int, rounds: int, batch_size: int, rng: np.random.Generator) -> list:
    """Batches of exactly `batch_size` records, without replacement, drawn anew each round.

    records : n >= 1. rounds : T >= 1. batch_size : B, 1 <= B <= n. rng : numpy.random.Generator.
    Returns a list of T arrays of length B; every set of B records is equally likely.
    """
    n, T = _size(records, rounds)
    size = check.whole("batch_size", batch_size, at_least=1, at_most=n)
    rng = _generator(rng)
    draws = (rng.choice(n, size, replace=False, shuffle=False) for _ in range(T))
    return [_locked(np.sort(batch)) for batch in draws]


def shuffling(
    records: int, batches_per_epoch: int, epochs: int, rng: np.random.Generator,
    reshuffle: bool = False,
) -> list:
    """A random permutation cut into consecutive batches of (almost) equal size.

    records : n >= 1. batches_per_epoch : b, 1 <= b <= n. epochs : E >= 1.
    rng : numpy.random.Generator. reshuffle : False keeps the permutation for all
    epochs ("persistent"), True draws a new one for each ("dynamic").

    Returns a list of b * E arrays. Each record takes part exactly once an epoch;
    sizes are fixed in advance and differ by at most one (the first n mod b are larger).
    """
    n, b, epochs = _epochs(records, batches_per_epoch, epochs)
    rng = _generator(rng)
    check.flag("reshuffle", reshuffle)

    def epoch():
        return [_locked(np.sort(part)) for part in np.array_split(rng.permutation(n), b)]

    if not reshuffle:
        return epoch() * epochs
    return [batch for _ in range(epochs) for batch in epoch()]


def round_robin(records: int, batches_per_epoch: int, epochs: int) -> list:
    """Fixed batches in a fixed order: record d takes part in the rounds i with i = d mod b.

    records : n >= 1. batches_per_epoch : b, 1 <= b <= n. epochs : E >= 1.
    Returns a list of b * E arrays; nothing is random, so nothing is amplified.
    """
    n, b, epochs = _epochs(records, batches_per_epoch, epochs)
    return [_locked(part) for part in _parts(n, b)] * epochs


def cyclic_poisson(
    records: int, rounds: int, separation: int, sampling_probability: float,
    rng: np.random.Generator,
) -> list:
    """Cyclic Poisson sampling: b fixed parts take turns, and coins decide inside the part [M-D].

    Parameters
    ----------
    records : n >= 1. rounds : T >= 1.
    separation : b, 1 <= b <= n; record d belongs to part d mod b, and round i
        samples from part i mod b only (rounds are counted from 0).
    sampling_probability : p in [0, 1/b], the average rate of a record per round;
        when its part's turn comes, it joins with probability b * p.
    rng : numpy.random.Generator.

    Returns a list of T arrays. Two rounds in which the same record takes part
    are at least b apart. separation=1 is Poisson sampling.
    """
    n, T = _size(records, rounds)
    b, p = _separation(n, separation, sampling_probability)
    rng = _generator(rng)
    batches = [None] * T
    for part, members in enumerate(_parts(n, b)[: min(b, T)]):
        turns = len(range(part, T, b))
        draws = _coins(len(members), turns, min(b * p, 1.0), rng)
        batches[part::b] = [_locked(members[draw]) for draw in draws]
    return batches


def min_separation(
    records: int, rounds: int, separation: int, sampling_probability: float,
    rng: np.random.Generator, warm_start: bool = True,
) -> list:
    """b-min-sep sampling: an eligible record joins by its own coin, and then sits out b - 1 rounds.

    Parameters
    ----------
    records : n >= 1. rounds : T >= 1. separation : b >= 1.
    sampling_probability : p in [0, 1], of an *eligible* record in a round. In the long run a record is in
        a share p / (1 + (b - 1) p) of the rounds.
    rng : numpy.random.Generator.
    warm_start : True starts in the stationary law, in which that share is the probability of every round: a
        record is eligible at once with probability 1 / (1 + (b - 1) p), and from round j = 1 .. b - 1 on (rounds
        are counted from 0) with p times that for each j. False: all records are eligible in round 0.

    Returns a list of T arrays. Two rounds in which the same record takes part are at least b apart; records are
    independent of each other. separation=1 is Poisson sampling. Time: records * rounds comparisons; memory: 8 bytes a record.

    >>> import numpy as np
    >>> from dplib import batching
    >>> rounds = batching.min_separation(6, 4, separation=2, sampling_probability=1.0, rng=np.random.default_rng(0))
    >>> bool(np.array_equal(rounds[0], rounds[2]) and len(rounds[0]) + len(rounds[1]) == 6)
    True
    """
    n, T, b, p, warm = _pause(records, rounds, separation, sampling_probability, warm_start)
    rng = _generator(rng)
    due = streams.first_turns(rng, n, T, b, p, warm)
    batches = []
    for t in range(T):
        members = np.flatnonzero(due == t)
        due[members] = streams.next_turns(rng, len(members), t, T, b, p)
        batches.append(_locked(members))
    return batches


def balls_in_bins(
    records: int, batches_per_epoch: int, epochs: int, rng: np.random.Generator,
    streaming: bool = False,
) -> list:
    """Balls in bins: each record joins one uniformly random batch, kept for all epochs [N-3.1].

    records : n >= 1. batches_per_epoch : b >= 1. epochs : E >= 1.
    rng : numpy.random.Generator. streaming : False lets each record choose its
    batch; True draws multinomial sizes and cuts one permutation. The two have the
    same law (not the same batches from the same generator state).

    Returns a list of b * E arrays, some of them possibly empty. Each record takes
    part exactly once an epoch; the sizes are Multinomial(n; 1/b, ..., 1/b).

    >>> import numpy as np
    >>> from dplib import batching
    >>> rounds = batching.balls_in_bins(records=6, batches_per_epoch=2, epochs=3, rng=np.random.default_rng(0))
    >>> batching.participation(rounds, records=6).sum(axis=0).tolist()
    [3, 3, 3, 3, 3, 3]
    """
    n, b, epochs = _epochs(records, batches_per_epoch, epochs, may_be_empty=True)
    rng = _generator(rng)
    if check.flag("streaming", streaming):
        sizes = rng.multinomial(n, np.full(b, 1 / b))
        order = rng.permutation(n)
    else:
        bins = rng.integers(b, size=n)
        sizes = np.bincount(bins, minlength=b)
        order = np.argsort(bins, kind="stable")
    parts = np.split(order, np.cumsum(sizes)[:-1])
    return [_locked(np.sort(part)) for part in parts] * epochs


# ------------------------------------------------------------------------ streams


def poisson_stream(
    records: int, rounds: int, sampling_probability: float, *, seed: int | None = None
) -> streams.Batches:
    """Poisson sampling, round by round: every record joins every round by its own coin.

    records : n >= 1. rounds : T >= 1. sampling_probability : q in [0, 1].
    seed : whole number at least 0; None for fresh entropy.

    Participation: all n T coins are independent. Cost of a round: its own size, up to q = 1/2
    (a Binomial(n, q) count, then as many records without replacement); memory likewise.

    >>> from dplib import batching
    >>> stream = batching.poisson_stream(records=10**9, rounds=1000, sampling_probability=1e-6, seed=1)
    >>> first = next(iter(stream))
    >>> len(first) < 2000
    True
    """
    n, T = _size(records, rounds)
    q = check.probability("sampling_probability", sampling_probability)
    return _made(streams.Poisson, n, T, seed, q)


def fixed_batch_stream(
    records: int, rounds: int, batch_size: int, *, seed: int | None = None
) -> streams.Batches:
    """Batches of exactly `batch_size` records without replacement, independent between rounds.

    records : n >= 1. rounds : T >= 1. batch_size : 1 to n. seed : whole number at least 0; None for fresh entropy.
    Participation: every set of batch_size records is equally likely in every round. Memory: one batch up to n / 2.
    """
    n, T = _size(records, rounds)
    size = check.whole("batch_size", batch_size, at_least=1, at_most=n)
    return _made(streams.FixedBatch, n, T, seed, size)


def shuffling_stream(
    records: int, batches_per_epoch: int, epochs: int, *, reshuffle: bool = False,
    seed: int | None = None,
) -> streams.Batches:
    """A permutation cut into slices, the same in every epoch or, with `reshuffle`, drawn anew for each.

    records : n >= 1. batches_per_epoch : b, 1 <= b <= n. epochs : E >= 1. seed : whole number at least 0;
    None for fresh entropy. Participation: exactly once an epoch; with a kept permutation b rounds apart. Memory: 4 bytes a record.
    """
    n, b, epochs = _epochs(records, batches_per_epoch, epochs)
    return _made(streams.Shuffling, n, _rounds(b, epochs), seed, b, check.flag("reshuffle", reshuffle))


def round_robin_stream(records: int, batches_per_epoch: int, epochs: int) -> streams.Batches:
    """Fixed batches in a fixed order: record d in the rounds i with i = d mod b. Nothing is random.

    records : n >= 1. batches_per_epoch : b, 1 <= b <= n. epochs : E >= 1.
    Participation: exactly once an epoch, b rounds apart.
    """
    n, b, epochs = _epochs(records, batches_per_epoch, epochs)
    return _made(streams.RoundRobin, n, _rounds(b, epochs), 0, b)


def cyclic_poisson_stream(
    records: int, rounds: int, separation: int, sampling_probability: float, *,
    seed: int | None = None,
) -> streams.Batches:
    """Cyclic Poisson sampling, round by round: fixed parts take turns, coins inside the part [M-D].

    records : n >= 1. rounds : T >= 1. separation : b, 1 to n. sampling_probability : average rate p, at most
    1 / b; a record joins with probability b p when its part's turn comes. seed : whole number at least 0; None for
    fresh entropy. Participation: at least b rounds apart; the coins of different records and turns are independent.
    """
    n, T = _size(records, rounds)
    b, p = _separation(n, separation, sampling_probability)
    return _made(streams.CyclicPoisson, n, T, seed, b, p)


def min_separation_stream(
    records: int, rounds: int, separation: int, sampling_probability: float, *,
    warm_start: bool = True, seed: int | None = None,
) -> streams.Batches:
    """b-min-sep sampling, round by round: an eligible record joins by its own coin, then sits out b - 1 rounds.

    records : n >= 1. rounds : T >= 1. separation : b >= 1. sampling_probability : p in [0, 1], of an eligible record;
    warm_start : as for `min_separation`. seed : whole number at least 0; None for fresh entropy. Participation: at least b
    rounds apart; records are independent. Memory: 8 bytes a record. Rounds are drawn one after the other: to look back, or
    far ahead, costs the rounds from the beginning, or between.
    """
    n, T, b, p, warm = _pause(records, rounds, separation, sampling_probability, warm_start)
    return _made(streams.MinSeparation, n, T, seed, b, p, warm)


def balls_in_bins_stream(
    records: int, batches_per_epoch: int, epochs: int, *, seed: int | None = None
) -> streams.Batches:
    """Balls in bins, round by round: multinomial sizes, one shuffle, consecutive slices [N-3.1].

    records : n >= 1. batches_per_epoch : b >= 1. epochs : E >= 1. seed : whole number at least 0; None for fresh entropy.
    Participation: exactly once an epoch, in the same batch of each; records choose independently and
    uniformly. Memory: 4 bytes a record (0.4 GB for 1e8), drawn at first use.

    `.padded(size)` is the practical variant of the source: pad or cut every batch to one size, divide by a
    constant. The cut is not free [E-20]: take the size that `padded()` chooses by itself.
    """
    n, b, epochs = _epochs(records, batches_per_epoch, epochs, may_be_empty=True)
    return _made(streams.BallsInBins, n, _rounds(b, epochs), seed, b)


def participation(batches: Sequence[np.ndarray] | streams.Batches, records: int) -> np.ndarray:
    """The 0/1 matrix of who takes part when: shape (rounds, records), dtype uint8.

    batches : a list of arrays of record numbers, as the samplers return it, or a stream.
    records : n >= 1. Row i, column d is 1 exactly when record d is in round i.
    Raises ValueError for a number outside 0 .. n - 1 or one that occurs twice in a round.
    Memory: rounds * records bytes.
    """
    n = _records(records)
    if isinstance(batches, streams.Batches):
        batches = list(batches)
    if not isinstance(batches, (list, tuple)) or not batches:
        raise TypeError(f"batches must be a non-empty list of arrays; got {type(batches).__name__}")
    rows = []
    for i, batch in enumerate(batches):
        batch = np.asarray(batch)
        if batch.ndim != 1 or (batch.size and not np.issubdtype(batch.dtype, np.integer)):
            raise TypeError(f"batches must hold flat arrays of whole numbers; got round {i}: {batch!r}")
        if batch.size and (batch.min() < 0 or batch.max() >= n):
            raise ValueError(f"batches must hold numbers from 0 to {n - 1}; got {batch!r} in round {i}")
        rows.append(batch.astype(np.int64))
    matrix = np.zeros((len(rows), n), np.uint8)
    for row, batch in zip(matrix, rows):
        row[batch] = 1
    drawn = matrix.sum(axis=1, dtype=np.int64)
    for i, batch in enumerate(rows):
        if drawn[i] != len(batch):
            raise ValueError(f"batches must not name a record twice in one round; round {i} does")
    return matrix


# ---------------------------------------------------------------------- helpers


def _records(records):
    return check.whole("records", records, at_least=1, at_most=_MOST_RECORDS)


def _size(records, rounds):
    n, T = _records(records), check.whole("rounds", rounds, at_least=1, at_most=_MOST_ROUNDS)
    if n * T > _MOST_COINS:
        raise ValueError(f"records * rounds must be at most 2**53; got {n} * {T}")
    return n, T


def _epochs(records, batches_per_epoch, epochs, may_be_empty=False):
    n = _records(records)
    most = _MOST_ROUNDS if may_be_empty else n
    b = check.whole("batches_per_epoch", batches_per_epoch, at_least=1, at_most=most)
    return n, b, check.whole("epochs", epochs, at_least=1, at_most=_MOST_ROUNDS)


def _rounds(b, epochs):
    return check.whole("batches_per_epoch * epochs", b * epochs, at_least=1, at_most=_MOST_ROUNDS)


def _separation(n, separation, sampling_probability):
    b = check.whole("separation", separation, at_least=1, at_most=n)
    p = check.probability("sampling_probability", sampling_probability)
    # p = 1/b itself must pass although b * p may round to just above 1.
    if b * p > 1 + 4e-16:
        raise ValueError(
            f"sampling_probability must be at most 1 / separation = {1 / b:g}; got {sampling_probability!r}"
        )
    return b, p


def _pause(records, rounds, separation, sampling_probability, warm_start):
    n, T = _size(records, rounds)
    b = check.whole("separation", separation, at_least=1, at_most=_MOST_ROUNDS)
    p = check.probability("sampling_probability", sampling_probability)
    return n, T, b, p, check.flag("warm_start", warm_start)


def _made(kind, n, rounds, seed, *arguments):
    """A stream with the seed, or with 128 bits from the operating system."""
    if seed is None:
        return kind(n, rounds, np.random.SeedSequence().entropy, *arguments, fresh=True)
    return kind(n, rounds, check.whole("seed", seed, at_least=0, at_most=2**128), *arguments)


def _generator(rng):
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator; got {type(rng).__name__}")
    return rng


def _locked(batch):
    """Epochs share their arrays: writing into one would change the others."""
    batch.flags.writeable = False
    return batch


def _parts(n, b):
    return [np.arange(part, n, b) for part in range(b)]


def _coins(n, rounds, q, rng):
    """Successes of n * rounds independent coins, as one increasing array a round.

    The distance from one success to the next is geometric, so only successes cost time.
    """
    if q == 0:
        return [np.empty(0, np.int64) for _ in range(rounds)]
    if q == 1:
        return [np.arange(n) for _ in range(rounds)]
    total, last, hits = n * rounds, -1, []
    while last < total:
        mean = (total - last) * q
        gaps = rng.geometric(q, int(mean + 6 * np.sqrt(mean + 1)) + 16)
        # Clipping keeps sums of huge gaps in range; whatever is clipped lies beyond the end.
        places = last + np.cumsum(np.minimum(gaps, total + 1))
        hits.append(places[places < total])
        last = int(places[-1])
    hits = np.concatenate(hits)
    ends = np.searchsorted(hits, n * np.arange(1, rounds + 1, dtype=np.int64))
    starts = np.concatenate([[0], ends[:-1]])
    return [hits[start:end] - n * i for i, (start, end) in enumerate(zip(starts, ends))]
