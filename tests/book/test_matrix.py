"""make matrix: it names the Pythons that are missing and fails, and tells a difference from none."""

import copy
import subprocess
import sys

import matrix
import notebook_tools as tools
import pytest

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
CHAPTER = tools.chapters()[0]


def run(*arguments):
    return subprocess.run(
        [sys.executable, tools.ROOT / "tools" / "matrix.py", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_this_python_is_found():
    assert matrix.is_version(matrix.find_python(HERE), HERE)
    assert matrix.find_python("3.99") is None


def test_a_missing_python_is_named_and_fails(tmp_path):
    done = run("--python", "3.99", "--output", tmp_path)
    assert done.returncode == 1
    assert "3.99" in done.stdout and "not on this machine" in done.stdout


def test_nothing_run_is_no_success(tmp_path):
    assert run("--python", "3.99", "--skip-missing", "--output", tmp_path).returncode == 1


def test_an_unknown_notebook_is_refused():
    done = run("99_nothing")
    assert done.returncode == 2 and "no notebook 99_nothing" in done.stderr


def test_a_command_that_fails_or_hangs_is_told():
    with pytest.raises(matrix.Failed, match="the reason"):
        matrix.run(sys.executable, "-c", "raise SystemExit('the reason')")
    with pytest.raises(matrix.Failed, match="more than 1 s"):
        matrix.run(sys.executable, "-c", "import time; time.sleep(30)", timeout=1)


def test_differences_of_outputs_are_counted():
    stored = tools.read(CHAPTER)
    assert matrix.different_cells(stored, stored) == []
    other = copy.deepcopy(stored)
    cells = tools.code_cells(other)
    number = next(n for n, cell in enumerate(cells) if n and any("text" in out for out in cell["outputs"]))
    next(out for out in cells[number]["outputs"] if "text" in out)["text"] = "something else\n"
    assert [found[0] for found in matrix.different_cells(other, stored)] == [number + 1]


def test_every_supported_python_is_in_the_matrix():
    text = (tools.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for version in matrix.VERSIONS:
        assert f"Programming Language :: Python :: {version}" in text
