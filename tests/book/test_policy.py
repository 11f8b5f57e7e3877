"""The policy of the pages lets the scripts run that they need, and no others (html_checks looks at every page)."""

import re

import browser_checks
import policy
import pytest

pytestmark = pytest.mark.slow
# One page of every kind: prose, chapter, chapter with the wizard, live page, long index, search, generated index.
KINDS = [
    "book/intro.html",
    "notebooks/05_group_privacy.html",
    "notebooks/18_which_accountant.html",
    "book/live_sampling.html",
    "book/errata.html",
    "search.html",
    "genindex.html",
]


# --- the policy itself ------------------------------------------------------------------------------

PAGE = '<!DOCTYPE html><html><head><meta charset="utf-8"><title>x</title></head><body>{}</body></html>'


@pytest.mark.parametrize(
    "planted",
    [
        "<script>alert(1)</script>",
        '<script type="module">import "./x.js"</script>',
        "<script>DOCUMENTATION_OPTIONS.pagename = 'x'; alert(1)</script>",
        "<script>window.MathJax = {}; alert(1)</script>",
        '<script>window.MathJax = {"a": alert(1)}</script>',
        '<img src="x.png" onerror="alert(1)">',
        '<button onclick="window.print(); alert(1)">x</button>',
        '<a href="javascript:alert(1)">x</a>',
        '<a href=" java\nscript:alert(1)">x</a>',
        '<a href="data:text/html,<script>alert(1)</script>">x</a>',
        '<script src="https://example.org/x.js"></script>',
        '<script src="//example.org/x.js"></script>',
    ],
)
def test_what_is_not_known_fails_the_build(planted):
    assert policy.secured(PAGE.format(""))[1] == []
    assert policy.secured(PAGE.format(planted))[1] != []


def test_what_the_pages_need_is_known():
    needed = (
        "<script>DOCUMENTATION_OPTIONS.pagename = 'book/intro';</script>"
        '<script>window.MathJax = {"tex": {"packages": {"[-]": ["noerrors"]}}}</script>'
        '<script type="application/json">{"a": 1}</script>'
        '<script src="../_static/x.js?digest=1"></script>'
        '<button onclick="window.print()">x</button>'
    )
    text, problems = policy.secured(PAGE.format(needed))
    assert problems == []
    assert 'data-action="print"' in text and "onclick" not in text
    assert policy.stated(text).count("'sha256-") == 2
    assert text.index("charset") < text.index("Content-Security-Policy") < text.index("<script")


# --- in a browser -----------------------------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.parametrize("name", KINDS)
def test_nothing_that_a_page_needs_is_refused(tab, html, name):
    """From the disk, where every file is another origin; test_browser.py looks at the pages on a server."""
    watch = browser_checks.Watch(tab, html.as_uri())
    browser_checks.open_page(tab, f"{html.as_uri()}/{name}")
    assert browser_checks.math_problems(tab) == []
    assert browser_checks.set_theme(tab, "dark") == [] and browser_checks.set_theme(tab, "light") == []
    browser_checks.settle(tab)
    assert [problem for problem in watch.take() if re.search("Content Security Policy|Refused to", problem)] == []
    assert tab.locator(".search-button").count() > 0  # written by an inline script


@pytest.mark.browser
def test_the_buttons_work_without_handlers(tab, address):
    browser_checks.open_page(tab, f"{address}/book/intro.html")
    tab.evaluate(
        "() => { window.seen = []; window.print = () => seen.push('print');"
        "window.toggleFullScreen = () => seen.push('fullscreen');"
        "document.querySelectorAll('[data-action]').forEach(button => button.click()) }"
    )
    assert set(tab.evaluate("window.seen")) == {"print", "fullscreen"}
