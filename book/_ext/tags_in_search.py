"""The search finds statements by their tags.

It cuts a query such as A-14 into words, and throws away "a", a common word, and the bare number. Entries of the
index are compared as they stand, so each row of the table of theorems becomes one; it leads to the box of the
statement, or to the table where there is none. Each row also gets an anchor, so that other pages can link to it.
"""

import re

from docutils import nodes
from sphinx import addnodes

PAGE = "book/theorems"
TAG = re.compile(r"[A-Z]{1,2}-[A-Za-z0-9][\w.]*")


def row_anchor(tag):
    """Where the row of a tag stands on the page of theorems."""
    return "tag-" + tag.lower().replace(".", "-")


def boxes(doctree):
    """{tag: anchor} of the statements in boxes, whose titles begin with the tag in brackets."""
    found = {}
    for node in doctree.findall(nodes.Element):
        anchor = next((name for name in node.get("ids", []) if name.startswith("thm-")), None)
        match = re.search(rf"\[({TAG.pattern})\]", node.astext()) if anchor else None
        if match:
            found.setdefault(match.group(1), anchor)
    return found


def add_entries(app, doctree, docname):
    if docname != PAGE:
        return
    anchors = boxes(doctree)
    for row in doctree.findall(nodes.row):
        tag = TAG.match(row.children[0].astext().strip())
        if tag is None:
            continue
        row.children[0]["ids"].append(row_anchor(tag.group()))
        section = row
        while not isinstance(section, nodes.section):
            section = section.parent
        anchor = anchors.get(tag.group(), section["ids"][0])
        row.children[0] += addnodes.index(entries=[("single", tag.group(), anchor, "", None)])


def setup(app):
    app.connect("doctree-resolved", add_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
