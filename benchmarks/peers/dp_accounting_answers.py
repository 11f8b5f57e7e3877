"""dp_accounting's answers, with its default settings. Imported by _child.py only."""

import numpy as np
from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
    calibrate_dp_mechanism,
)
from dp_accounting.dp_event import MixtureOfGaussiansDpEvent, TruncatedSubsampledGaussianDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy import stats


def _upper(accountant, event, steps, delta):
    value = accountant.compose(SelfComposedDpEvent(event, steps)).get_epsilon(delta)
    return {"direction": "upper", "value": float(value)}


def _sampled(sigma, q):
    return PoissonSampledDpEvent(q, GaussianDpEvent(sigma))


def pld_poisson(sigma, q, steps, delta):
    return _upper(PLDAccountant(), _sampled(sigma, q), steps, delta)


def rdp_poisson(sigma, q, steps, delta):
    return _upper(RdpAccountant(), _sampled(sigma, q), steps, delta)


def rdp_fixed(sigma, batch, records, steps, delta):
    # Neighbours replace a record: a sum of vectors of norm at most 1 then changes by at most 2.
    event = SampledWithoutReplacementDpEvent(records, batch, GaussianDpEvent(sigma / 2))
    answer = _upper(RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE), event, steps, delta)
    return answer | {"direction": "upper, replace-one"}


def pld_group(sigma, q, steps, delta, group):
    sensitivities = np.arange(group + 1)
    event = MixtureOfGaussiansDpEvent(sigma, sensitivities, stats.binom.pmf(sensitivities, group, q))
    return _upper(PLDAccountant(), event, steps, delta)


def pld_truncated(sigma, q, size, largest, steps, delta):
    # Neighbours blank a record out: for this event the accountant knows no others.
    accountant = PLDAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    return _upper(accountant, TruncatedSubsampledGaussianDpEvent(size, q, largest, sigma), steps, delta)


def _calibration(accountant, q, steps, epsilon, delta):
    event = lambda sigma: SelfComposedDpEvent(_sampled(sigma, q), steps)
    return {"direction": "upper", "value": float(calibrate_dp_mechanism(accountant, event, epsilon, delta))}


def pld_calibration(q, steps, epsilon, delta):
    return _calibration(PLDAccountant, q, steps, epsilon, delta)


def rdp_calibration(q, steps, epsilon, delta):
    return _calibration(RdpAccountant, q, steps, epsilon, delta)


def pld_gaussian(sigma, steps, delta):
    return _upper(PLDAccountant(), GaussianDpEvent(sigma), steps, delta)


def rdp_gaussian(sigma, steps, delta):
    return _upper(RdpAccountant(), GaussianDpEvent(sigma), steps, delta)


def rdp_renyi(sigma, q, order):
    accountant = RdpAccountant(orders=[order]).compose(_sampled(sigma, q))
    return {"direction": "value", "value": float(accountant.rdp[0])}
