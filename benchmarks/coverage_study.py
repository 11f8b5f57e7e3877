"""Claim: every confidence statement of dplib fails at most as often as it says.

Each statement is repeated with other seeds where the truth is known and failures are frequent enough to be seen (failure
probability 0.05, few samples). A row says how often it failed, with Clopper and Pearson's 95% interval of that frequency.
Guarantees (certificates, audits, Estimate-Verify-Release, bounds on means) hold for any number of samples: the upper end of the
interval must be at most the stated probability. Upper ends of estimates rest on a normal or Student's t approximation:
the interval must not lie above it. The truth of two bins is a trapezoid sum in this file, not dplib's.
"""

import math
import sys

import numpy as np
from _common import Report, values
from scipy import optimize, stats

from dplib import BallsInBins, _betting, _certificate, audit, matrices, montecarlo, truth

FAILURE, REPETITIONS = 0.05, 2000
COEFFICIENTS, NOISE, EPSILON = [1.0, 0.5], 1.0, 0.5  # two bins, one epoch
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


# --- the statements: each yields True where one of its repetitions failed --------------------------------------


def certificates(side, repetitions, samples=1000):
    gram, delta = mechanism().gram(), known(side)
    for pilot in range(PLANS):
        plan = _certificate.prepare(gram, EPSILON, side, samples, FAILURE, seed=10**6 + pilot)
        for seed in range(repetitions // PLANS):
            yield _certificate.run(plan, samples, FAILURE, pilot * repetitions + seed, ()).upper < delta


def whole_certificates(side, repetitions):
    """Through the mechanism, pilot included."""
    delta = known(side)
    for seed in range(repetitions):
        found = mechanism().delta(
            EPSILON, side, "certificate", samples=1000, failure_probability=FAILURE, seed=seed
        )
        yield found.upper < delta


def certified_epsilons(side, repetitions):
    for seed in range(repetitions):
        found = mechanism().epsilon(
            0.2, side, "certificate", samples=1000, failure_probability=FAILURE, seed=seed
        )
        yield two_bins(NOISE, found.upper, side) > 0.2


def certified_noise(side, repetitions):
    for seed in range(repetitions):
        found, _ = mechanism().certified(
            EPSILON, 0.2, side, samples=1000, failure_probability=FAILURE, seed=seed
        )
        yield two_bins(found.noise_multiplier, EPSILON, side) > 0.2


def released(repetitions):
    """Estimate-Verify-Release accepts a mechanism whose delta is 0.1% above the claim of 0.05."""
    epsilon = optimize.brentq(lambda e: two_bins(NOISE, e, "remove") - 0.05 * 1.001, 0.1, 5)
    gram = mechanism().gram()
    for seed in range(repetitions):
        yield bool(montecarlo.release(gram, epsilon, 0.05, threshold=0.04, seed=seed))


def plain_ends(side, repetitions):
    gram, delta = mechanism().gram(), known(side)
    for seed in range(repetitions):
        yield montecarlo.plain(gram, EPSILON, side, samples=200, seed=seed).upper < delta


def line_ends(side, repetitions):
    gram, delta = mechanism().gram(), known(side)
    for seed in range(repetitions):
        yield montecarlo.estimate(gram, EPSILON, side, samples=256, seed=seed).upper < delta


def line_epsilon_ends(repetitions):
    gram = mechanism().gram()
    right = optimize.brentq(lambda e: two_bins(NOISE, e, "remove") - 0.2, 0.01, 5)
    for seed in range(repetitions):
        yield montecarlo.estimate_epsilon(gram, 0.2, "remove", samples=256, seed=seed).upper < right


def line_noise_ends(repetitions):
    gram = mechanism().gram()
    right = optimize.brentq(lambda s: two_bins(s, EPSILON, "remove") - 0.2, 0.5, 5)
    for seed in range(repetitions):
        yield montecarlo.estimate_noise(gram, EPSILON, 0.2, "remove", samples=256, seed=seed).upper < right


def near_exact_ends(repetitions):
    """`truth.all_modes` at confidence 0.95, Student's t over 32 blocks; the value is in the sealed table."""
    table = [["1", "0"], ["1", "1"]]
    (entry,) = [
        v
        for v in values("truth_values")
        if v["params"] == {"table": table, "sigma": "5", "q": "0.1"} and v["direction"] == "remove"
    ]
    array, right = np.array(table, float), float(entry["delta"])
    for seed in range(repetitions):
        made = truth.all_modes(array, 5.0, 0.1, samples=1024, seed=seed, confidence=1 - FAILURE)
        yield made.delta(float(entry["epsilon"]), "remove").upper < right


def audits(repetitions):
    """Randomised response: the event that is best is the answer itself, and the truth is attained."""
    right, rng = math.log((0.75 - 0.05) / 0.25), np.random.default_rng(1)
    answers = lambda p: (rng.random(400) < p).astype(float)
    for _ in range(repetitions):
        found = audit.epsilon_lower_bound(answers(0.75), answers(0.25), 0.05, confidence=1 - FAILURE)
        yield found.lower > right


def means(kind, repetitions):
    """Coins with probability 0.1, 200 of them: the bounds on means that certificates and releases rest on."""
    rng = np.random.default_rng(2)
    for _ in range(repetitions):
        coins = (rng.random(200) < 0.1).astype(float)
        if kind == "betting":
            pilot = (rng.random(200) < 0.1).astype(float)
            bet, _ = _betting.choose_bet(pilot, 200, FAILURE)
            yield _betting.betting(coins, 1.0, FAILURE, bet) < 0.1
        elif kind == "maurer_pontil":
            yield _betting.maurer_pontil(coins, 1.0, FAILURE) < 0.1
        else:
            yield _betting.chernoff_hoeffding(float(coins.mean()), 200, FAILURE) < 0.1


def statements():
    """(what, stated probability of failure, guarantee or not, the repetitions)."""
    yield "Estimate-Verify-Release accepts wrongly", 0.05, True, released(REPETITIONS)
    yield "audit, lower bound of epsilon", FAILURE, True, audits(REPETITIONS)
    for kind in ("betting", "maurer_pontil", "chernoff_hoeffding"):
        yield f"mean of coins, {kind}", FAILURE, True, means(kind, REPETITIONS)
    for side in ("remove", "add"):
        yield (
            f"upper end of plain sampling, {side}",
            1 - montecarlo.CONFIDENCE,
            True,
            plain_ends(side, REPETITIONS),
        )
    for side in ("add", "remove"):
        yield f"certificate of delta, {side}", FAILURE, True, certificates(side, REPETITIONS)
    # Slower ones: fewer repetitions, and a wider interval.
    yield "certificate of delta with its pilot, add", FAILURE, True, whole_certificates("add", 200)
    yield "certificate of epsilon, add", FAILURE, True, certified_epsilons("add", 80)
    yield "certified noise, add", FAILURE, True, certified_noise("add", 80)
    yield "upper end of the near-exact truth, remove", FAILURE, False, near_exact_ends(200)
    yield "upper end of lines: delta, remove", 1 - montecarlo.CONFIDENCE, False, line_ends("remove", 200)
    yield "upper end of lines: delta, add", 1 - montecarlo.CONFIDENCE, False, line_ends("add", 200)
    yield "upper end of lines: epsilon, remove", 1 - montecarlo.CONFIDENCE, False, line_epsilon_ends(80)
    yield "upper end of lines: noise, remove", 1 - montecarlo.CONFIDENCE, False, line_noise_ends(80)


def row(what, stated, guarantee, repeated):
    failed = np.array(list(repeated))
    print(f"{what}: {int(failed.sum())} of {len(failed)}", file=sys.stderr, flush=True)
    low, high = stats.binomtest(int(failed.sum()), len(failed)).proportion_ci(0.95, "exact")
    return {
        "statement": what,
        "kind": "guarantee" if guarantee else "approximation",
        "stated": stated,
        "repetitions": len(failed),
        "failed": int(failed.sum()),
        "frequency": float(failed.mean()),
        "low": float(low),
        "high": float(high),
        "holds": bool(high <= stated if guarantee else low <= stated),
    }


def main():
    report = Report("coverage_study", "How often statements with a confidence fail")
    rows = [row(*statement) for statement in statements()]
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
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
