"""Statements of chapter 14 on balls in bins, each by quadrature against a second route.

Tags: [N-3.2] dominating pair, [N-A] the example with a negative entry, [N-K] inputs fixed in advance,
[A-14] floor.
"""

import itertools
import math

import numpy as np
import pytest
from domination_cases import best_adaptive, modes_value

import dplib
from dplib import gaussian, matrices, mixtures

DIRECTIONS = ("remove", "add")


def small(gram, epsilon, direction="remove"):
    """delta of two or three equally likely modes, by quadrature."""
    return modes_value(np.linalg.cholesky(gram), [1 / len(gram)] * len(gram), epsilon, direction).midpoint


def modes(C, b):
    return np.asarray(C).reshape(len(C), -1, b).sum(axis=1)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed, sigma, epsilon", [(1, 0.8, 0.5), (2, 1.5, 0.3), (3, 1.1, 1.0)])
def test_best_adaptive_inputs_of_three_bins_and_two_epochs(seed, sigma, epsilon, direction):
    """[N-3.2] Six rounds, six cells for each output: the best of all adaptive strategies of inputs 1 and -1.

    They attain what equal inputs attain (seen through cells, within 0.2%), a few per cent below the pair; with negative
    entries in the second epoch they beat the pair of C by far, and stay below that of |C|.
    """
    rng = np.random.default_rng(seed)
    sets = [tuple(int(t % 3 == i) for t in range(6)) for i in range(3)]
    C = np.tril(rng.uniform(0.1, 1, (6, 6)), -1) + np.diag(rng.uniform(0.5, 1.2, 6))
    signed = C.copy()
    signed[3:, :3] *= -1

    def pair(encoder):
        m = modes(encoder, 3) / sigma
        return modes_value(np.linalg.cholesky(m.T @ m), [1 / 3] * 3, epsilon, direction)

    bound = pair(np.abs(C))
    for encoder, centre in ((C, 0.3), (signed, 0.0)):
        ends = np.concatenate([[-np.inf], sigma * np.linspace(-1.6, 1.6, 5) + centre, [np.inf]])
        chances = dict.fromkeys(sets, 1 / 3)
        best, equal = best_adaptive(encoder, chances, sigma, ends, math.exp(epsilon), direction)
        assert 0.9 * bound.lower < best <= bound.upper
        if encoder is C:
            assert best == pytest.approx(equal, rel=2e-3)
        else:
            assert best > 1.3 * pair(signed).upper and best > 1.3 * equal


# ------------------------------------------------------------ where the pair is known


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_pair_where_it_is_known(direction):
    """[N-3.2] One batch is a Gaussian; for C = I epochs divide the variance; two and three bins by quadrature."""
    C = matrices.optimal_counting(12)
    alone = dplib.BallsInBins(C, 5.0, batches_per_epoch=1, epochs=12).delta(0.5, direction)
    mu = np.linalg.norm(C.entries().sum(axis=1)) / 5.0
    assert alone.upper == pytest.approx(gaussian.delta(mu, 0.5), rel=1e-7)
    many = dplib.BallsInBins(matrices.identity(12), 2.0, 3, 4).delta(0.5, direction)
    few = dplib.BallsInBins(matrices.identity(3), 1.0, 3, 1).delta(0.5, direction)
    assert many.upper == pytest.approx(few.upper, rel=1e-7)
    assert few.lower <= small(np.eye(3), 0.5, direction) <= few.upper
    two = dplib.BallsInBins(matrices.identity(2), 1.0, 2, 1).delta(0.5, direction)
    known = {"remove": 0.149178, "add": 0.142687}[direction]
    assert two.lower <= small(np.eye(2), 0.5, direction) <= two.upper
    assert small(np.eye(2), 0.5, direction) == pytest.approx(known, abs=1e-6)


def test_example_with_a_negative_entry():
    """[N-A] Opposed inputs leak more than equal ones, and as much as |C|."""
    values = {}
    for u, v in itertools.product((1, -1), repeat=2):
        m = np.array([[u, -u], [0, v]])
        values[u * v] = [small(m @ m.T, 0.0), small(m @ m.T, 1.0), small(m @ m.T, 1.0, "add")]
    assert values[1] == pytest.approx([0.3005, 0.10127, 0.02525], abs=6e-5)
    assert values[-1] == pytest.approx([0.4223, 0.17634, 0.16223], abs=6e-5)
    m = modes(np.abs([[1, 0], [-1, 1]]), 2)
    assert small(m.T @ m, 1.0) == pytest.approx(values[-1][1], abs=1e-12)


def test_triangular_toeplitz_with_non_negative_inner_products_has_no_negative_entry():
    """[N-K] The last column has one entry, so the condition makes the last row non-negative."""
    rng = np.random.default_rng(3)
    met = 0
    for _ in range(500):
        c = np.concatenate([[1.0], rng.normal(size=4) * 0.5 + 0.3])
        C = np.array([[c[i - j] if i >= j else 0.0 for j in range(5)] for i in range(5)])
        if np.min(C.T @ C) >= 0:
            met += 1
            assert np.min(c) >= 0
    assert met > 20


def test_floor_is_the_value_for_one_direction():
    """[A-14] Modes on one ray: the projection loses nothing."""
    lengths = np.array([0.5, 1.0, 1.4])
    pair = mixtures.VectorMixture(np.outer(lengths, [0.6, 0.8]), [1 / 3] * 3, 1.0)
    scalar = mixtures.Mixture(lengths, [1 / 3] * 3, 1.0)
    for d in DIRECTIONS:
        assert pair.hockey_stick(0.5, d) == pytest.approx(scalar.hockey_stick(0.5, d), abs=1e-4)
