"""The sum of rows on one lattice: above the accountants, close to them, and rounded to the safe side."""

import math

import numpy as np
import pytest

from dplib import accounting, gaussian, mixtures
from dplib.conditional.row_sums import RowSum
from dplib.results import NoBracketError

EXACT = {"tolerance": 1e-3}


def random_rows(rng):
    grid = np.arange(6) * rng.uniform(0.1, 0.6)
    rows = []
    for _ in range(int(rng.integers(2, 6))):
        weights = rng.dirichlet(np.full(5, 0.5)) * 10 ** rng.uniform(-4, -0.1)
        rows.append((mixtures.Mixture(grid, np.append(1 - weights.sum(), weights), 1.0), int(rng.integers(1, 5))))
    return rows


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("number", [*range(3), *(pytest.param(number, marks=pytest.mark.trust) for number in range(3, 6))])
def test_above_the_lattice_and_close_to_it(number, direction):
    """delta and epsilon, against another accountant's bracket."""
    rng = np.random.default_rng(300 + number)
    rows, delta = random_rows(rng), 10 ** rng.uniform(-10, -2)
    law = RowSum(rows, direction, delta)
    bracket = accounting.epsilon(rows, delta, direction, **EXACT)
    found = law.epsilon(delta)
    assert bracket.lower <= found <= bracket.upper * (1 + 1e-4)
    if found > 0:
        bracket = accounting.delta(rows, found, direction, **EXACT)
        assert bracket.lower <= law.delta(found) <= delta * (1 + 1e-6)
        assert math.log(delta) == pytest.approx(law.guess(found), abs=6)
    for epsilon in rng.uniform(0.05, 3, 2):
        value = law.delta(epsilon)
        lower = accounting.delta(rows, epsilon, direction, **EXACT).lower
        assert lower <= value and (value < 1.01 * lower or value < 1e-6 * delta)


def test_gaussian_rows_in_closed_form():
    """Sure sensitivities 1 and 2: one Gaussian with mu = sqrt(3 + 2 * 4), both directions alike."""
    rows = [(mixtures.Mixture([1.0], [1.0], 2.0), 3), (mixtures.Mixture([2.0], [1.0], 2.0), 2)]
    for direction in ("remove", "add"):
        law = RowSum(rows, direction, 1e-8)
        for epsilon in (0.5, 3.0, 8.0):
            exact = gaussian.delta(math.sqrt(11) / 2, epsilon)
            assert exact <= law.delta(epsilon) <= exact * (1 + 1e-4)


def test_what_is_cut_is_paid_for():
    """Losses that are cut count as infinite: a delta below them has no epsilon, and delta never falls below them."""
    rows = [(mixtures.binomial(1, 1e-6, 0.5), 2), (mixtures.binomial(1, 1e-3, 1.0), 1)]
    law = RowSum([(m, n) for m, n in rows if m.noise_multiplier == 0.5] + [(mixtures.binomial(2, 1e-5, 0.5), 1)], "remove", 1e-3)
    assert 0 < law.infinite < 2e-10
    assert law.delta(1e3) >= law.infinite
    with pytest.raises(NoBracketError, match="what is cut"):
        law.epsilon(0.5 * law.infinite)


def test_extremes():
    nothing = RowSum([(mixtures.binomial(1, 0.0, 1.0), 3)], "remove", 1e-6)
    assert nothing.delta(0.1) == 0 and nothing.epsilon(1e-6) == 0 and nothing.guess(0.1) == -math.inf
    with pytest.raises(NoBracketError, match="too large"):
        RowSum([(mixtures.binomial(1, 0.5, 0.01), 3), (mixtures.binomial(2, 0.5, 0.01), 3)], "remove", 1e-6)
    with pytest.raises(NoBracketError, match="too many"):
        RowSum([(mixtures.Mixture([0.0, 1.0], [1 - p, p], 1.0), 1) for p in np.linspace(0.1, 0.2, 700)], "remove", 1e-6)
    # Added, no sum of losses exceeds that of never taking part.
    few = RowSum([(mixtures.binomial(1, 0.01, 1.0), 3), (mixtures.binomial(2, 0.01, 1.0), 1)], "add", 1e-6)
    assert few.delta(0.06) == few.infinite * (1 + 1e-9)
