"""The same numbers, bit for bit, with one thread and worker, and with two of each."""

import json
import os
import subprocess
import sys

import pytest
from folders import ROOT

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def results(threads, workers):
    """{name: number} of another process."""
    environment = os.environ | dict.fromkeys(THREADS, str(threads)) | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "tests" / "house" / "determinism_cases.py"), str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_threads_and_workers_change_no_bit():
    base = results(threads=1, workers=1)
    assert len(base) >= 30 and results(threads=2, workers=2) == base
