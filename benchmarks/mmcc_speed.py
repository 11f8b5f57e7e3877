"""Claims: MMCC at and past the scale of its paper, in seconds, and how tight its bounds are.

Each computation runs in a process of its own on one thread. The peer is dp_accounting: one privacy
loss distribution of a mixture of Gaussians for each row of the encoder, entries rounded up to
multiples of 0.01. A few rows are timed; the time of all is interpolated over the row number.
Encoders: optimal counting and binary trees, p = 1 / rounds, delta = 1e-6, noise c column norms.
"""

import json
import sys

from _common import DATA, DELTA, Report, clock, in_fresh_process  # before NumPy: one thread

# isort: split
import numpy as np

import dplib
from dplib import accounting, conditional, matrices
from dplib.lessons import truth

LARGE, DENSE = 131_072, 2048
PEER_ROWS = (128, 512, 1024, 2048)  # of DENSE, counted from 1
PEER_ROUNDING = 0.01


def mechanism(kind, rounds, c, tail_bound="best"):
    encoder = {"counting": matrices.optimal_counting, "tree": matrices.binary_tree}[kind](rounds)
    noise = float(c * encoder.column_norms()[0])
    return dplib.MatrixMechanism(encoder, noise, 1 / rounds, tail_bound=tail_bound)


def run_epsilon(kind, rounds, c, tail_bound):
    """(epsilon, seconds of the call alone)."""
    bound, [seconds] = clock(lambda: mechanism(kind, rounds, c, tail_bound).epsilon(DELTA))
    return bound.upper, seconds


def run_truth(leaves, c):
    setting = mechanism("tree", leaves, c)
    estimate = truth.tree(setting.encoder, setting.noise_multiplier, setting.sampling_probability)
    return estimate.epsilon(DELTA).value


def run_peer(row):
    """Seconds that dp_accounting takes for one row of the published bound, both directions."""
    from dp_accounting.pld import privacy_loss_distribution

    setting = mechanism("counting", DENSE, 10)
    chances = conditional.published_tail(
        setting.encoder, setting.noise_multiplier, setting.sampling_probability, DELTA / 2
    )[row - 1, :row]
    steps = np.ceil(setting.encoder.coefficients[:row][::-1] / PEER_ROUNDING).astype(int)
    law = np.ones(1)
    for step, chance in zip(steps, chances):
        longer = np.zeros(len(law) + step)
        longer[: len(law)] = (1 - chance) * law
        longer[step:] += chance * law
        # Up to fifteen units of sensitivity: what is beyond has no weight.
        law = longer[: int(15 / PEER_ROUNDING)]
    kept = np.flatnonzero(law > 1e-30)
    _, [seconds] = clock(
        lambda: privacy_loss_distribution.from_mixture_gaussian_mechanism(
            standard_deviation=setting.noise_multiplier,
            sensitivities=list(PEER_ROUNDING * kept),
            sampling_probs=list(law[kept] / law[kept].sum()),
        )
    )
    return seconds


def encoder_of(case):
    """The encoder of a reference value."""
    name = case["id"]
    if name.startswith("identity"):
        return matrices.identity(case["n"])
    if "band8" in name:
        return matrices.optimal_counting(case["n"], 8)
    if "toeplitz" in name:
        return matrices.optimal_counting(case["n"])
    if "treerestart" in name:
        return matrices.tree_restarts(512, 8)
    leaves, trees = (int(part) for part in name.split("tree-n")[1].split("-sigma")[0].split("-x"))
    return matrices.tree_restarts(leaves * trees, leaves)


def reference_values(report):
    """Published epsilon of every reference value, each direction against its own bracket."""
    rows = []
    for case in json.loads((DATA / "mmcc.json").read_text(encoding="utf-8"))["values"]:
        [laws] = conditional.rows(
            encoder_of(case),
            case["sigma"],
            case["p"],
            case["delta1"] or DELTA / 2,
            "published",
            min_separation=case.get("b", 1),
            slack=1e-7 * case["delta2"],
        )[:1]
        for side, key in (("remove", "rem"), ("add", "add")):
            ours = accounting.epsilon(laws.pairs, case["delta2"] - 2 * laws.slack, side).upper
            lower, upper = (case["lower"] or {key: 0.0})[key], case["upper"][key]
            rows.append({"id": case["id"], "direction": side, "ours": ours, "lower": lower, "upper": upper})
            if not lower <= ours <= 1.002 * upper:
                report.wrong(f"{case['id']}, {side}: {ours!r} is not in [{lower}, 1.002 * {upper}]")
    report.table("Reference values (published bound)", rows)
    return max(row["ours"] / row["upper"] for row in rows)


def measured(report, name, *arguments):
    done = in_fresh_process("mmcc_speed", name, *arguments)
    if "failure" in done:
        report.wrong(f"{name}{arguments}: {done['failure']}")
        return {"answer": [float("nan")] * 2, "peak_mb": float("nan")}
    return done


def main():
    report = Report("mmcc_speed", "MMCC: seconds, memory and tightness", "dp_accounting")
    rows = []
    for kind, rounds, c, tail_bound in (
        ("counting", DENSE, 10, "published"),
        ("counting", DENSE, 10, "aggregated"),
        ("counting", 16_384, 10, "aggregated"),
        ("counting", LARGE, 10, "joint"),
        ("counting", LARGE, 10, "aggregated"),
        ("counting", LARGE, 10, "best"),
        ("tree", 2**16, 10, "published"),
        ("tree", 2**16, 10, "aggregated"),
        ("tree", 2**16, 10, "pooled"),
        ("tree", 2**16, 10, "best"),
        ("counting", 512, 10, "published"),
        ("counting", 512, 10, "best"),
        ("tree", 1024, 10, "published"),
        ("tree", 1024, 10, "best"),
        ("tree", 256, 10, "best"),
        ("tree", 256, 20, "best"),
        ("tree", 4096, 10, "best"),
    ):
        done = measured(report, "run_epsilon", kind, rounds, c, tail_bound)
        epsilon, seconds = done["answer"]
        key = {"encoder": kind, "rounds": rounds, "c": c, "tail bound": tail_bound}
        rows.append({**key, "epsilon": epsilon, "s": seconds, "peak MB": done["peak_mb"]})
    report.table("Epsilon (the larger of both directions, upper bounds)", rows)

    def of(name, kind, rounds, c, tail_bound):
        wanted = {"encoder": kind, "rounds": rounds, "c": c, "tail bound": tail_bound}
        return next(row[name] for row in rows if wanted.items() <= row.items())

    peer = [measured(report, "run_peer", row)["answer"] for row in PEER_ROWS]
    every = np.arange(1, DENSE + 1)
    whole = float(np.interp(every, PEER_ROWS, peer).sum())
    report.table("dp_accounting, one row each", [{"row": r, "s": s} for r, s in zip(PEER_ROWS, peer)])
    report.say(f"All {DENSE} rows, interpolated: {whole:.0f} s.\n")
    ours = of("s", "counting", DENSE, 10, "published")
    report.claim("published bound, 2,048 rounds", ours, at_most=10, unit="s")
    report.claim("  its memory", of("peak MB", "counting", DENSE, 10, "published"), at_most=500, unit="MB")
    report.claim("  dp_accounting row by row over ours", whole / ours, at_least=100)
    report.claim("best bound, 131,072 rounds", of("s", "counting", LARGE, 10, "best"), at_most=30, unit="s")
    report.claim("  its memory", of("peak MB", "counting", LARGE, 10, "best"), at_most=500, unit="MB")
    growth = of("s", "counting", LARGE, 10, "aggregated") / of("s", "counting", DENSE, 10, "aggregated")
    report.claim("  time over that of 2,048 rounds (64 times fewer)", growth, at_most=64)
    report.claim("aggregated bound, 2,048 rounds", of("s", "counting", DENSE, 10, "aggregated"), at_most=20, unit="s")
    report.claim("binary tree, 65,536 leaves, published", of("s", "tree", 2**16, 10, "published"), at_most=1, unit="s")
    report.claim("  with the aggregated bound", of("s", "tree", 2**16, 10, "aggregated"), at_most=1, unit="s")
    report.claim("largest epsilon over a reference's upper end", reference_values(report), at_most=1.002)
    for kind, rounds, target in (("counting", 512, 25), ("tree", 1024, 40)):
        gain = 100 * (1 - of("epsilon", kind, rounds, 10, "best") / of("epsilon", kind, rounds, 10, "published"))
        what = f"epsilon below the published bound, {kind}, {rounds} rounds, c = 10"
        report.claim(what, gain, at_least=target, unit="%")
    for leaves, c, target in ((256, 10, 1.2), (256, 20, 1.1), (4096, 10, 1.1)):
        exact = measured(report, "run_truth", leaves, c)["answer"]
        ratio = of("epsilon", "tree", leaves, c, "best") / exact
        stretch = " (stretch)" if leaves > 256 else ""
        report.claim(f"epsilon over the truth, tree, {leaves} leaves, c = {c}{stretch}", ratio, at_most=target)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
