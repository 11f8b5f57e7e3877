"""Functions that a caller wrote with jax.numpy: compiled, with 64-bit numbers, with errors that name the argument."""

from __future__ import annotations

from . import lazy_jax


class Compiled:
    """`function` of arrays, compiled by JAX at its first call.

    name : the argument that the function came in, for the TypeError that it may cause.
    """

    def __init__(self, name, function):
        self.name, self.function, self.run = name, function, None

    def __call__(self, *arguments):
        with lazy_jax.double() as jax:
            if self.run is None:
                self.run = jax.jit(self.function)
            try:
                return self.run(*(jax.numpy.asarray(value) for value in arguments))
            except TypeError as error:
                raise TypeError(
                    f"{self.name} must be a function that JAX can differentiate, written with jax.numpy, without "
                    f"branches on values: {error}"
                ) from error
