"""The comparison with other libraries: complete, and the page says what the stored results say."""

import itertools
import json
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "peers"))

import peers_page  # noqa: E402
import schuchardt_kalinin_answers  # noqa: E402
from questions import LIBRARIES, QUESTIONS  # noqa: E402

from dplib import PoissonDPSGD  # noqa: E402


@pytest.fixture(scope="module")
def record():
    return json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page():
    return peers_page.PAGE.read_text(encoding="utf-8")


def test_every_library_answers_every_question_or_is_said_not_to():
    for question in QUESTIONS:
        answering = {library for library, _ in question.answers}
        assert answering | set(question.absent) == set(LIBRARIES), question.name
        assert not answering & set(question.absent), question.name


def test_results_have_a_row_for_every_call(record):
    wanted = [
        (question.name, *answer, setting)
        for question in QUESTIONS
        for setting in question.settings
        for answer in question.answers
    ]
    rows = record["rows"]
    assert [(row["question"], row["library"], row["accountant"], row["setting"]) for row in rows] == wanted
    assert set(record["versions"]) == set(LIBRARIES)
    for row in rows:
        assert row.get("failure") or (row["cpu_s"] >= 0 and row["peak_mb"] > 0), row


def test_dplib_fails_nowhere_it_claims_to_answer(record):
    failed = [row for row in record["rows"] if row["library"] == "dplib" and "failure" in row]
    # Exact balls in bins exist for C = I alone, and the error says so; for pauses there are samples alone.
    assert {row["question"] for row in failed} == {"bins", "unsampled", "separated"}
    assert all(row["accountant"] == "bracket" and row["setting"]["bands"] > 1 for row in failed)


def test_the_paper_s_moment_is_the_full_sum():
    rng = np.random.default_rng(0)
    for bins, reach, order in ((5, 0, 3), (6, 1, 4), (7, 2, 3), (5, 2, 4)):
        apart = np.abs(np.subtract.outer(range(bins), range(bins)))
        gram = np.where(np.minimum(apart, bins - apart) <= reach, rng.uniform(0, 1, (bins, bins)), 0)
        gram = gram + gram.T
        tuples = np.array(list(itertools.product(range(bins), repeat=order)))
        pairs = sum(gram[tuples[:, j], tuples[:, k]] for j in range(order) for k in range(j))
        full = np.log(np.exp(pairs / 0.49).sum()) - order * np.log(bins)
        assert schuchardt_kalinin_answers._log_moment(gram, 0.7, order) == pytest.approx(full, rel=1e-12)


def second_route(question, setting):
    """A lower bound of what is asked, not by the contour: by the lattice, for Gaussian mechanisms in closed form."""
    if question == "gaussian":
        mpmath.mp.dps = 30
        shift = mpmath.sqrt(setting["steps"]) / mpmath.mpf(setting["sigma"])
        above = lambda e: mpmath.ncdf(shift / 2 - e / shift) - mpmath.exp(e) * mpmath.ncdf(-shift / 2 - e / shift)
        return float(mpmath.findroot(lambda e: mpmath.log(above(e) / setting["delta"]), (1, 100), solver="anderson"))
    sigma, q = setting["sigma"], setting.get("q")
    if question == "fixed":  # a record that joins pushes another one out: twice the shift of Poisson sampling
        sigma, q = sigma / 2, setting["batch"] / setting["records"]
    return PoissonDPSGD(sigma, q, setting["steps"]).epsilon(setting["delta"], method="lattice").lower


def test_what_is_called_too_small_is_so_by_a_second_route(record):
    rows = record["rows"]
    small = [row for row in rows if peers_page.verdict(row, peers_page.reference(rows, row), "").endswith("too small")]
    assert small
    for row in small:
        setting, claimed = row["setting"], row["value"]
        if row["question"] == "calibration":
            mechanism = PoissonDPSGD(claimed, setting["q"], setting["steps"])
            assert mechanism.epsilon(setting["delta"], method="lattice").lower > setting["epsilon"], row
        else:
            assert claimed < second_route(row["question"], setting), row


def test_the_page_agrees_with_the_results(record, page):
    assert peers_page.filled(page, record) == page


BRACKET = {"library": "dplib", "direction": "bracket", "value": 2.0, "lower": 1.999999}


@pytest.mark.parametrize(
    "row, told",
    [
        ({"direction": "upper", "value": 1.9}, "5% too small"),
        ({"direction": "value", "value": 1.99}, "0.5% too small"),
        ({"direction": "upper", "value": 2.0000001}, "equal"),
        ({"direction": "upper", "value": 2.2}, "10% above"),
        ({"direction": "upper", "value": 80.0}, "40 times as large"),
        ({"direction": "upper", "value": "infinite"}, "no bound"),
        ({"direction": "upper, replace-one", "value": 1.0}, "other neighbours"),
        ({"direction": "estimate", "value": 2.3, "standard_error": 0.1}, "+3.0 s.e."),
        ({"direction": "estimate", "value": 0.0, "standard_error": 0.0}, "no sample in the tail"),
        ({"direction": "error", "value": 2.2}, "10% above"),
        ({"failure": "no answer in 60 s"}, ""),
    ],
)
def test_verdicts(row, told):
    assert peers_page.verdict(row, BRACKET, "epsilon") == told


def test_between_the_ends_of_a_wide_bracket_a_bound_is_tighter():
    wide = BRACKET | {"lower": 1.5}
    for value, told in ((1.9, "5% below"), (1.4, "6.7% too small"), (2.0, "equal"), (2.2, "10% above")):
        assert peers_page.verdict({"direction": "upper", "value": value}, wide, "epsilon") == told
    assert peers_page._answer(wide, wide, "epsilon") == "[1.5, 2]" and peers_page._answer(BRACKET, BRACKET, "epsilon") == "2"
