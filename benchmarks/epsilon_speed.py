"""Claim: epsilon in both directions takes 10 ms in the median, 1,000 times less than dp_accounting's
mixture path and 100 times less than its closed-form path for one record.

The peer and the library take turns within one run. Mixture path: PLDAccountant with
MixtureOfGaussiansDpEvent; closed-form path: PLDAccountant with
PoissonSampledDpEvent(q, GaussianDpEvent). Both at their default discretisation.
"""

import sys
from itertools import product

from _common import DELTA, Report, clock, median

import dplib

GRID = {
    "sigma": (0.5, 1.0, 2.0, 4.0),
    "q": (0.01, 0.1, 0.5),
    "k": (1, 8, 64),
    "T": (2_000, 100_000, 1_000_000),
}
REPETITIONS = 5
# sigma = 1, q = 0.01: (k, T, turns of the peer)
MIXTURE_POINTS = [(1, 2_000, 2), (8, 2_000, 1)]
CLOSED_POINTS = [(1, 2_000, 5), (1, 100_000, 5), (1, 1_000_000, 5)]


def both_directions(sigma, q, k, rounds):
    """What a user calls: the pair is built anew each time."""
    return dplib.PoissonDPSGD(sigma, q, rounds, k).epsilon(DELTA)


def points():
    return [dict(zip(GRID, values)) for values in product(*GRID.values())]


def run_workload():
    """Every point once (for the memory benchmark)."""
    return len([both_directions(p["sigma"], p["q"], p["k"], p["T"]) for p in points()])


def peer_epsilon(k, rounds, mixture_path):
    import dp_accounting
    import numpy as np
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant
    from scipy import stats

    if mixture_path:
        event = dp_event.MixtureOfGaussiansDpEvent(
            1.0, list(range(k + 1)), [float(p) for p in stats.binom.pmf(np.arange(k + 1), k, 0.01)]
        )
    else:
        event = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    accountant = PLDAccountant()
    accountant.compose(event, rounds)
    return accountant.get_epsilon(DELTA)


def duel(k, rounds, turns, mixture_path):
    """Turn by turn: the library 20 times, the peer once; medians of both."""
    ours, theirs = [], []
    for _ in range(turns):
        bracket, seconds = clock(lambda: both_directions(1.0, 0.01, k, rounds), 20)
        ours += seconds
        reported, seconds = clock(lambda: peer_epsilon(k, rounds, mixture_path))
        theirs += seconds
    bracket, seconds = clock(lambda: both_directions(1.0, 0.01, k, rounds), 20)
    ours += seconds
    return {
        "k": k,
        "T": rounds,
        "dplib ms": 1e3 * median(ours),
        "peer s": median(theirs),
        "peer runs": turns,
        "ratio": median(theirs) / median(ours),
        "dplib upper": bracket.upper,
        "dplib width": bracket.relative_width,
        "peer epsilon": float(reported),
        "peer minus upper": float(reported) - bracket.upper,
    }


def main():
    report = Report("epsilon_speed", "Epsilon in both directions", "dp-accounting")
    rows = []
    for p in points():
        bracket, seconds = clock(lambda p=p: both_directions(p["sigma"], p["q"], p["k"], p["T"]), REPETITIONS)
        rows.append(
            p
            | {
                "ms": 1e3 * median(seconds),
                "fastest ms": 1e3 * min(seconds),
                "slowest ms": 1e3 * max(seconds),
                "epsilon": bracket.upper,
                "width": bracket.relative_width,
                "method": bracket.method,
            }
        )
    times = sorted(r["ms"] for r in rows)
    report.say(f"Grid of {len(rows)} points, delta = {DELTA:g}; each the median of {REPETITIONS} calls.")
    report.table("Slowest points", sorted(rows, key=lambda r: -r["ms"])[:10])
    report.tables["Grid"] = rows
    report.say(f"\n  ninth decile of the grid: {times[int(0.9 * len(times))]:.2f} ms")

    closed = [duel(k, rounds, turns, False) for k, rounds, turns in CLOSED_POINTS]
    report.table("Against dp_accounting, closed-form path (sigma = 1, q = 0.01)", closed)
    mixed = [duel(k, rounds, turns, True) for k, rounds, turns in MIXTURE_POINTS]
    report.table("Against dp_accounting, mixture path (sigma = 1, q = 0.01)", mixed)
    report.say("")
    report.claim("median over the grid", median(times), at_most=10, unit="ms")
    report.say(f"  slowest point of the grid: {times[-1]:.1f} ms (no target)")
    report.claim("widest relative bracket of the grid", max(r["width"] for r in rows), at_most=1e-6)
    report.claim("smallest ratio to the mixture path", min(r["ratio"] for r in mixed), at_least=1000)
    report.claim("smallest ratio to the closed-form path", min(r["ratio"] for r in closed), at_least=100)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
