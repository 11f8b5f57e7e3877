"""Second routes for scripts/fuzz.py: is a number that a function returned also what another computation says?

A route takes the arguments and the value, and returns what is wrong or None; NoBracketError means that the other
computation has no answer. Certified ends are compared without any tolerance.
"""

from __future__ import annotations

import dataclasses
import math

import mpmath
import numpy as np

import dplib
from dplib import accounting, contour, lattice, mixtures, renyi
from dplib._floats import inside_floats
from dplib.results import Bracket, UpperBound


def apart(value, other, what):
    """What is wrong if two answers to one question exclude each other."""
    low = getattr(value, "lower", -math.inf), getattr(other, "lower", -math.inf)
    if low[0] > other.upper or low[1] > value.upper:
        return f"{value!r} and {other!r} ({what}) exclude each other"
    return None


def _another(value):
    """A method that `value` does not come from."""
    if isinstance(value, UpperBound):
        return "auto"
    return "lattice" if value.method.startswith("contour") else "contour"


def _mechanism(make, question):
    def route(arguments, value):
        parts = {key: part for key, part in arguments.items() if key not in ("direction", "target", "method")}
        mechanism, target, direction = make(**parts), arguments["target"], arguments["direction"]
        return _of_accountant(
            getattr(mechanism, question), mechanism.delta, question, target, direction, value
        )

    return route


def _accounting(question):
    def route(arguments, value):
        parts, target = arguments["composition"], arguments["delta" if question == "epsilon" else "epsilon"]
        ask = {"epsilon": accounting.epsilon, "delta": accounting.delta}
        question_of = {name: lambda *rest, f=function: f(parts, *rest) for name, function in ask.items()}
        return _of_accountant(
            question_of[question], question_of["delta"], question, target, arguments["direction"], value
        )

    return route


def _of_accountant(ask, delta, question, target, direction, value):
    method = _another(value)
    if wrong := apart(value, ask(target, direction, method), method):
        return wrong
    if question == "epsilon" and value.upper <= 1e90 and delta(value.upper, direction).lower > target:
        return f"delta at the upper end {value.upper!r} is above the target"
    if question == "delta" and target <= 1e90 and delta(2 * target + 1, direction).lower > value.upper:
        return "delta grows with epsilon"
    return None


def _side(others):
    def route(arguments, value):
        arguments = dict(arguments)
        if "mixture" in arguments:
            arguments["composition"] = [(arguments.pop("mixture"), arguments.pop("rounds"))]
        with inside_floats():
            return apart(value, others(**arguments), "lattice or contour")

    return route


# --- closed forms --------------------------------------------------------------------------------------------


def _exact_log_delta(mu, epsilon):
    """The Gaussian mechanism in 60 digits."""
    with mpmath.workdps(60 + int(2 * abs(math.log10(mu)))):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2
        return float(
            mpmath.log(tail(epsilon / mu - mu / 2) - mpmath.exp(epsilon) * tail(epsilon / mu + mu / 2))
        )


def _gaussian_log_delta(arguments, value, logarithm=True):
    mu, epsilon = float(arguments["mu"]), float(arguments["epsilon"])
    if not (1e-3 <= mu <= 200 and epsilon <= 500 and abs(epsilon / mu - mu / 2) < 1e4):
        return None
    exact, found = _exact_log_delta(mu, epsilon), value
    if not logarithm:
        if value == 0:
            return None if exact < math.log(5e-324) + 1 else "0, but delta is not"
        if exact < -700:
            return None
        found = math.log(value)
    x = abs(epsilon / mu - mu / 2)
    allowed = 1e-12 + 1e-14 * (1 + x) * (epsilon / mu + mu)  # epsilon and mu are rounded
    return None if abs(found - exact) <= allowed else f"log delta {found!r}, but {exact!r} in 60 digits"


def _gaussian_epsilon(arguments, value):
    mu, delta = float(arguments["mu"]), float(arguments["delta"])
    if not (1e-3 <= mu <= 200 and value <= 500):
        return None
    if value == 0:
        return None if _exact_log_delta(mu, 0.0) <= math.log(delta) + 1e-12 else "0, but delta(0) is larger"
    low, high = (_exact_log_delta(mu, value * (1 + way)) for way in (-1e-9, 1e-9))
    return (
        None
        if high - 1e-12 <= math.log(delta) <= low + 1e-12
        else f"epsilon {value!r} misses delta {delta!r}"
    )


def _one_step_delta(arguments, value):
    if not isinstance(value, float):
        return None  # of several probabilities
    pair = mixtures.binomial(
        1, float(arguments["sampling_probability"]), float(arguments["noise_multiplier"])
    )
    certified = accounting.delta(pair, float(arguments["epsilon"]), "remove")
    near = Bracket(certified.lower * (1 - 1e-9), certified.upper * (1 + 1e-9) + 1e-300)
    return None if value in near else f"{value!r} is not in {certified!r}"


def _one_step_noise(arguments, value):
    if not isinstance(value, float):
        return None  # of several probabilities
    epsilon, delta, q = (float(arguments[key]) for key in ("epsilon", "delta", "sampling_probability"))
    if epsilon > 100 or delta > 0.99 * q:
        return None
    at, less = (
        accounting.delta(mixtures.binomial(1, q, float(value) * factor), epsilon, "remove")
        for factor in (1, 1 - 1e-8)
    )
    return (
        None if at.lower <= delta < less.upper else f"noise {value!r}: delta {at!r}, and {less!r} with less"
    )


# --- the rest ------------------------------------------------------------------------------------------------


def _calibrated(arguments, value):
    if isinstance(value, (dplib.BallsInBins, dplib.MatrixMechanism)):
        return None
    epsilon, delta, direction = arguments["epsilon"], arguments["delta"], arguments["direction"]
    if value.delta(epsilon, direction).lower > delta:
        return f"delta at noise {value.noise_multiplier!r} is above the target"
    less = dataclasses.replace(value, noise_multiplier=value.noise_multiplier * (1 - 1e-6))
    return None if less.delta(epsilon, direction).upper > delta else "less noise is enough"


def _renyi_composition(arguments, value):
    exact = accounting.delta(arguments["parts"], 1.0, arguments["direction"])
    return None if exact.lower <= value.upper else f"{value!r} is below {exact!r}"


def _subsampled(arguments, value):
    pair = mixtures.binomial(
        1, float(arguments["sampling_probability"]), float(arguments["noise_multiplier"])
    )
    return apart(
        value, renyi.divergence(pair, arguments["order"], arguments["direction"]), "divergence of the mixture"
    )


def _renyi_gaussian(arguments, value):
    exact = np.asarray(arguments["order"]) / (2 * arguments["noise_multiplier"] ** 2)
    same = np.isclose(value, exact, rtol=1e-12) | np.isinf(value)
    return None if same.all() else f"{value!r}, but {exact!r}"


def _single(arguments, value):
    norms = np.linalg.norm(arguments["encoder"].entries(), axis=0)
    return (
        None
        if math.isclose(value, norms.max(), rel_tol=1e-12)
        else f"{value!r}, but a column has {norms.max()!r}"
    )


def _matrix(question):
    """Without correlation the matrix mechanism is DP-SGD, and its answer an upper bound."""

    def route(arguments, value):
        encoder, sigma, q = (
            arguments[key] for key in ("encoder", "noise_multiplier", "sampling_probability")
        )
        entries = encoder.entries()
        if arguments["min_separation"] != 1 or not np.array_equal(entries, np.eye(*entries.shape)):
            return None
        exact = getattr(dplib.PoissonDPSGD(sigma, q, len(entries)), question)(
            arguments["target"], arguments["direction"]
        )
        return None if exact.lower <= value.upper else f"{value!r} is below {exact!r}"

    return route


ROUTES = {
    "mechanisms.PoissonDPSGD": _mechanism(dplib.PoissonDPSGD, "delta"),
    "mechanisms.PoissonDPSGD.epsilon": _mechanism(dplib.PoissonDPSGD, "epsilon"),
    "mechanisms.FixedBatchDPSGD": _mechanism(dplib.FixedBatchDPSGD, "delta"),
    "mechanisms.FixedBatchDPSGD.epsilon": _mechanism(dplib.FixedBatchDPSGD, "epsilon"),
    "mechanisms.LastIterate": _mechanism(dplib.LastIterate, "delta"),
    "mechanisms.LastIterate.epsilon": _mechanism(dplib.LastIterate, "epsilon"),
    "mechanisms.MatrixMechanism": _matrix("delta"),
    "mechanisms.MatrixMechanism.epsilon": _matrix("epsilon"),
    "accounting.delta": _accounting("delta"),
    "accounting.epsilon": _accounting("epsilon"),
    "calibrate.calibrate": _calibrated,
    "contour.side_epsilon": _side(lattice.side_epsilon),
    "contour.side_log_delta": _side(lattice.side_log_delta),
    "lattice.side_epsilon": _side(contour.side_epsilon),
    "lattice.side_log_delta": _side(contour.side_log_delta),
    "rare.side_epsilon": _side(lattice.side_epsilon),
    "rare.side_log_delta": _side(lattice.side_log_delta),
    "gaussian.delta": lambda arguments, value: _gaussian_log_delta(arguments, value, logarithm=False),
    "gaussian.log_delta": _gaussian_log_delta,
    "gaussian.epsilon": _gaussian_epsilon,
    "one_step.delta": _one_step_delta,
    "one_step.noise_multiplier": _one_step_noise,
    "renyi.composition_curve": _renyi_composition,
    "renyi.gaussian": _renyi_gaussian,
    "renyi.subsampled_gaussian": _subsampled,
    "sensitivity.single": _single,
}
