"""Buffered linear Toeplitz encoders with weights below 0 or complex, as families for the optimiser [N-BLT].

With weights above 0 the coefficients fall like a mixture of exponentials. Where amplification is weak the best
coefficients end within an epoch. Three buffers follow that better in one of two forms, both never below 0, at any lag:

    Dipped    A p^2k - 2 r sqrt(A B) (p q)^k + B q^2k >= (1 - r) (A p^2k + B q^2k)
    Waved     A p^k (1 + r cos(w k + f)) >= (1 - r) A p^k, a real buffer and a conjugate pair,     0 < r < 1.

The other buffers keep weights above 0. The parameters are badly scaled when the decays are close to each other, or the
wave slow: these families start from a least-squares fit to the best coefficients without a formula, and measure their
steps by what they change in the coefficients.
"""

from __future__ import annotations

import math

import numpy as np

from .. import matrices
from .._base.lazy_scipy import optimize as scipy_optimize
from .._base.lazy_scipy import special

FEWEST = 3  # buffers
_SHORT = -1.0  # logit of 1 - decay: decays of at most 0.73
_FLAT = 1e-9  # directions that change less, relative, are not followed further
_STEP = 0.1  # of the coefficients, weighted, for a step of length 1
_MOST = 1 - 1e-9  # of r
# Of logs of weights, the two large ones, logit of r, logits of 1 - decay. Larger weights of the three, with decays
# still closer to each other, gain next to nothing and lose digits.
_PLAIN, _LARGE, _SHARE, _GAP = (-20.0, 2.0), (-20.0, 5.0), (-10.0, 14.0), (-14.0, 5.0)
_PHASE, _FREQUENCY = (-20.0, 20.0), (-15.0, 1.1)  # the second a logarithm


class _Fitted:
    """Parameters in the coordinates of `rescale`; the start is fitted to given coefficients."""

    bounds = None

    def __init__(self, n, buffers, target, short=False):
        """target : the coefficients to start from, shape (n,), the first 1. short : start with plain buffers of few rounds."""
        self.n, self.plain, self.powers = n, buffers - 3, np.arange(n - 1.0)
        # A change of coefficient k matters like its square times sqrt(k), about.
        self.weights = np.sqrt(np.arange(1.0, n))
        self.lowest, self.highest = np.transpose(self._limits())
        self.start = np.zeros(len(self.lowest))
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

    def _table(self, raw):
        scale, decay = self._parts(raw)
        column = (scale @ decay[:, None] ** self.powers).real
        return np.append(1.0, np.maximum(column, 0.0))  # differences of the smallest floats may fall below 0

    def _fitted(self, target, short):
        """Least squares from a few guesses."""
        last = max(int(np.flatnonzero(target > 1e-3 * target.max())[-1]), 8)

        def miss(raw):
            return (self._table(raw) - target)[1:] * self.weights

        def bend(raw):
            return (self._jacobian(raw) * self.weights).T

        lowest = self.lowest.copy()
        if short:
            gaps = slice(len(lowest) - self._gaps(), len(lowest) - self._gaps() + self.plain)
            lowest[gaps] = _SHORT
        limits, fits = (lowest, self.highest), []
        for raw in self._guesses(last):
            raw = np.clip(raw, lowest + 1e-6, self.highest - 1e-6)
            fits.append(
                scipy_optimize.least_squares(miss, raw, jac=bend, bounds=limits, x_scale="jac", max_nfev=100)
            )
        return min(fits, key=lambda fit: fit.cost).x

    def _plain_guess(self, lags):
        """Logs of weights about as large as optimal counting at these lags."""
        return np.log(0.3 / np.sqrt(lags * (self.plain + 1)))


class Dipped(_Fitted):
    """Logs of the weights above 0, logits of r and of 1 - decay."""

    def _limits(self):
        return [_PLAIN] * self.plain + [_LARGE] * 2 + [_SHARE] + [_GAP] * self._gaps()

    def _gaps(self):
        return self.plain + 2

    def _parts(self, raw):
        """(output scales, decays): the plain buffers, then the first, the last and the middle one of the three."""
        sizes = np.exp(raw[: self.plain + 2])
        share = _MOST * special.expit(raw[self.plain + 2])
        decay = special.expit(-raw[self.plain + 3 :])
        middle = -2 * share * math.sqrt(sizes[-1] * sizes[-2])
        return np.append(sizes, middle), np.append(decay, math.sqrt(decay[-1] * decay[-2]))

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

    def _guesses(self, last):
        for middle in (0.16, 0.24):
            near = last * middle * np.array([0.9, 1.1])
            lags = np.append(np.geomspace(1.5, 1 + near[0], self.plain + 1)[:-1], near)
            # The two that nearly cancel are larger.
            yield np.concatenate([self._plain_guess(lags[:-2]), [5.0, 5.0], [5.0], -np.log(lags - 1)])


class Waved(_Fitted):
    """Logs of the weights above 0, logit of r, f, log of w, logits of 1 - decay."""

    def _limits(self):
        return [_PLAIN] * (self.plain + 1) + [_SHARE, _PHASE, _FREQUENCY] + [_GAP] * self._gaps()

    def _gaps(self):
        return self.plain + 1

    def _parts(self, raw):
        """(output scales, decays), complex: the plain buffers, then the three."""
        sizes, decay, share, phase, frequency = self._read(raw)
        wave = sizes[-1] * share / 2 * np.exp(1j * phase)
        turn = decay[-1] * np.exp(1j * frequency)
        return np.append(sizes, [wave, wave.conjugate()]), np.append(decay, [turn, turn.conjugate()])

    def _read(self, raw):
        share, phase, frequency = raw[self.plain + 1 : self.plain + 4]
        sizes, decay = np.exp(raw[: self.plain + 1]), special.expit(-raw[self.plain + 4 :])
        return sizes, decay, _MOST * special.expit(share), phase, math.exp(frequency)

    def _jacobian(self, raw):
        """Derivatives of coefficients 1 .. n - 1, shape (2 buffers - 2, n - 1) for more than 3 buffers."""
        sizes, decay, share, phase, frequency = self._read(raw)
        terms = sizes[:, None] * decay[:, None] ** self.powers
        wave = share * terms[-1] * np.exp(1j * (frequency * self.powers + phase))
        terms[-1] += wave.real
        by_share = wave.real * special.expit(-raw[self.plain + 1])
        by_decay = terms * (decay - 1)[:, None] * self.powers
        by_frequency = -wave.imag * frequency * self.powers
        return np.concatenate([terms, [by_share, -wave.imag, by_frequency], by_decay])

    def _guesses(self, last):
        """The wave touches 0 early, and again where the coefficients end."""
        for middle in (0.3, 0.5):
            for period in (0.9, 1.2):
                lags = np.geomspace(1.5, 1 + last * middle, self.plain + 1)
                yield np.concatenate([
                    self._plain_guess(lags), [3.0, math.pi + 0.5, math.log(2 * math.pi / (period * last))], -np.log(lags - 1)
                ])  # fmt: skip
