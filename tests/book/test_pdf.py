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
from build import build

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = small_project.executed(tmp_path_factory.mktemp("pdf") / "project")
    status, text = build(folder)
    assert status == 0, text
    return folder


def print_book(html, source, output):
    """In a process of its own: this one may hold a browser already, and Playwright takes no second."""
    code = "import sys, pdf; print(pdf.print_book(*sys.argv[1:], quiet=True))"
    return subprocess.run(
        [sys.executable, "-c", code, html, source, output],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tools.ROOT / "tools")},
    )


@pytest.fixture(scope="module")
def printed(project):
    output = project / "book.pdf"
    done = print_book(project / "_build" / "html", project, output)
    assert (done.returncode, done.stdout.strip()) == (0, "4"), done.stderr
    return output


def problems(project, path):
    return pdf.problems(path, project, project / "_build" / "html")


def test_a_sound_book_has_no_problem(project, printed):
    assert problems(project, printed) == []


def test_the_outline_is_the_table_of_contents(project, printed):
    with pikepdf.open(printed) as book:
        titles = [title for depth, title in pdf.outline_titles(book) if depth == 0]
    assert titles == ["A small book", "1. First", "2. Second", "Theorems"]


def test_sections_are_in_the_outline(printed):
    with pikepdf.open(printed) as book:
        assert (1, "The statement") in pdf.outline_titles(book)


def test_links_between_chapters_lead_to_their_place(printed):
    """The link from the first page to a section of a chapter opens the PDF's page with that section."""
    with pikepdf.open(printed) as book:
        named = book.Root.Dests
        targets = [
            str(link.Dest)
            for page in book.pages
            for link in page.get("/Annots", [])
            if isinstance(link.get("/Dest"), pikepdf.Name)
        ]
        wanted = "/" + pdf.anchor("notebooks/01_first", "the-statement")
        assert wanted in targets
        chapter, section = named["/" + pdf.anchor("notebooks/01_first")], named[wanted]
        numbers = {page.objgen: number for number, page in enumerate(book.pages)}
        assert numbers[section[0].objgen] >= numbers[chapter[0].objgen] > 1


def test_formulas_are_drawn(project):
    document, settings = pdf.joined(project / "_build" / "html", project)
    assert "\\ge" in document and "tex" in settings
    assert "<details" not in document and "<script" not in document


def test_a_formula_that_stays_source_stops_the_printing(project, tmp_path):
    html = shutil.copytree(project / "_build" / "html", tmp_path / "html")
    page = html / "book" / "intro.html"
    page.write_text(page.read_text(encoding="utf-8").replace("a^2 \\ge 0", "a^{2 \\ge 0"), encoding="utf-8")
    done = print_book(html, project, tmp_path / "book.pdf")
    assert done.returncode and "not set" in done.stderr and not (tmp_path / "book.pdf").exists()


def spoilt(printed, tmp_path, change):
    copy = tmp_path / "spoilt.pdf"
    with pikepdf.open(printed) as book:
        change(book)
        book.save(copy)
    return copy


def lose_outline(book):
    with book.open_outline() as outline:
        del outline.root[1]


def lose_targets(book):
    del book.Root.Dests["/" + pdf.anchor("notebooks/01_first", "the-statement")]


def lose_links(book):
    for page in book.pages:
        if "/Annots" in page:
            del page["/Annots"]


def leave_the_book(book):
    link = next(link for page in book.pages for link in page.get("/Annots", []))
    del link["/Dest"]
    link["/A"] = pikepdf.Dictionary(S=pikepdf.Name.URI, URI=pikepdf.String("file:///somewhere/else.html"))


@pytest.mark.parametrize("change", [lose_outline, lose_targets, lose_links, leave_the_book])
def test_a_fault_of_the_pdf_is_seen(project, printed, tmp_path, change):
    assert problems(project, spoilt(printed, tmp_path, change)) != []


def test_a_link_to_a_missing_page_is_refused(project):
    html = project / "_build" / "html"
    names = ["book/intro"]
    with pytest.raises(ValueError, match="no page of the book"):
        pdf.Page(html, "book/intro", names, 0)
