"""Claim: the first page is interactive in under a second from a server on this machine, on a first visit.

Interactive: it is laid out, its scripts have run, and the main thread answers. The formulas may still be on their
way; when the last one is drawn stands beside it. Needs the built book (`make book`).
"""

import sys
import threading

from _common import ROOT, Report, median

sys.path.insert(0, str(ROOT / "tools"))
sys.path.insert(0, str(ROOT / "tests" / "book"))
from browser import find_chromium
from page_server import server

PAGES = ["book/intro.html", "notebooks/05_group_privacy.html", "book/theorems.html"]
LOADS = 9
ANSWERS = "() => new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
DRAWN = "async () => { if (window.MathJax) await MathJax.startup.promise; return performance.now() }"


def visit(browser, url):
    """(milliseconds until the page answers, until its formulas are drawn) on a first visit: nothing is cached."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(url, wait_until="domcontentloaded")
    answers = page.evaluate(ANSWERS)
    page.wait_for_load_state("load")
    drawn = page.evaluate(DRAWN)
    context.close()
    return answers, drawn


def main():
    from playwright.sync_api import sync_playwright

    html = ROOT / "_build" / "html"
    if not (html / PAGES[0]).exists():
        print("first_page: no book there yet; run `make book` first", file=sys.stderr)
        return 1
    report = Report("first_page", "Opening the book")
    web = server(html)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        for name in PAGES:
            url = f"http://127.0.0.1:{web.server_address[1]}/{name}"
            visit(browser, url)  # the browser itself warms up
            times = [visit(browser, url) for _ in range(LOADS)]
            answers, drawn = ([pair[i] for pair in times] for i in (0, 1))
            rows.append({"page": name, "interactive ms": median(answers), "slowest ms": max(answers), "formulas drawn ms": median(drawn)})  # fmt: skip
        browser.close()
    web.shutdown()
    report.table(f"milliseconds from the click (median of {LOADS} first visits)", rows)
    report.say("")
    report.claim("first page interactive", rows[0]["interactive ms"], at_most=1000, unit="ms")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
