"""Composition on the lattice: a bound on delta from the transform of the tilted masses.

With N points of distance h the masses of the composed law are mass_i = (1/N) sum_k
phi_k e^{2 pi i ik/N}, phi the product of the rounds' transforms, and the bound on delta
at eps = origin + n h + r, 0 <= r <= h, is

    sum_{j>=1} mass_{n+j} (e^{-cjh} - e^{r-(c+1)jh}),   masses continued with period N.

Frequencies with |phi| < e^-90 are left out; where few are left the sum over j is done
in closed form for each of them, else it is done on the masses. On a long lattice the
transform of all N frequencies is not even computed: those beyond a low band are
bounded by a transform of _FOLD points, by |f(y)| <= max at the ends + length^2/8 max|f''|
for f = |phi|^2 of one round, whose second derivative is at most twice the variance.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import fft
from .._base.log_space import EPS, complex_log1p
from ..results import NoBracketError
from .chernoff import log_kernel

MOST_POINTS = 1_800_000  # of a transform that is computed in full: about 70 MB
_FOLD = 2**17  # points of the transform that bounds the high frequencies of a longer lattice
_BAND = 4096  # frequencies computed one by one
_SERIES = 20_000  # frequencies that are summed in closed form
_BLOCK = 2**15  # lattice points summed at once
_LEAST = 650.0  # minus the log of a factor that counts for nothing
_DEAD = -90.0  # log of what a product of transforms may be to be left out
# Tilts, relative to the law's own, at which aliases are bounded. A law of rare large losses explodes within a per cent.
_ABOVE, _BELOW = (1.005, 1.01, 1.02, 1.05, 1.1, 1.25, 1.6, 2.5, 5.0), (0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)
_LARGEST_TILT = 240.0  # of the bound on what is left out, over the tilt of the sum
_DIGIT = 64  # length of the sums of `_low_band`


class TooLong(NoBracketError):
    """The lattice has more points than a transform may have, and no low band carries it."""


class Sum:
    """The composed law, upper or lower: a bound on delta at every epsilon.

    laws : one Law per mixture, with one step and one tilt. side : "upper" or "lower".
    period : least length of the lattice, of at most `points` points. rough_moment : function of a tilt, about the log
    moment of the summed loss (it ranks the tilts of the aliasing bound). split : a loss, or None. Runs of which no round
    loses more are then left out of the sums: their delta is bounded by Chernoff above, and by 0 below.
    """

    def __init__(self, laws, side, period, rough_moment, split=None, points=MOST_POINTS):
        self.side, self.c, self.h, self.laws, self.split = side, laws[0].c, laws[0].h, laws, split
        self.size = fft.next_fast_len(max(int(math.ceil(period / self.h)), 16), real=True)
        self.period = self.size * self.h
        self.rough_moment, self._certified, self._left_out = rough_moment, {}, []
        self.log_moment = self.origin = self.moment_error = 0.0
        self.log_infinite = -math.inf
        rows = []
        for law in laws:
            masses, rounds = getattr(law, side), law.step.rounds
            total = float(masses.sum())
            if not 0 < total < math.inf:
                raise NoBracketError("the lattice lost all of its mass")
            masses = masses / total
            self.log_moment += rounds * (law.scale + math.log(total))
            # Centred at the mean, so that the phase of a high power stays small.
            centre = int(round(float(np.arange(len(masses)) @ masses)))
            error = rounding(law, self.size)
            rows.append((masses, centre, rounds, error))
            self.origin += rounds * (law.offset + self.h * (law.first + centre))
            self.moment_error += rounds * error
            self.log_infinite = np.logaddexp(self.log_infinite, law.log_infinite + math.log(rounds))
        self.moment_error += 4 * EPS * abs(self.log_moment)
        if split is None:
            frequencies, power, self.mass_error = _spectrum(rows, self.size, points)
        else:
            cuts = [law.index_above(split) for law in laws]
            frequencies, power, self.mass_error = _split_spectrum(rows, cuts, self.size, points)
        self.mass_error += 8 * EPS * math.log2(self.size) * 2 * float(np.abs(power).sum()) / self.size
        del rows
        kind = _Series if len(frequencies) <= _SERIES else _Masses
        self.values = kind(frequencies, power, self.size, self.c, self.h)

    def log_bound(self, epsilon):
        """log of the bound on delta(epsilon); -inf where the lower bound is empty."""
        h, c = self.h, self.c
        n = math.floor((epsilon - self.origin) / h)
        at = self.origin + n * h
        rest = min(max(epsilon - at, 0.0), h)
        value = self.values.at(n, rest)
        # All periods together are two geometric series.
        weight = (1 / math.expm1(c * h) - math.exp(rest) / math.expm1((c + 1) * h)) * (1 + 1e-6)
        slack = self.mass_error * weight + abs(value) * (
            self.moment_error + EPS * (64 + 8 * c * (abs(epsilon) + abs(self.origin)))
        )
        lead = self.log_moment - c * at
        if self.side == "upper":
            finite = lead + math.log(max(value, 0.0) + slack)
            if self.split is not None:
                finite = np.logaddexp(finite, self._log_left_out(epsilon))
            return float(np.logaddexp(finite, self.log_infinite))
        left = value - slack - math.exp(min(self._log_aliasing(epsilon) - lead, 700.0))
        return lead + math.log(left) if left > 0 else -math.inf

    def _log_left_out(self, epsilon):
        """log of a bound on delta of the runs that are left out, by Chernoff at a tilt that bounds it well."""
        most = sum(law.step.rounds * law.loss_below(self.split) for law in self.laws)
        if most <= epsilon:
            return -math.inf
        if not self._left_out:
            for tilt in self.c * np.geomspace(1, _LARGEST_TILT, 24):
                self._left_out.append((float(tilt), self._log_moments(float(tilt))[1]))
        bounds = [
            moment + self.moment_error + 8 * EPS * (abs(moment) + tilt * epsilon) - tilt * epsilon + log_kernel(tilt)
            for tilt, moment in self._left_out
        ]
        return min(bounds)

    def _log_moments(self, tilt):
        """(log of the moment of what is summed, of what is left out or -inf) at another tilt, all rounds together."""
        if self.split is None:
            return sum(law.step.rounds * law.log_moment(self.side, tilt) for law in self.laws), -math.inf
        base = growth = 0.0
        for law in self.laws:
            bulk, tail = law.log_moments(self.side, tilt, self.split)
            base += law.step.rounds * bulk
            growth += law.step.rounds * float(np.logaddexp(0.0, tail - bulk))
        return base + growth + math.log(max(-math.expm1(-growth), 1e-300)), base

    def _log_aliasing(self, epsilon):
        """log of a bound on sum_{m != 0} e^{c m Lambda} delta(eps + m Lambda), by Chernoff."""
        ends = []
        for side in (1, -1):
            _, tilt = best_alias(self.rough_moment, self.c, epsilon, self.period, side)
            if tilt is not None and tilt not in self._certified:
                self._certified[tilt] = self._log_moments(tilt)[0]
            exact = lambda tilt: self._certified[tilt]
            ends.append(best_alias(exact, self.c, epsilon, self.period, side, [tilt])[0])
        return float(np.logaddexp(*ends))


def _spectrum(rows, size, points):
    """(frequencies, product of the transforms at them, error of every mass) where it matters.

    rows : list of (masses, their centre, rounds, error). points : most that are transformed in full.
    """
    half = size // 2 + 1
    count = _band_width(rows, size) if size > _FOLD else half
    band = size > _FOLD and count <= _BAND
    if size > points and not band:
        raise TooLong(f"the lattice needs {size} points")
    count = count if band else half
    frequencies = np.arange(count, dtype=np.int32)
    # A computed modulus m is off by e at most, its power by (m + e)^T - m^T; excess = T log(1 + e / m).
    log_power, angle, excess = np.zeros((3, count))
    left_out = 0.0
    for masses, centre, rounds, error in rows:
        if band:
            transform = _low_band(masses, centre, size, frequencies)
        else:
            transform = fft.rfft(_wrapped(masses, centre, size), overwrite_x=True)
            if len(frequencies) < half:
                transform = transform[frequencies]
        for low in range(0, len(frequencies), _BLOCK):
            part = slice(low, low + _BLOCK)
            values = transform[part]
            modulus = np.maximum(np.abs(values), 1e-300)
            log_power[part] += rounds * np.log(modulus)
            excess[part] += rounds * np.log1p(error / modulus)
            angle[part] += rounds * np.angle(values)
        del transform, values
        live = log_power > _DEAD
        if not live.all():
            # The factors to come are at most 1, up to rounding.
            left_out += 1.01 * float(np.exp((log_power + excess)[~live]).sum())
            frequencies, log_power, angle, excess = (
                array[live] for array in (frequencies, log_power, angle, excess)
            )
    # Error of every mass: the mean over frequencies, those left out included.
    error = np.exp(log_power + excess) @ -np.expm1(-excess)
    mass_error = 2 * (float(error) + left_out) / size + (math.exp(_DEAD / 2) if band else 0.0)
    power = np.exp(log_power, out=log_power)
    product = np.empty(len(power), complex)
    np.cos(angle, out=product.real)
    np.sin(angle, out=product.imag)
    product *= power
    return frequencies, product, mass_error


def _split_spectrum(rows, cuts, size, points):
    """The same for the runs in which some round loses more than the split [A-8]: prod (B + X)^T - prod B^T, where
    B is the transform of the losses up to the split and X that of the others.

    That is a sum of products with positive coefficients, each with a factor X. So if B and X are off by b and x at
    most, it is off by F (sum T x / m + s sum T b / m) at most: m = |B| + |X| + b + x, F = prod m^T, and s, the
    largest of 1 - prod (|B| / m)^T, is at most 1 and at most sum T (|X| + x) / (|B| + |X|).
    cuts : of each row, the first of its masses above the split.
    """
    half = size // 2 + 1
    if size > points:
        raise TooLong(f"the lattice needs {size} points")
    log_base, growth = np.zeros((2, half), complex)
    log_most, share, small, large = np.zeros((4, half))
    for (masses, centre, rounds, error), at in zip(rows, cuts):
        bulk, tail = masses.copy(), masses.copy()
        bulk[at:], tail[:at] = 0.0, 0.0
        bulk_transform = fft.rfft(_wrapped(bulk, centre, size), overwrite_x=True)
        tail_transform = fft.rfft(_wrapped(tail, centre, size), overwrite_x=True)
        off_b, off_x = error * float(bulk.sum()), error * float(tail.sum())
        for low in range(0, half, _BLOCK):
            part = slice(low, low + _BLOCK)
            b, x = bulk_transform[part], tail_transform[part]
            size_b, size_x = np.abs(b), np.abs(x)
            most = size_b + size_x
            share[part] += np.minimum(rounds * (size_x + off_x) / np.maximum(most, 1e-300), rounds)
            most += off_b + off_x
            log_most[part] += rounds * np.log(most)
            small[part] += rounds * off_x / most
            large[part] += rounds * off_b / most
            b[size_b < 1e-200] = 1e-200  # far below the error
            log_b = np.log(np.maximum(size_b, 1e-200)) + 1j * np.angle(b)
            far = size_x >= 0.5 * size_b
            ratio = np.where(far, 0.0, x) / b
            more = complex_log1p(ratio.real, ratio.imag)
            if far.any():
                whole = b[far] + x[far]
                whole[np.abs(whole) < 1e-200] = 1e-200
                more[far] = np.log(whole) - log_b[far]
            growth[part] += rounds * more
            log_base[part] += rounds * log_b
        del bulk_transform, tail_transform
    power = np.empty(half, complex)
    for low in range(0, half, _BLOCK):
        part = slice(low, low + _BLOCK)
        base, more = log_base[part], growth[part]
        # Far growth needs no expm1, and would overflow there.
        far = more.real > 1
        power[part] = np.exp(base) * np.expm1(np.where(far, 0.0, more))
        if far.any():
            power[part][far] = np.exp((base + more)[far]) - np.exp(base[far])
    error = np.exp(log_most) * (small + np.minimum(share, 1.0) * large)
    return np.arange(half, dtype=np.int32), power, 2 * float(error.sum()) / size


def _band_width(rows, size):
    """How many low frequencies have to be computed for |phi| < e^{_DEAD / 2} at all others."""
    log_bound, gap = np.zeros(_FOLD // 2), 2 * math.pi / _FOLD
    for masses, centre, rounds, error in rows:
        square = (np.abs(fft.rfft(_wrapped(masses, centre, _FOLD), overwrite_x=True)) + error) ** 2
        places = np.arange(float(len(masses))) - centre  # floats: NumPy's own integers may have 32 bits, which squares outgrow
        variance = float((places * places) @ masses)  # around `centre`: at least the variance
        between = np.maximum(square[1:], square[:-1]) + gap * gap / 4 * variance
        log_bound += rounds / 2 * np.log(np.minimum(between, 1.0))
    alive = np.flatnonzero(log_bound > _DEAD / 2)
    last = int(alive[-1]) + 1 if len(alive) else 0
    return min(int(math.ceil(last * (size / _FOLD))) + 2, size // 2 + 1)


def best_alias(moment, c, epsilon, period, side, tilts=None):
    """(log of the bound on the aliases above (side 1) or below (-1), tilt that gives it).

    moment : function of a tilt, the log moment of the summed loss. Below, delta <= 1
    is a bound as well, and its tilt None.
    """
    if tilts is None:
        tilts = [c * x for x in (_ABOVE if side > 0 else _BELOW)]
    best = math.inf, None
    if side < 0:
        best = -c * period - math.log(-math.expm1(-c * period)), None
    for tilt in tilts:
        gap = 0.0 if tilt is None else abs(tilt - c) * period
        if gap > 0:
            value = moment(tilt) - tilt * epsilon + log_kernel(tilt) - gap - math.log(-math.expm1(-gap))
            if value < best[0]:
                best = value, tilt
    return best


class _Series:
    """Sums of the masses in closed form, one frequency after the other."""

    def __init__(self, frequencies, power, size, c, h):
        self.frequencies, self.size, self.h = frequencies.astype(np.int64), size, h
        z = c * h - 2j * math.pi / size * frequencies
        # Both halves of the spectrum: twice the real part, 0 and N/2 once.
        self.twice = 2.0 / size * power
        self.twice[(frequencies == 0) | (2 * frequencies == size)] /= 2
        self.twice /= np.expm1(z) * np.expm1(z + h)
        self.growth = np.exp(z)

    def at(self, n, rest):
        turns = (self.frequencies * (n % self.size) % self.size) / self.size
        # 1/(e^z - 1) - e^rest/(e^(z+h) - 1), over the common denominator and without cancellation.
        kernel = self.growth * (math.exp(rest) * math.expm1(self.h - rest)) + math.expm1(rest)
        return float((self.twice * kernel * np.exp(2j * math.pi * turns)).real.sum())


class _Masses:
    """Sums of the masses in blocks of lattice points."""

    def __init__(self, frequencies, power, size, c, h):
        self.size, self.c, self.h = size, c, h
        if len(power) <= size // 2:
            full = np.zeros(size // 2 + 1, complex)
            full[frequencies] = power
            power = full
        self.masses = fft.irfft(power, n=size, overwrite_x=True)
        # The two exponentials on the first block, all periods together. What is nearly below the smallest float is left out:
        # sums of such terms take a hundred times as long, and are far below the slack.
        steps = h * np.arange(1, min(_BLOCK, size, int(_LEAST / (c * h)) + 1) + 1)
        self.decay = np.exp(-c * steps) / -math.expm1(-c * size * h)
        self.decay_twice = np.exp(-(c + 1) * steps) / -math.expm1(-(c + 1) * size * h)

    def at(self, n, rest):
        # In blocks, where both exponentials are the block's own times those of the first block.
        start, value, block = (n + 1) % self.size, 0.0, len(self.decay)
        for first, last in ((start, self.size), (0, start)):
            for low in range(first, last, block):
                masses = self.masses[low : min(low + block, last)]
                before = self.h * ((low - start) % self.size)
                if self.c * before > _LEAST:
                    return value
                kernel = self.decay - math.exp(rest - before) * self.decay_twice
                value += math.exp(-self.c * before) * float(masses @ kernel[: len(masses)])
        return value


def _low_band(masses, centre, size, frequencies):
    """sum_i masses_i e^{-2 pi i k (i - centre) / size} for a few low frequencies k.

    The index is split into digits of base 64, so that every sum is short and rounds
    little; the phases are exact multiples of a turn over `size`.
    """

    def phases(places):
        turns = (np.outer(places, frequencies.astype(np.int64)) % size) / size
        return np.exp(-2j * math.pi * turns)

    digits, square = np.arange(_DIGIT), _DIGIT * _DIGIT
    inner, middle = phases(digits), phases(_DIGIT * digits)
    parts = np.hstack([inner.real, inner.imag])
    count = -(-len(masses) // square)
    outer = phases(square * np.arange(count) - centre)
    total = np.zeros(len(frequencies), complex)
    for row in range(count):
        block = np.zeros(square)
        here = masses[row * square : (row + 1) * square]
        block[: len(here)] = here
        sums = block.reshape(_DIGIT, _DIGIT) @ parts
        sums = sums[:, : len(frequencies)] + 1j * sums[:, len(frequencies) :]
        total += outer[row] * np.einsum("rk,rk->k", middle, sums)
    return total


def _wrapped(masses, centre, size):
    """The masses on a circle of `size` points, moved so that `centre` comes to 0."""
    circle = np.zeros(size)
    first, place = 0, -centre % size
    while first < len(masses):
        part = masses[first : first + size - place]
        circle[place : place + len(part)] += part
        first, place = first + len(part), 0
    return circle


def rounding(law, size):
    """Relative rounding allowance of one round.

    Masses: a few units in the last place of the density, also of the terms that its
    logarithm is summed from, of c * loss, of the quadrature
    weights, and, times c and the reach of the losses, the 16 units by which a miss counts as none. Transform: 8 units per stage,
    relative to the sum of the masses, which is one; `_low_band` has two stages of 64 terms
    and one of few, which count as 24.
    """
    masses = law.upper
    exponent = float(masses @ np.abs(law.losses())) / float(masses.sum())
    stages = max(math.log2(size), 24.0 if size > _FOLD else 0.0)
    return (
        EPS * (80 + 8 * stages + 4 * law.exponent + 8 * law.c * exponent + 24 * law.c * law.step.reach)
        + law.step.log_probability_error
    )
