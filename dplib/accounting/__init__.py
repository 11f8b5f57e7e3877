"""One entry to all accountants: certified brackets of delta and epsilon.

A composition is a mixture, or a list of (mixture, rounds) pairs. One round has a
closed form, plain Gaussians compose to one Gaussian; everything else goes to the
contour integral, whose bracket is the narrowest, and to the lattice where the
contour's bound does not close. Where none of them closes, the answer is Chernoff's bound with
0 below it, or what is within a rounding of 1: wide, and proved at both ends.
Renyi accounting, an upper bound only, is there on request and never chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .. import gaussian
from .._base import validate as check
from .._base.lazy_scipy import special
from .._base.log_space import EPS
from .._base.validate import Direction
from ..gaussian import TAIL_ERROR
from ..mixtures import Mixture
from ..results import Bracket, NoBracketError, UpperBound
from . import chernoff, contour, lattice, one_round, renyi, wide
from .floats import outward_exp

Method = Literal["auto", "contour", "lattice", "renyi"]
METHODS = ("auto", "contour", "lattice", "renyi")
Composition = Mixture | Iterable[tuple[Mixture, int]]
Parts = list[tuple[Mixture, int]]  # of a checked composition: no pair is trivial, none stands twice
# The contour's answer stands when it is this narrow; else the lattice is asked too.
_NARROW = 1e-6
# Up to so many rounds, or expected participations, the lattice is asked first.
_HANDFUL, _HARDLY_ANY = 10, 0.05
# Up to this many rounds, or expected participations, the contour is given less work: it often does not close.
_FEW_ROUNDS, _RARE = 30, 8.0
# Where a bracket is wider than this (relative), the bounds that always exist are asked as well.
_WIDE = 0.01
_LOG_PRACTICAL = -40.0  # log of a delta below which brackets are as narrow as a glance makes them
# The domain: noise, delta and 1 - delta.
_LEAST_NOISE, _LEAST_DELTA, _LEAST_MISS = 0.01, 1e-300, 1e-12
# Relative widths that the lattice aims at: first and last, and where the first was far off.
_GLANCE, _SECOND = 1e-3, 2e-4
_TRIES = (35_000, 500_000), (60_000, 400_000), (lattice.MOST_CELLS, lattice.MOST_POINTS)  # cells of a round, points of the sum


def delta(
    composition: Composition, epsilon: float, direction: Direction = "both", method: Method = "auto", *, tolerance: float = 1e-6
) -> Bracket | UpperBound:
    """Bracket of the smallest delta for which the composition is (epsilon, delta)-DP.

    Parameters
    ----------
    composition : Mixture, or list of (Mixture, rounds) with rounds >= 1.
    epsilon : at least 0.
    direction : "remove", "add", or "both" (remove, the larger of the two [C-9m]).
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
    Cost in CPU seconds: 5 ms in the median of practical settings, below 0.7 s for 99%, a little over 1 s at most; over the
    whole domain 12 ms in the median, below 4 s for 99%, and up to 10 s for groups of thousands with little noise.
    A named method takes seconds.
    """
    tolerance = check.real("tolerance", tolerance, at_least=1e-9, at_most=0.1)
    parts, epsilon, side = _prepare(composition, direction, method, epsilon=epsilon)
    if method == "renyi":
        return _renyi_bound(renyi.to_delta, parts, epsilon, side)
    return _answer(lambda parts, side: side_delta(parts, epsilon, side, method, tolerance), parts, side, method)


def log_delta(
    composition: Composition, epsilon: float, direction: Direction = "both", method: Method = "auto"
) -> Bracket:
    """Bracket of log(delta), where delta itself may be far below the smallest float.

    Arguments, domain and errors as for `delta`, without method="renyi" (`renyi.log_delta` has it);
    a delta that is exactly zero raises NoBracketError, and so does one for which no lower end above 0 is found.
    Where no accountant closes the bracket may be wide, method "Chernoff" [A-18]. Cost: up to some seconds: no budget holds here.
    """
    check.choice("method", method, [name for name in METHODS if name != "renyi"])
    parts, epsilon, side = _prepare(composition, direction, method, epsilon=epsilon)

    def ask(parts, side):
        try:
            return side_log_delta(parts, epsilon, side, method, work=_Work())
        except NoBracketError:
            lower = wide.log_lower(parts, epsilon, side) if method == "auto" else -math.inf
            if lower == -math.inf:
                raise
            return Bracket(lower, max(lower, wide.log_upper(parts, epsilon, side)), "Chernoff")

    bracket = _answer(ask, parts, side, method)
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
    parts, delta, side = _prepare(composition, direction, method, delta=delta)
    if method == "renyi":
        return _renyi_bound(renyi.to_epsilon, parts, delta, side)
    return _answer(lambda parts, side: _side_epsilon(parts, delta, side, method, tolerance), parts, side, method, delta)


def _renyi_bound(convert, parts, target, side):
    if not parts:
        return UpperBound(0.0, "Renyi")
    return convert(renyi.composition_curve(_facing(parts, side), side), target)


def _answer(ask, parts, side, method, delta=None):
    """ask(parts, side); a refusal of method="auto" is one of four sentences, and what refused is its cause."""
    if method != "auto":
        return ask(_facing(parts, side), side)
    try:
        try:
            facing = _facing(parts, side)
        except NoBracketError:
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
    value = check_request(direction, method, **target)
    return merged(composition), value, check.side(direction)


def merged(composition: Composition) -> Parts:
    """The composition as a list of (mixture, rounds): checked, trivial pairs dropped, repeats joined."""
    if isinstance(composition, Mixture):
        composition = [(composition, 1)]
    try:
        pairs = [(mixture, rounds) for mixture, rounds in composition]
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"composition must be a Mixture or a list of (Mixture, rounds) pairs; got {composition!r}"
        ) from error
    if not pairs:
        raise ValueError("composition must not be empty")
    rounds_of: dict[Mixture, int] = {}
    for mixture, rounds in pairs:
        if not isinstance(mixture, Mixture):
            raise TypeError(f"composition must hold Mixture objects; got {mixture!r}")
        rounds = check.whole("rounds", rounds, at_least=1)
        if not mixture.is_trivial:
            rounds_of[mixture] = rounds_of.get(mixture, 0) + rounds
    return list(rounds_of.items())


def _is_rare(parts):
    """Whether the rounds are few, or sample the records rarely."""
    rounds = sum(count for _, count in parts)
    return rounds > 1 and (rounds <= _FEW_ROUNDS or _participations(parts) <= _RARE)


def _participations(parts):
    """Expected number of rounds with a sensitivity above 0."""
    return sum(count * float(m.probabilities[m.shifts > 0].sum()) for m, count in parts)


def _total_variation(parts):
    """Upper bound on delta at epsilon = 0, either direction: it adds up over rounds and is convex in the mixture."""
    rows = [rounds * float(m.probabilities @ special.erf(m.shifts / math.sqrt(8))) for m, rounds in parts]
    return math.fsum(rows) * (1 + 1e-12)


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
    parts: Parts, epsilon: float, direction: str, method: Method = "auto", tolerance: float = _NARROW
) -> Bracket:
    """Bracket of delta in one direction; arguments as checked by `delta`."""
    work = None
    if method == "auto" and _needs_accountants(parts, epsilon, direction):
        rough = _rough_log_delta(parts, epsilon, direction)
        if (bracket := wide.at_a_glance(parts, epsilon, direction, rough)) is not None:
            return bracket
        work = _work(parts, rough)
    try:
        side = side_log_delta(parts, epsilon, direction, method, tolerance, work)
    except NoBracketError:
        if method != "auto":
            raise
        return wide.bracket(parts, epsilon, direction)
    if side is None:
        return Bracket(0.0, 0.0, "closed form")
    lower, upper = outward_exp(side.lower, side.upper)
    if side.width > _WIDE and method == "auto":
        always = wide.bracket(parts, epsilon, direction)
        lower, upper = max(lower, always.lower), min(upper, always.upper)
    return Bracket(min(lower, upper), upper, side.method)


def _needs_accountants(parts, epsilon, direction):
    """Whether delta has no closed form."""
    closed = not parts or _gaussian_mu(parts) is not None or _is_one_round(parts)
    return not (closed or _is_beyond(parts, epsilon, direction))


def _is_beyond(parts, epsilon, direction):
    """Whether no loss reaches epsilon: the add loss is at most -log p_0 in every round (-inf floors give +inf)."""
    return direction == "add" and epsilon >= -sum(rounds * m.log_floor for m, rounds in parts) * (1 + 8 * EPS)


def _is_one_round(parts):
    return len(parts) == 1 and parts[0][1] == 1


def _rough_log_delta(parts, epsilon, direction):
    """Chernoff's bound on log delta, without a certificate; far above it where records are hardly ever sampled."""
    try:
        return chernoff.Chernoff(parts, direction).log_delta(epsilon)
    except (NoBracketError, ValueError):
        return 0.0


def side_log_delta(
    parts: Parts, epsilon: float, direction: str, method: Method = "auto", tolerance: float = _NARROW, work: _Work | None = None
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
    if _is_one_round(parts):
        return one_round.log_delta(parts[0][0], epsilon, direction)

    if work is None:
        work = _Work() if method != "auto" else _work(parts, _rough_log_delta(parts, epsilon, direction))

    def by_contour():
        return contour.side_log_delta(parts, epsilon, direction, *work.contour)

    def by_lattice():
        if not work.lattice:
            return lattice.side_log_delta(parts, epsilon, direction, tolerance)
        return _by_tries(
            lambda aim, *more: lattice.side_log_delta(parts, epsilon, direction, aim, *more, _LOG_PRACTICAL),
            work.lattice, tolerance, lambda bracket: bracket.width,
            lambda found: (found.upper if found else wide.log_upper(parts, epsilon, direction, quick=True)) > _LOG_PRACTICAL,
        )

    # The lattice cannot beat a contour bracket that is narrow next to the logarithm itself.
    narrow = lambda bracket: bracket.width <= tolerance * (1 + abs(bracket.upper))
    routes = _routes(parts, method, by_contour, by_lattice)
    return _choose(routes, lambda bracket: bracket.width, narrow)


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
    if _is_one_round(parts):
        return one_round.epsilon(parts[0][0], delta, direction)
    if _total_variation(parts) <= delta:
        return Bracket(0.0, 0.0, "closed form")
    below_ceiling = wide.epsilon_below_ceiling(parts, delta, direction) if method == "auto" else None
    if below_ceiling is not None and below_ceiling.relative_width <= tolerance:
        return below_ceiling

    work = _Work() if method != "auto" else _work(parts, math.log(delta))

    def by_contour():
        return contour.side_epsilon(parts, delta, direction, *work.contour)

    def by_lattice():
        if not work.lattice:
            return lattice.side_epsilon(parts, delta, direction, tolerance)
        return _by_tries(
            lambda aim, *more: lattice.side_epsilon(parts, delta, direction, aim, *more),
            work.lattice, tolerance, lambda bracket: bracket.relative_width,
            lambda found: math.log(delta) > _LOG_PRACTICAL and math.log1p(-delta) > wide.LOG_CERTAIN,
        )

    narrow = lambda bracket: bracket.relative_width <= tolerance
    routes = _routes(parts, method, by_contour, by_lattice)
    try:
        bracket = _choose(routes, lambda bracket: bracket.relative_width, narrow)
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
    if sum(rounds for _, rounds in parts) <= _HANDFUL or _participations(parts) <= _HARDLY_ANY:
        # A few rounds, or rare ones: the contour would close late, or not at all.
        return [by_lattice, by_contour]
    return [by_contour, by_lattice]


@dataclass(frozen=True)
class _Work:
    """What each accountant may spend, as arguments of its functions; seconds, where nothing is said."""

    contour: tuple = ()
    lattice: tuple = ()  # (cells, points) of each try


def _work(parts, log_delta):
    """What method="auto" asks of each: a tenth of a second, less where little can come of it. log_delta : roughly."""
    hopeful = log_delta > _LOG_PRACTICAL and not _is_rare(parts)
    return _Work((4_000_000 if hopeful else 1_000_000,), _TRIES)


def _by_tries(ask, tries, tolerance, width, practical):
    """The lattice at a glance; then on a fine grid with that as a guess, and once more where it is still wide.

    ask(aim, cells, points, guess) : a Bracket, in which the truth lies every time. tries : (cells, points) of each.
    width : function of a bracket. practical : function of a bracket or None, whether a finer one is worth its time.
    """
    found = None
    for aim, (cells, points) in zip((_GLANCE, tolerance, _GLANCE), tries):
        if found is not None:
            last = width(found)
            if last <= tolerance or (aim == _GLANCE and last <= _GLANCE):
                break
            # A finer grid helps more than a longer window where the grid was too coarse.
            aim = aim if last <= _GLANCE else max(aim, _SECOND)
        try:
            bracket = ask(max(aim, tolerance), cells, points, found and found.upper)
        except NoBracketError:
            if found is None and aim == tolerance:
                raise
            if not practical(found):
                break
            continue
        if found is not None:
            lower, upper = max(bracket.lower, found.lower), min(bracket.upper, found.upper)
            if lower > upper:
                raise AssertionError(f"two grids contradict each other: {found!r} and {bracket!r}")
            bracket = Bracket(lower, upper, bracket.method)
        found = bracket
        if not practical(found):
            break
    if found is None:
        raise NoBracketError("the lattice found no bracket within its budget")
    return found


def _choose(routes, width, narrow):
    """The first bracket that is narrow, else the narrowest."""
    found, reasons = [], []
    for route in routes:
        try:
            found.append(route())
        except (NoBracketError, ValueError) as error:
            # ValueError: a logarithm of what is not positive any more, and the like.
            reasons.append(str(error) if isinstance(error, NoBracketError) else f"{route.__name__} failed ({error})")
            continue
        if narrow(found[-1]):
            break
    if not found:
        raise NoBracketError("no accountant's bound closes here: " + "; ".join(reasons))
    return min(found, key=width)
