"""The matrix mechanism under Poisson sampling: by MMCC [M-4.3], Rényi divergences [A-28], or counting participations [M-few]."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .. import conditional
from .._base import validate as check
from .._base.validate import Direction
from ..matrices import Encoder
from ..results import UpperBound, _says_adjacency
from .matrix_bounds import RENYI, WHOLE, Bounds


@dataclass(frozen=True)
class MatrixMechanism:
    """A matrix mechanism under Poisson sampling: releases C x + z [M-0].

    Parameters
    ----------
    encoder : C, made by `dplib.matrices`; entries >= 0, rows released after the rounds that they use.
    noise_multiplier : sigma > 0, standard deviation of z over the clip norm (*not* over a column norm of C).
    sampling_probability : p in [0, 1], of each record in each round.
    min_separation : b >= 1, for cyclic Poisson sampling [M-D]. With b > 1 the records are split at random into b groups; group i
        may take part in the rounds i, i + b, i + 2 b, ..., in each with probability b p (at most 1). `MinSeparation` is
        the other scheme of this kind: every record pauses after each of its own rounds.
    tail_bound : "best" (the smallest of all), or one of MMCC: "published" [M-Alg2], "joint" [A-11], "aggregated" [A-12],
        "pooled" [A-13]; or without a tail bound: "few", participations counted [M-few], [M-once], or, for min_separation 1 and
        up to 65,536 rounds, "renyi": the Rényi divergence of a whole order up to 64, bounded round by round [A-28].
    tail_share : share of delta that pays for the bad event, in (0, 1). None: one half for "published", as in the
        source, else the better of two.
    round_entries_to : round entries up to multiples of this, as the source does; None: no such loss.

    Guarantee: an upper bound on epsilon and delta in each direction, for adaptive inputs [M-4.3], for
    adding, removing or zeroing out one record. The result's `method` names the bound. With "best" there is
    an answer at any noise and rate, never above P[N > m] + w H of one Gaussian, for any m [M-few]; less sampling
    never costs more [M-p]; and epsilon(delta(epsilon).upper) is at most epsilon (1 + 1e-6) for delta above 1e-12. For encoders with
    few bands "renyi" is mostly the smallest, often by half or more, but not where the noise is large or delta tiny (its orders end
    at 64); "best" leaves it out where rounds times bands^2 exceed 2^28.
    "published" is the conservative mode: of this book's bounds it uses neither [A-11] to [A-13] nor [A-28], [M-few], [M-once]. On its path are still [C-9m] (direction "both"), [A-10] (not with `round_entries_to`, which rounds entries as the source
    does), repairs of the source, and the composition of the rows: one lattice, the accountants, or convexity. Chapter 12 (where the bound loses) says more.
    The others use that, and "joint" [A-11], "aggregated" [A-12], "pooled" [A-13], "best" all; "few" only [M-few], [M-once], "renyi" only [A-28].
    Raises ValueError or TypeError on anything else, NoBracketError where a tail bound by itself is void.
    Cost: a budget of compositions, at most 4 for `epsilon` and about 20 for `delta`: up to 64 rounds mostly under
    a second, at most some seconds at any noise and rate. Toeplitz encoders and trees with 131,072 rounds take seconds;
    dense ones n^3, up to 4,096 rounds (n = 2,048: minutes), with a progress bar.

    >>> from dplib import MatrixMechanism, matrices
    >>> encoder = matrices.optimal_counting(64)
    >>> training = MatrixMechanism(encoder, noise_multiplier=16.0, sampling_probability=1 / 16)
    >>> spent = training.epsilon(delta=1e-5)
    >>> print(f"epsilon <= {spent.upper:.4f} by the tail bound {spent.method!r}")
    epsilon <= 1.0450 by the tail bound 'MMCC, aggregated tail bound'
    """

    encoder: Encoder
    noise_multiplier: float
    sampling_probability: float
    min_separation: int = 1
    tail_bound: str = "best"
    tail_share: float | None = None
    round_entries_to: float | None = None
    _adjacency = "add-remove or zero-out"  # of its answers
    _bound = ""  # its `epsilon` has one method, a bound: for `calibrate`

    def __post_init__(self):
        conditional.check_setting(
            self.encoder, self.noise_multiplier, self.sampling_probability, self.min_separation
        )
        check.choice("tail_bound", self.tail_bound, (*conditional.TAIL_BOUNDS, *WHOLE))
        if self.tail_bound == RENYI and self.min_separation != 1:
            raise ValueError(f"min_separation must be 1 for tail_bound='renyi'; got {self.min_separation!r}")
        if self.tail_share is not None:
            check.real("tail_share", self.tail_share, above=0, below=1)
        if self.round_entries_to is not None:
            check.real("round_entries_to", self.round_entries_to, above=0)

    @_says_adjacency
    def epsilon(self, delta: float, direction: Direction = "both") -> UpperBound:
        """Upper bound on epsilon at `delta` in (0, 1).

        direction : "remove", "add" or "both" (the larger: remove [C-9m]).
        """
        delta = check.delta(delta)
        return Bounds(self, check.direction(direction)).epsilon(delta)[0]

    @_says_adjacency
    def delta(self, epsilon: float, direction: Direction = "both") -> UpperBound:
        """Upper bound on delta at `epsilon` >= 0. Arguments as for `epsilon`."""
        epsilon = check.epsilon(epsilon)
        return Bounds(self, check.direction(direction)).delta(epsilon)

    def with_best_tail(self, delta: float, direction: Direction = "both") -> MatrixMechanism:
        """The same mechanism, fixed to the tail bound and share that give the smallest epsilon at `delta`.

        Its epsilon is a smooth function of the noise, and a single bound to compute.
        """
        delta = check.delta(delta)
        _, name, share = Bounds(self, check.direction(direction)).epsilon(delta)
        return replace(self, tail_bound=name, tail_share=share)
