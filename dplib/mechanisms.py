"""What a user names: mechanisms with one common interface.

    mechanism.delta(epsilon, direction="both")   -> Bracket
    mechanism.epsilon(delta, direction="both")   -> Bracket

(with method="renyi" an UpperBound).

Each class only says which dominating pair its rounds have; `accounting` does the rest.
`MatrixMechanism` has no pair for its rounds but bounds on what the past reveals: its
answers are `UpperBound`s. `BallsInBins` has one pair for all rounds together; its answers say
whether they are exact, estimated or certified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from . import _composed_rows, accounting, conditional, mixtures
from . import _validate as check
from ._balls_in_bins import BallsInBins
from .results import Bracket, NoBracketError, UpperBound

__all__ = ["BallsInBins", "FixedBatchDPSGD", "LastIterate", "MatrixMechanism", "PoissonDPSGD"]


class _Mechanism:
    """The common interface; subclasses provide `composition`."""

    def composition(self):
        """The dominating pair as a list of (Mixture, rounds)."""
        raise TypeError("a mechanism must define its composition")

    def delta(self, epsilon, direction="both", method="auto") -> Bracket | UpperBound:
        """Bracket of the smallest delta at `epsilon` >= 0; `upper` is the guarantee.

        direction : "remove", "add" or "both" (remove, the larger [C-9m]). method : "auto",
        "contour", "lattice", or "renyi" (an UpperBound instead of a Bracket).
        Raises ValueError or TypeError on bad input, NoBracketError where no useful bracket can be computed.
        """
        accounting.check_request(direction, method, epsilon=epsilon)
        return accounting.delta(self._facing(direction), epsilon, direction, method)

    def epsilon(self, delta, direction="both", method="auto") -> Bracket | UpperBound:
        """Bracket of the smallest epsilon at `delta` in (0, 1); `upper` is the guarantee.

        Arguments and errors as for `delta`.
        """
        accounting.check_request(direction, method, delta=delta)
        return accounting.epsilon(self._facing(direction), delta, direction, method)

    def _facing(self, direction):
        """The composition, unless a mixture of it has no answer in this direction."""
        parts = self.composition()
        for mixture, _ in parts:
            mixture.check_direction(direction)
        return parts


@dataclass(frozen=True)
class PoissonDPSGD(_Mechanism):
    """DP-SGD with Poisson sampling: each record joins each round independently.

    Parameters
    ----------
    noise_multiplier : sigma > 0, noise standard deviation over the clip norm.
    sampling_probability : q in [0, 1].
    steps : T >= 1 rounds.
    group_size : k >= 1 records, added or removed together.

    Guarantee: T-fold composition of the mixture pair with sensitivity
    Binomial(k, q) dominates every adaptive run [G-3.1], in both directions, and
    is attained [G-3.3t]: the bracket contains the exact value.
    Raises ValueError or TypeError on anything else. Cost: milliseconds.

    >>> from dplib import PoissonDPSGD
    >>> training = PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000, group_size=2)
    >>> spent = training.epsilon(delta=1e-6)
    >>> print(f"{spent.upper:.4f}")
    6.4326
    >>> training.delta(epsilon=7.0).upper < 1e-6
    True
    """

    noise_multiplier: float
    sampling_probability: float
    steps: int
    group_size: int = 1

    def __post_init__(self):
        check.noise_multiplier(self.noise_multiplier)
        check.probability("sampling_probability", self.sampling_probability)
        check.whole("steps", self.steps, at_least=1)
        check.whole("group_size", self.group_size, at_least=1, at_most=10**8)

    def composition(self):
        pair = mixtures.binomial(self.group_size, self.sampling_probability, self.noise_multiplier)
        return [(pair, int(self.steps))]


@dataclass(frozen=True)
class FixedBatchDPSGD(_Mechanism):
    """DP-SGD with batches of fixed size, drawn without replacement in every round.

    Parameters
    ----------
    noise_multiplier : sigma > 0.
    batch_size : B, 1 <= B <= dataset_size.
    dataset_size : n >= 1, a lower bound on the size of the smaller dataset.
    steps : T >= 1.
    group_size : k >= 1 records, added or removed together.

    Guarantee: T-fold composition of the mixture pair with sensitivity
    2 * Hypergeometric(B, n + k, k) [G-3.3], attained [G-3.3t]. The factor 2: an
    inserted record takes the place of another one.
    Raises ValueError or TypeError on anything else. Cost: milliseconds.

    >>> from dplib import FixedBatchDPSGD
    >>> training = FixedBatchDPSGD(noise_multiplier=2.0, batch_size=100, dataset_size=10_000, steps=2000)
    >>> print(f"{training.epsilon(delta=1e-6).upper:.4f}")
    2.9550
    """

    noise_multiplier: float
    batch_size: int
    dataset_size: int
    steps: int
    group_size: int = 1

    def __post_init__(self):
        check.noise_multiplier(self.noise_multiplier)
        check.whole("dataset_size", self.dataset_size, at_least=1)
        check.whole("batch_size", self.batch_size, at_least=1, at_most=self.dataset_size)
        check.whole("steps", self.steps, at_least=1)
        check.whole("group_size", self.group_size, at_least=1, at_most=10**6)

    def composition(self):
        pair = mixtures.hypergeometric(
            self.batch_size, self.dataset_size, self.group_size, self.noise_multiplier
        )
        return [(pair, int(self.steps))]


@dataclass(frozen=True)
class LastIterate(_Mechanism):
    """DP-SGD on linear losses when only the last iterate is released.

    The T noisy sums collapse into one: sensitivity Binomial(steps, q) against
    noise of standard deviation noise_multiplier * sqrt(steps) [M-F5].

    Parameters: noise_multiplier > 0, sampling_probability q in [0, 1], steps T >= 1.
    Guarantee: exact for linear losses in any dimension, both directions; no claim
    for other losses. Raises ValueError or TypeError on anything else.
    Cost: one closed form, milliseconds.

    >>> from dplib import LastIterate, PoissonDPSGD
    >>> one_model = LastIterate(noise_multiplier=1.0, sampling_probability=0.01, steps=2000)
    >>> print(f"{one_model.epsilon(delta=1e-6).upper:.4f}")
    2.1004
    >>> every_model = PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000)
    >>> one_model.epsilon(delta=1e-6).upper < every_model.epsilon(delta=1e-6).lower
    True
    """

    noise_multiplier: float
    sampling_probability: float
    steps: int

    def __post_init__(self):
        check.noise_multiplier(self.noise_multiplier)
        check.probability("sampling_probability", self.sampling_probability)
        check.whole("steps", self.steps, at_least=1, at_most=10**8)

    def composition(self):
        steps = int(self.steps)
        sigma = float(self.noise_multiplier) * math.sqrt(steps)
        return [(mixtures.binomial(steps, self.sampling_probability, sigma), 1)]


# Shares of delta for the bad event: the published half, and those from which "best" chooses.
_PUBLISHED_SHARE = 0.5
_FIRST_SHARE, _SMALLER_SHARE, _LARGER_SHARE = 0.1, 0.03, 0.2
_LARGE_EPSILON = 0.15  # above it a larger share is tried, below it a smaller one
# What truncation and rounding may take of delta - delta_1.
_MARGIN = 1e-5
# Width of the composition's bracket that is good enough next to the tail bounds.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class MatrixMechanism:
    """A matrix mechanism under Poisson sampling, by MMCC: releases C x + z [M-0].

    Parameters
    ----------
    encoder : C, made by `dplib.matrices`; entries >= 0, rows released after the rounds that they use.
    noise_multiplier : sigma > 0, standard deviation of z over the clip norm (*not* over a column norm of C).
    sampling_probability : p in [0, 1], of each record in each round.
    min_separation : b >= 1 [M-D]. With b > 1 the records are split at random into b groups; group i may
        take part in the rounds i, i + b, i + 2 b, ..., in each with probability b p (at most 1).
    tail_bound : "best" (the smallest of all), "published" [M-Alg2], "joint" [A-11], "aggregated" [A-12]
        or "pooled" [A-13].
    tail_share : share of delta that pays for the bad event, in (0, 1). None: one half for "published", as in the
        source, else the better of two.
    round_entries_to : round entries up to multiples of this, as the source does; None: no such loss.

    Guarantee: an upper bound on epsilon and delta in each direction, for adaptive inputs [M-4.3], for
    adding, removing or zeroing out one record. The result's `method` names the tail bound. Where no accountant
    closes, as with a few rows that hardly ever hold a participation, the rows are bounded by convexity.
    Raises ValueError or TypeError on anything else, NoBracketError where no finite bound is found.
    Cost: Toeplitz encoders and trees with 131,072 rounds take seconds; dense ones n^3, up to
    4,096 rounds (n = 2,048: minutes), with a progress bar, and resumable through `checkpoint`.

    >>> from dplib import MatrixMechanism, matrices
    >>> encoder = matrices.optimal_counting(64)
    >>> training = MatrixMechanism(encoder, noise_multiplier=16.0, sampling_probability=1 / 16)
    >>> spent = training.epsilon(delta=1e-5)
    >>> print(f"epsilon <= {spent.upper:.4f} by the tail bound {spent.method!r}")
    epsilon <= 1.0450 by the tail bound 'MMCC, aggregated tail bound'
    """

    encoder: object
    noise_multiplier: float
    sampling_probability: float
    min_separation: int = 1
    tail_bound: str = "best"
    tail_share: float | None = None
    round_entries_to: float | None = None

    def __post_init__(self):
        conditional.check_setting(
            self.encoder, self.noise_multiplier, self.sampling_probability, self.min_separation
        )
        check.choice("tail_bound", self.tail_bound, conditional.TAIL_BOUNDS)
        if self.tail_share is not None:
            check.real("tail_share", self.tail_share, above=0, below=1)
        if self.round_entries_to is not None:
            check.real("round_entries_to", self.round_entries_to, above=0)

    def epsilon(self, delta, direction="both", *, checkpoint=None) -> UpperBound:
        """Upper bound on epsilon at `delta` in (0, 1).

        direction : "remove", "add" or "both" (the larger: remove [C-9m]).
        checkpoint : how the paths begin of the files in which finished tail bounds of a dense encoder are kept,
        so that a call that was interrupted goes on.
        """
        delta = check.delta(delta)
        check.direction(direction)

        composed = _composed_rows.Composed()

        def value(tail_bound, share):
            return self._epsilon(delta, direction, tail_bound, share, checkpoint, composed)

        return self._smallest(value)[0]

    def delta(self, epsilon, direction="both", *, checkpoint=None) -> UpperBound:
        """Upper bound on delta at `epsilon` >= 0. Arguments as for `epsilon`."""
        epsilon = check.epsilon(epsilon)
        check.direction(direction)

        composed = _composed_rows.Composed()

        def value(tail_bound, share):
            return self._delta(epsilon, direction, tail_bound, share, checkpoint, composed)

        return self._smallest(value, epsilon)[0]

    def with_best_tail(self, delta, direction="both"):
        """The same mechanism, fixed to the tail bound and share that give the smallest epsilon at `delta`.

        Its epsilon is a smooth function of the noise, and a single bound to compute.
        """
        delta = check.delta(delta)
        check.direction(direction)
        composed = _composed_rows.Composed()
        _, name, share = self._smallest(lambda *choice: self._epsilon(delta, direction, *choice, None, composed))
        return replace(self, tail_bound=name, tail_share=share)

    def _smallest(self, value, epsilon=None):
        """(smallest bound, tail bound, share) of all: each is valid, and none looks at the data.

        value(tail bound, share) : the bound. epsilon : where it is one on delta; else it is one on epsilon.
        """
        names = [self.tail_bound]
        if self.tail_bound == "best":
            names = conditional.candidates(self.encoder, self.min_separation)
            # The published bound takes the longest search for delta_1: once another one is known it is often not needed.
            names = names if epsilon is None else sorted(names, key=lambda name: name == "published")
        found, reasons = [], {}
        for name in names:
            share = _PUBLISHED_SHARE if name == "published" else _FIRST_SHARE
            try:
                found.append((value(name, self.tail_share or share), name, self.tail_share or share))
                if found[-1][0].upper < 2 * _RAREST:
                    break
            except NoBracketError as error:
                reasons.setdefault(str(error), []).append(name)
        if not found:
            raise NoBracketError("; ".join(f"{reason} ({', '.join(who)})" for reason, who in reasons.items()))
        best = min(found, key=_upper_end)
        bound, name, _ = best
        void = bound.upper < 2 * _RAREST or (epsilon is not None and bound.upper > _VOID)
        if self.tail_share is None and name != "published" and not void and "no tail" not in bound.method:
            large = (bound.upper if epsilon is None else epsilon) > _LARGE_EPSILON
            share = _LARGER_SHARE if large else _SMALLER_SHARE
            try:
                best = min(best, (value(name, share), name, share), key=_upper_end)
            except NoBracketError:
                pass
        return best

    def _rows(self, delta_1, tail_bound, slack, checkpoint):
        return conditional.rows(
            self.encoder,
            self.noise_multiplier,
            self.sampling_probability,
            delta_1,
            tail_bound,
            min_separation=self.min_separation,
            slack=slack,
            round_entries_to=self.round_entries_to,
            checkpoint=checkpoint,
        )

    def _epsilon(self, delta, direction, tail_bound, share, checkpoint, composed):
        slack = 0.1 * _MARGIN * (1 - share) * delta
        delta_1 = max(share * delta, 5e-324)  # a product that underflows is refused as too rare, not as a 0
        for _ in range(4):
            groups = self._rows(delta_1, tail_bound, slack, checkpoint)
            found = [self._side_epsilon(rows, delta, check.side(direction), composed) for rows in groups]
            value, excess = (max(numbers) for numbers in zip(*found))
            if excess <= 1:
                return UpperBound(value, _method(groups))
            # What the add direction pays for truncation grows like e^epsilon: truncate less.
            slack /= 10 * excess
            if not slack > 1e-300:
                break
        raise NoBracketError("the truncation of the row laws cannot be made small enough at so large an epsilon")

    def _side_epsilon(self, rows, delta, side, composed):
        """(epsilon, cost of truncation and rounding over what was set aside for it)."""
        left = delta - rows.delta_1
        # A mean loss of E[loss] >= E[sensitivity]^2 / (2 sigma^2) a row: hopeless, and slow to compute.
        if side == "remove" and _composed_rows.mean_loss(rows.pairs) > 4 * _LARGEST_EPSILON:
            raise conditional.void()
        value = composed.epsilon(rows.pairs, (1 - _MARGIN) * left, side, _TOLERANCE)
        if value > _LARGEST_EPSILON:
            raise conditional.void()
        return value, rows.slack * (math.exp(value) if side == "add" else 1.0) / (_MARGIN * left)

    def _delta(self, epsilon, direction, tail_bound, share, checkpoint, composed):
        """delta_1 + delta of the rows, with delta_1 brought to the wanted share of the sum."""
        if epsilon > _LARGEST_EPSILON:
            raise NoBracketError(f"epsilon above {_LARGEST_EPSILON:g} is no guarantee worth a bound")
        # A share that was asked for, or published, is kept; otherwise delta_1 only has to be near its optimum.
        kept = tail_bound == "published" or self.tail_share is not None
        best, failure, known, odds = math.inf, None, [], share / (1 - share)
        low, x, high = math.log(_RAREST), math.log(1e-6), math.log(0.5)  # of delta_1
        if composed.start is not None:
            x = min(max(composed.start + math.log(odds), low), high)
        cheap, steered, ask = False, False, lambda x, far: self._total(
            math.exp(x), epsilon, direction, tail_bound, checkpoint, composed, far
        )
        for _ in range(15):
            tolerance = 1e-3 if kept else max(0.5, -0.02 * x)

            def far(log_value, x=x, near=tolerance):
                """Whether a cheap bound is enough: delta_1 is not near its share, or another tail bound is smaller."""
                beaten = composed.is_beaten(math.exp(x) + math.exp(log_value))
                return beaten or abs(math.log(odds) + log_value - x) >= min(near, 0.05)

            try:
                total, value, groups, cheap = ask(x, far)
            except NoBracketError as error:
                # Perhaps a less rare bad event helps.
                low, x, failure = x, (x + high) / 2, error
                continue
            best, named = total if kept and value <= _VOID else min(best, total), groups
            if value > _VOID:
                break
            # The log of delta_1 that would have its share beside these rows.
            goal = math.log(max(odds * value, 1e-300))
            # An accountant's answer is no continuation of the cheap bounds.
            known = [(x, goal - x)] if steered and not cheap else [*known, (x, goal - x)]
            steered = cheap
            if max(rows.delta_1 for rows in groups) == 0 or abs(goal - x) < tolerance:
                break
            # Whatever delta_1 is, it or the rows cost more than another tail bound.
            if composed.is_beaten(min(math.exp(x), value)):
                return UpperBound(min(best, 1.0), _method(named))
            below = goal < low and composed.is_cheap(groups[0].pairs)  # perhaps nothing, however rare the bad event
            # The larger delta_1, the smaller the delta of the rows: the root lies between x and goal.
            low, high = (x, min(high, goal)) if goal > x else (max(low, goal), x)
            if not low < high:
                break
            x = low if below else _between(low, high, known, cheap)
        if math.isinf(best):
            raise failure
        if cheap and value > math.exp(x - _NOTHING) and not composed.is_beaten(math.exp(x) + value):
            total, _, named, cheap = ask(x, None)
            best = total if kept else min(best, total)
        composed.start = x - math.log(odds)
        composed.best = min(best, best if composed.best is None else composed.best)
        return UpperBound(min(best, 1.0), _method(named) + (", rows by Renyi or convexity" if cheap else ""))

    def _total(self, delta_1, epsilon, direction, tail_bound, checkpoint, composed, far=None):
        """(delta_1 + delta of the rows + what was truncated, the largest delta of rows, the rows, whether that is a Renyi bound)."""
        # Next to nothing beside delta_1.
        slack = max(1e-8 * delta_1 * math.exp(-epsilon), 1e-300)
        groups = self._rows(delta_1, tail_bound, slack, checkpoint)
        total, largest, quick = 0.0, 0.0, False
        for rows in groups:
            bound, value, cheap = composed.delta(rows.pairs, epsilon, direction, delta_1, 10 * _TOLERANCE, far)
            loss = rows.slack * (math.exp(epsilon) if direction == "add" else 1.0)
            total, largest, quick = max(total, rows.delta_1 + bound + loss), max(largest, value), quick or cheap
        return total, largest, groups, quick


def _between(low, high, known, cheap):
    """A number in (low, high), both below 0, near the root of a decreasing function; known : (x, value)."""
    x, value = known[-1]
    slope = -1.0
    if len(known) > 1 and x != known[-2][0]:
        slope = min((value - known[-2][1]) / (x - known[-2][0]), -1.0)
    if abs(value) < 5 or (cheap and len(known) > 1 and slope > -2):
        new = x - value / slope
        # The ends themselves may be the root.
        return min(max(new, low), high)
    # Far away log delta is about a square.
    return -(((-low) ** 0.5 + (-high) ** 0.5) / 2) ** 2


# e^epsilon beyond this leaves the range in which truncation can be paid for.
_LARGEST_EPSILON = 300.0
# The least probability that a search gives the bad event; a delta that small is not searched for again.
_RAREST = 1e-250
# Of the log of delta_1: rows whose delta is this far below it do not matter.
_NOTHING = 20.0
# A delta above this promises nothing, and a search for a smaller bound takes long where there is hardly any noise.
_VOID = 0.999


def _method(groups):
    return f"MMCC, {groups[0].tail_bound} tail bound"


def _upper_end(found):
    return found[0].upper
