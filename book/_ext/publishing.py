"""What a published page says of itself: its address, its preview, its version, and how to cite it.

The address follows from the repository's in `_config.yml`; version and authors come from `CITATION.cff`.
"""

from pathlib import Path

import yaml
from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

CARD = "_static/social_card.png"
CARD_ALT = (
    "Epsilon of a group against its size: the certified upper bound stays low, the black-box lemma shoots up"
)
CITE_PAGE = "book/how_to_cite"
# The owner of the address before one is set, a name that no account can have: nothing answers there.
NOBODY = "/set--owner/"


def address(root):
    """Where the site is published: the repository's GitHub Pages, with a slash at the end."""
    url = yaml.safe_load(Path(root, "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]
    owner, name = url.removeprefix("https://github.com/").split("/")
    host = f"https://{owner.lower()}.github.io/"
    return host if name.lower() == f"{owner.lower()}.github.io" else f"{host}{name}/"


def citation(root):
    """The fields of CITATION.cff; ExtensionError names a missing one."""
    fields = yaml.safe_load(Path(root, "CITATION.cff").read_text(encoding="utf-8"))
    for name in ("title", "authors", "version", "date-released", "repository-code"):
        if not fields.get(name):
            raise ExtensionError(f"CITATION.cff has no {name}")
    return fields


def author_names(fields):
    """The authors, as a list of lines would give them: people with their family name first."""
    return [
        person.get("name") or ", ".join(filter(None, [person.get("family-names"), person.get("given-names")]))
        for person in fields["authors"]
    ]


def as_text(fields, where):
    """One line for a list of references."""
    year = str(fields["date-released"])[:4]
    return (
        f"{'; '.join(author_names(fields))} ({year}). {fields['title']}, version {fields['version']}. {where}"
    )


def as_bibtex(fields, where):
    """The same for BibTeX. An organisation stands in braces, so that it is not taken for a person."""
    people = [
        f"{{{name}}}" if "name" in person else name
        for person, name in zip(fields["authors"], author_names(fields))
    ]
    lines = {
        "author": " and ".join(people),
        "title": f"{{{fields['title']}}}",
        "year": str(fields["date-released"])[:4],
        "version": fields["version"],
        "url": where,
        "note": f"Source: {fields['repository-code']}",
    }
    entries = ",\n".join(f"  {name:<7} = {{{value}}}" for name, value in lines.items())
    return f"@misc{{privacy_amplification_book,\n{entries}\n}}"


class Citation(SphinxDirective):
    """How to cite the book, from CITATION.cff."""

    def run(self):
        root = self.env.app.srcdir
        self.env.note_dependency(str(Path(root, "CITATION.cff")))
        fields, where = citation(root), address(root)
        bibtex = nodes.literal_block(text=as_bibtex(fields, where), language="bibtex")
        line = nodes.paragraph(text=as_text(fields, where), support_smartquotes=False)
        return [nodes.block_quote("", line), bibtex]


def configure(app, config):
    """Canonical addresses, and the preview that a shared link shows."""
    config.html_baseurl = address(app.srcdir) + "latest/"
    config.ogp_site_url = config.html_baseurl
    config.ogp_site_name = config.html_title or citation(app.srcdir)["title"]
    config.ogp_type = "book"
    config.ogp_image = config.html_baseurl + CARD
    config.ogp_image_alt = CARD_ALT
    config.ogp_enable_meta_description = True
    config.ogp_custom_meta_tags = ('<meta name="twitter:card" content="summary_large_image" />',)


def footer(app, pagename, templatename, context, doctree):
    """Version, other versions, how to cite: at the foot of every page."""
    if app.builder.format != "html":
        return
    parts = [f"Version {citation(app.srcdir)['version']}"]
    parts.append(f'<a href="{address(app.srcdir)}versions.html">All versions</a>')
    if CITE_PAGE in app.env.found_docs:
        parts.append(f'<a href="{context["pathto"](CITE_PAGE)}">How to cite</a>')
    context["theme_extra_footer"] = f"<p>{' · '.join(parts)}</p>"


def answers(button):
    """Whether a button leads somewhere; a group, whether one of its buttons does, and those that do not are dropped."""
    if button["type"] != "group":
        return NOBODY not in button.get("url", "")
    button["buttons"] = [one for one in button["buttons"] if answers(one)]
    return bool(button["buttons"])


def hide_buttons(app, pagename, templatename, context, doctree):
    """Buttons that cannot work are hidden until the repository has an address: make set-repository."""
    if "header_buttons" in context:
        context["header_buttons"] = [button for button in context["header_buttons"] if answers(button)]


def hide_links(app, doctree, docname):
    """The same for links in the text: in a row of links they go with the dot behind them, elsewhere the words stay."""
    for link in [node for node in doctree.findall(nodes.reference) if NOBODY in node.get("refuri", "")]:
        after = link.next_node(descend=False, siblings=True)
        if isinstance(after, nodes.Text) and after.startswith(" · "):
            after.parent.replace(after, nodes.Text(after[3:]))
            link.parent.remove(link)
        else:
            link.parent.replace(link, link.children)


def setup(app):
    app.add_directive("citation", Citation)
    app.connect("config-inited", configure, priority=400)  # before extensions read their settings
    app.connect("html-page-context", footer)
    app.connect("html-page-context", hide_buttons, priority=900)
    app.connect("doctree-resolved", hide_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
