"""Exercises of the book that can be set with other numbers: statement, numbers to draw from, and what computes the key.

Each entry is an exercise of notebooks/solutions/ under its own name. With the numbers in `original` its key is the answer
that the book records (tests/book/test_variants.py compares them); with drawn ones the statement and the key change
together. Keys are computed by `dplib` when a variant is made: none is written here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

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


def _two_lotteries(q1, q2, epsilon, delta):
    q = q1 * q2
    before = math.log1p(math.expm1(epsilon) / q), delta / q
    return [*before, 1 / gaussian.calibrate(*before)]


def _separations(sigma, batch, records, rounds, delta):
    runs = (PoissonDPSGD(sigma, min(1.0, batch / records * b), rounds // b) for b in (1, 2, 5, 10))
    return [run.epsilon(delta).upper for run in runs]


def _leaked_log(q, sigma, rounds, leaked, epsilon):
    hidden, known = mixtures.binomial(1, q, sigma), mixtures.Mixture([1.0], [1.0], sigma)

    def delta(direction):
        total = 0.0
        for k in range(min(leaked, 40) + 1):  # more have no chance that counts
            parts = [(hidden, rounds - leaked)] + [(known, k)] * (k > 0)
            chance = math.comb(leaked, k) * q**k * (1 - q) ** (leaked - k)
            total += chance * accounting.delta(parts, epsilon, direction).upper if chance > 1e-13 else 0.0
        return total

    return [max(delta(direction) for direction in ("remove", "add"))]


def _friends(size, q, sigma, threshold):
    pair = mixtures.binomial(size, q, sigma)
    epsilon = float(pair.loss(threshold))
    return [epsilon, pair.hockey_stick(epsilon, "remove")]


def _group_noise(rounds, q, delta, size, epsilon):
    group = calibrate(PoissonDPSGD(1.0, q, rounds, group_size=size), epsilon=epsilon, delta=delta)
    one = calibrate(PoissonDPSGD(1.0, q, rounds), epsilon=epsilon / size, delta=delta)
    return [group.noise_multiplier, one.noise_multiplier]


def _last_of_few(rounds, q, sigma, threshold):
    pair = mixtures.binomial(rounds, q, sigma * math.sqrt(rounds))
    epsilon = float(pair.loss(threshold))
    return [epsilon, LastIterate(sigma, q, rounds).delta(epsilon, "remove").upper]


def _last_of_fixed(batch, records, rounds, sigma, delta):
    return [LastIterate(sigma / 2, batch / (records + 1), rounds).epsilon(delta).upper]


def _detour(rounds, q, epsilon, delta):
    start = PoissonDPSGD(1.0, q, rounds)
    noise = [calibrate(start, epsilon=epsilon, delta=delta, method=how).noise_multiplier for how in ("renyi", "auto")]
    return [noise[0] / noise[1] - 1]


def _proportional(rounds, q, epsilon, delta):
    sigma = q * math.sqrt(rounds) / gaussian.calibrate(epsilon, delta)
    return [PoissonDPSGD(sigma, q, rounds).epsilon(delta).upper]


def _bands(rounds, passes, separation, bands):
    encoder = matrices.optimal_counting(rounds, bands=bands)
    return [sensitivity.round_robin(encoder, separation, passes) * utility.rmse(encoder)]


def _two_bins(sigma):
    return [gaussian.delta(mu / sigma, 0.0) for mu in (math.sqrt(0.5), 1.0)]


def _epochs(rounds):
    encoder, ratios = matrices.optimal_counting(rounds), []
    for epochs in (1, 4, 16, 64):
        gram = BallsInBins(encoder, 1.0, rounds // epochs, epochs).gram()
        ratios.append(math.sqrt(gram.max() / gram.mean()))
    return ratios


def _repeated(q, epochs, rounds, sigma, delta):
    return [PoissonDPSGD(sigma / math.sqrt(epochs), q, rounds).epsilon(delta).upper]


EXERCISES = (
    Exercise(
        "subsampling-2",
        "Twice sampled",
        4,
        {"q1": 0.5, "q2": 0.1, "epsilon": 0.5, "delta": 1e-6},
        {"q1": (0.3, 0.4, 0.5, 0.6), "q2": (0.05, 0.1, 0.2), "epsilon": (0.3, 0.4, 0.5, 0.8), "delta": (1e-6, 1e-7)},
        r"""A record passes two independent hidden lotteries, with probabilities $q_1=<<q1>>$ and $q_2=<<q2>>$, before its gradient joins a sum with Gaussian noise. The round must be $(<<epsilon>>,<<delta>>)$-private in the remove direction. Which $(\varepsilon,\delta)$ must it have before the lotteries, and how much noise is that?

Three numbers, each to four digits: $\varepsilon$ and $\delta$ before the lotteries, and the smallest noise multiplier (for it you may call `gaussian.calibrate`).""",
        _two_lotteries,
    ),
    Exercise(
        "subsampling-4",
        "Separation",
        4,
        {"sigma": 1.0, "batch": 500, "records": 50_000, "rounds": 2000, "delta": 1e-6},
        {"sigma": (0.9, 1.0, 1.2, 1.5), "batch": (250, 500, 1000), "records": (50_000, 60_000), "rounds": (1000, 1500, 2000), "delta": (1e-6, 1e-7)},
        r"""A run has $n=<<records>>$ records, an expected batch of <<batch>>, $\sigma=<<sigma>>$, $T=<<rounds>>$ rounds and $\delta=<<delta>>$. Compute $\varepsilon$ under $b$-min-sep for $b=1,2,5,10$ at the same expected batch.

Four numbers, each to four digits: $\varepsilon$ in this order, each the larger of both directions (upper ends).""",
        _separations,
    ),
    Exercise(
        "subsampling-5",
        "A leaked log",
        3,
        {"q": 0.01, "sigma": 1.0, "rounds": 2000, "leaked": 200, "epsilon": 3},
        {"q": (0.01, 0.008), "sigma": (1.0, 1.2), "rounds": (1500, 2000), "leaked": (100, 150, 200, 300), "epsilon": (3, 4)},
        r"""A run of $T=<<rounds>>$ rounds with $q=<<q>>$ and $\sigma=<<sigma>>$ was accounted as Poisson sampling. A log file with the batch indices of the first <<leaked>> rounds is published by mistake; the noisy sums of all rounds are released anyway. Under zero-out adjacency, what is $\delta(<<epsilon>>)$ now?

One number, to three digits: the larger of both directions.""",
        _leaked_log,
    ),
    Exercise(
        "group-1",
        "Friends",
        4,
        {"size": 3, "q": 0.5, "sigma": 1.0, "threshold": 1.5},
        {"size": (2, 3, 4), "q": (0.3, 0.4, 0.5), "sigma": (1.0, 1.5), "threshold": (1.6, 1.8, 2.2, 2.5)},
        r"""One round of DP-SGD with $q=<<q>>$ and $\sigma=<<sigma>>$, one coordinate. A group of <<size>> records with gradient $1$ belongs together; all other gradients are $0$. Take the event $x><<threshold>>$. At which $\varepsilon$ is it the best event, and how large is $\delta(\varepsilon)$ there?

Two numbers, each to four digits: this $\varepsilon$, and $\delta(\varepsilon)$ in the remove direction.""",
        _friends,
    ),
    Exercise(
        "group-3",
        "Calibration",
        4,
        {"rounds": 2000, "q": 0.01, "delta": 1e-6, "size": 8, "epsilon": 8},
        {"rounds": (1000, 1500, 2000), "q": (0.01, 0.02), "delta": (1e-5, 1e-6), "size": (4, 6, 8), "epsilon": (6, 8, 12)},
        r"""A run has $T=<<rounds>>$ rounds with $q=<<q>>$, and $\delta=<<delta>>$. With `dplib.calibrate` find the smallest noise multiplier that gives groups of $k=<<size>>$ records $\varepsilon=<<epsilon>>$, and the one that makes $k\varepsilon_1=<<epsilon>>$, where $\varepsilon_1$ is the $\varepsilon$ of one record.

Two numbers, each to four digits: the two noise multipliers in this order.""",
        _group_noise,
    ),
    Exercise(
        "last-iterate-1",
        "A few rounds",
        4,
        {"rounds": 4, "q": 0.5, "sigma": 1.0, "threshold": 2},
        {"rounds": (3, 4, 5), "q": (0.3, 0.4, 0.5), "sigma": (1.0, 1.5), "threshold": (2, 3)},
        r"""Linear losses, $T=<<rounds>>$, $q=<<q>>$, $\sigma=<<sigma>>$; only the last model is released, and one record has a gradient of norm 1. At which $\varepsilon$ is "the sum exceeds <<threshold>>" the best event, and how large is $\delta(\varepsilon)$ there?

Two numbers, each to four digits: this $\varepsilon$, and $\delta(\varepsilon)$ in the remove direction.""",
        _last_of_few,
    ),
    Exercise(
        "last-iterate-4",
        "Fixed batches",
        4,
        {"batch": 5, "records": 99, "rounds": 100, "sigma": 4.0, "delta": 1e-6},
        {"batch": (5, 8, 10), "records": (99, 199, 149), "rounds": (50, 100, 200), "sigma": (4.0, 5.0, 6.0), "delta": (1e-5, 1e-6)},
        r"""What is the pair of the last iterate of linear losses, for one record, when each round uses a batch of exactly $B$ records? Compute $\varepsilon$ for $B=<<batch>>$, $n=<<records>>$ records in the smaller dataset, $T=<<rounds>>$, $\sigma=<<sigma>>$, $\delta=<<delta>>$.

One number, to four digits: $\varepsilon$, the larger of both directions (upper end).""",
        _last_of_fixed,
    ),
    Exercise(
        "renyi-3",
        "What the detour costs in noise",
        3,
        {"rounds": 60_000, "q": 1e-3, "epsilon": 2, "delta": 1e-8},
        {"rounds": (20_000, 40_000, 60_000), "q": (1e-3, 2e-3), "epsilon": (1, 2, 3), "delta": (1e-6, 1e-7, 1e-8)},
        r"""A run of $T=<<rounds>>$ rounds with $q=<<q>>$ must be $(<<epsilon>>,<<delta>>)$-private, in both directions. Find the smallest noise multiplier by Rényi divergences (`calibrate(..., method="renyi")`) and by the certified accountant (`method="auto"`).

One number, to three digits: the excess of the first over the second, relative to the second (a number such as $0.25$ for a quarter more noise).""",
        _detour,
    ),
    Exercise(
        "large-batches-4",
        "The proportional rule, too early",
        4,
        {"rounds": 10, "q": 0.1, "epsilon": 1, "delta": 1e-5},
        {"rounds": (8, 10, 12, 15, 20), "q": (0.05, 0.1, 0.2), "epsilon": (1, 2), "delta": (1e-5, 1e-6)},
        r"""An analyst remembers that "effective noise does not depend on the batch size" and that <<rounds>> rounds without sampling need $\sigma(1,<<rounds>>)$ for $\varepsilon=<<epsilon>>$, $\delta=<<delta>>$. For $q=<<q>>$ she therefore takes $\sigma=<<q>>\,\sigma(1,<<rounds>>)$. Which $\varepsilon$ does her run really have at this $\delta$?

One number, to four digits: that $\varepsilon$, for the larger of the two directions.""",
        _proportional,
    ),
    Exercise(
        "matrix-4",
        "A cut square root",
        5,
        {"rounds": 2048, "passes": 16, "separation": 128, "bands": 256},
        {"rounds": (1024, 2048), "passes": (4, 8), "separation": (64, 128), "bands": (32, 48, 96, 200)},
        r"""$T=<<rounds>>$ rounds, <<passes>> passes, <<separation>> rounds apart. Cut the square root off after its first <<bands>> bands and compute the error of the prefix sums at equal privacy (`sensitivity.round_robin` times `utility.rmse`).

One number, to five digits: this error in units of $\sigma_1$.""",
        _bands,
    ),
    Exercise(
        "bins-1",
        "Two bins at epsilon zero",
        4,
        {"sigma": 1.0},
        {"sigma": (0.7, 0.8, 1.2, 1.4, 1.5, 1.8, 2.0, 2.5)},
        r"""Two batches, one epoch, $\mathbf C=\mathbb I$, $\sigma=<<sigma>>$, $\varepsilon=0$. Enclose the total variation distance of $P$ and $Q$ between two Gaussians: the sum of both releases, and a known batch.

Two numbers, each to four digits: the lower and the upper bound.""",
        _two_bins,
    ),
    Exercise(
        "bins-5",
        "Epochs",
        4,
        {"rounds": 2048},
        {"rounds": (512, 640, 768, 1024, 1280, 1536)},
        r"""Full square-root encoder, $T=<<rounds>>$ rounds, `matrices.optimal_counting(<<rounds>>)`. With $E$ epochs there are $b=T/E$ batches. What can hiding gain at best, when the same rounds are split into few long or many short epochs?

Four numbers, each to four digits: the ratios $\max_i\lVert\mathbf m_i\rVert\,/\,\lVert\bar{\mathbf m}\rVert$ for $E=1,4,16,64$.""",
        _epochs,
    ),
    Exercise(
        "which-accountant-5",
        "The same coins in every epoch",
        3,
        {"q": 0.01, "epochs": 20, "rounds": 100, "sigma": 4.0, "delta": 1e-6},
        {"q": (0.01, 0.02), "epochs": (5, 10, 20), "rounds": (50, 100), "sigma": (2.0, 3.0, 4.0), "delta": (1e-5, 1e-6)},
        r"""A sampler tosses a coin for each record and round, with probability $q=<<q>>$ and independently over records, from a secret seed. Whoever wrote the training loop forgot to hand it the number of the epoch: each of the <<epochs>> epochs of <<rounds>> rounds repeats the batches of the first. The noise is fresh, with $\sigma=<<sigma>>$. What is $\varepsilon$ at $\delta=<<delta>>$ of this run, for a record added or removed?

One number, to three digits: the larger of both directions (upper end).""",
        _repeated,
    ),
)
