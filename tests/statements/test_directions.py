"""[C-9m] remove is the larger direction: random settings of every mechanism class; `make trust` takes thousands."""

import directions
import pytest

from dplib import Bracket, PoissonDPSGD

SEED, CASES = 20, 40


@pytest.mark.parametrize("name", directions.MECHANISMS)
def test_add_is_at_most_remove(name):
    wrong = []
    [counts] = directions.check(CASES // len(directions.MECHANISMS), SEED, (name,), wrong.append).values()
    assert not wrong, "\n".join(wrong)
    assert counts["ordered"] >= 2, counts  # the check has said something


def test_each_direction_is_computed_by_itself():
    add, remove = directions.brackets(PoissonDPSGD(1.0, 0.01, 100), 0.5)
    assert add.upper < remove.lower
    assert directions.verdict(add, remove) == "ordered"
    assert directions.verdict(remove, add) == "wrong"
    assert directions.verdict(Bracket(0.0, 1.0), Bracket(0.5, 0.5)) == "open"
