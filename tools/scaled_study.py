"""The study "scaled", for chapter 16: what scales of rows and columns gain, by way of sampling. Run it by `make study`."""

import dataclasses
import time

import numpy as np

import dplib
from dplib import encoder_baselines, matrices, optimize, utility
from dplib.mechanisms.dpsgd import _Mechanism
from dplib.mixtures import Mixture

DELTA = 1e-5
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
HEADLINE = {"epochs": 16, "batches_per_epoch": 128}
BANDS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 128)  # that Poisson sampling may choose from
POWERS = (0.1, 0.15, 0.2, 0.25)  # of the squared columns of A T^-1, for scales of rows
PIECES = 32  # of the rounds, in which scales of rows are constant under Poisson sampling
PLAIN = {"epochs": 8, "batches_per_epoch": 8, "bands": 8}  # plain Poisson sampling; one band is better by its bound
PLAIN_EPSILONS, PLAIN_BANDS, PLAIN_POWERS = (1.0, 4.0, 16.0), (1, 2, 4, 8), (0.1, 0.2, 0.3)
SMALL = {"epochs": 8, "batches_per_epoch": 4, "epsilon": 1.0}  # the optimum without structure
LINES, DENSE_STEPS = 2048, 300

ABOUT = (
    "Root mean square error of prefix sums of encoders with and without scales of rows, or of rows and columns, at "
    "(epsilon, delta). kind: estimate, or an upper bound: exact, certified (an upper end or a certificate), bound (MMCC or Renyi). "
    "Two errors compare under the same kind. Directions: the larger of add and remove. seconds: of one processor core."
)
SETTINGS = {
    "delta": DELTA,
    "epsilons": EPSILONS,
    "headline": HEADLINE,
    "bands": BANDS,
    "powers": POWERS,
    "pieces": PIECES,
    "plain": PLAIN | {"epsilons": PLAIN_EPSILONS, "tried": PLAIN_BANDS, "powers": PLAIN_POWERS},
    "small": SMALL | {"lines": LINES, "steps": DENSE_STEPS},
    "seed": "0, the default of every function",
}


def parts():
    """Sections of the study: (name, list of settings), each setting one call of `task`."""

    def at(task, epsilons, **values):
        return [values | {"task": task, "epsilon": e} for e in epsilons]

    return [
        ("known batches", at("known", EPSILONS, **HEADLINE)),
        ("poisson", at("poisson", EPSILONS, **HEADLINE)),
        ("plain poisson", at("plain", PLAIN_EPSILONS, **PLAIN)),
        ("dense", [SMALL | {"task": "dense"}]),
        ("balls in bins", at("bins", EPSILONS, **HEADLINE)),
    ]


def task(setting):
    """Rows for the tables of the study."""
    tasks = {"known": _known, "poisson": _poisson, "plain": _plain, "dense": _dense, "bins": _bins}
    return tasks[setting["task"]](setting)


def _row(setting, sampling, scales, noise, rmse, kind, **more):
    place = {name: setting[name] for name in ("epochs", "batches_per_epoch", "epsilon")}
    row = place | {"sampling": sampling, "scales": scales, "noise_multiplier": float(noise), "rmse": float(rmse)}
    return row | {"kind": kind, "bands": None, "power": None, "standard_error": 0.0, "seconds": None} | more


def _target(setting):
    return {name: setting[name] for name in ("epsilon", "epochs", "batches_per_epoch")} | {"delta": DELTA}


def _columns(encoder):
    """q, the squared lengths of the columns of A T^-1, over the first."""
    squares = np.cumsum(np.cumsum(encoder.inverse_coefficients) ** 2)[::-1]
    return squares / squares[0]


# ------------------------------------------------------------------------- batches that are known


def _known(setting):
    """The best Toeplitz encoder T for known batches, and the best scales of its rows: both exact."""
    b = setting["batches_per_epoch"]
    base = encoder_baselines.unamplified(**_target(setting))
    mu = 1 / base.mechanism().noise_multiplier
    rows = known_rows(base.encoder, b)
    encoder = matrices.scaled(base.encoder, rows)
    noise = np.sqrt(np.max(np.diag(dplib.BallsInBins(encoder, 1.0, b, setting["epochs"]).gram()))) / mu
    plain = _row(setting, "known batches", "none", base.noise_multiplier, base.objective, "exact")
    scaled = _row(setting, "known batches", "rows", noise, utility.rmse(encoder, noise), "exact")
    return {"points": [plain, scaled]}


def known_rows(base, batches, steps=2000):
    """Scales d of rows with the smallest error times the largest norm of a mode.

    For weights w of the batches, d_t^4 = q_t / sum_i w_i M_it^2 is best for the weighted mean of the squared norms; the
    worst weights, at which that mean is the largest squared norm, are approached by giving long modes more of the weight.
    """
    n, q = base.columns, _columns(base)
    first = np.cumsum(base.coefficients.reshape(-1, batches), axis=0).ravel()
    modes = np.array([np.append(np.zeros(i), first[: n - i]) for i in range(batches)]) ** 2
    weights = np.full(batches, 1 / batches)
    for _ in range(steps):
        squares = np.sqrt(q / (weights @ modes))  # d^2
        norms = modes @ squares
        weights *= norms / (weights @ norms)
    return np.sqrt(squares)


# ------------------------------------------------------------------------- Poisson sampling


@dataclasses.dataclass(frozen=True)
class CyclicPoisson(_Mechanism):
    """Banded encoders with scales of rows under cyclic Poisson sampling: a record may join every h-th round.

    Rows h rounds apart have no noise in common, so that its participations are subsampled Gaussian mechanisms, one for
    each slot of h rounds. lengths : for each slot, at least the length of the columns in it.
    """

    noise_multiplier: float
    rate: float
    lengths: tuple

    def composition(self):
        values, counts = np.unique(self.lengths, return_counts=True)
        chances = [1 - self.rate, self.rate] if self.rate < 1 else [1.0]
        return [
            (Mixture([0.0, float(s)][-len(chances) :], chances, self.noise_multiplier), int(k))
            for s, k in zip(values, counts)
        ]


def cyclic(base, rows, batches):
    """`CyclicPoisson` for rows that never grow: no column from round t on is longer than d_t times one of the base."""
    assert np.all(np.diff(rows) <= 0)
    length = float(np.max(base.column_norms()))
    return CyclicPoisson(1.0, base.bands / batches, tuple(rows[:: base.bands] * length))


def _poisson(setting):
    """The best number of bands without scales, and the best power of q for scales of rows there; DP-SGD is one band."""
    target = _target(setting)
    found, rows = encoder_baselines.banded_poisson(**target, bands=BANDS), []
    for h in sorted({1, found.bands}):
        base = encoder_baselines.banded_poisson(**target, bands=h)
        rows.append(_row(setting, "poisson", "none", base.noise_multiplier, base.objective, "certified", bands=h))
        tried = []
        for power in POWERS:
            q = _columns(base.encoder).reshape(PIECES, -1).mean(axis=1)
            scales = np.repeat((q / q[0]) ** power, base.encoder.columns // PIECES)
            safe = dplib.calibrate(
                cyclic(base.encoder, scales, setting["batches_per_epoch"]), epsilon=setting["epsilon"], delta=DELTA
            )
            noise = safe.noise_multiplier
            error = utility.rmse(matrices.scaled(base.encoder, scales), noise)
            tried.append(_row(setting, "poisson", "rows", noise, error, "certified", bands=h, power=power))
        rows.append(min(tried, key=lambda row: row["rmse"]))
    return {"points": rows}


def _plain(setting):
    """Plain Poisson sampling, every round open to every record: what the least bound asks for, with the best and a given number of bands."""
    b, epsilon, n = setting["batches_per_epoch"], setting["epsilon"], setting["epochs"] * setting["batches_per_epoch"]

    def bound(encoder, scales, **more):
        safe = dplib.calibrate(dplib.MatrixMechanism(encoder, 1.0, 1 / b), epsilon=epsilon, delta=DELTA)
        noise = safe.noise_multiplier
        return _row(setting, "plain poisson", scales, noise, utility.rmse(encoder, noise), "bound", **more)

    bases = {h: encoder_baselines.without_amplification(n, bands=h) for h in PLAIN_BANDS}
    plain = {h: bound(base, "none", bands=h) for h, base in bases.items()}
    rows = []
    for h in sorted({min(plain, key=lambda h: plain[h]["rmse"]), setting["bands"]}):
        scaled = [
            bound(matrices.scaled(bases[h], _columns(bases[h]) ** power), "rows", bands=h, power=power)
            for power in PLAIN_POWERS
        ]
        rows += [plain[h], min(scaled, key=lambda row: row["rmse"])]
    return {"points": rows}


# ------------------------------------------------------------------------- balls in bins


def _search(setting, scales, **options):
    """What a search found, and its seconds of processor time."""
    family, scaling = ("toeplitz", {}) if scales == "none" else ("scaled_toeplitz", {"scaling": scales})
    start = time.process_time()
    found = optimize.optimize(family, **_target(setting), **scaling, **options)
    return found, time.process_time() - start


def _bins(setting):
    """Estimates, and what a certificate makes of them."""
    rows = []
    for scales in ("none", "rows", "both"):
        found, seconds = _search(setting, scales)
        more = {"standard_error": found.objective.standard_error, "seconds": seconds}
        rows.append(_row(setting, "balls in bins", scales, found.noise_multiplier, found.objective, "estimate", **more))
        safe, _ = found.mechanism().certified(setting["epsilon"], DELTA)
        noise = safe.noise_multiplier
        rows.append(_row(setting, "balls in bins", scales, noise, utility.rmse(found.encoder, noise), "certified"))
    return {"points": rows}


def _dense(setting):
    """The best encoders with and without structure at a small size: all entries of the latter start from the Toeplitz one."""
    n = setting["epochs"] * setting["batches_per_epoch"]
    free = np.flatnonzero(np.tril(np.ones((n, n))))
    found = {scales: _search(setting, scales, lines=LINES)[0] for scales in ("none", "rows", "both")}

    def family(x):
        import jax.numpy as jnp

        return jnp.zeros(n * n).at[free].set(jnp.exp(x)).reshape(n, n)

    start = np.log(np.maximum(found["none"].encoder.entries().ravel()[free], 1e-3))
    found["dense"] = optimize.optimize(family, **_target(setting), start=start, lines=LINES, most_steps=DENSE_STEPS)
    points, encoders = [], []
    for scales, run in found.items():
        more = {"standard_error": run.objective.standard_error}
        points.append(_row(setting, "balls in bins", scales, run.noise_multiplier, run.objective, "estimate", **more))
        encoders.append({"scales": scales, "entries": [float(f"{x:.5g}") for x in run.encoder.entries().ravel()[free]]})
    return {"points": points, "encoders": encoders}


STUDY = (ABOUT, SETTINGS, parts, task)
