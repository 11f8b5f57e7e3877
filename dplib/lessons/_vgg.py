"""The convolutional network of the CIFAR-10 experiments, in plain JAX.

Three blocks of two 3 x 3 convolutions (32, 64 and 128 channels), each block followed by 2 x 2 max pooling,
a dense layer of 128 and one of 10 classes: 550,570 parameters. Activations are tanh, as is usual under clipping.
The source names "the same VGG model" as earlier work and lists no layers; this is our reading of it.
"""

from __future__ import annotations

import numpy as np

CHANNELS = (32, 32, 64, 64, 128, 128)
CLASSES = 10


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
    import jax
    import jax.numpy as jnp

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
    import jax

    image, label = example
    return -jax.nn.log_softmax(logits(params, image[None])[0])[label]


def accuracy(params, images, labels, batch=500):
    """Share of images that are classified correctly."""
    import jax
    import jax.numpy as jnp

    guess = jax.jit(lambda p, x: jnp.argmax(logits(p, x), axis=1))
    parts = [np.asarray(guess(params, images[i : i + batch])) for i in range(0, len(images), batch)]
    return float(np.mean(np.concatenate(parts) == labels))
