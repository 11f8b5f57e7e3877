"""Independent random streams, spread over processes or hosts.

A simulation is cut into blocks. Block i draws from its own generator, which depends on the
seed, on a key and on i alone, so that the results do not depend on how many workers there are, on
the order in which they finish, or on interruptions. Where joblib is installed and somebody has chosen
workers,

    with joblib.parallel_config(n_jobs=4):       # processes here, or backend="dask", "ray", ...
        mechanism.delta(...)

the blocks are spread over them; otherwise they run here, one after the other.
"""

from __future__ import annotations

import sys

import numpy as np

from . import _validate as check
from ._progress import Checkpoint, bar

LARGEST_SEED = 2**63 - 1
# Rounds of work between two looks at the progress bar and the checkpoint, with several workers.
_ROUNDS = 16


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
    # Nobody can have chosen anything before joblib was imported, and the import takes a while.
    joblib = sys.modules.get("joblib")
    return joblib.effective_n_jobs(None) if joblib else 1


def _results(task, seed, key, first, blocks):
    """Lists of results of consecutive blocks from `first` on, as they become known."""
    count = workers()
    if count == 1 or blocks - first == 1:
        for index in range(first, blocks):
            yield [task(generator(seed, key, index), index)]
        return
    import joblib

    # Chunks of many small blocks: handing out work costs about a millisecond.
    size = -(-(blocks - first) // (count * _ROUNDS))
    chunks = [range(start, min(start + size, blocks)) for start in range(first, blocks, size)]
    with joblib.Parallel() as pool:
        for start in range(0, len(chunks), count):
            calls = [
                joblib.delayed(_chunk)(task, seed, key, chunk) for chunk in chunks[start : start + count]
            ]
            yield [result for results in pool(calls) for result in results]


def _chunk(task, seed, key, indices):
    return [task(generator(seed, key, index), index) for index in indices]
