"""Several mechanisms, one after the other, on the same records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .. import accounting
from .._base import validate as check
from .._base.validate import Direction
from ..results import Bracket, UpperBound, _says_adjacency
from .dpsgd import EITHER, _Mechanism, as_event


@dataclass(frozen=True)
class Composed(_Mechanism):
    """The phases of a run: see `compose`."""

    phases: tuple[Any, ...]

    def composition(self) -> list[tuple[accounting.Pair, int]]:
        """Pairs that dominate the phases, as a list of (pair, rounds); a phase of balls in bins is one round, one of random allocation a round for each block."""
        return self._laws()[0]

    def _laws(self):
        """(pairs above the phases, pairs below them): the same where there are neither bins nor random allocation."""
        laws = [phase._laws() for phase in self.phases]
        return tuple([part for one in laws for part in one[end]] for end in (0, 1))

    def _relations(self):
        return [relation for phase in self.phases for relation in phase._relations()]

    @_says_adjacency
    def delta(
        self, epsilon: float, direction: Direction = "both", method: accounting.Method = "auto"
    ) -> Bracket | UpperBound:
        """As every mechanism's; with a phase of balls in bins or random allocation both ends are those of laws above and below it [A-25]; method="renyi" bounds the upper end alone."""
        return self._ask(accounting.delta, epsilon, direction, method)

    @_says_adjacency
    def epsilon(
        self, delta: float, direction: Direction = "both", method: accounting.Method = "auto"
    ) -> Bracket | UpperBound:
        """As `delta`."""
        return self._ask(accounting.epsilon, delta, direction, method)

    def _ask(self, question, target, direction, method):
        return both_ends(question, *self._laws(), target, direction=self._facing(direction), method=method)

    @property
    def _adjacency(self):
        told = {phase._adjacency for phase in self.phases}
        return told.pop() if len(told) == 1 else "zero-out" if "zero-out" in told else "add-remove"

    def _facing(self, direction):
        known = [phase for phase in self.phases if isinstance(phase, _Mechanism)]
        return known[0]._facing(direction) if known else check.direction(direction)  # of all of them

    def event(self) -> Any:
        """The run as a `DpEvent` of dp_accounting. Raises ImportError without that package, TypeError where a phase is balls in bins or random allocation."""
        for phase in self.phases:
            if not isinstance(phase, _Mechanism):
                raise TypeError(f"a phase of {type(phase).__name__} is no event of dp_accounting")
        return as_event({"class_name": "ComposedDpEvent", "events": [phase.event() for phase in self.phases]})


def compose(mechanisms: Iterable[_Mechanism]) -> Composed:
    """One mechanism for a run of several phases, whose samples are fresh and independent.

    mechanisms : at least one `PoissonDPSGD`, `FixedBatchDPSGD`, `TruncatedPoissonDPSGD`, `LastIterate`, `RandomAllocation`,
        `BallsInBins` with an exact accountant (C = I, or one batch), or what `compose` returned, all for the same
        adjacency: the records that differ are the same in every phase. Each later phase may depend on what the earlier
        ones released. Its answers, direction by direction, are those of its phases' pairs together [M-0a].
    Raises TypeError for anything that has no pair for each round (a `MatrixMechanism`), ValueError for an
    empty list, different adjacencies, groups of different kinds, or bins that only sampling accounts for.
    Cost: as for `accounting.delta`; seconds for the first question about bins, whose brackets are 0.1 to 1% wide, or about random
    allocation with k > 1, whose upper end is by blocks [A-26] and whose lower end may be far below.

    >>> import dplib
    >>> warm_up = dplib.PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.001, steps=500)
    >>> main_part = dplib.PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000)
    >>> print(f"{dplib.compose([warm_up, main_part]).epsilon(delta=1e-6).upper:.4f}")
    2.9585
    >>> bins = dplib.BallsInBins(dplib.matrices.identity(16), noise_multiplier=1.0, batches_per_epoch=16, epochs=1)
    >>> both = dplib.compose([dplib.PoissonDPSGD(1.0, 0.1, 20), bins])
    >>> print(f"{both.delta(epsilon=2.0).upper:.5f}")
    0.00263
    """
    try:
        phases = tuple(mechanisms)
    except TypeError:
        raise TypeError(f"mechanisms must be a list of mechanisms; got {mechanisms!r}") from None
    if not phases:
        raise ValueError("mechanisms must not be empty")
    for phase in phases:
        if not hasattr(phase, "_laws"):
            raise TypeError(f"mechanisms must have a pair for every round, as DP-SGD has; got {phase!r}")
    relations = {relation for phase in phases for relation in phase._relations()}
    # What holds for absent records and zeroed ones alike goes with either.
    for adjacency in ("add-remove", "zero-out"):
        if {told for told, *_ in relations} == {adjacency, EITHER}:
            relations = {(adjacency, *groups) for _, *groups in relations}
    if len(relations) > 1:
        told = " and ".join(f"{adjacency!r} of {first} records to {second}" for adjacency, first, second in sorted(relations))
        raise ValueError(f"mechanisms must all have the same neighbours; got {told}")
    return Composed(phases)


def both_ends(ask, above, below, target, **options):
    """What `ask` finds, its upper end by the pairs above a run and its lower end by those below: asked once where they are the same."""
    found = ask(above, target, **options)
    if above == below or isinstance(found, UpperBound):
        return found
    return Bracket(min(ask(below, target, **options).lower, found.upper), found.upper, found.method)
