"""Progress bars appear only where somebody watches; a checkpoint resumes exactly, and only its own computation."""

import os
import sys
import time

import numpy as np
import pytest

from dplib._base.checkpoints import Checkpoint, bar

ARGUMENTS = {"kind": "test", "sigma": 1.0, "rounds": 3, "entries": np.eye(2), "split": [0.1, None], "exact": True}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.npz"


@pytest.fixture
def saved(path):
    """A checkpoint of the arguments above, with one save."""
    checkpoint = Checkpoint(path, **ARGUMENTS)
    checkpoint.save(done=1)
    return checkpoint


def holds_the_first_save(path):
    return int(Checkpoint(path, **ARGUMENTS).load()["done"]) == 1 and os.listdir(path.parent) == [path.name]


# --- checkpoints -------------------------------------------------------------------------------------


def test_without_tqdm_there_is_no_bar_and_no_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)  # an import of it fails
    assert list(bar(range(3))) == [0, 1, 2]
    with bar(total=2) as silent:
        silent.update()


def test_what_is_saved_comes_back_exactly(path):
    first = Checkpoint(path, **ARGUMENTS)
    assert first.load() == {}
    sums = np.array([1 / 3, -0.0, np.inf])
    first.save(sums=sums, done=4)
    stored = Checkpoint(str(path), **ARGUMENTS).load()
    assert set(stored) == {"sums", "done"} and int(stored["done"]) == 4
    assert stored["sums"].tobytes() == sums.tobytes()
    first.remove()
    first.remove()
    assert first.load() == {}


OTHERS = [
    ("sigma", 1.0 + 1e-15),
    ("rounds", 4),
    ("entries", np.array([[1.0, 0.0], [1e-300, 1.0]])),
    ("entries", np.eye(2).ravel()),
    ("split", [0.1, 0.2]),
    ("exact", 0.5),
    ("extra", 1),
]


@pytest.mark.parametrize("name, value", OTHERS)
def test_a_file_for_other_arguments_is_refused(path, saved, name, value):
    with pytest.raises(ValueError, match=rf"checkpoint .* was written for another {name} "):
        Checkpoint(path, **{**ARGUMENTS, name: value})
    assert holds_the_first_save(path)


@pytest.mark.parametrize("content", [b"", b"not a file of this kind", b"PK\x03\x04 broken"])
def test_a_foreign_file_is_refused_and_kept(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="checkpoint .*state.npz.* is not a file of saved state"):
        Checkpoint(path, **ARGUMENTS)
    assert path.read_bytes() == content


def test_paths_are_checked_before_any_work(tmp_path, monkeypatch):
    for path in (3, b"", "", True):
        with pytest.raises(TypeError, match="checkpoint must be the path of a file"):
            Checkpoint(path)
    for path in (tmp_path / "missing" / "state.npz", tmp_path):
        with pytest.raises(ValueError, match="checkpoint must be a file in a folder that exists"):
            Checkpoint(path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ValueError, match="checkpoint must be a file in a folder that may be written"):
        Checkpoint(tmp_path / "state.npz")
    with pytest.raises(TypeError, match="a fingerprint holds"):
        Checkpoint(None, thing=object())


def test_an_interrupted_save_leaves_the_old_file(path, saved, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        saved.save(done=2)
    monkeypatch.undo()
    assert holds_the_first_save(path)
    with pytest.raises(ValueError, match="may not be called"):
        saved.save(fingerprint=1)


def test_a_save_that_fails_names_the_file_and_leaves_the_old_one(path, saved, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="checkpoint cannot be written, .* No space left .*state.npz") as caught:
        saved.save(done=2)
    assert caught.value.errno == 28 and caught.value.filename == str(path)
    assert holds_the_first_save(path)


def test_what_a_killed_save_has_left_is_replaced(path):
    for end, kept in (("save", [path.name]), ("remove", [])):
        (path.parent / ".state.npz.partial").write_bytes(b"half of a fi")
        getattr(Checkpoint(path, **ARGUMENTS), end)()
        assert os.listdir(path.parent) == kept


def test_a_slow_save_is_seldom_due(path, monkeypatch):
    """Saving takes a twentieth of the time at most, and a fast one is due after half a second."""
    checkpoint, clock, replace = Checkpoint(path), [0.0], os.replace

    def slow(*names):
        clock[0] += 3.0
        replace(*names)

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    checkpoint.save()
    assert not checkpoint.due
    clock[0] += 0.6
    assert checkpoint.due
    monkeypatch.setattr(os, "replace", slow)
    checkpoint.save()
    for later, due in ((59.0, False), (2.0, True)):
        clock[0] += later
        assert checkpoint.due is due


def test_a_checkpoint_is_for_its_owner_alone(path, saved):
    """It may hold the seed of the noise."""
    assert path.stat().st_mode & 0o777 == 0o600
