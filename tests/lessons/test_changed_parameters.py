"""Every cell of a lesson survives what a curious reader does: change the numbers, run all again.

`make test` does so with two short lessons, as it runs all of them with their own numbers; `make trust` with every one.
"""

import json
from pathlib import Path

import lesson_cells
import pytest

# For each lesson an edit, pairs of old text and new text; the old text stands once in the lesson's code.
# It also makes sweeps shorter where the lesson is expensive.
EDITS = json.loads(Path(__file__).with_name("changed_parameters.json").read_text(encoding="utf-8"))
QUICK = ("01_hockey_stick", "04_mixtures")


@pytest.mark.parametrize("name", EDITS)
def test_the_edits_are_of_the_lesson(name):
    cells = lesson_cells.cells_of(name)
    assert lesson_cells.edited(cells, EDITS[name]) != cells


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.trust) for name in EDITS])
def test_every_cell_survives(name):
    """No cell raises with other numbers: what a lesson asserts holds for all of them."""
    lesson_cells.run(lesson_cells.edited(lesson_cells.cells_of(name), EDITS[name]))
