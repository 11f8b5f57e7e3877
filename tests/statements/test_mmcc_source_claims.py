"""What the source of MMCC says beside its theorems: sentences on parts and partitions."""

import math
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

from dplib import matrices
from dplib.lessons import truth


@pytest.mark.parametrize("direction", ("remove", "add"))
def test_first_part_of_a_toeplitz_encoder_is_the_worst(direction):
    """[M-D] Later parts are the first rows of part 1: the truth of each, by all sets, is not larger."""
    rng = np.random.default_rng(7)
    for _ in range(3):
        coefficients = rng.exponential(size=9)  # of any shape: the argument needs no order
        encoder = matrices.toeplitz(coefficients).entries()
        sigma = 3 * np.linalg.norm(coefficients)
        values = [
            truth.all_modes(encoder[i:, i::3], sigma, 0.3, samples=1024).epsilon(1e-3, direction).value
            for i in range(3)
        ]
        assert values[0] >= values[1] * (1 - 2e-3) and values[1] >= values[2] * (1 - 2e-3)


def even(order):
    return sum(a > b for a, b in combinations(order, 2)) % 2 == 0


@pytest.mark.parametrize("k, free", [(3, 2), (4, 2), (4, 3)])
def test_a_law_on_permutations_is_not_an_average_of_shuffles(k, free):
    """[E-21] Components that fix k - n' records and shuffle n' are as often even as odd; an allowed law is not."""
    orders = list(permutations(range(k)))
    for fixed in combinations(range(1, k), k - free):
        for slots in permutations(range(k), k - free):
            part = [o for o in orders if all(o[s] == f for s, f in zip(slots, fixed))]
            assert len(part) == math.factorial(free)
            assert Fraction(sum(map(even, part)), len(part)) == Fraction(1, 2)
    c = Fraction(k, free)
    law = {o: c if even(o) else 1 for o in orders}
    assert max(law.values()) / min(law.values()) == c
    assert Fraction(sum(law[o] for o in orders if even(o))) / sum(law.values()) == c / (c + 1) > Fraction(1, 2)
