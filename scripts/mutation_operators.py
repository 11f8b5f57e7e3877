"""What can be changed in a module's source, one place at a time."""

import ast
from dataclasses import dataclass

_SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt,
}  # fmt: skip
_NAMES = {
    "floor": "ceil", "ceil": "floor", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
    "log1p": "expm1", "logaddexp": "maximum", "upper": "lower", "lower": "upper",
}  # fmt: skip
_WORDS = {"remove": "add", "add": "remove", "upper": "lower", "lower": "upper"}


@dataclass(frozen=True)
class Place:
    """One change at one place. `function` and `number` keep their meaning while that function stays as it is."""

    function: str  # dotted name of the function, method or class it stands in; "" for the module
    number: int  # of the place among those of the function
    change: str
    index: int  # in the walk of the module's tree
    line: int
    lines: range  # of the statement around it, without the statements inside


def functions(tree):
    """{id of node: (name, node)} of the module, its classes, methods and functions; not of functions inside others."""
    found = {id(tree): ("", tree)}

    def walk(body, prefix):
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found[id(node)] = prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                walk(node.body, prefix + node.name + ".")

    walk(tree.body, "")
    return found


def places(source):
    """Every `Place` of a module."""
    tree = ast.parse(source)
    index = {id(node): i for i, node in enumerate(ast.walk(tree))}
    names, skipped = functions(tree), _lines_without_meaning(tree)
    found, count = [], {}

    def walk(node, function, statement):
        if id(node) in names:
            function = names[id(node)][0]
        if isinstance(node, ast.stmt):
            statement = _lines(node)
        changes = _changes(node)
        if changes and node.lineno not in skipped:
            number = count[function] = count.get(function, 0) + 1
            for change in changes:
                found.append(Place(function, number, change, index[id(node)], node.lineno, statement))
        for child in ast.iter_child_nodes(node):
            walk(child, function, statement)

    walk(tree, "", range(0))
    return found


def mutated(source, place):
    """The source with the change made, or None where it makes no difference."""
    tree = ast.parse(source)
    before = ast.unparse(tree)
    node = next(node for i, node in enumerate(ast.walk(tree)) if i == place.index)
    _apply(node, place.change)
    after = ast.unparse(ast.fix_missing_locations(tree))
    return after if after != before else None


def _lines(statement):
    body = getattr(statement, "body", None)
    last = max(body[0].lineno - 1, statement.lineno) if body else statement.end_lineno
    return range(statement.lineno, last + 1)


def _changes(node):
    if isinstance(node, ast.BinOp) and type(node.op) in _SWAPS:
        return [f"{type(node.op).__name__} to {_SWAPS[type(node.op)].__name__}"]
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        return ["comparison turned round"]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return ["sign dropped"]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value != 0:
        return ["constant doubled", "constant halved"]
    if isinstance(node, ast.Constant) and node.value in _WORDS and isinstance(node.value, str):
        return [f"{node.value} to {_WORDS[node.value]}"]
    if isinstance(node, ast.Attribute) and node.attr in _NAMES and isinstance(node.ctx, ast.Load):
        return [f"{node.attr} to {_NAMES[node.attr]}"]
    if isinstance(node, ast.Name) and node.id in ("min", "max") and isinstance(node.ctx, ast.Load):
        return [f"{node.id} to {_NAMES[node.id]}"]
    if isinstance(node, ast.AugAssign) and type(node.op) in _SWAPS:
        return ["term dropped"]
    return []


def _apply(node, change):
    if isinstance(node, ast.BinOp):
        node.op = _SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = _SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        node.value = _WORDS[node.value]
    elif isinstance(node, ast.Constant):
        value = node.value * 2 if change.endswith("doubled") else node.value / 2
        node.value = max(int(value), 0) if isinstance(node.value, int) else value
    elif isinstance(node, ast.Attribute):
        node.attr = _NAMES[node.attr]
    elif isinstance(node, ast.Name):
        node.id = _NAMES[node.id]
    elif isinstance(node, ast.AugAssign):
        neutral = 0.0 if isinstance(node.op, (ast.Add, ast.Sub)) else 1.0
        node.value = ast.Constant(neutral)


def _lines_without_meaning(tree):
    """Lines of raised errors and docstrings: their words are no part of a number."""
    lines = set()
    for node in ast.walk(tree):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Raise) or text or isinstance(node, ast.JoinedStr):
            lines.update(range(node.lineno, node.end_lineno + 1))
    return lines
