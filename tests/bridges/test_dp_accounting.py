"""The accountant for dp_accounting: its own abstract tests, its calibration, and the traps of delta and noise."""

import copy
import math

import dp_accounting
import pytest
from dp_accounting import dp_event as e
from dp_accounting import privacy_accountant_test

from dplib import NoBracketError, PoissonDPSGD, accounting, calibrate, events
from dplib.bridges.dp_accounting import Accountant

DPSGD = e.SelfComposedDpEvent(e.PoissonSampledDpEvent(0.01, e.GaussianDpEvent(1.0)), 2000)
RELATIONS = list(dp_accounting.NeighboringRelation)


class TestAccountant(privacy_accountant_test.PrivacyAccountantTest):
    def _make_test_accountants(self):
        return [Accountant(relation, group_size) for relation in RELATIONS for group_size in (1, 3)]


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
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="target_delta"):
            accountant.get_epsilon(wrong)
    with pytest.raises(ValueError, match="epsilon must"):
        accountant.get_delta(-1.0)

    def refuse(*_):
        raise NoBracketError("too little noise")

    monkeypatch.setattr(accounting, "epsilon", refuse)
    assert accountant.get_epsilon(1e-6) == math.inf and accountant.reason == "too little noise"


def test_what_is_refused_is_said():
    fixed = e.SampledWithReplacementDpEvent(100, 10, e.GaussianDpEvent(1.0))
    accountant = Accountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    with pytest.raises(dp_accounting.UnsupportedEventError, match="many times"):
        accountant.compose(fixed)
    with pytest.raises(dp_accounting.UnsupportedEventError, match="noise_multiplier must be"):
        accountant.compose(e.GaussianDpEvent(-1.0))
    assert accountant.get_epsilon(1e-6) == 0 and not accountant.supports(fixed) and not Accountant().supports(fixed)


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
