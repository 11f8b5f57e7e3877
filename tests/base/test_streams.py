"""Blocks of random draws: the same results wherever they run."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from folders import ROOT

import dplib
from dplib import matrices
from dplib._base import random_blocks

joblib = pytest.importorskip("joblib")


def draws(rng, index, size=3):
    """What a block computes: its index and a few draws."""
    return np.array([index, *rng.standard_normal(size)])


def process(rng, index):
    return os.getpid()


def dies(rng, index):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def expected():
    return random_blocks.run(draws, 40, seed=7, key=(1,))


def test_results_do_not_depend_on_the_workers(expected):
    for backend, workers in (("threading", 1), ("threading", 3), ("loky", 2), ("multiprocessing", 2)):
        with joblib.parallel_config(backend=backend, n_jobs=workers):
            np.testing.assert_array_equal(random_blocks.run(draws, 40, seed=7, key=(1,)), expected)


@pytest.mark.trust
def test_the_example_of_the_book_remembers_what_it_found(tmp_path):
    """Certificates by the workers of a cluster are the numbers that are computed here, and lie in the folder."""
    pytest.importorskip("distributed")
    page = (ROOT / "book" / "library.md").read_text(encoding="utf-8").partition("## On many machines")[2]
    (tmp_path / "example.py").write_text(page.partition("```python\n")[2].partition("```")[0])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, env=environment, text=True, capture_output=True, check=True).stdout
    mechanisms = (dplib.BallsInBins(matrices.optimal_counting(64), sigma, 16, 4) for sigma in (3.0, 4.0, 5.0))
    here = [mechanism.delta(1.0, method="certificate", samples=2**13).upper for mechanism in mechanisms]
    assert found.strip() == str(list(map(float, here)))
    assert len(list(tmp_path.rglob("output.pkl"))) == 3  # which joblib.Memory finds again


def test_a_dead_worker_is_an_error_that_says_so():
    with joblib.parallel_config(backend="loky", n_jobs=2):
        with pytest.raises(RuntimeError, match="worker process .* was unexpectedly terminated"):
            random_blocks.run(dies, 8, seed=0)
        assert len(random_blocks.run(draws, 8, seed=0)) == 8  # the next call has workers again


def test_a_block_depends_on_seed_key_and_index_only(expected):
    np.testing.assert_array_equal(random_blocks.run(draws, 5, seed=7, key=(1,)), expected[:5])
    np.testing.assert_array_equal(draws(random_blocks.generator(7, (1,), 13), 13), expected[13])
    others = [expected, random_blocks.run(draws, 40, seed=8, key=(1,)), random_blocks.run(draws, 40, seed=7, key=(2,))]
    others.append(random_blocks.run(draws, 40, seed=7))
    values = np.concatenate([np.array(other)[:, 1:].ravel() for other in others])
    assert len(np.unique(values)) == len(values)


def test_without_joblib_everything_runs_here(monkeypatch, expected):
    monkeypatch.delitem(sys.modules, "joblib")
    np.testing.assert_array_equal(random_blocks.run(draws, 40, seed=7, key=(1,)), expected)
