"""A project small enough to be broken on purpose: a library of a few modules, two notebooks, two pages."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import notebook_tools as tools
from bootstrap_cell import bootstrap_source
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from set_repository import set_repository

ROOT = tools.ROOT
PAGES = Path(__file__).with_name("small")
ADDRESS = "https://github.com/someone/book"

INIT = '"""A small library."""\n\nimport importlib\n\n_HOMES = {"area": ".shapes", "share": ".bins"}\n\n\ndef __getattr__(name):\n    if name not in _HOMES:\n        raise AttributeError(name)\n    return getattr(importlib.import_module(_HOMES[name], __name__), name)\n'
SHAPES = '"""Shapes."""\n\nfrom .numbers import square\n\n\ndef area(side):\n    """Area of a square."""\n    return square(side)\n'
NUMBERS = '"""Numbers."""\n\n\ndef square(number):\n    return number * number\n'
BINS = '"""Bins: the second notebook alone loads them."""\n\nfrom . import numbers, tables\n\n\ndef share(number):\n    return numbers.square(number) / tables.load()["bins"]\n'
TABLES = '"""Data."""\n\nimport json\nfrom importlib import resources\n\n\ndef load():\n    return json.loads(resources.files(__name__).joinpath("bins.json").read_text())\n'
LIBRARY = {
    "__init__.py": INIT,
    "shapes.py": SHAPES,
    "numbers.py": NUMBERS,
    "bins.py": BINS,
    "tables/__init__.py": TABLES,
    "tables/bins.json": '{"bins": 2}\n',
}

def notebook(title, body):
    """A notebook that keeps every rule; `body` is the source of its last cell."""
    cells = [
        new_markdown_cell(
            f"# {title}\n\nOne sentence.\n\n**Reading time** 1 min · **Run time** under 60 s · **Needs** nothing",
            id="title",
        ),
        new_code_cell(bootstrap_source(), id="bootstrap"),
        new_code_cell("from dplib import area", id="imports"),
        new_markdown_cell("## The statement\n\n[G-1] For every $a$, $a^2 \\ge 0$.", id="statement"),
        new_code_cell(body, id="body"),
    ]
    return new_notebook(cells=cells, metadata={"kernelspec": tools.KERNEL})


def make(folder):
    """Write the project; nothing is executed yet."""
    folder = Path(folder)
    for name in ("book", "notebooks", "dplib/tables", "tests"):
        (folder / name).mkdir(parents=True)
    for name in ("_config.yml", "pyproject.toml", "CITATION.cff", "README.md"):
        shutil.copy2(ROOT / name, folder / name)
    for name in ("book/_ext", "book/_static"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tools").mkdir()
    shutil.copy2(ROOT / "tools" / "library_files.py", folder / "tools")  # which the extensions use
    (folder / "book" / "references.bib").write_text("")
    shutil.copy2(PAGES / "_toc.yml", folder)
    for name in ("intro.md", "theorems.md"):
        shutil.copy2(PAGES / name, folder / "book")
    (folder / "tests" / "test_numbers.py").write_text("def test_square():\n    assert True\n")
    for name, text in LIBRARY.items():
        (folder / "dplib" / name).write_text(text)
    first = notebook("1. First", "assert area(3) == 9\nprint(area(3))")
    picture = new_code_cell(
        "import matplotlib.pyplot as plt\n\n_ = plt.plot([1, 2])\nplt.show()",
        id="picture",
        metadata={
            "figure": {"name": "line"},
            "mystnb": {
                "figure": {
                    "caption": "The line rises from $1$ to $2$. Plotted are two numbers against their place in the list.",
                    "name": "fig-1-line",
                },
                "image": {"alt": "A straight line that rises from one to two"},
            },
        },
    )
    first["cells"].append(picture)
    second = notebook("2. Second", "from dplib import share\n\nassert area(2) == 4 and share(2) == 2\nprint(area(2))")
    nbformat.write(first, folder / "notebooks" / "01_first.ipynb")
    nbformat.write(second, folder / "notebooks" / "02_second.ipynb")
    return folder


def edit(folder, file, old, new):
    """Replace a text in a file of a project; it must be there."""
    path = Path(folder) / file
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{file} does not contain {old!r}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def executed(folder):
    """The project with an address and stored outputs."""
    folder = make(folder)
    set_repository(folder, ADDRESS)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "execute.py"), "--root", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
