"""Claim: at least 100 times less time than jax-privacy for the same guarantee at delta = 1e-6.

The guarantee: "delta is at most U", wrong with probability at most 1e-9 over the sampling, both
directions. Ours is a certificate; U is what it gives. jax-privacy draws plain samples of the privacy
loss and applies a Chernoff-Hoeffding bound to their mean (its `delta_calculation`); the samples are
as many as that bound needs to give U from a mean that is exactly delta, or as many as its own
Algorithm 5 asks for to verify delta and report U, whichever are fewer. They are far too many to draw:
the time of one sample is measured, in batches, and scaled (CPU seconds, one thread). Its environment is made by `_jax_privacy`.
"""

import math
import sys

from _common import Report, cpu_clock, in_fresh_process  # before NumPy: one thread

# isort: split
import _jax_privacy
from _bins_cases import SIDES, plain_relative_variance

import dplib
from dplib import matrices, montecarlo

ROUNDS, BATCHES, BANDS, EPSILON, DELTA = 2048, 128, 64, 1.0, 1e-6
FAILURE = 1e-9
BATCH, REPETITIONS = 400, 5
LARGE_DELTA_NOISE = 2.5  # where plain sampling resolves delta
PLAIN = 2**16


def mechanism(noise):
    encoder = matrices.optimal_counting(ROUNDS, BANDS)
    return dplib.BallsInBins(encoder, noise, BATCHES, ROUNDS // BATCHES)


def run_ours(noise):
    """Certificate and estimate, each with its seconds; both directions."""
    setting = mechanism(noise)
    mechanism(noise / 3).delta(EPSILON, method="estimate")  # imports
    certified, [seconds] = cpu_clock(
        lambda: setting.delta(EPSILON, method="certificate", failure_probability=FAILURE)
    )
    estimate, [quick] = cpu_clock(lambda: setting.delta(EPSILON, method="estimate"))
    return {
        "upper": certified.upper,
        "seconds": seconds,
        "samples": certified.samples,
        "estimate": estimate.value,
        "standard error": estimate.standard_error,
        "estimate seconds": quick,
    }


def run_plain(noise):
    """Seconds of one plain sample drawn through the Gram matrix, both directions together."""
    gram = mechanism(noise).gram() / noise**2
    draw = lambda: [montecarlo.plain(gram, EPSILON, side, samples=PLAIN, seed=1) for side in SIDES]
    draw()
    _, [seconds] = cpu_clock(draw)
    return seconds / PLAIN


def kl(x, y):
    return x * math.log(x / y) + (1 - x) * (math.log1p(-x) - math.log1p(-y))


def peer_setting(noise):
    coefficients = matrices.optimal_counting(ROUNDS, BANDS).coefficients[:BANDS]
    return {
        "rounds": ROUNDS,
        "batches_per_epoch": BATCHES,
        "noise_multiplier": noise,
        "coefficients": coefficients.tolist(),
        "epsilon": EPSILON,
    }


def same_pair(report):
    """Both libraries at a delta that plain sampling resolves: the same number in both directions."""
    rows = []
    for side in SIDES:
        theirs = _jax_privacy.ask("estimate", peer_setting(LARGE_DELTA_NOISE), side, 3000, 1)
        ours = mechanism(LARGE_DELTA_NOISE).delta(EPSILON, side, method="estimate")
        error = math.hypot(theirs["standard_error"], ours.standard_error)
        z = (theirs["value"] - ours.value) / error
        rows.append({"direction": side, "jax-privacy": theirs["value"], "dplib": ours.value, "z": z})
        if abs(z) > 4:
            report.wrong(f"{side}: {theirs['value']} and {ours.value} differ by {z:.1f} standard errors")
    report.table(f"The same delta, noise multiplier {LARGE_DELTA_NOISE} (estimates)", rows)


def main():
    report = Report("against_jax_privacy", "Balls in bins beside jax-privacy")
    report.say(
        f"jax-privacy {_jax_privacy.ask('version')}; {ROUNDS} rounds, {BATCHES} batches an epoch, optimal "
        f"counting with {BANDS} bands, epsilon {EPSILON:g}, delta about {DELTA:g}."
    )
    same_pair(report)
    noise = dplib.calibrate(mechanism(10.0), epsilon=EPSILON, delta=DELTA, method="estimate").noise_multiplier
    ours = in_fresh_process("against_jax_privacy", "run_ours", noise)
    if "failure" in ours:
        report.wrong(ours["failure"])
        return report.close()
    ours = ours["answer"]
    one = sum(
        _jax_privacy.ask("seconds_per_sample", peer_setting(noise), side, BATCH, REPETITIONS)
        for side in SIDES
    )
    gram = in_fresh_process("against_jax_privacy", "run_plain", noise)["answer"]
    delta, upper = ours["estimate"], ours["upper"]
    report.say(f"\nCertified: delta <= {upper:.4g}, {upper / delta:.4f} times the estimate.")
    bound = math.ceil(math.log(1 / FAILURE) / kl(delta, upper))
    own = _jax_privacy.ask("samples_needed", delta, upper)
    needed = min(bound, own)
    plain_error = math.ceil(1e4 * plain_relative_variance(mechanism(noise), EPSILON, delta))
    rows = [
        {"what": "guarantee, failure probability 1e-9", "by": "dplib, certificate", "samples": ours["samples"],
         "CPU s": ours["seconds"], "which is": "measured"},
        {"what": "", "by": "jax-privacy, Chernoff-Hoeffding", "samples": bound, "CPU s": bound * one, "which is": "scaled"},
        {"what": "", "by": "jax-privacy, its Algorithm 5", "samples": own, "CPU s": own * one, "which is": "scaled"},
        {"what": "", "by": "plain samples by Gram matrix (dplib)", "samples": needed, "CPU s": needed * gram,
         "which is": "scaled"},
        {"what": "estimate, standard error 1%", "by": "dplib", "CPU s": ours["estimate seconds"], "which is": "measured"},
        {"what": "", "by": "jax-privacy", "samples": plain_error, "CPU s": plain_error * one, "which is": "scaled"},
    ]  # fmt: skip
    report.table("Both directions", rows)
    report.say(
        f"\n  Scaled: {1e3 * one:.3g} ms a sample in both directions (medians of {REPETITIONS} batches of {BATCH}), "
        "times the samples.\n"
    )
    report.claim("same guarantee, jax-privacy's time over ours", needed * one / ours["seconds"], at_least=100)
    report.claim("  the same with its samples drawn by Gram matrix", needed * gram / ours["seconds"], at_least=1)
    report.claim("certified delta over the estimate", upper / delta, at_most=1.05)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
