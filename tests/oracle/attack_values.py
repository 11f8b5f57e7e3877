"""tests/data/attack.json: delta at random settings of the practical and of a wide domain, by the routes of tilted.py.

    python attack_values.py write [--seconds 600]    goes on where the table stops, until there are 2,000 values
    python attack_values.py check [--every 50]       some of the values again, and tilted.py against oracle.json

Settings are log-uniform; every second epsilon of the practical domain, and three in four of the wide one, are
chosen so that delta is roughly log-uniform. A setting whose value is not affordable is counted and left out.
"""

import argparse
import collections
import json
import math
import pathlib
import random
import time

import mpmath
import numpy as np
import tilted

FOLDER = pathlib.Path(__file__).resolve().parent
TABLE = FOLDER.parents[1] / "tests" / "data" / "attack.json"
WANTED = {"practical": 1834, "wide": 166}
RANGES = {
    "practical": {"sigma": (0.4, 20.0), "q": (1e-5, 0.5), "T": (10, 10**5), "k": (1, 16), "epsilon": (0.05, 20.0)},
    "wide": {"sigma": (0.01, 1e4), "q": (1e-9, 1.0), "T": (1, 10**7), "k": (1, 1000), "epsilon": (1e-3, 1e3)},
}
AIMED = {"practical": (1e-15, 0.5), "wide": (1e-30, 0.9)}
SEED = "attack 1"


def _spread(draw, low, high):
    return float(f"{math.exp(draw.uniform(math.log(low), math.log(high))):.6g}")


def _whole(draw, low, high):
    return min(max(round(_spread(draw, low, high)), low), high)


def setting(domain, number):
    """The setting of that number, or None where no epsilon of the domain has the delta that was drawn."""
    draw, ranges = random.Random(f"{SEED} {domain} {number}"), RANGES[domain]
    sigma, q = _spread(draw, *ranges["sigma"]), min(_spread(draw, *ranges["q"]), ranges["q"][1])
    rounds, group = _whole(draw, *ranges["T"]), _whole(draw, *ranges["k"])
    if domain == "wide" and number % 20 < 2:
        q, rounds = (1.0, rounds) if number % 20 else (q, 1)
    if number % 2:
        size = _whole(draw, math.ceil(1 / q), max(math.ceil(1 / q), 10**7))
        case = {"kind": "FixedBatchDPSGD", "arguments": [sigma, min(max(1, round(q * size)), size), size, rounds, group]}
    else:
        case = {"kind": "PoissonDPSGD", "arguments": [sigma, q, rounds, group]}
    case |= {"domain": domain, "direction": draw.choice(["remove", "add"]), "epsilon": _spread(draw, *ranges["epsilon"])}
    target = math.log(_spread(draw, *AIMED[domain]))
    if number // 2 % (2 if domain == "practical" else 4):
        case["epsilon"] = aimed(case, target, ranges["epsilon"])
    return case if case["epsilon"] else None


def aimed(case, target, ends):
    """An epsilon between the ends whose delta is very roughly e^target, or None."""
    rough = tilted.Rough(tilted.pair_of(case), tilted.rounds_of(case), case["direction"], 0.0)
    known = []
    for x in np.arange(-8.0, 6.0, 0.4):
        try:
            known.append((math.exp(x), rough.bound(math.exp(x))))
        except (tilted.Beyond, OverflowError):
            break
    low, high = ends
    bound = lambda e: min((b - c * e for c, b in known), default=0.0) - 1.0
    if not bound(low) > target > bound(high):
        return None
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if bound(middle) > target else (low, middle)
    return float(f"{low:.6g}")


def with_lattice(case, found):
    """The lattice's ends and estimate beside a value of the contour; raises where they contradict each other."""
    try:
        pair = tilted.pair_of(case)
        ends = tilted.lattice(pair, tilted.rounds_of(case), case["direction"], case["epsilon"])
    except (tilted.Beyond, ValueError, OverflowError):
        return None
    if math.isnan(ends["lower"] + ends["upper"]):
        return None
    value = mpmath.mpf(found["log"])
    log_delta = float(value if found["small"] == "delta" else mpmath.log1p(-mpmath.exp(value)))
    room = found["error"] + 1e-9
    if not ends["lower"] - room <= log_delta <= ends["upper"] + room:
        raise ArithmeticError(f"{case}: contour {log_delta!r}, lattice {ends}")
    return [round(log_delta - ends["lower"], 9), round(ends["upper"] - log_delta, 9), round(ends["estimate"] - log_delta, 9)]


def write(seconds):
    """More values, until there are enough of each domain or the CPU time is spent."""
    meta, values = {"drawn": {}, "left_out": {}}, []
    if TABLE.exists():
        table = json.loads(TABLE.read_text())
        meta, values = table["meta"], table["values"]
    for domain, wanted in WANTED.items():
        left_out = collections.Counter(meta["left_out"].get(domain, {}))
        mine = [v for v in values if v["domain"] == domain]
        number = meta["drawn"].get(domain, 0)
        while len(mine) < wanted and time.process_time() < seconds:
            entry = valued(domain, number)
            if isinstance(entry, dict) and entry["log"] == "-inf" and sum(v["log"] == "-inf" for v in mine) >= wanted / 20:
                entry = "enough deltas of zero"
            if isinstance(entry, str):
                left_out[entry] += 1
            else:
                mine.append(entry)
            number += 1
        values = [v for v in values if v["domain"] != domain] + mine
        meta["drawn"][domain], meta["left_out"][domain] = number, dict(left_out)
        publish(meta, values)


def valued(domain, number):
    """The entry of that number, or why there is none."""
    try:
        case = setting(domain, number)
        if case is None:
            return "no such epsilon"
        found = tilted.value(case)
    except (tilted.Beyond, ArithmeticError, ValueError) as error:
        return " ".join(word for word in str(error).split() if not any(s.isdigit() for s in word))
    entry = {"id": f"{domain}-{number}"} | case | found
    if number % 10 == 3 and found["route"] == "contour" and (ends := with_lattice(case, found)):
        entry["lattice"] = ends
    return entry


def publish(meta, values):
    meta = {
        "description": "delta(epsilon) at random settings, computed by tests/oracle/attack_values.py with tests/oracle/tilted.py. "
        "kind and arguments are those of the class of that name; log is the natural logarithm of delta, or of miss = "
        "1 - delta, whichever small names; error bounds its relative error; slope = |d log / d epsilon|; lattice: "
        "how far, in log delta, the proved lower and upper end of another route and its estimate are away",
        "seed": SEED,
        "count": len(values),
        "drawn": meta["drawn"],
        "left_out": meta["left_out"],
        "routes": dict(collections.Counter(v["route"] for v in values)),
    }
    rows = ",\n".join(json.dumps(v) for v in values)
    TABLE.write_text('{\n"meta": ' + json.dumps(meta, indent=1) + ',\n"values": [\n' + rows + "\n]\n}\n")
    print("wrote", TABLE.name, len(values), f"{TABLE.stat().st_size / 1e6:.2f} MB")


def agrees(entry):
    """Whether the value comes out again, within both error bars; and, for the contour's, within the lattice's bracket."""
    again = tilted.value(entry)
    if again["small"] != entry["small"] or (again["log"] == "-inf") != (entry["log"] == "-inf"):
        return False
    if entry["log"] == "-inf":
        return True
    with mpmath.workdps(30):
        apart = abs(mpmath.mpf(again["log"]) - mpmath.mpf(entry["log"]))
    return apart <= entry["error"] + again["error"]


def against_oracle(every):
    """Ids of values of oracle.json, which ball arithmetic made, that a route of tilted.py contradicts; and how many it has."""
    wrong, count = [], 0
    for v in json.loads((TABLE.parent / "oracle.json").read_text())["values"][::every]:
        p = v["params"]
        delta = mpmath.mpf(v["delta"])
        if v["mechanism"] not in ("poisson", "fixed_batch") or not 0 < delta < 1 or float(v["epsilon"]) <= 0:
            continue
        case = {"direction": v["direction"], "epsilon": float(v["epsilon"])}
        if "q" in p:
            case |= {"kind": "PoissonDPSGD", "arguments": [float(p["sigma"]), float(p["q"]), int(p["T"]), int(p["k"])]}
        else:
            sizes = [p["batch_size"], p["dataset_size"], int(p["T"]), int(p["k"])]
            case |= {"kind": "FixedBatchDPSGD", "arguments": [float(p["sigma"]), *sizes]}
        try:
            found = tilted.value(case)
        except tilted.Beyond:
            continue
        count += 1
        with mpmath.workdps(60):
            small = mpmath.mpf(v["delta"]) if found["small"] == "delta" else 1 - mpmath.mpf(v["delta"])
            apart = abs(mpmath.mpf(found["log"]) - mpmath.log(small))
            if apart > found["error"] + 5 * mpmath.mpf(10) ** -v["digits"] * mpmath.mpf(v["delta"]) / small:
                wrong.append(v["id"])
    return wrong, count


def check(every):
    entries = json.loads(TABLE.read_text())["values"][::every]
    wrong = [v["id"] for v in entries if not agrees(v)]
    print(f"differ from the table, of {len(entries)}:", wrong or "none")
    contradicted, count = against_oracle(max(1, every // 10))
    print(f"contradict oracle.json, of {count}:", contradicted or "none")
    return 1 if wrong or contradicted else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["write", "check"])
    parser.add_argument("--seconds", type=float, default=3600.0, help="CPU seconds")
    parser.add_argument("--every", type=int, default=50)
    chosen = parser.parse_args()
    return check(chosen.every) if chosen.task == "check" else write(chosen.seconds)


if __name__ == "__main__":
    raise SystemExit(main())
