"""Arguments for every public function of dplib, by the name of the argument: valid, borderline, and now and then wrong.

An argument that means something else in one function has its strategy there, in OTHERS. What is not called stands in
LEFT_OUT, with the reason.
"""

import functools
import importlib
import inspect
import math
import traceback
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from library_files import public_modules
from property_cases import logs

import dplib
from dplib import accounting, batching, contour, matrices, mixtures, renyi, results
from dplib.lessons import course, studies

LEFT_OUT = {
    "accounting.check_request": "the checks of accounting.delta",
    "audit.Audit": "made by audit.epsilon_lower_bound",
    "conditional.Rows": "made by conditional.rows",
    "conditional.check_setting": "the checks of conditional.rows",
    "conditional.void": "takes no argument",
    "contour.bracket_epsilon": "takes an integral that only the accountants make",
    "contour.root_of": "takes an integral that only the accountants make",
    "course.identifiers": "takes no argument",
    "encoder_baselines.Baseline": "made by the functions of its module",
    "montecarlo.Release": "made by montecarlo.release",
    "optimize.Objective": "takes functions for JAX",
    "optimize.Optimized": "made by optimize.optimize",
    "optimize.noise_slope": "compiles for seconds; its checks are those of optimize.optimize",
    "optimize.optimize": "compiles and runs for seconds; bad input stands in tests/optimize/test_optimize.py",
    "plotting.figure": "opens a figure in each call",
    "plotting.finish": "takes axes",
    "plotting.label_line": "takes axes",
    "plotting.use_style": "takes no argument",
    "published.draws": "a draw of 2^17 normals for each bin",
    "published.error_of": "a function for JAX",
    "published.gram_of": "a function for JAX",
    "published.noise_slope": "compiles for seconds; bad input stands in tests/optimize/test_published.py",
    "published.optimize": "runs for minutes; bad input stands in tests/optimize/test_published.py",
    "results.NoBracketError": "an exception",
    "studies.find": "searches a table that is given",
    "studies.names": "takes no argument",
    "training.SeededNoiseWarning": "a warning",
    "training.Trained": "made by training.train",
    "training.correlated_noise": "compiles for seconds; bad input stands in tests/training/test_training.py",
    "training.train": "compiles for seconds; bad input stands in tests/training/test_training.py",
    "truth.Truth": "made by the functions of its module",
}

BAD = (
    math.nan, math.inf, -math.inf, -1, -1e-12, 0, 0.0, 2**63, 10**400, 1e308, 5e-324, 1.5, "1", "", None, True, 1j,
    b"x", {}, (), [], [0.5], [[0.5], [0.5, 1.0]], [math.nan], np.zeros((2, 3)), np.zeros((0, 2)), np.array([math.nan, 1.0]),
    np.array(["a"]), object(), len, float,
)  # fmt: skip


# --- strategies --------------------------------------------------------------------------------------------


def mostly(usual, *borderline):
    """One time in eight a borderline value."""
    return st.integers(0, 7).flatmap(lambda turn: st.sampled_from(borderline) if turn == 7 else usual)


def whole(low, high, *borderline):
    usual = logs(low, high).map(lambda x: int(round(x)))
    return mostly(usual, *borderline) if borderline else usual


def one_of(*values):
    return st.sampled_from(values)


def array(entry, least=1, most=6):
    return st.lists(entry, min_size=least, max_size=most).map(np.array)


def made(make):
    """What `make` makes with a random generator."""
    return st.integers(0, 2**32 - 1).map(lambda seed: make(np.random.default_rng(seed)))


SIGMA = mostly(logs(0.05, 200), 1e-100, 1e100, 1e-3, 1e-2, 1e6)
NOISE = logs(0.3, 30)
PROBABILITY = mostly(logs(1e-6, 1), 0.0, 1.0, 1e-12, 5e-324, 1 - 1e-12, np.float32(0.1))
OPEN_PROBABILITY = mostly(logs(1e-6, 1), 1.0, 1e-12)
EPSILON = mostly(logs(1e-3, 400), 0.0, 1e-300, 1e-9, 1e4, 1e100)
DELTA = mostly(logs(1e-12, 0.9), 1e-300, 1e-50, 1 - 1e-12, 0.5, 5e-324)
STEPS = whole(1, 10**6, 1, 2, 12, 10**9, 2**53)
FEW = whole(1, 40)
POSITIVE = array(mostly(logs(1e-3, 1e3), 0.0))
ONE_DIRECTION = one_of("remove", "add")


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
    return matrices.toeplitz(np.concatenate([[1.0], 0.5 * rng.random(int(rng.integers(0, 12)))]))


def mixture(rng, noise=None):
    noise = noise or float(np.exp(rng.uniform(-1, 3)))
    if rng.random() < 0.4:
        return mixtures.binomial(int(rng.integers(1, 20)), float(rng.random()), noise)
    probabilities = rng.dirichlet(np.ones(int(rng.integers(1, 6))))
    probabilities[-1] += 1 - math.fsum(probabilities)
    return mixtures.Mixture(np.maximum(np.cumsum(rng.random(len(probabilities))) - 0.3, 0.0), probabilities, noise)


def composition(rng):
    return [(mixture(rng), int(round(10 ** rng.uniform(0, 6)))) for _ in range(rng.integers(1, 4))]


def gram(rng):
    shape = int(rng.integers(1, 9)), int(rng.integers(1, 12))
    modes = rng.random(shape) * np.exp(rng.uniform(-3, 1.5))
    return modes @ modes.T


def curve(rng):
    return renyi.mixture_curve(mixture(rng))


def mechanism(rng):
    noise, q, steps = float(np.exp(rng.uniform(-1, 3))), float(rng.random()), int(round(10 ** rng.uniform(0, 3)))
    if rng.random() < 0.5:
        return dplib.PoissonDPSGD(noise, q, steps)
    return dplib.LastIterate(noise, q, steps)


def any_mechanism(rng):
    noise, size = float(np.exp(rng.uniform(-3, 5))), int(rng.integers(1, 10**6))
    b, e = int(rng.integers(1, 17)), int(rng.integers(1, 5))
    return [
        lambda: mechanism(rng),
        lambda: dplib.FixedBatchDPSGD(noise, int(rng.integers(1, size + 1)), size, int(10 ** rng.uniform(0, 6)), int(rng.integers(1, 20))),
        lambda: dplib.BallsInBins(matrices.optimal_counting(b * e), noise, b, e),
    ][rng.integers(3)]()


ARGUMENTS = {
    "adjacency": one_of("zero-out", "add-remove"),
    "answer": logs(1e-3, 1e3),
    "array": made(lambda rng: np.tril(rng.random((3, 3)))),
    "bands": one_of(None, 1, 2),
    "batch_size": whole(1, 1000),
    "batches": made(lambda rng: batching.poisson(int(rng.integers(1, 50)), int(rng.integers(1, 20)), float(rng.random()), rng)),
    "batches_per_epoch": whole(1, 50),
    "buffer_decay": array(logs(1e-3, 1)),
    "clip_norm": SIGMA,
    "coefficients": POSITIVE,
    "composition": made(composition),
    "condition": one_of("exact", "threshold"),
    "confidence": mostly(logs(0.5, 0.99), 1e-9, 1 - 1e-9),
    "constant": one_of(1, 3),
    "conversion": one_of("improved", "classic"),
    "curve": made(curve),
    "dataset_size": whole(1, 10**7, 2**53),
    "decoder": one_of("pseudo-inverse", "binary", "full"),
    "delta": DELTA,
    "delta_1": DELTA,
    "description": one_of("", "x"),
    "direction": one_of("remove", "add", "both"),
    "divisor": one_of(1.0, 100.0, "expected-size"),
    "encoder": made(encoder),
    "epochs": FEW,
    "epsilon": EPSILON,
    "epsilon_of_order": one_of(lambda order: order / 8),
    "estimate": one_of("dyadic", "full"),
    "failure_probability": logs(1e-12, 0.1),
    "final": DELTA,
    "gram": made(gram),
    "group_size": whole(1, 100, 1, 1000, 10**4, 10**8),
    "identifier": one_of(*course.identifiers()),
    "index": whole(1, 8, 0),
    "learning_rate": logs(1e-4, 1),
    "leaves": one_of(1, 2, 3, 4, 8),
    "lower": logs(1e-3, 1),
    "mechanism": made(mechanism),
    "method": one_of("auto", "contour", "lattice", "renyi"),
    "microbatch": one_of(None, 1, 64),
    "min_separation": one_of(1, 2),
    "mixture": made(mixture),
    "modes": one_of([[0.0, 0.0], [1.0, 0.5]], [[0.3, 0.2], [0.1, 1.0]]),
    "momentum": mostly(logs(0.1, 0.99), 0.0),
    "most_samples": whole(100, 10**5),
    "mu": SIGMA,
    "n": whole(1, 500),
    "name": one_of(*studies.names()),
    "noise_multiplier": SIGMA,
    "non_adaptive": one_of(False, True),
    "order": mostly(logs(1.01, 1e4), 1 + 1e-12),
    "output_scale": array(logs(1e-6, 2)),
    "participations": one_of(None, 1, 3),
    "parts": made(composition),
    "period": FEW,
    "probabilities": one_of([0.5, 0.5], [1.0, 0.0], [0.1, 0.9]),
    "probability": PROBABILITY,
    "records": whole(1, 1000, 1),
    "relative_error": logs(0.01, 0.5),
    "reshuffle": one_of(True, False),
    "rng": made(lambda rng: rng),
    "rounds": whole(1, 50, 1),
    "row_rounds": one_of(None, [0, 1, 2], [0, 0, 0]),
    "sampling_probability": PROBABILITY,
    "scale": SIGMA,
    "scores_with": array(logs(1e-3, 1e3), 9, 200),
    "scores_without": array(logs(1e-3, 1e3), 9, 200),
    "seed": whole(1, 1000, 0, 2**62),
    "sensitivities": one_of([0.0, 1.0], [1.0, 0.5], [0.0, 0.0]),
    "separation": FEW,
    "settings": one_of([1.0, 4.0], []),
    "shape": one_of((), (2,), (2, 3), 4),
    "sharpened": one_of(True, False),
    "shift": logs(1e-3, 30),
    "signed": one_of(True, False),
    "standard_error": DELTA,
    "steps": STEPS,
    "tail_bound": one_of("published", "joint", "aggregated", "pooled"),
    "task": one_of(repr, str),
    "test_features": made(lambda rng: rng.random((2, 3))),
    "test_labels": made(lambda rng: rng.integers(0, 3, 2)),
    "test_share": logs(0.05, 0.9),
    "threshold": DELTA,
    "train_features": made(lambda rng: rng.random((4, 3))),
    "train_labels": made(lambda rng: rng.integers(0, 3, 4)),
    "trials": whole(1, 10**5, 10**8),
    "upper": DELTA,
    "value": DELTA,
    "x": array(logs(1e-3, 1e2)),
}  # fmt: skip

_RENYI = {"rounds": STEPS}
_FLOOR = {"direction": ONE_DIRECTION, "rounds": STEPS}
_REAL = {"composition": made(lambda rng: accounting.merged(composition(rng))), "direction": ONE_DIRECTION}
_DRAWN = {"samples": one_of(None, 2, 256)}
_OPEN = {"sampling_probability": OPEN_PROBABILITY}
_BASELINE = {"epsilon": logs(0.3, 8), "delta": logs(1e-8, 1e-3), "batches_per_epoch": one_of(2, 4), "epochs": one_of(1, 2)}
_TRUTH = {"encoder": made(square_encoder), "noise_multiplier": NOISE, "samples": whole(1024, 2000)}
_MIXTURE = {"epsilon": array(EPSILON), "direction": ONE_DIRECTION}

OTHERS = {
    "accounting.side_delta": {"parts": _REAL["composition"], **_FLOOR},
    "accounting.side_log_delta": {"parts": _REAL["composition"], **_FLOOR},
    "audit.transcripts": {"encoder": one_of(matrices.optimal_counting(12), matrices.identity(12)), "batches": made(lambda rng: batching.poisson_stream(20, 12, 0.3, seed=1))},
    "baselines.group_lemma": {"group_size": FEW},
    "baselines.linear_extrapolation": {"group_size": FEW},
    "batching.participation": {"records": whole(50, 60)},
    "calibration.calibrate": {"mechanism": made(any_mechanism), "method": one_of("auto", "auto", "renyi", "estimate"), "seed": one_of(0), "samples": one_of(None), "failure_probability": one_of(None)},
    "calibration.effective_noise": {"sampling_probability": array(OPEN_PROBABILITY, 1, 3)},
    "contour.Chernoff": _REAL,
    "contour.side_epsilon": _REAL,
    "contour.side_log_delta": _REAL,
    "encoder_baselines.banded_balls_in_bins": _BASELINE,
    "encoder_baselines.banded_poisson": _BASELINE,
    "encoder_baselines.unamplified": _BASELINE,
    "encoder_baselines.without_amplification": {"rounds": FEW, "batches_per_epoch": one_of(None)},
    "lattice.side_epsilon": _REAL,
    "lattice.side_log_delta": _REAL,
    "matrices.noise_stream": {"encoder": made(square_encoder)},
    "matrices.tree_restarts": {"rounds": whole(1, 1000)},
    "mechanisms.BallsInBins": {
        "encoder": made(lambda rng: matrices.optimal_counting(12, bands=int(rng.integers(1, 13)))), "batches_per_epoch": one_of(3, 4),
        "epochs": one_of(3, 4),
    },
    "mechanisms.LastIterate": {"steps": whole(1, 10**5, 10**8)},
    "mechanisms.MatrixMechanism": {"tail_bound": one_of("best", "published", "joint", "aggregated", "pooled")},
    "mixtures.Mixture": _MIXTURE | {"x": POSITIVE},
    "mixtures.VectorMixture": _MIXTURE | {"noise_multiplier": NOISE, "epsilon": logs(1e-2, 10)},
    "mixtures.dominates": dict.fromkeys(("upper", "lower"), made(lambda rng: mixture(rng, 1.0))),
    "mixtures.product": {"probabilities": array(PROBABILITY, 2, 2), "sensitivities": array(mostly(logs(1e-3, 10), 0.0), 2, 2)},
    "montecarlo.certify": {"samples": one_of(1000, 4096)},
    "montecarlo.estimate": _DRAWN,
    "montecarlo.estimate_epsilon": _DRAWN,
    "montecarlo.estimate_noise": _DRAWN,
    "montecarlo.plain": {"samples": whole(2, 4096)},
    "montecarlo.release": {"delta": logs(1e-3, 0.9), "threshold": one_of(None, 0.5)},
    "one_step.boundary_delta": _OPEN,
    "one_step.delta": _OPEN,
    "one_step.effective_noise_falls": _OPEN,
    "one_step.elasticity": _OPEN,
    "one_step.noise_multiplier": _OPEN,
    "one_step.noise_slope": _OPEN,
    "one_step.threshold": _OPEN,
    "one_step.threshold_distances": _OPEN,
    "one_step.unsampled_epsilon": _OPEN,
    "renyi.compose": {"parts": made(lambda rng: [(curve(rng), int(rng.integers(1, 1000))) for _ in range(2)])},
    "renyi.log_delta": _RENYI,
    "renyi.randomized_response": {"probability": logs(0.5, 1)},
    "renyi.to_delta": _RENYI,
    "renyi.to_epsilon": _RENYI,
    "renyi.zhu_wang": {"order": whole(2, 64)},
    "results.Bracket": {"upper": logs(1e-3, 10)},
    "results.Certificate": {"failure_probability": DELTA, "samples": STEPS},
    "sensitivity.pattern": {"rounds": one_of([0], [0, 1], [0, 0], [100])},
    "training.Config": {"encoder": one_of(None, matrices.identity(4))},
    "training.memory_rows": {"encoder": made(square_encoder)},
    "truth.all_modes": _TRUTH,
    "truth.tree": _TRUTH | {"encoder": made(lambda rng: matrices.binary_tree(2 ** int(rng.integers(0, 4))))},
    "truth.two_rounds": _TRUTH | {"encoder": made(lambda rng: matrices.dense(np.tril(rng.random((2, 2))) + np.eye(2)))},
}  # fmt: skip

# Lower floors, whose arguments their callers have checked: no wrong ones are put in.
UNCHECKED = {
    "accounting.side_delta", "accounting.side_log_delta", "conditional.candidates", "contour.Chernoff", "contour.side_epsilon",
    "contour.side_log_delta", "gaussian.log_tail_difference", "lattice.side_epsilon", "lattice.side_log_delta",
}  # fmt: skip
# Logarithms, noise, and what is signed by its nature.
NEGATIVE = {
    "accounting.log_delta", "accounting.side_log_delta", "audit.epsilon_lower_bound", "audit.transcripts", "conditional.published_tail",
    "contour.Chernoff", "contour.side_log_delta", "gaussian.log_delta", "gaussian.log_tail_difference", "lattice.side_log_delta",
    "one_step.noise_slope", "one_step.threshold", "one_step.threshold_distances", "renyi.log_delta",
    "results.Bracket", "results.Estimate",
}  # fmt: skip
# log 0; a lemma or a divergence without a bound.
INFINITE = {
    "baselines.group_lemma", "gaussian.log_delta", "gaussian.log_tail_difference", "one_step.elasticity", "renyi.divergence",
    "renyi.gaussian", "renyi.log_delta", "renyi.randomized_response", "renyi.subsampled_gaussian", "results.Bracket",
}  # fmt: skip


# --- functions ---------------------------------------------------------------------------------------------


def public_functions():
    """{"module.name": function or class} of all that dplib has."""
    found = {}
    for module in public_modules()[1:]:
        owner = importlib.import_module(module)
        for name, value in sorted(vars(owner).items()):
            here = getattr(value, "__module__", "") == owner.__name__ or (
                module == "dplib.mechanisms" and name in owner.__all__
            )
            if not name.startswith("_") and here and (inspect.isfunction(value) or inspect.isclass(value)):
                found[f"{module}.{name}".removeprefix("dplib.").removeprefix("lessons.")] = value
    return found


def _mechanism(make, question):
    def ask(target, direction, method=None, **arguments):
        options = {} if method is None else {"method": method}
        return getattr(make(**arguments), question)(target, direction, **options)

    return ask


def _use_mixture(make):
    def use(x=None, *, epsilon, direction, **arguments):
        pair = make(**arguments)
        rest = (pair.reduced(), pair.gram()) if x is None else (pair.density(x), pair.survival(x))
        return *rest, pair.hockey_stick(epsilon, direction)

    return use


def _ask_truth(make):
    return lambda epsilon, direction, **arguments: make(**arguments).delta(epsilon, direction)


@functools.cache
def cases():
    """{name: (what is called, {argument: strategy}, arguments with a default)}, two questions to each mechanism."""
    found = {}
    functions = public_functions() | {"mechanisms.BallsInBins": dplib.BallsInBins}
    for name, function in functions.items():
        if name in LEFT_OUT:
            continue
        strategies = ARGUMENTS | OTHERS.get(name, {})
        parameters = inspect.signature(function).parameters
        known = {key: strategies[key] for key in parameters if key in strategies}
        missing = [key for key, one in parameters.items() if one.default is one.empty and one.kind != one.VAR_KEYWORD and key not in known]
        assert not missing, f"{name}: no strategy for {missing}"
        optional = sorted(key for key in known if parameters[key].default is not parameters[key].empty)
        asked = {key: strategies[key] for key in ("epsilon", "direction")}
        if name.startswith("mechanisms."):
            method = {"method": ARGUMENTS["method"]} if name not in ("mechanisms.BallsInBins", "mechanisms.MatrixMechanism") else {}
            for question, target in (("delta", EPSILON), ("epsilon", DELTA)):
                more = method | {"target": target, "direction": ARGUMENTS["direction"]}
                found[f"{name}.{question}"] = _mechanism(function, question), known | more, optional
        elif name in ("mixtures.Mixture", "mixtures.VectorMixture"):
            x = {"x": strategies["x"]} if name == "mixtures.Mixture" else {}
            found[name] = _use_mixture(function), known | x | asked, optional
        elif name.startswith("truth."):
            found[name] = _ask_truth(function), known | asked, optional
        elif name == "contour.Chernoff":
            found[name] = lambda epsilon, **arguments: contour.Chernoff(**arguments).log_delta(epsilon), known | {"epsilon": EPSILON}, optional
        else:
            found[name] = function, known, optional
    return found


@st.composite
def arguments(draw, name):
    """Arguments of one call, some with their defaults; one time in four one of them is nearly always wrong."""
    _, strategies, optional = cases()[name]
    left_out = draw(st.sets(st.sampled_from(optional))) if optional else ()
    drawn = {key: draw(strategy) for key, strategy in strategies.items() if key not in left_out}
    if name not in UNCHECKED and drawn and draw(st.integers(0, 3)) == 3:
        drawn[draw(st.sampled_from(list(drawn)))] = draw(st.sampled_from(BAD))
    return drawn


# --- judgement ---------------------------------------------------------------------------------------------

_OWN_WORDS = ("must", "got", "cannot", "needs", "too ", "no ", "exact", "failed for")  # of dplib's messages


def unsound(value, name=""):
    """What is wrong with a returned value, or None."""
    if isinstance(value, results.Bracket):
        value = (value.lower, value.upper)
    elif isinstance(value, (results.UpperBound, results.Certificate)):
        value = value.upper
    elif isinstance(value, results.Estimate):
        value = (value.value, value.standard_error, value.upper)
    if isinstance(value, (tuple, list)):
        return next((wrong for part in value if (wrong := unsound(part, name))), None)
    if isinstance(value, (bool, str, dict)) or not isinstance(value, (int, float, np.floating, np.ndarray)):
        return None
    numbers = np.asarray(value)
    if not np.issubdtype(numbers.dtype, np.floating):
        return None
    if np.isnan(numbers).any():
        return "not a number"
    if name not in INFINITE and np.isinf(numbers).any():
        return "infinite"
    return "below 0" if name not in NEGATIVE and (numbers < 0).any() else None


def of_stated_type(function, value):
    """Whether a value has a type that the function's signature names, if it names one."""
    stated = inspect.signature(function).return_annotation
    if not isinstance(stated, str) or not inspect.isfunction(function):
        return True
    names = {part.partition("[")[0].rpartition(".")[2].strip() for part in stated.split("|")}
    return bool(names & {kind.__name__ for kind in type(value).__mro__} | names & ({"None"} if value is None else set()))


def unclear(error):
    """What is wrong with a refusal: it has to come from dplib itself, in its own words."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    foreign = "dplib" not in Path(last.filename).parts
    clear = isinstance(error, results.NoBracketError) or any(word in str(error) for word in _OWN_WORDS)
    return f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})" if foreign or not clear else None
