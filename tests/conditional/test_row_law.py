"""Laws of row sensitivities: splitting atoms dominates, and what is left out is counted."""


import mpmath
import numpy as np
import pytest
from scipy import special, stats

from dplib.conditional import row_laws
from dplib.conditional.row_laws import RowLaws

# ------------------------------------------------------------------ sums


def survival(atoms, masses, sigma, t):
    return special.ndtr((np.asarray(atoms) - np.asarray(t)[:, None]) / sigma) @ np.asarray(masses)


def test_numbers_of_participations_dominate_their_convolution():
    """[A-10] Poisson and binomial numbers at entries off the grid, added to some of the rows only."""
    sigma, t = 1.5, np.linspace(-10, 25, 150)
    laws = RowLaws(3, 0.25, 120, sigma, 5.0)
    laws.add(1.0, row_laws.bernoulli_numbers([0.1]))
    laws.add(0.9, *row_laws.poisson_numbers(0.7, 1e-12), first=1)
    laws.add(0.37, *row_laws.binomial_numbers(9, 0.2, 1e-12), first=2, last=3)
    parts = [
        (1.0, np.array([0.9, 0.1])),
        (0.9, stats.poisson.pmf(np.arange(40), 0.7)),
        (0.37, stats.binom.pmf(np.arange(10), 9, 0.2)),
    ]
    atoms, masses = np.zeros(1), np.ones(1)
    for row, (value, numbers) in enumerate(parts):
        atoms = (atoms[:, None] + value * np.arange(len(numbers))).ravel()
        masses = np.outer(masses, numbers).ravel()
        bound = survival(0.25 * np.arange(121), laws.weights[row], sigma, t) + laws.overflow[row] + laws.shortfall[row]
        truth = survival(atoms, masses, sigma, t)
        assert np.all(bound >= truth - 1e-13) and np.all(bound <= truth + 0.03)


@pytest.mark.parametrize("trials, chance", [(50, 0.2), (400, 0.01), (7, 0.6), (2, 0.3)])
def test_numbers_that_are_left_out_are_counted(trials, chance):
    """Binomial and Poisson numbers that stop early, where what is left out is a few per cent."""
    numbers, beyond = row_laws.binomial_numbers(trials, chance, 0.1)
    kept = np.arange(numbers.shape[1])
    assert stats.binom.sf(kept[-1], trials, chance) <= beyond <= 0.1
    assert numbers[0] == pytest.approx(stats.binom.pmf(kept, trials, chance), rel=1e-8)
    numbers, beyond = row_laws.poisson_numbers([trials * chance, 0.1], 0.1)
    kept = np.arange(numbers.shape[1])
    for row, left_out, mean in zip(numbers, beyond, (trials * chance, 0.1)):
        assert stats.poisson.sf(kept[-1], mean) <= left_out <= 0.1
        assert row == pytest.approx(stats.poisson.pmf(kept, mean), rel=1e-8)


def test_no_mass_is_lost():
    """What is on the grid, and what is counted as beyond it, add up to 1: numbers left out, jumps beyond the top."""
    laws = RowLaws(2, 0.1, 12, 1.3, 8.0)
    numbers, beyond = row_laws.poisson_numbers([0.5, 2.0], 0.1)
    for value in (0.37, np.array([0.2, 0.55])):
        laws.add(value, numbers, beyond)
        assert laws.weights.sum(axis=1) + laws.overflow == pytest.approx([1, 1], abs=1e-12)
    assert np.all(laws.overflow > 0.5 * beyond)


def test_the_stated_error_covers_the_rounding_of_a_law():
    """200 coins at grid points, against the same sums of the same floats in 60 digits."""
    rng = np.random.default_rng(9)
    chances, size = rng.uniform(0.05, 0.6, 200), 120
    laws = RowLaws(1, 1.0, size, 3.0, 6.0)
    with mpmath.workdps(60):
        exact = [mpmath.mpf(1)] + [mpmath.mpf(0)] * size
        for chance in chances:
            laws.add(1.0, row_laws.bernoulli_numbers([chance]))
            p = mpmath.mpf(float(chance))
            exact = [(1 - p) * old + p * below for old, below in zip(exact, [mpmath.mpf(0), *exact])]
        logs = [mpmath.log(value / mpmath.fsum(exact)) for value in exact]
    [mixture] = laws.mixtures()
    found = mixture.log_probabilities[mixture.log_probabilities > -100]
    errors = [abs(float(mpmath.mpf(float(a)) - b)) for a, b in zip(found, logs[-len(found) :])]
    assert 0 < max(errors) <= mixture.log_probability_error < 1e-10


@pytest.mark.parametrize("excess", range(1, 9))
def test_what_is_on_the_grid_up_to_rounding_is_not_lowered(excess):
    """A position a few floats above a grid point counts as that point, whose sensitivity covers it."""
    value = 3.0
    for _ in range(2 * excess):
        value = np.nextafter(value, 4.0)
    laws = RowLaws(1, 1.0, 4, 2.0, 6.0)
    laws.add(value, row_laws.bernoulli_numbers([0.3]))
    [mixture] = laws.mixtures()
    assert laws.weights[0] == pytest.approx([0.7, 0, 0, 0.3, 0]) or laws.shortfall[0] > 0
    assert mixture.sensitivities[-1] >= value
