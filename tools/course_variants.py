"""Exercises with other numbers for every student, the keys apart from what is handed out; and marks.

A notebook ends with a cell that prints one line, `ANSWERS {…}`. Marking reads that line of a submitted notebook and runs
nothing of it. Keys go to a folder outside the repository, so that they are never published with it.
"""

import hashlib
import json
import random
import re

import notebook_tools as tools
from bootstrap_cell import bootstrap_source
from course_notebooks import CourseError
from nbformat.v4 import new_code_cell, new_markdown_cell
from variant_exercises import EXERCISES

from dplib.lessons.course import compare

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # of a student: it becomes a file's name
IMPORTS = """\
import math

import numpy as np
from scipy import optimize, stats

import dplib
from dplib import LastIterate, PoissonDPSGD, accounting, calibrate, gaussian, matrices, mixtures, sensitivity, utility"""
HEAD = """\
# Coursework for {student}

Everybody has the same exercises with other numbers. Replace each `None`, run all cells, save, and hand in this notebook
with its outputs: the last cell prints what is marked. An answer may be rounded to the digits that are asked for."""
LAST = """\
# Run this cell last: it prints what is marked.
import json

print("ANSWERS", json.dumps({{{names}}}))"""
SHEET = re.compile(r"^ANSWERS (\{.*\})$", re.MULTILINE)


def known(names=()):
    """The exercises of these names, all without any. Raises CourseError for a name that none has."""
    available = {exercise.name: exercise for exercise in EXERCISES}
    for name in names:
        if name not in available:
            raise CourseError(f"no variant of {name}; there are {', '.join(available)}")
    return [available[name] for name in names or available]


def drawn(exercise, student, seed):
    """The numbers of one student: the same for the same seed, and not those of the book."""
    digest = hashlib.sha256(json.dumps([seed, student, exercise.name]).encode()).digest()
    generator = random.Random(int.from_bytes(digest, "big"))
    while True:
        numbers = {name: generator.choice(choices) for name, choices in exercise.choices.items()}
        if numbers != exercise.original:
            return numbers


def in_words(value):
    """A number as a statement shows it, for use inside and outside of formulas."""
    if isinstance(value, int):
        return f"{value:,}".replace(",", "{,}") if value >= 10_000 else str(value)
    mantissa, _, power = f"{value:g}".partition("e")
    if not power:
        return mantissa
    return f"10^{{{int(power)}}}" if mantissa == "1" else rf"{mantissa}\cdot10^{{{int(power)}}}"


def statement(exercise, numbers):
    """The statement with these numbers. Raises CourseError where a number has no place or a place no number."""
    places = set(re.findall(r"<<(\w+)>>", exercise.statement))
    if places != set(numbers):
        raise CourseError(f"{exercise.name}: the statement has the places {sorted(places)}, the numbers are {sorted(numbers)}")
    # In the code of a call a number stands as Python writes it.
    code = lambda match: re.sub(r"<<(\w+)>>", lambda place: str(numbers[place.group(1)]), match.group())
    text = re.sub(r"`[^`]*`", code, exercise.statement.strip())
    return re.sub(r"<<(\w+)>>", lambda place: in_words(numbers[place.group(1)]), text)


def record(exercise, numbers):
    """The key of one exercise: {"numbers", "right", "digits"}; computed here and now."""
    right = [float(f"{float(value):.12g}") for value in exercise.key(**numbers)]
    return {"numbers": numbers, "right": right, "digits": exercise.digits}


def notebook(exercises, all_numbers, student):
    """What a student gets. Nothing of the key is in it."""
    cells = [
        new_markdown_cell(HEAD.format(student=student), id="head"),
        new_code_cell(bootstrap_source(), id="bootstrap", metadata={"tags": ["hide-input"]}),
        new_code_cell(IMPORTS, id="imports"),
    ]
    lines = []
    for place, (exercise, numbers) in enumerate(zip(exercises, all_numbers, strict=True), start=1):
        text = f"## {place}. {exercise.title}\n\n{statement(exercise, numbers)}"
        cells.append(new_markdown_cell(text, id=f"{exercise.name}-statement"))
        cells.append(new_code_cell(f"answer_{place} = None  # your code here", id=exercise.name))
        lines.append(f'"{exercise.name}": None if answer_{place} is None else np.ravel(answer_{place}).tolist()')
    cells.append(new_code_cell(LAST.format(names="\n    " + ",\n    ".join(lines) + ",\n"), id="last"))
    return tools.made(cells)


def make(students, seed, output, keys, names=(), root=tools.ROOT):
    """Write output/STUDENT.ipynb and keys/STUDENT.json for every student; return how many.

    Raises CourseError for a student's name that cannot be a file's, for one that stands twice, for an unknown exercise,
    and where the keys would lie in the repository or among what is handed out.
    """
    wrong = [student for student in students if not NAME.fullmatch(student)]
    if wrong or len(set(students)) != len(students) or not students:
        raise CourseError(f"students must be different names of letters, digits, '.', '_' and '-'; got {wrong or students}")
    output, keys, root = (folder.resolve() for folder in (output, keys, root))
    for place, what in ((root, "the repository"), (output, "what is handed out")):
        if keys == place or place in keys.parents:
            raise CourseError(f"keys must lie outside {what}: {keys} is in {place}")
    exercises = known(names)
    for folder in (output, keys):
        folder.mkdir(parents=True, exist_ok=True)
    for student in students:
        numbers = [drawn(exercise, student, seed) for exercise in exercises]
        key = {exercise.name: record(exercise, given) for exercise, given in zip(exercises, numbers, strict=True)}
        tools.write(notebook(exercises, numbers, student), output / f"{student}.ipynb")
        text = json.dumps({"student": student, "seed": seed, "exercises": key}, indent=1)
        (keys / f"{student}.json").write_text(text + "\n", encoding="utf-8")
    return len(students)


def answers(path):
    """{exercise: list of numbers, or None} that a submitted notebook printed. Raises CourseError if it printed none."""
    outputs = [output for cell in tools.code_cells(tools.read(path)) for output in cell.get("outputs", [])]
    found = SHEET.findall("\n".join(map(tools.output_text, outputs)))
    if not found:
        raise CourseError(f"{path.name}: no line ANSWERS in the outputs; run all cells and save")
    try:
        return json.loads(found[-1])
    except ValueError as error:
        raise CourseError(f"{path.name}: the line ANSWERS cannot be read ({error})") from None


def is_right(key, given):
    """Whether an answer agrees with a key to the digits that were asked for."""
    if given is None:
        return False
    try:
        parts = compare.fitting(key["right"], compare.plain(given))
    except compare.WrongKind:
        return False
    return compare.agree({"digits": key["digits"]}, key["right"], parts)


def marks(submitted, keys):
    """{student: {exercise: True or False}} of every key; a student without a notebook has no right answer.

    Raises CourseError where there is no key, or a notebook without a line of answers.
    """
    found = {}
    for file in sorted(keys.glob("*.json")):
        key, path = json.loads(file.read_text(encoding="utf-8")), submitted / f"{file.stem}.ipynb"
        given = answers(path) if path.is_file() else {}
        found[key["student"]] = {name: is_right(part, given.get(name)) for name, part in key["exercises"].items()}
    if not found:
        raise CourseError(f"no keys in {keys}")
    return found
