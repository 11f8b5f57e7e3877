"""What the tests of faults share: a process that is killed at a random moment, meets a full disk, or may not write."""

import ctypes
import hashlib
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path


def start(script, *arguments, **keywords):
    """A script in a process of its own."""
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **keywords)


def finish(process):
    """(exit status, everything it said)"""
    out, err = process.communicate(timeout=600)
    return process.returncode, out + err


def kill_at(process, seconds):
    """Kill without mercy after so many seconds; True if it was still running."""
    time.sleep(seconds)
    running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    return running


def drawn():
    """A generator of random numbers, its seed printed."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return random.Random(seed)


def moments(number, latest):
    """Random moments of a run, one in each equal part of it, so that early and late ones occur."""
    draw = drawn()
    return [latest * (part + draw.random()) / number for part in range(number)]


def contents(folder):
    """{path: hash} of every file under a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def without_rights():
    """Before a command starts: the rights of a folder hold, even for the superuser of Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


def small_files_only(size):
    """Before a command starts: no file may grow beyond a size, which a write meets as it meets a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@contextmanager
def locked(*paths):
    """Files and folders that may not be written."""
    rights = [path.stat().st_mode for path in paths]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path, mode in zip(paths, rights):
            path.chmod(mode)
