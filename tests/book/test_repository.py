"""One address everywhere; `make set-repository` changes it everywhere; nothing points outside."""

import shutil

import notebook_tools as tools
import repository_checks as checks
import stamps
from bootstrap_cell import repository
from set_repository import set_repository, text_files


def test_addresses_agree():
    problems = checks.address_problems(tools.ROOT)
    assert not problems, "\n".join(problems)


def test_files_speak_of_the_project_alone():
    problems = checks.text_problems(tools.ROOT)
    assert not problems, "\n".join(problems)


def test_set_repository_changes_every_place(tmp_path):
    """In a copy of the text files, without git; a longer address is left alone."""
    for path in text_files(tools.ROOT):
        target = tmp_path / path.relative_to(tools.ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    old, new = repository(tmp_path)[0], "https://github.com/someone-else/another.name"
    page = tmp_path / "book" / "elsewhere.md"
    page.write_text(f"{old}-fork {old}.\n", encoding="utf-8")
    changed = {path.name for path in set_repository(tmp_path, new + ".git")}
    assert changed >= {"_config.yml", "README.md", "CITATION.cff", "pyproject.toml", *(path.name for path in tools.notebooks(tmp_path))}
    assert repository(tmp_path)[0] == new
    assert page.read_text(encoding="utf-8") == f"{old}-fork {new}.\n"
    page.unlink()
    assert not checks.address_problems(tmp_path)
    assert not [path for path in text_files(tmp_path) if old in path.read_text(encoding="utf-8")]
    assert {stamps.stale_reason(path, tmp_path) for path in tools.notebooks(tmp_path)} == {None}  # the stored outputs stay current
