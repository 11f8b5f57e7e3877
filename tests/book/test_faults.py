"""Killed at any moment, on a full disk, in a folder that may not be written: nothing is corrupt, nothing old is lost.

The moments are drawn at random, from a seed that is printed; each test says what a run under way must leave behind.
"""

import os
import re
import shutil
import time

import build as builder
import notebook_tools as tools
import psutil
import pytest
import stamps
from faults import contents, finish, kill_at, moments, small_files_only, start

pytestmark = pytest.mark.slow
SCRIPTS = tools.ROOT / "tools"


def execute(project, *arguments, **keywords):
    return start(SCRIPTS / "execute.py", "--root", project, *arguments, **keywords)


def build(project, **keywords):
    return start(SCRIPTS / "build.py", "--source", project, **keywords)


@pytest.fixture
def project(small, tmp_path):
    return shutil.copytree(small, tmp_path / "project")


def store_other_outputs(project):
    """So that a notebook from before can be told from one that was stored since."""
    for path in tools.notebooks(project):
        before = path.read_text()
        path.write_text(re.sub(r'"(\d)\\n"', r'"old \1\\n"', before))
        assert path.read_text() != before


# --- make execute -----------------------------------------------------------------------------------


@pytest.mark.attack
def test_execute_killed_at_random_moments(project, small):
    expected = contents(small / "notebooks")
    store_other_outputs(project)
    old = contents(project / "notebooks")
    for moment in moments(2, latest=5.0):
        process = execute(project, "--force")
        kernels = set()
        deadline = time.monotonic() + moment
        while time.monotonic() < deadline and process.poll() is None:
            kernels |= set(psutil.Process(process.pid).children(recursive=True))
            time.sleep(0.05)
        kill_at(process, 0)
        for name, digest in contents(project / "notebooks").items():
            if name.endswith(".ipynb"):  # old or new, never a part
                assert digest in (old[name], expected[name]), name
        _, alive = psutil.wait_procs(kernels, timeout=300)
        assert not alive, "kernels outlive the run"
    status, text = finish(execute(project))
    assert status == 0, text
    assert contents(project / "notebooks") == expected


@pytest.mark.attack
def test_execute_on_a_full_disk(project):
    """The notebook with the picture is larger than the rest of the disk; the other is stored."""
    store_other_outputs(project)
    first, second = tools.notebooks(project)
    before = first.read_bytes()
    room = (len(before) + second.stat().st_size) // 2
    assert second.stat().st_size < room < len(before)
    status, text = finish(execute(project, preexec_fn=small_files_only(room)))
    assert status == 1
    assert "01_first.ipynb: cannot be written" in text and "the old outputs are as they were" in text
    assert "Traceback" not in text
    assert first.read_bytes() == before
    assert stamps.stale_reason(second, project) is None
    assert list((project / "notebooks").glob(".*")) == []


# --- make book --------------------------------------------------------------------------------------


@pytest.mark.attack
def test_build_killed_at_random_moments(project):
    pages = project / "_build" / "html"
    before = contents(pages)
    for moment in moments(2, latest=6.0):
        if not kill_at(build(project), moment):
            continue  # it was quicker; then the pages are new and whole, which the last lines check
        assert contents(pages).keys() == before.keys(), f"killed after {moment:.2f} s"
    status, text = finish(build(project))
    assert status == 0, text
    assert contents(pages).keys() == before.keys()
    assert [path.name for path in sorted((project / "_build").iterdir())] == [".lock", "html"]


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


@pytest.mark.attack
def test_build_on_a_full_disk(project):
    before = contents(project / "_build")
    status, text = finish(build(project, preexec_fn=small_files_only(500_000)))
    assert status == 1 and "File too large" in text
    assert "the pages of the last build are as they were" in text and "Traceback" not in text
    assert contents(project / "_build") == before


