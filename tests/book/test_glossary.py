"""The chapters link the glossary's terms where they are first used, each term once in a chapter."""

import functools
from collections import Counter

import html_checks
import pytest
from bs4 import BeautifulSoup, SoupStrainer

pytestmark = pytest.mark.slow


def glossary_terms(folder):
    """{anchor: term} of the built glossary."""
    page = html_checks.soup(folder / "book" / "glossary.html")
    return {node["id"]: node.get_text().rstrip("#") for node in page.select("dl.glossary dt[id]")}


@functools.cache
def glossary_links(folder):
    """{chapter: [(anchor, title)] of its links to the glossary, in order}."""
    found = {}
    for path in sorted((folder / "notebooks").glob("*.html")):
        links = BeautifulSoup(path.read_text(encoding="utf-8"), "lxml", parse_only=SoupStrainer("a"))
        links = links.select("a[href*='glossary.html#term-']")
        found[path.stem] = [(link["href"].partition("#")[2], link.get("title")) for link in links]
    return found


def test_first_uses_are_linked(html):
    terms = glossary_terms(html)
    links = {chapter: [anchor for anchor, _ in pairs] for chapter, pairs in glossary_links(html).items()}
    assert len(terms) > 50 and len(links) > 15
    assert [chapter for chapter, anchors in links.items() if not anchors] == []
    assert [(chapter, anchor) for chapter, anchors in links.items() for anchor, n in Counter(anchors).items() if n > 1] == []
    used = {anchor for anchors in links.values() for anchor in anchors}
    assert [term for anchor, term in terms.items() if anchor not in used] == []


def test_definitions_are_shown_on_hover(html):
    """Words, no markup."""
    titles = [title for pairs in glossary_links(html).values() for _, title in pairs]
    shown = [title for title in titles if title is not None]
    assert len(titles) > 200 and [title for title in shown if set(title) & set("\\$^_{}`")] == []
    assert sum(len(title.split()) > 5 for title in shown) >= 0.9 * len(titles)


def test_terms_are_in_alphabetical_order(html):
    import unicodedata

    def plain(term):
        letters = unicodedata.normalize("NFKD", term).encode("ascii", "ignore").decode().lower()
        return "".join(letter for letter in letters if letter.isalnum())

    names = [plain(term) for term in glossary_terms(html).values()]
    assert names == sorted(names)
