"""Random inputs, valid, borderline and wrong, for all that takes any: functions, checkers, calculator.

    scripts/fuzz.py --cases 20000                           (make fuzz CASES=20000 does the same)
    scripts/fuzz.py --kind functions --cases 9000 --record  goes on where benchmarks/results/fuzz.json ends
    scripts/fuzz.py --replay calibrate.calibrate:17         shows one case

functions   every public function of dplib, in worker processes (scripts/fuzz_table.py)
checkers    every exercise's check, with answers of all kinds (scripts/fuzz_checkers.py)
calculator  the page in a browser: fields and addresses (scripts/fuzz_calculator.py)
brackets    the page's accountant against the library, all over what its fields allow (scripts/fuzz_calculator.py)

A case is wrong if it takes longer than --seconds of CPU time or more than --megabytes, ends in an exception that is
not a ValueError, TypeError or NoBracketError with a message of dplib's own, warns, or returns a number that is not a
number, infinite, or below 0 where that makes no sense, or that another computation contradicts
(scripts/fuzz_routes.py, for a share of the cases). The cases depend on their numbers alone: the same number is the same case
on every machine.
"""

from __future__ import annotations

import argparse
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

import fuzz_checkers as checkers  # noqa: E402
import fuzz_record as record  # noqa: E402
import fuzz_routes as routes  # noqa: E402
import fuzz_table as table  # noqa: E402

from dplib import course, results  # noqa: E402

SHARES = {
    "functions": 0.6,
    "checkers": 0.1,
    "calculator": 0.2,
    "brackets": 0.1,
}  # of the cases, where all kinds are asked for
# The functions of these modules, and those marked as slow, get one case where the others get so many.
SLOW_EVERY = 40
SLOW_MODULES = {
    "accounting", "audit", "baselines", "calibrate", "contour", "encoder_baselines", "lattice", "mechanisms", "montecarlo", "plotting",
    "rare", "truth",
}  # fmt: skip
ROUTE_EVERY = 8  # and so every case of the slow ones, which have most of the routes
_BAD_SHARE = 0.25  # of the cases with one argument that is (nearly always) wrong
_PATIENCE = 6  # wall seconds for each CPU second, on a busy machine
_OWN_WORDS = ("must", "got", "cannot", "needs", "too ", "no ", "exact", "failed for")  # of dplib's messages


# --- one case ----------------------------------------------------------------------------------------------


def target_of(name):
    """A function of the table, or the checker of an exercise: "check.group-2"."""
    kind, _, identifier = name.partition(".")
    if kind == "check":
        return table.Target(
            checkers.judged(identifier), {"case": checkers.case_of(identifier)}, checked=False
        )
    return table.TARGETS[name]


def names_of(kind):
    return [f"check.{name}" for name in course.identifiers()] if kind == "checkers" else list(table.TARGETS)


def arguments_of(name, number):
    """The arguments of one case; the name and the number decide."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), number])
    target = target_of(name)
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
    """(what is wrong or None, CPU seconds, whether a second route was taken)."""
    target, arguments = target_of(name), arguments_of(name, number)
    start, compared = time.process_time(), False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value = target.call(**arguments)
            spent = time.process_time() - start
            wrong = unsound(value, target)
            if wrong is None and name in routes.ROUTES and number % ROUTE_EVERY == 0:
                wrong, compared = second_route(name, arguments_of(name, number), value), True
    except (ValueError, TypeError, results.NoBracketError, *target.raises) as error:
        wrong, spent = _unclear(error), time.process_time() - start
    except Exception as error:
        wrong, spent = f"{type(error).__name__}: {error} ({_place(error)})", time.process_time() - start
    return wrong, spent, compared


def second_route(name, arguments, value):
    try:
        return routes.ROUTES[name](arguments, value)
    except results.NoBracketError:
        return None
    except Exception as error:
        return f"the second route fails, {type(error).__name__}: {error} ({_place(error)})"


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
        pipe.send((*run_case(name, number), _peak_memory() - before))


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
        """(what is wrong or None, CPU seconds, whether a second route was taken)."""
        if self.process is None:
            self._start()
        self.pipe.send((name, number))
        patience = self.seconds * _PATIENCE
        try:
            if not self.pipe.poll(patience):
                self.stop()
                return f"no end after {patience:g} s", patience, False
            wrong, seconds, compared, peak = self.pipe.recv()
        except EOFError:
            self.stop()
            return "the process died", 0.0, False
        if peak > self.megabytes:
            self.stop()
            wrong = wrong or f"{peak:.0f} MB"
        if seconds > self.seconds:
            wrong = wrong or f"{seconds:.1f} s"
        return wrong, seconds, compared


def fuzz(
    cases, *, names=None, first=0, seconds=10.0, megabytes=2048, small=False, minutes=math.inf, report=None
):
    """Rounds of one case each, numbers `first` .., until there are so many: a chunk for `fuzz_record`.

    Slow functions take part in one round of SLOW_EVERY (`small`: those marked so, in none). After `minutes` of CPU
    time no new round starts.
    """
    names = names or names_of("functions")
    worker, chunk, number = Worker(seconds, megabytes), record.Chunk(first), first
    try:
        while chunk.cases < cases and chunk.seconds < 60 * minutes:
            for name in names:
                if small and target_of(name).slow or not small and is_slow(name) and number % SLOW_EVERY:
                    continue
                wrong, spent, compared = worker.run(name, number)
                chunk.add(name, number, spent, wrong, shown(name, number) if wrong else None, compared)
                if wrong and report:
                    report(chunk.wrong[-1])
                if chunk.cases == cases:
                    break
            number += 1
    finally:
        worker.stop()
    return chunk.closed(number)


def is_slow(name):
    return target_of(name).slow or name.partition(".")[0] in SLOW_MODULES


def shown(name, number):
    return {key: _text(value) for key, value in arguments_of(name, number).items()}


def _text(value):
    try:
        return repr(value)[:200]
    except Exception:
        return f"a {type(value).__name__} without a text"


# --- the program -------------------------------------------------------------------------------------------


def run_kind(kind, cases, first, chosen):
    if kind in ("calculator", "brackets"):
        import fuzz_calculator

        run = fuzz_calculator.fuzz if kind == "calculator" else fuzz_calculator.brackets
        return run(cases, first=first, minutes=chosen.minutes, report=_say)
    return fuzz(
        cases, names=chosen.only or names_of(kind), first=first, seconds=chosen.seconds, megabytes=chosen.megabytes,
        minutes=chosen.minutes, report=_say,
    )  # fmt: skip


def recheck(chosen):
    """Cases that are right by now move from the wrong ones of the record to the mended ones."""
    left = 0
    for kind in SHARES:
        for case in record.wrong_cases(kind):
            name, number = case.rsplit(":", 1)
            if kind in ("calculator", "brackets"):
                chunk = run_kind(kind, 1, int(number), chosen)
            else:
                chunk = fuzz(
                    1, names=[name], first=int(number), seconds=chosen.seconds, megabytes=chosen.megabytes
                )
            if chunk["cases"] and not chunk["wrong"]:
                record.mended(kind, case)
            else:
                left += 1
    print(f"fuzz: {left} cases are still wrong")
    return 1 if left else 0


def _say(row):
    print(f"{row['case']}: {row['wrong']}", flush=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=["all", *SHARES], default="all")
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="CPU minutes of a kind, after which it ends"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first cases")
    parser.add_argument("--only", nargs="*", help="functions, such as calibrate.calibrate")
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds that a case may take")
    parser.add_argument("--megabytes", type=int, default=2048)
    parser.add_argument(
        "--record", action="store_true", help="go on after the committed record, and add to it"
    )
    parser.add_argument("--recheck", action="store_true", help="run the wrong cases of the record again")
    parser.add_argument("--replay", help="NAME:NUMBER of one case, which is run here")
    chosen = parser.parse_args(arguments)
    if chosen.replay:
        name, number = chosen.replay.rsplit(":", 1)
        print(json.dumps(shown(name, int(number)), indent=1))
        print(target_of(name).call(**arguments_of(name, int(number))))
        return 0
    if chosen.recheck:
        return recheck(chosen)
    if unknown := set(chosen.only or ()) - set(names_of("functions")) - set(names_of("checkers")):
        print(f"fuzz: no such function: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    kinds = {kind: math.ceil(share * chosen.cases) for kind, share in SHARES.items()}
    if chosen.kind != "all" or chosen.only:
        kinds = {chosen.kind if chosen.kind != "all" else "functions": chosen.cases}
    failed = False
    for kind, cases in kinds.items():
        chunk = run_kind(kind, cases, record.end_of(kind) if chosen.record else chosen.first, chosen)
        if chosen.record:
            record.add(kind, chunk)
        failed |= bool(chunk["wrong"])
        print(f"fuzz: {kind}: {chunk['cases']} cases, {len(chunk['wrong'])} wrong", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
