"""Differentially private training in JAX: clipped gradients, correlated noise, a public divisor [M-0].

Round t of a run adds to the parameters what the optimiser makes of

    (sum over the batch of clipped gradients + clip_norm * (C^-1 z)_t) / divisor,

z with independent entries of standard deviation `noise_multiplier`. With C = I this is DP-SGD, else DP-FTRL.
The run's guarantee is that of the mechanism with the same encoder, noise multiplier and sampling scheme
(`PoissonDPSGD`, `MatrixMechanism`, `BallsInBins`, ...): nothing here checks that they belong together.

    batches = batching.balls_in_bins_stream(records, 100, 20)
    config = training.Config(noise_multiplier=sigma, divisor=500.0, encoder=encoder, learning_rate=0.1, momentum=0.9)
    result = training.train(loss, params, data, batches, config)
    print(result.guarantee)  # what the divisor, batches that are cut, or no noise give away

The divisor is part of the guarantee. A constant of the configuration is post-processing. A divisor that is
computed from the dataset is not: the released noise is sigma * clip_norm / divisor, so that its scale tells how
many records there are. Under add/remove that is a leak without a bound in the number of parameters (chapter 19);
under zero-out both datasets have as many records, and nothing leaks.

A seed makes a run reproducible, and makes its noise known to whoever knows the seed. For a release leave
every seed out. Two more things are not covered: the generators (NumPy's Philox, JAX's Threefry) are not of
cryptographic grade, and floats only approximate the Gaussian that the accounting assumes.

JAX and Optax are imported at first use, and no global setting of theirs is changed.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._base import validate as check
from .._base.checkpoints import Checkpoint, bar
from .._base.lazy_jax import load
from ..batching.streams import OVERFLOW, Batches, Padded
from ..matrices import noise
from ..matrices.encoders import Encoder
from . import correlated_noise_jax, run_state
from .clipping import clipped_sum

if TYPE_CHECKING:
    import optax

__all__ = [
    "Config",
    "Trained",
    "clipped_sum",
    "correlated_noise",
    "memory_rows",
    "train",
]


class SeededNoiseWarning(UserWarning):
    """Noise from a seed can be repeated by whoever knows the seed: good for an experiment, no privacy for a release."""


ADJACENCIES = ("add-remove", "zero-out")
FROM_THE_DATASET = "expected-size"
_MOST_NOISE = 1e15  # times the largest clip norm it is far from the largest float32
_LEAST, _MOST = 1e-30, 1e30  # of scales, divisors and learning rates: float32 holds them


@dataclass(frozen=True, kw_only=True)
class Config:
    """How to train.

    noise_multiplier : sigma, from 0 to 1e15, relative to clip_norm; 0 trains without noise and without any guarantee.
    clip_norm : largest Euclidean norm of one example's gradient, from 1e-8 to 1e15: in float32 squares of far smaller numbers vanish.
    encoder : square encoder of `dplib.matrices` with at least as many columns as there are rounds; None: independent noise.
    learning_rate : number from 1e-30 to 1e30, array with one for each round, or function of the round (an Optax schedule).
    momentum : in [0, 1). optimizer : an `optax.GradientTransformation` used instead of both, or None.
    divisor : what noisy sums are divided by, required: a number from 1e-30 to 1e30 that is fixed before the data are seen, such as
        the batch size in mind; or "expected-size", the mean size of the batches, which is computed from the number
        of records: with adjacency "zero-out" only. The size that was drawn is secret and cannot be asked for.
    adjacency : "add-remove" (neighbours have one record more or less) or "zero-out" (the record's gradients are 0).
    microbatch : per-example gradients held at a time, at least 1; None: what fits into a cache, or 1 GiB on a device.
    """

    noise_multiplier: float
    divisor: float | str
    adjacency: str = "add-remove"
    clip_norm: float = 1.0
    encoder: Encoder | None = None
    learning_rate: object = 0.1
    momentum: float = 0.0
    optimizer: object = None
    microbatch: int | None = None

    def __post_init__(self):
        check.real("noise_multiplier", self.noise_multiplier, at_least=0, at_most=_MOST_NOISE)
        clip_norm = check.real("clip_norm", self.clip_norm, at_least=1e-8, at_most=1e15)
        if 0 < self.noise_multiplier * clip_norm < _LEAST:
            raise ValueError(
                f"noise_multiplier must be 0, or at least {_LEAST:g} / clip_norm: less is no noise in float32; got {self.noise_multiplier!r}"
            )
        if self.encoder is not None:
            correlated_noise_jax.plan(self.encoder)
        if not callable(self.learning_rate):
            rates, _ = check.grid("learning_rate", self.learning_rate)
            if rates.ndim > 1 or rates.size == 0 or np.any(rates < _LEAST) or np.any(rates > _MOST):
                raise ValueError(
                    f"learning_rate must be from {_LEAST:g} to {_MOST:g}, or a flat list of such; got {self.learning_rate!r}"
                )
        momentum = check.real("momentum", self.momentum, at_least=0, below=1)
        if self.optimizer is not None:
            if not callable(getattr(self.optimizer, "update", None)):
                raise TypeError(f"optimizer must be an optax.GradientTransformation; got {self.optimizer!r}")
            if momentum:
                raise ValueError(f"momentum must be 0 beside an optimizer; got {self.momentum!r}")
        check.choice("adjacency", self.adjacency, ADJACENCIES)
        if not isinstance(self.divisor, str):
            check.real("divisor", self.divisor, at_least=_LEAST, at_most=_MOST)
        elif self.divisor != FROM_THE_DATASET:
            raise TypeError(
                f"divisor must be a finite real number at least {_LEAST:g} and at most {_MOST:g}, or "
                f"{FROM_THE_DATASET!r}; got {self.divisor!r}"
            )
        elif self.adjacency == "add-remove":
            raise ValueError(
                "divisor must be a number fixed in the configuration where adjacency is 'add-remove': the expected size "
                "of a batch is computed from the number of records, which differs between neighbours, and the scale of "
                f"the noise shows it; got {self.divisor!r}, which adjacency='zero-out' allows"
            )
        if self.microbatch is not None:
            check.whole("microbatch", self.microbatch, at_least=1)


@dataclass(frozen=True, eq=False)
class Trained:
    """The end of a run.

    params : as given to `train`, trained. rounds : how many were run.
    history : shape (evaluations, 2), the number of finished rounds and what `evaluate` returned then.
    adjacency : the relation between neighbours that was asked for, which the divisor allows. The batches and the
        account must be for it as well. divisor : what sums were divided by.
    guarantee : what the divisor, batches that are cut, or no noise give away, in words.
    """

    params: object
    rounds: int
    history: np.ndarray
    adjacency: str
    divisor: float
    guarantee: str

    def __repr__(self):
        return f"Trained({self.rounds} rounds, {len(self.history)} evaluations; {self.adjacency}; {self.guarantee})"


def train(
    loss: Callable, params: object, data: object, batches: Batches | Padded, config: Config, *,
    seed: int | None = None, evaluate: Callable | None = None, evaluate_every: int | None = None,
    checkpoint: str | os.PathLike | None = None, checkpoint_every: int | None = None,
    rounds_per_call: int = 16, watch: Callable | None = None,
) -> Trained:
    """Train with clipped gradients and (correlated) noise, over all batches of a stream.

    Parameters
    ----------
    loss : loss(params, example) -> a number, in jax.numpy. params : pytree of arrays of float32 or float64.
    data : pytree of arrays with the same leading length, one entry a record; example is the pytree of one entry.
        Arrays on disk (numpy.memmap) are read batch by batch.
    batches : a stream of `dplib.batching`, or `stream.padded(size)`. A stream is padded to a size that is
        exceeded with probability 1e-10 at most; a smaller size cuts batches, which is not free [E-20].
    config : `Config`.
    seed : of the noise, a whole number at least 0, with a `SeededNoiseWarning`; None draws 128 bits from the
        operating system.
    evaluate : function of the parameters -> number, called every `evaluate_every` rounds and at the end. Arrays that
        it keeps must be copied: the run reuses their memory.
    checkpoint : path of a file, or None. A run that was stopped at any point goes on from the last save and
        ends with the same parameters bit for bit on the same machine, and removes the file when it is done. The file
        holds the noise's seed where none was given: keep it as secret as the data.
    checkpoint_every : rounds between saves; None: half a second, or longer where saving takes long.
    rounds_per_call : rounds compiled into one program. 1 where a round is long (large networks).
    watch : function of the number of finished rounds, called after each program.

    Returns `Trained`. Raises ValueError or TypeError on bad input.
    Memory: a microbatch of gradients, `memory_rows(encoder)` copies of the parameters for the noise, one for momentum.
    """
    jax = load()
    params, leaves = run_state.floats(params)
    data, records = run_state.records(data)
    padded = run_state.slots(batches, records)
    rounds = len(padded)
    if not isinstance(config, Config):
        raise TypeError(f"config must be a dplib.training.Config; got {config!r}")
    for name, function in (("loss", loss), ("evaluate", evaluate), ("watch", watch)):
        if not callable(function) and (name == "loss" or function is not None):
            raise TypeError(f"{name} must be a function; got {function!r}")
    kind, arrays = _plan(config, rounds)
    rates = _rates(config, rounds)
    divisor, guarantee = _divisor(config, padded.batches), _guarantee(config, padded)
    evaluate_every = (
        rounds if evaluate_every is None else check.whole("evaluate_every", evaluate_every, at_least=1)
    )
    per_call = check.whole("rounds_per_call", rounds_per_call, at_least=1, at_most=4096)
    if checkpoint_every is not None:
        check.whole("checkpoint_every", checkpoint_every, at_least=1)
    fresh = seed is None
    seed = _seed(seed)
    kept = Checkpoint(
        checkpoint, noise_seed=None if fresh else str(seed), kind=repr(kind), clip_norm=config.clip_norm,
        noise_multiplier=config.noise_multiplier, momentum=config.momentum, rates=rates, divisor=divisor,
        adjacency=config.adjacency,
        microbatch=config.microbatch, optimizer=config.optimizer is not None, evaluate_every=evaluate_every,
        rounds_per_call=per_call, slots=padded.size, encoder=[np.asarray(a) for a in arrays.values()],
        parameters=run_state.digest(leaves), data=run_state.digest(jax.tree.leaves(data), most=2**26),
        **run_state.plain(padded.batches),
    )  # fmt: skip
    saved = kept.load()
    if saved:
        seed = int(str(saved["seed"])) if fresh else seed
        if padded.batches.fresh:
            padded = Padded(replace(padded.batches, seed=int(str(saved["batch_seed"]))), padded.size)

    many, one, begin = _compiled(loss, config.optimizer, kind, config.microbatch)
    state = begin(params, np.float32(config.momentum))
    done, history = 0, []
    if saved:
        structure = jax.tree.structure(state)
        state = jax.tree.unflatten(structure, [saved[f"leaf_{i}"] for i in range(structure.num_leaves)])
        done, history = int(saved["done"]), [tuple(row) for row in saved["history"]]
    numbers = {
        "clip_norm": np.float32(config.clip_norm),
        "scale": config.noise_multiplier * config.clip_norm,
        "divisor": np.float32(divisor),
        "momentum": np.float32(config.momentum),
        "key": correlated_noise_jax.key_of(seed),
        "arrays": {name: np.asarray(value, np.float32) for name, value in arrays.items()},
    }
    last_save = done
    with bar(description="training", total=rounds) as progress:
        progress.update(done)
        while done < rounds:
            stop = min(rounds, done + evaluate_every - done % evaluate_every)
            count = per_call if done + per_call <= stop else 1
            indices, mask = padded.block(done, done + count)
            numbered = np.arange(done, done + count, dtype=np.int32)
            inputs = (numbered, rates[done : done + count], run_state.taken(data, indices), mask)
            state = (many if count > 1 else one)(state, numbers, inputs)
            done += count
            progress.update(count)
            if evaluate is not None and (done == rounds or done % evaluate_every == 0):
                history.append((done, float(evaluate(state[0]))))
            due = kept.due if checkpoint_every is None else done - last_save >= checkpoint_every
            if kept.path is not None and due and done < rounds:
                run_state.save(kept, state, done, history, seed, padded.batches.seed)
                last_save = done
            if watch is not None:
                watch(done)
    kept.remove()
    history = np.array(history, float).reshape(-1, 2)
    return Trained(state[0], rounds, history, config.adjacency, divisor, guarantee)


def correlated_noise(
    encoder: Encoder, standard_deviation: float, *, seed: int | None = None
) -> optax.GradientTransformation:
    """The noise as an `optax.GradientTransformation`: adds (C^-1 z)_t to the sums of round t.

    Parameters
    ----------
    encoder : square encoder of `dplib.matrices`. standard_deviation : of every entry of z, sigma * clip_norm.
    seed : whole number at least 0, with a `SeededNoiseWarning`; None for fresh entropy.

    To be applied to *sums* of clipped gradients, before any optimiser; it must not be used for more rounds than the
    encoder has columns. What divides the noisy sums afterwards must be a constant of the configuration: a divisor that
    is computed from the number of records holds for zero-out only, and the drawn size for nothing. The covariance of the noise over rounds is standard_deviation^2 C^-1 C^-T for each parameter,
    independent between parameters. Memory: `memory_rows` copies of the parameters. State: (round, memory).

    >>> import jax.numpy as jnp
    >>> from dplib import matrices, training
    >>> noise = training.correlated_noise(matrices.optimal_counting(8), standard_deviation=2.0, seed=0)
    >>> state = noise.init(jnp.zeros(3))
    >>> first, state = noise.update(jnp.zeros(3), state)
    >>> first.shape
    (3,)
    """
    jax = load()
    import jax.numpy as jnp
    import optax

    kind, arrays = correlated_noise_jax.plan(encoder)
    deviation = check.real("standard_deviation", standard_deviation, at_least=0, at_most=_MOST)
    if 0 < deviation < _LEAST:
        raise ValueError(f"standard_deviation must be 0, or at least {_LEAST:g}: less is no noise in float32; got {standard_deviation!r}")
    seed = _seed(seed)
    key = correlated_noise_jax.key_of(seed)

    def init(params):
        return jnp.zeros((), jnp.int32), correlated_noise_jax.start(kind, params)

    def update(sums, state, params=None):
        t, memory = state
        w, memory = correlated_noise_jax.step(kind, arrays, memory, t, key, deviation, sums)
        return jax.tree.map(jnp.add, sums, w), (t + 1, memory)

    return optax.GradientTransformation(init, update)


def memory_rows(encoder: Encoder) -> int:
    """Copies of the parameters that the noise of an encoder keeps: buffers, bands - 1, or all rounds.

    encoder : square encoder of `dplib.matrices`.
    """
    return correlated_noise_jax.plan(encoder)[0].rows


# ------------------------------------------------------------------------- the compiled round


@functools.lru_cache(maxsize=16)
def _compiled(loss, optimizer, kind, microbatch):
    """(many rounds, one round, first state): compiled once for all runs that differ in numbers only."""
    import jax
    import jax.numpy as jnp
    import optax

    def transform(momentum, rate):
        return optax.chain(optax.trace(momentum), optax.scale(-rate)) if optimizer is None else optimizer

    def begin(params, momentum):
        params = jax.tree.map(
            lambda p: jnp.array(p, copy=True), params
        )  # the state is donated: never the caller's
        return params, transform(momentum, 1.0).init(params), correlated_noise_jax.start(kind, params)

    def one(state, numbers, inputs):
        params, optimizer_state, memory = state
        t, rate, examples, mask = inputs
        sums = clipped_sum(loss, params, examples, mask, numbers["clip_norm"], microbatch)
        w, memory = correlated_noise_jax.step(kind, numbers["arrays"], memory, t, numbers["key"], numbers["scale"], sums)
        mean = jax.tree.map(lambda s, x: (s + x) / numbers["divisor"].astype(s.dtype), sums, w)
        move, optimizer_state = transform(numbers["momentum"], rate).update(mean, optimizer_state, params)
        params = jax.tree.map(lambda p, m: p + m.astype(p.dtype), params, move)
        return params, optimizer_state, memory

    def many(state, numbers, inputs):
        return jax.lax.scan(lambda s, x: (one(s, numbers, x), None), state, inputs)[0]

    def first(state, numbers, inputs):
        return one(state, numbers, jax.tree.map(lambda x: x[0], inputs))

    return jax.jit(many, donate_argnums=0), jax.jit(first, donate_argnums=0), begin


# ------------------------------------------------------------------------------- arguments


def _seed(seed):
    """The seed of the noise: as given, with a warning, or 128 bits of fresh entropy."""
    if seed is None:
        return np.random.SeedSequence().entropy
    seed = check.whole("seed", seed, at_least=0, at_most=2**128 - 1)
    warnings.warn(
        "the noise can be repeated by whoever knows the seed: a real release needs fresh entropy, seed=None",
        SeededNoiseWarning,
        stacklevel=3,
    )
    return seed


def _divisor(config, batches):
    return float(batches.expected_size if config.divisor == FROM_THE_DATASET else config.divisor)


def _guarantee(config, padded):
    """What the divisor, no noise, or batches that are cut give away."""
    told = "divisor is a constant of the configuration: it gives nothing away"
    if config.divisor == FROM_THE_DATASET:
        told = "divisor comes from the size of the dataset: zero-out only"
    if config.noise_multiplier == 0:
        told += "; without noise there is no guarantee"
    if padded.overflow_probability > OVERFLOW:
        told += f"; a batch is cut with a probability up to {padded.overflow_probability:.2g}, which the scheme's account leaves out"
    return told


def _plan(config, rounds):
    if config.encoder is None:
        return noise.Kind("identity", 0), {"first": 1.0}
    return correlated_noise_jax.plan(config.encoder, rounds)


def _rates(config, rounds):
    if callable(config.learning_rate):
        values = np.array([float(config.learning_rate(t)) for t in range(rounds)], np.float32)
        if not np.all(np.isfinite(values)) or np.any(values < 0):
            raise ValueError("learning_rate must be finite and at least 0 in every round")
        return values
    values = np.asarray(config.learning_rate, np.float32)
    if values.ndim and len(values) < rounds:
        raise ValueError(f"learning_rate must have one entry for each of {rounds} rounds; got {len(values)}")
    return np.array(values[:rounds]) if values.ndim else np.full(rounds, values)
