"""Routes to hockey-stick divergences for the properties of domination, none of them through `dplib`.

`cells` and `sequences` give the law of which cell an output falls into. An observer of cells sees a function of the
output, so the divergence of cells is never above the truth: below a bound it may stay for any grid, and a fine
one is nearly the truth. `modes_value` is the truth of a mixture by quadrature, with its error.
"""

import math
from itertools import product

import numpy as np
from hypothesis import strategies as st
from property_cases import logs
from scipy import special, stats

from dplib.results import Bracket

seeds = st.integers(0, 2**32)
# Mostly where theorems are nearly attained, and sometimes far out.
noises = st.one_of(logs(0.3, 8), logs(0.3, 8), logs(0.05, 200))
rates = st.one_of(logs(1e-3, 1), logs(1e-3, 1), logs(1e-9, 1), st.just(1.0))
epsilons = st.one_of(st.floats(0, 4), st.floats(0, 4), st.just(0.0), st.floats(0, 30))


def stick(first, second, alpha):
    """Hockey stick of two laws given by their masses."""
    return float(np.maximum(first - alpha * second, 0).sum())


def ordered(with_record, without, direction):
    return (with_record, without) if direction == "remove" else (without, with_record)


def stays_below(bound, first, second, alpha):
    """Whether the hockey stick of two laws is at most the bound, up to the rounding of its own sum."""
    best = first > alpha * second
    return stick(first, second, alpha) <= bound * (1 + 1e-9) + 1e-12 * float(np.sum(first * best))


# --- discrete laws ---------------------------------------------------------------------------------


@st.composite
def discrete(draw, laws=2, most=5):
    """Some laws on up to `most` outcomes, from nearly equal to nearly disjoint, with impossible outcomes."""
    rng, outcomes = np.random.default_rng(draw(seeds)), draw(st.integers(2, most))
    found = rng.dirichlet(np.full(outcomes, draw(logs(0.05, 50))), size=laws)
    if draw(st.booleans()):
        found[0, 0] = 0
    if draw(st.booleans()):
        found[-1, -1] = 0
    near = draw(st.sampled_from([0.0, 0.0, 0.9, 0.999]))
    if near:
        found = near * found[:1] + (1 - near) * found
    found[:, 1] += found.sum(axis=1) == 0
    return found / found.sum(axis=1, keepdims=True)


def channel(rng, inputs, outputs=3):
    """A random kernel; applied from the right it processes a law."""
    return rng.dirichlet(np.full(outputs, 0.7), size=inputs)


# --- what an observer of cells sees ------------------------------------------------------------------


def edges(low, high, sigma, count):
    """Ends of `count` cells that cover the line: fine between low and high and 8 sigma beyond."""
    return np.concatenate([[-np.inf], np.linspace(low - 8 * sigma, high + 8 * sigma, count - 1), [np.inf]])


def cells(ends, mean, sigma):
    """Masses of N(mean, sigma^2) in the cells, along a new last axis."""
    z = (ends - np.asarray(mean, dtype=float)[..., None]) / sigma
    left, right = z[..., :-1], z[..., 1:]
    mirrored = left > 0  # of two tails, the small one is exact
    upper, lower = np.where(mirrored, -left, right), np.where(mirrored, -right, left)
    return special.ndtr(upper) - special.ndtr(lower)


def strategy(rng, ends, rounds):
    """Contributions in [-1, 1], one array for each round: a number for every sequence of earlier cells."""
    count, found = len(ends) - 1, []
    simple = rng.random() < 0.5  # 1 or -1, fixed in advance: often the worst
    for t in range(rounds):
        kind = 0 if simple else rng.integers(4)
        if kind == 0 or t == 0:
            value = rng.choice([1.0, -1.0] if simple else [1.0, -1.0, rng.uniform(-1, 1)])
            found.append(np.full((count,) * t, value))
        elif kind == 1:  # by a threshold of the last output
            above = np.arange(count) >= rng.integers(count + 1)
            found.append(np.broadcast_to(np.where(above, 1.0, rng.uniform(-1, 1)), (count,) * t))
        elif kind == 2:
            wave = np.sin(rng.uniform(0, 0.4) * np.arange(count) + rng.uniform(0, 6))
            found.append(np.broadcast_to(wave, (count,) * t))
        else:
            found.append(rng.uniform(-1, 1, size=(count,) * t))
    return found


def sequences(encoder, taken, inputs, sigma, ends):
    """Masses of all sequences of cells of the rows of C x + z, where x_t = taken_t * inputs_t(past)."""
    masses = np.ones(())
    for r in range(len(encoder)):
        mean = np.zeros((1,) * r)
        for j in range(r + 1):
            if taken[j] and encoder[r, j]:
                mean = mean + encoder[r, j] * np.reshape(inputs[j], np.shape(inputs[j]) + (1,) * (r - j))
        masses = masses[..., None] * cells(ends, mean, sigma)
    return masses


def averaged(encoder, chances, inputs, sigma, ends):
    """The same for a random set of rounds: `chances` maps tuples of 0 and 1 to probabilities."""
    return sum(chance * sequences(encoder, taken, inputs, sigma, ends) for taken, chance in chances.items())


def coins(rounds, q):
    """Every set of rounds with its probability, each round taken with probability q."""
    return {
        taken: q ** sum(taken) * (1 - q) ** (rounds - sum(taken)) for taken in product((0, 1), repeat=rounds)
    }


def best_adaptive(encoder, chances, sigma, ends, alpha, direction, contributions=(-1.0, 1.0)):
    """(the best that an adaptive attacker can do, equal inputs of 1): hockey sticks of what an observer of cells sees.

    The attacker sees the cell of each earlier output before choosing a contribution. All sequences of contributions
    and of cells are enumerated; from the last round back, cells are summed over and contributions maximised over.
    `chances` maps tuples of 0 and 1, the rounds in which the record takes part, to probabilities.
    """
    encoder = np.asarray(encoder, dtype=float)
    taken, weights = np.array(list(chances), dtype=float), np.array(list(chances.values()))
    rounds, count, values = len(encoder), len(ends) - 1, np.array(contributions)
    masses, absent = np.ones((1, 1, len(taken))), np.ones(1)
    chosen = np.zeros((1, 0))
    for r in range(rounds):
        chosen = np.concatenate([np.repeat(chosen, len(values), axis=0), np.tile(values, len(chosen))[:, None]], axis=1)
        mean = np.einsum("j,hj,sj->hs", encoder[r, : r + 1], chosen, taken[:, : r + 1])
        now = cells(ends, mean, sigma).swapaxes(1, 2)  # (contributions, cells, sets of rounds)
        masses = np.repeat(masses, len(values), axis=0)[:, :, None] * now[:, None]
        masses = masses.reshape(len(chosen), -1, len(taken))
        absent = np.outer(absent, cells(ends, 0.0, sigma)).ravel()
    gain = stick_of_each(masses @ weights, absent, alpha, direction)
    equal = float(gain[np.all(chosen == 1, axis=1)].sum())
    for _ in range(rounds):
        gain = gain.reshape(len(gain), -1, count).sum(axis=2)
        gain = gain.reshape(-1, len(values), gain.shape[1]).max(axis=1)
    return float(gain.sum()), equal


def stick_of_each(present, absent, alpha, direction):
    """The terms of the hockey stick, one for each outcome."""
    first, second = ordered(present, absent, direction)
    return np.maximum(first - alpha * second, 0)


def reach(encoder):
    """How far the means can lie from 0."""
    return float(np.abs(encoder).sum(axis=1).max())


CELLS = {1: 400, 2: 120, 3: 40, 4: 18}  # for each number of rounds


def triangular(rng, rounds, signed):
    """A lower-triangular encoder with entries of all sizes, some of them 0."""
    entries = rng.exponential(rng.choice([0.3, 1.0]), (rounds, rounds)) * (rng.random((rounds, rounds)) < 0.8)
    if signed:
        entries *= rng.choice([-1, 1], (rounds, rounds))
    return np.tril(entries, -1) + np.diag(rng.uniform(0.3, 1.5, rounds))


def setting(seed, rounds, sigma, signed=False):
    """(rng, encoder, ends of cells, adaptive contributions)."""
    rng = np.random.default_rng(seed)
    encoder = triangular(rng, rounds, signed)
    ends = edges(-reach(encoder), reach(encoder), sigma, CELLS[rounds])
    return rng, encoder, ends, strategy(rng, ends, rounds)


def posterior(above, past, q, sigma):
    """All sets of columns and their probabilities, given the rows above."""
    sets = np.array(list(product((False, True), repeat=above.shape[1])))[:, ::-1]
    log = sets.sum(axis=1) * special.logit(q) - np.sum((past - sets @ above.T) ** 2, axis=1) / (2 * sigma**2)
    return sets, special.softmax(log)


# --- compositions by rounding losses ------------------------------------------------------------------


def composed_by_rounding(rows, direction, step):
    """epsilon -> (below, above) delta of rounds of scalar mixtures, by `composed`.

    rows : list of (sensitivities >= 0, probabilities, noise, number of rounds).
    """
    known = []
    for sensitivities, probabilities, noise, count in rows:
        s, p = np.asarray(sensitivities, dtype=float) / noise, np.asarray(probabilities, dtype=float)
        x = np.linspace(-12, s.max() + 12, 60_001)
        loss = special.logsumexp(np.multiply.outer(s, x) - s[:, None] ** 2 / 2, b=p[:, None], axis=0)
        if direction == "remove":
            known.append((loss[:-1], loss[1:], p @ np.diff(special.ndtr(np.subtract.outer(x, s)), axis=0).T, count))
        else:
            known.append((-loss[1:], -loss[:-1], np.diff(special.ndtr(x)), count))
    return composed(known, step)


def composed(rows, step, reach=40.0):
    """epsilon -> (below, above) delta of rounds: losses rounded down and up to a lattice, added by an FFT.

    rows : list of (least losses, largest losses, masses, number of rounds). Whoever sees rounded losses sees less;
    who sees larger ones is no worse off. Both are exact up to 1e-14, so this is for delta far above it.
    """
    size = 2 * int(reach / step)
    waves = [1.0, 1.0]
    for *ends, masses, count in rows:
        for side, (end, to_lattice) in enumerate(zip(ends, (np.floor, np.ceil))):
            place = to_lattice(end / step).astype(int)
            waves[side] = waves[side] * np.fft.rfft(np.bincount(place % size, masses, size)) ** count
    losses = np.fft.fftfreq(size, 1 / size) * step
    laws = [np.fft.irfft(wave, size) for wave in waves]

    def delta(epsilon):
        gain = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0)), 0)
        return float(gain @ laws[0]) - 1e-13, float(gain @ laws[1]) + 1e-13

    return delta


# --- mixtures by quadrature --------------------------------------------------------------------------


def modes_value(modes, weights, epsilon, direction):
    """Bracket of the hockey stick of sum_i w_i N(m_i, I) against N(0, I): all coordinates but the last on a grid.

    modes : shape (modes, dimension), dimension 1 to 3, last coordinates >= 0. The bracket is as wide as twice the
    difference to a grid of half as many points.
    """
    modes, weights = np.asarray(modes, dtype=float), np.asarray(weights, dtype=float)
    points = {1: 1, 2: 6001, 3: 101}[modes.shape[1]]
    fine, size = _on_grid(modes, weights, epsilon, direction, points)
    coarse, _ = _on_grid(modes, weights, epsilon, direction, (points + 1) // 2)
    # Beyond 9 standard deviations there is less than 1e-17.
    slack = 2 * abs(fine - coarse) + 1e-12 * size + 1e-17 * (1 + math.exp(epsilon))
    return Bracket(max(fine - slack, 0.0), fine + slack)


def _on_grid(modes, weights, epsilon, direction, points):
    outer, last = modes[:, :-1], modes[:, -1]
    axes = [np.linspace(min(x.min(), 0) - 9, max(x.max(), 0) + 9, points) for x in outer.T]
    u = np.array(list(product(*axes))) if len(axes) != 1 else axes[0][:, None]
    log_mass = stats.norm.logpdf(u).sum(axis=1) + math.log(math.prod(axis[1] - axis[0] for axis in axes))
    with np.errstate(divide="ignore"):
        log_w = np.log(weights) + u @ outer.T - (outer**2).sum(axis=1) / 2
    sign, alpha = 1 if direction == "remove" else -1, math.exp(epsilon)
    border = _border(log_w - last**2 / 2, last, sign * epsilon)
    with_it = (np.exp(log_mass[:, None] + log_w) * special.ndtr(sign * (last - border[:, None]))).sum(axis=1)
    without = np.exp(log_mass) * special.ndtr(-sign * border)
    excess = with_it - alpha * without if direction == "remove" else without - alpha * with_it
    return float(np.maximum(excess, 0).sum()), float((with_it + without).sum() * (1 + alpha))


def _border(log_w, slopes, level):
    """Where log sum_i exp(log_w_i + slope_i u), convex and not decreasing, passes the level; in [-60, 60]."""
    u = np.full(len(log_w), 60.0)
    for _ in range(60):  # Newton's method from the right stays on the right
        terms = log_w + u[:, None] * slopes
        top = terms.max(axis=1)
        terms = np.exp(terms - top[:, None])
        total = terms.sum(axis=1)
        step = (top + np.log(total) - level) * total / np.maximum(terms @ slopes, 1e-300)
        step = np.where(step > 0, np.minimum(step, u + 60), 0.0)
        u -= step
        if step.max() < 1e-12:
            break
    return u


def planar(gram):
    """Two modes in the plane with this Gram matrix, the second coordinates not negative."""
    a = math.sqrt(gram[0][0])
    along = gram[0][1] / a if a else 0.0
    return np.array([[a, 0.0], [along, math.sqrt(max(gram[1][1] - along**2, 0.0))]])
