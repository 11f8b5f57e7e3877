"""A ledger of releases: what was spent, what fits, and a file that keeps it."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from .._base import validate as check
from ..mechanisms.dpsgd import FixedBatchDPSGD, LastIterate, PoissonDPSGD
from ..mechanisms.truncated import TruncatedPoissonDPSGD
from ..results import Bracket, NoBracketError, UpperBound
from . import entries
from .account import Account, Relation, together

_FORMAT = "dplib.Ledger 1"
_MOST_STEPS = 10**9


class Ledger:
    """Releases from one dataset, over months, and what they cost together.

    Parameters
    ----------
    relation : "add/remove", "zero-out" or "substitution": which datasets are neighbours, for all entries [C-4].
    group_size : k >= 1 records that differ, for all entries.

    Every entry may depend on what earlier ones released. Answers are Brackets where every entry has a dominating pair, else
    UpperBounds (see `dplib.bridges.account`).
    Raises ValueError or TypeError, naming the reason, for what does not compose.
    Cost: milliseconds for some entries; at most about a second for thousands of noise levels, whose bracket is wider.

    >>> from dplib import Ledger, PoissonDPSGD
    >>> ledger = Ledger()
    >>> ledger.add(PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.01, steps=2000), name="first model")
    >>> ledger.add({"epsilon": 0.1, "delta": 1e-8}, name="table of counts", date="2026-11-02")
    >>> print(f"{ledger.spent(delta=1e-6).upper:.4f}")
    3.0569
    >>> ledger.would_exceed(epsilon=4.0, delta=1e-6, what=PoissonDPSGD(1.0, 0.01, 2000))
    True
    """

    def __init__(self, relation: Relation = "add/remove", group_size: int = 1):
        total = Account(relation, group_size)
        self.relation, self.group_size = total.relation, total.group_size
        self._entries: list[dict] = []
        self._rounds: list[dict[tuple, int]] = []  # the items of every entry
        self._samples: dict[str, dict[tuple, int]] = {}  # those of the last entry from a sample

    @property
    def entries(self) -> list[dict]:
        """A copy of what was added: dictionaries with `what`, `count`, `name`, `date`, `sample`."""
        return copy.deepcopy(self._entries)

    def add(
        self, what: Any, count: int = 1, name: str | None = None, date: str | datetime.date | None = None, sample: str | None = None
    ) -> None:
        """Enter a release.

        what : a mechanism, whose group size is 1 or that of the ledger; a `DpEvent` of dp_accounting; or what was measured
            elsewhere, {"epsilon": ..., "delta": ...} or {"rho": ...}, for the relation and group size of the ledger. (epsilon, delta) of a
            `MatrixMechanism`, a `MinSeparation` or a `BallsInBins` with correlated noise is entered so; a Certificate's failure
            probability belongs to its delta. `BallsInBins` with C = I is entered as `RandomAllocation` of one round [A-25].
        count : how many times, >= 1. name, date : a word, and "YYYY-MM-DD" or a date, for the reader.
        sample : a label. Releases with one label saw the *same* sample of records in each of their rounds: their Gaussians are one
            Gaussian before the sampling [M-0a], which costs more than samples of their own. They need the same sampling, and as many rounds, and are added one by one (count 1).
        """
        tree, rounds = entries.read(what, count, self.relation, self.group_size)
        for key, text in (("name", name), ("sample", sample)):
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{key} must be a string or None; got {text!r}")
        entry = {"what": tree, "count": check.whole("count", count, at_least=1), "name": name, "date": entries.day(date), "sample": sample}
        if sample is not None:
            if entry["count"] > 1:
                raise ValueError(f"count must be 1 where a sample is named: add each release from it by itself; got {count!r}")
            _check_sample(sample, rounds, self._samples.get(sample, rounds))
            self._samples[sample] = rounds
        self._entries.append(entry)
        self._rounds.append(rounds)

    def spent(self, delta: float) -> Bracket | UpperBound:
        """epsilon at `delta` in (0, 1) of all entries together; raises NoBracketError where there is none."""
        return self._account().epsilon(delta)

    def would_exceed(self, epsilon: float, delta: float, what: Any, count: int = 1) -> bool:
        """Whether (epsilon, delta) cannot be promised any more after `what`, `count` times; arguments as for `add`."""
        epsilon, delta = check.epsilon(epsilon), check.delta(delta)
        return not self._fits(epsilon, delta, entries.read(what, count, self.relation, self.group_size)[1], 1)

    def largest_steps(self, what: Any, epsilon: float, delta: float) -> int:
        """How many more rounds of `what` stay within (epsilon, delta): `steps` of a mechanism, repetitions of anything else; 0 for none.

        Raises ValueError where a thousand million rounds do. Cost: about 60 times `spent`, for a million rounds 40 times.
        """
        epsilon, delta = check.epsilon(epsilon), check.delta(delta)
        if isinstance(what, LastIterate):
            raise ValueError("what must have rounds that compose; the rounds of a LastIterate are released together")
        what = dataclasses.replace(what, steps=1) if isinstance(what, (PoissonDPSGD, FixedBatchDPSGD, TruncatedPoissonDPSGD)) else what
        rounds = entries.read(what, 1, self.relation, self.group_size)[1]
        low, high = 0, 1
        while self._fits(epsilon, delta, rounds, high):
            if high >= _MOST_STEPS:
                raise ValueError(f"what must use up epsilon = {epsilon:g} within {_MOST_STEPS:g} rounds; got {what!r}")
            low, high = high, min(2 * high, _MOST_STEPS)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._fits(epsilon, delta, rounds, middle) else (low, middle)
        return low

    def save(self, path: str | os.PathLike) -> None:
        """Write the ledger as JSON, in one move: the file is the old one or the new one, never a part. Raises OSError."""
        path = Path(path)
        partial = path.with_name(f".{path.name}.partial")
        record = {"format": _FORMAT, "relation": self.relation, "group_size": self.group_size, "entries": self._entries}
        try:
            with open(partial, "w", encoding="utf-8") as file:
                json.dump(record, file, indent=1, allow_nan=False)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        except BaseException:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise

    @classmethod
    def load(cls, path: str | os.PathLike) -> Ledger:
        """The ledger that `save` wrote. Raises ValueError where the file is none, OSError where it cannot be read."""
        text = Path(path).read_text(encoding="utf-8")
        try:
            record = json.loads(text)
            if record["format"] != _FORMAT:
                raise ValueError(f"its format is {record['format']!r}, not {_FORMAT!r}")
            ledger = cls(record["relation"], record["group_size"])
            for entry in record["entries"]:
                what = entry["what"]
                ledger.add(entries.node(what) if "class_name" in what else what, **{key: entry[key] for key in entry if key != "what"})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"path must be a file that Ledger.save wrote; got {os.fspath(path)!r}: {error!r}") from error
        return ledger

    def __len__(self) -> int:
        return len(self._entries)

    def __str__(self) -> str:
        lines = [f"{len(self)} releases, {self.relation}, {self.group_size} record{'s' * (self.group_size > 1)}"]
        for entry in self._entries:
            what = entry["what"].get("class_name") or ", ".join(f"{key} = {value:g}" for key, value in entry["what"].items())
            lines.append(f"{entry['date'] or '':10}  {entry['count']:>6} x {what}  {entry['name'] or ''}".rstrip())
        return "\n".join(lines)

    # ------------------------------------------------------------------ entries

    def _account(self):
        return _together(Account(self.relation, self.group_size), zip(self._entries, self._rounds))

    def _fits(self, epsilon, delta, rounds, times):
        total = self._account()
        for item, count in rounds.items():
            total.add(item, count * times)
        try:
            return total.epsilon(delta).upper <= epsilon
        except NoBracketError:
            return False


def _check_sample(sample, rounds, other):
    """That a release from a sample is sampled like the `other` from it."""
    if len(rounds) != 1 or next(iter(rounds))[0] not in ("poisson", "fixed"):
        raise ValueError(f"sample must be left out for what is not a sampled Gaussian in every round; got {sample!r}")
    if _sampling(other) != _sampling(rounds):
        raise ValueError(
            f"sample must name releases with the same sampling and as many rounds; {sample!r} has {_sampling(other)}, "
            f"and this has {_sampling(rounds)}"
        )


def _together(total, pairs):
    """An account with all (entry, {item: rounds}) in it; Gaussians on the same samples are one [M-0a], [M-K]."""
    shared: dict[str, list] = {}
    for entry, rounds in pairs:
        if entry["sample"] is not None:
            shared.setdefault(entry["sample"], []).extend(rounds.items())
            continue
        for item, count in rounds.items():
            total.add(item, count)
    for found in shared.values():
        noises: dict[float, int] = {}
        for item, _ in found:
            noises[item[-1]] = noises.get(item[-1], 0) + 1
        (*law, _), count = found[0]
        total.add((*law, together(noises)), count)
    return total


def _sampling(rounds):
    [((*law, _), count)] = rounds.items()
    return f"{' '.join(map(str, law))}, {count} rounds"
