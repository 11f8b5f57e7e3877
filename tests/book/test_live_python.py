"""The button of chapters and exercises that run in the page, in a book without `make live`; test_live_chapters.py has it."""

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import browser_checks as checks
import live
import live_outputs
import live_python
import notebook_tools as tools
import numpy as np
import pytest

import dplib
from dplib import matrices, montecarlo
from dplib.lessons import datasets, truth

pytestmark = [pytest.mark.slow, pytest.mark.browser]
BUTTON = "Run in this page"
CHAPTER, EXERCISES = "notebooks/05_group_privacy.html", "notebooks/exercises/05_group_privacy.html"


# --- the plain build --------------------------------------------------------------------------------


def test_chapters_that_a_page_can_run_have_the_button(html):
    having = {path.relative_to(html).with_suffix("") for path in html.glob("notebooks/**/*.html") if "live/cells.js" in path.read_text(encoding="utf-8")}
    pages = [*tools.chapters(), *(path for path in tools.exercises() if path.stem[0].isdigit())]
    able = {path.relative_to(tools.ROOT).with_suffix("") for path in pages if live_python.runs(path)}
    assert having == able
    names = {str(path.relative_to("notebooks")) for path in able}
    assert {"00_tour", "01_hockey_stick", "05_group_privacy", "18_which_accountant", "22_users", "exercises/01_hockey_stick"} <= names
    assert not names & {"02_accounting", "07_renyi", "16_optimizing_the_encoder", "17_training"}


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
    checks.open_without_formulas(tab, f"{address}/{CHAPTER}")
    assert not [url for url in asked if "python/" in url or "worker" in url or "driver" in url]
    tab.get_by_role("button", name=BUTTON).click()
    says = tab.locator(".page-status", has_text="make live")
    says.wait_for()
    assert "download the notebook" in says.inner_text()
    assert tab.get_by_role("button", name=BUTTON).is_enabled() and tab.locator("textarea.page-code").count() == 0


def test_from_the_disk_the_button_says_why_not(tab, html):
    checks.open_without_formulas(tab, f"{html.as_uri()}/{CHAPTER}")
    tab.get_by_role("button", name=BUTTON).click()
    tab.locator(".page-status", has_text="opened from the disk").wait_for()


def test_the_page_reads_the_digits_that_a_kernel_reads(tmp_path):
    """The page's `sklearn.datasets`, with the table of the installed package in its place, in a process of its own."""
    import sklearn

    package = tmp_path / "sklearn" / "datasets"
    (package / "data").mkdir(parents=True)
    (tmp_path / "sklearn" / "__init__.py").touch()
    shutil.copy2(live.DIGITS, package / "__init__.py")
    shutil.copy2(Path(sklearn.__file__).with_name("datasets") / "data" / "digits.csv.gz", package / "data")
    assert f"sklearn/datasets/data/{(package / 'data' / 'digits.csv.gz').name}" == live.TABLE
    program = """if True:
        import sys, numpy as np, sklearn.datasets
        from dplib.lessons import datasets
        assert sklearn.datasets.__file__.startswith(sys.argv[1])  # the page's
        np.savez(sys.argv[1] + "/found.npz", **vars(datasets.digits()))"""
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True, env=os.environ | {"PYTHONPATH": str(tmp_path)}, cwd=tools.ROOT)
    expected = vars(datasets.digits())
    with np.load(tmp_path / "found.npz") as found:
        assert set(found) == set(expected) and all(np.array_equal(found[name], expected[name]) and found[name].dtype == expected[name].dtype for name in found)


def test_memory_of_a_module_is_limited():
    module = b"\0asm\1\0\0\0" + bytes([1, 1, 0]) + bytes([5, 3, 1, 0, 2]) + bytes([10, 1, 0]) + bytes([0, 2, 1, 65])  # and a name
    assert live.limited(module, 300) == b"\0asm\1\0\0\0" + bytes([1, 1, 0]) + bytes([5, 5, 1, 1, 2, 172, 2]) + bytes([10, 1, 0])
    with pytest.raises(ValueError, match="no memory"):
        live.limited(module[:11])


@pytest.mark.trust
def test_stated_errors_of_estimates_are_those_of_the_library():
    """The same calls as in the three cells. Another LAPACK makes other draws: the standard errors then agree to their own error."""
    rates = ((matrices.binary_tree(8), 1e-4), (matrices.binary_tree(8), 1e-5), (matrices.binary_tree(4), 1e-5))
    found = [truth.all_modes(encoder, 1.0, rate, samples=8192).epsilon(1e-6, "remove").standard_error for encoder, rate in rates]
    angles = np.radians([4, 40, 84])
    shapes = np.array([1.5, 1.2, 1.5])[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    grams = [shrink**2 * shapes @ shapes.T for shrink in (0.5, 0.33, 0.2, 0.16, 0.14)]
    lines = [montecarlo.estimate(gram, 1.0, "remove", samples=2**10) for gram in grams]
    found += [line.standard_error for line in lines] + [100 * line.standard_error / line.value for line in lines]
    gram = dplib.BallsInBins(matrices.identity(2048), 2.0, 128, 16).gram() / 2.0**2
    found += [montecarlo.estimate(gram, 0.5, direction, seed=15).standard_error for direction in ("remove", "add")]
    first, second, third = live_outputs.SAMPLED.values()
    stated = [error for error, _ in [*first.values(), *(second[place] for place in live_outputs.LINES)]]
    stated += [*live_outputs.PERCENT.values(), *(error for error, _ in third.values())]
    assert np.abs(np.log(found) - np.log(stated)).max() < live_outputs.STANDARD_ERRORS * math.sqrt(2 / 62)


@pytest.mark.trust
def test_estimates_stand_where_they_are_said_to_be():
    """Words without an error in these cells must be equal; those with one are numbers, and have the unit in their last place."""
    for (name, number), sampled in live_outputs.SAMPLED.items():
        words = live_outputs.stored(live_outputs.cells(name)[number - 1])
        for place, (error, unit) in sampled.items():
            value = float(words[place].rstrip("%"))
            assert 0 < error < 0.03 * value + unit and abs(value / unit - round(value / unit)) < 1e-6, (name, place)
