"""prv-accountant's answers: error in epsilon 0.01, in delta a thousandth of delta. Imported by _child.py only."""

from prv_accountant import GaussianMechanism, PoissonSubsampledGaussianMechanism, PRVAccountant


def _bounds(variable, steps, delta):
    accountant = PRVAccountant(variable, max_self_compositions=steps, eps_error=0.01, delta_error=delta / 1000)
    lower, value, upper = accountant.compute_epsilon(delta, steps)
    return {"direction": "upper", "value": float(upper), "lower": float(lower), "estimate": float(value)}


def prv_prv(sigma, q, steps, delta):
    variable = PoissonSubsampledGaussianMechanism(sampling_probability=q, noise_multiplier=sigma)
    return _bounds(variable, steps, delta)


def prv_gaussian(sigma, steps, delta):
    return _bounds(GaussianMechanism(noise_multiplier=sigma), steps, delta)
