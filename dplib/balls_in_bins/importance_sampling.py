"""Delta of balls in bins by importance sampling and integration along lines [A-17]: an estimate.

With w = mean_l exp(y_l) the likelihood ratio P/Q of [N-3.2], y normal under Q with covariance
`gram` and mean minus half its diagonal,

    remove:  delta = E_Q (w - e^epsilon)_+          add:  delta = E_Q (1 - e^epsilon w)_+ .

A proposal (module `proposal_remove`) draws lines that meet the region where the integrand is not zero,
and the integral along each line is taken by four places beyond its crossing (module `line_integral`).
The arguments were checked by the room's face. Blocks of lines are independent and unbiased; inside a block the points belong to one lattice
(module `points`), so that errors are measured between blocks. An estimate is never a guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from .. import gaussian
from .._base import random_blocks
from ..results import NoBracketError
from .proposal_add import AddProposal
from .proposal_remove import RemoveProposal

BLOCKS = 32  # independent blocks, whose scatter gives the standard error
STUDENT = 2.0395134463964077  # quantile at .975 of Student's law for so many blocks
_PILOT, _RUN = 2, 3  # first keys of the random streams
_FEWEST, _MOST = 32, 2**16  # lines of a block, of all blocks unless a number of them is asked for
_WORK = 2**30  # lines times batches squared, beyond which that number falls
_STEPS = 60
_LEAST_NORM = 1e-12  # of the largest mode
_LOWEST = -1e4  # log of the smallest delta of a fixed batch that is looked at
_CLOSE = 0.1  # in log delta: the last step of Newton's method may be so long


class Estimator:
    """Unbiased estimates of one delta of balls in bins, from independent blocks of lines [A-17].

    Parameters
    ----------
    gram : shape (b, b), inner products of the modes in units of the noise (see `gram.gram`, over sigma^2).
    epsilon : at least 0.
    side : "remove" or "add". seed : whole number; it fixes the proposal, together with the other arguments.
    like : None, or an estimator for a problem close by, whose choice of proposals is taken over.

    `log_scale` is a rough log delta. `relative_variance` is that of one line, as the pilot saw it.
    The object holds arrays alone and can be sent to other processes.
    """

    def __init__(self, gram, epsilon, side, seed=0, like=None):
        self.gram, self.epsilon, self.side, self.seed = gram, epsilon, side, seed
        largest = math.sqrt(np.max(np.diag(self.gram)))
        if gaussian.log_delta(largest, self.epsilon) < _LOWEST:
            raise ValueError(
                f"epsilon must be smaller for this noise: delta is below exp({_LOWEST:g}); got {epsilon!r}"
            )
        if largest < _LEAST_NORM:
            raise NoBracketError(
                f"the noise is too large to sample: the modes have norms up to {largest:.3g} in units of the noise, and losses so small are lost in rounding"
            )
        rng = random_blocks.generator(seed, (_PILOT, int(side == "add")), 0)
        make = RemoveProposal if side == "remove" else AddProposal
        self.proposal = make(self.gram, self.epsilon, rng, like and like.proposal)
        self.log_scale, self.relative_variance = self.proposal.log_scale, self.proposal.relative_variance


@dataclass(frozen=True)
class Sampled:
    """An estimate of log delta, from `samples` lines in independent blocks.

    relative_error : standard error over value, which is about the standard error of `log_value`.
    d_log_sigma, d_epsilon : derivatives of log delta.
    """

    log_value: float
    relative_error: float
    samples: int
    d_log_sigma: float
    d_epsilon: float


def estimate(gram, epsilon, side, *, seed=0, samples=None, relative_error=0.01) -> Sampled:
    """Log delta by 32 independent blocks of lines.

    samples : lines in all, rounded up to a multiple of 32; None for as many as the error asks for, up to 2^16
        (with more than 128 batches 2^30 over their square, but at least 2^11).
    relative_error : the standard error over the value that is aimed at, 1e-5 to 0.5; ignored with `samples`.
        Where the lines do not suffice for it, that of the result is larger.
    """
    return run(Estimator(gram, epsilon, side, seed), samples=samples, relative_error=relative_error)


def run(estimator, *, samples=None, relative_error=0.01) -> Sampled:
    """As `estimate`, for an estimator that stands."""
    if samples is not None:
        size = -(-samples // BLOCKS)
        return _summary(estimator, _blocks(estimator, size, 0), size)
    # Lattice points need fewer lines than the variance of single ones says, the more so where it is small.
    wanted = estimator.relative_variance / relative_error**2 / BLOCKS
    wanted *= 0.6 if estimator.relative_variance > 0.3 else 0.25
    most = min(max(_WORK // len(estimator.gram) ** 2, _MOST >> 5), _MOST) // BLOCKS
    size = _rounded(wanted, most)
    blocks, attempt = _blocks(estimator, size, 0), 0
    while True:
        result = _summary(estimator, blocks, size)
        if result.relative_error <= relative_error or size >= most:
            return result
        # Each block goes on, so that their number stays the same.
        attempt += 1
        more = size * min(1.1 * (result.relative_error / relative_error) ** 2, 64.0) - size
        more = _rounded(more, most - size)
        blocks = (size * blocks + more * _blocks(estimator, more, attempt)) / (size + more)
        size += more


def _rounded(size, most):
    """At most about `most`: a power of two up to 512, multiples of 128 from there on."""
    size = max(min(size, most), _FEWEST)
    return 1 << math.ceil(math.log2(size)) if size <= 512 else 128 * math.ceil(size / 128)


def block_task(estimator, size, rng, _):
    """One block, as `random_blocks.run` wants it: means over `size` lines, each over exp(log_scale), shape (3,).

    delta, d delta / d log sigma, and d delta / d epsilon; each unbiased. A power of two makes the
    most of the lattice. Working memory is about 100 bytes per line and batch in steps of 512 lines.
    """
    return np.mean(estimator.proposal.lines(rng, size, estimator.log_scale), axis=1)


def _blocks(estimator, size, attempt):
    """Results of the blocks, shape (BLOCKS, 3)."""
    key = (_RUN, int(estimator.side == "add"), attempt)
    return np.array(random_blocks.run(partial(block_task, estimator, size), BLOCKS, seed=estimator.seed, key=key))


def _summary(estimator, blocks, size):
    value, by_sigma, by_epsilon = np.mean(blocks, axis=0)
    error = np.std(blocks[:, 0], ddof=1) / math.sqrt(BLOCKS)
    log_value = estimator.log_scale + math.log(value)
    if estimator.side == "add" and log_value > -math.log(2):
        # What is missing to 1 lies on few lines: as if one more line had found all of it.
        error = math.hypot(error, value / (size * BLOCKS))
    return Sampled(
        log_value,
        float(error / value),
        size * BLOCKS,
        float(by_sigma / value),
        float(by_epsilon / value),
    )


# --- inversion -----------------------------------------------------------------------------------------


def solve_scale(gram, epsilon, delta, side, *, seed=0, samples=None, relative_error=0.01, start=None):
    """The sigma at which delta of gram / sigma^2 is `delta`: (sigma, standard error).

    gram : inner products of the modes for noise multiplier 1. samples, relative_error : of the last
    estimate of delta; that of sigma is smaller by |d log delta / d log sigma|, often 10 to 50.
    start : a sigma to start from, None for a guess.
    """
    def make(sigma, like):
        return Estimator(gram / sigma**2, epsilon, side, seed, like)

    start = 1 / _mean_shift(gram, epsilon, delta) if start is None else start
    return _newton(
        make, lambda found, sigma: found.d_log_sigma / sigma, start, delta, samples, relative_error, False
    )


def solve_epsilon(gram, delta, side, *, seed=0, samples=None, relative_error=0.01):
    """The epsilon at which delta is `delta`: (epsilon, standard error); (0, 0) where delta is below it at 0.

    gram : inner products of the modes in units of the noise. Others as for `solve_scale`.
    """
    average = math.sqrt(np.mean(gram))
    single = math.sqrt(np.max(np.diag(gram)))
    if gaussian.delta(single, 0.0) < delta * (1 - 1e-9):  # of the largest mode alone: an upper bound
        return 0.0, 0.0
    start = max(gaussian.epsilon(average, delta), gaussian.epsilon(single, delta) - math.log(len(gram)), 0.0)

    def make(epsilon, like):
        return Estimator(gram, epsilon, side, seed, like)

    return _newton(make, lambda found, _: found.d_epsilon, start, delta, samples, relative_error, True)


def _mean_shift(gram, epsilon, delta):
    """1 / sigma of the better of two problems that have less delta, about: all modes their mean, or one of b modes."""
    average, single = math.sqrt(np.mean(gram)), math.sqrt(np.max(np.diag(gram)))
    every = gaussian.calibrate(epsilon, delta) / average
    one = gaussian.calibrate(epsilon + math.log(len(gram)), delta) / single
    return min(every, one)


def _newton(make, slope_of, place, delta, samples, relative_error, zero_allowed):
    """Newton's method for sqrt(-log delta), which is nearly a straight line: (root, standard error)."""
    goal, like = math.log(delta), None
    for step in range(_STEPS):
        estimator = make(place, like)
        found = run(estimator, relative_error=max(0.05, relative_error))
        gap = abs(found.log_value - goal)
        if gap < _CLOSE:
            found = run(estimator, samples=samples, relative_error=relative_error)
        slope = slope_of(found, place)
        if slope == 0:
            break
        height = math.sqrt(max(-found.log_value, 1e-12))
        move = (height - math.sqrt(-goal)) * 2 * height / slope
        if gap < _CLOSE:
            return max(place + move, 0.0), found.relative_error / abs(slope)
        if zero_allowed and place == 0 and move <= 0:
            return 0.0, 0.0
        lowest = 0.0 if zero_allowed else place / 3
        # After some steps without an end, ever smaller ones.
        bound = max(place, 1.0) * (1.0 if step < _STEPS // 2 else 0.1)
        place = max(place + min(max(move, -bound), bound), lowest)
        like = estimator if gap < 3 else None
    raise NoBracketError(f"no convergence towards delta = {delta!r}; last tried {place!r}")
