"""Binder: the button opens the notebook of the page, and what it installs is what the chapters import."""

import ast
import re
import sys
import tomllib

import notebook_tools as tools
import pytest

# Import name -> distribution, where they differ.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "dp_accounting": "dp-accounting"}
PROJECT = tomllib.loads((tools.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Asked where they are installed; elsewhere the chapter on symptoms quotes what they say.
QUOTED = {"opacus", "PLD_accounting"}


def installed():
    """Distributions that `.[book]` brings, by name."""
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["book"]]
    return {re.match(r"[\w.-]+", requirement).group() for requirement in wanted}


def imported(path):
    """Distributions that a notebook imports, dplib and the standard library left out."""
    names = set()
    for cell in tools.code_cells(tools.read(path)):
        source = re.sub(r"^[%!].*$", "pass", tools.source(cell), flags=re.MULTILINE)
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module.split(".")[0])
    names -= {"dplib", *QUOTED, *sys.stdlib_module_names}
    return {DISTRIBUTIONS.get(name, name) for name in names}


def test_binder_installs_the_library_with_the_needs_of_the_chapters():
    lines = (tools.ROOT / ".binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == [".[book]"]
    runtime = (tools.ROOT / ".binder" / "runtime.txt").read_text(encoding="utf-8").strip()
    assert f"Programming Language :: Python :: {runtime.removeprefix('python-')}" in PROJECT["classifiers"]


@pytest.mark.parametrize("path", tools.notebooks(), ids=lambda path: path.stem)
def test_the_extra_holds_what_a_notebook_imports(path):
    assert imported(path) <= installed()


