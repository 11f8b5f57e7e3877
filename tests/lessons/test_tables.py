"""Tables: the same entries as a table and as text, and nothing in them is read as HTML."""

import re

import pytest

from dplib.lessons import tables


def test_both_forms_hold_the_entries_in_their_order():
    table = tables.Table(["", "ε < δ"], [["one", 1], ["nine", 40.8]])
    cells = re.findall(r"<t[hd](?:\s[^>]*)?>(.*?)</t[hd]>", table._repr_html_())
    assert cells == ["", "ε &lt; δ", "one", "1", "nine", "40.8"]
    assert repr(table).split() == ["ε", "<", "δ", "one", "1", "nine", "40.8"]
    assert len({len(line) for line in repr(table).splitlines()}) == 1


def test_a_generator_will_do():
    assert tables.Table(("k", "m"), ([k, k * k] for k in range(2))).rows == (("0", "0"), ("1", "1"))


@pytest.mark.parametrize("header, rows", [([], []), (["k"], [[1, 2]])])
def test_a_row_that_does_not_fit_is_refused(header, rows):
    with pytest.raises(ValueError, match="columns|every row must have 1 entries"):
        tables.Table(header, rows)
