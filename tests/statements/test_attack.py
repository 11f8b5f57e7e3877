"""The attack by code of its own: a sample of benchmarks/attack.py, its truth computed again, and faults that it must see.

tests/data/attack.json was made by tests/oracle/attack_values.py, which says how.
"""

import ast
import json
import math
import sys
from pathlib import Path

import pytest
from folders import imported

ROOT = Path(__file__).resolve().parents[2]
TABLE = json.loads((ROOT / "tests" / "data" / "attack.json").read_text(encoding="utf-8"))
VALUES = {value["id"]: value for value in TABLE["values"]}
# Every so many of the values, and those that are computed again: every route that there is.
SAMPLE = list(VALUES)[:: math.ceil(len(VALUES) / 20)]
RECOMPUTED = [
    next(v["id"] for v in TABLE["values"] if v["route"] == route and v["small"] == small)
    for route, small in [
        ("contour", "delta"),
        ("contour", "miss"),
        ("one round", "delta"),
        ("positive lattice", "delta"),
        ("zero", "delta"),
    ]
]


@pytest.fixture(scope="module")
def attack():
    return imported("benchmarks", "attack")


@pytest.fixture(scope="module")
def tilted():
    return imported("tests/oracle", "tilted")


@pytest.mark.parametrize("name", ["tilted", "attack_values"])
def test_the_truth_shares_no_code_with_the_library(name):
    tree = ast.parse((ROOT / "tests" / "oracle" / f"{name}.py").read_text(encoding="utf-8"))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    outside = {"numpy", "mpmath", "tilted"}
    assert modules - outside <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("name", SAMPLE)
def test_brackets_contain_the_truth(attack, name):
    rows = attack.attack(VALUES[name])
    assert rows and not [row for row in rows if {"outside", "refused", "failed"} & row.keys()]


@pytest.mark.trust
@pytest.mark.parametrize("name", RECOMPUTED)
def test_the_truth_comes_out_again(tilted, name):
    stored, again = VALUES[name], tilted.value(VALUES[name])
    assert (again["small"], again["route"]) == (stored["small"], stored["route"])
    log, expected = float(again["log"]), float(stored["log"])
    # Their error bars, and the rounding of the logarithms to doubles.
    assert log == expected or abs(log - expected) <= stored["error"] + again["error"] + 4.5e-16 * abs(expected)


@pytest.mark.trust
def test_two_routes_agree(tilted):
    """The contour's value lies between the lattice's ends, which close in on it as the cells get smaller."""
    pair = tilted.Pair(*tilted.binomial_law(2, 0.08), 1.6)
    for direction in ("remove", "add"):
        log = float(tilted.contour(pair, 60, direction, 1.7)["log"])
        widths = []
        for size in (1 << 12, 1 << 14):
            ends = tilted.lattice(pair, 60, direction, 1.7, size)
            assert ends["lower"] < log < ends["upper"]
            widths.append(ends["upper"] - log)
        assert widths[1] < widths[0] / 10  # the upper end closes in as the square of the step
        assert abs(ends["estimate"] - log) < widths[1] / 5
