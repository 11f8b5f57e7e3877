"""Compute requirements.txt from requirements.in: the newest versions that fit together on Python 3.11.

The result holds for Linux, macOS and Windows. Lines for other versions of Python are dropped, because the
stored outputs belong to 3.11.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main():
    command = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--python-version", "3.11"]
    command += [
        "--no-header",
        "--no-annotate",
        "--no-emit-index-url",
        "--quiet",
        "--upgrade",
        "requirements.in",
    ]
    lines = subprocess.run(
        command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE
    ).stdout.splitlines()
    lines = [re.sub(r" ; python_full_version < '3\.12'$", "", line) for line in lines]
    lines = [line for line in lines if not re.search(r"python_full_version >= '3\.1[2-9]", line)]
    temporary = ROOT / "requirements.txt.partial"
    temporary.write_text("\n".join(lines) + "\n")
    os.replace(temporary, ROOT / "requirements.txt")
    print(f"requirements.txt: {len(lines)} packages")


if __name__ == "__main__":
    main()
