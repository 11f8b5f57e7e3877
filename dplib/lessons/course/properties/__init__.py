"""Exercises whose answer is an example: the check verifies its property instead of comparing.

One function an exercise, named like the exercise with "_" for "-". It takes the answer and returns None if
the answer has the property, or else a sentence that says what is missing. It looks at the answer's type
first, takes under 2 s, and compares with no stored solution.
"""

import importlib


def find(identifier):
    """The function that checks an exercise. Raises LookupError if there is none."""
    name = identifier.replace("-", "_")
    for number in (1, 2, 3):  # loaded with all that they need when the first answer is checked
        part = importlib.import_module(f"{__name__}.part_{number}")
        if hasattr(part, name):
            return getattr(part, name)
    raise LookupError(f"no function {name} for the exercise {identifier}")
