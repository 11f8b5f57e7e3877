"""Logarithms: of sums of exponentials, log sum_j p_j exp(a_j u - a_j^2/2) at many u and its inverse, of binomials and of kernels."""

from __future__ import annotations

import math

import numpy as np

from .lazy_scipy import special

EPS = np.finfo(float).eps
# Terms below e^-CUT of the largest one are dropped: their sum is under 1e-17 of it.
_CUT = 46.0
_FEW, _ROWS = 12, 1024  # up to so many components are summed in full; columns of a block with more
_CHUNK = 100_000  # entries of a block with few components
_MOST = 2_000_000  # and of one with many
_SINGLES = 4096  # of many components, so many give the first guess of an inverse
_MANY_TARGETS, _KNOTS = 4000, 1500


def log_sum_exp(terms):
    """log sum exp over the last axis, for finite or -inf terms."""
    top = terms.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    shares = terms - top
    np.exp(shares, out=shares)
    with np.errstate(divide="ignore"):
        return np.log(shares.sum(axis=-1)) + top[..., 0]


def log_choose(k):
    """log C(k, j) for j = 0..k, each from the exact integer."""
    row, value = [], 1
    for j in range(k // 2 + 1):
        row.append(math.log(value))
        value = value * (k - j) // (j + 1)
    return np.array(row + row[(k - 1) // 2 :: -1] if k else row)


def log_kernel(c):
    """log sup_{t>0} (1 - e^{-t}) e^{-ct} = log(c^c / (1+c)^(1+c)): Chernoff for hockey sticks.

    For -1 <= c <= 0, log sup_t min(1, e^{-t}) e^{-ct} = 0: Chernoff for what they miss.
    """
    if c <= 0:
        return 0.0
    return -c * math.log1p(1 / c) - math.log1p(c)


def mills_ratio(x):
    """P(Z > x) / phi(x) of a standard normal Z, elementwise."""
    return math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2))


def turn_less_one(x):
    """e^{ix} - 1 at real x, with the digits of what is small."""
    return 2 * np.sin(x / 2) * (1j * np.cos(x / 2) - np.sin(x / 2))


def complex_log1p(real, imaginary):
    """log(1 + real + i imaginary), good in relative terms near 0 (NumPy's complex log1p is not)."""
    square = real * (2 + real) + imaginary**2
    # Far from 0 the square cancels near -1; a zero counts as 1e-300, so that powers of it are 0.
    size = np.log(np.maximum(np.hypot(1 + real, imaginary), 1e-300))
    near = np.abs(square) < 0.5
    size = np.where(near, 0.5 * np.log1p(np.where(near, square, 0.0)), size)
    return size + 1j * np.arctan2(imaginary, 1 + real)


def log_sum(a, log_p, u, of=None):
    """S(u) = log sum_j exp(log_p_j + a_j u - a_j^2/2) and, if asked, the mean of `of` under these weights, shapes (n,): that of a is S'(u).

    a : increasing, shape (m,). log_p, of : shape (m,), `of` may be complex. u : shape (n,); the sum is fastest
    where neighbours in u are close to each other.
    """
    value, mean = np.empty(len(u)), None if of is None else np.empty(len(u), of.dtype)
    for rows, parts in blocks(a, log_p, u):
        terms = a[parts, None] * (u[rows] - a[parts, None] / 2) + log_p[parts, None]
        top = terms.max(axis=0)
        terms -= top
        weights = np.exp(terms, out=terms)
        total = weights.sum(axis=0)
        value[rows] = top + np.log(total)
        if of is not None:
            mean[rows] = (of[parts] @ weights) / total
    return value, mean


def blocks(a, log_p, u):
    """Yield (row slice, component slice) holding every term that matters.

    With many components, a component is dropped on a block of u when it is below
    e^(-CUT - log m) of the best one at both ends; the difference of two exponents
    is linear in u, so it stays below in between, and the dropped sum is under
    1e-17 of the kept one.
    """
    many = len(a) > _FEW
    rows = _ROWS if many else max(16, _CHUNK // len(a))
    for start in range(0, len(u), rows):
        block = slice(start, min(start + rows, len(u)))
        if many:
            yield from _alive(a, log_p, u, block)
        else:
            yield block, slice(0, len(a))


def _alive(a, log_p, u, block):
    """The components that matter on a block, which is halved as long as they are too many to be held at once."""
    low, high = u[block].min(), u[block].max()
    best = np.argmax(log_p + a * ((low + high) / 2 - a / 2))
    gap = log_p - log_p[best] - (a - a[best]) * (a + a[best]) / 2
    gap += np.maximum((a - a[best]) * low, (a - a[best]) * high)
    alive = np.flatnonzero(gap > -_CUT - math.log(len(a)))
    first, stop, rows = int(alive[0]), int(alive[-1]) + 1, block.stop - block.start
    if rows * (stop - first) <= _MOST or rows < 2:
        yield block, slice(first, stop)
        return
    middle = block.start + rows // 2
    for half in (slice(block.start, middle), slice(middle, block.stop)):
        yield from _alive(a, log_p, u, half)


def inverse_log_sum(a, log_p, target, curvature):
    """Solve S(u) = target for u, shape (n,), all a_j > 0. curvature : at least S'' everywhere.

    S is convex and increasing, and S >= each single term, so min_j over the
    single-term solutions lies at or above the root and Newton's method from
    there decreases to it monotonically.
    """
    if len(a) == 1:
        return (target - log_p[0]) / a[0] + a[0] / 2
    if len(target) > _MANY_TARGETS:
        u, above = _interpolated(a, log_p, target, curvature), False
    else:
        # Each component gives a bound, so a part of them does.
        u, above, stride = np.full(len(target), np.inf), True, 1 + len(a) // _SINGLES
        for start in range(0, len(a), 64 * stride):
            part = slice(start, start + 64 * stride, stride)
            single = (target[:, None] - log_p[part]) / a[part] + a[part] / 2
            u = np.minimum(u, single.min(axis=1))
    active = np.arange(len(target))
    for _ in range(100):
        at = u[active]
        value, slope = log_sum(a, log_p, at, a)
        step = (value - target[active]) / slope
        u[active] = at - step
        scale = 4 * EPS * (np.abs(at) + np.abs(target[active]) / slope + 1e-300)
        # After a step of size d at most curvature d^2 / (2 slope) is left; twice that is asked for.
        done = np.minimum(np.abs(step), curvature / slope * step * step) <= scale
        if above:
            done |= step <= 0
        active = active[~done]
        if not len(active):
            break
    return u


def _interpolated(a, log_p, target, curvature):
    """A first guess from the solution at some of the targets: Newton then needs one or two steps."""
    knots = np.unique(np.append(target[:: len(target) // _KNOTS], [target.min(), target.max()]))
    u = inverse_log_sum(a, log_p, knots, curvature)
    rate = 1 / log_sum(a, log_p, u, a)[1]
    i = np.clip(np.searchsorted(knots, target) - 1, 0, len(knots) - 2)
    gap = knots[i + 1] - knots[i]
    t = (target - knots[i]) / gap
    # Cubic, with both values and both slopes.
    rise = u[i + 1] - u[i]
    first, last = gap * rate[i] - rise, rise - gap * rate[i + 1]
    return u[i] + t * rise + t * (1 - t) * ((1 - t) * first + t * last)
