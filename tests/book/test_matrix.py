"""make matrix: it names the Pythons that are missing and fails, and tells a difference from none."""

import copy
import subprocess
import sys

import matrix
import notebook_tools as tools

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
    told = subprocess.run([matrix.find_python(HERE), "--version"], capture_output=True, text=True, check=True).stdout
    assert told.startswith(f"Python {HERE}.")
    assert matrix.find_python("3.99") is None


def test_a_missing_python_is_named_and_fails(tmp_path):
    done = run("--python", "3.99", "--output", tmp_path)
    assert done.returncode == 1
    assert "3.99" in done.stdout and "not on this machine" in done.stdout


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
