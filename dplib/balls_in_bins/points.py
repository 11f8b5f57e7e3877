"""Points that fill the unit cube more evenly than independent ones: a lattice, shifted at random and blurred.

Point i of n is the fractional part of (i' / 2^32) z + shift + jitter, i' the bits of i in reverse order: without the
jitter, uniform on [0, 1/n], each coordinate of 2^m points has one point in every interval of length 2^-m. Every point
is uniform over the draw of the shift, so that means over the points are unbiased; the jitter makes the law of their
errors nearly normal, also in few dimensions. The first coordinates, which should matter most, have the generator z of a
Korobov lattice; the others draw theirs, so that no two of them are tied to each other in every run.
"""

from __future__ import annotations

import numpy as np

CHUNK = 512  # points at once
_BITS = 32
_MULTIPLIER = 1812433253  # of the Korobov generator modulo 2^32
_LEADING = 16
_EDGE = 2.0**-53


def points(rng, size, dimensions):
    """Points in the open unit cube, shape (size, dimensions)."""
    return np.concatenate(list(cubes(rng, size, dimensions)))


def cubes(rng, size, dimensions):
    """The same in parts of at most 512 points."""
    generator = 2 * rng.integers(0, 2 ** (_BITS - 1), size=dimensions, dtype=np.uint64) + np.uint64(1)
    leading = [pow(_MULTIPLIER, i, 2**_BITS) for i in range(min(dimensions, _LEADING))]
    generator[: len(leading)] = leading
    shift = rng.random(dimensions)
    for start in range(0, size, CHUNK):
        places = _reversed_bits(start, min(size - start, CHUNK))[:, None] * generator
        places &= np.uint64(2**_BITS - 1)
        values = rng.random(places.shape) / size
        values += places * 2.0**-_BITS
        values += shift
        values -= np.floor(values)
        yield np.clip(values, _EDGE, 1 - _EDGE)


def _reversed_bits(start, count):
    """The 32 bits of start .. start + count - 1 in reverse order."""
    left = np.arange(start, start + count, dtype=np.uint64)
    result = np.zeros(count, dtype=np.uint64)
    one = np.uint64(1)
    for _ in range(_BITS):
        result = (result << one) | (left & one)
        left >>= one
    return result
