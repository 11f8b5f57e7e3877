"""The page of symptoms: complete, and true of dp_accounting at other settings than its own, too."""

import math
import re

import notebook_tools as tools
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from dplib import PoissonDPSGD, gaussian

PAGE = tools.read(tools.ROOT / "notebooks" / "20_symptoms.ipynb")
TEXT = "\n".join(tools.source(cell) for cell in tools.markdown_cells(PAGE))


def sampled(sigma, q):
    return PoissonSampledDpEvent(q, GaussianDpEvent(sigma))


def ask(kind, event, rounds, delta, **options):
    return kind(**options).compose(event, rounds).get_epsilon(delta)


def test_the_table_leads_to_every_section():
    sections = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)[:-2]  # what to take away, further reading
    links = re.findall(r"^\| \[[^\]]*\]\(#([^)]*)\)", TEXT, re.MULTILINE)
    assert links == [re.sub(r"[^\w -]", "", section.lower()).replace(" ", "-") for section in sections]
    codes = "\n".join("##" if cell["cell_type"] == "code" else tools.source(cell) for cell in PAGE["cells"])
    assert all("\n##\n" in part for part in re.split(r"^## (?=\w)", codes, flags=re.MULTILINE)[1:-2])  # each with a cell that runs


@pytest.mark.parametrize("sigma, q, rounds", [(1.0, 0.01, 2000), (2.0, 0.05, 300), (5.0, 0.3, 50)])
def test_the_floor_of_the_grid(sigma, q, rounds):
    assert math.isinf(ask(PLDAccountant, sampled(sigma, q), rounds, 1e-17))
    exact = PoissonDPSGD(sigma, q, rounds).epsilon(1e-17)
    assert exact.upper < ask(RdpAccountant, sampled(sigma, q), rounds, 1e-17) < 2 * exact.lower


@pytest.mark.parametrize("sigma", [0.7, 2.0, 30.0])
def test_a_replaced_record_is_counted_once_by_renyi(sigma):
    options = {"neighboring_relation": NeighboringRelation.REPLACE_ONE}
    renyi, pld = (ask(kind, GaussianDpEvent(sigma), 1, 1e-6, **options) for kind in (RdpAccountant, PLDAccountant))
    exact = gaussian.epsilon(2 / sigma, 1e-6)
    assert gaussian.epsilon(1 / sigma, 1e-6) < renyi < exact and exact * (1 - 1e-9) < pld < exact * 1.001


def test_the_limit_theorem_errs_on_both_sides():
    for sigma, q, rounds, side in ((3.0, 0.2, 50, -1), (1.0, 1.0, 100, 1)):
        limit = gaussian.epsilon(q * math.sqrt(rounds * math.expm1(sigma**-2)), 1e-5)
        exact = PoissonDPSGD(sigma, q, rounds).epsilon(1e-5)
        assert side * (limit - exact.midpoint) > exact.width


def test_what_is_supported():
    fixed = SampledWithoutReplacementDpEvent(10_000, 100, GaussianDpEvent(2.0))
    assert not PLDAccountant().supports(fixed) and not RdpAccountant().supports(fixed)
    same = PoissonSampledDpEvent(0.01, ComposedDpEvent([GaussianDpEvent(1.0)] * 2))
    assert not PLDAccountant().supports(same)
    assert ask(RdpAccountant, same, 2000, 1e-6) == pytest.approx(ask(RdpAccountant, sampled(0.5**0.5, 0.01), 2000, 1e-6), rel=1e-9)
