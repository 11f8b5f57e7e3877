"""[C-9m] remove is the larger direction, for every mechanism class whose default rests on it: brackets of both, each computed by itself.

`--hypothesis-profile=thorough` tries twenty times as many settings.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_cases import answer, examples, logs

from dplib import (
    BallsInBins,
    FixedBatchDPSGD,
    LastIterate,
    MatrixMechanism,
    PoissonDPSGD,
    accounting,
    conditional,
    matrices,
)

NARROW = 1e-4  # relative width of a bracket whose place says something


def whole(low, high):
    return logs(low, high).map(round)


@st.composite
def fixed_batches(draw):
    size = draw(whole(2, 1e6))
    return FixedBatchDPSGD(draw(logs(0.5, 40)), draw(whole(1, size)), size, draw(whole(1, 1e4)), draw(st.sampled_from([1, 2, 8])))


@st.composite
def balls(draw):
    bins, epochs = draw(st.integers(1, 64)), draw(st.integers(1, 20))
    return BallsInBins(matrices.identity(bins * epochs), draw(logs(0.4, 20)), bins, epochs)


ENCODERS = st.one_of(
    st.sampled_from([2, 4]).map(matrices.optimal_counting),
    st.integers(1, 3).map(lambda bands: matrices.optimal_counting(32, bands)),
    st.tuples(st.sampled_from([4, 8]), st.sampled_from([1, 2, 4])).map(lambda sizes: matrices.tree_restarts(*sizes)),
)
MECHANISMS = {
    "PoissonDPSGD": st.builds(PoissonDPSGD, logs(0.4, 20), logs(1e-4, 1), whole(1, 1e5), st.sampled_from([1, 2, 4, 16])),
    "FixedBatchDPSGD": fixed_batches(),
    "LastIterate": st.builds(LastIterate, logs(0.3, 20), logs(1e-4, 1), whole(1, 1e4)),
    "BallsInBins": balls(),
    "MatrixMechanism": st.builds(MatrixMechanism, ENCODERS, logs(1, 8), logs(0.03, 0.5)),
}


def brackets(mechanism, epsilon):
    """Certified brackets of delta in the directions (add, remove), each computed by itself."""
    if isinstance(mechanism, BallsInBins):
        return [mechanism.delta(epsilon, direction, method="exact") for direction in ("add", "remove")]
    if isinstance(mechanism, MatrixMechanism):
        # What stands behind its upper bounds: the rows off the bad event.
        tail_bound = conditional.candidates(mechanism.encoder, 1)[-1]
        [rows] = conditional.rows(mechanism.encoder, mechanism.noise_multiplier, mechanism.sampling_probability, 1e-9, tail_bound)
        return [accounting.delta(rows.pairs, epsilon, side, "lattice", tolerance=1e-4) for side in ("add", "remove")]
    return [accounting.delta(mechanism.composition(), epsilon, side, tolerance=1e-5) for side in ("add", "remove")]


@pytest.mark.parametrize("name", MECHANISMS)
@examples(3, 160)
@given(st.data(), st.floats(0, 1))
def test_add_is_at_most_remove(name, data, place):
    """The lower end of add never exceeds the upper end of remove; where both are narrow neither end of add does."""
    mechanism = data.draw(MECHANISMS[name])
    largest = 2 if name == "MatrixMechanism" else 20  # delta within the lattice's reach
    add, remove = answer(brackets, mechanism, 0.01 * math.exp(place * math.log(largest / 0.01)))
    assert add.lower <= remove.upper
    if max(add.relative_width, remove.relative_width) < NARROW:
        assert add.lower <= remove.lower or add.upper <= remove.upper * (1 + NARROW)


def test_the_brackets_tell_the_directions_apart():
    add, remove = brackets(PoissonDPSGD(1.0, 0.01, 100), 0.5)
    assert add.upper < remove.lower
