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
bounded by Chernoff at other tilts, and what they are at least is taken off the upper one. A delta near 1
is found from what it misses, at a tilt between -1 and 0. On a long lattice only a low band of frequencies
is computed, and the others are bounded (`lattice_spectrum`).

Truncation: loss above the window counts as infinite (upper) or as the window's end
(lower); loss below counts as the window's end (upper) or is dropped (lower).
Rounding: an explicit allowance per round (`lattice_composition.rounding`).
"""

from __future__ import annotations

import math

import numpy as np

from .._base.log_space import log_kernel
from ..mixtures import Mixture
from ..results import Bracket, NoBracketError, _inside_floats
from .chernoff import (
    LOG_LARGE,
    log_width,
    miss_epsilon,
    miss_tilt,
    misses,
    rough_log_miss,
    saddle,
)
from .lattice_composition import MOST_POINTS, Sum, best_alias
from .lattice_losses import Losses
from .lattice_round import Law
from .lattice_spectrum import TooLong

MOST_CELLS = 550_000
_MOST_ENTRIES = 3e7  # cells times components of one law: about a second
_MARGIN, _MOST_MARGIN = 3.0, 22.0  # what is cut, over delta times the aim: e^-3; over delta: e^-22
_MOST_RECUTS = 4
# Tilts tried, over the saddle; a period this short, next to the window, will do; digits that another tilt may cost.
_SHARES, _SHORT, _MOST_LOSS = (1.0, 0.6, 0.35, 0.2, 0.1), 4.0, 3.0
# Where the bulk of a round ends that is taken out, as shares of epsilon; its delta is so far below what is cut; least gain.
_SPLITS, _ROOM, _GAIN = (0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03), 4.0, 2.0
_CHOSEN = ("c", "spread", "rough_epsilon", "rough_log_delta")
_MOST_CUTS = 16
_LEAST_LOG_DELTA = -5000.0  # no level of cutting below it is tried
_LARGEST_TILT = 1e25
_ALIAS_ROUNDING = 1e-12  # of aliases that are subtracted, about
_LEAST_SHARE, _MOST_SHARE = 1e-9, 30.0  # of a relative change of epsilon, in delta
_SURELY_LESS = -1.0  # a Chernoff bound on log delta, below which delta is not near 1
_FIRST_AIM = 0.75  # of the width aimed at: what the first grid is chosen for


class _Solver:
    """Refines the lattice until the bracket is as narrow as asked, or the grid is full."""

    def __init__(
        self, parts, direction, *, log_delta=None, epsilon=None, aim=1e-7, guess=None, cells=MOST_CELLS, points=MOST_POINTS,
        for_chernoff=False,
    ):
        """for_chernoff : windows end where losses are rare, and the tilt is above 0. Else a window may also end where losses are so
        large that it makes no difference, and a delta near 1 is found from what it misses.
        """
        if not parts:
            raise ValueError("composition must not be empty")
        self.log_delta, self.epsilon, self.c = log_delta, epsilon, 1.0
        self.guessed = guess is not None
        self.margin, self.rough_log_delta = min(_MARGIN - math.log(aim), _MOST_MARGIN), 0.0
        self.about = math.inf  # an epsilon that decides which losses are large
        self.log_miss = math.log(-math.expm1(log_delta)) if LOG_LARGE <= (log_delta or -math.inf) else None
        if for_chernoff:
            self.log_miss = None
        elif epsilon is not None:
            self.about = epsilon
        if log_delta is None:
            self._cut(parts, direction, guess)
            if not for_chernoff and self.rough_log_delta > _SURELY_LESS and misses(self.losses.moments, epsilon):
                self.log_miss = rough_log_miss(self.losses.moments, epsilon, miss_tilt(self.losses.moments, epsilon))
                self._cut(parts, direction, self.log_miss)
        else:
            self._cut_twice(parts, direction, aim, guess, for_chernoff)
        while self.log_miss is None and self.rough_epsilon > 0 and self.c < _LARGEST_TILT:
            self._take_bulk_out(guess if epsilon is None else epsilon)
            if epsilon is None or guess is not None or self.losses.split is None or self.rough_log_delta > self.level - 3:
                break
            self._cut(parts, direction, self.rough_log_delta)
        components = max(s.components for s in self.losses.steps)
        self.cells, self.points = int(min(cells, 5e6 / min(components, 40), _MOST_ENTRIES / components)), points

    def _cut_twice(self, parts, direction, aim, guess, for_chernoff):
        """Windows and tilt for a known delta; the second time epsilon is known, too, and how delta moves with it."""
        known = self.log_delta if self.log_miss is None else self.log_miss
        for again in (True, False):
            self._cut(parts, direction, known)
            if guess:
                self._aim_tilt(guess)
            if for_chernoff or not (again and self.rough_epsilon > 0 and abs(self.c) < _LARGEST_TILT):
                break
            self.about = self.rough_epsilon
            # d log delta / d log epsilon, about: a share of delta is that much less of epsilon.
            share = min(max(abs(self.c) * self.about, _LEAST_SHARE), _MOST_SHARE)
            self.margin = min(_MARGIN - math.log(aim * share), _MOST_MARGIN)

    def _cut(self, parts, direction, known):
        """Window and tilt.

        Losses so rare that they count for nothing next to delta are cut: sums of many of them would
        lead the tilt astray. Where the log of delta is not known, the rough delta rises as less is cut, so that
        there is one level of cutting that leads to itself; it is found by bisection.
        """
        level, low, high = -60.0 if known is None else known, _LEAST_LOG_DELTA, 0.0
        for _ in range(_MOST_CUTS):
            self.level = level
            least = (self.epsilon or 0.0) if self.log_miss is None else None
            self.losses = Losses(parts, direction, level, self.margin, least, self.about)
            if not 1e-290 < self.losses.reach < 1e290:
                raise NoBracketError("the lattice found no spread in the losses that matter")
            self._aim_tilt()
            if known is not None or abs(self.rough_log_delta - level) < 1.5:
                break
            low, high = (low, level) if self.rough_log_delta < level else (level, high)
            # The rough delta is the next level, or, where that would not halve the range, its geometric middle.
            if low < self.rough_log_delta < high and abs(self.rough_log_delta - level) < (high - low) / 2:
                level = self.rough_log_delta
            else:
                level = -math.sqrt(low * min(high, -1.0))

    def _take_bulk_out(self, epsilon):
        """Choose the split: the largest one below which all rounds together count for nothing.

        epsilon : about, or None.

        What is left when the runs without a loss above it are taken out is smaller than the
        whole by orders of magnitude where records are hardly ever sampled, and so is its rounding.
        """
        before = {name: getattr(self, name) for name in _CHOSEN}
        epsilon = epsilon or self.losses.one_jump_epsilon(self.log_delta)
        for share in _SPLITS if epsilon > 0 else ():
            self.losses.split = share * epsilon
            if not any(step.low < self.losses.split < step.high for step in self.losses.steps):
                continue
            # Large losses are so rare then that Chernoff's epsilon may be far too large: the tilt is that of this one.
            self._aim_tilt(epsilon)
            log_delta = self.log_delta if self.epsilon is None else self.rough_log_delta
            tilts = self.c * np.geomspace(1, 240, 16)
            bulk = min(self.losses.moments_up_to(t, self.losses.split)[0] - t * epsilon + log_kernel(t) for t in tilts)
            if bulk < log_delta - self.margin - _ROOM:
                if self.losses.moments_up_to(self.c, math.inf)[0] - self.losses.moments(self.c)[0] > _GAIN:
                    return
                break
        self.__dict__.update(before)
        self.losses.split = None

    def _aim_tilt(self, epsilon=None):
        """Saddle, spread, and a rough epsilon or log delta. epsilon : about that of log_delta, if it is known better."""
        epsilon = self.epsilon if epsilon is None else epsilon
        if self.log_miss is not None:
            moments = self.losses.moments
            if epsilon is None:
                self.rough_epsilon, self.c = miss_epsilon(moments, self.log_miss)
            else:
                self.rough_epsilon, self.c = epsilon, miss_tilt(moments, epsilon)
            self.spread = math.sqrt(max(moments(self.c)[2], 1e-300))
            return
        log_delta = self.log_delta if epsilon is None else None
        self.c = c = saddle(self.losses.moments, self.c, log_delta=log_delta, epsilon=epsilon)
        if not c < _LARGEST_TILT:
            # What the cut has left never adds up to epsilon.
            self.c, self.rough_log_delta, self.rough_epsilon = _LARGEST_TILT, -math.inf, self.epsilon or 0.0
            self.spread = self.losses.reach
            return
        k, _, variance = self.losses.moments(c)
        self.spread = math.sqrt(max(variance, 1e-300))
        if epsilon is None:
            self.rough_epsilon = (k - self.log_delta + log_kernel(c)) / c
        else:
            self.rough_epsilon = epsilon
            self.rough_log_delta = min(k - c * epsilon + log_kernel(c), 0.0)

    def brackets(self, aim):
        """Yield (upper sum, lower sum): finer and finer until the cap; `aim`: the relative width wanted."""
        rounds, aim = sum(s.rounds for s in self.losses.steps), _FIRST_AIM * aim
        self.period, self.c, self.spread = _shortest_period(self.losses, self.c, self.rough_epsilon)
        size = max(abs(self.rough_epsilon), 0.1 * self.spread)
        # The two laws differ by c (1 + c) h^2 / 8 in the log moment of each round.
        wanted = math.sqrt(8 * aim * size / ((1 + self.c) * rounds)) if self.epsilon is None else (
            math.sqrt(8 * aim / (abs(self.c) * (1 + self.c) * rounds))
        )
        # The lower law needs cells well inside the bulk of the loss, or the bulk in one cell.
        bulk = min(s.bulk for s in self.losses.steps)
        self.finest = self.losses.reach / self.cells
        # A coarser grid first, unless one has been tried before, where it may do (also with the bulk in one cell), or may change the windows.
        may_do = self.rough_epsilon <= 0 or (wanted > 0.5 * self.finest and bulk < 20 * self.finest)
        first = 4 * self.finest if not self.guessed and (may_do or self.epsilon is not None) else self.finest
        self.h = max(min(self.losses.reach / 3000, max(min(wanted, 0.2 * bulk), first)), self.finest)
        answered = 0.0  # the step of the last answer
        for _ in range(6):
            try:
                laws = [Law(s, self.h, self.c) for s in self.losses.steps]
                upper = Sum(laws, "upper", self.period, self.losses.alias_moment, self.losses.split, self.points)
                empty = any(not law.lower.any() for law in laws)
                lower = None if empty else Sum(laws, "lower", self.period, self.losses.alias_moment, self.losses.split, self.points)
            except TooLong:
                longest = 1.02 * self.period / self.points
                if self.finest >= longest:
                    raise
                self.finest = longest
                if answered and longest > 0.7 * answered:
                    return  # the coarser grid's answer stands
                self.h = longest
                continue
            except NoBracketError:
                if answered:
                    return
                raise
            answered = self.h
            last = self.h <= 1.001 * self.finest
            yield upper, lower
            if last:
                return
            del laws, upper, lower  # a full grid fills a hundred megabytes

    def ends(self, upper, lower):
        """(lower, upper) end of log delta at the solver's epsilon; -inf, 0 where there is none."""
        if self.log_miss is None:
            return lower.log_bound(self.epsilon) if lower else -math.inf, min(upper.log_bound(self.epsilon), 0.0)
        return tuple(_log_of_rest(law.log_miss(self.epsilon)) if law else -math.inf for law in (lower, upper))

    def excess(self, bound):
        """Function of epsilon, above 0 where the bound on delta is above the delta that is asked for."""
        if self.log_miss is None:
            return lambda epsilon: bound.log_bound(epsilon) - self.log_delta
        return lambda epsilon: self.log_miss - bound.log_miss(epsilon)

    def refine(self, ratio):
        """Choose the next step: the width falls like h^2; `ratio` = width / aim."""
        self.h = max(self.finest, self.h * min(0.5, 0.8 / math.sqrt(ratio)))


def _log_of_rest(log_miss):
    """log(1 - e^log_miss), -inf where that is not above 0."""
    return math.log(-math.expm1(log_miss)) if log_miss < 0 else -math.inf


def _shortest_period(losses, c, epsilon):
    """(period, tilt, spread), for the tilt c or one near it with a shorter period: just above c moments of rare large losses explode.

    epsilon : about.
    """
    if c < 0:
        spread = math.sqrt(max(losses.moments(c)[2], 1e-300))
        return _period(losses, c, spread, epsilon), c, spread
    # delta is at most 1: where the tilted mass is far above it, as beside an atom of the largest loss, rounding is all.
    least = c * 2.0**-60
    while losses.moments(c)[0] - c * epsilon > _MOST_LOSS:
        c /= 2
        if c < least:
            raise NoBracketError("the lattice has too many rounds: the rounding of their masses alone exceeds delta")
    saddle_tilt, best = c, None
    for share in _SHARES:
        c = share * saddle_tilt
        k, _, variance = losses.moments(c)
        spread, lead = math.sqrt(max(variance, 1e-300)), k - c * epsilon
        period = _period(losses, c, spread, epsilon)
        if best is None:
            best, most = (period, c, spread), lead + _MOST_LOSS
        elif period < 0.8 * best[0] and lead < most:
            best = period, c, spread
        if best[0] < _SHORT * losses.reach or c >= _LARGEST_TILT:
            break
    return best


def _period(losses, c, spread, epsilon):
    """A period whose aliases are negligible, as short as possible."""
    if c >= _LARGEST_TILT:
        return losses.reach
    lead = losses.moments(c)[0] - c * epsilon - math.log(max(spread * abs(c) * (1 + c), 1e-6))
    best = None
    for multiple in (2, 2.5, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 37, 45, 57, 70, 85, 100, 150, 250, 500, 1000, 3000, 10000):
        period = multiple * spread
        above, below = (best_alias(losses.alias_moment, c, epsilon, period, side)[0] for side in (1, -1))
        if c > 0 and losses.split is None and period > epsilon + 1:
            # These are known but for e^x at x = epsilon - period, and for rounding.
            below = min(below, -c * period + math.log(math.exp(epsilon - period) + _ALIAS_ROUNDING))
        value = np.logaddexp(above, below)
        if best is None or value < best[0] - 0.5:
            best = value, period
        if value < lead - 32:
            break
    return best[1]


@_inside_floats()
def side_log_delta(
    composition: list[tuple[Mixture, int]], epsilon: float, direction: str, relative_width: float = 1e-7,
    cells: int = MOST_CELLS, points: int = MOST_POINTS, guess: float | None = None, least: float = -math.inf,
) -> Bracket:
    """Bracket of log delta(epsilon) in one direction [A-5], [A-6], [A-7], [A-8]; composition of non-trivial pairs.

    relative_width : the relative width of delta aimed at, near 1 of what it misses [A-20]. cells, points : most lattice points of one round, and of
    all together. guess : about log delta, if it is known. least : log delta below which no second cut is tried. Raises NoBracketError where no finite lower bound comes out.
    """
    best, level = None, guess
    for _ in range(_MOST_RECUTS):
        solver = _Solver(
            composition, direction, epsilon=epsilon, aim=relative_width, guess=level, cells=cells, points=points
        )
        found, upper_end, log_cut = _log_delta_by(solver, relative_width)
        if found is not None and (best is None or found.width < best.width):
            best = found
        if solver.log_miss is not None:
            break
        # Was more cut than this delta allows? Its upper end tells from which level on it does not.
        if log_cut < upper_end - solver.margin + 2 or upper_end < least or not (level is None or upper_end < level - 1):
            break
        level = upper_end
    if best is None:
        raise NoBracketError("the lattice found no lower bound on delta")
    return best


def _log_delta_by(solver, relative_width):
    """(narrowest Bracket of log delta or None, least upper end, log of what the windows cost)."""
    best, least_upper, log_cut = None, 0.0, -math.inf
    for upper, lower in solver.brackets(relative_width):
        low, high = solver.ends(upper, lower)
        if low > high:
            raise AssertionError("lattice bounds crossed: please report this input")
        if math.isfinite(low) and (best is None or high - low < best.width):
            best = Bracket(low, high, "lattice")
        least_upper, log_cut = min(least_upper, high), upper.log_cut(solver.epsilon)
        width = log_width(Bracket(low, high)) if math.isfinite(low) else math.inf
        # What was cut does not get less by a finer grid.
        if width <= relative_width or log_cut > (high if solver.log_miss is None else solver.log_miss) - solver.margin + 2:
            break
        solver.refine(min(width / relative_width, 1e6))
        del upper, lower
    return best, least_upper, log_cut


@_inside_floats()
def side_epsilon(
    composition: list[tuple[Mixture, int]], delta: float, direction: str, relative_width: float = 1e-7,
    cells: int = MOST_CELLS, points: int = MOST_POINTS, guess: float | None = None,
) -> Bracket:
    """Bracket of the smallest epsilon >= 0 with delta(epsilon) <= delta, in one direction.

    relative_width : the relative width of epsilon aimed at. cells, points : as for `side_log_delta`. guess : about epsilon.

    >>> from dplib import contour, lattice, mixtures
    >>> rounds = [(mixtures.binomial(trials=1, probability=0.01, noise_multiplier=1.0), 2000)]
    >>> ours, other = lattice.side_epsilon(rounds, 1e-6, "remove"), contour.side_epsilon(rounds, 1e-6, "remove")
    >>> max(ours.lower, other.lower) <= min(ours.upper, other.upper)
    True
    """
    log_delta = math.log(delta)
    solver = _Solver(
        composition, direction, log_delta=log_delta, aim=relative_width, guess=guess, cells=cells, points=points
    )
    best = None
    for upper, lower in solver.brackets(relative_width):
        start = max(solver.rough_epsilon, 0.0) if best is None else best.upper
        high = _crossing(solver.excess(upper), start, abs(solver.c), +1, relative_width)
        start = high if math.isfinite(high) else start
        low = _crossing(solver.excess(lower), start, abs(solver.c), -1, relative_width) if lower else 0.0
        if low > high:
            raise AssertionError("lattice bounds crossed: please report this input")
        if math.isfinite(high) and (best is None or high - low < best.width):
            best = Bracket(low, high, "lattice")
        width = (high - low) / high if high > 0 else 0.0
        if width <= relative_width:
            break
        solver.refine(width / relative_width if math.isfinite(width) else 1e6)
        del upper, lower
    if best is None:
        raise NoBracketError("the lattice found no upper bound on epsilon")
    return best


def _crossing(gap, start, slope, side, relative_width):
    """Certified end: side +1, some eps >= 0 with gap <= 0; side -1, gap >= 0.

    gap : function of epsilon that falls, by `slope` about: the log of a bound on delta, over delta. start : near the end: far from it
    the tilt is wrong and the bound says nothing.
    """
    x, value = start, gap(start)
    step = min(1.2 * abs(value), 2.0) / slope + 0.01 * relative_width * x
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
