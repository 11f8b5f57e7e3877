"""DP-SGD with Poisson sampling and a largest batch: what is above it is left out at random [A-24]."""

from __future__ import annotations

from dataclasses import dataclass

from .. import accounting, mixtures
from .._base import validate as check
from .dpsgd import ADJACENCIES, Adjacency, _Mechanism, _rounds


@dataclass(frozen=True, repr=False)
class TruncatedPoissonDPSGD(_Mechanism):
    """DP-SGD with Poisson sampling, where a batch that is too large is cut to a random part of it.

    Parameters
    ----------
    noise_multiplier : sigma > 0, noise standard deviation over the clip norm.
    sampling_probability : q in [0, 1].
    dataset_size : n >= 1, at most 1e10: how many records are sampled from, with adjacency "add-remove" those of the larger
        dataset.
    largest_batch : B >= 1: of more sampled records, B are kept, every set of B as likely as any other.
    steps : T >= 1 rounds.
    adjacency : how one record differs: "add-remove", "substitution", or "zero-out".

    Guarantee: T-fold composition of a pair in pieces [A-24]: that of Poisson sampling where nothing is cut, and where a
    record displaces another one a pair with sensitivity 2. It dominates every adaptive run, in both directions; whether it is
    attained is open, since an outcome does not show whether its batch was cut. The bracket contains the pair's exact value.
    Raises ValueError or TypeError on bad input, NoBracketError as `accounting.delta`.
    Cost: tenths of a second to some seconds; relative widths of 1e-6 to 1e-4 in practical settings.

    >>> from dplib import PoissonDPSGD, TruncatedPoissonDPSGD
    >>> training = TruncatedPoissonDPSGD(1.0, 0.05, dataset_size=1000, largest_batch=70, steps=100)
    >>> print(f"{training.epsilon(delta=1e-5).upper:.3f}")
    5.444
    >>> print(f"{PoissonDPSGD(1.0, 0.05, 100).epsilon(delta=1e-5).upper:.3f}")
    3.503
    """

    noise_multiplier: float
    sampling_probability: float
    dataset_size: int
    largest_batch: int
    steps: int
    adjacency: Adjacency = "add-remove"

    def __post_init__(self):
        check.noise_multiplier(self.noise_multiplier)
        check.probability("sampling_probability", self.sampling_probability)
        check.whole("dataset_size", self.dataset_size, at_least=1, at_most=mixtures.MOST_RECORDS)
        check.whole("largest_batch", self.largest_batch, at_least=1)
        check.whole("steps", self.steps, at_least=1)
        check.choice("adjacency", self.adjacency, ADJACENCIES)

    def composition(self) -> list[tuple[accounting.Pair, int]]:
        pair = mixtures.truncated_poisson(
            self.sampling_probability, self.dataset_size, self.largest_batch, self.noise_multiplier, self.adjacency
        )
        return [(pair, int(self.steps))]

    def _tree(self, group_size):
        step = {
            "class_name": "TruncatedSubsampledGaussianDpEvent", "dataset_size": int(self.dataset_size),
            "sampling_probability": float(self.sampling_probability), "truncated_batch_size": int(self.largest_batch),
            "noise_multiplier": float(self.noise_multiplier),
        }  # fmt: skip
        return _rounds(self, step)
