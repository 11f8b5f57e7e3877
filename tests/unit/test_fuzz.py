"""scripts/fuzz.py: a small run finds nothing, the table names every public function, planted faults are found."""

import math
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from dplib import Bracket

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import fuzz  # noqa: E402
import fuzz_table  # noqa: E402


def test_a_small_run_finds_nothing():
    """One case of each function that is quick."""
    count = sum(not target.slow for target in fuzz_table.TARGETS.values())
    found = fuzz.fuzz(count, small=True)
    assert found["wrong"] == [] and found["cases"] == found["functions"] == count > 90


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


def test_a_case_is_decided_by_its_name_and_number():
    first, again = (fuzz.shown("one_step.delta", 7) for _ in range(2))
    assert first == again != fuzz.shown("one_step.delta", 8)
