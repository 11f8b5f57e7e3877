"""The accountant for dp_accounting: its own abstract tests, its calibration, and the traps of delta and noise."""

import copy
import math
import re
from unittest import mock

import dp_accounting
import pytest
from dp_accounting import dp_event as e
from dp_accounting.pld import pld_privacy_accountant, pld_privacy_accountant_test
from dp_accounting.rdp import rdp_privacy_accountant, rdp_privacy_accountant_test

from dplib import NoBracketError, PoissonDPSGD, accounting, calibrate, events
from dplib.bridges.dp_accounting import Accountant

DPSGD = e.SelfComposedDpEvent(e.PoissonSampledDpEvent(0.01, e.GaussianDpEvent(1.0)), 2000)
RELATIONS = list(dp_accounting.NeighboringRelation)


# Of the tests of the PLD accountant those that ask for what ours does not answer in the same way, and why.
OTHERWISE = {
    "test_composition_errors_for_neighboring_relation": "other events are refused, in other words: test_events.py",
    "test_discrete_laplace_basic": "noise that is not Gaussian is bounded by its Rényi divergence",
    "test_poisson_subsampled_laplace": "Laplace noise on a sample is refused",
    "test_randomized_response": "bounded by its Rényi divergence",
    "test_mixture_of_gaussians_basic": "asks for more digits than the bracket has: below",
    "test_truncated_subsampled_gaussian_basic": "asks for its larger value: below",
}
# Of those of the Rényi accountant the ones that are not about orders.
ANY_ACCOUNTANT = ("test_zero_poisson_sample", "test_zero_fixed_batch_sample", "test_epsilon_non_private_gaussian")


def named(tests, names):
    """The names of the tests, which may have a number at their end."""
    return [name for name in dir(tests) if re.fullmatch(rf"({'|'.join(names)})\d*", name)]


class TestInThePlaceOfThePldAccountant(pld_privacy_accountant_test.PldPrivacyAccountantTest):
    def setUp(self):
        super().setUp()
        patch = mock.patch.object(pld_privacy_accountant, "PLDAccountant", Accountant)
        patch.start()
        self.addCleanup(patch.stop)


class TestInThePlaceOfTheRenyiAccountant(rdp_privacy_accountant_test.RdpPrivacyAccountantTest):
    def setUp(self):
        super().setUp()
        made = lambda orders=None, relation=RELATIONS[0]: Accountant(relation)
        patch = mock.patch.object(rdp_privacy_accountant, "RdpAccountant", made)
        patch.start()
        self.addCleanup(patch.stop)


for _name in named(TestInThePlaceOfThePldAccountant, OTHERWISE):
    setattr(TestInThePlaceOfThePldAccountant, _name, None)
for _name in set(named(TestInThePlaceOfTheRenyiAccountant, ["test_.*"])) - set(named(TestInThePlaceOfTheRenyiAccountant, ANY_ACCOUNTANT)):
    setattr(TestInThePlaceOfTheRenyiAccountant, _name, None)


def test_its_events_that_are_cut():
    """The events of its own test, by whose PLD epsilon is 17.90433: ours is below, and above that of batches that are not cut."""
    event = lambda size, most: e.TruncatedSubsampledGaussianDpEvent(size, 0.5, most, 1.0)
    cut, whole = (Accountant().compose(event(4, 2 if cut else 4), 3).compose(event(3, 2 if cut else 3), 2) for cut in (True, False))
    assert whole.get_epsilon(1e-6) < cut.get_epsilon(1e-6) < 17.904330 and whole.get_delta(17.904330) < cut.get_delta(17.904330) < 1e-6


def test_its_mixtures():
    """The events of its own test, whose value is an upper bound as ours: apart by less than the width of the bracket, and the grid of theirs."""
    accountant = Accountant().compose(e.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.2, 0.6, 0.2]), 3)
    accountant.compose(e.MixtureOfGaussiansDpEvent(2.0, [0.0, 2.0, 3.0], [0.33, 0.34, 0.33]), 2)
    assert accountant.bracket(1e-6).lower < 17.193115 and accountant.get_epsilon(1e-6) == pytest.approx(17.193115, rel=1e-6)


@pytest.mark.parametrize("batch, size, sigma, rounds", [(10, 1000, 2.0, 500), (50, 200, 4.0, 20), (100, 10_000, 1.5, 1000)])
def test_fixed_batches_of_substituted_records(batch, size, sigma, rounds):
    """[A-23] Its Rényi accountant takes the noise in units of what a substitution moves, twice the clip norm: half of ours.

    A looser bound. From below: a record's gradient against its negative, one order of the pair, is Poisson add/remove at that noise.
    """
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    event = lambda noise: e.SelfComposedDpEvent(e.SampledWithoutReplacementDpEvent(size, batch, e.GaussianDpEvent(noise)), rounds)
    theirs = rdp_privacy_accountant.RdpAccountant(neighboring_relation=relation).compose(event(sigma / 2)).get_epsilon(1e-5)
    ours = Accountant(relation).compose(event(sigma)).get_epsilon(1e-5)
    one = e.SelfComposedDpEvent(e.PoissonSampledDpEvent(batch / size, e.GaussianDpEvent(sigma / 2)), rounds)
    assert 0.999 * pld_privacy_accountant.PLDAccountant().compose(one).get_epsilon(1e-5) < ours < theirs


def test_its_epsilon_is_the_upper_end():
    accountant, expected = Accountant().compose(DPSGD), PoissonDPSGD(1.0, 0.01, 2000)
    assert accountant.get_epsilon(1e-6) == expected.epsilon(1e-6).upper and accountant.reason is None
    assert accountant.bracket(1e-6) == expected.epsilon(1e-6)
    assert accountant.get_delta(2.0) == expected.delta(2.0).upper
    group = Accountant(group_size=2).compose(DPSGD)
    assert group.get_epsilon(1e-6) == PoissonDPSGD(1.0, 0.01, 2000, 2).epsilon(1e-6).upper
    assert type(group.get_epsilon(1e-6)) is type(group.get_delta(2.0)) is float


def test_copies_go_their_own_ways_and_the_order_is_free():
    parts = [DPSGD, e.GaussianDpEvent(5.0), e.LaplaceDpEvent(20.0)]
    one, other = Accountant(), Accountant()
    for part in parts:
        one.compose(part)
    for part in reversed(parts):
        other.compose(part)
    assert one.get_epsilon(1e-6) == pytest.approx(other.get_epsilon(1e-6), rel=1e-12)
    before = one.get_epsilon(1e-6)
    copied = copy.deepcopy(one).compose(DPSGD)
    assert one.get_epsilon(1e-6) == before < copied.get_epsilon(1e-6)
    twice = Accountant().compose(e.SelfComposedDpEvent(DPSGD.event, 1000)).compose(DPSGD.event, 1000)
    assert twice.get_epsilon(1e-6) == Accountant().compose(DPSGD).get_epsilon(1e-6)
    assert one.ledger == e.ComposedDpEvent(parts)


def test_traps(monkeypatch):
    accountant = Accountant().compose(DPSGD)
    assert accountant.get_epsilon(0) == math.inf and "delta = 0" in accountant.reason
    assert accountant.get_epsilon(1) == accountant.get_delta(math.inf) == 0 and accountant.reason is None
    nothing_hidden = Accountant().compose(e.PoissonSampledDpEvent(0.1, e.GaussianDpEvent(0.0)))
    assert nothing_hidden.get_epsilon(1e-6) == math.inf and "without noise" in nothing_hidden.reason
    assert nothing_hidden.get_delta(1.0) == 1
    for wrong in (-1.0, math.nan):
        with pytest.raises(ValueError, match="target_epsilon must"):
            accountant.get_delta(wrong)
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="target_delta"):
            accountant.get_epsilon(wrong)
    with pytest.raises(ValueError, match="epsilon must"):
        accountant.get_delta(-1.0)
    with pytest.raises(TypeError, match="neighboring_relation must be a NeighboringRelation"):
        Accountant("zero-out")

    def refuse(*_):
        raise NoBracketError("too little noise")

    monkeypatch.setattr(accounting, "epsilon", refuse)
    assert accountant.get_epsilon(1e-6) == math.inf and accountant.reason == "too little noise"


@pytest.mark.parametrize("relation", list(dp_accounting.NeighboringRelation))
def test_records_that_displace_others(relation):
    """Batches of a fixed size and batches that are cut, for every relation; the accountant of dp_accounting is not below ours."""
    cut = e.SelfComposedDpEvent(e.TruncatedSubsampledGaussianDpEvent(200, 0.05, 12, 1.5), 20)
    fixed = e.SelfComposedDpEvent(e.SampledWithoutReplacementDpEvent(200, 10, e.GaussianDpEvent(1.5)), 20)
    ours = Accountant(relation).compose(cut)
    assert ours.get_epsilon(1e-5) <= dp_accounting.pld.PLDAccountant(relation).compose(cut).get_epsilon(1e-5) * (1 + 1e-6)
    assert Accountant(relation).compose(fixed).get_epsilon(1e-5) > 0
    both = ours.compose(fixed).compose(e.PoissonSampledDpEvent(0.01, e.GaussianDpEvent(2.0)))
    assert both.get_epsilon(1e-5) > Accountant(relation).compose(cut).get_epsilon(1e-5)


def test_calibration_finds_our_noise():
    make = lambda sigma: e.SelfComposedDpEvent(e.PoissonSampledDpEvent(0.01, e.GaussianDpEvent(sigma)), 500)
    found = dp_accounting.calibrate_dp_mechanism(Accountant, make, 2.0, 1e-6, dp_accounting.LowerEndpointAndGuess(0.0, 1.0))
    best = calibrate(PoissonDPSGD(1.0, 0.01, 500), epsilon=2.0, delta=1e-6).noise_multiplier
    assert best <= found < best + 1e-5
    assert events.account(make(found)).epsilon(1e-6).upper <= 2.0
