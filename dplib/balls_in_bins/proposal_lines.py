"""Lines through the region of large loss, drawn from a mixture of laws, and their integrals [A-17].

A law is one of tuples (k modes, drawn one after the other, each with the probabilities that the loss gives them), or a
normal law around a combination of modes, of unit covariance or stretched along some axes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import log_sum_exp
from ..gaussian import LOG_SQRT_2PI
from .line_integral import LOWEST, crossing, loss_beyond, nodes
from .points import cubes

PILOT = 1024  # lines that a proposal is judged by
_AHEAD = 1.5  # power of the number of draws to come: those draws help each other, too
_LOWEST_CHANCE = 1e-250  # relative to the largest; keeps sums of chances above 0
_NO_SHARE = 1e-30  # directions that bend the loss less do not count


def factor(gram):
    """L with L L^T = gram, columns by falling eigenvalue; those of rounding size are left out."""
    values, vectors = np.linalg.eigh(gram)
    keep = values > 1e-14 * len(gram) * values[-1]
    return (vectors[:, keep] * np.sqrt(values[keep]))[:, ::-1]


@dataclass
class Group:
    """Laws that are drawn together: tuples, or normal laws around combinations of modes.

    kind : k of tuples, theta of clusters, or SADDLES. log_mean : of tuples, the log of their mean weight.
    combinations : shape (laws, b). log_shares : (laws,), sum of the shares 1. spread : relative second
    moment of the weights of the draws. axes, stretches : shapes (laws, axes, b), (laws, axes), or None.
    """

    kind: object
    log_mean: float = 0.0
    spread: float = 1.0
    combinations: np.ndarray | None = None
    log_shares: np.ndarray | None = None
    axes: np.ndarray | None = None
    stretches: np.ndarray | None = None


@dataclass
class _Lines:
    """Lines and what is known about each: shapes (lines,), (lines, b) or (lines, laws), places (NODES, lines).

    The log density of a law over q is pull + lift t + bow t^2 at the place t of the line.
    """

    log_weight: np.ndarray
    centre: np.ndarray
    crossed: np.ndarray
    shares: np.ndarray
    slope: np.ndarray
    excess: np.ndarray
    pull: np.ndarray
    lift: np.ndarray
    bow: np.ndarray
    distances: np.ndarray
    log_nodes: np.ndarray
    gains: list


class Lines:
    """Lines and what they find. Made complete by `factor`, `_geometry` and `_integrals`."""

    def lines(self, rng, size, log_scale):
        """Integral of each line, and its derivatives by log sigma and epsilon, over exp(log_scale): (3, size)."""
        return np.concatenate([self._integrals(part, log_scale) for part in self._parts(rng, size)], axis=1)

    def _parts(self, rng, size):
        for cube in cubes(rng, size, 2 + self.factor.shape[1]):
            yield self._geometry(cube, rng)

    def _look(self, rng, rough):
        """A rough log delta, and the relative variance of a line, from a pilot; rough : log delta, even rougher."""
        values = self.lines(rng, PILOT, rough)[0]
        self.log_scale = rough + math.log(np.mean(values))
        self.relative_variance = float(np.var(values) / np.mean(values) ** 2)


class LineLaws(Lines):
    """A mixture of laws for lines of E_Q (w - e^epsilon)_+. Made complete by `gram`, `diagonal`, `factor`, `epsilon`
    and `level`, and by `use`, which names the groups.
    """

    smooth = False  # whether lines depend smoothly on the Gram matrix, at some cost in variance
    ahead = None  # e^gram, where tuples are drawn with a look at the draws to come
    axes = stretches = None  # of the last laws

    def use(self, groups, shares):
        self.tuples = [
            (g.kind, g.log_mean, float(s)) for g, s in zip(groups, shares) if g.combinations is None
        ]
        around = [(g, math.log(s)) for g, s in zip(groups, shares) if g.combinations is not None]
        self.combinations = np.concatenate(
            [np.zeros((0, len(self.gram)))] + [g.combinations for g, _ in around]
        )
        log_chances = np.concatenate([np.zeros(0)] + [g.log_shares + log_share for g, log_share in around])
        self.group_sizes = [len(g.combinations) for g, _ in around]
        self.log_densities = (
            log_chances - np.einsum("ij,ij->i", self.combinations @ self.gram, self.combinations) / 2
        )
        self.axes = self.stretches = None
        if around and around[-1][0].axes is not None and around[-1][0].axes.size:
            self.axes, self.stretches = around[-1][0].axes, around[-1][0].stretches
            self.images = (self.axes.reshape(-1, len(self.gram)) @ self.gram).reshape(self.axes.shape)
            self.log_densities[-len(self.axes) :] -= np.sum(np.log(self.stretches), axis=1)
        chances = np.concatenate([[s for _, _, s in self.tuples], np.exp(log_chances)])
        self.cumulative = np.cumsum(chances) / np.sum(chances)

    def _geometry(self, cube, rng):
        """Lines for points of the unit cube: law, shift of the places, normal numbers.

        A line of a normal law leads through 0 and its centre. That of a tuple takes the direction in which the loss
        grows fastest at its point: what is left then moves the crossing in second order only.
        """
        chosen = np.searchsorted(self.cumulative, cube[:, 0], side="right")
        chosen = np.minimum(chosen, len(self.cumulative) - 1) - len(self.tuples)
        combination = np.empty((len(cube), len(self.gram)))
        combination[chosen >= 0] = self.combinations[chosen[chosen >= 0]]
        log_weight = np.zeros(len(cube))
        for i, (k, log_mean, _) in enumerate(self.tuples):
            mine = chosen == i - len(self.tuples)
            start = self.cumulative[i - 1] if i else 0.0
            first = (cube[mine, 0] - start) / (self.cumulative[i] - start)
            combination[mine], logs, _ = draw_tuples(self.gram, rng, k, first, self.ahead)
            log_weight[mine] = logs[-1] - log_mean
        point = combination @ self.gram
        if self.tuples:
            mine = chosen < 0
            shares = point[mine] - self.diagonal / 2
            shares = np.exp(shares - shares.max(axis=1, keepdims=True))
            combination[mine] = np.where(shares > _NO_SHARE, shares, 0.0)
        beta = combination @ self.gram
        norm = np.sqrt(np.einsum("ij,ij->i", beta, combination))[:, None]
        beta /= norm
        combination /= norm
        centre = np.einsum("ij,ij->i", point, combination)
        rest = special.ndtri(cube[:, 2:]) @ self.factor.T
        if self.axes is not None:
            self._stretch(rest, chosen - len(self.combinations) + len(self.axes))
        rest += point
        rest -= beta * np.einsum("ij,ij->i", rest, combination)[:, None]
        pull = rest @ self.combinations.T + self.log_densities
        lift = beta @ self.combinations.T
        bow = None if self.axes is None else self._bend(rest, beta, pull, lift)
        rest -= self.diagonal / 2
        crossed, shares, slope, excess = crossing(rest, beta, self.level, centre, LOWEST)
        distances, log_nodes = nodes(cube[:, 1], crossed, centre, crossed - slope, slope, self.smooth)
        gains = [loss_beyond(beta, shares, excess, distance) for distance in distances]
        return _Lines(
            log_weight,
            centre,
            crossed,
            shares,
            slope,
            excess,
            pull,
            lift,
            bow,
            distances,
            log_nodes,
            gains,
        )

    def _stretch(self, rest, law):
        """Widen the normal numbers along the axes of their law; law < 0: it has none."""
        mine = law >= 0
        law = law[mine]
        along = np.einsum("ikb,ib->ik", self.axes[law], rest[mine]) * (self.stretches[law] - 1)
        rest[mine] += np.einsum("ik,ikb->ib", along, self.images[law])

    def _bend(self, rest, beta, pull, lift):
        """Add the quadratic terms of the stretched laws to pull and lift; returns bow of these laws."""
        laws, count, b = self.axes.shape
        flat, narrower = self.axes.reshape(-1, b).T, np.sqrt((1 - self.stretches**-2) / 2)
        there = (rest @ flat).reshape(-1, laws, count) * narrower
        speed = (beta @ flat).reshape(-1, laws, count) * narrower
        pull[:, -laws:] += np.einsum("ijk,ijk->ij", there, there)
        lift[:, -laws:] += 2 * np.einsum("ijk,ijk->ij", there, speed)
        return np.einsum("ijk,ijk->ij", speed, speed)

    def _log_laws(self, lines, distance, gain):
        """Log densities of all laws over q, this far beyond the crossings, where Y is epsilon + gain: (lines, laws)."""
        count = len(self.tuples)
        values = np.empty((len(gain), count + lines.lift.shape[1]))
        place = (lines.crossed + distance)[:, None]
        np.multiply(lines.lift, place, out=values[:, count:])
        values[:, count:] += lines.pull
        if lines.bow is not None:
            values[:, -lines.bow.shape[1] :] += lines.bow * place**2
        for i, (k, log_mean, share) in enumerate(self.tuples):
            values[:, i] = k * (self.epsilon + gain) - log_mean + math.log(share)
        return values

    def _integrals(self, lines, log_scale):
        result = np.zeros((3, len(lines.crossed)))
        for distance, gain, log_node in zip(lines.distances, lines.gains, lines.log_nodes):
            log_weight = log_node + lines.log_weight + self.epsilon - log_scale
            log_weight -= log_sum_exp(self._log_laws(lines, distance, gain))
            result[0] -= np.exp(log_weight + gain) * np.expm1(-gain)
            result[2] -= np.exp(log_weight)
        result[1] = -self._border(lines, log_scale) * np.einsum(
            "ij,ij->i", lines.shares @ self.gram, lines.shares
        )
        return result

    def _border(self, lines, log_scale):
        """Weights of the crossings in integrals over the border Y = epsilon with w^2 E_Q's density of w there."""
        density = -((lines.crossed - lines.centre) ** 2) / 2 - LOG_SQRT_2PI + lines.log_weight
        density -= log_sum_exp(self._log_laws(lines, 0.0, lines.excess))
        return np.where(lines.excess < 1e-6, np.exp(density + self.epsilon - log_scale) / lines.slope, 0.0)


def draw_tuples(gram, rng, most, first, ahead=None):
    """Modes for each tuple, one after the other: (how often each, log weights and sums of overlaps after 1 .. `most` modes).

    first : the numbers in (0, 1) that choose the first modes. ahead : e^gram, up to a factor, for draws that look ahead:
    they take a mode with a probability that grows with what it would give to later ones. None for others.
    """
    b, size = len(gram), len(first)
    counts, pull = np.zeros((size, b)), np.zeros((size, b))
    rows, logs, overlaps = np.arange(size), [], [0.0]
    for step in range(most):
        top = np.max(pull, axis=1)
        chances = np.exp(pull - top[:, None])
        left = most - 1 - step
        if ahead is not None and left:
            later = chances @ ahead
            later /= np.max(later, axis=1)[:, None]
            later = np.maximum(later ** (left**_AHEAD), _LOWEST_CHANCE)
            chances *= later
        cumulative = np.cumsum(chances, axis=1)
        total = cumulative[:, -1]
        place = (first if step == 0 else rng.random(size)) * total
        drawn = np.minimum(np.sum(cumulative <= place[:, None], axis=1), b - 1)
        log = top + np.log(total / b) + (logs[-1] if logs else 0.0)
        logs.append(log - np.log(later[rows, drawn]) if ahead is not None and left else log)
        counts[rows, drawn] += 1
        overlaps.append(overlaps[-1] + pull[rows, drawn])
        pull += gram[drawn]
    return counts, logs, overlaps[1:]
