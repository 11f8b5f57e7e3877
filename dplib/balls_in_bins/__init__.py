"""Monte Carlo accounting of balls in bins, from the Gram matrix of its modes alone [N-3.2], [M-K].

With b batches per epoch the dominating pair is P = (1/b) sum_j N(m_j, sigma^2 I) against
Q = N(0, sigma^2 I). Everything here takes `gram`, the (b, b) matrix <m_i, m_j> / sigma^2
(`BallsInBins.gram()` over sigma^2), and draws b normals per sample, however many rounds there are:

    plain     the average of (1 - e^(epsilon - loss))_+, as published [N-MC]: an Estimate
    estimate  the same number by lines through the region of large loss [A-17]: an Estimate
    certify   an upper bound with a stated probability of failure [A-15]: a Certificate
    release   Estimate-Verify-Release: accepts or refuses a claim of (epsilon, delta) [N-2.1]

Direction "remove" integrates over P against Q, "add" over Q against P; "both" is the larger,
which for every mixture of Gaussians is remove [C-9m].
Draws come from `random_blocks`: the same seed gives the same numbers, with any number of workers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from .._base import random_blocks
from .._base import validate as check
from .._base.validate import Direction
from ..results import Certificate, Estimate, UpperEnd
from . import certificate, confidence_bounds, importance_sampling, tuple_sampler
from .gram import check_gram
from .lognormal_sum import log_ceiling

CONFIDENCE = 0.975  # of the upper ends of estimates
QUANTILE = 1.959963984540054  # of the normal law at CONFIDENCE, for the mean of thousands of draws,
NORMAL = 0.03  # where its relative standard error is at most so much; else few draws may decide
FLOOR = 1e-300  # an estimate of delta below it is reported as this
MOST_SAMPLES = 10**8
TUPLES, FEWEST_TUPLES = 2**17, 1000  # of a certificate
_PLAIN, _VERIFY = 1, 6  # streams of one seed
_BLOCK_ENTRIES = 2**19  # normals in one block, 4 MiB


def plain(
    gram: ArrayLike, epsilon: float, direction: Direction = "both", *, samples: int = 2**17,
    seed: int = 0,
) -> Estimate:
    """The published estimator of delta: the mean of (1 - e^(epsilon - loss))_+ over draws from the pair [N-MC].

    Parameters
    ----------
    gram : shape (b, b), inner products of the modes over sigma^2.
    epsilon : at least 0. direction : "remove", "add" or "both" (the larger: remove [C-9m]).
    samples : draws. seed : whole number at least 0.

    Returns an Estimate. Its `upper` is the Chernoff-Hoeffding bound for means of numbers in [0, 1], valid for
    any number of samples. The relative standard error is about sqrt(1 / (samples delta)) or more: for
    delta = 1e-8 use `estimate`. Raises ValueError or TypeError on bad input.
    """
    gram, epsilon, side = _request(gram, epsilon, direction)
    samples = check.whole("samples", samples, at_least=2, at_most=MOST_SAMPLES)
    return _plain(gram, epsilon, side, samples, seed, _PLAIN)


def estimate(
    gram: ArrayLike, epsilon: float, direction: Direction = "both", *, samples: int | None = None,
    relative_error: float = 0.01, seed: int = 0,
) -> Estimate:
    """delta by line integration: lines through the region of large loss, integrated along [A-17].

    Parameters
    ----------
    gram : shape (b, b), inner products of the modes over sigma^2.
    epsilon : at least 0. direction : "remove", "add" or "both" (the larger: remove [C-9m]).
    samples : lines; None for as many as `relative_error` takes, at most 65,536 (fewer with more than 128 batches).
    relative_error : the standard error that is wanted over delta, in [1e-5, 0.5].
    seed : whole number at least 0.

    Returns an Estimate, never a guarantee; `upper` takes the means of 32 blocks of lines for normal variables. Where delta is
    below 1e-300 the value is 1e-300 and the method says so; and where the lines did not suffice for
    `relative_error`, the standard error is larger and the method says so, too.
    Cost: some thousand lines, 0.1 to 0.5 s at b = 128, for any delta; seconds where few bands are used.
    Raises ValueError or TypeError on bad input, NoBracketError where no mode is as long as 1e-12.

    >>> import numpy as np
    >>> from dplib import montecarlo
    >>> found = montecarlo.estimate(np.eye(4), epsilon=1.0)
    >>> bool(found.standard_error < 0.01 * found.value)
    True
    """
    gram, epsilon, side = _request(gram, epsilon, direction)
    samples, error = _effort(samples, relative_error)
    ceiling = log_ceiling(gram.diagonal().max(), epsilon)
    if ceiling < math.log(FLOOR):
        return _below_floor()
    found = importance_sampling.estimate(gram, epsilon, side, seed=_seed(seed), samples=samples, relative_error=error)
    if found.log_value < math.log(FLOOR):
        return _below_floor()
    value = math.exp(min(found.log_value, ceiling))
    deviation = value * found.relative_error
    upper = min(value + importance_sampling.STUDENT * deviation, math.exp(ceiling))
    return Estimate(value, deviation, upper, CONFIDENCE, confidence_bounds.named("lines", samples, found.relative_error, error))


def estimate_epsilon(
    gram: ArrayLike, delta: float, direction: Direction = "both", *, samples: int | None = None,
    relative_error: float = 0.01, seed: int = 0,
) -> Estimate:
    """epsilon at which the estimated delta is `delta`, with common random numbers; arguments as for `estimate`."""
    delta = check.delta(delta)
    gram, _, side = _request(gram, 0.0, direction)
    samples, error = _effort(samples, relative_error)
    return _root(importance_sampling.solve_epsilon(gram, delta, side, seed=_seed(seed), samples=samples, relative_error=error))


def estimate_noise(
    gram: ArrayLike, epsilon: float, delta: float, direction: Direction = "both", *,
    samples: int | None = None, relative_error: float = 0.01, seed: int = 0,
) -> Estimate:
    """The noise multiplier at which the estimated delta at `epsilon` is `delta`; gram at noise multiplier 1.

    Newton's method in log-log with the same draws for every noise; other arguments as for `estimate`.
    The relative standard error is about a tenth of that of delta: delta falls fast with the noise. epsilon in [0, 1e6], delta in [1e-300, 0.99].
    """
    check.target_epsilon(epsilon)
    delta = check.real("delta", delta, at_least=1e-300, at_most=0.99)
    gram, epsilon, side = _request(gram, epsilon, direction)
    samples, error = _effort(samples, relative_error)
    return _root(importance_sampling.solve_scale(gram, epsilon, delta, side, seed=_seed(seed), samples=samples, relative_error=error))


def certify(
    gram: ArrayLike, epsilon: float, direction: Direction = "both", *, samples: int = TUPLES,
    failure_probability: float = 1e-9, seed: int = 0,
) -> Certificate:
    """An upper bound on delta that is too small with at most the stated probability [A-15].

    Parameters
    ----------
    gram : shape (b, b), inner products of the modes over sigma^2, taken as exact: round it up
        (delta grows with every entry [M-K]).
    epsilon : at least 0. direction : "remove", "add" or "both" (the larger: remove [C-9m]).
    samples : independent tuples. The bound is some per cent above delta from
        about 100,000 on; the number does not grow with 1 / delta.
    failure_probability : beta in (0, 1), over the draws. One claim of (epsilon, delta)-privacy, fixed before the
        draws, is proved if the bound is at most delta and beta is at most delta [N-2.1]. Where several mechanisms
        are tried, certify delta - beta, beta being the sum over all tries [N-2.1s]: `BallsInBins.certified` does.
    seed : whole number at least 0.

    Floating-point rounding is included. Raises ValueError on bad input, and where so few samples give no
    bound worth having; the message says about how many would.
    """
    gram, epsilon, side = _request(gram, epsilon, direction)
    samples = check.whole("samples", samples, at_least=FEWEST_TUPLES, at_most=MOST_SAMPLES)
    beta = check.real("failure_probability", failure_probability, above=0, below=1)
    upper = math.exp(log_ceiling(gram.diagonal().max(), epsilon))
    # Where all modes are equal it is exact.
    if upper > FLOOR and gram.min() < gram.max():
        try:
            upper = min(upper, certificate.certify(gram, epsilon, side, samples, beta, _seed(seed)))
        except tuple_sampler.OutOfRange:
            # Modes so long that delta is nearly 1, unless they are of very different lengths.
            rough = importance_sampling.estimate(gram, epsilon, side, seed=_seed(seed), relative_error=0.1)
            if upper > 2 * math.exp(rough.log_value):
                raise
    return Certificate(max(upper, FLOOR), beta, samples, "tuples")


# --- Estimate-Verify-Release -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Release:
    """What Estimate-Verify-Release decided.

    accepted : whether the mechanism may be run. epsilon, delta : the guarantee of the whole procedure.
    threshold : what the estimate had to stay below. estimate : of delta. samples : fresh samples drawn.

    True where accepted: `if release(...):`.
    """

    accepted: bool
    epsilon: float
    delta: float
    threshold: float
    estimate: Estimate
    samples: int

    def __bool__(self):
        return self.accepted

    def __str__(self):
        verdict, sign = ("accepted", "<=") if self.accepted else ("refused", ">")
        return (
            f"{verdict}: estimate {self.estimate.value:.4g} {sign} threshold {self.threshold:.4g} "
            f"({self.samples} samples; the procedure is ({UpperEnd(self.epsilon):g}, {UpperEnd(self.delta):g})-DP)"
        )


def verification_samples(threshold: float, final: float) -> int:
    """Samples after which an estimate at most `threshold` verifies delta = `final` [N-2.1].

    ceil(log(1 / final) / kl(threshold || final)): if delta were larger than `final`, the mean of so
    many numbers in [0, 1] would be at most `threshold` with probability at most `final` (Chernoff and Hoeffding).

    Parameters: 0 < threshold < final < 1. About 2 log(1 / final) final / (final - threshold)^2.
    """
    final = check.real("final", final, above=0, below=1)
    threshold = check.real("threshold", threshold, above=0, below=final)
    # Rounded up by more than the rounding of the logarithms.
    rounding = 1 + 1e-15 * (final / (final - threshold)) ** 2
    return math.ceil(math.log(1 / final) / confidence_bounds.relative_entropy(threshold, final) * rounding)


def release(
    gram: ArrayLike, epsilon: float, delta: float, *, threshold: float | None = None,
    most_samples: int = MOST_SAMPLES, seed: int = 0,
) -> Release:
    """Estimate-Verify-Release: verify a claim of (epsilon, delta) with fresh plain samples [N-2.1].

    Parameters
    ----------
    gram : shape (b, b), inner products of the modes over sigma^2.
    epsilon : at least 0. delta : in (0, 1), the guarantee of the whole procedure.
    threshold : in (0, delta); None for 0.8 delta.
    most_samples : largest number of samples.
    seed : of samples that were not used to choose the noise or the encoder: take another one than there.

    Returns a `Release`. Accepted is what has an estimate of at most `threshold`. The procedure "run the mechanism
    if accepted, else nothing" is (epsilon, delta)-DP: were the true delta larger, the test would pass with
    probability at most delta. The source asks for both directions; here remove is the larger one [C-9m], and is
    tested alone. A refusal proves nothing, and this is a statement about one claim: whoever goes on to another
    noise, epsilon or seed after a refusal, k times at most, verifies delta / k each time [N-2.1s]. The rounding of floating-point numbers is not accounted for, unlike in
    `certify`. Raises ValueError where the rule asks for more samples than `most_samples`, and on bad input.
    """
    gram, epsilon, side = _request(gram, epsilon, "both")
    delta = check.delta(delta)
    threshold = 0.8 * delta if threshold is None else check.real("threshold", threshold, above=0, below=delta)
    most = check.whole("most_samples", most_samples, at_least=2)
    samples = max(verification_samples(threshold, delta), 2)  # a standard error takes two
    if samples > most:
        raise ValueError(
            f"most_samples must be at least {UpperEnd(samples):.4g} to verify delta={delta!r} at the threshold {threshold:.4g}; "
            f"got {most_samples!r} (`certify` proves it with far fewer)"
        )
    found = _plain(gram, epsilon, side, samples, seed, _VERIFY)
    return Release(found.value <= threshold, epsilon, delta, threshold, found, samples)


# --- helpers -----------------------------------------------------------------------------------------------


def _request(gram, epsilon, direction):
    """The checked arguments, with the direction to compute."""
    epsilon, side = check.epsilon(epsilon), check.side(direction)
    return check_gram("gram", gram), epsilon, side


def _effort(samples, relative_error):
    if samples is not None:
        samples = check.whole("samples", samples, at_least=2, at_most=MOST_SAMPLES)
    return samples, check.real("relative_error", relative_error, at_least=1e-5, at_most=0.5)


def _seed(seed):
    return check.whole("seed", seed, at_least=0, at_most=random_blocks.LARGEST_SEED)


def _root(found):
    value, deviation = found
    return Estimate(value, deviation, value + importance_sampling.STUDENT * deviation, CONFIDENCE, "lines")


def _below_floor():
    return Estimate(FLOOR, 0.0, FLOOR, CONFIDENCE, f"lines; below {FLOOR:g}")


def _plain(gram, epsilon, side, samples, seed, stream):
    """Plain sampling in one direction."""
    size = min(max(64, _BLOCK_ENTRIES // len(gram)), samples)
    blocks = -(-samples // size)
    sums = random_blocks.run(
        partial(_plain_block, gram, _factor(gram), epsilon, side, samples, size),
        blocks,
        seed=_seed(seed),
        key=(stream, int(side == "add")),
        description=f"samples ({side})",
    )
    first, second = (math.fsum(column) for column in zip(*sums))
    mean = first / samples
    error = math.sqrt(max(second / samples - mean**2, 0.0) / (samples - 1))
    upper = confidence_bounds.chernoff_hoeffding(mean, samples, 1 - CONFIDENCE)
    return Estimate(mean, error, max(upper, mean), CONFIDENCE, "plain sampling")


def _plain_block(gram, factor, epsilon, side, samples, size, rng, index):
    """Sum of payoffs and of their squares; the last block may be smaller."""
    count = min(size, samples - index * size)
    y = rng.standard_normal((count, len(gram))) @ factor.T
    if side == "remove":
        y += gram[rng.integers(len(gram), size=count)]
    y -= gram.diagonal() / 2
    top = y.max(axis=1)
    y -= top[:, None]
    loss = top + np.log(np.mean(np.exp(y, out=y), axis=1))
    payoff = -np.expm1(np.minimum(epsilon - (loss if side == "remove" else -loss), 0.0))
    return np.array([payoff.sum(), payoff @ payoff])


def _factor(gram):
    """L with L L' = gram up to rounding; a Gram matrix may be singular."""
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0.0))
