"""The answers of Opacus's accountants, with their default settings. Imported by _child.py only.

The accountants are NumPy and SciPy; the rest of the package needs PyTorch, several hundred megabytes. It is left out:
the package's own start-up is not run, and the one PyTorch class that the accountants name in a type is a stand-in.
"""

import importlib.util
import sys
import types


def _without_pytorch():
    package = types.ModuleType("opacus")
    package.__path__ = list(importlib.util.find_spec("opacus").submodule_search_locations)
    optimizers = types.ModuleType("opacus.optimizers")
    optimizers.DPOptimizer = object
    sys.modules.update({"opacus": package, "opacus.optimizers": optimizers})


_without_pytorch()

from opacus.accountants import PRVAccountant, RDPAccountant  # noqa: E402
from opacus.accountants.analysis import rdp  # noqa: E402
from opacus.accountants.utils import get_noise_multiplier  # noqa: E402


def _upper(accountant, sigma, q, steps, delta):
    accountant.history = [(sigma, q, steps)]
    return {"direction": "upper", "value": float(accountant.get_epsilon(delta))}


def prv_poisson(sigma, q, steps, delta):
    return _upper(PRVAccountant(), sigma, q, steps, delta)


def rdp_poisson(sigma, q, steps, delta):
    return _upper(RDPAccountant(), sigma, q, steps, delta)


def _calibration(accountant, q, steps, epsilon, delta):
    noise = get_noise_multiplier(
        target_epsilon=epsilon, target_delta=delta, sample_rate=q, steps=steps, accountant=accountant
    )
    return {"direction": "upper", "value": float(noise)}


def prv_calibration(q, steps, epsilon, delta):
    return _calibration("prv", q, steps, epsilon, delta)


def rdp_calibration(q, steps, epsilon, delta):
    return _calibration("rdp", q, steps, epsilon, delta)


def prv_gaussian(sigma, steps, delta):
    return _upper(PRVAccountant(), sigma, 1.0, steps, delta)


def rdp_gaussian(sigma, steps, delta):
    return _upper(RDPAccountant(), sigma, 1.0, steps, delta)


def rdp_renyi(sigma, q, order):
    value = rdp.compute_rdp(q=q, noise_multiplier=sigma, steps=1, orders=[order])
    return {"direction": "value", "value": float(value[0])}
