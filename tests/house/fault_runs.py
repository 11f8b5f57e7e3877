"""Long computations that can be resumed, to be killed: `python tests/house/fault_runs.py RUN FOLDER`.

State goes to FOLDER/state..., a line for each step that was computed to FOLDER/log, the result to FOLDER/result.
Some seconds of one core each.
"""

import hashlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from dplib import batching, matrices, training  # noqa: E402
from dplib._base import checkpoints as _progress  # noqa: E402

FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else None
STEPS_TO_A_SAVE = 5


def note():
    with open(FOLDER / "log", "a") as log:
        log.write("step\n")


def steps(folder):
    """How many steps are in the log."""
    path = folder / "log"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


# --- the runs: each returns what must be the same after every interruption ---------------------------


def training_run():
    """1,600 rounds with correlated noise, 16 of them in each program."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(1)
    data = rng.standard_normal((6400, 64), np.float32), rng.integers(0, 10, 6400)
    params = {"w": rng.standard_normal((64, 128)) / 8, "v": rng.standard_normal((128, 10)) / 11}
    params = {name: value.astype(np.float32) for name, value in params.items()}

    def loss(params, example):
        return -jax.nn.log_softmax(jnp.tanh(example[0] @ params["w"]) @ params["v"])[example[1]]

    batches = batching.balls_in_bins_stream(6400, 100, 16, seed=2)
    config = training.Config(
        noise_multiplier=1.0,
        divisor=64.0,
        encoder=matrices.optimal_counting(len(batches), 8),
        learning_rate=0.05,
        momentum=0.9,
    )
    # Saves are due by a clock that the steps move, so that a busy machine loses no more of them.
    clock = lambda: steps(FOLDER) * _progress._EVERY / STEPS_TO_A_SAVE
    _progress.time = SimpleNamespace(monotonic=clock)
    _progress._SHARE = 0
    due = _progress.Checkpoint.due.fget
    _progress.Checkpoint.due = property(lambda self: (note(), due(self))[1])  # asked after each program
    found = training.train(
        loss, params, data, batches, config, seed=3, checkpoint=FOLDER / "state.npz",
        evaluate=lambda params: float(jnp.abs(params["w"]).mean()), evaluate_every=160,
    )  # fmt: skip
    return digest(*jax.tree.leaves(found.params), found.history)


def checkpoints():
    """Nothing but writing: most kills hit it."""
    kept = _progress.Checkpoint(FOLDER / "state.npz", name="checkpoints")
    number = int(kept.load().get("done", 0))
    while True:
        number += 1
        kept.save(done=number, values=np.full(10**6, number))


def main(name, _):
    run = {function.__name__: function for function in (training_run, checkpoints)}[name]
    try:
        result = run()
    except (OSError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    (FOLDER / "result").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
