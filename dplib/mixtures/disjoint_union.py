"""Pairs in pieces: one of several pairs, by a coin that the outcome shows, and the two halves of a replaced record [A-23], [A-24]."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from .._base import validate as check
from .._base.log_space import EPS
from .._base.validate import Direction
from .._base.weights import large_binomial
from .pair import Mixture
from .two_sided import TwoSided, two_sided

_SHORT = 1e-12  # how far a sum of weights may be from 1
MOST_RECORDS = 10**10  # of a dataset whose batches are cut


class Folded:
    """The worse of (P, Q) and (Q, P) at every loss: losses above 0 as from (P, Q), below 0 as from (Q, P), the rest at 0.

    mixture : a Mixture with sensitivities 0 and s > 0: P = (1 - q) N(0, sigma^2) + q N(s, sigma^2), Q = N(0, sigma^2).

    Its hockey-stick curve is the larger of the two curves at every alpha: that of (P, Q) from 1 on, that of (Q, P) below.
    Both directions are the same pair. Raises ValueError or TypeError on anything else.
    """

    is_symmetric = True
    log_floor = -math.inf  # of the loss

    def __init__(self, mixture: Mixture):
        if not isinstance(mixture, Mixture):
            raise TypeError(f"mixture must be a Mixture; got {mixture!r}")
        if len(mixture.sensitivities) != 2 or mixture.sensitivities[0] != 0:
            raise ValueError(f"mixture must have two sensitivities, the smaller one 0; got {mixture!r}")
        self.mixture = mixture

    def __repr__(self):
        return f"Folded({self.mixture!r})"

    @property
    def middle(self) -> float:
        """The standardised outcome with loss 0: half of the shift, whatever q is."""
        return float(self.mixture.shifts[1]) / 2

    @property
    def log_at_zero(self) -> float:
        """log of the mass of loss 0: what both halves leave, (1 - q) erf(s / sqrt(8) sigma)."""
        return self.mixture.log_floor + math.log(math.erf(self.middle / math.sqrt(2)))

    def facing(self, direction: Direction) -> Folded:
        """The pair itself: both directions are the same."""
        return self


class Atoms:
    """A pair that is known by its losses: finitely many, in either direction.

    remove, add : (losses, masses, infinite) each, with losses increasing, shape (n,), finite, their masses under the first law of the direction,
    shape (n,), at least 0, and the mass of an infinite loss, at least 0. Masses that stand for a bound need not add up to 1. noise_multiplier :
    of the pair that they stand for. Raises ValueError or TypeError on anything else.
    """

    is_symmetric = False
    log_floor = -math.inf  # of the loss: nothing is known of it
    participation = 1.0
    log_probability_error = 0.0

    def __init__(
        self, remove: tuple[np.ndarray, np.ndarray, float], add: tuple[np.ndarray, np.ndarray, float], noise_multiplier: float
    ):
        self.noise_multiplier = check.noise_multiplier(noise_multiplier)
        self._remove, self._add = _law("remove", remove), _law("add", add)

    def __repr__(self):
        return f"Atoms({len(self._remove[0])} and {len(self._add[0])} losses, noise_multiplier={self.noise_multiplier:g})"

    def law(self, direction: Direction) -> tuple[np.ndarray, np.ndarray, float]:
        """(losses, masses under the first law, mass of an infinite loss) of one direction."""
        return self._remove if direction == "remove" else self._add

    def facing(self, direction: Direction) -> Atoms:
        """The pair itself."""
        return self


def _law(name, law):
    if not isinstance(law, tuple) or len(law) != 3:
        raise TypeError(f"{name} must be (losses, masses, infinite); got {law!r}")
    losses, masses = check.vector("losses", law[0]), check.vector("masses", law[1], at_least=0)
    if len(losses) != len(masses) or not (np.diff(losses) > 0).all():
        raise ValueError(f"losses must increase and have one mass each; got {len(losses)} losses and {len(masses)} masses")
    return losses, masses, check.real("infinite", law[2], at_least=0, at_most=1)


class DisjointUnion:
    """One of several pairs, by a coin that has the same law in both worlds and that the outcome shows.

    Parameters
    ----------
    pieces : (weight, pair) each, a pair being a Mixture, TwoSided, Folded or Atoms, all with one noise multiplier. Weights are
        above 0 and sum to 1, within 1e-12. weight_error : bound on the relative error of each weight, at least 0.

    H_alpha is the weighted sum of the pieces' own. *Remove* and *add* are those of the pieces. Contour and lattice
    account for such pairs, with Atoms the lattice alone. Raises ValueError or TypeError on anything else.
    """

    is_trivial = False
    is_gaussian = False

    def __init__(self, pieces: Iterable[tuple[float, Mixture | TwoSided | Folded | Atoms]], weight_error: float = 0.0):
        try:
            self.pieces = tuple((weight, pair) for weight, pair in pieces)
        except (TypeError, ValueError):
            raise TypeError(f"pieces must be (weight, pair) each; got {pieces!r}") from None
        if not self.pieces:
            raise ValueError("pieces must not be empty")
        self.weight_error = check.real("weight_error", weight_error, at_least=0, at_most=1e-6)
        for weight, pair in self.pieces:
            check.real("weight", weight, above=0, at_most=1)
            if not isinstance(pair, (Mixture, TwoSided, Folded, Atoms)):
                raise TypeError(f"pieces must hold Mixture, TwoSided, Folded or Atoms objects; got {pair!r}")
        if abs(math.fsum(self.weights) - 1) > _SHORT:
            raise ValueError(f"the weights of pieces must sum to 1; got {math.fsum(self.weights)!r}")
        if len({mixture.noise_multiplier for mixture in self._mixtures}) > 1:
            raise ValueError("noise_multiplier must be equal in all pieces")

    def __repr__(self):
        return f"DisjointUnion([{', '.join(f'({weight:g}, {pair!r})' for weight, pair in self.pieces)}])"

    @property
    def weights(self) -> list[float]:
        """The probabilities of the pieces."""
        return [weight for weight, _ in self.pieces]

    @property
    def weight_errors(self) -> list[float]:
        """Bounds on the relative error of each weight: all weights sum to 1, so the heaviest is as wrong as all others together."""
        most = max(self.weights)
        rest = self.weight_error * (1 - most) / most + abs(math.fsum(self.weights) - 1) + 4 * EPS
        return [min(self.weight_error, rest) if weight == most else self.weight_error for weight in self.weights]

    @property
    def _mixtures(self):
        # A Folded's mixture; of both sides the pair itself answers as a mixture does.
        return [pair.mixture if isinstance(pair, Folded) else pair for _, pair in self.pieces]

    @property
    def noise_multiplier(self) -> float:
        """Of all pieces."""
        return self._mixtures[0].noise_multiplier

    @property
    def is_symmetric(self) -> bool:
        """Whether both directions cost the same."""
        return all(pair.is_symmetric for _, pair in self.pieces)

    @property
    def remove_is_larger(self) -> bool:
        """Whether remove is at least add in every composition: every piece is one-sided [C-9m]."""
        return all(isinstance(pair, Mixture) for _, pair in self.pieces)

    @cached_property
    def log_floor(self) -> float:
        """Infimum of log(P/Q)."""
        return min(pair.log_floor for _, pair in self.pieces)

    @property
    def participation(self) -> float:
        """Probability of a sensitivity above 0."""
        return math.fsum(weight * mixture.participation for weight, mixture in zip(self.weights, self._mixtures))

    @property
    def log_probability_error(self) -> float:
        """Bound on the relative error of the weights and of the pieces' probabilities."""
        return self.weight_error + 4 * EPS + max(mixture.log_probability_error for mixture in self._mixtures)

    def unmoved(self, direction: Direction) -> tuple[float, float]:
        """(log of the probability of sensitivity 0 under the first law of the direction, under the second)."""
        ends = [mixture.unmoved(direction) for mixture in self._mixtures]
        first = math.log(math.fsum(weight * math.exp(log) for weight, (log, _) in zip(self.weights, ends)))
        # Piece by piece the smaller of both laws counts: of one-sided pieces the first law in remove, the second in add.
        return first, first if self.is_symmetric else min(log for _, log in ends)

    def facing(self, direction: Direction) -> DisjointUnion:
        """The pieces with the components that this direction sees."""
        return DisjointUnion([(weight, pair.facing(direction)) for weight, pair in self.pieces], self.weight_error)

    def laws(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(shifts, probabilities) of both laws of every piece, with the weight of the piece; atoms may be as far apart as can be."""
        known = [(w, mixture) for w, mixture in zip(self.weights, self._mixtures) if not isinstance(mixture, Atoms)]
        apart = [(np.array([math.inf]), np.array([w])) for w, mixture in zip(self.weights, self._mixtures) if isinstance(mixture, Atoms)]
        return apart + [(shifts, w * p) for w, mixture in known for shifts, p in mixture.laws()]


def replaced_in_batch(
    batch_size: int, dataset_size: int, noise_multiplier: float, adjacency: str = "substitution"
) -> Mixture | DisjointUnion:
    """One round with a batch of fixed size in which one record is another one, or zeroed out [A-23].

    batch_size : B, 1 <= B <= n. dataset_size : n >= 1, of both datasets. noise_multiplier : sigma > 0. adjacency : "substitution" or
    "zero-out". A batch of everything is a plain Gaussian, with sensitivity 2 or 1; else the pair is a `Folded` one.
    Raises ValueError or TypeError on anything else.
    """
    n = check.whole("dataset_size", dataset_size, at_least=1)
    b = check.whole("batch_size", batch_size, at_least=1, at_most=n)
    sigma = check.noise_multiplier(noise_multiplier)
    check.choice("adjacency", adjacency, ("substitution", "zero-out"))
    if b == n:
        return Mixture(np.array([2.0 if adjacency == "substitution" else 1.0]), np.ones(1), sigma)
    return DisjointUnion([(1.0, Folded(_sampled(b / n, 2.0, sigma)))])


def truncated_poisson(
    sampling_probability: float, dataset_size: int, largest_batch: int, noise_multiplier: float,
    adjacency: str = "add-remove",
) -> Mixture | TwoSided | DisjointUnion:
    """One round of Poisson sampling of which no more than a largest batch is kept, at random [A-24].

    sampling_probability : q in [0, 1]. dataset_size : n >= 1 records, the one that differs included, at most 1e10; for
    "add-remove" the larger dataset's. largest_batch : B >= 1. noise_multiplier : sigma > 0. adjacency : "add-remove",
    "substitution" or "zero-out", of one record.

    Where fewer than B others are sampled nothing is cut: the pair of Poisson sampling. Else the record is in the batch with
    probability r, and displaces another one there. B >= n is Poisson sampling itself.
    Raises ValueError or TypeError on anything else. Cost: at most some tenths of a second, at n = 1e10.

    >>> from dplib import accounting, mixtures
    >>> pair = mixtures.truncated_poisson(0.05, dataset_size=1000, largest_batch=60, noise_multiplier=1.0)
    >>> print(f"{accounting.delta(pair, epsilon=1.99).upper:.4g}")
    0.0001434
    """
    q = check.probability("sampling_probability", sampling_probability)
    n = check.whole("dataset_size", dataset_size, at_least=1, at_most=MOST_RECORDS)
    most = check.whole("largest_batch", largest_batch, at_least=1)
    sigma = check.noise_multiplier(noise_multiplier)
    check.choice("adjacency", adjacency, ("add-remove", "substitution", "zero-out"))
    one = _sampled(q, 1.0, sigma)
    whole = two_sided(one, one) if adjacency == "substitution" and q > 0 else one
    cut, uncut, chance, error = _truncation(q, n, most)
    if cut == 0:
        return whole
    displaced = _sampled(chance, 2.0, sigma)
    pieces = [(cut, displaced if adjacency == "add-remove" else Folded(displaced))]
    return DisjointUnion([(uncut, whole), *pieces] if uncut > 0 else pieces, error)


def _sampled(chance, sensitivity, sigma):
    return Mixture(np.array([0.0, sensitivity]), np.array([1 - chance, chance]), sigma)


def _truncation(q, n, most):
    """(p, 1 - p, r, relative error of both weights): p that at least `most` of the n - 1 others are sampled, and r that the record is kept then.

    Given s others the record is kept with probability q most / (s + 1), and q P[s of n - 1] / (s + 1) = P[s + 1 of n] / n.
    r is rounded up: the pair grows in it.
    """
    if most >= n or q == 0:
        return 0.0, 1.0, 0.0, 0.0
    if q == 1:
        return 1.0, 0.0, most / n, 0.0
    cut, uncut, error = _tails(n - 1, q, most)
    if cut == 0:  # below e^-1500: no delta that a float can hold sees it
        return 0.0, 1.0, 0.0, 0.0
    # Where the larger tail underflows, every term of the sum is at most q most / (most + 1).
    ratio = _tails(n, q, most + 1)[0] * most / (n * cut) * (1 + 4 * error + 16 * EPS) if cut > 1e-290 else math.inf
    return cut, uncut, min(ratio, q * most / (most + 1) * (1 + 8 * EPS)), error


def _tails(trials, q, least):
    """(P[Binomial >= least], P[< least], bound on the relative error of both)."""
    support, logs, _, error = large_binomial(trials, q)
    weights = np.exp(logs - logs.max())
    total = weights.sum()
    above = support >= least
    # The sum of almost all of them may come out above the sum of all.
    part = lambda chosen: min(float(weights[chosen].sum() / total), 1.0)
    return part(above), part(~above), 2 * error + 64 * EPS
