"""Cells that run in the page. Without `make live` the button says what is missing; with LIVE_PYTHON=1 chapters run in a browser.

`make live-test` sets that variable: it takes the fetched runtime of _build/live, adds it to a fresh build and cuts the
network off. Numbers are compared with the outputs stored in the notebooks, which another Python has computed.
"""

import os
import re
import shutil

import browser_checks as checks
import course
import live
import notebook_tools as tools
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.browser]
LIVE = bool(os.environ.get("LIVE_PYTHON"))
BUTTON = "Run in this page"
CHAPTER, EXERCISES = "notebooks/05_group_privacy.html", "notebooks/exercises/05_group_privacy.html"
with_runtime = pytest.mark.skipif(not LIVE, reason="Python for the pages is tested by make live-test")


@pytest.fixture
def tab(chromium):
    context = chromium.new_context(viewport=checks.DESKTOP)
    yield context.new_page()
    context.close()


# --- the plain build --------------------------------------------------------------------------------


def test_chapters_that_a_page_can_run_have_the_button(html, monkeypatch):
    monkeypatch.syspath_prepend(str(tools.ROOT / "book" / "_ext"))
    import live_python

    having = {path.stem for path in html.glob("notebooks/*.html") if "live/cells.js" in path.read_text(encoding="utf-8")}
    able = {path.stem for path in (tools.ROOT / "notebooks").glob("*.ipynb") if live_python.runs(path)}
    assert having == able and {"00_tour", "01_hockey_stick", "05_group_privacy", "18_which_accountant"} <= able
    assert not able & {"02_accounting", "07_renyi", "16_optimizing_the_encoder", "17_training"}
    having = {path.stem for path in html.glob("notebooks/exercises/*.html") if "live/cells.js" in path.read_text(encoding="utf-8")}
    able = {path.stem for path in (tools.ROOT / "notebooks" / "exercises").glob("[0-9]*.ipynb") if live_python.runs(path)}
    assert having == able and {"01_hockey_stick", "05_group_privacy"} <= able


def answered(page, texts):
    """Put answers where the browser keeps them, as if they had been typed, and load the page anew."""
    page.evaluate("texts => localStorage.setItem(`page-cells:${location.pathname}`, JSON.stringify(texts))", texts)
    page.reload()


def test_answers_are_saved_as_the_notebook_of_the_exercises(tab, html, address, tmp_path):
    """What is saved is the notebook with nothing changed but the answers; tests/book/test_nbgrader.py grades that notebook."""
    source = tools.read(tools.ROOT / "notebooks" / "exercises" / "05_group_privacy.ipynb")
    checks.open_page(tab, f"{address}/{EXERCISES}")
    stub = "answer_1 = None  # your code here"
    place = [tools.source(cell) for cell in tools.code_cells(source)].index(stub) + 1
    answered(tab, {place: {"was": stub, "now": "answer_1 = 0.8281, 0.3471"}, 2: {"was": "of another edition", "now": "lost"}})
    tab.locator(".page-score", has_text="Solved: 0 of 6").wait_for()
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save as a notebook").click()
    assert download.value.suggested_filename == "05_group_privacy.ipynb"
    download.value.save_as(tmp_path / "saved.ipynb")
    saved = tools.read(tmp_path / "saved.ipynb")
    assert tools.source(tools.code_cells(saved)[place - 1]) == "answer_1 = 0.8281, 0.3471"
    tools.code_cells(saved)[place - 1]["source"] = stub
    assert saved == source


def test_nothing_is_widened(html):
    """A worker has no policy from its page, and the page itself runs no WebAssembly."""
    for path in html.glob("notebooks/*.html"):
        assert "wasm" not in path.read_text(encoding="utf-8").split("<title>")[0]


def test_without_the_runtime_the_button_says_what_is_missing(tab, html, address):
    assert not (html / "_static" / "python").exists()
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    checks.open_page(tab, f"{address}/{CHAPTER}")
    assert not [url for url in asked if "python/" in url or "worker" in url or "driver" in url]
    tab.get_by_role("button", name=BUTTON).click()
    says = tab.locator(".page-status", has_text="make live")
    says.wait_for()
    assert "download the notebook" in says.inner_text()
    assert tab.get_by_role("button", name=BUTTON).is_enabled() and tab.locator("textarea.page-code").count() == 0


def test_from_the_disk_the_button_says_why_not(tab, html):
    checks.open_page(tab, f"{html.as_uri()}/{CHAPTER}")
    tab.get_by_role("button", name=BUTTON).click()
    tab.locator(".page-status", has_text="opened from the disk").wait_for()


def test_memory_of_a_module_is_limited():
    module = b"\0asm\1\0\0\0" + bytes([1, 1, 0]) + bytes([5, 3, 1, 0, 2]) + bytes([10, 1, 0])
    assert live.limited(module, 300) == b"\0asm\1\0\0\0" + bytes([1, 1, 0]) + bytes([5, 5, 1, 1, 2, 172, 2]) + bytes([10, 1, 0])
    with pytest.raises(ValueError, match="no memory"):
        live.limited(module[:11])


# --- with the runtime -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(html, tmp_path_factory):
    """The built book with Python for its pages."""
    folder = tmp_path_factory.mktemp("live") / "html"
    shutil.copytree(html, folder)
    live.add(folder)
    with checks.served(folder) as where:
        yield where


def opened(page, where, name):
    page.route(lambda url: not url.startswith(where), lambda route: route.abort())  # the network is cut off
    checks.open_page(page, f"{where}/notebooks/{name}.html")
    page.get_by_role("button", name=BUTTON).click()
    page.get_by_role("button", name="Run all").wait_for()


def finish(page):
    page.locator(".page-python[aria-busy=false]").wait_for()


def run(page, code, cell=1):
    """Write into a cell and run it; the text of what it shows."""
    box = page.locator("div.cell").nth(cell - 1)
    box.locator("textarea").evaluate("(area, code) => { area.value = code; area.dispatchEvent(new Event('input', {bubbles: true})) }", code)
    box.get_by_role("button", name=f"Run cell {cell}", exact=True).click()
    finish(page)
    return "\n".join(box.locator(".page-output").all_text_contents())


def stored(name):
    """For each cell on the page the words of its stored tables and prints."""
    found = []
    for cell in tools.read(tools.ROOT / "notebooks" / f"{name}.ipynb")["cells"]:
        if cell["cell_type"] == "code" and "remove-cell" not in cell["metadata"].get("tags", []):
            text = ""
            for output in cell["outputs"]:
                data = output.get("data", {})
                text += "".join(output.get("text", data.get("text/html", "" if "image/png" in data else data.get("text/plain", ""))))
            found.append(words(re.sub(r"<[^>]*>", " ", text)))
    return found


def words(text):
    for name, sign in (("&#x27;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", '"')):
        text = text.replace(name, sign)
    return text.split()


@with_runtime
@pytest.mark.parametrize("name", ["00_tour", "01_hockey_stick", "05_group_privacy", "18_which_accountant"])
def test_a_chapter_runs_from_end_to_end(tab, served, name):
    opened(tab, served, name)
    tab.get_by_role("button", name="Run all").click()
    finish(tab)
    assert tab.locator(".page-status").inner_text().startswith("Done in"), tab.locator(".page-error").all_text_contents()
    boxes = tab.locator("div.cell").all()
    shown = [box.locator(".page-output").evaluate("e => [...e.querySelectorAll('td, th, pre')].map(part => part.textContent).join(' ')") for box in boxes]
    assert [words(text) for text in shown] == stored(name)
    assert tab.locator(".page-output img").count() > 0


@with_runtime
def test_bad_cells_end_in_a_sentence_and_the_page_lives_on(tab, served):
    opened(tab, served, "05_group_privacy")
    for code, sentence in (
        ("import numpy as np; np.ones(2**28)", "at most 1 GB"),
        ("import numpy as np; [np.ones(2**24) for _ in range(20)]", "at most 1 GB"),
        ("def again(): return again()\nagain()", "called itself too often"),
        ("input('name')", "has none"),
        ("open('x.txt', 'w')", "neither your files nor the network"),
        ("import urllib.request; urllib.request.urlopen('http://localhost')", "neither your files nor the network"),
        ("import sys; sys.exit()", "It goes on"),
        ("import pandas", "download the notebook"),
    ):
        assert sentence in run(tab, code), code
    assert "ZeroDivisionError" in run(tab, "x = 1\nx / 0") and "x / 0" in tab.locator(".page-error").first.inner_text()
    assert run(tab, "x + 1").strip() == "2"  # what was computed is there


@with_runtime
def test_an_endless_loop_is_stopped(tab, served):
    opened(tab, served, "05_group_privacy")
    box = tab.locator("div.cell").first
    box.locator("textarea").evaluate("area => { area.value = 'while True: pass'; area.dispatchEvent(new Event('input')) }")
    box.get_by_role("button", name="Run cell 1", exact=True).click()
    tab.get_by_role("button", name="Stop").click()
    tab.locator(".page-status", has_text="Stopped.").wait_for()
    assert run(tab, "1 + 1").strip() == "2"


@with_runtime
def test_a_change_marks_what_depends_on_it_and_survives_a_reload(tab, served):
    opened(tab, served, "05_group_privacy")
    run(tab, "answer = 6 * 7")
    assert tab.locator("div.cell").nth(3).get_attribute("data-state") == "stale"
    opened(tab, served, "05_group_privacy")
    assert tab.locator("textarea.page-code").first.input_value() == "answer = 6 * 7"
    tab.get_by_role("button", name="Reset").click()
    assert tab.locator("textarea.page-code").first.input_value() != "answer = 6 * 7"


@with_runtime
@pytest.mark.parametrize("stem", ["01_hockey_stick", "05_group_privacy"])
def test_exercises_are_answered_in_the_page(tab, served, stem):
    """Usual mistakes get the hint that the notebook gives, right answers count and are remembered."""
    solutions = course.load(tools.ROOT, stem)
    opened(tab, served, f"exercises/{stem}")
    codes = [tools.source(cell) for cell in tools.code_cells(tools.read(tools.ROOT / "notebooks" / "exercises" / f"{stem}.ipynb"))]
    run(tab, codes[0], 1)
    run(tab, codes[1], 2)
    for exercise in solutions.exercises:
        check = codes.index(tools.source(exercise.check)) + 1
        right = tools.source(exercise.solution)
        for mistake in [cell for cell in exercise.mistakes if f"{exercise.answer}(" not in tools.source(cell)][:1]:  # else it would call itself
            wrong = f"{right}\n{tools.source(mistake)}\n{exercise.answer} = wrong_{exercise.number}"
            run(tab, wrong, check - 1)
            judged(tab, exercise, check)
            assert mistake["metadata"]["course"]["mistake"] in tab.locator("div.cell").nth(check - 1).inner_text()
        run(tab, right, check - 1)
        judged(tab, exercise, check)
        assert f"{exercise.identifier}: correct." in tab.locator("div.cell").nth(check - 1).inner_text()
    total = len(solutions.exercises)
    assert tab.locator(".page-score").inner_text() == f"Solved: {total} of {total}"
    tab.reload()
    assert tab.locator(".page-score").inner_text() == f"Solved: {total} of {total}"


def judged(page, exercise, cell):
    page.get_by_role("button", name=f"Check {exercise.identifier}", exact=True).click()
    finish(page)
