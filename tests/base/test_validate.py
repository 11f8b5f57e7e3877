"""Bad input: every public function refuses it before any work, naming argument, value and allowed range.

What each kind of argument refuses is asked of the checks themselves; that each function uses the right check shows
in one number out of range and one value of a wrong kind for each argument. `tests/statements/test_fuzz.py` calls every
public function with many more.
"""

import dataclasses
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
    contour,
    gaussian,
    lattice,
    matrices,
    mechanisms,
    mixtures,
    results,
    training,
)
from dplib._base import validate
from dplib.lessons import baselines, datasets

NAN, INF = math.nan, math.inf

# --- the checks: what each refuses ---------------------------------------------------------------------

NO_NUMBERS = ("1", None, True, np.True_, 1j, [0.5], (), {}, np.array([0.5]))
NOT_FINITE = (NAN, INF, -INF, np.float64("nan"), 10**400)
NO_ARRAYS = ("1.0", None, ["0.5", "0.5"], [0.5, None], [True, False], [0.5, 0.5j])
CHECKS = [
    (
        partial(validate.real, at_least=0),
        "a finite real number at least 0",
        NO_NUMBERS,
        (*NOT_FINITE, -1e-300, -2),
    ),
    (
        validate.noise_multiplier,
        "noise_multiplier must be a finite real number at least 1e-100 and at most 1e+100",
        NO_NUMBERS,
        (*NOT_FINITE, 0, -0.0, -1.0, Fraction(-1, 2), 9e-101, 2e100),
    ),
    (
        validate.probability,
        "a finite real number at least 0 and at most 1",
        NO_NUMBERS,
        (*NOT_FINITE, -1e-9, 1 + 1e-9),
    ),
    (
        validate.delta,
        "delta must be a finite real number above 0 and below 1",
        NO_NUMBERS,
        (*NOT_FINITE, 0, 1.0, -1e-6),
    ),
    (
        partial(validate.whole, at_least=1, at_most=100),
        "a whole number at least 1 and at most 100",
        NO_NUMBERS,
        (NAN, INF, -INF, 1.5, Fraction(7, 2), 0, -3, 0.0, 101, 1e9, 10**400),
    ),
    (
        validate.direction,
        "direction must be one of",
        (None, 1, True, b"add", ["add"]),
        ("sideways", "", "ADD", "add "),
    ),
    (
        partial(validate.direction, both=False),
        "direction must be one of ('remove', 'add')",
        (None, 1),
        ("both", ""),
    ),
    (validate.flag, "True or False", (1, 0.0, "yes", None, []), ()),
    (validate.grid, "hold real numbers", (*NO_ARRAYS, 1j), ()),
    (validate.grid, "hold finite numbers", (), (NAN, [0.0, INF], -INF)),
    (validate.grid, "a regular array", (), ([[0.0], [0.0, 1.0]],)),
    (validate.vector, "a flat list of real numbers", NO_ARRAYS, ([[0.5], [0.5, 0.0]],)),
    (validate.vector, "finite", (), ([0.5, NAN], [-INF, 0.5])),
    (validate.vector, "must not be empty", (), ([], np.zeros((0, 2)))),
    (validate.vector, "a flat list; got shape", (), ([[0.5, 0.5]], 0.5)),
    (validate.matrix, "a rectangular table; got shape (2,)", (), ([1.0, 2.0],)),
    (validate.matrix, "ragged", (), ([[1.0], [1.0, 2.0]],)),
    (partial(validate.probabilities, length=2), "at least 0; got -0.1", (), ([0.5, -0.1],)),
    (partial(validate.probabilities, length=2), "at most 1; got 1.1", (), ([0.5, 1.1],)),
    (partial(validate.probabilities, length=2), "one entry per component (2)", (), ([1.0], [0.2, 0.3, 0.5])),
    (
        partial(validate.probabilities, length=2),
        "sum to 1 within 1e-12",
        (),
        ([0.5, 0.6], [0.5, 0.5 - 2e-12]),
    ),
    (validate.mechanism, "mechanism must be a mechanism", ("DP-SGD", None, mechanisms.PoissonDPSGD), ()),
    (validate.encoder, "encoder must be an encoder", ("counting", None, matrices.Dense, [[1.0]]), ()),
]
NAMELESS = (
    validate.noise_multiplier,
    validate.delta,
    validate.direction,
    validate.mechanism,
    validate.encoder,
)


@pytest.mark.parametrize("check, words, wrong_kinds, outside", CHECKS)
def test_a_check_says_what_is_allowed(check, words, wrong_kinds, outside):
    named = check if getattr(check, "func", check) in NAMELESS else partial(check, "x")
    rows = [(value, TypeError) for value in wrong_kinds] + [(value, ValueError) for value in outside]
    for value, error in rows:
        with pytest.raises((ValueError, TypeError)) as caught:
            named(value)
        # Exactly these types: a subclass or another error would have escaped from the inside.
        assert caught.type is error and words in str(caught.value), (value, caught.value)


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


def test_many_small_probabilities_are_summed_without_rounding():
    """A naive sum of a million equal weights is off by more than 1e-12."""
    weights = np.full(1_000_000, 1e-6)
    assert abs(sum(weights.tolist()) - 1) > 1e-12
    assert len(validate.probabilities("p", weights, len(weights))) == 1_000_000


def test_grid_tells_scalars_from_arrays_and_keeps_shapes():
    assert validate.grid("x", 2) == (2.0, True)
    array, is_scalar = validate.grid("x", [[1, 2], [3, 4]])
    assert array.shape == (2, 2) and array.dtype == float and not is_scalar


def test_checked_arrays_are_copies():
    """Changing the caller's list later does not change what was checked."""
    values = np.array([0.5, 0.5])
    checked = validate.probabilities("p", values, 2)
    values[0] = 7.0
    assert checked[0] == 0.5


def test_mechanisms_cannot_be_changed_into_invalid_ones():
    with pytest.raises(dataclasses.FrozenInstanceError):
        POISSON.noise_multiplier = -1.0
    with pytest.raises(ValueError, match="noise_multiplier"):
        dataclasses.replace(POISSON, noise_multiplier=-1.0)


# --- the functions: valid arguments, and for each argument a value out of range --------------------------

PAIR = mixtures.Mixture([0.0, 1.0], [0.9, 0.1], 1.0)
POISSON = mechanisms.PoissonDPSGD(1.0, 0.1, 50)
SAMPLED = {"noise_multiplier": 1.0, "sampling_probability": 0.1, "steps": 5}
FIXED = {"noise_multiplier": 1.0, "batch_size": 5, "dataset_size": 100, "steps": 5}
EPOCHS = {"records": 100, "batches_per_epoch": 10, "epochs": 2}
SCORES = [0.1 * i for i in range(12)]
ASKED = {"direction": "sideways", "method": "exact"}
LEMMA = ({"mechanism": POISSON, "delta": 0.1, "group_size": 2}, {"delta": 1, "group_size": 0})
SPECIFIC = {
    "seed": 1,
    "samples": 1,
    "failure_probability": 0.5,
}  # for mechanisms that draw; here they must be left out
HUGE = 10**20
FUNCTIONS = [
    (gaussian.delta, {"mu": 1.0, "epsilon": 1.0}, {"mu": -1e-300, "epsilon": 2e100}),
    (gaussian.log_delta, {"mu": 1.0, "epsilon": 1.0}, {"mu": 2e100, "epsilon": -2e100}),
    (gaussian.epsilon, {"mu": 1.0, "delta": 0.1}, {"mu": -2, "delta": 0}),
    (gaussian.calibrate, {"epsilon": 1.0, "delta": 0.1}, {"epsilon": -1e-300, "delta": 1}),
    (
        mixtures.binomial,
        {"trials": 3, "probability": 0.1, "noise_multiplier": 1.0},
        {"trials": HUGE, "probability": 1 + 1e-9, "noise_multiplier": 0},
    ),
    (
        mixtures.hypergeometric,
        {"batch_size": 5, "dataset_size": 100, "group_size": 2, "noise_multiplier": 1.0},
        {"batch_size": 101, "dataset_size": HUGE, "group_size": -1, "noise_multiplier": 0},
    ),
    (
        mixtures.product,
        {"probabilities": [0.5, 0.1], "sensitivities": [1.0, 2.0], "noise_multiplier": 1.0},
        {"probabilities": [0.5, 1.1], "sensitivities": [1.0], "noise_multiplier": 0, "limit": 0},
    ),
    (
        mixtures.Mixture,
        {"sensitivities": [0.0, 1.0], "probabilities": [0.5, 0.5], "noise_multiplier": 1.0},
        {"sensitivities": [-1.0, 1.0], "probabilities": [0.5, 0.6], "noise_multiplier": 0},
    ),
    *[
        (method, {name: 0.0}, {name: NAN})
        for method, name in ((PAIR.loss, "x"), (PAIR.inverse_loss, "loss"), (PAIR.density, "x"))
    ],
    *[
        (method, {"x": 0.0}, {"x": NAN})
        for method in (PAIR.reference_density, PAIR.survival, PAIR.reference_survival)
    ],
    (PAIR.hockey_stick, {"epsilon": 0.0}, {"epsilon": NAN, "direction": "both"}),
    (mixtures.dominates, {"upper": PAIR, "lower": PAIR}, {}),
    (
        accounting.delta,
        {"composition": PAIR, "epsilon": 1.0},
        {"epsilon": -2, "tolerance": 0.2, "composition": [], **ASKED},
    ),
    (accounting.log_delta, {"composition": PAIR, "epsilon": 1.0}, {"epsilon": -2, **ASKED}),
    (accounting.epsilon, {"composition": PAIR, "delta": 0.1}, {"delta": 1, "tolerance": 1e-10, **ASKED}),
    (accounting.merged, {"composition": PAIR}, {"composition": []}),
    (POISSON.delta, {"epsilon": 1.0}, {"epsilon": -2, **ASKED}),
    (POISSON.epsilon, {"delta": 0.1}, {"delta": 0, **ASKED}),
    (
        mechanisms.PoissonDPSGD,
        SAMPLED,
        {"noise_multiplier": 0, "sampling_probability": 2, "steps": HUGE, "group_size": HUGE},
    ),
    (mechanisms.LastIterate, SAMPLED, {"noise_multiplier": 0, "sampling_probability": 2, "steps": HUGE}),
    (
        mechanisms.FixedBatchDPSGD,
        FIXED,
        {"batch_size": 101, "dataset_size": HUGE, "steps": HUGE, "group_size": HUGE},
    ),
    (
        mechanisms.MatrixMechanism,
        {"encoder": matrices.identity(100), "noise_multiplier": 1.0, "sampling_probability": 0.01},
        {
            "noise_multiplier": 0,
            "min_separation": 101,
            "tail_bound": "worst",
            "tail_share": 1,
            "round_entries_to": 0,
        },
    ),
    (
        dplib.calibrate,
        {"mechanism": POISSON, "epsilon": 1.0, "delta": 0.1},
        {"epsilon": -2, "delta": 1, "direction": "sideways", "method": "exact", **SPECIFIC},
    ),
    (baselines.group_lemma, *LEMMA),
    (baselines.linear_extrapolation, *LEMMA),
    (
        batching.poisson_stream,
        {"records": 100, "rounds": 5, "sampling_probability": 0.1},
        {"records": 0, "rounds": 0, "seed": -1, "sampling_probability": 2},
    ),
    (
        batching.fixed_batch_stream,
        {"records": 100, "rounds": 5, "batch_size": 9},
        {"records": 0, "rounds": 0, "batch_size": 101},
    ),
    (
        batching.min_separation_stream,
        {"records": 100, "rounds": 5, "separation": 1, "sampling_probability": 0.1},
        {"records": 0, "rounds": 0, "separation": 101, "sampling_probability": 2},
    ),
    (batching.shuffling_stream, EPOCHS, {"records": 0, "batches_per_epoch": 101, "epochs": 0, "seed": -1}),
    (batching.round_robin_stream, EPOCHS, {"records": 0, "batches_per_epoch": 101, "epochs": 0}),
    (batching.balls_in_bins_stream, EPOCHS, {"records": 0, "batches_per_epoch": 0, "epochs": 0, "seed": -1}),
    (batching.poisson_stream(100, 5, 0.1).padded, {"size": 20}, {"size": 0}),
    (
        training.Config,
        {"noise_multiplier": 1.0, "divisor": 12.0},
        {
            "noise_multiplier": -2,
            "adjacency": "sideways",
            "clip_norm": 0,
            "learning_rate": 0.0,
            "momentum": 1,
            "divisor": "expected-size",
            "microbatch": 0,
            "noise_memory": "sideways",
        },
    ),
    (
        training.correlated_noise,
        {"encoder": matrices.identity(3), "standard_deviation": 1.0},
        {"standard_deviation": -2, "seed": -1, "noise_memory": "sideways"},
    ),
    (training.memory_rows, {"encoder": matrices.identity(3)}, {"noise_memory": "sideways"}),
    (
        audit.epsilon_lower_bound,
        {"scores_with": SCORES, "scores_without": SCORES, "delta": 0.1},
        {"scores_with": [0.5], "scores_without": [0.5], "delta": 1, "confidence": 1, "direction": "sideways"},
    ),
    (datasets.digits, {}, {"test_share": 1, "seed": -1}),
    (results.Bracket, {"lower": 0.0, "upper": 1.0}, {"lower": NAN, "upper": INF}),
    (results.UpperBound, {"upper": 1.0}, {"upper": -2, "order": 1}),
    (
        results.Certificate,
        {"upper": 0.5, "failure_probability": 0.1, "samples": 10},
        {"upper": -2, "failure_probability": 1, "samples": 0},
    ),
    (
        results.Estimate,
        {"value": 0.5, "standard_error": 0.1, "upper": 0.8, "confidence": 0.9},
        {"value": NAN, "standard_error": -2, "upper": INF, "confidence": 1},
    ),
]
LABELS = [row[0].__qualname__ for row in FUNCTIONS]


@pytest.fixture
def no_work(monkeypatch):
    """Make everything that computes fail, so that only checks can run."""

    def work(*_args, **_kwargs):
        raise ArithmeticError("work began before the arguments were checked")

    for module in (contour, lattice):
        monkeypatch.setattr(module, "side_log_delta", work)
        monkeypatch.setattr(module, "side_epsilon", work)
    for name in ("_set", "log_ratio", "log_density", "inverse_log_ratio"):
        monkeypatch.setattr(mixtures.Mixture, name, work)
    for module in (gaussian, mixtures):
        monkeypatch.setattr(module, "log_tail_difference", work)


@pytest.mark.parametrize("function, valid, outside", FUNCTIONS, ids=LABELS)
def test_bad_input_is_refused_before_any_work(function, valid, outside, no_work):
    for name, value in outside.items():
        with pytest.raises(ValueError, match=name):
            function(**valid | {name: value})
    for name in {**valid, **outside}:
        with pytest.raises((TypeError, ValueError), match=name):
            function(**valid | {name: object()})


@pytest.mark.parametrize("function, valid, outside", FUNCTIONS, ids=LABELS)
def test_the_valid_arguments_of_the_table_are_valid(function, valid, outside):
    """Else a row above could be refused for another argument than the bad one."""
    function(**valid)


@pytest.mark.parametrize("rounds", [0, 1.5, "1", None, HUGE])
def test_bad_rounds_of_a_composition_are_named(rounds):
    with pytest.raises((TypeError, ValueError), match="rounds"):
        accounting.delta([(PAIR, rounds)], 1.0)


@pytest.mark.parametrize("composition", ["abc", 3, [PAIR], [(PAIR, 1, 2)], [("PAIR", 1)], POISSON])
def test_what_is_no_composition_is_refused(composition):
    with pytest.raises(TypeError, match="composition .*Mixture"):
        accounting.delta(composition, 1.0)
