"""Glossary terms as link targets: `../book/glossary.md#term-bracket` works in plain Markdown.

Sphinx gives each term of a glossary an anchor, but MyST resolves `page.md#anchor` to headings only.
This adds the terms to the anchors that MyST knows, so that notebooks need no role to link to them.
"""

from docutils import nodes


def offer_terms(app, doctree):
    anchors = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for term in doctree.findall(nodes.term):
        for name in term["ids"]:
            anchors[name] = (term.line, name, term.astext())


def setup(app):
    app.connect("doctree-read", offer_terms)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
