"""Encoders whose rows, or columns, have scales of their own: C = diag(rows) T diag(columns), T Toeplitz.

The public face is `matrices`, which makes them and describes their interface. Scaled rows are noise of another size in
each round: C^-1 z = T^-1 (z / rows) / columns, made with the memory of T and two numbers a round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from .encoders import LARGEST_ENTRY, Encoder, check_size, locked, right_side
from .toeplitz_encoders import Toeplitz

_LARGEST_SCALE = 1e30  # products of two of them with a coefficient, and their squares, stay within the range of floats


@dataclass(frozen=True, eq=False, repr=False)
class Scaled(Encoder):
    """C[i, j] = row_scale[i] * base.coefficients[i - j] * column_scale[j] for i >= j; made by `scaled`.

    `multiply` and `solve` cost what they cost for the base, `gram_diagonal` time n * bands.
    """

    base: Toeplitz
    row_scale: np.ndarray
    column_scale: np.ndarray

    def __post_init__(self):
        base = self.base
        if not isinstance(base, Toeplitz) or base.signed:
            raise TypeError(f"base must be a Toeplitz encoder without entries below 0; got {base!r}")
        largest = float(base.coefficients.max())
        for name, values in (("rows", self.row_scale), ("columns", self.column_scale)):
            scale = np.ones(base.columns) if values is None else check.vector(name, values, at_most=_LARGEST_SCALE)
            if len(scale) != base.columns:
                raise ValueError(f"{name} must have one scale for each round ({base.columns}); got {len(scale)}")
            if not np.all(scale >= 1 / _LARGEST_SCALE):
                raise ValueError(f"{name} must be above 0 (at least 1e-30); got {float(scale.min())!r}")
            object.__setattr__(self, {"rows": "row_scale", "columns": "column_scale"}[name], locked(scale))
            largest *= float(scale.max())
        if largest > LARGEST_ENTRY:
            raise ValueError(f"base, rows and columns must have products of at most 1e+100; got up to {largest:.3g}")

    @property
    def columns(self) -> int:
        return self.base.columns

    @property
    def bands(self) -> int:
        """How many coefficients of the base there are up to the last that is not 0."""
        return self.base.bands

    def entries(self) -> np.ndarray:
        return self.row_scale[:, None] * self.base.entries() * self.column_scale

    def multiply(self, x: ArrayLike) -> np.ndarray:
        x, shape = right_side("x", x, self.columns)
        return (self.row_scale[:, None] * self.base.multiply(self.column_scale[:, None] * x)).reshape(shape)

    def solve(self, y: ArrayLike) -> np.ndarray:
        y, shape = right_side("y", y, self.rows)
        return (self.base.solve(y / self.row_scale[:, None]) / self.column_scale[:, None]).reshape(shape)

    def gram(self) -> np.ndarray:
        check_size("gram", self.columns, self.columns)
        table = self.entries()
        return table.T @ table

    def gram_diagonal(self, lag: int) -> np.ndarray:
        """Inner products of columns i and i + lag, for i = 0 .. n - 1 - lag."""
        lag = self._lag(lag)
        c, squares = self.base.coefficients[: self.bands], self.row_scale[lag:] ** 2
        if lag >= len(c):
            return np.zeros(len(squares))
        # Both columns meet row i + lag + k with the coefficients c[k] and c[k + lag].
        pairs = c[lag:] * c[: len(c) - lag]
        rows = np.convolve(squares[::-1], pairs)[: len(squares)][::-1]
        return rows * self.column_scale[: len(squares)] * self.column_scale[lag:]
