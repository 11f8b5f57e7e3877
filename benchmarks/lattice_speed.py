"""Claim: the lattice brackets epsilon to 1e-4 relative within 0.1 s at 2,000 rounds and 0.5 s at a million."""

import sys
from itertools import product

from _common import DELTA, Report, clock, median

from dplib import NoBracketError, accounting, contour, lattice, mixtures

AIM = 1e-4
TARGETS = {2_000: 0.1, 1_000_000: 0.5}  # seconds, both directions together
GRID = {"sigma": (0.5, 1.0, 2.0), "q": (0.01, 0.1), "k": (1, 8, 64)}
REPETITIONS = 3


def points():
    return [dict(zip(GRID, values)) for values in product(*GRID.values())]


def both_directions(p, rounds):
    """What a user calls: the pair is built anew each time. Remove is the larger direction, so one is computed."""
    parts = [(mixtures.binomial(p["k"], p["q"], p["sigma"]), rounds)]
    return accounting.epsilon(parts, DELTA, method="lattice", tolerance=AIM)


def try_both(p, rounds):
    """True if `both_directions` gives a bracket."""
    try:
        return bool(both_directions(p, rounds).upper)
    except NoBracketError:
        return False


def run_workload(rounds):
    """Every point once (for the memory benchmark)."""
    return sum(try_both(p, rounds) for p in points())


def measure(p, rounds, direction):
    """One direction: (bracket, median seconds), the pair built anew each time."""

    def call():
        parts = [(mixtures.binomial(p["k"], p["q"], p["sigma"]), rounds)]
        return lattice.side_epsilon(parts, DELTA, direction, AIM)

    bracket, seconds = clock(call, REPETITIONS)
    return bracket, median(seconds)


def main():
    report = Report("lattice_speed", f"The lattice's bracket, aimed at {AIM:g} relative")
    both_directions({"sigma": 1.0, "q": 0.05, "k": 2}, 3_000)  # warm-up
    rows = []
    for rounds, p in product(TARGETS, points()):
        row = {"T": rounds, **p}
        for direction in ("remove", "add"):
            bracket, seconds = measure(p, rounds, direction)
            row |= {f"{direction} s": seconds, f"{direction} width": bracket.relative_width}
            parts = [(mixtures.binomial(p["k"], p["q"], p["sigma"]), rounds)]
            other = contour.side_epsilon(parts, DELTA, direction)
            if other.upper < bracket.lower or bracket.upper < other.lower:
                report.wrong(f"lattice and contour disagree at {row}, {direction}")
        _, seconds = clock(lambda p=p, rounds=rounds: try_both(p, rounds), REPETITIONS)
        row["both s"] = median(seconds)
        rows.append(row)
    columns = ["T", *GRID, "remove s", "add s", "both s", "remove width", "add width"]
    report.say(
        f"Medians of {REPETITIONS} calls, delta = {DELTA:g}. Every bracket is checked to meet the contour's."
    )
    report.table("Points", rows, columns)
    # What a user gets from method="lattice", whose aim is narrower.
    narrow = []
    for rounds in TARGETS:
        parts = [(mixtures.binomial(8, 0.01, 1.0), rounds)]
        bracket, seconds = clock(lambda parts=parts: accounting.epsilon(parts, DELTA, method="lattice"), 3)
        narrow.append({"T": rounds, "both s": median(seconds), "width": bracket.relative_width})
    report.table('method="lattice" at sigma = 1, q = 0.01, k = 8', narrow)
    report.say("")
    for rounds, seconds in TARGETS.items():
        mine = [r for r in rows if r["T"] == rounds]
        worst = max(mine, key=lambda r: r["both s"])
        met = sum(r["both s"] <= seconds for r in mine)
        name = f"{rounds:,} rounds"
        report.claim(
            f"{name}, median of both directions",
            median([r["both s"] for r in mine]),
            at_most=seconds,
            unit="s",
        )
        report.claim(f"{name}, slowest of both directions", worst["both s"], at_most=seconds, unit="s")
        single = max(max(r["remove s"], r["add s"]) for r in mine)
        report.claim(f"{name}, slowest single direction", single, at_most=seconds, unit="s")
        report.say(
            f"    {met} of {len(mine)} points within {seconds:g} s; slowest: "
            f"sigma = {worst['sigma']:g}, q = {worst['q']:g}, k = {worst['k']}"
        )
    widest = max(max(r["remove width"], r["add width"]) for r in rows)
    report.claim("widest relative bracket", widest, at_most=AIM)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
