"""No keyboard trap, formulas that are read, and the notation within one click (test_browser.py asks axe-core about every page)."""

import accessibility_checks as accessibility
import browser_checks as checks
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.browser]
CHAPTER = "notebooks/05_group_privacy.html"


def test_formulas_have_no_serious_finding(tab, address):
    tab.set_viewport_size(checks.DESKTOP)
    checks.open_page(tab, f"{address}/book/how_to_read.html")
    assert tab.locator("mjx-container").count() > 0
    assert tab.locator("mjx-container[tabindex='0']").count() == 0  # no stop of the Tab key, for hundreds in a chapter
    assert tab.locator("mjx-container mjx-assistive-mml").count() > 0  # a screen reader reads them where they stand
    assert accessibility.axe_problems(tab, formulas=True) == []


def test_pale_words_are_found(tab, address):
    checks.open_page(tab, f"{address}/book/how_to_cite.html")
    checks.put_theme(tab, "light")
    assert accessibility.colour_problems(tab) == []
    tab.evaluate("() => { document.querySelector('article p').style.color = '#abc' }")
    assert "color-contrast" in accessibility.colour_problems(tab)[0]


@pytest.mark.parametrize("name", ["book/intro.html", "notebooks/18_which_accountant.html", "book/live_sampling.html"])
def test_keyboard(tab, address, name):
    tab.set_viewport_size(checks.DESKTOP)
    checks.open_page(tab, f"{address}/{name}")
    assert checks.keyboard_problems(tab) == []


@pytest.mark.parametrize("size", [checks.DESKTOP, checks.PHONE], ids=["desk", "phone"])
def test_notation_is_one_key_away(tab, address, size):
    """The button opens the table by keyboard, the field narrows it, Escape leads back to the button."""
    tab.set_viewport_size(size)
    checks.open_page(tab, f"{address}/{CHAPTER}")
    button = tab.locator("a.btn-notation-button")
    assert button.get_attribute("href").endswith("book/notation.html")  # without scripts it is a link
    button.focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector("dialog[data-ready=true]", timeout=120_000)
    assert checks.math_problems(tab) == []
    rows = tab.locator("dialog tbody tr:visible")
    everything = rows.count()
    assert everything > 100
    tab.keyboard.type("noise multiplier")
    assert 0 < rows.count() < everything
    assert accessibility.axe_problems(tab) + accessibility.colour_problems(tab) == []
    links = tab.evaluate(
        "[...document.querySelectorAll('dialog a[href]')].map(link => link.href.split('#')[0])"
    )
    for target in sorted(set(links)):
        assert tab.request.get(target).ok, target
    tab.keyboard.press("Escape")
    assert tab.locator("dialog[open]").count() == 0
    assert tab.evaluate("document.activeElement.classList.contains('btn-notation-button')")


def test_a_tag_shows_its_statement(tab, address):
    """On hover and on focus, typeset; Escape and leaving take the card away; it fits on a telephone."""
    card = tab.locator("#statement-card")
    checks.open_page(tab, f"{address}/{CHAPTER}")
    link = tab.locator("article a[href$='#thm-g-3-1']").last
    for size in (checks.DESKTOP, checks.PHONE):
        tab.set_viewport_size(size)
        link.focus()
        card.locator("mjx-container").first.wait_for(state="visible")
        assert "Theorem [G-3.1] Poisson sampling" in card.inner_text()
        assert link.get_attribute("aria-describedby") == "statement-card"
        assert checks.math_problems(tab) + checks.overflow_problems(tab) == []
        tab.keyboard.press("Escape")
        card.wait_for(state="hidden")
        link.blur()
    tab.set_viewport_size(checks.DESKTOP)
    link.hover()
    card.wait_for(state="visible")
    card.hover()
    checks.settle(tab, 500)
    assert card.is_visible()
    tab.mouse.move(2, 2)
    card.wait_for(state="hidden")


def test_statements_checks_and_damage_are_marked(tab, address):
    tab.set_viewport_size(checks.DESKTOP)
    checks.open_page(tab, f"{address}/{CHAPTER}")
    count = lambda selector: tab.locator(selector).count()
    assert count("blockquote.statement") >= 4
    assert count("div.cell.check") >= 5
    assert count("section.breaks") >= 1 and count("section.breaks div.cell.check") >= 1
    assert count("p.expect") >= 2
    answers = tab.locator("details.answer")  # folded, and a key opens them
    assert answers.count() >= 5 and not any(answers.evaluate_all("all => all.map(one => one.open)"))
    answers.first.locator("summary").press("Enter")
    assert answers.first.locator("mjx-container").first.is_visible()
    label = "node => getComputedStyle(node, '::before').content"
    assert tab.locator("div.cell.check div.cell_input").first.evaluate(label) == '"check"'
    assert tab.locator("section.breaks div.cell.check div.cell_input").first.evaluate(label) == '"break it"'




