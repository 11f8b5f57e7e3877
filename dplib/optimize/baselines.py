"""What optimised encoders are compared with: the smallest errors of prefix sums that were known before [N-5].

Three ways to use a Toeplitz encoder that was optimised as if nothing were sampled:

    unamplified             batches in a fixed order, the same in every epoch; no amplification
    banded_poisson          h bands; a record may only join every h-th round, each with probability h / b
    banded_balls_in_bins    h bands; every record joins one random batch, the same in every epoch

Without sampling the release is a Gaussian mechanism, so that the best encoder has the smallest product of
sensitivity and error whatever (epsilon, delta) are: `without_amplification` finds it. One band is C = I, DP-SGD.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .. import balls_in_bins, gaussian, matrices
from .._base import validate as check
from .._base.lazy_scipy import optimize as scipy_optimize
from ..mechanisms.balls_in_bins import BallsInBins
from ..mechanisms.calibration import calibrate
from ..mechanisms.dpsgd import PoissonDPSGD
from ..results import UpperEnd
from . import arguments, coefficients, families, objectives, slopes

KINDS = ("exact", "certified", "estimate")
_KEPT, _MOST_KEPT = 1024, 2**13  # encoders, with at most so many rounds


@dataclass(frozen=True, eq=False)
class Baseline:
    """An encoder, and the noise that a way of sampling asks for.

    encoder : of `dplib.matrices`. bands : how many coefficients may differ from 0.
    noise_multiplier : sigma, the standard deviation of z over the clip norm.
    objective : error of prefix sums per round and coordinate at that noise. standard_error : of it; 0.0 unless sampled.
    kind : what is known of the noise multiplier. "exact" (closed form, or an exact bracket's safe side),
        "certified" (the upper end of a bracket meets the target), "estimate" (sampled: no guarantee).
    """

    encoder: object
    bands: int
    noise_multiplier: float
    objective: float
    standard_error: float
    kind: str
    _mechanism: PoissonDPSGD | BallsInBins

    def mechanism(self) -> PoissonDPSGD | BallsInBins:
        """What was accounted for: `PoissonDPSGD` (one round with everybody, where nothing is sampled) or `BallsInBins`."""
        return self._mechanism

    def __repr__(self):
        error = f" +- {self.standard_error:.1g}" if self.standard_error else ""
        return (
            f"Baseline(bands={self.bands}, noise_multiplier={self.noise_multiplier:.6g}, "
            f"objective={self.objective:.6g}{error}, {self.kind})"
        )


def without_amplification(
    rounds: int, *, bands: int | None = None, batches_per_epoch: int | None = None,
    objective: str = "rmse",
) -> matrices.Toeplitz:
    """The Toeplitz encoder with the smallest error times sensitivity, when nothing is sampled.

    Parameters
    ----------
    rounds : n >= 1. bands : coefficients that may differ from 0, 1 to n; None: all n.
    batches_per_epoch : b, for a record that takes part in every b-th round from any first one on (fixed order).
        None: for a record that takes part once, the sensitivity being a column norm.
    objective : "rmse" or "largest_error".

    With at most b bands, b a divisor of n, both sensitivities have the same minimiser: columns do not overlap.
    Coefficients are at least 0, the first is 1. A local minimum by L-BFGS-B, found again from other starts in
    the tests. Cost: n = 2,048: tenths of a second; kept for the next call. Raises ValueError or TypeError on bad input.

    >>> from dplib import encoder_baselines, matrices, utility
    >>> best = encoder_baselines.without_amplification(64)
    >>> cost = lambda encoder: utility.rmse(encoder) * encoder.column_norms().max()
    >>> bool(cost(best) < cost(matrices.optimal_counting(64)) < cost(matrices.identity(64)))
    True
    """
    n = check.whole("rounds", rounds, at_least=1, at_most=matrices.MOST_ROUNDS)
    bands = n if bands is None else check.whole("bands", bands, at_least=1, at_most=n)
    period = n
    if batches_per_epoch is not None:
        period = check.whole("batches_per_epoch", batches_per_epoch, at_least=1, at_most=n)
    largest = check.choice("objective", objective, objectives.NAMES) == "largest_error"
    if bands <= period and n % period == 0:
        period = n  # modes are sums of whole columns without common rows
    found = _kept if n <= _MOST_KEPT else _optimal
    return matrices.toeplitz(found(n, bands, period, largest))


def unamplified(
    *, epsilon: float, delta: float, batches_per_epoch: int, epochs: int,
    bands: int | Iterable[int] | None = None, objective: str = "rmse",
) -> Baseline:
    """Batches in a fixed order: no amplification, E participations, b rounds apart.

    Parameters
    ----------
    epsilon : at least 0. delta : in (0, 1). batches_per_epoch : b >= 1. epochs : E >= 1.
    bands : 1 to b E, or several of them; None: b E, all coefficients free, which is never worse.
    objective : "rmse" (root mean square over rounds) or "largest_error" (of a round).

    A Gaussian mechanism whose sensitivity is the largest norm of a mode [N-3.2]: the noise is exact, in both
    directions. Raises ValueError or TypeError on bad input.
    """
    ask = _Request(epsilon, delta, batches_per_epoch, epochs, objective)
    mu = gaussian.calibrate(ask.epsilon, ask.delta)

    def at(h):
        encoder = without_amplification(ask.n, bands=h, batches_per_epoch=ask.b, objective=objective)
        sensitivity = ask.mode_norm(encoder)
        return ask.baseline(encoder, h, sensitivity / mu, "exact", PoissonDPSGD(1 / mu, 1.0, 1))

    return ask.best(at, bands, ask.n, (ask.n,))


def banded_poisson(
    *, epsilon: float, delta: float, batches_per_epoch: int, epochs: int,
    bands: int | Iterable[int] | None = None, objective: str = "rmse",
) -> Baseline:
    """Poisson sampling for a banded encoder: the amplified banded factorisation.

    With h bands, rows h rounds apart have no common noise. A record that may only join rounds of one
    residue modulo h, each with probability h / b, costs ceil(n / h) subsampled Gaussian mechanisms of sensitivity
    max_t ||C e_t||; the batches have the expected size that they have with balls in bins.

    bands : h from 1 to b, or several of them; None: every h from 1 to b, and the best of them is returned.
    Other arguments and errors as for `unamplified`. The noise is certified, for both directions: the upper end of
    an exact bracket meets the target. Cost: 10 ms for each h, and once its encoder (tenths of a second).
    """
    ask = _Request(epsilon, delta, batches_per_epoch, epochs, objective)

    def at(h):
        encoder = without_amplification(ask.n, bands=h, objective=objective)
        mechanism = calibrate(
            PoissonDPSGD(1.0, h / ask.b, -(-ask.n // h)), epsilon=ask.epsilon, delta=ask.delta
        )
        sensitivity = float(np.max(encoder.column_norms()))
        return ask.baseline(encoder, h, mechanism.noise_multiplier * sensitivity, "certified", mechanism)

    return ask.best(at, bands, ask.b, range(1, ask.b + 1))


def banded_balls_in_bins(
    *, epsilon: float, delta: float, batches_per_epoch: int, epochs: int,
    bands: int | Iterable[int] | None = None, objective: str = "rmse", samples: int | None = None,
    seed: int = 0,
) -> Baseline:
    """Balls-in-bins batches for an encoder that was optimised without amplification.

    bands : 1 to b E, or several of them; None: 1, 2, 4, ... up to 2 b (at most b E), the best of which is returned.
    samples : lines of each estimate of delta (None: until the noise is good to 0.1%). seed : whole number at least 0.
    Other arguments and errors as for `unamplified`. One band, or one batch: an exact bracket's safe side.
    Else the noise is an estimate: `calibrate(result.mechanism(), ..., method="certificate")` makes it a guarantee.
    Cost: tenths of a second for each number of bands.
    """
    ask = _Request(epsilon, delta, batches_per_epoch, epochs, objective)
    if samples is not None:
        samples = check.whole("samples", samples, at_least=2, at_most=balls_in_bins.MOST_SAMPLES)
    seed = arguments.seed(seed)

    def at(h):
        encoder = without_amplification(ask.n, bands=h, batches_per_epoch=ask.b, objective=objective)
        start = BallsInBins(encoder, 1.0, ask.b, ask.epochs)
        if h == 1 or ask.b == 1:
            mechanism = calibrate(start, epsilon=ask.epsilon, delta=ask.delta, method="exact")
            return ask.baseline(encoder, h, mechanism.noise_multiplier, "exact", mechanism)
        found = balls_in_bins.estimate_noise(start.gram(), ask.epsilon, ask.delta, samples=samples, seed=seed)
        mechanism = BallsInBins(encoder, found.value, ask.b, ask.epochs)
        share = found.standard_error / found.value
        return ask.baseline(encoder, h, found.value, "estimate", mechanism, share)

    powers = [2**k for k in range(ask.n.bit_length()) if 2**k <= min(2 * ask.b, ask.n)]
    return ask.best(at, bands, ask.n, powers)


# ------------------------------------------------------------------------- what they share


class _Request:
    """The arguments that all have in common, checked."""

    def __init__(self, epsilon, delta, batches_per_epoch, epochs, objective):
        self.epsilon, self.delta = check.epsilon(epsilon), check.delta(delta)
        self.b, self.epochs = arguments.scheme(batches_per_epoch, epochs, fewest=1)
        self.n = self.b * self.epochs
        self.largest = check.choice("objective", objective, objectives.NAMES) == "largest_error"

    def mode_norm(self, encoder):
        """The largest norm of a mode: that of mode 0, of which the others are shifted and cut."""
        return float(np.linalg.norm(coefficients.mode(encoder.coefficients, self.b)))

    def baseline(self, encoder, bands, noise, kind, mechanism, share=0.0):
        error = noise * math.exp(slopes.log_error(encoder.coefficients, self.largest)[0])
        noise = noise if kind == "estimate" else UpperEnd(noise)
        return Baseline(encoder, bands, noise, error, share * error, kind, mechanism)

    def best(self, at, bands, most, default):
        """The smallest error among the wanted numbers of bands."""
        wanted = default
        if bands is not None:
            several = isinstance(bands, Iterable) and not isinstance(bands, str)
            wanted = [check.whole("bands", h, at_least=1, at_most=most) for h in (bands if several else [bands])]
            if not wanted:
                raise ValueError("bands must name at least one number of bands; got none")
        return min((at(h) for h in wanted), key=lambda found: found.objective)


def _optimal(n, bands, period, largest):
    """Coefficients, the first 1, that minimise log norm of mode 0 + log error."""
    if bands == 1:
        return matrices.identity(n).coefficients
    family = families.Free(n, bands, matrices.optimal_counting(n, bands).coefficients)

    def value(x):
        c = family.table(x)
        log_error, slope = slopes.log_error(c, largest)
        log_norm, norm_slope = _log_mode_norm(c, period)
        return log_error + log_norm, family.pull(x, slope + norm_slope)

    found = scipy_optimize.minimize(
        value, family.start, jac=True, method="L-BFGS-B", bounds=family.bounds,
        options={"maxiter": 500, "maxfun": 2000, "ftol": 1e-13, "gtol": 1e-8, "maxcor": 20},
    )  # fmt: skip
    return family.table(found.x)


_kept = lru_cache(maxsize=_KEPT)(_optimal)


def _log_mode_norm(c, period):
    """(log of the norm of mode 0, its gradient by c), for batches `period` rounds apart (any period from 1 to n)."""
    n = len(c)
    rows = -(-n // period)
    padded = np.zeros((rows, period))
    padded.flat[:n] = c
    mode = np.cumsum(padded, axis=0)
    mode.flat[n:] = 0.0
    square = float(np.sum(mode * mode))
    slope = np.cumsum(mode[::-1], axis=0)[::-1].ravel()[:n] / square
    return 0.5 * math.log(square), slope
