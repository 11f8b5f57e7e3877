"""A made-up chapter with two exercises, small enough to be broken on purpose."""

import copy
import shutil

import nbformat
import notebook_tools as tools
from bootstrap_cell import bootstrap_source
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

STEM = "01_coins"
PAGE = "# Exercises\n\n<!-- list: begin -->\n\n<!-- list: end -->\n\nThe end.\n"
CHAPTER = "# 1. Coins\n\n## Exercises\n\n1. *By hand.* Heads.\n2. *Code.* An area.\n3. *Open.* A number.\n\n## Further reading\n\n4. No exercise."
VALUE = "### BEGIN SOLUTION\nanswer_1 = 1 / 8\n### END SOLUTION"
FUNCTION = '''\
def answer_2(width, height):
    """Area of a triangle."""
    ### BEGIN SOLUTION
    return width * height / 2
    ### END SOLUTION'''

RULES_1 = {"exercise": "hockey-1", "kind": "by hand", "points": 1, "digits": 6}
RULES_2 = {"exercise": "hockey-2", "kind": "code", "points": 2, "digits": 4, "arguments": [[1.0, 2.0], [0.5, 3.0]]}


def cells():
    """The cells of the solutions notebook, by name."""
    return {
        "title": new_markdown_cell("# Exercises to chapter 1: Coins\n\nTwo of them.\n\n**Working time** 9 min · **Chapter** [1. Coins](../01_coins.ipynb)", id="title"),
        "bootstrap": new_code_cell(bootstrap_source(), id="bootstrap", metadata={"tags": ["hide-input"]}),
        "imports": new_code_cell("from dplib.lessons import course", id="imports"),
        "statement-1": new_markdown_cell(
            "## 1. Heads\n\n*By hand.* Three heads in a row, to six digits?", id="statement-1", metadata={"course": dict(RULES_1)}
        ),
        "solution-1": new_code_cell(VALUE, id="solution-1", metadata={"tags": ["solution"]}),
        "check-1": new_code_cell('course.check("hockey-1", answer_1)', id="check-1", metadata={"tags": ["check"]}),
        "text-1": new_markdown_cell("A secret derivation.", id="text-1", metadata={"tags": ["solution"]}),
        "mistake-1": new_code_cell(
            "wrong_1 = 1 / 6",
            id="mistake-1",
            metadata={"tags": ["mistake"], "course": {"mistake": "Powers, not multiples, of the chance."}},
        ),
        "statement-2": new_markdown_cell(
            "## 2. Area\n\n*Code.* A triangle, to four digits.", id="statement-2", metadata={"course": copy.deepcopy(RULES_2)}
        ),
        "solution-2": new_code_cell(FUNCTION, id="solution-2", metadata={"tags": ["solution"]}),
        "check-2": new_code_cell('course.check("hockey-2", answer_2)', id="check-2", metadata={"tags": ["check"]}),
        "text-2": new_markdown_cell("Half of it.", id="text-2", metadata={"tags": ["solution"]}),
        "hidden-2": new_code_cell(
            "assert abs(answer_2(7.0, 3.0) - 10.5) < 1e-12", id="hidden-2", metadata={"tags": ["hidden-test"]}
        ),
        "mistake-2": new_code_cell(
            "def wrong_2(width, height):\n    return width * height",
            id="mistake-2",
            metadata={"tags": ["mistake"], "course": {"mistake": "This is the whole rectangle."}},
        ),
    }


def write(root, made=None):
    """Write the chapter and its solutions; return the path of the solutions."""
    folder = root / "notebooks" / "solutions"
    for needed in (folder, root / "book"):
        needed.mkdir(parents=True, exist_ok=True)
    shutil.copy2(tools.ROOT / "_config.yml", root)
    (root / "book" / "exercises.md").write_text(PAGE)
    chapter = new_notebook(cells=[new_markdown_cell(CHAPTER, id="chapter")], metadata={"kernelspec": tools.KERNEL})
    nbformat.write(chapter, root / "notebooks" / f"{STEM}.ipynb")
    solutions = new_notebook(cells=list((made or cells()).values()), metadata={"kernelspec": tools.KERNEL})
    tools.write(solutions, folder / f"{STEM}.ipynb")
    return folder / f"{STEM}.ipynb"
