"""T from 2 to 20, small q or small sigma: the hockey-stick recursion on an interpolated function.

    python recursion.py         writes parts/recursion.json

delta_{t+1}(eps) = E_x[delta_t(eps - loss(x))]. With p_0 = P-weight of the zero sensitivity and
ell(u) = log(R(u) / p_0) > 0, write eps = t log p_0 + tau (remove) or eps = -t log p_0 - tau (add). Then in both
orientations f_{t+1}(tau) = E[f_t(tau - ell(u))], and f_t is known in closed form for tau < 0
(1 - e^eps, or 0). All fine structure sits near tau = 0 on the scale of log tau, so log f_t is interpolated by
Chebyshev polynomials on panels that shrink towards tau = 0, and the integral over u uses Gauss-Legendre panels
that shrink towards the kink ell(u) = tau. f_1 comes from ball arithmetic; the rest runs in 80-bit floats.

Two settings (panel widths and degrees) are compared, and where it is well conditioned the two orientations
are compared by the parity identity. Only agreed digits are kept.
"""

import math
import time

import mpmath as mp
import numpy as np
from core import mixture_of, read_part, write_part
from flint import arb

LD = np.longdouble


def ld(x):
    """An arb midpoint as an 80-bit float (two doubles)."""
    high = float(x.mid())
    return LD(high) + LD(float((x - arb(high)).mid())) if math.isfinite(high) else LD(high)


def to_arb(x):
    high = float(x)
    return arb(high) + arb(float(x - LD(high)))


_GAUSS = {}


def gauss(n):
    if n not in _GAUSS:
        mp.mp.dps = 30
        nodes, weights = [], []
        for start in np.polynomial.legendre.leggauss(n)[0]:
            x = mp.mpf(float(start))
            for _ in range(3):
                d = n * (x * mp.legendre(n, x) - mp.legendre(n - 1, x)) / (x * x - 1)
                x -= mp.legendre(n, x) / d
            nodes.append(LD(mp.nstr(x, 25)))
            weights.append(LD(mp.nstr(2 / ((1 - x * x) * d * d), 25)))
        _GAUSS[n] = np.array(nodes, dtype=LD), np.array(weights, dtype=LD)
    return _GAUSS[n]


class Step:
    """One round: ell(u) and its inverse in 80-bit floats."""

    def __init__(self, params):
        m = self.mix = mixture_of(params)
        m.prepare()
        assert m.atom > 0 and m.atom < 1
        self.log_atom = m.atom.log()
        pos = [(p.log() - h - self.log_atom, a) for p, h, a in zip(m.pb, m.h, m.a) if not a == 0]
        self.b = np.array([ld(x) for x, _ in pos], dtype=LD)
        self.a = np.array([ld(x) for _, x in pos], dtype=LD)
        self.log_p = np.array([ld(p.log()) for p in m.pb], dtype=LD)
        self.shift = np.array([ld(a) for a in m.a], dtype=LD)

    def log_excess(self, u):
        """log(R/p_0 - 1) and its derivative."""
        e = self.b + np.multiply.outer(u, self.a)
        top = e.max(axis=-1)
        x = np.exp(e - top[..., None])
        total = x.sum(axis=-1)
        return top + np.log(total), (x * self.a).sum(axis=-1) / total

    def ell(self, u):
        g, _ = self.log_excess(u)
        return np.where(g > 40, g + np.exp(-np.maximum(g, 0)), np.log1p(np.exp(np.minimum(g, 40))))

    def kink(self, tau):
        """u with ell(u) = tau."""
        target = np.where(tau > 40, tau, 0) + np.where(tau > 40, np.log1p(-np.exp(-np.maximum(tau, 1))), np.log(np.expm1(np.minimum(tau, 40))))
        u = np.min((target[..., None] - self.b) / self.a, axis=-1)
        for _ in range(100):
            g, d = self.log_excess(u)
            move = (g - target) / d
            u = u - move
            if np.all(np.abs(move) < 1e-17 * (1 + np.abs(u))):
                break
        return u

    def density(self, u, direction):
        """phi(u) R(u) or phi(u), the density of the first argument."""
        root = np.sqrt(2 * (LD(math.pi) + LD(1.2246467991473532e-16)))
        if direction == "add":
            return np.exp(-u * u / 2) / root
        out = np.zeros_like(u)
        for lp, s in zip(self.log_p, self.shift):
            out += np.exp(lp - (u - s) ** 2 / 2)
        return out / root


class Curve:
    """log f_t on panels in tau, with the closed form for tau <= 0."""

    def __init__(self, direction, log_atoms, edges, degree):
        self.direction, self.log_atoms, self.edges, self.degree = direction, log_atoms, edges, degree
        j = np.arange(degree, dtype=LD)
        theta = (j + LD(0.5)) / degree * (LD(math.pi) + LD(1.2246467991473532e-16))
        self.x = np.cos(theta)
        self.basis = np.cos(np.multiply.outer(np.arange(degree, dtype=LD), theta)) * 2 / degree  # coefficients from values
        self.basis[0] /= 2
        lo, hi = edges[:-1], edges[1:]
        self.low, self.high = lo, hi
        self.logarithmic = hi <= 1
        self.lo_x = np.where(self.logarithmic, np.log(np.where(lo > 0, lo, 1)), lo)
        self.hi_x = np.where(self.logarithmic, np.log(hi), hi)

    def nodes(self):
        mid, half = (self.lo_x + self.hi_x) / 2, (self.hi_x - self.lo_x) / 2
        t = mid[:, None] + half[:, None] * self.x[None, :]
        return np.where(self.logarithmic[:, None], np.exp(t), t)

    def fit(self, values):
        self.logs = np.log(values)
        self.coefficients = self.logs @ self.basis.T
        nothing = self.logs.min(axis=1) < -700  # far below every value kept: zero from here on
        self.coefficients[nothing] = 0
        self.coefficients[nothing, 0] = -11000
        self.tail = float(np.abs(self.coefficients[:, -2:]).max())
        return self

    def __call__(self, tau):
        out = np.zeros_like(tau)
        below = tau <= self.edges[0]
        if self.direction == "remove":
            out[below] = -np.expm1(self.log_atoms + tau[below])
        inside = ~below
        t = tau[inside]
        i = np.clip(np.searchsorted(self.edges, t, side="left") - 1, 0, len(self.low) - 1)
        z = np.where(self.logarithmic[i], np.log(t), t)
        x = (2 * z - self.lo_x[i] - self.hi_x[i]) / (self.hi_x[i] - self.lo_x[i])
        c = self.coefficients[i]
        b1 = np.zeros_like(x)
        b2 = np.zeros_like(x)
        for n in range(self.degree - 1, 0, -1):
            b1, b2 = 2 * x * b1 - b2 + c[:, n], b1
        out[inside] = np.exp(x * b1 - b2 + c[:, 0])
        return out


def edges_for(steps, direction, top, setting):
    """Panel edges in tau from the smallest scale that matters up to top."""
    sigma = max(1.0, max(float(s.mix.sigma / min(x for x in s.mix.s if x > 0)) for s in steps))
    ratio = setting["ratio"] / sigma
    edges = [top]
    while True:
        t = edges[-1]
        t = t * math.exp(-ratio) if t <= 1.0 else max(1.0, t - min(ratio, ratio * t))
        edges.append(t)
        e = arb(t)
        if direction == "add":
            try:
                small = max(float(s.mix.hockey_stick(-s.log_atom - e, "add").log()) for s in steps)
            except (ArithmeticError, ValueError):
                small = -1e9
            if not small > setting["floor"]:
                break
        else:
            worst = -1e9
            for s in steps:
                base = 1 - (s.log_atom + e).exp()
                try:
                    gap = s.mix.hockey_stick(s.log_atom + e, "remove") - base
                    worst = max(worst, float((gap / s.mix.hockey_stick(s.log_atom + e, "remove")).log()) if gap > 0 else -1e9)
                except ArithmeticError:
                    pass
            if worst < -50 and t < 1e-3:
                break
    return np.array(edges[::-1], dtype=LD)


def first_curve(step, direction, edges, setting):
    curve = Curve(direction, ld(step.log_atom), edges, setting["degree"])
    taus = curve.nodes()
    values = np.empty_like(taus)
    for i in np.ndindex(taus.shape):
        e = step.log_atom + to_arb(taus[i])
        values[i] = exp_ld(step.mix.hockey_stick(e if direction == "remove" else -e, direction))
    return curve.fit(values)


def exp_ld(x):
    """A positive ball as an 80-bit float, also below the range of doubles."""
    man, exponent = x.mid().man_exp()
    man, exponent = int(man), int(exponent)
    drop = max(0, man.bit_length() - 64)
    return np.ldexp(LD(man >> drop >> 32) * LD(2) ** 32 + LD((man >> drop) & 0xFFFFFFFF), exponent + drop)


def apply(step, curve, taus, direction, setting):
    """E[f(tau - ell(u))] for an array of tau > 0."""
    x, w = gauss(setting["gauss"])
    out = np.empty(len(taus), dtype=LD)
    width = min(0.5, float(step.mix.sigma / max(step.mix.s)) * 1.0, 1e9) * setting["width"]
    kinks = step.kink(taus)
    # panels to the left of the kink, as distances from it: dyadic, then uniform
    for i, (tau, u0) in enumerate(zip(taus, kinks)):
        reach = max(40.0, float(u0) + 40.0) if float(u0) > 0 else 40.0
        d = [width * 2.0 ** -n for n in range(setting["depth"], 0, -1)]
        d = [0.0] + d + list(np.arange(1, int(reach / width) + 2) * width)
        d = np.array(d, dtype=LD)
        mid, half = (d[1:] + d[:-1]) / 2, (d[1:] - d[:-1]) / 2
        dist = (mid[:, None] + half[:, None] * x).ravel()
        weight = (half[:, None] * w).ravel()
        u = u0 - dist
        rho = step.density(u, direction)
        keep = rho > rho.max() * LD(10) ** -60
        u, weight, rho = u[keep], weight[keep], rho[keep]
        inner = tau - step.ell(u)
        total = np.sum(np.sort(weight * rho * curve(np.maximum(inner, 0))))
        if direction == "remove":  # to the right: f = 1 - exp(log atoms + tau - ell)
            end = float(step.shift[-1]) + 42.0
            if end > u0:
                n = int((end - float(u0)) / width) + 1
                d = np.linspace(0, 1, n + 1).astype(LD) * (LD(end) - u0)
                mid, half = (d[1:] + d[:-1]) / 2, (d[1:] - d[:-1]) / 2
                u = u0 + (mid[:, None] + half[:, None] * x).ravel()
                weight = (half[:, None] * w).ravel()
                value = -np.expm1(curve.log_atoms + tau - step.ell(u))
                total += np.sum(np.sort(weight * step.density(u, direction) * value))
        out[i] = total
    return out


SETTINGS = [
    {"ratio": 0.5, "degree": 16, "gauss": 20, "width": 1.0, "depth": 60, "floor": -330.0},
    {"ratio": 0.37, "degree": 15, "gauss": 18, "width": 0.77, "depth": 66, "floor": -350.0},
]


def delta(parts, direction, epsilons, setting):
    """parts: list of params, one per round. Values at each epsilon (arb), same orientation."""
    cache = {}
    steps = []
    for p in parts:
        key = str(p)
        if key not in cache:
            cache[key] = Step(p)
        steps.append(cache[key])
    total = sum((s.log_atom for s in steps), arb(0))
    taus = [(e - total) if direction == "remove" else (-total - e) for e in epsilons]
    top = max(float(t.upper()) for t in taus) * (1 + 1e-9)
    edges = edges_for(list(cache.values()), direction, top, setting)
    curve = first_curve(steps[0], direction, edges, setting)
    atoms = steps[0].log_atom
    worst = curve.tail
    for s in steps[1:-1]:
        atoms = atoms + s.log_atom
        following = Curve(direction, ld(atoms), edges, setting["degree"])
        nodes = following.nodes()
        values = apply(s, curve, nodes.ravel(), direction, setting).reshape(nodes.shape)
        curve = following.fit(np.maximum(values, LD(10) ** -4000))
        worst = max(worst, curve.tail)
    out = apply(steps[-1], curve, np.array([ld(t) for t in taus], dtype=LD), direction, setting)
    return out, worst, len(edges)


def agreement(a, b):
    if a == b:
        return 18
    return max(0, int(-math.log10(float(abs(a - b) / abs(a)))))


def run(parts, points, out, make):
    """points: {"remove": [...], "add": [...]} of epsilon strings."""
    for direction, strings in points.items():
        started = time.time()
        eps = [arb(float(s)) for s in strings]
        results = [delta(parts, direction, eps, s) for s in SETTINGS]
        other = "add" if direction == "remove" else "remove"
        try:
            if len(parts) > 8:
                raise ValueError("skipped for time")
            swapped, _, _ = delta(parts, other, [-e for e in eps], SETTINGS[1])
        except Exception as error:  # the parity check is optional
            swapped = None
            print("  no parity check:", error)
        for i, s in enumerate(strings):
            a, b = results[0][0][i], results[1][0][i]
            digits = agreement(b, a)
            note = "two settings agree"
            if swapped is not None:
                e = LD(s) if float(s) == 0 else ld(eps[i])
                c = -np.expm1(e) + np.exp(e) * swapped[i]
                noise = 5e-17 * math.exp(min(700, abs(float(s)))) / float(b)  # what cancellation leaves
                if noise < 1e-9:
                    agreed = agreement(b, c)
                    note += f"; the other orientation by the parity identity agrees to {agreed} digits"
                    if agreed < min(digits, -math.log10(noise) - 2):
                        print("  PARITY", s, b, c, agreed, noise)
                        digits = min(digits, agreed)
            digits = min(digits, 15)
            print(len(parts), parts[0], direction, s, np.format_float_scientific(b, 18), "digits", digits, note[20:], f"tails {results[0][1]:.0e} {results[1][1]:.0e} panels {results[0][2]}", f"{time.time() - started:.0f}s", flush=True)
            if digits >= 8:
                out.append(make(parts, direction, s, np.format_float_scientific(b, digits - 1), digits,
                                "hockey-stick recursion on panels in 80-bit floats; " + note))


def make(parts, direction, eps, value, digits, method):
    if len(set(map(str, parts))) == 1:
        return {"mechanism": "poisson", "params": {**parts[0], "T": len(parts)}, "direction": direction, "epsilon": eps,
                "delta": value, "digits": digits, "method": method}
    rounds = []
    for p in parts:
        if rounds and all(rounds[-1][n] == p[n] for n in p):
            rounds[-1]["count"] += 1
        else:
            rounds.append({**p, "count": 1})
    return {"mechanism": "composition", "params": {"parts": rounds}, "direction": direction, "epsilon": eps,
            "delta": value, "digits": digits, "method": method}


def poisson(sigma, q, k):
    return {"sigma": sigma, "q": q, "k": k}


CASES = [
    ([poisson("0.05", "0.001", 1)] * 2, {"remove": ["1", "150", "700"], "add": ["0.001", "0.0019"]}),
    ([poisson("1", "0.01", 1)] * 3, {"remove": ["0.01", "0.5", "6"], "add": ["0.01", "0.025"]}),
    ([poisson("4", "1e-6", 1)] * 3, {"remove": ["1e-7", "2e-6"], "add": ["1e-7", "1e-6"]}),
    ([poisson("2", "0.1", 4)] * 3, {"remove": ["0", "3"], "add": ["0.1", "1"]}),
    ([poisson("1", "1e-6", 1), poisson("0.5", "0.1", 2), poisson("2", "0.01", 8)], {"remove": ["0.1", "5"], "add": ["0.1", "0.27"]}),
    ([poisson("0.3", "0.0001", 1)] * 3, {"remove": ["0.0002", "5", "60"], "add": ["0.0001", "0.00025"]}),
    ([poisson("0.5", "0.001", 2)] * 4, {"remove": ["0.005", "2", "20"], "add": ["0.002", "0.007"]}),
    ([poisson("0.3", "1e-6", 1)] * 4, {"remove": ["3e-6", "1", "30"], "add": ["2e-6", "3.5e-6"]}),
    ([poisson("0.5", "0.01", 1)] * 6 + [poisson("1", "0.1", 1)] * 2, {"remove": ["0.5", "10"], "add": ["0.1", "0.25"]}),
    ([poisson("2", "0.001", 4)] * 10, {"remove": ["0.01", "0.5"], "add": ["0.01", "0.03"]}),
    ([poisson("0.5", "1e-6", 4)] * 10, {"remove": ["1e-5", "3"], "add": ["1e-5", "3e-5"]}),
    ([poisson("1", "1e-6", 1)] * 20, {"remove": ["1e-6", "0.1"], "add": ["2e-6", "1e-5"]}),
    ([poisson("1", "0.0001", 1)] * 20, {"remove": ["0.0005", "1"], "add": ["0.0004", "0.0015"]}),
]


def main():
    out = read_part("recursion.json")  # continue where an earlier run stopped
    done = {(str(v["params"]), v["direction"]) for v in out}
    for parts, points in CASES:
        params = make(parts, "", "", "", 0, "")["params"]
        points = {d: e for d, e in points.items() if (str(params), d) not in done}
        run(parts, points, out, make)
        write_part("recursion.json", out)


if __name__ == "__main__":
    main()
