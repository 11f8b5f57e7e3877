"""The record of a thorough test of faults: benchmarks/results/faults.json and .txt, renewed run by run."""

import fcntl
import json
import tempfile
from pathlib import Path

import one_move
from faults import THOROUGH

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "benchmarks" / "results" / "faults.json"
TITLES = {
    "certification": "certification, one process: blocks",
    "certification_in_processes": "certification, two processes: blocks",
    "optimisation": "optimisation: evaluations",
    "training_run": "training: programs of 16 rounds",
    "study": "study, one process: settings",
    "sweep_in_processes": "sweep, two processes: settings",
    "sweep_on_dask": "sweep, two Dask workers: settings",
    "checkpoints": "checkpoint, saved again and again",
    "reports": "benchmark results, written again and again",
    "mutants": "mutation results, written again and again",
}


def load():
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def add(name, kills):
    """Keep what a test has found; nothing in a quick run."""
    if not THOROUGH:
        return
    with open(Path(tempfile.gettempdir()) / "dplib-faults.lock", "w") as lock:  # tests may run side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = load() | {name: kills}
        one_move.write_text(RECORD, json.dumps(record, indent=1, sort_keys=True) + "\n")
        one_move.write_text(RECORD.with_suffix(".txt"), report(record))


def summary(record):
    """(how many kills, how many of them while a file was written)"""
    kills = [kill for name in record for kill in record[name]]
    return len(kills), sum(kill.get("in a write", False) for kill in kills)


def report(record):
    total, writing = summary(record)
    lines = [
        f"{total} kills at random moments: every stored file readable, every run finished with the identical result.",
        "Lost: steps that were computed and not stored, of the worst kill; seconds: their age when it came. A run saves",
        "twice a second and at its end, a study or sweep every result. Where there are workers one of them was killed first.",
        "",
        f"{'':44} {'kills':>5} {'earliest':>9} {'latest':>8} {'lost':>5} {'seconds':>8}",
    ]
    for name, title in TITLES.items():
        kills = record.get(name, [])
        if kills and "lost" in kills[0]:
            times, worst = sorted(kill["after"] for kill in kills), max(kill["lost"] for kill in kills)
            seconds = max(kill["seconds"] for kill in kills)
            lines.append(
                f"{title:44} {len(kills):5} {times[0]:7.1f} s {times[-1]:6.1f} s {worst:5} {seconds:8.1f}"
            )
        elif kills:
            hits = sum(kill["in a write"] for kill in kills)
            lines.append(f"{title:44} {len(kills):5}   {hits} of them in the middle of a write")
    lines += ["", "Command: FAULTS=thorough make unit"]
    return "\n".join(lines) + "\n"
