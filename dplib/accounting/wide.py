"""Bounds that always exist: Chernoff's above, Hoelder's below. Wide, and proved at both ends.

They answer where no accountant closes: delta below what a float can hold, or within a
rounding of 1.

above   losses beyond a cut count as infinite, the others as E e^{cL} says: delta(eps) is at most
        rounds * P[L > cut] + e^{K(c) - c eps} c^c / (1+c)^(1+c), K of the upper lattice law.
below   delta(eps) is at least P[S] - e^eps Q[S] for every set S of outcomes; and
        1 - delta(eps) = E min(1, e^{eps - L}) <= e^{t eps} E e^{-tL} for every t in [0, 1], and one
        round's int P^{1-t} Q^t is at most sum_i P(cell_i)^{1-t} Q(cell_i)^t (Hoelder in each cell).

With hardly any noise nearly every run in direction "add" has nearly the largest loss, the ceiling,
which brackets both epsilon and delta.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import optimize, special
from .._base.log_space import EPS, log_kernel, log_sum_exp
from ..mixtures import Atoms, DisjointUnion, Folded
from ..results import Bracket, NoBracketError, _inside_floats, _outward_exp
from . import chernoff, lattice, renyi
from .lattice_composition import rounding
from .lattice_round import Law
from .tries import in_pieces

_CELLS = 2000  # of the Chernoff law, and of the partition of one round
_LARGEST_STEP = 300.0  # of the Chernoff law: (1 + c) h
_LARGEST_TILT = 1e6
_LOG_SMALLEST = -745.0  # log of the smallest float
LOG_CERTAIN = -14.0  # log of a 1 - delta that is no practical one
_ALMOST = 0.999  # a lower end of delta that needs no better upper one than 1
_SMALL = -60.0  # log of a delta that needs no better bound
_STEEP = 100.0  # the largest shift with which Renyi orders are searched for a better bound
_TERMS = 1_000_000  # cells times components held at once
_MOST_TERMS, _FEWEST_CELLS = 20_000_000, 50  # cells times components in all: half a second
_ROUNDING = 1e-12  # of one round's log int P^{1-t} Q^t
_THRESHOLDS = np.linspace(-8.0, 40.0, 193)  # of outcomes, for losses near the largest one


def at_a_glance(parts, epsilon, direction, rough):
    """The bracket in a millisecond where delta is below the smallest float, or hardly differs from 1; else None."""
    try:
        with _inside_floats():
            if rough < _LOG_SMALLEST and not in_pieces(parts) and renyi_log_delta(parts, epsilon, direction) < _LOG_SMALLEST:
                return Bracket(0.0, 5e-324, "Chernoff")
            if rough > -1 and (miss := log_miss(parts, epsilon, direction)) < LOG_CERTAIN:
                return Bracket(math.nextafter(-math.expm1(miss), 0.0), 1.0, "Chernoff")
    except (NoBracketError, ValueError):
        pass
    return None


def bracket(parts, epsilon, direction):
    """The bracket where no accountant closes: Chernoff's bound above, and below 0 or what is within a rounding of 1."""
    log_found = log_upper(parts, epsilon, direction, quick=True)
    miss = log_miss(parts, epsilon, direction) if log_found > math.log(0.5) else 0.0
    lower = max(math.nextafter(-math.expm1(miss), 0.0), 0.0)
    if lower < _ALMOST:
        log_found = _searched(parts, epsilon, direction, log_found)
    upper = _outward_exp(-math.inf, log_found)[1]
    return Bracket(min(lower, upper), upper, "Chernoff")


def log_upper(parts, epsilon, direction, *, quick=False):
    """Upper bound of log delta(epsilon), at most 0: the smallest of Chernoff's with a cut, and of Renyi's."""
    found = 0.0
    for bound in _of(parts, _chernoff, renyi_log_delta):
        found = _smaller(found, bound, parts, epsilon, direction)
    return found if quick else _searched(parts, epsilon, direction, found)


def _searched(parts, epsilon, direction, found):
    """`found`, or the bound of the best Renyi order: the search takes longest, and helps where neither of the others does."""
    return found if in_pieces(parts) else _smaller(found, _renyi_delta, parts, epsilon, direction)


def _smaller(found, bound, parts, epsilon, direction):
    """`found`, or a bound where `found` is not small and it is smaller."""
    if found < (0.0 if _is_steep(parts) else _SMALL):
        return found
    try:
        with _inside_floats():
            return min(found, bound(parts, epsilon, direction))
    except (NoBracketError, ValueError):
        return found


def _is_steep(parts):
    """Whether a search over Renyi orders takes seconds: its integrals are as long as shifts times orders."""
    return max((float(abs(shifts).max()) for pair, _ in parts for shifts, _ in pair.laws()), default=0.0) > _STEEP


def _of(parts, chernoffs, *renyis):
    """The bounds there are: a pair in pieces has no Renyi curve here."""
    return (chernoffs,) if in_pieces(parts) else (chernoffs, *renyis)


def _chernoff(parts, epsilon, direction):
    solver = lattice._Solver(parts, direction, epsilon=epsilon, for_chernoff=True)
    if sum(step.rounds * step.high for step in solver.losses.steps) * (1 + 1e-12) <= epsilon:
        # What the cut has left never adds up to epsilon.
        tails = [step.log_high_tail + math.log(step.rounds) for step in solver.losses.steps]
        return float(np.logaddexp.reduce(tails)) + 1e-9
    log_moment, error, log_infinite = _moment(solver)
    log_finite = log_moment + error - solver.c * epsilon + log_kernel(solver.c)
    return float(np.logaddexp(log_finite + 1e-12 * (abs(log_finite) + solver.c * epsilon), log_infinite))


def _renyi_delta(parts, epsilon, direction):
    return renyi.log_delta(renyi.facing_curve(parts, direction), epsilon)[0]


def renyi_log_delta(parts, epsilon, direction):
    """Upper bound of log delta(epsilon) by the one Renyi order that Chernoff's saddle names."""
    order = 1 + min(max(chernoff.Chernoff(parts, direction).tilt(epsilon), 1e-3), _LARGEST_TILT)
    return renyi.log_delta(renyi.facing_curve(parts, direction), epsilon, orders=[order])[0]


def log_lower(parts, epsilon, direction):
    """Lower bound of log delta(epsilon), -inf where none is found: that of the best of some tests.

    A test looks at one round, or at all rounds of one mixture, and says whether every loss it sees is above a
    threshold: delta is at least P[yes] - e^eps Q[yes].
    """
    best = -math.inf
    for mixture, rounds in parts if not in_pieces(parts) else ():
        sign = mixture.orientation(direction)
        for n in {1, rounds}:
            middle = mixture.inverse_log_ratio(np.array([sign * epsilon / n]))
            middle = middle[np.isfinite(middle)]
            low, top = _reach(mixture)
            u = np.concatenate([middle, *(m + np.linspace(-5, 5, 21) for m in middle), np.linspace(low - 9.0, top + 9.0, 200)])
            first, second = mixture.log_tails(u, sign)[::sign]
            top = max(top, -low)
            # Of the logarithms, and of the distances between shifts and thresholds.
            share, apart = 1e-13 + mixture.log_probability_error, 8 * EPS * (np.abs(u) + top)
            pads = [share * (1 + np.abs(logs)) + apart * (2 + np.sqrt(2 * np.abs(logs))) for logs in (first, second)]
            first, second = n * (first - pads[0]), n * (second + pads[1])
            gap = epsilon * (1 + 1e-12) + second - first
            if (yes := gap < 0).any():
                best = max(best, float(np.max(first[yes] + np.log(-np.expm1(gap[yes])))))
    return best - 1e-12 * (1 + abs(best)) if best > -math.inf else best


def epsilon_below_ceiling(parts, delta):
    """Bracket of epsilon in direction "add" by the largest loss there is, or None where that is infinite or far away."""
    if in_pieces(parts):
        return None
    ceiling, total, certain = _below_ceiling(parts)
    enough = certain > math.log(delta)
    if not (ceiling < math.inf and enough.any()):
        return None
    lower = float(np.max(total[enough] + np.log(-np.expm1(math.log(delta) - certain[enough]))))
    upper = ceiling * (1 + 1e-13) + math.log1p(-delta)
    lower, upper = max(lower - 1e-13 * ceiling, 0.0), max(upper, 0.0)
    return Bracket(min(lower, upper), upper, "largest loss")


def delta_below_ceiling(parts, epsilon):
    """Bracket of delta in direction "add", as `epsilon_below_ceiling`."""
    if in_pieces(parts):
        return None
    ceiling, total, certain = _below_ceiling(parts)
    if not ceiling < math.inf:
        return None
    # Rounding of the difference of two losses, relative to what it leaves.
    gap, gaps = ceiling * (1 + 1e-13) - epsilon, total - 1e-13 * ceiling - epsilon
    upper = -math.expm1(min(-gap, 0.0)) * (1 + 1e-15)
    lower = float(np.max(np.exp(certain) * -np.expm1(np.minimum(-gaps, 0.0)))) * (1 - 1e-15)
    return Bracket(min(lower, upper), min(upper, 1.0), "largest loss")


def _below_ceiling(parts):
    """(C, sums S, logs of probabilities A): no run loses more than C, and one loses S at least with probability A.

    delta(eps) is at most 1 - e^{eps - C} and at least A (1 - e^{eps - S}). S is the sum of the losses at a threshold:
    those of smaller outcomes are larger.
    """
    # A floor is off by twice the error of the log-probabilities, relative to its size.
    ceiling = -math.fsum(rounds * m.log_floor * (1 + 2 * m.log_probability_error) for m, rounds in parts)
    total, certain = np.zeros((2, len(_THRESHOLDS)))
    for mixture, rounds in parts if ceiling < math.inf else ():
        ratio, slope = mixture.log_ratio_and_slope(_THRESHOLDS)
        loss = -ratio - mixture.log_ratio_error(ratio, slope, _THRESHOLDS)
        total += rounds * np.maximum(loss, -1e300)
        certain += rounds * special.log_ndtr(_THRESHOLDS) * (1 + _ROUNDING)
    return ceiling, total - 1e-13 * np.abs(total), certain


def epsilon_upper(parts, delta, direction):
    """Upper bound of the smallest epsilon with delta(epsilon) <= delta; NoBracketError where there is none."""
    bounds, reasons = [], []
    for bound in _of(parts, _chernoff_epsilon, _renyi_epsilon):
        if bounds and _is_steep(parts):
            break
        try:
            with _inside_floats():
                bounds.append(bound(parts, delta, direction))
        except (NoBracketError, ValueError) as error:
            reasons.append(str(error))
    if not bounds:
        raise NoBracketError("; ".join(reasons))
    return max(min(bounds), 0.0)


def _chernoff_epsilon(parts, delta, direction):
    solver = lattice._Solver(parts, direction, log_delta=math.log(delta), for_chernoff=True)
    log_moment, error, log_infinite = _moment(solver)
    left = delta - math.exp(log_infinite) * (1 + 1e-12)
    if not left > 0:
        raise NoBracketError("what is cut is more than delta")
    terms = log_moment + error, log_kernel(solver.c), -math.log(left)
    return (math.fsum(terms) + 1e-12 * sum(map(abs, terms))) / solver.c


def _renyi_epsilon(parts, delta, direction):
    return renyi.to_epsilon(renyi.facing_curve(parts, direction), delta).upper


def _moment(solver):
    """(log E e^{cL} of the upper law of all rounds, its rounding, log mass of what counts as infinite)."""
    h = min(solver.losses.reach / _CELLS, _LARGEST_STEP / (1 + solver.c))
    if solver.losses.reach / h > 100 * _CELLS:
        raise NoBracketError("the loss spreads over too many steps")
    log_moment = error = 0.0
    log_infinite = -math.inf
    for step in solver.losses.steps:
        law = Law(step, h, solver.c)
        log_moment += step.rounds * law.log_moment("upper", solver.c)
        error += step.rounds * rounding(law, 16)
        log_infinite = np.logaddexp(log_infinite, law.log_infinite + math.log(step.rounds))
    return log_moment, error, float(log_infinite)


def log_miss(parts, epsilon, direction):
    """Upper bound of log(1 - delta(epsilon)), at most 0."""
    cells = [(_cells(mixture, direction), rounds) for mixture, rounds in parts]

    def bound(t):
        logs = [rounds * (float(log_sum_exp((1 - t) * p + t * q)) + _ROUNDING) for (p, q), rounds in cells]
        return t * epsilon * (1 + _ROUNDING) + math.fsum(logs)

    found = optimize.minimize_scalar(bound, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-3})
    return min(bound(float(found.x)), 0.0)


def _reach(mixture):
    """The least and the largest shift of either law."""
    ends = [shift for shifts, _ in mixture.laws() for shift in (float(shifts[0]), float(shifts[-1]))]
    return min(ends), max(ends)


def _cells(mixture, direction):
    """(log P-mass, log Q-mass) of the cells of a partition of the outcomes; P is the law of the direction."""
    if isinstance(mixture, DisjointUnion):
        parts = [(math.log(weight), _cells(pair, direction)) for weight, pair in mixture.pieces]
        return tuple(np.concatenate([log_weight + cells[law] for log_weight, cells in parts]) for law in (0, 1))
    if isinstance(mixture, Atoms):
        losses, masses, _ = mixture.law(direction)  # an infinite loss has no mass under the second law
        logs = np.log(np.maximum(masses, 1e-300))
        return logs, logs - losses
    if isinstance(mixture, Folded):
        # Of the outcomes above the middle, in both orders; what is left has loss 0.
        first, second = _line(mixture.mixture, "remove", above=mixture.middle)
        return tuple(np.concatenate([*halves, [mixture.log_at_zero]]) for halves in ((first, second), (second, first)))
    return _line(mixture, direction)


def _line(mixture, direction, above=-math.inf):
    """The same for one mixture, of the outcomes above a place."""
    (low, top), laws = _reach(mixture), mixture.laws()
    # Of many components fewer cells are taken, so that the work is bounded: any partition serves.
    count = int(min(_CELLS, max(_FEWEST_CELLS, _MOST_TERMS / sum(len(shifts) for shifts, _ in laws))))
    edges = np.concatenate([[above], np.linspace(max(low - 9.0, above + 1e-6), top + 9.0, count), [np.inf]])
    together, masses = max(1, _TERMS // len(edges)), []
    for shifts, probabilities in laws:
        mix = np.zeros(len(edges) - 1)
        for start in range(0, len(shifts), together):
            part = slice(start, start + together)
            mix += probabilities[part] @ _normal_masses(edges - shifts[part, None])
        masses.append(_logarithms(mix, edges, float(shifts.min()), float(shifts.max())))
    return tuple(masses[:: mixture.orientation(direction)])


def _logarithms(masses, edges, least, most):
    """log of the masses of cells under means from `least` to `most`; of those that underflow, bounds by the mass to one side."""
    sides = np.minimum(special.log_ndtr(edges[1:] - least), special.log_ndtr(most - edges[:-1]))
    return np.minimum(np.log(np.maximum(masses, 1e-300)), sides * (1 - 1e-14))


def _normal_masses(edges):
    """Masses of a standard normal variable between neighbouring edges, from the nearer tail."""
    low, high = edges[..., :-1], edges[..., 1:]
    flip = low + high > 0
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    return special.ndtr(high) - special.ndtr(low)
