"""Pairs with mixtures on both sides: the order of their inner products, and the neighbours that they stand for."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_cases import examples

from dplib import accounting, mixtures

GRID = np.linspace(-9.0, 9.0, 361)
STEP = GRID[1] - GRID[0]
PLANE = np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2)
LINE = np.linspace(-16.0, 16.0, 48_001)
EPSILONS = (-0.5, 0.0, 0.4, 1.2)


def density(modes, weights, places):
    """Density of the mixture of standard normals with these modes, shape (m, d), at places, shape (n, d)."""
    squares = ((places[:, None, :] - modes) ** 2).sum(axis=2)
    return np.exp(-squares / 2) @ weights / (2 * math.pi) ** (places.shape[1] / 2)


def curve(first, second, cell):
    """H_{e^eps} of two densities on a grid, at EPSILONS."""
    return np.array([np.maximum(first - math.exp(eps) * second, 0.0).sum() * cell for eps in EPSILONS])


def in_the_plane(gained, lost, weights):
    return [density(np.array(modes), w, PLANE) for modes, w in zip((gained, lost), weights)]


@given(seed=st.integers(0, 2**32 - 1))
@examples(8)
def test_larger_inner_products_within_and_smaller_across_dominate(seed):
    """[A-21] Random modes in the plane: each side's are turned towards its own axis and lengthened, the axes apart from each other."""
    rng = np.random.default_rng(seed)
    weights = [rng.dirichlet(np.ones(3)) for _ in range(2)]
    # Angles to the own axis of at most 45 degrees, and axes opposite to each other: turned inwards, all inner products move the right way.
    angles, lengths = rng.uniform(-math.pi / 4, math.pi / 4, (2, 3)), rng.uniform(0.2, 1.5, (2, 3))

    def modes(turn, stretch):
        return [
            stretch * size[:, None] * np.stack([sign * np.cos(turn * angle), np.sin(turn * angle)], axis=1)
            for sign, angle, size in zip((1, -1), angles, lengths)
        ]

    before, after = modes(1.0, 1.0), modes(0.5, 1.1)
    for one, other, sign in [(0, 0, 1), (1, 1, 1), (0, 1, -1)]:
        assert (sign * (after[one] @ after[other].T - before[one] @ before[other].T) >= 0).all()
    smaller, larger = (in_the_plane(*pair, weights) for pair in (before, after))
    for order in (slice(None), slice(None, None, -1)):
        found = curve(*larger[order], STEP**2) - curve(*smaller[order], STEP**2)
        assert (found > -1e-9).all() and found.max() > 1e-4


def coins(count, q):
    """Every outcome of `count` coins, with its probability."""
    for drawn in itertools.product((0, 1), repeat=count):
        yield np.array(drawn), math.prod(q if coin else 1 - q for coin in drawn)


def run(own, others, q):
    """(modes, weights) of one round: a sum over the sampled records, all of them by their own coins."""
    found = list(coins(len(own) + len(others), q))
    vectors = np.concatenate([own, others])
    return np.array([drawn @ vectors for drawn, _ in found]), np.array([weight for _, weight in found])


@given(k=st.integers(1, 2), m=st.integers(1, 2), q=st.floats(0.05, 0.7), seed=st.integers(0, 2**32 - 1))
@examples(9)
def test_insertions_and_deletions_are_dominated(k, m, q, seed):
    """[A-22] Random gradients in the unit disc, two other records beside them, all coins enumerated: below the scalar pair, both orders."""
    rng = np.random.default_rng(seed)
    disc = lambda count: np.array([r * np.array([math.cos(a), math.sin(a)]) for r, a in rng.uniform(0.3, [1.0, 2 * math.pi], (count, 2))])
    others = disc(2)
    pair = in_the_plane_of(run(disc(k), others, q), run(disc(m), others, q))
    worst = worst_pair(k, m, q)
    for order in (slice(None), slice(None, None, -1)):
        assert (curve(*pair[order], STEP**2) <= curve(*worst[order], LINE[1] - LINE[0]) + 1e-9).all()


def in_the_plane_of(*laws):
    return [density(modes, weights, PLANE) for modes, weights in laws]


def worst_pair(k, m, q):
    """Densities of Binomial(k, q) to one side against Binomial(m, q) to the other, on LINE."""
    binomial = lambda count: np.array([math.comb(count, j) * q**j * (1 - q) ** (count - j) for j in range(count + 1)])
    return [density(sign * np.arange(count + 1.0)[:, None], binomial(count), LINE[:, None]) for sign, count in ((1, k), (-1, m))]


@pytest.mark.parametrize("k, m, q", [(1, 1, 0.3), (3, 1, 0.2), (2, 4, 0.05)])
def test_opposite_gradients_attain_the_pair(k, m, q):
    """[A-22] Records with gradients 1 against records with -1, the others at 0: that very pair, by enumeration and by the library."""
    first, second = run(np.ones((k, 1)), np.zeros((2, 1)), q), run(-np.ones((m, 1)), np.zeros((2, 1)), q)
    pair = [density(modes, weights, LINE[:, None]) for modes, weights in (first, second)]
    ours = mixtures.two_sided(mixtures.binomial(k, q, 1.0), mixtures.binomial(m, q, 1.0))
    for direction, order in (("remove", slice(None)), ("add", slice(None, None, -1))):
        found = curve(*pair[order], LINE[1] - LINE[0])
        np.testing.assert_allclose(found, curve(*worst_pair(k, m, q)[order], LINE[1] - LINE[0]), rtol=1e-9)
        answers = [accounting.delta(ours, eps, direction).upper for eps in EPSILONS[1:]]
        np.testing.assert_allclose(answers, found[1:], rtol=1e-6)


@pytest.mark.parametrize("k, m", [(1, 1), (3, 2)])
def test_more_sampling_and_more_records_cost_more(k, m):
    """[A-22] The curve grows with the sampling probability and with either number of records, in both orders."""
    for order in (slice(None), slice(None, None, -1)):
        at = lambda k, m, q, order=order: curve(*worst_pair(k, m, q)[order], LINE[1] - LINE[0])
        for lower, higher in [((k, m, 0.1), (k, m, 0.15)), ((k, m, 0.1), (k + 1, m, 0.1)), ((k, m, 0.1), (k, m + 1, 0.1)), ((k, 0, 0.1), (k, k, 0.1))]:
            found = at(*higher) - at(*lower)
            assert (found > -1e-12).all() and found.max() > 1e-5
