"""Claim: at 1.6 Mbit/s and 150 ms the largest part of a page is painted within 2.5 s, and the front page weighs at most 600 kB compressed."""

import contextlib
import gzip
import http.server
import sys
import threading
from pathlib import Path

from _common import ROOT, Report, median

sys.path.insert(0, str(ROOT / "tools"))
from browser import find_chromium

HTML = ROOT / "_build" / "html"
PAGES = ["book/intro.html", "notebooks/18_which_accountant.html", "notebooks/01_hockey_stick.html", "notebooks/05_group_privacy.html", "notebooks/12_mmcc.html"]
SLOW = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 750e3 / 8}
REPETITIONS = 3
LARGEST = """() => new Promise(done => new PerformanceObserver(list => {
  const last = list.getEntries().at(-1);
  done({ms: last.startTime, what: last.element ? last.element.tagName + ' ' + last.element.textContent.trim().slice(0, 40) : last.url});
}).observe({type: 'largest-contentful-paint', buffered: true}))"""


class Compressed(http.server.SimpleHTTPRequestHandler):
    """The built pages as a public host sends them: compressed, and kept alive."""

    protocol_version = "HTTP/1.1"
    sent = 0

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            return self.send_error(404)
        body = path.read_bytes()
        packed = gzip.compress(body)
        smaller = len(packed) < len(body)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        if smaller:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(packed if smaller else body)))
        self.end_headers()
        self.wfile.write(packed if smaller else body)
        Compressed.sent += len(packed if smaller else body)

    def log_message(self, *arguments):
        pass

    def handle(self):
        with contextlib.suppress(ConnectionError):  # a browser that has seen enough
            super().handle()


def visit(browser, url):
    """A first visit over the slow line, to the end of loading: its largest paint, and the kilobytes sent."""
    context = browser.new_context(viewport={"width": 412, "height": 823})
    page = context.new_page()
    page.set_default_timeout(120_000)
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", SLOW)
    Compressed.sent = 0
    page.goto(url, wait_until="networkidle")
    largest = page.evaluate(LARGEST)
    context.close()
    return largest | {"kB": Compressed.sent / 1e3}


def main():
    from playwright.sync_api import sync_playwright

    if not (HTML / "index.html").exists():
        print("page_paint: no book there yet; run `make book` first", file=sys.stderr)
        return 1
    report = Report("page_paint", "First visits over a slow line")
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: Compressed(*given, directory=str(HTML)))
    threading.Thread(target=web.serve_forever, daemon=True).start()
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        visit(browser, f"http://127.0.0.1:{web.server_address[1]}/{PAGES[0]}")  # files into memory
        for name in PAGES:
            visits = [visit(browser, f"http://127.0.0.1:{web.server_address[1]}/{name}") for _ in range(REPETITIONS)]
            rows.append({"page": name, "largest paint s": median([v["ms"] for v in visits]) / 1e3, "kB": max(v["kB"] for v in visits), "what": visits[0]["what"]})
        browser.close()
    web.shutdown()
    report.table("1.6 Mbit/s, 150 ms, a phone's screen; medians of three first visits, compressed bytes without scrolling", rows)
    report.say("")
    report.claim("largest paint of the front page", rows[0]["largest paint s"], at_most=2.5, unit="s")
    report.claim("slowest of these pages", max(row["largest paint s"] for row in rows), at_most=2.5, unit="s")
    report.claim("front page", rows[0]["kB"], at_most=600, unit="kB")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
