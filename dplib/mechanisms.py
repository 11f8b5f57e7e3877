"""What a user names: mechanisms with one common interface.

    mechanism.delta(epsilon, direction="both")   -> Bracket
    mechanism.epsilon(delta, direction="both")   -> Bracket

(with method="renyi" an UpperBound).

Each class only says which dominating pair its rounds have; `accounting` does the rest.
`MatrixMechanism` has no pair for its rounds but bounds on what the past reveals, or on how often a record
takes part: its answers are `UpperBound`s. `BallsInBins` has one pair for all rounds together; its answers say
whether they are exact, estimated or certified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from . import _validate as check
from . import accounting, conditional, mixtures
from ._balls_in_bins import BallsInBins
from ._matrix_bounds import FEW
from ._matrix_bounds import Bounds as _Bounds
from .results import Bracket, UpperBound

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
        return accounting.delta(self.composition(), epsilon, direction, method)

    def epsilon(self, delta, direction="both", method="auto") -> Bracket | UpperBound:
        """Bracket of the smallest epsilon at `delta` in (0, 1); `upper` is the guarantee.

        Arguments and errors as for `delta`.
        """
        accounting.check_request(direction, method, delta=delta)
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

    def composition(self):
        steps = int(self.steps)
        sigma = float(self.noise_multiplier) * math.sqrt(steps)
        return [(mixtures.binomial(steps, self.sampling_probability, sigma), 1)]


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
    tail_bound : "best" (the smallest of all), "published" [M-Alg2], "joint" [A-11], "aggregated" [A-12],
        "pooled" [A-13], or "few": no tail bound, participations counted [M-few], [M-once].
    tail_share : share of delta that pays for the bad event, in (0, 1). None: one half for "published", as in the
        source, else the better of two.
    round_entries_to : round entries up to multiples of this, as the source does; None: no such loss.

    Guarantee: an upper bound on epsilon and delta in each direction, for adaptive inputs [M-4.3], for
    adding, removing or zeroing out one record. The result's `method` names the bound. With "best" there is
    an answer at any noise and rate, never above P[N > m] + w H of one Gaussian, for any m [M-few]; less sampling
    never costs more [M-p]; and epsilon(delta(epsilon).upper) is at most epsilon (1 + 1e-6).
    "published" is the conservative mode: of this book's bounds it uses neither [A-11] to [A-13] nor [M-few], [M-once]. On its
    path are still [C-9m] (direction "both"), [A-10] (not with `round_entries_to`, which rounds entries as the source
    does), rare coins of Toeplitz rows as Poisson numbers (first step of [A-12]), repairs of the source, and the
    composition of the rows: one lattice, the accountants, or convexity. Chapter 12 (where the bound loses) says more.
    The others use that, and "joint" [A-11], "aggregated" [A-12], "pooled" [A-13], "best" all; "few" only [M-few], [M-once].
    Raises ValueError or TypeError on anything else, NoBracketError where a tail bound by itself is void.
    Cost: a budget of compositions, at most 4 for `epsilon` and about 20 for `delta`: up to 64 rounds mostly under
    0.1 s, at most about 2 s at any noise and rate. Toeplitz encoders and trees with 131,072 rounds take seconds;
    dense ones n^3, up to 4,096 rounds (n = 2,048: minutes), with a progress bar.

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
        check.choice("tail_bound", self.tail_bound, (*conditional.TAIL_BOUNDS, FEW))
        if self.tail_share is not None:
            check.real("tail_share", self.tail_share, above=0, below=1)
        if self.round_entries_to is not None:
            check.real("round_entries_to", self.round_entries_to, above=0)

    def epsilon(self, delta, direction="both") -> UpperBound:
        """Upper bound on epsilon at `delta` in (0, 1).

        direction : "remove", "add" or "both" (the larger: remove [C-9m]).
        """
        delta = check.delta(delta)
        return _Bounds(self, check.direction(direction)).epsilon(delta)[0]

    def delta(self, epsilon, direction="both") -> UpperBound:
        """Upper bound on delta at `epsilon` >= 0. Arguments as for `epsilon`."""
        epsilon = check.epsilon(epsilon)
        return _Bounds(self, check.direction(direction)).delta(epsilon)

    def with_best_tail(self, delta, direction="both"):
        """The same mechanism, fixed to the tail bound and share that give the smallest epsilon at `delta`.

        Its epsilon is a smooth function of the noise, and a single bound to compute.
        """
        delta = check.delta(delta)
        _, name, share = _Bounds(self, check.direction(direction)).epsilon(delta)
        return replace(self, tail_bound=name, tail_share=share)
