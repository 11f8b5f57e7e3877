"""The smallest noise, or epsilon, that a certificate proves: candidates near the estimated one [A-15].

A certificate is for one noise and one epsilon. Here a line estimate finds where delta meets the target, a
pilot predicts by how much the certified bound will exceed it, and a few candidates beyond are tried on fresh
samples. All candidates are fixed before the first is tried; each has its part of the failure probability.
"""

from __future__ import annotations

import math

from . import _certificate, _importance
from .results import Certificate

METHOD = "tuples"
_MARGINS = (1.0, 3.0, 10.0)  # of the candidates, in units of the doubt about the prediction
_START_ERROR = 1e-3  # relative, of the estimated delta


def smallest_noise(gram, epsilon, delta, side, *, samples, failure_probability, seed, checkpoint):
    """(noise multiplier, Certificate that delta at `epsilon` is at most `delta` there); gram at noise multiplier 1."""
    start, _ = _importance.solve_scale(gram, epsilon, delta, side, seed=seed, relative_error=_START_ERROR)
    found = _importance.estimate(gram / start**2, epsilon, side, seed=seed, relative_error=0.1)
    noise, [result] = _certificate.smallest_certified(
        gram,
        epsilon,
        delta,
        start,
        -found.d_log_sigma,
        (side,),
        samples,
        failure_probability,
        seed,
        checkpoint,
    )
    return float(noise), Certificate(result.upper, failure_probability, samples, METHOD)


def smallest_epsilon(gram, delta, side, *, samples, failure_probability, seed, checkpoint) -> Certificate:
    """Certificate of an epsilon at which delta is at most `delta`, a little above the smallest; gram over sigma^2."""
    share = failure_probability / len(_MARGINS)
    start, _ = _importance.solve_epsilon(gram, delta, side, seed=seed, relative_error=_START_ERROR)
    found = _importance.estimate(gram, start, side, seed=seed, relative_error=_START_ERROR)
    plan = _certificate.prepare(gram, start, side, samples, share, seed)
    excess = _certificate.overshoot(plan, samples, share)
    doubt = float(plan.pilot.std()) / math.sqrt(samples) / float(plan.pilot.mean()) + _START_ERROR
    for attempt, margin in enumerate(_MARGINS):
        # By so much delta has to fall from `start`, where it is about `delta` (less where start is 0).
        fall = math.log(excess * (1 + margin * doubt)) + found.log_value - math.log(delta)
        epsilon = start + max(fall, 0.0) / -found.d_epsilon
        plan = _certificate.prepare(gram, epsilon, side, samples, share, seed)
        path = None if checkpoint is None else f"{checkpoint}.{attempt}.{side}.npz"
        if _certificate.run(plan, samples, share, seed, (attempt, int(side == "add")), path).upper <= delta:
            return Certificate(epsilon, failure_probability, samples, METHOD)
    raise ValueError(
        f"samples must be more to certify an epsilon up to {epsilon:.6g} at delta={delta!r}; got {samples!r}"
    )
