"""Many mixtures on one set of shifts: losses against 40 digits, bounds on errors, and the lattice's answers."""


import mpmath
import numpy as np
import pytest

from dplib import contour, lattice, mixtures
from dplib.accounting.contour_nodes import Family, Nodes, nodes_for

EPS = np.finfo(float).eps


def rows(rounds, noise, grid=40, rate=None):
    """Laws of sums of Bernoulli entries, rounded up to a grid: the rows of a counting encoder."""
    rate = 1 / rounds if rate is None else rate
    entries = np.cumprod(np.append(1.0, 1 - 1 / (2 * np.arange(1, rounds))))
    step = 5.0 / (grid - 1)
    law, out = np.eye(1, grid)[0], []
    for places in np.ceil(entries / step - 1e-12).astype(int):
        moved = rate * law
        law = law - moved
        law[places:] += moved[:-places]
        law[-1] += moved[-places:].sum()
        out.append(mixtures.Mixture(step * np.arange(grid), law / law.sum(), noise))
    return out


# ------------------------------------------------- values, against 40 digits


def exact_log_ratio(mixture, u):
    u = mpmath.mpmathify(u)
    pairs = zip(mixture.shifts.tolist(), mixture.probabilities.tolist())
    terms = [mpmath.mpf(p) * mpmath.exp(mpmath.mpf(a) * u - mpmath.mpf(a) ** 2 / 2) for a, p in pairs]
    return mpmath.log(mpmath.fsum(terms) / mpmath.fsum(mixture.probabilities.tolist()))


@pytest.mark.parametrize("noise", [0.9, 4.0, 30.0])
@pytest.mark.parametrize("rate", [None, 0.8])
def test_losses_stay_within_their_allowance(noise, rate):
    """The matrix product's losses in 40 digits, for small losses, large ones and ratios near zero."""
    some = rows(12, noise, rate=rate)
    family = Family(some, [1] * len(some), 1)
    u = np.linspace(-14, 20, 18)
    assert family._tabulates(u)
    base, loss, (slope,) = family.evaluate(u)
    base_error, loss_error = family.rounding(u, base, loss, (slope,))
    with mpmath.workdps(40):
        for i in (0, 3, 11):
            for j in range(len(u)):
                truth = exact_log_ratio(some[i], u[j])
                error = abs(float(truth - mpmath.mpf(loss[i, j])))
                assert error <= 0.5 * loss_error[i, j]
                assert loss_error[i, j] <= 2000 * EPS * (1 + abs(loss[i, j]) + slope[i, j] * abs(u[j]))
                density = truth - mpmath.mpf(u[j]) ** 2 / 2 - mpmath.log(2 * mpmath.pi) / 2
                assert abs(float(density - mpmath.mpf(base[i, j]))) <= 0.5 * base_error[i, j]


@pytest.mark.parametrize("noise", [0.9, 4.0, 30.0])
def test_beside_the_axis_they_stay_within_theirs(noise):
    """What the matrix product's loss gains from u to u + ia, in 40 digits, also where that is tiny."""
    some = rows(12, noise)
    family = Family(some, [1] * len(some), 1)
    u, heights = np.linspace(-14, 20, 6), np.geomspace(1e-6, 0.7, 12)[:, None] / family.shift.max()
    _, slope = family.log_ratio_and_slope(u)
    gain = family.turned(0.0, u, heights)[1]
    with mpmath.workdps(40):
        for i in (0, 6, 11):
            a = float(heights[i, 0])
            for j, at in enumerate(u):
                truth = complex(exact_log_ratio(some[i], complex(at, a)) - exact_log_ratio(some[i], at))
                terms = 8 + family.terms + family.shift[i] * (abs(at) + family.shift[i])
                assert abs(gain[i, j] - truth) <= EPS * a * slope[i, j] * terms  # half of the allowance


# ------------------------------------------------------------------- bounds


@pytest.mark.parametrize("sign", [1, -1])
def test_quadrature_bounds_are_not_vacuous(sign):
    """[A-3] Too coarse a grid: the true error is visible in every row, and the bound covers it."""
    some = rows(6, 1.2, rate=0.3)
    family = Family(some, [1] * len(some), sign)
    fine = nodes_for(family, 1.5, 1.5, 1.5, 1.0)
    low, high = family.window(1.5, 1.5)
    largest = np.zeros(len(some))
    for step in (2.2, 1.5, 1.1):
        coarse = Nodes(family, 1.5, low, step, int((high - low) / step) + 2)
        error = np.abs(np.expm1(coarse.log_moment - fine.log_moment))
        largest = np.maximum(largest, error)
        assert np.all(error <= coarse.quadrature.error(0.0))
    assert np.all(largest > 1e-6)


# ---------------------------------------------------------------- compositions


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_together_and_by_the_lattice(direction):
    parts = [(mixture, 40) for mixture in rows(4, 3.0, rate=0.2)]
    ours = contour.side_epsilon(parts, 1e-5, direction)
    theirs = lattice.side_epsilon(parts, 1e-5, direction, 1e-4)
    assert theirs.lower <= ours.upper and ours.lower <= theirs.upper
    assert theirs.relative_width < 1e-2
