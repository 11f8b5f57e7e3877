"""Every tag such as [M-B.4] leads to its statement, and its statement comes to the reader.

Chapters and pages are plain Markdown, so a tag is written in brackets and nothing else. Here each becomes a link: to
the box of the statement on the page of theorems, to its row where there is no box, or to its entry among the errata.
A tag without a statement is a warning, which fails the build. Statements have no other number than their tag, so the
numbers that sphinx-proof counts are taken away.

What a card shows on hover and on focus (statements.js) is written as a script, because pages opened from the disk may
load scripts, but no other files. The kept extensions do not serve: sphinx-hoverxref asks a server of Read the Docs,
and sphinx-tippy loads its scripts from another host and repeats every statement in a script for every page.

Each row is also an entry of the index, by which the search without a server finds A-14: it throws away "a", a common
word, and a bare number, but compares entries as they stand.
"""

import json
import re
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging

THEOREMS, ERRATA = "book/theorems", "book/errata"
TAG = re.compile(r"[A-Z]{1,2}-[A-Za-z0-9][\w.]*(?<!\.)")
TAGGED = re.compile(rf"\[({TAG.pattern})(: [^\]]*)?\]")
NOT_TEXT = (
    nodes.reference,
    nodes.literal,
    nodes.literal_block,
    nodes.doctest_block,
    nodes.title,
    nodes.raw,
    nodes.math,
)
NUMBER = re.compile(r'(<span class="caption-number">\w+) \d+ (?=</span>)')
KEY = "tags"


def anchor(tag):
    """Where the row or entry of a tag stands on its page."""
    return "tag-" + tag.lower().replace(".", "-")


def boxes(doctree):
    """{tag: anchor} of the statements in boxes, whose titles begin with the tag in brackets."""
    found = {}
    for node in doctree.findall(
        lambda node: isinstance(node, nodes.Element) and "proof" in node.get("classes", ())
    ):
        name = next((name for name in node.get("ids", []) if name.startswith("thm-")), None)
        match = TAGGED.search(node.astext()) if name else None
        if match:
            found.setdefault(match.group(1), name)
    return found


def collect(app, doctree):
    """Note where each tag has its statement; give rows and entries their anchors."""
    found = {}
    if app.env.docname == THEOREMS:
        found = boxes(doctree)
        for row in doctree.findall(nodes.row):
            tag = TAG.match(row.children[0].astext().strip())
            if tag:
                row.children[0]["ids"].append(anchor(tag.group()))
                target = found.setdefault(tag.group(), anchor(tag.group()))
                if target.startswith("thm-"):
                    row.children[0].children[0].children[:] = []
                    row.children[0].children[0] += nodes.reference(
                        "", tag.group(), internal=True, refid=target
                    )
                row.children[0] += addnodes.index(entries=[("single", tag.group(), target, "", None)])
    elif app.env.docname == ERRATA:
        for section in doctree.findall(nodes.section):
            tag = TAG.match(section.children[0].astext())
            if tag:
                section["ids"].append(anchor(tag.group()))
                found[tag.group()] = anchor(tag.group())
    app.env.metadata[app.env.docname][KEY] = found


def inside(node, kinds):
    while node is not None and not isinstance(node, kinds):
        node = node.parent
    return node is not None


def link(app, doctree, docname):
    """Turn tags into links, and the numbers of references to boxes into tags."""
    targets = {
        tag: f"{app.builder.get_relative_uri(docname, page) if page != docname else ''}#{name}"
        for page in (THEOREMS, ERRATA)
        for tag, name in app.env.metadata[page].get(KEY, {}).items()
    }
    by_box = {target.partition("#")[2]: tag for tag, target in targets.items()}
    for node in doctree.findall(nodes.reference):
        label = node.get("refid") or node.get("refuri", "").partition("#")[2]
        if label in by_box and by_box[label] != node.astext():
            node.clear()
            node += nodes.Text(f"[{by_box[label]}]")
        elif node.astext() in targets:
            node["refuri"] = targets[node.astext()]
    for node in list(doctree.findall(nodes.Text)):
        pieces, end = [], 0
        for match in () if inside(node, NOT_TEXT) else TAGGED.finditer(node):
            tag = match.group(1)
            if tag not in targets:
                logging.getLogger(__name__).warning("[%s] has no statement", tag, location=docname)
                continue
            pieces += [nodes.Text(node[end : match.start(1)])]
            pieces += [nodes.reference("", tag, internal=True, refuri=targets[tag])]
            end = match.end(1)
        if pieces:
            node.parent.replace(node, [*pieces, nodes.Text(node[end:])])


def unnumber(app, pagename, templatename, context, doctree):
    if pagename == THEOREMS:
        context["body"] = NUMBER.sub(r"\1 ", context["body"])


def shown(node):
    """The part of a page that a card shows, without links: they would be a second page in the page."""
    if node.name == "span":  # an entry of the errata: heading and fields
        entry = node.find_parent("section")
        parts = [entry.h2, entry.dl]
    elif node.name == "div":
        parts = [node]
    else:  # a row: tag and statement
        parts = node.find_parent("tr").find_all("td", limit=2)
    card = BeautifulSoup("".join(map(str, parts)), "html.parser")
    for extra in card.select("a.headerlink, details"):
        extra.decompose()
    for part in card.find_all(True):
        part.name = {"h2": "strong", "a": "span", "td": "div", "section": "div"}.get(part.name, part.name)
        part.attrs = {key: value for key, value in part.attrs.items() if key == "class"}
    return str(card)


def write_cards(app, exception):
    if exception or app.builder.format != "html":
        return
    cards = {}
    for page in (THEOREMS, ERRATA):
        found = app.env.metadata[page].get(KEY, {})
        if found:
            document = BeautifulSoup(
                Path(app.outdir, f"{page}.html").read_text(encoding="utf-8"), "html.parser"
            )
            places = {node["id"]: node for node in document.find_all(id=True)}
            cards |= {name: shown(places[name]) for name in found.values()}
    script = f"window.BOOK_STATEMENTS = {json.dumps(cards, ensure_ascii=False)};\n"
    Path(app.outdir, "_static", "statements-data.js").write_text(script, encoding="utf-8")


def setup(app):
    app.connect("doctree-read", collect)
    app.connect("doctree-resolved", link)
    app.connect("html-page-context", unnumber)
    app.connect("build-finished", write_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
