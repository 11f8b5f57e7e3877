"""Compute requirements.txt from requirements.in, and requirements-course.txt from requirements-course.in.

    python -m tools lock               keep the versions that are there, add and remove what the .in files ask for
    python -m tools lock --upgrade     the newest versions that fit together on Python 3.11

Every version comes with the hashes of its files, so that an installation takes these files and no others. The
result holds for Linux, macOS and Windows. Entries for other versions of Python are dropped, because the
stored outputs belong to 3.11.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# In this order: the second takes the versions of the first where both need a package.
LOCKS = ("requirements", "requirements-course")
COMMAND = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--python-version", "3.11", "--quiet"]
COMMAND += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"]


def entries(text):
    """The packages of a lock, each with its lines of hashes."""
    return re.findall(r"^\S.*(?:\n +.*)*", text, re.MULTILINE)


def for_311(text):
    """The lock without the entries of later versions of Python."""
    kept = [entry for entry in entries(text) if not re.search(r"python_full_version >= '3\.1[2-9]", entry)]
    kept = [re.sub(r" ; python_full_version < '3\.1[2-9]'", "", entry) for entry in kept]
    return "\n".join(kept) + "\n"


def lock(name, upgrade):
    """Write one lock, in one move; return how many packages it holds."""
    target = ROOT / f"{name}.txt"
    partial = ROOT / f"{name}.txt.partial"
    if target.exists() and not upgrade:  # what uv finds in its output file it keeps
        partial.write_text(target.read_text())
    command = [*COMMAND, f"{name}.in", "--output-file", partial.name]
    try:
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        text = for_311(partial.read_text())
        partial.write_text(text)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return len(entries(text))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    arguments = parser.parse_args()
    for name in LOCKS:
        print(f"{name}.txt: {lock(name, arguments.upgrade)} packages")


if __name__ == "__main__":
    main()
