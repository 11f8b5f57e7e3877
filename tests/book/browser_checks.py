"""What the built pages must fulfil in a browser. Each function takes a Playwright page and returns problems."""

import contextlib
import threading
from pathlib import Path
from urllib.parse import urlsplit

from page_server import server

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


def script(name):
    """A function in JavaScript that tests ask pages with."""
    return (Path(__file__).parent / "scripts" / f"{name}.js").read_text(encoding="utf-8")


@contextlib.contextmanager
def served(folder):
    """The folder over HTTP on this machine; yields the address."""
    web = server(folder)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{web.server_address[1]}"
    finally:
        web.shutdown()
        web.server_close()


class Watch:
    """Collects what goes wrong while pages are open."""

    def __init__(self, page, address):
        self.problems = []
        self.host = urlsplit(address).netloc
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("requestfailed", self._failed)
        page.on("request", self._request)
        page.on("response", self._response)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")

    def _failed(self, request):
        if "ERR_ABORTED" not in (request.failure or ""):  # a page was left while it loaded
            self.problems.append(f"failed request: {request.url} ({request.failure})")

    def _request(self, request):
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob", "about") and parts.netloc != self.host:
            self.problems.append(f"request to another host: {request.url}")

    def _response(self, response):
        if response.status >= 400:
            self.problems.append(f"status {response.status}: {response.url}")

    def take(self):
        found, self.problems[:] = list(dict.fromkeys(self.problems)), []
        return found


def open_page(page, url):
    page.goto(url, wait_until="load")
    page.evaluate("async () => { if (window.MathJax && MathJax.startup) await MathJax.startup.promise }")


def open_without_formulas(page, url):
    """For a test that asks nothing of the formulas: MathJax takes most of the time that a chapter needs."""
    scripts = "**/mathjax/tex-chtml.js"
    page.route(scripts, lambda route: route.fulfill(body="", content_type="text/javascript"))
    page.goto(url, wait_until="load")
    page.unroute(scripts)
    page.evaluate("() => document.querySelectorAll('.math').forEach(node => { node.textContent = 'x' })")


def math_problems(page):
    """Formulas that MathJax did not set, or set as an error."""
    count = page.evaluate(
        """() => ({
            math: document.querySelectorAll('.math').length,
            set: document.querySelectorAll('mjx-container').length,
            errors: [...document.querySelectorAll('mjx-merror')].map(node =>
                node.getAttribute('data-mjx-error') || node.textContent).slice(0, 3),
        })"""
    )
    problems = [f"formula with an error: {error}" for error in count["errors"]]
    if count["math"] != count["set"]:
        problems.append(f"{count['math']} formulas, {count['set']} set")
    return problems


def take_formulas_away(page):
    """They are MathJax's: the same markup everywhere, in the colour of the text. Whatever changes the page lays them out anew."""
    page.evaluate("() => document.querySelectorAll('mjx-container').forEach(node => node.replaceWith('x'))")


def load_images(page):
    """Those too that come when a reader scrolls to them."""
    page.evaluate("() => Promise.all([...document.images].map(image => { image.loading = 'eager'; return image.decode() }))")


def jump_to_the_end(page):
    """Which lets the images come that wait for a reader."""
    page.evaluate("() => { document.documentElement.style.scrollBehavior = 'auto'; window.scrollTo(0, 1e6) }")


def weight_problems(page, most=3e6):
    """A page, with what it loads for a reader who jumps to its end, of more bytes than this: as they lie in the files, not compressed."""
    page.wait_for_load_state("networkidle")
    size = page.evaluate("() => performance.getEntries().reduce((sum, entry) => sum + (entry.decodedBodySize || 0), 0)")
    return [] if 1e5 < size <= most else [f"it loads {size / 1e6:.2f} MB"]  # fewer: the scripts and styles are not seen


def put_theme(page, theme):
    """What the theme button does to the page (`set_theme` presses it)."""
    page.evaluate("theme => { document.documentElement.dataset.theme = document.documentElement.dataset.mode = theme }", theme)
    settle(page, 50)  # colours change over a moment


def set_theme(page, wanted):
    """Click the theme button until the page is in the wanted theme."""
    button = page.locator("button.theme-switch-button").first
    for _ in range(4):
        mode = page.evaluate("document.documentElement.dataset.mode")
        if mode == wanted and page.evaluate("document.documentElement.dataset.theme") == wanted:
            # The button's tooltip fades while it is left: no text of the page, and no fair test of contrast.
            page.mouse.move(700, 400)
            page.evaluate("document.activeElement && document.activeElement.blur()")
            page.wait_for_selector(".tooltip", state="detached")
            return []
        button.click()
    return [f"the theme button does not lead to {wanted}"]


def overflow_problems(page):
    """Whether the page itself scrolls sideways."""
    width = page.evaluate("[document.scrollingElement.scrollWidth, window.innerWidth]")
    if width[0] <= width[1] + 1:
        return []
    culprits = page.evaluate(
        """() => [...document.querySelectorAll('main *')].filter(node => {
            if (node.getBoundingClientRect().right <= innerWidth + 1) return false;
            for (let at = node.parentElement; at; at = at.parentElement)
                if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(at).overflowX)) return false;
            return true;
        }).slice(0, 3).map(node => node.outerHTML.slice(0, 100))"""
    )
    return [f"the page is {width[0]} wide on a screen of {width[1]}: {culprits}"]


def record_problems(page):
    """What of a record lies beyond the screen, folded or not."""
    beyond = """() => [...document.querySelectorAll('.record *:not(mjx-assistive-mml, mjx-assistive-mml *)')].filter(node => {
        if (node.getBoundingClientRect().right <= innerWidth + 1) return false;
        for (let at = node; !at.matches('.record'); at = at.parentElement) if (getComputedStyle(at).overflowX === 'auto') return false;
        return true }).map(node => `beyond the screen: ${node.outerHTML.slice(0, 100)}`)"""
    fold = "open => document.querySelectorAll('.record details').forEach(part => { part.open = open })"
    if page.locator(".record").count() == 0:
        return []
    page.evaluate(fold, True)
    settle(page, 400)
    found = page.evaluate(beyond)
    page.evaluate(fold, False)
    return found


def settle(page, moment=200):
    """Give what was asked for a moment to begin, then wait for frames and until nothing moves any more, however long that takes."""
    page.wait_for_timeout(moment)
    page.wait_for_function(
        "() => document.getAnimations().every(motion => motion.playState !== 'running'"
        " || motion.effect.getComputedTiming().endTime === Infinity)",
        timeout=120_000,
    )
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def menu_problems(page, width):
    """The menu button, by keyboard, hides and shows the list of pages."""
    page.set_viewport_size(width)
    settle(page, 600)  # the list slides in and out

    def visible():
        box = page.locator(".bd-sidebar-primary").bounding_box()
        return (
            box is not None
            and box["width"] > 0
            and box["x"] + box["width"] > 1
            and box["x"] > -box["width"] / 2
        )

    before = visible()
    button = page.locator("button.primary-toggle").first
    button.focus()
    page.keyboard.press("Enter")
    settle(page, 600)
    if visible() == before:
        return ["the menu button does nothing"]
    return []


def skip_problems(page):
    """The first Tab offers to skip to the content, for everybody to see, and leads there."""
    page.evaluate("() => { document.activeElement && document.activeElement.blur(); window.scrollTo(0, 0) }")
    page.keyboard.press("Tab")
    first = page.evaluate("document.activeElement.getAttribute('href') || ''")
    if first != "#main-content":
        return [f"the first Tab does not reach the link to the content (but {first!r})"]
    settle(page, 400)  # it slides in
    bottom, width = page.evaluate("(() => { const b = document.activeElement.getBoundingClientRect(); return [b.bottom, b.width] })()")
    problems = [] if bottom > 0 and width > 0 else ["the link to the content stays invisible when it has the focus"]
    page.keyboard.press("Enter")
    there = page.evaluate("document.querySelector('#main-content:target') !== null")  # a live figure may write its state into the address since
    return problems if there else [*problems, "the link to the content does not lead there"]


def keyboard_problems(page, most=1500):
    """From the content on Tab goes through the page and round again: it never stays, nor circles in a part; in the content the focus is seen."""
    problems, reached, focus = skip_problems(page), 0, script("focus")
    for number in range(most):
        page.keyboard.press("Tab")
        before, inside, marked, node = page.evaluate(focus, number)
        if before > 0:
            return [*problems, f"Tab comes back to {node} without having left the page"]
        if before == 0:
            return problems if reached > 5 else [*problems, f"Tab reaches {reached} places in the content"]
        reached += inside
        problems += [] if marked or not inside else [f"no sign of the focus on {node}"]
    return [*problems, f"{most} Tabs do not lead out of the page"]


def search_results(page, address, words):
    """Paths of the pages that the search page finds."""
    from urllib.parse import quote

    page.goto(f"{address}/search.html?q={quote(words)}", wait_until="load")
    page.wait_for_selector("#search-results ul.search li > a", timeout=120_000)
    page.wait_for_timeout(200)  # from the disk entries come one by one
    hrefs = page.evaluate("[...document.querySelectorAll('#search-results ul.search li > a')].map(a => a.href)")
    return [urlsplit(href).path.lstrip("/") for href in hrefs]
