"""What the Makefile runs: `python -m tools COMMAND …`; COMMAND --help says more."""

import ast
import os
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
COMMANDS = {
    "setup": "environment.py",
    "lock": "lock.py",
    "build": "build.py",
    "live": "live.py",
    "execute": "execute.py",
    "test": "run_tests.py",
    "course": "course.py",
    "pdf": "pdf.py",
    "publish": "publish.py",
    "social-card": "social_card.py",
    "set-repository": "set_repository.py",
    "first-cell": "bootstrap_cell.py",
    "matrix": "matrix.py",
    "peers": "peers.py",
    "study": "study.py",
    "mutation": "../tests/mutants/mutation.py",
    "truth": "../tests/oracle/truth.py",
}


def main():
    name, *rest = sys.argv[1:] or [""]
    if name not in COMMANDS:
        for command, file in COMMANDS.items():
            told = ast.get_docstring(ast.parse((FOLDER / file).read_text(encoding="utf-8"))) or ""
            print(f"  {command:16} {told.splitlines()[0]}")
        return 2
    # In place of this process: the module is the program, as if it had been named.
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, os.path.normpath(FOLDER / COMMANDS[name]), *rest])


if __name__ == "__main__":
    sys.exit(main())
