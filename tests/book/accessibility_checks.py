"""Accessibility of the built pages in a browser, by axe-core. Each function takes a Playwright page."""

from collections import Counter

import browser_checks as checks
from axe_playwright_python.base import AXE_SCRIPT

# On a page of a thousand coloured words of code axe takes minutes.
WITHOUT_COLOURS = "() => [...document.querySelectorAll('pre:not(:has(a))')].slice(10).forEach(node => { node.textContent = node.textContent })"
COLOURS = ("color-contrast", "link-in-text-block")
ASK_ABOUT_COLOURS = checks.script("colours")
TRIED = Counter()  # how often a style of text was asked about in this process; of some, such as what lies off the screen, axe says nothing
ENOUGH = 3
SERIOUS = ("serious", "critical")


def _serious(found):
    return [
        f"{item['impact']}: {item['id']}: {item['help']}: {node['html'][:120]}"
        for item in found
        for node in item["nodes"][:3]
        if item["impact"] in SERIOUS
    ]


def load_axe(page):
    """Half a megabyte, once a page."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)


def axe_problems(page, formulas=False):
    """The serious and critical findings but for colours; the formulas are taken off the page first, unless they are wanted."""
    load_axe(page)
    if not formulas:
        checks.take_formulas_away(page)
    page.evaluate(WITHOUT_COLOURS)
    options = {"rules": {name: {"enabled": False} for name in COLOURS}, "resultTypes": ["violations"], "preload": False}
    return _serious(page.evaluate("options => axe.run(options)", options)["violations"])


def colour_problems(page):
    """Text whose contrast is below the value of WCAG AA: 4.5; 3 for large type. Links that are not told from the text around them.

    Contrast follows from the style of a text, and pages share their styles: each is judged where it is met first.
    """
    known = [style for style, times in TRIED.items() if times >= ENOUGH]
    answer = page.evaluate(ASK_ABOUT_COLOURS, [known, COLOURS])
    if answer is None:  # a style that is not known, and no axe to ask
        load_axe(page)
        answer = page.evaluate(ASK_ABOUT_COLOURS, [known, COLOURS])
    found, asked, judged = answer
    TRIED.update(asked)
    TRIED.update({style: ENOUGH for style in judged})
    return _serious(found)
