"""The same numbers with one thread and two, one worker and two, and with other Pythons.

    python -m tools determinism compare [PYTHON …]    each PYTHON: an interpreter with NumPy, SciPy, JAX, Optax and joblib
    python -m tools determinism print                  the results of this process, as JSON

Threads and workers: every result must be the same bit for bit. Other Pythons bring other versions of the packages, whose sums may be
rounded otherwise: the same to six significant digits, which is what the book prints. Written to benchmarks/results/determinism.txt.
"""

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "benchmarks" / "results" / "determinism.txt"
DIGITS = 6
CHILD = "import os, sys; sys.path[:0] = [{root!r}, {here!r}]; import determinism; determinism.show({jobs}, {parts!r})"


def accounting():
    """Numbers without sampling."""
    from dplib import (
        FixedBatchDPSGD,
        LastIterate,
        MatrixMechanism,
        PoissonDPSGD,
        calibrate,
        gaussian,
        matrices,
        one_step,
        renyi,
        sensitivity,
    )

    poisson = PoissonDPSGD(1.0, 0.01, 2000, 2)
    counting = matrices.optimal_counting(64)
    for side in ("remove", "add"):
        yield f"PoissonDPSGD.delta {side}", poisson.delta(6.0, side).upper
        yield f"PoissonDPSGD.epsilon {side}", poisson.epsilon(1e-6, side).upper
    for method in ("contour", "lattice", "renyi"):
        yield f"PoissonDPSGD.delta {method}", poisson.delta(6.0, "remove", method).upper
    yield "FixedBatchDPSGD.epsilon", FixedBatchDPSGD(2.0, 100, 10_000, 2000).epsilon(1e-6).upper
    yield "LastIterate.epsilon", LastIterate(1.0, 0.01, 2000).epsilon(1e-6).upper
    yield "MatrixMechanism.epsilon Toeplitz", MatrixMechanism(counting, 16.0, 1 / 16).epsilon(1e-5).upper
    yield (
        "MatrixMechanism.epsilon tree",
        MatrixMechanism(matrices.binary_tree(16), 8.0, 0.1).epsilon(1e-5).upper,
    )
    dense = matrices.dense(matrices.optimal_counting(8).entries())
    yield "MatrixMechanism.epsilon dense", MatrixMechanism(dense, 8.0, 0.1).epsilon(1e-5).upper
    yield "calibrate PoissonDPSGD", calibrate(poisson, epsilon=2.0, delta=1e-6).noise_multiplier
    yield "gaussian.epsilon", gaussian.epsilon(1.0, 1e-6)
    yield "one_step.noise_multiplier", float(one_step.noise_multiplier(1.0, 1e-5, 0.1))
    yield "renyi.divergence", renyi.subsampled_gaussian(7.3, 1.0, 0.01).upper
    yield "sensitivity.round_robin", sensitivity.round_robin(counting, 16)


def sampling():
    """Numbers from draws with a seed."""
    import numpy as np

    from dplib import BallsInBins, audit, batching, calibrate, matrices, montecarlo, optimize, truth

    bins = BallsInBins(matrices.optimal_counting(32, bands=4), 6.0, 8, 4)
    yield "BallsInBins.delta exact", BallsInBins(matrices.identity(32), 3.0, 8, 4).delta(1.0).upper
    for side in ("remove", "add"):
        yield f"BallsInBins.delta estimate {side}", bins.delta(0.25, side, samples=1024).value
    yield "BallsInBins.epsilon estimate", bins.epsilon(1e-5, samples=1024).value
    for side in ("remove", "add"):
        found = bins.delta(0.25, side, "certificate", samples=8192, failure_probability=1e-4)
        yield f"BallsInBins.delta certificate {side}", found.upper
    yield "montecarlo.plain", montecarlo.plain(bins.gram() / 36, 0.25, samples=200_000, seed=3).value
    yield "montecarlo.release", montecarlo.release(bins.gram() / 36, 0.5, 0.05, seed=3).estimate.value
    guess = calibrate(bins, epsilon=1.0, delta=1e-5, method="estimate", samples=1024)
    yield "calibrate BallsInBins", guess.noise_multiplier
    yield "truth.all_modes", truth.all_modes(np.tri(3), 4.0, 0.2, samples=1024).delta(0.25, "remove").value
    found = optimize.optimize(
        epsilon=1.0, delta=1e-5, batches_per_epoch=4, epochs=4, lines=256, most_steps=4, seed=1
    )
    yield "optimize: error", float(found.objective)
    yield "optimize: last coefficient", float(found.encoder.coefficients[-1])
    rng = np.random.default_rng(5)
    with_it, without = rng.normal(1, 1, 1000), rng.normal(0, 1, 1000)
    yield "audit", audit.epsilon_lower_bound(with_it, without, 1e-3).lower
    batches = batching.balls_in_bins(1000, 10, 2, np.random.default_rng(6))
    yield "batching.balls_in_bins", float(sum(i * int(b.sum()) for i, b in enumerate(batches, 1)))
    yield from trained()


def trained():
    """A few rounds of training, with noise of a known seed."""
    import jax.numpy as jnp
    import numpy as np

    from dplib import batching, matrices, training

    rng = np.random.default_rng(7)
    data = {"x": rng.standard_normal((64, 3)), "y": rng.standard_normal(64)}
    config = training.Config(
        noise_multiplier=1.0, divisor=16.0, learning_rate=0.1, encoder=matrices.optimal_counting(8)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", training.SeededNoiseWarning)
        done = training.train(
            lambda w, record: (record["x"] @ w - record["y"]) ** 2,
            jnp.zeros(3),
            data,
            batching.balls_in_bins_stream(64, 4, 2, seed=8),
            config,
            seed=9,
        )
    for place, weight in enumerate(np.asarray(done.params, float)):
        yield f"training: weight {place}", float(weight)


PARTS = {"accounting": accounting, "sampling": sampling}


def show(jobs, parts):
    import joblib

    with joblib.parallel_config(n_jobs=jobs):
        found = {name: float(value) for part in parts for name, value in PARTS[part]()}
    import importlib.metadata as metadata

    versions = {name: metadata.version(name) for name in ("numpy", "scipy", "jax")}
    print(json.dumps({"python": platform.python_version(), "versions": versions, "results": found}))


def in_process(python, threads, jobs, parts=tuple(PARTS)):
    """What another process finds with so many threads and workers."""
    wanted = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    code = CHILD.format(root=str(ROOT), here=str(ROOT / "tools"), jobs=jobs, parts=parts)
    done = subprocess.run(
        [str(python), "-c", code], capture_output=True, text=True, cwd=ROOT, env=os.environ | wanted
    )
    if done.returncode:
        raise RuntimeError(f"{python}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def differences(first, second, digits=None):
    """Names of results that are not the same: bit for bit, or to so many significant digits."""

    def same(a, b):
        return a == b if digits is None else abs(a - b) <= 0.5 * 10.0 ** (1 - digits) * max(abs(a), abs(b))

    assert first.keys() == second.keys()
    return [name for name in first if not same(first[name], second[name])]


def compare(pythons):
    base = in_process(sys.executable, 1, 1)
    lines, bad = [], 0

    def say(text):
        print(text, flush=True)
        lines.append(text)

    versions = lambda run: ", ".join(f"{n} {v}" for n, v in run["versions"].items())
    digest = hashlib.sha256(json.dumps(base["results"]).encode()).hexdigest()[:16]
    say(f"{len(base['results'])} results; Python {base['python']}, {versions(base)}; digest {digest}")
    runs = [("two threads", sys.executable, 2, 1, None), ("two workers", sys.executable, 1, 2, None)]
    runs += [("", python, 1, 1, DIGITS) for python in pythons]
    for what, python, threads, jobs, digits in runs:
        found = in_process(python, threads, jobs)
        wrong = differences(base["results"], found["results"], digits)
        what = what or f"Python {found['python']}, {versions(found)}"
        how = "bit for bit" if digits is None else f"to {digits} digits"
        exact = len(base["results"]) - len(differences(base["results"], found["results"]))
        say(
            f"{what}: {'the same ' + how if not wrong else 'DIFFERENT: ' + ', '.join(wrong)} ({exact} bit for bit)"
        )
        bad += len(wrong)
    say("")
    for name, value in base["results"].items():
        say(f"  {name:38} {value:.{DIGITS}g}")
    REPORT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["compare", "print"])
    parser.add_argument("pythons", nargs="*", help="other interpreters")
    options = parser.parse_args()
    if options.command == "compare":
        return compare(options.pythons)
    sys.path.insert(0, str(ROOT))
    show(1, tuple(PARTS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
