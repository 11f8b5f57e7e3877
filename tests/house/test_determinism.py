"""The same numbers, bit for bit, in this process and in one with two threads and workers."""

import json
import os
import subprocess
import sys

import determinism_cases
import joblib
import pytest
from folders import ROOT


@pytest.mark.slow
def test_threads_and_workers_change_no_bit():
    with joblib.parallel_config(n_jobs=1):
        here = determinism_cases.numbers()
    two = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2") | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, determinism_cases.__file__, "2"]
    there = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=two, check=True).stdout
    assert len(here) >= 30 and json.loads(there.splitlines()[-1]) == here
