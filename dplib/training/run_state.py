"""What a training run is given, checked, and what it keeps to go on from: helpers of `training`."""

from __future__ import annotations

import hashlib

import numpy as np

from ..batching.streams import Batches, Padded

# ------------------------------------------------------------------------------- arguments


def floats(params):
    import jax

    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(params)]
    if not leaves:
        raise ValueError("params must hold at least one array")
    for leaf in leaves:
        if leaf.dtype not in (np.float32, np.float64):  # in fewer bits small gradients have a norm of 0, and would not be clipped
            raise TypeError(f"params must hold arrays of float32 or float64; got one of {leaf.dtype}")
        if not np.all(np.isfinite(leaf)):
            raise ValueError("params must hold finite numbers")
    return params, leaves


def records(data):
    import jax

    data = jax.tree.map(np.asanyarray, data)
    lengths = {len(leaf) if leaf.ndim else 0 for leaf in jax.tree.leaves(data)}
    if len(lengths) != 1 or not min(lengths):
        raise ValueError(f"data must hold arrays of one leading length, at least 1; got {sorted(lengths)}")
    return data, lengths.pop()


def taken(data, indices):
    import jax

    return jax.tree.map(lambda leaf: np.take(leaf, indices, axis=0), data)


def slots(batches, records):
    padded = batches.padded() if isinstance(batches, Batches) else batches
    if not isinstance(padded, Padded):
        raise TypeError(f"batches must be a stream of dplib.batching, or padded; got {batches!r}")
    if padded.batches.records != records:
        raise ValueError(f"batches must be of the {records} records of data; got {padded.batches.records}")
    return padded


# ------------------------------------------------------------------------------ checkpoints


def digest(leaves, most=None):
    """A hash of arrays; of the first entries only where they take more than `most` bytes."""
    digest = hashlib.sha256()
    for leaf in leaves:
        digest.update(f"{leaf.shape}{leaf.dtype.str}".encode())
        rows = (
            leaf if most is None or leaf.nbytes <= most else leaf[: max(1, most * len(leaf) // leaf.nbytes)]
        )
        digest.update(np.ascontiguousarray(rows).tobytes())
    return digest.hexdigest()[:32]


def plain(batches):
    names = batches.fingerprint()
    names["seed"] = None if batches.fresh else str(names["seed"])
    return {f"batches_{name}": value for name, value in names.items()}


def save(kept, state, done, history, seed, batch_seed):
    import jax

    leaves = {f"leaf_{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
    kept.save(
        done=np.array(done), history=np.array(history, float).reshape(-1, 2),
        seed=np.array(str(seed)), batch_seed=np.array(str(batch_seed)), **leaves,
    )  # fmt: skip
