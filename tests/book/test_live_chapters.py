"""Chapters and exercises that run in the page, from end to end, in Chromium and in part in Firefox, without a network: `make live-test`.

LIVE_PYTHON=1, which that sets, adds the fetched runtime to a fresh build; without it all here is skipped, as the runtime is an
optional download. Numbers are compared with the outputs stored in the notebooks, which another Python has computed.
"""

import os
import shutil

import browser_checks as checks
import course
import live
import live_outputs
import live_python
import notebook_tools as tools
import pytest
import readers
from browser import find_firefox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(not os.environ.get("LIVE_PYTHON"), reason="Python for the pages is tested by make live-test"),
]
BUTTON = "Run in this page"
CHAPTERS = [path.stem for path in tools.chapters() if live_python.runs(path)]
assert {name for name, _ in live_outputs.SAMPLED} <= set(CHAPTERS)
FEW = ("01_hockey_stick",)  # what Firefox runs, too, unless LIVE_PYTHON=all, which takes twice the time
BROWSERS = ("Chromium", "Firefox")


def everywhere(names, few=()):
    """(browser, name) of all that run."""
    both = names if os.environ.get("LIVE_PYTHON") == "all" else few
    return [("Chromium", name) for name in names] + [("Firefox", name) for name in both]


@pytest.fixture(scope="module")
def served(html, tmp_path_factory):
    """The built book with Python for its pages."""
    folder = tmp_path_factory.mktemp("live") / "html"
    shutil.copytree(html, folder)
    live.add(folder)
    with checks.served(folder) as where:
        yield where


@pytest.fixture
def page(request, tmp_path):
    """A page in a fresh browser, of the kind that a test names; the network but for the book's address is cut off."""
    if request.param == "Chromium":
        found = readers.Chromium(request.getfixturevalue("chromium"), checks.DESKTOP)
    else:
        program = find_firefox()
        if program is None:
            pytest.skip("no Firefox: install firefox or firefox-esr, or name one: FIREFOX=/path/to/firefox")
        found = readers.Firefox(program, tmp_path)
    yield found
    found.close()


def opened(page, where, name):
    page.visit(f"{where}/notebooks/{name}.html", where)
    page.click(f"//button[.='{BUTTON}']")
    page.wait("() => document.querySelector('textarea.page-code') || !document.querySelector('.page-begin').disabled")
    assert page.evaluate("() => document.querySelectorAll('textarea.page-code').length") > 0, status(page)


def status(page):
    return page.evaluate("() => document.querySelector('.page-status').textContent")


def press(page, label):
    page.click(f"//button[@aria-label='{label}' or .='{label}']")


def finish(page):
    page.wait("() => document.querySelector('.page-python[aria-busy=false]')")


def write(page, code, cell):
    page.evaluate(
        "([code, cell]) => { const area = document.querySelectorAll('textarea.page-code')[cell - 1];"
        " area.value = code; area.dispatchEvent(new Event('input', {bubbles: true})) }",
        [code, cell],
    )


def run(page, code, cell=1):
    """Write into a cell and run it; the text of what it shows."""
    write(page, code, cell)
    press(page, f"Run cell {cell}")
    finish(page)
    return shown(page, cell)


def shown(page, cell):
    return page.evaluate("cell => document.querySelectorAll('.page-output')[cell - 1].textContent", cell)


def code_of(page, cell=1):
    return page.evaluate("cell => document.querySelectorAll('textarea.page-code')[cell - 1].value", cell)


def state(page, cell):
    return page.evaluate("cell => document.querySelectorAll('textarea.page-code')[cell - 1].closest('div.cell').dataset.state", cell)


# --- chapters ---------------------------------------------------------------------------------------

@pytest.mark.parametrize(("page", "name"), everywhere(CHAPTERS, FEW), indirect=["page"])
def test_a_chapter_runs_from_end_to_end(page, served, name):
    opened(page, served, name)
    press(page, "Run all")
    finish(page)
    assert status(page).startswith("Done in"), page.evaluate("() => document.querySelector('.page-error')?.textContent")
    assert live_outputs.differences(name, page.evaluate(live_outputs.SHOWN)) == []
    assert page.evaluate("() => document.querySelectorAll('.page-output img').length") > 0


# --- bad cells --------------------------------------------------------------------------------------

BAD = (
    ("import numpy as np; np.ones(2**28)", "at most 1 GB"),  # 2 GB
    ("import numpy as np; [np.ones(2**24) for _ in range(20)]", "at most 1 GB"),
    ("def again(): return again()\nagain()", "called itself too often"),
    ("input('name')", "has none"),
    ("open('x.txt', 'w')", "neither your files nor the network"),
    ("import urllib.request; urllib.request.urlopen('http://localhost')", "neither your files nor the network"),
    ("import sys; sys.exit()", "It goes on"),
    ("import threading; threading.Thread(target=print).start()", "without threads"),
    ("import subprocess; subprocess.run(['ls'])", "neither your files nor the network"),
    ("import pandas", "download the notebook"),
)


@pytest.mark.parametrize("page", BROWSERS, indirect=True)
def test_bad_cells_end_in_a_sentence_and_the_page_lives_on(page, served):
    opened(page, served, "05_group_privacy")
    for code, sentence in BAD:
        assert sentence in run(page, code), code
    found = run(page, "x = 1\nx / 0")
    assert "ZeroDivisionError" in found and "x / 0" in found
    assert run(page, "x + 1").strip() == "2"  # what was computed is there


@pytest.mark.parametrize("page", BROWSERS, indirect=True)
def test_a_pause_lasts_as_long_as_it_says(page, served):
    opened(page, served, "05_group_privacy")
    run(page, "import time\nbegin = time.monotonic()\nwhile time.monotonic() < begin + 4: pass")  # the page is some seconds old
    for clock in ("time", "monotonic"):
        assert 0.5 <= float(run(page, f"begin = time.{clock}(); time.sleep(0.5); time.{clock}() - begin")) < 3


# --- what is kept, and what is out of date ----------------------------------------------------------


@pytest.mark.parametrize("page", BROWSERS, indirect=True)
def test_a_change_marks_what_is_below_it_and_survives_a_reload(page, served):
    opened(page, served, "05_group_privacy")
    printed = code_of(page)
    run(page, "answer = 6 * 7")
    assert [state(page, cell) for cell in (1, 2, 4)] == ["done", "stale", "stale"]
    write(page, "answer", 2)
    assert [state(page, cell) for cell in (1, 2, 4)] == ["done", "changed", "stale"]  # what is above it stays as it is
    opened(page, served, "05_group_privacy")
    assert code_of(page) == "answer = 6 * 7" and code_of(page, 2) == "answer"
    press(page, "Run to cell 2")
    finish(page)
    assert shown(page, 2).strip() == "42"
    press(page, "Reset")
    assert code_of(page) == printed and state(page, 1) == "fresh" and shown(page, 2) == ""
    found = run(page, "answer", 2)  # Python is another one
    assert "NameError" in found and "Run to here" in found
    page.visit(f"{served}/notebooks/05_group_privacy.html", served)
    assert status(page).startswith("You have changed a cell here before")  # the one that was written after the reset


@pytest.mark.parametrize("page", BROWSERS, indirect=True)
def test_what_does_not_show_the_present_text_says_so(page, served):
    """A cell that was changed while it ran, or stopped, is changed; one below a changed cell is out of date though it has run.

    An endless loop can be stopped, and the page lives on.
    """
    opened(page, served, "05_group_privacy")
    write(page, "x = sum(range(20_000_000))", 1)
    press(page, "Run cell 1")
    write(page, "x = 6", 1)
    finish(page)
    assert state(page, 1) == "changed"
    assert run(page, "x > 6", 2).strip() == "True" and state(page, 2) == "stale"
    press(page, "Run to cell 2")
    finish(page)
    assert shown(page, 2).strip() == "False" and [state(page, 1), state(page, 2)] == ["done", "done"]
    write(page, "while True: pass", 2)
    press(page, "Run cell 2")
    press(page, "Stop")
    page.wait("() => document.querySelector('.page-status').textContent.startsWith('Stopped.')")
    assert state(page, 2) == "changed" and run(page, "1 + 1").strip() == "2"


# --- exercises --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("page", "stem"), everywhere(["01_hockey_stick", "05_group_privacy"]), indirect=["page"])
def test_exercises_are_answered_in_the_page(page, served, stem):
    """Usual mistakes get the hint that the notebook gives, right answers count and are remembered."""
    solutions = course.load(tools.ROOT, stem)
    opened(page, served, f"exercises/{stem}")
    codes = [tools.source(cell) for cell in tools.code_cells(tools.read(tools.ROOT / "notebooks" / "exercises" / f"{stem}.ipynb"))]
    run(page, codes[0], 1)
    run(page, codes[1], 2)
    for exercise in solutions.exercises:
        check = codes.index(tools.source(exercise.check)) + 1
        right = tools.source(exercise.solution)
        for mistake in [cell for cell in exercise.mistakes if f"{exercise.answer}(" not in tools.source(cell)][:1]:  # else it would call itself
            wrong = f"{right}\n{tools.source(mistake)}\n{exercise.answer} = wrong_{exercise.number}"
            run(page, wrong, check - 1)
            assert mistake["metadata"]["course"]["mistake"] in judged(page, exercise, check)
        run(page, right, check - 1)
        assert f"{exercise.identifier}: correct." in judged(page, exercise, check)
    total = len(solutions.exercises)
    score = "() => document.querySelector('.page-score').textContent"
    assert page.evaluate(score) == f"Solved: {total} of {total}"
    page.visit(f"{served}/notebooks/exercises/{stem}.html", served)
    assert page.evaluate(score) == f"Solved: {total} of {total}"


def judged(page, exercise, cell):
    press(page, f"Check {exercise.identifier}")
    finish(page)
    return shown(page, cell)
