"""The ledger: what composes is accounted for, what does not is refused with its reason, and nothing is lost on the way to a file."""

import datetime
import json
import math
import os

import numpy as np
import pytest
from dp_accounting import dp_event as e

import dplib
from dplib import (
    BallsInBins,
    FixedBatchDPSGD,
    LastIterate,
    Ledger,
    MatrixMechanism,
    MinSeparation,
    NoBracketError,
    PoissonDPSGD,
    RandomAllocation,
    TruncatedPoissonDPSGD,
    accounting,
    compose,
    events,
    gaussian,
    matrices,
)
from dplib.results import Bracket, UpperBound

RUN = PoissonDPSGD(1.0, 0.01, 1000)
FIXED = FixedBatchDPSGD(2.0, 10, 1000, 500)
LAST = LastIterate(1.0, 0.01, 100)
LAPLACE = e.LaplaceDpEvent(20.0)


def ledger(*entries, **arguments):
    made = Ledger(**arguments)
    for what in entries:
        made.add(what)
    return made


def test_mechanisms_compose():
    spent = ledger(RUN, FIXED, LAST).spent(1e-6)
    expected = accounting.epsilon(RUN.composition() + FIXED.composition() + LAST.composition(), 1e-6)
    assert isinstance(spent, Bracket) and spent.upper == pytest.approx(expected.upper, rel=1e-9)
    assert ledger(RUN, RUN).spent(1e-6) == ledger(PoissonDPSGD(1.0, 0.01, 2000)).spent(1e-6) == PoissonDPSGD(1.0, 0.01, 2000).epsilon(1e-6)
    assert ledger(RUN, group_size=2).spent(1e-6) == PoissonDPSGD(1.0, 0.01, 1000, 2).epsilon(1e-6)
    assert ledger(FIXED, group_size=2).spent(1e-6) == FixedBatchDPSGD(2.0, 10, 1000, 500, 2).epsilon(1e-6)
    assert Ledger().spent(1e-6).upper == 0
    thrice = Ledger()
    thrice.add(RUN, count=3)
    assert thrice.spent(1e-6) == PoissonDPSGD(1.0, 0.01, 3000).epsilon(1e-6)


def test_mechanisms_and_their_events_are_the_same_entries():
    assert ledger(RUN, FIXED, LAST).entries == ledger(RUN.event(), FIXED.event(), LAST.event()).entries
    tree = e.ComposedDpEvent([RUN.event(), LAPLACE])
    assert ledger(tree).spent(1e-6) == events.account(tree).epsilon(1e-6)


def test_measured_releases():
    """Basic composition, exactly: one release alone costs what it says, to the last bit."""
    measured = {"epsilon": 0.1, "delta": 1e-7}
    assert ledger(measured).spent(1e-7).upper == 0.1
    with pytest.raises(dplib.NoBracketError, match="used up"):
        ledger(measured).spent(0.9e-7)
    with pytest.raises(dplib.NoBracketError, match="used up"):
        ledger(measured, RUN).spent(1e-7)
    both = ledger(measured, RUN).spent(1e-6)
    assert isinstance(both, UpperBound) and both.upper <= RUN.epsilon(0.9e-6).upper + 0.1 + 1e-9
    assert both.upper > RUN.epsilon(1e-6).lower
    many = Ledger()
    many.add({"epsilon": 0.01, "delta": 0.0}, count=10_000)
    assert many.spent(1e-6).method == "Renyi" and many.spent(1e-6).upper < 10  # not the sum, 100
    assert ledger({"rho": 0.005}, {"rho": 0.005}).spent(1e-6) == ledger(e.ZCDpEvent(0.01)).spent(1e-6)


def test_the_same_sample():
    """[M-0a] Two releases from one sample in every round: one Gaussian with 1/sigma^2 added up, which costs more than two samples."""
    other = PoissonDPSGD(2.0, 0.01, 1000)
    same, apart = Ledger(), ledger(RUN, other)
    for what in (RUN, other):
        same.add(what, sample="training")
    same_tree = e.PoissonSampledDpEvent(0.01, e.ComposedDpEvent([e.GaussianDpEvent(1.0), e.GaussianDpEvent(2.0)]))
    assert same.spent(1e-6) == events.account(e.SelfComposedDpEvent(same_tree, 1000)).epsilon(1e-6)
    assert same.spent(1e-6).lower > apart.spent(1e-6).upper
    for wrong, reason in [(PoissonDPSGD(2.0, 0.02, 1000), "same sampling"), (PoissonDPSGD(2.0, 0.01, 999), "as many rounds"),
                          (FIXED, "same sampling"), (LAST, "left out"), (e.GaussianDpEvent(1.0), "left out")]:  # fmt: skip
        with pytest.raises(ValueError, match=reason):
            same.add(wrong, sample="training")
    same.add(FIXED, sample="audit")
    assert len(same) == 3
    with pytest.raises(ValueError, match="count must be 1 where a sample is named"):
        same.add(RUN, count=2, sample="training")


def test_bins_and_random_allocation_are_phases(tmp_path):
    """[A-25] What a ledger says of them is what `compose` says, also after it was saved, and with a release of another kind."""
    bins, allocation, coins = BallsInBins(matrices.identity(4), 2.0, 2, 2), RandomAllocation(2.0, 2, 1), PoissonDPSGD(1.0, 0.1, 20)
    expected = compose([bins, allocation, coins]).epsilon(1e-6)
    for relation in ("add/remove", "zero-out"):
        full = Ledger(relation)
        full.add(bins, name="bins")
        full.add(compose([allocation, coins]))
        spent = full.spent(1e-6)
        assert (spent.lower, spent.upper) == pytest.approx((expected.lower, expected.upper), rel=1e-6)
        assert "RandomAllocation  bins" in str(full)
        full.save(tmp_path / "ledger.json")
        assert Ledger.load(tmp_path / "ledger.json").entries == full.entries
    full.add({"epsilon": 0.1, "delta": 1e-8})
    assert spent.upper + 0.1 < full.spent(1e-6).upper < spent.upper + 0.12
    full.add({"rho": 0.001})
    with pytest.raises(NoBracketError, match="no Rényi curve here"):
        full.spent(1e-6)
    known = Ledger()
    known.add(RandomAllocation(4.0, 16, 16, 3))
    assert gaussian.epsilon(math.sqrt(48) / 4, 1e-6) in known.spent(1e-6)
    for refused, reason in ((Ledger("substitution"), "zeroing out"), (Ledger(group_size=2), "not a group of 2")):
        with pytest.raises(ValueError, match=reason):
            refused.add(allocation)


def test_what_does_not_compose_is_refused():
    encoder = matrices.identity(4)
    full = Ledger()
    correlated = BallsInBins(matrices.optimal_counting(8, bands=4), 1.0, 4, 2)
    for mechanism in (correlated, MatrixMechanism(encoder, 1.0, 0.1), MinSeparation(encoder, 1.0, 0.1, 1)):
        with pytest.raises(ValueError, match=f"a {type(mechanism).__name__} is accounted for as a whole. Enter its guarantee"):
            full.add(mechanism)
    with pytest.raises(ValueError, match="count must be 1 for a LastIterate"):
        full.add(LAST, count=2)
    with pytest.raises(ValueError, match="group_size 1 or 1, that of the ledger; got 3"):
        full.add(PoissonDPSGD(1.0, 0.01, 10, 3))
    with pytest.raises(ValueError, match="not a group of 2"):
        Ledger(relation="substitution", group_size=2).add(FixedBatchDPSGD(2.0, 10, 100, 5))
    with pytest.raises(ValueError, match="adjacency 'add-remove', the relation of the ledger; got 'substitution'"):
        full.add(PoissonDPSGD(1.0, 0.01, 10, adjacency="substitution"))
    with pytest.raises(ValueError, match="leave inserted and deleted out"):
        full.add(PoissonDPSGD(1.0, 0.01, 10, inserted=1))
    with pytest.raises(ValueError, match="not a group of 2"):
        ledger(LAST, group_size=2)
    for wrong, error, reason in [
        (1.0, TypeError, "what must be a mechanism"), ({"epsilon": 1.0}, ValueError, "what must be a mechanism"), ([RUN], TypeError, "DpEvent"),
        ({"rho": -1}, ValueError, "rho"), ({"epsilon": 1.0, "delta": 1.0}, ValueError, "delta"), (e.UnsupportedDpEvent(), ValueError, "not"),
    ]:  # fmt: skip
        with pytest.raises(error, match=reason):
            full.add(wrong)
    for arguments in ({"count": 0}, {"date": "yesterday"}, {"date": 3}, {"name": 1}, {"sample": 1}):
        with pytest.raises((ValueError, TypeError), match=next(iter(arguments))):
            full.add(RUN, **arguments)
    assert len(full) == 0 and full.entries == []


def test_what_still_fits():
    full = ledger(RUN)
    within = RUN.epsilon(1e-6).upper
    assert not full.would_exceed(within * 1.5, 1e-6, RUN) and full.would_exceed(within * 1.1, 1e-6, RUN)
    assert full.would_exceed(100.0, 1e-6, e.NonPrivateDpEvent()) and len(full) == 1
    steps = full.largest_steps(RUN, 3.0, 1e-6)
    assert PoissonDPSGD(1.0, 0.01, 1000 + steps).epsilon(1e-6).upper <= 3.0 < PoissonDPSGD(1.0, 0.01, 1001 + steps).epsilon(1e-6).upper
    assert full.largest_steps(RUN, within * 0.9, 1e-6) == 0
    assert Ledger().largest_steps({"epsilon": 0.5, "delta": 0.0}, 2.0, 1e-9) == 4
    with pytest.raises(ValueError, match="must use up"):
        Ledger().largest_steps(e.NoOpDpEvent(), 1.0, 1e-6)
    with pytest.raises(ValueError, match="LastIterate"):
        full.largest_steps(LAST, 3.0, 1e-6)


def test_saved_and_loaded(tmp_path):
    path = tmp_path / "ledger.json"
    full = Ledger("add/remove", 1)
    full.add(RUN, name="model", date=datetime.date(2026, 11, 26), sample="a")
    full.add(e.ComposedDpEvent([RUN.event(), LAPLACE, e.NoOpDpEvent()]), count=3, date="2026-11-27")
    full.add(LAST)
    full.add({"epsilon": 0.1, "delta": 1e-9})
    full.add(LAPLACE.to_named_tuple())
    full.add(RandomAllocation(1.0, np.int64(32), 4))
    full.save(path)
    loaded = Ledger.load(path)
    assert loaded.entries == full.entries and loaded.spent(1e-6) == full.spent(1e-6) and str(loaded) == str(full)
    assert "2026-11-26       1 x SelfComposedDpEvent  model" in str(full) and "epsilon = 0.1, delta = 1e-09" in str(full)
    assert os.listdir(tmp_path) == ["ledger.json"]
    full.entries.clear()
    assert len(full) == 6


def test_a_file_is_whole_or_refused(tmp_path, monkeypatch):
    path = tmp_path / "ledger.json"
    ledger(RUN).save(path)
    before = path.read_text()

    def killed(*_):
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(OSError, match="no space"):
        ledger(RUN, RUN).save(path)
    assert path.read_text() == before and os.listdir(tmp_path) == ["ledger.json"]
    record = json.loads(before)
    for broken in ("", "[]", "{}", json.dumps(record | {"format": "x"}), json.dumps(record | {"relation": "x"}),
                   json.dumps(record | {"entries": [{"count": 1}]}), json.dumps(record | {"entries": [{"what": {"class_name": "GaussianDpEvent"}}]}),
                   before.replace("1.0", "-1.0"), before[: len(before) // 2]):  # fmt: skip
        path.write_text(broken)
        with pytest.raises(ValueError, match="path must be a file that Ledger.save wrote"):
            Ledger.load(path)


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "substitution"])
def test_records_that_displace_others(adjacency, tmp_path):
    """Batches of a fixed size and batches that are cut: what the mechanisms say alone and together, also from a file."""
    relation = adjacency.replace("add-remove", "add/remove")
    cut = TruncatedPoissonDPSGD(1.5, 0.05, 200, 12, 20, adjacency)
    fixed = FixedBatchDPSGD(1.5, 10, 200, 20, adjacency=adjacency)
    for mechanism in (cut, fixed):
        full = ledger(mechanism, relation=relation)
        assert full.spent(1e-5).upper == pytest.approx(mechanism.epsilon(1e-5).upper, rel=1e-9)
    full.add(cut)
    full.save(tmp_path / "both.json")
    spent = Ledger.load(tmp_path / "both.json").spent(1e-5)
    assert spent.upper == pytest.approx(compose([fixed, cut]).epsilon(1e-5).upper, rel=1e-6)
    assert full.largest_steps(cut, 1.01 * spent.upper, 1e-5) < 5
    full.add(fixed, sample="a")
    if adjacency != "add-remove":
        with pytest.raises(NoBracketError, match="no R.nyi curve"):
            full.add({"rho": 0.1})
            full.spent(1e-5)
