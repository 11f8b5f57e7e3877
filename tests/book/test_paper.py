"""Chapters as a browser prints them."""

import browser_checks as checks
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.browser]
SCREEN_ONLY = ".bd-sidebar-primary, .bd-sidebar-secondary, .bd-header-article, .prev-next-footer, button, form, input, .headerlink, details.hide"
CUT = """() => [...document.querySelectorAll('article :is(table, pre, img, mjx-math)')].filter(node =>
  node.getBoundingClientRect().width && node.getBoundingClientRect().right > innerWidth + 1).map(node => node.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("name", ["03_subsampling", "05_group_privacy", "12_mmcc"])
def test_a_chapter_on_paper(chromium, address, name):
    """Light, the article alone, answers open, figures whole, nothing cut; and the screen is as it was afterwards."""
    page = chromium.new_page(viewport=checks.DESKTOP, color_scheme="dark")
    checks.open_page(page, f"{address}/notebooks/{name}.html")
    state = "() => [document.documentElement.dataset.theme, document.querySelectorAll('details[open]').length]"
    before, answers = page.evaluate(state), page.locator("details.answer")
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 962})  # A4 less the margins
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.locator(SCREEN_ONLY).locator("visible=true").count() == 0
    assert answers.count() >= 3 and answers.locator("> p").locator("visible=true").count() >= answers.count()
    assert page.evaluate(CUT) == []
    figures = page.locator("article figure")
    assert figures.count() >= 3
    for figure in figures.all():
        assert figure.locator("img").is_visible() and figure.bounding_box()["height"] < 962
        assert figure.evaluate("node => getComputedStyle(node).breakInside") == "avoid"
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(state) == before
    page.close()
