"""Correlated noise in JAX: w = C^-1 z, one round after the other, for any pytree of parameters.

`plan` and `push` of `dplib.matrices.noise` are the recursions; `start` is the empty memory; `step` turns the fresh z of
round t, which depends on the key and t alone, into w.
"""

from __future__ import annotations

import numpy as np

from ..matrices import noise


def plan(encoder, rounds=0):
    """(Kind, arrays by name) for a square encoder with at least so many columns."""
    kind, arrays = noise.plan(encoder)
    if kind.form == "trees":
        raise ValueError(
            f"encoder must be square, with one row a round (trees: dplib.matrices.noise_stream); got {encoder!r}"
        )
    if encoder.columns < rounds:
        raise ValueError(f"encoder must have a column for each of {rounds} rounds; got {encoder.columns}")
    return kind, arrays


def start(kind, params):
    """The memory before round 0: one row of all parameters for each copy that is kept."""
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    flat = ravel_pytree(params)[0]
    return jnp.zeros((kind.rows, flat.size), flat.dtype)


def step(kind, arrays, memory, t, key, scale, params):
    """(w of round t as a pytree like `params`, memory after it).

    scale : standard deviation of z. key : raw key data, uint32.
    """
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    flat, unravel = ravel_pytree(params)
    numbers = {name: jnp.asarray(value, flat.dtype) for name, value in arrays.items()}
    with jax.default_matmul_precision("highest"):
        w, memory = noise.push(kind, numbers, memory, t, normals(key, t, scale, flat.size, flat.dtype))
    return unravel(w), memory


def normals(key, t, scale, size, dtype):
    """`size` independent normals of standard deviation `scale`, those of round t.

    One draw for all parameters: a generator for each array would take several times as long to compile.
    """
    import jax
    import jax.numpy as jnp

    now = jax.random.fold_in(jax.random.wrap_key_data(key, impl="threefry2x32"), t)
    return jnp.asarray(scale, dtype) * jax.random.normal(now, (size,), dtype)


def key_of(seed):
    """Raw key data from a whole number of any size: 64 bits, hashed."""
    return np.random.SeedSequence(seed, spawn_key=(18,)).generate_state(2, np.uint32)
