"""Encoders: every structured operation against dense linear algebra, closed forms, and bad input."""

import math

import numpy as np
import pytest
from encoders import ENCODERS, LOWER, SQUARE, TALL, TREES, each

from dplib import matrices

NAN = math.nan
RNG = np.random.default_rng(20240301)


# --- operations against the dense matrix -------------------------------------------------------------------


@each(ENCODERS)
@pytest.mark.parametrize("trailing", [(), (3,), (2, 2), (0,)])
def test_multiply_and_solve_are_those_of_the_dense_matrix(encoder, trailing):
    C = encoder.entries()
    x, y = RNG.normal(size=(encoder.columns, *trailing)), RNG.normal(size=(encoder.rows, *trailing))
    kept = x.copy(), y.copy()
    wanted = np.tensordot(np.linalg.pinv(C), y, 1)
    assert encoder.multiply(x) == pytest.approx(np.tensordot(C, x, 1), abs=1e-13)
    assert encoder.solve(y) == pytest.approx(wanted, rel=1e-11, abs=1e-11)
    assert np.all(x == kept[0]) and np.all(y == kept[1])


@each(ENCODERS)
def test_inner_products_are_those_of_the_dense_matrix(encoder):
    C = encoder.entries()
    gram = C.T @ C
    assert C.shape == (encoder.rows, encoder.columns)
    assert encoder.gram() == pytest.approx(gram, rel=1e-13)
    assert encoder.column_norms() == pytest.approx(np.linalg.norm(C, axis=0), rel=1e-13)
    for lag in range(encoder.columns):
        assert encoder.gram_diagonal(lag) == pytest.approx(np.diag(gram, lag), rel=1e-13)


@each(ENCODERS)
def test_rows_are_released_in_order_and_use_no_later_round(encoder):
    """[M-0] Causality: what makes adaptive contributions safe."""
    rounds = encoder.row_rounds
    assert rounds.shape == (encoder.rows,) and np.all(np.diff(rounds) >= 0)
    assert np.all(encoder.entries()[np.arange(encoder.columns) > rounds[:, None]] == 0)


def test_encoders_keep_their_numbers_when_the_caller_changes_his():
    column, array = np.array([1.0, 0.5]), LOWER.copy()
    encoders = matrices.toeplitz(column), matrices.dense(array)
    column[0], array[0, 0] = 9.0, 9.0
    assert encoders[0].coefficients[0] == 1.0 and encoders[1].array[0, 0] == LOWER[0, 0]
    encoders[1].entries()[0, 0] = 9.0
    assert encoders[1].array[0, 0] == LOWER[0, 0]


@each(SQUARE)
def test_inverse_coefficients_are_the_first_column_of_the_inverse(encoder):
    if not isinstance(encoder, matrices.Toeplitz):
        return
    wanted = np.linalg.inv(encoder.entries())[:, 0]
    assert encoder.inverse_coefficients == pytest.approx(wanted, rel=1e-12, abs=1e-13)
    assert encoder.prefix_coefficients == pytest.approx(np.cumsum(wanted), rel=1e-12, abs=1e-13)


# --- buffered linear Toeplitz ------------------------------------------------------------------------------


def test_an_inverse_that_grows_is_told_only_when_it_is_asked_for():
    encoder = matrices.buffered_linear_toeplitz(3000, [5.0], [0.5])
    assert encoder.column_norms()[0] > 1 and encoder.inverse_decay[0] == pytest.approx(-4.5)
    with pytest.raises(ValueError, match="encoder must have an inverse within the range of floats"):
        _ = encoder.inverse_coefficients
    growing = matrices.toeplitz([1.0, 9.0] + [0.0] * 998)
    for attempt in (
        lambda: encoder.solve(np.ones(3000)),
        lambda: growing.inverse_coefficients,
        lambda: growing.solve(np.ones(1000)),
    ):
        with pytest.raises(ValueError, match="encoder must have an inverse within the range of floats"):
            attempt()


def test_a_badly_conditioned_series_is_refused_instead_of_solved_badly():
    """A substitution is exact enough up to 2048 rounds; by transforms the early rounds would drown."""
    column = np.concatenate([[1.0, 1.01], np.full(3000, 1e-9)])
    with pytest.raises(ValueError, match=r"condition number of at most 1e\+09 .* beyond 2048 rounds and 64 bands; got"):
        matrices.toeplitz(column).solve(np.ones(3002))
    short = matrices.toeplitz(column[:2000])
    x = np.random.default_rng(0).normal(size=2000)
    assert short.multiply(short.solve(x)) == pytest.approx(x, abs=1e-6)


# --- trees -------------------------------------------------------------------------------------------------


@each(TREES)
def test_children_stand_before_their_parents(encoder):
    """[M-tree] A node's rounds are those of two earlier rows; column norms are sqrt(height + 1)."""
    C = encoder.entries()
    assert np.all(C.sum(axis=1) == 2.0**encoder.row_heights)
    for row in np.flatnonzero(encoder.row_heights):
        below = [r for r in range(row) if encoder.row_heights[r] == encoder.row_heights[row] - 1 and C[r] @ C[row]]
        assert len(below) == 2 and np.all(C[below].sum(axis=0) == C[row])
    assert np.all(encoder.column_norms() == math.sqrt(math.log2(encoder.leaves) + 1))


# --- large and badly scaled --------------------------------------------------------------------------------

LARGE = 131_072


@pytest.mark.parametrize(
    "build",
    [
        lambda: matrices.identity(LARGE),
        lambda: matrices.optimal_counting(LARGE),
        lambda: matrices.optimal_counting(LARGE, bands=100),
        lambda: matrices.optimal_counting(LARGE, bands=32),
        lambda: matrices.toeplitz(matrices.optimal_counting(LARGE).coefficients),
        lambda: matrices.buffered_linear_toeplitz(LARGE, [0.3, 0.2, 0.01], [0.9, 0.5, 0.9999]),
        lambda: matrices.binary_tree(LARGE),
        lambda: matrices.tree_restarts(LARGE, 512),
    ],
)
def test_structured_encoders_need_no_dense_matrix(build):
    """Solving undoes multiplying to 1e-13 at 131,072 rounds; a dense matrix would take 128 GiB."""
    encoder = build()
    x = np.random.default_rng(1).normal(size=encoder.columns)
    assert np.max(np.abs(encoder.solve(encoder.multiply(x)) - x)) < 1e-13
    norms = encoder.column_norms()
    for place in (0, 777, LARGE - 1):
        column = encoder.multiply(np.eye(1, LARGE, place)[0])
        assert norms[place] == pytest.approx(np.linalg.norm(column), rel=1e-12)
    neighbour = encoder.multiply(np.eye(1, LARGE, 3)[0]) @ encoder.multiply(np.eye(1, LARGE, 0)[0])
    assert encoder.gram_diagonal(3)[0] == pytest.approx(neighbour, rel=1e-10, abs=1e-12)
    for dense in (encoder.entries, encoder.gram):
        with pytest.raises(ValueError, match=r"at most 268435456 entries \(2 GiB\)"):
            dense()


# --- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, build, value",
    [
        ("coefficients", matrices.toeplitz, [0.0, 1.0]),
        ("coefficients", matrices.toeplitz, [1.0, -1e-9]),
        ("coefficients", matrices.toeplitz, [1e-200]),
        ("coefficients", lambda v: matrices.toeplitz(v, signed=True), [-1.0, 0.5]),
        ("output_scale", lambda v: matrices.buffered_linear_toeplitz(5, v, [0.5]), [1e101]),
        ("buffer_decay", lambda v: matrices.buffered_linear_toeplitz(5, [0.5], v), [0.5, 0.5]),
        ("leaves", lambda v: matrices.tree_restarts(8, v), 16),
        ("leaves", lambda v: matrices.tree_restarts(10, v), 4),
        ("lag", ENCODERS["tree"].gram_diagonal, 8),
        ("x", ENCODERS["counting"].multiply, np.zeros(9)),
        ("x", ENCODERS["counting"].multiply, [NAN] * 10),
        ("y", ENCODERS["tree"].solve, np.zeros(8)),
        ("y", ENCODERS["buffers"].solve, [[1.0], [1.0, 2.0]]),
    ],
)
def test_bad_arguments_are_refused_by_name(name, build, value):
    with pytest.raises(ValueError, match=rf"^{name} must "):
        build(value)


@pytest.mark.parametrize(
    "array, options, words",
    [
        (np.ones((2, 3)), {}, r"array must be square; got shape \(2, 3\) .*row_rounds"),
        (np.ones((2, 2)), {}, "array must be lower-triangular, .* row 0 uses round 1"),
        ([[1.0, 0.0], [1.0, 0.0]], {}, "array must have a diagonal above 0; got 0.0 in row 1"),
        ([[1.0, 0.0], [-0.5, 1.0]], {}, "array must have entries at least 0; got -0.5"),
        ([[1.0, 0.0], [1.0, -1.0]], {"signed": True}, "array must have a diagonal above 0; got -1.0 in row 1"),
        ([[1e101]], {}, r"array must have entries at most 1e\+100; got 1e\+101"),
        (TALL, {"row_rounds": [0, 1, 1, 2]}, r"row_rounds must have one entry per row \(5\); got 4"),
        (TALL, {"row_rounds": [0, 1, 1, 2, 1]}, "row_rounds must be whole numbers from 0 to 2 that never decrease"),
        (TALL, {"row_rounds": [0, 1, 1, 2, 3]}, "row_rounds must be whole numbers from 0 to 2"),
        (TALL, {"row_rounds": [0, 1, 1.5, 2, 2]}, "row_rounds must be whole numbers from 0 to 2"),
        (TALL, {"row_rounds": [0, 0, 1, 2, 2]}, "at least every round that the row uses: row 1 uses round 1, got 0"),
        ([[1.0, 0.0]], {"row_rounds": [1]}, "array must have an entry above 0 in every column; column 1 has none"),
    ],
)
def test_bad_dense_encoders_are_refused_with_the_reason(array, options, words):
    with pytest.raises(ValueError, match=words):
        matrices.dense(array, **options)


def test_release_rounds_allow_other_orders_than_triangular():
    """A tree listed from the root is fine when everything is released at the end."""
    upside_down = matrices.dense(matrices.binary_tree(4).entries()[::-1], row_rounds=[3] * 7)
    y = RNG.normal(size=7)
    assert upside_down.solve(y[::-1]) == pytest.approx(matrices.binary_tree(4).solve(y), abs=1e-13)
    square = matrices.dense([[1.0, 1.0], [0.0, 1.0]], row_rounds=[1, 1])
    assert not square.is_triangular and square.solve([1.0, 1.0]) == pytest.approx([0.0, 1.0], abs=1e-15)
