"""One step of the Poisson-subsampled Gaussian for one record, in closed form [R-6].

Every number here is the *remove* direction, which is the larger one for a single
step [C-9], so that it serves for add-or-remove neighbours. By the Poisson identity
[C-8] one step leaks

    delta(epsilon) = q * delta_G(epsilon_bar),   epsilon_bar = log(1 + (e^epsilon - 1) / q),

with delta_G the plain Gaussian mechanism at mu = 1 / sigma: `epsilon_bar` is the
epsilon that the same noise would need without sampling. Everything follows from
this product: the smallest noise sigma(q) for a target, its slope, and the question
whether the *effective noise* sigma(q) / q falls when the batch grows.

The elasticity of the noise, d log sigma / d log q along the curve of constant
(epsilon, delta), is [R-6.2x]

    J = int_0^1 exp(v (1 - v) / (2 sigma^2) - epsilon_bar v) dv,

and the effective noise falls exactly where J < 1. The condition of the source,
"the threshold lies above the mean of the record's branch" (a < b there), is
sigma^2 > 1 / (2 epsilon_bar) and implies it [R-6.2].

All functions take numbers or arrays and broadcast. Valid: epsilon in [0, 1e6], noise
multiplier in [1e-100, 1e100], sampling probability in [1e-100, 1].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from .._base.lazy_scipy import optimize, special
from .._base.log_space import mills_ratio
from ..gaussian import LOG_SQRT_2PI, TAIL_ERROR, log_tail_difference

_LARGEST_EPSILON = 1e6
_SMALLEST_PROBABILITY = 1e-100
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(60)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2  # on [0, 1]
CONDITIONS = ("threshold", "exact")


# ------------------------------------------------------------------- one step


def unsampled_epsilon(epsilon: ArrayLike, sampling_probability: ArrayLike) -> float | np.ndarray:
    """log(1 + (e^epsilon - 1) / q): the epsilon at which the unsampled Gaussian is evaluated [C-8].

    At least `epsilon`; relative accuracy 1e-15. Raises ValueError or TypeError on bad input.
    """
    epsilon, q = _epsilon(epsilon), _probability(sampling_probability)
    return _plain(_unsampled(epsilon, q))


def delta(
    epsilon: ArrayLike, noise_multiplier: ArrayLike, sampling_probability: ArrayLike
) -> float | np.ndarray:
    """delta of one step at `epsilon`, the larger of both directions (remove) [R-6], [C-9].

    Relative accuracy 1e-12 for epsilon <= 100, however small the value (0.0 below the
    smallest float). Arrays broadcast; about a microsecond an entry. Raises ValueError
    or TypeError on bad input.
    """
    epsilon, sigma, q = _point(epsilon, noise_multiplier, sampling_probability)
    return _plain(q * np.exp(_log_gaussian(_unsampled(epsilon, q), 1 / sigma)))


def threshold(
    epsilon: ArrayLike, noise_multiplier: ArrayLike, sampling_probability: ArrayLike
) -> float | np.ndarray:
    """The output x* = sigma^2 epsilon_bar + 1/2 at which the privacy loss equals `epsilon` [R-6].

    In units of the clip norm; the record is worth 1. Outputs above it make up delta.
    """
    epsilon, sigma, q = _point(epsilon, noise_multiplier, sampling_probability)
    return _plain(sigma * sigma * _unsampled(epsilon, q) + 0.5)


def threshold_distances(
    epsilon: ArrayLike, noise_multiplier: ArrayLike, sampling_probability: ArrayLike
) -> tuple[float | np.ndarray, float | np.ndarray]:
    """(r_minus, r_plus): the threshold's distance above the means 1 and 0, over sqrt(2) sigma [R-6].

    delta = (q erfc(r_minus) - (e^epsilon - 1 + q) erfc(r_plus)) / 2. In the source's
    letters r_minus = b - a and r_plus = b + a; r_minus may be negative, r_plus not.
    """
    epsilon, sigma, q = _point(epsilon, noise_multiplier, sampling_probability)
    middle = sigma * _unsampled(epsilon, q) / math.sqrt(2)
    half_gap = 1 / (2 * math.sqrt(2) * sigma)
    return _plain(middle - half_gap), _plain(middle + half_gap)


# ------------------------------------------------------- noise for a target


def noise_multiplier(
    epsilon: ArrayLike, delta: ArrayLike, sampling_probability: ArrayLike
) -> float | np.ndarray:
    """Smallest sigma with delta(epsilon, sigma, q) <= `delta`: sigma(q), on the safe side.

    epsilon : at least 0. delta : in (0, 1). sampling_probability : above delta, at
    most 1 (at or below delta no noise is needed, and ValueError is raised). Arrays
    broadcast. The true delta at the result is at most `delta`; a sigma smaller by
    1e-10, relative, would miss it (epsilon <= 100, delta <= 0.99 q). Cost: about
    20 microseconds an entry.

    >>> from dplib.lessons import one_step
    >>> from dplib.results import UpperEnd
    >>> print(f"{UpperEnd(one_step.noise_multiplier(epsilon=1.0, delta=1e-6, sampling_probability=0.01)):.6f}")
    0.776437
    """
    epsilon, delta, q = _target(epsilon, delta, sampling_probability)
    return _plain(1 / _largest_mu(_unsampled(epsilon, q), np.log(delta) - np.log(q)))


def elasticity(
    epsilon: ArrayLike, noise_multiplier: ArrayLike, sampling_probability: ArrayLike
) -> float | np.ndarray:
    """d log sigma / d log q along the curve of constant (epsilon, delta) through this point [R-6.2x].

    Below 1 the effective noise sigma / q falls as q grows, above 1 it rises. Relative
    accuracy 1e-11; infinite where it exceeds the largest float.
    """
    epsilon, sigma, q = _point(epsilon, noise_multiplier, sampling_probability)
    return _plain(1 + _excess(1 / sigma, _unsampled(epsilon, q)))


def noise_slope(epsilon: ArrayLike, delta: ArrayLike, sampling_probability: ArrayLike) -> float | np.ndarray:
    """The derivative sigma'(q) of `noise_multiplier` in the sampling probability [R-6.1].

    Arguments and errors as for `noise_multiplier`; always positive.
    """
    epsilon, delta, q = _target(epsilon, delta, sampling_probability)
    bar = _unsampled(epsilon, q)
    mu = _largest_mu(bar, np.log(delta) - np.log(q))
    return _plain((1 + _excess(mu, bar)) / (mu * q))


# ------------------------------------- where the effective noise sigma / q falls


def boundary_delta(
    epsilon: ArrayLike, sampling_probability: ArrayLike, condition: str = "exact"
) -> float | np.ndarray:
    """The delta below which `condition` holds at sigma(q): the edge of its region.

    condition="threshold" : the threshold lies above 1 (the source's a < b);
        q (1 - erfcx(sqrt(epsilon_bar))) / 2 [R-6.3].
    condition="exact" : the effective noise falls at q; q delta_G(epsilon_bar) at the
        noise where the elasticity is 1 [R-6.2x]. Never below the other one.

    Both grow with q and with epsilon, and are 0 at epsilon = 0. Relative accuracy 1e-9.
    """
    epsilon, q = _epsilon(epsilon), _probability(sampling_probability)
    check.choice("condition", condition, CONDITIONS)
    epsilon, q = np.broadcast_arrays(epsilon, q)
    return _plain(q * _boundary(_unsampled(epsilon, q), condition))


def effective_noise_falls(
    epsilon: ArrayLike, delta: ArrayLike, sampling_probability: ArrayLike, condition: str = "exact"
) -> bool | np.ndarray:
    """Whether sigma(q) / q decreases at q: exactly, or by the source's sufficient condition.

    Arguments and errors as for `noise_multiplier`; condition as for `boundary_delta`.
    True or False, or an array of them.
    """
    epsilon, delta, q = _target(epsilon, delta, sampling_probability)
    check.choice("condition", condition, CONDITIONS)
    answer = delta < q * _boundary(_unsampled(epsilon, q), condition)
    return bool(answer) if answer.ndim == 0 else answer


def peak_probability(epsilon: float, delta: float) -> float:
    """The sampling probability at which the effective noise sigma(q) / q is largest [R-6.2x].

    sigma(q) / q rises up to it and falls beyond; 1.0 where it rises throughout, as at
    epsilon = 0. epsilon, delta : numbers. Relative accuracy 1e-9. Cost: some milliseconds.
    """
    epsilon = check.real("epsilon", epsilon, at_least=0, at_most=_LARGEST_EPSILON)
    delta = check.real("delta", delta, at_least=_SMALLEST_PROBABILITY, below=1)

    def excess(log_q):
        boundary = _boundary(_unsampled(epsilon, np.array(math.exp(log_q))), "exact")
        return log_q + math.log(max(boundary, 1e-300)) - math.log(delta)

    if excess(0.0) <= 0:
        return 1.0
    return math.exp(optimize.brentq(excess, math.log(delta), 0.0, xtol=1e-12))


def sharp_constant(condition: str = "threshold") -> float:
    """Least K such that q >= K delta and epsilon >= K delta imply `condition`, for every delta.

    "threshold" : 2 / (1 - 2 erfc(sqrt(log 2))) = 3.8319 [R-6.3]. "exact" : 1.8143 [R-6.2x].
    """
    check.choice("condition", condition, CONDITIONS)
    return float(1 / _boundary(np.array(math.log(2)), condition))


# ------------------------------------------------------------------ internals


def _epsilon(value):
    return _within("epsilon", value, 0, _LARGEST_EPSILON)


def _probability(value):
    return _within("sampling_probability", value, _SMALLEST_PROBABILITY, 1)


def _point(epsilon, noise_multiplier, sampling_probability):
    epsilon, q = _epsilon(epsilon), _probability(sampling_probability)
    return np.broadcast_arrays(epsilon, _within("noise_multiplier", noise_multiplier, 1e-100, 1e100), q)


def _within(name, value, least, most):
    """The values as an array, all in [least, most]."""
    array, _ = check.grid(name, value)
    outside = (array < least) | (array > most)
    if np.any(outside):
        raise ValueError(
            f"{name} must be at least {least:g} and at most {most:g}; got {float(array[outside].flat[0])!r}"
        )
    return array


def _target(epsilon, delta, q):
    epsilon, q = _epsilon(epsilon), _probability(q)
    delta, _ = check.grid("delta", delta)
    if np.any((delta <= 0) | (delta >= 1)):
        wrong = float(delta[(delta <= 0) | (delta >= 1)].flat[0])
        raise ValueError(f"delta must be above 0 and below 1; got {wrong!r}")
    epsilon, delta, q = np.broadcast_arrays(epsilon, delta, q)
    if np.any(q <= delta):
        place = np.flatnonzero(np.ravel(q <= delta))[0]
        raise ValueError(
            "sampling_probability must be above delta (at or below it no noise is needed); got "
            f"{float(q.flat[place])!r} with delta={float(delta.flat[place])!r}"
        )
    return epsilon, delta, q


def _plain(array):
    """A float for a scalar result, the array otherwise."""
    array = np.asarray(array)
    return float(array) if array.ndim == 0 else array


def _unsampled(epsilon, q):
    epsilon, q = np.broadcast_arrays(np.asarray(epsilon, float), q)
    # Two forms: the first would overflow for large epsilon, the second cancel for small.
    near = np.log1p(np.expm1(np.minimum(epsilon, 1.0)) / q)
    far = epsilon - np.log(q) + np.log1p(-(1 - q) * np.exp(-np.maximum(epsilon, 1.0)))
    return np.where(epsilon <= 1, near, far)


def _log_gaussian(bar, mu):
    """log delta of the plain Gaussian mechanism, elementwise for mu > 0."""
    bar, mu = np.broadcast_arrays(bar, mu)
    # Beyond 1e150 the square of the argument overflows: there delta is 0 or 1 beyond doubt.
    x = np.clip(bar / mu - mu / 2, -1e150, 1e150)
    return np.where(x <= -1e150, 0.0, log_tail_difference(x, mu))


def _largest_mu(bar, log_ratio):
    """Largest mu whose Gaussian delta at `bar` is at most e^log_ratio, on the safe side.

    Newton's method on log delta against log mu, kept inside a bracket. Both starting
    points lie left of the root, because delta_G <= e^{-x^2/2} / 2 for x >= 0 and
    delta_G(bar) <= delta_G(0) = erf(mu / sqrt 8); a concave function is then climbed
    without overshooting.
    """
    shape = np.broadcast_shapes(np.shape(bar), np.shape(log_ratio))
    bar, log_ratio = (np.broadcast_to(v, shape).ravel() for v in (bar, log_ratio))
    # Room for the rounding of log delta and of bar.
    allowance = 5 * TAIL_ERROR * (1 + np.abs(log_ratio))
    aim = log_ratio - allowance
    x = np.sqrt(2 * np.maximum(-math.log(2) - aim, 0.0))
    above_zero = np.divide(2 * bar, x + np.sqrt(x * x + 2 * bar), out=np.zeros_like(bar), where=bar > 0)
    mu = np.maximum(above_zero, 2 * math.sqrt(2) * special.erfinv(np.exp(aim)))
    t = np.log(np.maximum(mu, 1e-300)) - 1e-12
    low, high = t.copy(), np.full_like(t, np.inf)
    active = np.arange(t.size)
    for _ in range(200):
        if not active.size:
            break
        mu = np.exp(t[active])
        value = _log_gaussian(bar[active], mu)
        gap = aim[active] - value
        low[active] = np.where(gap >= 0, t[active], low[active])
        high[active] = np.where(gap < 0, t[active], high[active])
        x = bar[active] / mu - mu / 2
        slope = np.exp(np.minimum(t[active] - x * x / 2 - LOG_SQRT_2PI - value, 700.0))
        step = gap / np.maximum(slope, 1e-300)
        inside = (t[active] + step > low[active]) & (t[active] + step < high[active])
        with np.errstate(invalid="ignore"):
            middle = np.where(np.isinf(high[active]), low[active] + 1.0, (low[active] + high[active]) / 2)
        # Below the root and within a part of the allowance: good enough, and safe.
        done = (gap >= 0) & (gap <= 0.4 * allowance[active])
        done |= high[active] - low[active] <= 1e-15 * (1 + np.abs(t[active]))
        t[active] = np.where(done, low[active], np.where(inside, t[active] + step, middle))
        active = active[~done]
    return np.exp(low).reshape(shape)


def _excess(mu, bar):
    """J - 1, elementwise: the elasticity less one, without cancellation where J is near 1."""
    mu, bar = np.broadcast_arrays(mu, bar)
    out = np.empty(mu.shape)
    x = np.clip(bar / mu - mu / 2, -1e150, 1e150)
    smooth = (mu < 6) & (bar < 20)
    left, right = ~smooth & (x < -3), ~smooth & (x >= -3)
    if np.any(smooth):
        m, e = mu[smooth][:, None], bar[smooth][:, None]
        out[smooth] = np.expm1(_NODES * (m * m * (1 - _NODES) / 2 - e)) @ _WEIGHTS
    if np.any(right):
        m, e, y = mu[right], bar[right], x[right]
        # (M(x) - e^-bar M(x + mu)) / mu; for a tiny mu the two are equal up to e^-bar, bar >= 20.
        out[right] = (mills_ratio(y) - np.exp(-e) * mills_ratio(y + m)) / m - 1
    if np.any(left):
        m, y = mu[left], x[left]
        first, second = special.log_ndtr(-y), special.log_ndtr(-y - m)
        log_j = first + np.log(-np.expm1(second - first)) + y * y / 2 + LOG_SQRT_2PI - np.log(m)
        out[left] = np.expm1(np.minimum(log_j, 709.0))
        out[left] = np.where(log_j > 709.0, np.inf, out[left])
    return out


def _critical_mu(bar):
    """The mu at which the elasticity is 1; mu^2 / 2 lies in [bar + 1 - e^-bar, 3 bar] [R-6.2x]."""
    low, high = bar - np.expm1(-bar), 3 * bar
    for _ in range(60):
        middle = (low + high) / 2
        above = _excess(np.sqrt(2 * np.maximum(middle, 1e-290)), bar) > 0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.sqrt(low + high)


def _boundary(bar, condition):
    """The edge over q, a function of epsilon_bar alone; 0 at 0."""
    bar = np.asarray(bar, float)
    positive = np.maximum(bar, 1e-280)
    if condition == "threshold":
        value = -_erfcx_minus_one(np.sqrt(positive)) / 2
    else:
        value = np.exp(_log_gaussian(positive, _critical_mu(positive)))
    return np.where(bar > 0, value, 0.0)


def _erfcx_minus_one(s):
    """erfcx(s) - 1 for s >= 0, without cancellation near 0."""
    small = np.minimum(s, 0.5)
    near = np.exp(small**2) * -special.erf(small) + np.expm1(small**2)
    return np.where(s < 0.5, near, special.erfcx(s) - 1)
