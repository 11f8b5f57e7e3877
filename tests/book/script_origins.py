"""Where each script of the built book comes from: our own files, or a wheel of the locked environment."""

import base64
import hashlib
import importlib.metadata
import json
import re
from pathlib import Path

import notebook_tools as tools
import policy

SCRIPTS = (".js", ".mjs", ".cjs", ".wasm", ".swf")
# Written by Sphinx from templates: their values are words and numbers, no code.
OPTIONS = re.compile(r"const DOCUMENTATION_OPTIONS = \{\n(?:    [A-Z_]+: (?:'[\w./-]*'|true|false),\n)+\};")


def hashed(data):
    """A SHA-256 in the spelling of a wheel's list of files."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def locked_scripts(root=tools.ROOT):
    """{hash: name} of every script that the wheels of requirements.txt list."""
    names = re.findall(r"^([A-Za-z0-9._-]+)==", (Path(root) / "requirements.txt").read_text(), re.MULTILINE)
    found = {}
    for name in names:
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:  # of another system
            continue
        for file in files:
            if file.suffix in SCRIPTS and file.hash is not None:
                found[file.hash.value] = f"{name}: {file}"
    return found


def own_scripts(root=tools.ROOT):
    """{hash: name} of the scripts in the repository."""
    folders = [Path(root, "book", "_static"), Path(root, "book", "_live")]
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in SCRIPTS]
    return {hashed(path.read_bytes()): str(path.relative_to(root)) for path in paths}


def templated_scripts(folder):
    """{hash: name} of the scripts that Sphinx and its copy button make for an empty project."""
    from sphinx.application import Sphinx

    source, built = Path(folder) / "source", Path(folder) / "built"
    source.mkdir(parents=True)
    (source / "conf.py").write_text("extensions = ['sphinx_copybutton']\nhtml_theme = 'basic'\n")
    (source / "index.rst").write_text("Nothing\n=======\n")
    Sphinx(source, source, built, Path(folder) / "trees", "html", status=None, warning=None).build()
    return {
        hashed((built / "_static" / name).read_bytes()): f"template of {name}"
        for name in ("language_data.js", "copybutton.js")
    }


def is_search_index(text):
    match = re.fullmatch(r"Search\.setIndex\((\{.*\})\)", text, re.DOTALL)
    try:
        return match is not None and isinstance(json.loads(match.group(1)), dict)
    except ValueError:
        return False


def is_notation_table(text):
    """The table of symbols, as one string that holds nothing active."""
    match = re.fullmatch(r"window\.BOOK_NOTATION = (\".*\");?\s*", text, re.DOTALL)
    try:
        active = policy.Active(json.loads(match.group(1))) if match else None
    except ValueError:
        return False
    return active is not None and not (active.inline or active.files or active.handlers or active.addresses)


# Data that the build writes in the form of a script, with the check that it is data and nothing else.
DATA = {
    "searchindex.js": is_search_index,
    "_static/documentation_options.js": lambda text: OPTIONS.fullmatch(text.strip()) is not None,
    "_static/notation-table.js": is_notation_table,
}


def unknown_scripts(folder, allowed):
    """Scripts in a built folder that are neither allowed by their hash nor data that the build writes."""
    folder, problems = Path(folder), []
    for path in sorted(path for path in folder.rglob("*") if path.suffix in SCRIPTS):
        name = str(path.relative_to(folder))
        data = path.read_bytes()
        if hashed(data) in allowed or (name in DATA and DATA[name](data.decode())):
            continue
        problems.append(f"{name}: neither ours nor in a wheel of requirements.txt")
    for path in sorted(folder.rglob("*.svg")):
        active = policy.Active(path.read_text(encoding="utf-8"))
        if active.inline or active.files or active.handlers or active.addresses:
            problems.append(f"{path.relative_to(folder)}: a picture that runs code")
    return problems
