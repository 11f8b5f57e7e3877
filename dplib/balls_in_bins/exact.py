"""Balls in bins without sampling: where the pair of the modes has an exact accountant.

Two kinds of Gram matrix have one:

    equal modes     all entries equal (a single batch, or a single mode): a Gaussian mechanism [N-3.2], [C-6]
    independent     a multiple of the identity (C = I): a sum of lognormals [A-16]
"""

from __future__ import annotations

import math

import numpy as np

from .. import gaussian
from .._base import validate as check
from .._base.lazy_scipy import optimize
from ..results import Bracket, NoBracketError
from . import lognormal_sum

_SAME = 1e-12  # relative differences of entries that are rounding
_NOISE = 1e-6  # relative, of the noise multiplier
_FARTHEST = 100.0  # in log noise: the last step of a search
_LEAST, _MOST = 1e-290, 1 - 1e-8  # delta of a search for noise
_ROUNDING = 1e-9  # relative error of an entry, up to four million rounds


def kind(gram):
    """ "equal modes", "independent", or None where only sampling helps. gram : shape (b, b), entries at least 0."""
    largest = float(gram.max())
    if float(gram.min()) >= largest * (1 - _SAME):
        return "equal modes"
    diagonal = gram.diagonal()
    if float(diagonal.min()) >= largest * (1 - _SAME) and np.count_nonzero(gram) == len(gram):
        return "independent"
    return None


def bracket(gram, epsilon, side) -> Bracket:
    """Bracket of delta at `epsilon` >= 0, for a Gram matrix of either kind (over sigma^2)."""
    norm_squared = float(gram.max())
    if kind(gram) == "independent":
        found = lognormal_sum.bracket(len(gram), norm_squared, epsilon, side)
        if found.upper <= lognormal_sum.FLOOR:
            return found
        # Entries are sums of few terms here, good to 1e-14.
        return Bracket(found.lower * (1 - _ROUNDING), min(1.0, found.upper * (1 + _ROUNDING)), found.method)
    ends = []
    for sign in (-1, 1):
        # The larger the modes, the larger delta [M-K].
        value = gaussian.log_delta(math.sqrt(norm_squared) * (1 + sign * _ROUNDING), epsilon)
        ends.append(math.exp(min(value + sign * gaussian.TAIL_ERROR * (1 + abs(value)), 0.0)))
    # Below the smallest float the upper end must not become 0.
    return Bracket(ends[0], max(ends[1], lognormal_sum.FLOOR), "closed form")


def epsilon_bracket(gram, delta, side) -> Bracket:
    """Bracket of epsilon at `delta` in (0, 1)."""
    norm_squared = float(gram.max())
    if kind(gram) == "independent":
        return lognormal_sum.epsilon_bracket(len(gram), norm_squared, delta, side)
    ends = [
        gaussian.epsilon(math.sqrt(norm_squared) * (1 + sign * _ROUNDING), delta) * (1 + sign * _ROUNDING)
        for sign in (-1, 1)
    ]
    return Bracket(ends[0], ends[1], "closed form")


def noise_multiplier(gram, epsilon, delta, side) -> float:
    """Smallest noise whose upper bound of delta at `epsilon` meets `delta`, to 1e-6; gram at noise multiplier 1."""
    check.real("delta", delta, at_least=_LEAST, at_most=_MOST)

    def excess(x):
        found = bracket(gram * math.exp(-2 * x), epsilon, side).upper
        return math.log(found / delta) if found > 0 else -1e3

    # Never more noise than without random bins [N-3.2].
    x = math.log(math.sqrt(float(gram.max())) / gaussian.calibrate(epsilon, delta)) + 1e-7

    def steer(x):
        try:
            return excess(x)
        except NoBracketError:  # refused far below the target
            return -1.0

    if kind(gram) != "equal modes":
        low, step = x, 0.1
        while steer(low) <= 0:
            if step > _FARTHEST:
                raise NoBracketError("no bracket of delta near the noise that is looked for")
            low, step = low - step, 2 * step
        x = float(optimize.brentq(steer, low, x, xtol=_NOISE / 2))
    while excess(x) > 0:
        x += _NOISE / 2
    return math.exp(x)
