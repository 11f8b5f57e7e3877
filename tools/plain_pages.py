"""Pages outside the book's theme: the start page that leads on, moved pages, the list of versions, "not found".

They load nothing, so that they work at any depth and from any address.
"""

from html import escape

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
{head}<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1.05rem/1.6 system-ui, sans-serif; max-width: 38rem; margin: 4rem auto; padding: 0 1.25rem; }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""


def page(title, body, head=""):
    """A whole page; `body` and `head` are HTML, `title` is text."""
    return PAGE.format(title=escape(title), body=body, head=head)


def redirect(target, title, head=""):
    """A page that leads on at once, by itself or by its link. A canonical address in `head` goes with it."""
    target = escape(target)
    refresh = f'<meta http-equiv="refresh" content="0; url={target}">\n'
    return page(title, f'<p>This page is at <a href="{target}">{target}</a>.</p>', refresh + head)
