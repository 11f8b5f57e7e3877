"""The CIFAR-10 configuration on a small archive of the same format: two rounds, the schedule, the network."""

import dataclasses

import jax
import numpy as np
import pytest

from dplib import batching, matrices
from dplib.lessons import _vgg, datasets
from dplib.lessons.datasets import cifar10_experiment
from dplib.training import Config, train

RNG = np.random.default_rng(3)
IMAGES = RNG.uniform(-1, 1, (12, 32, 32, 3)).astype(np.float32)
LABELS = RNG.integers(0, 10, 12).astype(np.int32)
DATA = datasets.Dataset(IMAGES[:8], LABELS[:8], IMAGES[8:], LABELS[8:])


def test_network_has_the_stated_size_and_shape():
    params = _vgg.parameters(0)
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 550_570
    out = _vgg.logits(params, IMAGES)
    assert out.shape == (12, 10) and np.all(np.isfinite(out))
    # Each image on its own; the loss is the cross entropy.
    assert np.allclose(out[3], _vgg.logits(params, IMAGES[3:4])[0], atol=1e-5)
    scores = np.asarray(out[3], float)
    expected = np.log(np.exp(scores).sum()) - scores[LABELS[3]]
    assert float(_vgg.loss(params, (IMAGES[3], LABELS[3]))) == pytest.approx(expected, abs=1e-5)
    share = _vgg.accuracy(params, IMAGES, LABELS, batch=5)
    assert share == pytest.approx(np.mean(np.argmax(out, axis=1) == LABELS))


def test_cooldown_of_the_source():
    """eta to eta / 20 over the rounds 500 to 2000."""
    factors = _vgg.cooldown(2000)
    assert np.all(factors[:501] == 1)
    assert factors[1250] == pytest.approx(0.525) and factors[-1] == pytest.approx(0.05, abs=1e-3)
    assert np.all(np.diff(factors[500:]) < 0)


@pytest.mark.slow
def test_two_rounds_of_the_configuration():
    """The same as `train` with the settings written out."""
    encoder = matrices.buffered_linear_toeplitz(2, [0.2], [0.9])
    config = Config(noise_multiplier=0.5, divisor=4.0, encoder=encoder, learning_rate=0.05, clip_norm=7.0)
    result, accuracy = cifar10_experiment(DATA, config, seed=5, batches_per_epoch=2, epochs=1)
    assert result.rounds == 2 and 0 <= accuracy <= 1 and result.adjacency == "add-remove"
    written_out = dataclasses.replace(config, learning_rate=0.05 * _vgg.cooldown(2), momentum=0.95, clip_norm=1.0)
    batches = batching.balls_in_bins_stream(8, 2, 1, seed=5)
    data = DATA.train_features, DATA.train_labels
    again = train(_vgg.loss, _vgg.parameters(5), data, batches, written_out, seed=5, rounds_per_call=1)
    for a, b in zip(jax.tree.leaves(result.params), jax.tree.leaves(again.params)):
        assert np.array_equal(a, b)
