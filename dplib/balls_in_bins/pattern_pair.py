"""The dominating pair of b-min-sep sampling: pattern law, Gram matrix, likelihood ratio, for any number of bands.

With a_i column i of C in units of the noise, G their Gram matrix and z_i = <a_i, u>,

    dP/dQ = sum over patterns S of Pr(S) exp(sum_{i in S} (z_i - G_ii / 2) - sum_{j < i in S} G_ij).

With at most b bands the last sum is empty and `Patterns.log_ratio` does it. Otherwise what a round adds depends on the
*history*, the set s of the record's rounds among the last w - 1 (w bands). Where the record may join round i, they are b or more
rounds back, and with f_i(s) the part of dP/dQ from round i on

    f_i(s) = (1 - p) f_{i+1}(s) + p exp(z_i - G_ii / 2 - sum_{j in s} G_ij) f_{i+b}(s + i),    f = 1 beyond the last round.

Rounds that have left the window are forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .pattern_law import Band, Patterns

MOST_HISTORIES = 2**18  # times rounds: a draw then takes about a millisecond
_ROWS, _ENTRIES = 512, 2**20  # draws worked on at once, and numbers in one table of them
_LARGEST_LOG = 600.0  # of a ratio that is computed without logarithms


@dataclass(frozen=True, eq=False)
class Pair:
    """The law of a record's rounds, and the inner products of what it moves in them, in units of the noise."""

    patterns: Patterns
    band: Band

    @cached_property
    def overlap(self):
        """Whether two rounds of one record can overlap: more bands than b."""
        return len(self.band.gram) > self.patterns.b

    @cached_property
    def own(self):
        """For round i and l = 0 .. b: the most that the earlier rounds of a record can add up to in G_ij, j the record's rounds b or
        more before i, if its last one is l rounds before i (l = b: at any l >= b; l = 0: 0). Shape (b + 1, T).
        """
        b, gram = self.patterns.b, self.band.gram
        width, rounds = gram.shape
        if not self.overlap:
            return np.zeros((1, rounds))
        most = np.zeros((width + b + 1, rounds))  # row l: if its last round is at least l before i
        for lag in range(width - 1, b - 1, -1):
            most[lag] = np.maximum(most[lag + 1], gram[lag] + most[lag + b])
        result = most[b : 2 * b + 1].copy()
        result[b] = most[b]
        result[0] = 0.0
        return result

    @cached_property
    def longest(self):
        """At least the largest squared norm of what a pattern moves; equal to it with at most b bands."""
        return self.patterns.longest(self.band.squares + 2 * self.own[-1])

    @property
    def histories(self):
        """How many sets of earlier rounds in the window a record may have that may join; counted no further than needed."""
        b, counts = self.patterns.b, [1]
        for place in range(1, len(self.band.gram) - b + 1):
            counts.append(counts[-1] + counts[max(place - b, 0)])
            if counts[-1] > MOST_HISTORIES:
                break
        return counts[-1]

    def check_histories(self):
        """Raises ValueError where the likelihood ratio would take too long."""
        most = max(MOST_HISTORIES // self.patterns.rounds, 1)
        if self.overlap and self.histories > most:
            raise ValueError(
                f"encoder must have fewer bands, or min_separation must be larger: a record has more histories of "
                f"{len(self.band.gram)} rounds than the {most} that are summed up one by one for "
                f"{self.patterns.rounds} rounds; got min_separation={self.patterns.b}. For any encoder method='renyi' and `poisson()` give "
                "upper bounds"
            )

    @cached_property
    def _steps(self):
        """(how many histories can occur in round i; minus the push, shape (histories, T); the history a round after staying out; b after joining).

        A history is a tuple of lags, rising. They are sorted by the last lag, so that those which can occur in round i come first.
        """
        b, (width, rounds) = self.patterns.b, self.band.gram.shape
        found = [()]
        for lag in range(b, width):
            found += [(*past, lag) for past in found if not past or past[-1] <= lag - b]
        place = {past: i for i, past in enumerate(found)}
        later = lambda past, by: tuple(lag + by for lag in past if lag + by < width)
        stay = np.array([place[later(past, 1)] for past in found])
        join = np.array([place[b, *later(past, b)] for past in found])
        members = np.array([[lag in past for lag in range(width)] for past in found], dtype=float)
        oldest = np.array([past[-1] if past else 0 for past in found])
        return np.searchsorted(oldest, np.arange(rounds), side="right"), -(members @ self.band.gram), stay, join

    def log_ratio(self, y):
        """log dP/dQ at y_i = <a_i, u> - G_ii / 2, shape (draws, rounds); shape (draws,)."""
        if not self.overlap:
            return self.patterns.log_ratio(y)
        rows, found = max(1, min(_ROWS, _ENTRIES // self.histories)), np.empty(len(y))
        resolved = self.resolved(y)
        for ratio, draws in ((self._log_ratio, np.flatnonzero(resolved)), (self._log_ratio_by_logs, np.flatnonzero(~resolved))):
            for start in range(0, len(draws), rows):
                part = draws[start : start + rows]
                found[part] = ratio(y[part])
        return found

    def _log_ratio(self, y):
        reachable, log_weights, stay, join = self._steps
        p, b, waits = self.patterns.p, self.patterns.b, self.patterns.waits
        weights, joined = np.exp(log_weights), p * np.exp(y.T)
        after = [np.ones((len(weights), len(y)))] * b  # f_{i+1} .. f_{i+b}
        total = np.zeros(len(y))
        for i in range(self.patterns.rounds - 1, -1, -1):
            known = slice(0, reachable[i])
            value = after[-1][join[known]]
            value *= weights[known, i, None]
            value *= joined[i]
            value += (1 - p) * after[0][stay[known]]
            after = [value, *after[:-1]]
            if i < len(waits):  # eligible first in round i
                total += waits[i] * value[0]
        return np.log(total)

    def _log_ratio_by_logs(self, y):
        """The same recurrence where its terms leave the range of floating-point numbers."""
        reachable, log_weights, stay, join = self._steps
        with np.errstate(divide="ignore"):  # of 0, where p is 1
            log_waits, log_p, log_rest = map(np.log, (self.patterns.waits, self.patterns.p, 1 - self.patterns.p))
        after = [np.zeros((len(log_weights), len(y)))] * self.patterns.b
        total = np.full(len(y), -np.inf)
        for i in range(self.patterns.rounds - 1, -1, -1):
            known = slice(0, reachable[i])
            joins = after[-1][join[known]] + log_weights[known, i, None] + (log_p + y[:, i])
            value = np.logaddexp(joins, log_rest + after[0][stay[known]])
            after = [value, *after[:-1]]
            if i < len(log_waits):
                total = np.logaddexp(total, log_waits[i] + value[0])
        return total

    def resolved(self, y):
        """For which draws `log_ratio` neither overflows nor loses a term that matters; shape (draws,).

        A record has at most one round in b consecutive ones, so that no f and no 1 / f exceeds e to the sum of the largest |y|
        of such blocks, and of what rounds of one record overlap.
        """
        if not self.overlap:
            return np.ones(len(y), dtype=bool)
        b, rounds = self.patterns.b, self.patterns.rounds
        padded = np.pad(np.abs(y), ((0, 0), (0, -rounds % b)))
        blocks = padded.reshape(len(y), -1, b).max(axis=2).sum(axis=1)
        return blocks + self.longest < _LARGEST_LOG
