"""Every gate for the built pages can fail: sound pages pass, and each planted fault is seen by the gate meant for it."""

import re
import shutil

import browser_checks
import html_checks
import pytest
import small_project
from build import build

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sound_html(tmp_path_factory):
    """The built pages of the small project, no fault in them."""
    project = small_project.executed(tmp_path_factory.mktemp("sound") / "project")
    status, text = build(project)
    assert status == 0, text
    return project / "_build" / "html"


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name} does not contain {old!r}"
    path.write_text(text.replace(old, new), encoding="utf-8")


# --- built pages, read from the files ---------------------------------------------------------------

HTML_FAULTS = {
    "script from elsewhere": (
        html_checks.external_requests,
        "</head>",
        '<script src="https://example.org/x.js"></script></head>',
    ),
    "style from elsewhere": (
        html_checks.external_requests,
        "</head>",
        '<link rel="stylesheet" href="//example.org/x.css"></head>',
    ),
    "image from elsewhere": (
        html_checks.external_requests,
        "</article>",
        '<img src="https://example.org/x.png"></article>',
    ),
    "loader in a script": (
        html_checks.external_requests,
        "</head>",
        '<script>load("https://unp' + 'kg.com/x")</script></head>',
    ),
    "font from elsewhere": (
        html_checks.external_requests,
        "</head>",
        "<style>@import 'https://example.org/f.css';</style></head>",
    ),
    "dead link": (html_checks.dead_links, "</article>", '<a href="none.html">x</a></article>'),
    "dead anchor": (html_checks.dead_links, "</article>", '<a href="theorems.html#none">x</a></article>'),
    "dead anchor on the page": (html_checks.dead_links, "</article>", '<a href="#none">x</a></article>'),
    "image without a file": (
        html_checks.image_problems,
        "</article>",
        '<img src="no.png" alt="A curve that rises with epsilon"></article>',
    ),
    "image without a text": (
        html_checks.image_problems,
        'alt="A straight line',
        'alt="" data-x="A straight line',
    ),
    "no policy": (html_checks.policy_problems, 'http-equiv="Content-Security-Policy"', 'name="none"'),
    "loose policy": (html_checks.policy_problems, "script-src 'self'", "script-src 'self' 'unsafe-inline'"),
    "policy too late": (
        html_checks.policy_problems,
        "<head>",
        '<head><link rel="stylesheet" href="../_static/book.css">',
    ),
    "script of its own": (html_checks.policy_problems, "</article>", "<script>alert(1)</script></article>"),
    "handler": (html_checks.policy_problems, "</article>", '<b onclick="alert(1)">x</b></article>'),
    "role as text": (html_checks.raw_markup, "</article>", "<p>{prf:ref}`thm`</p></article>"),
    "directive as text": (html_checks.raw_markup, "</article>", "<p>```{note}</p></article>"),
    "unfinished place": (html_checks.raw_markup, "</article>", "<p>TODO write this</p></article>"),
}


@pytest.fixture
def site(sound_html, tmp_path):
    return shutil.copytree(sound_html, tmp_path / "site")


@pytest.mark.parametrize(
    "check", sorted({check for check, _, _ in HTML_FAULTS.values()}, key=lambda check: check.__name__)
)
def test_sound_pages_pass(sound_html, check):
    assert check(sound_html) == []


@pytest.mark.parametrize("fault", HTML_FAULTS)
def test_page_fault_is_seen(site, fault):
    check, old, new = HTML_FAULTS[fault]
    edit(site / "book" / "intro.html", old, new)
    assert check(site) != []


# --- built pages in a browser -----------------------------------------------------------------------


def loading(page, address):
    watch = browser_checks.Watch(page, address)
    browser_checks.open_page(page, f"{address}/book/intro.html")
    problems = browser_checks.math_problems(page) + browser_checks.image_problems(page)
    browser_checks.settle(page)
    return problems + watch.take()


def contrast(page, address):
    browser_checks.open_page(page, f"{address}/book/intro.html")
    problems = []
    for theme in ("light", "dark"):
        problems += browser_checks.set_theme(page, theme)
        browser_checks.settle(page, 300)
        problems += browser_checks.contrast_problems(page)
    return problems


def phone(page, address):
    page.set_viewport_size(browser_checks.PHONE)
    browser_checks.open_page(page, f"{address}/book/intro.html")
    return browser_checks.overflow_problems(page)


def keyboard(page, address):
    browser_checks.open_page(page, f"{address}/book/intro.html")
    return browser_checks.keyboard_problems(page)


def menu(page, address):
    browser_checks.open_page(page, f"{address}/book/intro.html")
    return browser_checks.menu_problems(page, browser_checks.PHONE)


def search(page, address):
    found = browser_checks.search_results(page, address, "Squares are not negative")
    return [] if "book/theorems.html" in found else [f"found {found}"]


BROWSER_FAULTS = {
    "script error": (loading, "intro.html", "</body>", "<script>throw new Error('no')</script></body>"),
    "console error": (loading, "intro.html", "</body>", "<script>console.error('no')</script></body>"),
    "missing file": (
        loading,
        "intro.html",
        "</article>",
        '<img src="none.png" alt="A curve that rises with epsilon"></article>',
    ),
    "image without a text": (loading, "intro.html", 'alt="A straight line', 'alt="" data-x="A straight line'),
    "another host": (
        loading,
        "intro.html",
        "</body>",
        '<script src="http://localhost:9/x.js"></script></body>',
    ),
    "unknown macro": (loading, "intro.html", "a^2 \\ge 0", "a^2 \\nosuchmacro 0"),
    "unbalanced brace": (loading, "intro.html", "a^2 \\ge 0", "a^{2 \\ge 0"),
    "pale text": (
        contrast,
        "intro.html",
        "</head>",
        "<style>.bd-article p { color: #9aa0a6 !important }</style></head>",
    ),
    "dark text in dark": (
        contrast,
        "intro.html",
        "</head>",
        "<style>.bd-article p { color: #222 !important }</style></head>",
    ),
    "no theme button": (
        contrast,
        "intro.html",
        "</body>",
        "<script>addEventListener('load', () => document.querySelectorAll('.theme-switch-button').forEach(b => b.replaceWith(b.cloneNode(true))))</script></body>",
    ),
    "wide block": (phone, "intro.html", "</article>", '<div style="width: 900px">x</div></article>'),
    "wide table": (
        phone,
        "intro.html",
        "</head>",
        "<style>.bd-article *, .bd-main * { overflow-x: visible !important } table { width: 1200px !important }</style></head>",
    ),
    "no skip link": (keyboard, "intro.html", 'id="pst-skip-link"', 'id="pst-skip-link" hidden'),
    "no focus ring": (
        keyboard,
        "intro.html",
        "</head>",
        "<style>:is(#stronger, *):focus-visible, :is(#stronger, .sd-card) { outline: none !important }</style></head>",
    ),
    "dead menu": (
        menu,
        "intro.html",
        "</body>",
        "<script>addEventListener('load', () => document.querySelectorAll('.primary-toggle').forEach(b => b.replaceWith(b.cloneNode(true))))</script></body>",
    ),
    "empty search": (search, "../searchindex.js", "quar", "kwar"),
}


@pytest.fixture
def tab(chromium):
    context = chromium.new_context(viewport=browser_checks.DESKTOP)
    yield context.new_page()
    context.close()


@pytest.mark.browser
@pytest.mark.parametrize(
    "gate", sorted({fault[0] for fault in BROWSER_FAULTS.values()}, key=lambda gate: gate.__name__)
)
def test_sound_pages_pass_in_the_browser(sound_html, tab, gate):
    with browser_checks.served(sound_html) as address:
        assert gate(tab, address) == []


@pytest.mark.browser
@pytest.mark.parametrize("fault", BROWSER_FAULTS)
def test_browser_fault_is_seen(site, tab, fault):
    gate, file, old, new = BROWSER_FAULTS[fault]
    code = re.search(r"<script>(.*?)</script>", new)
    if code:  # the policy lets no inline script run, so the fault goes into a file
        (site / "book" / "fault.js").write_text(code.group(1), encoding="utf-8")
        new = new.replace(code.group(), '<script src="fault.js"></script>')
    edit(site / "book" / file, old, new)
    with browser_checks.served(site) as address:
        assert gate(tab, address) != []
