"""Encoders: every structured operation against dense linear algebra, closed forms, and bad input."""

import dataclasses
import math

import numpy as np
import pytest

import dplib
from dplib import matrices

NAN, INF = math.nan, math.inf
RNG = np.random.default_rng(20240229)
LOWER = np.tril(RNG.random((7, 7)) + 0.1)
TALL = np.array([[1.0, 0, 0], [1, 2, 0], [0, 0.5, 0], [1, 1, 1], [0, 0, 3]])

ENCODERS = {
    "identity": matrices.identity(8),
    "one round": matrices.identity(1),
    "gaps": matrices.toeplitz([2.0, 0.5, 0.0, 1.0, 0.0, 0.0]),
    "rising": matrices.toeplitz([1.0, 2.0, 3.0, 0.1]),
    "all ones": matrices.toeplitz(np.ones(9)),
    "counting": matrices.optimal_counting(11),
    "banded": matrices.optimal_counting(11, bands=4),
    "buffers": matrices.buffered_linear_toeplitz(12, [0.3, 0.2, 0.1], [0.9, 0.9, 0.2]),
    "one buffer": matrices.buffered_linear_toeplitz(6, [1.5], [0.0]),
    "leaf": matrices.binary_tree(1),
    "tree": matrices.binary_tree(16),
    "restarts": matrices.tree_restarts(12, 4),
    "dense": matrices.dense(LOWER),
    "tall": matrices.dense(TALL, row_rounds=[0, 1, 1, 2, 2]),
}
SQUARE = {name: e for name, e in ENCODERS.items() if e.rows == e.columns}
TREES = {name: e for name, e in ENCODERS.items() if isinstance(e, matrices.Tree)}


def each(encoders):
    return pytest.mark.parametrize("encoder", encoders.values(), ids=encoders.keys())


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


@each(ENCODERS)
def test_encoders_are_frozen(encoder):
    with pytest.raises(ValueError):
        encoder.row_rounds[0] = 5
    for field in dataclasses.fields(encoder):
        value = getattr(encoder, field.name)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(encoder, field.name, value)
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable


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


def test_names_say_the_size():
    assert repr(matrices.binary_tree(4)) == "Tree(7 x 4)"
    assert repr(matrices.optimal_counting(5, bands=2)) == "Toeplitz(5 x 5)"


# --- optimal counting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 8, 300])
def test_the_counting_encoder_is_the_square_root_of_the_prefix_sums(n):
    """[M-E] C C = A, and the coefficients are binom(2k, k) / 4^k."""
    encoder = matrices.optimal_counting(n)
    C = encoder.entries()
    assert C @ C == pytest.approx(np.tri(n), abs=1e-13)
    exact = [math.comb(2 * k, k) / 4**k for k in range(n)]
    assert encoder.coefficients == pytest.approx(exact, rel=1e-14)


def test_the_norm_of_the_counting_encoder_grows_like_a_logarithm():
    """[M-E] The squared norm of the first column is (ln n + gamma + 4 ln 2) / pi, up to 1/n."""
    assert matrices.optimal_counting(4096).column_norms()[0] ** 2 == pytest.approx(3.7139, abs=5e-5)
    for n in (10, 1000, 100_000):
        square = matrices.optimal_counting(n).column_norms()[0] ** 2
        assert square == pytest.approx((math.log(n) + np.euler_gamma + 4 * math.log(2)) / math.pi, abs=0.3 / n)


def test_bands_cut_the_column():
    full, banded = matrices.optimal_counting(9), matrices.optimal_counting(9, bands=3)
    assert banded.bands == 3 and np.all(banded.coefficients[:3] == full.coefficients[:3])
    assert np.all(banded.coefficients[3:] == 0) and full.bands == 9
    assert matrices.optimal_counting(9, bands=9).prefix_coefficients is not None


# --- buffered linear Toeplitz ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_inverse_of_buffers_is_of_the_same_form(seed):
    """[N-BLT] The decays of the inverse are reciprocal roots of the numerator polynomial."""
    rng = np.random.default_rng(seed)
    scale, decay = rng.uniform(0, 0.4, 3), rng.uniform(0, 1, 3)
    encoder = matrices.buffered_linear_toeplitz(40, scale, decay)
    powers = np.arange(39)[:, None]
    column = np.concatenate([[1.0], (encoder.inverse_scale * encoder.inverse_decay**powers).sum(axis=1)])
    assert encoder.inverse_coefficients == pytest.approx(column, abs=1e-15)
    product = np.polynomial.polynomial.polymul(encoder.coefficients, column)[:40]
    assert product == pytest.approx(np.eye(40)[0], abs=1e-13)
    # prod (1 - decay x) + sum scale x prod_{others} (1 - decay x), read as a polynomial in 1/x.
    factors = np.array([[1.0, -d] for d in decay])
    multiply = lambda parts: np.array([1.0]) if not len(parts) else np.convolve(parts[0], multiply(parts[1:]))
    numerator = multiply(factors)
    for k in range(3):
        numerator[1:] += scale[k] * multiply(np.delete(factors, k, axis=0))
    roots = np.sort(np.roots(numerator).real)
    assert np.sort(encoder.inverse_decay) == pytest.approx(roots, abs=1e-7)
    assert np.all(encoder.inverse_scale <= 0)


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


def test_long_series_are_solved_as_well_as_by_substitution():
    n = 3000
    age = np.arange(n)
    for column in (np.ones(n), 1.0 * (age < 100), (1.0 + age) ** -0.9, 0.999**age, np.sort(RNG.random(n))[::-1] + 0.01):
        encoder, y = matrices.toeplitz(column), RNG.normal(size=n)
        x = encoder.solve(y)
        error = np.max(np.abs(encoder.multiply(x) - y))
        assert error < 1e-15 * np.sum(column) * np.sum(np.abs(encoder.inverse_coefficients)) * np.max(np.abs(y))


# --- trees -------------------------------------------------------------------------------------------------


def test_the_smallest_trees_by_hand():
    """[M-tree] Rows in causal order: the nodes that end with a round, lower ones first."""
    assert np.all(
        matrices.binary_tree(4).entries()
        == [
            [1, 0, 0, 0],
            [0, 1, 0, 0],
            [1, 1, 0, 0],
            [0, 0, 1, 0],
            [0, 0, 0, 1],
            [0, 0, 1, 1],
            [1, 1, 1, 1],
        ]
    )
    assert matrices.binary_tree(4).row_rounds.tolist() == [0, 1, 1, 2, 3, 3, 3]
    assert matrices.binary_tree(4).row_heights.tolist() == [0, 0, 1, 0, 0, 1, 2]
    assert matrices.binary_tree(1).entries().tolist() == [[1.0]]


@each(TREES)
def test_children_stand_before_their_parents(encoder):
    """[M-tree] A node's rounds are those of two earlier rows; column norms are sqrt(height + 1)."""
    C = encoder.entries()
    assert np.all(C.sum(axis=1) == 2.0**encoder.row_heights)
    for row in np.flatnonzero(encoder.row_heights):
        below = [r for r in range(row) if encoder.row_heights[r] == encoder.row_heights[row] - 1 and C[r] @ C[row]]
        assert len(below) == 2 and np.all(C[below].sum(axis=0) == C[row])
    assert np.all(encoder.column_norms() == math.sqrt(math.log2(encoder.leaves) + 1))


def test_restarts_are_blocks_of_one_tree():
    one, many = matrices.binary_tree(4).entries(), matrices.tree_restarts(12, 4)
    assert np.all(many.entries() == np.kron(np.eye(3), one)) and many.trees == 3 and many.leaves == 4
    assert np.all(matrices.tree_restarts(8, 8).entries() == matrices.binary_tree(8).entries())


def test_leaves_that_do_not_divide_the_rounds():
    with pytest.raises(ValueError, match=r"leaves must divide rounds \(10\).*; got 4"):
        matrices.tree_restarts(10, 4)


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


@pytest.mark.parametrize("n", [2049, 5000])
def test_two_ways_to_invert_a_series_agree(n):
    """Newton's doubling against the closed form, and against substitution."""
    closed = matrices.optimal_counting(n).inverse_coefficients
    series = matrices.toeplitz(matrices.optimal_counting(n).coefficients).inverse_coefficients
    assert series == pytest.approx(closed, abs=1e-15)
    slow = matrices.optimal_counting(n, bands=64)
    y = np.random.default_rng(2).normal(size=n)
    assert slow.solve(y)[:2048] == pytest.approx(matrices.optimal_counting(2048, bands=64).solve(y[:2048]), abs=1e-13)


# --- bad input ---------------------------------------------------------------------------------------------


def changed(place, value):
    array = LOWER.copy()
    array[place] = value
    return array


COUNTS = [(0, ValueError), (-1, ValueError), (1.5, ValueError), (NAN, ValueError), (10**20, ValueError)]
COUNTS += [("4", TypeError), (None, TypeError), (True, TypeError), ([4], TypeError)]
NUMBERS = [("1", TypeError), (None, TypeError), ([True], TypeError), ([1j], TypeError), ([], ValueError)]
NUMBERS += [([NAN], ValueError), ([INF], ValueError), ([[0.5, 0.5]], ValueError), (0.5, ValueError)]


@pytest.mark.parametrize(
    "name, build, rows",
    [
        ("n", matrices.identity, COUNTS),
        ("n", matrices.optimal_counting, COUNTS),
        ("bands", lambda v: matrices.optimal_counting(5, v), [row for row in COUNTS if row[0] is not None] + [(6, ValueError)]),
        ("coefficients", matrices.toeplitz, [*NUMBERS, ([0.0, 1.0], ValueError), ([1.0, -1e-9], ValueError), ([1e-200], ValueError), ([1e200], ValueError)]),
        ("n", lambda v: matrices.buffered_linear_toeplitz(v, [0.5], [0.5]), COUNTS),
        ("output_scale", lambda v: matrices.buffered_linear_toeplitz(5, v, [0.5]), [*NUMBERS, ([-0.1], ValueError), ([1e101], ValueError)]),
        ("buffer_decay", lambda v: matrices.buffered_linear_toeplitz(5, [0.5], v), [*NUMBERS, ([-0.1], ValueError), ([1.1], ValueError), ([0.5, 0.5], ValueError)]),
        ("leaves", matrices.binary_tree, [*COUNTS, (3, ValueError), (6.0, ValueError)]),
        ("rounds", lambda v: matrices.tree_restarts(v, 4), COUNTS),
        ("leaves", lambda v: matrices.tree_restarts(8, v), [*COUNTS, (3, ValueError), (16, ValueError)]),
        ("trees", lambda v: matrices.Tree(4, v), COUNTS),
        ("lag", ENCODERS["tree"].gram_diagonal, [row for row in COUNTS if row[0] != 0] + [(16, ValueError)]),
        ("x", ENCODERS["counting"].multiply, [(np.zeros(10), ValueError), (1.0, ValueError), ("x", TypeError), ([NAN] * 11, ValueError)]),
        ("y", ENCODERS["tree"].solve, [(np.zeros(16), ValueError), (None, TypeError)]),
        ("x", ENCODERS["dense"].multiply, [(np.zeros((1, 7)), ValueError)]),
        ("y", ENCODERS["buffers"].solve, [(np.zeros(0), ValueError), ([[1.0], [1.0, 2.0]], ValueError)]),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_by_name(name, build, rows):
    for value, error in rows:
        with pytest.raises(error, match=rf"^{name} must "):
            build(value)


@pytest.mark.parametrize(
    "array, row_rounds, words",
    [
        (np.ones((2, 3)), None, r"array must be square; got shape \(2, 3\) .*row_rounds"),
        (np.ones((3, 2)), None, r"array must be square; got shape \(3, 2\)"),
        (np.ones((2, 2)), None, "array must be lower-triangular; got 1.0 in row 0, column 1"),
        (changed((2, 2), 0.0), None, "array must have a diagonal above 0; got 0.0 in row 2"),
        (changed((4, 1), -0.5), None, "array must have entries at least 0; got -0.5"),
        (changed((4, 1), 1e101), None, r"array must have entries at most 1e\+100; got 1e\+101"),
        (changed((4, 1), NAN), None, "array must hold finite numbers; got nan"),
        (changed((4, 1), INF), None, "array must hold finite numbers; got inf"),
        ([1.0, 2.0], None, r"array must be a rectangular table; got shape \(2,\)"),
        ([[1.0], [1.0, 2.0]], None, "array must be a rectangular table.*ragged"),
        ([], None, "array must not be empty"),
        (TALL, [0, 1, 1, 2], r"row_rounds must have one entry per row \(5\); got 4"),
        (TALL, [0, 1, 1, 2, 1], "row_rounds must never decrease; got 2 before a smaller one"),
        (TALL, [0, 1, 1, 2, 3], "row_rounds must be at most 2; got 3.0"),
        (TALL, [0, 1, 1, 2, -1], "row_rounds must be at least 0; got -1.0"),
        (TALL, [0, 1, 1.5, 2, 2], "row_rounds must be whole numbers; got 1.5"),
        (TALL, [0, 0, 1, 2, 2], "row_rounds must be at least every round that the row uses; row 1 uses round 1, got 0"),
        ([[1.0, 0.0]], [1], "array must have an entry above 0 in every column; column 1 has none"),
        (-TALL, [0, 1, 1, 2, 2], "array must have entries at least 0; got -1.0"),
    ],
)  # fmt: skip
def test_bad_dense_encoders_are_refused_with_the_reason(array, row_rounds, words):
    with pytest.raises(ValueError, match=words):
        matrices.dense(array, row_rounds)


@pytest.mark.parametrize("array", ["ab", None, [[True]], [[1j]], [["1"]]])
def test_a_dense_encoder_holds_real_numbers(array):
    with pytest.raises(TypeError, match="array must be a rectangular table of real numbers"):
        matrices.dense(array)


def test_release_rounds_allow_other_orders_than_triangular():
    """A tree listed from the root is fine when everything is released at the end."""
    upside_down = matrices.dense(matrices.binary_tree(4).entries()[::-1], row_rounds=[3] * 7)
    y = RNG.normal(size=7)
    assert upside_down.solve(y[::-1]) == pytest.approx(matrices.binary_tree(4).solve(y), abs=1e-13)
    square = matrices.dense([[1.0, 1.0], [0.0, 1.0]], row_rounds=[1, 1])
    assert not square.is_triangular and square.solve([1.0, 1.0]) == pytest.approx([0.0, 1.0], abs=1e-15)


def test_an_encoder_without_left_inverse_can_be_released_but_not_solved():
    last_sum = matrices.dense(np.ones((1, 4)), row_rounds=[3])
    assert last_sum.column_norms() == pytest.approx(np.ones(4))
    with pytest.raises(ValueError, match=r"array must have full column rank \(4\) to be solved; got rank 1"):
        last_sum.solve([1.0])


def test_matrices_are_reached_through_their_module():
    assert "matrices" not in dplib.__all__ and all(hasattr(matrices, name) for name in matrices.__all__)


def test_numbers_beyond_floats_are_refused():
    with pytest.raises(TypeError, match="coefficients must be a flat list of real numbers"):
        matrices.toeplitz([1, 10**400])
    with pytest.raises(TypeError, match="array must be a rectangular table of real numbers"):
        matrices.dense([[10**400]])


def test_equal_encoders_compare_equal():
    makers = [
        lambda: matrices.identity(8),
        lambda: matrices.optimal_counting(8),
        lambda: matrices.binary_tree(8),
        lambda: matrices.toeplitz([1.0, 0.5]),
        lambda: matrices.dense(np.eye(3)),
    ]
    encoders = [make() for make in makers]
    for i, make in enumerate(makers):
        assert [make() == other for other in encoders] == [i == j for j in range(len(encoders))]
        assert hash(make()) == hash(encoders[i])
    assert matrices.toeplitz([1.0, 0.5]) != matrices.toeplitz([1.0, 0.4])
    assert matrices.identity(8) != "identity"
