"""Every gate can fail: a small project is in order, and each fault of planted_faults.json is seen by the gate meant for it."""

import json
import re
import shutil
from pathlib import Path

import accessibility_checks
import browser_checks
import html_checks
import index_checks
import notebook_checks
import notebook_tools as tools
import pytest
import repository_checks
import small_project
from build import build

pytestmark = [pytest.mark.slow, pytest.mark.attack]
FAULTS = json.loads(Path(__file__).with_name("planted_faults.json").read_text(encoding="utf-8"))


def planted(kind):
    return pytest.mark.parametrize("fault", FAULTS[kind].values(), ids=FAULTS[kind])


@pytest.fixture
def project(small, tmp_path):
    return shutil.copytree(small, tmp_path / "project", ignore=shutil.ignore_patterns("_build", "_figures"))


# --- sources ----------------------------------------------------------------------------------------


def spoilt(notebook, fault):
    """The notebook with a fault in one cell: dropped, changed, with more text, or with another output."""
    cell = next(cell for cell in notebook["cells"] if cell["id"] == fault["cell"])
    if fault.get("drop"):
        notebook["cells"].remove(cell)
    cell.update(fault.get("set", {}))
    cell["source"] += fault.get("add", "")
    if "print" in fault:
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": fault["print"]}]
    if "show" in fault:
        data = {"text/plain": "x"} | fault["show"]
        cell["outputs"] = [{"output_type": "display_data", "data": data, "metadata": {}}]
    return notebook


@planted("notebook")
def test_notebook_fault_is_seen(small, fault):
    check, path = notebook_checks.CHECKS[fault["gate"]], small / "notebooks" / "01_first.ipynb"
    assert check(tools.read(path)) == []
    assert check(spoilt(tools.read(path), fault)) != []


@planted("index")
def test_index_fault_is_seen(project, fault):
    *change, message = fault
    assert index_checks.index_problems(project) == []
    small_project.edit(project, *change)
    assert message in "\n".join(index_checks.index_problems(project))


@planted("address")
def test_another_address_is_seen(project, fault):
    assert repository_checks.address_problems(project) == []
    small_project.edit(project, *fault)
    assert repository_checks.address_problems(project) != []


@planted("text")
def test_a_word_that_points_outside_is_seen(project, fault):
    assert repository_checks.text_problems(project) == []
    small_project.edit(project, *fault)
    assert len(repository_checks.text_problems(project)) == 1


@planted("build")
def test_build_fault_is_seen(project, fault):
    small_project.edit(project, *fault)
    status, text = build(project)
    assert status != 0, text


# --- built pages ------------------------------------------------------------------------------------


def open_intro(page, address, size=browser_checks.DESKTOP):
    page.set_viewport_size(size)
    browser_checks.open_page(page, f"{address}/book/intro.html")


def loading(page, address):
    watch = browser_checks.Watch(page, address)
    open_intro(page, address)
    problems = browser_checks.math_problems(page)
    browser_checks.settle(page)
    return problems + watch.take()


def contrast(page, address):
    problems = []
    for theme in ("light", "dark"):
        open_intro(page, address)
        problems += browser_checks.set_theme(page, theme)
        browser_checks.settle(page, 300)
        problems += accessibility_checks.contrast_problems(page)
    return problems


def phone(page, address):
    open_intro(page, address, browser_checks.PHONE)
    return browser_checks.overflow_problems(page)


def on_the_page(check, *arguments):
    def gate(page, address):
        open_intro(page, address)
        return check(page, *arguments)

    return gate


GATES = {
    "loading": loading,
    "contrast": contrast,
    "phone": phone,
    "keyboard": on_the_page(browser_checks.keyboard_problems),
    "menu": on_the_page(browser_checks.menu_problems, browser_checks.PHONE),
    "axe": on_the_page(accessibility_checks.axe_problems),
    "trap": on_the_page(accessibility_checks.trap_problems),
}


@pytest.fixture
def site(small, tmp_path):
    return shutil.copytree(small / "_build" / "html", tmp_path / "site")


@planted("pages")
def test_page_fault_is_seen(site, fault):
    gate, old, new = fault
    check = getattr(html_checks, gate)
    assert check(site) == []
    small_project.edit(site, "book/intro.html", old, new)
    assert check(site) != []


@pytest.fixture
def tab(chromium):
    context = chromium.new_context(viewport=browser_checks.DESKTOP)
    yield context.new_page()
    context.close()


@pytest.mark.browser
@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
def test_sound_pages_pass_in_the_browser(small, tab, gate):
    with browser_checks.served(small / "_build" / "html") as address:
        assert gate(tab, address) == []


@pytest.mark.browser
@pytest.mark.parametrize(
    "fault", [*FAULTS["browser"].values(), *FAULTS["accessibility"].values()], ids=[*FAULTS["browser"], *FAULTS["accessibility"]]
)
def test_browser_fault_is_seen(site, tab, fault):
    gate, old, new = fault
    code = re.search(r"<script>(.*?)</script>", new)
    if code:  # the policy lets no inline script run, so the fault goes into a file
        (site / "book" / "fault.js").write_text(code.group(1), encoding="utf-8")
        new = new.replace(code.group(), '<script src="fault.js"></script>')
    small_project.edit(site, "book/intro.html", old, new)
    with browser_checks.served(site) as address:
        assert GATES[gate](tab, address) != []
