"""Families of encoders for the optimisers: parameters in, a table of the encoder out, gradients back.

A table is what an encoder is made from: Toeplitz coefficients, shape (n,), or a lower-triangular
array, shape (n, n). Every family has

    start, bounds       the first parameters, shape (k,), and limits for each (None: none at all)
    table(x, numpy)     the table at parameters x; with jax.numpy it is differentiable (the caller switches 64 bits on)
    pull(x, slope)      the gradient by x, from the gradient by the table
    encoder(x)          of `dplib.matrices`
"""

from __future__ import annotations

import math

import numpy as np

from .. import matrices
from .._base import lazy_jax
from .._base import validate as check
from .._base.user_functions import Compiled
from ..results import NoBracketError
from . import slopes

NAMES = ("toeplitz", "banded_toeplitz", "buffered_linear_toeplitz")
BASES = {"scaled_toeplitz": "toeplitz", "scaled_buffered": "buffered_linear_toeplitz"}
SCALINGS = ("rows", "both")
MOST_BUFFERS = 8
_MOST_DENSE = 4096  # rounds of dense arrays
_MOST_DECAY = 1 - 1e-6
_LARGEST_LOG = 60.0  # of a scale


def make(encoder_family, n, batches, bands=None, buffers=3, start=None, bases={}):  # noqa: B006
    """The family of a name or a function; arguments as for `optimize.optimize`, n rounds. bases : more names, of families beneath."""
    if callable(encoder_family):
        if bands is not None:
            raise ValueError(f"bands must be None for a function; got {bands!r}")
        if start is None:
            raise ValueError("start must be the first parameters where encoder_family is a function; got None")
        return Custom(encoder_family, n, check.vector("start", start))
    if not isinstance(encoder_family, str):
        raise TypeError(f"encoder_family must be one of {(*NAMES, *bases)} or a function; got {encoder_family!r}")
    name = check.choice("encoder_family", encoder_family, (*NAMES, *bases))
    name = bases.get(name, name)
    if name != "banded_toeplitz" and bands is not None:
        raise ValueError(f"bands must be None for the family {name!r}; got {bands!r}")
    if name == "buffered_linear_toeplitz":
        if start is not None:
            raise ValueError("start must be None for buffered linear Toeplitz encoders")
        return Buffered(n, check.whole("buffers", buffers, at_least=1, at_most=MOST_BUFFERS))
    if name == "banded_toeplitz":
        bands = check.whole("bands", bands, at_least=1, at_most=n)
    if start is None:
        start = matrices.optimal_counting(n, max(1, min(batches // 4, n)))
    if not isinstance(start, matrices.Toeplitz) or start.columns != n or start.signed:
        raise ValueError(f"start must be a Toeplitz encoder with {n} columns and no entry below 0; got {start!r}")
    return Free(n, bands or n, start.coefficients / start.coefficients[0])


class Free:
    """Toeplitz encoders by their coefficients 1 .. bands - 1, scaled so that all matter alike."""

    def __init__(self, n, bands, start):
        self.n, self.scale = n, np.sqrt(np.arange(2.0, bands + 1))
        self.start = start[1:bands] * self.scale
        self.bounds = [(0.0, None)] * (bands - 1)

    def table(self, x, numpy=np):
        return numpy.concatenate([numpy.ones(1), x / self.scale, numpy.zeros(self.n - len(self.scale) - 1)])

    def pull(self, x, slope):
        return slope[1 : len(x) + 1] / self.scale

    def encoder(self, x):
        return matrices.toeplitz(self.table(x))


class Buffered:
    """Buffered linear Toeplitz encoders with weights above 0: logs of output scales, and of 1 - decay [N-BLT]."""

    def __init__(self, n, buffers):
        self.n, self.powers = n, np.arange(n - 1.0)
        # Output scales and decays for which the sum is about that of optimal counting, k^(-1/2) / sqrt(pi).
        lags = np.geomspace(2.0, max(n / 4, 4.0), buffers)
        self.start = np.concatenate([np.log(0.5 / np.sqrt(lags * buffers)), -np.log(lags)])
        self.bounds = [(-30.0, 5.0)] * buffers + [(-math.log(1e6), -1e-6)] * buffers

    def parts(self, x, numpy=np):
        """(output scales, decays), each of shape (buffers,)."""
        half = len(x) // 2
        return numpy.exp(x[:half]), numpy.minimum(1 - numpy.exp(x[half:]), _MOST_DECAY)

    def table(self, x, numpy=np):
        scale, decay = self.parts(x, numpy)
        return numpy.concatenate([numpy.ones(1), scale @ decay[:, None] ** self.powers])

    def pull(self, x, slope):
        scale, decay = self.parts(x)
        powers = decay[:, None] ** self.powers
        by_scale = powers @ slope[1:] * scale
        steeper = np.zeros_like(powers)
        steeper[:, 1:] = self.powers[1:] * powers[:, :-1]  # d decay^k / d decay
        return np.append(by_scale, steeper @ slope[1:] * scale * -(1 - decay))

    def encoder(self, x):
        return matrices.buffered_linear_toeplitz(self.n, *self.parts(x))


class Scaled:
    """A family of Toeplitz encoders with scales for rows d, or for rows d and columns e [N-gradI].

    Parameters beside those of the base: log(d e), the size of a round's own entry; and, with columns, the steps of
    log(d / e) from round to round, which decide how far a round reaches ahead. (By log d and log e
    the search would take five times as many steps: what changes one reach changes all later scales.)

    start : (parameters of the base, scales of rows), where the search begins.
    """

    def __init__(self, base, start, has_columns):
        self.base, self.n, self.has_columns = base, base.n, has_columns
        self.unit = 1 / math.sqrt(base.n)  # of the logarithms, so that one scale matters as much as one coefficient
        x, rows = start
        self.start = np.concatenate([x, np.log(rows) * self.unit, np.zeros(self.n * has_columns)])
        self.bounds = [*base.bounds, *[(None, None)] * (len(self.start) - len(x))]

    def table(self, x):
        return matrices.scaled(self.base.encoder(x[: len(self.base.start)]), *self._scales(x))

    encoder = table

    def pull(self, x, slope):
        k = len(self.base.start)
        rows, columns = self._scales(x)
        by_rows, by_columns = slope[1] * rows, slope[2] * (columns if self.has_columns else 1.0)
        by_base = self.base.pull(x[:k], slope[0])
        if not self.has_columns:
            return np.append(by_base, by_rows / self.unit)
        by_steps = np.cumsum((by_rows - by_columns)[::-1])[::-1]
        return np.concatenate([by_base, (by_rows + by_columns) / 2 / self.unit, by_steps / 2 / self.unit])

    def _scales(self, x):
        x = x[len(self.base.start) :]
        size = x[: self.n] / self.unit
        reach = np.cumsum(x[self.n :] / self.unit)
        if np.max(np.abs(size)) + np.max(np.abs(reach), initial=0.0) > _LARGEST_LOG:
            raise NoBracketError("scales are beyond the range of floats")  # too long a step
        if not self.has_columns:
            return np.exp(size), None
        return np.exp((size + reach) / 2), np.exp((size - reach) / 2)


class Custom:
    """A function of one's own, written with jax.numpy."""

    bounds = None

    def __init__(self, function, n, start):
        self.function, self.n, self.start = function, n, start
        self._table, self._pull = Compiled("encoder_family", self._traced), Compiled("encoder_family", self._back)
        self.table(start)

    def table(self, x, numpy=np):
        """Checked at every call: parameters wander."""
        return self._checked(np.asarray(self._table(x))) if numpy is np else self._traced(x)

    def pull(self, x, slope):
        return np.array(self._pull(x, slope), float)

    def _back(self, x, slope):
        return lazy_jax.load().vjp(self._traced, x)[1](slope)[0]

    def encoder(self, x):
        return slopes.encoder(self.table(x))

    def _traced(self, x):
        return lazy_jax.load().numpy.asarray(self.function(x))

    def _checked(self, table):
        n, wanted = self.n, "Toeplitz coefficients or a lower-triangular array"
        if table.shape not in ((n,), (n, n)):
            raise ValueError(f"encoder_family must give {wanted}, shape ({n},) or ({n}, {n}); got shape {table.shape}")
        if table.ndim == 2 and n > _MOST_DENSE:
            raise ValueError(f"encoder_family must give coefficients beyond {_MOST_DENSE} rounds; got shape {table.shape}")
        if table.dtype != np.float64:
            raise TypeError(f"encoder_family must give real numbers of 64 bits; got {table.dtype}")
        if not np.all(np.isfinite(table)):
            raise ValueError("encoder_family must give finite entries; got " + repr(float(table[~np.isfinite(table)][0])))
        if np.any(table < 0):
            raise ValueError(
                "encoder_family must give entries of at least 0 at all parameters (jax.nn.softplus or jax.numpy.exp keep "
                f"them there); got {float(table.min())!r}"
            )
        diagonal = table[:1] if table.ndim == 1 else np.diag(table)
        if np.any(diagonal <= 0):
            raise ValueError("encoder_family must give a first coefficient, or a diagonal, above 0; got 0.0")
        if table.ndim == 2 and np.any(np.triu(table, 1)):
            raise ValueError("encoder_family must give a lower-triangular array; got entries above the diagonal")
        return table
