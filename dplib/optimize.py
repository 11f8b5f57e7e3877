"""The encoder with the smallest error at a privacy target, under balls-in-bins batching.

Minimised is log sigma(C) + log error(C): the noise multiplier that (epsilon, delta) asks for, times the error
of the prefix sums at noise 1. With delta kept, a change of the Gram matrix G of the modes changes sigma by

    d log sigma = <S, dG> / (2 <S, G>),     S = E_Q[pi pi^T | Y = epsilon],

pi the posterior of the bins: an average over the crossings of the lines of `_importance` [A-17], so that a
few hundred lines with fixed random numbers make a smooth function with its gradient, and L-BFGS-B does the rest.
The result is validated on fresh samples. Its noise multiplier is an estimate: `calibrate` with
method="certificate" turns it into a guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from . import _bins, _importance, _slopes, _streams, matrices
from . import _validate as check
from ._moving import MovingLines
from ._progress import bar
from ._scipy import optimize as scipy_optimize
from .results import NoBracketError

FAMILIES = ("toeplitz", "banded_toeplitz", "buffered_linear_toeplitz")
OBJECTIVES = ("rmse", "largest_error")
_LINES = 512
_PASSES = 3  # of L-BFGS-B, each with lines drawn for the encoder at which the last one ended
_GAIN = 2e-4  # a pass that gains less (relative) is the last
_ROOT = 1e-3  # of log delta: Newton's next step is then exact to the square of it
_STREAM = 9  # first key of the random streams
_VALIDATION = 0.005  # standard error of delta, relative
_MOST_DECAY = 1 - 1e-6


class Objective(float):
    """The error of the optimised encoder at its noise multiplier, with `standard_error`: both from fresh samples."""

    standard_error: float

    def __new__(cls, value, standard_error):
        result = super().__new__(cls, value)
        result.standard_error = float(standard_error)
        return result

    def __str__(self):
        return f"{float(self):.6g} +- {self.standard_error:.1g}"


@dataclass(frozen=True, eq=False)
class Optimized:
    """What `optimize` found.

    encoder : of `dplib.matrices`. noise_multiplier : estimate of the smallest one that meets the target.
    objective : `Objective`, its error, per round and coordinate.
    history : shape (steps, 2), objective and noise multiplier after each step, from the lines of the optimiser.
    """

    encoder: object
    noise_multiplier: float
    objective: Objective
    history: np.ndarray

    def __repr__(self):
        return (
            f"Optimized({self.encoder!r}, noise_multiplier={self.noise_multiplier:.6g}, "
            f"objective={self.objective}, {len(self.history)} steps)"
        )


def optimize(
    encoder_family="toeplitz",
    *,
    epsilon,
    delta,
    batches_per_epoch,
    epochs,
    objective="rmse",
    bands=None,
    buffers=3,
    start=None,
    lines=_LINES,
    most_steps=100,
    seed=0,
) -> Optimized:
    """The encoder of a family with the smallest error of prefix sums at (epsilon, delta), balls in bins.

    Parameters
    ----------
    encoder_family : "toeplitz" (all coefficients free), "banded_toeplitz" (the first `bands` of them) or
        "buffered_linear_toeplitz" (`buffers` buffers with weights at least 0). First coefficient 1, all at least 0.
    epsilon : above 0. delta : in (0, 1). batches_per_epoch : b >= 1. epochs : E >= 1.
    objective : "rmse" (root mean square over rounds) or "largest_error" (of a round).
    bands : 1 to b E, for "banded_toeplitz". buffers : 1 to 8.
    start : Toeplitz encoder to start from (not for buffers); None: optimal counting, cut after a quarter of b.
    lines : 64 to 2^17, drawn once for each pass; most_steps : of L-BFGS-B in each pass. seed : whole number.

    Both directions: remove is the larger one [C-9m]. Raises ValueError or TypeError on bad input.
    Cost: b = 128, n = 2,048: a few seconds; memory O(n + b^2).
    """
    check.choice("encoder_family", encoder_family, FAMILIES)
    check.choice("objective", objective, OBJECTIVES)
    epsilon = check.real("epsilon", epsilon, above=0, at_most=1e100)
    delta = check.delta(delta)
    b = check.whole("batches_per_epoch", batches_per_epoch, at_least=1, at_most=8192)
    n = b * check.whole("epochs", epochs, at_least=1)
    check.whole("rounds (batches_per_epoch * epochs)", n, at_least=2, at_most=matrices.MOST_ROUNDS)
    lines = check.whole("lines", lines, at_least=64, at_most=2**17)
    most_steps = check.whole("most_steps", most_steps, at_least=1)
    seed = check.whole("seed", seed, at_least=0, at_most=2**62)
    family = _family(encoder_family, n, b, bands, buffers, start)
    problem = _Problem(family, b, epsilon, delta, objective == "largest_error", lines, seed)
    x, best = family.start, math.inf
    with bar(_PASSES * most_steps, "encoder") as progress:
        for number in range(_PASSES):
            problem.draw(x, number)
            found = scipy_optimize.minimize(
                problem.value, x, jac=True, method="L-BFGS-B", bounds=family.bounds,
                callback=lambda point: (problem.note(point), progress.update()),
                options={"maxiter": most_steps, "ftol": 1e-9, "gtol": 1e-7, "maxcor": 20},
            )  # fmt: skip
            x, gain, best = found.x, best - found.fun, found.fun
            if gain < _GAIN:
                break
    return problem.validated(x)


# ------------------------------------------------------------------------- families


class _Free:
    """Toeplitz encoders by their coefficients 1 .. bands - 1, scaled so that all matter alike."""

    def __init__(self, n, bands, start):
        self.n, self.scale = n, np.sqrt(np.arange(2.0, bands + 1))
        self.start = start[1:bands] * self.scale
        self.bounds = [(0.0, None)] * (bands - 1)

    def coefficients(self, x):
        c = np.zeros(self.n)
        c[0] = 1.0
        c[1 : len(x) + 1] = x / self.scale
        return c

    def pull(self, x, slope):
        """Gradient by x from that by the coefficients."""
        return slope[1 : len(x) + 1] / self.scale

    def encoder(self, x):
        return matrices.toeplitz(self.coefficients(x))


class _Buffered:
    """Buffered linear Toeplitz encoders: logs of output scales, and of 1 - decay [N-BLT]."""

    def __init__(self, n, buffers):
        self.n, self.powers = n, np.arange(n - 1.0)
        # Output scales and decays for which the sum is about that of optimal counting, k^(-1/2) / sqrt(pi).
        lags = np.geomspace(2.0, max(n / 4, 4.0), buffers)
        self.start = np.concatenate([np.log(0.5 / np.sqrt(lags * buffers)), -np.log(lags)])
        self.bounds = [(-30.0, 5.0)] * buffers + [(-math.log(1e6), -1e-6)] * buffers

    def _parts(self, x):
        scale, gap = np.exp(x[: len(x) // 2]), np.exp(x[len(x) // 2 :])
        decay = np.minimum(1 - gap, _MOST_DECAY)
        return scale, decay, decay[:, None] ** self.powers

    def coefficients(self, x):
        scale, _, powers = self._parts(x)
        return np.append(1.0, scale @ powers)

    def pull(self, x, slope):
        scale, decay, powers = self._parts(x)
        by_scale = powers @ slope[1:] * scale
        steeper = np.zeros_like(powers)
        steeper[:, 1:] = self.powers[1:] * powers[:, :-1]  # d decay^k / d decay
        return np.append(by_scale, steeper @ slope[1:] * scale * -(1 - decay))

    def encoder(self, x):
        scale, decay, _ = self._parts(x)
        return matrices.buffered_linear_toeplitz(self.n, scale, decay)


def _family(name, n, b, bands, buffers, start):
    if name != "banded_toeplitz" and bands is not None:
        raise ValueError(f"bands must be None for the family {name!r}; got {bands!r}")
    if name == "buffered_linear_toeplitz":
        if start is not None:
            raise ValueError("start must be None for buffered linear Toeplitz encoders")
        return _Buffered(n, check.whole("buffers", buffers, at_least=1, at_most=8))
    if name == "banded_toeplitz":
        bands = check.whole("bands", bands, at_least=1, at_most=n)
    if start is None:
        start = matrices.optimal_counting(n, max(1, min(b // 4, n)))
    if not isinstance(start, matrices.Toeplitz) or start.columns != n:
        raise ValueError(f"start must be a Toeplitz encoder with {n} columns; got {start!r}")
    return _Free(n, bands or n, start.coefficients / start.coefficients[0])


# ------------------------------------------------------------------------- the function minimised


class _Problem:
    """log sigma(C) + log error(C) and its gradient, from lines that are drawn once and then moved along."""

    def __init__(self, family, batches, epsilon, delta, largest, lines, seed):
        self.family, self.b, self.epsilon, self.log_delta = family, batches, epsilon, math.log(delta)
        self.largest, self.lines, self.seed = largest, lines, seed
        self.seen, self.history = {}, []
        self.log_sigma = None

    def draw(self, x, number):
        """Lines for the encoder at x."""
        gram, seed = self._gram(self.family.coefficients(x)), self.seed + number
        sigma, _ = _importance.solve_scale(
            gram, self.epsilon, math.exp(self.log_delta), "remove", seed=seed, relative_error=0.05
        )
        rng = _streams.generator(seed, (_STREAM,), 0)
        self.moving = MovingLines(gram / sigma**2, self.epsilon, rng, self.lines)
        self.log_sigma, self.seen = math.log(sigma), {}

    def value(self, x):
        c = self.family.coefficients(x)
        gram = self._gram(c)
        log_sigma, weights = self._noise(gram)
        log_error, slope = _slopes.log_error(c, self.largest)
        # <S, dG> / (2 <S, G>): how G is scaled does not matter.
        slope = slope + _slopes.gram_slope(c, weights) / (2 * float(np.sum(weights * gram)))
        self.seen[x.tobytes()] = log_error, log_sigma
        return log_sigma + log_error, self.family.pull(x, slope)

    def note(self, x):
        log_error, log_sigma = self.seen.get(x.tobytes(), (math.nan, math.nan))
        self.history.append((math.exp(log_error + log_sigma), math.exp(log_sigma)))

    def _gram(self, c):
        return _bins.gram(matrices.toeplitz(c), self.b, len(c) // self.b)

    def _noise(self, gram):
        """(log sigma at the target, S up to a factor): Newton, from the last root."""
        self.moving.moved(gram)
        x, goal = self.log_sigma, math.sqrt(-self.log_delta)
        for _ in range(20):
            log_delta, slope, weights = self.moving.scaled(math.exp(x))
            # The root of -log delta is nearly a straight line.
            height = math.sqrt(max(-log_delta, 1e-9))
            x += min(max((height - goal) * 2 * height / slope, -0.5), 0.5)
            if abs(log_delta - self.log_delta) < _ROOT:
                self.log_sigma = x
                return x, weights
        raise NoBracketError("the noise multiplier for the target was not found; more lines may help")

    def validated(self, x):
        """The result, its noise multiplier and error from fresh lines."""
        c = self.family.coefficients(x)
        sigma, error = _importance.solve_scale(
            self._gram(c), self.epsilon, math.exp(self.log_delta), "remove",
            seed=2**62 + self.seed, relative_error=_VALIDATION,
        )  # fmt: skip
        value = sigma * math.exp(_slopes.log_error(c, self.largest)[0])
        objective = Objective(value, value * error / sigma)
        return Optimized(self.family.encoder(x), sigma, objective, np.array(self.history).reshape(-1, 2))
