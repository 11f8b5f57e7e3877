"""Bad input: every public function refuses it before any work, naming argument, value and allowed range."""

import dataclasses
import inspect
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dplib
from dplib import (
    accounting,
    audit,
    batching,
    calibrate,
    contour,
    gaussian,
    lattice,
    matrices,
    mechanisms,
    mixtures,
    optimize,
    results,
    training,
)
from dplib._base import validate
from dplib.lessons import baselines, datasets

NAN, INF = math.nan, math.inf

# --- what is bad, by kind of argument: (value, exception, words of the message) ------------------------

NOT_A_NUMBER = [
    (value, TypeError) for value in ("1", None, True, np.True_, 1j, [0.5], (), {}, np.array([0.5]))
]
NOT_FINITE = [(value, ValueError) for value in (NAN, INF, -INF, np.float64("nan"), 10**400)]


def scalar(words, *outside):
    """The rows of a real argument: kinds that are no number, no finite number, and numbers outside."""
    rows = NOT_A_NUMBER + NOT_FINITE + [(value, ValueError) for value in outside]
    return [(value, error, (words, repr(value))) for value, error in rows]


def count(words, *outside):
    rows = NOT_A_NUMBER + [(v, ValueError) for v in (NAN, INF, -INF, 1.5, Fraction(7, 2), *outside)]
    return [(value, error, (words, repr(value))) for value, error in rows]


def one_of(*allowed):
    rows = [(value, ValueError) for value in ("sideways", "", allowed[0].upper(), allowed[0] + " ")]
    rows += [(value, TypeError) for value in (None, 1, True, b"add", [allowed[0]])]
    return [(value, error, (*allowed, repr(value))) for value, error in rows]


FLAT = [
    ("1.0", TypeError, ("real numbers", "'1.0'")),
    (None, TypeError, ("real numbers", "None")),
    (["0.5", "0.5"], TypeError, ("real numbers",)),
    ([0.5, None], TypeError, ("real numbers", "None")),
    ([True, False], TypeError, ("real numbers", "True")),
    ([0.5, 0.5j], TypeError, ("real numbers",)),
    ([0.5, NAN], ValueError, ("finite", "nan")),
    ([0.5, INF], ValueError, ("finite", "inf")),
    ([-INF, 0.5], ValueError, ("finite", "-inf")),
    ([], ValueError, ("empty",)),
    (np.zeros((0, 2)), ValueError, ("empty",)),
    ([[0.5], [0.5, 0.0]], ValueError, ("ragged",)),
    ([[0.5, 0.5]], ValueError, ("flat", "(1, 2)")),
    (0.5, ValueError, ("flat", "()")),
]
GRID = [
    ("1", TypeError, ("real numbers", "'1'")),
    (None, TypeError, ("real numbers", "None")),
    (["a", "b"], TypeError, ("real numbers", "'a'")),
    ([0.0, None], TypeError, ("real numbers", "None")),
    ([True], TypeError, ("real numbers", "True")),
    (1j, TypeError, ("real numbers", "1j")),
    ([[0.0], [0.0, 1.0]], ValueError, ("regular", "[0.0, 1.0]")),
    (NAN, ValueError, ("finite", "nan")),
    ([0.0, INF], ValueError, ("finite", "inf")),
    (-INF, ValueError, ("finite", "-inf")),
]
REAL = scalar("a finite real number")
NON_NEGATIVE = scalar("a finite real number at least 0", -1e-300, -2)
MU = EPSILON = scalar("a finite real number at least 0 and at most 1e+100", -1e-300, -2, 2e100)
ANY_EPSILON = scalar("a finite real number at least -1e+100 and at most 1e+100", -2e100, 2e100)
POSITIVE = scalar(
    "a finite real number at least 1e-100 and at most 1e+100",
    0,
    0.0,
    -0.0,
    -1.0,
    Fraction(-1, 2),
    9e-101,
    2e100,
)
PROBABILITY = scalar("a finite real number at least 0 and at most 1", -1e-9, 1 + 1e-9, 2)
OPEN_UNIT = scalar("a finite real number above 0 and below 1", 0, 1, 0.0, 1.0, -1e-6, 1.5)
RENYI_ORDER = [row for row in scalar("a finite real number above 1", 1, 0.5, -2) if row[0] is not None]
FROM_ONE = count("a whole number at least 1", 0, -3, 0.0, -1.0)
FROM_ZERO = count("a whole number at least 0", -1, -2.0)
BATCH = [(v, e, (words[0] + " and at most 100", *words[1:])) for v, e, words in FROM_ONE] + [
    (101, ValueError, ("a whole number at least 1 and at most 100", "101")),
    (1e9, ValueError, ("a whole number at least 1 and at most 100", "1000000000.0")),
]
SENSITIVITIES = FLAT + [
    ([0.5, -1e-9], ValueError, ("at least 0", "-1e-09")),
    ([-1.0, 1.0], ValueError, ("at least 0", "-1.0")),
]
SOME_PROBABILITIES = FLAT + [
    ([0.5, -0.1], ValueError, ("at least 0", "-0.1")),
    ([0.5, 1.1], ValueError, ("at most 1", "1.1")),
]
WEIGHTS = SOME_PROBABILITIES + [
    ([1.0], ValueError, ("one entry per component", "(2)", "got 1")),
    ([0.2, 0.3, 0.5], ValueError, ("one entry per component", "(2)", "got 3")),
    ([0.5, 0.6], ValueError, ("sum to 1 within 1e-12", "1.1")),
    ([0.5, 0.5 - 3e-12], ValueError, ("sum to 1 within 1e-12", "0.999999999997")),
    ([0.0, 0.0], ValueError, ("sum to 1", "0.0")),
]
ANY_DIRECTION = one_of("remove", "add", "both")
ONE_DIRECTION = one_of("remove", "add") + [("both", ValueError, ("remove", "add", "'both'"))]
METHOD = one_of("auto", "contour", "lattice")
PAIR = mixtures.Mixture([0.0, 1.0], [0.9, 0.1], 1.0)
COMPOSITION = [
    ("abc", TypeError, ("Mixture", "'abc'")),
    (None, TypeError, ("Mixture", "None")),
    (3, TypeError, ("Mixture", "3")),
    ([PAIR], TypeError, ("Mixture",)),
    ([(PAIR, 1, 2)], TypeError, ("Mixture",)),
    ([("PAIR", 1)], TypeError, ("Mixture", "'PAIR'")),
    (mechanisms.PoissonDPSGD(1.0, 0.1, 5), TypeError, ("Mixture", "PoissonDPSGD")),
    ([], ValueError, ("empty",)),
] + [([(PAIR, v)], e, ("rounds", *words)) for v, e, words in FROM_ONE]
MECHANISM = [
    (value, TypeError, ("mechanism", repr(value)))
    for value in ("DP-SGD", None, 1.0, mechanisms.PoissonDPSGD, PAIR, mixtures.Mixture)
]
ENCODER = [
    (value, TypeError, ("encoder", repr(value)))
    for value in ("counting", None, 1.0, PAIR, matrices.Dense, [[1.0]])
]
POISSON = mechanisms.PoissonDPSGD(1.0, 0.1, 50)
FIXED = mechanisms.FixedBatchDPSGD(1.0, 5, 100, 50)
LAST = mechanisms.LastIterate(1.0, 0.1, 50)

# --- every public function: valid arguments, and the kind of each ---------------------------------------

ACCOUNTING = {"composition": COMPOSITION, "direction": ANY_DIRECTION, "method": METHOD}
TOLERANCE = {"tolerance": scalar("a finite real number at least 1e-09 and at most 0.1", 0, 1e-10, 0.2)}
METHODS = {"direction": ANY_DIRECTION, "method": METHOD}
SEED = [row for row in FROM_ZERO if row[0] is not None]  # None: fresh entropy
FLAG = [(value, TypeError, ("True or False", repr(value))) for value in (1, 0.0, "yes", None, [])]
EPOCHS = {"records": FROM_ONE, "batches_per_epoch": BATCH, "epochs": FROM_ONE}
EPOCHS_VALID = {"records": 100, "batches_per_epoch": 10, "epochs": 2}
ROUNDS = {"records": FROM_ONE, "rounds": FROM_ONE, "seed": SEED}
STREAMS = [
    (
        batching.poisson_stream,
        {"records": 100, "rounds": 5, "sampling_probability": 0.1},
        {**ROUNDS, "sampling_probability": PROBABILITY},
    ),
    (batching.fixed_batch_stream, {"records": 100, "rounds": 5, "batch_size": 9}, {**ROUNDS, "batch_size": BATCH}),
    (
        batching.min_separation_stream,
        {"records": 100, "rounds": 5, "separation": 1, "sampling_probability": 0.1},
        {**ROUNDS, "separation": BATCH, "sampling_probability": PROBABILITY},
    ),
    (batching.shuffling_stream, EPOCHS_VALID, {**EPOCHS, "reshuffle": FLAG, "seed": SEED}),
    (batching.round_robin_stream, EPOCHS_VALID, EPOCHS),
    (batching.balls_in_bins_stream, EPOCHS_VALID, {**EPOCHS, "batches_per_epoch": FROM_ONE, "seed": SEED}),
    (batching.poisson_stream(100, 5, 0.1).padded, {"size": 20}, {"size": [r for r in FROM_ONE if r[0] is not None]}),
]
SIGNED_ENCODER = [row for row in ENCODER if row[0] is not None]
SCORES = [0.1 * i for i in range(12)]
FEW_SCORES = FLAT + [([0.5], ValueError, ("at least 10", "1"))]
TRAINING = [
    (
        training.Config,
        {"noise_multiplier": 1.0, "divisor": 12.0},
        {
            "noise_multiplier": NON_NEGATIVE,
            "adjacency": one_of("add-remove", "zero-out"),
            "clip_norm": POSITIVE,
            "encoder": SIGNED_ENCODER,
            "learning_rate": [row for row in GRID if row[0] != -INF] + [(0.0, ValueError, ("above 0", "0.0"))],
            "momentum": scalar("a finite real number at least 0 and below 1", -0.1, 1),
            "optimizer": [(v, TypeError, ("optax", repr(v))) for v in ("adam", 1.0, True)],
            "divisor": POSITIVE + [("expected-size", ValueError, ("add-remove", "zero-out", "expected-size"))],
            "microbatch": [row for row in FROM_ONE if row[0] is not None],
        },
    ),
    (
        training.correlated_noise,
        {"encoder": matrices.identity(3), "standard_deviation": 1.0},
        {
            "encoder": ENCODER,
            "standard_deviation": NON_NEGATIVE,
            "seed": SEED,
        },
    ),
    (
        training.memory_rows,
        {"encoder": matrices.identity(3)},
        {"encoder": ENCODER},
    ),
    (
        audit.epsilon_lower_bound,
        {"scores_with": SCORES, "scores_without": SCORES, "delta": 0.1},
        {
            "scores_with": FEW_SCORES,
            "scores_without": FEW_SCORES,
            "delta": scalar("a finite real number at least 0 and below 1", -0.1, 1),
            "confidence": OPEN_UNIT,
            "direction": ANY_DIRECTION,
        },
    ),
    (datasets.digits, {}, {"test_share": OPEN_UNIT, "seed": FROM_ZERO}),
]
BUFFERS = {"encoder_family": "buffered_linear_toeplitz", "buffers": 1, "lines": 64}
SMALLEST = {"epsilon": 1.0, "delta": 0.01, "batches_per_epoch": 2}
ABOVE_ZERO = scalar("a finite real number above 0 and at most 1e+100", 0, -0.0, -1, 2e100)
BINS = count("a whole number at least 1 and at most 8192", 0, -1.0, 8193)
LINES = count("a whole number at least 64 and at most 131072", 63, 2**18)
TABLES = [row for row in FLAT if isinstance(row[0], list) and np.ndim(row[0][:1]) == 1] + [
    ([1.0, -0.5], ValueError, ("at least 0", "-0.5")),
    ([0.0, 0.5], ValueError, ("above 0", "0.0")),
    ([1.0] * 3, ValueError, ("3",)),
]
OPTIMIZE = [
    (
        optimize.optimize,
        {**BUFFERS, **SMALLEST, "epochs": 2},
        {
            "encoder_family": one_of("toeplitz", "banded_toeplitz", "buffered_linear_toeplitz"),
            "epsilon": ABOVE_ZERO,
            "delta": OPEN_UNIT,
            "batches_per_epoch": BINS,
            "epochs": FROM_ONE,
            "objective": one_of("rmse", "largest_error"),
            "bands": [(1, ValueError, ("None", "1"))],
            "buffers": count("a whole number at least 1 and at most 8", 0, 9),
            "start": [(matrices.identity(4), ValueError, ("None",))],
            "lines": LINES,
            "most_steps": FROM_ONE,
            "seed": FROM_ZERO,
        },
    ),
    (
        optimize.noise_slope,
        {"table": [1.0, 0.5], **SMALLEST, "lines": 64},
        {
            "table": TABLES,
            "epsilon": ABOVE_ZERO,
            "delta": OPEN_UNIT,
            "batches_per_epoch": BINS,
            "lines": LINES,
            "seed": FROM_ZERO,
        },
    ),
]
SIGMA_Q_T = {"noise_multiplier": POSITIVE, "sampling_probability": PROBABILITY, "steps": FROM_ONE}
LEMMA = {"mechanism": MECHANISM, "delta": OPEN_UNIT, "group_size": FROM_ONE}
FUNCTIONS = [
    (gaussian.delta, {"mu": 1.0, "epsilon": 1.0}, {"mu": MU, "epsilon": ANY_EPSILON}),
    (gaussian.log_delta, {"mu": 1.0, "epsilon": 1.0}, {"mu": MU, "epsilon": ANY_EPSILON}),
    (gaussian.epsilon, {"mu": 1.0, "delta": 0.1}, {"mu": MU, "delta": OPEN_UNIT}),
    (gaussian.calibrate, {"epsilon": 1.0, "delta": 0.1}, {"epsilon": EPSILON, "delta": OPEN_UNIT}),
    (
        mixtures.binomial,
        {"trials": 3, "probability": 0.1, "noise_multiplier": 1.0},
        {"trials": FROM_ZERO, "probability": PROBABILITY, "noise_multiplier": POSITIVE},
    ),
    (
        mixtures.hypergeometric,
        {"batch_size": 5, "dataset_size": 100, "group_size": 2, "noise_multiplier": 1.0},
        {
            "batch_size": BATCH,
            "dataset_size": FROM_ONE,
            "group_size": FROM_ZERO,
            "noise_multiplier": POSITIVE,
        },
    ),
    (
        mixtures.product,
        {"probabilities": [0.5, 0.1], "sensitivities": [1.0, 2.0], "noise_multiplier": 1.0},
        {
            "probabilities": SOME_PROBABILITIES,
            "sensitivities": SENSITIVITIES
            + [([1.0], ValueError, ("one entry per probability", "(2)", "got 1"))],
            "noise_multiplier": POSITIVE,
            "limit": FROM_ONE,
        },
    ),
    (
        mixtures.Mixture,
        {"sensitivities": [0.0, 1.0], "probabilities": [0.5, 0.5], "noise_multiplier": 1.0},
        {"sensitivities": SENSITIVITIES, "probabilities": WEIGHTS, "noise_multiplier": POSITIVE},
    ),
    (PAIR.loss, {"x": 0.0}, {"x": GRID}),
    (PAIR.inverse_loss, {"loss": 0.0}, {"loss": GRID}),
    (PAIR.density, {"x": 0.0}, {"x": GRID}),
    (PAIR.reference_density, {"x": 0.0}, {"x": GRID}),
    (PAIR.survival, {"x": 0.0}, {"x": GRID}),
    (PAIR.reference_survival, {"x": 0.0}, {"x": GRID}),
    (PAIR.hockey_stick, {"epsilon": 0.0}, {"epsilon": GRID, "direction": ONE_DIRECTION}),
    (
        mixtures.dominates,
        {"upper": PAIR, "lower": PAIR},
        {name: [(v, TypeError, (repr(v),)) for v in ("m", None, 1.0)] for name in ("upper", "lower")},
    ),
    (
        accounting.delta,
        {"composition": PAIR, "epsilon": 1.0},
        {"epsilon": EPSILON, **ACCOUNTING, **TOLERANCE},
    ),
    (accounting.log_delta, {"composition": PAIR, "epsilon": 1.0}, {"epsilon": EPSILON, **ACCOUNTING}),
    (
        accounting.epsilon,
        {"composition": PAIR, "delta": 0.1},
        {"delta": OPEN_UNIT, **ACCOUNTING, **TOLERANCE},
    ),
    (accounting.merged, {"composition": PAIR}, {"composition": COMPOSITION}),
    *[(m.delta, {"epsilon": 1.0}, {"epsilon": EPSILON, **METHODS}) for m in (POISSON, FIXED, LAST)],
    *[(m.epsilon, {"delta": 0.1}, {"delta": OPEN_UNIT, **METHODS}) for m in (POISSON, FIXED, LAST)],
    (
        mechanisms.PoissonDPSGD,
        {"noise_multiplier": 1.0, "sampling_probability": 0.1, "steps": 5},
        {**SIGMA_Q_T, "group_size": FROM_ONE},
    ),
    (
        mechanisms.LastIterate,
        {"noise_multiplier": 1.0, "sampling_probability": 0.1, "steps": 5},
        SIGMA_Q_T,
    ),
    (
        mechanisms.FixedBatchDPSGD,
        {"noise_multiplier": 1.0, "batch_size": 5, "dataset_size": 100, "steps": 5},
        {
            "noise_multiplier": POSITIVE,
            "batch_size": BATCH,
            "dataset_size": FROM_ONE,
            "steps": FROM_ONE,
            "group_size": FROM_ONE,
        },
    ),
    (
        mechanisms.MatrixMechanism,
        {"encoder": matrices.identity(100), "noise_multiplier": 1.0, "sampling_probability": 0.01},
        {
            "encoder": ENCODER,
            "noise_multiplier": POSITIVE,
            "sampling_probability": PROBABILITY,
            "min_separation": BATCH,
            "tail_bound": one_of("best", "published", "joint", "aggregated", "pooled"),
            # None stands for the usual choice.
            "tail_share": [row for row in OPEN_UNIT if row[0] is not None],
            "round_entries_to": [
                row for row in scalar("a finite real number above 0", 0, -1.0) if row[0] is not None
            ],
        },
    ),
    (
        dplib.calibrate,
        {"mechanism": POISSON, "epsilon": 1.0, "delta": 0.1},
        {
            "mechanism": MECHANISM,
            "epsilon": EPSILON,
            "delta": OPEN_UNIT,
            "direction": ANY_DIRECTION,
            "method": one_of("auto", "renyi"),
            # For mechanisms that need no sampling; those of BallsInBins: test_balls_in_bins.py.
            **{
                name: [(v, ValueError, ("left out", repr(v))) for v in (1, "a", 0.5, -1)]
                for name in ("seed", "samples", "failure_probability")
            },
        },
    ),
    (baselines.group_lemma, {"mechanism": POISSON, "delta": 0.1, "group_size": 2}, LEMMA),
    (baselines.linear_extrapolation, {"mechanism": POISSON, "delta": 0.1, "group_size": 2}, LEMMA),
    *STREAMS,
    *TRAINING,
    *OPTIMIZE,
    (results.Bracket, {"lower": 0.0, "upper": 1.0}, {"lower": REAL, "upper": REAL}),
    (results.UpperBound, {"upper": 1.0}, {"upper": NON_NEGATIVE, "order": RENYI_ORDER}),
    (
        results.Certificate,
        {"upper": 0.5, "failure_probability": 0.1, "samples": 10},
        {"upper": NON_NEGATIVE, "failure_probability": OPEN_UNIT, "samples": FROM_ONE},
    ),
    (
        results.Estimate,
        {"value": 0.5, "standard_error": 0.1, "upper": 0.8, "confidence": 0.9},
        {"value": REAL, "standard_error": NON_NEGATIVE, "upper": REAL, "confidence": OPEN_UNIT},
    ),
]


def label(function):
    owner = getattr(function, "__self__", None)
    name = f"{type(owner).__name__}.{function.__name__}" if owner is not None else function.__qualname__
    return f"{function.__module__.split('.')[-1]}.{name}"


TABLE = [
    pytest.param(function, valid, name, rows, id=f"{label(function)}({name})")
    for function, valid, kinds in FUNCTIONS
    for name, rows in kinds.items()
]


@pytest.fixture
def no_work(monkeypatch):
    """Make everything that computes fail, so that only checks can run."""

    def work(*_args, **_kwargs):
        raise ArithmeticError("work began before the arguments were checked")

    for module in (contour, lattice):
        for name in ("side_log_delta", "side_epsilon"):
            monkeypatch.setattr(module, name, work)
    for module, name in [
        (gaussian, "log_tail_difference"),
        (mixtures.likelihood, "log_tail_difference"),
        (mixtures.Mixture, "_set"),
        (mixtures.Mixture, "log_ratio"),
        (mixtures.Mixture, "log_density"),
        (mixtures.Mixture, "inverse_log_ratio"),
        (mixtures.pair.special, "ndtr"),
    ]:
        monkeypatch.setattr(module, name, work)


def fault(call, error, words):
    """What is wrong with the way in which a call refuses its input, or None."""
    try:
        result = call()
    except (ValueError, TypeError) as caught:
        # Exactly these types: a subclass or another error would have escaped from the inside.
        if type(caught) is not error:
            return f"{type(caught).__name__} instead of {error.__name__}: {caught}"
        missing = [word for word in words if word not in str(caught)]
        return f"{missing} not in: {caught}" if missing else None
    except Exception as caught:
        return f"{type(caught).__name__}: {caught}"
    return f"accepted: {result!r}"


@pytest.mark.parametrize("function, valid, name, rows", TABLE)
def test_bad_input_is_refused_before_any_work(function, valid, name, rows, no_work):
    faults = []
    for value, error, words in rows:
        # Bad rounds are named as such: they sit inside the composition.
        named = words if name == "composition" and "rounds" in words else (name, *words)
        found = fault(partial(function, **{**valid, name: value}), error, named)
        if found:
            faults.append(f"{name} = {value!r}: {found}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("function, valid, kinds", FUNCTIONS, ids=[label(row[0]) for row in FUNCTIONS])
def test_the_valid_arguments_of_the_table_are_valid(function, valid, kinds):
    """Else a row above could be refused for another argument than the bad one."""
    function(**valid)
    known = inspect.signature(function).parameters
    assert set(kinds) <= set(known) and set(valid) <= set(known)


# Public, but without arguments of their own, or tested elsewhere (VectorMixture: test_vector_mixture.py).
EXEMPT = {
    "gaussian.log_tail_difference": "array kernel of the accountants, called after the checks",
    "mixtures.log_sum_exp": "array kernel, called after the checks",
    "mixtures.complex_log1p": "array kernel, called after the checks",
    "accounting.is_rare": "chooses the accountant, called after the checks",
    "accounting.renyi_log_delta": "bound of one direction, called after the checks",
    "mixtures.VectorMixture": "tests of its own",
    "accounting.check_request": "one of the checks",
    "accounting.side_delta": "one direction, called after the checks",
    "accounting.side_log_delta": "one direction, called after the checks",
    "calibration.effective_noise": "rows of its own in test_calibrate.py",
    "results.NoBracketError": "an exception",
}


def test_every_public_function_is_in_the_table():
    tested = {getattr(f, "__func__", f) for f, _, _ in FUNCTIONS}
    modules = (gaussian, mixtures, accounting, mechanisms, baselines, results)
    for module in (*modules, inspect.getmodule(calibrate)):
        for name, thing in vars(module).items():
            of_room = module is mechanisms and getattr(thing, "__module__", "").endswith(("dpsgd", "matrix_mechanism"))
            if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__ and not of_room:
                continue
            if callable(thing) and label(thing) not in EXEMPT:
                assert thing in tested, f"{label(thing)} has no bad-input rows"


def test_every_public_argument_is_in_the_table():
    """`sharpened` is a yes-or-no switch; labels of an answer are free text."""
    for function, _, kinds in FUNCTIONS:
        answers = (results.Bracket, results.UpperBound, results.Certificate, results.Estimate)
        free = {"method"} if function in answers else {"sharpened"}
        names = set(inspect.signature(function).parameters) - set(kinds) - free
        assert not names, f"{label(function)}: no bad-input rows for {sorted(names)}"


# --- whole numbers too large for any computation ---------------------------------------------------------


@pytest.mark.parametrize("size", [10**20, 10**400], ids=["1e20", "1e400"])
@pytest.mark.parametrize(
    "call, name",
    [
        (lambda n: mechanisms.PoissonDPSGD(1.0, 0.1, n), "steps"),
        (lambda n: mechanisms.PoissonDPSGD(1.0, 0.1, 1, n), "group_size"),
        (lambda n: mechanisms.LastIterate(1.0, 0.1, n), "steps"),
        (lambda n: mechanisms.FixedBatchDPSGD(1.0, 5, n, 1), "dataset_size"),
        (lambda n: mechanisms.FixedBatchDPSGD(1.0, 5, 100, n), "steps"),
        (lambda n: mechanisms.FixedBatchDPSGD(1.0, 5, 100, 1, n), "group_size"),
        (lambda n: accounting.delta([(PAIR, n)], 1.0), "rounds"),
        (lambda n: mixtures.binomial(n, 0.1, 1.0), "trials"),
        (lambda n: mixtures.hypergeometric(5, n, 1, 1.0), "dataset_size"),
        (lambda n: mixtures.hypergeometric(5, 100, n, 1.0), "group_size"),
    ],
)
def test_whole_numbers_too_large_to_compute_with_are_refused_by_name(call, name, size):
    with pytest.raises(
        ValueError, match=rf"{name} must be a whole number at least . and at most \S+; got 1000"
    ):
        call(size)


# --- the checks themselves ----------------------------------------------------------------------------


def test_batch_larger_than_the_dataset_names_both_numbers():
    for build in (
        lambda: mixtures.hypergeometric(11, 10, 2, 1.0),
        lambda: mechanisms.FixedBatchDPSGD(1.0, 11, 10, 5),
    ):
        with pytest.raises(ValueError, match=r"batch_size .* at most 10; got 11"):
            build()


@pytest.mark.parametrize("value", [3, 3.0, np.int64(3), np.float32(3), Fraction(3)])
def test_whole_accepts_every_kind_of_whole_number(value):
    number = validate.whole("n", value, at_least=3, at_most=3)
    assert number == 3 and type(number) is int


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_real_accepts_every_kind_of_real_number(value):
    number = validate.real("x", value, above=0, below=1, at_least=0.5, at_most=0.5)
    assert number == 0.5 and type(number) is float


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(-10, 10), st.floats(-10, 10))
def test_real_keeps_exactly_the_stated_range(value, low, high):
    for bounds, inside in [
        ({"above": low, "below": high}, low < value < high),
        ({"at_least": low, "at_most": high}, low <= value <= high),
    ]:
        if inside:
            assert validate.real("x", value, **bounds) == value
        else:
            with pytest.raises(ValueError, match="x must be a finite real number"):
                validate.real("x", value, **bounds)


def test_the_ends_of_closed_ranges_are_allowed():
    assert validate.probability("q", 0) == 0 and validate.probability("q", 1) == 1
    assert validate.epsilon(0) == 0 and validate.delta(5e-324) == 5e-324
    assert validate.delta(math.nextafter(1, 0)) < 1 and validate.noise_multiplier(1e-100) > 0


@pytest.mark.parametrize(
    "gap, accepted", [(0.0, True), (5e-13, True), (-5e-13, True), (2e-12, False), (-2e-12, False)]
)
def test_probabilities_sum_to_one_within_a_trillionth(gap, accepted):
    weights = [0.25, 0.25, 0.5 + gap]
    if accepted:
        assert np.all(validate.probabilities("p", weights, 3) == weights)
    else:
        with pytest.raises(ValueError, match="p must sum to 1 within 1e-12"):
            validate.probabilities("p", weights, 3)


def test_many_small_probabilities_are_summed_without_rounding():
    """A naive sum of a million equal weights is off by more than 1e-12."""
    weights = np.full(1_000_000, 1e-6)
    assert abs(sum(weights.tolist()) - 1) > 1e-12
    assert len(validate.probabilities("p", weights, len(weights))) == 1_000_000


def test_grid_tells_scalars_from_arrays_and_keeps_shapes():
    assert validate.grid("x", 2) == (2.0, True)
    array, is_scalar = validate.grid("x", [[1, 2], [3, 4]])
    assert array.shape == (2, 2) and array.dtype == float and not is_scalar


def test_matrix_wants_two_dimensions():
    assert validate.matrix("m", [[1, 2]]).shape == (1, 2)
    with pytest.raises(ValueError, match=r"m must be a rectangular table; got shape \(2,\)"):
        validate.matrix("m", [1.0, 2.0])
    with pytest.raises(ValueError, match="m must be a rectangular table .* ragged"):
        validate.matrix("m", [[1.0], [1.0, 2.0]])


def test_checked_arrays_are_copies():
    """Changing the caller's list later does not change what was checked."""
    values = np.array([0.5, 0.5])
    checked = validate.probabilities("p", values, 2)
    values[0] = 7.0
    assert checked[0] == 0.5


def test_direction_without_both():
    assert validate.direction("both") == "both" and validate.direction("add", both=False) == "add"
    with pytest.raises(ValueError, match="direction .*'both'"):
        validate.direction("both", both=False)


def test_mechanisms_cannot_be_changed_into_invalid_ones():
    with pytest.raises(dataclasses.FrozenInstanceError):
        POISSON.noise_multiplier = -1.0
    with pytest.raises(ValueError, match="noise_multiplier"):
        dataclasses.replace(POISSON, noise_multiplier=-1.0)
