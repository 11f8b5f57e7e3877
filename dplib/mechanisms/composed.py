"""Several mechanisms, one after the other, on the same records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .. import accounting
from .dpsgd import _dp_event, _Mechanism


@dataclass(frozen=True)
class Composed(_Mechanism):
    """The phases of a run: see `compose`."""

    phases: tuple[_Mechanism, ...]

    def composition(self) -> list[tuple[accounting.Pair, int]]:
        return [part for phase in self.phases for part in phase.composition()]

    def _facing(self, direction):
        return self.phases[0]._facing(direction)  # of all of them

    def event(self) -> Any:
        """The run as a `DpEvent` of dp_accounting. Raises ImportError without that package."""
        return _dp_event().ComposedDpEvent([phase.event() for phase in self.phases])


def compose(mechanisms: Iterable[_Mechanism]) -> Composed:
    """One mechanism for a run of several phases, whose samples are fresh and independent.

    mechanisms : at least one `PoissonDPSGD`, `FixedBatchDPSGD`, `LastIterate`, or what `compose` returned, all for the same
        adjacency: the records that differ are the same in every phase. Each later phase may depend on what the earlier
        ones released. Its answers, direction by direction, are those of its phases' pairs together [M-0a].
    Raises TypeError for anything that has no pair for each round (a `MatrixMechanism`, `BallsInBins`, `RandomAllocation`), ValueError for an
    empty list, different adjacencies, or groups of different kinds.
    Cost: as for `accounting.delta`.

    >>> import dplib
    >>> warm_up = dplib.PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.001, steps=500)
    >>> main_part = dplib.PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000)
    >>> print(f"{dplib.compose([warm_up, main_part]).epsilon(delta=1e-6).upper:.4f}")
    2.9585
    """
    try:
        phases = tuple(mechanisms)
    except TypeError:
        raise TypeError(f"mechanisms must be a list of mechanisms; got {mechanisms!r}") from None
    if not phases:
        raise ValueError("mechanisms must not be empty")
    for phase in phases:
        if not isinstance(phase, _Mechanism):
            raise TypeError(f"mechanisms must have a pair for every round, as DP-SGD has; got {phase!r}")
    relations = {relation for phase in phases for relation in _relations(phase)}
    if len(relations) > 1:
        told = " and ".join(f"{adjacency!r} of {first} records to {second}" for adjacency, first, second in sorted(relations))
        raise ValueError(f"mechanisms must all have the same neighbours; got {told}")
    return Composed(phases)


def _relations(phase):
    if isinstance(phase, Composed):
        return [relation for inner in phase.phases for relation in _relations(inner)]
    adjacency = getattr(phase, "adjacency", "add-remove")
    # Zeroed records cost what absent ones do in every scheme that takes this adjacency [C-4].
    adjacency = "add-remove" if adjacency == "zero-out" else adjacency
    return [(adjacency, *phase._groups)]
