"""dplib's answers. Imported by _child.py only.

SciPy, which dplib imports when it is first needed, is imported here: imports are not counted, as for the others.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # this checkout and no other

import scipy.fft  # noqa: E402, F401
import scipy.optimize  # noqa: E402, F401
import scipy.special  # noqa: E402, F401

import dplib  # noqa: E402
from dplib import encoder_baselines, gaussian, matrices, optimize, renyi, utility  # noqa: E402


def _bracket(bracket):
    return {"direction": "bracket", "value": bracket.upper, "lower": bracket.lower}


def bracket_poisson(sigma, q, steps, delta, group=1):
    return _bracket(dplib.PoissonDPSGD(sigma, q, steps, group).epsilon(delta))


bracket_group = bracket_prv = bracket_fourier = bracket_poisson


def bracket_fixed(sigma, batch, records, steps, delta):
    # `records` counts the larger dataset.
    return _bracket(dplib.FixedBatchDPSGD(sigma, batch, records - 1, steps).epsilon(delta))


def bracket_calibration(q, steps, epsilon, delta):
    """The noise whose upper end meets the target, and a little below it one whose lower end does not."""
    noise = dplib.calibrate(dplib.PoissonDPSGD(1.0, q, steps), epsilon=epsilon, delta=delta).noise_multiplier
    gap = 1e-8
    while dplib.PoissonDPSGD(noise * (1 - gap), q, steps).epsilon(delta).lower <= epsilon:
        gap *= 2
    return {"direction": "bracket", "value": noise, "lower": noise * (1 - gap)}


def bracket_gaussian(sigma, steps, delta):
    return _bracket(dplib.PoissonDPSGD(sigma, 1.0, steps).epsilon(delta))


def bracket_renyi(sigma, q, order):
    return _bracket(renyi.subsampled_gaussian(order, sigma, q))


def bracket_banded(sigma, rounds, batches, bands, delta):
    """The reduction to DP-SGD: every h-th round, with probability h / b, sensitivity a column norm."""
    norm = float(matrices.optimal_counting(rounds, bands).column_norms().max())
    return _bracket(dplib.PoissonDPSGD(sigma / norm, bands / batches, rounds // bands).epsilon(delta))


def mmcc_banded(sigma, rounds, batches, bands, delta):
    encoder = matrices.optimal_counting(rounds, bands)
    found = dplib.MatrixMechanism(encoder, sigma, 1 / batches, min_separation=bands).epsilon(delta)
    return {"direction": "upper", "value": found.upper}


def _bins(sigma, rounds, batches, bands):
    return dplib.BallsInBins(matrices.optimal_counting(rounds, bands), sigma, batches, rounds // batches)


def bracket_bins(sigma, rounds, batches, bands, epsilon):
    return _bracket(_bins(sigma, rounds, batches, bands).delta(epsilon, method="exact"))


bracket_unsampled = bracket_bins


def certificate_bins(sigma, rounds, batches, bands, epsilon):
    found = _bins(sigma, rounds, batches, bands).delta(epsilon, method="certificate", failure_probability=1e-9)
    return {"direction": "upper", "value": found.upper}


certificate_unsampled = certificate_bins


def bracket_allocation(sigma, rounds, group, epochs, delta):
    return _bracket(dplib.RandomAllocation(sigma, rounds, group, epochs).epsilon(delta))


def certificate_allocation(sigma, rounds, group, epochs, delta):
    found = dplib.RandomAllocation(sigma, rounds, group, epochs).epsilon(delta, method="certificate", samples=2**17, failure_probability=1e-9)
    return {"direction": "upper", "value": found.upper}


def blocks_allocation(sigma, rounds, group, epochs, delta):
    """The published bound, computed here: k E times one random round of floor(t / k)."""
    found = dplib.RandomAllocation(sigma, rounds // group, 1, group * epochs).epsilon(delta, method="bound")
    return {"direction": "upper", "value": found.upper}


def estimate_bins(sigma, rounds, batches, bands, epsilon):
    found = _bins(sigma, rounds, batches, bands).delta(epsilon, method="estimate")
    return {"direction": "estimate", "value": found.value, "standard_error": found.standard_error}


def bracket_separated(sigma, rounds, separation, probability, bands, epsilon):
    if separation > 1:
        raise NotImplementedError("by sampling only")
    return _bracket(dplib.PoissonDPSGD(sigma, probability, rounds).delta(epsilon))


def _pauses(sigma, rounds, separation, probability, bands):
    return dplib.MinSeparation(matrices.optimal_counting(rounds, bands), sigma, probability, separation)


def estimate_separated(sigma, rounds, separation, probability, bands, epsilon):
    found = _pauses(sigma, rounds, separation, probability, bands).delta(epsilon, method="estimate")
    return {"direction": "estimate", "value": found.value, "standard_error": found.standard_error}


def certificate_separated(sigma, rounds, separation, probability, bands, epsilon):
    mechanism = _pauses(sigma, rounds, separation, probability, bands)
    return {"direction": "upper", "value": mechanism.delta(epsilon, method="certificate", failure_probability=1e-9).upper}


def bracket_truncated(sigma, q, size, largest, steps, delta):
    return _bracket(dplib.TruncatedPoissonDPSGD(sigma, q, size, largest, steps, "zero-out").epsilon(delta))


def free_unamplified(rounds, bands, batches, epochs):
    """Error times sensitivity of the best Toeplitz encoder; one participation, or E of them b rounds apart."""
    if epochs == 1:
        encoder = encoder_baselines.without_amplification(rounds, bands=bands)
        cost = utility.rmse(encoder) * float(encoder.column_norms().max())
    else:
        found = encoder_baselines.unamplified(
            epsilon=1.0, delta=1e-5, batches_per_epoch=batches, epochs=epochs, bands=bands
        )
        cost = found.objective * gaussian.calibrate(1.0, 1e-5)  # takes the target out again
    return {"direction": "error", "value": cost}


def _error(found):
    return {"direction": "error", "value": float(found.objective)}


def poisson_amplified(batches, epochs, epsilon, delta):
    ask = {"epsilon": epsilon, "delta": delta, "batches_per_epoch": batches, "epochs": epochs}
    found = encoder_baselines.banded_poisson(**ask, bands=[2**k for k in range(batches.bit_length())])
    return _error(found) | {"note": f"{found.bands} bands"}


def bins_amplified(batches, epochs, epsilon, delta):
    found = optimize.optimize(
        "toeplitz", epsilon=epsilon, delta=delta, batches_per_epoch=batches, epochs=epochs
    )
    return _error(found)
