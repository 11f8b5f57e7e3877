"""Near-exact values: against committed ones, certified ones, plain sampling, and one route against another."""

import math

import numpy as np
import pytest
from oracle_cases import load
from scipy import stats

from dplib import accounting, gaussian, matrices, mixtures
from dplib.lessons import _truth_integrals, truth

DATA = load("mmcc", "mc_truth")
SIDES = ("remove", "add")
SMALL = {"samples": 2048}


def together(first, second, many=4.5):
    """Whether two Estimates agree within their standard errors."""
    room = many * math.hypot(first.standard_error, second.standard_error)
    return abs(first.value - second.value) <= room + 1e-9 * abs(second.value)


# --- against values from elsewhere -----------------------------------------------------------------------


CASES = [(case, side) for case in DATA for side in SIDES]
# Twelve rounds cost seconds: one direction each, with few samples.
SLOW = {("toeplitz-n12-c10", "add"), ("toeplitz-n12-c20", "remove")}
CASES = [(case, side) for case, side in CASES if (case["id"], side) not in SLOW]


@pytest.mark.parametrize("case, side", CASES, ids=[f"{case['id'].split()[0]}-{side}" for case, side in CASES])
def test_committed_values(case, side):
    """[M-4.3] [M-tree] Earlier sampled values, within four combined standard errors; ours are to 2e-4."""
    kind, rounds, _ = case["id"].split()[0].split("-")
    key, few = side[:3], rounds == "n12"
    if kind == "tree":
        problem = truth.tree(matrices.binary_tree(int(rounds[1:])), case["sigma"], case["p"])
    else:
        encoder = matrices.optimal_counting(int(rounds[1:]))
        problem = truth.all_modes(encoder, case["sigma"], case["p"], samples=1024 if few else 4096)
    found = problem.epsilon(case["delta"], side)
    error = math.hypot(found.standard_error, case[key]["se"])
    assert abs(found.value - case[key]["eps"]) <= 4 * error
    assert found.standard_error <= (1e-3 if few else 2e-4) * found.value


@pytest.mark.parametrize(
    "rounds, sigma, p", [(1, 1.0, 0.1), (2, 2.0, 0.3), (2, 0.8, 0.05), (5, 1.0, 0.1), (8, 20.0, 0.25), (5, 0.3, 0.01)]
)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("delta", [1e-2, pytest.param(1e-6, marks=pytest.mark.trust), 1e-9])
def test_independent_rounds_against_the_accountant(rounds, sigma, p, side, delta):
    """[C-7] With C = I the pair is a product of rounds, for which there are certified brackets."""
    exact = accounting.epsilon([(mixtures.binomial(1, p, sigma), rounds)], delta, side)
    sampled = truth.all_modes(matrices.identity(rounds), sigma, p, **SMALL).epsilon(delta, side)
    assert abs(sampled.value - exact.upper) <= 5 * sampled.standard_error + exact.width + 1e-8
    assert sampled.standard_error <= 0.02 * sampled.value + 1e-5
    if sigma >= 1:
        forest = truth.tree(matrices.tree_restarts(rounds, 1), sigma, p, **SMALL).epsilon(delta, side)
        assert abs(forest.value - exact.upper) <= 5 * forest.standard_error + exact.width + 1e-8
    if rounds <= 2:
        close = truth.two_rounds(matrices.identity(rounds), sigma, p).epsilon(delta, side)
        assert abs(close.value - exact.upper) <= 1e-7 * (1 + exact.upper) + exact.width


# --- one route against another ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "leaves, trees, sigma, p", [(8, 1, 4.0, 0.3), (4, 2, 2.0, 0.1), (2, 3, 3.0, 0.2), (4, 1, 1.8, 0.05)]
)
@pytest.mark.parametrize("side", SIDES)
def test_the_recursion_over_nodes_agrees_with_all_modes(leaves, trees, sigma, p, side):
    """[M-tree] The same pair by counting participations in the nodes and by listing 2^n modes."""
    encoder = matrices.tree_restarts(leaves * trees, leaves)
    one = truth.tree(encoder, sigma, p, **SMALL).epsilon(1e-6, side)
    assert together(one, truth.all_modes(encoder, sigma, p, seed=1, **SMALL).epsilon(1e-6, side))


# --- closed forms and edges ------------------------------------------------------------------------------


def test_certain_and_impossible_participation():
    """[C-6] p = 1 is one Gaussian with mu = ||C 1|| / sigma; p = 0 is nothing at all."""
    tree, mu = matrices.tree_restarts(8, 4), math.sqrt(8 * 7) / 10
    for problem in (truth.tree(tree, 10, 1.0), truth.all_modes(tree, 10, 1)):
        assert problem.epsilon(1e-5).value == pytest.approx(gaussian.epsilon(mu, 1e-5), rel=1e-12)
        assert problem.delta(0.5, "add").upper == pytest.approx(gaussian.delta(mu, 0.5), rel=1e-12)
    for problem in (truth.tree(tree, 10, 0), truth.two_rounds(np.zeros((2, 2)), 1, 0.5)):
        assert problem.epsilon(1e-5).upper == problem.delta(0.0).upper == 0


def test_one_round_and_equal_columns_are_exact():
    """[C-8] One round, or rounds that all say the same: a scalar mixture, and nothing to sample."""
    one = truth.all_modes([[0.0, 2.0, 0.0]], 3.0, 0.2)
    exact = accounting.epsilon(mixtures.binomial(1, 0.2, 1.5), 1e-5)
    found = one.epsilon(1e-5)
    assert found.standard_error == 0 and abs(found.value - exact.upper) <= 1e-7
    same = truth.all_modes(np.ones((1, 3)), 3.0, 0.2).delta(0.2)
    assert same.value == pytest.approx(mixtures.binomial(3, 0.2, 3.0).hockey_stick(0.2), rel=1e-9)
    single = truth.tree(matrices.binary_tree(1), 1.5, 0.2).epsilon(1e-5, "remove")
    assert abs(single.value - exact.upper) <= 1e-7 and single.standard_error == 0


def test_what_is_left_out_of_a_forest_is_in_its_upper_end():
    """[M-tree] The probability of more participations than are counted, exactly, and on top of the estimate."""
    forest = _truth_integrals.Forest(8, 2, 0.3, 4.0, 0.05)
    counted = stats.binom.cdf(len(forest.slopes) - 1, 16, 0.3)
    assert 0.01 < forest.left_out <= 0.05 and forest.left_out == pytest.approx(1 - counted)
    problem = truth.tree(matrices.tree_restarts(16, 8), 4.0, 0.3, samples=1024)
    one, make = problem.delta(1.0, "remove"), problem._make_pair
    problem._make_pair = lambda left_out: make(0.05)
    two = problem.delta(1.0, "remove")
    assert two.value < one.value < two.upper and two.upper - two.value > forest.left_out


def test_no_loss_exceeds_that_of_no_participation():
    """[M-4.3] In the add direction the loss is at most -n log(1-p): delta is 0 from there on."""
    most = -3 * math.log1p(-0.2)
    for problem in (truth.all_modes(matrices.optimal_counting(3), 1.0, 0.2), truth.tree(matrices.tree_restarts(3, 1), 1.0, 0.2)):
        assert problem.delta(most, "add").upper == 0
        assert problem.delta(0.9 * most, "add").value > 0
        assert problem.epsilon(1e-9, "add").value < most


# --- faults are noticed ----------------------------------------------------------------------------------


def test_wrong_likelihood_ratios_are_noticed(monkeypatch):
    draw = _truth_integrals.Proposal.draw

    def wrong(self, seed, count):
        y, log_ratio = draw(self, seed, count)
        return y, log_ratio + 0.1

    monkeypatch.setattr(_truth_integrals.Proposal, "draw", wrong)
    with pytest.raises(ArithmeticError, match="likelihood ratios average to 1.1"):
        truth.tree(matrices.binary_tree(4), 4.0, 0.2, **SMALL).delta(0.5)
