"""One rule on directions, said the same everywhere: "both" computes remove, which is the larger by [C-9m]."""

import re
from pathlib import Path

from library_files import module_name, short_names

from dplib._base import validate

ROOT = Path(__file__).resolve().parents[2]

def flat(text):
    return re.sub(r"\s+", " ", text)


def test_the_rule_is_what_the_library_does():
    """The rule stands in the conventions, and `side` follows it."""
    assert validate.side("both") == "remove"
    assert [validate.side(name) for name in ("remove", "add")] == ["remove", "add"]
    conventions = flat((ROOT / "book" / "notation.md").read_text(encoding="utf-8"))
    assert re.search(r'`direction="both"`, the default, computes \*remove\*', conventions)


def test_the_functions_that_evaluate_each_direction_are_named():
    """Outside `validate.side`, only these modules take "both" apart; the conventions name them. (Scales of both sides are no direction.)"""
    apart, shorter = set(), {home: short for short, home in short_names().items()}
    for path in sorted((ROOT / "dplib").rglob("*.py")):
        code = path.read_text(encoding="utf-8")
        if path.name != "validate.py" and re.search(r'(?<!scaling )== "both"|"both": \(', code):
            apart.add(shorter.get(module_name(path), module_name(path)))
    assert apart == {"dplib.audit", "dplib.renyi", "dplib.lessons.truth"}
    conventions = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in conventions for name in apart)
