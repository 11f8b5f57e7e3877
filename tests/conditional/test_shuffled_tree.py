"""Chapter 13: one record in a hidden slot, or on a hidden leaf of the binary tree, by routes of its own.

The chapter computes with characteristic functions; here the law of the likelihood ratio comes from convolution on a
lattice, from importance sampling and from enumeration of columns.
"""

import itertools
import math

import numpy as np
import pytest
from domination_cases import discrete, stick
from hypothesis import example, given
from property_cases import examples, logs
from scipy import optimize, special, stats

from dplib import accounting, gaussian, matrices, mixtures, renyi


def average_of_lognormals(n, sigma, step=1 / 64):
    """Upper approximation in convex order of the sum of n lognormals of mean 1: (lattice values / n, masses)."""
    size = 1 << math.ceil(math.log2(3 * n / step))
    edges = np.arange(1, size + 1) * step
    s = 1 / sigma
    below = special.ndtr((np.log(edges) + s * s / 2) / s)
    mean_below = special.ndtr((np.log(edges) - s * s / 2) / s)
    mass = np.diff(below, prepend=0.0)
    mean = np.diff(mean_below, prepend=0.0)
    right = mean / step - mass * np.arange(size)  # each cell splits to its two ends, keeping its mean
    law = np.zeros(size)
    law += mass - right
    law[1:] += right[:-1]
    total = np.fft.irfft(np.fft.rfft(law) ** n, size)
    return np.arange(size) * step / n, total


def sampled_delta(columns, sigma, epsilon, runs, seed):
    """Importance-sampled delta of equally likely columns, remove: (value, standard error)."""
    rng = np.random.default_rng(seed)
    centre = columns.mean(axis=1)
    norm = centre @ centre
    shift = 0.5 + epsilon * sigma**2 / norm
    x = shift * centre + sigma * rng.standard_normal((runs, len(centre)))
    squares = (columns**2).sum(axis=0)
    ratio = special.logsumexp((x @ columns - squares / 2) / sigma**2, axis=1) - math.log(columns.shape[1])
    weight = np.exp((-shift * (x @ centre) + shift**2 * norm / 2) / sigma**2)
    values = weight * np.maximum(np.exp(ratio) - math.exp(epsilon), 0)
    return values.mean(), values.std() / math.sqrt(runs)


# ------------------------------------------------------------ one slot in n


@pytest.mark.parametrize("n, published", [(16, 0.113), (64, 0.047), (256, 0.018), (1024, 0.0062)])
def test_slots_against_reference_and_bounds(n, published):
    """[M-5.1] Exact epsilon at sigma 4, delta 1e-3: reference value, lower bound, Bernstein bound."""
    sigma, delta = 4.0, 1e-3
    values, masses = average_of_lognormals(n, sigma)
    excess = lambda e: masses @ np.maximum(values - math.exp(e), 0) - delta
    exact = optimize.brentq(excess, 0, 1)
    assert abs(exact / published - 1) < 0.02
    assert gaussian.epsilon(1 / (sigma * math.sqrt(n)), delta) < exact
    assert exact < bernstein(n, sigma, delta)
    add = masses @ np.maximum(1 - math.exp(exact) * values, 0)
    assert 0.95 * delta < add < delta  # remove decides [C-9m]


def bernstein(slots, sigma, delta):
    beta, z0 = -math.log(delta / 2), stats.norm.isf(delta / 2 / slots)
    w, variance = math.exp(z0 / sigma - 1 / (2 * sigma**2)), math.expm1(1 / sigma**2)
    single = (w * special.ndtr(z0) - special.ndtr(z0 - 1 / sigma)) * beta / 3 + w * math.exp(1 / sigma**2) - 1
    return math.log1p(math.sqrt(2 * variance * beta / slots) + single / slots)


def test_bound_for_many_slots_has_the_right_order():
    """[M-5.1] With 16,384 slots the root rules: above the Gaussian of the mean, and the bound is about twice the value."""
    n, sigma, delta = 2**14, 4.0, 1e-6
    values, masses = average_of_lognormals(n, sigma, step=1 / 16)
    exact = optimize.brentq(lambda e: masses @ np.maximum(values - math.exp(e), 0) - delta, 1e-4, 1)
    bound = bernstein(n, sigma, delta)
    assert gaussian.epsilon(1 / (sigma * math.sqrt(n)), delta) < exact < bound < 2.2 * exact


def test_tail_of_unequal_slots_is_below_the_bound():
    """[M-5.1] Weights of at most 1 / n' on more slots: the simulated tail of the loss obeys the explicit bound."""
    rng, sigma, runs = np.random.default_rng(1), 2.0, 200_000
    p = np.array([0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05])  # n' = 5
    place = rng.choice(8, size=runs, p=p)
    x = sigma * rng.standard_normal((runs, 8))
    x[np.arange(runs), place] += 1
    loss = np.log(np.exp(x / sigma**2 - 1 / (2 * sigma**2)) @ p)
    for beta, z0 in ((1.0, 1.5), (2.0, 2.0), (3.0, 2.5)):
        w, variance = math.exp(z0 / sigma - 1 / (2 * sigma**2)), math.expm1(1 / sigma**2)
        single = (w * special.ndtr(z0) - special.ndtr(z0 - 1 / sigma)) * beta / 3 + w * math.exp(1 / sigma**2) - 1
        epsilon = math.log1p(math.sqrt(2 * variance * beta / 5) + single / 5)
        assert np.mean(loss > epsilon) <= math.exp(-beta) + 8 * special.ndtr(-z0)


def test_capped_weights_are_an_average_of_equal_ones():
    """[M-5.1] Probabilities of at most 1 / n' are a mixture of uniform laws on sets of n' slots."""
    sets = list(itertools.combinations(range(6), 3))
    uniform = np.array([[1 / 3 if i in chosen else 0 for chosen in sets] for i in range(6)])
    rng = np.random.default_rng(2)
    for _ in range(30):
        p = rng.dirichlet(np.ones(6))
        while p.max() > 1 / 3:
            p = 0.8 * p + 0.2 / 6
        found = optimize.linprog(np.zeros(len(sets)), A_eq=uniform, b_eq=p, bounds=(0, None))
        assert found.status == 0


# ------------------------------------------------------- remove against add


def test_remove_is_the_larger_direction_of_any_composed_mixture():
    """[C-9m] Certified brackets of random heterogeneous runs: remove is never below add at epsilon >= 0."""
    rng = np.random.default_rng(3)
    for _ in range(4):
        parts = []
        for _ in range(int(rng.integers(1, 4))):
            size = int(rng.integers(2, 5))
            pair = mixtures.Mixture(rng.uniform(0, 2.5, size), rng.dirichlet(np.ones(size)), rng.uniform(0.4, 3))
            parts.append((pair, int(rng.integers(1, 20))))
        epsilon = rng.uniform(0, 4)
        # Of the logarithm: where delta hardly differs from 1 `delta` is content with a bracket that says so.
        remove, add = (accounting.log_delta(parts, epsilon, direction=d) for d in ("remove", "add"))
        assert remove.lower > add.upper


def test_loss_is_a_convex_function_of_a_normal_variable():
    """[C-9m] Scalar mixtures with shifts of both signs: Phi^-1(Q(loss <= t)) is concave in t."""
    rng, x = np.random.default_rng(4), np.linspace(-40, 40, 80_001)
    for _ in range(20):
        shifts, p = rng.normal(0, 1.5, 4), rng.dirichlet(np.ones(4))
        loss = special.logsumexp(shifts[:, None] * x - shifts[:, None] ** 2 / 2, b=p[:, None], axis=0)
        low = loss.argmin()
        t = np.linspace(loss[low] + 0.02, 2.5, 120)
        right, left = np.interp(t, loss[low:], x[low:]), np.interp(-t, -loss[: low + 1], x[: low + 1])
        mass = special.ndtr(right) - special.ndtr(left)
        level = special.ndtri(mass[(mass > 1e-6) & (mass < 1 - 1e-6)])
        assert len(level) > 10 and np.diff(level, 2).max() < 1e-5


def test_add_is_larger_below_order_one():
    """[C-9m] For alpha below 1 the inequality is reversed, by parity; it needs alpha >= 1."""
    pair = mixtures.binomial(1, 0.1, 1.0)
    assert pair.hockey_stick(0.5, "remove") > pair.hockey_stick(0.5, "add")
    assert pair.hockey_stick(-0.05, "remove") < pair.hockey_stick(-0.05, "add")


# ---------------------------------------------------------------- the tree


@pytest.mark.parametrize("leaves, published", [(2, 3.16), (4, 3.43), (16, 3.64), (64, 3.70)])
def test_noise_of_the_shuffled_tree(leaves, published):
    """[M-5.2] The noise for epsilon 1, delta 1e-3 in the simplified case, against reference values within 3%."""
    columns = matrices.binary_tree(leaves).entries()
    runs = 20_000 if leaves < 64 else 8000
    excess = lambda sigma: sampled_delta(columns, sigma, 1.0, runs, leaves)[0] - 1e-3
    sigma = optimize.brentq(excess, 2.8, 4.2, xtol=1e-3)
    assert abs(sigma / published - 1) < 0.03
    assert sigma < 0.95 * math.sqrt(math.log2(leaves) + 1) / gaussian.calibrate(1.0, 1e-3)


def test_projection_bounds_the_tree_from_below():
    """[M-5.2r] (i) The weighted sum of all nodes is Gaussian with mu = sqrt(2 - 1/n) / sigma."""
    for leaves in (1, 2, 8, 64):
        columns = matrices.binary_tree(leaves).entries()
        centre = columns.mean(axis=1)
        assert np.allclose(columns.T @ centre, 2 - 1 / leaves) and math.isclose(centre @ centre, 2 - 1 / leaves)
    columns = matrices.binary_tree(16).entries()
    for sigma in (2.0, 4.0):
        value, error = sampled_delta(columns, sigma, 0.7, 20_000, 5)
        assert value > gaussian.delta(math.sqrt(2 - 1 / 16) / sigma, 0.7) - 4 * error


@pytest.mark.parametrize("order", [2, 3, 4])
def test_replica_bound_by_enumeration(order):
    """[M-5.2r] (ii) Moments of the ratio over all tuples of columns are below the replica bound, equal at order 2."""
    for leaves, sigma in itertools.product((2, 4, 8), (1.7, 3.0)):
        if order / (2 * sigma**2) >= math.log(2):
            continue
        overlap = matrices.binary_tree(leaves).gram()
        moment = 0.0
        for places in itertools.product(range(leaves), repeat=order):
            inside = sum(overlap[a, b] for a, b in itertools.combinations(places, 2))
            moment += math.exp(inside / sigma**2) / leaves**order
        divergence = math.log(moment) / (order - 1)
        t = order / (2 * sigma**2)
        finite = math.log(np.exp(t * overlap[0]).mean())
        assert divergence <= finite * (1 + 1e-12)
        assert finite <= math.log(math.exp(t) / (2 - math.exp(t)))
        assert order > 2 or math.isclose(divergence, finite, rel_tol=1e-12)


@pytest.mark.parametrize("epsilon, delta", [(1.0, 1e-3), (0.3, 1e-5), (0.05, 0.1), (1.0, 1e-12)])
def test_explicit_noise_suffices(epsilon, delta):
    """[M-5.2r] (iii) At sigma^2 = 5 (ln(1/delta) + epsilon) / epsilon^2 the limit curve gives at most epsilon."""
    sigma = math.sqrt(5 * (math.log(1 / delta) + epsilon)) / epsilon

    def curve(order):
        t = order / (2 * sigma**2)
        return t - math.log(2 - math.exp(t)) if t < math.log(2) else math.inf

    order = float(math.ceil(1 + 2 * math.log(1 / delta) / epsilon))
    assert curve(order) + math.log(1 / delta) / (order - 1) <= epsilon
    orders = [order - 1, order, order + 1] if order > 2 else [order, order + 1]
    assert renyi.to_epsilon(curve, delta, orders=orders).upper <= epsilon


# ------------------------------------------------------------ the loss tail


# Losses a little beyond 1 and -1: both bounds are nearly attained at epsilon = 1/2.
NEARLY = np.array([[0.3, 0.02, 0.68], [0.3 * math.exp(-1.0001), 0.02 * math.exp(1.0001), 1 - 0.3 * math.exp(-1.0001) - 0.02 * math.exp(1.0001)]])


@example(NEARLY, 0.5)
@examples(60)
@given(discrete(), logs(0.01, 5))
def test_loss_tail_of_random_pairs(laws, epsilon):
    """[M-C.5] Both corrected tails hold for any laws; the printed bound fails on the upper tail, not the lower."""
    P, Q = laws
    e = math.exp(epsilon)
    with np.errstate(divide="ignore"):
        loss = np.log(P) - np.log(np.where(P > 0, Q, 1))
    # An outcome whose loss is 2 epsilon up to rounding counts on neither side.
    high, low = loss >= 2 * epsilon + 1e-12, (loss <= -2 * epsilon - 1e-12) & (P > 0)
    remove, add, upper, lower = stick(P, Q, e), stick(Q, P, e), P[high].sum() * (1 - 1e-9), P[low].sum() * (1 - 1e-9)
    assert upper <= remove / (1 - 1 / e)
    assert lower <= add / (e * (e - 1)) and e - 1 >= epsilon


def test_loss_tail_of_the_gaussian_and_sharpness():
    """[M-C.5] The bound for the Gaussian mechanism, and an atom that attains it."""
    for mu, epsilon in itertools.product((0.3, 1.0, 3.0), (0.1, 1.0, 4.0)):
        tail = special.ndtr(mu / 2 - 2 * epsilon / mu)  # P[L > 2 epsilon]
        assert tail <= gaussian.delta(mu, epsilon) / (1 - math.exp(-epsilon))
    for mass, epsilon in itertools.product((0.01, 0.2), (0.1, 0.5, 2.0)):
        p, q = np.array([mass, 1 - mass]), np.array([mass * math.exp(-2 * epsilon), 0])
        q[1] = 1 - q[0]
        delta = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert math.isclose(mass, delta / (1 - math.exp(-epsilon)), rel_tol=1e-12)
        assert delta / (epsilon * math.exp(epsilon)) < mass
