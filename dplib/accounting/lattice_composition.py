"""Composition on the lattice: a bound on delta from the transform of the tilted masses.

With N points of distance h the masses of the composed law are mass_i = (1/N) sum_k
phi_k e^{2 pi i ik/N}, phi the product of the rounds' transforms, and the bound on delta
at eps = origin + n h + r, 0 <= r <= h, is

    sum_{j>=1} mass_{n+j} (e^{-cjh} - e^{r-(c+1)jh}),   masses continued with period N.

At a tilt between -1 and 0 the same sums over both sides of eps give what delta misses. Where few frequencies
matter (`lattice_spectrum`) the sum over j is done in closed form for each of them, else it is done on the masses.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import fft
from .._base.log_space import EPS, log_kernel
from ..results import NoBracketError
from .lattice_spectrum import FOLD, spectrum, split_spectrum

MOST_POINTS = 1_800_000  # of a transform that is computed in full: about 70 MB
_SERIES = 20_000  # frequencies that are summed in closed form
_BLOCK = 2**15  # lattice points summed at once
_LEAST = 650.0  # minus the log of a factor that counts for nothing
# Tilts, relative to the law's own, at which aliases are bounded. A law of rare large losses explodes within a per cent.
_ABOVE, _BELOW = (1.005, 1.01, 1.02, 1.05, 1.1, 1.25, 1.6, 2.5, 5.0, 10.0, 20.0, 40.0), (0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)
_BETWEEN = (0.02, 0.1, 0.3, 0.6, 1.0)  # the same below 0: shares of the way to 0, or to -1
_LARGEST_TILT = 240.0  # of the bound on what is left out, over the tilt of the sum
_RARELY = -36.0  # log of a probability whose square does not count next to it


class Sum:
    """The composed law, upper or lower: a bound on delta at every epsilon.

    laws : one Law per mixture, with one step and one tilt. side : "upper" or "lower".
    period : least length of the lattice, of at most `points` points. rough_moment : function of a tilt, about the log
    moment of the summed loss (it ranks the tilts of the aliasing bound). At a tilt between -1 and 0 it bounds what delta
    misses [A-20]. split : a loss, or None. Runs of which no round
    loses more are then left out of the sums: their delta is bounded by Chernoff above, and by 0 below.
    """

    def __init__(self, laws, side, period, rough_moment, split=None, points=MOST_POINTS):
        self.side, self.c, self.h, self.laws, self.split = side, laws[0].c, laws[0].h, laws, split
        self.size = fft.next_fast_len(max(int(math.ceil(period / self.h)), 16), real=True)
        self.period = self.size * self.h
        self.rough_moment, self._certified, self._left_out = rough_moment, {}, {}
        self.log_moment = self.origin = self.moment_error = 0.0
        self.log_missing = -math.inf
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
            if side == "lower":
                error += law.tail_error
                self.log_missing = float(np.logaddexp(self.log_missing, law.log_missing + math.log(rounds)))
            rows.append((masses, centre, rounds, error))
            self.origin += rounds * (law.offset + self.h * (law.first + centre))
            self.moment_error += rounds * error
        self.moment_error += 4 * EPS * abs(self.log_moment)
        self.log_infinite = _log_of_any(laws)
        if split is None:
            frequencies, power, errors = spectrum(rows, self.size, points)
        else:
            cuts = [law.index_above(split) for law in laws]
            frequencies, power, errors = split_spectrum(rows, cuts, self.size, points)
        self.mass_error, self.masses_error = errors
        inverse = 8 * EPS * math.log2(self.size)  # of the inverse transform, relative
        self.mass_error += inverse * 2 * float(np.abs(power).sum()) / self.size
        self.masses_error += inverse * math.sqrt(2 / self.size) * float(np.linalg.norm(power))
        del rows
        kind = _Series if len(frequencies) <= _SERIES else _Masses
        self.values = kind(frequencies, power, self.size, self.c, self.h)

    def log_cut(self, epsilon):
        """log of what the windows cost delta(epsilon) at most [A-29]."""
        rows = [(log_tail - max(high - epsilon, 0.0), law.step.rounds) for law in self.laws for log_tail, high in law.beyond]
        return float(np.logaddexp.reduce([log_cost + math.log(rounds) for log_cost, rounds in rows], initial=-math.inf))

    def log_bound(self, epsilon):
        """log of the bound on delta(epsilon); -inf where the lower bound is empty."""
        if self.side == "lower":
            return self._log_less(epsilon)
        if self.split is None:
            finite = self._log_more(epsilon, self._least_alias(epsilon))
        else:
            finite = np.logaddexp(self._log_more(epsilon), self._log_left_out(epsilon))
        return float(np.logaddexp(finite, self.log_infinite))

    def log_miss(self, epsilon):
        """log of the bound on 1 - delta(epsilon), lower for the upper law: what is infinite misses nothing."""
        if self.side == "upper":
            return self._log_less(epsilon)
        return float(np.logaddexp(self._log_more(epsilon), self.log_missing))

    def _log_more(self, epsilon, alias=0.0):
        """log of the periodic sum, which is too large by `alias` at least, with its error."""
        lead, value, slack = self._periodic(epsilon)
        left = max(value, 0.0) + slack - alias * math.exp(min(-lead, 700.0))
        return lead + math.log(left) if left > 0 else -math.inf

    def _log_less(self, epsilon):
        """log of the periodic sum without its error and its aliases."""
        lead, value, slack = self._periodic(epsilon)
        left = value - slack - math.exp(min(self._log_aliasing(epsilon) - lead, 700.0))
        return lead + math.log(left) if left > 0 else -math.inf

    def _least_alias(self, epsilon):
        """Lower bound of the aliases from below [A-7]: at x = epsilon - m Lambda, delta is at least E 1 - e^x E e^-L."""
        if self.period < epsilon + 1 or self.c * self.period > _LEAST:
            return 0.0
        first, second = math.exp(self._log_mass(0.0) - self.moment_error), math.exp(self._log_mass(-1.0) + self.moment_error)
        more = first / math.expm1(self.c * self.period)
        less = second * math.exp(epsilon - (1 + self.c) * self.period) / -math.expm1(-(1 + self.c) * self.period)
        return max(more * (1 - 8 * EPS) - less * (1 + 1e-12), 0.0)

    def _log_mass(self, tilt):
        """log of the law's moment at that tilt, kept."""
        if tilt not in self._certified:
            self._certified[tilt] = self._log_moment(tilt)
        return self._certified[tilt]

    def _periodic(self, epsilon):
        """(log of a factor, sum over all periods, its error) of delta, or of what it misses."""
        h, c = self.h, self.c
        n = math.floor((epsilon - self.origin) / h)
        at = self.origin + n * h
        rest = min(max(epsilon - at, 0.0), h)
        value = self.values.at(n, rest)
        # All periods together are two geometric series; below 0 both of the other sign.
        weight = abs(1 / math.expm1(c * h) - math.exp(rest) / math.expm1((c + 1) * h)) * (1 + 1e-6)
        error = min(self.mass_error * weight, self.masses_error * self._norm_of_weights(rest))
        slack = error + abs(value) * (
            self.moment_error + EPS * (64 + 8 * abs(c) * (abs(epsilon) + abs(self.origin)))
        )
        return self.log_moment - c * at, value, slack

    def _norm_of_weights(self, rest):
        """Upper bound of the root of the sum of squares of what the masses of one period are multiplied with."""
        below, above = abs(self.c) * self.h, (1 + self.c) * self.h
        first, second = 1 / -math.expm1(-below * self.size), math.exp(rest) / -math.expm1(-above * self.size)
        squares = first * first / math.expm1(2 * below), second * second / math.expm1(2 * above)
        if self.c < 0:  # two sides, of which one begins at 0
            return (math.sqrt(squares[0]) * math.exp(below) + math.sqrt(squares[1])) * (1 + 1e-6)
        # (a - b)^2, where all periods of the product are counted, as they are in the squares.
        product = first * second * -math.expm1(-(below + above) * self.size) / math.expm1(below + above)
        return math.sqrt(max(sum(squares) - 2 * product, 0.0) + 1e-12 * sum(squares)) * (1 + 1e-6)

    def _log_left_out(self, epsilon):
        """log of a bound on delta of the runs that are left out, by Chernoff: higher and higher tilts, while that lowers it."""
        most = sum(law.step.rounds * law.loss_below(self.split) for law in self.laws)
        if most <= epsilon:
            return -math.inf
        best = math.inf
        for tilt in (self.c * np.geomspace(1, _LARGEST_TILT, 24)).tolist():
            if tilt not in self._left_out:
                moments = [law.log_moment(self.side, tilt, last=law.index_above(self.split)) for law in self.laws]
                self._left_out[tilt] = sum(law.step.rounds * moment for law, moment in zip(self.laws, moments))
            moment = self._left_out[tilt]
            bound = moment + self.moment_error + 8 * EPS * (abs(moment) + tilt * epsilon) - tilt * epsilon + log_kernel(tilt)
            if bound > best:
                break
            best = bound
        return best

    def _log_moment(self, tilt):
        """log of the moment of what is summed at another tilt, all rounds together."""
        if self.split is None:
            return sum(law.step.rounds * law.log_moment(self.side, tilt) for law in self.laws)
        base = growth = 0.0
        for law in self.laws:
            cut = law.index_above(self.split)
            bulk, tail = law.log_moment(self.side, tilt, last=cut), law.log_moment(self.side, tilt, cut)
            base += law.step.rounds * bulk
            growth += law.step.rounds * float(np.logaddexp(0.0, tail - bulk))
        return base + growth + math.log(max(-math.expm1(-growth), 1e-300))

    def _log_aliasing(self, epsilon):
        """log of a bound on sum_{m != 0} e^{c m Lambda} delta(eps + m Lambda), or of what it misses, by Chernoff."""
        ends = []
        for side in (1, -1):
            _, tilt = best_alias(self.rough_moment, self.c, epsilon, self.period, side)
            ends.append(best_alias(self._log_mass, self.c, epsilon, self.period, side, [tilt])[0])
        return float(np.logaddexp(*ends))


def _log_of_any(laws):
    """log of the probability that the loss of some round is infinite, rounded up."""
    bound = float(np.logaddexp.reduce([law.log_infinite + math.log(law.step.rounds) for law in laws]))
    if bound < _RARELY:  # the sum will do
        return bound + 4 * EPS
    if max(law.log_infinite for law in laws) >= 0:
        return 0.0
    none = math.fsum(law.step.rounds * math.log1p(-math.exp(law.log_infinite)) for law in laws)
    return min(math.log(-math.expm1(none)) + 4 * EPS, 0.0)


def best_alias(moment, c, epsilon, period, side, tilts=None):
    """(log of the bound on the aliases above (side 1) or below (-1), tilt that gives it).

    moment : function of a tilt, the log moment of the summed loss. Below, delta <= 1
    is a bound as well, and its tilt None. For c < 0 the aliases are those of 1 - delta.
    """
    if tilts is None:
        if c > 0:
            tilts = [c * x for x in (_ABOVE if side > 0 else _BELOW)]
        else:  # between the law's own tilt and 0, or -1
            tilts = [c + x * (-c if side > 0 else -1 - c) for x in _BETWEEN]
    best = math.inf, None
    if side < 0 and c > 0:
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
        self.twice /= math.copysign(1.0, c) * np.expm1(z) * np.expm1(z + h)
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
        steps = h * np.arange(1, min(_BLOCK, size, int(_LEAST / (abs(c) * h)) + 1) + 1)
        self.decay = np.exp(-abs(c) * steps) / -math.expm1(-abs(c) * size * h)
        self.decay_twice = np.exp(-(c + 1) * steps) / -math.expm1(-(c + 1) * size * h)

    def at(self, n, rest):
        if self.c < 0:
            above = self._one_sided(self.masses, n + 1, self.c + 1, self.decay_twice)
            # From point n on downwards: its own mass counts once.
            below = self._one_sided(self.masses[::-1], self.size - 1 - n, -self.c, self.decay)
            return math.exp(rest) * above + math.exp(-self.c * self.h) * below
        return self._above(n, rest)

    def _one_sided(self, masses, start, rate, decay):
        """sum_{j>=1} masses_{start - 1 + j} e^{-rate j h} over all periods."""
        value = 0.0
        for part, before in self._blocks(masses, start, len(decay), rate):
            value += math.exp(-rate * before) * float(part @ decay[: len(part)])
        return value

    def _above(self, n, rest):
        # In blocks, where both exponentials are the block's own times those of the first block.
        value = 0.0
        for masses, before in self._blocks(self.masses, n + 1, len(self.decay), self.c):
            kernel = self.decay - math.exp(rest - before) * self.decay_twice
            value += math.exp(-self.c * before) * float(masses @ kernel[: len(masses)])
        return value

    def _blocks(self, masses, start, block, rate):
        """(masses, distance of the first one from `start`) once around the lattice, while e^{-rate distance} counts."""
        start %= self.size
        for first, last in ((start, self.size), (0, start)):
            for low in range(first, last, block):
                before = self.h * ((low - start) % self.size)
                if rate * before > _LEAST:
                    return
                yield masses[low : min(low + block, last)], before


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
    stages = max(math.log2(size), 24.0 if size > FOLD else 0.0)
    return (
        EPS * (80 + 8 * stages + 4 * law.exponent + 8 * abs(law.c) * exponent + 24 * abs(law.c) * law.step.reach)
        + law.step.log_probability_error
    )
