"""Call every public function of dplib with random arguments, valid, borderline and wrong, in worker processes.

    scripts/fuzz.py --cases 20000 --output fuzz.json        (make fuzz CASES=20000 does the same)
    scripts/fuzz.py --replay calibrate.calibrate:17         shows one case

A case is wrong if it takes longer than --seconds of CPU time or more than --megabytes, ends in an exception that is
not a ValueError, TypeError or NoBracketError with a message of dplib's own, warns, or returns a number that is not a
number, infinite, or below 0 where that makes no sense. The cases depend on their numbers alone: the same
number is the same case on every machine. The summary is JSON: cases, wrong ones with their arguments, the slowest.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import multiprocessing
import os
import resource
import sys
import time
import traceback
import warnings
import zlib
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import fuzz_table as table  # noqa: E402

from dplib import results  # noqa: E402

_BAD_SHARE = 0.25  # of the cases with one argument that is (nearly always) wrong
_PATIENCE = 6  # wall seconds for each CPU second, on a busy machine
_OWN_WORDS = ("must", "got", "cannot", "needs", "too ", "no ", "exact")  # of dplib's messages


# --- one case ----------------------------------------------------------------------------------------------


def arguments_of(name, number):
    """The arguments of one case; the name and the number decide."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), number])
    target = table.TARGETS[name]
    arguments = {key: make(rng) for key, make in target.arguments.items()}
    if target.checked and arguments and rng.random() < _BAD_SHARE:
        arguments[list(arguments)[rng.integers(len(arguments))]] = table.BAD[rng.integers(len(table.BAD))]
    return arguments


def unsound(value, target):
    """What is wrong with a returned value, or None."""
    if isinstance(value, results.Bracket):
        value = (value.lower, value.upper)
    elif isinstance(value, (results.UpperBound, results.Certificate)):
        value = value.upper
    elif isinstance(value, results.Estimate):
        value = (value.value, value.standard_error, value.upper)
    if isinstance(value, (tuple, list)):
        return next((wrong for part in value if (wrong := unsound(part, target))), None)
    if isinstance(value, (bool, str, dict)) or not isinstance(value, (int, float, np.floating, np.ndarray)):
        return None
    numbers = np.asarray(value)
    if not np.issubdtype(numbers.dtype, np.floating):
        return None
    if np.isnan(numbers).any():
        return "not a number"
    if not target.infinite and np.isinf(numbers).any():
        return "infinite"
    return "below 0" if not target.negative and (numbers < 0).any() else None


def run_case(name, number):
    """(what is wrong or None, CPU seconds)."""
    target = table.TARGETS[name]
    arguments = arguments_of(name, number)
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            wrong = unsound(target.call(**arguments), target)
    except (ValueError, TypeError, results.NoBracketError) as error:
        wrong = _unclear(error)
    except Exception as error:
        wrong = f"{type(error).__name__}: {error} ({_place(error)})"
    return wrong, time.process_time() - start


def _place(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _unclear(error):
    """A refusal has to come from dplib itself, in its own words."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    foreign = Path(last.filename).parent.name not in ("dplib", "studies")
    clear = isinstance(error, results.NoBracketError) or any(word in str(error) for word in _OWN_WORDS)
    if foreign or not clear:
        return f"unclear refusal, {type(error).__name__}: {error} ({_place(error)})"
    return None


# --- workers -----------------------------------------------------------------------------------------------


def _serve(pipe, megabytes):
    limit = 4 * megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (max(limit, 2**34), resource.RLIM_INFINITY))
    sys.stdout = open(os.devnull, "w")
    before = _peak_memory()
    while True:
        name, number = pipe.recv()
        wrong, seconds = run_case(name, number)
        pipe.send((wrong, seconds, _peak_memory() - before))


def _peak_memory():
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Worker:
    """A process that runs one case after the other, and is replaced when a case goes too far."""

    def __init__(self, seconds, megabytes):
        self.seconds, self.megabytes, self.process = seconds, megabytes, None

    def _start(self):
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, self.megabytes), daemon=True)
        self.process.start()
        other.close()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.join()
            self.process = None

    def run(self, name, number):
        """(what is wrong or None, CPU seconds)."""
        if self.process is None:
            self._start()
        self.pipe.send((name, number))
        try:
            if not self.pipe.poll(self.seconds * _PATIENCE):
                self.stop()
                return f"no end after {self.seconds * _PATIENCE:g} s", math.nan
            wrong, seconds, peak = self.pipe.recv()
        except EOFError:
            self.stop()
            return "the process died", math.nan
        if peak > self.megabytes:
            self.stop()
            wrong = wrong or f"{peak:.0f} MB"
        if seconds > self.seconds:
            wrong = wrong or f"{seconds:.1f} s"
        return wrong, seconds


def fuzz(cases, *, names=None, first=0, seconds=10.0, megabytes=2048, small=False, report=None):
    """Run cases number `first` .. of the functions in turn: the summary, ready for JSON."""
    names = names or [name for name, target in table.TARGETS.items() if not (small and target.slow)]
    worker, wrong, slowest, done = Worker(seconds, megabytes), [], collections.Counter(), 0
    try:
        for i in range(cases):
            name, number = names[i % len(names)], first + i // len(names)
            problem, spent = worker.run(name, number)
            done += 1
            slowest[f"{name}:{number}"] = spent if math.isfinite(spent) else seconds * _PATIENCE
            if problem:
                wrong.append({"case": f"{name}:{number}", "wrong": problem, "arguments": shown(name, number)})
                if report:
                    report(wrong[-1])
            if len(slowest) > 1000:
                slowest = collections.Counter(dict(slowest.most_common(20)))
    finally:
        worker.stop()
    top = [{"case": case, "CPU s": round(spent, 3)} for case, spent in slowest.most_common(20)]
    return {"cases": done, "functions": len(names), "wrong": wrong, "slowest": top}


def shown(name, number):
    return {key: repr(value)[:200] for key, value in arguments_of(name, number).items()}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="number of each function's first case")
    parser.add_argument("--only", nargs="*", help="functions, such as calibrate.calibrate")
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds that a case may take")
    parser.add_argument("--megabytes", type=int, default=2048)
    parser.add_argument("--output", help="file for the summary")
    parser.add_argument("--replay", help="NAME:NUMBER of one case, which is run here")
    chosen = parser.parse_args(arguments)
    if chosen.replay:
        name, number = chosen.replay.rsplit(":", 1)
        print(json.dumps(shown(name, int(number)), indent=1))
        print(table.TARGETS[name].call(**arguments_of(name, int(number))))
        return 0
    if unknown := set(chosen.only or ()) - set(table.TARGETS):
        print(f"fuzz: no such function: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    found = fuzz(
        chosen.cases, names=chosen.only, first=chosen.first, seconds=chosen.seconds, megabytes=chosen.megabytes,
        report=lambda row: print(f"{row['case']}: {row['wrong']}", flush=True),
    )  # fmt: skip
    text = json.dumps(found, indent=1)
    if chosen.output:
        Path(chosen.output).write_text(text + "\n", encoding="utf-8")
    print(f"fuzz: {found['cases']} cases of {found['functions']} functions, {len(found['wrong'])} wrong")
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
