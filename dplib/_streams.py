"""Independent random streams, spread over processes or hosts.

A simulation is cut into blocks. Block i draws from its own generator, which depends on the
seed, on a key and on i alone, so that the results do not depend on how many workers there are, on
the order in which they finish, or on interruptions. Where joblib is installed and somebody has chosen
workers,

    with joblib.parallel_config(n_jobs=4):       # processes here, or backend="dask", "ray", ...
        mechanism.delta(...)

the blocks are spread over them, those of a worker that dies once more (`_workers`); otherwise they run here,
one after the other.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from . import _validate as check
from . import _workers
from ._progress import Checkpoint, bar

LARGEST_SEED = 2**63 - 1


def generator(seed, key, index):
    """The generator of block `index` of the stream (seed, key).

    seed : whole number at least 0. key : tuple of whole numbers at least 0, which tells apart the streams
    of one seed. Philox is counter-based: streams with different keys are independent.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(*key, index))
    return np.random.Generator(np.random.Philox(sequence))


def run(task, blocks, *, seed, key=(), checkpoint=None, fingerprint=None, description=""):
    """[task(generator of block i, i) for i = 0 .. blocks - 1], wherever they run.

    Parameters
    ----------
    task : callable (rng, index) -> array, of the same shape for every block. With several workers it
        must be picklable: a function of a module, or functools.partial of one.
    blocks : whole number at least 1.
    seed, key : as for `generator`; the key is a tuple of whole numbers.
    checkpoint : path of the file that keeps finished blocks, or None. A run with the same fingerprint
        goes on from there, also one with more blocks.
    fingerprint : dictionary of everything else that the results depend on, by name (`_progress.Checkpoint`).
    description : words before the progress bar.

    Returns a list of arrays in the order of the blocks. Raises what `task` raises; finished blocks are saved first.
    """
    blocks = check.whole("blocks", blocks, at_least=1)
    seed = check.whole("seed", seed, at_least=0, at_most=LARGEST_SEED)
    kept = Checkpoint(checkpoint, seed=seed, stream=list(key), **(fingerprint or {}))
    done = list(kept.load().get("blocks", ()))[:blocks]
    before = len(done)
    if before == blocks:
        return done
    with bar(blocks, description) as progress:
        progress.update(before)
        try:
            for results in _results(task, seed, key, before, blocks):
                done += results
                progress.update(len(results))
                if kept.due:
                    kept.save(blocks=np.array(done))
        finally:
            if kept.path and len(done) > before:
                kept.save(blocks=np.array(done))
    return done


def workers():
    """How many workers joblib would use here: 1 without joblib, or where nobody has chosen any."""
    return _workers.count()


def _results(task, seed, key, first, blocks):
    """Lists of results of consecutive blocks from `first` on, as they become known."""
    waiting, ready = {}, first
    finished = _workers.unordered(partial(_block, task, seed, key), range(first, blocks))
    try:
        for place, result in finished:
            waiting[first + place] = result
            start = ready
            while ready in waiting:
                ready += 1
            yield [waiting.pop(index) for index in range(start, ready)]
    except _workers.Failed as failure:
        raise failure.error from None
    except _workers.Died as failure:
        raise RuntimeError("workers died again and again with the same blocks under way") from failure
    finally:
        finished.close()


def _block(task, seed, key, index):
    return task(generator(seed, key, index), index)
