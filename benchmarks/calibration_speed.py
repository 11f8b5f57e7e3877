"""Claim: the noise multiplier that meets a target is found within 50 ms."""

import contextlib
import dataclasses
import sys
from functools import partial

from _common import Report, clock, median

import dplib

REPETITIONS = 7
# (mechanism with the first guess, epsilon, delta)
TARGETS = {
    "k=1, T=2000": (dplib.PoissonDPSGD(1.0, 0.01, 2_000), 2.0, 1e-6),
    "k=8, T=2000": (dplib.PoissonDPSGD(1.0, 0.01, 2_000, 8), 8.0, 1e-6),
    "k=16, T=1e6": (dplib.PoissonDPSGD(1.0, 0.01, 1_000_000, 16), 3.0, 1e-6),
    "k=1, T=1e5, delta=1e-12": (dplib.PoissonDPSGD(1.0, 0.001, 100_000), 1.0, 1e-12),
    "fixed batch, k=4, T=2000": (dplib.FixedBatchDPSGD(2.0, 500, 50_000, 2_000, 4), 4.0, 1e-6),
}


def run_workload():
    """Every target once, for the memory benchmark: how many were answered."""
    answered = 0
    for mechanism, epsilon, delta in TARGETS.values():
        with contextlib.suppress(dplib.NoBracketError):
            dplib.calibrate(mechanism, epsilon=epsilon, delta=delta)
            answered += 1
    return answered


def main():
    report = Report("calibration_speed", "Calibration of the noise multiplier")
    dplib.calibrate(dplib.PoissonDPSGD(1.0, 0.02, 3_000), epsilon=1.0, delta=1e-6)  # warm-up
    rows = []
    for name, (mechanism, epsilon, delta) in TARGETS.items():
        row = {"target": name, "epsilon": epsilon, "delta": delta}
        try:
            found, seconds = clock(partial(dplib.calibrate, mechanism, epsilon=epsilon, delta=delta), REPETITIONS)
        except dplib.NoBracketError as error:
            report.wrong(f"{name}: refused: {error}")
            rows.append(row | {"verdict": "refused"})
            continue
        sigma = found.noise_multiplier
        smaller = dataclasses.replace(found, noise_multiplier=sigma * (1 - 1e-8))
        meets, tight = found.delta(epsilon).upper <= delta, smaller.delta(epsilon).upper > delta
        if not meets:
            report.wrong(f"{name}: the upper bound misses the target")
        if not tight:
            report.wrong(f"{name}: a noise multiplier smaller by 1e-8 would do")
        rows.append(
            row
            | {
                "sigma": sigma,
                "ms": 1e3 * median(seconds),
                "slowest ms": 1e3 * max(seconds),
                "verdict": "smallest to 1e-8" if meets and tight else "WRONG",
            }
        )
    columns = ["target", "epsilon", "delta", "sigma", "ms", "slowest ms", "verdict"]
    report.table(f"Targets (median of {REPETITIONS} calls)", rows, columns)
    report.say("")
    report.claim(
        "slowest target (infinite where refused)",
        max(r.get("ms", float("inf")) for r in rows),
        at_most=50,
        unit="ms",
    )
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
