"""One address everywhere; `make set-repository` changes it everywhere; nothing points outside."""

import re
import shutil

import notebook_tools as tools
import pytest
import repository_checks as checks
import stamps
from bootstrap_cell import repository
from set_repository import set_repository, text_files


@pytest.fixture
def copy(tmp_path):
    """A copy of the text files, without git."""
    for path in text_files(tools.ROOT):
        target = tmp_path / path.relative_to(tools.ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    return tmp_path


def test_addresses_agree():
    problems = checks.address_problems(tools.ROOT)
    assert not problems, "\n".join(problems)


def test_files_speak_of_the_project_alone():
    problems = checks.text_problems(tools.ROOT)
    assert not problems, "\n".join(problems)


def test_set_repository_changes_every_place(copy):
    old = repository(copy)[0]
    new = "https://github.com/someone-else/another.name"
    changed = set_repository(copy, new + ".git")
    assert {path.name for path in changed} >= {"_config.yml", "README.md", "CITATION.cff", "pyproject.toml"}
    assert {path.name for path in changed} >= {path.name for path in tools.notebooks(copy)}
    assert repository(copy)[0] == new
    assert not checks.address_problems(copy)
    assert not [path for path in text_files(copy) if old in path.read_text(encoding="utf-8")]
    assert {stamps.stale_reason(path, copy) for path in tools.notebooks(copy)} == {None}  # the stored outputs stay current


def test_a_longer_address_is_left_alone(copy):
    old = repository(copy)[0]
    page = copy / "book" / "elsewhere.md"
    page.write_text(f"{old}-fork {old}.\n", encoding="utf-8")
    set_repository(copy, "https://github.com/a/b")
    assert page.read_text(encoding="utf-8") == f"{old}-fork https://github.com/a/b.\n"
    assert re.search("fork", page.read_text(encoding="utf-8"))
