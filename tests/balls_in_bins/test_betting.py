"""Confidence bounds on the mean of samples in a range: coverage, order, limits."""

import math

import numpy as np
import pytest

from dplib.balls_in_bins import confidence_bounds


def test_too_few_samples_give_the_bound():
    assert confidence_bounds.betting(np.zeros(3), 2.0, 1e-9, 0.5) == 2.0
    assert confidence_bounds.maurer_pontil(np.array([0.0, 2.0]), 2.0, 1e-9) == 2.0
    assert confidence_bounds.chernoff_hoeffding(1.0, 10, 1e-9) == 1.0
    assert confidence_bounds.betting(np.full(50, 2.0), 2.0, 1e-9, 0.5) == 2.0


@pytest.mark.parametrize("samples", [10**5, 10**8, 10**10])
def test_no_head_in_many_tosses_has_a_closed_form(samples):
    """With the mean 0 the bound is 1 - failure_probability^(1 / samples), however small that is."""
    truth = -math.expm1(-math.log(1e9) / samples)
    assert truth <= confidence_bounds.chernoff_hoeffding(0.0, samples, 1e-9) <= truth * (1 + 1e-8)


def test_maurer_and_pontil_as_published():
    """Their Theorem 4, with the sample variance of half zeros and half ones by hand: n / (4 (n - 1))."""
    n, log_term = 2000, math.log(2 / 1e-6)
    spread = math.sqrt(2 * n / (4 * (n - 1)) * log_term / n)
    found = confidence_bounds.maurer_pontil(np.repeat([0.0, 3.0], n // 2), 3.0, 1e-6)
    assert found == pytest.approx(3 * (0.5 + spread + 7 * log_term / (3 * (n - 1))), rel=1e-8)
