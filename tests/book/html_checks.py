"""What the built pages must fulfil, read from the files. Each function returns a list of problems."""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import lxml.html
import policy
from bs4 import BeautifulSoup

REMOTE = re.compile(r"^(?:https?:)?//", re.IGNORECASE)


def pages(folder):
    return sorted(path for path in Path(folder).rglob("*.html") if "_static" not in path.parts)


def soup(path):
    return BeautifulSoup(Path(path).read_text(encoding="utf-8"), "lxml")


def problems(folder):
    """Everything that is wrong with the pages of a folder; each is parsed once."""
    found, anchors, links, figures = [], {}, [], Counter()
    for path in pages(folder):
        document, name = lxml.html.document_fromstring(path.read_text(encoding="utf-8")), str(path.relative_to(folder))
        anchors[path.resolve()] = {*document.xpath("//@id"), *document.xpath("//a/@name")}
        links += [(path, name, address) for address in document.xpath("//a/@href")]
        article = next(document.iter("article"), document)
        found += image_problems(path, name, article) + figure_problems(name, article, figures)
        found += raw_markup(name, document) + unlinked_names(name, document)
    return found + dead_links(links, anchors) + policy_problems(folder)


def dead_links(links, anchors):
    """Internal links whose page or anchor does not exist; `anchors` are those of the pages, those of code are read here."""
    found = set()
    for path, name, address in links:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc or address in ("", "#"):
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            found.add(f"{name}: {address}: no such file")
        elif parts.fragment and target.suffix == ".html":
            if target not in anchors:  # a page of code: thousands of tags, of which the names are wanted alone
                anchors[target] = set(re.findall(r'\bid="([^"]+)"', target.read_text(encoding="utf-8")))
            if unquote(parts.fragment) not in anchors[target]:
                found.add(f"{name}: {address}: no such anchor")
    return sorted(found)


def alt_text_is_real(text):
    """Whether an alternative text says something: words, not a file name."""
    text = (text or "").strip()
    if len(text) < 20 or len(text.split()) < 4:
        return False
    return re.search(r"\.(png|svg|jpe?g|gif)\b", text, re.IGNORECASE) is None


def image_problems(path, name, article):
    """Images without a file or without real alternative text; those that come late, without a size that keeps their place."""
    found = []
    for node in article.iter("img"):
        source = node.get("src", "")
        if not REMOTE.match(source) and not source.startswith("data:"):
            if not (path.parent / unquote(urlsplit(source).path)).is_file():
                found.append(f"{name}: {source}: no such file")
        if not alt_text_is_real(node.get("alt")):
            found.append(f"{name}: {source}: alternative text {node.get('alt')!r}")
        if node.get("loading") == "lazy" and not (node.get("width") and node.get("height")):
            found.append(f"{name}: {source}: comes late and has no size")
    return found


def figure_problems(name, article, seen):
    """Images that are not in a figure with a number and a caption; numbers of a chapter that do not count from 1.

    A companion counts on where its chapter ends; `seen` counts the figures of each chapter so far.
    """
    found, numbers, chapter = [], [], re.match(r"notebooks/(\d+)_", name)
    for node in article.iter("img"):
        captions = [caption for figure in node.iterancestors("figure") for caption in figure.iter("figcaption")]
        number, text = ([part.text_content().strip() for caption in captions for part in caption.find_class(f"caption-{kind}")] for kind in ("number", "text"))
        if not number or not text or not text[0].endswith("."):
            found.append(f"{name}: {node.get('src')}: no figure with a number and a caption")
        else:
            numbers.append(number[0])
    if chapter:
        number, first = int(chapter.group(1)), seen[chapter.group(1)] + 1
        seen[chapter.group(1)] += len(numbers)
        expected = [f"Figure {number}.{first + place}" for place in range(len(numbers))]
        found += [f"{name}: numbers {numbers}"] if numbers != expected else []
    return found


def classes(node):
    return node.get("class", "").split()


def is_within(node, tags):
    return next(node.iterancestors(*tags), None) is not None


def text_without(node, left_out):
    """The text of a part of a page, without the tags for which `left_out` holds."""
    parts = [node.text or ""]
    for part in node:
        if isinstance(part.tag, str) and not left_out(part):  # a comment has no name
            parts.append(text_without(part, left_out))
        parts.append(part.tail or "")
    return " ".join(parts)


MARKUP = {
    "a role": re.compile(r"\{[a-z][\w:-]*\}`"),
    "a directive": re.compile(r"```\{|:::\{"),
    "a formula": re.compile(r"(?<![\w\\])\$\$|\\\\begin\{"),
    "an unfinished place": re.compile(r"\b(?:TODO|FIXME|TBD|XXX|TABLE_GOES_HERE)\b"),
}


def raw_markup(name, document):
    """Markup that was meant to be interpreted and shows up as text."""
    main = next(document.iter("main"), None)
    if main is None:
        return []
    text = text_without(main, lambda tag: tag.tag in ("pre", "code", "script", "style") or "math" in classes(tag))
    found = [(what, match) for what, pattern in MARKUP.items() if (match := pattern.search(text))]
    return [f"{name}: {what} shows up: {text[max(0, match.start() - 30) : match.end() + 30]!r}" for what, match in found]


LINKED = re.compile(r"dplib(\.\w+)+(?![\w/])|tests/[\w/]+\.py(::|$)")
NO_TEXT = {"a", "pre", "code", "script", "h1", "h2", "h3", "h4"}


def unlinked_names(name, document):
    """Tags of statements, names of the library and tests in the text that lead nowhere; numbers beside the tags."""
    article = next(document.iter("article"), None)
    if article is None:
        return []
    titles = {"math", "admonition-title", "method"}
    text = text_without(article, lambda tag: tag.tag in NO_TEXT or not titles.isdisjoint(classes(tag)))
    around = ["a", "pre", "script", "h1", "h2", "h3", "h4"]
    codes = [code.text_content() for code in article.iter("code") if not is_within(code, around)]
    found = [f"{name}: {code} is no link" for code in codes if LINKED.match(code)]
    found += [f"{name}: {tag} is no link" for tag in re.findall(r"\[[A-Z]{1,2}-\d[^\]]*\]", text)]
    numbers = [node for node in article.find_class("caption-number") if not is_within(node, around)]
    shown = [node.text_content() for node in numbers if not any("admonition-title" in classes(above) for above in node.iterancestors("p"))]
    return found + [f"{name}: {number}" for number in shown if re.match(r"(?!Figure)\w+ \d+", number)]


# The policy of a page, but for the hashes of its inline scripts; tools/policy.py writes it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'"
)


def policy_problems(folder):
    """Pages without that policy, with anything before it, or with code that it does not name, and known scripts that no page has.

    So nothing is loaded from elsewhere. This reads pages by another parser than what writes the policy.
    """
    problems, unused = [], set(policy.KNOWN)
    for path in sorted(Path(folder).rglob("*.html")):
        name, text = path.relative_to(folder), path.read_text(encoding="utf-8")
        if str(name) == "search.html":  # which alone may run WebAssembly
            text = text.replace(" 'wasm-unsafe-eval'", "", 1)
        document, stated = lxml.html.document_fromstring(text), policy.stated(text)
        scripts = [node.text or "" for node in document.xpath("//script[not(@src)]") if node.get("type", "") not in policy.DATA_TYPES]
        if stated is None or re.search(r"<(?:script|link|style)\b", text[: text.index(stated)]):
            problems.append(f"{name}: no policy, or something before it")
        elif stated != policy.policy(scripts) or re.sub(r" 'sha256-[^']+'", "", stated) != POLICY:
            problems.append(f"{name}: the policy says {stated!r}")
        active = [found for found in document.xpath("//@*") if found.attrname.startswith("on") or policy.RUNS.match(found)]
        problems += [f"{name}: code in an attribute: {found}" for found in active]
        unused -= {policy.digest(script) for script in scripts}
    return problems + [f"a known script that no page has: {script}" for script in unused]
