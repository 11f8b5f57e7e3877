"""The contour accountant: hockey-stick divergences from the moment generating function.

For a composition with loss L = sum_i L_i and M(z) = E exp(zL), every c > 0 gives

    delta(eps) = (1/pi) Re int_0^inf  M(c+iy) e^{-(c+iy) eps} / ((c+iy)(c+iy+1)) dy.

For -1 < c < 0 the same integral is -(1 - delta(eps)) [A-20]: near delta = 1 it keeps the digits
of the miss 1 - delta, from which epsilon is found there.

With R = P/Q of one round, E exp(z L_i) is E_Q[R^{1+z}] (remove) or E_Q[R^{-z}]
(add): a one-dimensional Gaussian integral of an analytic function, which the
trapezoid rule evaluates to full precision on a few hundred nodes. Rounds only
raise it to a power, so a million of them cost as much as twenty.

Error bounds (each is added to the bracket; all are relative to M(c) e^{-c eps})
  E1 aliasing in y: with step 2 pi / Lambda and half weight at y = 0 the infinite
     sum equals sum_m e^{c m Lambda} delta(eps + m Lambda), m over all integers. The
     terms m != 0 are non-negative: the sum is an upper bound, and Chernoff bounds
     at other tilts bound what to subtract for the lower one. (Of the miss likewise; where
     delta(eps + m Lambda) is bounded by 1, the miss is, and on the other side.)
  E2 truncation in y: |phi(y)| of each factor is bounded beyond the last node, on
     intervals by values at their ends and |(|phi|^2)''| <= 2 Var L, and from some y
     on by 1 - w(S) + V(S)/y (integration by parts on a set S of nodes); the bounds
     of all factors are multiplied.
  E3 trapezoid in u: the integrand is analytic where R(u+iv) has no zero, that is
     for v^2 sup_u Var(a_J | u) < 2, and the rule with step h misses the integral
     by at most (N(a) + N(-a)) / (e^{2 pi a / h} - 1), N(v) = int |f(u+iv)| du. Beside the
     axis this holds with the N of frequency 0, at all frequencies.
  Rounding: an explicit allowance of a few units in the last place for each
     exponent, carried through the power (`rounding`); tested in 40 digits.
The bounds of one round are in `contour_quadrature` (E3) and `contour_nodes` (rounding), what the sum leaves out in `contour_bounds`
(E1, E2), the choice of c in `chernoff`; the sum over frequencies is here.
Pairs in pieces have panels in place of the trapezoid rule (`contour_pieces`).

Cost: one factor costs (u nodes) x (y nodes), typically 300 x 60. Factors on one grid
of shifts are evaluated together: two thousand of them take half a second. Where the
characteristic function decays slowly (few rounds, tiny sampling probability) the
work exceeds a cap and NoBracketError tells the caller to use the lattice.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.log_space import EPS
from ..mixtures import Mixture
from ..results import Bracket, NoBracketError, _inside_floats
from .chernoff import LOG_LARGE, Composition, by_tilts, miss_epsilon, miss_tilt, misses
from .contour_bounds import Aliases, Decay, LineDecay
from .contour_nodes import BLOCK, nodes_for
from .contour_pieces import PanelDecay, PiecesFamily, panels_for
from .contour_quadrature import NEGLIGIBLE

_WORK_CAP = 60_000_000  # entries of the (y, u) matrix: about two seconds
_FREQUENCY_CAP = 60_000
# Every tilt is exact. At the saddle most digits are saved, but the moments just above it may
# explode, so that no period keeps the aliases small: then these shares of it are tried.
_SHARES = (1.0, 0.8, 0.5, 0.3)
_ALIASES_MOST = -24.0  # log of the aliases over delta, about
_NEGLIGIBLE = -42.0  # log of a term that ends the sum, and of what a characteristic function may tend to
_STARTS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)  # shares of the Chernoff value, where delta may be lost in the sum's error
_MOST_MISSED = 1e-11  # by the nodes, of the sum
_AHEAD = np.array([0.8, 0.9, 1.0])


class _AliasedError(NoBracketError):
    """The aliases at this tilt are not small."""


def _integral(composition, c, epsilon, most_work, saddle):
    """The integral at the tilt c, or at the first share of it where the aliases are small."""
    for share in _SHARES:
        try:
            return _Integral(composition, share * c, epsilon, most_work, saddle)
        except _AliasedError:
            continue
    return _Integral(composition, c, epsilon, most_work, saddle, any_aliases=True)


class _Integral:
    """The contour integral at one tilt: the sum, and everything that bounds its error."""

    def __init__(self, composition, c, epsilon, most_work=_WORK_CAP, saddle=-1.0, any_aliases=False):
        self.c, self.families = c, composition.families
        _, _, variance = composition.coarse(c)
        s = math.sqrt(variance)
        if not s > 0 or not math.isfinite(s):
            raise NoBracketError("the contour found a tilted loss without spread")
        if c > 0:
            self.tilts = [c + k / s for k in (1, 2, 4, 8)]
            if c < saddle:  # above it the moments explode
                self.tilts = [tilt for tilt in self.tilts if tilt < saddle] + [(c + saddle) / 2, saddle]
            self.tilts += [c - k / s for k in (1, 2, 4, 8) if c - k / s > 0.05 * c]
        else:
            self.tilts = [-1.0] + [c + k / s for k in (-8, -4, -2, -1, 1, 2, 4, 8) if -1 < c + k / s < 0.05 * c]
        self.scale = abs(c * (1 + c)) * s  # next to a sum of about its inverse, what is left out is judged
        # The other accountants cost more with every mixture, so that the patience grows, too.
        self.most_work = most_work * (1 + sum(len(f.rounds) for f in self.families) / 100)
        self.work, self.e2, at_least, frequency = 0, math.inf, 0.0, 12 / s
        self._choose_nodes(frequency)
        self.aliases = Aliases(c, self.tilts, self.nodes, self.log_moment, s, epsilon)
        self.spacing = 2 * math.pi / self.aliases.period
        if not any_aliases and self.aliases.log_bound(epsilon, self.log_moment) > _ALIASES_MOST - math.log(self.scale):
            raise _AliasedError("no period keeps the contour's aliases small at this tilt")
        for attempt in range(7):
            reached = self._sum_frequencies(s, at_least, frequency if attempt < 3 else math.inf)
            if self.e3 * self.scale > _MOST_MISSED and reached > frequency:
                frequency = reached
                self._choose_nodes(frequency)
                continue
            self.e2 = self._frequency_tail(reached)
            if self.e2 * self.scale < 1e-13 or self.work > self.most_work:
                break
            # Where the nodes are good, |phi|^T has come back: sum further. Else take more nodes.
            come_back = self._still_large
            if come_back and all(np.all(n.quadrature.error(come_back) < 1e-6) for n in self.nodes):
                at_least = 1.05 * come_back
            else:
                frequency = 2.5 * max(frequency, reached)
                self._choose_nodes(frequency)
        self._bound()

    def _choose_nodes(self, frequency):
        """Nodes for frequencies up to `frequency`, and their moments."""
        low, high = min(self.tilts), max(self.tilts)
        pieces = [isinstance(f, PiecesFamily) for f in self.families]
        self.nodes = [(panels_for if on else nodes_for)(f, self.c, low, high, frequency) for f, on in zip(self.families, pieces)]
        if sum(n.log_floor for n in self.nodes) > _NEGLIGIBLE:
            raise NoBracketError("too few rounds for the contour: loss 0 alone keeps the characteristic function up")
        # Bounds on high frequencies, first those that cost less.
        self.decays = [[(PanelDecay if on else kind)(n) for n, on in zip(self.nodes, pieces)] for kind in (LineDecay, Decay)]
        self.log_moment = float(sum(n.rounds @ n.log_moment for n in self.nodes))
        self.mean = float(sum(n.rounds @ n.mean for n in self.nodes))

    def _sum_frequencies(self, s, at_least=0.0, meant_for=math.inf):
        """Evaluate phi^T / (z (z+1)) on y = 0, spacing, ... until it is negligible: the last y.

        meant_for : the frequency that the nodes were chosen for. Where they miss much beyond it, the sum stops, with one to choose others for.
        """
        c, blocks, start = self.c, [], 0
        self.e3 = self.spoiled = 0.0
        size = max(n.weights.shape[1] for n in self.nodes)
        self._look_ahead()
        count = min(max(24, int(8.5 / s / self.spacing) + 2), max(1, BLOCK // size))
        while True:
            y = self.spacing * np.arange(start, start + count)
            log_power = np.zeros(count, complex)
            log_size, quadrature, rounding = np.zeros((3, count))
            for nodes in self.nodes:
                log_phi, distance = nodes.log_characteristic(y)
                log_power += nodes.rounds @ log_phi
                log_modulus = np.maximum(log_phi.real, -18.0)
                log_size += nodes.rounds @ log_modulus
                per_error = nodes.rounds[:, None] * np.exp(-log_modulus)
                quadrature += np.minimum(nodes.quadrature.error(float(y[-1])), 1e100) @ per_error
                rounding += (nodes.characteristic_rounding(y, distance) * per_error).sum(axis=0)
            z = c + 1j * y
            kernel = math.copysign(self.spacing / math.pi, c) / (z * (z + 1))
            blocks.append(np.exp(log_power) * kernel)
            # Factors of size m_i, each off by e_i, have a product off by at most
            # prod (m_i + e_i) - prod m_i <= prod m_i (exp(sum e_i / m_i) - 1).
            error = quadrature + rounding
            most = np.abs(kernel) * np.exp(np.minimum(log_size + error, 300.0))
            self.spoiled += float(most @ -np.expm1(-error))
            self.e3 += float(most @ quadrature)
            if self.e3 * self.scale > _MOST_MISSED and y[-1] > meant_for:
                return 4 * float(y[-1])
            start += count
            if np.exp(log_power[-1].real) * abs(c * (c + 1) / (z * (z + 1))[-1]) < math.exp(_NEGLIGIBLE) and (
                start * self.spacing > at_least
            ):
                break
            count = max(1, min(2 * count, 4096, BLOCK // size))
            self._count_work(count)
            if start > _FREQUENCY_CAP or self.work > self.most_work:
                raise NoBracketError(
                    f"the characteristic function decays too slowly (over {start} frequencies)"
                )
        self.y = self.spacing * np.arange(start)
        self.terms = np.concatenate(blocks)
        self.terms[0] /= 2
        return float(self.y[-1])

    def _look_ahead(self):
        """Refuse where the transform is still large at the last frequencies that the work allows."""
        most = min(_FREQUENCY_CAP, (self.most_work - self.work) / sum(n.weights.size for n in self.nodes))
        y = self.spacing * most * _AHEAD
        log_power = sum(n.rounds @ n.log_characteristic(y)[0].real for n in self.nodes)
        if (log_power + np.log(abs(self.c * (1 + self.c)) / y**2)).min() > _NEGLIGIBLE:
            raise NoBracketError(f"the characteristic function decays too slowly (over {most:.0f} frequencies)")

    def _bound(self):
        """E2, E3 and the rounding of the sum, each over M(c) e^{-c eps}."""
        moment_rounding = float(sum(n.rounds @ n.rounding(self.c) for n in self.nodes))
        if not self.e3 < 1e3:
            raise NoBracketError(f"the quadrature bound is too weak ({self.e3:.1e})")
        if not math.isfinite(self.e2):
            raise NoBracketError("the contour's bound on high frequencies does not close")
        size = float(np.abs(self.terms).sum())
        allowance = moment_rounding + EPS * (4 * math.log2(len(self.terms) + 2) + abs(self.log_moment))
        self.error = self.e2 + self.spoiled + size * allowance

    def _frequency_tail(self, top):
        """E2: bound on the frequencies beyond `top`, inf where none is small; then `_still_large` says how far to sum."""
        self._still_large = math.inf
        for decays in self.decays:
            tail = self._tail_by(decays, top)
            if tail < math.inf:
                return tail
        if math.isinf(self._still_large):
            raise NoBracketError("too few rounds for the contour's bound on high frequencies")
        return math.inf

    def _tail_by(self, decays, top):
        """`_frequency_tail` by one kind of bound on each factor."""
        far, tail = self._far(decays, top)
        if far is None:
            return math.inf
        # From `top` to `far`: intervals that grow geometrically, halved where too long.
        ends = top * 1.4 ** np.arange(1 + math.ceil(math.log(far / top * 1.0001) / math.log(1.4)))
        bounds = self._at(decays, ends)
        # What an interval may contribute.
        enough = lambda y, length: -38 - np.log(self.scale * length / (y * y))
        large = self._log_power(bounds) > enough(ends, 0.4 * ends)
        if large.any():
            self._still_large = min(self._still_large, float(ends[large].max()))
            return math.inf
        while True:
            lengths = np.diff(ends)
            log_bound = self._log_power([decay.between(bound, lengths) for decay, bound in zip(decays, bounds)])
            poor = np.flatnonzero(log_bound > enough(ends[:-1], lengths + self.spacing))
            if not len(poor) or len(ends) > 3000 or self.work > self.most_work:
                break
            middle = (ends[poor] + ends[poor + 1]) / 2
            bounds = [np.insert(old, poor + 1, new, axis=1) for old, new in zip(bounds, self._at(decays, middle))]
            ends = np.insert(ends, poor + 1, middle)
        tail += float(np.sum((lengths + self.spacing) * np.exp(log_bound) / ends[:-1] ** 2))
        return tail / math.pi

    def _far(self, decays, top):
        """(frequency, at least `top`, from which on the transform is negligible; bound on the sum beyond), None where it is not found."""
        for far in top * 1.3 ** np.arange(80):
            log_far = float(self._log_power([decay.beyond(np.array([far])) for decay in decays])[0])
            if log_far < 1 - NEGLIGIBLE:
                return far, math.exp(log_far) * (1 + self.spacing / far) / far
        return None, math.inf

    def _at(self, decays, y):
        """Upper bounds on |phi(y)| for each family, shape (rows, n)."""
        self._count_work(len(y))
        return [decay.modulus_bound(y) for decay in decays]

    def _log_power(self, bounds):
        """log of prod |phi_i|^{T_i} from bounds on each |phi_i|."""
        return sum(n.rounds @ np.log(np.minimum(bound, 1.0)) for n, bound in zip(self.nodes, bounds))

    def _count_work(self, frequencies):
        self.work += frequencies * sum(n.weights.size for n in self.nodes)

    # -- values

    def log_bounds(self, epsilon):
        """(log lower, log value, log upper, d log value / d epsilon) of delta(epsilon), or of 1 / (1 - delta(epsilon))."""
        terms = self.terms * np.exp(1j * self.y * (self.mean - epsilon))
        value = float(terms.real.sum())
        slope = float(terms.imag @ self.y)
        # The phase y (mean - eps) and the factor e^{-c eps} round with eps itself.
        phase = 4 * EPS * (abs(self.mean) + abs(epsilon))
        error = self.error + phase * float(np.abs(self.terms) @ (self.y + abs(self.c)))
        aliasing = math.exp(min(self.aliases.log_bound(epsilon, self.log_moment), 700.0))
        lead = self.log_moment - self.c * epsilon
        lower, middle, upper = (
            lead + math.log(x) if x > 0 else -math.inf for x in (value - error - aliasing, value, value + error)
        )
        rate = slope / value - self.c if value > 0 else -self.c
        return (lower, middle, upper, rate) if self.c > 0 else (-upper, -middle, -lower, -rate)


# ------------------------------------------------------------------- one side


@_inside_floats()
def side_log_delta(
    composition: list[tuple[Mixture, int]], epsilon: float, direction: str, most_work: float = _WORK_CAP
) -> Bracket:
    """Bracket of log delta(epsilon) in one direction; epsilon may be any real number.

    composition : list of (Mixture, rounds), none of them trivial. most_work : entries of the (y, u) matrix.
    Raises NoBracketError where the bounds do not close.
    """
    problem = Composition(composition, direction)
    if problem.negative_tilts and misses(problem.coarse, epsilon):
        c = miss_tilt(problem.coarse, epsilon)
        return _log_delta_at(_integral(problem, c, epsilon, most_work, c), epsilon)

    def ask(integral):
        bracket = _log_delta_at(integral, epsilon)
        return bracket, bracket.width, epsilon, bracket.upper

    saddle = problem.tilt(epsilon=epsilon)
    integrate = lambda tilt, epsilon: _integral(problem, tilt, epsilon, most_work, saddle)
    return by_tilts(problem.coarse, saddle, epsilon, None, integrate, ask)


def _log_delta_at(integral, epsilon):
    """The bracket of log delta from one integral."""
    lower, _, upper, _ = integral.log_bounds(epsilon)
    pad = 4 * EPS * (1 + abs(integral.log_moment) + abs(integral.c * epsilon))
    lower, upper = lower - pad, upper + pad
    by_miss = integral.c < 0
    if not (math.isfinite(lower) and lower > 0 if by_miss else math.isfinite(lower)):
        raise NoBracketError("the contour's error bound exceeds delta itself, or 1 - delta")
    if by_miss:
        lower, upper = (math.log(-math.expm1(-end)) for end in (lower, upper))
        return Bracket(lower - 4 * EPS, min(upper + 4 * EPS, 0.0), "contour")
    return Bracket(lower, min(upper, 0.0) if lower <= 0 else upper, "contour")


@_inside_floats()
def side_epsilon(
    composition: list[tuple[Mixture, int]], delta: float, direction: str, most_work: float = _WORK_CAP
) -> Bracket:
    """Bracket of the smallest epsilon >= 0 with delta(epsilon) <= delta, in one direction.

    >>> from dplib import contour, mixtures
    >>> one_round = mixtures.binomial(trials=1, probability=0.01, noise_multiplier=1.0)
    >>> print(f'{contour.side_epsilon([(one_round, 2000)], delta=1e-6, direction="remove").upper:.4f}')
    2.9553
    """
    problem = Composition(composition, direction)
    target = math.log(delta)
    if target >= LOG_LARGE and problem.negative_tilts:
        log_miss = math.log1p(-delta)
        guess, c = miss_epsilon(problem.coarse, log_miss)
        integral = _integral(problem, c, guess, most_work, c)
        return bracket_epsilon(integral, root_of(integral, guess, -log_miss), -log_miss)
    guess, saddle = problem.chernoff_epsilon(target)
    integrate = lambda tilt, epsilon: _integral(problem, tilt, epsilon, most_work, saddle)

    def ask(integral):
        root = root_of(integral, guess, target)
        bracket = bracket_epsilon(integral, root, target)
        return bracket, bracket.relative_width, root, target

    return by_tilts(problem.coarse, saddle, guess, target, integrate, ask)


def bracket_epsilon(integral: _Integral, root: float, target: float) -> Bracket:
    """The bracket around `root` whose ends are certified by `integral.log_bounds` against its target."""
    lower, value, upper, slope = integral.log_bounds(root)
    if not (math.isfinite(lower) and slope < 0 and upper - lower < 1):
        raise NoBracketError("the contour's error bound exceeds delta itself")
    width = 1.5 * max(upper - value, value - lower) / -slope + 4 * EPS * abs(root) + 1e-300
    high, low = root + width, root - width
    for _ in range(40):
        # The ends are certified by evaluating the bounds there, not by linearisation.
        if integral.log_bounds(high)[2] <= target:
            break
        high += width
        width *= 2
    else:
        raise NoBracketError("the contour's upper end could not be certified")
    if high <= 0:
        return Bracket(0.0, 0.0, "contour")
    width = root - low
    for _ in range(40):
        if low <= 0 or integral.log_bounds(low)[0] >= target:
            break
        low -= width
        width *= 2
    else:
        raise NoBracketError("the contour's lower end could not be certified")
    return Bracket(max(low, 0.0), high, "contour")


def root_of(integral: _Integral, guess: float, target: float) -> float:
    """The epsilon at which the sum equals its target: Newton, from the Chernoff value down."""
    for share in _STARTS:
        x, (_, value, upper, slope) = share * guess, integral.log_bounds(share * guess)
        if math.isfinite(value) and slope < 0 and upper - value < 0.01:
            break
    low, high = -math.inf, math.inf
    for _ in range(60):
        if not math.isfinite(value) or not slope < 0:
            raise NoBracketError("the contour's sum is lost in its own error")
        low, high = (x, high) if value > target else (low, x)
        step = (value - target) / slope
        if abs(step) <= 4 * EPS * (abs(x) + 1e-300) or abs(value - target) < max(1e-14, 0.1 * (upper - value)):
            break
        x = x - step if low < x - step < high or math.isinf(high - low) else (low + high) / 2
        _, value, upper, slope = integral.log_bounds(x)
    return x
