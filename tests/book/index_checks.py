"""The theorem index: every row complete, every tag of the book in a row."""

import pkgutil
import re
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


def function_exists(name):
    """Whether a dotted name such as dplib.mixtures.binomial can be imported."""
    try:
        return pkgutil.resolve_name(name.removesuffix("()")) is not None
    except (ImportError, AttributeError):
        return False


def test_exists(root, name):
    """Whether tests/x.py::test is defined."""
    path, _, test = name.partition("::")
    file = Path(root) / path
    return bool(test) and file.is_file() and f"\ndef {test}(" in "\n" + file.read_text(encoding="utf-8")


test_exists.__test__ = False


def row_problems(root, row):
    root = Path(root)
    problems = []
    if len(re.sub(r"\W", "", row.statement)) < 10:
        problems.append(f"{row.tag}: no statement")
    links = LINK.findall(row.section)
    if not links:
        problems.append(f"{row.tag}: no link to a section")
    named = False
    for target, anchor in links:
        path = (root / "book" / target).resolve()
        if not path.is_file():
            problems.append(f"{row.tag}: {target} does not exist")
            continue
        section = sections(path).get(anchor)
        if section is None:
            problems.append(f"{row.tag}: {target} has no section #{anchor}")
            continue
        named = named or row.tag in notebook_checks.tags(section)
    if links and not named and not problems:
        problems.append(f"{row.tag}: no linked section mentions [{row.tag}]")
    functions = [name for name in CODE.findall(row.function) if name.startswith("dplib")]
    if not functions:
        problems.append(f"{row.tag}: no function of dplib")
    problems += [f"{row.tag}: no function {name}" for name in functions if not function_exists(name)]
    tests = CODE.findall(row.test)
    if not tests:
        problems.append(f"{row.tag}: no test")
    problems += [f"{row.tag}: no test {name}" for name in tests if not test_exists(root, name)]
    return problems


def mentioned_tags(root):
    """{tag: places} of the tags that notebooks, library and unit tests mention."""
    root = Path(root)
    places = {}
    for path in tools.notebooks(root):
        text = "\n".join(tools.source(cell) for cell in tools.read(path)["cells"])
        for tag in notebook_checks.tags(text):
            places.setdefault(tag, []).append(path.name)
    python = [*root.glob("dplib/**/*.py"), *root.glob("tests/**/*.py")]
    for path in sorted(python):
        if (root / "tests" / "book") in path.parents:
            continue
        for tag in notebook_checks.tags(path.read_text(encoding="utf-8")):
            places.setdefault(tag, []).append(str(path.relative_to(root)))
    return places


def index_problems(root=tools.ROOT):
    """All problems of the index of the project at `root`."""
    root = Path(root)
    try:
        index = rows((root / "book" / "theorems.md").read_text(encoding="utf-8"))
    except ValueError as error:
        return [str(error)]
    if not index:
        return [f"book/theorems.md has no table with the columns {' | '.join(COLUMNS)}"]
    problems = []
    known = [row.tag for row in index]
    problems += [f"{tag}: two rows" for tag in sorted({tag for tag in known if known.count(tag) > 1})]
    for row in index:
        problems += row_problems(root, row)
    errata = (
        (root / "book" / "errata.md").read_text(encoding="utf-8")
        if (root / "book" / "errata.md").exists()
        else ""
    )
    for tag, where in sorted(mentioned_tags(root).items()):
        if tag.startswith("E-"):
            if re.search(rf"\b{re.escape(tag)}\b", errata) is None:
                problems.append(f"{tag}: mentioned in {', '.join(where)}, but not in book/errata.md")
        elif tag not in known:
            problems.append(f"{tag}: mentioned in {', '.join(where)}, but without a row")
    return problems
