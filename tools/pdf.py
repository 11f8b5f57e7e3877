"""Print the built book into one PDF, with outline, page numbers and links that work between chapters.

    python -m tools pdf

The articles of all pages are joined in the order of the table of contents, their anchors made distinct, their
links turned inwards, and Chromium prints the result. Parts, pages and sections become the outline.
"""

import json
import posixpath
import re
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pikepdf
import yaml
from browser import find_chromium
from bs4 import BeautifulSoup
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
MATHJAX = re.compile(r"window\.MathJax = (\{.*\})")
# A4 less the margins, in CSS pixels: formulas are set and measured at the width at which they are printed.
WIDTH, MARGIN = 680, {"top": "18mm", "bottom": "20mm", "left": "15mm", "right": "15mm"}
FOOTER = (
    '<div style="width: 100%; font-size: 8px; text-align: center; color: #444">'
    '<span class="pageNumber"></span></div>'
)
GONE = "a.headerlink, button, .onlyprint, script, .prev-next-footer, .copybtn"
def contents(source):
    """[(caption or None, [page, …])] from the table of contents; the root page comes first, alone."""
    toc = yaml.safe_load((Path(source) / "_toc.yml").read_text(encoding="utf-8"))
    parts = toc.get("parts") or [{"chapters": toc.get("chapters", [])}]
    listed = [(part.get("caption"), [chapter["file"] for chapter in part["chapters"]]) for part in parts]
    return [(None, [toc["root"]]), *listed]


def anchor(page, name=""):
    return f"{page.replace('/', '-')}--{name}" if name else page.replace("/", "-")


def page_of(html, name, names, depth):
    """(document, article, title) of one page, its article ready to stand among the others."""
    document = BeautifulSoup((html / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
    article = document.select_one("article.bd-article")
    title = " ".join(article.find("h1").get_text().rstrip("#").split())
    for node in article.select(GONE):
        node.decompose()
    for node in article.select("details"):  # nothing folds on paper
        node["open"] = ""
    for node in article.find_all(id=True):
        node["id"] = anchor(name, node["id"])
    for link in article.find_all("a", href=True):
        target = inwards(html, name, names, link["href"])
        if target is None:
            del link["href"]
        else:
            link["href"] = target
    for image in article.find_all("img", src=True):
        if not urlsplit(image["src"]).scheme:
            image["src"] = ((html / name).parent / unquote(image["src"])).resolve().as_uri()
        image["loading"] = "eager"
    for heading in article.find_all(re.compile(r"^h[1-5]$")):
        heading.name = f"h{int(heading.name[1]) + depth}"
    return document, article, title


def inwards(html, name, names, address):
    """Where a link of a page leads in the joined document; None for a file, which paper cannot open."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return address
    target = f"{name}.html"
    if parts.path:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)))
    page = names[0] if target == "index.html" else target.removesuffix(".html")
    if page in names:
        return f"#{anchor(page, unquote(parts.fragment))}"
    if (not target.endswith(".html") or target.startswith("_static/")) and (html / target).is_file():
        return None
    raise ValueError(f"{name}: a link to {address}, which is no page of the book")


def joined(html, source):
    """(the whole book as one document, MathJax's settings, the titles of its parts and pages)."""
    html, config = Path(html).resolve(), yaml.safe_load((Path(source) / "_config.yml").read_text("utf-8"))
    listed = contents(source)
    names = [name for _, chapters in listed for name in chapters]
    body, lines, styles, settings, titles = [], [], [], {}, []
    for number, (caption, chapters) in enumerate(listed):
        if caption:
            titles.append(caption)
            body.append(f'<section class="part"><h1 id="part-{number}">{caption}</h1></section>')
            lines.append(f'<li class="part"><a href="#part-{number}">{caption}</a></li>')
        for name in chapters:
            document, article, title = page_of(html, name, names, depth=1 if caption else 0)
            titles.append(title)
            body.append(f'<section class="page" id="{anchor(name)}">{article}</section>')
            lines.append(f'<li><a href="#{anchor(name)}">{title}</a></li>')
            styles += [urlsplit(link["href"]).path for link in document.head.select('link[rel="stylesheet"]')]
            match = MATHJAX.search(str(document.head))
            settings = json.loads(match.group(1)) if match else settings
    sheets = {sheet for style in styles if (sheet := (html / names[0]).parent.joinpath(style).resolve()).is_file()}
    links = "".join(f'<link rel="stylesheet" href="{sheet.as_uri()}">' for sheet in sorted(sheets))
    own = (Path(__file__).parent / "print.css").read_text(encoding="utf-8")
    title, author = config["title"], config["author"]
    front = f'<section class="front"><p class="title">{title}</p><p>{author}</p></section>'
    front += f'<nav class="book-contents"><p class="title">Contents</p><ol>{"".join(lines)}</ol></nav>'
    return (
        f'<!doctype html><html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">'
        f"<title>{title}</title>{links}<style>{own}</style></head>"
        f'<body class="print-book setting"><main>{front}{"".join(body)}</main></body></html>',
        settings,
        titles,
    )


def compress(path):
    """Pack the many small objects of a tagged file: less than half the size."""
    packed = path.with_suffix(".packed")
    with pikepdf.open(path) as pdf:
        pdf.save(packed, object_stream_mode=pikepdf.ObjectStreamMode.generate, recompress_flate=True)
    packed.replace(path)


def problems(path, titles):
    """What is wrong with a printed book: titles that the outline lacks, links that lead nowhere or to this machine."""
    with pikepdf.open(path) as pdf:
        with pdf.open_outline() as outline:
            parts = [item.title for item in outline.root]
            listed = [*parts, *(page.title for item in outline.root for page in item.children)]
        # Formulas in a title are drawn, not spelt: compared up to the first one.
        starts = [title.partition("\\(")[0].strip() for title in titles]
        found = [f"not in the outline: {start}" for start in starts if not any(one.startswith(start) for one in listed)]
        named, links = set(pdf.Root.Dests.keys()), 0
        for number, page in enumerate(pdf.pages, start=1):
            for link in page.get("/Annots", []):
                target, address = link.get("/Dest"), str(link.get("/A", {}).get("/URI", ""))
                links += target is not None
                if isinstance(target, pikepdf.Name) and str(target) not in named:
                    found.append(f"page {number}: a link leads nowhere: {target}")
                if address.startswith(("file:", "http://127.0.0.1")):
                    found.append(f"page {number}: a link leaves the book for this machine: {address}")
        return found if links >= len(titles) else [*found, f"{links} links inside, fewer than lines of the contents"]


def print_book(html, source, output):
    """Write the PDF of the pages in `html`; returns what is wrong with it."""
    from playwright.sync_api import sync_playwright

    html, output = Path(html).resolve(), Path(output).resolve()
    document, settings, titles = joined(html, source)
    # Typesetting happens part by part below; the hidden MathML beside each formula would only widen the pages.
    settings |= {"startup": {"typeset": False}}
    settings.setdefault("options", {})["menuOptions"] = {"settings": {"assistiveMml": False}}
    chromium = find_chromium()
    if chromium is None:
        raise RuntimeError("no Chromium; make setup-test installs one")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "book.html"
        file.write_text(document, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 1000})
        page.set_default_timeout(600_000)
        page.emulate_media(media="print", color_scheme="light")
        page.goto(file.as_uri(), wait_until="load")
        page.evaluate("settings => { window.MathJax = settings }", settings)
        page.add_script_tag(url=(html / "_static" / "mathjax" / "tex-chtml.js").as_uri())
        page.evaluate("async () => { await MathJax.startup.promise }")
        page.add_script_tag(path=Path(__file__).with_name("print.js"))
        parts, cut = page.query_selector_all("section.page"), []
        for part in tqdm(parts, desc="formulas", unit="page", disable=None):
            cut += part.evaluate("part => set(part)")
        page.evaluate("() => document.body.classList.remove('setting')")
        page.evaluate("async () => { await document.fonts.ready }")
        unset = page.evaluate("() => unset()")
        if unset:
            raise RuntimeError(f"{len(unset)} formulas are not set, the first: {unset[0]}")
        if cut:
            raise RuntimeError("wider than the paper:\n  " + "\n  ".join(cut))
        output.parent.mkdir(parents=True, exist_ok=True)
        page.pdf(
            path=output,
            format="A4",
            margin=MARGIN,
            print_background=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOTER,
            outline=True,
            tagged=True,
        )
        browser.close()
    compress(output)
    return problems(output, titles)


def main():
    html, output = ROOT / "_build" / "html", ROOT / "_build" / "privacy-amplification.pdf"
    if not (html / "index.html").exists():
        print("pdf: no book there yet; run `make book` first", file=sys.stderr)
        return 1
    wrong = print_book(html, ROOT, output)
    if wrong:
        print("pdf: the file is not right", *wrong, sep="\n  ", file=sys.stderr)
        return 1
    print(f"The book is in {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
