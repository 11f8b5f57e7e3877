"""Bounds that always exist: on the right side of the truth, and answers where no accountant closes."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from oracle_cases import cases, pair
from scipy import special

from dplib import FixedBatchDPSGD, PoissonDPSGD, accounting, lattice, mixtures
from dplib.accounting import wide
from dplib.results import NoBracketError

COMPOSED = [c for c in cases("oracle") if c.rounds > 1 and not math.isinf(c.log_delta)]
COMPOSED = [c for c in COMPOSED if "parts" in c.params or not pair(c.params).is_gaussian][::4]


@pytest.mark.parametrize("case", COMPOSED, ids=str)
def test_both_ends_hold_the_truth(case):
    """Against values in multiple precision by programs that share no code with the library."""
    parts = accounting.merged(case.composition())
    assert case.log_delta <= wide.log_upper(parts, case.epsilon, case.direction) + 1e-12 * abs(case.log_delta)
    assert wide.log_lower(parts, case.epsilon, case.direction) <= case.log_delta + 1e-12 * abs(case.log_delta)
    miss = math.log1p(-case.delta) if case.delta < 1 else -math.inf
    assert miss <= wide.log_miss(parts, case.epsilon, case.direction) + 1e-12
    if case.log_delta > -690:
        upper = wide.epsilon_upper(parts, case.delta, case.direction)
        assert case.epsilon <= upper * (1 + 1e-9) + 1e-12


@given(
    weights=st.lists(st.floats(0.02, 1.0), min_size=2, max_size=4),
    gaps=st.lists(st.floats(0.05, 2.0), min_size=3, max_size=3),
    noise=st.floats(0.3, 3.0),
    rounds=st.integers(2, 40),
    epsilon=st.floats(0.0, 6.0),
    direction=st.sampled_from(["remove", "add"]),
)
@settings(max_examples=25, deadline=None)
def test_wide_bounds_of_random_mixtures(weights, gaps, noise, rounds, epsilon, direction):
    """[A-18] Neither bound is on the wrong side of the bracket of the lattice."""
    shifts = np.cumsum([0.0, *gaps])[: len(weights)]
    parts = [(mixtures.Mixture(shifts, np.array(weights) / sum(weights), noise), rounds)]
    try:
        bracket = accounting.delta(parts, epsilon, direction, "lattice", tolerance=1e-3)
    except NoBracketError:
        reject()  # delta is below e^-5000
    assert math.exp(wide.log_lower(parts, epsilon, direction)) <= bracket.upper
    assert bracket.lower <= math.exp(wide.log_upper(parts, epsilon, direction))
    assert 1 - bracket.upper <= math.exp(wide.log_miss(parts, epsilon, direction))


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("epsilon", [0.0, 1.5])
def test_miss_of_one_round(direction, epsilon):
    """1 - delta of one round by quadrature in 30 digits, below the bound and within a factor of 30 of it."""
    mixture = mixtures.Mixture([0.5, 9.0], [0.3, 0.7], 1.0)
    density = lambda u: mpmath.mpf("0.3") * mpmath.npdf(u - 0.5) + mpmath.mpf("0.7") * mpmath.npdf(u - 9)
    first, second = (density, mpmath.npdf) if direction == "remove" else (mpmath.npdf, density)
    with mpmath.workdps(30):
        points = [-20, -5, 0, 2, 4, 6, 9, 14, 30]
        truth = mpmath.quad(lambda u: min(first(u), mpmath.exp(epsilon) * second(u)), points)
    bound = math.exp(wide.log_miss([(mixture, 1)], epsilon, direction))
    assert float(truth) <= bound <= 30 * float(truth)


@pytest.mark.parametrize("rounds, mu, epsilon", [(100, 2.0, 1.0), (30_000, 0.1, 4.0), (2, 6.0, 0.0)])
def test_miss_of_composed_gaussians(rounds, mu, epsilon):
    """In closed form: above the truth, and within a factor of 20 of it."""
    total = mu * math.sqrt(rounds)
    first = special.log_ndtr(epsilon / total - total / 2)
    truth = np.logaddexp(first, epsilon + special.log_ndtr(-epsilon / total - total / 2))
    bound = wide.log_miss([(mixtures.Mixture([mu], [1.0], 1.0), rounds)], epsilon, "remove")
    assert truth <= bound <= truth + math.log(20)


def test_cells_hold_all_mass():
    for direction in ("remove", "add"):
        for logs in wide._cells(mixtures.binomial(5, 0.2, 0.3), direction):
            assert np.exp(logs).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", ["nested-005", "recursion-014", "recursion-020", "recursion-021"])
def test_logarithms_where_no_accountant_closes(name):
    """Of these the logarithm of delta was refused; the bracket may be wide, and holds the value."""
    [case] = [case for case in cases("oracle") if case.id == name]
    bracket = accounting.log_delta(case.composition(), case.epsilon, case.direction)
    assert bracket.lower <= case.log_delta <= bracket.upper
    # Whether the lattice closes for the first of these, or Chernoff's bound has to do, is up to the last digits of its transform: the processor.
    assert bracket.width <= (60 if name == "nested-005" else 20)


QUESTIONS = [  # delta practically 0, practically 1, few expected participations
    (PoissonDPSGD(1.0, 1e-5, 10_000), 1.0),
    (PoissonDPSGD(7.5, 2e-4, 872, 16), 16.0),
    (PoissonDPSGD(0.55, 0.1044, 27_869, 11), 0.85),
    (FixedBatchDPSGD(1.0, 2945, 2945, 3564), 0.18),
    (PoissonDPSGD(2.9, 1.2e-5, 942, 15), 0.28),
    (PoissonDPSGD(500.0, 4e-8, 8_000_000, 143), 6.0),
]


@pytest.mark.parametrize("mechanism, epsilon", QUESTIONS)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_no_practical_question_is_refused(mechanism, epsilon, direction):
    bracket = mechanism.delta(epsilon, direction)
    assert 0 <= bracket.lower <= bracket.upper <= 1
    assert bracket.upper <= mechanism.delta(epsilon, direction, method="renyi").upper
    assert bracket.upper < 1e-12 or bracket.lower > 1 - 1e-6 or bracket.relative_width < 1e-3


def test_rare_sampling_and_a_small_delta():
    """Between a tenth and five expected participations the bracket is narrow, and epsilon and delta agree."""
    mechanism = PoissonDPSGD(1.2, 1e-4, 4000)
    spent = mechanism.epsilon(1e-12)
    assert spent.relative_width < 0.01
    assert mechanism.delta(spent.upper).lower <= 1e-12 <= mechanism.delta(spent.lower).upper


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_losses_of_a_million(direction):
    """The loss is 67,000 at least, and delta 1 at epsilon = 8,800; lattice cells as wide as 200 carry no lower law."""
    composition = [(mixtures.binomial(128_374, 0.47888042846635104, 45.57962440281754), 6)]
    assert accounting.delta(composition, 8800.0, direction).lower > 1 - 1e-12
    if direction == "remove":
        with pytest.raises(NoBracketError):
            lattice.side_log_delta(composition, 8791.908271231063, direction, 1e-3, 35_000, 500_000)


def test_masses_below_the_smallest_float_are_bounded():
    """By the mass to one side, and not by much more."""
    edges = np.linspace(-60.0, 90.0, 151)
    logs = wide._logarithms(np.zeros(150), edges, 0.0, 30.0)
    for low, high, log in zip(edges[:-1], edges[1:], logs):
        mean = min(max((low + high) / 2, 0.0), 30.0)  # of those allowed, the one with most mass there
        exact = mpmath.log(mpmath.ncdf(high - mean) - mpmath.ncdf(low - mean)) if abs(low - mean) < 5 else None
        if exact is None:
            near, far = sorted([abs(low - mean), abs(high - mean)])
            exact = mpmath.log((mpmath.erfc(near / mpmath.sqrt(2)) - mpmath.erfc(far / mpmath.sqrt(2))) / 2)
        assert log >= min(exact, math.log(1e-300)) * (1 + 1e-13)


@pytest.mark.parametrize("mechanism, delta", [(PoissonDPSGD(0.2, 0.3, 50), 1e-9), (PoissonDPSGD(0.2, 0.1, 30), 0.1), (FixedBatchDPSGD(0.3, 10, 100, 30), 1e-3)])
def test_just_below_the_largest_loss(mechanism, delta):
    """[A-18] With hardly any noise epsilon in direction add lies just below the largest loss: inside the lattice's bracket."""
    parts = accounting.merged(mechanism.composition())
    found, lattices = wide.epsilon_below_ceiling(parts, delta), accounting.epsilon(parts, delta, "add", "lattice")
    assert found.lower <= lattices.upper and lattices.lower <= found.upper
    assert found.relative_width < 0.15
    at = 0.9 * found.lower
    found, lattices = wide.delta_below_ceiling(parts, at), accounting.delta(parts, at, "add", "lattice")
    assert found.lower <= lattices.upper and lattices.lower <= found.upper and found.lower > 0
    assert wide.epsilon_below_ceiling([(mixtures.Mixture([1.0, 2.0], [0.5, 0.5], 1.0), 10)], delta) is None


def test_hardly_any_noise_is_answered():
    """Neither accountant has a grid for these losses; the ceiling is 1000 log(1 / 0.7)."""
    spent = PoissonDPSGD(0.02, 0.3, 1000).epsilon(1e-6, "add")
    assert spent.relative_width < 1e-9 and spent.upper == pytest.approx(-1000 * math.log(0.7) + math.log1p(-1e-6), rel=1e-9)
