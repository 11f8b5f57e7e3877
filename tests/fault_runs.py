"""Long computations that can be resumed, to be killed: `python tests/fault_runs.py RUN FOLDER [SIZE] [each]`.

State goes to FOLDER/state..., a line for each step that was computed to FOLDER/log (when, and in which process), the
result to FOLDER/result. SIZE 1 takes some seconds of one core, larger ones longer. `each`: every
step is saved, as soon as it is done.
"""

import hashlib
import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "benchmarks")]

import numpy as np  # noqa: E402

import dplib  # noqa: E402
from dplib import _progress, _streams, batching, matrices, optimize, training  # noqa: E402
from dplib.sweep import sweep  # noqa: E402


def note(folder):
    with open(Path(folder) / "log", "a") as log:
        log.write(f"{time.monotonic()} {os.getpid()}\n")


def steps(folder):
    """How many steps are in the log."""
    path = Path(folder) / "log"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def noted(function, folder, counts=lambda *_: True):
    """The function, each call of which that counts leaves a line when it is done."""

    def call(*arguments):
        result = function(*arguments)
        if counts(*arguments):
            note(folder)
        return result

    return call


def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


# --- the runs: each returns what must be the same after every interruption ---------------------------


def certification(folder, size):
    """64 or more blocks of tuples."""
    final = lambda task, seed, key, index: key[0] == 5  # not of a pilot, which is not kept
    _streams._block = noted(_streams._block, folder, final)
    mechanism = dplib.BallsInBins(matrices.optimal_counting(64), 3.0, 16, 4)
    samples = size * 2**18
    found = mechanism.delta(1.0, method="certificate", samples=samples, seed=1, checkpoint=folder / "state")
    return repr(found)


def certification_in_processes(folder, size):
    import joblib

    with joblib.parallel_config(n_jobs=2):
        return certification(folder, size)


def optimisation(folder, size):
    """About 45 evaluations of the objective and its gradient, then the validation."""
    optimize._Problem._computed = noted(optimize._Problem._computed, folder)
    found = optimize.optimize(
        "toeplitz",
        epsilon=1.0,
        delta=1e-5,
        batches_per_epoch=32 * size,
        epochs=8,
        checkpoint=folder / "state.npz",
    )
    return [digest(found.encoder.coefficients, found.history), repr(found)]


def training_run(folder, size):
    """1,600 or more rounds with correlated noise, 16 of them in each program."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(1)
    data = rng.standard_normal((6400, 64), np.float32), rng.integers(0, 10, 6400)
    params = {"w": rng.standard_normal((64, 128)) / 8, "v": rng.standard_normal((128, 10)) / 11}
    params = {name: value.astype(np.float32) for name, value in params.items()}

    def loss(params, example):
        return -jax.nn.log_softmax(jnp.tanh(example[0] @ params["w"]) @ params["v"])[example[1]]

    batches = batching.balls_in_bins_stream(6400, 100, 16 * size, seed=2)
    config = training.Config(
        noise_multiplier=1.0,
        divisor=64.0,
        encoder=matrices.optimal_counting(len(batches), 8),
        learning_rate=0.05,
        momentum=0.9,
    )
    _progress.Checkpoint.due = property(
        noted(_progress.Checkpoint.due.fget, folder)
    )  # asked after each program
    found = training.train(
        loss, params, data, batches, config, seed=3, checkpoint=folder / "state.npz",
        evaluate=lambda params: float(jnp.abs(params["w"]).mean()), evaluate_every=160,
    )  # fmt: skip
    return digest(*jax.tree.leaves(found.params), found.history)


def study(folder, size):
    """Encoders by the script of `make study`, with settings of its own."""
    import study as script

    script.STATE = script.RESULTS = script.ROOT = folder
    task = noted(script.encoder_task, folder)
    place = {
        "task": "optimised",
        "family": "toeplitz",
        "buffers": None,
        "keep": False,
        "batches_per_epoch": 16,
    }
    wanted = [place | {"epochs": 4 + n, "epsilon": 2.0} for n in range(6 * size)]
    parts = [("first", wanted[: len(wanted) // 2]), ("second", wanted[len(wanted) // 2 :])]
    script.STUDIES = {"state": (script.ABOUT, {}, lambda: parts, task)}
    sys.argv = ["study.py"]
    if script.main():
        sys.exit(1)
    return (folder / "state.json").read_text()


def certificate(folder, setting):
    mechanism = dplib.BallsInBins(matrices.optimal_counting(16), 3.0 + setting / 100, 4, 4)
    found = mechanism.delta(2.0, method="certificate", samples=2**13, seed=setting)
    note(folder)
    return found


def sweep_here(folder, size):
    return repr(certificates(folder, size))


def sweep_in_processes(folder, size):
    import joblib

    with joblib.parallel_config(n_jobs=2):
        return repr(certificates(folder, size))


def sweep_on_dask(folder, size):
    import joblib
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with LocalCluster(**options) as cluster, Client(cluster), joblib.parallel_config(backend="dask"):
        return repr(certificates(folder, size))


def certificates(folder, size):
    return sweep(
        partial(certificate, str(folder)), range(8 * size), checkpoint=folder / "state.jsonl", batch_size=1
    )


# --- nothing but writing: most kills hit it -----------------------------------------------------------


def checkpoints(folder, size):
    kept = _progress.Checkpoint(folder / "state.npz", name="checkpoints")
    number = int(kept.load().get("done", 0))
    while True:
        number += 1
        kept.save(done=number, values=np.full(10**6, number))


def reports(folder, size):
    """The results of benchmarks."""
    import _common

    _common.RESULTS, sys.stdout = folder, open(os.devnull, "w")
    number = 0
    while True:
        number += 1
        report = _common.Report("state", "Numbers")
        report.table("The same number", [{"number": number}] * 10_000)
        if report.close():
            sys.exit(1)


def mutants(folder, size):
    """The results of mutation testing."""
    sys.path.append(str(ROOT / "tests" / "mutants"))
    import mutation

    mutation.RESULTS = folder / "state.json"
    number = 0
    while True:
        number += 1
        found = {f"mutant {k}": {"killed_by": None, "number": number} for k in range(10_000)}
        mutation.record(mutation.RESULTS, lambda results: results.update(all=found))  # noqa: B023


RUNS = (
    certification, certification_in_processes, optimisation, training_run, study, sweep_here, sweep_in_processes,
    sweep_on_dask, checkpoints, reports, mutants,
)  # fmt: skip


def main(name, folder, size="1", *every_step):
    folder = Path(folder)
    if every_step:
        _progress._EVERY = _progress._SHARE = 0
    elif name not in ("checkpoints", "reports", "mutants"):
        # Saves are due by a clock that the steps move, so that a busy machine loses no more of them: five to a save.
        _progress.time = SimpleNamespace(monotonic=lambda: steps(folder) * _progress._EVERY / 5)
    run = {function.__name__: function for function in RUNS}[name]
    try:
        result = run(folder, int(size))
    except (OSError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    (folder / "result").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
