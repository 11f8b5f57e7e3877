"""Claims: balls in bins, delta to 1% in half a second and 64 MB at any delta; the exact method for
independent noise in 0.1 s; the noise multiplier to 0.1% in a second.

A call starts from the parameters (Gram matrix, proposal, samples, both directions unless a row says
one). "Samples saved" is the number of plain samples for the same standard error over ours (remove).
Working memory is what a new process adds at its peak to what it held before the call; a small call
before it loads SciPy. Seconds are CPU seconds on one thread.
"""

import math
import sys

from _bins_cases import (
    BATCHES,
    at_target,
    encoder,
    mechanism,
    plain_relative_variance,
    standard_errors,
    truth,
)
from _common import Report, cpu_clock, in_fresh_process, median, peak_memory, resident_memory

import dplib
from dplib.balls_in_bins import importance_sampling

DELTAS = {1e-5: 4e4, 1e-8: 1e7, 1e-10: 1e9}  # delta -> samples to be saved
TARGETS = [("identity", 1, 1e-5), ("64 bands", 1, 1e-5), ("64 bands", 4, 1e-8), ("counting", 1, 1e-5)]


def run_estimate(name, noise, epsilon, rounds):
    """One estimate in a new process: seconds (median of three), working memory, value, error, lines."""
    estimate_from_parameters("counting", 3.0, 1.0, BATCHES)
    encoder(name, rounds=rounds)
    before = resident_memory()
    found = estimate_from_parameters(name, noise, epsilon, rounds)
    memory = peak_memory() - before
    _, seconds = cpu_clock(lambda: estimate_from_parameters(name, noise, epsilon, rounds), 3)
    answer = {"CPU s": median(seconds), "MB": memory, "value": math.exp(found.log_value)}
    return answer | {"relative error": found.relative_error, "lines": found.samples}


def estimate_from_parameters(name, noise, epsilon, rounds):
    gram = mechanism(name, noise, rounds=rounds).gram() / noise**2
    return importance_sampling.estimate(gram, epsilon, "remove", relative_error=0.01)


def run_calibration(name, epsilon, delta):
    """Seconds of one calibration, start included, and its noise."""
    mechanism("counting", 3.0, rounds=BATCHES).delta(1.0, method="estimate")
    start = mechanism(name, 10.0)
    found, seconds = cpu_clock(
        lambda: dplib.calibrate(start, epsilon=epsilon, delta=delta, method="estimate"), 3
    )
    return {"CPU s": median(seconds), "sigma": found.noise_multiplier}


def estimates(report):
    """delta to 1%: the table, and the claims about seconds, memory and samples."""
    cases = [("64 bands", 1.0, delta, 2048) for delta in DELTAS]
    cases += [("64 bands", 4.0, 1e-5, 2048), ("counting", 1.0, 1e-5, 2048), ("counting", 1.0, 1e-8, 2048)]
    cases += [("identity", 1.0, 1e-8, 2048), ("16 bands", 1.0, 1e-5, 2048), ("64 bands", 1.0, 1e-8, 131_072)]
    rows = []
    for name, epsilon, delta, rounds in cases:
        setting = at_target(name, epsilon, delta, rounds)
        done = in_fresh_process("balls_in_bins", "run_estimate", name, setting.noise_multiplier, epsilon, rounds)
        if "failure" in done:
            report.wrong(f"{name}, {delta:g}: {done['failure']}")
            continue
        found, (value, error) = done["answer"], truth(setting, epsilon)
        plain = plain_relative_variance(setting, epsilon, value)
        row = {"encoder": name, "rounds": rounds, "epsilon": epsilon, "delta": delta, **found}
        row["off, s.e."] = standard_errors(found["value"], found["value"] * found["relative error"], value, error)
        row["samples saved"] = plain / (found["relative error"] ** 2 * found["lines"])
        rows.append(row)
        if abs(row["off, s.e."]) > 4:
            report.wrong(f"{name}, {delta:g}: {found['value']} is not {value}")
    report.table("Estimates of delta (remove, the larger direction)", rows)
    report.say("")
    # Bins that hardly matter to each other are the hard case; they stand on lines of their own.
    usual = [r for r in rows if r["encoder"] != "16 bands"]
    hard = [r for r in rows if r["encoder"] == "16 bands"]
    report.claim("standard error, the largest", 100 * max(r["relative error"] for r in rows), at_most=1, unit="%")
    report.claim("time, the longest", max(r["CPU s"] for r in usual), at_most=0.5, unit="s")
    report.claim("  with 16 bands", max(r["CPU s"] for r in hard), at_most=0.5, unit="s")
    report.claim("working memory, the largest", max(r["MB"] for r in rows), at_most=64, unit="MB")
    for delta, target in DELTAS.items():
        least = min(r["samples saved"] for r in usual if r["delta"] == delta)
        report.claim(f"samples saved at delta = {delta:g}, the fewest", least, at_least=target)
    report.claim("  with 16 bands", min(r["samples saved"] for r in hard), at_least=DELTAS[1e-5])


def exact(report):
    """C = I: seconds and width."""
    rows = []
    for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0):
        for delta in (1e-5, 1e-10):
            setting = dplib.calibrate(mechanism("identity", 3.0), epsilon=epsilon, delta=delta)
            bracket, seconds = cpu_clock(lambda s=setting, e=epsilon: s.delta(e), 3)
            rows.append(
                {"epsilon": epsilon, "delta": delta, "sigma": setting.noise_multiplier, "width": bracket.relative_width,
                 "CPU s": median(seconds), "upper": bracket.upper}
            )  # fmt: skip
            if not bracket.lower <= delta * 1.001 or not bracket.upper >= delta * 0.999:
                report.wrong(f"calibrated to {delta:g} but {bracket}")
    report.table("Independent noise, exact, both directions", rows)
    report.say("")
    report.claim("independent noise: time, the longest", max(r["CPU s"] for r in rows), at_most=0.1, unit="s")
    report.claim("  relative width, the largest", max(r["width"] for r in rows), at_most=1e-4)


def calibrations(report):
    rows = []
    for name, epsilon, delta in TARGETS:
        done = in_fresh_process("balls_in_bins", "run_calibration", name, epsilon, delta)
        if "failure" in done:
            report.wrong(f"calibration, {name}: {done['failure']}")
            continue
        sigma = done["answer"]["sigma"]
        value, error = truth(mechanism(name, sigma), epsilon, relative_error=1e-3)
        further, _ = truth(mechanism(name, 1.1 * sigma), epsilon)
        slope = math.log(further / value) / math.log(1.1)
        off = math.log(delta / value) / slope
        row = {"encoder": name, "epsilon": epsilon, "delta": delta, **done["answer"]}
        rows.append(row | {"sigma off, %": 100 * abs(off), "known to, %": 100 * abs(error / value / slope)})
    report.table("Noise multiplier for a target (estimates)", rows)
    report.say("")
    report.claim("noise multiplier: time, the longest", max(r["CPU s"] for r in rows), at_most=1, unit="s")
    report.claim("  its error, the largest", max(r["sigma off, %"] for r in rows), at_most=0.1, unit="%")


def main():
    report = Report("balls_in_bins", "Balls in bins: estimates, exact values, calibration")
    estimates(report)
    exact(report)
    calibrations(report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
