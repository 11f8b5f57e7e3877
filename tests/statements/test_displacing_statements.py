"""Records that displace others: batches of a fixed size, and batches that are cut, against all batches enumerated."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_cases import examples

from dplib import accounting, mixtures

GRID = np.linspace(-9.0, 9.0, 361)
PLANE = np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2)
CELL = (GRID[1] - GRID[0]) ** 2
LINE = np.linspace(-16.0, 18.0, 51_001)
STEP = LINE[1] - LINE[0]
EPSILONS = (-0.8, -0.1, 0.0, 0.3, 1.1)


def density(law, places):
    """Density of the mixture of standard normals with these {mode: weight}, at places, shape (n, d)."""
    modes, weights = np.array(list(law)), np.array(list(law.values()))
    return np.exp(-((places[:, None, :] - modes) ** 2).sum(axis=2) / 2) @ weights / (2 * math.pi) ** (places.shape[1] / 2)


def curve(first, second, cell):
    return np.array([np.maximum(first - math.exp(eps) * second, 0.0).sum() * cell for eps in EPSILONS])


def batches(vectors, kept):
    """{sum: probability} of the law {batch: probability} of sets of records."""
    law = {}
    for batch, weight in kept.items():
        mode = tuple(np.sum([vectors[i] for i in batch], axis=0)) if batch else (0.0,) * vectors.shape[1]
        law[mode] = law.get(mode, 0.0) + weight
    return law


def of_size(records, size):
    found = list(itertools.combinations(records, size))
    return {batch: 1 / len(found) for batch in found}


def cut(records, q, most):
    """Every set of sampled records, and of a set that is too large every part of the largest size."""
    law = {}
    for size in range(len(records) + 1):
        for drawn in itertools.combinations(records, size):
            weight = q**size * (1 - q) ** (len(records) - size)
            for batch, share in of_size(drawn, min(size, most)).items():
                law[batch] = law.get(batch, 0.0) + weight * share
    return law


def displaced(q):
    """((1 - q) N(0) + q N(2), N(0)) on LINE."""
    return density({(0.0,): 1 - q, (2.0,): q}, LINE[:, None]), density({(0.0,): 1.0}, LINE[:, None])


def folded(q):
    """The curve at EPSILONS: from 0 on of one order, below of the other."""
    first, second = displaced(q)
    return np.where(np.array(EPSILONS) >= 0, curve(first, second, STEP), curve(second, first, STEP))


def gradients(rng, count):
    """In the unit disc, many of them at its edge and along one line, where the bound is nearly met."""
    angles = np.where(rng.random(count) < 0.5, rng.choice([0.0, math.pi], count), rng.uniform(0, 2 * math.pi, count))
    sizes = np.where(rng.random(count) < 0.7, 1.0, rng.random(count))
    return sizes[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)


@given(n=st.integers(2, 5), share=st.floats(0, 1), zeroed=st.booleans(), seed=st.integers(0, 2**32 - 1))
@examples(10)
def test_a_replaced_record_in_a_batch_is_dominated(n, share, zeroed, seed):
    """[A-23] Random gradients, all batches of a fixed size: one record replaced or zeroed out costs at most the folded pair, both orders."""
    size = 1 + int(share * (n - 2))
    rng = np.random.default_rng(seed)
    one, other = np.repeat(gradients(rng, n)[None], 2, axis=0)
    other[0] = 0.0 if zeroed else gradients(rng, 1)[0]
    worlds = [density(batches(vectors, of_size(range(n), size)), PLANE) for vectors in (one, other)]
    bound = folded(size / n)
    assert (curve(*worlds, CELL) <= bound + 1e-8).all()
    assert (curve(*worlds[::-1], CELL) <= bound + 1e-8).all()


@pytest.mark.parametrize("n, size", [(5, 1), (4, 3), (6, 2)])
def test_one_round_attains_the_folded_pair(n, size):
    """[A-23] All records at -1, one of them replaced by 1: one half of the curve in each order; and the library's own curve."""
    own, others = np.ones((n, 1)), -np.ones((n, 1))
    own[1:] = -1.0
    worlds = [density(batches(vectors, of_size(range(n), size)), LINE[:, None]) for vectors in (own, others)]
    # The records at -1 put every mode at -size: moved there, the pair is the displaced one.
    middle = [density({(x - size,): w for x, w in ((0.0, 1 - size / n), (2.0, size / n))}, LINE[:, None]), density({(-float(size),): 1.0}, LINE[:, None])]
    np.testing.assert_allclose(curve(*worlds, STEP), curve(*middle, STEP), atol=1e-12)
    bound, positive = folded(size / n), np.array(EPSILONS) >= 0
    np.testing.assert_allclose(curve(*worlds, STEP)[positive], bound[positive], rtol=1e-7)
    np.testing.assert_allclose(curve(*worlds[::-1], STEP)[~positive], bound[~positive], rtol=1e-7)
    pair = mixtures.replaced_in_batch(size, n, 1.0)
    for direction in ("remove", "add"):
        found = [accounting.delta(pair, eps, direction) for eps in EPSILONS if eps >= 0]
        np.testing.assert_allclose([answer.upper for answer in found], bound[positive], rtol=2e-6)


@given(n=st.integers(2, 5), share=st.floats(0, 1), q=st.floats(0.1, 0.9), seed=st.integers(0, 2**32 - 1))
@examples(10)
def test_batches_that_are_cut_are_dominated(n, share, q, seed):
    """[A-24] Random gradients, all coins and all parts enumerated: below the pieces together, for all three kinds of neighbours."""
    most = 1 + int(share * (n - 2))
    rng = np.random.default_rng(seed)
    vectors = gradients(rng, n)
    replaced, zeroed = vectors.copy(), vectors.copy()
    replaced[0], zeroed[0] = gradients(rng, 1)[0], 0.0
    full = density(batches(vectors, cut(range(n), q, most)), PLANE)
    p, r = chances(n, q, most)
    worlds = {
        "add-remove": batches(vectors, cut(range(1, n), q, most)), "substitution": batches(replaced, cut(range(n), q, most)),
        "zero-out": batches(zeroed, cut(range(n), q, most)),
    }  # fmt: skip
    first, second = density({(0.0,): 1 - q, (1.0,): q}, LINE[:, None]), density({(0.0,): 1.0}, LINE[:, None])
    mirrored = density({(0.0,): 1 - q, (-1.0,): q}, LINE[:, None])
    for adjacency, law in worlds.items():
        world = density(law, PLANE)
        for sign in (1, -1):
            whole = (first, mirrored if adjacency == "substitution" else second)
            bound = (1 - p) * curve(*whole[::sign], STEP)
            bound += p * (curve(*displaced(r)[::sign], STEP) if adjacency == "add-remove" else folded(r))
            assert (curve(*(full, world)[::sign], CELL) <= bound + 1e-8).all(), adjacency


def chances(n, q, most):
    """(p, r) by counting: at least `most` of the others are sampled, and then the record is sampled and kept."""
    others = [math.comb(n - 1, s) * q**s * (1 - q) ** (n - 1 - s) for s in range(n)]
    p = math.fsum(others[most:])
    return p, math.fsum(weight * q * most / (s + 1) for s, weight in enumerate(others) if s >= most) / p


@pytest.mark.parametrize("n, q, most", [(5, 0.3, 2), (40, 0.1, 6), (300, 0.02, 5), (1000, 0.5, 480)])
def test_chances_of_being_cut(n, q, most):
    """[A-24] The library's weights, by walks along the binomials, against sums of single terms; r is rounded up."""
    p, r = chances(n, q, most)
    (uncut, _), (weight, displacing) = mixtures.truncated_poisson(q, n, most, 1.0).pieces
    assert weight == pytest.approx(p, rel=1e-12) and uncut == pytest.approx(1 - p, rel=1e-9)
    assert 0 <= displacing.probabilities[1] / r - 1 < 1e-9
