"""Slides of the lessons, made from their built pages: question, answer, picture, theorems, what to take away.

A deck is slides/NAME.html beside the pages, with their figures, formulas and links; it needs no network. Every notebook
that opens with **The question.** gets one, companions apart. Nothing of a deck is written by hand:

1. the title with the question; the answer with its first table; the first figure;
2. from each section, in order: boxes of statements, figures, tables that are computed, and *Expect* with its folded answer;
3. the assumptions, and what to take away.
"""

import html
import re
import shutil
from copy import copy
from pathlib import Path

from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parent.parent
FOLDER, STYLE = "slides", "book/_slides"
FILES = ("deck.css", "deck.js")
BOX = re.compile(r"(?:Theorem|Lemma|Proposition|Corollary|Definition|Algorithm)\b")
NO_LESSONS = ("20_symptoms",)  # for looking up: a question, and many answers
LEFT_OUT = ("Exercises", "Further reading", "Who needs what", "Where to go from here")


class NoDeckError(ValueError):
    """A lesson lacks what its slides need; the message says what."""


class Deck:
    """The slides of one lesson: a list of (kind, HTML)."""

    def __init__(self, text, stem):
        self.stem, self.slides = stem, []
        document = BeautifulSoup(text, "html.parser")
        self.lesson = document.select_one("article section")
        for node in self.lesson.select("a.headerlink, script, form, button, p.live"):
            node.decompose()
        self.title = self.lesson.h1.get_text().strip()
        found = re.search(r"window\.MathJax = (\{.*?\})</script>", text)
        self.mathjax = found.group(1) if found else "{}"
        for section in self.lesson.find_all("section", recursive=False):
            if section.h2 and section.h2.get_text().strip() in LEFT_OUT:
                section.decompose()
        self._open()
        for section in self.lesson.find_all("section", recursive=False):
            if section.h2:
                self._section(section, section.h2.decode_contents().strip())

    def kinds(self):
        """What the slides show, in order: question, answer, picture, statement, table, expect, assumptions, takeaway."""
        return [kind for kind, _ in self.slides]

    def _add(self, kind, heading, *nodes):
        body = "".join(self._clean(node) for node in nodes)
        self.slides.append((kind, f"<h2>{heading}</h2>\n{body}"))

    def _clean(self, node):
        """The HTML of a part of the page as it stands on a slide: no anchors of its own, links from where the deck lies."""
        part = BeautifulSoup(str(copy(node)), "html.parser")
        for tag in part.find_all(True):
            del tag["id"]
            target = tag.get("href") if tag.name == "a" else None
            if target and target.startswith("#"):
                tag["href"] = f"../notebooks/{self.stem}.html{target}"
            elif target and not re.match(r"\w+:|/|\.\./", target):
                tag["href"] = f"../notebooks/{target}"
        return str(part)

    def _open(self):
        """The first screen of the lesson: question, answer, picture."""
        top = [child for child in self.lesson.children if getattr(child, "name", None) and child.name != "section"]
        question, answer = (self._paragraph(top, f"The {what}.") for what in ("question", "answer"))
        if question is None or answer is None:
            raise NoDeckError(f"{self.stem}: no paragraph begins with The question. and The answer.")
        link = f'<p class="title-footer"><a href="../notebooks/{self.stem}.html">The lesson</a></p>'
        self.slides.append(("question", f"<h1>{html.escape(self.title)}</h1>\n{self._clean(question)}\n{link}"))
        tables = [table for child in top for table in child.select(".cell_output table, .output table")]
        self._add("answer", "The answer", answer, *tables[:1])
        figures = [figure for child in top for figure in ([child] if child.name == "figure" else child.find_all("figure"))]
        for figure in figures:
            self._add("picture", "The picture", figure)

    @staticmethod
    def _paragraph(nodes, begins):
        return next((node for node in nodes if node.name == "p" and node.get_text().strip().startswith(begins)), None)

    def _section(self, section, heading):
        plain = re.sub(r"<[^>]*>", "", heading)
        if plain == "What to take away":
            self._add("takeaway", heading, *section.find_all(["p", "ul", "ol", "div"], recursive=False))
            return
        if plain == "Assumptions":
            for table in section.find_all("table")[:1]:
                table["class"] = [*table.get("class", []), "text"]
                self._add("assumptions", heading, table)
            return
        for node in section.find_all(["blockquote", "figure", "table", "p"]):
            if node.find_parent("details") or (node.name != "figure" and node.find_parent("figure")):
                continue
            if node.name == "blockquote" and BOX.match(node.get_text().strip()):
                self._add("statement", heading, node)
            elif node.name == "figure":
                self._add("picture", heading, node)
            elif node.name == "table" and node.find_parent(class_=re.compile("output")):
                self._add("table", heading, *self._before(node), node)
            elif node.name == "p" and node.get_text().strip().startswith("Expect."):
                self._add("expect", heading, node, *self._folded(node))

    @staticmethod
    def _folded(question):
        """The formulas after a question and its folded answer, which may stand behind a cell; nothing where none is folded."""
        after = question.find_next_siblings()
        ends = (i for i, node in enumerate(after) if node.name in ("section", "details") or node.get_text().strip().startswith("Expect."))
        found = [node for node in after[: next(ends, 0) + 1] if node.name == "details" or "math" in node.get("class", [])]
        return found if found and found[-1].name == "details" else []

    @staticmethod
    def _before(table):
        """The paragraph that introduces a computed table, where one stands right before its cell."""
        cell = table.find_parent("div", class_="cell")
        before = cell.find_previous_sibling() if cell else None
        begins = before.get_text().strip() if before is not None and before.name == "p" else ""
        return [before] if begins and not begins.startswith(("Expect.", "Checked.")) else []

    def problems(self):
        """What a deck of a lesson must have and this one lacks, one sentence each."""
        kinds, boxes = self.kinds(), [q for q in self.lesson.find_all("blockquote") if BOX.match(q.get_text().strip())]
        wanted = ["question", "answer", "picture", "takeaway", "statement" if boxes else "assumptions"]
        return [f"{self.stem}: no slide with the {kind}" for kind in wanted if kind not in kinds]

    def page(self):
        """The HTML of the deck."""
        slides = [
            f'<section class="slide {kind}" id="slide-{number}">\n{body}\n</section>'
            for number, (kind, body) in enumerate(self.slides, start=1)
        ]
        template = (ROOT / STYLE / "deck.html").read_text(encoding="utf-8")
        return template.format(title=html.escape(self.title), mathjax=self.mathjax, slides="\n".join(slides))


def lessons(pages):
    """The built pages that get slides: notebooks that open with a question, apart from companions and `NO_LESSONS`, sorted."""
    found = sorted(path for path in Path(pages, "notebooks").glob("*.html") if not path.stem.endswith("_in_depth") and path.stem not in NO_LESSONS)
    return [path for path in found if "<strong>The question.</strong>" in path.read_text(encoding="utf-8")]


def write(pages, source=ROOT):
    """Write the decks beside the pages of a built book; return the problems, one sentence each."""
    pages, problems = Path(pages), []
    shutil.rmtree(pages / FOLDER, ignore_errors=True)
    chosen = lessons(pages)
    if not chosen:
        return []
    for folder in (pages / FOLDER, pages / "_static" / FOLDER):
        folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy2(Path(source, STYLE, name), pages / "_static" / FOLDER / name)
    for path in chosen:
        try:
            deck = Deck(path.read_text(encoding="utf-8"), path.stem)
        except NoDeckError as error:
            problems.append(str(error))
            continue
        problems += deck.problems()
        (pages / FOLDER / path.name).write_text(deck.page(), encoding="utf-8")
    return problems
