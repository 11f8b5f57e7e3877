"""Less to load for each page before it is seen: icons once instead of twice, images when they come into view, scripts last.

The theme brings its icons as fonts and, again, as a script of 1.5 MB that draws the same ones; the fonts stay. It asks
for fonts and scripts in advance, which then compete with what the first paint waits for; they are loaded where they are needed.
Scripts in files wait until the page is read, and run in the order in which they stand; all but the one that inline scripts go on from.
Images get their size, so that nothing moves when they arrive.
"""

import re
import struct
from pathlib import Path
from urllib.parse import unquote

ICON_SCRIPT = re.compile(r"<script[^>]*/fontawesome/[^>]*/js/all\.min\.js[^>]*>\s*</script>\s*")
IN_ADVANCE = re.compile(r"<link rel=\"preload\"[^>]*>\s*")
SCRIPT = re.compile(r"<script (?![^>]*\b(?:defer|async)\b)(?=[^>]*\bsrc=)(?![^>]*/documentation_options\.js)")
IMAGE = re.compile(r"<img (?![^>]*\bloading=)([^>]*)>")
SOURCE = re.compile(r'\bsrc="([^":?#]+\.png)"')


def png_size(path):
    """(width, height) from the head of a PNG file."""
    head = path.read_bytes()[:24]
    if head[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError(f"{path} is no PNG file")
    return struct.unpack(">II", head[16:24])


def lighter(text, folder):
    """The text of a page that lies in `folder`, with less to load."""

    def late(match):
        attributes = match.group(1)
        source = SOURCE.search(attributes)
        if source is None:
            return match.group()
        size = ""
        if not re.search(r'\b(?:width|height)="', attributes):
            size = 'width="{}" height="{}" '.format(*png_size(folder / unquote(source.group(1))))
        return f'<img loading="lazy" {size}{attributes}>'

    text = IN_ADVANCE.sub("", ICON_SCRIPT.sub("", text))
    return IMAGE.sub(late, SCRIPT.sub("<script defer ", text))


def lighten(app, exception):
    if exception or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        if "_static" not in page.parts:
            page.write_text(lighter(page.read_text(encoding="utf-8"), page.parent), encoding="utf-8")
    for script in Path(app.outdir, "_static").rglob("fontawesome/**/js/*.js*"):
        script.unlink()


def setup(app):
    app.connect("build-finished", lighten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
