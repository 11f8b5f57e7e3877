"""Claim: one Renyi divergence of a sampled Gaussian, at any real order and in either direction, takes 1 ms
in the median, pair built anew; agreement with dp_accounting at integer orders.

The peer takes turns with the library within one run: dp_accounting's RdpAccountant (integer orders are
its exact path; at fractional orders it is an upper bound or infinite).
"""

import logging
import sys
from itertools import product

from _common import DELTA, Report, clock, median

import dplib
from dplib import renyi

TARGET = 1e-3  # seconds
GRID = {
    "sigma": (0.3, 1.0, 5.0, 50.0),
    "q": (1e-5, 1e-3, 0.1, 0.5),
    "order": (1.01, 1.5, 2.0, 10.0, 64.5, 512.0),
}
REPETITIONS = 7
INTEGER_POINTS = [(1.0, 0.01, 2), (1.0, 0.01, 16), (1.0, 0.01, 64), (2.0, 0.1, 32), (0.7, 0.3, 256)]
FRACTIONAL_POINTS = [(2.0, 0.1, 1.1), (1.0, 0.1, 1.1), (1.0, 0.1, 1.5), (0.5, 0.1, 1.5), (1.0, 0.01, 4.5), (2.0, 0.1, 10.5)]


def points():
    return [dict(zip(GRID, values)) for values in product(*GRID.values())]


def peer(sigma, q, order):
    """dp_accounting: one step of Poisson-sampled Gaussian at one order; also infinite."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant([order])
    accountant.compose(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)))
    return float(accountant._rdp[0])


def turns(calls, repetitions):
    """Median seconds of each call, taking turns; and the last results."""
    times, results = [[] for _ in calls], [None] * len(calls)
    for _ in range(repetitions):
        for i, call in enumerate(calls):
            results[i], seconds = clock(call)
            times[i] += seconds
    return results, [median(t) for t in times]


def main():
    report = Report("renyi_speed", "Renyi divergences at real orders", "dp-accounting")
    logging.disable(logging.WARNING)  # the peer warns where its fractional orders do not converge
    renyi.subsampled_gaussian(2.0, 1.0, 0.01)  # warm-up
    rows = []
    for p, direction in product(points(), ("remove", "add")):
        bracket, seconds = clock(
            lambda p=p, d=direction: renyi.subsampled_gaussian(p["order"], p["sigma"], p["q"], d), REPETITIONS
        )
        rows.append({**p, "direction": direction, "ms": 1e3 * median(seconds), "width": bracket.relative_width})
        if not 0 < bracket.lower <= p["order"] / (2 * p["sigma"] ** 2):
            report.wrong(f"{rows[-1]}: {bracket}")
    report.say(f"One order, one direction, the pair built anew; medians of {REPETITIONS} calls.")
    report.table("Points", rows)
    report.say("")
    times = [row["ms"] for row in rows]
    report.claim("median over the grid", median(times), at_most=1e3 * TARGET, unit="ms")
    slowest = max(rows, key=lambda row: row["ms"])
    report.say(
        f"    slowest: {slowest['ms']:.3g} ms at sigma = {slowest['sigma']:g}, q = {slowest['q']:g}, "
        f"order {slowest['order']:g}, {slowest['direction']}"
    )
    report.claim("widest relative bracket", max(row["width"] for row in rows), at_most=1e-10)

    rows = []
    for (sigma, q, order), direction in [*((p, "remove") for p in INTEGER_POINTS), *((p, "both") for p in FRACTIONAL_POINTS)]:
        calls = [
            lambda s=sigma, q=q, o=order, d=direction: renyi.subsampled_gaussian(float(o), s, q, d),
            lambda s=sigma, q=q, o=order: peer(s, q, o),
        ]
        (mine, theirs), seconds = turns(calls, REPETITIONS)
        gap = theirs / mine.upper - 1
        if gap < -1e-9 or isinstance(order, int) and gap > 1e-9:
            report.wrong(f"order {order}, sigma {sigma}, q {q}: the peer says {theirs!r}, the library {mine!r}")
        rows.append(
            {"sigma": sigma, "q": q, "order": order, "direction": direction, "divergence": mine.upper, "peer / ours - 1": gap,
             "ms": 1e3 * seconds[0], "peer ms": 1e3 * seconds[1], "peer time / ours": seconds[1] / seconds[0]}
        )  # fmt: skip
    report.table("Beside dp_accounting: exact at integer orders, an upper bound at fractional ones", rows)
    rows = []
    for rounds, sigma, q in ((2_000, 1.0, 0.01), (60_000, 5.0, 1e-3), (60_000, 1.0, 1e-3)):
        mechanism = dplib.PoissonDPSGD(sigma, q, rounds)
        (bound, bracket), seconds = turns(
            [lambda m=mechanism: m.epsilon(DELTA, method="renyi"), lambda m=mechanism: m.epsilon(DELTA)], 5
        )
        if bound.upper < bracket.upper:
            report.wrong(f"the Renyi bound {bound} is below {bracket}")
        rows.append(
            {"T": rounds, "sigma": sigma, "q": q, "Renyi epsilon": bound.upper, "order": bound.order,
             "epsilon": bracket.upper, "Renyi ms": 1e3 * seconds[0], "contour ms": 1e3 * seconds[1]}
        )  # fmt: skip
    report.table(f"Epsilon at delta = {DELTA:g}, best real order, both directions", rows)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
