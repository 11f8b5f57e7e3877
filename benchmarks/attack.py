"""Claim: at random settings of the domain every bracket contains the value that code sharing nothing with dplib computes.

    python benchmarks/attack.py                            all of tests/data/attack.json; goes on where it stopped
    PYTHONPATH=../other python benchmarks/attack.py        attacks the library of another checkout

Where the values and their error bars come from says tests/oracle/README.md. Each is asked twice: delta at its epsilon, and
epsilon at the float next to its delta, for which the value's own epsilon must lie in the bracket, up to what the error bar
and that rounding can move it.
"""

import argparse
import json
import math
import statistics
import sys

from _common import Report, asked, dplib_state, kept_rows, values

import dplib
from dplib import accounting

SMALLEST = 5e-324


def log_ends(bracket, small):
    """Logs of a bracket of delta, or of 1 - delta: (lower, upper)."""
    ends = (bracket.lower, bracket.upper) if small == "delta" else (1.0 - bracket.upper, 1.0 - bracket.lower)
    return tuple(math.log(end) if end > 0 else -math.inf for end in ends)


def delta_misses(entry, bracket):
    """Why the bracket of delta cannot contain the value, or None."""
    log, error = float(entry["log"]), entry["error"]
    if log == -math.inf:
        return "above a delta of zero" if bracket.lower > 0 else None
    # 1 - delta of a float is exact, the float itself is rounded; a logarithm is rounded to 1e-16 of itself.
    rounding = 4.5e-16 * abs(log) + 4.5e-16
    lower, upper = log_ends(bracket, entry["small"])
    room = error + rounding
    if entry["small"] == "miss":
        # Of a delta within 1e-16 of 1 the float says no more than that.
        slack = 1.2e-16
        value = math.exp(log) if log > -740 else 0.0
        if 1.0 - bracket.upper > value * (1 + room) + slack:
            return f"upper end too small: 1 - upper = {1.0 - bracket.upper!r}, 1 - delta = {value!r}"
        if 1.0 - bracket.lower < value * (1 - room) - slack:
            return f"lower end too large: 1 - lower = {1.0 - bracket.lower!r}, 1 - delta = {value!r}"
        return None
    if upper < log - room and bracket.upper > SMALLEST:
        return f"upper end too small by {log - upper:.3g} in log delta (error bar {error:.1e})"
    if lower > log + room:
        return f"lower end too large by {lower - log:.3g} in log delta (error bar {error:.1e})"
    if bracket.upper <= SMALLEST and log > math.log(SMALLEST) + 1:
        return "upper end too small: the smallest float"
    return None


def epsilon_question(entry):
    """(delta as a float, how far the value's epsilon may be off), or None where a float cannot pose the question."""
    log = float(entry["log"])
    if log == -math.inf or not entry["slope"] > 0:
        return None
    if entry["small"] == "delta":
        if log < -690:
            return None
        # The logarithm as a float, its exponential, the rounding: relative errors of delta.
        return math.exp(log), (entry["error"] + 4.5e-16 * (1 + abs(log))) / entry["slope"]
    if log < -32:
        return None
    miss = math.exp(log)
    delta = 1.0 - miss
    return delta, (entry["error"] + 4.5e-16 * (1 + abs(log)) + 1.2e-16 / miss) / entry["slope"]


def epsilon_misses(entry, bracket, room):
    """Why the bracket of epsilon cannot contain the value's epsilon, or None; the curve is convex: 2 is for its slope's change."""
    room = 2 * room + 4.5e-16 * entry["epsilon"]
    if bracket.lower > entry["epsilon"] + room:
        return f"lower end too large by {bracket.lower - entry['epsilon']:.3g} (allowed {room:.1e})"
    if bracket.upper < entry["epsilon"] - room:
        return f"upper end too small by {entry['epsilon'] - bracket.upper:.3g} (allowed {room:.1e})"
    return None


def ask(call, judge):
    row, bracket = asked(call)
    if bracket is not None and (reason := judge(bracket)):
        row["outside"] = reason
    return row


def mechanism(entry):
    return getattr(dplib, entry["kind"])(*entry["arguments"])


def call_text(entry, question, value):
    arguments = ", ".join(repr(argument) for argument in entry["arguments"])
    return f"{entry['kind']}({arguments}).{question}({value!r}, {entry['direction']!r})"


def attack(entry):
    """Rows for both questions of one value."""
    log = float(entry["log"])
    log_delta = log if entry["small"] == "delta" else math.log1p(-math.exp(log))
    common = {"id": entry["id"], "value": entry["log"], "domain": entry["domain"], "route": entry["route"], "log delta": log_delta}
    common["log miss"] = log if entry["small"] == "miss" else math.log1p(-math.exp(log))
    run = lambda: mechanism(entry).delta(entry["epsilon"], entry["direction"])
    rows = [common | {"call": call_text(entry, "delta", entry["epsilon"])} | ask(run, lambda b: delta_misses(entry, b))]
    if entry["small"] == "delta" and -1e4 < log < -600:
        # Floats of delta say little here: its logarithm.
        room = entry["error"] + 4.5e-16 * abs(log)
        judge = lambda b: None if b.lower - room <= log <= b.upper + room else f"log delta {log!r} outside"
        run = lambda: accounting.log_delta(mechanism(entry).composition(), entry["epsilon"], entry["direction"])
        row = ask(run, judge)
        if "width" in row:
            row["width"] = -math.expm1(row["lower"] - row["upper"])
        if "refused" not in row:  # there is no promise of a logarithm where the answer is a wide bracket
            rows.append(common | {"call": "log of " + call_text(entry, "delta", entry["epsilon"])} | row)
    question = epsilon_question(entry)
    if question and 0 < question[0] < 1:
        delta, room = question
        run = lambda: mechanism(entry).epsilon(delta, entry["direction"])
        rows.append(common | {"call": call_text(entry, "epsilon", delta)} | ask(run, lambda b: epsilon_misses(entry, b, room)))
    return rows


# --------------------------------------------------------------------- report

RANGES = (
    ("zero, or below 1e-300", -math.inf, math.log(1e-300)),
    ("1e-300 to 1e-15", math.log(1e-300), math.log(1e-15)),
    ("1e-15 to 1e-3", math.log(1e-15), math.log(1e-3)),
    ("1e-3 to 1 - 1e-6", math.log(1e-3), math.log1p(-1e-6)),
    ("above 1 - 1e-6", math.log1p(-1e-6), 1.0),
)


def summaries(rows):
    for domain in ("practical", "wide"):
        for label, low, high in RANGES:
            chosen = [r for r in rows if r["domain"] == domain and low <= r["log delta"] < high]
            if not chosen:
                continue
            widths = sorted(r["width"] for r in chosen if "width" in r)
            cpu = [r["cpu"] for r in chosen]
            yield {
                "domain": domain,
                "delta": label,
                "calls": len(chosen),
                "outside": sum("outside" in r for r in chosen),
                "refused": sum("refused" in r for r in chosen),
                "failed": sum("failed" in r for r in chosen),
                "median width": statistics.median(widths) if widths else None,
                "99% width": widths[math.ceil(0.99 * len(widths)) - 1] if widths else None,
                "largest": widths[-1] if widths else None,
                "median ms": 1e3 * statistics.median(cpu),
                "slowest s": max(cpu),
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="only every so many values")
    parser.add_argument("--no-record", action="store_true", help="print only, leave benchmarks/results as it is")
    chosen = parser.parse_args()
    path, known = kept_rows("attack")
    entries = values("attack")[:: chosen.every]
    current = {entry["id"]: entry["log"] for entry in entries}
    known = [row for row in known if current.get(row["id"]) == row.get("value")]
    done = {row["id"] for row in known}
    print(f"attack: dplib {dplib_state()} at {dplib.__file__}; {len(done)} values known, rows in {path}", flush=True)
    with path.open("a", encoding="ascii") as file:
        for entry in entries:
            if entry["id"] not in done:
                new = attack(entry)
                known += new
                file.write("".join(json.dumps(row) + "\n" for row in new))
                file.flush()
    rows = known
    report = Report("attack", f"Values by other code against the brackets: {len(entries)} settings, {len(rows)} calls")
    report.table("By domain and delta", list(summaries(rows)))
    report.say("")
    for row in rows:
        if "outside" in row:
            report.wrong(f"{row['id']}: {row['call']}: [{row['lower']!r}, {row['upper']!r}], {row['method']}: {row['outside']}")
        elif "failed" in row:
            report.wrong(f"{row['id']}: {row['call']}: {row['failed']}")
        elif "refused" in row:
            report.say(f"  refused: {row['id']}: {row['call']}: {row['refused']}")
    report.claim("brackets that miss the value", sum("outside" in r for r in rows), at_most=0)
    report.claim("calls refused", sum("refused" in r for r in rows), at_most=0)
    report.claim("other exceptions", sum("failed" in r for r in rows), at_most=0)
    return (1 if report.failed else 0) if chosen.no_record else report.close()


if __name__ == "__main__":
    sys.exit(main())
