"""One function, many items, wherever joblib has been told to run them: here, in processes, on a cluster.

    with joblib.parallel_config(n_jobs=4):               # or backend="dask", "ray", ...
        for index, result in unordered(function, items): ...

Handing out work costs a millisecond here and ten on a cluster, so that quick items travel in batches, whose
size follows from the time that the finished ones took. A worker that dies takes only its batches with it, and
these are run again. On Dask the cluster's own client is used: joblib waits forever for a task whose workers keep dying.
It also waits forever for the rest of a result whose process was killed while it was writing it; `_guard` ends that.
Where the calling process is killed its workers follow it, as those of Dask do by themselves.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import warnings
from concurrent.futures import BrokenExecutor
from itertools import islice

_SECONDS = 0.5  # of work in a batch
_GROWTH = 16  # of a batch over the last one: the first items may be the quick ones
_DEATHS = 3  # in a row, without a result in between
_LOOK = 0.5  # seconds between two looks whether the parent is alive, or the workers are
_STUCK = 4  # looks at a dead worker that joblib has not noticed: it does so at once where it can


class Failed(Exception):
    """The function raised `error` for item `index`; results that came before were handed over."""

    def __init__(self, index, error, trace):
        super().__init__(index, error, trace)
        self.index, self.error, self.trace = index, error, trace


class Died(Exception):
    """Workers died again and again while the items `indices` were under way."""

    def __init__(self, indices):
        super().__init__(indices)
        self.indices = indices


def count():
    """How many workers joblib would use here: 1 without joblib, or where nobody has chosen any."""
    # Nobody can have chosen anything before joblib was imported, and the import takes a while.
    joblib = sys.modules.get("joblib")
    return joblib.effective_n_jobs(None) if joblib else 1


def unordered(function, items, batch_size=None):
    """(index, function(items[index])) for all items, as they are finished.

    function : picklable with cloudpickle where there are several workers. items : a sequence.
    batch_size : items that travel together; None: chosen from the time they take.
    Raises Failed or Died; close the generator to cancel what is under way.
    """
    workers = count()
    if workers == 1 or len(items) < 2:
        for index, item in enumerate(items):
            yield _outcome(index, _guarded(function, item))
        return
    batches = _Batches(len(items), workers, batch_size)
    deaths = 0
    while batches.missing:
        try:
            for indices, (outcomes, seconds) in _spread(function, items, batches):
                batches.finished(indices, outcomes, seconds)
                deaths = 0
                for index, outcome in zip(indices, outcomes):
                    yield _outcome(index, outcome)
        except BrokenExecutor as error:
            deaths += 1
            if deaths == _DEATHS:
                raise Died(batches.under_way()) from error
        batches.again()


class _Batches:
    """Iterator over lists of indices that are still to be done, in order; joblib asks for them from its threads."""

    def __init__(self, items, workers, size):
        self.missing, self.workers, self.size = set(range(items)), workers, size
        self.seconds = self.done = self.asked = 0
        self.lock = threading.Lock()
        self.again()

    def again(self):
        """Start with what has no result yet."""
        self.waiting, self.sent, self.last = sorted(self.missing), set(), 1

    def __iter__(self):
        return self

    def __next__(self):
        with self.lock:
            if not self.waiting:
                raise StopIteration
            size = self.size or self._good_size()
            batch, self.waiting = self.waiting[:size], self.waiting[size:]
            self.last = len(batch)
            self.sent.update(batch)
            return batch

    def _good_size(self):
        if self.done:
            wanted = _SECONDS * self.done / max(self.seconds, 1e-9)
        else:
            # Many have been asked for before anybody could say how long the first took: they are quick.
            self.asked += 1
            wanted = 1 if self.asked <= 4 * self.workers else 2 * self.last
        fair = len(self.waiting) / (2 * self.workers)  # everybody has something to do until the end
        return max(1, int(min(wanted, fair, _GROWTH * self.last)))

    def finished(self, indices, outcomes, seconds):
        with self.lock:
            self.missing.difference_update(indices[: len(outcomes)])
            self.done += len(outcomes)
            self.seconds += seconds

    def under_way(self):
        return sorted(self.sent & self.missing)


def _spread(function, items, batches):
    """(indices, (outcomes, seconds)) of batches, as they are finished."""
    import joblib
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    if hasattr(getattr(backend, "client", None), "get_executor"):
        yield from _on_dask(backend.client, function, items, batches)
        return
    run, here = joblib.delayed(_labelled), os.getpid()
    calls = (run(here, batch, function, [items[i] for i in batch]) for batch in batches)
    if getattr(backend, "supports_return_generator", False):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
        results, over = parallel(calls), threading.Event()
        threading.Thread(target=_guard, args=(parallel._backend, over), daemon=True).start()
        try:
            yield from results
        finally:
            over.set()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that what was under way is lost: we know
                results.close()
        return
    while part := list(islice(calls, 2 * batches.workers)):
        yield from joblib.Parallel(batch_size=1)(part)


def _guard(backend, over):
    """Break a pool of processes that waits for the rest of a result from a worker that is dead.

    The pipe ends only when nobody can write to it any more, neither another worker nor this process.
    """
    from multiprocessing.connection import wait

    looks = 0
    while not over.wait(_LOOK):
        pool = getattr(backend, "_workers", None)
        if not hasattr(pool, "_result_queue") or pool._flags.broken is not None:
            return
        workers = list(pool._processes.values())
        looks = looks + 1 if wait([worker.sentinel for worker in workers], timeout=0) else 0
        if looks == _STUCK:
            for worker in workers:
                worker.terminate()
            pool._result_queue._writer.close()
            return


def _on_dask(client, function, items, batches):
    from distributed import as_completed

    sent, completed = {}, as_completed()

    def send():
        if (batch := next(batches, None)) is not None:
            # pure=False: the same call may stand in the list twice.
            future = client.submit(_batch, function, [items[i] for i in batch], pure=False)
            sent[future] = batch
            completed.add(future)

    try:
        for _ in range(2 * batches.workers):
            send()
        for future in completed:
            if future.status != "finished":
                # Four workers died while they had it in hand; what killed them may be another one.
                raise Died(batches.under_way()) from future.exception()
            result = future.result()
            send()
            yield sent.pop(future), result
    finally:
        client.cancel(list(sent))


# ------------------------------------------------------------------------- in the worker


def _labelled(caller, indices, function, items):
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid == caller:
        _follow(caller)
    return indices, _batch(function, items)


@functools.cache
def _follow(parent):
    """End this process soon after its parent, which may have died before: nobody waits for results any more."""

    def watch():
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _batch(function, items):
    """(outcomes up to the first failure, seconds); whatever the function computes runs in this one process."""
    import joblib

    start, outcomes = time.perf_counter(), []
    with joblib.parallel_config(backend="sequential"):
        for item in items:
            outcomes.append(_guarded(function, item))
            if outcomes[-1][0] is not None:
                break
    return outcomes, time.perf_counter() - start


def _guarded(function, item):
    """(None, result), or (error, its trace)."""
    try:
        return None, function(item)
    except Exception as error:
        import pickle
        import traceback

        trace = traceback.format_exc()
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # some exceptions cannot travel
            error = RuntimeError(f"{type(error).__name__}: {error}")
        return error, trace


def _outcome(index, outcome):
    error, value = outcome
    if error is not None:
        raise Failed(index, error, value)
    return index, value
