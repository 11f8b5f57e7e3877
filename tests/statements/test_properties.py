"""Properties that every accountant of compositions must have, on random mixtures, extremes included.

Two brackets are compared by `at_most`: no property needs them to be narrow, none is
excused by a tolerance. `tests/mutants/mutation.py` names a fault that each property catches.
"""

import functools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from property_cases import (
    DIRECTIONS,
    ROUTES,
    WIDE,
    agree,
    answer,
    at_most,
    epsilon_at,
    examples,
    logs,
    mixtures,
    questions,
    rounds,
    route,
)
from scipy import special

from dplib import FixedBatchDPSGD, LastIterate, PoissonDPSGD, accounting, gaussian, renyi
from dplib.accounting.lattice_composition import Sum
from dplib.accounting.lattice_round import Law, Step
from dplib.mixtures import Mixture, binomial, dominates

directions = st.sampled_from(DIRECTIONS)
each_route = pytest.mark.parametrize("name", ROUTES)
# The lattice takes seconds for what it is compared with elsewhere: with other routes here, with reference values in tests/accounting.
each_quick_route = pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.trust] * (name == "lattice")) for name in ROUTES])


def copy(mixture):
    """An equal mixture that is another object: the accountants cannot know that it is the same."""
    return Mixture(mixture.sensitivities, mixture.probabilities, mixture.noise_multiplier)


# ------------------------------------------------------------ one composition, several accountants


@examples(6)
@given(questions(), directions)
def test_all_accountants_agree(question, direction):
    parts, epsilon = question
    found = {}
    for name in ROUTES:
        try:
            found[name] = ROUTES[name](parts, epsilon, direction)
        except ArithmeticError:
            continue
    found = [bracket for bracket in found.values() if bracket is not None]
    assume(len(found) > 1)
    assert max(bracket.lower for bracket in found) <= min(bracket.upper for bracket in found)
    assert all(bracket.upper <= 0 for bracket in found)


@examples(6)
@given(questions(), directions)
def test_renyi_bounds_are_above_the_others(question, direction):
    """[ZW-6]"""
    parts, epsilon = question
    exact = route("auto", parts, epsilon, direction)
    bound = answer(renyi.log_delta, renyi.composition_curve(parts, direction), epsilon)[0]
    assert bound >= exact.lower
    least = answer(accounting.epsilon, parts, 1e-6, direction, tolerance=WIDE)
    assert answer(accounting.epsilon, parts, 1e-6, direction, "renyi").upper >= least.lower


@examples(6)
@given(questions(), directions, logs(1e-250, 0.9))
def test_epsilon_and_delta_are_inverse(question, direction, delta):
    parts, _ = question
    found = answer(accounting.epsilon, parts, delta, direction, tolerance=WIDE)
    assert 0 <= found.lower <= found.upper
    at_upper = answer(ROUTES["auto"], parts, found.upper, direction)
    assert at_upper is None or at_upper.lower <= math.log(delta)
    if found.lower > 0:
        assert route("auto", parts, found.lower, direction).upper >= math.log(delta)


@examples(8)
@given(questions(), directions, st.floats(0.1, 0.99))
def test_epsilon_is_positive_where_delta_at_zero_is_larger(question, direction, share):
    parts, _ = question
    delta = share * math.exp(route("auto", parts, 0.0, direction).lower)
    assert answer(accounting.epsilon, parts, delta, direction, tolerance=WIDE).upper > 0


# ------------------------------------------------------------ the curve of one composition


@each_route
@examples(2, 60)
@given(question=questions(), direction=directions, factor=st.floats(1.01, 1.5))
def test_delta_falls_and_is_convex(name, question, direction, factor):
    """delta falls in epsilon, and is convex in e^epsilon."""
    parts, low = question
    high = low * factor
    assume(high < 300)
    middle = math.log((math.exp(low) + math.exp(high)) / 2)
    first, between, last = (route(name, parts, x, direction) for x in (low, middle, high))
    assert at_most(last, between) and at_most(between, first)
    chord = np.logaddexp(first.upper, last.upper) - math.log(2)
    assert between.lower <= chord + 1e-12 * abs(chord)
    # e^epsilon times the slope is a probability: in logarithms, delta(high) + e^high - e^low >= delta(low).
    assert math.exp(first.lower) <= math.exp(last.upper) + math.exp(low) * math.expm1(high - low) * (1 + 1e-12)


@examples(5)
@given(logs(0.8, 4.0), st.floats(0.2, 0.8), st.sampled_from([100, 1000, 10**5]), st.floats(-1, 1))
def test_parity_of_compositions(sigma, q, steps, epsilon):
    """[C-1] 1 - e^eps + e^eps delta_add(-eps) = delta_remove(eps), negative epsilons included."""
    parts = [(binomial(1, q, sigma * math.sqrt(steps / 100)), steps)]
    remove = route("contour", parts, epsilon, "remove")
    add = route("contour", parts, -epsilon, "add")
    ends = [-math.expm1(epsilon) + math.exp(epsilon + x) for x in (add.lower, add.upper)]
    slack = 1e-14 * math.exp(abs(epsilon))
    assert math.exp(remove.lower) <= ends[1] + slack and ends[0] <= math.exp(remove.upper) + slack


@examples(30)
@given(mixtures(), st.floats(-5, 5))
def test_parity_of_one_round(mixture, epsilon):
    remove, add = mixture.hockey_stick(epsilon, "remove"), mixture.hockey_stick(-epsilon, "add")
    assert remove == pytest.approx(-math.expm1(epsilon) + math.exp(epsilon) * add, rel=1e-11, abs=1e-13 * math.exp(abs(epsilon)))


@each_route
@examples(2, 60)
@given(question=questions())
def test_add_is_at_most_remove(name, question):
    """[C-9m]"""
    parts, epsilon = question
    assert at_most(route(name, parts, epsilon, "add"), route(name, parts, epsilon, "remove"))


@examples(5)
@given(questions(), directions)
def test_both_is_the_larger_direction(question, direction):
    parts, epsilon = question
    both = answer(accounting.delta, parts, epsilon, tolerance=WIDE)
    assert answer(accounting.delta, parts, epsilon, direction, tolerance=WIDE).lower <= both.upper


# ------------------------------------------------------------ equal compositions


@each_quick_route
@examples(5, 160)
@given(question=questions(), direction=directions, factor=logs(1e-3, 1e3))
def test_scale_does_not_matter(name, question, direction, factor):
    """[R-0], [C-5]"""
    [(mixture, steps)], epsilon = question
    scaled = Mixture(mixture.sensitivities * factor, mixture.probabilities, mixture.noise_multiplier * factor)
    assert agree(route(name, [(mixture, steps)], epsilon, direction), route(name, [(scaled, steps)], epsilon, direction))


@each_route
@examples(2, 60)
@given(question=questions(), direction=directions)
def test_redundant_components_do_not_matter(name, question, direction):
    [(mixture, steps)], epsilon = question
    s, p = mixture.sensitivities, mixture.probabilities
    share = np.linspace(0.1, 0.6, len(s))
    padded = Mixture([*s, *s, s[-1] + 1], [*(p * share), *(p * (1 - share)), 0.0], mixture.noise_multiplier)
    assert agree(route(name, [(mixture, steps)], epsilon, direction), route(name, [(padded, steps)], epsilon, direction))


@each_quick_route
@examples(2, 60)
@given(question=questions(most=10**4), direction=directions, share=st.floats(0.05, 0.95))
def test_splitting_and_order_do_not_matter(name, question, direction, share):
    """T rounds are T_1 rounds of it and T - T_1 of an equal pair, in either order, a trivial pair between."""
    [(mixture, steps)], epsilon = question
    first = max(1, min(steps - 1, round(share * steps)))
    apart = [(mixture, first), (copy(mixture), steps - first)]
    whole = route(name, [(mixture, steps)], epsilon, direction)
    assert agree(route(name, apart, epsilon, direction), whole)
    assert agree(route(name, apart[::-1], epsilon, direction), whole)
    trivial = Mixture([0.0], [1.0], 1.0)
    assert accounting.merged([apart[0], (trivial, 7), apart[0]]) == [(mixture, 2 * first)]


@examples(3)
@given(questions(most=1000), logs(0.5, 20.0), directions, st.data())
def test_a_gaussian_part_is_the_same_in_pieces(question, mu, direction, data):
    """One Gaussian with mu, or four with mu / 2: [C-7]."""
    parts, _ = question
    one, four = Mixture([1.0], [1.0], 1 / mu), Mixture([1.0], [1.0], 2 / mu)
    epsilon = epsilon_at(data.draw, [*parts, (one, 1)], least=1e-60)
    assert agree(
        route("auto", [*parts, (one, 1)], epsilon, direction), route("auto", [*parts, (four, 4)], epsilon, direction)
    )


@examples(40)
@given(st.one_of(mixtures(), st.builds(binomial, st.integers(1, 12), logs(1e-4, 0.99), logs(0.2, 20.0))))
def test_posterior_variance_stays_below_its_bound(mixture):
    """[A-3] The strip in which R(u + iv) has no zero rests on it; where two components are equally likely it is largest."""
    a, log_p = mixture.shifts, mixture.log_probabilities
    low, high = np.triu_indices(len(a), 1)
    u = (a[high] + a[low]) / 2 - (log_p[high] - log_p[low]) / (a[high] - a[low])
    weights = special.softmax(log_p + np.outer(u, a) - a * a / 2, axis=1)
    variance = weights @ a**2 - (weights @ a) ** 2
    assert variance.max() <= mixture.variance_bound * (1 + 1e-9)


# ------------------------------------------------------------ what can only cost more


@each_quick_route
@examples(2, 60)
@given(question=questions(), direction=directions, more=st.integers(1, 1000))
def test_more_rounds_cost_more(name, question, direction, more):
    [(mixture, steps)], epsilon = question
    few, many = ([(mixture, n)] for n in (steps, steps + more))
    assert at_most(route(name, few, epsilon, direction), route(name, many, epsilon, direction))


@each_quick_route
@examples(2, 60)
@given(setting=rounds(), direction=directions, share=st.floats(0.3, 0.99), factor=st.floats(1.01, 2.0), data=st.data())
def test_more_sampling_or_less_noise_costs_more(name, setting, direction, share, factor, data):
    """[R-0]"""
    sigma, q, steps = setting
    parts = [(binomial(1, q, sigma), steps)]
    epsilon = epsilon_at(data.draw, parts)
    whole = route(name, parts, epsilon, direction)
    assert at_most(route(name, [(binomial(1, share * q, sigma), steps)], epsilon, direction), whole)
    assert at_most(route(name, [(binomial(1, q, factor * sigma), steps)], epsilon, direction), whole)


@each_route
@examples(2, 60)
@given(setting=rounds(most=10**4), direction=directions, k=st.integers(1, 6), data=st.data())
def test_a_larger_group_costs_more(name, setting, direction, k, data):
    """[G-4L]"""
    sigma, q, steps = setting
    larger = [(binomial(k + 1, q, sigma), steps)]
    epsilon = epsilon_at(data.draw, larger)
    smaller = route(name, [(binomial(k, q, sigma), steps)], epsilon, direction)
    assert at_most(smaller, route(name, larger, epsilon, direction))


@each_route
@examples(2, 60)
@given(mixture=mixtures(2.0), steps=st.integers(2, 300), direction=directions, growth=st.floats(1.0, 1.5), data=st.data())
def test_larger_sensitivities_cost_more(name, mixture, steps, direction, growth, data):
    """[G-2.9], composed: stochastically larger sensitivities dominate."""
    s, p = mixture.sensitivities, np.array(mixture.probabilities)
    p[0], p[-1] = p[0] * 0.9, p[-1] + p[0] * 0.1
    larger = Mixture([0.0, *(s[1:] * growth)], p, 1.0)
    assert dominates(larger, mixture)
    epsilon = epsilon_at(data.draw, [(larger, steps)])
    assert at_most(
        route(name, [(mixture, steps)], epsilon, direction), route(name, [(larger, steps)], epsilon, direction)
    )


@each_quick_route
@examples(2, 60)
@given(setting=rounds(most=1000), direction=directions, data=st.data())
def test_hiding_which_mixture_it_was_costs_less(name, setting, direction, data):
    """[C-7] The half-and-half mixture of two pairs is no easier than the worse one of them."""
    sigma, q, steps = setting
    rare_one, often = binomial(1, q / 3, sigma), binomial(1, q, sigma)
    mixed = Mixture([0.0, 1.0], (rare_one.probabilities + often.probabilities) / 2, sigma)
    epsilon = epsilon_at(data.draw, [(often, steps)])
    assert at_most(route(name, [(mixed, steps)], epsilon, direction), route(name, [(often, steps)], epsilon, direction))
    assert at_most(route(name, [(rare_one, steps)], epsilon, direction), route(name, [(mixed, steps)], epsilon, direction))


# ------------------------------------------------------------ mechanisms, extremes included


def spent(mechanism, delta, direction):
    """Bracket of epsilon; a wide one will do."""
    return answer(accounting.epsilon, mechanism.composition(), delta, direction, tolerance=WIDE)


@examples(15)
@given(logs(0.01, 1e6), st.one_of(logs(1e-12, 1.0), st.just(1.0)), st.integers(1, 10**9), logs(1e-300, 0.999), directions)
def test_any_poisson_setting_is_answered_or_refused(sigma, q, steps, delta, direction):
    """lower <= upper; between nothing and what everybody in every round would cost; never above that."""
    found = spent(PoissonDPSGD(sigma, q, steps), delta, direction)
    assert 0 <= found.lower <= found.upper < math.inf
    full = gaussian.epsilon(math.sqrt(steps) / sigma, delta)
    assert found.lower <= full * (1 + 1e-9) + 1e-300


@examples(5)
@given(rounds(most=10**4), logs(1e-100, 1e-2), directions)
def test_the_last_iterate_costs_less(setting, delta, direction):
    """[M-F5] It is computed from all iterates."""
    sigma, q, steps = setting
    last = spent(LastIterate(sigma, q, steps), delta, direction)
    assert at_most(last, spent(PoissonDPSGD(sigma, q, steps), delta, direction))


@examples(5)
@given(
    st.integers(1, 50), st.integers(2, 50), st.integers(1, 300), st.integers(1, 4), logs(0.8, 8), logs(1e-50, 0.1),
    directions, st.integers(0, 4),
)
def test_fixed_batches_are_monotone(batch, times, steps, group, sigma, delta, direction, change):
    """A larger batch, a smaller dataset, a larger group, more rounds or less noise cost more [G-3.3]."""
    size = batch * times + 1
    base = spent(FixedBatchDPSGD(sigma, batch, size, steps, group), delta, direction)
    mechanism = [
        FixedBatchDPSGD(sigma, batch + 1, size, steps, group),
        FixedBatchDPSGD(sigma, batch, size - 1, steps, group),
        FixedBatchDPSGD(sigma, batch, size, steps + 1, group),
        FixedBatchDPSGD(sigma, batch, size, steps, group + 1),
        FixedBatchDPSGD(sigma * 0.9, batch, size, steps, group),
    ][change]
    assert at_most(base, spent(mechanism, delta, direction))


# ------------------------------------------------------------ coarse grids


@examples(40)
@given(st.integers(0, 10**9), st.integers(1, 4), st.floats(0, 3), st.floats(0, 4))
def test_what_a_window_costs(seed, rounds, epsilon, reach):
    """[A-29] Random pairs of laws: counted as infinite, or as the window's end, large losses move delta by no more than stated."""
    rng = np.random.default_rng(seed)
    first, second = rng.dirichlet(np.full(4, 0.3), rounds) + 1e-12, rng.dirichlet(np.full(4, 0.3), rounds) + 1e-12
    loss, window = np.log(first / second), reach * rng.random((rounds, 1))
    large = loss > window
    over = lambda terms: functools.reduce(np.add.outer, terms).ravel()
    mass = np.exp(over(np.log(first)))
    delta_of = lambda total: float(mass @ np.maximum(-np.expm1(epsilon - total), 0.0))
    delta, below = delta_of(over(loss)), delta_of(over(np.minimum(loss, window)))
    above = delta_of(np.where(over(large.astype(int)) > 0, math.inf, over(loss)))
    rare, cost = float(first[large].sum()), float((first * np.exp(-window))[large].sum())
    room = 1e-9
    assert delta - math.exp(epsilon + cost) * cost - room <= below <= delta + room
    assert delta - room <= above <= delta + min(math.exp(epsilon) * cost, rare) + room


def coarse(parts, direction, epsilon, cells, c):
    """(lower, upper) of log delta on a lattice of so few cells."""
    steps = [Step(mixture, rounds, direction, -60.0) for mixture, rounds in parts]
    h = (max(s.high for s in steps) - min(s.low for s in steps)) / cells
    laws = [Law(step, h, c) for step in steps]

    def moment(tilt):
        return sum(law.step.rounds * law.log_moment("upper", tilt) for law in laws)

    period = 40 * sum(s.rounds for s in steps) ** 0.5 * max(s.high - s.low for s in steps) / 8
    upper = Sum(laws, "upper", period, moment).log_bound(epsilon)
    if any(not law.lower.any() for law in laws):
        return -math.inf, upper
    return Sum(laws, "lower", period, moment).log_bound(epsilon), upper


@examples(6)
@given(mixtures(3.0), st.sampled_from([1, 2, 5, 20]), directions, logs(0.3, 5.0), st.data())
def test_coarse_lattices_contain_the_truth(mixture, steps, direction, c, data):
    """[A-5], [A-6] Both bounds hold on any grid, however coarse; a coarse upper bound contains a finer lower one."""
    parts = [(mixture, steps)]
    epsilon = min(epsilon_at(data.draw, parts, least=1e-6), 20.0)
    exact = route("auto", parts, epsilon, direction)
    found = [answer(coarse, parts, direction, epsilon, cells, c) for cells in (40, 80, 160, 640)]
    for low, high in found:
        assert low <= exact.upper and exact.lower <= high
    assert max(low for low, _ in found) <= min(high for _, high in found)


def lattice_curve(step, direction, cells, c, side):
    """(masses, curve, truth) of one round on the whole lattice; the upper curve with the probability of infinite losses."""
    law = Law(step, (step.high - step.low) / cells, c)
    losses = law.losses()
    epsilon = np.linspace(losses[0], losses[-1], 201)
    masses = getattr(law, side) * np.exp(law.scale - c * losses)
    infinite = math.exp(law.log_infinite) if side == "upper" else 0.0
    curve = np.maximum(0.0, -np.expm1(epsilon[:, None] - losses)) @ masses + infinite
    return masses, curve, np.exp(step.mixture.log_hockey_stick(epsilon, direction))


@examples(15)
@given(mixtures(3.0), directions, st.sampled_from([20, 60, 200]), logs(0.05, 4.0))
def test_lattice_laws_lie_on_the_right_side_everywhere(mixture, direction, cells, c):
    """[A-5], [A-6] One round: chords lie above the curve of delta, tangents below it, at every epsilon of either sign."""
    step = Step(mixture, 1, direction, -60.0)
    for side, sign in (("upper", 1), ("lower", -1)):
        masses, curve, truth = lattice_curve(step, direction, cells, c, side)
        assert np.all(masses >= 0) and masses.sum() <= 1 + 1e-9
        assert np.all(sign * (curve - truth) >= -1e-10 * truth - 1e-13)


@examples(10)
@given(mixtures(3.0), st.sampled_from([20, 60, 200]), logs(0.05, 4.0), st.floats(-2, 1))
def test_what_lies_below_the_window_is_kept_by_the_upper_law(mixture, cells, c, start):
    """The window usually leaves out 1e-22; here it leaves out much, which must not lower the curve."""
    step = Step(mixture, 1, "remove", -60.0)
    step.u_low, step.low = start, float(mixture.log_ratio(np.array([start]))[0])
    step.log_low_tail = step._log_tail(start, False)
    _, curve, truth = lattice_curve(step, "remove", cells, c, "upper")
    assert np.all(curve >= truth * (1 - 1e-10) - 1e-13)


@examples(10)
@given(mixtures(3.0), st.sampled_from([6, 12, 20]), logs(0.05, 4.0), st.floats(-1, 3))
def test_what_lies_above_the_window_counts_as_its_end_in_the_lower_law(mixture, cells, c, end):
    """The window usually leaves out 1e-22; here it leaves out much, which must not raise the lower curve."""
    step = Step(mixture, 1, "remove", -60.0)
    step.u_high, step.high = end, float(mixture.log_ratio(np.array([end]))[0])
    step.log_high_tail = step._log_tail(end, True)
    _, curve, truth = lattice_curve(step, "remove", cells, c, "lower")
    assert np.all(curve <= truth * (1 + 1e-10) + 1e-13)


# ------------------------------------------------------------ Renyi divergences


@examples(15)
@given(mixtures(), directions, logs(1e-3, 60.0), st.floats(1.01, 3.0))
def test_renyi_divergences(mixture, direction, excess, factor):
    """Increasing in the order; (order - 1) times it is convex and 0 at order 1; at most the plain Gaussian's."""
    curve = renyi.mixture_curve(mixture, direction)
    low, high = (answer(curve, 1 + x) for x in (excess, excess * factor))
    assert 0 <= low.lower and at_most(low, high)
    assert excess * low.lower <= high.upper * excess * (1 + 1e-12)
    assert low.lower <= (1 + excess) / 2 * mixture.shifts[-1] ** 2 * (1 + 1e-12)
    double = answer(renyi.composition_curve([(mixture, 3), (copy(mixture), 2)], direction), 1 + excess)
    assert double.lower <= 5 * low.upper * (1 + 1e-12) and 5 * low.lower <= double.upper * (1 + 1e-12)


@examples(20)
@given(mixtures(2.0), directions, logs(0.05, 20.0))
def test_renyi_divergences_by_a_sum(mixture, direction, excess):
    """The same integral on an even grid: a second route."""
    u = np.linspace(-60, 60, 12001)
    log_p, log_q = mixture.log_density(u), -u * u / 2 - 0.5 * math.log(2 * math.pi)
    first, second = (log_p, log_q) if direction == "remove" else (log_q, log_p)
    value = math.log(np.exp((1 + excess) * first - excess * second).sum() * (u[1] - u[0])) / excess
    found = answer(renyi.mixture_curve(mixture, direction), 1 + excess)
    assert found.lower - 1e-11 * (1 + 1 / excess) <= value <= found.upper + 1e-11 * (1 + 1 / excess)
