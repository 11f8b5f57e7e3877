"""Vector mixtures: the reduction to norms, the Gram matrix, and stochastic dominance, as properties.

Tags: [G-2.9] vector to scalar, [M-B] B.5, [M-K] Gram matrix, [C-3] orders, [C-9m] directions. The orders of divergences
on random instances are in `test_domination.py`.
Values in the plane come from `VectorMixture.hockey_stick`, a quadrature; `TOLERANCE` covers its error
for the ranges drawn here, and `test_quadrature_error` checks that it does.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from property_cases import examples

from dplib import gaussian, mixtures
from dplib.mixtures import Mixture, VectorMixture

EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 2.0])
DIRECTIONS = ("remove", "add")
TOLERANCE = 2e-4

PROPERTIES = examples(15)

NUMBER = st.floats(-1.5, 1.5).map(lambda v: round(v, 3))
SIZE = st.floats(0, 1.5).map(lambda v: round(v, 3))
NOISE = st.floats(0.6, 2.0).map(lambda v: round(v, 3))


@st.composite
def laws(draw, count):
    """`count` positive probabilities that sum to one."""
    weights = np.array(draw(st.lists(st.integers(1, 20), min_size=count, max_size=count)), float)
    return weights / weights.sum()


@st.composite
def planar(draw):
    """A planar mixture with 1 to 4 modes."""
    count = draw(st.integers(1, 4))
    modes = draw(st.lists(st.tuples(NUMBER, NUMBER), min_size=count, max_size=count))
    return VectorMixture(np.array(modes), draw(laws(count)), draw(NOISE))


@st.composite
def scalars(draw, most=5):
    """(sensitivities, probabilities, noise multiplier) of a scalar mixture."""
    count = draw(st.integers(1, most))
    s = np.array(draw(st.lists(SIZE, min_size=count, max_size=count)))
    return s, draw(laws(count)), draw(NOISE)


def below(lower, upper, tolerance=TOLERANCE):
    """Is the first pair's hockey stick at most the second's, in both directions?"""
    for direction in DIRECTIONS:
        low, high = lower.hockey_stick(EPSILONS, direction), upper.hockey_stick(EPSILONS, direction)
        if not np.all(low <= high + tolerance):
            return False
    return True


def equal(first, second, tolerance=TOLERANCE):
    return below(first, second, tolerance) and below(second, first, tolerance)


def turned(modes, angle, mirror=False):
    c, s = math.cos(angle), math.sin(angle)
    rotation = np.array([[c, s], [-s, c]])
    return modes @ (rotation * ([1, -1] if mirror else [1, 1]))


# --- the quadrature itself ------------------------------------------------------------------------


@PROPERTIES
@given(scalars(), st.floats(0, 2 * math.pi))
def test_quadrature_error(scalar, angle):
    """Modes on one ray have the closed form of their norms, whatever the angle of the ray [M-K]."""
    s, p, noise = scalar
    ray = np.outer(s, [math.cos(angle), math.sin(angle)])
    assert equal(VectorMixture(ray, p, noise), Mixture(s, p, noise))


# --- the reduction ---------------------------------------------------------------------------------


@PROPERTIES
@given(planar(), st.floats(0.05, 4))
def test_split_threshold_lemma(mixture, level):
    """[M-B: B.5] with its closed gap: levels above and below the weight of the zero mode."""
    modes = np.vstack([mixture.modes, [[0.0, 0.0]]])
    p = np.append(mixture.probabilities / 2, 0.5)
    epsilon = math.log(level)
    vector = VectorMixture(modes, p, 1.0)
    plane, line = vector.hockey_stick(epsilon), vector.reduced().hockey_stick(epsilon)
    assert plane <= line + TOLERANCE
    if level < 0.5:  # no crossing: both sides are linear
        assert plane == pytest.approx(1 - level, abs=1e-6) and line == pytest.approx(1 - level, abs=1e-12)


# --- the Gram matrix -------------------------------------------------------------------------------


@PROPERTIES
@given(planar(), st.floats(0, 2 * math.pi), st.booleans())
def test_only_the_gram_matrix_matters(mixture, angle, mirror):
    """[M-K] Rotations and reflections leave the Gram matrix, and so the divergences, alone."""
    other = VectorMixture(
        turned(mixture.modes, angle, mirror), mixture.probabilities, mixture.noise_multiplier
    )
    assert np.allclose(other.gram(), mixture.gram(), rtol=0, atol=1e-12)
    assert equal(mixture, other)


# --- monotonicity and stochastic order ---------------------------------------------------------------


@PROPERTIES
@given(scalars(), scalars())
def test_dominates_is_the_order_of_the_tails(first, second):
    (s, p, noise), (t, r, _) = first, second
    lower, upper = Mixture(s, p, noise), Mixture(t, r, noise)
    points = np.union1d(s, t)
    gaps = [r[t >= x].sum() - p[s >= x].sum() for x in points]
    assume(all(abs(gap) > 1e-12 for gap in gaps[1:]))
    assert mixtures.dominates(upper, lower) == all(gap > -1e-12 for gap in gaps)


# --- what breaks without the hypotheses ---------------------------------------------------------------


def test_one_direction_on_non_negative_epsilon_is_not_domination():
    """[C-3] needs all orders: larger in remove for every epsilon >= 0, yet smaller in add."""
    spread, small = Mixture([0.0, 2.0], [0.5, 0.5], 1.0), Mixture([0.6], [1.0], 1.0)
    grid = np.linspace(0, 6, 61)
    assert np.all(spread.hockey_stick(grid) > small.hockey_stick(grid))
    assert np.all(spread.hockey_stick(grid, "add")[5:] < small.hockey_stick(grid, "add")[5:])


# --- three dimensions, coordinates of either sign ---------------------------------------------------------

IN_SPACE = 1e-4  # error of the sums below: halving the step changes them by less than a quarter of it


def in_space(modes, probabilities, direction, step=0.15):
    """Divergences at EPSILONS of a mixture in space with unit noise, by a sum over a grid of all three coordinates."""
    axis = np.arange(-8, 8 + step / 2, step)
    bell = step * np.exp(-axis * axis / 2) / math.sqrt(2 * math.pi)
    mass = bell[:, None, None] * bell[:, None] * bell
    ratio = np.zeros_like(mass)
    for mode, weight in zip(np.asarray(modes, float), probabilities):
        x, y, z = np.exp(np.multiply.outer(mode, axis) - mode[:, None] ** 2 / 2)
        ratio += weight * x[:, None, None] * y[:, None] * z
    first, second = (ratio, 1.0) if direction == "remove" else (1.0, ratio)
    return np.array([(mass * np.maximum(first - math.exp(e) * second, 0)).sum() for e in EPSILONS])


def mixture_in_space(seed):
    """Three to five modes around the origin, which no turn makes non-negative."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 6))
    modes, p = rng.normal(size=(count, 3)) * rng.uniform(0.4, 1), rng.dirichlet(np.full(count, 3.0))
    return rng, modes - p @ modes + 0.2 * rng.normal(size=3), p


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sums_over_space(direction):
    """One mode, which has a closed form."""
    exact = [gaussian.delta(1.0, epsilon) for epsilon in EPSILONS]
    assert np.allclose(in_space([[0.6, 0.0, 0.8]], [1.0], direction), exact, rtol=0, atol=IN_SPACE)


@pytest.mark.parametrize("seed", range(8))
def test_signed_mixtures_in_space(seed):
    """[G-2.9], [C-9m], [C-7] Norms dominate strictly, add is at most remove, and hiding the mode does not hurt."""
    _, modes, p = mixture_in_space(seed)
    gram = modes @ modes.T
    assert np.min(gram) < -0.02
    remove, add = (in_space(modes, p, direction) for direction in DIRECTIONS)
    assert np.all(add <= remove + IN_SPACE) and add[2] < remove[2] - 20 * IN_SPACE
    norms = Mixture(np.linalg.norm(modes, axis=1), p, 1.0)
    known = np.array([p @ [gaussian.delta(norm, e) for norm in np.linalg.norm(modes, axis=1)] for e in EPSILONS])
    for direction, value in zip(DIRECTIONS, (remove, add)):
        assert np.all(value <= norms.hockey_stick(EPSILONS, direction) + IN_SPACE)
        assert np.all(value <= known + IN_SPACE)
        # Without its signs the mixture is a larger one: the bound is not idle, and the signs matter.
        assert value[1] < 0.9 * in_space(np.abs(modes), p, direction)[1]


# --- bad input ------------------------------------------------------------------------------------------


def test_quadrature_refuses_three_dimensions_but_the_reduction_does_not():
    space = VectorMixture([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], [0.5, 0.5], 1.0)
    assert space.reduced().sensitivities.tolist() == [0.0, 3.0]
    with pytest.raises(ValueError, match="modes"):
        space.hockey_stick(0.0)


@pytest.mark.parametrize("norm, epsilon, close", [(2, 1.13, 2e-4), (20, 200.0, 2e-3), (38, 722.0, 2e-3)])
def test_long_modes_by_the_closed_form(norm, epsilon, close):
    pair = VectorMixture([[norm, 0.0]], [1.0], 1.0)
    for direction in ("remove", "add"):
        assert abs(pair.hockey_stick(epsilon, direction) - gaussian.delta(norm, epsilon)) < close
