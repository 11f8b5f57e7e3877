"""Exercises whose answer is an example: the check verifies its property instead of comparing.

One function an exercise, named like the exercise with "_" for "-". It takes the answer and returns None if
the answer has the property, or else a sentence that says what is missing. It looks at the answer's type
first, takes under 2 s, and compares with no stored solution. Whatever it needs is imported inside it.

    def tree_4(answer):
        \"\"\"A pair (sigma, alpha) with 0 < alpha < 1 at which add is the larger direction.\"\"\"
        …
"""


def tree_4(answer):
    """(a, q, T, alpha): randomised response for which add is at least 1.38 times remove."""
    import math

    try:
        a, q, rounds, alpha = (float(value) for value in answer)
    except (TypeError, ValueError):
        return "the answer is a tuple of four numbers (a, q, T, alpha)"
    if not (0.5 < a < 1 and 0 < q <= 1 and 1 <= rounds <= 8 and rounds == int(rounds) and 1 <= alpha < math.inf):
        return "needed are 1/2 < a < 1, 0 < q <= 1, a whole number T from 1 to 8, and alpha >= 1"
    remove = add = 0.0
    chances = q * a + (1 - q) * (1 - a), 1 - a  # of a 1, with and without the record
    for k in range(int(rounds) + 1):
        with_z, without = (math.comb(int(rounds), k) * p**k * (1 - p) ** (rounds - k) for p in chances)
        remove, add = remove + max(with_z - alpha * without, 0), add + max(without - alpha * with_z, 0)
    if remove < 1e-6:
        return "the remove direction is below 1e-6; try a smaller order alpha"
    if add < 1.38 * remove:
        return f"add is {add / remove:.3f} times remove: watch which outcomes count at your alpha, and move alpha to where one of them stops counting"
    return None


def tree_6(answer):
    """(p, q, epsilon): the printed bound on the loss tail is exceeded four times."""
    import numpy as np

    try:
        p, q, epsilon = answer
        p, q, epsilon = np.asarray(p, dtype=float), np.asarray(q, dtype=float), float(epsilon)
    except (TypeError, ValueError):
        return "the answer is a tuple (p, q, epsilon) with two lists of numbers and a number"
    if p.ndim != 1 or p.shape != q.shape or not 2 <= len(p) <= 6:
        return "p and q are flat lists of equal length, 2 to 6"
    if not (np.all(p > 0) and np.all(q > 0) and abs(p.sum() - 1) < 1e-9 and abs(q.sum() - 1) < 1e-9):
        return "p and q need positive entries that sum to 1"
    if not 0 < epsilon <= 1:
        return "epsilon must lie above 0 and be at most 1"
    tail = p[np.log(p / q) > 2 * epsilon].sum()
    delta = np.maximum(p - np.exp(epsilon) * q, 0).sum()
    if tail == 0:
        return "no outcome has a loss above 2 epsilon"
    times = tail * epsilon * np.exp(epsilon) / delta
    if times < 4:
        return f"the tail is {times:.2f} times the printed bound; ask what a loss far above 2 epsilon adds to delta, and at which epsilon the factor can be large"
    return None


def _rows(answer, count, what):
    """`answer` as `count` probability vectors of one length, or the hint why it is not that."""
    import numpy as np

    form = f"The answer must be a tuple of {count} lists of probabilities of equal length: {what}."
    if not isinstance(answer, (tuple, list)) or len(answer) != count:
        return None, form
    try:
        rows = np.array([np.asarray(row, dtype=float) for row in answer])
    except (TypeError, ValueError):
        return None, form
    if rows.ndim != 2 or rows.shape[1] < 1 or not np.all(np.isfinite(rows)):
        return None, form
    if np.any(rows < 0) or np.any(np.abs(rows.sum(axis=1) - 1) > 1e-9):
        return None, "Each list must hold numbers of at least 0 that add up to 1."
    return rows, None


def _hockey_stick(first, second, alpha):
    import numpy as np

    return float(np.maximum(first - alpha * second, 0).sum())


def hockey_5(answer):
    """(1, 0.01)-private in both orders, and a loss above 1 with probability 0.7 or more."""
    import math

    rows, problem = _rows(answer, 2, "P and Q")
    if problem:
        return problem
    P, Q = rows
    if _hockey_stick(P, Q, math.e) > 0.01:
        return "H_e(P, Q) is above the promised delta: the loss may exceed 1 by a very little only."
    if _hockey_stick(Q, P, math.e) > 0.01:
        return "This order is private, the other is not: check H_e(Q, P)."
    if P[P > math.e * Q].sum() < 0.7:
        return "Both orders are private, but the loss exceeds 1 too rarely. Let many outcomes exceed it by a little."
    return None


def hockey_6(answer):
    """M private without delta, N near it, and N with a delta of 0.2 that no epsilon removes."""
    import numpy as np

    rows, problem = _rows(answer, 4, "the laws of M(D), M(D'), N(D), N(D')")
    if problem:
        return problem
    M, M2, N, N2 = rows
    if _hockey_stick(M, M2, 1.0) > 1e-12:
        return "M must be private with epsilon 0 and delta 0: what does that say about its two laws?"
    if max(np.abs(M - N).sum(), np.abs(M2 - N2).sum()) / 2 > 0.1 + 1e-9:
        return "On D or on D' the two mechanisms are further apart than the allowed distance."
    lost = max(N[N2 == 0].sum(), N2[N == 0].sum())
    if lost < 0.2 - 1e-9:
        return "Some epsilon gives a smaller delta: what never leaves it is the mass that one law has and the other lacks."
    return None


def renyi_5(answer):
    """An order, a rate and a ratio at which the weight 1/2 puts zeta below its tangent [ZW-3]."""
    order, q, y = (float(value) for value in answer)
    if not (order > 1 and 0 < q < 1 and q * (5 - order) <= 3 and y > 0):
        return "The three numbers must lie in the theorem's range: order, then rate, then ratio."
    omega, omega_star = 1 - q + q * y, q + (1 - q) * y
    zeta = (omega**order + y ** (1 - order) * omega_star**order) / 2 - omega ** (1 - order)
    slope = (order * q + 1 - order * q) / 2 + (order - 1) * q
    if zeta - slope * (y - 1) > -0.01:
        return "Here zeta is not far enough below its tangent. Compare 1/2 with rho: which of the two terms got too much?"
    return None


def renyi_6(answer):
    """Two laws on three points whose Renyi divergences change their order between orders 2 and 8."""
    import numpy as np

    laws = np.array(answer, dtype=float)
    if laws.shape != (2, 3):
        return "The answer is a pair of lists of three probabilities each."
    if laws.min() < 1e-3 or np.abs(laws.sum(axis=1) - 1).max() > 1e-6:
        return "Each list must add up to 1, with no probability below 0.001."
    first, second = laws
    differences = []
    for order in (2, 8):
        forward, backward = (np.log(np.sum(a**order * b ** (1 - order))) for a, b in ((first, second), (second, first)))
        differences.append((forward - backward) / (order - 1))
    if differences[0] < 0.05:
        return "At order 2 the first law against the second must be the larger divergence, by 0.05 or more."
    if differences[1] > -0.05:
        return "At order 8 the second law against the first must be larger, by 0.05. What do high orders look at?"
    return None


def large_batches_6(answer):
    """A budget (epsilon, delta, rounds, q) for which sampling lowers the effective noise."""
    from . import gaussian
    from .calibrate import effective_noise

    epsilon, delta, rounds, q = (float(value) for value in answer)
    if not (epsilon >= 0.01 and 0 < delta <= 0.3 and 0.1 <= q < 1):
        return "Epsilon, delta or the sampling probability is outside its range."
    if rounds != int(rounds) or not 10 <= rounds <= 1000:
        return "The number of rounds must be a whole number from 10 to 1000."
    without = rounds**0.5 / gaussian.calibrate(epsilon, delta)
    if effective_noise(q, int(rounds), epsilon, delta) > without * (1 - 1e-3):
        return "Sampling does not lower the effective noise by 0.1% here. When is the rate negative, and how does its size fall with the rounds?"
    return None


def accounting_5(answer):
    """(rounds, cells, epsilon) at which an FFT without a tilt reports a negative delta."""
    import math

    import numpy as np

    from ._scipy import special

    try:
        rounds, cells, epsilon = (float(number) for number in answer)
    except (TypeError, ValueError):
        return "The answer must be a tuple of three numbers: rounds, cells, epsilon."
    if not (rounds.is_integer() and 1 <= rounds <= 10**5):
        return "rounds must be a whole number from 1 to 100000."
    if not (2 <= cells <= 6 and 0 <= epsilon <= 20):
        return "cells must lie between 2 and 6, epsilon between 0 and 20."
    spread = 1 / math.sqrt(rounds)
    step = spread / cells
    size = 2 * math.ceil(20 / step)
    losses = (np.arange(size) - size // 2) * step
    edges = np.append(losses - step / 2, losses[-1] + step / 2)
    masses = np.diff(special.ndtr((edges - spread**2 / 2) / spread))
    wave = np.fft.rfft(np.fft.ifftshift(masses)) ** int(rounds)
    total = np.fft.fftshift(np.fft.irfft(wave, size))
    reported = float(total @ np.maximum(-np.expm1(np.minimum(epsilon - losses, 0)), 0))
    if reported < 0:
        return None
    return "The reported delta is not negative here. Go where the true delta is far below the floor, and try several."


def accounting_6(answer):
    """A bound on alpha >= 1, without zeros, that two rounds break by 0.2 at epsilon 0."""
    import numpy as np

    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        return "The answer must be a tuple of two pairs: the claimed bound (P, Q), then (P2, Q2)."
    pairs = []
    for pair, what in zip(answer, ("P and Q", "P2 and Q2")):
        rows, problem = _rows(pair, 2, what)
        if problem:
            return problem
        if rows.min() < 0.01 - 1e-12:
            return "No probability may be below 0.01."
        if rows.shape[1] > 50:
            return "Fifty outcomes are enough: give shorter lists."
        pairs.append(rows)
    (P, Q), (P2, Q2) = pairs
    # Both curves are polygons, so it is enough to compare them at their kinks.
    kinks = np.concatenate([[1.0], P / Q, P2 / Q2])
    if any(_hockey_stick(P2, Q2, a) > _hockey_stick(P, Q, a) + 1e-9 for a in kinks[kinks >= 1]):
        return "Already in one round the first pair is no bound: at some alpha of at least 1 its curve is lower."
    twice = [_hockey_stick(np.kron(a, a), np.kron(b, b), 1.0) for a, b in pairs]
    if twice[1] < twice[0] + 0.2:
        return "The bound holds in one round; two rounds break it too little. What happens at orders below 1?"
    return None


def bins_4(answer):
    """(c, sigma): an account that keeps the sign of c reports a hundredth of the true delta."""
    import math

    import numpy as np
    from scipy import special

    try:
        c, sigma = (float(value) for value in answer)
    except (TypeError, ValueError):
        return "the answer is a pair of numbers (c, sigma)"
    if not (-3 <= c < 0 and 0.05 <= sigma <= 100):
        return "needed are -3 <= c < 0 and a noise multiplier from 0.05 to 100"

    def delta(inner):
        """Two modes of squared lengths 1 + c^2 and 1: an option formula, integrated over one normal variable."""
        first, second = math.sqrt(1 + c * c) / sigma, 1 / sigma
        along = inner / (first * sigma**2)
        spread = math.sqrt(second**2 - along**2)
        z, step = np.linspace(-12, 12 + first + abs(along), 40_001, retstep=True)
        known = np.exp(first * z - first**2 / 2) / 2
        v = np.exp(along * z - along**2 / 2) / 2
        gap = math.e - known
        d = np.log(v / np.maximum(gap, 1e-200)) / spread + spread / 2
        value = np.where(gap > 0, v * special.ndtr(d) - gap * special.ndtr(d - spread), v - gap)
        return float(np.sum(np.exp(-z * z / 2) * value) * step / math.sqrt(2 * math.pi))

    true, reported = delta(abs(c)), delta(c)
    if true < 1e-5:
        return "the true delta at epsilon 1 is below 1e-5; take less noise"
    if true < 100 * reported:
        return f"the true delta is {true / reported:.3g} times the report: with which amount of noise does a single mode no longer decide?"
    return None


def bins_6(answer):
    """Four vectors whose absolute inner products are no table of inner products."""
    import numpy as np

    try:
        modes = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        return "the answer is a list of four lists of numbers, all of the same length"
    if modes.ndim != 2 or len(modes) != 4 or not 1 <= modes.shape[1] <= 8:
        return "needed are four vectors of equal length, at most 8"
    if not np.all(np.isfinite(modes)) or not np.any(modes):
        return "the entries must be finite, and not all zero"
    table = np.abs(modes @ modes.T)
    least = np.linalg.eigvalsh(table).min() / table.diagonal().max()
    if least >= -0.1:
        return f"the smallest eigenvalue is {least:.3f} times the largest diagonal entry; put the four in a circle: which inner products may vanish, and what must the product of the signs around the circle be?"
    return None


def subsampling_6(answer):
    """Whole-number noise for which add exceeds remove by 0.1 in one round, alpha = 1.5, q = 1/2."""
    import numpy as np

    rows, problem = _rows([answer], 1, "those of the noise values 0, 1, 2, ...")
    if problem:
        return problem.replace("a tuple of 1 lists of probabilities of equal length", "a list of probabilities")
    if rows.shape[1] > 200:
        return "At most 200 probabilities, please."
    Q, P = np.append(rows[0], 0.0), np.append(0.0, rows[0])
    mixed = (Q + P) / 2
    remove, add = _hockey_stick(mixed, Q, 1.5), _hockey_stick(Q, mixed, 1.5)
    if add <= remove:
        return "For this noise add does not exceed remove. Which output would prove that the record was absent?"
    if add - remove < 0.1 - 1e-9:
        return "Add is the larger, but not by enough. Keep the ratio with over without the record small everywhere else."
    return None


def one_step_7(answer):
    """A target (epsilon, delta, q) outside the sufficient condition at which the effective noise falls."""
    from . import one_step

    epsilon, delta, q = (float(value) for value in answer)
    if not (epsilon > 0 and 0 < delta <= 1e-2 and 3 * delta * (1 - 1e-12) <= q <= 1):
        return "Epsilon, delta or the sampling probability is outside its range."
    sigma = one_step.noise_multiplier(epsilon, delta, q)
    minus, _ = one_step.threshold_distances(epsilon, sigma, q)
    if minus > -0.1:
        return "The threshold is not far enough below 1 here. On the map, go left or down."
    if one_step.elasticity(epsilon, sigma, q) > 0.9:
        return "The effective noise does not fall clearly here. On the map, go right or up."
    return None


def monte_carlo_5(answer):
    """(modes, centres): importance sampling that reports 3% and is wrong by a factor of ten."""
    import math

    import numpy as np

    try:
        modes, centres = (np.asarray(part, dtype=float) for part in answer)
    except (TypeError, ValueError):
        return "the answer is a pair (modes, centres) of lists of points in the plane"
    if modes.shape != (2, 2) or centres.ndim != 2 or not 1 <= len(centres) <= 3 or centres.shape[1] != 2:
        return "needed are two modes and one to three centres, each a list of two numbers"
    if not (np.all(modes >= 0) and modes.max() <= 5 and np.abs(centres).max() <= 15):
        return "entries of modes must lie between 0 and 5, those of centres between -15 and 15"

    def excess(u):
        return np.maximum(np.mean(np.exp(u @ modes.T - np.sum(modes**2, axis=1) / 2), axis=-1) - math.exp(3), 0)

    axis, step = np.linspace(-9, 14, 768, retstep=True)
    plane = np.stack(np.meshgrid(axis, axis), axis=-1)
    true = np.sum(np.exp(-np.sum(plane**2, axis=-1) / 2) * excess(plane)) * step**2 / (2 * math.pi)
    u = centres[np.arange(20_000) % len(centres)] + np.random.default_rng(15).standard_normal((20_000, 2))
    summands = excess(u) / np.mean(np.exp(u @ centres.T - np.sum(centres**2, axis=1) / 2), axis=1)
    value = summands.mean()
    if true < 1e-8:
        return "the true delta at epsilon 3 is below 1e-8; take longer modes"
    if value == 0:
        return "no draw fell into the region at all; move the centre to where one of the modes explains a large ratio"
    error = summands.std() / math.sqrt(20_000) / value
    if error > 0.03:
        return f"the reported relative standard error is {error:.0%}: some draws reach what you meant to overlook, or the centre is not at the best point"
    if value > true / 10:
        return f"the estimate is {value / true:.2f} times the truth: is what you overlook the larger part?"
    return None


def monte_carlo_6(answer):
    """(values, probabilities): a law for which mean + 1.645 standard errors is no upper bound."""
    import numpy as np

    try:
        values, chances = (np.asarray(part, dtype=float) for part in answer)
    except (TypeError, ValueError):
        return "the answer is a pair of lists of numbers (values, probabilities)"
    if values.ndim != 1 or values.shape != chances.shape or not 1 <= len(values) <= 5:
        return "values and probabilities are flat lists of equal length, at most 5"
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
    return None


def mixtures_6(answer):
    """Modes 1.5 times as long, and a delta(1) of less than a third."""
    import numpy as np

    from .mixtures import VectorMixture

    form = "The answer must be a tuple (first, second) of two lists of equally many points [x, y], at most 16 each."
    try:
        first, second = (np.asarray(modes, dtype=float) for modes in answer)
    except (TypeError, ValueError):
        return form
    if first.shape != second.shape or first.ndim != 2 or first.shape[1] != 2 or not 1 <= len(first) <= 16:
        return form
    short, long = (np.linalg.norm(modes, axis=1) for modes in (first, second))
    if short.min() < 0.4 - 1e-9:
        return "Every mode of the first mixture must have a norm of at least 0.4."
    if np.any(long < 1.5 * short - 1e-9):
        return "Some mode of the second mixture is not 1.5 times as long as its counterpart."
    weights = np.full(len(first), 1 / len(first))
    one, two = (VectorMixture(modes, weights, 1.0).hockey_stick(1.0, nodes=800) for modes in (first, second))
    if two > one:
        return "The second delta is the larger one. Which inner products should the longer modes have?"
    if two > one / 3:
        return "The second delta is smaller, but not by a factor 3. Use more directions, or modes that are less long."
    return None


def mixtures_7(answer):
    """Equal mean and variance; the first has the larger delta(0), the second the larger delta(3)."""
    import numpy as np

    from .mixtures import Mixture

    form = "The answer must be a tuple ((s, p), (s2, p2)) of two laws, each a list of values and one of probabilities."
    try:
        laws = [tuple(np.asarray(part, dtype=float) for part in law) for law in answer]
        (s, p), (s2, p2) = laws
    except (TypeError, ValueError):
        return form
    first, second = Mixture(s, p, 1.0), Mixture(s2, p2, 1.0)
    means = s @ p, s2 @ p2
    if abs(means[0] - means[1]) > 1e-6:
        return "The two means differ."
    if abs((s - means[0]) ** 2 @ p - (s2 - means[1]) ** 2 @ p2) > 1e-6:
        return "The means are equal, the variances are not."
    if first.hockey_stick(0.0) < second.hockey_stick(0.0) + 0.01:
        return "At epsilon 0 the first delta must exceed the second by 0.01: give the second a rarer, larger mode."
    if second.hockey_stick(3.0) < 1.25 * first.hockey_stick(3.0):
        return "At epsilon 3 the second delta must be 1.25 times the first: which mode decides there?"
    return None


def matrix_5(answer):
    """(shift, event): a shift that knows the noise of its own round, and the event that betrays it."""
    import numpy as np

    from ._scipy import special

    shift, event = answer
    noise = special.ndtri((np.arange(200_000) + 0.5) / 200_000)
    moved = np.asarray(shift(noise), dtype=float)
    if moved.shape != noise.shape or not np.abs(moved).max() <= 2:
        return "shift must return an array like its argument, with values between -2 and 2."
    present, absent = (np.mean(np.asarray(event(x), dtype=bool)) for x in (noise + moved, noise))
    if present - np.exp(4) * absent < 0.9:
        return "Not large enough yet. Is there a set that the outputs without the record never hit, and that is near everywhere?"
    return None


def matrix_6(answer):
    """A lower-triangular encoder of four rounds with an error at equal privacy of at most 1.32."""
    import numpy as np

    C = np.array(answer, dtype=float)
    if C.shape != (4, 4) or np.any(np.triu(C, 1)) or np.diag(C).min() <= 0:
        return "The answer is a lower-triangular array with four rows, four columns and a positive diagonal."
    error = np.linalg.norm(C, axis=0).max() * np.linalg.norm(np.tri(4) @ np.linalg.inv(C)) / 2
    if not error <= 1.32:
        return "The error at equal privacy is still above 1.32. Compare the lengths of the columns."
    return None


def group_6(answer):
    """A dataset on which averaging over the realised batch beats the theorem's delta(0.5) by 1.8."""
    from itertools import product

    import numpy as np

    from .mixtures import Mixture, binomial

    form = "The answer must be a tuple (ordinary, sensitive): a list of at most 8 gradients, and one gradient."
    try:
        ordinary, sensitive = answer
        ordinary, sensitive = np.asarray(ordinary, dtype=float), float(sensitive)
    except (TypeError, ValueError):
        return form
    if ordinary.ndim != 1 or len(ordinary) > 8:
        return form
    if not np.all(np.abs(np.append(ordinary, sensitive)) <= 1):
        return "Gradients are clipped: each must lie between -1 and 1."
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
    if delta < 1.8 * binomial(1, 0.5, 1.0).hockey_stick(0.5):
        return "The adversary gains too little. Which ordinary records have an average that does not depend on the batch?"
    return None


def encoder_4(answer):
    """(preferred, better): Toeplitz coefficients that the printed objective ranks the wrong way."""
    import numpy as np
    from scipy import signal

    try:
        pair = [np.asarray(part, dtype=float) for part in answer]
    except (TypeError, ValueError):
        return "the answer is a pair of lists of 8 numbers"
    if len(pair) != 2 or any(c.shape != (8,) or c[0] != 1 or not np.all((c >= 0) & (c < 1e6)) for c in pair):
        return "needed are two lists of 8 non-negative numbers, each beginning with 1"
    weights, errors, claims = np.arange(8, 0, -1), [], []
    for c in pair:
        for found, series in ((errors, signal.lfilter([1.0], c, np.ones(8))), (claims, np.diff(c, prepend=0.0))):
            found.append(np.linalg.norm(c) * np.sqrt(weights @ series**2))
    if claims[1] < 1.2 * claims[0]:
        return f"the printed objective of the second is {claims[1] / claims[0]:.3f} times that of the first: which coefficients does it dislike?"
    if errors[0] < 1.2 * errors[1]:
        return f"the true error of the first is {errors[0] / errors[1]:.3f} times that of the second: which coefficients take more noise back?"
    return None


def encoder_6(answer):
    """Toeplitz coefficients that are within about 5% of the optimum at two targets."""
    import numpy as np

    from . import matrices, utility
    from .calibrate import calibrate
    from .mechanisms import BallsInBins

    try:
        c = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        return "the answer is a list of numbers"
    if c.ndim != 1 or not 1 <= len(c) <= 64 or c[0] != 1 or not np.all((c >= 0) & (c <= 10)):
        return "needed are at most 64 coefficients between 0 and 10, the first one equal to 1"
    encoder = matrices.toeplitz(np.pad(c, (0, 64 - len(c))))
    for epsilon, limit in ((0.5, 43.1), (8.0, 4.15)):
        noise = calibrate(BallsInBins(encoder, 1.0, 8, 8), epsilon=epsilon, delta=1e-5).noise_multiplier
        if (error := utility.rmse(encoder, noise)) > limit:
            return f"the RMSE at epsilon {epsilon:g} is {error:.4g}; does this target ask for more or for less correlation?"
    return None


def conditional_5(answer):
    """(alpha, P1, Q1) for which charging each bad output under its own law is worth half or less."""
    alpha, with_record, without = answer
    alpha, P, Q = float(alpha), [float(p) for p in with_record], [float(q) for q in without]
    if alpha < 1 or len(P) != 3 or len(Q) != 3 or min(P + Q) <= 0:
        return "Give an order of at least 1 and two lists of three positive probabilities."
    if max(abs(sum(P) - 1), abs(sum(Q) - 1)) > 1e-6:
        return "Each list must add up to 1."
    split = P[1] + alpha * Q[2]
    if 2 * split >= P[1] + P[2]:
        return "Charging everything under the first law is not twice as dear. Make the output 2 rarer without the record."
    if 2 * split >= alpha * (Q[1] + Q[2]):
        return "Charging everything under the second law is not twice as dear. Make the output 1 rarer with the record."
    return None


def conditional_6(answer):
    """A past of eleven outputs after which column 1 is explained by the others."""
    import numpy as np

    from . import matrices
    from ._scipy import special

    past = np.array(answer, dtype=float)
    if past.shape != (11,) or not np.abs(past).max() <= 10:
        return "The answer is a list of eleven numbers, each between -10 and 10."
    encoder = matrices.optimal_counting(12)
    above, variance = encoder.entries()[:11], encoder.column_norms()[0] ** 2
    sets = (np.arange(2**12)[:, None] >> np.arange(12) & 1).astype(float)
    log = sets.sum(axis=1) * special.logit(0.25) - np.sum((past - sets @ above.T) ** 2, axis=1) / (2 * variance)
    exact = special.softmax(log) @ sets[:, 0]
    bound = special.expit(special.logit(0.25) + (past @ above[:, 0] - np.sum(above[:, 0] ** 2) / 2) / variance)
    if not exact < bound / 4:
        return "The true posterior probability is not below a quarter of the bound. Which outputs contain column 1, and which other columns explain them?"
    return None


def last_iterate_6(answer):
    """Three thresholds whose cells give back 70 % of what hiding the first of two rounds had gained."""
    import numpy as np

    from ._scipy import special
    from .mechanisms import LastIterate, PoissonDPSGD

    try:
        inner = np.sort(np.asarray(answer, dtype=float))
    except (TypeError, ValueError):
        inner = np.zeros(0)
    if inner.shape != (3,) or not np.all(np.isfinite(inner)):
        return "The answer must be a list of three finite numbers, the thresholds."
    edges, y = np.concatenate([[-np.inf], inner, [np.inf]]), np.linspace(-9, 11, 2001)[:, None]

    def masses(first, both):
        cells = np.diff(special.ndtr((edges - first - (y - both) / 2) * np.sqrt(2)), axis=1)
        return np.exp(-((y - both) ** 2) / 4) / np.sqrt(4 * np.pi) * cells

    with_z = 0.81 * masses(0, 0) + 0.09 * (masses(0, 1) + masses(1, 1)) + 0.01 * masses(1, 2)
    delta = np.maximum(with_z - np.exp(0.5) * masses(0, 0), 0).sum() * (y[1, 0] - y[0, 0])
    last, every = (kind(1.0, 0.1, 2).delta(0.5, "remove").upper for kind in (LastIterate, PoissonDPSGD))
    if delta < last + 0.7 * (every - last):
        return "These cells give back too little. For a given sum, which first rounds does the adversary want to tell apart?"
    return None


def last_iterate_7(answer):
    """Twelve learning rates between 1/2 and 1 with epsilon at most 2.72."""
    import numpy as np

    from . import accounting, mixtures

    try:
        rates = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        rates = np.zeros(0)
    if rates.shape != (12,):
        return "The answer must be a list of twelve learning rates."
    if not np.all((rates >= 0.5) & (rates <= 1)):
        return "Each rate must lie between one half and 1."
    pair = mixtures.product(np.full(12, 0.1), rates, np.linalg.norm(rates))
    if accounting.epsilon(pair, 1e-6).upper > 2.72:
        return "epsilon is still too large. Rates that vary little change little: try sizes that are far apart."
    return None


def training_6(answer):
    """Toeplitz coefficients with a small error of the last model under fixed batches."""
    import numpy as np
    from scipy.linalg import solve_triangular, toeplitz

    from . import gaussian, matrices, sensitivity

    try:
        c = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        return "the answer is a list of numbers"
    if c.ndim != 1 or not 1 <= len(c) <= 16 or c[0] != 1 or not np.all((c >= 0) & (c <= 100)):
        return "needed are at most 16 coefficients between 0 and 100, the first one equal to 1"
    c, weights, carried = np.pad(c, (0, 256 - len(c))), np.zeros(256), 0.0
    for t, rate in reversed(list(enumerate(np.interp(np.arange(256), [64, 255], [1.0, 0.05])))):
        weights[t] = carried = rate + 0.9 * carried
    sigma = sensitivity.round_robin(matrices.toeplitz(c), 16) / gaussian.calibrate(2.0, 9.99e-6)
    left = solve_triangular(toeplitz(c, np.zeros(256)).T, weights / weights.mean(), lower=False)
    if (error := sigma * np.linalg.norm(left)) > 37.5:
        return f"the error of the last model is {error:.4g}: only the last sum counts, so how much of each noise should the next round take back?"
    return None


def mmcc_6(answer):
    """(sigma, q, delta) for which independent rows report 1.4 times the true epsilon, add direction."""
    from . import accounting, matrices, mixtures, truth

    sigma, q, delta = (float(value) for value in answer)
    if not (0.2 <= sigma <= 10 and 0.05 <= q <= 0.9 and 1e-8 <= delta <= 1e-2):
        return "Sigma, q or delta is outside its range."
    rows = [(mixtures.binomial(k, q, sigma), 1) for k in (1, 2)]
    apart = accounting.epsilon(rows, delta, "add", "lattice").lower
    exact = truth.two_rounds(matrices.toeplitz([1.0, 1.0]), sigma, q).epsilon(delta, "add").upper
    if not apart >= 1.4 * exact > 0:
        return "Independent rows are not yet 1.4 times the truth. How many coins does each of the two see when the noise is small?"
    return None
