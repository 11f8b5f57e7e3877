"""The smallest noise multiplier for a privacy target."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .. import accounting, gaussian
from .._base import validate as check
from .._base.log_space import EPS
from .._base.validate import Direction
from ..accounting import chernoff, renyi
from ..results import NoBracketError, UpperEnd
from .dpsgd import PoissonDPSGD
from .search import FARTHEST, smallest

METHODS = ("auto", "renyi")
Named = TypeVar("Named")  # any mechanism: its own class comes back
_TOLERANCE = 3e-9
_BOUND_TOLERANCE = 1e-4  # where epsilon itself is but an upper bound
_STEPS = 6  # in log noise, from what delta asks for to what epsilon does
_USUAL_SLOPE = 1.4  # of log epsilon against log noise, about
_STEEP = -10.0  # of log delta against it


def calibrate(
    mechanism: Named,
    *,
    epsilon: float,
    delta: float,
    direction: Direction = "both",
    method: Literal["auto", "renyi", "exact", "estimate", "certificate"] = "auto",
    seed: int = 0,
    samples: int | None = None,
    failure_probability: float | None = None,
) -> Named:
    """The same mechanism with the smallest noise multiplier that meets the target.

    Parameters
    ----------
    mechanism : any mechanism of `dplib`; its own noise multiplier is a fallback for the first guess.
    epsilon : in [0, 1e6]. delta : in (0, 1). direction : "remove", "add" or "both" (remove [C-9m]).
    method : "auto", or "renyi" for the noise that Renyi accounting asks for (more than needed).

    The *upper* bounds of delta at `epsilon`, and of epsilon at `delta` (to 1e-9 of it), meet the target; a noise
    multiplier smaller by 1e-8 (relative), by 1e-6 where the lattice answers, or by 0.1% where brackets are wide,
    would not. Raises ValueError when every noise multiplier meets the target, and on bad input. Cost: about six accountant calls.

    A noise multiplier that is proved to be enough is an `UpperEnd`: its digits are rounded up when it is printed.

    For a `MatrixMechanism` it is the upper bound of epsilon at `delta` that meets `epsilon`, and with a noise multiplier
    that is smaller by 1e-3 it would not; "auto" only. Cost: about twenty times its `epsilon`. So for a `RandomAllocation`, with
    its method "bound", and for a `MinSeparation` with "renyi": at the noise that is found a certificate proves less than `epsilon`.

    For `BallsInBins` the method, and with it what is promised, is one of its own:

        "exact"        the upper end of delta's bracket meets `delta` (1e-290 to 1 - 1e-8), and would not 1e-5 below; where there is one
        "estimate"     the *estimated* delta is `delta`: the noise is good to about 0.1%, and no guarantee
        "certificate"  the noise, 0.1 to 1% larger, makes the run (epsilon, delta)-DP: delta - failure_probability is
                       certified with fresh samples, and what the search may get wrong is paid for with the
                       rest of delta [N-2.1s] (`failure_probability` is below delta; None: min(1e-9, delta / 1000))
        "auto"         exact where that exists, else an estimate: certify it before relying on it, or leave some room

    with `seed` and `samples` as for its `delta`. `BallsInBins.certified` returns the certificate, too.
    For other mechanisms `seed`, `samples` and `failure_probability` have no meaning, and must be left out.

    >>> from dplib import PoissonDPSGD, calibrate
    >>> draft = PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000)
    >>> private = calibrate(draft, epsilon=2.0, delta=1e-6)
    >>> print(f"{private.noise_multiplier:.5f}")
    1.24574
    >>> private.delta(epsilon=2.0).upper <= 1e-6
    True
    """
    epsilon, delta, direction = check.target_epsilon(epsilon), check.delta(delta), check.direction(direction)
    if hasattr(mechanism, "phases"):
        raise TypeError("mechanism must have one noise multiplier; phases have one each: scale them, and compare `compose(...).epsilon`")
    check.mechanism(mechanism, question="epsilon")
    options = {"seed": seed, "samples": samples, "failure_probability": failure_probability}
    if hasattr(mechanism, "_calibrated"):
        return mechanism._calibrated(epsilon, delta, direction, method, **options)
    bound = getattr(mechanism, "_bound", None)
    methods = METHODS if bound is None else ("auto", bound) if bound else ("auto",)
    check.choice("method", method, methods)
    for name, value in options.items():
        if value != (0 if name == "seed" else None):
            raise ValueError(f"{name} must be left out for a mechanism that needs no sampling; got {value!r}")
    if bound is not None:
        return _calibrated_bound(mechanism, epsilon, delta, direction)
    solver = _Solver(mechanism, epsilon, delta, direction, method, _TOLERANCE)
    return solver.met_by_epsilon(solver.log_noise()[0], direction)


def effective_noise(
    sampling_probability: ArrayLike, steps: int, epsilon: float, delta: float, *, direction: Direction = "both",
    tolerance: float = 1e-8,
) -> float | np.ndarray:
    """sigma(q, T) / q: the noise on the estimate of the whole gradient sum of DP-SGD at a privacy target [R-5.4].

    Parameters
    ----------
    sampling_probability : q in (0, 1], a number or an array of them.
    steps : T >= 1 rounds. epsilon : in [0, 1e6]. delta : in (0, 1).
    direction : "remove", "add" or "both" (remove: the noise that serves both [C-9m]).
    tolerance : relative, in [1e-9, 0.1].

    sigma(q, T) is the noise multiplier of `calibrate`: certified to meet the target,
    and at most `tolerance` above the smallest one that does (1e-6 where the lattice answers). An array is walked from the
    largest q down, each solution started from its neighbours: a few accountant calls each.
    Raises ValueError where no noise is needed, and on bad input. Returns a float, or an array.

    >>> from dplib.calibration import effective_noise
    >>> small, full = effective_noise([0.01, 1.0], steps=1000, epsilon=1.0, delta=1e-6)
    >>> print(f"batches of 1%: {small:.2f}   of everything: {full:.2f}")
    batches of 1%: 156.27   of everything: 133.60
    """
    rates, scalar = check.grid("sampling_probability", sampling_probability)
    for rate in rates.ravel():
        check.real("sampling_probability", float(rate), above=0, at_most=1)
    steps = check.whole("steps", steps, at_least=1)
    epsilon, delta, direction = check.target_epsilon(epsilon), check.delta(delta), check.direction(direction)
    tolerance = check.real("tolerance", tolerance, at_least=1e-9, at_most=0.1)
    order = np.argsort(rates.ravel())[::-1]
    solvers = [
        _Solver(PoissonDPSGD(1.0, float(rate), steps), epsilon, delta, direction, "auto", tolerance)
        for rate in rates.ravel()[order]
    ]
    places, solutions = [math.log(solver.mechanism.sampling_probability) for solver in solvers], []
    start = slope = None
    for i, solver in enumerate(solvers):
        start, slope = solver.log_noise(start, slope)
        solutions.append(start)
        if 0 < i < len(solvers) - 1 and places[i] < places[i - 1]:  # on along the line through the last two
            start += (start - solutions[i - 1]) * min((places[i] - places[i + 1]) / (places[i - 1] - places[i]), 1.5)
    noise = np.empty(rates.size)
    noise[order] = np.exp(solutions) / rates.ravel()[order]
    return float(noise[0]) if scalar else noise.reshape(rates.shape)


def _no_noise(epsilon, delta):
    return ValueError(
        "epsilon and delta must not be met by every noise multiplier: no noise is needed for "
        f"epsilon={epsilon!r}, delta={delta!r}"
    )


class _Solver:
    """One privacy target: the smallest noise of one mechanism that meets it."""

    def __init__(self, mechanism, epsilon, delta, direction, method, tolerance):
        self.mechanism, self.epsilon, self.method, self.tolerance = mechanism, epsilon, method, tolerance
        self.delta, self.target = delta, math.log(delta)
        self.blur = 0.0  # width of the last bracket of log delta
        parts = accounting.merged(mechanism.composition())
        # The direction of the pairs: the other one where records are only deleted.
        direction = mechanism._facing(direction)
        self.sides = accounting.sides(parts, direction)
        # Without noise the loss is infinite wherever the sensitivities differ: both laws meet only where all of them are 0.
        def without_noise(side):
            unmoved = [(rounds * ends[0], rounds * ends[1]) for pair, rounds in parts for ends in [pair.unmoved(side)]]
            first, second = (math.fsum(logs) for logs in zip(*unmoved)) if unmoved else (0.0, 0.0)
            return -math.expm1(min(first, second + epsilon, 0.0))

        no_noise = max(map(without_noise, self.sides)) <= delta
        log_floor = sum(rounds * pair.log_floor for pair, rounds in parts)
        if method == "renyi":
            # The add direction's loss has a limit, at every order the same; remove's has none.
            no_noise = not parts or (
                direction == "add" and log_floor > -math.inf and renyi.to_delta(lambda order: -log_floor, epsilon).upper <= delta
            )
        if no_noise:
            raise _no_noise(epsilon, delta)

    def at(self, log_noise):
        return dataclasses.replace(self.mechanism, noise_multiplier=UpperEnd(math.exp(log_noise)))

    def _parts(self, log_noise):
        return accounting.merged(self.at(log_noise).composition())

    def log_noise(self, start=None, slope=None):
        """(log of the smallest noise multiplier, last slope of log delta); both arguments are guesses."""
        if start is None:
            start, slope = self._guess()
        return smallest(self.excess, start, slope, self.tolerance, lambda: self.blur)

    def met_by_epsilon(self, log_noise, direction):
        """The mechanism with this noise, or a little more where its `epsilon` at delta has a wider bracket than its `delta`."""
        found, moved = self.at(log_noise), 0.0
        for _ in range(_STEPS):
            spent = found.epsilon(self.delta, direction, self.method).upper
            if spent <= self.epsilon * (1 + 1e-9) or self.epsilon == 0 or moved >= FARTHEST:
                break
            moved = min(moved + max(spent / self.epsilon - 1, 1e-9), FARTHEST)
            found = self.at(log_noise + moved)
        return found

    def excess(self, log_noise):
        """log delta's upper bound, over the target: decreasing in the noise."""
        parts = self._parts(log_noise)
        return max(self._side_excess(parts, side) for side in self.sides)

    def _side_excess(self, parts, side):
        if self.method == "renyi":
            return renyi.log_delta(renyi.composition_curve(parts, side), self.epsilon)[0] - self.target
        # Brackets need not be much narrower than what `tolerance` makes of log delta.
        width = max(1e-6, 0.1 * self.tolerance / (1 - self.target))
        parts = [(pair.facing(side), rounds) for pair, rounds in parts]
        bracket = accounting.side_delta(parts, self.epsilon, side, self.method, width)
        self.blur = math.log(bracket.upper / bracket.lower) if bracket.lower > 0 else math.inf
        if bracket.upper == 0:
            return -math.inf
        value = math.log(bracket.upper) - self.target
        return min(value, 0.0) if bracket.upper <= self.delta else max(value, EPS)

    # -- where to start

    def _rough(self, log_noise):
        """Rough excess, by the Chernoff bound: no certificate."""
        parts = self._parts(log_noise)
        logs = [
            chernoff.Chernoff([(pair.facing(side), rounds) for pair, rounds in parts], side).log_delta(self.epsilon) for side in self.sides
        ]
        return max(*logs, -1e6) - self.target

    def _guess(self):
        """(log noise, slope of log delta against it) where the rough excess is near 0."""
        # Where the exact delta needs no noise at all, Renyi's bound still does.
        if self.method != "renyi":
            try:
                return smallest(self._rough, 0.0, _STEEP, 1e-3)
            except NoBracketError:
                pass
        return math.log(self.mechanism.noise_multiplier), _STEEP


# ------------------------------------------------------- where epsilon is but an upper bound


def _calibrated_bound(mechanism, epsilon, delta, direction):
    """The mechanism with the smallest noise whose upper bound on epsilon meets the target."""
    norm = float(np.max(mechanism.encoder.column_norms())) if hasattr(mechanism, "encoder") else 1.0
    at = lambda x: dataclasses.replace(mechanism, noise_multiplier=UpperEnd(math.exp(x)))
    options = {"method": mechanism._bound} if mechanism._bound else {}

    def excess(x):
        """log of the bound over the target (its sign where a logarithm is infinite)."""
        if x < math.log(1e-9 * norm):
            raise _no_noise(epsilon, delta)
        try:
            found = at(x).epsilon(delta, direction, **options).upper
        except NoBracketError:
            # Too little noise for any bound; but where more does not help either, that is the answer.
            if x > math.log(1e9 * norm):
                raise
            return math.inf
        if min(found, epsilon) == 0:
            return 1.0 if found > epsilon else -1.0
        return math.log(found / epsilon)

    # Start at one participation without sampling.
    start = math.log(norm / gaussian.calibrate(epsilon, delta))
    return at(smallest(excess, start, -_USUAL_SLOPE, 0.9 * _BOUND_TOLERANCE)[0])
