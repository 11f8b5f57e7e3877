"""What is public says its types, and mypy finds no contradiction in them."""

import importlib
import inspect
import subprocess
import sys

import library_files
import pytest


def offered(module):
    """What a module that a reader imports defines, or names in `__all__`; without what stands below all rooms."""
    for name in {*vars(module), *getattr(module, "__all__", ())}:
        found = getattr(module, name)
        home = getattr(found, "__module__", None) or ""
        if not name.startswith("_") and (home == module.__name__ or name in getattr(module, "__all__", ())):
            if home.startswith("dplib") and not home.startswith("dplib._base"):
                yield name, found


def functions(name, found):
    """A function, or the methods of a class."""
    if inspect.isfunction(found):
        yield name, found
    for part, method in vars(found).items() if inspect.isclass(found) else ():
        method = getattr(method, "fget", None) or getattr(method, "func", method)
        if not part.startswith("_") and inspect.isfunction(method):
            yield f"{name}.{part}", method


@pytest.mark.parametrize("module", library_files.public_modules())
def test_public_signatures_have_types(module):
    missing = []
    for name, found in offered(importlib.import_module(module)):
        for label, function in functions(name, found):
            signature = inspect.signature(function)
            parts = [p.annotation for p in signature.parameters.values() if p.name != "self"]
            if inspect.Parameter.empty in (*parts, signature.return_annotation):
                missing.append(label)
    assert not missing


def test_mypy_agrees():
    done = subprocess.run(
        [sys.executable, "-m", "mypy"], cwd=library_files.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
