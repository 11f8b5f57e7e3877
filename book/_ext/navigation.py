"""The list of pages in parts that fold, and buttons with words.

The theme writes the captions of the parts as headings of one long list. Here each part folds; the one that holds the
page is open, so that the page is in view, and on a page outside of all parts the first one is.
"""

from bs4 import BeautifulSoup

# What the theme calls its buttons, and the word that stands beside the icon.
WORDS = {"launch-buttons": "Launch", "source-buttons": "Source", "download-buttons": "Download"}
WORDS |= {"fullscreen-button": "Full screen", "notation-button": "Notation"}


def folded(listing):
    """The theme's list of pages, each part as a <details>."""
    soup = BeautifulSoup(str(listing), "html.parser")
    parts = soup.select("p.caption")
    inside = soup.select_one(".current") is not None
    for number, caption in enumerate(parts):
        pages = caption.find_next_sibling("ul")
        part, head = soup.new_tag("details", attrs={"class": "part"}), soup.new_tag("summary")
        if pages.select_one(".current") or not (inside or number):
            part["open"] = ""
        head.string = caption.get_text()
        caption.replace_with(part)
        for below in pages.select("li > details"):  # pages below a page are listed where one of them is open
            if "current" in below.parent.get("class", []):
                below.replace_with(below.find("ul"))
            else:
                below.decompose()
        part.extend([head, pages])
    return soup


def arrange(app, pagename, templatename, context, doctree):
    if "generate_toctree_html" in context:
        listing = context["generate_toctree_html"]
        context["generate_toctree_html"] = lambda *args, **options: folded(listing(*args, **options))
        context["root_title"] = "Front page"  # not the title of the book again, which stands above it
    for button in context.get("header_buttons", ()):
        word = WORDS.get(button.get("label"))
        if button.get("icon") == "fab fa-github":  # an icon of a font of 118 kB
            button["icon"] = "fas fa-code"
        if word:
            button["tooltip" if button["type"] == "group" else "text"] = word


def setup(app):
    app.connect("html-page-context", arrange, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
