"""The book builds strictly, stands alone, and shows what it says."""

import os
import re
import shutil

import build as builder
import html_checks
import notebook_tools as tools
import pytest
import small_project
import yaml

pytestmark = pytest.mark.slow


def page_names():
    toc = yaml.safe_load((tools.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    chapters = [entry["file"] for part in toc["parts"] for chapter in part["chapters"] for entry in (chapter, *chapter.get("sections", []))]
    return [f"{name}.html" for name in [toc["root"], *chapters]]


def test_strict_build_passes(build_record):
    status, text, _ = build_record
    assert status == 0, text[-5000:]
    assert "WARNING" not in text


def test_every_page_is_there_and_nothing_else(html):
    built = {str(path.relative_to(html)) for path in html_checks.pages(html)}
    assert set(page_names()) <= built
    helpers = {name for name in built if "/" not in name}  # start page, search, generated indices
    decks = {name for name in built if name.startswith("slides/")}  # tests/book/test_slides.py
    assert built - helpers - decks == set(page_names())


def test_pages(html):
    problems = html_checks.problems(html)
    assert not problems, "\n".join(problems[:40])


def test_a_lent_figure_has_the_number_of_its_chapter(small):
    for name in ("notebooks/01_first", "book/intro"):
        [number] = html_checks.soup(small / "_build" / "html" / f"{name}.html").select("figcaption .caption-number")
        assert number.get_text(strip=True) == "Figure 1.1"


def test_tags_and_names_lead_where_they_should(html):
    """In chapters, docstrings and the index; every statement has a card."""
    chapter = html_checks.soup(html / "notebooks" / "12_mmcc.html")
    assert '[<a class="reference internal" href="../book/theorems.html#thm-m-b-4">M-B.4</a>]' in str(chapter)
    assert '[<a class="reference internal" href="theorems.html#tag-a-8">A-8</a>]' in (html / "book" / "docstrings.html").read_text()
    library = html_checks.soup(html / "book" / "library.html")
    assert len(library.select("a[href*='docstrings.html#']")) > 150
    index = html_checks.soup(html / "book" / "theorems.html")
    cards = (html / "_static" / "statements-data.js").read_text(encoding="utf-8")
    for row in index.select("td[id^=tag-]"):
        tag = row.get_text(strip=True)
        assert f"[{tag}]" in cards or f'{row["id"]}"' in cards, tag
        links = [link["href"] for link in row.find_parent("tr").find_all("a")]
        assert any("/code/tests/" in link and "#L-" in link for link in links), tag
        assert any("docstrings.html#" in link for link in links), tag
    line = next(a for a in index.find_all("a") if a.get_text() == "tests/statements/test_properties.py::test_scale_does_not_matter")
    path, _, anchor = line["href"].partition("#")
    source = html_checks.soup((html / "book" / path).resolve())
    assert "def test_scale_does_not_matter" in source.find(id=anchor).find_next("span", class_="nf").parent.get_text()


def test_the_site_is_lean(html):
    """That formulas need nothing from elsewhere is seen in the browser."""
    size = sum(path.stat().st_size for path in html.rglob("*") if path.is_file())
    assert size < 60e6, f"the site takes {size / 1e6:.0f} MB"


def test_no_link_leads_to_an_address_that_is_not_set(html):
    """No buttons for Colab and Binder either."""
    for path in html_checks.pages(html):
        assert not re.search(r'<a [^>]*href="[^"]*/set--owner/', path.read_text(encoding="utf-8")), path


# --- a build that is broken off leaves the pages of the one before --------------------------------------


def test_a_build_that_fails_leaves_the_old_pages(small, tmp_path):
    project = shutil.copytree(small, tmp_path / "project")
    contents = lambda: {path: path.read_bytes() for path in (project / "_build").rglob("*") if path.is_file()}
    before = contents()
    page = project / "book" / "theorems.md"
    page.write_text(page.read_text() + "\nSee [G-9] and `tests/test_numbers.py::test_none`.\n")
    status, text = builder.build(project)
    assert status == 1 and contents() == before
    for name in ("[G-9] has no statement", "tests/test_numbers.py::test_none does not exist"):
        assert name in text


def test_an_address_brings_the_buttons_back(small):
    """On Colab and on Binder, from the top of each chapter of a book that has one."""
    links = {node["href"] for node in html_checks.soup(small / "_build/html/notebooks/01_first.html").find_all("a", href=True)}
    where = small_project.ADDRESS.removeprefix("https://github.com/")
    assert f"https://colab.research.google.com/github/{where}/blob/main/notebooks/01_first.ipynb" in links
    assert f"https://mybinder.org/v2/gh/{where}/main?urlpath=lab/tree/notebooks/01_first.ipynb" in links


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
