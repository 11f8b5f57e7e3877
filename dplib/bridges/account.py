"""What releases cost together: pairs are bracketed, what has only a Rényi curve is bounded from above.

An `Account` counts *items*. An item is a tuple, its kind first; sensitivities are those of one record:

    ("gaussian", sigma)   ("poisson", q, sigma)   ("fixed", n, B, sigma)   ("truncated", n, B, q, sigma)   ("mixture", c, p, sigma)    pairs
    ("allocation", t, k, E, sigma)    pairs above and below
    ("laplace", b)   ("discrete laplace", a, C)   ("response", p, buckets)   ("zcdp", rho, xi)   ("release", epsilon, delta)
    ("non-private",)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from .. import accounting, mixtures
from .._base import validate as check
from ..accounting import renyi
from ..mechanisms import allocation_blocks
from ..mechanisms.composed import both_ends
from ..mixtures import Mixture
from ..results import Bracket, NoBracketError, UpperBound
from . import curves

Relation = Literal["add/remove", "zero-out", "substitution"]
RELATIONS = ("add/remove", "zero-out", "substitution")
PAIRS = ("gaussian", "poisson", "fixed", "truncated", "mixture", "allocation")
_ADJACENCY = {"add/remove": "add-remove"}  # as mechanisms say it
NON_PRIVATE = ("non-private",)
# Of more different pairs than this neighbouring ones are merged, so that an answer takes about half a second. The contour takes the
# longer the rarer records take part: as many cells as expected participations; where these are few, the lattice with few cells, and
# fewer still where each is integrated in pieces.
_MOST_PAIRS = 32
_CELLS, _OFTEN, _FEW, _FEWEST = 160, 20, 8, 4
_FINEST, _WIDER = 2.0**-10, 1.3  # width of a cell, and how it grows


class Account:
    """The releases so far, and what they cost together.

    Parameters
    ----------
    relation : "add/remove", "zero-out" or "substitution" [C-4].
    group_size : k >= 1 records that differ.

    `epsilon` and `delta` hold in both directions. They are a Bracket where every item is a pair; else the smaller of two
    UpperBounds: Rényi orders of everything [ZW-6], or basic composition of the pairs with pure differential privacy.
    Of more than 32 different pairs neighbouring ones are merged, outwards at both ends: such a bracket is wider, and proved.
    Raises ValueError or TypeError on bad input.

    >>> from dplib.bridges.account import Account
    >>> account = Account()
    >>> account.add(("poisson", 0.01, 1.0), 2000)
    >>> print(f"{account.epsilon(1e-6).upper:.5f}")
    2.95525
    """

    def __init__(self, relation: Relation = "add/remove", group_size: int = 1):
        self.relation = check.choice("relation", relation, RELATIONS)
        self.group_size = check.whole("group_size", group_size, at_least=1, at_most=10**6)
        self.rounds: dict[tuple, int] = {}

    def add(self, item: tuple, count: int = 1) -> None:
        """Count an item `count` >= 0 times more."""
        total = self.rounds.get(item, 0) + count
        if total:
            self.rounds[item] = check.whole("count", total, at_least=1)

    @property
    def is_private(self) -> bool:
        """Whether nothing was released without noise."""
        return NON_PRIVATE not in self.rounds

    @property
    def sensitivity(self) -> int:
        """How far the group moves a sum, in clip norms: k, and 2 k where records are replaced by others."""
        return self.group_size * (2 if self.relation == "substitution" else 1)

    def pairs(self) -> list[tuple[accounting.Pair, int]]:
        """The dominating pairs, as `dplib.accounting` takes them."""
        return self._parts(self._paired(), up=True)

    def epsilon(self, delta: float) -> Bracket | UpperBound:
        """The smallest epsilon at `delta` in (0, 1): a Bracket, or an UpperBound (see the class).

        Raises NoBracketError where there is none: something was released without noise, measured releases have
        used up delta, or as `accounting.epsilon`.
        """
        delta = check.delta(delta)
        others = self._others()
        if not others:
            return self._bracket(accounting.epsilon, delta)
        left = Fraction(delta) - self._failures()
        pure = self._pure()
        if left < 0 or (left == 0 and (self._paired() or pure is None)):
            raise NoBracketError(
                f"delta is used up: measured releases failed with probability {float(self._failures()):g} in all, of delta = {delta:g}; "
                "ask at a larger delta"
            )
        rest = curves.rounded(left, up=False)

        def basic():
            pairs = self._bracket(accounting.epsilon, rest).upper if rest > 0 else 0.0
            return UpperBound(curves.rounded(Fraction(pairs) + pure, up=True), "basic composition")

        ways: list[Callable] = [lambda: renyi.to_epsilon(self._curve(), rest)] if rest > 0 else []
        return _least(ways + [basic] * (pure is not None))

    def delta(self, epsilon: float) -> Bracket | UpperBound:
        """The smallest delta at `epsilon` >= 0; answers and errors as `epsilon`."""
        epsilon = check.epsilon(epsilon)
        if not self._others():
            return self._bracket(accounting.delta, epsilon)
        pure, failures = self._pure(), self._failures()

        def basic():
            pairs = self._bracket(accounting.delta, curves.rounded(Fraction(epsilon) - pure, up=False))
            return UpperBound(pairs.upper, "basic composition")

        ways: list[Callable] = [lambda: renyi.to_delta(self._curve(), epsilon)]
        bound = _least(ways + [basic] * (pure is not None and pure <= epsilon))
        return UpperBound(min(curves.rounded(Fraction(bound.upper) + failures, up=True), 1.0), bound.method, bound.order)

    def _paired(self):
        """{pair: rounds}; plain Gaussians are one, whatever their noise [M-0a]."""
        pairs = {item: count for item, count in self.rounds.items() if item[0] in PAIRS}
        plain = {item[1]: pairs[item] for item in list(pairs) if item[0] == "gaussian"}
        if len(plain) > 1:
            pairs = {item: count for item, count in pairs.items() if item[0] != "gaussian"}
            pairs[("gaussian", together(plain))] = 1
        return pairs

    def _others(self):
        if not self.is_private:
            raise NoBracketError("no privacy at all: something was released without noise")
        return [(item, count) for item, count in self.rounds.items() if item[0] not in PAIRS]

    def _parts(self, items, up):
        """Pairs that dominate these items together (up), or are dominated by them: the same but for random allocation."""
        parts = []
        for item, count in items.items():
            if item[0] == "allocation":
                found = allocation_blocks.pairs_above(item[1:]) if up else allocation_blocks.pairs_below(item[1:])
                parts += [(pair, times * count) for pair, times in found]
            else:
                parts.append((self._mixture(item), count))
        return parts

    def _mixture(self, item):
        kind, *law, noise = item
        if kind == "gaussian":
            return Mixture([float(self.sensitivity)], [1.0], noise)
        if kind == "poisson":
            pair = mixtures.binomial(self.group_size, law[0], noise)
            return mixtures.two_sided(pair, pair) if self.relation == "substitution" else pair
        if kind == "fixed":
            size, batch = law
            if self.relation != "add/remove":
                return mixtures.replaced_in_batch(batch, size, noise, self.relation)
            return mixtures.hypergeometric(batch, size - self.group_size, self.group_size, noise)
        if kind == "truncated":
            size, batch, rate = law
            return mixtures.truncated_poisson(rate, size, batch, noise, _ADJACENCY.get(self.relation, self.relation))
        return Mixture(*law, noise)

    def _in_pieces(self, pairs):
        """Whether there is a pair that has no Rényi curve."""
        return any(kind in ("truncated", "allocation") or (kind == "fixed" and self.relation != "add/remove") for kind, *_ in pairs)

    def _curve(self):
        """The Rényi curve of everything, without what measured releases fail."""
        pairs = self._paired()
        if self._in_pieces(pairs):
            raise NoBracketError(
                "where a record displaces another one, or under random allocation, there is no Rényi curve here, and so none of everything together"
            )
        parts = [(curves.of(item, self.sensitivity, self.relation), count) for item, count in self._others()]
        if pairs:
            pairs = pairs if len(pairs) <= _FEWEST else merged(pairs, _FEWEST, up=True)
            parts.append((renyi.composition_curve([(self._mixture(item), count) for item, count in pairs.items()]), 1))
        return renyi.compose(parts)

    def _pure(self):
        """The epsilon of all items that are no pairs, at delta = 0; None where one has none."""
        each = [(curves.pure(item, self.sensitivity, self.relation), count) for item, count in self._others()]
        return None if any(one is None for one, _ in each) else sum(one * count for one, count in each)

    def _failures(self):
        return sum(Fraction(item[2]) * count for item, count in self._others() if item[0] == "release")

    def _bracket(self, ask, target):
        """The pairs alone."""
        pairs = self._paired()
        if not pairs:
            return Bracket(0.0, 0.0, "closed form")
        if len(pairs) <= _MOST_PAIRS:
            above = self._parts(pairs, up=True)
            below = self._parts(pairs, up=False) if any(kind == "allocation" for kind, *_ in pairs) else above
            return both_ends(ask, above, below, target)
        often = sum(count * _participation(item) for item, count in pairs.items()) * self.group_size
        few = _FEWEST if self._in_pieces(pairs) else _FEW
        tries: list[tuple[int, dict]] = [(few, {"tolerance": 0.01})]
        if often >= _OFTEN and few == _FEW:
            tries.insert(0, (int(min(often, _CELLS)), {"method": "contour"}))
        for cells, options in tries:
            parts = [self._parts(merged(pairs, cells, up), up) for up in (True, False)]
            try:
                found = both_ends(ask, *parts, target, **options)
            except NoBracketError:
                if cells == few:
                    raise
                continue
            break
        return Bracket(found.lower, found.upper, f"{found.method} of merged pairs")


def together(counts: dict[float, int]) -> float:
    """The noise of one Gaussian that tells as much as these on the same records: {noise: how many} [M-0a].

    So it does on the same sample, of which nobody knows the records of the group: given what came before, the modes of a release
    have the largest inner products where all point one way, and then dominate [M-K].
    """
    if list(counts.values()) == [1]:
        return next(iter(counts))
    return 1 / math.sqrt(math.fsum(count / noise / noise for noise, count in counts.items()))


def merged(pairs: dict[tuple, int], cells: int, up: bool) -> dict[tuple, int]:
    """At most about `cells` pairs that dominate these together (up), or are dominated by them [M-B], [A-22].

    Pairs of a cell become one: with the least noise and the largest sampling probability, or with the most and the smallest.
    Given mixtures are left as they are.
    """
    least = min((item[-1] for item in pairs if item[0] != "mixture"), default=1.0)
    most = max((item[1] for item in pairs if item[0] == "poisson"), default=1.0)
    places = [(_place(item, least, most), item, count) for item, count in pairs.items()]
    width = _FINEST
    while True:
        found: dict[tuple, list] = {}
        for (sort, place), item, count in places:
            found.setdefault((sort, *(int(x / width) for x in place)), []).append((item, count))
        if len(found) <= cells or width > 1:
            break
        width *= _WIDER
    worst = {True: (min, max), False: (max, min)}[up]
    total: dict[tuple, int] = {}
    for group in found.values():
        (kind, *law, _), _ = group[0]
        noise = worst[0](item[-1] for item, _ in group)
        if kind == "poisson":
            law = [worst[1](item[1] for item, _ in group)]
        item = (kind, *law, noise)
        total[item] = total.get(item, 0) + sum(count for _, count in group)
    return total


def _participation(item):
    """How often a record takes part in what this item counts, roughly."""
    rates = {"poisson": lambda: item[1], "fixed": lambda: item[2] / item[1], "allocation": lambda: item[2] * item[3]}
    return rates.get(item[0], lambda: 1.0)()


def _place(item, least, most):
    """Where a pair stands among those of its kind, between 0 and log 2: the nearer to the least noise and the largest probability,
    the more it costs, and the finer are the cells."""
    kind, *law, noise = item
    if kind == "mixture":
        return item, ()
    noise = math.log1p((least / noise) ** 2)
    return ((kind,), (noise, math.log1p((law[0] / most) ** 2))) if kind == "poisson" else ((kind, *law), (noise,))


def _least(ways):
    """The smallest of the bounds that exist."""
    bounds, error = [], None
    for way in ways:
        try:
            bounds.append(way())
        except NoBracketError as refusal:
            error = refusal
    if not bounds:
        raise error
    return min(bounds, key=lambda bound: bound.upper)
