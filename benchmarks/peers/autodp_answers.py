"""autodp's answers, with its default settings. Imported by _child.py only."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", SyntaxWarning)
    from autodp import calibrator_zoo, mechanism_zoo, transformer_zoo


def _subsampled(sigma, q):
    sample = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
    return sample(mechanism_zoo.GaussianMechanism(sigma=sigma), q, improved_bound_flag=True)


def _upper(mechanism, steps, delta):
    composed = transformer_zoo.Composition()([mechanism], [steps])
    return {"direction": "upper", "value": float(composed.get_approxDP(delta))}


def rdp_poisson(sigma, q, steps, delta):
    return _upper(_subsampled(sigma, q), steps, delta)


def fourier_fourier(sigma, q, steps, delta):
    """Its analytical Fourier accountant; the larger of both directions. It states no error bound."""
    values = []
    for direction in ("remove_only", "add_only"):
        sample = transformer_zoo.AmplificationBySampling_pld(PoissonSampling=True, neighboring=direction)
        one = sample(mechanism_zoo.GaussianMechanism(sigma=sigma, phi_off=False), q)
        values.append(float(transformer_zoo.ComposeAFA()([one], [steps]).get_approxDP(delta)))
    return {"direction": "value", "value": max(values)}


def rdp_fixed(sigma, batch, records, steps, delta):
    # Neighbours replace a record: a sum of vectors of norm at most 1 then changes by at most 2.
    mechanism = mechanism_zoo.GaussianMechanism(sigma=sigma / 2)
    mechanism.neighboring = "replace_one"
    sample = transformer_zoo.AmplificationBySampling(PoissonSampling=False)
    one = sample(mechanism, batch / records, improved_bound_flag=True)
    return _upper(one, steps, delta) | {"direction": "upper, replace-one"}


def rdp_calibration(q, steps, epsilon, delta):
    """Its calibrator wants a range of noise multipliers to search."""
    composed = lambda sigma, name=None: transformer_zoo.Composition()([_subsampled(sigma, q)], [steps])
    found = []
    calibrator_zoo.eps_delta_calibrator()(
        lambda sigma, name=None: found.append(sigma) or composed(sigma), epsilon, delta, [0.3, 20.0]
    )
    return {"direction": "upper", "value": float(found[-1])}  # the one that it returns is made last


def exact_gaussian(sigma, steps, delta):
    one = mechanism_zoo.ExactGaussianMechanism(sigma=sigma)
    composed = transformer_zoo.ComposeGaussian()([one], [steps])
    return {"direction": "value", "value": float(composed.get_approxDP(delta))}


def rdp_renyi(sigma, q, order):
    return {"direction": "upper", "value": float(_subsampled(sigma, q).RenyiDP(order))}
