"""Draws for random allocation: its likelihood ratio, and two families of proposals whose weights are bounded.

With w_i = exp(z_i / sigma - 1 / (2 sigma^2)) and z standard normal under Q the likelihood ratio of one epoch is R = e_k(w) / C(t, k), e_k
the elementary symmetric polynomial: the mean over k-subsets of the product of their w_i. Of several epochs it is the product.

    remove   delta = E_Q (R - e^epsilon)_+ .  The proposal has the density R^m / Z against Q: an m-tuple of k-subsets (S_1, ..., S_m) is drawn
             with probability proportional to exp(sum_{i<j} |S_i n S_j| / sigma^2), then z around the sum of their indicators. A draw
             counts Z (R - e^epsilon)_+ / R^m, which depends on R alone and is at most the Renyi bound of order m of the pair itself.
    add      delta = E_Q (1 - e^epsilon R)_+ .  By the inequality of the means R is at least exp(-k / (2 sigma^2)) where the z_i have the
             mean 0. Half of the draws have all directions but the mean shrunk.

In both, along the direction in which all z_i grow alike, R grows like e^(a s), a = k / (sigma sqrt(t)), exactly, because every subset
has k rounds. The integrals over s have a closed form in R at s = 0; a draw is a line.

The tuple of subsets is a table of m rows with k ones each, and its weight is prod_r exp(n_r (n_r - 1) / (2 sigma^2)) over the sums n_r of its
columns, the rounds. Round after round, only how many rows still need how many ones matters: a chain with few states (`TupleLaw`).
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from .._base.log_space import EPS
from ..balls_in_bins.bounded_draws import Sampler
from ..balls_in_bins.tuple_sampler import BLOCK
from ..gaussian import log_tail_difference
from ..results import NoBracketError

MOST_STATES = 600  # of the chain of a tuple
_LARGEST_EXPONENT = 300.0  # of a weight of the chain
_BLOCK_ENTRIES = 2**22  # numbers of draws that are made at once
_ENTRIES = 2**16  # of the table of the recursion: it should stay near the processor


def log_ratio(logs, participations):
    """log of the mean, over k-subsets, of the product of exp(logs), shape (n,). logs : shape (n, t), k <= t.

    By the recursion of the means M_j over the j-subsets of the first i entries, i M_j = (i - j) M_j + j w_i M_{j-1}: sums of positive terms.
    Raises NoBracketError where these leave the range of floats. Cost: n t k.
    """
    count, rounds = logs.shape
    found = np.empty(count)
    step = max(1, _ENTRIES // (participations + 1))
    for start in range(0, count, step):
        found[start : start + step] = _log_ratio(logs[start : start + step], rounds, participations)
    return found


def _log_ratio(logs, rounds, participations):
    # In units of the geometric mean of the k largest: the answer is then between 1 / C(t, k) and a moderate number.
    unit = np.partition(logs, rounds - participations, axis=1)[:, rounds - participations :].mean(axis=1)
    means = np.zeros((participations + 1, len(logs)))
    means[0] = 1.0
    order = np.arange(1, participations + 1)[:, None]
    try:
        with np.errstate(over="raise", invalid="raise"):
            weights = np.exp(logs - unit[:, None]).T
            for i in range(1, rounds + 1):
                top = min(i, participations)
                j = order[:top]
                means[1 : top + 1] = ((i - j) / i) * means[1 : top + 1] + (j / i) * (weights[i - 1] * means[:top])
    except FloatingPointError as error:
        raise NoBracketError("the noise is too small for the likelihood ratio in double precision") from error
    return np.log(means[participations]) + participations * unit


def ratio_error(rounds, participations, noise):
    """Bound on the error of `log_ratio`, with that of its arguments: absolute, generous."""
    return EPS * (8 * rounds + 64) + EPS * participations * (128 / noise + 8 / noise**2 + 8)


class TupleLaw:
    """Tuples of k-subsets of t rounds, of density exp(sum_{i<j} |S_i n S_j| / sigma^2) against independent uniform ones.

    `log_total` : log of the mean of that weight, E_Q R^m of one epoch; no number is far from its range, as all are means.
    Raises NoBracketError where the chain would have too many states, or too large weights. Cost: rounds times transitions.
    """

    def __init__(self, rounds, participations, noise, size):
        self.rounds, self.participations, self.noise, self.size = rounds, participations, noise, size
        if math.comb(size + participations, participations) > MOST_STATES:
            raise NoBracketError("too many states")
        if size * (size - 1) / (2 * noise * noise) > _LARGEST_EXPONENT:
            raise NoBracketError("tuples of this size have too large weights")
        self._chain()
        value, scale = np.ones(len(self.logs)), 0.0
        self.values = [value]  # of r rounds: the mean weight of what remains, in a unit of its own
        for left in range(1, rounds + 1):
            value = (self._weights(left) * value[self.targets]).sum(axis=1)
            top = float(value.max())
            value, scale = value / top, scale + math.log(top)
            self.values.append(value)
        self.log_total = max(scale + math.log(value[0]), 0.0)  # Jensen: E R^m is at least 1

    def _chain(self):
        """The transitions of one round, those of few participations first: `targets`, `taken`, `logs`, shape (states, most transitions),
        and `chosen`, `spared`, with an axis more: how many rows that need j ones get one, or none."""
        k = self.participations
        start = (0,) * (k - 1) + (self.size,)  # rows that still need 1, 2, ..., k ones
        found, queue, rows = {start: 0}, [start], []
        for state in queue:
            moves = []
            for chosen in sorted(product(*(range(have + 1) for have in state)), key=sum):
                after = tuple(have - gone + come for have, gone, come in zip(state, chosen, (*chosen[1:], 0)))
                if after not in found:
                    found[after] = len(found)
                    queue.append(after)
                taken, ways = sum(chosen), math.prod(map(math.comb, state, chosen))
                log = math.log(ways) + taken * (taken - 1) / (2 * self.noise * self.noise)
                moves.append((found[after], taken, log, *chosen, *(have - gone for have, gone in zip(state, chosen))))
            rows.append(moves)
        table = np.zeros((len(rows), max(map(len, rows)), 3 + 2 * k))
        table[:, :, 2] = -math.inf
        for i, moves in enumerate(rows):
            table[i, : len(moves)] = moves
        self.targets, self.taken, self.logs = table[..., 0].astype(int), table[..., 1], table[..., 2]
        self.chosen, self.spared = table[..., 3 : 3 + k], table[..., 3 + k :]

    def _weights(self, left):
        """Weights of the transitions where `left` rounds remain: a row that needs j ones gets one with probability j / left."""
        needs = np.arange(1, self.participations + 1)
        yes = np.log(np.minimum(needs / left, 1.0))
        no = np.log(np.maximum(1 - needs / left, 1e-300))  # never, where all that remain are needed
        return np.exp(self.logs + self.chosen @ yes + self.spared @ no)

    def draw(self, rng, count):
        """How often each round occurs in a tuple, shape (count, rounds)."""
        state = np.zeros(count, dtype=int)
        taken = np.zeros((count, self.rounds))
        for i in range(self.rounds):
            left = self.rounds - i
            mass = np.cumsum(self._weights(left) * self.values[left - 1][self.targets], axis=1)
            level = rng.random(count) * mass[state, -1]
            move, going, j = np.zeros(count, dtype=int), np.arange(count), 0
            while len(going) and j < mass.shape[1] - 1:
                going = going[mass[state[going], j] <= level[going]]
                j += 1
                move[going] = j
            taken[:, i] = self.taken[state, move]
            state = self.targets[state, move]
        return taken


class _Lines(Sampler):
    """Draws of lines, in blocks that fit into memory; what they count is computed by its logarithm."""

    def draw(self, rng):
        rows = max(1, min(BLOCK, _BLOCK_ENTRIES // self.rounds))
        parts = [self.lines(rng, min(rows, BLOCK - start)) for start in range(0, BLOCK, rows)]
        return tuple(np.concatenate(part) for part in zip(*parts))

    def payoffs(self, drawn, epsilon):
        return np.exp(np.minimum(self.log_counts(*drawn, epsilon) - self.log_bound(epsilon), 0.0))


class RemoveSampler(_Lines):
    """Draws for direction remove.

    size : of the tuples, at least 1. spread : False for m-tuples of k-subsets. True for tuples of single rounds, whose density is the power
    M of the mean A of the w_i: R is at most A^k (Maclaurin), so that a draw counts at most what it would with m = M / k. The
    chain is short for any k, and where rounds are many, two of a tuple hardly ever meet.
    """

    def __init__(self, rounds, participations, epochs, noise, size, spread=False):
        self.rounds, self.key = rounds, (size, int(spread))
        self.law = TupleLaw(rounds, 1 if spread else participations, noise, size)
        self.participations, self.epochs, self.noise, self.size, self.spread = participations, epochs, noise, size, spread
        self.order = size / participations if spread else size
        self.slope = participations / noise * math.sqrt(epochs / rounds)
        # log of E_Q R^m, without what the mean direction has in it.
        self.log_total = epochs * self.law.log_total - (self.order * self.slope) ** 2 / 2
        self.log_peak = _highest(lambda x: self._log_call(x) - self.order * x, self.slope) if self.order > 1 else self.slope**2 / 2
        # The logarithm of what a draw counts is concave in log R, its curvature at most 1 / slope^2; and the chain's probabilities.
        error = (size + 1) * epochs * ratio_error(rounds, participations, noise)
        self.extra = (self.order + 1 / self.slope) * error + 64 * EPS * rounds * epochs * len(self.law.logs)

    def _log_call(self, x):
        """log of E (e^(x + slope s) - 1)_+, s standard normal: concave."""
        return x + self.slope**2 / 2 + log_tail_difference(-x / self.slope - self.slope, np.full(x.shape, self.slope))

    def lines(self, rng, count):
        """(log R at the middle of the line, log of the proposal's density over Q's across the lines), shape (count,)."""
        found, density = np.zeros((2, count))
        for _ in range(self.epochs):
            z = self.law.draw(rng, count) / self.noise
            z += rng.standard_normal(z.shape)
            z -= z.mean(axis=1, keepdims=True)
            logs = z / self.noise - 0.5 / self.noise**2
            ratio = log_ratio(logs, self.participations)
            found += ratio
            density += self.size * (log_ratio(logs, 1) if self.spread else ratio)
        return found, density - self.log_total

    def log_bound(self, epsilon):
        """log of the most that a draw can count, at most the Renyi bound of order `order`, of the pair itself or of a law above it."""
        return self.log_total + self.log_peak - (self.order - 1) * epsilon + 1e-9

    def log_counts(self, ratio, density, epsilon):
        return epsilon + self._log_call(ratio - epsilon) - density


def _highest(concave, step):
    """Upper bound of the maximum of a concave function on the line, close to it; step : a scale on which to look."""
    low, high = -step, step
    values = lambda places: concave(np.asarray(places))
    while (pair := values([low, low - step]))[1] > pair[0]:
        low -= step
        step *= 2
    low, step = low - step, high
    while (pair := values([high, high + step]))[1] > pair[0]:
        high += step
        step *= 2
    high += step
    for _ in range(12):
        places = np.linspace(low, high, 33)
        top = int(np.argmax(values(places)))
        low, high = places[max(top - 1, 0)], places[min(top + 1, 32)]
        if high - low < 1e-4:
            break
    middle = (low + high) / 2
    left, centre, right = values([low, middle, high])
    # Right of the middle the function is below the chord from the left, and the other way round.
    return float(2 * max(left, centre, right) - min(left, centre, right))


class AddSampler(_Lines):
    """The same for direction add; step : by how many standard deviations the squared norm of the other directions is less in half of the draws."""

    def __init__(self, rounds, participations, epochs, noise, step):
        self.key = (int(2 * step),)
        self.rounds, self.participations, self.epochs, self.noise, self.step = rounds, participations, epochs, noise, step
        self.dimension = epochs * (rounds - 1)
        self.log_shrunk = -step / math.sqrt(2 * max(self.dimension, 1))  # log of the factor
        self.slope = participations / noise * math.sqrt(epochs / rounds)
        self.floor = -participations * epochs / (2 * noise * noise)  # of log R, across
        self.extra = 4 * epochs * ratio_error(rounds, participations, noise) * (1 + 1 / self.slope + self.slope) ** 2 + 1e-12

    def lines(self, rng, count):
        """(log R at the middle of the line, log of Q's density over the proposal's), shape (count,)."""
        factor = np.where(rng.random(count) < 0.5, math.exp(self.log_shrunk), 1.0) if self.step else np.ones(count)
        found, square = np.zeros(count), np.zeros(count)
        for _ in range(self.epochs):
            z = rng.standard_normal((count, self.rounds))
            z -= z.mean(axis=1, keepdims=True)
            z *= factor[:, None]
            square += (z * z).sum(axis=1)
            found += log_ratio(z / self.noise - 0.5 / self.noise**2, self.participations)
        growth = -self.dimension * self.log_shrunk - square * math.expm1(-2 * self.log_shrunk) / 2
        weight = math.log(2) - np.logaddexp(0.0, growth) if self.step else np.zeros(count)
        return np.maximum(found, self.floor), weight

    def log_bound(self, epsilon):
        top = float(log_tail_difference(np.array((epsilon + self.floor) / self.slope), np.array(self.slope)))
        return top + (math.log(2) if self.step else 0.0) + 1e-9

    def log_counts(self, across, weight, epsilon):
        return log_tail_difference((epsilon + across) / self.slope, np.full(len(across), self.slope)) + weight
