"""The grid law of one lognormal and its b-fold sum by Fourier transform [A-16]: see `lognormal_sum`.

A `plan` holds the problem in units of the strike: bins, root, shift (log X = root Z + shift),
sign g, tilt theta, the panel edges and estimates that choose windows and periods.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import fft
from .._base.log_space import EPS
from ..gaussian import LOG_SQRT_2PI

_LARGEST = 2**22  # points of the transform
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(10)
# Relative error of the quadrature of one cell, by its analyticity on an ellipse; see `Law`.
_QUADRATURE = 2e-12
# Tilts, relative to theta and beyond it, at which wrapped-around terms are bounded:
# the second kind is for a few large X_j.
_OTHER_TILTS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.6, 2.5, 5.0)
_OTHER_STEPS = (1.0, 2.0, 4.0, 8.0)


class TooLarge(Exception):
    """The grid that this bracket needs is above the limits."""


class Law:
    """One coordinate on the grid x = i / cells, tilted: masses and defects from index `first` on.

    Cells are integrated by Gauss-Legendre with 10 points on panels of z, a cell or a part of it. With r = 1/8 the
    half-width times the rate of the log-density the integrand is analytic on the Bernstein
    ellipse of rho = 8, and stays below e^0.7 times its largest value; the classical
    bound 64/15 M rho^-20 / (1 - rho^-2), with rho for each linear factor of the
    splitting, is below _QUADRATURE.
    """

    def __init__(self, plan, cells):
        self.plan, self.cells = plan, cells
        self.low, self.high = plan.window()
        z_low, z_high = plan.edges[self.low], plan.edges[self.high]
        x_of = lambda z: math.exp(min(plan.root * z + plan.shift, 1.0))
        self.first = min(math.floor(x_of(z_low) * cells), cells - 1)
        self.last = min(max(math.ceil(x_of(z_high) * cells), self.first + 1), cells)
        self.z_low = z_low if self.first == 0 else self._z(self.first)
        self.z_high = self._z(self.last)
        if self.last - self.first > _LARGEST // 16:
            raise TooLarge
        self._fill()
        total = float(self.masses.sum())
        self.log_moment = self.scale + math.log(total)
        self.masses /= total
        self.defects /= total

    def _z(self, index):
        return (np.log(index / self.cells) - self.plan.shift) / self.plan.root

    def _fill(self):
        """`masses` u_i e^{g theta x_i} and `defects` s_i e^{g theta x_i} / h, both times e^-scale."""
        plan, size = self.plan, self.last - self.first
        tilt = plan.sign * plan.theta / self.cells  # log-tilt from one grid point to the next
        cuts = self._z(np.arange(max(self.first, 1), self.last + 1, dtype=float))
        start = cuts[0] if self.first else min(self.z_low, cuts[0])
        coarse = np.linspace(start, cuts[-1], 400)
        rates = 4 * (1 + np.abs(coarse) + plan.root)
        position = np.concatenate([[0.0], np.cumsum((rates[1:] + rates[:-1]) / 2 * np.diff(coarse))])
        even = np.interp(np.linspace(0, position[-1], math.ceil(position[-1]) + 1), position, coarse)
        edges = np.unique(np.concatenate([[start], even, cuts]))
        middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        # The cell of a panel: the number of cell borders to its left.
        cell = np.searchsorted(cuts, middle) - (self.first > 0)
        index = cell[:, None] + self.first
        z = middle[:, None] + half[:, None] * _POINTS
        share = np.clip(np.exp(plan.root * z + plan.shift) * self.cells - index, 0.0, 1.0)
        logs = -z * z / 2 + np.log(half[:, None] * _WEIGHTS) + tilt * index
        self.scale = float(logs.max())
        values = np.exp(logs - self.scale)
        self.scale -= LOG_SQRT_2PI
        low, high, both = (
            np.bincount(cell, (values * part).sum(axis=1), size) for part in (1 - share, share, share * (1 - share))
        )
        step = math.exp(tilt)
        self.masses, self.defects = np.zeros(size + 1), np.zeros(size + 1)
        self.masses[:-1] += low
        self.masses[1:] += high * step
        self.defects[:-1] += both
        self.defects[1:] -= both * step
        # Rounding of z^2 / 2, log x and the tilt in the exponents, and of the quadrature.
        reach = max(abs(self.z_low), abs(self.z_high))
        logs = abs(plan.shift) + abs(math.log(max(self.first, 1) / self.cells)) + 1
        self.error = _QUADRATURE + EPS * (
            60 + 8 * reach * (reach + logs / plan.root) + 8 * logs + 8 * plan.theta * self.last / self.cells
        )

    def log_moment_at(self, theta):
        """log of a bound on E e^{g theta X} over the window (splitting only raises it)."""
        x = np.arange(self.first, self.last + 1) / self.cells
        with np.errstate(divide="ignore"):
            logs = np.log(self.masses) + (theta - self.plan.theta) * self.plan.sign * x
        top = float(logs.max())
        return self.log_moment + top + math.log(float(np.exp(logs - top).sum())) + 1e-6


class Sum:
    """The b-fold sum of a law by one Fourier transform: bounds on E(g (S - 1))_+."""

    def __init__(self, law):
        plan = law.plan
        self.law, self.plan = law, plan
        self.lead = plan.bins * law.log_moment - plan.sign * plan.theta
        period = self._period()
        self.size = fft.next_fast_len(max(math.ceil(period * law.cells), 64), real=True)
        if self.size > _LARGEST:
            raise TooLarge
        self.period = self.size / law.cells

    def _period(self):
        """Smallest of a ladder of periods whose wrapped-around terms are negligible, by estimate."""
        plan, theta = self.plan, self.plan.theta
        tilts = [theta * factor for factor in _OTHER_TILTS] + [theta + step for step in _OTHER_STEPS]
        self._moments = {t: plan.log_moment(t)[0] for t in tilts}
        target, period = plan.log_answer - plan.log_negligible, 4 / theta
        while period < 1e12 / theta:
            (below, _), (above, _) = self._aliasing(period)
            if max(below, above) < target:
                break
            period *= 1.25
        return period

    def _aliasing(self, period):
        """Below and above theta: the least Chernoff bound on the wrapped-around terms, and its tilt."""
        plan, best = self.plan, [(math.inf, None), (math.inf, None)]
        for t, log_moment in self._moments.items():
            gap = abs(t - plan.theta) * period
            value = plan.bins * log_moment - plan.sign * t - 1 - math.log(t)
            value -= gap + math.log(-math.expm1(-gap))
            side = int(t > plan.theta)
            best[side] = min(best[side], (value, t))
        return best

    def log_aliasing(self):
        """log of a bound on sum_{m != 0} e^{-m theta Lambda} E(Y + m Lambda)_+, from the law itself."""
        tilts = [t for _, t in self._aliasing(self.period)]
        self._moments = {t: self.law.log_moment_at(t) for t in tilts}
        return float(np.logaddexp(*[value for value, _ in self._aliasing(self.period)]))

    def log_bounds(self):
        """(log lower, log upper, log of their difference by the grid alone); -inf where there is no lower bound."""
        law, plan, bins = self.law, self.plan, self.plan.bins
        centre = int(round(float(np.arange(len(law.masses)) @ law.masses)))
        masses = fft.rfft(_folded(law.masses, centre, self.size))
        # Frequencies at which the powers are below e^-60 of the mass are dropped.
        threshold = math.exp(-60 / (bins - 1)) if bins > 8 else -1.0
        live = np.flatnonzero(np.abs(masses) > threshold)
        masses, defects = masses[live], fft.rfft(_folded(law.defects, centre, self.size))[live]
        power = _power(masses, bins - 1)
        payoff, digital = self._payoffs(live, bins * (centre + law.first) - law.cells)
        mean = lambda terms: float(terms.sum()) / self.size
        value, chance = mean((payoff * power * masses).real), mean((digital * power * masses).real)
        gap = bins / law.cells * plan.sign * mean((digital * power * defects).real)
        # Allowance: 8 units per stage of the transform, relative to the sum of the masses (one), in a b-th
        # power (with the defects, which are below the masses: a (b-1)-th); and the rounding of these sums.
        stage = 8 * EPS * math.log2(self.size)
        magnitude, payoff, digital = np.abs(masses) + stage, np.abs(payoff), np.abs(digital)
        below = magnitude ** (bins - 2)
        error = (bins + 1) * (stage + 8 * EPS) + 128 * EPS
        dropped = 2 * math.exp(-60)
        noise = error * mean(payoff * below * magnitude) + dropped * float(payoff[0])
        more = bins / law.cells * (error * mean(digital * below) + dropped * float(digital[0]))
        relative = math.expm1(
            bins * law.error + 16 * EPS * (8 + abs(bins * law.log_moment) + plan.theta + bins)
        )
        more += relative * bins / law.cells * (abs(chance) + error * mean(digital * below))
        upper = (max(value, 0.0) + noise) * (1 + relative)
        lower = value * (1 - relative) - noise + gap - more
        lower -= math.exp(min(self.log_aliasing() - self.lead, 700.0))
        logs = [math.log(number) if number > 0 else -math.inf for number in (lower, upper, -gap)]
        return tuple(self.lead + log for log in logs)

    def _payoffs(self, live, origin):
        """Transforms of the payoff and of its derivative at the frequencies `live`, weighted for the sum over all.

        Entry k of the circle lies at j = g (k + origin) grid steps from the strike. Over all periods
        sum_{j>=1} z^j = z / (1-z) and sum_j j z^j = z / (1-z)^2, with z = e^(-theta h - i omega).
        """
        plan, size = self.plan, self.size
        decay = plan.theta / self.law.cells
        half = math.pi * live / size  # omega / 2
        shrink = math.exp(-decay)
        one_less = -math.expm1(-decay) + 2 * shrink * np.sin(half) ** 2 + 1j * shrink * np.sin(2 * half)
        turn = 2 * math.pi / size * (live * (plan.sign * origin % size) % size)
        z = shrink * np.exp(1j * (turn - 2 * half))
        # The law enters by its characteristic function at g omega; rfft has the one at -omega.
        digital = z / one_less
        weights = np.where((live == 0) | (2 * live == size), 1.0, 2.0)
        digital *= weights
        payoff = digital / one_less / self.law.cells
        return (payoff.conj(), digital.conj()) if plan.sign > 0 else (payoff, digital)


def _folded(values, centre, size):
    """The values on a circle of `size` points, with `centre` at 0."""
    rows = -(-len(values) // size)
    circle = np.zeros(rows * size)
    circle[: len(values)] = values
    return np.roll(circle.reshape(rows, size).sum(axis=0), -centre)


def _power(values, exponent):
    """values ** exponent by repeated squaring: relative error below 4 * exponent units."""
    result = np.ones_like(values)
    while exponent:
        if exponent & 1:
            result = result * values
        exponent >>= 1
        if exponent:
            values = values * values
    return result
