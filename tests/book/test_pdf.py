"""The PDF of a small book: outline, links, pages, formulas; and each of these gates can fail.

The whole book takes minutes; `make pdf` checks its own result in the same way.
"""

import os
import shutil
import subprocess
import sys

import notebook_tools as tools
import pdf
import pikepdf
import pytest
import small_project

pytestmark = [pytest.mark.slow, pytest.mark.browser]
TITLES = ["A small book", "1. First", "2. Second", "Theorems"]


def print_book(html, source, output):
    """In a process of its own: this one may hold a browser already, and Playwright takes no second."""
    code = "import sys, pdf; print(pdf.print_book(*sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, html, source, output],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tools.ROOT / "tools")},
    )


@pytest.fixture(scope="module")
def printed(small, tmp_path_factory):
    output = tmp_path_factory.mktemp("pdf") / "book.pdf"
    done = print_book(small / "_build" / "html", small, output)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
    return output


def test_the_outline_is_the_table_of_contents(printed):
    with pikepdf.open(printed) as book, book.open_outline() as outline:
        assert [item.title for item in outline.root] == TITLES
        assert "The statement" in [item.title for item in outline.root[1].children]


def test_links_between_chapters_lead_to_their_place(printed):
    """The link from the first page to a section of a chapter opens the PDF's page with that section."""
    with pikepdf.open(printed) as book:
        named = book.Root.Dests
        targets = {str(link.get("/Dest")) for page in book.pages for link in page.get("/Annots", [])}
        wanted = "/" + pdf.anchor("notebooks/01_first", "the-statement")
        assert wanted in targets
        chapter, section = named["/" + pdf.anchor("notebooks/01_first")], named[wanted]
        numbers = {page.objgen: number for number, page in enumerate(book.pages)}
        assert numbers[section[0].objgen] >= numbers[chapter[0].objgen] > 1


def test_a_formula_that_stays_source_stops_the_printing(small, tmp_path):
    html = shutil.copytree(small / "_build" / "html", tmp_path / "html")
    small_project.edit(html, "book/intro.html", "a^2 \\ge 0", "a^{2 \\ge 0")
    done = print_book(html, small, tmp_path / "book.pdf")
    assert done.returncode and "not set" in done.stderr and not (tmp_path / "book.pdf").exists()
