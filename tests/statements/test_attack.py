"""The attack by code of its own: a sample of benchmarks/attack.py, and the same deltas by an oracle of another kind."""

import math

import pytest
from folders import imported
from oracle_cases import load

VALUES = {value["id"]: value for value in load("attack")}
SAMPLE = list(VALUES)[:: math.ceil(len(VALUES) / 20)]


@pytest.mark.parametrize("name", SAMPLE)
def test_brackets_contain_the_truth(name):
    rows = imported("benchmarks", "attack").attack(VALUES[name])
    assert rows and not [row for row in rows if {"outside", "refused", "failed"} & row.keys()]


@pytest.mark.trust
@pytest.mark.parametrize("name", list(VALUES)[:: math.ceil(len(VALUES) / 100)])
def test_the_truth_lies_between_the_ends_of_another_oracle(name):
    """Sums over cells of the loss, in doubles, within the value's error bar."""
    one_axis, value = imported("tests/oracle", "one_axis"), VALUES[name]
    *sizes, rounds, group = value["arguments"]
    law = one_axis.poisson(*sizes, group, 0) if value["kind"] == "PoissonDPSGD" else one_axis.hypergeometric(*sizes, group)
    law = law if value["direction"] == "remove" else one_axis.add(law)
    lower, upper = one_axis.Composition([(law, rounds)]).delta(value["epsilon"])
    small, error = math.exp(float(value["log"])), value["error"] + 1e-12
    least, most = small * (1 - error), small * (1 + error)
    if value["small"] == "miss":
        least, most = 1 - most, 1 - least
    assert lower <= most and least <= upper
