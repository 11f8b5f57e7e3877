"""The contour accountant for few rounds and rare sampling.

`contour` needs the characteristic function of the summed loss to decay. It does
not when the rounds are few or hardly ever sample the record: most of the loss
then sits in a narrow bulk near log(1 - q). Two changes make it cheap again.

  The bulk is taken out [A-8]. With a smooth share s(u) = Phi((u - centre) / width) the law
     of one round is a sum of positive parts, bulk + tail. The measure
     (bulk + tail)^{*T} - bulk^{*T}, every run with a round in the tail, is positive
     and smooth: its transform (phi_B + phi_T)^T - phi_B^T dies out as fast as phi_T.
     What is left, delta of bulk^{*T}, lies between 0 and its Chernoff bound.
  High frequencies are bounded on a shifted line [A-9]. For 0 < v < pi / a_max every term of
     R(u + iv) has its argument in [0, pi): R has no zero there, arg R >= 0 and it
     increases in u. So |phi_T(y)| <= int |s| phi |R|^{1+c} e^{-Y arg R} du on that
     line for all y >= Y. Integrals on lines are bounded by sums over cells, each
     with the largest value of every factor.

Errors as in `contour` (aliasing E1, truncation E2, trapezoid E3, rounding), for the
measure that is left. One mixture, any number of rounds; the bulk is taken out in
the remove direction only. Cost: (nodes in u) x (frequencies), as a product of two tables.
"""

from __future__ import annotations

import math

import numpy as np

from ..mixtures import EPS, complex_log1p
from ..results import Bracket, NoBracketError
from .contour import Chernoff, bracket_epsilon, log_kernel, root_of
from .floats import inside_floats
from .split_contour_nodes import _TAIL, _Cells, _Nodes, _Part, _Side

_WORK_CAP = 300_000_000  # complex products in the table of frequencies: about a second
_MOST_STARTS, _FEW_STARTS = 25, 5  # of the search for an epsilon, and where the work is limited
_DIGITS = 27.0  # e^-27 = 2e-12: what one source of error may contribute, next to delta
_NARROW = 3e-7  # a bracket of log delta that needs no second try
# Splits that are tried, cheapest first: where the tail begins, as a share of epsilon, and
# how sharply. A tail that begins late is smoother; then less of delta may lie in the bulk.
_SPLITS = ((0.5, 5), (0.35, 5), (0.25, 5), (0.18, 5), (0.18, 8), (0.12, 6), (0.08, 7), (0.05, 8), (0.03, 9))
_LARGEST_TILT = 60.0  # of the bulk's Chernoff bound, over the tilt of the rest


# ---------------------------------------------------------- the measure that is left


class _Parts:
    """The tail, and the bulk where one is taken out; moments of the measure that is left."""

    def __init__(self, rounds, tail, bulk=None):
        self.rounds, self.tail, self.bulk = rounds, tail, bulk

    def log_moments(self, c):
        """(log moment of what is left, of the tail, of the bulk or -inf)."""
        tail = self.tail.log_moment(c)
        bulk = self.bulk.log_moment(c) if self.bulk else -math.inf
        return self.log_left(tail, bulk), tail, bulk

    def log_left(self, tail, bulk):
        """log of M^T - M_B^T from the logs of M_T and M_B; it increases in both."""
        if bulk == -math.inf:
            return self.rounds * tail
        power = self.rounds * float(np.logaddexp(0.0, tail - bulk))
        # M^T - M_B^T = M_B^T (e^power - 1); a power below the smallest float is T M_T / M_B.
        excess = power + math.log(-math.expm1(-power)) if power > 1e-300 else math.log(self.rounds) + tail - bulk
        return self.rounds * bulk + excess

    def log_condition(self, c):
        """log of T M^{T-1} M_T over the moment of what is left: how it feels errors in the tail."""
        left, tail, bulk = self.log_moments(c)
        return math.log(self.rounds) + (self.rounds - 1) * np.logaddexp(tail, bulk) + tail - left

    def log_chernoff(self, c, epsilon):
        """log of the Chernoff bound on delta of what is left, at tilt c."""
        return self.log_moments(c)[0] - c * epsilon + log_kernel(c)

    def best_tilt(self, epsilon, low, high):
        """(tilt of the least Chernoff bound, to a tenth: any tilt is exact; log of that bound)."""
        grid = np.geomspace(low, high, 12)
        for _ in range(2):
            tails = self.tail.log_moments(grid)
            bulks = self.bulk.log_moments(grid) if self.bulk else [-math.inf] * len(grid)
            values = [
                self.log_left(tail, bulk) - c * epsilon + log_kernel(c)
                for c, tail, bulk in zip(grid, tails, bulks)
            ]
            best = int(np.argmin(values))
            grid = np.geomspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 5)
        return float(grid[2]), float(min(values))

    def bulk_tilts(self, c, epsilon):
        """Tilts above c, best first, with the logs of their Chernoff bounds on delta of the bulk."""
        bulk = self.bulk
        tilts = [t for t in c * np.geomspace(1, 4 * _LARGEST_TILT, 18) if math.isfinite(bulk.log_outside(t))]
        moments = bulk.log_moments(np.array(tilts)) if tilts else ()
        return sorted((self.rounds * k - t * epsilon + log_kernel(t), t) for k, t in zip(moments, tilts))


def _coarse_parts(side, epsilon):
    """Workable choices on coarse cells: a list of (parts, tilt, rough log delta), at most two."""
    direction = "remove" if side.sign > 0 else "add"
    top = Chernoff([(side.mixture, side.rounds)], direction).problem.tilt(epsilon=epsilon)
    if not 1e-9 < top < 1e7:
        raise NoBracketError("the split contour found no tilt")
    low, high = side.window(1.5 * top)
    step, choices, guess = min(0.05 if side.sign > 0 else 0.1, 0.15 / side.largest), [], None
    for share, sharpness in _SPLITS if side.sign > 0 else ():
        at = side.mixture.inverse_log_ratio(np.array([share * epsilon]))
        if not low + 4 < at[0] < high - 4:
            continue
        slope = float(side.mixture.log_ratio_and_slope(at)[1][0])
        width = min(share * epsilon / slope / sharpness, 0.7)
        parts = _split(side, float(at[0]), width, low, high, step, _LARGEST_TILT * top)
        # The last split's tilt bounds the least Chernoff bound from above: it tells which need no search.
        if guess is not None and not _enough(parts.bulk_tilts(guess, epsilon), parts.log_chernoff(guess, epsilon) + 1):
            continue
        tilt, value = parts.best_tilt(epsilon, 0.05 * top, 1.5 * top)
        guess = tilt
        if _enough(parts.bulk_tilts(tilt, epsilon), value):
            choices.append((parts, tilt, value))
            break
    if not choices or share < 0.15:
        whole = _Parts(side.rounds, _Cells(side, _Part("all"), low, high, step))
        choices.append((whole, *whole.best_tilt(epsilon, 0.3 * top, 1.5 * top)))
    return choices


def _enough(bounds, value):
    """Whether the bulk's delta is negligible next to `value`, the rough log delta."""
    return bool(bounds) and bounds[0][0] < value - _DIGITS - 2


def _split(side, centre, width, low, high, step, largest_tilt):
    """Tail and bulk around `centre`, on cells that reach as far as their shares."""
    reach, step = width * math.sqrt(2 * (_TAIL + 20)), min(step, width / 2)
    tail = _Cells(side, _Part("tail", centre, width), max(low, centre - reach), high, step)
    # The bulk's share must also beat e^{tilt * loss} where its nodes end.
    reach = max(reach, 1.05 * width**2 * (1 + largest_tilt) * side.largest)
    bulk = _Cells(side, _Part("bulk", centre, width), low, min(centre + reach, high), step)
    return _Parts(side.rounds, tail, bulk)


class _Integral:
    """The contour integral of the measure that is left, and everything that bounds its error."""

    def __init__(self, side, epsilon, most_work=_WORK_CAP):
        self.side, self.rounds, self.most_work = side, side.rounds, most_work
        choices = []
        for coarse, tilt, value in _coarse_parts(side, epsilon):
            # What one error may be, next to the moment at the tilt times e^{-c epsilon}.
            aim = value - coarse.log_moments(tilt)[0] + tilt * epsilon - _DIGITS - 3
            choices.append((self._last_frequency(coarse, tilt, aim), tilt, aim, coarse))
        # The fewest frequencies first; without a split, rounding weighs T times as much.
        best, state, reason = math.inf, None, None
        for choice in sorted(choices, key=lambda choice: choice[0]):
            try:
                width = self._integrate(epsilon, *choice)
            except NoBracketError as error:
                reason = error
                continue
            if state is None or width < best:
                best, state = width, dict(self.__dict__)
            if width < _NARROW:
                break
        if state is None:
            raise reason
        self.__dict__.update(state)

    def _integrate(self, epsilon, top, tilt, aim, coarse):
        """Sum one choice of parts and tilt; returns the width of the bracket."""
        self.top, self.c, self.aim, self.coarse = top, tilt, aim, coarse
        if math.isinf(top):
            raise NoBracketError("the split contour's bound on high frequencies does not close")
        self._choose_nodes(epsilon)
        self._choose_period(epsilon)
        self._sum()
        lower, _, upper, _ = self.log_bounds(epsilon)
        return upper - lower if math.isfinite(lower) else math.inf

    def _last_frequency(self, coarse, tilt, aim):
        """The frequency beyond which the bound E2 is small enough; inf if none is found."""
        y, factor = 3.0 * tilt, 2.0
        while y < 1e8 * tilt:
            if self._log_beyond(coarse, tilt, y) < aim:
                if factor < 1.2:
                    return y
                y, factor = y / factor, math.sqrt(factor)
            y *= factor
        return math.inf

    def _log_beyond(self, parts, c, y):
        """log of E2: the integral beyond y, over the moment at c."""
        left, tail, bulk = parts.log_moments(c)
        cells = getattr(parts.tail, "cells", parts.tail)
        highest = self.side.highest(cells.part)
        line = min(cells.log_line(c, -y, highest * x) for x in (1.0, 0.6, 0.35, 0.2))
        value = self.rounds * line
        if parts.bulk:
            # |(B + X)^T - B^T| <= T |X| (|B| + |X|)^{T-1}.
            value = math.log(self.rounds) + line + (self.rounds - 1) * np.logaddexp(tail, bulk)
        return value - left - math.log(math.pi * y)

    def _choose_nodes(self, epsilon):
        """Nodes on the real line for low frequencies, and on a higher line for the rest."""
        c, coarse = self.c, self.coarse
        self.middle = min(max(4 * c, self.top / 16), self.top)
        aims = [coarse.tail.log_moment(c) + self.aim - coarse.log_condition(c) - 2]
        if coarse.bulk:
            aims.append(coarse.bulk.log_moment(c) + self.aim - math.log(self.rounds) - 2)
        cells = [coarse.tail] + ([coarse.bulk] if coarse.bulk else [])
        ranges = [(0.0, self.middle)] + ([(self.middle, self.top)] if self.middle < self.top else [])
        steps = [0.25, 0.25]
        if coarse.bulk:
            # The bulk's nodes also carry its Chernoff bound, at a larger tilt, to a per mille.
            tilt, highest = coarse.bulk_tilts(c, epsilon)[0][1], self.side.highest(coarse.bulk.part)
            line = coarse.bulk.log_line(tilt, 0.0, 0.7 * highest) - coarse.bulk.log_moment(tilt)
            steps[1] = 2 * math.pi * 0.7 * highest / (line + 7 + math.log(self.rounds))
        self.lines = [
            [_Nodes(part, c, *ends, aim, step) for part, aim, step in zip(cells, aims, steps)]
            for ends in ranges
        ]
        self.parts = _Parts(self.rounds, *self.lines[0])
        self.moments = self.parts.log_moments(c)

    def _slack(self, nodes, t):
        """Allowance that turns a computed log-moment into an upper bound."""
        error = nodes.moment_error(t)
        if not error < 0.5:
            return math.inf
        return -math.log1p(-error) + nodes.rounding(t, nodes.log_moment(t))[0]

    def _upper_moment(self, t):
        """Upper bound on the log-moment of what is left at tilt t."""
        parts = self.parts
        _, tail, bulk = parts.log_moments(t)
        tail += self._slack(parts.tail, t)
        if parts.bulk:
            bulk += self._slack(parts.bulk, t)
        return parts.log_left(tail, bulk) if max(tail, bulk) < math.inf else math.inf

    def _choose_period(self, epsilon):
        c = self.c
        tilts = [c * x for x in (0.5, 0.75, 0.9, 1.03, 1.08, 1.2, 1.5)]
        self._others = [(t, self._upper_moment(t)) for t in [0.0] + tilts]
        self._bulk, bulk = [], self.parts.bulk
        if bulk:
            for _, t in self.coarse.bulk_tilts(c, epsilon)[:3]:
                self._bulk.append((t, self.rounds * (bulk.log_moment(t) + self._slack(bulk, t))))
        period, best = 0.5 / c, (math.inf, 0.0)
        for _ in range(60):
            value = self._log_aliasing(epsilon, period)
            if value < best[0] - 0.2:
                best = value, period
            if value < self.aim:
                break
            period *= 1.15
        if not best[1]:
            raise NoBracketError("the split contour's bound on aliasing does not close")
        self.period = best[1]
        self.spacing = 2 * math.pi / self.period

    def _log_aliasing(self, epsilon, period):
        """log of E1 over (moment at c) e^{-c epsilon}."""
        below, above = math.inf, math.inf
        for t, moment in self._others:
            gap = abs(t - self.c) * period
            kernel = log_kernel(t) if t else 0.0
            value = moment - self.moments[0] - (t - self.c) * epsilon + kernel
            value -= gap + math.log(-math.expm1(-gap))
            if t < self.c:
                below = min(below, value)
            else:
                above = min(above, value)
        return float(np.logaddexp(below, above))

    def _sum(self):
        """The terms of the sum, and the bound on all their errors but aliasing."""
        c, rounds = self.c, self.rounds
        left, tail, bulk = self.moments
        count = int(self.top / self.spacing) + 1
        split = math.ceil(self.middle / self.spacing) if len(self.lines) > 1 else count
        ranges = [(nodes, *ends) for nodes, ends in zip(self.lines, ((0, split), (split, count))) if ends[1] > ends[0]]
        if sum(sum(len(n.u) for n in nodes) * (last - first) for nodes, first, last in ranges) > self.most_work:
            raise NoBracketError(f"the split contour needs {count} frequencies")
        blocks, errors, worst = [], [], 0.0
        factors = math.exp(self.parts.log_condition(c)), float(rounds)
        for nodes, first, last in ranges:
            blocks.append(self._left(nodes, first, last - first))
            y = self.spacing * np.arange(first, last)
            singles = []
            for part, scale in zip(nodes, (tail, bulk)):
                constant, slope = part.rounding(c, scale)
                singles.append(part.error(scale) + constant + slope * y)
            errors.append(sum(factor * single for factor, single in zip(factors, singles)))
            worst += rounds * sum(float(single[-1]) for single in singles)
        # T errors of relative size e, next to factors of at most 1 + the sum of all e.
        if not worst < 0.1:
            raise NoBracketError(f"the split contour's quadrature is too coarse ({worst:.1e})")
        error = np.concatenate(errors) * math.exp(worst)
        self.y = self.spacing * np.arange(count)
        z = c + 1j * self.y
        self.terms = np.concatenate(blocks) / (z * (z + 1))
        self.terms[0] /= 2
        kernel = self.spacing / math.pi / np.abs(z * (z + 1))
        # The first frequency left out lies beyond `top`; 0.2 covers the moments, good to `worst`.
        y = self.spacing * count
        beyond = math.exp(self._log_beyond(self.parts, c, y) + 0.2) * (1 + self.spacing / y)
        self.error = float(kernel @ error) + beyond

    def _left(self, nodes, first, count):
        """Transform of what is left, over its moment: (B + X)^T - B^T without cancellation."""
        left, tail, bulk = self.moments
        phi = nodes[0].transform(self.spacing, first, count, tail)
        if len(nodes) == 1:
            return phi**self.rounds
        base = nodes[1].transform(self.spacing, first, count, bulk)
        ratio = math.exp(tail - bulk) * phi
        near = np.abs(ratio) < 0.5 * np.abs(base)
        quotient = np.where(near, ratio / np.where(near, base, 1.0), 0.0)
        growth = self.rounds * complex_log1p(quotient.real, quotient.imag)
        # In logarithms: either power alone may leave the range of a float. e^x - 1 = -e^x (e^{-x} - 1).
        log_power = lambda z: self.rounds * (complex_log1p(z.real - 1, z.imag) + bulk) - left
        rises = growth.real > 0
        small = np.expm1(np.where(rises, -growth, growth)) * np.where(rises, -1, 1)
        close = np.exp(log_power(base) + np.where(rises, growth, 0)) * small
        apart = np.exp(log_power(base + ratio)) - np.exp(log_power(base))
        return np.where(near, close, apart)

    def log_bounds(self, epsilon):
        """(log lower, log value, log upper, d log value / d epsilon) of delta(epsilon)."""
        c, scale = self.c, self.spacing / math.pi
        terms = self.terms * np.exp(-1j * self.y * epsilon)
        value = scale * float(terms.real.sum())
        slope = scale * float((terms.imag * self.y).sum())
        size = scale * float(np.abs(self.terms) @ (8 + (self.y + c) * abs(epsilon)))
        error = self.error + 4 * EPS * size
        lead = self.moments[0] - c * epsilon
        aliasing = math.exp(min(self._log_aliasing(epsilon, self.period), 700.0))
        apart = min((k - t * epsilon + log_kernel(t) for t, k in self._bulk), default=-math.inf)
        extra = math.exp(min(apart - lead, 700.0))
        left, _, bulk = self.moments
        scales = abs(left) + (self.rounds * abs(bulk) if self.parts.bulk else 0.0)
        pad = 8 * EPS * (1 + scales + abs(c * epsilon))
        lower, middle, upper = (
            lead + math.log(x) if x > 0 else -math.inf
            for x in (value - error - aliasing, value, value + error + extra)
        )
        return lower - pad, middle, upper + pad, slope / value - c if value > 0 else -c


# ------------------------------------------------------------------- one side


@inside_floats()
def side_log_delta(mixture, rounds, epsilon, direction, most_work=_WORK_CAP) -> Bracket:
    """Bracket of log delta(epsilon), epsilon > 0, in one direction [A-8], [A-9].

    mixture : neither trivial nor a plain Gaussian; in the add direction with a sensitivity of 0.
    most_work : entries of the table of frequencies.
    Raises NoBracketError where the bounds do not close. Cost: 10 to 500 milliseconds.
    """
    if not epsilon > 0:
        raise NoBracketError("the split contour needs a positive epsilon")
    lower, _, upper, _ = _Integral(_Side(mixture, rounds, direction), epsilon, most_work).log_bounds(epsilon)
    if not math.isfinite(lower):
        raise NoBracketError("the split contour's error bound exceeds delta itself")
    return Bracket(lower, min(upper, 0.0) if lower <= 0 else upper, "contour")


@inside_floats()
def side_epsilon(mixture, rounds, delta, direction, most_work=_WORK_CAP) -> Bracket:
    """Bracket of the smallest epsilon with delta(epsilon) <= delta, in one direction, where it is positive.

    Arguments and errors as for `side_log_delta`; delta in (0, 1). Cost: a few of its calls.

    >>> from dplib import mixtures, rare
    >>> one_round = mixtures.binomial(trials=1, probability=1e-3, noise_multiplier=1.0)
    >>> print(f'{rare.side_epsilon(one_round, rounds=100, delta=1e-6, direction="remove").upper:.4f}')
    0.0838
    """
    log_delta, side = math.log(delta), _Side(mixture, rounds, direction)
    epsilon = Chernoff([(mixture, rounds)], direction).epsilon(log_delta)
    if side.sign > 0 and epsilon > 0:
        # Rare draws add up: one round at delta / T is a good start, from below.
        grid = epsilon * np.geomspace(1e-4, 1.0, 200)
        alone = mixture.log_hockey_stick(grid, direction) + math.log(rounds)
        epsilon = float(grid[min(int(np.argmax(alone <= log_delta)), 199)]) if alone[-1] <= log_delta else epsilon
    low, high = 0.0, math.inf
    for _ in range(_MOST_STARTS if most_work == _WORK_CAP else _FEW_STARTS):
        if not epsilon > 0:
            break
        # Nodes and split are chosen for one epsilon: choose them again until the root is near it.
        integral = _Integral(side, epsilon, most_work)
        _, value, _, slope = integral.log_bounds(epsilon)
        if not (math.isfinite(value) and slope < 0):
            break
        if value > log_delta:
            low = epsilon
        else:
            high = epsilon
        root = epsilon - (value - log_delta) / slope
        if abs(root - epsilon) < 0.01 * epsilon:
            return bracket_epsilon(integral, root_of(integral, epsilon, log_delta), log_delta)
        if not low < root < min(high, 4 * epsilon):
            root = math.sqrt(low * high) if low and high < math.inf else epsilon * (4.0 if low else 0.25)
        epsilon = root
    raise NoBracketError("the split contour found no positive epsilon")
