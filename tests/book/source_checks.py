"""Errata and reproduction ledger: every entry complete, every link alive, every number from a cell.

Each function takes the text of a page and returns a list of problems, empty if all is well.
"""

import functools
import json
import re
from pathlib import Path

import index_checks
import notebook_tools as tools

sections = functools.cache(index_checks.sections)
RESULTS = tools.ROOT / "benchmarks" / "results"

LINK = re.compile(r"\]\(\.\./(notebooks/[^)#\s]+)#([^)\s]+)\)")
FIELDS = ("Where", "Printed", "Right", "What survives")
# The sources' displays behind these entries are damaged in the text that we have.
UNSURE = ("E-5", "E-6", "E-10", "E-12", "E-13", "E-14", "E-15", "E-21", "E-22")
UNSURE_WORDS = "in the text available to us"
ENTRIES = tuple(f"E-{number}" for number in range(1, 23))

LEDGER_COLUMNS = (
    ["Figure or number in the source", "Published", "Ours", "Verdict"],
    ["Setting", "Reported", "Ours", "Verdict"],
)
RESULT_FILE = re.compile(r"`(benchmarks/results/[^`]+)`")
REASON = re.compile(r"^(?:not run|none: .{20})", re.IGNORECASE)

DECIMAL = re.compile(r"(?<![\w.])(\d*\.\d+)(?![\w.])(\$?%)?")
ANY_NUMBER = re.compile(
    r"(?<![\w.])\d[\d_,]*(?:\.\d*)?(?:e[-+]?\d+)?|(?<![\w.])\.\d+(?:e[-+]?\d+)?", re.IGNORECASE
)
_PLACE = r"(?:[A-Z]\.)?\d+(?:\.\d+)*"
REFERENCE = re.compile(
    r"(?:sections?|chapters?|theorems?|lemmas?|algorithms?|conjecture|corollary|appendix|figures?|fig\.) "
    rf"{_PLACE}(?:(?:,| and| to) {_PLACE})*",
    re.IGNORECASE,
)


def linked_text(text, root=tools.ROOT):
    """The text of all linked sections; that they exist is a matter of the strict build."""
    found = [sections(Path(root) / target, outputs=True).get(anchor, "") for target, anchor in LINK.findall(text)]
    return "\n".join(found)


def result(name):
    """The committed result of a benchmark."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def unsupported_numbers(text, support):
    """Decimal numbers of `text` that no number of `support` rounds to."""
    known = [float(one.replace(",", "").replace("_", "")) for one in ANY_NUMBER.findall(support)]
    missing = []
    for token, percent in DECIMAL.findall(REFERENCE.sub("", text)):
        digits, value = len(token.split(".")[1]), float(token)
        # A printed 2.4e-06 supports 2.4: powers of ten are compared by their leading digits as well.
        scaled = [one / 10 ** _exponent(one) for one in known if one]
        tolerance = 0.5 * 10.0**-digits * (1 + 1e-6)
        hundreds = [100 * one for one in known] if percent else []
        if not any(abs(one - value) <= tolerance for one in (*known, *scaled, *hundreds)):
            missing.append(token)
    return missing


def _exponent(value):
    return int(f"{abs(value):e}".split("e")[1])


def entries(text):
    """{tag: text} of the errata page."""
    parts = re.split(r"(?m)^## ", text)[1:]
    return {re.match(r"(E-\d+)\b|(.*)", part)[0]: part for part in parts}


def errata_problems(text, root=tools.ROOT):
    found, problems = entries(text), []
    problems += [f"{tag}: no entry" for tag in ENTRIES if tag not in found]
    problems += [f"a section that is no entry: {tag}" for tag in found if not tag.startswith("E-")]
    for tag, entry in found.items():
        for field in FIELDS:
            match = re.search(rf"(?m)^{field}[^\n]*\n: (.+)", entry)
            if match is None or len(re.sub(r"\W", "", match[1])) < 8:
                problems.append(f"{tag}: nothing under '{field}'")
        if (f"Printed, {UNSURE_WORDS}" in entry) != (tag in UNSURE):
            problems.append(f"{tag}: '{UNSURE_WORDS}' stands where it should not, or is missing")
        if "**See it:**" not in entry or not LINK.search(entry.partition("**See it:**")[2]):
            problems.append(f"{tag}: no demonstration is linked")
        support = linked_text(entry, root)
        if not re.search(r"(?m)^\s+assert ", support):
            problems.append(f"{tag}: no linked section asserts anything")
        body = re.sub(r"(?ms)^(Where|Printed[^\n]*)\n: .+?\n\n", "", entry)
        problems += [
            f"{tag}: no linked section shows {number}" for number in unsupported_numbers(body, support)
        ]
    return problems


def ledger_rows(text):
    """(heading of the section, cells) for every row of the ledger's tables."""
    return [(heading, cells) for heading, header, cells in index_checks.table_rows(text) if header in LEDGER_COLUMNS]


VERDICT = re.compile(r"\*\*(reproduced|drawn anew|explained|not reproduced|answered)\*\*")


def ledger_problems(text, items=(), root=tools.ROOT):
    """`items`: (heading, beginning of a row) of all that must have a row."""
    problems, rows = [], ledger_rows(text)
    for heading, cells in rows:
        name = f"{heading}: {cells[0][:50]}"
        if len(cells) != 4:
            problems.append(f"{name}: {len(cells)} cells")
            continue
        problems += [f"{name}: an empty cell" for cell in cells if not re.sub(r"\W", "", cell)]
        _, _, ours, verdict = cells
        if not VERDICT.match(verdict):
            problems.append(f"{name}: the verdict begins with none of the five words: {verdict[:40]}")
        support = linked_text(ours, root)
        files = [Path(root) / file for file in RESULT_FILE.findall(ours)]
        problems += [f"{name}: {file.name} does not exist" for file in files if not file.is_file()]
        if not (support or files or REASON.match(ours)):
            problems.append(f"{name}: neither a link nor a reason")
        if "asserted" in ours and not re.search(r"(?m)^\s+assert ", support):
            problems.append(f"{name}: no linked section asserts anything")
        support += "".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
        missing = unsupported_numbers(f"{ours} {verdict}", support) if support else []
        problems += [f"{name}: no linked section shows {number}" for number in missing]
    for heading, start in items:
        if not any(heading == place and cells[0].startswith(start) for place, cells in rows):
            problems.append(f"{heading}: no row for {start}")
    return problems
