"""Mixture pairs in many dimensions, integrated exactly along one direction and sampled across it.

The pair is P = sum_S w_S N(m_S, I), Q = N(0, I), in units of the noise. Along a
direction u with <m_S, u> >= 0 for all S the likelihood ratio R = P/Q increases:

    R(y + t u) = sum_S exp(l_S(y) + a_S t),     a_S = <m_S, u>.

So {R > e^eps} meets the line in a half-line, and with t* where R = e^eps, the shares
w_S = exp(l_S + a_S t*) / e^{+-eps} and Mills' ratio M(s) = Phi(-s) / phi(s)

    remove:  int (R - e^eps)_+ phi dt = e^eps phi(t*) (sum_S w_S M(t* - a_S) - M(t*))
    add:     int (1 - e^eps R)_+ phi dt = phi(t*) (M(-t*) - sum_S w_S M(a_S - t*)).

What is left is an average over y of a smooth function. Its largest part lies
near y = 0, or around few other places where the noise is small: a mixture of Gaussians
proposes y there, by scrambled Sobol points.

`Modes` lists all 2^n modes of an encoder; `Forest` counts the participations in
binary trees by an exact recursion over their nodes.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtrc, log_ndtr, ndtri

from .._base.log_space import mills_ratio
from ..gaussian import LOG_SQRT_2PI
from ..results import NoBracketError

_TABLE = 2**18  # numbers in one table of points x modes: it stays in the cache
_LOWEST = -200.0  # log of the delta that a mode must reach on its own to be looked at
_DEFENSIVE = 0.1  # share of points drawn from Q itself, which bounds the weights by 10


# ------------------------------------------------------------------ one line


def crossing(log_weights, slopes, level):
    """Where log sum_S exp(l_S + a_S t) = level, row by row.

    log_weights : shape (points, modes). slopes : shape (modes,), at least 0.
    level : above the log of the sum of the terms with slope 0.

    Returns (t, shares of the modes at t, derivative, residual). The sum is convex in t and at least
    each term: Newton's steps from the first crossing of a single term only go left, and no term exceeds 1.
    """
    rising = slopes > 0
    lowered = log_weights - level
    t = np.min(-lowered[:, rising] / slopes[rising], axis=1)
    shares = np.empty_like(lowered)
    for _ in range(200):
        np.multiply(t[:, None], slopes, out=shares)
        shares += lowered
        np.exp(shares, out=shares)
        total = shares.sum(axis=1)
        derivative = (shares @ slopes) / total
        residual = np.log(total)
        step = residual / derivative
        # An integral that ends off the crossing is off by the square of the distance only.
        if np.all(np.abs(step) <= 1e-5):
            break
        t = t - step
    shares /= total[:, None]
    return t, shares, derivative, residual


class HalfLine:
    """The hockey stick on lines: `parts` are delta and its first two derivatives in epsilon.

    parts : shape (points, 3), to be multiplied by exp(log_scale); pull : shape (points, modes),
    the weights with which the modes enter the gradient of log delta across the lines.
    """

    def __init__(self, log_weights, slopes, epsilon, direction):
        remove = direction == "remove"
        sign = 1.0 if remove else -1.0
        t, shares, derivative, residual = crossing(log_weights, slopes, sign * epsilon)
        reach = sign * (t[:, None] - slopes)
        far = reach.min() < -30  # Mills' ratio itself would leave the range of a float
        if far:
            with np.errstate(divide="ignore"):
                terms = np.log(shares) + (log_ndtr(-reach) + 0.5 * reach**2 + LOG_SQRT_2PI)
            top = np.maximum(terms.max(axis=1), 0.0)
            terms = np.exp(terms - top[:, None])
        else:
            top = np.zeros(len(t))
            terms = shares * mills_ratio(reach)
        one = mills_ratio(sign * t) * np.exp(-top)
        with_mode = terms.sum(axis=1)
        if far:
            value = sign * (with_mode - one)
        else:  # the difference of each term, so that small slopes do not cancel
            value = sign * (terms - shares * one[:, None]).sum(axis=1)
        value += sign * np.expm1(residual) * with_mode
        first = -one if remove else -with_mode
        second = first + np.exp(-top) / derivative
        self.log_scale = (epsilon if remove else 0.0) - 0.5 * t**2 - LOG_SQRT_2PI + top
        self.parts = np.stack([np.maximum(value, 0.0), first, second], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.log_value = np.log(self.parts[:, 0]) + self.log_scale
            self.pull = sign * terms / self.parts[:, :1]


# ------------------------------------------------------------------ two kinds of pairs


class _Pair:
    """What both kinds have in common."""

    def largest(self, direction):
        """No loss of this direction exceeds it: R is at least its value without participations."""
        return math.inf if direction == "remove" else -self._rounds * math.log1p(-self._probability)


class Modes(_Pair):
    """All 2^n sets of rounds; the modes are sums of the columns of `array`, in units of the noise.

    array : shape (rows, n), entries at least 0, no empty column. probability in (0, 1).
    `dimension` is the number of coordinates across the direction u = C 1 / ||C 1||.
    """

    left_out = 0.0

    def __init__(self, array, probability):
        n = array.shape[1]
        basis, values, _ = np.linalg.svd(array, full_matrices=False)
        columns = basis[:, values > 1e-13 * values[0]].T @ array
        direction = columns.sum(axis=1)
        # The first column of Q is +-u; the others are a basis across it.
        across = np.linalg.qr(np.column_stack([direction, np.eye(len(direction))]))[0][:, 1:]
        self.dimension = across.shape[1]
        sets = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(float)
        size = sets.sum(axis=1)
        # Entries are at least 0: no inner product of columns is below 0 but for rounding.
        self.slopes = sets @ np.maximum(columns.T @ direction, 0.0) / np.linalg.norm(direction)
        self.across = sets @ (columns.T @ across)  # (2^n, dimension)
        self.squares = np.einsum("sd,sd->s", sets @ columns.T, sets @ columns.T)
        self._log_prior = size * math.log(probability) + (n - size) * math.log1p(-probability)
        self._constant = self._log_prior - 0.5 * self.squares
        self._rounds, self._probability = n, probability
        self.chunk = max(1, _TABLE // 2**n)

    def log_weights(self, y):
        """l_S(y) for points y of shape (points, dimension): shape (points, modes)."""
        return y @ self.across.T + self._constant

    def proposal(self, epsilon, direction, pilot=None):
        """Where delta comes from: the maxima of its density across u, and the single modes that matter.

        In the add direction that density is log-concave: there is one maximum.
        """
        from scipy.optimize import minimize

        if not self.dimension:
            return Proposal(0)

        def descent(y):
            line = HalfLine(self.log_weights(y[None]), self.slopes, epsilon, direction)
            if not np.isfinite(line.log_value[0]):
                return 1e9, np.zeros(self.dimension)
            return 0.5 * (y @ y) - line.log_value[0], y - line.pull[0] @ self.across

        starts, bumps = [np.zeros(self.dimension)], []
        if direction == "remove":
            # Mode S alone crosses e^eps on the ray through m_S; P has most of its mass beyond that near places[S].
            moved = np.flatnonzero(self.squares > 1e-6)
            prior, squares = self._log_prior[moved], self.squares[moved]
            scale = np.maximum(0.5 + (epsilon - prior) / squares, 1.0)
            heights = prior - 0.5 * (scale - 1) ** 2 * squares
            highest = np.argsort(-heights, kind="stable")[:400]
            highest = highest[heights[highest] > _LOWEST]
            heights, places = heights[highest], scale[highest, None] * self.across[moved[highest]]
            starts += list(places[: len(self.slopes).bit_length()])
        found = []
        for start in starts:
            best = minimize(descent, start, jac=True, method="BFGS", options={"gtol": 1e-3})
            if all(np.linalg.norm(best.x - other) > 0.3 for other, _, _ in found):
                steps = 1e-4 * np.eye(self.dimension)
                bend = [(descent(best.x + s)[1] - descent(best.x - s)[1]) / 2e-4 for s in steps]
                widths, axes = np.linalg.eigh(np.array(bend) / 2 + np.array(bend).T / 2)
                widths = 1.1 / np.sqrt(np.clip(widths, 0.15, 8.0))
                found.append((best.x, axes * widths, float(np.log(widths).sum()) - best.fun))
        if direction == "remove":
            bumps = places[heights > max(height for *_, height in found) - 12]
        return Proposal(self.dimension, [(mean, factor) for mean, factor, _ in found], bumps)


class Forest(_Pair):
    """Binary trees with `leaves` rounds each, by counting participations node by node [M-tree].

    The columns of the encoder have equal sums of inner products, so the direction u = C 1 / ||C 1||
    sees only the number of participations: mode k has slope k a. Across u stand the differences
    between the trees, then of the two halves of each node (a Haar basis, upper nodes first).

    left_out : upper bound on the probability of more participations than are counted.
    """

    def __init__(self, leaves, trees, probability, noise_multiplier, left_out):
        n = leaves * trees
        self.leaves, self.trees, self.height = leaves, trees, leaves.bit_length() - 1
        self._probability, self._noise = probability, noise_multiplier
        counts = np.arange(n + 1)
        tails = bdtrc(counts, n, probability)
        self._most = max(int(np.argmax(tails <= left_out)), 1)  # how rare it may be: the loss needs a mode that rises
        self.left_out = float(tails[self._most])
        self.slopes = counts[: self._most + 1] * (math.sqrt((2 * leaves - 1) / n) / noise_multiplier)
        self.dimension = n - 1
        nodes = [np.full(trees * (leaves >> h), h) for h in range(self.height, 0, -1)]
        self._levels = np.concatenate([np.full(trees - 1, self.height + 1), *nodes])
        self._rounds = n
        self.chunk = max(1, min(256, 4 * _TABLE // n))

    def log_weights(self, y):
        """log of the sum of the terms with k participations, at t = 0: shape (points, counts)."""
        message, log_scale = self._trees(y.T)
        while message.shape[1] > 1:  # the trees are independent: join them in pairs
            pairs = message.shape[1] // 2
            joined = self._join(message[:, : 2 * pairs])
            if message.shape[1] % 2:
                last = np.zeros((len(joined), 1, len(y)))
                last[: len(message)] = message[:, -1:]
                joined = np.concatenate([joined, last], axis=1)
            message = joined
        with np.errstate(divide="ignore"):
            return (np.log(message[:, 0]) + log_scale).T

    def _trees(self, z):
        """Weights of the participations in each tree, (counts, trees, points), and a common log scale."""
        from scipy.fft import idct

        leaves, noise, points = self.leaves, self._noise, z.shape[1]
        # The mean of x over a node, in units of the noise; x of a node is its size times that.
        means = [np.zeros((1, points))]
        if self.trees > 1:
            between = np.concatenate([means[0], z[: self.trees - 1]])
            means = [idct(between, axis=0, norm="ortho") / math.sqrt(leaves * (2 * leaves - 1))]
        used = self.trees - 1
        for height in range(self.height, 0, -1):
            nodes = len(means[-1])
            tilt = z[used : used + nodes] / math.sqrt(2**height * (2**height - 1))
            used += nodes
            halves = np.empty((2 * nodes, points))
            halves[0::2], halves[1::2] = means[-1] + tilt, means[-1] - tilt
            means.append(halves)
        message = np.empty((2, self.trees * leaves, points))
        message[0], message[1] = 1 - self._probability, self._probability
        log_scale = np.zeros(points)
        for height in range(self.height + 1):
            if height:
                message = self._join(message)
            count = np.arange(len(message))[:, None, None]
            gain = count * (means[self.height - height] * (2**height / noise)) - count**2 / (2 * noise**2)
            top = gain.max(axis=0)
            message *= np.exp(gain - top)
            size = message.max(axis=0)  # keep the largest at 1, so that no product underflows
            message /= size
            log_scale += (top + np.log(size)).sum(axis=0)
        return message, log_scale

    def _join(self, message):
        """Counts of two neighbours added up: products of polynomials, cut at the largest count."""
        left, right = message[:, 0::2], message[:, 1::2]
        most = min(2 * (len(message) - 1), self._most)
        joined = np.zeros((most + 1, *left.shape[1:]))
        for count, weight in enumerate(left):
            width = min(len(right), most + 1 - count)
            joined[count : count + width] += weight * right[:width]
        return joined

    def proposal(self, epsilon, direction, pilot=None):
        """Independent coordinates; the spread of each level from pilot points (y, weights of delta)."""
        if not self.dimension:
            return Proposal(0)
        spread = np.ones(self.dimension)
        if pilot is not None:
            y, weights = pilot
            if not weights.sum() > 0:
                raise NoBracketError("delta is too small to be sampled: no point of the pilot run reaches it")
            second = weights @ y**2 / weights.sum()
            for level in range(1, self.height + 2):
                here = self._levels == level
                if here.any():
                    spread[here] = math.sqrt(min(max(second[here].mean(), 0.3), 4.0))
        return Proposal(self.dimension, [(np.zeros(self.dimension), spread)])


# ------------------------------------------------------------------ sampling


class Proposal:
    """A mixture of Gaussians: bells (mean, factor), bumps N(mean, I), and N(0, I) with share 0.1.

    factor : shape (d, d), or (d,) for independent coordinates; z -> mean + factor z.
    """

    def __init__(self, dimension, bells=(), bumps=()):
        self.dimension = dimension
        self._bells = list(bells)
        self._centres = np.array([*bumps, np.zeros(dimension)])
        count = len(self._bells) + len(bumps)
        self.shares = np.append(np.full(count, (1 - _DEFENSIVE) / max(count, 1)), _DEFENSIVE)
        self.shares /= self.shares.sum()

    def draw(self, seed, count):
        """Points (count, dimension) and the logs of density of Q over that of the proposal."""
        from scipy.stats import qmc

        if not self.dimension:
            return np.zeros((1, 0)), np.zeros(1)
        generator = np.random.default_rng(seed)
        sobol = qmc.Sobol(self.dimension + 1, scramble=True, seed=generator)
        uniform = sobol.random(count) + 2.0**-31  # centres of cells; never 0
        z = ndtri(uniform[:, 1:])
        which = np.minimum(np.searchsorted(np.cumsum(self.shares), uniform[:, 0]), len(self.shares) - 1)
        bumps = which >= len(self._bells)
        y = np.empty_like(z)
        y[bumps] = z[bumps] + self._centres[which[bumps] - len(self._bells)]
        for number, (mean, factor) in enumerate(self._bells):
            mine = which == number
            y[mine] = mean + (z[mine] * factor if factor.ndim == 1 else z[mine] @ factor.T)
        with np.errstate(divide="ignore"):
            return y, -np.logaddexp.reduce(self._log_ratios(y) + np.log(self.shares), axis=1)

    def _log_ratios(self, y):
        """Logs of the density of each component over that of Q, shape (points, components)."""
        columns = []
        for mean, factor in self._bells:
            if factor.ndim == 1:
                z, log_size = (y - mean) / factor, np.log(factor).sum()
            else:
                z, log_size = np.linalg.solve(factor, (y - mean).T).T, np.linalg.slogdet(factor)[1]
            columns.append(0.5 * (y**2 - z**2).sum(axis=1) - log_size)
        bumps = y @ self._centres.T - 0.5 * (self._centres**2).sum(axis=1)
        return np.column_stack([*columns, bumps])

    def improve(self, y, weights):
        """New shares: the part of delta that each component explains (one step of expectation-maximisation)."""
        if len(self.shares) > 2 and weights.sum() > 0:
            part = self._log_ratios(y) + np.log(self.shares)
            part = np.exp(part - np.logaddexp.reduce(part, axis=1)[:, None])
            explained = weights @ part / weights.sum()
            explained[:-1] = np.maximum(explained[:-1], 0.1 / len(explained))
            self.shares = explained * ((1 - _DEFENSIVE) / explained[:-1].sum())
            self.shares[-1] = _DEFENSIVE


def integrand(pair, y, log_ratio, epsilon, direction):
    """delta and its derivatives at points y, weighted: shape (points, 3)."""
    values = np.empty((len(y), 3))
    for start in range(0, len(y), pair.chunk):
        rows = slice(start, start + pair.chunk)
        line = HalfLine(pair.log_weights(y[rows]), pair.slopes, epsilon, direction)
        values[rows] = line.parts * np.exp(line.log_scale + log_ratio[rows])[:, None]
    return values
