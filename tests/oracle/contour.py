"""Values of tests/data/oracle.json again, in ball arithmetic; few rounds are left to tilted.py.

    python contour.py [EVERY]   every value, or every so many

One round and certain participation: closed forms. From about 20 rounds on, the contour integral of the loss's moment
generating function:

delta = (1/pi) Re int_0^inf M(z) e^{-z eps} / (z (z + 1)) dy,  z = c + iy, c > 0,
M(z) = prod over rounds of E_Q[R^{1+z}] (remove) or E_Q[R^{-z}] (add).
Trapezoid rule in y (step 2 pi / P, aliasing bounded by Chernoff bounds on both sides) and in u.
Every value is computed at two settings: different c, period, truncation and lattice in u. Agreed digits are kept.
"""

import json
import math
import sys
import time
from fractions import Fraction

import numpy as np
from core import DATA, Mixture, digits_of, mixture_of, own_digits
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


def again(entry):
    """(delta, digits) of a value of oracle.json: closed forms for one round and for certain participation, else the contour."""
    params, epsilon = entry["params"], entry["epsilon"]
    rounds = [(mixture_of(p), int(p.get("count", p.get("T")))) for p in params.get("parts", [params])]
    (mix, count), *others = rounds
    if not others and (count == 1 or len(mix.p) == 1):
        ctx.prec = 320
        if len(mix.p) == 1:  # rounds of one Gaussian are one with less noise
            mix = Mixture(mix.s, mix.p, mix.sigma / Fraction(math.isqrt(count * 10**80), 10**40))
        found = mix.hockey_stick(arb(float(epsilon)), entry["direction"])
        return found, min(40, own_digits(found) if found != 0 else 40)
    return compute(rounds, entry["direction"], epsilon)[:2]


def main(every):
    wrong = count = 0
    for entry in json.loads((DATA / "oracle.json").read_text())["values"][::every]:
        found, digits = again(entry)
        if found is None or digits < 12:  # few rounds, or rare sampling: the integrand decays slowly
            print(entry["id"], "not affordable along this contour")
            continue
        stated = arb(entry["delta"])
        both = 40 if stated == 0 and found == 0 else digits_of(found.mid(), stated)
        bad = both < min(digits, entry["digits"]) - 1
        wrong, count = wrong + bad, count + 1
        print(entry["id"], f"{both} digits", "DIFFERS" if bad else "", flush=True)
    print(f"recomputed {count} values, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
