"""A lone notebook where nothing is installed: its first cell fetches dplib from the repository.

A local git repository made from the working tree stands in for the remote one; git is told to go there
whenever the real address is asked for. Wheels come from a folder, so that nothing else can be fetched.
"""

import os
import shutil
import subprocess
import sys

import matrix
import notebook_tools as tools
import pytest
from bootstrap_cell import bootstrap_source, repository
from build import add_wheel
from environment import WHEELHOUSE
from matrix import run

pytestmark = pytest.mark.slow
CHAPTER = tools.ROOT / "notebooks" / "01_hockey_stick.ipynb"
LEFT_OUT = "tqdm"  # of what the chapters need
PIP = [sys.executable, "-m", "uv", "pip"]


@pytest.fixture(scope="module")
def remote(tmp_path_factory):
    """A bare repository whose one commit is the working tree."""
    return matrix.snapshot(tmp_path_factory.mktemp("remote"))


@pytest.fixture(scope="module")
def hosted(tmp_path_factory):
    """A Python with what runs notebooks and what pyproject.toml says that chapters need, one package left out; no index, no dplib.

    By uv: pip would take most of a minute, and is asked for dplib and what is left out alone.
    """
    assert WHEELHOUSE.is_dir(), "make setup-test collects the wheels"
    folder = tmp_path_factory.mktemp("hosted") / "venv"
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    needed = ["nbclient", "ipykernel", "-r", tools.ROOT / "pyproject.toml", "--extra", "book"]
    run(*PIP, "install", "-q", "--no-index", "--find-links", WHEELHOUSE, "--python", python, *needed)
    run(*PIP, "uninstall", "-q", "--python", python, LEFT_OUT)
    return python


def inside(python, environment, folder):
    """Which of dplib and what was left out of the environment it has."""
    asked = f"for name in ('dplib', {LEFT_OUT!r}) if (found := find_spec(name)) and found.origin.startswith(sys.prefix)"
    code = f"import sys; from importlib.util import find_spec; print(*(name {asked}))"
    return run(python, "-c", code, env=environment, cwd=folder).split()


def circumstances(remote, home):
    """The environment of the lone notebook: no settings of the user, no index, one redirected address."""
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(WHEELHOUSE),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_COMPILE": "1",  # most of what is installed is never imported here
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{remote}.insteadOf",
        "GIT_CONFIG_VALUE_0": repository()[0],
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def executed(path, python, environment, tmp_path):
    """A copy of a notebook after it ran alone in an empty folder."""
    notebook = tmp_path / "empty folder" / path.name
    notebook.parent.mkdir()
    shutil.copy2(path, notebook)
    (tmp_path / "execute.py").write_text(matrix.EXECUTE)
    run(python, tmp_path / "execute.py", notebook, env=environment, cwd=notebook.parent)
    return tools.read(notebook)


def test_a_lone_notebook_installs_the_library_and_runs(remote, hosted, tmp_path):
    environment = circumstances(remote, tmp_path)
    assert inside(hosted, environment, tmp_path) == [], "they are there before the notebook ran"
    ran, stored = executed(CHAPTER, hosted, environment, tmp_path), tools.read(CHAPTER)
    assert inside(hosted, environment, tmp_path) == ["dplib", LEFT_OUT]
    for mine, theirs in zip(tools.code_cells(ran), tools.code_cells(stored), strict=True):
        texts = ["".join(map(tools.output_text, cell["outputs"])) for cell in (mine, theirs)]
        assert texts[0] == texts[1], tools.source(mine)


def test_a_lone_exercise_notebook_runs_as_handed_out(remote, hosted, tmp_path):
    """Stubs raise nothing, and the checks work with what the package carries."""
    ran = executed(tools.exercises()[0], hosted, circumstances(remote, tmp_path), tmp_path)
    cells = [cell for cell in tools.code_cells(ran) if "course.check(" in tools.source(cell)]
    assert len(cells) >= 4
    for cell in cells:
        assert ": not yet. " in "".join(map(tools.output_text, cell["outputs"])), tools.source(cell)


def test_a_wheel_beside_the_notebook_comes_first(hosted, tmp_path):
    """No repository can be reached; the wheel is the one that the site has beside the notebooks."""
    run(*PIP, "uninstall", "-q", "--python", hosted, "privacy-amplification", LEFT_OUT)
    environment = circumstances("nowhere", tmp_path)
    assert inside(hosted, environment, tmp_path) == [] and add_wheel(tools.ROOT, tmp_path) == []
    (tmp_path / "cell.py").write_text(bootstrap_source() + "\nimport dplib\n", encoding="utf-8")
    run(hosted, "cell.py", cwd=tmp_path, env=environment)
    assert inside(hosted, environment, tmp_path) == ["dplib", LEFT_OUT]


def test_another_package_of_that_name_is_named(tmp_path):
    """On the index dplib is another project: found where ours is not, it is said to be in the way."""
    (tmp_path / "dplib").mkdir()
    (tmp_path / "dplib" / "__init__.py").write_text("__version__ = '0.9'\n", encoding="utf-8")
    (tmp_path / "cell.py").write_text(bootstrap_source(), encoding="utf-8")
    done = subprocess.run([sys.executable, "-S", "cell.py"], cwd=tmp_path, env={}, capture_output=True, text=True)  # -S: without what is installed
    assert done.returncode == 1
    assert "ImportError: Another package named dplib is in the way: run `pip uninstall dplib`" in done.stderr
