"""Renyi divergences of mixture pairs at every real order, and what to do with them.

The divergences are brackets; their mathematics is in `renyi_moments`.
The functions from `to_epsilon` on turn Renyi curves into guarantees: upper bounds
without a lower one. A Renyi curve is a callable: order -> float >= 0 or Bracket
(of which the upper end is used).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import mixtures
from .._base import validate as check
from .._base.lazy_scipy import optimize
from .._base.log_space import EPS
from .._base.validate import Direction
from ..mixtures import DisjointUnion, Mixture, TwoSided
from ..results import Bracket, NoBracketError, UpperBound
from .renyi_moments import log_convex, log_e2, moments_of
from .zhu_wang import integer_moment

Conversion = Literal["improved", "classic"]
CONVERSIONS = ("improved", "classic")
Curve = Callable[[float], float | Bracket]
_LARGEST_ORDER = 1e9
_PAIRS = (Mixture, TwoSided, DisjointUnion)


# --------------------------------------------------------------- divergences


def divergence(mixture: Mixture, order: ArrayLike, direction: Direction = "both") -> Bracket | list[Bracket]:
    """Bracket of the Renyi divergence of a mixture pair [ZW-2].

    Parameters
    ----------
    mixture : Mixture; P is the mixture, Q the centred Gaussian. Or a pair as `composition_curve` takes it.
    order : real, above 1 and at most 1e9, or a strictly increasing sequence of them.
    direction : "remove" (D(P||Q)), "add" (D(Q||P)) or "both" (the larger).

    Returns a Bracket, or a list of them for a sequence of orders (which shares the
    evaluation of the loss). Relative width below 1e-10 for noise multipliers in
    [0.3, 50] and orders up to 512. Raises ValueError or TypeError on bad input,
    NoBracketError where the trapezoid rule would need more than half a second.
    Cost: about 0.5 ms for each order and direction, one record.
    """
    orders, single = _orders(order)
    curve = mixture_curve(mixture, direction)
    brackets = [curve(x) for x in orders]
    return brackets[0] if single else brackets


def subsampled_gaussian(
    order: ArrayLike, noise_multiplier: float, sampling_probability: float, direction: Direction = "both"
) -> Bracket | list[Bracket]:
    """`divergence` of the Poisson-subsampled Gaussian mechanism, one record [ZW-4].

    noise_multiplier : sigma > 0. sampling_probability : q in [0, 1].

    >>> from dplib import renyi
    >>> curve = lambda order: renyi.subsampled_gaussian(order, noise_multiplier=1.0, sampling_probability=0.01)
    >>> print(f"{curve(8.5).upper:.5f}")
    0.00109
    >>> spent = renyi.to_epsilon(curve, delta=1e-6, rounds=2000)
    >>> print(f"epsilon <= {spent.upper:.4f} at order {spent.order:.2f}")
    epsilon <= 3.2464 at order 7.23
    """
    _orders(order)
    check.direction(direction)
    sigma = check.noise_multiplier(noise_multiplier)
    q = check.probability("sampling_probability", sampling_probability)
    return divergence(mixtures.binomial(1, q, sigma), order, direction)


def gaussian(order: ArrayLike, noise_multiplier: float) -> float | np.ndarray:
    """order / (2 sigma^2): the Gaussian mechanism of sensitivity 1 [ZW-4].

    order : above 1, at most 1e9, number or array. Both directions are equal.
    """
    orders, scalar = _order_grid(order)
    sigma = check.noise_multiplier(noise_multiplier)
    return _like(orders / sigma / sigma / 2, scalar)


def laplace(order: ArrayLike, scale: float) -> float | np.ndarray:
    """Renyi divergence of the Laplace mechanism of sensitivity 1 [ZW-3].

    order : above 1, at most 1e9, number or array. scale : b > 0 of the noise. Both directions are equal.
    (1 / s) log(1 + lambda/(2 lambda - 1) E2(s/b) + s/(2 lambda - 1) E2(-lambda/b)), s = lambda - 1.
    """
    orders, scalar = _order_grid(order)
    scale = check.real("scale", scale, at_least=1e-100, at_most=1e100)
    s = orders - 1
    logs = np.logaddexp(
        np.log(orders) + log_e2(s / scale), np.log(s) + log_e2(-orders / scale)
    ) - np.log(2 * orders - 1)
    return _like(np.logaddexp(0, logs) / s, scalar)


def randomized_response(order: ArrayLike, probability: float) -> float | np.ndarray:
    """Renyi divergence of randomised response on one bit.

    order : above 1, at most 1e9, number or array. probability : of the truth, in (0, 1).
    Both directions are equal.
    """
    orders, scalar = _order_grid(order)
    p = check.real("probability", probability, above=0, below=1)
    s, loss = orders - 1, math.log(p) - math.log1p(-p)
    if loss == 0:
        return _like(np.zeros(orders.shape), scalar)
    logs = np.logaddexp(
        math.log(p) + log_convex(loss, s), math.log1p(-p) + log_convex(-loss, s)
    )
    return _like(np.logaddexp(0, logs) / s, scalar)


# --------------------------------------------- subsampling any mechanism


def zhu_wang(
    order: ArrayLike, epsilon_of_order: Curve, sampling_probability: float, constant: float = 1
) -> float | np.ndarray:
    """Upper bound on the Renyi divergence of a Poisson-subsampled mechanism [ZW-1], [ZW-3].

    Parameters
    ----------
    order : real, above 1, or an increasing sequence of them.
    epsilon_of_order : Renyi curve of the mechanism without sampling, the larger of
        both orderings; called at the integers 2, ..., ceil(order).
    sampling_probability : gamma in [0, 1].
    constant : at least 1; 3 is the bound printed first, 1 is enough [ZW-3].

    Between integers (order - 1) times the bound is interpolated linearly, which is
    valid because (order - 1) D is convex and 0 at order 1. Evaluated in logarithms
    as sum_{l >= 2} C(order, l) (1 - gamma)^(order - l) gamma^l (c_l exp((l - 1) eps(l)) - 1):
    no cancellation. Raises ValueError when epsilon_of_order is negative, decreasing or
    not finite. Cost: proportional to the square of the order, orders of one unit apart.
    """
    orders, single = _orders(order, largest=1e6)
    gamma = check.probability("sampling_probability", sampling_probability)
    constant = check.real("constant", constant, at_least=1, at_most=1e100)
    if not callable(epsilon_of_order):
        raise TypeError(f"epsilon_of_order must be callable; got {epsilon_of_order!r}")
    # Orders below 2 take the bound of order 2: (order - 1) D lies below its chord from 1 to 2.
    lower = [max(2, math.floor(x)) for x in orders]
    upper = [max(2, math.ceil(x)) for x in orders]
    epsilons = _integer_orders(epsilon_of_order, upper[-1])
    moment = {n: integer_moment(n, epsilons, gamma, constant) for n in {*lower, *upper}}
    values = []
    for x, low, high in zip(orders, lower, upper):
        part = x - low if high > low else 0.0
        values.append(((1 - part) * moment[low] + part * moment[high]) / (max(x, 2.0) - 1))
    return values[0] if single else np.array(values)


def _integer_orders(epsilon_of_order, top):
    """eps(2), ..., eps(top) as an array, checked."""
    values = [_curve_value("epsilon_of_order", epsilon_of_order, float(n)) for n in range(2, top + 1)]
    array = np.array(values)
    if not np.all(np.isfinite(array)):
        raise ValueError("epsilon_of_order must be finite at every integer order; got inf")
    # The rounding of a curve near 0 is no fall.
    fall = np.flatnonzero(np.diff(array) < -1e-9 * array[:-1] - 1e-15)
    if len(fall):
        n = int(fall[0]) + 2
        raise ValueError(
            "epsilon_of_order must not decrease in the order; got "
            f"{values[n - 2]!r} at {n} and {values[n - 1]!r} at {n + 1}"
        )
    return array


# ------------------------------------------------------------------- curves


def mixture_curve(mixture: Mixture | TwoSided | DisjointUnion, direction: Direction = "both") -> Callable[[float], Bracket]:
    """The Renyi curve of one mixture pair: order -> Bracket. Calls share the loss."""
    if not isinstance(mixture, _PAIRS):
        raise TypeError(f"mixture must be a Mixture; got {mixture!r}")
    return composition_curve([(mixture, 1)], direction)


def composition_curve(
    parts: Iterable[tuple[Mixture | TwoSided | DisjointUnion, int]], direction: Direction = "both"
) -> Callable[[float], Bracket]:
    """The Renyi curve of a composition: order -> Bracket.

    parts : list of (pair, rounds), rounds >= 1, a pair being a Mixture, TwoSided or DisjointUnion (without Atoms). direction : "remove", "add" or
    "both" (the larger, at each order). The divergences of the rounds add up.
    """
    check.direction(direction)
    shared: dict = {}
    pairs = _pairs(parts, _PAIRS)
    curves = [
        facing_curve([(pair.facing(side), rounds) for pair, rounds in pairs], side, shared)
        for side in (("remove", "add") if direction == "both" else (direction,))
    ]

    def curve(order):
        order = check.real("order", order, above=1, at_most=_LARGEST_ORDER)
        sides = [one(order) for one in curves]
        top = max(sides, key=lambda side: side.upper)
        return Bracket(max(side.lower for side in sides), top.upper, top.method)

    return curve


def facing_curve(
    parts: Iterable[tuple[Mixture | TwoSided | DisjointUnion, int]], side: str, shared: dict | None = None
) -> Callable[[float], Bracket]:
    """The Renyi curve of pairs that face this direction. shared : what is known of pairs, for both directions."""
    shared = {} if shared is None else shared
    sign = 1 if side == "remove" else -1
    rows = []
    for pair, rounds in parts:
        if pair not in shared:
            shared[pair] = moments_of(pair, side)
        rows.append((shared[pair], rounds))
    return lambda order: _total([(moments(order, sign), rounds) for moments, rounds in rows])


def compose(parts: Iterable[tuple[Curve, int]]) -> Curve:
    """The Renyi curve of a composition: divergences at one order add up.

    parts : list of (curve, rounds), rounds >= 1. Returns a curve; its values are
    Brackets when all parts give Brackets, else upper bounds (floats).
    """
    parts = _pairs(parts)

    def curve(order):
        order = check.real("order", order, above=1)
        values = [(part(order), rounds) for part, rounds in parts]
        if all(isinstance(value, Bracket) for value, _ in values):
            return _total(values)
        return math.fsum(rounds * _upper_end("curve", value, order) for value, rounds in values)

    return curve


def _total(values):
    """Sum of (Bracket, rounds)."""
    if len(values) == 1 and values[0][1] == 1:
        return values[0][0]
    lower = math.fsum(rounds * value.lower for value, rounds in values)
    upper = math.fsum(rounds * value.upper for value, rounds in values)
    methods = {value.method for value, _ in values}
    method = methods.pop() if len(methods) == 1 else "quadrature"
    return Bracket(lower * (1 - 2 * EPS), upper * (1 + 2 * EPS), method)


# -------------------------------------------------------------- conversions


def to_epsilon(
    curve: Curve, delta: float, *, rounds: int = 1, conversion: Conversion = "improved", orders: ArrayLike | None = None
) -> UpperBound:
    """Upper bound on epsilon at `delta`, from the best order of a Renyi curve [ZW-6].

    Parameters
    ----------
    curve : Renyi curve, callable: order -> float >= 0 or Bracket (its upper end); may
        be inf, or raise NoBracketError, at orders where nothing is known.
    delta : in (0, 1). rounds : the curve is multiplied by it, >= 1.
    conversion : "classic", D + log(1/delta) / (order - 1), or "improved" (the smaller).
    orders : increasing sequence: only these are tried. Default: all real orders; the
        objective has no local minimum but the global one, which is searched.

    Every order gives a valid bound, so that an inexact search costs only tightness.
    Returns an UpperBound whose `order` attains it. Raises NoBracketError when the
    curve is infinite wherever it was tried. Cost: about 40 evaluations of the curve.
    """
    delta = check.delta(delta)
    log_delta = math.log(delta)

    def objective(order, value):
        extra = _conversion(order, conversion) - log_delta
        return value + extra / (order - 1) + 4 * EPS * (value + abs(extra) / (order - 1))

    value, order = _least(curve, objective, rounds, conversion, orders, -log_delta)
    return UpperBound(max(value, 0.0), "Renyi", order)


def to_delta(
    curve: Curve, epsilon: float, *, rounds: int = 1, conversion: Conversion = "improved", orders: ArrayLike | None = None
) -> UpperBound:
    """Upper bound on delta at `epsilon` >= 0, from the best order of a Renyi curve [ZW-6].

    "classic": exp((order - 1)(D - epsilon)); "improved": that, times
    (1 - 1/order)^order / (order - 1). At most 1. Arguments and errors as for `to_epsilon`.
    """
    value, order = log_delta(curve, epsilon, rounds, conversion, orders)
    upper = min(max(math.nextafter(math.exp(value), 2.0), 5e-324), 1.0)
    return UpperBound(upper, "Renyi", order)


def log_delta(
    curve: Curve, epsilon: float, rounds: int = 1, conversion: Conversion = "improved", orders: ArrayLike | None = None
) -> tuple[float, float]:
    """(log of `to_delta`'s upper bound, its order), for values below the smallest float [ZW-6]."""
    epsilon = check.epsilon(epsilon)

    def objective(order, value):
        s = order - 1
        terms = s * value, -s * epsilon, _conversion(order, conversion)
        return math.fsum(terms) + 4 * EPS * sum(abs(term) for term in terms)

    value, order = _least(curve, objective, rounds, conversion, orders, epsilon)
    return min(value, 0.0), order


def _conversion(order, conversion):
    """log of the factor on delta: 0, or log((1 - 1/order)^order / (order - 1))."""
    if conversion == "classic":
        return 0.0
    s = order - 1
    return -s * math.log1p(1 / s) - math.log1p(s)


def _least(curve, objective, rounds, conversion, orders, scale):
    """(least objective(order, rounds * curve(order)), its order); scale: of the target, for the start."""
    if not callable(curve):
        raise TypeError(f"curve must be callable; got {curve!r}")
    rounds = check.whole("rounds", rounds, at_least=1)
    check.choice("conversion", conversion, CONVERSIONS)
    found = {}

    def at(order):
        if order not in found:
            value = rounds * _curve_value("curve", curve, order)
            found[order] = objective(order, value) if value < math.inf else math.inf
        return found[order]

    if orders is not None:
        for order in _orders(orders, name="orders")[0]:
            at(order)
    else:
        _search(lambda x: at(1 + math.exp(x)), _start(curve, rounds, scale))
        # Bounds that are interpolated between integers are best at an integer.
        best = min(found, key=found.get)
        for order in {max(2, math.floor(best)), max(2, math.ceil(best))}:
            at(float(order))
    best = min(found, key=found.get)
    if found[best] == math.inf:
        raise NoBracketError("the Renyi curve is infinite at every order that was tried")
    return found[best], best


def _start(curve, rounds, scale):
    """log(order - 1) at the optimum of a Gaussian with the same divergence at order 2."""
    at_two = rounds * _curve_value("curve", curve, 2.0)
    if not 0 < at_two < math.inf:
        return 0.0
    return min(max(0.5 * math.log(2 * (scale + 1) / at_two), -20.0), 11.0)


def _search(objective, x, low=-23.0, high=13.8):
    """Minimise a quasi-convex function of x = log(order - 1) on [low, high]; no result: it is recorded."""
    step, values = 0.5, {}

    def at(y):
        values[y] = objective(y)
        return values[y]

    x = min(max(x, low), high)
    at(x)
    # Walk to where it is finite (small orders), then downhill until it rises on both sides.
    while values[x] == math.inf and x > low:
        x = max(x - 2 * step, low)
        at(x)
    for sign, end in ((1, high), (-1, low)):
        best, stride = min(values, key=values.get), step
        while best * sign < end * sign:
            new = min(max(best + sign * stride, low), high)
            if at(new) > values[best]:
                break
            best, stride = new, 2 * stride
    best = min(values, key=values.get)
    left = max((y for y in values if y < best), default=low)
    right = min((y for y in values if y > best), default=high)
    if left < right:
        optimize.minimize_scalar(
            lambda y: min(at(y), 1e300), bounds=(left, right), method="bounded", options={"xatol": 1e-7}
        )


def _curve_value(name, curve, order):
    """The upper end of curve(order), >= 0; inf where the curve gives no bound."""
    try:
        value = curve(order)
    except NoBracketError:
        return math.inf
    return _upper_end(name, value, order)


def _upper_end(name, value, order):
    if isinstance(value, (Bracket, UpperBound)):
        value = value.upper
    try:
        value = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must return a number or a Bracket; got {value!r} at {order!r}") from error
    if not value >= 0:
        raise ValueError(f"{name} must return a value of at least 0; got {value!r} at order {order!r}")
    return value


# ------------------------------------------------------------------- checks


def _orders(order, name="order", largest=_LARGEST_ORDER):
    """(list of orders, was a single number): strictly increasing, each above 1."""
    if not isinstance(order, (list, tuple)) and np.ndim(order) == 0:
        return [check.real(name, order, above=1, at_most=largest)], True
    array = check.vector(name, list(order))
    values = [check.real(name, float(x), above=1, at_most=largest) for x in array]
    if any(x >= y for x, y in zip(values, values[1:])):
        raise ValueError(f"{name} must be strictly increasing; got {values!r}")
    return values, False


def _order_grid(order):
    orders, scalar = check.grid("order", order)
    for x in orders.ravel():
        check.real("order", float(x), above=1, at_most=_LARGEST_ORDER)
    return orders, scalar


def _like(array, scalar):
    return float(array) if scalar else array


def _pairs(parts, kind=None):
    """Checked list of (curve or pair, rounds)."""
    what = "Mixture" if kind else "curve"
    try:
        pairs = [(part, rounds) for part, rounds in parts]
    except (TypeError, ValueError) as error:
        raise TypeError(f"parts must be a list of ({what}, rounds) pairs; got {parts!r}") from error
    if not pairs:
        raise ValueError("parts must not be empty")
    for part, _ in pairs:
        if not (isinstance(part, kind) if kind else callable(part)):
            raise TypeError(f"parts must hold ({what}, rounds) pairs; got {part!r}")
    return [(part, check.whole("rounds", rounds, at_least=1)) for part, rounds in pairs]
