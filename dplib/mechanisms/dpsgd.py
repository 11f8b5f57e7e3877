"""DP-SGD in three forms: Poisson sampling, batches of fixed size, the last iterate alone [G-3.1], [G-3.3], [M-F5]."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

from .. import accounting, mixtures
from .._base import validate as check
from .._base.validate import Direction
from ..results import Bracket, UpperBound, _says_adjacency

Adjacency = Literal["add-remove", "substitution", "zero-out"]
ADJACENCIES = ("add-remove", "substitution", "zero-out")
EITHER = "add-remove or zero-out"  # zeroed records cost what absent ones do where none displaces another [C-4]
_NEIGHBOURS = ("adjacency", "inserted", "deleted")


def as_event(tree):
    """The `DpEvent` of dp_accounting whose fields a tree of dictionaries holds; of other values themselves."""
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError("event() needs the package dp-accounting: pip install dp-accounting") from error
    if isinstance(tree, list):
        return [as_event(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    fields = {name: as_event(value) for name, value in tree.items() if name != "class_name"}
    return getattr(dp_event, tree["class_name"])(**fields)


def law_of(pair):
    """(sensitivities, probabilities) of a pair, whose probabilities add up to 1 as they do where an event is read."""
    total = math.fsum(pair.probabilities)
    return pair.sensitivities.tolist(), (pair.probabilities / total).tolist()


class _Mechanism:
    """The common interface; subclasses provide `composition` and `_tree`."""

    def __repr__(self):
        # Which neighbours are meant is said where it is not the default.
        silent = [field.name for field in fields(self) if field.name in _NEIGHBOURS and getattr(self, field.name) == field.default]
        told = [f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.name not in silent]
        return f"{type(self).__name__}({', '.join(told)})"

    def composition(self) -> list[tuple[accounting.Pair, int]]:
        """The dominating pair as a list of (pair, rounds)."""
        raise TypeError("a mechanism must define its composition")

    def event(self) -> Any:
        """The run as a `DpEvent` of dp_accounting, of which group and adjacency are no part; batches of a fixed size are those of the
        larger dataset, a `LastIterate` is a mixture without what has a probability below the smallest float.

        Raises ImportError without that package, TypeError where a phase is balls in bins or random allocation, ValueError where some
        records are inserted and others deleted: no relation of dp_accounting says that.
        """
        if getattr(self, "inserted", None) and getattr(self, "deleted", None):
            raise ValueError(f"inserted and deleted must not both be given for an event; got {self!r}")
        joined = getattr(self, "group_size", 1) if getattr(self, "adjacency", "add-remove") == "add-remove" else 0
        return as_event(self._tree(int(joined)))

    def _tree(self, group_size):
        """The fields of that event, as a ledger stores them; group_size : how many records the larger dataset has more."""
        raise TypeError("a mechanism must define its event")

    @property
    def _groups(self):
        """(records that only the first dataset holds, that only the second one does)."""
        return getattr(self, "group_size", 1), 0

    def _laws(self):
        """(pairs above the run, pairs below it), as lists of (pair, rounds)."""
        parts = self.composition()
        return parts, parts

    def _relations(self):
        """[(adjacency, records that only the first dataset holds, that only the second one does)]: phases of a run have the same."""
        return [(getattr(self, "adjacency", "add-remove"), *self._groups)]

    def _facing(self, direction):
        """The direction of the composition that is this direction of the mechanism."""
        return check.direction(direction)

    @property
    def _adjacency(self):
        """Which datasets the answers tell apart."""
        return getattr(self, "adjacency", "add-remove")

    @_says_adjacency
    def delta(
        self, epsilon: float, direction: Direction = "both", method: accounting.Method = "auto"
    ) -> Bracket | UpperBound:
        """Bracket of the smallest delta at `epsilon` >= 0; `upper` is the guarantee.

        direction : "remove", "add" or "both" (the larger; remove for one-sided pairs [C-9m]). method : "auto",
        "contour", "lattice", or "renyi" (an UpperBound instead of a Bracket).
        Raises ValueError or TypeError on bad input, NoBracketError where no useful bracket can be computed.
        """
        return accounting.delta(self.composition(), epsilon, self._facing(direction), method)

    @_says_adjacency
    def epsilon(
        self, delta: float, direction: Direction = "both", method: accounting.Method = "auto"
    ) -> Bracket | UpperBound:
        """Bracket of the smallest epsilon at `delta` in (0, 1); `upper` is the guarantee.

        Arguments and errors as for `delta`.
        """
        return accounting.epsilon(self.composition(), delta, self._facing(direction), method)


@dataclass(frozen=True, repr=False)
class PoissonDPSGD(_Mechanism):
    """DP-SGD with Poisson sampling: each record joins each round independently.

    Parameters
    ----------
    noise_multiplier : sigma > 0, noise standard deviation over the clip norm.
    sampling_probability : q in [0, 1].
    steps : T >= 1 rounds.
    group_size : k >= 1 records that differ.
    adjacency : how they differ: "add-remove", "zero-out" (their gradients become zero; the same numbers [C-4]), or
        "substitution" (each is replaced by another record).
    inserted, deleted : instead of a group size, k records that only the first dataset holds and m that only the second
        one does, not both 0; with adjacency "add-remove". *Remove* is the direction from the first dataset to the second.

    Guarantee: T-fold composition of the mixture pair with sensitivity
    Binomial(k, q) dominates every adaptive run [G-3.1], in both directions, and
    is attained [G-3.3t]: the bracket contains the exact value. So does, and is, that of the pair with sensitivities
    Binomial(k, q) to one side and Binomial(m, q) to the other, m = k for substitution [A-22].
    Under substitution groups above 20,000 records are refused where the noise is small next to them.
    Domain: sigma 0.01 to 1e6, q 1e-9 to 1, T to 1e9, k to 1e6, delta 1e-300 to 1 - 1e-12, epsilon to 1e4; beyond it an
    answer, or NoBracketError with the next step. Raises ValueError or TypeError on anything else.
    Cost: milliseconds in the median, at most 1 s in practical settings, rarely over 2 s in the domain (`accounting.delta`).

    >>> from dplib import PoissonDPSGD
    >>> training = PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000, group_size=2)
    >>> spent = training.epsilon(delta=1e-6)
    >>> print(f"{spent.upper:.4f}")
    6.4326
    >>> training.delta(epsilon=7.0).upper < 1e-6
    True
    >>> replaced = PoissonDPSGD(1.0, 0.01, 2000, adjacency="substitution")
    >>> print(f"{replaced.epsilon(delta=1e-6).upper:.4f}")
    4.6962
    """

    noise_multiplier: float
    sampling_probability: float
    steps: int
    group_size: int = 1
    adjacency: Adjacency = "add-remove"
    inserted: int | None = None
    deleted: int | None = None

    def __post_init__(self):
        check.noise_multiplier(self.noise_multiplier)
        check.probability("sampling_probability", self.sampling_probability)
        check.whole("steps", self.steps, at_least=1)
        check.whole("group_size", self.group_size, at_least=1, at_most=10**8)
        check.choice("adjacency", self.adjacency, ADJACENCIES)
        if self.inserted is None and self.deleted is None:
            return
        for name in ("inserted", "deleted"):
            if getattr(self, name) is not None:
                check.whole(name, getattr(self, name), at_least=0, at_most=10**8)
        if not self.inserted and not self.deleted:
            raise ValueError("inserted and deleted must not both be 0")
        if self.group_size != 1:
            raise ValueError(f"group_size must be left out where inserted or deleted is given; got {self.group_size!r}")
        if self.adjacency != "add-remove":
            raise ValueError(f"adjacency must be 'add-remove' where inserted or deleted is given; got {self.adjacency!r}")

    @property
    def _groups(self):
        """(records that only the first dataset holds, that only the second one does)."""
        if self.inserted is not None or self.deleted is not None:
            return self.inserted or 0, self.deleted or 0
        return self.group_size, self.group_size if self.adjacency == "substitution" else 0

    @property
    def _adjacency(self):
        inserted, deleted = self._groups
        mixed = self.inserted is not None or self.deleted is not None
        return f"{inserted} inserted and {deleted} deleted" if mixed else self.adjacency

    def _relations(self):
        return [(self.adjacency if self.adjacency == "substitution" else EITHER, *self._groups)]

    def composition(self) -> list[tuple[accounting.Pair, int]]:
        # Records that are all on one side make a one-sided pair, whichever side it is: see `_facing`.
        first, second = self._groups if self._groups[0] else self._groups[::-1]
        gained = mixtures.binomial(first, self.sampling_probability, self.noise_multiplier)
        if second == 0 or gained.is_trivial:
            return [(gained, int(self.steps))]
        lost = gained if second == first else mixtures.binomial(second, self.sampling_probability, self.noise_multiplier)
        return [(mixtures.two_sided(gained, lost), int(self.steps))]

    def _facing(self, direction):
        direction = check.direction(direction)
        return direction if self._groups[0] else {"remove": "add", "add": "remove"}.get(direction, direction)

    def _tree(self, group_size):
        sampled = {"class_name": "PoissonSampledDpEvent", "sampling_probability": float(self.sampling_probability)}
        return _rounds(self, sampled | {"event": _gaussian(self)})


@dataclass(frozen=True, repr=False)
class FixedBatchDPSGD(_Mechanism):
    """DP-SGD with batches of fixed size, drawn without replacement in every round.

    Parameters
    ----------
    noise_multiplier : sigma > 0.
    batch_size : B, 1 <= B <= dataset_size.
    dataset_size : n >= 1, a lower bound on the size of the smaller dataset; with another adjacency, the size of both.
    steps : T >= 1.
    group_size : k >= 1 records, added or removed together; with another adjacency 1.
    adjacency : "add-remove", "substitution" (one record is replaced by another), or "zero-out" (its gradient becomes zero,
        and it keeps its place in the batch).

    Guarantee: T-fold composition of the mixture pair with sensitivity
    2 * Hypergeometric(B, n + k, k) [G-3.3], attained [G-3.3t]. The factor 2: an
    inserted record takes the place of another one.
    For substitution and zero-out the pair is a folded one with sensitivity 2 and q = B / n [A-23]: it dominates every
    adaptive run. Under substitution a single round attains it; whether several rounds do is open, and so is zero-out. Larger groups are
    refused: no pair is proved here for them.
    Domain and cost as for `PoissonDPSGD`, with q = B / n; folded pairs take tenths of a second to some seconds, with relative
    widths of 1e-6 to 1e-4. Raises ValueError or TypeError on anything else.

    >>> from dplib import FixedBatchDPSGD
    >>> training = FixedBatchDPSGD(noise_multiplier=2.0, batch_size=100, dataset_size=10_000, steps=2000)
    >>> print(f"{training.epsilon(delta=1e-6).upper:.4f}")
    2.9550
    >>> replaced = FixedBatchDPSGD(2.0, 100, 10_000, 2000, adjacency="substitution")
    >>> print(f"{replaced.epsilon(delta=1e-6).upper:.3f}")
    3.611
    """

    noise_multiplier: float
    batch_size: int
    dataset_size: int
    steps: int
    group_size: int = 1
    adjacency: Adjacency = "add-remove"

    def __post_init__(self):
        check.noise_multiplier(self.noise_multiplier)
        check.whole("dataset_size", self.dataset_size, at_least=1)
        check.whole("batch_size", self.batch_size, at_least=1, at_most=self.dataset_size)
        check.whole("steps", self.steps, at_least=1)
        check.whole("group_size", self.group_size, at_least=1, at_most=10**6)
        if check.choice("adjacency", self.adjacency, ADJACENCIES) != "add-remove" and self.group_size != 1:
            raise ValueError(
                f"group_size must be 1 with adjacency {self.adjacency!r}; got {self.group_size!r}: for batches of a fixed size no pair "
                "that composes is proved here for several such records"
            )

    def composition(self) -> list[tuple[accounting.Pair, int]]:
        if self.adjacency != "add-remove":
            pair = mixtures.replaced_in_batch(self.batch_size, self.dataset_size, self.noise_multiplier, self.adjacency)
            return [(pair, int(self.steps))]
        pair = mixtures.hypergeometric(
            self.batch_size, self.dataset_size, self.group_size, self.noise_multiplier
        )
        return [(pair, int(self.steps))]

    def _tree(self, group_size):
        sizes = {"source_dataset_size": int(self.dataset_size) + group_size, "sample_size": int(self.batch_size)}
        return _rounds(self, {"class_name": "SampledWithoutReplacementDpEvent", **sizes, "event": _gaussian(self)})


@dataclass(frozen=True)
class LastIterate(_Mechanism):
    """DP-SGD on linear losses when only the last iterate is released.

    The T noisy sums collapse into one: sensitivity Binomial(steps, q) against
    noise of standard deviation noise_multiplier * sqrt(steps) [M-F5].

    Parameters: noise_multiplier > 0, sampling_probability q in [0, 1], steps T >= 1.
    Guarantee: exact for linear losses in any dimension with one learning rate in all rounds, no momentum and no decay, both
    directions; no claim otherwise. For other known rates take `mixtures.product` of the rounds (chapter 6). Domain as for `PoissonDPSGD`, T to 1e8. Raises ValueError or TypeError on anything else.
    Cost: one closed form, milliseconds; some seconds where hundreds of thousands of sensitivities count.

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

    def composition(self) -> list[tuple[accounting.Pair, int]]:
        sigma = float(self.noise_multiplier) * math.sqrt(int(self.steps))
        return [(mixtures.binomial(int(self.steps), self.sampling_probability, sigma), 1)]

    def _relations(self):
        return [(EITHER, 1, 0)]

    def _tree(self, group_size):
        [(pair, _)] = self.composition()
        sensitivities, probabilities = law_of(pair)
        law = {"sensitivities": sensitivities, "sampling_probs": probabilities}
        return {"class_name": "MixtureOfGaussiansDpEvent", "standard_deviation": pair.noise_multiplier, **law}


def _gaussian(mechanism):
    return {"class_name": "GaussianDpEvent", "noise_multiplier": float(mechanism.noise_multiplier)}


def _rounds(mechanism, step):
    return {"class_name": "SelfComposedDpEvent", "event": step, "count": int(mechanism.steps)}
