"""Results of long computations, kept with their settings and versions so that a chapter can draw them at once.

>>> from dplib.lessons import studies
>>> study = studies.load("encoders")
>>> rows = studies.find(study["points"], epochs=16, batches_per_epoch=128, method="toeplitz")
>>> sorted({row["epsilon"] for row in rows})
[0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]

`make study` computes them again; a subset is computed again by the tests and by the chapter that draws them.
"""

from __future__ import annotations

import json
from importlib import resources

from ..._base import validate as check


def names() -> list[str]:
    """The studies that there are."""
    files = resources.files(__name__).iterdir()
    return sorted(file.name.removesuffix(".json") for file in files if file.name.endswith(".json"))


def load(name: str) -> dict:
    """A study: its `about`, `settings`, `versions`, and tables, each a list of rows (dictionaries).

    name : one of `names()`. Raises ValueError or TypeError on another one.
    """
    check.choice("name", name, names())
    return json.loads(resources.files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8"))


def find(table: list[dict], **values: object) -> list[dict]:
    """The rows of a table that have all these values, in order.

    Raises ValueError where a name is in none of the rows.
    """
    for name in values:
        if not any(name in row for row in table):
            raise ValueError(f"no row of the table has a value named {name!r}")
    return [row for row in table if all(row.get(name) == value for name, value in values.items())]
