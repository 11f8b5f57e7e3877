"""One entry to all accountants: certified brackets of delta and epsilon.

A composition is a pair, `Mixture`, `TwoSided` or `DisjointUnion`, or a list of (pair, rounds). One round has a
closed form, plain Gaussians compose to one Gaussian; everything else goes to the
contour integral, whose bracket is the narrowest, and to the lattice where the
contour's bound does not close. Where none of them closes, the answer is Chernoff's bound with
0 below it, or what is within a rounding of 1: wide, and proved at both ends.
Renyi accounting, an upper bound only, is there on request and never chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np

from .. import gaussian
from .._base import validate as check
from .._base.lazy_scipy import special
from .._base.log_space import EPS
from .._base.validate import Direction
from ..gaussian import TAIL_ERROR
from ..mixtures import DisjointUnion, Mixture, TwoSided
from ..results import Bracket, NoBracketError, UpperBound, _outward_exp
from . import chernoff, contour, lattice, one_round, renyi, wide
from .tries import (
    HARDLY_ANY,
    LOG_PRACTICAL,
    Work,
    by_tries,
    choose,
    has_atoms,
    in_pieces,
    participations,
    work_for,
)

Method = Literal["auto", "contour", "lattice", "renyi"]
METHODS = ("auto", "contour", "lattice", "renyi")
PAIRS = (Mixture, TwoSided, DisjointUnion)
Pair = Mixture | TwoSided | DisjointUnion
Composition = Pair | Iterable[tuple[Pair, int]]
Parts = list[tuple[Pair, int]]  # of a checked composition: no pair is trivial, none stands twice
# The contour's answer stands when it is this narrow; else the lattice is asked too.
_NARROW = 1e-6
# Up to so many expected participations the lattice is alone with pairs in pieces: their transform has an atom.
_FEW = 3.0
# Where a bracket is wider than this (relative), the bounds that always exist are asked as well.
_WIDE = 0.01
_LOG_FAR = -200.0  # and below which the lattice has one try
# The domain: noise, delta and 1 - delta.
_LEAST_NOISE, _LEAST_DELTA, _LEAST_MISS = 0.01, 1e-300, 1e-12


def delta(
    composition: Composition, epsilon: float, direction: Direction = "both", method: Method = "auto", *, tolerance: float = 1e-6
) -> Bracket | UpperBound:
    """Bracket of the smallest delta for which the composition is (epsilon, delta)-DP.

    Parameters
    ----------
    composition : a pair, or list of (pair, rounds) with rounds >= 1; pairs are `Mixture`, `TwoSided` or `DisjointUnion`.
    epsilon : at least 0.
    direction : "remove", "add", or "both": remove, the larger of the two [C-9m]; with mixtures on both sides the larger
        of two that are computed, unless they are mirror images.
    method : "auto", "contour", "lattice", or "renyi": the best Renyi order, an
        UpperBound instead of a Bracket.
    tolerance : in [1e-9, 0.1], a relative width at which the search for a narrower bracket ends.

    `upper` is the guarantee; relative accuracy holds down to 1e-300. Where no accountant
    closes (delta far below the smallest float, or within a rounding of 1), method="auto"
    answers with a wide bracket, method "Chernoff" [A-18].
    Domain of method="auto", for the mechanisms that users name: noise multiplier 0.01 to 1e6, sampling probability 1e-9 to 1,
    up to 1e9 rounds, groups of up to 1e6, epsilon up to 1e4, delta 1e-300 to 1 - 1e-12; beyond it, an answer or a refusal.
    Raises ValueError or TypeError on bad input, NoBracketError where a named method does not close, or method="auto" has no
    answer: then its message says one of four things (too little noise, delta practically 0, delta practically 1,
    beyond the accountants) and what to do; what refused is its __cause__.
    Cost in CPU seconds: 6 ms in the median of practical settings, 0.3 s for 99%, 1 s at most in 12,000 questions; over the
    whole domain 15 ms in the median, 1.4 s for 99%, 5 s at most in 6,000: groups with hardly any noise, or of hundreds of thousands.
    A named method takes seconds. Relative width in practical settings with delta from 1e-15 to 1 - 1e-6: below 1e-9 in the median,
    5e-6 for 90%, 1e-3 at most in 9,190 questions (benchmark `domain`).
    """
    tolerance = check.real("tolerance", tolerance, at_least=1e-9, at_most=0.1)
    parts, epsilon = _prepare(composition, direction, method, epsilon=epsilon)
    if method == "renyi":
        return _larger(lambda side: _renyi_bound(renyi.to_delta, parts, epsilon, side), parts, direction)
    ask = lambda parts, side: side_delta(parts, epsilon, side, method, tolerance)
    return _larger(lambda side: _answer(ask, parts, side, method), parts, direction)


def log_delta(
    composition: Composition, epsilon: float, direction: Direction = "both", method: Method = "auto"
) -> Bracket:
    """Bracket of log(delta), where delta itself may be far below the smallest float.

    Arguments, domain and errors as for `delta`, without method="renyi" (`renyi.log_delta` has it);
    a delta that is exactly zero raises NoBracketError, and so does one for which no lower end above 0 is found.
    Where no accountant closes the bracket may be wide, method "Chernoff" [A-18]. Cost: up to some seconds: no budget holds here.
    """
    check.choice("method", method, [name for name in METHODS if name != "renyi"])
    parts, epsilon = _prepare(composition, direction, method, epsilon=epsilon)

    def ask(parts, side):
        try:
            return side_log_delta(parts, epsilon, side, method, work=Work())
        except NoBracketError:
            lower = wide.log_lower(parts, epsilon, side) if method == "auto" else -math.inf
            if lower == -math.inf:
                raise
            return Bracket(lower, max(lower, wide.log_upper(parts, epsilon, side)), "Chernoff")

    bracket = _larger(lambda side: _answer(ask, parts, side, method), parts, direction)
    if bracket is None:
        raise NoBracketError(f"delta is exactly zero at epsilon = {epsilon:g}: it has no logarithm")
    return bracket


def epsilon(
    composition: Composition, delta: float, direction: Direction = "both", method: Method = "auto", *, tolerance: float = 1e-6
) -> Bracket | UpperBound:
    """Bracket of the smallest epsilon >= 0 for which the composition is (epsilon, delta)-DP.

    Parameters, domain, errors and cost as for `delta`; delta in (0, 1). `upper` is the guarantee.

    >>> from dplib import accounting, mixtures
    >>> warm_up = mixtures.binomial(trials=1, probability=0.001, noise_multiplier=1.0)
    >>> main_part = mixtures.binomial(trials=1, probability=0.01, noise_multiplier=1.0)
    >>> print(f"{accounting.epsilon([(warm_up, 500), (main_part, 2000)], delta=1e-6).upper:.4f}")
    2.9585
    """
    tolerance = check.real("tolerance", tolerance, at_least=1e-9, at_most=0.1)
    parts, delta = _prepare(composition, direction, method, delta=delta)
    if method == "renyi":
        return _larger(lambda side: _renyi_bound(renyi.to_epsilon, parts, delta, side), parts, direction)
    ask = lambda parts, side: _side_epsilon(parts, delta, side, method, tolerance)
    return _larger(lambda side: _answer(ask, parts, side, method, delta), parts, direction)


def sides(parts: Parts, direction: Direction) -> list[Direction]:
    """The directions to compute, of which the largest counts: parts as checked by `merged`.

    With one-sided mixtures alone remove is the larger one [C-9m]; pairs that are their own mirror images cost the same
    in both directions; of anything else both are computed.
    """
    if direction != "both":
        return [direction]
    one_sided = all(isinstance(pair, Mixture) or getattr(pair, "remove_is_larger", False) for pair, _ in parts)
    return ["remove"] if one_sided or all(pair.is_symmetric for pair, _ in parts) else ["remove", "add"]


def _larger(ask, parts, direction):
    """ask(side) in the directions to compute: the larger answer."""
    found = [answer for side in sides(parts, direction) if (answer := ask(side)) is not None]
    if len(found) < 2:
        return found[0] if found else None
    top = max(found, key=lambda answer: answer.upper)
    if isinstance(top, UpperBound):
        return top
    return Bracket(max(answer.lower for answer in found), top.upper, top.method)


def _renyi_bound(convert, parts, target, side):
    if not parts:
        return UpperBound(0.0, "Renyi")
    return convert(renyi.composition_curve(parts, side), target)


def _answer(ask, parts, side, method, delta=None):
    """ask(parts, side); a refusal of method="auto" is one of four sentences, and what refused is its cause."""
    if method != "auto":
        return ask(_facing(parts, side), side)
    try:
        try:
            facing = _facing(parts, side)
        except NoBracketError:
            if not all(isinstance(pair, Mixture) for pair, _ in parts):
                raise
            # [C-9m] What add costs is at most what remove costs.
            found = ask(parts, "remove")
            if found.lower < 0:  # a logarithm has no lower end here
                raise
            return Bracket(0.0, found.upper, found.method)
        return ask(facing, side)
    except (ArithmeticError, ValueError) as error:
        raise NoBracketError(_refusal(parts, delta)) from error


def _facing(parts, side):
    """The parts with the components that this direction sees."""
    return [(mixture.facing(side), rounds) for mixture, rounds in parts]


def _refusal(parts, delta):
    """Why there is no bracket, and what to do: nothing that costs privacy. delta : where it was given."""
    noise = min((mixture.noise_multiplier for mixture, _ in parts), default=math.inf)
    if noise < _LEAST_NOISE:
        return f"too little noise: no bracket closes at a noise multiplier of {noise:g}; take at least {_LEAST_NOISE:g}"
    if delta is not None and delta < _LEAST_DELTA:
        return (
            f"delta is practically 0: no bracket of epsilon closes at delta = {delta:g}; ask for the delta at the epsilon "
            "that can be afforded"
        )
    if delta is not None and 1 - delta < _LEAST_MISS:
        return f"delta is practically 1: such a guarantee promises nothing at 1 - delta = {1 - delta:g}; ask at a smaller delta"
    return (
        "beyond the accountants: no bracket closes in this setting; more noise, a smaller sampling probability or fewer rounds "
        "bring it within their range"
    )


# ------------------------------------------------------------------ preparation


def check_request(direction: Direction, method: Method, **target: float) -> float:
    """Check direction, method and the target (epsilon=... or delta=...); returns the target."""
    check.direction(direction)
    check.choice("method", method, METHODS)
    [(name, value)] = target.items()
    return {"epsilon": check.epsilon, "delta": check.delta}[name](value)


def _prepare(composition, direction, method, **target):
    value, parts = check_request(direction, method, **target), merged(composition)
    if method not in ("auto", "lattice") and has_atoms(parts):
        raise ValueError(f"method must be 'auto' or 'lattice' for a pair that is known by finitely many losses (Atoms); got {method!r}")
    return parts, value


def merged(composition: Composition) -> Parts:
    """The composition as a list of (pair, rounds): checked, trivial pairs dropped, repeats joined."""
    if isinstance(composition, PAIRS):
        composition = [(composition, 1)]
    try:
        pairs = [(mixture, rounds) for mixture, rounds in composition]
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"composition must be a Mixture or a list of (Mixture, rounds) pairs; got {composition!r}"
        ) from error
    if not pairs:
        raise ValueError("composition must not be empty")
    rounds_of: dict[Pair, int] = {}
    for mixture, rounds in pairs:
        if not isinstance(mixture, PAIRS):
            raise TypeError(f"composition must hold Mixture objects, TwoSided or DisjointUnion ones; got {mixture!r}")
        rounds = check.whole("rounds", rounds, at_least=1)
        if not mixture.is_trivial:
            rounds_of[mixture] = rounds_of.get(mixture, 0) + rounds
    return list(rounds_of.items())


def _total_variation(parts):
    """Upper bound on delta at epsilon = 0, either direction: it adds up over rounds and is convex in the mixture."""
    rows = [
        rounds * float(probabilities @ special.erf(np.abs(shifts) / math.sqrt(8)))
        for pair, rounds in parts
        for shifts, probabilities in pair.laws()  # both laws against the centred Gaussian
    ]
    return math.fsum(rows) * (1 + 1e-12)


def _single(parts):
    """The pair of which one round is asked for, where that has a closed form; else None."""
    [(pair, rounds), *others] = parts
    return pair if rounds == 1 and not others and not isinstance(pair, DisjointUnion) else None


def _gaussian_mu(parts):
    """mu of the composition when every part is a plain Gaussian, else None."""
    if not all(mixture.is_gaussian for mixture, _ in parts):
        return None
    mu = math.sqrt(math.fsum(rounds * float(m.shifts[0]) ** 2 for m, rounds in parts))
    if mu > 1e100:
        raise NoBracketError(f"sensitivities of {mu:g} times the noise, over all rounds, leave the range of floats")
    return mu


# --------------------------------------------------------------- one direction


def side_delta(
    parts: Parts, epsilon: float, direction: Direction, method: Method = "auto", tolerance: float = _NARROW
) -> Bracket:
    """Bracket of delta in one direction; arguments as checked by `delta`."""
    work = None
    if method == "auto" and _needs_accountants(parts, epsilon, direction):
        rough = _rough_log_delta(parts, epsilon, direction)
        if (bracket := wide.at_a_glance(parts, epsilon, direction, rough)) is not None:
            return bracket
        bracket = wide.delta_below_ceiling(parts, epsilon) if direction == "add" else None
        if bracket is not None and bracket.relative_width <= tolerance:
            return bracket
        work = work_for(parts, rough)
    try:
        side = side_log_delta(parts, epsilon, direction, method, tolerance, work)
    except NoBracketError:
        if method != "auto":
            raise
        return wide.bracket(parts, epsilon, direction)
    if side is None:
        return Bracket(0.0, 0.0, "closed form")
    lower, upper = _outward_exp(side.lower, side.upper)
    if side.width > _WIDE and method == "auto":
        always = wide.bracket(parts, epsilon, direction)
        lower, upper = max(lower, always.lower), min(upper, always.upper)
    return Bracket(min(lower, upper), upper, side.method)


def _needs_accountants(parts, epsilon, direction):
    """Whether delta has no closed form."""
    closed = not parts or _gaussian_mu(parts) is not None or isinstance(_single(parts), Mixture)
    return not (closed or _is_beyond(parts, epsilon, direction))


def _is_beyond(parts, epsilon, direction):
    """Whether no loss reaches epsilon: the add loss is at most -log p_0 in every round (-inf floors give +inf)."""
    return direction == "add" and epsilon >= -sum(rounds * m.log_floor for m, rounds in parts) * (1 + 8 * EPS)


def _rough_log_delta(parts, epsilon, direction):
    """Chernoff's bound on log delta, without a certificate; far above it where records are hardly ever sampled."""
    try:
        return chernoff.Chernoff(parts, direction).log_delta(epsilon)
    except (NoBracketError, ValueError):
        return 0.0


def side_log_delta(
    parts: Parts, epsilon: float, direction: Direction, method: Method = "auto", tolerance: float = _NARROW, work: Work | None = None
) -> Bracket | None:
    """Bracket of log delta, or None where delta is exactly zero. work : what the accountants may spend."""
    if not parts:
        return None
    mu = _gaussian_mu(parts)
    if mu is not None:
        value = gaussian.log_delta(mu, epsilon)
        # The threshold x = eps/mu - mu/2 rounds; log delta falls in x at a rate below |x| + 2.
        rate = abs(epsilon / mu - mu / 2) + 2
        pad = TAIL_ERROR * (1 + abs(value)) + 4 * EPS * (epsilon / mu + mu) * rate
        return Bracket(value - pad, min(value + pad, 0.0), "closed form")
    if _is_beyond(parts, epsilon, direction):
        return None
    if (pair := _single(parts)) is not None:
        try:
            return one_round.log_delta(pair, epsilon, direction)
        except NoBracketError:
            if isinstance(pair, Mixture):
                raise

    if work is None:
        work = Work() if method != "auto" else work_for(parts, _rough_log_delta(parts, epsilon, direction))

    def by_contour():
        return contour.side_log_delta(parts, epsilon, direction, *work.contour)

    def by_lattice():
        if not work.lattice:
            return lattice.side_log_delta(parts, epsilon, direction, tolerance)
        return by_tries(
            lambda aim, *more: lattice.side_log_delta(parts, epsilon, direction, aim, *more, _LOG_FAR),
            work.lattice, tolerance, chernoff.log_width,
            lambda found: (found.upper if found else wide.log_upper(parts, epsilon, direction, quick=True)) > LOG_PRACTICAL,
        )

    # The lattice cannot beat a contour bracket that is narrow next to the logarithm itself.
    narrow = lambda bracket: chernoff.log_width(bracket) <= tolerance * (1 + abs(bracket.upper))
    routes = _routes(parts, method, by_contour, by_lattice)
    return choose(routes, chernoff.log_width, narrow)


def _side_epsilon(parts, delta, direction, method, tolerance):
    if not parts:
        return Bracket(0.0, 0.0, "closed form")
    mu = _gaussian_mu(parts)
    if mu is not None:
        value = gaussian.epsilon(mu, delta)
        if value == 0.0:
            return Bracket(0.0, 0.0, "closed form")
        pad = 1e-12 * value + mu * (TAIL_ERROR * (1 - math.log(min(delta, 1 - delta))) + 4 * EPS * mu)
        return Bracket(max(value - pad, 0.0), value + pad, "closed form")
    if (pair := _single(parts)) is not None:
        try:
            return one_round.epsilon(pair, delta, direction)
        except NoBracketError:
            if isinstance(pair, Mixture):
                raise
    if _total_variation(parts) <= delta:
        return Bracket(0.0, 0.0, "closed form")
    below_ceiling = wide.epsilon_below_ceiling(parts, delta) if method == "auto" and direction == "add" else None
    if below_ceiling is not None and below_ceiling.relative_width <= tolerance:
        return below_ceiling

    work = Work() if method != "auto" else work_for(parts, math.log(delta))

    def by_contour():
        return contour.side_epsilon(parts, delta, direction, *work.contour)

    def by_lattice():
        if not work.lattice:
            return lattice.side_epsilon(parts, delta, direction, tolerance)
        return by_tries(
            lambda aim, *more: lattice.side_epsilon(parts, delta, direction, aim, *more),
            work.lattice, tolerance, lambda bracket: bracket.relative_width,
            lambda found: math.log(delta) > LOG_PRACTICAL and math.log1p(-delta) > wide.LOG_CERTAIN,
        )

    narrow = lambda bracket: bracket.relative_width <= tolerance
    routes = _routes(parts, method, by_contour, by_lattice)
    try:
        bracket = choose(routes, lambda bracket: bracket.relative_width, narrow)
    except NoBracketError as error:
        if method != "auto":
            raise
        if below_ceiling is not None:
            return below_ceiling
        try:
            return Bracket(0.0, wide.epsilon_upper(parts, delta, direction), "Chernoff")
        except NoBracketError:
            raise error from None
    if bracket.relative_width > _WIDE and method == "auto":
        upper = min(bracket.upper, max(wide.epsilon_upper(parts, delta, direction), bracket.lower))
        return Bracket(bracket.lower, upper, bracket.method)
    return bracket


def _routes(parts, method, by_contour, by_lattice):
    """The accountants to ask, in order."""
    if method != "auto":
        return [by_lattice if method == "lattice" else by_contour]
    expected = participations(parts)
    if in_pieces(parts) and expected <= _FEW:
        return [by_lattice]
    if expected <= HARDLY_ANY:  # the contour would close late, or not at all
        return [by_lattice, by_contour]
    return [by_contour, by_lattice]
