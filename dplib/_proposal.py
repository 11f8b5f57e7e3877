"""Where to draw the lines: proposals for balls in bins, fitted to the Gram matrix by a small pilot [A-17].

Remove. Delta is the integral of q (w - e^epsilon)_+, q a standard normal density. The proposal is a
mixture r of

    normal laws of unit covariance around combinations of modes: bin i with its neighbours, weighted by
    softmax(theta Gram[i, .]) for a ladder of theta, and scaled to the highest point of the integrand;
    the laws w^k q: k modes drawn one after the other, each with the probabilities that the loss gives them.

The first cover what one bin, or one group of bins, brings about, the second many bins at once; and they
bound the weights, since w - e^epsilon over w^k is bounded. The pilot chooses how much of each.

Add. The region is convex and the integrand largest near its point x* of smallest norm. The proposal
shrinks the directions across x* by the curvature of the boundary there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ._line import LOG_ROOT_TAU, LOWEST, crossing, log_sum, loss_beyond, nodes
from ._scipy import special, stats

_LADDER = (0.0, 1.5, 3.0, 6.0, 12.0, np.inf)
_TUPLES = (3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
_TUPLE_SPREAD = 1.0  # largest relative variance of a tuple's weight
_MOST_TUPLES = 3
_PILOT = 1024
_CHUNK = 512
_LARGEST = 600.0  # changes of log densities that are safe to exponentiate
_ANCHOR = 2  # the place on a line whose densities the others start from
_RISE = 1.03  # a group is left out where that costs no more variance
_REFINE = 0.2  # relative variance of a line that is not worth a second look
_LEAST = 0.05


def points(rng, size, dimensions):
    """Scrambled Sobol points in the open unit cube, shape (size, dimensions)."""
    return np.concatenate(list(_cubes(rng, size, dimensions)))


def _cubes(rng, size, dimensions):
    """The same in parts of at most 512 points."""
    sobol = stats.qmc.Sobol(dimensions, scramble=True, rng=rng, optimization=None)
    for start in range(0, size, _CHUNK):
        left = min(size - start, _CHUNK)
        values = sobol.random(1 << max(0, left - 1).bit_length())[:left]
        yield np.clip(values, 2.0**-54, 1 - 2.0**-53)


def factor(gram):
    """(L, eigenvalues) with L L^T = gram, columns by falling eigenvalue; those of rounding size are left out."""
    values, vectors = np.linalg.eigh(gram)
    keep = values > 1e-14 * len(gram) * values[-1]
    return (vectors[:, keep] * np.sqrt(values[keep]))[:, ::-1]


@dataclass
class _Lines:
    """Lines and what is known about each: shapes (lines,), (lines, b) or (lines, components), places (NODES, lines)."""

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
    distances: np.ndarray
    log_nodes: np.ndarray
    gains: list = None
    parts: np.ndarray = None
    log_density: np.ndarray = None


class RemoveProposal:
    """Lines for E_Q (w - e^epsilon)_+: see the module.

    like : None, or the proposal of a problem close by, whose choice of groups is taken over.
    """

    smooth = False  # whether lines depend smoothly on the Gram matrix, at some cost in variance

    def __init__(self, gram, epsilon, rng, like=None):
        self.gram, self.epsilon = gram, epsilon
        self.diagonal = np.diag(gram).copy()
        self.factor = factor(gram)
        self.level = epsilon + math.log(len(gram))
        self._fit(rng, like)

    # --- the mixture -----------------------------------------------------------------------------------

    def _fit(self, rng, like):
        kinds = (*_TUPLES, *_LADDER) if like is None else like.kinds
        groups, kinds = self._groups(kinds, rng)
        if like is not None and len(kinds) == len(like.kinds):
            self._take(groups, kinds, like.group_shares)
            self._look(rng, like.log_scale)
            return
        shares, rough = self._best_shares(groups, rng, 128)
        self._take(groups, kinds, shares)
        self._look(rng, rough)
        if self.relative_variance > _REFINE:
            # Several bins matter together: a finer ladder, more lines, and no group is left out.
            groups, kinds = self._groups(self._near(), rng)
            shares, rough = self._best_shares(groups, rng, 384, least=_LEAST)
            self._take(groups, kinds, shares)
            self._look(rng, rough)

    def _near(self):
        """The kinds with a large share, and neighbours of theirs."""
        large = min(np.max(self.group_shares), 0.15)
        kinds = [kind for kind, share in zip(self.kinds, self.group_shares) if share >= large]
        centres = {round(kind * factor_, 3) for kind in kinds if not isinstance(kind, int) for factor_ in (0.75, 1.0, 1.35)}
        return [kind for kind in kinds if isinstance(kind, int)][-1:] + sorted(centres or {3.0, 6.0})

    def _take(self, groups, kinds, shares):
        self.kinds = [kind for kind, share in zip(kinds, shares) if share > 0]
        self.group_shares = shares[shares > 0]
        self._use([group for group, share in zip(groups, shares) if share > 0], self.group_shares)

    def _look(self, rng, rough):
        values = self.lines(rng, _PILOT, rough)[0]
        self.log_scale = rough + math.log(np.mean(values))
        self.relative_variance = float(np.var(values) / np.mean(values) ** 2)

    def _groups(self, kinds, rng):
        """Groups of components for these kinds, and the kinds that are of use: tuples first."""
        tuples = [(k, self._mean_weight(k, rng)) for k in kinds if isinstance(k, int)]
        groups = [(k, mean) for k, mean in tuples if mean is not None][-_MOST_TUPLES:]
        ladder = [theta for theta in kinds if not isinstance(theta, int)]
        return groups + [self._centres(theta) for theta in ladder], [k for k, _ in groups] + ladder

    def _mean_weight(self, k, rng):
        """Log of the mean weight of a tuple of k modes; None where the weights vary too much."""
        _, logs = self._tuples(rng, k, 256, rng.random(256))
        top = np.max(logs)
        weights = np.exp(logs - top)
        if np.var(weights) > _TUPLE_SPREAD * np.mean(weights) ** 2:
            return None
        return float(top + np.log(np.mean(weights)))

    def _centres(self, theta):
        """One normal law for each bin, or for every few: (combinations of modes, log weights inside the group)."""
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
        combination, height = self._scaled(profile)
        return combination, height - log_sum(height.copy())

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

    def _best_shares(self, groups, rng, per_group, least=0.0):
        """Shares of the groups that make the variance of a line small, from a pilot with equal shares."""
        count = len(groups)
        self._use(groups, np.full(count, 1 / count))
        starts = np.concatenate([np.arange(len(self.tuples)), len(self.tuples) + np.cumsum([0, *self.group_sizes[:-1]])])
        labels, log_terms, log_groups, log_weight = [], [], [], []
        for lines in self._parts(rng, per_group * count):
            labels.append(np.searchsorted(starts, lines.chosen + len(self.tuples), side="right") - 1)
            log_weight.append(lines.log_weight)
            terms, densities = [], []
            for i, (gain, log_node) in enumerate(zip(lines.gains, lines.log_nodes)):
                values, log_factor = self._densities_at(lines, i)
                with np.errstate(divide="ignore"):
                    terms.append(log_node + lines.log_weight + gain + np.log(-np.expm1(-gain)))
                    sums = np.log(np.add.reduceat(values, starts, axis=1) * count)
                densities.append(sums + log_factor[:, None])
            log_terms.append(terms), log_groups.append(densities)
        label = np.concatenate(labels)
        log_weight = np.concatenate(log_weight)
        log_terms = np.concatenate(log_terms, axis=1)  # (places, lines)
        log_groups = np.concatenate(log_groups, axis=1)  # (places, lines, groups)
        drawn = np.maximum(np.bincount(label, minlength=count), 1)
        rough = float(np.max(log_terms - log_sum(log_groups - math.log(count))))
        log_terms = log_terms - rough

        def moments(shares):
            with np.errstate(divide="ignore"):
                density = log_sum(log_groups + np.log(shares))
            lines = np.sum(np.exp(np.clip(log_terms - density, -300, 300)), axis=0)
            second = np.bincount(label, lines**2, count) / drawn
            calm = np.bincount(label, lines**2 * np.exp(np.clip(-log_weight, -50, 50)), count) / drawn
            return second, calm

        def improved(shares, steps):
            for _ in range(steps):
                second, calm = moments(shares)
                new = shares * np.minimum(calm, 1e100) / np.sqrt(np.maximum(second, 1e-300))
                shares = new / np.sum(new)
            return shares, np.sum(shares * moments(shares)[0])

        shares, value = improved(np.full(count, 1 / count), 10)
        while not least and np.count_nonzero(shares > 0) > 1:
            weakest = np.argmin(np.where(shares > 0, shares, np.inf))
            without = np.where(np.arange(count) == weakest, 0.0, shares)
            without, new_value = improved(without / np.sum(without), 5)
            if new_value > _RISE * value:
                break
            shares, value = without, min(value, new_value)
        shares = np.maximum(shares, least)
        return shares / np.sum(shares), rough + self.epsilon

    def _use(self, groups, shares):
        centres = [(g, s) for g, s in zip(groups, shares) if not isinstance(g[0], int)]
        self.tuples = [(g[0], g[1], float(s)) for g, s in zip(groups, shares) if isinstance(g[0], int)]
        b = len(self.gram)
        self.combinations = np.concatenate([g[0] for g, _ in centres]) if centres else np.zeros((0, b))
        log_probability = np.concatenate([g[1] + math.log(s) for g, s in centres]) if centres else np.zeros(0)
        self.group_sizes = [len(g[0]) for g, _ in centres]
        norms = np.einsum("ij,ij->i", self.combinations @ self.gram, self.combinations)
        self.largest_lift = float(np.sqrt(np.max(norms, initial=0.0)))
        self.log_densities = log_probability - norms / 2
        chances = np.concatenate([[s for _, _, s in self.tuples], np.exp(log_probability)])
        self.cumulative = np.cumsum(chances) / np.sum(chances)

    # --- lines -----------------------------------------------------------------------------------------

    def lines(self, rng, size, log_scale):
        """Shape (3, size): the integral along each line, its derivatives by log sigma and by epsilon, over exp(log_scale)."""
        return np.concatenate([self._integrals(part, log_scale) for part in self._parts(rng, size)], axis=1)

    def _parts(self, rng, size):
        for cube in _cubes(rng, size, 2 + self.factor.shape[1]):
            yield self._geometry(cube, rng)

    def _geometry(self, cube, rng):
        """Lines for points of the unit cube: component, shift of the places, normal numbers."""
        chosen = np.searchsorted(self.cumulative, cube[:, 0], side="right")
        chosen = np.minimum(chosen, len(self.cumulative) - 1) - len(self.tuples)
        combination = np.empty((len(cube), len(self.gram)))
        combination[chosen >= 0] = self.combinations[chosen[chosen >= 0]]
        log_weight = np.zeros(len(cube))
        for i, (k, log_mean, _) in enumerate(self.tuples):
            mine = chosen == i - len(self.tuples)
            start = self.cumulative[i - 1] if i else 0.0
            first = (cube[mine, 0] - start) / (self.cumulative[i] - start)
            combination[mine], logs = self._tuples(rng, k, len(first), first)
            log_weight[mine] = logs - log_mean
        beta = combination @ self.gram
        centre = np.sqrt(np.einsum("ij,ij->i", beta, combination))
        beta /= centre[:, None]
        rest = special.ndtri(cube[:, 2:]) @ self.factor.T
        rest -= beta * (np.einsum("ij,ij->i", rest, combination) / centre)[:, None]
        pull = rest @ self.combinations.T + self.log_densities
        lift = beta @ self.combinations.T
        rest -= self.diagonal / 2
        crossed, shares, slope, excess = crossing(rest, beta, self.level, centre, LOWEST)
        distances, log_nodes = nodes(cube[:, 1], crossed, centre, crossed - slope, slope, self.smooth)
        lines = _Lines(
            chosen, log_weight, centre, beta, crossed, shares, slope, excess, pull, lift, distances, log_nodes
        )
        lines.gains = [loss_beyond(beta, shares, excess, distance) for distance in distances]
        lines.parts, lines.log_density = self._densities(lines, distances[_ANCHOR], lines.gains[_ANCHOR])
        return lines

    def _densities(self, lines, distance, gain):
        """Densities of all components relative to q, this far beyond the crossings, where Y is epsilon + gain.

        Returns (those of each component over their sum, log of the sum): (lines, components), (lines,).
        """
        count = len(self.tuples)
        values = np.empty((len(gain), count + lines.lift.shape[1]))
        np.multiply(lines.lift, (lines.crossed + distance)[:, None], out=values[:, count:])
        values[:, count:] += lines.pull
        for i, (k, log_mean, share) in enumerate(self.tuples):
            values[:, i] = k * (self.epsilon + gain) - log_mean + math.log(share)
        top = np.max(values, axis=1)
        values -= top[:, None]
        np.exp(values, out=values)
        total = np.sum(values, axis=1)
        values /= total[:, None]
        return values, top + np.log(total)

    def _densities_at(self, lines, i):
        """The same at place i, from those at one place where their growth between the two is no danger: (values, log factor)."""
        if i == _ANCHOR:
            return lines.parts, lines.log_density
        change, rise = lines.distances[i] - lines.distances[_ANCHOR], lines.gains[i] - lines.gains[_ANCHOR]
        steepest = max([k for k, _, _ in self.tuples], default=0)
        if max(np.max(np.abs(change)) * self.largest_lift, np.max(np.abs(rise)) * steepest) > _LARGEST:
            return self._densities(lines, lines.distances[i], lines.gains[i])
        count = len(self.tuples)
        values = np.empty_like(lines.parts)
        np.multiply(lines.lift, change[:, None], out=values[:, count:])
        for j, (k, _, _) in enumerate(self.tuples):
            values[:, j] = k * rise
        np.exp(values, out=values)
        values *= lines.parts
        return values, lines.log_density

    def _integrals(self, lines, log_scale):
        result = np.zeros((3, len(lines.crossed)))
        border = self._border(lines, log_scale)
        for i, (gain, log_node) in enumerate(zip(lines.gains, lines.log_nodes)):
            densities, log_factor = self._densities_at(lines, i)
            log_weight = log_node + lines.log_weight + self.epsilon - log_factor - log_scale
            log_weight -= np.log(np.sum(densities, axis=1))
            result[0] -= np.exp(log_weight + gain) * np.expm1(-gain)
            result[2] -= np.exp(log_weight)
        result[1] = -border * np.einsum("ij,ij->i", lines.shares @ self.gram, lines.shares)
        return result

    def _border(self, lines, log_scale):
        """Weights of the crossings in integrals over the border Y = epsilon with w^2 E_Q's density of w there."""
        density = -((lines.crossed - lines.centre) ** 2) / 2 - LOG_ROOT_TAU + lines.log_weight
        density -= self._densities(lines, 0.0, lines.excess)[1]
        return np.where(lines.excess < 1e-6, np.exp(density + self.epsilon - log_scale) / lines.slope, 0.0)

    def gradient(self, rng, size, log_scale):
        """d delta / d gram over exp(log_scale), averaged over `size` lines: shape (b, b)."""
        total = 0.0
        for lines in self._parts(rng, size):
            weights = self._border(lines, log_scale)
            total = total + (lines.shares * weights[:, None]).T @ lines.shares
        return total / (2 * size)

    def _tuples(self, rng, k, size, first):
        """k modes for each of `size` tuples, one after the other: (how often each, log weights)."""
        b = len(self.gram)
        counts, pull, logs = np.zeros((size, b)), np.zeros((size, b)), np.zeros(size)
        rows = np.arange(size)
        for step in range(k):
            top = np.max(pull, axis=1)
            cumulative = np.cumsum(np.exp(pull - top[:, None]), axis=1)
            total = cumulative[:, -1]
            logs += top + np.log(total / b)
            place = (first if step == 0 else rng.random(size)) * total
            chosen = np.minimum(np.sum(cumulative <= place[:, None], axis=1), b - 1)
            counts[rows, chosen] += 1
            pull += self.gram[chosen]
        return counts, logs


class AddProposal:
    """Lines for E_Q (1 - e^epsilon w)_+: see the module."""

    def __init__(self, gram, epsilon, rng, like=None):
        self.gram, self.epsilon = gram, epsilon
        self.diagonal = np.diag(gram).copy()
        self.level = math.log(len(gram)) - epsilon
        self.combination = self._nearest()
        self.norm = math.sqrt(self.combination @ gram @ self.combination)
        self.beta = gram @ self.combination / self.norm
        self._fit(rng)

    def _nearest(self):
        """Weights of the modes whose sum is normal to the border of the region at its point nearest to 0, about.

        Among all such lines through 0 that one crosses nearest to 0; its weights are the shares of the terms there.
        """
        b = len(self.gram)
        weights = np.full(b, 1 / b)
        distance, shares = self._distances(weights[None])
        best, target = distance[0], shares[0]
        for _ in range(100):
            trials = weights + np.array([1.0, 0.6, 0.3, 0.1, 0.03, 0.01])[:, None] * (target - weights)
            distance, shares = self._distances(trials)
            first = int(np.argmin(distance))
            if not distance[first] < best * (1 - 1e-9):
                break
            best, weights, target = distance[first], trials[first], shares[first]
        return weights

    def _distances(self, weights):
        """How far from 0 lines along the sum of the modes cross the border: (distances, shares there)."""
        steps = weights @ self.gram
        beta = steps / np.sqrt(np.einsum("ij,ij->i", steps, weights))[:, None]
        rest = np.broadcast_to(-self.diagonal / 2, beta.shape)
        crossed, shares, _, _ = crossing(rest, beta, self.level, np.inf)
        return np.abs(crossed), shares

    def _fit(self, rng):
        """Directions across the line with the curvature of the boundary, and how much of each shrinkage."""
        crossed, shares, slope, _ = crossing(-self.diagonal[None] / 2, self.beta[None], self.level, np.inf)
        root = factor(self.gram)
        along = root.T @ self.combination / self.norm
        across = root - np.outer(root @ along, along)
        hessian = across.T @ (shares[0][:, None] * across) - np.outer(across.T @ shares[0], across.T @ shares[0])
        pressure = math.exp(-crossed[0] ** 2 / 2 - LOG_ROOT_TAU - special.log_ndtr(crossed[0]))
        bends, directions = np.linalg.eigh((hessian + hessian.T) / 2)
        order = np.argsort(-bends)[: max(1, len(bends) - 1)] if len(bends) > 1 else np.arange(0)
        self.nearest = crossed[0]
        self.bends = np.maximum(bends[order], 0) * pressure / slope[0]
        self.root = across @ directions[:, order]
        self.shares = np.array([1.0])
        self.multipliers = np.array([1.0])
        if len(self.bends):
            self.multipliers = np.array([0.0, 0.5, 0.75, 1.0, 1.25])
            self.shares = np.full(5, 0.2)
            label, moment = [], []
            parts = list(self._parts(rng, _PILOT))
            rough = max(np.max(special.log_ndtr(part[1]) + part[6]) for part in parts)
            for part in parts:
                label.append(part[-1])
                moment.append(self._integrals(part, rough)[0] ** 2)
            label, moment = np.concatenate(label), np.concatenate(moment)
            second = np.bincount(label, moment, 5) / np.maximum(np.bincount(label, minlength=5), 1)
            self.shares = self.shares * np.sqrt(second) + 0.01 * np.sqrt(np.max(second))
            self.shares /= np.sum(self.shares)
        else:
            rough = float(special.log_ndtr(crossed[0]))
        values = self.lines(rng, _PILOT, rough)[0]
        self.log_scale = rough + math.log(np.mean(values))
        self.relative_variance = float(np.var(values) / np.mean(values) ** 2)

    def lines(self, rng, size, log_scale):
        """Shape (3, size): the integral along each line, its derivatives by log sigma and by epsilon, over exp(log_scale)."""
        return np.concatenate([self._integrals(part, log_scale) for part in self._parts(rng, size)], axis=1)

    def _parts(self, rng, size):
        for cube in _cubes(rng, size, 2 + len(self.bends)):
            yield self._geometry(cube)

    def _geometry(self, cube):
        chosen = np.minimum(np.searchsorted(np.cumsum(self.shares), cube[:, 0], side="right"), len(self.shares) - 1)
        scale = 1 / np.sqrt(1 + np.outer(self.multipliers, self.bends))
        place = special.ndtri(cube[:, 2:]) * scale[chosen]
        squares = place**2 / 2
        parts = [
            math.log(share) + np.sum(np.log1p(multiplier * self.bends)) / 2 - multiplier * (squares @ self.bends)
            for share, multiplier in zip(self.shares, self.multipliers)
            if share > 0
        ]
        log_weight = -log_sum(np.stack(parts, axis=1))
        rest = place @ self.root.T - self.diagonal / 2
        beta = np.broadcast_to(self.beta, rest.shape)
        crossed, shares, slope, excess = crossing(rest, beta, self.level, self.nearest)
        zeros = np.zeros(len(rest))
        # The same places as beyond a crossing, mirrored.
        distances, log_nodes = nodes(cube[:, 1], -crossed, zeros, -crossed, slope)
        return beta, crossed, shares, slope, distances, log_nodes + log_weight, log_weight, chosen

    def _integrals(self, part, log_scale):
        beta, crossed, shares, slope, distances, log_nodes, log_weight, _ = part
        result = np.zeros((3, len(crossed)))
        for distance, log_node in zip(distances, log_nodes):
            gain = loss_beyond(beta, shares, np.zeros(len(crossed)), -distance)
            weight = np.exp(np.minimum(log_node - log_scale, _LARGEST / 2))
            result[0] -= weight * np.expm1(gain)
            result[2] -= weight * np.exp(gain)
        result[1] = -self._border(part, log_scale) * np.einsum("ij,ij->i", shares @ self.gram, shares)
        return result

    def _border(self, part, log_scale):
        _, crossed, _, slope, _, _, log_weight, _ = part
        return np.exp(np.minimum(log_weight - crossed**2 / 2 - LOG_ROOT_TAU - log_scale, _LARGEST / 2)) / slope

    def gradient(self, rng, size, log_scale):
        """d delta / d gram over exp(log_scale), averaged over `size` lines: shape (b, b)."""
        total = 0.0
        for part in self._parts(rng, size):
            total = total + (part[2] * self._border(part, log_scale)[:, None]).T @ part[2]
        return total / (2 * size)
