"""Correlated noise in JAX: w = C^-1 z, one round after the other, for any pytree of parameters.

`plan` reads an encoder and says how its noise is made (a hashable kind, and arrays of numbers); `start`
is the empty memory; `step` turns the fresh z of round t, which depends on the key and t alone, into w.
`dplib.matrices.noise` has the same recursions in NumPy, with trees.

    kind            C                              memory, in copies of the parameters
    identity        a multiple of the identity     0
    buffers         buffered linear Toeplitz       one for each buffer                    [N-BLT]
    toeplitz        Toeplitz with h bands          h - 1 (all rounds where h = n)
    dense           any lower triangle             all rounds
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._base import validate as check


@dataclass(frozen=True)
class Kind:
    """What a compiled step depends on: the form of the recursion and how many rows it keeps."""

    form: str
    rows: int


def plan(encoder):
    """(Kind, arrays by name) for a square encoder."""
    encoder = check.encoder(encoder, signed=True)
    if encoder.rows != encoder.columns:
        raise ValueError(
            f"encoder must be square, with one row a round (trees: dplib.matrices.noise_stream); got {encoder!r}"
        )
    coefficients = getattr(encoder, "coefficients", None)
    if coefficients is None:
        array = np.asarray(encoder.entries())
        diagonal = np.diagonal(array).copy()
        return Kind("dense", len(array)), {"later": array - np.diag(diagonal), "first": diagonal}
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
    """The memory before round 0: one row of all parameters for each copy that is kept."""
    import jax.numpy as jnp

    size, dtype = _flat(params)
    return jnp.zeros((kind.rows, size), dtype)


def step(kind, arrays, memory, t, key, scale, params):
    """(w of round t as a pytree like `params`, memory after it).

    scale : standard deviation of z. key : raw key data, uint32.
    """
    size, dtype = _flat(params)
    w, memory = push(kind, arrays, memory, t, normals(key, t, scale, size, dtype))
    return _like(params, w), memory


def push(kind, arrays, memory, t, z):
    """(w, memory) from the fresh noise z of round t, flat."""
    import jax
    import jax.numpy as jnp

    numbers = {name: jnp.asarray(value, z.dtype) for name, value in arrays.items()}
    if kind.form == "identity":
        return z / numbers["first"], memory
    if kind.form == "buffers":
        w = z - jnp.matmul(numbers["scale"], memory, precision="highest")
        return w, numbers["decay"][:, None] * memory + w
    if kind.form == "toeplitz":
        row = jax.lax.dynamic_slice(numbers["twice"], ((-t) % kind.rows,), (kind.rows,))
        first, slot = numbers["first"], t % kind.rows
    else:
        row, first, slot = numbers["later"][t], numbers["first"][t], t
    w = (z - jnp.matmul(row, memory, precision="highest")) / first
    return w, memory.at[slot].set(w)


def normals(key, t, scale, size, dtype):
    """`size` independent normals of standard deviation `scale`, those of round t.

    One draw for all parameters: a generator for each array would take several times as long to compile.
    """
    import jax
    import jax.numpy as jnp

    now = jax.random.fold_in(jax.random.wrap_key_data(key, impl="threefry2x32"), t)
    return jnp.asarray(scale, dtype) * jax.random.normal(now, (size,), dtype)


def _flat(params):
    """(number of parameters, their common type)."""
    import jax
    import jax.numpy as jnp

    leaves = jax.tree.leaves(params)
    return sum(leaf.size for leaf in leaves), jnp.result_type(*leaves)


def _like(params, flat):
    """A flat vector in the form of `params`."""
    import jax
    import jax.numpy as jnp

    leaves, structure = jax.tree.flatten(params)
    parts = jnp.split(flat, np.cumsum([leaf.size for leaf in leaves])[:-1])
    return jax.tree.unflatten(structure, [x.reshape(p.shape).astype(p.dtype) for x, p in zip(parts, leaves)])


def key_of(seed):
    """Raw key data from a whole number of any size: 64 bits, hashed."""
    return np.random.SeedSequence(seed, spawn_key=(18,)).generate_state(2, np.uint32)
