"""Claims: the published method (plain draws, automatic differentiation, 300 gradient steps) at all 18 cells of the published
timing table, in at most 1 GB, the cell that ran out of memory there included.

Steps of `dplib.published.optimize` are timed after the first, which compiles, each cell in a process of its own; the time of
300 steps is EXTRAPOLATED, 300 times the median step, and never run. Toeplitz encoders with all coefficients free, epsilon = 1,
delta = 1e-5. CPU seconds on one core; GPUs, where JAX has them, are named. The published seconds are those of 300 steps on a V100: another
machine, so that only growth with samples, epochs and batches can be compared.
"""

import sys

from _common import Report, in_fresh_process, median
from optimization import CELLS, DELTA, EPSILON

STEPS = 300
FEW, MANY = 2**17, 2**20
TIMED = {FEW: 3, MANY: 2}  # steps
MEMORY = 1000  # MB


def step_seconds(epochs, batches, samples, dtype):
    """CPU and wall-clock seconds of a step (median), and device; compilation, imports and validation not counted."""
    import os
    import time

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before JAX counts the cores

    import jax

    from dplib import published

    ends = []
    published.optimize(
        "toeplitz", epsilon=EPSILON, delta=DELTA, batches_per_epoch=batches, epochs=epochs, samples=samples,
        steps=1 + TIMED[samples], dtype=dtype, callback=lambda *_: ends.append((time.process_time(), time.perf_counter())),
    )  # fmt: skip
    cpu, wall = (median([after[i] - before[i] for before, after in zip(ends, ends[1:])]) for i in (0, 1))
    return {"cpu": cpu, "wall": wall, "device": jax.devices()[0].device_kind}


def measured(report, epochs, batches, samples, dtype, published_seconds):
    """A row of the table; None, and said, where a process failed."""
    done = in_fresh_process("published_method", "step_seconds", epochs, batches, samples, dtype, timeout=1800)
    if "failure" in done:
        report.wrong(f"E = {epochs}, b = {batches}, {samples} samples, {dtype}: {done['failure']}")
        return None
    answer = done["answer"]
    return {
        "dtype": dtype,
        "epochs": epochs,
        "batches": batches,
        "samples": samples,
        "CPU s/step": answer["cpu"],
        "wall s/step": answer["wall"],
        "300 steps, CPU s, extrapolated": STEPS * answer["cpu"],
        "V100 s, published": published_seconds or "out of memory",
        "MB": done["peak_mb"],
        "device": answer["device"],
    }


def ratios(rows, name, low, high, of="CPU s/step"):
    """value at `high` over value at `low` of the column `name`, wherever both were measured and all else is equal."""
    keys = [key for key in ("epochs", "batches", "samples") if key != name]
    at = {(row[name], *(row[key] for key in keys)): row[of] for row in rows if isinstance(row[of], float)}
    return [at[high, *rest] / value for (place, *rest), value in at.items() if place == low and (high, *rest) in at]


def main():
    report = Report("published_method", "The published method: seconds of a step, and 300 steps extrapolated", "jax", "jaxlib", "optax")
    rows, rounded = [], []
    for (epochs, batches), (few, many, _) in CELLS.items():
        for samples, seconds in ((FEW, few), (MANY, many)):
            rows.append(measured(report, epochs, batches, samples, "float64", seconds))
            if epochs == 16:
                rounded.append(measured(report, epochs, batches, samples, "float32", seconds))
    rows, rounded = ([row for row in table if row is not None] for table in (rows, rounded))
    report.table("64 bits", rows, list(rows[0])[1:])
    report.table("32 bits in the steps", rounded, list(rounded[0])[1:])
    report.say("")
    report.claim("most memory, the cell that ran out of memory on the V100 included", max(r["MB"] for r in rows), at_most=MEMORY, unit="MB")
    for what, *place in (
        ("eight times the samples", "samples", FEW, MANY),
        ("four times the epochs", "epochs", 16, 64),
        ("four times the batches", "batches", 32, 128),
    ):
        here, there = ratios(rows, *place), ratios(rows, *place, of="V100 s, published")
        report.say(f"  {what}: {min(here):.2f} to {max(here):.2f} times as long here, {min(there):.2f} to {max(there):.2f} times in the published table")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
