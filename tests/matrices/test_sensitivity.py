"""Sensitivities by participation, against enumeration of every allowed set of rounds."""

import itertools
import math

import numpy as np
import pytest
from encoders import ENCODERS, each

from dplib import matrices, sensitivity


def largest(encoder, most, allowed):
    """Largest norm of a sum of columns, over every set of at most `most` rounds with allowed gaps."""
    C, best = encoder.entries(), 0.0
    for size in range(1, min(most, encoder.columns) + 1):
        for rounds in itertools.combinations(range(encoder.columns), size):
            if all(allowed(gap) for gap in np.diff(rounds)):
                best = max(best, float(np.linalg.norm(C[:, list(rounds)].sum(axis=1))))
    return best


@each(ENCODERS)
def test_single_participation_is_the_largest_column_norm(encoder):
    assert sensitivity.single(encoder) == pytest.approx(largest(encoder, 1, bool), rel=1e-13)


@each(ENCODERS)
@pytest.mark.parametrize("most", [None, 1, 2, 3])
def test_round_robin_is_exact(encoder, most):
    for period in range(1, encoder.columns + 2):
        wanted = largest(encoder, most or encoder.columns, lambda gap: gap == period)  # noqa: B023
        assert sensitivity.round_robin(encoder, period, most) == pytest.approx(wanted, rel=1e-12)


@each(ENCODERS)
@pytest.mark.parametrize("most", [None, 1, 2, 3])
def test_min_separation_brackets_the_worst_set(encoder, most):
    for gap in range(1, encoder.columns + 2):
        wanted = largest(encoder, most or encoder.columns, lambda apart: apart >= gap)  # noqa: B023
        found = sensitivity.min_separation(encoder, gap, most)
        assert found.lower <= wanted * (1 + 1e-12) and wanted <= found.upper * (1 + 1e-12)
        assert found.upper <= 1.09 * wanted


def test_large_encoders():
    """At 131,072 rounds a product replaces the dense matrix; banded columns add their squares."""
    banded = matrices.optimal_counting(131_072, bands=64)
    found = sensitivity.min_separation(banded, 64)
    assert found.lower == found.upper == pytest.approx(sensitivity.single(banded) * math.sqrt(2048), rel=1e-12)
    assert sensitivity.round_robin(matrices.binary_tree(65_536), 4096, 4) == pytest.approx(math.sqrt(108))
    with pytest.raises(ValueError, match="encoder must have at most 4096 columns for the bound by pairs; got 65536"):
        sensitivity.min_separation(matrices.binary_tree(65_536), 64)


@pytest.mark.parametrize("rounds", [[], [8], [-1], [0.5], [1, 1], 3, [[0, 1]]])
def test_bad_rounds_are_refused_by_name(rounds):
    with pytest.raises(ValueError, match="^rounds must"):
        sensitivity.pattern(ENCODERS["tree"], rounds)
