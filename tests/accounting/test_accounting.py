"""Every committed high-precision value lies inside the certified bracket."""

import math

import mpmath as mp
import pytest
from oracle_cases import cases, load, pair

from dplib import FixedBatchDPSGD, NoBracketError, PoissonDPSGD, accounting, gaussian, mixtures


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
LATTICE_WIDTHS = {"contour-051": 5e-4, "contour-079": 5e-4, "contour-130": 5e-6, "contour-133": 1e-3}


@pytest.mark.parametrize(
    "case",
    [c for c in sample(cases("oracle") + cases("group")) if -690 < c.log_delta and c.delta < 1],
    ids=str,
)
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


@pytest.mark.parametrize("value", load("group_figures"), ids=lambda v: v["id"])
def test_points_of_both_figures(value):
    """[G-4] Figures 1 and 2 of Ganesh 2024, against an independent computation."""
    if value["mechanism"] == "poisson":
        mechanism = PoissonDPSGD(value["sigma"], 0.01, 2000, value["k"])
    else:
        mechanism = FixedBatchDPSGD(value["sigma"], 500, 50_000, 2000, value["k"])
    for direction in ("remove", "add"):
        truth = value["epsilon_" + direction]
        bracket = mechanism.epsilon(1e-6, direction)
        assert bracket.relative_width <= 1e-9
        # Both sides carry rounding of about 1e-13.
        assert bracket.lower - 1e-12 * truth <= truth <= bracket.upper + 1e-12 * truth


def test_headline_value():
    bracket = PoissonDPSGD(
        noise_multiplier=1.0, sampling_probability=0.01, steps=2000, group_size=9
    ).epsilon(delta=1e-6)
    assert bracket.lower <= 40.80104471562 <= bracket.upper
    assert bracket.width < 1e-6
    assert bracket.method == "contour"


def test_group_table():
    """[G-3.1] The table of the theory sheet: remove / add, to its four digits."""
    table = {
        (1, 1): (2.955, 2.396), (4, 1): (14.54, 11.29), (9, 1): (40.80, 29.94),
        (16, 1): (90.90, 62.40), (1, 2): (1.035, 0.9765), (9, 2): (12.36, 11.36),
        (16, 4): (9.947, 9.588),
    }  # fmt: skip
    for (k, sigma), (remove, add) in table.items():
        mechanism = PoissonDPSGD(sigma, 0.01, 2000, k)
        assert mechanism.epsilon(1e-6, "remove").upper == pytest.approx(remove, rel=5e-4)
        assert mechanism.epsilon(1e-6, "add").upper == pytest.approx(add, rel=5e-4)


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


def test_both_accountants_agree_on_one_problem():
    """Two independent routes: brackets by the contour and by the lattice overlap."""
    composition = [(mixtures.binomial(3, 0.05, 0.9), 300), (mixtures.binomial(1, 0.2, 2.0), 150)]
    for direction in ("remove", "add"):
        first = accounting.epsilon(composition, 1e-7, direction, method="contour")
        second = accounting.epsilon(composition, 1e-7, direction, method="lattice")
        assert (first.method, second.method) == ("contour", "lattice")
        assert max(first.lower, second.lower) <= min(first.upper, second.upper)
        assert second.relative_width < 1e-4


@pytest.mark.parametrize("delta", [1e-100, 1e-30, 1e-3, 0.5, 0.99, 1 - 1e-9])
def test_epsilon_and_delta_are_inverse_over_the_whole_range(delta):
    composition = [(mixtures.binomial(2, 0.1, 1.0), 1000)]
    for direction in ("remove", "add"):
        epsilon = accounting.epsilon(composition, delta, direction)
        back = accounting.delta(composition, epsilon.midpoint, direction)
        if epsilon.lower > 0:
            assert back.lower <= delta * (1 + 1e-7) and back.upper >= delta * (1 - 1e-7)
        else:
            assert back.lower <= delta * (1 + 1e-9)


def test_one_round_with_a_delta_near_one_is_inside():
    """The logarithm is near 0, its rounding is not: against 60 digits."""
    pair = mixtures.Mixture([0.5, 1.0], [0.1, 0.9], 0.1)
    with mp.workdps(60):
        shifts = [mp.mpf(s) for s in pair.shifts]
        weights = [mp.exp(mp.mpf(w)) for w in pair.log_probabilities]
        weights[1] = 1 - weights[0]
        tail = lambda y: mp.erfc(y / mp.sqrt(2)) / 2
        loss = lambda u: mp.log(mp.fsum(p * mp.exp(a * u - a * a / 2) for a, p in zip(shifts, weights)))
        u = mp.findroot(lambda u: loss(u) + 0.5, 3.5)
        exact = mp.log(tail(-u) - mp.exp(0.5) * mp.fsum(p * tail(a - u) for a, p in zip(shifts, weights)))
        bracket = accounting.log_delta([(pair, 1)], 0.5, "add")
        assert -0.01 < exact < 0 and bracket.lower <= exact <= bracket.upper
    assert bracket.width >= 2 * gaussian.TAIL_ERROR  # which is all that its kernel promises


def test_a_delta_far_below_the_smallest_float():
    """delta underflows to the smallest float, its logarithm does not."""
    composition = [(mixtures.binomial(1, 0.01, 1.0), 2000)]
    assert accounting.delta(composition, 120.0).upper == 5e-324
    bracket = accounting.log_delta(composition, 120.0)
    assert bracket.upper < -900 and bracket.relative_width < 1e-9


def test_different_rounds_that_hardly_ever_sample_go_to_the_lattice_first(monkeypatch):
    """The contour would close late: its characteristic function does not decay."""
    monkeypatch.setattr(accounting.contour, "side_epsilon", lambda *arguments: pytest.fail("the contour is asked"))
    parts = [(mixtures.binomial(1, 1e-5 * (1 + i), 1.0), 4) for i in range(5)]
    found = accounting.epsilon(parts, 1e-7, tolerance=1e-3)
    assert found.method == "lattice" and found.relative_width <= 1e-3
