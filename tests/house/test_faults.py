"""A training run, killed at any moment: nothing stored is broken, and the same call ends with the same result.

The programs are those of `fault_runs`, each in a process of its own. The moments are drawn at random, from a seed that is
printed.
"""

import os
import time
from functools import partial

import fault_runs
import numpy as np
import pytest
from faults import drawn, finish, kill_at, locked, small_files_only, start, without_rights

pytestmark = pytest.mark.slow
begin = partial(start, fault_runs.__file__)


def result(name, folder, *options):
    status, text = finish(begin(name, folder, *options))
    assert status == 0, text
    return (folder / "result").read_text()


def kill_midway(name, folder, computed):
    """Kill it at a random moment after so many steps more."""
    goal = fault_runs.steps(folder) + computed
    process = begin(name, folder)
    while fault_runs.steps(folder) < goal:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    assert kill_at(process, 0.2 * drawn().random()), "it was quicker: the run is too short"


def trained(folder):
    """How many programs of 16 rounds the checkpoint holds; fails where the file is broken."""
    with np.load(folder / "state.npz", allow_pickle=False) as arrays:
        return int({name: arrays[name] for name in arrays.files}["done"]) // 16


@pytest.mark.attack
def test_training_killed_full_locked_and_finished(tmp_path):
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        folder.mkdir()
    expected, folder = result("training_run", folders[0]), folders[1]
    for _ in range(2):
        before = fault_runs.steps(folder)
        stored = trained(folder) if before else 0
        kill_midway("training_run", folder, 10)
        # Lost is what was done since the last save, and the step under way.
        new = fault_runs.steps(folder) - before
        assert new - fault_runs.STEPS_TO_A_SAVE - 2 <= trained(folder) - stored <= new + 1
    disk_full_and_locked(folder)
    assert result("training_run", folder) == expected
    assert sorted(os.listdir(folder)) == ["log", "result"], "files are left"


def disk_full_and_locked(folder):
    """The old state stays, to the last byte, and the message names the file."""
    state = folder / "state.npz"
    before = state.read_bytes()
    status, text = finish(begin("training_run", folder, preexec_fn=small_files_only(len(before) // 2)))
    assert status == 1 and "checkpoint cannot be written" in text and str(state) in text, text
    assert "File too large" in text and "Traceback" not in text and "Exception ignored" not in text, text
    assert state.read_bytes() == before and not list(folder.glob(".*partial"))
    with locked(folder, state):
        status, text = finish(begin("training_run", folder, preexec_fn=without_rights))
    assert status == 1 and "checkpoint" in text and "written" in text and str(state) in text, text
    assert "Traceback" not in text and state.read_bytes() == before


def test_a_folder_that_may_not_be_written_is_refused_before_any_work(tmp_path):
    with locked(tmp_path):
        status, text = finish(begin("training_run", tmp_path, preexec_fn=without_rights))
    assert status == 1 and "checkpoint must be a file in a folder that may be written" in text
    assert os.listdir(tmp_path) == []


# --- nothing but writing ------------------------------------------------------------------------------


def start_writing(folder):
    process = begin("checkpoints", folder)
    while not (folder / "state.npz").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


def whole(path):
    """Fails where two writes are mixed, or one is cut off."""
    with np.load(path, allow_pickle=False) as arrays:
        assert {int(arrays["done"])} == set(np.unique(arrays["values"]).astype(int))


@pytest.mark.attack
def test_killed_while_it_writes(tmp_path):
    draw = drawn()
    for _ in range(5):
        assert kill_at(start_writing(tmp_path), draw.random())
        whole(tmp_path / "state.npz")
        assert set(os.listdir(tmp_path)) <= {"state.npz", ".state.npz.partial"}
