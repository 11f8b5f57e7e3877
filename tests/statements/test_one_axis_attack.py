"""The attack on schemes and adjacencies: a sample of benchmarks/one_axis_attack.py, its truth by other routes, and faults that it must see."""

import ast
import dataclasses
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from domination_cases import composed
from folders import imported

import dplib
from dplib.results import Bracket, Certificate, Estimate, UpperBound

ROOT = Path(__file__).resolve().parents[2]


attack, truth = imported("benchmarks", "one_axis_attack"), imported("tests/oracle", "one_axis")
# Of a seed of its own one setting of each kind; bins among phases and epochs take seconds each.
SLOW = ("bins among phases", "allocation, 1 of t, epochs")
NUMBERS = [
    next(n for n in range(len(attack.PLAN)) if attack.kind_of(n) == kind) for kind in attack.KINDS if kind not in SLOW
]  # fmt: skip


def test_the_truth_shares_no_code_with_the_library():
    tree = ast.parse((ROOT / "tests" / "oracle" / "one_axis.py").read_text(encoding="utf-8"))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules - {"numpy", "scipy"} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("number", NUMBERS)
def test_answers_are_on_the_right_side_of_the_truth(number):
    row = attack.attack("test 3", number)
    assert not {"outside", "failed", "refused"} & row.keys(), row
    assert "left out" in row or 0 <= row["true lower"] <= row["true upper"] <= 1


# --- the truth by other routes --------------------------------------------------------------------------------


@pytest.mark.trust
@pytest.mark.parametrize("law", [
    truth.poisson(1.0, 0.1, 2, 3), truth.add(truth.poisson(1.0, 0.1, 2, 0)), truth.fixed(2.0, 10, 100, "substitution"),
    truth.truncated(1.5, 0.1, 100, 11, "add-remove"), truth.add(truth.truncated(1.5, 0.1, 100, 11, "substitution")),
])  # fmt: skip
def test_few_rounds_by_sums_over_the_axis(law):
    """The losses of all pieces at many places, rounded to a plain grid: no cells, no chords, no tilt."""
    y = np.linspace(-12.0, 16.0, 56_001)
    density = lambda shifts: sum(math.exp(log) * np.exp(-((y - shift) ** 2) / 2) for shift, log in shifts) / math.sqrt(2 * math.pi)
    losses, masses = [], []
    for weight, pair, part in law.pieces:
        p, q = density(pair.first), density(pair.second)
        kept = (p > 0) & (q > 0)
        loss, mass = np.log(p[kept] / q[kept]), weight * p[kept] * (y[1] - y[0])
        chosen = {"all": loss > -np.inf, "above": loss > 0, "below": loss < 0}[part]
        losses.append(loss[chosen])
        masses.append(mass[chosen])
    rest = max(1 - sum(mass.sum() for mass in masses), 0.0)
    losses, masses = np.append(np.concatenate(losses), 0.0), np.append(np.concatenate(masses), rest)
    for rounds, epsilon in ((1, 0.5), (6, 1.5)):
        lower, upper = truth.Composition([(law, rounds)]).delta(epsilon)
        low, high = composed([(losses, losses, masses, rounds)], 2e-4, 400.0)(epsilon)
        assert lower <= high + 1e-8 and low - 1e-8 <= upper and upper - lower < 2e-3 * upper + 1e-9


@pytest.mark.trust
def test_a_mean_of_lognormals_is_a_mixture():
    modes = truth.subsets(3, 1, 0.8)
    law = truth.Ratios(3, 0.8)
    for side, epsilon in (("remove", 2.0), ("add", 0.8)):
        value, error = truth.few_rounds(*modes, epsilon, side, 0.25)
        lower, upper = law.delta(epsilon, side)
        assert lower <= value + error and value - error <= upper and upper - lower < 5e-3 * upper


@pytest.mark.trust
@pytest.mark.parametrize("side", ["remove", "add"])
def test_few_rounds_by_draws(side):
    matrix = np.array([[1.0, 0.0, 0.0], [0.6, 1.0, 0.0], [0.0, 0.6, 1.0]])
    rng = np.random.default_rng(3)
    for modes, weights in (truth.subsets(3, 2, 1.2), truth.pauses(matrix, 0.4, 2, True, 1.5)):
        value, error = truth.few_rounds(modes, weights, 0.7, side, 0.3)
        z = rng.standard_normal((400_000, 3))
        if side == "remove":
            z += modes[rng.choice(len(modes), len(z), p=weights)]
        ratio = np.exp(z @ modes.T - (modes**2).sum(axis=1) / 2) @ weights
        drawn = np.maximum(1 - math.exp(0.7) / ratio, 0) if side == "remove" else np.maximum(1 - math.exp(0.7) * ratio, 0)
        assert error < 1e-4 * value and abs(drawn.mean() - value) < 4.5 * drawn.std() / math.sqrt(len(z))


def test_patterns_with_a_pause_have_one_rate():
    for p, separation in ((0.3, 2), (0.9, 3), (0.05, 4)):
        modes, weights = truth.pauses(np.eye(6), p, separation, True, 1.0)
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        np.testing.assert_allclose(weights @ modes, p / (1 + (separation - 1) * p), rtol=1e-12)


# --- faults ---------------------------------------------------------------------------------------------------


@pytest.mark.trust
def test_what_is_on_the_wrong_side_is_seen():
    lower, upper = 1e-5, 1.001e-5
    for fine in (Bracket(0.9e-5, 1.0e-5), UpperBound(1e-5), Certificate(2e-5, 1e-9, 100), Estimate(1.04e-5, 1e-7, 1.1e-5, 0.975)):
        assert attack.misses(fine, lower, upper) is None
    for wrong in (
        Bracket(0.9e-5, 0.999e-5), Bracket(1.002e-5, 2e-5), UpperBound(0.999e-5), Certificate(0.9e-5, 1e-9, 100), Estimate(1.06e-5, 1e-7, 1.1e-5, 0.975),
    ):  # fmt: skip
        assert attack.misses(wrong, lower, upper)


@pytest.mark.trust
@pytest.mark.parametrize("kind", ["Poisson, inserted and deleted", "fixed batch, substitution", "truncated Poisson, zero-out", "last iterate", "pause"])
def test_a_little_more_noise_is_seen(kind, monkeypatch):
    """Answers for noise that is 5% larger are outside, in the scale of every kind."""
    made = attack.MAKERS[kind]

    def louder(*arguments):
        case, method = made(*arguments)
        case.mechanism = dataclasses.replace(case.mechanism, noise_multiplier=1.05 * case.mechanism.noise_multiplier)
        return case, method

    monkeypatch.setitem(attack.MAKERS, kind, louder)
    monkeypatch.setattr(attack.random.Random, "choice", lambda self, options: options[0])  # remove, delta, and the first method
    numbers = [n for n in range(len(attack.PLAN)) if attack.kind_of(n) == kind][:1]
    assert any("outside" in attack.attack("fault", n) for n in numbers)
    assert isinstance(dplib.PoissonDPSGD(1.0, 0.1, 1).delta(1.0), Bracket)
