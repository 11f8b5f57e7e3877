"""Claim: Figure 1 of Räisä, Jälkö and Honkela (2024) takes at most 60 s on two cores.

The figure shows the effective noise sigma(q, T) / q for epsilon from 1/8 to 4, 1 to 1,000 rounds and 100
sampling probabilities from 0.001 to 1: 2,400 calibrations in the remove direction, the larger one; delta = 1e-5.
"""

import math
import sys

from _common import Report, clock  # before NumPy: one thread

# isort: split
import numpy as np
from joblib import Parallel, delayed

from dplib import PoissonDPSGD, gaussian
from dplib.calibration import effective_noise

DELTA, TOLERANCE, WORKERS = 1e-5, 1e-8, 2
EPSILONS, ROUNDS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0), (10, 100, 1000, 1)  # the slowest first
RATES = np.geomspace(1e-3, 1.0, 100)


def one_curve(epsilon, rounds):
    """(effective noise at every rate, seconds)"""
    noise, (seconds,) = clock(lambda: effective_noise(RATES, rounds, epsilon, DELTA, tolerance=TOLERANCE))
    return noise, seconds


def check(report, epsilon, rounds, noise):
    """The closed form at q = 1; the target met, and missed with slightly less noise."""
    plain = math.sqrt(rounds) / gaussian.calibrate(epsilon, DELTA)
    if not abs(noise[-1] / plain - 1) < 2 * TOLERANCE:
        report.wrong(f"epsilon {epsilon}, {rounds} rounds, q = 1: {noise[-1]!r}, closed form {plain!r}")
    for i in range(0, RATES.size, 20):
        q, sigma = float(RATES[i]), float(noise[i] * RATES[i])
        met, missed = (
            PoissonDPSGD(sigma * (1 + change), q, rounds).delta(epsilon, "remove")
            for change in (0.0, -2 * TOLERANCE)
        )
        if not (met.upper <= DELTA * (1 + 1e-12) < missed.upper * (1 + 1e-12)):
            report.wrong(
                f"epsilon {epsilon}, {rounds} rounds, q = {q:.4g}: sigma {sigma!r}, {met!r}, {missed!r}"
            )


def main():
    report = Report("batch_size_figure", "Figure 1 of Räisä, Jälkö and Honkela (2024)", "joblib")
    jobs = [(epsilon, rounds) for rounds in ROUNDS for epsilon in EPSILONS]
    answers, (wall,) = clock(lambda: Parallel(n_jobs=WORKERS)(delayed(one_curve)(*job) for job in jobs))
    rows = []
    for (epsilon, rounds), (noise, seconds) in zip(jobs, answers):
        check(report, epsilon, rounds, noise)
        plain = math.sqrt(rounds) / gaussian.calibrate(epsilon, DELTA)
        at = [float(noise[i] / plain) for i in (0, 33, 66)]
        rows.append({"epsilon": epsilon, "rounds": rounds, "seconds": seconds, "without sampling": plain})
        rows[-1] |= dict(zip(("ratio at q = .001", "q = .01", "q = .1"), at))
    report.say(f"{len(jobs) * RATES.size} calibrations, larger of both directions, tolerance {TOLERANCE:g}.")
    report.table("Curves", rows)
    report.say("")
    report.claim(f"all curves, {WORKERS} processes, wall time", wall, at_most=60, unit="s")
    total = sum(seconds for _, seconds in answers)
    report.claim("one calibration, mean", 1e3 * total / (len(jobs) * RATES.size), at_most=50, unit="ms")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
