"""Optimising the encoder as published: plain sampling, automatic differentiation, gradient descent, in JAX [N-grad].

`optimize` here is the method that the book compares `dplib.optimize` with: thousands of plain draws from the pair of
balls in bins at every step, the noise multiplier at which their mean payoff is delta, and its slope by implicit
differentiation,

    d sigma / d C = -(d delta-hat / d C) / (d delta-hat / d sigma)     at delta-hat(sigma, C) = delta,

with both partial derivatives by automatic differentiation through C -> modes -> Gram matrix -> delta-hat. The draws
are shared out over all local devices (GPUs where JAX has them); the numbers do not depend on how many there are.

All results are estimates, never guarantees. JAX and Optax are loaded by the first call; inside, numbers have 64 bits,
and `jax.config` is left as it was. The draws depend on the version of JAX, nothing else on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from .._base.lazy_jax import double, load
from .._base.progress import bar
from ..matrices.toeplitz_encoders import reciprocal
from . import Optimized, _validated, arguments, families, jax_draws, objectives

if TYPE_CHECKING:
    import jax

MOST_SAMPLES = 2**26
_RATE = 0.05  # the largest learning rate
_MOST_ENTRIES = 2**27  # of the table of modes, 1 GiB
_ROOT = 1e-6  # of log delta in each step of the descent
_SLOPES, _DESCENT = range(2)  # streams of one seed


def draws(samples: int, batches: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """(bins, normals) that `noise_slope` uses with the same seed and number of samples [N-MC].

    samples : 2 to 2^26. batches : b, 1 to 8192. seed : whole number from 0 to 2^62. Returns NumPy arrays of shapes
    (samples,) and (samples, batches): which mode is added, and standard normal numbers.
    """
    samples, seed = _samples(samples), _seed(seed)
    batches = check.whole("batches", batches, at_least=1, at_most=8192)
    with double() as jax:
        stream = jax_draws.Draws(jax_draws.key_of(seed, _SLOPES), samples, batches, jax.local_devices()[:1])
        return tuple(np.asarray(part) for part in stream.all())


def noise_slope(
    table: ArrayLike, *, epsilon: float, delta: float, batches_per_epoch: int, samples: int = 2**17,
    seed: int = 0, devices: list | None = None,
) -> tuple[float, np.ndarray]:
    """The noise multiplier that (epsilon, delta) asks for, and its derivative by the encoder [N-grad].

    Parameters
    ----------
    table : Toeplitz coefficients, shape (n,), at least 0, the first above 0; n a multiple of batches_per_epoch, b.
    epsilon : above 0. delta : in (0, 1). samples : 2 to 2^26 draws; about 1 / delta are the fewest that mean anything.
    seed : whole number from 0 to 2^62. devices : list of JAX devices; None for all local ones. The answer does not
        depend on them beyond rounding.

    Returns (noise multiplier, slope), the slope of shape (n,). Both are estimates;
    the slope is the exact derivative of the noise multiplier as a function of C with these draws. Direction: remove,
    the larger one [C-9m]. Raises ValueError or TypeError on bad input.
    `dplib.optimize.noise_slope` is the same by lines, without automatic differentiation.

    >>> from dplib import matrices, published
    >>> table = matrices.optimal_counting(8).coefficients
    >>> noise, slope = published.noise_slope(table, epsilon=1.0, delta=1e-2, batches_per_epoch=4, samples=2**12)
    >>> bool(noise > 1 and slope[1] > 0)
    True
    """
    epsilon, delta = arguments.target(epsilon, delta)
    table, b = arguments.table(table, batches_per_epoch)
    _check_size(len(table), b)
    samples, seed, devices = _samples(samples), _seed(seed), _devices(devices)
    with double() as jax:
        stream = jax_draws.Draws(jax_draws.key_of(seed, _SLOPES), samples, b, devices)
        gram, back = jax.vjp(lambda c: gram_of(c, b), table)
        sigma, by_gram = _noise_and_slope(stream, np.asarray(gram), epsilon, delta)
        slope = np.array(back(by_gram)[0])
    return sigma, slope


def gram_of(table: jax.Array, batches: int) -> jax.Array:
    """Gram matrix of the modes of C for JAX, from Toeplitz coefficients, shape (n,) [N-3.2]."""
    numpy, n = load().numpy, len(table)
    # Mode i is mode 0, delayed by i rounds: rows of a long repetition of it, each begun one entry earlier.
    first = numpy.append(numpy.cumsum(table.reshape(-1, batches), axis=0).ravel(), numpy.zeros(batches))
    modes = numpy.tile(first, batches)[: batches * (n + batches - 1)].reshape(batches, -1)[:, :n]
    return modes @ modes.T


def error_of(table: jax.Array, largest: bool = False) -> jax.Array:
    """Error of the prefix sums at noise multiplier 1 for JAX [N-RMSE]: root mean square over rounds, or the largest."""
    numpy = load().numpy
    sums = numpy.cumsum(reciprocal(table, 1 / table[:1], numpy))
    squares = numpy.cumsum(sums**2)  # row t of A C^-1 holds the first t + 1 of them
    return numpy.sqrt(squares.max() if largest else squares.mean())


# ------------------------------------------------------------------------- gradient descent


def optimize(
    encoder_family: str | Callable = "toeplitz", *, epsilon: float, delta: float,
    batches_per_epoch: int, epochs: int, objective: str | Callable = "rmse",
    bands: int | None = None, buffers: int = 3, start: ArrayLike | None = None,
    samples: int = 2**17, steps: int = 300, fresh: bool = True, seed: int = 0,
    devices: list | None = None,
) -> Optimized:
    """The encoder of a family with a small error at (epsilon, delta), by the published method [N-grad].

    Parameters
    ----------
    encoder_family, epsilon, delta, batches_per_epoch, epochs, objective, bands, buffers, start : as for
        `dplib.optimize.optimize`.
    samples : plain draws in each step, 2 to 2^26; fewer than 1 / delta overfit them. steps : of gradient descent.
    optimiser : Adam of Optax, projected on coefficients at least 0; its rate falls from min(0.05, 2 / sqrt(number of
        parameters)) to 0 along a cosine: all coefficients move at once, and seven times as much diverges at n = 2,048. The
        source names neither. Parameters are sqrt(k + 1) c_k; the objective is divided by its first value.
    fresh : True draws anew in each step; False keeps the draws of the first step.
    seed : whole number from 0 to 2^62.
    devices : list of JAX devices; None for all local ones.

    Returns an `Optimized` of `dplib.optimize`, validated in the same way by fresh lines; `.history` has one row per step.
    Its noise multiplier is an estimate. Direction: remove is the larger one [C-9m].
    Raises ValueError or TypeError on bad input before any work.
    Cost: samples * b normals and four to six passes over them in every step; b = 32 and 2^17 samples: about half a CPU
    second per step, b = 128: three. `dplib.optimize.optimize` needs seconds altogether. Memory: as for `delta`.
    """
    epsilon, delta = arguments.target(epsilon, delta)
    b, epochs = arguments.scheme(batches_per_epoch, epochs)
    _check_size(b * epochs, b)
    samples, seed, devices = _samples(samples), _seed(seed), _devices(devices)
    steps = check.whole("steps", steps, at_least=1, at_most=10**6)
    fresh = check.flag("fresh", fresh)
    family = families.make(encoder_family, b * epochs, b, bands, buffers, start)
    objectives.make(objective).value(family.table(family.start), 1.0)  # refuses what has no value there
    with double():
        descent = _Descent(family, objective, b, epsilon, delta)
        x, history = descent.run(steps, samples, fresh, seed, devices)
    parameters = x if callable(encoder_family) else None
    return _validated(family.encoder(x), objective, epsilon, delta, b, history, parameters, seed=seed)


class _Descent:
    """Steps of gradient descent from the first parameters of a family."""

    def __init__(self, family, objective, batches, epsilon, delta):
        jax = load()
        self.family, self.b, self.epsilon, self.delta = family, batches, epsilon, delta
        largest = objective == "largest_error"

        def gram(x):
            return gram_of(family.table(x, jax.numpy), batches)

        def value(x, sigma):
            table = family.table(x, jax.numpy)
            return objective(table, sigma) if callable(objective) else sigma * error_of(table, largest)

        def total(x, sigma, by_gram):
            """(objective, its gradient by x), sigma moving along with the Gram matrix by `by_gram`."""
            found, (by_x, by_sigma) = jax.value_and_grad(value, argnums=(0, 1))(x, sigma)
            return found, by_x + jax.vjp(gram, x)[1](by_sigma * by_gram)[0]

        self.gram, self.total = jax.jit(gram), jax.jit(total)
        low, high = np.array(family.bounds or [(None, None)] * len(family.start), float).reshape(-1, 2).T
        self.bounds = np.nan_to_num(low, nan=-np.inf), np.nan_to_num(high, nan=np.inf)

    def slope(self, x, stream, guess=None):
        """(objective, noise multiplier, gradient of the objective) at x, from these draws."""
        gram = np.asarray(self.gram(x))
        sigma, by_gram = _noise_and_slope(stream, gram, self.epsilon, self.delta, start=guess, close=_ROOT)
        value, gradient = map(np.asarray, self.total(x, sigma, by_gram))
        if not (math.isfinite(value) and np.all(np.isfinite(gradient))):
            raise ValueError(f"objective must be finite, with a finite gradient; got {float(value)!r}")
        return float(value), sigma, gradient

    def run(self, steps, samples, fresh, seed, devices):
        """(last parameters, history)."""
        x = np.array(self.family.start, float)
        rule = _adam(steps, len(x))
        state, history = rule.init(x), []
        for number in bar(range(steps), "published method"):
            if number == 0 or fresh:
                key = jax_draws.key_of(seed, _DESCENT, number)
                stream = jax_draws.Draws(key, samples, self.b, devices)
            value, sigma, gradient = self.slope(x, stream, history[-1][1] if history else None)
            history.append((value, sigma))
            moves, state = rule.update(gradient / (abs(history[0][0]) or 1.0), state, x)
            x = np.clip(x + np.asarray(moves), *self.bounds)
            self.family.table(x)  # refuses what is no encoder
        return x, np.array(history)


def _adam(steps, parameters):
    import optax

    rate = min(_RATE, 2 / math.sqrt(max(parameters, 1)))
    return optax.adam(optax.cosine_decay_schedule(rate, steps))


# ------------------------------------------------------------------------- helpers


def _noise_and_slope(stream, gram, epsilon, delta, **options):
    """(sigma, d sigma / d gram) with the draws of a stream [N-grad]."""
    sigma = jax_draws.solve(stream, gram, epsilon, delta, **options)
    by_gram, by_sigma = stream.slopes(gram, sigma, epsilon)
    return sigma, -by_gram / by_sigma


def _check_size(rounds, batches):
    """The table of modes has an entry for each round and batch."""
    check.whole("rounds (batches_per_epoch * epochs)", rounds, at_least=2, at_most=_MOST_ENTRIES // batches)


def _samples(samples):
    return check.whole("samples", samples, at_least=2, at_most=MOST_SAMPLES)


def _seed(seed):
    return check.whole("seed", seed, at_least=0, at_most=2**62)


def _devices(devices):
    """All local devices for None."""
    jax = load()
    if devices is None:
        return jax.local_devices()
    if not isinstance(devices, (list, tuple)) or not devices or not all(isinstance(d, jax.Device) for d in devices):
        raise TypeError(f"devices must be a list of JAX devices, or None; got {devices!r}")
    return list(devices)
