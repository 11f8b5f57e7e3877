"""Run the tests that a change can break, step by step, and say at the end how each went.

    python -m tools test [unit] [notebooks] [book]

unit       the library's tests, with coverage (at least 95% of the lines), and the examples in its docstrings
notebooks  every notebook re-run and compared with its stored outputs; run times are printed, `make bench` judges them
book       structure, strict build, browser, hosted notebook
"""

import argparse
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import notebook_tools as tools

ROOT = tools.ROOT
WORKERS = os.environ.get("TEST_WORKERS", "2")
REPORT = ROOT / "_build" / "tests"
TIMES = REPORT / "notebooks.xml"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-n", WORKERS]
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=3600", "--dist", "loadfile"]

STEPS = {
    "unit": lambda: [
        [
            *PYTEST,
            "tests",
            "--ignore=tests/book",
            "-m",
            "not trust",
            "--dist",
            "worksteal",
            "--durations=5",
            "--cov=dplib",
            "--cov-report=term-missing:skip-covered",
            "--cov-fail-under=95",
        ],
        [*PYTEST, "--doctest-modules", "dplib"],
    ],
    "notebooks": lambda: [[*PYTEST, *NBVAL, *map(str, tools.notebooks()), f"--junitxml={TIMES}"]],
    "book": lambda: [[*PYTEST, "tests/book", "--dist", "loadfile", "--no-loadscope-reorder", "--durations=10"]],
}
SUMMARY = re.compile(r"^=*\s*((?:\d+ [a-z]+,? ?)+|no tests ran) in [\d.]+s")


def run_step(name):
    """Run one step; return (exit status, pytest's closing lines)."""
    status, closings = 0, []
    for command in STEPS[name]():
        shown = " ".join(["pytest", *command[3:]]).replace(str(ROOT) + os.sep, "")
        print(f"\n=== {name}: {shown}", flush=True)
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        closing = "pytest gave no result"
        for line in process.stdout:
            print(line, end="", flush=True)
            match = SUMMARY.match(re.sub(r"\x1b\[[0-9;]*m", "", line))
            if match:
                closing = match.group().strip("= ")
        status = process.wait() or status
        closings.append(closing)
    return status, "; ".join(closings)


def run_times():
    """Seconds that each notebook took here, by name: for the reader, as the machine may have been busy."""
    seconds = {}
    for case in ElementTree.parse(TIMES).iter("testcase") if TIMES.exists() else ():
        match = re.search(r"notebooks[./]([\w./-]*)", f"{case.get('classname', '')} {case.get('file', '')}")
        name = match.group(1).replace("/", ".").removesuffix(".ipynb") if match else ""
        seconds[name] = seconds.get(name, 0.0) + float(case.get("time", 0))
    return dict(sorted(seconds.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", choices=[*STEPS, []], help="default: all")
    chosen = parser.parse_args().steps or list(STEPS)
    os.environ.update(tools.kernel_environment())
    REPORT.mkdir(parents=True, exist_ok=True)
    TIMES.unlink(missing_ok=True)
    start, results = time.monotonic(), {}
    for name in chosen:
        status, closing = run_step(name)
        if name == "notebooks":
            print("\n".join(f"{notebook}: {taken:.0f} s" for notebook, taken in run_times().items()))
        results[name] = status, closing

    print("\n=== results")
    for name, (status, closing) in results.items():
        print(f"{name:10} {'ok    ' if status == 0 else 'FAILED'} {closing}")
    counts = {}
    for _, closing in results.values():
        for number, word in re.findall(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)", closing):
            counts[word.removesuffix("s") if word == "errors" else word] = counts.get(word, 0) + int(number)
    failed = [name for name, (status, _) in results.items() if status]
    total = ", ".join(f"{number} {word}" for word, number in sorted(counts.items()))
    verdict = f"FAILED: {', '.join(failed)}; " if failed else ""
    print(f"===== {verdict}{total} in {time.monotonic() - start:.2f}s =====")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
