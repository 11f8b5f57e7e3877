"""Claim: a matrix mechanism of at most 64 rounds answers at any noise and rate within 2 CPU seconds.

    python benchmarks/mmcc_settings.py                       all settings
    python benchmarks/mmcc_settings.py --cases 50 --seed 2 --no-record
    PYTHONPATH=../other python benchmarks/mmcc_settings.py   measures the library of another checkout

Settings are log-uniform: 1 to 64 rounds of six kinds of encoder in turn, noise multiplier .05 to 1e4, sampling probability
1e-6 to 1, min-separation 1 or up to what both allow, delta 1e-30 to .5, epsilon 1e-3 to 50, remove, add or both. Each
is asked for epsilon and for delta, and for epsilon at the delta found, which must come back to the question.
"""

import argparse
import math
import random
import statistics
import sys

from _common import Report, asked  # before NumPy: one thread

# isort: split
import numpy as np

from dplib import MatrixMechanism, matrices

KINDS = ("identity", "toeplitz", "optimal_counting", "buffered_linear_toeplitz", "binary_tree", "dense")
QUESTIONS = ("epsilon", "delta", "epsilon of that delta")
LIMIT = 2.0  # CPU seconds
CLOSE = 1e-6  # how far epsilon(delta(epsilon)) may be above epsilon


def _spread(draw, low, high):
    return min(max(math.exp(draw.uniform(math.log(low), math.log(high))), low), high)


def _encoder(kind, draw):
    n = round(_spread(draw, 1, 64))
    if kind == "toeplitz":  # not monotone
        return matrices.toeplitz([1.0] + [draw.uniform(0, 1) * (draw.random() < 0.7) for _ in range(n - 1)])
    if kind == "buffered_linear_toeplitz":
        return matrices.buffered_linear_toeplitz(n, [draw.uniform(0.05, 0.5)], [draw.uniform(0.3, 0.99)])
    if kind == "binary_tree":
        leaves = 2 ** draw.randint(0, 6)
        return matrices.tree_restarts(leaves * draw.randint(1, 64 // leaves), leaves)
    if kind == "dense":
        rng = np.random.default_rng(draw.randrange(2**32))
        below = np.tril(rng.uniform(0, 1, (n, n)) * (rng.uniform(size=(n, n)) < 0.7), -1)
        return matrices.dense(below + np.diag(rng.uniform(0.3, 2, n)))
    return getattr(matrices, kind)(n)


def setting(seed, number):
    """(mechanism, delta, epsilon, direction) of that number, the same in every run."""
    draw = random.Random(f"{seed} {number}")
    encoder = _encoder(KINDS[number % len(KINDS)], draw)
    noise, p = _spread(draw, 0.05, 1e4), _spread(draw, 1e-6, 1.0)
    longest = min(encoder.columns, math.floor(1 / p * (1 - 1e-12)) or 1)
    separation = 1 if draw.random() < 0.5 else round(_spread(draw, 1, longest))
    delta, epsilon = _spread(draw, 1e-30, 0.5), _spread(draw, 1e-3, 50.0)
    return MatrixMechanism(encoder, noise, p, separation), delta, epsilon, draw.choice(("remove", "add", "both"))


def measured(seed, number):
    """A row for each question."""
    mechanism, delta, epsilon, direction = setting(seed, number)
    known = {"number": number, "kind": KINDS[number % len(KINDS)], "rounds": mechanism.encoder.columns}
    known |= {"noise": mechanism.noise_multiplier, "p": mechanism.sampling_probability}
    known |= {"min-separation": mechanism.min_separation, "direction": direction}
    rows = []

    def ask(question, target, call):
        row, bound = asked(lambda: call(target, direction))
        rows.append({**known, "question": question, "target": target, **row})
        return bound

    ask("epsilon", delta, mechanism.epsilon)
    found = ask("delta", epsilon, mechanism.delta)
    if found is not None and 0 < found.upper < 1:
        back = ask("epsilon of that delta", found.upper, mechanism.epsilon)
        rows[-1]["comes back"] = back is not None and back.upper <= epsilon * (1 + CLOSE)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--no-record", action="store_true", help="print only")
    given = parser.parse_args()
    report = Report("mmcc_settings", "MatrixMechanism: random settings of at most 64 rounds")
    rows = [row for number in range(given.cases) for row in measured(given.seed, number)]
    slowest = sorted(rows, key=lambda row: -row["cpu"])
    columns = ["number", "kind", "rounds", "noise", "p", "min-separation", "direction", "question", "target", "upper", "cpu"]
    report.table("The slowest calls (CPU seconds)", slowest[:12], columns)
    report.tables["All calls"] = rows
    for row in rows:
        if "failed" in row:
            report.wrong(f"setting {row['number']}, {row['question']}: {row['failed']}")
        if not row.get("comes back", True):
            report.wrong(f"setting {row['number']}: epsilon of delta({row['target']!r}) does not come back")
        if "refused" in row:
            report.say(f"  refused: setting {row['number']}, {row['question']} at {row['target']:g}: {row['refused']}")
    for question in QUESTIONS:
        seconds = sorted(row["cpu"] for row in rows if row["question"] == question)
        report.say(
            f"  {question}: {len(seconds)} calls, median {statistics.median(seconds):.3f} s, "
            f"99% at most {seconds[math.ceil(0.99 * len(seconds)) - 1]:.2f} s"
        )
    report.claim("the slowest call, CPU", slowest[0]["cpu"], at_most=LIMIT, unit="s")
    report.claim("calls refused", sum("refused" in row for row in rows), at_most=0)
    return report.failed if given.no_record else report.close()


if __name__ == "__main__":
    sys.exit(main())
