"""Marks by which a reader tells statements, checks and deliberate damage apart at a glance.

Chapters are plain Markdown, so that they read the same everywhere; what a passage is can be seen from how it
begins. Here that becomes a class, which book.css dresses:

    statement     a block quote that begins with **Theorem …**, **Lemma …** and so on
    expect, read  a paragraph that begins with **Expect.** or **Read.**
    check         a code cell with an assertion
    breaks        a section or paragraph about what breaks when an assumption is dropped
    facts         a table whose header row is empty, as in the assumptions; the row itself goes
"""

import re

from docutils import nodes

STATEMENT = re.compile(
    r"(Theorem|Lemma|Proposition|Corollary|Definition|Algorithm|Remark|Parity|Training|Shuffling|Buffered)\b"
)
PARAGRAPHS = {"Expect.": "expect", "Read.": "read", "What breaks.": "breaks"}
BREAKS = re.compile(r"What breaks\b|The wrong account\b")
BOOTSTRAP = 'importlib.util.find_spec("dplib")'


def opening(node):
    """The bold words with which a paragraph begins (MyST may put an empty text before them)."""
    if not isinstance(node, nodes.paragraph):
        return ""
    first = next((child for child in node.children if child.astext()), None)
    return first.astext() if isinstance(first, nodes.strong) else ""


def mark(app, doctree, docname):
    for quote in doctree.findall(nodes.block_quote):
        if quote.children and STATEMENT.match(opening(quote.children[0])):
            quote["classes"].append("statement")
    for paragraph in doctree.findall(nodes.paragraph):
        name = PARAGRAPHS.get(opening(paragraph).strip())
        if name:
            paragraph["classes"].append(name)
    for section in doctree.findall(nodes.section):
        if BREAKS.match(section.children[0].astext()):
            section["classes"].append("breaks")
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code":
            source = "\n".join(block.astext() for block in cell.findall(nodes.literal_block))
            if re.search(r"^\s*assert\b", source, re.MULTILINE) and BOOTSTRAP not in source:
                cell["classes"].append("check")
    for table in doctree.findall(nodes.table):
        for head in list(table.findall(nodes.thead)):
            if not head.astext().strip():
                head.parent.remove(head)
                table["classes"].append("facts")


def setup(app):
    app.connect("doctree-resolved", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
