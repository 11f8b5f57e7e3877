"""Every page of the built book in a browser."""

import accessibility_checks as accessibility
import browser_checks as checks
import pytest
from test_build import page_names

pytestmark = [pytest.mark.slow, pytest.mark.browser]
PAGES = page_names()
EVERY = [*PAGES, "genindex.html", "search.html"]
# Of chapters, companions and exercises axe-core is asked about one of each kind: plain, with a form, with the wizard, with records.
OF_A_KIND = ["01_hockey_stick", "05_group_privacy", "08_large_batches", "18_which_accountant", "12_mmcc_in_depth", "20_symptoms", "exercises/05_group_privacy"]
ALIKE = [name for name in PAGES if name.startswith("notebooks/") and name.removeprefix("notebooks/").removesuffix(".html") not in OF_A_KIND]
THEMES = ["light", "dark"]  # pages that are alike are looked at in one of them, in turn
ON_A_TELEPHONE = ["book/intro.html", "notebooks/05_group_privacy.html", "notebooks/18_which_accountant.html"]
PARTS = ["Core", "Correlated noise", "In depth", "For reviewers", "Live", "Teach", "Reference"]


def theme_of(name):
    return THEMES[ALIKE.index(name) % 2]


@pytest.mark.parametrize("name", EVERY)
def test_page(tab, watch, address, name):
    """It loads without complaint and at most 3 MB, fits on a telephone, is accessible, and can be read in light and in dark."""
    tab.goto("about:blank")  # what is left would be laid out anew
    watch.take()
    tab.set_viewport_size(checks.PHONE)
    checks.open_page(tab, f"{address}/{name}")
    problems = checks.math_problems(tab) + checks.overflow_problems(tab) + checks.record_problems(tab)
    checks.jump_to_the_end(tab)
    checks.take_formulas_away(tab)
    if name in ON_A_TELEPHONE:
        checks.settle(tab, 800)  # the theme looks anew which blocks scroll, and lets the keyboard reach them
        problems += accessibility.axe_problems(tab)
    tab.set_viewport_size(checks.DESKTOP)
    for theme in THEMES if name not in ALIKE else [theme_of(name)]:
        checks.put_theme(tab, theme)
        problems += accessibility.colour_problems(tab)
    if name not in ALIKE:
        problems += accessibility.axe_problems(tab)
    problems += checks.weight_problems(tab)  # last: by now all is loaded, and nothing is to be waited for
    assert problems + watch.take() == []


@pytest.mark.trust
@pytest.mark.parametrize("name", ALIKE)
def test_a_page_like_others_has_no_serious_finding(tab, address, name):
    """Nor in the theme that is left."""
    tab.set_viewport_size(checks.DESKTOP)
    checks.open_without_formulas(tab, f"{address}/{name}")
    [theme] = {*THEMES} - {theme_of(name)}
    checks.put_theme(tab, theme)
    assert accessibility.axe_problems(tab) + accessibility.colour_problems(tab) == []


def test_the_theme_is_remembered(page, address):
    checks.open_page(page, f"{address}/{PAGES[0]}")
    assert checks.set_theme(page, "dark") == []
    checks.open_page(page, f"{address}/{PAGES[1]}")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert checks.set_theme(page, "light") == []


@pytest.mark.parametrize("width", [checks.DESKTOP, checks.PHONE], ids=["desk", "phone"])
def test_menu(page, address, width):
    page.set_viewport_size(width)
    checks.open_page(page, f"{address}/{PAGES[1]}")
    assert checks.menu_problems(page, width) == []


def test_list_of_pages_is_in_parts(page, address):
    """The part of the page is open and the page in view, the others fold."""
    for name, width in (("notebooks/19_common_mistakes.html", 1440), ("notebooks/17_training.html", 1024), ("book/how_to_cite.html", 1440)):
        page.set_viewport_size({"width": width, "height": 800})
        checks.open_without_formulas(page, f"{address}/{name}")
        assert page.locator(".bd-links summary").all_inner_texts() == PARTS
        assert page.locator(".bd-links details[open]").count() == 1
        box = page.locator(".bd-links a.current").last.bounding_box()
        assert box and 0 <= box["y"] < 800, (name, box)
    part = page.locator(".bd-links details", has_text="Core")
    part.locator("summary").click()
    part.get_by_text("5. Group privacy of DP-SGD").wait_for(state="visible")


def test_buttons_carry_words_where_there_is_room(page, address):
    checks.open_page(page, f"{address}/{PAGES[0]}")
    words = page.locator(".article-header-buttons > .btn .btn__text-container").first
    shown = "node => getComputedStyle(node, '::after').display !== 'none' && getComputedStyle(node, '::after').content"
    for width, label in ((1440, '"Download"'), (1024, False)):
        page.set_viewport_size({"width": width, "height": 800})
        assert words.text_content() == "Notation" and (words.bounding_box()["width"] > 20) == (width == 1440)
        assert page.locator(".dropdown-download-buttons > button").evaluate(shown) == label
    assert page.locator(".bd-links details[open] summary").all_inner_texts() == PARTS[:1]


@pytest.mark.parametrize(
    "name, entries, asked",
    [
        ("theorems", 100, [("source", "Ganesh 2024", "sensitivity binom"), ("chapter", "chapter 5", "test_poisson_groups_are_dominated")]),
        ("reproductions", 140, [("verdict", "reproduced", "lemma")]),
        ("errata", 22, [("chapter", "chapter 13", "shuffle")]),
        ("peers", 100, [("verdict", "too small", "Opacus")]),
    ],
)
def test_records_can_be_filtered(page, address, name, entries, asked):
    page.set_viewport_size(checks.PHONE)
    checks.open_without_formulas(page, f"{address}/book/{name}.html")
    for kind, value, words in asked:
        records_are_filtered(page, entries, kind, value, words)
    page.fill("#records-words", "qqqzzz")
    assert page.locator(".record:visible, table.records:visible").count() == 0


def records_are_filtered(page, entries, kind, value, words):
    everything, seen, filter_ = page.locator(".record"), page.locator(".record:visible"), f".records-filter [aria-label={kind}]"
    assert seen.count() == everything.count() >= entries
    page.select_option(filter_, value)
    chosen = seen.count()
    assert 0 < chosen < everything.count()
    page.fill("#records-words", words)
    assert 0 < seen.count() <= chosen
    assert page.inner_text(".records-filter [role=status]") == f"{seen.count()} of {everything.count()}"
    if "theorems" in page.url:  # the boxes with the full statements follow
        assert page.locator("div.proof:visible").count() == page.locator(".record:visible td:first-child a").count()
    kinds = seen.evaluate_all("(all, kind) => all.map(record => record.dataset[kind].split('|'))", kind)
    assert all(value in each for each in kinds)
    page.select_option(filter_, index=0)
    page.fill("#records-words", "")


def test_search_opens_by_keyboard(page, address):
    checks.open_page(page, f"{address}/{PAGES[0]}")
    page.keyboard.press("Control+k")
    page.wait_for_selector("#search-input:visible", timeout=120_000)
    page.keyboard.type("group privacy")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=*", timeout=120_000)
    page.wait_for_selector("#search-results ul.search li a", timeout=120_000)


def test_start_page_leads_to_the_book(page, address):
    page.goto(f"{address}/index.html")
    page.wait_for_url(f"**/{PAGES[0]}", timeout=120_000)
