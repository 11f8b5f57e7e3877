"""What an attacker can do who asks whether a record was there, certified from brackets of delta.

P is the law of the output with the record, Q without it, the worst case over everything else. An attack that says "there" on
an event E is right with probability P(E), its true positive rate, and wrong with Q(E), its false positive rate. The best rates
and h(alpha) = H_alpha(P, Q) determine each other [C-2]: R(level) = min over alpha of h(alpha) + alpha level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

import numpy as np

from .. import gaussian
from .._base import validate as check
from .._base.log_space import EPS
from .._base.validate import Direction
from ..results import Bracket

_PAD = 32 * EPS
_REACH = 0.1  # the grid ends where the slope is this times the smallest rate: steeper lines bound nothing
_PARTS = 8  # of a step of the grid, on which mu is bounded
_CALIBRATED = 1e-11  # what `gaussian.calibrate` may lose of mu below _MOST_DELTA
_MOST_DELTA = 0.99


class Mechanism(Protocol):
    """Whatever brackets its delta: PoissonDPSGD, FixedBatchDPSGD, LastIterate, BallsInBins with independent noise."""

    def delta(self, epsilon: float, direction: Direction = "both") -> Bracket: ...
    def epsilon(self, delta: float, direction: Direction = "both") -> Bracket: ...


def true_positive_rates(mechanism: Mechanism, false_positive_rates: Iterable[float], points: int = 128) -> list[Bracket]:
    """The largest true positive rate of any attack, at each false positive rate.

    Parameters
    ----------
    mechanism : has `delta(epsilon, direction)`, a Bracket in each direction, as mechanisms with an exact accountant.
    false_positive_rates : one or more numbers in (0, 1).
    points : at least 3, of the grid on which delta is asked for, in both directions. More make the brackets narrower.

    `upper` holds for every attack on every dataset. `lower` is reached by an attack where the mechanism's dominating pair is reached.
    Both hold whatever the grid is. Cost: 2 * `points` times `delta`. Raises ValueError or TypeError on bad input, and what `delta` raises.

    >>> from dplib import PoissonDPSGD
    >>> from dplib.bridges import attack
    >>> [found] = attack.true_positive_rates(PoissonDPSGD(1.0, 0.01, 2000), [0.001])
    >>> print(f"{found.upper:.4f}")
    0.0066
    """
    if not isinstance(false_positive_rates, Iterable) or getattr(false_positive_rates, "ndim", 1) == 0:
        raise TypeError(f"false_positive_rates must be a sequence of numbers in (0, 1); got {false_positive_rates!r}")
    levels = [check.real("false_positive_rates", level, above=0, below=1) for level in false_positive_rates]
    if not levels:
        raise ValueError("false_positive_rates must not be empty")
    count = check.whole("points", points, at_least=3, at_most=10**5)
    alpha, low, high = _curve(mechanism, np.linspace(0, -math.log(min(levels) * _REACH), count))
    return [_rate(alpha, low, high, level) for level in levels]


def gaussian_mu(mechanism: Mechanism, delta: float, points: int = 64) -> Bracket:
    """The smallest mu for which the Gaussian curve lies above the mechanism's at every (epsilon, delta') with delta' >= `delta`.

    Parameters
    ----------
    mechanism : as for `true_positive_rates`; also has `epsilon`.
    delta : in (0, 1). Without it mu would be that of the unsampled mechanism: far out, at deltas that nobody asks for, sampling helps no more.
    points : at least 3, of the grid on which delta is asked for.

    `upper` is a guarantee, as good as mu-GDP for all claims with delta' >= `delta`, in both directions; below `lower` a claim is false for
    the mechanism's dominating pair. Cost: `points` times `delta`, and as many roots. Raises ValueError or TypeError on bad input,
    and where delta(0) is above 0.99; NoBracketError as the mechanism.

    >>> from dplib import PoissonDPSGD
    >>> from dplib.bridges import attack
    >>> print(f"{attack.gaussian_mu(PoissonDPSGD(2.0, 1.0, 1), 1e-6).upper:.3f}")
    0.505
    """
    delta = check.delta(delta)
    count = check.whole("points", points, at_least=3, at_most=10**5)
    first = _bracket(mechanism, 0.0, "both")
    if first.upper > _MOST_DELTA:
        raise ValueError(f"mechanism must have delta(0) of at most {_MOST_DELTA}; got {first.upper:g}")
    last = float(mechanism.epsilon(delta).upper)
    epsilons = np.linspace(0, last, count) if last > 0 else np.zeros(1)
    found = [first, *(_bracket(mechanism, e, "both") for e in epsilons[1:])]
    lower = max(_mu(e, bracket.lower) for e, bracket in zip(epsilons, found))
    upper = _mu(last, found[-1].upper)
    for i in range(len(found) - 1):
        # h is convex in alpha: below its chord, and at most the chord's left end on each part of the step.
        left, right = found[i].upper, found[i + 1].upper
        parts = np.linspace(epsilons[i], epsilons[i + 1], _PARTS + 1)
        share = np.expm1(parts - parts[0]) / math.expm1(parts[-1] - parts[0])
        upper = max(upper, *(_mu(e, left + s * (right - left)) for e, s in zip(parts[1:], share[:-1])))
    return Bracket(lower, max(upper * (1 + _CALIBRATED), lower), "trade-off function")


def _rate(alpha, low, high, level):
    upper = float(np.min(high + alpha * level)) * (1 + _PAD)
    lower = _least(alpha, low, high, level) * (1 - _PAD) - _PAD
    return Bracket(max(lower, level), max(min(upper, 1.0), level), "trade-off function")


def _bracket(mechanism, epsilon, side):
    found = mechanism.delta(float(epsilon), side)
    if not isinstance(found, Bracket):
        kind = type(found).__name__
        raise TypeError(f"mechanism must answer with a Bracket; the delta of a {type(mechanism).__name__} is of type {kind} here")
    return found


def _mu(epsilon, delta):
    return gaussian.calibrate(float(epsilon), float(delta)) if delta > 0 else 0.0


def _curve(mechanism, epsilons):
    """(alpha, lower, upper) of h, alpha rising: H_(1/a)(P, Q) = 1 - 1/a + H_a(Q, P) / a."""
    remove, add = ([_bracket(mechanism, e, side) for e in epsilons] for side in ("remove", "add"))
    ends = lambda found: np.array([(bracket.lower, bracket.upper) for bracket in found])
    scale = np.exp(-epsilons[:0:-1])[:, None]
    small = (1 - scale) + scale * ends(add)[:0:-1]
    values = np.concatenate([small + np.array([-_PAD, _PAD]), ends(remove)])
    return np.concatenate([scale[:, 0], np.exp(epsilons)]), values[:, 0], values[:, 1]


def _least(alpha, low, high, level):
    """A lower bound of h(alpha) + alpha level over all alpha >= 0: between two points h, convex, lies above the
    lines through the points next to them; everywhere above 1 - alpha and 0, and it does not rise."""
    step = np.diff(alpha)
    from_left = np.concatenate([[-1.0], (low[1:-1] - high[:-2]) / step[:-1]])  # slopes, a step each
    from_right = np.concatenate([(high[2:] - low[1:-1]) / step[1:], [0.0]])
    at_left = np.concatenate([[1 - alpha[0]], low[1:-1]])  # the line of the left end at the left end
    apart = from_left - from_right  # below 0, but for rounding: then both are one line
    kink = (low[1:] - from_right * step - at_left) / np.where(apart < 0, apart, -1.0)
    values = []
    for x in (np.zeros_like(step), step, np.clip(kink, 0, step)):
        line = np.maximum(at_left + from_left * x, low[1:] + from_right * (x - step))
        values.append(np.maximum(line, 0) + (alpha[:-1] + x) * level)
    return min(float(np.min(values)), 1 - alpha[0] * (1 - level), float(alpha[-1]) * level)
