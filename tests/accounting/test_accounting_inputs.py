"""The accountants' entry: one round in closed form, directions, the choice of the method, merged compositions."""

import math

import numpy as np
import pytest
from exact_pairs import Exact
from hypothesis import given, settings
from hypothesis import strategies as st

from dplib import (
    Bracket,
    FixedBatchDPSGD,
    LastIterate,
    NoBracketError,
    accounting,
    contour,
    lattice,
    mixtures,
)
from dplib.mixtures import Mixture

PAIR = mixtures.binomial(2, 0.05, 1.0)
OTHER = mixtures.binomial(1, 0.1, 2.0)
TRIVIAL = mixtures.binomial(3, 0.0, 1.0)
DIRECTIONS = ("remove", "add")
ANSWERS = [
    lambda composition, *rest, **more: accounting.delta(composition, 0.05, *rest, **more),
    lambda composition, *rest, **more: accounting.log_delta(composition, 0.05, *rest, **more),
    lambda composition, *rest, **more: accounting.epsilon(composition, 1e-6, *rest, **more),
]
IDS = ["delta", "log_delta", "epsilon"]


@st.composite
def one_rounds(draw):
    kind = draw(st.sampled_from(["poisson", "fixed", "any"]))
    sigma = draw(st.floats(0.3, 20))
    if kind == "poisson":
        return mixtures.binomial(draw(st.integers(1, 30)), draw(st.floats(1e-9, 0.9)), sigma)
    if kind == "fixed":
        return mixtures.hypergeometric(draw(st.integers(1, 20)), draw(st.integers(20, 2000)), draw(st.integers(1, 9)), sigma)
    weights = np.array(draw(st.lists(st.floats(1e-6, 1), min_size=3, max_size=3)))
    return Mixture(draw(st.lists(st.floats(0.1, 3), min_size=3, max_size=3)), weights / weights.sum(), sigma)


# --- one round ------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(one_rounds(), st.floats(0, 6), st.sampled_from(DIRECTIONS))
def test_one_round_delta_is_bracketed_by_the_closed_form(pair, epsilon, direction):
    """[G-2.8]"""
    bracket = accounting.delta(pair, epsilon, direction)
    exact = Exact(pair).hockey_stick(epsilon, direction)
    assert bracket.lower <= exact <= bracket.upper or bracket.upper <= 1e-300
    assert bracket.method == "closed form"


@settings(max_examples=80)
@given(one_rounds(), st.floats(math.log(1e-100), math.log(0.5)), st.sampled_from(DIRECTIONS))
def test_one_round_epsilon_is_bracketed_by_the_closed_form(pair, log_delta, direction):
    """[G-2.8] delta at the two ends, in 60 digits, lies on the two sides of the target."""
    delta, exact = math.exp(log_delta), Exact(pair)
    bracket = accounting.epsilon(pair, delta, direction)
    assert exact.hockey_stick(bracket.upper, direction) <= delta
    assert bracket.lower == 0 or exact.hockey_stick(bracket.lower, direction) >= delta
    assert bracket.method == "closed form" and bracket.width <= 1e-9 * (1 + bracket.upper)


# --- directions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ANSWERS, ids=IDS)
@pytest.mark.parametrize("composition", [PAIR, [(PAIR, 400)], [(PAIR, 200), (OTHER, 300)]], ids=["one", "many", "mixed"])
def test_both_is_the_larger_of_the_two(answer, composition):
    """[C-3]"""
    remove, add = (answer(composition, d) for d in DIRECTIONS)
    assert remove.upper != add.upper
    both = answer(composition, "both")
    assert both == answer(composition) == max(remove, add, key=lambda b: b.upper)


def test_an_add_loss_beyond_its_largest_value_has_delta_zero():
    """Adding, one round loses at most -log p_0; beyond the sum of these delta is exactly zero."""
    top = -2 * math.log(0.95)
    assert accounting.delta([(PAIR, 400)], 400 * top * 1.001, "add") == Bracket(0.0, 0.0, "closed form")
    assert accounting.delta(PAIR, top * 1.001, "add") == Bracket(0.0, 0.0, "closed form")
    assert accounting.delta(PAIR, top * 0.9, "add").lower > 0
    for delta in (1e-300, 1e-12):
        assert accounting.epsilon(PAIR, delta, "add").upper <= top * (1 + 1e-12)
    with pytest.raises(NoBracketError, match="delta is exactly zero at epsilon = 50"):
        accounting.log_delta([(PAIR, 400)], 50.0, "add")
    assert accounting.log_delta([(PAIR, 400)], 50.0, "remove") == accounting.log_delta([(PAIR, 400)], 50.0)


# --- compositions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("composition", [TRIVIAL, [(TRIVIAL, 10**6)], Mixture([0.0], [1.0], 1e-3)])
def test_nothing_at_stake_costs_nothing(composition):
    for direction in (*DIRECTIONS, "both"):
        assert accounting.epsilon(composition, 1e-100, direction) == Bracket(0.0, 0.0, "closed form")
        assert accounting.delta(composition, 0.0, direction) == Bracket(0.0, 0.0, "closed form")
        with pytest.raises(NoBracketError, match="no logarithm"):
            accounting.log_delta(composition, 0.0, direction)


# --- the choice of the method -----------------------------------------------------------------------------


class Routes:
    """Stands in for the two accountants and lists which were asked, in order."""

    def __init__(self, monkeypatch, by_contour, by_lattice):
        self.asked = []
        for module, name, answer in ((contour, "contour", by_contour), (lattice, "lattice", by_lattice)):
            for function in ("side_epsilon", "side_log_delta"):
                monkeypatch.setattr(module, function, self._route(name, answer))

    def _route(self, name, answer):
        def route(*_args, **_kwargs):
            if self.asked[-1:] != [name]:  # the lattice is tried on finer and finer grids
                self.asked.append(name)
            if isinstance(answer, str):
                raise NoBracketError(answer)
            return Bracket(*answer, name)

        return route


def test_where_no_accountant_closes_the_wide_bracket_answers(monkeypatch):
    narrow = accounting.epsilon([(PAIR, 400)], 1e-6, "remove"), accounting.delta([(PAIR, 400)], 0.1, "remove")
    Routes(monkeypatch, "too few rounds", "too many points")
    wide = accounting.epsilon([(PAIR, 400)], 1e-6, "remove"), accounting.delta([(PAIR, 400)], 0.1, "remove")
    for one, truth in zip(wide, narrow):
        assert one.method == "Chernoff"
        assert one.lower < truth.lower and truth.upper < one.upper


def test_a_wide_bracket_is_cut_by_the_bounds_that_always_exist(monkeypatch):
    Routes(monkeypatch, (0.0, 50.0), "too many points")
    bracket = accounting.epsilon([(PAIR, 400)], 1e-6, "remove")
    assert bracket.method == "contour" and bracket.lower == 0.0
    assert bracket.upper == accounting.wide.epsilon_upper([(PAIR, 400)], 1e-6, "remove") < 50


SENTENCES = {  # what a refusal begins with, and the next step that it names
    "too little noise": "take at least 0.01",
    "delta is practically 0": "ask for the delta at the epsilon that can be afforded",
    "delta is practically 1": "ask at a smaller delta",
    "beyond the accountants": "more noise, a smaller sampling probability or fewer rounds",
}


@pytest.mark.parametrize(
    "ask, begin",
    [
        (lambda: FixedBatchDPSGD(1.9487e-12, 86, 121, 1).epsilon(6.7e-293), "too little noise"),
        (lambda: LastIterate(5.75e-76, 3.9e-180, 10**8).epsilon(4.6e-307), "too little noise"),
        (lambda: LastIterate(1.35e17, 3.1e-43, 23227).epsilon(5.7e-242, "add"), "beyond the accountants"),
    ],
    ids=["fixed batches", "last iterate", "rates that no float holds"],
)
def test_a_refusal_is_one_of_four_sentences(ask, begin):
    """Once: "a number left the range of floats", "the contour needs 4e70 coarse nodes", or "upper must be a finite real number"."""
    with pytest.raises(NoBracketError) as error:
        ask()
    assert str(error.value).startswith(begin) and SENTENCES[begin] in str(error.value)
    assert isinstance(error.value.__cause__, (ArithmeticError, ValueError))
