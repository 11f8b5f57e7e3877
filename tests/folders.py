"""Modules of folders that are no packages."""

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def imported(folder, name):
    """The module of that name in a folder of the project, as a script beside it would import it."""
    sys.path.insert(0, str(ROOT / folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / folder))
