"""The commands of `make book` and `make test`, in a small project: what they say, make and report."""

import os
import re
import shutil
import subprocess
import sys
from urllib.parse import unquote, urlsplit

import build
import environment
import notebook_tools as tools
import pytest
import run_tests
import small_project

pytestmark = pytest.mark.slow


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


def test_make_book_says_little(small, tmp_path, monkeypatch, capsys):
    copy = shutil.copytree(small, tmp_path / "project")
    notebook = copy / "notebooks" / "01_first.ipynb"
    notebook.write_text(notebook.read_text().replace("print(area(3))", "print(area(4))"))
    said = lines_of_setup(monkeypatch, capsys, tmp_path) + say(copy)
    assert len(said) <= 5 and all(said), said
    assert said[-3] == "execute: 1 stored, 0 failed"
    page = urlsplit(said[-1].rpartition(" ")[2])
    assert page.scheme == "file" and "A small book" in open(unquote(page.path), encoding="utf-8").read()


def test_asked_for_it_says_all(small):
    said = "\n".join(say(small, VERBOSE="1"))
    assert "all 2 notebooks are current" in said and "reading sources" in said and "build succeeded" in said


def test_a_figure_follows_its_notebook(small, tmp_path):
    """A page shows the image that the notebook stores now, not an older copy; without one the build fails."""
    project = shutil.copytree(small, tmp_path / "project")
    path, figure = project / "notebooks" / "01_first.ipynb", project / "book" / "_figures" / "line.png"
    before = figure.read_bytes()
    small_project.edit(project, "notebooks/01_first.ipynb", "plt.plot([1, 2])", "plt.plot([1, 2], color='black')")
    say(project)
    assert figure.read_bytes() != before
    notebook = tools.read(path)
    notebook["cells"][-1]["outputs"] = []
    tools.write(notebook, path)
    status, text = build.build(project)
    assert status != 0 and "0 stored images" in text


def test_a_failing_step_fails_the_run(tmp_path, monkeypatch, capsys):
    for name, number in (("good", 2), ("bad", 3)):
        (tmp_path / f"test_{name}.py").write_text(f"def test_{name}():\n    assert 1 + 1 == {number}\n")
    base = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    good, bad = ([*base, str(tmp_path / f"test_{name}.py")] for name in ("good", "bad"))
    monkeypatch.setattr(run_tests, "STEPS", {"good": lambda: [good], "bad": lambda: [good, bad]})
    monkeypatch.setattr(run_tests, "REPORT", tmp_path)
    monkeypatch.setattr(run_tests, "TIMES", tmp_path / "notebooks.xml")
    monkeypatch.setattr(sys, "argv", ["run_tests.py", "good"])
    assert run_tests.main() == 0
    monkeypatch.setattr(sys, "argv", ["run_tests.py", "bad", "good"])
    assert run_tests.main() == 1
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("===== FAILED: bad; 1 failed, 2 passed in ")
