"""The checks by property, in the order of the chapters; the rules stand in the package."""

import math
from itertools import product

import numpy as np

from .... import accounting, gaussian, matrices, mixtures
from ...._base.lazy_scipy import linalg, signal, special
from ....matrices import prefix_errors, sensitivity
from ....mechanisms import BallsInBins, LastIterate, PoissonDPSGD
from ....mechanisms.calibration import calibrate, effective_noise
from ....mixtures import Mixture, VectorMixture
from ....results import NoBracketError
from ... import one_step, truth
from .parsed import array, arrays, like, refuse


def _rows(answer, count, what, form="a tuple of {count} lists of probabilities of equal length"):
    """`answer` as `count` probability vectors of one length; refused where it is not that."""
    form = f"The answer must be {form.format(count=count)}: {what}."
    rows = arrays(answer, form, *[1] * count)
    refuse(len({len(row) for row in rows}) != 1 or len(rows[0]) < 1, form)
    rows = np.array(rows)
    wrong = np.any(rows < 0) or np.any(np.abs(rows.sum(axis=1) - 1) > 1e-9)
    refuse(wrong, "Each list must hold numbers of at least 0 that add up to 1.")
    return rows


def _hockey_stick(first, second, alpha):
    return float(np.maximum(first - alpha * second, 0).sum())


def hockey_5(answer):
    """(1, 0.01)-private in both orders, and a loss above 1 with probability 0.7 or more."""
    P, Q = _rows(answer, 2, "P and Q")
    refuse(_hockey_stick(P, Q, math.e) > 0.01, "H_e(P, Q) is above the promised delta: the loss may exceed 1 by a very little only.")
    refuse(_hockey_stick(Q, P, math.e) > 0.01, "This order is private, the other is not: check H_e(Q, P).")
    if P[P > math.e * Q].sum() < 0.7:
        return "Both orders are private, but the loss exceeds 1 too rarely. Let many outcomes exceed it by a little."


def hockey_6(answer):
    """M private without delta, N near it, and N with a delta of 0.2 that no epsilon removes."""
    M, M2, N, N2 = _rows(answer, 4, "the laws of M(D), M(D'), N(D), N(D')")
    refuse(_hockey_stick(M, M2, 1.0) > 1e-12, "M must be private with epsilon 0 and delta 0: what does that say about its two laws?")
    if max(np.abs(M - N).sum(), np.abs(M2 - N2).sum()) / 2 > 0.1 + 1e-9:
        return "On D or on D' the two mechanisms are further apart than the allowed distance."
    lost = max(N[N2 == 0].sum(), N2[N == 0].sum())
    refuse(lost < 0.2 - 1e-9, "Some epsilon gives a smaller delta: what never leaves it is the mass that one law has and the other lacks.")


def accounting_5(answer):
    """(rounds, cells, epsilon) at which an FFT without a tilt reports a negative delta."""
    rounds, cells, epsilon = arrays(answer, "The answer must be a tuple of three numbers: rounds, cells, epsilon.", 0, 0, 0)
    refuse(not (rounds.is_integer() and 1 <= rounds <= 10**5), "rounds must be a whole number from 1 to 100000.")
    refuse(not (2 <= cells <= 6 and 0 <= epsilon <= 20), "cells must lie between 2 and 6, epsilon between 0 and 20.")
    spread = 1 / math.sqrt(rounds)
    step = spread / cells
    size = 2 * math.ceil(20 / step)
    losses = (np.arange(size) - size // 2) * step
    edges = np.append(losses - step / 2, losses[-1] + step / 2)
    masses = np.diff(special.ndtr((edges - spread**2 / 2) / spread))
    wave = np.fft.rfft(np.fft.ifftshift(masses)) ** int(rounds)
    total = np.fft.fftshift(np.fft.irfft(wave, size))
    reported = float(total @ np.maximum(-np.expm1(np.minimum(epsilon - losses, 0)), 0))
    refuse(not reported < 0, "The reported delta is not negative here. Go where the true delta is far below the floor, and try several.")


def accounting_6(answer):
    """A bound on alpha >= 1, without zeros, that two rounds break by 0.2 at epsilon 0."""
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        return "The answer must be a tuple of two pairs: the claimed bound (P, Q), then (P2, Q2)."
    pairs = []
    for pair, what in zip(answer, ("P and Q", "P2 and Q2")):
        rows = _rows(pair, 2, what)
        refuse(rows.min() < 0.01 - 1e-12, "No probability may be below 0.01.")
        refuse(rows.shape[1] > 50, "Fifty outcomes are enough: give shorter lists.")
        pairs.append(rows)
    (P, Q), (P2, Q2) = pairs
    # Both curves are polygons, so it is enough to compare them at their kinks.
    kinks = np.concatenate([[1.0], P / Q, P2 / Q2])
    if any(_hockey_stick(P2, Q2, a) > _hockey_stick(P, Q, a) + 1e-9 for a in kinks[kinks >= 1]):
        return "Already in one round the first pair is no bound: at some alpha of at least 1 its curve is lower."
    twice = [_hockey_stick(np.kron(a, a), np.kron(b, b), 1.0) for a, b in pairs]
    refuse(twice[1] < twice[0] + 0.2, "The bound holds in one round; two rounds break it too little. What happens at orders below 1?")


def subsampling_6(answer):
    """Whole-number noise for which add exceeds remove by 0.1 in one round, alpha = 1.5, q = 1/2."""
    rows = _rows([answer], 1, "those of the noise values 0, 1, 2, ...", "a list of probabilities")
    refuse(rows.shape[1] > 200, "At most 200 probabilities, please.")
    Q, P = np.append(rows[0], 0.0), np.append(0.0, rows[0])
    mixed = (Q + P) / 2
    remove, add = _hockey_stick(mixed, Q, 1.5), _hockey_stick(Q, mixed, 1.5)
    refuse(add <= remove, "For this noise add does not exceed remove. Which output would prove that the record was absent?")
    if add - remove < 0.1 - 1e-9:
        return "Add is the larger, but not by enough. Keep the ratio with over without the record small everywhere else."


def mixtures_6(answer):
    """Modes 1.5 times as long, and a delta(1) of less than a third."""
    form = "The answer must be a tuple (first, second) of two lists of equally many points [x, y], at most 16 each."
    first, second = arrays(answer, form, 2, 2)
    refuse(first.shape != second.shape or first.shape[1] != 2 or not 1 <= len(first) <= 16, form)
    short, long = (np.linalg.norm(modes, axis=1) for modes in (first, second))
    refuse(short.min() < 0.4 - 1e-9, "Every mode of the first mixture must have a norm of at least 0.4.")
    refuse(np.any(long < 1.5 * short - 1e-9), "Some mode of the second mixture is not 1.5 times as long as its counterpart.")
    weights = np.full(len(first), 1 / len(first))
    one, two = (VectorMixture(modes, weights, 1.0).hockey_stick(1.0, nodes=800) for modes in (first, second))
    refuse(two > one, "The second delta is the larger one. Which inner products should the longer modes have?")
    refuse(two > one / 3, "The second delta is smaller, but not by a factor 3. Use more directions, or modes that are less long.")


def mixtures_7(answer):
    """Equal mean and variance; the first has the larger delta(0), the second the larger delta(3)."""
    form = "The answer must be a tuple ((s, p), (s2, p2)) of two laws, each a list of values and one of probabilities."
    refuse(not isinstance(answer, (tuple, list)) or len(answer) != 2, form)
    (s, p), (s2, p2) = (arrays(law, form, 1, 1) for law in answer)
    first, second = Mixture(s, p, 1.0), Mixture(s2, p2, 1.0)
    means = s @ p, s2 @ p2
    refuse(abs(means[0] - means[1]) > 1e-6, "The two means differ.")
    refuse(abs((s - means[0]) ** 2 @ p - (s2 - means[1]) ** 2 @ p2) > 1e-6, "The means are equal, the variances are not.")
    if first.hockey_stick(0.0) < second.hockey_stick(0.0) + 0.01:
        return "At epsilon 0 the first delta must exceed the second by 0.01: give the second a rarer, larger mode."
    if second.hockey_stick(3.0) < 1.25 * first.hockey_stick(3.0):
        return "At epsilon 3 the second delta must be 1.25 times the first: which mode decides there?"


def group_6(answer):
    """A dataset on which averaging over the realised batch beats the theorem's delta(0.5) by 1.8."""
    form = "The answer must be a tuple (ordinary, sensitive): a list of at most 8 gradients, and one gradient."
    ordinary, sensitive = arrays(answer, form, 1, 0)
    refuse(len(ordinary) > 8, form)
    refuse(not np.all(np.abs(np.append(ordinary, sensitive)) <= 1), "Gradients are clipped: each must lie between -1 and 1.")
    x = np.linspace(-10, 10, 10_001)

    def density(gradients):
        total = np.zeros_like(x)
        for batch in product((0, 1), repeat=len(gradients)):
            size = max(sum(batch), 1)
            # One mode at 1 + mean > 0 with noise 1 / size, moved back by the argument.
            place = 1 + np.dot(batch, gradients) / size
            total += Mixture([place], [1.0], 1 / size).density(x + 1)
        return total / 2 ** len(gradients)

    excess = density(np.append(ordinary, sensitive)) - np.exp(0.5) * density(ordinary)
    delta = np.maximum(excess, 0).sum() * (x[1] - x[0])
    if delta < 1.8 * mixtures.binomial(1, 0.5, 1.0).hockey_stick(0.5):
        return "The adversary gains too little. Which ordinary records have an average that does not depend on the batch?"


def last_iterate_6(answer):
    """Three thresholds whose cells give back 70 % of what hiding the first of two rounds had gained."""
    thresholds = arrays(answer, "The answer must be a list of three finite numbers, the thresholds.", 0, 0, 0)
    edges, y = np.array([-np.inf, *sorted(thresholds), np.inf]), np.linspace(-9, 11, 2001)[:, None]

    def masses(first, both):
        cells = np.diff(special.ndtr((edges - first - (y - both) / 2) * np.sqrt(2)), axis=1)
        return np.exp(-((y - both) ** 2) / 4) / np.sqrt(4 * np.pi) * cells

    with_z = 0.81 * masses(0, 0) + 0.09 * (masses(0, 1) + masses(1, 1)) + 0.01 * masses(1, 2)
    delta = np.maximum(with_z - np.exp(0.5) * masses(0, 0), 0).sum() * (y[1, 0] - y[0, 0])
    last, every = (kind(1.0, 0.1, 2).delta(0.5, "remove").upper for kind in (LastIterate, PoissonDPSGD))
    if delta < last + 0.7 * (every - last):
        return "These cells give back too little. For a given sum, which first rounds does the adversary want to tell apart?"


def last_iterate_7(answer):
    """Twelve learning rates between 1/2 and 1 with epsilon at most 2.72."""
    form = "The answer must be a list of twelve learning rates."
    rates = array(answer, form)
    refuse(len(rates) != 12, form)
    refuse(not np.all((rates >= 0.5) & (rates <= 1)), "Each rate must lie between one half and 1.")
    pair = mixtures.product(np.full(12, 0.1), rates, np.linalg.norm(rates))
    if accounting.epsilon(pair, 1e-6).upper > 2.72:
        return "epsilon is still too large. Rates that vary little change little: try sizes that are far apart."


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
    allowed = mixtures.binomial(2, 0.5, 1.0).hockey_stick(0.5)
    if spent > 0.45 * allowed:
        return f"this user loses {spent / allowed:.2f} times what the account says; how far is the sum moved when both examples are drawn?"
