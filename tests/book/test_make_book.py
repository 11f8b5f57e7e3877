"""`make book` says in at most five lines what it did, the address of the book last; all the rest only when it is asked for."""

import os
import re
import shutil
import subprocess
import sys
from urllib.parse import unquote, urlsplit

import environment
import notebook_tools as tools
import pytest
import small_project

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return small_project.executed(tmp_path_factory.mktemp("small") / "project")


def lines_of_setup(monkeypatch, capsys, folder):
    """What the longest set-up says: an environment that does not work, and packages to be installed."""
    (folder / "venv").mkdir()
    monkeypatch.setattr(environment, "VENV", folder / "venv")
    monkeypatch.setattr(environment, "works", lambda python: False)
    monkeypatch.setattr(environment, "run", lambda *command, **_: bool((folder / "venv").mkdir(exist_ok=True)) or True)
    monkeypatch.setattr(sys, "argv", ["environment.py", "book"])
    assert environment.main() == 0
    return capsys.readouterr().out.splitlines()


def say(project, **variables):
    """Everything that the commands of `make book` after the set-up say, in a project with a stale notebook."""
    recipe = re.search(r"(?m)^book:.*\n((?:\t.*\n)+)", (tools.ROOT / "Makefile").read_text(encoding="utf-8")).group(1)
    commands = re.findall(r"\$\(TOOL\) (\w+)$", recipe, re.MULTILINE)
    assert commands == ["execute", "build"] and all(line.startswith("\t@") for line in recipe.splitlines())
    said = ""
    for command, option in zip(commands, ("--root", "--source")):
        script = tools.ROOT / "tools" / f"{command}.py"
        done = subprocess.run(
            [sys.executable, str(script), option, str(project)],
            env={key: value for key, value in os.environ.items() if key != "VERBOSE"} | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout
        said += done.stdout
    return said.splitlines()


def test_make_book_says_little(project, tmp_path, monkeypatch, capsys):
    copy = shutil.copytree(project, tmp_path / "project")
    notebook = copy / "notebooks" / "01_first.ipynb"
    notebook.write_text(notebook.read_text().replace("print(area(3))", "print(area(4))"))
    said = lines_of_setup(monkeypatch, capsys, tmp_path) + say(copy)
    assert len(said) <= 5 and all(said), said
    assert said[-3] == "execute: 1 stored, 0 failed"
    page = urlsplit(said[-1].rpartition(" ")[2])
    assert page.scheme == "file" and "A small book" in open(unquote(page.path), encoding="utf-8").read()


def test_asked_for_it_says_all(project):
    said = "\n".join(say(project, VERBOSE="1"))
    assert "all 2 notebooks are current" in said and "reading sources" in said and "build succeeded" in said
