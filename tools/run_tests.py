"""Run the tests that a change can break, step by step, and say at the end how each went.

    python -m tools test [unit] [notebooks] [book] [coverage]

unit       the library's tests and the examples in its docstrings
notebooks  every notebook re-run and compared with its stored outputs; `make bench` measures their run times
book       structure, strict build, browser, hosted notebook
coverage   only by name, for `make trust`: do the library's tests run at least 95% of its lines
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter

import notebook_tools as tools

ROOT = tools.ROOT
PYTEST = [sys.executable, "-m", "pytest", "-q", "-n", os.environ.get("TEST_WORKERS", "2")]
NBVAL = ["-p", "tests.warm_kernels", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=3600"]
BY_FILE = ["--dist", "loadfile", "--no-loadscope-reorder"]
UNIT = [*PYTEST, "tests", "--ignore=tests/book", "-m", "not trust", "--dist", "worksteal", "--durations=5"]

STEPS = {
    "unit": lambda: UNIT,
    "notebooks": lambda: [*PYTEST, *BY_FILE, *NBVAL, *map(str, tools.notebooks())],
    "book": lambda: [*PYTEST, "tests/book", "-m", "not trust", *BY_FILE, "--durations=10"],
    "coverage": lambda: [*UNIT, "--cov=dplib", "--cov-report=term-missing:skip-covered", "--cov-fail-under=95"],
}
SUMMARY = re.compile(r"^=*\s*((?:\d+ [a-z]+,? ?)+|no tests ran) in [\d.]+s")


def run_step(name):
    """Run one step; return (exit status, pytest's closing line)."""
    command, closing = STEPS[name](), "pytest gave no result"
    shown = " ".join(["pytest", *command[3:]]).replace(str(ROOT) + os.sep, "")
    print(f"\n=== {name}: {shown}", flush=True)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8", "errors": "replace"}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            match = SUMMARY.match(re.sub(r"\x1b\[[0-9;]*m", "", line))
            closing = match.group().strip("= ") if match else closing
    return process.returncode, closing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", choices=[*STEPS, []], help="default: all but coverage")
    chosen = parser.parse_args().steps or ["unit", "notebooks", "book"]
    os.environ.update(tools.kernel_environment())
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):  # else every process of the run would compile all that it imports
        os.environ["PYTHONPYCACHEPREFIX"] = f"{sys.prefix}/bytecode"
    start, results = time.monotonic(), {name: run_step(name) for name in chosen}

    print("\n=== results")
    counts = Counter()
    for name, (status, closing) in results.items():
        print(f"{name:10} {'ok    ' if status == 0 else 'FAILED'} {closing}")
        for number, word in re.findall(r"(\d+) (passed|failed|error|skipped|xfailed|xpassed)", closing):
            counts[word] += int(number)
    failed = [name for name, (status, _) in results.items() if status]
    total = ", ".join(f"{number} {word}" for word, number in sorted(counts.items()))
    verdict = f"FAILED: {', '.join(failed)}; " if failed else ""
    print(f"===== {verdict}{total} in {time.monotonic() - start:.2f}s =====")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
