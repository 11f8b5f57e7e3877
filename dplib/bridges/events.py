"""Events of dp_accounting as dominating pairs, and mechanisms of dplib as events.

An event says what was released; dp_accounting itself is not imported. Its classes are known by their names, and what
`DpEvent.to_named_tuple` makes is as good as the event.

    GaussianDpEvent               a Gaussian whose sensitivity is 1 clip norm a record, 2 where records are substituted
    PoissonSampledDpEvent         of Gaussians on the same sample, which are one Gaussian [M-0a]: Binomial(k, q) [G-3.1], and
                                  under substitution on both sides [A-22]; of a Poisson sample: the probabilities multiply
    SampledWithoutReplacementDpEvent    of the same, add or remove: 2 Hypergeometric(B, n, k) [G-3.3]. The event does not say
                                  which neighbour has `source_dataset_size` records; the larger one has, to be safe. Under
                                  substitution and zero-out one record, which displaces another one [A-23]
    TruncatedSubsampledGaussianDpEvent    one record, in pieces [A-24]; the larger neighbour has `dataset_size` records
    MixtureOfGaussiansDpEvent     the pair itself [G-2.8], one record
    SingleEpochTreeAggregationDpEvent   zero-out: the deepest tree, a Gaussian with sensitivity sqrt(depth) [M-0a]
    LaplaceDpEvent, DiscreteLaplaceDpEvent, RandomizedResponseDpEvent, ZCDpEvent    no pair, but a Rényi curve: upper bounds
"""

from __future__ import annotations

import math
from typing import Any

from .. import mixtures
from .._base import validate as check
from ..accounting import Pair
from ..mixtures import Mixture
from .account import NON_PRIVATE, PAIRS, Account, Relation, together

# Why there is nothing that could be said of an event of this class.
REFUSED = {
    "UnsupportedDpEvent": "whoever made it says that its privacy is not described",
    "SampledWithReplacementDpEvent": "with replacement a record may enter a batch many times, and no pair for that is derived here",
    "RepeatAndSelectDpEvent": "the best of a random number of runs has no pair of mixtures of Gaussians",
}


_OF_MECHANISMS = ("RandomAllocation",)


class RefusedEvent(ValueError):
    """An event, `event`, about which nothing can be proved here; the message says why."""

    def __init__(self, event, reason):
        super().__init__(f"event must be one that dplib can account for; {_name(event)} is not: {reason}")
        self.event, self.reason = event, reason


def composition(event: Any, relation: Relation = "add/remove", group_size: int = 1) -> list[tuple[Pair, int]]:
    """The dominating pairs of an event, as `dplib.accounting` takes them.

    Parameters
    ----------
    event : a dp_accounting `DpEvent`, or what its `to_named_tuple` returns.
    relation : "add/remove", "zero-out" or "substitution" [C-4].
    group_size : k >= 1 records that differ.

    The pairs dominate every adaptive run; the list is empty where nothing is released. Raises ValueError where `why_not` has an answer,
    and ValueError or TypeError on bad input. Cost: a walk over the tree, and the mixtures.

    >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    >>> from dplib import accounting, events
    >>> dpsgd = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0)), 2000)
    >>> [(mixture, rounds)] = events.composition(dpsgd)
    >>> rounds, mixture.sensitivities.tolist()
    (2000, [0.0, 1.0])
    >>> print(f"{accounting.epsilon([(mixture, rounds)], delta=1e-6).upper:.5f}")
    2.95525
    """
    found = account(event, relation, group_size)
    reason = _no_pairs(found)
    if reason:
        raise ValueError(f"event must have dominating pairs; {reason}")
    return found.pairs()


def why_not(event: Any, relation: Relation = "add/remove", group_size: int = 1) -> str | None:
    """Why `composition` has no answer, in a sentence; None where it has one.

    Arguments as for `composition`. Raises ValueError or TypeError on bad input.

    >>> from dp_accounting import GaussianDpEvent, LaplaceDpEvent, SampledWithReplacementDpEvent
    >>> from dplib import events
    >>> events.why_not(GaussianDpEvent(1.0)) is None
    True
    >>> print(events.why_not(LaplaceDpEvent(1.0)))
    LaplaceDpEvent has no pair of mixtures of Gaussians, but a Rényi curve: `account` bounds its epsilon from above
    """
    try:
        return _no_pairs(account(event, relation, group_size))
    except RefusedEvent as refusal:
        return f"{_name(refusal.event)} is refused: {refusal.reason}"


def account(event: Any, relation: Relation = "add/remove", group_size: int = 1) -> Account:
    """What an event costs: `.epsilon(delta)` and `.delta(epsilon)`, a Bracket, or an UpperBound where a Rényi curve is in it.

    Arguments as for `composition`. Raises ValueError where nothing can be proved, and ValueError or TypeError on bad input;
    the two questions raise NoBracketError where something is released without noise.

    >>> from dp_accounting import ComposedDpEvent, GaussianDpEvent, LaplaceDpEvent
    >>> from dplib import events
    >>> print(events.account(ComposedDpEvent([GaussianDpEvent(8.0), LaplaceDpEvent(4.0)])).epsilon(1e-6))
    <= 0.753856 (upper bound, basic composition)
    """
    found = Account(relation, group_size)
    for item, count in _Walk(found).items(event).items():
        found.add(item, count)
    return found


def _no_pairs(found):
    if not found.is_private:
        return "it releases something without noise: epsilon is infinite"
    for kind, *_ in found.rounds:
        if kind not in PAIRS:
            return f"{_CURVED[kind]} has no pair of mixtures of Gaussians, but a Rényi curve: `account` bounds its epsilon from above"
    return None


_CURVED = {
    "laplace": "LaplaceDpEvent",
    "discrete laplace": "DiscreteLaplaceDpEvent",
    "response": "RandomizedResponseDpEvent",
    "zcdp": "ZCDpEvent",
}


def _name(event):
    """The name of an event's class; None of what is no event."""
    name = getattr(event, "class_name", None)
    if name is None and any(base.__name__ == "DpEvent" for base in type(event).__mro__):
        name = type(event).__name__
    return name.decode() if isinstance(name, bytes) else name


class _Walk:
    """The items of an account, from the leaves of a tree up. There is a method for every class of events."""

    def __init__(self, account):
        self.relation, self.group_size = account.relation, account.group_size

    def items(self, event):
        """{item: rounds} of an event."""
        name = _name(event)
        if not isinstance(name, str):
            raise TypeError(f"event must be a DpEvent of dp_accounting; got {event!r}")
        if name in REFUSED:
            raise RefusedEvent(event, REFUSED[name])
        visit = getattr(self, name, None) if name.endswith("DpEvent") or name in _OF_MECHANISMS else None
        if visit is None:
            raise RefusedEvent(event, "its class is not known here")
        return {item: count for item, count in visit(event).items() if count}

    # ------------------------------------------------------------------ composition

    def NoOpDpEvent(self, event):
        return {}

    def NonPrivateDpEvent(self, event):
        return {NON_PRIVATE: 1}

    def ComposedDpEvent(self, event):
        total = {}
        for part in event.events:
            for item, count in self.items(part).items():
                total[item] = total.get(item, 0) + count
        return total

    def SelfComposedDpEvent(self, event):
        times = check.whole("count", event.count, at_least=0)
        return {item: count * times for item, count in self.items(event.event).items()}

    # ------------------------------------------------------------------ mixtures of Gaussians

    def GaussianDpEvent(self, event):
        return self._gaussian(event)

    def _gaussian(self, event, depth=1):
        noise = check.real("noise_multiplier", event.noise_multiplier, at_least=0)
        if noise == 0:
            return {NON_PRIVATE: 1}
        return {("gaussian", check.noise_multiplier(noise) / math.sqrt(depth)): 1}

    def SingleEpochTreeAggregationDpEvent(self, event):
        if self.relation != "zero-out":
            raise RefusedEvent(event, f"its trees are accounted for under zero-out only; got {self.relation!r}")
        counts = event.step_counts if isinstance(event.step_counts, (list, tuple)) else [event.step_counts]
        steps = [check.whole("step_counts", count, at_least=0) for count in counts]
        if not any(steps):
            raise ValueError(f"step_counts must have a tree with at least one step; got {event.step_counts!r}")
        # A step counts in as many released nodes as its tree has levels, at most: sums over 1, 2, 4, ... steps that are complete.
        return self._gaussian(event, max(steps).bit_length())

    def MixtureOfGaussiansDpEvent(self, event):
        if self.relation == "substitution":
            raise RefusedEvent(event, "its pair is one of adding and removing")
        self._one_record(event)
        noise = check.real("standard_deviation", event.standard_deviation, at_least=0)
        pair = Mixture(event.sensitivities, event.sampling_probs, noise or 1.0)
        if pair.is_trivial:
            return {}
        if noise == 0:
            return {NON_PRIVATE: 1}
        return {("mixture", tuple(pair.sensitivities.tolist()), tuple(pair.probabilities.tolist()), noise): 1}

    def PoissonSampledDpEvent(self, event):
        q = check.probability("sampling_probability", event.sampling_probability)
        inner = self.items(event.event)
        if q == 1 or not inner:
            return inner
        if q == 0:
            return {}
        return self._sampled(event, inner, lambda rate, noise: ("poisson", q * rate, noise))

    def SampledWithoutReplacementDpEvent(self, event):
        n = check.whole("source_dataset_size", event.source_dataset_size, at_least=1)
        b = check.whole("sample_size", event.sample_size, at_least=0, at_most=n)
        inner = self.items(event.event)
        if b == 0 or not inner:
            return {}
        if self.relation == "add/remove":
            if b > n - self.group_size:
                raise RefusedEvent(event, f"without the group {n - self.group_size} records are left, fewer than the {b} of a batch")
        elif b == n:
            return inner
        else:
            self._one_record(event)

        def fixed(rate, noise):
            if rate != 1:
                raise RefusedEvent(event, "a Poisson sample of a batch of fixed size has no pair here")
            return ("fixed", n, b, noise)

        return self._sampled(event, inner, fixed)

    def TruncatedSubsampledGaussianDpEvent(self, event):
        q = check.probability("sampling_probability", event.sampling_probability)
        n = check.whole("dataset_size", event.dataset_size, at_least=0, at_most=mixtures.MOST_RECORDS)
        b = check.whole("truncated_batch_size", event.truncated_batch_size, at_least=0)
        noise = check.real("noise_multiplier", event.noise_multiplier, at_least=0)
        if q == 0 or n == 0 or b == 0:
            return {}
        if noise == 0:
            return {NON_PRIVATE: 1}
        self._one_record(event)
        return {("truncated", n, b, q, check.noise_multiplier(noise)): 1}

    def _sampled(self, event, inner, item):
        """One round of the sampled Gaussian that the inner events are together; item : function of inner rate and noise."""
        if NON_PRIVATE in inner:
            return {NON_PRIVATE: 1}
        if all(kind == "gaussian" for kind, *_ in inner):
            return {item(1.0, together({noise: count for (_, noise), count in inner.items()})): 1}
        [(kind, *law), count], *others = inner.items()
        if kind == "poisson" and count == 1 and not others:
            return {item(*law): 1}
        raise RefusedEvent(event, "what is sampled must be Gaussians on the same sample, or one round of them on a Poisson sample")

    # ------------------------------------------------------------------ what a ledger stores of mechanisms without an event

    def RandomAllocation(self, event):
        if self.relation == "substitution":
            raise RefusedEvent(event, "its pair is one of adding, removing and zeroing out")
        self._one_record(event)
        rounds = check.whole("rounds", event.rounds, at_least=1)
        participations = check.whole("participations", event.participations, at_least=1, at_most=rounds)
        epochs = check.whole("epochs", event.epochs, at_least=1)
        noise = check.noise_multiplier(event.noise_multiplier)
        if participations == rounds:
            return {("gaussian", noise): rounds * epochs}
        return {("allocation", rounds, participations, epochs, noise): 1}

    # ------------------------------------------------------------------ Rényi curves

    def _one_record(self, event):
        if self.group_size != 1:
            raise RefusedEvent(event, f"it describes one record, not a group of {self.group_size}")

    def LaplaceDpEvent(self, event):
        scale = check.real("noise_multiplier", event.noise_multiplier, at_least=0)
        if scale == 0:
            return {NON_PRIVATE: 1}
        return {("laplace", check.real("noise_multiplier", scale, at_least=1e-90, at_most=1e90)): 1}

    def DiscreteLaplaceDpEvent(self, event):
        a = check.real("noise_parameter", event.noise_parameter, at_least=0)
        shift = check.whole("sensitivity", event.sensitivity, at_least=0)
        if shift == 0:
            return {}
        if a == 0:  # no law at all; dp_accounting counts it so, too
            return {NON_PRIVATE: 1}
        return {("discrete laplace", check.real("noise_parameter", a, at_least=1e-90, at_most=1e90), shift): 1}

    def RandomizedResponseDpEvent(self, event):
        if self.relation == "add/remove":
            raise RefusedEvent(event, "its answers give away how many records there are")
        self._one_record(event)
        p = check.probability("noise_parameter", event.noise_parameter)
        buckets = check.whole("num_buckets", event.num_buckets, at_least=1)
        if buckets == 1 or p == 1:
            return {}
        if p == 0:
            return {NON_PRIVATE: 1}
        return {("response", check.real("noise_parameter", p, at_least=1e-90), buckets): 1}

    def ZCDpEvent(self, event):
        self._one_record(event)
        rho, xi = (check.real(name, getattr(event, name), at_least=0, at_most=1e90) for name in ("rho", "xi"))
        return {("zcdp", rho, xi): 1} if rho or xi else {}
