"""Where NumPy's own integers have 32 bits, as in Python in a page, large counts give the same numbers: nothing wraps around."""

import numpy as np
import pytest

from dplib import FixedBatchDPSGD, batching, mixtures
from dplib.accounting import lattice_spectrum as lattice

wide = np.arange


@pytest.fixture
def narrow(monkeypatch):
    """A call that makes NumPy count in 32 bits from then on."""

    def arange(*arguments, **options):
        found = wide(*arguments, **options)
        return found.astype(np.int32) if found.dtype == np.int64 and "dtype" not in options else found

    return lambda: monkeypatch.setattr(np, "arange", arange)


def test_integers_are_narrow_here(narrow):
    narrow()
    assert (np.arange(50_001) * np.arange(50_001))[-1] < 0 and np.arange(3.0).dtype == float and np.arange(2, dtype=np.int64).dtype == np.int64


def test_groups_in_large_batches(narrow):
    """A wrapped count made the loss vanish: delta was 0, and called exact."""
    question = lambda: FixedBatchDPSGD(noise_multiplier=300.0, batch_size=2_200_000, dataset_size=100_000_000, steps=100, group_size=1000).delta(1.0)
    one, other = mixtures.hypergeometric(2_200_000, 100_000_000, 1000, 1.0), question()
    narrow()
    again = mixtures.hypergeometric(2_200_000, 100_000_000, 1000, 1.0)
    assert np.array_equal(one.shifts, again.shifts) and np.array_equal(one.log_probabilities, again.log_probabilities)
    assert 0.3 < other.lower and question() == other


def test_many_rounds_of_coins(narrow):
    """60,000 records in 50,000 rounds are 3 * 10^9 coins, more than 32 bits count."""
    draw = lambda: batching.poisson(60_000, 50_000, 1e-5, np.random.default_rng(0))
    one = draw()
    narrow()
    assert all(map(np.array_equal, one, draw())) and sum(map(len, one[40_000:])) > 5000


def test_wide_laws_on_the_lattice(narrow):
    """The squares of their places, and the turns of far places, are more than 32 bits."""
    places = np.arange(-120_000.0, 120_001.0)
    masses = np.exp(-((places / 40_000) ** 2) / 2)
    rows, even = [(masses / masses.sum(), 120_000, 400, 1e-14)], np.full(1_200_001, 1 / 1_200_001)
    frequencies = np.array([5, 4094, 4095], dtype=np.int32)
    one, other = lattice._band_width(rows, 1_000_000), lattice._low_band(even, 600_000, 3_000_000, frequencies)
    narrow()
    assert lattice._band_width(rows, 1_000_000) == one == 500_001  # no low band is enough
    assert np.array_equal(lattice._low_band(even, 600_000, 3_000_000, frequencies), other)
