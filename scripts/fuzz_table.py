"""What scripts/fuzz.py calls: every public function of dplib, with generators of its arguments.

A generator takes a random generator and returns a valid or borderline value. Values that no argument
allows (BAD) are put in by the runner. What is not called stands in LEFT_OUT, with the reason.
"""

from __future__ import annotations

import importlib
import inspect
import math
from dataclasses import dataclass, field

import numpy as np
from library_files import public_modules

import dplib
from dplib import (
    accounting,
    audit,
    baselines,
    batching,
    calibrate,
    conditional,
    contour,
    course,
    datasets,
    encoder_baselines,
    gaussian,
    lattice,
    matrices,
    mixtures,
    montecarlo,
    one_step,
    plotting,
    rare,
    renyi,
    results,
    sensitivity,
    studies,
    training,
    truth,
    utility,
)

LEFT_OUT = {
    "contour.bracket_epsilon": "takes an integral that only the accountants make",
    "contour.root_of": "takes an integral that only the accountants make",
    "datasets.cifar10": "reads a file of 163 MB, or the network",
    "encoder_baselines.Baseline": "made by the functions of its module",
    "montecarlo.Release": "made by montecarlo.release",
    "optimize.Objective": "takes functions for JAX",
    "optimize.Optimized": "made by optimize.optimize",
    "optimize.noise_slope": "compiles for seconds; its checks are those of optimize.optimize",
    "optimize.optimize": "compiles and runs for seconds; bad input stands in tests/unit/test_optimize.py",
    "optimize.validated": "made for the two optimisers",
    "plotting.finish": "takes axes",
    "plotting.label_line": "takes axes",
    "plotting.use_style": "takes no argument",
    "published.delta": "compiles for seconds; bad input stands in tests/unit/test_published.py",
    "published.draws": "a draw of 2^17 normals for each bin",
    "published.error_of": "a function for JAX",
    "published.estimator": "a function for JAX",
    "published.gram_of": "a function for JAX",
    "published.noise": "compiles for seconds; bad input stands in tests/unit/test_published.py",
    "published.noise_slope": "compiles for seconds; bad input stands in tests/unit/test_published.py",
    "published.optimize": "runs for minutes; bad input stands in tests/unit/test_published.py",
    "results.NoBracketError": "an exception",
    "studies.find": "searches a table that is given",
    "training.SeededNoiseWarning": "a warning",
    "training.Trained": "made by training.train",
    "training.cifar10_experiment": "trains for minutes",
    "training.correlated_noise": "compiles for seconds; bad input stands in tests/unit/test_training.py",
    "training.train": "compiles for seconds; bad input stands in tests/unit/test_training.py",
    "truth.Truth": "made by the functions of its module",
    "conditional.Rows": "made by conditional.rows",
    "conditional.void": "takes no argument",
    "course.verdict": "takes the exercise that course.check looks up",
    "conditional.check_setting": "the checks of conditional.rows",
    "accounting.check_request": "the checks of accounting.delta",
}

BAD = (
    math.nan, math.inf, -math.inf, -1, -1e-12, 0, 0.0, 2**63, 10**400, 1e308, 5e-324, 1.5, "1", "", None, True, 1j,
    b"x", {}, (), [], [0.5], [[0.5], [0.5, 1.0]], [math.nan], np.zeros((2, 3)), np.zeros((0, 2)), np.array([math.nan, 1.0]),
    np.array(["a"]), object(), len, float,
)  # fmt: skip


# --- arguments ---------------------------------------------------------------------------------------------


def one_of(*values):
    return lambda rng: values[rng.integers(len(values))]


def log_real(low, high, *borderline):
    """Log-uniform in [low, high]; one time in ten a borderline value."""

    def draw(rng):
        if borderline and rng.random() < 0.1:
            return borderline[rng.integers(len(borderline))]
        return float(np.exp(rng.uniform(math.log(low), math.log(high))))

    return draw


def whole(low, high, *borderline):
    real = log_real(low, high, *borderline)
    return lambda rng: int(round(value)) if math.isfinite(value := real(rng)) else value


def array(entry, low=1, high=6):
    return lambda rng: np.array([entry(rng) for _ in range(rng.integers(low, high + 1))])


SIGMA = log_real(0.05, 200, 1e-100, 1e100, 1e-3, 1e-2, 1e6)
NOISE = log_real(0.3, 30)
PROBABILITY = log_real(1e-6, 1, 0.0, 1.0, 1e-12, 5e-324, 1 - 1e-12, np.float32(0.1))
OPEN_PROBABILITY = log_real(1e-6, 1, 1.0, 1e-12)
EPSILON = log_real(1e-3, 400, 0.0, 1e-300, 1e-9, 1e4, 1e100)
DELTA = log_real(1e-12, 0.9, 1e-300, 1e-50, 1 - 1e-12, 0.5, 5e-324)
STEPS = whole(1, 10**6, 1, 2, 12, 10**9, 2**53)
FEW = whole(1, 40)
GROUP = whole(1, 100, 1, 1000, 10**4, 10**8)
DIRECTION = one_of("remove", "add", "both")
METHOD = one_of("auto", "auto", "contour", "lattice", "renyi")
SEED = whole(1, 1000, 0, 2**62)
CONFIDENCE = log_real(0.01, 0.99, 1e-9, 1 - 1e-9)


def encoder(rng):
    n, kind = int(rng.integers(1, 25)), rng.integers(7)
    if kind == 0:
        return matrices.identity(n)
    if kind == 1:
        return matrices.optimal_counting(n, bands=int(rng.integers(1, n + 1)))
    if kind == 2:
        return matrices.toeplitz(np.concatenate([[1.0], rng.random(n - 1)]))
    if kind == 3:
        return matrices.buffered_linear_toeplitz(n, [0.3, 0.2], [0.9, 0.5])
    if kind == 4:
        return matrices.binary_tree(2 ** int(rng.integers(0, 4)))
    if kind == 5:
        return matrices.tree_restarts(4 * n, 4)
    return matrices.dense(np.tril(rng.random((n, n))) + np.eye(n))


def square_encoder(rng):
    n = int(rng.integers(1, 13))
    return matrices.toeplitz(np.concatenate([[1.0], 0.5 * rng.random(n - 1)]))


def tree(rng):
    return matrices.binary_tree(2 ** int(rng.integers(0, 4)))


def two_rounds(rng):
    return matrices.dense(np.tril(rng.random((2, 2))) + np.eye(2))


def mixture(rng):
    if rng.random() < 0.4:
        return mixtures.binomial(int(rng.integers(1, 20)), float(rng.random()), NOISE(rng))
    probabilities = rng.dirichlet(np.ones(int(rng.integers(1, 6))))
    probabilities[-1] += 1 - math.fsum(probabilities)
    return mixtures.Mixture(
        np.maximum(np.cumsum(rng.random(len(probabilities))) - 0.3, 0.0), probabilities, NOISE(rng)
    )


def composition(rng):
    return [(mixture(rng), int(STEPS(rng))) for _ in range(rng.integers(1, 4))]


def real_composition(rng):
    return accounting.merged(composition(rng))


def gram(rng):
    b = int(rng.integers(1, 9))
    modes = rng.random((b, int(rng.integers(1, 12)))) * np.exp(rng.uniform(-3, 1.5))
    return modes @ modes.T


def curve(rng):
    return renyi.mixture_curve(mixture(rng))


def mechanism(rng):
    if rng.random() < 0.5:
        return dplib.PoissonDPSGD(NOISE(rng), float(rng.random()), int(STEPS(rng)))
    return dplib.LastIterate(NOISE(rng), float(rng.random()), int(rng.integers(1, 1000)))


def any_mechanism(rng):
    kind = rng.integers(4)
    if kind == 0:
        return dplib.PoissonDPSGD(SIGMA(rng), PROBABILITY(rng), STEPS(rng), GROUP(rng))
    if kind == 1:
        size = int(rng.integers(1, 10**6))
        return dplib.FixedBatchDPSGD(
            SIGMA(rng), int(rng.integers(1, size + 1)), size, STEPS(rng), int(rng.integers(1, 20))
        )
    if kind == 2:
        return dplib.LastIterate(SIGMA(rng), PROBABILITY(rng), int(rng.integers(1, 10**5)))
    b, e = int(rng.integers(1, 17)), int(rng.integers(1, 5))
    return dplib.BallsInBins(matrices.optimal_counting(b * e), SIGMA(rng), b, e)


def streams(rng):
    return batching.poisson(int(rng.integers(1, 50)), int(rng.integers(1, 20)), float(rng.random()), rng)


def generator(rng):
    return np.random.default_rng(int(rng.integers(1000)))


def vector_mixture(modes, probabilities, noise_multiplier, epsilon, direction):
    pair = mixtures.VectorMixture(modes, probabilities, noise_multiplier)
    return pair.reduced(), pair.gram(), pair.hockey_stick(epsilon, direction)


def use_mixture(sensitivities, probabilities, noise_multiplier, x, epsilon, direction):
    pair = mixtures.Mixture(sensitivities, probabilities, noise_multiplier)
    return pair.density(x), pair.survival(x), pair.hockey_stick(epsilon, direction)


def of_mechanism(make, question):
    """A function that makes a mechanism and asks it one question."""

    def call(*, direction, target, method=None, **arguments):
        options = {} if method is None else {"method": method}
        return getattr(make(**arguments), question)(target, direction, **options)

    return call


@dataclass(frozen=True)
class Target:
    """A function, generators of its arguments, and what its answers may be."""

    call: object
    arguments: dict = field(default_factory=dict)
    negative: bool = False  # whether numbers below 0 are sound
    infinite: bool = False
    slow: bool = False  # left out of the small version
    raises: tuple = ()  # what it may raise beside the usual refusals
    checked: bool = (
        True  # False: a lower floor, whose arguments its callers have checked; no wrong ones are put in
    )


# --- the table ---------------------------------------------------------------------------------------------

ARRAY = array(log_real(1e-3, 1e3, 0.0))
RECORDS, ROUNDS = whole(1, 1000, 1), whole(1, 50, 1)
POISSON = {
    "noise_multiplier": SIGMA,
    "sampling_probability": PROBABILITY,
    "steps": STEPS,
    "group_size": GROUP,
}
FIXED = {
    "noise_multiplier": SIGMA, "batch_size": whole(1, 1000), "dataset_size": whole(1, 10**7, 2**53), "steps": STEPS,
    "group_size": whole(1, 50, 10**6),
}  # fmt: skip
LAST = {"noise_multiplier": SIGMA, "sampling_probability": PROBABILITY, "steps": whole(1, 10**5, 10**8)}
MATRIX = {
    "encoder": encoder, "noise_multiplier": SIGMA, "sampling_probability": PROBABILITY, "min_separation": one_of(1, 1, 2),
    "tail_bound": one_of("best", "published", "joint", "aggregated", "pooled"),
}  # fmt: skip
BINS = {
    "encoder": lambda rng: matrices.optimal_counting(12, bands=int(rng.integers(1, 13))), "noise_multiplier": SIGMA,
    "batches_per_epoch": one_of(1, 3, 4, 12), "epochs": one_of(1, 3, 4, 12), "non_adaptive": one_of(False, True),
}  # fmt: skip
PAIR = {"epsilon": EPSILON, "direction": DIRECTION}
INVERSE = {"delta": DELTA, "direction": DIRECTION}
STEP = {"epsilon": EPSILON, "noise_multiplier": SIGMA, "sampling_probability": OPEN_PROBABILITY}
SCHEME = {"records": RECORDS, "batches_per_epoch": ROUNDS, "epochs": FEW}
ENCODED = {
    "encoder": encoder,
    "noise_multiplier": NOISE,
    "decoder": one_of("pseudo-inverse", "binary", "full"),
}
TRUTH = {
    "noise_multiplier": NOISE,
    "sampling_probability": PROBABILITY,
    "samples": whole(2, 64),
    "seed": SEED,
}
SEEDED = {"seed": SEED}


def asked(make, arguments, question, **more):
    target = EPSILON if question == "delta" else DELTA
    return Target(of_mechanism(make, question), arguments | {"target": target, "direction": DIRECTION} | more)


def ask_truth(make, options, *, epsilon, direction, **arguments):
    return make(**{k: v for k, v in arguments.items() if k in options}).delta(epsilon, direction)


TARGETS = {
    "mechanisms.PoissonDPSGD": asked(dplib.PoissonDPSGD, POISSON, "delta", method=METHOD),
    "mechanisms.PoissonDPSGD.epsilon": asked(dplib.PoissonDPSGD, POISSON, "epsilon", method=METHOD),
    "mechanisms.FixedBatchDPSGD": asked(dplib.FixedBatchDPSGD, FIXED, "delta", method=METHOD),
    "mechanisms.FixedBatchDPSGD.epsilon": asked(dplib.FixedBatchDPSGD, FIXED, "epsilon", method=METHOD),
    "mechanisms.LastIterate": asked(dplib.LastIterate, LAST, "delta", method=METHOD),
    "mechanisms.LastIterate.epsilon": asked(dplib.LastIterate, LAST, "epsilon", method=METHOD),
    "mechanisms.MatrixMechanism": asked(dplib.MatrixMechanism, MATRIX, "delta"),
    "mechanisms.MatrixMechanism.epsilon": asked(dplib.MatrixMechanism, MATRIX, "epsilon"),
    "mechanisms.BallsInBins": asked(dplib.BallsInBins, BINS, "delta"),
    "mechanisms.BallsInBins.epsilon": asked(dplib.BallsInBins, BINS, "epsilon"),
    "accounting.delta": Target(accounting.delta, {"composition": composition, "method": METHOD, **PAIR}),
    "accounting.epsilon": Target(accounting.epsilon, {"composition": composition, "method": METHOD, **INVERSE}),
    "accounting.log_delta": Target(accounting.log_delta, {"composition": composition, **PAIR}, negative=True),
    "accounting.merged": Target(accounting.merged, {"composition": composition}),
    "accounting.side_delta": Target(
        accounting.side_delta,
        {"parts": real_composition, "epsilon": EPSILON, "direction": one_of("remove", "add")}, checked=False),
    "accounting.side_log_delta": Target(
        accounting.side_log_delta,
        {"parts": real_composition, "epsilon": EPSILON, "direction": one_of("remove", "add")}, negative=True, checked=False),
    "audit.Audit": Target(audit.epsilon_lower_bound, {
        "scores_with": ARRAY, "scores_without": ARRAY, "delta": DELTA, "confidence": CONFIDENCE, "direction": DIRECTION,
    }, negative=True),
    "audit.epsilon_lower_bound": Target(audit.epsilon_lower_bound, {
        "scores_with": array(log_real(1e-3, 1e3), 20, 200), "scores_without": array(log_real(1e-3, 1e3), 20, 200),
        "delta": DELTA, "confidence": CONFIDENCE, "direction": DIRECTION,
    }, negative=True),
    "audit.transcripts": Target(audit.transcripts, {
        "batches": lambda rng: batching.poisson_stream(20, 12, 0.3, seed=1),
        "encoder": square_encoder, "noise_multiplier": SIGMA, "seed": SEED,
    }, negative=True, slow=True),
    "baselines.group_lemma": Target(baselines.group_lemma, {
        "mechanism": mechanism, "delta": DELTA, "group_size": FEW, "sharpened": one_of(True, False),
    }, infinite=True),
    "baselines.linear_extrapolation": Target(
        baselines.linear_extrapolation, {"mechanism": mechanism, "delta": DELTA, "group_size": FEW}
    ),
    "batching.balls_in_bins": Target(batching.balls_in_bins, SCHEME | {"rng": generator}),
    "batching.balls_in_bins_stream": Target(batching.balls_in_bins_stream, SCHEME | SEEDED),
    "batching.fixed_batch": Target(
        batching.fixed_batch, {"records": RECORDS, "rounds": ROUNDS, "batch_size": whole(1, 1000), "rng": generator}
    ),
    "batching.fixed_batch_stream": Target(
        batching.fixed_batch_stream, {"records": RECORDS, "rounds": ROUNDS, "batch_size": whole(1, 1000), **SEEDED}
    ),
    "batching.min_separation": Target(batching.min_separation, {
        "records": RECORDS, "rounds": ROUNDS, "separation": FEW, "sampling_probability": PROBABILITY, "rng": generator,
    }),
    "batching.min_separation_stream": Target(batching.min_separation_stream, {
        "records": RECORDS, "rounds": ROUNDS, "separation": FEW, "sampling_probability": PROBABILITY, **SEEDED,
    }),
    "batching.participation": Target(batching.participation, {"batches": streams, "records": whole(50, 60)}),
    "batching.poisson": Target(batching.poisson, {
        "records": RECORDS, "rounds": ROUNDS, "sampling_probability": PROBABILITY, "rng": generator,
    }),
    "batching.poisson_stream": Target(batching.poisson_stream, {
        "records": RECORDS, "rounds": ROUNDS, "sampling_probability": PROBABILITY, **SEEDED,
    }),
    "batching.round_robin": Target(batching.round_robin, SCHEME),
    "batching.round_robin_stream": Target(batching.round_robin_stream, SCHEME),
    "batching.shuffling": Target(batching.shuffling, SCHEME | {"rng": generator, "reshuffle": one_of(True, False)}),
    "batching.shuffling_stream": Target(batching.shuffling_stream, SCHEME | {"reshuffle": one_of(True, False), **SEEDED}),
    "calibrate.calibrate": Target(
        calibrate, {"mechanism": any_mechanism, "epsilon": EPSILON, "delta": DELTA, "direction": DIRECTION}
    ),
    "calibrate.effective_noise": Target(importlib.import_module("dplib.calibrate").effective_noise, {
        "sampling_probability": array(OPEN_PROBABILITY, 1, 3), "steps": STEPS, "epsilon": EPSILON, "delta": DELTA,
        "direction": DIRECTION, "tolerance": log_real(1e-9, 0.1),
    }),
    "conditional.candidates": Target(conditional.candidates, {"encoder": encoder, "min_separation": one_of(1, 2, 3)}, checked=False),
    "conditional.published_tail": Target(conditional.published_tail, {
        "encoder": encoder, "noise_multiplier": SIGMA, "sampling_probability": PROBABILITY, "delta_1": DELTA,
        "min_separation": one_of(1, 2),
    }, negative=True),
    "conditional.rows": Target(conditional.rows, {
        "encoder": encoder, "noise_multiplier": SIGMA, "sampling_probability": PROBABILITY, "delta_1": DELTA,
        "tail_bound": one_of("published", "joint", "aggregated", "pooled"), "min_separation": one_of(1, 2),
    }),
    "contour.Chernoff": Target(
        lambda composition, epsilon, direction: contour.Chernoff(composition, direction).log_delta(epsilon),
        {"composition": real_composition, "epsilon": EPSILON, "direction": one_of("remove", "add")}, negative=True, checked=False),
    "contour.side_epsilon": Target(contour.side_epsilon, {
        "composition": real_composition, "delta": DELTA, "direction": one_of("remove", "add"),
    }, checked=False),
    "contour.side_log_delta": Target(contour.side_log_delta, {
        "composition": real_composition, "epsilon": EPSILON, "direction": one_of("remove", "add"),
    }, negative=True, checked=False),
    "course.check": Target(course.check, {"identifier": one_of(*course.identifiers()), "answer": log_real(1e-3, 1e3)}),
    "course.identifiers": Target(course.identifiers),
    "course.passes": Target(course.passes, {"identifier": one_of(*course.identifiers()), "answer": log_real(1e-3, 1e3)}),
    "datasets.Dataset": Target(datasets.Dataset, {
        "train_features": lambda rng: rng.random((4, 3)), "train_labels": lambda rng: rng.integers(0, 3, 4),
        "test_features": lambda rng: rng.random((2, 3)), "test_labels": lambda rng: rng.integers(0, 3, 2),
    }),
    "datasets.digits": Target(datasets.digits, {"test_share": log_real(0.05, 0.9), "seed": SEED}, slow=True),
    "encoder_baselines.banded_balls_in_bins": Target(encoder_baselines.banded_balls_in_bins, {
        "epsilon": log_real(0.3, 8), "delta": log_real(1e-8, 1e-3), "batches_per_epoch": one_of(2, 4), "epochs": one_of(1, 2),
        "bands": one_of(1, 2, [1, 2]), "seed": SEED,
    }, slow=True),
    "encoder_baselines.banded_poisson": Target(encoder_baselines.banded_poisson, {
        "epsilon": log_real(0.3, 8), "delta": log_real(1e-8, 1e-3), "batches_per_epoch": one_of(2, 4), "epochs": one_of(1, 2),
        "bands": one_of(1, 2, [1, 2]),
    }, slow=True),
    "encoder_baselines.unamplified": Target(encoder_baselines.unamplified, {
        "epsilon": log_real(0.3, 8), "delta": log_real(1e-8, 1e-3), "batches_per_epoch": one_of(2, 4), "epochs": one_of(1, 2),
    }, slow=True),
    "encoder_baselines.without_amplification": Target(
        encoder_baselines.without_amplification, {"rounds": FEW, "bands": one_of(None, 1, 2)}, slow=True
    ),
    "gaussian.calibrate": Target(gaussian.calibrate, {"epsilon": EPSILON, "delta": DELTA}),
    "gaussian.delta": Target(gaussian.delta, {"mu": SIGMA, "epsilon": EPSILON}),
    "gaussian.epsilon": Target(gaussian.epsilon, {"mu": SIGMA, "delta": DELTA}),
    "gaussian.log_delta": Target(gaussian.log_delta, {"mu": SIGMA, "epsilon": EPSILON}, negative=True, infinite=True),
    "gaussian.log_tail_difference": Target(
        gaussian.log_tail_difference, {"x": array(log_real(1e-3, 1e2)), "shift": log_real(1e-3, 30)}, negative=True, infinite=True, checked=False),
    "lattice.side_epsilon": Target(lattice.side_epsilon, {
        "composition": real_composition, "delta": DELTA, "direction": one_of("remove", "add"),
    }, checked=False),
    "lattice.side_log_delta": Target(lattice.side_log_delta, {
        "composition": real_composition, "epsilon": EPSILON, "direction": one_of("remove", "add"),
    }, negative=True, checked=False),
    "matrices.binary_tree": Target(matrices.binary_tree, {"leaves": one_of(1, 2, 3, 8, 64, 2**20)}),
    "matrices.buffered_linear_toeplitz": Target(matrices.buffered_linear_toeplitz, {
        "n": whole(1, 1000, 1), "output_scale": array(log_real(1e-6, 2)), "buffer_decay": array(log_real(1e-3, 1)),
    }),
    "matrices.dense": Target(matrices.dense, {
        "array": lambda rng: np.tril(rng.random((3, 3))), "row_rounds": one_of(None, [0, 1, 2], [0, 0, 0]), "signed": one_of(True, False),
    }),
    "matrices.identity": Target(matrices.identity, {"n": whole(1, 10**6)}),
    "matrices.noise_stream": Target(matrices.noise_stream, {
        "encoder": square_encoder, "shape": one_of((), (2,), (2, 3), 4), "noise_multiplier": SIGMA, "seed": SEED,
        "estimate": one_of("dyadic", "full"),
    }, slow=True),
    "matrices.optimal_counting": Target(matrices.optimal_counting, {"n": whole(1, 10**5), "bands": one_of(None, 1, 5)}),
    "matrices.prefix_sums": Target(matrices.prefix_sums, {"n": whole(1, 500)}),
    "matrices.toeplitz": Target(matrices.toeplitz, {"coefficients": ARRAY, "signed": one_of(True, False)}),
    "matrices.tree_restarts": Target(matrices.tree_restarts, {"rounds": whole(1, 1000), "leaves": one_of(1, 2, 4, 8)}),
    "mixtures.Mixture": Target(use_mixture, {
        "sensitivities": one_of([0.0, 1.0], [1.0, 0.5], [0.0, 0.0]), "probabilities": one_of([0.5, 0.5], [1.0, 0.0], [0.1, 0.9]),
        "noise_multiplier": SIGMA, "x": ARRAY, "epsilon": array(EPSILON), "direction": one_of("remove", "add"),
    }),
    "mixtures.VectorMixture": Target(vector_mixture, {
        "modes": one_of([[0.0, 0.0], [1.0, 0.5]], [[0.3, 0.2], [0.1, 1.0]]), "probabilities": one_of([0.5, 0.5], [1.0, 0.0]),
        "noise_multiplier": NOISE, "epsilon": log_real(1e-2, 10), "direction": one_of("remove", "add"),
    }),
    "mixtures.binomial": Target(
        mixtures.binomial, {"trials": whole(1, 10**5, 10**8), "probability": PROBABILITY, "noise_multiplier": SIGMA}
    ),
    "mixtures.dominates": Target(mixtures.dominates, {"upper": mixture, "lower": mixture}),
    "mixtures.hypergeometric": Target(mixtures.hypergeometric, {
        "batch_size": whole(1, 1000), "dataset_size": whole(1, 10**7, 2**53), "group_size": whole(1, 1000, 10**6), "noise_multiplier": SIGMA,
    }),
    "mixtures.product": Target(mixtures.product, {
        "probabilities": array(PROBABILITY, 2, 2), "sensitivities": array(log_real(1e-3, 10, 0.0), 2, 2), "noise_multiplier": SIGMA,
    }),
    "montecarlo.certify": Target(montecarlo.certify, {
        "gram": gram, **PAIR, "samples": one_of(1000, 4096), "failure_probability": log_real(1e-12, 0.1), "seed": SEED,
    }),
    "montecarlo.estimate": Target(montecarlo.estimate, {
        "gram": gram, **PAIR, "samples": one_of(None, 2, 256), "relative_error": log_real(0.01, 0.5), "seed": SEED,
    }),
    "montecarlo.estimate_epsilon": Target(montecarlo.estimate_epsilon, {"gram": gram, **INVERSE, "samples": one_of(None, 256), "seed": SEED}),
    "montecarlo.estimate_noise": Target(
        montecarlo.estimate_noise, {"gram": gram, "epsilon": EPSILON, **INVERSE, "samples": one_of(None, 256), "seed": SEED}
    ),
    "montecarlo.plain": Target(montecarlo.plain, {"gram": gram, **PAIR, "samples": whole(2, 4096), "seed": SEED}),
    "montecarlo.release": Target(montecarlo.release, {
        "gram": gram, "epsilon": EPSILON, "delta": log_real(1e-3, 0.9), "threshold": one_of(None, None, 0.5),
        "most_samples": whole(100, 10**5), "seed": SEED,
    }),
    "montecarlo.verification_samples": Target(montecarlo.verification_samples, {"threshold": DELTA, "final": DELTA}),
    "one_step.boundary_delta": Target(one_step.boundary_delta, {
        "epsilon": EPSILON, "sampling_probability": OPEN_PROBABILITY, "condition": one_of("exact", "threshold"),
    }),
    "one_step.delta": Target(one_step.delta, STEP),
    "one_step.effective_noise_falls": Target(one_step.effective_noise_falls, {
        "epsilon": EPSILON, "delta": DELTA, "sampling_probability": OPEN_PROBABILITY, "condition": one_of("exact", "threshold"),
    }),
    "one_step.elasticity": Target(one_step.elasticity, STEP, infinite=True),
    "one_step.noise_multiplier": Target(
        one_step.noise_multiplier, {"epsilon": EPSILON, "delta": DELTA, "sampling_probability": OPEN_PROBABILITY}
    ),
    "one_step.noise_slope": Target(
        one_step.noise_slope, {"epsilon": EPSILON, "delta": DELTA, "sampling_probability": OPEN_PROBABILITY}, negative=True
    ),
    "one_step.peak_probability": Target(one_step.peak_probability, {"epsilon": EPSILON, "delta": DELTA}),
    "one_step.sharp_constant": Target(one_step.sharp_constant, {"condition": one_of("exact", "threshold")}),
    "one_step.threshold": Target(one_step.threshold, STEP, negative=True),
    "one_step.threshold_distances": Target(one_step.threshold_distances, STEP, negative=True),
    "one_step.unsampled_epsilon": Target(
        one_step.unsampled_epsilon, {"epsilon": EPSILON, "sampling_probability": OPEN_PROBABILITY}
    ),
    "plotting.curve": Target(plotting.curve, {"index": whole(1, 8, 0)}),
    "plotting.figure": Target(plotting.figure, {"rows": one_of(1, 2), "columns": one_of(1, 2), "height": one_of(None, 2.0)}, slow=True),
    "rare.side_epsilon": Target(rare.side_epsilon, {
        "mixture": mixture, "rounds": STEPS, "delta": DELTA, "direction": one_of("remove", "add"),
    }, checked=False),
    "rare.side_log_delta": Target(rare.side_log_delta, {
        "mixture": mixture, "rounds": STEPS, "epsilon": EPSILON, "direction": one_of("remove", "add"),
    }, negative=True, checked=False),
    "renyi.compose": Target(renyi.compose, {"parts": lambda rng: [(curve(rng), int(STEPS(rng))) for _ in range(2)]}),
    "renyi.composition_curve": Target(
        lambda parts, direction: renyi.to_delta(renyi.composition_curve(parts, direction), 1.0), {"parts": composition, "direction": DIRECTION}
    ),
    "renyi.divergence": Target(
        renyi.divergence, {"mixture": mixture, "order": log_real(1.01, 1e4, 1 + 1e-12), "direction": DIRECTION}, infinite=True
    ),
    "renyi.gaussian": Target(renyi.gaussian, {"order": log_real(1.01, 1e4, 1 + 1e-12), "noise_multiplier": SIGMA}, infinite=True),
    "renyi.laplace": Target(renyi.laplace, {"order": log_real(1.01, 1e4, 1 + 1e-12), "scale": SIGMA}),
    "renyi.log_delta": Target(renyi.log_delta, {
        "curve": curve, "epsilon": EPSILON, "rounds": STEPS, "conversion": one_of("improved", "classic"),
    }, negative=True, infinite=True),
    "renyi.mixture_curve": Target(renyi.mixture_curve, {"mixture": mixture, "direction": DIRECTION}),
    "renyi.randomized_response": Target(renyi.randomized_response, {"order": log_real(1.01, 1e4), "probability": log_real(0.5, 1)}, infinite=True),
    "renyi.subsampled_gaussian": Target(renyi.subsampled_gaussian, {
        "order": log_real(1.01, 1e4, 1 + 1e-12), "noise_multiplier": SIGMA, "sampling_probability": PROBABILITY, "direction": DIRECTION,
    }, infinite=True),
    "renyi.to_delta": Target(renyi.to_delta, {"curve": curve, "epsilon": EPSILON, "rounds": STEPS, "conversion": one_of("improved", "classic")}),
    "renyi.to_epsilon": Target(renyi.to_epsilon, {"curve": curve, "delta": DELTA, "rounds": STEPS, "conversion": one_of("improved", "classic")}),
    "renyi.zhu_wang": Target(renyi.zhu_wang, {
        "order": whole(2, 64), "epsilon_of_order": lambda rng: lambda order: order / 8, "sampling_probability": PROBABILITY, "constant": one_of(1, 3),
    }),
    "results.Bracket": Target(results.Bracket, {"lower": log_real(1e-3, 1), "upper": log_real(1e-3, 1)}, negative=True, infinite=True),
    "results.Certificate": Target(results.Certificate, {"upper": DELTA, "failure_probability": DELTA, "samples": STEPS}),
    "results.Estimate": Target(results.Estimate, {
        "value": DELTA, "standard_error": DELTA, "upper": DELTA, "confidence": CONFIDENCE,
    }, negative=True),
    "results.UpperBound": Target(results.UpperBound, {"upper": DELTA}),
    "sensitivity.min_separation": Target(sensitivity.min_separation, {
        "encoder": encoder, "separation": FEW, "participations": one_of(None, 1, 3),
    }),
    "sensitivity.pattern": Target(sensitivity.pattern, {"encoder": encoder, "rounds": one_of([0], [0, 1], [0, 0], [100])}),
    "sensitivity.round_robin": Target(sensitivity.round_robin, {"encoder": encoder, "period": FEW, "participations": one_of(None, 1, 3)}),
    "sensitivity.single": Target(sensitivity.single, {"encoder": encoder}),
    "studies.load": Target(studies.load, {"name": one_of(*studies.names())}),
    "studies.names": Target(studies.names),
    "training.Config": Target(training.Config, {
        "noise_multiplier": SIGMA, "clip_norm": SIGMA, "encoder": one_of(None, matrices.identity(4)), "learning_rate": log_real(1e-4, 1),
        "momentum": log_real(0.1, 0.99, 0.0), "divisor": one_of(1.0, 100.0, "expected-size"), "adjacency": one_of("zero-out", "add-remove"), "microbatch": one_of(None, 1, 64),
        "noise_memory": one_of("keep", "remake"),
    }),
    "training.memory_rows": Target(training.memory_rows, {"encoder": square_encoder, "noise_memory": one_of("keep", "remake")}),
    "truth.all_modes": Target(
        lambda **a: ask_truth(truth.all_modes, ("encoder", *TRUTH), **a), {"encoder": square_encoder, **TRUTH, **PAIR}, slow=True
    ),
    "truth.tree": Target(lambda **a: ask_truth(truth.tree, ("encoder", *TRUTH), **a), {"encoder": tree, **TRUTH, **PAIR}, slow=True),
    "truth.two_rounds": Target(
        lambda **a: ask_truth(truth.two_rounds, ("encoder", "noise_multiplier", "sampling_probability"), **a),
        {"encoder": two_rounds, "noise_multiplier": NOISE, "sampling_probability": PROBABILITY, **PAIR}, slow=True,
    ),
    "utility.deviations": Target(utility.deviations, ENCODED),
    "utility.largest_error": Target(utility.largest_error, ENCODED),
    "utility.rmse": Target(utility.rmse, ENCODED),
}  # fmt: skip


def public_functions():
    """ "module.name" of every public function and class of dplib."""
    found = []
    for module in public_modules()[1:]:
        owner = importlib.import_module(module)
        for name, value in sorted(vars(owner).items()):
            made_here = getattr(value, "__module__", "") == owner.__name__
            if (
                not name.startswith("_")
                and made_here
                and (inspect.isfunction(value) or inspect.isclass(value))
            ):
                found.append(f"{module}.{name}".removeprefix("dplib."))
    return found
