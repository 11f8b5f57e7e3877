"""Checks by property of chapters 7 to 12; the rules stand in the package."""

import numpy as np

from .... import accounting, gaussian, matrices, mixtures
from ...._base.lazy_scipy import special
from ....mechanisms.calibration import effective_noise
from ... import one_step, truth
from .parsed import array, arrays, like, refuse


def renyi_5(answer):
    """An order, a rate and a ratio at which the weight 1/2 puts zeta below its tangent [ZW-3]."""
    order, q, y = arrays(answer, "The answer must be three numbers: order, rate, ratio.", 0, 0, 0)
    refuse(not (order > 1 and 0 < q < 1 and y > 0), "The three numbers must lie in the theorem's range: order, then rate, then ratio.")
    omega, omega_star = 1 - q + q * y, q + (1 - q) * y
    terms = omega**order / 2, y ** (1 - order) * omega_star**order / 2, -(omega ** (1 - order))
    line = ((order * q + 1 - order * q) / 2 + (order - 1) * q) * (y - 1)
    # Far away the terms are so large that rounding alone might put their sum below.
    rounding = 1e-12 * (1 + order) * (sum(map(abs, terms)) + abs(line))
    if sum(terms) - line > -0.01 - rounding:
        return "Here zeta is not far enough below its tangent. Compare 1/2 with rho: which of the two terms got too much?"


def renyi_6(answer):
    """Two laws on three points whose Renyi divergences change their order between orders 2 and 8."""
    form = "The answer is a pair of lists of three probabilities each."
    laws = array(answer, form, 2)
    refuse(laws.shape != (2, 3), form)
    refuse(laws.min() < 1e-3 or np.abs(laws.sum(axis=1) - 1).max() > 1e-6, "Each list must add up to 1, with no probability below 0.001.")
    first, second = laws
    differences = []
    for order in (2, 8):
        forward, backward = (np.log(np.sum(a**order * b ** (1 - order))) for a, b in ((first, second), (second, first)))
        differences.append((forward - backward) / (order - 1))
    refuse(differences[0] < 0.05, "At order 2 the first law against the second must be the larger divergence, by 0.05 or more.")
    refuse(differences[1] > -0.05, "At order 8 the second law against the first must be larger, by 0.05. What do high orders look at?")


def large_batches_6(answer):
    """A budget (epsilon, delta, rounds, q) for which sampling lowers the effective noise."""
    epsilon, delta, rounds, q = arrays(answer, "The answer must be four numbers: epsilon, delta, rounds, sampling probability.", 0, 0, 0, 0)
    refuse(not (epsilon >= 0.01 and 0 < delta <= 0.3 and 0.1 <= q < 1), "Epsilon, delta or the sampling probability is outside its range.")
    refuse(rounds != int(rounds) or not 10 <= rounds <= 1000, "The number of rounds must be a whole number from 10 to 1000.")
    without = rounds**0.5 / gaussian.calibrate(epsilon, delta)
    if effective_noise(q, int(rounds), epsilon, delta) > without * (1 - 1e-3):
        return "Sampling does not lower the effective noise by 0.1% here. When is the rate negative, and how does its size fall with the rounds?"


def one_step_7(answer):
    """A target (epsilon, delta, q) outside the sufficient condition at which the effective noise falls."""
    epsilon, delta, q = arrays(answer, "The answer must be three numbers: epsilon, delta, sampling probability.", 0, 0, 0)
    if not (epsilon > 0 and 0 < delta <= 1e-2 and 3 * delta * (1 - 1e-12) <= q <= 1):
        return "Epsilon, delta or the sampling probability is outside its range."
    sigma = one_step.noise_multiplier(epsilon, delta, q)
    minus, _ = one_step.threshold_distances(epsilon, sigma, q)
    refuse(minus > -0.1, "The threshold is not far enough below 1 here. On the map, go left or down.")
    refuse(one_step.elasticity(epsilon, sigma, q) > 0.9, "The effective noise does not fall clearly here. On the map, go right or up.")


def matrix_5(answer):
    """(shift, event): a shift that knows the noise of its own round, and the event that betrays it."""
    if not isinstance(answer, (tuple, list)) or len(answer) != 2 or not all(map(callable, answer)):
        return "The answer must be a pair of functions (shift, event)."
    shift, event = answer
    noise = special.ndtri((np.arange(200_000) + 0.5) / 200_000)
    moved = like(noise, shift(noise), float)
    refuse(moved is None or not np.abs(moved).max() <= 2, "shift must return an array like its argument, with values between -2 and 2.")
    hits = [like(noise, event(x), bool) for x in (noise + moved, noise)]
    refuse(any(found is None for found in hits), "event must return an array like its argument, of truth values.")
    present, absent = map(np.mean, hits)
    if present - np.exp(4) * absent < 0.9:
        return "Not large enough yet. Is there a set that the outputs without the record never hit, and that is near everywhere?"


def matrix_6(answer):
    """A lower-triangular encoder of four rounds with an error at equal privacy of at most 1.32."""
    form = "The answer is a lower-triangular array with four rows, four columns and a positive diagonal."
    C = array(answer, form, 2)
    refuse(C.shape != (4, 4) or np.any(np.triu(C, 1)) or np.diag(C).min() <= 0, form)
    error = np.linalg.norm(C, axis=0).max() * np.linalg.norm(np.tri(4) @ np.linalg.inv(C)) / 2
    refuse(not error <= 1.32, "The error at equal privacy is still above 1.32. Compare the lengths of the columns.")


def conditional_5(answer):
    """(alpha, P1, Q1) for which charging each bad output under its own law is worth half or less."""
    form = "The answer is an order and two lists of three probabilities."
    alpha, P, Q = arrays(answer, form, 0, 1, 1)
    refuse(not len(P) == len(Q) == 3, form)
    refuse(not alpha >= 1 or not min(*P, *Q) > 0, "Give an order of at least 1 and two lists of three positive probabilities.")
    refuse(max(abs(sum(P) - 1), abs(sum(Q) - 1)) > 1e-6, "Each list must add up to 1.")
    split = P[1] + alpha * Q[2]
    if 2 * split >= P[1] + P[2]:
        return "Charging everything under the first law is not twice as dear. Make the output 2 rarer without the record."
    if 2 * split >= alpha * (Q[1] + Q[2]):
        return "Charging everything under the second law is not twice as dear. Make the output 1 rarer with the record."


def conditional_6(answer):
    """A past of eleven outputs after which column 1 is explained by the others."""
    form = "The answer is a list of eleven numbers, each between -10 and 10."
    past = array(answer, form)
    refuse(len(past) != 11 or not np.abs(past).max() <= 10, form)
    encoder = matrices.optimal_counting(12)
    above, variance = encoder.entries()[:11], encoder.column_norms()[0] ** 2
    sets = (np.arange(2**12)[:, None] >> np.arange(12) & 1).astype(float)
    log = sets.sum(axis=1) * special.logit(0.25) - np.sum((past - sets @ above.T) ** 2, axis=1) / (2 * variance)
    exact = special.softmax(log) @ sets[:, 0]
    bound = special.expit(special.logit(0.25) + (past @ above[:, 0] - np.sum(above[:, 0] ** 2) / 2) / variance)
    if not exact < bound / 4:
        return "The true posterior probability is not below a quarter of the bound. Which outputs contain column 1, and which other columns explain them?"


def mmcc_6(answer):
    """(sigma, q, delta) for which independent rows report 1.4 times the true epsilon, add direction."""
    sigma, q, delta = arrays(answer, "The answer must be three numbers: sigma, q, delta.", 0, 0, 0)
    refuse(not (0.2 <= sigma <= 10 and 0.05 <= q <= 0.9 and 1e-8 <= delta <= 1e-2), "Sigma, q or delta is outside its range.")
    rows = [(mixtures.binomial(k, q, sigma), 1) for k in (1, 2)]
    apart = accounting.epsilon(rows, delta, "add", "lattice").lower
    exact = truth.two_rounds(matrices.toeplitz([1.0, 1.0]), sigma, q).epsilon(delta, "add").upper
    if not apart >= 1.4 * exact > 0:
        return "Independent rows are not yet 1.4 times the truth. How many coins does each of the two see when the noise is small?"
