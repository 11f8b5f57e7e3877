"""Claim: a ledger of 10,000 entries of 2,000 noise levels says what was spent in at most 1 s, its loading not counted."""

import sys
import tempfile
from pathlib import Path

import numpy as np
from _common import DELTA, Report, cpu_clock

import dplib

ENTRIES, LEVELS = 10_000, 2_000
# (name, sampling probabilities from and to, steps of an entry): the noise is log-uniform in [0.7, 5].
KINDS = [
    ("one sampling probability, long", (0.01, 0.01), 20),
    ("one sampling probability, rare", (0.001, 0.001), 1),
    ("many sampling probabilities", (0.001, 0.05), 5),
    ("hardly ever sampled", (1e-5, 1e-5), 1),
    ("no sampling", (1.0, 1.0), 1),
]


def ledger(rates, steps):
    rng = np.random.default_rng(0)
    noise = np.exp(rng.uniform(np.log(0.7), np.log(5), LEVELS)) * (500 if rates[0] == 1 else 1)
    q = np.exp(rng.uniform(*np.log(rates), LEVELS))
    found = dplib.Ledger()
    for i in range(ENTRIES):
        found.add(dplib.PoissonDPSGD(float(noise[i % LEVELS]), float(q[i % LEVELS]), steps), name=f"release {i}")
    return found


def main():
    report = Report("ledger", "A ledger of 10,000 entries")
    dplib.PoissonDPSGD(1.0, 0.01, 100).epsilon(DELTA)  # imports
    rows = []
    for name, rates, steps in KINDS:
        full, [adding] = cpu_clock(lambda rates=rates, steps=steps: ledger(rates, steps))
        spent, [seconds] = cpu_clock(lambda full=full: full.spent(DELTA))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger.json"
            _, [saving] = cpu_clock(lambda path=path, full=full: full.save(path))
            loaded, [loading] = cpu_clock(lambda path=path: dplib.Ledger.load(path))
        if loaded.entries != full.entries or loaded.spent(DELTA) != spent:
            report.wrong(f"{name}: what was loaded is not what was saved")
        row = {"entries": name, "epsilon": spent.upper, "width": spent.relative_width, "s": seconds, "adding s": adding}
        rows.append(row | {"saving s": saving, "loading s": loading, "method": spent.method})
    report.table(f"epsilon at delta = {DELTA:g} of {ENTRIES} entries with {LEVELS} noise levels (CPU time)", rows)
    report.say()
    report.claim("longest answer", max(row["s"] for row in rows), at_most=1, unit="s")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
