"""One line through the region where the privacy loss exceeds a level [A-17].

On a line x = rest + t v, where v is a combination of the modes with weights >= 0, the privacy loss
Y(t) = log mean_l exp(rest_l + beta_l t) is convex and does not fall, since beta_l = <m_l, v> >= 0. So
it crosses a level once, and what lies beyond can be integrated along the line. The functions here
work on many lines at once: `rest`, `beta` and `shares` have shape (lines, b), the others (lines,).
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import log_sum_exp
from ..gaussian import LOG_SQRT_2PI

NODES = 4
_STEPS = 200
LOWEST = -60.0  # normal tails beyond are below 1e-780
_WIDE = 30.0  # growth beyond which 1 is nothing beside its exponential
_LARGEST = 680.0  # exp() of it, times b, is finite; larger terms have no probability
_CLOSE, _CLOSE_SHARE = 1e-8, 1e-3  # how near to the level a crossing is, in log w, at most so much of the steepest growth
_INSIDE = -1.5  # a crossing this far on the other side of the centre: most of the line counts
_SHAPE = 1.5
_MEAN = 1.2804  # mean of the distribution function (1 - exp(-s))^1.5


def crossing(rest, beta, level, guess, lowest=None):
    """Where sum_l exp(rest_l + beta_l t) = exp(level): (t, shares of the terms there, slope, excess).

    Newton's method on a convex function that does not fall: its first step from `guess` leads to the right
    of the root, and from there it goes down to the root and does not pass it. It stops where the level is
    exceeded by at most 1e-8, which `excess` says, or less where all terms grow slowly.

    lowest : where to stop looking; None for no limit. Where terms that hardly grow exceed the level by
        themselves, the excess there is large.
    """
    grows = beta > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # One term alone reaches the level there, and no term exceeds it before.
        latest = np.min(np.where(grows, (level - rest) / beta, np.inf), axis=1)
        if lowest is None:
            # Each term that grows is below its share of the level there.
            share = level - math.log(rest.shape[1])
            lowest = np.maximum(np.min(np.where(grows, (share - rest) / beta, np.inf), axis=1), -1e150)
    # Not further left, where the shares of the terms that grow would fall below all floats.
    rest, latest = rest - level, np.maximum(lowest, latest)
    lowest = np.broadcast_to(lowest, latest.shape)
    close = np.minimum(_CLOSE, _CLOSE_SHARE * beta.max(axis=1))
    t = np.clip(guess, lowest, latest)
    shares, slope, excess = np.empty_like(rest), np.empty_like(t), np.empty_like(t)
    todo = slice(None)
    for _ in range(_STEPS):
        terms = beta[todo] * t[todo, None]
        terms += rest[todo]
        np.minimum(terms, _LARGEST, out=terms)
        np.exp(terms, out=terms)
        total = np.sum(terms, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms /= total[:, None]
            rise = np.einsum("ij,ij->i", terms, beta[todo])
            gap = np.log(total)
            fresh = t[todo] - gap / rise
        here, low, late = t[todo], lowest[todo], latest[todo]
        fresh = np.where(np.isnan(fresh), np.where(gap > 0, low, late), np.clip(fresh, low, late))
        shares[todo], slope[todo], excess[todo] = terms, rise, gap
        going = ~((np.abs(gap) < close[todo]) | (fresh == here))
        if not np.any(going):
            break
        todo = np.arange(len(t))[todo][going]
        t[todo] = fresh[going]
    return t, shares, slope, np.maximum(excess, 0.0)


def loss_beyond(beta, shares, excess, distance):
    """Y(t + distance) minus the level, from the shares at the crossing: no cancellation at small distances."""
    growth = beta * distance[:, None]
    far = np.abs(growth).max(axis=1) > _WIDE
    growth_far = growth[far]
    np.clip(growth, -_WIDE, _WIDE, out=growth)
    np.expm1(growth, out=growth)
    with np.errstate(divide="ignore"):
        result = excess + np.log1p(np.einsum("ij,ij->i", growth, shares))
        if np.any(far):
            result[far] = excess[far] + log_sum_exp(growth_far + np.log(shares[far]))
    return result


def nodes(uniform, crossed, centre, near, reach, smooth=False):
    """Places beyond the crossing, and weights for sums of exp(-t^2/2) / sqrt(2 pi) * integrand there.

    uniform : one number in (0, 1) for each line; it shifts a grid of NODES points, so that the sum is
        unbiased, and exact up to a small remainder for smooth integrands.
    crossed, centre : the crossing t, and where on the line a normal law samples.
    near, reach : near the crossing the integrand times the normal density is taken to be like
        exp(-s^2/2) (exp(-near s) - exp(-(near + reach) s)), s = distance; any values are unbiased.

    Returns (distances, log weights), both of shape (NODES, lines); a weight includes the normal density
    around the centre at its place t = crossed + distance. Where the crossing is far below the
    centre the places are those of the normal law, cut off at the crossing; with `smooth` they are not, so
    that everything depends smoothly on the crossing.
    """
    p = np.clip((np.arange(NODES)[:, None] + uniform) / NODES, 1e-15, 1 - 1e-15)
    if not smooth:
        near = np.maximum(near, _INSIDE)
    first = _mean_distance(near)
    scale = np.maximum((first + _mean_distance(near + reach)) / _MEAN, 1.1 * first)
    q = p ** (1 / _SHAPE)
    log_rest = np.log1p(-q)
    distances = -scale * log_rest
    # The density of a distance is SHAPE p^(1/3) (1 - q) / scale.
    log_weights = np.log(scale / (_SHAPE * NODES)) - np.log(p) * (1 - 1 / _SHAPE) - log_rest
    log_weights -= (crossed + distances - centre) ** 2 / 2 + LOG_SQRT_2PI
    inside = crossed - centre < _INSIDE
    if np.any(inside) and not smooth:
        low = (crossed - centre)[inside]
        mass = special.ndtr(-low)
        distances[:, inside] = np.maximum(-special.ndtri(p[:, inside] * mass) - low, 0.0)
        log_weights[:, inside] = np.log(mass / NODES)
    return distances, log_weights


def _mean_distance(a):
    """About the mean of s under exp(-s^2/2 - a s), s > 0; off by at most a few per cent for a >= -1.5."""
    return 2 / (a + np.sqrt(a * a + 6.3))
