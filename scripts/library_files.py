"""The files of the library, those in sub-folders included: whoever asks for them asks here."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "dplib"


def python_files(root=ROOT):
    """Every module of the library, sorted."""
    return sorted(Path(root, PACKAGE).rglob("*.py"))


def data_files(root=ROOT):
    """Whatever else lies in a folder that is a package: results of long computations."""
    folders = [path.parent for path in python_files(root) if path.name == "__init__.py"]
    found = [path for folder in folders for path in folder.iterdir() if path.is_file()]
    return sorted(path for path in found if path.suffix != ".py" and not path.name.startswith("."))
