"""Long computations: a progress bar when somebody watches, and a file from which training goes on.

`Checkpoint` keeps the state of a run in one file, and refuses a file that was made for
other arguments. A run that is killed loses what it did since its last save.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np

_EVERY = 0.5  # seconds between two saves at least
_SHARE = 20  # times as long as the last save took: saving takes at most a twentieth of the time
_FINGERPRINT = "fingerprint"  # name of the entry that holds the arguments


# ------------------------------------------------------------------------- progress


def bar(work=None, description="", total=None):
    """A progress bar of tqdm on stderr, where that is a terminal, after two seconds; without tqdm there is none.

    work : an iterable, which is then iterated over; or None, for a context manager with `update(steps)`.
    description : a few words that stand before the bar. total : how many steps there are, where `work` does not say.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        return _Silent() if work is None else work
    return tqdm(work, description, total, leave=False, disable=None, delay=2)


class _Silent:
    """The context manager, showing nothing."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def update(self, steps=1):
        pass


# ---------------------------------------------------------------------- resumable state


class Checkpoint:
    """Finished parts of a computation in one file (.npz), for one set of arguments.

    path : the file; None keeps nothing. Its folder must exist. Only one process may use it at a time.
    fingerprint : everything that the saved arrays depend on, by name: numbers,
        text, None, arrays, and lists of these.

    A save replaces the file in one move, so that an interruption leaves the old
    file or the new one, never half of one. A process that is killed while it saves also leaves
    `.NAME.partial` beside it, which the next save replaces. Raises TypeError or ValueError naming the
    argument `checkpoint` when the folder is missing or may not be written, the file is not one of these, or
    it was written for other arguments; the message says which argument differs. A save that fails raises OSError.
    """

    def __init__(self, path, **fingerprint):
        self.path = None
        self._fingerprint = {name: _canonical(value) for name, value in fingerprint.items()}
        self._saved, self._cost = time.monotonic(), 0.0
        if path is None:
            return
        if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
            raise TypeError(f"checkpoint must be the path of a file, or None; got {path!r}")
        self.path = Path(path)
        if not self.path.parent.is_dir() or self.path.is_dir():
            raise ValueError(f"checkpoint must be a file in a folder that exists; got {str(path)!r}")
        if not self.path.exists() and not os.access(self.path.parent, os.W_OK):
            raise ValueError(f"checkpoint must be a file in a folder that may be written; got {str(path)!r}")
        self._partial = self.path.with_name(f".{self.path.name}.partial")
        self.load()  # a file for other arguments is refused before any work

    def load(self):
        """The saved arrays by name; an empty dictionary where nothing is saved yet."""
        if self.path is None or not self.path.exists():
            return {}
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            written_for = json.loads(str(arrays.pop(_FINGERPRINT)))
            names = {*written_for, *self._fingerprint}
        except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"checkpoint {str(self.path)!r} is not a file of saved state: {error}"
            ) from error
        for name in sorted(names):
            then, now = written_for.get(name), self._fingerprint.get(name)
            if then != now:
                raise ValueError(
                    f"checkpoint {str(self.path)!r} was written for another {name} ({then}, now {now}); "
                    "give another path or remove the file"
                )
        return arrays

    @property
    def due(self) -> bool:
        """Whether the last save is half a second old, or older where saving takes long; never without a path."""
        return self.path is not None and time.monotonic() - self._saved > max(_EVERY, _SHARE * self._cost)

    def save(self, **arrays):
        """Replace what is stored by these arrays."""
        if self.path is None:
            return
        if _FINGERPRINT in arrays:
            raise ValueError(f"an array may not be called {_FINGERPRINT!r}")
        start = time.monotonic()
        try:
            # For its owner alone: the noise of a run may be in it.
            with open(os.open(self._partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
                np.savez(file, **{_FINGERPRINT: np.array(json.dumps(self._fingerprint))}, **arrays)
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._partial, self.path)
        except BaseException as error:
            with suppress(OSError):
                self._partial.unlink(missing_ok=True)
            if not isinstance(error, OSError):
                raise
            reason = f"checkpoint cannot be written, and is as it was before: {error.strerror or error}"
            raise OSError(error.errno, reason, str(self.path)) from None
        self._saved = time.monotonic()
        self._cost = self._saved - start

    def remove(self):
        """Delete the file, if there is one."""
        if self.path is not None:
            self._partial.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)


def _canonical(value):
    """A value as JSON keeps it without loss; arrays by a hash of shape and content."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (np.bool_, int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return repr(float(value))  # 17 digits; also infinity, which JSON does not know
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        digest = hashlib.sha256(f"{array.shape}{array.dtype.str}".encode() + array.tobytes()).hexdigest()
        return f"array {digest[:32]}"
    raise TypeError(f"a fingerprint holds numbers, text, arrays and lists of them; got {value!r}")
