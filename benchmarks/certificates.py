"""Claim: certified upper bounds of delta within 5% of the truth, from at most 2^20 samples in 30 CPU seconds.

Balls in bins, 2,048 rounds, 128 batches an epoch; both directions, failure probability 1e-9, rounding
included; the noise multiplier puts delta where the row says. The truth is an estimate to 0.1%
(0.2% for epsilon = 4, C = I, and at most 16 bands). Each case runs in a process of its own on one thread, two at a time;
seconds are CPU seconds of the certificate alone. Of both directions remove is the larger one.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from _bins_cases import SIDES, at_target, reference_cases, truth
from _common import Report, in_fresh_process

FAILURE, SAMPLES = 1e-9, 2**20
# Where the bins hardly matter to each other a sample says less; a quarter of the samples does elsewhere.
HARD = ("identity", "8 bands", "16 bands")
FEWER = 2**16  # for the reference values: valid bounds, only wider
ENCODERS = ("16 bands", "64 bands", "counting", "optimised")
REQUIRED = [(name, epsilon, delta) for name in ENCODERS for epsilon in (1, 4) for delta in (1e-5, 1e-8)]
REQUIRED += [("identity", 1, 1e-5)]
STRETCH = [("8 bands", 1, 1e-5), ("8 bands", 1, 1e-8), *((name, 0.5, 1e-5) for name in ENCODERS)]


def run_case(name, epsilon, delta):
    setting = at_target(name, epsilon, delta)
    value, error = truth(setting, epsilon, relative_error=2e-3 if name in HARD or epsilon > 1 else 1e-3)
    samples = SAMPLES if name in HARD else SAMPLES // 4
    start = time.process_time()
    bound = setting.delta(epsilon, method="certificate", samples=samples, failure_probability=FAILURE)
    seconds = time.process_time() - start
    return {
        "sigma": setting.noise_multiplier,
        "delta": value,
        "standard error": error,
        "upper": bound.upper,
        "over delta": bound.upper / value,
        "samples": bound.samples,
        "CPU s": seconds,
    }


def run_reference(first, last):
    """Certificates of reference values, each direction, with few samples: rows."""
    rows = []
    for label, setting, case in list(reference_cases())[first:last]:
        for side in SIDES:
            value, error = case[f"delta_{side}"], case[f"se_{side}"]
            row = {"case": label, "direction": side, "truth": value, "standard error": error}
            try:
                bound = setting.delta(
                    case["eps"], side, method="certificate", samples=FEWER, failure_probability=FAILURE
                )
            except ValueError as refusal:  # add, far below remove: no useful bound from so few samples
                rows.append(row | {"refused": str(refusal)})
            else:
                rows.append(row | {"upper": bound.upper})
    return rows


def main():
    report = Report("certificates", "Balls in bins: certified upper bounds")
    cases = [*REQUIRED, *STRETCH]
    count = len(list(reference_cases()))
    parts = [(first, min(first + 5, count)) for first in range(0, count, 5)]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda case: in_fresh_process("certificates", "run_case", *case), cases))
        references = list(pool.map(lambda part: in_fresh_process("certificates", "run_reference", *part), parts))
    rows = []
    for (name, epsilon, target), done in zip(cases, answers):
        if "failure" in done:
            report.wrong(f"{name}, epsilon {epsilon}, delta {target:g}: {done['failure']}")
            continue
        row = {"encoder": name, "epsilon": epsilon, "target": target, **done["answer"]}
        row["required"] = (name, epsilon, target) in REQUIRED
        rows.append(row)
        if row["upper"] < row["delta"] - 4 * row["standard error"]:
            report.wrong(f"{name}, epsilon {epsilon}: {row['upper']} is below {row['delta']}")
    report.table("Both directions, failure probability 1e-9", rows)
    checked, refused = [], []
    for part, done in zip(parts, references):
        if "failure" in done:
            report.wrong(f"reference values {part}: {done['failure']}")
            continue
        for row in done["answer"]:
            if "refused" in row:
                refused.append(row)
                continue
            checked.append(row | {"holds": row["upper"] >= row["truth"] - 4 * row["standard error"]})
            if not checked[-1]["holds"]:
                report.wrong(f"{row['case']}, {row['direction']}: {row['upper']} is below {row['truth']}")
    report.table(f"Reference values, {FEWER} samples", checked, ["case", "direction", "truth", "upper", "holds"])
    if refused:
        report.table("Refused: a clear error instead of a useless bound", refused, ["case", "direction", "truth"])
    for row in refused:
        if row["direction"] == "remove":
            report.wrong(f"{row['case']}: {row['refused']}")
    report.say("")
    required = [row for row in rows if row["required"]]
    rest = [row for row in rows if not row["required"]]
    report.claim("certified delta over the truth, the largest", max(r["over delta"] for r in required), at_most=1.05)
    report.claim("  the same (stretch)", max(r["over delta"] for r in required), at_most=1.02)
    report.claim("  8 bands, and epsilon 0.5 (stretch)", max(r["over delta"] for r in rest), at_most=1.10)
    report.claim("samples, the most", max(r["samples"] for r in rows), at_most=SAMPLES)
    report.claim("CPU time, the longest", max(r["CPU s"] for r in rows), at_most=30, unit="s")
    wrong = sum(not row["holds"] for row in checked)
    report.claim(f"certificates below their reference value, of {len(checked)}", wrong, at_most=0)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
