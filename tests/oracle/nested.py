"""T = 2 and 3 (equal or different mixtures): nested integration of the one-step closed form.

    python nested.py            writes parts/nested.json

delta_T(eps) = E_x[delta_{T-1}(eps - loss(x))], x from the first argument of the pair. The integral is split where
the inner function reaches the end of its range (all derivatives vanish there), and adaptively elsewhere;
every panel uses the tanh-sinh rule at two levels.
Second route: the other orientation, by delta_{P,Q}(eps) = 1 - e^eps + e^eps delta_{Q,P}(-eps)
(a different integrand with different kinks), or, for different mixtures, the other order of integration.
"""

import math
import time

from core import digits_of, mixture_of, text, write_part
from flint import arb, ctx
from moments import supports

RULES = {}


def rule(level, decimals):
    """tanh-sinh nodes and weights on (-1, 1): (distance to the nearer end, side, weight)."""
    key = (level, decimals, ctx.prec)
    if key not in RULES:
        h = arb(2) ** -level
        rows, n = [], 0
        while True:
            t = n * h
            s = arb.pi() / 2 * t.sinh()
            gap = (-s).exp() / s.cosh()  # 1 - tanh(s)
            w = h * arb.pi() / 2 * t.cosh() / s.cosh() ** 2
            if w < arb(10) ** -(decimals + 4):
                break
            rows.append((gap, w, n))
            n += 1
        RULES[key] = rows
    return RULES[key]


def panel(f, a, b, level, decimals):
    half = (b - a) / 2
    total = arb(0)
    for gap, w, n in rule(level, decimals):
        if n == 0:
            total += w * f(a + half)
        else:
            total += w * (f(a + half * gap) + f(b - half * gap))
    return total * half


def integrate(f, edges, decimals, level):
    """Adaptive: a panel is halved until two levels agree relative to the whole."""
    work = []
    for a, b in zip(edges, edges[1:]):
        work.append((a, b, panel(f, a, b, level, decimals), 0))
    total = sum((v for _, _, v, _ in work), arb(0)).mid()
    tolerance = abs(total).upper() * arb(10) ** -decimals
    done = arb(0)
    while work:
        a, b, coarse, depth = work.pop()
        m = ((a + b) / 2).mid()
        left, right = panel(f, a, m, level, decimals), panel(f, m, b, level, decimals)
        if abs((left + right - coarse).mid()) < tolerance or depth > 30:
            done += left + right
        else:
            work += [(a, m, left, depth + 1), (m, b, right, depth + 1)]
    return done


def nested(mixes, eps, direction, decimals, level):
    """delta of the composition of the mixtures at eps, by len(mixes) - 1 nested integrals."""
    first, rest = mixes[0], mixes[1:]
    if not rest:
        try:
            return first.hockey_stick(eps, direction).mid()
        except ArithmeticError:  # the end of the range, to working precision
            return arb(0) if direction == "add" else (1 - eps.exp()).mid()
    floor = sum((m.atom.log() for m in rest), arb(0)) if all(m.atom > 0 for m in rest) else None
    norm = (2 * arb.pi()).sqrt()
    if direction == "remove":
        def f(u):
            u = u.mid()
            r = first.ratio(u)
            return (nested(rest, (eps - r.log()).mid(), direction, decimals, level) * r * (-u * u / 2).exp() / norm).mid()
        kink = first.inverse((eps - floor).mid()) if floor is not None else None
        power = 1.0
    else:
        def f(u):
            u = u.mid()
            return (nested(rest, (eps + first.ratio(u).log()).mid(), direction, decimals, level) * (-u * u / 2).exp() / norm).mid()
        kink = first.inverse((-eps - floor).mid()) if floor is not None else None
        if floor is not None and kink is None:
            return arb(0)  # eps beyond the largest loss
        power = 0.0
    # where the integrand lives: scan its logarithm on a coarse mesh
    lows = supports(first, power, 80.0)[0]
    low, high = lows[0][0], lows[-1][1]
    if direction == "add":
        low = -60.0
        high = float(kink) if kink is not None else 45.0
    else:
        low, high = low - 30, high + 60
    grid = [low + (high - low) * i / 160 for i in range(161)]
    if len(rest) > 1:
        sizes = [(float_log(envelope(first, rest, eps, g, direction)), g) for g in grid]
    else:
        sizes = [(float_log(f(arb(g))), g) for g in grid]
    top = max(s for s, _ in sizes)
    if top < -1e299:
        return arb(0)
    depth = (decimals + 5) * math.log(10)
    keep = [g for s, g in sizes if s > top - depth]
    step = (high - low) / 160
    low, high = min(keep) - step, max(keep) + step
    if direction == "add" and kink is not None:
        high = min(high, float(kink))
    pieces = max(4, int((high - low) / 3))
    edges = [arb(low + (high - low) * i / pieces) for i in range(pieces + 1)]
    if kink is not None and low < float(kink):
        kink = kink.mid()
        if direction == "add":
            edges = [e for e in edges if e < kink - arb(2) ** -20] + ([kink] if high > float(kink) - 1e-6 else [])
        elif float(kink) < high:
            edges = sorted([e for e in edges if abs(e - kink) > arb(2) ** -10] + [kink], key=float)
    return integrate(f, edges, decimals, level).mid()


def float_log(x):
    return float(x.log()) if x > 0 else -1e300


def envelope(first, rest, eps, g, direction):
    """A cheap size estimate of the integrand when the inner function is itself an integral: Gaussian factor only."""
    u = arb(g)
    weight = (-u * u / 2).exp()
    return weight * first.ratio(u) if direction == "remove" else weight


def poisson(sigma, q, k):
    return {"sigma": sigma, "q": q, "k": k}


def mixture(sigma, s, p):
    return {"sigma": sigma, "sensitivities": s, "probabilities": p}


def compute(parts, direction, eps, decimals=34, level=4, second=True):
    started = time.time()
    mixes = [mixture_of(p) for p in parts]
    for m in mixes:
        m.prepare()
    e = arb(float(eps))
    a = nested(mixes, e, direction, decimals, level)
    notes = []
    if len(set(map(str, parts))) > 1:
        b = nested(mixes[::-1], e, direction, decimals, level)
        notes.append("other order of integration")
    elif a < arb(10) ** -13:
        b = nested(mixes, e, direction, decimals + 6, level + 1)
        notes.append("a finer setting of the same integral")
    else:
        other = "add" if direction == "remove" else "remove"
        extra = max(0, int(-float_log(a) / math.log(10))) if a > 0 else 0
        b = (1 - e.exp() + e.exp() * nested(mixes, -e, other, decimals + extra + 2, level)).mid()
        notes.append("the other orientation by the parity identity")
    digits = min(digits_of(a, b), decimals)
    print([tuple(p.values()) for p in parts], direction, eps, a.str(10, radius=False), digits, f"{time.time() - started:.0f}s", flush=True)
    return a, digits, notes[0]


PAIR = poisson("1", "0.01", 1)


def cases():
    two = []
    for sigma, q, k, eps_remove, eps_add in [
        ("0.3", "1e-6", 1, ["1e-6", "2"], ["1e-6", "1.9e-6"]),
        ("1", "1e-6", 1, ["1e-6", "0.5"], ["1e-6", "1.8e-6"]),
        ("4", "1e-6", 2, ["1e-7", "1e-5"], ["1e-7", "1e-6"]),
        ("0.3", "0.0001", 1, ["0.0001", "5", "40"], ["0.0001", "0.00015"]),
        ("1", "0.0001", 4, ["0.001", "3"], ["0.0003", "0.0006"]),
        ("0.5", "0.01", 1, ["0.015", "1", "8"], ["0.005", "0.015", "0.02"]),
        ("1", "0.01", 2, ["0.01", "1", "10"], ["0.01", "0.03"]),
        ("4", "0.01", 8, ["0.01", "0.2"], ["0.01", "0.1"]),
        ("2", "0.5", 1, ["0", "2"], ["0.5", "1.2"]),
    ]:
        for eps in eps_remove:
            two.append(([poisson(sigma, q, k)] * 2, "remove", eps))
        for eps in eps_add:
            two.append(([poisson(sigma, q, k)] * 2, "add", eps))
    mixed = [
        [poisson("1", "0.01", 1), poisson("0.5", "0.1", 2)],
        [poisson("0.3", "0.0001", 1), poisson("4", "0.5", 8)],
        [mixture("1.5", ["0", "0.7", "1.9", "2.5"], ["0.5", "0.3125", "0.125", "0.0625"]), poisson("1", "1e-6", 1)],
        [mixture("0.75", ["0.25", "1", "7.3"], ["0.75", "0.1875", "0.0625"]), poisson("2", "0.01", 3)],
    ]
    for parts, points in zip(mixed, [("0.05", "2"), ("0.1", "3"), ("0.2", "4"), ("1", "30")]):
        for eps in points:
            two.append((parts, "remove", eps))
        two.append((parts, "add", points[0]))
    two[-1] = (mixed[-1], "add", "2")
    three = [
        ([poisson("1", "0.01", 1)] * 3, "remove", "0.5"), ([poisson("1", "0.01", 1)] * 3, "add", "0.02"),
        ([poisson("0.3", "0.0001", 1)] * 3, "remove", "1"), ([poisson("0.3", "0.0001", 1)] * 3, "add", "0.0002"),
        ([poisson("4", "1e-6", 1)] * 3, "remove", "1e-6"), ([poisson("2", "0.1", 1)] * 3, "add", "0.15"),
        ([poisson("1", "0.01", 1), poisson("0.5", "0.1", 1), poisson("2", "0.5", 1)], "remove", "1"),
    ]
    return two, three


def entry(parts, direction, eps, a, digits, method):
    same = len(set(map(str, parts))) == 1
    if same:
        return {"mechanism": "poisson", "params": {**parts[0], "T": len(parts)}, "direction": direction, "epsilon": eps,
                "delta": text(a, digits), "digits": digits, "method": method}
    rounds = [{**p, "count": 1} for p in parts]
    return {"mechanism": "composition", "params": {"parts": rounds}, "direction": direction, "epsilon": eps,
            "delta": text(a, digits), "digits": digits, "method": method}


def main():
    two, three = cases()
    out = []
    ctx.prec = 320
    for parts, direction, eps in two:
        a, digits, note = compute(parts, direction, eps)
        if digits < 12:
            print("  left out")
            continue
        out.append(entry(parts, direction, eps, a, digits, "adaptive tanh-sinh integral of the one-step closed form; " + note))
        write_part("nested.json", out)


if __name__ == "__main__":
    main()
