"""Every gate can fail: a small project is in order, and each planted fault is seen by the gate meant for it.

The gates for the built pages have a file of their own.
"""

import os
import shutil
import subprocess
import sys

import index_checks
import notebook_checks
import notebook_tools as tools
import pytest
import repository_checks
import small_project
import stamps
from build import build

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The small project with stored outputs, no fault in it."""
    return small_project.executed(tmp_path_factory.mktemp("sound") / "project")


@pytest.fixture
def project(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "project", ignore=shutil.ignore_patterns("_build", "_figures"))


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name} does not contain {old!r}"
    path.write_text(text.replace(old, new), encoding="utf-8")


# --- notebooks --------------------------------------------------------------------------------------


def cell(notebook, name):
    return next(item for item in notebook["cells"] if item["id"] == name)


def set_source(name, text):
    def change(notebook):
        cell(notebook, name)["source"] = text

    return change


def add_source(name, text):
    def change(notebook):
        cell(notebook, name)["source"] += text

    return change


def set_output(text, name="stdout"):
    def change(notebook):
        cell(notebook, "body")["outputs"] = [{"output_type": "stream", "name": name, "text": text}]

    return change


def drop(name):
    def change(notebook):
        notebook["cells"].remove(cell(notebook, name))

    return change


def change_alt(text):
    def change(notebook):
        cell(notebook, "picture")["metadata"]["mystnb"]["image"]["alt"] = text

    return change


def swap_counts(notebook):
    cell(notebook, "imports")["execution_count"], cell(notebook, "body")["execution_count"] = 3, 2


def add_error(notebook):
    cell(notebook, "body")["outputs"] = [
        {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["ValueError: no"]}
    ]


def forget_execution(notebook):
    cell(notebook, "body")["execution_count"] = None
    cell(notebook, "body")["outputs"] = []


def add_timing_metadata(notebook):
    cell(notebook, "body")["metadata"]["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00"}


def tag_cell(notebook):
    cell(notebook, "body")["metadata"]["tags"] = ["nbval-ignore-output"]


def set_data(mime, text):
    def change(notebook):
        cell(notebook, "body")["outputs"] = [
            {"output_type": "display_data", "data": {mime: text, "text/plain": "x"}, "metadata": {}}
        ]

    return change


NOTEBOOK_FAULTS = {
    "bootstrap missing": ("bootstrap", drop("bootstrap")),
    "bootstrap altered": ("bootstrap", add_source("bootstrap", "\nimport numpy")),
    "directive": ("markdown", add_source("statement", "\n\n```{note}\nWell.\n```")),
    "colon fence": ("markdown", add_source("statement", "\n\n:::{tip}\nWell.\n:::")),
    "role": ("markdown", add_source("statement", "\n\nSee {prf:ref}`thm-square`.")),
    "target": ("markdown", add_source("statement", "\n\n(here)=\n")),
    "no title": ("header", set_source("title", "First. **Reading time** 1 min · **Run time** under 60 s")),
    "no reading time": ("header", set_source("title", "# 1. First\n\n**Run time** under 60 s")),
    "no run time": ("header", set_source("title", "# 1. First\n\n**Reading time** 1 min")),
    "two titles": ("header", add_source("statement", "\n\n# Another title")),
    "no assertion": ("assertions", set_source("body", "print(area(3))")),
    "assertion that cannot fail": ("assertions", set_source("body", "assert True")),
    "wrong order": ("execution", swap_counts),
    "not executed": ("execution", forget_execution),
    "empty cell": ("execution", set_source("body", "")),
    "exempt from comparison": ("execution", tag_cell),
    "error": ("outputs", add_error),
    "stderr": ("outputs", set_output("careful\n", "stderr")),
    "warning": ("outputs", set_output("RuntimeWarning: overflow\n")),
    "path": ("outputs", set_output("saved to /ho" + "me/someone/figure\n")),
    "timing": ("outputs", set_output("epsilon 3.2, 1.35 s\n")),
    "wall time": ("outputs", set_output("Wall time: 3 min\n")),
    "date": ("outputs", set_output("2026-01-31\n")),
    "address in memory": ("outputs", set_output("<object at 0x7f2374b49f10>\n")),
    "script in an output": ("outputs", set_data("text/html", "<p>3</p><script>alert(1)</script>")),
    "frame in an output": ("outputs", set_data("text/html", '<iframe src="x.html"></iframe>')),
    "handler in an output": ("outputs", set_data("text/html", '<img src="x.png" onerror="alert(1)">')),
    "running address": ("outputs", set_data("text/html", '<a href="JavaScript:alert(1)">x</a>')),
    "drawing with code": ("outputs", set_data("image/svg+xml", "<svg onload='alert(1)'></svg>")),
    "code as an output": ("outputs", set_data("application/javascript", "alert(1)")),
    "widget": ("outputs", set_data("application/vnd.jupyter.widget-view+json", "{}")),
    "script in the text": ("active", add_source("statement", "\n\n<script>alert(1)</script>")),
    "handler in the text": ("active", add_source("statement", "\n\n<img src='x.png' onerror='alert(1)'>")),
    "link that runs code": ("active", add_source("statement", "\n\n[x](javascript:alert(1))")),
    "metadata of a run": ("metadata", add_timing_metadata),
    "stamp in a notebook": ("metadata", lambda notebook: notebook["metadata"].update(dplib={"stamp": "0"})),
    "no alternative text": ("images", change_alt("")),
    "file name as alternative text": ("images", change_alt("figure number one line.png")),
    "one word as alternative text": ("images", change_alt("Line")),
}


@pytest.mark.parametrize("check", notebook_checks.CHECKS)
def test_sound_notebooks_pass(sound, check):
    for path in tools.notebooks(sound):
        assert notebook_checks.CHECKS[check](tools.read(path)) == []


def test_sound_stamps_pass(sound):
    assert [stamps.stale_reason(path, sound) for path in tools.notebooks(sound)] == [None, None]


@pytest.mark.parametrize("fault", NOTEBOOK_FAULTS)
def test_notebook_fault_is_seen(sound, fault):
    gate, change = NOTEBOOK_FAULTS[fault]
    check = notebook_checks.CHECKS[gate]
    notebook = tools.read(sound / "notebooks" / "01_first.ipynb")
    assert check(notebook) == []
    change(notebook)
    assert check(notebook) != []


def test_changed_library_is_seen(project):
    edit(project / "dplib" / "numbers.py", "number * number", "number * number * 1")
    assert stamps.stale_reason(project / "notebooks" / "01_first.ipynb", project) == "library changed"


def test_changed_code_is_seen(project):
    edit(project / "notebooks" / "01_first.ipynb", "print(area(3))", "print(area(3)); print(area(4))")
    assert stamps.stale_reason(project / "notebooks" / "01_first.ipynb", project) == "code or outputs changed"


# --- theorem index ----------------------------------------------------------------------------------

INDEX_FAULTS = {
    "no table": ("| Tag | Statement |", "| Mark | Statement |", "no table"),
    "no row": ("| G-1 | $a^2", "| G-2 | $a^2", "G-1: mentioned in"),
    "no statement": ("$a^2 \\ge 0$ for every real $a$", "-", "no statement"),
    "dead section": ("#the-statement) |", "#no-such-section) |", "has no section"),
    "missing notebook": ("01_first.ipynb#the", "09_ninth.ipynb#the", "does not exist"),
    "section without the tag": ("#the-statement) |", "#1-first-again) |", "no section"),
    "no function": ("`dplib.PoissonDPSGD`", "`dplib.no_such_name`", "no function dplib.no_such_name"),
    "function not named": ("`dplib.PoissonDPSGD`", "-", "no function of dplib"),
    "no test": ("::test_square`", "::test_cube`", "no test"),
    "missing test file": ("tests/test_numbers.py", "tests/test_none.py", "no test"),
    "test not named": ("`tests/test_numbers.py::test_square`", "-", "no test"),
    "too few cells": (" | `tests/test_numbers.py::test_square` |", " |", "cells"),
}


def test_sound_index_passes(sound):
    assert index_checks.index_problems(sound, required=["G-1"]) == []


@pytest.mark.parametrize("fault", INDEX_FAULTS)
def test_index_fault_is_seen(project, fault):
    old, new, message = INDEX_FAULTS[fault]
    edit(project / "book" / "theorems.md", old, new)
    assert message in "\n".join(index_checks.index_problems(project))


def test_tag_in_scope_without_a_row_is_seen(sound):
    assert index_checks.index_problems(sound, required=["G-1", "G-9"]) == ["G-9: in scope, but without a row"]


def test_tag_only_in_the_library_is_seen(project):
    edit(project / "dplib" / "shapes.py", '"""Shapes."""', '"""Shapes [G-7.2]."""')
    assert any(problem.startswith("G-7.2: mentioned") for problem in index_checks.index_problems(project))


def test_error_without_an_entry_is_seen(project):
    edit(project / "dplib" / "shapes.py", '"""Shapes."""', '"""Shapes [E-3]."""')
    assert any("not in book/errata.md" in problem for problem in index_checks.index_problems(project))
    (project / "book" / "errata.md").write_text("# Errors\n\n## E-3\n")
    assert index_checks.index_problems(project) == []


def test_section_that_does_not_name_the_tag_is_seen(project):
    edit(project / "notebooks" / "01_first.ipynb", "[G-1] For", "For")
    assert any("no linked section mentions" in problem for problem in index_checks.index_problems(project))


# --- addresses and texts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "file, old",
    [
        ("README.md", "@ git+https://github.com/"),
        ("CITATION.cff", "https://github.com/"),
        ("pyproject.toml", "https://github.com/"),
    ],
)
def test_deviating_address_is_seen(project, file, old):
    for name in ("README.md", "CITATION.cff"):
        shutil.copy2(tools.ROOT / name, project / name)
    assert repository_checks.address_problems(project) == []
    edit(project / file, old, old + "x")
    assert repository_checks.address_problems(project) != []


def test_deviating_address_in_a_notebook_is_seen(project):
    for name in ("README.md", "CITATION.cff"):
        shutil.copy2(tools.ROOT / name, project / name)
    edit(project / "notebooks" / "01_first.ipynb", "git+https://github.com/", "git+https://github.com/x")
    assert len(repository_checks.address_problems(project)) >= 1


@pytest.mark.parametrize(
    "text", ["https://py" + "pi.org/simple", "/ro" + "ot/x", "/ho" + "me/x", "../sha" + "red/design.md"]
)
def test_word_that_points_outside_is_seen(project, text):
    assert repository_checks.text_problems(project) == []
    edit(project / "book" / "intro.md", "A small book", f"A small book {text}")
    assert len(repository_checks.text_problems(project)) == 1


# --- strict build -----------------------------------------------------------------------------------

BUILD_FAULTS = {
    "unknown theorem": ("intro.md", "{prf:ref}`thm-square`", "{prf:ref}`thm-cube`"),
    "dead page": ("intro.md", "(theorems.md)", "(lemmas.md)"),
    "dead anchor": ("intro.md", "#the-statement", "#no-such-section"),
    "missing image": ("intro.md", "_figures/line.png", "_figures/none.png"),
    "unknown directive": ("intro.md", "# A small book", "# A small book\n\n```{nonsense}\n```\n"),
    "unknown role": ("intro.md", "{prf:ref}`thm-square`", "{nonsense}`thm-square`"),
    "unknown citation": ("intro.md", "holds.", "holds {cite}`nobody2020`."),
    "skipped heading level": ("intro.md", "# A small book", "# A small book\n\n### Deep\n"),
    "same label twice": (
        "theorems.md",
        "# Theorems",
        "# Theorems\n\n```{prf:lemma} Again\n:label: thm-square\n\nA.\n```\n",
    ),
    "page missing": ("../_toc.yml", "book/theorems", "book/none"),
}


@pytest.mark.parametrize("fault", BUILD_FAULTS)
def test_build_fault_is_seen(project, fault):
    file, old, new = BUILD_FAULTS[fault]
    edit(project / "book" / file, old, new)
    status, text = build(project)
    assert status != 0, text


def test_figure_without_a_stored_image_is_seen(project):
    path = project / "notebooks" / "01_first.ipynb"
    notebook = tools.read(path)
    cell(notebook, "picture")["outputs"] = []
    tools.write(notebook, path)
    status, text = build(project)
    assert status != 0 and "0 stored images" in text


def test_figure_follows_its_notebook(project):
    """A page shows the image that the notebook stores now, not an older copy."""
    assert build(project)[0] == 0
    path = project / "notebooks" / "01_first.ipynb"
    edit(path, "plt.plot([1, 2])", "plt.plot([1, 2], color='black')")
    done = subprocess.run(
        [sys.executable, str(tools.ROOT / "tools" / "execute.py"), "--root", str(project)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    before = (project / "book" / "_figures" / "line.png").read_bytes()
    assert build(project)[0] == 0
    assert (project / "book" / "_figures" / "line.png").read_bytes() != before


# --- nbval, coverage, and the run as a whole --------------------------------------------------------


def pytest_in(folder, *arguments):
    environment = os.environ | tools.kernel_environment() | {"PYTHONPATH": str(folder)}
    environment = {
        key: value for key, value in environment.items() if not key.startswith(("PYTEST_", "COV_"))
    }
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
            "--rootdir",
            str(folder),
            *arguments,
        ],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def nbval(project):
    return pytest_in(project, "--nbval", "notebooks/02_second.ipynb", "--nbval-current-env")


def test_nbval_passes_on_sound_notebooks(project):
    done = nbval(project)
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.parametrize(
    "old, new",
    [
        ('"4\\n"', '"5\\n"'),  # stored output
        ("area(2) == 4", "area(2) == 5"),  # assertion
        ("print(area(2))", "print(area(3))"),  # code
    ],
    ids=["stored output", "assertion", "code"],
)
def test_nbval_sees_a_difference(project, old, new):
    edit(project / "notebooks" / "02_second.ipynb", old, new)
    done = nbval(project)
    assert done.returncode == 1, done.stdout[-2000:]


def test_nbval_sees_a_changed_library(project):
    edit(project / "dplib" / "numbers.py", "number * number", "number * number + 0.0")
    assert nbval(project).returncode == 1


@pytest.mark.parametrize("share, status", [(40, 0), (95, 1)])
def test_coverage_gate(project, share, status):
    (project / "dplib" / "numbers.py").write_text(
        "def square(n):\n    return n * n\n\n\ndef cube(n):\n    n = n\n    n = n\n    return n**3\n"
    )
    (project / "tests" / "test_numbers.py").write_text(
        "from dplib.numbers import square\n\n\ndef test_square():\n    assert square(2) == 4\n"
    )
    done = pytest_in(project, "tests", "--cov=dplib.numbers", f"--cov-fail-under={share}")
    assert done.returncode == status, done.stdout[-2000:]


def test_a_slow_notebook_is_reported_and_no_failure(tmp_path, monkeypatch):
    """Run times are printed; what they may be stands in benchmarks/notebook_times.py."""
    import run_tests

    monkeypatch.setattr(run_tests, "TIMES", tmp_path / "notebooks.xml")
    assert run_tests.run_times() == {}
    case = '<testsuites><testsuite><testcase classname="notebooks.{0}.ipynb" name="c" time="{1}"/></testsuite></testsuites>'
    run_tests.TIMES.write_text(case.format("solutions.01_hockey_stick", 1e6))
    assert run_tests.run_times() == {"solutions.01_hockey_stick": 1e6}


def test_a_failing_step_fails_the_run(tmp_path, monkeypatch, capsys):
    import run_tests

    (tmp_path / "test_good.py").write_text("def test_good():\n    assert 1 + 1 == 2\n")
    (tmp_path / "test_bad.py").write_text("def test_bad():\n    assert 1 + 1 == 3\n")
    base = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    monkeypatch.setattr(
        run_tests,
        "STEPS",
        {
            "good": lambda: [[*base, str(tmp_path / "test_good.py")]],
            "bad": lambda: [[*base, str(tmp_path / "test_good.py")], [*base, str(tmp_path / "test_bad.py")]],
        },
    )
    monkeypatch.setattr(sys, "argv", ["run_tests.py", "good"])
    assert run_tests.main() == 0
    monkeypatch.setattr(sys, "argv", ["run_tests.py", "bad", "good"])
    assert run_tests.main() == 1
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("===== FAILED: bad; 1 failed, 2 passed in ")
