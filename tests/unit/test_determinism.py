"""The same numbers with one thread and with two, and what the committed comparison says."""

import re
import sys

import determinism
import pytest


def test_one_thread_and_two_give_the_same_numbers():
    one = determinism.in_process(sys.executable, 1, 1, ("accounting",))["results"]
    two = determinism.in_process(sys.executable, 2, 1, ("accounting",))["results"]
    assert len(one) >= 15 and determinism.differences(one, two) == []


def test_a_difference_is_seen():
    first, second = {"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0 + 2**-51}
    assert determinism.differences(first, second) == ["b"]
    assert determinism.differences(first, second, digits=6) == []
    assert determinism.differences(first, {"a": 1.00001, "b": 2.0}, digits=6) == ["a"]
    with pytest.raises(AssertionError):
        determinism.differences(first, {"a": 1.0})


def test_the_committed_comparison():
    text = determinism.REPORT.read_text(encoding="utf-8")
    assert int(re.match(r"(\d+) results", text)[1]) >= 30
    assert "DIFFERENT" not in text
    for what in ("two threads: the same bit for bit", "two workers: the same bit for bit"):
        assert what in text
    assert re.search(r"Python 3\.12\S*, .*: the same to 6 digits", text)
    assert re.search(r"Python 3\.13\S*, .*: the same to 6 digits", text)
