"""Pairs in pieces: values in brackets, the lattice against plain grids and dp_accounting, and what is refused."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from dplib import NoBracketError, PoissonDPSGD, accounting, mixtures, renyi
from dplib.accounting.lattice_pieces import step_of
from dplib.accounting.lattice_round import Law
from dplib.mechanisms import (
    FixedBatchDPSGD,
    TruncatedPoissonDPSGD,
)
from dplib.mixtures import DisjointUnion, Folded, Mixture

VALUES = json.loads((Path(__file__).parents[1] / "data" / "pieces.json").read_text(encoding="utf-8"))["values"]


def pair_of(value):
    q, sigma = value["sampling_probability"], value["noise_multiplier"]
    if value["scheme"] == "truncated Poisson":
        return mixtures.truncated_poisson(q, value["dataset_size"], value["largest_batch"], sigma)
    return DisjointUnion([(1.0, Folded(Mixture([0.0, 2.0], [1 - q, q], sigma)))])


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{value['id']}-{value['epsilon']}")
def test_values_of_another_computation_are_met(value):
    """[A-23], [A-24] Both intervals hold the truth, so that they meet; ours is narrow, and epsilon comes back."""
    rounds = [(pair_of(value), value["steps"])]
    found = accounting.delta(rounds, value["epsilon"], value["direction"])
    assert found.lower <= value["upper"] * (1 + 1e-9) and value["lower"] <= found.upper * (1 + 1e-9)
    assert found.relative_width < 2e-4 or found.upper == 0
    if found.upper > 0:
        back = accounting.epsilon(rounds, found.upper, value["direction"])
        assert back.lower <= value["epsilon"] * (1 + 1e-9) and back.upper == pytest.approx(value["epsilon"], rel=1e-4)


# --- neighbours, and what is refused ------------------------------------------------------------------


def test_directions():
    """Substitution is the same in both; of one-sided pieces remove is the larger."""
    for run in (FixedBatchDPSGD(1.5, 5, 100, 50, adjacency="substitution"), TruncatedPoissonDPSGD(1.5, 0.05, 100, 6, 50, "substitution")):
        first, second, both = (run.delta(0.5, direction) for direction in ("remove", "add", "both"))
        assert first.lower <= second.upper and second.lower <= first.upper and both == first
    run = TruncatedPoissonDPSGD(1.5, 0.05, 100, 6, 50)
    assert run.delta(0.5, "add").upper < run.delta(0.5, "remove").lower == run.delta(0.5).lower
    # Three records in one world and one in the other: the direction of the three is the larger, whatever it is called.
    skew = mixtures.two_sided(mixtures.binomial(1, 0.1, 1.0), mixtures.binomial(3, 0.1, 1.0))
    pair = DisjointUnion([(0.3, skew), (0.7, skew)])
    first, second = (accounting.delta(pair, 0.5, direction) for direction in ("remove", "add"))
    assert first.upper < second.lower and accounting.delta(pair, 0.5).upper == second.upper
    whole = accounting.delta(skew, 0.5, "add")
    assert second.lower <= whole.upper and whole.lower <= second.upper


def test_refusals():
    with pytest.raises(ValueError, match="group_size must be 1 with adjacency 'substitution'; got 2"):
        FixedBatchDPSGD(1.0, 10, 100, 5, group_size=2, adjacency="substitution")
    with pytest.raises(NoBracketError, match="loss 0 alone keeps the characteristic function up"):
        FixedBatchDPSGD(1.0, 10, 100, 5, adjacency="zero-out").epsilon(1e-5, method="contour")
    law = np.array([-1.0, 1.0]), np.array([0.3, 0.7]), 0.0
    atoms = DisjointUnion([(1.0, mixtures.Atoms(law, law, 1.0))])
    for method in ("contour", "renyi"):
        with pytest.raises(ValueError, match="method must be 'auto' or 'lattice' for a pair that is known by finitely many losses"):
            accounting.epsilon([(atoms, 50)], 1e-5, method=method)
    for curve in (renyi.mixture_curve, lambda pair: renyi.composition_curve([(pair, 2)])):
        with pytest.raises(NoBracketError, match="a law of atoms"):
            curve(atoms)
    with pytest.raises(ValueError, match="dataset_size must be a whole number at least 1 and at most 1e"):
        TruncatedPoissonDPSGD(1.0, 0.1, 10**11, 10, 5)
    mixture = Mixture([0.0, 2.0], [0.9, 0.1], 1.0)
    for pieces, error, match in [
        ([], ValueError, "pieces must not be empty"), (3, TypeError, "pieces must be"), ([(0.5, mixture)], ValueError, "sum to 1"),
        ([(1.0, "pair")], TypeError, "pieces must hold"), ([(0.0, mixture)], ValueError, "weight must be a finite real number above 0"),
        ([(0.5, mixture), (0.5, Mixture([0.0, 2.0], [0.9, 0.1], 2.0))], ValueError, "noise_multiplier must be equal"),
    ]:  # fmt: skip
        with pytest.raises(error, match=match):
            DisjointUnion(pieces)
    with pytest.raises(ValueError, match="two sensitivities"):
        Folded(Mixture([1.0], [1.0], 1.0))
    with pytest.raises(TypeError, match="mixture must be a Mixture"):
        Folded(0.1)


@pytest.mark.parametrize("q, n, most", [(0.18, 8554, 1851), (0.312, 8523, 3199)])
def test_batches_that_are_hardly_ever_cut(q, n, most):
    """Where the sum of almost all weights is rounded to above the sum of all."""
    ordinary = PoissonDPSGD(2.0, q, 10).epsilon(1e-6)
    found = TruncatedPoissonDPSGD(2.0, q, n, most, 10).epsilon(1e-6)
    assert ordinary.lower <= found.upper and found.lower <= ordinary.upper and found.relative_width < 1e-3


def test_masses_of_a_folded_round_add_up():
    """The halves and what is left at loss 0, from the nodes of the lattice: both laws have mass 1."""
    for q, sigma in ((0.3, 1.0), (0.01, 2.0), (0.9, 0.5)):
        pair = mixtures.replaced_in_batch(round(1000 * q), 1000, sigma)
        step = step_of(pair, 1, "remove", 0.0, 60.0)
        nodes = [(loss, mass + np.log(width)) for loss, mass, width, _ in step.weighted_nodes(0.01, 0.0, 0.0)]
        loss, mass = (np.concatenate(column) for column in zip(*nodes))
        assert math.fsum(np.exp(mass)) == pytest.approx(1, abs=1e-12)
        # The window ends where the first law has no mass; the second has a little there.
        assert 1 - 1e-7 < math.fsum(np.exp(mass - loss)) < 1 + 1e-12


def test_tails_of_all_pieces_count():
    """With windows cut short the laws above and below still hold the truth, whichever piece the mass beyond comes from."""
    pair = mixtures.truncated_poisson(0.3, 20, 4, 1.0)
    for direction in ("remove", "add"):
        step = step_of(pair, 1, direction, 0.0, 2.0)  # a tail of e^-2 each
        law = Law(step, 0.05, 1.0)
        beyond = math.exp(law.log_infinite) if law.log_infinite > -math.inf else 0.0
        tilted = law.upper * np.exp(law.scale - law.losses())
        assert tilted.sum() + beyond == pytest.approx(1, abs=1e-9)
        assert sum(math.exp(log_weight + piece.log_high_tail) for log_weight, piece in step.pieces) > 0.1
