"""Scripts of the pages that compute in the browser, and the form that chapter 18 begins with.

They lie in `book/_live`, and the scripts are copied to `_static/live`. In a folder of `html_static_path` they would be
added to every page; here each page names the scripts that it needs.
"""

import shutil
from pathlib import Path

from docutils import nodes

WIZARD = "notebooks/18_which_accountant"
PLACE = "In the book,"  # so begins the paragraph in whose place the form stands


def place_wizard(app, doctree):
    if app.env.docname == WIZARD:
        form = Path(app.srcdir, "book", "_live", "calculator.html")
        app.env.note_dependency(str(form))
        place = next(node for node in doctree.findall(nodes.paragraph) if node.astext().startswith(PLACE))
        place.replace_self(nodes.raw("", form.read_text(encoding="utf-8"), format="html"))


def copy_scripts(app, exception):
    if exception or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "live"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for script in sorted(Path(app.srcdir, "book", "_live").glob("*.js")):
        shutil.copy2(script, target / script.name)


def setup(app):
    app.connect("doctree-read", place_wizard)
    app.connect("build-finished", copy_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
