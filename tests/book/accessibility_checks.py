"""Accessibility of the built pages in a browser, by axe-core. Each function takes a Playwright page."""

import browser_checks as checks
from axe_playwright_python.base import AXE_SCRIPT

# On a page of a thousand formulas or coloured words of code axe takes minutes: of the code, the first blocks keep their colours.
WITHOUT_COLOURS = "() => [...document.querySelectorAll('pre:not(:has(a))')].slice(10).forEach(node => { node.textContent = node.textContent })"
# And as long for the contrast of thousands of lines in the same few styles: the first forty of each kind stay.
WITHOUT_REPETITION = """() => { for (const kind of ['p', 'pre', 'tr', 'li', 'dd', 'dt', 'section'])
  [...document.querySelectorAll('article ' + kind)].slice(40).forEach(node => node.remove()) }"""
COLOURS = ("color-contrast", "link-in-text-block")
SERIOUS = ("serious", "critical")


def _found(page, rules):
    if not page.evaluate("() => 'axe' in window"):  # half a megabyte, once a page
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate("rules => axe.run(rules)", rules | {"resultTypes": ["violations"]})["violations"]
    return [
        f"{item['impact']}: {item['id']}: {item['help']}: {node['html'][:120]}"
        for item in found
        for node in item["nodes"][:3]
        if item["impact"] in SERIOUS
    ]


def axe_problems(page, formulas=False):
    """The serious and critical findings but for colours; the formulas are taken off the page first, unless they are wanted."""
    if not formulas:
        checks.take_formulas_away(page)
    page.evaluate(WITHOUT_COLOURS)
    return _found(page, {"rules": {name: {"enabled": False} for name in COLOURS}})


def colour_problems(page):
    """Text whose contrast is below the value of WCAG AA: 4.5; 3 for large type. Links that are not told from the text around them."""
    page.evaluate(WITHOUT_REPETITION)
    return _found(page, {"runOnly": COLOURS})


def trap_problems(page, most=1500):
    """Tab must go from the top through the page and round again: never stay, never circle in a part of it."""
    page.evaluate("() => { document.activeElement && document.activeElement.blur(); window.scrollTo(0, 0) }")
    page.evaluate("() => { window.visited = new Map() }")
    for number in range(most):
        page.keyboard.press("Tab")
        seen = page.evaluate(
            """number => { const node = document.activeElement, first = window.visited.get(node);
            if (first === undefined) window.visited.set(node, number);
            return [first ?? -1, node.outerHTML.slice(0, 100)] }""",
            number,
        )
        if seen[0] == 0:
            return [] if number > 5 else [f"only {number} places can be reached"]
        if seen[0] > 0:
            return [f"Tab comes back to {seen[1]} without having left the page"]
    return [f"{most} Tabs do not lead out of the page"]
