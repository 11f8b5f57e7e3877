"""The content security policy of the built pages: only scripts that we know may run, and nothing from elsewhere.

Each page carries the policy in its first <meta>, so that it holds on every host and from the disk. Scripts in
files come from the site itself. The theme's inline scripts are allowed by their hash, one by one; an inline
script that is not in the table below, a handler in an attribute, or a `javascript:` address is a problem that
fails the build. Styles may be inline, because MathJax sets its formulas with them.
"""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

# Inline scripts of the theme and of its extensions, by hash. A new version of the theme changes some:
# the build then names the hash that it found, to be entered here after a look at the script.
KNOWN = {
    "sha256-P1Gd/Wqjqq8uduID7MOciZi3jIWvAuyCldpRMjsiEjw=": "light or dark, before anything is drawn",
    "sha256-ymVQCFLrz1wZEVyK7Hz4xFmKL+n6/my1jt/wFORn88g=": "the button for light and dark",
    "sha256-lsDjnafHQ68zUxMui1IA598rGFWlv6Wsb1Z+wXuEnts=": "the search field in the list of pages",
    "sha256-LF96sWcXccMzvAMeWDn9wNCYHg+MmQlOUvamZq9ACqY=": "the search button at the top",
    "sha256-mNyD6WQ4vKGmtbf2Mk6RMjMo7k6Ib4wzc6b1fvYgVHE=": "search page: the cursor goes into the field",
    "sha256-0ysgQORJN47/EUTghWD1YTjEV1Juh4KAG4PeoPPRgDk=": "folded parts: the word for showing",
    "sha256-pH3yt92lhQNFBWt4vXOLwSWBTKDsryr1//6kIMDlG2k=": "folded parts: the word for hiding",
    "sha256-FqfirzFHtRrANndrt9LFhvjuJAu6+Nu06S6SzGfHlvE=": "folded parts: open in print",
    "sha256-I0O+LkYBdTrXbI52RlP9O+S0aJ9NPgUrB5OaBpP2uHA=": "folded parts: which elements",
    "sha256-QQp1+yQ44jXFkCG947LSh3deVmGtOx53zKNwtOtG3+4=": "index of theorems: folded",
}
# Inline scripts that differ from page to page or follow from our configuration.
PAGE_NAME = re.compile(r"DOCUMENTATION_OPTIONS\.pagename = '[\w/.-]+';")
MOVED = re.compile(r'if \(location\.hash\) location\.replace\("[\w./-]+" \+ location\.hash\)')
MATHJAX = re.compile(r"window\.MathJax = (\{.*\})")
# The theme's buttons act through attributes; book/_static/buttons.js does the same by listening.
HANDLERS = {"toggleFullScreen()": "fullscreen", "window.print()": "print"}
# Templates of the theme that it ships among its static files; no pages.
TEMPLATES = ("webpack-macros.html", "sbt-webpack-macros.html")
ADDRESSES = ("href", "src", "action", "formaction", "data", "xlink:href")
RUNS = re.compile(r"[\s\x00-\x1f]*(?:j\s*a\s*v\s*a\s*s\s*c\s*r\s*i\s*p\s*t\s*:|data:text/html)", re.IGNORECASE)
DATA_TYPES = {"application/json", "application/ld+json"}
ALLOWED = (
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'"
)
META = '<meta http-equiv="Content-Security-Policy" content="{}">\n'


class Active(HTMLParser):
    """Everything in a page that could run."""

    def __init__(self, text):
        super().__init__()
        self.inline, self.files, self.handlers, self.addresses = [], [], [], []
        self._script = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        values = {name: value or "" for name, value in attributes}
        self.handlers += [(tag, name, value) for name, value in values.items() if name.startswith("on")]
        self.addresses += [value for name, value in values.items() if name in ADDRESSES and RUNS.match(value)]
        if tag == "script":
            if "src" in values:
                self.files.append(values["src"])
            elif values.get("type", "") not in DATA_TYPES:
                self._script = ""

    def handle_data(self, data):
        if self._script is not None:
            self._script += data

    def handle_endtag(self, tag):
        if tag == "script" and self._script is not None:
            self.inline.append(self._script)
            self._script = None


def digest(script):
    """The hash of an inline script, as a policy spells it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()


def known(script):
    """Whether an inline script is one of those that the pages need."""
    if digest(script) in KNOWN or PAGE_NAME.fullmatch(script.strip()) or MOVED.fullmatch(script.strip()):
        return True
    settings = MATHJAX.fullmatch(script.strip())
    try:
        return settings is not None and isinstance(json.loads(settings.group(1)), dict)
    except ValueError:
        return False


def policy(scripts=()):
    """The policy of a page with these inline scripts."""
    hashes = sorted({f"'{digest(script)}'" for script in scripts})
    return "; ".join(["default-src 'none'", " ".join(["script-src 'self'", *hashes]), ALLOWED])


def secured(text):
    """(the page with its policy, what in it may not stand in a page)."""
    for handler, name in HANDLERS.items():
        text = text.replace(f'onclick="{handler}"', f'data-action="{name}"')
    active = Active(text)
    problems = [
        f"unknown inline script {digest(script)}: {' '.join(script.split())[:80]!r}"
        for script in active.inline
        if not known(script)
    ]
    problems += [f"handler in an attribute: <{tag} {name}={value!r}>" for tag, name, value in active.handlers]
    problems += [f"address that runs code: {value!r}" for value in active.addresses]
    problems += [f"script from elsewhere: {src}" for src in active.files if re.match(r"(?:\w+:|//)", src)]
    if "Content-Security-Policy" in text:
        return text, [*problems, "the page has a policy already"]
    line = META.format(policy(active.inline))
    # A browser looks for the encoding in the first kilobyte alone, so that comes first.
    text, count = re.subn(
        r"<head>\s*(?:<meta charset=[^>]*>\s*)?", lambda match: match.group() + line, text, count=1
    )
    return text, problems if count else [*problems, "the page has no <head>"]


def secure(paths):
    """Write the policy into these pages; return the problems, one sentence each."""
    problems = []
    for path in paths:
        text, found = secured(path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
        problems += [f"{path.name}: {problem}" for problem in found]
    return problems


def stated(text):
    """The policy that a page carries, or None."""
    match = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    return match.group(1) if match else None
