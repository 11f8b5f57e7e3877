"""One round of a pair in pieces on the lattice: the pieces' losses together, each with its weight."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from .._base.log_space import EPS
from ..mixtures import Atoms, DisjointUnion, Folded
from .lattice_round import Step

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_LEAST_WINDOW = 1e-3  # in u, of half a folded pair


def step_of(pair, rounds, direction, log_target, margin, epsilon=math.inf):
    """Where the loss of a pair lives, in one direction: a `Step`, or the steps of its pieces together."""
    kind = UnionStep if isinstance(pair, DisjointUnion) else Step
    return kind(pair, rounds, direction, log_target, margin, epsilon)


class _Half(Step):
    """Half a folded pair: the losses above 0 of (P, Q), direction "remove", or those below 0 of (Q, P), "add"."""

    def __init__(self, folded, rounds, direction, log_target, margin, epsilon):
        super().__init__(folded.mixture, rounds, direction, log_target, margin, epsilon)
        self.middle = self.u_low = folded.middle
        self.u_high = max(self.u_high, self.middle + _LEAST_WINDOW)
        loss = self.sign * float(self.mixture.log_ratio(np.array([self.u_high]))[0])
        beyond = self._log_tail(self.u_high, self.sign > 0)
        if self.sign > 0:
            self.low, self.high, self.log_low_tail, self.log_high_tail = 0.0, loss, -math.inf, beyond
        else:
            self.low, self.high, self.log_low_tail, self.log_high_tail = loss, 0.0, beyond, -math.inf

    def _clipped(self, u):
        return np.maximum(u, self.middle)

    @cached_property
    def rough(self):
        """As `Step.rough`, by a rule that sees the end in the middle of the mass: errors count in every round."""
        edges = np.linspace(self.u_low, self.u_high, math.ceil(2 * (self.u_high - self.u_low)) + 8)
        half = (edges[1:] - edges[:-1]) / 2
        u = (edges[:-1] + half)[:, None] + np.outer(half, _NODES)
        loss, base, _ = self._integrand(u.ravel())
        return loss, base + np.log(np.outer(half, _WEIGHTS)).ravel()


class _Atoms:
    """Finitely many losses, in one direction, as a `Step`."""

    ceiling, log_low_tail, high_tail_error = math.inf, -math.inf, 4 * EPS

    def __init__(self, pair, rounds, direction, log_target, margin, epsilon):
        losses, masses, infinite = pair.law(direction)
        kept = masses > 0
        with np.errstate(divide="ignore"):
            self.losses, self.log_masses, self.log_high_tail = losses[kept], np.log(masses[kept]), float(np.log(infinite))
        self.rough = self.losses, self.log_masses
        self.low, self.high, self.components = float(self.losses[0]), float(self.losses[-1]), 1
        self.centre = float(self.losses[self.log_masses.argmax()])
        below = np.cumsum(np.exp(self.log_masses))
        self.bulk = float(np.ptp(self.losses[np.searchsorted(below, [0.2 * below[-1], 0.8 * below[-1]])])) or self.high - self.low

    @property
    def reach(self):
        return min(1.0, max(abs(self.low), abs(self.high)))

    def cell(self, low, high):
        inside = (self.losses >= low) & (self.losses <= high)
        masses = np.exp(self.log_masses[inside])
        return float(masses.sum()), float(masses @ np.exp(-self.losses[inside]))

    def cut_below(self, loss):
        """Never asked: the floor of the loss is not known."""

    def weighted_nodes(self, h, offset, c):
        yield self.losses, self.log_masses + c * self.losses, np.ones(len(self.losses)), np.abs(self.log_masses)


class UnionStep:
    """A `DisjointUnion` in one direction, `rounds` times, as `Step`: a union of laws, and masses at loss 0."""

    def __init__(self, union, rounds, direction, log_target, margin, epsilon=math.inf):
        self.mixture, self.rounds = union, rounds
        self.pieces, self._log_at_zero = [], []
        for weight, pair in union.pieces:
            log_weight = math.log(weight)
            kinds = [(_Atoms if isinstance(pair, Atoms) else Step, direction)]
            if isinstance(pair, Folded):
                kinds = [(_Half, "remove"), (_Half, "add")]
            self.pieces += [(log_weight, kind(pair, rounds, side, log_target - log_weight, margin, epsilon)) for kind, side in kinds]
            if isinstance(pair, Folded):
                self._log_at_zero.append(log_weight + pair.log_at_zero)
        self._heaviest = max(self.pieces, key=lambda piece: piece[0])[1]

    def _ends(self, name):
        return [getattr(step, name) for _, step in self.pieces]

    @property
    def low(self):
        """The least loss of the window."""
        return min(self._ends("low"))

    @property
    def high(self):
        """The largest loss of the window."""
        return max(self._ends("high"))

    @property
    def log_high_tail(self):
        """log mass of the first law beyond the windows, on the high-loss side."""
        return float(np.logaddexp.reduce([log_weight + step.log_high_tail for log_weight, step in self.pieces]))

    @property
    def reach(self):
        """The largest |loss| of the window, at most 1."""
        return max(self._ends("reach"))

    @property
    def components(self):
        """How many terms the losses are summed from."""
        return sum(self._ends("components"))

    @property
    def bulk(self):
        """How far the loss moves over the bulk of the noise."""
        return min(self._ends("bulk"))

    @property
    def log_probability_error(self):
        """Of the weights of pieces and mixtures."""
        return self.mixture.log_probability_error

    @property
    def centre(self):
        """Where a good part of the losses may be."""
        return 0.0 if self._log_at_zero else self._heaviest.centre

    def cell(self, low, high):
        """As `Step.cell`."""
        at_zero = math.fsum(map(math.exp, self._log_at_zero)) if low <= 0 <= high else 0.0
        masses = [(log_weight, step.cell(low, high)) for log_weight, step in self.pieces]
        return tuple(at_zero + math.fsum(math.exp(log_weight) * mass[law] for log_weight, mass in masses) for law in (0, 1))

    def cut_below(self, loss):
        """Drop losses that cannot matter for epsilon >= 0 (add direction)."""
        for _, step in self.pieces:
            step.cut_below(loss)

    @cached_property
    def rough(self):
        """(losses, log masses) at a few thousand points of the windows: for choices, not for bounds."""
        rows = [(step.rough[0], log_weight + step.rough[1]) for log_weight, step in self.pieces]
        rows += [(np.zeros(1), np.array([log_mass])) for log_mass in self._log_at_zero]
        return tuple(np.concatenate(column) for column in zip(*rows))

    def weighted_nodes(self, h, offset, c):
        """As `Step.weighted_nodes`, of all pieces; loss 0 is a node of its own."""
        for log_weight, step in self.pieces:
            for loss, log_mass, width, terms in step.weighted_nodes(h, offset, c):
                yield loss, log_mass + log_weight, width, terms - log_weight
        for log_mass in self._log_at_zero:
            yield np.zeros(1), np.array([log_mass]), np.ones(1), np.array([-log_mass])
