"""Arguments that the optimisers have in common, checked."""

from __future__ import annotations

from .. import matrices
from .._base import validate as check


def target(epsilon, delta):
    return check.real("epsilon", epsilon, above=0, at_most=1e6), check.delta(delta)


def table(values, batches_per_epoch):
    """(Toeplitz coefficients, batches per epoch), checked."""
    found = check.vector("table", values, at_least=0)
    if not found[0] > 0:
        raise ValueError(f"table must start with a coefficient above 0; got {float(found[0])!r}")
    b = check.whole("batches_per_epoch", batches_per_epoch, at_least=1, at_most=8192)
    if len(found) % b:
        raise ValueError(f"table must have a multiple of batches_per_epoch ({b}) rows; got {len(found)}")
    return found, b


def scheme(batches_per_epoch, epochs, fewest=2):
    b = check.whole("batches_per_epoch", batches_per_epoch, at_least=1, at_most=8192)
    epochs = check.whole("epochs", epochs, at_least=1)
    check.whole("rounds (batches_per_epoch * epochs)", b * epochs, at_least=fewest, at_most=matrices.MOST_ROUNDS)
    return b, epochs
