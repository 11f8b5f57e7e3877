"""The mechanism `RandomAllocation`: every record takes part in k random rounds of t, with fresh noise in every round.

It checks what it is asked and chooses; `allocation_blocks` has the proved bounds without sampling, `allocation_sampling` the others, and
one participation in one epoch is `BallsInBins` with the identity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from .. import gaussian
from .._base import validate as check
from .._base.validate import Direction
from ..balls_in_bins import lognormal_sum
from ..matrices import identity
from ..results import Bracket, Certificate, Estimate, NoBracketError, UpperBound, _says_adjacency
from . import allocation_blocks as blocks
from .allocation_sampling import Account
from .balls_in_bins import BallsInBins
from .sampling_request import SamplingRequest

AllocationMethod = Literal["auto", "exact", "bound", "estimate", "certificate"]
METHODS = ("auto", "exact", "bound", "estimate", "certificate")
_MOST_ROUNDS, _MOST_EPOCHS = 2**13, 1000
_SAMPLED_NORMS = 1e-4, 20.0  # of a record's participations in units of the noise: beyond these nothing is sampled


@dataclass(frozen=True)
class RandomAllocation:
    """DP-SGD where every record takes part in exactly k of t rounds: a uniformly random k-subset, its own for every record.

    Parameters
    ----------
    noise_multiplier : sigma > 0, noise standard deviation over the clip norm, fresh in every round.
    rounds : t, from 1 to 8192.
    participations : k, from 1 to t.
    epochs : E from 1 to 1000 such blocks of t rounds, one after the other, with fresh independent choices.

    Guarantee: P = mean over k-subsets S of N(1_S, sigma^2 I) against Q = N(0, sigma^2 I) dominates every run, in both directions, for
    adding, removing or zeroing out one record, also where gradients depend on what was released before [M-B.4]; E epochs compose. What
    `delta` and `epsilon` return depends on the method:

        "exact"        a Bracket within 1e-4 or so: where k = t, a Gaussian mechanism, or where k = E = 1, which is
                       `BallsInBins` with the identity [A-16]
        "bound"        an UpperBound without sampling: at random the rounds are cut into k blocks, with one participation in each, which
                       can only cost more; E k blocks are composed
        "auto"         exact where it exists, else a Bracket, whose upper end is that bound and whose lower end is proved as well: the two may
                       be far apart
        "estimate"     an Estimate by importance sampling: not a guarantee
        "certificate"  a Certificate: an upper bound near the estimate that fails with a stated probability

    Raises ValueError or TypeError on bad input, NoBracketError for "estimate" and "certificate" where sqrt(k E) / sigma is not from 1e-4
    to 20. Cost: a bound takes some seconds, whatever k and E, and up to a minute where t / k is in the
    thousands; an estimate tenths of a second and a certificate seconds for a hundred rounds, in proportion to t k E.

    >>> from dplib import RandomAllocation
    >>> training = RandomAllocation(noise_multiplier=1.0, rounds=32, participations=4)
    >>> proof = training.delta(epsilon=2.5, method="certificate", samples=2**15)
    >>> guess = training.delta(epsilon=2.5, method="estimate")
    >>> guess.value < proof.upper < 1.3 * guess.value
    True
    >>> print(f"known rounds instead of random ones: {RandomAllocation(1.0, 4, 4).delta(2.5).upper:.3f}")
    known rounds instead of random ones: 0.253
    """

    noise_multiplier: float
    rounds: int
    participations: int
    epochs: int = 1
    _adjacency = "add-remove or zero-out"  # of its answers
    _bound = "bound"  # the method that `calibrate` asks

    def __post_init__(self):
        check.noise_multiplier(self.noise_multiplier)
        check.whole("rounds", self.rounds, at_least=1, at_most=_MOST_ROUNDS)
        check.whole("participations", self.participations, at_least=1, at_most=int(self.rounds))
        check.whole("epochs", self.epochs, at_least=1, at_most=_MOST_EPOCHS)

    @property
    def _scheme(self):
        return int(self.rounds), int(self.participations), int(self.epochs), float(self.noise_multiplier)

    @_says_adjacency
    def delta(
        self, epsilon: float, direction: Direction = "both", method: AllocationMethod = "auto", *, samples: int | None = None, seed: int = 0,
        failure_probability: float | None = None,
    ) -> Bracket | UpperBound | Estimate | Certificate:
        """delta at `epsilon` >= 0 (see the class).

        direction : "remove", "add" or "both" (the larger: remove [C-9m]).
        method : "auto", "exact", "bound", "estimate" or "certificate".
        samples : draws of an estimate (None: until its standard error is 1%, or 65,536, fewer beyond 512 rounds; its `method`
            says where they were too few) or of a certificate (None: 2^16). seed : of the draws, a whole number at least 0; the same seed gives the same answer.
        failure_probability : of a certificate, from 1e-300 to below 1. None: 1e-9, or a tenth of delta where that is less. One claim, fixed before
            the draws, is proved [N-2.1].

        Raises ValueError or TypeError on bad input, where method="exact" has no exact accountant, or where samples are too few for
        a certificate.
        """
        epsilon = check.epsilon(epsilon)
        ask = SamplingRequest(METHODS, direction, method, seed, samples, failure_probability)
        if (found := self._exact(ask, "delta", epsilon, failure_probability)) is not None:
            return found
        if method in ("auto", "bound"):
            return _as_asked(method, blocks.delta(self._scheme, epsilon, ask.side))
        return ask.delta(self._account(ask.side), epsilon)

    @_says_adjacency
    def epsilon(
        self, delta: float, direction: Direction = "both", method: AllocationMethod = "auto", *, samples: int | None = None, seed: int = 0,
        failure_probability: float | None = None,
    ) -> Bracket | UpperBound | Estimate | Certificate:
        """The smallest epsilon >= 0 at `delta` in (0, 1) (see the class).

        Arguments and errors as for `delta`. A certificate is the smallest of a few candidates, fixed beforehand, at which
        delta - failure_probability was certified with fresh draws: a run that depends on it is (epsilon, delta)-DP, the search
        included [N-2.1s]. failure_probability must be below delta, and is min(1e-9, delta / 1000) where none is given.
        """
        delta = check.delta(delta)
        ask = SamplingRequest(METHODS, direction, method, seed, samples, failure_probability)
        failure = ask.failure_for(delta)
        if (found := self._exact(ask, "epsilon", delta, failure)) is not None:
            return found
        if method in ("auto", "bound"):
            upper = blocks.epsilon(self._scheme, delta, ask.side)
            if method == "bound":
                return UpperBound(upper, "blocks")
            return Bracket(min(blocks.lower_epsilon(self._scheme, delta, ask.side), upper), upper, "blocks")
        return ask.epsilon(self._account(ask.side), delta)

    # ------------------------------------------------------------------ helpers

    def _exact(self, ask, question, target, failure):
        """The answer of the Gaussian mechanism or of `BallsInBins` where the pair is theirs, or None."""
        method = ask.method
        rounds, participations, epochs, noise = self._scheme
        one = participations == 1 and epochs == 1
        if method == "exact" and not one and participations < rounds:
            raise ValueError(
                "method must be 'auto', 'bound', 'estimate' or 'certificate': an exact accountant exists only where participations is 1 and "
                "epochs is 1, or participations equals rounds; got 'exact'"
            )
        if participations == rounds and method in ("auto", "exact", "bound"):
            return _as_asked(method, _known_rounds(math.sqrt(rounds * epochs) / noise, question, target))
        if not one or participations == rounds:
            return None
        bins = BallsInBins(identity(rounds), noise, rounds, 1)
        if method in ("estimate", "certificate"):
            sampling = {"samples": ask.samples, "seed": ask.seed, "failure_probability": failure if method == "certificate" else None}
            return getattr(bins, question)(target, ask.side, method, **sampling)
        try:
            return _as_asked(method, getattr(bins, question)(target, ask.side, "exact"))
        except NoBracketError:
            if method == "exact":
                raise
            return None

    def _relations(self):
        return [(self._adjacency, 1, 0)]

    def _laws(self):
        """([(pair above, how many)], [(pair below, how many)]) of all epochs, to compose with other phases."""
        above = blocks.pairs_above(self._scheme)
        return above, above if self.participations == self.rounds else blocks.pairs_below(self._scheme)

    def _account(self, side):
        rounds, participations, epochs, noise = self._scheme
        norm = math.sqrt(participations * epochs) / noise
        if not _SAMPLED_NORMS[0] < norm < _SAMPLED_NORMS[1]:
            raise NoBracketError(
                f"noise_multiplier = {self.noise_multiplier!r} is too {'large' if norm < 1 else 'small'} to sample: a record's participations "
                f"have the norm {norm:.3g} in units of the noise; method='bound' needs no draws"
            )
        return Account(rounds, participations, epochs, noise, side)


def _known_rounds(norm, question, target):
    """k = t: a Gaussian mechanism of this sensitivity, in units of the noise."""
    if question == "epsilon":
        value = gaussian.epsilon(norm, target)
        return Bracket(value * (1 - 1e-11), value * (1 + 1e-11), "closed form")
    value, upper = gaussian.log_delta(norm * (1 - 1e-12), target), lognormal_sum.log_ceiling(norm**2, target)
    lower = math.exp(value - gaussian.TAIL_ERROR * (1 + abs(value)))
    upper = max(math.exp(upper), lognormal_sum.FLOOR)
    return Bracket(min(lower, upper), upper, "closed form")


def _as_asked(method, found):
    return UpperBound(found.upper, found.method) if method == "bound" else found
