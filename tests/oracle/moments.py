"""Quantities of one round that accountants compute, again: tests/data/rounding.json and tests/data/renyi.json.

    python moments.py [EVERY]    every value, or every so many

kind "moment": log E_Q[R^w], w = 1 + z (remove) or w = -z (add), z = c + iy: the trapezoid rule in u = x / sigma, well
    inside the strip where R has no zero. kind "loss": log R at x. A Renyi divergence is log E_Q[R^w] / (order - 1),
    w = order (remove) or w = 1 - order (add). All in 60 digits.
"""

import json
import math
import sys
from pathlib import Path

from mpmath import mp, mpc, mpf

DATA = Path(__file__).resolve().parents[1] / "data"
mp.dps = 60
REACH = 22  # standard deviations beyond the modes


def atoms(params):
    """[(shift, probability)] of the mixture, in noise multipliers."""
    sigma = mpf(float(params["sigma"]))
    if "q" in params:
        q, k = mpf(float(params["q"])), params["k"]
        law = [(j, mp.binomial(k, j) * q**j * (1 - q) ** (k - j)) for j in range(k + 1)]
    else:
        law = [
            (mpf(float(s)), mpf(float(p))) for s, p in zip(params["sensitivities"], params["probabilities"])
        ]
    return [(s / sigma, p) for s, p in law if p]


def log_ratio(law, u):
    return mp.log(mp.fsum(p * mp.exp(a * (u - a / 2)) for a, p in law))


def moment(law, w):
    shifts = [float(a) for a, _ in law]
    gap = max((b - a for a, b in zip(shifts, shifts[1:])), default=1.0)
    h = mpf(min(0.1, 2 * math.pi * min(math.pi / gap, 2.0) / 110) / (1 + abs(float(w.imag)) / 10))
    ends = [float(w.real) * a for a in (shifts[0], shifts[-1], 0.0)]
    nodes = [h * n for n in range(int((min(ends) - REACH) / h), int((max(ends) + REACH) / h) + 1)]
    return mp.log(h * mp.fsum(mp.exp(w * log_ratio(law, u) - u * u / 2) for u in nodes) / mp.sqrt(2 * mp.pi))


def divergence_differs(value):
    law, order = atoms(value["params"]), mpf(float(value["order"]))
    w = order if value["direction"] == "remove" else 1 - order
    return abs(moment(law, mpc(w)) / (order - 1) / mpf(value["divergence"]) - 1) > mpf(10) ** -24


def differs(value):
    if "divergence" in value:
        return divergence_differs(value)
    law, room = atoms(value["params"]), mpf(10) ** -28
    if value["kind"] == "loss":
        found = log_ratio(law, mpf(float(value["x"])) / mpf(float(value["params"]["sigma"])))
        return abs(found - mpf(value["log_ratio"])) > room * (1 + abs(found))
    c, y = (mpf(float(part)) for part in value["z"])
    w = mpc(1 + c, y) if value["direction"] == "remove" else mpc(-c, -y)
    stored = mpc(mpf(value["log_real"]), mpf(value["log_imag"]))
    found = moment(law, w)
    return abs(mp.exp(found - stored) - 1) > room or abs(
        moment(law, mpc(w.real)) - mpf(value["log_at_real_z"])
    ) > room * (1 + abs(found))


if __name__ == "__main__":
    values = [value for name in ("rounding", "renyi") for value in json.loads((DATA / f"{name}.json").read_text())["values"]]
    chosen = values[:: int(sys.argv[1]) if len(sys.argv) > 1 else 1]
    wrong = [value["id"] for value in chosen if differs(value)]
    print(f"differ from the tables, of {len(chosen)}:", wrong or "none")
    sys.exit(bool(wrong))
