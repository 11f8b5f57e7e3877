"""Claim: every confidence statement of dplib fails at most as often as it says.

Each statement is repeated with other seeds where the truth is known and failures are frequent enough to be seen (failure
probability 0.05, few samples; 0.2 for the smallest epsilon and the smallest noise, whose three candidates share it).
A row says how often it failed, with Clopper and Pearson's 95% interval of that frequency.
Guarantees (certificates, audits, Estimate-Verify-Release, bounds on means) hold for any number of samples: the upper end of the
interval must be at most the stated probability. Some of them never fail here: the bounds of Chernoff and Hoeffding must hold for
coins, and the samples vary far less than coins of the same mean; that of Maurer and Pontil is far above the mean for so few
samples. Upper ends of estimates rest on a normal or Student's t approximation: the interval must not lie above it.
The truth of two bins is a trapezoid sum in this file, not dplib's.

    python benchmarks/coverage_study.py [FILE [SECONDS]]

With a FILE, finished blocks of repetitions are kept there, and a later run goes on from them. A run ends after so many
SECONDS; with 0 the report says what is known by then.
"""

import json
import math
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
from _common import Report, dplib_state, values
from scipy import optimize, stats

from dplib import BallsInBins, audit, matrices, montecarlo
from dplib.balls_in_bins import certificate as _certificate
from dplib.balls_in_bins import confidence_bounds
from dplib.lessons import truth

FAILURE, REPETITIONS, BLOCK = 0.05, 2000, 50
SHARED_FAILURE = 0.2  # of the smallest epsilon and noise: each of three candidates has a third
COEFFICIENTS, NOISE, EPSILON = [1.0, 0.5], 1.0, 0.5  # two bins, one epoch
TARGET = 0.2  # delta of the smallest epsilon and noise
ASKED = TARGET + SHARED_FAILURE  # of a search, so that it certifies at TARGET
PLANS = 2  # pilots of a certificate, shared by the repetitions


def two_bins(noise, epsilon, side):
    """delta of two bins with the encoder above, by the trapezoid rule across and closed forms along the sum of the modes."""
    first, second = np.array([1.0, 0.5]) / noise, np.array([0.0, 1.0]) / noise
    w = first + second
    w = w / math.sqrt(w @ w)
    across = np.array([-w[1], w[0]])
    a, b = np.array([first @ w, second @ w]), np.array([first @ across, second @ across])
    assert np.all(a > 0)  # no mode is opposed
    v = np.linspace(-12, 12, 1201)
    logs = np.outer(v, b) - b * b / 2  # of the modes' weights on each slice, twice
    goal = epsilon if side == "remove" else -epsilon
    u = np.zeros(len(v))
    for _ in range(60):  # Newton on a convex increasing function
        terms = logs - a * a / 2 + u[:, None] * a - math.log(2)
        top = terms.max(axis=1)
        weight = np.exp(terms - top[:, None])
        u -= (top + np.log(weight.sum(axis=1)) - goal) * weight.sum(axis=1) / (weight @ a)
    sign = 1 if side == "remove" else -1
    with_it = 0.5 * (np.exp(logs) * stats.norm.sf(sign * (u[:, None] - a))).sum(axis=1)
    without = stats.norm.sf(sign * u)
    excess = (
        with_it - math.exp(epsilon) * without if side == "remove" else without - math.exp(epsilon) * with_it
    )
    return float((stats.norm.pdf(v) * excess).sum() * (v[1] - v[0]))


@cache
def known(side):
    """The truth, after a look into the sealed table, where the same case stands to 30 digits."""
    (entry,) = [
        v
        for v in values("truth_values")
        if v["mechanism"] == "balls_in_bins"
        and v["params"] == {"coefficients": ["1", "0.5"], "n": 2, "b": 2, "sigma": "1"}
        and v["direction"] == side
    ]
    found = two_bins(NOISE, EPSILON, side)
    assert abs(found / float(entry["delta"]) - 1) < 1e-10, (found, entry["delta"])
    return found


def mechanism(noise=NOISE):
    return BallsInBins(matrices.toeplitz(COEFFICIENTS), noise, 2, 1)


# --- the statements: whether the repetition with this seed failed ----------------------------------------------


@cache
def _plan(side, pilot):
    return _certificate.prepare(mechanism().gram(), EPSILON, side, 1000, FAILURE, seed=10**6 + pilot)


def certificate(side, seed):
    return _certificate.run(_plan(side, seed % PLANS), 1000, FAILURE, seed, ()) < known(side)


def whole_certificate(side, seed):
    """Through the mechanism, pilot included."""
    ask = {"samples": 1000, "failure_probability": FAILURE, "seed": seed}
    return mechanism().delta(EPSILON, side, "certificate", **ask).upper < known(side)


def certified_epsilon(side, seed):
    ask = {"samples": 1000, "failure_probability": SHARED_FAILURE, "seed": seed}
    found = mechanism().epsilon(ASKED, side, "certificate", **ask)
    return two_bins(NOISE, found.upper, side) > TARGET


def certified_noise(side, seed):
    ask = {"samples": 1000, "failure_probability": SHARED_FAILURE, "seed": seed}
    found, _ = mechanism().certified(EPSILON, ASKED, side, **ask)
    return two_bins(found.noise_multiplier, EPSILON, side) > TARGET


@cache
def _claimed():
    """An epsilon at which delta is 0.1% above 0.05."""
    return optimize.brentq(lambda e: two_bins(NOISE, e, "remove") - 0.05 * 1.001, 0.1, 5)


def released(seed):
    """Estimate-Verify-Release accepts a mechanism whose delta is 0.1% above the claim of 0.05."""
    return bool(montecarlo.release(mechanism().gram(), _claimed(), 0.05, threshold=0.04, seed=seed))


def plain_end(side, seed):
    return montecarlo.plain(mechanism().gram(), EPSILON, side, samples=200, seed=seed).upper < known(side)


def line_end(side, seed):
    return montecarlo.estimate(mechanism().gram(), EPSILON, side, samples=256, seed=seed).upper < known(side)


@cache
def _right(what):
    """The epsilon, or the noise, at which delta is the target."""
    if what == "epsilon":
        return optimize.brentq(lambda e: two_bins(NOISE, e, "remove") - TARGET, 0.01, 5)
    return optimize.brentq(lambda s: two_bins(s, EPSILON, "remove") - TARGET, 0.5, 5)


def line_epsilon_end(seed):
    found = montecarlo.estimate_epsilon(mechanism().gram(), TARGET, "remove", samples=256, seed=seed)
    return found.upper < _right("epsilon")


def line_noise_end(seed):
    found = montecarlo.estimate_noise(mechanism().gram(), EPSILON, TARGET, "remove", samples=256, seed=seed)
    return found.upper < _right("noise")


@cache
def _near_exact_case():
    """(table of modes, epsilon, delta) of a case of the sealed table."""
    table = [["1", "0"], ["1", "1"]]
    (entry,) = [
        v
        for v in values("truth_values")
        if v["params"] == {"table": table, "sigma": "5", "q": "0.1"} and v["direction"] == "remove"
    ]
    return np.array(table, float), float(entry["epsilon"]), float(entry["delta"])


def near_exact_end(seed):
    """`truth.all_modes` at confidence 0.95, Student's t over 32 blocks."""
    table, epsilon, right = _near_exact_case()
    made = truth.all_modes(table, 5.0, 0.1, samples=1024, seed=seed, confidence=1 - FAILURE)
    return made.delta(epsilon, "remove").upper < right


def audited(seed):
    """Randomised response: the event that is best is the answer itself, and the truth is attained."""
    rng = np.random.default_rng([1, seed])
    answers = [(rng.random(400) < p).astype(float) for p in (0.75, 0.25)]
    found = audit.epsilon_lower_bound(*answers, 0.05, confidence=1 - FAILURE)
    return found.lower > math.log((0.75 - 0.05) / 0.25)


def mean_of_coins(kind, seed):
    """Coins with probability 0.1, 200 of them: the bounds on means that certificates and releases rest on."""
    rng = np.random.default_rng([2, seed])
    coins = (rng.random(200) < 0.1).astype(float)
    if kind == "betting":
        pilot = (rng.random(200) < 0.1).astype(float)
        bet, _ = confidence_bounds.choose_bet(pilot, 200, FAILURE)
        return confidence_bounds.betting(coins, 1.0, FAILURE, bet) < 0.1
    if kind == "maurer_pontil":
        return confidence_bounds.maurer_pontil(coins, 1.0, FAILURE) < 0.1
    return confidence_bounds.chernoff_hoeffding(float(coins.mean()), 200, FAILURE) < 0.1


NORMAL = 1 - montecarlo.CONFIDENCE
STATEMENTS = {  # name: (stated probability of failure, whether it is a guarantee, the repetition)
    "Estimate-Verify-Release accepts wrongly": (0.05, True, released),
    "audit, lower bound of epsilon": (FAILURE, True, audited),
    "mean of coins, betting": (FAILURE, True, lambda seed: mean_of_coins("betting", seed)),
    "mean of coins, Maurer and Pontil": (FAILURE, True, lambda seed: mean_of_coins("maurer_pontil", seed)),
    "mean of coins, Chernoff and Hoeffding": (FAILURE, True, lambda seed: mean_of_coins("chernoff", seed)),
    "upper end of plain sampling, remove": (NORMAL, True, lambda seed: plain_end("remove", seed)),
    "upper end of plain sampling, add": (NORMAL, True, lambda seed: plain_end("add", seed)),
    "certificate of delta, remove": (FAILURE, True, lambda seed: certificate("remove", seed)),
    "certificate of delta, add": (FAILURE, True, lambda seed: certificate("add", seed)),
    "certificate of delta with its pilot, add": (FAILURE, True, lambda seed: whole_certificate("add", seed)),
    "certificate of epsilon, add": (SHARED_FAILURE, True, lambda seed: certified_epsilon("add", seed)),
    "certified noise, add": (SHARED_FAILURE, True, lambda seed: certified_noise("add", seed)),
    "upper end of the near-exact truth, remove": (FAILURE, False, near_exact_end),
    "upper end of lines: delta, remove": (NORMAL, False, lambda seed: line_end("remove", seed)),
    "upper end of lines: delta, add": (NORMAL, False, lambda seed: line_end("add", seed)),
    "upper end of lines: epsilon, remove": (NORMAL, False, line_epsilon_end),
    "upper end of lines: noise, remove": (NORMAL, False, line_noise_end),
    # The remove direction tries many tuple sizes in each pilot.
    "certificate of delta with its pilot, remove": (
        FAILURE,
        True,
        lambda seed: whole_certificate("remove", seed),
    ),
}


def row(what, failed):
    """What is known of a statement, from one truth value for each repetition."""
    stated, guarantee, _ = STATEMENTS[what]
    failures = int(np.sum(failed))
    low, high = stats.binomtest(failures, len(failed)).proportion_ci(0.95, "exact")
    return {
        "statement": what,
        "kind": "guarantee" if guarantee else "approximation",
        "stated": stated,
        "repetitions": len(failed),
        "failed": failures,
        "frequency": failures / len(failed),
        "low": float(low),
        "high": float(high),
        "holds": bool(high <= stated if guarantee else low <= stated),
    }


def measured(path, seconds):
    """({statement: one truth value for each repetition}, the sources that they belong to).

    The next block is one of the statement that has taken the least time so far: the quick ones are done first.
    """
    failed, spent = {what: [] for what in STATEMENTS}, dict.fromkeys(STATEMENTS, 0.0)
    sources, end = {dplib_state()}, time.monotonic() + seconds
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            block = json.loads(line)
            if block["first"] != len(failed[block["statement"]]):
                continue  # two runs at once did the same block
            failed[block["statement"]] += block["failed"]
            spent[block["statement"]] += block["seconds"]
            sources.add(block["dplib"])
    while time.monotonic() < end:
        left = [what for what in STATEMENTS if len(failed[what]) < REPETITIONS]
        if not left:
            break
        what = min(left, key=spent.get)
        done, start = len(failed[what]), time.process_time()
        found = [int(STATEMENTS[what][2](seed)) for seed in range(done, done + BLOCK)]
        seconds = time.process_time() - start
        failed[what] += found
        spent[what] += seconds
        block = {
            "statement": what,
            "first": done,
            "failed": found,
            "seconds": seconds,
            "dplib": dplib_state(),
        }
        if path is not None:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(block) + "\n")
    return failed, sources


def main(path=None, seconds="inf"):
    failed, sources = measured(None if path is None else Path(path), float(seconds))
    if float(seconds) and any(len(failed[what]) < REPETITIONS for what in STATEMENTS):
        print("not finished:", {what: len(found) for what, found in failed.items()})
        return 0
    report = Report("coverage_study", "How often statements with a confidence fail")
    rows = [row(what, failed[what]) for what in STATEMENTS if failed[what]]
    report.table("Failures, with the 95% interval of their frequency", rows)
    report.say("")
    for found in rows:
        if not found["holds"]:
            report.wrong(f"{found['statement']}: {found['failed']} of {found['repetitions']}")
    share = [r["high"] / r["stated"] for r in rows if r["kind"] == "guarantee"]
    report.claim(
        "guarantees: upper end of the interval over the stated probability, the largest",
        max(share),
        at_most=1,
    )
    share = [r["low"] / r["stated"] for r in rows if r["kind"] != "guarantee"]
    report.claim("approximations: lower end over it, the largest", max(share), at_most=1)
    short = sum(len(failed[what]) < REPETITIONS for what in STATEMENTS)
    report.say(
        f"  {len(STATEMENTS) - short} of {len(STATEMENTS)} statements have all {REPETITIONS} repetitions."
    )
    report.say("  They are of dplib " + ", ".join(sorted(sources)) + ".")
    return report.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
