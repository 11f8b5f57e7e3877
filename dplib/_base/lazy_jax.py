"""JAX, loaded where it is first needed, in double precision without touching the caller's settings.

`import dplib` never loads JAX. Functions that need it call `load()`, and compute inside

    with double():
        ...

which switches 64-bit numbers on for this thread and this block alone.
"""

from __future__ import annotations

import contextlib


def load():
    """The module `jax`; an ImportError that says what to install where there is none."""
    try:
        import jax
    except ImportError as error:
        raise ImportError("this function needs JAX: pip install jax optax") from error
    return jax


@contextlib.contextmanager
def double():
    """64-bit numbers inside the block, for this thread; jax.config is left as it was."""
    jax = load()
    enable = getattr(jax, "enable_x64", None)
    if enable is None:  # before JAX 0.8
        from jax.experimental import enable_x64 as enable
    with enable(True):
        yield jax
