"""The comparison with other libraries: complete, and the page says what the stored results say."""

import copy
import json
import math
import signal
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import peers  # noqa: E402
import peers_page  # noqa: E402
from questions import LIBRARIES, QUESTIONS  # noqa: E402

from dplib import PoissonDPSGD, matrices  # noqa: E402


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
    # Exact balls in bins exist for C = I alone, and the error says so; for pauses there is no accountant.
    assert {(row["question"], row["accountant"]) for row in failed} == {("bins", "bracket"), ("separated", "bracket")}
    assert all(row["setting"]["bands"] > 1 for row in failed)


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


def test_page_and_listing_agree_with_the_results(record, page):
    assert peers_page.filled(page, record) == page
    stored = (ROOT / "benchmarks" / "results" / "peers.txt").read_text(encoding="utf-8")
    assert peers.listing(record) == stored


def test_a_changed_result_a_changed_page_and_a_missing_row_are_noticed(record, page):
    other = copy.deepcopy(record)
    row = next(row for row in other["rows"] if row["library"] == "dp_accounting" and "value" in row)
    row["value"] *= 1.01
    assert peers_page.filled(page, other) != page
    first = page.index("MB |")
    edited = page[: first - 2] + "7" + page[first - 1 :]
    assert peers_page.filled(edited, record) != edited
    other = copy.deepcopy(record)
    del other["rows"][1]
    with pytest.raises(ValueError, match="run `make peers`"):
        peers_page.filled(page, other)
    with pytest.raises(ValueError, match="blocks"):
        peers_page.filled(page.replace("<!-- peers: summary -->", ""), record)


def test_sampling_with_a_pause_by_a_second_route(record):
    """Chain simulated state by state, likelihood ratio by a recursion forwards in time; jax-privacy's runs backwards."""
    rows = [row for row in record["rows"] if row["question"] == "separated" and row["library"] == "jax-privacy"]
    row = next(row for row in rows if row["setting"]["separation"] > 1)
    sigma, n, b, p, bands, epsilon = row["setting"].values()
    c = matrices.optimal_counting(n, bands).coefficients[:bands]
    rng, samples = np.random.default_rng(5), 20_000
    start = np.append(1.0, np.full(b - 1, p)) / (1 + (b - 1) * p)  # stationary; state: rounds of pause left
    pause, with_record = rng.choice(b, p=start, size=samples), np.zeros((samples, n))
    for t in range(n):
        joins = (pause == 0) & (rng.random(samples) < p)
        with_record[joins, t : t + bands] += c[: n - t]
        pause = np.where(joins, b - 1, np.maximum(pause - 1, 0))

    def log_ratio(y):
        may_join = np.zeros((samples, n + b))  # weight of all that happened before a round in which the record may join
        may_join[:, :b] = start
        for t in range(n):
            column = c[: n - t]
            ratio = np.exp((y[:, t : t + bands] @ column - column @ column / 2) / sigma**2)
            may_join[:, t + 1] += may_join[:, t] * (1 - p)
            may_join[:, t + b] += may_join[:, t] * p * ratio
        return np.log(may_join[:, n:].sum(axis=1))

    noise = sigma * rng.normal(size=(2, samples, n))
    losses = log_ratio(with_record + noise[0]), -log_ratio(noise[1])
    payoffs = [-np.expm1(np.minimum(epsilon - loss, 0.0)) for loss in losses]
    value, error = max((payoff.mean(), payoff.std() / samples**0.5) for payoff in payoffs)
    assert abs(value - row["value"]) < 4 * math.hypot(error, row["standard_error"])


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


def test_a_call_that_fails_is_a_row():
    told = '{"answer": {"direction": "upper", "value": %s}, "cpu_s": 0.1234, "peak_mb": 80.2}\n'
    assert peers.outcome(0, "a warning\n" + told % "1.5", "", 60) == {
        "direction": "upper", "value": 1.5, "cpu_s": 0.123, "peak_mb": 80,
    }  # fmt: skip
    assert peers.outcome(-signal.SIGXCPU, "", "", 60) == {"failure": "no answer in 60 s"}
    for last in ("MemoryError", "xla: " * 100 + "Out of memory allocating 1 bytes."):
        assert peers.outcome(1, "", f"Traceback\n{last}", 60) == {"failure": "memory limit reached"}
    assert peers.outcome(1, "", "Traceback\nValueError: no", 60) == {"failure": "ValueError: no"}
    assert peers.outcome(0, told % "NaN", "", 60) == {"failure": "answered nan"}
    assert peers.outcome(0, told % "Infinity", "", 60)["value"] == "infinite"


def test_limits_hold():
    """A process that computes on, and one that takes too much memory, are ended."""
    import subprocess

    endless = "import _child; _child.limit(1, 6000)\nwhile True: pass"
    greedy = "import _child; _child.limit(10, 500)\nb = bytearray(10**9)"
    run = lambda code: subprocess.run([sys.executable, "-c", code], cwd=peers.PEERS, capture_output=True, text=True)
    done = run(endless)
    assert peers.outcome(done.returncode, done.stdout, done.stderr, 1) == {"failure": "no answer in 1 s"}
    done = run(greedy)
    assert peers.outcome(done.returncode, done.stdout, done.stderr, 10) == {"failure": "memory limit reached"}
