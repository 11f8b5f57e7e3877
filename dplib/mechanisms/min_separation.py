"""The mechanism `MinSeparation`: correlated noise, where a record pauses after each round in which it took part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from .._base import validate as check
from .._base.validate import Direction
from ..balls_in_bins import pattern_account, pattern_law
from ..matrices import Encoder
from ..results import Certificate, Estimate, UpperBound, _says_adjacency
from .matrix_mechanism import MatrixMechanism
from .sampling_request import SamplingRequest

Method = Literal["auto", "estimate", "certificate", "renyi"]

METHODS = ("auto", "estimate", "certificate", "renyi")


@dataclass(frozen=True)
class MinSeparation:
    """A matrix mechanism with b-min-sep batches: releases C x + z (Dong and Ganesh 2026, arXiv 2602.09338).

    An eligible record joins a round by its own coin of probability p; then it sits out b - 1 rounds. In the long run it is in a
    share p / (1 + (b - 1) p) of the rounds. b = 1 is Poisson sampling, as in `MatrixMechanism`; p = 1 with a warm start is balls in bins.

    Parameters
    ----------
    encoder : C, made by `dplib.matrices`; entries >= 0, one column for each round, at most 65,536. Any number of bands; with
        many more than b of them only "renyi" and `poisson()` answer (below).
    noise_multiplier : sigma > 0, standard deviation of z over the clip norm (*not* over a column norm of C).
    sampling_probability : p in [0, 1], of an eligible record in a round (not its rate in the long run).
    min_separation : b, from 1 to the number of rounds.
    warm_start : True where every record starts in the stationary law, in which all rounds have the same rate; False where all
        records are eligible in the first round (`dplib.batching.min_separation` draws both).

    Guarantee: the mixture of N(sum of the columns in S, sigma^2 I) over the random rounds S of a record against N(0, sigma^2 I)
    dominates every such run, in both directions, for adding, removing or zeroing out one record, also for contributions that depend
    on what was released before: [M-B.4] holds for any law of S that does not depend on the data, because C >= 0. It is
    attained. Remove is the larger direction [C-9m]. What `delta` and `epsilon` return depends on the method:

        "estimate"     an Estimate by importance sampling: not a guarantee
        "certificate"  a Certificate: an upper bound that fails with a stated probability [A-15]
        "renyi"        an UpperBound without sampling, from the Rényi divergence of a whole order, up to 64: bounded
                       round by round, not computed; or from the longest pattern alone. In both directions
        "auto"         the estimate

    Nothing exact is offered (for C = I and b = 1 `PoissonDPSGD` is, for p = 1 `BallsInBins`). `poisson()` gives upper
    bounds as if nobody paused; for b = 1 that is the "renyi" of this class, or MMCC or counted participations where those are smaller.
    Raises ValueError or TypeError on bad input, NoBracketError where all that a record can move exceeds 100 units of the noise (a million for "renyi"); ValueError for samples where a
    record's rounds overlap in too many ways: with w > b bands the histories of w rounds, 69 for b = 4 and w = 16, times the
    number of rounds may be at most 2^18. Cost: proportional to rounds, samples and, beyond b bands, the tuple's size and those
    histories: under a second for 64 rounds, about half a minute for 1,000; some ten times that beyond b bands.

    >>> from dplib import MinSeparation, matrices
    >>> encoder = matrices.optimal_counting(32, bands=4)
    >>> training = MinSeparation(encoder, noise_multiplier=4.0, sampling_probability=0.2, min_separation=4)
    >>> guess = training.delta(epsilon=1.0)
    >>> print(f"about {guess.value:.1g}: an {type(guess).__name__}, no guarantee")
    about 0.001: an Estimate, no guarantee
    >>> proved = training.delta(1.0, method="certificate", samples=2**14)
    >>> guess.value < proved.upper < training.delta(1.0, method="renyi").upper < training.poisson().delta(1.0).upper
    True
    """

    encoder: Encoder
    noise_multiplier: float
    sampling_probability: float
    min_separation: int
    warm_start: bool = True
    _adjacency = "add-remove or zero-out"  # of its answers
    _bound = "renyi"  # the method that `calibrate` asks
    _columns: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        check.noise_multiplier(self.noise_multiplier)
        check.probability("sampling_probability", self.sampling_probability)
        check.flag("warm_start", self.warm_start)
        object.__setattr__(self, "_columns", pattern_law.columns_of(self.encoder, self.min_separation))

    @_says_adjacency
    def delta(
        self, epsilon: float, direction: Direction = "both", method: Method = "auto", *, samples: int | None = None,
        seed: int = 0, failure_probability: float | None = None,
    ) -> Estimate | Certificate | UpperBound:
        """delta at `epsilon` >= 0: an Estimate, a Certificate or an UpperBound (see the class).

        direction : "remove", "add" or "both" (the larger: remove [C-9m]).
        method : "auto", "estimate", "certificate" or "renyi".
        samples : of an estimate (None: until its standard error is 1%, or 65,536, fewer beyond 512 rounds; its `method` says
            where they were too few, and beyond 3% the upper end is that of bounded draws), or of a certificate (None: 2^16).
        seed : of the draws, a whole number at least 0; the same seed gives the same answer.
        failure_probability : of a certificate, from 1e-300 to below 1. None: 1e-9, or a tenth of delta where that is less. The
            certificate proves one claim, "delta is at most ...", if the claim was fixed before the draws [N-2.1].

        Raises ValueError or TypeError on bad input, also where the samples are too few for a certificate.
        """
        epsilon = check.epsilon(epsilon)
        ask = SamplingRequest(METHODS, direction, method, seed, samples, failure_probability)
        account = self._account(ask.side, sampled=method != "renyi")
        if method == "renyi":
            return account.upper_delta(epsilon)
        return ask.delta(account, epsilon)

    @_says_adjacency
    def epsilon(
        self, delta: float, direction: Direction = "both", method: Method = "auto", *, samples: int | None = None,
        seed: int = 0, failure_probability: float | None = None,
    ) -> Estimate | Certificate | UpperBound:
        """The smallest epsilon >= 0 at `delta` in (0, 1): an Estimate, a Certificate or an UpperBound (see the class).

        Arguments and errors as for `delta`. A certificate is the smallest of three candidates at which
        delta - failure_probability was certified, each with fresh samples and its part of the failure probability. A
        run that depends on it is (epsilon, delta)-DP, the search included: its failures are paid for out of delta
        [N-2.1s]. failure_probability must be below delta, and is min(1e-9, delta / 1000) where none is given.
        """
        delta = check.delta(delta)
        ask = SamplingRequest(METHODS, direction, method, seed, samples, failure_probability)
        account = self._account(ask.side, sampled=method != "renyi")
        if method == "renyi":
            return account.upper_epsilon(delta)
        return ask.epsilon(account, delta)

    def poisson(self) -> MatrixMechanism:
        """A mechanism that is never more private: the same encoder and noise, with Poisson sampling at rate p.

        Its `delta` and `epsilon` are upper bounds on those of this mechanism; method="renyi" is mostly
        smaller, and not where the noise is large or delta tiny (its orders end at 64). Why: a b-min-sep record is
        in a round only where its coin of that round shows heads, so that its rounds are a part of those of Poisson sampling with the same
        coins; every inner product of what two runs of coins move grows, as no entry of C^T C is below 0, and larger inner products
        dominate [M-K]. It loses what the pauses save: the rate is p, in place of p / (1 + (b - 1) p).
        """
        return MatrixMechanism(self.encoder, self.noise_multiplier, self.sampling_probability)

    def _account(self, side, sampled):
        pair = pattern_account.dominating_pair(
            self._columns, self.noise_multiplier, self.sampling_probability, self.min_separation, self.warm_start,
            pattern_account.MOST_SAMPLED if sampled else pattern_account.MOST_BOUNDED,
        )
        if sampled:
            pair.check_histories()
        return pattern_account.Account(pair, side)
