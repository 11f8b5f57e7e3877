"""The published Monte Carlo estimator in JAX: draws over all local devices, its root in sigma, its slopes [N-MC].

Draws are cut into chunks. Chunk i is made from its own counter-based key, wherever it is made, so that the numbers
do not depend on how many devices there are; the devices share out the chunks and each walks through its own,
one after the other, and draws it anew in each pass, so that memory stays bounded.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .._base.lazy_jax import load
from ..balls_in_bins import importance_sampling
from ..results import NoBracketError
from .noise_root import root

_CHUNK = 2**20  # normals in a chunk: 8 MiB
_JITTER = 1e-13  # of the largest diagonal entry: nearly singular matrices have a Cholesky factor, too
_CLOSE = 1e-11  # of log delta at the root
_SEEDS = 2**32


# ------------------------------------------------------------------------- the estimator


def payoffs(factor, gram, noise_multiplier, bins, normals, epsilon):
    """(1 - e^(epsilon - Y))_+ of each draw, direction remove, which is the larger one [C-9m]; factor factor' = gram.

    bins : (m,), normals : (m, b). Y = log (1/b) sum_l exp(<m_l, x> / sigma^2 - |m_l|^2 / (2 sigma^2)) at
    x = m_I + sigma Z [N-MC]: b normals per draw, however many rounds there are.
    """
    jax = load()
    y = normals @ factor.T / noise_multiplier - jax.numpy.diagonal(gram) / (2 * noise_multiplier**2)
    loss = jax.nn.logsumexp(y + gram[bins] / noise_multiplier**2, axis=1) - math.log(len(gram))
    return -jax.numpy.expm1(jax.numpy.minimum(epsilon - loss, 0.0))


def factor_of(gram):
    """Lower-triangular, factor factor' = gram; differentiable, unlike a factor from eigenvectors."""
    numpy = load().numpy
    largest = numpy.max(numpy.diagonal(gram))
    return numpy.linalg.cholesky(gram + _JITTER * largest * numpy.eye(len(gram)))


def draw_chunk(key, index, size, batches):
    """(bins, normals) of a chunk: one table of uniform numbers between -1 and 1, which is quick to compile."""
    jax = load()
    key, low = jax.random.fold_in(key, index), np.nextafter(-1.0, 0.0)
    table = jax.random.uniform(key, (size, batches + 1), "float64", low, 1.0)
    bins = jax.numpy.minimum((table[:, 0] + 1) / 2 * batches, batches - 1)
    return bins.astype("int64"), math.sqrt(2) * jax.lax.erf_inv(table[:, 1:])


def key_of(seed, *numbers):
    """The key of a stream: of a seed below 2^63 and of whole numbers below 2^32."""
    random = load().random
    key = random.fold_in(random.key(seed % _SEEDS), seed // _SEEDS)
    for number in numbers:
        key = random.fold_in(key, number)
    return key


def chunk_size(samples, batches):
    """Draws in a chunk: it depends on nothing else, or the numbers would depend on the machine.

    A power of two, so that few sizes have to be compiled, and 9 to 16 chunks where memory asks for no more.
    """
    return min(1 << (max(_CHUNK // batches, 1).bit_length() - 1), 1 << (-(-samples // 16) - 1).bit_length())


# ------------------------------------------------------------------------- passes over all draws


class Draws:
    """`samples` draws of one stream for b batches, spread over devices; sums over them."""

    def __init__(self, key, samples, batches, devices):
        jax = load()
        self.samples, self.size, self.batches = samples, chunk_size(samples, batches), batches
        self.key = jax.random.key_data(key)
        chunks = math.ceil(samples / self.size)
        self.index = np.arange(len(devices) * math.ceil(chunks / len(devices))).reshape(-1, len(devices)).T
        self.passes = _passes(_sharding(tuple(devices)), self.size, batches)

    def all(self):
        """(bins, normals) in the order of the chunks."""
        draw = load().jit(lambda index: _chunk(self.key, index, self.size, self.batches))
        parts = [draw(index) for index in range(math.ceil(self.samples / self.size))]
        return tuple(np.concatenate(part)[: self.samples] for part in zip(*parts))

    def mean(self, gram, noise_multiplier, epsilon):
        """(mean, d mean / d log sigma) of the payoffs."""
        return self._run("mean", gram, noise_multiplier, epsilon)

    def slopes(self, gram, noise_multiplier, epsilon):
        """Derivatives of the mean by (gram, sigma): shape (b, b), symmetric, and a number."""
        by_gram, by_sigma = self._run("slopes", gram, noise_multiplier, epsilon)
        return (by_gram + by_gram.T) / 2, float(by_sigma)

    def _run(self, name, *arguments):
        shares = self.passes[name](self.index, self.key, self.samples, *arguments)
        return [np.sum(np.asarray(share), axis=0) / self.samples for share in shares]


def _chunk(key, index, size, batches):
    return draw_chunk(load().random.wrap_key_data(key), index, size, batches)


def _sharding(devices):
    """The first axis of an array over devices."""
    sharding = load().sharding
    return sharding.NamedSharding(
        sharding.Mesh(np.array(devices), ("samples",)), sharding.PartitionSpec("samples")
    )


@lru_cache(maxsize=16)
def _passes(sharding, size, batches):
    """Compiled passes over the draws: of every device, the sums over its chunks, one chunk at a time in memory."""
    jax = load()

    def over_chunks(of_chunk):
        def call(rows, key, samples, *arguments):
            def values(index):
                wanted = index * size + jax.numpy.arange(size) < samples
                return of_chunk(wanted, *_chunk(key, index, size, batches), *arguments)

            def of_device(row):
                zeros = jax.tree.map(lambda leaf: jax.numpy.zeros(leaf.shape, leaf.dtype), jax.eval_shape(values, row[0]))
                return jax.lax.scan(lambda sums, index: (jax.tree.map(jax.numpy.add, sums, values(index)), None), zeros, row)[0]

            return jax.vmap(of_device)(rows)

        return jax.jit(call, out_shardings=sharding)

    def values(gram, noise_multiplier, wanted, bins, normals, epsilon):
        value = payoffs(factor_of(gram), gram, noise_multiplier, bins, normals, epsilon)
        return jax.numpy.where(wanted, value, 0.0)

    def mean(wanted, bins, normals, gram, noise_multiplier, epsilon):
        def at(sigma):
            return values(gram, sigma, wanted, bins, normals, epsilon)

        value, by_log = jax.jvp(at, (noise_multiplier,), (noise_multiplier,))
        return value.sum(), by_log.sum()

    def slopes(wanted, bins, normals, gram, noise_multiplier, epsilon):
        def at(*point):
            return values(*point, wanted, bins, normals, epsilon).sum()

        return jax.grad(at, argnums=(0, 1))(gram, noise_multiplier)

    return {"mean": over_chunks(mean), "slopes": over_chunks(slopes)}


def solve(draws, gram, epsilon, delta, start=None, close=_CLOSE):
    """sigma at which the mean over these draws is delta: the same numbers for every sigma [N-MC].

    The mean is continuous in sigma but not exactly monotone. start : a guess, None for one from `gram`. close : of
    log delta.
    """

    def at(x):
        value, slope = map(float, draws.mean(gram, math.exp(x), epsilon))
        if not math.isfinite(value):
            raise NoBracketError("the Gram matrix of the modes is not positive definite within rounding")
        return (math.log(value), slope / value) if value > 0 else (-math.inf, math.nan)

    start = start or 1 / importance_sampling._mean_shift(gram, epsilon, delta)
    return math.exp(root(at, math.log(start), math.log(delta), close)[0])
