"""The mechanism `BallsInBins`: correlated noise, where every record joins one random batch in each epoch.

It knows its Gram matrix and which accountant was asked for; `exact`, `montecarlo`
and `certified` do the rest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from .. import balls_in_bins, mixtures
from .._base import validate as check
from .._base.validate import Direction
from ..balls_in_bins import certified, exact, loss_laws, tuple_sampler
from ..balls_in_bins.gram import gram, gram_upper
from ..matrices import Encoder
from ..results import Bracket, Certificate, Estimate, NoBracketError, UpperEnd, _says_adjacency
from .sampling_request import FAILURE, SamplingRequest

Method = Literal["auto", "exact", "estimate", "certificate"]

METHODS = ("auto", "exact", "estimate", "certificate")
# Norm of a mode in units of the noise: beyond it privacy losses are in the thousands.
_HOPELESS = 100.0


@dataclass(frozen=True)
class BallsInBins:
    """A matrix mechanism with balls-in-bins batches: releases C x + z [N-3.1], [N-3.2].

    Every record picks one of the b batches of an epoch at random, once, and takes part in that batch in every epoch.

    Parameters
    ----------
    encoder : C, made by `dplib.matrices`, with batches_per_epoch * epochs columns (rounds).
    noise_multiplier : sigma > 0, standard deviation of z over the clip norm (*not* over a column norm of C).
    batches_per_epoch : b, from 1 to 8192.
    epochs : E >= 1.
    non_adaptive : False for the modes of |C|, valid for adaptive training. True for those of C
        itself, which may have entries of both signs: valid only where no contribution depends on
        what was released before, and only if no entry of C^T C is below 0 [N-K].

    Guarantee: a mixture of b shifted Gaussians against the unshifted one dominates every such run, in both
    directions, for adding, removing or zeroing out one record [N-3.2]. What `delta` and `epsilon` return
    depends on the method:

        "exact"        a Bracket, without sampling; where the modes are equal (b = 1), or orthogonal
                       and of equal norm (C = I) [A-16]
        "estimate"     an Estimate from lines [A-17]: not a guarantee
        "certificate"  a Certificate: an upper bound that fails with a stated probability [A-15]
        "auto"         exact where it exists, else an estimate

    Raises ValueError or TypeError on bad input. Cost: the Gram matrix O(n b) for Toeplitz encoders; then
    tenths of a second for an estimate, seconds for a certificate, for any number of rounds and any delta.

    >>> from dplib import BallsInBins, matrices
    >>> encoder = matrices.optimal_counting(64, bands=4)
    >>> training = BallsInBins(encoder, noise_multiplier=6.0, batches_per_epoch=16, epochs=4)
    >>> guess = training.epsilon(delta=1e-5)
    >>> print(f"about {guess.value:.1f}: an {type(guess).__name__}, no guarantee")
    about 0.7: an Estimate, no guarantee
    >>> independent = BallsInBins(matrices.identity(64), noise_multiplier=6.0, batches_per_epoch=16, epochs=4)
    >>> type(independent.epsilon(delta=1e-5)).__name__
    'Bracket'
    """

    encoder: Encoder
    noise_multiplier: float
    batches_per_epoch: int
    epochs: int
    non_adaptive: bool = False
    _gram: np.ndarray = field(init=False, repr=False, compare=False)
    _adjacency = "add-remove or zero-out"  # of its answers

    def __post_init__(self):
        check.noise_multiplier(self.noise_multiplier)
        # Checks the other arguments, and is needed by everything.
        object.__setattr__(self, "_gram", gram(*self._scheme))

    @property
    def _scheme(self):
        return self.encoder, self.batches_per_epoch, self.epochs, self.non_adaptive

    def gram(self) -> np.ndarray:
        """Inner products of the modes at noise multiplier 1, shape (batches_per_epoch, batches_per_epoch)."""
        return self._gram.copy()

    @_says_adjacency
    def delta(
        self, epsilon: float, direction: Direction = "both", method: Method = "auto", *, seed: int = 0,
        samples: int | None = None, failure_probability: float | None = None,
    ) -> Bracket | Estimate | Certificate:
        """delta at `epsilon` >= 0: a Bracket, an Estimate or a Certificate (see the class).

        direction : "remove", "add" or "both" (the larger: remove [C-9m]).
        method : "auto", "exact", "estimate" or "certificate".
        seed : of the draws, a whole number at least 0; the same seed gives the same answer.
        samples : lines of an estimate (None: until its standard error is 1%, or 65,536; its `method` says where they
            were too few), or tuples of a certificate (None: 2^17).
        failure_probability : of a certificate, from 1e-300 to below 1. None: 1e-9, or a tenth of delta where that is less. The
            certificate proves one claim, "delta is at most ...", if the claim was fixed before the draws [N-2.1].

        Raises ValueError or TypeError on bad input, also where method="exact" has no exact accountant, or where
        the samples are too few for a certificate; NoBracketError where no useful bound can be computed.
        """
        epsilon = check.epsilon(epsilon)
        ask = _Request(direction, method, seed, samples, failure_probability)
        gram = self._scaled(self._gram)
        if (found := ask.exact(exact.bracket, gram, epsilon)) is not None:
            return found
        if method != "certificate":
            return balls_in_bins.estimate(gram, epsilon, direction, samples=ask.samples, seed=ask.seed)
        failure = ask.failure_probability
        if failure is None:
            rough = balls_in_bins.estimate(gram, epsilon, direction, relative_error=0.1, seed=ask.seed)
            failure = min(FAILURE, rough.value / 10)
        with _naming_the_noise(self):
            return balls_in_bins.certify(self._upper_gram(), epsilon, direction, **ask.sampling(failure))

    @_says_adjacency
    def epsilon(
        self, delta: float, direction: Direction = "both", method: Method = "auto", *, seed: int = 0,
        samples: int | None = None, failure_probability: float | None = None,
    ) -> Bracket | Estimate | Certificate:
        """The smallest epsilon >= 0 at `delta` in (0, 1), from 1e-290 on by the exact accountant: a Bracket, an Estimate or a Certificate (see the class).

        Arguments and errors as for `delta`. A certificate is the smallest of a few candidates at which
        delta - failure_probability was certified, each with fresh samples and its part of the failure probability. A
        run that depends on it is (epsilon, delta)-DP, the search included: its failures are paid for out of delta
        [N-2.1s]. failure_probability must be below delta, and is min(1e-9, delta / 1000) where none is given.
        """
        delta = check.delta(delta)
        ask = _Request(direction, method, seed, samples, failure_probability)
        failure = ask.failure_for(delta)
        gram = self._scaled(self._gram)
        if (found := ask.exact(exact.epsilon_bracket, gram, delta)) is not None:
            return found
        if method != "certificate":
            return balls_in_bins.estimate_epsilon(gram, delta, direction, samples=ask.samples, seed=ask.seed)
        with _naming_the_noise(self):
            return certified.smallest_epsilon(self._upper_gram(), delta, ask.side, **ask.sampling(failure))

    def _relations(self):
        """As `compose` asks for them; ValueError where the bins have no exact accountant."""
        if exact.kind(self._gram) is None:
            raise ValueError(
                "mechanisms must have balls in bins with an exact accountant (C = I, or one batch); "
                f"{self!r} is accounted for by sampling, as a whole"
            )
        return [(self._adjacency, 1, 0)]

    def _laws(self):
        """([(pair above, 1)], [(pair below, 1)]) of all rounds together, to compose with other phases [A-25]."""
        norm, sigma = float(self._gram.max()), float(self.noise_multiplier)
        if exact.kind(self._gram) == "independent":
            made = loss_laws.atoms(len(self._gram), norm / sigma / sigma, sigma)
            return tuple([(mixtures.DisjointUnion([(1.0, pair)]), 1)] for pair in made)
        # The larger the modes, the larger delta [M-K]: entries of the Gram matrix are good to a part in a thousand million.
        return tuple([(mixtures.Mixture(np.array([math.sqrt(norm) * share]), np.ones(1), sigma), 1)] for share in (1 + 1e-9, 1 - 1e-9))

    def release(
        self, epsilon: float, delta: float, *, threshold: float | None = None,
        most_samples: int = balls_in_bins.MOST_SAMPLES, seed: int = 1,
    ) -> balls_in_bins.Release:
        """Estimate-Verify-Release for this mechanism [N-2.1]: arguments and answer of `montecarlo.release`."""
        table = self._scaled(self._gram)
        return balls_in_bins.release(
            table, epsilon, delta, threshold=threshold, most_samples=most_samples, seed=seed
        )

    def certified(
        self, epsilon: float, delta: float, direction: Direction = "both", *, seed: int = 0,
        samples: int | None = None, failure_probability: float | None = None,
    ) -> tuple[BallsInBins, Certificate]:
        """(the mechanism with the smallest noise that certifies the target, its Certificate of delta) [A-15].

        Arguments as for `epsilon`. The noise is the smallest of a few candidates, a little above the estimated one,
        that was certified with fresh samples; each candidate has its part of the failure probability. The upper end
        and the failure probability of the Certificate add up to at most `delta`: that is why running the mechanism
        is (epsilon, delta)-DP, the search included [N-2.1s]. An error is an outcome of the search, too: to search
        again with another seed or with more samples is to search twice, and each search has to get its part of delta.
        """
        ask = _Request(direction, "certificate", seed, samples, failure_probability)
        epsilon, delta = check.epsilon(epsilon), check.delta(delta)
        sampling = ask.sampling(ask.failure_for(delta))
        noise, certificate = certified.smallest_noise(gram_upper(*self._scheme), epsilon, delta, ask.side, **sampling)
        return dataclasses.replace(self, noise_multiplier=UpperEnd(noise)), certificate

    def _calibrated(self, epsilon, delta, direction, method, **sampling):
        """What `calibrate` returns for this mechanism; sampling : the other arguments of `certified`."""
        if method == "certificate":
            return self.certified(epsilon, delta, direction, **sampling)[0]
        ask = _Request(direction, method, **sampling)
        if method != "estimate" and exact.kind(self._gram) is not None:
            noise = UpperEnd(exact.noise_multiplier(self._gram, epsilon, delta, ask.side))
        else:
            ask.refuse_exact()
            noise = balls_in_bins.estimate_noise(
                self._gram, epsilon, delta, direction, samples=ask.samples, seed=ask.seed
            ).value
        return dataclasses.replace(self, noise_multiplier=noise)

    def _upper_gram(self):
        return self._scaled(gram_upper(*self._scheme))

    def _scaled(self, gram):
        if _longest(self) > _HOPELESS:
            raise NoBracketError(
                f"noise_multiplier = {self.noise_multiplier!r} is too small for any guarantee: the largest mode has "
                f"the norm {_longest(self):.3g} in units of the noise"
            )
        return gram / self.noise_multiplier / self.noise_multiplier


def _longest(mechanism):
    """The norm of the largest mode in units of the noise."""
    return math.sqrt(float(mechanism._gram.max())) / mechanism.noise_multiplier


@contextlib.contextmanager
def _naming_the_noise(mechanism):
    """Modes that are too long are refused in the words of `BallsInBins`."""
    try:
        yield
    except tuple_sampler.OutOfRange:
        raise ValueError(
            f"noise_multiplier must be larger for a certificate in double precision; got {mechanism.noise_multiplier!r} "
            f"(the largest mode has the norm {_longest(mechanism):.3g} in units of the noise)"
        ) from None


class _Request(SamplingRequest):
    """A question to balls in bins, which have an exact accountant or not."""

    def __init__(self, direction, method, seed, samples, failure_probability):
        super().__init__(METHODS, direction, method, seed, samples, failure_probability)

    def sampling(self, failure_probability):
        """The arguments of every certificate."""
        return {
            "samples": self.samples or balls_in_bins.TUPLES,
            "failure_probability": failure_probability,
            "seed": self.seed,
        }

    def exact(self, question, gram, target):
        """The exact answer, or None where another method is to give it."""
        if self.method not in ("auto", "exact"):
            return None
        if exact.kind(gram) is None:
            self.refuse_exact()
            return None
        try:
            return question(gram, target, self.side)
        except NoBracketError:
            if self.method == "exact":
                raise
            return None

    def refuse_exact(self):
        if self.method == "exact":
            raise ValueError(
                "method must be 'auto', 'estimate' or 'certificate' for this encoder: an exact accountant exists only "
                "where the modes are all equal, or orthogonal and of equal norm (C = I); got 'exact'"
            )
