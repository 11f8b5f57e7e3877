"""Make the built site self-contained: MathJax from a local copy, no live-code loader.

MathJax comes from the wheel `sphinx-mathjax-offline`; only the component that the pages use and its fonts
are copied. They must not lie in a folder of `html_static_path`, because every script found there is added
to every page.
"""

import re
import shutil
from importlib.resources import files
from pathlib import Path

MATHJAX = "mathjax"
NEEDED = ("tex-chtml.js", "output/chtml/fonts")
LIVE_CODE = re.compile(
    r'<script type="text/x-thebe-config">.*?</script>\s*(<script>kernelName = [^<]*</script>)?', re.DOTALL
)


def copy_mathjax(app, exception):
    if exception or app.builder.format != "html":
        return
    source = Path(str(files("sphinx-mathjax-offline"))) / "static" / MATHJAX
    for name in NEEDED:
        target = Path(app.outdir) / "_static" / MATHJAX / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, target, dirs_exist_ok=True)
        else:
            shutil.copy2(source / name, target)


def _is_live_code(entry):
    body = (getattr(entry, "attributes", None) or {}).get("body") or ""
    return "thebe" in str(getattr(entry, "filename", entry) or "") or "THEBE_JS_URL" in body


def _is_mathjax(entry):
    body = (getattr(entry, "attributes", None) or {}).get("body") or ""
    return MATHJAX in str(getattr(entry, "filename", entry) or "") or "window.MathJax" in body


def remove_live_code(app, pagename, templatename, context, doctree):
    """Take the Thebe loader, which points at a remote host, out of the page; and MathJax, where nothing is to be set."""
    for kind in ("script_files", "css_files"):
        context[kind] = [entry for entry in context[kind] if not _is_live_code(entry)]
    if 'class="math' not in (context.get("body") or ""):  # the first page counts the formulas of all others
        context["script_files"] = [entry for entry in context["script_files"] if not _is_mathjax(entry)]
    if context.get("body"):
        context["body"] = LIVE_CODE.sub("", context["body"])


def setup(app):
    app.config.mathjax_path = f"{MATHJAX}/tex-chtml.js"
    app.connect("html-page-context", remove_live_code, priority=900)
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
