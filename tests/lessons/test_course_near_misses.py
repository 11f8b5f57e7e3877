"""Checks by property in chapters 1 to 6, 18 and 19: an example that misses one condition is told which."""

import math

import pytest

from dplib.lessons import course

HALF = [0.5, 0.5]
CROSS = [[0.5, 0.0], [0.0, 0.5], [-0.5, 0.0], [0.0, -0.5]]
LONGER = [[0.75 * x / 0.5, 0.75 * y / 0.5] for x, y in CROSS]

# identifier, answer, a part of the sentence that must come back
NEAR_MISSES = [
    ("hockey-5", ([0.72, 0.28], [0.28, 0.72]), "exceeds 1 too rarely"),
    ("hockey-5", ([0.95, 0.05], [0.349, 0.651]), "the other is not"),
    ("hockey-5", ([0.9, 0.1], [0.1, 0.9]), "by a very little only"),
    ("hockey-5", ([0.9, 0.2], [0.1, 0.9]), "add up to 1"),
    ("hockey-6", ([1.0, 0.0], [1.0, 0.0], [0.9, 0.1], [1.0, 0.0]), "smaller delta"),
    ("hockey-6", ([0.8, 0.2], [0.8, 0.2], [0.6, 0.4], [1.0, 0.0]), "further apart"),
    ("hockey-6", ([0.9, 0.1], [0.8, 0.2], [0.8, 0.2], [1.0, 0.0]), "M must be private"),
    ("accounting-5", (1000, 3.0, 1.0), "not negative here"),
    ("accounting-5", (10.5, 3.0, 1.0), "whole number"),
    ("accounting-5", (1000, 1.0, 9.0), "must lie between 2 and 6"),
    ("accounting-6", ((HALF, [0.25, 0.75]), ([0.0, 1.0], HALF)), "below 0.01"),
    ("accounting-6", ((HALF, HALF), ([0.01, 0.99], HALF)), "no bound"),
    ("accounting-6", (([0.75, 0.25], [0.25, 0.75]), ([0.75, 0.25], [0.25, 0.75])), "too little"),
    ("subsampling-6", HALF, "does not exceed remove"),
    ("subsampling-6", [0.3] + [0.7 * 0.5**k for k in range(1, 60)], "not by enough"),
    ("subsampling-6", [0.005] * 200 + [0.0], "At most 200"),
    ("mixtures-6", (CROSS, CROSS), "1.5 times as long"),
    ("mixtures-6", ([[0.3, 0.0]] * 4, LONGER), "at least 0.4"),
    ("mixtures-6", (CROSS, LONGER), "larger one"),
    ("mixtures-6", ([[0.7, 0.0]] * 4, [[2.1 * x, 2.1 * y] for x, y in CROSS]), "not by a factor"),
    ("mixtures-7", (([0, 2], HALF), ([0.5, 2.0], HALF)), "means differ"),
    ("mixtures-7", (([0, 2], HALF), ([1], [1.0])), "variances are not"),
    ("mixtures-7", (([0, 2], HALF), ([0, 2], HALF)), "At epsilon 0"),
    ("mixtures-7", (([0.9, 11], [100 / 101, 1 / 101]), ([0, 2], HALF)), "At epsilon"),
    ("group-6", ([0.0] * 8, 1.0), "too little"),
    ("group-6", ([1.0] * 9, -1.0), "at most 8"),
    ("group-6", ([2.0] * 3, -1.0), "clipped"),
    ("last-iterate-6", [-1.0, 0.5, 2.0], "too little"),
    ("last-iterate-6", [0.0, 1.0, math.inf], "three finite numbers"),
    ("last-iterate-7", [1.0] * 12, "still too large"),
    ("last-iterate-7", [1.0] * 6 + [0.4] * 6, "one half and 1"),
    ("which-accountant-6", (0.7, 3.5, 1e-8), "a whole number T"),
    ("which-accountant-6", (0.5, 3, 1e-8), "above 9"),
    ("which-accountant-6", (1.0, 3, 1e-8), "coins cost 1.178 times"),
    ("which-accountant-6", (4.0, 100, 1e-6), "coins cost 0."),
    ("common-mistakes-6", (0.3, 1e-5, 1e4, 1e-4), "a delta from"),
    ("common-mistakes-6", (0.3, 0.0, 1e4, 8.2e-6), "q from"),
    ("common-mistakes-6", (0.3, 1e-5, 1e4, 9.5e-6), "claim is 0,"),
    ("common-mistakes-6", (0.3, 1e-5, 1e4, 2e-6), "not between 0.2 and 2"),
    ("common-mistakes-6", (0.25, 1e-5, 1e4, 8.59e-6), "Nothing shows here"),
    ("common-mistakes-6", (1.0, 1e-5, 1e4, 1e-6), "Nothing shows here"),
    ("one-axis-4", (100, 5.0, 8.0), "refutes only"),
    ("one-axis-4", (10, 1.0, 1.0), "times the"),
    ("one-axis-4", (100.5, 1.0, 2.0), "whole number b"),
    ("users-4", [[1.0, 0.0], [0.0, 1.0]], "loses 0."),
    ("users-4", [[1.0, 0.0], [-0.5, 0.0]], "length 1"),
    ("users-4", [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], "a pair of numbers"),
]


@pytest.mark.parametrize("identifier, answer, part", NEAR_MISSES)
def test_a_near_miss_is_told_what_it_misses(identifier, answer, part):
    right, hint = course.verdict({"property": True}, identifier, answer)
    assert not right and part in hint, hint
