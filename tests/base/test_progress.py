"""Progress bars appear only where somebody watches."""

import io
import sys

import pytest

from dplib._base.progress import bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


# --- bars --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_computation_shows_a_bar_on_a_terminal(monkeypatch, terminal):
    tqdm = pytest.importorskip("tqdm")
    stderr = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(tqdm, "tqdm", lambda *a, **options: tqdm.std.tqdm(*a, **options | {"delay": 0}))
    assert list(bar([5, 6, 7], "rows")) == [5, 6, 7]
    with bar(description="blocks", total=3) as progress:
        progress.update(2)
        progress.update()
    assert ("rows" in stderr.getvalue()) == ("blocks" in stderr.getvalue()) == terminal


def test_a_short_computation_shows_no_bar(monkeypatch):
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    assert sum(bar(range(10), "rows")) == 45
    assert stderr.getvalue() == ""


def test_without_tqdm_there_is_no_bar_and_no_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)  # an import of it fails
    assert list(bar(range(3))) == [0, 1, 2]
    with bar(total=2) as silent:
        silent.update()
