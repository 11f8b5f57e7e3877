"""Run notebooks and store their outputs.

    python -m tools execute                    those whose code, or the library they use, changed
    python -m tools execute --force [PATH …]   these, or all, in any case
    python -m tools execute --check            run nothing; exit 1 if one is stale

Two notebooks run at a time. Each is written, in one move, as soon as it is done: an interrupted run goes on
where it stopped. A notebook that raises, writes to stderr, or prints a timing, a path or a date is not
written, and the exit status is 1. A second run of the same code writes the same bytes. What a notebook depends on
is written to notebooks/stamps.json: see tools/stamps.py.

One line says how many ran, one each what failed.
"""

import argparse
import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import nbformat
import notebook_tools as tools
import stamps
from library_files import PACKAGE
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from tqdm import tqdm

LONGEST = 1200  # seconds for one cell
# Runs after the last cell and is not stored: the files of the library's modules that were loaded.
LOADED = f"""\
import json, sys
print()
print(json.dumps([module.__file__ for name, module in list(sys.modules.items())
                  if name.split(".")[0] == "{PACKAGE}" and getattr(module, "__file__", None)]))
"""


class NotebookError(Exception):
    """A notebook cannot be stored; the message says why."""


def execute(path, root):
    """Run one notebook and store it. Raises NotebookError if it may not be stored."""
    before = path.read_bytes()
    notebook, known = tools.read(path), stamps.contents(root)
    for cell in tools.code_cells(notebook):
        cell["outputs"], cell["execution_count"] = [], None
    notebook["metadata"]["kernelspec"] = nbformat.from_dict(tools.KERNEL)
    asking = nbformat.v4.new_code_cell(LOADED)
    notebook["cells"].append(asking)
    client = NotebookClient(
        notebook,
        timeout=LONGEST,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        allow_errors=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
        raise NotebookError("raises\n" + "\n".join(plain.splitlines()[-25:])) from None
    except CellTimeoutError:
        raise NotebookError(f"a cell took longer than {LONGEST} s") from None
    except DeadKernelError:
        raise NotebookError("the kernel died (out of memory?)") from None

    notebook["cells"].pop()
    library = _library(notebook, asking, known)
    problems = tools.output_problems(notebook)
    if problems:
        raise NotebookError("outputs that may not be stored\n  " + "\n  ".join(problems))
    notebook = tools.normalise(notebook)
    if not set(library) <= set(stamps.contents(root).values()):
        raise NotebookError("the library changed while the notebook ran; run again")
    if path.read_bytes() != before:
        raise NotebookError("the file changed while it ran; run again")
    try:
        tools.write(notebook, path)
        stamps.store(path, library, root)
    except OSError as error:
        raise NotebookError(f"cannot be written ({error}); the old outputs are as they were") from None


def _library(notebook, asking, known):
    """The contents that the notebook depends on: those of the modules that its kernel had loaded when it ended.

    What worker processes load nobody sees: a notebook that starts some depends on the whole library.
    """
    printed = "".join(output["text"] for output in asking["outputs"] if output.get("name") == "stdout")
    loaded = {Path(file).resolve() for file in json.loads(printed.splitlines()[-1])}
    foreign = sorted(str(file) for file in loaded - known.keys())
    if foreign:
        raise NotebookError(f"loads another copy of the library: {foreign[0]}")
    if tools.uses_all_cores(notebook):
        return sorted(set(known.values()))
    return stamps.used(loaded, known)


def run_all(chosen, root):
    """Run the chosen notebooks, two at a time; return how many failed."""
    failed = 0
    with ThreadPoolExecutor(2) as pool:
        jobs = {pool.submit(execute, path, root): path for path in chosen}
        try:
            for job in tqdm(as_completed(jobs), total=len(jobs), unit="notebook", disable=None, leave=False):
                error = job.exception()
                if error is not None:
                    failed += 1
                    message = str(error) if isinstance(error, NotebookError) else repr(error)
                    tqdm.write(f"execute: {jobs[job].name}: {message}", file=sys.stdout)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("\nexecute: interrupted; what was finished is stored", flush=True)
            os._exit(130)
    return failed


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks; by default all of notebooks/")
    parser.add_argument("--force", action="store_true", help="run also what is current")
    parser.add_argument("--check", action="store_true", help="run nothing; exit 1 if a notebook is stale")
    parser.add_argument("--root", type=Path, default=tools.ROOT, help="folder that holds notebooks/ and dplib/")
    arguments = parser.parse_args(argv)
    root = arguments.root.resolve()
    os.environ.update(tools.kernel_environment())
    # The kernels must import the library that the stamps are about.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))

    all_of_them = tools.notebooks(root)
    paths = [path.resolve() for path in arguments.paths] or all_of_them
    missing = [str(path) for path in paths if path not in all_of_them]
    if missing:
        parser.error(f"no such notebook: {', '.join(missing)}")
    reasons = {path: "forced" if arguments.force else stamps.stale_reason(path, root) for path in paths}
    chosen = [path for path, reason in reasons.items() if reason]
    if not chosen:
        print(f"execute: all {len(paths)} notebooks are current")
        return 0
    if arguments.check:
        for path in chosen:
            print(f"execute: {path.name}: {reasons[path]}")
        return 1
    failed = run_all(chosen, root)
    print(f"execute: {len(chosen) - failed} stored, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:  # a full disk, a folder that may not be read or written
        sys.exit(f"execute: {error}; what is stored is as it was")
