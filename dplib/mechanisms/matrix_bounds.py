"""The bounds of one `MatrixMechanism`, and which of them is the smallest.

A candidate is a tail bound with a share of delta for its bad event: delta_1 = share * delta, and the rows get the
rest. Epsilon at a delta takes one composition for each candidate. Delta at an epsilon is the smallest delta
whose epsilon is that one, found by a search over delta_1; so both questions have the same candidates, and
epsilon(delta(epsilon)) is epsilon again, to 1e-6. Beside them stand two that need neither, of all rounds at once: "few", which
only counts participations [M-few], [M-once], and "renyi", moments of the whole mixture bounded round by round [A-28].

Budget: for each candidate one composition for an epsilon, and about five for a delta; up to `_FINER` times as many in
the add direction at a large epsilon.
"""

from __future__ import annotations

import math
from functools import cached_property

from .. import conditional
from ..balls_in_bins import pattern_account, pattern_law
from ..conditional import compose
from ..conditional.few import Few
from ..results import NoBracketError, UpperBound
from .search import smallest

# Shares of delta for the bad event: the published half, and those from which "best" chooses.
_PUBLISHED_SHARE = 0.5
_FIRST_SHARE, _SMALLER_SHARE, _LARGER_SHARE = 0.1, 0.03, 0.2
_LARGE_EPSILON = 0.15  # above it a larger share is tried, below it a smaller one
_CLOSE = 1.3  # how far above the smallest bound a tail bound may be that another share could help
# What truncation and rounding may take of delta - delta_1.
_MARGIN = 1e-5
_LESS = 0.5  # of its slack an attempt must leave, or the next one would not help either
_FINER, _FINEST = 4, 1e-300  # attempts to pay for truncation, each ten thousand times finer; the least probability left out
# e^epsilon beyond this leaves the range in which truncation can be paid for.
LARGEST_EPSILON = 300.0
_RAREST = 1e-250  # the least probability that a search gives the bad event
_TINY = 1e-100  # a delta below it is not searched further
_LARGEST_DELTA = 1 - 1e-9  # where a search begins that knows nothing
_CHOICES = 3  # of a candidate, each at the delta of the one before
_SAME = 1e-6  # how far above an epsilon that of its delta may be
_ENOUGH, _REACH = 1e-3, 30.0  # of log delta, above its least; the longest step of a search
FEW, RENYI = WHOLE = ("few", "renyi")
_MOST_WORK = 2**28  # rounds times bands^2, up to which "best" tries "renyi": about a second


class Bounds:
    """All candidates of one mechanism, in one direction."""

    def __init__(self, mechanism, direction):
        self.mechanism, self.direction = mechanism, direction
        m = mechanism
        self.few = Few(m.encoder, float(m.noise_multiplier), float(m.sampling_probability), int(m.min_separation))
        self.names = [m.tail_bound]
        if m.tail_bound == "best":
            tails = conditional.candidates(m.encoder, m.min_separation)
            # The published one last: it hardly ever wins, and stops early next to one that does.
            self.names = [*WHOLE[: 2 if _is_quick(m) else 1], *sorted(tails, key=lambda name: name == "published")]
        self.tails = Tails(mechanism, direction)

    def epsilon(self, delta):
        """(UpperBound, tail bound, share) of the smallest epsilon."""
        found, reasons = [], {}
        for name in self.names:
            try:
                if name in WHOLE:
                    found.append((self._of_all_rounds(name, "epsilon", delta), name, None))
                elif (bound := self.tails.epsilon(name, self._share(name), delta, _least(found))) is not None:
                    found.append((bound, name, self._share(name)))
            except NoBracketError as error:
                reasons.setdefault(str(error), []).append(name)
                continue
            if found and (found[-1][0].upper == 0 or "no tail" in found[-1][0].method):
                break  # nothing is smaller; without a past all tail bounds are one
        if not found:
            raise _no_bound(reasons)
        best = min(found, key=_upper_end)
        if (second := self._second(found, best)) is not None:
            name, share = second
            try:
                if (bound := self.tails.epsilon(name, share, delta, best[0].upper)) is not None:
                    best = min(best, (bound, name, share), key=_upper_end)
            except NoBracketError:
                pass
        return best

    def _second(self, found, best):
        """(tail bound, share) of one more candidate, or None. found : of epsilons."""
        tails = [candidate for candidate in found if candidate[1] not in (*WHOLE, "published")]
        if self.mechanism.tail_share is not None or not tails or best[0].upper == 0 or best[1] == "published":
            return None
        bound, name, _ = min(tails, key=_upper_end)
        if "no tail" in bound.method or bound.upper > _CLOSE * best[0].upper:
            return None
        return name, _LARGER_SHARE if bound.upper > _LARGE_EPSILON else _SMALLER_SHARE

    def _of_all_rounds(self, name, question, target):
        """The UpperBound of "few" or "renyi" on "delta" or "epsilon"."""
        if name == FEW:
            return UpperBound(*getattr(self.few, question)(target, self.direction))
        return getattr(self._renyi, f"upper_{question}")(target)

    @cached_property
    def _renyi(self):
        m = self.mechanism
        columns = pattern_law.columns_of(m.encoder, 1)
        return pattern_account.Account(
            pattern_account.dominating_pair(columns, m.noise_multiplier, m.sampling_probability), self.direction
        )

    def _share(self, name):
        return self.mechanism.tail_share or (_PUBLISHED_SHARE if name == "published" else _FIRST_SHARE)

    def delta(self, epsilon):
        """The UpperBound of the smallest delta: that of the candidate whose epsilon there is the smallest."""
        best = UpperBound(1.0, "no bound below one")
        whole = [name for name in self.names if name in WHOLE]
        for name in whole:
            try:
                best = min(best, self._of_all_rounds(name, "delta", epsilon), key=lambda found: found.upper)
            except NoBracketError:
                pass
        if whole == self.names:
            return best
        before = best
        for _ in range(_CHOICES):
            if best.upper < _TINY:
                break
            try:
                found, name, share = self.epsilon(min(best.upper, _LARGEST_DELTA))
                if found.upper > epsilon * (1 + _SAME) > 0:
                    return before  # of a share that is not tried at this delta
                if name in WHOLE or found.upper > epsilon * (1 - 1e-9) > 0:
                    break
                other = self.tails.delta(name, share, epsilon, min(best.upper, _LARGEST_DELTA))
            except NoBracketError:
                if not whole and best.upper == 1:
                    raise
                break
            if other.upper > best.upper * (1 - _ENOUGH):
                break
            before, best = best, other
        return best


class Tails:
    """One candidate at a time: the rows of a mechanism off the bad event of a tail bound, composed in one direction."""

    def __init__(self, mechanism, direction):
        self.mechanism, self.direction = mechanism, direction
        self._last = {}

    def epsilon(self, name, share, delta, limit=math.inf):
        """The UpperBound of a candidate; None where it is clearly above `limit`."""
        ceiling = min(_CLOSE * limit, LARGEST_EPSILON)
        for sums, left in self._attempts(name, share, delta):
            laws = [law for _, law in sums]
            if limit < math.inf and any(law.is_hopeless(ceiling, left) for law in laws):
                return None
            value = max(law.epsilon(left) for law in laws)
            if value > LARGEST_EPSILON:
                raise conditional.void()
            if value > ceiling:
                return None
            if self._is_paid(sums, value, left):
                return UpperBound(value, _method(sums))
        raise NoBracketError("the truncation of the row laws cannot be made small enough at so large an epsilon")

    def delta(self, name, share, epsilon, start):
        """The smallest delta, to `_ENOUGH` of it, up to `start`, at which a candidate's epsilon is at most `epsilon`."""
        if epsilon > LARGEST_EPSILON:
            raise NoBracketError(f"epsilon above {LARGEST_EPSILON:g} is no guarantee worth a bound")
        methods = {}

        def excess(x):
            if x > math.log(start):
                raise NoBracketError(f"the {name} tail bound has no delta below {start:g} at epsilon = {epsilon:g}")
            if x < math.log(_RAREST):
                return math.inf
            try:
                goal, methods[x] = self._goal(name, share, epsilon, math.exp(x))
            except NoBracketError:
                return math.inf  # perhaps a less rare bad event helps
            return goal - x

        x, _ = smallest(excess, math.log(start), -1.5, _ENOUGH, reach=_REACH, enough=_ENOUGH)
        return UpperBound(min(math.exp(x), 1.0), methods[x])

    def _goal(self, name, share, epsilon, delta):
        """(log of the delta of which the rows at `delta` would use up their part, how)."""
        for sums, left in self._attempts(name, share, delta):
            if self._is_paid(sums, epsilon, left):
                # Its part of delta; all of it where the past reveals nothing.
                value = max(law.delta(epsilon) for _, law in sums)
                return math.log(max(value, 1e-320)) + math.log(delta / left) + 1e-9, _method(sums)
        return math.inf, ""

    def _attempts(self, name, share, delta):
        """(rows with their compositions, what they leave of delta), with ever finer truncation while that helps."""
        last = math.inf
        for finer in range(_FINER):
            sums = self._composed(name, share, delta, finer)
            yield sums, _left(sums, delta)
            if not (slack := _slack(sums)) < _LESS * last:
                return  # the rest is rounding
            last = slack

    def _is_paid(self, sums, epsilon, left):
        """Whether truncation costs no more than was set aside: when adding it costs e^epsilon times as much."""
        factor = math.exp(epsilon) if self.direction == "add" else 1.0
        return _slack(sums) * factor <= _MARGIN * left

    def _composed(self, name, share, delta, finer):
        """List of (rows, their composition), one for each group of records; the last one is kept."""
        delta_1 = max(share * delta, 5e-324)  # a product that underflows is refused as too rare, not as a 0
        key = name, share, finer
        if key in self._last and math.isclose(self._last[key][0], delta_1, rel_tol=1e-13):
            return self._last[key][1]
        m, left = self.mechanism, (1 - share) * delta
        groups = conditional.rows(
            m.encoder, m.noise_multiplier, m.sampling_probability, delta_1, name,
            min_separation=m.min_separation,
            slack=max(0.1 * _MARGIN * left * 1e-4**finer, _FINEST),
            round_entries_to=m.round_entries_to,
        )
        sums = []
        for rows in groups:
            # A mean loss of E[loss] >= E[sensitivity]^2 / (2 sigma^2) a row: hopeless, and slow to compute.
            if compose.mean_loss(rows.pairs) > 4 * LARGEST_EPSILON:
                raise conditional.void()
            sums.append((rows, compose.composed(rows.pairs, self.direction, left, len(groups))))
        self._last[key] = delta_1, sums
        return sums


def _is_quick(mechanism):
    """Whether "renyi" applies, and answers within a second or so."""
    rounds = mechanism.encoder.columns
    return mechanism.min_separation == 1 and rounds <= pattern_law.MOST_ROUNDS and rounds * pattern_law.reach(mechanism.encoder) ** 2 <= _MOST_WORK


def _left(sums, delta):
    """What the bad event, and truncation where there is any, leave of delta."""
    left = delta - max(rows.delta_1 for rows, _ in sums)
    return (1 - _MARGIN) * left if any(rows.slack for rows, _ in sums) else left


def _slack(sums):
    return max(rows.slack for rows, _ in sums)


def _no_bound(reasons):
    return NoBracketError("; ".join(f"{reason} ({', '.join(who)})" for reason, who in reasons.items()))


def _method(sums):
    return f"MMCC, {sums[0][0].tail_bound} tail bound"


def _upper_end(found):
    return found[0].upper


def _least(found):
    return min((bound.upper for bound, _, _ in found), default=math.inf)
