"""MMCC: what the past reveals about a participation, bounded off a rare event [M-Alg1].

A matrix mechanism releases C x + z. Given the rows released so far, the next one is a product
mixture whose probabilities depend on the past [M-C.3]. Off a bad event of probability delta_1 they
are bounded by fixed numbers; by conditional composition [M-3.1] the mechanism then costs no more
than the composition of these fixed rows, at delta - delta_1.

Tail bounds, all valid; each holds for outputs of either argument:

    "published"     Algorithm 2 of Choquette-Choo et al. (2024): one bound for each (row, column), half of its
                    probability for the participations, half for the noise              [M-Alg2]
    "joint"         the same events, participations and noise in one Chernoff bound     [A-11]
    "aggregated"    bounds on sums over columns instead of single ones, for Toeplitz and tree
                    encoders                                                            [A-12]
    "pooled"        for trees: how many nodes exceed each of several levels             [A-13]
    "best"          the smallest of all, with delta_1 tuned, and of bounds that need none: counted
                    participations, Rényi (`mechanisms.MatrixMechanism`)        [M-few], [M-once], [A-28]

`rows` turns an encoder into row laws; `epsilon` and `delta` compose them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._base import validate as check
from ..matrices import Encoder, Toeplitz, Tree
from ..mixtures import Mixture
from ..results import NoBracketError
from . import tails_dense, tails_toeplitz, tails_tree
from .row_laws import RowLaws, bernoulli_numbers, binomial_numbers, poisson_numbers, threshold_for

TAIL_BOUNDS = ("best", "published", "joint", "aggregated", "pooled")
_EXACT_ROWS = 2048  # up to here the published bound keeps every row and age apart
_SMALL = 256  # rounds up to which the published bound is cheap enough to be tried as well
_MOST_COLUMNS = 4096  # largest encoder without structure
_GRID = 256  # points of a row's sensitivity grid
_NEARLY = 0.7  # of the largest sum: a grid that reaches so far may as well hold it
_RAREST = 1e-300  # bad event: its share for one node of many has to be a float above 0
_MOST_MEAN = 200.0  # participations in a row beyond which the bound is useless


@dataclass(frozen=True, eq=False)
class Rows:
    """Row laws of a matrix mechanism off its bad event, and what they leave out.

    pairs : list of (Mixture, number of rows).
    delta_1 : probability of the bad event, to be added to delta.
    slack : probability lost by truncation and rounding over all rows: to be added to delta in
        the remove direction, e^epsilon times it in the add direction.
    tail_bound : which bound it is; "no" where the past reveals nothing.
    """

    pairs: list
    delta_1: float
    slack: float
    tail_bound: str


def _bad_event(delta_1):
    delta_1 = check.real("delta_1", delta_1, above=0, below=1)
    if delta_1 < _RAREST:
        raise NoBracketError(f"no tail bound is computed for a bad event as rare as {delta_1:g}; {_RAREST:g} is the least")
    return delta_1


def published_tail(
    encoder: Encoder, noise_multiplier: float, sampling_probability: float, delta_1: float,
    min_separation: int = 1,
) -> np.ndarray:
    """Upper bounds on the conditional participation probabilities, by Algorithm 2 of the source [M-Alg2].

    Parameters
    ----------
    encoder : of `dplib.matrices`, with up to 4,096 rounds.
    noise_multiplier : sigma > 0. sampling_probability : p in [0, 1].
    delta_1 : in (0, 1), probability that some bound fails. min_separation : b >= 1 with b p <= 1.

    Returns an array with a row for each row of the encoder (each block of b rounds) and a column
    for each round (each b-th one): p~ of the source, and its placeholder 1 where the entry is 0.
    Raises ValueError or TypeError on bad input. Cost: n^2 for Toeplitz, n^3 for dense encoders.

    >>> from dplib import conditional, matrices
    >>> bounds = conditional.published_tail(matrices.optimal_counting(4), 2.0, 0.1, delta_1=1e-6)
    >>> bounds.shape, bool((bounds >= 0.1).all())
    ((4, 4), True)
    """
    noise, p, b = check_setting(encoder, noise_multiplier, sampling_probability, min_separation)
    delta_1 = _bad_event(delta_1)
    _refuse_large(encoder)
    if isinstance(encoder, Toeplitz) and _non_increasing(encoder):
        ages = tails_toeplitz.Ages(encoder.coefficients, noise, b)
        by_age = tails_toeplitz.published(ages, b * p, delta_1)
        age = np.arange(ages.count)[:, None] - np.arange(ages.count)
        inside = (age >= 0) & (age <= ages.active)
        return np.where(inside, np.take_along_axis(by_age, np.clip(age, 0, ages.active), axis=1), 1.0)
    if isinstance(encoder, Tree) and b == 1:
        chances = np.array(tails_tree.published(tails_tree.Branches(encoder.leaves, encoder.trees, noise), p, delta_1))
        return np.where(encoder.entries() > 0, chances[encoder.row_heights][:, None], 1.0)
    blocks = tails_dense.Blocks(encoder, noise, b)
    bounds = tails_dense.bounds(blocks, b * p, delta_1, tails_dense.published_rule)
    return np.where(blocks.entries > 0, bounds, 1.0)


def rows(
    encoder: Encoder, noise_multiplier: float, sampling_probability: float, delta_1: float,
    tail_bound: str, *, min_separation: int = 1, slack: float = 1e-12,
    round_entries_to: float | None = None,
) -> list[Rows]:
    """Row laws off a bad event of probability delta_1: a list of `Rows`, one for each group of records.

    Parameters
    ----------
    encoder, noise_multiplier, sampling_probability, min_separation : as in `published_tail`.
    delta_1 : in (0, 1). tail_bound : "published", "joint", "aggregated" or "pooled".
    slack : in (0, 1), how much probability truncation and rounding may cost in all.
    round_entries_to : round the entries of the row laws up to multiples of this, as the source does, instead
        of splitting them (None).

    With b > 1 (cyclic Poisson sampling) the data are split into b groups; for Toeplitz encoders the first one is the
    worst, for trees with b a power of two all are alike. Raises NoBracketError where the bound is void:
    the participations that it allows for are so many that the noise cannot hide them.
    """
    noise, p, b = check_setting(encoder, noise_multiplier, sampling_probability, min_separation)
    delta_1 = _bad_event(delta_1)
    check.choice("tail_bound", tail_bound, TAIL_BOUNDS[1:])
    slack = check.real("slack", slack, above=0, below=1)
    if round_entries_to is not None:
        round_entries_to = check.real("round_entries_to", round_entries_to, above=0)
    if b * p in (0.0, 1.0):
        return [_without_chance(encoder, noise, b, b * p)]
    build = _Build(noise, slack, round_entries_to)
    if isinstance(encoder, Toeplitz) and _structured(encoder):
        found = [_toeplitz(encoder, b, b * p, delta_1, tail_bound, build)]
    elif isinstance(encoder, Tree) and (b & (b - 1)) == 0 and b <= encoder.leaves:
        found = [_tree(encoder, b, p, delta_1, tail_bound, build)]
    else:
        _refuse_large(encoder)
        if tail_bound in ("aggregated", "pooled"):
            raise _unsuited()
        found = _dense(encoder, b, b * p, delta_1, tail_bound, build)
    # Where the past reveals nothing there is no bad event, and no tail bound.
    return [Rows(pairs, spent, lost, tail_bound if spent else "no") for pairs, spent, lost in found]


def candidates(encoder: Encoder, min_separation: int) -> list[str]:
    """The tail bounds that are worth trying for an encoder, cheapest first."""
    names = ["joint"]
    if encoder.columns <= _SMALL or isinstance(encoder, Tree):
        names.insert(0, "published")  # it wins where the noise is very low
    if isinstance(encoder, Toeplitz):
        names.append("aggregated")
    elif isinstance(encoder, Tree) and min_separation == 1:
        names.append("pooled")
    return names


# ------------------------------------------------------------------ checks


def check_setting(
    encoder: Encoder, noise_multiplier: float, sampling_probability: float, min_separation: int
) -> tuple[float, float, int]:
    """(noise multiplier, sampling probability, number of groups that take turns), checked against each other and the encoder."""
    check.encoder(encoder)
    noise = check.noise_multiplier(noise_multiplier)
    p = check.probability("sampling_probability", sampling_probability)
    b = check.whole("min_separation", min_separation, at_least=1, at_most=encoder.columns)
    if b * p > 1:
        raise ValueError(
            "sampling_probability must be at most 1 / min_separation: under cyclic Poisson sampling each group is sampled "
            f"with probability {b} * {p:g} = {b * p:g}"
        )
    return noise, p, b


def _non_increasing(encoder):
    return bool(np.all(np.diff(encoder.coefficients) <= 0))


def _structured(encoder):
    """Whether ages decide; a large encoder that is not monotone is dominated by its majorant."""
    return _non_increasing(encoder) or encoder.columns > _EXACT_ROWS


def _refuse_large(encoder):
    if encoder.columns > _MOST_COLUMNS:
        raise ValueError(
            f"encoder must have at most {_MOST_COLUMNS} rounds unless its structure is used (non-increasing Toeplitz, "
            f"or a tree with min_separation a power of two up to its leaves); got {encoder.columns}"
        )


# ------------------------------------------------------------------ row laws


def _without_chance(encoder, noise, b, p):
    """Nobody, or everybody of the first group, takes part in each round: a plain Gaussian mechanism."""
    taken = np.zeros(encoder.columns)
    norms = []
    for first in range(b):
        taken[:] = 0.0
        taken[first::b] = p
        norms.append(float(np.linalg.norm(encoder.multiply(taken))))
        if isinstance(encoder, Toeplitz) and _non_increasing(encoder):
            break
    return Rows([(Mixture([max(norms) * (1 + 1e-12)], [1.0], noise), 1)], 0.0, 0.0, "no")


class _Build:
    """Turns entries with numbers of participations into mixtures, within a slack."""

    def __init__(self, noise, slack, rounding):
        self.noise, self.slack, self.rounding = noise, slack, rounding

    def up(self, entries):
        if self.rounding is None:
            return entries
        return np.ceil(np.asarray(entries) / self.rounding * (1 - 1e-12)) * self.rounding

    def grid(self, total_rows, log_moment, largest, most=None):
        """(step, size) of a grid that rows leave with probability about slack / (4 total_rows), before entries are split.

        log_moment(s) : log E e^{s X} of the largest row (or of all); largest : its largest entry. most : its
        largest sum and its number of entries.
        """
        need = math.log(4 * total_rows / self.slack)
        orders = np.geomspace(0.5, 200, 25) / largest
        with np.errstate(over="ignore", invalid="ignore"):
            tops = np.array([(float(log_moment(order)) + need) / order for order in orders])
        top = float(tops[np.isfinite(tops)].min(initial=math.inf))
        if not top <= 2**14 * largest:
            raise void()
        if self.rounding is not None:
            return self.rounding, math.ceil(top / self.rounding) + 1
        top = max(top, largest)
        if most is not None and most[1] < _GRID / 2:
            # Each split goes up by less than a step: from here on no row can leave the grid.
            safe = most[0] * _GRID / (_GRID - most[1]) * (1 + 1e-9)
            top = safe if top > _NEARLY * safe else top
        return top / _GRID, _GRID

    def rows(self, counts, total_rows, parts, log_moment, largest, mean, most=None, unit=None):
        """(list of (Mixture, count), probability left out) of rows, each a sum of parts.

        counts : how many rows there are of each kind; total_rows : of all, which share the slack. parts : arguments
        of `RowLaws.add`. log_moment, largest, most : see `grid`. mean : the largest mean number of participations: a
        split costs Phi(-T), at most `mean` + 1 times in each row. unit : None, or what all entries are multiples of.
        """
        step, size = self.grid(total_rows, log_moment, largest, most)
        if unit is not None:
            step, size = unit, min(math.ceil(step * size / unit), most[1])
        laws = RowLaws(len(counts), step, size, self.noise, threshold_for(self.slack / (4 * total_rows * (mean + 1))))
        for part in parts:
            laws.add(*part)
        if np.any(laws.weights.sum(axis=1) < 0.5):
            raise void()
        lost = float(counts @ (laws.overflow + laws.shortfall))
        return [(mixture, int(count)) for mixture, count in zip(laws.mixtures(), counts)], lost


def void() -> NoBracketError:
    """The error for a bound that says nothing."""
    return NoBracketError(
        "the tail bound is void here: so probable a bad event (delta_1) or so little noise lets a past participation "
        "look almost certain; a larger noise multiplier or a larger delta_1 is needed"
    )


def _unsuited():
    return NoBracketError(
        "the aggregated bound needs a Toeplitz encoder with coefficients that never increase, or a tree with "
        "min_separation=1; the pooled one needs the latter"
    )


def _refuse_many(mean, expected):
    if not mean < _MOST_MEAN * max(1.0, 4 * expected):
        raise void()


def _toeplitz(encoder, b, p, delta_1, tail_bound, build):
    ages = tails_toeplitz.Ages(encoder.coefficients, build.noise, b)
    entries = build.up(ages.entries)
    if ages.active == 0:
        # The past says nothing about the present: all rows are alike, and their participations a grid of their own.
        value, coin = float(entries[0]), bernoulli_numbers([p])
        log_moment = lambda order: np.log1p(p * np.expm1(order * value))
        pairs, lost = build.rows(np.array([ages.count]), ages.count, [(value, coin)], log_moment, value, p, (value, 1), value)
        return pairs, 0.0, lost
    if tail_bound == "pooled":
        raise _unsuited()
    if tail_bound == "aggregated":
        cumulative = tails_toeplitz.aggregated_intensities(ages, p, delta_1)
        if not np.all(np.isfinite(cumulative)):
            raise void()
        pairs, lost = _by_group(ages, entries, p, np.diff(cumulative, prepend=0.0), build, poisson=True)
    elif tail_bound == "published" and ages.count <= _EXACT_ROWS:
        pairs, lost = _by_age(ages, entries, tails_toeplitz.published(ages, p, delta_1), build)
    else:
        rule = tails_toeplitz.published_groups if tail_bound == "published" else tails_toeplitz.joint
        pairs, lost = _by_group(ages, entries, p, rule(ages, p, delta_1), build, poisson=False)
    return pairs, delta_1, lost


def _by_age(ages, entries, chances, build):
    """Rows with a probability for each age, shape (rows, ages)."""
    used = entries[: chances.shape[1]]
    largest = chances.max(axis=0)  # at least the chances of any one row
    log_moment = lambda order: float(np.log1p(largest * np.expm1(order * used)).sum())
    parts = ((value, bernoulli_numbers(chances[age:, age]), 0.0, age) for age, value in enumerate(used))
    return build.rows(np.ones(len(chances)), ages.count, parts, log_moment, used[0], float(chances.sum(axis=1).max()))


def _by_group(ages, entries, p, amounts, build, poisson):
    """Rows with an amount for each group of ages: an intensity (Poisson) or a probability for each column."""
    sizes, groups = ages.sizes[: ages.old], ages.old
    values = entries[ages.edges[:groups] + 1]  # the youngest and largest entry of a group
    mean = p + float(amounts.sum() if poisson else amounts @ sizes)
    _refuse_many(mean, p * ages.count)

    def log_moment(order):
        jumps = np.expm1(order * values)
        rest = amounts @ jumps if poisson else sizes @ np.log1p(amounts * jumps)
        return float(np.log1p(p * np.expm1(order * entries[0]))) + float(rest)

    def parts():
        yield entries[0], bernoulli_numbers([p])
        negligible = build.slack / (8 * ages.count * groups)
        for g in range(groups):
            if poisson:
                yield values[g], *poisson_numbers(amounts[g], negligible), g + 1
            else:
                yield values[g], *binomial_numbers(int(sizes[g]), float(amounts[g]), negligible), g + 1

    return build.rows(np.append(1, ages.multiplicities), ages.count, parts(), log_moment, entries[0], mean)


def _tree(encoder, b, p, delta_1, tail_bound, build):
    base = None if b == 1 else b.bit_length() - 1
    tree = tails_tree.Branches(encoder.leaves, encoder.trees, build.noise, base)
    if tail_bound in ("aggregated", "pooled") and base is not None:
        raise _unsuited()
    chances = getattr(tails_tree, tail_bound)(tree, b * p, delta_1)
    if chances is None:
        raise void()
    kinds = tree.rows(chances)
    total = float(sum(number for number, _ in kinds))
    pairs, lost = [], 0.0
    for number, entries in kinds:
        values, columns, likely = (np.array(column) for column in zip(*entries))
        mean = float(columns @ likely)
        _refuse_many(mean, b * p * tree.leaves)
        raised, negligible = build.up(values), build.slack / (8 * total * len(entries))
        made, slack = build.rows(
            np.array([number]), total,
            ((v, *binomial_numbers(int(n), float(x), negligible)) for v, n, x in zip(raised, columns, likely)),
            lambda order: columns @ np.log1p(likely * np.expm1(order * values)),  # noqa: B023
            float(max(raised)), mean, (float(raised @ columns), int(columns.sum())),
            float(raised[0]) if len(entries) == 1 else None,  # whole numbers of participations are a grid of their own
        )
        pairs, lost = pairs + made, lost + slack
    return pairs, delta_1 if tree.pairs else 0.0, lost


def _dense(encoder, b, p, delta_1, tail_bound, build):
    found = []
    rule = getattr(tails_dense, f"{tail_bound}_rule")
    for first in range(b):
        blocks = tails_dense.Blocks(encoder, build.noise, b, first)
        chances = tails_dense.bounds(blocks, p, delta_1, rule)
        pairs, lost = _by_pair(build.up(blocks.entries), chances, build)
        found.append((pairs, delta_1 if blocks.pairs else 0.0, lost))
    return found


def _by_pair(entries, chances, build):
    """Rows with an entry and a probability for each pair of row and column."""
    chances = np.where(entries > 0, chances, 0.0)

    def log_moment(order):
        return float(np.log1p(chances * np.expm1(order * entries)).sum(axis=1).max())

    def parts():
        for values, coins in zip(entries.T, chances.T):
            used = np.flatnonzero(values)
            first, last = used[0], used[-1] + 1
            yield values[first:last], bernoulli_numbers(coins[first:last]), 0.0, first, last

    most = float(entries.sum(axis=1).max()), int((entries > 0).sum(axis=1).max())
    mean = float(chances.sum(axis=1).max())
    return build.rows(np.ones(len(entries)), len(entries), parts(), log_moment, float(entries.max()), mean, most)
