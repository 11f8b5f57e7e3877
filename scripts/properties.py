"""All properties on random instances, each with twenty times as many examples as in the tests.

    python scripts/properties.py                  those that are not on record for this dplib and these tests
    python scripts/properties.py --seconds 600    as many of them as fit into so many seconds
    python scripts/properties.py --new            those that are not on record at all
    python scripts/properties.py --report         benchmarks/results/properties.txt from what is known

Results are kept in benchmarks/results/properties.json after every property, so that an interrupted run goes on
where it stopped. The exit status is 1 where a property failed.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections import Counter
from pathlib import Path

import one_move
from library_files import source_digest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "properties.json"
TESTS = ROOT / "tests" / "unit"
FILES = (
    "test_domination.py",
    "test_domination_runs.py",
    "test_vector_mixture.py",
    "test_properties_bins.py",
    "test_properties.py",
)


def load():
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def fingerprint(file):
    """Of dplib and of the test's file: a property is tried anew where one of them has changed."""
    return source_digest(TESTS / file)


class Recorder:
    """Plugin of pytest: runs properties only, counts their examples, stops when the time is over."""

    def __init__(self, seconds, new):
        self.end, self.new = time.monotonic() + seconds, new
        self.known = load()
        self.marks = {file: fingerprint(file) for file in FILES}

    def name(self, item):
        return item.nodeid.rpartition("/")[2]

    def wanted(self, item):
        found = self.known.get(self.name(item))
        if not hasattr(item.obj, "hypothesis"):
            return False
        if found is None or found["failed"]:
            return True
        return not self.new and found["source"] != self.mark(item)

    def mark(self, item):
        return self.marks[item.path.name]

    def pytest_collection_modifyitems(self, items):
        self.properties = {self.name(item) for item in items if hasattr(item.obj, "hypothesis")}
        items[:] = [item for item in items if self.wanted(item)]

    def pytest_runtest_call(self, item):
        from hypothesis.statistics import collector

        cases = Counter()

        def count(statistics):
            for phase in ("reuse-phase", "generate-phase", "shrink-phase"):
                cases.update(case["status"] for case in statistics.get(phase, {}).get("test-cases", ()))

        item.cases = cases
        with collector.with_value(count):
            return (yield)

    def pytest_runtest_makereport(self, item, call):
        if call.when != "call":
            return
        found = {
            "examples": item.cases["valid"],
            "refused": item.cases["invalid"] + item.cases["overrun"],
            "failed": call.excinfo is not None,
            "source": self.mark(item),
        }
        known = {name: one for name, one in load().items() if name in self.properties}
        known[self.name(item)] = found
        one_move.write_text(RESULTS, json.dumps(dict(sorted(known.items())), indent=1) + "\n")
        if time.monotonic() > self.end:
            item.session.shouldstop = "the time is over"


def report(known):
    import hypothesis
    import numpy
    import scipy

    failed = [name for name, found in known.items() if found["failed"]]
    stale = sum(found["source"] != fingerprint(name.partition("::")[0]) for name, found in known.items())
    lines = [
        "Properties on random instances, each with twenty times as many examples as in the tests",
        "",
        f"{len(known)} properties, {sum(found['examples'] for found in known.values())} examples, {len(failed)} failed.",
        "Refused: the example asks for what the accountant declines, or does not fit the property.",
        f"Python {platform.python_version()}, numpy {numpy.__version__}, scipy {scipy.__version__}, "
        f"hypothesis {hypothesis.__version__}; of {stale} properties the source has changed since.",
        "",
    ]
    for file in FILES:
        lines += [file, f"  {'examples':>8}  {'refused':>7}"]
        for name, found in known.items():
            if name.startswith(f"{file}::"):
                verdict = "  FAILED" if found["failed"] else ""
                lines.append(
                    f"  {found['examples']:8}  {found['refused']:7}  {name.partition('::')[2]}{verdict}"
                )
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--new", action="store_true", help="only what is not on record")
    parser.add_argument("--report", action="store_true", help="only write the text")
    arguments = parser.parse_args()
    os.environ.update(PROPERTIES="thorough", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    os.chdir(ROOT)
    if not arguments.report:
        import pytest

        Recorder.pytest_runtest_call = pytest.hookimpl(wrapper=True, trylast=True)(
            Recorder.pytest_runtest_call
        )
        paths = [f"tests/unit/{file}" for file in FILES]
        pytest.main(
            ["-q", "-p", "no:cacheprovider", *paths], plugins=[Recorder(arguments.seconds, arguments.new)]
        )
    known = load()
    one_move.write_text(RESULTS.with_suffix(".txt"), report(known))
    return int(any(found["failed"] for found in known.values()))


if __name__ == "__main__":
    sys.exit(main())
