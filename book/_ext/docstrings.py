"""The directive `{docstrings}`: the docstrings of all public functions and classes of the library, as a reference.

Each gets a section with its signature, its text and its example, and an entry in the index, so that the search
finds it. The library's docstrings are plain text with `names` in backticks, tags of theorems in brackets, lists of the
form `name : meaning`, indented formulas and examples after >>>; they are set as that, not read as a markup language.
"""

import importlib
import inspect
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
from library_files import PACKAGE, public_modules  # noqa: E402

FIELD = re.compile(r"^((?:\w+(?: = \w+)?(?:, )?)+) : (.*)$", re.DOTALL)


def members(name):
    """{name: function or class} of a module: what it defines, or takes over from private modules."""
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None)
    found = {}
    for key in dict.fromkeys(
        [*(listed or ()), *vars(module)]
    ):  # the package loads what it lists at first use
        value = getattr(module, key)
        home = getattr(value, "__module__", None) or ""
        if not (inspect.isclass(value) or inspect.isfunction(value)) or not inspect.getdoc(value):
            continue
        if key in (listed or ()) or (
            listed is None and not key.startswith("_") and (home == module.__name__ or name == PACKAGE)
        ):
            found[key] = value
    return found


def methods(thing):
    """The public methods and properties that a class itself documents."""
    if not inspect.isclass(thing):
        return {}
    return {
        key: value
        for key, value in vars(thing).items()
        if not key.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, property))
        and value.__doc__
    }


def signature(thing):
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    bare = [parameter.replace(annotation=parameter.empty) for parameter in found.parameters.values()]
    bare = [parameter for parameter in bare if parameter.name != "self"]
    return str(found.replace(parameters=bare, return_annotation=found.empty))


def words(text):
    """Text with `names` as code."""
    pieces = enumerate(re.split(r"`([^`\n]+)`", " ".join(text.split())))
    return [(nodes.literal(piece, piece) if odd % 2 else nodes.Text(piece)) for odd, piece in pieces if piece]


def blocks(text):
    """Runs of lines without an empty one between them."""
    return [block for block in re.split(r"\n\s*\n", inspect.cleandoc(text)) if block.strip()]


def block_nodes(block):
    lines = block.splitlines()
    if lines[0].startswith(">>>"):
        return [nodes.doctest_block(block, block, language="pycon")]
    if all(line.startswith("    ") for line in lines):
        code = inspect.cleandoc(block)
        return [nodes.literal_block(code, code, language="text")]
    if len(lines) > 1 and re.fullmatch(r"-{3,}", lines[1]):
        return [nodes.rubric("", lines[0]), *(block_nodes("\n".join(lines[2:])) if lines[2:] else [])]
    # An item of a list goes on in lines that are indented; other text in any lines.
    items = []
    for line in re.split(r"\n(?=\S)", block):
        if items and not FIELD.match(line) and not FIELD.match(items[-1]):
            items[-1] += "\n" + line
        else:
            items.append(line)
    fields = [FIELD.match(item) for item in items]
    if not any(fields):
        return [nodes.paragraph("", "", *words(block))]
    result, table = [], None
    for item, field in zip(items, fields):
        if field is None:
            if table is not None:  # further text belongs to the item before
                table[-1][-1].append(nodes.paragraph("", "", *words(item)))
            else:
                result.append(nodes.paragraph("", "", *words(item)))
            continue
        if table is None:
            table = nodes.definition_list()
            result.append(table)
        term = nodes.term("", "", nodes.literal(field.group(1), field.group(1)))
        body = nodes.definition("", nodes.paragraph("", "", *words(field.group(2))))
        table.append(nodes.definition_list_item("", term, body))
    return result


def text_nodes(thing):
    return [node for block in blocks(inspect.getdoc(thing) or "") for node in block_nodes(block)]


class Docstrings(SphinxDirective):
    """Sections for the whole library; takes no argument."""

    def section(self, name, title, ids):
        section = nodes.section(ids=[ids], names=[ids])
        section += nodes.title("", "", nodes.literal(title, title))
        section += addnodes.index(entries=[("single", name, ids, "", None)])
        self.state.document.note_explicit_target(section)
        return section

    def entry(self, name, thing):
        section = self.section(name, name, name.replace("_", "-").replace(".", "-"))
        shown = f"{name}{signature(thing)}"
        section += nodes.literal_block(shown, shown, language="python", classes=["signature"])
        section += nodes.paragraph("", "", nodes.literal(name, name), classes=["source"])
        section += text_nodes(thing)
        for key, method in methods(thing).items():
            label = f".{key}" if isinstance(method, property) else f".{key}{signature(method)}"
            section += nodes.paragraph("", "", nodes.literal(label, label), classes=["method"])
            section += addnodes.index(entries=[("single", f"{name}.{key}", section["ids"][0], "", None)])
            section += nodes.container("", *text_nodes(method), classes=["method"])
        return section

    def run(self):
        result = []
        for name in public_modules(self.env.srcdir):
            self.env.note_dependency(importlib.import_module(name).__file__)
            section = self.section(name, name, "module-" + name.replace("_", "-").replace(".", "-"))
            section += text_nodes(importlib.import_module(name))
            section += [self.entry(f"{name}.{key}", value) for key, value in members(name).items()]
            result.append(section)
        return result


def setup(app):
    app.add_directive("docstrings", Docstrings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
