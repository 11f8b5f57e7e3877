"""delta(epsilon) of schemes with several adjacencies, by sums on a grid and by quadrature: a route of its own, with NumPy and SciPy alone.

Rounds of one axis. A pair (P, Q) of mixtures whose ratio grows along the axis is cut into cells of equal
width in the loss. From above, the mass of a cell goes to the losses at its two ends, so that the masses under P and under Q are both
kept: a spread of likelihood ratios, which can only raise delta. From below, a cell becomes one atom at the log of the ratio of its
masses (what is lost is lost by data processing), and that is rounded down to a lattice with the best offset. The atoms are tilted
by e^(theta loss) around the epsilon that is asked, and added round by round by FFT. What wraps around is bounded by Chernoff's inequality
for the lattice law itself, what is beyond the last cell counts as an infinite loss or as none. Rounding errors are allowed for by
1e-11 + 1e-15 T of the scale of delta; they are not proved.

Balls in bins. The likelihood ratio is a mean of independent lognormals, delta the mean of a convex function of it. Their law is
added by doubling on a grid of logarithms: split to both neighbours with the mean kept it only grows in convex order, merged at the mean of a
cell it only falls.

Few rounds. A mixture of shifted Gaussians in n dimensions against noise alone: one axis in closed form, up to the place where the ratio,
an increasing function along it, is alpha; the others by the trapezoidal rule, with the difference of two steps as the error.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy import special, stats

NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)
ROOT_2PI = math.log(2 * math.pi) / 2


# ------------------------------------------------------------------ pairs on one axis


class Pair:
    """P with shifts >= 0, Q with shifts <= 0: two lists of (shift, log probability). In the other order: mirrored."""

    def __init__(self, first, second, sigma):
        self.first = [(shift / sigma, log) for shift, log in first if log > -math.inf]
        self.second = [(shift / sigma, log) for shift, log in second if log > -math.inf]

    def swapped(self):
        other = Pair([], [], 1.0)
        other.first = [(-shift, log) for shift, log in self.second]
        other.second = [(-shift, log) for shift, log in self.first]
        return other

    def beyond(self, tail):
        """(low, high): outside P has at most so much mass on either side."""
        ends = []
        for sign in (-1, 1):
            low, high = -60.0, 60.0 + max(abs(shift) for shift, _ in self.first)
            for _ in range(80):
                middle = (low + high) / 2
                if sum(math.exp(log) * special.ndtr(sign * shift - middle) for shift, log in self.first) > tail:
                    low = middle
                else:
                    high = middle
            ends.append(sign * high)
        return tuple(ends)

    def without_the_negligible(self, low, high):
        """Of both laws the components that count somewhere between the two places."""
        kept = Pair([], [], 1.0)
        for mine, its in ((self.first, kept.first), (self.second, kept.second)):
            value = lambda part, y: part[1] - (y - part[0]) ** 2 / 2
            best = {y: max(value(part, y) for part in mine) for y in np.linspace(low, high, 33)}
            # Along the axis the ratio of two components is an exponential: what is small at all these places is small between them.
            its += [part for part in mine if any(value(part, y) > top - 44 for y, top in best.items())]
        return kept


def log_density(law, y):
    """(log of the density without its constant, mean shift given the place)."""
    terms = [log - (y - shift) ** 2 / 2 for shift, log in law]
    top = terms[0] if len(terms) == 1 else np.maximum.reduce(terms)
    parts = [np.exp(term - top) for term in terms]
    total = sum(parts)
    return top + np.log(total), sum(shift * part for (shift, _), part in zip(law, parts)) / total


def loss(pair, y):
    """(log P/Q, its slope) at the places."""
    (p, up), (q, down) = log_density(pair.first, y), log_density(pair.second, y)
    return p - q, up - down


def log_mass(law, low, high):
    """log of the mass of each cell."""
    wide = high - low > 0.03
    middle, half = (low + high) / 2, (high - low) / 2
    points = [log_density(law, middle + half * node)[0] + math.log(weight) for node, weight in zip(NODES, WEIGHTS)]
    with np.errstate(divide="ignore"):
        logs = np.logaddexp.reduce(points) + np.log(half) - ROOT_2PI
    if wide.any():
        a, b = low[wide], high[wide]
        total = np.full(len(a), -np.inf)
        for shift, log in law:
            x, y = np.where(a + b > 2 * shift, shift - b, a - shift), np.where(a + b > 2 * shift, shift - a, b - shift)
            # of the side where both are small: log(Phi(y) - Phi(x))
            big, small = special.log_ndtr(y), special.log_ndtr(x)
            total = np.logaddexp(total, log + big + np.log1p(-np.exp(small - big)))
        logs[wide] = total
    return logs


MOST_CELLS = 2**19


class Cells:
    """Cells of one pair, cut where the loss is offset + a multiple of step: log P/Q of each, its mass under P, what is beyond them."""

    def __init__(self, pair, step, offset, tail, part="all", weight=1.0):
        low, high = ends_of(pair, tail, part)
        self.above, self.below, self.lowest = tail * weight, 0.0, 0.0
        if high <= low:
            self.place = self.mass = np.zeros(0)
            return
        pair = pair.without_the_negligible(low, high)
        table = np.linspace(low, high, 2049)
        known, _ = loss(pair, table)
        if known[-1] - known[0] > MOST_CELLS * step:  # of the losses far from 0 only the mass
            low, high = np.interp([-MOST_CELLS * step / 2, MOST_CELLS * step / 2], known, table)
            self.above += weight * sum(math.exp(log) * special.ndtr(shift - high) for shift, log in pair.first)
            self.below = weight * sum(math.exp(log) * special.ndtr(low - shift) for shift, log in pair.first)
            table = np.linspace(low, high, 2049)
            known, _ = loss(pair, table)
            self.lowest = float(known[0])
        inner = step * np.arange(math.ceil((known[0] - offset) / step), math.floor((known[-1] - offset) / step) + 1) + offset
        inner = np.sort(np.append(inner, [x for x in (offset - step / 2, offset + step / 2) if known[0] < x < known[-1]]))
        y = np.interp(inner, known, table)
        at = np.clip(np.searchsorted(known, inner) - 1, 0, len(table) - 2)
        for _ in range(3):
            value, slope = loss(pair, y)
            with np.errstate(divide="ignore", invalid="ignore"):
                moved = y - (value - inner) / slope
            y = np.clip(np.where(np.isfinite(moved), moved, y), table[at], table[at + 1])
        edges = np.unique(np.concatenate([[low], y, [high]]))
        ends, _ = loss(pair, edges)
        p, q = (log_mass(law, edges[:-1], edges[1:]) for law in (pair.first, pair.second))
        self.place = np.clip(p - q, ends[:-1], np.maximum(ends[1:], ends[:-1]))
        self.mass = weight * np.exp(p)


def ends_of(pair, tail, part):
    """(low, high): where losses above or below 0 are, and P has more than the tail."""
    low, high = pair.beyond(tail)
    if part == "above":
        low = max(low, place_of_zero(pair))
    if part == "below":
        high = min(high, place_of_zero(pair))
    return low, high


def place_of_zero(pair):
    low, high = -60.0, 60.0 + max(shift for shift, _ in pair.first)
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(pair, np.array([middle]))[0][0] < 0 else (low, middle)
    return (low + high) / 2


class Round:
    """A disjoint union of pairs: list of (weight, Pair, part), part "all", "above" (losses above 0 alone) or "below"; the rest has loss 0."""

    def __init__(self, pieces):
        self.pieces = pieces

    def offset(self, step, tail, theta):
        """Where under the tilt most of the mass is within a step: log of the ratio of its masses."""
        places, first, second = [np.zeros(1)], [np.zeros(1)], [np.zeros(1)]
        for weight, pair, part in self.pieces:
            low, high = ends_of(pair, tail, part)
            y = np.linspace(low, high, 2001) if high > low else np.zeros(0)
            p, q = (weight * np.exp(log_density(law, y)[0] - ROOT_2PI) * (high - low) / 2000 for law in (pair.first, pair.second))
            places.append(loss(pair, y)[0])
            first.append(p)
            second.append(q)
        places, first, second = (np.concatenate(column) for column in (places, first, second))
        if any(part != "all" for _, _, part in self.pieces):
            first[0] = second[0] = max(1 - first.sum(), 0.0)
        order = np.argsort(places)
        places, first, second = places[order], first[order], second[order]
        tilted = np.log(np.maximum(first, 1e-300)) + theta * places
        total = np.concatenate([[0.0], np.cumsum(np.exp(tilted - tilted.max()))])
        ends = np.searchsorted(places, places + step)
        start = int(np.argmax(total[ends] - total[:-1]))
        window = slice(start, int(ends[start]))
        around = places[start]
        return around - math.log((first[window] @ np.exp(around - places[window])) / first[window].sum()) if first[window].sum() > 0 else 0.0

    def atoms(self, step, tail, theta):
        """(upper, lower, infinite, offset): atoms (losses, masses) of cells, and the mass of an infinite loss."""
        offset = self.offset(step, tail, theta)
        cells = [Cells(pair, step, offset, tail, part, weight) for weight, pair, part in self.pieces if weight > 0]
        infinite = sum(one.above for one in cells)
        places, masses = (np.concatenate([getattr(one, name) for one in cells]) for name in ("place", "mass"))
        cut, lowest = (np.array([getattr(one, name) for one in cells]) for name in ("below", "lowest"))
        rest = max(1 - masses.sum() - cut.sum(), 0.0)
        halves = any(part != "all" for _, _, part in self.pieces)
        below = max(rest - 2 * infinite - 1e-14, 0.0) if halves else 0.0
        lower = merged(np.append(places, 0.0), np.append(masses, below), offset, step / 2)
        return (np.concatenate([places, [0.0], lowest]), np.concatenate([masses, [rest], cut])), lower, infinite, offset


def merged(places, masses, center, reach):
    """The atoms, those within reach of the center as one."""
    near = (np.abs(places - center) < reach) & (masses > 0)
    if not near.any():
        return places, masses
    total = masses[near].sum()
    place = center - math.log(masses[near] @ np.exp(center - places[near]) / total)
    return np.append(places[~near], place), np.append(masses[~near], total)


class Atoms:
    """A round that is known by atoms: (losses, masses under P) from above and from below."""

    def __init__(self, upper, lower, infinite):
        self.known = upper, lower, infinite, 0.0

    def atoms(self, step, tail, theta):
        return self.known


# ------------------------------------------------------------------ compositions


class Lattice:
    """Atoms on the points offset + step * index: split to both neighbours (above), and what is at most their curve (below).

    The split is the chord of the hockey-stick curve over each cell. Taken down at both ends of a cell by the largest gap between
    chord and curve it lies below the curve; where that is not convex its hull is taken.
    """

    def __init__(self, losses, masses, step, offset):
        cell = np.floor((losses - offset) / step)
        self.low = int(cell.min())
        self.step, self.offset = step, offset
        self.cell = (cell - self.low).astype(np.int64)
        right = step * (cell + 1) + offset
        share = np.clip(np.expm1(right - step - losses) / math.expm1(-step), 0.0, 1.0)
        self.size = int(self.cell.max()) + 2
        self.up, self.down = masses * share, masses * (1 - share)
        self.gap = self.up * -np.expm1(np.minimum(losses - right, 0.0))
        self.masses = masses

    def upper(self):
        total = np.bincount(self.cell, self.down, self.size) + np.bincount(self.cell + 1, self.up, self.size)
        return self.low + np.arange(self.size), total

    def lower(self):
        gap = np.bincount(self.cell, self.gap, self.size)
        rounded = np.bincount(self.cell, self.masses, self.size)
        # Curve of the masses rounded down, by points: it must stay well above the gap.
        tail = np.cumsum(rounded[::-1])[::-1]
        mixed = np.cumsum((rounded * np.exp(-self.step * np.arange(self.size)))[::-1])[::-1] if self.size * self.step < 600 else None
        curve = tail - np.exp(self.step * np.arange(self.size)) * mixed if mixed is not None else np.append(tail[1:], 0.0) * -math.expm1(-self.step)
        # Where the curve is well above it: elsewhere the atoms of the cell are rounded down.
        fine = gap * 8 < np.append(curve[1:], 0.0) - 1e-15
        inside, gap = fine[self.cell], np.where(fine, gap, 0.0)
        between = np.maximum(gap, np.concatenate([[0.0], gap[:-1]]))
        total = np.bincount(self.cell, np.where(inside, self.down, self.masses), self.size)
        total = total + np.bincount(self.cell + 1, np.where(inside, self.up, 0.0), self.size)
        # One more point on either side.
        total, g = np.concatenate([[0.0], total, [0.0]]), np.concatenate([[0.0, 0.0], between, [0.0, 0.0]])
        total = total - ((g[2:] - g[1:-1]) / math.expm1(self.step) - (g[1:-1] - g[:-2]) / -math.expm1(-self.step))
        try:
            return hull(self.low - 1 + np.arange(self.size + 2), total, self.step)
        except ArithmeticError:
            return self.low + np.arange(self.size), rounded


def hull(index, masses, step):
    """Negative masses go to both neighbours, their mean kept, until there are none."""
    bad = masses < 0
    if not bad.any():
        return index, masses
    at, kept = [], []
    first = int(np.argmax(bad))
    at, kept = list(index[:first]), list(masses[:first])
    for i, mass in zip(index[first:].tolist(), masses[first:].tolist()):
        while kept and kept[-1] < 0:
            j, debt = at.pop(), kept.pop()
            if not kept:
                mass += debt
                break
            share = math.expm1(step * (at[-1] - j)) / math.expm1(step * (at[-1] - i))
            kept[-1] += debt * (1 - share)
            mass += debt * share
        at.append(i)
        kept.append(mass)
    if kept[-1] < 0:
        raise ArithmeticError("the curve below ends below 0")
    return np.array(at), np.array(kept)


class Composition:
    """rounds : list of (Round or Atoms, how many)."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.count = sum(count for _, count in rounds)
        self.tail = 1e-16 / self.count
        self.rough = []
        for law, count in rounds:
            if isinstance(law, Round):
                spread = sum(abs(np.subtract(*loss(pair, np.array(pair.beyond(self.tail)))[0])) for _, pair, _ in law.pieces)
                lower = law.atoms(spread / 1000, self.tail, 0.0)[1]
            else:
                lower = law.known[1]
            self.rough.append((lower[0], np.log(np.maximum(lower[1], 1e-320)), count))

    def moments(self, theta):
        """(log of the moment, mean, variance) of the sum under the tilt."""
        total = np.zeros(3)
        for losses, logs, count in self.rough:
            terms = logs + theta * losses
            top = terms.max()
            weights = np.exp(terms - top)
            mass = weights.sum()
            mean = float(weights @ losses) / mass
            total += count * np.array([top + math.log(mass), mean, float(weights @ (losses - mean) ** 2) / mass])
        return total

    def tilt_at(self, log_delta):
        """The tilt at which Chernoff's bound of delta is e^log_delta, or the largest that is of use."""
        low, high = 1e-4, 3e2
        for _ in range(26):
            middle = math.sqrt(low * high)
            log, mean, _ = self.moments(middle)
            low, high = (low, middle) if log - middle * mean < log_delta else (middle, high)
        return low

    def tilt_for(self, epsilon):
        low, high = 1e-4, 3e2
        if self.moments(low)[1] >= epsilon:
            return low
        for _ in range(26):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.moments(middle)[1] > epsilon else (middle, high)
        return low

    def window(self, theta):
        """Half of a window that holds the sum under the tilt, up to 1e-13."""
        log, mean, variance = self.moments(theta)
        scale = math.sqrt(max(variance, 1e-30))
        reach = lambda rate: (self.moments(theta + rate)[0] - log - rate * mean + 30) / abs(rate)
        return max(min(reach(sign * size / scale) for size in (1, 2, 3, 4, 5, 6, 7, 8, 10, 13, 17)) for sign in (-1, 1))

    def delta(self, epsilon, width=1e-3, most=2**19):
        """(lower, upper) of delta; the lattice is refined until they are so close, or it has as many points as may be."""
        theta = self.tilt_for(epsilon)
        half = 1.05 * max(self.window(theta), abs(self.moments(theta)[1] - epsilon)) + 1e-9
        need = math.sqrt(self.count * theta * (1 + theta) / (8 * width / 6)) * 2 * half
        size = min(max(2 ** math.ceil(math.log2(max(need, 1))), 2**12), most)
        while True:
            lower, upper = self.ends(epsilon, theta, half, size)
            if upper - lower <= width * upper + 1e-14 or size >= most:
                return lower, upper
            size = min(4 * size, most)

    def ends(self, epsilon, theta, half, size):
        step = 2 * half / size
        laws = [(law.atoms(step, self.tail, theta), count) for law, count in self.rounds]
        above, below = [], []
        for (high, low, _, offset), count in laws:
            above.append((*Lattice(*high, step, offset).upper(), offset, count))
            below.append((*Lattice(*low, step, offset).lower(), offset, count))
        infinite = sum(count * law[2] for law, count in laws)
        upper, error = self.total(above, epsilon, theta, step, size)
        found, other = self.total(below, epsilon, theta, step, size)
        return max(found - other, 0.0), min(upper + error + infinite, 1.0)

    def total(self, lattice, epsilon, theta, step, size):
        """(delta of the lattice laws, bound on what wrapping and rounding may add or hide)."""
        log_moment, shift, transform = 0.0, 0.0, 1.0
        tilted = []
        for index, masses, offset, count in lattice:
            kept = masses > 0
            index, logs = index[kept], np.log(masses[kept]) + theta * (index[kept] * step + offset)
            top = logs.max()
            weights = np.exp(logs - top)
            total = weights.sum()
            weights = weights / total
            log_moment += count * (top + math.log(total))
            shift += count * offset
            tilted.append((index[weights > 0] * step + offset, weights[weights > 0], count))
            law = np.bincount(index % size, weights, size)
            transform = transform * np.fft.rfft(law) ** count
        law = np.fft.irfft(transform, size)
        start = math.floor((epsilon - shift) / step) - size // 2
        index = start + (np.arange(size) - start) % size
        sums = index * step + shift - epsilon
        over = (sums > 0) & (theta * sums < 60)
        value = float(law[over] @ (np.exp(-theta * sums[over]) * -np.expm1(-sums[over])))
        if log_moment - theta * epsilon > 700:
            return 1.0, math.inf  # nothing is known
        scale = math.exp(log_moment - theta * epsilon)
        error = self.wrapped(tilted, epsilon, size * step / 2) + 1e-11 + 1e-15 * self.count
        return scale * value, scale * error

    def wrapped(self, tilted, epsilon, half):
        """Mass of the tilted lattice sum outside of the window around epsilon."""
        variance = sum(count * float(w @ (x - w @ x) ** 2) for x, w, count in tilted)
        scale, found = math.sqrt(max(variance, 1e-30)), 0.0
        for sign in (-1, 1):
            best = 0.0
            for size in (8, 6, 5, 10, 4, 13, 3, 17, 2, 1):
                rate = sign * size / scale
                grown = 0.0
                for x, w, count in tilted:
                    top = (rate * x).max()
                    grown += count * (top + math.log(w @ np.exp(rate * x - top)))
                best = min(best, grown - rate * (epsilon + sign * half))
                if best < -30:  # 1e-13
                    break
            found += math.exp(best)
        return found


# ------------------------------------------------------------------ schemes on one axis


def binomial(trials, q, sign=1):
    """[(shift, log probability)]."""
    return [(sign * i, float(stats.binom.logpmf(i, trials, q))) for i in range(trials + 1)]


def one_of(q, shift):
    return [(0.0, math.log1p(-q)), (shift, math.log(q))] if q < 1 else [(shift, 0.0)]


STILL = [(0.0, 0.0)]


def poisson(sigma, q, first, second):
    """The round of `first` records that only one world holds and `second` that only the other one does."""
    return Round([(1.0, Pair(binomial(first, q), binomial(second, q, -1), sigma), "all")])


def hypergeometric(sigma, batch, size, group):
    # Products of few factors: gamma functions of large numbers would lose digits.
    chance = lambda i: math.comb(group, i) * math.prod([*range(batch - i + 1, batch + 1), *range(size - batch + i + 1, size - batch + group + 1)])
    total = math.prod(range(size + 1, size + group + 1))
    law = [(2.0 * i, math.log(Fraction(chance(i), total))) for i in range(min(group, batch) + 1)]
    return Round([(1.0, Pair(law, STILL, sigma), "all")])


def folded(q, sigma, weight=1.0):
    """Losses above 0 of the mixture with shift 2 against noise, those below 0 of noise against the mixture."""
    pair = Pair(one_of(q, 2.0), STILL, sigma)
    return [(weight, pair, "above"), (weight, pair.swapped(), "below")]


def fixed(sigma, batch, size, adjacency):
    if batch == size:
        return Round([(1.0, Pair([(2.0 if adjacency == "substitution" else 1.0, 0.0)], STILL, sigma), "all")])
    return Round(folded(batch / size, sigma))


def truncated(sigma, q, size, most, adjacency):
    whole = Pair(one_of(q, 1.0), one_of(q, -1.0) if adjacency == "substitution" else STILL, sigma)
    if most >= size:
        return Round([(1.0, whole, "all")])
    cut = float(stats.binom.sf(most - 1, size - 1, q))
    if cut < 1e-280:
        return Round([(1.0, whole, "all")])
    kept = float(stats.binom.sf(most, size, q)) * most / (size * cut)
    if adjacency == "add-remove":
        displaced = [(cut, Pair(one_of(kept, 2.0), STILL, sigma), "all")]
    else:
        displaced = folded(kept, sigma, cut)
    uncut = float(stats.binom.cdf(most - 1, size - 1, q))
    return Round([(uncut, whole, "all"), *displaced])


def add(law):
    """The same round in the other order."""
    turned = {"all": "all", "above": "below", "below": "above"}
    if {part for _, _, part in law.pieces} & {"above", "below"}:
        # Pairs in halves are the same in both orders; whole ones are swapped.
        return Round([(weight, pair.swapped() if part == "all" else pair, part) for weight, pair, part in law.pieces])
    return Round([(weight, pair.swapped(), turned[part]) for weight, pair, part in law.pieces])


def last_iterate(sigma, q, steps, epsilon, direction):
    """(lower, upper): one round with sensitivity Binomial(steps, q), in closed form."""
    i = np.arange(steps + 1)
    logs = stats.binom.logpmf(i, steps, q)
    kept = logs > -300
    shifts, logs = i[kept] / (sigma * math.sqrt(steps)), logs[kept]
    rests = logs - shifts**2 / 2
    level = epsilon if direction == "remove" else -epsilon
    low, high = -1e4, 1e4
    for _ in range(70):
        middle = (low + high) / 2
        terms = rests + shifts * middle
        top = terms.max()
        low, high = (middle, high) if top + math.log(np.exp(terms - top).sum()) < level else (low, middle)
    y = (low + high) / 2
    sign = 1 if direction == "remove" else -1
    mixed = float(special.logsumexp(logs + special.log_ndtr(sign * (shifts - y))))
    noise = float(special.log_ndtr(-sign * y))
    first, second = (mixed, noise + epsilon) if sign == 1 else (noise, mixed + epsilon)
    value = math.exp(first) * -math.expm1(min(second - first, 0.0)) if first > -700 else 0.0
    error = math.exp(first) * 3e-11 * (1 + abs(first) + abs(epsilon)) if first > -700 else 1e-300
    return max(value - error, 0.0), value + error


# ------------------------------------------------------------------ balls in bins


class Ratios:
    """The mean of `bins` lognormals exp(z / sigma - 1 / (2 sigma^2)): atoms (value, mass under noise) above and below in convex order."""

    def __init__(self, bins, sigma, points=1500):
        shift, reach = 1 / sigma, 8.4
        edges = np.linspace(-reach, reach + shift, points)
        # Mass under noise, and the mean of the ratio times it: mass under the shifted law.
        noise, shifted = (np.where(edges[:-1] > 0, -np.diff(special.ndtr(-e)), np.diff(special.ndtr(e))) for e in (edges, edges - shift))
        noise = np.where(edges[:-1] > 0, special.ndtr(-edges[:-1]) - special.ndtr(-edges[1:]), noise)
        at = edges - shift
        shifted = np.where(at[:-1] > 0, special.ndtr(-at[:-1]) - special.ndtr(-at[1:]), np.diff(special.ndtr(at)))
        keep = (noise > 0) & (shifted > 0)
        value = np.exp(edges * shift - shift**2 / 2)
        mean = np.clip(shifted[keep] / noise[keep], value[:-1][keep], value[1:][keep])
        share = (mean - value[:-1][keep]) / (value[1:][keep] - value[:-1][keep])
        spread = np.concatenate([value[:-1][keep], value[1:][keep]]), np.concatenate([noise[keep] * (1 - share), noise[keep] * share])
        self.points = points
        low, high = math.log(value[0]), math.log(value[-1]) + math.log(bins)
        self.grid = np.exp(np.linspace(low - 1e-9, high + 1e-9, points))
        self.low, self.spacing = math.log(self.grid[0]), math.log(self.grid[1] / self.grid[0])
        self.upper = self._times(bins, self._spread(*spread), self._spread)
        self.lower = self._times(bins, self._merged(mean, noise[keep]), self._merged)
        self.upper, self.lower = ((values / bins, masses) for values, masses in (self.upper, self.lower))
        # What was cut off: under noise, and under P, at most.
        self.cut = bins * special.ndtr(-reach) * 2 + 1e-13 * bins

    def _times(self, bins, one, rounded):
        found = None
        while True:
            if bins % 2:
                found = one if found is None else self._added(found, one, rounded)
            bins //= 2
            if not bins:
                return found
            one = self._added(one, one, rounded)

    def _added(self, one, other, rounded):
        values, masses = np.add.outer(one[0], other[0]).ravel(), np.multiply.outer(one[1], other[1]).ravel()
        kept = masses * np.maximum(values, 1.0) > 1e-24
        return rounded(values[kept], masses[kept])

    def _cell(self, values):
        index = np.floor((np.log(values) - self.low) / self.spacing).astype(np.int64)
        return np.clip(index, 0, self.points - 2)

    def _spread(self, values, masses):
        index = self._cell(values)
        low, high = self.grid[index], self.grid[index + 1]
        share = np.clip((values - low) / (high - low), 0.0, 1.0)
        total = np.bincount(index, masses * (1 - share), self.points) + np.bincount(index + 1, masses * share, self.points)
        return self.grid[total > 0], total[total > 0]

    def _merged(self, values, masses):
        index = self._cell(values)
        total, mean = np.bincount(index, masses, self.points), np.bincount(index, masses * values, self.points)
        return mean[total > 0] / total[total > 0], total[total > 0]

    def delta(self, epsilon, direction):
        """(lower, upper)."""
        alpha, found = math.exp(epsilon), []
        for values, masses in (self.lower, self.upper):
            excess = np.maximum(values - alpha, 0.0) if direction == "remove" else np.maximum(1 - alpha * values, 0.0)
            found.append(float(masses @ excess))
        return max(found[0] - self.cut, 0.0), found[1] + self.cut

    def round(self, direction):
        """As a round of a composition."""
        sides = []
        for values, masses in (self.upper, self.lower):
            losses = np.log(values)
            sides.append((losses, masses * values) if direction == "remove" else (-losses, masses))
        return Atoms(*sides, self.cut)


# ------------------------------------------------------------------ few rounds


def few_rounds(modes, weights, epsilon, direction, step):
    """(value, error): the mixture of N(mode, I) with these weights against N(0, I), modes >= 0 of shape (patterns, rounds)."""
    values = [_trapezoid(modes, weights, epsilon, direction, size) for size in (step, step / 1.25)]
    return values[1], 3 * abs(values[1] - values[0]) + 1e-9 * values[1] + 1e-16


def _trapezoid(modes, weights, epsilon, direction, step):
    outer, along = modes[:, :-1], modes[:, -1]
    reach = 8.0
    axes = [np.arange(-reach - step * 0.37, reach + outer[:, i].max() + step, step) for i in range(outer.shape[1])]
    level = epsilon if direction == "remove" else -epsilon
    total = 0.0
    for first in axes[0] if axes else [None]:  # one slab after the other, to save memory
        grids = np.meshgrid(*([first] if axes else []), *axes[1:], indexing="ij")
        z = np.stack([grid.ravel() for grid in grids], axis=1) if axes else np.zeros((1, 0))
        total += _slab(z, outer, along, weights, level, direction)
    return total * step ** len(axes)


def _slab(z, outer, along, weights, level, direction):
    # log of each pattern's factor, without the last axis
    logs = np.log(weights)[:, None] + outer @ z.T - (outer**2).sum(axis=1)[:, None] / 2
    density = np.exp(-(z**2).sum(axis=1) / 2) * (2 * math.pi) ** (-z.shape[1] / 2)
    slopes = along[:, None]
    terms = logs - slopes**2 / 2
    moving = along > 0
    # From the right of the root, where one pattern alone reaches the level, Newton's method on a convex function falls to it.
    still = special.logsumexp(terms[~moving], axis=0) if (~moving).any() else np.full(terms.shape[1], -np.inf)
    y = ((level - terms[moving]) / slopes[moving]).min(axis=0)
    always = still >= level
    y = np.where(always, -30.0, np.clip(y, -60.0, 200.0))
    for _ in range(60):
        parts = terms + slopes * y
        top = parts.max(axis=0)
        shares = np.exp(parts - top)
        sums = shares.sum(axis=0)
        moved = (top + np.log(sums) - level) / ((slopes * shares).sum(axis=0) / sums)
        y = np.where(always, y, np.maximum(y - np.maximum(moved, 0.0), -60.0))
        if not always.all() and np.abs(np.where(always, 0.0, np.maximum(moved, 0))).max() < 1e-11 or always.all():
            break
    if direction == "remove":
        y = np.where(always, -np.inf, y)
        found = (np.exp(logs) * special.ndtr(slopes - y)).sum(axis=0) - math.exp(level) * special.ndtr(-y)
    else:
        # Below the root alpha times the ratio is less than 1.
        found = special.ndtr(y) - math.exp(-level) * (np.exp(logs) * special.ndtr(y - slopes)).sum(axis=0)
        found = np.where(always, 0.0, found)
    return float(density @ np.maximum(found, 0.0))


def subsets(rounds, participations, sigma):
    """(modes, weights) of k of t rounds."""
    chosen = list(itertools.combinations(range(rounds), participations))
    modes = np.zeros((len(chosen), rounds))
    for mode, one in zip(modes, chosen):
        mode[list(one)] = 1 / sigma
    return modes, np.full(len(chosen), 1 / len(chosen))


def pauses(matrix, p, separation, warm, sigma):
    """(modes, weights) of sampling with a pause: after a participation the next separation - 1 rounds are left out."""
    rounds, found = len(matrix), {}

    def go(i, chosen, weight):
        if weight == 0:
            return
        if i >= rounds:
            found[chosen] = found.get(chosen, 0.0) + weight
            return
        go(i + 1, chosen, weight * (1 - p))
        go(i + separation, (*chosen, i), weight * p)

    if warm:
        free = 1 / (1 + (separation - 1) * p)
        go(0, (), free)
        for first in range(1, separation):
            go(first, (), p * free)
    else:
        go(0, (), 1.0)
    modes = np.stack([matrix[:, list(chosen)].sum(axis=1) / sigma for chosen in found])
    return modes, np.array(list(found.values()))
