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


@pytest.mark.parametrize("kind", ["certificate", "release", "audit", "betting", "chernoff_hoeffding"])
def test_guarantees_fail_no_more_often_than_stated(study, kind):
    repeated = {
        "certificate": lambda: study.certificates("add", 300),
        "release": lambda: study.released(300),
        "audit": lambda: study.audits(300),
    }.get(kind, lambda: study.means(kind, 300))
    found = study.row(kind, study.FAILURE, True, repeated())
    assert found["repetitions"] == 300 and found["holds"]


def test_a_statement_that_fails_too_often_is_seen(study):
    """The plain mean is below the truth in about half of the repetitions; a stated 5% that is 10% does not hold either."""
    rng = np.random.default_rng(3)
    means = (rng.random(200) < 0.1 for _ in range(300))
    assert not study.row("mean", study.FAILURE, True, (coins.mean() < 0.1 for coins in means))["holds"]
    often = [True] * 200 + [False] * 1800
    assert not study.row("10%", study.FAILURE, True, often)["holds"]
    assert not study.row("10%", study.FAILURE, False, often)["holds"]
    # A guarantee has to be shown, an approximation must not be refuted.
    about = [True] * 100 + [False] * 1900
    assert not study.row("5%", study.FAILURE, True, about)["holds"]
    assert study.row("5%", study.FAILURE, False, about)["holds"]


def test_the_committed_study():
    record = json.loads(RESULT.read_text(encoding="utf-8"))
    (rows,) = record["tables"].values()
    assert len(rows) >= 15 and all(row["holds"] for row in rows)
    guarantees = [row for row in rows if row["kind"] == "guarantee"]
    assert sum(row["repetitions"] >= 2000 for row in guarantees) >= 8
    assert sum(row["failed"] > 0 for row in guarantees) >= 4  # failures are visible
    assert all(row["high"] <= row["stated"] for row in guarantees)
