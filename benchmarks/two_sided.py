"""Claim: where both datasets hold a record that the other lacks, and where batches are cut, answers are as fast and as narrow as for one-sided mixtures.

    python benchmarks/two_sided.py                              300 settings of each kind
    python benchmarks/two_sided.py --settings 50 --no-record

Settings are log-uniform: noise multiplier .4 to 20, sampling probability 1e-5 to .5, 1 to 1e6 rounds (every second setting 10 to 1e5),
groups of 1 to 8 on either side, epsilon .05 to 20 or delta from 1e-15 to 1 - 1e-6; both directions and the larger of them. What is
told apart by `participations` are settings with more and with fewer than three expected participations: those of few are sums
of rare large losses, which the lattice often takes, for one-sided mixtures as well. Beside them, settings of practice: a few epochs.
"""

import argparse
import math
import random
import statistics
import sys

from _common import Report, asked

import dplib

WORST = 8
OFTEN = 3.0  # expected participations
KINDS = (
    "Poisson, add-remove", "Poisson, substitution", "Poisson, inserted and deleted", "fixed batch, substitution", "fixed batch, zero-out",
    "truncated Poisson, add-remove", "truncated Poisson, substitution", "truncated Poisson, zero-out",
)  # fmt: skip
EPOCHS = "an epoch of Poisson, add-remove", "an epoch of Poisson, substitution"


def spread(draw, low, high):
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def whole(draw, low, high):
    return min(max(round(spread(draw, low, high)), low), high)


def setting(seed, kind, number):
    """(mechanism, its text, question, value, direction) of that number; the same in every run."""
    draw = random.Random(f"{seed} {kind} {number}")
    sigma, q = spread(draw, 0.4, 20.0), spread(draw, 1e-5, 0.5)
    steps = whole(draw, 10, 10**5) if number % 2 else whole(draw, 1, 10**6)
    size = whole(draw, math.ceil(2 / q), 10**7)
    scheme, _, adjacency = kind.partition(", ")
    arguments = {"noise_multiplier": sigma, "steps": steps}
    if scheme == "Poisson":
        name, first, second = "PoissonDPSGD", whole(draw, 1, 8), whole(draw, 1, 8)
        arguments["sampling_probability"] = q
        arguments |= {"inserted": first, "deleted": second} if "deleted" in kind else {"group_size": first, "adjacency": adjacency}
    elif scheme == "fixed batch":
        name = "FixedBatchDPSGD"
        arguments |= {"batch_size": max(1, round(q * size)), "dataset_size": size, "adjacency": adjacency}
    else:
        name = "TruncatedPoissonDPSGD"
        most = max(1, round(size * q + draw.uniform(-1.0, 6.0) * math.sqrt(size * q)))
        arguments |= {"sampling_probability": q, "dataset_size": size, "largest_batch": most, "adjacency": adjacency}
    if draw.random() < 0.5:
        question, value = "epsilon", spread(draw, 1e-15, 0.5) if draw.random() < 0.8 else 1 - spread(draw, 1e-6, 0.5)
    else:
        question, value = "delta", spread(draw, 0.05, 20.0)
    text = f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
    return getattr(dplib, name)(**arguments), text, question, value, draw.choice(("remove", "add", "both"))


def epoch(seed, kind, number):
    """As `setting`, of practice: .3 to 3 passes over the data in 200 to 30,000 rounds."""
    draw = random.Random(f"{seed} {kind} {number}")
    steps, passes = whole(draw, 200, 30_000), draw.uniform(0.3, 3.0)
    arguments = {"noise_multiplier": draw.uniform(0.5, 3.0), "sampling_probability": passes / steps, "steps": steps}
    arguments["adjacency"] = kind.partition(", ")[2]
    text = f"PoissonDPSGD({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
    return dplib.PoissonDPSGD(**arguments), text, "epsilon", spread(draw, 1e-8, 1e-4), "both"


def measured(seed, kind, number):
    drawn = epoch if kind.startswith("an epoch") else setting
    mechanism, text, question, value, direction = drawn(seed, kind, number)
    found, bracket = asked(lambda: getattr(mechanism, question)(value, direction))
    often = sum(pair.participation * rounds for pair, rounds in mechanism.composition()) > OFTEN
    row = {"kind": kind, "participations": "many" if often else "few", "call": f"{text}.{question}({value!r}, {direction!r})"} | found
    delta = value if question == "epsilon" else getattr(bracket, "upper", 0.0)
    return row | {"in range": 1e-15 <= delta <= 1 - 1e-6}


def quantile(values, share):
    values = sorted(values)
    return values[math.ceil(share * len(values)) - 1] if values else None


def costs(rows):
    """A row for each kind; "over" is the median over that of one-sided mixtures, in epochs or with as many participations."""
    one_sided = {}
    for kind in KINDS + EPOCHS:
        for participations in ("many", "few"):
            chosen = [row for row in rows if row["kind"] == kind and row["participations"] == participations]
            if not chosen:
                continue
            cpu, widths = [1e3 * row["cpu"] for row in chosen], [row["width"] for row in chosen if "width" in row]
            beside = one_sided.setdefault("epochs" if kind in EPOCHS else participations, statistics.median(cpu))
            yield {
                "kind": kind, "participations": participations, "settings": len(chosen),
                "contour": sum(row.get("method") == "contour" for row in chosen),
                "median ms": statistics.median(cpu), "over": statistics.median(cpu) / beside, "90%": quantile(cpu, 0.9), "slowest": max(cpu),
                "median width": statistics.median(widths), "its 90%": quantile(widths, 0.9), "widest": max(widths),
            }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, default=300, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-record", action="store_true", help="print only, leave benchmarks/results as it is")
    chosen = parser.parse_args()
    dplib.TruncatedPoissonDPSGD(1.0, 0.01, 1000, 12, 1000, "substitution").epsilon(1e-6)  # loads what is loaded late
    rows = [measured(chosen.seed, kind, number) for number in range(chosen.settings) for kind in KINDS + EPOCHS]
    report = Report("two_sided", f"Mixtures on both sides and batches that are cut: {len(rows)} settings")
    kept = [row for row in rows if row["in range"]]
    report.table("CPU milliseconds and relative widths, for delta in 1e-15 to 1 - 1e-6", list(costs(kept)))
    for name, key in (("Slowest", "cpu"), ("Widest", "width")):
        report.table(name, sorted(kept, key=lambda row: -row.get(key, 0.0))[:WORST], ["cpu", "width", "method", "call"])
    report.say("")
    of = lambda name, *starts: [row[name] for row in kept if row["kind"].startswith(starts) and name in row]
    both_sides = ("Poisson, sub", "Poisson, ins")
    report.claim("substitution, insertions with deletions: median", statistics.median(of("cpu", *both_sides)), at_most=0.01, unit="s")
    report.claim("the same, median relative width", statistics.median(of("width", *both_sides)), at_most=1e-6)
    often = [row for row in kept if row["participations"] == "many" and not row["kind"].startswith("Poisson")]
    report.claim("fixed and cut batches, many participations: median", statistics.median(row["cpu"] for row in often), at_most=0.01, unit="s")
    report.claim("the same, median relative width", statistics.median(row["width"] for row in often if "width" in row), at_most=1e-6)
    report.claim("fixed and cut batches, all: median", statistics.median(of("cpu", "fixed", "trunc")), at_most=0.01, unit="s")
    report.claim("the same, median relative width", statistics.median(of("width", "fixed", "trunc")), at_most=1e-6)
    report.claim("wider than 1e-6, share of all but one-sided", statistics.fmean(x > 1e-6 for x in of("width", *KINDS[1:])), at_most=0)
    report.claim("a few epochs of Poisson sampling: median", statistics.median(of("cpu", "an epoch")), at_most=0.01, unit="s")
    report.claim("the same, wider than 1e-6", sum(x > 1e-6 for x in of("width", "an epoch")), at_most=0)
    failed = [row for row in rows if "failed" in row or "refused" in row]
    report.claim("refused, or other exceptions", len(failed), at_most=0)
    for row in failed:
        report.wrong(f"{row['call']}: {row.get('failed', row.get('refused'))}")
    return report.failed if chosen.no_record else report.close()


if __name__ == "__main__":
    sys.exit(main())
