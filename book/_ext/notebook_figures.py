"""Figures computed by notebooks: their numbers, and their loan to pages without code.

A code cell with the metadata `"figure": {"name": "growth"}` lends its stored image to the prose pages:
before the pages are read, the image is written to `book/_figures/growth.png`, so that
`![what the figure shows](_figures/growth.png)` in `book/*.md` always shows the stored output.

Figures are numbered by chapter, although chapters carry their number in the title only: the second one of
`notebooks/05_…` is Figure 5.2, and a companion of the chapter counts on. A lent figure has the same number on every
page, any other one counts on its page.
"""

import base64
import json
import re
from collections import defaultdict
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

FOLDER = Path("book") / "_figures"


def stored_figures(root):
    """The named figures of all notebooks: {name: (notebook, PNG bytes)}."""
    found = {}
    for path in sorted(Path(root, "notebooks").rglob("*.ipynb")):
        if ".ipynb_checkpoints" in path.parts:
            continue
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], start=1):
            figure = cell.get("metadata", {}).get("figure")
            if figure is None:
                continue
            where = f"{path.name}, cell {number}"
            name = figure.get("name", "") if isinstance(figure, dict) else ""
            if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
                raise ExtensionError(f"{where}: figure name {name!r}; allowed: a-z, 0-9, _ and -")
            if name in found:
                raise ExtensionError(f"{where}: figure {name!r} is also in {found[name][0]}")
            images = [
                output["data"]["image/png"]
                for output in cell.get("outputs", [])
                if "image/png" in output.get("data", {})
            ]
            if len(images) != 1:
                raise ExtensionError(f"{where}: figure {name!r} has {len(images)} stored images, expected 1")
            found[name] = (path.name, base64.b64decode("".join(images[0])))
    return found


def write_figures(root):
    """Write each figure to its file, remove files whose figure is gone; return the paths."""
    folder = Path(root) / FOLDER
    figures = stored_figures(root)
    for path in folder.glob("*.png"):
        if path.stem not in figures:
            path.unlink()
    if figures:
        folder.mkdir(parents=True, exist_ok=True)
    for name, (_, image) in figures.items():
        path = folder / f"{name}.png"
        if not path.exists() or path.read_bytes() != image:
            path.write_bytes(image)
    return sorted(folder / f"{name}.png" for name in figures)


def captioned(root):
    """{name under which a figure is lent: the name of its caption, which is its address} of all notebooks."""
    found = {}
    for path in Path(root, "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            metadata = cell["metadata"]
            if "figure" in metadata and "figure" in metadata.get("mystnb", {}):
                found[metadata["figure"]["name"]] = metadata["mystnb"]["figure"]["name"]
    return found


def number_figures(app, env):
    """In place of numbers that run through the whole book."""
    numbers, addresses, seen = {}, captioned(app.srcdir), defaultdict(int)
    pages = {
        page: counters["figure"] for page, counters in env.toc_fignumbers.items() if "figure" in counters
    }
    for page, figures in sorted(pages.items()):
        chapter = re.match(r"notebooks/(\d+)_", page)
        for count, figure in enumerate(figures, start=1):
            figures[figure] = (int(chapter.group(1)), seen[chapter.group(1)] + count) if chapter else (count,)
        if chapter:
            seen[chapter.group(1)] += len(figures)
            numbers |= figures
    for page, figures in pages.items():
        if page.startswith("notebooks/"):
            continue
        for node in env.get_doctree(page).findall(nodes.figure):
            image = next(node.findall(nodes.image), {"uri": ""})
            number = numbers.get(addresses.get(Path(image["uri"]).stem))
            if number and node["ids"] and node["ids"][0] in figures:
                figures[node["ids"][0]] = number
    return []


def setup(app):
    app.connect("builder-inited", lambda app: write_figures(app.srcdir))
    app.connect("env-get-updated", number_figures, priority=900)  # after Sphinx has numbered them
    return {"parallel_read_safe": True, "parallel_write_safe": True}
