"""The bounds of one `MatrixMechanism`, and which of them is the smallest.

A candidate is a tail bound with a share of delta for its bad event: delta_1 = share * delta, and the rows get the
rest. Epsilon at a delta takes one composition for each candidate. Delta at an epsilon is the smallest delta
whose epsilon is that one, found by a search over delta_1; so both questions have the same candidates, and
epsilon(delta(epsilon)) is epsilon again, to 1e-6. Beside them stand the bounds that only count
participations [M-few], [M-once], which need neither.

Budget: for each candidate one composition for an epsilon and at most `_STEPS` for a delta; up to `_FINER` times
as many in the add direction at a large epsilon.
"""

from __future__ import annotations

import math

from .. import conditional
from ..conditional import compose
from ..conditional.few import Few
from ..results import NoBracketError, UpperBound

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
_STEPS, _SECOND_STEPS = 6, 3  # of a search for delta_1, and of one beside a candidate that is known
_TINY = 1e-100  # a delta below it is not searched further
_DEEP = -12.0  # log of the rows' delta over their part of delta below which it may be nothing but what is cut
_ENOUGH, _FAR_OUT = 1e-3, 2e-4  # of log delta, above its least; and as a share of it
FEW = "few"


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
            self.names = [FEW, *sorted(tails, key=lambda name: name == "published")]
        self.tails = Tails(mechanism, direction)

    def epsilon(self, delta):
        """(UpperBound, tail bound, share) of the smallest epsilon."""
        found, reasons = [], {}
        for name in self.names:
            try:
                if name == FEW:
                    found.append((UpperBound(*self.few.epsilon(delta, self.direction)), FEW, None))
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
        tails = [candidate for candidate in found if candidate[1] not in (FEW, "published")]
        if self.mechanism.tail_share is not None or not tails or best[0].upper == 0 or best[1] == "published":
            return None
        bound, name, _ = min(tails, key=_upper_end)
        if "no tail" in bound.method or bound.upper > _CLOSE * best[0].upper:
            return None
        return name, _LARGER_SHARE if bound.upper > _LARGE_EPSILON else _SMALLER_SHARE

    def _share(self, name):
        return self.mechanism.tail_share or (_PUBLISHED_SHARE if name == "published" else _FIRST_SHARE)

    def delta(self, epsilon):
        """The UpperBound of the smallest delta."""
        found, reasons, guess = [], {}, (1.0, "no bound below one")
        try:
            guess = self.few.delta(epsilon, self.direction)
        except NoBracketError:
            pass
        for name in self.names:
            if name == FEW:
                found.append((UpperBound(*guess), FEW, None))
                continue
            limit = min((bound.upper for bound, _, _ in found), default=None)
            if limit is not None and limit < _TINY:
                break
            try:
                bound = self.tails.delta(name, self._share(name), epsilon, limit, guess[0])
            except NoBracketError as error:
                reasons.setdefault(str(error), []).append(name)
                continue
            if bound is not None:
                found.append((bound, name, self._share(name)))
                if "no tail" in bound.method:
                    break  # all tail bounds are one
        if not found:
            raise _no_bound(reasons)
        best = min(found, key=_upper_end)
        bound, name, _ = best
        if name in (FEW, "published") or self.mechanism.tail_share is not None or "no tail" in bound.method:
            return bound
        try:
            share = _LARGER_SHARE if epsilon > _LARGE_EPSILON else _SMALLER_SHARE
            other = self.tails.delta(name, share, epsilon, bound.upper, bound.upper, _SECOND_STEPS)
        except NoBracketError:
            return bound
        if other is None or other.upper > bound.upper * (1 - _ENOUGH):
            return bound
        # It is only asked for an epsilon if it is the second choice there.
        if self.epsilon(other.upper)[0].upper <= epsilon * (1 + 1e-6):
            return other
        return bound


class Tails:
    """One candidate at a time: the rows of a mechanism off the bad event of a tail bound, composed in one direction."""

    def __init__(self, mechanism, direction):
        self.mechanism, self.direction = mechanism, direction
        self._last = {}

    def epsilon(self, name, share, delta, limit=math.inf):
        """The UpperBound of a candidate; None where it is clearly above `limit`."""
        ceiling, last = min(_CLOSE * limit, LARGEST_EPSILON), math.inf
        for finer in range(_FINER):
            sums = self._composed(name, share, delta, finer)
            left = _left(sums, delta)
            laws = _largest_first(sums, ceiling)
            if limit < math.inf and laws[0].is_hopeless(ceiling, left):
                return None
            value = laws[0].epsilon(left)
            for law in laws[1:]:
                if value <= ceiling and law.delta(value) > left:
                    value = max(value, law.epsilon(left))
            if value > LARGEST_EPSILON:
                raise conditional.void()
            if value > ceiling:
                return None
            if self._is_paid(sums, value, left):
                return UpperBound(value, _method(sums))
            if not (slack := _slack(sums)) < _LESS * last:
                break  # the rest is rounding
            last = slack
        raise NoBracketError("the truncation of the row laws cannot be made small enough at so large an epsilon")

    def delta(self, name, share, epsilon, limit, guess, steps=_STEPS):
        """The smallest delta at which a candidate's epsilon is at most `epsilon`; None where it is above `limit`.

        Off by at most `_ENOUGH`, unless the steps are used up. guess : where to start.
        """
        if epsilon > LARGEST_EPSILON:
            raise NoBracketError(f"epsilon above {LARGEST_EPSILON:g} is no guarantee worth a bound")
        low, high = math.log(_RAREST), math.log(limit if limit is not None else 1.0)
        x, best, failure = min(max(math.log(max(guess, 1e-300)), low), high), None, None
        last, above, below = 0.0, None, None  # gaps at the ends, where they are known
        for _ in range(steps):
            try:
                goal, method = self._goal(name, share, epsilon, math.exp(x))
            except NoBracketError as error:
                # Perhaps a less rare bad event helps.
                goal, failure = math.inf, error
            gap = goal - x
            if gap > 0:
                if x >= high:
                    break
                low, below = x, gap
                above = above / 2 if last > 0 and above is not None else above
            else:
                below = below / 2 if last < 0 and below is not None else below
                high, above, best = x, gap, UpperBound(min(math.exp(x), 1.0), method)
                if -gap <= max(_ENOUGH, -_FAR_OUT * x) or x <= low:
                    break
                if gap > _DEEP and below is None:
                    # The smaller delta_1, the larger the delta of the rows.
                    low = max(low, goal)
            if high - low <= 0.3 * _ENOUGH:
                break
            last = gap  # an end that stays twice counts half (Illinois)
            if gap < _DEEP and below is None:
                guess = self._guess(name, share, epsilon, math.exp(x))
                x = max(min(guess, x + gap) if math.isfinite(guess) else x + 2 * gap, low)
            elif math.isfinite(gap) and "no tail" in method:
                x = goal + 1e-7  # the rows are the same at every delta
            else:
                x = _between(low, high, below, above)
        if best is None and limit is None:
            if failure is not None:
                raise failure
            return UpperBound(1.0, "no bound below one")
        return best

    def _goal(self, name, share, epsilon, delta):
        """(log of the delta of which the rows at `delta` would use up their part, how)."""
        last = math.inf
        for finer in range(_FINER):
            sums = self._composed(name, share, delta, finer)
            left = _left(sums, delta)
            if self._is_paid(sums, epsilon, left):
                # Its part of delta; all of it where the past reveals nothing.
                part, value = math.log(delta / left) + 1e-9, 0.0
                for law in _largest_first(sums, epsilon):
                    value = max(value, law.delta(epsilon))
                    if value > left:
                        break  # a larger delta is needed: how much larger, the largest says
                return math.log(max(value, 1e-320)) + part, _method(sums)
            if not (slack := _slack(sums)) < _LESS * last:
                break
            last = slack
        return math.inf, ""

    def _guess(self, name, share, epsilon, delta):
        """`_goal` without what the compositions cut."""
        return max(law.guess(epsilon) for _, law in self._composed(name, share, delta, 0)) - math.log1p(-share)


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


def _left(sums, delta):
    """What the bad event, and truncation where there is any, leave of delta."""
    left = delta - max(rows.delta_1 for rows, _ in sums)
    return (1 - _MARGIN) * left if any(rows.slack for rows, _ in sums) else left


def _slack(sums):
    return max(rows.slack for rows, _ in sums)


def _largest_first(sums, epsilon):
    """The composed rows of all groups, those first whose delta at `epsilon` seems largest."""
    laws = [law for _, law in sums]
    return sorted(laws, key=lambda law: -law.guess(epsilon)) if len(laws) > 1 else laws


def _between(low, high, below, above):
    """A number in (low, high), near the root of a decreasing function with these values at the ends, None if unknown."""
    if above is None:
        new = 0.5 * (low + high) if not math.isfinite(below) else low + below
    elif below is None:
        new = high + above
    elif below < 20 * _ENOUGH:
        new = low + below  # hardly above the root: the value falls by at least one for each one
    elif above < _DEEP or not math.isfinite(below):
        new = 0.5 * (low + high)
    else:
        new = low + (high - low) * min(max(below / (below - above), 1e-3), 0.9)
    # A little above the root: there the value is below 0.
    return min(max(new + 0.3 * _ENOUGH, low + 0.2 * _ENOUGH), high - 0.02 * (high - low))


def _no_bound(reasons):
    return NoBracketError("; ".join(f"{reason} ({', '.join(who)})" for reason, who in reasons.items()))


def _method(sums):
    return f"MMCC, {sums[0][0].tail_bound} tail bound"


def _upper_end(found):
    return found[0].upper


def _least(found):
    return min((bound.upper for bound, _, _ in found), default=math.inf)
