"""Glossary terms as link targets: `../book/glossary.md#term-bracket` works in plain Markdown.

Sphinx gives each term of a glossary an anchor, but MyST resolves `page.md#anchor` to headings only.
This adds the terms to the anchors that MyST knows, so that notebooks need no role to link to them,
and gives each such link the definition as its title, which browsers show on hover.
"""

import re

from docutils import nodes
from sphinx import addnodes

KEY = "glossary_definitions"
LETTERS = {r"\varepsilon": "ε", r"\delta": "δ", r"\sigma": "σ", r"\alpha": "α", r"\le": "≤", r"\mid": "|"}


def plain(definition):
    """A definition without markup; None if a formula in it needs to be typeset."""
    text = " ".join(definition.astext().split())
    text = re.sub(r"\\[a-z]+(?![a-z])", lambda match: LETTERS.get(match.group(), match.group()), text)
    return None if re.search(r"[\\^_{}]", text) else text


def offer_terms(app, doctree):
    stored = app.env.metadata[app.env.docname]
    for glossary in doctree.findall(addnodes.glossary):
        for item in glossary.findall(nodes.definition_list_item):
            for term in item.findall(nodes.term):
                for name in term["ids"]:
                    anchor = (term.line, name, term.astext())
                    stored.setdefault("myst_slugs", {})[name] = anchor
                    stored.setdefault(KEY, {})[name] = plain(item[-1])


def add_titles(app, doctree, docname):
    for page, stored in app.env.metadata.items():
        definitions = stored.get(KEY, {})
        for node in doctree.findall(nodes.reference) if definitions and page != docname else ():
            address, _, name = node.get("refuri", "").partition("#")
            if definitions.get(name) and address.endswith(
                app.builder.get_target_uri(page).rpartition("/")[2]
            ):
                node["reftitle"] = definitions[name]


def setup(app):
    app.connect("doctree-read", offer_terms)
    app.connect("doctree-resolved", add_titles)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
