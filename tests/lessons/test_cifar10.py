"""The CIFAR-10 experiment of benchmarks/cifar10.py on a small archive: its format, the schedule, the network, two rounds."""

import dataclasses
import io
import tarfile

import jax
import numpy as np
import pytest
from folders import imported

from dplib import batching, matrices
from dplib.lessons.datasets import Dataset
from dplib.training import Config, train

cifar10 = imported("benchmarks", "cifar10")

RNG = np.random.default_rng(3)
IMAGES = RNG.uniform(-1, 1, (12, 32, 32, 3)).astype(np.float32)
LABELS = RNG.integers(0, 10, 12).astype(np.int32)
DATA = Dataset(IMAGES[:8], LABELS[:8], IMAGES[8:], LABELS[8:])


@pytest.mark.trust
@pytest.mark.slow
def test_two_rounds_of_the_configuration():
    """The same as `train` with the settings written out."""
    encoder = matrices.buffered_linear_toeplitz(2, [0.2], [0.9])
    config = Config(noise_multiplier=0.5, divisor=4.0, encoder=encoder, learning_rate=0.05, clip_norm=7.0)
    result, accuracy = cifar10.experiment(DATA, config, seed=5, batches_per_epoch=2, epochs=1)
    assert result.rounds == 2 and 0 <= accuracy <= 1 and result.adjacency == "add-remove"
    written_out = dataclasses.replace(
        config, learning_rate=0.05 * cifar10.cooldown(2), momentum=0.95, clip_norm=1.0
    )
    batches = batching.balls_in_bins_stream(8, 2, 1, seed=5)
    again = train(
        cifar10.loss, cifar10.parameters(5), DATA_TRAIN, batches, written_out, seed=5, rounds_per_call=1
    )
    for a, b in zip(jax.tree.leaves(result.params), jax.tree.leaves(again.params)):
        assert np.array_equal(a, b)


DATA_TRAIN = (DATA.train_features, DATA.train_labels)


def test_the_archive_is_read_byte_by_byte(tmp_path):
    """As the format is described: the label, then 1,024 values of each colour."""
    rows = RNG.integers(0, 256, (6, 2, 3073), dtype=np.uint8)
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    path = tmp_path / "cifar-10-binary.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in zip(names, rows):
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = content.nbytes
            archive.addfile(member, io.BytesIO(content.tobytes()))
    data = cifar10.load(path)
    assert data.train_features.shape == (10, 32, 32, 3) and data.test_features.shape == (2, 32, 32, 3)
    assert (
        data.train_labels.tolist() == rows[:5, :, 0].ravel().tolist() and data.test_labels[1] == rows[5, 1, 0]
    )
    for row, column, colour in ((0, 0, 0), (3, 17, 1), (31, 31, 2)):
        value = rows[1, 1, 1 + 1024 * colour + 32 * row + column] / 127.5 - 1
        assert data.train_features[3, row, column, colour] == pytest.approx(value, abs=1e-6)
