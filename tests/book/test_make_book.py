"""What `make book` makes of a changed figure, and `make test` of a step that fails, in a small project."""

import os
import shutil
import subprocess
import sys

import build
import notebook_tools as tools
import pytest
import run_tests
import small_project

pytestmark = pytest.mark.slow


def test_a_figure_follows_its_notebook(small, tmp_path):
    """A page shows the image that the notebook stores now, not an older copy; without one the build fails."""
    project = shutil.copytree(small, tmp_path / "project")
    path, figure = project / "notebooks" / "01_first.ipynb", project / "book" / "_figures" / "line.png"
    before = figure.read_bytes()
    small_project.edit(project, "notebooks/01_first.ipynb", "plt.plot([1, 2])", "plt.plot([1, 2], color='black')")
    done = subprocess.run([sys.executable, tools.ROOT / "tools" / "execute.py", "--root", project], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert build.build(project)[0] == 0 and figure.read_bytes() != before
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
    monkeypatch.setattr(sys, "argv", ["run_tests.py", "bad", "good"])
    assert run_tests.main() == 1
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("===== FAILED: bad; 1 failed, 2 passed in ")
