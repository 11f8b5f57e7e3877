"""The files of the library, those in sub-folders included: whoever asks for them asks here."""

import ast
import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "dplib"


def python_files(root=None):
    """Every module of the library, sorted."""
    return sorted(Path(root or ROOT, PACKAGE).rglob("*.py"))


def data_files(root=None):
    """Whatever else lies in a folder that is a package: results of long computations."""
    folders = [path.parent for path in python_files(root) if path.name == "__init__.py"]
    found = [path for folder in folders for path in folder.iterdir() if path.is_file()]
    return sorted(path for path in found if path.suffix != ".py" and not path.name.startswith("."))


def module_name(path, root=None):
    """The name under which a file of the library is imported."""
    parts = path.relative_to(root or ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def short_names(root=None):
    """{shorter name: real name} of the modules of rooms that the package's face calls by one."""
    face = Path(root or ROOT, PACKAGE, "__init__.py").read_text(encoding="utf-8")
    for node in ast.parse(face).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_ALIASES":
            return {f"{PACKAGE}.{short}": f"{PACKAGE}.{home}" for short, home in ast.literal_eval(node.value).items()}
    return {}


def public_modules(root=None):
    """Names of the modules that a reader imports, the package itself first: rooms, lessons, and shorter names."""
    short = short_names(root)
    names = {module_name(path, root) for path in python_files(root)}
    shown = {name for name in names if name.removeprefix(f"{PACKAGE}.lessons").count(".") < 2}
    return sorted(name for name in shown - set(short.values()) | set(short) if "._" not in name)


def source_digest(*others, root=None):
    """Hash of the library's source, and of other files: whether results belong to this code."""
    digest = hashlib.sha256()
    for path in [*python_files(root), *others]:
        digest.update(str(path.relative_to(root or ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
