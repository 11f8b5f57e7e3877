"""Long computations, killed at any moment: nothing stored is lost or broken, and the same call ends with the same result.

The programs are those of `fault_runs`, each in a process of its own. The moments are drawn at random, from a seed that is
printed. FAULTS=thorough takes longer runs and more kills, and records them in benchmarks/results/faults.json.
"""

import json
import os
import time
from dataclasses import dataclass

import fault_record
import fault_runs
import numpy as np
import psutil
import pytest
from faults import THOROUGH, contents, drawn, finish, kill_at, locked, small_files_only, start, without_rights

pytestmark = pytest.mark.slow
SIZE, ROUNDS, KILLS = (1, 1, 6) if THOROUGH else (1, 1, 2)
MOST = 10  # steps between two saves, by the clock of steps that the runs go by, and a few under way


@dataclass
class Run:
    """A program, and how to read what it has stored."""

    name: str
    state: str = "state.npz"
    steps: object = None  # function of the stored arrays: how many steps they hold
    same_as: str = None  # the program that computes the same in one process
    times: int = 1  # as long
    under_way: int = 0  # finished steps that may wait for their turn, or for the file

    def start(self, folder, *every_step, **keywords):
        return start(fault_runs.__file__, self.name, folder, SIZE * self.times, *every_step, **keywords)

    def stored(self, folder):
        """How many steps can be read; fails where the file is broken."""
        path = folder / self.state
        if not path.exists():
            return 0
        if path.suffix == ".jsonl":
            whole = path.read_bytes().rpartition(b"\n")[0].splitlines()
            return max(0, len([json.loads(line) for line in whole]) - 1)
        with np.load(path, allow_pickle=False) as arrays:
            return self.steps({name: arrays[name] for name in arrays.files})


BLOCKS = lambda arrays: len(arrays["blocks"])
CERTIFICATION = Run("certification", "state.remove.npz", BLOCKS, times=2 if THOROUGH else 1)
RUNS = [
    CERTIFICATION,
    Run("optimisation", steps=lambda arrays: len(arrays["numbers"])),
    Run("training_run", steps=lambda arrays: int(arrays["done"]) // 16),
    Run("study", "state.jsonl"),
]
WITH_WORKERS = [
    Run("certification_in_processes", "state.remove.npz", BLOCKS, "certification", times=4, under_way=64),
    Run("sweep_in_processes", "state.jsonl", None, "sweep_here", under_way=4),
    Run("sweep_on_dask", "state.jsonl", None, "sweep_here", under_way=4),
]
NAMES = lambda run: run.name


def log(folder):
    """[(when, process)] of the steps that were computed."""
    path = folder / "log"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(float(when), int(process)) for when, process in map(str.split, lines)]


def fresh(folder):
    """A new folder in it."""
    new = folder / str(len(os.listdir(folder)))
    new.mkdir()
    return new


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Of a run: (its result, of how many steps)."""
    known = {}

    def result(run):
        name, size = run.same_as or run.name, SIZE * run.times
        if (name, size) not in known:
            folder = tmp_path_factory.mktemp(name)
            status, text = finish(start(fault_runs.__file__, name, folder, size))
            assert status == 0, text
            known[name, size] = (folder / "result").read_text(), len(log(folder))
        return known[name, size]

    return result


class Account:
    """What the kills of one run have cost."""

    def __init__(self, run, folder, steps):
        self.run, self.folder, self.all = run, folder, steps
        self.stored, self.computed, self.begun = run.stored(folder), len(log(folder)), time.monotonic()

    def killed(self, when):
        """Nothing is lost but what was done since the last save."""
        stored, steps = self.run.stored(self.folder), log(self.folder)[self.computed :]
        if not stored and self.stored + len(steps) >= self.all:
            stored = self.all  # a training run removes its file at the end
        assert stored >= self.stored
        kept = stored - self.stored
        lost = max(0, len(steps) - kept)  # one that was stored may not be noted yet
        seconds = 0.0
        if lost > self.run.under_way:
            seconds = when - steps[kept][0]
            most = 1 if self.run.state.endswith("jsonl") else MOST
            assert lost <= self.run.under_way + most, f"{lost} steps are lost, of {seconds:.1f} s"
        print(f"{self.run.name}: killed after {when - self.begun:.2f} s, {stored} steps stored, {lost} lost")
        return {
            "after": round(when - self.begun, 2),
            "stored": stored,
            "lost": lost,
            "seconds": round(seconds, 2),
        }


def until(true, process):
    """Wait; what the process says where it ends before."""
    while not true():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def wait(process, folder, steps):
    """Until so many steps are computed, or the run is over."""
    while len(log(folder)) < steps and process.poll() is None:
        time.sleep(0.01)


# --- one process --------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS, ids=NAMES)
def test_killed_full_locked_and_finished(run, undisturbed, tmp_path):
    expected, steps = undisturbed(run)
    draw, kills = drawn(), []
    for number in range(ROUNDS):
        folder = fresh(tmp_path)
        if number == 0:
            disk_full_and_locked(run, folder)
        for _ in range(KILLS):
            account = Account(run, folder, steps)
            process = run.start(folder)
            wait(process, folder, account.computed + draw.randrange(1 + (steps - account.stored) // 2))
            time.sleep(draw.random())
            when = time.monotonic()
            if kill_at(process, 0):
                kills.append(account.killed(when))
            else:  # it was quicker, and stored its result
                folder = fresh(tmp_path)
        status, text = finish(run.start(folder))
        assert status == 0, text
        assert (folder / "result").read_text() == expected
        assert not list(folder.glob(".*")), "temporary files are left"
    fault_record.add(run.name, kills)


def disk_full_and_locked(run, folder):
    """From the first save on: the old state stays, to the last byte, and the message names the file."""
    state = folder / run.state
    process = run.start(folder, "each")
    until(lambda: run.stored(folder), process)
    kill_at(process, 0)
    before, stored = state.read_bytes(), run.stored(folder)
    # A file to which lines are added has room for part of one, a file that is replaced for half of it.
    room = len(before) + 10 if state.suffix == ".jsonl" else len(before) // 2
    status, text = finish(run.start(folder, preexec_fn=small_files_only(room)))
    assert status == 1 and "checkpoint cannot be written" in text and str(state) in text, text
    assert "File too large" in text and "Traceback" not in text and "Exception ignored" not in text, text
    assert run.stored(folder) == stored and state.read_bytes().startswith(before)
    assert not list(folder.glob(".*partial"))
    with locked(folder, state):
        status, text = finish(run.start(folder, preexec_fn=without_rights))
    assert status == 1 and "checkpoint" in text and "written" in text and str(state) in text, text
    assert "Traceback" not in text
    assert run.stored(folder) == stored and state.read_bytes().startswith(before)


def test_a_folder_that_may_not_be_written_is_refused_before_any_work(tmp_path):
    folder = fresh(tmp_path)
    with locked(folder):
        status, text = finish(CERTIFICATION.start(folder, preexec_fn=without_rights))
    assert status == 1 and "checkpoint must be a file in a folder that may be written" in text
    assert os.listdir(folder) == []


# --- several processes --------------------------------------------------------------------------------


@pytest.mark.parametrize("run", WITH_WORKERS, ids=NAMES)
def test_a_worker_is_killed_and_then_the_caller(run, undisturbed, tmp_path):
    expected, steps = undisturbed(run)
    draw, kills = drawn(), []
    for _ in range(ROUNDS):
        folder = fresh(tmp_path)
        account = Account(run, folder, steps)
        process = run.start(folder)
        wait(process, folder, len(log(folder)) + 2)
        kill_a_worker(draw, folder)
        wait(process, folder, len(log(folder)) + 2)
        time.sleep(draw.random())
        workers = psutil.Process(process.pid).children(recursive=True)
        when = time.monotonic()
        assert kill_at(process, 0), "it was quicker: the run is too short"
        _, alive = psutil.wait_procs(workers, timeout=300)
        assert not alive, "workers outlive the run"
        kills.append(account.killed(when))
        status, text = finish(run.start(folder))
        assert status == 0, text
        assert (folder / "result").read_text() == expected
    fault_record.add(run.name, kills)


def kill_a_worker(draw, folder):
    workers = sorted({process for _, process in log(folder)})
    psutil.Process(draw.choice(workers)).kill()


# --- nothing but writing ------------------------------------------------------------------------------


def whole(path):
    """The number that the file holds everywhere; fails where two writes are mixed, or one is cut off."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            numbers = {int(arrays["done"]), *np.unique(arrays["values"]).astype(int)}
    elif path.suffix == ".txt":
        numbers = {int(line) for line in path.read_text().splitlines() if line.strip().isdigit()}
    else:
        record = json.loads(path.read_text())
        rows = (
            record["tables"]["The same number"] if "tables" in record else record["all"].values()
        )
        numbers = {row["number"] for row in rows}
    assert len(numbers) == 1, path
    return numbers.pop()


def killed_after_a_write(name, folder, files, seconds):
    process = start(fault_runs.__file__, name, folder)
    until(lambda: len(list(folder.glob("state*"))) >= files, process)
    assert kill_at(process, seconds)


@pytest.mark.parametrize("name", ["checkpoints", "reports", "mutants"])
def test_killed_while_it_writes(name, tmp_path):
    draw, kills, written = drawn(), [], {}
    for _ in range(5 * ROUNDS):
        folder = fresh(tmp_path)
        killed_after_a_write(name, folder, 1, draw.random())
        left = [path for path in folder.iterdir() if path.suffix in (".partial", ".part")]
        assert len(left) <= 1
        written = {path.name: whole(path) for path in folder.iterdir() if path not in left}
        kills.append({"writes": min(written.values()), "in a write": bool(left)})
    fault_record.add(name, kills)


@pytest.mark.parametrize("name", ["checkpoints", "reports"])
def test_a_file_that_is_replaced_on_a_full_disk(name, tmp_path):
    killed_after_a_write(name, tmp_path, 1 + (name == "reports"), 0.0)
    before = contents(tmp_path)
    room = min(path.stat().st_size for path in tmp_path.glob("state*")) // 2
    status, text = finish(start(fault_runs.__file__, name, tmp_path, preexec_fn=small_files_only(room)))
    assert status == 1 and "File too large" in text and str(tmp_path / "state.") in text, text
    assert "Traceback" not in text
    assert {key: value for key, value in before.items() if key[0] != "."} == contents(tmp_path)
