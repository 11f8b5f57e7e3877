"""Releases that are no mixture of Gaussians: their Rényi curves, and their epsilon at delta = 0.

Both are of the larger direction. Items are those of `account`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from .._base.log_space import EPS
from ..accounting import renyi

_PAD = 16 * EPS


def of(item: tuple, sensitivity: int, relation: str) -> Callable[[float], float]:
    """order -> Rényi divergence, rounded up. sensitivity : of the group, in clip norms.

    A measured (epsilon, delta) release is, but with probability delta, randomised response with loss epsilon.
    """
    kind, *law = item
    if kind == "zcdp":
        rho, xi = law
        return lambda order: rho * order + xi
    if kind == "laplace":
        return lambda order: float(renyi.laplace(order, law[0] / sensitivity)) * (1 + _PAD)
    if kind == "discrete laplace":
        return lambda order: _discrete_laplace(order, law[0], law[1] * sensitivity)
    if kind == "release":
        return lambda order: _swapped(order, -_log1pexp(law[0]), law[0])
    p, buckets = law
    if relation == "substitution":
        return lambda order: _swapped(order, math.log(p / buckets), math.log1p(buckets * (1 - p) / p))
    return lambda order: _response_to_uniform(order, p, buckets)


def pure(item: tuple, sensitivity: int, relation: str) -> Fraction | None:
    """The least epsilon at delta = 0, not rounded down; None where there is none."""
    kind, *law = item
    if kind == "zcdp":
        return Fraction(law[1]) if law[0] == 0 else None
    if kind == "release":
        return Fraction(law[0])
    if kind == "laplace":
        return sensitivity / Fraction(law[0])
    if kind == "discrete laplace":
        return Fraction(law[0]) * law[1] * sensitivity
    p, buckets = law
    if relation == "substitution":
        loss = math.log1p(buckets * (1 - p) / p)
    else:
        loss = max(math.log1p((buckets - 1) * (1 - p)), -math.log(p))
    return Fraction(loss * (1 + _PAD))


def rounded(value: Fraction, up: bool) -> float:
    """The nearest float that is not below (up) or not above a fraction."""
    number = float(value)
    if Fraction(number) != value and (Fraction(number) < value) == up:
        number = math.nextafter(number, math.inf if up else -math.inf)
    return number


def _swapped(order, log_probability, loss):
    """Two outcomes whose probabilities f < f e^loss are swapped, and others that stay as they are.

    e^((order - 1) D) - 1 = f e^(-s loss) (e^(s loss) - 1)(e^((s + 1) loss) - 1), s = order - 1: nothing cancels.
    """
    s = order - 1
    if s * loss < 1e-300:
        return loss
    log_excess = log_probability + _log_expm1(s * loss) + _log_expm1(order * loss) - s * loss
    return _log1pexp(log_excess) / s * (1 + _PAD)


def _response_to_uniform(order, p, buckets):
    """Randomised response against its answer to a record that says nothing, in both orders."""
    s = order - 1
    truth, other = (buckets * (1 - p) + p) / buckets, p / buckets  # one bucket has `truth`, the others `other`
    up, down = math.log(truth * buckets), math.log(p)
    there = _log_sum([(truth, s * up), ((buckets - 1) * other, s * down)])
    back = _log_sum([(1 / buckets, -s * up), (1 - 1 / buckets, -s * down)])
    return max(there, back) / s


def _discrete_laplace(order, a, shift):
    """Noise with masses proportional to e^(-a |x|), moved by a whole number.

    The sum of p(x - C)^order p(x)^(1 - order) is, by geometric series left of 0, right of C and between,
    (1 - B) e^(a s C) + B e^(-a order C), with s = order - 1 and
    B = e^-a (1 - e^(-2 a s)) / ((1 + e^-a)(1 - e^(-a (2 order - 1)))) in [0, 1].
    Its logarithm is convex in C and 0 at C = 0: several coordinates that share C cost less than one.
    """
    s = order - 1
    back = math.exp(-a) / (1 + math.exp(-a)) * math.expm1(-2 * a * s) / math.expm1(-a * (2 * order - 1))
    return _log_sum([(1 - back, a * s * shift), (back, -a * order * shift)]) / s


def _log_sum(terms):
    """log of the sum of w e^x over (w, x), where the w sum to 1; rounded up, and at least 0."""
    top = max(x for _, x in terms)
    if top > 1:
        rest = math.fsum(w * math.exp(x - top) for w, x in terms)
        return (top + math.log(rest)) + _PAD * (top + 1)
    parts = [w * math.expm1(x) for w, x in terms]
    return max(math.log1p(math.fsum(parts) + _PAD * math.fsum(map(abs, parts))), 0.0)


def _log1pexp(x):
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def _log_expm1(x):
    return x + math.log(-math.expm1(-x))
