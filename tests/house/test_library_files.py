"""A module in a sub-folder of the library is seen by everything that asks for its files."""

import importlib
import importlib.util
import shutil
import sys
from pathlib import Path

import fuzz_cases
import library_files
import pytest

import dplib
from dplib import lessons

ROOT = library_files.ROOT
PLANTED = '"""Nothing."""\n\n\ndef planted():\n    """Nothing."""\n'


def tool(path):
    """A script or test that is no part of the import path."""
    spec = importlib.util.spec_from_file_location(f"planted_{Path(path).stem}", ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def test_digests_of_the_source_change(copy, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")  # which study.py sets, as well as the threads
    study, common = tool("tools/study.py"), tool("benchmarks/_common.py")
    digests = {
        "study": lambda: study.versions()["dplib"],
        "benchmarks": common.dplib_state,
    }
    before = {name: digest() for name, digest in digests.items()}
    assert before == {name: digest() for name, digest in digests.items()}
    plant(copy)
    assert [name for name, digest in digests.items() if digest() == before[name]] == []


def test_public_modules_are_listed(copy):
    before = library_files.public_modules()
    assert before[0] == "dplib" and "dplib.lessons.studies" in before and "dplib.gaussian" in before
    assert not any("_" in part[0] for name in before for part in name.split("."))
    plant(copy)
    assert set(library_files.public_modules()) - set(before) == {"dplib.rooms", "dplib.lessons.planted"}
    (copy / "dplib" / "_hidden").mkdir()
    (copy / "dplib" / "_hidden" / "planted.py").write_text(PLANTED)
    assert "dplib._hidden.planted" not in library_files.public_modules()
