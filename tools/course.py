"""Coursework made from the solutions notebooks.

    python -m tools course exercises [--force] [NAME …]   write notebooks/exercises/ and dplib/lessons/course/answers/, and
                                                            (all chapters) the labs and the list in book/exercises.md
    python -m tools course exercises --check              write nothing; exit 1 where they disagree
    python -m tools course assignments [NAME …]           assignments for nbgrader, in course/ (.venv-course)
    python -m tools course variants --students FILE --seed TEXT --keys FOLDER [--output FOLDER] [EXERCISE …]
                                                            exercises with other numbers for every student
    python -m tools course mark --keys FOLDER --submitted FOLDER    marks for what came back, as a table

NAME is the stem of a chapter, such as 05_group_privacy; without one, all solutions are taken. Only those that
changed are run, two at a time.
"""

import argparse
import json
import multiprocessing
import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import course_labs
import course_notebooks as course
import notebook_tools as tools
import one_move
from bootstrap_cell import repository
from set_repository import COLAB

BEGIN, END = "<!-- list: begin -->", "<!-- list: end -->"


def files(root, stem):
    """(solutions, exercises, answers) of a chapter."""
    folder = Path(root)
    return (
        folder / "notebooks" / "solutions" / f"{stem}.ipynb",
        folder / "notebooks" / "exercises" / f"{stem}.ipynb",
        folder / "dplib" / "lessons" / "course" / "answers" / f"{stem}.json",
    )


def stems(root):
    return sorted(path.stem for path in Path(root, "notebooks", "solutions").glob("[0-9]*.ipynb"))


def load(root, stem):
    """The solutions of a chapter; CourseError with all that they break."""
    path = files(root, stem)[0]
    chapter = Path(root, "notebooks", path.name)
    if not chapter.is_file() or not path.is_file():
        raise course.CourseError(f"{stem}: there is no chapter of this name with solutions")
    solutions = course.read(path)
    found = course.problems(solutions, tools.read(chapter))
    if found:
        raise course.CourseError(f"{path.name}:\n  " + "\n  ".join(found))
    return solutions


def disagreement(root, stem):
    """Why the files made from a solutions notebook are not what it would make now, or None. Nothing is run."""
    solutions, (_, exercises, answers) = load(root, stem), files(root, stem)
    if not exercises.is_file() or not answers.is_file():
        return "not made yet"
    stored = json.loads(answers.read_text(encoding="utf-8"))
    if stored["source"] != course.fingerprint(solutions):
        return "the solutions changed"
    if list(stored["exercises"]) != [exercise.identifier for exercise in solutions.exercises]:
        return "the answers belong to other exercises"
    if tools.read(exercises) != course.student_notebook(solutions):
        return "the exercises are not what the solutions make"
    return None


def make(root, stem):
    """Write the exercises and the answers of a chapter; CourseError if a rule is broken."""
    import course_answers

    solutions, (path, exercises, answers) = load(root, stem), files(root, stem)
    before = path.read_bytes()
    records = course_answers.records(solutions)
    student = course.student_notebook(solutions)
    found = course_answers.stub_problems(student, records, path)
    if found:
        raise course.CourseError("\n".join(found))
    if path.read_bytes() != before:
        raise course.CourseError(f"{path.name} changed while it ran; run again")
    for folder in (exercises.parent, answers.parent):
        folder.mkdir(parents=True, exist_ok=True)
    tools.write(student, exercises)
    lines = [f"{json.dumps(name)}: {json.dumps(record, ensure_ascii=False)}" for name, record in records.items()]
    text = f'{{"source": "{course.fingerprint(solutions)}", "exercises": {{\n' + ",\n".join(lines) + "\n}}\n"
    one_move.write_text(answers, text)
    return len(records)


def orphans(root):
    """Files that no solutions notebook makes."""
    known = [*stems(root), *(path.stem for path in course_labs.paths(root))]
    made = [*Path(root, "notebooks", "exercises").glob("*.ipynb"), *Path(root, "dplib", "lessons", "course", "answers").glob("*.json")]
    return sorted(path for path in made if path.stem not in known)


def stale(root, names, force):
    """({stem: why it is to be made anew}, {stem: which rule it breaks})."""
    chosen, broken = {}, {}
    for stem in names:
        try:
            reason = disagreement(root, stem) or ("forced" if force else None)
        except course.CourseError as error:
            broken[stem] = str(error)
            continue
        if reason:
            chosen[stem] = reason
    return chosen, broken


def make_all(root, chosen):
    """Make these chapters, two at a time, each in a process of its own; {stem: what went wrong}."""
    os.environ.update(tools.kernel_environment())
    spawn, failed = multiprocessing.get_context("spawn"), {}
    with ProcessPoolExecutor(2, mp_context=spawn, max_tasks_per_child=1) as pool:
        jobs = {stem: pool.submit(make, root, stem) for stem in chosen}
        for stem, job in jobs.items():
            try:
                print(f"course: {stem}: {job.result()} exercises", flush=True)
            except course.CourseError as error:
                failed[stem] = str(error)
    return failed


def exercises(arguments):
    root, check, whole = arguments.root.resolve(), arguments.check, not arguments.names
    names = arguments.names or stems(root)
    chosen, failed = stale(root, names, arguments.force)
    for stem, reason in chosen.items():
        print(f"course: {stem}: {reason}")
    failed |= {path.name: "no solutions notebook makes this file" for path in orphans(root)}
    if whole:
        failed |= dict(course_labs.update(root, check))
    if not check:
        failed |= make_all(root, chosen)
    if whole and not failed and not (check and chosen):
        text = listed([load(root, stem) for stem in names], root)
        if not check:
            one_move.write_text(page(root), text)
        elif text != page(root).read_text(encoding="utf-8"):
            failed["exercises.md"] = "the list is not what the solutions make"
    for name, problem in failed.items():
        print(f"course: {name}: {problem}")
    if not failed and not check:
        print(f"course: {len(chosen)} notebooks made anew, {len(names) - len(chosen)} current")
    return 1 if failed or (check and chosen) else 0


def page(root):
    """The page with the list of all exercises."""
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


def assignments(arguments):
    import course_assignments

    root, folder = tools.ROOT, tools.ROOT / "course"
    count = course_assignments.make([load(root, stem) for stem in arguments.names or stems(root)], folder)
    print(f"course: {count} assignments for students in {folder / 'release'}; book/teaching.md says how to go on")


def variants(arguments):
    import course_variants

    try:
        students = arguments.students.read_text(encoding="utf-8").split()
    except OSError as error:
        raise course.CourseError(f"the file of students cannot be read: {error}") from None
    count = course_variants.make(students, arguments.seed, arguments.output, arguments.keys, arguments.exercises)
    print(f"course: {count} notebooks in {arguments.output}, their keys in {arguments.keys}")


def mark(arguments):
    import course_variants

    found = course_variants.marks(arguments.submitted, arguments.keys)
    names = list(dict.fromkeys(name for given in found.values() for name in given))
    print("student", *names, "right", sep=",")
    for student, given in found.items():
        print(student, *(int(given.get(name, False)) for name in names), sum(given.values()), sep=",")


def parsed(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("exercises", help="write notebooks/exercises/ and dplib/lessons/course/answers/")
    first.add_argument("--force", action="store_true", help="run also what did not change")
    first.add_argument("--check", action="store_true", help="write nothing; exit 1 where files disagree")
    first.add_argument("--root", type=Path, default=tools.ROOT)
    second = commands.add_parser("assignments", help="assignments for nbgrader, in course/")
    for command in (first, second):
        command.add_argument("names", nargs="*", help="stems of chapters; by default all")
    third = commands.add_parser("variants", help="exercises with other numbers for every student")
    third.add_argument("--students", type=Path, required=True, help="a file with the students' names, one a line")
    third.add_argument("--seed", required=True, help="any text; the same text draws the same numbers")
    third.add_argument("--output", type=Path, default=tools.ROOT / "course" / "variants", help="folder for the notebooks")
    third.add_argument("exercises", nargs="*", help="names such as group-1; by default all that can be set")
    fourth = commands.add_parser("mark", help="marks for submitted variants, as a table; nothing of them is run")
    fourth.add_argument("--submitted", type=Path, required=True, help="folder with STUDENT.ipynb")
    for command in (third, fourth):
        command.add_argument("--keys", type=Path, required=True, help="folder of the keys, outside the repository")
    return parser.parse_args(argv)


def main(argv=None):
    arguments = parsed(argv)
    run = {"exercises": exercises, "assignments": assignments, "variants": variants, "mark": mark}[arguments.command]
    try:
        return run(arguments) or 0
    except course.CourseError as error:
        print(f"course: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
