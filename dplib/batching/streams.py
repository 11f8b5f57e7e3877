"""Batches one round at a time: round t is a function of the seed and of t alone.

So a run that stopped goes on with the batches it would have had, and no list of all rounds is kept.
The public face is `batching`, whose functions make these and state what each guarantees.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._base.lazy_scipy import special
from .._base.random_blocks import generator

_STREAM = 17  # first word of the key, so that no other use of a seed draws the same numbers
OVERFLOW = 1e-10
_COLD_ROUNDS = 10**5  # of a cold start, whose rates are computed one by one


def subset(rng, n, size):
    """A uniformly random subset of 0 .. n - 1, in uniformly random order; memory O(size) up to n / 2.

    The first `size` different numbers of an independent sequence are one. No permutation is drawn.
    """
    if 2 * size > n:
        kept = np.ones(n, bool)
        kept[subset(rng, n, n - size)] = False
        return rng.permutation(np.flatnonzero(kept))
    drawn = np.empty(0, np.int64)
    first = drawn
    while len(first) < size:
        missing = size - len(first)
        drawn = np.concatenate([drawn, rng.integers(n, size=missing + missing * size // n + 16)])
        first = np.sort(np.unique(drawn, return_index=True)[1])
    return drawn[first[:size]]


def over(n, q, size):
    """P(Binomial(n, q) > size)."""
    return float(special.bdtrc(size, n, q)) if size < n else 0.0


@dataclass(frozen=True, eq=False)
class Batches:
    """A sequence of batches: `batches[t]` is round t, `len(batches)` the number of rounds.

    Each batch is an increasing, read-only int64 array of record numbers. Iterating draws one round
    after the other. `seed` is what they were drawn from; with it they are no secret. `expected_size` is
    the mean size of a batch. It is computed from the number of records (except for batches of a fixed size), so it
    is no divisor for a run that is private under add/remove.
    """

    records: int
    rounds: int
    seed: int
    expected_size: float = field(init=False)
    fresh: bool = field(default=False, kw_only=True)  # whether nobody chose the seed

    def __len__(self):
        return self.rounds

    def __getitem__(self, t):
        batch = np.sort(self.draw(self.place(t)))
        batch.flags.writeable = False
        return batch

    def __iter__(self):
        return (self[t] for t in range(self.rounds))

    def place(self, t: int) -> int:
        if isinstance(t, (bool, np.bool_)) or not isinstance(t, (int, np.integer)):
            raise TypeError(f"round must be a whole number; got {t!r}")
        if not 0 <= t < self.rounds:
            raise IndexError(f"round must be from 0 to {self.rounds - 1}; got {t!r}")
        return int(t)

    def draw(self, t: int) -> np.ndarray:
        """The records of round t in random order, so that cutting the end off is fair."""
        raise NotImplementedError

    def overflow(self, size: int) -> float:
        """Upper bound on the probability that some batch of the whole run is larger than `size`."""
        raise NotImplementedError

    def padded(self, size: int | None = None) -> Padded:
        """The same batches in one shape, for compiled code: `Padded`.

        size : slots of every batch, at least 1. None: the smallest size that all batches of the run fit
            into, except with probability 1e-10.

        Padding costs no privacy. Cutting does [E-20]: where a batch is full, one record decides whether
        another one is left out. With a probability p of ever cutting, a guarantee (epsilon, delta) becomes
        (epsilon, delta + (1 + e^epsilon) p). p must hold for both neighbours: with a size of one's own, under add/remove, it is
        the `overflow_probability` of the stream with one record more.
        """
        from .._base import validate as check

        if size is not None:
            return Padded(self, check.whole("size", size, at_least=1, at_most=2**31 - 1))
        low, high = 0, self.records  # the overflow of `high` is at most the bound, that of `low` is not
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.overflow(middle) <= OVERFLOW else (middle, high)
        return Padded(self, high)

    def fingerprint(self) -> dict:
        """What the batches depend on, as plain values by name."""
        names = [name for name in self.__dataclass_fields__ if name not in ("expected_size", "fresh")]
        return {"scheme": type(self).__name__, **{name: getattr(self, name) for name in names}}

    def __repr__(self):
        return f"<{type(self).__name__}: {self.rounds} batches of {self.expected_size:g} expected records>"


class Padded:
    """Batches of one shape: `padded[t]` is (indices, mask), arrays of length `size`.

    Slots whose mask is False hold record 0 and must not count. What does not fit is left out, the same
    records in every epoch where batches are kept. `overflow_probability` bounds the probability that anything ever is.
    """

    def __init__(self, batches, size):
        self.batches, self.size = batches, size
        self.overflow_probability = min(1.0, batches.overflow(size))

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, t):
        drawn = np.sort(self.batches.draw(self.batches.place(t))[: self.size])
        indices, mask = np.zeros(self.size, np.int64), np.arange(self.size) < len(drawn)
        indices[: len(drawn)] = drawn
        return indices, mask

    def __iter__(self):
        return (self[t] for t in range(len(self)))

    def block(self, start: int, stop: int) -> tuple[np.ndarray, ...]:
        """Rounds start .. stop - 1 stacked: two arrays of shape (stop - start, size)."""
        pairs = [self[t] for t in range(start, stop)]
        return tuple(np.stack(part) for part in zip(*pairs))

    def __repr__(self):
        return f"<{self.batches!r} in {self.size} slots>"


# --------------------------------------------------------------------- fresh in every round


@dataclass(frozen=True, eq=False, repr=False)
class Poisson(Batches):
    sampling_probability: float

    def __post_init__(self):
        object.__setattr__(self, "expected_size", self.records * self.sampling_probability)

    def draw(self, t):
        rng = generator(self.seed, (_STREAM, 0), t)
        return subset(rng, self.records, int(rng.binomial(self.records, self.sampling_probability)))

    def overflow(self, size):
        return self.rounds * over(self.records, self.sampling_probability, size)


@dataclass(frozen=True, eq=False, repr=False)
class FixedBatch(Batches):
    batch_size: int

    def __post_init__(self):
        object.__setattr__(self, "expected_size", float(self.batch_size))

    def draw(self, t):
        return subset(generator(self.seed, (_STREAM, 1), t), self.records, self.batch_size)

    def overflow(self, size):
        return float(size < self.batch_size)


@dataclass(frozen=True, eq=False, repr=False)
class CyclicPoisson(Batches):
    separation: int
    sampling_probability: float

    def __post_init__(self):
        object.__setattr__(self, "expected_size", self.records * self.sampling_probability)

    @property
    def _rate(self):
        return min(self.separation * self.sampling_probability, 1.0)

    def draw(self, t):
        part = t % self.separation
        members = len(range(part, self.records, self.separation))
        rng = generator(self.seed, (_STREAM, 2), t)
        return part + self.separation * subset(rng, members, int(rng.binomial(members, self._rate)))

    def overflow(self, size):
        return self.rounds * over(-(-self.records // self.separation), self._rate, size)


# ------------------------------------------------------------------- a pause after each turn


def first_turns(rng, n, rounds, b, p, warm):
    """The round in which each record takes part first, shape (n,); `rounds` or more where it never does."""
    waits = np.zeros(n, np.int64)
    if warm and b > 1:
        # A record is mid-pause with probability (b - 1) p / (1 + (b - 1) p), each of the b - 1 places alike.
        paused = rng.random(n) * (1 + (b - 1) * p) < (b - 1) * p
        waits[paused] = rng.integers(1, b, size=int(paused.sum()))
    return waits + _misses(rng, n, rounds, p)


def next_turns(rng, count, t, rounds, b, p):
    """The next round of each of `count` records that take part in round t, shape (count,)."""
    return t + b + _misses(rng, count, rounds, p)


def cold_rates(rounds, b, p):
    """The probability of taking part in each round, shape (rounds,), where all records are eligible in the first."""
    rates, paused = np.empty(rounds), 0.0
    for i in range(rounds):
        paused -= rates[i - b] if i >= b else 0.0
        rates[i] = p * (1 - paused)
        paused += rates[i]
    return rates


def _misses(rng, count, rounds, p):
    """Tails before the first head, shape (count,), cut off at `rounds`."""
    if p == 0:
        return np.full(count, rounds)
    return np.minimum(rng.geometric(p, count) - 1, rounds)


@dataclass(frozen=True, eq=False, repr=False)
class MinSeparation(Batches):
    separation: int
    sampling_probability: float
    warm_start: bool

    def __post_init__(self):
        b, p = self.separation, self.sampling_probability
        rate = p / (1 + (b - 1) * p)
        if not self.warm_start:
            # The first rounds one by one; beyond them the mean is that of the long run.
            few = min(self.rounds, _COLD_ROUNDS)
            rate = (float(cold_rates(few, b, p).sum()) + (self.rounds - few) * rate) / self.rounds
        object.__setattr__(self, "expected_size", self.records * rate)
        object.__setattr__(self, "_state", (None, None, None))

    def draw(self, t):
        n, T, b, p = self.records, self.rounds, self.separation, self.sampling_probability
        at, due, members = self._state
        if at is None or t < at:
            at, due, members = -1, first_turns(generator(self.seed, (_STREAM, 4, 0), 0), n, T, b, p, self.warm_start), None
        while at < t:
            at += 1
            rng = generator(self.seed, (_STREAM, 4), at)
            members = rng.permutation(np.flatnonzero(due == at))
            due[members] = next_turns(rng, len(members), at, T, b, p)
        object.__setattr__(self, "_state", (at, due, members))
        return members

    def overflow(self, size):
        b, p = self.separation, self.sampling_probability
        # Every round of a cold start has at most the rate p.
        rate = p / (1 + (b - 1) * p) if self.warm_start else p
        return self.rounds * over(self.records, rate, size)


# ------------------------------------------------------------------------ once an epoch


@dataclass(frozen=True, eq=False, repr=False)
class _Epochs(Batches):
    batches_per_epoch: int

    def __post_init__(self):
        object.__setattr__(self, "expected_size", self.records / self.batches_per_epoch)
        object.__setattr__(self, "_kept", (None, None, None))

    def draw(self, t):
        epoch, batch = divmod(t, self.batches_per_epoch)
        key = self.key(epoch)
        if self._kept[0] != key:
            object.__setattr__(self, "_kept", (key, *self.arranged(generator(self.seed, (_STREAM, 3), key))))
        _, order, ends = self._kept
        return order[ends[batch] : ends[batch + 1]].astype(np.int64)

    def key(self, epoch):
        return 0

    def sizes(self, rng):
        n, b = self.records, self.batches_per_epoch
        return np.full(b, n // b) + (np.arange(b) < n % b)

    def arranged(self, rng):
        """A permutation in 4 bytes a record, and where it is cut."""
        ends = np.concatenate([[0], np.cumsum(self.sizes(rng))])
        order = np.arange(self.records, dtype=np.uint32)
        rng.shuffle(order)
        return order, ends

    def overflow(self, size):
        return float(size < -(-self.records // self.batches_per_epoch))


@dataclass(frozen=True, eq=False, repr=False)
class Shuffling(_Epochs):
    reshuffle: bool

    def key(self, epoch):
        return epoch if self.reshuffle else 0


@dataclass(frozen=True, eq=False, repr=False)
class RoundRobin(_Epochs):
    def draw(self, t):
        return np.arange(t % self.batches_per_epoch, self.records, self.batches_per_epoch)


@dataclass(frozen=True, eq=False, repr=False)
class BallsInBins(_Epochs):
    def sizes(self, rng):
        return rng.multinomial(self.records, np.full(self.batches_per_epoch, 1 / self.batches_per_epoch))

    def overflow(self, size):
        return self.batches_per_epoch * over(self.records, 1 / self.batches_per_epoch, size)
