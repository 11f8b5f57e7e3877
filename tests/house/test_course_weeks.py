"""The weeks of the teaching guide and of the project: stated minutes of the chapters and exercises, at most 150 a week."""

import contextlib
import functools
import io
import math
import re

import course
import notebook_tools as tools
import pytest
from folders import ROOT

GUIDE = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
PROJECT = (ROOT / "book" / "project.md").read_text(encoding="utf-8")
MOST = 150


def table(text, first):
    """The cells of each row of the table whose header begins with this word."""
    block = text[text.index(f"| {first} |") :].split("\n\n")[0]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in block.splitlines()[2:]]


@functools.cache
def working():
    """{exercise: (chapter, minutes)}: the share, by points, of the working time that a chapter's exercises state."""
    found = {}
    for stem in course.stems(ROOT):
        solutions = course.load(ROOT, stem)
        minutes = int(re.search(r"\*\*Working time\*\* (\d+) min", tools.source(solutions.head[0])).group(1))
        total = sum(exercise.rules["points"] for exercise in solutions.exercises)
        found |= {e.identifier: (stem, math.ceil(e.rules["points"] * minutes / total)) for e in solutions.exercises}
    return found


def exercises(cell, chapters):
    """The names in a cell such as "1, 4 (25 min)" or "chapter 8: 1, 4; chapter 9: 1 (64 min)"."""
    found, share = [], working()
    for part in cell.split(" (")[0].split("; "):
        named = re.match(r"chapter (\d+): (.*)", part)
        number, numbers = (int(named.group(1)), named.group(2)) if named else (int(chapters[0][:2]), part)
        [prefix] = {name.rsplit("-", 1)[0] for name, (stem, _) in share.items() if int(stem[:2]) == number}
        found += [f"{prefix}-{one}" for one in numbers.split(", ")]
    return found


WEEKS = table(GUIDE.split("## A term of weekly sessions")[1], "Week")


@pytest.mark.parametrize("row", WEEKS, ids=lambda row: f"week-{row[0]}")
def test_the_minutes_of_a_week(row):
    chapters = re.findall(r"notebooks/(\w+)\.ipynb\) \((\d+) min\)", row[1])
    names, share = exercises(row[2], [stem for stem, _ in chapters]), working()
    assert chapters and len(set(names)) == len(names) >= 2
    assert {share[name][0] for name in names} <= {stem for stem, _ in chapters}, "exercises of a chapter that is not read"
    work = sum(share[name][1] for name in names)
    assert f"({work} min)" in row[2]
    assert int(row[3]) == work + sum(int(minutes) for _, minutes in chapters) <= MOST


# --- the project ---------------------------------------------------------------------------------


def test_the_beginning_runs_and_learns():
    """Without a seed: any run of it is far above one right picture in ten, and its noise is that of the budget."""
    import dplib

    code = re.search(r"```python\n(.*?)```", PROJECT, re.DOTALL).group(1)
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "book/project.md", "exec"), names)
    assert names["right"].mean() > 0.6 and printed.getvalue().startswith("noise multiplier ")
    account = dplib.PoissonDPSGD(names["plan"].noise_multiplier, names["rate"], names["rounds"])
    spent = account.epsilon(names["delta"], method="lattice")
    assert spent.lower <= names["epsilon"] * (1 + 1e-6) and spent.upper > 0.99 * names["epsilon"]
    assert names["config"].adjacency == "add-remove" and names["config"].divisor == 140
