"""What bounds without sampling lose on b-min-sep sampling, and the bounds for Poisson sampling with the same coins, which hold for it, too.

Optimal encoders for counting, delta = 1e-6, warm start. With b = 1 nobody pauses, so that only the bounds lose. Certificates from 2^16 samples, where these
are enough; seconds are CPU seconds of the certificate.
"""

import sys
from dataclasses import replace

from _common import DELTA, Report, cpu_clock

# rounds, min_separation, bands, sampling probability, noise multiplier; b = 1 is Poisson sampling
CASES = [
    (64, 1, 8, 0.1, 4.0),
    (64, 4, 8, 0.1, 4.0),
    (64, 8, 8, 0.1, 5.0),
    (64, 8, 16, 0.1, 5.0),
    (64, 8, 16, 0.5, 8.0),
    (64, 16, 64, 0.2, 8.0),
    (256, 8, 8, 0.1, 6.0),
    (256, 8, 16, 0.1, 6.0),
]
SETTING = ("rounds", "b", "bands", "p", "sigma")
MMCC = ("few", "published", "joint", "aggregated")  # and the bounds that count participations


def row_of(rounds, b, bands, p, sigma):
    import dplib

    encoder = dplib.matrices.optimal_counting(rounds, bands=bands)
    run = dplib.MinSeparation(encoder, sigma, p, b)
    estimate = run.epsilon(DELTA)
    row = dict(zip(SETTING, (rounds, b, bands, p, sigma)))
    row |= {"estimate": estimate.value, "standard error": estimate.standard_error}
    try:
        found, (row["CPU s"],) = cpu_clock(lambda: run.epsilon(DELTA, method="certificate"))
        row["certified"] = found.upper
    except ValueError as refusal:
        row["refused"] = str(refusal)
    row["Renyi"] = run.epsilon(DELTA, method="renyi").upper
    row["Poisson, Renyi"] = run.poisson().epsilon(DELTA).upper
    row["Poisson, MMCC"] = min(replace(run.poisson(), tail_bound=name).epsilon(DELTA).upper for name in MMCC)
    row["MMCC over estimate"] = row["Poisson, MMCC"] / estimate.value
    return row


def main():
    report = Report("min_separation", "b-min-sep sampling: what bounds without sampling lose")
    rows = [row_of(*case) for case in CASES]
    columns = [*SETTING, "estimate", "certified", "Renyi", "Poisson, Renyi", "Poisson, MMCC", "MMCC over estimate", "CPU s"]
    report.table("Epsilon at delta = 1e-6", rows, columns)
    for row in rows:
        low = row["estimate"] - 4 * row["standard error"]
        if not low <= row.get("certified", low) <= row["Renyi"] <= row["Poisson, Renyi"] <= row["Poisson, MMCC"]:
            report.wrong(f"{row}: bounds out of order")
    for row in rows:
        if "refused" in row:
            report.say(f"  No certificate, p = {row['p']}, {row['bands']} bands: {row['refused']}")
    report.say("")
    proved = [row["certified"] / row["estimate"] for row in rows if "certified" in row]
    report.claim("certified epsilon over its estimate, largest", max(proved), at_most=1.1)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
