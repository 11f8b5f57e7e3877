"""Claim: the accountants answer everywhere in the documented domain, fast, in little memory and, where it matters, narrowly.

    python benchmarks/domain.py                              all settings; goes on where an interrupted run stopped
    python benchmarks/domain.py --cases 2000 --no-record
    PYTHONPATH=../other python benchmarks/domain.py          measures the library of another checkout

Settings are log-uniform. Wide: noise multiplier .01 to 1e6, sampling probability 1e-9 to 1, 1 to 1e9 rounds, groups of 1 to
1e6, epsilon 1e-6 to 1e4 or delta 1e-300 to 1 - 1e-12 (delta and 1 - delta in turn). Practical: noise multiplier .4 to 20,
sampling probability 1e-5 to .5, 10 to 1e5 rounds, groups of 1 to 16, epsilon .05 to 20 or delta 1e-15 to .1. Every
setting is asked twice: delta(epsilon) and then epsilon at that delta's upper end, or epsilon(delta) and then delta at
that epsilon's upper end, where that end lies in the domain; the second answer must come back to the question.
"""

import argparse
import ctypes
import itertools
import json
import math
import random
import signal
import statistics
import sys
import time

from _common import Report, asked, dplib_state, kept_rows, peak_memory, resident_memory

import dplib

LIMIT = 10.0  # CPU seconds after which a call is given up
WORST = 12  # rows in the tables of the worst
KINDS = ("PoissonDPSGD", "FixedBatchDPSGD", "LastIterate")
DIRECTIONS = ("remove", "add", "both")


class TooSlow(BaseException):
    """Not an Exception, so that no handler of the library takes it."""


# ------------------------------------------------------------------ settings


def _spread(draw, low, high):
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def _whole(draw, low, high):
    return min(max(round(_spread(draw, low, high)), low), high)


WIDE = {"sigma": (0.01, 1e6), "q": (1e-9, 1.0), "T": (1, 10**9), "k": (1, 10**6), "epsilon": (1e-6, 1e4)}
PRACTICAL = {"sigma": (0.4, 20.0), "q": (1e-5, 0.5), "T": (10, 10**5), "k": (1, 16), "epsilon": (0.05, 20.0)}


def setting(seed, domain, number):
    """The setting of that number: {kind, arguments, question, value, direction}; the same in every run."""
    draw = random.Random(f"{seed} {domain} {number}")
    ranges = WIDE if domain == "wide" else PRACTICAL
    kind = KINDS[number % len(KINDS)]
    sigma, q = _spread(draw, *ranges["sigma"]), min(_spread(draw, *ranges["q"]), ranges["q"][1])
    steps = _whole(draw, *ranges["T"])
    group = _whole(draw, *ranges["k"])
    if kind == "PoissonDPSGD":
        arguments = [sigma, q, steps, group]
    elif kind == "FixedBatchDPSGD":
        size = _whole(draw, math.ceil(1 / q), 10**10)
        arguments = [sigma, max(1, round(q * size)), size, steps, group]
    else:
        arguments = [sigma, q, min(steps, 10**8)]
    question = "delta" if (number // len(KINDS)) % 2 else "epsilon"
    if question == "delta":
        value = _spread(draw, *ranges["epsilon"])
    elif domain == "practical":
        value = _spread(draw, 1e-15, 0.1)
    elif draw.random() < 0.75:
        value = _spread(draw, 1e-300, 0.5)
    else:
        value = 1 - _spread(draw, 1e-12, 0.5)
    return {
        "domain": domain,
        "number": number,
        "kind": kind,
        "arguments": arguments,
        "question": question,
        "value": value,
        "direction": draw.choice(DIRECTIONS),
    }


# --------------------------------------------------------------------- asking


def _expire(signum, frame):
    raise TooSlow


def _reset_peak():
    """Memory in MB that is held before a call; its peak starts anew."""
    try:
        # What the allocator keeps of earlier calls is not this one's.
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
            refs.write("5")
        return resident_memory()
    except OSError:  # not Linux: the peak is that of the whole run so far
        return 0.0


def ask(kind, arguments, question, value, direction):
    """One call: its bracket, or how it failed; CPU seconds, and the memory in MB that it takes at its peak."""
    given = ", ".join(map(repr, arguments))
    row = {"call": f"{kind}({given}).{question}({value!r}, {direction!r})", "question": question, "value": value}
    before = _reset_peak()
    signal.signal(signal.SIGPROF, _expire)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    start = time.process_time()
    try:
        row |= asked(lambda: getattr(getattr(dplib, kind)(*arguments), question)(value, direction))[0]
    except TooSlow:
        row |= {"failed": f"gave up after {LIMIT:g} CPU seconds", "cpu": time.process_time() - start}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    row["mb"] = peak_memory() - before
    return row


def both_ways(case):
    """The question and the way back; rows of `ask`, the second with the error of the round trip."""
    first = ask(case["kind"], case["arguments"], case["question"], case["value"], case["direction"])
    rows = [first]
    back = "epsilon" if case["question"] == "delta" else "delta"
    upper = first.get("upper", -1.0)
    if 1e-300 <= upper <= 1 - 1e-12 if back == "epsilon" else 0 <= upper <= 1e4:
        second = ask(case["kind"], case["arguments"], back, upper, case["direction"])
        if "upper" in second:
            second["trip"] = abs(second["upper"] - case["value"]) / case["value"]
            # The first upper end allows no more than was asked, so the lower end on the way back cannot lie above that.
            second["contradiction"] = second["lower"] > case["value"]
        rows.append(second)
    return [{"domain": case["domain"], "number": case["number"], "direction": case["direction"]} | row for row in rows]


# --------------------------------------------------------------------- report


def _quantile(values, share):
    return sorted(values)[math.ceil(share * len(values)) - 1]


def in_range(row):
    """1e-15 <= delta <= 1 - 1e-6: where the width of the bracket has a target."""
    return "upper" in row and 1e-15 <= (row["value"] if row["question"] == "epsilon" else row["upper"]) <= 1 - 1e-6


def costs(rows):
    for domain, kind in itertools.product(("practical", "wide"), KINDS):
        chosen = [row for row in rows if row["domain"] == domain and row["call"].startswith(kind)]
        if not chosen:
            continue
        cpu, width = [row["cpu"] for row in chosen], [row["width"] for row in chosen if in_range(row)]
        yield {
            "domain": domain,
            "mechanism": kind,
            "calls": len(chosen),
            "median ms": 1e3 * statistics.median(cpu),
            "99% ms": 1e3 * _quantile(cpu, 0.99),
            "slowest s": max(cpu),
            "peak MB": max(row["mb"] for row in chosen),
            "median width": statistics.median(width),
            "widest": max(width),
        }


def there_and_back(rows):
    """The ways from epsilon to the upper end of delta and back, with delta between 1e-15 and 1 - 1e-6."""
    for before, row in itertools.pairwise(rows):
        if "trip" in row and row["question"] == "epsilon" and in_range(row) and in_range(before):
            yield row


def summarise(report, rows):
    report.table("CPU seconds, peak memory of a call, relative widths for delta in 1e-15 to 1 - 1e-6", list(costs(rows)))
    practical = [row for row in rows if row["domain"] == "practical"]
    narrow, trips = [row for row in practical if in_range(row)], list(there_and_back(rows))
    failed = [row for row in rows if "failed" in row]
    lists = {
        "Refused or failed": [row for row in rows if "refused" in row] + failed,
        "Slowest": sorted(rows, key=lambda row: -row["cpu"])[:WORST],
        "Largest memory": sorted(rows, key=lambda row: -row["mb"])[:WORST],
        "Widest, practical": sorted(narrow, key=lambda row: -row["width"])[:WORST],
        "Round trips furthest off": sorted(trips, key=lambda row: -row["trip"])[:WORST],
    }
    for name, chosen in lists.items():
        if chosen:
            report.table(name, chosen, ["cpu", "mb", "width", "trip", "method", "refused", "failed", "call"])
    report.say("")
    report.claim("calls refused", sum("refused" in row for row in rows), at_most=0)
    report.claim("other exceptions, and calls given up", len(failed), at_most=0)
    cpu, width = [row["cpu"] for row in practical], [row["width"] for row in narrow]
    report.claim("practical domain, median", statistics.median(cpu), at_most=0.01, unit="s")
    report.claim("practical domain, 99% of calls", _quantile(cpu, 0.99), at_most=0.3, unit="s")
    report.claim("practical domain, slowest", max(cpu), at_most=1.0, unit="s")
    report.claim("practical domain, median relative width", statistics.median(width), at_most=1e-6)
    report.claim("practical domain, largest relative width", max(width), at_most=1e-3)
    report.claim("practical domain, peak memory above the import", max(row["mb"] for row in practical), at_most=300, unit="MB")
    report.claim("whole domain, peak memory above the import", max(row["mb"] for row in rows), at_most=300, unit="MB")
    back = [row["trip"] for row in trips if row["domain"] == "practical"]
    report.claim("practical domain, ways back: furthest off", max(back), at_most=1e-3)
    report.claim("practical domain, ways back off by more than 1e-6, share", statistics.fmean(trip > 1e-6 for trip in back), at_most=0)
    for row in rows:
        if row.get("contradiction"):
            report.wrong(f"{row['call']} has the lower end {row['lower']!r}: above the question that led to it")
        if not row.get("failed", "gave up").startswith("gave up"):
            report.wrong(f"{row['call']}: {row['failed']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000, help="settings: a third practical, two thirds wide")
    parser.add_argument("--wide", type=int, help="wide settings, where they are not to be two thirds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-record", action="store_true", help="print only, leave benchmarks/results as it is")
    chosen = parser.parse_args()
    path, known = kept_rows("domain", chosen.seed)
    known = {key: list(rows) for key, rows in itertools.groupby(known, lambda row: (row["domain"], row["number"]))}
    print(f"domain: dplib {dplib_state()} at {dplib.__file__}; {len(known)} settings known, rows in {path}", flush=True)
    dplib.PoissonDPSGD(1.0, 0.01, 100).epsilon(1e-6)  # loads what is loaded late
    practical = chosen.cases // 3
    wide = chosen.cases - practical if chosen.wide is None else chosen.wide
    plan = [("practical", n) for n in range(practical)] + [("wide", n) for n in range(wide)]
    with path.open("a", encoding="ascii") as file:
        for key in plan:
            if key not in known:
                known[key] = both_ways(setting(chosen.seed, *key))
                file.write("".join(json.dumps(row) + "\n" for row in known[key]))
                file.flush()  # whole lines, so that an interrupted run can go on
    rows = [row for key in plan for row in known[key]]
    report = Report("domain", f"Every corner of the documented domain: {len(plan)} settings, {len(rows)} calls")
    summarise(report, rows)
    return report.failed if chosen.no_record else report.close()


if __name__ == "__main__":
    sys.exit(main())
