"""How much work method="auto" puts into an answer, and which of the answers stands."""

from __future__ import annotations

from dataclasses import dataclass

from ..mixtures import Atoms, DisjointUnion
from ..results import Bracket, NoBracketError
from . import lattice

LOG_PRACTICAL = -40.0  # log of a delta below which brackets are as narrow as a glance makes them
HARDLY_ANY = 0.05  # expected participations, up to which the contour rarely closes
# Relative widths that the lattice aims at: first and last, and where the first was far off.
_GLANCE, _SECOND, _FAR_OFF = 1e-3, 2e-4, 1e-2
# Of each try the width it aims at, None for that asked for, cells of a round and points of the sum; the last one where the one before was far off.
_TRIES = (_GLANCE, 35_000, 500_000), (None, 60_000, 400_000), (_GLANCE, 400_000, 1_300_000)
_FINEST = lattice.MOST_CELLS, lattice.MOST_POINTS


@dataclass(frozen=True)
class Work:
    """What each accountant may spend, as arguments of its functions; seconds, where nothing is said."""

    contour: tuple = ()
    lattice: tuple = ()  # (width, cells, points) of each try


def work_for(parts, log_delta):
    """What method="auto" asks of each: a tenth of a second, less where little can come of it. log_delta : roughly."""
    practical = log_delta > LOG_PRACTICAL
    hopeful = practical and participations(parts) > HARDLY_ANY
    # A glance tells whether delta is worth more where it may be far smaller.
    return Work((10_000_000 if hopeful else 1_000_000,), _TRIES[1:] if practical else _TRIES)


def by_tries(ask, tries, tolerance, width, practical):
    """The lattice at a glance, unless delta is known to be practical; then on a fine grid, and once more where that is still wide.

    ask(aim, cells, points, guess) : a Bracket, in which the truth lies every time. tries : as in `Work`.
    width : function of a bracket. practical : function of a bracket or None, whether a finer one is worth its time.
    """
    found = None
    for number, (aim, cells, points) in enumerate(tries):
        last, aim = number == len(tries) - 1, aim or tolerance
        if found is not None:
            reached = width(found)
            if reached <= tolerance or (last and reached <= _GLANCE):
                break
            if last and reached > _FAR_OFF:
                cells, points = _FINEST
            # A finer grid helps more than a longer window where the grid was too coarse.
            aim = aim if reached <= _GLANCE else max(aim, _SECOND)
        try:
            bracket = ask(max(aim, tolerance), cells, points, found and found.upper)
        except NoBracketError:
            if found is None and number > 0:
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


def choose(routes, width, narrow):
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


def participations(parts):
    """Expected number of rounds with a sensitivity above 0."""
    return sum(count * pair.participation for pair, count in parts)


def in_pieces(parts):
    """Whether a pair is a disjoint union."""
    return any(isinstance(pair, DisjointUnion) for pair, _ in parts)


def has_atoms(parts):
    """Whether a pair is known by finitely many losses: for those there is the lattice alone."""
    unions = [pair for pair, _ in parts if isinstance(pair, DisjointUnion)]
    return any(isinstance(piece, Atoms) for union in unions for _, piece in union.pieces)
