"""Points of the unit cube: every one uniform, all of them even, and errors that are nearly normal."""

import numpy as np
import pytest

from dplib.balls_in_bins import points


@pytest.mark.parametrize(("size", "dimensions"), [(1, 1), (32, 3), (512, 130), (700, 20)])
def test_points_fill_every_interval(size, dimensions):
    """Without the jitter, up to 1 / size, 2^m points have one in each of 2^m intervals, in every coordinate."""
    values = points.points(np.random.default_rng(1), size, dimensions)
    assert values.shape == (size, dimensions)
    assert np.all((values > 0) & (values < 1))
    if size == 512:
        counts = np.array([np.bincount((column * 64).astype(int), minlength=64) for column in values.T])
        assert counts.min() >= 6 and counts.max() <= 10
        assert len(np.unique(values)) == values.size


def test_parts_make_up_the_whole():
    whole = points.points(np.random.default_rng(2), 1200, 5)
    parts = list(points.cubes(np.random.default_rng(2), 1200, 5))
    assert [len(part) for part in parts] == [512, 512, 176]
    assert np.array_equal(np.concatenate(parts), whole)
    assert not np.array_equal(whole, points.points(np.random.default_rng(3), 1200, 5))


def test_means_are_unbiased_and_their_errors_honest():
    """A smooth function of two coordinates that are no leading ones, and one of three leading ones."""
    functions = {
        "late": lambda u: np.exp(u[:, 20] * u[:, 27]),
        "leading": lambda u: np.prod(1 + 0.5 * np.sin(6.283185307179586 * u[:, :3]), axis=1) * (1 + u[:, 0]),
    }
    exact = {"late": 1.3179021514544038, "leading": 1.5 - 0.5 / 6.283185307179586}
    for name, function in functions.items():
        means = np.array(
            [np.mean(function(points.points(np.random.default_rng(seed), 128, 28))) for seed in range(400)]
        )
        scores = (means.reshape(40, 10).mean(axis=1) - exact[name]) / (
            means.reshape(40, 10).std(axis=1, ddof=1) / np.sqrt(10)
        )
        assert abs(means.mean() - exact[name]) < 4 * means.std() / 20
        assert np.mean(np.abs(scores) > 2.26) < 0.2
        values = function(np.random.default_rng(0).random((20_000, 28)))
        assert means.std() < 0.6 * values.std() / np.sqrt(128)


def test_reversed_bits():
    assert list(points._reversed_bits(0, 4)) == [0, 2**31, 2**30, 2**31 + 2**30]
    assert list(points._reversed_bits(2**31, 1)) == [1]
