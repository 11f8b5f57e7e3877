"""Trees of events: every class of dp_accounting has its place, and numbers agree with its own accountants."""

import inspect
import math
import random

import dp_accounting
import numpy as np
import pytest
from dp_accounting import dp_event as e
from dp_accounting import pld, rdp
from property_cases import SCALE

import dplib
from dplib import PoissonDPSGD, accounting, events, gaussian, mixtures, renyi
from dplib.bridges import account as accounts
from dplib.bridges import curves
from dplib.results import Bracket, UpperBound

RELATIONS = {
    "add/remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "zero-out": dp_accounting.NeighboringRelation.REPLACE_SPECIAL,
    "substitution": dp_accounting.NeighboringRelation.REPLACE_ONE,
}
GAUSSIAN = e.GaussianDpEvent(1.5)
SAMPLED = e.PoissonSampledDpEvent(0.1, GAUSSIAN)
FIXED = e.SampledWithoutReplacementDpEvent(100, 10, GAUSSIAN)

# Of every class: an example, and under add/remove, zero-out, substitution whether it is certified (c), bounded from above (u), or
# refused (a word of the reason).
CLASSES = {
    e.NoOpDpEvent: (e.NoOpDpEvent(), "c", "c", "c"),
    e.NonPrivateDpEvent: (e.NonPrivateDpEvent(), "infinite", "infinite", "infinite"),
    e.UnsupportedDpEvent: (e.UnsupportedDpEvent(), *["not described"] * 3),
    e.GaussianDpEvent: (GAUSSIAN, "c", "c", "c"),
    e.ComposedDpEvent: (e.ComposedDpEvent([GAUSSIAN, SAMPLED]), "c", "c", "c"),
    e.SelfComposedDpEvent: (e.SelfComposedDpEvent(GAUSSIAN, 3), "c", "c", "c"),
    e.PoissonSampledDpEvent: (SAMPLED, "c", "c", "c"),
    e.SampledWithoutReplacementDpEvent: (FIXED, "c", "c", "c"),
    e.SampledWithReplacementDpEvent: (e.SampledWithReplacementDpEvent(100, 10, GAUSSIAN), *["many times"] * 3),
    e.MixtureOfGaussiansDpEvent: (e.MixtureOfGaussiansDpEvent(1.5, [0.0, 1.0], [0.9, 0.1]), "c", "c", "adding and removing"),
    e.SingleEpochTreeAggregationDpEvent: (e.SingleEpochTreeAggregationDpEvent(9.0, [8, 3]), "zero-out only", "c", "zero-out only"),
    e.LaplaceDpEvent: (e.LaplaceDpEvent(2.0), "u", "u", "u"),
    e.DiscreteLaplaceDpEvent: (e.DiscreteLaplaceDpEvent(0.3, 2), "u", "u", "u"),
    e.RandomizedResponseDpEvent: (e.RandomizedResponseDpEvent(0.5, 4), "how many records", "u", "u"),
    e.ZCDpEvent: (e.ZCDpEvent(0.02, 0.01), "u", "u", "u"),
    e.RepeatAndSelectDpEvent: (e.RepeatAndSelectDpEvent(GAUSSIAN, 2.0, 1.0), *["best of a random number"] * 3),
    e.TruncatedSubsampledGaussianDpEvent: (e.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 1.5), "c", "c", "c"),
}


def test_every_class_of_events_is_in_the_table():
    classes = {value for value in vars(e).values() if inspect.isclass(value) and issubclass(value, e.DpEvent)}
    assert classes - {e.DpEvent} == set(CLASSES)
    assert set(events.REFUSED) <= {one.__name__ for one in CLASSES}


@pytest.mark.parametrize("place, relation", list(enumerate(RELATIONS)))
@pytest.mark.parametrize("kind", CLASSES)
def test_each_class_is_certified_bounded_or_refused(kind, place, relation):
    event, *told = CLASSES[kind]
    expected, reason = told[place], events.why_not(event, relation)
    assert (reason is None) == (expected == "c")
    if expected == "c":
        pairs = events.composition(event, relation)
        assert isinstance(events.account(event, relation).epsilon(1e-5), Bracket)
        assert all(isinstance(pair, accounting.PAIRS) and rounds >= 1 for pair, rounds in pairs)
        named = events.composition(event.to_named_tuple(), relation)  # no class of dp_accounting
        assert [(str(pair), rounds) for pair, rounds in named] == [(str(pair), rounds) for pair, rounds in pairs]
        return
    with pytest.raises(ValueError, match="event must"):
        events.composition(event, relation)
    if expected == "u":
        assert "Rényi" in reason and isinstance(events.account(event, relation).epsilon(1e-5), UpperBound)
        assert isinstance(events.account(event, relation).delta(0.1), UpperBound)
    else:
        assert expected in reason


def epsilon(event, relation="add/remove", group_size=1, delta=1e-5):
    return events.account(event, relation, group_size).epsilon(delta)


# --- what each class means ----------------------------------------------------------------------------


@pytest.mark.parametrize("relation, mu", [("add/remove", 2), ("zero-out", 2), ("substitution", 4)])
def test_a_gaussian_is_relative_to_the_clip_norm(relation, mu):
    """Two records out of a sum, or two replaced by others: up to 2 clip norms each."""
    assert gaussian.epsilon(mu / 1.5, 1e-5) in epsilon(GAUSSIAN, relation, 2)


def test_gaussians_on_one_sample_are_one():
    """[M-0a] 1/sigma^2 adds up before sampling; on samples of their own the rounds compose."""
    tree = e.ComposedDpEvent([e.GaussianDpEvent(20.0), e.SelfComposedDpEvent(e.GaussianDpEvent(2.0), 4), e.NoOpDpEvent()])
    [(pair, rounds)] = events.composition(e.SelfComposedDpEvent(e.PoissonSampledDpEvent(0.1, tree), 7))
    assert rounds == 7 and pair.noise_multiplier == pytest.approx((1 / 400 + 4 / 4) ** -0.5)
    apart = e.ComposedDpEvent([e.PoissonSampledDpEvent(0.1, e.GaussianDpEvent(noise)) for noise in (20.0, *[2.0] * 4)])
    together = e.PoissonSampledDpEvent(0.1, tree)
    assert epsilon(together).lower > epsilon(apart).upper


@pytest.mark.parametrize("seed", range(6))
def test_adaptive_gaussians_on_one_sample_are_dominated(seed):
    """[M-K] Two records, two releases; what the second asks depends on what the first said. By sums on a grid, both directions."""
    rng, q, noises, step = np.random.default_rng(seed), 0.3, (1.0, 1.5), 0.05
    grid = np.arange(-11, 11, step)
    density = lambda y, mean, noise: np.exp(-(((y - mean) / noise) ** 2) / 2) / (noise * math.sqrt(2 * math.pi))
    first = rng.choice([-1.0, 1.0], 2)
    second = rng.choice([-1.0, 1.0], (2, 4))[:, np.digitize(grid, [-1, 0, 1])]  # of each record, by the first output
    if seed == 0:  # everything points one way: attained
        first, second = np.ones(2), np.ones((2, len(grid)))
    pair = mixtures.binomial(2, q, accounts.together(dict.fromkeys(noises, 1)))
    total, reference = 0, None
    for drawn in np.ndindex(2, 2):
        means = np.array(drawn) @ first, np.array(drawn) @ second
        table = density(grid, means[0], noises[0])[:, None] * density(grid[None, :], means[1][:, None], noises[1]) * step**2
        reference = table if reference is None else reference
        total = total + q ** sum(drawn) * (1 - q) ** (2 - sum(drawn)) * table
    for epsilon in (0.0, 0.5, 1.5):
        remove = np.maximum(total - math.exp(epsilon) * reference, 0).sum()
        add = np.maximum(reference - math.exp(epsilon) * total, 0).sum()
        for found, direction in ((remove, "remove"), (add, "add")):
            bound = pair.hockey_stick(epsilon, direction)
            assert found <= bound + 1e-4 and (seed or found >= bound - 1e-4)


def test_a_sample_of_a_sample():
    [(pair, rounds)] = events.composition(e.PoissonSampledDpEvent(0.2, e.ComposedDpEvent([SAMPLED])), group_size=3)
    assert rounds == 1
    np.testing.assert_allclose(pair.probabilities, mixtures.binomial(3, 0.02, 1.5).probabilities)
    for inner in (e.SelfComposedDpEvent(SAMPLED, 2), e.ComposedDpEvent([SAMPLED, GAUSSIAN]), FIXED, e.LaplaceDpEvent(1.0)):
        assert "on the same sample" in events.why_not(e.PoissonSampledDpEvent(0.2, inner))
    assert "batch of fixed size" in events.why_not(e.SampledWithoutReplacementDpEvent(100, 10, SAMPLED))


def test_nothing_and_everything():
    nothing = [
        e.PoissonSampledDpEvent(0.0, GAUSSIAN), e.SelfComposedDpEvent(GAUSSIAN, 0), e.ComposedDpEvent([]), e.ZCDpEvent(0.0),
        e.MixtureOfGaussiansDpEvent(0.0, [0.0], [1.0]), e.DiscreteLaplaceDpEvent(1.0, 0), e.SampledWithoutReplacementDpEvent(9, 0, GAUSSIAN),
    ]  # fmt: skip
    for event in nothing:
        assert epsilon(event).upper == 0 and events.account(event).delta(0.0).upper == 0
    for event in (e.RandomizedResponseDpEvent(0.0, 1), e.RandomizedResponseDpEvent(1.0, 5)):
        assert epsilon(event, "substitution").upper == 0
    everything = [
        e.GaussianDpEvent(0.0), e.LaplaceDpEvent(0.0), e.DiscreteLaplaceDpEvent(0.0, 1), e.MixtureOfGaussiansDpEvent(0.0, [1.0], [1.0]),
        e.PoissonSampledDpEvent(0.1, e.GaussianDpEvent(0)), e.ComposedDpEvent([GAUSSIAN, e.NonPrivateDpEvent()]),
    ]  # fmt: skip
    for event in everything:
        with pytest.raises(dplib.NoBracketError, match="no privacy at all"):
            epsilon(event)
    assert epsilon(e.PoissonSampledDpEvent(1, GAUSSIAN), "substitution") == epsilon(GAUSSIAN, "substitution")
    assert epsilon(e.SampledWithoutReplacementDpEvent(9, 9, GAUSSIAN), "zero-out", 2) == epsilon(GAUSSIAN, "zero-out", 2)


def test_fixed_batches_count_from_the_smaller_dataset():
    """[G-3.3] The event does not say whose size it tells: the pair dominates that of either reading."""
    [(pair, _)] = events.composition(FIXED, group_size=3)
    for smaller in (97, 100):
        assert mixtures.dominates(pair, mixtures.hypergeometric(10, smaller, 3, 1.5))
    assert "fewer than the 10" in events.why_not(e.SampledWithoutReplacementDpEvent(12, 10, GAUSSIAN), group_size=3)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 8, 100])
def test_the_depth_of_a_tree(steps):
    """A step counts in complete sums of 1, 2, 4, ... steps: count the nodes over each step."""
    nodes = [sum((step // 2**level + 1) * 2**level <= steps for level in range(20)) for step in range(steps)]
    event = e.SingleEpochTreeAggregationDpEvent(5.0, [1, steps])
    assert gaussian.epsilon(math.sqrt(max(nodes)) / 5, 1e-5) in epsilon(event, "zero-out")
    theirs = rdp.RdpAccountant(neighboring_relation=RELATIONS["zero-out"]).compose(event).get_epsilon(1e-5)
    assert epsilon(event, "zero-out").upper <= theirs


def test_bad_events_are_told_apart_from_refused_ones():
    class NewDpEvent(e.DpEvent):
        pass

    assert events.why_not(NewDpEvent()) == "NewDpEvent is refused: its class is not known here"
    for wrong in (1.0, "GaussianDpEvent", None, PoissonDPSGD(1.0, 0.1, 1)):
        with pytest.raises(TypeError, match="event must be a DpEvent"):
            events.why_not(wrong)
    for event, name in [
        (e.GaussianDpEvent(-1.0), "noise_multiplier"), (e.PoissonSampledDpEvent(1.1, GAUSSIAN), "sampling_probability"),
        (e.SelfComposedDpEvent(GAUSSIAN, -1), "count"), (e.SelfComposedDpEvent(e.SelfComposedDpEvent(GAUSSIAN, 2**40), 2**40), "count"),
        (e.MixtureOfGaussiansDpEvent(1.0, [-1.0], [1.0]), "sensitivities"), (e.ZCDpEvent(-1.0), "rho"),
        (e.SampledWithoutReplacementDpEvent(10, 11, GAUSSIAN), "sample_size"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=name):
            events.composition(event)
    with pytest.raises(ValueError, match="relation must be one of"):
        events.composition(GAUSSIAN, "replace")
    assert "not a group of 2" in events.why_not(CLASSES[e.MixtureOfGaussiansDpEvent][0], group_size=2)


# --- beside dp_accounting -----------------------------------------------------------------------------


def tree(rng, depth=0, substituted=False):
    """A random tree that dp_accounting's PLD accountant takes, under add/remove, or without mixtures under substitution."""
    noise, q = math.exp(rng.uniform(0.0, 1.5)), rng.choice([0.01, 0.1, 0.5, 1.0])
    if depth == 4 or rng.random() < 0.2 + 0.1 * depth:
        leaves = [e.NoOpDpEvent(), e.GaussianDpEvent(2 * noise), e.PoissonSampledDpEvent(q, e.GaussianDpEvent(noise))]
        if not substituted:
            leaves.append(e.MixtureOfGaussiansDpEvent(2 * noise, [0.0, 0.5, 1.0], [0.8, 0.1, 0.1]))
        return rng.choice(leaves)
    if rng.random() < 0.4:
        return e.SelfComposedDpEvent(tree(rng, depth + 1, substituted), rng.randint(1, 3))
    return e.ComposedDpEvent([tree(rng, depth + 1, substituted) for _ in range(rng.randint(1, 3))])


def rounds(event, relation="add/remove"):
    return sum(count for _, count in events.composition(event, relation))


TREES = [("add/remove", seed) for seed in range(25 if SCALE > 1 else 3)] + [("substitution", seed) for seed in range(4 if SCALE > 1 else 2)]


@pytest.mark.parametrize("relation, seed", TREES)
def test_random_trees_agree_with_dp_accounting(relation, seed):
    """[A-22] Their value is rounded up, in each of n rounds by at most one step of their grid: ours is at most theirs, and within n steps."""
    rng, step, compared, substituted = random.Random(seed), 5e-3, 0, relation == "substitution"
    while compared < (10 if substituted else 20):
        event = tree(rng, substituted=substituted)
        if rounds(event, relation) > 40:
            continue
        ours = epsilon(event, relation)
        theirs = pld.PLDAccountant(RELATIONS[relation], value_discretization_interval=step).compose(event).get_epsilon(1e-5)
        assert ours.lower <= theirs + 1e-9 and theirs <= ours.upper + (rounds(event, relation) + 1) * step
        compared += 1


@pytest.mark.parametrize("relation, event", [
    ("add/remove", e.LaplaceDpEvent(2.0)), ("zero-out", e.DiscreteLaplaceDpEvent(0.3, 2)), ("zero-out", e.DiscreteLaplaceDpEvent(2.0, 1)),
    ("zero-out", e.RandomizedResponseDpEvent(0.4, 3)), ("substitution", e.RandomizedResponseDpEvent(0.4, 3)),
    ("substitution", e.RandomizedResponseDpEvent(0.999, 50)), ("zero-out", e.RandomizedResponseDpEvent(0.5, 50)),
])  # fmt: skip
def test_rényi_curves_are_those_of_the_laws(relation, event):
    """Sums over the outcomes, or dp_accounting's own formula; an upper bound is never below the PLD accountant's lower estimate."""
    [(item, _)] = events.account(event, relation).rounds.items()
    orders = [1.0001, 1.5, 2.0, 7.3, 64.0]
    ours = [curves.of(item, 1, relation)(order) for order in orders]
    if isinstance(event, e.DiscreteLaplaceDpEvent):
        x = np.arange(-4000, 4001)
        logs = lambda y: math.log(math.tanh(event.noise_parameter / 2)) - event.noise_parameter * abs(y)
        p, q = logs(x - event.sensitivity), logs(x)
        expected = [math.log(math.fsum(np.exp(order * p + (1 - order) * q))) / (order - 1) for order in orders]
    else:
        accountant = rdp.RdpAccountant(orders, RELATIONS[relation])
        expected = accountant.compose(event).rdp
    np.testing.assert_allclose(ours, expected, rtol=1e-7)
    theirs = pld.PLDAccountant(RELATIONS[relation], 1e-3).compose(event)
    for target in (1e-2, 1e-5):
        assert epsilon(event, relation, delta=target).upper >= theirs.get_epsilon(target) - 1e-3


def test_a_measured_release_fails_or_is_randomised_response():
    account = accounts.Account()
    account.add(("release", 0.7, 1e-7), 3)
    assert account.delta(2.1).upper == pytest.approx(3e-7, rel=1e-12) and account.delta(50.0).upper >= 3e-7
    for order in (1.001, 2.0, 30.0):
        found = curves.of(("release", 0.7, 1e-7), 1, "add/remove")(order)
        assert found == pytest.approx(renyi.randomized_response(order, math.exp(0.7) / (1 + math.exp(0.7))), rel=1e-9)


def test_a_measured_release_beside_a_gaussian():
    """By hand: one outcome in delta_0 tells all; else randomised response adds its loss to that of the Gaussian."""
    account, truth = accounts.Account(), math.exp(0.5) / (1 + math.exp(0.5))
    account.add(("gaussian", 2.0))
    account.add(("release", 0.0, 1e-6))
    assert account.epsilon(2e-6).upper == pytest.approx(gaussian.epsilon(0.5, 1e-6), rel=1e-9)
    account.add(("release", 0.5, 0.0))
    for level in (0.2, 1.0, 2.0, 4.0):
        both = truth * gaussian.delta(0.5, level - 0.5) + (1 - truth) * gaussian.delta(0.5, level + 0.5)
        assert both <= account.delta(level).upper <= max(gaussian.delta(0.5, level - 0.5), 2 * both) + 1e-6


def test_pairs_and_curves_together():
    """The smaller of Rényi and basic composition, and never below what the pairs cost alone."""
    both = e.ComposedDpEvent([e.SelfComposedDpEvent(SAMPLED, 100), e.LaplaceDpEvent(10.0)])
    alone = epsilon(both.events[0])
    assert alone.upper < epsilon(both).upper <= alone.upper + 0.1 + 1e-12
    zcdp = epsilon(e.ComposedDpEvent([both.events[0], e.ZCDpEvent(0.005)]))
    assert zcdp.method == "Renyi" and zcdp.upper > alone.upper
    found = events.account(both)
    assert found.delta(found.epsilon(1e-5).upper).upper <= 1e-5 * (1 + 1e-6)
    assert events.account(e.LaplaceDpEvent(2.0)).delta(0.5).upper == 0


# --- many different pairs -----------------------------------------------------------------------------


def test_merged_pairs_enclose(monkeypatch):
    """Each merged pair is at least as bad, or at most, as those it stands for, and the rounds are all there."""
    rng = np.random.default_rng(0)
    pairs = {("poisson", q, noise): 2 for q, noise in zip(rng.uniform(0.01, 0.02, 40), rng.uniform(1, 2, 40))}
    pairs |= {("gaussian", 9.0): 3, ("fixed", 100, 10, 2.0): 1, ("mixture", (0.0, 1.0), (0.5, 0.5), 4.0): 1}
    for up in (True, False):
        found = accounts.merged(pairs, 8, up)
        assert len(found) <= 8 and sum(found.values()) == sum(pairs.values())
    account = accounts.Account()
    for item, count in pairs.items():
        account.add(item, 20 * count)
    exact = accounting.epsilon(account.pairs(), 1e-5, method="contour")
    fine = account.epsilon(1e-5)
    monkeypatch.setattr(accounts, "_OFTEN", math.inf)
    coarse = account.epsilon(1e-5)
    assert coarse.lower <= fine.lower <= exact.upper and exact.lower <= fine.upper <= coarse.upper
    assert coarse.lower < exact.lower and exact.upper < coarse.upper and coarse.relative_width < 0.6
    assert coarse.method.endswith("of merged pairs")


def test_insertions_with_deletions_have_no_event():
    with pytest.raises(ValueError, match="inserted and deleted must not both be given for an event"):
        PoissonDPSGD(1.0, 0.01, 10, inserted=2, deleted=1).event()
    assert PoissonDPSGD(1.0, 0.01, 10, inserted=2).event() == PoissonDPSGD(1.0, 0.01, 10).event()
