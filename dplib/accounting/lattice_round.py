"""One round on the lattice: where its loss lives, and lattice laws above and below it."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import EPS, log_sum_exp
from ..gaussian import LOG_SQRT_2PI
from ..mixtures import TwoSided
from ..results import NoBracketError
from .lattice_tangents import repair

# Gauss-Legendre rules, and up to which r (1 + |u| + m + sqrt V) they are off by at most 2e-15,
# r half a panel, m and V the posterior mean and the bound on the variance of the shift.
_RULES = [(0.008, np.polynomial.legendre.leggauss(3)), (0.1, np.polynomial.legendre.leggauss(5))]
_RULES.append((math.inf, np.polynomial.legendre.leggauss(8)))
_NODES = 60_000  # held at once
_CUTS = 100_000  # half-lattice losses whose panels are held at once
_MOST_PANELS = 12_000_000  # times components
_MOST_ROUGH = 6_000
_TAIL_ERROR = 1e-13  # of the log of a sum of tails, relative
_FAR = 100.0  # from such u on the density of P is not summed from the loss: the terms would cancel
_MUCH = 0.03  # of the mass, in one cell: the lattice is placed at its barycentre


class Step:
    """One mixture in one direction, `rounds` times: where its loss lives.

    log_target, margin : losses above the window have probability e^(log_target - margin) at most in all rounds together,
    or, with `epsilon`, that much e^(loss - epsilon) times: what is counted as infinite costs no more than that.
    """

    def __init__(self, mixture, rounds, direction, log_target, margin=22.0, epsilon=math.inf):
        self.mixture, self.rounds = mixture, rounds
        self.sign = mixture.orientation(direction)
        # Tails: on the high-loss side `margin` below log delta, on the other below 1e-20.
        high = min(log_target, 0.0) - math.log(rounds) - margin
        if self.sign > 0:
            self.u_high, self.u_low = self._quantile(high, 1), self._quantile(-50.0, -1)
        else:
            self.u_low = float(special.ndtri_exp(high))
            self.u_high = float(-special.ndtri_exp(-50.0))
            if math.isfinite(mixture.log_floor):
                # The loss saturates at -log p_0; stop where nothing is left to gain.
                edge = mixture.inverse_log_ratio(
                    np.array([mixture.log_floor * (1 - 1e-12) + 1e-15])
                )[0]
                if math.isfinite(edge):
                    self.u_low = max(self.u_low, min(float(edge), -10.0))
        if epsilon < math.inf:
            self._shorten(high, epsilon)
        ends = mixture.log_ratio(np.array([self.u_low, self.u_high]))
        self.low, self.high = (ends if self.sign > 0 else -ends[::-1]).tolist()
        self.log_high_tail = self._log_tail(self.u_high if self.sign > 0 else self.u_low, True)
        self.log_low_tail = self._log_tail(self.u_low if self.sign > 0 else self.u_high, False)

    def _quantile(self, log_mass, side):
        """Some u beyond which P has at most e^log_mass, on the upper (side 1) or lower (-1) side; nearly the first."""
        shifts, log_p = self.mixture.shifts, self.mixture.log_probabilities
        # Beyond the last component's own quantile all components are below the mass, m times.
        share = np.minimum(log_mass - math.log(len(shifts)) - log_p, -1e-3)
        far = float(np.max(side * shifts - special.ndtri_exp(share)))
        near = float(np.min(side * shifts)) - 40.0
        for _ in range(40):
            if far - near < 1e-2:
                break
            middle = (near + far) / 2
            if self._log_tail(side * middle, side > 0) > log_mass:
                near = middle
            else:
                far = middle
        return side * far

    def _shorten(self, log_mass, epsilon):
        """Move the high end in: beyond it, probability times e^(epsilon - loss) is e^log_mass at most [A-29]."""
        loss = lambda u: self.sign * float(self.mixture.log_ratio(np.array([u]))[0])
        far = self.u_high if self.sign > 0 else self.u_low
        near = float(self.mixture.inverse_log_ratio(np.array([self.sign * epsilon]))[0])
        if loss(far) <= epsilon + 1 or not math.isfinite(near):
            return
        while abs(far - near) > 1e-2:
            middle = (near + far) / 2
            if self._log_tail(middle, self.sign > 0) - max(loss(middle) - epsilon, 0.0) > log_mass:
                near = middle
            else:
                far = middle
        if self.sign > 0:
            self.u_high = far
        else:
            self.u_low = far

    def _log_tail(self, u, high):
        """log mass of the first law beyond the window on its high- or low-loss side."""
        if self.sign < 0:
            return float(special.log_ndtr(u if high else -u))
        z = u - self.mixture.shifts
        return float(
            log_sum_exp(self.mixture.log_probabilities + special.log_ndtr(-z if high else z))
        )

    @property
    def high_tail_error(self):
        """Of `log_high_tail`: of the logarithms, and of the distances between shifts and the window's end."""
        size = -self.log_high_tail
        if size == math.inf:  # nothing lies there
            return 0.0
        u = self.u_high if self.sign > 0 else self.u_low
        apart = 8 * EPS * (abs(u) + float(np.abs(self.mixture.shifts).max()))
        return _TAIL_ERROR * (1 + size) + self.log_probability_error + apart * (2 + math.sqrt(2 * size))

    def cut_below(self, loss):
        """Drop losses that cannot matter for epsilon >= 0 (add direction)."""
        if loss > self.low:
            u = float(self.mixture.inverse_log_ratio(np.array([-loss * (1 + 1e-9)]))[0])
            if u > self.u_low:
                self.u_high = min(self.u_high, u)
                self.low = -float(self.mixture.log_ratio(np.array([self.u_high]))[0])
                self.log_low_tail = -math.inf

    @property
    def pieces(self):
        """(log of its weight, Step) of every piece: this one is whole."""
        return [(0.0, self)]

    @property
    def components(self):
        """How many terms a loss is summed from."""
        return len(self.mixture.shifts)

    @property
    def bulk(self):
        """How far the loss moves over the bulk of the noise."""
        return float(np.ptp(self.mixture.log_ratio(np.array([-1.0, 1.0]))))

    @property
    def log_probability_error(self):
        """Of the weights of the mixture."""
        return self.mixture.log_probability_error

    @property
    def ceiling(self):
        """No loss is above it; inf where there is no such loss."""
        return -self.mixture.log_floor * (1 + 4 * EPS) if self.sign < 0 else math.inf

    @property
    def reach(self):
        """The largest |loss| of the window, at most 1: small losses are summed with less rounding."""
        return min(1.0, max(abs(self.low), abs(self.high)))

    @cached_property
    def rough(self):
        """(losses, log masses) at a few thousand points of the window: for choices, not for bounds."""
        count = int(min(10 * (self.u_high - self.u_low) + 200, _MOST_ROUGH))
        u = np.linspace(self.u_low, self.u_high, count)
        loss, base, _ = self._integrand(u)
        return loss, base + math.log(u[1] - u[0])

    def _integrand(self, u):
        """(loss, log density of the first law, size of the terms that this sums) at u."""
        log_ratio = self.mixture.log_ratio(u)
        if self.sign > 0 and (self.u_high > _FAR or isinstance(self.mixture, TwoSided)):
            base = self.mixture.log_density(u)
            return log_ratio, base, np.abs(base)
        square = u * u / 2
        base = -LOG_SQRT_2PI - square
        if self.sign < 0:
            return -log_ratio, base, square
        base += log_ratio
        square += np.abs(log_ratio)
        return log_ratio, base, square

    def panels(self, h, offset):
        """Yield integration panels, in parts: (their edges, rate of the integrand on each).

        No lattice or half-lattice loss, and no bend, lies inside any of them.
        """
        first = math.ceil((self.low - offset) / (h / 2))
        last = math.floor((self.high - offset) / (h / 2))
        # The log of either density has slope at most |u| + m(u), m the derivative of the loss.
        coarse = np.linspace(self.u_low, self.u_high, 400)
        mean = self.mixture.steepest(coarse)
        bend = math.sqrt(max(self.mixture.variance_bound, 1.0))
        rate = 0.5 * (1 + np.abs(coarse) + mean) + 4 * bend
        position = np.concatenate(
            [[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(coarse))]
        )
        count = int(math.ceil(position[-1]))
        components = min(len(self.mixture.shifts), 40)
        if (count + last - first) * components > _MOST_PANELS:
            raise NoBracketError("the lattice needs too many integration panels")
        smooth = np.interp(np.linspace(0, position[-1], count + 1), position, coarse)
        start = self.u_low
        for low in range(0, last - first + 1, _CUTS):
            places = np.arange(low, min(low + _CUTS, last - first + 1))
            losses = offset + (h / 2) * (first + places if self.sign > 0 else last - places)
            cuts = self.mixture.inverse_log_ratio(self.sign * losses)
            end = self.u_high if places[-1] == last - first else min(cuts[-1], self.u_high)
            inside = (smooth > start) & (smooth < end)
            cuts = cuts[(cuts > start) & (cuts < end)]
            edges = np.concatenate([[start], smooth[inside], cuts, [end]])
            edges.sort(kind="stable")
            edges = edges[np.append(np.diff(edges) > 0, True)]
            if len(edges) > 1:
                right = edges[1:]
                knot = np.minimum(np.searchsorted(coarse, right), len(coarse) - 1)
                steep = mean[knot]
                if isinstance(self.mixture, TwoSided):  # steeper to the left, too: all cells that a panel touches
                    leftmost = np.minimum(np.maximum(np.searchsorted(coarse, edges[:-1], side="right"), 1), knot)
                    for back in range(1, int((knot - leftmost).max()) + 1):
                        steep = np.maximum(steep, mean[np.maximum(knot - back, leftmost)])
                sizes = np.maximum(np.abs(edges[:-1]), np.abs(right))
                yield edges, 1 + sizes + steep + bend
                start = end

    def weighted_nodes(self, h, offset, c):
        """(loss, log of e^{c loss} * density, weight, size of the terms summed) at the nodes, in chunks."""
        for edges, rate in self.panels(h, offset):
            middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
            rule = np.searchsorted([limit for limit, _ in _RULES], half * rate)
            for number, (_, (points, weights)) in enumerate(_RULES):
                chosen = np.flatnonzero(rule == number)
                size = _NODES // len(points)
                for start in range(0, len(chosen), size):
                    part = chosen[start : start + size, None]
                    loss, base, terms = self._integrand((middle[part] + half[part] * points).ravel())
                    yield loss, base + c * loss, (half[part] * weights).ravel(), terms

    @property
    def centre(self):
        """The loss where the noise is 0."""
        return self.sign * float(self.mixture.log_ratio(np.zeros(1))[0])

    def cell(self, low, high):
        """The masses of the losses between two under both laws, a difference of tails: for choices, not for bounds."""
        losses = np.array([low, high])
        u = self._clipped(self.mixture.inverse_log_ratio(losses if self.sign > 0 else -losses[::-1]))
        first, second = (weights @ np.diff(special.ndtr(u[:, None] - shifts), axis=0)[0] for shifts, weights in self.mixture.laws())
        return (first, second)[:: self.sign]

    def _clipped(self, u):
        return u


class Law:
    """Upper and lower lattice laws of one step, tilted: masses at offset + h * (first + i)."""

    def __init__(self, step, h, c):
        if not (1 + c) * h < 600:
            raise NoBracketError("the lattice is too coarse for its tilt")
        self.step, self.h, self.c = step, h, c
        self.offset = offset = _offset(step, h)
        self.first = math.floor((step.low - offset) / h) - 2
        size = math.ceil((step.high - offset) / h) + 3 - self.first
        self._integrate(size)
        self.log_infinite, self.beyond = -math.inf, []  # what counts as infinite: (log mass, loss) of its pieces
        for log_weight, piece in step.pieces:
            # Beyond the window, below: the window's end (upper law), nothing (lower law).
            self._add(self.upper, math.ceil((piece.low - offset) / h), log_weight + piece.log_low_tail)
            # Above: infinite (upper law), the window's end (lower law). The add loss never
            # exceeds -log p_0, so its tail goes to the lattice point above that.
            log_tail = log_weight + piece.log_high_tail + piece.high_tail_error
            if math.isfinite(piece.ceiling) and (at := math.ceil((piece.ceiling - offset) / h)) - self.first < size:
                self._add(self.upper, at, log_tail)
            else:
                self.log_infinite = float(np.logaddexp(self.log_infinite, log_tail))
                self.beyond.append((log_tail, piece.high))

    def _integrate(self, size):
        """The sums over each half cell of the tilted mass at the nearest lattice point, and of its miss.

        With s the loss minus the nearest lattice point, mass e^{-cs} tilts the mass as that
        point is tilted; times e^{-s} it is Q-mass, times e^{-s} - 1 what P-mass is missed.
        """
        h, c, first = self.h, self.c, self.first
        mass, change = np.zeros((2, 2 * size))
        self.scale, summed = -math.inf, 0.0
        for loss, log_weight, width, terms in self.step.weighted_nodes(h, self.offset, c):
            top = float(log_weight.max())
            if top > self.scale:
                factor = math.exp(max(self.scale - top, -745.0))
                mass *= factor
                change *= factor
                summed *= factor
                self.scale = top
            position = (loss - self.offset) / h
            nearest = np.rint(position)
            s = loss - self.offset - nearest * h
            # Half cells: 2 i above the lattice point i, 2 i - 1 below it.
            half = 2 * (nearest.astype(np.int64) - first) - (s < 0)
            tilted = np.exp(log_weight - self.scale - c * s) * width
            low = int(half.min())
            half -= low
            part = slice(low, low + int(half.max()) + 1)
            mass[part] += np.bincount(half, tilted)
            change[part] += np.bincount(half, tilted * np.expm1(-s))
            summed += float(tilted @ terms)
        self.exponent = summed / float(mass.sum())  # mean size of the terms of the log density
        above, below = slice(0, None, 2), slice(1, None, 2)  # the half cell below i + 1 is at i
        # Chords: P- and Q-mass kept; the share of the farther of the two ends, tilted as it is.
        upper = mass[above].copy()
        upper[1:] += mass[below][:-1]
        share = change[above] / math.expm1(-h)
        upper -= share
        upper[1:] += math.exp(c * h) * share[:-1]
        share = change[below] / math.expm1(h)
        upper[1:] -= share[:-1]
        upper += math.exp(-c * h) * share
        # Tangents: Q-mass of the half-shifted cell at its lattice point, and the miss.
        merged = mass[above] + change[above]
        merged[1:] += (mass[below] + change[below])[:-1]
        miss = -change[above]
        miss[1:] -= change[below][:-1]
        # Rounding may leave a coarse cell's own point below zero; zero lies above that.
        self.upper, self._merged, self._miss = np.maximum(upper, 0.0), merged, miss

    @cached_property
    def lower(self):
        """Masses of the lower law (all zero where the grid is too coarse for one).

        Sets `log_missing`, what they lack of 1 untilted, and `tail_error`, what the error of the high tail makes of their sum.
        """
        masses, log_lost = repair(self._merged, self._miss, self.h, self.c, self.step.reach)
        self._merged = self._miss = None
        self.log_missing = log_lost + self.scale - self.c * (self.offset + self.h * self.first)
        error = 0.0
        for log_weight, piece in self.step.pieces:
            at = math.floor((piece.high - self.offset) / self.h - 1e-6)  # less than a rounding of that loss
            error += piece.high_tail_error * self._add(masses, at, log_weight + piece.log_high_tail)
            self.log_missing = float(np.logaddexp(self.log_missing, log_weight + piece.log_low_tail))
        self.tail_error = error / max(float(masses.sum()), 1e-300)
        return masses

    def _add(self, masses, at, log_mass):
        log_tilted = log_mass + self.c * (self.offset + at * self.h) - self.scale
        if not log_tilted < 600:
            raise NoBracketError("the lattice's window is too short for its tilt")
        mass = math.exp(log_tilted)
        masses[at - self.first] += mass
        return mass

    def losses(self):
        return self.offset + self.h * (self.first + np.arange(len(self.upper)))

    def index_above(self, loss):
        """The first lattice point above `loss`, counted from the first one of the law."""
        return min(max(math.floor((loss - self.offset) / self.h) - self.first + 1, 0), len(self.upper))

    def loss_below(self, loss):
        """The last lattice point up to `loss`."""
        return self.offset + self.h * (self.first + self.index_above(loss) - 1)

    def log_moment(self, side, c, first=0, last=None):
        """log of the moment E exp(c loss) of the upper or lower law, over its lattice points from `first` up to `last`, without it."""
        masses = getattr(self, side)
        alive = first + np.flatnonzero(masses[first:last])
        if not len(alive):
            return -math.inf
        logs = (c - self.c) * (self.offset + self.h * (self.first + alive))
        top = logs.max()
        return float(top + math.log(np.exp(logs - top) @ masses[alive]) + self.scale)


def _offset(step, h):
    """Lattice offset: where much of the mass lies in one cell, the cell's own barycentre.

    Such a cell, merged, then misses its lattice point by nothing.
    """
    offset = step.centre
    for _ in range(40):
        first, second = step.cell(offset - h / 2, offset + h / 2)
        if min(first, second) < _MUCH:
            return 0.0
        last, offset = offset, math.log(first / second)
        if abs(offset - last) < 1e-14 * h:
            break
    return offset
