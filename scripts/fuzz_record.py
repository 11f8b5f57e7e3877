"""What scripts/fuzz.py found so far: benchmarks/results/fuzz.json, and the same as a text.

The record is a sum over chunks. A chunk is a range of case numbers of one kind; ranges do not overlap, so no case
counts twice.
"""

from __future__ import annotations

import importlib.metadata as metadata
import json
import platform
from pathlib import Path

import one_move

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
_SLOWEST = 10


class Chunk:
    """Counts over cases with numbers from `first` on."""

    def __init__(self, first):
        self.first, self.cases, self.compared, self.seconds = first, 0, 0, 0.0
        self.groups, self.wrong, self.slowest = {}, [], []

    def add(self, name, number, seconds, wrong, arguments=None, compared=False):
        group = self.groups.setdefault(
            group_of(name), {"cases": 0, "wrong": 0, "seconds": 0.0, "slowest": 0.0}
        )
        group["cases"] += 1
        group["wrong"] += bool(wrong)
        group["seconds"] += seconds
        group["slowest"] = max(group["slowest"], seconds)
        self.cases += 1
        self.compared += bool(compared)
        self.seconds += seconds
        self.slowest.append([f"{name}:{number}", seconds])
        if wrong:
            self.wrong.append({"case": f"{name}:{number}", "wrong": wrong, "arguments": arguments})

    def closed(self, end):
        return {
            "ranges": [[self.first, end]],
            "cases": self.cases,
            "compared": self.compared,
            "seconds": self.seconds,
            "groups": self.groups,
            "wrong": self.wrong,
            "mended": [],
            "slowest": _top(self.slowest),
        }


def group_of(name):
    """The module of a function, the chapter of an exercise."""
    module, _, rest = name.partition(".")
    return {"check": rest.rpartition("-")[0], "calculator": rest, "brackets": rest}.get(module, module)


def _top(slowest):
    return sorted(slowest, key=lambda row: -row[1])[:_SLOWEST]


def joined(one, two):
    """The record of two chunks of a kind. Raises ValueError if they share case numbers."""
    ranges = sorted([*one["ranges"], *two["ranges"]])
    if any(before[1] > after[0] for before, after in zip(ranges, ranges[1:])):
        raise ValueError(f"chunks must not overlap; got the case numbers {ranges}")
    groups = {}
    for name in [*one["groups"], *(name for name in two["groups"] if name not in one["groups"])]:
        rows = [chunk["groups"][name] for chunk in (one, two) if name in chunk["groups"]]
        groups[name] = {key: (max if key == "slowest" else sum)(row[key] for row in rows) for key in rows[0]}
    sums = {key: one[key] + two[key] for key in ("cases", "compared", "seconds", "wrong", "mended")}
    close = [ranges[0]]
    for first, end in ranges[1:]:
        close[-1:] = [[close[-1][0], end]] if close[-1][1] == first else [close[-1], [first, end]]
    return {"ranges": close, **sums, "groups": groups, "slowest": _top(one["slowest"] + two["slowest"])}


def read(folder=RESULTS):
    file = folder / "fuzz.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"kinds": {}}


def end_of(kind, folder=RESULTS):
    """The first case number that the record does not have."""
    return max((end for _, end in read(folder)["kinds"].get(kind, {"ranges": []})["ranges"]), default=0)


def add(kind, chunk, folder=RESULTS):
    """Join a chunk to the record and write both files."""
    kinds = read(folder)["kinds"]
    _write(kinds | {kind: joined(kinds[kind], chunk) if kind in kinds else chunk}, folder)


def wrong_cases(kind, folder=RESULTS):
    return [row["case"] for row in read(folder)["kinds"].get(kind, {"wrong": []})["wrong"]]


def mended(kind, case, folder=RESULTS):
    """A case that was wrong is right now."""
    kinds = read(folder)["kinds"]
    chunk = kinds[kind]
    [row] = [row for row in chunk["wrong"] if row["case"] == case]
    chunk["wrong"].remove(row)
    chunk["mended"].append(row)
    chunk["groups"][group_of(case.rpartition(":")[0])]["wrong"] -= 1
    _write(kinds, folder)


def _write(kinds, folder):
    packages = ("numpy", "scipy", "jax", "playwright")
    found = {
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in packages},
        "kinds": kinds,
    }
    one_move.write_text(folder / "fuzz.json", json.dumps(found, indent=1) + "\n")
    one_move.write_text(folder / "fuzz.txt", text(found))


def text(found):
    kinds = found["kinds"]
    total, wrong = (sum(count(chunk) for chunk in kinds.values()) for count in (_cases, _wrong))
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    lines = [
        f"{total} random inputs, valid, borderline and wrong: {wrong} wrong",
        f"Python {found['python']}, {versions}",
    ]
    for kind, chunk in kinds.items():
        lines += [
            "",
            f"{kind}: {chunk['cases']} cases, {_wrong(chunk)} wrong, {chunk['compared']} compared with a second route",
            f"  {'':28}{'cases':>9}{'wrong':>7}{'mean ms':>10}{'slowest s':>11}",
        ]
        for name, row in chunk["groups"].items():
            mean = 1e3 * row["seconds"] / row["cases"]
            lines.append(f"  {name:28}{row['cases']:9}{row['wrong']:7}{mean:10.2f}{row['slowest']:11.2f}")
        lines.append(
            "  slowest: " + ", ".join(f"{case} {seconds:.2f} s" for case, seconds in chunk["slowest"][:3])
        )
        for state in ("wrong", "mended"):
            lines += [f"  {state}: {row['case']}: {row['wrong']}" for row in chunk[state]]
    return "\n".join(lines) + "\n"


def _cases(chunk):
    return chunk["cases"]


def _wrong(chunk):
    return len(chunk["wrong"])


def counted():
    """Of the committed record: (cases, wrong ones, {kind: cases})."""
    kinds = read()["kinds"]
    return (
        sum(map(_cases, kinds.values())),
        sum(map(_wrong, kinds.values())),
        {kind: _cases(kinds[kind]) for kind in kinds},
    )
