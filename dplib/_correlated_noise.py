"""Correlated noise in JAX: w = C^-1 z, one round after the other, for any pytree of parameters.

`plan` reads an encoder and says how its noise is made (a hashable kind, and arrays of numbers); `start`
is the empty memory; `step` turns the fresh z of round t into w. Fresh noise of round t depends on the key
and t alone, so it need not be kept. `dplib._noise` has the same recursions in NumPy, with trees.

    kind            C                              memory, in copies of the parameters
    identity        a multiple of the identity     0
    buffers         buffered linear Toeplitz       one for each buffer                    [N-BLT]
    toeplitz        Toeplitz with h bands          h - 1 (all rounds where h = n)
    recomputed      the same                       0: z is drawn again, time t in round t
    dense           any lower triangle             all rounds
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import _validate as check

MEMORY = ("keep", "recompute")


@dataclass(frozen=True)
class Kind:
    """What a compiled step depends on: the form of the recursion and how many rows it keeps."""

    form: str
    rows: int


def plan(encoder, memory="keep"):
    """(Kind, arrays by name) for a square encoder. memory : "keep" or "recompute" (Toeplitz encoders)."""
    encoder = check.encoder(encoder, signed=True)
    check.choice("memory", memory, MEMORY)
    if encoder.rows != encoder.columns:
        raise ValueError(
            f"encoder must be square, with one row a round (trees: dplib.matrices.noise_stream); got {encoder!r}"
        )
    coefficients = getattr(encoder, "coefficients", None)
    if coefficients is None:
        if memory == "recompute":
            raise ValueError(f"memory must be 'keep' for an encoder that is not Toeplitz; got {memory!r}")
        array = np.asarray(encoder.entries())
        diagonal = np.diagonal(array).copy()
        return Kind("dense", len(array)), {"later": array - np.diag(diagonal), "first": diagonal}
    if memory == "recompute":
        return Kind("recomputed", 0), {"inverse": np.asarray(encoder.inverse_coefficients)}
    bands = encoder.bands
    if bands == 1:
        return Kind("identity", 0), {"first": coefficients[0]}
    scale = getattr(encoder, "output_scale", None)
    if scale is not None and len(scale) < bands:
        return Kind("buffers", len(scale)), {"scale": scale, "decay": encoder.buffer_decay}
    later = np.asarray(coefficients[1:bands])
    # Two copies in a row, backwards: the coefficients in the order of a ring that starts anywhere.
    return Kind("toeplitz", bands - 1), {
        "first": coefficients[0],
        "twice": np.concatenate([later, later])[::-1],
    }


def start(kind, params):
    """The memory before round 0, a pytree of zeros."""
    import jax
    import jax.numpy as jnp

    if kind.form == "buffers":  # apart from each other, so that an update of all is one pass
        return tuple(jax.tree.map(jnp.zeros_like, params) for _ in range(kind.rows))
    if not kind.rows:
        return ()
    return jax.tree.map(lambda p: jnp.zeros((kind.rows, *p.shape), p.dtype), params)


def step(kind, arrays, memory, t, key, scale, params):
    """(w of round t, memory after it). scale : standard deviation of z. key : raw key data, uint32."""
    import jax
    import jax.numpy as jnp

    def fresh(round_):
        return normals(key, round_, scale, params)

    if kind.form == "recomputed":
        inverse = jnp.asarray(arrays["inverse"])

        def add(k, total):
            return jax.tree.map(lambda s, z: s + inverse[k].astype(s.dtype) * z, total, fresh(t - k))

        return jax.lax.fori_loop(0, t + 1, add, jax.tree.map(jnp.zeros_like, params)), memory
    return push(kind, arrays, memory, t, fresh(t))


def push(kind, arrays, memory, t, z):
    """(w, memory) from the fresh noise z of round t, for the kinds that keep the past."""
    import jax
    import jax.numpy as jnp

    if kind.form == "identity":
        return jax.tree.map(lambda x: x / jnp.asarray(arrays["first"], x.dtype), z), memory
    if kind.form == "buffers":
        scale, decay = arrays["scale"], arrays["decay"]

        def fed(x, *buffers):
            return x - sum(jnp.asarray(s, x.dtype) * b for s, b in zip(scale, buffers))

        w = jax.tree.map(fed, z, *memory)

        def aged(buffer, factor):
            return jax.tree.map(lambda b, x: jnp.asarray(factor, x.dtype) * b + x, buffer, w)

        return w, tuple(aged(buffer, factor) for buffer, factor in zip(memory, decay))
    if kind.form == "toeplitz":
        row = jax.lax.dynamic_slice(jnp.asarray(arrays["twice"]), ((-t) % kind.rows,), (kind.rows,))
        first, slot = jnp.asarray(arrays["first"]), t % kind.rows
    else:
        row, first, slot = jnp.asarray(arrays["later"])[t], jnp.asarray(arrays["first"])[t], t

    def solved(x, past):
        return (x - jnp.tensordot(row.astype(x.dtype), past, 1)) / first.astype(x.dtype)

    w = jax.tree.map(solved, z, memory)
    return w, jax.tree.map(lambda past, x: past.at[slot].set(x), memory, w)


def normals(key, t, scale, params):
    """Independent normals of standard deviation `scale` in the shape of the parameters."""
    import jax
    import jax.numpy as jnp

    leaves, structure = jax.tree.flatten(params)
    now = jax.random.fold_in(jax.random.wrap_key_data(key, impl="threefry2x32"), t)
    # One draw for all leaves: a generator for each would take several times as long to compile.
    dtype = jnp.result_type(*leaves)
    drawn = jnp.asarray(scale, dtype) * jax.random.normal(now, (sum(p.size for p in leaves),), dtype)
    ends = np.cumsum([p.size for p in leaves])
    parts = jnp.split(drawn, ends[:-1])
    return jax.tree.unflatten(structure, [x.reshape(p.shape).astype(p.dtype) for x, p in zip(parts, leaves)])


def key_of(seed):
    """Raw key data from a whole number of any size: 64 bits, hashed."""
    return np.random.SeedSequence(seed, spawn_key=(18,)).generate_state(2, np.uint32)
