"""Scripts of the pages that compute in the browser.

They lie in `book/_live` and are copied to `_static/live`. In a folder of `html_static_path` they would be
added to every page; here each page names the scripts that it needs.
"""

import shutil
from pathlib import Path


def copy_scripts(app, exception):
    if exception or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "live"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for script in sorted(Path(app.srcdir, "book", "_live").glob("*.js")):
        shutil.copy2(script, target / script.name)


def setup(app):
    app.connect("build-finished", copy_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
