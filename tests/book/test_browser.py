"""Every page of the built book in a browser."""

import accessibility_checks as accessibility
import browser_checks as checks
import pytest
from test_build import page_names

pytestmark = [pytest.mark.slow, pytest.mark.browser]
PAGES = page_names()
PARTS = ["Core", "Correlated noise", "In depth", "For reviewers", "Live", "Teach", "Reference"]


def report(problems):
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", [*PAGES, "genindex.html", "search.html"])
def test_page(tab, watch, address, name):
    """It loads without complaint, fits on a telephone, is accessible, and its text can be read in light and in dark."""
    watch.take()
    tab.set_viewport_size(checks.PHONE)
    checks.open_page(tab, f"{address}/{name}")
    problems = checks.math_problems(tab) + checks.overflow_problems(tab)
    checks.settle(tab)
    problems += watch.take()
    tab.set_viewport_size(checks.DESKTOP)
    for theme in ("light", "dark"):
        checks.put_theme(tab, theme)
        problems += accessibility.axe_problems(tab) if theme == "light" else []
        problems += accessibility.contrast_problems(tab)
    report(problems)


def test_the_theme_is_remembered(tab, watch, address):
    checks.open_page(tab, f"{address}/{PAGES[0]}")
    report(checks.set_theme(tab, "dark"))
    checks.open_page(tab, f"{address}/{PAGES[1]}")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
    report(checks.set_theme(tab, "light"))


@pytest.mark.parametrize("name", [PAGES[0], PAGES[-1], next(name for name in PAGES if "notebooks/" in name)])
def test_keyboard(tab, watch, address, name):
    tab.set_viewport_size(checks.DESKTOP)
    checks.open_page(tab, f"{address}/{name}")
    report(checks.keyboard_problems(tab))


@pytest.mark.parametrize("width", [checks.DESKTOP, checks.PHONE], ids=["desk", "phone"])
def test_menu(tab, watch, address, width):
    tab.set_viewport_size(width)
    checks.open_page(tab, f"{address}/{PAGES[1]}")
    report(checks.menu_problems(tab, width))


@pytest.mark.parametrize("width", [1440, 1024])
def test_list_of_pages_is_in_parts(tab, watch, address, width):
    """The part of the page is open and the page in view, the others fold; buttons carry words where there is room."""
    tab.set_viewport_size({"width": width, "height": 800})
    for name in ("notebooks/19_common_mistakes.html", "notebooks/17_training.html", "book/how_to_cite.html"):
        checks.open_page(tab, f"{address}/{name}")
        assert tab.locator(".bd-links summary").all_inner_texts() == PARTS
        assert tab.locator(".bd-links details[open]").count() == 1
        box = tab.locator(".bd-links a.current").last.bounding_box()
        assert box and 0 <= box["y"] < 800, (name, box)
    part = tab.locator(".bd-links details", has_text="Core")
    part.locator("summary").click()
    part.get_by_text("5. Group privacy of DP-SGD").wait_for(state="visible")
    words = tab.locator(".article-header-buttons > .btn .btn__text-container").first
    assert words.text_content() == "Notation" and (words.bounding_box()["width"] > 20) == (width == 1440)
    shown = "node => getComputedStyle(node, '::after').display !== 'none' && getComputedStyle(node, '::after').content"
    download = tab.locator(".dropdown-download-buttons > button").evaluate(shown)
    assert download == ('"Download"' if width == 1440 else False)
    checks.open_page(tab, f"{address}/{PAGES[0]}")
    assert tab.locator(".bd-links details[open] summary").all_inner_texts() == PARTS[:1]


BEYOND = """() => [...document.querySelectorAll('.record *:not(mjx-assistive-mml, mjx-assistive-mml *)')].filter(node => {
    if (node.getBoundingClientRect().right <= innerWidth + 1) return false;
    for (let at = node; !at.matches('.record'); at = at.parentElement) if (getComputedStyle(at).overflowX === 'auto') return false;
    return true }).map(node => node.outerHTML.slice(0, 100))"""


@pytest.mark.parametrize(
    "name, entries, kind, value, words",
    [
        ("theorems", 100, "source", "Ganesh 2024", "sensitivity binom"),
        ("theorems", 100, "chapter", "chapter 5", "test_poisson_groups_are_dominated"),
        ("reproductions", 140, "verdict", "reproduced", "lemma"),
        ("errata", 22, "chapter", "chapter 13", "shuffle"),
        ("peers", 100, "verdict", "too small", "Opacus"),
    ],
)
def test_records_can_be_filtered(tab, watch, address, name, entries, kind, value, words):
    """Statement or verdict first, the evidence folded; on a telephone nothing lies beyond the screen, folded or not."""
    watch.take()
    tab.set_viewport_size(checks.PHONE)
    checks.open_page(tab, f"{address}/book/{name}.html")
    tab.evaluate("() => document.querySelectorAll('.record details').forEach(part => { part.open = true })")
    checks.settle(tab, 400)
    report(tab.evaluate(BEYOND))
    everything, seen = tab.locator(".record"), tab.locator(".record:visible")
    assert seen.count() == everything.count() >= entries
    tab.select_option(f".records-filter [aria-label={kind}]", value)
    chosen = seen.count()
    assert 0 < chosen < everything.count()
    tab.fill("#records-words", words)
    assert 0 < seen.count() <= chosen
    assert tab.inner_text(".records-filter [role=status]") == f"{seen.count()} of {everything.count()}"
    if name == "theorems":  # the boxes with the full statements follow
        assert tab.locator("div.proof:visible").count() == tab.locator(".record:visible td:first-child a").count()
    for record in seen.all():
        assert value in record.get_attribute(f"data-{kind}").split("|")
    tab.fill("#records-words", "qqqzzz")
    assert seen.count() == 0 and tab.locator("table.records:visible").count() == 0
    report(watch.take())


def test_search_opens_by_keyboard(tab, watch, address):
    tab.set_viewport_size(checks.DESKTOP)
    checks.open_page(tab, f"{address}/{PAGES[0]}")
    tab.keyboard.press("Control+k")
    tab.wait_for_selector("#search-input:visible", timeout=120_000)
    tab.keyboard.type("group privacy")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/search.html?q=*", timeout=120_000)
    tab.wait_for_selector("#search-results ul.search li a", timeout=120_000)


def test_start_page_leads_to_the_book(tab, watch, address):
    tab.goto(f"{address}/index.html")
    tab.wait_for_url(f"**/{PAGES[0]}", timeout=120_000)
    watch.take()
