"""What MMCC loses on b-min-sep sampling: epsilon by sampling beside the bound of MMCC, which takes the records' coins for those of Poisson sampling.

Optimal encoders for counting, delta = 1e-6, warm start. "no pause" is the same encoder with Poisson sampling, estimated as well: what lies between
it and MMCC is lost by the bound, what lies below it is gained by the pauses. Seconds are CPU seconds of the certificate.
"""

import sys

from _common import DELTA, Report, cpu_clock

# rounds, min_separation, bands, sampling probability, noise multiplier, samples of the certificate
CASES = [
    (64, 8, 8, 0.1, 5.0, 2**16),
    (64, 4, 8, 0.1, 4.0, 2**16),
    (64, 8, 16, 0.1, 5.0, 2**16),
    (64, 8, 16, 0.5, 8.0, 2**20),
    (64, 16, 64, 0.2, 8.0, 2**20),
    (256, 8, 8, 0.1, 6.0, 2**16),
    (256, 8, 16, 0.1, 6.0, 2**16),
]
SETTING = ("rounds", "b", "bands", "p", "sigma", "samples")
NO_PAUSE = (8, 64)  # bands and rounds up to which the likelihood ratio without pauses has few enough terms


def row_of(rounds, b, bands, p, sigma, samples):
    import dplib

    encoder = dplib.matrices.optimal_counting(rounds, bands=bands)
    run = dplib.MinSeparation(encoder, sigma, p, b)
    estimate = run.epsilon(DELTA)
    found, (seconds,) = cpu_clock(lambda: run.epsilon(DELTA, method="certificate", samples=samples))
    row = dict(zip(SETTING, (rounds, b, bands, p, sigma, samples)))
    row |= {"estimate": estimate.value, "standard error": estimate.standard_error, "certified": found.upper, "CPU s": seconds}
    row["Renyi"] = run.epsilon(DELTA, method="renyi").upper
    row["MMCC"] = run.poisson().epsilon(DELTA).upper
    row["MMCC over estimate"] = row["MMCC"] / estimate.value
    if (bands, rounds) <= NO_PAUSE and rounds <= NO_PAUSE[1]:
        row["no pause"] = dplib.MinSeparation(encoder, sigma, p, 1).epsilon(DELTA).value
    return row


def main():
    report = Report("min_separation", "b-min-sep sampling: what the bound of MMCC loses")
    rows = [row_of(*case) for case in CASES]
    columns = ["rounds", "b", "bands", "p", "sigma", "estimate", "certified", "Renyi", "MMCC", "no pause", "MMCC over estimate", "CPU s"]
    report.table("Epsilon at delta = 1e-6", rows, columns)
    for row in rows:
        low = row["estimate"] - 4 * row["standard error"]
        if not low <= row["certified"] <= row["Renyi"] <= row["MMCC"]:
            report.wrong(f"{row}: bounds out of order")
    report.say("")
    report.claim("certified epsilon over its estimate, largest", max(r["certified"] / r["estimate"] for r in rows), at_most=1.1)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
