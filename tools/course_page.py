"""The list of all exercises on the page book/exercises.md, made from the solutions notebooks."""

import re
from pathlib import Path

import notebook_tools as tools
from bootstrap_cell import repository
from set_repository import COLAB

BEGIN, END = "<!-- list: begin -->", "<!-- list: end -->"


def page(root):
    return Path(root) / "book" / "exercises.md"


def listing(all_solutions, root):
    """The Markdown between the two marks: for each chapter a line of links and a table."""
    url, branch = repository(root)
    parts = []
    for solutions in all_solutions:
        stem, head = solutions.path.stem, tools.source(solutions.head[0])
        title = re.search(rf"\[([^\]]+)\]\(\.\./{stem}\.ipynb\)", head).group(1)
        minutes = re.search(r"\*\*Working time\*\* (\d+) min", head).group(1)
        where = f"blob/{branch}/notebooks/exercises/{stem}.ipynb"
        points = sum(exercise.rules["points"] for exercise in solutions.exercises)
        rows = [
            f"| `{exercise.identifier}` | {exercise.title} | {exercise.rules['kind']} | {exercise.rules['points']} |"
            for exercise in solutions.exercises
        ]
        parts += [
            f"### {title}",
            "",
            f"[In the page](../notebooks/exercises/{stem}.ipynb) · [open in Colab]({COLAB}{url.removeprefix('https://github.com/')}/{where}) · "
            f"[on GitHub]({url}/{where}) · {{download}}`download <../notebooks/exercises/{stem}.ipynb>` · "
            f"[the chapter](../notebooks/{stem}.ipynb) · {points} points · about {minutes} min",
            "",
            "| Name | Exercise | Kind | Points |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    return "\n".join(parts)


def listed(all_solutions, root):
    """The text of the page with the list that the solutions make."""
    before, rest = page(root).read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{listing(all_solutions, root).strip()}\n\n{END}{rest.partition(END)[2]}"
