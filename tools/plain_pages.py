"""Pages outside the book's theme: the start page that leads on, moved pages, the list of versions, "not found".

They load nothing, so that they work at any depth and from any address.
"""

from html import escape
from pathlib import Path

PAGE = Path(__file__).with_name("plain_page.html").read_text(encoding="utf-8")


def page(title, body, head=""):
    """A whole page; `body` and `head` are HTML, `title` is text."""
    return PAGE.format(title=escape(title), body=body, head=head)


def redirect(target, title, head=""):
    """A page that leads on at once, by itself or by its link. A canonical address in `head` goes with it."""
    target = escape(target)
    refresh = f'<meta http-equiv="refresh" content="0; url={target}">\n'
    return page(title, f'<p>This page is at <a href="{target}">{target}</a>.</p>', refresh + head)
