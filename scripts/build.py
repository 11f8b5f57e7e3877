"""Build the book afresh from the stored outputs; every warning is an error.

    python scripts/build.py [--output FOLDER] [--source FOLDER] [--quiet]

A fresh build, because an incremental one does not repeat the warnings of pages that did not change.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build(source=ROOT, output=None, quiet=False):
    """Build into output/_build; return (exit status, text of the builder)."""
    source = Path(source).resolve()
    output = Path(output).resolve() if output else source
    shutil.rmtree(output / "_build", ignore_errors=True)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    command += ["build", str(source), "-W", "-n", "--keep-going"]
    command += ["--path-output", str(output)] if output != source else []
    process = subprocess.Popen(
        command, cwd=source, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if not quiet:
            print(line, end="", flush=True)
    status = process.wait()
    if status == 0 and not (output / "_build" / "html" / "index.html").exists():
        status = 1
    return status, "".join(lines)


def problems(text):
    """The lines of the builder's output that say what is wrong."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    found = [line for line in lines if re.search(r"\b(?:WARNING|ERROR|CRITICAL)\b", line)]
    found += [after for line, after in zip(lines, lines[1:]) if line.strip() == "Extension error:"]
    return list(dict.fromkeys(found)) or lines[-30:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=ROOT)
    parser.add_argument("--output", type=Path, help="folder for _build (default: the source)")
    parser.add_argument("--quiet", action="store_true", help="show the builder's output only if it fails")
    arguments = parser.parse_args()
    status, text = build(arguments.source, arguments.output, arguments.quiet)
    if status:
        print("\nbuild: failed", *problems(text), sep="\n  ", file=sys.stderr)
        return status
    page = (arguments.output or arguments.source).resolve() / "_build" / "html" / "index.html"
    print(f"\nThe book is built. Open {page.as_uri()}\nor run `make serve` and open http://localhost:8000")
    return 0


if __name__ == "__main__":
    sys.exit(main())
