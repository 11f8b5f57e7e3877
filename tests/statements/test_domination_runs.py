"""Every theorem that compares divergences of whole runs: matrix mechanisms, balls in bins, MMCC, Renyi bounds, batch size.

Adaptive inputs follow the cells of earlier outputs, all sets of rounds are enumerated (`domination_cases`).
"""

import itertools
import math

import numpy as np
import pytest
from domination_cases import (
    CELLS,
    averaged,
    cells,
    channel,
    coins,
    discrete,
    edges,
    epsilons,
    modes_value,
    noises,
    ordered,
    planar,
    posterior,
    rates,
    reach,
    seeds,
    sequences,
    setting,
    stays_below,
    stick,
    strategy,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from property_cases import DIRECTIONS, answer, at_most, examples, logs
from scipy import special, stats

from dplib import MatrixMechanism, gaussian, matrices, renyi
from dplib.conditional.few import Few
from dplib.mixtures import Mixture, binomial

directions = st.sampled_from(DIRECTIONS)


# ------------------------------------------------------------ adaptive inputs, no sampling


@examples(30)
@given(st.integers(1, 3), logs(0.05, 5), epsilons, directions, seeds)
def test_a_budget_on_every_path_is_one_gaussian(rounds, mu, epsilon, direction, seed):
    """[M-0a] Shifts that follow the past, their squares within mu^2 on every path, mostly used up."""
    rng, ends = np.random.default_rng(seed), edges(-mu, mu, 1.0, CELLS[rounds])
    left, shifts = np.full((), mu**2), []
    for t, sign in enumerate(strategy(rng, ends, rounds)):
        spent = left * (1.0 if t == rounds - 1 else sign**2)
        shifts.append(np.copysign(np.sqrt(spent), sign))
        left = np.broadcast_to((left - spent)[..., None], (len(ends) - 1,) * (t + 1))
    unit = np.eye(rounds)
    present, absent = (sequences(unit, taken, shifts, 1.0, ends) for taken in ([1] * rounds, [0] * rounds))
    bound = gaussian.delta(mu, epsilon)
    assert stays_below(bound, *ordered(present, absent, direction), math.exp(epsilon))


@examples(60)
@given(st.integers(1, 3), noises, epsilons, directions, st.data(), seeds)
def test_adaptive_inputs_of_a_matrix_mechanism(rounds, sigma, epsilon, direction, data, seed):
    """[M-0], [M-0a], [M-0s] Known rounds, any signs in the encoder: at most what equal inputs cost with |C|."""
    taken = data.draw(st.lists(st.integers(0, 1), min_size=rounds, max_size=rounds))
    _, encoder, ends, inputs = setting(seed, rounds, sigma, signed=True)
    present = sequences(encoder, taken, inputs, sigma, ends)
    absent = sequences(encoder, [0] * rounds, inputs, sigma, ends)
    # For one round taken it is the length of its column, whatever the signs.
    bound = gaussian.delta(max(np.linalg.norm(np.abs(encoder) @ taken), 1e-300) / sigma, epsilon)
    assert stays_below(bound, *ordered(present, absent, direction), math.exp(epsilon))


# ------------------------------------------------------------ balls in bins


@examples(60)
@given(st.integers(1, 2), logs(0.4, 8), epsilons, directions, st.booleans(), seeds)
def test_balls_in_bins_are_dominated(epochs, sigma, epsilon, direction, signed, seed):
    """[N-3.2] Two batches, either sign of the entries, adaptive inputs; the pair by quadrature."""
    _, encoder, ends, inputs = setting(seed, 2 * epochs, sigma, signed)
    sets = [tuple(int(t % 2 == i) for t in range(2 * epochs)) for i in range(2)]
    present = averaged(encoder, dict.fromkeys(sets, 0.5), inputs, sigma, ends)
    absent = sequences(encoder, [0] * 2 * epochs, inputs, sigma, ends)
    modes = np.abs(encoder) @ np.array(sets).T / sigma
    bound = modes_value(planar(modes.T @ modes), [0.5, 0.5], epsilon, direction).upper
    assert stays_below(bound, *ordered(present, absent, direction), math.exp(epsilon))


@examples(15)
@given(st.integers(2, 6), st.integers(1, 3), logs(0.1, 6), st.floats(-1, 5), directions, seeds)
def test_equal_inputs_fixed_in_advance_are_the_worst(rounds, dimension, size, epsilon, direction, seed):
    """[N-K] An encoder with negative entries whose columns have no negative inner product; fixed inputs."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(rounds, rounds)))[0]
    encoder = rotation @ rng.exponential(size, (rounds, rounds)) * (rng.random((rounds, rounds)) < 0.6)
    assume(np.min(encoder.T @ encoder) >= -1e-12)
    bins = np.arange(rounds) % 2
    g = rng.normal(size=(rounds, dimension)) + rng.choice([0, 3]) * rng.normal(size=dimension)
    g /= np.maximum(1, np.linalg.norm(g, axis=1, keepdims=True))

    def value(inputs):
        modes = np.stack([(encoder[:, bins == i] @ inputs[bins == i]).ravel() for i in range(2)])
        return modes_value(planar(modes @ modes.T), [0.5, 0.5], epsilon, direction)

    assert at_most(value(g), value(np.tile(np.eye(1, dimension), (rounds, 1))))


@examples(15)
@given(seeds, logs(0.1, 8), st.floats(-1, 5), directions)
def test_balls_in_bins_lie_between_floor_and_ceiling(seed, sigma, epsilon, direction):
    """[A-14], [N-5] The projection on the mean mode, the average over known batches, the worst of them."""
    rng = np.random.default_rng(seed)
    modes = rng.exponential(1.0, (2, 3)) * (rng.random((2, 3)) < 0.7) / sigma
    gram = modes @ modes.T
    assume(gram.mean() > 1e-6)
    value = modes_value(planar(gram), [0.5, 0.5], epsilon, direction)
    along = gram.mean(axis=1) / math.sqrt(gram.mean())
    floor = Mixture(along, [0.5, 0.5], 1.0).hockey_stick(epsilon, direction)
    known = [
        gaussian.delta(math.sqrt(x), epsilon) if x else max(0.0, -math.expm1(epsilon))
        for x in gram.diagonal()
    ]
    assert floor <= value.upper * (1 + 1e-9)
    assert value.lower <= np.mean(known) * (1 + 1e-9) and np.mean(known) <= max(known)


@examples(20)
@given(st.integers(1, 3), logs(0.3, 5), st.floats(0, 3), st.floats(-1, 4))
def test_shuffling_costs_at_least_what_its_event_shows(epochs, sigma, epsilon, tau):
    """[A-19] All permutations of four records into two batches, others at -1, mine at 1 or 0."""
    scale = sigma / math.sqrt(epochs)  # the epochs' noise averages
    ends = np.unique(np.append(edges(-2, 2, scale, 150), tau * scale - 2))
    laws = []
    for mine in (1, 0):
        law = 0.0
        for order in itertools.permutations([mine, -1, -1, -1]):
            law = law + np.multiply.outer(*(cells(ends, sum(x), scale) for x in (order[:2], order[2:]))) / 24
        laws.append(law)
    mu = 1 / scale
    p2, p1 = (1 - special.ndtr(tau - c * mu) * special.ndtr(tau) for c in (2, 1))
    seen = stick(*laws, math.exp(epsilon))
    assert seen >= p2 - math.exp(epsilon) * p1 - 1e-12
    two, one = ([c * mu * np.eye(2)[i] for i in range(2)] for c in (2, 1))
    apart = [gaussian.delta(float(np.linalg.norm(np.subtract(x, y))), epsilon) for x, y in zip(two, one)]
    assert seen <= sum(apart) / 2


# ------------------------------------------------------------ conditional composition


def run_from_pool(members, shown, order, alpha, past=(), u=1.0, v=1.0, used=()):
    """Hockey stick of a run whose rows take members of the pool in an order that depends on the past."""
    if len(used) == len(members):
        return max(u - alpha * v, 0.0)
    left = [i for i in range(len(members)) if i not in used]
    i = left[order(past) % len(left)]
    p, q = members[i] @ shown(past)
    return sum(
        run_from_pool(members, shown, order, alpha, (*past, x), u * p[x], v * q[x], (*used, i))
        for x in range(len(p))
    )


@examples(30)
@given(discrete(6, most=3), logs(0.05, 30), seeds, st.booleans())
def test_pool_of_bounds(laws, alpha, seed, blurred):
    """[A-13] Three pairs, given to the rows in any order that follows the past."""
    rng, members = np.random.default_rng(seed), laws.reshape(3, 2, -1)
    kernels, places = {}, {}
    outcomes = members.shape[2]
    shown = lambda past: kernels.setdefault(past, channel(rng, outcomes) if blurred else np.eye(outcomes))
    order = lambda past: places.setdefault(past, int(rng.integers(6)))
    whole = [np.einsum("i,j,k->ijk", *members[:, side]) for side in (0, 1)]
    for level in (alpha, 0.3, 1.5, 4.0):
        found = run_from_pool(members, shown, order, level)
        assert found <= stick(*whole, level) * (1 + 1e-9) + 1e-12


# ------------------------------------------------------------ Poisson sampling with correlated noise


@examples(12)
@given(st.integers(2, 3), logs(0.02, 0.6), logs(0.7, 8), logs(1e-5, 0.3), directions, seeds, st.booleans())
def test_mmcc_holds_for_adaptive_inputs(rounds, q, sigma, target, direction, seed, toeplitz):
    """[M-4.3], [M-Alg1] delta of adaptive runs at the epsilon that is reported; both kinds of tail bounds."""
    rng, entries, _, _ = setting(seed, rounds, sigma)
    if toeplitz:
        encoder = matrices.toeplitz(np.sort(rng.uniform(0.05, 1.5, rounds))[::-1])
        entries = encoder.entries()
    else:
        encoder = matrices.dense(entries)
    ends = edges(-reach(entries), reach(entries), sigma, CELLS[rounds])
    inputs = strategy(rng, ends, rounds)
    tails = ("joint", "published", "aggregated") if toeplitz else ("joint", "published")
    present = averaged(entries, coins(rounds, q), inputs, sigma, ends)
    absent = sequences(entries, (0,) * rounds, inputs, sigma, ends)
    for tail in tails:
        bound = answer(MatrixMechanism(encoder, sigma, q, tail_bound=tail).epsilon, target, direction).upper
        assert stays_below(target, *ordered(present, absent, direction), math.exp(bound))


@examples(25)
@given(st.integers(2, 3), logs(1e-3, 0.9), logs(0.4, 6), epsilons, directions, seeds)
def test_counting_participations_holds_for_adaptive_inputs(rounds, q, sigma, epsilon, direction, seed):
    """[M-few], [M-once] delta of adaptive runs is below either bound, at any rate."""
    rng, entries, _, _ = setting(seed, rounds, sigma)
    ends = edges(-reach(entries), reach(entries), sigma, CELLS[rounds])
    inputs = strategy(rng, ends, rounds)
    present = averaged(entries, coins(rounds, q), inputs, sigma, ends)
    absent = sequences(entries, (0,) * rounds, inputs, sigma, ends)
    few = Few(matrices.dense(entries), sigma, q, 1)
    for bound in (few.counts.mixture.hockey_stick(epsilon, direction), few.once.delta(epsilon)):
        assert stays_below(bound, *ordered(present, absent, direction), math.exp(epsilon))


def evidence(above, past, q, sigma):
    """Log odds of each column if no other took part [M-C.3]."""
    return special.logit(q) + (past @ above - np.sum(above**2, axis=0) / 2) / sigma**2


def stochastically_below(values, weights, larger, larger_weights):
    """Whether the first law's tails are at most the second's, everywhere."""
    tail = lambda x, w: np.array([w[x >= t - 1e-9].sum() for t in values])
    return np.all(tail(values, weights) <= tail(larger, larger_weights) + 1e-12)


@examples(60)
@given(st.integers(2, 6), logs(1e-3, 0.7), logs(0.5, 6), st.integers(1, 4), seeds)
def test_sums_of_intensities_cover_the_posterior(rounds, q, sigma, cut, seed):
    """[A-12] A falling Toeplitz encoder, any past: a Poisson number for each of two groups of ages."""
    rng = np.random.default_rng(seed)
    f = np.sort(rng.exponential(1, rounds))[::-1]
    cut = min(cut, rounds - 1)
    above, sigma = matrices.toeplitz(f).entries()[:-1, :-1], sigma * f[0]
    past = rng.normal(0, rng.choice([1, 4]) * sigma, rounds - 1) + f[0]
    sets, law = posterior(above, past, q, sigma)
    cumulative = np.cumsum(np.logaddexp(0, evidence(above, past, q, sigma))[::-1])
    totals = np.maximum.accumulate(cumulative[[cut - 1, -1]] * rng.uniform(1, 1.2))
    steps = np.diff(totals, prepend=0.0)
    counts = np.arange(60)
    # What is beyond 60 counts for all values.
    masses = [stats.poisson.pmf(counts, step) for step in steps]
    leaps = (f[1], f[min(cut + 1, rounds - 1)])
    values = np.append(np.add.outer(leaps[0] * counts, leaps[1] * counts).ravel(), np.inf)
    weights = np.outer(*masses).ravel()
    weights = np.append(weights, max(1 - weights.sum(), 0.0))
    assert stochastically_below(sets @ f[:0:-1], law, values, weights)


@examples(60)
@given(st.sampled_from([2, 4]), logs(1e-3, 0.7), logs(0.3, 6), seeds)
def test_equal_coins_cover_a_node_of_a_tree(leaves, q, sigma, seed):
    """[A-12] Any past of a tree: the binomial with the same sum of intensities."""
    rng = np.random.default_rng(seed)
    above = matrices.binary_tree(leaves).entries()[:-1]
    past = rng.normal(0, rng.choice([1, 4]) * sigma, len(above)) + rng.uniform(-1, 2)
    sets, law = posterior(above, past, q, sigma)
    total = np.logaddexp(0, evidence(above, past, q, sigma)).sum() * rng.uniform(1, 1.2)
    counts = np.arange(leaves + 1.0)
    larger = stats.binom.pmf(counts, leaves, -np.expm1(-total / leaves))
    assert stochastically_below(sets.sum(axis=1), law, counts, larger)


# ------------------------------------------------------------ the shuffled tree


@examples(12)
@given(logs(0.7, 10), st.floats(0, 3), directions, logs(1e-12, 0.3), st.floats(0.02, 1))
def test_tree_with_two_leaves(sigma, epsilon, direction, delta, small):
    """[M-5.2r] (i) above the projection, (iii) the explicit noise suffices."""
    modes = planar([[2.0, 1.0], [1.0, 2.0]])
    value = modes_value(modes / sigma, [0.5, 0.5], epsilon, direction)
    assert gaussian.delta(math.sqrt(1.5) / sigma, epsilon) <= value.upper * (1 + 1e-9)
    enough = math.sqrt(5 * (math.log(1 / delta) + small)) / small
    assert modes_value(modes / enough, [0.5, 0.5], small, direction).lower <= delta


# ------------------------------------------------------------ Renyi divergences, batch size


def log_moment(first, second, order):
    """(order - 1) times the Renyi divergence."""
    with np.errstate(divide="ignore"):
        terms = order * np.log(first) + (1 - order) * np.log(second)
    return float(special.logsumexp(terms[(first > 0) | (second > 0)]))


def full(laws):
    """No impossible outcomes: all moments are finite."""
    laws = laws + 1e-6
    return laws / laws.sum(axis=1, keepdims=True)


@examples(60)
@given(discrete(4), st.floats(1.02, 30), st.floats(1.01, 2), st.floats(0, 1))
def test_renyi_curves(laws, order, factor, share):
    """[ZW-0] Rising orders, convex cumulants, rounds that add, joint convexity."""
    P, Q, R, S = full(laws)
    middle, last = 1 + (order - 1) * factor, 1 + (order - 1) * (2 * factor - 1)
    moments = [log_moment(P, Q, x) for x in (order, middle, last)]
    assert moments[1] <= (moments[0] + moments[2]) / 2 + 1e-9
    assert moments[0] / (order - 1) <= moments[1] / (middle - 1) * (1 + 1e-9) + 1e-9
    both = log_moment(np.kron(P, R), np.kron(Q, S), order)
    assert both == pytest.approx(log_moment(P, Q, order) + log_moment(R, S, order), abs=1e-9)
    mixed = log_moment(share * P + (1 - share) * R, share * Q + (1 - share) * S, order)
    parts = [log_moment(P, Q, order), log_moment(R, S, order)]
    assert mixed <= special.logsumexp(parts, b=[share, 1 - share]) + 1e-9


@examples(60)
@given(discrete(), logs(1e-4, 0.99), st.floats(2, 20), st.booleans())
def test_sampled_renyi_curves_of_any_pair(laws, q, order, whole):
    """[ZW-1], [ZW-3] Both directions against F_1 of the two-sided curve, at integers and at real orders."""
    P, Q = full(laws)
    order = round(order) if whole else order
    curve = lambda n: max(log_moment(P, Q, n), log_moment(Q, P, n)) / (n - 1)
    sampled = (1 - q) * Q + q * P
    remove, add = log_moment(sampled, Q, order), log_moment(Q, sampled, order)
    bound = renyi.zhu_wang(order, curve, q)
    assert max(remove, add) / (order - 1) <= bound * (1 + 1e-9) + 1e-12
    assert bound <= renyi.zhu_wang(order, curve, q, constant=3) * (1 + 1e-12)
    exchanged = log_moment((1 - q) * P + q * Q, P, order)
    rho = 3 * (1 - q) / (3 * (1 - q) + (2 * order - 1) * q)
    right = special.logsumexp([remove, exchanged], b=[rho, 1 - rho])
    assert add <= right + 1e-12


@examples(60)
@given(discrete(), st.floats(1.01, 40), logs(1e-8, 0.9))
def test_conversions_of_renyi_divergences(laws, order, delta):
    """[ZW-6] At the converted epsilon the pair has at most delta."""
    P, Q = full(laws)
    divergence = log_moment(P, Q, order) / (order - 1)
    classic = divergence + math.log(1 / delta) / (order - 1)
    improved = divergence + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    assert improved <= classic
    for epsilon in (classic, improved):
        alpha = math.exp(min(max(epsilon, 0.0), 700))
        assert stays_below(delta, P, Q, alpha)


@examples(20)
@given(logs(0.3, 20), rates, logs(1.01, 60))
def test_renyi_add_is_at_most_remove(sigma, q, order):
    """[ZW-4]"""
    remove, add = (answer(renyi.subsampled_gaussian, order, sigma, q, d) for d in DIRECTIONS)
    assert at_most(add, remove)


@examples(30)
@given(
    st.lists(st.floats(-4, 4), min_size=2, max_size=4), st.lists(logs(0.01, 1), min_size=4, max_size=4), logs(0.51, 6)
)
def test_renyi_orders_of_mixtures(shifts, chances, order):
    """[ZW-4m] Shifts of both signs, by quadrature, at orders on both sides of 1."""
    x = np.linspace(-35, 35, 7001)
    law = np.array(chances[: len(shifts)]) / sum(chances[: len(shifts)])
    kernel = lambda shift: -((x - shift) ** 2) / 2 - math.log(2 * math.pi) / 2
    mixture = np.logaddexp.reduce([kernel(shift) + math.log(p) for shift, p in zip(shifts, law)], axis=0)
    moment = lambda one, two: np.exp(order * one + (1 - order) * two).sum() * (x[1] - x[0])
    if abs(order - 1) > 1e-3:
        remove, add = (math.log(moment(*pair)) / (order - 1) for pair in ((mixture, kernel(0)), (kernel(0), mixture)))
        assert add <= remove + 1e-9 * (1 + remove) / abs(order - 1)


@examples(30)
@given(rates, noises, epsilons)
def test_one_step(q, sigma, epsilon):
    """[R-6] The scaled Gaussian of the remove direction, the add direction below it, both from cells."""
    ends = edges(0, 1, sigma, 3000)
    absent = cells(ends, 0.0, sigma)
    present = (1 - q) * absent + q * cells(ends, 1.0, sigma)
    exact = q * gaussian.delta(1 / sigma, math.log1p(math.expm1(epsilon) / q))
    for direction in DIRECTIONS:
        assert stays_below(exact, *ordered(present, absent, direction), math.exp(epsilon))
    assert binomial(1, q, sigma).hockey_stick(epsilon) == pytest.approx(exact, rel=1e-9, abs=1e-300)
