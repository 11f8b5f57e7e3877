"""Sweeps: the same results wherever they run, after interruptions, and when workers are killed midway."""

import gc
import json
import logging
import os
import signal
import struct
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dplib
from dplib import _workers, matrices, results
from dplib.sweep import sweep

joblib = pytest.importorskip("joblib")


def square(setting):
    return setting * setting


def leaves_a_file(setting, folder):
    (folder / f"{setting}.{os.getpid()}.{time.monotonic_ns()}").touch()
    return setting


def fails_at_seven(setting):
    if setting == 7:
        raise KeyError("seven")
    return setting


def waits(setting, seconds=0.05):
    time.sleep(seconds)
    return setting


def certificate(setting):
    mechanism = dplib.BallsInBins(matrices.optimal_counting(16), setting["noise"], 4, 4)
    return mechanism.delta(2.0, method="certificate", samples=2**13, seed=setting["seed"])


SETTINGS = [{"noise": 3.0 + 0.1 * i, "seed": i} for i in range(6)]


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with distributed.LocalCluster(**options) as local, distributed.Client(local) as client:
        yield client


# ------------------------------------------------------------------------- where it runs


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_results_do_not_depend_on_the_workers(backend):
    here = sweep(square, range(30))
    assert here == [i * i for i in range(30)]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert sweep(square, range(30)) == here
        assert sweep(square, range(30), batch_size=4) == here
        assert sweep(square, [3]) == [9] and sweep(square, []) == []


def test_without_joblib_everything_runs_here(monkeypatch):
    monkeypatch.delitem(sys.modules, "joblib")
    assert _workers.count() == 1
    assert sweep(square, (1, 2)) == [1, 4]


def test_a_thousand_tiny_tasks_travel_in_few_batches(monkeypatch):
    calls = []
    batch = _workers._batch
    monkeypatch.setattr(_workers, "_batch", lambda function, items: calls.append(len(items)) or batch(function, items))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert sweep(square, range(1000)) == [i * i for i in range(1000)]
    assert len(calls) < 250 and sum(calls) == 1000


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_every_setting_is_computed_once(tmp_path, backend):
    """Also where the backend hands results over in rounds."""
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert sweep(partial(leaves_a_file, folder=tmp_path), range(40), batch_size=1) == list(range(40))
    assert len(list(tmp_path.iterdir())) == 40


def test_slow_tasks_travel_alone():
    batches = _workers._Batches(40, 2, None)
    for _ in range(3):
        batch = next(batches)
        batches.finished(batch, [None], 0.4)
        assert len(batch) == 1
    assert len(next(_workers._Batches(40, 2, 7))) == 7


# ------------------------------------------------------------------------- failures


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_names_the_setting_and_keeps_what_was_finished(tmp_path, workers):
    path = tmp_path / "kept.jsonl"
    with joblib.parallel_config(backend="loky", n_jobs=workers):
        with pytest.raises(RuntimeError, match=r"setting 7: KeyError: 'seven'") as caught:
            sweep(fails_at_seven, range(20), checkpoint=path, batch_size=3)
    assert isinstance(caught.value.__cause__, KeyError)
    where = caught.value.__cause__.__notes__[0] if workers == 2 else str(caught.traceback[-1])
    assert "fails_at_seven" in where or "sweep" in where
    kept = path.read_text().splitlines()
    assert 1 + 1 <= len(kept) <= 20


def test_an_exception_that_cannot_travel():
    class Strange(Exception):
        def __init__(self, first, second):
            super().__init__(first)

    def task(setting):
        raise Strange("odd", setting)

    with pytest.raises(RuntimeError, match="setting 5: RuntimeError: Strange: odd"):
        sweep(task, [5])


def kills_its_process(setting, marker):
    """Once, by the first process that comes to setting 3."""
    if setting == 3:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return setting
        os.kill(os.getpid(), signal.SIGKILL)
    return setting


def test_a_killed_process_loses_nothing(tmp_path):
    marker = tmp_path / "killed"
    with joblib.parallel_config(backend="loky", n_jobs=2):
        found = sweep(partial(kills_its_process, marker=str(marker)), range(10), batch_size=1)
    assert found == list(range(10)) and marker.exists()


def dies_while_it_writes(setting, marker):
    """Once: the length of a result of a thousand bytes, ten of them, and the end."""
    if setting == 3 and not marker.exists():
        marker.touch()
        from joblib.externals.loky.backend.queues import SimpleQueue

        [results_queue] = [found for found in gc.get_objects() if isinstance(found, SimpleQueue)]
        results_queue._wlock.acquire()
        os.write(results_queue._writer.fileno(), struct.pack("!i", 1000) + bytes(10))
        os.kill(os.getpid(), signal.SIGKILL)
    return setting


def test_a_process_killed_in_the_middle_of_a_result(tmp_path):
    """joblib alone waits forever for the rest."""
    with joblib.parallel_config(n_jobs=2, backend="loky"):
        found = dict(_workers.unordered(partial(dies_while_it_writes, marker=tmp_path / "marker"), range(40), batch_size=1))
    assert (tmp_path / "marker").exists() and found == {n: n for n in range(40)}


def test_a_task_that_always_kills_its_process_is_named(monkeypatch):
    monkeypatch.setattr(_workers, "_DEATHS", 1)
    parent = os.getpid()

    def task(setting):
        if setting == "bad" and os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.5)

    with joblib.parallel_config(backend="loky", n_jobs=2):
        with pytest.raises(RuntimeError, match="workers died .* under way: .*'bad'"):
            sweep(task, ["bad", "good"])


# ------------------------------------------------------------------------- a cluster, one worker killed


class Killer(threading.Thread):
    """Kills one of the workers when the checkpoint holds two results."""

    def __init__(self, client, path):
        super().__init__(daemon=True)
        self.path, self.victim = Path(path), min(client.run(os.getpid).values())
        self.lines = None

    def run(self):
        while not self.path.exists() or len(self.path.read_text().splitlines()) < 3:
            time.sleep(0.002)
        os.kill(self.victim, signal.SIGKILL)
        self.lines = len(self.path.read_text().splitlines())


def on_a_cluster_that_loses_a_worker(cluster, task, settings, path):
    killer = Killer(cluster, path)
    killer.start()
    with joblib.parallel_config(backend="dask"):
        found = sweep(task, settings, checkpoint=path, batch_size=1)
    killer.join(30)
    assert killer.lines is not None and killer.lines - 1 < len(settings)  # it was midway
    assert killer.victim not in cluster.run(os.getpid).values()
    return found


def test_certificates_on_a_cluster_that_loses_a_worker(cluster, tmp_path):
    """[A-15] Certificates are the same numbers as computed here, every digit."""
    here = [certificate(setting) for setting in SETTINGS]
    path = tmp_path / "certificates.jsonl"
    assert on_a_cluster_that_loses_a_worker(cluster, certificate, SETTINGS, path) == here
    assert all(isinstance(found, results.Certificate) for found in here)
    assert sweep(certificate, SETTINGS[::-1], checkpoint=path) == here[::-1]  # from the file


def test_one_certification_spread_over_a_cluster(cluster):
    mechanism = dplib.BallsInBins(matrices.optimal_counting(16), 3.0, 4, 4)
    here = mechanism.delta(2.0, method="certificate", samples=2**13, seed=5)
    with joblib.parallel_config(backend="dask"):
        assert _workers.count() == 2
        assert mechanism.delta(2.0, method="certificate", samples=2**13, seed=5) == here


def test_tiny_tasks_and_failures_on_a_cluster(cluster, monkeypatch):
    sent, submit = [], cluster.submit
    monkeypatch.setattr(type(cluster), "submit", lambda self, *a, **k: sent.append(a) or submit(*a, **k))
    with joblib.parallel_config(backend="dask"):
        assert sweep(square, range(1000)) == [i * i for i in range(1000)]
        assert 0 < len(sent) < 250  # messages, not one for each task
        with pytest.raises(RuntimeError, match="setting 7: KeyError"):
            sweep(fails_at_seven, range(20))
        assert sweep(square, range(5)) == [0, 1, 4, 9, 16]


# ------------------------------------------------------------------------- the checkpoint


def test_a_sweep_goes_on_where_it_stopped(tmp_path):
    path, log = tmp_path / "kept.jsonl", []

    def task(setting):
        log.append(setting)
        if len(log) == 5:
            raise KeyboardInterrupt
        return setting

    with pytest.raises(KeyboardInterrupt):
        sweep(task, range(8), checkpoint=path)
    assert log == [0, 1, 2, 3, 4]
    assert sweep(task, range(8), checkpoint=path) == list(range(8))
    assert log == [0, 1, 2, 3, 4, 4, 5, 6, 7]
    # Other settings of the same task, in another order, and one of them twice.
    assert sweep(task, [9, 3, 3, 0], checkpoint=path) == [9, 3, 3, 0]
    assert log[9:] == [9, 3]


def test_an_interrupted_write_is_repaired(tmp_path):
    path = tmp_path / "kept.jsonl"
    sweep(square, range(4), checkpoint=path)
    whole = path.read_bytes()
    for cut in range(1, 40, 3):
        path.write_bytes(whole[:-cut])
        assert sweep(square, range(4), checkpoint=path) == [0, 1, 4, 9]
        assert path.read_bytes() == whole
    path.write_bytes(b"")
    assert sweep(square, range(4), checkpoint=path) == [0, 1, 4, 9]
    assert len(path.read_text().splitlines()) == 5
    # Not even the header was finished.
    path.write_bytes(whole[:9])
    assert sweep(square, range(4), checkpoint=path) == [0, 1, 4, 9]
    assert path.read_bytes() == whole


def test_a_result_that_cannot_be_stored_names_the_file(tmp_path, monkeypatch):
    path = tmp_path / "kept.jsonl"
    sweep(square, [1], checkpoint=path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match="checkpoint cannot be written; .* No space left .*kept.jsonl"):
            sweep(square, [1, 2], checkpoint=path)
    assert sweep(square, [1, 2], checkpoint=path) == [1, 4]


def test_a_file_that_may_not_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    path, log = tmp_path / "kept.jsonl", []
    sweep(log.append, [1], checkpoint=path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ValueError, match="checkpoint must be a file that may be written"):
        sweep(log.append, [1, 2], checkpoint=path)
    assert sweep(log.append, [1], checkpoint=path) == [None] and log == [1]  # nothing is to be written


def test_what_a_checkpoint_keeps(tmp_path):
    values = [
        None, True, 3, -0.1, math_inf := float("inf"), "text", [1, [2]], (1, (2.5, "a")), {"a": {"b": [1]}}, 10**30,
        np.float64(1 / 3), np.int64(7), results.Bracket(0.1, 0.2, "m"), results.Certificate(0.1, 1e-9, 5),
        results.Estimate(1.0, 0.1, 1.2, 0.99), {"e": (results.Bracket(1, 2),)},
    ]  # fmt: skip
    path = tmp_path / "kept.jsonl"
    task = lambda place: values[place]
    for _ in range(2):
        found = sweep(task, range(len(values)), checkpoint=path)
        assert found == values and [type(f) for f in found[:9]] == [type(v) for v in values[:9]]
    assert found[4] == math_inf and type(found[10]) is float and found[10] == 1 / 3
    arrays = [np.arange(6.0).reshape(2, 3).T, np.array([], int), np.array([True, False])]
    for _ in range(2):
        for first, second in zip(sweep(lambda i: arrays[i], range(3), checkpoint=tmp_path / "arrays.jsonl"), arrays):
            np.testing.assert_array_equal(first, second)
            assert first.dtype == second.dtype and first.flags.writeable
    for line in path.read_text().splitlines():
        assert isinstance(json.loads(line), dict)


def test_a_checkpoint_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "kept.jsonl"
    before = os.umask(0)
    try:
        sweep(square, range(3), checkpoint=path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600 and sweep(square, range(3), checkpoint=path) == [0, 1, 4]


def test_an_end_keeps_its_direction_in_a_checkpoint(tmp_path):
    values = [results.UpperEnd(1.23), results.LowerEnd(1.29), [results.UpperEnd(-0.01)], results.Bracket(1.29, 2.31)]
    for _ in range(2):
        upper, lower, [nested], bracket = sweep(lambda i: values[i], range(4), checkpoint=tmp_path / "kept.jsonl")
        assert f"{upper:.1f} {lower:.1f} {nested:.1f} {bracket.lower:.1f} {bracket:.1f}" == "1.3 1.2 -0.0 1.2 2.4"


def test_checkpoints_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "kept.jsonl"
    sweep(partial(waits, seconds=0), range(2), checkpoint=path)
    for other in (square, partial(waits, seconds=0.01)):
        with pytest.raises(ValueError, match="checkpoint .* another task"):
            sweep(other, range(2), checkpoint=path)
    for content in ('{"a": 1}\n', "nonsense\n", '{"dplib sweep": 2, "task": ""}\n', "[1]\n"):
        path.write_text(content)
        with pytest.raises(ValueError, match="checkpoint .* not a file of a sweep"):
            sweep(square, range(2), checkpoint=path)
    for checkpoint, error in ((5, TypeError), (tmp_path / "no" / "file", ValueError), (tmp_path, ValueError)):
        with pytest.raises(error, match="checkpoint"):
            sweep(square, range(2), checkpoint=checkpoint)
    with pytest.raises(TypeError, match="settings must consist"):
        sweep(square, [object()], checkpoint=tmp_path / "other.jsonl")
    with pytest.raises(TypeError, match="result for the setting 1 must consist"):
        sweep(lambda setting: {1: 2}, [1], checkpoint=tmp_path / "third.jsonl")


@pytest.mark.parametrize(
    "bad", [{"task": 3}, {"settings": 4}, {"batch_size": 0}, {"batch_size": 1.5}, {"description": 3}]
)
def test_bad_arguments(bad):
    with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
        sweep(**{"task": square, "settings": [1]} | bad)
