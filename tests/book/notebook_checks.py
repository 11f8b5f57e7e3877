"""What every notebook of the book must fulfil. Each function returns a list of problems, empty if all is well."""

import ast
import re

import notebook_tools as tools

DIRECTIVE = re.compile(r"^\s*(?:`{3,}|~{3,}|:{3,})\s*\{[^}\s]+\}|^\s*:{3,}\s*\w*\s*$", re.MULTILINE)
ROLE = re.compile(r"\{[a-zA-Z][\w:+-]*\}`[^`]")
TARGET = re.compile(r"^\([\w-]+\)=\s*$", re.MULTILINE)
CODE = re.compile(r"(`{3,}|~{3,})[^\n{]*\n.*?\1|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)", re.DOTALL)
READING_TIME = re.compile(r"reading time\W{0,8}(\d+)\s*min", re.IGNORECASE)
RUN_TIME = re.compile(
    r"run time\W{0,8}(?:(?:under|below|at most|less than|about)\s+)?\d+\s*(?:s|sec|seconds?|min|minutes?)\b",
    re.IGNORECASE,
)
TAG = re.compile(r"\[((?:A|C|E|G|M|N|R|ZW)-[A-Za-z0-9][\w.]*)(?:[:,;][^\]\n]*)?\](?!\()")


def _without_code(text):
    return CODE.sub("", text)


def markdown_problems(notebook):
    problems = []
    for number, cell in enumerate(tools.markdown_cells(notebook), start=1):
        text = tools.source(cell)
        for what, pattern, searched in (
            ("a directive", DIRECTIVE, text),
            ("a role", ROLE, text),
            ("a target", TARGET, _without_code(text)),
        ):
            match = pattern.search(searched)
            if match:
                problems.append(f"Markdown cell {number} contains {what}: {match.group().strip()!r}")
        if cell.get("attachments"):
            problems.append(f"Markdown cell {number} has attachments")
    return problems


def active_problems(notebook):
    """Nothing in the text could run in a reader's browser (`outputs` looks at the outputs)."""
    return [
        f"Markdown cell {number} contains {found}"
        for number, cell in enumerate(tools.markdown_cells(notebook), start=1)
        for found in tools.active_content(_without_code(tools.source(cell)))
    ]


def header_problems(notebook):
    """First cell: a numbered title; before the first code cell: reading time and run-time budget."""
    first = notebook["cells"][0] if notebook["cells"] else None
    if first is None or first["cell_type"] != "markdown":
        return ["the first cell is not Markdown"]
    problems = []
    if not re.match(r"# \S", tools.source(first)):
        problems.append("the first cell does not begin with a title")
    if READING_TIME.search(tools.source(first)) is None:
        problems.append("the first cell names no reading time")
    if RUN_TIME.search(re.sub(r"[*_]", "", tools.source(first))) is None:
        problems.append("the first cell names no run time")
    titles = [
        line
        for cell in tools.markdown_cells(notebook)
        for line in _without_code(tools.source(cell)).splitlines()
        if re.match(r"# \S", line)
    ]
    if len(titles) > 1:
        problems.append(f"more than one title: {titles[1]!r}")
    return problems


def assertion_problems(notebook):
    """At least one assertion, and none that cannot fail."""
    asserts = []
    for cell in tools.code_cells(notebook):
        if not tools.is_bootstrap(cell):
            asserts += [
                node for node in ast.walk(tools.parse(tools.source(cell))) if isinstance(node, ast.Assert)
            ]
    problems = [] if asserts else ["no assertion"]
    for node in asserts:
        if not any(isinstance(part, (ast.Name, ast.Attribute, ast.Call)) for part in ast.walk(node.test)):
            problems.append(f"an assertion that cannot fail: {ast.unparse(node)}")
    return problems


def execution_problems(notebook):
    problems = []
    for expected, cell in enumerate(tools.code_cells(notebook), start=1):
        if not tools.source(cell).strip():
            problems.append(f"code cell {expected} is empty")
        elif cell.get("execution_count") != expected:
            problems.append(
                f"{tools.cell_name(expected, cell)}: execution count {cell.get('execution_count')}"
            )
        tags = cell["metadata"].get("tags", [])
        skipped = [
            tag for tag in tags if tag.startswith("nbval-") or tag in ("raises-exception", "skip-execution")
        ]
        if skipped or re.search(r"#\s*NBVAL_", tools.source(cell)):
            problems.append(f"{tools.cell_name(expected, cell)}: is exempt from the comparison {skipped}")
    return problems


def image_problems(notebook):
    """Captions that say something, in full sentences, and names; html_checks looks for the alternative text."""
    problems = []
    for index, cell in enumerate(tools.code_cells(notebook), start=1):
        images = [
            mime
            for output in cell.get("outputs", [])
            for mime in output.get("data", {})
            if mime.startswith("image/")
        ]
        if not images:
            continue
        where, figure = tools.cell_name(index, cell), cell["metadata"].get("mystnb", {}).get("figure", {})
        caption = figure.get("caption") or ""
        if len(caption.split()) < 15 or not caption.endswith("."):
            problems.append(f"{where}: no caption (metadata mystnb.figure.caption): {caption!r}")
        if not re.fullmatch(r"fig-\d+-[a-z0-9-]+", figure.get("name", "")):
            problems.append(
                f"{where}: no name like fig-3-growth (metadata mystnb.figure.name): {figure.get('name')!r}"
            )
        if len(images) > 1:
            problems.append(f"{where}: {len(images)} images, which would share a caption and a name")
    return problems


FOLDED, FORMULA, LINK = re.compile(r"<details.*?</details>", re.DOTALL), re.compile(r"\$\$.*?\$\$|\$[^$]*\$", re.DOTALL), re.compile(r"\]\([^)]*\)")
MOST_WORDS = 3000
OPENED_BY = ("**Reading time**", "**The question.**", "**The answer.**")


def words(notebook):
    """How many words a reader meets who unfolds nothing; a formula is one."""
    text = "\n\n".join(tools.source(cell) for cell in tools.markdown_cells(notebook))
    return len(re.findall(r"\b[^\W_][\w'’.-]*", LINK.sub("]", FORMULA.sub(" x ", FOLDED.sub(" ", text)))))


def lesson_problems(notebook):
    """A lesson opens with question, answer in numbers and picture, is short, and folds its checks and the code of its figures."""
    problems, cells = [], notebook["cells"]
    opening = tools.source(cells[0])
    problems += [f"the first cell has no {part}" for part in OPENED_BY if part not in opening]
    if not re.search(r"\*\*Reading time\*\* \d+ min; \d+ to skim, \d+ to work through", opening):
        problems.append("the reading time has no 'N min; N to skim, N to work through'")
    if not any("figure" in cell["metadata"].get("mystnb", {}) for cell in cells[:5]):
        problems.append("none of the first five cells is a figure")
    numbers = [tools.output_text(output) for cell in cells[:3] for output in cell.get("outputs", [])]
    if not re.search(r"\d", " ".join(numbers)):
        problems.append("no cell before the picture computes the answer's numbers")
    if "**You need**" not in " ".join(tools.source(cell) for cell in cells[:7]):
        problems.append("what a reader needs is not said at the start")
    if (count := words(notebook)) > MOST_WORDS:
        problems.append(f"{count} words, more than {MOST_WORDS}; the depth belongs into a companion")
    for before, cell in zip(cells, cells[1:]):
        if "hide-cell" in cell["metadata"].get("tags", []) and before["cell_type"] == "markdown" and "**Checked.**" not in tools.source(before):
            problems.append(f"a folded check without a line that says what was checked: {tools.source(cell)[:60]!r}")
    return problems


CHECKS = (
    markdown_problems,
    active_problems,
    header_problems,
    assertion_problems,
    execution_problems,
    tools.output_problems,
    image_problems,
)


def tags(text):
    """Theorem tags in brackets, such as [G-3.1], in a text. Brackets that are links do not count."""
    return {tag.rstrip(".") for tag in TAG.findall(text)}
