"""Factors of the contour integral for pairs in pieces: Gauss-Legendre rules on panels.

The integrand of a folded pair ends in the middle of its mass, where the trapezoid rule would miss it by much. So the axis, or
half of it, is cut into panels, and each panel's rule is bounded on ellipses around it, in which the integrand is analytic.
Loss 0 is a node of its own: its mass stays in the transform at all frequencies, and is gone after enough rounds.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.log_space import EPS, log_sum_exp
from .._base.validate import Direction
from ..mixtures import Atoms, DisjointUnion, Folded, TwoSided
from ..results import NoBracketError
from .contour_bounds import Between, Decay
from .contour_nodes import BLOCK, Family, Nodes
from .contour_quadrature import NEGLIGIBLE, log_tails
from .two_sided_nodes import TwoSidedFamily, TwoSidedMoments

_POINTS = 16
_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(_POINTS)
# Ellipses with foci at the ends of [-1, 1]: sum of both semi-axes, the axes, and the log of what the rule gains on each.
_SIZES = np.array([1.5, 2.0, 3.0, 4.5, 7.0, 11.0])[:, None]
_ALONG, _ACROSS = (_SIZES + 1 / _SIZES) / 2, (_SIZES - 1 / _SIZES) / 2
_GAIN = 2 * _POINTS * np.log(_SIZES) + np.log1p(-(_SIZES**-2)) - math.log(64 / 15)
_FINE = 1.2  # how many panels are tried first
_HALF_LINE = 10.0  # e^-50 of a Gaussian lies beyond
_COARSE, _GRID = 120, 400  # places that panels are chosen by, and cells of the bound on high frequencies
_MOST_PANELS = 300  # of a piece


class PiecesFamily:
    """A `DisjointUnion` that faces its direction, `rounds` times, with what `Family` says about one mixture. Tilts are positive."""

    negative_tilts = False

    def __init__(self, union: DisjointUnion, rounds: int, direction: Direction):
        self.rounds, self.sign = np.array([float(rounds)]), 1  # the errors of weights count in both directions
        self.log_error = np.zeros(1)  # it is part of each piece's own
        self.pieces, at_zero = [], []
        for (weight, pair), error in zip(union.pieces, union.weight_errors):
            log_weight = math.log(weight)
            if isinstance(pair, Atoms):
                raise NoBracketError("the transform of a law of atoms does not decay: it is the lattice's")
            if isinstance(pair, TwoSided):
                self.pieces.append(_Piece(TwoSidedFamily(pair, 1), log_weight, error))
            elif isinstance(pair, Folded):
                self.pieces += [_Piece(Family([pair.mixture], [1], sign), log_weight, error, pair.middle) for sign in (1, -1)]
                at_zero.append(log_weight + pair.log_at_zero)
            else:
                self.pieces.append(_Piece(Family([pair], [1], pair.orientation(direction)), log_weight, error))
        self.log_at_zero = float(np.logaddexp.reduce(at_zero, initial=-math.inf))
        self._coarse_reach = -1.0

    def coarse(self, c):
        """(K, K', K'') at tilt c, good to a few digits: for choosing c."""
        if c > self._coarse_reach:
            self._coarse_reach = 4 * c if c >= 1 else 2 * c
            panels = [_Panels(piece, _edges(piece.survey(0.0, 0.0, self._coarse_reach), 0.0, 1.0)) for piece in self.pieces]
            self._coarse = _joined(panels, self.log_at_zero)[1:3]
        base, loss = self._coarse
        weights = base + c * loss
        moment = float(log_sum_exp(weights))
        weights = np.exp(weights - moment)
        mean = float(weights @ loss)
        return tuple((np.array([moment, mean, float(weights @ (loss - mean) ** 2)]) * self.rounds).tolist())


class _Piece:
    """One piece: a family of one row, the log of its weight, the relative error of that, and where the piece begins."""

    def __init__(self, family, log_weight, weight_error, start=-math.inf):
        self.family, self.log_weight, self.start = family, log_weight, start
        self.weight_error = weight_error + 4 * EPS + float(family.log_error[0])

    def survey(self, c, c_low, c_high, log_moment=math.inf):
        """What panels at tilt c are chosen by, on a window that serves tilts from c_low to c_high.

        log_moment : that of the union at tilt c, about; where the weight is far below it fewer digits are needed.
        """
        low, high = self.family.window(c_low, c_high)
        if self.start > -math.inf:
            low, high = self.start, max(high, self.start + _HALF_LINE)
        u = np.linspace(low, high, _COARSE)
        base, loss, means = self.family.evaluate(u)
        needed = 1.0
        if log_moment < math.inf:
            needed = np.clip(1 + (base + c * loss + self.log_weight - log_moment)[0] / NEGLIGIBLE, 0.2, 1.2)
        variance = np.maximum.reduce(self.family.variances_on(means, means))[0]
        return u, needed * (2.1 * np.sqrt(variance) + 0.75), needed * 0.45 * sum(means)[0]


def _edges(survey, frequency, fine):
    """Edges of panels for frequencies up to about this one, in number proportional to `fine`."""
    u, still, turning = survey
    # Panels per unit: where the ratio turns and the Gaussian does, and where the phase does.
    rate = 0.5 * fine * (still + frequency * turning)
    position = np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(u))])
    count = math.ceil(position[-1])
    if count > _MOST_PANELS:
        raise NoBracketError(f"the contour needs {count} panels in u")
    return np.interp(np.linspace(0.0, position[-1], count + 1), position, u)


class _Panels:
    """Panels of one piece: nodes, and bounds on what their rules miss."""

    def __init__(self, piece, edges):
        self.piece, self.family, self.edges = piece, piece.family, edges
        self.middle, self.half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        self.u = (self.middle[:, None] + self.half[:, None] * _PLACES).ravel()
        density, self.loss, self.means = self.family.evaluate(self.u)
        # Of the edges, too, relative to the panel, and of the weights.
        self.edge_error = np.repeat(EPS * (16 + (np.abs(edges).max() + 1) / self.half), _POINTS)
        self.density = density[0]
        self.base = self.density + np.log(self.half[:, None] * _WEIGHTS).ravel() + piece.log_weight
        self._centres = self._ends = None

    def rounding(self):
        """Bounds on the rounding errors of (log weight, loss) at the nodes."""
        first, second = self.family.rounding(self.u, self.density[None], self.loss, self.means)
        return first[0] + self.edge_error + self.piece.weight_error, second[0]

    def bounds(self, c):
        """(logs of what each panel's rule misses at most, on each ellipse, at frequency 0; what a frequency adds to it).

        On an ellipse the log of the real weight w exceeds that in the middle by at most |t (log w)'| + t^2/2 sup (log w)'',
        t along the axis, and off the axis the integrand exceeds w as `Family.lines` says.
        """
        family, reach = self.family, self.half * _ALONG
        if self._centres is None:
            self._centres = family.evaluate(self.middle)
            ends = [family.evaluate((self.middle + side * reach).ravel())[2] for side in (-1, 1)]
            self._ends = [tuple(mean.reshape(1, *reach.shape) for mean in means) for means in ends]
        base, loss, means = self._centres
        lowest, highest = family.between(*self._ends)
        variances = family.variances_on(highest, lowest)
        drift = np.abs(family.drift(c, self.middle, means))
        second = (family.rise(c, variances) - 1)[0]
        most = np.where((second < 0) & (drift < -second * reach), drift / np.maximum(-second, 1e-300), reach)
        along = drift * most + second * most * most / 2
        across = self.half * _ACROSS
        serves = across * across * np.maximum.reduce(variances)[0] <= 1.0  # no zero of the ratio
        more, turn = (part[0] for part in family.off_axis(c, np.where(serves, across, 0.0), highest, variances))
        log_miss = (base + c * loss)[0] + along + more + np.log(self.half) + self.piece.log_weight - _GAIN
        return np.where(serves, log_miss, math.inf), turn

    def log_outside(self, c, log_moment):
        """log of a bound on the mass beyond both ends of the panels."""
        ends = self.edges[[0, -1]]
        base, loss, means = self.family.evaluate(ends)
        left, right = log_tails(self.family, c, ends, base + c * loss, means, log_moment - self.piece.log_weight - NEGLIGIBLE)
        if self.piece.start > -math.inf:
            return self.piece.log_weight + float(right[0])
        return self.piece.log_weight + float(np.logaddexp(left, right)[0])


def _joined(panels, log_at_zero):
    """(u, log weights, losses) of all panels, and of loss 0 as the last one."""
    parts = [(p.u, p.base, p.loss[0]) for p in panels]
    if log_at_zero > -math.inf:
        parts.append((np.zeros(1), np.array([log_at_zero]), np.zeros(1)))
    return tuple(np.concatenate(column) for column in zip(*parts))


def panels_for(family, c, c_low, c_high, frequency):
    """Nodes of a `PiecesFamily`, as `contour_nodes.nodes_for`."""
    log_moment = family.coarse(c)[0] / family.rounds[0]
    surveys = [piece.survey(c, c_low, c_high, log_moment) for piece in family.pieces]
    fine = _FINE
    for _ in range(8):
        nodes = PanelNodes(family, c, [_Panels(piece, _edges(survey, frequency, fine)) for piece, survey in zip(family.pieces, surveys)])
        excess = nodes.quadrature.log_excess(frequency)
        if excess < 0:
            return nodes
        # Half as long panels gain 22 in the logarithm where nothing else is in the way.
        fine *= min(max(2.0 ** (excess / 20), 1.1), 3.0)
    raise NoBracketError(f"the contour needs more than {len(nodes.u)} nodes in u")


class PanelNodes(Nodes):
    """As `Nodes`, on panels."""

    def __init__(self, family, c, panels):
        self.family, self.c, self.step, self.panels, self.rounds = family, c, 1.0, panels, family.rounds
        self.u, base, loss = _joined(panels, family.log_at_zero)
        self.base, self.loss = base[None], loss[None]
        self._weigh()
        self.log_floor = float(self.rounds[0] * (family.log_at_zero - self.log_moment[0]))
        # The panel of each node that counts; loss 0 is in none.
        count = sum(len(p.half) for p in panels)
        of = np.append(np.repeat(np.arange(count), _POINTS), count)
        self.panel = of[: len(self.u)][self.alive]
        self.quadrature = PanelQuadrature(self)

    def _errors(self):
        parts = [p.rounding() for p in self.panels]
        if self.family.log_at_zero > -math.inf:
            parts.append((np.array([max(p.piece.weight_error for p in self.panels)]), np.zeros(1)))
        return tuple(np.concatenate(column)[self.alive][None] for column in zip(*parts))


class PiecesMoments(TwoSidedMoments):
    """The Renyi divergences of a pair in pieces in one direction."""

    def __init__(self, union: DisjointUnion, direction: Direction):
        self.family = PiecesFamily(union, 1, direction)

    def _nodes(self, c):
        return panels_for(self.family, c, c, c, 0.0)


class PanelQuadrature:
    """What the rules on the panels miss, and the mass outside of them."""

    def __init__(self, nodes):
        self.nodes, self.c, self._known = nodes, nodes.c, {}

    def _parts(self, c):
        if c not in self._known:
            nodes = self.nodes
            log_moment = float(log_sum_exp(nodes.base[0] + c * nodes.loss[0]))
            misses, turns = (np.concatenate(column, axis=1) for column in zip(*(p.bounds(c) for p in nodes.panels)))
            outside = float(np.logaddexp.reduce([p.log_outside(c, log_moment) for p in nodes.panels]))
            self._known = {tilt: parts for tilt, parts in self._known.items() if tilt == self.c}
            self._known[c] = misses, turns, outside, log_moment
        return self._known[c]

    def misses(self, frequency, c=None):
        """(bound on what each panel's rule misses at frequencies up to this one, on what lies outside), over M(c)."""
        misses, turns, outside, log_moment = self._parts(self.c if c is None else c)
        logs = (misses + frequency * turns if frequency else misses).min(axis=0)
        return np.exp(np.minimum(logs - log_moment, 600.0)), math.exp(min(outside - log_moment, 600.0))

    def on_axis(self, frequency):
        """The panels lie on the axis."""
        return True

    def error(self, frequency, c=None):
        """Bound on |computed - true| of M(c + iy) for 0 <= y <= frequency, over M(c), shape (1,)."""
        misses, outside = self.misses(frequency, c)
        # The nodes dropped from the sums weigh less than 1e-19 of the whole.
        return np.array([float(misses.sum()) + outside + 1e-19])

    def log_excess(self, frequency):
        """log of the error up to this frequency, all rounds together, over what is good enough."""
        error = float(self.nodes.rounds @ (self.error(frequency) - 1e-17))
        return math.log(error / 1e-14) if error > 0 else -math.inf

    def log_moment_bound(self, c):
        """Upper bound on log E exp(c L) of all rounds for another tilt c."""
        error = self.error(0.0, c)
        if not error[0] < 0.5:
            return math.inf
        return float(self.nodes.rounds @ (self._parts(c)[-1] - np.log1p(-error) + self.nodes.rounding(c)))


class PanelDecay(Between):
    """Bounds on |phi| on panels, as `Decay` gives them on the nodes of the trapezoid rule."""

    def __init__(self, nodes):
        self.nodes, self.c = nodes, nodes.c

    def constants(self, aim):
        """(V, rest, far) as `Decay.constants`: loss 0 is in the rest, and every piece has its share of what is left of the aim."""
        none = np.zeros(1), np.ones(1), np.full(1, math.inf)
        at_zero = math.exp(self.nodes.family.log_at_zero - self.nodes.log_moment[0])
        left = aim - at_zero
        if not left > 0:
            return none
        variation, rest, share = np.zeros(1), np.full(1, at_zero), left / len(self.nodes.panels)
        for panels, mass in zip(self.nodes.panels, self._masses()):
            if mass < share / 2:
                rest += mass
                continue
            more, missing, far = Decay(_Grid(panels, self.nodes)).constants(share)
            if not far[0] < math.inf:
                return none
            variation, rest = variation + more, rest + missing
        return variation, rest, variation / (aim - rest)

    def _masses(self):
        """Bounds on the masses of the pieces, over those of all."""
        edges = np.cumsum([0, *(len(p.half) for p in self.nodes.panels)])
        masses = self._panel_masses()
        outside = self.nodes.quadrature.misses(0.0)[1]
        return [float(masses[low:high].sum()) + outside for low, high in zip(edges[:-1], edges[1:])]

    def _panel_masses(self):
        nodes = self.nodes
        count = sum(len(p.half) for p in nodes.panels)
        return np.bincount(nodes.panel, nodes.weights[0], minlength=count + 1)[:count] + nodes.quadrature.misses(0.0)[0] + 1e-19

    def modulus_bound(self, y):
        """Upper bounds on |phi(y)|, y increasing: of each panel what its rule misses, or the whole mass where that is less."""
        nodes, quadrature = self.nodes, self.nodes.quadrature
        weights, loss = nodes.weights[0], nodes.centred[0]
        mass, start, bound = self._panel_masses(), 0, np.empty((1, len(y)))
        while start < len(y):
            stop = int(np.searchsorted(y, 2 * y[start], side="right"))
            stop = min(stop, start + max(1, BLOCK // len(loss)))
            misses, outside = quadrature.misses(float(y[stop - 1]))
            kept = np.append(misses < mass, True)[nodes.panel]
            phase = y[start:stop, None] * loss[kept]
            sums = np.hypot(np.cos(phase) @ weights[kept], np.sin(phase) @ weights[kept])
            rounding = nodes.characteristic_rounding(y[start:stop], 2.0)[0]
            bound[0, start:stop] = sums + float(np.minimum(misses, mass).sum()) + outside + 1e-19 + rounding
            start = stop
        return np.minimum(bound, 1.0)


class _Grid:
    """Equal cells on the panels of one piece, for `Decay.constants`: weights over those of all pieces."""

    def __init__(self, panels, nodes):
        self.family, self.c, self.quadrature = panels.family, nodes.c, self
        self.u = np.linspace(panels.edges[0], panels.edges[-1], _GRID + 1)
        self.step = float(self.u[1] - self.u[0])
        self.base, self.loss, self.means = self.family.evaluate(self.u)
        self.log_moment = nodes.log_moment - panels.piece.log_weight
        self.alive = np.ones(len(self.u), bool)
        self._outside = math.exp(min(panels.log_outside(self.c, float(nodes.log_moment[0])) - float(nodes.log_moment[0]), 600.0))

    def share_outside(self):
        """Bound on the share of the mass outside the panels."""
        return np.array([self._outside])
