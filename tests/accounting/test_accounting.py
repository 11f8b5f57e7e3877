"""Every committed high-precision value lies inside the certified bracket."""

import math

import mpmath as mp
import pytest
from exact_pairs import Exact
from oracle_cases import cases, load, pair

from dplib import NoBracketError, accounting, gaussian, mixtures


def hard(case):
    """The regime where a clear error is an allowed answer: few rounds or tiny probabilities."""
    parts = case.params.get("parts", [case.params])
    return case.rounds <= 20 or any(float(p.get("q", 1)) < 1e-3 for p in parts)


def sample(cases):
    """All quick cases, and every third of those that the lattice needs a second or two for."""
    cases = [c for c in cases if c.epsilon >= 0]
    few = [c for c in cases if c.rounds > 1 and hard(c)]
    return [c for c in cases if c not in few] + few[::3]


def slack(case):
    """Room for the printed digits, and for inputs that are decimals rather than doubles."""
    return case.tolerance + 1e-13 * (1 + abs(case.log_delta))


@pytest.mark.parametrize("case", sample(cases("oracle") + cases("group")), ids=str)
def test_delta_of_every_reference_value_is_inside(case):
    composition = case.composition()
    if math.isinf(case.log_delta):
        assert accounting.delta(composition, case.epsilon, case.direction).upper == 0
        return
    try:
        bracket = accounting.log_delta(composition, case.epsilon, case.direction)
    except NoBracketError as error:
        assert hard(case), f"refused outside the hard regime: {error}"
        return
    # Where epsilon was the computed one, its printed digits move delta by c * epsilon each.
    room = slack(case) if case.output == "delta" else 1e-7
    assert bracket.lower - room <= case.log_delta <= bracket.upper + room
    if not hard(case):
        assert bracket.width <= 1e-4


# Two expected participations, or delta below e^-40: the contour does not close within its work, the lattice answers.
LATTICE_WIDTHS = {"contour-051": 5e-4, "contour-079": 5e-4, "contour-130": 1e-5, "contour-133": 1e-3}


INVERTIBLE = [c for c in sample(cases("oracle") + cases("group")) if -690 < c.log_delta and c.delta < 1]


# Their deltas are all asked for above; of their epsilons `make test` asks for every second.
@pytest.mark.parametrize("case", [pytest.param(c, marks=[pytest.mark.trust] * (place % 2)) for place, c in enumerate(INVERTIBLE)], ids=str)
def test_epsilon_of_every_reference_value_is_inside(case):
    try:
        bracket = accounting.epsilon(case.composition(), case.delta, case.direction)
    except NoBracketError as error:
        assert hard(case), f"refused outside the hard regime: {error}"
        return
    # delta as a double moves epsilon by one part in 10^13 or so of its own scale.
    room = 1e-11 * case.epsilon + (case.tolerance * case.epsilon if case.output == "epsilon" else 0)
    if case.epsilon == 0:
        return
    assert bracket.lower - room <= case.epsilon <= bracket.upper + room or inside_by_delta(case)
    if not hard(case) and case.rounds >= 100:
        # The rounding allowance grows with the rounds.
        most = LATTICE_WIDTHS.get(case.id, max(1e-6, 1e-11 * case.rounds))
        assert bracket.relative_width <= most or bracket.width < 1e-9


def inside_by_delta(case):
    """Near the largest possible loss epsilon is ill-conditioned: compare through delta."""
    bracket = accounting.log_delta(case.composition(), case.epsilon, case.direction)
    return bracket.lower - slack(case) <= case.log_delta <= bracket.upper + slack(case)


def reliability_cases():
    return [v for v in load("reliability") if v.get("truth") is not None and "sigma" in v["input"]]


@pytest.mark.parametrize("value", reliability_cases(), ids=lambda v: v["id"])
def test_cases_in_which_a_trusted_accountant_goes_wrong(value):
    given = value["input"]
    parameters = {"sigma": given["sigma"], "q": given["q"], "k": given.get("k", 1)}
    composition = [(pair(parameters), given["T"])]
    if "delta" not in given:
        pytest.skip("not an epsilon")
    bracket = accounting.epsilon(composition, float(given["delta"]))
    truth = value["truth"]
    low, high = truth if isinstance(truth, list) else (truth, truth)
    room = 2e-9 * high  # the table prints about ten digits
    assert bracket.lower <= high + room and low - room <= bracket.upper


def test_one_round_with_a_delta_near_one_is_inside():
    """The logarithm is near 0, its rounding is not: against 60 digits."""
    pair = mixtures.Mixture([0.5, 1.0], [0.1, 0.9], 0.1)
    bracket = accounting.log_delta([(pair, 1)], 0.5, "add")
    with mp.workdps(60):
        exact = mp.log(Exact(pair).hockey_stick(0.5, "add"))
    assert -0.01 < exact < 0 and bracket.lower <= exact <= bracket.upper
    assert bracket.width >= 2 * gaussian.TAIL_ERROR  # which is all that its kernel promises


def test_a_delta_far_below_the_smallest_float():
    """delta underflows to the smallest float, its logarithm does not."""
    composition = [(mixtures.binomial(1, 0.01, 1.0), 2000)]
    assert accounting.delta(composition, 120.0).upper == 5e-324
    bracket = accounting.log_delta(composition, 120.0)
    assert bracket.upper < -900 and bracket.relative_width < 1e-9
