"""Claim: the accountants answer everywhere in the documented domain, fast, in little memory and, where it matters, narrowly.

    python benchmarks/domain.py                              all settings; goes on where an interrupted run stopped
    python benchmarks/domain.py --cases 2000 --practical 500 --slice 0/4 --no-record
    PYTHONPATH=../other python benchmarks/domain.py          measures the library of another checkout

Settings are log-uniform. Wide: noise multiplier .01 to 1e6, sampling probability 1e-9 to 1, 1 to 1e9 rounds, groups of 1 to
1e6, epsilon 1e-6 to 1e4 or delta 1e-300 to 1 - 1e-12 (delta and 1 - delta in turn). Practical: noise multiplier .4 to 20,
sampling probability 1e-5 to .5, 10 to 1e5 rounds, groups of 1 to 16, epsilon .05 to 20 or delta 1e-15 to .1. Every
setting is asked twice: delta(epsilon) and then epsilon at that delta's upper end, or epsilon(delta) and then delta at
that epsilon's upper end; the second answer must come back to the question.
"""

import argparse
import json
import math
import random
import signal
import statistics
import sys
import time

from _common import Report, asked, dplib_state, kept_rows, peak_memory, resident_memory

import dplib

try:
    BASE_MB = resident_memory()
except OSError:  # not Linux
    BASE_MB = 0.0
LIMIT = 10.0  # CPU seconds after which a call is given up
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


def call_text(kind, arguments, question, value, direction):
    given = ", ".join(repr(argument) for argument in arguments)
    return f"{kind}({given}).{question}({value!r}, {direction!r})"


# --------------------------------------------------------------------- asking


def _expire(signum, frame):
    raise TooSlow


def _reset_peak():
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
            refs.write("5")
    except OSError:  # not Linux: the peak is that of the whole run so far
        pass


def ask(kind, arguments, question, value, direction, limit=None):
    """One call: its bracket, or how it failed; CPU seconds, and peak memory above the import in MB. limit: CPU seconds."""
    row = {"call": call_text(kind, arguments, question, value, direction), "question": question, "value": value}
    _reset_peak()
    if limit:
        signal.signal(signal.SIGPROF, _expire)
        signal.setitimer(signal.ITIMER_PROF, limit)
    start = time.process_time()
    try:
        row |= asked(lambda: getattr(getattr(dplib, kind)(*arguments), question)(value, direction))[0]
    except TooSlow:
        row |= {"failed": f"gave up after {limit:g} CPU seconds", "cpu": time.process_time() - start}
    finally:
        if limit:
            signal.setitimer(signal.ITIMER_PROF, 0)
    row["mb"] = peak_memory() - BASE_MB
    return row


def both_ways(case, limit=None):
    """The question and the way back; rows of `ask`, the second with the error of the round trip."""
    first = ask(case["kind"], case["arguments"], case["question"], case["value"], case["direction"], limit)
    rows = [first]
    back = "epsilon" if case["question"] == "delta" else "delta"
    upper = first.get("upper", -1.0)
    if 0 < upper < 1 if back == "epsilon" else 0 <= upper:
        second = ask(case["kind"], case["arguments"], back, upper, case["direction"], limit)
        if "upper" in second:
            second["trip"] = abs(second["upper"] - case["value"]) / case["value"]
            # The first upper end allows no more than was asked, so the lower end on the way back cannot lie above that.
            second["contradiction"] = second["lower"] > case["value"]
            # delta at epsilon = 0 is the total variation: it may be below the delta that was asked for.
            second["trip exact"] = not (back == "delta" and upper == 0)
        rows.append(second)
    return [{"domain": case["domain"], "number": case["number"], "direction": case["direction"]} | row for row in rows]


# --------------------------------------------------------------------- report


def _quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else float("nan")


def delta_of(row):
    return row["value"] if row["question"] == "epsilon" else row["upper"]


def in_range(row):
    """1e-15 <= delta <= 1 - 1e-6: where the width of the bracket has a target."""
    return "upper" in row and 1e-15 <= delta_of(row) <= 1 - 1e-6


RANGES = (
    ("below 1e-100", 0.0, 1e-100),
    ("1e-100 to 1e-15", 1e-100, 1e-15),
    ("1e-15 to 1e-3", 1e-15, 1e-3),
    ("1e-3 to 1 - 1e-6", 1e-3, 1 - 1e-6),
    ("above 1 - 1e-6", 1 - 1e-6, 2.0),
)


def times(rows):
    for domain in ("practical", "wide"):
        mine = [row for row in rows if row["domain"] == domain]
        for kind in ("all", *KINDS):
            chosen = [row for row in mine if kind == "all" or row["call"].startswith(kind)]
            if not chosen:
                continue
            cpu = [row["cpu"] for row in chosen]
            yield {
                "domain": domain,
                "mechanism": kind,
                "calls": len(chosen),
                "refused": sum("refused" in row for row in chosen),
                "failed": sum("failed" in row for row in chosen),
                "median ms": 1e3 * statistics.median(cpu),
                "90% ms": 1e3 * _quantile(cpu, 0.9),
                "99% ms": 1e3 * _quantile(cpu, 0.99),
                "99.9% ms": 1e3 * _quantile(cpu, 0.999),
                "slowest s": max(cpu),
                "over 1 s": sum(second > 1 for second in cpu),
                "peak MB": max(row["mb"] for row in chosen),
            }


def widths(rows):
    for domain in ("practical", "wide"):
        for label, low, high in RANGES:
            chosen = [r["width"] for r in rows if r["domain"] == domain and "upper" in r and low <= delta_of(r) < high]
            if chosen:
                yield {
                    "domain": domain,
                    "delta": label,
                    "answers": len(chosen),
                    "median": statistics.median(chosen),
                    "90%": _quantile(chosen, 0.9),
                    "99%": _quantile(chosen, 0.99),
                    "largest": max(chosen),
                    "above 1e-6": sum(width > 1e-6 for width in chosen),
                    "above 1e-3": sum(width > 1e-3 for width in chosen),
                }


def methods(rows):
    names = {row["method"] for row in rows if "upper" in row}
    for name in sorted(names):
        chosen = [row for row in rows if row.get("method") == name]
        yield {
            "method": name,
            "practical": sum(row["domain"] == "practical" for row in chosen),
            "wide": sum(row["domain"] == "wide" for row in chosen),
            "median ms": 1e3 * statistics.median(row["cpu"] for row in chosen),
            "median width": statistics.median(row["width"] for row in chosen),
        }


def trips(rows):
    """The ways from epsilon to the upper end of delta and back; inner: with delta between 1e-15 and 1 - 1e-6."""
    before = {}
    for row in rows:
        key = (row["domain"], row["number"])
        if "trip" in row and row["question"] == "epsilon" and key in before:
            yield row | {"inner": in_range(row) and in_range(before[key])}
        elif "upper" in row:
            before[key] = row


def summarise(report, rows, worst):
    report.table("CPU seconds and peak memory above the import, by call", list(times(rows)))
    report.table("Relative width of the brackets, by delta", list(widths(rows)))
    report.table("Methods", list(methods(rows)))
    there_and_back = list(trips(rows))
    inner = [row for row in there_and_back if row["inner"]]
    off = [row for row in inner if row["trip"] > 1e-6]
    if inner:
        report.say(
            f"\n  Ways to delta and back to epsilon, with delta in 1e-15 to 1 - 1e-6: {len(inner)}; off by more than 1e-6:"
            f" {len(off)}, of these {sum(row['domain'] == 'practical' for row in off)} in the practical domain."
        )
    lists = {
        "Refused or failed": [row for row in rows if "refused" in row or "failed" in row],
        "Slowest": sorted(rows, key=lambda row: -row["cpu"])[:worst],
        "Slowest, practical": sorted((r for r in rows if r["domain"] == "practical"), key=lambda r: -r["cpu"])[:worst],
        "Largest memory": sorted(rows, key=lambda row: -row["mb"])[:worst],
        "Widest, practical, delta 1e-15 to 1 - 1e-6": sorted(
            (r for r in rows if r["domain"] == "practical" and in_range(r)), key=lambda r: -r["width"]
        )[:worst],
        "Widest, wide, delta 1e-15 to 1 - 1e-6": sorted(
            (r for r in rows if r["domain"] == "wide" and in_range(r)), key=lambda r: -r["width"]
        )[:worst],
        "Round trips furthest off": sorted(off, key=lambda row: -row["trip"])[:worst],
    }
    for name, chosen in lists.items():
        if not chosen:
            continue
        shown = [
            {
                "cpu s": row["cpu"],
                "MB": row["mb"],
                "width": row.get("width"),
                "trip": row.get("trip"),
                "method": row.get("method") or row.get("refused", row.get("failed", ""))[:60],
                "call": row["call"],
            }
            for row in chosen[: max(worst, 40)]
        ]
        report.table(f"{name} ({len(chosen)})" if name.startswith("Refused") else name, shown)
    report.say("")
    practical = [row for row in rows if row["domain"] == "practical"]
    report.claim("calls refused", sum("refused" in row for row in rows), at_most=0)
    failed = [row for row in rows if "failed" in row]
    report.claim("other exceptions, and calls given up", len(failed), at_most=0)
    cpu = [row["cpu"] for row in practical]
    if practical:
        report.claim("practical domain, median", statistics.median(cpu), at_most=0.01, unit="s")
        report.claim("practical domain, 99% of calls", _quantile(cpu, 0.99), at_most=0.3, unit="s")
        report.claim("practical domain, slowest", max(cpu), at_most=1.0, unit="s")
        width = [row["width"] for row in practical if in_range(row)]
        report.claim("practical domain, median relative width", statistics.median(width), at_most=1e-6)
        report.claim("practical domain, largest relative width", max(width), at_most=1e-3)
    report.claim("peak memory above the import", max(row["mb"] for row in rows), at_most=300, unit="MB")
    share = statistics.fmean(row["trip"] > 1e-6 for row in inner) if inner else 0.0
    report.claim("ways back off by more than 1e-6, share", share, at_most=0)
    for row in rows:
        if row.get("contradiction"):
            report.wrong(f"{row['call']} has the lower end {row['lower']!r}: above the question that led to it")
    for row in failed:
        if not row["failed"].startswith("gave up"):
            report.wrong(f"{row['call']}: {row['failed']}")


# ------------------------------------------------------------------------ run


def parsed(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000, help="settings of the wide domain")
    parser.add_argument("--practical", type=int, default=6_000, help="settings of the practical domain")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slice", default="0/1", help="I/N: only the settings whose number is I modulo N")
    parser.add_argument("--worst", type=int, default=12, help="rows in the tables of the worst")
    parser.add_argument("--no-record", action="store_true", help="print only, leave benchmarks/results as it is")
    return parser.parse_args(arguments)


def main():
    chosen = parsed()
    part, of = (int(number) for number in chosen.slice.split("/"))
    path, rows = kept_rows("domain", chosen.seed, part, of)
    done = {(row["domain"], row["number"]) for row in rows}
    print(f"domain: dplib {dplib_state()} at {dplib.__file__}; {len(done)} settings known, rows in {path}", flush=True)
    dplib.PoissonDPSGD(1.0, 0.01, 100).epsilon(1e-6)  # loads what is loaded late
    plan = [("practical", n) for n in range(chosen.practical)] + [("wide", n) for n in range(chosen.cases)]
    plan = [item for item in plan if item[1] % of == part]
    with path.open("a", encoding="ascii") as file:
        for domain, number in plan:
            if (domain, number) in done:
                continue
            new = both_ways(setting(chosen.seed, domain, number), LIMIT)
            rows += new
            file.write("".join(json.dumps(row) + "\n" for row in new))
            file.flush()  # whole lines, so that an interrupted run can go on
            if number % 500 == 0:
                print(f"domain: {domain} {number}, {time.process_time():.0f} CPU seconds", flush=True)
    wanted = set(plan)
    rows = [row for row in rows if (row["domain"], row["number"]) in wanted]
    report = Report("domain", f"Every corner of the documented domain: {len(plan)} settings, {len(rows)} calls")
    summarise(report, rows, chosen.worst)
    return (1 if report.failed else 0) if chosen.no_record else report.close()


if __name__ == "__main__":
    sys.exit(main())
