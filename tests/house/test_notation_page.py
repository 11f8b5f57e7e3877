"""The notation page keeps its promise: one meaning for a symbol, except in rows that name where they hold."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "book" / "notation.md"


def rows():
    """(symbols, meaning) of the table."""
    table = PAGE.read_text(encoding="utf-8").partition("## Symbols")[2].partition("(conventions)=")[0]
    for line in table.strip().splitlines()[2:]:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        yield re.findall(r"\$([^$]+)\$", cells[0]), cells[1]


def test_a_symbol_has_one_meaning_or_a_place():
    known, local = {}, False
    for symbols, meaning in rows():
        if meaning.startswith("in "):
            local = True
            assert re.match(r"in (?:chapter \d+|proofs of chapter \d+|the \w+|\[|order)", meaning), meaning
            continue
        assert not local, f"a row for the whole book stands below local ones: {meaning}"
        for symbol in symbols:
            assert symbol not in known, f"{symbol}: {known.get(symbol)}; {meaning}"
            known[symbol] = meaning
    assert len(known) > 150 and local
