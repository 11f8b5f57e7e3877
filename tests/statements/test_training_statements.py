"""Statements of chapter 17, each on instances small enough to enumerate or simulate."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import special

from dplib import audit, gaussian, matrices, utility
from dplib.lessons import studies


def rates(tau, mu, b):
    """(p, q): probabilities that the largest of b normal means exceeds tau."""
    rest = (b - 1) * special.log_ndtr(tau)
    return [-np.expm1(special.log_ndtr(tau - shift) + rest) for shift in (2 * mu, mu)]


def shuffled_scores(gram, runs, rng):
    """ln(P_2 / P_1) in runs from P_2 and from P_1, from the inner products of the modes."""
    b, own, factor = len(gram), np.diag(gram), np.linalg.cholesky(gram)
    for shift in (2, 1):
        s = rng.standard_normal((runs, b)) @ factor.T + shift * gram[rng.integers(b, size=runs)]
        yield special.logsumexp(2 * s - 2 * own, axis=1) - special.logsumexp(s - own / 2, axis=1)


@pytest.mark.parametrize("b, size", [(2, 2), (3, 2), (2, 3)])
def test_shuffling_makes_the_two_mixtures(b, size):
    """[A-19] Others at -1: over all permutations the sums, moved by B, are yours + 1 in a uniform batch."""
    for yours in (1, 0):
        gradients, seen = [yours] + [-1] * (b * size - 1), {}
        for order in permutations(range(b * size)):
            sums = tuple(sum(gradients[i] for i in order[j * size : (j + 1) * size]) + size for j in range(b))
            seen[sums] = seen.get(sums, 0) + 1
        wanted = {tuple((yours + 1) * (j == i) for j in range(b)) for i in range(b)}
        assert set(seen) == wanted and len(set(seen.values())) == 1


def test_event_of_the_largest_mean():
    """[A-19] p and q against simulated shuffled DP-SGD, and epsilon between an audit and the known batches."""
    b, mu, delta, rng = 8, 1.2, 1e-2, np.random.default_rng(0)
    for shift, exact in zip((2, 1), rates(2.5, mu, b)):
        means = rng.standard_normal((400_000, b))
        means[:, 0] += shift * mu  # by symmetry
        assert abs(np.mean(means.max(axis=1) > 2.5) - exact) < 4 * math.sqrt(exact / 400_000)
    tau = np.linspace(0, 9, 2001)
    p, q = rates(tau, mu, b)
    useful = p > 2 * delta
    event = np.max(np.log((p[useful] - delta) / q[useful]))
    gram = mu**2 * np.eye(b)
    found = audit.epsilon_lower_bound(*shuffled_scores(gram, 40_000, rng), delta, direction="remove")
    assert 0.8 * event < found.lower < gaussian.epsilon(mu, delta)
    assert event < gaussian.epsilon(mu, delta)


def test_noise_for_poisson_is_too_small_for_shuffling():
    """[A-19] With the noise that Poisson sampling needs at epsilon, shuffling spends at least three times that."""
    study = studies.load("training")
    for row in studies.find(study["noise"], scheme="DP-SGD, Poisson"):
        mu = math.sqrt(study["settings"]["epochs"]) / row["noise_multiplier"]
        p, q = rates(np.linspace(0, 2 * mu + 9, 4001), mu, study["settings"]["batches_per_epoch"])
        useful = p > 2e-5
        assert np.max(np.log((p[useful] - 1e-5) / q[useful])) > 3 * row["epsilon"]


def test_study_of_training_is_complete():
    """Every scheme at every epsilon, fifty seeds, and the same learning rate for all where one is compared."""
    study = studies.load("training")
    settings = study["settings"]
    assert not study["unfinished"]
    for scheme in settings["schemes"]:
        for epsilon, common in zip(settings["epsilons"], settings["common_rates"]):
            place = {"scheme": scheme, "epsilon": epsilon}
            (noise,), (found,) = (studies.find(study[table], **place) for table in ("noise", "encoders"))
            encoder = matrices.toeplitz(np.pad(found["coefficients"], (0, 256 - len(found["coefficients"]))))
            assert utility.rmse(encoder, found["noise_multiplier"]) == pytest.approx(found["rmse"], rel=1e-5)
            assert found["rmse"] == pytest.approx(noise["rmse"], rel=5e-3)
            assert len(studies.find(study["tuning"], **place)) == len(settings["learning_rates"])
            (chosen,) = studies.find(study["runs"], **place, batches="as accounted")
            assert len(chosen["accuracies"]) == 50 and 0.7 < np.mean(chosen["accuracies"]) < 0.98
            assert studies.find(study["runs"], **place, learning_rate=common)
