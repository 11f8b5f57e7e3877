"""Buffered linear Toeplitz encoders with one weight below 0, as a family for the optimiser [N-BLT].

With weights above 0 the coefficients fall like a mixture of exponentials. Where amplification is weak the best
coefficients end within an epoch. Three buffers follow that better when the middle one counts with a minus:

    A p^2k - 2 r sqrt(A B) (p q)^k + B q^2k >= (1 - r) (A p^2k + B q^2k),     0 < r < 1,

so that no coefficient is below 0, at any lag. The other buffers keep weights above 0. The parameters are badly
scaled when the decays are close to each other: this family starts from a least-squares fit to the best coefficients
without a formula, and measures its steps by what they change in the coefficients.
"""

from __future__ import annotations

import math

import numpy as np

from . import matrices
from ._scipy import optimize as scipy_optimize
from ._scipy import special

FEWEST = 3  # buffers
_SHORT = -1.0  # logit of 1 - decay: decays of at most 0.73
_FLAT = 1e-9  # directions that change less, relative, are not followed further
_STEP = 0.1  # of the coefficients, weighted, for a step of length 1
_MOST = 1 - 1e-9  # of r
# Of logs of weights, the two large ones, logit of r, logits of 1 - decay. Larger weights of the three, with decays
# still closer to each other, gain next to nothing and lose digits.
_PLAIN, _LARGE, _SHARE, _GAP = (-20.0, 2.0), (-20.0, 5.0), (-10.0, 14.0), (-14.0, 5.0)


class Signed:
    """Logs of the weights above 0, logits of r and of 1 - decay, in the coordinates of `rescale`."""

    bounds = None

    def __init__(self, n, buffers, target, short=False):
        """target : the coefficients to start from, shape (n,), the first 1. short : start with plain buffers of few rounds."""
        self.n, self.plain, self.powers = n, buffers - 3, np.arange(n - 1.0)
        # A change of coefficient k matters like its square times sqrt(k), about.
        self.weights = np.sqrt(np.arange(1.0, n))
        self.start = np.zeros(2 * buffers - 1)
        limits = [_PLAIN] * self.plain + [_LARGE] * 2 + [_SHARE] + [_GAP] * (buffers - 1)
        self.lowest, self.highest = np.transpose(limits)
        self.origin, self.turn = self._fitted(target, short), np.eye(len(self.start))

    def table(self, x):
        return self._table(self._inside(x))

    def pull(self, x, slope):
        raw = self._inside(x)
        free = (raw > self.lowest) & (raw < self.highest)
        return self.turn.T @ (free * (self._jacobian(raw) @ slope[1:]))

    def encoder(self, x):
        return matrices.buffered_linear_toeplitz(self.n, *self._parts(self._inside(x)))

    def rescale(self, x):
        """Coordinates in which equal steps from x change the coefficients alike; x becomes the start, 0."""
        self.origin = self._inside(x)
        changes = self._jacobian(self.origin) * self.weights
        size = np.sqrt(np.einsum("ij,ij->i", changes, changes)) + 1e-300
        values, vectors = np.linalg.eigh((changes @ changes.T) / size / size[:, None])
        self.turn = _STEP * vectors / np.sqrt(np.maximum(values, _FLAT)) / size[:, None]

    def _inside(self, x):
        return np.clip(self.origin + self.turn @ x, self.lowest, self.highest)

    def _parts(self, raw):
        """(output scales, decays): the plain buffers, then the first, the last and the middle one of the three."""
        sizes = np.exp(raw[: self.plain + 2])
        share = _MOST * special.expit(raw[self.plain + 2])
        decay = special.expit(-raw[self.plain + 3 :])
        middle = -2 * share * math.sqrt(sizes[-1] * sizes[-2])
        return np.append(sizes, middle), np.append(decay, math.sqrt(decay[-1] * decay[-2]))

    def _table(self, raw):
        scale, decay = self._parts(raw)
        return np.append(1.0, scale @ decay[:, None] ** self.powers)

    def _jacobian(self, raw):
        """Derivatives of coefficients 1 .. n - 1, shape (2 buffers - 1, n - 1)."""
        scale, decay = self._parts(raw)
        terms = scale[:, None] * decay[:, None] ** self.powers
        by_size, middle = terms[:-1].copy(), terms[-1]
        by_size[-2:] += middle / 2
        by_share = middle * special.expit(-raw[self.plain + 2])
        # d decay^k / d logit(1 - decay) = -k decay^k (1 - decay); the middle decay has half of each exponent.
        by_decay = terms[:-1].copy()
        by_decay[-2:] += middle / 2
        by_decay *= (decay[:-1] - 1)[:, None] * self.powers
        return np.concatenate([by_size, by_share[None], by_decay])

    def _fitted(self, target, short):
        """Least squares from a few guesses of the decays."""
        last = max(int(np.flatnonzero(target > 1e-3 * target.max())[-1]), 8)

        def miss(raw):
            return (self._table(raw) - target)[1:] * self.weights

        def bend(raw):
            return (self._jacobian(raw) * self.weights).T

        lowest = self.lowest.copy()
        if short:
            lowest[self.plain + 3 : 2 * self.plain + 3] = _SHORT
        fits = []
        for middle in (0.16, 0.24):
            near = last * middle * np.array([0.9, 1.1])
            lags = np.append(np.geomspace(1.5, 1 + near[0], self.plain + 1)[:-1], near)
            # About as large as optimal counting at these lags; the two that nearly cancel are larger.
            sizes = np.append(0.3 / np.sqrt(lags[:-2] * (self.plain + 1)), [5.0, 5.0])
            raw = np.concatenate([np.log(sizes), [5.0], -np.log(lags - 1)])
            limits = lowest, self.highest
            raw = np.clip(raw, lowest + 1e-6, self.highest - 1e-6)
            fits.append(
                scipy_optimize.least_squares(miss, raw, jac=bend, bounds=limits, x_scale="jac", max_nfev=100)
            )
        return min(fits, key=lambda fit: fit.cost).x
