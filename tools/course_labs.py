"""Labs of 90 minutes: the student's version of each, made from notebooks/solutions/lab_NAME.ipynb.

A lab is a notebook of steps. Each begins with a Markdown cell `## Step 1. Name` and the line `**Minutes** 15`; what
students write stands between `### BEGIN SOLUTION` and `### END SOLUTION` inside functions, in cells with the tag
`solution`; a cell with the tag `check` compares them with `dplib` and prints `lab-NAME-1: correct.`; Markdown with
the tag `solution` says why. Nothing is typed in: a check computes what is right when it runs.
"""

import re
from pathlib import Path

import course_notebooks as course
import notebook_tools as tools

MINUTES = 90
HOW_TO = (
    "*Replace each line that says `your code here`, then run the check below it. A check that fails says which of its comparisons "
    "did. Later steps use the functions of earlier ones.*"
)
STEP = re.compile(r"## Step (\d+)\. (.+)\n\n\*\*Minutes\*\* (\d+)\n")


def paths(root=tools.ROOT):
    """The notebooks with solved labs, sorted."""
    return sorted(Path(root, "notebooks", "solutions").glob("lab_*.ipynb"))


def handed_out(path):
    """Where the student's version of a lab lies."""
    return path.parent.parent / "exercises" / path.name


def name(path):
    """lab-correlated-noise for lab_correlated_noise.ipynb."""
    return path.stem.replace("_", "-")


def steps(notebook):
    """[(number, title, minutes, cells)] of a lab, in order; the cells before the first step are left out."""
    found = []
    for cell in notebook["cells"]:
        heading = STEP.match(tools.source(cell) + "\n") if cell["cell_type"] == "markdown" else None
        if heading:
            found.append((int(heading.group(1)), heading.group(2), int(heading.group(3)), [cell]))
        elif found:
            found[-1][3].append(cell)
    return found


def problems(path):
    """The rules that a lab breaks, one sentence each; nothing is run."""
    notebook = tools.read(path)
    head, parts = tools.source(notebook["cells"][0]), steps(notebook)
    found = []
    if f"**Lab time** {MINUTES} min" not in head or "**Run time** under 60 s" not in head or "**The question.**" not in head:
        found.append(f"its first cell must have **Lab time** {MINUTES} min, **Run time** under 60 s, and **The question.**")
    if [number for number, *_ in parts] != list(range(1, len(parts) + 1)) or not parts:
        found.append("its steps must count from 1")
    total = sum(minutes for _, _, minutes, _ in parts)
    if total != MINUTES:
        found.append(f"the minutes of its steps must add up to {MINUTES}; got {total}")
    for number, _, _, cells in parts:
        wanted = f'print("{name(path)}-{number}: correct.")'
        checks = [tools.source(cell) for cell in cells if "check" in tools.tags(cell)]
        if len(checks) != 1 or not checks[0].rstrip().endswith(wanted) or "assert " not in checks[0]:
            found.append(f"step {number} needs one check that asserts something and ends with {wanted}")
        for cell in cells:
            found += [f"step {number}: {problem}" for problem in _solution_problems(cell)]
    return found


def _solution_problems(cell):
    text = tools.source(cell)
    if cell["cell_type"] != "code" or "solution" not in tools.tags(cell):
        if course.BEGIN in text:
            yield "a solution in a cell without the tag solution"
        return
    regions = list(course.REGION.finditer(text))
    if not regions or len(regions) != text.count(course.BEGIN) or text.count(course.END) != len(regions):
        yield f"its solution is not enclosed by {course.BEGIN} and {course.END}"
    elif any(not match.group(1) for match in regions):
        yield "a solution outside a function"


def student(path):
    """The notebook that is handed out: no solution, no reason, no output."""
    notebook = tools.read(path)
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown" and "solution" in tools.tags(cell):
            continue
        text = tools.source(cell)
        if not cells:
            text = text.rstrip() + "\n\n" + HOW_TO
        if cell["cell_type"] == "code":
            text = course.REGION.sub(r'\1raise NotImplementedError("your code here")', text)
        cells.append(course.bare(cell, text))
    return tools.made(cells)


def disagreement(path):
    """Why the student's version is not what the solved lab makes now, or None."""
    there = handed_out(path)
    if not there.is_file():
        return "not made yet"
    return None if tools.read(there) == student(path) else "the solved lab changed"


def update(root, check):
    """Write the student's versions that are not current; yield (file, problem).

    check : write nothing, a version that is not current is a problem.
    """
    for path in paths(root):
        broken = "; ".join(problems(path))
        reason = None if broken else disagreement(path)
        if broken or (reason and check):
            yield path.name, broken or reason
        elif reason:
            tools.write(student(path), handed_out(path))
