"""The notation, one click away on every page.

A button in the header leads to the page `book/notation`; with JavaScript, notation.js opens the page's table of
symbols in a panel instead. The table is taken from the built page, so that there is one source. It is written as a
script because pages opened from the disk may load scripts, but no other files.
"""

import json
from pathlib import Path

from bs4 import BeautifulSoup

PAGE = "book/notation"


def add_button(app, pagename, templatename, context, doctree):
    if PAGE in app.env.found_docs and pagename != PAGE and "header_buttons" in context:
        context["header_buttons"].insert(
            0,
            {
                "type": "link",
                "url": context["pathto"](PAGE),
                "icon": "fas fa-subscript",
                "tooltip": "Notation",
                "label": "notation-button",
            },
        )


def write_table(app, exception):
    page = Path(app.outdir) / f"{PAGE}.html"
    if exception or app.builder.format != "html" or not page.exists():
        return
    document = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    table = next(
        table for table in document.select("article table") if table.find("th").get_text().strip() == "Symbol"
    )
    for node in table.find_all(id=True):
        del node["id"]  # the panel is a second copy where the page itself links to it
    folder = Path(PAGE).parent.as_posix()
    for link in table.find_all("a", href=True):  # relative to the root of the site
        link["href"] = (
            link["href"].removeprefix("../")
            if link["href"].startswith("../")
            else (
                f"{PAGE}.html{link['href']}" if link["href"].startswith("#") else f"{folder}/{link['href']}"
            )
        )
    script = f"window.BOOK_NOTATION = {json.dumps(str(table))};\n"
    (Path(app.outdir) / "_static" / "notation-table.js").write_text(script, encoding="utf-8")


def setup(app):
    app.connect("html-page-context", add_button, priority=600)
    app.connect("build-finished", write_table)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
