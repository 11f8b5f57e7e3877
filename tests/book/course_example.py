"""A made-up chapter with two exercises, small enough to be broken on purpose."""

import json
import shutil
from pathlib import Path

import nbformat
import notebook_tools as tools
from bootstrap_cell import bootstrap_source
from nbformat.v4 import new_markdown_cell, new_notebook

STEM = "01_coins"
PAGE = "# Exercises\n\n<!-- list: begin -->\n\n<!-- list: end -->\n\nThe end.\n"
CHAPTER = "# 1. Coins\n\n## Exercises\n\n1. *By hand.* Heads.\n2. *Code.* An area.\n3. *Open.* A number.\n\n## Further reading\n\n4. No exercise."
CELLS = Path(__file__).parent / "small" / "coins.json"


def cells():
    """The cells of the solutions notebook, by name."""
    found = {cell["id"]: nbformat.from_dict(cell) for cell in json.loads(CELLS.read_text(encoding="utf-8"))}
    found["bootstrap"]["source"] = bootstrap_source()
    return found


def write(root, made=None):
    """Write the chapter and its solutions; return the path of the solutions."""
    folder = root / "notebooks" / "solutions"
    for needed in (folder, root / "book"):
        needed.mkdir(parents=True, exist_ok=True)
    shutil.copy2(tools.ROOT / "_config.yml", root)
    (root / "book" / "exercises.md").write_text(PAGE)
    chapter = new_notebook(cells=[new_markdown_cell(CHAPTER, id="chapter")], metadata={"kernelspec": tools.KERNEL})
    nbformat.write(chapter, root / "notebooks" / f"{STEM}.ipynb")
    solutions = new_notebook(cells=list((made or cells()).values()), metadata={"kernelspec": tools.KERNEL})
    tools.write(solutions, folder / f"{STEM}.ipynb")
    return folder / f"{STEM}.ipynb"
