"""Long tables as lists that can be filtered: statement or verdict first, the evidence on demand.

The pages stay plain Markdown tables, which tests read. Here each row of the index, the ledger and the comparison with
other libraries becomes a row of two cells, which is readable on a telephone; what supports it is folded. Each row, and
each entry of the errata, says by which source, chapter and verdict records.js may filter it.
"""

import re

from bs4 import BeautifulSoup

SOURCES = {
    "C": "the field", "G": "Ganesh 2024", "ZW": "Zhu and Wang 2019", "R": "Räisä et al. 2024",
    "M": "Choquette-Choo et al. 2024, MMCC", "N": "Choquette-Choo et al. 2024, near exact", "A": "this book’s accountants",
}  # fmt: skip
INDEX = ["Tag", "Statement", "Notebook section", "Function", "Test"]
LEDGERS = (
    ["Figure or number in the source", "Published", "Ours", "Verdict"],
    ["Setting", "Reported", "Ours", "Verdict"],
)
CHAPTER = re.compile(r"notebooks/(\d\d)_")
OURS = "dplib"


def element(name, *children, **attributes):
    made = BeautifulSoup("", "html.parser").new_tag(
        name, attrs={key.rstrip("_"): value for key, value in attributes.items()}
    )
    made.extend(children)
    return made


def contents(cell):
    """What a cell holds, without the paragraph around it."""
    only = [child for child in cell.children if str(child).strip()]
    inner = only[0] if len(only) == 1 and only[0].name == "p" else cell
    return [child.extract() for child in list(inner.children)]


def folded(summary, pairs):
    """A <details> with terms and what they hold."""
    listing = element("dl")
    for term, inside in pairs:
        listing.extend([element("dt", term), element("dd", *inside)])
    return element("details", element("summary", summary), listing)


def marked(record, **values):
    """The record, with what it can be filtered by: several values are separated by a bar."""
    record["class"] = [*record.get("class", ()), "record"]
    for name, value in values.items():
        record[f"data-{name}"] = value if isinstance(value, str) else "|".join(value)


def chapters(node):
    return sorted(
        {f"chapter {int(number)}" for number in CHAPTER.findall(str(node))}, key=lambda name: int(name[8:])
    )


def index_row(row, cells, heading):
    _, statement, section, function, test = cells
    family = cells[0].get_text().strip().partition("-")[0]
    marked(row, source=SOURCES[family], chapter=chapters(section))
    evidence = zip(("Derived in", "Computed by", "Checked by"), map(contents, (section, function, test)))
    statement.append(folded("proof, code, test", evidence))
    return 2


def ledger_row(row, cells, heading):
    what, published, ours, verdict = cells
    word = verdict.strong.get_text()
    marked(row, source=heading.partition(", ")[0], chapter=chapters(ours), verdict=word)
    said = contents(verdict)
    what.append(
        folded(
            "published, ours",
            (("Published", contents(published)), ("Ours", contents(ours)), ("Verdict", said)),
        )
    )
    row.insert(0, element("td", element("strong", word), class_="verdict"))
    return 2


def compared(table, heads, heading):
    """A comparison with other libraries: settings in one cell, answers in the other, each after its name."""
    place = next(number for number, head in enumerate(heads) if head.startswith(OURS))
    names = [str(head.decode_contents()) for head in table.select("thead th")]
    for row in table.select("tbody tr"):
        cells = row.find_all("td", recursive=False)
        text = " ".join(cell.get_text() for cell in cells[place:])
        verdicts = [word for word in ("too small", "no answer", "error") if word in text]
        marked(
            row, question=heading, **({} if " MB" in text else {"verdict": verdicts or ["nothing too small"]})
        )
        lists = []
        for part in (slice(0, place), slice(place, None)):
            listing = element("dl")
            for name, cell in zip(names[part], cells[part]):
                term = element("dt", *BeautifulSoup(name, "html.parser").contents)
                listing.extend([term, element("dd", *contents(cell))])
            lists.append(element("td", listing, class_="settings" if part.start == 0 else "answers"))
        row.clear()
        row.extend(lists)
    return ["Setting", "Answers"]


def rewrite(table):
    """Turn one table into records, if it is one of those."""
    heads = [head.get_text().strip() for head in table.select("thead th")]
    section = table.find_parent("section")
    heading = section.find(re.compile("h[1-6]")).get_text().rstrip("#") if section else ""
    if heads == INDEX or heads in LEDGERS:
        make = index_row if heads == INDEX else ledger_row
        for row in table.select("tbody tr"):
            cells = row.find_all("td", recursive=False)
            keep = make(row, cells, heading)
            for cell in row.find_all("td", recursive=False)[keep:]:
                cell.extract()
        heads = INDEX[:2] if heads == INDEX else ["Verdict", heads[0]]
    elif any(head.startswith(OURS) for head in heads[1:]):
        heads = compared(table, heads, heading)
    else:
        return
    table["class"] = [*table.get("class", ()), "records"]
    for column in table.find_all("colgroup"):
        column.extract()
    table.thead.replace_with(
        element("thead", element("tr", *(element("th", head, scope="col") for head in heads)))
    )


def errata(soup):
    """Each entry: heading and fields first, the explanation and what shows it folded."""
    for section in soup.select("section:has(> span[id^=tag-e-])"):
        source = re.search(r"(?:slides of )?([^,]+?\])", section.dd.get_text()).group(1)
        marked(section, source=source, chapter=chapters(section))
        rest = [node.extract() for node in list(section.dl.next_siblings)]
        section.append(element("details", element("summary", "why, and the cells that show it"), *rest))


def list_records(app, pagename, templatename, context, doctree):
    if pagename not in ("book/theorems", "book/reproductions", "book/errata", "book/peers"):
        return
    soup = BeautifulSoup(context["body"], "html.parser")
    for table in soup.find_all("table"):
        rewrite(table)
    errata(soup)
    context["body"] = str(soup)


def setup(app):
    app.connect("html-page-context", list_records, priority=700)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
