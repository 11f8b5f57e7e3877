"""Correlated noise in streaming form: what a training loop adds in each round.

A recursion turns the fresh noise z of a round into w = (C^-1 z)_t, the noise to
add to that round's sum; it knows its encoder's structure and keeps as little of
the past as that allows. `NoiseStream` draws z, counts rounds, and can stop and go on.
"""

from __future__ import annotations

import zlib

import numpy as np

from .._base import validate as check


def _checksum(*arrays):
    return format(zlib.crc32(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)), "08x")


class Recursion:
    """From z to w; `memory` is what it keeps of the past, `name` what it belongs to."""

    def fresh_rows(self, t):
        """How many rows of z round t takes."""
        return 1


class Substitution(Recursion):
    """Toeplitz encoder: w_t = (z_t - sum_k c_k w_{t-k}) / c_0. Memory: bands - 1 rows."""

    def __init__(self, coefficients, shape):
        self.first, later = coefficients[0], coefficients[1:]
        # A ring: slot (t mod bands - 1) holds w_t; two copies in a row need no index arithmetic.
        self.twice = np.concatenate([later, later])[::-1].copy()
        self.memory = np.zeros((len(later), *shape))
        self.name = f"Toeplitz {_checksum(coefficients)}"

    def step(self, t, z):
        size = len(self.memory)
        if not size:
            return z[0] / self.first
        # Slot s holds the round (t - s) mod size rounds back, where 0 means size rounds.
        start = (-t) % size
        w = (z[0] - np.tensordot(self.twice[start : start + size], self.memory, 1)) / self.first
        self.memory[t % size] = w
        return w


class DenseSubstitution(Recursion):
    """Dense lower-triangular encoder. Memory: every past row."""

    def __init__(self, array, shape):
        self.array = array
        self.memory = np.zeros((len(array), *shape))
        self.name = f"dense {_checksum(array)}"

    def step(self, t, z):
        w = (z[0] - np.tensordot(self.array[t, :t], self.memory[:t], 1)) / self.array[t, t]
        self.memory[t] = w
        return w


class Buffers(Recursion):
    """Buffered linear Toeplitz encoder: w = z - scale . s, s <- decay s + w. Memory: one row for each buffer."""

    def __init__(self, scale, decay, shape):
        self.scale, self.decay = scale, decay.reshape(-1, *(1 for _ in shape))
        self.memory = np.zeros((len(scale), *shape))
        self.name = f"buffers {_checksum(scale, decay)}"

    def step(self, _, z):
        w = z[0] - np.tensordot(self.scale, self.memory, 1)
        self.memory *= self.decay
        self.memory += w
        return w


class DyadicSums(Recursion):
    """Tree encoder: the noise of a prefix sum is the sum over its dyadic nodes. Memory: height + 2 rows.

    The open nodes are the digits of a binary counter: slot h is filled when bit h
    of the number of rounds is set. w is the difference of two prefix sums in a row.
    """

    def __init__(self, leaves, shape):
        self.leaves = leaves
        self.name = f"trees with {leaves} leaves"
        # One slot for each height, then the finished trees, then the last prefix sum.
        self.memory = np.zeros((leaves.bit_length() + 1, *shape))

    def fresh_rows(self, t):
        ends = t % self.leaves + 1
        return (ends & -ends).bit_length()

    def step(self, t, z):
        sums, top = self.memory, len(z) - 1
        sums[:top] = 0.0  # the nodes below the one that is complete now
        if (t + 1) % self.leaves:
            sums[top] = z[top]
        else:
            sums[-2] += z[top]
        prefix = sums[:-1].sum(axis=0)
        w = prefix - sums[-1]
        sums[-1] = prefix
        return w


class NoiseStream:
    """Noise to add to the sum of each round, so that its prefix sums are those of the encoder.

    Made by `matrices.noise_stream`. For a square encoder round t gets (C^-1 z)_t. For a tree it
    gets the increment of the noise of the prefix sums, which are sums over dyadic nodes.

        for t in range(stream.rounds):
            noisy_sum = clipped_sum + next(stream)

    The fresh noise z is drawn row by row in the order of the encoder's rows, so that a stream
    gives the same numbers as `encoder.solve` on
    `sigma * numpy.random.default_rng(seed).standard_normal((rows, *shape))`, up to rounding.

    Memory, in rows of `shape`: bands - 1 for a Toeplitz encoder, one for each buffer, log2(leaves) + 2
    for trees, all rounds for dense encoders. `state` is a copy of it, and `restore` goes on from
    there with identical numbers.
    """

    def __init__(self, recursion, rounds, shape, noise_multiplier, seed):
        self._recursion = recursion
        self._generator = np.random.default_rng(seed)
        self.rounds = rounds
        self.shape = shape
        self.noise_multiplier = noise_multiplier
        self.round = 0

    def __iter__(self):
        return self

    def __next__(self):
        """The noise of the next round, an array of `shape`; StopIteration after the last round."""
        if self.round >= self.rounds:
            raise StopIteration
        fresh = self._recursion.fresh_rows(self.round)
        z = self.noise_multiplier * self._generator.standard_normal((fresh, *self.shape))
        w = self._recursion.step(self.round, z)
        self.round += 1
        return w

    @property
    def memory_rows(self) -> int:
        """How many rows of `shape` the state holds."""
        return len(self._recursion.memory)

    def state(self) -> dict:
        """Everything that the coming rounds depend on, as copies: plain numbers, text and arrays."""
        return {
            **self._label(),
            "round": self.round,
            "generator": self._generator.bit_generator.state,
            "memory": self._recursion.memory.copy(),
        }

    def restore(self, state: dict) -> None:
        """Go on from a `state` of a stream with the same encoder, shape and noise.

        Raises TypeError when it is no such dictionary and ValueError when it belongs to another stream.
        """
        wanted = {*self._label(), "round", "generator", "memory"}
        if not isinstance(state, dict) or not wanted <= set(state):
            raise TypeError(f"state must be a dictionary with the keys {sorted(wanted)}; got {type(state).__name__}")
        for name, mine in self._label().items():
            if state[name] != mine:
                raise ValueError(f"state must belong to a stream with {name} = {mine!r}; got {state[name]!r}")
        self.round = check.whole("state['round']", state["round"], at_least=0, at_most=self.rounds)
        self._generator.bit_generator.state = state["generator"]
        self._recursion.memory[...] = state["memory"]

    def _label(self):
        return {
            "encoder": self._recursion.name,
            "rounds": self.rounds,
            "shape": self.shape,
            "noise_multiplier": self.noise_multiplier,
        }
