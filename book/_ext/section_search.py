"""The search by section: an index by Pagefind of every section, statement, symbol and docstring, each its own entry.

search.js asks it on a page that comes from a server. Pages opened from the disk may not read its files, and search
with Sphinx's own index. Formulas are no words: a letter stays, as the letter, a longer one becomes dots. What readers
call a thing and the text does not is in WORDS; it stands behind a bar, where no excerpt goes. An entry that is called
exactly what was asked for comes first.
"""

import html
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bs4 import BeautifulSoup
from records import SOURCES
from sphinx.errors import ExtensionError

FOLDER = "pagefind"
UNUSED = ("*ui*", "*highlight*")
BAR = "‖"
LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "varepsilon": "ε", "epsilon": "ε", "eta": "η", "theta": "θ",
    "lambda": "λ", "mu": "μ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "chi": "χ", "psi": "ψ", "vartheta": "ϑ",
    "omega": "ω", "xi": "ξ", "Gamma": "Γ", "Phi": "Φ", "Psi": "Ψ", "Pi": "Π", "Sigma": "Σ", "ell": "ℓ", "kappa": "κ",
}  # fmt: skip
NAMES = {letter: name.removeprefix("var") for name, letter in LETTERS.items()}
WORDS = {
    "notebooks/18_which_accountant": "epsilon calculator, calculator, wizard, compute epsilon, noise multiplier, how much noise, privacy budget, "
    "which sigma, which accountant, which epsilon, which noise multiplier, how many steps",
    "notebooks/19_common_mistakes": "pitfalls, bugs, wrong epsilon",
    "notebooks/20_symptoms": "negative epsilon, epsilon inf, infinite epsilon, nan, hangs, overflow, not supported, troubleshooting",
    "notebooks/03_subsampling": "DataLoader, privacy amplification by subsampling",
    "notebooks/05_group_privacy": "group privacy, user-level privacy, family",
    "notebooks/22_users": "federated learning, clients, cohort, gradient accumulation, virtual batches, microbatches, example-level sampling, user-level sampling, ELS, ULS",
    "notebooks/07_renyi": "RDP, moments accountant, Renyi, Renyi divergence",
    "notebooks/12_mmcc": "MMCC, DP-FTRL amplification",
    "notebooks/14_balls_in_bins": "balls in bins",
    "book/theorems": "theorems",
    "book/errata": "errata, mistakes in the papers",
    "book/reproductions": "reproductions, ledger",
    "book/accountants": "FFT, PLD, numerical error",
    "book/exercises": "exercises, assignments",
}
# Their titles repeat those of others.
QUIET = ("book/docstrings", "book/exercises", "book/teaching", "book/peers")
PLACE = re.compile(
    r"\b(Theorem|Lemma|Algorithm|Proposition|Corollary|Conjecture|Definition|Figure|Section) ((?:[A-Z]\.)?\d+(?:\.\d+)*)",
    re.I,
)


def letters(match):
    """A formula of one letter as this letter, any other as dots."""
    formula = re.sub(r"\\[()\[\]]", "", match).strip()
    name = formula.removeprefix("\\")
    return LETTERS.get(name, name if re.fullmatch(r"\w|[\d.,{}]+", name) else "…").replace("{,}", "")


def plain(node):
    """The text of a node, formulas and code blocks left out."""
    for part in node.select("pre, script, style, svg, summary, .headerlink, .cell_input, .cell_output"):
        part.decompose()
    for part in node.select(".math"):
        part.replace_with(letters(part.get_text()))
    return " ".join(node.get_text(" ").split())


def named(text):
    """The names of the Greek letters of a text."""
    return " ".join(sorted({NAMES[letter] for letter in text if letter in NAMES}))


def entry(url, title, page, text, called=(), weight=7):
    """A page for Pagefind; called: what readers may call it."""
    called = [*called, *[name for name in [named(title)] if name]]
    meta = {"address": url, "title": title, "page": page, "called": " | ".join(called)}
    head = "".join(
        f'<meta data-pagefind-meta="{key}[content]" content="{html.escape(value)}">'
        for key, value in meta.items()
    )
    return (
        f'<html lang="en"><body data-pagefind-body>{head}<h1 data-pagefind-weight="{weight}">{html.escape(title)}</h1>'
        f'<p>{html.escape(text)}</p><p data-pagefind-weight="{weight}">{BAR} {html.escape(", ".join(called))}</p></body></html>'
    )


def statements(article, url, page):
    """Each row of the index: tag, source, what the source calls it; the full statement."""
    places = {node["id"]: node for node in article.find_all(id=True)}
    for cell in article.select("td[id^=tag-]"):
        tag = cell.get_text(strip=True)
        link = cell.find("a")
        box = places.get(link["href"][1:]) if link else None
        cell.find_next_sibling("td").details.decompose()  # names of tests are no words
        short = plain(cell.find_next_sibling("td"))
        title = (
            plain(box.find("p", class_="admonition-title")).partition("]")[2].strip()
            if box
            else short.partition(";")[0]
        )
        text = plain(box) if box else short
        number = re.match(r"[GRMN]-([A-Z]?\.?\d+(?:\.\d+)*)", tag)  # of these sources tags are numbers
        kinds = {f"{kind} {place}".title() for kind, place in PLACE.findall(text)}
        if box and number:
            kinds.add(f"{box['class'][1].title()} {number.group(1)}")
        source = SOURCES[tag.partition("-")[0]]
        place = f"{page}: {source}" + (f", {', '.join(sorted(kinds))}" if kinds else "")
        address = f"{url}#{box['id'] if box else cell['id']}"
        yield entry(
            address, f"[{tag}] {title}", place, f"{short}. {text}", [tag, *kinds, f"{source} {tag}"], 8
        )
    for extra in article.select("table.records, div.proof"):
        extra.decompose()


def symbols(article, url, page):
    """Each row of the table of notation: a symbol, what it means, its name in the library."""
    for row in article.select("table tbody tr"):
        cells = [plain(cell) for cell in row.find_all("td")]
        where = row.find_parent("section")
        if where and row.find_parent("table").th.get_text().strip() == "Symbol":
            title = cells[1] if "…" in cells[0] else f"{cells[0]}: {cells[1]}"
            yield entry(f"{url}#{where['id']}", title, page, ". ".join(cells), [cells[0], *cells[2:3]], 3)


def parsed(page):
    """The article of a page without its code, each word of which has an element of its own."""
    article = page[page.find("<article") : page.find("</article>")]
    return BeautifulSoup(re.sub(r"<pre\b.*?</pre>", "", article, flags=re.DOTALL), "html.parser")


def entries(path, name):
    """The entries of a page, the innermost sections first, so that each loses what belongs to them."""
    article = parsed(path.read_text(encoding="utf-8"))
    if article.h1 is None:
        return
    url, page = f"{name}.html", plain(article.h1)
    if name == "book/theorems":
        yield from statements(article, url, page)
    if name == "book/notation":
        yield from symbols(article, url, page)
    sections = article.select("section[id]")
    for section in reversed(sections):
        heading = section.find(re.compile("^h[1-6]$"), recursive=False)
        if heading is None:
            continue
        top, title = heading.name == "h1", plain(heading.extract())
        place = "" if top else f"#{section['id']}"
        called = [word for word in WORDS.get(name + place, "").split(", ") if word]
        weight = 4 if name in QUIET else 10 if top else 7
        yield entry(url + place, title, "" if top else page, plain(section), called, weight)
        section.decompose()


def write(folder, found):
    """The index of these entries; Pagefind reads them as files."""
    with tempfile.TemporaryDirectory() as site:
        for number, page in enumerate(found):
            Path(site, f"{number}.html").write_text(page, encoding="utf-8")
        command = [sys.executable, "-m", "pagefind", "--site", site, "--output-path", str(folder), "--silent"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ExtensionError(f"Pagefind failed: {done.stdout}{done.stderr}")
    for pattern in UNUSED:
        for extra in folder.glob(pattern):
            extra.unlink()


def build(app, exception):
    if exception or app.builder.format != "html":
        return
    pages = [(Path(app.outdir, f"{name}.html"), name) for name in sorted(app.env.found_docs)]
    write(Path(app.outdir, FOLDER), [found for page in pages for found in entries(*page)])


def setup(app):
    app.connect("build-finished", build, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
