"""Correlated noise in streaming form: equal to the batch computation, and it can stop and go on."""

import pickle

import numpy as np
import pytest
from encoders import ENCODERS, SQUARE, TREES, each

from dplib import matrices

SHAPES = [(), (3,), (2, 2)]
STREAMS = {name: encoder for name, encoder in SQUARE.items() if name not in TREES}


def fresh(encoder, shape, sigma, seed):
    return sigma * np.random.default_rng(seed).standard_normal((encoder.rows, *shape))


@pytest.mark.parametrize("shape", SHAPES)
@each(STREAMS)
def test_the_stream_is_the_solution_of_the_whole_system(encoder, shape):
    """Round t gets (C^-1 z)_t for the same z."""
    stream = matrices.noise_stream(encoder, shape, 1.5, seed=7)
    noise = np.array(list(stream))
    assert noise.shape == (encoder.columns, *shape) and stream.round == stream.rounds
    assert noise == pytest.approx(encoder.solve(fresh(encoder, shape, 1.5, 7)), abs=1e-12)
    with pytest.raises(StopIteration):
        next(stream)


def decoder_rows(encoder):
    """B of the prefix sums by definition: dyadic nodes."""
    C, rows = encoder.entries(), []
    for t in range(encoder.columns):
        released = np.flatnonzero(encoder.row_rounds <= t)
        row = np.zeros(encoder.rows)
        covered = 0  # from the left, always the longest node that starts here and is released
        while covered <= t:
            fits = [r for r in released if C[r, covered] and not C[r, :covered].any()]
            best = max(fits, key=lambda r: C[r].sum())
            row[best], covered = 1.0, covered + int(C[best].sum())
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("shape", SHAPES)
@each(TREES)
def test_the_stream_of_a_tree_sums_to_the_noise_of_its_prefix_sums(encoder, shape):
    """[M-tree] Prefix t has the noise of its dyadic nodes."""
    noise = np.array(list(matrices.noise_stream(encoder, shape, 0.7, 3)))
    wanted = np.tensordot(decoder_rows(encoder), fresh(encoder, shape, 0.7, 3), 1)
    assert np.cumsum(noise, axis=0) == pytest.approx(wanted, abs=1e-12)


@each(STREAMS | TREES)
def test_a_run_can_stop_and_go_on_with_identical_numbers(encoder):
    whole = list(matrices.noise_stream(encoder, (2,), 1.0, seed=11))
    for stop in {0, 1, encoder.columns // 2, encoder.columns}:
        first = matrices.noise_stream(encoder, (2,), 1.0, seed=11)
        start = [next(first) for _ in range(stop)]
        state = pickle.loads(pickle.dumps(first.state()))
        list(first)  # the state is a copy: going on does not change it
        later = matrices.noise_stream(encoder, (2,), 1.0, seed=999)
        later.restore(state)
        assert later.round == stop
        assert all(np.array_equal(a, b) for a, b in zip(start + list(later), whole, strict=True))


@pytest.mark.parametrize(
    "encoder, memory",
    [
        (matrices.identity(100), 0),
        (matrices.optimal_counting(100, bands=8), 7),
        (matrices.buffered_linear_toeplitz(100, [0.1] * 3, [0.5] * 3), 3),
        (matrices.binary_tree(1024), 12),
        (matrices.tree_restarts(128, 8), 5),
        (matrices.scaled(matrices.optimal_counting(100, bands=8), np.ones(100)), 7),
        (ENCODERS["dense"], 7),
    ],
)
def test_memory_is_what_the_structure_allows(encoder, memory):
    stream = matrices.noise_stream(encoder, (4,), 1.0, 0)
    next(stream)
    assert stream.memory_rows == memory
    assert sum(np.size(v) for v in stream.state().values() if isinstance(v, np.ndarray)) == 4 * memory


TREE, BANDED = ENCODERS["tree"], ENCODERS["banded"]
OTHER_STREAMS = [
    ((TREE, (2,), 1.0, 0), "encoder"),
    ((ENCODERS["scaled bands"], (2,), 1.0, 0), "encoder"),
    ((BANDED, (3,), 1.0, 0), "shape"),
    ((BANDED, (2,), 2.0, 0), "noise_multiplier"),
    ((matrices.optimal_counting(11, bands=3), (2,), 1.0, 0), "rounds = 11"),
    ((matrices.optimal_counting(10, bands=4), (2,), 1.0, 0), "encoder"),
]


@pytest.mark.parametrize("other, words", OTHER_STREAMS)
def test_a_state_of_another_stream_is_refused(other, words):
    with pytest.raises((TypeError, ValueError), match=f"state must .*{words}"):
        matrices.noise_stream(*other).restore(matrices.noise_stream(BANDED, (2,), 1.0, 0).state())


def test_a_spoiled_state_is_refused():
    stream = matrices.noise_stream(BANDED, (2,), 1.0, 0)
    state = stream.state()
    for bad in (None, {}, {**state, "round": 99}, {k: v for k, v in state.items() if k != "memory"}):
        with pytest.raises((TypeError, ValueError), match="^state"):
            stream.restore(bad)
