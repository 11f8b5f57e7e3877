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

from .. import matrices
from .._base import random_blocks
from .._base import validate as check
from .._base.checkpoints import bar
from .._base.lazy_scipy import optimize as scipy_optimize
from ..balls_in_bins import importance_sampling
from ..matrices import Encoder
from ..mechanisms.balls_in_bins import BallsInBins
from ..results import NoBracketError
from . import arguments, families, objectives, slopes
from .moving_lines import MovingLines

_LINES = 512
_MOST_LINES = 2**17
_PASSES = 3  # of L-BFGS-B, each with lines drawn for the encoder at which the last one ended
_ROW_STEPS, _ROW_LINES = 6, 3  # steps of the scales of rows; lines are drawn again after so many
_SCALE_STEPS = 45  # of L-BFGS-B, of which more would fit the lines
_GAIN = 2e-4  # a pass that gains less (relative) is the last
_ROOT = 1e-3  # of log delta: Newton's next step is then exact to the square of it
_NEWTON = 6  # steps, before the interval between the ends is halved
_BEYOND = 500.0  # logarithm of an error that is none
_STREAM, _SLOPE_STREAM = 9, 10  # first keys of the random streams
_VALIDATION = 0.005  # standard error of delta, relative


class Objective(float):
    """The error of the optimised encoder at its noise multiplier, with `standard_error`: both from fresh samples."""

    standard_error: float

    def __new__(cls, value, standard_error):
        result = super().__new__(cls, value)
        result.standard_error = float(standard_error)
        return result

    def __getnewargs__(self):
        return float(self), self.standard_error

    def __str__(self):
        return f"{float(self):.6g} +- {self.standard_error:.1g}"


@dataclass(frozen=True, eq=False)
class Optimized:
    """What an optimiser found.

    encoder : of `dplib.matrices`. noise_multiplier : estimate of the smallest one that meets the target.
    objective : `Objective`, per round and coordinate for the errors of prefix sums.
    history : shape (steps, 2), objective and noise multiplier after each step, from the lines of the optimiser.
    parameters : those of a family that is a function; None otherwise.
    """

    encoder: Encoder
    noise_multiplier: float
    objective: Objective
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
            f"objective={self.objective}, {len(self.history)} steps)"
        )


def optimize(
    encoder_family: str | Callable = "toeplitz", *, epsilon: float, delta: float,
    batches_per_epoch: int, epochs: int, objective: str | Callable = "rmse",
    bands: int | None = None, buffers: int = 3, scaling: str = "rows", start: ArrayLike | None = None, lines: int = _LINES,
    most_steps: int = 100, seed: int = 0,
) -> Optimized:
    """The encoder of a family with the smallest error of prefix sums at (epsilon, delta), balls in bins.

    The best Toeplitz encoder is not the best encoder: with scaled rows the error is some per cent smaller [N-gradI].

    Parameters
    ----------
    encoder_family : "toeplitz" (all coefficients free), "banded_toeplitz" (the first `bands` of them),
        "buffered_linear_toeplitz" (`buffers` buffers): first coefficient 1, all at least 0; "scaled_toeplitz" or
        "scaled_buffered", the first and the last of these with scales of rows, or of both. Or a function from a vector of
        parameters to Toeplitz coefficients, shape (n,), or to a lower-triangular array, shape (n, n), n = b E, written
        with jax.numpy, entries at least 0 at all parameters; JAX differentiates it with 64-bit numbers.
    epsilon : above 0. delta : in (0, 1). batches_per_epoch : b >= 1. epochs : E >= 1.
    objective : "rmse" (root mean square over rounds), "largest_error" (of a round), or a function
        (C, noise_multiplier) -> number, written with jax.numpy, C as the family gives it (not for scaled families).
    bands : 1 to b E, for "banded_toeplitz". buffers : 1 to 8, with output weights above 0.
    scaling : "rows", or "both" for scales of rows and columns (up to 2% less error, several times as long).
    start : Toeplitz encoder to start from (not for buffers); None: optimal counting, cut after a quarter of b.
        For a function: its first parameters.
    lines : 64 to 2^17, drawn once for each pass; most_steps : of L-BFGS-B in each pass. seed : whole number.

    Both directions: remove is the larger one [C-9m]. Raises ValueError or TypeError on bad input.
    Cost: b = 128, n = 2,048: a few seconds; memory O(n + b^2), for arrays O(n^2), for scaled families O(n b).
    """
    epsilon, delta = arguments.target(epsilon, delta)
    b, epochs = arguments.scheme(batches_per_epoch, epochs)
    lines = check.whole("lines", lines, at_least=64, at_most=_MOST_LINES)
    most_steps = check.whole("most_steps", most_steps, at_least=1)
    seed = arguments.seed(seed)
    goal = objectives.make(objective)
    family = families.make(encoder_family, b * epochs, b, bands, buffers, start, families.BASES)
    check.choice("scaling", scaling, families.SCALINGS)
    is_scaled = isinstance(encoder_family, str) and encoder_family in families.BASES
    if is_scaled and callable(objective):
        raise ValueError(f"objective must be one of {objectives.NAMES} for the family {encoder_family!r}; got a function")
    goal.value(family.table(family.start), 1.0)  # refuses what has no value there
    noise = _Noise(epsilon, delta, lines, seed)
    problem = _Problem(family, goal, b, noise)
    goes_on = is_scaled and (scaling == "both" or objective != "rmse")  # with scales, from about there
    x = _descend(problem, most_steps, passes=1 if goes_on else _PASSES)
    encoder = family.encoder(x)
    if is_scaled:
        rows = _row_scales(problem, encoder) if objective == "rmse" else np.ones(b * epochs)
        encoder = matrices.scaled(encoder, rows)
        if goes_on:
            problem.family = families.Scaled(family, (x, rows), scaling == "both")
            noise.lines += noise.lines // 2  # several thousand parameters fit the lines better than what the lines stand for
            encoder = problem.family.encoder(_descend(problem, min(most_steps, _SCALE_STEPS), passes=1))
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
    table = slopes.table(encoder)
    goal = objectives.make(objective)
    sigma, error = importance_sampling.solve_scale(
        slopes.gram(table, batches), epsilon, delta, "remove",
        seed=2**62 + seed, relative_error=_VALIDATION, start=start,
    )  # fmt: skip
    error = abs(goal.noise_slope(table, sigma)) * error / sigma
    value = Objective(goal.value(table, sigma), error)
    return Optimized(encoder, sigma, value, history, batches, encoder.columns // batches, parameters)


def noise_slope(
    table: ArrayLike, *, epsilon: float, delta: float, batches_per_epoch: int, lines: int = 2**12,
    seed: int = 0,
) -> tuple[float, np.ndarray]:
    """(noise multiplier at the target, its gradient by the table): the implicit gradient by lines [N-grad].

    table : Toeplitz coefficients, shape (n,), or a lower-triangular array, shape (n, n), entries at least 0; n a
        multiple of batches_per_epoch, b.
    epsilon : above 0. delta : in (0, 1). lines : 64 to 2^17. seed : whole number.

    Returns (float, array of the shape of the table). Estimates: the error falls a little faster than 1 / sqrt(lines).

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
    seed = arguments.seed(seed)
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
        """(log sigma, S up to a factor): Newton, from the last root, between ends on both sides of it."""
        self.moving.moved(gram)
        x, goal = self.log_sigma, math.sqrt(-self.log_delta)
        low, high = -math.inf, math.inf
        for step in range(60):
            log_delta, slope, weights = self.moving.scaled(math.exp(x))
            if not (math.isfinite(log_delta) and slope < 0):
                break  # too far from where the lines were drawn
            # The root of -log delta is nearly a straight line.
            height = math.sqrt(max(-log_delta, 1e-9))
            low, high = (x, high) if height < goal else (low, x)
            newton = x + min(max((height - goal) * 2 * height / slope, -0.5), 0.5)
            if abs(log_delta - self.log_delta) < _ROOT:
                self.log_sigma = newton
                return newton, weights
            # With few lines the slope of the average is not that of these lines: Newton may go to and fro.
            enclosed = math.isfinite(low) and math.isfinite(high)
            x = (low + high) / 2 if enclosed and step >= _NEWTON else newton
        raise NoBracketError("the noise multiplier for the target was not found; more lines may help")


# ------------------------------------------------------------------------- the function minimised


class _Problem:
    """The objective at the noise that the target asks for, with its gradient by the parameters of the family."""

    def __init__(self, family, objective, batches, noise):
        self.family, self.objective, self.b, self.noise = family, objective, batches, noise
        self.seen, self.history = {}, []

    def start_pass(self, x, number):
        """New lines for the encoder at x."""
        self.seen, self.best = {}, None
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
        self.seen[x.tobytes()] = shown, math.exp(log_sigma)
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

    def note(self, x):
        self.history.append(self.seen.get(x.tobytes(), (math.nan, math.nan)))


def _row_scales(problem, encoder):
    """The scales of rows of least root mean square error for a Toeplitz encoder: d_t^4 = q_t / (m_t^T S m_t) [N-gradI].

    S depends on the scales, slowly; steps of the whole way swing, steps of half of it settle.
    """
    noise, current = problem.noise, matrices.scaled(encoder)
    for step in range(_ROW_STEPS):
        gram = slopes.gram(current, problem.b)
        if step % _ROW_LINES == 0:
            noise.draw(gram, _PASSES + step, noise.log_sigma)
        log_sigma, weights = noise.at(gram)
        log_error, by_error = slopes.log_error(current)
        problem.history.append((math.exp(log_sigma + log_error), math.exp(log_sigma)))
        # q_t / d_t^2 and d_t^2 m_t^T S m_t, each over its sum: the shares of round t in error and noise, -1 and 1 times
        # the slopes of their logarithms.
        shares = -by_error[1] / _log_slope(current, gram, weights)[1]
        rows = current.row_scale * shares**0.125
        current = matrices.scaled(encoder, rows / np.exp(np.mean(np.log(rows))))
    return current.row_scale


def _descend(problem, most_steps, passes=_PASSES):
    """The parameters at the minimum: passes of L-BFGS-B."""
    family = problem.family
    x, best = family.start, math.inf
    if not len(x):
        return x
    with bar(description="encoder", total=passes * most_steps) as progress:

        def step(point):
            problem.note(point)
            progress.update()

        for number in range(passes):
            problem.start_pass(x, number)
            scipy_optimize.minimize(
                problem.value, x, jac=True, method="L-BFGS-B", bounds=family.bounds, callback=step,
                options={"maxiter": most_steps, "ftol": 1e-9, "gtol": 1e-7, "maxcor": 20},
            )  # fmt: skip
            value, x, problem.noise.log_sigma, _ = problem.best
            gain, best = best - value, value
            if gain < _GAIN:
                break
    return x
