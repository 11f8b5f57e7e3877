"""The chapters link the glossary's terms where they are first used, each term once in a chapter."""

from collections import Counter

import html_checks
import pytest

pytestmark = pytest.mark.slow


def glossary_terms(folder):
    """{anchor: term} of the built glossary."""
    page = html_checks.soup(folder / "book" / "glossary.html")
    return {node["id"]: node.get_text().rstrip("#") for node in page.select("dl.glossary dt[id]")}


def glossary_links(folder):
    """{chapter: anchors of the glossary that it links to, in order}."""
    found = {}
    for path in sorted((folder / "notebooks").glob("*.html")):
        links = html_checks.soup(path).select("article a[href*='glossary.html#term-']")
        found[path.stem] = [link["href"].partition("#")[2] for link in links]
    return found


def glossary_problems(terms, links):
    problems = []
    for chapter, anchors in links.items():
        if not anchors:
            problems.append(f"{chapter} links no term of the glossary")
        problems += [f"{chapter}: no term {anchor}" for anchor in anchors if anchor not in terms]
        problems += [
            f"{chapter}: {anchor} is linked twice" for anchor, n in Counter(anchors).items() if n > 1
        ]
    used = {anchor for anchors in links.values() for anchor in anchors}
    problems += [f"no chapter links the term {term}" for anchor, term in terms.items() if anchor not in used]
    return problems


def test_first_uses_are_linked(html):
    terms, links = glossary_terms(html), glossary_links(html)
    assert len(terms) > 50 and len(links) > 15
    problems = glossary_problems(terms, links)
    assert not problems, "\n".join(problems)


def test_terms_are_in_alphabetical_order(html):
    import unicodedata

    def plain(term):
        letters = unicodedata.normalize("NFKD", term).encode("ascii", "ignore").decode().lower()
        return "".join(letter for letter in letters if letter.isalnum())

    names = [plain(term) for term in glossary_terms(html).values()]
    assert names == sorted(names)


@pytest.mark.parametrize(
    "links, complaint",
    [
        ({"01": ["term-a", "term-b"], "02": []}, "02 links no term"),
        ({"01": ["term-a", "term-b", "term-c"]}, "no term term-c"),
        ({"01": ["term-a", "term-b", "term-a"]}, "linked twice"),
        ({"01": ["term-a"]}, "no chapter links the term beta"),
    ],
)
def test_planted_faults_are_found(links, complaint):
    terms = {"term-a": "alpha", "term-b": "beta"}
    assert glossary_problems(terms, {"01": ["term-a", "term-b"]}) == []
    (problem,) = glossary_problems(terms, links)
    assert complaint in problem
