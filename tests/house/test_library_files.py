"""A module in a sub-folder of the library is seen by everything that asks for its files."""

import shutil
import sys

import fuzz_cases
import library_files
import pytest

import dplib
from dplib import lessons

ROOT = library_files.ROOT
PLANTED = '"""Nothing."""\n\n\ndef planted():\n    """Nothing."""\n'


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the library that the tools take for their own, and that can be imported beside it."""
    fuzz_cases.public_functions()  # what all modules import cannot be imported twice
    shutil.copytree(ROOT / "dplib", tmp_path / "dplib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(library_files, "ROOT", tmp_path)
    for package in (dplib, lessons):
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path.joinpath(*package.__name__.split(".")))])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def plant(copy):
    (copy / "dplib" / "lessons" / "planted.py").write_text(PLANTED)
    room = copy / "dplib" / "rooms"
    room.mkdir()
    (room / "__init__.py").write_text('"""A room."""\n')
    (room / "inner.py").write_text(PLANTED)


def test_public_modules_are_listed(copy):
    before = library_files.public_modules()
    assert before[0] == "dplib" and "dplib.lessons.studies" in before and "dplib.gaussian" in before
    assert not any("_" in part[0] for name in before for part in name.split("."))
    plant(copy)
    assert set(library_files.public_modules()) - set(before) == {"dplib.rooms", "dplib.lessons.planted"}
    (copy / "dplib" / "_hidden").mkdir()
    (copy / "dplib" / "_hidden" / "planted.py").write_text(PLANTED)
    assert "dplib._hidden.planted" not in library_files.public_modules()
