"""One rule on directions, said the same everywhere: "both" computes remove, which is the larger by [C-9m]."""

import ast
import json
import re
from pathlib import Path

import pytest
from library_files import module_name, short_names

from dplib._base import validate

ROOT = Path(__file__).resolve().parents[2]

# Each pattern with a sentence that it must find: what older texts said, and what the rule contradicts.
CONTRADICTED = [
    (
        r"\bcomput(?:e|es|ed|ing) both(?: directions)?(?:,? and reports?| all the same|[.;])",
        "The library computes both and reports the larger, and so should you.",
    ),
    (
        r"\bboth are (?:always )?computed",
        "So both are computed and the larger is reported.",
    ),
    (
        r"\bfor the larger of both directions(?= *[|.;,])",
        "These are 2400 calibrations, each for the larger of both directions.",
    ),
    (
        r'direction="both"`?,? (?:the default (?:everywhere)?,? ?)?reports the larger',
        'So `direction="both"`, the default everywhere, reports the larger.',
    ),
    (
        r"\b(?:remove|add|direction)\b[^.]{0,160}\bnot proved in general",
        "The remove direction is the larger one in every row; this is an observation, certified here and not "
        "proved in general, so the library always has two answers.",
    ),
    (
        r"\bremove\b.{0,120}\bremains? (?:unproved|open)",
        "So the remove direction is the larger once $T$ is large. For every $T$ it remains unproved.",
    ),
    (
        r"\bopen\W{0,6}(?:that|whether) (?:the )?remove",
        "- *Open.* That the remove direction is the larger for every finite $T$.",
    ),
    (
        r"\bguarantee\. This is special to a single step",
        "So the remove value is the guarantee. This is special to a single step.",
    ),
    (
        r"\bevery tenth\b.{0,60}\bremove",
        "At every tenth point the remove direction uses up the whole $\\delta$ at this noise.",
    ),
]


def flat(text):
    return re.sub(r"\s+", " ", text)


def docstrings(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]


def prose():
    """(place, text) of every page, every Markdown cell and every docstring of the library."""
    for path in [*sorted((ROOT / "book").glob("*.md")), ROOT / "README.md"]:
        yield path.name, path.read_text(encoding="utf-8")
    folder = ROOT / "notebooks"
    for path in sorted([*folder.glob("*.ipynb"), *folder.glob("*/*.ipynb")]):
        for i, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            if cell["cell_type"] == "markdown":
                yield f"{path.relative_to(folder)}[{i}]", "".join(cell["source"])
    for path in sorted((ROOT / "dplib").rglob("*.py")):
        for text in docstrings(path):
            yield path.name, text


def contradictions(text):
    text = flat(text)
    return [
        match.group() for pattern, _ in CONTRADICTED for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


def test_no_sentence_contradicts_the_rule():
    found = {place: bad for place, text in prose() if (bad := contradictions(text))}
    assert not found


@pytest.mark.parametrize("pattern, sentence", CONTRADICTED)
def test_a_planted_sentence_is_found(pattern, sentence):
    assert re.search(pattern, flat(f"Before.\n{sentence}\nAfter."), re.IGNORECASE)


def test_every_place_is_read():
    places = {place for place, _ in prose()}
    for name in ("notation.md", "README.md", "08_large_batches.ipynb[3]", "contour.py"):
        assert name in places
    assert any(place.startswith("solutions/") for place in places)


def test_the_rule_is_what_the_library_does():
    """The rule stands in the conventions, and `side` follows it."""
    assert validate.side("both") == "remove"
    assert [validate.side(name) for name in ("remove", "add")] == ["remove", "add"]
    conventions = flat((ROOT / "book" / "notation.md").read_text(encoding="utf-8"))
    assert re.search(r'`direction="both"`, the default, computes \*remove\*', conventions)


def test_the_functions_that_evaluate_each_direction_are_named():
    """Outside `validate.side`, only these modules take "both" apart; the conventions name them."""
    apart, shorter = set(), {home: short for short, home in short_names().items()}
    for path in sorted((ROOT / "dplib").rglob("*.py")):
        code = path.read_text(encoding="utf-8")
        if path.name != "validate.py" and re.search(r'== "both"|"both": \(', code):
            apart.add(shorter.get(module_name(path), module_name(path)))
    assert apart == {"dplib.audit", "dplib.renyi", "dplib.lessons.truth"}
    conventions = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in conventions for name in apart)
