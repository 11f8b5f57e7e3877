"""Sums over the composed lattice law: short periods, both sides of epsilon, short windows. Truth: direct convolutions."""

import math

import numpy as np
import pytest

from dplib import FixedBatchDPSGD, contour, lattice, mixtures
from dplib.accounting import lattice_composition, lattice_round, lattice_tangents

RARE = mixtures.binomial(1, 1e-3, 0.8)
OFTEN = mixtures.binomial(3, 0.2, 1.0)


def composed(mixture, rounds, c, period, epsilon=1.0, cells=400):
    """(law, {side: Sum}) of `rounds` rounds on a grid of so many points, at the tilt c."""
    losses = lattice._Solver([(mixture, rounds)], "remove", epsilon=epsilon, aim=1e-3).losses
    law = lattice_round.Law(losses.steps[0], losses.reach / cells, c)
    return law, {side: lattice_composition.Sum([law], side, period, losses.alias_moment) for side in ("upper", "lower")}


def direct(law, side, rounds):
    """(losses, masses, mass that is infinite or that is missing) of the composed law, without transform or tilt."""
    one = getattr(law, side) * np.exp(law.scale - law.c * law.losses())
    masses = np.ones(1)
    for _ in range(rounds):
        masses = np.convolve(masses, one)
    losses = rounds * law.losses()[0] + law.h * np.arange(len(masses))
    return losses, masses, -math.expm1(rounds * math.log(one.sum()))


def delta_and_miss(law, side, rounds, epsilon):
    losses, masses, rest = direct(law, side, rounds)
    delta = masses @ np.maximum(-np.expm1(epsilon - losses), 0.0)
    miss = masses @ np.exp(np.minimum(epsilon - losses, 0.0))
    return (delta + rest, miss) if side == "upper" else (delta, miss + rest)


@pytest.mark.parametrize("mixture, rounds, c, period", [(RARE, 6, 0.4, 14.0), (RARE, 6, 1.0, 16.0), (OFTEN, 4, 0.3, 25.0)])
def test_known_aliases_make_a_short_period_narrow(mixture, rounds, c, period):
    """[A-7] The aliases from below, many times delta, are taken off both ends: what is left lies around the direct sum."""
    epsilon = 0.01
    law, sums = composed(mixture, rounds, c, period, epsilon)
    upper, lower = (delta_and_miss(law, side, rounds, epsilon)[0] for side in ("upper", "lower"))
    assert math.exp(-c * period) > 1e-4 * upper  # more than what is asked for below
    assert math.log(upper) - 1e-12 <= sums["upper"].log_bound(epsilon) <= math.log(upper) + 1e-6
    assert math.log(lower) - 1e-3 <= sums["lower"].log_bound(epsilon) <= math.log(lower) + 1e-12


@pytest.mark.parametrize("c", [-0.8, -0.5, -0.1])
@pytest.mark.parametrize("mixture, rounds, epsilon, cells", [(RARE, 5, 0.5, 400), (OFTEN, 6, 0.3, 400), (OFTEN, 6, 3.0, 400), (OFTEN, 2, 1.0, 4)])
@pytest.mark.parametrize("kind", ["_Series", "_Masses"])
def test_the_miss_is_summed_over_both_sides(monkeypatch, mixture, rounds, epsilon, cells, c, kind):
    """[A-20] At a negative tilt, by frequencies and by masses: around the direct sum of what delta misses."""
    monkeypatch.setattr(lattice_composition, "_SERIES", {"_Series": 10**9, "_Masses": 0}[kind])
    law, sums = composed(mixture, rounds, c, 400.0, epsilon, cells)
    assert type(sums["upper"].values).__name__ == kind
    least, most = (delta_and_miss(law, side, rounds, epsilon)[1] for side in ("upper", "lower"))
    assert math.log(least) - 1e-6 <= sums["upper"].log_miss(epsilon) <= math.log(least) + 1e-12
    # What the lower law has lost of each round is added up, not multiplied out: cells as coarse as these lose much.
    room = 1e-6 if cells > 4 else 0.1
    assert math.log(most) - 1e-12 <= sums["lower"].log_miss(epsilon) <= math.log(most) + room


@pytest.mark.parametrize("c, rest", [(1.3, 0.0), (1.3, 0.004), (40.0, 0.003), (-0.4, 0.002)])
def test_the_norm_of_the_weights_is_that_of_their_sum_over_periods(c, rest):
    """What the masses of one period are multiplied with, one by one and over many periods."""
    h, size = 0.01, 500
    sums = object.__new__(lattice_composition.Sum)
    sums.c, sums.h, sums.size = c, h, size
    j = np.arange(-60 * size, 60 * size)
    weights = np.where(j > 0, np.exp(np.minimum(rest - (c + 1) * j * h, 0)) * (j > 0), np.exp(np.minimum(-c * j * h, 0)))
    if c > 0:
        weights = np.where(j > 0, np.exp(-c * np.abs(j) * h) - np.exp(rest - (c + 1) * np.abs(j) * h), 0.0)
    norm = math.sqrt(float((weights.reshape(-1, size).sum(axis=0) ** 2).sum()))
    assert norm <= sums._norm_of_weights(rest) <= norm * (1.5 if c < 0 else 1.001)


@pytest.mark.parametrize("c", [-0.5, 0.7])
@pytest.mark.parametrize("mixture", [RARE, OFTEN, mixtures.Mixture([0.3, 2.5], [0.2, 0.8], 0.5)])
@pytest.mark.parametrize("cells", [8, 60, 700])
def test_the_lower_law_says_what_it_has_lost(mixture, c, cells):
    """Untilted, its masses and what it lacks add up to 1: mass below the window, and that of a removed lowest vertex."""
    step = lattice_round.Step(mixture, 1, "remove", math.log(1e-9))
    law = lattice_round.Law(step, (step.high - step.low) / cells, c)
    kept = float((law.lower * np.exp(law.scale - c * law.losses())).sum())
    if law.log_missing < 700:
        assert kept + math.exp(law.log_missing) == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("joins", [1, 50])
def test_a_negative_lowest_vertex_moves_its_second_mass_up(monkeypatch, joins):
    """Its cell is joined with the next, and nothing is lost; where that is not tried, what is lost is returned. The second mass is kept."""
    monkeypatch.setattr(lattice_tangents, "_MOST_JOINS", joins)
    h, c = 0.1, -0.3
    merged, miss = np.array([0.2, 1.0, 1.0, 1.0, 1.0]), np.array([0.0, 0.03, 0.0, 0.0, 0.0])  # takes 0.03 / (e^h - 1) from the lowest one
    masses, log_lost = lattice_tangents.repair(merged, miss, h, c)
    places = h * np.arange(5)
    assert masses[0] == 0.0 and np.all(masses >= 0) and (log_lost == -math.inf) == (joins > 1)
    first, second = merged + miss, merged  # tilted by c at their own places
    back = np.exp(-c * places)
    assert back @ masses + math.exp(log_lost) == pytest.approx(back @ first, rel=1e-12)
    assert (back * np.exp(-places)) @ masses == pytest.approx((back * np.exp(-places)) @ second, rel=1e-12)


def test_wide_cells_carry_no_lower_law():
    """Beyond a width of 8 the second mass of a cell has no digits left: then nothing is kept, and all is said to be lost."""
    merged, miss = np.array([0.0, 1.0, 1.0, 0.0]), np.zeros(4)
    for h, kept in ((7.9, 2.0), (8.1, 0.0)):
        masses, log_lost = lattice_tangents.repair(merged, miss, h, 0.1)
        assert masses.sum() == kept and (log_lost == math.inf) == (kept == 0)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("q, rounds, direction", [(0.01, 20_000, "remove"), (0.01, 20_000, "add"), (0.3, 60, "remove")])
def test_delta_near_certainty_agrees_with_the_contour(epsilon, q, rounds, direction):
    """[A-20] Both accountants keep the digits of what delta misses."""
    parts = [(mixtures.binomial(1, q, 0.6), rounds)]
    found, other = lattice.side_log_delta(parts, epsilon, direction, 1e-5), contour.side_log_delta(parts, epsilon, direction)
    assert -0.1 < other.upper < 0
    assert found.lower <= other.upper and other.lower <= found.upper
    assert found.width <= 1e-5 * -found.lower and other.width < 1e-5 * -other.lower


@pytest.mark.parametrize(
    "mechanism, epsilon, direction",
    [
        (FixedBatchDPSGD(0.49064448598711935, 81, 4667, 126, 9), 0.06751250324147348, "remove"),
        (FixedBatchDPSGD(0.46675957573356434, 1, 16, 66, 6), 0.37233726453835986, "both"),
        (FixedBatchDPSGD(0.4868764031661873, 2320, 5392666, 40558, 2), 0.06898966056558513, "both"),
    ],
)
def test_epsilon_comes_back_from_a_delta_near_one(mechanism, epsilon, direction):
    """Where 1 - delta hardly moves with epsilon, too: once 18 to 86% off."""
    delta = mechanism.delta(epsilon, direction)
    assert delta.upper - delta.lower < 1e-4 * (1 - delta.upper)
    assert mechanism.epsilon(delta.upper, direction).upper == pytest.approx(epsilon, rel=1e-3)


# Settings that once had brackets wider than 0.1%: delta near 1, losses far above it in a few rare rounds, delta at 1e-15.
HARD = [
    (FixedBatchDPSGD(0.4868764031661873, 2320, 5392666, 40558, 2), 0.9999464908725697, "remove"),
    (FixedBatchDPSGD(0.4371027392018857, 3, 46116, 13, 13), 0.010165899268963404, "remove"),
    (FixedBatchDPSGD(0.49064448598711935, 81, 4667, 126, 9), 0.9999891521067836, "remove"),
    (FixedBatchDPSGD(0.4675143726344067, 110, 12745, 914, 3), 0.999993937698745, "add"),
    (FixedBatchDPSGD(2.320158346417906, 1741, 44956909, 15846, 9), 1.0792783391380718e-15, "remove"),
    (FixedBatchDPSGD(3.516459218890592, 55210, 3987646, 11, 2), 0.02207793449533578, "add"),
    (FixedBatchDPSGD(0.6393500820511981, 8353, 115051713, 33, 1), 0.0013722605846180798, "remove"),
]


@pytest.mark.parametrize("mechanism, delta, direction", HARD)
def test_hard_settings_are_narrow(mechanism, delta, direction):
    bracket = mechanism.epsilon(delta, direction)
    assert bracket.relative_width < 1e-3
    back = mechanism.delta(bracket.upper, direction)
    assert back.lower <= delta * (1 + 1e-12)


def test_a_window_ends_where_losses_are_large():
    """[A-29] Rare rounds with losses far above epsilon: the window is short, and its cost stays below what was asked for."""
    mixture, rounds, epsilon = mixtures.binomial(13, 6.5e-5, 0.22), 13, 5e-4
    long = lattice._Solver([(mixture, rounds)], "remove", epsilon=epsilon, aim=1e-3, for_chernoff=True)
    short = lattice._Solver([(mixture, rounds)], "remove", epsilon=epsilon, aim=1e-3)
    assert short.losses.steps[0].high < 0.6 * long.losses.steps[0].high
    upper, _ = next(short.brackets(1e-3))
    assert upper.log_infinite > upper.log_cut(epsilon) + 3  # what is infinite is many times what that costs
    assert upper.log_cut(epsilon) < upper.log_bound(epsilon) - 5
