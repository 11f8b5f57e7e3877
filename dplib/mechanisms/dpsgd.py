"""DP-SGD in three forms: Poisson sampling, batches of fixed size, the last iterate alone [G-3.1], [G-3.3], [M-F5]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .. import accounting, mixtures
from .._base import validate as check
from .._base.validate import Direction
from ..results import Bracket, UpperBound


def _dp_event():
    """The classes of dp_accounting's events."""
    try:
        from dp_accounting import dp_event
    except ImportError as error:
        raise ImportError("event() needs the package dp-accounting: pip install dp-accounting") from error
    return dp_event


class _Mechanism:
    """The common interface; subclasses provide `composition`."""

    def composition(self) -> list[tuple[mixtures.Mixture, int]]:
        """The dominating pair as a list of (Mixture, rounds)."""
        raise TypeError("a mechanism must define its composition")

    def delta(
        self, epsilon: float, direction: Direction = "both", method: accounting.Method = "auto"
    ) -> Bracket | UpperBound:
        """Bracket of the smallest delta at `epsilon` >= 0; `upper` is the guarantee.

        direction : "remove", "add" or "both" (remove, the larger [C-9m]). method : "auto",
        "contour", "lattice", or "renyi" (an UpperBound instead of a Bracket).
        Raises ValueError or TypeError on bad input, NoBracketError where no useful bracket can be computed.
        """
        return accounting.delta(self.composition(), epsilon, direction, method)

    def epsilon(
        self, delta: float, direction: Direction = "both", method: accounting.Method = "auto"
    ) -> Bracket | UpperBound:
        """Bracket of the smallest epsilon at `delta` in (0, 1); `upper` is the guarantee.

        Arguments and errors as for `delta`.
        """
        return accounting.epsilon(self.composition(), delta, direction, method)


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
    Domain: sigma 0.01 to 1e6, q 1e-9 to 1, T to 1e9, k to 1e6, delta 1e-300 to 1 - 1e-12, epsilon to 1e4; beyond it an
    answer, or NoBracketError with the next step. Raises ValueError or TypeError on anything else.
    Cost: milliseconds in the median, at most about 1 s in practical settings, 8 s in the domain (`accounting.delta`).

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

    def composition(self) -> list[tuple[mixtures.Mixture, int]]:
        pair = mixtures.binomial(self.group_size, self.sampling_probability, self.noise_multiplier)
        return [(pair, int(self.steps))]

    def event(self) -> Any:
        """The run as a `DpEvent` of dp_accounting, of which the group size is no part. Raises ImportError without that package."""
        events = _dp_event()
        step = events.PoissonSampledDpEvent(self.sampling_probability, events.GaussianDpEvent(self.noise_multiplier))
        return events.SelfComposedDpEvent(step, int(self.steps))


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
    Domain and cost as for `PoissonDPSGD`, with q = B / n. Raises ValueError or TypeError on anything else.

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

    def composition(self) -> list[tuple[mixtures.Mixture, int]]:
        pair = mixtures.hypergeometric(
            self.batch_size, self.dataset_size, self.group_size, self.noise_multiplier
        )
        return [(pair, int(self.steps))]

    def event(self) -> Any:
        """The run as a `DpEvent` of dp_accounting, on the larger of the two datasets; as `PoissonDPSGD.event`."""
        events = _dp_event()
        size = int(self.dataset_size) + int(self.group_size)
        batch = events.SampledWithoutReplacementDpEvent(size, int(self.batch_size), events.GaussianDpEvent(self.noise_multiplier))
        return events.SelfComposedDpEvent(batch, int(self.steps))


@dataclass(frozen=True)
class LastIterate(_Mechanism):
    """DP-SGD on linear losses when only the last iterate is released.

    The T noisy sums collapse into one: sensitivity Binomial(steps, q) against
    noise of standard deviation noise_multiplier * sqrt(steps) [M-F5].

    Parameters: noise_multiplier > 0, sampling_probability q in [0, 1], steps T >= 1.
    Guarantee: exact for linear losses in any dimension, both directions; no claim
    for other losses. Domain as for `PoissonDPSGD`, T to 1e8. Raises ValueError or TypeError on anything else.
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

    def composition(self) -> list[tuple[mixtures.Mixture, int]]:
        steps = int(self.steps)
        sigma = float(self.noise_multiplier) * math.sqrt(steps)
        return [(mixtures.binomial(steps, self.sampling_probability, sigma), 1)]

    def event(self) -> Any:
        """The run as one mixture of Gaussians, without what has a probability below the smallest float; as `PoissonDPSGD.event`."""
        [(pair, _)] = self.composition()
        total = math.fsum(pair.probabilities)
        return _dp_event().MixtureOfGaussiansDpEvent(
            pair.noise_multiplier, pair.sensitivities.tolist(), (pair.probabilities / total).tolist()
        )
