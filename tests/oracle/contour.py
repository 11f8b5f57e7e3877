"""T from 20 to 1e6: contour integral of the loss's moment generating function in ball arithmetic.

    python contour.py           writes parts/contour.json (keeps what is already there)
    python contour.py check     compares with the closed forms and with tests/data/group.json

delta = (1/pi) Re int_0^inf M(z) e^{-z eps} / (z (z + 1)) dy,  z = c + iy, c > 0,
M(z) = prod over rounds of E_Q[R^{1+z}] (remove) or E_Q[R^{-z}] (add).
Trapezoid rule in y (step 2 pi / P, aliasing bounded by Chernoff bounds on both sides) and in u.
Every value is computed at two settings: different c, period, truncation and lattice in u. Agreed digits are kept.
"""

import math
import sys
import time

import numpy as np
from core import (
    Mixture,
    binomial_law,
    digits_of,
    exact,
    mixture_of,
    own_digits,
    read_part,
    text,
    write_part,
)
from flint import acb, arb, ctx
from moments import log_ratio, supports

PREC = 256


class Coarse:
    """log M on the real axis and |M| off it, in doubles: used to choose settings, never for values."""

    def __init__(self, rounds, direction):
        self.rounds, self.direction = rounds, direction
        self.grids = []
        for mix, _ in rounds:
            gap = max((float(b - a) for a, b in zip(mix.s, mix.s[1:])), default=1.0)
            self.grids.append(min(0.05, 0.15 * float(mix.sigma) / gap))

    def log_moment(self, c):
        total = 0.0
        for (mix, count), h in zip(self.rounds, self.grids):
            power = 1 + c if self.direction == "remove" else -c
            (low, high) = self.range(mix, power)
            u = np.arange(low, high, h)
            f = power * log_ratio(mix, u) - u * u / 2
            top = f.max()
            total += count * (top + math.log(np.exp(f - top).sum() * h / math.sqrt(2 * math.pi)))
        return total

    def range(self, mix, power):
        parts, _ = supports(mix, power, 60.0, 0.25)
        return parts[0][0], parts[-1][1]

    def modulus_on(self, c, ys, h):
        """log |M(c + iy) / M(c)| for each y."""
        out = np.zeros(len(ys))
        for mix, count in self.rounds:
            power = 1 + c if self.direction == "remove" else -c
            low, high = self.range(mix, power)
            u = np.arange(low, high, h)
            loss = log_ratio(mix, u)
            f = power * loss - u * u / 2
            w = np.exp(f - f.max())
            w /= w.sum()
            keep = w > 1e-20
            w, loss = w[keep], loss[keep]
            for i, y in enumerate(ys):
                out[i] += count * math.log(max(abs(np.dot(w, np.exp(1j * y * loss))), 1e-17))
        return out


def objective(coarse, eps, c):
    return coarse.log_moment(c) - c * eps - math.log(c) - math.log1p(c)


def saddle(coarse, eps, low=-14.0, high=9.0):
    """c that minimises the bound, by golden section in log c."""
    ratio = (math.sqrt(5) - 1) / 2
    a, b = low, high
    x, y = b - ratio * (b - a), a + ratio * (b - a)
    fx, fy = objective(coarse, eps, math.exp(x)), objective(coarse, eps, math.exp(y))
    while b - a > 0.02:
        if fx < fy:
            b, y, fy = y, x, fx
            x = b - ratio * (b - a)
            fx = objective(coarse, eps, math.exp(x))
        else:
            a, x, fx = x, y, fy
            y = a + ratio * (b - a)
            fy = objective(coarse, eps, math.exp(y))
    c = math.exp((a + b) / 2)
    return c, objective(coarse, eps, c)


def settings(coarse, eps, digits, c_factors, period_factor):
    """The line Re z = c, among some fractions of the saddle, that allows the shortest period; and that period."""
    best, bound = saddle(coarse, eps)
    guess = bound - 5  # log delta, roughly
    need = digits * math.log(10)
    choices = []
    for factor in c_factors:
        c = float(f"{best * factor:.6g}")
        left = (need - guess) / c
        right = min((coarse.log_moment(c * f) - c * f * eps - (guess - need)) / (c * (f - 1))
                    for f in (1.02, 1.05, 1.1, 1.2, 1.35, 1.6, 2, 3, 4, 6, 9, 14, 20))
        choices.append((max(left, right) * period_factor, c))
    period, c = min(choices)
    spare = (objective(coarse, eps, c) - bound) / math.log(10)  # cancellation along this line, in digits
    return c, period, max(0.0, spare)


def cutoff(coarse, c, digits, step, slopes, limit):
    """Smallest y on a geometric grid beyond which the integrand stays below 10^-digits of its start."""
    need = -digits * math.log(10)
    y, last = step * 8, None
    quiet = 0
    start = -math.log(c) - math.log1p(c)
    while quiet < 13:
        if y / step > limit * 20:
            return None
        h = min(0.05, 2 * math.pi / (2.2 * y * slopes + 40))
        if h < 1e-4:
            return None
        v = coarse.modulus_on(c, [y], h)[0] - 2 * math.log(math.hypot(c, y)) - start
        if v < need:
            quiet += 1
            if quiet == 1:
                last = y
        else:
            quiet = 0
        y *= 1.1
    return last


class Lattice:
    """Nodes for M along the line Re z = c, advanced from y to y + step by one multiplication per node."""

    def __init__(self, mix, direction, c, step, h, shift, depth):
        mix.prepare()
        power = 1 + c if direction == "remove" else -c
        sign = 1 if direction == "remove" else -1
        pb = 1 + arb(c) if direction == "remove" else -arb(c)  # exact: 1 + c is not a double
        hb = arb(h)
        norm = hb / (2 * arb.pi()).sqrt()
        self.now, self.turn = [], []
        for low, high in supports(mix, power, depth)[0]:
            for n in range(math.floor(low / h), math.ceil(high / h) + 1):
                u = (n + arb(shift)) * hb
                loss = mix.ratio(u).log()
                self.now.append(acb((pb * loss - u * u / 2).exp() * norm))
                self.turn.append(acb(0, sign * arb(step) * loss).exp().mid())

    def __len__(self):
        return len(self.now)

    def moment(self):
        return sum(self.now, acb(0))

    def advance(self):
        self.now = [(a * b).mid() for a, b in zip(self.now, self.turn)]  # radii would wrap around and blow up


def one_setting(rounds, direction, eps, digits, c_factors, period_factor, h_factor, shift, budget):
    coarse = Coarse(rounds, direction)
    c, period, spare = settings(coarse, float(eps.mid()), digits, c_factors, period_factor)
    step = float(f"{2 * math.pi / period:.6g}")
    slopes = max(float(mix.s[-1] / mix.sigma) for mix, _ in rounds)
    end = cutoff(coarse, c, digits + 3 + spare, step, slopes, 4e5)
    if end is None:
        return None, "no cut-off"
    end *= h_factor ** -1
    count = int(end / step) + 2
    lattices, nodes = [], 0
    for mix, _ in rounds:
        gap = max((float(b - a) for a, b in zip(mix.s, mix.s[1:])), default=0.01)
        strip = min(2.2, 0.9 * math.pi * float(mix.sigma) / gap)
        slope = float(mix.s[-1] / mix.sigma)
        h = min(2 * math.pi * strip / 130, 2 * math.pi / (end * slope + 35)) * h_factor
        lattices.append(Lattice(mix, direction, c, step, float(f"{h:.6g}"), shift, (digits + 8 + spare) * math.log(10)))
        nodes += len(lattices[-1])
        if nodes * count > budget:
            return None, f"too dear: {nodes} x {count}"
    total = arb(0)
    for n in range(count):
        z = acb(c, n * arb(step))
        m = (-z * eps).exp() / (z * (z + 1))
        for lattice, (_, copies) in zip(lattices, rounds):
            m *= lattice.moment() ** copies
            lattice.advance()
        total += m.real / (2 if n == 0 else 1)
        if n == 0:
            first = abs(m).mid()
        last = abs(m).mid()
    value = total * arb(step) / arb.pi()
    return value, f"c={c:.4g} P={period:.4g} u-nodes={nodes} y-nodes={count} last={float((last / first).log().mid()) / 2.3026 if last > 0 else -999:.0f}"


def compute(rounds, direction, epsilon, digits=36, budget=4e7):
    ctx.prec = PREC
    started = time.time()
    eps = arb(float(epsilon)) if isinstance(epsilon, str) else epsilon
    a, note_a = one_setting(rounds, direction, eps, digits, (1.0, 0.85, 0.7), 1.0, 1.0, 0.0, budget)
    if a is None:
        return None, 0, note_a
    b, note_b = one_setting(rounds, direction, eps, digits + 2, (0.93, 0.78, 0.62), 1.11, 0.83, 0.25, budget * 2)
    if b is None:
        return None, 0, note_b
    agreed = min(digits_of(a.mid(), b.mid()), own_digits(a), own_digits(b), digits)
    return a, agreed, f"{note_a} | {note_b} | {time.time() - started:.0f}s"


def epsilon_for(rounds, direction, log10_delta):
    """A short epsilon whose delta is near the target (by the coarse bound)."""
    coarse = Coarse(rounds, direction)
    target = log10_delta * math.log(10) + 1.5
    low, high = 0.0, 1e-6
    bound = lambda e: saddle(coarse, e)[1] if e > 0 else 0.0
    top = math.inf
    if direction == "add" and all(mix.atom > 0 for mix, _ in rounds):
        top = -sum(count * float(mix.atom.log()) for mix, count in rounds)
    while bound(high) > target and high < top:
        low, high = high, high * 4
    high = min(high, top * 0.999)
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if bound(middle) > target else (low, middle)
    return "0" if high < 1e-8 else f"{(low + high) / 2:.4g}"


def input_conditioning(rounds, params_list, direction, epsilon):
    """Relative change of delta when sigma, q and epsilon each move by 2^-53 relative (from the coarse bound)."""
    coarse = Coarse(rounds, direction)
    c, base = saddle(coarse, float(epsilon))
    total = c * float(epsilon)
    t = 1e-5
    for i, (mix, count) in enumerate(rounds):
        variants = [Mixture(mix.s, mix.p, mix.sigma * (1 + exact(str(t))))]
        if "q" in params_list[i] and float(params_list[i]["q"]) < 1:
            variants.append(Mixture(*binomial_law(params_list[i]["k"], exact(params_list[i]["q"]) * (1 - exact(str(t)))), mix.sigma))
        for v in variants:
            moved = Coarse([(v, count)], direction).log_moment(c) - Coarse([(mix, count)], direction).log_moment(c)
            total += abs(moved) / t
    return total * 2.0**-53


def strip_T(p):
    return {n: v for n, v in p.items() if n not in ("T", "count")}


GRID = [  # mechanism, params, direction, log10 delta targets
]


def poisson(sigma, q, k, T):
    return ("poisson", {"sigma": sigma, "q": q, "k": k, "T": T})


def plan():
    configs = [
        poisson("1", "0.01", 1, 2000), poisson("1", "0.1", 1, 20), poisson("0.5", "0.5", 1, 20), poisson("2", "0.1", 8, 20),
        poisson("0.3", "0.5", 2, 100), poisson("0.5", "0.1", 1, 100), poisson("1", "0.01", 8, 100), poisson("10", "0.5", 64, 100),
        poisson("2", "0.01", 1, 2000), poisson("0.5", "0.01", 1, 2000), poisson("1", "0.1", 64, 2000), poisson("1000", "0.5", 1, 2000),
        poisson("10", "0.01", 64, 2000), poisson("1", "0.001", 1, 100000), poisson("0.5", "0.01", 2, 100000), poisson("2", "0.001", 8, 100000),
        poisson("10", "0.0001", 64, 100000), poisson("0.3", "0.1", 1, 100000), poisson("1", "0.0001", 1, 1000000), poisson("2", "0.0001", 2, 1000000),
        poisson("1000", "0.001", 64, 1000000), poisson("0.5", "0.5", 8, 1000000), poisson("0.3", "0.01", 2, 1000000), poisson("1", "0.01", 64, 1000000),
        poisson("10", "0.1", 1, 1000000), poisson("1000", "0.01", 1, 1000000),
        poisson("1", "0.0001", 1, 2000), poisson("2", "0.0001", 4, 2000), poisson("1", "0.001", 1, 2000), poisson("0.5", "0.01", 4, 100),
        poisson("4", "0.01", 16, 20), poisson("10", "0.1", 64, 20),
        ("fixed_batch", {"sigma": "2", "batch_size": 500, "dataset_size": 50000, "k": 4, "T": 2000}),
        ("fixed_batch", {"sigma": "8", "batch_size": 100, "dataset_size": 1000, "k": 16, "T": 100}),
        ("fixed_batch", {"sigma": "1", "batch_size": 1, "dataset_size": 10, "k": 10, "T": 20}),
        ("mixture", {"sigma": "1.5", "sensitivities": ["0", "0.7", "1.9", "2.5"], "probabilities": ["0.5", "0.3125", "0.125", "0.0625"], "T": 300}),
        ("mixture", {"sigma": "4", "sensitivities": ["0.25", "1", "7.3"], "probabilities": ["0.75", "0.1875", "0.0625"], "T": 2000}),
        ("composition", {"parts": [{"sigma": "1", "q": "0.01", "k": 4, "count": 1000}, {"sigma": "2", "q": "0.1", "k": 1, "count": 50}]}),
        ("composition", {"parts": [{"sigma": "0.5", "q": "0.1", "k": 1, "count": 10}, {"sigma": "1", "q": "0.5", "k": 2, "count": 10},
                                   {"sigma": "1.5", "sensitivities": ["0", "0.7", "1.9", "2.5"], "probabilities": ["0.5", "0.3125", "0.125", "0.0625"], "count": 20}]}),
        ("composition", {"parts": [{"sigma": "10", "q": "1", "k": 1, "count": 100}, {"sigma": "1", "q": "0.001", "k": 2, "count": 10000}]}),
    ]
    # few rounds or rare sampling on the add side make the integrand decay slowly; such cases are reported and left out
    targets = [(-6, -30), (-1, -12), (-0.4, -60), (-9, -120), (-4, -20)]
    for i, (mechanism, params) in enumerate(configs):
        for n, direction in enumerate(("remove", "add")):
            for target in targets[(i + 2 * n) % len(targets)]:
                yield mechanism, params, direction, target


def rounds_of(mechanism, params):
    if mechanism == "composition":
        return [(mixture_of(p), p["count"]) for p in params["parts"]], params["parts"]
    return [(mixture_of(params), params["T"])], [params]


def main():
    out = [v for v in read_part("contour.json") if v["digits"] >= 28]
    done = {(str(v["params"]), v["direction"], v.get("target")) for v in out}
    for mechanism, params, direction, target in plan():
        if (str(params), direction, target) in done:
            continue
        ctx.prec = PREC
        rounds, listed = rounds_of(mechanism, params)
        epsilon = epsilon_for(rounds, direction, target)
        value, digits, note = compute(rounds, direction, epsilon)
        print(mechanism, params, direction, epsilon, "target", target, value.str(8, radius=False) if value is not None else None, digits, note, flush=True)
        if value is None or digits < 12:
            continue
        out.append({"mechanism": mechanism, "params": params, "direction": direction, "epsilon": epsilon, "delta": text(value, digits),
                    "digits": digits, "target": target,
                    "method": "contour integral in 256-bit arithmetic, trapezoid in y and u; two settings of line, period, cut-off and lattice agree",
                    "conditioning": float(f"{input_conditioning(rounds, listed, direction, epsilon):.1e}")})
        write_part("contour.json", out)


def check():
    rounds = [(Mixture([1], [1], exact("10")), 100)]
    v, d, note = compute(rounds, "remove", "2")
    print("Gaussian", v.str(30, radius=False), d, note)
    from core import normal_tail
    mu = arb(1)
    print("closed  ", (normal_tail(arb(2) / mu - mu / 2) - arb(2).exp() * normal_tail(arb(2) / mu + mu / 2)).str(30, radius=False))


if __name__ == "__main__":
    check() if "check" in sys.argv else main()
