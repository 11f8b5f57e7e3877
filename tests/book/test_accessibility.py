"""No keyboard trap, formulas that are read, and the notation within one click (test_browser.py asks axe-core about every page)."""

import accessibility_checks as accessibility
import browser_checks as checks
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def chapter(chromium, address):
    page = chromium.new_page(viewport=checks.DESKTOP)
    checks.open_page(page, f"{address}/notebooks/05_group_privacy.html")
    yield page
    page.close()


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


def test_a_tag_shows_its_statement(chapter):
    """On hover and on focus, typeset; Escape and leaving take the card away; it fits on a telephone."""
    card = chapter.locator("#statement-card")
    link = chapter.locator("article a[href$='#thm-g-3-1']").last
    for size in (checks.DESKTOP, checks.PHONE):
        chapter.set_viewport_size(size)
        link.focus()
        card.locator("mjx-container").first.wait_for(state="visible")
        assert "Theorem [G-3.1] Poisson sampling" in card.inner_text()
        assert link.get_attribute("aria-describedby") == "statement-card"
        assert checks.math_problems(chapter) + checks.overflow_problems(chapter) == []
        chapter.keyboard.press("Escape")
        card.wait_for(state="hidden")
        link.blur()
    chapter.set_viewport_size(checks.DESKTOP)
    link.hover()
    card.wait_for(state="visible")
    card.hover()
    checks.settle(chapter, 500)
    assert card.is_visible()
    chapter.mouse.move(2, 2)
    card.wait_for(state="hidden")


def test_statements_checks_and_damage_are_marked(chapter):
    chapter.set_viewport_size(checks.DESKTOP)
    count = lambda selector: chapter.locator(selector).count()
    assert count("blockquote.statement") >= 4
    assert count("div.cell.check") >= 5
    assert count("section.breaks") >= 1 and count("section.breaks div.cell.check") >= 1
    assert count("p.expect") >= 2
    answers = chapter.locator("details.answer")  # folded, and a key opens them
    assert answers.count() >= 5 and not any(answers.evaluate_all("all => all.map(one => one.open)"))
    answers.first.locator("summary").press("Enter")
    assert answers.first.locator("mjx-container").first.is_visible()
    label = "node => getComputedStyle(node, '::before').content"
    assert chapter.locator("div.cell.check div.cell_input").first.evaluate(label) == '"check"'
    assert chapter.locator("section.breaks div.cell.check div.cell_input").first.evaluate(label) == '"break it"'


def test_notation_is_one_key_away(chapter):
    """The button opens the table by keyboard, the field narrows it, Escape leads back to the button; at a desk and on a telephone."""
    button, rows = chapter.locator("a.btn-notation-button"), chapter.locator("dialog tbody tr:visible")
    assert button.get_attribute("href").endswith("book/notation.html")  # without scripts it is a link
    for size in (checks.DESKTOP, checks.PHONE):
        chapter.set_viewport_size(size)
        button.focus()
        chapter.keyboard.press("Enter")
        chapter.wait_for_selector("dialog[open][data-ready=true]", timeout=120_000)
        assert size == checks.PHONE or checks.math_problems(chapter) == []  # axe-core looks at pages without formulas
        chapter.fill("#notation-filter", "")
        everything = rows.count()
        assert everything > 100
        chapter.keyboard.type("noise multiplier")
        assert 0 < rows.count() < everything
        assert accessibility.axe_problems(chapter) + accessibility.colour_problems(chapter) == []
        chapter.keyboard.press("Escape")
        assert chapter.locator("dialog[open]").count() == 0
        assert chapter.evaluate("document.activeElement.classList.contains('btn-notation-button')")
    links = chapter.evaluate("[...document.querySelectorAll('dialog a[href]')].map(link => link.href.split('#')[0])")
    assert links
    for target in sorted(set(links)):
        assert chapter.request.get(target).ok, target
