"""Figures computed by notebooks, for pages without code.

A code cell with the metadata `"figure": {"name": "growth"}` lends its stored image to the prose pages:
before the pages are read, the image is written to `book/_figures/growth.png`, so that
`![what the figure shows](_figures/growth.png)` in `book/*.md` always shows the stored output.
"""

import base64
import json
import re
from pathlib import Path

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


def setup(app):
    app.connect("builder-inited", lambda app: write_figures(app.srcdir))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
