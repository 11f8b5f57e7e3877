"""The theorem index: every row complete, every tag of the book in a row."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import notebook_checks
import notebook_tools as tools

COLUMNS = ["Tag", "Statement", "Notebook section", "Function", "Test"]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)#([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
TAG = re.compile(r"[A-Z]{1,2}-[A-Za-z0-9][\w.]*")


@dataclass(frozen=True)
class Row:
    """One line of the index."""

    tag: str
    statement: str
    section: str
    function: str
    test: str


def table_rows(text):
    """(heading, header, cells) of every row of the tables of a page."""
    heading, header = "", None
    for line in map(str.strip, text.splitlines()):
        heading = line[3:] if line.startswith("## ") else heading
        if not line.startswith("|"):
            header = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.removeprefix("|").removesuffix("|"))]
        if header is None:
            header = cells
        elif not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            yield heading, header, cells


def rows(text):
    """Rows of all tables with the index's columns."""
    found = []
    for cells in (cells for _, header, cells in table_rows(text) if header == COLUMNS):
        tag = TAG.search(re.sub(r"\([^)]*\)", "", cells[0]))
        if len(cells) != len(COLUMNS) or tag is None:
            raise ValueError(f"a row of the index has {len(cells)} cells, not {len(COLUMNS)}, or no tag: {cells}")
        found.append(Row(tag.group(), *cells[1:]))
    return found


def slug(heading):
    """Anchor of a heading in the built book: as on GitHub, formulas left out."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip())
    text = re.sub(r"\$[^$]*\$", "", text)
    text = re.sub(r"[`*]", "", text.lower())
    return re.sub(r"[^\w\u4e00-\u9fff\- ]", "", text).replace(" ", "-")


def _lines(path, outputs):
    """The lines of a page; of a notebook, code and printed outputs are indented."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8").splitlines()
    lines = []
    for cell in tools.read(path)["cells"]:
        text, indent = tools.source(cell), "" if cell["cell_type"] == "markdown" else "    "
        lines += [indent + line for line in text.splitlines()]
        for output in cell.get("outputs", []) if outputs else []:
            printed = output.get("text", output.get("data", {}).get("text/plain", ""))
            lines += ["    " + line for line in "".join(printed).splitlines()]
        lines.append("")
    return lines


def sections(path, outputs=False):
    """{anchor: text of the section, subsections included} of a notebook or a Markdown page."""
    lines = _lines(Path(path), outputs)
    heads, fenced = [], False
    for number, line in enumerate(lines):
        if line.startswith(("```", "~~~")):
            fenced = not fenced
        match = None if fenced else re.match(r"(#{1,6}) (.+)", line)
        if match:
            heads.append((number, len(match.group(1)), slug(match.group(2))))
    result = {}
    for position, (start, level, anchor) in enumerate(heads):
        later = [number for number, other, _ in heads[position + 1 :] if other <= level]
        name, extra = anchor, 0
        while name in result:
            extra += 1
            name = f"{anchor}-{extra}"
        result[name] = "\n".join(lines[start : later[0] if later else len(lines)])
    return result


def row_problems(root, row):
    """That targets, functions and tests exist is a matter of the strict build, which links them."""
    problems = []
    if len(re.sub(r"\W", "", row.statement)) < 10:
        problems.append(f"{row.tag}: no statement")
    linked = [sections(root / "book" / target).get(anchor, "") for target, anchor in LINK.findall(row.section)]
    if not any(row.tag in notebook_checks.tags(section) for section in linked):
        problems.append(f"{row.tag}: no linked section mentions [{row.tag}]")
    if not any(name.startswith("dplib") for name in CODE.findall(row.function)):
        problems.append(f"{row.tag}: no function of dplib")
    if not CODE.search(row.test):
        problems.append(f"{row.tag}: no test")
    return problems


def mentioned_tags(root):
    """{tag: places} of the tags that library, unit tests and solutions mention; those of the pages are a matter of the strict build."""
    places = {}
    for path in sorted(path for place in ("dplib/**/*.py", "tests/**/*.py", "notebooks/solutions/*.ipynb") for path in root.glob(place)):
        if (root / "tests" / "book") not in path.parents:
            for tag in notebook_checks.tags(path.read_text(encoding="utf-8")):
                places.setdefault(tag, []).append(str(path.relative_to(root)))
    return places


def index_problems(root=tools.ROOT):
    """All problems of the index of the project at `root`."""
    index = rows((root / "book" / "theorems.md").read_text(encoding="utf-8"))
    errata = re.findall(r"\bE-\d+", (root / "book" / "errata.md").read_text(encoding="utf-8"))
    known = Counter(row.tag for row in index)
    problems = [f"{tag}: two rows" for tag, count in known.items() if count > 1]
    problems += [problem for row in index for problem in row_problems(root, row)]
    unknown = {tag: where for tag, where in mentioned_tags(root).items() if tag not in {*known, *errata}}
    return problems + [f"{tag}: mentioned in {', '.join(where)}, but without a row" for tag, where in unknown.items()]
