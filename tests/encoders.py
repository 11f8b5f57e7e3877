"""Small encoders of every kind: what holds for an encoder is tried on each of them."""

import numpy as np
import pytest

from dplib import matrices

RNG = np.random.default_rng(20240229)
LOWER = np.tril(RNG.random((7, 7)) + 0.1)
TALL = np.array([[1.0, 0, 0], [1, 2, 0], [0, 0.5, 0], [1, 1, 1], [0, 0, 3]])
SCALES = RNG.uniform(0.5, 2, (2, 10))

ENCODERS = {
    "identity": matrices.identity(8),
    "one round": matrices.identity(1),
    "gaps": matrices.toeplitz([2.0, 0.5, 0.0, 1.0, 0.0, 0.0]),
    "rising": matrices.toeplitz([1.0, 2.0, 3.0, 0.1]),
    "all ones": matrices.toeplitz(np.ones(9)),
    "counting": matrices.optimal_counting(10),
    "banded": matrices.optimal_counting(10, bands=3),
    "buffers": matrices.buffered_linear_toeplitz(10, [0.3, 0.2, 0.8], [0.9, 0.9, 0.2]),
    "one buffer": matrices.buffered_linear_toeplitz(6, [0.5], [0.0]),
    "scaled": matrices.scaled(matrices.optimal_counting(10), *SCALES),
    "scaled bands": matrices.scaled(matrices.optimal_counting(10, bands=3), *SCALES),
    "scaled rows": matrices.scaled(matrices.identity(10), SCALES[0]),
    "scaled buffers": matrices.scaled(matrices.buffered_linear_toeplitz(10, [0.3, 0.1], [0.5, 0.9]), *SCALES),
    "leaf": matrices.binary_tree(1),
    "tree": matrices.binary_tree(8),
    "restarts": matrices.tree_restarts(12, 4),
    "dense": matrices.dense(LOWER),
    "two bands": matrices.dense(np.tril(np.triu(LOWER, -1))),
    "tall": matrices.dense(TALL, row_rounds=[0, 1, 1, 2, 2]),
}
TREES = {name: encoder for name, encoder in ENCODERS.items() if isinstance(encoder, matrices.Tree)}
SQUARE = {name: encoder for name, encoder in ENCODERS.items() if encoder.rows == encoder.columns}


def each(encoders):
    return pytest.mark.parametrize("encoder", encoders.values(), ids=encoders.keys())
