"""Exact accounting for C = I, balls in bins without sampling [A-16]."""

import math

import numpy as np
import pytest
from oracle_cases import load
from scipy import special

from dplib import gaussian
from dplib.balls_in_bins import lognormal_grid, lognormal_sum
from dplib.balls_in_bins.lognormal_sum import bracket
from dplib.results import Bracket, NoBracketError

SIDES = ("remove", "add")


# ------------------------------------------------------------------ independent routes


def one_left(strike, d, side):
    """E(X - strike)_+ or E(strike - X)_+ for one lognormal of mean one, in closed form."""
    root = math.sqrt(d)
    with np.errstate(divide="ignore", invalid="ignore"):
        a = (np.log(np.maximum(strike, 1e-300)) + d / 2) / root
        if side == "remove":
            return np.where(strike <= 0, 1 - strike, special.ndtr(root - a) - strike * special.ndtr(-a))
        return np.where(strike <= 0, 0.0, strike * special.ndtr(a) - special.ndtr(a - root))


def nodes(d, top, points=24):
    """Gauss-Legendre in z, denser towards the bend at `top` (a strike)."""
    z_top = (math.log(top) + d / 2) / math.sqrt(d)
    edges = np.unique(
        np.concatenate([np.linspace(-38, 38, 153), z_top + 0.5 ** np.arange(-3.0, 30), [z_top]])
    )
    edges = np.unique(np.concatenate([edges, z_top - 0.5 ** np.arange(-3.0, 30)]))
    edges = edges[(edges >= -38) & (edges <= 38)]
    t, w = np.polynomial.legendre.leggauss(points)
    z = (edges[1:, None] + edges[:-1, None]) / 2 + np.diff(edges)[:, None] / 2 * t
    weights = np.diff(edges)[:, None] / 2 * w * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return np.exp(math.sqrt(d) * z - d / 2).ravel(), weights.ravel()


def two_bins(d, epsilon, side):
    """delta for b = 2: one coordinate by quadrature, the other in closed form."""
    strike = 2 * math.exp(epsilon if side == "remove" else -epsilon)
    x, w = nodes(d, strike)
    value = float(w @ one_left(strike - x, d, side)) / 2
    return value if side == "remove" else value * math.exp(epsilon)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("d", [1e-4, 0.01, 0.3, 1.0, 4.0, 30.0, 400.0])
def test_two_bins_by_quadrature(d, side):
    for scale in (0.0, 0.5, 1.5, 3.0):
        epsilon = scale * math.sqrt(d)
        truth = two_bins(d, epsilon, side)
        if truth < 1e-12:  # the quadrature's subtraction loses relative accuracy there
            continue
        answer = bracket(2, d, epsilon, side, 1e-5)
        slack = 1e-15 + 1e-10 * truth
        assert answer.lower - slack <= truth <= answer.upper + slack
        assert answer.relative_width <= 1e-5


def test_reference_values():
    for row in load("bnb"):
        if row["C"]["kind"] != "identity":
            continue
        d = row["E"] / row["sigma"] ** 2
        for side in SIDES:
            answer = bracket(row["b"], d, row["eps"], side)
            error = 4 * row[f"se_{side}"] + 2e-5 * row[f"delta_{side}"]
            assert answer.lower - error <= row[f"delta_{side}"] <= answer.upper + error
        low, high = row["fft_remove_bracket"]
        answer = bracket(row["b"], d, row["eps"], "remove")
        assert low <= answer.lower <= answer.upper <= high


def test_deep_values_keep_relative_accuracy():
    """b = 2, add, far out: against a sum of positive terms in logarithms."""
    d, epsilon = 0.3, 9.0
    strike, root = 2 * math.exp(-epsilon), math.sqrt(d)
    top = (math.log(strike) + d / 2) / root
    t, w = np.polynomial.legendre.leggauss(60)
    edges = np.concatenate([top - 12 * 0.7 ** np.arange(0, 90.0), [top]])
    z = ((edges[1:, None] + edges[:-1, None]) / 2 + np.diff(edges)[:, None] / 2 * t).ravel()
    weights = (np.diff(edges)[:, None] / 2 * w).ravel()
    rest = np.maximum(strike - np.exp(root * z - d / 2), 1e-320)
    # E(k - X)_+ = k P(Z < a) - P(Z < a - root) = k delta of a Gaussian mechanism at epsilon = -log k
    logs = [math.log(r) + gaussian.log_delta(root, -math.log(r)) for r in rest]
    value = float(np.exp(np.array(logs) - z * z / 2 + 400) @ weights) / math.sqrt(2 * math.pi)
    log_truth = math.log(value) - 400 + epsilon - math.log(2)
    answer = bracket(2, d, epsilon, "add")
    assert answer.upper < 1e-100
    assert math.log(answer.lower) <= log_truth <= math.log(answer.upper)


# ------------------------------------------------------------------ statements of the theorem


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("request_", [(24, 1.21, 0.7), (128, 1.4, 3.0), (1000, 0.5, 1.0)])
def test_what_is_outside_the_window(request_, side):
    """[A-16] Tails by panels lie above the quadrature, by less than a half; the cut is a bound and negligible."""
    bins, d, epsilon = request_
    plan = lognormal_sum._Plan(*request_, side, gaussian.log_delta(math.sqrt(d), epsilon))
    whole = plan.log_moment(plan.theta)[0]
    for tails in (plan.log_left[-1], plan.log_right[0]):
        assert whole <= tails <= whole + math.log(1.5)
    law = lognormal_grid.Law(plan, plan.cells(1e-3))
    cut = np.logaddexp(plan.log_left[law.low], plan.log_right[law.high])
    # One coordinate outside, the others anywhere: Chernoff at theta, e^(theta y) >= e theta y.
    logs = math.log(bins) + cut + (bins - 1) * np.logaddexp(law.log_moment, cut)
    chernoff = logs - plan.sign * plan.theta - 1 - math.log(plan.theta)
    assert chernoff <= plan.log_cut(law) <= plan.log_answer - lognormal_sum._CUT + 1


def test_what_remove_loses_beyond_a_level():
    """[A-16] E[S; some Z_j > z] = b E X (1 - q p^(b-1)), with p = P(Z <= z) and q = P(Z <= z - root)."""
    for bins, d, z in ((2, 0.01, 4.0), (3, 0.04, 5.0), (10, 1.0, 6.0)):
        plan = lognormal_sum._Plan(bins, d, 0.5, "remove", gaussian.log_delta(math.sqrt(d), 0.5))
        log_p, log_q = special.log_ndtr(z), special.log_ndtr(z - math.sqrt(d))
        exact = math.log(bins) + plan.log_mean + math.log(-math.expm1(log_q + (bins - 1) * log_p))
        assert exact <= plan.log_beyond(z) <= exact + 1e-4


# ------------------------------------------------------------------ ends of the range


def test_no_bracket_says_what_it_has():
    with pytest.raises(NoBracketError, match=r"469 bins .* narrowest bracket"):
        bracket(469, 0.15116097594633313, 0.7554522865753386, "remove")
    with pytest.raises(NoBracketError, match="could not be bracketed"):
        bracket(4096, 1.0, 0.01, "remove", 1e-7)


def test_ends_of_epsilon_are_confirmed_by_wide_brackets():
    """The upper end of delta's bracket is below delta at the upper epsilon, its lower end above at the lower one."""
    at = lambda epsilon, tolerance: Bracket(0.8 * math.exp(-epsilon), 1.2 * math.exp(-epsilon), "a stand-in")
    found = lognormal_sum._confirmed(at, math.exp(-2), 2.0, 1e-6, 1e-3)
    assert at(found.upper, 1e-6).upper <= math.exp(-2) <= at(found.lower, 1e-6).lower
    assert found.width < 1
