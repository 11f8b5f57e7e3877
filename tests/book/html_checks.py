"""What the built pages must fulfil, read from the files. Each function returns a list of problems."""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import policy
from bs4 import BeautifulSoup
from notebook_checks import alt_text_is_real

REMOTE = re.compile(r"^(?:https?:)?//", re.IGNORECASE)


def pages(folder):
    return sorted(path for path in Path(folder).rglob("*.html") if "_static" not in path.parts)


def soup(path):
    return BeautifulSoup(Path(path).read_text(encoding="utf-8"), "html.parser")


def dead_links(folder):
    """Internal links whose page or anchor does not exist."""
    folder = Path(folder)
    anchors, problems = {}, []

    def anchors_of(path):
        if path not in anchors:
            document = soup(path)
            anchors[path] = {node["id"] for node in document.find_all(id=True)}
            anchors[path] |= {node["name"] for node in document.find_all("a", attrs={"name": True})}
        return anchors[path]

    for path in pages(folder):
        for node in soup(path).find_all("a", href=True):
            parts = urlsplit(node["href"])
            if parts.scheme or parts.netloc or not node["href"] or node["href"] == "#":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            where = f"{path.relative_to(folder)}: {node['href']}"
            if not target.is_file():
                problems.append(f"{where}: no such file")
            elif (
                parts.fragment
                and target.suffix == ".html"
                and unquote(parts.fragment) not in anchors_of(target)
            ):
                problems.append(f"{where}: no such anchor")
    return sorted(set(problems))


def image_problems(folder):
    """Images without a file or without real alternative text."""
    problems = []
    for path in pages(folder):
        document = soup(path)
        for node in (document.find("article") or document).find_all("img"):
            source = node.get("src", "")
            where = f"{path.relative_to(folder)}: {source}"
            if not REMOTE.match(source) and not source.startswith("data:"):
                if not (path.parent / unquote(urlsplit(source).path)).is_file():
                    problems.append(f"{where}: no such file")
            if not alt_text_is_real(node.get("alt")):
                problems.append(f"{where}: alternative text {node.get('alt')!r}")
    return problems


def figure_problems(folder):
    """Images that are not in a figure with a number and a caption; numbers of a chapter that do not count from 1.

    A companion counts on where its chapter ends.
    """
    problems, seen = [], Counter()
    for path in sorted(pages(folder)):
        document, name = soup(path), str(path.relative_to(folder))
        chapter, numbers = re.match(r"notebooks/(\d+)_", name), []
        for node in (document.find("article") or document).find_all("img"):
            figure = node.find_parent("figure")
            caption = figure and figure.find("figcaption")
            number = caption and caption.find(class_="caption-number")
            if not number or not caption.find(class_="caption-text").get_text(strip=True).endswith("."):
                problems.append(f"{name}: {node.get('src')}: no figure with a number and a caption")
            else:
                numbers.append(number.get_text(strip=True))
        if chapter:
            number, first = int(chapter.group(1)), seen[chapter.group(1)] + 1
            seen[chapter.group(1)] += len(numbers)
            expected = [f"Figure {number}.{first + place}" for place in range(len(numbers))]
            problems += [f"{name}: numbers {numbers}"] if numbers != expected else []
    return problems


def raw_markup(folder):
    """Markup that was meant to be interpreted and shows up as text."""
    patterns = {
        "a role": re.compile(r"\{[a-z][\w:-]*\}`"),
        "a directive": re.compile(r"```\{|:::\{"),
        "a formula": re.compile(r"(?<![\w\\])\$\$|\\\\begin\{"),
        "an unfinished place": re.compile(r"\b(?:TODO|FIXME|TBD|XXX|TABLE_GOES_HERE)\b"),
    }
    problems = []
    for path in pages(folder):
        main = soup(path).find("main")
        if main is None:
            continue
        for node in main.select("pre, code, script, style, .math"):
            node.decompose()
        text = main.get_text(" ")
        for what, pattern in patterns.items():
            match = pattern.search(text)
            if match:
                around = text[max(0, match.start() - 30) : match.end() + 30]
                problems.append(f"{path.relative_to(folder)}: {what} shows up: {around!r}")
    return problems


def unlinked_names(folder):
    """Tags of statements, names of the library and tests in the text that lead nowhere; numbers beside the tags."""
    problems = []
    for path in pages(folder):
        article, name = soup(path).find("article"), path.relative_to(folder)
        if article is None:
            continue
        for node in article.select("a, pre, script, .math, h1, h2, h3, h4, p.admonition-title, p.method"):
            node.decompose()
        for code in article.find_all("code"):
            if re.match(r"dplib(\.\w+)+(?![\w/])|tests/[\w/]+\.py(::|$)", code.get_text()):
                problems.append(f"{name}: {code.get_text()} is no link")
            code.decompose()
        text = article.get_text(" ")
        problems += [f"{name}: {tag} is no link" for tag in re.findall(r"\[[A-Z]{1,2}-\d[^\]]*\]", text)]
        problems += [f"{name}: {number}" for number in re.findall(r"caption-number\">(?!Figure)\w+ \d+", str(article))]
    return problems


# The policy of a page, but for the hashes of its inline scripts; tools/policy.py writes it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'"
)


def policy_problems(folder):
    """Pages without that policy, with anything before it, or with code that it does not name. So nothing is loaded from elsewhere."""
    problems = []
    for path in sorted(Path(folder).rglob("*.html")):
        name, text = path.relative_to(folder), path.read_text(encoding="utf-8")
        if str(name) == "search.html":  # which alone may run WebAssembly
            text = text.replace(" 'wasm-unsafe-eval'", "", 1)
        active, stated = policy.Active(text), policy.stated(text)
        if stated is None or re.search(r"<(?:script|link|style)\b", text[: text.index(stated)]):
            problems.append(f"{name}: no policy, or something before it")
        elif stated != policy.policy(active.inline) or re.sub(r" 'sha256-[^']+'", "", stated) != POLICY:
            problems.append(f"{name}: the policy says {stated!r}")
        problems += [f"{name}: code in an attribute: {found}" for found in [*active.handlers, *active.addresses]]
    return problems


