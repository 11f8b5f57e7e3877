"""Results of every kind, for whether they depend on the number of threads or workers: see tests/house/test_determinism.py."""

import json
import sys
import warnings


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
        renyi,
        sensitivity,
    )
    from dplib.lessons import one_step

    poisson = PoissonDPSGD(1.0, 0.01, 2000, 2)
    counting = matrices.optimal_counting(64)
    for side in ("remove", "add"):
        yield f"PoissonDPSGD.delta {side}", poisson.delta(6.0, side).upper
        yield f"PoissonDPSGD.epsilon {side}", poisson.epsilon(1e-6, side).upper
    for method in ("contour", "lattice", "renyi"):
        yield f"PoissonDPSGD.delta {method}", PoissonDPSGD(1.0, 0.01, 200).delta(0.5, "remove", method).upper
    yield "FixedBatchDPSGD.epsilon", FixedBatchDPSGD(2.0, 100, 10_000, 2000).epsilon(1e-6).upper
    yield "LastIterate.epsilon", LastIterate(1.0, 0.01, 2000).epsilon(1e-6).upper
    yield "MatrixMechanism.epsilon Toeplitz", MatrixMechanism(matrices.optimal_counting(16), 16.0, 1 / 16).epsilon(1e-5).upper
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

    from dplib import BallsInBins, audit, batching, calibrate, matrices, montecarlo, optimize
    from dplib.lessons import truth

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


def numbers():
    """{name: number} of all of them."""
    return {name: float(value) for part in (accounting, sampling) for name, value in part()}


if __name__ == "__main__":
    import joblib

    with joblib.parallel_config(n_jobs=int(sys.argv[1])):
        print(json.dumps(numbers()))
