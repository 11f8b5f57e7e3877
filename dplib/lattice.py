"""The lattice accountant: privacy loss distributions on a grid, from above and from below.

The loss of one round is moved to the lattice o + h Z in two ways that are valid for
every number of rounds:
  upper  chords: the mass in a cell goes to both ends so that its P-mass and its
         Q-mass are kept. The hockey-stick curve becomes its chord, which lies above.
  lower  tangents: the mass in a half-shifted cell is merged into one point (data
         processing). Its likelihood ratio misses the lattice point by a third-order
         amount, which is made good by mass from the neighbouring point; where there
         is not enough of it, the point moves down to the lattice. The curve lies below.
Both cost O(h^2) in epsilon. Cell integrals are sums of positive Gauss-Legendre
terms, never differences of tails.

Composition is a product of discrete Fourier transforms of the tilted masses
(tilt e^{cL}, so that the relevant part of the law is of order one for every delta).
The inverse sum at period Lambda is exactly sum_m e^{c m Lambda} delta(eps + m Lambda):
an upper bound as it stands; for the lower bound the terms m != 0 are subtracted,
bounded by Chernoff at other tilts.

Truncation: loss above the window counts as infinite (upper) or as the window's end
(lower); loss below counts as the window's end (upper) or is dropped (lower).
Rounding: an explicit allowance per round (`_rounding`).
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from ._scipy import fft, special
from .gaussian import LOG_SQRT_2PI
from .mixtures import EPS, log_sum_exp
from .results import Bracket, NoBracketError

_BLOCK = 2**15  # lattice points that are summed at once
_LARGEST = 2**21  # lattice points of the transform: about 100 MB at the peak
_FEW = np.polynomial.legendre.leggauss(3)
_MANY = np.polynomial.legendre.leggauss(8)


class _Step:
    """One mixture in one direction, `rounds` times: where its loss lives."""

    def __init__(self, mixture, rounds, direction, log_target):
        self.mixture, self.rounds = mixture, rounds
        self.sign = 1 if direction == "remove" else -1
        shifts, log_p = mixture.shifts, mixture.log_probabilities
        # Tails: on the high-loss side far below delta, on the other below 1e-20.
        high = min(log_target, 0.0) - math.log(rounds) - 30
        if self.sign > 0:
            self.u_high = float(np.max(shifts - special.ndtri_exp(np.minimum(high - log_p, -1e-3))))
            self.u_low = float(np.min(shifts + special.ndtri_exp(np.minimum(-50 - log_p, -1e-3))))
        else:
            self.u_low = float(special.ndtri_exp(high))
            self.u_high = float(-special.ndtri_exp(-50.0))
            if math.isfinite(mixture.log_floor):
                # The loss saturates at -log p_0; stop where nothing is left to gain.
                edge = mixture.inverse_log_ratio(
                    np.array([mixture.log_floor * (1 - 1e-12) + 1e-15])
                )[0]
                if math.isfinite(edge):
                    self.u_low = max(self.u_low, min(float(edge), -10.0))
        ends = mixture.log_ratio(np.array([self.u_low, self.u_high]))
        self.low, self.high = (ends if self.sign > 0 else -ends[::-1]).tolist()
        self.log_high_tail = self._log_tail(self.u_high if self.sign > 0 else self.u_low, True)
        self.log_low_tail = self._log_tail(self.u_low if self.sign > 0 else self.u_high, False)

    def _log_tail(self, u, high):
        """log mass of the first law beyond the window on its high- or low-loss side."""
        if self.sign < 0:
            return float(special.log_ndtr(u if high else -u))
        z = u - self.mixture.shifts
        return float(
            log_sum_exp(self.mixture.log_probabilities + special.log_ndtr(-z if high else z))
        )

    def cut_below(self, loss):
        """Drop losses that cannot matter for epsilon >= 0 (add direction)."""
        if loss > self.low:
            u = float(self.mixture.inverse_log_ratio(np.array([-loss * (1 + 1e-9)]))[0])
            if u > self.u_low:
                self.u_high = min(self.u_high, u)
                self.low = -float(self.mixture.log_ratio(np.array([self.u_high]))[0])
                self.log_low_tail = -math.inf

    def panels(self, h, offset, c):
        """Integration panels: no lattice or half-lattice loss, and no bend, inside any of them."""
        first = math.ceil((self.low - offset) / (h / 2))
        last = math.floor((self.high - offset) / (h / 2))
        losses = offset + (h / 2) * np.arange(first, last + 1)
        cuts = self.mixture.inverse_log_ratio(self.sign * losses)
        # The log of the integrand has slope at most |u| + |w| m(u): at most 2 per panel.
        coarse = np.linspace(self.u_low, self.u_high, 400)
        _, mean = self.mixture.log_ratio_and_slope(coarse)
        rate = 0.5 * (1 + np.abs(coarse) + (1 + abs(c)) * mean) + 4 * math.sqrt(
            max(self.mixture.variance_bound, 1.0)
        )
        position = np.concatenate(
            [[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(coarse))]
        )
        count = int(math.ceil(position[-1]))
        components = min(len(self.mixture.shifts), 40)
        if (count + len(cuts)) * components > 12_000_000:
            raise NoBracketError("the lattice needs too many integration panels")
        smooth = np.interp(np.linspace(0, position[-1], count + 1), position, coarse)
        cuts = cuts[(cuts > self.u_low) & (cuts < self.u_high)]
        return np.unique(np.concatenate([smooth, cuts]))

    def weighted_nodes(self, h, offset, c):
        """(loss, weight e^{c loss} * mass) at the quadrature nodes, in chunks."""
        edges = self.panels(h, offset, c)
        middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        wide = half > 0.01 / (1 + np.abs(middle) + self.mixture.shifts[-1] * (1 + abs(c)))
        for chosen, (points, weights) in ((wide, _MANY), (~wide, _FEW)):
            m, r = middle[chosen], half[chosen]
            for start in range(0, len(m), 60_000):
                part = slice(start, start + 60_000)
                u = (m[part, None] + r[part, None] * points).ravel()
                log_ratio = self.mixture.log_ratio(u)
                if self.sign > 0 and self.mixture.shifts[-1] > 100:
                    base = self.mixture.log_density(u)
                else:
                    base = -u * u / 2 - LOG_SQRT_2PI + (log_ratio if self.sign > 0 else 0.0)
                loss = self.sign * log_ratio
                yield loss, base + c * loss, (r[part, None] * weights).ravel()


class _Law:
    """Upper or lower lattice laws of one step, tilted: masses at offset + h * (first + i)."""

    def __init__(self, step, h, c, offset):
        self.step, self.h, self.c, self.offset = step, h, c, offset
        self.first = math.floor((step.low - offset) / h) - 2
        size = math.ceil((step.high - offset) / h) + 3 - self.first
        up, merged, miss = np.zeros(size), np.zeros(size), np.zeros(size)
        self.scale = -math.inf
        for loss, log_weight, width in step.weighted_nodes(h, offset, c):
            top = float(log_weight.max())
            if top > self.scale:
                factor = math.exp(max(self.scale - top, -745.0))
                for array in (up, merged, miss):
                    array *= factor
                self.scale = top
            mass = np.exp(log_weight - self.scale) * width
            position = (loss - offset) / h
            below = np.floor(position).astype(np.int64)
            t = loss - offset - below * h  # distance above the lattice point below, in [0, h]
            # Chords: P- and Q-mass kept; e^{c (lattice - loss)} keeps the tilt exact.
            share_above = -np.expm1(-t) / -math.expm1(-h)
            share_below = np.expm1(h - t) / math.expm1(h)
            up += np.bincount(below - self.first, mass * share_below * np.exp(-c * t), size)
            up += np.bincount(below + 1 - self.first, mass * share_above * np.exp(c * (h - t)), size)
            # Tangents: Q-mass of the half-shifted cell at its lattice point, and the miss.
            nearest = np.rint(position).astype(np.int64)
            s = loss - offset - nearest * h
            tilted = mass * np.exp(-c * s)
            merged += np.bincount(nearest - self.first, tilted * np.exp(-s), size)
            miss += np.bincount(nearest - self.first, tilted * -np.expm1(-s), size)
        self.upper, self._merged, self._miss = up, merged, miss
        # Beyond the window, below: the window's end (upper law), nothing (lower law).
        at = math.ceil((step.low - offset) / h)
        self._add(self.upper, at, step.log_low_tail)
        # Above: infinite (upper law), the window's end (lower law). The add loss never
        # exceeds -log p_0, so its tail goes to the lattice point above that.
        self.log_infinite = step.log_high_tail
        if step.sign < 0 and math.isfinite(step.mixture.log_floor):
            at = math.ceil((-step.mixture.log_floor * (1 + 4 * EPS) - offset) / h)
            if at - self.first < size:
                self._add(self.upper, at, step.log_high_tail)
                self.log_infinite = -math.inf

    @cached_property
    def lower(self):
        """Masses of the lower law (all zero where the grid is too coarse for one)."""
        masses = _repair(self._merged, self._miss, self.h, self.c)
        at = math.floor((self.step.high - self.offset) / self.h)
        self._add(masses, at, self.step.log_high_tail)
        return masses

    def _add(self, masses, at, log_mass):
        log_tilted = log_mass + self.c * (self.offset + at * self.h) - self.scale
        if not log_tilted < 600:
            raise NoBracketError("the lattice's window is too short for its tilt")
        masses[at - self.first] += math.exp(log_tilted)

    def losses(self):
        return self.offset + self.h * (self.first + np.arange(len(self.upper)))

    def moments(self, side, c):
        """(log moment, mean, variance) of the upper or lower law at tilt c."""
        masses = getattr(self, side)
        alive = masses > 0
        logs = np.log(masses[alive]) + (c - self.c) * self.losses()[alive]
        top = logs.max()
        weights = np.exp(logs - top)
        total = weights.sum()
        losses = self.losses()[alive]
        mean = float(weights @ losses) / total
        variance = float(weights @ (losses - mean) ** 2) / total
        return float(top + math.log(total) + self.scale), mean, variance


def _repair(merged, miss, h, c):
    """Lower masses: merged cells moved onto the lattice, then made non-negative.

    A cell whose merged point lies `miss` > 0 (in P-mass) above its lattice point
    takes mass from the point below, one with `miss` < 0 from the point above, such
    that P- and Q-mass are kept: the curve at a lattice point is then the smaller
    of the two tangents beside it, and each chord lies below its tangent. A negative
    mass means that the curve is not convex there: its vertex is removed (the mass
    goes to both neighbours, P- and Q-mass kept), which lowers the curve further.
    """
    if not merged.any() or (1 + c) * h > 300:
        return np.zeros(len(merged))
    merged, miss = _join_ends(merged, miss, h, c)
    mass = merged.copy()
    from_below, from_above = np.maximum(miss, 0.0), np.maximum(-miss, 0.0)
    mass += from_below / -math.expm1(-h) + from_above / math.expm1(h)
    mass[:-1] -= from_below[1:] * math.exp(-c * h) / math.expm1(h)
    mass[1:] -= from_above[:-1] * math.exp(c * h) / -math.expm1(-h)

    size = len(mass)
    vertices = np.flatnonzero(mass)
    before, after = np.full(size, -1), np.full(size, size)
    before[vertices[1:]], after[vertices[:-1]] = vertices[:-1], vertices[1:]
    negative = np.flatnonzero(mass < 0).tolist()
    while negative:
        i = negative.pop()
        value = float(mass[i])
        if value >= 0:
            continue
        mass[i] = 0.0
        low, high = int(before[i]), int(after[i])
        if low >= 0:
            after[low] = high
        if high < size:
            before[high] = low
        if low < 0 and high < size:
            # The first vertex: the same Q-mass is taken from the next one.
            mass[high] += value * math.exp((1 + c) * (high - i) * h)
            touched = [high]
        else:
            removed = [(i, value)]
            if high >= size:
                # The last vertex: the curve dips below zero before it. It has to end
                # at zero on the last vertex where it is still positive.
                while low >= 0:
                    curve = math.fsum(
                        v * math.exp(-c * (r - low) * h) * -math.expm1((low - r) * h)
                        for r, v in removed
                    )
                    if curve >= 0:
                        break
                    removed.append((low, float(mass[low])))
                    mass[low] = 0.0
                    low = int(before[low])
                if low < 0 or before[low] < 0:
                    return np.zeros(size)
                after[low] = size
                low, high = int(before[low]), low
            for r, v in removed:
                up, down, both = (high - r) * h, (r - low) * h, (high - low) * h
                if max(both, up, c * up) > 600:
                    return np.zeros(size)
                mass[high] += v * math.expm1(-down) / math.expm1(-both) * math.exp(c * up)
                mass[low] += v * math.expm1(up) / math.expm1(both) * math.exp(-c * down)
            touched = [low, high]
        negative += [j for j in touched if mass[j] < 0]
    return mass


def _join_ends(merged, miss, h, c):
    """Merge the lowest (highest) cells until their common point lies below (above) its lattice point.

    Below the smallest loss the true curve is the line 1 - alpha, above the largest it
    is zero. An end cell on the wrong side of its lattice point would have to leave
    these lines early, and would lose the same P-mass in every round.
    """
    merged, miss = merged.copy(), miss.copy()
    cells = np.flatnonzero(merged)
    for order, sign in ((cells, 1), (cells[::-1], -1)):
        joined = p_mass = 0.0
        last = order[0]
        for i in order[:2000]:
            step = abs(int(i) - int(last)) * h * sign
            joined = joined * math.exp((1 + c) * step) + merged[i]
            p_mass = p_mass * math.exp(c * step) + merged[i] + miss[i]
            last = i
            if sign * (p_mass - joined) <= 0:
                merged[order[0] : i : sign] = miss[order[0] : i : sign] = 0.0
                merged[i], miss[i] = joined, p_mass - joined
                break
    return merged, miss


class _Sum:
    """The composed law, upper or lower: a bound on delta at every epsilon."""

    def __init__(self, laws, side, c, period):
        self.side, self.c, self.h, self.laws = side, c, laws[0].h, laws
        self.size = size = fft.next_fast_len(max(int(math.ceil(period / self.h)), 16), real=True)
        if size > 2 * _LARGEST:
            raise NoBracketError(f"the lattice needs {size} points")
        self.period = size * self.h
        log_power, transforms = np.zeros(size // 2 + 1), []
        self.log_moment = self.origin = moment_error = 0.0
        self.log_infinite = -math.inf
        for law in laws:
            masses, rounds = getattr(law, side), law.step.rounds
            total = float(masses.sum())
            if not 0 < total < math.inf:
                raise NoBracketError("the lattice lost all of its mass")
            masses = masses / total
            self.log_moment += rounds * (law.scale + math.log(total))
            # Centred at the mean, so that the phase of a high power stays small.
            centre = int(round(float(np.arange(len(masses)) @ masses)))
            transform = fft.rfft(_wrapped(masses, centre, size), overwrite_x=True)
            with np.errstate(divide="ignore"):
                log_power += rounds * np.log(np.abs(transform))
            error = _rounding(law, size)
            transforms.append((rounds, transform, error))
            self.origin += rounds * (law.offset + self.h * (law.first + centre))
            moment_error += rounds * error
            self.log_infinite = np.logaddexp(
                self.log_infinite, law.log_infinite + math.log(rounds)
            )
        live = np.flatnonzero(log_power > -90)
        angle = sum(rounds * np.angle(t[live]) for rounds, t, _ in transforms)
        power = np.zeros(size // 2 + 1, complex)
        power[live] = np.exp(log_power[live] + 1j * angle)
        # phi^T is off by T |phi|^(T-1) times the error of phi, at every frequency.
        relative = sum(rounds * e / np.abs(t[live]) for rounds, t, e in transforms)
        spoiled = np.abs(power[live]) * np.expm1(np.minimum(relative, 30.0))
        # Error of every mass: the mean over frequencies, those left out included.
        self.mass_error = 2 * float(spoiled.sum()) / size + math.exp(-90)
        self.mass_error += 8 * EPS * math.log2(size) * 2 * float(np.abs(power).sum()) / size
        self.moment_error = moment_error + 4 * EPS * abs(self.log_moment)
        del transforms, transform, log_power, live, angle, relative, spoiled  # at a full grid 16 MB each
        self.masses = fft.irfft(power, n=size, overwrite_x=True)
        # The two exponentials of `log_bound` on its first block, all periods together.
        steps = self.h * np.arange(1, min(_BLOCK, size) + 1)
        self.decay = np.exp(-c * steps) / -math.expm1(-c * self.period)
        self.decay_twice = np.exp(-(c + 1) * steps) / -math.expm1(-(c + 1) * self.period)

    def log_bound(self, epsilon):
        """log of the bound on delta(epsilon); -inf where the lower bound is empty."""
        h, c = self.h, self.c
        n = math.floor((epsilon - self.origin) / h)
        at = self.origin + n * h
        rest = min(max(epsilon - at, 0.0), h)
        # sum_{j>=1} mass_{n+j} e^{-cjh} (1 - e^{rest - jh}), masses periodic: in blocks, where
        # both exponentials are the block's own times those of the first block.
        start, value, block = (n + 1) % self.size, 0.0, len(self.decay)
        for first, last in ((start, self.size), (0, start)):
            for low in range(first, last, block):
                masses = self.masses[low : min(low + block, last)]
                before = h * ((low - start) % self.size)
                kernel = self.decay - math.exp(rest - before) * self.decay_twice
                value += math.exp(-c * before) * float(masses @ kernel[: len(masses)])
        # All periods together are two geometric series.
        weight = (1 / math.expm1(c * h) - math.exp(rest) / math.expm1((c + 1) * h)) * (1 + 1e-6)
        slack = self.mass_error * weight + abs(value) * (
            self.moment_error + EPS * (64 + 8 * c * (abs(epsilon) + abs(self.origin)))
        )
        lead = self.log_moment - c * at
        if self.side == "upper":
            finite = lead + math.log(max(value, 0.0) + slack)
            return float(np.logaddexp(finite, self.log_infinite))
        left = value - slack - math.exp(min(self.log_aliasing(epsilon) - lead, 700.0))
        return lead + math.log(left) if left > 0 else -math.inf

    def log_aliasing(self, epsilon, period=None):
        """log of a bound on sum_{m != 0} e^{c m Lambda} delta(eps + m Lambda), by Chernoff."""
        period, c = period or self.period, self.c
        if not hasattr(self, "_others"):
            self._others = []
            for factor in (0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.6, 2.5, 5.0):
                other = c * factor
                k = sum(law.step.rounds * law.moments(self.side, other)[0] for law in self.laws)
                self._others.append((other, k))
        below, above = [-c * period - math.log(-math.expm1(-c * period))], [math.inf]
        for other, k in self._others:
            gap = abs(other - c) * period
            value = k - other * epsilon - other * math.log1p(1 / other) - math.log1p(other)
            (below if other < c else above).append(
                value - gap - math.log(-math.expm1(-gap)) if gap > 0 else math.inf
            )
        return float(np.logaddexp(min(below), min(above)))


def _wrapped(masses, centre, size):
    """The masses on a circle of `size` points, moved so that `centre` comes to 0."""
    circle = np.zeros(size)
    first, place = 0, -centre % size
    while first < len(masses):
        part = masses[first : first + size - place]
        circle[place : place + len(part)] += part
        first, place = first + len(part), 0
    return circle


def _rounding(law, size):
    """Relative rounding allowance of one round.

    Masses: a few units in the last place of the density, of c * loss, and of the
    quadrature weights. Transform: 8 units per stage, relative to the sum of the
    masses, which is one.
    """
    masses = law.upper
    exponent = float(masses @ np.abs(law.losses())) / float(masses.sum())
    reach = min(1.0, max(abs(law.step.low), abs(law.step.high)))
    return (
        EPS * (80 + 8 * math.log2(size) + 8 * law.c * exponent + 24 * law.c * reach)
        + law.step.mixture.log_probability_error
    )


# --------------------------------------------------------------- choosing the grid


class _Solver:
    """Refines the lattice until the bracket is as narrow as asked, or the grid is full."""

    def __init__(self, parts, direction, *, log_delta=None, epsilon=None):
        self.log_delta, self.epsilon = log_delta, epsilon
        target = log_delta if log_delta is not None else -60.0
        self._make_steps(parts, direction, target)
        reach = max(s.high for s in self.steps) - min(s.low for s in self.steps)
        if not 1e-290 < reach < 1e290:
            raise NoBracketError("the lattice found no spread in the losses that matter")
        self.c, h = 0.0, reach / 3000
        laws = [_Law(s, h, 0.0, self._offset(s, h)) for s in self.steps]
        self._aim_tilt(laws)
        self.finest = self._period(laws, self.c) / _LARGEST
        if log_delta is None:
            # delta is known roughly now: move the truncation well below it.
            self._make_steps(parts, direction, min(self.rough_log_delta - 20.0, 0.0))
        components = max(len(m.shifts) for m, _ in parts)
        self.cells = int(min(600_000, 5e6 / min(components, 40)))
        self.h = h

    def _make_steps(self, parts, direction, target):
        self.steps = [_Step(m, rounds, direction, target) for m, rounds in parts]
        if direction == "add" and all(math.isfinite(m.log_floor) for m, _ in parts):
            # No sum of losses can recover from a loss below minus all the others' maxima.
            total = -sum(rounds * m.log_floor for m, rounds in parts)
            for step in self.steps:
                step.cut_below(-(total + step.mixture.log_floor))

    def _offset(self, step, h):
        """Lattice offset: where nearly all mass lies in one cell, the cell's own barycentre."""
        middle = step.mixture.log_ratio(np.array([-2.0, 0.0, 2.0])) * step.sign
        if np.ptp(middle) > h / 2:
            return 0.0
        offset = 0.0
        u = np.linspace(max(step.u_low, -12.0), min(step.u_high, 12.0), 4001)
        loss = step.sign * step.mixture.log_ratio(u)
        base = np.exp(-u * u / 2 + (loss if step.sign > 0 else 0.0))
        for _ in range(3):
            inside = base * (np.abs(loss - offset) < h / 2)
            if inside.sum() < 0.5 * base.sum():
                return 0.0
            offset = -math.log1p(float(inside @ np.expm1(-loss)) / float(inside.sum()))
        return offset

    def _aim_tilt(self, laws):
        """Saddle of the upper law: tilt, spread, and a rough epsilon or log delta."""

        def moments(c):
            parts = [(law.step.rounds, *law.moments("upper", c)) for law in laws]
            return [sum(p[0] * p[i] for p in parts) for i in (1, 2, 3)]

        low, high, c = 0.0, math.inf, self.c or 1.0
        for _ in range(100):
            k, mean, variance = moments(c)
            if self.epsilon is None:
                value = c * mean - k + self.log_delta + math.log1p(c)
                slope = c * variance + 1 / (1 + c)
            else:
                value = mean - self.epsilon - math.log1p(1 / c)
                slope = variance + 1 / (c * (1 + c))
            low, high = (c, high) if value < 0 else (low, c)
            new = c - value / slope
            if not low < new < high:
                new = 4 * c if math.isinf(high) else math.sqrt(low * high) if low else c / 8
            new = min(max(new, c / 16), 8 * c)
            if abs(new - c) < 1e-3 * c or not 1e-12 < new < 1e12:
                break
            c = new
        k, mean, variance = moments(c)
        self.spread = math.sqrt(max(variance, 1e-300))
        self.c = c = max(c, 0.7 / self.spread)
        k, mean, variance = moments(c)
        kernel = -c * math.log1p(1 / c) - math.log1p(c)
        if self.epsilon is None:
            self.rough_epsilon = (k - self.log_delta + kernel) / c
        else:
            self.rough_epsilon = self.epsilon
            self.rough_log_delta = min(k - c * self.epsilon + kernel, 0.0)

    def brackets(self, aim):
        """Yield (upper sum, lower sum, may be refined): finer and finer until the cap."""
        rounds = sum(s.rounds for s in self.steps)
        reach = max(s.high for s in self.steps) - min(s.low for s in self.steps)
        size = max(abs(self.rough_epsilon), 0.1 * self.spread)
        wanted = math.sqrt(8 * aim * size / ((1 + self.c) * rounds)) if self.epsilon is None else (
            math.sqrt(8 * aim / (self.c * (1 + self.c) * rounds))
        )
        # The lower law needs cells well inside the bulk of the loss, or the bulk in one cell.
        bulk = min(
            float(np.ptp(s.mixture.log_ratio(np.array([-1.0, 1.0])))) for s in self.steps
        )
        self.finest = max(self.finest, reach / self.cells)
        self.h = max(min(self.h, max(min(wanted, 0.2 * bulk), 4 * reach / self.cells)), self.finest)
        for passes in range(6):
            try:
                laws = [_Law(s, self.h, self.c, self._offset(s, self.h)) for s in self.steps]
                if len(laws[0].upper) < 30_000:
                    self._aim_tilt(laws)
                upper = _Sum(laws, "upper", laws[0].c, self._period(laws, laws[0].c))
                empty = any(not law.lower.any() for law in laws)
                lower = None if empty else _Sum(laws, "lower", laws[0].c, upper.period)
            except NoBracketError:
                if passes:
                    return  # the coarser grid's answer stands
                raise
            self.finest = max(reach / self.cells, upper.period / _LARGEST)
            last = self.h <= 1.001 * self.finest
            yield upper, lower
            if last:
                return

    def refine(self, ratio):
        """Choose the next step: the width falls like h^2; `ratio` = width / aim."""
        self.h = max(self.finest, self.h * min(0.5, 0.8 / math.sqrt(ratio)))

    def _period(self, laws, c):
        """A period whose aliases are negligible, as short as possible."""
        probe = _Sum.__new__(_Sum)
        probe.side, probe.c, probe.h, probe.laws = "upper", c, laws[0].h, laws
        k = sum(law.step.rounds * law.moments("upper", c)[0] for law in laws)
        lead = k - probe.c * self.rough_epsilon - math.log(
            max(self.spread * probe.c * (1 + probe.c), 1e-6)
        )
        best = None
        for multiple in (8, 10, 12, 15, 20, 30, 45, 70, 100, 150, 250, 500, 1000, 3000, 10000):
            period = multiple * self.spread
            value = probe.log_aliasing(self.rough_epsilon, period)
            if best is None or value < best[0] - 0.5:
                best = value, period
            if value < lead - 32:
                break
        return best[1]


def side_log_delta(composition, epsilon, direction, relative_width=1e-7) -> Bracket:
    """Bracket of log delta(epsilon) in one direction; composition of non-trivial pairs.

    relative_width : the relative width of delta aimed at. Raises NoBracketError
    where no finite lower bound comes out.
    """
    solver = _Solver(composition, direction, epsilon=epsilon)
    best = None
    for upper, lower in solver.brackets(relative_width):
        least = lower.log_bound(epsilon) if lower else -math.inf
        ends = least, min(upper.log_bound(epsilon), 0.0)
        if ends[0] > ends[1]:
            raise AssertionError("lattice bounds crossed: please report this input")
        if math.isfinite(ends[0]) and (best is None or ends[1] - ends[0] < best.width):
            best = Bracket(*ends, "lattice")
        width = ends[1] - ends[0]
        if width <= relative_width:
            break
        solver.refine(width / relative_width if math.isfinite(width) else 1e6)
    if best is None:
        raise NoBracketError("the lattice found no lower bound on delta")
    return best


def side_epsilon(composition, delta, direction, relative_width=1e-7) -> Bracket:
    """Bracket of the smallest epsilon >= 0 with delta(epsilon) <= delta, in one direction.

    relative_width : the relative width of epsilon aimed at.
    """
    log_delta = math.log(delta)
    solver = _Solver(composition, direction, log_delta=log_delta)
    best = None
    for upper, lower in solver.brackets(relative_width):
        high = _crossing(upper.log_bound, log_delta, solver, +1, relative_width)
        low = _crossing(lower.log_bound, log_delta, solver, -1, relative_width) if lower else 0.0
        if low > high:
            raise AssertionError("lattice bounds crossed: please report this input")
        if math.isfinite(high) and (best is None or high - low < best.width):
            best = Bracket(low, high, "lattice")
        width = (high - low) / high if high > 0 else 0.0
        if width <= relative_width:
            break
        solver.refine(width / relative_width if math.isfinite(width) else 1e6)
    if best is None:
        raise NoBracketError("the lattice found no upper bound on epsilon")
    return best


def _crossing(log_bound, log_delta, solver, side, relative_width):
    """Certified end: side +1, some eps >= 0 with bound <= delta; side -1, bound >= delta.

    The search starts at the Chernoff value: far from it the tilt is wrong and the
    bound says nothing.
    """
    gap = lambda eps: log_bound(eps) - log_delta
    x = max(solver.rough_epsilon, 0.0)
    value, step = gap(x), 2 / solver.c
    if value > 0:
        low, low_gap, high, high_gap = x, value, math.inf, -math.inf
        for _ in range(60):
            x += step
            value, step = gap(x), 2 * step
            if value <= 0:
                high, high_gap = x, value
                break
            low, low_gap = x, value
        else:
            return math.inf if side > 0 else low
    else:
        high, high_gap = x, value
        while True:
            if high == 0.0:
                return 0.0
            x = max(x - step, 0.0)
            value, step = gap(x), 2 * step
            if value > 0:
                low, low_gap = x, value
                break
            high, high_gap = x, value
    for _ in range(80):
        if high - low <= 0.02 * relative_width * high:
            break
        if math.isfinite(high_gap) and math.isfinite(low_gap):
            x = low + (high - low) * low_gap / (low_gap - high_gap)
            # Aim just past the secant's point, so that both ends close in.
            nudge = 0.008 * relative_width * high
            x += nudge if x - low < high - x else -nudge
            x = min(max(x, low + 1e-3 * (high - low)), high - 1e-3 * (high - low))
        else:
            x = (low + high) / 2
        value = gap(x)
        if value > 0:
            low, low_gap = x, value
        else:
            high, high_gap = x, value
    return high if side > 0 else low
