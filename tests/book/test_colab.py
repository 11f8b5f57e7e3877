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
import notebook_checks
import notebook_tools as tools
import pytest
from bootstrap_cell import bootstrap_source, repository
from build import add_wheel
from environment import WHEELHOUSE

pytestmark = pytest.mark.slow


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
def bare_environment(tmp_path_factory):
    """A Python with nothing but what runs notebooks; no index, no dplib."""
    assert WHEELHOUSE.is_dir(), "make setup-test collects the wheels"
    folder = tmp_path_factory.mktemp("hosted") / "venv"
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, *"-m pip install -q --no-index nbclient ipykernel --find-links".split(), WHEELHOUSE)
    return python


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


def shortest():
    """The notebook with the smallest run-time budget."""
    return min(tools.chapters(), key=lambda path: notebook_checks.run_time_budget(tools.read(path)) or 1e9)


def executed(path, python, environment, tmp_path):
    """A copy of a notebook after it ran alone in an empty folder."""
    notebook = tmp_path / "empty folder" / path.name
    notebook.parent.mkdir()
    shutil.copy2(path, notebook)
    (tmp_path / "execute.py").write_text(matrix.EXECUTE)
    run(python, tmp_path / "execute.py", notebook, env=environment, cwd=notebook.parent)
    return tools.read(notebook)


def test_a_lone_notebook_installs_the_library_and_runs(remote, bare_environment, tmp_path):
    environment = circumstances(remote, tmp_path)
    before = subprocess.run([bare_environment, "-c", "import dplib"], env=environment, capture_output=True, cwd=tmp_path)
    assert before.returncode != 0, "dplib is there before the notebook ran"
    ran, stored = executed(shortest(), bare_environment, environment, tmp_path), tools.read(shortest())
    where = run(bare_environment, "-c", "import dplib; print(dplib.__file__)", env=environment, cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(bare_environment.parent.parent), where
    for mine, theirs in zip(tools.code_cells(ran), tools.code_cells(stored), strict=True):
        texts = ["".join(map(tools.output_text, cell["outputs"])) for cell in (mine, theirs)]
        assert texts[0] == texts[1], tools.source(mine)


def test_a_lone_exercise_notebook_runs_as_handed_out(remote, bare_environment, tmp_path):
    """Stubs raise nothing, and the checks work with what the package carries."""
    ran = executed(tools.exercises()[0], bare_environment, circumstances(remote, tmp_path), tmp_path)
    cells = [cell for cell in tools.code_cells(ran) if "course.check(" in tools.source(cell)]
    assert len(cells) >= 4
    for cell in cells:
        assert ": not yet. " in "".join(map(tools.output_text, cell["outputs"])), tools.source(cell)


def test_a_wheel_beside_the_notebook_comes_first(tmp_path):
    """No repository can be reached; the wheel is the one that the site has beside the notebooks."""
    run(sys.executable, "-m", "venv", "--system-site-packages", tmp_path / "venv")  # what is installed here stays importable
    python = tmp_path / "venv" / "bin" / "python"
    assert add_wheel(tools.ROOT, tmp_path) == []
    environment = circumstances("nowhere", tmp_path)
    # Without the finder of the outer environment's checkout dplib is not there.
    text = "import sys, importlib.util as u; sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f)]\n"
    (tmp_path / "cell.py").write_text(text + bootstrap_source() + "\nimport dplib; print(dplib.__file__)\n", encoding="utf-8")
    where = run(python, "cell.py", cwd=tmp_path, env=environment).strip().splitlines()[-1]
    assert Path(where).is_relative_to(tmp_path / "venv"), where


def test_another_package_of_that_name_is_named(tmp_path):
    """On the index dplib is another project: found where ours is not, it is said to be in the way."""
    (tmp_path / "dplib").mkdir()
    (tmp_path / "dplib" / "__init__.py").write_text("__version__ = '0.9'\n", encoding="utf-8")
    (tmp_path / "cell.py").write_text(bootstrap_source(), encoding="utf-8")
    done = subprocess.run([sys.executable, "-S", "cell.py"], cwd=tmp_path, env={}, capture_output=True, text=True)  # -S: without what is installed
    assert done.returncode == 1
    assert "ImportError: Another package named dplib is in the way: run `pip uninstall dplib`" in done.stderr
