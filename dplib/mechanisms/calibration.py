"""The smallest noise multiplier for a privacy target."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .. import accounting, gaussian
from .._base import progress as progress_bar
from .._base import validate as check
from .._base.validate import Direction
from ..accounting import contour, renyi
from ..mixtures import EPS
from ..results import NoBracketError, UpperEnd
from . import BallsInBins, MatrixMechanism, PoissonDPSGD, balls_in_bins

METHODS = ("auto", "renyi")
Named = TypeVar("Named")  # any mechanism: its own class comes back
_TOLERANCE = 3e-9
_BOUND_TOLERANCE = 1e-4  # where epsilon itself is but an upper bound
_STEP_DOWN, _MOST_STEPS_DOWN = 8e-4, 60
_ORDERS = (1.25, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)  # of a rough Renyi bound
_STEPS, _FARTHEST = 6, 5e-4  # in log noise, from what delta asks for to what epsilon does
_BLURRED = 0.2
_USUAL_SLOPE = 1.4  # of log epsilon against log noise, about


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
    that is smaller by 1e-3 it would not; "auto" only. Cost: about twenty times its `epsilon`.

    For `BallsInBins` the method, and with it what is promised, is one of its own:

        "exact"        the upper end of delta's bracket meets `delta`, and would not 1e-5 below; where there is one
        "estimate"     the *estimated* delta is `delta`: the noise is good to about 0.1%, and no guarantee
        "certificate"  the noise, 0.1 to 1% larger, makes the run (epsilon, delta)-DP: delta - failure_probability is
                       certified with fresh samples, and what the search may get wrong is paid for with the
                       rest of delta [N-2.1s] (`failure_probability` is below delta; None: min(1e-9, delta / 1000))
        "auto"         exact where that exists, else an estimate: certify it before relying on it, or leave some room

    with `seed` and `samples` as for its `delta`. `BallsInBins.certified` returns the certificate, too.
    For other mechanisms these three have no meaning, and must be left out.

    >>> from dplib import PoissonDPSGD, calibrate
    >>> draft = PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000)
    >>> private = calibrate(draft, epsilon=2.0, delta=1e-6)
    >>> print(f"{private.noise_multiplier:.5f}")
    1.24574
    >>> private.delta(epsilon=2.0).upper <= 1e-6
    True
    """
    epsilon, delta, direction = check.target_epsilon(epsilon), check.delta(delta), check.direction(direction)
    check.mechanism(mechanism, question="epsilon")
    options = {"seed": seed, "samples": samples, "failure_probability": failure_probability}
    if isinstance(mechanism, BallsInBins):
        return balls_in_bins.calibrated(mechanism, epsilon, delta, direction, method, **options)
    check.choice("method", method, METHODS)
    for name, value in options.items():
        if value != (0 if name == "seed" else None):
            raise ValueError(f"{name} must be left out for a mechanism that needs no sampling; got {value!r}")
    if isinstance(mechanism, MatrixMechanism):
        if method != "auto":
            raise ValueError(f"method must be 'auto' for a MatrixMechanism; got {method!r}")
        return _calibrated_bound(mechanism, epsilon, delta, direction)
    solver = _Solver(mechanism, epsilon, delta, direction, method, _TOLERANCE)
    return solver.met_by_epsilon(solver.log_noise()[0], direction)


def effective_noise(
    sampling_probability: ArrayLike, steps: int, epsilon: float, delta: float, *, direction: Direction = "both",
    tolerance: float = 1e-8,
) -> float | np.ndarray:
    """sigma(q, T) / q: the noise on the averaged gradient of DP-SGD at a privacy target [R-5.4].

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
    known: list = []
    slope = None
    for solver in solvers:
        q = solver.mechanism.sampling_probability
        start = _extrapolated(known[-3:], math.log(q)) if len(known) > 1 else None
        solution, slope = solver.log_noise(start, slope)
        known.append((math.log(q), solution))
    noise = np.empty(rates.size)
    noise[order] = np.exp([solution for _, solution in known]) / rates.ravel()[order]
    return float(noise[0]) if scalar else noise.reshape(rates.shape)


def _no_noise(epsilon, delta):
    return ValueError(
        "epsilon and delta must not be met by every noise multiplier: no noise is needed for "
        f"epsilon={epsilon!r}, delta={delta!r}"
    )


def _extrapolated(known, x):
    """Value at x of the polynomial through the last known points; None where it is no guide."""
    places, values = zip(*known)
    reach = min(1.5 * abs(places[-1] - places[-2]), 1.0)
    if len(set(places)) < len(places) or abs(x - places[-1]) > reach:
        return None
    return float(np.polyval(np.polyfit(places, values, len(places) - 1), x))


class _Solver:
    """One privacy target: the smallest noise of one mechanism that meets it."""

    def __init__(self, mechanism, epsilon, delta, direction, method, tolerance):
        self.mechanism, self.epsilon, self.method, self.tolerance = mechanism, epsilon, method, tolerance
        self.delta, self.target, self.side = delta, math.log(delta), check.side(direction)
        self.blur = 0.0  # width of the last bracket of log delta
        parts = accounting.merged(mechanism.composition())
        # Without noise: removed, the loss is infinite exactly where a sensitivity is positive;
        # added, it is -log_floor, the loss of never being sampled.
        log_floor = sum(rounds * mixture.log_floor for mixture, rounds in parts)
        top = log_floor + epsilon if direction == "add" else log_floor
        no_noise = -math.expm1(min(top, 0.0)) <= delta
        if method == "renyi":
            # The add direction's loss has a limit, at every order the same; remove's has none.
            no_noise = not parts or (
                direction == "add" and renyi.to_delta(lambda order: -log_floor, epsilon).upper <= delta
            )
        if no_noise:
            raise _no_noise(epsilon, delta)

    def at(self, log_noise):
        return dataclasses.replace(self.mechanism, noise_multiplier=UpperEnd(math.exp(log_noise)))

    def _parts(self, log_noise):
        return accounting.merged(self.at(log_noise).composition())

    def log_noise(self, start=None, slope=None):
        """(log of the smallest noise multiplier, last slope of log delta); both arguments are guesses."""
        guess = self._guess() if start is None else start
        return _smallest(self.excess, guess, slope or self._slope(guess), self.tolerance, lambda: self.blur)

    def met_by_epsilon(self, log_noise, direction):
        """The mechanism with this noise, or a little more where its `epsilon` at delta has a wider bracket than its `delta`."""
        found, moved = self.at(log_noise), 0.0
        for _ in range(_STEPS):
            spent = found.epsilon(self.delta, direction, self.method).upper
            if spent <= self.epsilon * (1 + 1e-9) or self.epsilon == 0 or moved >= _FARTHEST:
                break
            moved = min(moved + max(spent / self.epsilon - 1, 1e-9), _FARTHEST)
            found = self.at(log_noise + moved)
        return found

    def excess(self, log_noise):
        """log delta's upper bound, over the target: decreasing in the noise."""
        parts = self._parts(log_noise)
        if self.method == "renyi":
            return renyi.log_delta(renyi.composition_curve(parts, self.side), self.epsilon)[0] - self.target
        # Brackets need not be much narrower than what `tolerance` makes of log delta.
        width = max(1e-6, 0.1 * self.tolerance / (1 - self.target))
        bracket = accounting.side_delta(parts, self.epsilon, self.side, self.method, width)
        self.blur = math.log(bracket.upper / bracket.lower) if bracket.lower > 0 else math.inf
        if bracket.upper == 0:
            return -math.inf
        value = math.log(bracket.upper) - self.target
        return min(value, 0.0) if bracket.upper <= self.delta else max(value, EPS)

    def _renyi(self, parts):
        """Excess of the Renyi bound at a few orders, no more than needed: an upper bound that always exists."""
        curve, best, epsilon = renyi.composition_curve(parts, self.side), math.inf, self.epsilon
        # With a small divergence the bound is about -order * epsilon.
        first = 1 - 1.5 * self.target / epsilon if epsilon > 0 and self.target < 0 else _ORDERS[0]
        for order in (min(max(first, 1.25), 1e5), *_ORDERS):
            best = min(best, renyi.log_delta(curve, epsilon, orders=[order])[0])
            if best <= self.target:
                break
        return best - self.target

    # -- where to start

    def _rough(self, log_noise):
        """Rough excess: no certificate. Rare draws add up; others obey the Chernoff bound."""
        parts = self._parts(log_noise)
        if self.method == "renyi":
            # Where the exact delta needs no noise at all, this bound still does.
            return max(self._renyi(parts), -1e6)
        taken = sum(rounds * (1 - float(np.exp(min(m.log_floor, 0.0)))) for m, rounds in parts)
        if self.side == "remove" and len(parts) == 1 and taken < 5:
            [(mixture, rounds)] = parts
            value = float(mixture.log_hockey_stick(np.array([self.epsilon]), self.side)[0]) + math.log(rounds)
        else:
            value = contour.Chernoff(parts, self.side).log_delta(self.epsilon)
        return max(value, -1e6) - self.target

    def _guess(self):
        try:
            return _rough_root(self._rough)
        except NoBracketError:
            return math.log(self.mechanism.noise_multiplier)

    def _slope(self, log_noise):
        """d log delta / d log noise, roughly."""
        try:
            change = self._rough(log_noise + 0.01) - self._rough(log_noise - 0.01)
        except NoBracketError:
            return -10.0
        return min(change / 0.02, -1.0)


def _rough_root(rough):
    """x with rough(x) near 0, to a thousandth; rough decreases in x."""
    low = high = 0.0
    step = 1.0
    while rough(high) > 0:
        low, high, step = high, high + step, 2 * step
    step = 1.0
    while low == high or rough(low) <= 0:
        low, high, step = low - step, low, 2 * step
    low_value, high_value = rough(low), rough(high)
    for _ in range(40):
        x = low + (high - low) * min(max(low_value / (low_value - high_value), 0.1), 0.9)
        value = rough(x)
        if value > 0:
            low, low_value = x, value
        else:
            high, high_value = x, value
        if high - low < 1e-3 or abs(value) < 1e-3:
            break
    return x


def _smallest(excess, x, slope, tolerance, blur=lambda: 0.0):
    """(least x to `tolerance`, on the safe side, with excess(x) <= 0; last slope); excess decreases.

    blur : function without arguments, how uncertain the last excess was: nearer than that no search need go.
    """
    low, high = -math.inf, math.inf
    last_x = last_value = math.nan
    for _ in range(200):
        value = excess(x)
        if value > 0:
            low = x
        else:
            high = x
        if high - low <= max(tolerance, min(_BLURRED * blur() / -slope, _FARTHEST)):
            break
        # Closer than this, rounding of the bracket would spoil the secant's slope.
        if abs(x - last_x) > min(30 * tolerance, 3e-3) and math.isfinite(value - last_value):
            secant = (value - last_value) / (x - last_x)
            slope = secant if secant < 0 else slope
        last_x, last_value = x, value
        move = min(max(-value / slope, -1.0), 1.0)
        # Beyond the root, so that both sides close in.
        new = x + move + math.copysign(0.4 * tolerance, move)
        if not low < new < high:
            # 0.45 rather than a half: the safe side is the one that is kept.
            new = low + 0.45 * (high - low) if math.isfinite(high - low) else x + math.copysign(1.0, move)
        x = new
    return high, slope


# ------------------------------------------------------- where epsilon is but an upper bound


def _calibrated_bound(mechanism, epsilon, delta, direction):
    """The `MatrixMechanism` with the smallest noise whose upper bound on epsilon meets the target."""
    norm = float(np.max(mechanism.encoder.column_norms()))
    # Without noise the loss is infinite for whoever takes part; added, it is that of never taking part.
    columns = -(-mechanism.encoder.columns // mechanism.min_separation)
    rate = mechanism.min_separation * mechanism.sampling_probability
    log_none = columns * math.log1p(-rate) if rate < 1 else -math.inf
    if mechanism.tail_bound == "best" and -math.expm1(min(log_none + (epsilon if direction == "add" else 0.0), 0.0)) <= delta:
        raise _no_noise(epsilon, delta)
    at = lambda candidate, x: dataclasses.replace(candidate, noise_multiplier=UpperEnd(math.exp(x)))

    def excess(x, candidate):
        """log of the bound over the target (its sign where a logarithm is infinite)."""
        if x < math.log(1e-9 * norm):
            raise _no_noise(epsilon, delta)
        progress.update(1)
        try:
            found = at(candidate, x).epsilon(delta, direction).upper
        except NoBracketError:
            # Too little noise for any bound; but where more does not help either, that is the answer.
            if x > math.log(1e9 * norm):
                raise
            return math.inf
        if min(found, epsilon) == 0:
            return 1.0 if found > epsilon else -1.0
        return math.log(found / epsilon)

    with progress_bar.bar(description="calibration", total=12) as progress:
        # Start at one participation without sampling.
        x = _nearby(partial(excess, candidate=mechanism), math.log(norm / gaussian.calibrate(epsilon, delta)))
        # With one tail bound and one share, epsilon is smooth.
        fixed = at(mechanism, x).with_best_tail(delta, direction)
        x, _ = _smallest(partial(excess, candidate=fixed), x, -_USUAL_SLOPE, 0.9 * _BOUND_TOLERANCE)
        # Another candidate may need less; at the end they all count.
        for _ in range(_MOST_STEPS_DOWN):
            if excess(x, mechanism) > 0 or excess(x - _STEP_DOWN, mechanism) > 0:
                break
            x -= _STEP_DOWN
        while excess(x, mechanism) > 0:
            x += _BOUND_TOLERANCE
    return at(mechanism, x)


def _nearby(excess, x):
    """A place with excess(x) within 0.05 of 0, or close above the root; excess decreases."""
    reach, last = 1.0, 0.0
    while True:
        value = excess(x)
        if value * last < 0:
            reach /= 2
        if abs(value) < 0.05 or (value <= 0 and reach < 0.05):
            return x
        x, last = x + min(max(value / _USUAL_SLOPE, -reach), reach), value
