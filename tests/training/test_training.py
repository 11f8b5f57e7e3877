"""Training: the noise has the covariance that is claimed, a round is what the formula says, a killed run goes on."""

import functools
import math
import os
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dplib import batching, matrices, training
from dplib.training import Config, clipped_sum, correlated_noise, memory_rows, train
from dplib.training import correlated_noise_jax as noise

fit = functools.partial(train, rounds_per_call=8)  # divides the rounds: one program a test

ROUNDS = 24
SCALE, DECAY = [0.2, 0.15, 0.1, 0.05], [0.95, 0.8, 0.5, 0.1]
RNG = np.random.default_rng(1)
TRIANGLE = np.tril(RNG.uniform(0.1, 0.5, (ROUNDS, ROUNDS)), -1) + np.diag(RNG.uniform(1, 2, ROUNDS))
SIGNED = np.concatenate([[2.0], 0.3 * RNG.standard_normal(ROUNDS - 1)])

# (encoder, copies of the parameters)
ENCODERS = {
    "identity": (matrices.identity(ROUNDS), 0),
    "scaled identity": (matrices.toeplitz(2.5 * np.eye(ROUNDS)[0]), 0),
    "banded": (matrices.optimal_counting(ROUNDS, 5), 4),
    "two bands": (matrices.optimal_counting(ROUNDS, 2), 1),
    "toeplitz": (matrices.optimal_counting(ROUNDS), ROUNDS - 1),
    "signed": (matrices.toeplitz(SIGNED, signed=True), ROUNDS - 1),
    "buffers": (matrices.buffered_linear_toeplitz(ROUNDS, SCALE, DECAY), 4),
    "scaled bands": (matrices.scaled(matrices.optimal_counting(ROUNDS, 5), *RNG.uniform(0.5, 2, (2, ROUNDS))), 4),
    "dense": (matrices.dense(TRIANGLE), ROUNDS),
}


def noise_of(encoder, coordinates, seed=0, rounds=ROUNDS, deviation=1.0):
    """The noise of all rounds, shape (rounds, coordinates), through the public transform."""
    transform = correlated_noise(encoder, deviation, seed=seed)
    nothing = {"w": jnp.zeros(coordinates)}

    def one(state, _):
        added, state = transform.update(nothing, state)
        return state, added["w"]

    return np.asarray(
        jax.jit(lambda s: jax.lax.scan(one, s, length=rounds)[1])(transform.init(nothing)), float
    )


# ------------------------------------------------------------------------------- the noise


@pytest.mark.parametrize("name", ENCODERS)
def test_memory_is_what_the_structure_allows(name):
    """Copies of the parameters, no more."""
    encoder, rows = ENCODERS[name]
    kind, _ = noise.plan(encoder)
    assert kind.rows == memory_rows(encoder) == rows
    assert sum(leaf.size for leaf in jax.tree.leaves(noise.start(kind, jnp.zeros(ROUNDS)))) == rows * ROUNDS


@functools.cache
def plain():
    return noise_of(matrices.identity(ROUNDS), 40_000, seed=3)


@pytest.mark.parametrize("name", ENCODERS)
def test_simulated_noise_has_the_stated_covariance(name):
    """Sigma^2 C^-1 C^-T over rounds, each entry within five standard errors; independent between coordinates."""
    encoder, _ = ENCODERS[name]
    coordinates, sigma = 40_000, 1.7
    w = noise_of(encoder, coordinates, seed=3, deviation=sigma)
    inverse = np.linalg.inv(encoder.entries())
    truth = sigma**2 * inverse @ inverse.T
    error = np.sqrt((truth**2 + np.outer(np.diag(truth), np.diag(truth))) / coordinates)
    assert np.max(np.abs(w @ w.T / coordinates - truth) / error) < 5
    assert np.max(np.abs(w.mean(axis=1)) / np.sqrt(np.diag(truth) / coordinates)) < 5
    # Neighbouring coordinates, pooled over rounds after whitening.
    z = encoder.entries() @ w / sigma
    assert abs(np.mean(z[:, 1:] * z[:, :-1])) < 5 / math.sqrt(z[:, 1:].size)
    # The same seed gives the same z, whatever the encoder.
    assert np.abs(z - plain()).max() < 2e-4
    # A sigma that is wrong by 5% would be seen.
    assert np.max(np.abs(w @ w.T / coordinates - 1.05**2 * truth) / error) > 5


def test_long_recursions_stay_accurate():
    """2,048 rounds in 32-bit floats against the 64-bit solution."""
    n = 2048
    z = noise_of(matrices.identity(n), 8, seed=5, rounds=n)
    for encoder in (matrices.buffered_linear_toeplitz(n, SCALE, DECAY), matrices.optimal_counting(n, 64)):
        w = noise_of(encoder, 8, seed=5, rounds=n)
        assert np.abs(w - encoder.solve(z)).max() < 2e-5 * np.abs(w).max()


def test_leaves_of_a_pytree_get_independent_noise():
    transform = correlated_noise(matrices.identity(2), 1.0, seed=1)
    sums = {"a": jnp.zeros((50, 80)), "b": [jnp.zeros(4000), jnp.zeros(())]}
    added, state = transform.update(sums, transform.init(sums))
    assert jax.tree.structure(added) == jax.tree.structure(sums) and int(state[0]) == 1
    assert abs(np.corrcoef(np.ravel(added["a"]), added["b"][0])[0, 1]) < 5 / math.sqrt(4000)


# ------------------------------------------------------------------------------- gradients


def squared(params, example):
    x, y = example
    return 0.5 * (x @ params["w"] + params["b"] - y) ** 2


X = RNG.standard_normal((30, 3)).astype(np.float32)
Y = (X @ [1.0, -2.0, 0.5] + 0.3).astype(np.float32)
START = {"w": np.array([0.3, 0.1, -0.2], np.float32), "b": np.array(0.1, np.float32)}
PLAIN = Config(divisor=12.0, noise_multiplier=1.0)


def by_hand(w, x, y, clip):
    """Clipped gradients of `squared`, shape (examples, 4), in 64-bit floats."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    gradients = (x @ w[:3] + w[3] - y)[:, None] * np.column_stack([x, np.ones(len(x))])
    norms = np.linalg.norm(gradients, axis=1)
    return gradients * np.minimum(1, clip / norms)[:, None]


def test_gradients_of_16_bits_are_clipped():
    """Their squares are 0 in 16 bits."""
    total = clipped_sum(lambda w, x: jnp.sum(w * x), jnp.zeros(4096, jnp.float16), jnp.full((1, 4096), 1e-4, jnp.float16), np.ones(1, bool), 1e-3)
    assert np.linalg.norm(np.asarray(total, float)) == pytest.approx(1e-3, rel=1e-2)


@pytest.mark.parametrize("microbatch", [None, 1, 7, 30, 64])
def test_clipped_sum_is_the_formula_with_any_microbatch(microbatch):
    mask = np.arange(30) % 4 != 1
    found = clipped_sum(squared, START, (X, Y), mask, 0.8, microbatch)
    expected = by_hand(np.array([0.3, 0.1, -0.2, 0.1]), X, Y, 0.8)[mask].sum(axis=0)
    assert np.allclose(np.append(found["w"], found["b"]), expected, rtol=0, atol=2e-6)


def test_one_record_moves_the_sum_by_at_most_the_clip_norm():
    """Whatever its gradient is: huge, tiny, infinite or not a number. An empty slot moves nothing."""
    for microbatch in (6, 2):
        summed = jax.jit(lambda x, y, mask, m=microbatch: clipped_sum(squared, START, (x, y), mask, 0.5, m))
        without = by_hand(np.array([0.3, 0.1, -0.2, 0.1]), X[:5], Y[:5], 0.5).sum(axis=0)
        for value in (1e-30, 1.0, 1e10, 1e25, np.inf, np.nan):
            x = X[:6].copy()
            x[5, 1] = value
            with_it, empty = (summed(x, Y[:6], np.arange(6) < count) for count in (6, 5))
            moved = [np.append(a["w"], a["b"]) - without for a in (with_it, empty)]
            assert np.linalg.norm(moved[0]) <= 0.5 * (1 + 1e-5)
            assert np.linalg.norm(moved[1]) <= 2e-6


# --------------------------------------------------------------------------------- training


def stream(rounds=ROUNDS, seed=3):
    return batching.poisson_stream(30, rounds, 0.4, seed=seed)


def test_a_run_is_the_formula():
    """Clip, sum, add (C^-1 z)_t, divide, momentum, cooldown: against NumPy in 64-bit floats, every round."""
    encoder = matrices.optimal_counting(ROUNDS, 4)
    schedule = optax.linear_schedule(0.5, 0.05, 10, transition_begin=5)
    config = Config(
        divisor=12.0, noise_multiplier=0.9, clip_norm=0.7, encoder=encoder, learning_rate=schedule, momentum=0.6
    )
    seen = []
    result = train(
        squared, START, (X, Y), stream(), config, seed=11, rounds_per_call=1,
        evaluate=lambda p: seen.append(np.append(p["w"], p["b"])) or 0.0, evaluate_every=1,
    )  # fmt: skip
    # The noise of the run, from its seed; "b" comes before "w" in the order of the pytree.
    z = np.array([noise.normals(noise.key_of(11), t, 0.9 * 0.7, 4, np.float32) for t in range(ROUNDS)], float)
    w = encoder.solve(z)[:, [1, 2, 3, 0]]
    position, velocity = np.array([0.3, 0.1, -0.2, 0.1]), np.zeros(4)
    for t, batch in enumerate(stream()):
        mean = (by_hand(position, X[batch], Y[batch], 0.7).sum(axis=0) + w[t]) / 12.0
        velocity = 0.6 * velocity + mean
        position = position - float(schedule(t)) * velocity
        assert np.allclose(seen[t], position, rtol=0, atol=1e-5)
    assert result.rounds == ROUNDS and result.history.shape == (ROUNDS, 2)
    assert "24 rounds" in repr(result) and "add-remove; divisor is a constant of the configuration" in repr(result)


def released(records, **settings):
    """The end of a run with all gradients 0 on this many records: nothing but its noise."""
    batches = batching.poisson_stream(records, 16, 0.1, seed=3)
    config = Config(noise_multiplier=1.0, learning_rate=0.3, momentum=0.5, **settings)
    flat = {"w": np.zeros(1000, np.float32)}
    return fit(lambda p, e: 0.0 * e * p["w"][0], flat, np.ones(records, np.float32), batches, config, seed=1)


def test_the_divisor_gives_nothing_away():
    """All gradients 0, one seed, 100 or 101 records: a constant divisor releases the same parameters.

    Divided by the expected size they differ by the factor 1.01, which tells the worlds apart: refused for add/remove.
    """
    with pytest.raises(TypeError, match="divisor"):
        Config(noise_multiplier=1.0)
    a, b = (released(records, divisor=10.0) for records in (100, 101))
    assert np.array_equal(a.params["w"], b.params["w"]) and np.std(a.params["w"]) > 1e-3
    assert a.adjacency == b.adjacency == "add-remove" and a.divisor == b.divisor == 10.0
    assert a.guarantee == b.guarantee == "divisor is a constant of the configuration: it gives nothing away"
    with pytest.raises(ValueError, match="divisor must be a number fixed in the configuration"):
        released(100, divisor="expected-size")
    c, d = (released(records, divisor="expected-size", adjacency="zero-out") for records in (100, 101))
    gap = lambda factor: np.abs(c.params["w"] - factor * d.params["w"]).max()
    assert d.divisor == 101 * 0.1 and gap(1.01) < 1e-6 and gap(1.0) > 5e-5
    assert np.array_equal(c.params["w"], a.params["w"])  # 100 * 0.1 is the constant
    assert c.adjacency == "zero-out" and c.guarantee == "divisor comes from the size of the dataset: zero-out only"
    assert c.guarantee in repr(c) and released(100, divisor=10.0, adjacency="zero-out").adjacency == "zero-out"


def parameters(result):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(result.params)])


def test_a_seed_repeats_a_run_and_none_does_not():
    config = Config(divisor=12.0, noise_multiplier=1.0, learning_rate=0.3)
    run = lambda seed: parameters(fit(squared, START, (X, Y), stream(), config, seed=seed))
    assert np.array_equal(run(5), run(5)) and not np.array_equal(run(5), run(6))
    assert not np.array_equal(run(None), run(None))
    assert START["w"][0] == np.float32(0.3)  # the caller's arrays are left alone


def test_a_seed_warns_that_a_release_needs_fresh_entropy():
    run = lambda seed: fit(squared, START, (X, Y), stream(), PLAIN, seed=seed)
    for start in (run, lambda seed: correlated_noise(matrices.identity(4), 1.0, seed=seed)):
        with pytest.warns(training.SeededNoiseWarning, match="fresh entropy, seed=None"):
            start(5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            start(None)


def test_no_global_setting_changes():
    names = ("jax_enable_x64", "jax_default_prng_impl", "jax_default_matmul_precision", "jax_debug_nans")
    before = [getattr(jax.config, name) for name in names]
    fit(squared, START, (X, Y), stream(8), Config(divisor=12.0, noise_multiplier=1.0), seed=1)
    assert before == [getattr(jax.config, name) for name in names]


# ------------------------------------------------------------------------- stop and go on


CHILD = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import test_training as t
kill_at, path = int(sys.argv[1]), sys.argv[2]

def watch(done):
    if done == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

end = t.long_run(checkpoint=path, watch=watch)
t.np.save(path + ".end.npy", end)
"""


def long_run(**options):
    encoder = matrices.buffered_linear_toeplitz(200, SCALE, DECAY)
    config = Config(divisor=12.0, noise_multiplier=1.0, encoder=encoder, learning_rate=0.1, momentum=0.9, microbatch=8)
    batches = batching.balls_in_bins_stream(30, 4, 50, seed=7)
    evaluate = lambda p: float(p["b"])
    result = train(
        squared, START, (X, Y), batches, config, seed=4, evaluate=evaluate, evaluate_every=40,
        checkpoint_every=10, rounds_per_call=4, **options,
    )  # fmt: skip
    return np.concatenate([parameters(result), result.history.ravel().astype(np.float32)])


@pytest.mark.trust
@pytest.mark.slow
def test_a_run_killed_at_three_random_points_ends_with_the_same_bits(tmp_path):
    """SIGKILL, in a process of its own, at three points drawn at random; then a fourth process finishes."""
    path = str(tmp_path / "run.npz")
    code = CHILD.format(tests=str(Path(__file__).parent))
    points = sorted(np.random.default_rng(2026).choice(np.arange(12, 196, 4), 3, replace=False))
    environment = {**os.environ, "PYTHONPATH": str(Path(training.__file__).resolve().parents[1])}
    for kill_at in (*points, 10**9):
        child = [sys.executable, "-c", code, str(kill_at), path]
        done = subprocess.run(
            child, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        killed = kill_at < 10**9
        assert done.returncode == (-signal.SIGKILL if killed else 0), done.stderr
        assert os.path.exists(path) == killed
    assert np.array_equal(np.load(path + ".end.npy"), long_run())  # bit for bit, the evaluations included


class Stop(Exception):
    pass


def stop_at(count):
    def watch(done):
        if done >= count:
            raise Stop

    return watch


@pytest.mark.parametrize("seed", [1, None])
def test_a_run_with_fresh_entropy_goes_on_with_its_own(tmp_path, seed):
    """Noise and batches of the second process are those of the first, although nobody gave it a seed."""
    path = tmp_path / "run.npz"
    config = Config(divisor=12.0, noise_multiplier=1.0, encoder=matrices.optimal_counting(40, 3))
    new = lambda: batching.poisson_stream(30, 40, 0.4, seed=seed)
    options = {"seed": seed, "checkpoint": path, "checkpoint_every": 8, "rounds_per_call": 8}
    first = new()
    with pytest.raises(Stop):
        train(squared, START, (X, Y), first.padded(25), config, watch=stop_at(24), **options)
    with np.load(path) as kept:
        noise_seed = int(str(kept["seed"]))
        assert int(kept["done"]) == 24 and int(str(kept["batch_seed"])) == first.seed
    end = parameters(train(squared, START, (X, Y), new().padded(25), config, **options))
    again = batching.poisson_stream(30, 40, 0.4, seed=first.seed).padded(25)
    assert np.array_equal(
        end, parameters(train(squared, START, (X, Y), again, config, seed=noise_seed, rounds_per_call=8))
    )
    assert not path.exists()


OTHER_RUNS = [
    ({"config": {"noise_multiplier": 2.0}}, "noise_multiplier"),
    ({"config": {"encoder": matrices.optimal_counting(ROUNDS)}}, "another"),
    ({"config": {"learning_rate": 0.3}}, "rates"),
    ({"config": {"divisor": 13.0}}, "divisor"),
    ({"config": {"adjacency": "zero-out"}}, "adjacency"),
    ({"data": (X + 1, Y)}, "data"),
    ({"params": {"w": START["w"] + 1, "b": START["b"]}}, "parameters"),
    ({"batches": stream(seed=4)}, "batches_seed"),
    ({"seed": 2}, "noise_seed"),
]


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    config = Config(divisor=12.0, noise_multiplier=1.0, learning_rate=0.2)
    run = {"loss": squared, "params": START, "data": (X, Y), "batches": stream(), "seed": 1, "checkpoint": tmp_path / "run.npz"}
    run |= {"checkpoint_every": 8, "rounds_per_call": 8}
    with pytest.raises(Stop):
        train(**run, config=config, watch=stop_at(8))
    for changed, word in OTHER_RUNS:
        other = {"config": replace(config, **changed["config"])} if "config" in changed else {"config": config, **changed}
        with pytest.raises(ValueError, match=f"written for another .*{word}|another {word}"):
            train(**run | other)
    train(**run, config=config)


# -------------------------------------------------------------------------------- bad input


BAD_RUNS = [
    ("loss must be a function", {"loss": None}),
    ("evaluate must be a function", {"evaluate": 3}),
    ("watch must be a function", {"watch": "x"}),
    ("params must hold at least one", {"params": {}}),
    ("params must hold arrays of float32", {"params": {"w": np.arange(3)}}),
    ("params must hold arrays of float32", {"params": {"w": np.zeros(3, np.float16)}}),
    ("params must hold finite", {"params": {"w": np.array([np.nan])}}),
    ("data must hold arrays of one leading length", {"data": (X, Y[:5])}),
    ("data must hold arrays of one leading length", {"data": ()}),
    ("batches must be a stream", {"batches": [np.arange(3)]}),
    ("batches must be of the 30 records", {"batches": batching.poisson_stream(31, 5, 0.1)}),
    ("config must be", {"config": {"noise_multiplier": 1}}),
    ("encoder must have a column", {"config": replace(PLAIN, encoder=matrices.identity(5))}),
    ("learning_rate must have one entry", {"config": replace(PLAIN, learning_rate=[0.1, 0.2])}),
    ("learning_rate must be finite", {"config": replace(PLAIN, learning_rate=lambda t: -1.0)}),
    ("evaluate_every", {"evaluate_every": 0}),
    ("checkpoint_every", {"checkpoint_every": 0}),
    ("rounds_per_call", {"rounds_per_call": 0}),
    ("seed", {"seed": -1}),
]


@pytest.mark.parametrize("text, changed", BAD_RUNS)
def test_bad_arguments_of_train_are_named(text, changed):
    arguments = {"loss": squared, "params": START, "data": (X, Y), "batches": stream(), "config": PLAIN}
    with pytest.raises((TypeError, ValueError), match=text):
        train(**arguments | changed)


BAD_SETTINGS = [
    ({"encoder": matrices.binary_tree(8)}, "encoder must be square"),
    ({"encoder": matrices.dense(np.eye(3)), "noise_memory": "recompute"}, "noise_memory|memory"),
    ({"noise_multiplier": 1e20}, "noise_multiplier must be"),
    ({"clip_norm": 1e-9}, "clip_norm must be"),
    ({"noise_multiplier": 1e-25, "clip_norm": 1e-7}, "noise_multiplier must be 0, or at least"),
    ({"divisor": 1e-40}, "divisor must be"),
    ({"learning_rate": 1e50}, "learning_rate must be from"),
    ({"learning_rate": [0.1, -0.1]}, "learning_rate"),
    ({"learning_rate": [[0.1]]}, "learning_rate"),
    ({"learning_rate": "fast"}, "learning_rate"),
    ({"optimizer": "adam"}, "optimizer"),
    ({"optimizer": optax.sgd(0.1), "momentum": 0.5}, "momentum must be 0 beside an optimizer"),
    ({"divisor": None}, "divisor must be a finite real number"),
    ({"divisor": "drawn-size"}, "divisor must be .* or 'expected-size'; got 'drawn-size'"),
    ({"divisor": "expected-size"}, "divisor must be a number .* 'add-remove'.* got 'expected-size'"),
]


@pytest.mark.parametrize("changed, text", BAD_SETTINGS)
def test_settings_that_do_not_fit_are_named(changed, text):
    with pytest.raises((TypeError, ValueError), match=text):
        Config(**{"noise_multiplier": 1.0, "divisor": 12.0, **changed})
