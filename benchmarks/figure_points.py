"""Claim: all points of both figures of Ganesh (2024), both directions, take at most 5 s in total.

Noise multiplier 1/2, 1, 2, 4; groups of 1 to 16; 2,000 rounds. Figure 1: Poisson
sampling with probability 0.01. Figure 2: fixed batches of 500 out of 50,000 with
twice the noise, since its sensitivities are twice as large.
"""

import sys

from _common import DELTA, Report, clock, median, values

import dplib

SIGMAS, GROUPS, ROUNDS = (0.5, 1.0, 2.0, 4.0), range(1, 17), 2_000
REPETITIONS = 3


def mechanisms():
    for sigma in SIGMAS:
        for k in GROUPS:
            yield ("poisson", sigma, k), dplib.PoissonDPSGD(sigma, 0.01, ROUNDS, k)
    for sigma in SIGMAS:
        for k in GROUPS:
            yield ("fixed_batch", 2 * sigma, k), dplib.FixedBatchDPSGD(2 * sigma, 500, 50_000, ROUNDS, k)


def workload():
    """{(sampling, sigma, k, direction): bracket}"""
    return {
        (*key, direction): mechanism.epsilon(DELTA, direction)
        for key, mechanism in mechanisms()
        for direction in ("remove", "add")
    }


def run_workload():
    return len(workload())


def main():
    report = Report("figure_points", "All points of both figures of Ganesh (2024)")
    first, first_seconds = clock(workload)
    brackets, seconds = clock(workload, REPETITIONS - 1)
    seconds = first_seconds + seconds
    compared = worst = 0
    for value in values("group_figures"):
        for direction in ("remove", "add"):
            bracket = brackets.get((value["mechanism"], value["sigma"], value["k"], direction))
            if bracket is None:  # the file also holds larger groups
                continue
            truth = value["epsilon_" + direction]
            compared += 1
            worst = max(worst, abs(bracket.upper / truth - 1), abs(bracket.lower / truth - 1))
            if not bracket.lower - 1e-12 * truth <= truth <= bracket.upper + 1e-12 * truth:
                report.wrong(f"{value['id']} {direction}: {truth!r} is outside {bracket!r}")
    report.say(f"{len(brackets)} brackets (points times directions), delta = {DELTA:g}, {ROUNDS} rounds.")
    report.say(f"Seconds of each pass: {', '.join(f'{s:.2f}' for s in seconds)}.")
    report.say(f"{compared} of them compared with committed values: largest relative difference {worst:.1e}.")
    report.say("")
    report.claim("all points, median pass", median(seconds), at_most=5, unit="s")
    report.claim("all points, first pass", seconds[0], at_most=5, unit="s")
    widest = max(bracket.relative_width for bracket in brackets.values())
    report.claim("widest relative bracket", widest, at_most=1e-6)
    report.tables["Brackets"] = [
        dict(zip(("sampling", "sigma", "k", "direction"), key))
        | {"upper": b.upper, "width": b.relative_width}
        for key, b in brackets.items()
    ]
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
