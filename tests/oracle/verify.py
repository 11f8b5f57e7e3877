"""Recompute the reference tables of tests/data/ with the routes of this folder.

    python verify.py group        every value of group.json (minutes: T = 3); an index after it: start there
    python verify.py figures      every value of group_figures.json
    python verify.py cross        contour values at T = 20 against the recursion
    python verify.py reliability [id]  recompute the truths of reliability.json and write them into it

Prints the worst relative difference; a difference above the stated digits is marked BAD.
"""

import json
import math
import sys
from fractions import Fraction

import contour
import nested
from core import DATA, Mixture, ball, binomial_law, hypergeometric_law
from flint import arb, ctx


def build(mechanism, p):
    """Parameters read as exact decimals."""
    decimal = lambda x: Fraction(str(x))
    if mechanism == "poisson":
        return Mixture(*binomial_law(p["k"], decimal(p["q"])), decimal(p["sigma"]))
    if mechanism == "fixed_batch":
        return Mixture(*hypergeometric_law(p["batch_size"], p["dataset_size"], p["k"]), decimal(p["sigma"]))
    return Mixture([decimal(s) for s in p["sensitivities"]], [decimal(w) for w in p["probabilities"]], decimal(p["sigma"]))


def delta_many(rounds, direction, eps, digits=24, budget=4e7):
    value, agreed, note = contour.compute(rounds, direction, eps, digits=digits, budget=budget)
    return (None if value is None or agreed < min(digits, 15) else value), note


def epsilon_of(rounds, direction, delta, start=None, digits=24, budget=4e7):
    """Secant on log delta."""
    eps = arb(start) if start else arb(contour.epsilon_for(rounds, direction, math.log10(delta)))
    goal = arb(delta).log()
    old = None
    for _ in range(9):
        a, note = delta_many(rounds, direction, eps.mid(), digits, budget)
        if a is None:
            return None, note
        gap = (a.log() - goal).mid()
        if old is None:
            move = eps * arb("1e-5") * (1 if gap > 0 else -1)
        else:
            slope = (gap - old[1]) / (eps - old[0])
            move = (-gap / slope).mid()
        old = (eps, gap)
        if abs(move) < abs(eps) * arb(10) ** -13:
            return (eps + move).mid(), note
        eps = (eps + move).mid()
    return None, "no convergence"


def report(name, difference, limit):
    flag = "" if difference <= limit else "   BAD"
    print(name, f"{difference:.1e}", flag, flush=True)
    return difference


def group():
    worst = 0
    for v in json.loads((DATA / "group.json").read_text())["values"][int(sys.argv[2]) if len(sys.argv) > 2 else 0:]:
        p = v["params"]
        mix = build(v["mechanism"], p)
        eps, delta = ball(Fraction(v["epsilon"])), ball(Fraction(v["delta"]))
        directions = ["remove", "add"] if v["direction"] == "both" else [v["direction"]]
        ctx.prec = 320
        mix.prepare()
        if p.get("q") == 1:
            from core import normal_tail
            mu = p["k"] * arb(p["T"]).sqrt() / mix.pb[0] / ball(mix.sigma)
            ours = normal_tail(eps / mu - mu / 2) - eps.exp() * normal_tail(eps / mu + mu / 2)
        elif p["T"] == 1:
            ours = max((mix.hockey_stick(eps.mid(), d) for d in directions), key=lambda b: float(b))
        elif p["T"] in (2, 3):
            ours = nested.nested([mix] * p["T"], eps.mid(), directions[0], 30 if p["T"] == 2 else 14, 4 if p["T"] == 2 else 3)
        else:
            ours, note = delta_many([(mix, p["T"])], directions[0], eps.mid())
        if ours is None:
            print(v["id"], p, v["direction"], "not computed:", note)
            continue
        gap = abs(float((ours / delta - 1).mid()))
        if v["output"] == "epsilon":  # delta's change over its slope in epsilon
            rounds = [(mix, p["T"])]
            gap /= contour.saddle(contour.Coarse(rounds, directions[0]), float(eps))[0] * float(eps)
        worst = max(worst, report(f"{v['id']} {p} {v['direction']}", gap, 10.0 ** (1 - v["digits"])))
    print("worst", worst)


def figures():
    worst = 0
    for v in json.loads((DATA / "group_figures.json").read_text())["values"]:
        p = {"sigma": v["sigma"], "k": v["k"], "q": "0.01", "batch_size": 500, "dataset_size": 50000}
        rounds = [(build(v["mechanism"], p), 2000)]
        for direction in ("remove", "add"):
            e = v["epsilon_" + direction]
            d, note = delta_many(rounds, direction, arb(e), 20)
            c = contour.saddle(contour.Coarse(rounds, direction), e)[0]
            gap = abs(float(d / arb("1e-6") - 1)) / c / e
            worst = max(worst, report(f"{v['id']} {v['mechanism']} sigma={v['sigma']} k={v['k']} {direction}", gap, 1e-12))
    print("worst", worst)


def cross():
    """Two routes that share only the one-step closed form and R."""
    import recursion
    from core import read_part
    rows = [v for v in read_part("contour.json") if v["mechanism"] == "poisson" and v["params"]["T"] == 20 and v["params"]["q"] != "1"
            and float(v["params"]["q"]) <= 0.1 and v["params"]["k"] == 1 and float(v["epsilon"]) > 0]
    for direction in ("remove", "add"):
        group_ = [v for v in rows if v["direction"] == direction]
        for key in sorted({str(v["params"]) for v in group_}):
            mine = [v for v in group_ if str(v["params"]) == key]
            p = {n: x for n, x in mine[0]["params"].items() if n != "T"}
            out, _, _ = recursion.delta([p] * 20, direction, [arb(float(v["epsilon"])) for v in mine], recursion.SETTINGS[0])
            for v, value in zip(mine, out):
                gap = abs(float(recursion.to_arb(value) / arb(v["delta"]) - 1))
                report(f"{key} {direction} {v['epsilon']} {v['delta'][:18]} {value}", gap, 1e-13)


def reliability():
    path = DATA / "reliability.json"
    table = json.loads(path.read_text())
    for v in table["values"]:
        p = dict(v["input"])
        if "q" not in p or (len(sys.argv) > 2 and v["id"] != sys.argv[2]):
            continue
        rare = p["q"] * p["T"] < 1 < p["T"]  # slow decay: fewer digits, more nodes
        p.setdefault("k", 1)
        ctx.prec = 320
        mix = build("poisson", p)
        mix.prepare()
        best = {}
        for direction in ("remove", "add"):
            if p["q"] == 1.0 or p["T"] == 1:
                f = lambda e, m=mix, d=direction: m.hockey_stick(e, d)
                if p["q"] == 1.0:
                    mix_all = Mixture([1], [1], mix.sigma / Fraction(math.isqrt(p["T"] * 10**40), 10**20))
                    f = lambda e, m=mix_all: m.hockey_stick(e, "remove")
                low, high = arb(0), arb(1)
                while f(high) > p["delta"]:
                    high *= 2
                for _ in range(60):
                    m = ((low + high) / 2).mid()
                    low, high = (m, high) if f(m) > p["delta"] else (low, m)
                best[direction], note = high, "closed form"
            else:
                best[direction], note = epsilon_of([(mix, p["T"])], direction, p["delta"], digits=16 if rare else 24, budget=2e8 if rare else 4e7,
                                                   start=v["truth"] if direction == "remove" and isinstance(v["truth"], float) else None)
        shown = {d: None if e is None else float(e) for d, e in best.items()}
        print(v["id"], p, shown, "was", v["truth"], "|", note, flush=True)
        if None not in best.values():
            v["truth"] = float(f"{max(shown.values()):.12g}")
            v["truth_remove"], v["truth_add"] = (float(f"{shown[d]:.12g}") for d in ("remove", "add"))
            v["truth_method"] = note if note == "closed form" else "contour integral, two settings agree"
    head = json.dumps(table["meta"], indent=1)
    path.write_text('{\n"meta": ' + head + ',\n"values": [\n' + ",\n".join("  " + json.dumps(v) for v in table["values"]) + "\n]\n}\n")


if __name__ == "__main__":
    {"group": group, "figures": figures, "cross": cross, "reliability": reliability}[sys.argv[1]]()
