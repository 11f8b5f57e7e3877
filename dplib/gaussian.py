"""The Gaussian mechanism in closed form [C-6].

Everything depends on mu = sensitivity / noise standard deviation. The dominating
pair is N(mu, 1) against N(0, 1); both directions are equal by symmetry. T-fold
composition has mu * sqrt(T).

The textbook form Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) subtracts two
nearly equal numbers when delta is small. With the Mills ratio
M(x) = (1 - Phi(x)) / phi(x) and x = eps/mu - mu/2 it becomes
phi(x) * (M(x) - M(x + mu)), a product of positive factors, good in relative
terms for every delta that a float can hold (and in logs far below).
"""

from __future__ import annotations

import math

import numpy as np

from ._base import validate as check
from ._base.lazy_scipy import optimize, special
from ._base.log_space import mills_ratio

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
# `log_tail_difference` is accurate to this times (1 + |value|), tested against 60 digits.
TAIL_ERROR = 2e-14
_LINEAR = 1e-290  # below it a shift counts in proportion, and its products would underflow
_KERNEL_ERROR = 1e-14  # `log_tail_difference` is also accurate to this and four roundings of the value
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(60)
_FEW_NODES, _FEW_WEIGHTS = np.polynomial.legendre.leggauss(24)


def delta(mu: float, epsilon: float) -> float:
    """delta of the Gaussian mechanism at `epsilon`, from -1e100 to 1e100.

    mu : sensitivity over noise standard deviation, at least 0.
    Exact up to the rounding of mu and epsilon (relative 1e-12 for mu <= 100); 0.0 where the value is below the
    smallest float (see `log_delta`). Raises ValueError or TypeError on bad input.
    """
    mu, epsilon = check.mu(mu), check.real("epsilon", epsilon, at_least=-1e100, at_most=1e100)
    return math.exp(_log_delta(mu, epsilon))


def log_delta(mu: float, epsilon: float) -> float:
    """log of `delta`; -inf where delta is exactly zero (mu = 0 and epsilon >= 0)."""
    mu, epsilon = check.mu(mu), check.real("epsilon", epsilon, at_least=-1e100, at_most=1e100)
    return _log_delta(mu, epsilon)


def _log_delta(mu, epsilon):
    if mu == 0:
        return math.log(-math.expm1(epsilon)) if epsilon < 0 else -math.inf
    x = epsilon / mu - mu / 2
    if abs(x) > 1e150:  # x^2 overflows: there is no shift to speak of
        return -math.inf if x > 0 else math.log(-math.expm1(epsilon))
    return float(log_tail_difference(x, mu))


def _log_miss(mu, epsilon):
    """log of 1 - delta, the sum of two positive terms, for mu > 0."""
    x = epsilon / mu - mu / 2
    return float(np.logaddexp(special.log_ndtr(x), epsilon + special.log_ndtr(-x - mu)))


def epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon >= 0 with delta(mu, epsilon) <= `delta`, to 1e-12 relative.

    mu : sensitivity over noise standard deviation, at least 0. delta : in (0, 1).

    >>> from dplib import gaussian
    >>> print(f"{gaussian.epsilon(mu=0.5, delta=1e-6):.6f}")
    2.254085
    """
    mu, delta = check.mu(mu), check.delta(delta)
    if mu == 0 or _log_delta(mu, 0.0) <= math.log(delta):
        return 0.0
    # delta <= P(L > eps) = Phi(mu/2 - eps/mu), so the root lies below `top`.
    top = max(mu * (mu / 2 - special.ndtri_exp(math.log(delta))), 1e-300)
    if delta > 0.5:  # the logarithm of delta has lost the digits of what it misses
        gap = lambda eps: math.log1p(-delta) - _log_miss(mu, eps)
    else:
        gap = lambda eps: _log_delta(mu, eps) - math.log(delta)
    return optimize.brentq(gap, 0.0, top * (1 + 1e-9), xtol=1e-300, rtol=1e-14, maxiter=500)


def calibrate(epsilon: float, delta: float) -> float:
    """Largest mu whose Gaussian mechanism is (epsilon, delta)-DP, from below.

    epsilon : at least 0. delta : in (0, 1). The noise standard deviation is
    then sensitivity / mu. The mechanism with the mu returned meets the target: what rounding
    may hide is taken off. At most 1e-12 of mu is lost for delta <= 0.99, more only as delta comes near 1.

    >>> from dplib import gaussian
    >>> from dplib.results import UpperEnd
    >>> mu = gaussian.calibrate(epsilon=1.0, delta=1e-6)
    >>> print(f"sensitivity 1 needs a standard deviation of {UpperEnd(1 / mu):.4f}")
    sensitivity 1 needs a standard deviation of 4.2247
    """
    epsilon, delta = check.epsilon(epsilon), check.delta(delta)
    target = math.log(delta)
    gap = lambda log_mu: _log_delta_at_most(math.exp(log_mu), epsilon) - target
    low, high = -1.0, 1.0
    while gap(low) > 0:
        low -= 2.0
    while gap(high) < 0:
        high += 2.0
    mu = math.exp(optimize.brentq(gap, low, high, xtol=1e-15, rtol=1e-14, maxiter=500))
    step = np.finfo(float).eps
    while _log_delta_at_most(mu, epsilon) > target:
        mu, step = mu * (1 - step), 2 * step
    return mu


def _log_delta_at_most(mu, epsilon):
    """log of delta with what rounding may take from it: of the kernel, of the threshold, of the target's own logarithm."""
    if mu == 0:
        return -math.inf
    value, x = _log_delta(mu, epsilon), epsilon / mu - mu / 2
    eps = np.finfo(float).eps
    return value + _KERNEL_ERROR + 4 * eps * abs(value) + eps * (epsilon / mu + abs(x)) * (max(x, 0.0) + 2)


def log_tail_difference(x: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """log of phi(x) * (M(x) - M(x + shift)), elementwise, for shift > 0.

    M is the Mills ratio. This is the delta of the Gaussian mechanism with
    mu = shift whose likelihood-ratio threshold lies at x above the shifted
    mean, and every one-step mixture delta is a positive sum of such terms.
    """
    x, shift = np.broadcast_arrays(np.asarray(x, float), np.asarray(shift, float))
    out = np.empty(x.shape)
    # Left of -3 the Mills ratio grows like e^{x^2/2}; work with log Phi there.
    left = x < -3
    # There the integral needs shift * |x| to be moderate, and the difference of logarithms has its digits beyond.
    small = (shift < 0.1 * (1 + np.maximum(x, 0.0))) & (shift * -x < 1)
    remote = x > 1e8
    near, far, left_small, left = (
        ~left & small & ~remote,
        ~left & ~small & ~remote,
        left & small,
        left & ~small,
    )
    if np.any(left_small):
        # -M'(y) = 1 - y M(y) has two positive terms for y < 0: integrate it over the shift.
        y, a = x[left_small][:, None], shift[left_small][:, None]
        t = a * (_FEW_NODES + 1) / 2
        slope = np.exp(-y * y / 2 - LOG_SQRT_2PI) - (y + t) * np.exp(
            special.log_ndtr(-y - t) + t * (y + t / 2)
        )
        out[left_small] = np.log((slope @ _FEW_WEIGHTS) * a[:, 0] / 2)
    if np.any(left):
        y, a = x[left], shift[left]
        # e^{a(y+a/2)} Phi(-y-a) is phi(y) M(y+a): the exponent of a large shift would have no digits left.
        beyond = y + a
        mills = np.log(mills_ratio(np.maximum(beyond, 0.0))) - y * y / 2 - LOG_SQRT_2PI
        second = np.where(beyond > 0, mills, special.log_ndtr(-beyond) + a * (y + a / 2))
        first = special.log_ndtr(-y)
        out[left] = first + np.log(-np.expm1(np.minimum(second - first, -1e-300)))
    if np.any(far):
        y, a = x[far], shift[far]
        out[far] = np.log(mills_ratio(y) - mills_ratio(y + a)) - y * y / 2 - LOG_SQRT_2PI
    if np.any(near):
        # M(x) - M(x+a) = int_0^inf e^{-xt - t^2/2} (1 - e^{-at}) dt: no cancellation.
        y, a = x[near][:, None], shift[near][:, None]
        reach = 40.0 / (3.0 + np.maximum(y, 0.0)) + np.maximum(-y, 0.0)
        t = reach * (_NODES + 1) / 2
        linear = np.maximum(a, _LINEAR)
        values = np.exp(-y * t - t * t / 2) * -np.expm1(-linear * t)
        integral = (values @ _WEIGHTS) * reach[:, 0] / 2
        y = y[:, 0]
        out[near] = np.log(integral) + np.log(a / linear)[:, 0] - y * y / 2 - LOG_SQRT_2PI
    if np.any(remote):
        # M(x) is 1 / x up to 1 / x^2, and the integral above would underflow.
        y, a = x[remote], shift[remote]
        with np.errstate(over="ignore"):  # -inf, which is what it comes to
            out[remote] = np.log(a) - np.log(y) - np.log(y + a) - y * y / 2 - LOG_SQRT_2PI
    return out
