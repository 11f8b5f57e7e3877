"""Laws of row sensitivities on a grid: sums of independent jumps, rounded so that they dominate.

A row of a matrix mechanism has sensitivity X = sum_e v_e N_e with independent numbers
N_e of participations (Bernoulli, binomial or Poisson) at entries v_e. `RowLaws`
adds one entry after another, for many rows at once, on the grid 0, h, 2h, ..., M h.

Between two grid points an atom is split, not rounded up [A-10]: with probability

    share = (1 - e^{-kappa (c - a)}) / (1 - e^{-kappa (b - a)}),   kappa = (T + b / sigma) / sigma

the atom c in [a, b] goes to b, else to a. After N(0, sigma^2) noise the result is
stochastically at least as large at every threshold t >= -T sigma, and elsewhere falls short by
at most Phi(-T). The inflation of the mean is of order h^2 / sigma instead of h.

Direction: every mass that is not on the grid (beyond its top, or a number of participations
beyond the last one kept) is collected in `overflow`, and the shortfalls in `shortfall`; both are
probabilities that the caller must add to delta (remove) or e^epsilon times that (add).
All sums have non-negative terms: relative rounding errors only.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import EPS
from ..mixtures import Mixture


class RowLaws:
    """Laws of `rows` sums on the grid step * (0 .. size), all starting as the number 0.

    `threshold` is T above, in units of the noise multiplier.
    """

    def __init__(self, rows, step, size, noise_multiplier, threshold):
        self.step, self.size = float(step), int(size)
        self.noise, self.threshold = float(noise_multiplier), float(threshold)
        self.weights = np.zeros((rows, size + 1))
        self.weights[:, 0] = 1.0
        self.overflow = np.zeros(rows)
        self.shortfall = np.zeros(rows)
        self._operations = 0

    def add(self, value, numbers, beyond=0.0, first=0, last=None):
        """Add `value` times an independent number to the rows first .. last - 1.

        numbers : shape (k + 1,) or (rows, k + 1), probabilities of the numbers 0 .. k.
        beyond : probability of more than k. value : a number, or one for each row.
        """
        part = slice(first, last)
        old = self.weights[part]
        numbers = np.broadcast_to(numbers, (len(old), np.shape(numbers)[-1]))
        lost = old.sum(axis=1) * beyond
        new = old * numbers[:, :1]
        split = np.zeros(len(old))
        for number in range(1, numbers.shape[1]):
            mass = numbers[:, number]
            if not np.any(mass > 0):
                continue
            low, share = self._place(number * np.asarray(value, float))
            split += mass * (share > 0)
            lost += self._shift(new, old, mass * (1 - share), low)
            if np.any(share > 0):
                lost += self._shift(new, old, mass * share, low + 1)
        self.shortfall[part] += split * special.ndtr(-self.threshold)
        self.overflow[part] += lost
        self.weights[part] = new
        self._operations += 3 * numbers.shape[1]

    def _place(self, position):
        """(index of the grid point below, share that goes to the next one) of a position."""
        index = np.floor(position / self.step * (1 + 2 * EPS))
        low = index * self.step
        kappa = (self.threshold + (low + self.step) / self.noise) / self.noise
        # A position that is on the grid up to rounding stays there.
        offset = np.where(position - low > 8 * EPS * position, position - low, 0.0)
        share = np.minimum(np.expm1(-kappa * offset) / np.expm1(-kappa * self.step), 1.0)
        return np.minimum(index, self.size + 1).astype(int), share

    def _shift(self, new, old, mass, shift):
        """new[:, k + shift] += mass * old[:, k] on the grid; returns the mass that went beyond its top."""
        if np.ndim(shift) == 0:
            shift = min(int(shift), self.size + 1)
            kept = self.size + 1 - shift
            new[:, shift:] += mass[:, None] * old[:, :kept]
            return mass * old[:, kept:].sum(axis=1)
        shift = np.minimum(shift, self.size + 1)
        source = np.arange(self.size + 1) - shift[:, None]
        moved = np.take_along_axis(old, np.maximum(source, 0), axis=1)
        new += np.where(source >= 0, mass[:, None] * moved, 0.0)
        above = np.cumsum(old[:, ::-1], axis=1)  # above[:, m]: mass of the last m + 1 points
        pushed = np.take_along_axis(above, np.maximum(shift - 1, 0)[:, None], axis=1)[:, 0]
        return np.where(shift > 0, mass * pushed, 0.0)

    def mixtures(self):
        """The laws as mixture pairs, conditioned on staying on the grid (what left it is `overflow`)."""
        # `_place` moves a position down by at most 10 EPS of itself, which is made good here.
        grid = self.step * np.arange(self.size + 1) * (1 + 16 * EPS)
        error = 4 * EPS * (self._operations + 4)
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        return [Mixture._from_logs(self.noise, grid, row, error) for row in logs]


def threshold_for(slack):
    """The T with Phi(-T) = slack."""
    return float(-special.ndtri_exp(math.log(slack)))


def poisson_numbers(intensity, negligible):
    """(probabilities of 0 .. k of Poisson(intensity), shape (rows, k + 1); that of more, at most `negligible`)."""
    intensity = np.atleast_1d(np.asarray(intensity, float))
    top = intensity.max(initial=0.0)
    count = 1
    while special.pdtrc(count, top) > negligible:
        count += 1 + count // 4
    beyond = special.pdtrc(count, intensity) * (1 + 1e-9)
    with np.errstate(divide="ignore"):
        return _from_ratios(np.log(intensity[:, None] / np.arange(1, count + 1)), beyond), beyond


def bernoulli_numbers(probability):
    """Probabilities of 0 and 1, shape (rows, 2)."""
    probability = np.atleast_1d(np.asarray(probability, float))
    return np.stack([1 - probability, probability], axis=1)


def binomial_numbers(trials, probability, negligible):
    """(probabilities of 0 .. k of Binomial(trials, probability), shape (1, k + 1); probability of more).

    The latter is at most `negligible`.
    """
    if trials == 1 or probability == 1:
        numbers = np.zeros((1, trials + 1))
        numbers[0, -1] = probability
        numbers[0, 0] += 1 - probability
        return numbers, 0.0
    count = 1
    while count < trials and special.bdtrc(count, trials, probability) > negligible:
        count = min(count + 1 + count // 4, trials)
    k = np.arange(1, count + 1)
    beyond = special.bdtrc(count, trials, probability) * (1 + 1e-9)
    ratios = np.log((trials - k + 1) / k) + math.log(probability / (1 - probability))
    return _from_ratios(ratios[None], np.array([beyond])), beyond


def _from_ratios(log_ratios, beyond):
    """Probabilities with these logs of successive ratios, from 0 on, that sum to 1 - beyond."""
    logs = np.cumsum(np.column_stack([np.zeros(len(log_ratios)), log_ratios]), axis=1)
    numbers = np.exp(logs - logs.max(axis=1, keepdims=True))
    return numbers * ((1 - beyond) / numbers.sum(axis=1))[:, None]
