"""The tour survives what the teaching guide asks of a newcomer: change a number, run all again, read."""

import itertools
import re

import lesson_cells
import notebook_tools as tools
import pytest

TOUR = tools.ROOT / "notebooks" / "00_tour.ipynb"
USUAL = {"sigma": 1.0, "q": 0.01, "T": 2000, "group": 9}
EDITS = [
    *({"sigma": sigma} for sigma in (0.5, 1.0, 2.0, 4.0)),
    *({"q": q} for q in (0.003, 0.015, 0.1)),
    *({"T": steps} for steps in (150, 777, 10_000)),
    *({"group": group} for group in (1, 2, 30)),
    {"sigma": 4.0, "q": 0.1, "T": 150, "group": 2},
    {"sigma": 0.5, "q": 0.1, "T": 10_000, "group": 30},
    {"sigma": 2.0, "q": 0.003, "T": 10_000, "group": 1},
]


def run(edit):
    """The tour's code with these numbers: (names, what it printed)."""
    numbers = USUAL | edit
    pairs = [
        ("n, q, T, delta = 50_000, 0.01, 2000, 1e-6", "n, q, T, delta = 50_000, {q}, {T}, 1e-6".format(**numbers)),
        ("sigma, group = 1.0, 9", "sigma, group = {sigma}, {group}".format(**numbers)),
    ]
    return lesson_cells.run(lesson_cells.edited(lesson_cells.cells_of("00_tour"), pairs))


# A run takes seconds: `make test` has one that changes every number, `make trust` all.
QUICK = {"sigma": 4.0, "q": 0.1, "T": 150, "group": 2}


@pytest.mark.parametrize("edit", [pytest.param(edit, marks=[] if edit == QUICK else pytest.mark.trust, id=str(edit)) for edit in EDITS])
def test_the_tour_survives_an_edit(edit):
    """Every cell runs, and what is printed belongs to the new numbers."""
    names, printed = run(edit)
    group, person = (USUAL | edit)["group"], names["person"]
    assert f"{group} pictures together" in printed
    assert names["spent"]["Poisson"] == person.upper
    assert names["run"].noise_multiplier == names["family_run"].noise_multiplier == (USUAL | edit)["sigma"]


# ------------------------------------------------------------------ the tour and chapter 18 agree

WORDS = {"Poisson": "Poisson sampling", "fixed": "fixed size", "bins": "balls in bins", "shuffled": "shuffled, in order, or known"}
OWN = {"Poisson": "Poisson", "fixed": "fixed batch", "bins": "bins", "shuffled": "no amplification"}


@pytest.fixture(scope="module")
def decide():
    """The list of rules of chapter 18, as a function of the scheme, the unit and the relation."""
    names = {"product": itertools.product}
    notebook = tools.read(tools.ROOT / "notebooks" / "18_which_accountant.ipynb")
    for cell in tools.code_cells(notebook):
        if re.match(r"ANSWERS = |def fits", tools.source(cell)):
            exec(tools.source(cell).partition("everybody")[0], names)  # without its check
    return lambda scheme, unit, relation: names["decide"](scheme, "independent", "all", unit, relation)


@pytest.mark.parametrize("scheme", WORDS)
def test_both_name_the_same_relations(decide, scheme):
    """A relation is named beside a scheme's number exactly where chapter 18 decides for that scheme's own pair."""
    notebook = tools.read(TOUR)
    table = next(tools.source(cell) for cell in notebook["cells"] if "how are batches drawn?" in tools.source(cell))
    label = "Poisson sampling" if scheme == "Poisson" else "shuffled" if scheme == "shuffled" else WORDS[scheme]
    tour = re.search(rf"^\|[^|]*\| \*\[{label}\][^|]*\| ([^|]*) \|$", table, re.MULTILINE | re.IGNORECASE)[1]
    claimed = tour.split("under add/remove")[0].split(". ")[0]
    for relation in ("add/remove", "zero-out"):
        own = decide(scheme, "record", relation) == OWN[scheme]
        assert (relation in claimed) == own, (scheme, relation, tour)
    assert decide("shuffled", "record", "add/remove") == "nothing proved"
