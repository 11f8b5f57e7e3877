"""The sealed table of truths, computed in 60-digit arithmetic without dplib, against every mechanism's answer.

tests/data/truth_values.json; `make truth` computes it again. Comparisons are exact: floats become fractions.
"""

import hashlib
import json
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dplib import (
    BallsInBins,
    FixedBatchDPSGD,
    LastIterate,
    MatrixMechanism,
    NoBracketError,
    PoissonDPSGD,
    gaussian,
    matrices,
    sensitivity,
)
from dplib.lessons import truth
from dplib.results import Bracket, Certificate, Estimate

DATA = Path(__file__).parent.parent / "data"
VALUES = json.loads((DATA / "truth_values.json").read_text(encoding="utf-8"))["values"]


def of(*kinds):
    return pytest.mark.parametrize(
        "value", [v for v in VALUES if v["mechanism"] in kinds], ids=lambda v: v["id"]
    )


def exact(value):
    return Fraction(value["delta"])


def below(number):
    """The largest float at most `number`, a fraction."""
    found = float(number)
    return found if Fraction(found) <= number else math.nextafter(found, 0)


def above(number):
    found = float(number)
    return found if Fraction(found) >= number else math.nextafter(found, 1)


def contains(bracket, number):
    assert isinstance(bracket, Bracket)
    return Fraction(bracket.lower) <= number <= Fraction(bracket.upper)


def encoder(p):
    if "table" in p:
        return matrices.dense(np.array(p["table"], float))
    coefficients = [float(c) for c in p["coefficients"]]
    return matrices.toeplitz(coefficients + [0.0] * (p["n"] - len(coefficients)))


def mechanism(value):
    p, kind = value["params"], value["mechanism"]
    sigma = float(p["sigma"])
    if kind in ("poisson", "one_step"):
        return PoissonDPSGD(sigma, float(p["q"]), p["T"], p["k"])
    if kind == "last_iterate":
        return LastIterate(sigma, float(p["q"]), p["T"])
    if kind == "fixed_batch":
        return FixedBatchDPSGD(sigma, p["batch_size"], p["dataset_size"], p["T"], p["k"])
    if kind == "balls_in_bins":
        made = encoder(p)
        return BallsInBins(made, sigma, p["b"], made.columns // p["b"])
    return MatrixMechanism(encoder(p), sigma, float(p["q"]), p.get("b", 1))


def test_the_tables_are_sealed():
    lines = (DATA / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    seals = {name: digest for digest, name in (line.split() for line in lines)}
    assert {"truth_values.json", "oracle.json", "group.json", "renyi.json"} <= set(seals)
    for name, digest in seals.items():
        assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == digest, f"{name} was changed"


@of("one_step", "poisson", "last_iterate", "fixed_batch")
def test_brackets_contain_the_truth(value):
    """[M-F5], [G-3.1], [G-3.3] To every digit, by every method."""
    made, side, epsilon = mechanism(value), value["direction"], float(value["epsilon"])
    composed = value["mechanism"] in ("poisson", "fixed_batch") and value["params"]["T"] > 1 and exact(value)
    for method in ("auto", "lattice") if composed else ("auto", "contour", "lattice"):
        assert contains(made.delta(epsilon, side, method), exact(value)), method
    if composed:  # two rounds may be too few for the contour
        try:
            assert contains(made.delta(epsilon, side, "contour"), exact(value))
        except NoBracketError as refused:
            assert re.search("too slowly|too few|nodes", str(refused))
    assert made.delta(epsilon, side, "renyi").upper >= exact(value)
    both = made.delta(epsilon).upper
    assert both >= exact(value)
    if exact(value):
        check_epsilon(made, value)


def check_epsilon(made, value):
    """epsilon falls with delta: just below the truth its upper end is not below epsilon, just above not above."""
    epsilon, side = Fraction(float(value["epsilon"])), value["direction"]
    assert made.epsilon(below(exact(value)), side).upper >= epsilon
    assert made.epsilon(above(exact(value)), side).lower <= epsilon


@of("gaussian")
def test_gaussian_closed_form(value):
    mu, epsilon, delta = float(value["params"]["mu"]), float(value["epsilon"]), float(exact(value))
    assert gaussian.delta(mu, epsilon) == pytest.approx(delta, rel=1e-13, abs=0)
    assert gaussian.epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-12, abs=1e-12)
    assert gaussian.calibrate(epsilon, delta) == pytest.approx(mu, rel=1e-12, abs=0)


@of("unamplified")
def test_unamplified_matrix_mechanism(value):
    """The sensitivity of the encoder, then the closed form; and one bin an epoch, which is the same mechanism."""
    p, epsilon = value["params"], float(value["epsilon"])
    made, sigma = matrices.optimal_counting(p["n"]), float(p["sigma"])
    mu = sensitivity.round_robin(made, p["period"]) / sigma
    assert gaussian.delta(mu, epsilon) == pytest.approx(float(exact(value)), rel=1e-11, abs=0)
    if p["period"] < p["n"]:
        everyone = sensitivity.min_separation(made, p["period"])
        assert everyone.upper == pytest.approx(mu * sigma, rel=1e-13, abs=0)


def independent(value):
    """Whether C = I, where the library is exact."""
    return value["params"].get("coefficients") == ["1"]


@of("balls_in_bins")
def test_balls_in_bins(value):
    """Brackets contain the truth, estimates are within four standard errors."""
    made, side, epsilon = mechanism(value), value["direction"], float(value["epsilon"])
    if independent(value):
        assert contains(made.delta(epsilon, side), exact(value))
        check_epsilon(made, value)
    if value["params"]["b"] <= 32:
        guess = made.delta(epsilon, side, "estimate")
        assert isinstance(guess, Estimate)
        assert abs(guess.value - float(exact(value))) <= 4 * guess.standard_error
        assert 0 < guess.standard_error < 0.05 * guess.value


def in_turn(values):
    """Of each two settings, remove and add after each other, one direction of the first and the other of the second; the rest in `make trust`."""
    return [pytest.param(value, marks=pytest.mark.trust if i % 4 in (1, 2) else ()) for i, value in enumerate(values)]


@pytest.mark.parametrize(
    "value", in_turn(v for v in VALUES if v["mechanism"] == "balls_in_bins" and not independent(v)), ids=lambda v: v["id"]
)
def test_certificates_are_not_below_the_truth(value):
    epsilon, side = float(value["epsilon"]), value["direction"]
    proof = mechanism(value).delta(epsilon, side, "certificate", samples=2**13, failure_probability=1e-6)
    assert isinstance(proof, Certificate) and proof.upper >= exact(value)
    assert proof.upper <= 1.2 * float(exact(value))


@of("matrix")
def test_matrix_mechanism(value):
    """MMCC is an upper bound, by every tail bound; the library's own near-exact routes are at the truth."""
    made, side, epsilon = mechanism(value), value["direction"], float(value["epsilon"])
    found = made.delta(epsilon, side)
    assert found.upper >= exact(value)
    if exact(value):
        assert made.epsilon(below(exact(value)), side).upper >= Fraction(epsilon)
    table, q = np.array(value["params"]["table"], float), float(value["params"]["q"])
    near = truth.all_modes(table, made.noise_multiplier, q).delta(epsilon, side)
    assert abs(near.value - float(exact(value))) <= 4 * near.standard_error + 1e-15
    if len(table) == 2:
        near = truth.two_rounds(table, made.noise_multiplier, q).delta(epsilon, side)
        assert near.value == pytest.approx(float(exact(value)), rel=1e-8, abs=0)


@of("separated")
def test_separated_participations(value):
    """With bands at most b nothing correlates a record's rounds: the bound is the truth."""
    made, side, epsilon = mechanism(value), value["direction"], float(value["epsilon"])
    found = made.delta(epsilon, side)
    assert found.upper >= exact(value)
    assert found.upper <= float(exact(value)) * (1 + 1e-3)
