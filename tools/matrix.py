"""Open every notebook alone, as on Colab, with several versions of Python.

    python -m tools matrix [NAME …] [--python 3.11 3.12 3.13] [--skip-missing]

Each notebook is copied into an empty folder and run from the top in a fresh environment that holds only what
Colab is known to have: NumPy, SciPy, Matplotlib and JAX at whatever versions fit. Its first cell fetches the
rest; a bare git repository made of the working tree stands in for the remote one. Printed, and written to
_build/matrix.txt and .json: whether it ran through, whether its outputs are the stored ones, and how long it took.

A Python that is not on this machine is named, and the run fails, unless --skip-missing says otherwise.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import notebook_tools as tools
from bootstrap_cell import repository
from tqdm import tqdm

ROOT = tools.ROOT
NOTEBOOKS = ROOT / "notebooks"
VERSIONS = ("3.11", "3.12", "3.13")
PREINSTALLED = ("numpy", "scipy", "matplotlib", "jax")
RUNNER = ("ipykernel", "nbclient")
LONGEST = 1800  # seconds for one notebook
PACKED = ("pyproject.toml", "README.md", "LICENSE")  # what dplib is built from, beside itself
EXECUTE = """\
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=None, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[1])
"""
UV = [sys.executable, "-m", "uv"]


class Failed(Exception):
    """A step did not work; the message is the end of what it printed."""


def run(*command, timeout=900, **keywords):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **keywords)
    except subprocess.TimeoutExpired:
        raise Failed(f"took more than {timeout} s") from None
    if done.returncode:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise Failed(lines[-1] if lines else f"exit status {done.returncode}")
    return done.stdout


def find_python(version):
    """Path of a Python of that version, or None: uv looks for it."""
    found = subprocess.run([*UV, "python", "find", "--no-project", version], capture_output=True, text=True, cwd=tempfile.gettempdir())
    return found.stdout.strip() or None


def snapshot(folder):
    """A bare repository whose one commit is the working tree, as far as dplib needs it."""
    tree, bare = folder / "tree", folder / "remote.git"
    tree.mkdir()
    for name in PACKED:
        shutil.copy2(ROOT / name, tree / name)
    shutil.copytree(ROOT / "dplib", tree / "dplib", ignore=shutil.ignore_patterns("__pycache__"))
    git = ["git", "-C", tree, "-c", "user.name=matrix", "-c", "user.email=matrix@localhost"]
    run("git", "init", "-q", "-b", repository()[1], tree)
    run(*git, "add", ".")
    run(*git, "commit", "-q", "-m", "snapshot")
    run("git", "clone", "-q", "--bare", tree, bare)
    return bare


def circumstances(remote):
    """This machine's environment without its Python, the remote address turned to the stand-in."""
    own = ("PYTHON", "VIRTUAL_ENV", "JUPYTER")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return environment | {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{remote}.insteadOf",
        "GIT_CONFIG_VALUE_0": repository()[0],
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def different_cells(ran, stored):
    """[(number, text now, text stored)] of the cells that print something else; the set-up cell may, it installs."""
    printed = lambda cell: "".join(map(tools.output_text, cell["outputs"]))
    texts = [map(printed, tools.code_cells(notebook)) for notebook in (ran, stored)]
    pairs = enumerate(zip(*texts, strict=True), start=1)
    return [(number, mine, theirs) for number, (mine, theirs) in pairs if mine != theirs and number > 1]


def open_alone(notebook, python, remote, folder):
    """Run one notebook in a fresh environment; return its row of the table."""
    environment, start = circumstances(remote), time.monotonic()
    copy = folder / "empty folder" / notebook.name
    copy.parent.mkdir()
    shutil.copy2(notebook, copy)
    stored = tools.read(copy)  # now: the original may be written anew while the copy runs
    (folder / "execute.py").write_text(EXECUTE)
    name = notebook.relative_to(NOTEBOOKS).with_suffix("").as_posix()
    row = {"notebook": name, "result": "ok", "different cells": None, "versions": {}}
    try:
        run(*UV, "venv", "-q", "--seed", "--python", python, folder / "venv")
        inside = folder / "venv" / "bin" / "python"
        run(*UV, "pip", "install", "-q", "--python", inside, *PREINSTALLED, *RUNNER)
        names = ("numpy", "scipy", "jax")
        listed = f"import importlib.metadata as m; print(*(m.version(name) for name in {names}))"
        row["versions"] = dict(zip(names, run(inside, "-c", listed, env=environment).split()))
        run(inside, folder / "execute.py", copy, env=environment, cwd=copy.parent, timeout=LONGEST)
        different = different_cells(tools.read(copy), stored)
        row["different cells"] = len(different)
        row["differences"] = [[number, mine[:400], theirs[:400]] for number, mine, theirs in different]
    except Failed as error:
        row["result"] = f"FAILED: {error}"
    return row | {"seconds": round(time.monotonic() - start)}


def table(rows, missing):
    lines = [f"{'Python':8}{'notebook':32}{'result':10}{'cells that differ':>18}{'seconds':>9}  versions"]
    for row in rows:
        versions = ", ".join(f"{name} {version}" for name, version in row["versions"].items())
        differ = "-" if row["different cells"] is None else row["different cells"]
        result, _, reason = row["result"].partition(": ")
        lines.append(f"{row['python']:8}{row['notebook']:32}{result:10}{differ:>18}{row['seconds']:>9}  {versions}")
        lines += [f"{'':8}{reason[:150]}"] if reason else []
    lines += [f"{version:8}not on this machine" for version in missing]
    return "\n".join(lines)


def write(rows, missing, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "matrix.txt").write_text(table(rows, missing) + "\n", encoding="utf-8")
    (folder / "matrix.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def main():
    notebooks = {path.relative_to(NOTEBOOKS).with_suffix("").as_posix(): path for path in tools.notebooks()}
    chapters = [path.stem for path in tools.chapters()]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="such as 05_group_privacy or solutions/05_group_privacy (default: all chapters)")
    parser.add_argument("--python", nargs="+", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--skip-missing", action="store_true", help="do not fail for a Python that is not here")
    parser.add_argument("--output", type=Path, default=ROOT / "_build")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in notebooks]
    if unknown:
        parser.error(f"no notebook {', '.join(unknown)}; there are {', '.join(notebooks)}")
    chosen = [notebooks[name] for name in arguments.names or chapters]
    pythons = {version: find_python(version) for version in arguments.python}
    missing = [version for version, path in pythons.items() if path is None]
    tasks = [(version, path, book) for version, path in pythons.items() if path for book in chosen]
    rows = []
    with tempfile.TemporaryDirectory() as base:
        remote = snapshot(Path(base))
        progress = tqdm(tasks, unit="notebook")
        for number, (version, python, notebook) in enumerate(progress):
            progress.set_description(f"{version} {notebook.stem}")
            folder = Path(base) / str(number)
            folder.mkdir()
            rows.append({"python": version} | open_alone(notebook, python, remote, folder))
            shutil.rmtree(folder)
            write(rows, missing, arguments.output)
    print(table(rows, missing))
    bad = [row for row in rows if row["result"] != "ok"]
    print(f"{len(rows) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad or not rows or (missing and not arguments.skip_missing) else 0


if __name__ == "__main__":
    sys.exit(main())
