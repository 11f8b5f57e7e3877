"""Checks by property of chapters 1 to 6; the rules stand in the package."""

import math
from itertools import product

import numpy as np

from .... import accounting, mixtures
from ...._base.lazy_scipy import special
from ....mechanisms import LastIterate, PoissonDPSGD
from ....mixtures import Mixture, VectorMixture
from .parsed import array, arrays, refuse


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
