"""Print the built book into one PDF, with outline, page numbers and links that work between chapters.

    python -m tools pdf [--html FOLDER] [--source FOLDER] [--output FILE]

The articles of all pages are joined in the order of the table of contents, their anchors made distinct, their
links turned inwards, and Chromium prints the result. Parts, pages and sections become the outline.
"""

import argparse
import json
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
# Forms compute in the browser; on paper a sentence takes their place.
INTERACTIVE = "Interactive in the online book: this part computes in the browser."
GONE = "a.headerlink, button, .onlyprint, script, .prev-next-footer, .copybtn"
# One page at a time, the others hidden: laying out the whole book again and again would take minutes.
# Formulas that are wider than the page are set smaller, as far as they must.
SET = """
async part => {
  part.classList.add('current');
  await MathJax.typesetPromise([part]);
  for (const formula of part.querySelectorAll('mjx-container')) {
    const room = formula.closest('td, th, li, dd, blockquote, p, div').clientWidth;
    const inner = formula.querySelector('mjx-math');
    const width = inner ? inner.getBoundingClientRect().width : 0;
    if (room > 0 && width > room) formula.style.fontSize = `${Math.max(45, Math.floor(98 * room / width))}%`;
  }
  const edge = document.documentElement.clientWidth + 1;
  const cut = [...part.querySelectorAll('table, pre, img, mjx-math')]
    .filter(node => node.getBoundingClientRect().right > edge);
  const named = cut.map(node => `${part.id}: ${node.tagName}: ${node.textContent.trim().slice(0, 60)}`);
  part.classList.remove('current');
  return named;
}
"""

UNSET = """
() => [...document.querySelectorAll('.math')]
  .filter(node => !node.querySelector('mjx-container') || node.querySelector('mjx-merror'))
  .map(node => node.textContent.slice(0, 80))
"""


def contents(source):
    """[(caption or None, [page, …])] from the table of contents; the root page comes first, alone."""
    toc = yaml.safe_load((Path(source) / "_toc.yml").read_text(encoding="utf-8"))
    parts = toc.get("parts") or [{"chapters": toc.get("chapters", [])}]
    listed = [(part.get("caption"), [chapter["file"] for chapter in part["chapters"]]) for part in parts]
    return [(None, [toc["root"]]), *listed]


def anchor(page, name=""):
    return f"{page.replace('/', '-')}--{name}" if name else page.replace("/", "-")


class Page:
    """One page of the book, ready to stand among the others."""

    def __init__(self, html, name, names, depth):
        self.html, self.name, self.names = html, name, names
        path = html / f"{name}.html"
        self.document = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        self.article = self.document.select_one("article.bd-article")
        if self.article is None:
            raise ValueError(f"{path} has no article")
        self.title = self.article.find("h1").get_text().rstrip("#").strip()
        self._clean()
        for node in self.article.find_all(id=True):
            node["id"] = anchor(name, node["id"])
        for link in self.article.find_all("a", href=True):
            target = self._target(link["href"])
            if target is None:
                del link["href"]
            else:
                link["href"] = target
        for image in self.article.find_all("img", src=True):
            if not urlsplit(image["src"]).scheme:
                image["src"] = (path.parent / unquote(image["src"])).resolve().as_uri()
            image["loading"] = "eager"
        if depth:
            for heading in self.article.find_all(re.compile(r"^h[1-5]$")):
                heading.name = f"h{int(heading.name[1]) + depth}"

    def _clean(self):
        for node in self.article.select(GONE):
            node.decompose()
        for form in self.article.select("form, .calculator"):
            if form.parent is None:  # it stood in one that is gone
                continue
            note = self.document.new_tag("p", attrs={"class": "interactive"})
            note.string = INTERACTIVE
            form.replace_with(note)
        for node in self.article.select("details"):  # nothing folds on paper
            summary = node.find("summary", recursive=False)
            if summary is not None and "cell" in summary.get_text():  # "Show code cell source"
                summary.decompose()
            elif summary is not None:
                summary.name = "p"
            node.name = "div"

    def _target(self, address):
        """Where a link leads in the joined document; None for a file, which paper cannot open."""
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            return address
        if not parts.path:
            return f"#{anchor(self.name, unquote(parts.fragment))}"
        path = ((self.html / self.name).parent / unquote(parts.path)).resolve()
        name = (
            path.relative_to(self.html).with_suffix("").as_posix() if path.is_relative_to(self.html) else ""
        )
        if name == "index":
            name = self.names[0]
        if name in self.names:
            return f"#{anchor(name, unquote(parts.fragment))}"
        if path.suffix != ".html" and path.is_file():
            return None
        raise ValueError(f"{self.name}: a link to {address}, which is no page of the book")

    def node(self):
        whole = self.document.new_tag("section", attrs={"class": "page", "id": anchor(self.name)})
        whole.append(self.article)
        return str(whole)


def joined(html, source):
    """(the whole book as one document, MathJax's settings)."""
    html, config = Path(html).resolve(), yaml.safe_load((Path(source) / "_config.yml").read_text("utf-8"))
    listed = contents(source)
    names = [name for _, chapters in listed for name in chapters]
    body, lines, styles, settings = [], [], [], {}
    for number, (caption, chapters) in enumerate(listed):
        if caption:
            body.append(f'<section class="part"><h1 id="part-{number}">{caption}</h1></section>')
            lines.append(f'<li class="part"><a href="#part-{number}">{caption}</a></li>')
        for name in chapters:
            page = Page(html, name, names, depth=1 if caption else 0)
            body.append(page.node())
            lines.append(f'<li><a href="#{anchor(name)}">{page.title}</a></li>')
            head = page.document.head
            styles += [urlsplit(link["href"]).path for link in head.select('link[rel="stylesheet"]')]
            match = MATHJAX.search(str(head))
            settings = json.loads(match.group(1)) if match else settings
    sheets = {(html / names[0]).parent.joinpath(style).resolve() for style in styles}
    sheets = [sheet for sheet in dict.fromkeys(sheets) if sheet.is_file()]
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
    )


def compress(path):
    """Pack the many small objects of a tagged file: less than half the size."""
    packed = path.with_suffix(".packed")
    with pikepdf.open(path) as pdf:
        pdf.save(packed, object_stream_mode=pikepdf.ObjectStreamMode.generate, recompress_flate=True)
    packed.replace(path)


def outline_titles(pdf):
    """[(depth, title)] of the outline, in order."""
    found = []

    def walk(items, depth):
        for item in items:
            found.append((depth, " ".join(item.title.split())))
            walk(item.children, depth + 1)

    with pdf.open_outline() as outline:
        walk(outline.root, 0)
    return found


def problems(path, source, html):
    """What is wrong with a printed book: the outline, the links, formulas left as source."""
    listed = contents(source)
    names = [name for _, chapters in listed for name in chapters]
    wanted = []
    for caption, chapters in listed:
        wanted += [(0, caption)] if caption else []
        wanted += [
            (int(bool(caption)), Page(Path(html).resolve(), name, names, 0).title) for name in chapters
        ]
    found = []
    with pikepdf.open(path) as pdf:
        outline = outline_titles(pdf)
        for entry in wanted:
            entry = (entry[0], " ".join(entry[1].split()))
            # Formulas in a title are drawn, not spelt: compared up to the first one.
            start = re.split(r"\\\(", entry[1])[0].strip()
            if not any(depth == entry[0] and title.startswith(start) for depth, title in outline):
                found.append(f"not in the outline: {entry[1]}")
        named = set(pdf.Root.Dests.keys()) if "/Dests" in pdf.Root else set()
        links = 0
        for number, page in enumerate(pdf.pages, start=1):
            for link in page.get("/Annots", []):
                target = link.get("/Dest")
                action = link.get("/A", {})
                if target is not None:
                    links += 1
                    if isinstance(target, pikepdf.Name) and str(target) not in named:
                        found.append(f"page {number}: a link leads nowhere: {target}")
                elif str(action.get("/URI", "")).startswith(("file:", "http://127.0.0.1")):
                    found.append(f"page {number}: a link leaves the book for this machine: {action['/URI']}")
        if links < len(wanted):
            found.append(f"{links} links inside, fewer than lines of the contents")
    return found


def print_book(html, source, output, quiet=False):
    """Write the PDF of the pages in `html`; returns the number of joined pages."""
    from playwright.sync_api import sync_playwright

    html, output = Path(html).resolve(), Path(output).resolve()
    document, settings = joined(html, source)
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
        parts, cut = page.query_selector_all("section.page"), []
        for part in tqdm(parts, desc="formulas", unit="page", disable=quiet):
            cut += part.evaluate(SET)
        page.evaluate("() => document.body.classList.remove('setting')")
        page.evaluate("async () => { await document.fonts.ready }")
        unset = page.evaluate(UNSET)
        if unset:
            raise RuntimeError(f"{len(unset)} formulas are not set, the first: {unset[0]}")
        if cut:
            raise RuntimeError("wider than the paper:\n  " + "\n  ".join(cut))
        if not quiet:
            print("printing", flush=True)
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
    return len(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html", help="the built pages")
    parser.add_argument("--source", type=Path, default=ROOT, help="folder of _toc.yml and _config.yml")
    parser.add_argument("--output", type=Path, default=ROOT / "_build" / "privacy-amplification.pdf")
    arguments = parser.parse_args()
    if not (arguments.html / "index.html").exists():
        print("pdf: no book there yet; run `make book` first", file=sys.stderr)
        return 1
    pages = print_book(arguments.html, arguments.source, arguments.output)
    wrong = problems(arguments.output, arguments.source, arguments.html)
    if wrong:
        print("pdf: the file is not right", *wrong, sep="\n  ", file=sys.stderr)
        return 1
    print(f"{pages} pages of the book are in {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
