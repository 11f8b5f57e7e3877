"""Compute the studies of dplib/lessons/studies/ again: `make study`, or `python -m tools study [NAME ...]`.

Finished settings are kept in _build/studies/NAME/ (joblib.Memory), so that a second call with the same code goes on
where the first one stopped. After each section the results so far are written to dplib/lessons/studies/NAME.json, with
settings and versions. More than one process: --jobs 2. The encoders take about 20 minutes of processor time, one_axis ten, scales five.
"""

import argparse
import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout's dplib and no other

import joblib  # noqa: E402
import letters_study  # noqa: E402
import numpy as np  # noqa: E402
import one_axis_study  # noqa: E402
import one_move  # noqa: E402
import scaled_study  # noqa: E402
import training_study  # noqa: E402
from library_files import source_digest  # noqa: E402
from tqdm import tqdm  # noqa: E402

import dplib  # noqa: E402
from dplib import encoder_baselines, optimize  # noqa: E402

STATE, RESULTS = ROOT / "_build" / "studies", ROOT / "dplib" / "lessons" / "studies"
PACKAGES = ("numpy", "scipy", "jax", "optax", "joblib", "scikit-learn")

# ------------------------------------------------------------------------- the study of encoders

DELTA = 1e-5
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
HEADLINE = {"epochs": 16, "batches_per_epoch": 128}
SCHEMES = [{"epochs": e, "batches_per_epoch": b} for e in (16, 8, 32) for b in (128, 64, 32)]  # Appendix B
TIMED = [{"epochs": 64, "batches_per_epoch": b} for b in (32, 64, 128)]  # of the timing table, the other six are above
FIXED_BANDS = 64  # of Figure 2(b)
MOST_BANDS = 256  # of the published sweep over bands
SAMPLES = {"epochs": 16, "batches_per_epoch": 32}  # of Figure 5, which states none; small, so that two cores can do it
SAMPLE_EPSILONS = (0.5, 1.0, 2.0, 4.0)
SAMPLE_COUNTS = tuple(2**k for k in (9, 11, 13, 15, 17))  # two minutes of processor time each at 2^17; 2^20 would take a quarter of an hour
STEPS = 300

ABOUT = (
    "Root mean square error of prefix sums (sigma ||A C^-1||_F / sqrt(n), per round and coordinate) and noise "
    "multiplier sigma of encoders at (epsilon, delta), for balls-in-bins batches, Poisson sampling, and none. kind: exact "
    "and certified noise is a guarantee, estimated noise is not. Directions: the larger of add and remove."
)


def encoder_parts():
    """Sections of the study: (name, list of settings), each setting one call of `encoder_task`."""

    def grid(schemes, epsilons, **values):
        return [values | scheme | {"epsilon": e} for scheme in schemes for e in epsilons]

    def optimised(settings, family, buffers=None, keep=False):
        return [s | {"task": "optimised", "family": family, "buffers": buffers, "keep": keep} for s in settings]

    def sampled(counts, epsilons):
        return [s | {"task": "samples", "samples": m} for m in counts for s in grid([SAMPLES], epsilons)]

    headline = grid([HEADLINE], EPSILONS)
    others = grid([scheme for scheme in SCHEMES if scheme != HEADLINE], EPSILONS)
    timed = grid(TIMED, [1.0])
    return [
        ("baselines", [s | {"task": "baselines", "every": True} for s in headline]),
        ("optimised", optimised(headline, "toeplitz", keep=True)),
        ("baselines of other schemes", [s | {"task": "baselines", "every": False} for s in others]),
        ("buffered", optimised(headline, "buffered_linear_toeplitz", 4, keep=True)),
        ("samples", sampled(SAMPLE_COUNTS, SAMPLE_EPSILONS)),
        ("other schemes", optimised(timed + others, "toeplitz")),
        ("other schemes, buffered", optimised(others, "buffered_linear_toeplitz", 3)),
        ("other numbers of buffers", [
            s for k in (3, 2) for s in optimised(headline, "buffered_linear_toeplitz", k)
        ]),
    ]  # fmt: skip


def encoder_task(setting):
    """Rows for the tables of the study: {"points": [...], "encoders": [...], ...}."""
    return {"baselines": _baselines, "optimised": _optimised, "samples": _samples}[setting["task"]](setting)


def _place(setting, *more):
    return {name: setting[name] for name in ("epochs", "batches_per_epoch", "epsilon", *more)}


def _target(setting):
    return _place(setting) | {"delta": DELTA}


def _row(setting, method, found, **more):
    error = getattr(found, "standard_error", getattr(found.objective, "standard_error", 0.0))
    row = _place(setting) | {"method": method, "bands": None, "buffers": None, "rmse": float(found.objective)}
    row |= {"standard_error": error, "noise_multiplier": found.noise_multiplier}
    return row | {"kind": getattr(found, "kind", "estimate"), "best": False} | more


def _baselines(setting):
    """One row for each number of bands; `best` marks the smallest error of each method."""
    target, b, n = _target(setting), setting["batches_per_epoch"], setting["batches_per_epoch"] * setting["epochs"]
    powers = [2**k for k in range(n.bit_length()) if 2**k <= min(MOST_BANDS, n)]
    tables = {"unamplified": {h: encoder_baselines.unamplified(**target, bands=h) for h in {1, *powers[-3:], n}}}
    sampled = {h: encoder_baselines.banded_poisson(**target, bands=h) for h in powers if h <= b}
    if setting["every"]:
        wanted = range(1, b + 1)
    else:  # between the powers of two around the best
        middle = min(sampled, key=lambda h: sampled[h].objective)
        wanted = {round(middle * 2 ** (k / 4)) for k in range(-3, 4)}
    for h in wanted:
        if 1 <= h <= b and h not in sampled:
            sampled[h] = encoder_baselines.banded_poisson(**target, bands=h)
    best = min(sampled, key=lambda h: sampled[h].objective)
    tables["poisson"] = {h: sampled[h] for h in {*powers, best} if h in sampled}
    tables["balls in bins"] = _bins(target, powers, setting["every"], start=min(2 * best, b))
    rows = []
    for method, found in tables.items():
        least = min(found, key=lambda h: found[h].objective)
        rows += [_row(setting, method, found[h], bands=h, best=h == least) for h in sorted(found)]
    return {"points": rows}


def _bins(target, powers, every, start):
    """Balls in bins by number of bands: all of them, or downhill from `start` until both neighbours are worse."""
    at = lambda h: encoder_baselines.banded_balls_in_bins(**target, bands=h)
    if every:
        return {h: at(h) for h in powers}
    found, place = {}, max(k for k, h in enumerate(powers) if h <= start)
    while True:
        for k in (place - 1, place, place + 1):
            if 0 <= k < len(powers) and k not in found:
                found[k] = at(powers[k])
        best = min(found, key=lambda k: found[k].objective)
        if best == place:
            break
        place = best
    return {1: at(1)} | {powers[k]: value for k, value in found.items()}


def _optimised(setting):
    """The error; where it is to be kept also the encoder, the optimiser's path, and the certified noise."""
    options = {"buffers": setting["buffers"]} if setting["buffers"] else {}
    found = optimize.optimize(setting["family"], **_target(setting), **options)
    method = {"toeplitz": "toeplitz", "buffered_linear_toeplitz": "buffered"}[setting["family"]]
    tables = {"points": [_row(setting, method, found, buffers=setting["buffers"], best=True)]}
    if setting["keep"]:
        place = _place(setting, "buffers") | {"method": method}
        names = ("output_scale", "buffer_decay") if method == "buffered" else ("coefficients",)
        tables["encoders"] = [place | {name: getattr(found.encoder, name).tolist() for name in names}]
        tables["histories"] = [place | {"rmse": np.asarray(found.history)[:, 0].tolist()}]
        tables["certified"] = [place | _certified(found, setting["epsilon"])]
    return tables


def _certified(found, epsilon):
    row = {"estimate": found.noise_multiplier, "noise_multiplier": None, "rmse": None, "refused": None}
    try:
        mechanism, certificate = found.mechanism().certified(epsilon, DELTA)
    except (ValueError, dplib.NoBracketError) as error:
        return row | {"refused": str(error)}
    noise = mechanism.noise_multiplier
    row |= {"noise_multiplier": noise, "rmse": float(found.objective) * noise / found.noise_multiplier}
    return row | {"samples": certificate.samples, "failure_probability": certificate.failure_probability}


def _samples(setting):
    """The published method with few samples in each step, its encoder judged by fresh lines."""
    from dplib import published

    found = published.optimize(
        "toeplitz", **_target(setting), samples=setting["samples"], steps=STEPS, seed=setting["samples"]
    )
    history = np.asarray(found.history)
    place = _place(setting, "samples")
    row = place | {"rmse": float(found.objective), "standard_error": found.objective.standard_error}
    row |= {"believed_rmse": float(np.mean(history[-10:, 0])), "noise_multiplier": found.noise_multiplier}
    tables = {"samples": [row]}
    if setting["epsilon"] == 1.0:
        tables["histories"] = [place | {"method": "published", "buffers": None, "rmse": history[:, 0].tolist()}]
    return tables


ENCODERS = {
    "delta": DELTA,
    "epsilons": EPSILONS,
    "headline": HEADLINE,
    "schemes": SCHEMES,
    "timed": TIMED,
    "fixed_bands": FIXED_BANDS,
    "most_bands": MOST_BANDS,
    "samples": SAMPLES | {"counts": SAMPLE_COUNTS, "epsilons": SAMPLE_EPSILONS, "steps": STEPS},
    "seed": "0, the default of every function; the published method: the number of samples",
}
STUDIES = {
    "encoders": (ABOUT, ENCODERS, encoder_parts, encoder_task),
    "letters": letters_study.STUDY,
    "one_axis": one_axis_study.STUDY,
    "scaled": scaled_study.STUDY,
    "training": training_study.STUDY,
}

# ------------------------------------------------------------------------- running and writing


def versions():
    found = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    return found | {"dplib": f"{dplib.__version__} (source {source_digest()})"}


def rounded(value):
    """Eight digits are more than any of these numbers is known to."""
    if isinstance(value, float):
        return float(f"{value:.8g}")
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, (list, tuple)) else value


def write(name, about, settings, unfinished, tables):
    record = {"study": name, "about": about, "settings": settings, "versions": versions(), "unfinished": unfinished}
    lines = [f" {json.dumps(key)}: {json.dumps(rounded(value))}" for key, value in record.items()]
    for table, rows in tables.items():
        text = ",\n".join("  " + json.dumps(rounded(row)) for row in rows)
        lines.append(f" {json.dumps(table)}: [\n{text}\n ]")
    one_move.write_text(RESULTS / f"{name}.json", "{\n" + ",\n".join(lines) + "\n}\n")


def remembered(name, task):
    """The task, which looks its result up where this code has found it before."""
    code = source_digest(*sorted(Path(__file__).resolve().parent.glob("*study.py")))
    return joblib.Memory(STATE / name / code, verbose=0).cache(task)


def run(name):
    about, settings, parts, task = STUDIES[name]
    parts, task = parts(), joblib.delayed(remembered(name, task))
    unfinished, tables = [section for section, _ in parts], {}
    for number, (section, wanted) in enumerate(parts):
        print(f"study: {name}, {section} ({len(wanted)})", flush=True)
        results = joblib.Parallel(return_as="generator")(task(setting) for setting in wanted)
        label = f"{name} {number + 1}/{len(parts)}"
        for found in tqdm(results, label, len(wanted), leave=False, disable=None, delay=2):
            for table, rows in found.items():
                tables.setdefault(table, []).extend(rows)
        unfinished.remove(section)
        write(name, about, settings, unfinished, tables)
    print(f"study: wrote {(RESULTS / f'{name}.json').relative_to(ROOT)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *STUDIES], help="which studies; all where none is named")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    with joblib.parallel_config(n_jobs=options.jobs):
        for name in options.names or STUDIES:
            try:
                run(name)
            except OSError as error:  # a full disk, a folder that may not be written
                print(f"study: {name}: {error}; what was finished before is kept", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
