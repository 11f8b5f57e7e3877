"""How often statements with a confidence fail: a small version of benchmarks/coverage_study.py, and its committed result."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "benchmarks" / "results" / "coverage_study.json"


@pytest.fixture(scope="module")
def study():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import coverage_study

        yield coverage_study
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.mark.parametrize(
    "what",
    [
        "certificate of delta, add",
        "Estimate-Verify-Release accepts wrongly",
        "audit, lower bound of epsilon",
        "mean of coins, betting",
        "mean of coins, Chernoff and Hoeffding",
    ],
)
def test_guarantees_fail_no_more_often_than_stated(study, what):
    found = study.row(what, [study.STATEMENTS[what][2](seed) for seed in range(300)])
    assert found["repetitions"] == 300 and found["holds"]


def test_a_statement_that_fails_too_often_is_seen(study):
    """The plain mean is below the truth in about half of the repetitions; a stated 5% that is 10% does not hold either."""
    rng = np.random.default_rng(3)
    guarantee, approximation = "mean of coins, betting", "upper end of the near-exact truth, remove"
    assert not study.row(guarantee, [(rng.random(200) < 0.1).mean() < 0.1 for _ in range(300)])["holds"]
    often = [True] * 200 + [False] * 1800
    assert not study.row(guarantee, often)["holds"]
    assert not study.row(approximation, often)["holds"]
    # A guarantee has to be shown, an approximation must not be refuted.
    about = [True] * 100 + [False] * 1900
    assert not study.row(guarantee, about)["holds"]
    assert study.row(approximation, about)["holds"]


def test_the_committed_study():
    record = json.loads(RESULT.read_text(encoding="utf-8"))
    (rows,) = record["tables"].values()
    assert len(rows) >= 15 and all(row["holds"] for row in rows)
    guarantees = [row for row in rows if row["kind"] == "guarantee"]
    assert sum(row["repetitions"] >= 2000 for row in guarantees) >= 8
    assert sum(row["failed"] > 0 for row in guarantees) >= 4  # failures are visible
    assert all(row["high"] <= row["stated"] for row in guarantees)
