"""A lone notebook where nothing is installed: its first cell fetches dplib from the repository.

A local git repository made from the working tree stands in for the remote one; git is told to go there
whenever the real address is asked for. Wheels come from a folder, so that nothing else can be fetched.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import matrix
import notebook_tools as tools
import pytest
from bootstrap_cell import bootstrap_source, repository
from build import add_wheel
from environment import WHEELHOUSE

pytestmark = pytest.mark.slow
CHAPTER = tools.ROOT / "notebooks" / "01_hockey_stick.ipynb"
LEFT_OUT = "tqdm"  # of what the chapters need
PIP = [sys.executable, "-m", "uv", "pip"]


def run(*command, **kwargs):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=900, **kwargs
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


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


def places(python, environment, folder):
    """Where the environment has dplib and what was left out of it, of those that it has."""
    code = f"import importlib.util as u; print(*(spec.origin for spec in map(u.find_spec, ('dplib', {LEFT_OUT!r})) if spec), sep='\\n')"
    return [Path(line) for line in run(python, "-c", code, env=environment, cwd=folder).splitlines() if line]


def both_are_inside(python, environment, folder):
    found = places(python, environment, folder)
    return len(found) == 2 and all(path.is_relative_to(python.parent.parent) for path in found)


def circumstances(remote, home, **extra):
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
        **extra,
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
    assert places(hosted, environment, tmp_path) == [], "dplib is there before the notebook ran"
    ran, stored = executed(CHAPTER, hosted, environment, tmp_path), tools.read(CHAPTER)
    assert both_are_inside(hosted, environment, tmp_path)
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
    assert places(hosted, environment, tmp_path) == [] and add_wheel(tools.ROOT, tmp_path) == []
    (tmp_path / "cell.py").write_text(bootstrap_source() + "\nimport dplib\n", encoding="utf-8")
    run(hosted, "cell.py", cwd=tmp_path, env=environment)
    assert both_are_inside(hosted, environment, tmp_path)


def test_another_package_of_that_name_is_named(tmp_path):
    """On the index dplib is another project: found where ours is not, it is said to be in the way."""
    (tmp_path / "dplib").mkdir()
    (tmp_path / "dplib" / "__init__.py").write_text("__version__ = '0.9'\n", encoding="utf-8")
    (tmp_path / "cell.py").write_text(bootstrap_source(), encoding="utf-8")
    done = subprocess.run([sys.executable, "-S", "cell.py"], cwd=tmp_path, env={}, capture_output=True, text=True)  # -S: without what is installed
    assert done.returncode == 1
    assert "ImportError: Another package named dplib is in the way: run `pip uninstall dplib`" in done.stderr
