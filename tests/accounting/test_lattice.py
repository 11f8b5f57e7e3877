"""The lattice accountant: laws that dominate and are dominated, brackets that hold the truth."""

import math

import mpmath
import numpy as np
import pytest
from oracle_cases import cases, pair

from dplib import NoBracketError, lattice, mixtures
from dplib.accounting import lattice_composition, lattice_round, lattice_spectrum

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
    step = lattice_round.Step(mixture, 1, direction, math.log(1e-9))
    return lattice_round.Law(step, h, c)


def curve(law, side, epsilon):
    masses = getattr(law, side) * np.exp(law.scale - law.c * law.losses())
    infinite = math.exp(law.log_infinite) if side == "upper" else 0.0
    return infinite + masses @ np.maximum(-np.expm1(np.subtract.outer(epsilon, law.losses()).T), 0.0)


@pytest.mark.parametrize("name", ["sampled", "group", "uneven", "tiny"])
def test_what_lies_above_the_window_is_kept_by_the_upper_law_alone(name):
    """Beyond the last point of the grid the upper law still lies above the closed form, the lower law is empty."""
    mixture = PAIRS[name]
    one = law(mixture, "remove", 0.1 * float(np.ptp(mixture.log_ratio(np.array([-1.0, 1.0])))))
    epsilon = one.losses()[-1] + np.array([0.0, one.h, 5 * one.h])
    truth = mixture.hockey_stick(epsilon, "remove")
    assert np.all(truth > 0)
    assert np.all(curve(one, "upper", epsilon) >= truth) and np.all(curve(one, "lower", epsilon) == 0)


def test_infinite_losses_of_all_rounds_count_in_the_upper_bound_alone():
    """A loss beyond the window costs its probability, in every round of every mixture."""
    parts = [(PAIRS["uneven"], 3), (PAIRS["group"], 5)]
    solver = lattice._Solver(parts, "remove", epsilon=2.0, for_chernoff=True)
    solver.period, solver.c, _ = lattice._shortest_period(solver.losses, solver.c, solver.rough_epsilon)
    laws = [lattice_round.Law(step, 0.05, solver.c) for step in solver.losses.steps]
    before = [lattice_composition.Sum(laws, side, solver.period, solver.losses.end_moment).log_bound(2.0) for side in ("upper", "lower")]
    laws[0].log_infinite, laws[1].log_infinite = math.log(1e-3), math.log(2e-3)
    after = [lattice_composition.Sum(laws, side, solver.period, solver.losses.end_moment).log_bound(2.0) for side in ("upper", "lower")]
    any_infinite = 1 - (1 - 1e-3) ** 3 * (1 - 2e-3) ** 5
    assert math.exp(after[0]) == pytest.approx(math.exp(before[0]) + any_infinite, rel=1e-6)
    assert after[1] == before[1]


# --- the parts that make it fast --------------------------------------------------------------------


def composed(mixture, rounds):
    """(solver for delta = 1e-6, laws) on a lattice with a twentieth of the bulk as its step."""
    solver = lattice._Solver([(mixture, rounds)], "remove", log_delta=math.log(1e-6))
    solver.period, solver.c, _ = lattice._shortest_period(solver.losses, solver.c, solver.rough_epsilon)
    h = 0.05 * float(np.ptp(mixture.log_ratio(np.array([-1.0, 1.0]))))
    laws = [lattice_round.Law(s, h, solver.c) for s in solver.losses.steps]
    return solver, laws


def test_the_band_bounds_the_frequencies_beyond_it(monkeypatch):
    """Every frequency of the whole transform above the band is below the stated size."""
    monkeypatch.setattr(lattice_spectrum, "FOLD", 1024)
    solver, laws = composed(PAIRS["group"], 3_000)
    total = lattice_composition.Sum(laws, "upper", solver.period, solver.losses.end_moment)
    [one] = laws
    masses = one.upper / one.upper.sum()
    centre = int(round(float(np.arange(len(masses)) @ masses)))
    count = lattice_spectrum._band_width([(masses, centre, 3_000, 1e-13)], total.size)
    transform = np.fft.rfft(lattice_spectrum._wrapped(masses, centre, total.size))
    assert count < len(transform) / 2
    with np.errstate(divide="ignore"):
        assert 3_000 * np.log(np.abs(transform[count:])).max() < -45
    assert 3_000 * np.log(np.abs(transform[count // 8])) > -45  # and it is not absurdly wide


def test_a_step_too_coarse_for_the_tilt_is_refused():
    step = lattice_round.Step(PAIRS["group"], 1, "remove", math.log(1e-9))
    with pytest.raises(NoBracketError, match="too coarse for its tilt"):
        lattice_round.Law(step, 10.0, 100.0)


# --- the parts, each by what it promises -------------------------------------------------------------


@pytest.mark.parametrize("c", [1.0, 20.0, 60.0])
def test_the_rounding_allowance_covers_the_error_of_tilted_masses(c):
    """The exponent c * loss rounds in proportion to its size: a cell's tilted Q-mass against long arithmetic."""
    mixture, h = mixtures.Mixture([0.5, 1.0], [0.5, 0.5], 2.0), 0.0625
    step = lattice_round.Step(mixture, 1, "remove", -700.0)
    one = lattice_round.Law(step, h, c)
    allowance = lattice_composition.rounding(one, 2**12)
    with mpmath.workdps(40):
        atoms = [(mpmath.mpf(float(a)), mpmath.mpf(float(p))) for a, p in zip(mixture.shifts, mixture.probabilities)]
        loss = lambda u: mpmath.log(mpmath.fsum(p * mpmath.exp(a * (u - a / 2)) for a, p in atoms))

        def edge(level):
            guess = float(mixture.inverse_log_ratio(np.array([float(level)]))[0])
            return mpmath.findroot(lambda u: loss(u) - level, guess)

        place = int(np.argmax(one._merged))
        level = mpmath.mpf(one.offset) + mpmath.mpf(h) * (one.first + place)
        low, high = edge(level - mpmath.mpf(h) / 2), edge(level + mpmath.mpf(h) / 2)
        q = mpmath.ncdf(-low) - mpmath.ncdf(-high)
        exact = mpmath.exp((c + 1) * level - one.scale) * q
        assert abs(float(one._merged[place] / exact) - 1) <= allowance < 1e-9


# --- rare rounds: the bulk is taken out ------------------------------------------------------------------


def by_number_of_jumps(masses, at, rounds):
    """Masses of the runs with a round at `at` or above it, and of the runs without one: sums of positive terms alone."""
    bulk, tail = masses.copy(), masses.copy()
    bulk[at:], tail[:at] = 0.0, 0.0
    power = lambda a, n: np.ones(1) if n == 0 else np.convolve(power(a, n - 1), a)
    jumps = [math.comb(rounds, j) * np.convolve(power(tail, j), power(bulk, rounds - j)) for j in range(1, rounds + 1)]
    return sum(jumps), power(bulk, rounds)


@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize("q, rounds, share", [(1e-3, 4, 0.5), (1e-6, 3, 0.3), (0.05, 3, 0.2)])
def test_runs_with_a_large_loss_are_summed_without_the_others(side, q, rounds, share):
    """[A-8] The bound is that of a direct convolution, to digits that the whole transform has lost."""
    mixture, epsilon = mixtures.binomial(1, q, 0.8), 60 * q
    solver = lattice._Solver([(mixture, rounds)], "remove", epsilon=epsilon, aim=1e-3)
    solver.losses.split = share * epsilon
    solver._aim_tilt()
    solver.period, solver.c, _ = lattice._shortest_period(solver.losses, solver.c, solver.rough_epsilon)
    one = lattice_round.Law(solver.losses.steps[0], solver.losses.reach / 3000, solver.c)
    found = lattice_composition.Sum([one], side, solver.period, solver.losses.end_moment, solver.losses.split).log_bound(epsilon)
    masses = getattr(one, side) * np.exp(one.scale - one.c * one.losses())
    above, below = by_number_of_jumps(masses, one.index_above(solver.losses.split), rounds)
    losses = rounds * one.losses()[0] + one.h * np.arange(len(above))
    value = np.maximum(-np.expm1(epsilon - losses), 0.0)
    direct = above @ value
    if side == "lower":
        assert math.log(direct) - 1e-6 < found <= math.log(direct) + 1e-12
    else:
        rest = below @ value + rounds * math.exp(one.log_infinite)
        left_out = 0.0 if rounds * one.loss_below(solver.losses.split) <= epsilon else rounds * q  # Chernoff's bound is no value
        assert math.log(direct + rest) - 1e-12 <= found < math.log(direct + rest + left_out) + 1e-6


def test_what_is_left_out_is_bounded():
    """Chernoff on the runs without a large loss: never below their delta, and zero where they cannot reach epsilon."""
    mixture, rounds = mixtures.binomial(1, 0.05, 1.0), 40
    solver = lattice._Solver([(mixture, rounds)], "remove", epsilon=1.0, aim=1e-3)
    solver.period, solver.c, _ = lattice._shortest_period(solver.losses, solver.c, solver.rough_epsilon)
    one = lattice_round.Law(solver.losses.steps[0], solver.losses.reach / 2000, solver.c)
    for split in (0.02, 0.1, 0.4):
        total = lattice_composition.Sum([one], "upper", solver.period, solver.losses.end_moment, split)
        masses = (one.upper * np.exp(one.scale - one.c * one.losses()))[: one.index_above(split)]
        below = np.ones(1)
        for _ in range(rounds):
            below = np.convolve(below, masses)
        losses = rounds * one.losses()[0] + one.h * np.arange(len(below))
        delta = float(below @ np.maximum(-np.expm1(1.0 - losses), 0.0))
        bound = total._log_left_out(1.0)
        assert bound == -math.inf if rounds * one.loss_below(split) <= 1 else math.log(delta) <= bound < 0


def two_rounds(mixture, epsilon, direction):
    """delta of two rounds: the closed form of one at epsilon minus the other's loss, averaged over that loss."""
    sign = 1 if direction == "remove" else -1
    # Where the rest of the budget crosses the least (remove) or largest (add) loss of one round.
    kink = float(mixture.inverse_log_ratio(np.array([sign * epsilon - mixture.log_floor]))[0])
    low, high = -10.0, float(mixture.shifts[-1]) + 30.0
    # Near that place delta of one round is a function of log(rest / q): panels that shrink towards it.
    shares = np.concatenate([[0.02, 0.1, 0.3, 0.5, 1.0], 1 - 0.2 * 0.3 ** np.arange(16)])
    steep = mixture.inverse_log_ratio(sign * epsilon * shares)
    cuts = np.concatenate([np.linspace(low, high, 81), steep, [kink] if math.isfinite(kink) else []])
    cuts = np.unique(np.clip(cuts[np.isfinite(cuts)], low, high))
    x, w = np.polynomial.legendre.leggauss(40)
    u = (cuts[:-1, None] + cuts[1:, None] + np.diff(cuts)[:, None] * x).ravel() / 2
    w = (np.diff(cuts)[:, None] / 2 * w).ravel()
    log_ratio = mixture.log_ratio(u)
    base = mixture.log_density(u) if sign > 0 else -u * u / 2 - 0.5 * math.log(2 * math.pi)
    return float(w @ np.exp(base + mixture.log_hockey_stick(epsilon - sign * log_ratio, direction)))


def three_rounds(mixture, epsilon, direction):
    """delta of three rounds: that of two at what is left, averaged over the loss of the first."""
    sign = 1 if direction == "remove" else -1
    # Panels that shrink towards the place where what is left is the least (remove) or largest (add) loss of two rounds.
    border = 2 * sign * mixture.log_floor
    away = np.array([0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
    steep = mixture.inverse_log_ratio(sign * (epsilon - border * (1 + np.concatenate([-away, away]))))
    low, high = -9.0, float(mixture.shifts[-1]) + 9.0
    cuts = np.unique(np.clip(np.concatenate([np.linspace(low, high, 19), steep[np.isfinite(steep)]]), low, high))
    x, w = np.polynomial.legendre.leggauss(14)
    u = (cuts[:-1, None] + cuts[1:, None] + np.diff(cuts)[:, None] * x).ravel() / 2
    w = (np.diff(cuts)[:, None] / 2 * w).ravel()
    law = np.exp(mixture.log_density(u) if sign > 0 else -u * u / 2 - 0.5 * math.log(2 * math.pi))
    left = epsilon - sign * mixture.log_ratio(u)
    return float((w * law) @ [two_rounds(mixture, e, direction) for e in left])


@pytest.mark.parametrize(
    "q, sigma, k, epsilon, direction",
    [
        (0.01, 1.0, 1, 0.4, "remove"), (0.3, 1.5, 2, 0.6, "add"),
        *(pytest.param(*value, marks=pytest.mark.trust) for value in [(0.2, 1.2, 2, 0.5, "remove"), (0.1, 0.8, 1, 0.1, "add")]),
    ],
)
def test_three_rounds_by_direct_integration(q, sigma, k, epsilon, direction):
    """[A-8] Two nested integrals and a closed form, no transform: nine digits."""
    mixture = mixtures.binomial(k, q, sigma)
    bracket = lattice.side_log_delta([(mixture, 3)], epsilon, direction, 1e-6)
    exact = math.log(three_rounds(mixture, epsilon, direction))
    assert bracket.width < 1e-6
    assert bracket.lower - 1e-9 <= exact <= bracket.upper + 1e-9
