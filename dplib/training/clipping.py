"""The sum of clipped per-example gradients: what DP training adds its noise to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jax

# Bytes of gradients held at a time where nobody says how many: what stays in a cache, or in a device's memory.
_CACHE, _DEVICE = 2**21, 2**30
_FEWEST, _MOST = 8, 64  # examples at a time on a CPU


def clipped_sum(
    loss: Callable, params: object, examples: object, mask: jax.Array, clip_norm: float,
    microbatch: int | None = None,
) -> object:
    """Sum over the examples of gradient * min(1, clip_norm / norm); traceable by JAX.

    Parameters
    ----------
    loss : loss(params, example) -> a number. params : pytree of float32 or float64.
    examples : pytree of arrays with a leading axis of B examples. mask : shape (B,), False where a slot is empty.
    clip_norm : bound of the Euclidean norm over all parameters together.
    microbatch : gradients held at a time, at least 1; None: as many as fit into a cache (CPU) or 1 GiB.

    A gradient that is not finite, or whose squared norm is not, counts as 0: else one record could turn the sum into
    NaN and so show itself. Memory: `microbatch` copies of the parameters. Products are computed in full precision,
    on devices too that would round their factors (TF32): norms and sums must mean the same gradients.
    """
    import jax
    import jax.numpy as jnp

    each = jax.vmap(jax.grad(loss), in_axes=(None, 0))

    def part(some, alive):
        gradients = jax.tree.leaves(each(params, some))
        # Of 16-bit floats most squares would be 0, and nothing would be clipped.
        wide = [g.astype(jnp.promote_types(g.dtype, jnp.float32)) for g in gradients]
        squares = sum(jnp.sum(jnp.square(g.reshape(len(g), -1)), axis=1) for g in wide)
        usable = jnp.isfinite(squares) & alive
        norms = jnp.sqrt(jnp.where(usable, squares, 1.0))
        factors = jnp.where(usable, jnp.minimum(1.0, clip_norm / jnp.maximum(norms, 1e-30)), 0.0)
        # The weighted sum by a second backward pass: cheaper than to read all gradients again.
        losses, pull = jax.vjp(lambda p: jax.vmap(loss, in_axes=(None, 0))(p, some), params)
        total = pull(factors.astype(losses.dtype))[0]

        def mended():
            def kept(g):
                where = usable.reshape(-1, *(1 for _ in g.shape[1:]))
                return jnp.tensordot(factors.astype(g.dtype), jnp.where(where, g, 0), 1)

            return jax.tree.map(kept, each(params, some))

        # 0 * NaN is NaN: the rare case pays for another pass.
        return jax.lax.cond(jnp.all(jnp.isfinite(squares)), lambda: total, mended)

    size = len(mask)
    if microbatch is None:
        microbatch = _microbatch(params)
    if microbatch >= size:
        with jax.default_matmul_precision("float32"):
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

    nothing = jax.tree.map(jnp.zeros_like, params)
    with jax.default_matmul_precision("float32"):
        return jax.lax.scan(add, nothing, (jax.tree.map(cut, examples), alive))[0]


def _microbatch(params):
    import jax

    one = sum(p.size * p.dtype.itemsize for p in jax.tree.leaves(params))
    if jax.default_backend() == "cpu":
        return min(max(_CACHE // one, _FEWEST), _MOST)
    return max(_DEVICE // one, 1)
