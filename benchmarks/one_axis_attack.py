"""Claim: at random settings of every scheme and adjacency, answers lie on the right side of a bracket that code sharing nothing with dplib computes.

    python benchmarks/one_axis_attack.py                              10,000 settings; goes on where an interrupted run stopped
    python benchmarks/one_axis_attack.py --settings 500 --no-record
    PYTHONPATH=../other python benchmarks/one_axis_attack.py          attacks the library of another checkout

The truth is that of tests/oracle/one_axis.py, with both ends. Settings are log-uniform: noise multiplier .4 to 20, sampling probability
1e-5 to .5, 1 to 10,000 rounds, groups of 1 to 16 on either side; epsilon is chosen so that delta is spread from 1e-10 to 1/2. A
bracket must overlap the truth, an upper bound may not lie below it, nor a certificate (each fails with probability 1e-9); an estimate
must be within five standard errors. Every second bracket is one of epsilon: at the lower end of the true delta its upper end must be at
least the epsilon that delta belongs to, and at the upper end of the true delta its lower end at most that.
"""

import argparse
import json
import math
import random
import statistics
import sys

import numpy as np
from _common import ROOT, Report, asked, dplib_state, kept_rows

import dplib
from dplib import matrices

sys.path.append(str(ROOT / "tests" / "oracle"))

import one_axis as truth  # noqa: E402

WORST = 8  # rows in the tables of the worst
ERRORS = 5.0  # standard errors that an estimate may be off
LEAST = 1e-12  # smaller deltas are not asked for
FAILURE = 1e-9
# How many of a thousand settings.
KINDS = {
    "Poisson, inserted and deleted": 250, "Poisson, substitution": 200, "Poisson, add-remove": 150, "fixed batch, substitution": 65,
    "fixed batch, zero-out": 65, "fixed batch, add-remove": 50, "truncated Poisson, add-remove": 30, "truncated Poisson, substitution": 30,
    "truncated Poisson, zero-out": 30, "last iterate": 70, "bins among phases": 2, "balls in bins": 10, "allocation, 1 of t, epochs": 4,
    "allocation, all rounds": 14, "allocation, k of t": 10, "pause": 20,
}  # fmt: skip
PLAN = [kind for kind, share in KINDS.items() for _ in range(share)]
assert len(PLAN) == 1000


def spread(draw, low, high):
    return float(f"{math.exp(draw.uniform(math.log(low), math.log(high))):.6g}")


def whole(draw, low, high):
    return min(max(round(spread(draw, low, high)), low), high)


class Case:
    """One setting: the mechanism, the truth at an epsilon in a direction as (lower, upper), and an epsilon that is worth asking for.

    rounds : those of `truth`, remove, where there are any; swapped : the same for add.
    """

    def __init__(self, mechanism, text, rounds=None, ends=None, epsilon=None, swapped=None):
        self.mechanism, self.text, self.rounds, self.ends, self.chosen, self.swapped = mechanism, text, rounds, ends, epsilon, swapped


def turned(rounds):
    return [(truth.add(law), count) for law, count in rounds]


# ------------------------------------------------------------------ settings


def composed(draw, mechanism, text, rounds, direction, swapped=None):
    swapped = swapped or turned(rounds)
    laws = {"remove": rounds, "add": swapped}
    made = {}

    def of(side):
        if side not in made:
            made[side] = truth.Composition(laws[side])
        return made[side]

    side = "remove" if direction == "both" else direction
    epsilon = of(side).moments(of(side).tilt_at(math.log(spread(draw, 1e-8, 1.0))))[1]
    if draw.random() < 0.1:
        epsilon *= draw.random()
    return Case(mechanism, text, ends=lambda e, one: of(one).delta(e, width=2e-2), epsilon=epsilon)


def by_search(draw, mechanism, text, ends, direction):
    """epsilon where the truth is about a delta that is drawn."""
    side, aim = "remove" if direction == "both" else direction, spread(draw, 1e-10, 0.5)
    low, high = 0.0, 1.0
    while ends(high, side)[1] > aim and high < 1e4:
        high *= 2
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if ends(middle, side)[1] > aim else (low, middle)
    return Case(mechanism, text, ends=ends, epsilon=low)


def by_draws(draw, mechanism, text, modes, weights, direction, sigma):
    """epsilon from the mean and the spread of losses that are drawn."""
    rng = np.random.default_rng(draw.randrange(2**32))
    z = rng.standard_normal((4000, modes.shape[1]))
    if direction != "add":
        z += modes[rng.choice(len(modes), len(z), p=weights)]
    logs = np.log(weights)[:, None] + modes @ z.T - (modes**2).sum(axis=1)[:, None] / 2
    losses = np.logaddexp.reduce(logs) * (-1 if direction == "add" else 1)
    epsilon = max(float(losses.mean() + draw.uniform(-0.5, 4.5) * losses.std()), 0.02)
    step = min(max(0.45 * sigma, 0.15), 0.35)

    def ends(value, side):
        found, error = truth.few_rounds(modes, weights, value, side, step)
        return max(found - error, 0.0), found + error

    side = "remove" if direction == "both" else direction
    while epsilon > 0.02 and ends(epsilon, side)[0] < 1e-11:
        epsilon *= 0.8
    return Case(mechanism, text, ends=ends, epsilon=epsilon)


def kind_of(number):
    """The kind of the setting of that number: all kinds in turn, in their shares."""
    return PLAN[number * 367 % len(PLAN)]


def setting(seed, number):
    """(kind, Case, direction, question, method) of that number; the same in every run."""
    draw = random.Random(f"{seed} {number}")
    kind = kind_of(number)
    sigma, q, steps = spread(draw, 0.4, 20.0), spread(draw, 1e-5, 0.5), whole(draw, 1, 10**4)
    direction = draw.choice(("remove",) * 5 + ("add",) * 5 + ("both",))
    question = draw.choice(("delta", "epsilon"))
    return (kind, *MAKERS[kind](draw, kind, sigma, q, steps, direction), direction, question)


def call(name, arguments):
    told = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return getattr(dplib, name)(**arguments), f"{name}({told})"


def poisson(draw, kind, sigma, q, steps, direction):
    arguments = {"noise_multiplier": sigma, "sampling_probability": q, "steps": steps}
    first = second = whole(draw, 1, 16)
    if kind.endswith("deleted"):
        first, second = draw.randint(0, 16) if draw.random() < 0.5 else first, whole(draw, 1, 16)
        arguments |= {"inserted": first, "deleted": second}
    elif kind.endswith("substitution"):
        arguments |= {"group_size": first, "adjacency": "substitution"}
    else:
        second, arguments["group_size"] = 0, first
    return composed(draw, *call("PoissonDPSGD", arguments), [(truth.poisson(sigma, q, first, second), steps)], direction), "auto"


def fixed(draw, kind, sigma, q, steps, direction):
    size = whole(draw, math.ceil(1 / q), 10**7)
    batch = min(max(1, round(q * size)), size) if draw.random() < 0.97 else size
    adjacency = kind.partition(", ")[2]
    arguments = {"noise_multiplier": sigma, "batch_size": batch, "dataset_size": size, "steps": steps, "adjacency": adjacency}
    if adjacency == "add-remove":
        arguments["group_size"] = group = whole(draw, 1, 16)
        law = truth.hypergeometric(sigma, batch, size, group)
    else:
        law = truth.fixed(sigma, batch, size, adjacency)
    return composed(draw, *call("FixedBatchDPSGD", arguments), [(law, steps)], direction), "auto"


def truncated(draw, kind, sigma, q, steps, direction):
    size = whole(draw, max(2, math.ceil(1 / q)), 10**7)
    mean = size * q
    most = max(1, round(mean + draw.uniform(-1.0, 6.0) * math.sqrt(mean)))
    adjacency = kind.partition(", ")[2]
    arguments = {
        "noise_multiplier": sigma, "sampling_probability": q, "dataset_size": size, "largest_batch": most, "steps": steps,
        "adjacency": adjacency,
    }  # fmt: skip
    law = truth.truncated(sigma, q, size, most, adjacency)
    return composed(draw, *call("TruncatedPoissonDPSGD", arguments), [(law, steps)], direction), "auto"


def last_iterate(draw, kind, sigma, q, steps, direction):
    made = call("LastIterate", {"noise_multiplier": sigma, "sampling_probability": q, "steps": steps})
    return by_search(draw, *made, lambda e, side: truth.last_iterate(sigma, q, steps, e, side), direction), "auto"


def ratios(bins, sigma, known={}):  # noqa: B006
    if (bins, sigma) not in known:
        known.clear()
        known[bins, sigma] = truth.Ratios(bins, sigma)
    return known[bins, sigma]


def balls(draw, kind, sigma, q, steps, direction):
    bins, sigma = whole(draw, 2, 512), spread(draw, 0.4, 8.0)
    law = ratios(bins, sigma)
    if draw.random() < 0.5:
        mechanism = dplib.BallsInBins(matrices.identity(bins), sigma, bins, 1)
        made = mechanism, f"BallsInBins(matrices.identity({bins}), {sigma!r}, {bins}, 1)"
    else:
        made = call("RandomAllocation", {"noise_multiplier": sigma, "rounds": bins, "participations": 1})
    return by_search(draw, *made, law.delta, direction), draw.choice(("auto",) * 8 + ("certificate", "estimate"))


def among_phases(draw, kind, sigma, q, steps, direction):
    bins, noise, steps = whole(draw, 2, 32), spread(draw, 0.6, 4.0), whole(draw, 1, 1000)
    law = ratios(bins, noise)
    if draw.random() < 0.5:
        phase, text = call("PoissonDPSGD", {"noise_multiplier": sigma, "sampling_probability": q, "steps": steps})
        known = truth.poisson(sigma, q, 1, 0)
    else:
        size = whole(draw, math.ceil(1 / q), 10**6)
        batch = max(1, round(q * size))
        arguments = {"noise_multiplier": sigma, "batch_size": batch, "dataset_size": size, "steps": steps, "adjacency": "zero-out"}
        phase, text = call("FixedBatchDPSGD", arguments)
        known = truth.fixed(sigma, batch, size, "zero-out")
    mechanism = dplib.compose([phase, dplib.BallsInBins(matrices.identity(bins), noise, bins, 1)])
    text = f"compose([{text}, BallsInBins(matrices.identity({bins}), {noise!r}, {bins}, 1)])"
    rounds = [(known, steps), (law.round("remove"), 1)]
    swapped = [(truth.add(known), steps), (law.round("add"), 1)]
    return composed(draw, mechanism, text, rounds, direction, swapped), "auto"


def epochs_of_one(draw, kind, sigma, q, steps, direction):
    rounds, epochs, sigma = whole(draw, 2, 128), whole(draw, 2, 50), spread(draw, 0.6, 8.0)
    law = ratios(rounds, sigma)
    made = call("RandomAllocation", {"noise_multiplier": sigma, "rounds": rounds, "participations": 1, "epochs": epochs})
    sides = [[(law.round(side), epochs)] for side in ("remove", "add")]
    return composed(draw, *made, sides[0], direction, sides[1]), "auto"


def all_rounds(draw, kind, sigma, q, steps, direction):
    rounds, epochs = whole(draw, 1, 100), whole(draw, 1, 20)
    made = call("RandomAllocation", {"noise_multiplier": sigma, "rounds": rounds, "participations": rounds, "epochs": epochs})
    ends = lambda e, side: truth.last_iterate(sigma, 1.0, rounds * epochs, e, side)
    return by_search(draw, *made, ends, direction), "auto"


def allocation(draw, kind, sigma, q, steps, direction):
    rounds = draw.choice((3, 3, 4))
    participations, sigma = draw.randint(2, rounds - 1), spread(draw, 0.4 if rounds == 3 else 0.6, 6.0)
    made = call("RandomAllocation", {"noise_multiplier": sigma, "rounds": rounds, "participations": participations})
    modes = truth.subsets(rounds, participations, sigma)
    return by_draws(draw, *made, *modes, direction, sigma), draw.choice(("auto", "bound", "estimate", "certificate"))


def pause(draw, kind, sigma, q, steps, direction):
    rounds = draw.choice((2, 3, 3, 4))
    separation = draw.randint(1, rounds)
    bands = draw.randint(1, separation)
    column = [1.0] + [round(draw.uniform(0.0, 1.0), 3) for _ in range(bands - 1)] + [0.0] * (rounds - bands)
    sigma, p, warm = spread(draw, 0.5 if rounds < 4 else 0.8, 6.0), spread(draw, 0.01, 0.9), draw.random() < 0.5
    matrix = sum(np.diag(np.full(rounds - k, value), -k) for k, value in enumerate(column))
    mechanism = dplib.MinSeparation(matrices.toeplitz(column), sigma, p, separation, warm)
    text = f"MinSeparation(matrices.toeplitz({column}), {sigma!r}, {p!r}, {separation}, {warm})"
    modes = truth.pauses(matrix, p, separation, warm, sigma)
    method = draw.choice(("estimate", "certificate", "renyi", "poisson"))
    if method == "poisson":
        mechanism, text = mechanism.poisson(), text + ".poisson()"
    return by_draws(draw, mechanism, text, *modes, direction, sigma), method


MAKERS = {
    kind: next(make for start, make in {
        "Poisson": poisson, "fixed": fixed, "truncated": truncated, "last": last_iterate, "balls": balls, "bins": among_phases,
        "allocation, 1": epochs_of_one, "allocation, all": all_rounds, "allocation, k": allocation, "pause": pause,
    }.items() if kind.startswith(start))
    for kind in KINDS
}  # fmt: skip


# ------------------------------------------------------------------ asking


def attack(seed, number):
    """The row of one setting."""
    kind, case, method, direction, question = setting(seed, number)
    epsilon = float(f"{case.chosen:.6g}")
    sides = ("remove", "add") if direction == "both" else (direction,)
    ends = [case.ends(epsilon, side) for side in sides]
    lower, upper = (float(max(column)) for column in zip(*ends))
    row = {"number": number, "kind": kind, "method asked": method, "epsilon": epsilon, "true lower": lower, "true upper": upper}
    if upper < LEAST:
        return row | {"call": case.text, "left out": f"delta is below {LEAST:g}"}
    options = {} if method in ("auto", "poisson") else {"method": method}
    if method == "certificate":
        options["failure_probability"] = FAILURE
    ask = lambda name, value: getattr(case.mechanism, name)(value, direction, **options)
    if method == "poisson":
        ask = lambda name, value: getattr(case.mechanism, name)(value)  # its direction is the larger one
    if question == "delta" or method != "auto" or not 0 < lower <= upper < 1:
        row["call"] = f"{case.text}.delta({epsilon!r}, {direction!r}{', ' + repr(method) if options else ''})"
        found, bracket = asked(lambda: ask("delta", epsilon))
        row |= found
        if bracket is not None and (reason := misses(bracket, lower, upper)):
            row["outside"] = reason
    else:
        # Two in three times its upper end, which is the guarantee; else the lower one.
        value, guarantee = (upper, False) if number % 3 == 0 else (lower, True)
        row["call"] = f"{case.text}.epsilon({value!r}, {direction!r})"
        found, bracket = asked(lambda: ask("epsilon", value))
        row |= found
        if bracket is not None and guarantee and bracket.upper < epsilon * (1 - 1e-12):
            row["outside"] = f"upper end of epsilon too small: {bracket.upper!r} at the lower end of delta"
        if bracket is not None and not guarantee and bracket.lower > epsilon * (1 + 1e-12):
            row["outside"] = f"lower end of epsilon too large: {bracket.lower!r} at the upper end of delta"
    if "failed" in row and "samples" in row["failed"]:
        row["refused"] = row.pop("failed")  # too few draws for a certificate, which says so
    return row


def misses(found, lower, upper):
    """Why an answer is on the wrong side of a truth between `lower` and `upper`, or None."""
    if isinstance(found, dplib.Estimate):
        off = max(lower - found.value, found.value - upper, 0.0)
        if found.standard_error == 0:  # no draw above 0, which its method says: only the upper end is an answer
            return f"upper end too small: {found.upper!r} < {lower!r}" if found.upper < lower else None
        told = f"{off:.3g} off, standard error {found.standard_error:.3g}"
        return told if off > ERRORS * found.standard_error + 1e-9 * upper else None
    if found.upper < lower:
        return f"upper end too small: {found.upper!r} < {lower!r}"
    if getattr(found, "lower", 0.0) > upper:
        return f"lower end too large: {found.lower!r} > {upper!r}"
    return None


# --------------------------------------------------------------------- report


def quantile(values, share):
    values = sorted(values)
    return values[math.ceil(share * len(values)) - 1] if values else None


def summaries(rows):
    for kind in KINDS:
        for method in sorted({row["method asked"] for row in rows if row["kind"] == kind}):
            chosen = [row for row in rows if row["kind"] == kind and row["method asked"] == method and "left out" not in row]
            if not chosen:
                continue
            widths, cpu = [row["width"] for row in chosen if "width" in row], [row["cpu"] for row in chosen]
            yield {
                "kind": kind,
                "method": method,
                "settings": len(chosen),
                "outside": sum("outside" in row for row in chosen),
                "refused": sum("refused" in row for row in chosen),
                "failed": sum("failed" in row for row in chosen),
                "true width": statistics.median(1 - row["true lower"] / row["true upper"] for row in chosen),
                "its 99%": quantile([1 - row["true lower"] / row["true upper"] for row in chosen], 0.99),
                "width": statistics.median(widths) if widths else None,
                "99%": quantile(widths, 0.99),
                "widest": max(widths, default=None),
                "median ms": 1e3 * statistics.median(cpu),
                "slowest s": max(cpu),
            }


RANGES = ((LEAST, 1e-10), (1e-10, 1e-8), (1e-8, 1e-6), (1e-6, 1e-4), (1e-4, 1e-2), (1e-2, 1.1))


def by_delta(rows):
    for low, high in RANGES:
        chosen = [row for row in rows if low <= row["true upper"] < high]
        yield {"delta from": low, "settings": len(chosen), "outside": sum("outside" in row for row in chosen)}


def summarise(report, rows):
    left_out = [row for row in rows if "left out" in row]
    rows = [row for row in rows if "left out" not in row]
    report.table("By scheme", list(summaries(rows)))
    report.say("\n  Widths are relative: of the truth, of delta; of the answers, of delta or epsilon.")
    report.table("By delta", list(by_delta(rows)))
    lists = {
        "Widest answers that have both ends proved by one route": sorted(
            (row for row in rows if row.get("width") and row.get("method") != "blocks"), key=lambda row: -row["width"]
        )[:WORST],
        "Slowest": sorted(rows, key=lambda row: -row["cpu"])[:WORST],
        "Refused": [row for row in rows if "refused" in row][:WORST],
    }
    for name, chosen in lists.items():
        if chosen:
            report.table(name, chosen, ["cpu", "width", "method", "true upper", "refused", "call"])
    report.say("")
    sampled = [row for row in rows if row["method asked"] == "estimate"]
    for row in sampled:
        if "outside" in row:
            report.say(f"  off: {row['number']}: {row['call']}: {row['outside']}; its method: {row['method']}")
    bounds = [row for row in rows if row["method asked"] != "estimate"]
    for row in bounds:
        if "outside" in row:
            report.wrong(f"{row['number']}: {row['call']}: truth [{row['true lower']!r}, {row['true upper']!r}]: {row['outside']}")
        elif "failed" in row:
            report.wrong(f"{row['number']}: {row['call']}: {row['failed']}")
    if left_out:
        report.say(f"  Left out, since delta is below {LEAST:g} where epsilon is at least the mean loss: {len(left_out)} settings.")
    report.claim("bounds on the wrong side of the truth", sum("outside" in row for row in bounds), at_most=0)
    report.claim(f"estimates more than {ERRORS:g} standard errors off", sum("outside" in row for row in sampled), at_most=0)
    report.claim("other exceptions", sum("failed" in row for row in rows), at_most=0)
    report.claim("settings refused, share", sum("refused" in row for row in rows) / len(rows), at_most=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-record", action="store_true", help="print only, leave benchmarks/results as it is")
    chosen = parser.parse_args()
    path, known = kept_rows("one_axis_attack", chosen.seed)
    rows = {row["number"]: row for row in known}
    print(f"one_axis_attack: dplib {dplib_state()} at {dplib.__file__}; {len(rows)} settings known, rows in {path}", flush=True)
    count, number = 0, 0
    with path.open("a", encoding="ascii") as file:
        while count < chosen.settings:  # what is left out does not count
            if number not in rows:
                rows[number] = attack(chosen.seed, number)
                file.write(json.dumps(rows[number]) + "\n")
                file.flush()  # whole lines, so that an interrupted run can go on
            count += "left out" not in rows[number]
            number += 1
    rows = [rows[i] for i in range(number)]
    report = Report("one_axis_attack", f"Schemes and adjacencies against code of another kind: {count} settings")
    summarise(report, rows)
    return (1 if report.failed else 0) if chosen.no_record else report.close()


if __name__ == "__main__":
    sys.exit(main())
