"""scripts/fuzz.py: small runs find nothing, the tables are complete, planted faults are found, the record adds up."""

import dataclasses
import math
import re
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from dplib import Bracket, PoissonDPSGD, accounting, course, gaussian, one_step, sensitivity

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import fuzz  # noqa: E402
import fuzz_checkers  # noqa: E402
import fuzz_record  # noqa: E402
import fuzz_routes  # noqa: E402
import fuzz_table  # noqa: E402


def test_a_small_run_finds_nothing():
    """One case of each function that is quick."""
    count = sum(not target.slow for target in fuzz_table.TARGETS.values())
    found = fuzz.fuzz(count, small=True)
    assert found["wrong"] == [] and found["cases"] == count > 90
    assert found["ranges"] == [[0, 1]] and sum(group["cases"] for group in found["groups"].values()) == count


def test_a_small_run_over_the_checkers_finds_nothing():
    """One answer for each exercise, without those that never end."""
    names = fuzz.names_of("checkers")
    found = fuzz.fuzz(len(names), names=names, first=2)
    assert found["wrong"] == [] and found["cases"] == len(names) > 100


def test_second_routes_are_taken():
    names = [
        "gaussian.delta",
        "gaussian.epsilon",
        "one_step.delta",
        "one_step.noise_multiplier",
        "renyi.gaussian",
    ]
    found = fuzz.fuzz(len(names), names=names, first=48)
    assert found["wrong"] == [] and found["compared"] >= 3
    assert set(fuzz_routes.ROUTES) <= set(fuzz_table.TARGETS)


def test_every_public_function_is_in_the_table():
    named = set(fuzz_table.TARGETS) | set(fuzz_table.LEFT_OUT)
    assert set(fuzz_table.public_functions()) <= named
    assert not set(fuzz_table.TARGETS) & set(fuzz_table.LEFT_OUT)


def never_ends():
    while True:
        time.sleep(0.1)


def busy():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass


def warns():
    warnings.warn("overflow", RuntimeWarning, stacklevel=1)


def takes_memory():
    return len(b"x" * (400 * 2**20)) > 0


def key_error():
    return {}["noise"]


def foreign_words():
    return math.sqrt(-1)


FAULTS = {
    "not a number": lambda: Bracket(0.0, 1.0) and math.nan,
    "infinite": lambda: (0.5, np.array([1.0, math.inf])),
    "below 0": lambda: np.array([-1e-3]),
    "no end": never_ends,
    "0.3 s": busy,
    "RuntimeWarning": warns,
    "MB": takes_memory,
    "KeyError": key_error,
    "unclear refusal": foreign_words,
}


@pytest.mark.parametrize("words", FAULTS)
def test_planted_faults_are_found(words, monkeypatch):
    monkeypatch.setattr(fuzz_table, "TARGETS", {"planted.fault": fuzz_table.Target(FAULTS[words])})
    monkeypatch.setattr(fuzz, "_PATIENCE", 5 if words == "no end" else 200)
    [wrong] = fuzz.fuzz(1, seconds=0.2, megabytes=300)["wrong"]
    assert words in wrong["wrong"]


WRONG_NUMBERS = {
    "gaussian.log_delta": lambda mu, epsilon: gaussian.log_delta(mu, epsilon) + 1e-6,
    "gaussian.epsilon": lambda mu, delta: gaussian.epsilon(mu, delta) * (1 - 1e-6),
    "one_step.delta": lambda **a: one_step.delta(**a) * (1 + 1e-6),
    "one_step.noise_multiplier": lambda **a: one_step.noise_multiplier(**a) * (1 - 1e-6),
    "renyi.gaussian": lambda order, noise_multiplier: order / noise_multiplier**2,
    "sensitivity.single": lambda encoder: sensitivity.single(encoder) * (1 - 1e-9),
    "accounting.delta": lambda **a: Bracket(0.0, accounting.delta(**a).lower * (1 - 1e-3)),
    "mechanisms.PoissonDPSGD.epsilon": lambda target, direction, method, **a: Bracket(
        0.0, PoissonDPSGD(**a).epsilon(target, direction).lower * (1 - 1e-3)
    ),
}


@pytest.mark.parametrize("name", WRONG_NUMBERS)
def test_a_wrong_number_is_contradicted(name, monkeypatch):
    """Among the first cases that take a second route."""
    target = dataclasses.replace(fuzz_table.TARGETS[name], call=WRONG_NUMBERS[name])
    monkeypatch.setitem(fuzz_table.TARGETS, name, target)
    cases = (fuzz.run_case(name, fuzz.ROUTE_EVERY * i) for i in range(40))
    assert any(wrong and compared for wrong, _, compared in cases)


def test_nonsense_that_is_accepted_is_found(monkeypatch):
    monkeypatch.setattr(fuzz_checkers.course, "passes", lambda identifier, answer: True)
    found = fuzz.fuzz(6, names=["check.group-2"])
    assert any("nonsense is accepted" in row["wrong"] for row in found["wrong"])


def test_the_shapes_are_those_of_exercises():
    exercises = {name for name in course.identifiers() if "property" in course._exercise(name)}
    assert set(fuzz_checkers.PROPERTY_SHAPES) <= exercises


def test_the_record_adds_up(tmp_path):
    for first, wrong in ((0, None), (5, "0.3 s")):
        chunk = fuzz_record.Chunk(first)
        chunk.add("gaussian.delta", first, 0.25, wrong, {}, compared=True)
        chunk.add("renyi.compose", first, 0.5, None)
        fuzz_record.add("functions", chunk.closed(first + 5), tmp_path)
    found = fuzz_record.read(tmp_path)["kinds"]["functions"]
    assert found["ranges"] == [[0, 10]] and found["cases"] == 4 and found["compared"] == 2
    assert found["groups"]["gaussian"] == {"cases": 2, "wrong": 1, "seconds": 0.5, "slowest": 0.25}
    assert fuzz_record.end_of("functions", tmp_path) == 10 and fuzz_record.end_of("checkers", tmp_path) == 0
    assert "4 random inputs, valid, borderline and wrong: 1 wrong" in (tmp_path / "fuzz.txt").read_text()
    with pytest.raises(ValueError, match="must not overlap"):
        fuzz_record.add("functions", chunk.closed(7), tmp_path)
    [case] = fuzz_record.wrong_cases("functions", tmp_path)
    fuzz_record.mended("functions", case, tmp_path)
    assert fuzz_record.wrong_cases("functions", tmp_path) == []
    assert "mended: gaussian.delta:5: 0.3 s" in (tmp_path / "fuzz.txt").read_text()


def test_the_committed_record():
    cases, wrong, kinds = fuzz_record.counted()
    assert set(kinds) == set(fuzz.SHARES) and cases == sum(kinds.values())
    text = (fuzz_record.RESULTS / "fuzz.txt").read_text(encoding="utf-8")
    assert text == fuzz_record.text(fuzz_record.read())
    assert not re.search(r"(?m)^  wrong: ", text) and wrong == 0 and cases >= 100_000


def test_a_case_is_decided_by_its_name_and_number():
    first, again = (fuzz.shown("one_step.delta", 7) for _ in range(2))
    assert first == again != fuzz.shown("one_step.delta", 8)
