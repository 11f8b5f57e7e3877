"""The lower law of one round: merged cells moved onto the lattice, and what is negative then removed."""

from __future__ import annotations

import math

import numpy as np

from .._base.log_space import EPS

_MOST_REMOVED = 300  # vertices in a row, at the end of the curve
_MOST_JOINS = 50  # of cells at the lowest point
_WIDEST_CELL = 8.0


def repair(merged, miss, h, c, reach=1.0):
    """Lower masses: merged cells moved onto the lattice, then made non-negative.

    A cell whose merged point lies `miss` > 0 (in P-mass) above its lattice point
    takes mass from the point below, one with `miss` < 0 from the point above, such
    that P- and Q-mass are kept: the curve at a lattice point is then the smaller
    of the two tangents beside it, and each chord lies below its tangent. A negative
    mass means that the curve is not convex there: its vertex is removed (the mass
    goes to both neighbours, P- and Q-mass kept), which lowers the curve further.
    reach : of the losses; they round in proportion to it, and so do their misses.
    Returns the masses, and the log of the P-mass that they have lost, tilted back from the first place.
    """
    # In cells wider than that the Q-mass at the lattice point is e^(h/2) times the P-mass, whose digits it takes.
    if not merged.any() or h > _WIDEST_CELL or (1 + c) * h > 300:
        return np.zeros(len(merged)), math.inf
    # The sign of a miss within rounding means nothing, and a cell in the wrong order is costly.
    miss = np.where(np.abs(miss) <= 16 * EPS * reach * merged, 0.0, miss)
    for _ in range(_MOST_JOINS):
        merged, miss = _join_ends(merged, miss, h, c)
        mass, lowest = _moved(merged, miss, h, c), np.flatnonzero(merged)[:2]
        if len(lowest) < 2 or mass[lowest[0]] >= 0:
            break
        # The second cell would take more from the lowest point than it has: they become one cell.
        low, high = lowest
        step = float(high - low) * h
        first = merged[low] + miss[low]
        merged[high], miss[high] = (
            merged[low] * math.exp((1 + c) * step) + merged[high],
            first * math.exp(c * step) - merged[low] * math.exp((1 + c) * step) + miss[high],
        )
        merged[low] = miss[low] = 0.0
    size, log_lost = len(mass), -math.inf
    vertices = np.flatnonzero(mass)
    before, after = np.full(size, -1), np.full(size, size)
    before[vertices[1:]], after[vertices[:-1]] = vertices[:-1], vertices[1:]
    negative = np.flatnonzero(mass < 0).tolist()
    while negative:
        i = negative.pop()
        value = float(mass[i])
        if value >= 0:
            continue
        mass[i] = 0.0
        low, high = int(before[i]), int(after[i])
        if low >= 0:
            after[low] = high
        if high < size:
            before[high] = low
        if low < 0 and high < size:
            # The first vertex: the same Q-mass is taken from the next one, which is more P-mass.
            up = (high - i) * h
            log_lost = float(np.logaddexp(log_lost, math.log(-value) - c * i * h + up + math.log(-math.expm1(-up))))
            mass[high] += value * math.exp((1 + c) * (high - i) * h)
            touched = [high]
        else:
            removed = [(i, value)]
            if high >= size:
                # The last vertex: the curve dips below zero before it. It has to end
                # at zero on the last vertex where it is still positive.
                while low >= 0:
                    curve = math.fsum(
                        v * math.exp(-c * (r - low) * h) * -math.expm1((low - r) * h)
                        for r, v in removed
                    )
                    if curve >= 0:
                        break
                    if len(removed) > _MOST_REMOVED:
                        return np.zeros(size), math.inf  # rounding alone: each step would cost more than the one before
                    removed.append((low, float(mass[low])))
                    mass[low] = 0.0
                    low = int(before[low])
                if low < 0 or before[low] < 0:
                    return np.zeros(size), math.inf
                after[low] = size
                low, high = int(before[low]), low
            for r, v in removed:
                up, down, both = (high - r) * h, (r - low) * h, (high - low) * h
                if max(both, up, c * up) > 600:
                    return np.zeros(size), math.inf
                mass[high] += v * math.expm1(-down) / math.expm1(-both) * math.exp(c * up)
                mass[low] += v * math.expm1(up) / math.expm1(both) * math.exp(-c * down)
            touched = [low, high]
        negative += [j for j in touched if mass[j] < 0]
    return mass, log_lost


def _moved(merged, miss, h, c):
    """The masses at the lattice points, where each cell takes what it misses from a neighbour."""
    mass = merged.copy()
    from_below, from_above = np.maximum(miss, 0.0), np.maximum(-miss, 0.0)
    mass += from_below / -math.expm1(-h) + from_above / math.expm1(h)
    mass[:-1] -= from_below[1:] * math.exp(-c * h) / math.expm1(h)
    mass[1:] -= from_above[:-1] * math.exp(c * h) / -math.expm1(-h)
    return mass


def _join_ends(merged, miss, h, c):
    """Merge the lowest (highest) cells until their common point lies below (above) its lattice point.

    Below the smallest loss the true curve is the line 1 - alpha, above the largest it
    is zero. An end cell on the wrong side of its lattice point would have to leave
    these lines early, and would lose the same P-mass in every round.
    """
    merged, miss = merged.copy(), miss.copy()
    cells = np.flatnonzero(merged)
    for order, sign in ((cells, 1), (cells[::-1], -1)):
        joined = p_mass = 0.0
        last = order[0]
        for i in order[:2000]:
            step = abs(int(i) - int(last)) * h * sign
            joined = joined * math.exp((1 + c) * step) + merged[i]
            p_mass = p_mass * math.exp(c * step) + merged[i] + miss[i]
            last = i
            if sign * (p_mass - joined) <= 0:
                merged[order[0] : i : sign] = miss[order[0] : i : sign] = 0.0
                merged[i], miss[i] = joined, p_mass - joined
                break
    return merged, miss
