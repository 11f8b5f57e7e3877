"""What a reader meets first has an example in its docstring, and every example prints what it says."""

import doctest
import importlib
import inspect

import pytest
from library_files import module_name, public_modules, python_files

import dplib


def examples(thing):
    return doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "")


def functions(module):
    """Public functions and classes that the module defines or takes over from private modules."""
    names = {*vars(module), *getattr(module, "__all__", ())}  # some are loaded at their first use
    found = [getattr(module, name) for name in sorted(names) if not name.startswith("_")]
    found = [value for value in found if callable(value)]
    homes = {value: getattr(value, "__module__", None) or "" for value in found}
    return [value for value in found if homes[value] == module.__name__ or homes[value].startswith(("dplib._", f"{module.__name__}."))]


@pytest.mark.parametrize("name", dplib.__all__)
def test_every_exported_name_has_an_example(name):
    """One that expects no output claims nothing."""
    assert any(example.want for example in examples(getattr(dplib, name)))


@pytest.mark.parametrize("name", public_modules())
def test_every_public_module_has_an_example(name):
    module = importlib.import_module(name)
    assert examples(module) or any(examples(item) for item in functions(module)), name


@pytest.mark.parametrize("name", [name for name in map(module_name, python_files()) if name != "dplib.__main__"])  # a program
def test_examples_print_what_they_say(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
