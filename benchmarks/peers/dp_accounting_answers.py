"""dp_accounting's answers, with its default settings. Imported by _child.py only."""

import numpy as np
from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.dp_event import MixtureOfGaussiansDpEvent
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


def pld_gaussian(sigma, steps, delta):
    return _upper(PLDAccountant(), GaussianDpEvent(sigma), steps, delta)


def rdp_gaussian(sigma, steps, delta):
    return _upper(RdpAccountant(), GaussianDpEvent(sigma), steps, delta)


def rdp_renyi(sigma, q, order):
    accountant = RdpAccountant(orders=[order]).compose(_sampled(sigma, q))
    return {"direction": "value", "value": float(accountant.rdp[0])}
