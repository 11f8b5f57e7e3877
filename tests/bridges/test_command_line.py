"""The command line: the numbers of the library with their units, as text and as JSON; one line on stderr for what is wrong."""

import json
import re
import subprocess
import sys

import pytest
from folders import ROOT

from dplib import (
    BallsInBins,
    FixedBatchDPSGD,
    LastIterate,
    MinSeparation,
    PoissonDPSGD,
    RandomAllocation,
    TruncatedPoissonDPSGD,
    calibrate,
    matrices,
)
from dplib.bridges import command_line
from dplib.bridges.command_line import main

POISSON = "--noise-multiplier 1 --sampling-probability 0.01"


def answer(capsys, line):
    assert main([*line.split(), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


@pytest.mark.parametrize("line, expected", [
    (f"{POISSON} --steps 2000 --delta 1e-6", PoissonDPSGD(1.0, 0.01, 2000)),
    (f"{POISSON} --steps 2000 --delta 1e-6 --group-size 2", PoissonDPSGD(1.0, 0.01, 2000, 2)),
    ("--scheme fixed-batch --noise-multiplier 2 --batch-size 5 --dataset-size 500 --steps 2000 --delta 1e-6", FixedBatchDPSGD(2.0, 5, 500, 2000)),
    (f"--scheme last-iterate {POISSON} --steps 2000 --delta 1e-6", LastIterate(1.0, 0.01, 2000)),
    (f"{POISSON} --steps 2000 --delta 1e-6 --adjacency substitution", PoissonDPSGD(1.0, 0.01, 2000, adjacency="substitution")),
    (f"{POISSON} --steps 2000 --delta 1e-6 --inserted 2 --deleted 1", PoissonDPSGD(1.0, 0.01, 2000, inserted=2, deleted=1)),
    ("--scheme fixed-batch --noise-multiplier 2 --batch-size 5 --dataset-size 500 --steps 200 --delta 1e-6 --adjacency zero-out",
     FixedBatchDPSGD(2.0, 5, 500, 200, adjacency="zero-out")),
    (f"--scheme truncated-poisson {POISSON} --dataset-size 5000 --largest-batch 60 --steps 200 --delta 1e-6",
     TruncatedPoissonDPSGD(1.0, 0.01, 5000, 60, 200)),
    ("--scheme random-allocation --noise-multiplier 1 --rounds 40 --participations 2 --epochs 3 --delta 1e-6", RandomAllocation(1.0, 40, 2, 3)),
])  # fmt: skip
def test_epsilon_is_that_of_the_library(capsys, line, expected):
    found, bracket = answer(capsys, f"epsilon {line}"), expected.epsilon(1e-6)
    assert found["answer"] == {"kind": "Bracket", "lower": bracket.lower, "upper": bracket.upper, "method": bracket.method}
    assert found["given"]["delta"] == 1e-6 and found["question"] == "epsilon"


def test_a_bound_is_called_a_bound(capsys):
    found = answer(capsys, f"epsilon --scheme min-separation {POISSON} --min-separation 4 --steps 64 --delta 1e-6")["answer"]
    bound = MinSeparation(matrices.identity(64), 1.0, 0.01, 4).epsilon(1e-6, method="renyi")
    assert found == {"kind": "UpperBound", "upper": bound.upper, "method": bound.method}


def test_noise_and_rounds(capsys):
    found = answer(capsys, "sigma --sampling-probability 0.01 --steps 2000 --epsilon 2 --delta 1e-6")["answer"]
    assert found == calibrate(PoissonDPSGD(1.0, 0.01, 2000), epsilon=2.0, delta=1e-6).noise_multiplier
    cut = answer(capsys, "steps --scheme truncated-poisson --noise-multiplier 1 --sampling-probability 0.1 --dataset-size 100 "
                         "--largest-batch 30 --epsilon 4 --delta 1e-5")["answer"]  # fmt: skip
    spent = [TruncatedPoissonDPSGD(1.0, 0.1, 100, 30, steps).epsilon(1e-5).upper for steps in (cut, cut + 1)]
    assert spent[0] <= 4 < spent[1]
    steps = answer(capsys, f"steps {POISSON} --epsilon 2 --delta 1e-6")["answer"]
    assert PoissonDPSGD(1.0, 0.01, steps).epsilon(1e-6).upper <= 2 < PoissonDPSGD(1.0, 0.01, steps + 1).epsilon(1e-6).lower
    assert main("sigma --scheme balls-in-bins --batches-per-epoch 10 --epochs 2 --epsilon 2 --delta 1e-6".split()) == 0
    assert re.match(r"noise multiplier 1\.\d+ clip norms\nballs-in-bins, batches per epoch 10, ", capsys.readouterr().out)


def test_all_schemes_beside_each_other(capsys):
    line = "compare --noise-multiplier 2 --batch-size 50 --dataset-size 500 --delta 1e-6"
    epsilons = answer(capsys, f"{line} --steps 50")["epsilon"]
    same = {
        "poisson": PoissonDPSGD(2.0, 0.1, 50), "fixed-batch": FixedBatchDPSGD(2.0, 50, 500, 50), "last-iterate": LastIterate(2.0, 0.1, 50),
        "balls-in-bins": BallsInBins(matrices.identity(50), 2.0, 10, 5), "no sampling": PoissonDPSGD(2.0, 1.0, 50),
    }  # fmt: skip
    same["random-allocation"] = RandomAllocation(2.0, 10, 1, 5)
    upper = {name: found["upper"] for name, found in epsilons.items() if "upper" in found}
    assert upper == {name: one.epsilon(1e-6).upper for name, one in same.items()}
    missing = {name: found["refused"] for name, found in epsilons.items() if "refused" in found}
    assert missing == {"truncated-poisson": "needs --largest-batch", "min-separation": "needs --min-separation"}
    more = answer(capsys, f"{line} --steps 50 --largest-batch 60 --min-separation 4 --participations 5")["epsilon"]
    # Of the two neighbours that add-remove compares, [A-24] asks for the larger one.
    assert more["truncated-poisson"]["upper"] == TruncatedPoissonDPSGD(2.0, 0.1, 501, 60, 50).epsilon(1e-6).upper
    paused = MinSeparation(matrices.identity(50), 2.0, 50 / (500 - 3 * 50), 4)
    assert more["min-separation"]["kind"] == "UpperBound" and more["min-separation"]["upper"] == paused.epsilon(1e-6, method="renyi").upper
    assert more["random-allocation"]["upper"] == RandomAllocation(2.0, 50, 5).epsilon(1e-6).upper
    replaced = answer(capsys, f"{line} --steps 50 --adjacency substitution")["epsilon"]
    assert replaced["poisson"]["upper"] == PoissonDPSGD(2.0, 0.1, 50, adjacency="substitution").epsilon(1e-6).upper
    assert replaced["fixed-batch"]["upper"] == FixedBatchDPSGD(2.0, 50, 500, 50, adjacency="substitution").epsilon(1e-6).upper
    assert {name for name, found in replaced.items() if found.get("refused") == "no account of substitution"} == {
        "balls-in-bins", "random-allocation", "min-separation", "last-iterate"
    }  # fmt: skip
    assert "whole epochs" in answer(capsys, f"{line} --steps 51")["epsilon"]["balls-in-bins"]["refused"]
    assert main(f"{line} --steps 50".split()) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 10 and rows[0].startswith("epsilon at noise multiplier 2 clip norms, batch size 50")


@pytest.mark.parametrize("scheme", command_line._SCHEMES)
def test_explanations_name_theorems_of_the_book(capsys, scheme):
    assert main(["explain", "--scheme", scheme]) == 0
    text, index = capsys.readouterr().out, (ROOT / "book" / "theorems.md").read_text(encoding="utf-8")
    tags = re.findall(r"\[(\w+-[\w.]+)\]", text)
    assert len(tags) > 0 and all(f"| {tag} |" in index for tag in tags)
    assert "clip norm" in text and answer(capsys, f"explain --scheme {scheme}")["assumes"]


@pytest.mark.parametrize("line, reason", [
    ("", "QUESTION"), ("what", "invalid choice"), ("epsilon", "needs --noise-multiplier"), (f"epsilon {POISSON} --steps x --delta 1e-6", "--steps"),
    (f"epsilon {POISSON} --steps 9 --delta 1e-6 --batch-size 3", "takes no --batch-size"), (f"epsilon {POISSON} --steps 9 --delta 2", "delta must"),
    ("epsilon --noise-multiplier 0 --sampling-probability 0.1 --steps 9 --delta 1e-6", "noise_multiplier must"),
    (f"epsilon --scheme last-iterate {POISSON} --steps 9 --delta 1e-6 --group-size 2", "takes no --group-size"),
    (f"steps --scheme last-iterate {POISSON} --epsilon 1 --delta 1e-6", "whose rounds compose"),
    ("steps --noise-multiplier 1 --sampling-probability 0 --epsilon 1 --delta 1e-6", "use up"),
    (f"epsilon {POISSON} --steps 9 --delta 1e-6 --adjacency other", "adjacency must"),
    (f"epsilon --scheme last-iterate {POISSON} --steps 9 --delta 1e-6 --adjacency zero-out", "takes no --adjacency"),
    ("compare --noise-multiplier 1 --batch-size 9 --dataset-size 3 --steps 9 --delta 1e-6", "batch_size must"),
    ("compare --noise-multiplier 1 --batch-size 3 --dataset-size 0 --steps 9 --delta 1e-6", "dataset_size must"),
    ("compare --noise-multiplier 1 --batch-size 3 --dataset-size 9 --steps 9 --delta 2", "delta must"),
    ("compare --noise-multiplier 1 --batch-size 3 --dataset-size 9 --steps 9 --delta 1e-6 --adjacency substitute", "adjacency must"),
    ("compare --noise-multiplier 1 --batch-size 3 --dataset-size 9 --steps 9 --delta 1e-6 --participations 0", "participations must"),
])  # fmt: skip
def test_bad_input_is_one_line(capsys, line, reason):
    assert main(line.split()) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("dplib: ") and err.count("\n") == 1 and reason in err


def test_as_a_program():
    run = lambda *line: subprocess.run([sys.executable, "-m", "dplib", *line], cwd=ROOT, capture_output=True, text=True, check=False)
    done = run("epsilon", *f"{POISSON} --steps 2000 --delta 1e-6".split())
    assert (done.returncode, done.stdout.splitlines()[0], done.stderr) == (0, "epsilon in [2.95524, 2.95525]", "")
    shown = run("--help")
    assert shown.returncode == 0 and all(word in shown.stdout for word in (*command_line._SCHEMES, *command_line._QUESTIONS, "example"))
    assert "clip norms" in run("sigma", "--help").stdout and run("nothing").returncode == 2
