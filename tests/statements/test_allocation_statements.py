"""k random rounds of t, and rounds with a pause after each: against enumeration and quadrature."""

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from property_cases import examples

from dplib import MinSeparation, matrices

ALPHAS = (0.3, 0.8, 1.0, 1.4, 3.0)
GRID = np.linspace(-9.0, 10.0, 381)
PLANE = np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2)
CELL = (GRID[1] - GRID[0]) ** 2


def curve(first, second, cell=1.0):
    return np.array([np.maximum(first - alpha * second, 0.0).sum() * cell for alpha in ALPHAS])


def release(chosen, rounds, taking_part, not_taking_part):
    """Law of all rounds' outcomes, where the record takes part in the chosen ones."""
    law = np.ones(1)
    for i in range(rounds):
        law = np.outer(law, taking_part if i in chosen else not_taking_part).ravel()
    return law


@given(t=st.integers(2, 5), k=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
@examples(25)
def test_blocks_of_rounds_cost_at_least_as_much(t, k, seed):
    """[A-26] For any pair of laws of one round, all k-subsets enumerated: below one round of every block, both orders; k blocks of floor(t/k) are above that."""
    k = min(k, t)
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(3, 0.7), 2)
    still = release((), t, p, q)
    subsets = list(itertools.combinations(range(t), k))
    allocation = sum(release(chosen, t, p, q) for chosen in subsets) / len(subsets)

    def blocks(sizes):
        """(law with one round of each block, law without)."""
        ends = np.cumsum([0, *sizes])
        picks = list(itertools.product(*(range(low, high) for low, high in itertools.pairwise(ends))))
        laws = [release(chosen, int(ends[-1]), p, q) for chosen in picks]
        return sum(laws) / len(laws), release((), int(ends[-1]), p, q)

    sizes = [t // k + (i < t % k) for i in range(k)]
    both, smaller = blocks(sizes), blocks([t // k] * k)
    for order in (slice(None), slice(None, None, -1)):
        bound = curve(*both[order])
        assert (curve(*(allocation, still)[order]) <= bound + 1e-12).all()
        assert (bound <= curve(*smaller[order]) + 1e-12).all()


def two_rounds(entry, sigma, patterns):
    """Densities on a grid of two rounds with encoder ((1, 0), (entry, 1)): of the mixture over {pattern: probability}, and without the record."""
    columns = np.array([[1.0, entry], [0.0, 1.0]]) / sigma
    normal = lambda mode: np.exp(-((PLANE - mode) ** 2).sum(axis=1) / 2) / (2 * math.pi)
    return sum(weight * normal(np.array(pattern) @ columns) for pattern, weight in patterns.items()), normal(np.zeros(2))


def pausing(p, warm):
    """Two rounds, of which a record takes part in one at most: {pattern: probability}."""
    free = 1 / (1 + p) if warm else 1.0
    first, second = free * p, free * (1 - p) * p + (1 - free) * p
    return {(1, 0): first, (0, 1): second, (0, 0): 1 - first - second}


def coins(p):
    return {(1, 0): p * (1 - p), (0, 1): p * (1 - p), (1, 1): p * p, (0, 0): (1 - p) ** 2}


@given(p=st.floats(0.05, 0.9), entry=st.floats(0.0, 1.5), sigma=st.floats(0.5, 3.0), warm=st.booleans())
@examples(12)
def test_a_pause_never_costs(p, entry, sigma, warm):
    """[A-27] The same coins without the pause cost at least as much, in both orders, for a random nonnegative encoder."""
    minimal = two_rounds(entry, sigma, pausing(p, warm))
    poisson = two_rounds(entry, sigma, coins(p))
    for order in (slice(None), slice(None, None, -1)):
        assert (curve(*minimal[order], CELL) <= curve(*poisson[order], CELL) + 1e-9).all()


@given(
    p=st.floats(0.05, 0.9), entry=st.floats(0.0, 1.5), sigma=st.floats(0.7, 3.0), b=st.sampled_from([1, 2]), warm=st.booleans(),
    epsilon=st.floats(0.0, 2.0),
)  # fmt: skip
@examples(16)
def test_tuples_of_patterns_bound_the_truth(p, entry, sigma, b, warm, epsilon):
    """[A-28] The bound without sampling lies above quadrature over two rounds, the estimate within its error; with as many bands as b, and more."""
    law, still = two_rounds(entry, sigma, pausing(p, warm) if b == 2 else coins(p))
    truth = float(np.maximum(law - math.exp(epsilon) * still, 0.0).sum() * CELL)
    mechanism = MinSeparation(matrices.toeplitz([1.0, entry]), sigma, p, b, warm_start=warm)
    assert truth <= mechanism.delta(epsilon, "remove", method="renyi").upper * (1 + 1e-6) + 1e-9
    found = mechanism.delta(epsilon, "remove", method="estimate", samples=4000)
    assert abs(found.value - truth) <= 6 * found.standard_error + 1e-4 * truth + 1e-9
