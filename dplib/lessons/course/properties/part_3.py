"""Checks by property of chapters 13 to 19, 21 and 22; the rules stand in the package."""

import math

import numpy as np

from .... import gaussian, matrices
from ...._base.lazy_scipy import linalg, signal, special
from ....matrices import prefix_errors, sensitivity
from ....mechanisms import BallsInBins, PoissonDPSGD
from ....mechanisms.calibration import calibrate
from ....mixtures import VectorMixture, binomial
from ....results import NoBracketError
from .parsed import array, arrays, refuse


def tree_4(answer):
    """(a, q, T, alpha): randomised response for which add is at least 1.38 times remove."""
    a, q, rounds, alpha = arrays(answer, "the answer is a tuple of four numbers (a, q, T, alpha)", 0, 0, 0, 0)
    if not (0.5 < a < 1 and 0 < q <= 1 and 1 <= rounds <= 8 and rounds == int(rounds) and 1 <= alpha < math.inf):
        return "needed are 1/2 < a < 1, 0 < q <= 1, a whole number T from 1 to 8, and alpha >= 1"
    remove = add = 0.0
    chances = q * a + (1 - q) * (1 - a), 1 - a  # of a 1, with and without the record
    for k in range(int(rounds) + 1):
        with_z, without = (math.comb(int(rounds), k) * p**k * (1 - p) ** (rounds - k) for p in chances)
        remove, add = remove + max(with_z - alpha * without, 0), add + max(without - alpha * with_z, 0)
    refuse(remove < 1e-6, "the remove direction is below 1e-6; try a smaller order alpha")
    if add < 1.38 * remove:
        return f"add is {add / remove:.3f} times remove: watch which outcomes count at your alpha, and move alpha to where one of them stops counting"


def tree_6(answer):
    """(p, q, epsilon): the printed bound on the loss tail is exceeded four times."""
    p, q, epsilon = arrays(answer, "the answer is a tuple (p, q, epsilon) with two lists of numbers and a number", 1, 1, 0)
    refuse(p.shape != q.shape or not 2 <= len(p) <= 6, "p and q are flat lists of equal length, 2 to 6")
    if not (np.all(p > 0) and np.all(q > 0) and abs(p.sum() - 1) < 1e-9 and abs(q.sum() - 1) < 1e-9):
        return "p and q need positive entries that sum to 1"
    refuse(not 0 < epsilon <= 1, "epsilon must lie above 0 and be at most 1")
    tail = p[np.log(p / q) > 2 * epsilon].sum()
    delta = np.maximum(p - np.exp(epsilon) * q, 0).sum()
    refuse(tail == 0, "no outcome has a loss above 2 epsilon")
    times = tail * epsilon * np.exp(epsilon) / delta
    if times < 4:
        return f"the tail is {times:.2f} times the printed bound; ask what a loss far above 2 epsilon adds to delta, and at which epsilon the factor can be large"


def bins_4(answer):
    """(c, sigma): an account that keeps the sign of c reports a hundredth of the true delta."""
    c, sigma = arrays(answer, "the answer is a pair of numbers (c, sigma)", 0, 0)
    refuse(not (-3 <= c < 0 and 0.05 <= sigma <= 100), "needed are -3 <= c < 0 and a noise multiplier from 0.05 to 100")

    def delta(inner):
        return VectorMixture([[1.0, inner], [0.0, 1.0]], [0.5, 0.5], sigma).hockey_stick(1.0, nodes=800)

    true, reported = delta(-c), delta(c)
    refuse(true < 1e-5, "the true delta at epsilon 1 is below 1e-5; take less noise")
    if true < 100 * reported:
        return f"the true delta is {true / reported:.3g} times the report: with which amount of noise does a single mode no longer decide?"


def bins_6(answer):
    """Four vectors whose absolute inner products are no table of inner products."""
    modes = array(answer, "the answer is a list of four lists of numbers, all of the same length", 2)
    refuse(len(modes) != 4 or not 1 <= modes.shape[1] <= 8, "needed are four vectors of equal length, at most 8")
    refuse(not np.any(modes), "the entries must not all be zero")
    table = np.abs(modes @ modes.T)
    least = np.linalg.eigvalsh(table).min() / table.diagonal().max()
    if least >= -0.1:
        return f"the smallest eigenvalue is {least:.3f} times the largest diagonal entry; put the four in a circle: which inner products may vanish, and what must the product of the signs around the circle be?"


def monte_carlo_5(answer):
    """(modes, centres): importance sampling that reports 3% and is wrong by a factor of ten."""
    modes, centres = arrays(answer, "the answer is a pair (modes, centres) of lists of points in the plane", 2, 2)
    if modes.shape != (2, 2) or not 1 <= len(centres) <= 3 or centres.shape[1] != 2:
        return "needed are two modes and one to three centres, each a list of two numbers"
    if not (np.all(modes >= 0) and modes.max() <= 5 and np.abs(centres).max() <= 15):
        return "entries of modes must lie between 0 and 5, those of centres between -15 and 15"

    def excess(u):
        return np.maximum(np.mean(np.exp(u @ modes.T - np.sum(modes**2, axis=1) / 2), axis=-1) - math.exp(3), 0)

    true = VectorMixture(modes, [0.5, 0.5], 1.0).hockey_stick(3.0, nodes=800)
    u = centres[np.arange(20_000) % len(centres)] + np.random.default_rng(15).standard_normal((20_000, 2))
    summands = excess(u) / np.mean(np.exp(u @ centres.T - np.sum(centres**2, axis=1) / 2), axis=1)
    value = summands.mean()
    refuse(true < 1e-8, "the true delta at epsilon 3 is below 1e-8; take longer modes")
    refuse(value == 0, "no draw fell into the region at all; move the centre to where one of the modes explains a large ratio")
    error = summands.std() / math.sqrt(20_000) / value
    if error > 0.03:
        return f"the reported relative standard error is {error:.0%}: some draws reach what you meant to overlook, or the centre is not at the best point"
    if value > true / 10:
        return f"the estimate is {value / true:.2f} times the truth: is what you overlook the larger part?"


def monte_carlo_6(answer):
    """(values, probabilities): a law for which mean + 1.645 standard errors is no upper bound."""
    values, chances = arrays(answer, "the answer is a pair of lists of numbers (values, probabilities)", 1, 1)
    refuse(values.shape != chances.shape or not 1 <= len(values) <= 5, "values and probabilities are flat lists of equal length, at most 5")
    if not (np.all(values >= 0) and np.all(values <= 1) and np.all(chances >= 0) and abs(chances.sum() - 1) < 1e-9):
        return "values must lie in [0, 1], and probabilities be at least 0 and sum to 1"
    mean = values @ chances
    if mean < 5e-4 * (1 - 1e-9):
        return f"the mean is {mean:.2g}, below 5e-4"
    counts = np.random.default_rng(0).multinomial(1000, chances / chances.sum(), size=20_000)
    seen = counts @ values / 1000
    variance = np.maximum(counts @ values**2 / 1000 - seen**2, 0) * 1000 / 999
    failed = np.mean(seen + 1.645 * np.sqrt(variance / 1000) < mean / 2)
    if failed < 0.55:
        return f"the bound is below half of the mean in {failed:.0%} of the experiments: what if the samples show nothing at all?"


def encoder_4(answer):
    """(preferred, better): Toeplitz coefficients that the printed objective ranks the wrong way."""
    pair = arrays(answer, "the answer is a pair of lists of 8 numbers", 1, 1)
    if any(c.shape != (8,) or c[0] != 1 or not np.all((c >= 0) & (c < 1e6)) for c in pair):
        return "needed are two lists of 8 non-negative numbers, each beginning with 1"
    weights, errors, claims = np.arange(8, 0, -1), [], []
    for c in pair:
        for found, series in ((errors, signal.lfilter([1.0], c, np.ones(8))), (claims, np.diff(c, prepend=0.0))):
            found.append(np.linalg.norm(c) * np.sqrt(weights @ series**2))
    if claims[1] < 1.2 * claims[0]:
        return f"the printed objective of the second is {claims[1] / claims[0]:.3f} times that of the first: which coefficients does it dislike?"
    if errors[0] < 1.2 * errors[1]:
        return f"the true error of the first is {errors[0] / errors[1]:.3f} times that of the second: which coefficients take more noise back?"


def encoder_6(answer):
    """Toeplitz coefficients that are within about 5% of the optimum at two targets."""
    c = array(answer, "the answer is a list of numbers", 1)
    if not 1 <= len(c) <= 64 or c[0] != 1 or not np.all((c >= 0) & (c <= 10)):
        return "needed are at most 64 coefficients between 0 and 10, the first one equal to 1"
    encoder = matrices.toeplitz(np.pad(c, (0, 64 - len(c))))
    for epsilon, limit in ((0.5, 43.1), (8.0, 4.15)):
        noise = calibrate(BallsInBins(encoder, 1.0, 8, 8), epsilon=epsilon, delta=1e-5).noise_multiplier
        if (error := prefix_errors.rmse(encoder, noise)) > limit:
            return f"the RMSE at epsilon {epsilon:g} is {error:.4g}; does this target ask for more or for less correlation?"


def training_6(answer):
    """Toeplitz coefficients with a small error of the last model under fixed batches."""
    c = array(answer, "the answer is a list of numbers", 1)
    if not 1 <= len(c) <= 16 or c[0] != 1 or not np.all((c >= 0) & (c <= 100)):
        return "needed are at most 16 coefficients between 0 and 100, the first one equal to 1"
    c, weights, carried = np.pad(c, (0, 256 - len(c))), np.zeros(256), 0.0
    for t, rate in reversed(list(enumerate(np.interp(np.arange(256), [64, 255], [1.0, 0.05])))):
        weights[t] = carried = rate + 0.9 * carried
    sigma = sensitivity.round_robin(matrices.toeplitz(c), 16) / gaussian.calibrate(2.0, 9.99e-6)
    left = linalg.solve_triangular(linalg.toeplitz(c, np.zeros(256)).T, weights / weights.mean(), lower=False)
    if (error := sigma * np.linalg.norm(left)) > 37.5:
        return f"the error of the last model is {error:.4g}: only the last sum counts, so how much of each noise should the next round take back?"


def which_accountant_6(answer):
    """(sigma, T, delta): coins with one expected participation cost a quarter more than one known round."""
    sigma, rounds, delta = arrays(answer, "the answer is a tuple of three numbers (sigma, T, delta)", 0, 0, 0)
    if not (0.5 <= sigma <= 10 and 2 <= rounds <= 1000 and rounds == int(rounds) and 1e-9 <= delta <= 1e-3):
        return "needed are sigma from 0.5 to 10, a whole number T from 2 to 1000, and delta from 1e-9 to 1e-3"
    once = gaussian.epsilon(1 / sigma, delta)
    if once > 9:
        return f"epsilon of the known round is {once:.3g}, above 9; take more noise or a larger delta"
    coins = PoissonDPSGD(sigma, 1 / rounds, int(rounds)).epsilon(delta).lower
    if coins < 1.25 * once:
        return f"the coins cost {coins / once:.3f} times as much: which bad luck with coins has a probability far above your delta, and how many rounds make it likely?"


def common_mistakes_6(answer):
    """(sigma, q, T, delta): T times the epsilon of one round, at the same delta, is a tenth of the truth or less."""
    sigma, q, rounds, delta = arrays(answer, "the answer is a tuple of four numbers (sigma, q, T, delta)", 0, 0, 0, 0)
    if not (0.1 <= sigma <= 2 and 1e-6 <= q <= 0.1 and 1 <= rounds <= 10_000 and rounds == int(rounds)):
        return "needed are sigma from 0.1 to 2, q from 1e-6 to 0.1, and a whole number T from 1 to 10000"
    refuse(not 1e-9 <= delta <= 1e-5, "needed is a delta from 1e-9 to 1e-5")
    claimed = rounds * PoissonDPSGD(sigma, q, 1).epsilon(delta).upper
    if not 0.2 <= claimed <= 2:
        return f"the claim is {claimed:.3g}, not between 0.2 and 2; compare delta with q, since one round that is drawn at all has about that probability"
    try:
        refuted = PoissonDPSGD(sigma, q, int(rounds)).delta(10 * claimed).lower > delta
    except NoBracketError:  # so far below the target that no accountant finds a lower bound
        refuted = False
    if not refuted:
        return f"nothing shows here that ten times the claim of {claimed:.3g} is too small: how plainly must a single participation show, and how often may it happen in all rounds together?"


def one_axis_4(answer):
    """(b, sigma, epsilon): the largest sum of a shuffled epoch refutes a million times the delta of Poisson sampling."""
    batches, sigma, epsilon = arrays(answer, "the answer is a tuple of three numbers (b, sigma, epsilon)", 0, 0, 0)
    if not (10 <= batches <= 1000 and batches == int(batches) and 0.5 <= sigma <= 5 and 0.5 <= epsilon <= 8):
        return "needed are a whole number b from 10 to 1000, sigma from 0.5 to 5, and epsilon from 0.5 to 8"
    places = np.linspace(-2 * sigma, 2 + 8 * sigma, 4001)
    others = (batches - 1) * special.log_ndtr(places / sigma)
    there, zeroed = (-np.expm1(special.log_ndtr((places - mean) / sigma) + others) for mean in (2, 1))
    refuted = float(np.max(there - math.exp(epsilon) * zeroed))
    if refuted < 1e-4:
        return f"the largest sum refutes only {max(refuted, 0.0):.2g}; when does your batch stand out among the others?"
    claimed = PoissonDPSGD(sigma, 1 / batches, int(batches)).delta(epsilon).upper
    if refuted < 1e6 * claimed:
        return f"{refuted:.2g} is refuted, {refuted / claimed:.2g} times the {claimed:.2g} that is claimed: what does a claim do when batches get rarer?"


_TWO_GRADIENTS = "the answer is a list of two gradients, each a pair of numbers"


def users_4(answer):
    """Two gradients of length 1 in the plane whose user loses at most 0.45 times the account's delta(0.5)."""
    gradients = array(answer, _TWO_GRADIENTS, 2)
    refuse(gradients.shape != (2, 2), _TWO_GRADIENTS)
    lengths = np.linalg.norm(gradients, axis=1)
    if not np.all(np.abs(lengths - 1) < 1e-6):
        return f"both gradients must have length 1; got {lengths[0]:.3g} and {lengths[1]:.3g}."
    centres = np.array([[0, 0], [1, 0], [0, 1], [1, 1]]) @ gradients
    spent = VectorMixture(centres, [0.25] * 4, 1.0).hockey_stick(0.5, nodes=800)
    allowed = binomial(2, 0.5, 1.0).hockey_stick(0.5)
    if spent > 0.45 * allowed:
        return f"this user loses {spent / allowed:.2f} times what the account says; how far is the sum moved when both examples are drawn?"
