"""The study `letters`: accuracy of a convolutional network on 20,000 pictures for seven ways to spend the same (epsilon, delta).

`tools/study.py` runs it, in about 40 minutes of processor time. Noise, batches and schedule are made as for the study `training`.
"""

import functools
import warnings

import numpy as np
import training_study
from training_study import CHARGED, DELTA, MOMENTUM, guaranteed, schedule, stream

from dplib import training
from dplib.lessons import datasets

EPSILONS = (1.0, 8.0)
BATCHES, EPOCHS, SLOTS = 64, 8, 464
SCHEMES = (*training_study.SCHEMES, "scaled, bins")
CHANNELS = 8, 16
RATES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0)
TUNED = ("DP-SGD, Poisson", "banded, Poisson", "buffered, bins")  # these choose the learning rate of all
TUNING_SEEDS, SEEDS = 2, 20
VALIDATION = 2500  # of the records to train on, held back while the learning rate is chosen
DIVISOR, TUNING_DIVISOR = 312.5, 273.4375

ABOUT = (
    "Test accuracy of a network with two convolutions on letters drawn with Matplotlib's fonts (dplib.lessons.datasets.letters), "
    "trained with clipped gradients and certified noise at (epsilon, 1e-5) in 512 rounds of about 312 records. One learning rate "
    "for all schemes at an epsilon, chosen on records held back from the training set, without charging its privacy. Directions: "
    "the larger of add and remove."
)


def start(seed):
    """The first parameters."""
    rng = np.random.default_rng(seed)
    draw = lambda *shape: (rng.standard_normal(shape) / np.prod(shape[:-1]) ** 0.5).astype(np.float32)
    first, second = CHANNELS
    weights = {"w1": draw(3, 3, 1, first), "w2": draw(3, 3, first, second), "w3": draw(4 * 4 * second, 10)}
    return weights | {f"b{i}": np.zeros(weights[f"w{i}"].shape[-1], np.float32) for i in (1, 2, 3)}


def convolved(x, weights):
    """Convolution with stride 2, as one product: gradients of single examples are ten times as fast so on a CPU."""
    import jax.numpy as jnp

    _, height, width, _ = x.shape
    padded = jnp.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0)))
    parts = [padded[:, i : i + height : 2, j : j + width : 2] for i in range(3) for j in range(3)]
    return jnp.concatenate(parts, -1) @ weights.reshape(-1, weights.shape[-1])


def logits(params, x):
    import jax.numpy as jnp

    hidden = jnp.tanh(convolved(x, params["w1"]) + params["b1"])
    hidden = jnp.tanh(convolved(hidden, params["w2"]) + params["b2"])
    return hidden.reshape(len(x), -1) @ params["w3"] + params["b3"]


def loss(params, example):
    import jax

    x, label = example
    return -jax.nn.log_softmax(logits(params, x[None])[0])[label]


@functools.cache
def _data():
    """((all to train on, test), (kept, held back)): pairs of features and labels."""
    found = datasets.letters()
    whole, test = (found.train_features, found.train_labels), (found.test_features, found.test_labels)
    return (whole, test), tuple(tuple(part[cut] for part in whole) for cut in (slice(VALIDATION, None), slice(VALIDATION)))


def accuracy(scheme, epsilon, rate, seed, tuning=False):
    """Share of the test pictures that a run with this seed gets right; of the pictures held back, where it tunes."""
    data, test = _data()[tuning]
    encoder, sigma, _, bands = guaranteed(scheme, epsilon, BATCHES, EPOCHS) if epsilon else (None, 0.0, 0.0, 1)
    drawn = stream(scheme, len(data[1]), bands, seed, BATCHES, EPOCHS).padded(SLOTS)
    config = training.Config(
        noise_multiplier=sigma, divisor=TUNING_DIVISOR if tuning else DIVISOR, encoder=encoder,
        learning_rate=schedule(rate, BATCHES * EPOCHS), momentum=MOMENTUM,
    )  # fmt: skip
    params = training.train(loss, start(seed), data, drawn, config, seed=seed).params
    return float(np.mean(np.argmax(logits(params, test[0]), axis=1) == test[1]))


def task(setting):
    """Rows for the tables of the study at one epsilon: {"noise": [...], "tuning": [...], "runs": [...]}."""
    epsilon = setting["epsilon"]
    if epsilon is None:
        found = [accuracy("DP-SGD, Poisson", None, 1.0, seed) for seed in range(TUNING_SEEDS)]
        return {"without_noise": [{"learning_rate": 1.0, "accuracies": found}]}
    tuning = []
    for rate in RATES:
        for scheme in TUNED:
            found = [accuracy(scheme, epsilon, rate, 1000 + seed, tuning=True) for seed in range(TUNING_SEEDS)]
            tuning.append({"epsilon": epsilon, "scheme": scheme, "learning_rate": rate, "accuracies": found})
    best = max(RATES, key=lambda rate: sum(sum(row["accuracies"]) for row in tuning if row["learning_rate"] == rate))
    noise, runs = [], []
    for scheme in SCHEMES:
        _, sigma, error, bands = guaranteed(scheme, epsilon, BATCHES, EPOCHS)
        place = {"scheme": scheme, "epsilon": epsilon}
        noise.append(place | {"noise_multiplier": sigma, "rmse": error, "bands": bands})
        found = [accuracy(scheme, epsilon, best, seed) for seed in range(SEEDS)]
        runs.append(place | {"learning_rate": best, "accuracies": found})
    return {"noise": noise, "tuning": tuning, "runs": runs}


def parts():
    """Sections of the study: (name, list of settings), each setting one call of `task`."""
    return [("without noise", [{"epsilon": None}]), *((f"epsilon {e:g}", [{"epsilon": e}]) for e in EPSILONS)]


SETTINGS = {
    "delta": DELTA,
    "charged": CHARGED,
    "epsilons": EPSILONS,
    "batches_per_epoch": BATCHES,
    "epochs": EPOCHS,
    "slots": SLOTS,
    "schemes": SCHEMES,
    "buffers": training_study.BUFFERS,
    "channels": CHANNELS,
    "learning_rates": RATES,
    "momentum": MOMENTUM,
    "divisor": DIVISOR,
    "tuning_seeds": TUNING_SEEDS,
    "validation": VALIDATION,
    "seed": f"0 to {SEEDS - 1} for parameters, batches and noise of the runs, from 1000 for tuning; 0 for the pictures",
}
warnings.simplefilter("ignore", training.SeededNoiseWarning)  # experiments, to be repeated
STUDY = (ABOUT, SETTINGS, parts, task)
