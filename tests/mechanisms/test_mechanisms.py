"""Mechanisms: the pair behind each, degenerate cases, order in every parameter, figures of the sources."""

import dataclasses
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dplib import Bracket, FixedBatchDPSGD, LastIterate, PoissonDPSGD, accounting, gaussian, mixtures

DIRECTIONS = ("remove", "add", "both")
POISSON = PoissonDPSGD(1.0, 0.02, 500, 2)
FIXED = FixedBatchDPSGD(2.0, 20, 1000, 500, 2)
LAST = LastIterate(1.0, 0.02, 500)
ALL = [POISSON, FIXED, LAST]
IDS = [type(m).__name__ for m in ALL]


def same_law(pair, other):
    return (
        np.array_equal(pair.sensitivities, other.sensitivities)
        and np.array_equal(pair.log_probabilities, other.log_probabilities)
        and pair.noise_multiplier == other.noise_multiplier
    )


@pytest.mark.parametrize(
    "mechanism, pair, rounds",
    [
        (POISSON, mixtures.binomial(2, 0.02, 1.0), 500),
        (FIXED, mixtures.hypergeometric(20, 1000, 2, 2.0), 500),
        (LAST, mixtures.binomial(500, 0.02, math.sqrt(500)), 1),
    ],
    ids=IDS,
)
def test_composition_is_the_dominating_pair(mechanism, pair, rounds):
    """[G-3.1], [G-3.3], [M-F5]"""
    ((mixture, count),) = mechanism.composition()
    assert same_law(mixture, pair) and count == rounds and type(count) is int


@pytest.mark.parametrize("mechanism", ALL, ids=IDS)
def test_answers_are_those_of_the_accountant(mechanism):
    for direction in DIRECTIONS:
        epsilon = mechanism.epsilon(1e-5, direction)
        assert isinstance(epsilon, Bracket) and epsilon.method
        assert epsilon == accounting.epsilon(mechanism.composition(), 1e-5, direction)
        assert mechanism.delta(1.0, direction) == accounting.delta(mechanism.composition(), 1.0, direction)


@pytest.mark.parametrize("mechanism", ALL, ids=IDS)
def test_both_is_the_larger_direction(mechanism):
    for answer in (lambda d: mechanism.epsilon(1e-5, d), lambda d: mechanism.delta(1.0, d)):
        remove, add, both = map(answer, DIRECTIONS)
        assert remove.lower > add.upper  # the two differ here, so the choice is visible
        assert both == remove == answer("both")
    assert mechanism.epsilon(1e-5) == mechanism.epsilon(1e-5, direction="both")
    assert mechanism.delta(1.0) == mechanism.delta(1.0, direction="both")


@pytest.mark.parametrize("mechanism", ALL, ids=IDS)
def test_delta_and_epsilon_are_inverse(mechanism):
    for direction in DIRECTIONS:
        delta = mechanism.delta(1.5, direction)
        back = mechanism.epsilon(delta.midpoint, direction)
        assert back.lower <= 1.5 * (1 + 1e-8) and back.upper >= 1.5 * (1 - 1e-8)
        assert back.relative_width < 1e-6


def test_method_is_passed_on():
    for method in ("contour", "lattice"):
        assert POISSON.epsilon(1e-5, "remove", method=method).method == method
    assert POISSON.delta(1.0, "remove", method="lattice").method == "lattice"


@pytest.mark.parametrize("mechanism", ALL, ids=IDS)
def test_mechanisms_are_values(mechanism):
    copy = dataclasses.replace(mechanism)
    assert copy == mechanism and hash(copy) == hash(mechanism) and copy is not mechanism
    assert dataclasses.replace(mechanism, noise_multiplier=9.0) != mechanism
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.steps = 3
    assert eval(repr(mechanism)) == mechanism


@pytest.mark.parametrize(
    "mechanism, name, least, most",
    [
        (POISSON, "steps", 1, 2**53),
        (POISSON, "group_size", 1, 10**8),
        (dataclasses.replace(FIXED, dataset_size=10**7), "batch_size", 1, 10**7),
        (dataclasses.replace(FIXED, batch_size=1), "dataset_size", 1, 2**53),
        (FIXED, "steps", 1, 2**53),
        (FIXED, "group_size", 1, 10**6),
        (LAST, "steps", 1, 10**8),
    ],
)
def test_whole_numbers_go_from_least_to_most(mechanism, name, least, most):
    """The ends are taken, and what lies beyond them is refused by its name."""
    for value in (least, most):
        assert getattr(dataclasses.replace(mechanism, **{name: value}), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(ValueError, match=rf"{name} must be .*; got {value}$"):
            dataclasses.replace(mechanism, **{name: value})


def test_arguments_by_name_and_by_position():
    assert POISSON == PoissonDPSGD(noise_multiplier=1.0, sampling_probability=0.02, steps=500, group_size=2)
    assert FIXED == FixedBatchDPSGD(
        noise_multiplier=2.0, batch_size=20, dataset_size=1000, steps=500, group_size=2
    )
    assert LAST == LastIterate(noise_multiplier=1.0, sampling_probability=0.02, steps=500)
    assert PoissonDPSGD(1.0, 0.02, 500).group_size == FixedBatchDPSGD(1.0, 2, 10, 5).group_size == 1


def test_whole_floats_are_whole_numbers():
    assert PoissonDPSGD(1.0, 0.02, 500.0, np.int64(2)).epsilon(1e-5) == POISSON.epsilon(1e-5)
    assert FixedBatchDPSGD(2.0, 20.0, 1e3, 500.0, 2.0).epsilon(1e-5) == FIXED.epsilon(1e-5)
    assert LastIterate(1.0, 0.02, 500.0).epsilon(1e-5) == LAST.epsilon(1e-5)


# --- degenerate cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [PoissonDPSGD(1.0, 0, 500, 9), LastIterate(1.0, 0.0, 500)])
def test_records_that_are_never_sampled_lose_nothing(mechanism):
    for direction in DIRECTIONS:
        assert mechanism.epsilon(1e-100, direction) == Bracket(0.0, 0.0, "closed form")
        assert mechanism.delta(0.0, direction) == Bracket(0.0, 0.0, "closed form")


@pytest.mark.parametrize(
    "mechanism, mu",
    [
        (PoissonDPSGD(2.0, 1.0, 16, 3), 6.0),
        (PoissonDPSGD(50.0, 1, 400), 0.4),
        (LastIterate(2.0, 1, 16), 2.0),
        (PoissonDPSGD(30.0, 1, 1_000_000), 1000 / 30),
    ],
)
def test_sampling_everything_is_the_plain_gaussian(mechanism, mu):
    """q = 1: mu = k sqrt(T) / sigma, in both directions, at any number of rounds."""
    for direction in DIRECTIONS:
        epsilon = mechanism.epsilon(1e-7, direction)
        assert gaussian.epsilon(mu, 1e-7) == pytest.approx(epsilon.midpoint, rel=1e-11)
        assert epsilon.relative_width < 1e-11 and epsilon.method == "closed form"
        delta = mechanism.delta(1.0, direction)
        assert delta.lower * (1 - 1e-11) <= gaussian.delta(mu, 1.0) <= delta.upper * (1 + 1e-11)


def test_one_step_is_the_same_for_every_iterate_and_the_last():
    """[M-F5]"""
    for direction in DIRECTIONS:
        one = PoissonDPSGD(0.7, 0.1, 1).epsilon(1e-6, direction)
        assert LastIterate(0.7, 0.1, 1).epsilon(1e-6, direction) == one
        assert one.method == "closed form" and one.relative_width < 1e-9


def test_delta_large_enough_needs_no_epsilon():
    assert PoissonDPSGD(100.0, 0.01, 1).epsilon(0.5) == Bracket(0.0, 0.0, "closed form")


# --- figures of the sources ----------------------------------------------------------------------------


def test_last_iterate_of_the_source():
    """[M-F5] n = 128, p = 1/128: .4199 / .2908 for the last iterate, .8064 / .3442 for all of them."""
    last, every = LastIterate(1.0, 1 / 128, 128), PoissonDPSGD(1.0, 1 / 128, 128)
    for mechanism, remove, add in [(last, 0.4199, 0.2908), (every, 0.8064, 0.3442)]:
        assert mechanism.epsilon(1e-6, "remove").upper == pytest.approx(remove, abs=1e-4)
        assert mechanism.epsilon(1e-6, "add").upper == pytest.approx(add, abs=1e-4)
    assert last.epsilon(1e-6).upper == last.epsilon(1e-6, "remove").upper


def test_a_large_fixed_batch_is_poisson_at_half_the_noise():
    """[G-3.3] Twice the sensitivity: fixed batch at 2 sigma is close to Poisson at sigma, on the safe side here."""
    poisson = PoissonDPSGD(1.0, 0.01, 2000).epsilon(1e-6, "remove").midpoint
    fixed = FixedBatchDPSGD(2.0, 500, 50_000, 2000).epsilon(1e-6, "remove").midpoint
    assert fixed == pytest.approx(poisson, rel=1e-4)
    halved = FixedBatchDPSGD(1.0, 500, 50_000, 2000).epsilon(1e-6, "remove").lower
    assert halved > 2 * poisson


def test_a_group_of_the_whole_batch_never_exceeds_the_gaussian():
    """[G-4L] (a) B = 1: the sensitivity is at most 2 in every round, whatever the group."""
    plain = gaussian.epsilon(2 * math.sqrt(1) / 2.0, 1e-6)
    group = FixedBatchDPSGD(2.0, 1, 1000, 1, 1000).epsilon(1e-6)
    single = FixedBatchDPSGD(2.0, 1, 1000, 1).epsilon(1e-6)
    assert group.upper == pytest.approx(4.054, abs=6e-4) and group.upper < plain
    assert 1000 * single.lower == pytest.approx(21.8, abs=0.06)


@pytest.mark.parametrize("k, epsilon", [(1, 1.085), (2, 2.015), (5, 3.832)])
def test_groups_in_one_round_of_little_noise(k, epsilon):
    """[G-4L] (b) Poisson, T = 1, q = .001, sigma = .5."""
    assert PoissonDPSGD(0.5, 1e-3, 1, k).epsilon(1e-6).upper == pytest.approx(epsilon, abs=6e-4)


# --- order in every parameter ---------------------------------------------------------------------------


@settings(max_examples=12)
@given(
    st.floats(0.7, 4),
    st.floats(0.02, 0.1),
    st.integers(1000, 3000),
    st.integers(1, 8),
    st.sampled_from(["remove", "add"]),
)
def test_poisson_loses_more_with_less_noise_more_rounds_rate_or_members(sigma, q, steps, k, direction):
    base = PoissonDPSGD(sigma, q, steps, k)
    here = base.epsilon(1e-6, direction)
    for change in (
        {"noise_multiplier": sigma / 1.05},
        {"sampling_probability": 1.05 * q},
        {"steps": steps + 20},
        {"group_size": k + 1},
    ):
        assert dataclasses.replace(base, **change).epsilon(1e-6, direction).lower > here.upper
    assert base.epsilon(1e-7, direction).lower > here.upper
    assert base.delta(0.9 * here.upper, direction).lower > 1e-6 > base.delta(1.1 * here.upper, direction).upper


@settings(max_examples=8)
@given(st.floats(1.5, 5), st.integers(5, 40), st.integers(500, 2000), st.integers(1, 5))
def test_fixed_batch_loses_more_with_a_larger_batch_or_fewer_records(sigma, batch, records, k):
    base = FixedBatchDPSGD(sigma, batch, records, 400, k)
    here = base.epsilon(1e-6)
    for change in (
        {"noise_multiplier": sigma / 1.05},
        {"batch_size": batch + 1},
        {"dataset_size": records - 50},
        {"steps": 440},
        {"group_size": k + 1},
    ):
        assert dataclasses.replace(base, **change).epsilon(1e-6).lower > here.upper


@settings(max_examples=12)
@given(st.floats(0.5, 4), st.floats(0.005, 0.3), st.integers(1, 500))
def test_releasing_the_last_iterate_only_loses_less(sigma, q, steps):
    """[M-F5] Post-processing."""
    for direction in DIRECTIONS[:2]:
        last = LastIterate(sigma, q, steps).delta(1.0, direction)
        assert last.method == "closed form"
        if steps >= 200:
            assert last.lower <= PoissonDPSGD(sigma, q, steps).delta(1.0, direction).upper
        louder = LastIterate(1.1 * sigma, q, steps).delta(1.0, direction)
        assert louder.lower < last.upper or last.upper == 0


@pytest.mark.parametrize("value", [np.array(0.01), Decimal("0.01")], ids=["array", "decimal"])
def test_scalars_of_other_kinds_say_what_to_write(value):
    """Arrays of no dimensions (also JAX's and PyTorch's), and decimals."""
    with pytest.raises(TypeError, match=r"sampling_probability must be .* write float\(...\) around it"):
        PoissonDPSGD(1.0, value, 100)
    assert PoissonDPSGD(1.0, float(value), 100) == PoissonDPSGD(1.0, 0.01, 100)
    with pytest.raises(TypeError) as error:
        PoissonDPSGD(1.0, np.array([0.01]), 100)
    assert "float(...)" not in str(error.value)
