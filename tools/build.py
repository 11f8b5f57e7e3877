"""Build the book afresh from the stored outputs; every warning is an error.

Two lines: one at the start, and at the end the address of the book; if the build fails, what is wrong. With VERBOSE=1 also
what Jupyter Book says.

A fresh build, because an incremental one does not repeat the warnings of pages that did not change. It is
made in _build/.partial and takes the place of _build/html only when it is whole: a build that fails or is
killed leaves the old pages as they were.
"""

import contextlib
import fcntl
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import plain_pages
import policy
import slides

ROOT = Path(__file__).resolve().parent.parent


@contextlib.contextmanager
def alone(folder):
    """Two builds into one folder take turns; yields what a builder must hold open.

    A builder whose parent was killed thus keeps the lock for as long as it still writes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def recover(pages):
    """Put the pages back that a run killed between the two moves of `replace` left aside."""
    previous = pages.with_name(f".{pages.name}.previous")
    if previous.exists() and not pages.exists():
        previous.rename(pages)
    shutil.rmtree(previous, ignore_errors=True)


def replace(new, pages):
    """Let a finished folder take the place of another."""
    recover(pages)
    if pages.exists():
        pages.rename(pages.with_name(f".{pages.name}.previous"))
    new.rename(pages)
    recover(pages)


def run_builder(source, output, held):
    """Run Jupyter Book into output/_build; return (exit status, its text)."""
    # A book is millions of objects that stay: looking for garbage among them as often as Python does takes a fourth of the time.
    program = "import gc; gc.set_threshold(200_000, 50, 50); from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", program, "build", str(source), "-W", "-n", "--keep-going", "--path-output", str(output)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "encoding": "utf-8"}
    done = subprocess.run(command, cwd=source, pass_fds=[held], check=False, **pipes)
    return done.returncode, done.stdout


def preview(text):
    """The tags of a page that say what a shared link shows, and its address."""
    return re.findall(
        r'<meta (?:property="og:|name="twitter:|name="description")[^>]*>|<link rel="canonical"[^>]*>', text
    )


def finish(pages):
    """What Jupyter Book leaves to do: a start page, slides, and the content security policy. Return the problems.

    The search page alone may run WebAssembly: Pagefind is written in it.
    """
    start = re.search(r"url=([^\"]+)", (pages / "index.html").read_text(encoding="utf-8")).group(1).strip()
    first = (pages / start).read_text(encoding="utf-8")
    title = html.unescape(re.search(r"<h1>(.*?)<", first).group(1))
    head = "".join(f"{tag}\n" for tag in preview(first))
    (pages / "index.html").write_text(plain_pages.redirect(start, title, head), encoding="utf-8")
    problems = slides.write(pages)
    for name in policy.TEMPLATES:
        (pages / "_static" / name).unlink(missing_ok=True)
    problems += policy.secure(sorted(pages.rglob("*.html")))
    search = pages / "search.html"
    text = search.read_text(encoding="utf-8").replace("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'", 1)
    search.write_text(text, encoding="utf-8")
    return problems


def add_wheel(source, folder):
    """A wheel of the library beside the notebooks that can be downloaded: their first cell takes it. Return the problems."""
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(source / "dplib", Path(copy, "dplib"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy2(source / name, copy)
        command = "-m pip wheel -q --no-deps --no-build-isolation --disable-pip-version-check -w".split()
        done = subprocess.run([sys.executable, *command, str(folder), copy], capture_output=True, text=True)
    return [f"no wheel of the library could be made: {done.stderr.strip()}"] if done.returncode else []


def build(source=ROOT, output=None):
    """Build output/_build/html; return (exit status, text of the builder)."""
    source = Path(source).resolve()
    folder = (Path(output).resolve() if output else source) / "_build"
    partial = folder / ".partial"
    with alone(folder) as held:
        recover(folder / "html")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            status, text = run_builder(source, partial, held)
            pages = partial / "_build" / "html"
            if status == 0:
                found = finish(pages)
                if (source / "LICENSE").is_file():  # a whole project, not the small one of a test
                    found += add_wheel(source, pages / "_sources" / "notebooks")
                errors = [f"ERROR: {problem}\n" for problem in found]
                status, text = (1 if errors else 0), text + "".join(errors)
            if status == 0:
                replace(pages, folder / "html")
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return status, text


def problems(text):
    """The lines of the builder's output that say what is wrong."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    found = [line for line in lines if re.search(r"\b(?:WARNING|ERROR|CRITICAL)\b|\[Errno \d+\]", line)]
    found += [after for line, after in zip(lines, lines[1:]) if line.strip() == "Extension error:"]
    found = list(dict.fromkeys(found)) or lines[-30:]
    if len(found) > 40:  # a full disk makes one for each file
        found = [*found[:10], f"… {len(found) - 15} more …", *found[-5:]]
    return found


def main():
    print("build: all pages, from the stored outputs, about a minute", flush=True)
    try:
        status, text = build()
        if os.environ.get("VERBOSE"):
            print(text, end="")
    except OSError as error:  # a full disk, a folder that may not be written
        status, text = 1, f"ERROR: {error}"
    if status:
        print("build: failed; the pages of the last build are as they were", *problems(text), sep="\n  ", file=sys.stderr)
        return status
    print(f"The book is built; `make serve` serves it at http://localhost:8000. Open {(ROOT / '_build/html/index.html').as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
