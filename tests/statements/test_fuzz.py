"""Hostile input: every public function and every exercise's check answers soundly or refuses clearly, whatever it is given.

`--hypothesis-profile=thorough` tries twenty times as many inputs, other ones in each run (`make trust`).
"""

import math
import warnings

import fuzz_answers
import fuzz_cases
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_cases import hostile

from dplib import BallsInBins, matrices, results
from dplib.lessons import course

# Of these modules a call may take a second.
SLOW = ("accounting.", "audit.", "calibrate.", "contour.", "encoder_baselines.", "lattice.", "mechanisms.", "montecarlo.certify", "truth.")
NAMES = list(fuzz_cases.cases())


def ends_soundly(name, arguments, function=None):
    """One call: a value of the stated type that can be one, or a refusal in dplib's own words."""
    function = function or fuzz_cases.cases()[name][0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            value = function(**arguments)
        except (ValueError, TypeError, results.NoBracketError) as error:
            assert fuzz_cases.unclear(error) is None
            return
    assert fuzz_cases.unsound(value, name) is None
    assert fuzz_cases.of_stated_type(function, value)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(SLOW)])
@hostile(4, 160)
@given(st.data())
def test_functions_answer_soundly_or_refuse_clearly(name, data):
    ends_soundly(name, data.draw(fuzz_cases.arguments(name)))


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(SLOW)])
@hostile(2)
@given(st.data())
def test_slow_functions_do_so_too(name, data):
    ends_soundly(name, data.draw(fuzz_cases.arguments(name)))


@pytest.mark.parametrize("identifier", course.identifiers())
@hostile(2)
@given(st.data())
def test_checkers_accept_no_nonsense(identifier, data):
    answer, nonsense = data.draw(fuzz_answers.answers(identifier))
    accepted = course.passes(identifier, answer)
    assert isinstance(accepted, bool) and not (accepted and nonsense)


def test_every_public_function_is_called_or_left_out():
    public = set(fuzz_cases.public_functions()) | {"mechanisms.BallsInBins"}
    called = {name.rpartition(".")[0] if name.startswith("mechanisms.") else name for name in NAMES}
    assert called | set(fuzz_cases.LEFT_OUT) == public and not called & set(fuzz_cases.LEFT_OUT)
    assert set(fuzz_cases.OTHERS) <= called and fuzz_cases.UNCHECKED | fuzz_cases.NEGATIVE | fuzz_cases.INFINITE <= called | set(NAMES)


def test_the_shapes_are_those_of_exercises():
    exercises = {name for name in course.identifiers() if "property" in course._exercise(name)}
    assert set(fuzz_answers.PROPERTY_SHAPES) <= exercises


GRAM = fuzz_cases.gram(np.random.default_rng(2858))
# Inputs that once raised other errors, or warned.
ONCE_WRONG = [
    ("calibration.calibrate", {"mechanism": BallsInBins(matrices.optimal_counting(27), 1.14, 9, 3), "epsilon": 2.0**63, "delta": 1e-10}),
    ("montecarlo.estimate_noise", {"gram": GRAM, "epsilon": 1.0, "delta": 1 - 1e-12, "relative_error": math.exp(-1), "seed": 1}),
    ("montecarlo.estimate_noise", {"gram": GRAM, "epsilon": 1e-300, "delta": 5e-324}),
]


@pytest.mark.parametrize("name, arguments", ONCE_WRONG)
def test_inputs_that_were_wrong_before(name, arguments):
    ends_soundly(name, arguments)
