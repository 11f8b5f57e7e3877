"""What both questions to a mechanism that draws samples have in common, checked."""

from __future__ import annotations

from .. import balls_in_bins
from .._base import validate as check
from ..balls_in_bins.bounded_draws import SAMPLES

FAILURE = 1e-9  # of a certificate, at most
_ROUGH = 4096  # draws of the estimate that a failure probability is chosen by
_SEARCH_SHARE = 1e-3  # of delta, at most, that a search spends on its failures


class SamplingRequest:
    """Direction, method, seed, samples and failure probability of a question; methods : those that the mechanism has.

    Raises ValueError or TypeError on bad input.
    """

    def __init__(self, methods, direction, method, seed, samples, failure_probability):
        self.side = check.side(direction)
        self.method = check.choice("method", method, methods)
        self.seed = check.whole("seed", seed, at_least=0, at_most=2**63 - 1)
        self.samples = samples
        if samples is not None:
            least = balls_in_bins.FEWEST_TUPLES if method == "certificate" else 2
            self.samples = check.whole("samples", samples, at_least=least, at_most=balls_in_bins.MOST_SAMPLES)
        self.failure_probability = failure_probability
        if failure_probability is not None:
            self.failure_probability = check.real("failure_probability", failure_probability, at_least=1e-300, below=1)
            if method != "certificate":
                raise ValueError(f"failure_probability goes with method='certificate' only; got method={method!r}")

    def failure_for(self, delta):
        """The failure probability of a search for what satisfies `delta`; it is taken off delta [N-2.1s]."""
        if self.failure_probability is None:
            return min(FAILURE, _SEARCH_SHARE * delta)
        return check.real("failure_probability", self.failure_probability, above=0, below=delta)

    def delta(self, account, epsilon):
        """delta of a `bounded_draws.Account`, by the method of this question: an Estimate or a Certificate."""
        if self.method != "certificate":
            return account.estimate(epsilon, self.seed, self.samples)
        failure = self.failure_probability
        if failure is None:
            failure = min(FAILURE, account.estimate(epsilon, self.seed, _ROUGH).value / 10)
        return account.certify(epsilon, self.samples or SAMPLES, failure, self.seed)

    def epsilon(self, account, delta):
        """The same for epsilon."""
        if self.method != "certificate":
            return account.solve(delta, self.seed, self.samples)[0]
        return account.certify_epsilon(delta, self.samples or SAMPLES, self.failure_for(delta), self.seed)
