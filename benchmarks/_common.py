"""What the benchmarks have in common: one thread, timing, fresh processes, the report.

Import this module before NumPy: it limits the numerical libraries to one thread.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
DATA = ROOT / "tests" / "data"
sys.path.insert(0, str(ROOT))  # this checkout's dplib and no other
# ... except one that PYTHONPATH names: so the benchmarks of one checkout can measure the library of another.
_NAMED = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if (Path(path) / "dplib").is_dir()]
sys.path[:0] = [str(Path(path).resolve()) for path in _NAMED if path]
sys.path.append(str(ROOT / "tools"))

import one_move  # noqa: E402
from library_files import source_digest  # noqa: E402

DELTA = 1e-6


def values(name):
    """The list of reference values in tests/data/NAME.json."""
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))["values"]


def clock(call, repetitions=1, timer=time.perf_counter):
    """Call it, return (last result, list of seconds by the timer: wall-clock)."""
    seconds = []
    for _ in range(repetitions):
        start = timer()
        result = call()
        seconds.append(timer() - start)
    return result, seconds


def cpu_clock(call, repetitions=1):
    """As `clock`, but CPU seconds of this process: other work on the machine matters little."""
    return clock(call, repetitions, time.process_time)


def median(seconds):
    return statistics.median(seconds)


# ------------------------------------------------------------ fresh processes

_CHILD = """\
import json, sys, time
sys.path.insert(0, sys.argv[1])
start = time.perf_counter()
import _common
answer = getattr(__import__(sys.argv[2]), sys.argv[3])(*json.loads(sys.argv[4]))
seconds = time.perf_counter() - start
print(json.dumps({"answer": answer, "seconds": seconds, "peak_mb": _common.peak_memory()}))
"""


def peak_memory():
    """Largest resident memory of this process so far, in MB (10^6 bytes)."""
    try:
        # Linux keeps the launching process's peak in getrusage across exec: read this program's own.
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def resident_memory():
    """Resident memory of this process now, in MB (10^6 bytes)."""
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / 1e6
    raise OSError("no VmRSS in /proc/self/status")


def in_fresh_process(module, function, *arguments, timeout=600):
    """Call benchmarks.module.function(*arguments) in a new interpreter.

    Returns a dict with `answer`, `seconds` (imports and call, inside), `wall`
    (the whole process, outside) and `peak_mb`; or with `failure`, one line.
    """
    command = [sys.executable, "-c", _CHILD, str(ROOT / "benchmarks"), module, function]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [*command, json.dumps(arguments)], capture_output=True, text=True, cwd=ROOT, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"no answer in {timeout} s", "wall": time.perf_counter() - start}
    wall = time.perf_counter() - start
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return {"failure": lines[-1], "wall": wall}
    return {**json.loads(done.stdout.splitlines()[-1]), "wall": wall}


# ------------------------------------------------------------- calls of random settings


def asked(call):
    """(row, result or None) of a call: cpu, and upper, method, of a bracket lower and width; or why it was refused or failed."""
    import dplib

    row, bracket, start = {}, None, time.process_time()
    try:
        bracket = call()
    except dplib.NoBracketError as error:
        row["refused"] = str(error)[:400]
    except Exception as error:  # of any kind: none is expected
        row["failed"] = f"{type(error).__name__}: {error}"[:400]
    row["cpu"] = time.process_time() - start
    if bracket is not None:
        row |= {"upper": bracket.upper, "method": bracket.method}
    if isinstance(bracket, dplib.Bracket):
        row |= {"lower": bracket.lower, "width": bracket.relative_width}
    return row, bracket


def kept_rows(benchmark, *key):
    """(file, rows) of what an earlier run of this library with this key has found, a line each; new ones are appended."""
    digest = dplib_state().split()[-1].strip("()")
    path = ROOT / "_build" / benchmark / ("-".join([*map(str, key), digest]) + ".jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path, [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# ------------------------------------------------------------------ the report


class Report:
    """Prints a benchmark's findings and stores them in results/NAME.json and NAME.txt."""

    def __init__(self, name, title, *peers):
        self.name, self.lines, self.claims, self.tables, self.failed = name, [], [], {}, False
        self.peers, self.load = peers, _load()
        self.title = title
        self.say(title)
        self.say("=" * len(title))

    def say(self, text=""):
        print(text, flush=True)
        self.lines.append(text)

    def table(self, name, rows, columns=None):
        """Rows (dicts) as an aligned table; stored in full in the JSON file."""
        self.tables[name] = rows
        columns = columns or list(rows[0])
        cells = [columns, *([_cell(row.get(c)) for c in columns] for row in rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
        self.say(f"\n{name}")
        for row in cells:
            self.say("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)))

    def claim(self, what, measured, at_most=None, at_least=None, unit=""):
        """One target: prints target, result and verdict."""
        if at_most is not None:
            met, target = measured <= at_most, f"at most {at_most:g}"
            factor = measured / at_most if at_most else float("inf")
        else:
            met, target = measured >= at_least, f"at least {at_least:g}"
            factor = at_least / measured if measured else float("inf")
        unit_text = f" {unit}" if unit else ""
        if met:
            by = f"met, {1 / factor:.3g} times better" if 0 < factor < float("inf") else "met"
        else:
            by = f"NOT MET, {factor:.3g} times worse" if factor < float("inf") else "NOT MET"
        self.claims.append(
            {"what": what, "target": target, "unit": unit, "measured": measured, "met": met, "factor": factor}
        )
        self.say(f"  {what}: target {target}{unit_text}, measured {measured:.4g}{unit_text}: {by}")

    def wrong(self, text):
        """A wrong value, as opposed to a slow one: the script will exit with status 1."""
        self.failed = True
        self.say(f"  WRONG: {text}")

    def close(self):
        """Write both files; the exit status is 1 only where a value was wrong."""
        machine = {
            "cores": os.cpu_count(),
            "architecture": platform.machine(),
            "load_average_at_start": self.load,
            "load_average_at_end": _load(),
            "threads": 1,
        }
        versions = {"python": platform.python_version(), **_versions("numpy", "scipy", *self.peers)}
        versions["dplib"] = dplib_state()
        self.say(
            f"\nMachine: {machine['cores']} cores ({machine['architecture']}), one thread; load average over "
            f"one minute {self.load[0]:.2f} at the start, {machine['load_average_at_end'][0]:.2f} at the end."
        )
        self.say("Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".")
        record = {
            "title": self.title,
            "claims": self.claims,
            "machine": machine,
            "versions": versions,
            "tables": self.tables,
        }
        text = json.dumps(_finite(record), indent=1, default=lambda number: number.item()) + "\n"  # NumPy's
        try:
            RESULTS.mkdir(exist_ok=True)
            one_move.write_text(RESULTS / f"{self.name}.json", text)
            one_move.write_text(RESULTS / f"{self.name}.txt", "\n".join(self.lines) + "\n")
        except OSError as error:  # a full disk, a folder that may not be written
            print(f"{self.name}: the result is not stored: {error}", file=sys.stderr)
            return 1
        return 1 if self.failed else 0


def _cell(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


def _finite(value):
    """JSON knows no infinities: write them as words."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if abs(value) < float("inf") else str(value)
    return value


def _load():
    return [round(x, 2) for x in os.getloadavg()] if hasattr(os, "getloadavg") else [float("nan")] * 3


def _versions(*names):
    from importlib.metadata import version

    return {name: version(name) for name in names}


def dplib_state():
    """Version and a hash of the source: which code the numbers belong to."""
    import dplib

    measured = Path(dplib.__file__).resolve().parent.parent
    return f"{dplib.__version__} (source {source_digest(root=None if measured == ROOT else measured)})"
