"""Where to draw the lines in the remove direction: a mixture fitted by a small pilot [A-17].

Delta is the integral of q (w - e^epsilon)_+, q a standard normal density. The proposal is a mixture of groups:

    tuples    the law w^k q: k modes drawn one after the other, each with the probabilities that the
              loss gives them. w - e^epsilon over w^k is bounded, so that nothing is missed; but for
              large k the tuples have weights that vary, less where each draw looks ahead to the others.
              Where many modes in one bin would make up most of w^k, no draw shows them: such k are left out.
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
from functools import cached_property

import numpy as np

from .._base.lazy_scipy import special
from .._base.log_space import log_choose, log_sum_exp
from . import saddles
from .line_integral import LOWEST, crossing, loss_beyond
from .proposal_lines import Group, LineLaws, draw_tuples, factor

LADDER = (0.0, 1.5, 3.0, 6.0, 12.0, np.inf)
SADDLES = "saddles"
_CLUSTERS = (0.0, 1.5, 3.0, 6.0, np.inf)  # beside saddles
_FEW = (0.0, 3.0, np.inf)  # clusters for very many bins
_TUPLES = (3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
_TUPLE_SPREAD = 0.2  # largest relative variance of a tuple's weight; where it is more, it is far more
_MOST_TUPLES = 2
_CONDENSED = 3.0  # of the clusters on which tuples may condense, beside single bins
_UNSEEN = -4.0  # log of the share of w^k that they may have there, and of one that no draw may show on the way
_SHORT, _PER_GROUP = 256, 128
_LARGEST = 600.0  # logarithms that are safe to exponentiate
_THINNEST = 1e-100  # densities over the largest; their squares are above 0
_RISE = 1.01  # a group is left out where that costs no more variance
_EASY, _NEAR = 0.1, 0.05  # relative variance of a line, mean over bound: tuples alone are good enough
_HARD, _LEAST = 0.2, 0.04  # from this variance on every group keeps a share of at least so much, about
_BOUND = 20.0  # largest value of a line over the mean up to which the pilot is believed
_MANY = 1024  # bins beyond which saddles take too much memory
_MOST_SADDLES = 256


class RemoveProposal(LineLaws):
    """Lines for E_Q (w - e^epsilon)_+: see the module.

    like : None, or the proposal of a problem close by, whose choice of groups is taken over.
    """

    def __init__(self, gram, epsilon, rng, like=None):
        self.gram, self.epsilon = gram, epsilon
        self.diagonal = np.diag(gram).copy()
        self.factor = factor(gram)
        self.level = epsilon + math.log(len(gram))
        self._fit(rng, like)

    def _fit(self, rng, like):
        if like is not None:
            self._look_ahead(like.ahead is not None)
            groups = self.groups(rng, like.kinds)
            if [group.kind for group in groups] == like.kinds:
                self._take(groups, like.group_shares)
                self._look(rng, like.log_scale)
                return
        offered = self.offered()
        sizes = [kind for kind in offered if isinstance(kind, int)]
        tuples = self.groups(rng, sizes)
        if tuples and self._tuples_suffice(rng, tuples[-1]):
            return
        if sizes and len(self.gram) <= _MANY:
            self._look_ahead(True)
            larger = self.groups(rng, [k for k in sizes if not tuples or k >= tuples[-1].kind])
            self._look_ahead(bool(larger))
            tuples = larger or tuples
        groups = tuples + self.groups(rng, [kind for kind in offered if not isinstance(kind, int)])
        shares, rough = self._best_shares(groups, rng)
        self._take(groups, shares)
        self._look(rng, rough)

    def _look_ahead(self, wanted):
        self.ahead = np.exp(self.gram - self.gram.max()) if wanted else None

    def offered(self):
        """Kinds of groups to choose from."""
        return (*_TUPLES, *_CLUSTERS, SADDLES) if len(self.gram) <= _MANY else (*_TUPLES, *_FEW)

    def _take(self, groups, shares):
        self.kinds = [group.kind for group, share in zip(groups, shares) if share > 0]
        self.group_shares = shares[shares > 0]
        self.use([group for group, share in zip(groups, shares) if share > 0], self.group_shares)

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

    def groups(self, rng, kinds):
        """The groups of these kinds that are of use: tuples first, saddles last."""
        groups = self._tuple_groups(rng, [kind for kind in kinds if isinstance(kind, int)])
        groups += [self._clusters(kind) for kind in kinds if isinstance(kind, float)]
        return groups + [self._saddles(rng) for kind in kinds if kind == SADDLES]

    def _tuple_groups(self, rng, sizes):
        """The largest of these sizes whose weights do not vary too much."""
        groups, size = [], 256
        if self.ahead is None:  # the first modes of a large tuple are a small tuple
            _, steps, met = draw_tuples(self.gram, rng, max(sizes, default=0), rng.random(size))
        for k in sizes:
            if self.ahead is not None:
                _, steps, met = draw_tuples(self.gram, rng, k, rng.random(size), self.ahead)
            logs, seen = steps[k - 1], float(np.max(met[k - 1]))
            top = np.max(logs)
            weights = np.exp(logs - top)
            mean = np.mean(weights)
            spread = np.mean((weights / mean) ** 2)
            log_mean = float(top + np.log(mean))
            if spread > 1 + _TUPLE_SPREAD or any(condenses(k, log_mean, seen, *each) for each in self._condensed):
                break
            groups.append(Group(k, log_mean, spread))
        return groups[-_MOST_TUPLES:]

    @cached_property
    def _condensed(self):
        """Of single bins, and of clusters of one width, what `condenses` asks for."""
        log_b, profile = math.log(len(self.gram)), cluster_profile(self.gram, _CONDENSED)
        overlaps = np.einsum("ij,ij->i", profile @ self.gram, profile)
        wide = log_b - math.log(len(profile)), special.entr(profile).sum(axis=1) - log_b, overlaps
        return (0.0, np.full(len(self.gram), -log_b), self.diagonal), wide

    def _clusters(self, theta):
        """One normal law for each bin, or for every few."""
        profile = cluster_profile(self.gram, theta)
        combinations, height = scaled(self.gram, self.level, profile)
        return Group(theta, combinations=combinations, log_shares=height - log_sum_exp(height))

    def _saddles(self, rng):
        profile = saddles.settled(self.gram, self.level, min(len(self.gram), _MOST_SADDLES))
        combinations, height = scaled(self.gram, self.level, profile)
        kept = saddles.chosen(self.gram, combinations, height)
        combinations, height = combinations[kept], height[kept]
        axes, stretches = saddles.axes(self.gram, combinations, rng)
        height += np.sum(np.log(stretches), axis=1)
        return Group(SADDLES, 0.0, 1.0, combinations, height - log_sum_exp(height), axes, stretches)

    def _best_shares(self, groups, rng):
        """(shares of the groups with which a line varies little, a rough log delta), from a pilot with equal ones.

        With f the integrand and r the mixture, the second moment is the integral of f^2 / r, here taken over the lines
        of all groups: a group that is left out is missed where only its lines show it. A group whose draws have
        weights of their own counts as thinner by their spread.
        """
        count = len(groups)
        self.use(groups, np.full(count, 1 / count))
        alone = len(self.tuples)
        starts = np.append(np.arange(alone), alone + np.cumsum([0, *self.group_sizes[:-1]]))[:count]
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
        shares, second = fewest(terms, densities)
        log_delta = rough + self.epsilon + math.log(np.mean(values))
        kept = [(g, share) for g, share in zip(groups, shares) if g.combinations is None and share > 0]
        bound = min((self._log_bound(g) - math.log(share) for g, share in kept), default=math.inf) - log_delta
        hard = second * len(values) > (1 + _HARD) * np.sum(values) ** 2
        if hard and bound > math.log(_BOUND):
            shares = np.maximum(shares, _LEAST)
        return shares / np.sum(shares), rough + self.epsilon


def condenses(k, log_mean, seen, log_number, log_modes, overlaps):
    """Whether tuples of k modes have a second phase that their draws do not show: many of the modes in one cluster.

    Tuples with m modes in a cluster p add at least exp(log C(k, m) + m (H(p) - log b) + m (m - 1) / 2 pGp) to the mean of w^k
    (Jensen), whose logarithm is `log_mean` by the draws. Where that falls in m and rises again, the rise lies behind tuples
    that are hardly ever drawn. If no draw got there, the mean is another one, and none comes where few modes make the loss large.
    seen : the largest sum of overlaps of a draw. log_number : log of how many clusters each p stands for. log_modes : H(p) - log b.
    overlaps : pGp; shapes (clusters,).
    """
    m = np.arange(1, k + 1)
    pairs = m * (m - 1) / 2
    shares = np.multiply.outer(m, log_modes) + np.multiply.outer(pairs, overlaps)
    shares = log_sum_exp(shares) + log_number + log_choose(k)[1:] - log_mean
    lowest = int(np.argmin(shares))
    beyond = pairs[lowest:][shares[lowest:] > _UNSEEN]
    return bool(shares[lowest] < _UNSEEN and len(beyond) and seen < beyond[0] * overlaps.max() * (1 - 1e-9))


def cluster_profile(gram, theta):
    """Weights of the modes around one bin each, softmax(theta gram[i, .]), or around every few: shape (laws, b)."""
    b = len(gram)
    if theta == np.inf:
        profile = np.eye(b)
    else:
        profile = special.softmax(theta * gram / np.mean(gram.diagonal()), axis=1)
    # Neighbours with wide profiles are alike: eight to a width are enough.
    width = 1 / np.max(np.sum(profile**2, axis=1))
    count = min(b, math.ceil(8 * b / width)) if theta else 1
    return profile[np.unique(np.round(np.linspace(0, b - 1, count)).astype(int))]


def scaled(gram, level, profile):
    """Each profile times the factor that makes log(w - e^epsilon) - |x|^2 / 2 largest, and its value there."""
    step = profile @ gram
    norm = np.einsum("ij,ij->i", step, profile)
    rest = np.broadcast_to(-gram.diagonal(), step.shape) / 2
    start, shares, _, excess = crossing(rest, step, level, np.inf, LOWEST)
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


def fewest(terms, densities):
    """(shares of groups, second moment of a line), by fixed-point steps; groups without use are left out.

    terms : shape (places, lines), what is integrated times its value. densities : (places, lines, groups), of each group.
    """
    count = densities.shape[2]

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
    return shares, second
