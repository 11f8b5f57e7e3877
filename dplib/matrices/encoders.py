"""What all encoders have in common, and those without a formula: trees and dense matrices.

The public face is `matrices`, which makes them and describes their interface.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check

MOST_ROUNDS = 2**27
# Squares and their sums stay within the range of a float.
LARGEST_ENTRY = 1e100
_MOST_ENTRIES = 2**28


class Encoder:
    """What all encoders have in common; made by the functions of `dplib.matrices`."""

    signed = False  # whether entries below 0 are allowed
    _smallest = 0.0

    @property
    def columns(self) -> int:
        raise NotImplementedError

    @property
    def rows(self) -> int:
        return self.columns

    @cached_property
    def row_rounds(self) -> np.ndarray:
        """For each row the round (from 0) after which it can be released; never decreasing."""
        return locked(np.arange(self.columns))

    def gram_diagonal(self, lag: int) -> np.ndarray:
        """Inner products of columns i and i + lag, for i = 0 .. columns - 1 - lag."""
        raise NotImplementedError

    def gram(self) -> np.ndarray:
        """C^T C as a dense (columns, columns) array."""
        n = self.columns
        check_size("gram", n, n)
        result = np.empty((n, n))
        for lag in range(n):
            diagonal = self.gram_diagonal(lag)
            place = np.arange(n - lag)
            result[place, place + lag] = diagonal
            result[place + lag, place] = diagonal
        return result

    def column_norms(self) -> np.ndarray:
        """Euclidean norms of the columns, shape (columns,)."""
        return np.sqrt(self.gram_diagonal(0))

    def _lag(self, lag):
        return check.whole("lag", lag, at_least=0, at_most=self.columns - 1)

    @cached_property
    def _contents(self):
        values = (getattr(self, field.name) for field in fields(self))
        return type(self), *((v.shape, v.tobytes()) if isinstance(v, np.ndarray) else v for v in values)

    def __eq__(self, other):
        return self._contents == other._contents if isinstance(other, Encoder) else NotImplemented

    def __hash__(self):
        return hash(self._contents)

    def __repr__(self):
        return f"{type(self).__name__}({self.rows} x {self.columns})"


@dataclass(frozen=True, eq=False, repr=False)
class Tree(Encoder):
    """Sums over dyadic intervals: `trees` binary trees with `leaves` rounds each [M-tree].

    A node of height h is the sum over 2^h consecutive rounds. The rows stand in the
    order of release: after round t the nodes that end with it, lower ones first. So
    children stand before parents, and the last row of a tree is its root.

    Parameters
    ----------
    leaves : a power of two, rounds of one tree. trees : at least 1.
    """

    leaves: int
    trees: int = 1

    def __post_init__(self):
        leaves = check.whole("leaves", self.leaves, at_least=1, at_most=MOST_ROUNDS)
        if leaves & (leaves - 1):
            raise ValueError(f"leaves must be a power of two (1, 2, 4, ...); got {self.leaves!r}")
        trees = check.whole("trees", self.trees, at_least=1, at_most=MOST_ROUNDS // leaves)
        object.__setattr__(self, "leaves", leaves)
        object.__setattr__(self, "trees", trees)

    @property
    def height(self) -> int:
        """Height of a root, log2(leaves)."""
        return self.leaves.bit_length() - 1

    @property
    def rows(self) -> int:
        return self.trees * (2 * self.leaves - 1)

    @property
    def columns(self) -> int:
        return self.trees * self.leaves

    @cached_property
    def _nodes(self):
        """(row_rounds, heights): after round t of a tree its nodes of height 0 .. trailing zeros of t + 1."""
        ends = np.arange(1, self.leaves + 1)
        new = np.bitwise_count((ends & -ends) - 1).astype(int) + 1
        rounds = np.repeat(ends - 1, new)
        heights = np.arange(len(rounds)) - np.repeat(np.cumsum(new) - new, new)
        starts = np.repeat(np.arange(self.trees) * self.leaves, len(rounds))
        return locked(starts + np.tile(rounds, self.trees)), locked(np.tile(heights, self.trees))

    @property
    def row_rounds(self) -> np.ndarray:
        return self._nodes[0]

    @property
    def row_heights(self) -> np.ndarray:
        """Height of each row's node: the row is a sum over 2^height rounds, the last of them row_rounds."""
        return self._nodes[1]

    def entries(self) -> np.ndarray:
        check_size("entries", self.rows, self.columns)
        age = self.row_rounds[:, None] - np.arange(self.columns)
        return ((age >= 0) & (age < (1 << self.row_heights)[:, None])).astype(float)

    def multiply(self, x: ArrayLike) -> np.ndarray:
        level, shape = right_side("x", x, self.columns)
        result = np.empty((self.rows, level.shape[1]))
        for height in range(self.height + 1):
            result[self.row_heights == height] = level
            level = level[::2] + level[1::2] if height < self.height else level
        return result.reshape(self.rows, *shape[1:])

    def solve(self, y: ArrayLike) -> np.ndarray:
        """Least squares by one pass up and one down the tree, time O(rows) [M-tree]."""
        y, shape = right_side("y", y, self.rows)
        # Up: best estimate of each node from what lies below; its variance is 2^h / (2^(h+1) - 1).
        estimates = [y[self.row_heights == 0]]
        for height in range(1, self.height + 1):
            below = estimates[-1][::2] + estimates[-1][1::2]
            weight = 2.0**height / (2.0 ** (height + 1) - 1)  # of the own measurement beside the sum of the children's
            estimates.append(weight * y[self.row_heights == height] + (1 - weight) * below)
        # Down: the children share equally what the node knows better than they do.
        best = estimates[-1]
        for level in estimates[-2::-1]:
            best = level + np.repeat((best - level[::2] - level[1::2]) / 2, 2, axis=0)
        return best.reshape(self.columns, *shape[1:])

    def gram_diagonal(self, lag: int) -> np.ndarray:
        """The number of nodes above both rounds i and i + lag, for i = 0 .. columns - 1 - lag."""
        first = np.arange(self.columns - self._lag(lag))
        second = first + lag
        same_tree = first // self.leaves == second // self.leaves
        # The height of the lowest common ancestor is the bit length of i xor j.
        ancestor = np.frexp((first ^ second).astype(float))[1]
        return np.where(same_tree, self.height + 1.0 - ancestor, 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Dense(Encoder):
    """Any causal encoder with entries >= 0; made by `dense`."""

    array: np.ndarray
    row_rounds: np.ndarray = None  # type: ignore[assignment]  # filled in where it is not given

    def __post_init__(self):
        array = check.matrix("array", self.array)
        if np.any(array < self._smallest):
            raise ValueError(
                f"array must have entries at least {self._smallest:g}; got {float(array[array < self._smallest][0])!r}"
            )
        if np.any(array > LARGEST_ENTRY):
            raise ValueError(f"array must have entries at most 1e+100; got {float(np.max(array))!r}")
        check_size("array", *array.shape)
        rounds = np.arange(len(array)) if self.row_rounds is None else check.vector("row_rounds", self.row_rounds)
        self._check_rounds(array, rounds)
        empty = np.flatnonzero(~np.any(array != 0, axis=0))
        if len(empty):
            kind = "other than 0" if self.signed else "above 0"
            raise ValueError(f"array must have an entry {kind} in every column; column {empty[0]} has none")
        object.__setattr__(self, "array", locked(array))
        object.__setattr__(self, "row_rounds", locked(rounds.astype(int)))

    def _check_rounds(self, array, rounds):
        rows, columns = array.shape
        if self.row_rounds is None:
            if rows != columns:
                raise ValueError(
                    f"array must be square; got shape {array.shape} "
                    "(say in row_rounds after which round each row is released)"
                )
            if not np.all(np.diag(array) > 0):
                place = int(np.flatnonzero(np.diag(array) <= 0)[0])
                raise ValueError(f"array must have a diagonal above 0; got {float(array[place, place])!r} in row {place}")
        if len(rounds) != rows:
            raise ValueError(f"row_rounds must have one entry per row ({rows}); got {len(rounds)}")
        wrong = (rounds != np.floor(rounds)) | (rounds < 0) | (rounds > columns - 1)
        if np.any(wrong) or np.any(np.diff(rounds) < 0):
            raise ValueError(
                f"row_rounds must be whole numbers from 0 to {columns - 1} that never decrease; got {self.row_rounds!r}"
            )
        early = np.argwhere((np.arange(columns) > rounds[:, None]) & (array != 0))
        if len(early):
            i, j = early[0]
            raise ValueError(
                "array must be lower-triangular, or row_rounds at least every round that the row uses: "
                f"row {i} uses round {j}, got {rounds[i]:g}"
            )

    @property
    def rows(self) -> int:
        return self.array.shape[0]

    @property
    def columns(self) -> int:
        return self.array.shape[1]

    @cached_property
    def is_triangular(self) -> bool:
        """Square and lower-triangular with a diagonal above 0."""
        return (
            self.rows == self.columns
            and bool(np.all(np.diag(self.array) > 0))
            and not np.any(np.triu(self.array, 1))
        )

    def entries(self) -> np.ndarray:
        return self.array.copy()

    def multiply(self, x: ArrayLike) -> np.ndarray:
        x, shape = right_side("x", x, self.columns)
        return (self.array @ x).reshape(self.rows, *shape[1:])

    def solve(self, y: ArrayLike) -> np.ndarray:
        y, shape = right_side("y", y, self.rows)
        if self.is_triangular:
            from scipy.linalg import solve_triangular

            with np.errstate(over="ignore", invalid="ignore"):  # only an inverse can grow, and `finite` looks
                return finite(solve_triangular(self.array, y, lower=True)).reshape(shape)
        x, _, rank, _ = np.linalg.lstsq(self.array, y, rcond=None)
        if rank < self.columns:
            raise ValueError(f"array must have full column rank ({self.columns}) to be solved; got rank {rank}")
        return x.reshape(self.columns, *shape[1:])

    def gram(self) -> np.ndarray:
        return self.array.T @ self.array

    def gram_diagonal(self, lag: int) -> np.ndarray:
        lag = self._lag(lag)
        return np.einsum("ij,ij->j", self.array[:, : self.columns - lag], self.array[:, lag:])


@dataclass(frozen=True, eq=False, repr=False)
class SignedDense(Dense):
    """A causal encoder with entries of both signs; made by `dense`."""

    signed = True
    _smallest = -LARGEST_ENTRY


# --- helpers -------------------------------------------------------------------------------------------


def locked(array):
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


def check_size(name, rows, columns):
    if rows * columns > _MOST_ENTRIES:
        raise ValueError(
            f"{name} must have at most {_MOST_ENTRIES} entries (2 GiB) as a dense matrix; got {rows} x {columns}"
        )


def finite(values):
    """The values; refused where the inverse of an encoder made them leave the range of floats."""
    if not np.all(np.isfinite(values)):
        raise ValueError("encoder must have an inverse within the range of floats; its coefficients grow beyond it")
    return values


def right_side(name, values, length):
    """The values as a (length, width) table, and the shape to give back."""
    array, _ = check.grid(name, values)
    if array.ndim == 0 or len(array) != length:
        raise ValueError(f"{name} must have one row for each of {length}; got shape {array.shape}")
    return array.reshape(length, -1), array.shape

