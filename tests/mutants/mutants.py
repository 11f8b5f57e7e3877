"""Dangerous mutants: single changes that make an upper bound too small, or swap what must not be swapped.

The list is dangerous_mutants.json: {module: [[name, function, changes, tests], …]}. Each names its place in the syntax tree, so that
moving or formatting code leaves it as it is: the function, the kind of node in it and which of them, and what stands there instead,
where _ is what stood there and _.left and the like its parts. And each names the tests that have to notice it.
`python -m tools mutation dangerous` plants them one after the other; `tests/statements/test_mutation.py` checks that each still applies.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from mutation_operators import replaced

# Tests of the library are named by file alone: {name: file from the root}.
_TESTS = Path(__file__).resolve().parents[1]
FILES = {path.name: f"tests/{path.parent.name}/{path.name}" for path in _TESTS.glob("*/test_*.py") if path.parent.name != "book"}


@dataclass(frozen=True)
class Mutant:
    name: str
    module: str  # as in mutation.file_of
    function: str  # by its dotted name in the module; "" for the module itself
    changes: dict  # {place in it: what stands there instead}, as in mutation_operators
    tests: list


def apply(mutant, source):
    """The module's source with the fault in it."""
    try:
        return replaced(source, mutant.function, mutant.changes)
    except LookupError as error:
        raise LookupError(f"{mutant.name!r}: {error}") from None


TABLE = Path(__file__).with_name("dangerous_mutants.json")
DANGEROUS = [
    Mutant(name, module, function, changes, tests)
    for module, rows in json.loads(TABLE.read_text(encoding="utf-8")).items()
    for name, function, changes, tests in rows
]
