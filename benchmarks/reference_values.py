"""Claim: every committed reference value lies inside the certified bracket, and the bracket is narrow.

Narrow: relative width at most 1e-6 for at least 100 rounds, sampling probability at
least 0.001 and noise multiplier at least 0.5. Elsewhere the bracket may be wide, and a
clear error (NoBracketError) is an allowed answer.
"""

import math
import sys
from decimal import Decimal

from _common import Report, clock, median, values

from dplib import NoBracketError, accounting, mixtures

# Inputs of group.json and group_figures.json are decimals, the library's are doubles: the
# difference moves a result by up to this much, relative (for log delta: times 1 + |log delta|).
DECIMAL_INPUT = 1e-13


def mixture(p):
    sigma = float(p["sigma"])
    if "q" in p:
        return mixtures.binomial(int(p["k"]), float(p["q"]), sigma)
    if "batch_size" in p:
        return mixtures.hypergeometric(int(p["batch_size"]), int(p["dataset_size"]), int(p["k"]), sigma)
    return mixtures.Mixture(
        [float(s) for s in p["sensitivities"]], [float(x) for x in p["probabilities"]], sigma
    )


def composition(p):
    if "parts" in p:
        return [(mixture(part), int(part["count"])) for part in p["parts"]]
    return [(mixture(p), int(p["T"]))]


def parameters(value):
    """The parameters of a value of any of the three files."""
    if "params" in value:
        return value["params"]
    batch = {"batch_size": 500, "dataset_size": 50_000}
    sampling = {"q": 0.01} if value["mechanism"] == "poisson" else batch
    return {"sigma": value["sigma"], "k": value["k"], "T": 2000, **sampling}


def in_narrow_domain(p):
    """T >= 100, q >= 0.001, sigma >= 0.5."""
    parts = p.get("parts", [p])

    def sampling(part):
        if "batch_size" in part:
            return int(part["batch_size"]) / int(part["dataset_size"])
        if "probabilities" in part:
            moved = zip(part["sensitivities"], part["probabilities"])
            return sum(float(x) for s, x in moved if float(s) > 0)
        return float(part["q"])

    rounds = sum(int(part["count"]) for part in parts) if "parts" in p else int(p["T"])
    return rounds >= 100 and all(sampling(x) >= 0.001 and float(x["sigma"]) >= 0.5 for x in parts)


def check_delta(value, decimal_inputs):
    """log delta at the value's epsilon against its delta."""
    parts, epsilon = composition(value["params"]), float(value["epsilon"])
    delta = Decimal(value["delta"])
    if epsilon < 0:  # outside what an accountant accepts; one round has it in closed form
        (pair, _), direction = parts[0], value["direction"]
        found = pair.hockey_stick(epsilon, direction)
        close = abs(float(found) - float(delta)) <= 5 * 10.0 ** -value["digits"] * float(delta)
        return {"inside": bool(close), "strictly": bool(close), "width": 0.0, "method": "closed form"}
    if delta == 0:
        bracket = accounting.delta(parts, epsilon, value["direction"])
        exact = bracket.lower == bracket.upper == 0
        return {"inside": exact, "strictly": exact, "width": 0.0, "method": bracket.method}
    bracket = accounting.log_delta(parts, epsilon, value["direction"])
    truth = float(delta.ln())
    room = 5 * 10.0 ** -value["digits"]  # what the printed digits leave open
    room += 4.5e-16 * abs(truth)  # the logarithm is rounded to a double here
    if decimal_inputs:
        room += DECIMAL_INPUT * (1 + abs(truth))
    return _judge(bracket, truth, room, -math.expm1(-bracket.width))


def check_epsilon(parts, delta, direction, truth, uncertainty):
    bracket = accounting.epsilon(parts, delta, direction)
    return _judge(bracket, truth, uncertainty * truth, bracket.relative_width)


def _judge(bracket, truth, room, width):
    return {
        "inside": bracket.lower - room <= truth <= bracket.upper + room,
        "strictly": bracket.lower <= truth <= bracket.upper,
        "width": width,
        "method": bracket.method,
    }


FILES = ("group", "group_figures", "oracle")


def jobs(files):
    """(file, id, parameters, callable) for every value."""
    for name in sorted({"group", "oracle"} & set(files)):
        for v in values(name):
            p, parts = v["params"], None
            if v.get("output") == "epsilon":
                parts = composition(p)
                uncertainty = 5 * 10.0 ** -v["digits"] + DECIMAL_INPUT
                yield (
                    name,
                    v["id"],
                    p,
                    lambda v=v, parts=parts, u=uncertainty: check_epsilon(
                        parts, float(v["delta"]), v["direction"], float(v["epsilon"]), u
                    ),
                )
            else:
                yield name, v["id"], p, lambda v=v, d=name == "group": check_delta(v, d)
    for v in values("group_figures") if "group_figures" in files else []:
        p = parameters(v)
        for direction in ("remove", "add"):
            truth = v["epsilon_" + direction]
            uncertainty = v["relative_bound"] + 1e-12  # rounding of the committed double included
            yield (
                "group_figures",
                f"{v['id']}-{direction}",
                p,
                lambda p=p, d=direction, t=truth, u=uncertainty: check_epsilon(composition(p), 1e-6, d, t, u),
            )


def workload(files=FILES):
    """Every value of the files once; a list of rows."""
    rows = []
    for name, label, p, job in jobs(files):
        row = {"file": name, "id": label, "narrow_domain": in_narrow_domain(p)}
        try:
            answer, seconds = clock(job)
        except NoBracketError as error:
            row |= {"refused": str(error).split(";")[0]}
        else:
            row |= answer | {"seconds": seconds[0]}
        rows.append(row)
    return rows


def run_workload(*files):
    """For the memory benchmark: how many values were answered."""
    return sum("inside" in row for row in workload(files))


def main():
    report = Report("reference_values", "Reference values: inside the bracket, and how narrow it is")
    rows = workload()
    summary = []
    for name in FILES:
        mine = [r for r in rows if r["file"] == name]
        answered = [r for r in mine if "inside" in r]
        narrow = [r for r in answered if r["narrow_domain"]]
        summary.append(
            {
                "file": f"{name}.json",
                "values": len(mine),
                "answered": len(answered),
                "inside": sum(r["inside"] for r in answered),
                "inside without allowance": sum(r["strictly"] for r in answered),
                "refused": len(mine) - len(answered),
                "in the narrow domain": len(narrow),
                "widest there": max(r["width"] for r in narrow),
                "widest elsewhere": max(
                    (r["width"] for r in answered if not r["narrow_domain"]), default=None
                ),
                "median ms": 1e3 * median([r["seconds"] for r in answered]),
                "slowest s": max(r["seconds"] for r in answered),
                "total s": sum(r["seconds"] for r in answered),
            }
        )
    report.table("Values by file", summary)
    report.say(
        "\n  Inside: within the bracket, allowing for the printed digits of the value and, where its inputs"
        "\n  are decimals, for their rounding to doubles. Widths are (upper - lower) / upper,\n  of epsilon or of delta."
    )
    report.say("")
    outside = [r for r in rows if r.get("inside") is False]
    refused = [r for r in rows if "refused" in r]
    for r in outside:
        report.wrong(f"{r['id']} is outside its bracket")
    for r in refused:
        report.say(f"  refused: {r['id']}: {r['refused']}")
        if r["narrow_domain"]:
            report.wrong(f"{r['id']} was refused in the narrow domain")
    answered = [r for r in rows if "inside" in r]
    slow = sorted(answered, key=lambda r: -r["seconds"])[:8]
    report.table("Slowest", slow, ["id", "method", "width", "seconds"])
    wide = sorted((r for r in answered if r["narrow_domain"]), key=lambda r: -r["width"])[:8]
    report.table("Widest in the narrow domain", wide, ["id", "method", "width", "seconds"])
    wide = sorted((r for r in answered if not r["narrow_domain"]), key=lambda r: -r["width"])[:8]
    report.table("Widest outside the narrow domain", wide, ["id", "method", "width", "seconds"])
    report.say("")
    report.claim("values outside their bracket", len(outside), at_most=0)
    report.claim("values of the narrow domain refused", sum(r["narrow_domain"] for r in refused), at_most=0)
    for row in summary:
        report.claim(f"widest in the narrow domain, {row['file']}", row["widest there"], at_most=1e-6)
    report.tables["All"] = rows
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
