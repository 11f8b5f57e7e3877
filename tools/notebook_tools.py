"""Reading and writing notebooks, and what their outputs may not contain."""

import ast
import copy
import re
import sys
from pathlib import Path

import nbformat
import one_move

ROOT = Path(__file__).resolve().parent.parent
BOOTSTRAP_MARK = "# Set-up: does nothing where dplib is installed"

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "pygments_lexer": "ipython3",
}

# An output must be the same on every machine and on every day.
FORBIDDEN = {
    "a path of the machine": re.compile(
        r"(?<![\w.])/(?:home|root|tmp|usr|opt|var|work|mnt|private|Users|content)/[\w.-]+|[A-Z]:\\\w+"
    ),
    "a timing": re.compile(
        r"\b(?:CPU times|Wall time|elapsed|took|per loop)\b"
        r"|(?<![\w.])\d[\d.]*(?:e[+-]?\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds|minutes)(?![\w/])"
        r"|\bit/s\b",
        re.IGNORECASE,
    ),
    "a date or a time of day": re.compile(r"\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b"),
    "a memory address": re.compile(r"\bat 0x[0-9a-fA-F]{6,}"),
    "a warning": re.compile(r"\b\w*Warning\b"),
}

# An output is read, never run: text and pictures of these types, without anything active in them.
DISPLAYED = {"text/plain", "text/html", "text/latex", "text/markdown", "image/png", "image/jpeg"}
ACTIVE = {
    "an active element": re.compile(
        r"<\s*/?\s*(?:script|iframe|object|embed|applet|frame|form|base|link|meta|svg|math)\b", re.IGNORECASE
    ),
    "a handler": re.compile(r"<[a-z][^<>]*[\s/\"']on[a-z]+\s*=", re.IGNORECASE),
    "an address that runs code": re.compile(r"\b(?:java|vb)script\s*:|data\s*:\s*text/html", re.IGNORECASE),
}


def kernel_environment():
    """Circumstances in which every notebook runs: one numerical thread, fixed hashes, nobody's own settings."""
    folder = Path(sys.prefix) / "ipython"
    profile = folder / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 40\n")
    return {
        "IPYTHONDIR": str(folder),
        "JUPYTER_PLATFORM_DIRS": "1",
        "JUPYTER_PREFER_ENV_PATH": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "PYTHONHASHSEED": "0",
    }


def chapters(root=ROOT):
    """The notebooks that are pages of the book, sorted."""
    return sorted(Path(root, "notebooks").glob("*.ipynb"))


def solutions(root=ROOT):
    """The notebooks with solved exercises, from which those in notebooks/exercises/ are made."""
    return sorted(Path(root, "notebooks", "solutions").glob("*.ipynb"))


def exercises(root=ROOT):
    """The notebooks for readers, without solutions and without outputs."""
    return sorted(Path(root, "notebooks", "exercises").glob("*.ipynb"))


def notebooks(root=ROOT):
    """All notebooks whose outputs are stored: chapters and solutions."""
    return chapters(root) + solutions(root)


def read(path):
    """A notebook of format 4."""
    return nbformat.read(path, as_version=4)


def write(notebook, path):
    """Write in one move: a reader sees the old file or the new one, never a part."""
    path = Path(path)
    nbformat.validate(notebook)
    text = nbformat.writes(notebook)
    one_move.write_text(path, text if text.endswith("\n") else text + "\n")


def made(cells):
    """A notebook of these cells (dictionaries), with our kernel."""
    metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE}
    return nbformat.from_dict({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def tags(cell):
    return cell["metadata"].get("tags", [])


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def uses_all_cores(notebook):
    """Whether the notebook starts worker processes of its own: two of those would be in each other's way."""
    return any("n_jobs=" in source(cell) for cell in code_cells(notebook))


def markdown_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]


def source(cell):
    text = cell["source"]
    return text if isinstance(text, str) else "".join(text)


def is_bootstrap(cell):
    return source(cell).startswith(BOOTSTRAP_MARK)


def cell_name(index, cell):
    first = source(cell).strip().splitlines()
    return f"code cell {index} ({first[0][:60] if first else 'empty'})"


def parse(text):
    """Syntax tree of a cell; lines for the shell or for IPython are left out."""
    try:
        return ast.parse(text)
    except SyntaxError:
        kept = [line for line in text.splitlines() if not line.lstrip().startswith(("%", "!", "?"))]
        return ast.parse("\n".join(kept))


# --- what the outputs may not contain -------------------------------------------------------------


def output_text(output):
    """The part of an output that a reader sees as text."""
    kind = output["output_type"]
    if kind == "stream":
        return "".join(output["text"])
    if kind == "error":
        return "\n".join(output.get("traceback", []))
    data = output.get("data", {})
    return "\n".join(
        "".join(value)
        for mime, value in data.items()
        if mime.startswith("text/") and isinstance(value, (str, list))
    )


def output_problems(notebook):
    """What is wrong with the stored outputs, one sentence each."""
    problems = []
    for index, cell in enumerate(code_cells(notebook), start=1):
        where = cell_name(index, cell)
        if "check" in tags(cell):  # an exercise: the solution above must pass
            text = "".join(output_text(output) for output in cell.get("outputs", []))
            if not text.endswith(": correct.\n"):
                problems.append(f"{where}: the solution does not pass: {text.strip()!r}")
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                problems.append(f"{where}: raises {output.get('ename')}")
                continue
            if output["output_type"] == "stream" and output.get("name") == "stderr":
                problems.append(f"{where}: writes to stderr: {output_text(output).strip()[:200]!r}")
                continue
            text = output_text(output)
            for what, pattern in FORBIDDEN.items():
                match = pattern.search(text)
                if match:
                    problems.append(f"{where}: the output contains {what}: {match.group()!r}")
            strange = sorted(set(output.get("data", {})) - DISPLAYED)
            problems += [f"{where}: the output has the type {mime}" for mime in strange]
            problems += [f"{where}: the output contains {found}" for found in active_content(text)]
    return problems


def active_content(text):
    """What in a text could run in a reader's browser, as short descriptions."""
    return [
        f"{what}: {match.group()!r}" for what, pattern in ACTIVE.items() for match in pattern.finditer(text)
    ]


def normalise(notebook):
    """A copy without anything that differs from run to run."""
    result = copy.deepcopy(notebook)
    keep = {
        key: value for key, value in result["metadata"].items() if key not in ("kernelspec", "language_info")
    }
    keep.pop("widgets", None)
    result["metadata"] = nbformat.from_dict({**keep, "kernelspec": KERNEL, "language_info": LANGUAGE})
    for cell in result["cells"]:
        for key in ("execution", "collapsed", "ExecuteTime"):
            cell["metadata"].pop(key, None)
        for output in cell.get("outputs", []):
            output.pop("transient", None)
    return result
