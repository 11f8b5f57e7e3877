"""Bad input: every public function refuses it before any work, naming argument, value and allowed range.

What each kind of argument refuses is asked of the checks themselves; that each function uses the right check shows
in one number out of range and one value of a wrong kind for each argument. The functions and their arguments are
those of `fuzz_cases`; `tests/statements/test_fuzz.py` calls them with many more.
"""

import dataclasses
import math
from fractions import Fraction
from functools import partial

import fuzz_cases
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dplib import accounting, contour, lattice, matrices, mechanisms, mixtures
from dplib._base import validate

NAN, INF = math.nan, math.inf

# --- the checks: what each refuses ---------------------------------------------------------------------

NO_NUMBERS = ("1", None, True, np.True_, 1j, [0.5], (), {}, np.array([0.5]))
NOT_FINITE = (NAN, INF, -INF, np.float64("nan"), 10**400)
NO_ARRAYS = ("1.0", None, ["0.5", "0.5"], [0.5, None], [True, False], [0.5, 0.5j])
NOISES = (*NOT_FINITE, 0, -0.0, -1.0, Fraction(-1, 2), 9e-101, 2e100)
COUNTS = (NAN, INF, -INF, 1.5, Fraction(7, 2), 0, -3, 0.0, 101, 1e9, 10**400)
up_to_100 = partial(validate.whole, at_least=1, at_most=100)
two_chances = partial(validate.probabilities, length=2)
either = partial(validate.direction, both=False)
# (check, what its message says, values of a wrong kind, values out of range)
CHECKS = [
    (partial(validate.real, at_least=0), "a finite real number at least 0", NO_NUMBERS, (*NOT_FINITE, -1e-300, -2)),
    (validate.noise_multiplier, "noise_multiplier must be a finite real number at least 1e-100", NO_NUMBERS, NOISES),
    (validate.probability, "a finite real number at least 0 and at most 1", NO_NUMBERS, (*NOT_FINITE, -1e-9, 1 + 1e-9)),
    (validate.delta, "delta must be a finite real number above 0 and below 1", NO_NUMBERS, (*NOT_FINITE, 0, 1.0)),
    (up_to_100, "a whole number at least 1 and at most 100", NO_NUMBERS, COUNTS),
    (validate.direction, "direction must be one of", (None, 1, True, b"add", ["add"]), ("sideways", "", "ADD", "add ")),
    (either, "direction must be one of ('remove', 'add')", (None, 1), ("both", "")),
    (validate.flag, "True or False", (1, 0.0, "yes", None, []), ()),
    (validate.grid, "of real numbers", (*NO_ARRAYS, 1j), ()),
    (validate.grid, "hold finite numbers", (), (NAN, [0.0, INF], -INF)),
    (validate.grid, "a regular array", (), ([[0.0], [0.0, 1.0]],)),
    (validate.vector, "a flat list of real numbers", NO_ARRAYS, ([[0.5], [0.5, 0.0]],)),
    (validate.vector, "finite", (), ([0.5, NAN], [-INF, 0.5])),
    (validate.vector, "must not be empty", (), ([], np.zeros((0, 2)))),
    (validate.vector, "a flat list; got shape", (), ([[0.5, 0.5]], 0.5)),
    (validate.matrix, "a rectangular table; got shape (2,)", (), ([1.0, 2.0],)),
    (validate.matrix, "ragged", (), ([[1.0], [1.0, 2.0]],)),
    (two_chances, "at least 0; got -0.1", (), ([0.5, -0.1],)),
    (two_chances, "at most 1; got 1.1", (), ([0.5, 1.1],)),
    (two_chances, "one entry per component (2)", (), ([1.0], [0.2, 0.3, 0.5])),
    (two_chances, "sum to 1 within 1e-12", (), ([0.5, 0.6], [0.5, 0.5 - 2e-12])),
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
    run = mechanisms.PoissonDPSGD(1.0, 0.1, 50)
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.noise_multiplier = -1.0
    with pytest.raises(ValueError, match="noise_multiplier"):
        dataclasses.replace(run, noise_multiplier=-1.0)


PAIR = mixtures.Mixture([0.0, 1.0], [0.9, 0.1], 1.0)
NO_COMPOSITIONS = [
    ("abc", "composition .*Mixture"),
    ([PAIR], "composition .*Mixture"),
    ([(PAIR, 1, 2)], "composition .*Mixture"),
    ([("PAIR", 1)], "composition .*Mixture"),
    ([(PAIR, 0)], "rounds"),
    ([(PAIR, "1")], "rounds"),
    ([(PAIR, 10**20)], "rounds"),
]


@pytest.mark.parametrize("composition, words", NO_COMPOSITIONS)
def test_what_is_no_composition_is_refused(composition, words):
    with pytest.raises((TypeError, ValueError), match=words):
        accounting.delta(composition, 1.0)


@pytest.mark.parametrize("tolerance", [0.2, 1e-10, "1"])
def test_tolerances_are_checked(tolerance):
    for function in (accounting.delta, accounting.epsilon):
        with pytest.raises((TypeError, ValueError), match="tolerance"):
            function(PAIR, 0.5, tolerance=tolerance)


# --- the functions: each with one value of a wrong kind and one out of range for every argument -----------

HUGE = 10**20
OUTSIDE = {
    "adjacency": "sideways", "batch_size": HUGE, "batches_per_epoch": HUGE, "bands": HUGE, "buffer_decay": [1.1],
    "clip_norm": 0, "composition": [], "condition": "both", "confidence": 1, "conversion": "best",
    "dataset_size": HUGE, "decoder": "best", "delta": 1, "delta_1": 1, "direction": "sideways", "epochs": HUGE,
    "epsilon": 2e100, "failure_probability": 1, "gram": [[1.0, 2.0], [2.0, 1.0]],
    "group_size": HUGE, "learning_rate": -1.0, "leaves": 3, "lower": NAN, "method": "exactly",
    "min_separation": HUGE, "momentum": 1, "most_samples": 0, "mu": 2e100, "n": HUGE,
    "noise_multiplier": -1, "order": 1, "output_scale": [-1.0], "participations": 0, "period": 0,
    "probabilities": [0.5, 1.1], "probability": 2, "records": HUGE, "relative_error": 2.0, "rounds": 0,
    "sampling_probability": 2, "samples": HUGE, "scale": 0, "seed": -1, "sensitivities": [-1.0, 1.0], "separation": 0,
    "standard_error": -2, "steps": HUGE, "tail_bound": "worst", "test_share": 1, "threshold": 1,
    "trials": HUGE, "upper": NAN, "value": NAN, "warm_start": "cold", "x": NAN,
}  # fmt: skip
NAMES = [name for name in fuzz_cases.cases() if name not in fuzz_cases.UNCHECKED]
# Answers of a reader, data that is only held, labels of a result, epsilons of a curve, which may be any.
ANYTHING = {"answer", "train_features", "train_labels", "test_features", "test_labels"}
ANY_NUMBER = {("mixtures.Mixture", "epsilon"), ("mixtures.VectorMixture", "epsilon")}
# Any text: what an answer says of its mechanism.
ANY_NUMBER |= {(f"results.{answer}", "adjacency") for answer in ("Bracket", "Certificate", "Estimate", "UpperBound")}


def free(name, argument):
    return argument in ANYTHING or name.startswith("results.") and argument == "method"


def work(*_args, **_kwargs):
    raise ArithmeticError("work began before the arguments were checked")


def refusal(function, arguments):
    """The words in which a call is refused before anything is computed."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (contour, lattice):
            patch.setattr(module, "side_log_delta", work)
            patch.setattr(module, "side_epsilon", work)
        with pytest.raises((TypeError, ValueError)) as caught:
            function(**arguments)
    return str(caught.value)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=1, phases=[Phase.generate])
@given(st.data())
def test_wrong_arguments_are_refused_by_name_before_any_work(name, data):
    function, strategies, _ = fuzz_cases.cases()[name]
    valid = {argument: data.draw(strategy) for argument, strategy in strategies.items()}
    for argument in strategies:
        # What a mechanism is asked for is an epsilon or a delta.
        word = {"delta": "epsilon", "epsilon": "delta"}[name.rpartition(".")[2]] if argument == "target" else argument
        wrong = [] if free(name, argument) else [object()]
        wrong += [OUTSIDE[argument]] if argument in OUTSIDE and (name, argument) not in ANY_NUMBER and wrong else []
        for value in wrong:
            said = refusal(function, valid | {argument: value})
            assert word in said or said == refusal(function, valid), (argument, value, said)


def test_the_table_has_no_other_arguments():
    assert set(OUTSIDE) <= {argument for _, strategies, _ in fuzz_cases.cases().values() for argument in strategies}
