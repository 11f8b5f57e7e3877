"""Every theorem that compares divergences, on random instances: any laws, sampling, groups, mixtures of Gaussians.

`test_domination_runs.py` has those on whole runs, `test_domination_index.py` the list of all of them. Truths come from
enumeration and quadrature in `domination_cases.py`; what is compared with them is the bound that the theorem states.
"""

import itertools
import math

import numpy as np
import pytest
from domination_cases import (
    cells,
    channel,
    discrete,
    edges,
    epsilons,
    modes_value,
    noises,
    ordered,
    planar,
    rates,
    seeds,
    stays_below,
    stick,
    strategy,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from property_cases import DIRECTIONS, WIDE, answer, at_most, examples, logs
from scipy import special

from dplib import LastIterate, PoissonDPSGD, accounting, gaussian
from dplib.mixtures import Mixture, VectorMixture, binomial, hypergeometric

directions = st.sampled_from(DIRECTIONS)
orders = logs(1e-3, 1e3)


# ------------------------------------------------------------ any two laws


def dominated(first, second):
    """Whether the first pair is dominated by the second: both curves are broken lines, so the corners decide."""
    with np.errstate(divide="ignore", invalid="ignore"):
        corners = np.concatenate([p / q for p, q in (first, second)])
    corners = corners[np.isfinite(corners)]
    # Divided by 1 + alpha, a gap is the same in both orders.
    gaps = [
        (stick(*second, alpha) - stick(*first, alpha)) / (1 + alpha)
        for alpha in [*corners, 2 * corners.max() + 1]
    ]
    assume(all(abs(gap) > 1e-9 or abs(gap) < 1e-14 for gap in gaps))  # rounding decides nothing
    return min(gaps) > -1e-14


@examples(60)
@given(discrete(4), st.booleans(), seeds)
def test_domination_is_the_same_in_both_orders(laws, processed, seed):
    """[C-3]"""
    P, Q, R, S = laws
    if processed:
        R, S = (law @ channel(np.random.default_rng(seed), len(P)) for law in (P, Q))
    assert dominated((R, S), (P, Q)) == dominated((S, R), (Q, P))


@examples(60)
@given(discrete(), orders)
def test_parity_of_laws(laws, alpha):
    """[C-1] Impossible outcomes included."""
    P, Q = laws
    parity = 1 - alpha + alpha * stick(Q, P, 1 / alpha)
    assert stick(P, Q, alpha) == pytest.approx(parity, rel=1e-9, abs=1e-12 * max(1, alpha))


@examples(60)
@given(discrete(6, most=4), orders, seeds, st.booleans())
def test_adaptive_rounds_are_dominated_by_the_product(laws, alpha, seed, whole):
    """[C-7] (i) Three rounds, each showing its pair, or a part of it that depends on what came before."""
    rng, pairs = np.random.default_rng(seed), (laws[:2], laws[2:4], laws[4:])
    run, bound = (np.ones((2, 1)), np.ones((2, 1)))
    for pair in pairs:
        kernels = [np.eye(pair.shape[1]) if whole else channel(rng, pair.shape[1]) for _ in range(run.shape[1])]
        shown = np.stack([pair @ kernel for kernel in kernels], axis=1)
        run = (run[:, :, None] * shown).reshape(2, -1)
        bound = np.stack([np.kron(b, p) for b, p in zip(bound, pair)])
    for first, second in ((0, 1), (1, 0)):
        assert stays_below(stick(bound[first], bound[second], alpha), run[first], run[second], alpha)


@examples(60)
@given(discrete(6), orders, seeds)
def test_mixing_pairs_costs_no_more_than_their_average(laws, alpha, seed):
    """[C-7] (ii)"""
    weights = np.random.default_rng(seed).dirichlet(np.full(3, 0.5))
    parts = [stick(laws[2 * i], laws[2 * i + 1], alpha) for i in range(3)]
    average = float(weights @ parts)
    assert stays_below(average, weights @ laws[::2], weights @ laws[1::2], alpha)
    assert average <= max(parts) * (1 + 1e-12)


@examples(60)
@given(discrete(), logs(1e-9, 1.0), st.one_of(st.floats(0, 1), logs(1, 1e6)))
def test_poisson_identity(laws, q, alpha):
    """[C-8]"""
    P, Q = laws
    order = 1 + q * (alpha - 1)
    expected = q * stick(P, Q, alpha)
    # 1 - q and the order are rounded: absolute errors of their size.
    assert stick((1 - q) * Q + q * P, Q, order) == pytest.approx(expected, rel=1e-9, abs=1e-14 * (1 + order))


@examples(60)
@given(discrete(1, most=7), logs(1e-6, 1.0), logs(1.0, 1e3))
def test_remove_beats_add_for_symmetric_laws(laws, q, alpha):
    """[C-9] P is Q in reverse, so both orders of the pair have the same divergences."""
    [Q] = laws
    P = Q[::-1]
    sampled = (1 - q) * Q + q * P
    assert stays_below(stick(sampled, Q, alpha), Q, sampled, alpha)


@examples(60)
@given(
    st.integers(2, 8).flatmap(lambda k: discrete(k + 1)), logs(1e-3, 5.0),
    st.one_of(st.none(), logs(1e-9, 0.5)),
)
def test_black_box_lemma(laws, epsilon, sharp):
    """[G-1.1] A chain of neighbours: what every link has, the ends have k times over."""
    k, alpha = len(laws) - 1, math.exp(epsilon)
    if sharp is not None:  # an event whose probability grows as fast as one link allows
        event = [0.0]
        for _ in range(k):
            event.append(min(1.0, alpha * event[-1] + sharp))
        laws = np.array([[p, 1 - p] for p in event[::-1]])
    link = max(stick(laws[i], laws[i + 1], alpha) for i in range(k))
    growth = math.expm1(k * epsilon) / math.expm1(epsilon)
    assert stays_below(link * growth, laws[0], laws[k], alpha**k)
    assert growth <= k * alpha**k


# ------------------------------------------------------------ adjacency and groups, every batch enumerated


def all_batches(records, q):
    for batch in itertools.product((0, 1), repeat=records):
        yield batch, q ** sum(batch) * (1 - q) ** (records - sum(batch))


def fixed_batches(records, size):
    chosen = list(itertools.combinations(range(records), size))
    for batch in chosen:
        yield tuple(int(i in batch) for i in range(records)), 1 / len(chosen)


def outputs(batches, contributions, sigma, ends):
    """Masses of sequences of cells of noisy sums; contributions[t][i] is record i's in round t, by the past."""
    masses = np.ones(())
    for given_past in contributions:
        step = 0.0
        for batch, chance in batches:
            mean = sum(np.asarray(g) * hit for hit, g in zip(batch, given_past))
            step = step + chance * cells(ends, mean, sigma)
        masses = masses[..., None] * step
    return masses


def gradients(rng, ends, rounds, ordinary, group, others=None):
    """For each round the contributions of all records; with `others` those that the tightness theorem names."""
    found = [strategy(rng, ends, rounds) for _ in range(ordinary + group)]
    if others is not None:
        fixed = [others] * ordinary + [1.0] * group
        found = [[np.full_like(x, value) for x in kind] for kind, value in zip(found, fixed)]
    return list(zip(*found))


@examples(40)
@given(
    st.integers(0, 2), st.integers(1, 3), st.integers(1, 2), rates, noises, epsilons, directions,
    st.booleans(), seeds,
)
def test_poisson_groups_are_dominated(ordinary, k, rounds, q, sigma, epsilon, direction, alike, seed):
    """[G-3.1] Gradients of any sign that follow the outputs; every batch enumerated."""
    ends = edges(-(ordinary + k), ordinary + k, sigma, 300 if rounds == 1 else 80)
    found = gradients(np.random.default_rng(seed), ends, rounds, ordinary, k, 0.0 if alike else None)
    present = outputs(list(all_batches(ordinary + k, q)), found, sigma, ends)
    absent = outputs(list(all_batches(ordinary, q)), [g[:ordinary] for g in found], sigma, ends)
    bound = answer(
        accounting.delta, [(binomial(k, q, sigma), rounds)], epsilon, direction, tolerance=WIDE
    ).upper
    assert stays_below(bound, *ordered(present, absent, direction), math.exp(epsilon))


@examples(25)
@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 2), st.integers(1, 2), noises, epsilons, directions,
    st.booleans(), seeds,
)
def test_groups_in_fixed_batches_are_dominated(
    ordinary, size, k, rounds, sigma, epsilon, direction, alike, seed
):
    """[G-3.3] Every batch enumerated; a group that opposes everybody else is drawn often."""
    assume(size <= ordinary)
    ends = edges(-size, size, sigma, 300 if rounds == 1 else 80)
    found = gradients(np.random.default_rng(seed), ends, rounds, ordinary, k, -1.0 if alike else None)
    present = outputs(list(fixed_batches(ordinary + k, size)), found, sigma, ends)
    absent = outputs(list(fixed_batches(ordinary, size)), [g[:ordinary] for g in found], sigma, ends)
    pair = hypergeometric(size, ordinary, k, sigma)
    bound = answer(accounting.delta, [(pair, rounds)], epsilon, direction, tolerance=WIDE).upper
    assert stays_below(bound, *ordered(present, absent, direction), math.exp(epsilon))


@examples(30)
@given(
    st.integers(1, 3), st.integers(1, 2), logs(1e-2, 1), logs(0.5, 5), st.floats(0, 2), directions,
    st.booleans(),
)
def test_both_group_theorems_are_attained(k, size, q, sigma, epsilon, direction, fixed):
    """[G-3.3t] On the two losses; so the cells of the two tests above lose little."""
    ordinary = 3
    ends = edges(-(ordinary + k), ordinary + k, sigma, 1500)
    if fixed:
        found = gradients(np.random.default_rng(0), ends, 1, ordinary, k, -1.0)
        batches = [list(fixed_batches(n, size)) for n in (ordinary + k, ordinary)]
        pair = hypergeometric(size, ordinary, k, sigma)
    else:
        found = [[0.0] * ordinary + [1.0] * k]
        batches = [list(all_batches(n, q)) for n in (ordinary + k, ordinary)]
        pair = binomial(k, q, sigma)
    present, absent = (outputs(x, found, sigma, ends) for x in batches)
    exact = float(pair.hockey_stick(epsilon, direction))
    first, second = ordered(present, absent, direction)
    assert stays_below(exact, first, second, math.exp(epsilon))
    assume(exact > 1e-6)
    assert stick(first, second, math.exp(epsilon)) > 0.97 * exact


@examples(40)
@given(rates, noises, epsilons, st.floats(-1, 1), st.floats(-1, 1), directions, st.booleans())
def test_zero_out_of_fixed_batches_stays_below_shift_two(p, sigma, epsilon, mine, other, direction, opposed):
    """[C-4] (ii) One round, given the rest of the batch."""
    if opposed:
        mine, other = 1.0, -1.0
    ends = edges(-2, 2, sigma, 2000)
    hidden = (1 - p) * cells(ends, 0.0, sigma)
    worlds = [hidden + p * cells(ends, g - other, sigma) for g in (mine, 0.0)]
    bound = Mixture([0.0, 2.0], [1 - p, p], sigma).hockey_stick(epsilon)
    for first, second in (worlds, worlds[::-1]):
        assert stays_below(bound, first, second, math.exp(epsilon))


@examples(12)
@given(st.integers(1, 4), st.integers(0, 1), rates, noises, epsilons, directions, seeds)
def test_last_iterate_of_linear_losses_is_dominated(rounds, others, q, sigma, epsilon, direction, seed):
    """[M-F5] Gradients fixed in advance, of any size; only the sum of all rounds is seen, every draw enumerated."""
    rng = np.random.default_rng(seed)
    mine, theirs = np.sign(rng.normal(size=rounds)) ** rng.integers(2), rng.uniform(-1, 1, rounds * others)
    mine = mine * rng.uniform(0, 1, rounds) ** rng.integers(2)
    scale = sigma * math.sqrt(rounds)
    ends, laws = edges(-2 * rounds, 2 * rounds, scale, 600), []
    for steps in (np.concatenate([mine, theirs]), theirs):
        law = 0.0
        for batch, chance in all_batches(len(steps), q):
            law = law + chance * cells(ends, float(np.dot(batch, steps)), scale)
        laws.append(law)
    last = answer(LastIterate(sigma, q, rounds).delta, epsilon, direction).upper
    assert stays_below(last, *ordered(*laws, direction), math.exp(epsilon))
    every = answer(PoissonDPSGD(sigma, q, rounds).delta, epsilon, direction).upper
    assert stays_below(every, *ordered(*laws, direction), math.exp(epsilon))


# ------------------------------------------------------------ mixtures of Gaussians


@st.composite
def three_parts(draw):
    """(Gram matrix of two modes of any inner product, weights of none and of both): all sizes."""
    norms = [draw(logs(0.03, 6.0)) for _ in range(2)]
    correlation = draw(st.one_of(st.just(0.0), st.floats(-0.97, 0.97)))
    across = correlation * norms[0] * norms[1]
    weights = np.array(
        [draw(st.one_of(st.just(0.0), logs(1e-6, 1))), draw(logs(1e-6, 1)), draw(logs(1e-6, 1))]
    )
    return np.array([[norms[0] ** 2, across], [across, norms[1] ** 2]]), weights / weights.sum()


def with_none(gram):
    return np.vstack([[0.0, 0.0], planar(gram)])


@examples(20)
@given(three_parts(), st.floats(-1, 6), directions)
def test_quadrature_of_modes(parts, epsilon, direction):
    """The route of the tests below: one mode has a closed form, and so have modes on one ray."""
    gram, weights = parts
    norms = np.sqrt(gram.diagonal())
    ray = modes_value(np.append(0.0, norms)[:, None], weights, epsilon, direction)
    closed = Mixture([0.0, *norms], weights, 1.0).hockey_stick(epsilon, direction)
    assert ray.lower * (1 - 1e-9) - 1e-13 <= closed <= ray.upper * (1 + 1e-9) + 1e-13
    alone = modes_value([[0.6 * norms[0], 0.8 * norms[0]]], [1.0], epsilon, direction)
    exact = gaussian.delta(norms[0], epsilon)
    assert alone.lower * (1 - 1e-9) - 1e-13 <= exact <= alone.upper * (1 + 1e-9) + 1e-13
    assert alone.width <= 1e-5 * exact + 1e-10


@examples(15)
@given(three_parts(), st.floats(-1, 6), directions, logs(1.001, 3), st.sampled_from([(0, 0), (1, 1), (0, 1)]))
def test_larger_inner_products_cost_more(parts, epsilon, direction, factor, entry):
    """[M-K] One entry of the Gram matrix is raised, also one below 0."""
    gram, weights = parts
    raised = gram.copy()
    raised[entry] = gram[entry] * factor if gram[entry] > 0 else gram[entry] / factor
    raised[entry[::-1]] = raised[entry]
    assume(raised[0, 1] ** 2 < 0.98 * raised[0, 0] * raised[1, 1])
    small, large = (modes_value(with_none(x), weights, epsilon, direction) for x in (gram, raised))
    assert at_most(small, large)


@examples(25)
@given(three_parts(), st.floats(-1, 6), directions, st.lists(st.just(0.0) | logs(1e-12, 1), min_size=3, max_size=3))
def test_norms_dominate_modes(parts, epsilon, direction, shift):
    """[G-2.9], [M-B] (B.3, B.5, B.6): the norms, and anything stochastically larger."""
    gram, weights = parts
    modes = with_none(gram)
    plane = modes_value(modes, weights, epsilon, direction)
    norms = VectorMixture(modes, weights, 1.0).reduced()
    bound = norms.hockey_stick(epsilon, direction)
    assert plane.lower <= bound * (1 + 1e-9)
    sizes = np.linalg.norm(modes, axis=1) * (1 + np.array(shift)) + np.array(shift)
    larger = Mixture(sizes, weights, 1.0).hockey_stick(epsilon, direction)
    assert bound <= larger * (1 + 1e-9) + 1e-300


@examples(25)
@given(seeds, logs(0.1, 6), st.floats(-1, 6), directions)
def test_larger_modes_cost_more(seed, size, epsilon, direction):
    """[M-B] (B.2) Up to four modes without negative entries."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 5))
    modes, weights = rng.exponential(size, (count, 2)), rng.dirichlet(np.full(count, 0.5))
    raised = modes + rng.exponential(rng.choice([0.01, 1.0]), (count, 2)) * rng.integers(0, 2, (count, 2))
    small, large = (modes_value(x, weights, epsilon, direction) for x in (modes, raised))
    assert at_most(small, large)


@examples(15)
@given(three_parts(), st.floats(0, 6))
def test_remove_is_the_larger_direction_of_any_mixture(parts, epsilon):
    """[C-9m] In the plane, inner products of either sign; at negative epsilon it is the other way round."""
    gram, weights = parts
    modes = with_none(gram)
    remove, add = (modes_value(modes, weights, epsilon, d) for d in DIRECTIONS)
    assert at_most(add, remove)
    remove, add = (modes_value(modes, weights, -epsilon, d) for d in DIRECTIONS)
    assert at_most(remove, add)


@examples(10)
@given(
    logs(0.3, 8), st.floats(0, 4), directions, seeds, st.sampled_from([(1.0, 1.5), (2.0, 2.2), (4.0, 3.0)]),
)
def test_hidden_slots(sigma, epsilon, direction, seed, tail):
    """[M-5.1] (iii) Three slots with chances of at most a half cost less than two equal ones; both more than the mean."""
    p = np.random.default_rng(seed).dirichlet(np.ones(3))
    while p.max() > 0.5:
        p = 0.9 * p + 0.1 / 3
    unequal = modes_value(np.eye(3) / sigma, p, epsilon, direction)
    two = modes_value(np.eye(2) / sigma, [0.5, 0.5], epsilon, direction)
    assert at_most(unequal, two)
    assert gaussian.delta(1 / (sigma * math.sqrt(2)), epsilon) <= two.upper
    # (ii) The explicit bound with n' = 2 and n = 3.
    beta, z0 = tail
    w, variance = math.exp(z0 / sigma - 1 / (2 * sigma**2)), math.expm1(1 / sigma**2)
    single = (w * special.ndtr(z0) - special.ndtr(z0 - 1 / sigma)) * beta / 3 + w * math.exp(1 / sigma**2) - 1
    bound = math.log1p(math.sqrt(variance * beta) + single / 2)
    assume(0 <= bound < 30)
    found = modes_value(np.eye(3) / sigma, p, bound, direction)
    assert found.lower <= math.exp(-beta) + 3 * special.ndtr(-z0)
