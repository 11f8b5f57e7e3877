"""The lattice accountant: laws that dominate and are dominated, brackets that hold the truth."""

import math

import numpy as np
import pytest
from oracle_cases import cases, pair

from dplib import NoBracketError, _lattice_law, lattice, mixtures

COMPOSED = [c for c in cases("oracle") if c.rounds > 1 and not math.isinf(c.log_delta)]
COMPOSED = [
    c for c in COMPOSED if "parts" in c.params or not pair(c.params).is_gaussian
]


@pytest.mark.parametrize("case", COMPOSED[::3], ids=str)
def test_delta_is_inside_the_bracket(case):
    try:
        bracket = lattice.side_log_delta(case.composition(), case.epsilon, case.direction, 1e-3)
    except NoBracketError:
        return  # a refusal is an answer; a wrong bracket is not
    room = case.tolerance + 1e-12 * (1 + abs(case.log_delta))
    assert bracket.lower - room <= case.log_delta <= bracket.upper + room


@pytest.mark.parametrize("case", [c for c in COMPOSED[1::6] if -690 < c.log_delta], ids=str)
def test_epsilon_is_inside_the_bracket(case):
    try:
        bracket = lattice.side_epsilon(case.composition(), case.delta, case.direction, 1e-3)
    except NoBracketError:
        return
    room = 1e-9 * case.epsilon
    assert bracket.lower - room <= case.epsilon <= bracket.upper + room


PAIRS = {
    "sampled": mixtures.binomial(1, 0.01, 1.0),
    "group": mixtures.binomial(8, 0.2, 0.7),
    "fixed batch": mixtures.hypergeometric(20, 100, 5, 2.0),
    "uneven": mixtures.Mixture([0.3, 1.0, 2.5], [0.2, 0.5, 0.3], 1.2),
    "tiny": mixtures.binomial(1, 1e-3, 0.8),
}


def law(mixture, direction, h, c=0.0):
    step = _lattice_law.Step(mixture, 1, direction, math.log(1e-9))
    return _lattice_law.Law(step, h, c)


def curve(law, side, epsilon):
    masses = getattr(law, side) * np.exp(law.scale - law.c * law.losses())
    infinite = math.exp(law.log_infinite) if side == "upper" else 0.0
    return infinite + masses @ np.maximum(-np.expm1(np.subtract.outer(epsilon, law.losses()).T), 0.0)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("fraction", [1.0, 0.2, 0.03])
def test_one_round_laws_enclose_the_closed_form(name, direction, fraction):
    """At every epsilon, on and off the lattice, also where the lattice is very coarse."""
    mixture = PAIRS[name]
    scale = float(np.ptp(mixture.log_ratio(np.array([-1.0, 1.0]))))
    one = law(mixture, direction, fraction * scale)
    epsilon = np.linspace(-2 * scale, 6 * scale, 161)
    truth = mixture.hockey_stick(epsilon, direction)
    upper, lower = curve(one, "upper", epsilon), curve(one, "lower", epsilon)
    rounding = 1e-13 * (1 + truth.max())
    assert np.all(upper >= truth - rounding)
    assert np.all(lower <= truth + rounding)
    assert np.all(one.lower >= 0) and np.all(one.upper >= 0)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_laws_converge_at_second_order(direction):
    mixture = PAIRS["group"]
    epsilon = np.array([0.3, 0.9])
    truth = mixture.hockey_stick(epsilon, direction)
    gaps = []
    for h in (0.04, 0.02, 0.01):
        one = law(mixture, direction, h)
        gaps.append((curve(one, "upper", epsilon) - curve(one, "lower", epsilon)).max())
        assert np.all(curve(one, "lower", epsilon) <= truth + 1e-14)
    assert gaps[2] < 0.1 * gaps[0]


def test_masses_keep_both_totals():
    """Chords keep P- and Q-mass; merging keeps them too."""
    one = law(PAIRS["group"], "remove", 0.05)
    for side in ("upper", "lower"):
        masses = getattr(one, side) * np.exp(one.scale)
        assert masses.sum() == pytest.approx(1, abs=1e-12)
        assert (masses * np.exp(-one.losses())).sum() == pytest.approx(1, abs=1e-12)


def test_repair_removes_every_negative_mass_and_lowers_the_curve():
    rng = np.random.default_rng(5)
    h = 0.1
    losses = h * np.arange(40)
    epsilon = np.linspace(-0.5, 4.5, 200)
    for _ in range(200):
        merged = rng.random(40) ** 6
        # Points up to half a cell away from their lattice point.
        shift = rng.uniform(-0.5, 0.5, 40) * h
        miss = merged * np.expm1(shift)
        exact = merged * np.exp(shift)
        truth = exact @ np.maximum(-np.expm1(np.subtract.outer(epsilon, losses + shift).T), 0)
        fixed = _lattice_law.repair(merged.copy(), miss.copy(), h, 0.0)
        assert np.all(fixed >= 0)
        got = fixed @ np.maximum(-np.expm1(np.subtract.outer(epsilon, losses).T), 0)
        assert np.all(got <= truth + 1e-12)


def test_small_composition_by_enumeration():
    """Three rounds: the composed upper law equals a direct convolution of the same masses."""
    mixture = PAIRS["uneven"]
    solver = lattice._Solver([(mixture, 3)], "remove", epsilon=2.0)
    upper, _ = next(solver.brackets(1e-3))
    one = upper.laws[0]
    masses = one.upper * np.exp(one.scale - one.c * one.losses())
    composed = np.convolve(np.convolve(masses, masses), masses)
    losses = 3 * one.losses()[0] + one.h * np.arange(len(composed))
    direct = composed @ np.maximum(-np.expm1(2.0 - losses), 0) + 3 * math.exp(one.log_infinite)
    assert upper.log_bound(2.0) == pytest.approx(math.log(direct), abs=1e-9)


def test_impossible_losses_are_refused_or_zero():
    """Adding: the loss of two rounds never exceeds twice -log p_0."""
    mixture = mixtures.binomial(1, 0.1, 1.0)
    bracket = lattice.side_log_delta([(mixture, 2)], 0.15, "add")
    assert bracket.upper < 0
    most = -2 * math.log(0.9)
    with pytest.raises(NoBracketError):
        lattice.side_log_delta([(mixture, 2)], most * 1.5, "add")
