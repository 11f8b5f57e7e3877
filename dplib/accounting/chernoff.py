"""The saddle of exp(K(c) - c eps), where both accountants place their tilt, and the moments of a composition that it needs."""

from __future__ import annotations

import math

from .._base.lazy_scipy import optimize
from .._base.log_space import log_kernel
from ..mixtures import DisjointUnion, TwoSided
from ..results import NoBracketError, _inside_floats
from .contour_nodes import Family
from .contour_pieces import PiecesFamily
from .contour_quadrature import STRIP_CAP
from .two_sided_nodes import TwoSidedFamily

LOG_LARGE = math.log(0.9)  # from this delta on, epsilon is found from 1 - delta
_FAR_BELOW = 1.3  # standard deviations below the mean, where delta is about .9
_SHARES = (1.0, 0.97, 0.93, 0.85, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1)  # of the saddle
_HARDLY = 6.0  # times the least variance
_LOST = (14.0, 9.0, 5.0)  # log of the sum over delta: what a tilt may lose at first, and where this was too much
_NARROW = 1e-7
_MOST_ROWS, _MOST_ENTRIES = 256, 40_000  # of one family: entries = rows x nodes, roughly


def saddle(moments, start=1.0, *, log_delta=None, epsilon=None):
    """The tilt c that minimises the Chernoff epsilon (or delta), kept above 1 / deviation.

    moments : function of a tilt, (K, K', K'') of the summed loss to a few digits.
    Any c > 0 gives exact bounds; the saddle only saves digits.
    """

    def condition(c):
        k, mean, variance = moments(c)
        if epsilon is None:
            return c * mean - k + log_delta + math.log1p(c), c * variance + 1 / (1 + c)
        return mean - epsilon - math.log1p(1 / c), variance + 1 / (c * (1 + c))

    low, high, c = 0.0, math.inf, start
    for _ in range(80):
        value, derivative = condition(c)
        if value < 0:
            low = c
        else:
            high = c
        new = c - value / derivative
        if not low < new < high or not math.isfinite(new):
            new = 4 * c if math.isinf(high) else (low * high) ** 0.5 if low else c / 4
        # Fast growth overshoots into the exploding part of K: at most a factor 4 up.
        new = min(max(new, c / 16), 4 * c)
        if abs(new - c) < 1e-3 * c:
            c = new
            break
        c = new
        if not 1e-14 < c < 1e30:
            break
    return float(max(c, 0.7 / math.sqrt(max(moments(c)[2], 1e-300))))


def misses(moments, epsilon):
    """Whether delta(epsilon) is so large that 1 - delta is what should be computed, by a rule of thumb."""
    _, mean, variance = moments(0.0)
    return epsilon < mean - _FAR_BELOW * math.sqrt(variance)


def miss_tilt(moments, epsilon):
    """The tilt in (-1, 0) that minimises the Chernoff bound on 1 - delta(epsilon), about; moments as for `saddle`."""
    return _least(moments, lambda c: moments(c)[0] - c * epsilon - math.log(-c * (1 + c)))


def rough_log_miss(moments, epsilon, c):
    """About log(1 - delta(epsilon)), by the tilt c in (-1, 0): Chernoff's bound with the saddle's factor."""
    moment, _, variance = moments(c)
    return moment - c * epsilon - math.log(-c * (1 + c) * math.sqrt(2 * math.pi * variance))


def miss_epsilon(moments, log_miss):
    """(rough epsilon at which 1 - delta is this small, its tilt in (-1, 0))."""
    epsilon = lambda c: (rough_log_miss(moments, 0.0, c) - log_miss) / c
    c = _least(moments, lambda c: -epsilon(c))
    return epsilon(c), c


def log_width(bracket):
    """Width of a bracket of log delta: relative to delta, or near 1 to what delta misses."""
    return bracket.width if bracket.lower < LOG_LARGE else bracket.width / max(-bracket.lower, 1e-300)


def _least(moments, of):
    # Away from the poles 0 and -1, by less than 1 / deviation.
    edge = min(0.05, 0.7 / math.sqrt(moments(0.0)[2]))
    found = optimize.minimize_scalar(of, bounds=(edge - 1, -edge), method="bounded", options={"xatol": edge / 20})
    return float(found.x)


# ---------------------------------------------------------- other tilts of the contour
#
# Any tilt is exact, and the saddle loses no digits. But where large losses are rare, the law that is tilted there has much of its weight
# on them: it is spread widely, while loss 0 stays sharp, and that asks for many frequencies. A smaller tilt keeps to the small losses, at
# the cost of some digits.


def by_tilts(moments, saddle, epsilon, log_delta, integrate, ask):
    """The first narrow answer, else the narrowest, by tilts that lose fewer and fewer digits.

    moments : function of a tilt, (K, K', K'') to a few digits. log_delta : as far as it is known, or None. integrate(tilt, epsilon) :
    an integral. ask(integral) : (bracket, its relative width, epsilon and log delta as far as they are known now), or NoBracketError.
    """
    spreads = [(share * saddle, k, max(variance, 1e-300)) for share in _SHARES for k, _, variance in [moments(share * saddle)]]
    if log_delta is None:
        log_delta = min(_log_size(spread, epsilon) for spread in spreads) - 0.5 * math.log(2 * math.pi)
    found, tilt, reason = [], None, NoBracketError("the contour has no tilt to try")
    for most_lost in (*_LOST, None):  # last, the saddle itself
        before, tilt = tilt, saddle if most_lost is None else _calm(spreads, epsilon, log_delta, most_lost)
        if tilt == before:
            continue
        try:
            bracket, width, epsilon, log_delta = ask(integrate(tilt, epsilon))
        except NoBracketError as error:
            reason = error
            continue
        found.append((width, bracket))
        if width <= _NARROW:
            break
    if not found:
        raise reason
    return min(found, key=lambda each: each[0])[1]


def _calm(spreads, epsilon, log_delta, most_lost):
    """The largest tilt at which the loss hardly spreads more than at any smaller one that loses no more digits than this.

    spreads : (tilt, K, K'') of the tilts to choose from, decreasing. most_lost : log of the sum's size over delta.
    """
    lost = [_log_size(spread, epsilon) - log_delta for spread in spreads]
    allowed = [spread for spread, log in zip(spreads, lost) if log <= most_lost] or [spreads[lost.index(min(lost))]]
    least = min(variance for *_, variance in allowed)
    return next(tilt for tilt, _, variance in allowed if variance <= _HARDLY * least)


def _log_size(spread, epsilon):
    """log of the size of the sum over frequencies, about."""
    tilt, moment, variance = spread
    return moment - tilt * epsilon - math.log(tilt * (1 + tilt) * math.sqrt(variance))


# ------------------------------------------------------------- the composition


def _families(composition, direction):
    """The composition as a list of families; those that share a grid of shifts together."""
    alone = [TwoSidedFamily(pair, rounds) for pair, rounds in composition if isinstance(pair, TwoSided)]
    alone += [PiecesFamily(pair, rounds, direction) for pair, rounds in composition if isinstance(pair, DisjointUnion)]
    if alone:
        rest = [part for part in composition if not isinstance(part[0], (TwoSided, DisjointUnion))]
        return alone + (_families(rest, direction) if rest else [])
    sign = 1 if direction == "remove" else -1
    if len(composition) == 1:
        [(mixture, rounds)] = composition
        return [Family([mixture], [rounds], sign)]
    open_groups, groups = [], []
    for mixture, rounds in sorted(composition, key=lambda part: -len(part[0].shifts)):
        shifts = mixture.shifts.tolist()
        found = [group for group in open_groups if shifts[-1] in group[0] and group[0].issuperset(shifts)]
        if not found:
            nodes = (20 + shifts[-1]) * 8 * max(1 / STRIP_CAP, math.sqrt(mixture.variance_bound))
            found = [(set(shifts), [], min(_MOST_ENTRIES / nodes, _MOST_ROWS))]
            open_groups.append(found[0])
            groups.append(found[0][1])
        _, members, most = found[0]
        members.append((mixture, rounds))
        if len(members) >= most:
            open_groups = [group for group in open_groups if group is not found[0]]
    return [Family(*zip(*members), sign) for members in groups]


class Coarse:
    """(K, K', K'') of the loss of all families at a tilt, to a few digits; the last tilt is kept."""

    def __init__(self, families):
        self.families, self._last = families, (None, None)

    def __call__(self, c):
        if c != self._last[0]:
            parts = zip(*(family.coarse(c) for family in self.families))
            self._last = c, tuple(sum(part) for part in parts)
        return self._last[1]


class Composition:
    """A list of mixtures with multiplicities, in one direction."""

    def __init__(self, composition, direction):
        if not composition:
            raise ValueError("composition must not be empty")
        self.families = _families(composition, direction)
        self.coarse = Coarse(self.families)
        self.negative_tilts = all(family.negative_tilts for family in self.families)

    def tilt(self, log_delta=None, epsilon=None):
        """The tilt that minimises the Chernoff epsilon (or delta)."""
        return saddle(self.coarse, log_delta=log_delta, epsilon=epsilon)

    def chernoff_epsilon(self, log_delta):
        """(rough epsilon from the Chernoff bound, its tilt)."""
        c = self.tilt(log_delta=log_delta)
        return (self.coarse(c)[0] - log_delta + log_kernel(c)) / c, c


class Chernoff:
    """Rough log delta or epsilon from the Chernoff bound: a starting point, no certificate."""

    def __init__(self, composition, direction):
        self.problem = Composition(composition, direction)

    def tilt(self, epsilon: float) -> float:
        with _inside_floats():
            return self.problem.tilt(epsilon=epsilon)

    def log_delta(self, epsilon: float) -> float:
        c = self.tilt(epsilon)
        with _inside_floats():
            return min(self.problem.coarse(c)[0] - c * epsilon + log_kernel(c), 0.0)

    def epsilon(self, log_delta: float) -> float:
        with _inside_floats():
            return self.problem.chernoff_epsilon(log_delta)[0]
