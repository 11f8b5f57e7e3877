"""Solutions notebooks: reading them, refusing what breaks the rules, and the student's version.

`notebooks/solutions/NN_name.ipynb` is written by hand, `notebooks/exercises/NN_name.ipynb` is made from it.
CONTRIBUTING.md says how a solutions notebook is built.
"""

import ast
import hashlib
import json
import re
from dataclasses import dataclass, field

import notebook_tools as tools

KINDS = ("by hand", "code", "break it", "open")
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
REGION = re.compile(rf"^([ \t]*){BEGIN}\n(.*?)^[ \t]*{END}[ \t]*$", re.DOTALL | re.MULTILINE)
ROLES = ("solution", "check", "mistake", "hidden-test")
RULES = {"exercise", "kind", "points", "digits", "tolerance", "arguments", "property"}
DIGITS = {3: "three", 4: "four", 5: "five", 6: "six"}
HOW_TO = (
    "*Replace each line that says `your code here`, then run the check below it: it says that the answer is correct, "
    "or gives a hint that depends on the answer.*"
)


class CourseError(Exception):
    """A solutions notebook breaks a rule; the message says which and where."""


@dataclass
class Exercise:
    """One exercise: its rules and its cells."""

    rules: dict
    statement: dict
    solution: dict = None
    check: dict = None
    explanation: list = field(default_factory=list)
    mistakes: list = field(default_factory=list)
    hidden_tests: list = field(default_factory=list)

    @property
    def identifier(self):
        return self.rules["exercise"]

    @property
    def number(self):
        return int(self.identifier.rsplit("-", 1)[1])

    @property
    def answer(self):
        return f"answer_{self.number}"

    @property
    def title(self):
        return re.match(r"## \d+\. (.+)", tools.source(self.statement)).group(1)


@dataclass
class Solutions:
    """A solutions notebook: the cells before the first exercise, and the exercises."""

    path: object
    notebook: dict
    head: list
    exercises: list


def read(path):
    """A solutions notebook taken apart. Raises CourseError where a cell has no place."""
    notebook = tools.read(path)
    head, exercises = [], []
    for number, cell in enumerate(notebook["cells"], start=1):
        where = f"{path.name}, cell {number}"
        rules = cell["metadata"].get("course", {})
        if "exercise" in rules:
            exercises.append(Exercise(dict(rules), cell))
            continue
        if not exercises:
            head.append(cell)
            continue
        roles = [tag for tag in tools.tags(cell) if tag in ROLES]
        if len(roles) != 1:
            raise CourseError(f"{where}: the cell needs exactly one of the tags {', '.join(ROLES)}")
        _place(exercises[-1], roles[0], cell, where)
    return Solutions(path, notebook, head, exercises)


def _place(exercise, role, cell, where):
    """Put a cell where it belongs, in the order statement, solution, check, explanation, hidden tests, mistakes."""
    if cell["cell_type"] == "markdown":
        if role != "solution":
            raise CourseError(f"{where}: a Markdown cell cannot be a {role}")
        exercise.explanation.append(cell)
    elif role in ("mistake", "hidden-test"):
        getattr(exercise, role.replace("-", "_") + "s").append(cell)
    elif getattr(exercise, role) is not None:
        raise CourseError(f"{where}: {exercise.identifier} has a second {role} cell")
    else:
        setattr(exercise, role, cell)


def listed_numbers(chapter):
    """The numbers of the list under a chapter's heading "Exercises"."""
    numbers = []
    for cell in tools.markdown_cells(chapter):
        text = tools.source(cell)
        if "## Exercises" in text:
            section = re.split(r"^## ", text.split("## Exercises", 1)[1], flags=re.MULTILINE)[0]
            numbers += [int(number) for number in re.findall(r"^(\d+)\. ", section, re.MULTILINE)]
    return numbers


def problems(solutions, chapter):
    """The rules that a solutions notebook breaks, one sentence each; nothing is run."""
    if not solutions.exercises:
        return ["no exercise"]
    prefix = solutions.exercises[0].identifier.rpartition("-")[0]  # a chapter's exercises are named alike
    listed = listed_numbers(chapter)
    found, seen = [], set()
    for exercise in solutions.exercises:
        name = exercise.identifier
        if re.fullmatch(rf"{prefix}-[1-9]\d*", name) is None:
            found.append(f"{name}: the identifier must be {prefix}-NUMBER")
            continue
        if name in seen:
            found.append(f"{name}: stands twice")
        seen.add(name)
        if exercise.number not in listed:
            found.append(f"{name}: the chapter's list of exercises has no number {exercise.number}")
        found += [f"{name}: {problem}" for problem in _exercise_problems(exercise)]
    return found


def _exercise_problems(exercise):
    rules, statement, number = exercise.rules, tools.source(exercise.statement), exercise.number
    unknown = sorted(set(rules) - RULES)
    if unknown:
        yield f"unknown entries in its metadata: {', '.join(unknown)}"
    if rules.get("kind") not in KINDS:
        yield f"kind must be one of {', '.join(KINDS)}; got {rules.get('kind')!r}"
    elif f"*{rules['kind'].capitalize()}.*" not in statement:
        yield f"its statement does not say *{rules['kind'].capitalize()}.*"
    points = rules.get("points")
    if not isinstance(points, int) or isinstance(points, bool) or points < 1:
        yield f"points must be a whole number from 1; got {points!r}"
    if re.match(rf"## {number}\. \S", statement) is None:
        yield f"its statement does not begin with ## {number}. and a name"
    if not exercise.explanation:
        yield "no explanation (a Markdown cell with the tag solution)"
    if exercise.check is None or tools.source(exercise.check).strip() != f'course.check("{exercise.identifier}", {exercise.answer})':
        yield f'no check cell course.check("{exercise.identifier}", {exercise.answer})'
    if exercise.solution is None:
        yield "no solution cell"
    else:
        yield from _solution_problems(exercise)
    for cell in exercise.mistakes:
        hint = cell["metadata"].get("course", {}).get("mistake", "")
        if not isinstance(hint, str) or len(hint.split()) < 4:
            yield "a mistake without a hint (metadata course.mistake)"
        names = _assigned(tools.source(cell))
        if f"wrong_{number}" not in names or exercise.answer in names:
            yield f"a mistake must define wrong_{number} and leave {exercise.answer} alone"
    if "arguments" in rules and not exercise.hidden_tests:
        yield "a function needs hidden tests on other arguments"
    if "property" in rules and (rules.keys() & {"arguments", "digits", "tolerance"} or exercise.mistakes):
        yield "an exercise checked by a property has no arguments, no digits, no tolerance and no mistakes"
    yield from _accuracy_problems(rules, statement)


def _accuracy_problems(rules, statement):
    """The metadata say how exact an answer must be; the statement has to say the same."""
    digits, tolerance = rules.get("digits"), rules.get("tolerance")
    if digits is not None and tolerance is not None:
        yield "digits or a tolerance, not both"
    if digits is not None and digits not in DIGITS:
        yield f"digits must be one of {', '.join(map(str, DIGITS))}; got {digits!r}"
    said = set(re.findall(rf"\b({'|'.join(DIGITS.values())}) digits", statement, re.IGNORECASE))
    if {word.lower() for word in said} != ({DIGITS.get(digits)} if digits is not None else set()):
        yield f"its statement says {' and '.join(sorted(said)) or 'no'} digits, its metadata {digits!r}"
    if tolerance is not None and not (isinstance(tolerance, float) and 0 < tolerance <= 0.3):
        yield f"tolerance must be above 0 and at most 0.3; got {tolerance!r}"
    if tolerance is not None and "Accepted within" not in statement:
        yield "its statement does not say within which tolerance it is accepted (Accepted within …)"


def _solution_problems(exercise):
    source = tools.source(exercise.solution)
    if source.count(BEGIN) != source.count(END) or not REGION.search(source):
        yield f"its solution is not enclosed by {BEGIN} and {END}"
        return
    try:
        names = _assigned(stub_source(exercise))
    except SyntaxError as error:
        yield f"its stub is no valid Python: {error}"
        return
    if exercise.answer not in names:
        yield f"its solution does not define {exercise.answer}"
    indents = [match.group(1) for match in REGION.finditer(source)]
    if exercise.answer in _assigned(REGION.sub(r"\1pass", source)) and "" in indents:
        yield f"{exercise.answer} is defined outside the solution's lines, which the student's version would overwrite"


def _assigned(source):
    """Names that the top level of a piece of code defines."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                names.add(part.id)
    return names


def stub_source(exercise):
    """The student's version of a solution cell: the lines between the markers become one line to replace."""

    def stub(match):
        indent = match.group(1)
        return f'{indent}raise NotImplementedError("your code here")' if indent else f"{exercise.answer} = None  # your code here"

    return REGION.sub(stub, tools.source(exercise.solution))


def student_notebook(solutions):
    """The notebook for readers: statements, stubs and checks; no solution, no output. What comes back can be handed to nbgrader."""
    cells = [marked(cell, f"head-{number}") for number, cell in enumerate(solutions.head, start=1)]
    cells[0]["source"] = tools.source(cells[0]).rstrip() + "\n\n" + HOW_TO
    for exercise in solutions.exercises:
        name = exercise.identifier
        cells.append(marked(exercise.statement, f"{name}-statement"))
        cells.append(marked(exercise.solution, name, stub_source(exercise), solution=True))
        cells.append(marked(exercise.check, f"{name}-check", points=exercise.rules["points"]))
    return tools.made(cells)


def marked(cell, name, source=None, *, solution=False, points=None):
    """A cell without outputs, with the marks by which nbgrader knows it; cells that students do not edit are restored before grading."""
    about = {"grade": points is not None, "solution": solution, "locked": not solution, "task": False}
    about |= {"schema_version": 3, "grade_id": name} | ({} if points is None else {"points": points})
    return bare(cell, tools.source(cell) if source is None else source, nbgrader=about)


def bare(cell, source, **metadata):
    """A copy of a cell with this source, without outputs and without the tags that say what it is for."""
    tags = [tag for tag in tools.tags(cell) if tag not in ROLES]
    metadata |= {"tags": tags} if tags else {}
    copied = {"cell_type": cell["cell_type"], "id": cell["id"], "metadata": metadata, "source": source}
    return copied | ({"outputs": [], "execution_count": None} if cell["cell_type"] == "code" else {})


def fingerprint(solutions):
    """Hash of what the answers depend on: code and rules, the set-up cell apart."""
    parts = [
        [tools.source(cell) if cell["cell_type"] == "code" else "", cell["metadata"].get("course")]
        for cell in solutions.notebook["cells"]
        if not tools.is_bootstrap(cell)
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
