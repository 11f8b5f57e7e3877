"""Encoders: the matrices C of the mechanisms that release C x + z [M-0].

Row t of x is what round t contributes; a record contributes a vector of norm at
most 1 to each round in which it takes part. The noise z has independent entries
of standard deviation sigma, the noise multiplier. It is *not* multiplied by a
sensitivity: `dplib.sensitivity` computes that separately.

An encoder is a frozen value that knows its structure, so that inner products of
columns, inverses and noise are computed without the dense matrix:

    identity(n)                        independent noise, DP-SGD
    toeplitz(coefficients)             C[i, j] = coefficients[i - j]
    optimal_counting(n, bands=None)    the square root of the prefix sums      [M-E]
    buffered_linear_toeplitz(n, output_scale, buffer_decay)                   [N-BLT]
    binary_tree(leaves)                sums over dyadic intervals, tall       [M-tree]
    tree_restarts(rounds, leaves)      independent trees one after the other
    scaled(base, rows, columns)        a Toeplitz encoder with scales for its rows and columns [N-gradI]
    dense(array, row_rounds=None)      any causal matrix

Every encoder has

    rows, columns        its shape; a column is a round
    row_rounds           for each row the round (from 0) after which it is released
    entries()            the dense array (refused when larger than 2 GiB)
    multiply(x)          C x for x of shape (columns, ...)
    solve(y)             the x of smallest squared error ||C x - y||, for y of shape (rows, ...);
                         C^-1 y when C is square
    gram()               C^T C, dense; gram_diagonal(lag) is one of its diagonals
    column_norms()       shape (columns,)

Entries are at least 0: amplification by Poisson sampling is proved for such encoders. For balls in
bins `toeplitz` and `dense` also make encoders with entries of both signs, with `signed=True`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from .encoders import MOST_ROUNDS, Dense, Encoder, SignedDense, Tree
from .noise import NoiseStream
from .scaled_encoders import Scaled
from .toeplitz_encoders import BufferedToeplitz, SignedToeplitz, Toeplitz

__all__ = [
    "BufferedToeplitz",
    "Dense",
    "Encoder",
    "NoiseStream",
    "Scaled",
    "Toeplitz",
    "Tree",
    "binary_tree",
    "buffered_linear_toeplitz",
    "dense",
    "identity",
    "noise_stream",
    "optimal_counting",
    "scaled",
    "toeplitz",
    "tree_restarts",
]


def identity(n: int) -> Toeplitz:
    """C = I: independent noise in every round, as in DP-SGD. n : rounds, at least 1."""
    n = check.whole("n", n, at_least=1, at_most=MOST_ROUNDS)
    return Toeplitz(np.concatenate([[1.0], np.zeros(n - 1)]))


def toeplitz(coefficients: ArrayLike, signed: bool = False) -> Toeplitz:
    """C[i, j] = coefficients[i - j] for i >= j.

    coefficients : shape (n,), the first above 0; pad with zeros for a banded encoder.
    signed : whether the others may be below 0 [N-K]. Only `BallsInBins`, utility and noise take such encoders.
    Raises ValueError or TypeError on anything else.
    """
    return (SignedToeplitz if check.flag("signed", signed) else Toeplitz)(coefficients)  # type: ignore[arg-type]


def optimal_counting(n: int, bands: int | None = None) -> Toeplitz:
    """The square root of the prefix sums: f(0) = 1, f(k) = f(k - 1) (1 - 1/(2k)) [M-E].

    n : rounds, at least 1. bands : None, or the number of coefficients kept, 1 to n (the rest are 0).
    Without `bands` C C is all ones on and below the diagonal.

    >>> import numpy as np
    >>> from dplib import matrices
    >>> table = matrices.optimal_counting(4).entries()
    >>> table[:, 0].tolist()
    [1.0, 0.5, 0.375, 0.3125]
    >>> bool(np.allclose(table @ table, np.tril(np.ones((4, 4)))))
    True
    """
    n = check.whole("n", n, at_least=1, at_most=MOST_ROUNDS)
    bands = n if bands is None else check.whole("bands", bands, at_least=1, at_most=n)
    return Toeplitz(np.append(np.cumprod(np.append(1.0, 1 - 1 / (2 * np.arange(1.0, bands)))), np.zeros(n - bands)))


def buffered_linear_toeplitz(n: int, output_scale: ArrayLike, buffer_decay: ArrayLike) -> BufferedToeplitz:
    """First column 1, then sum_k output_scale[k] buffer_decay[k]^(i-1) for i = 1 .. n - 1 [N-BLT].

    Parameters
    ----------
    n : rounds, at least 1.
    output_scale : shape (buffers,), each at least 0. buffer_decay : shape (buffers,), each in [0, 1].

    Streaming needs `buffers` numbers per coordinate instead of all past rounds.
    Raises ValueError or TypeError on bad input.
    """
    return BufferedToeplitz(n, output_scale, buffer_decay)  # type: ignore[arg-type]


def binary_tree(leaves: int) -> Tree:
    """All sums over dyadic intervals of `leaves` rounds, a power of two [M-tree]."""
    return Tree(leaves)


def tree_restarts(rounds: int, leaves: int) -> Tree:
    """One binary tree after the other: rounds / leaves trees with `leaves` rounds each.

    leaves : a power of two that divides rounds. For another number of rounds, round it up: the
    nodes that are never completed are simply not released, which costs no privacy.
    """
    rounds = check.whole("rounds", rounds, at_least=1, at_most=MOST_ROUNDS)
    tree = Tree(leaves)
    if rounds % tree.leaves:
        raise ValueError(
            f"leaves must divide rounds ({rounds}), or rounds be rounded up to a multiple of it; got {leaves!r}"
        )
    return Tree(tree.leaves, rounds // tree.leaves)


def scaled(base: Toeplitz, rows: ArrayLike | None = None, columns: ArrayLike | None = None) -> Scaled:
    """C[i, j] = rows[i] * base[i, j] * columns[j]: noise of another size in each round [N-gradI].

    Parameters
    ----------
    base : a Toeplitz encoder (buffered ones too) without entries below 0.
    rows, columns : shape (n,), 1e-30 to 1e30; None: all 1.

    Lower-triangular with entries at least 0, so that everything proved for such encoders holds, for adaptive
    contributions too. Streaming its noise takes the memory of the base, and two numbers a round.
    Raises ValueError or TypeError on bad input.

    >>> from dplib import matrices
    >>> matrices.scaled(matrices.toeplitz([1.0, 0.5, 0.0]), rows=[2.0, 1.0, 1.0]).entries().tolist()
    [[2.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.5, 1.0]]
    """
    return Scaled(base, rows, columns)  # type: ignore[arg-type]


def dense(array: ArrayLike, row_rounds: ArrayLike | None = None, signed: bool = False) -> Dense:
    """Any encoder that uses no later round than it may.

    Parameters
    ----------
    array : shape (rows, columns). Without `row_rounds` it must be square and lower-triangular
        with a diagonal above 0: row t is released after round t.
    row_rounds : shape (rows,), whole numbers from 0 to columns - 1 that never decrease: the round
        after which each row is released. No row may use a later round. Every column needs an entry other than 0.
    signed : whether entries off the diagonal may be below 0 [N-K]. Only `BallsInBins`, utility and noise
        take such encoders.

    Raises ValueError or TypeError on anything else. Memory and time are those of dense matrices.
    """
    return (SignedDense if check.flag("signed", signed) else Dense)(array, row_rounds)  # type: ignore[arg-type]


def noise_stream(
    encoder: Encoder, shape: int | tuple[int, ...], noise_multiplier: float, seed: int
) -> NoiseStream:
    """Correlated noise, round by round, for a training loop: see `NoiseStream`.

    Parameters
    ----------
    encoder : a square encoder or a tree.
    shape : shape of one round's contribution, a whole number or a tuple of them; () for a scalar.
    noise_multiplier : sigma > 0, the standard deviation of every entry of z.
    seed : whole number at least 0. The generator is NumPy's PCG64: reproducible, not cryptographic.
    """
    encoder = check.encoder(encoder, signed=True)
    shape = check.shape("shape", shape)
    sigma = check.noise_multiplier(noise_multiplier)
    seed = check.whole("seed", seed, at_least=0, at_most=2**63 - 1)
    return NoiseStream(encoder, shape, sigma, seed)
