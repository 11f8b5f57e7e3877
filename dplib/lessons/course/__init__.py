"""Check answers to the exercises of the book: each is correct, or earns a hint.

>>> from dplib.lessons import course
>>> course.check("hockey-1", None)
hockey-1: not yet. There is no answer yet (None).

The right answers, and the usual wrong ones with their hints, come with the package as plain data: whoever looks
for them finds them, as in the solutions notebooks. No network is needed.
"""

from __future__ import annotations

import difflib
import json
from functools import lru_cache
from importlib import resources

from .verdicts import verdict


def check(identifier: str, answer: object) -> None:
    """Print whether an answer is correct; if it is not, print a hint.

    Parameters
    ----------
    identifier : the name of the exercise, such as "group-2".
    answer : what the statement asks for: a number, True or False, a text, an exact fraction, a sequence
        of those, or a function.

    Raises TypeError or ValueError for an identifier that no exercise has; the message names similar ones.

    Notes
    -----
    A number is accepted within one unit of the last digit that the statement asks for, or within the tolerance that
    it gives for estimates; whole numbers and fractions only exactly, texts without regard to case. Fewer digits of
    the right answer, at least two, are called close. The hint depends on the wrong answer.
    """
    right, hint = verdict(_exercise(identifier), identifier, answer)
    print(f"{identifier}: correct." if right else f"{identifier}: not yet. {hint}")


def passes(identifier: str, answer: object) -> bool:
    """Whether an answer is correct: what graded notebooks assert. Arguments and errors as for `check`."""
    return verdict(_exercise(identifier), identifier, answer)[0]


def identifiers() -> tuple[str, ...]:
    """The names of all exercises that can be checked, in the order of the chapters."""
    return tuple(_exercises())


@lru_cache(maxsize=1)
def _exercises():
    """{identifier: record} from the package's data."""
    found = {}
    folder = resources.files(__package__) / "answers"
    for file in sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name):
        found |= json.loads(file.read_text(encoding="utf-8"))["exercises"]
    return found


def _exercise(identifier):
    if not isinstance(identifier, str):
        raise TypeError(f'identifier must be the name of an exercise such as "group-2"; got {identifier!r}')
    known = _exercises()
    if identifier not in known:
        near = difflib.get_close_matches(identifier.casefold(), known, n=4, cutoff=0.5)
        allowed = f"similar ones are {', '.join(near)}" if near else "see dplib.lessons.course.identifiers()"
        raise ValueError(f"identifier must be the name of an exercise; got {identifier!r}; {allowed}")
    return known[identifier]
