"""Statements behind conditional composition: bad pasts, all-ones inputs, posterior bounds, tails."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from domination_cases import (
    averaged,
    best_adaptive,
    coins,
    composed_by_rounding,
    discrete,
    epsilons,
    modes_value,
    noises,
    ordered,
    posterior,
    rates,
    seeds,
    sequences,
    setting,
    stays_below,
    stick,
    triangular,
)
from hypothesis import given
from hypothesis import strategies as st
from property_cases import DIRECTIONS, examples, logs
from scipy import optimize, special, stats

from dplib import MatrixMechanism, accounting, conditional, matrices, mixtures
from dplib.lessons import truth

HALF = Fraction(1, 2)
directions = st.sampled_from(DIRECTIONS)


def hockey_stick(P, Q, alpha):
    return np.maximum(P - alpha * Q, 0).sum(axis=-1)


@pytest.fixture(scope="module")
def toys():
    """Random two-round mechanisms on {0, 1, 2}^2; the past 2 is bad and its second round arbitrary."""
    rng, n = np.random.default_rng(11), 4000
    P1, Q1 = rng.dirichlet(np.full(3, 0.7), size=(2, n))
    P2, Q2 = rng.dirichlet(np.ones(4), size=(2, n))
    view = rng.dirichlet(np.ones(3), size=(n, 3, 4))
    P_past, Q_past = (np.einsum("ni,nyij->nyj", x, view) for x in (P2, Q2))
    P_past[:, 2], Q_past[:, 2] = rng.dirichlet(np.full(3, 0.3), size=(2, n))
    alpha = np.exp(rng.uniform(-1.5, 3, size=n))

    def both(first, second):
        return (first[:, :, None] * second).reshape(n, -1)

    truth = hockey_stick(both(P1, P_past), both(Q1, Q_past), alpha[:, None])
    pair = hockey_stick(both(P1, P2[:, None]), both(Q1, Q2[:, None]), alpha[:, None])
    return truth, pair, P1[:, 2], Q1[:, 2], alpha


def test_conditional_composition_by_enumeration(toys):
    """[M-3.1] The product pair plus the probability of the bad pasts under the first law is a bound."""
    truth, pair, bad, _, _ = toys
    assert np.all(truth <= pair + bad + 1e-12)
    assert np.mean(truth > pair + 1e-12) > 0.2


def test_constant_of_conditional_composition_is_attained():
    """[M-3.1] Round 1 says nothing, round 2 all after a bad past: the truth is the bad mass itself."""
    beta = Fraction(1, 20)
    runs = [(1 - beta, 1 - beta), (beta, 0), (0, beta)]
    for order in (1, 3, 50):
        assert sum(max(p - order * q, 0) for p, q in runs) == beta


def test_bad_pasts_under_the_second_law_are_no_bound(toys):
    """[M-3.1] Measured under the second argument the bad pasts are too cheap."""
    truth, pair, _, other, _ = toys
    assert np.sum(truth > pair + other + 1e-12) > 20
    p, q, order = (HALF, Fraction(3, 10), Fraction(1, 5)), (HALF, Fraction(49, 100), Fraction(1, 100)), 8
    exact = sum(max(a - order * b, 0) for a, b in zip(p[:2], q[:2])) + p[2]  # round 2 reveals the bad past
    product = sum(max(a - order * b, 0) for a, b in zip(p, q))
    assert product + q[2] < exact == product + min(p[2], order * q[2]) < product + p[2]


def test_a_bad_past_costs_the_smaller_of_two_masses(toys):
    """[M-3.1s] Each bad past costs at most min(P', alpha Q'), and this can be attained."""
    truth, pair, bad, other, alpha = toys
    slack = pair + np.minimum(bad, alpha * other) - truth
    assert slack.min() > -1e-12
    assert np.any(alpha * other < bad) and np.any(alpha * other > bad)


@examples(80)
@given(st.integers(2, 3), discrete(6, most=3), logs(0.05, 30), st.floats(0, 0.6), st.booleans(), seeds)
def test_bad_pasts_of_three_rounds_are_charged_at_their_first_prefix(rounds, laws, alpha, share, reveals, seed):
    """[M-3.1], [M-3.1s] Anything may happen after a bad prefix; it is paid once, at the smaller of two prices."""
    rng, outcomes = np.random.default_rng(seed), laws.shape[1]
    if reveals:  # later rounds say nothing but after a bad prefix, where they say all: the price is what that costs
        laws = np.concatenate([laws[:2], laws[2::2].repeat(2, axis=0)])
    P, Q, product_p, product_q = (np.ones(()) for _ in range(4))
    ever_bad, first_law, cheaper = np.zeros((), bool), 0.0, 0.0
    for i in range(rounds):
        now = (rng.random(P.shape) < share) & ~ever_bad if i else np.zeros((), bool)
        first_law += float(P[now].sum())
        cheaper += float(np.minimum(P, alpha * Q)[now].sum())
        ever_bad = ever_bad | now
        wild = rng.dirichlet(np.full(outcomes, 0.2), size=(2, *P.shape))
        through = rng.dirichlet(np.full(outcomes, 0.3), size=(*P.shape, outcomes))
        if reveals:
            wild[:] = np.eye(outcomes)[:2].reshape(2, *(1,) * P.ndim, outcomes)
            through[:] = np.eye(outcomes)
        pair = [np.einsum("j,...jk->...k", laws[2 * i + side], through) for side in (0, 1)]
        P, Q = (x[..., None] * np.where(ever_bad[..., None], w, y) for x, w, y in zip((P, Q), wild, pair))
        product_p, product_q = product_p[..., None] * laws[2 * i], product_q[..., None] * laws[2 * i + 1]
        ever_bad = np.broadcast_to(ever_bad[..., None], P.shape)
    off = stick(product_p, product_q, alpha)
    assert stays_below(off + cheaper, P, Q, alpha)
    assert cheaper <= first_law


# ------------------------------------------------------------------ matrix mechanisms


@examples(25)
@given(st.integers(2, 3), rates, logs(0.4, 6), epsilons, directions, seeds)
def test_all_ones_is_the_worst_adaptive_input(rounds, q, sigma, epsilon, direction, seed):
    """[M-B.4] Two and three rounds: the pair of equal inputs by quadrature."""
    _, encoder, ends, inputs = setting(seed, rounds, sigma)
    chances = coins(rounds, q)
    present = averaged(encoder, chances, inputs, sigma, ends)
    absent = sequences(encoder, (0,) * rounds, inputs, sigma, ends)
    modes = np.array(list(chances)) @ encoder.T / sigma
    bound = modes_value(modes, list(chances.values()), epsilon, direction).upper
    assert stays_below(bound, *ordered(present, absent, direction), math.exp(epsilon))


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("rounds, seed", [(3, 1), (3, 2), (4, 3), (4, 4)])
def test_best_adaptive_input_of_three_and_four_rounds(rounds, seed, direction):
    """[M-B.4] The best of all adaptive strategies of inputs 1, 0 and -1 that see ten cells of each earlier output.

    It is no better than the all-ones input (seen through cells, by less than 0.2%) and within a few per cent of the
    pair; with a row of negative entries another one is better by far, and stays below the pair of |C|.
    """
    rng = np.random.default_rng(seed)
    q, sigma, epsilon = rng.uniform(0.2, 0.6), rng.uniform(0.8, 1.5), rng.uniform(0.1, 0.8)
    C = np.tril(rng.uniform(0.2, 1, (rounds, rounds)), -1) + np.eye(rounds)
    signed = C.copy()
    signed[-1, :-1] *= -1
    chances = coins(rounds, q)
    if rounds == 3:
        bound = modes_value(np.array(list(chances)) @ C.T / sigma, list(chances.values()), epsilon, direction)
    else:
        bound = truth.all_modes(C, sigma, q, samples=2**14).delta(epsilon, direction)
    choices = (-1.0, 0.0, 1.0) if rounds == 3 else (-1.0, 1.0)
    ends = np.concatenate([[-np.inf], sigma * np.linspace(-2, 2, 9) + 0.4, [np.inf]])
    best, equal = best_adaptive(C, chances, sigma, ends, math.exp(epsilon), direction, choices)
    assert 0.9 * bound.upper < best <= bound.upper
    assert best == pytest.approx(equal, rel=2e-3)
    other, equal = best_adaptive(signed, chances, sigma, ends, math.exp(epsilon), direction, choices)
    assert 1.1 * equal < other <= bound.upper


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_the_algorithm_written_out(direction):
    """[M-Alg1] A tree of four leaves: bounds by enumeration, rows set by set, losses added on a lattice; no library.

    The library's bounds come from recursions: up to 2% above those of the enumeration, never below.
    """
    encoder, sigma, q, delta = matrices.binary_tree(4), 6.0, 0.2, 2e-3
    C = encoder.entries()
    chances, _ = tail_bounds(C, q, sigma, delta / 2)
    rows = []
    for row, chance in zip(C, chances):
        sets = subsets(np.count_nonzero(row))
        mine = chance[row > 0]
        rows.append((sets @ row[row > 0], np.prod(np.where(sets, mine, 1 - mine), axis=1), sigma, 1))
    found = MatrixMechanism(encoder, sigma, q, tail_bound="published").epsilon(delta, direction).upper
    curve = composed_by_rounding(rows, direction, 2e-4)
    below, above = (optimize.brentq(lambda e, end=end: curve(e)[end] - delta / 2, 0.01, 3) for end in (0, 1))
    assert above < below * 1.01
    assert below <= found < 1.02 * above


def subsets(n):
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)


def coin_bound(above, past, q, sigma):
    evidence = (2 * past @ above - np.sum(above**2, axis=0)) / (2 * sigma**2)
    return special.expit(special.logit(q) + evidence)


@examples(60)
@given(st.integers(2, 6), st.one_of(logs(1e-3, 0.9), logs(1e-9, 0.999)), noises, epsilons, directions, seeds)
def test_posterior_is_covered_by_independent_coins(rounds, q, sigma, epsilon, direction, seed):
    """[M-C.3] Any past, likely or not: conditional and marginal probabilities, stochastic order, increasing sets, divergences of the row."""
    rng = np.random.default_rng(seed)
    C, r = triangular(rng, rounds, False), int(rng.integers(1, rounds))
    past = rng.normal(0, rng.choice([1, 5]) * sigma, r) + C[:r] @ (rng.random(rounds) < q)
    pi = coin_bound(C[:r], past, q, sigma)
    sets, law = posterior(C[:r], past, q, sigma)
    cover = np.prod(np.where(sets, pi, 1 - pi), axis=1)
    assert np.all(law @ sets <= pi + 1e-12)
    for j in range(rounds):
        partner = np.flatnonzero(~sets[:, j])  # the same set without and with j
        with_it = law[partner + (1 << j)]
        assert np.all(with_it <= pi[j] * (law[partner] + with_it) + 1e-12)
    for weights in (C[r], rng.exponential(size=rounds), rng.integers(0, 3, size=rounds).astype(float)):
        for t in np.unique(sets @ weights) - 1e-9:
            above = sets @ weights > t
            assert law[above].sum() <= cover[above].sum() + 1e-12
    grown = np.any(sets[:, None, :] >= sets[rng.integers(0, 2**rounds, size=2)], axis=1).all(axis=1)
    assert law[grown].sum() <= cover[grown].sum() + 1e-12
    truth = mixtures.Mixture(sets @ C[r], law / law.sum(), sigma).hockey_stick(epsilon, direction)
    assert truth <= mixtures.product(pi, C[r], sigma).hockey_stick(epsilon, direction) * (1 + 1e-9) + 1e-15


def test_posterior_bound_needs_entries_that_are_not_negative():
    """[M-C.3] Two columns with a negative inner product explain each other, and the bound fails."""
    above, past = np.array([[1.0, 0.0], [1.0, -1.0]]), np.array([1.0, 0.0])
    sets, law = posterior(above, past, 0.5, 0.5)
    assert math.isclose(law @ sets[:, 0], 1 / (1 + math.exp(-2)), rel_tol=1e-12)
    assert coin_bound(above, past, 0.5, 0.5)[0] == 0.5
    with pytest.raises(ValueError, match="at least 0"):
        matrices.dense([[1.0, 0.0], [-1.0, 1.0]])


# ------------------------------------------------------------------ tails


def tail_bounds(C, q, sigma, budget):
    """The published rule by enumeration, with the exact probability that each bound is exceeded."""
    sets = subsets(C.shape[1])
    law = q ** sets.sum(axis=1) * (1 - q) ** (~sets).sum(axis=1)
    pairs = [(r, j) for r, j in zip(*np.nonzero(C)) if np.any(C[:r, j])]
    assert len(pairs) == np.count_nonzero(C) - C.shape[1]
    share = budget / (2 * max(len(pairs), 1))
    bound, exceeded = np.where(C > 0, q, np.nan), np.zeros((2, len(pairs)))
    for k, (r, j) in enumerate(pairs):
        v = C[:r, j]
        size, total = np.linalg.norm(v), sets @ (C[:r].T @ v)
        order = np.argsort(total)
        s = total[order][np.argmax(1 - np.cumsum(law[order]) <= share + 1e-15)]
        z = stats.norm.isf(share)
        bound[r, j] = special.expit(special.logit(q) + z * size / sigma + (2 * s - size**2) / (2 * sigma**2))
        threshold = s + z * sigma * size
        exceeded[0, k] = law @ stats.norm.sf((threshold - total) / (sigma * size))
        exceeded[1, k] = stats.norm.sf(threshold / (sigma * size))
    return bound, exceeded


ENCODERS = [
    matrices.optimal_counting(8).entries(),
    matrices.binary_tree(8).entries(),
    matrices.optimal_counting(8, bands=3).entries(),
    np.eye(8)[::-1],
]


@pytest.mark.parametrize("C", ENCODERS, ids=["counting", "tree", "banded", "no shared column"])
def test_tail_bounds_keep_their_budget(C):
    """[M-Alg2] Exact probabilities of all pairs: at most the budget with the record, half of it without."""
    for q, c, budget in itertools.product((0.05, 0.3), (0.5, 2, 8), (1e-6, 0.05)):
        bound, (with_record, without) = tail_bounds(C, q, c * np.linalg.norm(C, axis=0).max(), budget)
        assert with_record.sum() <= budget * (1 + 1e-9)
        assert without.sum() <= budget / 2 * (1 + 1e-9)
        assert np.all(bound[C > 0] >= q) and np.all(bound[C > 0] <= 1)


def test_bounds_in_advance_are_rarely_exceeded_in_simulated_runs():
    """[M-Alg2] Frequency of bad runs, with an exact binomial limit, against the budget; both laws."""
    C, q, n, budget = ENCODERS[1], 0.3, 20_000, 0.2
    sigma = 2.0 * math.sqrt(4)
    bound, _ = tail_bounds(C, q, sigma, budget)
    for seed, record in ((15, True), (16, False)):
        rng, bad = np.random.default_rng(seed), np.zeros(n, bool)
        take = (rng.random((n, C.shape[1])) < q) * record
        theta = take @ C.T + sigma * rng.standard_normal((n, C.shape[0]))
        for r in range(len(C)):
            bad |= np.any((coin_bound(C[:r], theta[:, :r], q, sigma) > bound[r] + 1e-12), axis=1)
        limit = stats.beta.ppf(0.999, bad.sum() + 1, n - bad.sum())
        assert limit < (budget if record else budget / 2)


def test_two_rounds_against_the_exact_value():
    """[M-3.1] With the tail bound of the coin that both outputs share: above the truth, both directions."""
    q, sigma, budget, C = 0.1, 2.0, 5e-5, np.array([[1.0, 0.0], [1.0, 1.0]])
    pi = tail_bounds(C, q, sigma, budget)[0][1, 0]
    rows = [(mixtures.binomial(1, q, sigma), 1), (mixtures.product([pi, q], [1, 1], sigma), 1)]
    for direction, exact, published in (("remove", 0.7565, 1.5765), ("add", 0.1562, 0.5983)):
        value = accounting.epsilon(rows, 5e-5, direction, method="lattice").upper
        assert value > exact and abs(value / published - 1) < 1e-3


@pytest.mark.parametrize(
    "encoder",
    [
        matrices.optimal_counting(8),
        matrices.binary_tree(8),
        matrices.dense(np.tril(1 + np.arange(36).reshape(6, 6) % 5)),
    ],
    ids=["counting", "tree", "dense"],
)
def test_published_tail_of_the_library(encoder):
    """[M-Alg2] The library's bounds are never below the enumerated ones, and close to them."""
    C = encoder.entries()
    for q, c, budget in ((0.25, 1.0, 0.05), (0.05, 4.0, 1e-6)):
        sigma = c * encoder.column_norms().max()
        found = conditional.published_tail(encoder, sigma, q, budget)
        exact, _ = tail_bounds(C, q, sigma, budget)
        assert np.all((found - exact)[C > 0] >= -1e-12)
        assert np.all((found - exact)[C > 0] < 0.02)
        assert np.all(found[C == 0] == 1)
