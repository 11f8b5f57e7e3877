"""The sum of clipped per-example gradients: what DP training adds its noise to."""

from __future__ import annotations


def clipped_sum(loss, params, examples, mask, clip_norm, microbatch=None):
    """Sum over the examples of gradient * min(1, clip_norm / norm); traceable by JAX.

    Parameters
    ----------
    loss : loss(params, example) -> a number. params : pytree of floats.
    examples : pytree of arrays with a leading axis of B examples. mask : shape (B,), False where a slot is empty.
    clip_norm : bound of the Euclidean norm over all parameters together.
    microbatch : gradients held at a time, None for all B. Memory: so many copies of the parameters.

    A gradient that is not finite counts as 0: else one record could turn the sum into NaN and so show itself.
    """
    import jax
    import jax.numpy as jnp

    gradient = jax.vmap(jax.grad(loss), in_axes=(None, 0))

    def part(some, alive):
        gradients = gradient(params, some)
        leaves = jax.tree.leaves(gradients)
        squares = sum(jnp.sum(jnp.square(g.reshape(len(g), -1)), axis=1) for g in leaves)
        # Beyond the square root of the largest float a finite gradient is left out too.
        usable = jnp.isfinite(squares) & alive
        norms = jnp.sqrt(jnp.where(usable, squares, 1.0))
        factors = jnp.where(usable, jnp.minimum(1.0, clip_norm / jnp.maximum(norms, 1e-30)), 0.0)

        def summed(some_gradients):
            return jax.tree.map(lambda g: jnp.tensordot(factors.astype(g.dtype), g, 1), some_gradients)

        def mended(some_gradients):
            return summed(jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0), some_gradients))

        # 0 * NaN is NaN: the rare case pays for another pass.
        return jax.lax.cond(jnp.all(jnp.isfinite(squares)), summed, mended, gradients)

    size = len(mask)
    if microbatch is None or microbatch >= size:
        return part(examples, mask)
    pieces = -(-size // microbatch)
    pad = pieces * microbatch - size

    def cut(array):
        array = jnp.asarray(array)
        filled = jnp.concatenate([array, jnp.repeat(array[:1], pad, axis=0)]) if pad else array
        return filled.reshape(pieces, microbatch, *array.shape[1:])

    alive = jnp.concatenate([mask, jnp.zeros(pad, bool)]).reshape(pieces, microbatch)

    def add(total, piece):
        return jax.tree.map(jnp.add, total, part(*piece)), None

    return jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), (jax.tree.map(cut, examples), alive))[0]
