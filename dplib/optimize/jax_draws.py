"""The published Monte Carlo estimator in JAX: draws over all local devices, its root in sigma, its slopes [N-MC].

Draws are cut into blocks. Block i is made from its own counter-based key, wherever it is made, so that the numbers
do not depend on how many devices there are, nor on how many blocks, a chunk, a device works on at once. The devices
share out the chunks and each walks through its own, one after the other, so that memory stays bounded. Up to `_KEPT`
normals per device are kept between the passes over them; more are drawn again in each pass.

With 32 bits draws are those with 64 bits, rounded: both come from the same random words. What has an entry for each
draw and bin has 32 bits then; payoffs are added, and the root is searched, with 64.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np

from .._base.lazy_jax import load
from ..balls_in_bins import importance_sampling
from ..results import NoBracketError

_BLOCK = 2**20  # normals in a block: 8 MiB
MOST_AT_ONCE = 2**30  # normals in a chunk
DTYPES = "float64", "float32"
_KEPT = 2**25  # normals per device that are kept: 256 MiB, or half of it with 32 bits
_JITTER = 1e-13  # of the largest diagonal entry: nearly singular matrices have a Cholesky factor, too
_CLOSE = 1e-11  # of log delta at the root
_CLOSE_32 = 1e-5  # the same where rounding moves the mean by up to 1e-6
_MOST_PASSES = 200
_SEEDS = 2**32


# ------------------------------------------------------------------------- the estimator


def payoffs(factor, gram, noise_multiplier, bins, normals, epsilon):
    """(1 - e^(epsilon - Y))_+ of each draw, direction remove, which is the larger one [C-9m]; factor factor' = gram.

    bins : (m,), normals : (m, b), whose precision is that of the work; what is returned has 64 bits.
    Y = log (1/b) sum_l exp(<m_l, x> / sigma^2 - |m_l|^2 / (2 sigma^2)) at x = m_I + sigma Z [N-MC]: b normals per draw,
    however many rounds there are.
    """
    jax = load()
    factor, gram, sigma = (jax.numpy.asarray(part, normals.dtype) for part in (factor, gram, noise_multiplier))
    # "highest": some devices would multiply 32-bit numbers with 10 bits otherwise.
    inner = jax.numpy.matmul(normals, factor.T, precision="highest") / sigma
    y = inner - jax.numpy.diagonal(gram) / (2 * sigma**2)
    loss = jax.nn.logsumexp(y + gram[bins] / sigma**2, axis=1).astype("float64") - math.log(len(gram))
    return -jax.numpy.expm1(jax.numpy.minimum(epsilon - loss, 0.0))


def factor_of(gram):
    """Lower-triangular, factor factor' = gram; differentiable, unlike a factor from eigenvectors."""
    numpy = load().numpy
    largest = numpy.max(numpy.diagonal(gram))
    return numpy.linalg.cholesky(gram + _JITTER * largest * numpy.eye(len(gram)))


def factor_at(gram):
    """`factor_of` as a NumPy array, where there is one."""
    factor = np.asarray(_compiled("factor")(gram))
    if not np.all(np.isfinite(factor)):
        raise NoBracketError("the Gram matrix of the modes is not positive definite within rounding")
    return factor


def draw_block(key, index, size, batches, dtype="float64"):
    """(bins, normals) of a block: one table of uniform numbers between -1 and 1, which is quick to compile."""
    jax = load()
    key, low = jax.random.fold_in(key, index), np.nextafter(-1.0, 0.0)
    if dtype == "float32":
        return _rounded(jax.random.bits(key, (size, batches + 1), "uint64"), batches)
    table = jax.random.uniform(key, (size, batches + 1), "float64", low, 1.0)
    bins = jax.numpy.minimum((table[:, 0] + 1) / 2 * batches, batches - 1)
    return bins.astype("int64"), math.sqrt(2) * jax.lax.erf_inv(table[:, 1:])


def _rounded(words, batches):
    """The draws that these random words are with 64 bits, with 32: from the upper half of each word.

    A uniform number is taken from the end that it is closer to, or the tails would be as coarse as 2^-24.
    """
    jax = load()
    words = words >> 32
    bins = ((words[:, 0] * batches) >> 32).astype("int64")
    upper = words[:, 1:].astype("uint32")
    tail = (jax.numpy.minimum(upper, ~upper).astype("float32") + np.float32(0.5)) * np.float32(2.0**-32)
    quantile = jax.scipy.special.ndtri(tail)
    return bins, jax.numpy.where(upper < 2**31, quantile, -quantile)


def key_of(seed, *numbers):
    """The key of a stream: of a seed below 2^63 and of whole numbers below 2^32."""
    random = load().random
    key = random.fold_in(random.key(seed % _SEEDS), seed // _SEEDS)
    for number in numbers:
        key = random.fold_in(key, number)
    return key


def block_size(samples, batches):
    """Draws in a block: it depends on nothing else, or the numbers would depend on the machine.

    A power of two, so that few sizes have to be compiled, and 9 to 16 blocks where memory asks for no more.
    """
    return min(1 << (max(_BLOCK // batches, 1).bit_length() - 1), 1 << (-(-samples // 16) - 1).bit_length())


# ------------------------------------------------------------------------- passes over all draws


class Draws:
    """`samples` draws of one stream for b batches, spread over devices; sums over them.

    dtype : of the normals. chunk : draws that a device works on at once, in whole blocks; None for one block.
    """

    def __init__(self, key, samples, batches, devices, dtype="float64", chunk=None):
        jax = load()
        size = block_size(samples, batches)
        blocks = math.ceil(math.ceil(samples / size) / len(devices))  # of each device
        together = min(math.ceil((chunk or 1) / size), blocks)
        steps = math.ceil(blocks / together)  # chunks of each device
        self.samples = samples
        self.close = _CLOSE if dtype == "float64" else _CLOSE_32
        self.make = _maker(tuple(devices), size, batches, dtype)
        self.passes = _passes(tuple(devices), size, batches, dtype)
        indices = np.arange(len(devices) * steps * together).reshape(steps, len(devices), together).swapaxes(0, 1)
        self.parts = {"key": jax.random.key_data(key), "index": indices, "samples": samples}
        if size * together * batches * steps <= _KEPT:
            self.parts["kept"] = self.make(self.parts)

    def all(self):
        """(bins, normals) in the order of the chunks; of one device."""
        bins, normals = self.parts.get("kept") or self.make(self.parts)
        return bins.reshape(-1)[: self.samples], normals.reshape(-1, normals.shape[-1])[: self.samples]

    def mean(self, factor, gram, noise_multiplier, epsilon):
        """(mean, d mean / d log sigma) of the payoffs."""
        return self._run("mean", factor, gram, noise_multiplier, epsilon)

    def slopes(self, factor, gram, noise_multiplier, epsilon):
        """Derivatives of the mean by (gram, sigma): shape (b, b), symmetric, and a number."""
        by_factor, by_gram, by_sigma = self._run("slopes", factor, gram, noise_multiplier, epsilon)
        by_gram = by_gram + np.asarray(_compiled("pulled")(gram, by_factor))
        return (by_gram + by_gram.T) / 2, float(by_sigma)

    def _run(self, name, *arguments):
        shares = self.passes[name](self.parts, *arguments)
        return [np.sum(np.asarray(share), axis=0) / self.samples for share in shares]


def _sharding(devices, axis=0):
    """An axis of an array over devices."""
    sharding = load().sharding
    place = sharding.PartitionSpec(*[None] * axis, "samples")
    return sharding.NamedSharding(sharding.Mesh(np.array(devices), ("samples",)), place)


def _chunk(parts, indices, size, batches, dtype):
    """(bins, normals) of several blocks, one after the other."""
    jax = load()
    key = jax.random.wrap_key_data(parts["key"])
    bins, normals = jax.vmap(lambda index: draw_block(key, index, size, batches, dtype))(indices)
    return bins.ravel(), normals.reshape(-1, batches)


@lru_cache(maxsize=16)
def _maker(devices, size, batches, dtype):
    """Compiled: the chunks of each device, one after the other: axes (chunk, device, …), as a scan over chunks wants them."""
    jax = load()

    def make(parts):
        def chunk(indices):
            return _chunk(parts, indices, size, batches, dtype)

        return jax.vmap(lambda rows: jax.lax.map(chunk, rows), out_axes=1)(parts["index"])

    return jax.jit(make, out_shardings=_sharding(devices, axis=1))


@lru_cache(maxsize=16)
def _passes(devices, size, batches, dtype):
    """Compiled passes over the draws: of every device, the sums over its chunks."""
    jax = load()

    def over_chunks(of_chunk):
        """The sums over the chunks of each device of what `of_chunk` returns, one chunk at a time in memory."""

        def of_device(parts, index, kept, arguments):
            def chunk(part):
                if kept is not None:
                    return part[1]
                return _chunk(parts, part[0], size, batches, dtype)

            def values(part):
                places = part[0][:, None] * size + jax.numpy.arange(size)
                return of_chunk(places.ravel() < parts["samples"], *chunk(part), *arguments)

            def step(sums, part):
                return jax.tree.map(jax.numpy.add, sums, values(part)), None

            rows = (index, kept)
            shapes = jax.eval_shape(values, jax.tree.map(lambda row: row[0], rows))
            zeros = jax.tree.map(lambda leaf: jax.numpy.zeros(leaf.shape, leaf.dtype), shapes)
            return jax.lax.scan(step, zeros, rows)[0]

        def call(parts, *arguments):
            rows = jax.vmap(lambda index, kept: of_device(parts, index, kept, arguments), in_axes=(0, 1))
            return rows(parts["index"], parts.get("kept"))

        return jax.jit(call, out_shardings=_sharding(devices))

    def values(factor, gram, noise_multiplier, wanted, bins, normals, epsilon):
        value = payoffs(factor, gram, noise_multiplier, bins, normals, epsilon)
        return jax.numpy.where(wanted, value, 0.0)

    def mean(wanted, bins, normals, factor, gram, noise_multiplier, epsilon):
        def at(sigma):
            return values(factor, gram, sigma, wanted, bins, normals, epsilon)

        value, by_log = jax.jvp(at, (noise_multiplier,), (noise_multiplier,))
        return value.sum(), by_log.sum()

    def slopes(wanted, bins, normals, factor, gram, noise_multiplier, epsilon):
        def at(*point):
            return values(*point, wanted, bins, normals, epsilon).sum()

        return jax.grad(at, argnums=(0, 1, 2))(factor, gram, noise_multiplier)

    return {"mean": over_chunks(mean), "slopes": over_chunks(slopes)}


@cache
def _compiled(name):
    jax = load()
    if name == "factor":
        return jax.jit(factor_of)
    return jax.jit(lambda gram, slope: jax.vjp(factor_of, gram)[1](slope)[0])


# ------------------------------------------------------------------------- the root in sigma


def solve(draws, gram, epsilon, delta, start=None, close=0.0):
    """(sigma, factor) at which the mean over these draws is delta: the same numbers for every sigma [N-MC].

    The mean is continuous in sigma but not exactly monotone; Newton's method for sqrt(-log mean), nearly a
    straight line, inside a bracket whose ends lie on both sides of delta. start : a guess, None for one from `gram`.
    close : of log delta, where rounding allows it.
    """
    factor, close = factor_at(gram), max(close, draws.close)
    goal, height = math.log(delta), math.sqrt(-math.log(delta))
    x = math.log(start or 1 / importance_sampling._mean_shift(gram, epsilon, delta))
    low, high, reach = -math.inf, math.inf, 0.25
    for _ in range(_MOST_PASSES):
        value, slope = map(float, draws.mean(factor, gram, math.exp(x), epsilon))
        if value > 0 and abs(math.log(value) - goal) < close:
            break
        low, high = (x, high) if value > delta else (low, x)
        move = math.nan
        if 0 < value < 1 and slope < 0:
            now = math.sqrt(-math.log(value))
            move = (now - height) * 2 * now * value / slope
        x = _next(x, move, low, high, reach)
        reach *= 2 if math.isinf(low) or math.isinf(high) else 1
        if high - low < 1e-15 * max(abs(x), 1.0):
            break
    else:
        raise NoBracketError("the noise multiplier for the target was not found; more samples may help")
    return math.exp(x), factor


def _next(x, move, low, high, reach):
    """x + move where that is inside the bracket, else its middle; `reach` while one end is open."""
    if low < x + move < high and (abs(move) < reach or not (math.isinf(low) or math.isinf(high))):
        return x + move
    if math.isinf(high):
        return x + reach
    return x - reach if math.isinf(low) else (low + high) / 2
