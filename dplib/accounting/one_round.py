"""One round in closed form: the loss of a mixture is monotone in its outcome, so that a threshold says all."""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import optimize, special
from .._base.log_space import EPS, log_sum_exp
from .._base.validate import Direction
from ..gaussian import TAIL_ERROR
from ..mixtures import Mixture, TwoSided
from ..results import Bracket, NoBracketError, _inside_floats

_WIDEST = 1e-6  # of log delta with mixtures on both sides, where two tails are subtracted


@_inside_floats()
def log_delta(mixture: Mixture | TwoSided, epsilon: float, direction: Direction) -> Bracket | None:
    """Bracket of log delta(epsilon) of one round, None where delta is zero; NoBracketError where two tails cancel."""
    sign = mixture.orientation(direction)
    u = mixture.inverse_log_ratio(np.array([sign * epsilon]))
    if not np.isfinite(u[0]):
        return None
    value, slope, slack = _at(mixture, u, direction)
    # The threshold solves loss = eps up to rounding: delta is exact for a nearby epsilon.
    slack += slope * (abs(sign * float(mixture.log_ratio(u)[0]) - epsilon) + EPS * epsilon)
    if isinstance(mixture, TwoSided) and not slack < _WIDEST:
        raise NoBracketError("the tails of one round cancel")
    return Bracket(value - slack, min(value + slack, 0.0), "closed form")


def _at(mixture, u, direction):
    """(log delta, -d log delta / d eps, error of log delta) for the threshold u, shape (1,)."""
    value = float(mixture._log_delta_at(u, direction)[0])
    if isinstance(mixture, TwoSided):
        logs = [float(tail[0]) for tail in mixture.log_tails(u, 1)]
        slope = math.exp(min(logs[1] + float(mixture.log_ratio(u)[0]) - value, 700.0)) if value > -math.inf else math.inf
        # The errors of both tails, over their difference.
        slack = (4 * TAIL_ERROR * (2 + sum(map(abs, logs))) + mixture.log_probability_error) * (1 + 2 * slope)
        return value, slope, slack + slope * _loss_error(mixture, u)
    if direction == "remove":
        log_second = float(mixture.log_ratio(u)[0]) + float(special.log_ndtr(-u[0]))
    else:
        log_second = -float(mixture.log_ratio(u)[0]) + float(
            log_sum_exp(mixture.log_probabilities + special.log_ndtr(u[0] - mixture.shifts))
        )
    slope = math.exp(min(log_second - value, 700.0))
    slack = 4 * TAIL_ERROR * (1 + abs(value)) + mixture.log_probability_error
    return value, slope, slack + slope * _loss_error(mixture, u)


def _loss_error(mixture, u):
    """Rounding error of the loss at u, shape (1,)."""
    # The threshold u is itself rounded: four times the error of the loss at a given u.
    return 4 * float(mixture.log_ratio_error(*mixture.log_ratio_and_slope(u), u)[0])


@_inside_floats()
def epsilon(mixture: Mixture | TwoSided, delta: float, direction: Direction) -> Bracket:
    """Bracket of the smallest epsilon of one round; NoBracketError where two tails cancel. Solve for the threshold u: log delta is monotone in it, and eps is the loss there."""
    sign, log_delta = mixture.orientation(direction), math.log(delta)
    start = float(mixture.inverse_log_ratio(np.zeros(1))[0])
    gap = lambda u: max(float(mixture._log_delta_at(np.array([u]), direction)[0]) - log_delta, -1e9)
    value, _, slack = _at(mixture, np.array([start]), direction)
    if value + slack <= log_delta:
        return Bracket(0.0, 0.0, "closed form")
    step = 1.0
    while gap(start + sign * step) > 0:
        step *= 2
    if gap(start) <= 0:
        root = start
    else:
        root = optimize.brentq(gap, start, start + sign * step, xtol=1e-14, rtol=4 * EPS, maxiter=300)
    u = np.array([root])
    value, slope, slack = _at(mixture, u, direction)
    loss = max(sign * float(mixture.log_ratio(u)[0]), 0.0)
    if isinstance(mixture, TwoSided) and not slack + abs(value - log_delta) < _WIDEST:
        raise NoBracketError("the tails of one round cancel")
    width = 1.5 * (slack + abs(value - log_delta)) / slope + EPS * loss
    if not math.isfinite(width):
        raise NoBracketError(f"sensitivities of {mixture.shifts[-1]:g} times the noise: the loss is too steep for floats")
    return Bracket(max(loss - width, 0.0), loss + width, "closed form")
