"""Unbiased samples of delta that never exceed a known bound: the tuple sampler [A-15].

With modes m_1 .. m_b in units of the noise, w = dP/dQ = mean_l exp(y_l), y_l = <m_l, x> - gram_ll / 2:

    remove  delta = E_Q (w - e^eps)_+. Expanding w^k turns it into the mean over tuples J of k indices of
            rho(J) E[(w - e^eps)_+ / w^k], x ~ N(sum of the modes in J, I). The payoff is at most
            (1/k) (1 - 1/k)^(k-1) e^(-(k-1) eps), and `tuple_law` bounds rho.
    add     delta = E_Q (1 - e^eps w)_+. The region w < e^-eps lies in a half-space: draws conditioned on it
            have payoffs at most the probability of the half-space.

Each sample is an average over a line. In the direction of the sum of the modes in J (remove), or of
the normal of the half-space (add), this lowers the variance and keeps mean, bound and independence. In one
direction common to all tuples, in which every y_l rises, it lowers the bound as well: log w cannot
stay where the payoff is large.
Everything is rounded in the safe direction: `slack` bounds the error of every logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base.lazy_scipy import special
from .proposal_add import nearest
from .tuple_law import TupleLaw

UNIT = 2.0**-53
BLOCK = 4096  # samples drawn at once
_ROWS = 256  # of them, worked on at once: their tables stay in the processor's cache
_FARTHEST = 6.5  # normals beyond it are not resolved well enough: such a sample counts as the bound
_REACH = 6.0  # of the line on either side; what lies beyond is added at its bound
_STEP = 0.25  # of the lattice on the line; finer ones hardly lower the variance or the peak
_BEYOND = 2 * 9.9e-10  # > Pr[|N(0, 1)| > _REACH]
_LINE_POINTS = 8  # of the add direction
_SMALLEST_DIAGONAL = 1e-3  # of the largest: smaller entries are raised to it, which can only raise delta
_LARGEST_SLACK = 1e-6
_LARGEST_LOG = 300.0  # of the bound
_LARGEST_DIAGONAL = 600.0  # so that the largest exponential anywhere on the line is above e^-300 of all
_ALLOWANCE = 1e-9


class OutOfRange(ValueError):
    """Modes beyond what doubles resolve."""


@dataclass(frozen=True)
class Factor:
    """A matrix whose exact Gram matrix is, entry by entry, at least the one given [M-K].

    rows : shape (b, b + 1). gram : rows @ rows.T as computed. unit : relative error of inner products.
    """

    rows: np.ndarray
    gram: np.ndarray
    unit: float


def factor(gram):
    """A `Factor` of an upper bound of the Gram matrix (in units of the noise): symmetric, entries >= 0."""
    diagonal = gram.diagonal()
    gram = gram + np.diag(np.maximum(0.0, _SMALLEST_DIAGONAL * diagonal.max() - diagonal))
    values, vectors = np.linalg.eigh(gram)
    rows = vectors * np.sqrt(np.maximum(values, 0.0))
    unit = 2 * (len(gram) + 8) * UNIT
    # What the rounded factor misses, plus the rounding of this very check.
    missing = (gram - rows @ rows.T).max() + 2 * unit * (np.abs(rows) @ np.abs(rows).T + gram).max()
    extra = math.sqrt(max(missing, 0.0)) * (1 + 4 * UNIT)
    rows = np.column_stack([rows, np.full(len(gram), extra)])
    return Factor(rows, np.maximum(rows @ rows.T, 0.0), unit)


# ------------------------------------------------------------------------------- remove


@dataclass(frozen=True)
class RemoveSampler:
    """Samples of the remove direction, in units of `bound`; made by `remove_sampler`."""

    epsilon: float
    factor: Factor
    law: TupleLaw
    bound: float
    slack: float  # of y and of log w
    log_slack: float  # of log rho, and of the rest of a payoff
    missed: float  # total variation between the drawn tuples and their law
    peak: float = 1.0  # the largest average of a payoff over a line, in units of the largest payoff
    common: np.ndarray | None = None  # of the modes, for the direction of all lines; None: that of each tuple

    @property
    def size(self):
        return self.law.size

    @property
    def extra(self):
        """To be added to a bound on the mean, in units of `bound`."""
        return self.missed + _BEYOND / self.peak

    def __call__(self, rng, index=0):
        """BLOCK independent samples in [0, 1]."""
        counts = self.draw_counts(rng)
        normals, valid = _normals(rng, (len(counts), self.factor.rows.shape[1]))
        offsets = rng.random(len(counts))
        noise = normals @ self.factor.rows.T
        forces = counts @ self.factor.gram  # k s
        forms = np.einsum("ij,ij->i", counts, forces)  # k^2 q
        if self.common is None:
            lengths = np.sqrt(forms)
            slopes = forces / lengths[:, None]
            along = np.einsum("ij,ij->i", counts, noise) / lengths
        else:
            slopes = np.broadcast_to(self.factor.gram @ self.common, forces.shape)
            along = noise @ self.common
        base = forces - self.factor.gram.diagonal() / 2 + noise - along[:, None] * slopes
        logs = self.log_ratios(forces, forms) - math.log(self.bound)
        result = np.empty(len(counts))
        for start in range(0, len(counts), _ROWS):
            part = slice(start, start + _ROWS)
            result[part] = self._line(base[part], slopes[part], offsets[part], logs[part])
        result *= math.exp(self.log_slack + (self.law.size + 1) * self.slack)
        return _capped(result, valid)

    def draw_counts(self, rng):
        """How often each index stands in each tuple; shape (BLOCK, b)."""
        law, gram = self.law, self.factor.gram
        bins = len(gram)
        chances = np.exp(
            np.log(law.weights)[:, None] + law.size * law.log_means - law.log_totals[:, None]
        ).ravel()
        ends = np.cumsum(chances)
        components = np.minimum(np.searchsorted(ends / ends[-1], rng.random(BLOCK), side="right"), len(ends) - 1)
        uniforms = rng.random((BLOCK, law.size))
        order = np.argsort(components, kind="stable")
        present, starts = np.unique(components[order], return_index=True)
        counts = np.empty((BLOCK, bins))
        for component, rows in zip(present, np.split(order, starts[1:])):
            level, center = divmod(int(component), bins)
            exponents = law.levels[level] * gram[center] - gram.diagonal() / 2
            ends = np.cumsum(np.exp(exponents - exponents.max()))
            indices = np.minimum(np.searchsorted(ends / ends[-1], uniforms[rows], side="right"), bins - 1)
            flat = indices + bins * np.arange(len(rows))[:, None]
            counts[rows] = np.bincount(flat.ravel(), minlength=bins * len(rows)).reshape(len(rows), bins)
        return counts

    def log_ratios(self, forces, forms):
        """log rho of tuples with forces = k s, forms = k^2 q."""
        law = self.law
        terms = []
        for level, weight, total in zip(law.levels, law.weights, law.log_totals):
            if level == 0:
                terms.append(np.full(len(forces), math.log(weight * forces.shape[1]) - total))
                continue
            top = forces.max(axis=1)
            sums = np.exp(level * (forces - top[:, None])).sum(axis=1)
            terms.append(np.log(sums) + level * top + math.log(weight) - total)
        return forms / 2 - np.logaddexp.reduce(terms, axis=0)

    def _line(self, base, slopes, offsets, logs):
        """sum_i step phi(t_i) payoff(t_i) over the lattice t_i = step (i + offset) inside the reach."""
        half = round(_REACH / _STEP)
        first = _STEP * (offsets - half)
        top = (base + _REACH * slopes).max(axis=1)
        values = np.exp(base + first[:, None] * slopes - top[:, None])
        ratio = np.exp(_STEP * slopes)
        means = np.empty((len(base), 2 * half))
        average = np.full(base.shape[1], 1 / base.shape[1])
        for i in range(2 * half):
            means[:, i] = values @ average
            values *= ratio
        points = first[:, None] + _STEP * np.arange(2 * half)
        log_w = np.log(means) + top[:, None]
        below = self.epsilon - self.slack - log_w
        paying = np.nonzero(below < 0)
        log_w, below, points = log_w[paying], below[paying], points[paying]
        terms = np.exp((1 - self.law.size) * log_w + logs[paying[0]] - points**2 / 2) * -np.expm1(below)
        return np.bincount(paying[0], terms, len(base)) * (_STEP / math.sqrt(2 * math.pi))


class PlainSampler(RemoveSampler):
    """Tuples of one index, all with equal chances: the payoff is at most 1, the best bound for delta near 1."""

    def draw_counts(self, rng):
        bins = len(self.factor.gram)
        return np.eye(bins)[rng.integers(bins, size=BLOCK)]

    def log_ratios(self, forces, forms):
        return np.zeros(len(forces))


def plain_sampler(factor, epsilon):
    """The sampler of the remove direction without tuples. Raises OutOfRange beyond what doubles resolve."""
    zero, one = np.zeros(1), np.ones(1)
    law = TupleLaw(1, zero, one, np.zeros((1, len(factor.gram))), zero, 0.0)
    slack, log_slack, missed = _rounding(factor, law, None)
    _check_range(factor, slack, log_slack, 0.0, 1)
    return PlainSampler(epsilon, factor, law, math.exp(_ALLOWANCE + 2 * log_slack), slack, log_slack, missed)


def remove_sampler(factor, epsilon, law, common=False):
    """The sampler of the remove direction for one tuple law; common: with one direction for all lines.

    Raises OutOfRange beyond what doubles resolve.
    """
    k = law.size
    weights, slope = common_direction(factor.gram) if common else (None, 0.0)
    slack, log_slack, missed = _rounding(factor, law, weights)
    log_payoff = (k - 1) * math.log1p(-1 / k) - math.log(k) + (1 - k) * epsilon
    log_bound = law.log_ratio + log_payoff + _ALLOWANCE + 2 * log_slack
    _check_range(factor, slack, log_slack, log_bound, k)
    peak = line_peak(k, slope) if common else 1.0
    bound = math.exp(log_bound) * peak
    return RemoveSampler(epsilon, factor, law, bound, slack, log_slack, missed, peak, weights)


def _check_range(factor, slack, log_slack, log_bound, size):
    largest = float(factor.gram.diagonal().max())
    if max(slack, log_slack) > _LARGEST_SLACK or largest > _LARGEST_DIAGONAL or log_bound > _LARGEST_LOG:
        raise OutOfRange(
            f"gram must be small enough for double precision with tuples of {size}; got entries up to {largest:.3g}"
        )


def common_direction(gram):
    """Weights of the modes whose sum has length 1, and the least rise of any y_l along it, rounded down.

    The best is the point of the modes' convex hull that is closest to 0: the minimum of v' gram v - 2 sum v over
    v >= 0, where gram v >= 1, by multiplicative updates. Any other weights are valid too: the best seen are taken.
    """
    best = -1.0, None
    weights = np.ones(len(gram))
    for _ in range(200):
        rises = gram @ weights
        length = math.sqrt(weights @ rises)
        if (slope := float(rises.min()) / length) > best[0]:
            best = slope, weights / length
        weights = weights / rises
    slope, weights = best
    return weights, max(0.0, slope * (1 - _ALLOWANCE) - 1e-12 * float(gram.max()) * float(weights.sum()))


def line_peak(size, slope):
    """Upper bound on a lattice average of the payoff over a line on which log w rises at least with `slope`.

    In units of the largest payoff. On such a line the payoff at t is at most the one where log w
    rises with exactly this slope, from its best value at some t_0: it falls to both sides of that value. What
    remains is a function of t_0 and of the lattice's offset; boxes of the two are divided until the bound is within 1%.
    """
    half = round(_REACH / _STEP)
    steps = _STEP * np.arange(-half, half)

    def payoff(rise):  # of log w above its best value
        excess = rise - math.log1p(-1 / size)  # of log w above epsilon
        scale = (size - 1) * math.log1p(-1 / size) - math.log(size)
        safe = np.maximum(excess, 1e-300)
        return np.where(excess > 0, -np.expm1(-safe) * np.exp((1 - size) * safe - scale), 0.0)

    def average(near, rise):
        return (np.exp(-(near**2) / 2) * payoff(slope * rise)).sum(axis=1) * _STEP / math.sqrt(2 * math.pi)

    # Rows: centre of t_0, of the offset, and half their widths. Where |t_0| is beyond the reach
    # every payoff on the lattice is less than for t_0 at its end.
    boxes = np.array(
        [
            (t, v, 0.125, 0.125)
            for t in np.arange(-_REACH, _REACH + 0.1, 0.25)
            for v in (0.125, 0.375, 0.625, 0.875)
        ]
    )
    done, best = 0.0, 0.0
    while len(boxes):
        center, offset, width, doubt = boxes.T[:, :, None]
        points = steps + _STEP * offset
        reach = _STEP * doubt
        near = np.maximum(np.abs(points) - reach, 0.0)
        gap = points - center
        upper = average(near, np.sign(gap) * np.maximum(np.abs(gap) - reach - width, 0.0))
        best = max(best, float(average(points, gap).max()))
        open_boxes = upper > 1.01 * best
        done = max(done, float(upper[~open_boxes].max(initial=0.0)))
        boxes = boxes[open_boxes]
        quarters = [
            boxes + boxes[:, [2, 3, 2, 3]] * np.array([x, y, -0.5, -0.5])
            for x in (-0.5, 0.5)
            for y in (-0.5, 0.5)
        ]
        boxes = np.concatenate(quarters)
    return min(1.0, done * (1 + _ALLOWANCE))


def _rounding(factor, law, common):
    """Bounds on the errors of y and log w, of log rho, and on the total variation between drawn tuples and their law.

    With d the largest diagonal entry, every inner product of modes is off by at most unit * d, each coordinate of
    the noise by unit * sqrt(d) |z|. The direction of a tuple's line is known as well as q, which is at
    least the smallest diagonal entry over the number of different indices; a common one as well as its length.
    """
    k, gram, unit = law.size, factor.gram, factor.unit
    bins, largest = len(gram), float(gram.diagonal().max())
    norm = math.sqrt(largest)
    radius = _FARTHEST * math.sqrt(bins + 1)
    if common is None:
        direction = 4 * min(k, bins) * largest / float(gram.diagonal().min())
    else:
        direction = 4 * largest * float(common.sum()) ** 2
    slack = unit * ((2 * k + 1) * largest + norm * radius)
    slack += unit * norm * (radius + _REACH) * (4 + 2 * direction)
    # Normals are resolved to 1.1e-10, and used twice; then exponentials, sums and the recurrence.
    slack += 3e-10 * norm * math.sqrt(bins + 1)
    slack += 4 * UNIT * (1000 + bins + k * largest + norm * radius)
    exponent = float(law.levels.max() + 1) * largest
    log_slack = 8 * (k * k + k * exponent) * unit * max(largest, 1.0) + 1e-12
    per_draw = 2 * unit * exponent + 8 * UNIT * (bins + 2) ** 2
    component = unit * (1 + float(np.abs(law.log_means).max()))
    missed = 4 * k * (per_draw + component) + 4 * UNIT * (law.log_means.size + 2) ** 2
    return slack, log_slack, missed


# ---------------------------------------------------------------------------------- add


@dataclass(frozen=True)
class AddSampler:
    """Samples of the add direction, in units of `bound`; made by `add_sampler`."""

    epsilon: float
    factor: Factor
    bound: float
    slack: float
    threshold: float  # tau: the region lies in <v, x> <= -tau
    direction: np.ndarray  # <m_l, v>
    weights: np.ndarray  # omega / ||m_omega||: <v, x> from the <m_l, x>

    @property
    def extra(self):
        return 0.0

    def __call__(self, rng, index=0):
        """BLOCK independent samples in [0, 1]."""
        normals, valid = _normals(rng, (BLOCK, self.factor.rows.shape[1]))
        noise = normals @ self.factor.rows.T
        base = noise - self.factor.gram.diagonal() / 2 - (noise @ self.weights)[:, None] * self.direction
        chance = float(special.ndtr(-self.threshold))
        result = np.zeros(BLOCK)
        for i in range(_LINE_POINTS):
            places = rng.random(BLOCK)
            points = special.ndtri(chance * ((i + places) / _LINE_POINTS))
            # The first part reaches into the tail, where 53 bits resolve less.
            resolved = (points < 5) & ((places > 1e-7) | (i > 0))
            points = np.where(resolved, points, 0.0)
            y = base + points[:, None] * self.direction
            top = y.max(axis=1)
            log_w = top + np.log(np.exp(y - top[:, None]).mean(axis=1))
            payoff = -np.expm1(np.minimum(0.0, self.epsilon - self.slack + log_w))
            result += np.where(resolved, payoff, 1.0)
        result *= 1 / _LINE_POINTS
        return _capped(result, valid)


def add_sampler(factor, epsilon):
    """The sampler of the add direction: the half-space is the supporting one, up to a numerical maximum."""
    gram, unit = factor.gram, factor.unit
    omega, threshold = half_space(gram, epsilon)
    threshold = min(threshold, 35.0)  # a larger half-space; its probability must not underflow
    bins, largest = len(gram), float(gram.diagonal().max())
    length, norm = math.sqrt(omega @ gram @ omega), math.sqrt(largest)
    radius = _FARTHEST * math.sqrt(bins + 1)
    slack = 8 * unit * (largest + norm * radius)
    slack += 8 * unit * norm * (2 * radius + _FARTHEST + abs(threshold)) * (4 + largest / length**2)
    # Normals, used twice, and the points on the line, which are resolved to 6e-10.
    slack += 3e-10 * norm * math.sqrt(bins + 1) + 1e-9 * norm
    if slack > _LARGEST_SLACK:
        raise OutOfRange(f"gram must be small enough for double precision; got entries up to {largest:.3g}")
    bound = float(special.ndtr(-threshold)) * (1 + _ALLOWANCE)
    return AddSampler(epsilon, factor, bound, slack, threshold, gram @ omega / length, omega / length)


def half_space(gram, epsilon):
    """Weights omega and tau: {log w < -epsilon} lies in {<m_omega, x> < -tau ||m_omega||}, whatever the weights.

    log w >= sum_l omega_l (y_l - log(b omega_l)) by concavity. The largest tau is that of the point of the region
    nearest to 0; any other weights would be valid too.
    """
    bins, half = len(gram), gram.diagonal() / 2
    omega = nearest(gram, math.log(bins) - epsilon)
    length = math.sqrt(omega @ gram @ omega)
    threshold = (epsilon - omega @ half - omega @ np.log(bins * np.maximum(omega, 1e-300))) / length
    # It is lowered by its rounding, so that the half-space is not too small: sums have `bins` terms.
    doubt = 1 + (1 + half.max() + epsilon) / length + 2 * half.max() / length**2
    return omega, threshold - (1e-12 + 1e-15 * bins) * (1 + abs(threshold)) * doubt


# ------------------------------------------------------------------------------- normals


def _capped(result, valid):
    """Samples clipped to 1; those from unresolved normals count as 1."""
    if result.max(initial=0.0) > 1 + 1e-5:
        raise ArithmeticError(
            f"a sample exceeds its bound, {result.max():.6g} times: the certificate is void"
        )
    return np.where(valid, np.minimum(result, 1.0), 1.0)


def _normals(rng, shape):
    """Standard normals by inversion, and whether all of a row are inside the resolved range.

    63 random bits for the distance from the centre and one for the sign: the spacing of the uniform
    numbers is 2^-64 in both tails. Up to _FARTHEST an ideal normal with the same leading bits differs by
    less than 1.1e-10.
    """
    bits = rng.integers(0, 2**64, size=shape, dtype=np.uint64)
    uniforms = ((bits >> np.uint64(1)).astype(float) + 0.5) * 2.0**-64
    normals = special.ndtri(uniforms)
    valid = normals.min(axis=1) > -_FARTHEST
    normals *= 1.0 - 2.0 * (bits & np.uint64(1)).astype(float)
    return normals, valid
