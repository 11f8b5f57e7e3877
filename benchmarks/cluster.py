"""Claims: a thousand tiny tasks on a cluster cost less than 2 s, not the 15 s of one message each; a sweep is done
about twice as fast by two processes; nothing is lost when one of them is killed.

joblib here, in two processes (loky), and on Dask: a LocalCluster of two worker processes on this machine. Wall-clock
time, since CPU seconds of other processes are not seen; on a machine that does other work the ratios mean little.
Twice on Dask: as it starts its workers, which give freed memory back to the system at once (arrays are then mapped
and zeroed anew for every sum), and with MALLOC_TRIM_THRESHOLD_ in the environment, which makes them keep it.
The model below the table: a sweep of W seconds of work in batches of s seconds, h seconds of the scheduler for
each batch, on p workers takes about start + max(W / p + s, W h / s).
"""

import logging
import os
import signal
import sys
import threading
import time

from _common import Report, clock, median

import dplib
from dplib import matrices
from dplib.sweep import sweep

TINY, LONG = 1000, 24
DASK = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
KEEP = {"MALLOC_TRIM_THRESHOLD_": str(2**27)}
WORKERS = (2, 8, 32, 128, 512)


def tiny(setting):
    return setting


def certificate(seed):
    """About half a second of one processor."""
    mechanism = dplib.BallsInBins(matrices.optimal_counting(64), 5.0, 16, 4)
    return mechanism.delta(1.0, method="certificate", samples=2**13, seed=seed)


def timed(task, settings, **options):
    found, seconds = clock(lambda: sweep(task, settings, **options))
    return found, seconds[0]


def measure(report, name, rows, here):
    """Tiny and long tasks with the backend that is switched on."""
    timed(certificate, range(4))  # workers have started and have imported what they need
    empty = median([timed(tiny, range(TINY))[1] for _ in range(3)])
    single = timed(tiny, range(TINY // 5), batch_size=1)[1] * 5
    found, seconds = timed(certificate, range(LONG))
    if found != here["found"]:
        report.wrong(f"{name}: other results than here")
    rows.append({"workers": name, "tiny tasks, s": empty, "one at a time, s": single, "long tasks, s": seconds,
                 "speed-up": here["seconds"] / seconds})  # fmt: skip
    return rows[-1]


def killed(client):
    """Results and seconds of the long tasks when one of two workers is killed in their middle."""
    threading.Timer(3.0, os.kill, (min(client.run(os.getpid).values()), signal.SIGKILL)).start()
    return timed(certificate, range(LONG), batch_size=1)


def main():
    import joblib
    from distributed import Client, LocalCluster

    report = Report("cluster", "Sweeps here, in two processes, on a cluster", "joblib", "distributed")
    timed(certificate, [0])
    found, seconds = timed(certificate, range(LONG))
    here, rows = {"found": found, "seconds": seconds}, []
    quick = timed(tiny, range(TINY))[1]
    rows.append({"workers": "here", "tiny tasks, s": quick, "long tasks, s": seconds, "speed-up": 1.0})
    with joblib.parallel_config(n_jobs=2):
        loky = measure(report, "2 processes", rows, here)
    start = time.perf_counter()
    with LocalCluster(**DASK) as cluster, Client(cluster), joblib.parallel_config(backend="dask"):
        begun = time.perf_counter() - start
        measure(report, "Dask, 2 workers", rows, here)
    os.environ.update(KEEP)  # what the environment says goes before what Dask would set
    with LocalCluster(**DASK) as cluster, Client(cluster) as client, joblib.parallel_config(backend="dask"):
        dask = measure(report, "Dask, memory kept", rows, here)
        own = clock(lambda: joblib.Parallel(batch_size=1)(joblib.delayed(tiny)(i) for i in range(TINY // 5)))[1][0] * 5
        again, seconds = killed(client)
        if again != here["found"]:
            report.wrong("other results after a worker was killed")
        speed = here["seconds"] / seconds
        rows.append({"workers": "Dask, one killed", "long tasks, s": seconds, "speed-up": speed})
    report.table(
        f"{TINY} tiny tasks; {LONG} certificates", rows,
        ["workers", "tiny tasks, s", "one at a time, s", "long tasks, s", "speed-up"],
    )  # fmt: skip
    report.say(f"\nThe cluster started in {begun:.3g} s. joblib's own way to Dask, one task a message: {own:.3g} s.")
    message, batch = dask["one at a time, s"] / TINY, 0.5
    model = []
    for p in WORKERS:
        seconds = max(3600 / p + batch, 3600 * message / batch)
        model.append({"workers": p, "an hour of work, s": seconds, "speed-up": 3600 / seconds})
    report.say(f"A message to Dask and back costs {1000 * message:.3g} ms.")
    report.table("Model: an hour of work in batches of half a second", model)
    report.say("")
    report.claim("tiny tasks on Dask", dask["tiny tasks, s"], at_most=2, unit="s")
    report.claim("tiny tasks in two processes", loky["tiny tasks, s"], at_most=1, unit="s")
    report.claim("speed-up of two processes", loky["speed-up"], at_least=1.6)
    report.claim("speed-up of two Dask workers that keep memory", dask["speed-up"], at_least=1.6)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
