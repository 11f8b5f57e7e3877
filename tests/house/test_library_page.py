"""The code on the page book/library.md runs as printed, and the page names what the library offers."""

import importlib
import re
import tomllib

from folders import ROOT
from library_files import public_modules

import dplib

PAGE = (ROOT / "book" / "library.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_block_runs_in_order():
    """A later block may use the names of an earlier one, as a reader would."""
    assert len(BLOCKS) >= 2
    names = {}
    for block in BLOCKS:
        exec(compile(block, "book/library.md", "exec"), names)
    assert names["quieter"].noise_multiplier > names["training"].noise_multiplier


def test_public_names_are_exactly_those_of_the_page():
    table = PAGE.split("## Public names")[1].split("##")[0]
    named = set(re.findall(r"^\| `dplib\.(\w+)`", table, re.MULTILINE))
    assert named == set(dplib.__all__)


def test_every_name_on_the_page_exists():
    names = set(re.findall(r"`(dplib(?:\.\w+)+)", PAGE))
    assert len(names) > 10
    for name in names:
        module, _, attribute = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ImportError:
            assert hasattr(importlib.import_module(module), attribute), name


def test_every_module_is_on_the_page():
    missing = {name for name in public_modules() if f"`{name}`" not in PAGE}
    assert not missing, missing


def test_the_floors_are_those_that_import_linter_checks():
    """Room by room, from the top; the lowest layer is private."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = [set(layer.split(" | ")) for layer in next(one["layers"] for one in contracts if one["id"] == "rooms")]
    shown = {}
    for floor, rooms in re.findall(r"^\| (\d) \| ([^|]*) \|", PAGE, re.MULTILINE):
        shown.setdefault(int(floor), set()).update(re.findall(r"`dplib\.(\w+)`", rooms))
    assert [shown[floor] for floor in sorted(shown, reverse=True)] == layers[:-1]
