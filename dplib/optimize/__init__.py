"""The encoder of a family with the smallest error at a privacy target, under balls-in-bins batching.

Minimised is log sigma(C) + log error(C), or a function of one's own of (C, sigma): sigma is the noise multiplier that
(epsilon, delta) asks for, error that of the prefix sums at noise 1. With delta kept, a change of the Gram matrix G of
the modes changes sigma by [N-grad]

    d log sigma = <S, dG> / (2 <S, G>),     S = E_Q[pi pi^T | Y = epsilon],

pi the posterior of the bins: an average over the crossings of the lines of `importance_sampling` [A-17], so that a
few hundred lines with fixed random numbers make a smooth function with its gradient, and L-BFGS-B does the rest.
The result is validated on fresh samples. Its noise multiplier is an estimate: `calibrate` with
method="certificate" turns it into a guarantee.

>>> import dplib
>>> from dplib.optimize import optimize
>>> found = optimize("toeplitz", epsilon=2.0, delta=1e-3, batches_per_epoch=4, epochs=2)
>>> safe = dplib.calibrate(found.mechanism(), epsilon=2.0, delta=1e-3, method="certificate", samples=2**16)
>>> bool(found.noise_multiplier < safe.noise_multiplier < 1.05 * found.noise_multiplier)
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .._base import random_blocks
from .._base import validate as check
from .._base.lazy_scipy import optimize as scipy_optimize
from ..balls_in_bins import importance_sampling
from ..matrices import Encoder
from ..mechanisms.balls_in_bins import BallsInBins
from ..results import NoBracketError
from . import arguments, families, objectives, slopes
from .moving_lines import MovingLines
from .noise_root import root

_LINES = 512
_MOST_LINES = 2**17
_PASSES = 3  # of L-BFGS-B, each with lines drawn for the encoder at which the last one ended
_GAIN = 2e-4  # a pass that gains less (relative) is the last
_ROOT = 1e-3  # of log delta: Newton's next step is then exact to the square of it
_BEYOND = 500.0  # logarithm of an error that is none
_STREAM, _SLOPE_STREAM = 9, 10  # first keys of the random streams
_VALIDATION = 0.005  # standard error of delta, relative
_LARGEST_SEED = 2**62


@dataclass(frozen=True, eq=False)
class Optimized:
    """What an optimiser found.

    encoder : of `dplib.matrices`. noise_multiplier : estimate of the smallest one that meets the target.
    objective : the error at its noise multiplier, per round and coordinate for the errors of prefix sums, from fresh
        samples. standard_error : of it.
    history : shape (steps, 2), objective and noise multiplier after each step, from the lines of the optimiser.
    parameters : those of a family that is a function; None otherwise.
    """

    encoder: Encoder
    noise_multiplier: float
    objective: float
    standard_error: float
    history: np.ndarray
    batches_per_epoch: int
    epochs: int
    parameters: np.ndarray | None = None

    def mechanism(self) -> BallsInBins:
        """`BallsInBins` with this encoder and the *estimated* noise multiplier.

        A guarantee is `calibrate(found.mechanism(), epsilon=, delta=, method="certificate")`.
        """
        return BallsInBins(self.encoder, self.noise_multiplier, self.batches_per_epoch, self.epochs)

    def __repr__(self):
        return (
            f"Optimized({self.encoder!r}, noise_multiplier={self.noise_multiplier:.6g}, "
            f"objective={self.objective:.6g} +- {self.standard_error:.1g}, {len(self.history)} steps)"
        )


def optimize(
    encoder_family: str | Callable = "toeplitz", *, epsilon: float, delta: float,
    batches_per_epoch: int, epochs: int, objective: str | Callable = "rmse",
    bands: int | None = None, buffers: int = 3, start: ArrayLike | None = None, lines: int = _LINES,
    most_steps: int = 100, seed: int = 0,
) -> Optimized:
    """The encoder of a family with the smallest error of prefix sums at (epsilon, delta), balls in bins.

    The best Toeplitz encoder is not the best encoder: one with scaled rows has some per cent less error [N-gradI].

    Parameters
    ----------
    encoder_family : "toeplitz" (all coefficients free), "banded_toeplitz" (the first `bands` of them),
        "buffered_linear_toeplitz" (`buffers` buffers): first coefficient 1, all at least 0. Or a function from a vector of
        parameters to Toeplitz coefficients, shape (n,), n = b E, written with jax.numpy, at least 0 at all parameters;
        JAX differentiates it with 64-bit numbers.
    epsilon : above 0. delta : in (0, 1). batches_per_epoch : b >= 1. epochs : E >= 1.
    objective : "rmse" (root mean square over rounds), "largest_error" (of a round), or a function
        (coefficients, noise_multiplier) -> number, written with jax.numpy.
    bands : 1 to b E, for "banded_toeplitz". buffers : 1 to 8, with output weights above 0.
    start : Toeplitz encoder to start from (not for buffers); None: optimal counting, cut after a quarter of b.
        For a function: its first parameters.
    lines : 64 to 2^17, drawn once for each pass; most_steps : of L-BFGS-B in each pass. seed : whole number.

    Both directions: remove is the larger one [C-9m]. Raises ValueError or TypeError on bad input.
    Cost: b = 128, n = 2,048: a few seconds; memory O(n + b^2).
    """
    epsilon, delta = arguments.target(epsilon, delta)
    b, epochs = arguments.scheme(batches_per_epoch, epochs)
    lines = check.whole("lines", lines, at_least=64, at_most=_MOST_LINES)
    most_steps = check.whole("most_steps", most_steps, at_least=1)
    seed = check.whole("seed", seed, at_least=0, at_most=_LARGEST_SEED)
    goal = objectives.make(objective)
    family = families.make(encoder_family, b * epochs, b, bands, buffers, start)
    goal.value(family.table(family.start), 1.0)  # refuses what has no value there
    noise = _Noise(epsilon, delta, lines, seed)
    problem = _Problem(family, goal, b, noise)
    x = _descend(problem, most_steps)
    encoder = family.encoder(x)
    return _validated(
        encoder,
        objective,
        epsilon,
        delta,
        b,
        history=np.array(problem.history).reshape(-1, 2),
        parameters=x if callable(encoder_family) else None,
        start=None if noise.log_sigma is None else math.exp(noise.log_sigma),
        seed=seed,
    )


def _validated(encoder, objective, epsilon, delta, batches, history, parameters=None, start=None, seed=0):
    """`Optimized` for what an optimiser found: noise multiplier and objective from fresh lines; start : about the former."""
    table = encoder.coefficients
    goal = objectives.make(objective)
    sigma, error = importance_sampling.solve_scale(
        slopes.gram(table, batches), epsilon, delta, "remove",
        seed=2**62 + seed, relative_error=_VALIDATION, start=start,
    )  # fmt: skip
    error = abs(goal.noise_slope(table, sigma)) * error / sigma
    value, epochs = float(goal.value(table, sigma)), encoder.columns // batches
    return Optimized(encoder, sigma, value, float(error), history, batches, epochs, parameters)


def noise_slope(
    table: ArrayLike, *, epsilon: float, delta: float, batches_per_epoch: int, lines: int = 2**12,
    seed: int = 0,
) -> tuple[float, np.ndarray]:
    """(noise multiplier at the target, its gradient by the table): the implicit gradient by lines [N-grad].

    table : Toeplitz coefficients, shape (n,), at least 0, the first above 0; n a multiple of batches_per_epoch, b.
    epsilon : above 0. delta : in (0, 1). lines : 64 to 2^17. seed : whole number.

    Returns (float, array of shape (n,)). Estimates: the error falls a little faster than 1 / sqrt(lines).

    >>> import numpy as np
    >>> from dplib import matrices, optimize
    >>> table = np.eye(8)[0] + 0.2 * np.eye(8)[1]
    >>> noise, slope = optimize.noise_slope(table, epsilon=2.0, delta=1e-5, batches_per_epoch=4)
    >>> bool(noise > 1 and slope[1] > 0)
    True
    """
    epsilon, delta = arguments.target(epsilon, delta)
    table, b = arguments.table(table, batches_per_epoch)
    lines = check.whole("lines", lines, at_least=64, at_most=_MOST_LINES)
    seed = check.whole("seed", seed, at_least=0, at_most=_LARGEST_SEED)
    gram = slopes.gram(table, b)
    noise = _Noise(epsilon, delta, lines, seed)
    noise.draw(gram, 0, stream=_SLOPE_STREAM)
    log_sigma, weights = noise.at(gram)
    sigma = math.exp(log_sigma)
    return sigma, sigma * _log_slope(table, gram, weights)


def _log_slope(table, gram, weights):
    """Gradient of log sigma by the table: <S, dG> / (2 <S, G>); neither the scale of S nor that of G matters."""
    return slopes.gram_slope(table, weights) / (2 * float(np.sum(weights * gram)))


# ------------------------------------------------------------------------- the noise multiplier


class _Noise:
    """log sigma at the target, as a smooth function of the Gram matrix: lines that are drawn once and moved along."""

    def __init__(self, epsilon, delta, lines, seed):
        self.epsilon, self.log_delta, self.lines, self.seed = epsilon, math.log(delta), lines, seed
        self.log_sigma = None  # the last root: where the next search starts

    def draw(self, gram, number, log_sigma=None, stream=_STREAM):
        """New lines for this Gram matrix, drawn at this noise; None: first find out how much it is, about."""
        if log_sigma is None:
            sigma, _ = importance_sampling.solve_scale(
                gram, self.epsilon, math.exp(self.log_delta), "remove", seed=self.seed, relative_error=0.05
            )
            log_sigma = math.log(sigma)
        if self.log_sigma is None:
            self.log_sigma = log_sigma
        rng = random_blocks.generator(self.seed + number, (stream,), 0)
        self.moving = MovingLines(gram / math.exp(2 * log_sigma), self.epsilon, rng, self.lines)

    def at(self, gram):
        """(log sigma, S up to a factor): Newton, from the last root."""
        self.moving.moved(gram)

        def scaled(x):
            log_delta, slope, weights = self.moving.scaled(math.exp(x))
            if not (math.isfinite(log_delta) and slope < 0):
                raise NoBracketError("the lines were drawn for another encoder; more lines may help")
            return log_delta, slope, weights

        x, (log_delta, slope, weights) = root(scaled, self.log_sigma, self.log_delta, _ROOT)
        height, goal = math.sqrt(-log_delta), math.sqrt(-self.log_delta)
        self.log_sigma = x + (height - goal) * 2 * height / slope
        return self.log_sigma, weights


# ------------------------------------------------------------------------- the function minimised


class _Problem:
    """The objective at the noise that the target asks for, with its gradient by the parameters of the family."""

    def __init__(self, family, objective, batches, noise):
        self.family, self.objective, self.b, self.noise = family, objective, batches, noise
        self.history = []

    def start_pass(self, x, number):
        """New lines for the encoder at x."""
        self.best = None
        self.noise.draw(slopes.gram(self.family.table(x), self.b), number, self.noise.log_sigma)

    def value(self, x):
        if self.best is not None:
            self.noise.log_sigma = self.best[2]
        try:
            value, gradient, log_sigma, shown = self._computed(x)
        except NoBracketError:
            if self.best is None or np.array_equal(x, self.best[1]):
                raise
            # Too long a step: a bowl around the best point sends the line search back.
            way = x - self.best[1]
            value, gradient = self.best[0] + 1, 2 * way / float(way @ way)
            log_sigma, shown = self.noise.log_sigma, math.nan
        self.noise.log_sigma = log_sigma
        if self.best is None or value < self.best[0]:
            self.best = value, x.copy(), log_sigma, shown
        return value, gradient

    def _computed(self, x):
        table = self.family.table(x)
        gram = slopes.gram(table, self.b)
        log_sigma, weights = self.noise.at(gram)
        value, slope, by_log_sigma, shown = self.objective.minimised(table, log_sigma)
        gradient = self.family.pull(x, slope + by_log_sigma * _log_slope(table, gram, weights))
        if not (abs(value) < _BEYOND and np.all(np.isfinite(gradient))):
            raise NoBracketError("the error is beyond the range of floats")
        return value, gradient, log_sigma, shown

    def note(self, _):
        self.history.append((self.best[3], math.exp(self.best[2])))


def _descend(problem, most_steps):
    """The parameters at the minimum: passes of L-BFGS-B."""
    family = problem.family
    x, best = family.start, math.inf
    if not len(x):
        return x
    for number in range(_PASSES):
        problem.start_pass(x, number)
        scipy_optimize.minimize(
            problem.value, x, jac=True, method="L-BFGS-B", bounds=family.bounds, callback=problem.note,
            options={"maxiter": most_steps, "ftol": 1e-9, "gtol": 1e-7, "maxcor": 20},
        )  # fmt: skip
        value, x, problem.noise.log_sigma, _ = problem.best
        gain, best = best - value, value
        if gain < _GAIN:
            break
    return x
