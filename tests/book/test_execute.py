"""`make execute`: runs what is stale and nothing else, stores the same bytes."""

import os
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


def test_a_library_in_other_rooms_under_other_names_makes_nothing_stale(project):
    """Every module moves or is renamed, and its users follow; the library still works, and an edit is still seen."""
    library = project / "dplib"
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
    assert execute(project, "--force").returncode == 0
    assert tuple(stale(project).values()) == NONE
    edit(library / "rooms" / "balls.py", "roots.square(number) / records", "records.square(number) / roots")
    assert tuple(stale(project).values()) == SECOND


def test_a_stamp_names_what_was_loaded_and_nothing_else(project):
    known = stamps.contents(project)
    first, second = (set(stamps.load(project)[path.name]["library"]) for path in tools.notebooks(project))
    of = lambda *files: {known[project.resolve() / "dplib" / file] for file in files}
    assert first == of("__init__.py", "shapes.py", "numbers.py")
    assert second - first == of("bins.py", "tables/__init__.py", "tables/bins.json")


def test_a_notebook_with_workers_depends_on_the_whole_library(project):
    """Nobody sees what they load."""
    edit(project / "notebooks" / "01_first.ipynb", "assert area(3)", "assert dict(n_jobs=2) and area(3)")
    assert execute(project).returncode == 0
    edit(project / "dplib" / "bins.py", ") / tables", ") * 2 / tables")
    assert tuple(stale(project).values()) == BOTH


def test_another_copy_of_the_library_is_told(project):
    other = "import sys; sys.modules['dplib.x'] = sys.modules['json']\\n"
    edit(project / "notebooks" / "01_first.ipynb", "assert area(3)", other + "assert area(3)")
    done = execute(project)
    assert done.returncode == 1 and "loads another copy of the library" in done.stdout


def test_a_changed_cell_makes_its_notebook_stale(project):
    edit(project / "notebooks" / "01_first.ipynb", "area(3) == 9", "area(3) == 9.0")
    assert stale(project) == {"01_first.ipynb": "code or outputs changed", "02_second.ipynb": None}
    assert execute(project, "--check").returncode == 1


def test_an_output_that_is_stored_by_hand_makes_its_notebook_stale(project):
    edit(project / "notebooks" / "01_first.ipynb", '"9\\n"', '"10\\n"')
    assert stale(project) == {"01_first.ipynb": "code or outputs changed", "02_second.ipynb": None}


def test_changed_text_leaves_a_notebook_current(project):
    edit(project / "notebooks" / "01_first.ipynb", "One sentence.", "Another sentence.")
    assert set(stale(project).values()) == {None}


def test_only_what_is_stale_runs(project):
    before = (project / "notebooks" / "02_second.ipynb").read_bytes()
    edit(project / "notebooks" / "01_first.ipynb", "print(area(3))", "print(area(4))")
    done = execute(project)
    assert done.returncode == 0, done.stdout
    assert "1 stored, 0 failed" in done.stdout
    assert (project / "notebooks" / "02_second.ipynb").read_bytes() == before
    first = tools.read(project / "notebooks" / "01_first.ipynb")
    assert any(
        tools.output_text(output) == "16\n" for cell in tools.code_cells(first) for output in cell["outputs"]
    )


def test_a_second_run_writes_the_same_bytes(project):
    files = [*tools.notebooks(project), stamps.file(project)]
    before = {path.name: path.read_bytes() for path in files}
    done = execute(project, "--force")
    assert "2 stored" in done.stdout, done.stdout
    assert {path.name: path.read_bytes() for path in files} == before


@pytest.mark.parametrize(
    "body, message",
    [
        ("assert area(3) == 10", "AssertionError"),
        ("import warnings; warnings.warn('old'); assert area(3) == 9", "writes to stderr"),
        ("import os; os._exit(1)", "the kernel died"),
    ],
)
def test_what_may_not_be_stored_is_not_written(project, body, message):
    path = project / "notebooks" / "01_first.ipynb"
    notebook = tools.read(path)
    notebook["cells"][4]["source"] = body
    tools.write(notebook, path)
    before = path.read_bytes()
    done = execute(project)
    assert done.returncode == 1
    assert message in done.stdout
    assert "0 stored, 1 failed" in done.stdout
    assert path.read_bytes() == before


@pytest.mark.parametrize("text, message", [("/tmp/secret", "a path of the machine"), ("done in 1.25 s", "a timing"), ("Thing at 0x7f4f663dde60", "a memory address")])
def test_what_an_output_may_not_hold(text, message):
    output = nbformat.v4.new_output("stream", name="stdout", text=f"{text}\n")
    [problem] = tools.output_problems({"cells": [nbformat.v4.new_code_cell("x", outputs=[output])]})
    assert message in problem


def test_one_failure_does_not_stop_the_others(project):
    edit(project / "notebooks" / "01_first.ipynb", "area(3) == 9", "area(3) == 10")
    edit(project / "notebooks" / "02_second.ipynb", "print(area(2))", "print(area(5))")
    done = execute(project)
    assert done.returncode == 1
    assert "1 stored, 1 failed" in done.stdout
    assert stale(project) == {"01_first.ipynb": "code or outputs changed", "02_second.ipynb": None}


def test_a_notebook_edited_while_it_runs_is_not_overwritten(project):
    path = project / "notebooks" / "01_first.ipynb"
    notebook = tools.read(path)
    notebook["cells"][4]["source"] = (
        "import pathlib\n"
        "path = pathlib.Path('01_first.ipynb')\n"
        "_ = path.write_text(path.read_text().replace('One sentence.', 'Edited.'))\n"
        "assert area(3) == 9"
    )
    tools.write(notebook, path)
    done = execute(project)
    assert done.returncode == 1 and "the file changed while it ran" in done.stdout
    assert "Edited." in path.read_text()


def test_the_kernel_ignores_personal_settings(project, tmp_path):
    """A start-up file of the user must not change what is stored."""
    startup = tmp_path / "home" / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("print('hello from the start-up file')\n")
    before = (project / "notebooks" / "01_first.ipynb").read_bytes()
    done = subprocess.run(
        [*EXECUTE, "--root", str(project), "--force", str(project / "notebooks" / "01_first.ipynb")],
        env=os.environ | {"HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    assert (project / "notebooks" / "01_first.ipynb").read_bytes() == before
