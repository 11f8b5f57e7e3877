"""Near-exact delta and epsilon of small matrix mechanisms, to compare bounds with.

A record that takes part in the rounds S shifts the noise by C 1_S, and each round is in S
with probability p on its own. The pair is

    P = sum_S p^|S| (1-p)^(n-|S|) N(C 1_S, sigma^2 I),    Q = N(0, sigma^2 I)    [M-4.3].

Three routes to its hockey stick, for encoders with entries >= 0:

    all_modes     any encoder of up to 12 rounds: all 2^n modes
    tree          binary trees, one or several: an exact recursion over the nodes [M-tree]
    two_rounds    two rounds: quadrature, no sampling

The answers are `Estimate`s: they show how close a bound comes, and are no guarantee.
All routes integrate exactly along the direction C 1 (`_truth_integrals`). The first two sample the other
coordinates with scrambled Sobol points, in independent blocks from which the standard error comes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from .. import gaussian, matrices
from .._base import validate as check
from .._base.validate import Direction
from ..gaussian import LOG_SQRT_2PI
from ..matrices import Encoder, Tree
from ..results import Estimate, UpperEnd
from ._truth_integrals import Forest, Modes, Proposal, integrand

_MOST_MODES = 12
_MOST_TREE_ROUNDS = 4096
_FEWEST_BLOCKS = 32
_LARGEST_BLOCK = 2048
_PILOT = 512
_LEAST_DELTA = 1e-50
_FARTHEST = 30.0  # e^(30^2 / 2) is the largest likelihood ratio that is safe in a float


def all_modes(
    encoder: Encoder | ArrayLike, noise_multiplier: float, sampling_probability: float, *,
    samples: int = 4096, seed: int = 0, confidence: float = 0.999,
) -> Truth:
    """The pair of an encoder with up to 12 rounds, by sampling with all of its 2^n modes [M-4.3].

    Parameters
    ----------
    encoder : an encoder of `dplib.matrices`, or an array of shape (rows, n) with entries >= 0.
    noise_multiplier : sigma > 0, not multiplied by a column norm [M-0].
    sampling_probability : p in [0, 1].
    samples : 1024 to 2^24 points for each direction, in at least 32 blocks.
    seed : whole number, at least 0; the same seed gives the same numbers.
    confidence : of the upper end, in [0.5, 1), from Student's t over the blocks.

    Cost: samples x 2^n terms; 12 rounds with the default take seconds a direction.
    Accuracy: about 1e-4 of epsilon where the noise is ten column norms, worse with less noise.
    Raises ValueError or TypeError on bad input.
    """
    array, sigma, p = _small(encoder, noise_multiplier, sampling_probability, _MOST_MODES)
    sampling = _Sampling.checked(samples, seed, confidence)
    return Truth("all modes", array, sigma, p, lambda left_out: Modes(array / sigma, p), sampling)


def tree(
    encoder: Tree, noise_multiplier: float, sampling_probability: float, *, samples: int = 8192,
    seed: int = 0, confidence: float = 0.999,
) -> Truth:
    """The pair of a binary tree, or of several with restarts, by an exact recursion over nodes [M-tree].

    At an output the weights of 0, 1, 2, ... participations below a node are the product of its
    children's, times the node's own factor. Large counts are left out, with probability at most
    1e-6 of delta (1e-24 when delta is asked for); the upper end allows for them.

    encoder : `matrices.binary_tree` or `matrices.tree_restarts`, with up to 4096 rounds.
    noise_multiplier : at least the column norm sqrt(log2(leaves) + 1). With less noise the outputs that
        matter fall apart into many places, which the sampling of this route would miss.
    The other parameters are those of `all_modes`. Cost: 256 leaves with the default take a second.
    Accuracy: about 1e-6 of epsilon where the noise is ten column norms, worse with less noise.
    Raises ValueError or TypeError on bad input.
    """
    if not isinstance(encoder, matrices.Tree):
        raise TypeError(f"encoder must come from matrices.binary_tree or tree_restarts; got {encoder!r}")
    if encoder.columns > _MOST_TREE_ROUNDS:
        raise ValueError(f"encoder must have at most {_MOST_TREE_ROUNDS} columns; got {encoder.columns}")
    sigma = check.real(
        "noise_multiplier", noise_multiplier, at_least=math.sqrt(encoder.height + 1), at_most=1e100
    )
    p = check.probability("sampling_probability", sampling_probability)
    sampling = _Sampling.checked(samples, seed, confidence)
    leaves, trees = encoder.leaves, encoder.trees
    return Truth(
        "tree", encoder, sigma, p, lambda left_out: Forest(leaves, trees, p, sigma, left_out), sampling
    )


def two_rounds(encoder: Encoder | ArrayLike, noise_multiplier: float, sampling_probability: float) -> Truth:
    """The pair of an encoder with two rounds, by quadrature [M-4.3].

    One coordinate is integrated exactly, the other by the trapezoid rule, whose nodes are doubled until
    the value rests. The `standard_error` of its answers is the difference of the last two resolutions plus
    1e-9 of the value, and `upper` adds ten of them: a numerical error, to which no probability belongs
    (`confidence` is 0.5).

    Parameters and errors as for `all_modes`, with at most two columns. Cost: milliseconds.

    >>> from dplib import MatrixMechanism, matrices
    >>> from dplib.lessons import truth
    >>> encoder = matrices.optimal_counting(2)
    >>> near_exact = truth.two_rounds(encoder, noise_multiplier=2.0, sampling_probability=0.5)
    >>> print(f"{near_exact.epsilon(1e-5).value:.5f}")
    2.56094
    >>> near_exact.epsilon(1e-5).upper <= MatrixMechanism(encoder, 2.0, 0.5).epsilon(1e-5).upper
    True
    """
    array, sigma, p = _small(encoder, noise_multiplier, sampling_probability, 2)
    return Truth("two rounds", array, sigma, p, lambda left_out: Modes(array / sigma, p), _Quadrature())


def _small(encoder, noise_multiplier, sampling_probability, most):
    """The encoder's entries without empty columns, and the checked numbers."""
    columns = getattr(encoder, "columns", None)
    if columns is None:
        array = check.matrix("encoder", encoder)
        columns = array.shape[1]
    if columns > most:
        raise ValueError(f"encoder must have at most {most} columns; got {columns}")
    array = encoder.entries() if hasattr(encoder, "entries") else array
    if np.any(array < 0):
        raise ValueError(f"encoder must have entries at least 0; got {float(array[array < 0][0])!r}")
    sigma = check.noise_multiplier(noise_multiplier)
    p = check.probability("sampling_probability", sampling_probability)
    return array[:, array.any(axis=0)], sigma, p


class Truth:
    """A pair whose delta and epsilon are estimated closely; made by the functions of this module.

    method : "all modes", "tree" or "two rounds".
    """

    def __init__(self, method, encoder, noise_multiplier, sampling_probability, make_pair, rule):
        self.method = method
        self._encoder, self._sigma, self._p = encoder, noise_multiplier, sampling_probability
        self._make_pair, self._rule = make_pair, rule

    def __repr__(self):
        return f"Truth({self.method}, noise_multiplier={self._sigma:g}, sampling_probability={self._p:g})"

    def delta(self, epsilon: float, direction: Direction = "both") -> Estimate:
        """Estimate of delta at `epsilon` >= 0.

        direction : "remove", "add" or "both" (the larger).
        Raises ValueError or TypeError on bad input, ArithmeticError where sampling does not work.
        """
        epsilon = check.epsilon(epsilon)
        return self._answer("delta", epsilon, check.direction(direction))

    def epsilon(self, delta: float, direction: Direction = "both") -> Estimate:
        """Estimate of the smallest epsilon >= 0 at `delta`, from 1e-50 to below 1.

        The standard error is that of delta over the slope. Other arguments and errors as for `delta`.
        """
        delta = check.real("delta", delta, at_least=_LEAST_DELTA, below=1)
        return self._answer("epsilon", delta, check.direction(direction))

    def _answer(self, question, value, direction):
        sides = ("remove", "add") if direction == "both" else (direction,)
        if self._p == 0 or (not isinstance(self._encoder, matrices.Tree) and not self._encoder.size):
            return _exactly(0.0)
        if self._p == 1:
            return _exactly(self._unsampled(question, value))
        pair = self._make_pair(1e-6 * value if question == "epsilon" else 1e-24)
        reach = float(pair.slopes.max())
        if reach > _FARTHEST:
            raise ValueError(
                f"noise_multiplier must be at least {UpperEnd(self._sigma * reach / _FARTHEST):.4g} here, so that no mode "
                f"is more than {_FARTHEST:g} standard deviations away; got {self._sigma!r}"
            )
        found = [self._rule.side(question, pair, value, side) for side in sides]
        largest = max(found, key=lambda estimate: estimate.value)
        upper = max(estimate.upper for estimate in found)
        return Estimate(largest.value, largest.standard_error, upper, largest.confidence)

    def _unsampled(self, question, value):
        """Every round takes part: one Gaussian with mu = ||C 1|| / sigma."""
        if isinstance(self._encoder, matrices.Tree):
            mu = math.sqrt(self._encoder.columns * (2 * self._encoder.leaves - 1)) / self._sigma
        else:
            mu = float(np.linalg.norm(self._encoder.sum(axis=1))) / self._sigma
        return (gaussian.delta if question == "delta" else gaussian.epsilon)(mu, value)


def _exactly(value):
    return Estimate(value, 0.0, value, 0.999)


# ------------------------------------------------------------------ the coordinates across: by sampling


@dataclass(frozen=True)
class _Sampling:
    """Independent blocks of scrambled Sobol points; the blocks' spread gives the standard error."""

    blocks: int
    size: int
    seed: int
    confidence: float

    @classmethod
    def checked(cls, samples, seed, confidence):
        samples = check.whole("samples", samples, at_least=1024, at_most=2**24)
        seed = check.whole("seed", seed, at_least=0)
        confidence = check.real("confidence", confidence, at_least=0.5, below=1)
        size = min(2 ** int(math.log2(samples / _FEWEST_BLOCKS)), _LARGEST_BLOCK)
        return cls(math.ceil(samples / size), size, seed, confidence)

    def side(self, question, pair, value, direction):
        """The Estimate of one direction."""
        if question == "delta":
            epsilon = value
            if epsilon >= pair.largest(direction):
                return _exactly(0.0)  # no loss exceeds this
        else:
            epsilon = None
        epsilon, proposal = self._tuned(pair, direction, epsilon, value)
        rows = self._run(pair, proposal, epsilon, direction)
        average = rows[:, :3].mean(axis=0)
        doubt = 1 / math.sqrt(len(rows)) if pair.dimension else 0.0  # nothing across: exact
        width = float(stdtrit(len(rows) - 1, self.confidence))
        # The participations that were left out belong to P.
        room = pair.left_out * (1.0 if direction == "remove" else math.exp(epsilon))
        if question == "delta":
            error = doubt * float(rows[:, 0].std(ddof=1))
            return Estimate(average[0], error, average[0] + width * error + room, self.confidence)
        if epsilon == 0 and average[0] + width * doubt * float(rows[:, 0].std(ddof=1)) < value:
            return _exactly(0.0)
        step = _step(average, value)
        if not abs(step * average[1]) <= 0.7 * average[0]:
            raise ArithmeticError(
                f"sampling is too uncertain in the {direction} direction; more samples or more noise are needed"
            )
        slope = -(average[1] + step * average[2])
        error = doubt * float((rows[:, 0] + step * rows[:, 1]).std(ddof=1) / slope)
        found = max(epsilon + step, 0.0)
        upper = max(epsilon + step + width * error + room / slope, found)
        return Estimate(found, error, upper, self.confidence)

    def _tuned(self, pair, direction, epsilon, delta):
        """(epsilon, proposal): where to sample for this epsilon or, where it is None, for that of delta."""
        known, before = epsilon is not None, None
        pilot = _PILOT if len(pair.slopes) <= 1024 else _PILOT // 2
        proposal = pair.proposal(epsilon, direction) if known else Proposal(pair.dimension)
        for trial in range(10):
            y, log_ratio = proposal.draw([self.seed, 2**32 + trial], pilot)
            average = lambda at: integrand(pair, y, log_ratio, at, direction).mean(axis=0)  # noqa: B023
            if not known:
                epsilon = _root(average, delta, pair.largest(direction), before, 1e-4)
            weighted = integrand(pair, y, log_ratio, epsilon, direction)
            value, slope, _ = weighted.mean(axis=0)
            proposal = pair.proposal(epsilon, direction, (y, weighted[:, 0]))
            proposal.improve(y, weighted[:, 0])
            settled = trial and (known or abs((epsilon - before) * slope) <= 0.05 * value)
            even = weighted[:, 0] / max(weighted[:, 0].max(), 1e-300)
            if settled and even.sum() ** 2 >= 0.1 * len(y) * (even**2).sum():
                break
            before = epsilon
        return epsilon, proposal

    def _run(self, pair, proposal, epsilon, direction):
        """One row for each block: the averages of delta, its derivatives and the likelihood ratio."""
        rows = []
        for block in range(self.blocks):
            y, log_ratio = proposal.draw([self.seed, block], self.size)
            values = integrand(pair, y, log_ratio, epsilon, direction)
            rows.append(np.append(values.mean(axis=0), np.exp(log_ratio).mean()))
            if not np.all(np.isfinite(rows[-1])):
                raise ArithmeticError("sampling does not work at such a small noise_multiplier")
        rows = np.array(rows)
        mass, error = float(rows[:, 3].mean()), float(rows[:, 3].std(ddof=1)) / math.sqrt(len(rows))
        if abs(mass - 1) > 8 * error + 1e-6:
            raise ArithmeticError(f"the likelihood ratios average to {mass:g} +- {error:.1g} instead of 1")
        return rows


# ------------------------------------------------------------------ the coordinate across: by quadrature


class _Quadrature:
    """The trapezoid rule for at most one coordinate: its error falls faster than any power of the step."""

    def side(self, question, pair, value, direction):
        """The Estimate of one direction."""
        before, step = None, 1 / 8
        for _ in range(12):
            average = lambda at: self._average(pair, at, direction, step)  # noqa: B023
            if question == "epsilon":
                found = _root(average, value, pair.largest(direction), before)
            else:
                found = float(average(value)[0]) if value < pair.largest(direction) else 0.0
            if before is not None and abs(found - before) <= 1e-10 * found:
                error = abs(found - before) + 1e-9 * found  # crossings are that exact
                return Estimate(found, error, found + 10 * error, 0.5)
            before, step = found, step / 2
        raise ArithmeticError("the quadrature does not settle at such a small noise_multiplier")

    @staticmethod
    def _average(pair, epsilon, direction, step):
        if not pair.dimension:
            return integrand(pair, np.zeros((1, 0)), np.zeros(1), epsilon, direction)[0]
        reach = float(np.abs(pair.across).max()) + 16  # P and Q have mass below 1e-56 beyond
        y = step * np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1)
        log_weight = -0.5 * y**2 - LOG_SQRT_2PI + math.log(step)
        return integrand(pair, y[:, None], log_weight, epsilon, direction).sum(axis=0)


# ------------------------------------------------------------------ epsilon from delta


def _root(average, delta, largest, start=None, tolerance=1e-13):
    """The epsilon with delta(epsilon) = delta, 0 if there is none above 0: Newton's steps on log delta.

    average : epsilon -> (delta, its derivative, ...). largest : no loss exceeds it.
    tolerance : relative, for epsilon.
    """
    if not start:
        start = 0.0
        if not average(0.0)[0] > delta:
            return 0.0
    epsilon, low, high = start, 0.0, largest
    for _ in range(200):
        value, slope = (float(part) for part in average(epsilon)[:2])
        low, high = (epsilon, high) if value > delta else (low, epsilon)
        following = epsilon - math.log(value / delta) * value / slope if value > 0 > slope else math.inf
        if not low < following < high:
            if high <= 1e-12:
                return 0.0
            following = 0.5 * (low + high) if math.isfinite(high) else 2 * low + 1.0
        if abs(following - epsilon) <= tolerance * following:
            return following
        epsilon = following
    return epsilon


def _step(average, delta):
    """From the epsilon of the averages (delta and two derivatives) to that of delta: log delta as a parabola."""
    value, slope, bend = average
    first, second = slope / value, bend / value - (slope / value) ** 2
    goal = math.log(value / delta)
    step = -goal / first
    for _ in range(5):
        step -= (goal + first * step + 0.5 * second * step**2) / (first + second * step)
    return float(step)
