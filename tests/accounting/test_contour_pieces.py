"""The contour on pairs in pieces: its panels against finer ones, its bounds on high frequencies, and the lattice."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from dplib import accounting, mixtures, renyi
from dplib.accounting import contour_pieces, lattice
from dplib.accounting.contour_pieces import PanelDecay, PanelNodes, PiecesFamily, panels_for
from dplib.mechanisms import FixedBatchDPSGD, TruncatedPoissonDPSGD
from dplib.mixtures import DisjointUnion, Folded
from dplib.results import NoBracketError

SETTINGS = {
    "sigma": st.floats(0.4, 10.0), "q": st.floats(0.01, 0.5), "adjacency": st.sampled_from(["add-remove", "substitution", "zero-out"]),
    "direction": st.sampled_from(["remove", "add"]), "cut": st.booleans(),
}  # fmt: skip


def union(sigma, q, adjacency, cut):
    if cut or adjacency == "add-remove":
        pair = mixtures.truncated_poisson(q, 400, max(1, round(400 * q)), sigma, adjacency)
    else:
        pair = mixtures.replaced_in_batch(round(400 * q), 400, sigma, adjacency)
    assert isinstance(pair, DisjointUnion)
    return pair


def moment(nodes, z, log_scale=0.0):
    """The nodes' own E exp(z L) of one round, over a scale."""
    return np.exp(nodes.base[0] + z * nodes.loss[0] - log_scale).sum()


@given(c=st.floats(0.05, 30.0), y=st.floats(0.0, 40.0), count=st.integers(3, 14), **SETTINGS)
@example(sigma=3.0, q=0.5, adjacency="zero-out", direction="remove", cut=True, c=1.0, y=0.0, count=3)
@settings(max_examples=60, deadline=None)
def test_coarse_panels_miss_no_more_than_they_say(sigma, q, adjacency, direction, cut, c, y, count):
    """Panels far too long, against panels of a tenth: every bound holds, at real and at complex tilts."""
    family = PiecesFamily(union(sigma, q, adjacency, cut).facing(direction), 1, direction)
    edges = []
    for piece in family.pieces:
        low, high = piece.survey(c, 0.5 * c, 2 * c)[0][[0, -1]]
        edges.append(np.linspace(low, high, count + 1))
    coarse, fine = (
        PanelNodes(family, c, [contour_pieces._Panels(piece, np.linspace(part[0], part[-1], times * count + 1)) for piece, part in zip(family.pieces, edges)])
        for times in (1, 40)
    )  # fmt: skip
    scale = float(coarse.log_moment[0])
    for frequency in (0.0, y):
        missed = abs(moment(coarse, c + 1j * frequency, scale) - moment(fine, c + 1j * frequency, scale))
        assert missed <= sum(coarse.quadrature.misses(frequency)[0]) + 1e-12
    if math.isfinite(bound := coarse.quadrature.log_moment_bound(1.5 * c)):
        assert moment(fine, 1.5 * c, bound) <= 1 + 1e-12 * (1 + abs(bound))


@given(c=st.floats(0.05, 10.0), **SETTINGS)
@settings(max_examples=25, deadline=None)
def test_high_frequencies_are_bounded(sigma, q, adjacency, direction, cut, c):
    """The transform from many panels lies below both bounds from few, and never below the mass at loss 0 for long."""
    family = PiecesFamily(union(sigma, q, adjacency, cut).facing(direction), 1000, direction)
    nodes = panels_for(family, c, 0.5 * c, 2 * c, 1.0)
    y = np.geomspace(0.5, 60.0, 40)
    fine = PanelNodes(family, c, [contour_pieces._Panels(p.piece, np.linspace(p.edges[0], p.edges[-1], 1500)) for p in nodes.panels])
    scale = float(fine.log_moment[0])
    truth = np.array([abs(moment(fine, c + 1j * at, scale)) for at in y])
    decay = PanelDecay(nodes)
    assert np.all(truth <= decay.modulus_bound(y)[0] + 1e-11)
    variation, rest, _ = decay.constants(0.9)
    assert np.all(truth <= rest + variation / y + 1e-11)
    at_zero = math.exp(nodes.log_floor / 1000)
    assert rest[0] >= at_zero * (1 - 1e-12)
    assert at_zero < 1e-9 or truth[-5:].max() > 0.5 * at_zero


@given(rounds=st.integers(30, 20_000), log_delta=st.floats(-30, -1), **SETTINGS)
@settings(max_examples=25, deadline=None)
def test_contour_and_lattice_meet(sigma, q, adjacency, direction, cut, rounds, log_delta):
    """Where the contour closes, its bracket is narrow, and both share a point; delta there comes back."""
    parts = [(union(sigma, q, adjacency, cut), rounds)]
    delta = math.exp(log_delta)
    try:
        found = accounting.epsilon(parts, delta, direction, "contour")
    except NoBracketError:
        return
    other = lattice.side_epsilon([(pair.facing(direction), count) for pair, count in parts], delta, direction, 1e-4)
    assert found.lower <= other.upper and other.lower <= found.upper
    assert found.upper == 0 or found.relative_width < 1e-5
    if found.upper > 0:
        back = accounting.delta(parts, found.upper, direction, "contour")
        assert back.lower <= delta * (1 + 1e-12)


@pytest.mark.parametrize("run", [
    FixedBatchDPSGD(1.0, 500, 10_000, 1000, adjacency="substitution"), FixedBatchDPSGD(4.0, 500, 10_000, 500, adjacency="zero-out"),
    TruncatedPoissonDPSGD(1.0, 0.05, 10_000, 510, 1000, "substitution"), TruncatedPoissonDPSGD(2.0, 0.05, 10_000, 510, 1000),
])  # fmt: skip
def test_common_settings_are_answered_by_the_contour(run):
    found = run.epsilon(1e-6)
    assert found.method == "contour" and found.relative_width < 1e-8
    slow = run.epsilon(1e-6, method="lattice")
    assert slow.lower <= found.lower and found.upper <= slow.upper


def test_pieces_among_other_phases():
    """A phase in pieces, one with mixtures on both sides and an ordinary one: the transforms multiply."""
    one = mixtures.binomial(1, 0.05, 2.0)
    parts = [(mixtures.replaced_in_batch(500, 10_000, 2.0), 300), (mixtures.two_sided(one, one), 300), (one, 200)]
    found, slow = (accounting.epsilon(parts, 1e-6, "remove", method) for method in ("contour", "lattice"))
    assert found.relative_width < 1e-8 and slow.lower <= found.upper and found.lower <= slow.upper


def test_the_heaviest_weight_is_the_best_known_one():
    pair = mixtures.Mixture([0.0, 2.0], [0.9, 0.1], 1.0)
    found = DisjointUnion([(0.99, pair), (0.01, Folded(pair))], 1e-9)
    first, second = found.weight_errors
    assert second == 1e-9 and 1e-11 <= first < 1.1e-11
    assert DisjointUnion([(1.0, Folded(pair))]).weight_errors == [0.0]


# ------------------------------------------------------------------ Renyi divergences


@given(order=st.floats(1.05, 12.0), q=st.floats(0.001, 0.5), sigma=st.floats(0.8, 8.0), weight=st.floats(0.01, 0.99))
@settings(max_examples=15, deadline=None)
def test_divergences_of_pieces_by_adaptive_quadrature(order, q, sigma, weight):
    """[A-23] e^{(order - 1) D} is the weighted sum over pieces; of a folded one two half lines and what is left at loss 0."""
    mixture, other = mixtures.Mixture([0.0, 2.0], [1 - q, q], sigma), mixtures.Mixture([0.0, 1.0], [1 - q, q], sigma)
    ratio = lambda u: mixture.log_ratio(np.array([u]))[0]
    middle, top = 1 / sigma, 2 * order / sigma + 12
    half = lambda power: integrate.quad(
        lambda u: math.exp(power * ratio(u) + stats.norm.logpdf(u)), middle, top, epsabs=0, epsrel=1e-11, limit=400, points=[2 * order / sigma]
    )[0]
    folded = half(order) + half(1 - order) + (1 - q) * math.erf(middle / math.sqrt(2))
    pair = DisjointUnion([(weight, Folded(mixture)), (1 - weight, other)])
    for direction in ("remove", "add"):
        whole = renyi.divergence(other, order, direction)
        truth = math.log(weight * folded + (1 - weight) * math.exp((order - 1) * whole.upper)) / (order - 1)
        found = renyi.divergence(pair, order, direction)
        assert found.lower <= truth + 1e-9 * (1 + truth) and truth - 1e-9 * (1 + truth) <= found.upper
        assert found.upper - found.lower <= 1e-9 * (1 + found.upper)


@pytest.mark.parametrize("run", [
    FixedBatchDPSGD(1.0, 500, 10_000, 1000, adjacency="substitution"), TruncatedPoissonDPSGD(1.0, 0.05, 10_000, 510, 1000, "zero-out"),
    TruncatedPoissonDPSGD(2.0, 0.05, 10_000, 510, 1000),
])  # fmt: skip
def test_renyi_accounting_is_above(run):
    found, best = run.epsilon(1e-6), run.epsilon(1e-6, method="renyi")
    assert found.upper < best.upper < 1.3 * found.upper and best.order > 1
    assert run.delta(found.upper, method="renyi").upper > 1e-6
