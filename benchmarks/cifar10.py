"""The CIFAR-10 experiment of the source of balls in bins (section 5.2), in plain JAX; for a GPU.

    python benchmarks/cifar10.py cifar-10-binary.tar.gz [epsilon]

trains with 20 epochs of 100 rounds and four buffers, and prints the accuracy on the test images. The archive is
published at https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz.

The network has three blocks of two 3 x 3 convolutions (32, 64 and 128 channels), each block followed by 2 x 2 max
pooling, a dense layer of 128 and one of 10 classes: 550,570 parameters. Activations are tanh, as is usual under
clipping. The source names "the same VGG model" as earlier work and lists no layers; this is our reading of it.
"""

import dataclasses
import sys
import tarfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from dplib import batching, optimize, training
from dplib.lessons.datasets import Dataset

CHANNELS, CLASSES = (32, 32, 64, 64, 128, 128), 10
DIVISOR = 500.0  # the size of the source's batches
_RECORD = 1 + 32 * 32 * 3
_TRAIN = [f"data_batch_{i}.bin" for i in range(1, 6)]


def load(path):
    """The published archive, as features of shape (records, 32, 32, 3) in [-1, 1] and labels."""
    with tarfile.open(path, "r:gz") as archive:
        members = {Path(member.name).name: member for member in archive.getmembers()}
        read = lambda name: _records(archive.extractfile(members[name]).read())
        images, labels = (np.concatenate(part) for part in zip(*map(read, _TRAIN)))
        return Dataset(images, labels, *read("test_batch.bin"))


def _records(content):
    """Records of 3,073 bytes: the label and then 1,024 red, green and blue values."""
    rows = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    pixels = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return (pixels / np.float32(127.5) - 1).astype(np.float32), rows[:, 0].astype(np.int32)


def cooldown(rounds):
    """Factors of the learning rate: 1 up to a quarter of the rounds, then linear to 1/20 at the end."""
    t = np.arange(rounds)
    return 1 - 0.95 * np.clip((t - rounds / 4) / (0.75 * rounds), 0, 1)


def parameters(seed):
    """First parameters: normal with variance 1 / fan-in, biases 0. A dictionary of float32 arrays."""
    rng = np.random.default_rng(seed)

    def layer(*shape):
        fan_in = np.prod(shape[:-1])
        return {
            "weights": (rng.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32),
            "bias": np.zeros(shape[-1], np.float32),
        }

    widths = (3, *CHANNELS)
    convolutions = [layer(3, 3, a, b) for a, b in zip(widths, widths[1:])]
    return {"convolutions": convolutions, "dense": [layer(4 * 4 * CHANNELS[-1], 128), layer(128, CLASSES)]}


def logits(params, images):
    """images : shape (B, 32, 32, 3). Returns shape (B, 10)."""
    x = images
    for i, layer in enumerate(params["convolutions"]):
        x = jax.lax.conv_general_dilated(
            x, layer["weights"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jnp.tanh(x + layer["bias"])
        if i % 2:
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(len(x), -1)
    hidden, last = params["dense"]
    x = jnp.tanh(x @ hidden["weights"] + hidden["bias"])
    return x @ last["weights"] + last["bias"]


def loss(params, example):
    """Cross entropy of one (image, label)."""
    image, label = example
    return -jax.nn.log_softmax(logits(params, image[None])[0])[label]


def accuracy(params, images, labels, batch=500):
    """Share of images that are classified correctly."""
    guess = jax.jit(lambda p, x: jnp.argmax(logits(p, x), axis=1))
    parts = [np.asarray(guess(params, images[i : i + batch])) for i in range(0, len(images), batch)]
    return float(np.mean(np.concatenate(parts) == labels))


def experiment(data, config, *, seed=None, batches_per_epoch=100, epochs=20):
    """(`training.Trained`, accuracy on the test images).

    config : encoder, noise multiplier, peak learning rate and divisor. Whatever else it says, as in the source:
    momentum 0.95, clip norm 1, and a learning rate that falls linearly to a twentieth from a quarter of the rounds on.
    """
    rates = config.learning_rate * cooldown(batches_per_epoch * epochs)
    config = dataclasses.replace(config, learning_rate=rates, momentum=0.95, clip_norm=1.0)
    batches = batching.balls_in_bins_stream(len(data.train_labels), batches_per_epoch, epochs, seed=seed)
    train_set = data.train_features, data.train_labels
    first = parameters(0 if seed is None else seed)
    result = training.train(loss, first, train_set, batches, config, seed=seed, rounds_per_call=1)
    return result, accuracy(jax.device_put(result.params), data.test_features, data.test_labels)


def main(path, epsilon=2.0):
    found = optimize.optimize(
        "buffered_linear_toeplitz",
        epsilon=float(epsilon),
        delta=1e-5,
        batches_per_epoch=100,
        epochs=20,
        buffers=4,
    )
    config = training.Config(
        noise_multiplier=found.noise_multiplier, divisor=DIVISOR, encoder=found.encoder, learning_rate=0.5
    )
    print(experiment(load(path), config)[1])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(*sys.argv[1:])
    else:
        print(__doc__)  # without the archive there is nothing to run
