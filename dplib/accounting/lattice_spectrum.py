"""The transform of a composed lattice law: a product of powers, with bounds on its errors.

Frequencies with |phi| < e^-90 are left out, on a long lattice all beyond a low band unseen: a transform of FOLD points bounds
them, by |f(y)| <= max at the ends + length^2/8 max|f''| for f = |phi|^2 of one round, whose second derivative is at most twice
the variance. The band is computed by a transform of all points, or one by one where that is less work or the lattice is too long.
"""

from __future__ import annotations

import math

import numpy as np

from .._base.lazy_scipy import fft
from .._base.log_space import complex_log1p
from ..results import NoBracketError

FOLD = 2**17  # points of the transform that bounds the high frequencies of a longer lattice
_BAND = 4096  # frequencies that may be computed one by one, where that is less work than a transform:
_WORK = 8.0  # of a transform, for each of its points
_BLOCK = 2**15  # frequencies held at once
_DEAD = -90.0  # log of what a product of transforms may be to be left out
_DIGIT = 64  # length of the sums of `_low_band`


class TooLong(NoBracketError):
    """The lattice has more points than a transform may have, and no low band carries it."""


def spectrum(rows, size, points):
    """(frequencies, product of the transforms at them, errors) where it matters; errors : of every mass, and the root of the
    sum of their squares, which is the root mean square of the error of the transform.

    rows : list of (masses, their centre, rounds, error). points : most that are transformed in full.
    """
    half = size // 2 + 1
    count = _band_width(rows, size) if size > FOLD else half
    one_by_one = size > FOLD and count <= _BAND and (size > points or count * max(len(row[0]) for row in rows) < _WORK * size)
    if size > points and not one_by_one:
        raise TooLong(f"the lattice needs {size} points")
    frequencies = np.arange(count, dtype=np.int32)
    # A computed modulus m is off by e at most, its power by (m + e)^T - m^T; excess = T log(1 + e / m).
    log_power, angle, excess = np.zeros((3, count))
    left_out = 0.0
    for masses, centre, rounds, error in rows:
        if one_by_one:
            transform = _low_band(masses, centre, size, frequencies)
        else:
            transform = fft.rfft(_wrapped(masses, centre, size), overwrite_x=True)[frequencies]
        for low in range(0, len(frequencies), _BLOCK):
            part = slice(low, low + _BLOCK)
            values = transform[part]
            modulus = np.maximum(np.abs(values), 1e-300)
            log_power[part] += rounds * np.log(modulus)
            excess[part] += rounds * np.log1p(error / modulus)
            angle[part] += rounds * np.angle(values)
        del transform, values
        live = log_power > _DEAD
        if not live.all():
            # The factors to come are at most 1, up to rounding.
            left_out += 1.01 * float(np.exp((log_power + excess)[~live]).sum())
            frequencies, log_power, angle, excess = (
                array[live] for array in (frequencies, log_power, angle, excess)
            )
    # Error of every mass: the mean over frequencies, those left out included.
    error = np.exp(log_power + excess) * -np.expm1(-excess)
    beyond = math.exp(_DEAD / 2) if count < half else 0.0
    mass_error = 2 * (float(error.sum()) + left_out) / size + beyond
    masses_error = math.sqrt(2 * (float(error @ error) + left_out**2) / size) + beyond
    power = np.exp(log_power, out=log_power)
    product = np.empty(len(power), complex)
    np.cos(angle, out=product.real)
    np.sin(angle, out=product.imag)
    product *= power
    return frequencies, product, (mass_error, masses_error)


def split_spectrum(rows, cuts, size, points):
    """The same for the runs in which some round loses more than the split [A-8]: prod (B + X)^T - prod B^T, where
    B is the transform of the losses up to the split and X that of the others.

    That is a sum of products with positive coefficients, each with a factor X. So if B and X are off by b and x at
    most, it is off by F (sum T x / m + s sum T b / m) at most: m = |B| + |X| + b + x, F = prod m^T, and s, the
    largest of 1 - prod (|B| / m)^T, is at most 1 and at most sum T (|X| + x) / (|B| + |X|).
    cuts : of each row, the first of its masses above the split.
    """
    half = size // 2 + 1
    if size > points:
        raise TooLong(f"the lattice needs {size} points")
    log_base, growth = np.zeros((2, half), complex)
    log_most, share, small, large = np.zeros((4, half))
    for (masses, centre, rounds, error), at in zip(rows, cuts):
        bulk, tail = masses.copy(), masses.copy()
        bulk[at:], tail[:at] = 0.0, 0.0
        bulk_transform = fft.rfft(_wrapped(bulk, centre, size), overwrite_x=True)
        tail_transform = fft.rfft(_wrapped(tail, centre, size), overwrite_x=True)
        off_b, off_x = error * float(bulk.sum()), error * float(tail.sum())
        for low in range(0, half, _BLOCK):
            part = slice(low, low + _BLOCK)
            b, x = bulk_transform[part], tail_transform[part]
            size_b, size_x = np.abs(b), np.abs(x)
            most = size_b + size_x
            share[part] += np.minimum(rounds * (size_x + off_x) / np.maximum(most, 1e-300), rounds)
            most += off_b + off_x
            log_most[part] += rounds * np.log(most)
            small[part] += rounds * off_x / most
            large[part] += rounds * off_b / most
            b[size_b < 1e-200] = 1e-200  # far below the error
            log_b = np.log(np.maximum(size_b, 1e-200)) + 1j * np.angle(b)
            far = size_x >= 0.5 * size_b
            ratio = np.where(far, 0.0, x) / b
            more = complex_log1p(ratio.real, ratio.imag)
            if far.any():
                whole = b[far] + x[far]
                whole[np.abs(whole) < 1e-200] = 1e-200
                more[far] = np.log(whole) - log_b[far]
            growth[part] += rounds * more
            log_base[part] += rounds * log_b
        del bulk_transform, tail_transform
    power = np.empty(half, complex)
    for low in range(0, half, _BLOCK):
        part = slice(low, low + _BLOCK)
        base, more = log_base[part], growth[part]
        # Far growth needs no expm1, and would overflow there.
        far = more.real > 1
        power[part] = np.exp(base) * np.expm1(np.where(far, 0.0, more))
        if far.any():
            power[part][far] = np.exp((base + more)[far]) - np.exp(base[far])
    error = np.exp(log_most) * (small + np.minimum(share, 1.0) * large)
    errors = 2 * float(error.sum()) / size, math.sqrt(2 * float(error @ error) / size)
    return np.arange(half, dtype=np.int32), power, errors


def _band_width(rows, size):
    """How many low frequencies have to be computed for |phi| < e^{_DEAD / 2} at all others."""
    log_bound, gap = np.zeros(FOLD // 2), 2 * math.pi / FOLD
    for masses, centre, rounds, error in rows:
        square = (np.abs(fft.rfft(_wrapped(masses, centre, FOLD), overwrite_x=True)) + error) ** 2
        places = np.arange(float(len(masses))) - centre  # floats: NumPy's own integers may have 32 bits, which squares outgrow
        variance = float((places * places) @ masses)  # around `centre`: at least the variance
        between = np.maximum(square[1:], square[:-1]) + gap * gap / 4 * variance
        log_bound += rounds / 2 * np.log(np.minimum(between, 1.0))
    alive = np.flatnonzero(log_bound > _DEAD / 2)
    last = int(alive[-1]) + 1 if len(alive) else 0
    return min(int(math.ceil(last * (size / FOLD))) + 2, size // 2 + 1)


def _low_band(masses, centre, size, frequencies):
    """sum_i masses_i e^{-2 pi i k (i - centre) / size} for a few low frequencies k.

    The index is split into digits of base 64, so that every sum is short and rounds
    little; the phases are exact multiples of a turn over `size`.
    """

    def phases(places):
        turns = (np.outer(places, frequencies.astype(np.int64)) % size) / size
        return np.exp(-2j * math.pi * turns)

    digits, square = np.arange(_DIGIT), _DIGIT * _DIGIT
    inner, middle = phases(digits), phases(_DIGIT * digits)
    parts = np.hstack([inner.real, inner.imag])
    count = -(-len(masses) // square)
    outer = phases(square * np.arange(count) - centre)
    total = np.zeros(len(frequencies), complex)
    for row in range(count):
        block = np.zeros(square)
        here = masses[row * square : (row + 1) * square]
        block[: len(here)] = here
        sums = block.reshape(_DIGIT, _DIGIT) @ parts
        sums = sums[:, : len(frequencies)] + 1j * sums[:, len(frequencies) :]
        total += outer[row] * np.einsum("rk,rk->k", middle, sums)
    return total


def _wrapped(masses, centre, size):
    """The masses on a circle of `size` points, moved so that `centre` comes to 0."""
    circle = np.zeros(size)
    first, place = 0, -centre % size
    while first < len(masses):
        part = masses[first : first + size - place]
        circle[place : place + len(part)] += part
        first, place = first + len(part), 0
    return circle
