"""Arguments that the optimisers have in common, checked."""

from __future__ import annotations

import numpy as np

from .. import matrices
from .._base import validate as check


def target(epsilon, delta):
    return check.real("epsilon", epsilon, above=0, at_most=1e6), check.delta(delta)


def seed(value):
    return check.whole("seed", value, at_least=0, at_most=2**62)


def table(values, batches_per_epoch):
    """(Toeplitz coefficients or a triangular array, batches per epoch), checked."""
    try:
        flat = np.ndim(values) < 2
    except ValueError:  # rows of different lengths
        flat = False
    found = check.vector("table", values) if flat else check.matrix("table", values)
    if not flat and (found.shape[0] != found.shape[1] or np.any(np.triu(found, 1))):
        raise ValueError(f"table must be flat, or square and lower-triangular; got shape {found.shape}")
    if np.any(found < 0):
        raise ValueError(f"table must have entries at least 0; got {float(found.min())!r}")
    diagonal = found[:1] if flat else np.diag(found)
    if not np.all(diagonal > 0):
        raise ValueError(
            f"table must start with a coefficient, or have a diagonal, above 0; got {float(diagonal.min())!r}"
        )
    b = check.whole("batches_per_epoch", batches_per_epoch, at_least=1, at_most=8192)
    if len(found) % b:
        raise ValueError(f"table must have a multiple of batches_per_epoch ({b}) rows; got {len(found)}")
    return found, b


def scheme(batches_per_epoch, epochs, fewest=2):
    b = check.whole("batches_per_epoch", batches_per_epoch, at_least=1, at_most=8192)
    epochs = check.whole("epochs", epochs, at_least=1)
    check.whole("rounds (batches_per_epoch * epochs)", b * epochs, at_least=fewest, at_most=matrices.MOST_ROUNDS)
    return b, epochs
