"""The chapters and exercises whose cells run in the page: which they are, and the scripts that they get.

Python itself is no part of the build (`make live` adds it); without it the button says what is missing. A chapter that
needs a package which Python in the page does not have gets no button.
"""

import json
import re
import shutil
from pathlib import Path

# What the page's Python lacks; a chapter whose code names one of these runs in a kernel alone.
LACKING = re.compile(r"^\s*(?:from|import) (?:jax|dp_accounting|PLD_accounting|opacus|sklearn|sympy)\b|^from dplib import .*\btraining\b", re.MULTILINE)
SCRIPTS = ("python.js", "cells.js")
LESSON = re.compile(r"notebooks/(?:exercises/)?\d\d_\w+")


def code_of(notebook):
    """The code of a notebook's cells, as one text."""
    cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def runs(notebook):
    """Whether the cells of a notebook run in the page."""
    return LACKING.search(code_of(notebook)) is None


def add_scripts(app, pagename, templatename, context, doctree):
    if doctree is None or app.builder.format != "html" or not LESSON.fullmatch(pagename):
        return
    notebook = Path(app.srcdir, f"{pagename}.ipynb")
    if notebook.is_file() and runs(notebook):
        for place, script in enumerate(SCRIPTS):
            app.add_js_file(f"live/{script}", priority=950 + place, loading_method="defer")


def copy_driver(app, exception):
    """The worker and its driver are no scripts of a page; they lie beside those and are loaded on request."""
    if exception or app.builder.format != "html":
        return
    target = Path(app.outdir, "_static", "live")
    target.mkdir(parents=True, exist_ok=True)
    source = Path(app.srcdir, "book", "_live", "page_driver.py")
    if source.is_file():
        shutil.copy2(source, target / source.name)


def setup(app):
    app.connect("html-page-context", add_scripts)
    app.connect("build-finished", copy_driver, priority=600)  # after the scripts
    return {"parallel_read_safe": True, "parallel_write_safe": True}
