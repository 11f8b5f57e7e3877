"""Exercises of the book that can be set with other numbers: variant_exercises.toml, and here what computes their keys.

With the numbers in `original` a key is the answer that the book records (tests/book/test_variants.py compares them); with
drawn ones the statement and the key change together. A function is named like its exercise, with "_" for "-". Keys are
computed by `dplib` when a variant is made: none is written here.
"""

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dplib import (
    BallsInBins,
    LastIterate,
    PoissonDPSGD,
    accounting,
    calibrate,
    gaussian,
    matrices,
    mixtures,
    sensitivity,
    utility,
)


@dataclass(frozen=True)
class Exercise:
    """One exercise with numbers to draw.

    original : {name: number} of the book's exercise. choices : {name: numbers to draw from}.
    statement : Markdown, in which <<name>> stands for a number. key : the numbers -> the answers, a list of real numbers.
    digits : significant digits that the statement asks for, in words.
    """

    name: str
    title: str
    digits: int
    original: dict
    choices: dict
    statement: str
    key: Callable


def subsampling_2(q1, q2, epsilon, delta):
    q = q1 * q2
    before = math.log1p(math.expm1(epsilon) / q), delta / q
    return [*before, 1 / gaussian.calibrate(*before)]


def subsampling_4(sigma, batch, records, rounds, delta):
    runs = (PoissonDPSGD(sigma, min(1.0, batch / records * b), rounds // b) for b in (1, 2, 5, 10))
    return [run.epsilon(delta).upper for run in runs]


def subsampling_5(q, sigma, rounds, leaked, epsilon):
    hidden, known = mixtures.binomial(1, q, sigma), mixtures.Mixture([1.0], [1.0], sigma)

    def delta(direction):
        total = 0.0
        for k in range(min(leaked, 40) + 1):  # more have no chance that counts
            parts = [(hidden, rounds - leaked)] + [(known, k)] * (k > 0)
            chance = math.comb(leaked, k) * q**k * (1 - q) ** (leaked - k)
            total += chance * accounting.delta(parts, epsilon, direction).upper if chance > 1e-13 else 0.0
        return total

    return [max(delta(direction) for direction in ("remove", "add"))]


def group_1(size, q, sigma, threshold):
    pair = mixtures.binomial(size, q, sigma)
    epsilon = float(pair.loss(threshold))
    return [epsilon, pair.hockey_stick(epsilon, "remove")]


def group_3(rounds, q, delta, size, epsilon):
    group = calibrate(PoissonDPSGD(1.0, q, rounds, group_size=size), epsilon=epsilon, delta=delta)
    one = calibrate(PoissonDPSGD(1.0, q, rounds), epsilon=epsilon / size, delta=delta)
    return [group.noise_multiplier, one.noise_multiplier]


def last_iterate_1(rounds, q, sigma, threshold):
    pair = mixtures.binomial(rounds, q, sigma * math.sqrt(rounds))
    epsilon = float(pair.loss(threshold))
    return [epsilon, LastIterate(sigma, q, rounds).delta(epsilon, "remove").upper]


def last_iterate_4(batch, records, rounds, sigma, delta):
    return [LastIterate(sigma / 2, batch / (records + 1), rounds).epsilon(delta).upper]


def renyi_3(rounds, q, epsilon, delta):
    start = PoissonDPSGD(1.0, q, rounds)
    noise = [calibrate(start, epsilon=epsilon, delta=delta, method=how).noise_multiplier for how in ("renyi", "auto")]
    return [noise[0] / noise[1] - 1]


def large_batches_4(rounds, q, epsilon, delta):
    sigma = q * math.sqrt(rounds) / gaussian.calibrate(epsilon, delta)
    return [PoissonDPSGD(sigma, q, rounds).epsilon(delta).upper]


def matrix_4(rounds, passes, bands):
    encoder = matrices.optimal_counting(rounds, bands=bands)
    return [sensitivity.round_robin(encoder, rounds // passes, passes) * utility.rmse(encoder)]


def bins_1(sigma):
    return [gaussian.delta(mu / sigma, 0.0) for mu in (math.sqrt(0.5), 1.0)]


def bins_5(rounds):
    encoder, ratios = matrices.optimal_counting(rounds), []
    for epochs in (1, 4, 16, 64):
        gram = BallsInBins(encoder, 1.0, rounds // epochs, epochs).gram()
        ratios.append(math.sqrt(gram.max() / gram.mean()))
    return ratios


def which_accountant_5(q, epochs, rounds, sigma, delta):
    return [PoissonDPSGD(sigma / math.sqrt(epochs), q, rounds).epsilon(delta).upper]


EXERCISES = [
    Exercise(**entry, key=globals()[entry["name"].replace("-", "_")])
    for entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["exercise"]
]
