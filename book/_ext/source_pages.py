"""Names in the text lead to what they name: `dplib.name` to its docstring, `tests/file.py::test` to its line.

A name of the library that does not exist, or a test that does not, is a warning, which fails the build. The files
that are linked are written as pages with numbered lines, so that the links hold for this version, and from the disk.
The page of theorems and the docstrings also lead to the line in which a function begins.
"""

import html
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import docstrings
from docutils import nodes
from library_files import PACKAGE, public_modules
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.util import logging
from tags import THEOREMS, inside

PAGE = "book/docstrings"
FOLDER = "_static/code"
NAME = re.compile(rf"{PACKAGE}(?:\.\w+)+(?![\w./])")
TEST = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")
LIGHT, DARK = "a11y-high-contrast-light", "a11y-high-contrast-dark"
HTML = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><title>{path}</title>
<style>body {{ color-scheme: light dark; font-size: 0.9rem }} a {{ color: inherit; text-decoration: none }}
pre {{ overflow-x: auto }} span:has(> a:target) {{ outline: 2px solid }}
{light} @media (prefers-color-scheme: dark) {{ {dark} }}</style></head><body><h1>{path}</h1>
{code}</body></html>
"""


def anchors(root):
    """({name: anchor}, {what it names: anchor}) of the page of docstrings."""
    by_name, by_thing = {}, []
    for module in public_modules(root):
        found = {module: ("module-", sys.modules.get(module) or pkgutil.resolve_name(module))}
        found |= {f"{module}.{key}": ("", thing) for key, thing in docstrings.members(module).items()}
        for name, (prefix, thing) in found.items():
            by_name[name] = prefix + name.replace("_", "-").replace(".", "-")
            by_thing.append((thing, by_name[name]))
    return by_name, by_thing


def docstring(app, name):
    """The anchor of a name: its own, that of the same thing under a shorter name, or that of what holds it."""
    if not hasattr(app, "docstring_anchors"):
        app.docstring_anchors = anchors(app.srcdir)
    by_name, by_thing = app.docstring_anchors
    if name not in by_name:
        thing = pkgutil.resolve_name(name)
        found = [place for other, place in by_thing if other is thing]
        return found[0] if found else docstring(app, name.rpartition(".")[0])
    return by_name[name]


def place(app, docname, path, line):
    """The address of a line of a file, whose page will be written."""
    app.linked_files = getattr(app, "linked_files", set()) | {path}
    return f"{'../' * docname.count('/')}{FOLDER}/{path.removesuffix('.py')}.html#L-{line}"


def begins(app, name):
    """(file, line) where a function or class of the library begins, or None."""
    thing = inspect.unwrap(pkgutil.resolve_name(name))
    thing = thing.fget if isinstance(thing, property) else thing
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return None
    return str(
        Path(inspect.getsourcefile(thing)).relative_to(Path(app.srcdir).resolve())
    ), inspect.getsourcelines(thing)[1]


def test_line(app, path, test):
    """The line in which a test is defined: 1 for a whole file, None if there is none."""
    file = Path(app.srcdir, path)
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return next(
        (number for number, line in enumerate(lines, 1) if not test or re.match(rf"def {test}\(", line)), None
    )


def link(app, doctree, docname):
    warn = logging.getLogger(__name__).warning
    for node in list(doctree.findall(nodes.literal)):
        if inside(node.parent, (nodes.reference, nodes.title)):
            continue
        text, target, extra = node.astext(), None, []
        test, name = TEST.fullmatch(text), NAME.match(text)
        if test:
            line = test_line(app, *test.groups())
            if line is None:
                warn("%s does not exist", text, location=docname)
                continue
            target = place(app, docname, test.group(1), line)
        elif name and PAGE in app.env.found_docs:
            try:
                target = f"{app.builder.get_relative_uri(docname, PAGE)}#{docstring(app, name.group())}"
            except (ImportError, AttributeError):
                warn("%s does not exist", name.group(), location=docname)
                continue
            alone = node.parent.get("classes") == ["source"]
            source = begins(app, name.group()) if docname == THEOREMS or alone else None
            if source:
                extra = [nodes.reference("", "source", internal=True, refuri=place(app, docname, *source))]
            if alone:
                node.parent.replace(node, extra)
                continue
            extra = [nodes.Text(" "), *extra] if extra else []
        if target:
            node.parent.replace(
                node, [nodes.reference("", "", node.deepcopy(), internal=True, refuri=target), *extra]
            )


def write_pages(app, exception):
    if exception or app.builder.format != "html":
        return
    formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, style=LIGHT)
    styles = {"light": formatter.get_style_defs(), "dark": HtmlFormatter(style=DARK).get_style_defs()}
    for path in sorted(getattr(app, "linked_files", ())):
        page = Path(app.outdir, FOLDER, path).with_suffix(".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        code = highlight(Path(app.srcdir, path).read_text(encoding="utf-8"), PythonLexer(), formatter)
        page.write_text(HTML.format(path=html.escape(path), code=code, **styles), encoding="utf-8")


def setup(app):
    app.connect("doctree-resolved", link)
    app.connect("build-finished", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
