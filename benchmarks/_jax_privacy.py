"""jax-privacy in an environment of its own, and what is asked of it there.

`ask(function, ...)` makes `.venv-jax-privacy` beside `.venv` when it is missing (what
jax_privacy_requirements.txt names) and runs the function in that environment's Python, on one
thread. Below the line are the functions that run there; they import nothing of this project.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from _environments import environment

HERE = Path(__file__).resolve().parent
NAME = ".venv-jax-privacy"
REQUIREMENTS = HERE / "jax_privacy_requirements.txt"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def ask(function, *arguments, timeout=600):
    """function(*arguments) of this file, run in the peer's environment."""
    command = [str(environment(NAME, REQUIREMENTS)), str(HERE / "_jax_privacy.py"), function, json.dumps(arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=os.environ | ONE_THREAD
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no answer"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


# --------------------------------------------------- in the peer's environment


def _losses(setting, side, samples, seed):
    """Privacy losses of the dominating pair, sampled and computed by jax-privacy's public function."""
    import numpy as np
    from jax_privacy import batch_selection
    from jax_privacy.experimental.monte_carlo import sample_generation

    scheme = batch_selection.BallsInBinsSampling(
        iterations=setting["rounds"], cycle_length=setting["batches_per_epoch"]
    )
    losses, _ = sample_generation.get_privacy_loss_sample(
        scheme,
        setting["noise_multiplier"],
        np.array(setting["coefficients"]),
        seed=seed,
        positive_sample=side == "remove",
        num_samples=samples,
    )
    return losses


def estimate(setting, side, samples, seed):
    """Its estimate of delta, and the standard error of the mean."""
    import numpy as np
    from jax_privacy.experimental.monte_carlo import delta_calculation

    losses = _losses(setting, side, samples, seed)
    value = delta_calculation.delta_from_epsilon_and_samples(setting["epsilon"], losses)
    payoff = -np.expm1(np.minimum(setting["epsilon"] - losses, 0))
    return {"value": float(value), "standard_error": float(payoff.std(ddof=1) / np.sqrt(samples))}


def seconds_per_sample(setting, side, samples, repetitions):
    """CPU seconds, median over a few batches; the first, which warms up, is not counted."""
    _losses(setting, side, samples, 0)
    taken = []
    for seed in range(repetitions):
        start = time.process_time()
        _losses(setting, side, samples, seed)
        taken.append((time.process_time() - start) / samples)
    return statistics.median(taken)


def samples_needed(verified, reported):
    """Samples after which its Algorithm 5 reports `reported` once the mean is at most `verified`."""
    from jax_privacy.experimental.monte_carlo import delta_calculation

    return delta_calculation.minimum_samples_to_calibrate(verified, reported)


def version():
    import jax_privacy

    return jax_privacy.__version__


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*json.loads(sys.argv[2]))))
