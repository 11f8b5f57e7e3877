"""Renyi divergences of mixture pairs to 25 digits: tests/data/renyi.json.

    python renyi.py

Needs mpmath only. With w = order (remove) or 1 - order (add) and R = P/Q the divergence is
log1p(J) / (order - 1), J = E_Q[R^w - 1 - w (R - 1)], in 70-digit arithmetic. Two routes must
agree to 25 digits: Gauss-Legendre quadrature on panels of width 1/2, and the trapezoid rule on a
lattice. For one record and integer orders of the remove direction the binomial expansion is a third.
"""

import json
import math
from pathlib import Path

from mpmath import mp, mpf

mp.dps = 70
OUT = Path(__file__).resolve().parents[2] / "tests" / "data" / "renyi.json"
AGREED = 25


def atoms(params):
    """[(probability, shift)] for the doubles that the strings stand for."""
    sigma = mpf(float(params["sigma"]))
    if "q" in params:
        k, q = int(params["k"]), mpf(float(params["q"]))
        return [(mp.binomial(k, j) * q**j * (1 - q) ** (k - j), j / sigma) for j in range(k + 1)]
    weights = [mpf(float(p)) for p in params["probabilities"]]
    total = mp.fsum(weights)
    return [(p / total, mpf(float(s)) / sigma) for p, s in zip(weights, params["sensitivities"])]


class Integrand:
    def __init__(self, params, order, direction):
        self.atoms = [(p, a) for p, a in atoms(params) if p]
        self.order = mpf(float(order))
        self.w = self.order if direction == "remove" else 1 - self.order

    def __call__(self, u):
        ratio = mp.fsum(p * mp.exp(a * u - a * a / 2) for p, a in self.atoms)
        return mp.npdf(u) * (ratio**self.w - 1 - self.w * (ratio - 1))

    def log_rough(self, u):
        """log of the integrand's pieces in doubles, from above: where to integrate."""
        logs = [float(mp.log(p)) + float(a) * (u - float(a) / 2) for p, a in self.atoms]
        top = max(logs)
        log_ratio = top + math.log(sum(math.exp(x - top) for x in logs))
        w = float(self.w)
        return -u * u / 2 + max(w * log_ratio, log_ratio, 0.0)

    def panels(self):
        """Half-unit panels that hold all but e^-110 of the pieces' largest value."""
        reach = max(1.0, abs(float(self.w))) * max(float(a) for _, a in self.atoms)
        ends = [x / 2 for x in range(-int(2 * reach) - 100, int(2 * reach) + 101)]
        logs = [self.log_rough(u) for u in ends]
        # The divergence itself may be 1e-20 of the pieces.
        floor = max(logs) - 110 if max(logs) > 1 else -160
        return [(a, a + 0.5) for a, x, y in zip(ends, logs, logs[1:]) if max(x, y) > floor]


def divergence(params, order, direction):
    f = Integrand(params, order, direction)
    panels = f.panels()
    nodes = GAUSS
    first = mp.fsum(
        w * f(mpf(a + b) / 2 + mpf(b - a) / 2 * x) * mpf(b - a) / 2 for a, b in panels for x, w in nodes
    )
    per_panel = 48
    step, offset = mpf(1) / (2 * per_panel), mpf("0.1234567") / per_panel
    second = step * mp.fsum(f(a + offset + i * step) for a, _ in panels for i in range(per_panel))
    values = [mp.log1p(j) / (f.order - 1) for j in (first, second)]
    if direction == "remove" and params.get("k") == 1 and float(order) in range(2, 65):
        q, sigma, n = mpf(float(params["q"])), mpf(float(params["sigma"])), int(order)
        total = mp.fsum(
            mp.binomial(n, l) * q**l * (1 - q) ** (n - l) * mp.expm1(mpf(l * (l - 1)) / (2 * sigma**2))
            for l in range(2, n + 1)
        )
        values.append(mp.log1p(total) / (n - 1))
    gap = max(abs(v / values[0] - 1) for v in values)
    if gap > mpf(10) ** -AGREED:
        raise ArithmeticError(f"routes disagree by {mp.nstr(gap, 3)} at {params}, {order}, {direction}")
    return mp.nstr(values[0], AGREED)


def gauss_legendre(n):
    """Nodes and weights on [-1, 1], by Newton from the asymptotic roots."""
    pairs = []
    for i in range(1, n + 1):
        x = mp.cos(mp.pi * (i - mpf(1) / 4) / (n + mpf(1) / 2))
        for _ in range(8):
            p0, p1 = mpf(1), x
            for m in range(2, n + 1):
                p0, p1 = p1, ((2 * m - 1) * x * p1 - (m - 1) * p0) / m
            slope = n * (x * p1 - p0) / (x * x - 1)
            x -= p1 / slope
        pairs.append((x, 2 / ((1 - x * x) * slope * slope)))
    return pairs


GAUSS = gauss_legendre(36)


def cases():
    orders = ("1.01", "1.5", "2", "3", "7.3", "32", "64.5", "200", "512")
    sigmas = ("0.3", "0.5", "1", "2", "5", "50")
    rates = ("1e-5", "1e-3", "0.01", "0.1", "0.5", "0.999")
    number = 0
    for i, sigma in enumerate(sigmas):
        for j, q in enumerate(rates):
            # Every pair of sigma and q once in each direction, the orders in turn.
            for direction in ("remove", "add"):
                order = orders[(2 * i + j + 4 * number) % len(orders)]
                number += 1
                yield {"sigma": sigma, "q": q, "k": 1}, order, direction
    for params in ({"sigma": "1", "q": "0.1", "k": 1}, {"sigma": "0.3", "q": "0.001", "k": 1}):
        for order in ("1.0001", "1.1", "8", "512"):
            for direction in ("remove", "add"):
                yield params, order, direction
    for params in (
        {"sigma": "2", "q": "0.05", "k": 6},
        {"sigma": "0.7", "q": "0.4", "k": 3},
        {"sensitivities": ["0", "0.3", "1.7"], "probabilities": ["0.5", "0.3", "0.2"], "sigma": "0.6"},
        {"sensitivities": ["0.5", "2"], "probabilities": ["0.25", "0.75"], "sigma": "1.5"},
    ):
        for order in ("1.2", "4.5", "40"):
            for direction in ("remove", "add"):
                yield params, order, direction


def main():
    values = []
    for params, order, direction in cases():
        size = params.get("q", "mix")
        name = f"s{params['sigma']}-q{size}-k{params.get('k', '')}-o{order}-{direction}"
        value = divergence(params, order, direction)
        print(name, value, flush=True)
        values.append(
            {"id": name, "params": params, "order": order, "direction": direction, "divergence": value}
        )
    record = {"agreed_digits": AGREED, "values": values}
    OUT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
