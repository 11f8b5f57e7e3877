"""Questions to one library: each call is a process of its own with a time and a memory limit.

    python _child.py MODULE < calls.json

Runs in the library's own environment. It imports the module and forks for every call of the list, so that imports
are paid and counted once. For every call it prints a line of JSON: exit status, output, errors. CPU seconds are those
of the call; the peak of the memory is that of its process, what the imports hold included.
"""

import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback

WALL = 30  # times the limit on CPU seconds: ends a call that only waits


def limit(seconds, megabytes):
    """CPU seconds of this process, address space, and a wall-clock guard."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * 10**6, megabytes * 10**6))
    signal.alarm(WALL * seconds)


def peak_mb():
    """Largest resident memory of this process."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            kilobytes = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        return kilobytes * 1024 / 1e6
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def call(function, setting):
    start = time.process_time()
    answer = function(**setting)
    spent = time.process_time() - start
    return {"answer": answer, "cpu_s": spent, "peak_mb": peak_mb()}


def forked(function, setting, seconds, megabytes):
    """(status, output, errors) of the call in a process of its own; a status below 0 is a signal."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.dup2(err.fileno(), 2)
                os.dup2(err.fileno(), 1)  # a library that prints does not get into the answer
                limit(seconds, megabytes)
                out.write(json.dumps(call(function, setting)))
                out.flush()
                status = 0
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read()


def main(module):
    calls = json.load(sys.stdin)
    library = importlib.import_module(module)
    for function, setting, seconds, megabytes in calls:
        status, out, err = forked(getattr(library, function), setting, seconds, megabytes)
        print(json.dumps({"status": status, "out": out, "err": err[-2000:]}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
