"""The statements of chapter 15, each checked without the library's samplers: by enumeration, on grids, by hand."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import special, stats

MODES = np.array([[0.75, 0.05], [0.5, 0.45], [0.1, 0.7]])
GRAM = MODES @ MODES.T


def _plane(reach=10.0, points=451):
    axis = np.linspace(-reach, reach, points)
    u = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    q = np.exp(-np.sum(u**2, axis=-1) / 2) / (2 * math.pi) * (axis[1] - axis[0]) ** 2
    return u, q


def _ratio(u, modes=MODES):
    return np.mean(np.exp(u @ modes.T - np.sum(modes**2, axis=1) / 2), axis=-1)


def _deltas(epsilon, modes=MODES):
    u, q = _plane()
    ratio, alpha = _ratio(u, modes), math.exp(epsilon)
    return np.sum(q * np.maximum(ratio - alpha, 0)), np.sum(q * np.maximum(1 - alpha * ratio, 0))


def test_estimator_needs_the_gram_matrix_only():
    """[N-MC] b normals with covariance Gamma give the same mean as the grid, in both directions."""
    rng, runs, epsilon = np.random.default_rng(1), 400_000, 0.5
    modes = 2 * MODES
    gram = modes @ modes.T
    g = rng.standard_normal((runs, 3)) @ np.linalg.cholesky(gram + 1e-12 * np.eye(3)).T
    for direction, truth in zip(("remove", "add"), _deltas(epsilon, modes)):
        y = g - np.diag(gram) / 2
        if direction == "remove":
            y = y + gram[rng.integers(3, size=runs)]
        loss = special.logsumexp(y, axis=1) - math.log(3)
        x = np.maximum(1 - np.exp(epsilon - (loss if direction == "remove" else -loss)), 0)
        assert 0 <= x.min() and x.max() < 1
        assert abs(x.mean() - truth) < 4 * x.std() / math.sqrt(runs) < 0.01 * truth


def test_relative_variance_lies_between_its_bounds():
    """[N-MC] 1/p - 1 <= relative variance <= 1/delta - 1, on a grid; and the second moment from the curve."""
    u, q = _plane()
    loss = np.log(_ratio(u))
    for epsilon in (0.3, 1.0):
        x = np.maximum(1 - np.exp(epsilon - loss), 0)
        p = q * np.exp(loss)
        delta, positive, second = np.sum(p * x), np.sum(p[x > 0]), np.sum(p * x**2)
        relvar = second / delta**2 - 1
        assert 1 / positive - 1 <= relvar <= 1 / delta - 1
        step = np.linspace(0, 6, 241)
        curve = np.array([np.sum(p * np.maximum(1 - np.exp(epsilon + s - loss), 0)) for s in step])
        assert np.trapezoid(2 * np.exp(-2 * step) * curve, step) == pytest.approx(second, rel=2e-3)


def _verified(p, q, epsilon, threshold, m):
    """(probability of acceptance, delta of the mechanism, delta of the procedure), each the larger direction.

    The mechanism answers 1 with probability p or q, else 0. The test averages m payoffs for each direction; the
    procedure's three outcomes, the refusal among them, are listed.
    """
    alpha, accept, alone = math.exp(epsilon), 1.0, 0.0
    for first, second in ((p, q), (q, p)):
        laws = np.array([[first, 1 - first], [second, 1 - second]])
        payoffs = np.maximum(1 - alpha * laws[1] / laws[0], 0)
        assert np.count_nonzero(payoffs) <= 1
        i = int(payoffs.argmax())
        if payoffs[i] > 0:
            accept *= stats.binom.cdf(math.floor(threshold * m / payoffs[i]), m, laws[0, i])
        alone = max(alone, np.maximum(laws[0] - alpha * laws[1], 0).sum())
    together = 0.0
    for first, second in ((p, q), (q, p)):
        with_refusal = [np.array([accept * x, accept * (1 - x), 1 - accept]) for x in (first, second)]
        together = max(together, np.maximum(with_refusal[0] - alpha * with_refusal[1], 0).sum())
    return accept, alone, together


def _claims():
    """Mechanisms with two answers and claims about them, true and false ones, drawn without looking at any test."""
    rng = np.random.default_rng(2)
    while True:
        epsilon, q = rng.uniform(0, 2), 10 ** rng.uniform(-4, -0.5)
        p = min(math.exp(epsilon) * q + 10 ** rng.uniform(-3, -0.5), 1.0)
        if p < 1 and 1 - q < math.exp(epsilon) * (1 - p) * 1e3:
            yield p, q, epsilon, 10 ** rng.uniform(-2.5, -0.7), rng.uniform(0.3, 0.95)


def test_verified_release_is_private():
    """[N-2.1] Whatever is claimed of whatever mechanism, the procedure's delta is at most the final one."""
    from dplib import montecarlo

    samples = {
        "the rule": lambda threshold, final: montecarlo.verification_samples(threshold, final),
        "a quarter": lambda threshold, final: montecarlo.verification_samples(threshold, final) // 4 + 1,
        "one": lambda threshold, final: 1,
    }
    wrongly, broken, kinds = dict.fromkeys(samples, 0), dict.fromkeys(samples, 0), set()
    for _, (p, q, epsilon, final, share) in zip(range(400), _claims()):
        for name, rule in samples.items():
            m = rule(share * final, final)
            accept, alone, together = _verified(p, q, epsilon, share * final, m)
            kinds.add(alone <= final)
            wrongly[name] += alone > final and accept > final
            broken[name] += together > final * (1 + 1e-9)
    assert kinds == {True, False}
    assert wrongly["the rule"] == broken["the rule"] == 0
    # Fewer samples: false claims pass more often than they may; with one sample the procedure is not private.
    assert wrongly["a quarter"] > 0 and wrongly["one"] > 50 and broken["one"] > 10


def test_published_sample_sizes():
    """[N-2.1] 5.4e7, 2.2e8 and 9.1e8 samples for thresholds 8, 9 and 9.5 millionths."""
    from dplib import montecarlo

    for threshold, published in ((8e-6, 5.4e7), (9e-6, 2.2e8), (9.5e-6, 9.1e8)):
        assert montecarlo.verification_samples(threshold, 1e-5) == pytest.approx(published, rel=0.02)


def test_tuple_identity():
    """[A-15] The sum over all tuples of weight times bounded payoff is delta (remove), on a grid."""
    u, q = _plane(12.0, 701)
    ratio, epsilon, kappa = _ratio(u), 1.0, 3
    payoff = np.maximum(ratio - math.exp(epsilon), 0) / ratio**kappa
    total = 0.0
    for tuple_ in product(range(3), repeat=kappa):
        n = np.bincount(tuple_, minlength=3)
        pairs = (n @ GRAM @ n - n @ np.diag(GRAM)) / 2
        centre = n @ MODES
        total += 3.0**-kappa * np.exp(pairs) * np.sum(q * np.exp(u @ centre - centre @ centre / 2) * payoff)
    assert total == pytest.approx(np.sum(q * np.maximum(ratio - math.exp(epsilon), 0)), rel=1e-6)
    peak = (1 - 1 / kappa) ** (kappa - 1) / kappa * math.exp((1 - kappa) * epsilon)
    assert payoff.max() <= peak * (1 + 1e-12)


def test_half_space_contains_the_region():
    """[A-15] Y < -epsilon implies the half-space, for random weights; so Phi(-r_0) bounds delta (add)."""
    rng, epsilon = np.random.default_rng(4), 0.5
    u, _ = _plane(8.0, 401)
    inside = u[np.log(_ratio(u)) < -epsilon]
    add = _deltas(epsilon)[1]
    for weights in rng.dirichlet(np.full(3, 0.7), size=300):
        direction, spread = weights @ MODES, weights @ GRAM @ weights
        cost = weights @ np.diag(GRAM) / 2 + np.sum(special.xlogy(weights, 3 * weights))
        distance = (epsilon - cost) / math.sqrt(spread)
        assert np.all(inside @ direction < -distance * math.sqrt(spread) + 1e-9)
        assert add <= stats.norm.cdf(-distance) + 1e-9


def test_capital_is_a_martingale():
    """[A-15] Enumerated exactly: E prod (1 - bet (x - mean)) = 1, with bets that follow the past."""
    values, chances = np.array([0.0, 0.3, 1.0]), np.array([0.7, 0.2, 0.1])
    mean = chances @ values
    expected, ruin = 0.0, 0.0
    for path in product(range(3), repeat=7):
        capital, probability, last = 1.0, 1.0, 0.0
        for i in path:
            capital *= 1 - (0.2 + 0.5 * last) * (values[i] - mean)
            probability *= chances[i]
            last = values[i]
        expected += probability * capital
        ruin += probability * (capital >= 1.2)
    assert expected == pytest.approx(1, abs=1e-12)
    assert ruin <= 1 / 1.2
