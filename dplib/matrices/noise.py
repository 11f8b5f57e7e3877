"""Correlated noise in streaming form: what a training loop adds in each round.

`plan` reads an encoder and says how its noise is made (a hashable kind, and arrays of numbers); `push` turns the fresh
noise z of a round into w = (C^-1 z)_t, the noise to add to that round's sum, and keeps as little of the past as the
structure allows. Both serve NumPy here and JAX in `dplib.training`. `NoiseStream` draws z, counts rounds, and can stop
and go on.

    form            C                              memory, in rows
    identity        a multiple of the identity     0
    buffers         buffered linear Toeplitz       one for each buffer                    [N-BLT]
    toeplitz        Toeplitz with h bands          h - 1 (all rounds where h = n)
    dense           any lower triangle             all rounds
    any of these    scaled rows and columns        the same                               [N-gradI]
    trees           binary trees (NumPy alone)     log2(leaves) + 2                       [M-tree]
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np

from .._base import validate as check


@dataclass(frozen=True)
class Kind:
    """What a compiled step depends on: the form of the recursion, how many rows it keeps, and whether rounds have scales."""

    form: str
    rows: int
    is_scaled: bool = False


def plan(encoder):
    """(Kind, arrays by name) for a square encoder or a tree."""
    encoder = check.encoder(encoder, signed=True)
    if hasattr(encoder, "leaves"):
        # One slot for each height, then the finished trees, then the last prefix sum.
        return Kind("trees", encoder.leaves.bit_length() + 1), {"leaves": np.array(encoder.leaves)}
    if not getattr(encoder, "is_triangular", True):
        raise ValueError("encoder must be square and lower-triangular, or a tree, to stream its noise")
    if hasattr(encoder, "row_scale"):
        kind, arrays = plan(encoder.base)
        scales = {"row_scale": encoder.row_scale, "column_scale": encoder.column_scale}
        return replace(kind, is_scaled=True), arrays | scales
    coefficients = getattr(encoder, "coefficients", None)
    if coefficients is None:
        diagonal = np.diagonal(encoder.array).copy()
        return Kind("dense", len(diagonal)), {"later": encoder.array - np.diag(diagonal), "first": diagonal}
    bands = encoder.bands
    if bands == 1:
        return Kind("identity", 0), {"first": coefficients[0]}
    scale = getattr(encoder, "output_scale", None)
    if scale is not None and len(scale) < bands:
        return Kind("buffers", len(scale)), {"scale": scale, "decay": encoder.buffer_decay}
    later = coefficients[1:bands]
    # Two copies in a row, backwards: the coefficients in the order of a ring that starts anywhere.
    return Kind("toeplitz", bands - 1), {"first": coefficients[0], "twice": np.concatenate([later, later])[::-1]}


def push(kind, arrays, memory, t, z):
    """(w, memory) from the fresh noise z of round t, flat; of trees one row for each new node. NumPy's memory is overwritten."""
    if kind.is_scaled:  # C^-1 z = T^-1 (z / rows) / columns: the memory holds what T^-1 made
        w, memory = push(replace(kind, is_scaled=False), arrays, memory, t, z / arrays["row_scale"][t])
        return w / arrays["column_scale"][t], memory
    if kind.form == "trees":
        return _push_nodes(memory, t % int(arrays["leaves"]) + 1 < arrays["leaves"], z)
    if kind.form == "identity":
        return z / arrays["first"], memory
    if kind.form == "buffers":
        w = z - arrays["scale"] @ memory
        return w, arrays["decay"][:, None] * memory + w
    if kind.form == "toeplitz":
        # Slot s holds the round (t - s) mod rows rounds back, where 0 means `rows` of them.
        row = arrays["twice"][(-t) % kind.rows + np.arange(kind.rows)]
        first, slot = arrays["first"], t % kind.rows
    else:
        row, first, slot = arrays["later"][t], arrays["first"][t], t
    w = (z - row @ memory) / first
    if not isinstance(memory, np.ndarray):
        return w, memory.at[slot].set(w)
    memory[slot] = w
    return w, memory


def _push_nodes(sums, is_open, z):
    """The noise of a prefix sum is the sum over its dyadic nodes: w is the difference of two prefix sums in a row.

    The open nodes are the digits of a binary counter: slot h is filled when bit h of the number of rounds is set.
    """
    top = len(z) - 1
    sums[:top] = 0.0  # the nodes below the one that is complete now
    if is_open:
        sums[top] = z[top]
    else:
        sums[-2] += z[top]
    prefix = sums[:-1].sum(axis=0)
    w = prefix - sums[-1]
    sums[-1] = prefix
    return w, sums


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

    def __init__(self, encoder, shape, noise_multiplier, seed):
        self._kind, self._arrays = plan(encoder)
        self._generator = np.random.default_rng(seed)
        self._memory = np.zeros((self._kind.rows, int(np.prod(shape))))
        self.rounds = encoder.columns
        self.shape = shape
        self.noise_multiplier = noise_multiplier
        self.round = 0

    def __iter__(self):
        return self

    def __next__(self):
        """The noise of the next round, an array of `shape`; StopIteration after the last round."""
        if self.round >= self.rounds:
            raise StopIteration
        shape = self.shape
        if self._kind.form == "trees":
            ends = self.round % int(self._arrays["leaves"]) + 1
            shape = ((ends & -ends).bit_length(), *shape)
        z = self.noise_multiplier * self._generator.standard_normal(shape)
        z = z.reshape(*shape[: len(shape) - len(self.shape)], -1)
        w, self._memory = push(self._kind, self._arrays, self._memory, self.round, z)
        self.round += 1
        return w.reshape(self.shape)

    @property
    def memory_rows(self) -> int:
        """How many rows of `shape` the state holds."""
        return self._kind.rows

    def state(self) -> dict:
        """Everything that the coming rounds depend on, as copies: plain numbers, text and arrays."""
        return {
            **self._label(),
            "round": self.round,
            "generator": self._generator.bit_generator.state,
            "memory": self._memory.copy(),
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
        self._memory = np.array(state["memory"])

    def _label(self):
        numbers = b"".join(np.ascontiguousarray(array).tobytes() for array in self._arrays.values())
        return {
            "encoder": f"{self._kind.form} {zlib.crc32(numbers):08x}",
            "rounds": self.rounds,
            "shape": self.shape,
            "noise_multiplier": self.noise_multiplier,
        }
