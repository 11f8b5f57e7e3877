"""Independent random streams, spread over processes or hosts.

A simulation is cut into blocks. Block i draws from its own generator, which depends on the
seed, on a key and on i alone, so that the results do not depend on how many workers there are, on
the order in which they finish. Where joblib is installed and somebody has chosen workers,

    with joblib.parallel_config(n_jobs=4):       # processes here, or backend="dask", "ray", ...
        mechanism.delta(...)

the blocks are spread over them; otherwise they run here, one after the other.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np

from . import validate as check
from .progress import bar

LARGEST_SEED = 2**63 - 1


def generator(seed, key, index):
    """The generator of block `index` of the stream (seed, key).

    seed : whole number at least 0. key : tuple of whole numbers at least 0, which tells apart the streams
    of one seed. Philox is counter-based: streams with different keys are independent.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(*key, index))
    return np.random.Generator(np.random.Philox(sequence))


def run(task, blocks, *, seed, key=(), description=""):
    """[task(generator of block i, i) for i = 0 .. blocks - 1], wherever they run.

    Parameters
    ----------
    task : callable (rng, index) -> array. With several workers it must be picklable: a function of a module,
        or functools.partial of one.
    blocks : whole number at least 1.
    seed, key : as for `generator`; the key is a tuple of whole numbers.
    description : words before the progress bar.

    Returns a list of arrays in the order of the blocks. Raises what `task` raises, and what joblib raises where a
    worker dies.
    """
    blocks = check.whole("blocks", blocks, at_least=1)
    seed = check.whole("seed", seed, at_least=0, at_most=LARGEST_SEED)
    block, indices = partial(_block, task, seed, key), bar(range(blocks), description)
    # Nobody can have chosen workers before joblib was imported, and the import takes a while.
    joblib = sys.modules.get("joblib")
    if joblib is None or joblib.effective_n_jobs(None) == 1:
        return [block(index) for index in indices]
    return joblib.Parallel()(joblib.delayed(block)(index) for index in indices)


def _block(task, seed, key, index):
    return task(generator(seed, key, index), index)
