"""`make execute`: runs what is stale and nothing else, stores the same bytes."""

import shutil
import subprocess
import sys

import nbformat
import notebook_tools as tools
import pytest
import small_project
import stamps

EXECUTE = [sys.executable, str(tools.ROOT / "tools" / "execute.py")]


def execute(project, *arguments):
    return subprocess.run(
        [*EXECUTE, "--root", str(project), *arguments], capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def project(small, tmp_path):
    """A copy of the finished project that a test may change."""
    return shutil.copytree(small, tmp_path / "project", ignore=shutil.ignore_patterns("_build"))


def stale(project):
    return {path.name: stamps.stale_reason(path, project) for path in tools.notebooks(project)}


def edit(path, old, new):
    small_project.edit(path.parent, path.name, old, new)


def test_finished_project_is_current(project):
    assert set(stale(project).values()) == {None}
    done = execute(project)
    assert done.returncode == 0 and "all 2 notebooks are current" in done.stdout
    assert execute(project, "--check").returncode == 0


BOTH, SECOND, NONE = ("library changed",) * 2, (None, "library changed"), (None, None)


@pytest.mark.parametrize(
    "file, old, new, expected",
    [
        ("shapes.py", "square(side)", "square(side) + 0", BOTH),
        ("numbers.py", "number * number", "number**2", BOTH),  # reached through shapes
        ("bins.py", ") / tables", ") * 2 / tables", SECOND),  # what the first notebook does not load
        ("tables/bins.json", "2", "2.0", SECOND),
        ("tables/__init__.py", "json.loads(", "dict(json.loads(", SECOND),  # not even code at the moment
        ("shapes.py", '"""Area of a square."""', '"""The area."""', NONE),
        ("numbers.py", "return number", "# a remark\n    return number", NONE),
        ("numbers.py", "number * number", "(number * number)", NONE),
    ],
)
def test_a_changed_module_makes_those_stale_that_loaded_it(project, file, old, new, expected):
    edit(project / "dplib" / file, old, new)
    assert tuple(stale(project).values()) == expected


def test_a_library_in_other_rooms_under_other_names_makes_nothing_stale(project, tmp_path, monkeypatch):
    """Every module moves or is renamed, and its users follow; the library still works, and an edit is still seen.

    A second run writes the same bytes; a start-up file of the user changes nothing.
    """
    startup = tmp_path / "home" / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("print('hello from the start-up file')\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    library, before = project / "dplib", [path.read_bytes() for path in tools.notebooks(project)]
    (library / "rooms").mkdir()
    (library / "rooms" / "__init__.py").write_text("")
    (library / "numbers.py").rename(library / "rooms" / "powers.py")
    (library / "tables").rename(library / "rooms" / "records")
    (library / "bins.py").rename(library / "rooms" / "balls.py")
    (library / "shapes.py").rename(library / "figures.py")
    edit(library / "figures.py", "from .numbers import", "from .rooms.powers import")
    edit(library / "rooms" / "balls.py", "from . import numbers, tables", "from . import records, powers as roots")
    edit(library / "rooms" / "balls.py", "numbers.square(number) / tables.load", "roots.square(number) / records.load")
    edit(library / "__init__.py", ".shapes", ".figures")
    edit(library / "__init__.py", ".bins", ".rooms.balls")
    assert tuple(stale(project).values()) == NONE
    assert "2 stored" in execute(project, "--force").stdout
    assert [path.read_bytes() for path in tools.notebooks(project)] == before
    assert tuple(stale(project).values()) == NONE
    edit(library / "rooms" / "balls.py", "roots.square(number) / records", "records.square(number) / roots")
    assert tuple(stale(project).values()) == SECOND


def test_a_stamp_names_what_was_loaded_and_nothing_else(project):
    known = stamps.contents(project)
    first, second = (set(stamps.load(project)[path.name]["library"]) for path in tools.notebooks(project))
    of = lambda *files: {known[project.resolve() / "dplib" / file] for file in files}
    assert first == of("__init__.py", "shapes.py", "numbers.py")
    assert second - first == of("bins.py", "tables/__init__.py", "tables/bins.json")


@pytest.mark.parametrize(
    "old, new, reason",
    [
        ("area(3) == 9", "area(3) == 9.0", "code or outputs changed"),
        ('"9\\n"', '"10\\n"', "code or outputs changed"),  # an output that is stored by hand
        ("One sentence.", "Another sentence.", None),
    ],
)
def test_a_changed_notebook_is_stale_unless_its_text_alone_changed(project, old, new, reason):
    edit(project / "notebooks" / "01_first.ipynb", old, new)
    assert stale(project) == {"01_first.ipynb": reason, "02_second.ipynb": None}
    assert execute(project, "--check").returncode == (reason is not None)


FAULTS = {
    "03_raises": ("assert area(3) == 10", "AssertionError"),
    "04_warns": ("import warnings; warnings.warn('old')", "writes to stderr"),
    "05_dies": ("import os; os._exit(1)", "the kernel died"),
    "06_foreign": ("import sys; sys.modules['dplib.x'] = sys.modules['json']", "loads another copy of the library"),
    "07_edited": (
        "import pathlib; path = pathlib.Path('07_edited.ipynb'); _ = path.write_text(path.read_text().replace('One sentence.', 'Edited.'))",
        "the file changed while it ran",
    ),
}


def test_what_may_not_be_stored_is_not_written_and_stops_no_other(project):
    """A notebook for each fault, one that is current, and one that is merely stale: with workers, it depends on the whole library."""
    folder = project / "notebooks"
    for name, (body, _) in FAULTS.items():
        notebook = tools.read(folder / "01_first.ipynb")
        del notebook["cells"][5:]  # the picture
        notebook["cells"][4]["source"] = body
        tools.write(notebook, folder / f"{name}.ipynb")
    edit(folder / "01_first.ipynb", "print(area(3))", "print(area(dict(n_jobs=5)['n_jobs']))")
    before = {path.stem: path.read_bytes() for path in tools.notebooks(project)}
    before["07_edited"] = before["07_edited"].replace(b"One sentence.", b"Edited.")
    done = execute(project)
    assert done.returncode == 1 and "1 stored, 5 failed" in done.stdout, done.stdout
    told = dict(part.split(".ipynb: ", 1) for part in done.stdout.split("execute: ") if ".ipynb: " in part)
    assert all(message in told[name] for name, (_, message) in FAULTS.items()), told
    after = {path.stem: path.read_bytes() for path in tools.notebooks(project)}
    assert [name for name in after if after[name] != before[name]] == ["01_first"] and b"25\\n" in after["01_first"]
    assert tuple(stale(project).values())[:2] == NONE
    edit(project / "dplib" / "bins.py", ") / tables", ") * 2 / tables")  # nobody sees what workers load
    assert tuple(stale(project).values())[:2] == BOTH


@pytest.mark.parametrize("text, message", [("/tmp/secret", "a path of the machine"), ("done in 1.25 s", "a timing"), ("Thing at 0x7f4f663dde60", "a memory address")])
def test_what_an_output_may_not_hold(text, message):
    output = nbformat.v4.new_output("stream", name="stdout", text=f"{text}\n")
    [problem] = tools.output_problems({"cells": [nbformat.v4.new_code_cell("x", outputs=[output])]})
    assert message in problem
