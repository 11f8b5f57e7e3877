"""The contour accountant: its bounds against 40-digit arithmetic, its refusals."""

import cmath
import math

import numpy as np
import pytest
from oracle_cases import cases, load, pair

import dplib
from dplib import NoBracketError, accounting, contour, gaussian, lattice, mixtures
from dplib.accounting import contour_bounds
from dplib.accounting.contour_bounds import Decay, LineDecay
from dplib.accounting.contour_nodes import Family, Nodes, nodes_for
from dplib.accounting.contour_quadrature import turned_sums
from dplib.accounting.two_sided_nodes import TwoSidedFamily

MANY_ROUNDS = [
    c
    for c in cases("oracle")
    if c.rounds >= 100 and "parts" not in c.params and float(c.params.get("q", 0.5)) >= 1e-3
    and not pair(c.params).is_gaussian
]  # fmt: skip


@pytest.mark.parametrize("case", MANY_ROUNDS, ids=str)
def test_many_rounds_are_certified_tightly(case):
    bracket = contour.side_log_delta(case.composition(), case.epsilon, case.direction)
    room = case.tolerance + 1e-13 * (1 + abs(case.log_delta))
    assert bracket.lower - room <= case.log_delta <= bracket.upper + room
    assert bracket.width < 1e-4


@pytest.mark.parametrize("adjacency", ["add-remove", "substitution"])
@pytest.mark.parametrize("sigma, rounds, epochs", [(0.6, 300, 0.5), (0.6, 20_000, 2.5), (1.0, 2000, 1.0), (2.0, 1000, 0.3), (2.5, 30_000, 1.0)])
def test_an_epoch_or_two_needs_no_lattice(sigma, rounds, epochs, adjacency):
    """Few participations: narrow by the contour, and inside the lattice's bracket, for epsilon and for delta.

    Losses near 0 have e^13 times the mass of delta, and their rounding counts in full: delta keeps a digit less.
    """
    mechanism = dplib.PoissonDPSGD(sigma, epochs / rounds, rounds, adjacency=adjacency)
    epsilon = mechanism.epsilon(1e-6)
    delta = mechanism.delta(epsilon.upper)
    for found, ask, at, width in ((epsilon, accounting.epsilon, 1e-6, 1e-6), (delta, accounting.delta, epsilon.upper, 1e-5)):
        assert found.method == "contour" and found.relative_width < width
        other = ask(mechanism.composition(), at, method="lattice", tolerance=1e-3)
        assert found.lower <= other.upper and other.lower <= found.upper
    assert delta.lower <= 1e-6 <= delta.upper * (1 + 1e-5)


def moments():
    return [v for v in load("rounding") if v["kind"] == "moment"]


@pytest.mark.parametrize("value", moments(), ids=lambda v: v["id"])
def test_one_round_moments_stay_within_their_allowance(value):
    """log E_Q[R^w] in 35 digits: quadrature bound plus rounding allowance cover the error."""
    mixture = pair(value["params"])
    c, y = (float(part) for part in value["z"])
    factor = Family([mixture], [1], 1 if value["direction"] == "remove" else -1)
    nodes = nodes_for(factor, c, c, c, max(y, 1e-3))
    real = float(value["log_at_real_z"])
    quadrature = float(nodes.quadrature.error(max(y, 1e-3))[0])
    assert quadrature < 1e-13
    scale = 4 * np.finfo(float).eps * abs(real)
    # Ten times inside: the moment of one round is raised to powers up to a million.
    assert abs(nodes.log_moment[0] - real) <= 0.1 * nodes.rounding(c)[0] + quadrature + scale
    log_phi, distance = nodes.log_characteristic(np.array([y]))
    # Back from the centred, normalised law to the plain moment, on both sides.
    truth = cmath.exp(
        complex(float(value["log_real"]) - real, float(value["log_imag"])) - 1j * y * nodes.mean[0]
    )
    error = abs(cmath.exp(complex(log_phi[0, 0])) - truth)
    phase = 8 * np.finfo(float).eps * (abs(y * nodes.mean) + abs(real) + 1)
    allowance = float(nodes.characteristic_rounding(np.array([y]), distance)[0, 0])
    assert error <= allowance + quadrature + phase


@pytest.mark.parametrize("sign", [1, -1])
def test_mass_outside_the_window_is_covered(sign):
    """A window cut short on either side: what is missing is visible, and below the bound."""
    factor = Family([mixtures.binomial(4, 0.3, 0.7)], [1], sign)
    fine = nodes_for(factor, 0.5, 0.5, 0.5, 1.0)
    low, high = factor.window(0.5, 0.5)
    middle, visible = float(fine.u[np.argmax(fine.base + 0.5 * fine.loss)]), 0
    for left, right in ((0.0, 0.3), (0.2, 0.0), (0.0, 0.4), (0.3, 0.0), (0.35, 0.45)):
        start, end = low + left * (middle - low) * 2, high - right * (high - middle) * 2
        nodes = Nodes(factor, 0.5, start, 0.02, int((end - start) / 0.02) + 2)
        error = abs(math.expm1(nodes.log_moment[0] - fine.log_moment[0]))
        bound = nodes.quadrature.error(0.0)[0]
        assert error <= bound and fine.log_moment[0] <= nodes.quadrature.log_moment_bound(0.5)
        visible += error > 1e-4 and bound < 0.5
    assert visible


def on_axis(family, c, frequency):
    """Nodes on the axis that serve up to this frequency."""
    low, high = family.window(c, c)
    step, nodes = nodes_for(family, c, c, c, 0.0).step, None
    while nodes is None or not nodes.quadrature.on_axis(frequency):
        step /= 1.4
        nodes = Nodes(family, c, low, step, math.ceil((high - low) / step) + 1)
    return nodes


def test_moduli_are_bounded_far_beyond_the_nodes():
    """[A-4] |phi| on a fine grid never exceeds the bound, nor rest + V / y."""
    for mixture, sign in ((mixtures.binomial(1, 0.01, 1.0), 1), (mixtures.binomial(5, 0.2, 0.8), -1)):
        factor = Family([mixture], [200], sign)
        nodes = nodes_for(factor, 3.0, 3.0, 3.0, 10.0)
        y = np.linspace(0.01, 400, 200)
        exact = on_axis(factor, 3.0, 400.0)
        truth = np.exp(exact.log_characteristic(y)[0].real[0])
        assert np.all(Decay(nodes).modulus_bound(y)[0] >= truth * (1 - 1e-9))
        for aim in (0.2, 0.5, 0.9, 0.99):
            variation, rest, _ = Decay(nodes).constants(aim)
            assert np.all(rest + variation / y >= truth * (1 - 1e-9))


LINES = [
    Family([mixtures.binomial(1, 0.01, 1.0)], [200], 1),
    Family([mixtures.binomial(1, 0.2, 0.6)], [200], -1),
    Family([mixtures.binomial(5, 0.2, 0.8)], [200], -1),
    Family([mixtures.binomial(3, 0.1, 1.5)], [200], 1),
    TwoSidedFamily(mixtures.two_sided(mixtures.binomial(1, 0.05, 1.0), mixtures.binomial(2, 0.01, 1.0)), 200),
]


@pytest.mark.parametrize("family", LINES)
def test_lines_beside_the_axis_find_the_transform(family):
    """[A-4] The rule on the line has the values of a fine rule on the axis; with too few nodes what it misses is visible, and bounded."""
    y, c = np.linspace(0.0, 60.0, 121), 1.5
    fine = on_axis(family, c, 60.0)
    truth = np.exp(fine.log_characteristic(y)[0][0])
    low, high = family.window(c, c)
    visible = 0
    for share in (46, 12, 6, 4, 3):
        step = math.pi * float(fine.quadrature.upper_line[0, 0]) / share
        nodes = Nodes(family, c, low, step, math.ceil((high - low) / step) + 1)
        shift = complex(0.0, 1.0) * (nodes.mean - fine.mean)  # of the centre
        found = (1 + turned_sums(nodes.line.weights, nodes.line.loss, y)[0]) * np.exp(y * shift[0] + nodes.log_moment[0] - fine.log_moment[0])
        # What the moment itself misses shifts every value in proportion.
        bound = (nodes.quadrature.line_error + nodes.quadrature.error(0.0))[0] + nodes.characteristic_rounding(y, np.full((1, len(y)), 2.0))[0] + 1e-12
        assert np.all(np.abs(found - truth) <= bound)
        visible += np.abs(found - truth).max() > 1e-9
    assert visible


@pytest.mark.parametrize("family", LINES)
def test_lines_beside_the_axis_bound_all_higher_frequencies(family):
    """[A-4] From each frequency on |phi| stays below the integral of |f| along the best line, which falls."""
    y, c = np.linspace(0.5, 60.0, 120), 1.5
    truth = np.exp(on_axis(family, c, 60.0).log_characteristic(y)[0].real[0])
    nodes = nodes_for(family, c, c, c, 1e6)
    assert not nodes.quadrature.on_axis(1e6)
    bound = LineDecay(nodes).beyond(y)[0]
    assert np.all(np.maximum.accumulate(truth[::-1])[::-1] <= bound * (1 + 1e-12))
    assert np.all(np.diff(bound) <= 0) and bound[-1] < 0.999


def test_sums_at_even_frequencies_keep_small_digits():
    """Two factors of every turn: as one by one in long floats."""
    generator = np.random.default_rng(5)
    weights, loss = generator.random((1, 40)), generator.normal(size=(1, 40)) + 1j * generator.random((1, 40))
    for start, step, count in ((0.0, 1e-9, 50), (3.0, 0.7, 1000), (1e-7, 1e-8, 17)):
        y = start + step * np.arange(count)
        exponent = 1j * y[:, None].astype(np.longdouble) * loss[0]
        each = np.expm1(exponent.real) * np.exp(1j * exponent.imag) + 2j * np.sin(exponent.imag / 2) * np.exp(1j * exponent.imag / 2)
        truth = (each * weights[0]).sum(axis=1)
        size = (np.abs(each) * weights[0]).sum(axis=1) + 1e-300
        assert np.all(np.abs(turned_sums(weights, loss, y)[0] - truth) <= 3e-15 * size + 1e-18 * y)


def test_what_a_part_of_the_nodes_contributes_falls_like_one_over_y(monkeypatch):
    """[A-4] E2 on the middle half of the mass, whose ends are steep: values at both ends, and the variation between."""
    monkeypatch.setattr(contour_bounds, "_FROM", np.array([5]))
    monkeypatch.setattr(contour_bounds, "_TO", np.array([7]))
    assert list(contour_bounds._LEVELS[[5, 7]]) == [0.25, 0.75]
    factor, c = Family([mixtures.binomial(1, 1.0, 1.0)], [200], 1), 0.5
    nodes = Nodes(factor, c, -12.0, 0.01, 2800)
    [variation], [rest], _ = Decay(nodes).constants(0.9)
    assert 0.5 <= rest < 0.6
    ends = np.interp([0.25, 0.75], np.cumsum(nodes.weights[0]), nodes.u[nodes.alive])
    u = np.linspace(*ends, 20_001)
    base, loss, _ = factor.evaluate(u)
    weights = np.exp(base + c * loss - nodes.log_moment[0])[0] * (u[1] - u[0])
    weights[[0, -1]] /= 2
    y = np.linspace(20, 40, 200)
    largest = (y * np.abs(np.exp(1j * y[:, None] * loss[0]) @ weights)).max()
    assert 0.7 * variation <= largest <= variation


def test_aliasing_is_positive_and_bounded():
    """A short period: the sum exceeds the truth, and the bound covers the difference."""
    problem = contour.Composition([(mixtures.binomial(2, 0.1, 1.0), 300)], "remove")
    c = problem.tilt(epsilon=5.0)
    good = contour._Integral(problem, c, 5.0)
    truth = good.log_bounds(5.0)
    short = contour._Integral(problem, c, 5.0)
    short.aliases.period = good.aliases.period / 2.2
    short.spacing = 2 * math.pi / short.aliases.period
    short._sum_frequencies(math.sqrt(problem.coarse(c)[2]))
    short._bound()
    lower, value, upper, _ = short.log_bounds(5.0)
    assert value > truth[1] + 1e-12  # aliases are non-negative and visible here
    assert lower <= truth[1] <= upper


def test_refusal_names_the_reason():
    with pytest.raises(NoBracketError, match="few rounds|too slowly|nodes"):
        contour.side_log_delta([(mixtures.binomial(1, 1e-4, 1.0), 2)], 0.01, "remove")


def test_the_bound_on_high_frequencies_covers_them():
    """E2: what the sum has beyond an early frequency, evaluated on fine nodes, is visible and below the bound."""
    problem = contour.Composition([(mixtures.binomial(1, 0.1, 1.0), 300)], "remove")
    c = problem.tilt(epsilon=3.0)
    integral = contour._Integral(problem, c, 3.0)
    sizes = np.abs(integral.terms)
    # The earliest place from which the bound closes.
    top, bound = next(
        (y, bound) for y in integral.y[1:] if math.isfinite(bound := integral._frequency_tail(float(y)))
    )
    assert top < 0.95 * integral.y[-1]
    rest = float(sizes[integral.y > top].sum())
    assert 1e-25 < rest <= bound


class Bounds:
    """Stands for an integral: log delta = -x, with an error that grows by the factor `growth` away from the root 2."""

    def __init__(self, growth):
        self.growth = growth

    def log_bounds(self, x):
        error = 0.1 * (1 + self.growth * abs(x - 2))
        return -x - error, -x, -x + error, -1.0


@pytest.mark.parametrize("growth", [0.0, 4.0])
def test_ends_of_epsilon_are_certified_where_they_lie(growth):
    """The error at the ends counts, not that at the root."""
    integral = Bounds(growth)
    bracket = contour.bracket_epsilon(integral, 2.0, -2.0)
    assert integral.log_bounds(bracket.upper)[2] <= -2.0 <= integral.log_bounds(bracket.lower)[0]
    assert bracket.width < 4


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("miss", [0.08, 1e-3, 1e-6, 1e-9])
def test_epsilon_near_certainty(direction, miss):
    """[A-20] Where delta is 1 - miss, epsilon is as sharp as elsewhere: the lattice agrees, a Gaussian in closed form too."""
    composition = [(mixtures.binomial(4, 0.1, 1.5).facing(direction), 4000)]
    found = contour.side_epsilon(composition, 1 - miss, direction)
    assert found.relative_width < 1e-5
    other = lattice.side_epsilon(composition, 1 - miss, direction, 1e-5)
    assert found.lower <= other.upper and other.lower <= found.upper
    back = contour.side_log_delta(composition, found.upper, direction)
    assert -math.expm1(back.upper) == pytest.approx(miss, rel=1e-5)
    steps, mu = 50, 12.0
    plain = [(mixtures.Mixture([1.0], [1.0], math.sqrt(steps) / mu), steps)]
    assert gaussian.epsilon(mu, 1 - miss) in contour.side_epsilon(plain, 1 - miss, direction)
