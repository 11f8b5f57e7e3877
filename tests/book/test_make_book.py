"""What `make book` makes of a changed figure in a small project, and `make test` of a step that fails."""

import base64
import os
import shutil
import sys

import notebook_figures
import notebook_tools as tools
import pytest
import run_tests
from sphinx.errors import ExtensionError

pytestmark = pytest.mark.slow


def test_a_figure_follows_its_notebook(small, tmp_path):
    """A page shows the image that the notebook stores now, not an older copy (test_build.py shows it); without one the build fails."""
    project = shutil.copytree(small, tmp_path / "project")
    path, figure = project / "notebooks" / "01_first.ipynb", project / "book" / "_figures" / "line.png"
    assert figure.is_file()  # written when `small` was built
    notebook = tools.read(path)
    [output] = notebook["cells"][-1]["outputs"]
    output["data"]["image/png"] = base64.b64encode(b"another one").decode()
    tools.write(notebook, path)
    assert notebook_figures.write_figures(project) == [figure] and figure.read_bytes() == b"another one"
    notebook["cells"][-1]["outputs"] = []
    tools.write(notebook, path)
    with pytest.raises(ExtensionError, match="0 stored images"):
        notebook_figures.write_figures(project)


def test_a_failing_step_fails_the_run(tmp_path, monkeypatch, capsys):
    for name, number in (("good", 2), ("bad", 3)):
        (tmp_path / f"test_{name}.py").write_text(f"def test_{name}():\n    assert 1 + 1 == {number}\n")
    base = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    good, bad = (str(tmp_path / f"test_{name}.py") for name in ("good", "bad"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # which take a second each
    monkeypatch.setattr(run_tests, "STEPS", {"good": lambda: [*base, good], "bad": lambda: [*base, good, bad]})
    monkeypatch.setattr(sys, "argv", ["run_tests.py", "bad", "good"])
    assert run_tests.main() == 1
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("===== FAILED: bad; 1 failed, 2 passed in ")
