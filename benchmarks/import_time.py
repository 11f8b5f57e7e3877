"""Claim: `import dplib` takes less than 0.5 s and loads neither JAX nor Matplotlib."""

import json
import subprocess
import sys
import time

from _common import ROOT, Report, median

PROGRAMS = {
    "nothing": "",
    "numpy": "import numpy",
    "numpy, scipy.special": "import numpy, scipy.special",
    "dplib": "import dplib",
}
HEAVY = ("jax", "matplotlib", "scipy.optimize", "scipy.stats", "mpmath", "dp_accounting")
REPETITIONS = 9
_TIMED = """\
import json, sys, time
start = time.perf_counter()
{}
seconds = time.perf_counter() - start
print(json.dumps([seconds, [name for name in {!r} if name in sys.modules]]))
"""


def measure(program):
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _TIMED.format(program, HEAVY)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    wall = time.perf_counter() - start
    inside, loaded = json.loads(done.stdout)
    return inside, wall, loaded


def main():
    report = Report("import_time", "Time of `import dplib`")
    for program in PROGRAMS.values():  # fill the file cache
        measure(program)
    inside, wall, loaded = ({name: [] for name in PROGRAMS} for _ in range(3))
    for _ in range(REPETITIONS):  # interleaved
        for name, program in PROGRAMS.items():
            seconds, total, modules = measure(program)
            inside[name].append(seconds)
            wall[name].append(total)
            loaded[name] = modules
    rows = [
        {
            "imported": name,
            "s": median(inside[name]),
            "fastest s": min(inside[name]),
            "whole process s": median(wall[name]),
            "of the heavy ones": ", ".join(loaded[name]) or "none",
        }
        for name in PROGRAMS
    ]
    report.table(f"New interpreters (median of {REPETITIONS}, interleaved, files cached)", rows)
    report.say("\n  The heavy ones looked for: " + ", ".join(HEAVY) + ".")
    report.say("")
    report.claim("import dplib", median(inside["dplib"]), at_most=0.5, unit="s")
    forbidden = [name for name in ("jax", "matplotlib") if name in loaded["dplib"]]
    report.claim("of JAX and Matplotlib loaded", len(forbidden), at_most=0)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
