"""The repository's address agrees everywhere, and files speak of the project alone."""

import re
from pathlib import Path

from bootstrap_cell import bootstrap_source, distribution, repository
from notebook_tools import code_cells, exercises, is_bootstrap, notebooks, read, source
from set_repository import text_files

# With brackets, so that this file does not contain what it looks for.
FORBIDDEN = {
    "a package registry": re.compile(r"p[y]pi\.org|python[h]osted\.org|n[p]mjs\.|conda[.]anaconda\.org|pypi[.]python\.org", re.IGNORECASE),
    "a path of one machine": re.compile(r"/r[o]ot/|/w[o]rk/|/h[o]me/\w|/U[s]ers/\w"),
    "a folder outside the repository": re.compile(r"\bs[h]ared/"),
}


def address_problems(root):
    """Places that must carry the address and do not, and places that carry another one."""
    root = Path(root)
    url, branch = repository(root)
    name = distribution(root)
    problems = []
    for file, expected in {
        "README.md": f"git+{url}@{branch}",
        "CITATION.cff": f'repository-code: "{url}"',
        "pyproject.toml": f'Source = "{url}"',
    }.items():
        if expected not in (root / file).read_text(encoding="utf-8"):
            problems.append(f"{file}: {expected} is missing")
    for path in [*notebooks(root), *exercises(root)]:
        first, *others = code_cells(read(path))
        if source(first).rstrip() != bootstrap_source(root) or any(map(is_bootstrap, others)):
            problems.append(f"{path.name}: the first code cell, and no other, must be what python -m tools first-cell prints")
    repository_name = url.rsplit("/", 1)[1]
    same_name = re.compile(rf"https://github\.com/[\w-]+/{re.escape(repository_name)}(?![\w-])")
    installed = re.compile(rf"{re.escape(name)}(?:\[\w+\])?\s*@\s*git\+(https://[\w./-]+?)@")
    for path in text_files(root):
        text = path.read_text(encoding="utf-8")
        for found in [*same_name.findall(text), *installed.findall(text)]:
            if found != url:
                problems.append(f"{path.relative_to(root)}: {found}, but the address is {url}")
    return problems


def text_problems(root):
    """Files that name a registry, a machine's path, or a folder outside the repository."""
    root = Path(root)
    problems = []
    for path in text_files(root):
        if path.name in ("LICENSE", "LICENSE-text"):
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":  # images are long random strings
            text = re.sub(r'"image/\w+": "[^"]*"', "", text)
        for what, pattern in FORBIDDEN.items():
            match = pattern.search(text)
            if match:
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{path.relative_to(root)}:{line}: {what}: {match.group()!r}")
    return problems
