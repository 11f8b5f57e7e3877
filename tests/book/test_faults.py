"""Killed at any moment, on a full disk, in a folder that may not be written: nothing is corrupt, nothing old is lost.

The moments are drawn at random, from a seed that is printed; each test says what a run under way must leave behind.
"""

import os
import shutil

import build as builder
import notebook_tools as tools
import pytest
from faults import contents, finish, start

pytestmark = pytest.mark.slow
SCRIPTS = tools.ROOT / "tools"


def build(project, **keywords):
    return start(SCRIPTS / "build.py", "--source", project, **keywords)


@pytest.fixture
def project(small, tmp_path):
    return shutil.copytree(small, tmp_path / "project")


# --- make execute -----------------------------------------------------------------------------------


# --- make book --------------------------------------------------------------------------------------


def test_a_build_that_fails_leaves_the_old_pages(project):
    before = contents(project / "_build")
    toc = project / "_toc.yml"
    toc.write_text(toc.read_text() + "  - file: book/none\n")
    status, text = finish(build(project))
    assert status == 1 and "the pages of the last build are as they were" in text
    assert contents(project / "_build") == before


def test_pages_left_aside_are_put_back(tmp_path):
    """Killed between the two moves: the next run, whatever becomes of it, begins by putting the old pages back."""
    pages, aside = tmp_path / "html", tmp_path / ".html.previous"
    aside.mkdir()
    (aside / "index.html").write_text("old")
    builder.recover(pages)
    assert (pages / "index.html").read_text() == "old" and not aside.exists()
    new = tmp_path / "new"
    new.mkdir()
    (new / "index.html").write_text("new")
    builder.replace(new, pages)
    assert (pages / "index.html").read_text() == "new" and os.listdir(tmp_path) == ["html"]
