"""Functions that a caller wrote with jax.numpy: compiled, with 64-bit numbers, with errors that name the argument."""

from __future__ import annotations

from . import _jax


class Compiled:
    """`function` of arrays, compiled by JAX at its first call; op by op where its branches depend on values.

    name : the argument that the function came in, for the TypeError that it may cause.
    """

    def __init__(self, name, function):
        self.name, self.function, self.run = name, function, None

    def __call__(self, *arguments):
        with _jax.double() as jax:
            arguments = [jax.numpy.asarray(value) for value in arguments]
            try:
                if self.run is None:
                    return self._first(jax, arguments)
                return self.run(*arguments)
            except TypeError as error:
                raise TypeError(
                    f"{self.name} must be a function that JAX can differentiate, written with jax.numpy: {error}"
                ) from error

    def _first(self, jax, arguments):
        self.run = jax.jit(self.function)
        try:
            return self.run(*arguments)
        except jax.errors.JAXTypeError:
            self.run = self.function
            return self.run(*arguments)
