"""Lower-triangular Toeplitz encoders: a column of coefficients is the whole matrix.

The public face is `matrices`, which makes them and describes their interface.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from .._base.lazy_scipy import linalg
from .encoders import LARGEST_ENTRY, MOST_ROUNDS, Encoder, check_size, finite, locked, right_side

# Up to here a Toeplitz system is solved by substitution; beyond, by an inverse series.
_SUBSTITUTION = 2048
_FEW_BANDS = 64
_WORST_CONDITION = 1e9


@dataclass(frozen=True, eq=False, repr=False)
class Toeplitz(Encoder):
    """A lower-triangular Toeplitz encoder: C[i, j] = coefficients[i - j] for i >= j.

    Parameters
    ----------
    coefficients : shape (n,), the first column, 0 to 1e100; the first entry above 0 (at least 1e-100).

    Cost: `multiply` and `solve` take time n * bands for few bands, n log n in general.
    Accuracy: for up to 64 bands or 2048 rounds `solve` is a substitution, backward stable.
    Beyond, it multiplies by the inverse series and refines once: the error is at most about
    1e-15 times the sums of |coefficients| and |inverse coefficients| times max |y|, and
    refused with a ValueError where that product of sums exceeds 1e9. An inverse that grows
    beyond the range of floats is refused too.
    """

    coefficients: np.ndarray

    def __post_init__(self):
        values = check.vector("coefficients", self.coefficients, at_least=self._smallest, at_most=LARGEST_ENTRY)
        if not values[0] >= 1 / LARGEST_ENTRY:
            raise ValueError(f"coefficients must start with a number above 0 (1e-100); got {float(values[0])!r}")
        object.__setattr__(self, "coefficients", locked(values))

    @property
    def columns(self) -> int:
        return len(self.coefficients)

    @cached_property
    def bands(self) -> int:
        """How many leading coefficients there are up to the last that is not 0."""
        return int(np.flatnonzero(self.coefficients)[-1]) + 1

    @cached_property
    def inverse_coefficients(self) -> np.ndarray:
        """First column of C^-1, which is lower-triangular Toeplitz too."""
        return locked(finite(_inverse_series(self.coefficients, self.bands)))

    @property
    def prefix_coefficients(self) -> np.ndarray:
        """First column of A C^-1, the decoder of the prefix sums."""
        return np.cumsum(self.inverse_coefficients)

    def entries(self) -> np.ndarray:
        check_size("entries", self.rows, self.columns)
        return linalg.toeplitz(self.coefficients, np.zeros(self.columns))

    def multiply(self, x: ArrayLike) -> np.ndarray:
        x, shape = right_side("x", x, self.columns)
        if self.bands <= _FEW_BANDS:
            return _few_bands(self.coefficients[: self.bands], x).reshape(shape)
        return convolve(self.coefficients, x).reshape(shape)

    def solve(self, y: ArrayLike) -> np.ndarray:
        y, shape = right_side("y", y, self.rows)
        if self.bands <= _FEW_BANDS or self.columns <= _SUBSTITUTION:
            return finite(_substitute(self.coefficients[: self.bands], y)).reshape(shape)
        inverse = self.inverse_coefficients
        condition = np.sum(np.abs(self.coefficients)) * np.sum(np.abs(inverse))
        if condition > _WORST_CONDITION:
            raise ValueError(
                f"encoder must have a condition number of at most {_WORST_CONDITION:g} to be solved beyond "
                f"{_SUBSTITUTION} rounds and {_FEW_BANDS} bands; got {condition:.3g}"
            )
        x = convolve(inverse, y)
        x += convolve(inverse, y - convolve(self.coefficients, x))
        return x.reshape(shape)

    def gram_diagonal(self, lag: int) -> np.ndarray:
        """Inner products of columns i and i + lag, for i = 0 .. n - 1 - lag; time O(n)."""
        c, lag = self.coefficients, self._lag(lag)
        return np.cumsum(c[: len(c) - lag] * c[lag:])[::-1]


@dataclass(frozen=True, eq=False, repr=False)
class SignedToeplitz(Toeplitz):
    """A lower-triangular Toeplitz encoder with coefficients of both signs; made by `toeplitz`."""

    signed = True
    _smallest = -LARGEST_ENTRY


@dataclass(frozen=True, eq=False, repr=False)
class BufferedToeplitz(Toeplitz):
    """First column 1, then sum_k output_scale[k] buffer_decay[k]^(i-1) [N-BLT].

    Parameters as for `buffered_linear_toeplitz`, which makes it. The inverse is of the same form, with `inverse_scale`,
    at most 0, and `inverse_decay`.
    """

    n: int
    output_scale: np.ndarray
    buffer_decay: np.ndarray
    coefficients: np.ndarray = field(init=False)

    def __post_init__(self):
        n = check.whole("n", self.n, at_least=1, at_most=MOST_ROUNDS)
        scale = check.vector("output_scale", self.output_scale, at_least=0, at_most=LARGEST_ENTRY)
        decay = check.vector("buffer_decay", self.buffer_decay, at_least=0, at_most=1)
        if len(scale) != len(decay):
            raise ValueError(f"buffer_decay must have one entry per output_scale ({len(scale)}); got {len(decay)}")
        values = {"n": n, "output_scale": locked(scale), "buffer_decay": locked(decay)}
        values["coefficients"] = locked(_buffered_column(n, scale, decay))
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def _inverse(self):
        """Eigenvalues of diag(decay) - v v^T, v = sqrt(scale): those of the state matrix of C^-1.

        C^-1 feeds x = y - scale . s back into s' = decay s + x. With s = t / v the
        state matrix is symmetric, so that the eigenvalues are real and computed stably.
        """
        v = np.sqrt(self.output_scale)
        decay, vectors = np.linalg.eigh(np.diag(self.buffer_decay) - np.outer(v, v))
        return locked(-((v @ vectors) ** 2)), locked(decay)

    @property
    def inverse_scale(self) -> np.ndarray:
        return self._inverse[0]

    @property
    def inverse_decay(self) -> np.ndarray:
        return self._inverse[1]

    @cached_property
    def inverse_coefficients(self) -> np.ndarray:
        return locked(finite(_buffered_column(self.columns, *self._inverse)))


# --- helpers -------------------------------------------------------------------------------------------


def _few_bands(coefficients, x):
    result = coefficients[0] * x
    for lag, value in enumerate(coefficients[1:], start=1):
        if value:
            result[lag:] += value * x[:-lag]
    return result


def convolve(column, x):
    """Lower-triangular Toeplitz product by FFT, down the first axis; error about 1e-16 ||column||_2 ||x||_2."""
    size = 1 << (2 * len(column) - 1).bit_length()
    transform = np.fft.rfft(column, size).reshape(-1, *(1 for _ in x.shape[1:]))
    return np.fft.irfft(transform * np.fft.rfft(x, size, axis=0), size, axis=0)[: len(column)]


def reciprocal(column, inverse):
    """The power series 1 / column from its first coefficients: Newton steps, each of which doubles their number."""
    while len(inverse) < len(column):
        known, wanted = len(inverse), min(2 * len(inverse), len(column))
        padded = np.append(inverse, np.zeros(wanted - known))
        excess = np.where(np.arange(wanted) < known, 0.0, convolve(column[:wanted], padded))
        inverse = np.append(inverse, -convolve(padded, excess)[known:])
    return inverse


def _substitute(coefficients, y):
    """Forward substitution with a banded lower-triangular Toeplitz matrix."""
    from scipy.linalg.lapack import dtbtrs

    if not y.size:
        return y.copy()
    band = np.repeat(coefficients[:, None], len(y), axis=1)
    return np.ascontiguousarray(dtbtrs(band, y, uplo="L")[0])


def _inverse_series(column, bands):
    """Reciprocal power series: substitution first, then Newton steps."""
    n = len(column)
    known = n if bands <= _FEW_BANDS else min(n, _SUBSTITUTION)
    with np.errstate(over="ignore", invalid="ignore"):  # only where the inverse grows; its caller looks
        return reciprocal(column, _substitute(column[: min(bands, known)], np.eye(known, 1))[:, 0])


def _buffered_column(n, scale, decay):
    """1, then sum_k scale_k decay_k^(i-1) for i = 1 .. n - 1."""
    column = np.ones(n)
    with np.errstate(over="ignore"):  # only an inverse can grow, and its caller looks
        column[1:] = sum(s * d ** np.arange(n - 1.0) for s, d in zip(scale, decay))
    return column
