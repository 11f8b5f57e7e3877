"""Where to draw the lines in the remove direction: a mixture fitted by a small pilot [A-17].

Delta is the integral of q (w - e^epsilon)_+, q a standard normal density. The proposal is a mixture of groups:

    tuples    the law w^k q: k modes drawn one after the other, each with the probabilities that the
              loss gives them. w - e^epsilon over w^k is bounded, so that nothing is missed; but for
              large k the tuples have weights that vary, less where each draw looks ahead to the others.
    clusters  normal laws of unit covariance around combinations of modes: bin i with its neighbours,
              weighted by softmax(theta Gram[i, .]) for a ladder of theta, and scaled to the highest
              point of the integrand.
    saddles   normal laws around the peaks of the integrand, as wide as it is there (`saddles`).

Tuples serve many bins at once, clusters one bin or one group of them, saddles small delta. The pilot chooses
how much of each. Where it finds a large variance, every group keeps a part, unless the share of tuples
bounds the integrand well: a pilot does not see rare large values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import log_sum_exp
from ..gaussian import LOG_SQRT_2PI
from . import saddles as _saddles
from .line_integral import LOWEST, crossing, loss_beyond, nodes
from .points import cubes

LADDER = (0.0, 1.5, 3.0, 6.0, 12.0, np.inf)
SADDLES = "saddles"
_CLUSTERS = (0.0, 1.5, 3.0, 6.0, np.inf)  # beside saddles
_FEW = (0.0, 3.0, np.inf)  # clusters for very many bins
_TUPLES = (3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
_TUPLE_SPREAD = 0.2  # largest relative variance of a tuple's weight; where it is more, it is far more
_MOST_TUPLES = 2
_AHEAD = 1.5  # power of the number of draws to come: those draws help each other, too
_LOWEST_CHANCE = 1e-250  # relative to the largest; keeps sums of chances above 0
_PILOT, _SHORT, _PER_GROUP = 1024, 256, 128
_LARGEST = 600.0  # logarithms that are safe to exponentiate
_THINNEST = 1e-100  # densities over the largest; their squares are above 0
_RISE = 1.01  # a group is left out where that costs no more variance
_NO_SHARE = 1e-30  # directions that bend the loss less do not count
_EASY, _NEAR = 0.1, 0.05  # relative variance of a line, mean over bound: tuples alone are good enough
_HARD, _LEAST = 0.2, 0.04  # from this variance on every group keeps a share of at least so much, about
_BOUND = 20.0  # largest value of a line over the mean up to which the pilot is believed
_MANY = 1024  # bins beyond which saddles take too much memory
_MOST_SADDLES = 256


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
    combinations: np.ndarray = None
    log_shares: np.ndarray = None
    axes: np.ndarray = None
    stretches: np.ndarray = None


@dataclass
class _Lines:
    """Lines and what is known about each: shapes (lines,), (lines, b) or (lines, laws), places (NODES, lines).

    The log density of a law over q is pull + lift t + bow t^2 at the place t of the line.
    """

    chosen: np.ndarray
    log_weight: np.ndarray
    centre: np.ndarray
    beta: np.ndarray
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


class RemoveProposal:
    """Lines for E_Q (w - e^epsilon)_+: see the module.

    like : None, or the proposal of a problem close by, whose choice of groups is taken over.
    """

    smooth = False  # whether lines depend smoothly on the Gram matrix, at some cost in variance
    ahead = False  # whether tuples are drawn with a look at the draws to come
    axes = stretches = None  # of the last laws

    def __init__(self, gram, epsilon, rng, like=None):
        self.gram, self.epsilon = gram, epsilon
        self.diagonal = np.diag(gram).copy()
        self.factor = factor(gram)
        self.level = epsilon + math.log(len(gram))
        self.pair_weights = np.exp(gram - gram.max())
        self._fit(rng, like)

    # --- the mixture -----------------------------------------------------------------------------------

    def _fit(self, rng, like):
        if like is not None:
            self.ahead = like.ahead
            groups = self.groups(rng, like.kinds)
            if [group.kind for group in groups] == like.kinds:
                self._take(groups, like.group_shares)
                self._look(rng, like.log_scale)
                return
        self.ahead = False
        offered = self.offered()
        sizes = [kind for kind in offered if isinstance(kind, int)]
        tuples = self.groups(rng, sizes)
        if tuples and self._tuples_suffice(rng, tuples[-1]):
            return
        if sizes and len(self.gram) <= _MANY:
            self.ahead = True
            larger = self.groups(rng, [k for k in sizes if not tuples or k >= tuples[-1].kind])
            self.ahead, tuples = bool(larger), larger or tuples
        groups = tuples + self.groups(rng, [kind for kind in offered if not isinstance(kind, int)])
        shares, rough = self._best_shares(groups, rng)
        self._take(groups, shares)
        self._look(rng, rough)

    def offered(self):
        """Kinds of groups to choose from."""
        return (*_TUPLES, *_CLUSTERS, SADDLES) if len(self.gram) <= _MANY else (*_TUPLES, *_FEW)

    def _take(self, groups, shares):
        self.kinds = [group.kind for group, share in zip(groups, shares) if share > 0]
        self.group_shares = shares[shares > 0]
        self._use([group for group, share in zip(groups, shares) if share > 0], self.group_shares)

    def _tuples_suffice(self, rng, group):
        """Whether one kind of tuples is good enough alone, as where k is about the rate at which delta falls.

        (w - e^epsilon) / w^k is bounded, and that the mean is near the bound is seen by any pilot.
        """
        bound = self._log_bound(group)
        self._take([group], np.ones(1))
        values = self.lines(rng, _SHORT, bound)[0]
        mean = float(np.mean(values))
        if mean < _NEAR:
            return False
        self.log_scale = bound + math.log(mean)
        self.relative_variance = float(np.var(values)) / mean**2
        return self.relative_variance < _EASY

    def _log_bound(self, group):
        """log of the largest value of (w - e^epsilon) / w^k, times the mean of w^k."""
        k = group.kind
        return group.log_mean + (k - 1) * (math.log1p(-1 / k) - self.epsilon) - math.log(k)

    def _look(self, rng, rough):
        values = self.lines(rng, _PILOT, rough)[0]
        self.log_scale = rough + math.log(np.mean(values))
        self.relative_variance = float(np.var(values) / np.mean(values) ** 2)

    def groups(self, rng, kinds):
        """The groups of these kinds that are of use: tuples first, saddles last."""
        groups = self._tuple_groups(rng, [kind for kind in kinds if isinstance(kind, int)])
        groups += [self._clusters(kind) for kind in kinds if isinstance(kind, float)]
        return groups + [self._saddles(rng) for kind in kinds if kind == SADDLES]

    def _tuple_groups(self, rng, sizes):
        """The largest of these sizes whose weights do not vary too much."""
        groups, size = [], 256
        if not self.ahead:  # the first modes of a large tuple are a small tuple
            steps = self._draw(rng, max(sizes, default=0), rng.random(size))[1]
        for k in sizes:
            logs = self._draw(rng, k, rng.random(size))[1][-1] if self.ahead else steps[k - 1]
            top = np.max(logs)
            weights = np.exp(logs - top)
            mean = np.mean(weights)
            spread = np.mean((weights / mean) ** 2)
            if spread > 1 + _TUPLE_SPREAD:
                break
            groups.append(Group(k, float(top + np.log(mean)), spread))
        return groups[-_MOST_TUPLES:]

    def _clusters(self, theta):
        """One normal law for each bin, or for every few."""
        b = len(self.gram)
        if theta == np.inf:
            profile = np.eye(b)
        else:
            profile = theta * self.gram / np.mean(self.diagonal)
            profile = np.exp(profile - profile.max(axis=1, keepdims=True))
            profile /= profile.sum(axis=1, keepdims=True)
        # Neighbours with wide profiles are alike: eight to a width are enough.
        width = 1 / np.max(np.sum(profile**2, axis=1))
        count = min(b, math.ceil(8 * b / width)) if theta else 1
        profile = profile[np.unique(np.round(np.linspace(0, b - 1, count)).astype(int))]
        combinations, height = self._scaled(profile)
        return Group(theta, combinations=combinations, log_shares=height - log_sum_exp(height))

    def _saddles(self, rng):
        profile = _saddles.settled(self.gram, self.level, min(len(self.gram), _MOST_SADDLES))
        combinations, height = self._scaled(profile)
        kept = _saddles.chosen(self.gram, combinations, height)
        combinations, height = combinations[kept], height[kept]
        axes, stretches = _saddles.axes(self.gram, combinations, rng)
        height += np.sum(np.log(stretches), axis=1)
        return Group(SADDLES, 0.0, 1.0, combinations, height - log_sum_exp(height), axes, stretches)

    def _scaled(self, profile):
        """Each profile times the factor that makes log(w - e^epsilon) - |x|^2 / 2 largest, and its value there."""
        step = profile @ self.gram
        norm = np.einsum("ij,ij->i", step, profile)
        rest = np.broadcast_to(-self.diagonal, step.shape) / 2
        start, shares, _, excess = crossing(rest, step, self.level, np.inf, LOWEST)
        start = np.maximum(start, 1e-3 / np.sqrt(norm))
        best, height = np.zeros(len(step)), np.full(len(step), -np.inf)
        trials = np.geomspace(1e-3, 3, 32)[:, None] * (start + 1 / np.sqrt(norm))
        spacing = 0.3
        while True:
            for distance in trials:
                gain = loss_beyond(step, shares, excess, distance)
                with np.errstate(divide="ignore"):
                    value = gain + np.log(-np.expm1(-gain)) - (start + distance) ** 2 * norm / 2
                better = value > height
                best[better], height[better] = distance[better], value[better]
            if spacing * np.max(best * np.sqrt(norm)) < 0.3 or spacing < 1e-6:
                break
            trials = best * (1 + spacing * np.linspace(-1, 1, 9)[:, None])
            spacing /= 4
        best += start
        return profile * best[:, None], height

    def _best_shares(self, groups, rng):
        """(shares of the groups with which a line varies little, a rough log delta), from a pilot with equal ones.

        With f the integrand and r the mixture, the second moment is the integral of f^2 / r, here taken over the lines
        of all groups: a group that is left out is missed where only its lines show it. A group whose draws have
        weights of their own counts as thinner by their spread.
        """
        count = len(groups)
        self._use(groups, np.full(count, 1 / count))
        starts = np.concatenate(
            [np.arange(len(self.tuples)), len(self.tuples) + np.cumsum([0, *self.group_sizes[:-1]])]
        )
        starts = starts[:count]
        log_terms, densities, weights = [], [], []
        for lines in self._parts(rng, _PER_GROUP * count):
            weights.append(np.exp(np.minimum(lines.log_weight, _LARGEST / 2)))
            for distance, gain, log_node in zip(lines.distances, lines.gains, lines.log_nodes):
                values = self._log_laws(lines, distance, gain)
                top = np.max(values, axis=1)
                values = np.exp(values - top[:, None])
                densities.append(np.add.reduceat(values, starts, axis=1) * count)
                with np.errstate(divide="ignore"):
                    log_terms.append(log_node + gain + np.log(-np.expm1(-gain)) - top)
        places = len(lines.gains)
        rough = float(max(np.max(terms) for terms in log_terms))
        log_terms = np.stack([np.concatenate(log_terms[i::places]) for i in range(places)])
        densities = np.stack([np.concatenate(densities[i::places]) for i in range(places)])
        terms = np.exp(log_terms - rough)
        values = np.concatenate(weights) * np.sum(terms / np.mean(densities, axis=2), axis=0)
        terms *= values
        densities = np.maximum(densities / np.array([group.spread for group in groups]), _THINNEST)

        def improved(shares, steps):
            for _ in range(steps):
                density = densities @ shares
                shares = shares * np.sqrt(np.einsum("ij,ijk->k", terms / density**2, densities))
                shares /= np.sum(shares)
            return shares, np.sum(terms / (densities @ shares))

        shares, second = improved(np.full(count, 1 / count), 20)
        while np.count_nonzero(shares > 0) > 1:
            weakest = np.argmin(np.where(shares > 0, shares, np.inf))
            without = np.where(np.arange(count) == weakest, 0.0, shares)
            without, new = improved(without / np.sum(without), 5)
            if new > _RISE * second:
                break
            shares, second = without, min(second, new)
        log_delta = rough + self.epsilon + math.log(np.mean(values))
        kept = [(g, share) for g, share in zip(groups, shares) if g.combinations is None and share > 0]
        bound = min((self._log_bound(g) - math.log(share) for g, share in kept), default=math.inf) - log_delta
        hard = second * len(values) > (1 + _HARD) * np.sum(values) ** 2
        if hard and bound > math.log(_BOUND):
            shares = np.maximum(shares, _LEAST)
        return shares / np.sum(shares), rough + self.epsilon

    def _use(self, groups, shares):
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

    # --- lines -----------------------------------------------------------------------------------------

    def lines(self, rng, size, log_scale):
        """Integral of each line, and its derivatives by log sigma and epsilon, over exp(log_scale): (3, size)."""
        return np.concatenate([self._integrals(part, log_scale) for part in self._parts(rng, size)], axis=1)

    def _parts(self, rng, size):
        for cube in cubes(rng, size, 2 + self.factor.shape[1]):
            yield self._geometry(cube, rng)

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
            combination[mine], logs = self._draw(rng, k, first)
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
            chosen,
            log_weight,
            centre,
            beta,
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

    def gradient(self, rng, size, log_scale):
        """d delta / d gram over exp(log_scale), averaged over `size` lines: shape (b, b)."""
        total = 0.0
        for lines in self._parts(rng, size):
            weights = self._border(lines, log_scale)
            total = total + (lines.shares * weights[:, None]).T @ lines.shares
        return total / (2 * size)

    def _draw(self, rng, most, first):
        """Modes for each tuple, one after the other: (how often each, log weights after 1 .. `most` modes).

        A draw that looks ahead takes a mode with a probability that grows with what it would give to later ones.
        """
        b, size = len(self.gram), len(first)
        counts, pull = np.zeros((size, b)), np.zeros((size, b))
        rows, logs = np.arange(size), []
        for step in range(most):
            top = np.max(pull, axis=1)
            chances = np.exp(pull - top[:, None])
            left = most - 1 - step
            if self.ahead and left:
                later = chances @ self.pair_weights
                later /= np.max(later, axis=1)[:, None]
                later = np.maximum(later ** (left**_AHEAD), _LOWEST_CHANCE)
                chances *= later
            cumulative = np.cumsum(chances, axis=1)
            total = cumulative[:, -1]
            place = (first if step == 0 else rng.random(size)) * total
            drawn = np.minimum(np.sum(cumulative <= place[:, None], axis=1), b - 1)
            log = top + np.log(total / b) + (logs[-1] if logs else 0.0)
            logs.append(log - np.log(later[rows, drawn]) if self.ahead and left else log)
            counts[rows, drawn] += 1
            pull += self.gram[drawn]
        return counts, logs
