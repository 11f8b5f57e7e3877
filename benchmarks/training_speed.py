"""Claims: noise of four buffers adds at most 10% to the time of a round and keeps 4 copies of the parameters;
a round is no slower than that of the plainest correct DP-SGD in JAX, in the same run.

The plain program is written out below: vmap of the gradient, clip, sum, one normal a parameter, divide, step, in
one compiled function. It gets the same batches, drawn and gathered in the same way. Runs take turns; the first
programs of each are not counted (they compile). Seconds are CPU seconds of one thread for a round: medians in
the table, ratios between the fastest turns.
The last table draws batches from 10^8 records.
"""

import gc
import os
import sys
import time
import warnings

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

from _common import Report, in_fresh_process, median, peak_memory, resident_memory  # noqa: E402

# isort: split

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from dplib import batching, matrices, training  # noqa: E402
from dplib.training import correlated_noise_jax  # noqa: E402

warnings.simplefilter("ignore", training.SeededNoiseWarning)

TURNS = int(os.environ.get("DPLIB_BENCH_TURNS", "7"))
PER_CALL = 8
SCALE, DECAY = [0.2, 0.15, 0.1, 0.05], [0.99, 0.9, 0.6, 0.2]
# name: (inputs, hidden, batch size, rounds of one turn)
NETWORKS = {
    "digits, 4,810 parameters": (64, 64, 90, 160),
    "784-128-10, 101,770 parameters": (784, 128, 128, 16),
    "3072-128-10, 394,634 parameters": (3072, 128, 128, 8),
}


def network(inputs, hidden, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "w1": (rng.standard_normal((inputs, hidden)) / np.sqrt(inputs)).astype(np.float32),
        "b1": np.zeros(hidden, np.float32),
        "w2": (rng.standard_normal((hidden, 10)) / np.sqrt(hidden)).astype(np.float32),
        "b2": np.zeros(10, np.float32),
    }


def loss(params, example):
    x, label = example
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return -jax.nn.log_softmax(hidden @ params["w2"] + params["b2"])[label]


@jax.jit
def plain_round(params, key, x, y, mask, clip, sigma, size, rate):
    """DP-SGD as one would write it down."""
    gradients = jax.vmap(jax.grad(loss), (None, 0))(params, (x, y))
    squares = sum(jnp.sum(g.reshape(len(g), -1) ** 2, axis=1) for g in jax.tree.leaves(gradients))
    factors = mask * jnp.minimum(1, clip / jnp.maximum(jnp.sqrt(squares), 1e-30))
    sums = jax.tree.map(lambda g: jnp.tensordot(factors, g, 1), gradients)
    leaves, structure = jax.tree.flatten(sums)
    keys = jax.random.split(key, len(leaves))
    noisy = [s + sigma * clip * jax.random.normal(k, s.shape) for s, k in zip(leaves, keys)]
    mean = jax.tree.unflatten(structure, [n / size for n in noisy])
    return jax.tree.map(lambda p, m: p - rate * m, params, mean)


class Plain:
    """A loop around `plain_round`; seconds a round after the first call."""

    def __init__(self, params, data, padded):
        self.params, self.data, self.padded = params, data, padded

    def seconds(self):
        params, key = self.params, jax.random.key(1)
        size = self.padded.batches.expected_size
        for t, (indices, mask) in enumerate(self.padded):
            x, y = (leaf[indices] for leaf in self.data)
            params = plain_round(params, jax.random.fold_in(key, t), x, y, mask, 1.0, 1.0, size, 0.1)
            jax.block_until_ready(params)
            if t == PER_CALL - 1:
                start = time.process_time()
        return (time.process_time() - start) / (len(self.padded) - PER_CALL)


class Ours:
    """`training.train` with an encoder; seconds a round after the first program."""

    def __init__(self, params, data, padded, encoder, microbatch=None, per_call=PER_CALL):
        self.arguments = params, data, padded
        self.per_call = per_call
        self.config = training.Config(
            noise_multiplier=1.0, divisor=padded.batches.expected_size, encoder=encoder, learning_rate=0.1,
            microbatch=microbatch,
        )  # fmt: skip

    def seconds(self):
        marks = {}
        params, data, padded = self.arguments
        end = training.train(
            loss, params, data, padded, self.config, seed=1, rounds_per_call=self.per_call,
            watch=lambda done: marks.setdefault(done, time.process_time()),
        )  # fmt: skip
        jax.block_until_ready(end.params)
        return (time.process_time() - marks[PER_CALL]) / (len(padded) - PER_CALL)


def speeds(report):
    rows, overheads, ratios = [], [], []
    for name, (inputs, hidden, size, rounds) in NETWORKS.items():
        rng = np.random.default_rng(1)
        data = rng.standard_normal((20 * size, inputs)).astype(np.float32), rng.integers(0, 10, 20 * size)
        params = network(inputs, hidden)
        rounds += PER_CALL
        padded = batching.poisson_stream(20 * size, rounds, 1 / 20, seed=1).padded()
        buffers = matrices.buffered_linear_toeplitz(rounds, SCALE, DECAY)
        runs = {
            "plain": Plain(params, data, padded),
            "independent": Ours(params, data, padded, None),
            "four buffers": Ours(params, data, padded, buffers),
            "in one piece": Ours(params, data, padded, None, 10**6),
        }
        for run in runs.values():
            run.seconds()  # compiles
        seconds = {label: [] for label in runs}
        for turn in range(TURNS):
            order = list(runs)[turn % 2 :] + list(runs)[: turn % 2]
            for label in order:
                gc.collect()
                seconds[label].append(runs[label].seconds())
        middle = {label: median(values) for label, values in seconds.items()}
        # The fastest turns: other work on the machine only adds.
        fastest = {label: min(values) for label, values in seconds.items()}
        overhead = fastest["four buffers"] / fastest["independent"] - 1
        ratio = fastest["independent"] / fastest["plain"]
        overheads.append(overhead)
        ratios.append(ratio)
        rows.append(
            {"network": name, "batch": size, **{f"{label} ms": 1e3 * s for label, s in middle.items()},
             "buffers cost %": 100 * overhead, "ours over plain": ratio}
        )  # fmt: skip
    report.table("CPU time of a round", rows)
    report.say("")
    report.claim(
        "what four buffers add to a round, worst network", 100 * max(overheads), at_most=10, unit="%"
    )
    report.claim("a round over that of the plain program, worst network", max(ratios), at_most=1)


def held(buffers):
    """Copies of the parameters that the noise keeps, from the sizes of its arrays."""
    rounds = 64
    encoder = matrices.buffered_linear_toeplitz(rounds, SCALE[:buffers], DECAY[:buffers])
    params = network(784, 256)
    state = correlated_noise_jax.start(correlated_noise_jax.plan(encoder)[0], params)
    count = lambda tree: sum(leaf.size for leaf in jax.tree.leaves(tree))
    return count(state) / count(params)


def large_streams(kind):
    """Seconds for the first round and for a later one, and memory, of a stream over 10^8 records."""
    n = 10**8
    batching.poisson_stream(1000, 10, 0.1, seed=1)[0]
    before = resident_memory()
    stream = {
        "Poisson": lambda: batching.poisson_stream(n, 1000, 1e-3, seed=1),
        "fixed size": lambda: batching.fixed_batch_stream(n, 1000, 10**5, seed=1),
        "cyclic Poisson": lambda: batching.cyclic_poisson_stream(n, 1000, 100, 1e-3, seed=1),
        "round robin": lambda: batching.round_robin_stream(n, 1000, 10),
        "shuffling": lambda: batching.shuffling_stream(n, 1000, 10, seed=1),
        "balls in bins": lambda: batching.balls_in_bins_stream(n, 1000, 10, seed=1),
    }[kind]()
    seconds = []
    for t in (500, 501):
        start = time.process_time()
        size = len(stream[t])
        seconds.append(time.process_time() - start)
    return {
        "first round CPU s": seconds[0],
        "next round CPU s": seconds[1],
        "batch": size,
        "MB": peak_memory() - before,
    }


def main():
    report = Report(
        "training_speed", "Training: time of a round, memory of the noise, streams of batches", "jax", "optax"
    )
    speeds(report)
    report.claim("copies of the parameters kept for four buffers", held(4), at_most=4)
    rows = []
    for kind in ("Poisson", "fixed size", "cyclic Poisson", "round robin", "shuffling", "balls in bins"):
        rows.append(
            {"10^8 records": kind, **in_fresh_process("training_speed", "large_streams", kind)["answer"]}
        )
    report.table("Streams over 10^8 records, 1,000 rounds an epoch", rows)
    report.say("")
    report.claim(
        "memory of a stream over 10^8 records", max(row["MB"] for row in rows), at_most=450, unit="MB"
    )
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
