"""Sweeps: one task for many settings, on one core or on a cluster, to be stopped and resumed at will.

    def task(setting):
        return optimize.optimize(epsilon=setting["epsilon"], ...).noise_multiplier

    settings = [{"epsilon": e} for e in (0.5, 1, 2)]
    with joblib.parallel_config(n_jobs=4):                       # or backend="dask", "ray"
        found = sweep(task, settings, checkpoint="noise.jsonl")

joblib says where the tasks run; without it, or where nobody has chosen workers, they run here.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
from functools import partial

import numpy as np

from . import _validate as check
from . import _workers, results
from ._progress import bar

_FORMAT = 1
_HEADER = "dplib sweep"
_ARRAY, _TUPLE, _RESULT = "__array__", "__tuple__", "__result__"


def sweep(task, settings, *, checkpoint=None, batch_size=None, description=""):
    """[task(setting) for setting in settings], wherever joblib has been told to run it.

    Parameters
    ----------
    task : callable. With several workers it must be picklable; functions of a notebook are. Its results must
        depend on the setting alone: seeds belong into the setting.
    settings : list of anything that the task takes.
    checkpoint : path of a file (JSON lines) to which each result is written as it arrives, or None. A call with the
        same task takes from it what is there, also with more settings, fewer, or in another order; only one process
        may use it at a time. Settings and results must then consist of None, truth values, numbers, text, lists,
        tuples, dictionaries with text as keys, NumPy arrays, and the answers of `dplib.results`.
    batch_size : settings that travel together to a worker; None: one at first, then about half a second of work.
    description : words before the progress bar.

    Returns the results in the order of the settings. A worker process that dies costs what it was working on, which
    is run again; three deaths in a row without a result in between are an error. Raises RuntimeError that names the
    setting, from the exception of the task; finished results stay in the checkpoint. A process that is killed loses
    what was under way. Raises OSError where a result cannot be stored, TypeError or ValueError on bad input. Cost: a thousand empty tasks take well below a second beside the
    start of the workers.

    >>> from dplib import PoissonDPSGD, sweep
    >>> spent = lambda sigma: PoissonDPSGD(sigma, 0.01, 2000).epsilon(1e-6).upper
    >>> [f"{epsilon:.3f}" for epsilon in sweep.sweep(spent, [0.8, 1.0, 1.2])]
    ['4.945', '2.956', '2.126']
    """
    if not callable(task):
        raise TypeError(f"task must be a function of one setting; got {task!r}")
    try:
        settings = list(settings)
    except TypeError as error:
        raise TypeError(f"settings must be a list of settings; got {settings!r}") from error
    if batch_size is not None:
        batch_size = check.whole("batch_size", batch_size, at_least=1)
    if not isinstance(description, str):
        raise TypeError(f"description must be text; got {description!r}")
    kept = _Kept(None if checkpoint is None else check.path("checkpoint", checkpoint), task, settings)
    found = kept.load()
    missing = [index for index in range(len(settings)) if index not in found]
    working = _workers.unordered(task, [settings[index] for index in missing], batch_size)
    with bar(len(settings), description) as progress:
        progress.update(len(found))
        try:
            for place, result in working:
                found[missing[place]] = kept.append(missing[place], result)
                progress.update(1)
        except _workers.Failed as failure:
            setting = settings[missing[failure.index]]
            error = failure.error
            if error.__traceback__ is None:  # it was left behind in the worker
                error.add_note(failure.trace)
            raise RuntimeError(f"task failed for the setting {setting!r}: {type(error).__name__}: {error}") from error
        except _workers.Died as failure:
            names = ", ".join(repr(settings[missing[place]]) for place in failure.indices)
            raise RuntimeError(
                f"workers died again and again with these settings under way: {names}. Too little memory for the "
                "task is the usual cause"
            ) from failure.__cause__
        finally:
            working.close()
    return [found[index] for index in range(len(settings))]


class _Kept:
    """Finished results in a file of JSON lines: a header, then one line for each, appended as they arrive."""

    def __init__(self, path, task, settings):
        self.path, self.settings = path, settings
        if path is None:
            return
        self.task = _name(task)
        self.keys, seen = [], {}
        for setting in settings:
            text = _dumps("settings", setting)
            number = seen[text] = seen.get(text, 0) + 1  # equal settings are different draws of the user's
            self.keys.append(hashlib.sha256(f"{number} {text}".encode()).hexdigest()[:32])
        if os.path.isdir(path):
            raise ValueError(f"checkpoint must be a file; got the folder {path!r}")

    def load(self):
        """Results by index of the setting."""
        if self.path is None:
            return {}
        first = json.dumps({_HEADER: _FORMAT, "task": self.task})
        content = b""
        if os.path.exists(self.path):
            with open(self.path, "rb") as file:
                content = file.read()
        whole, _, rest = content.rpartition(b"\n")
        if not whole and first.encode().startswith(rest):  # nothing, or half a header
            self._write(first, "w")
            return {}
        try:
            header, *lines = [json.loads(line) for line in whole.splitlines()]
            if header[_HEADER] != _FORMAT:
                raise ValueError(f"format {header[_HEADER]!r}")
            stored = {line["key"]: line["result"] for line in lines}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"checkpoint {self.path!r} is not a file of a sweep: {error}") from error
        if header["task"] != self.task:
            raise ValueError(
                f"checkpoint {self.path!r} was written for another task ({header['task']}, now {self.task}); "
                "give another path or remove the file"
            )
        if (rest or not set(self.keys) <= stored.keys()) and not os.access(self.path, os.W_OK):
            raise ValueError(f"checkpoint must be a file that may be written; got {self.path!r}")
        if rest:  # a line whose writing was interrupted
            with open(self.path, "r+b") as file:
                file.truncate(len(whole) + 1)
        return {index: _decoded(stored[key]) for index, key in enumerate(self.keys) if key in stored}

    def append(self, index, result):
        """Store it; returns it as it will be read again."""
        if self.path is None:
            return result
        setting = self.settings[index]
        encoded = json.loads(_dumps(f"the result for the setting {setting!r}", result))
        self._write(json.dumps({"key": self.keys[index], "setting": repr(setting)[:200], "result": encoded}))
        return _decoded(encoded)

    def _write(self, line, mode="a"):
        try:
            with open(self.path, mode, encoding="utf-8", opener=_owners_alone) as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # part of a line is cut off when the file is read again
            reason = f"checkpoint cannot be written; the results before this one are kept: {error.strerror or error}"
            raise OSError(error.errno, reason, self.path) from None


def _owners_alone(path, flags):
    """A new file is for its owner alone, as every checkpoint of the library."""
    return os.open(path, flags, 0o600)


def _name(task):
    """What a checkpoint remembers of the task."""
    if isinstance(task, partial):
        return f"{_name(task.func)} with {_dumps('arguments of task', [list(task.args), task.keywords])}"
    return f"{getattr(task, '__module__', '')}.{getattr(task, '__qualname__', type(task).__qualname__)}"


def _dumps(name, value):
    return json.dumps(_encoded(name, value), sort_keys=True)


def _encoded(name, value):
    """A value as JSON keeps it without loss."""
    nested = partial(_encoded, name)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, (results.UpperEnd, results.LowerEnd)):
        return {_RESULT: [type(value).__name__, float(value)]}
    if isinstance(value, float):
        return float(value)  # also of a subclass
    if isinstance(value, list):
        return [nested(item) for item in value]
    if isinstance(value, tuple):
        return {_TUPLE: [nested(item) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: nested(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        array = np.ascontiguousarray(value)
        data = base64.b64encode(array.tobytes()).decode()
        return {_ARRAY: [array.dtype.str, list(value.shape), data]}
    if dataclasses.is_dataclass(value) and type(value) is getattr(results, type(value).__name__, None):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {_RESULT: [type(value).__name__, {k: float(v) if isinstance(v, float) else v for k, v in fields.items()}]}
    raise TypeError(
        f"{name} must consist of numbers, text, lists, dictionaries, arrays and answers of dplib.results where a "
        f"checkpoint is kept; got {value!r}"
    )


def _decoded(value):
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _TUPLE in value:
        return tuple(_decoded(item) for item in value[_TUPLE])
    if _ARRAY in value:
        kind, shape, data = value[_ARRAY]
        return np.frombuffer(base64.b64decode(data), np.dtype(kind)).reshape(shape).copy()
    if _RESULT in value:
        name, fields = value[_RESULT]
        kind = getattr(results, name)
        return kind(**fields) if isinstance(fields, dict) else kind(fields)
    return {key: _decoded(item) for key, item in value.items()}
