"""Claim: Figure 2 of Räisä et al. (2024) on its full grid of 10^9 points takes at most 60 s and 1 GB.

delta = 1e-5; 1,000 values of epsilon in [4 delta, 4], 100 of q in [4 delta, 0.9999], 10,000 of
sigma in [q_min sigma(1), sigma(1)], all evenly spaced in the logarithm. For each epsilon: the
largest a - b over the pairs (q, sigma) whose delta meets the target. The library looks only at
the least valid sigma of each (epsilon, q), found from sigma(q); brute force evaluates every point
of some epsilons (all of them with the option --all) with the two-term formula, and must find the
same maxima.
"""

import math
import sys

from _common import Report, clock, in_fresh_process, median  # before NumPy: one thread

# isort: split
import numpy as np
from scipy import special

from dplib.lessons import one_step

DELTA = 1e-5
SIZES = {"epsilon": 1000, "q": 100, "sigma": 10_000}
SAMPLED = 100  # values of epsilon that brute force goes through
REPETITIONS = 3


def grid():
    epsilon = np.geomspace(4 * DELTA, 4, SIZES["epsilon"])[:, None]
    q = np.geomspace(4 * DELTA, 0.9999, SIZES["q"])
    ladder = np.geomspace(4 * DELTA, 1, SIZES["sigma"])  # sigma over sigma(1)
    return epsilon, q, ladder


def by_monotonicity():
    """(largest a - b for each epsilon, whether every chosen sigma is the least valid one)."""
    epsilon, q, ladder = grid()
    whole = one_step.noise_multiplier(epsilon, DELTA, 1.0)
    index = np.searchsorted(ladder, one_step.noise_multiplier(epsilon, DELTA, q) / whole)
    sigma = whole * ladder[index]
    least = one_step.delta(epsilon, sigma, q) <= DELTA
    least &= one_step.delta(epsilon, whole * ladder[index - 1], q) > DELTA
    r_minus, _ = one_step.threshold_distances(epsilon, sigma, q)
    return (-r_minus).max(axis=1), bool(np.all(least) and index.min() > 0)


def by_brute_force(i):
    """Largest a - b over all q and sigma at the epsilon numbered i."""
    epsilon, q, ladder = grid()
    sigma, q = one_step.noise_multiplier(epsilon[i, 0], DELTA, 1.0) * ladder, q[:, None]
    ratio = np.expm1(epsilon[i, 0]) / q
    b, a = sigma * np.log1p(ratio) / math.sqrt(2), 1 / (2 * math.sqrt(2) * sigma)
    leak = q * (special.erfc(b - a) - (1 + ratio) * special.erfc(b + a))
    return (a - b)[leak <= 2 * DELTA].max()


def run_workload():
    """The whole grid once (for the memory of a process of its own)."""
    curve, _ = by_monotonicity()
    return float(curve.max())


def main():
    report = Report("one_step_grid", "Figure 2 of Räisä et al. (2024) on its full grid")
    (curve, least), seconds = clock(by_monotonicity, REPETITIONS)
    if not least:
        report.wrong("a chosen sigma is not the least valid one on the grid")
    rows, slow, worst = [], [], 0.0
    sampled = SIZES["epsilon"] if "--all" in sys.argv else SAMPLED
    for i in np.random.default_rng(2).permutation(SIZES["epsilon"])[:sampled]:
        value, taken = clock(lambda i=i: by_brute_force(i))
        slow += taken
        rows.append({"epsilon": float(grid()[0][i, 0]), "ours": float(curve[i]), "brute force": float(value)})
        worst = max(worst, abs(value / curve[i] - 1))
        if not math.isclose(curve[i], value, rel_tol=1e-11):
            report.wrong(f"epsilon number {i}: {curve[i]!r} against {value!r}")
    ours = median(seconds)
    whole = sum(slow) / sampled * SIZES["epsilon"]
    report.say(f"{math.prod(SIZES.values()):.3g} points; largest a - b of all: {curve.max():.6f}.")
    report.say(f"Seconds of each pass: {', '.join(f'{s:.2f}' for s in seconds)}.")
    report.say(
        f"Brute force: {sum(slow):.1f} s for {sampled} of {SIZES['epsilon']} epsilons; for all of them "
        f"{whole:.0f} s{' (extrapolated)' if sampled < SIZES['epsilon'] else ''}, {whole / ours:.0f} times ours. "
        f"Largest relative difference {worst:.1e}."
    )
    report.table("Largest a - b, the first eight compared", rows[:8])
    alone = in_fresh_process("one_step_grid", "run_workload")
    report.say("")
    report.claim("full grid, median pass", ours, at_most=60, unit="s")
    if "failure" in alone:
        report.wrong(f"in a process of its own: {alone['failure']}")
    else:
        report.claim("full grid, peak memory of its own process", alone["peak_mb"], at_most=1000, unit="MB")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
