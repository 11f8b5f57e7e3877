"""The reference tables are answered: every value lies inside its bracket, and none is refused.

tests/data/group.json and group_figures.json; and, by hand, values of the sampling schemes that are these mechanisms.
"""

import sys
from pathlib import Path

import pytest

from dplib import BallsInBins, PoissonDPSGD, matrices

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def rows():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import reference_values

        return reference_values.workload(("group", "group_figures"))
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def test_every_reference_value_is_answered_inside(rows):
    assert len(rows) == 74 + 2 * 72
    assert [row["id"] for row in rows if "refused" in row] == []
    assert [row["id"] for row in rows if not row["inside"]] == []


# (sigma, q, T, k, direction, epsilon, lower, upper): lattices above and below, made for other adjacencies and schemes,
# at settings where those are PoissonDPSGD: groups with members on one side only, and users sampled as a whole.
ONE_AXIS = [
    (1.0, 0.01, 1000, 3, "add", 4.79, 8.994661990628664e-06, 8.994671102095838e-06),
    (1.0, 0.01, 1000, 3, "remove", 6.33, 1.0346048787780667e-05, 1.0346782301738685e-05),
    (1.0, 0.039403990000000055, 1000, 1, "add", 3.0, 0.040523123467404464, 0.04052742971034703),
    (1.0, 0.039403990000000055, 1000, 1, "remove", 3.0, 0.0674829508748317, 0.0675067380001745),
    (1.0, 0.01, 1000, 1, "remove", 1.5, 0.00010923425709525778, 0.00010925623587065558),
    (2.0, 0.032, 2000, 1, "remove", 2.0, 0.0028842932445474014, 0.002884328313480116),
    (1.0, 0.01, 1000, 4, "add", 3.0, 0.04770951696220225, 0.047715961012994114),
    (2.0, 0.002, 2000, 16, "add", 2.0, 0.00219377567400259, 0.002193806727607632),
]


@pytest.mark.parametrize("value", ONE_AXIS)
def test_values_of_other_schemes_where_they_are_poisson_sampling(value):
    *arguments, direction, epsilon, lower, upper = value
    bracket = PoissonDPSGD(*arguments).delta(epsilon, direction)
    assert bracket.lower <= upper and lower <= bracket.upper
    assert bracket.relative_width < 1e-6


@pytest.mark.parametrize(
    "bins, sigma, direction, epsilon, delta, error",
    [
        (32, 0.5, "add", 2.4, 8.850337928245865e-07, 1.5692716584225612e-08),
        (16, 0.6, "add", 1.5, 0.0016014446069036552, 5.03056481861373e-06),
        (32, 0.5, "remove", 4.0, 0.0012451885992466522, 2.972678195164942e-06),
        (4, 1.0, "add", 0.6, 0.0534065231915286, 3.894714188596499e-05),
    ],
)
def test_one_round_out_of_many_is_one_epoch_of_balls_in_bins(bins, sigma, direction, epsilon, delta, error):
    """Random allocation with one participation; the value is a sampled one, with its standard error."""
    bracket = BallsInBins(matrices.identity(bins), sigma, bins, 1).delta(epsilon, direction, method="exact")
    assert bracket.lower - 4 * error <= delta <= bracket.upper + 4 * error
