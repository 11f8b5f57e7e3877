"""The bridges inside the libraries they are for, each in an environment of its own: Opacus trains a model, jax-privacy makes plans,
Flower's server chooses clients.

The programs in `inside/` run there and print what they found; here it is compared with the mechanisms of dplib. The pages' blocks
for these libraries run there, too.
"""

import fcntl
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from folders import imported

from dplib import FixedBatchDPSGD, PoissonDPSGD, accounting, calibrate, mixtures

ROOT = Path(__file__).resolve().parents[2]
INSIDE = Path(__file__).resolve().parent / "inside"
PAGE = (ROOT / "book" / "plug.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^## ([^\n]*)\n.*?^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
environment = imported("benchmarks", "_environments").environment
TORCH = next(line for line in (INSIDE / "opacus.txt").read_text(encoding="utf-8").splitlines() if line.startswith("torch=="))


def output(python, *command, **options):
    """What a program prints that runs in the environment of this interpreter, with this checkout's dplib; one thread."""
    variables = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([python, *command], capture_output=True, text=True, env=variables, timeout=600, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def found_by(program, python, tmp_path_factory, block, *names):
    """What a program in `inside/` found, and a block of the page printed: it runs once, also where several processes share the tests."""
    folder = tmp_path_factory.getbasetemp()
    path = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / f"{program} {' '.join(names)}.json"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            path.write_text(output(python, INSIDE / program, block, *names))
    return json.loads(path.read_text())


def cpu_build_is_to_be_had():
    """Whether pip would install PyTorch's build for CPUs, and not several gigabytes for GPUs."""
    ask = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", "-", TORCH]
    done = subprocess.run(ask, capture_output=True, text=True)
    if done.returncode:
        return False
    needs = json.loads(done.stdout)["install"][0]["metadata"].get("requires_dist", [])
    return sys.platform != "linux" or not any("nvidia" in need or "cuda" in need for need in needs)


@pytest.fixture(scope="module")
def with_opacus():
    made = ROOT / ".venv-opacus"
    if not (made / ".finished").exists() and not cpu_build_is_to_be_had():
        pytest.skip(f"pip finds no build of {TORCH} for CPUs: name an index that has one in PIP_EXTRA_INDEX_URL")
    return environment(made.name, INSIDE / "opacus.txt", by_pip=True)


@pytest.fixture(scope="module")
def trained(with_opacus, tmp_path_factory):
    return found_by("opacus_training.py", with_opacus, tmp_path_factory, BLOCKS["Opacus"])


@pytest.fixture(scope="module")
def with_jax_privacy():
    return environment(".venv-jax-privacy", ROOT / "benchmarks" / "jax_privacy_requirements.txt")


@pytest.fixture(scope="module")
def plans(with_jax_privacy, tmp_path_factory):
    """A plan, and its training accountant."""
    return found_by("jax_privacy_plans.py", with_jax_privacy, tmp_path_factory, BLOCKS["JAX Privacy"], "bands, ADD_OR_REMOVE_ONE", "training")


@pytest.fixture(scope="module")
def other_plans(with_jax_privacy, tmp_path_factory):
    names = ("one band, REPLACE_SPECIAL", "bands, REPLACE_SPECIAL", "one band, ADD_OR_REMOVE_ONE")
    return found_by("jax_privacy_plans.py", with_jax_privacy, tmp_path_factory, "", *names)


# ---------------------------------------------------------------------- Opacus


def test_a_model_is_trained_and_its_epsilon_reported(trained):
    assert trained["rate"] == 0.05 and trained["trained"]["history"] == [[1.0, 0.05, 100]]
    assert trained["trained"]["accuracy"] > 0.9
    expected = PoissonDPSGD(1.0, 0.05, 100).epsilon(1e-5)
    assert trained["trained"]["epsilon"] == pytest.approx(expected.upper, rel=1e-9)
    assert trained["certified"] == ["certified", trained["trained"]["epsilon"]]
    # Opacus's own accountant reports the upper end of its estimate, which allows for an error of 0.01.
    assert expected.lower <= trained["prv"] <= expected.upper + 0.02


def test_a_checkpoint_is_taken_up(trained):
    assert trained["resumed"] == trained["trained"]["epsilon"]
    assert trained["continued"]["history"] == [[1.0, 0.05, 120]]
    assert trained["continued"]["epsilon"] == pytest.approx(PoissonDPSGD(1.0, 0.05, 120).epsilon(1e-5).upper, rel=1e-9)


def test_noise_for_a_target(trained):
    """Opacus searches in steps of its own, and stops within 0.01 of the target."""
    least = calibrate(PoissonDPSGD(1.0, 0.05, 60), epsilon=2.0, delta=1e-5).noise_multiplier
    assert least <= trained["target"]["noise"] < 1.01 * least and 1.98 < trained["target"]["epsilon"] <= 2.0


def test_noise_that_falls_from_epoch_to_epoch(trained):
    history = trained["schedule"]["history"]
    assert [rounds for _, _, rounds in history] == [20, 20, 20]
    assert [noise for noise, _, _ in history] == pytest.approx([1.0, 0.9, 0.81])
    parts = [(mixtures.binomial(1, q, noise), rounds) for noise, q, rounds in history]
    assert trained["schedule"]["epsilon"] == pytest.approx(accounting.epsilon(parts, 1e-5).upper, rel=1e-9)


def test_pieces_and_accumulated_batches(trained):
    """`signal_skip_step` is for pieces: Opacus tells no accountant of the batches that were skipped, as the page says."""
    assert trained["pieces"] == [[1.0, 0.05, 20]]
    assert trained["accumulated"]["history"] == [[1.0, 0.05, 10, 2]]
    assert trained["accumulated"]["epsilon"] == pytest.approx(PoissonDPSGD(1.0, 0.05, 10, 2).epsilon(1e-5).upper, rel=1e-9)
    assert trained["skipped"] == [[1.0, 0.05, 10]]


# ----------------------------------------------------------------- jax-privacy


@pytest.mark.parametrize("made, name, rounds", [
    ("plans", "bands, ADD_OR_REMOVE_ONE", 125),
    pytest.param("other_plans", "one band, REPLACE_SPECIAL", 500, marks=pytest.mark.trust),
    pytest.param("other_plans", "bands, REPLACE_SPECIAL", 125, marks=pytest.mark.trust),
    pytest.param("other_plans", "one band, ADD_OR_REMOVE_ONE", 500, marks=pytest.mark.trust),
])  # fmt: skip
def test_a_plan_takes_our_accountant(made, name, rounds, request):
    """A plan of BandMF, and of DP-SGD, which has one band: less noise than by its own accountant, and enough of it."""
    ours, theirs = (request.getfixturevalue(made)[name][whose] for whose in ("ours", "theirs"))
    least = calibrate(PoissonDPSGD(1.0, 0.04, rounds), epsilon=2.0, delta=1e-6).noise_multiplier
    assert least * (1 - 1e-9) <= ours["noise"] <= min(theirs["noise"], least + 1e-6)
    assert ours["upper"] <= 2.0 and f"count={rounds}" in ours["event"]
    assert ours["lower"] <= ours["theirs"] and theirs["lower"] <= theirs["theirs"] and math.isclose(theirs["theirs"], 2.0, rel_tol=1e-4)


def test_its_training_accountant_takes_ours(plans):
    ours, theirs = plans["training"]["ours"], plans["training"]["theirs"]
    parts = [(mixtures.binomial(1, 0.04, noise), 250) for noise in (1.0, 2.0)]
    expected = accounting.epsilon(parts, 1e-6)
    assert ours["epsilon"] == pytest.approx(expected.upper, rel=1e-9)
    assert expected.lower <= theirs["epsilon"] < 1.0001 * expected.upper
    assert ours["noise"] <= theirs["noise"] < 1.0001 * ours["noise"]


# -------------------------------------------------------------- the page's blocks


def test_every_section_of_the_page_has_a_block():
    assert list(BLOCKS) == ["dp_accounting", "JAX Privacy", "Opacus", "Flower", "Anything else"]


@pytest.mark.parametrize("title", ["dp_accounting", "Anything else"])
def test_blocks_that_need_no_other_environment_run(title, capsys):
    exec(compile(BLOCKS[title], "book/plug.md", "exec"), {})
    assert len(capsys.readouterr().out.split()) > 1


def test_the_block_for_opacus_runs(trained):
    assert len(trained["page"].split()) > 1


def test_the_server_of_flower_stops_in_time(tmp_path):
    """50 of 200 clients a round, as long as the ledger allows it."""
    python = environment(".venv-flower", INSIDE / "flower.txt")
    found = json.loads(output(python, INSIDE / "flower_rounds.py", BLOCKS["Flower"], cwd=tmp_path))
    rounds = found["entries"]
    assert 0 < rounds < 20 and found["asked"] == [50] * rounds + [0] * (20 - rounds)
    assert FixedBatchDPSGD(2.0, 50, 200, rounds).epsilon(1e-5).upper <= 6.0 < FixedBatchDPSGD(2.0, 50, 200, rounds + 1).epsilon(1e-5).upper


def test_the_block_for_jax_privacy_runs(plans):
    assert "SelfComposedDpEvent" in plans["page"]
