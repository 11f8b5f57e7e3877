"""Every notebook and the theorem index keep the rules of CONTRIBUTING.md."""

import re

import index_checks
import notebook_checks
import notebook_figures
import notebook_tools as tools
import pytest
import stamps
import yaml

NOTEBOOKS = tools.chapters()
SOLUTIONS = tools.solutions()


def name(path):
    return f"{path.parent.name}-{path.stem}"


@pytest.mark.parametrize("path", [*NOTEBOOKS, *SOLUTIONS], ids=name)
def test_notebook(path, tmp_path):
    """Its outputs are current, and it is written as `make execute` writes it: nothing that changes from run to run is stored.

    A solutions notebook keeps the rules of a chapter; its header is a matter of test_course.
    """
    assert stamps.stale_reason(path) is None, "run make execute"
    notebook = tools.read(path)
    tools.write(tools.normalise(tools.read(path)), tmp_path / path.name)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    checks = [check for check in notebook_checks.CHECKS if path in NOTEBOOKS or check is not notebook_checks.header_problems]
    problems = [problem for check in checks for problem in check(notebook)]
    assert not problems, "\n".join(problems)


def lessons():
    """The notebooks of the parts that are lessons, and chapter 22; of the rest some are long, or have no one question."""
    parts = yaml.safe_load((tools.ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    files = [chapter["file"] for part in parts if part["caption"] in ("Core", "Correlated noise") for chapter in part["chapters"]]
    return [tools.ROOT / f"{name}.ipynb" for name in [*files, "notebooks/22_users"] if name.startswith("notebooks/")]


@pytest.mark.parametrize("path", lessons(), ids=lambda path: path.stem)
def test_lesson(path):
    problems = notebook_checks.lesson_problems(tools.read(path))
    assert not problems, "\n".join(problems)


def test_the_core_path_is_short():
    core = yaml.safe_load((tools.ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"][0]
    files = [tools.ROOT / f"{chapter['file']}.ipynb" for chapter in core["chapters"] if chapter["file"].startswith("notebooks/")]
    assert core["caption"] == "Core" and len(files) == 10
    assert sum(notebook_checks.words(tools.read(path)) for path in files) <= 25_000


def test_stamps_are_written_as_execute_writes_them():
    """One for each notebook whose outputs are stored, and no other."""
    assert list(stamps.load()) == sorted(stamps.name(path) for path in [*NOTEBOOKS, *SOLUTIONS])
    assert stamps.file().read_text(encoding="utf-8") == stamps.text(stamps.load())


def test_theorem_index_has_no_orphan():
    problems = index_checks.index_problems()
    assert not problems, "\n".join(problems)


def test_table_of_contents_names_every_page_once():
    toc = yaml.safe_load((tools.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]
    pages = [*(tools.ROOT / "book").glob("*.md"), *NOTEBOOKS]
    present = [str(path.relative_to(tools.ROOT).with_suffix("")) for path in pages]
    assert sorted(listed) == sorted(present)


def test_title_carries_the_number_of_the_file():
    for path in NOTEBOOKS:
        title = tools.source(tools.read(path)["cells"][0]).splitlines()[0]
        assert title.startswith(f"# {int(path.stem[:2])}. "), f"{path.name}: {title}"


def test_figures_of_prose_pages_come_from_notebooks():
    """Every image of a prose page is a stored output of a notebook; html_checks looks for its alternative text."""
    named = notebook_figures.stored_figures(tools.ROOT)
    used = set()
    for path in sorted((tools.ROOT / "book").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r"!\[[^\]]*\]\(([^)\s]+)|```\{(?:figure|image)\} (\S+)", text):
            target = "".join(target)
            assert target.startswith("_figures/"), f"{path.name}: {target} is not the output of a notebook"
            name = target.removeprefix("_figures/").removesuffix(".png")
            assert name in named, f"{path.name}: no notebook has a figure named {name}"
            used.add(name)
    assert used == set(named), f"figures that no page shows: {sorted(set(named) - used)}"
