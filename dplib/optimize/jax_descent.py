"""Optimising the encoder as published: plain sampling, automatic differentiation, gradient descent, in JAX [N-grad].

`optimize` here is the method that the book compares `dplib.optimize` with: thousands of plain draws from the pair of
balls in bins at every step, the noise multiplier at which their mean payoff is delta, and its slope by implicit
differentiation,

    d sigma / d C = -(d delta-hat / d C) / (d delta-hat / d sigma)     at delta-hat(sigma, C) = delta,

with both partial derivatives by automatic differentiation through C -> modes -> Gram matrix -> delta-hat. The draws
are shared out over all local devices (GPUs where JAX has them); the numbers do not depend on how many there are.

All results are estimates, never guarantees. JAX and Optax are loaded by the first call; inside, numbers have 64 bits,
and `jax.config` is left as it was. The draws depend on the version of JAX, nothing else on it. With dtype="float32" what
has an entry for each draw and bin has 32 bits, for devices that are slow with 64; noise multipliers and errors that a
function returns are computed with 64 bits all the same.

Memory of a device, b batches per epoch: up to 2^25 normals, 256 MiB, are kept between the passes over the draws (128 MiB
with 32 bits; more draws are made anew in each pass). Beside them a pass takes at most 80 bytes for each of the chunk * b
numbers that it works on at once (50 with 32 bits), and as many for the b * b of a Gram matrix, as compiled for CPUs and
however many samples there are: b = 512 with 2^20 draws fits in 120 MiB.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .._base import validate as check
from .._base.checkpoints import bar
from .._base.lazy_jax import double, load
from . import Optimized, _validated, arguments, families, jax_draws, objectives

if TYPE_CHECKING:
    import jax

MOST_SAMPLES = 2**26
_RATE = 0.05  # the largest learning rate
_MOST_ENTRIES = 2**27  # of the table of modes, 1 GiB
_ROOT = 1e-6  # of log delta in each step of the descent
_SLOPES, _DESCENT = range(2)  # streams of one seed


def draws(samples: int, batches: int, seed: int = 0, dtype: str = "float64") -> tuple[np.ndarray, ...]:
    """(bins, normals) that `noise_slope` uses with the same seed and number of samples [N-MC].

    samples : 2 to 2^26. batches : b, 1 to 8192. seed : whole number from 0 to 2^62. dtype : "float64", or "float32" for
    the same numbers, rounded. Returns NumPy arrays of shapes (samples,) and (samples, batches): which mode is added, and
    standard normal numbers. Raises ValueError or TypeError on bad input.
    """
    samples, seed = _samples(samples), arguments.seed(seed)
    batches = check.whole("batches", batches, at_least=1, at_most=8192)
    check.choice("dtype", dtype, jax_draws.DTYPES)
    with double() as jax:
        key = jax_draws.key_of(seed, _SLOPES)
        stream = jax_draws.Draws(key, samples, batches, jax.local_devices()[:1], dtype)
        return tuple(np.asarray(part) for part in stream.all())


def noise_slope(
    table: ArrayLike, *, epsilon: float, delta: float, batches_per_epoch: int, samples: int = 2**17,
    seed: int = 0, devices: list | None = None, dtype: str = "float64", chunk: int | None = None,
) -> tuple[float, np.ndarray]:
    """The noise multiplier that (epsilon, delta) asks for, and its derivative by the encoder [N-grad].

    Parameters
    ----------
    table : Toeplitz coefficients, shape (n,), or a lower-triangular array, shape (n, n), entries at least 0 and above
        0 on the diagonal; n a multiple of batches_per_epoch, b.
    epsilon : above 0. delta : in (0, 1). samples : 2 to 2^26 draws; about 1 / delta are the fewest that mean anything.
    seed : whole number from 0 to 2^62. devices : list of JAX devices; None for all local ones. The answer does not
        depend on them beyond rounding.
    dtype : "float64", or "float32" for the slope: the same draws, rounded. The noise multiplier is solved for with 64
        bits in both cases, from where 32 lead; the slope has about five digits then.
    chunk : draws that a device works on at once, 1 to 2^30 / b, rounded up to whole blocks; None for one block, which has
        at most a sixteenth of the draws (rounded up to a power of two) and 2^20 normals. More is faster on a GPU and takes
        more memory. The answer does not depend on it beyond rounding.

    Returns (noise multiplier, slope), the slope of the shape of the table (0 above the diagonal). Both are estimates;
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
    samples, seed, devices = _samples(samples), arguments.seed(seed), _devices(devices)
    work = _work(dtype, chunk, b)
    with double() as jax:
        key = jax_draws.key_of(seed, _SLOPES)
        gram, back = jax.vjp(lambda c: gram_of(c, b), table)
        gram = np.asarray(gram)
        sigma, by_gram = _noise_and_slope(jax_draws.Draws(key, samples, b, devices, *work), gram, epsilon, delta)
        slope = np.array(back(by_gram)[0])
        if dtype != "float64":
            exact = jax_draws.Draws(key, samples, b, devices, "float64", chunk)
            sigma, _ = jax_draws.solve(exact, gram, epsilon, delta, start=sigma)
    return sigma, np.tril(slope) if slope.ndim == 2 else slope


def gram_of(table: jax.Array, batches: int) -> jax.Array:
    """Gram matrix of the modes of C for JAX: from Toeplitz coefficients, shape (n,), or entries, (n, n) [N-3.2]."""
    numpy, n = load().numpy, len(table)
    if table.ndim == 2:
        modes = table.reshape(n, -1, batches).sum(axis=1).T
    else:
        # Mode i is mode 0, delayed by i rounds: rows of a long repetition of it, each begun one entry earlier.
        first = numpy.append(numpy.cumsum(table.reshape(-1, batches), axis=0).ravel(), numpy.zeros(batches))
        modes = numpy.tile(first, batches)[: batches * (n + batches - 1)].reshape(batches, -1)[:, :n]
    return modes @ modes.T


def error_of(table: jax.Array, largest: bool = False) -> jax.Array:
    """Error of the prefix sums at noise multiplier 1 for JAX [N-RMSE]: root mean square over rounds, or the largest."""
    jax = load()
    numpy, n = jax.numpy, len(table)
    if table.ndim == 2:
        ones = numpy.tril(numpy.ones((n, n), table.dtype))
        decoder = jax.scipy.linalg.solve_triangular(table, ones.T, lower=True, trans="T").T  # D C = A
        squares = (decoder**2).sum(axis=1)
    else:
        sums = numpy.cumsum(_reciprocal(table))
        squares = numpy.cumsum(sums**2)  # row t of A C^-1 holds the first t + 1 of them
    return numpy.sqrt(squares.max() if largest else squares.mean())


# ------------------------------------------------------------------------- gradient descent


def optimize(
    encoder_family: str | Callable = "toeplitz", *, epsilon: float, delta: float,
    batches_per_epoch: int, epochs: int, objective: str | Callable = "rmse",
    bands: int | None = None, buffers: int = 3, start: ArrayLike | None = None,
    samples: int = 2**17, steps: int = 300, fresh: bool = True, seed: int = 0,
    devices: list | None = None, dtype: str = "float64", chunk: int | None = None, callback: Callable | None = None,
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
    devices : list of JAX devices; None for all local ones. dtype, chunk : as for `noise_slope`, for the steps.
    callback : function of (number of the step, objective, noise multiplier), called after each step, as in SciPy; the two
        are those of the step's draws.

    Returns an `Optimized` of `dplib.optimize`, validated in the same way by fresh lines with 64 bits, whatever `dtype`;
    `.history` has one row per step, with the precision of the steps.
    Its noise multiplier is an estimate. Direction: remove is the larger one [C-9m].
    Raises ValueError or TypeError on bad input before any work.
    Cost: samples * b normals and four to six passes over them in every step; b = 32 and 2^17 samples: about half a CPU
    second per step, b = 128: three. `dplib.optimize.optimize` needs seconds altogether. Memory: see the module.
    """
    epsilon, delta = arguments.target(epsilon, delta)
    b, epochs = arguments.scheme(batches_per_epoch, epochs)
    _check_size(b * epochs, b)
    samples, seed, devices = _samples(samples), arguments.seed(seed), _devices(devices)
    work = _work(dtype, chunk, b)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function, or None; got {callback!r}")
    steps = check.whole("steps", steps, at_least=1, at_most=10**6)
    fresh = check.flag("fresh", fresh)
    family = families.make(encoder_family, b * epochs, b, bands, buffers, start)
    objectives.make(objective).value(family.table(family.start), 1.0)  # refuses what has no value there
    with double():
        descent = _Descent(family, objective, b, epsilon, delta)
        x, history = descent.run(steps, samples, fresh, seed, (devices, *work), callback)
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

    def run(self, steps, samples, fresh, seed, work, callback=None):
        """(last parameters, history); work : devices, precision and chunk of the draws."""
        x = np.array(self.family.start, float)
        rule = _adam(steps, len(x))
        state, history = rule.init(x), []
        for number in bar(range(steps), "published method"):
            if number == 0 or fresh:
                stream = None  # lets the last step's draws go before there are new ones
                key = jax_draws.key_of(seed, _DESCENT, number)
                stream = jax_draws.Draws(key, samples, self.b, *work)
            value, sigma, gradient = self.slope(x, stream, history[-1][1] if history else None)
            history.append((value, sigma))
            moves, state = rule.update(gradient / (abs(history[0][0]) or 1.0), state, x)
            x = np.clip(x + np.asarray(moves), *self.bounds)
            self.family.table(x)  # refuses what is no encoder
            if callback is not None:
                callback(number, value, sigma)
        return x, np.array(history)


def _adam(steps, parameters):
    try:
        import optax
    except ImportError as error:
        raise ImportError("this function needs Optax: pip install optax") from error
    rate = min(_RATE, 2 / math.sqrt(max(parameters, 1)))
    return optax.adam(optax.cosine_decay_schedule(rate, steps))


# ------------------------------------------------------------------------- helpers


def _noise_and_slope(stream, gram, epsilon, delta, **options):
    """(sigma, d sigma / d gram) with the draws of a stream [N-grad]."""
    sigma, factor = jax_draws.solve(stream, gram, epsilon, delta, **options)
    by_gram, by_sigma = stream.slopes(factor, gram, sigma, epsilon)
    return sigma, -by_gram / by_sigma


def _reciprocal(series):
    """The first n coefficients of 1 / series, for JAX: Newton steps, each of which doubles their number."""
    numpy, n = load().numpy, len(series)
    inverse = 1 / series[:1]
    while len(inverse) < n:
        size = min(2 * len(inverse), n)
        transform = numpy.fft.rfft(inverse, 2 * size)
        twice = numpy.append(inverse, numpy.zeros(size - len(inverse))) * 2
        square = numpy.fft.irfft(transform**2, 2 * size)[:size]
        inverse = twice - _product(series[:size], square)
    return inverse


def _product(first, second):
    numpy, n = load().numpy, len(first)
    return numpy.fft.irfft(numpy.fft.rfft(first, 2 * n) * numpy.fft.rfft(second, 2 * n), 2 * n)[:n]


def _check_size(rounds, batches):
    """The table of modes has an entry for each round and batch."""
    check.whole("rounds (batches_per_epoch * epochs)", rounds, at_least=2, at_most=_MOST_ENTRIES // batches)


def _samples(samples):
    return check.whole("samples", samples, at_least=2, at_most=MOST_SAMPLES)


def _work(dtype, chunk, batches):
    """(precision, chunk) of the draws, checked."""
    check.choice("dtype", dtype, jax_draws.DTYPES)
    if chunk is not None:
        chunk = check.whole("chunk", chunk, at_least=1, at_most=jax_draws.MOST_AT_ONCE // batches)
    return dtype, chunk


def _devices(devices):
    """All local devices for None."""
    jax = load()
    if devices is None:
        return jax.local_devices()
    if not isinstance(devices, (list, tuple)) or not all(
        isinstance(device, jax.Device) for device in devices
    ):
        raise TypeError(f"devices must be a list of JAX devices, or None; got {devices!r}")
    if not devices:
        raise ValueError("devices must not be empty")
    return list(devices)
