"""jax-privacy's answers, with its default settings. Imported by _child.py only.

Its Monte Carlo samples are plain ones of the dominating pair, 10,000 in either direction, seed 0.
"""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

import dp_accounting  # noqa: E402
from jax_privacy import accounting, batch_selection  # noqa: E402
from jax_privacy.accounting import analysis, calibrate  # noqa: E402
from jax_privacy.experimental import accounting as events  # noqa: E402
from jax_privacy.experimental.monte_carlo import delta_calculation, sample_generation  # noqa: E402
from jax_privacy.matrix_factorization import banded, buffered_toeplitz, dense, sensitivity, toeplitz  # noqa: E402

SAMPLES = 10_000
RECORDS = 10**7  # of the datasets of which it wants to know the size, where only the sampling probability counts


def _training(kind, steps, **parameters):
    accountant = kind(dp_accountant_config=accounting.PldAccountantConfig())
    value = accountant.compute_epsilon(steps, analysis.DpParams(**parameters))
    return {"direction": "upper", "value": float(value)}


def pld_fixed(sigma, batch, records, steps, delta):
    return _training(
        analysis.DpsgdTrainingAccountant, steps, noise_multipliers=sigma, delta=delta,
        num_samples=records, batch_size=batch, sampling_method=analysis.SamplingMethod.FIXED_BATCH_SIZE,
    )  # fmt: skip


def pld_group(sigma, q, steps, delta, group):
    return _training(
        analysis.DpsgdTrainingUserLevelAccountant, steps, noise_multipliers=sigma, delta=delta,
        num_samples=RECORDS, batch_size=round(q * RECORDS), examples_per_user=group,
    )  # fmt: skip


def pld_calibration(q, steps, epsilon, delta):
    noise = calibrate.calibrate_noise_multiplier(
        target_epsilon=epsilon,
        accountant=analysis.DpsgdTrainingAccountant(dp_accountant_config=accounting.PldAccountantConfig()),
        batch_sizes=round(q * RECORDS), num_updates=steps, num_samples=RECORDS, target_delta=delta,
    )  # fmt: skip
    return {"direction": "upper", "value": float(noise)}


def pld_banded(sigma, rounds, batches, bands, delta):
    norm = float(np.linalg.norm(_counting(rounds, bands)))
    event = events.amplified_bandmf_event(
        sigma / norm, rounds, num_bands=bands, sampling_prob=bands / batches
    )
    value = dp_accounting.pld.PLDAccountant().compose(event).get_epsilon(delta)
    return {"direction": "upper", "value": float(value)}


def _counting(rounds, bands):
    """The square root of the prefix sums, cut to so many bands."""
    return np.array(toeplitz.optimal_max_error_strategy_coefs(rounds))[:bands]


def _estimate(scheme, sigma, coefficients, epsilon):
    """The larger of its estimates of delta in both directions, with the standard error."""
    found = []
    for positive in (True, False):
        losses, _ = sample_generation.get_privacy_loss_sample(
            scheme, sigma, coefficients, seed=0, positive_sample=positive, num_samples=SAMPLES
        )
        payoff = -np.expm1(np.minimum(epsilon - losses, 0.0))
        value = delta_calculation.delta_from_epsilon_and_samples(epsilon, losses)
        found.append((float(value), float(payoff.std(ddof=1) / SAMPLES**0.5)))
    value, error = max(found)
    return {"direction": "estimate", "value": value, "standard_error": error}


def sampled_bins(sigma, rounds, batches, bands, epsilon):
    scheme = batch_selection.BallsInBinsSampling(iterations=rounds, cycle_length=batches)
    return _estimate(scheme, sigma, _counting(rounds, bands), epsilon)


def separated_bins(sigma, rounds, batches, bands, epsilon):
    """The same scheme by its code for b-min-sep: warm start, and sampled as soon as allowed."""
    scheme = batch_selection.BMinSepSampling(sampling_prob=1.0, iterations=rounds, min_sep=batches)
    return _estimate(scheme, sigma, _counting(rounds, bands), epsilon)


def sampled_separated(sigma, rounds, separation, probability, bands, epsilon):
    scheme = batch_selection.BMinSepSampling(
        sampling_prob=probability, iterations=rounds, min_sep=separation
    )
    return _estimate(scheme, sigma, _counting(rounds, bands), epsilon)


def _cost(coefficients, rounds, batches, epochs):
    """Root mean square error of prefix sums times sensitivity, both by its own functions."""
    error = np.sqrt(np.mean(toeplitz.per_query_error(strategy_coef=coefficients, n=rounds)))
    squared = toeplitz.minsep_sensitivity_squared(coefficients, batches, epochs, n=rounds, skip_checks=True)
    return {"direction": "error", "value": float(error * np.sqrt(squared))}


def banded_unamplified(rounds, bands, batches, epochs):
    most = batches if epochs > 1 else rounds  # more bands than that: other participation patterns count
    bands = min(bands or rounds, most)
    coefficients = toeplitz.optimize_banded_toeplitz(rounds, bands)
    return _cost(coefficients, rounds, batches, epochs) | {"note": f"{bands} bands"}


def buffered_unamplified(rounds, bands, batches, epochs):
    found = buffered_toeplitz.optimize(
        n=rounds, min_sep=batches, max_participations=epochs, error="mean", max_buffers=4
    )
    coefficients = found.toeplitz_coefs(rounds)
    return _cost(coefficients, rounds, batches, epochs) | {"note": f"{len(found.buf_decay)} buffers"}


def normalised_unamplified(rounds, bands, batches, epochs):
    """A banded encoder that is not Toeplitz: every column has norm 1."""
    found = banded.optimize(rounds, bands=min(bands or rounds, batches))
    error = np.sqrt(np.mean(banded.per_query_error(found)))
    squared = banded.minsep_sensitivity_squared(found, batches, epochs)
    return {"direction": "error", "value": float(error * np.sqrt(squared)), "note": f"{found.bands} bands"}


def dense_unamplified(rounds, bands, batches, epochs):
    """Every entry free."""
    found = dense.optimize(rounds, epochs=epochs, bands=bands)
    error = np.sqrt(np.mean(dense.per_query_error(strategy_matrix=found)))
    return {"direction": "error", "value": float(error * sensitivity.fixed_epoch_sensitivity(found, epochs))}


def poisson_amplified(batches, epochs, epsilon, delta):
    """Banded encoder and cyclic Poisson sampling, the number of bands chosen by its optimiser."""
    batch, rounds = 1024, batches * epochs
    coefficients, deviation = toeplitz.optimize_coefs_for_amplifications(
        rounds, dataset_size=batch * batches, expected_batch_size=batch, epsilon=epsilon, delta=delta
    )
    error = np.sqrt(np.mean(toeplitz.per_query_error(strategy_coef=coefficients, n=rounds)))
    return {"direction": "error", "value": float(error * deviation), "note": f"{len(coefficients)} bands"}
