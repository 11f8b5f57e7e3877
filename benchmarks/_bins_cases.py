"""What the benchmarks of balls in bins share: encoders by name, reference values, the truth."""

import json
import math

from _common import DATA  # before NumPy: one thread

# isort: split
import numpy as np

import dplib
from dplib import matrices, montecarlo
from dplib.balls_in_bins import importance_sampling
from dplib.optimize import optimize

ROUNDS, BATCHES = 2048, 128
SIDES = ("remove", "add")


def encoder(name, epsilon=None, delta=None, rounds=ROUNDS):
    """"identity", "16 bands" (of optimal counting), "counting", or "optimised" for (epsilon, delta)."""
    if name == "identity":
        return matrices.identity(rounds)
    if name == "counting":
        return matrices.optimal_counting(rounds)
    if name == "optimised":
        target = {"epsilon": epsilon, "delta": delta}
        return optimize(**target, batches_per_epoch=BATCHES, epochs=rounds // BATCHES).encoder
    return matrices.optimal_counting(rounds, int(name.split()[0]))


def mechanism(name, noise, epsilon=None, delta=None, rounds=ROUNDS):
    return dplib.BallsInBins(encoder(name, epsilon, delta, rounds), noise, BATCHES, rounds // BATCHES)


def at_target(name, epsilon, delta, rounds=ROUNDS):
    """The mechanism whose delta at epsilon is about `delta`."""
    return dplib.calibrate(
        mechanism(name, 10.0, epsilon, delta, rounds), epsilon=epsilon, delta=delta, method="estimate"
    )


def truth(setting, epsilon, direction="both", relative_error=3e-3, seed=1):
    """(value, standard error) of delta: a long estimate, of other draws than those that are judged."""
    gram = setting.gram() / setting.noise_multiplier**2
    found = montecarlo.estimate(gram, epsilon, direction, relative_error=relative_error, seed=seed)
    return found.value, found.standard_error


def plain_relative_variance(setting, epsilon, delta):
    """Var(X) / delta^2 of one plain sample X = (1 - e^(epsilon - Y))_+ under P (remove).

    E X^2 is 2 * integral over s > 0 of e^(-2 s) delta(epsilon + s): both sides are the second
    integrals of the same point masses. delta falls about like e^(-rate s): Gauss-Laguerre, six points; good to some per cent.
    """
    gram = setting.gram() / setting.noise_multiplier**2
    rate = 2 - importance_sampling.estimate(gram, epsilon, "remove", relative_error=0.05).d_epsilon
    nodes, weights = np.polynomial.laguerre.laggauss(6)
    deltas = [importance_sampling.estimate(gram, epsilon + s, "remove", relative_error=0.05).log_value for s in nodes / rate]
    second = 2 / rate * weights @ np.exp(nodes * (1 - 2 / rate) + np.array(deltas))
    return second / delta**2 - 1


def reference_cases():
    """(label, mechanism, case) of every reference value."""
    for case in json.loads((DATA / "bnb.json").read_text(encoding="utf-8"))["values"]:
        c, n = case["C"], case["n"]
        if c["kind"] == "identity":
            chosen, label = matrices.identity(n), "identity"
        elif c["kind"].startswith("sqrt"):
            chosen, label = matrices.optimal_counting(n, c.get("h")), f"{c.get('h', 'all')} bands"
        elif c["kind"] == "geometric":
            chosen, label = matrices.toeplitz(c["lam"] ** np.arange(n)), f"geometric {c['lam']}"
        else:
            chosen, label = matrices.buffered_linear_toeplitz(n, c["omega"], c["lam"]), "buffered"
        label += f", n={n}, sigma={case['sigma']:g}, epsilon={case['eps']:g}"
        yield label, dplib.BallsInBins(chosen, case["sigma"], case["b"], case["E"]), case


def standard_errors(value, error, reference, reference_error):
    return (value - reference) / math.hypot(error, reference_error)
