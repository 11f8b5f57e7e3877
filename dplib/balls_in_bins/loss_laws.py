"""The loss of balls in independent bins as finitely many atoms, from above and from below, so that it composes with other phases.

The loss itself has no density in closed form, but its hockey-stick curve H has a bracket at every epsilon [A-16]. In x = e^epsilon
H is convex, falls from 1 at x = 0, and every such curve that is linear between places belongs to atoms at the places.

above   The lower convex hull of the upper ends at the places: a convex curve lies below its chords.
below   Between two places H lies above the chords of the neighbouring intervals, prolonged: (lower end here - upper end there) is
        at most the slope of H. The larger of both prolongations is piecewise linear; its lower convex hull lies below it.

What lies above one curve, or below it, does so in every composition [C-7]. Beyond the last place the upper law has an infinite loss,
the lower one nothing.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .. import gaussian
from .._base.log_space import EPS
from ..mixtures import Atoms
from ..results import NoBracketError
from . import lognormal_sum

_PLACES = 240  # at which the curve is bracketed
_TOLERANCE = 1e-4  # relative, of the brackets there
_CUT = 1e-20  # about the delta beyond the last place, on either side
_ROUNDING = 1e-9  # relative: norm_squared may be off by some units in the last place
_LARGEST_LOSS = 300.0


def _ends(bins, norm_squared, epsilon, side):
    """(lower, upper) end of delta at an epsilon of at least 0."""
    found = lognormal_sum._widest(bins, norm_squared, epsilon, side, _TOLERANCE)
    return found.lower * (1 - _ROUNDING), found.upper * (1 + _ROUNDING)


def _curves(bins, norm_squared, places):
    """{side: (x = e^epsilon, lower, upper ends of delta)}, increasing in x: remove at these epsilons, add at their negatives.

    One bracket for each place serves both, as H_x(P || Q) = 1 - x + x H_{1/x}(Q || P).
    """
    ends = np.array([_ends(bins, norm_squared, abs(place), "remove" if place >= 0 else "add") for place in places])
    x, inverse, forward = np.exp(places), np.exp(-places), places >= 0
    remove = [np.where(forward, end, -np.expm1(places) + x * end) for end in ends.T]
    add = [np.where(forward, -np.expm1(-places) + inverse * end, end)[::-1] for end in ends.T]
    return {"remove": (x, *remove), "add": (inverse[::-1], *add)}


def _reach(bins, norm_squared, side):
    """An epsilon at which delta is about what is cut; a little more than the smallest one."""
    reach = gaussian.epsilon(math.sqrt(norm_squared), _CUT)  # of one mode alone, which is above
    while reach > 1e-9 and _ends(bins, norm_squared, 0.8 * reach, side)[1] <= _CUT:
        reach *= 0.8
    return reach


@lru_cache(maxsize=64)
def atoms(bins: int, norm_squared: float, noise_multiplier: float) -> tuple[Atoms, Atoms]:
    """(from above, from below): pairs with finitely many losses around one of b bins, of which every mode has this squared norm over sigma^2.

    bins : b >= 2. norm_squared : above 0. noise_multiplier : what is said of it. Raises NoBracketError where losses leave the range of floats. Cost: seconds.
    """
    ends = {side: _reach(bins, norm_squared, side) for side in ("remove", "add")}
    if max(ends.values()) > _LARGEST_LOSS:
        raise NoBracketError(f"losses of {max(ends.values()):.3g} in one round of balls in bins leave the range of floats")
    # Most losses are about as large as delta at 0: there the places are dense; beyond, about evenly spread.
    middle = max(4 * _ends(bins, norm_squared, 0.0, "remove")[1], 1e-6 * sum(ends.values()))
    places = middle * np.sinh(np.linspace(-math.asinh(ends["add"] / middle), math.asinh(ends["remove"] / middle), _PLACES))
    sides = _curves(bins, norm_squared, places)
    above, below = ({side: law(*found) for side, found in sides.items()} for law in (_above, _below))
    return Atoms(above["remove"], above["add"], noise_multiplier), Atoms(below["remove"], below["add"], noise_multiplier)


def _above(x, low, high):
    """(losses, masses, mass of an infinite loss) of the hull of the upper ends."""
    x, y = _hull(np.concatenate([[0.0], x]), np.concatenate([[1.0], np.maximum(high, low)]))
    losses, masses = _masses(x, y, last=0.0)
    # The curve of these masses in positive terms: what rounding took is given back.
    share = 1 - np.minimum(x[1:, None] / x[1:], 1.0)
    missing = max(float(np.max(y / (np.concatenate([[masses.sum()], share @ masses]) + y[-1]))) - 1, 0.0)
    growth = 1 + missing + 64 * EPS * len(masses)
    return losses, masses * growth, min(float(y[-1]) * growth, 1.0)


def _below(x, low, high):
    """The same of the hull of what the chords of neighbouring intervals, prolonged, leave; nothing is infinite."""
    x, low, high = (np.concatenate([[first], values]) for first, values in ((0.0, x), (1.0, low), (1.0, high)))
    low = np.maximum(low, 1 - x)  # both laws have mass 1
    low[1] = 1 - x[1]  # no more is known in the first interval
    slopes_before = (low[1:-2] - high[:-3]) / (x[1:-2] - x[:-3])  # on [x1, x2] from [x0, x1]
    slopes_after = (high[3:] - low[2:-1]) / (x[3:] - x[2:-1])  # from [x2, x3]
    left, right = x[1:-2], x[2:-1]
    # Where the two lines meet inside; else the larger of them is one line on the whole interval.
    gap = slopes_after - slopes_before
    meet = np.clip((low[1:-2] - low[2:-1] + slopes_after * right - slopes_before * left) / np.where(gap > 0, gap, 1.0), left, right)
    value = np.minimum(low[1:-2] + slopes_before * (meet - left), low[2:-1] - slopes_after * (right - meet))
    inside = (gap > 0) & (meet > left) & (meet < right)
    points = np.concatenate([x[:-1], meet[inside]]), np.concatenate([low[:-1], np.maximum(value[inside], 0.0)])
    # Beyond the last place but one only the line from the left is known; it falls to zero.
    falls = (high[-3] - low[-2]) / (x[-2] - x[-3])
    points = np.append(points[0], x[-2] + (low[-2] / falls * (1 - 1e-9) if low[-2] > 0 else 0.0)), np.append(points[1], 0.0)
    order = np.lexsort((-points[1], points[0]))
    x, y = _hull(points[0][order], points[1][order])
    losses, masses = _masses(x, y, last=0.0)
    share = 1 - np.minimum(x[1:, None] / x[1:], 1.0)
    found = np.concatenate([[masses.sum()], share @ masses])
    more = max(float(np.max(found[y > 0] / y[y > 0])) - 1, 0.0)
    return losses, masses * (1 - more - 64 * EPS * len(masses)), 0.0


def _masses(x, y, last):
    """(losses, masses under the first law) of the curve that is linear between (x, y), from x = 0 on; `last`: its slope beyond."""
    slopes = np.append(np.diff(y) / np.diff(x), last)
    return np.log(x[1:]), x[1:] * np.maximum(np.diff(slopes), 0.0)


def _hull(x, y):
    """The points of the lower convex hull, where it falls."""
    kept = []
    for i in range(len(x)):
        while len(kept) > 1:
            a, b = kept[-2:]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    while len(kept) > 2 and y[kept[-1]] >= y[kept[-2]]:
        kept.pop()
    return x[kept], y[kept]
