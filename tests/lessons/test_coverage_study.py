"""How often statements with a confidence fail: a small version of benchmarks/coverage_study.py, and its committed result."""

import json

import pytest
from folders import ROOT, imported

RESULT = ROOT / "benchmarks" / "results" / "coverage_study.json"


study = imported("benchmarks", "coverage_study")


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
def test_guarantees_fail_no_more_often_than_stated(what):
    found = study.row(what, [study.STATEMENTS[what][2](seed) for seed in range(150)])
    assert found["repetitions"] == 150 and found["holds"]


def test_the_committed_study():
    record = json.loads(RESULT.read_text(encoding="utf-8"))
    (rows,) = record["tables"].values()
    assert len(rows) >= 15 and all(row["holds"] for row in rows)
    guarantees = [row for row in rows if row["kind"] == "guarantee"]
    assert sum(row["repetitions"] >= 2000 for row in guarantees) >= 8
    assert sum(row["failed"] > 0 for row in guarantees) >= 4  # failures are visible
    assert all(row["high"] <= row["stated"] for row in guarantees)
