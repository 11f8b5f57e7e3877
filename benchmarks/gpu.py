"""Claim: a step of the published optimiser is at least 20 times faster on an accelerator than on two CPU cores.

One step at the paper's size: fresh draws from the pair, the noise multiplier at which their mean payoff is delta, its
slope by automatic differentiation, the gradient of the error [N-grad]. Both sides are measured in this run, on this
machine, with the same draws: noise multiplier and gradient have to agree. Without an accelerator nothing is
measured and nothing is written.
"""

import os
import sys
import time

from _common import Report, in_fresh_process, median

BATCHES, EPOCHS, SAMPLES = 128, 16, 2**20
EPSILON, DELTA = 1.0, 1e-5
STEPS = 5  # on the accelerator
CPU_STEPS = 2
AGREEMENT = 1e-6  # relative, of noise multiplier and gradient


def step_seconds(batches=BATCHES, epochs=EPOCHS, samples=SAMPLES, steps=STEPS, clock=time.perf_counter):
    """Seconds of each step at the first encoder, compiled before; where, and what it found."""
    import numpy as np

    from dplib import published
    from dplib.optimize import families, jax_draws

    jax_draws._KEPT = 2**27  # draws are made once in each step: the fastest way on both sides, 2.5 GB
    n = batches * epochs
    family = families.make("toeplitz", n, batches)
    seconds = []
    with published.double() as jax:
        devices = jax.local_devices()
        descent = published._Descent(family, "rmse", batches, EPSILON, DELTA)
        guess = None
        for number in range(steps + 1):
            start = clock()
            key = jax_draws.key_of(0, 1, max(number - 1, 0))
            stream = jax_draws.Draws(key, samples, batches, devices)
            value, sigma, gradient = descent.slope(family.start, stream, guess)
            seconds.append(clock() - start)
            if number == 0:
                guess = sigma
            if number == 1:
                found = {"sigma": sigma, "gradient": float(np.linalg.norm(gradient)), "objective": value}
    kinds = sorted({device.device_kind for device in devices})
    return {"seconds": seconds[1:], "devices": len(devices), "kind": ", ".join(kinds), **found}


def on_two_cores(simulated, *arguments):
    """`step_seconds` on two CPU cores, as one device of JAX's or as two."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={simulated}"
    return step_seconds(*arguments)


def accelerator():
    """What JAX finds here besides CPU cores, in words; None where there is nothing."""
    import jax

    devices = jax.local_devices()
    if devices[0].platform == "cpu":
        return None
    return f"{len(devices)} x {devices[0].device_kind} ({devices[0].platform})"


def main():
    found = in_fresh_process("gpu", "accelerator")
    if found.get("answer") is None:
        print(
            f"gpu: {found.get('failure', 'JAX finds no accelerator here')}; nothing measured, no result written."
        )
        return 0
    report = Report(
        "gpu", f"A step of the published optimiser on {found['answer']} and on two CPU cores", "jax"
    )
    size = BATCHES, EPOCHS, SAMPLES
    report.say(
        f"b = {BATCHES}, E = {EPOCHS}, {SAMPLES:,} draws per step, epsilon = {EPSILON:g}, delta = {DELTA:g}."
    )
    runs = {"accelerator": in_fresh_process("gpu", "step_seconds", *size, STEPS)}
    for simulated in (1, 2):
        name = f"two CPU cores, {simulated} JAX device{'s' * (simulated > 1)}"
        runs[name] = in_fresh_process("gpu", "on_two_cores", simulated, *size, CPU_STEPS, timeout=1800)
    rows = []
    for name, run in runs.items():
        if "failure" in run:
            report.wrong(f"{name}: {run['failure']}")
            continue
        answer = run["answer"]
        rows.append(
            {"where": name, "device": answer["kind"], "s per step": median(answer["seconds"])}
            | {key: answer[key] for key in ("sigma", "gradient", "objective", "seconds")}
        )
    if report.failed:
        return report.close()
    report.table("steps", rows, ["where", "device", "s per step", "sigma", "gradient", "objective"])
    first, *others = rows
    for row in others:
        for name in ("sigma", "gradient", "objective"):
            if abs(row[name] / first[name] - 1) > AGREEMENT:
                report.wrong(f"{name}: {row[name]!r} on {row['where']}, {first[name]!r} on the accelerator")
    fastest = min(row["s per step"] for row in others)
    report.say()
    report.claim(
        "times faster than two CPU cores (the faster way)", fastest / first["s per step"], at_least=20
    )
    report.say(
        f"  300 steps: {300 * first['s per step']:.3g} s; the paper's V100: 1060 s (not our measurement)."
    )
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
