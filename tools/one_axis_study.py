"""The study `one_axis`, for chapter 21: the noise that a scheme needs. Run it by `make study`.

Every noise multiplier is proved to meet its target; it is above the smallest one that the same bound allows by less than 2 in 1000.
"""

import math

import dplib
from dplib import matrices, utility

DELTA, SLACK = 1e-6, 1e-3
ABOUT = (
    "Noise multiplier that a scheme needs at (epsilon, delta), larger direction. slow: schemes of independent noise whose accounts take "
    "seconds, with records, batch, epochs; batch of truncated Poisson sampling is the expected one before the cut at largest_batch. "
    "correlated: 64 rounds, 16 an epoch; error is the root mean square error of prefix sums."
)
# Records, batch, epochs, epsilon, and whether random allocation is computed.
SETTINGS = [(50_000, batch, 20, 2.0, batch in (250, 500, 2500)) for batch in (500, 2500, 250, 1250, 5000, 100)]
SETTINGS[1:1] = [(100_000, 1000, 3, 8.0, True), (20_000, 100, 2, 2.0, True), (200_000, 10_000, 40, 2.0, True)]
BANDS, ROUNDS, PER_EPOCH, EPSILON = 4, 64, 16, 2.0


def needed(delta_at, sigma, slope):
    """A noise multiplier with delta_at <= DELTA, less than 2 SLACK above the least one: Newton steps in logarithms."""
    known = []
    while True:
        excess = math.log(delta_at(sigma) / DELTA)
        known.append((math.log(sigma), excess))
        if excess <= 0 and excess / slope <= 1.8 * SLACK:
            return sigma
        if len(known) > 1:
            slope = (known[-1][1] - known[-2][1]) / (known[-1][0] - known[-2][0])
        sigma *= math.exp(-excess / slope + 0.8 * SLACK)


def slope_of(mechanism, sigma, epsilon):
    low, high = (mechanism(s).delta(epsilon).upper for s in (0.99 * sigma, 1.01 * sigma))
    return math.log(high / low) / math.log(1.01 / 0.99)


def slow(records, batch, epochs, epsilon, allocation):
    rate, per_epoch = batch / records, records // batch
    steps = epochs * per_epoch

    def poisson(sigma):
        return dplib.PoissonDPSGD(sigma, rate, steps)

    def fixed(sigma):
        return dplib.FixedBatchDPSGD(sigma, batch, records, steps)

    least = {make: float(dplib.calibrate(make(1.0), epsilon=epsilon, delta=DELTA).noise_multiplier) for make in (poisson, fixed)}
    largest = batch + round(3 * math.sqrt(batch))
    schemes = {
        "fixed batch, zero-out": (fixed, lambda s: dplib.FixedBatchDPSGD(s, batch, records, steps, adjacency="zero-out")),
        "truncated Poisson": (poisson, lambda s: dplib.TruncatedPoissonDPSGD(s, rate, records, largest, steps)),
    }
    if allocation:
        schemes["random allocation"] = (poisson, lambda s: dplib.RandomAllocation(s, per_epoch, 1, epochs))
    for scheme, (like, make) in schemes.items():
        method = {"method": "bound"} if scheme == "random allocation" else {}
        start = least[like] * (0.975 if method else 1.1)
        sigma = needed(lambda s, make=make, method=method: make(s).delta(epsilon, **method).upper, start, slope_of(like, least[like], epsilon))
        row = {
            "scheme": scheme, "records": records, "batch": batch, "epochs": epochs, "epsilon": epsilon, "delta": DELTA,
            "largest_batch": largest, "noise_multiplier": sigma,
        }  # fmt: skip
        if scheme == "random allocation" and per_epoch >= 100:  # by the lower end of its epochs, which are bins; with few batches it takes minutes
            row["refuted"] = 0.99 * sigma
            bins = dplib.BallsInBins(matrices.identity(per_epoch), row["refuted"], per_epoch, 1)
            assert dplib.compose([bins] * epochs).delta(epsilon).lower > DELTA
        yield row


def correlated():
    banded, plain = matrices.optimal_counting(ROUNDS, bands=BANDS), matrices.identity(ROUNDS)
    rate, epochs = 1 / PER_EPOCH, ROUNDS // PER_EPOCH
    target = {"epsilon": EPSILON, "delta": DELTA}
    coin = rate / (1 - (BANDS - 1) * rate)  # so that b-min-sep takes part at that rate

    def min_separation(sigma):
        return dplib.MinSeparation(banded, sigma, coin, BANDS)

    def row(scheme, noise, encoder, kind):
        return {"scheme": scheme, "noise": noise, "kind": kind, "noise_multiplier": float(mechanism.noise_multiplier),
                "error": float(mechanism.noise_multiplier * utility.rmse(encoder))}  # fmt: skip

    mechanism = dplib.calibrate(dplib.PoissonDPSGD(1.0, rate, ROUNDS), **target)
    yield row("Poisson", "independent", plain, "bracket")
    mechanism = dplib.calibrate(dplib.BallsInBins(plain, 1.0, PER_EPOCH, epochs), **target)
    yield row("balls in bins", "independent", plain, "bracket")
    mechanism = dplib.calibrate(dplib.BallsInBins(banded, 1.0, PER_EPOCH, epochs), method="certificate", **target)
    yield row("balls in bins", "correlated", banded, "certificate")
    mechanism = dplib.calibrate(dplib.MatrixMechanism(banded, 1.0, rate, BANDS), **target)
    yield row("cyclic Poisson", "correlated", banded, "upper bound")
    guess = needed(lambda s: min_separation(s).delta(EPSILON).value, float(mechanism.noise_multiplier), -25.0)
    mechanism = min_separation(1.01 * guess)
    assert mechanism.delta(EPSILON, method="certificate", samples=2**17).upper <= DELTA
    yield row("b-min-sep", "correlated", banded, "certificate")


def parts():
    """Sections of the study: (name, list of settings), each setting one call of `task`."""
    return [("correlated", [None]), ("slow", SETTINGS)]


def task(setting):
    """Rows for the tables of the study."""
    return {"correlated": list(correlated())} if setting is None else {"slow": list(slow(*setting))}


STUDY = (
    ABOUT,
    {"delta": DELTA, "slack": SLACK, "bands": BANDS, "rounds": ROUNDS, "per_epoch": PER_EPOCH, "epsilon": EPSILON},
    parts,
    task,
)
