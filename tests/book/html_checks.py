"""What the built pages must fulfil, read from the files. Each function returns a list of problems."""

import base64
import hashlib
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup
from notebook_checks import alt_text_is_real

# Attributes by which a page makes the browser fetch something.
LOADING = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
    "track": "src",
    "input": "src",
}
LOADING_RELATIONS = {
    "stylesheet",
    "icon",
    "shortcut",
    "preload",
    "prefetch",
    "modulepreload",
    "preconnect",
    "dns-prefetch",
    "manifest",
    "apple-touch-icon",
}
REMOTE = re.compile(r"^(?:https?:)?//", re.IGNORECASE)
REMOTE_IN_CODE = re.compile(
    r"(?:unpkg\.com|jsdelivr\.net|cdnjs\.|googleapis\.com|gstatic\.com|googletagmanager|google-analytics|polyfill\.io)"
)


def pages(folder):
    return sorted(path for path in Path(folder).rglob("*.html") if "_static" not in path.parts)


def soup(path):
    return BeautifulSoup(Path(path).read_text(encoding="utf-8"), "html.parser")


def external_requests(folder):
    """Everything in the built site that would make a browser ask another host."""
    problems = []
    for path in pages(folder):
        name, document = path.relative_to(folder), soup(path)
        for tag, attribute in LOADING.items():
            for node in document.find_all(tag):
                if REMOTE.match(node.get(attribute) or ""):
                    problems.append(f"{name}: <{tag}> loads {node[attribute]}")
                for candidate in (node.get("srcset") or "").split(","):
                    if REMOTE.match(candidate.strip()):
                        problems.append(f"{name}: <{tag}> loads {candidate.strip()}")
        for node in document.find_all("link"):
            if LOADING_RELATIONS & set(node.get("rel") or []) and REMOTE.match(node.get("href") or ""):
                problems.append(f"{name}: <link> loads {node['href']}")
        for node in document.find_all("script"):
            match = REMOTE_IN_CODE.search(node.string or "")
            if match:
                problems.append(f"{name}: a script names {match.group()}")
        for node in [*document.find_all("style"), *document.find_all(style=True)]:
            text = (node.string if node.name == "style" else node["style"]) or ""
            if re.search(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"]?(?:https?:)?//", text):
                problems.append(f"{name}: a style loads from another host")
    for path in Path(folder).rglob("*.css"):
        text = path.read_text(encoding="utf-8", errors="replace")
        if re.search(r"url\(\s*['\"]?(?:https?:)?//|@import\s+(?:url\()?['\"]?(?:https?:)?//", text):
            problems.append(f"{path.relative_to(folder)}: loads from another host")
    return problems


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


def policy_problems(folder):
    """Pages without a strict content security policy, and code on a page that its policy does not name."""
    expected = {
        "default-src": {"'none'"},
        "script-src": {"'self'"},
        "style-src": {"'self'", "'unsafe-inline'"},
        "img-src": {"'self'", "data:"},
        "font-src": {"'self'"},
        "connect-src": {"'self'"},
        "form-action": {"'self'"},
        "base-uri": {"'none'"},
    }
    problems = []
    for path in sorted(Path(folder).rglob("*.html")):
        name, document = path.relative_to(folder), soup(path)
        metas = document.find_all("meta", attrs={"http-equiv": "Content-Security-Policy"})
        if len(metas) != 1 or metas[0].find_previous(["script", "link", "style"]) is not None:
            problems.append(f"{name}: {len(metas)} policies, or code before it")
            continue
        parts = [part.split() for part in metas[0]["content"].split(";")]
        stated = {part[0]: set(part[1:]) for part in parts}
        hashes = {source for source in stated.get("script-src", ()) if source.startswith("'sha256-")}
        stated["script-src"] = stated.get("script-src", set()) - hashes
        if stated != expected:
            problems.append(f"{name}: the policy says {metas[0]['content']!r}")
        inline = {
            "'sha256-" + base64.b64encode(hashlib.sha256(node.string.encode()).digest()).decode() + "'"
            for node in document.find_all("script", src=False)
            if node.string and node.get("type") not in ("application/json", "application/ld+json")
        }
        problems += [f"{name}: a script that the policy does not name: {found}" for found in inline - hashes]
        problems += [
            f"{name}: the policy names a script that is not there: {found}" for found in hashes - inline
        ]
        for node in document.find_all(True):
            handlers = [attribute for attribute in node.attrs if attribute.startswith("on")]
            problems += [f"{name}: <{node.name}> has a handler {attribute}" for attribute in handlers]
    return problems


def launch_buttons(folder):
    """{page: address of its Colab button}."""
    found = {}
    for path in pages(folder):
        for node in soup(path).find_all("a", href=re.compile(r"^https://colab\.research\.google\.com/")):
            if node.find_parent("article") is None:  # a button, no link in the text
                found[str(path.relative_to(folder))] = node["href"]
    return found
