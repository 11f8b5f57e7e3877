"""Tail bounds for encoders without structure: every (row, column) pair by itself.

Rows are taken in blocks: one row each where b = 1, else all rows that are released in b
consecutive rounds. The Gram matrix of what has been released grows block by block.
Cost: n^2 for each block, n^3 in all; for encoders of up to about 2,000 rounds.

All results are upper bounds.
"""

from __future__ import annotations

import numpy as np

from .._base import checkpoints
from .tails import binomial_quantile, joint_exponents, posterior, published_exponents

_UP = 1 + 1e-11


class Blocks:
    """The rows of an encoder in blocks, and every b-th of its columns from `first` on."""

    def __init__(self, encoder, noise_multiplier, separation=1, first=0):
        array = encoder.entries()[:, first::separation]
        rounds = np.asarray(encoder.row_rounds)
        kept = np.flatnonzero(rounds >= first)
        self.noise = float(noise_multiplier)
        self.array = array[kept]
        block = np.arange(len(kept)) if separation == 1 else (rounds[kept] - first) // separation
        _, starts = np.unique(block, return_index=True)
        self.starts = np.append(starts, len(kept))
        # Norm of each column inside each block: the entry itself for a block of one row.
        squares = np.add.reduceat(self.array**2, starts, axis=0)
        self.entries = np.sqrt(squares) * (1 if len(starts) == len(kept) else _UP)
        self.seen = np.cumsum(self.entries > 0, axis=0) - (self.entries > 0) > 0

    @property
    def pairs(self):
        """(block, column) pairs that need a bound: the column is in the block and has been seen before."""
        return int(np.count_nonzero(self.seen & (self.entries > 0)))

    def past(self):
        """For each block that needs one: (block, its columns seen before, Gram matrix of the past over sigma^2)."""
        gram = np.zeros((self.array.shape[1],) * 2)
        for block in checkpoints.bar(range(len(self.entries)), "tail bounds"):
            columns = np.flatnonzero(self.seen[block] & (self.entries[block] > 0))
            if len(columns):
                yield block, columns, gram
            rows = self.array[self.starts[block] : self.starts[block + 1]]
            used = np.flatnonzero(rows.any(axis=0))
            scaled = rows[:, used] / self.noise
            gram[np.ix_(used, used)] += scaled.T @ scaled


def bounds(blocks, probability, delta_1, rule):
    """Probability bounds, shape of `blocks.entries`: `probability` where nothing was seen, else by `rule`.

    rule : `published_rule` or `joint_rule`.
    """
    result = np.full(blocks.entries.shape, float(probability))
    exponents = rule(probability, delta_1 / max(blocks.pairs, 1))
    for block, columns, gram in blocks.past():
        found = exponents(gram[columns], np.diag(gram)[columns])
        result[block, columns] = posterior(probability, found)
    return result


def published_rule(probability, tail):
    """Algorithm 2 of the source: half of `tail` for the participations, half for the noise [M-Alg2]."""
    half = tail / 2

    def exponents(products, norms):
        columns = np.count_nonzero(products > 0, axis=1)
        table = binomial_quantile(np.arange(columns.max() + 1), probability, half)
        most = table[columns]
        largest = max(int(most.max()), 1)
        top = np.partition(products, products.shape[1] - largest, axis=1)[:, -largest:]
        sums = np.cumsum(np.sort(top, axis=1)[:, ::-1], axis=1)
        taken = np.where(most > 0, sums[np.arange(len(sums)), np.maximum(most, 1) - 1], 0.0)
        return published_exponents(norms, taken, half)

    return exponents


def joint_rule(probability, tail):
    """Chernoff on participations and noise together [A-11].

    e^{lambda g} - 1 is convex in g: below its chord over [0, largest g], so sums do.
    """

    def exponents(products, norms):
        largest, total = products.max(axis=1), products.sum(axis=1)

        def log_moment(orders):
            return probability * np.expm1(orders * largest) * (total / largest)

        return joint_exponents(norms, largest, tail, log_moment)

    return exponents
