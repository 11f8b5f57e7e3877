"""Tables that a cell computes: set as tables on a page and in a notebook, as aligned text elsewhere."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass

from .._base import validate as check


@dataclass(frozen=True, repr=False)
class Table:
    """A header and rows of text; notebooks show it by itself as the last line of a cell.

    >>> from dplib.lessons import tables
    >>> tables.Table(["k", "ε"], [[1, "2.955"], [9, "40.80"]])
    k      ε
    1  2.955
    9  40.80
    """

    header: Iterable
    rows: Iterable

    def __post_init__(self):
        header = tuple(str(entry) for entry in self.header)
        rows = tuple(tuple(str(entry) for entry in row) for row in self.rows)
        check.whole("the number of columns", len(header), at_least=1)
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"every row must have {len(header)} entries, as the header has; got {row!r}")
        object.__setattr__(self, "header", header)
        object.__setattr__(self, "rows", rows)

    def __repr__(self):
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        lines = []
        for row in (self.header, *self.rows):
            first, *others = (entry.rjust(width) for entry, width in zip(row, widths, strict=True))
            lines.append("  ".join([row[0].ljust(len(first)), *others]))
        return "\n".join(lines)

    def _repr_html_(self):
        head = "".join(
            f'<th scope="col">{html.escape(entry)}</th>' if entry else "<td></td>" for entry in self.header
        )
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(entry)}</td>" for entry in row) + "</tr>" for row in self.rows
        )
        return f'<table class="dataframe"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
